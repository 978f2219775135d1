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

_OFFSET_STEP_MAX = 0.35  # between offsets of a table, in logits
# Constant of six-point curves, times the largest sixth derivative of log(1 + e^x).
_INTERPOLATION_CONSTANT = 1.2e-3
_TABLE_ERROR_MAX = 0.005  # of a log-likelihood that is interpolated in a table


@dataclass(frozen=True)
class DifficultyLaw:
    """Betas, one or two, and point masses at 0 and 1; offsets move the logit means of the Betas.

    Parameters
    ----------
    fields : Fields
        All hyperparameters of the model. The law uses ``mean`` and ``icc`` of its Betas, the
        ``share`` of the first of two, and the shares of ``atoms``.
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
        """Number of Betas of a law that has several parts; 0 for one Beta alone."""
        names = self.fields.slices
        return 2 if "share" in names else int("atoms" in names)

    def _columns(self, theta: Array) -> tuple[Array, Array]:
        slices = self.fields.slices
        mean = theta[:, slices["mean"]]
        return mean, np.broadcast_to(theta[:, slices["icc"]], mean.shape)

    def _shares(self, theta: Array) -> Array:
        """Shares of the atoms at 0 and 1, then of each Beta; (points, parts)."""
        slices = self.fields.slices
        if "share" in slices:
            logit_share = theta[:, slices["share"]]
            return np.concatenate(
                [np.zeros((len(theta), 2)), expit(logit_share), expit(-logit_share)], axis=1
            )
        return np.asarray(softmax(np.pad(theta[:, slices["atoms"]], ((0, 0), (0, 1))), axis=1))

    def step(self, theta: Array, trials: Array) -> float:
        """Step of the offsets of a table that interpolates log-likelihoods by six-point curves.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        trials : ndarray, shape (questions,)
            Or, for distinct questions, their trials times the number of such questions.
        """
        error_at_unit_step = _INTERPOLATION_CONSTANT * max(float(trials.sum()), 1.0)
        step = (_TABLE_ERROR_MAX / error_at_unit_step) ** (1.0 / 6.0)
        if self.parts == 2:  # the likelihood turns from one Beta to the other within their width
            icc = expit(self._columns(theta)[1]).min()
            step = min(step, float(np.sqrt(icc + 1.0 / max(trials.max(initial=1.0), 1.0))))
        return float(min(step, _OFFSET_STEP_MAX))


@dataclass(frozen=True)
class CategoryLaw:
    r"""A Dirichlet whose mean vector is tilted by an offset.

    With scores s scaled to [0, 1] and the mean vector m at an offset of zero, at the offset x

    .. math:: E(p_c) = \frac{m_c e^{x s_c}}{\sum_d m_d e^{x s_d}}.

    An offset moves probability towards high scores, and two categories have the Beta law of right
    and wrong.

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
        """Return the step of offsets at which tables of log-likelihoods are interpolated."""
        error_at_unit_step = _INTERPOLATION_CONSTANT * max(float(trials.sum()), 1.0)
        step = (_TABLE_ERROR_MAX / error_at_unit_step) ** (1.0 / 6.0)
        return float(min(step, _OFFSET_STEP_MAX))


@dataclass(frozen=True)
class CommonP:
    """Complete pooling: one p, or one vector p over categories, of all questions.

    Parameters
    ----------
    fields : Fields
        All hyperparameters, with ``mean`` for p.
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
        """Return the step of offsets at which tables of log-likelihoods are interpolated."""
        del theta, trials
        return _OFFSET_STEP_MAX
