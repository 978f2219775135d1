"""Floors of gates: false verdicts by enumeration, whatever the other questions are."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, multinomial

import bayesatk as bk
from bayesatk.comparison.gates.floors import own_confidences, total_tails
from bayesatk.comparison.gates.gate import gate_of, joined_outcomes
from bayesatk.metrics import grid
from bayesatk.results.result import Result

LEVEL = 0.95
FLOORS = (0.1, 0.3, 0.6, 0.9, 0.97)
BOARDS = {"alone": [], "easy": [32] * 40, "hard": [0] * 40, "mixed": [0, 4, 16, 30, 32] * 8}


def evaluated(counts, trials, metric="pass@1", weight=None) -> Result:
    data = bk.tally((np.array(counts), np.array(trials)), weight=weight)
    return Result.of(bk.evaluate(data, metric, pooling="none", draws=4, rng=1))


def confidences(result: Result, floor: float, groups=None) -> np.ndarray:
    """Confidences above and below of every question, or of groups of them."""
    policy = bk.decide.GatePolicy(result.metrics[0].label, margin=0.1)
    questions = np.arange(result.trials.shape[1])
    masks = [np.isin(questions, group) for group in (questions if groups is None else groups)]
    return np.array([own_confidences(result, 0, policy, mask, floor)[1:] for mask in masks])


@pytest.mark.parametrize("trials", [1, 2, 4, 8, 32])
@pytest.mark.parametrize("board", list(BOARDS))
def test_a_question_at_its_floor_is_misjudged_no_more_often_than_the_level_says(
    trials, board
) -> None:
    """All outcomes of the question, among other questions of 32 trials."""
    right, counts_beside = np.arange(trials + 1), BOARDS[board]
    counts, sizes = [*right, *counts_beside], [trials] * (trials + 1) + [32] * len(counts_beside)
    result = evaluated(counts, sizes)
    for floor in FLOORS:
        above, below = confidences(result, floor, right).T
        for p in (floor, 0.9 * floor, 0.5 * floor):
            assert binom.pmf(right, trials, p)[above >= LEVEL].sum() <= 1 - LEVEL
        for p in (floor, 0.5 * (1 + floor)):
            assert binom.pmf(right, trials, p)[below >= LEVEL].sum() <= 1 - LEVEL


@pytest.mark.parametrize(("metric", "k"), [("pass@2", 2), ("pass^3", 3)])
def test_floors_of_other_metrics_are_floors_of_p(metric, k) -> None:
    p, right = 0.7, np.arange(9)
    value = p**k if "^" in metric else 1 - (1 - p) ** k
    above, below = confidences(evaluated(right, [8] * 9, metric), value).T
    assert above == pytest.approx(1 - binom.sf(right - 1, 8, p), abs=1e-9)
    assert below == pytest.approx(1 - binom.cdf(right, 8, p), abs=1e-9)


@pytest.mark.parametrize(
    ("sizes", "weight", "metric"),
    [([4, 4, 4], None, "pass@1"), ([2, 3, 4], None, "pass@1"), ([3, 3, 3], [1, 2, 5], "pass@1"),
     ([4, 4, 4], None, "pass^2")],
)  # fmt: skip
def test_a_group_at_its_floor_is_misjudged_no_more_often_than_the_level_says(
    sizes, weight, metric
) -> None:
    """All outcomes of three questions, whose success probabilities differ in many ways."""
    outcomes = np.array(list(product(*(range(n + 1) for n in sizes))))
    groups = np.arange(outcomes.size).reshape(-1, 3)
    share = np.ones(3) / 3 if weight is None else np.array(weight) / sum(weight)
    weights = None if weight is None else np.tile(np.array(weight, float), len(outcomes))
    result = evaluated(outcomes.ravel(), np.tile(sizes, len(outcomes)), metric, weights)
    rng = np.random.default_rng(1)
    for p in [*rng.uniform(0, 1, (3, 3)), *rng.beta(0.2, 0.2, (5, 3)), np.full(3, 0.6)]:
        floor = float(share @ (p**2 if metric == "pass^2" else p))
        chance = binom.pmf(outcomes, sizes, p).prod(axis=1)
        for confidence in confidences(result, floor, groups).T:
            assert chance[confidence >= LEVEL].sum() <= 1 - LEVEL + 1e-12


def test_totals_of_unlike_trials_have_tails_within_their_bounds() -> None:
    rng = np.random.default_rng(2)
    for p in [*rng.beta(0.3, 0.3, (100, 6)), *rng.uniform(0, 0.2, (50, 6)), np.full(6, 0.4)]:
        chances = np.ones(1)
        for single in p:
            chances = np.convolve(chances, [1 - single, single])
        for right in range(7):
            above, below = total_tails(right, 6, float(p.mean()))
            assert chances[right:].sum() <= above + 1e-12
            assert chances[: right + 1].sum() <= below + 1e-12


def test_scores_have_floors_too() -> None:
    """Means of three scores: enumeration of eight trials of one question."""
    scores = {"a": 0.0, "b": 0.5, "c": 2.0}
    counts = [(i, j, 8 - i - j) for i in range(9) for j in range(9 - i)]
    p = np.array([0.3, 0.5, 0.2])
    chance = multinomial.pmf(counts, 8, p)
    rows = [list("a" * i + "b" * j + "c" * k) for i, j, k in counts]
    result = Result.of(
        bk.evaluate(bk.tally(rows, scores=scores), "bayes", pooling="none", draws=4, rng=1)
    )
    for confidence in confidences(result, float(p @ list(scores.values()))).T:
        assert 0.0 < chance[confidence >= LEVEL].sum() <= 1 - LEVEL


def test_floors_at_the_end_and_of_too_few_trials() -> None:
    result = evaluated([0, 2, 3], [3, 3, 3])
    assert confidences(result, 1.0)[:, 1].tolist() == [1.0, 1.0, 0.0]  # a failure shows p < 1
    unknown = evaluated([1, 1], [1, 1], "pass^2")
    assert confidences(unknown, 0.5, [[0, 1]]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("pooled", [False, True])
def test_other_questions_speak_for_a_floor_only_on_request(pooled) -> None:
    new = np.ones((30, 1), int)
    policy = bk.decide.GatePolicy("pass@1", margin=0.5, floors={0: 0.9}, pooled_floors=pooled)
    floor = gate_of(joined_outcomes(new, new), policy).floors[0]
    if pooled:
        assert floor.above > 0.9
        assert floor.above + floor.below == pytest.approx(1.0)
        assert "with posterior probability" in floor.sentence
    else:
        assert (floor.above, floor.verdict) == (pytest.approx(0.1), "inconclusive")
        assert "with confidence 0.100: inconclusive" in floor.sentence


def test_floors_are_pooled_or_not() -> None:
    with pytest.raises(ValueError, match="pooled_floors must be true or false"):
        bk.decide.GatePolicy("pass@1", margin=0.1, pooled_floors="yes")


def test_the_verdict_names_the_floor_that_decides() -> None:
    rng = np.random.default_rng(1)
    old, new = rng.binomial(1, 0.6, (2, 100, 4))
    new[0] = 0
    passes = bk.decide.GatePolicy("pass@1", margin=0.3)
    assert str(gate_of(joined_outcomes(new, old), passes)).startswith("PASS: in pass@1 on these")
    floors = bk.decide.GatePolicy("pass@1", margin=0.3, floors={0: 0.9, 1: 0.01})
    headline = gate_of(joined_outcomes(new, old), floors).sentences()[0]
    assert headline.startswith("FAIL: floor 0; in pass@1 on these questions new is not worse than")
    assert headline.endswith("(pass at 0.95, fail at 0.05), alone: pass.")
    fails = bk.decide.GatePolicy("pass@1", margin=0.3, rule="superiority", floors={0: 0.9})
    assert str(gate_of(joined_outcomes(new, old), fails)).startswith("FAIL: in pass@1 on these")


def test_floors_and_margins_beyond_the_metric_are_refused() -> None:
    marks = [[1, 0, 1]] * 3
    with pytest.raises(ValueError, match=r"floors must be within 0 to 1.*got 60 for 0\. Give a"):
        bk.decide.gate(marks, marks, bk.decide.GatePolicy("pass@1", 0.1, floors={0: 60}))
    for metric, floor, words in (
        ("pass@1", 0, "not 0, which every system reaches; got 0 for"),
        ("mg-pass@3", 0.8, "within 0 to 0.666667, the range of mg-"),
    ):
        with pytest.raises(ValueError, match=words):
            bk.decide.gate(marks, marks, bk.decide.GatePolicy(metric, 0.1, floors={0: floor}))
    with pytest.raises(ValueError, match=r"^margin must be smaller than 1.*got 3\. Try margin=0"):
        bk.decide.gate(marks, marks, metric="pass@1", margin=3)


def test_a_metric_that_is_largest_at_both_ends_of_p_has_floors(monkeypatch) -> None:
    """Two trials agree, so that a floor is no success probability, and 0 is not where p is 0."""
    monkeypatch.setattr(grid, "FAMILIES", dict(grid.FAMILIES))
    credit = bk.metrics.Credit.of((1.0, 0.0, 1.0))
    agree = bk.metrics.register(bk.metrics.Family("agree_at_k", "agree@", lambda _: credit))
    result = evaluated([4, 0, 2], [4, 4, 4], agree.at(2))
    above, below = confidences(result, 0.9).T
    assert above[0] == above[1] > 0.0 == below[0] == below[1]
    assert below[2] > above[2]
    with pytest.raises(ValueError, match=r"must be within 0 to 1, .* not 0, which every"):
        bk.decide.gate(
            [[1, 1]] * 2, [[1, 1]] * 2, bk.decide.GatePolicy("agree@2", 0.1, floors={0: 2.0})
        )
