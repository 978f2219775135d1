"""Expected credit ``E[x_j]`` under the finite distribution of the number of successes j.

* finite: ``k`` draws without replacement from the observed bank, ``j ~ Hypergeometric`` (here);
* latent: success probability ``p`` known, ``j ~ Binomial(k, p)`` (`bayesatk.metrics.credit`);
* posterior: ``p ~ Beta(a, b)``, ``j ~ BetaBinomial(k, a, b)`` (`beta_binomial`).
"""

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Ints
from bayesatk.metrics.credit import Credit


def hypergeometric_pmf(k: int, successes: Array, trials: Array) -> Array:
    """Probability of j = 0, 1, ... successes among ``k`` draws; a row for each bank, k <= trials.

    Examples
    --------
    >>> hypergeometric_pmf(2, np.array([1.0, 3.0]), np.array([4.0, 4.0])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    weight = _hypergeometric_weights(k, successes, trials)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _hypergeometric_weights(k: int, successes: Array, trials: Array) -> Array:
    """Hypergeometric probabilities divided by that of the mode.

    Products of successive ratios run outwards from the mode, so that nothing overflows, no
    factorial is evaluated and only values below 1e-308 of the largest can underflow; the ratio that
    leaves the support is zero, and so are all values beyond it.
    """
    c, n = successes[:, None], trials[:, None]
    spare_failures = n - c - k  # failures left in the bank when j = 0; may be negative
    j = np.arange(min(k, int(successes.max())) + 1.0)
    mode = np.floor((k + 1.0) * ((c + 1.0) / (n + 2.0)))
    mode = np.clip(mode, np.maximum(-spare_failures, 0.0), np.minimum(c, k))
    up = np.where(j > mode, j, mode + 1.0)  # the other entries are not used
    down = np.where(j < mode, j, mode - 1.0)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        ratio_up = (c - up + 1.0) * (k - up + 1.0) / (up * (spare_failures + up))
        ratio_down = (down + 1.0) * (spare_failures + down + 1.0) / ((c - down) * (k - down))
        weight = np.cumprod(np.where(j > mode, np.maximum(ratio_up, 0.0), 1.0), axis=1)
        left = np.where(j < mode, np.maximum(ratio_down, 0.0), 1.0)[:, ::-1]
        weight *= np.cumprod(left, axis=1)[:, ::-1]
    return weight


def until_success(credit: Credit, successes: ArrayLike, trials: ArrayLike) -> Array:
    """Credit of the first ``k`` trials when the trials of a question end at its first success.

    `finite` is biased there: it assumes exchangeable trials, and a success is always the last.

    Returns
    -------
    ndarray
        ``x_0`` of a question with more than k trials, ``x_c`` with k; with fewer ``x_1``, if it was
        solved and further successes earn nothing more, else NaN.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> until_success(pass_at(2), [1, 1, 1, 0, 0], [1, 2, 3, 3, 1]).tolist()
    [1.0, 1.0, 0.0, 0.0, nan]
    """
    c, n = np.broadcast_arrays(np.asarray(successes, np.int64), np.asarray(trials, np.int64))
    credits = credit.vector
    credit_of_solved = credits[1] if (credits[1:] == credits[1]).all() else np.nan
    credit_of_k = np.where(n > credit.k, credits[0], credits[np.minimum(c, credit.k)])
    return np.asarray(
        np.where(n >= credit.k, credit_of_k, np.where(c > 0, credit_of_solved, np.nan))
    )


def finite(credit: Credit, successes: ArrayLike, trials: ArrayLike) -> Array:
    r"""Return the expected credit of ``k`` draws without replacement, for each state.

    .. math:: \sum_j x_j \binom{c}{j} \binom{n - c}{k - j} \Big/ \binom{n}{k}

    for c successes in n trials. Every distinct state is computed once, from at most ``k + 1``
    terms. NaN where ``k > trials``.

    Returns
    -------
    ndarray
        Relative error at most 1e-13 for ``trials <= 2000``, down to values of 1e-297; below 1e-12
        up to 10^9 trials and k = 20 000.

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_hat
    >>> finite(pass_hat(2), [3, 4], 5).round(12).tolist()
    [0.3, 0.6]
    >>> finite(pass_hat(2), 500_000_000, 1_000_000_000).round(6).item()
    0.25
    """
    c, n = np.broadcast_arrays(np.asarray(successes, np.int64), np.asarray(trials, np.int64))
    base = int(n.max(initial=0)) + 1
    states, state_index = np.unique(base * n + c, return_inverse=True)
    return _at_states(credit, *np.divmod(states, base))[state_index.reshape(n.shape)]


def _at_states(credit: Credit, trials: Ints, successes: Ints) -> Array:
    """Return the expected credit at distinct states, O(min(k, c)) each; NaN where k > trials."""
    n, c, expected = trials.astype(float), successes.astype(float), np.full(len(trials), np.nan)
    order = np.argsort(c, kind="stable")  # neighbours need about as many terms
    order = order[n[order] >= credit.k]
    width = np.minimum(c[order], credit.k) + 1.0
    start = 0
    while start < len(order):
        cumulative_terms = np.cumsum(np.ones(len(order) - start)) * width[start:]
        stop = start + max(
            1, int(np.searchsorted(cumulative_terms, 1_000_000, side="right"))
        )  # 8 MB
        block = order[start:stop]
        weight = _hypergeometric_weights(credit.k, c[block], n[block])
        with np.errstate(under="ignore"):
            # Running sums, so that a sure credit is exactly one and blocks do not alter a state.
            earned = np.cumsum(weight * credit.vector[: weight.shape[1]], axis=1)[:, -1]
            expected[block] = earned / np.cumsum(weight, axis=1)[:, -1]
        start = stop
    return expected
