"""Draws from the posterior of hyperparameters, and the variance that questions explain."""

from collections.abc import Callable

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.special import polygamma

from bayesatk.core.pooling.hierarchy import HyperPosterior
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.metrics.credit import Array

_LOG_WEIGHT_DROP = 40.0  # log weight below the largest that may as well be anything: 4e-18


def draw_hyperparameters(
    posterior: HyperPosterior, size: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Independent draws of the grid's coordinates; `HyperPosterior.place` makes (logit m, logit r).

    The posterior is refined to cells an eighth of the grid's step wide in each direction, a cell
    is drawn by its probability and a point uniformly within it: variances are inflated by less
    than 2e-3 of themselves.

    Parameters
    ----------
    posterior : HyperPosterior
    size : int
    rng : numpy.random.Generator

    Returns
    -------
    t_row, t_column : ndarray, shape (size,)
    """
    fine = 8
    t_row, t_column = posterior.t_row, posterior.t_column
    rows, columns = len(t_row), len(t_column)
    spline = RectBivariateSpline(t_row, t_column, floored(posterior.log_weight))
    at_row = np.linspace(t_row[0], t_row[-1], fine * (rows - 1) + 1)
    at_column = np.linspace(t_column[0], t_column[-1], fine * (columns - 1) + 1)
    weight = np.exp(np.minimum(spline(at_row, at_column), 0.0)).ravel()
    cell = rng.choice(len(weight), size=size, p=weight / weight.sum())
    jitter = rng.random((2, size)) - 0.5
    row, column = np.divmod(cell, len(at_column))
    t = at_row[row] + jitter[0] * (at_row[1] - at_row[0])
    s = at_column[column] + jitter[1] * (at_column[1] - at_column[0])
    return t, s


def floored(log_weight: Array) -> Array:
    """Log weights bounded below, where nothing matters: splines oscillate at sudden drops."""
    return np.maximum(log_weight, log_weight.max() - _LOG_WEIGHT_DROP)


def at_draws(
    posterior: HyperPosterior, nodes: Nodes, values: Array, t_row: Array, t_column: Array
) -> Array:
    """Smooth functions of the hyperparameters, known at nodes of the grid, at draws.

    Cubic splines; beyond the nodes, where hardly any draw lies, a function keeps the value of the
    nearest one in its row or column.

    Parameters
    ----------
    posterior : HyperPosterior
    nodes : Nodes
        Some of its nodes.
    values : ndarray, shape (nodes, m)
    t_row, t_column : ndarray, shape (size,)

    Returns
    -------
    ndarray, shape (size, m)
    """
    assert nodes.grid is not None
    table = np.full((*posterior.x.shape, values.shape[1]), np.nan)
    table[nodes.grid] = values
    for axis in (1, 0):
        lines = table if axis == 0 else table.swapaxes(0, 1)
        known = np.isfinite(lines)
        place = np.where(known, np.arange(len(lines))[:, None, None], 0)
        last = np.maximum.accumulate(place, axis=0)
        first = known.argmax(axis=0)
        filled = np.take_along_axis(lines, np.maximum(last, first), axis=0)
        table = filled if axis == 0 else filled.swapaxes(0, 1)
    rows, columns = posterior.t_row, posterior.t_column
    splines = (RectBivariateSpline(rows, columns, table[..., i]) for i in range(values.shape[1]))
    return np.stack([spline.ev(t_row, t_column) for spline in splines], axis=1)


def between_nodes(posterior: HyperPosterior, values: Array, denser: int) -> Array:
    """Quintic splines of a smooth function of the hyperparameters, known at the nodes.

    Parameters
    ----------
    posterior : HyperPosterior
    values : ndarray
        At all nodes of the grid, flat or not.
    denser : int
        Points to a node in each direction.

    Returns
    -------
    ndarray, shape (denser * (rows - 1) + 1, denser * (columns - 1) + 1)
    """
    rows, columns = posterior.t_row, posterior.t_column
    r, c = (np.linspace(t[0], t[-1], denser * (len(t) - 1) + 1) for t in (rows, columns))
    spline = RectBivariateSpline(rows, columns, values.reshape(posterior.x.shape), kx=5, ky=5)
    return np.asarray(spline(r, c))


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
    alpha, beta = nodes.alpha[:, 0], nodes.beta[:, 0]
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
