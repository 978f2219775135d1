"""Distributions of numbers that are known at weighted points by three cumulants.

Given a point a mean over questions is a sum of independent terms. It is taken to be a gamma with
its mean, variance and third cumulant, shifted, and turned round where the third cumulant is
negative: exact for a normal, and in the limit for many questions that are nearly all solved, or
nearly none, where a Beta is not (Pearson's type III).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammainc, gammaincc, gammaincinv, ndtr, ndtri

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.engine.distribution import Distribution, Empirical, constant, tabulated

_PARTS, _OUTER = 100, 4.5  # of a mixture to either side, even in normal quantiles up to that one
_SKEW, _MOST_SKEW = 0.25, 20.0  # skewness at which that error doubles, and that counts at most
_POINTS = 120  # of the first table, half of the second, and a quarter of the last
_FARTHEST = 36.0  # of a logit: the range of double precision
_LEFT_OUT = 1e-7  # probability at either end that the table does without
_NORMAL = 1e-3  # skewness below which quantiles are normal, to 1e-4 of an sd
_GENTLE = 0.4  # skewness below which the cube root of a gamma is normal, to 1e-4 of its probability
_SHAPE, _TABLE = 5e-3, 1e-3  # of the width of an interval: error of the shape given a point, and
# of a table of so many parts
_CONSTANT = 1e-10  # of the range of a metric: sd from which a mean is a number


class PointMixture:
    """A number that is known, given each of some weighted points, by its first cumulants.

    The stated error of quantiles is that of the points, three standard errors as of so many
    independent draws, as far as the number differs between points; and for the shape of the rest a
    two hundredth of the width of the central 95%, more where it is skew.

    Parameters
    ----------
    weight, mean, variance, third : ndarray, shape (points,)
    ends : (float, float)
        Range of the number.
    draws : float
        Independent draws that the points are worth.
    """

    settled = False

    def __init__(
        self, weight: Array, mean: Array, variance: Array, third: Array,
        ends: tuple[float, float], draws: float,
    ) -> None:  # fmt: skip
        between = float(weight @ (mean - weight @ mean) ** 2)
        within = float(weight @ variance)
        self._of_points = np.sqrt(between / max(between + within, 1e-300))
        inside = within / max(between + within, 1e-300)
        squares = float(weight @ skewness(variance, third).clip(-_MOST_SKEW, _MOST_SKEW) ** 2)
        rough = min(_SHAPE * (1.0 + inside * squares / _SKEW**2), 1.0)
        self._of_shape = _TABLE + rough * np.sqrt(inside)
        self._draws = draws
        self._parts = _merged(weight, mean, variance, third)
        span = max(ends[1] - ends[0], 1e-300)
        if np.sqrt(between + within) < _CONSTANT * span:
            self._table = constant(float(weight @ mean))
        else:
            self._table = self._tabulated(ends)

    def _tabulated(self, ends: tuple[float, float]) -> Distribution:
        """Table of the distribution function, dense where it rises."""
        _, mean, variance, third = self._parts
        sd = np.sqrt(variance)
        reach = (8.0 + 16.0 * np.abs(skewness(variance, third)).clip(max=4.0)) * sd
        low, high = (
            max(float((mean - reach).min()), ends[0]),
            min(float((mean + reach).max()), ends[1]),
        )
        # Evenly between the ends, and on the logit scale: nearly all may be next to an end.
        logits = np.linspace(-_FARTHEST, _FARTHEST, _POINTS)
        place = np.unique(np.concatenate([
            np.linspace(low, high, _POINTS), low + (high - low) * expit(logits)
        ]))  # fmt: skip
        for points in (_POINTS, 2 * _POINTS):
            cdf = np.maximum.accumulate(self._cdf(place))
            inside = np.flatnonzero((cdf > _LEFT_OUT) & (cdf < 1.0 - _LEFT_OUT))
            first, last = (
                (inside[0], inside[-1]) if len(inside) else 2 * (np.searchsorted(cdf, 0.5),)
            )
            first, last = max(first - 1, 0), min(last + 1, len(place) - 1)
            rising = np.append(np.diff(cdf[first : last + 1]) > 0.0, True)
            even = np.interp(
                np.linspace(0.0, 1.0, points), cdf[first : last + 1][rising],
                place[first : last + 1][rising],
            )  # fmt: skip
            place = np.unique(
                np.concatenate([np.linspace(place[first], place[last], points), even])
            )
        return tabulated(place, self._cdf(place), ends)

    def _cdf(self, place: Array) -> Array:
        """Probability of at most so much, over all parts."""
        weight, mean, variance, third = self._parts
        return np.asarray(weight @ _below(place, mean[:, None], variance[:, None], third[:, None]))

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        return self._table.cdf(x)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return self._table.quantile(probability)

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles."""
        levels = np.asarray(probability, float)
        width = float(np.ptp(self.quantile([0.025, 0.975])))
        moved = _moved(self, levels, self._draws)
        return np.asarray(self._of_points * moved + self._of_shape * width)


