"""Distributions of means over questions: mixtures, over points, of Betas with matched moments."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr

from bayesatk.core.engine.distribution import Distribution, Empirical, constant, tabulated
from bayesatk.metrics.credit import Array

_COARSE, _FINE = 129, 513  # points of the table: to find where it is, and to read it
_PARTS = 150  # of a mixture: a hundred and fiftieth of its probability in each
_LEFT_OUT = 1e-7  # probability at either end that the table does without
_NORMAL = 1e4  # smaller Beta parameter from which a Beta is normal to 1e-3 of its sd
_SHAPE = 5e-3  # of the width of an interval: error of the shape given a point
_SPREAD = 1e-10  # of the range of a metric: sd from which a mean is a number


class PointMixture:
    """A number that is known, given each of some weighted points, by its mean and variance.

    Given a point it is Beta between the ends of its range. The stated error of quantiles is that of
    the points, three standard errors as of so many independent draws, as far as the number differs
    between points; and a two hundredth of the width of the central 95%, for the shape of the rest.

    Parameters
    ----------
    weight, mean, variance : ndarray, shape (points,)
    ends : (float, float)
        Range of the number.
    draws : float
        Independent draws that the points are worth.
    """

    settled = False

    def __init__(
        self, weight: Array, mean: Array, variance: Array, ends: tuple[float, float], draws: float
    ) -> None:
        low, high = ends
        span = max(high - low, 1e-300)
        between = float(weight @ (mean - weight @ mean) ** 2)
        within = float(weight @ variance)
        self._of_points = np.sqrt(between / max(between + within, 1e-300))
        self._of_shape = _SHAPE * np.sqrt(within / max(between + within, 1e-300))
        weight, mean, variance = _merged(weight, mean, variance)
        self._weight, self._low, self._span, self._draws = weight, low, span, draws
        self._mean = np.clip((mean - low) / span, 0.0, 1.0)
        most = self._mean * (1.0 - self._mean)
        self._variance = np.minimum(variance / span**2, 0.999 * most)
        self._table = self._tabulated()

    def _tabulated(self) -> Distribution:
        """Table of the distribution function, dense where it rises."""
        sd = np.sqrt(self._variance)
        low, high = float((self._mean - 8 * sd).min()), float((self._mean + 8 * sd).max())
        if high - low < _SPREAD:
            return constant(self._low + self._span * float(self._weight @ self._mean))
        place = np.linspace(max(low, 0.0), min(high, 1.0), _COARSE)
        for _ in range(3):
            upto = self._upto(place)
            inside = np.flatnonzero((upto > _LEFT_OUT) & (upto < 1.0 - _LEFT_OUT))
            first, last = (
                (max(inside[0] - 1, 0), inside[-1] + 1) if len(inside) else (0, len(place) - 1)
            )
            ends = place[first], place[min(last, len(place) - 1)]
            place = np.linspace(*ends, _COARSE)
        place = np.linspace(*ends, _FINE)
        upto = self._upto(place)
        x = self._low + self._span * place
        return tabulated(x, upto, (self._low, self._low + self._span))

    def _upto(self, place: Array) -> Array:
        """Probability of at most so much, on the unit interval."""
        spread = np.maximum(self._variance, _SPREAD**2)
        total = self._mean * (1.0 - self._mean) / spread - 1.0
        a, b = self._mean * total, (1.0 - self._mean) * total
        narrow = (np.minimum(a, b) > _NORMAL) | (self._variance <= _SPREAD**2) | (total <= 0.0)
        sums = np.zeros(len(place))
        if narrow.any():
            z = (place - self._mean[narrow, None]) / np.sqrt(spread[narrow, None])
            sums += self._weight[narrow] @ ndtr(z)
        if not narrow.all():
            wide = ~narrow
            inside = np.clip(place, 0.0, 1.0)
            sums += self._weight[wide] @ betainc(a[wide, None], b[wide, None], inside)
        return sums

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        return self._table.cdf(x)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return self._table.quantile(probability)

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles."""
        levels = np.asarray(probability, float)
        spread = 3.0 * np.sqrt(levels * (1.0 - levels) / max(self._draws, 1.0))
        near = [self.quantile(np.clip(levels + sign * spread, 0.0, 1.0)) for sign in (-1.0, 1.0)]
        value = self.quantile(levels)
        moved = np.max([np.abs(end - value) for end in near], axis=0)
        width = float(np.ptp(self.quantile([0.025, 0.975])))
        error = self._of_points * moved + self._of_shape * width
        return np.asarray(error + np.spacing(np.abs(value)))


def _merged(weight: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Return fewer parts of a mixture: neighbours with about the same mean are one."""
    if len(weight) <= _PARTS:
        return weight, mean, variance
    order = np.argsort(mean, kind="stable")
    upto = np.cumsum(weight[order])
    label = np.minimum((upto / upto[-1] * _PARTS).astype(np.intp), _PARTS - 1)
    _, label = np.unique(label, return_inverse=True)
    total = np.bincount(label, weight[order])
    total = np.maximum(total, 1e-300)
    centre = np.bincount(label, (weight * mean)[order]) / total
    gap = mean[order] - centre[label]
    spread = np.bincount(label, weight[order] * (variance[order] + gap**2)) / total
    return total / total.sum(), centre, spread


def known_at_points(
    weight: Array, mean: Array, variance: Array, ends: tuple[float, float], draws: float
) -> PointMixture | Empirical:
    """Return the distribution of a number by its moments at weighted points."""
    if not variance.any():
        return Empirical(mean, weight)
    return PointMixture(weight, mean, variance, ends, draws)
