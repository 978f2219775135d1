"""Posterior variances that an evaluation of some size can be expected to have, before it is run.

Given a difficulty distribution ``Beta`` with mean m and intraclass correlation r, the counts of a
question with n trials are Beta-binomial, so what its trials will teach is a finite sum over the
counts; what M questions teach about (m, r) is, for many questions, their Fisher information plus
that of the prior. No trial is simulated.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, expit, logsumexp

from bayesatk.core.beta_binomial import (
    beta_binomial_means,
    beta_binomial_moments,
    beta_binomial_pmf,
)
from bayesatk.core.difficulty import Difficulty
from bayesatk.metrics.credit import Array, Credit
from bayesatk.priors import INFLATION

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
    information : ndarray, shape (hyperparameters, hyperparameters)
        Fisher information of one question about the hyperparameters: of a Beta (logit m, logit r).
    prior : ndarray, shape (hyperparameters, hyperparameters)
        Information of their priors: uniform m and r.
    slopes : ndarray, shape (2, hyperparameters)
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


def difficulty_design(credit: Credit, known: Difficulty, trials: int) -> Design:
    """Return the expected learning from one question, at a difficulty distribution of any family.

    Parameters
    ----------
    credit : Credit
    known : Difficulty
        One distribution. Its hyperparameters are the logits of mean and icc of every Beta that has
        a share, and log ratios of the shares to the first.
    trials : int

    Examples
    --------
    A fifth of the questions is impossible, the others are uniform: 0.8 times 1/2.

    >>> from bayesatk.metrics.credit import pass_at
    >>> share, mean, icc = (np.array([[one]]) for one in (0.8, 0.5, 1 / 3))
    >>> known = Difficulty(share, mean, icc, np.array([0.2]), np.array([0.0]))
    >>> round(difficulty_design(pass_at(1), known, 1).value, 12)
    0.4
    """
    family = _Mixed.of(known)
    theta = family.theta
    weight, mean, square, value = family.at(theta, credit, trials)
    scores, slopes = np.empty((len(theta), trials + 1)), np.empty((2, len(theta)))
    for i, move in enumerate(np.eye(len(theta)) * _STEP):
        up, down = (family.at(theta + sign * move, credit, trials) for sign in (1.0, -1.0))
        scores[i] = (up[0] - down[0]) / (2.0 * _STEP)
        slopes[:, i] = weight @ (up[1] - down[1]) / (2.0 * _STEP), (up[3] - down[3]) / (2.0 * _STEP)
    trial = float(weight @ np.maximum(square - mean**2, 0.0))
    information = (scores / np.maximum(weight, 1e-300)) @ scores.T
    return Design(value, trial, information, family.prior, slopes)


@dataclass(frozen=True)
class _Mixed:
    """A difficulty distribution as a point of its family.

    Parameters
    ----------
    theta : ndarray
        Logit mean and logit icc of the Betas, and log ratios of all shares to the first.
    atoms : ndarray of int
        Which of never (0) and always (1) have a share.
    prior : ndarray
        Information of uniform priors of means, correlations and the share of a mixture, and of
        the prior of atoms.
    """

    theta: Array
    atoms: NDArray[np.intp]
    prior: Array

    @classmethod
    def of(cls, known: Difficulty) -> "_Mixed":
        betas = np.flatnonzero(known.share[0] > 0.0)
        ends = np.array([known.never[0], known.always[0]])
        atoms = np.flatnonzero(ends > 0.0)
        place = np.stack([known.mean[0, betas], known.icc[0, betas]], axis=1).ravel()
        share = np.concatenate([known.share[0, betas], ends[atoms]])
        weight = INFLATION if len(atoms) else (1.0,) * len(betas)
        size = len(place) + len(share) - 1
        prior = np.zeros((size, size))
        prior[: len(place), : len(place)] = np.diag(2.0 * place * (1.0 - place))
        own = share[1:]
        prior[len(place) :, len(place) :] = sum(weight) * (np.diag(own) - np.outer(own, own))
        logs = np.log(share)
        theta = np.concatenate([np.log(place) - np.log1p(-place), logs[1:] - logs[0]])
        return cls(theta, atoms, prior)

    def at(self, theta: Array, credit: Credit, trials: int) -> tuple[Array, Array, Array, float]:
        """Probability of every count, mean and square of the metric given it, and its mean."""
        counts = np.arange(trials + 1.0)
        betas = (len(theta) + 1 - len(self.atoms)) // 3
        ratios = np.concatenate([[0.0], theta[2 * betas :]])
        share = np.exp(ratios - logsumexp(ratios))
        joint = np.zeros((3, trials + 1))
        value = 0.0
        for s, (x, y) in zip(share, theta[: 2 * betas].reshape(-1, 2), strict=False):
            alpha, beta = _beta(x, y)
            pmf = s * beta_binomial_pmf(trials, np.array([alpha]), np.array([beta]))[0]
            moments = beta_binomial_moments([credit], alpha + counts, beta + trials - counts)
            mean, variance = moments[0][:, 0], moments[2][:, 0]
            joint += pmf * np.stack([np.ones_like(mean), mean, variance + mean**2])
            value += s * beta_binomial_means([credit], [alpha], [beta])[0].item()
        for s, end in zip(share[betas:], self.atoms, strict=True):
            own = float(credit.vector[-int(end)])
            joint[:, -int(end)] += s * np.array([1.0, own, own**2])
            value += s * own
        given = np.maximum(joint[0], 1e-300)
        return joint[0], joint[1] / given, joint[2] / given, float(value)
