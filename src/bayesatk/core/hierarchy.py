"""Partial pooling integrated exactly: the posterior of (mean, icc) of the Beta-binomial.

Questions have ``p_a ~ Beta(mean m, intraclass correlation r)``, that is ``alpha = m (1-r)/r`` and
``beta = (1-m)(1-r)/r``. Given the two hyperparameters everything is conjugate; they are integrated
by a trapezoid rule in coordinates that make it converge geometrically:

* ``(logit m, logit r)``, centred at the mode and scaled by a triangular factor of the curvature;
* each whitened coordinate is ``2 sinh t``, so that a Gaussian peak is resolved and the exponential
  tails of a weakly identified direction (one trial per question, all right, all wrong) are
  reached by the same few nodes (double-exponential quadrature, Takahasi and Mori 1974).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit

from bayesatk.core.credit import Array
from bayesatk.core.histograms import CountHistograms, log_likelihood
from bayesatk.core.nodes import Nodes, heaviest
from bayesatk.core.priors import HyperPrior

_TAIL = 30.0  # log-density drop at which the grid ends: exp(-30) ~ 1e-13
_STEP = 0.7  # in t, to begin with: 1.4 posterior standard deviations at the mode
_ROUNDING = 2e-13  # relative error of a summed log-likelihood
_WIDEST = 9.0  # of t: 2 sinh(9) ~ 8100 standard deviations
_USUAL = 1e-8  # error of a grid that does not know its own


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
        ``refined(rows, columns)`` is the same rule with that many times as many of each.
    """

    x: Array
    y: Array
    log_weight: Array
    log_evidence: float
    t_row: Array
    t_column: Array
    error: float
    place: Callable[[Array, Array], tuple[Array, Array]] = field(repr=False, compare=False)
    refined: "Callable[[int, int], HyperPosterior]" = field(repr=False, compare=False)

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

    def heavy(self, tolerance: float = 1e-12) -> Nodes:
        """Nodes that carry all but ``tolerance`` of the probability, renormalised."""
        return _heaviest(self.x.ravel(), self.y.ravel(), self.weight, tolerance)

    def resolving(self, narrow: Callable[[Nodes], Array], tolerance: float, step: float) -> Nodes:
        """Nodes for the distribution of a quantity, not only its moments.

        Given a node the quantity has some spread. Where that is not much wider than its step from
        node to node along a row, the mixture would be a staircase, as high as the trapezoid rule's
        error; such rows get more columns, and all nodes know how far apart they are.

        Parameters
        ----------
        narrow : callable
            ``narrow(nodes)`` is the conditional mean and sd at nodes, shape (2, nodes).
        tolerance : float
            Probability that may be left out.
        step : float
            Largest step of t in a row that gets more columns.
        """
        row_weight = self.weight.reshape(self.x.shape).sum(axis=1)
        rows = np.flatnonzero(row_weight > tolerance / len(row_weight))
        # Errors of a rule on a product of Gaussians: their logarithms add up like resistances.
        own = -np.log(self.error if self.error > 0.0 else _USUAL)
        alias = np.exp(-1.0 / (1.0 / own + self._gaps(rows, narrow) ** 2 / (2.0 * np.pi**2)))
        tight = (np.exp(self.log_weight[rows]) * alias).sum(axis=1) > 0.1 * tolerance
        fine = self.refined(1, int(np.ceil((self.t_column[1] - self.t_column[0]) / step)))
        parts = [(self, rows[~tight]), (fine, rows[tight])]
        x, y, weight = (
            np.concatenate([getattr(grid, name)[chosen].ravel() for grid, chosen in parts])
            for name in ("x", "y", "log_weight")
        )
        gaps = [grid._gaps(chosen, narrow).ravel() for grid, chosen in parts]
        return _heaviest(x, y, np.exp(weight), tolerance, np.concatenate(gaps))

    def _gaps(self, rows: NDArray[np.intp], narrow: Callable[[Nodes], Array]) -> Array:
        """Distances of nodes from the next in their row, in sds there; (rows, columns)."""
        if not len(rows):
            return np.empty((0, self.x.shape[1]))
        flat = Nodes.of(self.x[rows].ravel(), self.y[rows].ravel(), np.ones(self.x[rows].size))
        mean, sd = narrow(flat).reshape(2, len(rows), -1)
        return np.asarray(np.abs(np.gradient(mean, axis=1)) / sd)


