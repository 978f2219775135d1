"""Distributions of success probability between questions: Betas and atoms at 0 and 1, with shares.

Every difficulty family is one of these once its hyperparameters are known, and what is computed
from draws or nodes of hyperparameters needs no more.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaln

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.pooling.nodes import Nodes

_LEAST = 1e-300  # of an icc and of Beta parameters: their inverses are numbers
_BLOCK = 2_000_000  # probabilities worked out at once: 16 MB


@dataclass(frozen=True)
class Difficulty:
    """Difficulty distributions, one for each draw of hyperparameters.

    Parameters
    ----------
    share, mean, icc : ndarray, shape (draws, components)
        Of the Betas; ``icc = 1 / (alpha + beta + 1)``.
    never, always : ndarray, shape (draws,)
        Shares of questions with p = 0 and p = 1; with the others they sum to one.
    """

    share: Array
    mean: Array
    icc: Array
    never: Array
    always: Array

    @classmethod
    def of_beta(cls, mean: ArrayLike, icc: ArrayLike) -> "Difficulty":
        """Return single Betas.

        Examples
        --------
        >>> one = Difficulty.of_beta([0.5], [1 / 3])  # uniform
        >>> np.exp(one.log_counts([1], [2])).round(12).tolist()
        [[0.333333333333]]
        """
        mean = np.asarray(mean, float)
        zero = np.zeros(len(mean))
        icc = np.asarray(icc, float)
        return cls(np.ones((len(mean), 1)), mean[:, None], icc[:, None], zero, zero)

    @classmethod
    def of_nodes(cls, nodes: Nodes) -> "Difficulty":
        """Return the difficulty distributions of nodes."""
        total = nodes.alpha + nodes.beta
        never, always = nodes.atoms.T
        return cls(nodes.share, nodes.alpha / total, 1.0 / (1.0 + total), never, always)

    def __len__(self) -> int:
        return len(self.never)

    def among(self, which: slice | Indices | list[int]) -> "Difficulty":
        """Return some of the draws."""
        parts = (self.share, self.mean, self.icc, self.never, self.always)
        return Difficulty(*(one[which] for one in parts))

    @property
    def alpha(self) -> Array:
        """First Beta parameters."""
        return np.maximum(self.mean * (1.0 - self.icc) / np.maximum(self.icc, _LEAST), _LEAST)

    @property
    def beta(self) -> Array:
        """Second Beta parameters."""
        total = (1.0 - self.icc) / np.maximum(self.icc, _LEAST)
        return np.maximum((1.0 - self.mean) * total, _LEAST)

    @property
    def nodes(self) -> Nodes:
        """The same, equally probable."""
        atoms = np.stack([self.never, self.always], axis=1)
        weight = np.full(len(self), 1.0 / max(1, len(self)))
        return Nodes(self.alpha, self.beta, self.share, atoms, weight)

    @property
    def overall(self) -> tuple[Array, Array]:
        """Mean of p, and its variance over mean (1 - mean): the intraclass correlation.

        Examples
        --------
        >>> half = np.array([0.5])
        >>> atoms = Difficulty(half[:, None] * 0.0, half[:, None], half[:, None], half, half)
        >>> [float(column[0]) for column in atoms.overall]
        [0.5, 1.0]
        """
        mean, _, icc, _ = self.nodes.overall()
        return mean, icc

    def log_counts(self, successes: ArrayLike, trials: ArrayLike) -> Array:
        """Log probability of so many successes of a new question, in any order; (draws, states)."""
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        found = np.empty((len(self), len(c)))
        step = max(1, _BLOCK // max(1, 2 * len(c)))
        ways = gammaln(n + 1.0) - gammaln(c + 1.0) - gammaln(n - c + 1.0)
        with np.errstate(divide="ignore", under="ignore"):
            for start in range(0, len(self), step):
                part = slice(start, start + step)
                found[part] = self.among(part).nodes.log_likelihood(c, n - c) + ways
        return found

    def cdf(self, p: ArrayLike) -> Array:
        """Probability of a success probability at most p; shape (draws, points)."""
        p = np.asarray(p, float)
        total = self.never[:, None] * (p >= 0.0) + self.always[:, None] * (p >= 1.0)
        for j in range(self.share.shape[1]):
            own = betainc(self.alpha[:, j, None], self.beta[:, j, None], np.clip(p, 0.0, 1.0))
            total = total + self.share[:, j, None] * own
        return np.asarray(total)

    def draw_p(self, questions: int, rng: Rng) -> Array:
        """Success probabilities of new questions; shape (draws, questions)."""
        ends = np.column_stack([self.share, self.never, self.always]).cumsum(axis=1)
        u, size = rng.random((len(self), questions)), self.share.shape[1]
        which = np.minimum((u[..., None] >= (ends / ends[:, -1:])[:, None]).sum(axis=-1), size + 1)
        row, part = np.arange(len(self))[:, None], np.minimum(which, size - 1)
        p = rng.beta(self.alpha[row, part], self.beta[row, part])
        return np.asarray(np.where(which < size, p, which - size), float)

    def draw_counts(self, trials: Ints, rng: Rng) -> Ints:
        """Successes of new questions, each with so many trials; shape (draws, questions)."""
        found = np.empty((len(self), len(trials)), np.int64)
        step = max(1, _BLOCK // max(1, len(trials)))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            found[part] = rng.binomial(trials, self.among(part).draw_p(len(trials), rng))
        return found
