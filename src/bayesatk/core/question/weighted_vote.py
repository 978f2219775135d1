"""Votes weighted by a verifier: the answer with the largest sum of scores among ``k`` trials wins.

Ties are broken uniformly at random. Trials without an answer are drawn like any other and never
win. Scores are counted in `units`, so that equal sums are equal numbers.

* finite: ``k`` draws without replacement from the observed trials, exact or by drawn orders;
* sums: the best sums of both sides after each trial, of which simulated elections are made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Ints

NOBODY = -1  # answer of a trial without one
_DIGITS = 9  # most decimals of scores that are exact
_FINE = 2.0**36  # units of the largest score, where decimals are not enough
_LARGEST = 2.0**52  # sum of units up to which sums of numbers are exact
_STATES = 20_000  # sums of one answer that are told apart
_WORK = 5e7  # multiplications of the exact law of one question
_EXACT_TRIALS = 500  # trials up to which numbers of subsets are floats
_ORDERS = 4000  # of the trials, drawn where the exact law is too much work


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


@dataclass(frozen=True)
class _Sums:
    """Subsets of the trials of one answer, by their sum and size.

    Parameters
    ----------
    total, size : ndarray, shape (states,)
        Of the scores, and number of trials; ascending by the sum.
    ways : ndarray, shape (states,)
        Number of subsets.
    """

    total: Array
    size: Ints
    ways: Array

    @classmethod
    def of(cls, score: Array, count: Ints, most: int) -> "_Sums | None":
        """Return subsets of at most so many trials; None if there are too many sums."""
        total, size, ways = np.zeros(1), np.zeros(1, np.int64), np.ones(1)
        for points, number in zip(score.tolist(), count.tolist(), strict=True):
            chosen = np.arange(min(number, most) + 1)
            if len(total) * len(chosen) > 8 * _STATES:
                return None
            times = np.array([float(comb(number, j)) for j in chosen.tolist()])
            keys = np.stack([
                np.add.outer(total, chosen * points).ravel(), np.add.outer(size, chosen).ravel()
            ])  # fmt: skip
            keys, place = np.unique(keys, axis=1, return_inverse=True)
            ways = np.bincount(place.ravel(), np.multiply.outer(ways, times).ravel())
            total, size = keys[0], keys[1].astype(np.int64)
            inside = size <= most
            total, size, ways = total[inside], size[inside], ways[inside]
            if len(total) > _STATES:
                return None
        return cls(total, size, ways)

    def against(self, totals: Array, most: int) -> tuple[Array, Array]:
        """Subsets by size that lose against sums, and that tie with them; (sums, most + 1).

        The empty subset is no candidate: it loses also against a sum of zero.
        """
        sums, place = np.unique(self.total, return_inverse=True)
        by_sum = np.zeros((len(sums), most + 1))
        np.add.at(by_sum, (place, self.size), self.ways)
        below = np.concatenate([np.zeros((1, most + 1)), by_sum.cumsum(axis=0)])
        first, last = (np.searchsorted(sums, totals, side) for side in ("left", "right"))
        loses, ties = below[first], below[last] - below[first]
        ties[:, 0], loses[:, 0] = 0.0, 1.0
        return loses, ties


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
        Exact where the sums of scores are few: always up to some 14 trials, and up to hundreds of
        trials with few distinct scores. Else the mean over 4000 orders of the trials, drawn with
        the same seed every time, which is unbiased and has a standard error of at most .008.

    Examples
    --------
    Answers A (1), B (0.4) and B (0.7), A right: A wins the pairs AB, and B that of all three.

    >>> tenths = units(np.array([1, 0.4, 0.7]), 3)
    >>> place, number, right = np.array([0, 1, 1]), np.array([1, 1, 1]), np.array([True, False])
    >>> weighted_vote_finite(tenths, place, number, right, [1, 2, 3]).round(12).tolist()
    [0.333333333333, 0.666666666667, 0.0]
    """
    trials = int(count.sum()) + silent
    values = np.full(len(ks), np.nan)
    possible = [i for i, k in enumerate(ks) if k <= trials]
    values[possible] = 0.0
    if not possible or not correct[answer].any():
        return values
    asked = [ks[i] for i in possible]
    credit = None
    if trials <= _EXACT_TRIALS:
        credit = _exact(score, answer, count, correct, asked, silent)
    if credit is None:
        credit = _by_orders(score, answer, count, correct, asked, silent)
    values[possible] = credit
    return values


