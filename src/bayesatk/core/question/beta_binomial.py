"""The posterior law: moments of credits under ``p ~ Beta(a, b)`` as exact Beta-binomial sums.

Slower than the shared quadrature of `bayesatk.core.question.moments` and less sharp for variances
of saturated states, but right for any a, b > 0, however large, small or far apart.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from bayesatk.core.question.laws import log_binomials
from bayesatk.metrics.credit import Array, Credit

_BLOCK = 4_000_000  # floats in one table of probabilities: 32 MB


def _at_an_end(credit: Credit) -> bool:
    """Whether a credit of so large a k that a table does not pay is pass@k or pass^k."""
    return credit.k > 200 and credit.shape == "threshold" and credit.threshold in (1, credit.k)


def _end_powers(credit: Credit, a: Array, b: Array, times: int) -> tuple[Array, Array]:
    """``E g`` and ``E (1 - g)`` of pass^k and pass@k at ``times`` k draws: one is a power."""
    if credit.threshold > 1:
        power = log_power_mean(a, b, times * credit.k)
        return np.exp(power), -np.expm1(power)
    power = log_power_mean(b, a, times * credit.k)
    return -np.expm1(power), np.exp(power)


def log_power_mean(a: Array, b: Array, k: int) -> Array:
    """Log of ``E p^k``, ``p ~ Beta(a, b)``: ``sum_{i<k} log(1 - b / (a + b + i))``.

    The terms from the 64th on by the Euler-Maclaurin formula, for the cost of few.

    Examples
    --------
    >>> log_power_mean(np.array([2.0]), np.array([3.0]), 1).round(12).item()  # log(2/5)
    -0.916290731874
    """

    def term(x: Array, b: Array) -> Array:
        """Log of x / (x + b), without cancellation on either side."""
        small = b < x
        near = np.log1p(-np.where(small, b / (x + b), 0.0))
        return np.asarray(np.where(small, near, np.log(x) - np.log(x + b)))

    summed = 64  # terms one by one; what the formula leaves out is then below 1e-8
    total = term(a[:, None] + np.arange(min(k, summed)), b[:, None]).sum(axis=1)
    if k <= summed:
        return np.asarray(total)
    low, high = a + summed, a + float(k)

    def slope(x: Array) -> Array:
        return np.asarray(b / (x * (x + b)))

    # The integral in log x, in which the terms are as smooth as they get.
    z, weight = leggauss(32)
    half = 0.5 * np.log1p((k - summed) / low)
    x = low * np.exp(np.outer(z + 1.0, half))
    total += half * (weight @ (x * term(x, b)))
    return np.asarray(
        total + 0.5 * (term(low, b) - term(high, b)) + (slope(high) - slope(low)) / 12.0
    )


def _by_k(credits: Sequence[Credit]) -> Iterator[tuple[int, list[int]]]:
    """Yield each k with the positions of its credits that are worked out by tables."""
    tables = (i for i, credit in enumerate(credits) if not _at_an_end(credit))
    order = sorted(tables, key=lambda i: credits[i].k)
    for k, group in groupby(order, key=lambda i: credits[i].k):
        yield k, list(group)


def beta_binomial_means(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array]:
    """Mean of g(p), p ~ Beta(a, b), and its complement: the posterior law, exactly.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> [mean.round(12).item() for mean in beta_binomial_means([pass_at(2)], [1.0], [1.0])]
    [0.666666666667, 0.333333333333]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean = np.empty((len(a), len(credits)))
    complement = np.empty_like(mean)
    for i, credit in enumerate(credits):
        if _at_an_end(credit):
            mean[:, i], complement[:, i] = _end_powers(credit, a, b, 1)
    for k, columns in _by_k(credits):
        x = np.stack([credits[i].vector for i in columns], axis=1)
        for start in range(0, len(a), max(1, _BLOCK // (k + 1))):
            rows = slice(start, start + max(1, _BLOCK // (k + 1)))
            pmf = beta_binomial_pmf(k, a[rows], b[rows])
            mean[rows, columns], complement[rows, columns] = pmf @ x, pmf @ (1.0 - x)
    return mean, complement


def beta_binomial_moments(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array, Array]:
    """Mean, complement and variance of g(p), p ~ Beta(a, b), by exact Beta-binomial sums.

    ``E[g^2]`` is the expectation of another credit on 2k draws: the product of two Bernstein
    polynomials is one. For any a, b > 0, however large or small; absolute error about 1e-15.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> [moment.round(12).item() for moment in beta_binomial_moments([pass_at(1)], [2.0], [3.0])]
    [0.4, 0.6, 0.04]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean, complement = beta_binomial_means(credits, a, b)
    variance = np.empty_like(mean)
    for i, credit in enumerate(credits):
        if _at_an_end(credit):
            twice = _end_powers(credit, a, b, 2)
            power_mean, square_mean = (
                (mean, twice[0]) if credit.threshold > 1 else (complement, twice[1])
            )
            variance[:, i] = np.maximum(square_mean - power_mean[:, i] ** 2, 0.0)
    for k, columns in _by_k(credits):
        squares = np.stack([_squared(credits[i].vector) for i in columns], axis=1)
        co_squares = np.stack([_squared(1.0 - credits[i].vector) for i in columns], axis=1)
        for start in range(0, len(a), max(1, _BLOCK // (2 * k + 1))):
            rows = slice(start, start + max(1, _BLOCK // (2 * k + 1)))
            pmf = beta_binomial_pmf(2 * k, a[rows], b[rows])
            low, high = mean[rows, columns], complement[rows, columns]
            spread = np.where(low <= high, pmf @ squares - low**2, pmf @ co_squares - high**2)
            variance[rows, columns] = np.maximum(spread, 0.0)
    return mean, complement, variance


def _squared(vector: Array) -> Array:
    """Credit vector on 2k draws whose latent value is the square of the given one's."""
    k = len(vector) - 1
    logs = log_binomials(k)
    scaled = vector * np.exp(logs - logs.max())
    product = np.convolve(scaled, scaled)
    # Where the product has vanished the factor may be beyond the largest number.
    return product * np.exp(np.minimum(2.0 * logs.max() - log_binomials(2 * k), 700.0))


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
