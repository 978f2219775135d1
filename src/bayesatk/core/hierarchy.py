"""Partial pooling integrated exactly: the posterior of (mean, icc) of the Beta-binomial.

Questions have ``p_a ~ Beta(mean m, intraclass correlation r)``, that is ``alpha = m (1-r)/r`` and
``beta = (1-m)(1-r)/r``. Given the two hyperparameters everything is conjugate; they are integrated
by a trapezoid rule in coordinates that make it converge geometrically:

* ``(logit m, logit r)``, centred at the mode and scaled by a triangular factor of the curvature;
* each whitened coordinate is ``2 sinh t``, so that a Gaussian peak is resolved and the exponential
  tails of a weakly identified direction (one trial per question, all right, all wrong) are
  reached by the same few nodes (double-exponential quadrature, Takahasi and Mori 1974).

The likelihood needs only three histograms: with ``u = r/(1-r)``, a Beta-binomial question
contributes ``sum_{v<c} log(m + v u) + sum_{v<n-c} log(1-m + v u) - sum_{v<n} log(1 + v u)``, which
neither cancels as r -> 0 nor overflows as r -> 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import RectBivariateSpline
from scipy.optimize import minimize
from scipy.special import betaln, expit, polygamma

from bayesatk.core.credit import Array
from bayesatk.core.priors import HyperPrior

_TAIL = 22.0  # log-density drop at which the grid ends: exp(-22) ~ 3e-10
_STEP = 0.7  # in t, to begin with: 1.4 posterior standard deviations at the mode
_WIDEST = 9.0  # of t: 2 sinh(9) ~ 8100 standard deviations


@dataclass(frozen=True)
class CountHistograms:
    """Sufficient statistics: how many questions exceed v successes, failures, trials."""

    successes: Array
    failures: Array
    trials: Array

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike, count: ArrayLike) -> "CountHistograms":
        """Return the histograms of distinct states with their multiplicities."""
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        weight = np.asarray(count, float)
        return cls(*(_exceeding(values, weight) for values in (c, n - c, n)))

    @property
    def size(self) -> int:
        """Terms in one likelihood evaluation."""
        return len(self.successes) + len(self.failures) + len(self.trials)


def _exceeding(values: NDArray[np.int64], weight: Array) -> Array:
    """Total weight of values above v, for v = 0..max-1."""
    histogram = np.bincount(values, weights=weight)
    return np.asarray(histogram[::-1].cumsum()[::-1][1:])


def log_likelihood(data: CountHistograms, x: Array, y: Array) -> Array:
    """Beta-binomial log-likelihood at ``x = logit m``, ``y = logit r``, without binomial factors.

    Parameters
    ----------
    data : CountHistograms
    x, y : ndarray, shape (g,)

    Returns
    -------
    ndarray, shape (g,)
    """
    mean, rest = expit(x)[:, None], expit(-x)[:, None]
    with np.errstate(over="ignore"):
        ratio = np.exp(np.minimum(y, 600.0))[:, None]
    total = np.zeros(len(x))
    for histogram, base, sign in (
        (data.successes, mean, 1.0),
        (data.failures, rest, 1.0),
        (data.trials, 1.0, -1.0),
    ):
        v = np.arange(len(histogram))
        for start in range(0, len(x), max(1, 2_000_000 // max(1, len(v)))):
            part = slice(start, start + max(1, 2_000_000 // max(1, len(v))))
            centre = base if isinstance(base, float) else base[part]
            with np.errstate(divide="ignore"):
                terms = np.log(centre + v * ratio[part])
            total[part] += sign * (terms @ histogram)
    return total


@dataclass(frozen=True)
class HyperPosterior:
    """Posterior of (mean, icc) on quadrature nodes.

    Parameters
    ----------
    x, y : ndarray, shape (rows, columns)
        ``logit m`` and ``logit r``; ``y`` is constant along a row.
    log_weight : ndarray, shape (rows, columns)
        Log posterior probabilities of the nodes, summing to one.
    log_evidence : float
        Log marginal likelihood of the counts in one given order of trials (no binomial factors);
        NaN under an improper prior.
    t_row, t_column : ndarray
        Quadrature coordinates of the rows and columns, equally spaced.
    error : float
        Refinement difference: largest change of the posterior means and sds of m and r (in sds),
        and of the log evidence, on a grid with half as many nodes again in each direction.
    place : callable
        ``place(t_row, t_column)`` is (x, y) there.
    refined : callable
        ``refined(times)`` is the same rule with that many times as many columns.
    """

    x: Array
    y: Array
    log_weight: Array
    log_evidence: float
    t_row: Array
    t_column: Array
    error: float
    place: Callable[[Array, Array], tuple[Array, Array]] = field(repr=False, compare=False)
    refined: "Callable[[int], HyperPosterior]" = field(repr=False, compare=False)

    @cached_property
    def weight(self) -> Array:
        """Probabilities of the nodes, flat."""
        return np.exp(self.log_weight.ravel())

    @cached_property
    def mean(self) -> Array:
        """Mean difficulty ``m`` at the nodes, flat."""
        return np.asarray(expit(self.x.ravel()))

    @cached_property
    def icc(self) -> Array:
        """Intraclass correlation at the nodes, flat."""
        return np.asarray(expit(self.y.ravel()))

    def heavy(self, tolerance: float = 1e-9) -> "Nodes":
        """Nodes that carry all but ``tolerance`` of the probability, renormalised."""
        order = np.argsort(self.weight)
        drop = np.cumsum(self.weight[order]) <= tolerance
        keep = np.sort(order[~drop])
        weight = self.weight[keep] / self.weight[keep].sum()
        return Nodes.of(self.x.ravel()[keep], self.y.ravel()[keep], weight)


@dataclass(frozen=True)
class Nodes:
    """Prior Beta(alpha, beta) distributions of p with their probabilities."""

    alpha: Array
    beta: Array
    weight: Array

    @classmethod
    def of(cls, x: Array, y: Array, weight: Array) -> "Nodes":
        """Return nodes from ``logit m``, ``logit r`` and probabilities.

        Concentrations are kept within [1e-250, 1e15]: beyond either end no probability of any
        number of trials changes in double precision.
        """
        total = np.exp(-np.clip(y, -34.5, 575.0))
        return cls(expit(x) * total, expit(-x) * total, weight)

    @classmethod
    def single(cls, alpha: float, beta: float) -> "Nodes":
        """Return one fixed prior: no pooling."""
        return cls(np.array([alpha]), np.array([beta]), np.ones(1))

    def __len__(self) -> int:
        return len(self.weight)


def hyper_posterior(
    data: CountHistograms, prior: HyperPrior, tolerance: float = 2e-7
) -> HyperPosterior:
    """Integrate the hyperparameters, refining the grid until its own error is below tolerance.

    Parameters
    ----------
    data : CountHistograms
        Any number of questions (its cost does not depend on it), ragged trials.
    prior : HyperPrior
    tolerance : float
        Refinement difference to reach, in posterior means and sds (in units of the sd) of m and
        r, and absolute in the log evidence.

    Returns
    -------
    HyperPosterior

    Raises
    ------
    ValueError
        If the posterior is improper (an improper prior and data that do not identify the icc),
        or the tolerance is not reached.
    """

    def log_density(x: Array, y: Array) -> Array:
        (a, b), (c, d) = prior.mean, prior.icc
        log_prior = -a * np.logaddexp(0, -x) - b * np.logaddexp(0, x)
        log_prior += -c * np.logaddexp(0, -y) - d * np.logaddexp(0, y)
        return log_likelihood(data, x, y) + log_prior

    centre, scale = _laplace(log_density, data)
    spans = _spans(log_density, centre, scale)
    coarse = _integrate(log_density, centre, scale, spans, _STEP)
    for halvings in range(1, 12):
        fine = _integrate(log_density, centre, scale, spans, _STEP / np.sqrt(2.0) ** halvings)
        error = _difference(fine, coarse)
        if error < tolerance:
            offset = betaln(*prior.mean) + betaln(*prior.icc) if prior.proper else np.nan
            return replace(coarse, error=error, log_evidence=coarse.log_evidence - offset)
        coarse = fine
    raise ValueError(
        f"pooling='partial': the quadrature did not settle (refinement difference {error:.1e} "
        f"> {tolerance:.1e}). Use a proper prior, or sample the model with bayesatk.sample."
    )


def _laplace(
    log_density: Callable[[Array, Array], Array], data: CountHistograms
) -> tuple[Array, Array]:
    """Mode in (logit m, logit r), and an upper-triangular scale from the curvature there."""

    def negative(z: Array) -> float:
        bounded = np.clip(z, -60.0, 60.0)  # the prior alone confines the mode; searches overshoot
        value = -float(log_density(bounded[:1], bounded[1:])[0])
        return value + float(((z - bounded) ** 2).sum())

    share = (data.successes.sum() + 0.5) / (data.trials.sum() + 1.0)
    starts = [np.array([np.log(share / (1 - share)), y]) for y in (-4.0, -1.0, 1.0, 4.0)]
    start = min(starts, key=negative)
    found = minimize(negative, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6})
    centre = np.asarray(found.x, float)
    return centre, _curvature_scale(negative, centre)


def _curvature_scale(negative: Callable[[Array], float], centre: Array) -> Array:
    """Upper-triangular S with S S' = inverse Hessian; steps grow to where curvature is seen."""
    step = np.full(2, 1e-3)
    value = negative(centre)
    for axis in range(2):
        unit = np.eye(2)[axis]
        while step[axis] < 1.0 and negative(centre + step[axis] * unit) - value < 0.05:
            step[axis] *= 1.6
    hessian = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            e, f = np.diag(step)[i], np.diag(step)[j]
            hessian[i, j] = (
                negative(centre + e + f)
                - negative(centre + e - f)
                - negative(centre - e + f)
                + negative(centre - e - f)
            ) / (4.0 * step[i] * step[j])
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    covariance = (vectors / np.clip(values, 0.02, None)) @ vectors.T
    # Upper triangular, so that a row of the grid has one icc and only the mean varies along it.
    lower = np.linalg.cholesky(covariance[::-1, ::-1])
    return lower[::-1, ::-1]


