"""Posteriors of a handful of parameters on weighted points around their mode.

The parameters are logits, or logs of ratios, that say what questions have in common, and last
``log(icc / (1 - icc))``: how much questions differ. A density with heavy tails around the mode is
improved by adaptive importance sampling (`bayesatk.core.numerics.importance`). Where the weights
cannot be trusted, Markov chains by elliptical slices start from these points.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, stdtrit

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.numerics.elliptical import independent_draws, move_along_ellipse, systematic
from bayesatk.core.numerics.importance import (
    TRUSTED,
    Importance,
    continued,
    importance_posterior,
)

LogDensity = Callable[[Array], Array]
_FREEDOM = 6.0  # degrees of freedom of the density around the mode
_CHAINS = 40
_KEPT, _BURN, _THIN = 100, 100, 2  # draws of each chain; steps before, and for each, at first
_RERUNS = 3  # times that chains run, twice as far each
_POINTS_TO_A_PRODUCT = 20  # for each product of parameters whose mean fewer points shall keep
_ENOUGH = 400.0  # least effective number of draws of points and of chains
_ROUGH = 30.0  # effective number of weighted points from which they tell the evidence to a fifth
_WIDER = 1.2  # scale of the normal that chains move around, in that at the mode


@dataclass(frozen=True)
class Points:
    """Weighted points of the posterior.

    Parameters
    ----------
    theta : ndarray, shape (points, parameters)
    weight : ndarray, shape (points,)
        Sums to one.
    log_evidence : float
        Of all trials in their order; NaN where chains had to be used.
    k_hat : float
        Pareto shape of the largest importance weights.
    effective_draws : float
        Effective number of independent draws.
    method : str
        ``"importance sampling"`` or ``"elliptical slices"``.
    """

    theta: Array
    weight: Array
    log_evidence: float
    k_hat: float
    effective_draws: float
    method: str

    @property
    def logits(self) -> Array:
        """All parameters but the last."""
        return self.theta[:, :-1]

    @property
    def log_ratio(self) -> Array:
        """Log of icc / (1 - icc)."""
        return self.theta[:, -1]

    @property
    def sampled(self) -> bool:
        """Whether importance weights could not be trusted."""
        return self.method == "elliptical slices"

    def at_most(self, size: int, lattice: bool = False) -> "Points":
        """Return at most so many points, with the means and covariances of all.

        A lattice stays whole, unless it is asked for.

        At equal steps of probability along a path through the first two parameters; then weights
        change by factors linear in the parameters and their products (calibration: Deville and
        Sarndal 1992, JASA 87), so that means of smooth functions lose little. Nearly so where
        factors come out negative, which are made 0: of many parameters and few points.
        """
        if len(self.weight) <= size or (self.method == "quadrature" and not lattice):
            return self
        order = _path(self.theta, self.weight, int(np.sqrt(size)))
        upto = np.cumsum(self.weight[order])
        steps = (np.arange(size) + 0.5) / size * upto[-1]
        rows, times = np.unique(order[np.searchsorted(upto, steps)], return_counts=True)
        weight, features = times / size, self._features(size)
        sample = features[rows]
        missing = self.weight @ features - weight @ sample
        factor = 1.0 + sample @ np.linalg.lstsq((sample.T * weight) @ sample, missing)[0]
        weight = weight * np.maximum(factor, 0.0)
        weight /= weight.sum()
        effective = min(self.effective_draws, 1.0 / float(weight @ weight))
        return replace(self, theta=self.theta[rows], weight=weight, effective_draws=effective)

    def _features(self, size: int) -> Array:
        """Parameters in their sds, squares, and products where points are many; a row each."""
        mean = self.weight @ self.theta
        scale = np.sqrt(np.maximum(self.weight @ (self.theta - mean) ** 2, 1e-300))
        z = (self.theta - mean) / scale
        first, second = np.triu_indices(z.shape[1], 1)
        columns = [np.ones((len(z), 1)), z, z**2]
        if _POINTS_TO_A_PRODUCT * len(first) <= size:
            columns.append(z[:, first] * z[:, second])
        return np.concatenate(columns, axis=1)

    def draws_behind(self, values: Array) -> dict[str, Array]:
        """Effective numbers of draws of means, sds and quantiles of functions of the parameters.

        Of ``values``, shape (points, functions); each of shape (functions,). Those of sds are fewer
        where tails are heavy, by the kurtosis.
        """
        centred = values - self.weight @ values
        square = centred * centred
        second, fourth = self.weight @ square, self.weight @ (square * square)
        kurtosis = np.maximum(fourth / np.maximum(second**2, 1e-300), 3.0)
        number = np.full(len(kurtosis), self.effective_draws)
        of_sds = np.maximum(2.0 / (kurtosis - 1.0) * number, 1.0)
        return {"mean_draws": number, "sd_draws": of_sds, "interval_draws": number}


def _path(theta: Array, weight: Array, strata: int) -> Indices:
    """Order of points by strata of the first parameter, up and down by the second."""
    order = np.argsort(theta[:, 0], kind="stable")
    upto = np.cumsum(weight[order])
    stratum = np.empty(len(order), np.intp)
    stratum[order] = np.minimum(upto / upto[-1] * strata, strata - 1).astype(np.intp)
    other = theta[:, min(1, theta.shape[1] - 1)]
    return np.lexsort((np.where(stratum % 2 == 0, other, -other), stratum))


def with_slope(log_density: LogDensity, theta: Array, step: float) -> tuple[float, Array]:
    """Return a log density at one point, and its gradient by central differences.

    Examples
    --------
    >>> with_slope(lambda x: -(x**2).sum(axis=1), np.array([1.0, 2.0]), 0.5)
    (-5.0, array([-2., -4.]))
    """
    moves = step * np.eye(len(theta))
    values = log_density(np.concatenate([theta[None], theta + moves, theta - moves]))
    up, down = np.split(values[1:], 2)
    return float(values[0]), (up - down) / (2.0 * step)


def curvature_root(slope: LogDensity, mode: Array, step: float, flattest: float) -> Array:
    """Root of the inverse curvature at a mode.

    Parameters
    ----------
    slope : callable
        Gradient of the log density at one point.
    mode : ndarray, shape (parameters,)
    step : float
        Of finite differences of the gradient.
    flattest : float
        Least curvature: nothing is wider than its inverse root.
    """
    steps = step * np.eye(len(mode))
    slopes = np.array([slope(mode + h) - slope(mode - h) for h in steps])
    values, vectors = np.linalg.eigh(-(slopes + slopes.T) / (4.0 * step))
    return np.asarray(vectors / np.sqrt(np.maximum(values, flattest)))


def integrate(
    log_density: LogDensity, mode: Array, root: Array, seed: int, last: int = 4096
) -> Points:
    """Integrate parameters.

    Parameters
    ----------
    log_density : callable
        Log of prior times likelihood at points (points, parameters).
    mode : ndarray, shape (parameters,)
    root : ndarray, shape (parameters, parameters)
        Of the inverse curvature there.
    seed : int
        Of Markov chains, where they are needed.
    last : int
        Points of the posterior, to begin with.

    Examples
    --------
    >>> normal = lambda x: -0.5 * ((x - 1.0) ** 2).sum(axis=1)
    >>> found = integrate(normal, np.ones(2), np.eye(2), 0)
    >>> round(found.log_evidence, 2)  # log(2 pi)
    1.84
    """

    def enough(found: Importance) -> bool:
        return found.k_hat < TRUSTED and found.effective_draws > _ENOUGH

    found = weighted_around(log_density, mode, root, _FREEDOM, last)
    found = continued(found, log_density, enough)
    weighted = Points(
        found.points, found.weight, found.log_evidence, found.k_hat, found.effective_draws,
        "importance sampling",
    )  # fmt: skip
    if enough(found):
        return weighted
    return sliced(log_density, weighted, mode, root, seed)


def weighted_around(
    log_density: LogDensity, mode: Array, root: Array, freedom: float, last: int
) -> Importance:
    """Weighted points, to begin with of independent Student t variates around a mode.

    Parameters
    ----------
    log_density, mode, root, last
        As of `integrate`.
    freedom : float
        Degrees of freedom of the variates.
    """
    volume, inverse = float(np.linalg.slogdet(root)[1]), np.linalg.inv(root)

    def from_uniform(u: Array) -> Array:
        return np.asarray(mode + stdtrit(freedom, u) @ root.T)

    def log_base(theta: Array) -> Array:
        return log_student((theta - mode) @ inverse.T, freedom).sum(axis=1) - volume

    return importance_posterior(from_uniform, log_base, log_density, len(mode), last=last)


def sliced(
    log_density: LogDensity, weighted: Points, mode: Array, root: Array, seed: int
) -> Points:
    """Draws by Markov chains, all moved together, from where weighted points are."""
    rng = np.random.default_rng(seed)
    wide = _WIDER * root
    start = weighted.theta[systematic(np.sqrt(weighted.weight), _CHAINS, rng)]
    deviation = (start - mode) @ np.linalg.inv(wide).T

    def ratio_of(_: Indices, at: Array) -> Array:
        return np.asarray(log_density(mode + at @ wide.T) + 0.5 * (at**2).sum(axis=1))

    log_ratio = ratio_of(np.arange(_CHAINS), deviation)
    burn, thin = _BURN, _THIN
    for _ in range(_RERUNS):
        for _ in range(burn):
            move_along_ellipse(deviation, log_ratio, ratio_of, rng)
        kept = np.empty((_KEPT, *deviation.shape))
        for i in range(_KEPT):
            for _ in range(thin):
                move_along_ellipse(deviation, log_ratio, ratio_of, rng)
            kept[i] = deviation
        effective_draws = independent_draws(kept)
        if effective_draws >= _ENOUGH:
            break
        burn, thin = 0, 2 * thin
    theta = mode + kept.reshape(-1, len(mode)) @ wide.T
    weight = np.full(len(theta), 1.0 / len(theta))
    # Weights that are too uneven for the posterior still tell the evidence, roughly.
    known = weighted.effective_draws > _ROUGH
    evidence = weighted.log_evidence if known else np.nan
    return Points(theta, weight, evidence, weighted.k_hat, effective_draws, "elliptical slices")


def log_student(z: Array, n: float) -> Array:
    """Log density of a Student t with n degrees of freedom."""
    constant = gammaln(0.5 * (n + 1.0)) - gammaln(0.5 * n) - 0.5 * np.log(n * np.pi)
    return np.asarray(constant - 0.5 * (n + 1.0) * np.log1p(z**2 / n))
