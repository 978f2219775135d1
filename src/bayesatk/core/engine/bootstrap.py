"""Moments of weighted means over questions: of these questions, and by the Bayesian bootstrap."""

from collections.abc import Iterator

import numpy as np

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.pooling.states import Terms

_LOG_T_STEP = 0.25  # the trapezoid rule then has an error of 1e-15, for any number of questions
_LOG_T_MIN, _LOG_T_MAX = -40.0, 46.0  # of t times questions; the integrand is negligible outside
_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB


def mean_moments(mean: Array, variance: Array, terms: Terms) -> tuple[Array, Array]:
    """Mean and variance of a weighted mean over independent questions; shape (..., metrics).

    Parameters
    ----------
    mean, variance : ndarray, shape (..., states, metrics)
        Mean and variance of the metrics of a question of each state.
    terms : Terms
        Weights of the questions, on any scale.
    """
    state, weight, count = terms
    total, size = count @ weight, mean.shape[-2]
    shares = (np.bincount(state, count * weight**j, size) / total**j for j in (1, 2))
    return next(shares) @ mean, next(shares) @ variance


def bootstrap_moments(mean: Array, variance: Array, terms: Terms) -> tuple[Array, Array]:
    r"""Mean and variance under the Bayesian bootstrap of the questions; shape (..., metrics).

    .. math:: \frac{\sum_q V_q w_q g_q}{\sum_q V_q w_q}, \quad V_q \sim \text{Exponential}(1),

    is a draw from the posterior of ``E[w g] / E[w]`` over a population of pairs of a weight and a
    question (Rubin 1981, Annals of Statistics 9, for a ratio). As 1 / S is the integral of
    exp(-t S) over t, its moments are integrals over t of products over the questions. With equal
    weights they are those of a mean with Dirichlet(1, ..., 1) weights: the mean, and the variance
    of g between questions over (questions + 1).

    Parameters
    ----------
    mean, variance, terms
        As in `mean_moments`.

    Examples
    --------
    >>> terms = Terms(np.array([0, 1]), np.ones(2), np.ones(2))
    >>> mean, variance = bootstrap_moments(np.array([[0.0], [1.0]]), np.zeros((2, 1)), terms)
    >>> mean.round(12).tolist(), variance.round(12).tolist()  # uniform
    ([0.5], [0.083333333333])
    """
    state, weight, count = terms
    centre, trial_variance = mean_moments(mean, variance, terms)
    centred = mean - centre[..., None, :]
    if (weight == weight[:1]).all():
        share = np.bincount(state, count, mean.shape[-2]) / count.sum()
        spread = share @ (centred**2 + variance) - trial_variance
        return centre, trial_variance + np.maximum(spread, 0.0) / (count.sum() + 1.0)
    first, second = np.zeros((2, *centre.shape))
    square = centred**2 + 2.0 * variance
    for t, density, scaled_weight in _quadrature_blocks(terms):
        linear, quadratic = (
            _sum_by_state(count * scaled_weight**j, state, mean.shape[-2]) for j in (1, 2)
        )
        total = linear @ centred
        first += density @ total
        second += (density * t) @ (total**2 + quadratic @ square)
    return centre + first, np.maximum(second - first**2, 0.0)


def _sum_by_state(values: Array, state: Indices, states: int) -> Array:
    """Sum columns, one for each term, by the state of the term."""
    order = np.argsort(state, kind="stable")
    sums = np.zeros((len(values), states))
    states_present, first = np.unique(state[order], return_index=True)
    sums[:, states_present] = np.add.reduceat(values[:, order], first, axis=1)
    return sums


def bootstrap_leave_one_out(mean: Array, terms: Terms) -> tuple[Array, Array]:
    """Mean of the Bayesian bootstrap with all questions, and without any one of them.

    Parameters
    ----------
    mean : ndarray, shape (..., states)
        Mean of a metric of a question of each state.
    terms : Terms
        Two questions or more.

    Returns
    -------
    whole : ndarray, shape (...)
    slope : ndarray, shape (..., states)
        Without a question of a state, with weight w, the mean is ``whole + w slope``.

    Examples
    --------
    >>> terms = Terms(np.array([0, 1]), np.ones(2), np.array([2.0, 1.0]))
    >>> whole, slope = bootstrap_leave_one_out(np.array([0.0, 0.6]), terms)
    >>> round(float(whole), 12), (whole + slope).round(12).tolist()  # without a 0, without the 0.6
    (0.2, [0.3, 0.0])
    """
    state, _, count = terms
    centre, _ = mean_moments(mean[..., None], mean[..., None], terms)
    centred, own_slope = mean - centre, 0.0
    whole, slope = np.zeros((2, *mean.shape[:-1]))
    for t, density, scaled_weight in _quadrature_blocks(terms):
        total = centred @ _sum_by_state(count * scaled_weight, state, mean.shape[-1]).T
        whole += total @ density
        # Without a question the product over the questions lacks its factor 1 / (1 + t weight).
        slope += total @ (density * t)
        own_slope += float(density.sum())
    return centre[..., 0] + whole, slope[..., None] - own_slope * centred


def _quadrature_blocks(terms: Terms) -> Iterator[tuple[Array, Array, Array]]:
    """Yield t, the product over questions of 1 / (1 + t w) with the step, and w / (1 + t w)."""
    _, weight, count = terms
    nodes = np.exp(np.arange(_LOG_T_MIN, _LOG_T_MAX, _LOG_T_STEP)) / count.sum()
    width = max(1, _MAX_FLOATS_PER_BLOCK // len(weight))
    for start in range(0, len(nodes), width):
        t = nodes[start : start + width]
        scaled = t[:, None] * weight
        yield t, _LOG_T_STEP * t * np.exp(-np.log1p(scaled) @ count), weight / (1.0 + scaled)
