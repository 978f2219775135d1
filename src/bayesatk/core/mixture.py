"""Posterior of question-level credits when ``p_a`` is a mixture of Betas over shared nodes.

Node ``g`` is one prior Beta(alpha_g, beta_g) of probability ``w_g``; given it the questions are
independent and a question with ``c`` of ``n`` successes has ``p ~ Beta(alpha_g + c, beta_g + n -
c)``. No pooling is one node; partial pooling is the hyperparameter grid. Questions enter as
distinct states (c, n) with multiplicities.

On the points of one quadrature rule the weights of a node and a state are a product, prior times
likelihood, so the expectation of anything for all nodes and states is one matrix product. Nodes are
handled in bands of similar concentration, each with its own rule; nodes and states so concentrated
that no rule of reasonable size resolves them use exact Beta-binomial sums.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.core.moments import beta_weights, latent_on_nodes
from bayesatk.core.nodes import Nodes
from bayesatk.core.quadrature import BetaRule, beta_rule, beta_rule_along, resolving_degree
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array, Credit

_BANDS = (200.0, 3000.0, 50_000.0)  # degrees of the rules; beyond the last there is none
_AT_END = 1e-4  # trials expected to go the other way, of all, where a node is as good as at an end
_SMALLEST = 1e-8  # Beta parameter: what lies further out than its tail is 2e-10 of the probability
_LARGEST = 20_000.0  # degree that a state may need by itself
_BLOCK = 4_000_000  # floats in one array: 32 MB
_OVERLAP = 1e-140  # of prior and likelihood, each at most one: far above underflow

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Band:
    """Some nodes and states with a rule that resolves them.

    Parameters
    ----------
    nodes, states : ndarray of int
    rule : BetaRule
    prior, likelihood : ndarray, shape (nodes, points), (states, points)
        Factors of the weights, each at most one.
    total : ndarray, shape (nodes, states)
        Sums of the products.
    thin : (ndarray, ndarray, ndarray)
        Nodes and states whose factors hardly overlap, and their weights (pairs, points).
    """

    nodes: Index
    states: Index
    rule: BetaRule
    prior: Array
    likelihood: Array
    total: Array
    thin: tuple[Index, Index, Array]

    def expectation(self, values: Array, states: slice = slice(None)) -> Array:
        """Posterior expectation of functions on the points, (points, m); (nodes, states, m)."""
        likelihood = self.likelihood[states]
        joint = (likelihood.T[:, :, None] * values[:, None, :]).reshape(len(values), -1)
        found = (self.prior @ joint).reshape(len(self.prior), len(likelihood), -1)
        found /= self.total[:, states, None]
        node, state, weights = self.thin
        if len(node):
            low, high, _ = states.indices(len(self.states))
            inside = (state >= low) & (state < high)
            found[node[inside], state[inside] - low] = weights[inside] @ values
        return np.asarray(found)

    def weights(self, states: slice) -> Array:
        """Posterior probabilities of the points, one row for each node and state."""
        found = self.prior[:, None, :] * self.likelihood[states]
        found /= self.total[:, states, None]
        node, state, own = self.thin
        if len(node):
            low, high, _ = states.indices(len(self.states))
            inside = (state >= low) & (state < high)
            found[node[inside], state[inside] - low] = own[inside]
        return np.asarray(found.reshape(-1, len(self.rule)))

    def chunks(self, size: int) -> Iterator[slice]:
        """Cut the states so that expectations of so many functions stay in bounded memory."""
        width = max(1, _BLOCK // (max(len(self.nodes), len(self.rule)) * size))
        for start in range(0, len(self.states), width):
            yield slice(start, start + width)


@dataclass(frozen=True)
class Given:
    """Moments of the mean over questions, given each node; shape (nodes, credits).

    Parameters
    ----------
    weight : ndarray, shape (nodes,)
    mean, complement : ndarray
        Mean and one less the mean.
    variance, third, fourth : ndarray
        Cumulants.
    shape_third, shape_fourth : ndarray
        What the third and fourth would be if no state made up for another: how far from normal the
        terms are, not only their sum.
    """

    weight: Array
    mean: Array
    complement: Array
    variance: Array
    third: Array
    fourth: Array
    shape_third: Array
    shape_fourth: Array

    def at(self, column: int) -> "Given":
        """Moments of one credit."""
        return Given(self.weight, *(own[:, column : column + 1] for own in self._moments))

    def among(self, keep: Index, weight: Array) -> "Given":
        """Moments at some of the nodes, with other weights."""
        return Given(weight, *(own[keep] for own in self._moments))

    @property
    def _moments(self) -> list[Array]:
        return [getattr(self, each.name) for each in fields(self)[1:]]

    @property
    def overall(self) -> tuple[Array, Array]:
        """Posterior mean and its complement, without cancellation; shape (credits,)."""
        return self.weight @ self.mean, self.weight @ self.complement

    @cached_property
    def offset(self) -> Array:
        """Mean given a node less the posterior mean, from whichever end is nearer."""
        mean, rest = self.overall
        return np.where(mean <= 0.5, self.mean - mean, rest - self.complement)

    @property
    def total_variance(self) -> Array:
        """Posterior variance: within nodes plus between nodes; shape (credits,)."""
        return self.weight @ self.variance + self.weight @ self.offset**2


@dataclass(frozen=True)
class StateMixture:
    """States under mixture nodes, for a list of credits."""

    nodes: Nodes
    states: States
    credits: tuple[Credit, ...]

    def among(self, keep: Index, column: int | None = None) -> "StateMixture":
        """Return the mixture on some of the nodes, not renormalised, for all credits or one."""
        credits = self.credits if column is None else (self.credits[column],)
        return replace(self, nodes=self.nodes.among(keep), credits=credits)

    @cached_property
    def _failures(self) -> NDArray[np.int64]:
        return self.states.trials - self.states.successes

    @cached_property
    def large(self) -> NDArray[np.bool_]:
        """States whose own likelihood is too narrow for a rule."""
        return resolving_degree(self.states.successes, self._failures) > _LARGEST

    @cached_property
    def degree(self) -> Array:
        """Degree of a rule that resolves the posteriors and credits at each node."""
        part = np.flatnonzero(~self.large)
        a = self.nodes.alpha[:, None] + self.states.successes[part]
        b = self.nodes.beta[:, None] + self._failures[part]
        # Squares of steps at one end are kernels themselves; other credits have their degree.
        powers = {credit: 2 * credit.k for credit in self.credits}
        ends = [c for c in self.credits if c.shape == "threshold" and c.threshold in (1, c.k)]
        missed = max((powers[c] for c in ends if c.threshold == 1), default=0)
        hit = max((powers[c] for c in ends if c.threshold == c.k), default=0)
        inner = max((powers[c] for c in self.credits if c not in ends), default=0)
        found = np.zeros(len(self.nodes))
        for up, down in {(0, 0), (hit, 0), (0, missed)}:
            needed = resolving_degree(a + up, b + down)
            found = np.maximum(found, needed.max(axis=1, initial=0.0))
        return found + inner

    @cached_property
    def bands(self) -> list[Index]:
        """Node indices by the degree they need; the last holds those beyond any rule."""
        alpha, beta = self.nodes.alpha, self.nodes.beta
        degree = self.degree
        trials = float(self.states.count @ self.states.trials) + 1.0
        at_end = np.minimum(alpha, beta) / (alpha + beta) * trials < _AT_END
        several = len(self.nodes) > 1
        label = np.searchsorted(_BANDS, degree)
        label[at_end & (degree > _BANDS[0]) & several] = len(_BANDS)
        return [np.flatnonzero(label == i) for i in range(len(_BANDS) + 1)]

    def on_rules(
        self, curve: Callable[[BetaRule], Array] | None = None, spacing: float = np.inf
    ) -> Iterator[Band]:
        """Yield what quadrature handles, with points at most so far apart on a curve."""
        states = np.flatnonzero(~self.large)
        if not len(states):
            return
        c, f = self.states.successes[states], self._failures[states]
        for members in self.bands[:-1]:
            if not len(members):
                continue
            alpha, beta = self.nodes.alpha[members], self.nodes.beta[members]
            degree = float(self.degree[members].max())
            lowest = [float(alpha.min() + c.min()), float(beta.min() + f.min())]
            if len(self.nodes) > 1:
                lowest = [max(each, _SMALLEST) for each in lowest]
            if curve is None:
                rule = beta_rule(lowest[0], lowest[1], degree)
            else:
                rule = beta_rule_along(lowest[0], lowest[1], degree, curve, spacing)
            likelihood = _exponential(np.outer(c, rule.log_p) + np.outer(f, rule.log_q))
            width = max(1, _BLOCK // max(len(rule), len(states)))
            for start in range(0, len(members), width):
                part = slice(start, start + width)
                logs = np.outer(alpha[part], rule.log_p) + np.outer(beta[part], rule.log_q)
                prior = _exponential(logs + rule.log_weight)
                total = prior @ likelihood.T
                node, state = np.nonzero(total < _OVERLAP)
                own = beta_weights(rule, alpha[part][node] + c[state], beta[part][node] + f[state])
                total[node, state] = 1.0
                thin = (node, state, own)
                yield Band(members[part], states, rule, prior, likelihood, total, thin)

    def narrow(self) -> Iterator[tuple[Index, Index, Array, Array, Array]]:
        """Yield nodes, states, means, complements and variances of what no rule resolves."""
        every, large = np.arange(len(self.states)), np.flatnonzero(self.large)
        pairs = [(self.bands[-1], every), (np.concatenate(self.bands[:-1]), large)]
        for nodes, states in pairs:
            if len(nodes) and len(states):
                a = self.nodes.alpha[nodes, None] + self.states.successes[states]
                b = self.nodes.beta[nodes, None] + self._failures[states]
                exact = beta_binomial_moments(self.credits, a.ravel(), b.ravel())
                mean, rest, variance = (one.reshape(*a.shape, -1) for one in exact)
                yield nodes, states, mean, rest, variance

    def cumulants(self, order: int) -> Iterator[tuple[Index, Index, list[Array]]]:
        """Yield nodes, states, and the mean, its complement and further cumulants of every credit.

        Moments are taken of the smaller of g and 1 - g, which bounds the cancellation.
        """
        for band in self.on_rules():
            ways = latent_on_nodes(self.credits, band.rule)
            powers = [one**j for one in ways for j in range(1, order + 1)]
            for part in band.chunks(len(powers) * len(self.credits)):
                found = band.expectation(np.concatenate(powers, axis=1), part)
                low, high = (
                    _cumulants(np.split(raw, order, axis=2)) for raw in np.split(found, 2, axis=2)
                )
                small, sign = low[0] <= high[0], -1.0
                moments = [low[0], high[0]]
                for first, second in zip(low[1:], high[1:], strict=True):
                    sign = -sign  # odd cumulants of 1 - g are those of g with the other sign
                    moments.append(np.where(small, first, sign * second))
                moments[2] = np.maximum(moments[2], 0.0)
                yield band.nodes, band.states[part], moments
        for nodes, states, *moments in self.narrow():
            yield nodes, states, moments  # normal, to what a mean over questions can show

    def _given(self, order: int) -> Given:
        sums = np.zeros((7, len(self.nodes), len(self.credits)))
        count, questions = self.states.count, self.states.questions
        for nodes, states, found in self.cumulants(order):
            for total, one in zip(sums, found + [np.abs(one) for one in found[3:]], strict=False):
                total[nodes] += np.einsum("gsk,s->gk", one, count[states])
        powers = questions ** np.array([1.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0])
        return Given(self.nodes.weight, *(sums / powers[:, None, None]))

    @cached_property
    def by_state(self) -> tuple[Array, Array]:
        """Mean and variance of every state's credits at the only node; (states, credits)."""
        mean, variance = np.empty((2, len(self.states), len(self.credits)))
        for _, states, found in self.cumulants(2):
            mean[states], variance[states] = found[0][0], found[2][0]
        return mean, variance

    @cached_property
    def moments(self) -> Given:
        """Means and variances of the mean over questions, given each node."""
        return self._given(2)

    @cached_property
    def shape(self) -> Given:
        """The same with the third and fourth cumulants."""
        return self._given(4)

    @cached_property
    def population(self) -> Given:
        """Expected credit of a new question given each node (no variance is left given one)."""
        mean, rest = beta_binomial_means(self.credits, self.nodes.alpha, self.nodes.beta)
        zero = np.zeros_like(mean)
        return Given(self.nodes.weight, mean, rest, zero, zero, zero, zero, zero)


def _exponential(logs: Array) -> Array:
    """Rows of exponentials, scaled to a largest value of one; in place."""
    logs -= logs.max(axis=1, keepdims=True)
    return np.exp(logs, out=logs)


def _cumulants(raw: Sequence[Array]) -> list[Array]:
    """Mean and further cumulants, up to the fourth, from as many raw moments."""
    one, two = raw[0], raw[1]
    found = [one, two - one**2]
    if len(raw) > 2:
        three, four = raw[2], raw[3]
        found.append(three - one * (3.0 * two - 2.0 * one**2))
        central = four - one * (4.0 * three - one * (6.0 * two - 3.0 * one**2))
        found.append(central - 3.0 * found[1] ** 2)
    return found
