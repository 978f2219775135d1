"""Posterior of question-level credits when ``p_a`` is a mixture of Betas over shared nodes.

Node ``g`` is one prior Beta(alpha_g, beta_g) of probability ``w_g``; given it the questions are
independent and a question with ``c`` of ``n`` successes has ``p ~ Beta(alpha_g + c, beta_g + n -
c)``. No pooling is one node; partial pooling is the hyperparameter grid. Questions enter as
distinct states (c, n) with multiplicities.

Nodes are handled in classes of similar concentration, each with its own quadrature rule; nodes
so concentrated that no rule of reasonable size resolves them use exact Beta-binomial sums.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from bayesatk.core.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.core.credit import Array, Credit
from bayesatk.core.moments import beta_weights, latent_on_nodes
from bayesatk.core.nodes import Nodes
from bayesatk.core.quadrature import BetaRule, beta_rule, beta_rule_along
from bayesatk.core.states import States

_CLASS_RATIO = 8.0
_CLASSES = 3
_BLOCK = 4_000_000  # floats in one array of weights: 32 MB
_APART = 1.0  # sds between nodes up to which their mixture is smooth by itself
_OVERLAP = 1e-140  # of prior and likelihood, each at most one: far above underflow


@dataclass(frozen=True)
class Block:
    """Weights of quadrature points for some nodes: shape (nodes, states, points)."""

    nodes: NDArray[np.intp]
    weights: Array
    value: Array
    complement: Array


@dataclass(frozen=True)
class StateMixture:
    """States under mixture nodes, for a list of credits.

    Parameters
    ----------
    nodes : Nodes
    states : States
    credits : tuple of Credit
    """

    nodes: Nodes
    states: States
    credits: tuple[Credit, ...]

    def __len__(self) -> int:
        return len(self.nodes) * len(self.states)

    @cached_property
    def classes(self) -> list[NDArray[np.intp]]:
        """Node indices by concentration; the last class holds those beyond any rule."""
        total = self.nodes.alpha + self.nodes.beta
        limits = self._scale * _CLASS_RATIO ** np.arange(_CLASSES)
        label = np.searchsorted(limits, total)
        return [np.flatnonzero(label == i) for i in range(_CLASSES + 1)]

    @property
    def _scale(self) -> float:
        highest = int(self.states.trials.max(initial=0))
        return float(highest + 2 * max(credit.k for credit in self.credits) + 16)

    @property
    def concentrated(self) -> NDArray[np.intp]:
        """Nodes whose Beta prior is too narrow for the shared rules."""
        return self.classes[-1]

    def rules(
        self, column: int = 0, spacing: float | None = None, denser: float = 1.0
    ) -> Iterator[tuple[NDArray[np.intp], BetaRule]]:
        """Yield node indices with the rule that resolves them, and a column's credit if asked."""
        for members in self.classes[:-1]:
            if len(members):
                family = self.family(members)
                if spacing is None:
                    yield members, beta_rule(*family[:2], denser**2 * family[2])
                else:
                    yield members, beta_rule_along(*family, self.curve(column), spacing)

    def family(self, nodes: NDArray[np.intp]) -> tuple[float, float, float]:
        """Smallest Beta parameters and largest degree of the states' posteriors at some nodes."""
        alpha, beta = self.nodes.alpha[nodes], self.nodes.beta[nodes]
        return (
            float(alpha.min() + self.states.successes.min()),
            float(beta.min() + (self.states.trials - self.states.successes).min()),
            float((alpha + beta).max()) + self._scale,
        )

    def curve(self, column: int) -> Callable[[BetaRule], Array]:
        """Return the values of a column's credit as a function of the points of a rule."""
        return lambda rule: latent_on_nodes([self.credits[column]], rule)[0][:, 0]

    def blocks(
        self,
        columns: Sequence[int] | None = None,
        spacing: float | None = None,
        most: int | None = None,
        denser: float = 1.0,
    ) -> Iterator[Block]:
        """Yield posterior weights in blocks of bounded memory, with the credits' values."""
        columns = range(len(self.credits)) if columns is None else columns
        chosen = [self.credits[i] for i in columns]
        for members, rule in self.rules(columns[0], spacing, denser):
            value, complement = latent_on_nodes(chosen, rule)
            size = max(1, min(most or len(members), _BLOCK // (len(self.states) * len(rule))))
            for start in range(0, len(members), size):
                part = members[start : start + size]
                yield Block(part, self._weights(part, rule), value, complement)

    def _weights(self, nodes: NDArray[np.intp], rule: BetaRule) -> Array:
        """Posterior probabilities of the points: prior times likelihood, exponentiated apart.

        That costs (nodes + states) exponentials per point instead of nodes times states. Rows
        whose two factors hardly overlap would underflow, and are taken in logs.
        """
        c, f = self.states.successes, self.states.trials - self.states.successes
        alpha, beta = self.nodes.alpha[nodes], self.nodes.beta[nodes]
        prior = np.outer(alpha, rule.log_p) + np.outer(beta, rule.log_q) + rule.log_weight
        likelihood = np.outer(c, rule.log_p) + np.outer(f, rule.log_q)
        for factor in (prior, likelihood):
            factor -= factor.max(axis=1, keepdims=True)
            np.exp(factor, out=factor)
        weights = prior[:, None, :] * likelihood
        total = weights.sum(axis=-1, keepdims=True)
        thin = total[..., 0] < _OVERLAP
        if thin.any():
            node, state = np.nonzero(thin)
            weights[thin] = beta_weights(rule, alpha[node] + c[state], beta[node] + f[state])
            total[thin] = 1.0
        weights /= total
        return weights

    def masses(self, nodes: NDArray[np.intp], rule: BetaRule) -> Array:
        """Posterior probabilities of the points of a rule that covers a part of the range."""
        weights = self._weights(nodes, rule)
        a = self.nodes.alpha[nodes, None] + self.states.successes
        b = self.nodes.beta[nodes, None] + (self.states.trials - self.states.successes)
        largest = weights.argmax(axis=-1)
        log_p, log_q, log_weight = (
            part[largest] for part in (rule.log_p, rule.log_q, rule.log_weight)
        )
        one = np.exp(a * log_p + b * log_q + log_weight - betaln(a, b))
        weights *= (one / weights.max(axis=-1))[..., None]
        return weights

    @cached_property
    def steps(self) -> Array:
        """How far means move from node to node, where nodes lie apart; 0 elsewhere.

        As the mean of p moves, times the slope of the credit there; a credit that is skewed given
        a node would make its standard deviation too large a measure. Shape (nodes, credits).
        """
        found = np.zeros((len(self.nodes), len(self.credits)))
        spacing = self.nodes.spacing
        if spacing is None:
            return found
        apart = np.flatnonzero(spacing > _APART)
        nodes, states = self.nodes, self.states
        a = nodes.alpha[apart, None] + states.successes
        b = nodes.beta[apart, None] + (states.trials - states.successes)
        rule = beta_rule(1.0, 1.0, self._scale)
        at, place = rule.log_p - rule.log_q, np.log(a) - np.log(b)
        sd = spacing[apart] * states.mean_p(nodes)[1][apart]
        value, _ = latent_on_nodes(self.credits, rule)
        for column in range(len(self.credits)):
            slope = np.abs(np.gradient(value[:, column], at))
            rate = np.interp(place, at, slope) * (a + b) * (1.0 / a + 1.0 / b)
            linear = sd * (rate @ states.count) / states.questions
            spread = spacing[apart] * np.sqrt(self.moments.node_variance[apart, column])
            found[apart, column] = np.minimum(linear, spread)
        return found

    @cached_property
    def moments(self) -> "MixtureMoments":
        """Mean over questions and its variance, given each node."""
        shape = (len(self.nodes), len(self.credits))
        mean, rest, variance = np.empty(shape), np.empty(shape), np.empty(shape)
        count = self.states.count
        for block in self.blocks():
            low, high, spread = _block_moments(block)
            mean[block.nodes] = np.einsum("gsk,s->gk", low, count)
            rest[block.nodes] = np.einsum("gsk,s->gk", high, count)
            variance[block.nodes] = np.einsum("gsk,s->gk", spread, count)
        narrow = self.concentrated
        if len(narrow):
            a = self.nodes.alpha[narrow, None] + self.states.successes
            b = self.nodes.beta[narrow, None] + (self.states.trials - self.states.successes)
            exact = beta_binomial_moments(self.credits, a.ravel(), b.ravel())
            for total, part in zip((mean, rest, variance), exact, strict=True):
                total[narrow] = np.einsum("gsk,s->gk", part.reshape(*a.shape, -1), count)
        questions = self.states.questions
        return MixtureMoments(
            self.nodes.weight, mean / questions, rest / questions, variance / questions**2
        )

    @cached_property
    def population(self) -> "MixtureMoments":
        """Expected credit of a new question given each node (no variance is left given one)."""
        mean, rest = beta_binomial_means(self.credits, self.nodes.alpha, self.nodes.beta)
        return MixtureMoments(self.nodes.weight, mean, rest, np.zeros_like(mean))


@dataclass(frozen=True)
class MixtureMoments:
    """Conditional means (and complements) and variances at the nodes, shape (nodes, credits)."""

    weight: Array
    node_mean: Array
    node_complement: Array
    node_variance: Array

    @property
    def mean(self) -> Array:
        """Posterior mean, shape (credits,)."""
        return self.weight @ self.node_mean

    @property
    def complement(self) -> Array:
        """One less the posterior mean, without cancellation; shape (credits,)."""
        return self.weight @ self.node_complement

    @property
    def variance(self) -> Array:
        """Posterior variance: within nodes plus between nodes."""
        smaller = np.where(self.mean <= 0.5, self.node_mean, self.node_complement)
        between = self.weight @ (smaller - self.weight @ smaller) ** 2
        return self.weight @ self.node_variance + between


def _block_moments(block: Block) -> tuple[Array, Array, Array]:
    """Means, complements and variances; shape (nodes, states, credits).

    Second moments are taken of the smaller of g and 1 - g, which bounds the cancellation.
    """
    flat = block.weights.reshape(-1, block.weights.shape[-1])
    shape = (*block.weights.shape[:2], -1)
    low, high = flat @ block.value, flat @ block.complement
    second = np.where(
        low <= high,
        flat @ block.value**2 - low**2,
        flat @ block.complement**2 - high**2,
    )
    return low.reshape(shape), high.reshape(shape), np.maximum(second, 0.0).reshape(shape)


def deviations(block: Block, position: int, mean: float, rest: float) -> Array:
    """``g - mean`` at the quadrature points, from whichever of g and 1 - g is smaller."""
    if mean <= 0.5:
        return block.value[:, position] - mean
    return rest - block.complement[:, position]


def merged(weights: Array, gap: Array, tolerance: float) -> tuple[Array, Array]:
    """Points that lie within ``tolerance`` of each other as one; (nodes * states, fewer), (fewer,).

    The quadrature reaches far into both ends, where a credit has all but its last value: most of
    its points are one and the same to a characteristic function.

    Examples
    --------
    >>> found, place = merged(np.array([[[0.5, 0.25, 0.25]]]), np.array([0.0, 0.5, 0.5]), 1e-9)
    >>> found.tolist(), place.tolist()
    ([[0.5, 0.5]], [0.0, 0.5])
    """
    starts = apart(gap, tolerance)
    return gathered(weights, starts), gap[starts]


def apart(gap: Array, tolerance: float) -> NDArray[np.intp]:
    """First of all points that lie within ``tolerance`` of each other."""
    bin_of = np.floor(np.cumsum(np.abs(np.diff(gap, prepend=gap[:1]))) / tolerance)
    return np.flatnonzero(np.diff(bin_of, prepend=-1.0))


def gathered(weights: Array, starts: NDArray[np.intp]) -> Array:
    """Weights of points from one start to the next; (nodes * states, starts)."""
    flat = weights.reshape(-1, weights.shape[-1])
    return flat if len(starts) == flat.shape[1] else np.add.reduceat(flat, starts, axis=1)


def node_offsets(mixture: StateMixture, column: int) -> tuple[Array, Array]:
    """Mean relative to the overall mean, and variance, of the concentrated nodes."""
    moments, nodes = mixture.moments, mixture.concentrated
    mean, rest = moments.mean[column], moments.complement[column]
    low = moments.node_mean[nodes, column] - mean
    high = rest - moments.node_complement[nodes, column]
    return np.where(mean <= 0.5, low, high), moments.node_variance[nodes, column]
