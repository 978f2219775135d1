"""Distribution-free range of a metric: over all difficulty distributions that fit the counts.

n trials of a question tell the first n moments of the difficulty distribution and no more. A
metric ``E g(p)`` at a larger k depends on the others, so the counts leave a range. It is found in
two steps:

1. Bounds on probabilities of counts that hold together (`bayesatk.core.question.count_bounds`).
2. A linear programme: the largest and the smallest ``E g(p)`` over the distributions on a grid of p
   whose probabilities of counts are within the bounds. Its multipliers make a curve over the
   counts; where that curve lies above ``g(p)``, its expectation bounds the metric whatever the
   distribution. It is raised until it does between the points of the grid too, so that the range
   is right for all of [0, 1] and errors of the solver can only widen it.

The bounds do not depend on the metric: ranges of all metrics of a system hold together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from bayesatk._tools.arrays import Array
from bayesatk.core.question.count_bounds import (
    EVEN,
    CountBounds,
    count_bounds,
    set_probabilities,
    thresholds,
)

Curve = Callable[[ArrayLike], Array]
_RELATIVE_ERROR_RATES = (1.0, 1e-3, 1e-6)  # tried in this order, over the requested error rate
_SMALLEST_P_DIGITS = 8  # decimal digits, of the grid: pass@k is resolved up to k of 10^7
_POINTS_BETWEEN = 7  # checked between neighbours of the grid
_GRIDS_MAX = 8  # refined one after the other
_EXCESS_WIDTH_MAX = 1e-4  # of a range at each end, up to which the grid is not refined
_VIOLATION_TOL = 1e-8  # of the bounds on probabilities


@dataclass(frozen=True)
class MetricRanges:
    """Distribution-free ranges of metrics.

    Parameters
    ----------
    lower, upper : ndarray, shape (metrics, 2)
        By target: questions, population.
    fits : bool
        Whether one difficulty distribution agrees with all counts at the requested confidence.
        Where none does with those of equal trials, the confidence is raised until one does. Where
        questions of few and of many trials need different ones, the range of these questions is
        that of the population too.
    trials : int
        Largest number of trials of the questions that the ranges use.
    """

    lower: Array
    upper: Array
    fits: bool
    trials: int


def metric_ranges(
    successes: ArrayLike,
    trials: ArrayLike,
    repeats: ArrayLike,
    curves: Sequence[Curve],
    confidence: float,
    units: ArrayLike | None = None,
) -> MetricRanges:
    """Return the range of each metric over all difficulty distributions that fit the counts.

    Parameters
    ----------
    successes, trials, repeats : array_like, shape (states,)
        Distinct counts, and the number of questions with each.
    curves : sequence of callable
        Latent value ``g(p)`` of each metric.
    confidence : float
        With at least this probability over the trials (questions) or over trials and questions
        (population) all ranges hold the value of their metric.
    units : array_like of int, shape (states,), optional
        Sampling units, as `count_bounds` takes them, where `repeats` weigh single questions.

    Returns
    -------
    MetricRanges

    Notes
    -----
    For the population all questions come from one difficulty distribution, whatever their number
    of trials. For these questions that distribution is the one of their own difficulties, and
    questions with other numbers of trials have another. With equal trials both ranges are the same
    numbers: bounds for sums of unequal indicators are those for equal ones.

    Examples
    --------
    One trial a question, half of a million solved: pass@2 is between p = 1/2 for all (3/4) and
    all or none (1/2).

    >>> from bayesatk.metrics.families import FAMILIES
    >>> pass_2 = FAMILIES["pass@"].at(2).latent
    >>> ranges = metric_ranges([0, 1], [1, 1], [500_000, 500_000], [pass_2], 0.95)
    >>> ranges.lower.round(2).tolist(), ranges.upper.round(2).tolist()
    ([[0.5, 0.5]], [[0.75, 0.75]])
    """
    c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
    m = np.asarray(repeats, float)
    kept = (n > 0) & (m > 0.0)
    c, n, m = c[kept], n[kept], m[kept]
    units = None if units is None else np.asarray(units, np.int64)[kept]
    for step in _RELATIVE_ERROR_RATES:
        bounds = count_bounds(c, n, m, 1.0 - step * (1.0 - confidence), units)
        programmes = [_Programme([bound]) for bound in bounds]
        if not bounds or not all(programme.feasible for programme in programmes):
            continue
        joint_programme = _Programme(bounds) if len(bounds) > 1 else programmes[0]
        shares = np.array([bound.share for bound in bounds])
        ranges = np.array(
            [_both_targets(programmes, joint_programme, shares, curve) for curve in curves]
        )
        max_trials = max(bound.trials for bound in bounds)
        fits = step == 1.0 and joint_programme.feasible
        return MetricRanges(ranges[..., 0], ranges[..., 1], fits, max_trials)
    nothing = np.zeros((len(curves), 2))
    return MetricRanges(nothing, nothing + 1.0, len(n) == 0, int(n.max(initial=0)))


@lru_cache(maxsize=16)
def _grid(trials: int) -> Array:
    """Grid of p: even in arcsin(sqrt(p)), denser around each threshold and towards both ends."""
    angles = np.linspace(0.0, 0.5 * np.pi, 97)
    if trials > 2 * EVEN:
        at = np.arcsin(np.sqrt((np.array(thresholds(trials)) + 1.0) / trials))
        sd = 0.5 / np.sqrt(trials)
        angles = np.concatenate([angles, at - sd, at + sd]).clip(0.0, 0.5 * np.pi)
    ends = np.logspace(-_SMALLEST_P_DIGITS, -1.5, 3 * (_SMALLEST_P_DIGITS - 1))
    return np.unique(np.concatenate([[0.0, 1.0], np.sin(angles) ** 2, ends, 1.0 - ends]))


def _both_targets(
    alone: "list[_Programme]", together: "_Programme", shares: Array, curve: Curve
) -> Array:
    """Range of a metric; (target, end). Questions without bounds may have any value in [0, 1]."""
    if len(alone) == 1:
        return np.array([together.range_of(curve)] * 2)
    ranges = np.array([programme.range_of(curve) for programme in alone])
    questions = shares @ ranges + [0.0, 1.0 - shares.sum()]
    return np.array([questions, together.range_of(curve) if together.feasible else questions])


class _Programme:
    """Linear programme of some bounds, on a grid of p that is refined where it is too coarse."""

    def __init__(self, bounds: Sequence[CountBounds]) -> None:
        self._trials = [bound.trials for bound in bounds]
        self._lower = np.concatenate([bound.lower for bound in bounds])
        self._upper = np.concatenate([bound.upper for bound in bounds])
        self._p = np.unique(np.concatenate([_grid(n) for n in self._trials]))
        self._sets = self._probabilities(self._p)

    def _probabilities(self, p: Array) -> Array:
        return np.concatenate([set_probabilities(n, p) for n in self._trials])

    @cached_property
    def feasible(self) -> bool:
        """Whether a distribution satisfies the bounds: the least violation is within tolerance."""
        for _ in range(_GRIDS_MAX):
            solved = self._solved(np.zeros(len(self._p)), elastic=True)
            if solved.status != 0:
                return False
            if solved.fun < _VIOLATION_TOL:
                return True
            value, missed = self._certified(np.zeros_like, -solved.eqlin.marginals[:-1])
            if value < -_VIOLATION_TOL or not len(missed):
                return False
            self._refine(missed)
        return False

    def range_of(self, curve: Curve) -> tuple[float, float]:
        """Smallest and largest expectation of a curve with values in [0, 1]."""
        upper = self._largest(curve)
        lower = -self._largest(lambda p: -curve(p))
        low, high = np.clip([lower, upper], 0.0, 1.0) + 0.0  # no negative zero
        return float(low), float(high)

    def _largest(self, curve: Curve) -> float:
        """Smallest certified upper bound of the expectation of a curve."""
        best = np.inf
        for _ in range(_GRIDS_MAX):
            solved = self._solved(curve(self._p))
            if solved.status != 0:
                break
            value, missed = self._certified(curve, -solved.eqlin.marginals[:-1])
            best = min(best, value)
            if value + solved.fun < _EXCESS_WIDTH_MAX or not len(missed):
                break
            self._refine(missed)
        return best

    def _solved(self, values: Array, elastic: bool = False) -> Any:
        """Find the probabilities of the grid points that maximise the mean of values.

        The probabilities of the sets of counts are bounded variables; `elastic` adds slack
        variables for their violation, each with a cost of one.
        """
        size, sets = len(values), len(self._lower)
        slack = np.concatenate([np.eye(sets), -np.eye(sets)], axis=1)[:, : 2 * sets * elastic]
        slacks = slack.shape[1]
        constraints = np.zeros((sets + 1, size + sets + slacks))
        constraints[:-1] = np.concatenate([self._sets, -np.eye(sets), slack], axis=1)
        constraints[-1, :size] = 1.0
        bounds = np.zeros((size + sets + slacks, 2))
        bounds[:, 1] = np.inf
        bounds[size : size + sets] = np.stack([self._lower, self._upper], axis=1)
        constraint_values = np.concatenate([np.zeros(sets), [1.0]])
        cost = np.concatenate([-values, np.zeros(sets), np.ones(slacks)])
        return linprog(
            cost,
            A_eq=constraints,
            b_eq=constraint_values,
            bounds=bounds.tolist(),
            method="highs",
            options={
                "presolve": False,  # takes longer than solving
                "primal_feasibility_tolerance": 1e-9,
                "dual_feasibility_tolerance": 1e-9,
            },
        )

    def _certified(self, curve: Curve, weights: Array) -> tuple[float, Array]:
        """Upper bound of an expectation by multipliers of the sets, and points above the grid's."""
        excess = curve(self._p) - weights @ self._sets
        second_difference = np.abs(np.diff(excess, 2))
        inner = excess[1:-1]
        peak = (
            (inner >= excess[:-2])
            & (inner >= excess[2:])
            & (inner + second_difference > excess.max())
        )
        peak_index = np.flatnonzero(peak) + 1
        share = np.linspace(0.0, 1.0, _POINTS_BETWEEN + 2)[1:-1]
        start = np.concatenate([peak_index - 1, peak_index])
        points = self._p[start, None] + share * (self._p[start + 1] - self._p[start])[:, None]
        excess_between = curve(points.ravel()) - weights @ self._probabilities(points.ravel())
        excess_between = excess_between.reshape(points.shape)
        highest = max(excess.max(), excess_between.max(initial=-np.inf))
        best = excess_between.argmax(axis=1)
        violating = points[np.arange(len(points)), best][excess_between.max(axis=1) > excess.max()]
        dual_value = np.maximum(weights * self._lower, weights * self._upper).sum()
        return float(highest + dual_value), violating

    def _refine(self, points: Array) -> None:
        p = np.concatenate([self._p, points])
        sets = np.concatenate([self._sets, self._probabilities(points)], axis=1)
        self._p, first = np.unique(p, return_index=True)
        self._sets = sets[:, first]
