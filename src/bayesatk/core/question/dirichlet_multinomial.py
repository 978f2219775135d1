"""The Dirichlet-multinomial: probability of trials whose category probabilities are integrated."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bayesatk._tools.arrays import Array

_LEAST = 1e-300  # of u, and of parameters, instead of zero
_STIRLING = 1000.0  # from which the next term of Stirling's series is below 3e-12


def log_ordered(alpha: ArrayLike, counts: NDArray[Any]) -> Array:
    """Log probability of trials in their given order under ``p ~ Dirichlet(alpha)``, by row.

    Examples
    --------
    >>> np.exp(log_ordered(1.0, np.array([[1, 0, 0]]))[0]).round(12).item()  # of three categories
    0.333333333333
    """
    alpha = np.broadcast_to(np.asarray(alpha, float), counts.shape)
    total = log_rise(alpha.sum(axis=-1), counts.sum(axis=-1))
    return np.asarray(log_rise(alpha, counts).sum(axis=-1) - total)


def log_rise(base: Array, count: NDArray[Any]) -> Array:
    """``log(Gamma(base + count) / Gamma(base))``, without cancelling where the base is large.

    Examples
    --------
    >>> log_rise(np.array([[0.5], [1e15]]), np.array([2])).round(9).tolist()
    [[-0.287682072], [69.07755279]]
    """
    small = np.minimum(base, _STIRLING)
    direct: Array = gammaln(small + count) - gammaln(small)
    if not (base >= _STIRLING).any():
        return direct
    some = np.maximum(base, _STIRLING)
    large = (some + count - 0.5) * np.log1p(count / some) - count + count * np.log(some)
    large += (1.0 / (some + count) - 1.0 / some) / 12.0
    return np.where(base >= _STIRLING, large, direct)


def log_counts(counts: ArrayLike, mean: ArrayLike, ratio: ArrayLike) -> Array:
    """Log probability of category counts, in any order, under ``p ~ Dirichlet(mean / ratio)``.

    Parameters
    ----------
    counts : array_like, shape (..., categories)
    mean : array_like, shape (..., categories)
        Sums to one.
    ratio : array_like, shape (...)
        One over the sum of the Dirichlet parameters, ``icc / (1 - icc)``; 0 is the multinomial.

    Returns
    -------
    ndarray, shape (...)
        The cost does not depend on the counts.

    Notes
    -----
    Counts of independent negative binomials with parameters ``alpha_c`` and one success
    probability are Dirichlet-multinomial given their sum N. At the probability under which N is
    expected, each of them is a saddle-point form (Loader 2000): no logarithm of a factorial of a
    large number occurs, so nothing cancels. Absolute error about 1e-13 for counts of 10^9.

    Examples
    --------
    >>> float(np.exp(log_counts([2, 1], [0.5, 0.5], 0.5)).round(12))  # uniform: one of 0, 1, 2, 3
    0.25
    """
    counts, mean = np.asarray(counts, float), np.asarray(mean, float)
    u = np.clip(np.asarray(ratio, float), _LEAST, 1e280)
    total = counts.sum(axis=-1)
    with np.errstate(under="ignore"):
        log_terms = _log_negative_binomial(counts, mean, u[..., None], total[..., None])
        return np.asarray(log_terms.sum(axis=-1) - _log_negative_binomial(total, 1.0, u, total))


def _log_negative_binomial(c: Array, m: Array | float, u: Array, total: Array) -> Array:
    """Log pmf of c at parameter ``m / u`` and probability ``total u / (1 + total u)``."""
    c, m, u, total = np.broadcast_arrays(c, np.asarray(m, float), u, total)
    log_pmf = np.array(-m * (np.log1p(total * u) / u))  # of no trial
    present = c > 0.0
    log_pmf[present] = _log_of_present(c[present], m[present], u[present], total[present])
    return log_pmf


def _log_of_present(c: Array, m: Array, u: Array, total: Array) -> Array:
    """Return the same of one trial or more; of many categories most have none."""
    size = np.maximum(m, _LEAST * u) / u
    gap = (c - m * total) / (1.0 + total * u)  # from the expected count
    share = (m + c * u) / (1.0 + total * u)
    log_pmf = _stirling_error(size + c) - _stirling_error(size) - _stirling_error(c)
    log_pmf -= _deviance(size, share / u, -gap) + _deviance(c, share * total, gap)
    log_pmf += 0.5 * (np.log(size) - np.log(size + c) - np.log(2.0 * np.pi * c))
    return np.where(m > 0.0, log_pmf, -np.inf)


def _stirling_error(x: Array) -> Array:
    """``log Gamma(x + 1)`` less Stirling's formula."""
    large = np.clip(x, 15.0, 1e100)
    series = np.zeros_like(large)
    # The error of the series is below 2e-16 from x = 15.
    for coefficient in (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = coefficient + series / large**2
    small = np.clip(x, _LEAST, 15.0)
    direct = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small
    return np.where(x >= 15.0, series / large, direct - 0.5 * np.log(2.0 * np.pi))


def _deviance(x: Array, expected: Array, gap: Array) -> Array:
    """``x log(x / expected) - gap`` with ``gap = x - expected``, which is given exactly."""
    expected = np.maximum(expected, _LEAST)
    v = gap / (x + expected)
    near = np.abs(v) < 0.1  # then 9 terms of the series do: 0.1^19 / 19 ~ 5e-21
    small = np.where(near, v, 0.0)
    series = np.zeros_like(small)
    for j in range(9, 0, -1):
        series = (series + 1.0 / (2 * j + 1)) * small**2
    direct = x * (np.log(x) - np.log(expected)) - gap
    return np.where(near, gap * small + 2.0 * x * small * series, direct)
