"""Log tail probabilities of a Poisson-binomial count, and of the largest of several.

A tail is computed under exponential tilting: every ``p`` becomes ``p e^s / (1 - p + p e^s)`` with
``s`` such that the point of interest is the mean, where masses are large; the log of
the factor that undoes the tilt is minus a Kullback-Leibler divergence, a sum of terms of one sign.
The distribution of the largest of several counts follows from their tails. Values are logarithms,
so that probabilities below the smallest double are kept too.

Probability masses of small sums are convolved directly (all terms are positive, so that small
values keep their relative accuracy). Larger sums are convolved by Fourier transforms of blocks of
variables, each kept only on a window that Bernstein's inequality proves to hold all but 1e-20 of
its mass. Variables with the same probability are a binomial count.
"""

from collections.abc import Callable
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, logsumexp, ndtri_exp

from bayesatk._tools.arrays import Array, Ints

_MAX_DIRECT_VARIABLES = 2048  # larger sums are convolved by Fourier transforms
_LOG1P_LINEAR_BELOW = -37.0  # below it log1p(-exp(x)) equals -exp(x) in double precision


def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(x))`` for ``x <= 0``, without cancellation.

    Examples
    --------
    >>> log1mexp(-1e-20).round(9).item(), log1mexp(-0.0).item()
    (-46.05170186, -inf)
    """
    x = np.asarray(x, float)
    with np.errstate(divide="ignore"):
        return np.where(x > -np.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


class SumWindow(NamedTuple):
    """Probability masses of a count on ``first, first + 1, ...``, and its mean and variance."""

    first: int
    mass: Array
    mean: float
    variance: float


def bernstein_radius(variance: float, log_tail_inverse: float = 46.0) -> float:
    """Distance from the mean that is exceeded with probability ``exp(-log_tail_inverse)`` at most.

    Per side; Bernstein's inequality for independent variables within 1 of their means: the
    probability beyond a distance d is at most ``exp(-d^2 / (2 variance + 2 d / 3))``.

    Examples
    --------
    >>> round(bernstein_radius(25.0, 4.5), 3)  # three sds for a normal sum
    16.575
    """
    third = log_tail_inverse / 3.0
    return third + float(np.sqrt(third**2 + 2.0 * log_tail_inverse * variance))


def bernoulli_sum(p: Array, q: Array, count: Ints) -> SumWindow:
    """Distribution of the number of successes; exact for up to 2048 variables.

    Parameters
    ----------
    p, q : ndarray
        Distinct success probabilities, ascending and strictly between 0 and 1, and their
        complements (given, because ``1 - p`` may round).
    count : ndarray of int
        Variables with each probability.

    Examples
    --------
    >>> bernoulli_sum(np.array([0.5]), np.array([0.5]), np.array([2])).mass.round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    size = int(count.sum())
    if (
        size > _MAX_DIRECT_VARIABLES and len(p) <= 64
    ):  # distinct probabilities are cheaper as binomials
        windows = [_binomial(*group) for group in zip(p, q, count, strict=True)]
    else:
        p, q, blocks = np.repeat(p, count), np.repeat(q, count), -(-size // _MAX_DIRECT_VARIABLES)
        windows = [_whole_support(p[i::blocks], q[i::blocks]) for i in range(blocks)]
    window = reduce(_convolve, sorted(windows, key=lambda window: len(window.mass)))
    mass = np.maximum(window.mass, 0.0)
    # p and q rarely add up to exactly one in floating point: the total drifts.
    return window._replace(mass=mass / mass.sum())


def _leaves(p: Array, q: Array, blocks: int) -> Array:
    """Probability masses of the sums of equal blocks of variables; shape (blocks, block size + 1).

    Block b has the sorted probabilities b, b + blocks, ..., so that blocks have nearly equal means
    and variances. Variables that always fail fill up the last ones.
    """
    leaf = -(-len(p) // blocks)
    padding = leaf * blocks - len(p)
    p = np.concatenate([np.zeros(padding), p]).reshape(leaf, blocks)
    q = np.concatenate([np.ones(padding), q]).reshape(leaf, blocks)
    mass = np.zeros((leaf + 1, blocks))
    mass[0] = 1.0
    for j in range(leaf):
        moved = mass[: j + 1] * p[j]
        mass[: j + 1] *= q[j]
        mass[1 : j + 2] += moved
    return np.ascontiguousarray(mass.T)


def _whole_support(p: Array, q: Array) -> SumWindow:
    """Masses on the whole support, by convolutions of positive terms only."""
    blocks = 1 << max(0, round(np.log2(len(p) / 24)) + (len(p) <= 256))
    masses = list(_leaves(p, q, blocks))
    while len(masses) > 1:
        masses = [np.convolve(a, b) for a, b in zip(masses[::2], masses[1::2], strict=True)]
    return SumWindow(0, masses[0][: len(p) + 1], float(p.sum()), float(p @ q))


def _within_radius(first: int, width: int, mean: float, variance: float) -> tuple[int, int]:
    """First and last of ``first, ..., first + width - 1`` within Bernstein's radius of the mean."""
    radius = bernstein_radius(variance)
    low, high = int(np.floor(mean - radius)), int(np.ceil(mean + radius))
    return max(low, first), min(high, first + width - 1)


def _binomial(p: float, q: float, size: int) -> SumWindow:
    """Binomial masses by the ratios of neighbours, outwards from the mode."""
    mean, variance = size * p, size * p * q
    low, high = _within_radius(0, size + 1, mean, variance)
    mode = min(max(int((size + 1) * p), low), high)
    up = np.arange(mode, high, dtype=float)
    down = np.arange(mode, low, -1, dtype=float)
    rising = np.cumprod((size - up) / (up + 1.0) * (p / q))
    falling = np.cumprod(down / (size - down + 1.0) * (q / p))
    mass = np.concatenate([falling[::-1], [1.0], rising])
    return SumWindow(low, mass / mass.sum(), mean, variance)


def _convolve(a: SumWindow, b: SumWindow) -> SumWindow:
    """Distribution of the sum of two independent counts."""
    width = len(a.mass) + len(b.mass) - 1
    if min(len(a.mass), len(b.mass)) <= 96:  # faster than a transform
        mass = np.convolve(a.mass, b.mass)
    else:
        size = next_fast_len(width, real=True)
        mass = irfft(rfft(a.mass, size) * rfft(b.mass, size), size)[:width]
    first, mean, variance = a.first + b.first, a.mean + b.mean, a.variance + b.variance
    low, high = _within_radius(first, width, mean, variance)
    return SumWindow(low, mass[low - first : high - first + 1], mean, variance)


class UpperTail:
    """Log masses and log tails ``P(X >= x)`` of a sum of Bernoulli variables, x above the mean.

    Values are computed on demand and kept.

    Parameters
    ----------
    p, q, count : ndarray
        Distinct success probabilities, their complements and the number of variables with each,
        as in `bernoulli_sum`.
    """

    def __init__(self, p: Array, q: Array, count: Ints) -> None:
        self._p, self._q, self._count = p, q, count
        self._log_p = _log_probability(p, q)
        self._logit = self._log_p - _log_probability(q, p)
        self.size, self.mean = int(count.sum()), float(count @ p)

    def at(self, x: Ints) -> Array:
        """Log mass and log tail at counts not below the mean; shape (2, counts)."""
        wanted = np.unique(x)
        while len(wanted := wanted[np.isnan(self._tables[0, wanted])]):
            self._fill(int(wanted[0]))
        return self._tables[:, x]

    @cached_property
    def _tables(self) -> Array:
        """Log masses and log tails of all counts; NaN where they are not yet computed."""
        tables = np.full((2, self.size + 1), np.nan)
        tables[:, -1] = self._count @ self._log_p  # all succeed: no finite tilt has this mean
        if not self.size:
            return tables
        window = bernoulli_sum(self._p, self._q, self._count)
        counts = window.first + np.arange(len(window.mass))
        with np.errstate(divide="ignore"):
            logs = np.log([window.mass, np.cumsum(window.mass[::-1])[::-1]])
        if self.size <= _MAX_DIRECT_VARIABLES:
            accurate = logs[0] > -640.0  # smaller sums add up subnormal numbers
        else:  # transforms are accurate enough within 1.5 sds of the mean
            sd = np.sqrt(self._count @ (self._p * self._q))
            accurate = counts - self.mean <= 1.5 * sd + 1.0
        accurate &= (counts >= self.mean) & (counts < self.size)
        tables[:, counts[accurate]] = logs[:, accurate]
        return tables

    def _fill(self, first: int) -> None:
        """Tilt the distribution so that its mean is a count, and fill the tables from there on."""
        theta = self._tilt(first)
        p, q = expit(self._logit + theta), expit(-self._logit - theta)
        # One tilt serves two sds, over which its factor falls by exp(300) at most.
        span = min(2.0 * float(np.sqrt(self._count @ (p * q))), 300.0 / max(theta, 1e-300))
        window = bernoulli_sum(p, q, self._count)
        step = np.arange(window.first + len(window.mass) - first)
        masses = window.mass[first - window.first :] * np.exp(-theta * step)
        served = slice(min(int(span), self.size - 1 - first) + 1)
        with np.errstate(divide="ignore"):
            logs = np.log([masses[served], np.cumsum(masses[::-1])[::-1][served]])
        table = self._tables[:, first : first + logs.shape[1]]
        table[:] = np.where(np.isnan(table), logs + self._log_factor(theta, first), table)

    def _tilt(self, target: int) -> float:
        """Tilting parameter with which the mean is the target.

        The bracket: tilted logits below -50 have a mean near 0, above 50 one near all variables.
        """

        def gap(theta: float) -> float:
            return float(self._count @ expit(self._logit + theta)) - target

        low, high = -float(self._logit.max()) - 50.0, -float(self._logit.min()) + 50.0
        return float(brentq(gap, low, high, xtol=1e-6))

    def _log_factor(self, theta: float, start: int) -> float:
        """``log E[exp(theta X)] - theta start``: the log of the factor that undoes the tilt.

        Extended precision, where the machine has it: the rounding error of ``exp(theta)`` is the
        same for all variables, so it would add up.
        """
        tilt = np.longdouble(theta)
        if abs(theta) > 600.0:  # a double may not hold its exponential
            terms = np.log1p(-self._p) + np.logaddexp(0.0, self._logit + tilt)
            return float(self._count @ terms - tilt * start)
        from_zero = self._p <= 0.5
        near_zero = np.log1p(self._p[from_zero] * np.expm1(tilt))
        near_one = np.log1p(self._q[~from_zero] * np.expm1(-tilt))
        ones = int(self._count[~from_zero].sum())
        total = self._count[from_zero] @ near_zero + self._count[~from_zero] @ near_one
        return float(total + tilt * (ones - start))


def _log_probability(p: Array, q: Array) -> Array:
    """Log of p, from the smaller of p and its complement q, because the larger may be rounded."""
    return np.where(p > 0.5, np.log1p(-np.minimum(q, 0.5)), np.log(p))


class PoissonBinomialTails:
    """Log masses and both log tails of a sum of Bernoulli variables, none of them certain.

    The lower tail of the number of successes is the upper tail of the number of failures.

    Parameters
    ----------
    p : ndarray, shape (variables,)
        Success probabilities strictly between 0 and 1.

    Examples
    --------
    >>> tails = PoissonBinomialTails(np.full(1000, 0.5))
    >>> round(float(tails.log_tail(np.array([1000]), 1)[0] / np.log(2)), 9)  # 2^-1000
    -1000.0
    """

    def __init__(self, p: Array) -> None:
        p, count = np.unique(p, return_counts=True)
        q = 1.0 - p
        self._up, self._down = UpperTail(p, q, count), UpperTail(q[::-1], p[::-1], count[::-1])
        self.size, self.mean = self._up.size, self._up.mean
        self.variance = float(count @ (p * q))

    def log_mass(self, x: Ints) -> Array:
        """``log P(X = x)`` for counts of the support."""
        return np.asarray(self._smaller(x)[0])

    def log_tail(self, x: Ints, side: int) -> Array:
        """``log P(X >= x)`` for side 1, ``log P(X <= x)`` for side -1; counts of the support."""
        small = (x > self.mean) == (side > 0)
        stored = np.where(small, x, x - side)
        values = self._smaller(np.clip(stored, 0, self.size))[1]
        exists = (stored >= 0) & (stored <= self.size)
        return np.where(small, values, np.where(exists, log1mexp(values), 0.0))

    def _smaller(self, x: Ints) -> Array:
        """Log mass, and log of the tail away from the mean; shape (2, counts)."""
        logs, above = np.empty((2, len(x))), x > self.mean
        logs[:, above] = self._up.at(x[above])
        logs[:, ~above] = self._down.at(self.size - x[~above])
        return logs


# The largest of independent counts, `times` of which follow each of several distributions: the
# first axis of all arrays.


def log_max_cdf(log_lower: Array, log_upper: Array, times: Array) -> Array:
    """``log P(max <= x)``, the log of the product of ``F^t``, from each ``log P(X <= x)``."""
    return (times * log_lower).sum(axis=0)


def log_max_sf(log_lower: Array, log_upper: Array, times: Array) -> Array:
    """``log P(max > x)`` from each ``log P(X <= x)`` and ``log P(X > x)``; no cancellation."""
    rates = log_minus_log(log_lower, log_upper) + np.log(times)
    return _log_sf(np.logaddexp.reduce(rates, axis=0))


def log_max_pmf(log_mass: Array, log_before: Array, log_lower: Array, times: Array) -> Array:
    """``log P(max = x)`` from each ``log P(X = x)``, ``log P(X < x)`` and ``log P(X <= x)``.

    ``F_max(x) (-expm1(-sum t log(F(x)/F(x-1))))``: nothing cancels.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = log_mass - log_before
        step = np.where(ratio < _LOG1P_LINEAR_BELOW, ratio, np.log(np.logaddexp(0.0, ratio)))
        rates = np.where(np.isneginf(log_before), np.inf, step) + np.log(times)
        lower = (times * log_lower).sum(axis=0)
        mass = lower + _log_sf(np.logaddexp.reduce(rates, axis=0))
    return np.where(np.isneginf(lower), -np.inf, mass)


def log_minus_log(log_lower: ArrayLike, log_upper: ArrayLike) -> Array:
    """``log(-log F)`` from the logs of F and 1 - F; the largest of t counts adds ``log t``."""
    upper = np.asarray(log_upper, float)
    with np.errstate(divide="ignore"):
        fine = np.where(upper < -np.log(2.0), log1mexp(np.minimum(upper, -np.log(2.0))), log_lower)
        return np.where(upper < _LOG1P_LINEAR_BELOW, upper, np.log(-fine))


def _log_sf(log_minus_log_cdf: Array) -> Array:
    """``log(1 - F)`` from ``log(-log F)``."""
    exact = log1mexp(-np.exp(np.minimum(log_minus_log_cdf, 7.0)))
    return np.where(log_minus_log_cdf < _LOG1P_LINEAR_BELOW, log_minus_log_cdf, exact)


class OneFactorCopula:
    """Counts with a one-factor Gaussian copula: independent given the common factor Z.

    Count ``j`` is ``F^{-1}(Phi(sqrt(r) Z + sqrt(1 - r) e_j))`` with independent standard normal
    ``Z`` and ``e_j``: every count keeps its own distribution F, and the normal scores of any two
    have correlation ``r``. The average over Z is a trapezoid sum.

    Parameters
    ----------
    times : float
        Number of counts.
    correlation : float
        In [0, 1).
    """

    def __init__(self, times: float, correlation: float) -> None:
        self._common_loading = float(np.sqrt(correlation))
        self._specific_loading = float(np.sqrt(1.0 - correlation))
        # The conditional probability rises from 0 to 1 within about this range of Z.
        ratio = self._specific_loading / max(self._common_loading, 1e-12)
        rise_width = ratio / np.sqrt(1.0 + 2.0 * np.log(times))
        step = min(0.25, 0.2 * rise_width)
        half = int(np.ceil(39.0 / step))
        self._z = step * np.arange(-half, half + 1)
        self._log_weight = -0.5 * self._z**2 - 0.5 * np.log(2.0 * np.pi) + np.log(step)

    def log_mean(
        self, log_lower: Array, log_upper: Array, log_tail: Callable[[Array, Array], Array]
    ) -> Array:
        """Log of a tail probability of the largest, averaged over the factor.

        Parameters
        ----------
        log_lower, log_upper : ndarray, shape (counts,)
            Log tails of one count.
        log_tail : callable
            The log tail of the largest, from both log tails of one count given the factor.
        """
        half = log_lower < np.log(0.5)
        score = np.where(
            half,
            ndtri_exp(np.where(half, log_lower, -1.0)),
            -ndtri_exp(np.where(half, -1.0, log_upper)),
        )
        result = np.empty(score.shape)
        width = max(1, 2_000_000 // len(self._z))  # evaluations at once, to bound memory
        for start in range(0, len(score), width):
            rows = slice(start, start + width)
            inner = (score[rows, None] - self._common_loading * self._z) / self._specific_loading
            tail_given_factor = log_tail(log_ndtr(inner)[None], log_ndtr(-inner)[None])
            result[rows] = logsumexp(tail_given_factor + self._log_weight, axis=1)
        return np.minimum(result, 0.0)
