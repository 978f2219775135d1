"""A system's metric without one of its questions: exact, from the posterior with all of them."""

from dataclasses import dataclass, replace

import numpy as np

from bayesatk.core.mixture import StateMixture, expected_credits
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.right_wrong import RightWrongModel

_WORTH = 0.05  # of the nodes' weight that is left without a question, below which it is refitted
_RATIO = 1e3  # weight of a node without a question over that with it, from which nodes are missing


@dataclass(frozen=True)
class QuestionValues:
    """What a metric is worth, question by question; all by state.

    Parameters
    ----------
    mean, variance : ndarray, shape (states,)
        Posterior of the metric of one question.
    influence : ndarray, shape (states, 2)
        Posterior mean of the system's metric, less that without one question of the state, on
        these questions and on questions like these; NaN where it is the only question.
    """

    mean: Array
    variance: Array
    influence: Array


def question_values(model: RightWrongModel, metric: Metric) -> QuestionValues:
    """Return the posterior of a metric by question, and the influence of each.

    Without a question the posterior of every node is divided by the probability of that question's
    trials given the node; where that moves it to where there are hardly any nodes, the model is
    fitted again without the question.

    Parameters
    ----------
    model : RightWrongModel
    metric : Metric
    """
    states, nodes = model.states, model.nodes
    given, variance = _by_node(model, metric)
    weight = nodes.weight / nodes.weight.sum()
    mean = weight @ given
    spread = weight @ (variance + given**2) - mean**2
    failures = states.trials - states.successes
    with np.errstate(divide="ignore"):
        logs = np.log(weight)[:, None] - nodes.log_likelihood(states.successes, failures)
    without = np.exp(logs - logs.max(axis=0))
    without /= without.sum(axis=0)
    rest = states.questions - 1.0
    if not rest:
        return QuestionValues(mean, np.maximum(spread, 0.0), np.full((len(states), 2), np.nan))
    total = given @ states.count
    population = expected_credits(nodes, [metric.credit])[0][:, 0]
    alone = (without * (total[:, None] - given)).sum(axis=0) / rest
    influence = np.stack(
        [weight @ total / states.questions - alone, weight @ population - population @ without],
        axis=1,
    )
    if model.pooling == "none":
        # Questions like these are a bootstrap of these: its mean is theirs.
        influence[:, 1] = influence[:, 0]
    ratio = np.divide(
        without, weight[:, None], out=np.zeros_like(without), where=weight[:, None] > 0
    )
    unsure = (1.0 / (without * ratio).sum(axis=0) < _WORTH) | (ratio.max(axis=0) > _RATIO)
    if len(nodes) > 1 and unsure.any():
        whole = model.fit([metric]).mean[0]
        for state in np.flatnonzero(unsure):
            left = states.count - (np.arange(len(states)) == state)
            fitted = replace(model, states=states.among(left > 0.0, left)).fit([metric])
            influence[state] = whole - fitted.mean[0]
    return QuestionValues(mean, np.maximum(spread, 0.0), influence)


def _by_node(model: RightWrongModel, metric: Metric) -> tuple[Array, Array]:
    """Mean and variance of a metric of one question, by node and state."""
    mixture = StateMixture(model.nodes, model.states, (metric.credit,))
    mean, variance = np.empty((2, len(model.nodes), len(model.states)))
    for nodes, states, found in mixture.cumulants(2):
        mean[np.ix_(nodes, states)] = found[0][..., 0]
        variance[np.ix_(nodes, states)] = found[2][..., 0]
    return mean, variance