def _exact(
    score: Array, answer: Ints, count: Ints,
    correct: Flags, ks: Sequence[int], silent: int,
) -> Array | None:  # fmt: skip
    """Return the expected credits, or None where they are too much work."""
    most, trials, credit = max(ks), int(count.sum()) + silent, np.zeros(len(ks))
    sides = []
    for position in range(len(correct)):
        inside = answer == position
        sums = _Sums.of(score[inside], count[inside], most)
        if sums is None:
            return None
        sides.append(sums)
    states = sum(len(sums.total) for sums, right in zip(sides, correct, strict=True) if right)
    if states * len(sides) * most**2 > _WORK:
        return None
    for position in np.flatnonzero(correct).tolist():
        winner = sides[position]
        there = winner.size > 0
        totals, place = np.unique(winner.total[there], return_inverse=True)
        others = [
            sums.against(totals, most) for i, sums in enumerate(sides) if i != position
        ]  # fmt: skip
        beaten = _all_beaten(others, len(totals), most, silent)[place]
        size = winner.size[there]
        for column, k in enumerate(ks):
            rest = k - size
            inside = rest >= 0
            chance = beaten[inside, rest[inside]]
            credit[column] += winner.ways[there][inside] @ chance / float(comb(trials, k))
    return np.minimum(credit, 1.0)


def _all_beaten(
    others: Sequence[tuple[Array, Array]], totals: int, most: int, silent: int
) -> Array:
    """Subsets of other trials by size that a sum beats, times its share where some tie with it.

    The share ``1 / (1 + ties)`` is the integral of ``u^ties`` over u from 0 to 1.
    """
    ties = sum(int(tied.any()) for _, tied in others)
    nodes, weight = np.polynomial.legendre.leggauss(ties // 2 + 1)
    beaten = np.zeros((totals, most + 1))
    for u, chance in zip(0.5 + 0.5 * nodes, 0.5 * weight, strict=True):
        product = np.zeros((totals, most + 1))
        product[:, : silent + 1] = [float(comb(silent, j)) for j in range(min(silent, most) + 1)]
        for loses, tied in others:
            factor, before = loses + u * tied, product
            product = np.zeros_like(before)
            for j in np.flatnonzero(factor.any(axis=0)).tolist():
                product[:, j:] += factor[:, j, None] * before[:, : most + 1 - j]
        beaten += chance * product
    return beaten


def _by_orders(
    score: Array, answer: Ints, count: Ints,
    correct: Flags, ks: Sequence[int], silent: int,
) -> Array:  # fmt: skip
    """Return mean credits over orders of the trials, of which the first k vote."""
    rng = np.random.default_rng(20260101)
    of_trial = np.concatenate([np.repeat(np.arange(len(score)), count), np.full(silent, NOBODY)])
    order = rng.permuted(np.broadcast_to(of_trial, (_ORDERS, len(of_trial))), axis=1)
    order = order[:, : max(ks)]
    drawn_answer = np.where(order == NOBODY, NOBODY, answer[order])
    right = correct[drawn_answer] & (order != NOBODY)
    tops = [
        running_tops(np.where(side, drawn_answer, NOBODY), score[order], len(correct))
        for side in (right, ~right)
    ]
    won = vote_credit(*(top[:, list(ks)] for side in tops for top in side))
    return np.asarray(won.mean(axis=0))


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