class KnownAtPoints(Empirical):
    """A number that is known at weighted points, worth so many independent draws."""

    def __init__(self, values: Array, weight: Array, draws: float) -> None:
        super().__init__(values, weight)
        self._draws = draws

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles: three standard errors, and a thousandth of the width."""
        width = float(np.ptp(self.quantile([0.025, 0.975])))
        moved = _moved(self, np.asarray(probability, float), self._draws)
        return np.asarray(_TABLE * width + moved)


def known_at_points(
    weight: Array, mean: Array, variance: Array, third: Array, ends: tuple[float, float],
    draws: float,
) -> PointMixture | KnownAtPoints:  # fmt: skip
    """Return the distribution of a number by its first cumulants at weighted points."""
    if not variance.any():
        return KnownAtPoints(mean, weight, draws)
    return PointMixture(weight, mean, variance, third, ends, draws)


def _moved(quantity: PointMixture | Empirical, levels: Array, draws: float) -> Array:
    """How far quantiles move with three standard errors of their levels."""
    spread = 3.0 * np.sqrt(levels * (1.0 - levels) / max(draws, 1.0))
    near = [quantity.quantile(np.clip(levels + sign * spread, 0.0, 1.0)) for sign in (-1.0, 1.0)]
    value = quantity.quantile(levels)
    moved = np.max([np.abs(end - value) for end in near], axis=0)
    return np.asarray(moved + np.spacing(np.abs(value)))


def skewness(variance: Array, third: Array) -> Array:
    """Skewness, of what has a variance."""
    scale = np.maximum(variance, 1e-200) ** 1.5
    return np.asarray(np.where(variance > 1e-200, third / scale, 0.0))


def _below(x: Array, mean: Array, variance: Array, third: Array) -> Array:
    """Probability of at most x under the matched gammas."""
    sd, skew = np.sqrt(np.maximum(variance, 1e-300)), skewness(variance, third)
    z = (x - mean) / sd
    skew, gentle = np.ravel(skew), np.ravel(np.abs(skew)) < _GENTLE
    below = np.empty(z.shape)
    below[gentle] = ndtr(_cube_root(z[gentle], skew[gentle, None]))
    size = np.abs(skew[~gentle, None])
    shape, right = 4.0 / size**2, skew[~gentle, None] > 0.0
    lifted = np.maximum(shape + np.where(right, 1.0, -1.0) * z[~gentle] * (2.0 / size), 0.0)
    below[~gentle] = np.where(right, gammainc(shape, lifted), gammaincc(shape, lifted))
    return below


def _cube_root(z: Array, skew: Array) -> Array:
    """Return the normal variate of a standardised gamma (Wilson and Hilferty 1931, PNAS 17)."""
    small = np.where(np.abs(skew) < 1e-6, 1e-6, skew)
    base = np.cbrt(np.maximum(1.0 + 0.5 * small * z, 0.0))
    return np.asarray((base - 1.0) * (6.0 / small) + small / 6.0)


def matched_quantiles(probability: Array, mean: Array, variance: Array, third: Array) -> Array:
    """Quantiles of the matched gammas, elementwise.

    Examples
    --------
    An exponential distribution has variance 1 and third cumulant 2:

    >>> values = matched_quantiles(np.array([0.5]), np.ones(1), np.ones(1), np.full(1, 2.0))
    >>> values.round(6).tolist()  # log(2)
    [0.693147]
    """
    sd, skew = np.sqrt(np.maximum(variance, 0.0)), skewness(variance, third)
    size = np.maximum(np.abs(skew), _NORMAL)
    shape = 4.0 / size**2
    level = np.where(skew > 0.0, probability, 1.0 - probability)
    turned = np.sign(skew) * (gammaincinv(shape, level) - shape) * (0.5 * size)
    z = np.where(np.abs(skew) <= _NORMAL, ndtri(probability), turned)
    return np.asarray(mean + sd * z)


def _merged(
    weight: Array, mean: Array, variance: Array, third: Array
) -> tuple[Array, Array, Array, Array]:
    """Return fewer parts of a mixture: neighbours with about the same mean are one."""
    order = np.argsort(mean, kind="stable")
    weight, mean, variance, third = (x[order] for x in (weight, mean, variance, third))
    outer = ndtr(-_OUTER)
    middle = np.clip((np.cumsum(weight) - 0.5 * weight) / weight.sum(), outer, 1.0 - outer)
    label: Indices = (ndtri(middle) * (_PARTS / _OUTER)).astype(np.intp)
    _, label = np.unique(label, return_inverse=True)
    total = np.maximum(np.bincount(label, weight), 1e-300)

    def averaged(values: Array) -> Array:
        return np.asarray(np.bincount(label, weight * values) / total)

    centre = averaged(mean)
    gap = mean - centre[label]
    spread = averaged(variance + gap**2)
    return total / total.sum(), centre, spread, averaged(third + 3.0 * variance * gap + gap**3)
