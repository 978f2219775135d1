"""Marks of a judge that errs without hyperparameters: one p for all questions, or one each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import betaln, logsumexp

from bayesatk.core.engine.bootstrap import bootstrap_moments, mean_moments
from bayesatk.core.engine.distribution import Distribution, Empirical, Quantity, monotone_slopes
from bayesatk.core.engine.mean_distributions import mean_distributions
from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.numerics.quadrature import BetaRule, beta_rule
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling import leave_one_out
from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.marks import Rates
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.moments import latent_on_nodes
from bayesatk.metrics.credit import Array, Credit, pass_at
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import (
    correlated_normals,
    draw_p,
    draw_question_means,
    drawn_one_by_one,
    sum_covariance,
)
from bayesatk.posterior.judge_draws import rate_summaries
from bayesatk.posterior.posterior import (
    Distributions,
    Draws,
    Summary,
    SystemPosterior,
    by_target,
)
from bayesatk.priors import BetaPrior
from bayesatk.results.schema import RATES

_DENSER = 64.0  # times the degree of a rule: points eight times as close, for distributions
_STANDING = 2000  # points of p and the rates that stand for all
_LEAST = 1e-300


@dataclass(frozen=True)
class OneForAll:
    """One success probability for all questions: its posterior with the rates, on points.

    Parameters
    ----------
    rule : BetaRule
        Points of p.
    joint : ndarray, shape (points of p, points of the rates)
        Sums to one.
    log_evidence : float
        Of all marks in their order.
    judge : JudgeRates
    """

    rule: BetaRule
    joint: Array
    log_evidence: float
    judge: JudgeRates

    @classmethod
    def of(cls, states: States, prior: BetaPrior, judge: JudgeRates) -> "OneForAll":
        """Integrate p and the rates."""
        rule, logs = cls._logs(states, prior, judge.rates, _DENSER)
        total = float(logsumexp(logs))
        return cls(rule, np.exp(logs - total), total, judge)

    @staticmethod
    def _logs(
        states: States, prior: BetaPrior, rates: Rates, denser: float
    ) -> tuple[BetaRule, Array]:
        """Log probability of p, rates and marks on the points of a rule."""
        right = float(states.count @ states.successes)
        wrong = float(states.count @ states.trials) - right
        a, b = prior.alpha, prior.beta
        rule = beta_rule(a, b, denser * (a + b + right + wrong))
        p = np.exp(rule.log_p)[:, None]
        s, f = rates.values.T
        mark = f + (s - f) * p
        other = (1.0 - f) * np.exp(rule.log_q)[:, None] + (1.0 - s) * p
        logs = right * np.log(np.maximum(mark, _LEAST)) + wrong * np.log(np.maximum(other, _LEAST))
        own = a * rule.log_p + b * rule.log_q + rule.log_weight - betaln(a, b)
        return rule, logs + own[:, None] + rates.log_weight

    @classmethod
    def log_likelihood_of_rates(cls, states: States, prior: BetaPrior, rates: Rates) -> Array:
        """Log probability of the marks given the rates; (points,)."""
        logs = cls._logs(states, prior, rates, 1.0)[1]
        return np.asarray(logsumexp(logs, axis=0) - rates.log_weight)

    @property
    def weight(self) -> Array:
        """Probability of the points of p."""
        return np.asarray(self.joint.sum(axis=1))

    @property
    def nodes(self) -> Nodes:
        """Points of p and the rates that stand for all, at equal steps of probability."""
        upto = np.cumsum(self.joint.ravel())
        place = (np.arange(_STANDING) + 0.5) / _STANDING * upto[-1]
        chosen, point = np.divmod(np.searchsorted(upto, place), self.joint.shape[1])
        logit = (self.rule.log_p - self.rule.log_q)[chosen]
        weight = np.full(_STANDING, 1.0 / _STANDING)
        nodes = Nodes.of(logit, np.full(_STANDING, -np.inf), weight)
        return replace(nodes, rates=self.judge.rates.values[point])

    def fit(self, metrics: Sequence[Metric], questions: int) -> SystemPosterior:
        """Return the posterior of metrics: both targets are the metric of p."""
        credits = tuple(metric.credit for metric in metrics)
        value, rest = latent_on_nodes((*credits, pass_at(1)), self.rule)
        mean, other = self.weight @ value, self.weight @ rest
        gap = np.where(mean <= 0.5, value - mean, other - rest)
        variance = self.weight @ gap**2
        laws = [self._law(*each) for each in zip(credits, value.T, strict=False)]
        p = Summary(float(mean[-1]), float(np.sqrt(variance[-1])),
                    partial(self._law, pass_at(1), value[:, -1]))  # fmt: skip
        trial = by_target(variance[:-1], variance[:-1])
        return SystemPosterior(
            by_target(mean[:-1], mean[:-1]), trial, np.zeros_like(trial),
            lambda: (laws, laws), partial(self._draw, metrics, questions),
            lambda: (np.full(questions, p.mean), np.full(questions, p.sd)),
            {"mean_p": p, **rate_summaries(self.judge)}, method="quadrature",
            judge_share=self._judge_share(value[:, :-1], variance[:-1]),
        )  # fmt: skip

    def _judge_share(self, value: Array, variance: Array) -> Array:
        """Share of the variance that is due to the rates."""
        probability = self.joint.sum(axis=0)
        given = (self.joint.T @ value) / np.maximum(probability, _LEAST)[:, None]
        between = probability @ (given - probability @ given) ** 2
        share = between / np.maximum(variance, _LEAST)
        return by_target(share, share)

    def _law(self, credit: Credit, value: Array) -> Quantity:
        """Distribution of a credit of p."""
        weight, place = self.weight, np.arange(len(value), dtype=float)
        if not (np.diff(credit.vector) >= 0.0).all() or np.ptp(credit.vector) == 0.0:
            return Empirical(value, weight)
        # Splines over the points of the rule, along which all of this is smooth.
        upto = np.clip(CubicSpline(place, weight).antiderivative()(place), 0.0, 1.0)
        density = weight / np.maximum(CubicSpline(place, value)(place, 1), _LEAST)
        apart = np.append(True, np.diff(value) > 0.0)
        x, upto = value[apart], np.maximum.accumulate(upto[apart])
        return Distribution(x, upto, monotone_slopes(x, upto, density[apart]))

    def _draw(
        self, metrics: Sequence[Metric], questions: int, size: int, rng: np.random.Generator,
        keep_p: bool,
    ) -> Draws:  # fmt: skip
        point, logit = self.judge.draw(size), self.rule.log_p - self.rule.log_q
        x = np.empty(size)
        for one in np.unique(point):
            own, weight = np.flatnonzero(point == one), self.joint[:, one]
            upto = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
            x[own] = np.interp(rng.random(len(own)), upto, logit)
        p = 1.0 / (1.0 + np.exp(-x))
        values = np.stack([metric.latent(p) for metric in metrics], axis=1)
        hyper = {"mean_p": p, **dict(zip(RATES, self.judge.rates.values[point].T, strict=True))}
        every = np.repeat(p[:, None], questions, axis=1) if keep_p else None
        return Draws(np.stack([values, values], axis=-1), hyper, every)

    def predictive(self, states: States) -> Predictive:
        """Log predictive probabilities of a question's marks."""
        heavy = self.joint > 1e-12 * self.joint.max()
        place, point = np.nonzero(heavy)
        s, f = self.judge.rates.values[point].T
        mark = f + (s - f) * np.exp(self.rule.log_p[place])
        log_mark, log_other = np.log(np.maximum(mark, _LEAST)), np.log1p(-np.minimum(mark, 1.0))
        wrong = states.trials - states.successes
        each = np.outer(log_mark, states.successes) + np.outer(log_other, wrong) + states.log_ways
        logs = np.log(self.joint[heavy]) + self.log_evidence
        return leave_one_out.of_points(logs, each)


