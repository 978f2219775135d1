"""Posterior variances that an evaluation of some size can be expected to have, before it is run.

Given the difficulty distribution, the counts of a question are a mixture of Beta-binomials (of
scored categories: Dirichlet-multinomial), so what its trials will teach is a finite sum over the
counts, or over a fixed sample where they are many. What M questions teach about the distribution
is, for many questions, their Fisher information plus that of the prior. No trial is simulated.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.question.beta_binomial import (
    beta_binomial_means,
    beta_binomial_moments,
    beta_binomial_pmf,
)
from bayesatk.core.question.categorical import category_moments
from bayesatk.core.question.dirichlet_multinomial import log_counts
from bayesatk.metrics.category_credit import CategoryCredit, compositions
from bayesatk.metrics.credit import Array, Credit
from bayesatk.priors import INFLATION

_LISTED = 2000  # counts of categories beyond which they are drawn


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
    spread : float, optional
        Variance of the metric between questions, where questions like these are drawn from these by
        the Bayesian bootstrap.
    """

    value: float
    trial: float
    information: Array
    prior: Array
    slopes: Array
    spread: float | None = None

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions: for these, and for questions like these."""
        covariance = np.linalg.inv(questions * self.information + self.prior)
        shared = np.einsum("ti,ij,tj->t", self.slopes, covariance, self.slopes)
        fixed = shared[0] + self.trial / questions
        if self.spread is None:
            return np.array([fixed, shared[1]])
        return np.array([fixed, fixed + self.spread / (questions + 1.0)])


def _design(model: "_Mixed | _Dirichlet") -> Design:
    """Return what a model says by sums over counts, and by differences of its hyperparameters."""
    theta, step = model.theta, 1e-3  # of central differences
    weight, _, value = model.at(theta)
    scores, slopes = np.empty((len(theta), len(weight))), np.empty((2, len(theta)))
    for i, move in enumerate(np.eye(len(theta)) * step):
        up, down = model.at(theta + move), model.at(theta - move)
        scores[i] = (up[0] - down[0]) / (2.0 * step)
        slopes[:, i] = weight @ (up[1] - down[1]) / (2.0 * step), (up[2] - down[2]) / (2.0 * step)
    information = (scores / np.maximum(weight, 1e-300)) @ scores.T
    return Design(value, float(weight @ model.variance()), information, model.prior, slopes)


def difficulty_design(credit: Credit, difficulty: Difficulty, trials: int) -> Design:
    """Return the expected learning from one question of right and wrong.

    Parameters
    ----------
    credit : Credit
    known : Difficulty
        One distribution. Its hyperparameters are the logits of mean and icc of every Beta that has
        a share, and log ratios of the shares to the first.
    trials : int

    Examples
    --------
    Uniform difficulties, pass@1: one trial leaves Beta(2, 1) or Beta(1, 2), of variance 1/18.

    >>> from bayesatk.metrics.credit import pass_at
    >>> design = difficulty_design(pass_at(1), Difficulty.of_beta([0.5], [1 / 3]), 1)
    >>> round(design.trial, 12) == round(1 / 18, 12)
    True

    A fifth of the questions is impossible, the others are uniform: 0.8 times 1/2.

    >>> share, mean, icc = (np.array([[number]]) for number in (0.8, 0.5, 1 / 3))
    >>> difficulty = Difficulty(share, mean, icc, np.array([0.2]), np.array([0.0]))
    >>> round(difficulty_design(pass_at(1), difficulty, 1).value, 12)
    0.4
    """
    return _design(_Mixed.of(difficulty, credit, trials))


@dataclass(frozen=True)
class _Mixed:
    """Betas and atoms.

    Parameters
    ----------
    credit : Credit
    trials : int
    theta : ndarray
        Logit mean and logit icc of the Betas, and log ratios of all shares to the first.
    atoms : ndarray of int
        Which of never (0) and always (1) have a share.
    prior : ndarray
        Information of uniform priors of means, correlations and the share of a mixture, and of
        the prior of atoms.
    """

    credit: Credit
    trials: int
    theta: Array
    atoms: NDArray[np.intp]
    prior: Array

    @classmethod
    def of(cls, difficulty: Difficulty, credit: Credit, trials: int) -> "_Mixed":
        betas = np.flatnonzero(difficulty.share[0] > 0.0)
        ends = np.array([difficulty.never[0], difficulty.always[0]])
        atoms = np.flatnonzero(ends > 0.0)
        means_and_iccs = np.stack(
            [difficulty.mean[0, betas], difficulty.icc[0, betas]], axis=1
        ).ravel()
        share = np.concatenate([difficulty.share[0, betas], ends[atoms]])
        weight = INFLATION if len(atoms) else (1.0,) * len(betas)
        size = len(means_and_iccs) + len(share) - 1
        prior = np.zeros((size, size))
        prior[: len(means_and_iccs), : len(means_and_iccs)] = np.diag(
            2.0 * means_and_iccs * (1.0 - means_and_iccs)
        )
        free_shares = share[1:]
        prior[len(means_and_iccs) :, len(means_and_iccs) :] = sum(weight) * (
            np.diag(free_shares) - np.outer(free_shares, free_shares)
        )
        logs = np.log(share)
        theta = np.concatenate(
            [np.log(means_and_iccs) - np.log1p(-means_and_iccs), logs[1:] - logs[0]]
        )
        return cls(credit, trials, theta, atoms, prior)

    def _parts(self, theta: Array) -> tuple[Array, list[tuple[float, float]]]:
        """Shares of Betas and atoms, and the parameters of the Betas."""
        betas = (len(theta) + 1 - len(self.atoms)) // 3
        ratios = np.concatenate([[0.0], theta[2 * betas :]])
        pairs = theta[: 2 * betas].reshape(-1, 2)
        total = np.exp(-pairs[:, 1])
        alpha, beta = expit(pairs[:, 0]) * total, expit(-pairs[:, 0]) * total
        share = np.exp(ratios - logsumexp(ratios))
        return share, list(zip(alpha.tolist(), beta.tolist(), strict=True))

    def _joint(self, theta: Array, squares: bool) -> Array:
        """Probability of every count, with the metric and its square given it (3, counts)."""
        counts, joint = np.arange(self.trials + 1.0), np.zeros((3, self.trials + 1))
        share, betas = self._parts(theta)
        for s, (alpha, beta) in zip(share, betas, strict=False):
            pmf = s * beta_binomial_pmf(self.trials, np.array([alpha]), np.array([beta]))[0]
            posterior = alpha + counts, beta + self.trials - counts
            mean, square = (
                beta_binomial_means([self.credit], *posterior)[0][:, 0],
                np.zeros(len(counts)),
            )
            if squares:
                square = mean**2 + beta_binomial_moments([self.credit], *posterior)[2][:, 0]
            joint += pmf * np.stack([np.ones_like(mean), mean, square])
        for s, end in zip(share[len(betas) :], self.atoms, strict=True):
            value = float(self.credit.vector[-int(end)])
            joint[:, -int(end)] += s * np.array([1.0, value, value**2])
        return joint

    def at(self, theta: Array) -> tuple[Array, Array, float]:
        """Probability of every count, the metric expected given it, and of a new question."""
        joint, (share, betas) = self._joint(theta, squares=False), self._parts(theta)
        expected = [beta_binomial_means([self.credit], [a], [b])[0].item() for a, b in betas]
        expected += [float(self.credit.vector[-int(end)]) for end in self.atoms]
        return joint[0], joint[1] / np.maximum(joint[0], 1e-300), float(share @ expected)

    def variance(self) -> Array:
        """Variance of a question's metric given each count."""
        joint = self._joint(self.theta, squares=True)
        mean, square = joint[1:] / np.maximum(joint[0], 1e-300)
        return np.asarray(np.maximum(square - mean**2, 0.0))


