"""Exact leave-one-question-out predictive probabilities and log evidence of every pooling."""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, logsumexp, xlog1py, xlogy

from bayesatk.core.dirichlet_multinomial import log_counts
from bayesatk.core.hierarchy import hyper_posterior
from bayesatk.core.histograms import CountHistograms, log_likelihood
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
    """Predict under partial pooling.

    ``1 / p(c_a | the others)`` is the posterior mean of ``1 / p(c_a | m, r)``. Where leaving a
    question out moves the posterior to where the full one has next to no probability, the
    hyperparameters are integrated again without it.
    """
    data = CountHistograms.of(states.successes, states.trials, states.count)
    hyper = hyper_posterior(data, prior)
    x, y, weight = hyper.x.ravel(), hyper.y.ravel(), hyper.log_weight.ravel()
    deep = weight < weight.max() - _DEEP
    left_out, fitted = np.empty((2, len(states)))
    for i, (c, n) in enumerate(zip(states.successes, states.trials, strict=True)):
        own = log_likelihood(CountHistograms.of([c], [n], [1.0]), x, y)
        fitted[i] = logsumexp(weight + own)
        terms = weight - own
        top = terms.max()
        share = np.exp(terms - top)
        left_out[i] = -(top + np.log(share.sum()))
        if share[deep].sum() > _STRAY * share.sum() and states.questions > 1 and prior.proper:
            left_out[i] = hyper.log_evidence - _evidence_without(states, i, prior)
    ways = log_binomial_coefficient(states)
    return Predictive(left_out + ways, fitted + ways, hyper.log_evidence)


def _evidence_without(states: States, i: int, prior: HyperPrior) -> float:
    count = states.count.copy()
    count[i] -= 1.0
    keep = count > 0.0
    data = CountHistograms.of(states.successes[keep], states.trials[keep], count[keep])
    return hyper_posterior(data, prior).log_evidence


def certain(successes: Array, failures: Array, p: Array) -> float:
    """Log evidence of known success probabilities, one per question."""
    return float(np.sum(xlogy(successes, p) + xlog1py(failures, -p)))
