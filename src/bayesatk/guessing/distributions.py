"""Frozen discrete distributions in scipy's vocabulary: Poisson-binomial, and the largest of t."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayesatk.data.chances import check_times, success_probabilities
from bayesatk.guessing._bernoulli_sums import reach
from bayesatk.guessing._count_distribution import CountDistribution
from bayesatk.guessing._tails import (
    CommonFactor,
    Counts,
    PoissonBinomialTails,
    log1mexp,
    log_largest_at,
    log_none_above,
    log_some_above,
)
from bayesatk.metrics.credit import Array


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

    n: int
    _tails: PoissonBinomialTails

    def __init__(self, p: object, n: int | None = None) -> None:
        values = success_probabilities(n, p)
        tails = PoissonBinomialTails(values[(values > 0.0) & (values < 1.0)])
        sure = int(np.count_nonzero(values == 1.0))
        self._set(n=len(values), _tails=tails, _low=sure, _high=sure + tails.size)

    def __repr__(self) -> str:
        return f"PoissonBinomial(n={self.n}, mean={self.mean():.6g})"

    def pmf(self, k: ArrayLike) -> Array:
        """Probability of exactly k."""
        mass = self._tails.mass
        return self._of_counts(k, lambda x: self._within(x, mass, 0.0, 0.0), between=0.0)

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
            Of the normal scores of any two counts, in [0, 1]: a one-factor model that leaves every
            count its own distribution. 0 is independence.
        """
        return LargestPoissonBinomial([self], t, correlation=correlation)

    def _log_mass(self, x: Counts) -> Array:
        return self._within(x, self._tails.log_mass, -np.inf, -np.inf)

    def _log_lower(self, x: Counts) -> Array:
        return self._within(x, lambda y: self._tails.log_tail(y, -1), -np.inf, 0.0)

    def _log_upper(self, x: Counts) -> Array:
        return self._within(x, lambda y: self._tails.log_tail(y, 1), 0.0, -np.inf)

    def _within(
        self, x: Counts, function: Callable[[Counts], Array], below: float, above: float
    ) -> Array:
        """Values at counts of the support (a function of those that are not certain), or beyond."""
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
        One-factor correlation of the counts' normal scores, at most 1 - 1e-6, or 1; needs a single
        component.

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
    _factor: CommonFactor | None

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
            _factor=CommonFactor(times[0], correlation) if correlated else None,
            _low=max(component._low for component in checked),
            _high=max(component._high for component in checked),
        )

    def _log_lower(self, x: Counts) -> Array:
        return self._tail(x, log_none_above)

    def _log_upper(self, x: Counts) -> Array:
        return self._tail(x - 1, log_some_above)

    def _tail(self, x: Counts, function: Callable[[Array, Array, Array], Array]) -> Array:
        lower = np.stack([component._log_lower(x) for component in self._components])
        upper = np.stack([component._log_upper(x + 1) for component in self._components])
        if self._factor is None:
            return function(lower, upper, self._times)
        return self._factor.log_mean(lower[0], upper[0], lambda a, b: function(a, b, self._times))

    def _log_mass(self, x: Counts) -> Array:
        mass = np.stack([component._log_mass(x) for component in self._components])
        if self._factor is None:
            before = np.stack([component._log_lower(x - 1) for component in self._components])
            at_most = np.stack([component._log_lower(x) for component in self._components])
            return log_largest_at(mass, before, at_most, self._times)
        # The difference of the smaller tails.
        before, lower = _at_both(self._log_lower, x - 1, x)
        upper, after = _at_both(self._log_upper, x, x + 1)
        with np.errstate(invalid="ignore"):
            below = lower + log1mexp(np.minimum(before - lower, 0.0))
            above = upper + log1mexp(np.minimum(after - upper, 0.0))
        return np.where(np.isneginf(mass[0]), -np.inf, np.where(lower < upper, below, above))

    def _bulk(self) -> tuple[int, int]:
        return _bulk(self._components, float(self._times.sum()))


def _at_both(function: Callable[[Counts], Array], x: Counts, y: Counts) -> Array:
    """Values at x and at y, which overlap: each count is computed once."""
    counts, index = np.unique(np.stack([x, y]), return_inverse=True)
    return function(counts)[index.reshape(2, -1)]


def _bulk(components: Sequence[PoissonBinomial], total: float) -> tuple[int, int]:
    """Return counts outside which the largest lies with probability below 1e-17."""
    log_lost = 41.0  # moments leave out a probability below exp(-41) per side
    lost = log_lost + float(np.log(total))
    low = max(int(component.mean() - reach(component.var(), log_lost)) for component in components)
    high = max(
        int(np.ceil(component.mean() + reach(component.var(), lost))) for component in components
    )
    least, most = (
        max(component._low for component in components),
        max(component._high for component in components),
    )
    return max(low, least), min(high, most)


def _checked_components(components: Sequence[PoissonBinomial]) -> tuple[PoissonBinomial, ...]:
    if not isinstance(components, Sequence) or not all(
        isinstance(component, PoissonBinomial) for component in components
    ):
        raise ValueError(
            f"components must be a sequence of PoissonBinomial; got {components!r}. For t "
            "alike use PoissonBinomial(...).largest_of(t)."
        )
    if not components:
        raise ValueError("components must have at least one PoissonBinomial; got none.")
    return tuple(components)


def _check_correlation(correlation: float, components: int) -> None:
    nearly_one = 1.0 - 1e-6  # the largest below 1 that can be integrated out
    if not isinstance(correlation, int | float | np.number) or not (
        0.0 <= correlation <= nearly_one or correlation == 1.0
    ):
        raise ValueError(
            f"correlation must lie between 0 (independent) and {nearly_one}, or be 1 (identical); "
            f"got {correlation!r}."
        )
    if correlation != 0.0 and components > 1:
        raise ValueError(
            f"correlation needs a single component; got {components}. Use correlation=0, or one "
            "PoissonBinomial with t."
        )