def category_design(
    credit: CategoryCredit, scores: ArrayLike, mean: ArrayLike, icc: float, trials: int
) -> Design:
    """Return the expected learning from one question of scored categories.

    Parameters
    ----------
    credit : CategoryCredit
    scores, mean : array_like, shape (categories,)
        The mean must be positive and add up to one. Hyperparameters are its log ratios to the last
        category and the logit of the icc.
    icc : float
    trials : int

    Examples
    --------
    Two uniform categories and one trial leave Beta(2, 1) or Beta(1, 2), of variance 1/18.

    >>> design = category_design(CategoryCredit(1), [0.0, 1.0], [0.5, 0.5], 1 / 3, 1)
    >>> round(design.trial, 12) == round(1 / 18, 12)
    True
    """
    mean, scores = np.asarray(mean, float), np.asarray(scores, float)
    return _design(_Dirichlet(credit, scores, mean, icc, trials))


@dataclass(frozen=True)
class _Dirichlet:
    """A Dirichlet with this mean and intraclass correlation."""

    credit: CategoryCredit
    scores: Array
    mean: Array
    icc: float
    trials: int

    @property
    def theta(self) -> Array:
        """Log ratios of the mean to its last, and the logit of the icc."""
        logs = np.log(self.mean)
        return np.append(logs[:-1] - logs[-1], np.log(self.icc) - np.log1p(-self.icc))

    @property
    def prior(self) -> Array:
        """Information of a uniform mean and icc."""
        mean, size = self.mean, len(self.mean)
        information = np.zeros((size, size))
        information[:-1, :-1] = size * (np.diag(mean) - np.outer(mean, mean))[:-1, :-1]
        information[-1, -1] = 2.0 * self.icc * (1.0 - self.icc)
        return information

    @cached_property
    def _counts(self) -> tuple[Array, Array]:
        """Counts of a question, all or a fixed sample, and their multiplicities over the pmf."""
        categories = len(self.mean)
        if comb(self.trials + categories - 1, categories - 1) <= _LISTED:
            counts = compositions(self.trials, categories).astype(float)
            return counts, np.zeros(len(counts))
        rng, alpha, size = np.random.default_rng(0), _alpha(self.theta), 4000
        logs = np.log(rng.standard_gamma(alpha + 1.0, (size, categories)))
        p = softmax(logs - rng.standard_exponential(logs.shape) / alpha, axis=1)
        counts = rng.multinomial(self.trials, p).astype(float)
        return counts, -_log_pmf(counts, self.theta) - np.log(size)

    def at(self, theta: Array) -> tuple[Array, Array, float]:
        """Probability of every count, the metric expected given it, and of a new question."""
        (counts, drawn), alpha = self._counts, _alpha(theta)
        expected = self.credit.predictive(alpha + counts, self.scores)
        new = self.credit.predictive(alpha[None], self.scores)
        return np.exp(_log_pmf(counts, theta) + drawn), expected, new.item()

    def variance(self) -> Array:
        """Variance of a question's metric given each count."""
        return category_moments(self.credit, _alpha(self.theta) + self._counts[0], self.scores)[1]


def _alpha(theta: Array) -> Array:
    """Dirichlet parameters at log ratios of the mean and the logit of the icc."""
    mean = softmax(np.append(theta[:-1], 0.0))
    return np.asarray(np.maximum(mean * np.exp(-theta[-1]), 1e-12))


def _log_pmf(counts: Array, theta: Array) -> Array:
    return log_counts(counts, softmax(np.append(theta[:-1], 0.0)), np.exp(theta[-1]))
