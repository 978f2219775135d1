"""Closed-form posterior of one system under each kind of pooling.

Each builder returns the same `SystemPosterior`: exact means and variances for both targets, exact
distributions where they exist, and a function that draws.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.beta_binomial import beta_binomial_moments
from bayesatk.core.distribution import BetaImage, Quantity, constant
from bayesatk.core.means import mean_distributions
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array, Credit, pass_at
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import (
    correlated_normals,
    draw_p,
    draw_question_means,
    drawn_one_by_one,
    sum_covariance,
)
from bayesatk.posterior.partial_pooling import partial_pooling
from bayesatk.posterior.posterior import (
    Distributions,
    Draws,
    Summary,
    SystemPosterior,
    bootstrap_moments,
    by_target,
)
from bayesatk.priors import BetaPrior, HyperPrior, Pooling, Prior


def system_posterior(
    pooling: Pooling, states: States, metrics: Sequence[Metric], prior: Prior
) -> SystemPosterior:
    """Return the closed-form posterior of one system; metrics that coincide are done once."""
    first: dict[Credit, int] = {}
    for metric in metrics:
        first.setdefault(Credit.of(metric.credit.values), len(first))
    index = np.array([first[Credit.of(metric.credit.values)] for metric in metrics])
    distinct = [metrics[int(np.argmax(index == i))] for i in range(len(first))]
    if isinstance(prior, HyperPrior):
        posterior = partial_pooling(states, distinct, prior)
    else:
        build = _complete if pooling == "complete" else _none
        posterior = build(states, distinct, prior)
    return _repeat(posterior, index)


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
        variance_trial=posterior.variance_trial[index],
        variance_question=posterior.variance_question[index],
        draw=draw,
    )


def _none(states: States, metrics: Sequence[Metric], prior: BetaPrior) -> SystemPosterior:
    """Independent Beta priors; the population by the Bayesian bootstrap over questions."""
    credits = tuple(metric.credit for metric in metrics)
    questions = states.questions
    mixture = StateMixture(Nodes.single(prior.alpha, prior.beta), states, credits)
    state_mean, state_variance = mixture.by_state
    share = states.count / questions
    mean, trial, question = bootstrap_moments(state_mean, state_variance, share, questions)

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        nodes = mixture.nodes.among(np.zeros(size, np.intp))
        p = draw_p(states, nodes, slice(None), rng) if keep_p else None
        if keep_p or drawn_one_by_one(mixture, size * questions * len(metrics)):
            values = draw_question_means(metrics, states, nodes, rng, weighted=True, p=p)
        else:
            within = sum_covariance(mixture, 0)
            centred = np.sqrt(share)[:, None] * (state_mean - mean)
            between = (centred.T @ centred + within * (questions - 1.0)) / (questions + 1.0)
            first = mean + correlated_normals(within, size, rng)
            values = first, first + correlated_normals(between, size, rng)
        return Draws(np.stack(values, axis=-1), {}, p)

    zero = np.zeros_like(trial)
    return SystemPosterior(
        by_target(mean, mean),
        by_target(trial, trial),
        by_target(zero, question),
        lambda: (_one_or_more(mixture, prior), [None] * len(mean)),
        draw,
        mixture.question_p,
    )


def _complete(states: States, metrics: Sequence[Metric], prior: BetaPrior) -> SystemPosterior:
    """One success probability for all questions: both targets are g(p)."""
    credits = tuple(metric.credit for metric in metrics)
    a = prior.alpha + float(states.count @ states.successes)
    b = prior.beta + float(states.count @ (states.trials - states.successes))
    mean, _, variance = (moment[0] for moment in beta_binomial_moments(credits, a, b))
    p_mean, p_sd = a / (a + b), float(np.sqrt(a * b / (a + b + 1.0)) / (a + b))
    distributions = images(credits, a, b, mean, variance)

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        p = rng.beta(a, b, size)
        values = np.stack([metric.latent(p) for metric in metrics], axis=1)
        every = np.repeat(p[:, None], len(states.which), axis=1) if keep_p else None
        return Draws(np.stack([values, values], axis=-1), {"mean_p": p}, every)

    return SystemPosterior(
        by_target(mean, mean),
        by_target(variance, variance),
        np.zeros((len(mean), 2)),
        lambda: (distributions, distributions),
        draw,
        lambda: (np.full(len(states.which), p_mean), np.full(len(states.which), p_sd)),
        {"mean_p": Summary(p_mean, p_sd, partial(BetaImage, pass_at(1).vector, a, b))},
    )


def _one_or_more(mixture: StateMixture, prior: BetaPrior) -> list[Quantity]:
    """Distributions of the means; of one question they are images of a Beta."""
    states = mixture.states
    if states.questions > 1:
        return mean_distributions(mixture)
    a = prior.alpha + float(states.successes[0])
    b = prior.beta + float(states.trials[0] - states.successes[0])
    moments = mixture.moments
    return images(mixture.credits, a, b, moments.overall[0], moments.total_variance)


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
