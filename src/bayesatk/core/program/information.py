"""What is left unknown of questions like these when the p of every question is known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk.core.numerics.points import Points
from bayesatk.core.numerics.quadrature import beta_rule, resolving_degree
from bayesatk.core.program.credits import prior_on_rule
from bayesatk.core.program.laws import DifficultyLaw
from bayesatk.core.program.observations import expected_credits
from bayesatk.metrics.credit import Credit
from bayesatk.priors.fields import Fields

_POINTS = 50  # of the hyperparameters
_STEP = 1e-3  # of finite differences
_LARGEST_TOTAL = 1e4  # of Beta parameters: narrower laws say as much of their mean
_SMALLEST = 1e-8  # Beta parameter, and information of the prior
_SMALLEST_CHANCE = 1e-300


def variance_of_known(
    law: DifficultyLaw, fields: Fields, credits: Sequence[Credit], points: Points, questions: int
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
    scale = np.minimum(_LARGEST_TOTAL / (nodes.alpha + nodes.beta), 1.0)
    alpha, beta = (np.maximum(x * scale, _SMALLEST) for x in (nodes.alpha, nodes.beta))
    rule = beta_rule(
        float(alpha.min()), float(beta.min()), float(resolving_degree(alpha, beta).max())
    )
    if nodes.atoms.any():
        rule = rule.with_ends()

    def at_points(values: Array) -> Array:
        return values.reshape(len(some.theta), len(moves), -1)

    def slope_of(values: Array) -> Array:
        return (values[:, 1 : number + 1] - values[:, number + 1 :]) / (2.0 * _STEP)

    chance = at_points(prior_on_rule(replace(nodes, alpha=alpha, beta=beta), rule))
    score, slope = slope_of(chance), slope_of(at_points(expected_credits(nodes, credits)))
    logs = at_points(fields.log_density(theta))[..., 0]
    bend = (2.0 * logs[:, :1] - logs[:, 1 : number + 1] - logs[:, number + 1 :]) / _STEP**2
    known = score / np.maximum(chance[:, :1], _SMALLEST_CHANCE)
    information = questions * np.einsum("hiq,hjq->hij", known, score)
    # Beside the border of a prior its density has no curvature to speak of.
    bend = np.where(np.isfinite(bend), np.maximum(bend, _SMALLEST), _SMALLEST)
    information += np.eye(number) * bend[:, None]
    return np.asarray(some.weight @ (slope * np.linalg.solve(information, slope)).sum(axis=1))
