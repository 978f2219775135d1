"""Partial pooling of categories: the posterior of a Dirichlet's mean vector and correlation.

Questions have category probabilities ``p_a ~ Dirichlet(kappa m)`` with ``kappa = (1 - r)/r``, so
that ``r`` is the intraclass correlation of every category. Given ``(m, r)`` all is conjugate. Their
posterior is on weighted points (`bayesatk.core.numerics.points`) of ``(log ratios of m, logit r)``,
around the mode. Two categories need no sampling (`bayesatk.core.pooling.hierarchy`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import betaln, expit, gammaln, log_softmax, softmax

from bayesatk.core.numerics.points import Points, curvature_root, integrate, with_slope
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import hyper_posterior
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

_STEP, _WIDE_STEP = 1e-4, 2e-3  # of finite differences: of the log density, and of its gradient
_FLATTEST = 0.02  # curvature at the mode: nothing is wider than 7 units
_LEAST_LOGIT_ICC, _MOST_LOGIT_ICC = -600.0, 34.5  # beyond which the icc rounds to 0 or 1
_POINTS = 8192  # of the posterior, to begin with
_NEGLIGIBLE = 1e-13  # probability of a node that is left out
_LARGE = 0.1  # Dirichlet parameters from which gamma variates do not underflow


@dataclass(frozen=True)
class DirichletHyper:
    """Posterior of (mean vector, intraclass correlation) on weighted points.

    Parameters
    ----------
    points : Points
        Log ratios of the mean of every category to that of the last, and logit icc.
    exact : bool
        Whether they are nodes of a quadrature rule, which have no importance ratios.
    error : float
        Standard error of the posterior means of the hyperparameters, in their sds.
    """

    points: Points
    exact: bool
    error: float

    @property
    def weight(self) -> Array:
        """Probabilities of the points."""
        return self.points.weight

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the trials in one given order."""
        return self.points.log_evidence

    @cached_property
    def mean(self) -> Array:
        """Mean vectors, (points, categories)."""
        return np.exp(_log_mean(self.points.logits))

    @cached_property
    def icc(self) -> Array:
        """Intraclass correlations."""
        return np.asarray(expit(np.clip(self.points.log_ratio, _LEAST_LOGIT_ICC, _MOST_LOGIT_ICC)))

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters at the points."""
        concentration = (1.0 - self.icc) / self.icc
        return np.maximum(self.mean * concentration[:, None], 1e-300)

    def log_likelihood(self, counts: ArrayLike) -> Array:
        """Log probability of a question's trials in their order, at every point."""
        data = CountHistograms.of_counts(np.asarray(counts)[None], [1.0])
        return data.of_means(self.mean.T, self.points.log_ratio)

    def thinned(self, size: int) -> "DirichletHyper":
        """Return at most ``size`` of the points, with nearly the means and variances of all.

        The first of weighted points are spread as evenly as all of them; of others some at equal
        distances are taken.
        """
        number = len(self.weight)
        if number <= size:
            return self
        if self.exact or self.points.sampled:
            kept = np.linspace(0, number - 1, size).astype(np.intp)
        else:
            kept = np.arange(size)
        return replace(self, points=self.points.calibrated(kept), exact=False)


def _log_mean(logits: Array) -> Array:
    return np.asarray(log_softmax(np.pad(logits, ((0, 0), (0, 1))), axis=1))


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
        Two categories with whole counts: the quadrature rule of `bayesatk.core.pooling.hierarchy`.
    """
    counts, prior = np.asarray(counts, float), np.asarray(mean_prior, float)
    data = CountHistograms.of_counts(counts, weight)
    if counts.shape[1] == 2 and (counts == np.floor(counts)).all():
        return _two_categories(data, prior, icc_prior)
    return weighted_posterior(data, prior, icc_prior)


def weighted_posterior(
    data: CountHistograms, prior: Array, icc_prior: tuple[float, float]
) -> DirichletHyper:
    """Integrate the hyperparameters on weighted points, for any number of categories."""
    constant = gammaln(prior.sum()) - gammaln(prior).sum() - betaln(*icc_prior)

    def log_density(theta: Array) -> Array:
        log_mean, y = _log_mean(theta[:, :-1]), theta[:, -1]
        beta = -icc_prior[0] * np.logaddexp(0, -y) - icc_prior[1] * np.logaddexp(0, y)
        likelihood = data.of_means(np.exp(log_mean).T, y)
        return np.asarray(likelihood + log_mean @ prior + beta + constant)

    mode = _mode(
        lambda theta: with_slope(lambda z: -log_density(z), theta, _STEP),
        [one.total + own for one, own in zip(data.categories, prior, strict=True)],
    )
    root = curvature_root(
        lambda theta: with_slope(log_density, theta, _STEP)[1], mode, _WIDE_STEP, _FLATTEST
    )
    points = integrate(log_density, mode, root, seed=int(data.trials.total), last=_POINTS)
    return DirichletHyper(points, False, float(1.0 / np.sqrt(points.effective_draws)))


def _mode(objective: Callable[[Array], tuple[float, Array]], share: Sequence[float]) -> Array:
    """Find the mode from the shares of all trials."""
    start = np.append(np.log(np.array(share[:-1]) / share[-1]), -1.0)
    bounds = [(-40.0, 40.0)] * (len(start) - 1) + [(-25.0, 15.0)]
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def _two_categories(
    data: CountHistograms, prior: Array, icc_prior: tuple[float, float]
) -> DirichletHyper:
    grid = hyper_posterior(data, HyperPrior((float(prior[1]), float(prior[0])), icc_prior))
    kept = grid.weight > _NEGLIGIBLE
    weight = grid.weight[kept] / grid.weight[kept].sum()
    theta = np.stack([-grid.x.ravel(), grid.y.ravel()], axis=1)[kept]
    effective_draws = float(1.0 / (weight @ weight))
    points = Points(theta, weight, grid.log_evidence, -np.inf, effective_draws, "quadrature")
    return DirichletHyper(points, True, grid.error)


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
