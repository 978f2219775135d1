"""Exact leave-one-question-out predictive probabilities and log evidence of every pooling."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlog1py, xlogy

from bayesatk.core.numerics.importance import TRUSTED
from bayesatk.core.numerics.points import Points
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.difficulty_families import (
    FamilyPosterior,
    family_posterior,
    family_posteriors,
    weigh_families,
)
from bayesatk.core.pooling.dirichlet import DirichletHyper, dirichlet_posterior
from bayesatk.core.pooling.marks import Rates, log_marked
from bayesatk.core.pooling.states import Counts, States
from bayesatk.core.question.dirichlet_multinomial import log_counts, log_ordered
from bayesatk.metrics.credit import Array
from bayesatk.priors import DirichletHyperPrior, HyperPrior


class Predictive(NamedTuple):
    """Log predictive probabilities by state, and log evidence.

    Parameters
    ----------
    left_out : ndarray
        Of a question's count, given all the other questions.
    fitted : ndarray
        Of the count of a new question alike, given all questions and the same difficulty.
    log_evidence : float
        Of all trials in their given order (no binomial factors).
    """

    left_out: Array
    fitted: Array
    log_evidence: float


_GRID_DROP = 20.0  # log-density drop within which the full posterior's grid is surely fine enough
_SHARE_OUTSIDE = 1e-9  # share of a left-out posterior that may lie beyond it
_LEAST_DRAWS = 100.0  # least effective number of draws without a question
_LEAST_FAMILY = 1e-6  # probability of a family, without a question, from which it counts
_PAIRS = 8000  # of nodes and rates of a judge that questions left out are predicted on
_LEAST_KEPT = 0.25  # the same for categories, as a share of the effective draws with the question


def independent(states: States, alpha: Array) -> Predictive:
    """Predict without pooling: a question says nothing about another one.

    Parameters
    ----------
    states : States
    alpha : ndarray, shape (categories,)
        Dirichlet prior of every question's probabilities.

    Examples
    --------
    >>> found = independent(States.of([1, 0], [1, 1]), np.ones(2))
    >>> np.exp(found.left_out).round(12).tolist(), round(float(np.exp(found.log_evidence)), 12)
    ([0.5, 0.5], 0.25)
    """
    given = alpha + states.prior
    each = _log_pmf(states.counts, given)
    return Predictive(each, each, float(states.count @ (each - states.log_ways)))


def complete(states: States, alpha: Array) -> Predictive:
    """Predict with one vector of probabilities for all questions; parameters as above."""
    alpha = alpha + states.count @ states.prior
    total = states.count @ states.counts
    left_out = _log_pmf(states.counts, alpha + total - states.counts)
    fitted = _log_pmf(states.counts, np.broadcast_to(alpha + total, states.counts.shape))
    return Predictive(left_out, fitted, float(log_ordered(alpha, total)))


def _log_pmf(counts: Counts, alpha: Array) -> Array:
    """Log probability of each state's counts under Dirichlet(alpha) by row."""
    total = alpha.sum(axis=1)
    return log_counts(counts, alpha / total[:, None], 1.0 / total)


def of_points(logs: Array, each: Array) -> Predictive:
    """Predict from points at which questions are independent.

    Parameters
    ----------
    logs : ndarray, shape (points,)
        Log probability of each point and all trials in their order.
    each : ndarray, shape (points, states)
        Log probability of a question's counts, in any order, given the points.

    Examples
    --------
    Two questions, and a coin that always or never succeeds:

    >>> with np.errstate(divide="ignore"):
    ...     each = np.log([[0.75], [0.25]])
    >>> found = of_points(np.log([0.5, 0.5]) + 2.0 * each[:, 0], each)
    >>> round(float(np.exp(found.left_out[0])), 6)  # (0.75^2 + 0.25^2) / (0.75 + 0.25)
    0.625
    """
    total = float(logsumexp(logs))
    share = (logs - total)[:, None]
    return Predictive(-logsumexp(share - each, axis=0), logsumexp(share + each, axis=0), total)


