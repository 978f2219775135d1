"""Posterior variances that an evaluation of some size can be expected to have, before it is run.

Given a difficulty distribution ``Beta`` with mean m and intraclass correlation r, the counts of a
question with n trials are Beta-binomial, so what its trials will teach is a finite sum over the
counts; what M questions teach about (m, r) is, for many questions, their Fisher information plus
that of the prior. No trial is simulated.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, expit

from bayesatk.core.beta_binomial import (
    beta_binomial_means,
    beta_binomial_moments,
    beta_binomial_pmf,
)
from bayesatk.metrics.credit import Array, Credit

_STEP = 1e-3  # of central differences on the logit scale


@dataclass(frozen=True)
class Design:
    """What a question with so many trials is expected to teach, at one difficulty distribution.

    Parameters
    ----------
    value : float
        The metric of a new question.
    trial : float
        Expected posterior variance of a question's own metric, the distribution known.
    information : ndarray, shape (2, 2)
        Fisher information of one question about (logit m, logit r).
    prior : ndarray, shape (2, 2)
        Information of uniform priors of m and r.
    slopes : ndarray, shape (2, 2)
        Derivatives of the expected metric, in rows of these questions and of a new question.
    """

    value: float
    trial: float
    information: Array
    prior: Array
    slopes: Array

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions: for these, and for questions like these."""
        covariance = np.linalg.inv(questions * self.information + self.prior)
        shared = np.einsum("ti,ij,tj->t", self.slopes, covariance, self.slopes)
        return np.asarray(shared + np.array([self.trial / questions, 0.0]))


def design(credit: Credit, mean: float, icc: float, trials: int) -> Design:
    """Return the expected learning from one question with ``trials`` trials.

    Examples
    --------
    Uniform difficulties, pass@1: one trial leaves Beta(2, 1) or Beta(1, 2), of variance 1/18.

    >>> from bayesatk.metrics.credit import pass_at
    >>> found = design(pass_at(1), 0.5, 1 / 3, 1)
    >>> round(found.trial, 12) == round(1 / 18, 12)
    True
    """
    x, y = np.log(mean) - np.log1p(-mean), np.log(icc) - np.log1p(-icc)
    counts = np.arange(trials + 1.0)
    alpha, beta = _beta(x, y)
    weight = beta_binomial_pmf(trials, np.array([alpha]), np.array([beta]))[0]
    _, _, variance = beta_binomial_moments([credit], alpha + counts, beta + trials - counts)
    slopes = np.empty((2, 2))
    for axis, move in enumerate(np.eye(2) * _STEP):
        up, down = _beta(x + move[0], y + move[1]), _beta(x - move[0], y - move[1])
        own = _means(credit, *up, counts, trials) - _means(credit, *down, counts, trials)
        new = beta_binomial_means([credit], np.array([up[0]]), np.array([up[1]]))[0]
        new = new - beta_binomial_means([credit], np.array([down[0]]), np.array([down[1]]))[0]
        slopes[:, axis] = weight @ own / (2 * _STEP), new.item() / (2 * _STEP)
    value = beta_binomial_means([credit], np.array([alpha]), np.array([beta]))[0].item()
    spread = np.diag([2.0 * mean * (1.0 - mean), 2.0 * icc * (1.0 - icc)])
    score = _score(alpha, beta, counts, trials)
    return Design(value, float(weight @ variance[:, 0]), (score * weight) @ score.T, spread, slopes)


def _beta(x: float, y: float) -> tuple[float, float]:
    total = np.exp(-y)
    return float(expit(x) * total), float(expit(-x) * total)


def _means(credit: Credit, alpha: float, beta: float, counts: Array, trials: int) -> Array:
    return beta_binomial_means([credit], alpha + counts, beta + trials - counts)[0][:, 0]


def _score(alpha: float, beta: float, counts: Array, trials: int) -> Array:
    """Differentiate the log probability of each count in (logit m, logit r)."""
    total = alpha + beta
    hits = digamma(alpha + counts) - digamma(alpha)
    misses = digamma(beta + trials - counts) - digamma(beta)
    rises = digamma(total + trials) - digamma(total)
    return np.stack(
        [alpha * beta / total * (hits - misses), total * rises - alpha * hits - beta * misses]
    )
