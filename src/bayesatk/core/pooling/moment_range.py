"""What counts alone say of a metric: its range over all difficulty distributions that fit them.

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
_ERROR_RATES = (1.0, 1e-3, 1e-6)  # error rates that are tried, relative to the one asked for
_DIGITS = 8  # decimal digits of the smallest p of the grid: pass@k is resolved up to k of 10^7
_POINTS_BETWEEN = 7  # points looked at between two of the grid
_ROUNDS, _ENOUGH = 8, 1e-4  # refinements of the grid, and how much too wide a range may be
_TOLERANCE = 1e-8  # violation of the bounds that counts as none


@dataclass(frozen=True)
class MetricRanges:
    """Ranges of metrics.

    Parameters
    ----------
    lower, upper : ndarray, shape (metrics, 2)
        For the targets questions and population.
    fits : bool
        Whether one difficulty distribution agrees with all counts at the confidence asked for.
        Where none does with those of equal trials, the confidence is raised until one does. Where
        questions of few and of many trials need different ones, the range of these questions is
        that of the population too.
    trials : int
        The largest number of trials that the range rests on.
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
        Where `repeats` are weights of single questions: as of `count_bounds`.

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
    >>> found = metric_ranges([0, 1], [1, 1], [500_000, 500_000], [pass_2], 0.95)
    >>> found.lower.round(2).tolist(), found.upper.round(2).tolist()
    ([[0.5, 0.5]], [[0.75, 0.75]])
    """
    c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
    m = np.asarray(repeats, float)
    kept = (n > 0) & (m > 0.0)
    c, n, m = c[kept], n[kept], m[kept]
    units = None if units is None else np.asarray(units, np.int64)[kept]
    for step in _ERROR_RATES:
        bounds = count_bounds(c, n, m, 1.0 - step * (1.0 - confidence), units)
        alone = [_Programme([one]) for one in bounds]
        if not bounds or not all(one.feasible for one in alone):
            continue
        together = _Programme(bounds) if len(bounds) > 1 else alone[0]
        shares = np.array([one.share for one in bounds])
        found = np.array([_both_targets(alone, together, shares, curve) for curve in curves])
        most = max(one.trials for one in bounds)
        fits = step == 1.0 and together.feasible
        return MetricRanges(found[..., 0], found[..., 1], fits, most)
    nothing = np.zeros((len(curves), 2))
    return MetricRanges(nothing, nothing + 1.0, len(n) == 0, int(n.max(initial=0)))


@lru_cache(maxsize=16)
def _grid(trials: int) -> Array:
    """Success probabilities: even in arcsine of root p, about each threshold, and to both ends."""
    angles = np.linspace(0.0, 0.5 * np.pi, 97)
    if trials > 2 * EVEN:
        at = np.arcsin(np.sqrt((np.array(thresholds(trials)) + 1.0) / trials))
        sd = 0.5 / np.sqrt(trials)
        angles = np.concatenate([angles, at - sd, at + sd]).clip(0.0, 0.5 * np.pi)
    ends = np.logspace(-_DIGITS, -1.5, 3 * (_DIGITS - 1))
    return np.unique(np.concatenate([[0.0, 1.0], np.sin(angles) ** 2, ends, 1.0 - ends]))


def _both_targets(
    alone: "list[_Programme]", together: "_Programme", shares: Array, curve: Curve
) -> Array:
    """Range of a metric; (target, end). Questions that were left out may have any value."""
    if len(alone) == 1:
        return np.array([together.range_of(curve)] * 2)
    parts = np.array([one.range_of(curve) for one in alone])
    questions = shares @ parts + [0.0, 1.0 - shares.sum()]
    return np.array([questions, together.range_of(curve) if together.feasible else questions])


class _Programme:
    """The linear programme of some bounds, on a grid that grows where it is too coarse."""

    def __init__(self, bounds: Sequence[CountBounds]) -> None:
        self._trials = [one.trials for one in bounds]
        self._lower = np.concatenate([one.lower for one in bounds])
        self._upper = np.concatenate([one.upper for one in bounds])
        self._p = np.unique(np.concatenate([_grid(n) for n in self._trials]))
        self._sets = self._probabilities(self._p)

    def _probabilities(self, p: Array) -> Array:
        return np.concatenate([set_probabilities(n, p) for n in self._trials])

    @cached_property
    def feasible(self) -> bool:
        """Whether a distribution fits: the violation of the bounds can be brought to nothing."""
        for _ in range(_ROUNDS):
            solved = self._solved(np.zeros(len(self._p)), elastic=True)
            if solved.status != 0:
                return False
            if solved.fun < _TOLERANCE:
                return True
            value, missed = self._certified(np.zeros_like, -solved.eqlin.marginals[:-1])
            if value < -_TOLERANCE or not len(missed):
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
        """Upper bound of the expectation of a curve: the least that was found."""
        best = np.inf
        for _ in range(_ROUNDS):
            solved = self._solved(curve(self._p))
            if solved.status != 0:
                break
            value, missed = self._certified(curve, -solved.eqlin.marginals[:-1])
            best = min(best, value)
            if value + solved.fun < _ENOUGH or not len(missed):
                break
            self._refine(missed)
        return best

    def _solved(self, values: Array, elastic: bool = False) -> Any:
        """Solve for the shares of the points of the grid that make the mean of values largest.

        The probabilities of the sets are unknowns with bounds; `elastic` adds what they may be
        missed by, at a price of one.
        """
        size, sets = len(values), len(self._lower)
        missing = np.concatenate([np.eye(sets), -np.eye(sets)], axis=1)[:, : 2 * sets * elastic]
        more = missing.shape[1]
        equal = np.zeros((sets + 1, size + sets + more))
        equal[:-1] = np.concatenate([self._sets, -np.eye(sets), missing], axis=1)
        equal[-1, :size] = 1.0
        bounds = np.zeros((size + sets + more, 2))
        bounds[:, 1] = np.inf
        bounds[size : size + sets] = np.stack([self._lower, self._upper], axis=1)
        right = np.concatenate([np.zeros(sets), [1.0]])
        cost = np.concatenate([-values, np.zeros(sets), np.ones(more)])
        return linprog(
            cost, A_eq=equal, b_eq=right, bounds=bounds.tolist(), method="highs",
            options={
                "presolve": False,  # takes longer than solving
                "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9,
            },
        )  # fmt: skip

    def _certified(self, curve: Curve, weights: Array) -> tuple[float, Array]:
        """Bound by any weights of the sets, and the points between the grid's that decide it."""
        above = curve(self._p) - weights @ self._sets
        bend = np.abs(np.diff(above, 2))
        inner = above[1:-1]
        peak = (inner >= above[:-2]) & (inner >= above[2:]) & (inner + bend > above.max())
        at = np.flatnonzero(peak) + 1
        share = np.linspace(0.0, 1.0, _POINTS_BETWEEN + 2)[1:-1]
        start = np.concatenate([at - 1, at])
        points = self._p[start, None] + share * (self._p[start + 1] - self._p[start])[:, None]
        between = curve(points.ravel()) - weights @ self._probabilities(points.ravel())
        between = between.reshape(points.shape)
        highest = max(above.max(), between.max(initial=-np.inf))
        best = between.argmax(axis=1)
        found = points[np.arange(len(points)), best][between.max(axis=1) > above.max()]
        mixed = np.maximum(weights * self._lower, weights * self._upper).sum()
        return float(highest + mixed), found

    def _refine(self, points: Array) -> None:
        p = np.concatenate([self._p, points])
        sets = np.concatenate([self._sets, self._probabilities(points)], axis=1)
        self._p, first = np.unique(p, return_index=True)
        self._sets = sets[:, first]
