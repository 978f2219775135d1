"""Everything that a frozen count distribution offers, from its two log tails and log mass."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.guessing._tails import Counts
from bayesatk.metrics.credit import Array


class Immutable:
    """An object whose attributes are set once, by its constructor."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}.")

    def _set(self, **attributes: object) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class CountDistribution(Immutable, ABC):
    """What every frozen count distribution here can do.

    Arguments and results follow `scipy.stats` frozen discrete distributions: arrays broadcast, a
    count outside the support has mass 0, a non-integer one is rounded down by ``cdf`` and ``sf``.
    """

    _low: int
    _high: int

    @abstractmethod
    def _log_mass(self, x: Counts) -> Array:
        """``log P(X = x)``, of any whole numbers."""

    @abstractmethod
    def _log_lower(self, x: Counts) -> Array:
        """``log P(X <= x)``."""

    @abstractmethod
    def _log_upper(self, x: Counts) -> Array:
        """``log P(X >= x)``."""

    @abstractmethod
    def _bulk(self) -> tuple[int, int]:
        """Return counts outside which lies a probability below 1e-17."""

    def _of_counts(
        self, x: ArrayLike, function: Callable[[Counts], Array], between: float | None = None
    ) -> Array:
        """Apply a function of whole numbers; `between` is its value elsewhere, if not rounded."""
        x = np.asarray(x, float)
        rounded = np.floor(np.clip(np.nan_to_num(x, nan=0.0), self._low - 2.0, self._high + 2.0))
        values = function(rounded.astype(np.int64).ravel()).reshape(x.shape)
        if between is not None:
            values = np.where(x == np.floor(x), values, between)
        return np.where(np.isnan(x), np.nan, values)[()]

    def logpmf(self, k: ArrayLike) -> Array:
        """Log of the probability of exactly k."""
        return self._of_counts(k, self._log_mass, between=-np.inf)

    def pmf(self, k: ArrayLike) -> Array:
        """Probability of exactly k."""
        return np.exp(self.logpmf(k))

    def logcdf(self, k: ArrayLike) -> Array:
        """Log of the probability of at most k."""
        return self._of_counts(k, self._log_lower)

    def cdf(self, k: ArrayLike) -> Array:
        """Probability of at most k."""
        return np.exp(self.logcdf(k))

    def logsf(self, k: ArrayLike) -> Array:
        """Log of the probability of more than k."""
        return self._of_counts(k, lambda x: self._log_upper(x + 1))

    def sf(self, k: ArrayLike) -> Array:
        """Probability of more than k."""
        return np.exp(self.logsf(k))

    def ppf(self, q: ArrayLike) -> Array:
        """Smallest k with ``cdf(k) >= q``; the support's lower end minus one for ``q = 0``."""
        level = np.asarray(q, float)
        return self._smallest(level, lambda k: self.cdf(k) >= level, certain=0.0)

    def isf(self, q: ArrayLike) -> Array:
        """Smallest k with ``sf(k) <= q``; the support's lower end minus one for ``q = 1``."""
        level = np.asarray(q, float)
        return self._smallest(level, lambda k: self.sf(k) <= level, certain=1.0)

    def _smallest(
        self, q: Array, reached: Callable[[Array], NDArray[np.bool_]], certain: float
    ) -> Array:
        """Bisect for the smallest count at which a monotone function has reached its level."""
        low, high = np.full(q.shape, float(self._low)), np.full(q.shape, float(self._high))
        valid = (q >= 0.0) & (q <= 1.0)
        # Begin where the probability is: the far tails are only computed for those who ask.
        for end in self._bulk():
            probe = np.full(q.shape, float(end))
            is_reached = reached(probe)
            high = np.where(is_reached, np.minimum(high, probe), high)
            low = np.where(is_reached, low, np.maximum(low, probe + 1.0))
        while (open_ := valid & (low < high)).any():
            middle = np.floor(0.5 * (low + high))
            is_reached = reached(middle)
            high = np.where(open_ & is_reached, middle, high)
            low = np.where(open_ & ~is_reached, middle + 1.0, low)
        smallest = np.where(q == certain, self._low - 1.0, np.minimum(low, self._high))
        smallest = np.where(q == 1.0 - certain, self._high, smallest)
        return np.where(valid, smallest, np.nan)[()]

    def mean(self) -> float:
        """Mean of the count."""
        return self._moments[0]

    def var(self) -> float:
        """Variance of the count."""
        return self._moments[1]

    def std(self) -> float:
        """Square root of the variance."""
        return float(np.sqrt(self.var()))

    def median(self) -> float:
        """Smallest k with ``cdf(k) >= 1/2``."""
        return float(self.ppf(0.5))

    def support(self) -> tuple[int, int]:
        """Smallest and largest possible count."""
        return self._low, self._high

    def interval(self, confidence: ArrayLike) -> tuple[Array, Array]:
        """Return the ends of the equal-tailed interval of the given probability."""
        tail = 0.5 * (1.0 - np.asarray(confidence, float))
        return self.ppf(tail), self.isf(tail)

    def rvs(
        self, size: int | tuple[int, ...] | None = None, rng: RandomSource = None
    ) -> NDArray[np.int64]:
        """Independent random counts, by inversion."""
        generator, _ = resolve_rng(rng)
        u = generator.random(size)
        first, last = (int(end) for end in (self.ppf(np.min(u)), self.ppf(np.max(u))))
        first = max(first, self._low)
        table = self.cdf(np.arange(first, max(last, first)))
        return (first + np.searchsorted(table, u))[()]

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean as a sum of upper tails, variance as a sum around it."""
        first, last = self._bulk()
        counts = np.arange(first, last + 1)
        exceeds = np.exp(self._log_upper(counts[1:]))
        mean = first + float(exceeds.sum(dtype=np.longdouble))
        return mean, float(np.exp(self._log_mass(counts)) @ (counts - mean) ** 2)
