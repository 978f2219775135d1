"""Scored categories: expected value of ``k`` draws from a bank, and its posterior moments.

The highest of ``k`` scores is a sum of pass@k's, one for each step of the scale: with the scores in
ascending order, ``E[max] = w_1 + sum_c (w_c+1 - w_c) P(at least one draw above w_c)``. The lowest
is ``E[min of w] = -E[max of -w]``. The mean score is ``k = 1``. Any other value function is a
vector over the compositions of ``k``.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.question.expected_credit import finite
from bayesatk.metrics.category_credit import CategoryCredit, ScoredCredit, by_score, log_beta_moment
from bayesatk.metrics.credit import log_multinomial, pass_at


def _steps(scores: ArrayLike, counts: Array) -> tuple[float, Array, Array, Array]:
    """Lowest score, steps between scores, and the counts above and not above each step."""
    scale, ascending = by_score(np.asarray(scores, float), counts)
    above = np.cumsum(ascending[..., :0:-1], axis=-1)[..., ::-1]
    below = np.cumsum(ascending, axis=-1)[..., :-1]
    return float(scale[0]), np.diff(scale), above, below


def category_finite(credit: CategoryCredit, counts: ArrayLike, scores: ArrayLike) -> Array:
    """Return the expected value of ``k`` trials drawn without replacement from the observed ones.

    Parameters
    ----------
    credit : CategoryCredit
    counts : array_like of int, shape (..., categories)
    scores : array_like, shape (categories,)

    Returns
    -------
    ndarray, shape (...)
        NaN where ``k`` exceeds the trials. For the highest score every term is non-negative.

    Examples
    --------
    >>> category_finite(CategoryCredit(2), [[1, 1, 1]], [0.0, 0.5, 1.0]).round(12).item()  # 2.5/3
    0.833333333333
    """
    counts = np.asarray(counts, np.int64)
    trials = counts.sum(axis=-1)
    if credit.lowest:
        return -category_finite(CategoryCredit(credit.k), counts, -np.asarray(scores, float))
    if credit.value is None and credit.k == 1:
        lowest_score = float(np.min(np.asarray(scores, float)))
        with np.errstate(invalid="ignore"):  # without trials
            gain = counts @ (np.asarray(scores, float) - lowest_score) / trials
        return np.asarray(lowest_score + gain)  # exact where all have the lowest score
    if credit.value is None:
        lowest, steps, above, _ = _steps(scores, counts)
        reached = finite(pass_at(credit.k), above, trials[..., None])
        return np.asarray(lowest + reached @ steps)
    drawn, values = credit.values(scores)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        log_choices = _log_choose(counts, credit.k)
        logs = sum(log_choices[..., c, drawn[:, c]] for c in range(counts.shape[-1]))
        weight = np.exp(logs - _log_choose(trials, credit.k)[..., -1:])
        expected = values[0] + weight @ (values - values[0])  # exact where all have the same value
    return np.where(trials >= credit.k, expected, np.nan)


def _log_choose(n: Ints, k: int) -> Array:
    """Log binomial coefficients ``C(n, i)`` for i = 0..k; minus infinity where i > n."""
    i = np.arange(k)
    factors = np.maximum(n[..., None] - i, 0) / (i + 1.0)
    steps = np.concatenate([np.ones((*n.shape, 1)), factors], axis=-1)
    return np.asarray(np.cumsum(np.log(steps), axis=-1))


@np.errstate(under="ignore")
def category_moments(
    credit: CategoryCredit, alpha: ArrayLike, scores: ArrayLike
) -> tuple[Array, Array]:
    """Posterior mean and variance of the latent value when ``p ~ Dirichlet(alpha)``.

    Parameters
    ----------
    credit : CategoryCredit
    alpha : array_like, shape (..., categories)
    scores : array_like, shape (categories,)

    Returns
    -------
    mean, variance : ndarray, shape (...)

    Notes
    -----
    With ``F_c`` the probability of a score up to ``w_c``, ``F_b / F_c`` and ``F_c`` are independent
    for ``b <= c``, so ``Cov(F_b^k, F_c^k) = E F_b^k E F_c^k (e^d - 1)`` with ``d = sum_i log(1 + k
    A_above / ((A + k + i)(A_below + i)))``, where A_above and A_below are the Dirichlet parameters
    of the scores above and up to ``w_c`` and A is their sum: all terms are positive.

    Examples
    --------
    >>> mean, variance = category_moments(CategoryCredit(1), [1.0, 1.0], [0.0, 1.0])
    >>> mean.round(12).item(), variance.round(12).item()
    (0.5, 0.083333333333)
    """
    alpha = np.asarray(alpha, float)
    if credit.lowest:
        highest = CategoryCredit(credit.k)
        mean, variance = category_moments(highest, alpha, -np.asarray(scores, float))
        return -mean, variance
    if credit.value is not None:
        return _general_moments(credit, alpha, scores)
    total = alpha.sum(axis=-1)[..., None]
    if credit.k == 1:  # a mean of scores
        scale, ascending_alpha = by_score(np.asarray(scores, float), alpha)
        share, above = ascending_alpha / total, scale - scale[0]
        mean = share @ above
        gap = above - mean[..., None]
        return scale[0] + mean, (share * gap**2).sum(axis=-1) / (total[..., 0] + 1.0)
    lowest, steps, above, below = _steps(scores, alpha)
    log_missed, log_ratio = log_beta_moment(below, above, credit.k), np.zeros(above.shape)
    for i in range(credit.k):
        log_ratio += np.log1p(credit.k / (total + i + credit.k) * above / (below + i))
    weighted = np.exp(log_missed) * steps
    later = np.cumsum(weighted, axis=-1)  # sum over b <= c
    pairs = 2.0 * later - weighted
    excess = np.where(  # E F^2k / E F^k - E F^k, where E F^2k / E F^k is at most one
        log_ratio < 1.0,
        np.exp(log_missed) * np.expm1(np.minimum(log_ratio, 1.0)),
        np.exp(log_missed + log_ratio) - np.exp(log_missed),
    )
    variance = (excess * steps * pairs).sum(axis=-1)
    return np.asarray(lowest - np.expm1(log_missed) @ steps), variance


def _general_moments(
    credit: CategoryCredit, alpha: Array, scores: ArrayLike
) -> tuple[Array, Array]:
    """Mean, and variance as a sum over pairs of compositions of two independent sets of k trials.

    ``Var g(p) = sum_ab (v_a - mean)(v_b - mean) P(a, b)``, P Dirichlet-multinomial.
    """
    drawn, values = credit.values(scores)
    log_orders = log_multinomial(drawn)
    rows = alpha.reshape(-1, alpha.shape[-1])
    mean, variance = np.empty(len(rows)), np.empty(len(rows))
    for row, row_alpha in enumerate(rows):
        log_rises = [_log_rising_factorials(a, 2 * credit.k) for a in row_alpha]
        total = _log_rising_factorials(float(row_alpha.sum()), 2 * credit.k)
        pmf = np.exp(log_orders + _sum_at(log_rises, drawn) - total[credit.k])
        mean[row] = values[0] + pmf @ (values - values[0])
        gap = values - mean[row]
        variance[row] = 0.0
        for first, weight, value in zip(drawn, log_orders, gap, strict=True):
            joint = np.exp(
                weight + log_orders + _sum_at(log_rises, drawn + first) - total[2 * credit.k]
            )
            variance[row] += value * (joint @ gap)
    shape = alpha.shape[:-1]
    return mean.reshape(shape), np.maximum(variance, 0.0).reshape(shape)


def _sum_at(tables: list[Array], counts: Ints) -> Array:
    """Sum over categories of a table at the count of each; shape (compositions,)."""
    return np.asarray(sum(table[column] for table, column in zip(tables, counts.T, strict=True)))


def _log_rising_factorials(alpha: float, count_max: int) -> Array:
    """Log of ``alpha (alpha + 1) ... (alpha + i - 1)`` for i = 0..count_max."""
    return np.concatenate([[0.0], np.cumsum(np.log(alpha + np.arange(count_max)))])


def judged_moments(judged: Sequence[ScoredCredit], alpha: Array) -> tuple[Array, Array]:
    """Means and variances under Dirichlet(alpha); shapes (..., len(judged))."""
    pairs = [category_moments(metric.credit, alpha, metric.scores) for metric in judged]
    mean, variance = (np.stack(moments, axis=-1) for moments in zip(*pairs, strict=True))
    return mean, variance
