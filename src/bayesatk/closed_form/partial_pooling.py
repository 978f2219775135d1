"""Closed-form posterior of one system under partial pooling."""

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
from scipy.special import expit

from bayesatk.closed_form.draws import (
    EVALUATIONS,
    correlated_normals,
    draw_p,
    draw_question_means,
    node_interpolator,
    sum_covariance,
)
from bayesatk.closed_form.posterior import (
    Draws,
    ExactDistribution,
    Summary,
    SystemPosterior,
    by_target,
)
from bayesatk.closed_form.question_distributions import question_distributions
from bayesatk.core.beta_binomial import beta_binomial_means
from bayesatk.core.credit import Array, Credit, pass_at
from bayesatk.core.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.hyper_functions import draw_hyperparameters, question_variance
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.population import (
    icc_distribution,
    population_distributions,
)
from bayesatk.core.priors import HyperPrior
from bayesatk.core.states import States
from bayesatk.metrics import Metric


def partial_pooling(
    states: States,
    metrics: Sequence[Metric],
    prior: HyperPrior,
    wanted: Collection[int] | None = None,
    rough: bool = False,
) -> SystemPosterior:
    """Hyperparameters integrated on a grid; questions independent given them."""
    credits = tuple(metric.credit for metric in metrics)
    histograms = CountHistograms.of(states.successes, states.trials, states.count)
    hyper = hyper_posterior(histograms, prior)
    mixture = StateMixture(hyper.heavy(), states, credits)
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
    question = np.minimum(question, population.variance)
    return SystemPosterior(
        by_target(questions.mean, population.mean),
        by_target(questions.variance, population.variance - question),
        by_target(np.zeros_like(question), question),
        lambda: (
            _chosen(hyper, states, credits, wanted, rough),
            population_distributions(hyper, credits),
        ),
        partial(_draw_partial, hyper, mixture, metrics),
        partial(states.question_p, mixture.nodes),
        {
            "mean_p": Summary.on_nodes(
                hyper.weight, hyper.mean, population_distributions(hyper, [pass_at(1)])[0]
            ),
            "icc": Summary.on_nodes(hyper.weight, hyper.icc, icc_distribution(hyper)),
        },
        {"quadrature_error": hyper.error, "log_evidence": hyper.log_evidence},
    )


def _chosen(
    hyper: HyperPosterior,
    states: States,
    credits: tuple[Credit, ...],
    wanted: Collection[int] | None,
    rough: bool,
) -> list[ExactDistribution | None]:
    """Exact distributions of the wanted means over these questions; None for the others."""
    chosen = [i for i in range(len(credits)) if wanted is None or i in wanted]
    found = question_distributions(hyper, states, tuple(credits[i] for i in chosen), rough)
    every: list[ExactDistribution | None] = [None] * len(credits)
    for i, each in zip(chosen, found, strict=True):
        every[i] = each
    return every


def _draw_partial(
    hyper: HyperPosterior,
    mixture: StateMixture,
    metrics: Sequence[Metric],
    size: int,
    rng: np.random.Generator,
    keep_p: bool,
) -> Draws:
    x, y = draw_hyperparameters(hyper, size, rng)
    nodes = Nodes.of(x, y, np.full(size, 1.0 / size))
    population, _ = beta_binomial_means(mixture.credits, nodes.alpha, nodes.beta)
    states = mixture.states
    p = draw_p(states, nodes.alpha, nodes.beta, slice(None), rng) if keep_p else None
    if keep_p or size * states.questions * len(metrics) <= EVALUATIONS:
        questions, _ = draw_question_means(metrics, states, nodes.alpha, nodes.beta, rng, p=p)
    else:
        grid, moments = mixture.nodes, mixture.moments
        total = grid.alpha + grid.beta
        at = np.log(grid.alpha) - np.log(grid.beta), -np.log(total)
        smooth = node_interpolator(*at, moments.node_mean, grid.weight)
        noise = sum_covariance(mixture, int(np.argmax(grid.weight)))
        questions = smooth(x, y) + correlated_normals(noise, size, rng)
    hyperparameters = {"mean_p": expit(x), "icc": expit(y)}
    return Draws(np.stack([questions, population], axis=-1), hyperparameters, p)
