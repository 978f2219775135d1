"""Posterior variances that an evaluation of some size can be expected to have, before it is run.

Given the difficulty distribution, the counts of a question are a mixture of Beta-binomials (of
scored categories: Dirichlet-multinomial), so what its trials will teach is a finite sum over the
counts, or over a fixed sample where they are many. What M questions teach about the distribution
is, for many questions, their Fisher information plus that of the prior. No trial is simulated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.special import logit, softmax

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.question.beta_binomial import (
    beta_binomial_moments,
    beta_binomial_pmf,
    beta_of,
)
from bayesatk.core.question.categorical import category_moments
from bayesatk.core.question.dirichlet_multinomial import log_counts
from bayesatk.metrics.category_credit import CategoryCredit, compositions
from bayesatk.metrics.credit import Credit
from bayesatk.priors import INFLATION


@dataclass(frozen=True)
class Design:
    """What a question, or a group of them, is expected to teach at one difficulty distribution.

    Parameters
    ----------
    value : float
        The metric of a new question.
    own : ndarray, shape (targets,)
        Expected posterior variance of what is of one question (group) alone, the distribution
        known: it falls as one over their number.
    information : ndarray, shape (hyperparameters, hyperparameters)
        Fisher information of one about the hyperparameters: of a Beta (logit m, logit r).
    prior : ndarray, shape (hyperparameters, hyperparameters)
        Information of their priors: uniform m and r.
    slopes : ndarray, shape (targets, hyperparameters)
        Derivatives of the expected metric: of these questions, of a new one, of new groups.
    """

    value: float
    own: Array
    information: Array
    prior: Array
    slopes: Array

    def variance(self, number: float) -> Array:
        """Posterior variance with so many questions, or groups, by target."""
        covariance = np.linalg.inv(number * self.information + self.prior)
        shared = np.einsum("ti,ij,tj->t", self.slopes, covariance, self.slopes)
        return np.asarray(shared + self.own / number)


_LISTED = 2000  # counts of categories beyond which they are drawn
Given = tuple[Array, Array, float]  # of `_design`


def _design(given: Callable[[Array], Given], theta: Array, prior: Array, variance: Array) -> Design:
    """Return what sums over counts say, and differences of hyperparameters.

    Parameters
    ----------
    given : callable
        Of hyperparameters: probability of every count, mean of a question's metric given it, and
        the metric of a new question.
    theta, prior : ndarray
        Hyperparameters, and the information of their prior.
    variance : ndarray
        Of a question's metric given every count.
    """
    step = 1e-3  # of central differences
    weight, _, value = given(theta)
    scores, slopes = np.empty((len(theta), len(weight))), np.empty((2, len(theta)))
    for i, move in enumerate(np.eye(len(theta)) * step):
        up, down = given(theta + move), given(theta - move)
        scores[i] = (up[0] - down[0]) / (2.0 * step)
        slopes[:, i] = weight @ (up[1] - down[1]) / (2.0 * step), (up[2] - down[2]) / (2.0 * step)
    information = (scores / np.maximum(weight, 1e-300)) @ scores.T
    return Design(value, np.array([weight @ variance, 0.0]), information, prior, slopes)


def difficulty_design(credit: Credit, difficulty: Difficulty, trials: int) -> Design:
    """Return the expected learning from one question of right and wrong.

    Parameters
    ----------
    credit : Credit
    difficulty : Difficulty
        One distribution. Its hyperparameters are the logits of mean and icc of every Beta that has
        a share, and log ratios of the shares to the first.
    trials : int

    Examples
    --------
    Uniform difficulties, pass@1: one trial leaves Beta(2, 1) or Beta(1, 2), of variance 1/18.

    >>> from bayesatk.metrics.credit import pass_at
    >>> design = difficulty_design(pass_at(1), Difficulty.of_beta([0.5], [1 / 3]), 1)
    >>> bool(round(design.own[0], 12) == round(1 / 18, 12))
    True

    A fifth of the questions is impossible, the others are uniform: 0.8 times 1/2.

    >>> share, mean, icc = (np.array([[number]]) for number in (0.8, 0.5, 1 / 3))
    >>> difficulty = Difficulty(share, mean, icc, np.array([0.2]), np.array([0.0]))
    >>> round(difficulty_design(pass_at(1), difficulty, 1).value, 12)
    0.4
    """
    theta, prior, size, atoms = _hyperparameters(difficulty)
    counts = np.arange(trials + 1.0)
    at_end = np.zeros((2, trials + 1))
    at_end[0, 0] = at_end[1, -1] = 1.0

    def moments(theta: Array) -> tuple[Given, Array]:
        alpha, beta = beta_of(theta[:size:2], theta[1:size:2])
        # Moments of a new question first, then given every count.
        a = np.column_stack([alpha, alpha[:, None] + counts]).ravel()
        b = np.column_stack([beta, beta[:, None] + trials - counts]).ravel()
        mean, _, variance = (
            moment.reshape(len(alpha), -1) for moment in beta_binomial_moments([credit], a, b)
        )
        value = credit.vector[-atoms, None]
        pmf = np.concatenate([beta_binomial_pmf(trials, alpha, beta), at_end[atoms]])
        joint = softmax(np.append(0.0, theta[size:]))[:, None] * pmf
        means = np.concatenate([mean, np.broadcast_to(value, (len(atoms), trials + 2))])
        squares = means**2
        squares[: len(alpha)] += variance
        probability = joint.sum(axis=0)
        expected, square = (
            (joint * moment[:, 1:]).sum(axis=0) / np.maximum(probability, 1e-300)
            for moment in (means, squares)
        )
        new = float(softmax(np.append(0.0, theta[size:])) @ means[:, 0])
        return (probability, expected, new), np.maximum(square - expected**2, 0.0)

    return _design(lambda at: moments(at)[0], theta, prior, moments(theta)[1])


def _hyperparameters(difficulty: Difficulty) -> tuple[Array, Array, int, Indices]:
    """Return hyperparameters and information of their prior; how many are of Betas; the atoms."""
    betas = np.flatnonzero(difficulty.share[0] > 0.0)
    ends = np.array([difficulty.never[0], difficulty.always[0]])
    atoms = np.flatnonzero(ends > 0.0)
    means_and_iccs = np.stack([difficulty.mean[0, betas], difficulty.icc[0, betas]], axis=1).ravel()
    share, size = np.concatenate([difficulty.share[0, betas], ends[atoms]]), len(means_and_iccs)
    free_shares = share[1:]
    # Of uniform means, correlations and shares of a mixture, and of the prior of atoms.
    prior = block_diag(
        np.diag(2.0 * means_and_iccs * (1.0 - means_and_iccs)),
        (sum(INFLATION) if len(atoms) else float(len(betas)))
        * (np.diag(free_shares) - np.outer(free_shares, free_shares)),
    )
    theta = np.concatenate([logit(means_and_iccs), np.log(free_shares / share[0])])
    return theta, prior, size, atoms


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
    >>> bool(round(design.own[0], 12) == round(1 / 18, 12))
    True
    """
    mean, scores, categories = np.asarray(mean, float), np.asarray(scores, float), len(mean)
    theta = np.append(np.log(mean[:-1] / mean[-1]), logit(icc))
    prior = np.zeros((categories, categories))  # of a uniform mean and icc
    prior[:-1, :-1] = categories * (np.diag(mean) - np.outer(mean, mean))[:-1, :-1]
    prior[-1, -1] = 2.0 * icc * (1.0 - icc)
    counts, log_ways = _counts(theta, trials)

    def given(theta: Array) -> Given:
        alpha = _alpha(theta)
        expected = credit.predictive(alpha + counts, scores)
        new = credit.predictive(alpha[None], scores)
        return np.exp(_log_pmf(counts, theta) + log_ways), expected, new.item()

    variance = category_moments(credit, _alpha(theta) + counts, scores)[1]
    return _design(given, theta, prior, variance)


def _counts(theta: Array, trials: int) -> tuple[Array, Array]:
    """Return counts of a question, all or a sample, and log multiplicities over the pmf."""
    if comb(trials + len(theta) - 1, len(theta) - 1) <= _LISTED:
        counts = compositions(trials, len(theta)).astype(float)
        return counts, np.zeros(len(counts))
    rng, alpha, size = np.random.default_rng(0), _alpha(theta), 4000
    logs = np.log(rng.standard_gamma(alpha + 1.0, (size, len(theta))))
    p = softmax(logs - rng.standard_exponential(logs.shape) / alpha, axis=1)
    counts = rng.multinomial(trials, p).astype(float)
    return counts, -_log_pmf(counts, theta) - np.log(size)


def _alpha(theta: Array) -> Array:
    """Dirichlet parameters at log ratios of the mean and the logit of the icc."""
    mean = softmax(np.append(theta[:-1], 0.0))
    return np.asarray(np.maximum(mean * np.exp(-theta[-1]), 1e-12))


def _log_pmf(counts: Array, theta: Array) -> Array:
    return log_counts(counts, softmax(np.append(theta[:-1], 0.0)), np.exp(theta[-1]))
