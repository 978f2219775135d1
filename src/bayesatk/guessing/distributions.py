"""Frozen discrete distributions in scipy's vocabulary: Poisson-binomial, and the largest of t."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.chances import check_times, success_probabilities
from bayesatk.guessing.bernoulli_sums import reach
from bayesatk.guessing.order_statistic import CorrelatedLargestLaw, CountLaw, LargestLaw
from bayesatk.guessing.poisson_binomial import PoissonBinomialLaw

Array = NDArray[np.float64]
_NEARLY_ONE = 1.0 - 1e-6  # largest correlation below 1 that can be integrated out
_LOG_LOST = 41.0  # moments leave out a probability below exp(-41) per side


class Immutable:
    """An object whose attributes are set once, by its constructor."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}.")

    def _set(self, **attributes: object) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class CountDistribution(Immutable):
    """What every frozen count distribution here can do.

    Arguments and results follow `scipy.stats` frozen discrete distributions: arrays broadcast, a
    count outside the support has mass 0, a non-integer one is rounded down by ``cdf`` and ``sf``.
    """

    _law: CountLaw
    _low: int
    _high: int

    def _bulk(self) -> tuple[int, int]:
        """Return counts outside which nothing of weight lies."""
        raise NotImplementedError

    def _of_counts(
        self, x: ArrayLike, function: Callable[[NDArray[np.int64]], Array], shift: int = 0
    ) -> Array:
        x = np.asarray(x, float)
        inside = np.clip(np.floor(np.nan_to_num(x, nan=0.0)), self._low - 2, self._high + 2)
        values = function(inside.astype(np.int64).ravel() + shift).reshape(x.shape)
        return np.where(np.isnan(x), np.nan, values)[()]

    def logpmf(self, k: ArrayLike) -> Array:
        """Log of the probability of exactly k."""
        k = np.asarray(k, float)
        found = self._of_counts(k, self._law.log_mass)
        return np.where(np.isnan(k) | (k == np.floor(k)), found, -np.inf)[()]

    def pmf(self, k: ArrayLike) -> Array:
        """Probability of exactly k."""
        return np.exp(self.logpmf(k))

    def logcdf(self, k: ArrayLike) -> Array:
        """Log of the probability of at most k."""
        return self._of_counts(k, self._law.log_lower)

    def cdf(self, k: ArrayLike) -> Array:
        """Probability of at most k."""
        return np.exp(self.logcdf(k))

    def logsf(self, k: ArrayLike) -> Array:
        """Log of the probability of more than k."""
        return self._of_counts(k, self._law.log_upper, 1)

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
            there = reached(probe)
            high = np.where(there, np.minimum(high, probe), high)
            low = np.where(there, low, np.maximum(low, probe + 1.0))
        while (open_ := valid & (low < high)).any():
            middle = np.floor(0.5 * (low + high))
            there = reached(middle)
            high = np.where(open_ & there, middle, high)
            low = np.where(open_ & ~there, middle + 1.0, low)
        found = np.where(q == certain, self._low - 1.0, np.minimum(low, self._high))
        found = np.where(q == 1.0 - certain, self._high, found)
        return np.where(valid, found, np.nan)[()]

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
        exceeds = np.exp(self._law.log_upper(counts[1:]))
        mean = first + float(exceeds.sum(dtype=np.longdouble))
        mass = np.exp(self._law.log_mass(counts))
        return mean, float(mass @ (counts - mean) ** 2)


class PoissonBinomial(CountDistribution):
    """Number of successes of independent trials, each with its own probability.

    Parameters
    ----------
    p : array_like, float or mapping
        One probability per trial; a float with ``n``; or {number of labels: number of examples}
        for uniform guessing. 0 and 1 are allowed.
    n : int, optional
        Number of trials; required with a float, checked otherwise.

    Raises
    ------
    ValueError
        For a probability outside [0, 1] or NaN, ``n`` below 1, or lengths that do not match.

    Notes
    -----
    Tails keep relative accuracy (1e-12) down to the smallest double and, as logarithms, below it.
    Divide and conquer for the body, exponential tilting for tails.

    Examples
    --------
    >>> two = PoissonBinomial([0.5, 0.25])
    >>> two.pmf([0, 1, 2]).round(12).tolist(), two.mean(), two.var()
    ([0.375, 0.5, 0.125], 0.75, 0.4375)
    >>> round(float(PoissonBinomial(0.5, 1000).logsf(999) / np.log(2)), 9)
    -1000.0
    """

    _law: PoissonBinomialLaw

    def __init__(self, p: object, n: int | None = None) -> None:
        values = success_probabilities(n, p)
        law = PoissonBinomialLaw(values)
        self._set(_law=law, _low=law.low, _high=law.high, n=law.size)

    def __repr__(self) -> str:
        return f"PoissonBinomial(n={self.n}, mean={self.mean():.6g})"

    n: int

    def pmf(self, k: ArrayLike) -> Array:
        """Probability of exactly k."""
        k = np.asarray(k, float)
        found = self._of_counts(k, self._law.mass)
        return np.where(np.isnan(k) | (k == np.floor(k)), found, 0.0)[()]

    def mean(self) -> float:
        """Mean of the count: the sum of the probabilities."""
        return self._law.mean

    def var(self) -> float:
        """Variance of the count: the sum of p (1 - p)."""
        return self._law.variance

    def _bulk(self) -> tuple[int, int]:
        return _bulk([self._law], 1.0)

    def largest_of(self, t: float, *, correlation: float = 0.0) -> "LargestPoissonBinomial":
        """Return the distribution of the largest of t such counts.

        Parameters
        ----------
        t : float
            Number of counts, 1 or more.
        correlation : float
            Of the normal scores of any two counts, in [0, 1]: a one-factor model that leaves every
            count its own distribution. 0 is independence.
        """
        return LargestPoissonBinomial([self], t, correlation=correlation)


