"""Largest of several independent or exchangeable counts, in logarithms of both tails."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from bayesatk.guessing.poisson_binomial import log1mexp
from bayesatk.metrics.credit import Array

Counts = NDArray[np.int64]
_TINY = -37.0  # exp(x) at which log1p(-exp(x)) is -exp(x) to double precision
_EVALUATIONS = 2_000_000


class CountLaw(Protocol):
    """Distribution of a count, in logarithms."""

    def log_upper(self, x: Counts) -> Array:
        """``log P(X >= x)``."""
        ...

    def log_lower(self, x: Counts) -> Array:
        """``log P(X <= x)``."""
        ...

    def log_mass(self, x: Counts) -> Array:
        """``log P(X = x)``."""
        ...


class LargestLaw:
    """Largest of independent counts: ``P(max <= x)`` is the product of ``F_j(x)^t_j``.

    Parameters
    ----------
    laws : sequence of CountLaw
    times : sequence of float
        How many independent counts follow each law; any real number >= 1.

    Notes
    -----
    With ``G`` the upper tail, ``P(max >= x) = -expm1(sum t log1p(-G(x)))`` keeps the relative
    accuracy of ``G``, and ``P(max = x) = F_max(x) (-expm1(-sum t log(F(x)/F(x-1))))``.
    """

    def __init__(self, laws: Sequence[CountLaw], times: Sequence[float]) -> None:
        self._laws, self._times = tuple(laws), np.asarray(times, float)

    def log_lower(self, x: Counts) -> Array:
        """``log P(max <= x)``."""
        parts = [law.log_lower(x) for law in self._laws]
        return np.asarray(self._times @ np.stack(parts))

    def log_upper(self, x: Counts) -> Array:
        """``log P(max >= x)``."""
        upper = np.stack([law.log_upper(x) for law in self._laws])
        # The logarithm of -log(1 - G), which is that of G itself once G is tiny.
        with np.errstate(divide="ignore"):
            log_rate = np.where(upper < _TINY, upper, np.log(-log1mexp(upper)))
        return _log_of_exceeding(logsumexp(log_rate + np.log(self._times)[:, None], axis=0))

    def log_mass(self, x: Counts) -> Array:
        """``log P(max = x)``."""
        rates = []
        for law, times in zip(self._laws, self._times, strict=True):
            below = law.log_lower(x - 1)
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                ratio = law.log_mass(x) - below
                log_step = np.where(ratio < _TINY, ratio, np.log(np.log1p(np.exp(ratio))))
                log_step = np.where(ratio > 700.0, np.log(ratio), log_step)
            rates.append(np.where(np.isneginf(below), np.inf, log_step) + np.log(times))
        lower = self.log_lower(x)
        with np.errstate(invalid="ignore"):
            mass = lower + _log_of_exceeding(np.logaddexp.reduce(rates, axis=0))
        return np.where(np.isneginf(lower), -np.inf, mass)


def _log_of_exceeding(log_rate: Array) -> Array:
    """``log(1 - exp(-exp(log_rate)))``."""
    with np.errstate(over="ignore"):
        return np.where(log_rate < _TINY, log_rate, log1mexp(-np.exp(np.minimum(log_rate, 7.0))))


class CorrelatedLargestLaw:
    """Largest of exchangeable counts with one common factor.

    Count ``j`` is ``F^{-1}(Phi(sqrt(r) Z + sqrt(1 - r) e_j))`` with independent standard normal
    ``Z`` and ``e_j``: every count keeps its own distribution, and the normal scores of any two
    have correlation ``r``. Given ``Z`` the counts are independent.

    Parameters
    ----------
    law : CountLaw
    times : float
    correlation : float
        In [0, 1).
    """

    def __init__(self, law: CountLaw, times: float, correlation: float) -> None:
        self._law, self._times = law, float(times)
        self._shared, self._own = float(np.sqrt(correlation)), float(np.sqrt(1.0 - correlation))
        # The conditional probability turns from 0 to 1 over own / shared / sqrt(2 log t) of Z.
        turn = self._own / max(self._shared, 1e-12) / np.sqrt(1.0 + 2.0 * np.log(self._times))
        step = min(0.25, 0.2 * turn)
        half = int(np.ceil(39.0 / step))
        self._z = step * np.arange(-half, half + 1)
        self._log_weight = -0.5 * self._z**2 - 0.5 * np.log(2.0 * np.pi) + np.log(step)

    def log_lower(self, x: Counts) -> Array:
        """``log P(max <= x)``."""
        return self._mixed(x, lambda inner: np.asarray(self._times * log_ndtr(inner)))

    def log_upper(self, x: Counts) -> Array:
        """``log P(max >= x)``."""
        times = self._times

        def exceeds(inner: Array) -> Array:
            upper = log_ndtr(-inner)
            with np.errstate(divide="ignore"):
                rate = np.where(upper < _TINY, upper, np.log(-log_ndtr(inner)))
            return _log_of_exceeding(rate + np.log(times))

        return self._mixed(x - 1, exceeds)

    def log_mass(self, x: Counts) -> Array:
        """``log P(max = x)``, from the smaller tail."""
        lower, before = self.log_lower(x), self.log_lower(x - 1)
        upper, after = self.log_upper(x), self.log_upper(x + 1)
        with np.errstate(invalid="ignore"):
            from_below = lower + log1mexp(np.minimum(before - lower, 0.0))
            from_above = upper + log1mexp(np.minimum(after - upper, 0.0))
        mass = np.where(lower < upper, from_below, from_above)
        return np.where(np.isneginf(self._law.log_mass(x)), -np.inf, mass)

    def _mixed(self, x: Counts, function: "_OnScores") -> Array:
        """Average a function of the conditional normal score at x over the common factor."""
        lower, upper = self._law.log_lower(x), self._law.log_upper(x + 1)
        half = lower < np.log(0.5)
        score = np.where(
            half, ndtri_exp(np.where(half, lower, -1.0)), -ndtri_exp(np.where(half, -1.0, upper))
        )
        result = np.empty(score.shape)
        width = max(1, _EVALUATIONS // len(self._z))
        for start in range(0, len(score), width):
            part = slice(start, start + width)
            inner = (score[part, None] - self._shared * self._z) / self._own
            result[part] = logsumexp(function(inner) + self._log_weight, axis=1)
        return np.minimum(result, 0.0)


class _OnScores(Protocol):
    def __call__(self, inner: Array, /) -> Array: ...
