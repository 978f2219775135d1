"""Latent values of credits on the points of a rule, and their complements, to full precision."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc

from bayesatk.core.numerics.quadrature import BetaRule
from bayesatk.core.question.laws import binomial_expectation, by_k
from bayesatk.metrics.credit import Array, Credit

_CHUNK = 1_000_000  # floats of one temporary: 8 MB


def latent_on_nodes(credits: Sequence[Credit], rule: BetaRule) -> tuple[Array, Array]:
    """Latent values of credits on the nodes of a rule, and their complements.

    Returns
    -------
    value, complement : ndarray, shape (nodes, credits)
        In the order of ``credits``; those that are no single step share one binomial table by k.
    """
    value = np.empty((len(rule), len(credits)))
    complement = np.empty_like(value)
    for i, credit in enumerate(credits):
        if credit.shape == "threshold":
            value[:, i], complement[:, i] = _step_on_nodes(credit.k, credit.threshold, rule)
    for columns in by_k(credits, [credit.shape != "threshold" for credit in credits]):
        stacked = np.stack([credits[i].vector for i in columns], axis=1)
        rows = max(1, _CHUNK // len(stacked))
        for start in range(0, len(rule), rows):
            nodes = slice(start, start + rows)
            low, high = binomial_expectation(stacked, rule.log_p[nodes], rule.log_q[nodes])
            value[nodes, columns], complement[nodes, columns] = low, high
    return value, complement


def _step_on_nodes(k: int, threshold: int, rule: BetaRule) -> tuple[Array, Array]:
    """Probability of a threshold or more successes of k, and of fewer; both without cancelling."""
    if threshold == 1:
        return -np.expm1(k * rule.log_q), np.exp(k * rule.log_q)
    if threshold == k:
        return np.exp(k * rule.log_p), -np.expm1(k * rule.log_p)
    p, q = np.exp(rule.log_p), np.exp(rule.log_q)
    fewer = k - threshold + 1
    return betainc(threshold, fewer, p), betainc(fewer, threshold, q)
