"""Weighted points of a model's hyperparameters: one driver for every structure and observation.

A law of one Beta, or a Dirichlet, has one mode: Student variates around it, improved by adaptive
importance sampling. Laws of several parts start from their prior, with what structure and judges
add around the mode of the one Beta, and approach the posterior by powers of the likelihood. Where
weights cannot be trusted, Markov chains by elliptical slices take over; they have no evidence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import logit, stdtrit

from bayesatk.core.numerics.importance import TRUSTED, Importance, importance_posterior
from bayesatk.core.numerics.points import (
    Points,
    curvature_root,
    integrate,
    log_student,
    sliced,
    with_slope,
)
from bayesatk.metrics.credit import Array
from bayesatk.priors.fields import Fields

_STEP, _WIDE_STEP = 1e-3, 1e-2  # of finite differences: of the log density, and of its gradient
_FLATTEST = 0.02  # curvature at the mode: nothing is wider than 7 units
_FREEDOM = 6.0  # degrees of freedom of the variates around a mode
_WIDER = 1.4  # scale of these variates where the mode is that of another law
_ENOUGH = 400.0  # least effective number of draws of weighted points
_HOPELESS = -1e10  # log density where it is not a number
_BOUND = 30.0  # unconstrained parameters, beyond which no mode is looked for


@dataclass(frozen=True)
class Laplace:
    """Mode of a log density, and a root of the inverse curvature there."""

    mode: Array
    root: Array


def tamed(log_density: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a log density that is a very small number wherever it is none."""

    def density(theta: Array) -> Array:
        return np.nan_to_num(log_density(theta), nan=_HOPELESS, neginf=_HOPELESS)

    return density


def located(log_density: Callable[[Array], Array], starts: list[Array]) -> Laplace:
    """Find the highest of the modes that some starts lead to, and the curvature there."""
    density = tamed(log_density)

    def objective(theta: Array) -> tuple[float, Array]:
        value, slope = with_slope(density, theta, _STEP)
        return -value, -slope

    modes = [
        minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-3, "maxiter": 100},
            bounds=[(-_BOUND, _BOUND)] * len(start),
        )
        for start in starts
    ]  # fmt: skip
    mode = np.asarray(min(modes, key=lambda result: float(result.fun)).x)
    root = curvature_root(
        lambda theta: with_slope(density, theta, _STEP)[1], mode, _WIDE_STEP, _FLATTEST
    )
    return Laplace(mode, root)


def around(log_density: Callable[[Array], Array], laplace: Laplace, seed: int, last: int) -> Points:
    """Points of a posterior around its mode."""
    return integrate(tamed(log_density), laplace.mode, laplace.root, seed, last)


def from_prior(
    log_density: Callable[[Array], Array],
    fields: Fields,
    laplace: Laplace,
    simple: Fields,
    shared: list[str],
    seed: int,
    negligible: float,
) -> Points:
    """Points of a posterior of a law with several parts.

    Parameters
    ----------
    log_density : callable
        Log of prior times likelihood at points of `fields`.
    fields : Fields
    laplace : Laplace
        Mode and curvature of the model of one Beta, whose fields are `simple`.
    simple : Fields
    shared : list of str
        Fields that both models have beside those of the law: of structure, and of judges.
    seed : int
        Of Markov chains.
    negligible : float
        Log evidence below which few points will do.
    """
    law = replace(fields, fields=tuple(one for one in fields if one.name not in shared))
    columns = np.r_[tuple(fields.slices[one.name] for one in law)]
    other = np.r_[tuple([fields.slices[name] for name in shared] or [slice(0, 0)])]
    simple_columns = np.r_[tuple([simple.slices[name] for name in shared] or [slice(0, 0)])]
    covariance = _WIDER**2 * (laplace.root @ laplace.root.T)[np.ix_(simple_columns, simple_columns)]
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(other)))
    centre, inverse = laplace.mode[simple_columns], np.linalg.inv(root)
    volume = float(np.log(np.diag(root)).sum())

    def from_uniform(u: Array) -> Array:
        theta = np.empty((len(u), fields.size))
        theta[:, columns] = law.from_uniform(u[:, : len(columns)])
        theta[:, other] = centre + stdtrit(_FREEDOM, u[:, len(columns) :]) @ root.T
        return theta

    def log_base(theta: Array) -> Array:
        z = (theta[:, other] - centre) @ inverse.T
        logs = law.log_density(theta[:, columns])
        return np.asarray(logs + log_student(z, _FREEDOM).sum(axis=1) - volume)

    density = tamed(log_density)

    def log_ratio(theta: Array) -> Array:
        base = log_base(theta)
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(base), density(theta) - base, _HOPELESS)

    result = importance_posterior(
        from_uniform, lambda theta: np.maximum(log_base(theta), _HOPELESS), log_ratio, fields.size,
        negligible,
    )  # fmt: skip
    return _trusted_or_sliced(density, result, seed, negligible)


def _trusted_or_sliced(
    log_density: Callable[[Array], Array], weighted: Importance, seed: int, negligible: float
) -> Points:
    """Return weighted points, or Markov chains from them where weights cannot be trusted."""
    points = Points(
        weighted.points, weighted.weight, weighted.log_evidence, weighted.k_hat,
        weighted.effective_draws, "importance sampling",
    )  # fmt: skip
    trusted = weighted.k_hat < TRUSTED and weighted.effective_draws > _ENOUGH
    if trusted or weighted.log_evidence < negligible:
        return points
    centre = points.weight @ points.theta
    gap = points.theta - centre
    spread = (points.weight[:, None] * gap).T @ gap + 1e-8 * np.eye(len(centre))
    return sliced(log_density, points, centre, np.linalg.cholesky(spread), seed)


def start_of(fields: Fields, rate: float, icc_logit: float) -> Array:
    """Where a mode is looked for: a rate of right trials, effects small, rates of a judge good."""
    theta = np.zeros(fields.size)
    starts = {
        "mean": float(logit(rate)), "icc": icc_logit, "group_sd": -0.7, "sensitivity": 2.0,
        "false_positive_rate": -2.0,
    }  # fmt: skip
    for name, value in starts.items():
        if name in fields.slices:
            theta[fields.slices[name]] = value
    return theta
