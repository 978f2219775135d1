"""Means over questions drawn anew from those that were asked: moments of the Bayesian bootstrap."""

from collections.abc import Iterator

import numpy as np

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.pooling.states import Terms

_STEP = 0.25  # of log t: the trapezoid rule is then good to 1e-15, for one question or a million
_LEAST, _MOST = -40.0, 46.0  # log t, less that of 1 / questions, beyond which nothing is left
_BLOCK = 4_000_000  # floats in one array: 32 MB


def mean_moments(mean: Array, variance: Array, terms: Terms) -> tuple[Array, Array]:
    """Mean and variance of a weighted mean over independent questions; shape (..., metrics).

    Parameters
    ----------
    mean, variance : ndarray, shape (..., states, metrics)
        Of the metrics of a question of each state.
    terms : Terms
        Weights of the questions, on any scale.
    """
    state, weight, count = terms
    total, size = count @ weight, mean.shape[-2]
    shares = (np.bincount(state, count * weight**j, size) / total**j for j in (1, 2))
    return next(shares) @ mean, next(shares) @ variance


def bootstrap_moments(mean: Array, variance: Array, terms: Terms) -> tuple[Array, Array]:
    """Mean and variance under the Bayesian bootstrap of the questions; shape (..., metrics).

    Questions get standard exponential variates V times their weights w, which is a posterior of
    E[w g] / E[w] over a population of pairs of a weight and a question (Rubin 1981, of a ratio).
    Since 1 / S is the integral of exp(-t S), the moments of sum V w g / sum V w are integrals over
    t of products over the questions. With equal weights they are those of a mean with
    Dirichlet(1, ..., 1) weights: the mean, and the spread over questions / (questions + 1).

    Parameters
    ----------
    mean, variance, terms
        As of `mean_moments`.

    Examples
    --------
    >>> terms = Terms(np.array([0, 1]), np.ones(2), np.ones(2))
    >>> found = bootstrap_moments(np.array([[0.0], [1.0]]), np.zeros((2, 1)), terms)
    >>> found[0].round(12).tolist(), found[1].round(12).tolist()  # uniform
    ([0.5], [0.083333333333])
    """
    state, weight, count = terms
    centre, trial = mean_moments(mean, variance, terms)
    centred = mean - centre[..., None, :]
    if (weight == weight[:1]).all():
        share = np.bincount(state, count, mean.shape[-2]) / count.sum()
        spread = share @ (centred**2 + variance) - trial
        return centre, trial + np.maximum(spread, 0.0) / (count.sum() + 1.0)
    first, second = np.zeros((2, *centre.shape))
    square = centred**2 + 2.0 * variance
    for t, chance, each in _panels(terms):
        once, twice = (_by_state(count * each**j, state, mean.shape[-2]) for j in (1, 2))
        total = once @ centred
        first += chance @ total
        second += (chance * t) @ (total**2 + twice @ square)
    return centre + first, np.maximum(second - first**2, 0.0)


def _by_state(values: Array, state: Indices, states: int) -> Array:
    """Sum columns, one for each term, by state."""
    order = np.argsort(state, kind="stable")
    found = np.zeros((len(values), states))
    held, start = np.unique(state[order], return_index=True)
    found[:, held] = np.add.reduceat(values[:, order], start, axis=1)
    return found


def bootstrap_without(mean: Array, terms: Terms) -> tuple[Array, Array]:
    """Mean of the Bayesian bootstrap with all questions, and without any one of them.

    Parameters
    ----------
    mean : ndarray, shape (..., states)
        Of a metric of a question of each state.
    terms : Terms
        Of two questions or more.

    Returns
    -------
    whole : ndarray, shape (...)
    slope : ndarray, shape (..., states)
        Without a question of a state, with weight w, the mean is ``whole + w slope``.

    Examples
    --------
    >>> terms = Terms(np.array([0, 1]), np.ones(2), np.array([2.0, 1.0]))
    >>> whole, slope = bootstrap_without(np.array([0.0, 0.6]), terms)
    >>> round(float(whole), 12), (whole + slope).round(12).tolist()  # without a 0, without the 0.6
    (0.2, [0.3, 0.0])
    """
    state, _, count = terms
    centre, _ = mean_moments(mean[..., None], mean[..., None], terms)
    centred, own = mean - centre, 0.0
    whole, slope = np.zeros((2, *mean.shape[:-1]))
    for t, chance, each in _panels(terms):
        total = centred @ _by_state(count * each, state, mean.shape[-1]).T
        whole += total @ chance
        # Without the question the product over the questions lacks 1 / (1 + t weight).
        slope += total @ (chance * t)
        own += float(chance.sum())
    return centre[..., 0] + whole, slope[..., None] - own * centred


def _panels(terms: Terms) -> Iterator[tuple[Array, Array, Array]]:
    """Yield t, the product over questions of 1 / (1 + t w) with the step, and w / (1 + t w)."""
    _, weight, count = terms
    every = np.exp(np.arange(_LEAST, _MOST, _STEP)) / count.sum()
    width = max(1, _BLOCK // len(weight))
    for start in range(0, len(every), width):
        t = every[start : start + width]
        times = t[:, None] * weight
        yield t, _STEP * t * np.exp(-np.log1p(times) @ count), weight / (1.0 + times)
