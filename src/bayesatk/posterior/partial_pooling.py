"""Closed-form posterior of one system under partial pooling."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.special import expit

from bayesatk.core.beta_binomial import beta_binomial_means
from bayesatk.core.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.hyper_functions import at_draws, draw_hyperparameters, question_variance
from bayesatk.core.means import mean_distributions
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.population import (
    icc_distribution,
    mean_distribution,
    population_distributions,
)
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import (
    correlated_normals,
    draw_p,
    draw_question_means,
    drawn_one_by_one,
    sum_covariance,
)
from bayesatk.posterior.posterior import Draws, Summary, SystemPosterior, by_target
from bayesatk.priors import HyperPrior

_FALLBACK = 8e5  # draws of p that intervals may take where no series settles
_DRAWS = (500, 20_000)  # of a mean, at least and at most
_SEED = 20_260_517  # of these draws: intervals are a function of the data


def partial_pooling(
    states: States, metrics: Sequence[Metric], prior: HyperPrior
) -> SystemPosterior:
    """Hyperparameters integrated on a grid; questions independent given them."""
    credits = tuple(metric.credit for metric in metrics)
    histograms = CountHistograms.of(states.successes, states.trials, states.count)
    hyper = hyper_posterior(histograms, prior)
    mixture = StateMixture(hyper.nodes(), states, credits)
    questions, population = mixture.moments, mixture.population

    def gradient(alpha: Array, beta: Array) -> Array:
        step = 1e-4
        ups = [(alpha * np.exp(step), beta), (alpha, beta * np.exp(step))]
        downs = [(alpha * np.exp(-step), beta), (alpha, beta * np.exp(-step))]
        pairs = zip(ups, downs, strict=True)
        return np.stack(
            [
                (beta_binomial_means(credits, *up)[0] - beta_binomial_means(credits, *down)[0])
                / (2.0 * step)
                for up, down in pairs
            ]
        )

    question = question_variance(mixture.nodes, gradient, states.questions)
    question = np.minimum(question, population.total_variance)
    return SystemPosterior(
        by_target(questions.overall[0], population.overall[0]),
        by_target(questions.total_variance, population.total_variance - question),
        by_target(np.zeros_like(question), question),
        lambda: (
            mean_distributions(
                mixture,
                _fallback(hyper, states, metrics),
                lambda times: StateMixture(hyper.refined(times, 1).nodes(1e-6), states, credits),
            ),
            population_distributions(hyper, credits),
        ),
        partial(_draw_partial, hyper, mixture, metrics),
        partial(states.question_p, mixture.nodes),
        {
            "mean_p": Summary.on_nodes(hyper.weight, hyper.mean, partial(mean_distribution, hyper)),
            "icc": Summary.on_nodes(hyper.weight, hyper.icc, partial(icc_distribution, hyper)),
        },
        {"quadrature_error": hyper.error, "log_evidence": hyper.log_evidence},
    )


def _fallback(
    hyper: HyperPosterior, states: States, metrics: Sequence[Metric]
) -> Callable[[], Array] | None:
    """Draws of the means, made when they are called for; None where they cost too much."""
    size = int(min(_FALLBACK / states.questions, _DRAWS[1]))
    if size < _DRAWS[0]:
        return None

    def draw() -> Array:
        rng = np.random.default_rng(_SEED)
        x, y = hyper.place(*draw_hyperparameters(hyper, size, rng))
        nodes = Nodes.of(x, y, np.full(size, 1.0 / size))
        return draw_question_means(metrics, states, nodes.alpha, nodes.beta, rng)[0]

    return draw


def _draw_partial(
    hyper: HyperPosterior,
    mixture: StateMixture,
    metrics: Sequence[Metric],
    size: int,
    rng: np.random.Generator,
    keep_p: bool,
) -> Draws:
    place = draw_hyperparameters(hyper, size, rng)
    x, y = hyper.place(*place)
    nodes = Nodes.of(x, y, np.full(size, 1.0 / size))
    population, _ = beta_binomial_means(mixture.credits, nodes.alpha, nodes.beta)
    states = mixture.states
    p = draw_p(states, nodes.alpha, nodes.beta, slice(None), rng) if keep_p else None
    if keep_p or drawn_one_by_one(mixture, size * states.questions * len(metrics)):
        questions, _ = draw_question_means(metrics, states, nodes.alpha, nodes.beta, rng, p=p)
    else:
        given = mixture.moments
        logs = np.log(np.maximum(given.variance, 1e-300))
        known = np.concatenate([given.offset, logs], axis=1)
        offset, logs = np.split(at_draws(hyper, mixture.nodes, known, *place), 2, axis=1)
        noise = sum_covariance(mixture, int(np.argmax(given.weight)))
        scale = np.sqrt(np.maximum(np.diag(noise), 1e-300))
        normal = correlated_normals(noise, size, rng) / scale
        questions = given.overall[0] + offset + np.exp(0.5 * logs) * normal
        lowest, highest = zip(
            *((one.vector.min(), one.vector.max()) for one in mixture.credits), strict=True
        )
        questions = np.clip(questions, lowest, highest)
    hyperparameters = {"mean_p": expit(x), "icc": expit(y)}
    return Draws(np.stack([questions, population], axis=-1), hyperparameters, p)
