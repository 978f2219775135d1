"""Posterior of what costs depend on, together with the difficulties of the questions.

Given its success probability p, a question's mean cost is log-normal, and the costs of its trials
are Gamma. Both latent numbers of a question are integrated out: p with a rule of Gauss and Legendre
(`bayesatk.core.pooling.legendre`), the log of the mean cost with Gauss-Hermite points around the
mode, which Wright's omega function gives. What is left, six parameters of costs and the place among
the nodes of the difficulty distribution, is sampled by importance.

Draws of single questions are independent, by rejection. A success probability is proposed from its
posterior given the counts alone and kept with a probability proportional to what the costs of the
question say of it, which is log-concave in the log mean cost that p leads to expect. A log mean
cost is proposed from a density that touches the posterior at its mode and lies above it elsewhere:
an inverse Gamma where the costs say more than the other questions do, a normal where they say less.
Both are exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, ndtr, polygamma, wrightomega

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.core.costs.prior import CostPrior, Costs, shapes
from bayesatk.core.numerics.importance import Importance
from bayesatk.core.numerics.points import curvature_root, weighted_around, with_slope
from bayesatk.core.pooling.legendre import part_shares, question_rule
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States

# Points and weights of a log mean cost: the log likelihood of a question is wrong by 1e-4 where its
# trials say about as much as one of average spread (k = 3), by 1e-5 where they say more.
_HERMITE = list(zip(*np.polynomial.hermite.hermgauss(7), strict=True))
_FEWEST, _MOST = 6, 32  # points of p
_STEEP = 4.0  # points of p for each sd by which the slope moves log mean costs
_FARTHEST = 600.0  # of a log mean cost from its mode, and of a log density
# Points of p of new questions for each Beta, and how many sds of its logit they reach.
_LOGITS, _REACH = 96, 15.0
_HIGHEST = 400.0  # log mean cost in the unit: its product with the unit is a number
_FEWEST_TRIALS = 1e-8  # of a Beta: with fewer p is 0 or 1


@dataclass(frozen=True)
class CostModel:
    """Questions with counts and costs.

    Parameters
    ----------
    states : States
    nodes : Nodes
        Posterior of the difficulty distribution, given the counts.
    costs : Costs
    prior : CostPrior
    size : int
        Points of p.
    """

    states: States
    nodes: Nodes
    costs: Costs
    prior: CostPrior
    size: int = 16

    @classmethod
    def of(cls, states: States, nodes: Nodes, costs: Costs, prior: CostPrior) -> "CostModel":
        """Return the model with its nodes in the order of the variance of p."""
        table_floats = 20_000_000  # of the rule of all nodes and counts: 160 MB
        most = max(64, int(table_floats / (_MOST * len(states))))
        if len(nodes) > most:
            cumulative_weight = np.cumsum(nodes.weight)
            node_index = np.searchsorted(
                cumulative_weight, (np.arange(most) + 0.5) / most * cumulative_weight[-1]
            )
            nodes = replace(nodes.among(node_index), weight=np.full(most, 1.0 / most))
        mean, failure, icc, _ = nodes.overall()
        order = np.argsort(mean * failure * icc, kind="stable")
        return cls(states, nodes.among(order), costs, prior)

    @cached_property
    def rule(self) -> tuple[Array, Array, Array, Array]:
        """Points of p, their weights by node and state, and mean and variance of p likewise."""
        wrong, right = self.states.counts.T
        p, weight = question_rule(self.nodes, right, wrong, self.size)
        mean = weight @ p
        return p, weight, mean, np.maximum(weight @ p**2 - mean**2, 0.0)

    def node(self, position: Array) -> Indices:
        """Node at a place that is standard normal a priori."""
        cumulative_weight = np.cumsum(self.nodes.weight)
        index = np.searchsorted(
            cumulative_weight, ndtr(position) * cumulative_weight[-1], side="right"
        )
        return np.asarray(np.minimum(index, len(cumulative_weight) - 1))

    def log_prior(self, theta: Array) -> Array:
        """Log prior density of places of nodes, and of the parameters of costs."""
        logs = -0.5 * theta[:, 0] ** 2 - 0.5 * np.log(2.0 * np.pi)
        return np.asarray(logs + self.prior.log_density(theta[:, 1:]))

    def log_likelihood(self, theta: Array) -> Array:
        """Log density of all costs, given the counts; shape (points,)."""
        logs = self._log_shapes(theta)
        step = max(1, 20_000 // len(self.costs.trials))  # such blocks stay in the cache
        for start in range(0, len(theta), step):
            block = slice(start, start + step)
            logs[block] += self._log_questions(theta[block])
        return logs

    def _log_shapes(self, theta: Array) -> Array:
        """Log of what the density owes to the costs of trials, whatever the means."""
        shape, number = shapes(theta[:, 5:]), self.costs.trials.sum(axis=0)
        logs = number * (shape * np.log(shape) - gammaln(shape))
        logs += (shape - 1.0) * self.costs.log_total
        return np.asarray(logs.sum(axis=1) - shape[:, 1] * number[1] * theta[:, 3])

    def _log_questions(self, theta: Array) -> Array:
        """Log density of the mean costs of questions, p and mean integrated out."""
        node, state = self.node(theta[:, 0]), self.states.which
        p, weight, mean, variance = self.rule
        level, slope = theta[:, 1, None], theta[:, 2, None]
        # So narrow that fewer points than these would miss it, a spread counts as wider.
        sd = np.maximum(np.exp(theta[:, 4, None]), np.abs(slope) * _STEEP / self.size)
        k, s = gamma_sums(self.costs, theta[:, 1:])
        point_weights = [
            np.take(point_weight[node], state, axis=1)
            for point_weight in np.moveaxis(weight, -1, 0)
        ]
        expected = [(level + slope * (0.5 - point)) / sd for point in p]
        centre = level + slope * (0.5 - mean[node][:, state])
        spread = sd**2 + slope**2 * variance[node][:, state]
        logs, (mode, rate), scale = _around_mode(centre, spread, k, s)
        # The nearest of the normals at the mode is taken out of all exponents.
        nearest = np.min([np.square(mode / sd - expectation) for expectation in expected], axis=0)
        integral, z = np.zeros_like(logs), np.empty_like(logs)
        for x, w in _HERMITE:
            d, density = scale * x, np.zeros_like(logs)
            standardised = (mode + d) / sd
            tilt = (rate - k) * d - rate * _bend(d) + x * x + 0.5 * nearest
            for share, middle in zip(point_weights, expected, strict=True):
                np.subtract(standardised, middle, out=z)
                np.multiply(z, z, out=z)
                z *= -0.5
                z += tilt
                np.exp(np.minimum(z, _FARTHEST, out=z), out=z)
                z *= share
                density += z
            integral += w * np.maximum(density, 0.0)
        with np.errstate(divide="ignore"):
            logs = logs - 0.5 * nearest + np.log(integral * scale / (sd * np.sqrt(2.0 * np.pi)))
        return np.asarray(logs.sum(axis=1))

    def posterior(self) -> tuple["CostModel", Importance]:
        """Return the model with as many points of p as it needs, and its weighted points."""
        mode, root = self._first_guess()
        sd = np.sqrt((root[[2, 4]] ** 2).sum(axis=1))
        steep = (abs(mode[2]) + 2.0 * sd[0]) / np.exp(np.clip(mode[4] - 2.0 * sd[1], -7.0, 7.0))
        size = int(np.clip(np.ceil(_STEEP * steep), _FEWEST, _MOST))
        last = 1024 if len(self.costs.trials) >= 1000 else 2048
        freedom = 5.0  # degrees of the first guess
        sized_model = replace(self, size=size)
        return sized_model, weighted_around(sized_model.log_density, mode, root, freedom, last)

    def log_density(self, theta: Array) -> Array:
        """Log of prior times likelihood."""
        return self.log_prior(theta) + self.log_likelihood(theta)

    def _first_guess(self) -> tuple[Array, Array]:
        """Mode of the parameters of costs at the middle node, and the root of a covariance."""
        size = 3e-4  # of steps of derivatives, in units in which parameters are about 1

        def log_density(points: Array) -> Array:
            theta = np.column_stack([np.zeros(len(points)), points])
            return np.maximum(self.log_density(theta), -1e300)

        def falling(x: Array) -> tuple[float, Array]:
            height, slope = with_slope(log_density, x, size)
            return -height, -slope

        median = np.log(self.prior.shape[0])
        start = np.array([self._mean_level(), 0.0, 0.0, np.log(self.prior.spread), median, median])
        mode = minimize(falling, start, jac=True, method="BFGS", options={"maxiter": 60}).x
        root = np.eye(7)
        root[1:, 1:] = curvature_root(
            lambda x: with_slope(log_density, x, size)[1], mode, size, 0.25
        )
        return np.append(0.0, mode), 1.3 * root  # a guess is wider

    def _mean_level(self) -> float:
        number = self.costs.trials.sum()
        return float(np.log(self.costs.total.sum() / number)) if number else 0.0


def gamma_sums(costs: Costs, theta: Array) -> tuple[Array, Array]:
    """Shape and rate of what the costs of a question say of its mean m: ``m^-k exp(-s / m)``.

    Parameters
    ----------
    costs : Costs
    theta : ndarray, shape (points, 6)
        As of `CostPrior.from_uniform`.

    Returns
    -------
    k, s : ndarray, shape (points, questions)
    """
    shape = shapes(theta[:, 4:])
    rate = shape * np.exp(-np.outer(theta[:, 2], [0.0, 1.0]))
    return shape @ costs.trials.T, rate @ costs.total.T


def _around_mode(
    centre: Array, variance: Array, k: Array, s: Array
) -> tuple[Array, tuple[Array, Array], Array]:
    """Where ``exp(-k v - s exp(-v))`` times a normal density of v has its mass.

    Returns
    -------
    log_value : ndarray
        Of the first factor at the mode.
    mode, rate : (ndarray, ndarray)
        Mode v of the product, and ``s exp(-v)`` there.
    scale : ndarray
        Sd at the mode, times the square root of 2: of Gauss-Hermite points.
    """
    with np.errstate(divide="ignore"):
        omega = wrightomega(np.log(variance * s) - centre + variance * k)
    mode = centre - variance * k + omega
    rate = omega / variance
    return -k * mode - rate, (mode, rate), np.sqrt(2.0 * variance / (1.0 + omega))


def _bend(d: Array) -> Array:
    """Return ``exp(-d) - 1 + d``, a number however negative d is."""
    return np.expm1(np.minimum(-d, _FARTHEST)) + d


def log_question(centre: Array, variance: Array, k: Array, s: Array) -> Array:
    """Log of ``integral exp(-k v - s exp(-v)) Normal(v; centre, variance) dv``, elementwise.

    Examples
    --------
    >>> unit = np.ones(1)
    >>> float(log_question(0.0 * unit, unit, 2.0 * unit, 0.0 * unit)[0])  # E exp(-2 v) = exp(2)
    2.0
    """
    logs, (mode, rate), scale = _around_mode(centre, variance, k, s)
    integral = np.zeros_like(logs)
    for x, w in _HERMITE:
        d = scale * x
        # The linear parts of both logs cancel at the mode.
        integral += w * np.exp(-rate * _bend(d) + x * x - 0.5 * d * d / variance)
    logs = logs - 0.5 * (mode - centre) ** 2 / variance
    return np.asarray(logs + np.log(integral * scale / np.sqrt(2.0 * np.pi * variance)))


def draw_questions(
    model: CostModel, theta: Array, scale: float, rng: Rng
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


def new_questions(
    model: CostModel, theta: Array, scale: float
) -> tuple[Array, Array, Array, Array]:
    """Return success probabilities of new questions, their expected costs, and probabilities.

    Each of shape (draws, points): p, the mean cost of trials that fail and of those that succeed
    given p, and the probability of p. Costs enter what is expected of new questions by their means
    alone.

    Parameters
    ----------
    model, theta, scale
        As of `draw_questions`.
    """
    nodes, node = model.nodes, model.node(theta[:, 0])
    alpha, beta = nodes.alpha[node, :, None], nodes.beta[node, :, None]
    few = np.maximum(_FEWEST_TRIALS / np.minimum(alpha, beta), 1.0)
    alpha, beta = alpha * few, beta * few
    # In logits a Beta is smooth; near the middle the points are no farther apart than its sd asks.
    sd = np.sqrt(polygamma(1, alpha) + polygamma(1, beta))
    width = np.minimum(sd, 1.0)
    t = np.arcsinh(_REACH * sd / width) * np.linspace(-1.0, 1.0, _LOGITS)
    x = np.log(alpha) - np.log(beta) + width * np.sinh(t)
    log_right, log_wrong = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
    logs = alpha * log_right + beta * log_wrong
    weight = np.exp(logs - logs.max(axis=2, keepdims=True)) * np.cosh(t)
    weight *= nodes.share[node, :, None] / weight.sum(axis=2, keepdims=True)
    ends = np.broadcast_to([0.0, 1.0], (len(theta), 2))
    p = np.concatenate([np.exp(log_right).reshape(len(theta), -1), ends], axis=1)
    weight = np.concatenate([weight.reshape(len(theta), -1), nodes.atoms[node]], axis=1)
    level, slope, outcome, spread = theta[:, 1:5, None].transpose(1, 0, 2)
    logs = level + slope * (0.5 - p) + 0.5 * np.exp(2.0 * spread)
    wrong = scale * np.exp(np.minimum(logs, _HIGHEST))
    return p, wrong, wrong * np.exp(outcome), weight


def _probabilities(
    model: CostModel, theta: Array, sums: tuple[Array, Array], cumulative_shares: Array,
    rng: Rng,
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
    rng: Rng,
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


def draw_log_means(centre: Array, variance: Array, k: Array, s: Array, rng: Rng) -> Array:
    """Draws of v with density ``exp(-k v - s exp(-v)) Normal(v; centre, variance)``.

    Examples
    --------
    >>> ones, rng = np.ones(100_000), np.random.default_rng(1)
    >>> float(draw_log_means(0.0 * ones, ones, 0.0 * ones, 0.0 * ones, rng).mean().round(1))
    -0.0
    """
    _, (mode, rate), _ = _around_mode(centre, variance, k, s)
    offsets, remaining = np.empty(centre.shape), np.arange(centre.size)
    flat = [np.broadcast_to(factor, centre.shape).ravel() for factor in (rate, variance)]
    gap = offsets.ravel()
    while len(remaining):
        rate, spread = (factor[remaining] for factor in flat)
        costs_dominate = rate * spread >= 1.0
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
