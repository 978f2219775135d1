"""Distribution of the population target: expected credit of a new question, hyperparameters out.

Given (mean, icc) the target is a number ``h = E[g(p)], p ~ Beta``, increasing in the mean. Along
one row of the hyperparameter grid (one icc) its distribution function is therefore the posterior
probability of the mean up to a point, an indefinite integral that the grid gives with spectral
accuracy (Stenger's sinc formula: ``1/2 + Si(pi u)/pi`` replaces the step function). Rows are then
joined in ``logit h``, where the whole family is smooth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.special import expit, logit, logsumexp, sici

from bayesatk.core.beta_binomial import beta_binomial_means
from bayesatk.core.credit import Array, Credit
from bayesatk.core.distribution import Distribution, constant, monotone_slopes
from bayesatk.core.hierarchy import HyperPosterior
from bayesatk.core.nodes import Nodes

_DENSER = 4
_POINTS = 1500
_LIGHT = 1e-13  # rows below this probability are left out
_FLAT = 1e-14  # spread of h below which it is a constant


@dataclass(frozen=True)
class LogitDistribution:
    """A distribution on (0, 1) tabulated in ``logit h``."""

    scale: Distribution
    error: float = 1e-7
    method: str = "quadrature"

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        with np.errstate(divide="ignore"):
            return self.scale.cdf(logit(np.clip(np.asarray(x, float), 0.0, 1.0)))

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return np.asarray(expit(self.scale.quantile(probability)))


def population_distributions(
    posterior: HyperPosterior, credits: Sequence[Credit]
) -> list[LogitDistribution | Distribution]:
    """Exact posterior distribution of the population target, one for each credit.

    Parameters
    ----------
    posterior : HyperPosterior
    credits : sequence of Credit
        Non-decreasing credit vectors; others get the grid's own step function.

    Returns
    -------
    list of LogitDistribution or Distribution
    """
    grid = posterior.refined(_DENSER)
    weight = np.exp(grid.log_weight)
    keep = weight.sum(axis=1) > _LIGHT
    weight = weight[keep] / weight[keep].sum()
    shape = weight.shape
    nodes = Nodes.of(grid.x[keep].ravel(), grid.y[keep].ravel(), weight.ravel())
    low, high = beta_binomial_means(credits, nodes.alpha, nodes.beta)
    found: list[LogitDistribution | Distribution] = []
    for column, credit in enumerate(credits):
        value, rest = low[:, column].reshape(shape), high[:, column].reshape(shape)
        if np.ptp(value) < _FLAT:
            found.append(constant(float(value.ravel()[0])))
        elif (np.diff(credit.vector) >= 0).all():
            with np.errstate(divide="ignore"):
                position = np.log(value) - np.log(rest)
            found.append(LogitDistribution(_join_rows(grid.t_column, position, weight)))
        else:
            found.append(_steps(value.ravel(), weight.ravel()))
    return found


def icc_distribution(posterior: HyperPosterior) -> LogitDistribution:
    """Exact posterior distribution of the intraclass correlation.

    Parameters
    ----------
    posterior : HyperPosterior

    Returns
    -------
    LogitDistribution
    """
    density = CubicSpline(posterior.t_row, logsumexp(posterior.log_weight, axis=1))
    t = np.linspace(posterior.t_row[0], posterior.t_row[-1], 40 * len(posterior.t_row) + 1)
    y = posterior.place(t, np.zeros_like(t))[1]
    return LogitDistribution(_along(t, np.exp(density(t)), y), 1e-6)


def _along(t: Array, density: Array, x: Array) -> Distribution:
    """Return the distribution of increasing x(t) when t has this unnormalised density."""
    cdf = CubicSpline(t, density).antiderivative()(t)
    slope = density / CubicSpline(t, x)(t, 1) / cdf[-1]
    cdf = np.maximum.accumulate(cdf / cdf[-1])
    return Distribution(x, cdf, monotone_slopes(x, cdf, slope), 1e-6, "quadrature")


def _join_rows(t: Array, position: Array, weight: Array) -> Distribution:
    """Mix the rows' distribution functions on one grid of ``logit h``."""
    step = t[1] - t[0]
    lag = (t[:, None] - t[None, :]) / step
    cumulative = np.clip(weight @ (0.5 + sici(np.pi * lag)[0] / np.pi).T, 0.0, None)
    seen = np.isfinite(position) & (weight > _LIGHT * weight.max())
    u = np.linspace(position[seen].min(), position[seen].max(), _POINTS)
    cdf, pdf = np.zeros(_POINTS), np.zeros(_POINTS)
    for row in range(len(weight)):
        valid = np.isfinite(position[row])
        valid[valid] &= np.diff(position[row][valid], prepend=-np.inf) > 0
        if valid.sum() < 4:
            cdf += weight[row].sum() * (u >= np.median(position[row][valid]))
            continue
        x, total = position[row][valid], cumulative[row][valid]
        slope = weight[row][valid] / step / CubicSpline(t[valid], x)(t[valid], 1)
        total = np.maximum.accumulate(total)
        piece = CubicHermiteSpline(x, total, monotone_slopes(x, total, slope))
        inside = np.clip(u, x[0], x[-1])
        cdf += np.where(u >= x[-1], weight[row].sum(), piece(inside))
        pdf += np.where((u >= x[0]) & (u <= x[-1]), piece(inside, 1), 0.0)
    cdf = np.maximum.accumulate(cdf / weight.sum())
    keep = np.concatenate([[True], np.diff(cdf) > 0]) | np.isclose(u, u[-1])
    u, cdf, pdf = u[keep], cdf[keep], pdf[keep]
    return Distribution(u, cdf, monotone_slopes(u, cdf, pdf), 1e-7, "quadrature")


def _steps(value: Array, weight: Array) -> Distribution:
    """Weighted distribution of a credit that is not monotone in p, at the grid's resolution."""
    x, which = np.unique(value, return_inverse=True)
    mass = np.bincount(which, weights=weight)
    cdf = np.cumsum(mass) - 0.5 * mass
    slopes = monotone_slopes(x, cdf, np.gradient(cdf, x))
    return Distribution(x, cdf, slopes, float(np.diff(x).max()), "grid")
