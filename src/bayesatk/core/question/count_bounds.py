"""Simultaneous bounds on probabilities of sets of counts, for any distribution of difficulty.

The number of questions with 0..t successes, or with t + 1..u, is a sum of independent indicators.
Its mean lies in the Clopper-Pearson interval of its value with at least the stated confidence,
whether or not the questions have equal probabilities (Hoeffding 1956, theorem 4). The error rate is
divided between all sets of counts (Bonferroni), which are chosen beforehand. Bounds on "at most t"
give narrow ranges of metrics with k within the trials, bounds on single counts of metrics with
larger k; both together are close to the better of the two everywhere.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betainc, betainccinv, betaincinv

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk.core.question.expected_credit import hypergeometric_pmf

EVEN = 8  # equidistant thresholds up to half of the trials; up to 16 trials every count is one


@dataclass(frozen=True)
class CountBounds:
    """Bounds on probabilities of sets of counts, for questions with a minimum number of trials.

    Parameters
    ----------
    trials : int
        Trials that the counts are out of: the smallest number of trials of a question of the group.
    share : float
        Share of the group among all questions, by weight.
    lower, upper : ndarray, shape (sets,)
        Bounds on the probability of each set of counts, in the order of `set_probabilities`.
    """

    trials: int
    share: float
    lower: Array
    upper: Array


def count_bounds(
    successes: Ints, trials: Ints, repeats: Array, confidence: float, units: Ints | None = None
) -> list[CountBounds]:
    """Return bounds that hold simultaneously with the stated confidence.

    A question with more trials than the fewest of its group contributes the expected indicator of a
    random subset of that size. Sums of such fractions need limits with an error rate smaller by a
    factor e (Bentkus 2004, theorem 1.2), and so do weighted indicators, whose limits are the better
    of those of their sum and of the sum of their complements.

    Parameters
    ----------
    successes, trials : ndarray of int, shape (states,)
    repeats : ndarray, shape (states,)
        Number of questions; with `units` the weight of one, with a sum of at most 1 per unit.
    confidence : float
    units : ndarray of int, shape (states,), optional
        Unit of each question; questions of one unit depend on each other.

    Examples
    --------
    >>> (bounds,) = count_bounds(np.array([0, 2]), np.array([2, 2]), np.array([5.0, 5.0]), 0.95)
    >>> bounds.lower.round(3).tolist(), bounds.upper.round(3).tolist()
    ([0.144, 0.144, 0.0], [0.856, 0.856, 0.38])
    """
    groups = _groups(trials, repeats)
    questions_used = sum(float(repeats[members].sum()) for _, members in groups)
    bounds = []
    for fewest, members in groups:
        c, n, m = successes[members], trials[members], repeats[members]
        size = float(m.sum())
        below = _expected_at_most(fewest, c, n, m)
        number = np.concatenate([below, np.diff(below)])
        alpha = (1.0 - confidence) * size / questions_used / (2 * len(number))
        if n.max() > fewest or units is not None:
            alpha /= np.e
        if units is None:
            lower, upper = _clopper_pearson(number, size, alpha)
        else:
            scale = len(np.unique(units[members])) / size
            lower, upper = _clopper_pearson(number, scale * size, alpha / 2.0)
            rest_lower, rest_upper = _clopper_pearson(size - number, scale * size, alpha / 2.0)
            lower = np.maximum(scale * lower, 1.0 - scale * rest_upper)
            upper = np.minimum(scale * upper, 1.0 - scale * rest_lower)
        bounds.append(CountBounds(fewest, size / float(repeats.sum()), lower, upper))
    return bounds


def _expected_at_most(fewest: int, c: Ints, n: Ints, m: Array) -> Array:
    """Return the expected number of questions with at most t successes in `fewest` trials."""
    limits = np.array(thresholds(fewest))
    if n.max() == fewest:
        return (c <= limits[:, None]) @ m
    expected, size = np.zeros(len(limits)), max(1, 1_000_000 // fewest)
    for start in range(0, len(c), size):
        rows = slice(start, start + size)
        pmf = hypergeometric_pmf(fewest, c[rows].astype(float), n[rows].astype(float))
        cumulative = np.minimum(np.cumsum(m[rows] @ pmf), m[rows].sum())
        expected += cumulative[np.minimum(limits, len(cumulative) - 1)]
    return expected


def _clopper_pearson(number: Array, size: float, alpha: float) -> tuple[Array, Array]:
    """Return the ends of Clopper-Pearson intervals with error rate alpha at each end.

    For indicators of unequal probability they are valid at least one question away from the
    estimate, so nearer limits are moved there.
    """
    low, high = np.floor(number + 1e-9), np.ceil(number - 1e-9)
    is_zero, is_all = low <= 0.0, high >= size
    lower = betaincinv(np.where(is_zero, 1.0, low), np.where(is_zero, 1.0, size - low + 1.0), alpha)
    failures = np.where(is_all, 1.0, size - high)
    upper = betainccinv(np.where(is_all, 1.0, high + 1.0), failures, alpha)
    lower = np.where(is_zero, 0.0, np.minimum(lower, (low - 1.0) / size))
    upper = np.where(is_all, 1.0, np.maximum(upper, (high + 1.0) / size))
    return np.maximum(lower, 0.0), np.minimum(upper, 1.0)


def _groups(trials: Ints, repeats: Array) -> list[tuple[int, Flags]]:
    """Group questions by trials, each time with the largest ``sqrt(trials) * questions``.

    Of the rules that were tried on seven designs of unequal trials this gave the narrowest bounds.
    There are at most 8 groups; questions with still fewer trials are left out.
    """
    remaining = np.ones(len(trials), bool)
    groups: list[tuple[int, Flags]] = []
    while remaining.any() and len(groups) < 8:
        fewest, number = np.unique(trials[remaining], return_inverse=True)
        questions = np.bincount(number, repeats[remaining])
        usable = np.sqrt(fewest) * np.cumsum(questions[::-1])[::-1]
        group_trials = int(fewest[np.argmax(usable)])
        groups.append((group_trials, remaining & (trials >= group_trials)))
        remaining = remaining & (trials < group_trials)
    return groups


@lru_cache(maxsize=64)
def thresholds(trials: int) -> tuple[int, ...]:
    """Return the counts t of the bounds on "at most t": denser near both ends.

    Examples
    --------
    >>> thresholds(4), thresholds(40)
    ((0, 1, 2, 3), (0, 1, 2, 5, 7, 10, 12, 15, 17, 19, 20, 22, 24, 27, 29, 32, 34, 37, 38, 39))
    """
    geometric = [0, *(2**i * j // 2 for i in range(trials.bit_length()) for j in (2, 3))]
    equidistant = [trials * i // (2 * EVEN) for i in range(1, EVEN + 1)]
    lower_half = [t for t in geometric if 2 * EVEN * t < trials] + equidistant
    return tuple(sorted({*lower_half, *(trials - 1 - t for t in lower_half)}))


def set_probabilities(trials: int, p: Array) -> Array:
    """Probability of at most t successes for all thresholds, then of each interval between them.

    Examples
    --------
    >>> set_probabilities(2, np.array([0.5])).ravel().tolist()
    [0.25, 0.75, 0.5]
    """
    t = np.array(thresholds(trials), float)[:, None]
    below = betainc(trials - t, t + 1.0, 1.0 - p)
    return np.concatenate([below, np.diff(below, axis=0)])