class LargestPoissonBinomial(CountDistribution):
    """Largest of several Poisson-binomial counts.

    Parameters
    ----------
    components : sequence of PoissonBinomial
        Distributions of the counts: one for t alike, or systems of known skill each with its own.
    t : float or sequence of float
        How many counts follow each component; real numbers >= 1 (up to 1e12 and beyond).
    correlation : float
        One-factor correlation of the counts' normal scores, at most 1 - 1e-6, or 1; needs a single
        component.

    Examples
    --------
    >>> best = PoissonBinomial(0.5, 100).largest_of(10)
    >>> round(best.mean() / 100, 10)
    0.5767798067
    >>> skilled = LargestPoissonBinomial([PoissonBinomial(0.6, 50), PoissonBinomial(0.5, 50)])
    >>> round(skilled.mean() / 50, 4)
    0.6081
    """

    def __init__(
        self,
        components: Sequence[PoissonBinomial],
        t: float | Sequence[float] = 1.0,
        *,
        correlation: float = 0.0,
    ) -> None:
        if not isinstance(components, Sequence) or not all(
            isinstance(one, PoissonBinomial) for one in components
        ):
            raise ValueError(
                f"components must be a sequence of PoissonBinomial; got {components!r}. For t "
                "alike use PoissonBinomial(...).largest_of(t)."
            )
        if not components:
            raise ValueError("components must hold at least one PoissonBinomial; got none.")
        given = list(t) if isinstance(t, Sequence | np.ndarray) else [t] * len(components)
        if len(given) != len(components):
            raise ValueError(
                f"t must be one number, or one for each of {len(components)} components; got "
                f"{len(given)}."
            )
        times = [check_times(one) for one in given]
        laws = [component._law for component in components]
        self._set(
            _law=_largest_law(laws, times, correlation),
            _laws=laws,
            _total=float(sum(times)),
            _low=max(law.low for law in laws),
            _high=max(law.high for law in laws),
        )

    _laws: list[PoissonBinomialLaw]
    _total: float

    def _bulk(self) -> tuple[int, int]:
        return _bulk(self._laws, self._total)


def _largest_law(
    laws: Sequence[PoissonBinomialLaw], times: Sequence[float], correlation: float
) -> CountLaw:
    if not isinstance(correlation, int | float | np.number) or not (
        0.0 <= correlation <= _NEARLY_ONE or correlation == 1.0
    ):
        raise ValueError(
            f"correlation must lie between 0 (independent) and {_NEARLY_ONE}, or be 1 (identical); "
            f"got {correlation!r}."
        )
    if correlation == 0.0:
        return LargestLaw(laws, times)
    if len(laws) > 1:
        raise ValueError(
            f"correlation needs a single component; got {len(laws)}. Use correlation=0, or one "
            "PoissonBinomial with t."
        )
    if correlation == 1.0:
        return LargestLaw(laws, [1.0])
    return CorrelatedLargestLaw(laws[0], times[0], correlation)


def _bulk(laws: Sequence[PoissonBinomialLaw], total: float) -> tuple[int, int]:
    """Return counts outside which the largest lies with probability below 1e-17."""
    lost = _LOG_LOST + float(np.log(total))
    low = max(int(law.mean - reach(law.variance, _LOG_LOST)) for law in laws)
    high = max(int(np.ceil(law.mean + reach(law.variance, lost))) for law in laws)
    least, most = max(law.low for law in laws), max(law.high for law in laws)
    return max(low, least), min(high, most)
