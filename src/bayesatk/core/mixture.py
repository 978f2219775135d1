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
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.core.credit import Array, Credit
from bayesatk.core.hierarchy import Nodes
from bayesatk.core.laws import log_binomials
from bayesatk.core.moments import beta_weights, latent_on_nodes
from bayesatk.core.quadrature import BetaRule, beta_rule

_CLASS_RATIO = 16.0
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

    def rules(self, refine: float = 1.0) -> Iterator[tuple[NDArray[np.intp], BetaRule]]:
        """Yield node indices with the rule that resolves them, denser by ``refine``."""
        for members in self._classes[:-1]:
            if len(members):
                alpha, beta = self.nodes.alpha[members], self.nodes.beta[members]
                widest = (alpha + beta).max() + self._scale
                low_a = float(alpha.min() + self.states.successes.min())
                low_b = float(beta.min() + (self.states.trials - self.states.successes).min())
                yield members, beta_rule(low_a, low_b, widest * refine**2)

    def blocks(self, columns: Sequence[int] | None = None, refine: float = 1.0) -> Iterator[Block]:
        """Yield posterior weights in blocks of bounded memory, with the credits' values."""
        chosen = self.credits if columns is None else [self.credits[i] for i in columns]
        for members, rule in self.rules(refine):
            value, complement = latent_on_nodes(chosen, rule)
            size = max(1, _BLOCK // (len(self.states) * len(rule)))
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
        for node in self.concentrated:
            a = self.nodes.alpha[node] + self.states.successes
            b = self.nodes.beta[node] + self.states.trials - self.states.successes
            low, high, spread = beta_binomial_moments(self.credits, a, b)
            mean[node], rest[node], variance[node] = count @ low, count @ high, count @ spread
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


def _by_k(credits: Sequence[Credit]) -> Iterator[tuple[int, list[int]]]:
    """Yield each k with the positions of its credits."""
    order = sorted(range(len(credits)), key=lambda i: credits[i].k)
    for k, group in groupby(order, key=lambda i: credits[i].k):
        yield k, list(group)


def beta_binomial_means(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array]:
    """Mean of g(p), p ~ Beta(a, b), and its complement: the posterior law, exactly.

    Examples
    --------
    >>> from bayesatk.core.credit import pass_at
    >>> [mean.round(12).item() for mean in beta_binomial_means([pass_at(2)], [1.0], [1.0])]
    [0.666666666667, 0.333333333333]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean = np.empty((len(a), len(credits)))
    rest = np.empty_like(mean)
    for k, columns in _by_k(credits):
        x = np.stack([credits[i].vector for i in columns], axis=1)
        for start in range(0, len(a), max(1, _BLOCK // (k + 1))):
            part = slice(start, start + max(1, _BLOCK // (k + 1)))
            pmf = beta_binomial_pmf(k, a[part], b[part])
            mean[part, columns], rest[part, columns] = pmf @ x, pmf @ (1.0 - x)
    return mean, rest


def beta_binomial_moments(
    credits: Sequence[Credit], a: ArrayLike, b: ArrayLike
) -> tuple[Array, Array, Array]:
    """Mean, complement and variance of g(p), p ~ Beta(a, b), by exact Beta-binomial sums.

    ``E[g^2]`` is the expectation of another credit on 2k draws: the product of two Bernstein
    polynomials is one. For any a, b > 0, however large or small; absolute error about 1e-15.

    Examples
    --------
    >>> from bayesatk.core.credit import pass_at
    >>> [moment.round(12).item() for moment in beta_binomial_moments([pass_at(1)], [2.0], [3.0])]
    [0.4, 0.6, 0.04]
    """
    a, b = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
    mean, rest = beta_binomial_means(credits, a, b)
    variance = np.empty_like(mean)
    for k, columns in _by_k(credits):
        squares = np.stack([_squared(credits[i].vector) for i in columns], axis=1)
        co_squares = np.stack([_squared(1.0 - credits[i].vector) for i in columns], axis=1)
        for start in range(0, len(a), max(1, _BLOCK // (2 * k + 1))):
            part = slice(start, start + max(1, _BLOCK // (2 * k + 1)))
            pmf = beta_binomial_pmf(2 * k, a[part], b[part])
            low, high = mean[part, columns], rest[part, columns]
            spread = np.where(low <= high, pmf @ squares - low**2, pmf @ co_squares - high**2)
            variance[part, columns] = np.maximum(spread, 0.0)
    return mean, rest, variance


def _squared(vector: Array) -> Array:
    """Credit vector on 2k draws whose latent value is the square of the given one's."""
    k = len(vector) - 1
    logs = log_binomials(k)
    scaled = vector * np.exp(logs - logs.max())
    product = np.convolve(scaled, scaled)
    return product * np.exp(2.0 * logs.max() - log_binomials(2 * k))


def beta_binomial_pmf(k: int, a: Array, b: Array) -> Array:
    """BetaBinomial(k, a, b) probabilities of 0..k; shape (states, k + 1).

    Examples
    --------
    >>> beta_binomial_pmf(2, np.ones(1), np.ones(1)).round(12).tolist()
    [[0.333333333333, 0.333333333333, 0.333333333333]]
    """
    steps = np.arange(k)
    zero = np.zeros((len(a), 1))
    rise_a = np.concatenate([zero, np.cumsum(np.log(a[:, None] + steps), axis=1)], axis=1)
    rise_b = np.concatenate([zero, np.cumsum(np.log(b[:, None] + steps), axis=1)], axis=1)
    logs = log_binomials(k) + rise_a + rise_b[:, ::-1]
    logs -= logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))
