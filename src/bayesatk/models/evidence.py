"""Evidence of a sampled model of success probabilities, by bridge sampling, for each system.

Meng and Wong 1996, Statistica Sinica 6, 831-860: the normalising constant of a density q that can
be evaluated, from draws of it and from draws of a normalised density g that overlaps it,

    Z = E_g[q h] / E_q/Z[g h],   h ~ 1 / (s_1 q / Z + s_2 g),

iterated until Z on both sides agrees. Here g is a kernel density of one half of the draws, with
heavy tails, and the other half are the draws of q; then the halves change places.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import xarray as xr
from numpy.typing import NDArray
from pytensor.graph.replace import vectorize_graph
from scipy.special import gammaln, logsumexp

Array = NDArray[np.float64]
_KERNELS = 500  # of the proposal
_DEGREES = 8.0  # of freedom of its t kernels
_PER_DRAW = 2  # proposals for every draw of the posterior that they are compared with
_STEPS = 200
_TOLERANCE = 1e-10  # of the log evidence between steps
_MOST = 2_000_000  # values of likelihoods of states held at once
_PARTS = 2  # of a variable of a mixture
_UNBOUNDED = 36.0  # logit of the number next to 1: draws beyond it cannot be told from 1


@dataclass(frozen=True)
class LogEvidence:
    """Log evidence of each system, with its standard error."""

    value: Array
    error: Array


@dataclass(frozen=True)
class Bridge:
    """A marginal model whose evidence is wanted for data that may be exchanged.

    Parameters
    ----------
    model : pymc.Model
        From `bayesatk.models.program`, marginal: free variables with systems first, likelihoods of
        states in the potential ``log_likelihood``, any others with systems first.
    """

    model: pm.Model

    @cached_property
    def _density(self) -> Any:
        """Compiled log densities of many unconstrained points, (points, ...) by term."""
        model = self.model
        terms = [*model.free_RVs, *model.potentials]
        logs = model.logp(vars=terms, jacobian=True, sum=False)
        values = [model.rvs_to_values[rv] for rv in model.free_RVs]
        batched = [
            pytensor.tensor.tensor(shape=(None, *v.type.shape), dtype="float64") for v in values
        ]
        many = vectorize_graph(logs, dict(zip(values, batched, strict=True)))
        # Compiling costs more than interpreting once over arrays of draws.
        return pytensor.function(batched, many, mode="FAST_COMPILE")

    @cached_property
    def _unconstrain(self) -> Any:
        model = self.model
        found, inputs = [], []
        for rv in model.free_RVs:
            constrained = pytensor.tensor.tensor(shape=(None, *rv.type.shape), dtype="float64")
            transform = model.rvs_to_transforms[rv]
            inputs.append(constrained)
            found.append(transform.forward(constrained, *rv.owner.inputs))
        return pytensor.function(inputs, found, mode="FAST_COMPILE", on_unused_input="ignore")

    def log_evidence(self, posterior: xr.Dataset, rng: np.random.Generator) -> LogEvidence:
        """Estimate from the draws of one data set, which the model must have.

        Parameters
        ----------
        posterior : xarray.Dataset
            Draws of the free variables.
        rng : numpy.random.Generator
            For the proposals.
        """
        points = self._points(posterior)
        found = [self._of_system(points, system, rng) for system in range(points.shape[2])]
        value, error = np.transpose(found)
        return LogEvidence(value, error)

    def _points(self, posterior: xr.Dataset) -> Array:
        """Unconstrained draws (chain, draw, system, parameter)."""
        names = [rv.name for rv in self.model.free_RVs]
        order = ("chain", "draw", "system", ...)
        values = [posterior[name].transpose(*order).values for name in names]
        sizes = values[0].shape[:3]
        with np.errstate(divide="ignore"):
            free = self._unconstrain(*(each.reshape(-1, *each.shape[2:]) for each in values))
        flat = [np.asarray(each).reshape(*sizes, -1) for each in free]
        together = np.concatenate(flat, axis=-1)
        return np.asarray(np.clip(together, -20.0 * _UNBOUNDED, _UNBOUNDED))

    def _of_system(
        self, points: Array, system: int, rng: np.random.Generator
    ) -> tuple[float, float]:
        half = points.shape[1] // 2
        own = self._in_order(points[:, :, system])
        density = partial(self._log_density, system=system, systems=points.shape[2])
        pairs = (own[:, :half], own[:, half : 2 * half]), (own[:, half:], own[:, :half])
        found = [_bridge(density, *pair, self._in_parts, rng) for pair in pairs]
        values, errors = np.transpose(found)
        return float(values.mean()), float(np.hypot(*errors) / 2.0)

    def _in_order(self, points: Array) -> Array:
        """Points of a mixture with the lower mean first: the density of both orders is the same."""
        if not self._in_parts:
            return points
        first_lower = points[..., 0] <= points[..., 1]
        return np.where(first_lower[..., None], points, _exchanged(points))

    @property
    def _in_parts(self) -> bool:
        return any(rv.name == "share" for rv in self.model.free_RVs)

    def _log_density(self, points: Array, system: int, systems: int) -> Array:
        """Log of prior times likelihood of one system at points (points, parameter)."""
        owner = self.model["state_system"].get_value()
        step = max(1, _MOST // max(1, len(owner)))
        found = np.empty(len(points))
        for start in range(0, len(points), step):
            part = slice(start, start + step)
            # The terms of the other systems are of no interest.
            everywhere = np.repeat(points[part, None], systems, axis=1)
            with np.errstate(all="ignore"):
                terms = self._density(*self._split(everywhere))
            named = zip([*self.model.free_RVs, *self.model.potentials], terms, strict=True)
            total = np.zeros(len(everywhere))
            for variable, term in named:
                if variable.name == "log_likelihood":
                    total += term[:, owner == system].sum(axis=1)
                else:
                    total += term[:, system].reshape(len(total), -1).sum(axis=1)
            found[part] = total
        return np.where(np.isnan(found), -np.inf, found)

    def _split(self, points: Array) -> list[Array]:
        """One array for every free variable."""
        shapes = [self.model.rvs_to_values[rv].type.ndim for rv in self.model.free_RVs]
        widths = [1 if ndim == 1 else _PARTS for ndim in shapes]
        parts = np.split(points, np.cumsum(widths)[:-1], axis=-1)
        return [each[..., 0] if n == 1 else each for n, each in zip(shapes, parts, strict=True)]


def _exchanged(points: Array) -> Array:
    """Points of a mixture (two means, logit of a share, two iccs) with its parts exchanged."""
    return np.asarray(points[..., [1, 0, 2, 4, 3]] * np.array([1.0, 1.0, -1.0, 1.0, 1.0]))


@dataclass(frozen=True)
class _Kernels:
    """Density of t kernels around some draws, in the directions in which the draws spread."""

    centres: Array
    root: Array  # of the covariance of a kernel

    @classmethod
    def of(cls, draws: Array) -> "_Kernels":
        size, dimensions = draws.shape
        chosen = draws[np.linspace(0, size - 1, min(_KERNELS, size)).astype(int)]
        width = (4.0 / (dimensions + 2.0) / len(chosen)) ** (1.0 / (dimensions + 4.0))
        covariance = np.atleast_2d(np.cov(draws.T)) + 1e-8 * np.eye(dimensions)
        return cls(chosen, width * np.linalg.cholesky(covariance))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Return draws, as many from every kernel as can be."""
        centre = self.centres[rng.permutation(np.arange(size) % len(self.centres))]
        normal = rng.standard_normal((size, self.centres.shape[1]))
        spread = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size))[:, None]
        return np.asarray(centre + spread * (normal @ self.root.T))

    def log_density(self, points: Array) -> Array:
        """Log density of each point."""
        dimensions = points.shape[1]
        at, centre = (np.linalg.solve(self.root, x.T).T for x in (points, self.centres))
        squared = (at**2).sum(axis=1)[:, None] - 2.0 * at @ centre.T + (centre**2).sum(axis=1)
        logs = np.log1p(np.maximum(squared, 0.0) / _DEGREES)
        constant = gammaln(0.5 * (_DEGREES + dimensions)) - gammaln(0.5 * _DEGREES)
        constant -= 0.5 * dimensions * np.log(_DEGREES * np.pi)
        constant -= np.log(np.diag(self.root)).sum() + np.log(len(self.centres))
        return np.asarray(constant + logsumexp(-0.5 * (_DEGREES + dimensions) * logs, axis=1))


