"""What is left unknown of questions like these when the p of every question is known."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import betaln, logsumexp

from bayesatk._tools.arrays import Array
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.numerics.quadrature import beta_windows
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.program.laws import DifficultyLaw
from bayesatk.core.program.observations import expected_credits
from bayesatk.metrics.credit import Credit
from bayesatk.priors.fields import Fields

_POINTS = 50  # of the hyperparameters
_STEP = 1e-3  # of finite differences
_SMALLEST = 1e-8  # Beta parameter, and information of the prior
_LOG_OF_NOTHING = -700.0


def variance_of_known(
    law: DifficultyLaw,
    fields: Fields,
    credits: Sequence[Credit],
    points: WeightedPoints,
    questions: int,
) -> Array:
    """Variance of metrics of new questions if the p of so many questions were known; (credits,).

    By the delta method: with the gradient h of a metric in the hyperparameters, the Fisher
    information J of one known p, and that of the prior, it is ``h' (questions J + prior)^-1 h``,
    averaged over the posterior. The mean of known p has the variance ``Var(p) / questions``, which
    is more: a law whose form is known is not estimated by the mean alone.

    Parameters
    ----------
    law : DifficultyLaw
    fields : Fields
        Prior of all hyperparameters.
    credits : sequence of Credit
    points : Points
        Posterior of the hyperparameters.
    questions : int
    """
    some = points.at_most(_POINTS, lattice=True)
    number = some.theta.shape[1]
    moves = _STEP * np.concatenate([np.zeros((1, number)), np.eye(number), -np.eye(number)])
    theta = (some.theta[:, None] + moves).reshape(-1, number)
    nodes = law.nodes(theta, np.zeros((len(theta), 1)))

    def slope_of(values: Array) -> Array:
        """Central differences of values by point and move; (points, hyperparameters, ...)."""
        values = values.reshape(len(some.theta), len(moves), *values.shape[1:])
        return (values[:, 1 : number + 1] - values[:, number + 1 :]) / (2.0 * _STEP)

    information = questions * _of_one(nodes, len(moves), slope_of)
    logs = fields.log_density(theta).reshape(-1, len(moves))
    bend = (2.0 * logs[:, :1] - logs[:, 1 : number + 1] - logs[:, number + 1 :]) / _STEP**2
    # Beside the border of a prior its density has no curvature to speak of.
    bend = np.where(np.isfinite(bend), np.maximum(bend, _SMALLEST), _SMALLEST)
    information += np.eye(number) * bend[:, None]
    slope = slope_of(expected_credits(nodes, credits))
    return np.asarray(some.weight @ (slope * np.linalg.solve(information, slope)).sum(axis=1))


def _of_one(nodes: Nodes, moves: int, slope_of: Callable[[Array], Array]) -> Array:
    """Fisher information of one known p; (points, hyperparameters, hyperparameters).

    Differences of log densities, unlike those of densities, are right for laws of any width.
    """
    at = np.arange(0, len(nodes), moves)  # where nothing is moved
    with np.errstate(divide="ignore"):
        share, atoms = np.log(nodes.share), np.log(nodes.atoms)
    alpha, beta = (np.maximum(x, _SMALLEST) for x in (nodes.alpha, nodes.beta))
    scale = share - betaln(alpha, beta)
    score = slope_of(np.maximum(atoms, _LOG_OF_NOTHING))
    information = np.einsum("ha,hia,hja->hij", nodes.atoms[at], score, score)
    for own_share, a, b in zip(nodes.share[at].T, alpha[at].T, beta[at].T, strict=True):
        for rows, window in beta_windows(a, b, 0):
            every = (at[rows, None] + np.arange(moves)).ravel()
            log_p, log_q = (
                np.repeat(logs[window.position], moves, axis=0)[:, None]
                for logs in (window.rule.log_p, window.rule.log_q)
            )
            parts = alpha[every, :, None] * log_p + beta[every, :, None] * log_q
            logs = np.zeros((len(nodes), parts.shape[2]))
            logs[every] = logsumexp(parts + scale[every, :, None], axis=1)
            score = slope_of(logs)[rows]
            weight = own_share[rows, None] * window.probability
            information[rows] += np.einsum("hq,hiq,hjq->hij", weight, score, score)
    return np.asarray(information)
