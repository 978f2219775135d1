"""A system's metric without one of its questions: exact, from the posterior with all of them."""

from dataclasses import dataclass, replace

import numpy as np

from bayesatk.core.engine.bootstrap import bootstrap_without
from bayesatk.core.engine.mixture import StateMixture, expected_credits
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.right_wrong import RightWrongModel

_LEAST_SHARE = 0.05  # effective share of the nodes without a question, below which it is refitted
_RATIO = 1e3  # weight of a node without a question over that with it, from which nodes are missing


@dataclass(frozen=True)
class QuestionValues:
    """Values of a metric, question by question.

    Parameters
    ----------
    mean, variance : ndarray, shape (states,)
        Posterior of the metric of one question, by state.
    influence : ndarray, shape (questions, 2)
        Posterior mean of the system's metric, less that without the question, on these questions
        and on questions like these; NaN where it is the only question.
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
    given, variance = _by_node(nodes, states, metric)
    weight = nodes.weight / nodes.weight.sum()
    mean, spread = total_moments(weight, given, variance)
    if states.questions == 1.0:
        return QuestionValues(mean, spread, np.full((1, 2), np.nan))
    # Weighted questions like these, and those without pooling, are a bootstrap of these.
    anew = states.weight is not None or model.pooling == "none"
    rest = _without(model, given, anew, metric)
    each = np.ones(len(states.which)) if states.weight is None else states.weight
    every, own, other, slope = rest[:, states.which]
    alone = (every - each * own) / (states.questions - each), other + each * slope
    whole = weight @ given @ states.share, weight @ _of_new(nodes, given, states, metric, anew)[0]
    influence = [one - left for one, left in zip(whole, alone, strict=True)]
    return QuestionValues(mean, spread, np.stack(influence, axis=1))


def _without(model: RightWrongModel, given: Array, anew: bool, metric: Metric) -> Array:
    """Return what is left without the trials of one question of each state; (4, states).

    The sum over all questions, the part of that question in it, and of questions like these the
    mean, and its slope in the weight of that question.
    """
    states, nodes = model.states, model.nodes
    weight = nodes.weight / nodes.weight.sum()
    failures = states.trials - states.successes
    with np.errstate(divide="ignore"):
        logs = np.log(weight)[:, None] - nodes.log_likelihood(states.successes, failures)
    chance = np.exp(logs - logs.max(axis=0))
    chance /= chance.sum(axis=0)
    whole, slope = _of_new(nodes, given, states, metric, anew)
    found = np.stack(
        [
            given @ states.sums[1] @ chance, (chance * given).sum(axis=0), whole @ chance,
            (chance * slope).sum(axis=0),
        ]
    )  # fmt: skip
    ratio = np.divide(chance, weight[:, None], out=np.zeros_like(chance), where=weight[:, None] > 0)
    unsure = (1.0 / (chance * ratio).sum(axis=0) < _LEAST_SHARE) | (ratio.max(axis=0) > _RATIO)
    for state in np.flatnonzero(unsure) if len(nodes) > 1 else ():
        left = states.count - (np.arange(len(states)) == state)
        fitted = replace(model, states=states.among(left > 0.0, left)).nodes
        own, _ = _by_node(fitted, states, metric)
        whole, slope = _of_new(fitted, own, states, metric, anew)
        parts = own @ states.sums[1], own[:, state], whole, slope[:, state]
        found[:, state] = [fitted.weight @ part for part in parts]
    return found


def _of_new(
    nodes: Nodes, given: Array, states: States, metric: Metric, anew: bool
) -> tuple[Array, Array]:
    """Mean of questions like these by node, and its slope without one, by node and state."""
    if anew:
        whole, slope = bootstrap_without(given, states.observed)
        return whole, slope * states.tried
    return expected_credits(nodes, [metric.credit])[0][:, 0], np.zeros_like(given)


def _by_node(nodes: Nodes, states: States, metric: Metric) -> tuple[Array, Array]:
    """Mean and variance of a metric of one question, by node and state."""
    mean, variance = np.empty((2, len(nodes), len(states)))
    for some, own, found in StateMixture(nodes, states, (metric.credit,)).cumulants(2):
        mean[np.ix_(some, own)] = found[0][..., 0]
        variance[np.ix_(some, own)] = found[2][..., 0]
    return mean, variance
