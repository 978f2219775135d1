"""Variance of metrics of new questions if the p of every question were known."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import betaln

from bayesatk._tools.arrays import Array
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.numerics.quadrature import beta_windows
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.program.laws import DifficultyLaw
from bayesatk.core.program.observations import expected_credits
from bayesatk.metrics.credit import Credit
from bayesatk.priors.fields import Fields

_MAX_POINTS = 50  # of the hyperparameters
_DIFFERENCE_STEP = 1e-3
_PARAMETER_FLOOR = 1e-8  # of Betas
_PRIOR_INFORMATION_FLOOR = 1e-8
_LOG_PROBABILITY_FLOOR = -700.0


def variance_of_known(
    law: DifficultyLaw,
    fields: Fields,
    credits: Sequence[Credit],
    points: WeightedPoints,
    questions: int,
) -> Array:
    r"""Variance of metrics of new questions if p of so many questions were known; (credits,).

    By the delta method it is the posterior mean of

    .. math:: h^\top (Q J + J_0)^{-1} h,

    with the gradient h of a metric in the hyperparameters, Q questions, the Fisher information J of
    one known p, and the information $J_0$ of the prior. The mean of Q known p has the larger
    variance Var(p) / Q: where the form of a law is known, the mean alone is not efficient.

    Parameters
    ----------
    law : DifficultyLaw
    fields : Fields
        Prior of all hyperparameters.
    credits : sequence of Credit
    points : WeightedPoints
        Posterior of the hyperparameters, of which at most 50 are used.
    questions : int
    """
    sample = points.at_most(_MAX_POINTS, lattice=True)
    dimension = sample.theta.shape[1]
    steps = _DIFFERENCE_STEP * np.concatenate(
        [np.zeros((1, dimension)), np.eye(dimension), -np.eye(dimension)]
    )
    theta = (sample.theta[:, None] + steps).reshape(-1, dimension)
    nodes = law.nodes(theta, np.zeros((len(theta), 1)))

    def slope_of(values: Array) -> Array:
        """Central differences of values (points * steps, ...); (points, hyperparameters, ...)."""
        values = values.reshape(len(sample.theta), len(steps), *values.shape[1:])
        return (values[:, 1 : dimension + 1] - values[:, dimension + 1 :]) / (
            2.0 * _DIFFERENCE_STEP
        )

    information = questions * _fisher_information(nodes, len(steps), slope_of)
    logs = fields.log_density(theta).reshape(-1, len(steps))
    curvature = (
        2.0 * logs[:, :1] - logs[:, 1 : dimension + 1] - logs[:, dimension + 1 :]
    ) / _DIFFERENCE_STEP**2
    # At the edge of a prior a step may leave its support, and there is no curvature.
    curvature = np.where(np.isfinite(curvature), curvature, 0.0)
    information += np.eye(dimension) * np.maximum(curvature, _PRIOR_INFORMATION_FLOOR)[:, None]
    slope = slope_of(expected_credits(nodes, credits))
    return np.asarray(sample.weight @ (slope * np.linalg.solve(information, slope)).sum(axis=1))


def _fisher_information(nodes: Nodes, steps: int, slope_of: Callable[[Array], Array]) -> Array:
    """Fisher information of one known p; (points, hyperparameters, hyperparameters).

    Differences of log densities, unlike those of densities, are accurate for laws of any width.
    """
    centre_rows = np.arange(0, len(nodes), steps)  # rows of the points themselves
    with np.errstate(divide="ignore"):
        share, atoms = np.log(nodes.share), np.log(nodes.atoms)
    alpha, beta = (np.maximum(x, _PARAMETER_FLOOR) for x in (nodes.alpha, nodes.beta))
    scale = share - betaln(alpha, beta)
    score = slope_of(np.maximum(atoms, _LOG_PROBABILITY_FLOOR))
    information = np.einsum("ha,hia,hja->hij", nodes.atoms[centre_rows], score, score)
    for component_share, a, b in zip(
        nodes.share[centre_rows].T, alpha[centre_rows].T, beta[centre_rows].T, strict=True
    ):
        for rows, window in beta_windows(a, b, 0):
            window_rows = (centre_rows[rows, None] + np.arange(steps)).ravel()
            log_p, log_q = (
                np.repeat(logs[window.position], steps, axis=0)[:, None]
                for logs in (window.rule.log_p, window.rule.log_q)
            )
            log_density = alpha[window_rows, :, None] * log_p + beta[window_rows, :, None] * log_q
            logs = np.zeros((len(nodes), log_density.shape[2]))
            log_density += scale[window_rows, :, None]
            logs[window_rows] = np.logaddexp.reduce(log_density, axis=1)
            score = slope_of(logs)[rows]
            weight = component_share[rows, None] * window.probability
            information[rows] += np.einsum("hq,hiq,hjq->hij", weight, score, score)
    return np.asarray(information)