def _integrate(
    log_density: Callable[[Array, Array], Array],
    centre: Array,
    scale: Array,
    spans: tuple[float, float, float, float],
    step: float,
    denser: int = 1,
) -> HyperPosterior:
    """Trapezoid rule of one step over the given ranges of t; columns ``denser`` times as many."""
    row_low, row_high, column_low, column_high = spans
    t_row = step * np.arange(np.floor(row_low / step), np.ceil(row_high / step) + 1)
    narrow = step / denser
    t_column = narrow * np.arange(np.floor(column_low / narrow), np.ceil(column_high / narrow) + 1)

    def place(t_row: Array, t_column: Array) -> tuple[Array, Array]:
        z_row, z_column = 2.0 * np.sinh(t_row), 2.0 * np.sinh(t_column)
        x = centre[0] + scale[0, 0] * z_column + scale[0, 1] * z_row
        return x, centre[1] + scale[1, 1] * z_row + 0.0 * z_column

    x, y = place(t_row[:, None], t_column[None, :])
    logs = log_density(x.ravel(), y.ravel()).reshape(x.shape)
    logs += np.log(np.cosh(t_row))[:, None] + np.log(np.cosh(t_column))[None, :]
    logs += np.log(4.0 * scale[0, 0] * scale[1, 1] * step * narrow)
    peak = float(logs.max())
    logs -= peak  # before normalising: with 10^6 questions the peak itself rounds at 1e-9
    total = float(np.log(np.exp(logs).sum()))

    def refined(times: int) -> HyperPosterior:
        return _integrate(log_density, centre, scale, spans, step, times)

    return HyperPosterior(x, y, logs - total, peak + total, t_row, t_column, np.nan, place, refined)


