"""Nodes and states with a quadrature rule that resolves them: posterior expectations as products.

On the points of a rule the weights of a node and a state are a product, prior times likelihood, so
the expectation of anything for all nodes and states is one matrix product. An atom at 0 or 1 is one
more point.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

from bayesatk.core.numerics.quadrature import BetaRule
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.metrics.credit import Array

BLOCK = 4_000_000  # floats in one array: 32 MB
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

    def among(self, keep: Index) -> "Band":
        """Return the band with some of its states, by position."""
        if len(keep) == len(self.states):
            return self
        node, state, own = self.thin
        place = np.full(len(self.states), -1, np.intp)
        place[keep] = np.arange(len(keep))
        inside = place[state] >= 0
        return replace(
            self, states=self.states[keep], likelihood=self.likelihood[keep],
            total=self.total[:, keep], thin=(node[inside], place[state[inside]], own[inside]),
        )  # fmt: skip

    def of(self, place: Index) -> "Band":
        """Return the band with some of its nodes, at new positions; -1 leaves one out."""
        kept = np.flatnonzero(place[self.nodes] >= 0)
        if len(kept) == len(self.nodes):
            return replace(self, nodes=place[self.nodes])
        node, state, own = self.thin
        row = np.full(len(self.nodes), -1, np.intp)
        row[kept] = np.arange(len(kept))
        inside = row[node] >= 0
        return replace(
            self, nodes=place[self.nodes[kept]], prior=self.prior[kept], total=self.total[kept],
            thin=(row[node[inside]], state[inside], own[inside]),
        )  # fmt: skip

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
        width = max(1, BLOCK // (max(len(self.nodes), len(self.rule)) * size))
        for start in range(0, len(self.states), width):
            yield slice(start, start + width)


@dataclass(frozen=True)
class MarkedBand:
    """The same for states that a judge marked: mixtures of states of right trials.

    Parameters
    ----------
    band : Band
        Of the states of right trials.
    given : ndarray, shape (nodes, states, right)
        From `bayesatk.core.pooling.marks.right_given_marked`.
    """

    band: Band
    given: Array

    @property
    def nodes(self) -> Index:
        """Nodes, as in the band."""
        return self.band.nodes

    @property
    def states(self) -> Index:
        """All states."""
        return np.arange(self.given.shape[1])

    @property
    def rule(self) -> BetaRule:
        """The rule of the band."""
        return self.band.rule

    def among(self, states: Index) -> "MarkedBand":
        """Return the band with some of its states, by position."""
        return MarkedBand(self.band, self.given[:, states])

    def expectation(self, values: Array, states: slice = slice(None)) -> Array:
        """Posterior expectation of functions on the points, (points, m); (nodes, states, m)."""
        found = np.zeros((*self.given[:, states].shape[:2], values.shape[1]))
        for part in self.band.chunks(values.shape[1]):
            found += self.given[:, states, part] @ self.band.expectation(values, part)
        return found

    def weights(self, states: slice) -> Array:
        """Posterior probabilities of the points, one row for each node and state."""
        points = len(self.rule)
        own = self.band.weights(slice(None)).reshape(len(self.nodes), -1, points)
        return np.asarray((self.given[:, states] @ own).reshape(-1, points))

    def chunks(self, size: int) -> Iterator[slice]:
        """Cut the states so that expectations of so many functions stay in bounded memory."""
        width = max(1, BLOCK // (len(self.nodes) * size))
        for start in range(0, self.given.shape[1], width):
            yield slice(start, start + width)


def bands_of(
    members: Index,
    nodes: Nodes,
    states: Index,
    outcomes: tuple[NDArray[np.int64], NDArray[np.int64]],
    rule: BetaRule,
    marked: int = 0,
) -> Iterator[Band]:
    """Yield bands of as many of the nodes as fit in bounded memory.

    Parameters
    ----------
    members : ndarray of int
        Positions of the nodes among all.
    nodes : Nodes
    states : ndarray of int
        Positions of the states.
    outcomes : (ndarray, ndarray)
        Their successes and failures.
    rule : BetaRule
    marked : int
        Size of what a judge adds to a node.
    """
    within, ends = rule, bool(nodes.atoms.any())
    if ends:
        rule = rule.with_ends()
    log_likelihood = _kernels(*outcomes, rule)
    likelihood = _exponential(log_likelihood.copy())
    width = max(1, BLOCK // max(len(rule), len(states), marked))
    for start in range(0, len(members), width):
        part = np.arange(start, min(start + width, len(members)))
        prior = _prior(nodes.among(part), within, ends)
        total = prior @ likelihood.T
        node, state = np.nonzero(total < _OVERLAP)
        own = _log_prior(nodes.among(part[node]), within, ends) + log_likelihood[state]
        own = _exponential(own)
        own /= own.sum(axis=1, keepdims=True)
        total[node, state] = 1.0
        thin = (node, state, own)
        yield Band(members[part], states, rule, prior, likelihood, total, thin)


def _kernels(a: ArrayLike, b: ArrayLike, rule: BetaRule) -> Array:
    """Return ``a log p + b log(1 - p)`` on the points of a rule; shape (kernels, points)."""
    powers = np.stack([np.asarray(a, float), np.asarray(b, float)], axis=1)
    return np.asarray(powers @ np.stack([rule.log_p, rule.log_q]))


def _parts(nodes: Nodes, rule: BetaRule) -> Iterator[tuple[Index, Array]]:
    """Yield nodes that have a component, and its log density on the points of a rule."""
    alone = nodes.alpha.shape[1] == 1 and not nodes.atoms.any()
    for share, alpha, beta in nodes.components:
        some = np.flatnonzero(share)
        logs = _kernels(alpha[some], beta[some], rule) + rule.log_weight
        if not alone:
            logs += (np.log(share[some]) - betaln(alpha[some], beta[some]))[:, None]
        yield some, logs


def _prior(nodes: Nodes, rule: BetaRule, ends: bool) -> Array:
    """Prior probability of the points of a rule and of the atoms, scaled to at most one."""
    parts = list(_parts(nodes, rule))
    if nodes.alpha.shape[1] == 1 and not ends:
        return _exponential(parts[0][1])
    top = np.full(len(nodes), -np.inf)
    with np.errstate(divide="ignore"):
        atoms = np.log(nodes.atoms)
    for some, logs in parts:
        top[some] = np.maximum(top[some], logs.max(axis=1))
    top = np.maximum(top, atoms.max(axis=1))
    found = np.zeros((len(nodes), len(rule) + 2))
    for some, logs in parts:
        logs -= top[some, None]
        found[some, :-2] += np.exp(logs, out=logs)
    found[:, -2:] = np.exp(atoms - top[:, None])
    return found if ends else found[:, :-2]


def prior_on_rule(nodes: Nodes, rule: BetaRule) -> Array:
    """Prior probability of the points of a rule, with its ends where nodes have atoms; (nodes, points)."""
    ends = bool(nodes.atoms.any())
    within = rule.without_ends() if ends else rule
    prior = _prior(nodes, within, ends)
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def _log_prior(nodes: Nodes, rule: BetaRule, ends: bool) -> Array:
    """Log of the same, where it would be lost below the smallest number."""
    logs = np.full((len(nodes), len(rule)), -np.inf)
    for some, own in _parts(nodes, rule):
        logs[some] = np.logaddexp(logs[some], own)
    with np.errstate(divide="ignore"):
        return np.concatenate([logs, np.log(nodes.atoms)], axis=1) if ends else logs


def _exponential(logs: Array) -> Array:
    """Rows of exponentials, scaled to a largest value of one; in place."""
    logs -= logs.max(axis=1, keepdims=True)
    return np.exp(logs, out=logs)