def _bridge(
    log_density: Callable[[Array], Array],
    pilot: Array,
    draws: Array,
    in_parts: bool,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Log normalising constant, and its standard error, from draws (chain, draw, parameter).

    Where points are `in_parts` the density is the same with the parts exchanged, and the draws are
    all in one order: the proposal is made to be the same in either order too.
    """
    flat = draws.reshape(-1, draws.shape[2])
    proposal = _Kernels.of(pilot.reshape(-1, draws.shape[2]))

    def log_ratio(points: Array) -> Array:
        """Log of q over g."""
        log_g = proposal.log_density(points)
        if in_parts:
            other = proposal.log_density(_exchanged(points))
            log_g = np.logaddexp(log_g, other) - np.log(2.0)
        return log_density(points) - log_g

    proposed = proposal.draw(_PER_DRAW * len(flat), rng)
    at_draws, at_proposed = log_ratio(flat), log_ratio(proposed)
    # Effective sizes: draws of a chain repeat one another.
    some = az.ess(
        np.clip(at_draws, *np.quantile(at_draws, [0.001, 0.999])).reshape(draws.shape[:2])
    )
    share = np.log([float(some), len(proposed)]) - np.log(float(some) + len(proposed))
    log_z = float(np.median(at_draws))
    for _ in range(_STEPS):
        before = log_z
        above = logsumexp(at_proposed - np.logaddexp(share[0] + at_proposed - log_z, share[1]))
        below = logsumexp(-np.logaddexp(share[0] + at_draws - log_z, share[1]))
        log_z = float(above - np.log(len(proposed)) - below + np.log(len(flat)))
        if abs(log_z - before) < _TOLERANCE:
            break
    return log_z, _bridge_error(at_draws.reshape(draws.shape[:2]), at_proposed, log_z, share)


def _bridge_error(at_draws: Array, at_proposed: Array, log_z: float, share: Array) -> float:
    """Return the standard error of the log, by Frühwirth-Schnatter 2004 (effective sizes)."""
    of_proposed = np.exp(
        at_proposed - log_z - np.logaddexp(share[0] + at_proposed - log_z, share[1])
    )
    of_draws = np.exp(-np.logaddexp(share[0] + at_draws - log_z, share[1]))
    variance = of_proposed.var() / of_proposed.mean() ** 2 / of_proposed.size
    size = min(float(az.ess(of_draws, method="mean")), of_draws.size)
    return float(np.sqrt(variance + of_draws.var() / of_draws.mean() ** 2 / size))
