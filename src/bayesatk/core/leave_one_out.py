"""Exact leave-one-question-out predictive probabilities and log evidence of every pooling."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp, xlog1py, xlogy

from bayesatk.core.dirichlet_multinomial import log_counts
from bayesatk.core.families import (
    FamilyPosterior,
    family_posterior,
    family_posteriors,
    family_probabilities,
)
from bayesatk.core.histograms import CountHistograms, log_likelihood
from bayesatk.core.importance import TRUSTED, pareto_shape
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array
from bayesatk.priors import BetaPrior, HyperPrior


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


_DEEP = 20.0  # log-density drop within which the full posterior's grid is surely fine enough
_STRAY = 1e-9  # share of a left-out posterior that may lie beyond it
_WORTH = 100.0  # independent points that weighted ones must be worth without a question
_COUNTS = 1e-6  # probability of a family, without a question, from which it counts


def log_binomial_coefficient(states: States) -> Array:
    """Log number of orders in which each state's successes can come."""
    n, c = states.trials.astype(float), states.successes.astype(float)
    return np.asarray(gammaln(n + 1.0) - gammaln(c + 1.0) - gammaln(n - c + 1.0))


def independent(states: States, prior: BetaPrior) -> Predictive:
    """Predict without pooling: a question says nothing about another one.

    Examples
    --------
    >>> found = independent(States.of([1, 0], [1, 1]), BetaPrior())
    >>> np.exp(found.left_out).round(12).tolist(), round(float(np.exp(found.log_evidence)), 12)
    ([0.5, 0.5], 0.25)
    """
    a, b = prior.alpha, prior.beta
    c, f = states.successes, states.trials - states.successes
    ordered = np.asarray(betaln(a + c, b + f) - betaln(a, b), float)
    each = _log_pmf(states, np.full(len(states), a), np.full(len(states), b))
    return Predictive(each, each, float(states.count @ ordered))


def _log_pmf(states: States, a: Array, b: Array) -> Array:
    """Log probability of each state's count under Beta(a, b)."""
    counts = np.stack([states.successes, states.trials - states.successes], axis=-1)
    total = a + b
    return log_counts(counts, np.stack([a / total, b / total], axis=-1), 1.0 / total)


def complete(states: States, prior: BetaPrior) -> Predictive:
    """Predict with one p for all questions."""
    c, f = states.successes, states.trials - states.successes
    a, b = prior.alpha + float(states.count @ c), prior.beta + float(states.count @ f)
    left_out = _log_pmf(states, np.asarray(a - c, float), np.asarray(b - f, float))
    fitted = _log_pmf(states, np.full(len(states), a), np.full(len(states), b))
    return Predictive(left_out, fitted, float(betaln(a, b) - betaln(prior.alpha, prior.beta)))


def partial(states: States, prior: HyperPrior) -> Predictive:
    """Predict under partial pooling, difficulty families averaged.

    ``1 / p(c_a | the others)`` is the posterior mean of ``1 / p(c_a | node)`` over the nodes of all
    families, each family with its posterior probability. Where leaving a question out moves the
    posterior of a family to where its nodes say next to nothing, that family is integrated again
    without the question.

    Examples
    --------
    >>> found = partial(States.of([1, 0, 2, 2], [2, 2, 2, 2]), HyperPrior(families="beta"))
    >>> len(found.left_out), bool((found.left_out < found.fitted).all())
    (3, True)
    """
    every = family_posteriors(states, prior)
    share, _, log_evidence = family_probabilities(every, prior)
    inverse, fitted, unsure = (
        np.stack(each)
        for each in zip(*(_of_family(one, states) for one in every), strict=True)
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        own = np.log(share)[:, None]
    if states.questions > 1 and prior.proper:
        part = own + inverse
        counts = part - logsumexp(part, axis=0) > np.log(_COUNTS)
        for family, state in zip(*np.nonzero(unsure & counts), strict=True):
            without = family_posterior(every[family].name, _without(states, state), prior)
            inverse[family, state] = without.log_evidence - every[family].log_evidence
    ways = log_binomial_coefficient(states)
    left_out = -logsumexp(own + inverse, axis=0)
    return Predictive(left_out + ways, logsumexp(own + fitted, axis=0) + ways, log_evidence)


def partial_evidence(states: States, prior: HyperPrior) -> float:
    """Log evidence under partial pooling, difficulty families averaged."""
    every = family_posteriors(states, prior)
    return family_probabilities(every, prior)[2]


def _of_family(
    family: FamilyPosterior, states: States
) -> tuple[Array, Array, NDArray[np.bool_]]:  # fmt: skip
    """Log of the posterior mean of 1 / p(c | node) and of p(c | node); which cannot be trusted."""
    inverse, fitted = np.empty((2, len(states)))
    unsure = np.zeros(len(states), bool)
    log_weight, likelihood = _points(family)
    for i, (c, n) in enumerate(zip(states.successes, states.trials, strict=True)):
        own = likelihood(c, n)
        fitted[i] = logsumexp(log_weight + own)
        terms = log_weight - own
        inverse[i] = logsumexp(terms)
        unsure[i] = _unsure(family, log_weight, np.exp(terms - inverse[i]))
    return inverse, fitted, unsure


def _points(family: FamilyPosterior) -> tuple[Array, Callable[[int, int], Array]]:
    """Log weights of all points of a family, and the log likelihood of a state's trials there."""
    if family.grid is not None:
        x, y = family.grid.x.ravel(), family.grid.y.ravel()
        return family.grid.log_weight.ravel(), lambda c, n: log_likelihood(
            CountHistograms.of([c], [n], [1.0]), x, y
        )

    def at_nodes(c: int, n: int) -> Array:
        return family.nodes.log_likelihood(np.array([c]), np.array([n - c]))[:, 0]

    with np.errstate(divide="ignore"):
        return np.log(family.nodes.weight), at_nodes


def _unsure(family: FamilyPosterior, log_weight: Array, share: Array) -> bool:
    """Whether weights of a posterior without one question lie where the full one has no points."""
    if family.grid is not None:
        deep = log_weight < log_weight.max() - _DEEP
        return bool(share[deep].sum() > _STRAY)
    return 1.0 / float(share @ share) < _WORTH or pareto_shape(share) > TRUSTED


def _without(states: States, i: int) -> States:
    """All questions but one of a state."""
    count = states.count.copy()
    count[i] -= 1.0
    keep = count > 0.0
    question = np.repeat(np.arange(keep.sum()), count[keep].astype(int))
    return States(states.successes[keep], states.trials[keep], count[keep], question)


def certain(successes: Array, failures: Array, p: Array) -> float:
    """Log evidence of known success probabilities, one per question."""
    return float(np.sum(xlogy(successes, p) + xlog1py(failures, -p)))
