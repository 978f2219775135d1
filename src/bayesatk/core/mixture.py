"""Posterior of question-level credits when ``p_a`` is a mixture of Betas over shared nodes.

Node ``g`` is one prior Beta(alpha_g, beta_g) of probability ``w_g``; given it the questions are
independent and a question with ``c`` of ``n`` successes has ``p ~ Beta(alpha_g + c, beta_g + n -
c)``. No pooling is one node; partial pooling is the hyperparameter grid. Questions enter as
distinct states (c, n) with multiplicities.

Nodes are handled in classes of similar concentration, each with its own quadrature rule; nodes
so concentrated that no rule of reasonable size resolves them use exact Beta-binomial sums.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.core.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.core.credit import Array, Credit
from bayesatk.core.moments import beta_weights, latent_on_nodes
from bayesatk.core.nodes import Nodes
from bayesatk.core.quadrature import BetaRule, beta_rule

_CLASS_RATIO = 8.0
_CLASSES = 3
_BLOCK = 4_000_000  # floats in one array of weights: 32 MB
_OVERLAP = 1e-140  # of prior and likelihood, each at most one: far above underflow


@dataclass(frozen=True)
class States:
    """Distinct (successes, trials) with the number of questions in each."""

    successes: NDArray[np.int64]
    trials: NDArray[np.int64]
    count: Array
    which: NDArray[np.intp]

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike) -> "States":
        """Group questions by state; ``which`` maps each question to its state.

        Examples
        --------
        >>> states = States.of([1, 1, 0], [2, 2, 2])
        >>> states.successes.tolist(), states.count.tolist(), states.which.tolist()
        ([0, 1], [1.0, 2.0], [1, 1, 0])
        """
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        key = c + n * (int(n.max(initial=0)) + 1)
        _, first, which, count = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(c[first], n[first], count.astype(float), which.reshape(c.shape))

    @property
    def questions(self) -> float:
        """Number of questions."""
        return float(self.count.sum())

    def mean_p(self, nodes: Nodes) -> Array:
        """Mean and sd of the questions' average success probability given nodes; (2, nodes)."""
        a = nodes.alpha[:, None] + self.successes
        b = nodes.beta[:, None] + (self.trials - self.successes)
        total = a + b
        mean = (a / total) @ self.count / self.questions
        variance = (a / total * (b / total) / (total + 1.0)) @ self.count / self.questions**2
        return np.stack([mean, np.sqrt(variance)])

    def question_p(self, nodes: Nodes) -> tuple[Array, Array]:
        """Posterior mean and sd of every question's success probability; shape (questions,)."""
        a = nodes.alpha[:, None] + self.successes
        b = nodes.beta[:, None] + (self.trials - self.successes)
        total = a + b
        means = a / total
        mean = nodes.weight @ means
        within = nodes.weight @ (means * (b / total) / (total + 1.0))
        sd = np.sqrt(within + nodes.weight @ (means - mean) ** 2)
        return mean[self.which], sd[self.which]

    def __len__(self) -> int:
        return len(self.count)


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

    @cached_property
    def _classes(self) -> list[NDArray[np.intp]]:
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
        return self._classes[-1]

    def rules(
        self, refine: float = 1.0, only: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[NDArray[np.intp], BetaRule]]:
        """Yield node indices with the rule that resolves them, denser by ``refine``."""
        for members in self._classes[:-1]:
            if only is not None:
                members = members[only[members]]
            if len(members):
                alpha, beta = self.nodes.alpha[members], self.nodes.beta[members]
                widest = (alpha + beta).max() + self._scale
                low_a = float(alpha.min() + self.states.successes.min())
                low_b = float(beta.min() + (self.states.trials - self.states.successes).min())
                yield members, beta_rule(low_a, low_b, widest * refine**2)

    def blocks(
        self,
        columns: Sequence[int] | None = None,
        refine: float = 1.0,
        most: int | None = None,
        only: NDArray[np.bool_] | None = None,
    ) -> Iterator[Block]:
        """Yield posterior weights in blocks of bounded memory, with the credits' values."""
        chosen = self.credits if columns is None else [self.credits[i] for i in columns]
        for members, rule in self.rules(refine, only):
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
    flat = weights.reshape(-1, weights.shape[-1])
    bin_of = np.floor(np.cumsum(np.abs(np.diff(gap, prepend=gap[:1]))) / tolerance)
    starts = np.flatnonzero(np.diff(bin_of, prepend=-1.0))
    return np.add.reduceat(flat, starts, axis=1), gap[starts]


def node_offsets(mixture: StateMixture, column: int) -> tuple[Array, Array]:
    """Mean relative to the overall mean, and variance, of the concentrated nodes."""
    moments, nodes = mixture.moments, mixture.concentrated
    mean, rest = moments.mean[column], moments.complement[column]
    low = moments.node_mean[nodes, column] - mean
    high = rest - moments.node_complement[nodes, column]
    return np.where(mean <= 0.5, low, high), moments.node_variance[nodes, column]
