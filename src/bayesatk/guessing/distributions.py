"""Frozen discrete distributions in scipy's vocabulary: Poisson-binomial, and the largest of t."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import real_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.chances import check_times, success_probabilities
from bayesatk.guessing._tails import (
    OneFactorCopula,
    PoissonBinomialTails,
    bernstein_radius,
    log1mexp,
    log_max_cdf,
    log_max_pmf,
    log_max_sf,
)


class Immutable:
    """An object whose attributes are set once, by its constructor."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}.")

    def _set(self, **attributes: object) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class CountDistribution(Immutable, ABC):
    """A frozen distribution of a count, with the methods of `scipy.stats` discrete distributions.

    Arrays broadcast, a count outside the support has mass 0, a non-integer one is rounded down by
    ``cdf`` and ``sf``.
    """

    _low: int
    _high: int

    @abstractmethod
    def _log_mass(self, x: Ints) -> Array:
        """``log P(X = x)`` of whole numbers, in the support or not."""

    @abstractmethod
    def _log_lower(self, x: Ints) -> Array:
        """``log P(X <= x)``."""

    @abstractmethod
    def _log_upper(self, x: Ints) -> Array:
        """``log P(X >= x)``."""

    @abstractmethod
    def _bulk(self) -> tuple[int, int]:
        """Return counts outside which lies a probability below 1e-17."""

    def _of_counts(
        self, x: ArrayLike, function: Callable[[Ints], Array], between: float | None = None
    ) -> Array:
        """Apply a function to x rounded down; non-integers have the value `between`, if given."""
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

    def _smallest(self, q: Array, reached: Callable[[Array], Flags], certain: float) -> Array:
        """Bisect for the smallest count at which a monotone function has reached its level."""
        low, high = np.full(q.shape, float(self._low)), np.full(q.shape, float(self._high))
        valid = (q >= 0.0) & (q <= 1.0)
        # Begin with the bulk, so that far tails are computed only if the level lies in them.
        probes = [np.full(q.shape, float(end)) for end in self._bulk()]
        while probes or (valid & (low < high)).any():
            middle = probes.pop() if probes else np.floor(0.5 * (low + high))
            is_reached = reached(middle)
            high = np.where(is_reached, np.minimum(high, middle), high)
            low = np.where(is_reached, low, np.maximum(low, middle + 1.0))
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

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: RandomSource = None) -> Ints:
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

    See Also
    --------
    LargestPoissonBinomial : the largest of several counts.

    Notes
    -----
    The probability generating function of the count is ``prod_i (1 - p_i + p_i z)``. It is
    multiplied out by divide and conquer near the mean and under exponential tilting in the tails,
    which keep relative accuracy (1e-12) down to the smallest double and, as logarithms, below it.

    Examples
    --------
    >>> two = PoissonBinomial([0.5, 0.25])
    >>> two.pmf([0, 1, 2]).round(12).tolist(), two.mean(), two.var()
    ([0.375, 0.5, 0.125], 0.75, 0.4375)
    >>> round(float(PoissonBinomial(0.5, 1000).logsf(999) / np.log(2)), 9)
    -1000.0
    """

    n: int
    _tails: PoissonBinomialTails

    def __init__(self, p: object, n: int | None = None) -> None:
        values = success_probabilities(n, p)
        tails = PoissonBinomialTails(values[(values > 0.0) & (values < 1.0)])
        certain = int(np.count_nonzero(values == 1.0))
        self._set(n=len(values), _tails=tails, _low=certain, _high=certain + tails.size)

    def __repr__(self) -> str:
        return f"PoissonBinomial(n={self.n}, mean={self.mean():.6g})"

    def mean(self) -> float:
        """Mean of the count: the sum of the probabilities."""
        return self._low + self._tails.mean

    def var(self) -> float:
        """Variance of the count: the sum of p (1 - p)."""
        return self._tails.variance

    def largest_of(self, t: float, *, correlation: float = 0.0) -> "LargestPoissonBinomial":
        """Return the distribution of the largest of t such counts.

        Parameters
        ----------
        t : float
            Number of counts, 1 or more.
        correlation : float
            Correlation of the normal scores of any two counts, in [0, 1]: a one-factor Gaussian
            copula, which leaves every count its own distribution. 0 is independence.
        """
        return LargestPoissonBinomial([self], t, correlation=correlation)

    def _log_mass(self, x: Ints) -> Array:
        return self._within(x, self._tails.log_mass, -np.inf, -np.inf)

    def _log_lower(self, x: Ints) -> Array:
        return self._within(x, lambda y: self._tails.log_tail(y, -1), -np.inf, 0.0)

    def _log_upper(self, x: Ints) -> Array:
        return self._within(x, lambda y: self._tails.log_tail(y, 1), 0.0, -np.inf)

    def _within(
        self, x: Ints, function: Callable[[Ints], Array], below: float, above: float
    ) -> Array:
        """Apply a function of the uncertain successes inside the support; constants outside it."""
        result = np.where(x < self._low, below, above)
        inside = (x >= self._low) & (x <= self._high)
        if inside.any():
            result[inside] = function(x[inside] - self._low)
        return result

    def _bulk(self) -> tuple[int, int]:
        return _bulk([self], 1.0)


class LargestPoissonBinomial(CountDistribution):
    """Largest of several Poisson-binomial counts.

    Parameters
    ----------
    components : sequence of PoissonBinomial
        Distributions of the counts: one for t equal configurations, or one for each of several
        systems of known skill.
    t : float or sequence of float
        How many counts follow each component; real numbers >= 1 (up to 1e12 and beyond).
    correlation : float
        Correlation of the counts' normal scores (one-factor Gaussian copula), at most 1 - 1e-6, or
        1; needs a single component.

    See Also
    --------
    PoissonBinomial : one of the counts.

    Examples
    --------
    >>> best = PoissonBinomial(0.5, 100).largest_of(10)
    >>> round(best.mean() / 100, 10)
    0.5767798067
    >>> skilled = LargestPoissonBinomial([PoissonBinomial(0.6, 50), PoissonBinomial(0.5, 50)])
    >>> round(skilled.mean() / 50, 4)
    0.6081
    """

    _components: tuple[PoissonBinomial, ...]
    _times: Array
    _copula: OneFactorCopula | None

    def __init__(
        self,
        components: Sequence[PoissonBinomial],
        t: float | Sequence[float] = 1.0,
        *,
        correlation: float = 0.0,
    ) -> None:
        checked = _checked_components(components)
        times_given = list(t) if isinstance(t, Sequence | np.ndarray) else [t] * len(checked)
        if len(times_given) != len(checked):
            raise ValueError(
                f"t must be one number, or one for each of {len(checked)} components; got "
                f"{len(times_given)}."
            )
        times = [check_times(number) for number in times_given]
        _check_correlation(correlation, len(checked))
        correlated = 0.0 < correlation < 1.0
        self._set(
            _components=checked,
            _times=np.array([1.0] if correlation == 1.0 else times)[:, None],
            _copula=OneFactorCopula(times[0], correlation) if correlated else None,
            _low=max(component._low for component in checked),
            _high=max(component._high for component in checked),
        )

    def _log_lower(self, x: Ints) -> Array:
        return self._tail(x, log_max_cdf)

    def _log_upper(self, x: Ints) -> Array:
        return self._tail(x - 1, log_max_sf)

    def _tail(self, x: Ints, function: Callable[[Array, Array, Array], Array]) -> Array:
        lower = np.stack([component._log_lower(x) for component in self._components])
        upper = np.stack([component._log_upper(x + 1) for component in self._components])
        if self._copula is None:
            return function(lower, upper, self._times)
        return self._copula.log_mean(lower[0], upper[0], lambda a, b: function(a, b, self._times))

    def _log_mass(self, x: Ints) -> Array:
        mass = np.stack([component._log_mass(x) for component in self._components])
        if self._copula is None:
            before = np.stack([component._log_lower(x - 1) for component in self._components])
            at_most = np.stack([component._log_lower(x) for component in self._components])
            return log_max_pmf(mass, before, at_most, self._times)
        # Differences of the smaller tails, so that digits are not lost.
        before, lower = self._log_lower(x - 1), self._log_lower(x)
        upper, after = self._log_upper(x), self._log_upper(x + 1)
        with np.errstate(invalid="ignore"):
            below = lower + log1mexp(np.minimum(before - lower, 0.0))
            above = upper + log1mexp(np.minimum(after - upper, 0.0))
        return np.where(np.isneginf(mass[0]), -np.inf, np.where(lower < upper, below, above))

    def _bulk(self) -> tuple[int, int]:
        return _bulk(self._components, float(self._times.sum()))


def _bulk(components: Sequence[PoissonBinomial], total: float) -> tuple[int, int]:
    """Return counts outside which the largest of `total` lies with probability below 1e-17."""
    log_tail_inverse = 41.0  # a probability below exp(-41) lies outside, per side
    log_any_inverse = log_tail_inverse + float(np.log(total))  # that any of them lies above
    low = max(
        max(
            int(component.mean() - bernstein_radius(component.var(), log_tail_inverse)),
            component._low,
        )
        for component in components
    )
    high = max(
        int(np.ceil(component.mean() + bernstein_radius(component.var(), log_any_inverse)))
        for component in components
    )
    return low, min(high, max(component._high for component in components))


def _checked_components(components: Sequence[PoissonBinomial]) -> tuple[PoissonBinomial, ...]:
    if not isinstance(components, Sequence) or not all(
        isinstance(component, PoissonBinomial) for component in components
    ):
        raise ValueError(
            f"components must be a sequence of PoissonBinomial; got {components!r}. For t "
            "counts of one distribution use PoissonBinomial(...).largest_of(t)."
        )
    if not components:
        raise ValueError("components must have at least one PoissonBinomial; got none.")
    return tuple(components)


def _check_correlation(correlation: float, components: int) -> None:
    nearly_one = 1.0 - 1e-6  # the largest below 1 that can be integrated out
    number = real_number("correlation", correlation)
    if not (0.0 <= number <= nearly_one or number == 1.0):
        raise ValueError(
            f"correlation must lie between 0 (independent) and {nearly_one}, or be 1 (identical); "
            f"got {correlation!r}."
        )
    if correlation != 0.0 and components > 1:
        raise ValueError(
            f"correlation needs a single component; got {components}. Use correlation=0, or one "
            "PoissonBinomial with t."
        )
