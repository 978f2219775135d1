"""Partial pooling of categories: the posterior of a Dirichlet's mean vector and correlation.

Questions have category probabilities ``p_a ~ Dirichlet(kappa m)`` with ``kappa = (1 - r)/r``, so
that ``r`` is the intraclass correlation of every category. Given ``(m, r)`` all is conjugate. They
are integrated by importance sampling: quasi-random points of a multivariate t around the mode of
``(log ratios of m, logit r)``, moved twice to the weighted mean and covariance of the points
before. Two categories need no sampling (`bayesatk.core.hierarchy`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, gammaln, gdtrix, log_softmax, logsumexp, ndtri, softmax

from bayesatk.core.hierarchy import hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

LogDensity = Callable[[Array], Array]

_REPLICATES = 8  # independent scramblings of the points, for an error estimate
_POINTS = 512  # in each; a power of two, as Sobol points ask for
_FREEDOM = 5.0  # of the t distribution
_WIDER = 1.15  # than the weighted points: tails too light are what makes ratios unreliable
_SEED = 20_250_227  # of the scramblings: the result is a function of the data
_ROUNDS = 3
_BLOCK = 4_000_000
_LARGE = 0.1  # Dirichlet parameters from which gamma variates do not underflow


@dataclass(frozen=True)
class DirichletHyper:
    """Posterior of (mean vector, intraclass correlation) on weighted points.

    Parameters
    ----------
    mean : ndarray, shape (points, categories)
    icc : ndarray, shape (points,)
    weight : ndarray, shape (points,)
        Sum to one.
    log_weight : ndarray, shape (points,)
        Importance ratios as they came, for the Pareto diagnostic; empty for a quadrature rule.
    log_evidence : float
        Log marginal likelihood of the trials in one given order.
    error : float
        Standard error of the posterior means of the hyperparameters, in their sds: the largest
        over them, between independent sets of points.
    """

    mean: Array
    icc: Array
    weight: Array
    log_weight: Array
    log_evidence: float
    error: float

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters at the points."""
        concentration = (1.0 - self.icc) / self.icc
        return np.maximum(self.mean * concentration[:, None], 1e-300)

    def thinned(self, size: int) -> "DirichletHyper":
        """Return at most ``size`` of the points: whole sets of them, or the beginning of one.

        The first 2^m of a set are quasi-random points themselves; draws of a sampler are taken at
        equal distances.
        """
        number = len(self.weight)
        if number <= size:
            return self
        if len(self.log_weight) < number:
            kept = np.linspace(0, number - 1, size).astype(np.intp)
        elif size >= _POINTS:
            kept = np.arange(size // _POINTS * _POINTS)
        else:
            kept = np.arange(2 ** int(np.log2(max(1, size))))
        weight = self.weight[kept] / self.weight[kept].sum()
        return replace(self, mean=self.mean[kept], icc=self.icc[kept], weight=weight)


@dataclass(frozen=True)
class CategoryHistograms:
    """All that the likelihood of (mean vector, icc) needs: how many questions exceed each count.

    Parameters
    ----------
    exceed : ndarray, shape (categories, most + 1)
        Questions, weighted, with more than v whole trials in the category, for v = 0, 1, ....
    total : ndarray, shape (most + 1,)
        Questions with more than v whole trials.
    parts : tuple of ndarray
        Discounted trials leave fractions: (category, whole, fraction, weight) of each distinct
        one; the category of a total is -1.
    """

    exceed: Array
    total: Array
    parts: tuple[NDArray[np.intp], Array, Array, Array]

    @classmethod
    def of(cls, counts: ArrayLike, weight: ArrayLike) -> "CategoryHistograms":
        """Tally distinct count vectors (states, categories) with their multiplicities."""
        counts, weight = np.asarray(counts, float), np.asarray(weight, float)
        columns = np.column_stack([counts, counts.sum(axis=1)]).T
        whole = np.floor(columns)
        size = int(whole.max(initial=0)) + 1
        exceed = np.stack([_exceeding(row.astype(np.int64), weight, size) for row in whole])
        column, state = np.nonzero(columns > whole)
        keys = np.stack([column, whole[column, state], (columns - whole)[column, state]])
        distinct, which = np.unique(keys, axis=1, return_inverse=True)
        repeats = np.bincount(which.ravel(), weights=weight[state], minlength=distinct.shape[1])
        category = distinct[0].astype(np.intp)
        category[category == counts.shape[1]] = -1
        return cls(exceed[:-1], exceed[-1], (category, distinct[1], distinct[2], repeats))


def _exceeding(values: NDArray[np.int64], weight: Array, size: int) -> Array:
    at_value = np.bincount(values, weights=weight, minlength=size)
    return np.asarray(at_value.sum() - np.cumsum(at_value))


def log_likelihood(data: CategoryHistograms, log_mean: Array, y: Array) -> Array:
    """Dirichlet-multinomial log-likelihood of trials in their given order, at points.

    Products of ``m_c + v u`` and ``1 / (1 + v u)`` with ``u = r/(1-r)``: nothing cancels when the
    questions are nearly alike.

    Parameters
    ----------
    data : CategoryHistograms
    log_mean : ndarray, shape (points, categories)
    y : ndarray, shape (points,)
        ``logit r``.
    """
    result = np.zeros(len(y))
    width = max(1, _BLOCK // len(data.total))
    for start in range(0, len(y), width):
        part = slice(start, start + width)
        for c, exceed in enumerate(data.exceed):
            v = np.flatnonzero(exceed)
            logs = np.logaddexp(log_mean[part, c, None], y[part, None] + _log(v))
            result[part] += logs @ exceed[v]
        v = np.flatnonzero(data.total)
        result[part] -= np.logaddexp(0.0, y[part, None] + _log(v)) @ data.total[v]
    for category, whole, fraction, weight in zip(*data.parts, strict=True):
        base = np.zeros(len(y)) if category < 0 else log_mean[:, category]
        rise = _fractional_rise(base, y, whole, fraction)
        result += (-weight if category < 0 else weight) * rise
    return result


def _fractional_rise(base: Array, y: Array, whole: float, fraction: float) -> Array:
    """``log Gamma(x + f) - log Gamma(x) - f log kappa`` at ``x = kappa m + whole``."""
    log_share = np.logaddexp(base, y + _log(np.array([whole])))
    x = np.exp(np.minimum(log_share - y, 300.0))
    small = np.minimum(x, 1e3)
    near = gammaln(small + fraction) - gammaln(small) - fraction * np.log(small)
    slope = fraction * (fraction - 1.0) / 2.0
    far = slope / x - slope * (2.0 * fraction - 1.0) / 6.0 / x**2
    return fraction * log_share + np.where(x < 1e3, near, far)


def _log(v: NDArray[Any]) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(v), float)


def dirichlet_posterior(
    counts: ArrayLike, weight: ArrayLike, mean_prior: ArrayLike, icc_prior: tuple[float, float]
) -> DirichletHyper:
    """Integrate the hyperparameters of categories.

    Parameters
    ----------
    counts : array_like, shape (states, categories)
        Distinct count vectors; discounted prior trials may make them fractional.
    weight : array_like, shape (states,)
        Questions with each.
    mean_prior : array_like, shape (categories,)
        Dirichlet prior of the mean vector.
    icc_prior : (float, float)
        Beta prior of the intraclass correlation.

    Returns
    -------
    DirichletHyper
        Two categories with whole counts: the quadrature rule of `bayesatk.core.hierarchy`.
    """
    counts, prior = np.asarray(counts, float), np.asarray(mean_prior, float)
    weight = np.asarray(weight, float)
    if counts.shape[1] == 2 and (counts == np.floor(counts)).all():
        return _two_categories(counts.astype(np.int64), weight, prior, icc_prior)
    return importance_posterior(counts, weight, prior, icc_prior)


def importance_posterior(
    counts: Array, weight: Array, prior: Array, icc_prior: tuple[float, float]
) -> DirichletHyper:
    """Integrate the hyperparameters by importance sampling, for any number of categories."""
    data = CategoryHistograms.of(counts, weight)

    def log_density(z: Array) -> Array:
        log_mean = log_softmax(np.pad(z[:, :-1], ((0, 0), (0, 1))), axis=1)
        y = z[:, -1]
        dirichlet = log_mean @ prior + gammaln(prior.sum()) - gammaln(prior).sum()
        beta = -icc_prior[0] * np.logaddexp(0, -y) - icc_prior[1] * np.logaddexp(0, y)
        return np.asarray(log_likelihood(data, log_mean, y) + dirichlet + beta - betaln(*icc_prior))

    centre, root = _mode(log_density, data, prior)
    uniform = _uniform_points(len(centre) + 1)
    for step in range(_ROUNDS):
        z, log_weight = _importance(log_density, centre, root, uniform)
        share = np.exp(log_weight - logsumexp(log_weight))
        if step < _ROUNDS - 1:
            centre, root = _moved(z, share)
    log_mean = log_softmax(np.pad(z[:, :-1], ((0, 0), (0, 1))), axis=1)
    return DirichletHyper(
        np.exp(log_mean),
        expit(np.clip(z[:, -1], -600.0, 34.5)),
        share,
        log_weight,
        float(logsumexp(log_weight) - np.log(len(z))),
        _error(np.column_stack([log_mean, z[:, -1]]), log_weight),
    )


def _uniform_points(dimensions: int) -> Array:
    """Return independent scramblings of Sobol points, one set below the other."""
    from scipy.stats import qmc  # half of what evaluate costs to import, for categories only

    return np.concatenate(
        [
            qmc.Sobol(dimensions, rng=np.random.default_rng((_SEED, i))).random(_POINTS)
            for i in range(_REPLICATES)
        ]
    )


def _two_categories(
    counts: NDArray[np.int64], weight: Array, prior: Array, icc_prior: tuple[float, float]
) -> DirichletHyper:
    histograms = CountHistograms.of(counts[:, 1], counts.sum(axis=1), weight)
    grid = hyper_posterior(histograms, HyperPrior((float(prior[1]), float(prior[0])), icc_prior))
    kept = grid.weight > 1e-13
    return DirichletHyper(
        np.stack([expit(-grid.x.ravel()), grid.mean], axis=1)[kept],
        grid.icc[kept],
        grid.weight[kept] / grid.weight[kept].sum(),
        np.zeros(0),
        grid.log_evidence,
        grid.error,
    )


def _mode(log_density: LogDensity, data: CategoryHistograms, prior: Array) -> tuple[Array, Array]:
    """Mode and a root of the inverse curvature, by finite differences on vectorised calls."""
    share = data.exceed.sum(axis=1) + prior
    start = np.append(np.log(share[:-1] / share[-1]), -1.0)
    size, step = len(start), 1e-4
    moves = step * np.eye(size)

    def slope(z: Array) -> tuple[float, Array]:
        values = log_density(np.concatenate([z[None], z + moves, z - moves]))
        return -values[0], -(values[1 : size + 1] - values[size + 1 :]) / (2.0 * step)

    bounds = [(-40.0, 40.0)] * (size - 1) + [(-25.0, 15.0)]
    centre = minimize(slope, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    wide = 20.0 * step * np.eye(size)
    gradients = np.stack([slope(centre + w)[1] - slope(centre - w)[1] for w in wide])
    curvature = gradients / (40.0 * step)
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    return centre, vectors / np.sqrt(np.clip(values, 0.02, None))


def _importance(
    log_density: LogDensity, centre: Array, root: Array, uniform: Array
) -> tuple[Array, Array]:
    """Points of a multivariate t and their log importance ratios."""
    size = len(centre)
    normal = ndtri(uniform[:, :size])
    chi2 = 2.0 * gdtrix(1.0, 0.5 * _FREEDOM, uniform[:, size])
    t = normal * np.sqrt(_FREEDOM / chi2)[:, None]
    z = centre + t @ root.T
    constant = gammaln(0.5 * (_FREEDOM + size)) - gammaln(0.5 * _FREEDOM)
    constant -= 0.5 * size * np.log(_FREEDOM * np.pi) + np.linalg.slogdet(root)[1]
    shape = -0.5 * (_FREEDOM + size) * np.log1p((t**2).sum(axis=1) / _FREEDOM)
    return z, log_density(z) - constant - shape


def _moved(z: Array, share: Array) -> tuple[Array, Array]:
    """Weighted mean and root of the weighted covariance; weights tempered where few dominate."""
    power = 1.0
    while power > 0.1 and (share.sum() ** 2) / (share @ share) < 20.0 * z.shape[1]:
        share, power = share**0.7 / (share**0.7).sum(), 0.7 * power
    centre = share @ z
    covariance = (share[:, None] * (z - centre)).T @ (z - centre)
    values, vectors = np.linalg.eigh(covariance)
    return centre, _WIDER * vectors * np.sqrt(np.maximum(values, 1e-12))


def _error(z: Array, log_weight: Array) -> float:
    """Largest standard error of a weighted mean, in weighted sds, between sets of points."""
    by_set = z.reshape(_REPLICATES, _POINTS, -1)
    share = np.exp(log_weight - logsumexp(log_weight))
    sets = share.reshape(_REPLICATES, _POINTS)
    means = np.einsum("rp,rpc->rc", sets / sets.sum(axis=1, keepdims=True), by_set)
    sd = np.sqrt(share @ (z - share @ z) ** 2)
    spread = means.std(axis=0, ddof=1) / np.sqrt(_REPLICATES)
    return float(np.max(spread / np.maximum(sd, 1e-300)))


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
