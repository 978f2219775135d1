"""Closed-form posterior of one system's right and wrong under each kind of pooling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.distribution import BetaImage, Quantity, constant
from bayesatk.core.engine.mean_distributions import mean_distributions
from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.pooling import leave_one_out
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.question_posteriors import one_for_all
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.metrics.credit import Array, Credit, pass_at
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.conjugate import Means, Questions, complete, independent
from bayesatk.posterior.draws import (
    draw_p,
    draw_question_means,
    drawn_one_by_one,
    sum_covariance,
)
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.partial_pooling import partial_pooling
from bayesatk.posterior.pooled import Pooled
from bayesatk.posterior.posterior import Distributions, Draws, Summary, SystemPosterior


@dataclass(frozen=True)
class RightWrongModel(CountModel):
    """Successes out of trials; exact distributions by quadrature of Betas."""

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior of metrics; those that coincide are done once."""
        if self.states.prior.any():  # whose trials are trials to the posterior, if fractions
            return replace(self, states=self.states.merged()).fit(metrics)

        def fit(distinct: Sequence[Metric]) -> SystemPosterior:
            if self.pooling == "partial":
                return partial_pooling(self.states, distinct, self.prior)
            if self.pooling == "complete":
                return self._complete(distinct)
            return independent(self._questions(distinct), {})

        return one_of_each(metrics, fit)

    @cached_property
    def nodes(self) -> Nodes:
        """What p of every question is drawn from, with probabilities: the posterior over nodes."""
        if self.states.prior.any():
            return replace(self, states=self.states.merged()).nodes
        if self.pooling == "partial":
            return Pooled.of(self.states, (), self.prior).mixture.nodes
        b, a = self.alpha.tolist()
        if self.pooling == "none":
            return Nodes.single(a, b)
        wrong, right = (self.states.count @ self.states.counts).tolist()
        return one_for_all(a + right, b + wrong)

    def log_states(self, nodes: Nodes) -> Array:
        """Log probability of a question's trials in their order; (nodes, states)."""
        states = self.states
        return nodes.log_likelihood(states.successes, states.trials - states.successes)

    def partial_predictive(self) -> Predictive:
        """Predict questions that are left out, difficulty families averaged."""
        return leave_one_out.partial(self.states, self.prior)

    def partial_evidence(self) -> float:
        """Log evidence, difficulty families averaged."""
        return leave_one_out.partial_evidence(self.states, self.prior)

    def _complete(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """One success probability for all questions."""
        states, credits = self.states, tuple(metric.credit for metric in metrics)
        b, a = (self.alpha + states.count @ states.counts).tolist()
        mean, _, variance = (moment[0] for moment in beta_binomial_moments(credits, a, b))
        sd = float(np.sqrt(a * b / (a + b + 1.0)) / (a + b))
        summary = Summary(a / (a + b), sd, partial(BetaImage, pass_at(1).vector, a, b))
        exact = images(credits, a, b, mean, variance)
        return complete(
            len(states.which), metrics, (mean, variance), lambda size, rng: rng.beta(a, b, size),
            summary, (exact, exact), {},
        )  # fmt: skip

    def _questions(self, metrics: Sequence[Metric]) -> Questions:
        """Questions with independent Beta priors."""
        states, (b, a) = self.states, self.alpha.tolist()
        credits = tuple(metric.credit for metric in metrics)
        mixture = StateMixture(Nodes.single(a, b), states, credits)

        def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Means | None:
            nodes = mixture.nodes.among(np.zeros(size, np.intp))
            p = draw_p(states, nodes, slice(None), rng) if keep_p else None
            evaluations = size * states.questions * len(metrics)
            if not (keep_p or drawn_one_by_one(mixture, evaluations)):
                return None
            return *draw_question_means(metrics, states, nodes, rng, weighted=True, p=p), p

        def exact() -> Sequence[Quantity]:
            if states.questions > 1:
                return mean_distributions(mixture)
            wrong, right = states.counts[0].tolist()
            moments = mixture.moments
            return images(credits, a + right, b + wrong, moments.overall[0], moments.total_variance)

        return Questions(
            states.terms, states.observed, *mixture.by_state, draw,
            lambda variance, rng: sum_covariance(mixture, 0), mixture.question_p, exact,
        )  # fmt: skip


def one_of_each(
    metrics: Sequence[Metric], fit: Callable[[Sequence[Metric]], SystemPosterior]
) -> SystemPosterior:
    """Return the posterior of metrics, of which those that coincide are fitted once."""
    first: dict[Credit, int] = {}
    for metric in metrics:
        first.setdefault(Credit.of(metric.credit.values), len(first))
    index = np.array([first[Credit.of(metric.credit.values)] for metric in metrics])
    distinct = [metrics[int(np.argmax(index == i))] for i in range(len(first))]
    return _repeat(fit(distinct), index)


def _repeat(posterior: SystemPosterior, index: NDArray[np.intp]) -> SystemPosterior:
    """Return the posterior with its metrics repeated in the order of ``index``."""

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        drawn = posterior.draw(size, rng, keep_p)
        return replace(drawn, metrics=drawn.metrics[:, index])

    def distributions() -> Distributions:
        questions, population = posterior.distributions()
        return [questions[i] for i in index], [population[i] for i in index]

    sd_under = posterior.sd_under
    return replace(
        posterior,
        sd_under=None if sd_under is None else lambda prior: sd_under(prior)[index],
        distributions=cache(distributions),
        mean=posterior.mean[index],
        judge_share=None if posterior.judge_share is None else posterior.judge_share[index],
        variance_trial=posterior.variance_trial[index],
        variance_question=posterior.variance_question[index],
        draw=draw,
    )


def images(
    credits: Sequence[Credit],
    a: float,
    b: float,
    mean: Array,
    variance: Array,
) -> list[Quantity]:
    """Distributions of credits of one ``p ~ Beta(a, b)``."""
    found: list[Quantity] = []
    for i, credit in enumerate(credits):
        if not variance[i] > 0.0:
            found.append(constant(float(mean[i])))
        elif (np.diff(credit.vector) >= 0.0).all():
            found.append(BetaImage(credit.vector, a, b))
        else:
            one = States.of([0], [0])
            node = Nodes.single(a, b)
            found.extend(mean_distributions(StateMixture(node, one, (credit,))))
    return found
