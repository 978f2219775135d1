"""Observations: the likelihood of a question's trials given p, and posteriors given these trials.

Each computes four things for distinct counts ("states"), at points of the hyperparameters and at
offsets: the log probability of the trials; mean, variance and third cumulant of metrics given the
trials; mean and variance for a new question; and draws of p. Tables have the shape (points,
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

from bayesatk._tools.arrays import PROBABILITY_FLOOR, Array, Indices, Rng, exp_or_zero
from bayesatk.core.numerics.quadrature import BetaRule, beta_rule, resolving_degree
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.marks import MarkCounts, count_chances, log_kinds
from bayesatk.core.pooling.nodes import Nodes, log_rising_factorial_table
from bayesatk.core.pooling.states import States
from bayesatk.core.program.credits import (
    RULE_PARAMETER_FLOOR,
    at_ends,
    credit_cumulants,
    few_trials,
    prior_on_rule,
)
from bayesatk.core.program.laws import CategoryLaw, CommonP, DifficultyLaw
from bayesatk.core.question.beta_binomial import beta_binomial_means, latent_on_nodes
from bayesatk.core.question.categorical import judged_moments
from bayesatk.core.question.dirichlet_multinomial import (
    draw_probabilities,
    log_sequence_probability,
)
from bayesatk.metrics.category_credit import ScoredCredit
from bayesatk.metrics.credit import Credit

_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB
_DRAW_PARAMETER_FLOOR = 5e-324  # the smallest positive number
_CONCENTRATION_PER_TRIAL_MAX = 1000.0  # of a Beta: its likelihood is then that of a point
_LOG_PROBABILITY_FLOOR = -1e10
_MANY_TRIALS = 200  # of a question, from which points share powers of metrics on a rule
_RULE_SHARING_FACTOR = 6  # by which shared rules reduce the floats of a point
_RULE_FLOATS_PER_STATE = 64  # of the likelihood, counted as floats of a table at one offset
_DRAW_RULE_FACTOR = 4  # points where p is drawn from a rule, over those for integrals


class Observation(ABC):
    """Model of trials given p: right or wrong, marked by a judge, or in scored categories.

    Attributes
    ----------
    states : States
        Distinct counts.
    law : DifficultyLaw, CategoryLaw or CommonP
        Distribution of p given the hyperparameters and an offset.
    """

    states: States
    law: DifficultyLaw | CategoryLaw | CommonP

    def floats(self, columns: int) -> int:
        """Return how many floats tables with a number of columns hold at one offset."""
        return columns * len(self.states)

    def order(self, theta: Array) -> Array:
        """Return a sort key by point: blocks of points with similar keys cost less."""
        return np.zeros(len(theta))

    @abstractmethod
    def log_states(self, theta: Array, offset: Array) -> Array:
        """Log probability of each state's trials, in their order; (points, offsets, states)."""

    @abstractmethod
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Three cumulants of metrics given a state; (points, offsets, states, metrics, 3)."""

    @abstractmethod
    def new_cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Mean and variance of metrics of a new question; (points, offsets, metrics, 2)."""

    def new_means(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Return the means of metrics of a new question; (points, offsets, metrics)."""
        return np.asarray(self.new_cumulants(metrics, theta, offset)[..., 0])

    def both(self, metrics: Sequence[Any], theta: Array, offset: Array) -> tuple[Array, Array]:
        """Return `cumulants` and `new_cumulants`, which may cost less in one call."""
        return self.cumulants(metrics, theta, offset), self.new_cumulants(metrics, theta, offset)

    @abstractmethod
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw p of questions given their states (questions,), at offsets (points, questions)."""


@dataclass(frozen=True)
class RightWrong(Observation):
    """Successes out of trials; prior trials, also fractions of them, are added to the counts.

    Parameters
    ----------
    law : DifficultyLaw
    states : States
    """

    law: DifficultyLaw
    states: States

    @cached_property
    def _counts(self) -> States:
        """States of all trials, prior ones included."""
        return self.states.merged()

    @override
    def floats(self, columns: int) -> int:
        """Return fewer where trials are many: points share powers of metrics on a rule."""
        shared = _RULE_SHARING_FACTOR if self._counts.trials.max(initial=0.0) > _MANY_TRIALS else 1
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
        cumulants = self._on_nodes(self.law.nodes(theta, offset), states, metrics, offset)
        return cumulants[:, :, :-1], cumulants[:, :, -1, :, :2].copy()

    def _on_nodes(
        self, nodes: Nodes, states: States, metrics: Sequence[Any], offset: Array
    ) -> Array:
        """Cumulants by node and state; equal metrics are computed once."""
        vectors = [metric.credit.values for metric in metrics]
        distinct = dict(zip(vectors, (metric.credit for metric in metrics), strict=True))
        cumulants = credit_cumulants(nodes, states, list(distinct.values()))
        # States come last in memory.
        values = np.stack([np.swapaxes(cumulant, 1, 2) for cumulant in cumulants])
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

        `place` is the row of each question in the distinct counts (counts, 2): component
        probabilities are computed once for each of these.
        """
        nodes = self.law.nodes(theta, np.zeros((len(theta), 1)))
        wrong, right = counts.T
        betas, component = nodes.alpha.shape[1], np.zeros(place.shape, np.intp)
        if betas > 1 or nodes.atoms.any():
            logs = nodes.log_parts(right, wrong)
            cumulative = np.cumsum(exp_or_zero(logs - logs.max(axis=0)), axis=0)
            u = rng.random(component.shape)
            for chance in cumulative[:-1] / cumulative[-1]:
                component += u >= np.take_along_axis(chance, place, axis=1)
        beta_index = np.minimum(component, betas - 1)
        alpha = np.take_along_axis(nodes.alpha, beta_index, axis=1) + right[place]
        beta = np.take_along_axis(nodes.beta, beta_index, axis=1) + wrong[place]
        p = rng.beta(
            np.maximum(alpha, _DRAW_PARAMETER_FLOOR), np.maximum(beta, _DRAW_PARAMETER_FLOOR)
        )
        return np.asarray(np.where(component < betas, p, component > betas), float)

    def _draw_given(
        self, theta: Array, offset: Array, right: Array, wrong: Array, rng: Rng
    ) -> Array:
        """Draw p given right and wrong trials: a component of the mixture, then p from it."""
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
        p = rng.beta(
            np.maximum(alpha, _DRAW_PARAMETER_FLOOR), np.maximum(beta, _DRAW_PARAMETER_FLOOR)
        )
        return np.where(component < betas, p, component > betas).reshape(offset.shape)


def expected_credits(nodes: Nodes, credits: Sequence[Credit]) -> Array:
    """Return expected credits of a new question given each node; (nodes, credits)."""
    mean = nodes.atoms @ at_ends(credits)
    for share, alpha, beta in nodes.components:
        rows = np.flatnonzero(share)
        expected = beta_binomial_means(credits, alpha[rows], beta[rows])[0]
        mean[rows] += share[rows, None] * expected
    return np.asarray(mean)


def log_components(nodes: Nodes, right: Array, wrong: Array) -> Array:
    """Log joint probability of each component or atom and one state; (nodes, components)."""
    columns = []
    with np.errstate(divide="ignore"):
        for share, alpha, beta in nodes.components:
            counts = np.stack([wrong, right], axis=1)
            columns.append(
                np.log(share) + log_sequence_probability(np.stack([beta, alpha], axis=1), counts)
            )
        for share, contrary in zip(nodes.atoms.T, (right, wrong), strict=True):
            columns.append(np.where(contrary == 0, np.log(share), -np.inf))
    return np.stack(columns, axis=1)


def _draw_column(logs: Array, rng: Rng) -> Indices:
    """Draw a column for each row, by log weights."""
    cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    u = rng.random(len(logs)) * cumulative[:, -1]
    return np.asarray((u[:, None] >= cumulative[:, :-1]).sum(axis=1))


@dataclass(frozen=True)
class Marked(RightWrong):
    r"""Marks of a judge whose sensitivity s and false positive rate f are hyperparameters.

    .. math:: P(\text{marked right} \mid p) = s p + f (1 - p).

    Of n trials an unknown number t is right: a state is a mixture over t of ordinary states,
    weighted by the probability of the marks given t. States count the kinds of trials that
    `bayesatk.core.pooling.marks` tells apart, as the truth of some may be known.

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
        return self.judge.at(theta, self.law.fields)

    both = Observation.both

    @cached_property
    def _whole(self) -> States:
        """States of all trials, prior ones included, where all counts are whole numbers."""
        return replace(self._counts, counts=self._counts.counts.astype(np.int64))

    @cached_property
    def _marks(self) -> MarkCounts:
        return MarkCounts(self._whole.counts)

    def _mark_tables(
        self, theta: Array, marks: MarkCounts
    ) -> Iterator[tuple[tuple[int, int, int], Indices, Array]]:
        """Yield numbers of unknown, wrong and right trials, their states, and mark probabilities.

        The last have the shape (points, right trials among the unknown, states).
        """
        mark_tables = marks.mark_tables(self.rates(theta), once=True)
        tables = zip(marks.states_by_trial_counts, mark_tables, strict=True)
        for (unknown, wrong, right, states), chances in tables:
            yield (unknown, wrong, right), states, np.moveaxis(chances, 0, 1)

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        nodes = self.law.nodes(theta, offset)
        logs = np.empty((*offset.shape, len(self.states)))
        tables = zip(
            self._mark_tables(theta, self._marks), self._marks.right_chances(nodes), strict=True
        )
        for (_, members, chances), (prior, scale) in tables:
            joint = prior.reshape(*offset.shape, -1) @ chances
            scale = scale.reshape(*offset.shape, 1)
            logs[..., members] = np.log(np.maximum(joint, PROBABILITY_FLOOR)) + scale
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
        right, without_offsets = np.empty(offset.shape, np.intp), not offset.any()
        distinct, place = np.unique(state, return_inverse=True)
        marks = MarkCounts(self._whole.counts[distinct])
        for trials, members, chances in self._mark_tables(theta, marks):
            columns = np.flatnonzero(np.isin(place, members))
            table_column = np.searchsorted(members, place[columns])
            distinct_offset = offset[:, columns[:1] if without_offsets else columns]
            prior = count_chances(self.law.nodes(theta, distinct_offset), *trials)[0]
            if not without_offsets:
                chances, table_column = chances[:, :, table_column], np.arange(len(columns))
            prior = np.swapaxes(prior.reshape(len(theta), distinct_offset.shape[1], -1), 1, 2)
            cumulative = np.cumsum(prior * chances + PROBABILITY_FLOOR, axis=1)
            u = rng.random((len(theta), len(columns))) * cumulative[:, -1, table_column]
            right[:, columns] = trials[2] + sum(
                u >= cumulative[:, number, table_column] for number in range(trials[0])
            )
        wrong = self._whole.trials[state].astype(np.intp) - right
        if not without_offsets:
            counted = right.ravel().astype(float), wrong.ravel().astype(float)
            return self._draw_given(theta, offset, *counted, rng)
        keys, distinct_row = np.unique(right * (wrong.max() + 1) + wrong, return_inverse=True)
        counts = np.stack([keys % (wrong.max() + 1), keys // (wrong.max() + 1)], axis=1)
        return self._draw_alike(theta, counts, distinct_row.reshape(right.shape), rng)


@dataclass(frozen=True)
class OnRule(RightWrong):
    """Trials whose probability is any function of p, by quadrature over p.

    On one quadrature rule the prior depends on the node and the likelihood on the state, so tables
    are matrix products. A subclass says the likelihood, `log_given`.
    """

    both = Observation.both

    @abstractmethod
    def log_given(self, theta: Array, log_p: Array, log_q: Array) -> Array:
        """Log probability of each state's trials given p, whose logs and those of 1 - p are given.

        Of the shape (points, values of p, states), or (1, values of p, states) where it does not
        depend on hyperparameters.
        """

    @property
    def degree(self) -> float:
        """Degree in p of the likelihood of the most trials."""
        return float(self._counts.trials.max(initial=1.0))

    @override
    def floats(self, columns: int) -> int:
        """Return a number that allows for the likelihood on a rule of some hundreds of points."""
        return max(16 * columns, _RULE_FLOATS_PER_STATE) * len(self.states)

    def order(self, theta: Array) -> Array:
        """Return the logit icc: points whose Betas are similarly narrow share a rule."""
        width = theta[:, self.law.fields.slices.get("icc", slice(0))]
        return np.asarray(width.min(axis=1, initial=0.0))

    def _on_rule(self, theta: Array, offset: Array, degree: float, finer: int = 1) -> "_Rule":
        nodes = self.law.nodes(theta, offset)
        total = nodes.alpha + nodes.beta
        shrinkage = np.minimum(_CONCENTRATION_PER_TRIAL_MAX * max(self.degree, 1.0) / total, 1.0)
        alpha = np.maximum(nodes.alpha * shrinkage, RULE_PARAMETER_FLOOR)
        beta = np.maximum(nodes.beta * shrinkage, RULE_PARAMETER_FLOOR)
        nodes = replace(nodes, alpha=alpha, beta=beta)
        rule_degree = resolving_degree(alpha, beta).max() + self.degree + degree
        rule = beta_rule(float(alpha.min()), float(beta.min()), float(rule_degree) * finer**2)
        rule, prior = prior_on_rule(nodes, rule)
        rule = rule.with_ends()
        return _Rule(rule, prior.reshape(*offset.shape, -1), self._likelihood(theta, rule))

    def _likelihood(self, theta: Array, rule: BetaRule) -> tuple[Array, Array]:
        """Likelihood (points, rule, states), scaled to a maximum of one, and logs of the scales."""
        logs = self.log_given(theta, rule.log_p, rule.log_q)
        scale = logs.max(axis=1, keepdims=True)
        logs -= scale
        return np.exp(logs, out=logs), scale[:, 0]

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        table = self._on_rule(theta, offset, 0.0)
        likelihood, scale = table.likelihood
        return np.log(np.maximum(table.prior @ likelihood, PROBABILITY_FLOOR)) + scale[:, None]

    @override
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Use the smaller of a metric and its complement, so that no digits cancel."""
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
        sums = sums[..., 1:] / np.maximum(sums[..., :1], PROBABILITY_FLOOR)
        mean, square, cube, complement, complement_square, complement_cube = np.split(
            sums, 6, axis=-1
        )
        is_smaller = mean <= complement
        variance = np.where(is_smaller, square - mean**2, complement_square - complement**2)
        third = np.where(
            is_smaller,
            cube - mean * (3.0 * square - 2.0 * mean**2),
            complement * (3.0 * complement_square - 2.0 * complement**2) - complement_cube,
        )
        return np.stack([mean, np.maximum(variance, 0.0), third], axis=-1)

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw p to within a sixth of the width of the narrowest density."""
        drawn = np.empty(offset.shape)
        order = np.argsort(self.order(theta), kind="stable")
        step = max(1, _MAX_FLOATS_PER_BLOCK // (2000 * offset.shape[1]))
        for start in range(0, len(order), step):
            rows = order[start : start + step]
            table = self._on_rule(theta[rows], offset[rows], 0.0, _DRAW_RULE_FACTOR)
            likelihood, _ = table.likelihood
            joint = table.prior * np.swapaxes(likelihood[:, :, state], 1, 2)
            place = _draw_column(
                np.log(joint.reshape(-1, joint.shape[-1]) + PROBABILITY_FLOOR), rng
            )
            drawn[rows] = _between(table.rule, place, rng).reshape(len(rows), -1)
        return drawn


@dataclass(frozen=True)
class MarkedOnRule(OnRule):
    """Marks of a judge, as `Marked`, of many trials or with discounted prior trials.

    Parameters
    ----------
    judge : JudgeRates
    """

    judge: JudgeRates

    @override
    def log_given(self, theta: Array, log_p: Array, log_q: Array) -> Array:
        counts, rates = self._counts.counts, self.judge.at(theta, self.law.fields)
        kinds = log_kinds(log_p, log_q, rates[:, None], counts.shape[1])
        return np.asarray(np.where(np.isfinite(kinds), kinds, _LOG_PROBABILITY_FLOOR) @ counts.T)


def _between(rule: BetaRule, place: Indices, rng: Rng) -> Array:
    """Draw p within half a step of points of a rule, uniformly in logits; ends stay as they are."""
    logit = rule.log_p - rule.log_q
    is_inside = np.abs(logit) < 1e10
    gap = np.gradient(logit[is_inside])
    width = np.zeros(len(logit))
    width[is_inside] = gap
    shift = (rng.random(len(place)) - 0.5) * width[place]
    return np.asarray(expit(logit[place] + shift))


@dataclass(frozen=True)
class _Rule:
    """A rule of p, the prior (points, offsets, rule) on it, and the scaled likelihood.

    Each row of the prior sums to one.
    """

    rule: BetaRule
    prior: Array
    likelihood: tuple[Array, Array]


@dataclass(frozen=True)
class Categories(Observation):
    """Trials in scored categories; prior trials are added to the counts.

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
        r"""Take the third cumulant of a Beta between the lowest and the highest score.

        With distances a and b of the mean from the two scores, variance v and Beta parameters that
        sum to $T = a b / v - 1$,

        .. math:: \kappa_3 = \frac{2 v (b - a)}{T + 2}.
        """
        alpha = self.law.alpha(theta, offset)
        mean, variance = judged_moments(metrics, alpha[:, :, None] + self.states.evidence)
        ends = np.array([[metric.scores.min(), metric.scores.max()] for metric in metrics]).T
        below, above = np.maximum(mean - ends[0], 0.0), np.maximum(ends[1] - mean, 0.0)
        positive_variance = np.maximum(variance, PROBABILITY_FLOOR)
        # A mean that is an end to double precision has a product of 0, less than its variance.
        total = np.maximum(below * above / positive_variance - 1.0, 0.0)
        third = 2.0 * variance * (above - below) / (total + 2.0)
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
class CompletelyPooled(Observation):
    """Complete pooling: trials of questions that all have the same p, or vector p.

    Parameters
    ----------
    law : CommonP
    states : States
    judge : JudgeRates, optional
        Rates of the judge who marked the trials.
    """

    law: CommonP
    states: States
    judge: JudgeRates | None = None

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        logs = self.law.log_chances(theta)
        if self.judge is not None:
            rates = self.judge.at(theta, self.law.fields)
            logs = log_kinds(logs[:, 1], logs[:, 0], rates, self.states.counts.shape[1])
        return np.asarray(logs @ self.states.evidence.T)[:, None] + 0.0 * offset[..., None]

    @override
    def cumulants(self, metrics: Sequence[Any], theta: Array, offset: Array) -> Array:
        """Return cumulants given p, of which all but the mean are zero."""
        mean = self.new_means(metrics, theta, offset)[:, :, None]
        means = np.repeat(mean, len(self.states), axis=2)
        return np.stack([means, np.zeros_like(means), np.zeros_like(means)], axis=-1)

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
