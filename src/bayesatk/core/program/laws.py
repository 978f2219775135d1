"""Laws of difficulty: the distribution of a question's p, given its offset on the logit scale.

A law says what questions have in common; covariates and groups only move a question's offset. So a
law is a function of hyperparameters and offsets, and nothing else depends on its form.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from bayesatk._tools.arrays import Array
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.priors.fields import Fields

_WIDEST_STEP = 0.35  # logits between offsets of a table, at most
_BEND = 1.2e-3  # sixth derivative of log(1 + e^x) at most, times the constant of six-point lines
_TABLE_ERROR = 0.005  # of a log-likelihood that is read off a table


@dataclass(frozen=True)
class DifficultyLaw:
    """Betas, one or two, and point masses at 0 and 1; offsets move the logit means of the Betas.

    Parameters
    ----------
    fields : Fields
        Of all hyperparameters of the model, of which the law uses its own: ``mean`` and ``icc`` of
        one Beta, or of two whose ``share`` there is; shares of ``atoms``.
    shape : (float, float), optional
        Parameters of a fixed Beta, without hyperparameters: questions are not pooled.
    """

    fields: Fields
    shape: tuple[float, float] | None = None

    def nodes(self, theta: Array, offset: Array) -> Nodes:
        """Return the distributions of p, a row for each point and offset.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        offset : ndarray, shape (points, offsets)
        """
        size = offset.size
        if self.shape is not None:
            alpha, beta = (np.full(size, base) for base in self.shape)
            return Nodes.betas(alpha, beta, np.full(size, 1.0 / size))
        mean, icc = self._columns(theta)
        betas = [
            Nodes.of(
                (mean[:, j, None] + offset).ravel(),
                np.repeat(icc[:, j], offset.shape[1]),
                np.full(size, 1.0 / size),
            )
            for j in range(mean.shape[1])
        ]
        if not self.parts:
            return betas[0]
        share = np.repeat(self._shares(theta), offset.shape[1], axis=0)
        return Nodes.mixed(betas, share[:, 2:], share[:, :2])

    @property
    def parts(self) -> int:
        """Betas of a law that has several parts; 0 of one Beta alone."""
        names = self.fields.slices
        return 2 if "share" in names else int("atoms" in names)

    def _columns(self, theta: Array) -> tuple[Array, Array]:
        slices = self.fields.slices
        mean = theta[:, slices["mean"]]
        return mean, np.broadcast_to(theta[:, slices["icc"]], mean.shape)

    def _shares(self, theta: Array) -> Array:
        """Shares of the parts: never, always, and each Beta."""
        slices = self.fields.slices
        if "share" in slices:
            lower = theta[:, slices["share"]]
            return np.concatenate([np.zeros((len(theta), 2)), expit(lower), expit(-lower)], axis=1)
        return np.asarray(softmax(np.pad(theta[:, slices["atoms"]], ((0, 0), (0, 1))), axis=1))

    def step(self, theta: Array, trials: Array) -> float:
        """Distance of offsets at which a table of log-likelihoods can be joined by curves.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        trials : ndarray, shape (questions,)
            Or of distinct questions, times how often they occur.
        """
        step = (_TABLE_ERROR / (_BEND * max(float(trials.sum()), 1.0))) ** (1.0 / 6.0)
        if self.parts == 2:  # which changes from one Beta to the other within their width
            icc = expit(self._columns(theta)[1]).min()
            step = min(step, float(np.sqrt(icc + 1.0 / max(trials.max(initial=1.0), 1.0))))
        return float(min(step, _WIDEST_STEP))


@dataclass(frozen=True)
class CategoryLaw:
    """A Dirichlet whose mean vector is tilted: proportional to ``m_c exp(offset s_c)``.

    With ``s`` the scores scaled to [0, 1], an offset moves probability towards high scores, and two
    categories have the Beta law of right and wrong.

    Parameters
    ----------
    scores : tuple of float
    fields : Fields
    shape : tuple of float, optional
        Parameters of a fixed Dirichlet, without hyperparameters: questions are not pooled.
    """

    scores: tuple[float, ...]
    fields: Fields
    shape: tuple[float, ...] | None = None
    parts = 0

    @cached_property
    def _scaled(self) -> Array:
        scores = np.array(self.scores)
        return np.asarray((scores - scores.min()) / max(float(np.ptp(scores)), 1e-300))

    def alpha(self, theta: Array, offset: Array) -> Array:
        """Dirichlet parameters; (points, offsets, categories)."""
        if self.shape is not None:
            return np.broadcast_to(np.array(self.shape), (*offset.shape, len(self.shape)))
        slices = self.fields.slices
        logits = np.pad(theta[:, slices["mean"]], ((0, 0), (0, 1)))[:, None]
        logits = log_softmax(logits + offset[..., None] * self._scaled, axis=2)
        concentration = -np.clip(theta[:, slices["icc"]], -34.5, 575.0)
        return np.asarray(np.maximum(np.exp(logits + concentration[:, None]), 1e-300))

    def step(self, theta: Array, trials: Array) -> float:
        """Return the distance of offsets at which tables are joined by curves."""
        step = (_TABLE_ERROR / (_BEND * max(float(trials.sum()), 1.0))) ** (1.0 / 6.0)
        return float(min(step, _WIDEST_STEP))


@dataclass(frozen=True)
class Common:
    """Complete pooling: one p, or one vector p over categories, of all questions.

    Parameters
    ----------
    fields : Fields
        Of all hyperparameters, with ``mean`` for p.
    scored : bool
        Whether p is a vector.
    """

    fields: Fields
    scored: bool = False
    parts = 0

    def log_chances(self, theta: Array) -> Array:
        """Log probabilities of the categories, or of wrong and right; (points, categories)."""
        logits = theta[:, self.fields.slices["mean"]]
        if self.scored:
            return np.asarray(log_softmax(np.pad(logits, ((0, 0), (0, 1))), axis=1))
        return np.concatenate([log_expit(-logits), log_expit(logits)], axis=1)

    def p(self, theta: Array) -> Array:
        """Success probability (points,), or probabilities (points, categories)."""
        logs = self.log_chances(theta)
        return np.exp(logs if self.scored else logs[:, 1])

    def step(self, theta: Array, trials: Array) -> float:
        """Return the distance of offsets at which tables are joined by curves."""
        del theta, trials
        return _WIDEST_STEP
