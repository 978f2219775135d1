"""The Dirichlet-multinomial distribution, and draws of its category probabilities."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, softmax

from bayesatk._tools.arrays import Array, Rng

_POSITIVE_FLOOR = 1e-300  # replaces parameters of zero
_MIN_DIRECT_SHAPE = 0.1  # gamma variates of a smaller shape may underflow to zero
_STIRLING_FROM = 1000.0  # the neglected terms of Stirling's series are below 3e-12 from here on


def log_sequence_probability(alpha: ArrayLike, counts: NDArray[Any]) -> Array:
    r"""Log probability of trials in one given order when ``p ~ Dirichlet(alpha)``, by row.

    .. math:: \log \frac{\prod_c \alpha_c^{(n_c)}}{(\sum_c \alpha_c)^{(n)}}

    with the rising factorial ``x^(n) = x (x + 1) ... (x + n - 1)``.

    Examples
    --------
    >>> logs = log_sequence_probability(1.0, np.array([[1, 0, 0]]))
    >>> np.exp(logs).round(12).tolist()  # one of three equally likely categories
    [0.333333333333]
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
    small = np.minimum(base, _STIRLING_FROM)
    direct: Array = gammaln(small + count) - gammaln(small)
    if not (base >= _STIRLING_FROM).any():
        return direct
    large_base = np.maximum(base, _STIRLING_FROM)
    large = (
        (large_base + count - 0.5) * np.log1p(count / large_base)
        - count
        + count * np.log(large_base)
    )
    large += (1.0 / (large_base + count) - 1.0 / large_base) / 12.0
    return np.where(base >= _STIRLING_FROM, large, direct)


def draw_probabilities(alpha: Array, rng: Rng) -> Array:
    """One draw of Dirichlet probabilities for every row of parameters.

    Gamma variates of small shape are drawn on the log scale, as ``G(a) = G(a + 1) U^(1/a)`` with a
    uniform U, because they underflow to zero.
    """
    if alpha.min() >= _MIN_DIRECT_SHAPE:
        gammas = rng.standard_gamma(alpha)
        return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    return np.asarray(softmax(logs, axis=-1))
