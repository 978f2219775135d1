"""The posterior law: moments of credits under ``p ~ Beta(a, b)`` as exact Beta-binomial sums.

Slower than the shared quadrature of `bayesatk.core.moments` and less sharp for variances of
saturated states, but right for any a, b > 0, however large, small or far apart.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from bayesatk.core.credit import Array, Credit
from bayesatk.core.laws import log_binomials

_BLOCK = 4_000_000  # floats in one table of probabilities: 32 MB


def _by_k(credits: Sequence[Credit]) -> Iterator[tuple[int, list[int]]]:
    """Yield each k with the positions of its credits."""
    order = sorted(range(len(credits)), key=lambda i: credits[i].k)
    for k, group in groupby(order, key=lambda i: credits[i].k):
        yield k, list(group)


def beta_binomial_means(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array]:
    """Mean of g(p), p ~ Beta(a, b), and its complement: the posterior law, exactly.

    Examples
    --------
    >>> from bayesatk.core.credit import pass_at
    >>> [mean.round(12).item() for mean in beta_binomial_means([pass_at(2)], [1.0], [1.0])]
    [0.666666666667, 0.333333333333]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean = np.empty((len(a), len(credits)))
    rest = np.empty_like(mean)
    for k, columns in _by_k(credits):
        x = np.stack([credits[i].vector for i in columns], axis=1)
        for start in range(0, len(a), max(1, _BLOCK // (k + 1))):
            part = slice(start, start + max(1, _BLOCK // (k + 1)))
            pmf = beta_binomial_pmf(k, a[part], b[part])
            mean[part, columns], rest[part, columns] = pmf @ x, pmf @ (1.0 - x)
    return mean, rest


def beta_binomial_moments(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array, Array]:
    """Mean, complement and variance of g(p), p ~ Beta(a, b), by exact Beta-binomial sums.

    ``E[g^2]`` is the expectation of another credit on 2k draws: the product of two Bernstein
    polynomials is one. For any a, b > 0, however large or small; absolute error about 1e-15.

    Examples
    --------
    >>> from bayesatk.core.credit import pass_at
    >>> [moment.round(12).item() for moment in beta_binomial_moments([pass_at(1)], [2.0], [3.0])]
    [0.4, 0.6, 0.04]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean, rest = beta_binomial_means(credits, a, b)
    variance = np.empty_like(mean)
    for k, columns in _by_k(credits):
        squares = np.stack([_squared(credits[i].vector) for i in columns], axis=1)
        co_squares = np.stack([_squared(1.0 - credits[i].vector) for i in columns], axis=1)
        for start in range(0, len(a), max(1, _BLOCK // (2 * k + 1))):
            part = slice(start, start + max(1, _BLOCK // (2 * k + 1)))
            pmf = beta_binomial_pmf(2 * k, a[part], b[part])
            low, high = mean[part, columns], rest[part, columns]
            spread = np.where(low <= high, pmf @ squares - low**2, pmf @ co_squares - high**2)
            variance[part, columns] = np.maximum(spread, 0.0)
    return mean, rest, variance


def _squared(vector: Array) -> Array:
    """Credit vector on 2k draws whose latent value is the square of the given one's."""
    k = len(vector) - 1
    logs = log_binomials(k)
    scaled = vector * np.exp(logs - logs.max())
    product = np.convolve(scaled, scaled)
    return product * np.exp(2.0 * logs.max() - log_binomials(2 * k))


def beta_binomial_pmf(k: int, a: Array, b: Array) -> Array:
    """BetaBinomial(k, a, b) probabilities of 0..k; shape (states, k + 1).

    Examples
    --------
    >>> beta_binomial_pmf(2, np.ones(1), np.ones(1)).round(12).tolist()
    [[0.333333333333, 0.333333333333, 0.333333333333]]
    """
    steps = np.arange(k)
    zero = np.zeros((len(a), 1))
    rise_a = np.concatenate([zero, np.cumsum(np.log(a[:, None] + steps), axis=1)], axis=1)
    rise_b = np.concatenate([zero, np.cumsum(np.log(b[:, None] + steps), axis=1)], axis=1)
    logs = log_binomials(k) + rise_a + rise_b[:, ::-1]
    logs -= logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))
