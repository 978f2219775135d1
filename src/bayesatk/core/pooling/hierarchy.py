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
from scipy.special import betaln, expit

from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.marks import MarkedCounts
from bayesatk.core.pooling.nodes import Nodes, heaviest
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

_TAIL = 30.0  # log-density drop at which the grid ends: exp(-30) ~ 1e-13
_STEP = 0.7  # in t, to begin with: 1.4 posterior standard deviations at the mode
_ROUNDING = 2e-13  # relative error of a summed log-likelihood
_WIDEST = 9.0  # of t: 2 sinh(9) ~ 8100 standard deviations
_HALVINGS = 8  # of the step by sqrt(2), at most; then the error is what it is, and stated
_LARGEST = 30_000  # nodes of a grid that is not refined any further
_NEWTON, _FAR, _EDGE = 40, 3.0, 60.0  # steps to the mode, the longest, and where they must stay
_FLATTEST = 0.02  # curvature: a direction that the data say nothing about is 7 units wide
_WIDER = 4.0  # from one width of finite differences to the next


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

    def nodes(self, tolerance: float = 1e-12) -> Nodes:
        """Nodes that carry all but ``tolerance`` of the probability, renormalised."""
        keep = heaviest(self.weight, tolerance)
        weight = self.weight[keep]
        place = np.divmod(keep, self.x.shape[1])
        return Nodes.of(self.x.ravel()[keep], self.y.ravel()[keep], weight / weight.sum(), place)


def hyper_posterior(
    data: CountHistograms | MarkedCounts, prior: HyperPrior, tolerance: float = 2e-8
) -> HyperPosterior:
    """Integrate the hyperparameters, refining the grid until its own error is below tolerance.

    Parameters
    ----------
    data : CountHistograms or MarkedCounts
        Any number of questions (its cost does not depend on it), ragged trials; or marks of a judge
        that errs.
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
        If the posterior is improper (an improper prior and data that do not identify the icc).
    """

    def log_density(x: Array, y: Array) -> Array:
        (a, b), (c, d) = prior.mean, prior.icc
        log_prior = -a * np.logaddexp(0, -x) - b * np.logaddexp(0, x)
        log_prior += -c * np.logaddexp(0, -y) - d * np.logaddexp(0, y)
        return data.log_likelihood(x, y) + log_prior

    centre, scale = _laplace(log_density, data)
    spans = _spans(log_density, centre, scale)
    coarse = _integrate(log_density, centre, scale, spans, _STEP)
    for halvings in range(1, _HALVINGS + 1):
        fine = _integrate(log_density, centre, scale, spans, _STEP / np.sqrt(2.0) ** halvings)
        error = _difference(fine, coarse)
        # A log-likelihood of 10^7 is itself rounded at 10^-8 or so.
        enough = tolerance + _ROUNDING * abs(fine.log_evidence)
        if error < enough:
            break
        # Errors of the rule fall as exp(-c / step^2): that of the finer grid is about the square.
        coarse, error = fine, error**1.5 if error**1.5 < enough else error
        if error < enough or fine.x.size > _LARGEST:
            break
    offset = float(betaln(*prior.mean) + betaln(*prior.icc)) if prior.proper else np.nan
    return replace(coarse, error=error, log_evidence=coarse.log_evidence - offset)


def _laplace(
    log_density: Callable[[Array, Array], Array], data: CountHistograms | MarkedCounts
) -> tuple[Array, Array]:
    """Mode in (logit m, logit r), and an upper-triangular scale from the curvature there.

    Newton's method on finite differences, the best of several step lengths at a time; the start
    is the best of a few values of the icc. The mode need not be exact: it only centres the grid.
    """
    share = data.success_rate
    starts = np.array([[np.log(share / (1 - share)), y] for y in (-6.0, -3.0, -1.0, 1.0, 4.0)])
    place = starts[np.argmax(log_density(*starts.T))]
    width = np.full(2, 1e-2)
    for _ in range(_NEWTON):
        value, gradient, hessian, width = _differences(log_density, place, width)
        values, vectors = np.linalg.eigh(hessian)
        inverse = (vectors / np.maximum(values, _FLATTEST)) @ vectors.T
        step = inverse @ gradient
        step *= min(1.0, _FAR / float(np.abs(step).max() + 1e-300))
        lengths = 4.0 ** -np.arange(6.0)
        tried = np.clip(place + lengths[:, None] * step, -_EDGE, _EDGE)
        found = log_density(*tried.T)
        best = int(np.argmax(found))
        if not found[best] > value + 1e-4:
            break
        place = tried[best]
    # Upper triangular, so that a row of the grid has one icc and only the mean varies along it.
    lower = np.linalg.cholesky(inverse[::-1, ::-1])
    return place, lower[::-1, ::-1]


def _differences(
    log_density: Callable[[Array, Array], Array], place: Array, width: Array
) -> tuple[float, Array, Array, Array]:
    """Value, gradient and negative Hessian, on steps wide enough to see the curvature."""
    axes, signs = np.eye(2), np.array([1.0, -1.0])
    widths = np.clip(width[:, None] * _WIDER ** np.arange(-2.0, 3.0), 1e-4, 1.0)
    probes = place + (signs[:, None, None, None] * axes[:, None, :] * widths[..., None])
    around = log_density(*probes.reshape(-1, 2).T).reshape(2, 2, -1)
    centre = float(log_density(place[:1], place[1:])[0])
    drop = centre - around.mean(axis=0)
    seen = np.where(drop > 0.05, np.arange(widths.shape[1]), widths.shape[1] - 1).min(axis=1)
    width = widths[[0, 1], seen]
    plus, minus = around[0, [0, 1], seen], around[1, [0, 1], seen]
    gradient = (plus - minus) / (2.0 * width)
    corners = place + width * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    value = log_density(*corners.T)
    cross = -(value[0] - value[1] - value[2] + value[3]) / (4.0 * width.prod())
    second = (2.0 * centre - plus - minus) / width**2
    return centre, gradient, np.array([[second[0], cross], [cross, second[1]]]), width


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
    step = 0.5 * _STEP
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
    mean, variance = total_moments(weight, values)
    return float(mean), float(np.sqrt(variance))
