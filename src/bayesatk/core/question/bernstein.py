"""Credits as sums of Bernstein polynomials of one degree, so that many cost as much as few.

A credit of k trials is a credit of K >= k trials of which k are chosen at random (degree
elevation): all credits of at most K trials are sums of ``C(K, c) p^c (1-p)^(K-c)``, c = 0..K, with
coefficients from 0 to 1, so that nothing cancels. Squares and cubes of credits are such sums of
degrees 2K and 3K.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk.core.question.expected_credit import finite
from bayesatk.metrics.credit import Credit, latent

_MAX_FLOATS_IN_CACHE = 16_384  # probabilities in a block, whose powers stay in the cache
_POLYNOMIALS_PER_CREDIT = 12  # so many cost about as much as one credit computed separately
_MAX_K = 500  # beyond it powers of p underflow and binomial coefficients nearly overflow


def bernstein_coefficients(credits: Sequence[Credit], k: int) -> Array:
    """Bernstein coefficients of degree k of credits of k trials or fewer; shape (k + 1, credits).

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> bernstein_coefficients([pass_at(1), pass_at(2)], 2).tolist()
    [[0.0, 0.0], [0.5, 1.0], [1.0, 1.0]]
    """
    return np.stack([finite(credit, np.arange(k + 1), k) for credit in credits], axis=1)


@lru_cache(maxsize=64)
def power_coefficients(credits: tuple[Credit, ...]) -> Array:
    """Bernstein coefficients of g, g^2, g^3 and of 1 - g, its square and its cube.

    Their degree is 3 k, with k the largest number of trials of a credit.

    Returns
    -------
    ndarray, shape (3 k + 1, 6 credits)
        g of all credits, then g^2 of all, and so on.
    """
    k = max(credit.k for credit in credits)
    columns = []
    for complemented in (False, True):
        for power in (1, 2, 3):
            columns += [_power(credit, power, complemented, 3 * k) for credit in credits]
    coefficients = np.stack(columns, axis=1)
    coefficients.setflags(write=False)  # cached
    return coefficients


def elevate_degree(coefficients: Array, trials: int) -> Array:
    """Return the Bernstein coefficients of the same polynomials for a higher degree.

    One of n + 1 trials with c successes is left out at random:
    ``b'[c] = c / (n + 1) b[c - 1] + (1 - c / (n + 1)) b[c]``.

    Examples
    --------
    >>> elevate_degree(np.array([[0.0], [1.0]]), 2).ravel().tolist()
    [0.0, 0.5, 1.0]
    """
    for degree in range(len(coefficients), trials + 1):
        share = (np.arange(degree + 1) / degree)[:, None]
        failure_left_out = np.concatenate([coefficients, coefficients[-1:]])
        success_left_out = np.concatenate([coefficients[:1], coefficients])
        coefficients = share * success_left_out + (1.0 - share) * failure_left_out
    return coefficients


def _power(credit: Credit, power: int, complemented: bool, k: int) -> Array:
    """Bernstein coefficients of degree k of a power of g, or of 1 - g."""
    binomial = np.array([comb(credit.k, j) for j in range(credit.k + 1)], float)
    vector = 1.0 - credit.vector if complemented else credit.vector
    product = np.ones(1)
    for _ in range(power):
        product = np.convolve(product, binomial * vector)
    trials = power * credit.k
    product /= [float(comb(trials, j)) for j in range(trials + 1)]
    return finite(Credit.of(np.clip(product, 0.0, 1.0)), np.arange(k + 1), k)


def latent_means(
    credits: Sequence[Credit], p: Array, shares: Array, factor: Array | None = None
) -> Array:
    """Return weighted sums over questions of latent values at given success probabilities.

    Parameters
    ----------
    credits : sequence of Credit
    p : ndarray, shape (draws, questions)
    shares : ndarray, shape (questions, sums)
        Weight of a question in each sum.
    factor : ndarray, shape (draws, questions), optional
        Further weight of a question in a draw.

    Returns
    -------
    ndarray, shape (draws, sums, credits)
        ``sum_q shares[q] factor[d, q] g(p[d, q])``.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> latent_means([pass_at(1), pass_at(2)], np.array([[0.5, 1.0]]), np.full((2, 1), 0.5))
    array([[[0.75 , 0.875]]])
    """
    sums = np.empty((len(p), shares.shape[1], len(credits)))
    k = _largest_common_k(credits)
    common = [position for position, credit in enumerate(credits) if credit.k <= k]
    if common:
        coefficients = bernstein_coefficients([credits[position] for position in common], k)
        coefficients *= np.array([float(comb(k, c)) for c in range(k + 1)])[:, None]
        rows = max(1, _MAX_FLOATS_IN_CACHE // max(p.shape[1], 1))
        for start in range(0, len(p), rows):
            block = slice(start, start + rows)
            weight = None if factor is None else factor[block]
            sums[block, :, common] = _bernstein_sums(k, p[block], shares, weight) @ coefficients
    for position in set(range(len(credits))).difference(common):
        with np.errstate(divide="ignore"):
            logs = (np.maximum(log, -1e15).ravel() for log in (np.log(p), np.log1p(-p)))
        values = latent(credits[position], *logs)[0].reshape(p.shape)
        sums[..., position] = (values if factor is None else values * factor) @ shares
    return sums


def _largest_common_k(credits: Sequence[Credit]) -> int:
    """Largest k up to which credits cost less as sums of common polynomials; 0 if none does."""
    ks = sorted(credit.k for credit in credits if credit.k <= _MAX_K)
    return max(
        (k for i, k in enumerate(ks) if k + 1 <= _POLYNOMIALS_PER_CREDIT * (i + 1)), default=0
    )


def _bernstein_sums(k: int, p: Array, shares: Array, factor: Array | None) -> Array:
    """Return sums of ``p^c (1-p)^(k-c)`` for c = 0..k; shape (draws, sums, k + 1)."""
    sums = np.empty((len(p), shares.shape[1], k + 1))
    q = 1.0 - p
    q_powers = [np.ones_like(p) if factor is None else factor]
    for _ in range(k):
        q_powers.append(q_powers[-1] * q)
    p_power = np.ones_like(p)
    for c in range(k + 1):
        sums[..., c] = (p_power * q_powers[k - c]) @ shares
        p_power = p_power * p
    return sums
