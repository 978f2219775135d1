"""Leave-one-question-out predictive probabilities and evidence of category counts."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from bayesatk.core.dirichlet import (
    CategoryHistograms,
    DirichletHyper,
    dirichlet_posterior,
    log_likelihood,
)
from bayesatk.core.dirichlet_multinomial import log_counts, log_ordered
from bayesatk.core.leave_one_out import Predictive
from bayesatk.metrics.credit import Array

Counts = NDArray[np.int64]
_FEWEST = 1000.0  # points that a left-out posterior must be worth; else it is integrated afresh


def _log_ways(counts: Counts) -> Array:
    """Log number of orders in which each state's categories can come."""
    return np.asarray(gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1))


def independent(counts: Counts, repeats: Array, alpha: Array) -> Predictive:
    """Predict without pooling: a question says nothing about another one.

    Examples
    --------
    >>> found = independent(np.array([[1, 0, 0]]), np.ones(1), np.ones(3))
    >>> np.exp(found.left_out).round(12).tolist()
    [0.333333333333]
    """
    each = _log_pmf(counts, np.broadcast_to(alpha, counts.shape))
    return Predictive(each, each, float(repeats @ log_ordered(alpha, counts)))


def _log_pmf(counts: Counts, alpha: Array) -> Array:
    """Log probability of each state's counts under Dirichlet(alpha) by row."""
    total = alpha.sum(axis=1)
    return log_counts(counts, alpha / total[:, None], 1.0 / total)


def complete(counts: Counts, repeats: Array, alpha: Array) -> Predictive:
    """Predict with one vector of probabilities for all questions."""
    total = repeats @ counts
    left_out = _log_pmf(counts, alpha + total - counts)
    fitted = _log_pmf(counts, np.broadcast_to(alpha + total, counts.shape))
    evidence = log_ordered(alpha, total.astype(np.int64)[None])[0]
    return Predictive(left_out, fitted, float(evidence))


def partial(
    counts: Counts, repeats: Array, mean_prior: Array, icc_prior: tuple[float, float]
) -> Predictive:
    """Predict under partial pooling.

    ``1 / p(n_a | the others)`` is the posterior mean of ``1 / p(n_a | hyperparameters)``, on the
    points of the posterior; where they are worth too few without the question, the
    hyperparameters are integrated again without it.
    """
    hyper = dirichlet_posterior(counts, repeats, mean_prior, icc_prior)
    log_weight = np.log(np.maximum(hyper.weight, 1e-300))
    left_out, fitted = np.empty((2, len(counts)))
    for i, one in enumerate(counts):
        own = _at_points(one, hyper)
        fitted[i] = logsumexp(log_weight + own)
        terms = log_weight - own
        share = np.exp(terms - logsumexp(terms))
        few = 1.0 / float(share @ share) < min(_FEWEST, 0.5 / float(hyper.weight @ hyper.weight))
        if few and repeats.sum() > 1.0:
            rest = repeats - (np.arange(len(repeats)) == i)
            others = dirichlet_posterior(counts[rest > 0], rest[rest > 0], mean_prior, icc_prior)
            weight = np.log(np.maximum(others.weight, 1e-300))
            left_out[i] = logsumexp(weight + _at_points(one, others))
        else:
            left_out[i] = -logsumexp(terms)
    ways = _log_ways(counts)
    return Predictive(left_out + ways, fitted + ways, hyper.log_evidence)


def _at_points(one: Counts, hyper: DirichletHyper) -> Array:
    """Log probability of a question's trials in their order at every point."""
    data = CategoryHistograms.of(one[None], [1.0])
    with np.errstate(divide="ignore"):
        log_mean = np.log(hyper.mean)
    return log_likelihood(data, log_mean, np.log(hyper.icc) - np.log1p(-hyper.icc))