def _spans(
    log_density: Callable[[Array, Array], Array], centre: Array, scale: Array
) -> tuple[float, float, float, float]:
    """Range of t in rows and columns outside which the integrand is below exp(-_TAIL) of its peak.

    A coarse grid over the whole reach of t finds the rows and columns that matter.
    """
    step = 0.7
    grid = _integrate(log_density, centre, scale, (-_WIDEST, _WIDEST, -_WIDEST, _WIDEST), step)
    inside = grid.log_weight > grid.log_weight.max() - _TAIL
    rows, columns = grid.t_row[inside.any(axis=1)], grid.t_column[inside.any(axis=0)]
    if rows.max() >= _WIDEST - step or rows.min() <= step - _WIDEST:
        raise ValueError(
            "pooling='partial': the posterior of the icc does not fall off, so it is improper. "
            "The data do not identify it under this prior; use a proper prior such as the default."
        )
    return rows.min() - step, rows.max() + step, columns.min() - step, columns.max() + step


def _difference(fine: HyperPosterior, coarse: HyperPosterior) -> float:
    """Largest change of the means and sds of m and r (in sds) and of the log evidence."""
    changes = [abs(fine.log_evidence - coarse.log_evidence)]
    for name in ("mean", "icc"):
        (new, spread), (old, old_spread) = (
            _mean_sd(grid.weight, getattr(grid, name)) for grid in (fine, coarse)
        )
        changes += [abs(new - old) / spread, abs(spread - old_spread) / spread]
    return float(max(changes))


