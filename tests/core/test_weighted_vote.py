"""Votes weighted by scores: the finite law, its drawn orders, and running sums."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import comb

from bayesatk.core.question import weighted_vote
from bayesatk.core.question.ballot import plurality_finite
from bayesatk.core.question.weighted_vote import (
    NOBODY,
    running_tops,
    units,
    vote_credit,
    weighted_vote_finite,
)

RIGHT = np.array([True, False, False, True])
# Answer (none is -1) and score of each trial; few scores tie, many do not.
TIED = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=7)
UNTIED = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 10**8)), min_size=1, max_size=7)


def by_enumeration(trials: list[tuple[int, float]], k: int) -> float:
    """Mean over all subsets of the share of right answers among those with the largest sum."""
    credits = []
    for subset in combinations(trials, k):
        sums: dict[int, float] = {}
        for answer, score in subset:
            if answer >= 0:
                sums[answer] = sums.get(answer, 0) + score
        best = [answer for answer in sums if sums[answer] == max(sums.values())]
        credits.append(np.mean([RIGHT[answer] for answer in best]) if best else 0.0)
    return float(np.mean(credits))


def counted(trials: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return scores, answers and counts of the trials that voted, and how many did not."""
    distinct = sorted({trial for trial in trials if trial[0] >= 0})
    answer, score = (np.array([pair[i] for pair in distinct]) for i in range(2))
    count = np.array([trials.count(pair) for pair in distinct], np.int64)
    silent = sum(answer < 0 for answer, _ in trials)
    return score.astype(float), answer.astype(np.int64), count, silent


@given(TIED | UNTIED)
def test_finite_law_is_the_mean_over_all_subsets(trials: list[tuple[int, int]]) -> None:
    score, answer, count, silent = counted(trials)
    ks = list(range(1, len(trials) + 3))
    credit = weighted_vote_finite(score, answer, count, RIGHT, ks, silent)
    assert_allclose(credit[:-2], [by_enumeration(trials, k) for k in ks[:-2]], atol=1e-12)
    assert np.isnan(credit[-2:]).all()


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=12), st.integers(1, 9))
def test_equal_scores_give_the_plurality(answers: list[int], score: int) -> None:
    place = np.array([answer for answer in answers if answer >= 0], np.int64)
    silent, ks = answers.count(-1), list(range(1, len(answers) + 1))
    credit = weighted_vote_finite(
        np.full(len(place), float(score)), place, np.ones(len(place), np.int64), RIGHT, ks, silent
    )
    counts = np.bincount(place, minlength=4)
    assert_allclose(credit, plurality_finite(counts, RIGHT, ks, silent or None), atol=1e-10)


def test_drawn_sets_agree_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    answer = np.repeat([0, 1, 2, 3], [5, 5, 2, 1])
    score, count = rng.integers(0, 11, 13).astype(float), np.ones(13, np.int64)
    ks = [1, 3, 6, 14]
    exact = weighted_vote_finite(score, answer, count, RIGHT, ks, 2)
    monkeypatch.setattr(weighted_vote, "_SETS", 1000)
    weighted_vote._sets.cache_clear()
    drawn = weighted_vote_finite(score, answer, count, RIGHT, ks, 2)
    assert (drawn != exact).any()
    weighted_vote._sets.cache_clear()
    assert_allclose(drawn, exact, atol=0.06)


def test_many_trials_are_right_to_the_error_of_drawn_sets() -> None:
    """60 trials of two answers with one score each: the sums decide, by a hypergeometric law."""
    score, answer, count = np.array([3.0, 2.0]), np.array([0, 1]), np.array([24, 36])
    credit = weighted_vote_finite(score, answer, count, np.array([True, False]), [5, 10])
    expected = []
    for k in (5, 10):
        right = np.arange(k + 1)
        chance = comb(24, right) * comb(36, k - right) / comb(60, k)
        ahead = 3 * right - 2 * (k - right)
        expected.append(chance @ ((ahead > 0) + 0.5 * (ahead == 0)))
    assert_allclose(credit, expected, atol=0.03)


def test_units_are_exact_for_decimals_and_keep_ratios_of_others() -> None:
    assert units(np.array([0.1, 0.2, 0.3]), 100).tolist() == [1.0, 2.0, 3.0]
    assert units(np.array([0.0, 2.5, 1.25]), 100).tolist() == [0.0, 250.0, 125.0]
    assert units(np.zeros(3), 5).tolist() == [0.0, 0.0, 0.0]
    score = np.random.default_rng(3).random(50) / 3.0
    whole = units(score, 1000)
    assert (whole == np.round(whole)).all()
    assert whole.sum() * 20 < 2.0**53
    assert_allclose(whole / whole.max(), score / score.max(), atol=1e-9)


def test_running_tops_are_those_of_every_prefix() -> None:
    rng = np.random.default_rng(4)
    answer, score = rng.integers(-1, 4, (200, 6)), rng.integers(0, 3, (200, 6)).astype(float)
    best, tied = running_tops(answer, score, 4)
    apart, _ = running_tops(np.where(answer == 2, 0, NOBODY), score, 1, 0)
    for row in range(200):
        for k in range(7):
            given_by = {
                a: score[row, :k][answer[row, :k] == a].sum()
                for a in set(answer[row, :k].tolist()) - {NOBODY}
            }
            top = max(given_by.values(), default=-1.0)
            assert best[row, k] == top
            assert tied[row, k] == sum(value == top for value in given_by.values())
            alone = score[row, :k][answer[row, :k] == 2]
            assert apart[row, k] == max(alone.tolist(), default=-1.0)


def test_credit_of_ties_is_shared() -> None:
    right, wrong = np.array([2.0, 2.0, 1.0, -1.0, 0.0]), np.array([1.0, 2.0, 2.0, -1.0, 0.0])
    credit = vote_credit(right, np.full(5, 2.0), wrong, np.full(5, 1.0))
    assert_allclose(credit, [1.0, 2 / 3, 0.0, 0.0, 2 / 3])
