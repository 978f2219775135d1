"""Normal posterior of parameters of systems, given the sd of mu between them on a grid."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp

from bayesatk.core.one_factor.model import Likelihood
from bayesatk.metrics.credit import Array
from bayesatk.priors import LeaderboardPrior
from bayesatk.priors.fields import HalfNormal

_SPREADS = 24  # nodes of the sd of systems, both to find where it lies and there


@dataclass(frozen=True)
class Spread:
    """The normal prior of parameters given the sd of mu between systems, at nodes of this sd.

    The columns of judges that err are standard normal.
    """

    prior: LeaderboardPrior
    systems: int
    sd: Array
    judges: int = 0

    @classmethod
    def rough(cls, prior: LeaderboardPrior, systems: int, judges: int = 0) -> "Spread":
        """Nodes over all that the prior allows."""
        scale = prior.spread_sd
        return cls(prior, systems, np.geomspace(0.005 * scale, 5.0 * scale, _SPREADS), judges)

    @cached_property
    def log_weight(self) -> Array:
        """Log prior probabilities of nodes: half-normal, at equal steps of the log."""
        logs, step = np.log(self.sd), np.log(self.sd[1] / self.sd[0])
        density = HalfNormal(self.prior.spread_sd).log_density(logs[:, None])
        return np.asarray(density + np.log(step))

    @cached_property
    def centre(self) -> Array:
        """Prior mean, flat."""
        prior = self.prior
        centre = np.zeros((3, self.systems + self.judges))
        means = prior.mean[0], prior.discrimination[0], prior.interaction[0]
        centre[:, : self.systems] = np.array(means)[:, None]
        return centre.ravel()

    def covariance(self, sd: float) -> Array:
        """Prior covariance, (parameters, parameters)."""
        size, prior = self.systems, self.prior
        width = size + self.judges
        covariance = np.eye(3 * width)
        pairs = (prior.mean[1], sd), prior.discrimination[1:], prior.interaction[1:]
        for i, (common, between) in enumerate(pairs):
            block = slice(i * width, i * width + size)
            covariance[block, block] = common**2 + between**2 * np.eye(size)
        return covariance

    def log_density(self, theta: Array) -> Array:
        """Log prior density of mu at the nodes, up to what they share; (points, nodes)."""
        size = self.systems
        mu = theta[:, 0, :size] - self.prior.mean[0]
        level = mu.mean(axis=1)
        within = ((mu - level[:, None]) ** 2).sum(axis=1)[:, None]
        common = self.sd**2 + size * self.prior.mean[1] ** 2
        quadratic = within / self.sd**2 + size * (level**2)[:, None] / common
        logs = (size - 1.0) * np.log(self.sd) + 0.5 * np.log(common)
        return np.asarray(-0.5 * quadratic - logs)


@dataclass(frozen=True)
class Laplace:
    """Normal likelihood: in logs ``height + slope d - d curvature d / 2``, with d from the mode.

    Its curvature is made non-negative, and smaller along every parameter where the likelihood falls
    less than that says on either side, as it does towards r = 0: the tails of the normal one must
    not be shorter.
    """

    mode: Array
    height: float
    slope: Array
    curvature: Array

    @classmethod
    def at(cls, likelihood: Likelihood, theta: Array) -> "Laplace":
        """Return the one that agrees with a likelihood at these parameters."""
        height, slope = likelihood.gradient(theta)
        curvature = likelihood.curvature(theta)
        diagonal = np.diag(curvature)
        # The normal likelihood is to be no lower two conditional sds from the mode, or 3 logits.
        steps = np.minimum(2.0 / np.sqrt(np.maximum(diagonal, 1e-12)), 3.0)
        moves = np.concatenate([np.diag(steps), -np.diag(steps)])
        logs = likelihood.log_likelihood(theta + moves.reshape(-1, *theta.shape))
        fall = height + moves @ slope.ravel() - logs
        secant = 2.0 * fall.reshape(2, -1).min(axis=0) / steps**2
        ratio = np.divide(secant, diagonal, out=np.ones_like(diagonal), where=diagonal > 1e-12)
        scale = np.sqrt(np.clip(ratio, 0.2, 1.0))
        values, vectors = np.linalg.eigh(curvature * scale[:, None] * scale)
        curvature = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return cls(theta.ravel(), height, slope.ravel(), curvature)

    def log_likelihood(self, theta: Array) -> Array:
        """Log of the normal likelihood; theta (points, 3, systems)."""
        gap = theta.reshape(len(theta), -1) - self.mode
        square = ((gap @ self.curvature) * gap).sum(axis=1)
        return np.asarray(self.height + gap @ self.slope - 0.5 * square)


@dataclass(frozen=True)
class Normal:
    """Normal posterior of parameters given every node of the sd of systems.

    Parameters
    ----------
    spread : Spread
    mean : ndarray, shape (nodes, parameters)
    root, inverse : ndarray, shape (nodes, parameters, parameters)
        Covariances are ``root @ root.T``; the inverses of the roots.
    log_weight : ndarray, shape (nodes,)
        Posterior probabilities of nodes.
    log_evidence : float
        Log of the integral of the prior times the normal likelihood.
    """

    spread: Spread
    mean: Array
    root: Array
    inverse: Array
    log_weight: Array
    log_evidence: float

    @classmethod
    def of(cls, spread: Spread, laplace: Laplace) -> "Normal":
        """Combine the prior with a normal likelihood."""
        size = len(laplace.mode)
        gap, unit = spread.centre - laplace.mode, np.eye(size)
        mean, logs = np.empty((len(spread.sd), size)), np.empty(len(spread.sd))
        roots = np.empty((2, len(spread.sd), size, size))
        for i, sd in enumerate(spread.sd):
            prior = cholesky(spread.covariance(sd), lower=True)
            precision = cho_solve((prior, True), unit)
            pull = laplace.slope + precision @ gap
            root = cholesky(laplace.curvature + precision, lower=True)
            move = cho_solve((root, True), pull)
            mean[i], roots[1, i] = laplace.mode + move, root.T
            roots[0, i] = solve_triangular(root, unit, lower=True).T
            logs[i] = 0.5 * pull @ move - 0.5 * gap @ precision @ gap
            logs[i] -= np.log(np.diag(prior)).sum() + np.log(np.diag(root)).sum()
        joint = logs + spread.log_weight
        total = float(logsumexp(joint))
        return cls(spread, mean, roots[0], roots[1], joint - total, laplace.height + total)

    @classmethod
    def integrated(cls, rough_spread: Spread, laplace: Laplace) -> "Normal":
        """Put the nodes where the sd of systems has posterior probability."""
        rough = cls.of(rough_spread, laplace)
        probable = np.flatnonzero(rough.log_weight > rough.log_weight.max() + np.log(1e-6))
        low, high = rough.spread.sd[[max(0, probable[0] - 1), min(_SPREADS - 1, probable[-1] + 1)]]
        nodes = np.geomspace(float(low), float(high), _SPREADS)
        return cls.of(replace(rough_spread, sd=nodes), laplace)

    def place(self, node: NDArray[np.intp], deviation: Array) -> Array:
        """Parameters (points, 3, columns) of standard normal deviations."""
        theta = np.empty_like(deviation)
        for index in np.unique(node):
            members = node == index
            theta[members] = self.mean[index] + deviation[members] @ self.root[index].T
        return theta.reshape(len(theta), 3, -1)

    def deviation(self, node: NDArray[np.intp], theta: Array) -> Array:
        """Return the deviations of parameters: the inverse of `place`."""
        flat = theta.reshape(len(theta), -1)
        deviation = np.empty_like(flat)
        for index in np.unique(node):
            members = node == index
            deviation[members] = (flat[members] - self.mean[index]) @ self.inverse[index].T
        return deviation