def _mean_sd(weight: Array, values: Array) -> tuple[float, float]:
    mean = float(weight @ values)
    return mean, float(np.sqrt(weight @ (values - mean) ** 2))


def draw_hyperparameters(
    posterior: HyperPosterior, size: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Independent draws of (logit m, logit r).

    The posterior is refined to cells a twelfth of the grid's step wide in each direction, a cell
    is drawn by its probability and a point uniformly within it: variances are inflated by less
    than 1e-3 of themselves.

    Parameters
    ----------
    posterior : HyperPosterior
    size : int
    rng : numpy.random.Generator

    Returns
    -------
    x, y : ndarray, shape (size,)
    """
    fine = 12
    t_row, t_column = posterior.t_row, posterior.t_column
    rows, columns = len(t_row), len(t_column)
    spline = RectBivariateSpline(t_row, t_column, np.maximum(posterior.log_weight, -80.0))
    at_row = np.linspace(t_row[0], t_row[-1], fine * (rows - 1) + 1)
    at_column = np.linspace(t_column[0], t_column[-1], fine * (columns - 1) + 1)
    weight = np.exp(spline(at_row, at_column)).ravel()
    cell = rng.choice(len(weight), size=size, p=weight / weight.sum())
    jitter = rng.random((2, size)) - 0.5
    row, column = np.divmod(cell, len(at_column))
    t = at_row[row] + jitter[0] * (at_row[1] - at_row[0])
    s = at_column[column] + jitter[1] * (at_column[1] - at_column[0])
    return posterior.place(t, s)


def question_variance(
    nodes: Nodes, gradient: Callable[[Array, Array], Array], questions: float
) -> Array:
    """Variance of the population target that more trials per question could not remove.

    If every ``p_a`` were known, the hyperparameters would have asymptotic covariance ``J^-1/M``
    with ``J`` the Fisher information of Beta(alpha, beta); the target's share is ``h' J^-1 h / M``
    with the gradient ``h``, averaged over the posterior.

    Parameters
    ----------
    nodes : Nodes
    gradient : callable
        ``gradient(alpha, beta)`` is the derivative of the targets in (log alpha, log beta), shape
        (2, nodes, credits).
    questions : float

    Returns
    -------
    ndarray, shape (credits,)
    """
    alpha, beta = nodes.alpha, nodes.beta
    joint = polygamma(1, alpha + beta)
    information = np.array(
        [
            [alpha**2 * (polygamma(1, alpha) - joint), -alpha * beta * joint],
            [-alpha * beta * joint, beta**2 * (polygamma(1, beta) - joint)],
        ]
    )
    determinant = information[0, 0] * information[1, 1] - information[0, 1] ** 2
    slope = gradient(alpha, beta)
    quadratic = (
        information[1, 1][:, None] * slope[0] ** 2
        - 2.0 * information[0, 1][:, None] * slope[0] * slope[1]
        + information[0, 0][:, None] * slope[1] ** 2
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share = quadratic / determinant[:, None]
    usable = np.isfinite(share).all(axis=1) & (determinant > 1e-12)
    weight = nodes.weight[usable] / max(nodes.weight[usable].sum(), 1e-300)
    return np.asarray(weight @ share[usable] / questions)
