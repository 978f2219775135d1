"""Best of k by a verifier: expected credit of the trial with the highest score among ``k``.

Ties are broken uniformly at random, so trials with equal scores count by their share of right ones.

* finite: ``k`` draws without replacement from the observed trials;
* latent: the probability of a right trial, and the distributions of the scores of right and of
  wrong trials over ordered bins, are known.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from bayesatk._tools.arrays import Array, Indices, Ints


def best_of_finite(wrong: Ints, right: Ints, ks: Sequence[int]) -> Array:
    """Return the finite-law value of best-of-k for each k; NaN where ``k`` exceeds the trials.

    Parameters
    ----------
    wrong, right : ndarray of int, shape (scores,)
        Trials with each distinct score, in ascending order of the scores.
    ks : sequence of int

    Returns
    -------
    ndarray, shape (ks,)
        ``sum_g [C(N_g, k) - C(N_(g-1), k)] / C(n, k) x right_g / (right_g + wrong_g)``, where N_g
        trials have at most the score of group g.

    Examples
    --------
    Scores 1 (right), 2 (wrong) and 3 (right): of the pairs, only that of 1 and 2 has a wrong best.

    >>> best_of_finite(np.array([0, 1, 0]), np.array([1, 0, 1]), [1, 2, 3]).round(12).tolist()
    [0.666666666667, 0.666666666667, 1.0]
    """
    total = wrong + right
    below, n = np.cumsum(total).astype(float), int(total.sum())
    share = right / np.maximum(total, 1)
    values, reach = np.full(len(ks), np.nan), np.ones(len(total))
    wanted = {int(k) for k in ks}
    for k in range(1, min(max(wanted), n) + 1):
        reach = reach * np.maximum(below - (k - 1), 0.0) / (n - (k - 1))
        if k in wanted:
            value = share @ np.diff(reach, prepend=0.0)
            values[np.asarray(ks) == k] = value
    return values


def best_of_latent(p: Array, right: Array, wrong: Array, ks: Sequence[int]) -> Array:
    """Return the latent value of best-of-k at known probabilities.

    Parameters
    ----------
    p : ndarray, shape (...)
        Probability that a trial is right.
    right, wrong : ndarray, shape (..., bins)
        Distribution of the score of a right and of a wrong trial over bins, in ascending order.
    ks : sequence of int

    Returns
    -------
    ndarray, shape (..., ks)
        ``sum_b (F_b^k - F_(b-1)^k) p right_b / P_b``, where ``P = p right + (1 - p) wrong`` and F
        is its cumulative sum.

    Examples
    --------
    A perfect verifier gives pass@2, one that knows nothing pass@1.

    >>> p, low, high = np.array(0.5), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> best_of_latent(p, high, low, [1, 2]).tolist(), best_of_latent(p, low, low, [1, 2]).tolist()
    ([0.5, 0.75], [0.5, 0.5])
    """
    mass_right = p[..., None] * right
    mass = mass_right + (1.0 - p[..., None]) * wrong
    share = np.divide(mass_right, mass, out=np.zeros_like(mass), where=mass > 0.0)
    reach = np.minimum(np.cumsum(mass, axis=-1), 1.0)
    reach[..., -1] = 1.0
    # Summed by parts: sum_b (F_b^k - F_(b-1)^k) s_b = s_last - sum_b F_b^k (s_(b+1) - s_b).
    steps = np.diff(share, axis=-1)
    values = [share[..., -1] - ((reach[..., :-1] ** k) * steps).sum(axis=-1) for k in ks]
    return np.stack(values, axis=-1)


MOST_BINS = 20  # distinct scores up to which each has a bin of its own
_EVEN, _FEWEST = 10, 8.0  # bins of equal shares; trials of a bin in the upper tail


def score_bins(score: Array, trials: Ints) -> Indices:
    """Return the bin of every score; equal scores share a bin.

    Up to 20 distinct scores have bins of their own. Of more there are bins that hold a tenth of
    the trials each, and the highest tenth is halved again and again while eight trials are left:
    there the best of many trials lies.

    Parameters
    ----------
    score : ndarray, shape (entries,)
    trials : ndarray of int, shape (entries,)
        Trials with the score.

    Examples
    --------
    >>> score_bins(np.array([0.5, 0.1, 0.5]), np.array([1, 4, 1])).tolist()
    [1, 0, 1]
    """
    distinct, rank = np.unique(score, return_inverse=True)
    if len(distinct) <= MOST_BINS:
        return np.asarray(rank)
    below = np.cumsum(np.bincount(rank, trials))
    total = below[-1]
    levels, tail = list(np.arange(1, _EVEN) / _EVEN), 0.5 / _EVEN
    while tail * total >= _FEWEST:
        levels.append(1.0 - tail)
        tail /= 2.0
    last = np.unique(np.searchsorted(below, np.array(levels) * total * (1.0 - 1e-12)))
    return np.asarray(np.searchsorted(last, rank))


def middles(trials: Ints) -> Array:
    """Return the normal score of the middle of every bin among all trials.

    Examples
    --------
    >>> middles(np.array([1, 2, 1])).round(2).tolist()
    [-1.15, 0.0, 1.15]
    """
    return np.asarray(ndtri((trials.cumsum() - 0.5 * trials) / max(trials.sum(), 1)))


def comparable(score: Array, question: Ints, counts: Ints) -> Array:
    """Return scores without what shifts all of a question, as far as questions differ by it.

    Best of k compares trials of one question only, and shifts differ: answers to some questions
    look better than to others, right or wrong. The variance of the shifts is the covariance of the
    means of right and of wrong trials; a question's own shift is the best linear prediction from
    its two means, and is taken away. What moves only the right or only the wrong trials stays.
    Few distinct scores, such as grades, stay as they are.

    Parameters
    ----------
    score : ndarray, shape (entries,)
    question : ndarray of int, shape (entries,)
    counts : ndarray of int, shape (entries, 2)
        Wrong and right trials with the score.

    Examples
    --------
    Two questions whose scores differ by 100 and noise: the order within a question stays.

    >>> score = np.concatenate([np.linspace(0, 1, 12), 100 + np.linspace(0, 1, 12)])
    >>> moved = comparable(score, np.repeat([0, 1], 12), np.tile([[0, 1], [1, 0]], (12, 1)))
    >>> bool(np.ptp(moved) < 1.2 and (np.diff(moved[:12]) > 0).all())
    True
    """
    distinct, position = np.unique(question, return_inverse=True)
    if len(np.unique(score)) <= MOST_BINS or len(distinct) < 2:
        return score
    kinds = range(2)
    n = np.stack([np.bincount(position, counts[:, kind]) for kind in kinds])
    total = np.stack([np.bincount(position, counts[:, kind] * score) for kind in kinds])
    mean, both = total / np.maximum(n, 1.0), (n > 0).all(axis=0)
    left = sum(counts[:, kind] @ (score - mean[kind, position]) ** 2 for kind in kinds)
    cells = int((n > 0).sum())
    if both.sum() < 2 or n.sum() <= cells:
        return score
    noise = left / (n.sum() - cells)
    common = float(np.cov(mean[:, both])[0, 1])
    if common <= 0.0:
        return score
    precision, moved = np.zeros_like(n), np.zeros_like(n)
    for kind in kinds:
        has_kind = n[kind] > 0
        error, values = noise / n[kind, has_kind], mean[kind, has_kind]
        apart = max(float(values.var(ddof=1) - common - error.mean()), 0.0)
        precision[kind, has_kind] = 1.0 / np.maximum(apart + error, 1e-300)
        moved[kind, has_kind] = values - values.mean()
    shift = (precision * moved).sum(axis=0) / (precision.sum(axis=0) + 1.0 / common)
    return np.asarray(score - shift[position])
