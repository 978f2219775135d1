"""Independent draws of success probabilities and mean costs of questions, by rejection.

A success probability is proposed from its posterior given the counts alone and kept with a
probability proportional to what the costs of the question say of it, which is log-concave in the
log mean cost that p leads to expect. A log mean cost is proposed from a density that touches the
posterior at its mode and lies above it elsewhere: an inverse Gamma where the costs say more than
the other questions do, a normal where they say less. Both are exact.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega

from bayesatk.core.costs.model import CostModel, gamma_sums, log_question
from bayesatk.core.pooling.legendre import part_shares
from bayesatk.metrics.credit import Array

Indices = NDArray[np.intp]


def draw_questions(
    model: CostModel, theta: Array, scale: float, rng: np.random.Generator
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield draws of all questions, block after block; each of shape (draws, questions).

    They are success probabilities, and mean costs of trials that fail, and that succeed.

    Parameters
    ----------
    model : CostModel
    theta : ndarray, shape (draws, 7)
        Draws of the place of the node, and of parameters as of `CostPrior.from_uniform`.
    scale : float
        Unit of costs in the model.
    rng : numpy.random.Generator
    """
    share = part_shares(model.nodes, *model.states.counts.T[::-1])
    cumulative_shares = np.cumsum(share, axis=0)[:-1]
    step = max(1, 200_000 // len(model.costs.trials))
    for start in range(0, len(theta), step):
        parameters = theta[start : start + step]
        k, s = gamma_sums(model.costs, parameters[:, 1:])
        p = _probabilities(model, parameters, (k, s), cumulative_shares, rng)
        centre = parameters[:, 1, None] + parameters[:, 2, None] * (0.5 - p)
        variance = np.broadcast_to(np.exp(2.0 * parameters[:, 4, None]), p.shape)
        wrong = scale * np.exp(draw_log_means(centre, variance, k, s, rng))
        yield p, wrong, wrong * np.exp(parameters[:, 3, None])


def _probabilities(
    model: CostModel, theta: Array, sums: tuple[Array, Array], cumulative_shares: Array,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Draws of p given counts and costs; shape (draws, questions)."""
    k, s = (gamma_sum.ravel() for gamma_sum in sums)
    draws, questions = sums[0].shape
    row = np.repeat(np.arange(draws), questions)
    node, state = model.node(theta[:, 0])[row], np.tile(model.states.which, draws)
    level, slope, variance = theta[row, 1], theta[row, 2], np.exp(2.0 * theta[row, 4])
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(k > 0.0, np.log(s / k), level)
    half = 0.5 * np.abs(slope)
    # The mode of the costs alone may miss the largest log likelihood by .02.
    top = log_question(np.clip(best, level - half, level + half), variance, k, s) + 0.02
    p, chance = np.empty(len(k)), np.full(len(k), -np.inf)
    remaining = np.arange(len(k))
    for _ in range(64):
        proposed = _given_counts(model, node[remaining], state[remaining], cumulative_shares, rng)
        centre = level[remaining] + slope[remaining] * (0.5 - proposed)
        logs = (
            log_question(centre, variance[remaining], k[remaining], s[remaining]) - top[remaining]
        )
        accepted = np.log(rng.random(len(remaining))) <= logs
        # Of proposals that are all turned down, one is chosen in proportion to its weight.
        better = logs + rng.gumbel(size=len(remaining))
        better = np.where(accepted, np.inf, better)
        improved = better > chance[remaining]
        p[remaining[improved]], chance[remaining[improved]] = proposed[improved], better[improved]
        remaining = remaining[~accepted]
        if not len(remaining):
            break
    return p.reshape(draws, questions)


def _given_counts(
    model: CostModel,
    node: Indices,
    state: Indices,
    cumulative_shares: Array,
    rng: np.random.Generator,
) -> Array:
    """Draws of p from its posterior given the counts alone."""
    nodes, (wrong, right) = model.nodes, model.states.counts.T
    u, size = rng.random(len(node)), nodes.alpha.shape[1]
    component = np.zeros(len(node), np.intp)
    for threshold in cumulative_shares:
        component += u >= threshold[node, state]
    of_beta = np.minimum(component, size - 1)
    alpha = nodes.alpha[node, of_beta] + right[state]
    beta = nodes.beta[node, of_beta] + wrong[state]
    p = rng.beta(np.maximum(alpha, 5e-324), np.maximum(beta, 5e-324))
    return np.asarray(np.where(component < size, p, (component > size).astype(float)))


def draw_log_means(
    centre: Array, variance: Array, k: Array, s: Array, rng: np.random.Generator
) -> Array:
    """Draws of v with density ``exp(-k v - s exp(-v)) Normal(v; centre, variance)``.

    Examples
    --------
    >>> ones, rng = np.ones(100_000), np.random.default_rng(1)
    >>> float(draw_log_means(0.0 * ones, ones, 0.0 * ones, 0.0 * ones, rng).mean().round(1))
    -0.0
    """
    with np.errstate(divide="ignore"):
        omega = wrightomega(np.log(variance * s) - centre + variance * k)
    mode, offsets = centre - variance * k + omega, np.empty(centre.shape)
    remaining = np.arange(centre.size)
    flat = [np.broadcast_to(factor, centre.shape).ravel() for factor in (omega, variance)]
    gap = offsets.ravel()
    while len(remaining):
        omega_left, spread = (factor[remaining] for factor in flat)
        rate = omega_left / spread
        costs_dominate = omega_left >= 1.0
        gamma = rng.standard_gamma(np.where(costs_dominate, rate, 1.0))
        with np.errstate(divide="ignore"):
            d = np.where(
                costs_dominate, np.log(np.where(costs_dominate, rate, 1.0)) - np.log(gamma),
                np.sqrt(spread) * rng.standard_normal(len(remaining)),
            )  # fmt: skip
            loss = np.where(costs_dominate, 0.5 * d * d / spread, rate * (np.expm1(-d) + d))
        accepted = rng.standard_exponential(len(remaining)) >= loss
        gap[remaining[accepted]] = d[accepted]
        remaining = remaining[~accepted]
    return np.asarray(mode + offsets)
