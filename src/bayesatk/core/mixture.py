"""Posterior of question-level credits when ``p_a`` is a mixture of Betas over shared nodes.

Node ``g`` is one prior distribution of p, of probability ``w_g``: Betas and atoms at 0 and 1 with
shares. Given it the questions are independent and a question with ``c`` of ``n`` successes has the
density ``prior(p) p^c (1-p)^(n-c)``. No pooling is one node of one Beta; partial pooling is the
hyperparameters' posterior. Questions enter as distinct states (c, n) with multiplicities.

On the points of one quadrature rule the weights of a node and a state are a product, prior times
likelihood, so the expectation of anything for all nodes and states is one matrix product; an atom
is one more point. Nodes are handled in bands of similar concentration, each with its own rule;
nodes and states so concentrated that no rule of reasonable size resolves them use exact
Beta-binomial sums. Where a judge that errs marked the trials (nodes with rates), a state is a
mixture of states of right trials, and its expectations are mixtures of theirs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

from bayesatk.core.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.core.bootstrap import bootstrap_moments
from bayesatk.core.marks import right_counts, right_given_marked
from bayesatk.core.moments import latent_on_nodes
from bayesatk.core.nodes import Nodes
from bayesatk.core.quadrature import BetaRule, beta_rule, beta_rule_along, resolving_degree
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array, Credit, pass_at

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
class MarkedBand:
    """The same for states that a judge marked: mixtures of states of right trials.

    Parameters
    ----------
    band : Band
        Of the states of right trials.
    given : ndarray, shape (nodes, states, right)
        From `bayesatk.core.marks.right_given_marked`.
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
        width = max(1, _BLOCK // (len(self.nodes) * size))
        for start in range(0, self.given.shape[1], width):
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
    """States under mixture nodes, for a list of credits.

    Parameters
    ----------
    nodes : Nodes
    states : States
    credits : tuple of Credit
    known : Given, optional
        Moments of the mean over questions given each node, where they have been worked out.
    """

    nodes: Nodes
    states: States
    credits: tuple[Credit, ...]
    known: Given | None = None

    def among(self, keep: Index, column: int | None = None) -> "StateMixture":
        """Return the mixture on some of the nodes, not renormalised, for all credits or one."""
        credits = self.credits if column is None else (self.credits[column],)
        return replace(self, nodes=self.nodes.among(keep), credits=credits, known=None)

    def reweighted(self, keep: Index, weight: Array) -> "StateMixture":
        """Return the mixture on some of the nodes with other probabilities."""
        nodes = replace(self.nodes.among(keep), weight=weight)
        return replace(self, nodes=nodes, known=self.moments.among(keep, weight))

    @cached_property
    def right(self) -> States:
        """States of right trials: those observed, or all that a judge could have marked."""
        return self.states if self.nodes.rates is None else right_counts(self.states)

    @cached_property
    def _failures(self) -> NDArray[np.int64]:
        return self.right.trials - self.right.successes

    @cached_property
    def large(self) -> NDArray[np.bool_]:
        """States whose own likelihood is too narrow for a rule."""
        return resolving_degree(self.right.successes, self._failures) > _LARGEST

    @cached_property
    def degree(self) -> Array:
        """Degree of a rule that resolves the posteriors and credits at each node."""
        part = np.flatnonzero(~self.large)
        c, f = self.right.successes[part], self._failures[part]
        # Squares of steps at one end are kernels themselves; other credits have their degree.
        powers = {credit: 2 * credit.k for credit in self.credits}
        ends = [c for c in self.credits if c.shape == "threshold" and c.threshold in (1, c.k)]
        missed = max((powers[c] for c in ends if c.threshold == 1), default=0)
        hit = max((powers[c] for c in ends if c.threshold == c.k), default=0)
        inner = max((powers[c] for c in self.credits if c not in ends), default=0)
        found = np.zeros(len(self.nodes))
        for up, down in {(0, 0), (hit, 0), (0, missed)}:
            for _, alpha, beta in self.nodes.components:
                needed = resolving_degree(alpha[:, None] + c + up, beta[:, None] + f + down)
                found = np.maximum(found, needed.max(axis=1, initial=0.0))
        return found + inner

    @cached_property
    def bands(self) -> list[Index]:
        """Node indices by the degree they need; the last holds those beyond any rule."""
        alpha, beta = self.nodes.alpha, self.nodes.beta
        degree = self.degree
        trials = float(self.states.count @ self.states.trials) + 1.0
        at_end = (np.minimum(alpha, beta) / (alpha + beta) * trials < _AT_END).any(axis=1)
        several = len(self.nodes) > 1
        label = np.searchsorted(_BANDS, degree)
        label[at_end & (degree > _BANDS[0]) & several] = len(_BANDS)
        return [np.flatnonzero(label == i) for i in range(len(_BANDS) + 1)]

    def on_rules(
        self, curve: Callable[[BetaRule], Array] | None = None, spacing: float = np.inf
    ) -> Iterator[Band | MarkedBand]:
        """Yield what quadrature handles, with points at most so far apart on a curve."""
        for band in self._bands_on_rules(curve, spacing):
            yield band if self.nodes.rates is None else MarkedBand(band, self._given(band.nodes))

    def _given(self, nodes: Index) -> Array:
        """Probability of numbers of right trials, by node and marked state."""
        return right_given_marked(self.nodes.among(nodes), self.states, self.right)

    def _bands_on_rules(
        self, curve: Callable[[BetaRule], Array] | None, spacing: float
    ) -> Iterator[Band]:
        """Yield the same for states of right trials."""
        states = np.flatnonzero(~self.large)
        if not len(states):
            return
        c, f = self.right.successes[states], self._failures[states]
        for members in self.bands[:-1]:
            if not len(members):
                continue
            nodes = self.nodes.among(members)
            degree = float(self.degree[members].max())
            lowest = [float(nodes.alpha.min() + c.min()), float(nodes.beta.min() + f.min())]
            if len(self.nodes) > 1:
                lowest = [max(each, _SMALLEST) for each in lowest]
            if curve is None:
                rule = beta_rule(lowest[0], lowest[1], degree)
            else:
                rule = beta_rule_along(lowest[0], lowest[1], degree, curve, spacing)
            within, ends = rule, bool(nodes.atoms.any())
            if ends:
                rule = rule.with_ends()
            log_likelihood = _kernels(c, f, rule)
            likelihood = _exponential(log_likelihood.copy())
            marked = 0 if self.nodes.rates is None else len(self.states) * len(states)
            width = max(1, _BLOCK // max(len(rule), len(states), marked))
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

    def narrow(self) -> Iterator[tuple[Index, Index, Array, Array, Array]]:
        """Yield nodes, states, means, complements and variances of what no rule resolves."""
        every, large = np.arange(len(self.right)), np.flatnonzero(self.large)
        if self.nodes.rates is not None:  # of which trials are too few to be large
            nodes = self.bands[-1]
            if len(nodes):
                yield nodes, np.arange(len(self.states)), *self._exact_marked(nodes, every)
            return
        pairs = [(self.bands[-1], every), (np.concatenate(self.bands[:-1]), large)]
        for nodes, states in pairs:
            if len(nodes) and len(states):
                yield nodes, states, *self._exact(nodes, states)

    def _exact_marked(self, nodes: Index, right: Index) -> tuple[Array, Array, Array]:
        """Mixtures of the same over the numbers of right trials."""
        mean, rest, variance = self._exact(nodes, right)
        given = self._given(nodes)
        low, high = given @ mean, given @ rest
        gap = np.where(low[:, :, None] <= 0.5, mean[:, None] - low[:, :, None],
                       high[:, :, None] - rest[:, None])  # fmt: skip
        between = np.einsum("gst,gstk->gsk", given, gap**2)
        return low, high, given @ variance + between

    def _exact(self, nodes: Index, states: Index) -> tuple[Array, Array, Array]:
        """Means, complements and variances by Beta-binomial sums, component by component."""
        some, shape = self.nodes.among(nodes), (len(nodes), len(states), len(self.credits))
        c, f = self.right.successes[states], self._failures[states]
        logs = some.log_parts(c, f)
        share = np.exp(logs - logs.max(axis=0))
        share /= share.sum(axis=0)
        found = []
        for _, alpha, beta in some.components:
            a, b = (alpha[:, None] + c).ravel(), (beta[:, None] + f).ravel()
            exact = beta_binomial_moments(self.credits, a, b)
            found.append([one.reshape(shape) for one in exact])
        for end in _at_ends(self.credits):
            found.append([np.broadcast_to(one, shape) for one in (end, 1.0 - end, 0.0 * end)])
        if len(found) == 3 and not some.atoms.any():
            return found[0][0], found[0][1], found[0][2]
        mean, rest, within = (
            sum(part[..., None] * one[i] for part, one in zip(share, found, strict=True))
            for i in range(3)
        )
        between = sum(
            part[..., None] * (one[0] - mean) ** 2 for part, one in zip(share, found, strict=True)
        )
        return np.asarray(mean), np.asarray(rest), np.asarray(within + between)

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

    @cached_property
    def by_state(self) -> tuple[Array, Array]:
        """Mean and variance of every state's credits at the only node; (states, credits)."""
        mean, variance = np.empty((2, len(self.states), len(self.credits)))
        for _, states, found in self.cumulants(2):
            mean[states], variance[states] = found[0][0], found[2][0]
        return mean, variance

    def question_p(self) -> tuple[Array, Array]:
        """Posterior mean and sd of every question's success probability; shape (questions,)."""
        mean, square = np.zeros((2, len(self.states)))
        for nodes, states, found in replace(self, credits=(pass_at(1),), known=None).cumulants(2):
            weight = self.nodes.weight[nodes]
            mean[states] += weight @ found[0][..., 0]
            square[states] += weight @ (found[2][..., 0] + found[0][..., 0] ** 2)
        sd = np.sqrt(np.maximum(square - mean**2, 0.0))
        return mean[self.states.which], sd[self.states.which]

    @cached_property
    def moments(self) -> Given:
        """Moments of the mean over questions, given each node."""
        if self.known is not None:
            return self.known
        sums = np.zeros((7, len(self.nodes), len(self.credits)))
        powers = [1, 1, 2, 3, 4, 3, 4]  # of the questions' weights, and of their number
        for nodes, states, found in self.cumulants(4):
            every = found + [np.abs(one) for one in found[3:]]
            for total, power, one in zip(sums, powers, every, strict=False):
                total[nodes] += np.einsum("gsk,s->gk", one, self.states.sums[power, states])
        scale = self.states.questions ** np.array(powers, float)
        return Given(self.nodes.weight, *(sums / scale[:, None, None]))

    @cached_property
    def bootstrap(self) -> Given:
        """Moments, given each node, of the mean over questions drawn anew from these."""
        found = np.zeros((2, len(self.nodes), len(self.credits)))
        width = max(1, _BLOCK // (len(self.states) * len(self.credits) * 8))
        for start in range(0, len(self.nodes), width):
            part = np.arange(start, min(start + width, len(self.nodes)))
            moments = np.zeros((2, len(part), len(self.states), len(self.credits)))
            for nodes, states, own in self.among(part).cumulants(2):
                moments[np.ix_([0, 1], nodes, states)] = own[0], own[2]
            found[:, part] = bootstrap_moments(moments[0], moments[1], self.states.terms)
        mean, variance = found
        zero = np.zeros_like(mean)
        return Given(self.nodes.weight, mean, 1.0 - mean, variance, zero, zero, zero, zero)

    @cached_property
    def population(self) -> Given:
        """Expected credit of a new question given each node (no variance is left given one)."""
        mean, rest = expected_credits(self.nodes, self.credits)
        zero = np.zeros_like(mean)
        return Given(self.nodes.weight, mean, rest, zero, zero, zero, zero, zero)


def expected_credits(nodes: Nodes, credits: Sequence[Credit]) -> tuple[Array, Array]:
    """Return expected credits of a new question given each node, and complements."""
    mean, rest = np.zeros((2, len(nodes), len(credits)))
    for share, alpha, beta in nodes.components:
        some = np.flatnonzero(share)
        low, high = beta_binomial_means(credits, alpha[some], beta[some])
        mean[some] += share[some, None] * low
        rest[some] += share[some, None] * high
    for share, end in zip(nodes.atoms.T, _at_ends(credits), strict=True):
        mean += share[:, None] * end
        rest += share[:, None] * (1.0 - end)
    return mean, rest


def spread_of(nodes: Nodes, credits: Sequence[Credit]) -> Array:
    """Variance of credits between new questions given each node; (nodes, credits)."""
    none = States.of([0], [0])
    nodes = replace(nodes, rates=None)
    return np.asarray(StateMixture(nodes, none, tuple(credits)).moments.variance)


def _at_ends(credits: Sequence[Credit]) -> Array:
    """Credits at p = 0 and p = 1; shape (2, credits)."""
    return np.array([[float(credit.vector[end]) for credit in credits] for end in (0, -1)])


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
