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
from numpy.typing import NDArray

from bayesatk.core.engine.bands import BLOCK, Band, Index, MarkedBand, bands_of
from bayesatk.core.engine.bootstrap import bootstrap_moments
from bayesatk.core.numerics.quadrature import BetaRule, beta_rule, beta_rule_along, resolving_degree
from bayesatk.core.pooling.marks import right_counts, right_given_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.core.question.moments import latent_on_nodes
from bayesatk.metrics.credit import Array, Credit, pass_at

_BANDS = (60.0, 200.0, 3000.0, 50_000.0)  # degrees of the rules; beyond the last there is none
_LONG_TAILED = 0.1  # Beta parameter below which a rule needs many more points, far out
_AT_END = 1e-4  # trials expected to go the other way, of all, where a node is as good as at an end
_SMALLEST = 1e-8  # Beta parameter: what lies further out than its tail is 2e-10 of the probability
_RESOLVED = 0.3  # of the spacing asked for: phases that the points of a kernel resolve besides
_LARGEST = 20_000.0  # degree that a state may need by itself


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
    source : (StateMixture, ndarray of int), optional
        A mixture of all these credits and more nodes, and where these nodes are among them: what
        it has worked out is not worked out again.
    """

    nodes: Nodes
    states: States
    credits: tuple[Credit, ...]
    known: Given | None = None
    source: "tuple[StateMixture, Index] | None" = None

    def among(self, keep: Index, column: int | None = None) -> "StateMixture":
        """Return the mixture on some of the nodes, not renormalised, for all credits or one."""
        credits = self.credits if column is None else (self.credits[column],)
        nodes, source = self.nodes.among(keep), self._part(keep)
        return replace(self, nodes=nodes, credits=credits, known=None, source=source)

    def reweighted(self, keep: Index, weight: Array) -> "StateMixture":
        """Return the mixture on some of the nodes with other probabilities."""
        nodes, known = self.nodes.among(keep), self.moments.among(keep, weight)
        nodes = replace(nodes, weight=weight)
        return replace(self, nodes=nodes, known=known, source=self._part(keep))

    def _part(self, keep: Index) -> "tuple[StateMixture, Index]":
        """Return the mixture that some of the nodes come from, and their positions there."""
        base, place = self.source or (self, np.arange(len(self.nodes)))
        return base, place[keep]

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
        """Node indices by the degree and reach they need; the last holds those beyond any rule."""
        return [np.flatnonzero(self._label == i) for i in range(2 * len(_BANDS) + 1)]

    @cached_property
    def _label(self) -> Index:
        """Band of each node."""
        if self.source is not None:
            base, place = self.source
            return base._label[place]
        alpha, beta = self.nodes.alpha, self.nodes.beta
        degree = self.degree
        trials = float(self.states.count @ self.states.trials) + 1.0
        smaller = np.minimum(alpha, beta)
        at_end = (smaller / (alpha + beta) * trials < _AT_END).any(axis=1)
        several = len(self.nodes) > 1
        label = 2 * np.searchsorted(_BANDS, degree) + (smaller.min(axis=1) < _LONG_TAILED)
        beyond = at_end & (degree > _BANDS[1]) & several
        return np.where(beyond, 2 * len(_BANDS), np.minimum(label, 2 * len(_BANDS)))

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
        for members, kept in zip(self.bands[:-1], self._kept, strict=True):
            if kept and (curve is None or self._resolves(kept[0].rule, curve, spacing)):
                yield from kept
            elif len(members) and not self.large.all():
                nodes, reach = self.nodes.among(members), self._reach(members)
                if curve is None:
                    rule = beta_rule(*reach)
                else:
                    rule = beta_rule_along(*reach, curve, spacing)
                yield from self._bands_of(members, nodes, rule)

    def _bands_of(self, members: Index, nodes: Nodes, rule: BetaRule) -> Iterator[Band]:
        """Yield some nodes with the states that a rule resolves."""
        states = np.flatnonzero(~self.large)
        outcomes = self.right.successes[states], self._failures[states]
        marked = 0 if self.nodes.rates is None else len(self.states) * len(states)
        return bands_of(members, nodes, states, outcomes, rule, marked)

    def _reach(self, members: Index) -> tuple[float, float, float]:
        """Lowest Beta parameters, and degree, of a rule for some nodes."""
        nodes, small = self.nodes.among(members), ~self.large
        a = float(nodes.alpha.min() + self.right.successes[small].min())
        b = float(nodes.beta.min() + self._failures[small].min())
        if len(self.nodes) > 1:
            a, b = max(a, _SMALLEST), max(b, _SMALLEST)
        return a, b, float(self.degree[members].max())

    @cached_property
    def _kept(self) -> list[list[Band]]:
        """Bands on rules that follow no curve, by label, where they are small enough to keep."""
        if self.source is not None:
            base, place = self.source
            own = np.full(len(base.nodes), -1, np.intp)
            own[place] = np.arange(len(place))
            some = [[band.of(own) for band in each] for each in base._kept]
            return [[band for band in each if len(band.nodes)] for each in some]
        every = [np.empty(0, np.intp) if self.large.all() else own for own in self.bands[:-1]]
        rules = [beta_rule(*self._reach(own)) if len(own) else None for own in every]
        size = sum(
            (len(own) + len(self.right)) * len(rule) + len(own) * len(self.right)
            for own, rule in zip(every, rules, strict=True)
            if rule is not None
        )  # of priors and likelihoods on the points, and of their sums
        return [
            [] if rule is None or size > BLOCK
            else list(self._bands_of(own, self.nodes.among(own), rule))
            for own, rule in zip(every, rules, strict=True)
        ]  # fmt: skip

    def _resolves(self, rule: BetaRule, curve: Callable[[BetaRule], Array], spacing: float) -> bool:
        """Whether a rule that follows no curve has points close enough together on one."""
        steps = np.abs(np.diff(curve(rule)))
        if self.nodes.atoms.any():
            steps = steps[:-2]
        return bool(steps.max(initial=0.0) <= _RESOLVED * spacing)

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

        The variance is that of the smaller of g and 1 - g, which bounds the cancellation; third
        and fourth cumulants, which matter as sums over states, are of whichever is smaller on
        average.
        """
        for band in self.on_rules():
            low, high = latent_on_nodes(self.credits, band.rule)
            values = np.concatenate([low, high, low**2, high**2], axis=1)
            for part in band.chunks(values.shape[1]):
                ways = np.split(band.expectation(values, part), 4, axis=2)
                mean, rest = ways[0], ways[1]
                variance = np.where(mean <= rest, ways[2] - mean**2, ways[3] - rest**2)
                found = [mean, rest, np.maximum(variance, 0.0)]
                if order > 2:
                    less = mean.sum(axis=(0, 1)) <= rest.sum(axis=(0, 1))
                    own = np.where(less, low, high)
                    raw = np.split(band.expectation(np.hstack([own**3, own**4]), part), 2, axis=2)
                    first, second = (np.where(less, *pair) for pair in (ways[:2], ways[2:]))
                    third, fourth = _higher(first, second, *raw)
                    # Odd cumulants of 1 - g are those of g with the other sign.
                    found += [np.where(less, third, -third), fourth]
                yield band.nodes, band.states[part], found
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
        one = replace(self, credits=(pass_at(1),), known=None)
        for nodes, states, found in one.cumulants(2):
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
        width = max(1, BLOCK // (len(self.states) * len(self.credits) * 8))
        for start in range(0, len(self.nodes), width):
            part = np.arange(start, min(start + width, len(self.nodes)))
            moments = np.zeros((2, len(part), len(self.states), len(self.credits)))
            for nodes, states, own in self.among(part).cumulants(2):
                moments[np.ix_([0, 1], nodes, states)] = own[0], own[2]
            found[:, part] = bootstrap_moments(moments[0], moments[1], self.states.observed)
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


def _higher(one: Array, two: Array, three: Array, four: Array) -> tuple[Array, Array]:
    """Third and fourth cumulant from raw moments."""
    third = three - one * (3.0 * two - 2.0 * one**2)
    central = four - one * (4.0 * three - one * (6.0 * two - 3.0 * one**2))
    return third, central - 3.0 * (two - one**2) ** 2
