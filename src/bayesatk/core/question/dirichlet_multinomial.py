"""The Dirichlet-multinomial: trials whose category probabilities are integrated, or drawn."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, softmax

from bayesatk._tools.arrays import Array, Rng

_LEAST = 1e-300  # of u, and of parameters, instead of zero
_LARGE = 0.1  # parameters from which gamma variates do not underflow
_STIRLING = 1000.0  # from which the next term of Stirling's series is below 3e-12


def log_ordered(alpha: ArrayLike, counts: NDArray[Any]) -> Array:
    """Log probability of trials in their given order under ``p ~ Dirichlet(alpha)``, by row.

    Examples
    --------
    >>> np.exp(log_ordered(1.0, np.array([[1, 0, 0]]))[0]).round(12).item()  # of three categories
    0.333333333333
    """
    alpha = np.broadcast_to(np.asarray(alpha, float), counts.shape)
    total = log_rising_factorial(alpha.sum(axis=-1), counts.sum(axis=-1))
    return np.asarray(log_rising_factorial(alpha, counts).sum(axis=-1) - total)


def log_rising_factorial(base: Array, count: NDArray[Any]) -> Array:
    r"""Log of ``base (base + 1) ... (base + count - 1)``, elementwise, for any count >= 0.

    .. math:: \log\Gamma(a + n) - \log\Gamma(a),

    from Stirling's series where the base is large, so that nothing cancels.

    Examples
    --------
    >>> log_rising_factorial(np.array([[0.5], [1e15]]), np.array([2])).round(9).tolist()
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
    Absolute error about 1e-12 for a thousand trials, .001 for a billion.

    Examples
    --------
    >>> float(np.exp(log_counts([2, 1], [0.5, 0.5], 0.5)).round(12))  # uniform: one of 0, 1, 2, 3
    0.25
    """
    counts = np.asarray(counts, float)
    u = np.clip(np.asarray(ratio, float), _LEAST, 1e280)
    alpha = np.maximum(np.asarray(mean, float) / u[..., None], _LEAST)
    ways = gammaln(counts.sum(axis=-1) + 1.0) - gammaln(counts + 1.0).sum(axis=-1)
    counts, alpha = np.broadcast_arrays(counts, alpha)
    return np.asarray(log_ordered(alpha, counts) + ways)


def draw_probabilities(alpha: Array, rng: Rng) -> Array:
    """One draw of Dirichlet probabilities for every row of parameters.

    Small parameters are drawn on the log scale, ``G(a) = G(a + 1) U^(1/a)``: their gamma variates
    would all be zero.
    """
    if alpha.min() >= _LARGE:
        gammas = rng.standard_gamma(alpha)
        return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    return np.asarray(softmax(logs, axis=-1))
