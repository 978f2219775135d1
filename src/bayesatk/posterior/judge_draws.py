"""Draws given the rates of a judge, what is known of the rates, and what they cost."""

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.metrics.credit import Array
from bayesatk.posterior.posterior import Summary
from bayesatk.results.schema import RATES


def draw_given_rates(
    given: Array, point: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Choose a draw for every wanted point of the rates, among draws that know nothing of them.

    Parameters
    ----------
    given : ndarray, shape (draws, points)
        Probability of the rates given each draw.
    point : ndarray of int, shape (size,)

    Returns
    -------
    ndarray of int, shape (size,)
        By Bayes' rule a draw is chosen in proportion to the probability of the point given it.
    """
    found = np.empty(len(point), np.intp)
    for one in np.unique(point):
        own = np.flatnonzero(point == one)
        upto = np.cumsum(given[:, one])
        # At equal steps of probability, in any order: as even as draws can be.
        place = (rng.permutation(len(own)) + rng.random(len(own))) / len(own) * upto[-1]
        found[own] = np.minimum(np.searchsorted(upto, place), len(given) - 1)
    return found


def rate_summaries(judge: JudgeRates) -> dict[str, Summary | list[Summary]]:
    """Exact posteriors of the rates of a judge."""
    found: dict[str, Summary | list[Summary]] = {}
    for name, values in zip(RATES, judge.rates.values.T, strict=True):
        found[name] = Summary.on_points(judge.probability, values)
    return found


def due_to_rates(weight: Array, rates: Array, values: Array) -> Array:
    """Variance of a quadratic in the judge's rates, fitted to values at nodes; (metrics,).

    A few nodes share a pair of rates, so their means would vary more than the expectation given
    the rates does; that is smooth.

    Parameters
    ----------
    weight : ndarray, shape (nodes,)
    rates : ndarray, shape (nodes, 2)
    values : ndarray, shape (nodes, metrics)
        Posterior means given each node.
    """
    root = np.sqrt(weight)[:, None]
    gap = rates - weight @ rates
    s, f = (gap / np.maximum(np.abs(gap).max(axis=0), 1e-300)).T
    terms = np.stack([np.ones_like(s), s, f, s * s, s * f, f * f], axis=1)
    found = terms @ np.linalg.lstsq(root * terms, root * values, rcond=None)[0]
    return np.asarray(weight @ (found - weight @ found) ** 2)