def unpooled(
    states: States, prior: BetaPrior, judge: JudgeRates, metrics: Sequence[Metric]
) -> SystemPosterior:
    """Questions with independent Beta priors, given the rates; the population by the bootstrap."""
    points, credits = len(judge.rates), tuple(metric.credit for metric in metrics)
    alpha, beta = (np.full(points, one) for one in (prior.alpha, prior.beta))
    fixed = Nodes.betas(alpha, beta, judge.probability)
    mixture = StateMixture(replace(fixed, rates=judge.rates.values), states, credits)
    each = np.zeros((2, points, len(states), len(credits)))
    for nodes, some, found in mixture.cumulants(2):
        each[0][np.ix_(nodes, some)], each[1][np.ix_(nodes, some)] = found[0], found[2]
    number, weight = states.questions, judge.probability
    own, trial = mean_moments(each[0], each[1], states.terms)
    new, total = bootstrap_moments(each[0], each[1], states.observed)
    (mean, between), (population, shift) = (total_moments(weight, means) for means in (own, new))
    within, overall = weight @ trial + between, weight @ total + shift
    least, common = np.minimum(within, overall), np.minimum(trial, total)

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        point = judge.draw(size)
        nodes = mixture.nodes.among(point)
        hyper = dict(zip(RATES, judge.rates.values[point].T, strict=True))
        p = draw_p(states, nodes, slice(None), rng) if keep_p else None
        if keep_p or drawn_one_by_one(mixture, size * number * len(metrics)):
            both = draw_question_means(metrics, states, nodes, rng, weighted=True, p=p)
            return Draws(np.stack(both, axis=-1), hyper, p)
        noise = sum_covariance(mixture, int(np.argmax(weight)))
        scale = np.sqrt(np.maximum(np.diag(noise), _LEAST))
        normal = correlated_normals(noise, 2 * size, rng) / scale
        first = own[point] + np.sqrt(trial[point]) * normal[:size]
        more = np.sqrt((total - common)[point]) * normal[size:]
        second = new[point] + np.sqrt(common[point]) * normal[:size] + more
        return Draws(np.stack([first, second], axis=-1), hyper)

    def exact() -> Distributions:
        return mean_distributions(mixture), [None] * len(mean)

    return SystemPosterior(
        by_target(mean, population), by_target(within, least),
        by_target(np.zeros_like(mean), overall - least), exact, draw, mixture.question_p,
        rate_summaries(judge), method="quadrature",
        judge_share=by_target(between / within, shift / overall),
    )  # fmt: skip
