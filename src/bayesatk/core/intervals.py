"""Credible intervals of anything with quantiles, and the numerical error of their ends."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from bayesatk.core.credit import Array

_SEARCHES = 3  # for an interval whose ends move as its distribution is sharpened


class HasQuantile(Protocol):
    """Anything with quantiles."""

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        ...


class HasError(HasQuantile, Protocol):
    """Quantiles with a stated numerical error."""

    @property
    def error(self) -> float:
        """Absolute error of quantiles."""
        ...


@runtime_checkable
class HasEdges(HasError, Protocol):
    """A distribution that can be made more exact where it matters, and knows how exact it is."""

    @property
    def coarser(self) -> HasQuantile:
        """What half the effort would have given."""
        ...

    def floor(self, x: ArrayLike) -> float:
        """Error of quantiles near ``x`` that half the effort does not show."""
        ...

    def sharpened(self, levels: ArrayLike) -> "HasEdges":
        """Return the distribution with its quantiles at some levels as exact as they get."""
        ...


def interval(distribution: HasQuantile, probability: float, kind: str) -> tuple[float, float]:
    """Equal-tailed (``"eti"``) or highest-density (``"hdi"``) interval.

    Examples
    --------
    >>> from bayesatk.core.distribution import Distribution
    >>> uniform = Distribution(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2), 0.0, "beta")
    >>> [round(end, 9) for end in interval(uniform, 0.9, "eti")]
    [0.05, 0.95]
    """
    if isinstance(distribution, HasEdges):
        return measured_interval(distribution, probability, kind)[0]
    low, high = distribution.quantile(_levels(distribution, probability, kind))
    return float(low), float(high)


def measured_interval(
    distribution: HasError, probability: float, kind: str
) -> tuple[tuple[float, float], float]:
    """Interval, and the numerical error of its ends.

    That is the stated error of quantiles; where the density has edges, the error of these ends:
    what half the effort would have changed, on top of what it would not have shown.

    Examples
    --------
    >>> from bayesatk.core.distribution import Distribution
    >>> uniform = Distribution(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2), 1e-9, "beta")
    >>> measured_interval(uniform, 0.5, "eti")[1]
    1e-09
    """
    if not isinstance(distribution, HasEdges):
        return interval(distribution, probability, kind), distribution.error
    levels = _levels(distribution, probability, kind)
    for _ in range(_SEARCHES):
        sharp = distribution.sharpened(levels)
        if sharp is distribution:
            break
        distribution, levels = sharp, _levels(sharp, probability, kind)
    coarser = distribution.coarser
    ends = distribution.quantile(levels)
    gap = np.abs(ends - coarser.quantile(_levels(coarser, probability, kind))).max()
    return (float(ends[0]), float(ends[1])), distribution.floor(ends) + float(gap)


def _levels(distribution: HasQuantile, probability: float, kind: str) -> Array:
    """Probabilities below the ends of an interval; the shortest one's by search."""
    tail = 1.0 - probability
    if kind == "eti":
        return np.array([0.5 * tail, 1.0 - 0.5 * tail])

    def width(start: ArrayLike) -> Array:
        start = np.asarray(start)
        return distribution.quantile(start + probability) - distribution.quantile(start)

    starts = np.linspace(0.0, tail, 101)
    widths = width(starts)
    best = int(np.argmin(widths))
    around = (starts[max(best - 1, 0)], starts[min(best + 1, 100)])
    found = minimize_scalar(
        lambda p: float(width(p)), bounds=around, method="bounded", options={"xatol": 1e-9}
    )
    start = float(found.x) if found.fun < widths[best] else float(starts[best])
    return np.array([start, start + probability])


class Empirical:
    """Quantiles of draws, with their Monte Carlo error."""

    def __init__(self, values: Array) -> None:
        self._values = np.sort(values)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded by a share ``1 - probability`` of the draws."""
        return np.asarray(np.quantile(self._values, np.asarray(probability)))

    def quantile_error(self, tail: float) -> float:
        """Larger standard error of the two tail quantiles, from binomial order statistics."""
        width = np.sqrt(tail * (1.0 - tail) / len(self._values))
        low, high = np.clip([tail - width, tail + width], 0.0, 1.0)
        lower = self.quantile(high) - self.quantile(low)
        upper = self.quantile(1.0 - low) - self.quantile(1.0 - high)
        return float(max(lower, upper) / 2.0)
