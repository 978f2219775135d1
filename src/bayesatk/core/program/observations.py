"""Observations: what is seen of a question's p, and so what its trials say of everything else.

Each answers the same four questions about distinct counts ("states") at points of the
hyperparameters and offsets: how probable the trials are; mean, variance and third cumulant of
metrics given them; the same of a new question; and draws of p. Tables have the shape (points,
offsets, states, ...).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, override

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.core.numerics.quadrature import BetaRule, beta_rule, resolving_degree
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.marks import Marks, count_chances, log_kinds
from bayesatk.core.pooling.nodes import Nodes, log_rising_factorial_table
from bayesatk.core.pooling.states import States
from bayesatk.core.program.credits import (
    at_ends,
    credit_cumulants,
    few_trials,
    prior_on_rule,
)
from bayesatk.core.program.laws import CategoryLaw, Common, DifficultyLaw
from bayesatk.core.question.beta_binomial import beta_binomial_means, latent_on_nodes
from bayesatk.core.question.categorical import judged_moments
from bayesatk.core.question.dirichlet_multinomial import (
    draw_probabilities,
    log_sequence_probability,
)
from bayesatk.metrics.category_credit import ScoredCredit
from bayesatk.metrics.credit import Credit

_BLOCK = 4_000_000  # floats in one array: 32 MB
_LEAST = 1e-300  # probability, whose logarithm is a number
_SMALLEST = 5e-324  # Beta parameter of draws
_SMALLEST_RULE = 1e-8  # Beta parameter that a rule reaches: beyond its tail lie 2e-10
_NARROWEST = 1000.0  # concentration, in trials of a question, from which a Beta is a point to them
_FAR = 1e10  # below any log probability of trials that are possible
_MANY_TRIALS, _OF_A_RULE = 200, 6  # from which points come so many times as many together
_ON_RULE = 64  # floats of a state's likelihood at once, in those of a table of one column
_FINER = 4  # points of a rule for one, where p is drawn from them


class Observation(ABC):
    """What trials say of p: of right and wrong, of marks by a judge, of scored categories.

    Attributes
    ----------
    states : States
        Distinct counts.
    law : DifficultyLaw, CategoryLaw or Common
        Distribution of p given the hyperparameters and an offset.
    """

    states: States
    law: DifficultyLaw | CategoryLaw | Common

    def floats(self, columns: int) -> int:
        """Return how many numbers tables of so many columns hold at once, at an offset."""
        return columns * len(self.states)

    def order(self, theta: Array) -> Array:
        """Return a number by point; points of similar numbers cost less together."""
        return np.zeros(len(theta))

    @abstractmethod
    def log_states(self, theta: Array, offset: Array) -> Array:
        """Log probability of each state's trials, in their order; (points, offsets, states)."""

    @abstractmethod
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Three cumulants given a state; (points, offsets, states, metrics, 3)."""

    @abstractmethod
    def new_cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Mean and variance of metrics of a new question; (points, offsets, metrics, 2)."""

    def new_means(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Return the means of a new question alone; (points, offsets, metrics)."""
        return np.asarray(self.new_cumulants(metrics, theta, offset)[..., 0])

    def both(self, metrics: Sequence[Any], theta: Array, offset: Array) -> tuple[Array, Array]:
        """Return both cumulants, which may cost less together."""
        return self.cumulants(metrics, theta, offset), self.new_cumulants(metrics, theta, offset)

    @abstractmethod
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw p of questions in states (questions,), at offsets (points, questions)."""


@dataclass(frozen=True)
class RightWrong(Observation):
    """Successes out of trials; prior trials count as so many trials more, also fractions.

    Parameters
    ----------
    law : DifficultyLaw
    states : States
    """

    law: DifficultyLaw
    states: States

    @cached_property
    def _counts(self) -> States:
        """States of all trials, those before included."""
        return self.states.merged()

    @override
    def floats(self, columns: int) -> int:
        """Count fewer where trials are many: points share powers of metrics on a rule."""
        shared = _OF_A_RULE if self._counts.trials.max(initial=0.0) > _MANY_TRIALS else 1
        return max(columns // shared, 1) * len(self.states)

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        wrong, right = self._counts.counts.T
        logs = self.law.nodes(theta, offset).log_likelihood(right, wrong)
        return logs.reshape(*offset.shape, len(right))

    @override
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        return self._on_nodes(self.law.nodes(theta, offset), self._counts, metrics, offset)

    @override
    def both(self, metrics: Sequence[Any], theta: Array, offset: Array) -> tuple[Array, Array]:
        """Treat a new question as one more state, where trials are few."""
        counts, credits = self._counts, [metric.credit for metric in metrics]
        if not few_trials(counts, credits):
            return super().both(metrics, theta, offset)
        states = replace(
            counts, counts=np.pad(counts.counts, ((0, 1), (0, 0))), count=np.append(counts.count, 1)
        )
        found = self._on_nodes(self.law.nodes(theta, offset), states, metrics, offset)
        return found[:, :, :-1], found[:, :, -1, :, :2].copy()

    def _on_nodes(
        self, nodes: Nodes, states: States, metrics: Sequence[Any], offset: Array
    ) -> Array:
        """Cumulants by node and state, of metrics that coincide only once."""
        vectors = [metric.credit.values for metric in metrics]
        distinct = dict(zip(vectors, (metric.credit for metric in metrics), strict=True))
        found = credit_cumulants(nodes, states, list(distinct.values()))
        values = np.stack([np.swapaxes(one, 1, 2) for one in found])  # states last in memory
        if len(distinct) < len(vectors):
            values = values[:, :, [list(distinct).index(vector) for vector in vectors]]
        values = values.reshape(3, *offset.shape, *values.shape[2:])
        return np.moveaxis(values, (0, 3, 4), (4, 3, 2))

    @override
    def new_cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        nodes = self.law.nodes(theta, offset)
        variance = self._on_nodes(nodes, States.of([0], [0]), metrics, offset)[:, :, 0, :, 1]
        return np.stack([self.new_means(metrics, theta, offset), variance], axis=-1)

    @override
    def new_means(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        credits = [metric.credit for metric in metrics]
        mean = expected_credits(self.law.nodes(theta, offset), credits)
        return mean.reshape(*offset.shape, len(metrics))

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        if not offset.any():
            distinct, place = np.unique(state, return_inverse=True)
            counts = self._counts.counts[distinct]
            return self._draw_alike(theta, counts, np.broadcast_to(place, offset.shape), rng)
        wrong, right = (np.tile(column[state], len(offset)) for column in self._counts.counts.T)
        return self._draw_given(theta, offset, right, wrong, rng)

    def _draw_alike(self, theta: Array, counts: NDArray[Any], place: Indices, rng: Rng) -> Array:
        """Draw p given wrong and right trials, at offsets of zero; (points, questions).

        Questions of the same counts (counts, 2), which `place` says, have the same components.
        """
        nodes = self.law.nodes(theta, np.zeros((len(theta), 1)))
        wrong, right = counts.T
        betas, component = nodes.alpha.shape[1], np.zeros(place.shape, np.intp)
        if betas > 1 or nodes.atoms.any():
            logs = nodes.log_parts(right, wrong)
            cumulative = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
            u = rng.random(component.shape)
            for chance in cumulative[:-1] / cumulative[-1]:
                component += u >= np.take_along_axis(chance, place, axis=1)
        inside = np.minimum(component, betas - 1)
        alpha = np.take_along_axis(nodes.alpha, inside, axis=1) + right[place]
        beta = np.take_along_axis(nodes.beta, inside, axis=1) + wrong[place]
        p = rng.beta(np.maximum(alpha, _SMALLEST), np.maximum(beta, _SMALLEST))
        return np.asarray(np.where(component < betas, p, component > betas), float)

    def _draw_given(
        self, theta: Array, offset: Array, right: Array, wrong: Array, rng: Rng
    ) -> Array:
        """Draw p given right and wrong trials: a component by its probability, then a Beta."""
        nodes = self.law.nodes(theta, offset)
        alpha, beta = nodes.alpha[:, 0] + right, nodes.beta[:, 0] + wrong
        component = np.zeros(len(nodes), np.intp)
        betas = nodes.alpha.shape[1]
        if betas > 1 or nodes.atoms.any():
            logs = log_components(nodes, right, wrong)
            component = _draw_column(logs, rng)
            for j in range(1, betas):
                alpha = np.where(component == j, nodes.alpha[:, j] + right, alpha)
                beta = np.where(component == j, nodes.beta[:, j] + wrong, beta)
        p = rng.beta(np.maximum(alpha, _SMALLEST), np.maximum(beta, _SMALLEST))
        return np.where(component < betas, p, component > betas).reshape(offset.shape)


def expected_credits(nodes: Nodes, credits: Sequence[Credit]) -> Array:
    """Return expected credits of a new question given each node; (nodes, credits)."""
    mean = nodes.atoms @ at_ends(credits)
    for share, alpha, beta in nodes.components:
        some = np.flatnonzero(share)
        expected = beta_binomial_means(credits, alpha[some], beta[some])[0]
        mean[some] += share[some, None] * expected
    return np.asarray(mean)


def log_components(nodes: Nodes, right: Array, wrong: Array) -> Array:
    """Log probability of one state by node with each component and atom; (nodes, components)."""
    columns = []
    with np.errstate(divide="ignore"):
        for share, alpha, beta in nodes.components:
            counts = np.stack([wrong, right], axis=1)
            columns.append(
                np.log(share) + log_sequence_probability(np.stack([beta, alpha], axis=1), counts)
            )
        for share, gone in zip(nodes.atoms.T, (right, wrong), strict=True):
            columns.append(np.where(gone == 0, np.log(share), -np.inf))
    return np.stack(columns, axis=1)


def _draw_column(logs: Array, rng: Rng) -> Indices:
    """Draw a column of each row by its log weight."""
    cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    u = rng.random(len(logs)) * cumulative[:, -1]
    return np.asarray((u[:, None] >= cumulative[:, :-1]).sum(axis=1))


@dataclass(frozen=True)
class Marked(RightWrong):
    """Marks of a judge: right with probability ``f + (s - f) p``, its rates hyperparameters.

    Of n trials t are right, which nobody sees: a state is a mixture over t of ordinary states, with
    the probability of the marks given t (`bayesatk.core.pooling.marks`). The truth of some trials
    may be known: states are counts of the kinds of trials that are told apart there.

    Parameters
    ----------
    judge : JudgeRates
    """

    judge: JudgeRates

    @override
    def floats(self, columns: int) -> int:
        return 2 * columns * len(self.states)

    def rates(self, theta: Array) -> Array:
        """Rates at points; (points, columns)."""
        return self.judge.rows(self.judge.reported(theta, self.law.fields))

    both = Observation.both

    @cached_property
    def _whole(self) -> States:
        """States of all trials, those before included, of which each counts fully."""
        return replace(self._counts, counts=self._counts.counts.astype(np.int64))

    @cached_property
    def _marks(self) -> Marks:
        return Marks(self._whole.counts)

    def _alike(self, theta: Array) -> Iterator[tuple[tuple[int, int, int], Indices, Array]]:
        """Yield unknown, wrong and right trials, the states that have them, and mark chances.

        Shape (points, right trials among the unknown, states).
        """
        mark_tables = self._marks.mark_tables(self.rates(theta), once=True)
        tables = zip(self._marks.states_by_trial_counts, mark_tables, strict=True)
        for (unknown, wrong, right, states), chances in tables:
            yield (unknown, wrong, right), states, np.moveaxis(chances, 0, 1)

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        nodes = self.law.nodes(theta, offset)
        logs = np.empty((*offset.shape, len(self.states)))
        tables = zip(self._alike(theta), self._marks.right_chances(nodes), strict=True)
        for (_, alike, chances), (prior, scale) in tables:
            joint = prior.reshape(*offset.shape, -1) @ chances
            scale = scale.reshape(*offset.shape, 1)
            logs[..., alike] = np.log(np.maximum(joint, _LEAST)) + scale
        rates = self.rates(theta)
        logs += self._marks.log_labels(rates)[:, None]
        return logs - self._marks.log_orders

    @override
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        nodes = self.law.nodes(theta, offset)
        nodes = replace(nodes, rates=np.repeat(self.rates(theta), offset.shape[1], axis=0))
        return self._on_nodes(nodes, self._whole, metrics, offset)

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw how many trials were right, then p given that number."""
        right, alike_all = np.empty(offset.shape, np.intp), not offset.any()
        for trials, alike, chances in self._alike(theta):
            columns = np.flatnonzero(np.isin(state, alike))
            if not len(columns):
                continue
            place = np.searchsorted(alike, state[columns])
            at = offset[:, columns[:1] if alike_all else columns]
            prior = count_chances(self.law.nodes(theta, at), *trials)[0]
            if not alike_all:
                chances, place = chances[:, :, place], np.arange(len(columns))
            prior = np.swapaxes(prior.reshape(len(theta), at.shape[1], -1), 1, 2)
            upto = np.cumsum(prior * chances + _LEAST, axis=1)
            u = rng.random((len(theta), len(columns))) * upto[:, -1, place]
            right[:, columns] = trials[2] + sum(
                u >= upto[:, number, place] for number in range(trials[0])
            )
        wrong = self._whole.trials[state].astype(np.intp) - right
        if not alike_all:
            counted = right.ravel().astype(float), wrong.ravel().astype(float)
            return self._draw_given(theta, offset, *counted, rng)
        keys, place = np.unique(right * (wrong.max() + 1) + wrong, return_inverse=True)
        counts = np.stack([keys % (wrong.max() + 1), keys // (wrong.max() + 1)], axis=1)
        return self._draw_alike(theta, counts, place.reshape(right.shape), rng)


@dataclass(frozen=True)
class MarkedOnRule(Marked):
    """Marks of a judge: many of them, or with prior trials of which each counts a fraction.

    On the points of one quadrature rule of p the prior of a node and the likelihood of a state are
    factors, so tables are matrix products.
    """

    @override
    def floats(self, columns: int) -> int:
        """Count the likelihood on a rule, which has some hundreds of points."""
        return max(16 * columns, _ON_RULE) * len(self.states)

    def order(self, theta: Array) -> Array:
        """Points whose Betas are similarly narrow share a rule."""
        width = theta[:, self.law.fields.slices.get("icc", slice(0))]
        return np.asarray(width.min(axis=1, initial=0.0))

    def _on_rule(self, theta: Array, offset: Array, degree: float, finer: int = 1) -> "_OnRule":
        nodes = self.law.nodes(theta, offset)
        trials = float(self._counts.trials.max(initial=1.0))
        total = nodes.alpha + nodes.beta
        narrower = np.minimum(_NARROWEST * max(trials, 1.0) / total, 1.0)
        alpha = np.maximum(nodes.alpha * narrower, _SMALLEST_RULE)
        beta = np.maximum(nodes.beta * narrower, _SMALLEST_RULE)
        nodes = replace(nodes, alpha=alpha, beta=beta)
        wanted = resolving_degree(alpha, beta).max() + trials + degree
        rule = beta_rule(float(alpha.min()), float(beta.min()), float(wanted) * finer**2)
        rule, prior = prior_on_rule(nodes, rule)
        rule = rule.with_ends()
        return _OnRule(rule, prior.reshape(*offset.shape, -1), self._likelihood(theta, rule))

    def _likelihood(self, theta: Array, rule: BetaRule) -> tuple[Array, Array]:
        """Likelihood (points, rule, states), scaled to at most one, and logs of the scales."""
        counts = self._counts.counts
        kinds = log_kinds(rule.log_p, rule.log_q, self.rates(theta)[:, None], counts.shape[1])
        logs: Array = np.where(np.isfinite(kinds), kinds, -_FAR) @ counts.T
        scale = logs.max(axis=1, keepdims=True)
        logs -= scale
        return np.exp(logs, out=logs), scale[:, 0]

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        table = self._on_rule(theta, offset, 0.0)
        likelihood, scale = table.likelihood
        return np.log(np.maximum(table.prior @ likelihood, _LEAST)) + scale[:, None]

    @override
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Work with the smaller of a metric and its complement, to keep its digits."""
        credits = [metric.credit for metric in metrics]
        table = self._on_rule(theta, offset, 3.0 * max(credit.k for credit in credits))
        likelihood, _ = table.likelihood
        low, high = latent_on_nodes(credits, table.rule)
        powers = [side**j for side in (low, high) for j in (1, 2, 3)]
        values = np.concatenate([np.ones((len(low), 1)), *powers], axis=1)
        at_offsets = [
            np.swapaxes(likelihood * prior[..., None], 1, 2) @ values
            for prior in np.moveaxis(table.prior, 1, 0)
        ]
        sums = np.stack(at_offsets, axis=1)
        sums = sums[..., 1:] / np.maximum(sums[..., :1], _LEAST)
        mean, square, cube, rest, rest_square, rest_cube = np.split(sums, 6, axis=-1)
        less = mean <= rest
        variance = np.where(less, square - mean**2, rest_square - rest**2)
        third = np.where(
            less, cube - mean * (3.0 * square - 2.0 * mean**2),
            rest * (3.0 * rest_square - 2.0 * rest**2) - rest_cube,
        )  # fmt: skip
        return np.stack([mean, np.maximum(variance, 0.0), third], axis=-1)

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw p to a sixth of the width of the narrowest density."""
        drawn = np.empty(offset.shape)
        order = np.argsort(self.order(theta), kind="stable")
        step = max(1, _BLOCK // (2000 * offset.shape[1]))
        for start in range(0, len(order), step):
            rows = order[start : start + step]
            table = self._on_rule(theta[rows], offset[rows], 0.0, _FINER)
            likelihood, _ = table.likelihood
            joint = table.prior * np.swapaxes(likelihood[:, :, state], 1, 2)
            place = _draw_column(np.log(joint.reshape(-1, joint.shape[-1]) + _LEAST), rng)
            drawn[rows] = _between(table.rule, place, rng).reshape(len(rows), -1)
        return drawn


def _between(rule: BetaRule, place: Indices, rng: Rng) -> Array:
    """Draw p around points of a rule, up to half way to the next; at an end it stays."""
    logit = rule.log_p - rule.log_q
    inside = np.abs(logit) < 1e10
    gap = np.gradient(logit[inside])
    width = np.zeros(len(logit))
    width[inside] = gap
    shift = (rng.random(len(place)) - 0.5) * width[place]
    return np.asarray(expit(logit[place] + shift))


@dataclass(frozen=True)
class _OnRule:
    """Prior (points, offsets, rule), each row summing to one, and likelihood on a rule of p."""

    rule: BetaRule
    prior: Array
    likelihood: tuple[Array, Array]


@dataclass(frozen=True)
class Categories(Observation):
    """Trials in scored categories; prior trials count as so many trials more.

    Parameters
    ----------
    law : CategoryLaw
    states : States
    """

    law: CategoryLaw
    states: States

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        alpha, evidence = self.law.alpha(theta, offset), self.states.evidence
        logs = -log_rising_factorial_table(alpha.sum(axis=2), evidence.sum(axis=1))
        for category, counts in enumerate(evidence.T):
            if counts.any():
                logs += log_rising_factorial_table(alpha[..., category], counts)
        return np.asarray(logs)

    @override
    def cumulants(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        """Take the third cumulant of a Beta between the lowest and the highest score."""
        alpha = self.law.alpha(theta, offset)
        mean, variance = judged_moments(metrics, alpha[:, :, None] + self.states.evidence)
        ends = np.array([[metric.scores.min(), metric.scores.max()] for metric in metrics]).T
        below, above = np.maximum(mean - ends[0], 0.0), np.maximum(ends[1] - mean, 0.0)
        # Skewness of a Beta of variance v: 2 (b - a) v (total + 1) / (total + 2) / (a b / total).
        total = np.maximum(below * above / np.maximum(variance, _LEAST) - 1.0, 0.0)
        scale = np.maximum(below * above, _LEAST)
        third = 2.0 * variance**2 * (above - below) / scale * (total + 1.0) / (total + 2.0)
        return np.stack([mean, variance, third], axis=-1)

    @override
    def new_cumulants(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        return np.stack(judged_moments(metrics, self.law.alpha(theta, offset)), axis=-1)

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw vectors of probabilities, with a last dimension of categories."""
        alpha = self.law.alpha(theta, offset) + self.states.evidence[state]
        return draw_probabilities(alpha, rng)


@dataclass(frozen=True)
class AllAlike(Observation):
    """Trials of questions that all have the same p, or vector p: complete pooling.

    Parameters
    ----------
    law : Common
    states : States
    judge : JudgeRates, optional
        Of a judge that errs, who marked the trials.
    """

    law: Common
    states: States
    judge: JudgeRates | None = None

    def rates(self, theta: Array) -> Array:
        """Rates at points; (points, columns)."""
        assert self.judge is not None
        return self.judge.rows(self.judge.reported(theta, self.law.fields))

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        logs = self.law.log_chances(theta)
        if self.judge is not None:
            kinds = self.states.counts.shape[1]
            logs = log_kinds(logs[:, 1], logs[:, 0], self.rates(theta), kinds)
        return np.asarray(logs @ self.states.evidence.T)[:, None] + 0.0 * offset[..., None]

    @override
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Return cumulants given p, of which all but the mean are zero."""
        mean = self.new_means(metrics, theta, offset)[:, :, None]
        every = np.repeat(mean, len(self.states), axis=2)
        return np.stack([every, np.zeros_like(every), np.zeros_like(every)], axis=-1)

    @override
    def new_cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        mean = self.new_means(metrics, theta, offset)
        return np.stack([mean, np.zeros_like(mean)], axis=-1)

    @override
    def new_means(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        p = self.law.p(theta)
        mean = np.stack([metric.latent(p) for metric in metrics], axis=-1)[:, None]
        return np.repeat(mean, offset.shape[1], axis=1)

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        return np.repeat(self.law.p(theta)[:, None], len(state), axis=1)
