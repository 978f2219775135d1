"""Distinct category counts of one system, what is asked of them, and draws of probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from bayesatk.core.categorical import category_moments
from bayesatk.metrics.category_credit import CategoryCredit
from bayesatk.metrics.credit import Array

_LARGE = 0.1  # Dirichlet parameters from which gamma variates do not underflow


@dataclass(frozen=True)
class Judged:
    """A credit on categories with the score of each."""

    credit: CategoryCredit
    scores: Array

    def latent(self, p: Array) -> Array:
        """Value at known probabilities, shape (..., categories)."""
        return self.credit.latent(p, self.scores)


@dataclass(frozen=True)
class CategoryStates:
    """Distinct count vectors with the number of questions in each.

    Parameters
    ----------
    counts : ndarray of int, shape (states, categories)
        Observed trials.
    prior : ndarray, shape (states, categories)
        Prior trials, discounted.
    repeats : ndarray, shape (states,)
    which : ndarray of int, shape (questions,)
        State of every question.
    """

    counts: NDArray[np.int64]
    prior: Array
    repeats: Array
    which: NDArray[np.intp]

    @classmethod
    def of(cls, counts: NDArray[np.int64], prior: Array | None = None) -> "CategoryStates":
        """Group questions by their counts, observed and prior.

        Examples
        --------
        >>> states = CategoryStates.of(np.array([[1, 0, 2], [1, 0, 2], [3, 0, 0]]))
        >>> states.repeats.tolist(), states.which.tolist()
        ([2.0, 1.0], [0, 0, 1])
        """
        prior = np.zeros(counts.shape) if prior is None else prior
        keys = np.concatenate([counts, prior], axis=1)
        distinct, which, repeats = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        size = counts.shape[1]
        return cls(
            distinct[:, :size].astype(np.int64),
            distinct[:, size:],
            repeats.astype(float),
            which.ravel(),
        )

    @property
    def evidence(self) -> Array:
        """Observed and prior trials together."""
        return self.counts + self.prior

    @property
    def share(self) -> Array:
        """Share of the questions in each state."""
        return self.repeats / self.repeats.sum()


def moments(judged: list[Judged], alpha: Array) -> tuple[Array, Array]:
    """Means and variances under Dirichlet(alpha); shapes (..., len(judged))."""
    pairs = [category_moments(one.credit, alpha, one.scores) for one in judged]
    mean, variance = (np.stack(part, axis=-1) for part in zip(*pairs, strict=True))
    return mean, variance


def draw_probabilities(alpha: Array, rng: np.random.Generator) -> Array:
    """One draw of Dirichlet probabilities for every row of parameters.

    Small parameters are drawn on the log scale, ``G(a) = G(a + 1) U^(1/a)``: their gamma variates
    would all be zero.
    """
    if alpha.min() >= _LARGE:
        found = rng.standard_gamma(alpha)
        return np.asarray(found / found.sum(axis=-1, keepdims=True))
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    return np.asarray(softmax(logs, axis=-1))
