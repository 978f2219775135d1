"""Votes weighted by a verifier: the answer with the largest sum of scores among ``k`` trials wins.

Ties are broken uniformly at random. Trials without an answer are drawn like any other and never
win. Scores are counted in `units`, so that equal sums are equal numbers.

* finite: ``k`` draws without replacement from the observed trials: all sets, or drawn ones;
* sums: the best sums of both sides after each trial, of which simulated elections are made.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Ints

NOBODY = -1  # answer of a trial without one
_DIGITS = 9  # most decimals of scores that are exact
_FINE = 2.0**36  # units of the largest score, where decimals are not enough
_LARGEST = 2.0**52  # sum of units up to which sums of numbers are exact
_SETS, _DRAWN = 20_000, 4000  # of k trials: all, or drawn ones where they are more


def units(score: Array, trials: int) -> Array:
    """Return scores as whole numbers of a unit, exact for decimals and else to 1e-11 of the range.

    Parameters
    ----------
    score : ndarray
        At least zero.
    trials : int
        Whose sums must be exact.

    Examples
    --------
    >>> units(np.array([0.1, 0.2, 0.3]), 10).tolist()  # 0.1 + 0.2 is 0.3
    [1.0, 2.0, 3.0]
    """
    top = float(score.max(initial=0.0))
    if top == 0.0:
        return np.zeros_like(score)
    for digits in range(_DIGITS + 1):
        scaled = score * 10.0**digits
        if top * 10.0**digits * trials > _LARGEST:
            break
        if np.abs(scaled - np.round(scaled)).max() <= 1e-6 and np.round(scaled).any():
            return np.round(scaled)
    return np.round(score * (min(_FINE, _LARGEST / max(trials, 1)) / top))


def weighted_vote_finite(
    score: Array,
    answer: Ints,
    count: Ints,
    correct: Flags,
    ks: Sequence[int],
    silent: int = 0,
) -> Array:
    """Return the expected credit of ``k`` trials drawn without replacement from those observed.

    Parameters
    ----------
    score : ndarray, shape (entries,)
        In `units`.
    answer : ndarray of int, shape (entries,)
        Position among the answers.
    count : ndarray of int, shape (entries,)
        Trials with the answer and the score.
    correct : ndarray of bool, shape (answers,)
    ks : sequence of int
        NaN where ``k`` exceeds the trials.
    silent : int
        Trials without an answer.

    Returns
    -------
    ndarray, shape (ks,)
        Exact where there are up to 20 000 sets of k trials: always up to 16 trials. Else the mean
        over 4000 sets, drawn with the same seed every time, which is unbiased and has a standard
        error of at most .008.

    Examples
    --------
    Answers A (1), B (0.4) and B (0.7), A right: A wins the pairs AB, and B that of all three.

    >>> tenths = units(np.array([1, 0.4, 0.7]), 3)
    >>> place, number, right = np.array([0, 1, 1]), np.array([1, 1, 1]), np.array([True, False])
    >>> weighted_vote_finite(tenths, place, number, right, [1, 2, 3]).round(12).tolist()
    [0.333333333333, 0.666666666667, 0.0]
    """
    of_trial = np.concatenate([np.repeat(np.arange(len(score)), count), np.full(silent, NOBODY)])
    values = np.where(np.array(ks) <= len(of_trial), 0.0, np.nan)
    for column, k in enumerate(ks):
        if k <= len(of_trial) and correct[answer].any():
            drawn = of_trial[_sets(len(of_trial), k)]
            answers = np.where(drawn == NOBODY, NOBODY, answer[drawn])
            right = correct[answers] & (drawn != NOBODY)
            tops = [
                running_tops(np.where(side, answers, NOBODY), score[drawn], len(correct))
                for side in (right, ~right)
            ]
            values[column] = vote_credit(*(top[:, k] for side in tops for top in side)).mean()
    return values


@lru_cache(maxsize=16)
def _sets(trials: int, k: int) -> Indices:
    """All sets of k trials, or a sample of them where they are many."""
    if comb(trials, k) <= _SETS:
        listed = np.array(list(combinations(range(trials), k)), np.intp)
        return listed.reshape(-1, k)
    rng = np.random.default_rng(20260101)
    return np.array([rng.choice(trials, k, replace=False) for _ in range(_DRAWN)])


def running_tops(
    answer: Ints, score: Array, answers: int, differing: int | None = None
) -> tuple[Array, Array]:
    """Return the largest sum of an answer after 0, 1, ... trials, and how many answers have it.

    Parameters
    ----------
    answer : ndarray of int, shape (elections, trials)
        Position of the answer of every trial; `NOBODY` where there is none.
    score : ndarray, shape (elections, trials)
    answers : int
        Number of answers.
    differing : int, optional
        Position whose trials all have answers of their own.

    Returns
    -------
    best, tied : ndarray, shape (elections, trials + 1)
        Best is -1 before the first answer.

    Examples
    --------
    >>> best, tied = running_tops(np.array([[0, 1, 1]]), np.array([[2.0, 1.0, 1.0]]), 2)
    >>> best.tolist(), tied.tolist()
    ([[-1.0, 2.0, 2.0, 2.0]], [[0.0, 1.0, 1.0, 2.0]])
    """
    elections, trials = answer.shape
    rows, held = np.arange(elections), np.full((elections, answers), -1.0)
    best, tied = np.full((elections, trials + 1), -1.0), np.zeros((elections, trials + 1))
    for trial in range(trials):
        place, top = answer[:, trial], best[:, trial]
        before = held[rows, place]
        if differing is not None:
            before = np.where(place == differing, -1.0, before)
        after = np.where(place == NOBODY, -1.0, np.maximum(before, 0.0) + score[:, trial])
        held[rows, place] = np.where(place == NOBODY, before, after)
        joins = (after == top) & (before < top)
        tied[:, trial + 1] = np.where(after > top, 1.0, tied[:, trial] + joins)
        best[:, trial + 1] = np.maximum(top, after)
    return best, tied


def vote_credit(right: Array, tied_right: Array, wrong: Array, tied_wrong: Array) -> Array:
    """Return the credit of elections, of the best sums of both sides and how many have them.

    Examples
    --------
    >>> ones = np.ones(3)
    >>> vote_credit(np.array([2.0, 1.0, -1.0]), ones, np.array([1.0, 1.0, -1.0]), ones).tolist()
    [1.0, 0.5, 0.0]
    """
    won, equal = (right > wrong).astype(float), (right == wrong) & (right >= 0.0)
    if equal.any():
        won = np.where(equal, tied_right / np.maximum(tied_right + tied_wrong, 1.0), won)
    return won
