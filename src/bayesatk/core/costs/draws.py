"""Independent draws of success probabilities and mean costs of questions, by rejection.

A success probability is proposed from its posterior given the counts alone and kept with a
probability proportional to what the costs of the question say of it, which is log-concave in the
log mean cost that p leads to expect. A log mean cost is proposed from a density that touches the
posterior at its mode and lies above it elsewhere: an inverse Gamma where the costs say more than
the other questions do, a normal where they say less. Both are exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega

from bayesatk.core.costs.model import CostModel, gamma_sums, log_question
from bayesatk.core.pooling.legendre import part_shares
from bayesatk.metrics.credit import Array

_BLOCK = 200_000  # draws times questions at once
_SLACK = 0.02  # of a log likelihood, by which the mode of the costs alone may miss the largest
_ROUNDS = 64  # of proposals, after which the best of them is chosen by its weight
_LEAST = 5e-324
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class CostDraws:
    """Some draws: p and mean costs of all questions.

    Parameters
    ----------
    place : slice
        Which draws they are.
    p, wrong, right : ndarray, shape (draws, questions)
        Success probabilities; mean costs of trials that fail, and that succeed.
    """

    place: slice
    p: Array
    wrong: Array
    right: Array


def draw_questions(
    model: CostModel, theta: Array, scale: float, rng: np.random.Generator
) -> Iterator[CostDraws]:
    """Yield draws of all questions, block after block.

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
    upto = np.cumsum(share, axis=0)[:-1]
    step = max(1, _BLOCK // len(model.costs.trials))
    for start in range(0, len(theta), step):
        place = slice(start, start + step)
        own = theta[place]
        k, s = gamma_sums(model.costs, own[:, 1:])
        p = _probabilities(model, own, (k, s), upto, rng)
        centre = own[:, 1, None] + own[:, 2, None] * (0.5 - p)
        variance = np.broadcast_to(np.exp(2.0 * own[:, 4, None]), p.shape)
        wrong = scale * np.exp(draw_log_means(centre, variance, k, s, rng))
        yield CostDraws(place, p, wrong, wrong * np.exp(own[:, 3, None]))


def _probabilities(
    model: CostModel, theta: Array, sums: tuple[Array, Array], upto: Array,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Draws of p given counts and costs; shape (draws, questions)."""
    k, s = (one.ravel() for one in sums)
    draws, questions = sums[0].shape
    row = np.repeat(np.arange(draws), questions)
    node, state = model.node(theta[:, 0])[row], np.tile(model.states.which, draws)
    level, slope, variance = theta[row, 1], theta[row, 2], np.exp(2.0 * theta[row, 4])
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(k > 0.0, np.log(s / k), level)
    half = 0.5 * np.abs(slope)
    top = log_question(np.clip(best, level - half, level + half), variance, k, s) + _SLACK
    p, chance = np.empty(len(k)), np.full(len(k), -np.inf)
    left = np.arange(len(k))
    for _ in range(_ROUNDS):
        proposed = _given_counts(model, node[left], state[left], upto, rng)
        centre = level[left] + slope[left] * (0.5 - proposed)
        logs = log_question(centre, variance[left], k[left], s[left]) - top[left]
        kept = np.log(rng.random(len(left))) <= logs
        # Of proposals that are all turned down, one is chosen in proportion to its weight.
        better = logs + rng.gumbel(size=len(left))
        better = np.where(kept, np.inf, better)
        chosen = better > chance[left]
        p[left[chosen]], chance[left[chosen]] = proposed[chosen], better[chosen]
        left = left[~kept]
        if not len(left):
            break
    return p.reshape(draws, questions)


def _given_counts(
    model: CostModel, node: Indices, state: Indices, upto: Array, rng: np.random.Generator
) -> Array:
    """Draws of p from its posterior given the counts alone."""
    nodes, (wrong, right) = model.nodes, model.states.counts.T
    u, size = rng.random(len(node)), nodes.alpha.shape[1]
    part = np.zeros(len(node), np.intp)
    for one in upto:
        part += u >= one[node, state]
    of_beta = np.minimum(part, size - 1)
    alpha = nodes.alpha[node, of_beta] + right[state]
    beta = nodes.beta[node, of_beta] + wrong[state]
    p = rng.beta(np.maximum(alpha, _LEAST), np.maximum(beta, _LEAST))
    return np.asarray(np.where(part < size, p, (part > size).astype(float)))


def draw_log_means(
    centre: Array, variance: Array, k: Array, s: Array, rng: np.random.Generator
) -> Array:
    """Draws of v with density ``exp(-k v - s exp(-v)) Normal(v; centre, variance)``.

    Examples
    --------
    >>> one, rng = np.ones(100_000), np.random.default_rng(1)
    >>> float(draw_log_means(0.0 * one, one, 0.0 * one, 0.0 * one, rng).mean().round(1))
    -0.0
    """
    with np.errstate(divide="ignore"):
        omega = wrightomega(np.log(variance * s) - centre + variance * k)
    mode, found = centre - variance * k + omega, np.empty(centre.shape)
    left = np.arange(centre.size)
    flat = [np.broadcast_to(one, centre.shape).ravel() for one in (omega, variance)]
    gap = found.ravel()
    while len(left):
        own, spread = (one[left] for one in flat)
        rate = own / spread
        known = own >= 1.0
        gamma = rng.standard_gamma(np.where(known, rate, 1.0))
        with np.errstate(divide="ignore"):
            d = np.where(
                known, np.log(np.where(known, rate, 1.0)) - np.log(gamma),
                np.sqrt(spread) * rng.standard_normal(len(left)),
            )  # fmt: skip
            loss = np.where(known, 0.5 * d * d / spread, rate * (np.expm1(-d) + d))
        kept = rng.standard_exponential(len(left)) >= loss
        gap[left[kept]] = d[kept]
        left = left[~kept]
    return np.asarray(mode + found)
