"""Moments of credits when ``p ~ Beta(a, b)``, for any a, b > 0.

Means are sums of Beta-binomial probabilities. Variances are integrals of squared deviations of a
credit or of its complement, whichever is smaller, so that values near 0 or 1 keep their digits.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array
from bayesatk.core.numerics.quadrature import BetaRule, beta_windows
from bayesatk.metrics.credit import Credit, latent

_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB


def latent_on_nodes(credits: Sequence[Credit], rule: BetaRule) -> tuple[Array, Array]:
    """Latent values of credits, and their complements, at the nodes of a quadrature rule.

    Returns
    -------
    value, complement : ndarray, shape (nodes, credits)
    """
    pairs = [latent(credit, rule.log_p, rule.log_q) for credit in credits]
    value, complement = (np.stack(values, axis=1) for values in zip(*pairs, strict=True))
    return value, complement


def _columns_by_k(credits: Sequence[Credit]) -> Iterator[tuple[list[int], Array]]:
    """Yield positions of credits with the same k, and their vectors as columns."""
    positions: dict[int, list[int]] = {}
    for i, credit in enumerate(credits):
        positions.setdefault(credit.k, []).append(i)
    for columns in positions.values():
        yield columns, np.stack([credits[i].vector for i in columns], axis=1)


def beta_binomial_means(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array]:
    r"""Mean of g(p), p ~ Beta(a, b), and its complement.

    .. math:: E\,g(p) = \sum_{j=0}^k x_j \binom{k}{j} \frac{B(a + j, b + k - j)}{B(a, b)}

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> [mean.round(12).item() for mean in beta_binomial_means([pass_at(2)], [1.0], [1.0])]
    [0.666666666667, 0.333333333333]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean, complement = np.empty((2, len(a), len(credits)))
    for columns, x in _columns_by_k(credits):
        rows = max(1, _MAX_FLOATS_PER_BLOCK // len(x))
        for start in range(0, len(a), rows):
            block = slice(start, start + rows)
            pmf = beta_binomial_pmf(len(x) - 1, a[block], b[block])
            mean[block, columns], complement[block, columns] = pmf @ x, pmf @ (1.0 - x)
    return mean, complement


def beta_binomial_moments(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array, Array]:
    """Mean, complement and variance of g(p), p ~ Beta(a, b).

    Means are exact Beta-binomial sums. Variances are ``E[(g - E g)^2]`` by quadrature, because
    ``E[g^2] - (E g)^2`` cancels where trials are many.

    Returns
    -------
    mean, complement, variance : ndarray, shape (states, credits)
        For any a, b > 0, however large or small. Relative error against exact rationals: means at
        most 1e-12, variances at most 1e-11 for a + b <= 258; 1e-10 and 1e-9 for k up to 2000 and
        a + b up to 10^6.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> [moment.round(12).item() for moment in beta_binomial_moments([pass_at(1)], [2.0], [3.0])]
    [0.4, 0.6, 0.04]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean, complement = beta_binomial_means(credits, a, b)
    variance = np.empty_like(mean)
    for rows, window in beta_windows(a, b, 2 * max(credit.k for credit in credits)):
        both = latent_on_nodes(credits, window.rule)
        for i in range(len(credits)):
            # The smaller of a credit and its complement keeps its digits.
            centre = np.minimum(mean[rows, i], complement[rows, i])
            side = (mean[rows, i] > complement[rows, i]).astype(np.intp)
            values = np.stack([values[:, i] for values in both])
            gap = values[side[:, None], window.position] - centre[:, None]
            variance[rows, i] = np.einsum("sn,sn->s", window.probability, gap * gap)
    return mean, complement, variance


def beta_binomial_pmf(k: int, a: Array, b: Array) -> Array:
    """Beta-binomial probabilities of 0..k successes in k trials; shape (states, k + 1).

    Examples
    --------
    >>> beta_binomial_pmf(2, np.ones(1), np.ones(1)).round(12).tolist()
    [[0.333333333333, 0.333333333333, 0.333333333333]]
    """
    j, a, b = np.arange(k), a[:, None], b[:, None]
    ratios = (k - j) * (a + j) / ((j + 1.0) * (b + (k - 1 - j)))  # of successive probabilities
    logs = np.zeros((len(a), k + 1))
    np.cumsum(np.log(ratios), axis=1, out=logs[:, 1:])
    logs -= logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))
