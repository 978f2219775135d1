"""A system's metric without one of its questions: exact, from the posterior with all of them."""

from dataclasses import dataclass, replace

import numpy as np

from bayesatk.core.engine.bootstrap import bootstrap_without
from bayesatk.core.engine.mixture import StateMixture, expected_credits
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.question_posteriors import QuestionLaws
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.apart import ApartModel
from bayesatk.posterior.judged import JudgedModel
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.program import ProgramModel
from bayesatk.posterior.program_questions import ProgramQuestions
from bayesatk.posterior.right_wrong import RightWrongModel

OfNodes = RightWrongModel | JudgedModel

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


def question_laws(model: CountModel, metric: Metric) -> QuestionLaws:
    """Return the posterior of p of a question in each state, whatever the model."""
    if isinstance(model, ApartModel):
        return question_laws(model.whole, metric)
    if isinstance(model, ProgramModel):
        return ProgramQuestions(model, metric).laws()
    assert isinstance(model, OfNodes)  # scored categories are refused before
    return QuestionLaws.of(_of_questions(model, model.nodes), _with_earlier(model.states))


def question_values(model: CountModel, metric: Metric) -> QuestionValues:
    """Return the posterior of a metric by question, and the influence of each.

    Parameters
    ----------
    model : CountModel
        Of right and wrong.
    metric : Metric
    """
    if isinstance(model, ProgramModel):
        return QuestionValues(*ProgramQuestions(model, metric).values())
    if isinstance(model, ApartModel):
        return _values_apart(model, metric)
    assert isinstance(model, OfNodes)  # scored categories are refused before
    return _values_on_nodes(replace(model, states=_with_earlier(model.states)), metric)


def _with_earlier(states: States) -> States:
    """Return the states with prior trials as trials, where there are any."""
    return states.merged() if states.prior.any() else states


def _values_apart(model: ApartModel, metric: Metric) -> QuestionValues:
    """Return the same of groups that say nothing of one another, or have one p together."""
    whole = question_values(model.whole, metric)
    if model.pooling == "complete" or len(whole.influence) == 1:
        return whole
    influence = np.empty_like(whole.influence)
    present = [members for members in model.members if len(members)]
    share = model.share[[len(members) > 0 for members in model.members]]
    means = np.array([group.fit([metric]).mean[0] for group in model.groups])
    for place, (group, members) in enumerate(zip(model.groups, present, strict=True)):
        weight = group.states.weight
        own = (np.ones(len(members)) if weight is None else weight) / len(members)
        alone = question_values(group, metric).influence
        left = np.repeat(share[None], len(members), axis=0)
        left[:, place] *= (own < 1.0) if model.given else 1.0 - own
        rest = np.repeat(means[None], len(members), axis=0)
        rest[:, place] -= np.nan_to_num(alone)
        without = np.einsum("qg,qgt->qt", left, rest) / left.sum(axis=1, keepdims=True)
        influence[members] = share @ means - without
    return replace(whole, influence=influence)


def _values_on_nodes(model: OfNodes, metric: Metric) -> QuestionValues:
    """Return the same of questions without structure.

    Without a question the posterior of every node is divided by the probability of that question's
    trials given the node; where that moves it to where there are hardly any nodes, the model is
    fitted again without the question.
    """
    states, nodes = model.states, model.nodes
    given, variance = _by_node(_of_questions(model, nodes), states, metric)
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


def _without(model: OfNodes, given: Array, anew: bool, metric: Metric) -> Array:
    """Return what is left without the trials of one question of each state; (4, states).

    The sum over all questions, the part of that question in it, and of questions like these the
    mean, and its slope in the weight of that question.
    """
    states, nodes = model.states, model.nodes
    weight = nodes.weight / nodes.weight.sum()
    with np.errstate(divide="ignore"):
        logs = np.log(weight)[:, None] - model.log_states(nodes)
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
        own, _ = _by_node(_of_questions(model, fitted), states, metric)
        whole, slope = _of_new(fitted, own, states, metric, anew)
        parts = own @ states.sums[1], own[:, state], whole, slope[:, state]
        found[:, state] = [fitted.weight @ part for part in parts]
    return found


def _of_questions(model: OfNodes, nodes: Nodes) -> Nodes:
    """Return the nodes; where each is one p for all, the rates of a judge add nothing to it."""
    return replace(nodes, rates=None) if model.pooling == "complete" else nodes


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