def partial(states: States, prior: HyperPrior, rates: Rates | None = None) -> Predictive:
    """Predict under partial pooling, difficulty families averaged.

    ``1 / p(c_a | the others)`` is the posterior mean of ``1 / p(c_a | node)`` over the nodes of all
    families, each family with its posterior probability. Where leaving a question out moves the
    posterior of a family to where its nodes say next to nothing, that family is integrated again
    without the question. With the rates of a judge, it is marks that are predicted.

    Examples
    --------
    >>> found = partial(States.of([1, 0, 2, 2], [2, 2, 2, 2]), HyperPrior(families="beta"))
    >>> len(found.left_out), bool((found.left_out < found.fitted).all())
    (3, True)
    """
    every = family_posteriors(states, prior, rates)
    share, _, log_evidence = weigh_families(every, prior)
    inverse, fitted, unsure = (
        np.stack(each)
        for each in zip(*(_of_family(one, states) for one in every), strict=True)
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        own = np.log(share)[:, None]
    if states.questions > 1 and prior.proper:
        part = own + inverse
        counts = part - logsumexp(part, axis=0) > np.log(_LEAST_FAMILY)
        for family, state in zip(*np.nonzero(unsure & counts), strict=True):
            rest = without_one(states, state)
            without = family_posterior(every[family].name, rest, prior, rates=rates)
            inverse[family, state] = without.log_evidence - every[family].log_evidence
    ways = states.log_ways
    left_out = -logsumexp(own + inverse, axis=0)
    return Predictive(left_out + ways, logsumexp(own + fitted, axis=0) + ways, log_evidence)


def partial_evidence(states: States, prior: HyperPrior, rates: Rates | None = None) -> float:
    """Log evidence under partial pooling, difficulty families averaged."""
    every = family_posteriors(states, prior, rates)
    return weigh_families(every, prior)[2]


def _of_family(
    family: FamilyPosterior, states: States
) -> tuple[Array, Array, NDArray[np.bool_]]:  # fmt: skip
    """Log of the posterior mean of 1 / p(c | node) and of p(c | node); which cannot be trusted."""
    log_weight, likelihood = _points(family)

    def of_state(i: int) -> Array:
        return likelihood(int(states.successes[i]), int(states.trials[i]))

    on_grid = family.grid is not None and family.marked is None
    unsure = _outside_grid(log_weight) if on_grid else _unreliable
    return _inverse_means(log_weight, of_state, len(states), unsure)


def _inverse_means(
    log_weight: Array,
    likelihood: Callable[[int], Array],
    number: int,
    unsure: Callable[[Array], bool],
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Log of the posterior mean of 1 / p(c | point) and of p(c | point); which to do again.

    Parameters
    ----------
    log_weight : ndarray, shape (points,)
    likelihood : callable
        Log probability of the trials of a state, in their order, at every point.
    number : int
        Of states.
    unsure : callable
        Whether the weights of a posterior without one question cannot be trusted.
    """
    inverse, fitted = np.empty((2, number))
    doubtful = np.zeros(number, bool)
    for i in range(number):
        own = likelihood(i)
        fitted[i] = logsumexp(log_weight + own)
        terms = log_weight - own
        inverse[i] = logsumexp(terms)
        doubtful[i] = unsure(np.exp(terms - inverse[i]))
    return inverse, fitted, doubtful


def _points(family: FamilyPosterior) -> tuple[Array, Callable[[int, int], Array]]:
    """Log weights of all points of a family, and the log likelihood of a state's trials there."""
    if family.marked is not None:
        nodes, _ = family.with_rates(_PAIRS)

        def of_marks(c: int, n: int) -> Array:
            state = States.of([c], [n])
            return np.asarray(log_marked(nodes, state)[:, 0] - state.log_ways)

        return np.log(nodes.weight), of_marks
    if family.grid is not None:
        x, y = family.grid.x.ravel(), family.grid.y.ravel()
        return family.grid.log_weight.ravel(), lambda c, n: CountHistograms.of(
            [c], [n], [1.0]
        ).log_likelihood(x, y)

    def at_nodes(c: int, n: int) -> Array:
        return family.nodes.log_likelihood(np.array([c]), np.array([n - c]))[:, 0]

    with np.errstate(divide="ignore"):
        return np.log(family.nodes.weight), at_nodes


def _outside_grid(log_weight: Array) -> Callable[[Array], bool]:
    """Whether a posterior without one question lies where a grid has next to no probability."""
    deep = log_weight < log_weight.max() - _GRID_DROP
    return lambda share: bool(share[deep].sum() > _SHARE_OUTSIDE)


def _unreliable(share: Array, fewest: float = _LEAST_DRAWS) -> bool:
    """Whether the effective number of draws is below the fewest, or weights cannot be trusted."""
    return 1.0 / float(share @ share) < fewest or pareto_shape(share) > TRUSTED


def without_one(states: States, i: int) -> States:
    """Return all questions but one of a state."""
    count = states.count - (np.arange(len(states)) == i)
    return states.among(count > 0.0, count)


def of_weighted(
    points: Points,
    states: States,
    likelihood: Callable[[int], Array],
    again: Callable[[int], float],
    fewest: float = _LEAST_DRAWS,
) -> Predictive:
    """Predict from weighted points.

    ``1 / p(n_a | the others)`` is the posterior mean of ``1 / p(n_a | parameters)`` over the
    points, where these can be trusted without the question.

    Parameters
    ----------
    points : Points
    states : States
    likelihood : callable
        Log probability of the trials of a state, in their order, at every point.
    again : callable
        The same, parameters integrated on points of their posterior without such a question.
    fewest : float
        Least effective number of draws of a posterior without a question.
    """
    with np.errstate(divide="ignore"):
        log_weight = np.log(points.weight)
    inverse, fitted, unsure = _inverse_means(
        log_weight, likelihood, len(states), lambda share: _unreliable(share, fewest)
    )
    left_out = -inverse
    for state in np.flatnonzero(unsure) if states.questions > 1.0 else ():
        left_out[state] = again(int(state))
    ways = states.log_ways
    return Predictive(left_out + ways, fitted + ways, points.log_evidence)


def partial_categories(states: States, prior: DirichletHyperPrior) -> Predictive:
    """Predict under partial pooling of categories; prior trials are given."""
    mean_prior = prior.vector(states.counts.shape[1])
    hyper = dirichlet_posterior(states.evidence, states.count, mean_prior, prior.icc)
    earlier = states.prior.any()

    def given(posterior: DirichletHyper, state: int) -> Array:
        logs = posterior.log_likelihood(states.evidence[state])
        return logs - posterior.log_likelihood(states.prior[state]) if earlier else logs

    def again(state: int) -> float:
        count = states.count - (np.arange(len(states)) == state)
        trials = np.append(states.evidence, states.prior[[state]], axis=0)
        count = np.append(count, float(earlier))
        others = dirichlet_posterior(trials[count > 0], count[count > 0], mean_prior, prior.icc)
        return float(logsumexp(given(others, state), b=others.weight))

    found = of_weighted(
        hyper.points, states, lambda state: given(hyper, state), again,
        _LEAST_KEPT * hyper.points.effective_draws,
    )  # fmt: skip
    if not earlier:
        return found
    before = dirichlet_posterior(states.prior, states.count, mean_prior, prior.icc)
    return found._replace(log_evidence=found.log_evidence - before.log_evidence)


def certain(successes: Array, failures: Array, p: Array) -> float:
    """Log evidence of known success probabilities, one per question."""
    return float(np.sum(xlogy(successes, p) + xlog1py(failures, -p)))
