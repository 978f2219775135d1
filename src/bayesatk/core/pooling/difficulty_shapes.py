"""Difficulty families given their hyperparameters: priors, and the distributions of p."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betaincinv, betaln, expit, gammaln, log_expit, logit, logsumexp

from bayesatk.core.pooling.nodes import Nodes
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

_FARTHEST = 600.0  # logits, within double precision


class Shape(Protocol):
    """A family given its hyperparameters, which are unconstrained numbers."""

    @property
    def size(self) -> int:
        """Number of hyperparameters."""
        ...

    def from_uniform(self, u: Array) -> Array:
        """Draws from the prior, of uniform numbers."""
        ...

    def log_prior(self, theta: Array) -> Array:
        """Log prior density."""
        ...

    def nodes(self, theta: Array) -> Nodes:
        """Return the distributions of p, equally probable."""
        ...


@dataclass(frozen=True)
class Inflated:
    """``logit m, logit r, log(never / between), log(always / between)``."""

    prior: HyperPrior
    size: int = 4

    def from_uniform(self, u: Array) -> Array:
        """Draws from the prior, of uniform numbers."""
        a, b, c = self.prior.atoms
        never, of_rest = _logit_beta((a, b + c), u[:, 2]), _logit_beta((b, c), u[:, 3])
        # never / between = (never / rest) / (between / rest)
        return np.stack([*_beta_from(self.prior, u), never - log_expit(-of_rest), of_rest], axis=1)

    def log_prior(self, theta: Array) -> Array:
        """Log prior density."""
        shape = np.array(self.prior.atoms)
        logs = _log_shares(theta[:, 2:])
        found = log_beta_prior(self.prior, theta) + logs @ shape
        return np.asarray(found + gammaln(shape.sum()) - gammaln(shape).sum())

    def nodes(self, theta: Array) -> Nodes:
        """Return the distributions of p, equally probable."""
        share = np.exp(_log_shares(theta[:, 2:]))
        return Nodes.mixed([_betas(theta)], share[:, 2:], share[:, :2])


@dataclass(frozen=True)
class Mixture:
    """``logit m, logit r`` of the lower Beta and of the upper, and the logit of the lower's share.

    They are told apart by their means: twice the density where they are in order, zero elsewhere.
    """

    prior: HyperPrior
    size: int = 5

    def from_uniform(self, u: Array) -> Array:
        """Draws from the prior, of uniform numbers."""
        first = np.stack(_beta_from(self.prior, u), axis=1)
        second = np.stack(_beta_from(self.prior, u[:, 2:]), axis=1)
        ordered = first[:, :1] <= second[:, :1]
        low, high = np.where(ordered, first, second), np.where(ordered, second, first)
        return np.concatenate([low, high, _logit_beta(self.prior.share, u[:, 4])[:, None]], axis=1)

    def log_prior(self, theta: Array) -> Array:
        """Log prior density."""
        found = log_beta_prior(self.prior, theta) + log_beta_prior(self.prior, theta[:, 2:])
        found = found + log_logit_beta(self.prior.share, theta[:, 4]) + np.log(2.0)
        return np.where(theta[:, 0] <= theta[:, 2], found, -np.inf)

    def nodes(self, theta: Array) -> Nodes:
        """Return the distributions of p, equally probable."""
        share = np.stack([expit(theta[:, 4]), expit(-theta[:, 4])], axis=1)
        parts = [_betas(theta), _betas(theta[:, 2:])]
        return Nodes.mixed(parts, share, np.zeros((len(theta), 2)))


SHAPES: dict[str, Callable[[HyperPrior], Shape]] = {"inflated": Inflated, "mixture": Mixture}


def log_logit_beta(shape: tuple[float, float], x: Array) -> Array:
    """Log density of the logit of a Beta at a logit, without its normaliser where it has none."""
    scale = betaln(*shape) if min(shape) > 0.0 else 0.0
    return np.asarray(shape[0] * log_expit(x) + shape[1] * log_expit(-x) - scale)


def log_beta_prior(prior: HyperPrior, theta: Array) -> Array:
    """Log prior density of the logits of a mean and an intraclass correlation."""
    own = log_logit_beta(prior.mean, theta[:, 0]) + log_logit_beta(prior.icc, theta[:, 1])
    return np.asarray(own)


def _logit_beta(shape: tuple[float, float], u: Array) -> Array:
    """Logit of Beta quantiles."""
    with np.errstate(divide="ignore"):
        low = logit(betaincinv(*shape, u))
        high = -logit(betaincinv(*shape[::-1], 1.0 - u))
    return np.clip(np.where(low < 0.0, low, high), -_FARTHEST, _FARTHEST)


def _beta_from(prior: HyperPrior, u: Array) -> tuple[Array, Array]:
    return _logit_beta(prior.mean, u[:, 0]), _logit_beta(prior.icc, u[:, 1])


def _betas(theta: Array) -> Nodes:
    return Nodes.of(theta[:, 0], theta[:, 1], np.full(len(theta), 1.0 / len(theta)))


def _log_shares(ratios: Array) -> Array:
    """Log shares from their log ratios to the last; shape (points, ratios + 1)."""
    logs = np.concatenate([ratios, np.zeros((len(ratios), 1))], axis=1)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))
