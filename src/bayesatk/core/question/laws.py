"""Expected credit under the finite, latent and posterior laws of the number of successes.

* finite: ``k`` draws without replacement from the observed bank, ``j ~ Hypergeometric``;
* latent: success probability ``p`` known, ``j ~ Binomial(k, p)``;
* posterior: ``p ~ Beta(a, b)``, ``j ~ BetaBinomial(k, a, b)`` (moments:
  `bayesatk.core.question.moments`).
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bayesatk.metrics.credit import Array, Credit, Shape


@lru_cache(maxsize=512)
def log_binomials(n: int) -> Array:
    """Return ``log C(n, j)`` for j = 0..n, each the logarithm of an exact integer.

    Examples
    --------
    >>> np.exp(log_binomials(4)).round(12).tolist()
    [1.0, 4.0, 6.0, 4.0, 1.0]
    """
    if n > 5000:
        # Exact integers of thousands of digits stop paying; gammaln is good to 1e-12 here.
        j = np.arange(n + 1)
        logs = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    else:
        half = [1]
        for i in range(1, n // 2 + 1):
            half.append(half[-1] * (n - i + 1) // i)
        lower = [math.log(value) for value in half]
        logs = np.array(lower + lower[::-1][1 - n % 2 :])
    logs.setflags(write=False)
    return logs


def _cumulative_ratio(ratios: Array) -> Array:
    """Weights proportional to a sequence with the given successive ratios, scaled to sum one.

    Products run outwards from the largest weight, so nothing overflows and only weights below
    1e-308 of the largest can vanish.
    """
    peak = int(np.searchsorted(-ratios, -1.0, side="left"))
    with np.errstate(under="ignore"):
        right = np.cumprod(ratios[peak:])
        left = np.cumprod(1.0 / ratios[:peak][::-1])[::-1]
        weights = np.concatenate([left, [1.0], right])
        return np.asarray(weights / weights.sum())


def _increments(trials: int, k: int, threshold: int) -> Array:
    """Return P(j >= threshold) gained by the (c+1)-th success, for c = 0..trials-1.

    A further success matters when it is drawn (k/n) and exactly threshold - 1 of the c others
    are among the k - 1 remaining draws: (k/n) Hypergeometric(n-1, c, k-1) at threshold - 1. As a
    function of c these n numbers are a probability vector (they telescope from 0 to 1), so
    successive ratios are enough and no factorial is evaluated.
    """
    gained = np.zeros(trials)
    c = np.arange(threshold - 1, trials - 1 - (k - threshold), dtype=float)
    ratios = (c + 1) / (c + 2 - threshold) * (trials - 1 - c - (k - threshold)) / (trials - 1 - c)
    gained[threshold - 1 : threshold + len(c)] = _cumulative_ratio(ratios)
    return gained


def _from_increments(gained: Array) -> Array:
    """Sum non-negative gains up: a table over c = 0..n that cannot cancel."""
    return np.concatenate([[0.0], np.cumsum(gained)])


def _threshold_table(credit: Credit, trials: int) -> Array:
    table = _from_increments(_increments(trials, credit.k, credit.threshold))
    table[trials - (credit.k - credit.threshold) :] = 1.0
    return np.minimum(table, 1.0)


def _excess_table(credit: Credit, trials: int) -> Array:
    """Mean of ``(2/k)(j - h)^+``: the (c+1)-th success gains (2/n) P(Hyp(n-1, c, k-1) >= h)."""
    k, half = credit.k, credit.threshold
    if k - 1 < half:
        return np.zeros(trials + 1)
    tail = _from_increments(_increments(trials - 1, k - 1, half))
    return _from_increments(2.0 / trials * tail)


def _area_table(credit: Credit, trials: int) -> Array:
    """Return AUC@k for every count, from the sum of pass@1..pass@k.

    That sum grows by (n+1)/((c+1)(c+2)) P(Hyp(n+1, c+2, k+1) >= 2) at the (c+1)-th success,
    because C(c, j)/((j+1)(j+2)) = C(c+2, j+2)/((c+1)(c+2)).
    """
    k = credit.k
    c = np.arange(trials, dtype=float)
    at_least_two = _from_increments(_increments(trials + 1, k + 1, 2))[2:]
    area = _from_increments((trials + 1) / ((c + 1) * (c + 2)) * at_least_two[:trials])
    ends = np.arange(trials + 1) / trials + _from_increments(_increments(trials, k, 1))
    return np.minimum((area - 0.5 * ends) / (k - 1), 1.0)


def _general_table(credit: Credit, trials: int) -> Array:
    """Any credit: expectation over the full hypergeometric distribution, O(n k)."""
    c = np.arange(trials + 1)
    return _at_states(credit, c, np.full_like(c, trials))


def hypergeometric_pmf(k: int, successes: Array, trials: Array) -> Array:
    """Probability of j = 0, 1, ... successes among ``k`` draws; a row for each bank, k <= trials.

    Products of successive ratios run outwards from the most likely j, as in `_cumulative_ratio`;
    the factor that leaves the support is zero, and so is all beyond it.
    """
    c, n = successes[:, None], trials[:, None]
    spare_failures = (
        n - c - k
    )  # failures less those that would be drawn with j = 0; may be negative
    j = np.arange(min(k, int(successes.max())) + 1.0)
    mode = np.floor((k + 1.0) * ((c + 1.0) / (n + 2.0)))
    mode = np.clip(mode, np.maximum(-spare_failures, 0.0), np.minimum(c, k))
    up = np.where(j > mode, j, mode + 1.0)  # stand-ins, where nothing is to be multiplied
    down = np.where(j < mode, j, mode - 1.0)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        rises = (c - up + 1.0) * (k - up + 1.0) / (up * (spare_failures + up))
        falls = (down + 1.0) * (spare_failures + down + 1.0) / ((c - down) * (k - down))
        weight = np.cumprod(np.where(j > mode, np.maximum(rises, 0.0), 1.0), axis=1)
        left = np.where(j < mode, np.maximum(falls, 0.0), 1.0)[:, ::-1]
        weight *= np.cumprod(left, axis=1)[:, ::-1]
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _at_states(credit: Credit, successes: ArrayLike, trials: ArrayLike) -> Array:
    """Finite-law expectations at single states, O(min(k, c)) each; NaN where k > trials."""
    c, n = np.asarray(successes, float), np.asarray(trials, float)
    values, result = credit.vector, np.full(len(c), np.nan)
    order = np.argsort(c, kind="stable")  # neighbours need about as many terms
    order = order[n[order] >= credit.k]
    width = np.minimum(c[order], credit.k) + 1.0
    start = 0
    while start < len(order):
        most = np.cumsum(np.ones(len(order) - start)) * width[start:]
        stop = start + max(1, int(np.searchsorted(most, 1_000_000, side="right")))  # 8 MB
        block = order[start:stop]
        pmf = hypergeometric_pmf(credit.k, c[block], n[block])
        with np.errstate(under="ignore"):
            result[block] = pmf @ values[: pmf.shape[1]]
        start = stop
    return np.asarray(np.minimum(result, 1.0))


_TABLES: dict[Shape, Callable[[Credit, int], Array]] = {
    "threshold": _threshold_table,
    "excess": _excess_table,
    "area": _area_table,
    "general": _general_table,
}


def finite_table(credit: Credit, trials: int) -> Array:
    """Finite-law expectation of a credit for every count 0..trials; NaN when k > trials.

    Parameters
    ----------
    credit : Credit
        The credit vector; its shape selects an O(trials) algorithm where one exists.
    trials : int
        Size of the bank that the ``k`` draws come from. `finite` needs no table where it is large.

    Returns
    -------
    ndarray, shape (trials + 1,)
        ``E[x_j]``, ``j ~ Hypergeometric(trials, c, k)``. Relative error at most 1e-13 for
        ``trials <= 2000``, down to values of 1e-297: every table is a sum of non-negative terms.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> finite_table(pass_at(2), 4).round(4).tolist()
    [0.0, 0.5, 0.8333, 1.0, 1.0]
    """
    if credit.k > trials:
        return np.full(trials + 1, np.nan)
    return _TABLES[credit.shape](credit, trials)


def finite(credit: Credit, successes: ArrayLike, trials: ArrayLike) -> Array:
    """Finite-law expectation of a credit, elementwise in (successes, trials).

    Up to 4096 trials one table per distinct number of trials serves all questions; beyond, the
    distinct states are worked out one by one, so nothing grows with the number of trials. Relative
    error there: below 1e-12 up to 10^9 trials and k = 20 000. NaN where ``k > trials``.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_hat
    >>> finite(pass_hat(2), [3, 4], 5).round(12).tolist()
    [0.3, 0.6]
    >>> finite(pass_hat(2), 500_000_000, 1_000_000_000).round(6).item()
    0.25
    """
    c, n = np.broadcast_arrays(np.asarray(successes, np.int64), np.asarray(trials, np.int64))
    large = n > 4096
    if not large.any():
        return _from_tables(credit, c, n)
    result = np.empty(n.shape)
    result[~large] = _from_tables(credit, c[~large], n[~large])
    states, state = np.unique(np.stack([c[large], n[large]]), axis=1, return_inverse=True)
    result[large] = _at_states(credit, *states)[state.ravel()]
    return result


def _from_tables(credit: Credit, successes: NDArray[np.int64], trials: NDArray[np.int64]) -> Array:
    sizes, size_index = np.unique(trials, return_inverse=True)
    if len(sizes) == 0:
        return np.empty(trials.shape)
    tables = [finite_table(credit, int(size)) for size in sizes]
    offsets = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]])
    position = offsets[size_index.reshape(trials.shape)] + successes
    return np.asarray(np.concatenate(tables)[position])


def binomial_expectation(
    credits: NDArray[np.float64], log_p: ArrayLike, log_q: ArrayLike
) -> tuple[Array, Array]:
    """Latent-law expectation of credits with the same ``k``, and its complement.

    Parameters
    ----------
    credits : ndarray, shape (k + 1, m)
        Credit vectors as columns.
    log_p, log_q : array_like, shape (q,)
        ``log p`` and ``log (1 - p)``; given apart so that neither end loses digits.

    Returns
    -------
    value, complement : ndarray, shape (q, m)
        ``g(p) = sum_j x_j C(k, j) p^j (1-p)^(k-j)`` and ``1 - g(p)``, each a sum of non-negative
        terms and so each accurate relative to itself.

    Examples
    --------
    >>> value, complement = binomial_expectation(
    ...     np.array([[0.0], [1.0], [1.0]]), np.log([0.5]), np.log([0.5]))
    >>> value.round(12).item(), complement.round(12).item()
    (0.75, 0.25)
    """
    k = len(credits) - 1
    j = np.arange(k + 1)
    log_p, log_q = np.asarray(log_p)[:, None], np.asarray(log_q)[:, None]
    pmf = np.exp(log_binomials(k) + j * log_p + (k - j) * log_q)
    return pmf @ credits, pmf @ (1.0 - credits)