def _heaviest(
    x: Array, y: Array, weight: Array, tolerance: float, gaps: Array | None = None
) -> Nodes:
    keep = heaviest(weight, tolerance)
    kept = weight[keep] / weight[keep].sum()
    return Nodes.of(x[keep], y[keep], kept, None if gaps is None else gaps[keep])


def hyper_posterior(
    data: CountHistograms, prior: HyperPrior, tolerance: float = 2e-8
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
        # A log-likelihood of 10^7 is itself rounded at 10^-8 or so.
        if error < tolerance + _ROUNDING * abs(fine.log_evidence):
            offset = float(betaln(*prior.mean) + betaln(*prior.icc)) if prior.proper else np.nan
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
    denser: tuple[int, int] = (1, 1),
) -> HyperPosterior:
    """Trapezoid rule of one step over the given ranges of t; rows and columns multiplied."""
    row_low, row_high, column_low, column_high = spans
    t_row, t_column = (
        step / times * np.arange(times * np.floor(low / step), times * np.ceil(high / step) + 1)
        for times, low, high in zip(
            denser, (row_low, column_low), (row_high, column_high), strict=True
        )
    )

    def place(t_row: Array, t_column: Array) -> tuple[Array, Array]:
        z_row, z_column = 2.0 * np.sinh(t_row), 2.0 * np.sinh(t_column)
        x = centre[0] + scale[0, 0] * z_column + scale[0, 1] * z_row
        return x, centre[1] + scale[1, 1] * z_row + 0.0 * z_column

    x, y = place(t_row[:, None], t_column[None, :])
    logs = log_density(x.ravel(), y.ravel()).reshape(x.shape)
    logs += np.log(np.cosh(t_row))[:, None] + np.log(np.cosh(t_column))[None, :]
    logs += np.log(4.0 * scale[0, 0] * scale[1, 1] * step**2 / (denser[0] * denser[1]))
    peak = float(logs.max())
    logs -= peak  # before normalising: with 10^6 questions the peak itself rounds at 1e-9
    total = float(np.log(np.exp(logs).sum()))

    def refined(rows: int, columns: int) -> HyperPosterior:
        times = (rows * denser[0], columns * denser[1])
        return _integrate(log_density, centre, scale, spans, step, times)

    return HyperPosterior(x, y, logs - total, peak + total, t_row, t_column, np.nan, place, refined)


def _spans(
    log_density: Callable[[Array, Array], Array], centre: Array, scale: Array
) -> tuple[float, float, float, float]:
    """Range of t in rows and columns outside which the integrand is below exp(-_TAIL) of its peak.

    A coarse grid over the whole reach of t finds the rows and columns that matter.
    """
    step = 0.35
    grid = _integrate(log_density, centre, scale, (-_WIDEST, _WIDEST, -_WIDEST, _WIDEST), step)
    inside = grid.log_weight > grid.log_weight.max() - _TAIL
    rows, columns = grid.t_row[inside.any(axis=1)], grid.t_column[inside.any(axis=0)]
    if rows.max() >= _WIDEST - step or rows.min() <= step - _WIDEST:
        raise ValueError(
            "pooling='partial': the posterior of the icc does not fall off, so it is improper. "
            "The data do not identify it under this prior; use a proper prior such as the default."
        )
    pad = 2.0 * step
    return rows.min() - pad, rows.max() + pad, columns.min() - pad, columns.max() + pad


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
