"""Posterior variances that an evaluation of scored categories can be expected to have.

As `bayesatk.core.planning` for right and wrong: the counts of a question are Dirichlet-multinomial,
listed where they are few and drawn where they are many; what questions teach about the difficulty
distribution is their Fisher information in (softmax coordinates of the mean, logit icc).
"""

from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, softmax

from bayesatk.core.categorical import category_moments
from bayesatk.core.planning import Design
from bayesatk.metrics.category_credit import CategoryCredit, compositions
from bayesatk.metrics.credit import Array

_STEP = 1e-3  # of central differences
_LISTED = 2000  # counts beyond which they are drawn
_DRAWN = 4000
_SMALLEST = 1e-12  # Dirichlet parameter


def category_design(
    credit: CategoryCredit, scores: ArrayLike, mean: ArrayLike, icc: float, trials: int
) -> Design:
    """Return the expected learning from one question with ``trials`` trials.

    Parameters
    ----------
    credit : CategoryCredit
    scores, mean : array_like, shape (categories,)
        The mean must be positive and add up to one.
    icc : float
    trials : int

    Examples
    --------
    Two uniform categories and one trial leave Beta(2, 1) or Beta(1, 2), of variance 1/18.

    >>> found = category_design(CategoryCredit(1), [0.0, 1.0], [0.5, 0.5], 1 / 3, 1)
    >>> round(found.trial, 12) == round(1 / 18, 12)
    True
    """
    mean = np.asarray(mean, float)
    logs = np.log(mean)
    place = np.append(logs[:-1] - logs[-1], np.log(icc) - np.log1p(-icc))
    alpha = _alpha(place)
    counts, weight = _counts(alpha, trials)
    _, variance = category_moments(credit, alpha + counts, scores)
    slopes = np.empty((2, len(place)))
    for axis, move in enumerate(np.eye(len(place)) * _STEP):
        up, down = _alpha(place + move), _alpha(place - move)
        own = credit.predictive(up + counts, scores) - credit.predictive(down + counts, scores)
        new = credit.predictive(up[None], scores) - credit.predictive(down[None], scores)
        slopes[:, axis] = weight @ own / (2 * _STEP), new.item() / (2 * _STEP)
    score = _score(alpha, mean, counts)
    prior = np.zeros((len(place), len(place)))
    prior[:-1, :-1] = len(mean) * (np.diag(mean) - np.outer(mean, mean))[:-1, :-1]
    prior[-1, -1] = 2.0 * icc * (1.0 - icc)
    value = credit.predictive(alpha[None], scores).item()
    return Design(value, float(weight @ variance), (score * weight) @ score.T, prior, slopes)


def _alpha(place: Array) -> Array:
    """Dirichlet parameters at softmax coordinates of the mean and the logit of the icc."""
    mean = softmax(np.append(place[:-1], 0.0))
    return np.asarray(np.maximum(mean * np.exp(-place[-1]), _SMALLEST))


def _counts(alpha: Array, trials: int) -> tuple[Array, Array]:
    """List the counts of a question and their probabilities, or a fixed sample of them."""
    categories = len(alpha)
    if comb(trials + categories - 1, categories - 1) > _LISTED:
        rng = np.random.default_rng(0)
        logs = np.log(rng.standard_gamma(alpha + 1.0, (_DRAWN, categories)))
        p = softmax(logs - rng.standard_exponential(logs.shape) / alpha, axis=1)
        return rng.multinomial(trials, p).astype(float), np.full(_DRAWN, 1.0 / _DRAWN)
    counts = compositions(trials, categories).astype(float)
    total = alpha.sum()
    ways = gammaln(trials + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    rises = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
    return counts, np.exp(ways + rises - gammaln(total + trials) + gammaln(total))


def _score(alpha: Array, mean: Array, counts: Array) -> Array:
    """Differentiate the log probability of each row of counts in the coordinates."""
    total, trials = alpha.sum(), counts[0].sum()
    by_alpha = digamma(alpha + counts) - digamma(alpha)
    by_alpha -= digamma(total + trials) - digamma(total)
    moved = total * (np.diag(mean) - np.outer(mean, mean))[:, :-1]
    return np.concatenate([moved.T @ by_alpha.T, -(by_alpha @ alpha)[None]])
