"""Closed-form posterior of one system under partial pooling."""

from collections.abc import Collection, Sequence
from dataclasses import replace
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
from bayesatk.core.beta_binomial import beta_binomial_means
from bayesatk.core.credit import Array, Credit, pass_at
from bayesatk.core.distribution import Distribution, MonotoneImage, tabulated
from bayesatk.core.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.hyper_functions import draw_hyperparameters, question_variance
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.population import (
    icc_distribution,
    noisy_distribution,
    population_distributions,
)
from bayesatk.core.priors import HyperPrior
from bayesatk.core.states import States
from bayesatk.core.sums import mean_distributions
from bayesatk.metrics import Metric

_LEFT_OUT, _ROUGHLY = 1e-8, 1e-4  # probability of nodes that a distribution does without
_STEP, _STEP_OF_ONE = 0.0425, 0.02  # of the grid where means are narrow given a node
_ONE_QUESTION = 1e-6  # error of quantiles of one question
_MANY = 1000  # questions from which a conditional mean is close enough to normal
_SKEW = 0.01  # of the whole, half of it, beyond which that will not do


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


def question_distributions(
    hyper: HyperPosterior, states: States, credits: tuple[Credit, ...], rough: bool = False
) -> list[ExactDistribution]:
    """Exact distributions of the means over these questions.

    Where a mean moves more from row to row of the hyperparameter grid than it varies within one,
    the rows are refined; with very many questions, when it is normal given the hyperparameters
    for all practical purposes, it is integrated over their continuum instead (where it is not, all
    of them right, the stated error is as wide as the interval). Where widths of intervals to about
    1e-3 will do, ask for them roughly.
    """
    everywhere = Nodes.of(hyper.x.ravel(), hyper.y.ravel(), hyper.weight)
    moments = StateMixture(everywhere, states, credits).moments
    smooth: dict[int, Distribution] = {}
    grid = hyper
    for i in range(len(credits)):
        mean = moments.node_mean[:, i].reshape(hyper.x.shape)
        variance = moments.node_variance[:, i].reshape(hyper.x.shape)
        if _is_staircase(hyper, mean, variance):
            if states.questions < _MANY:
                grid = hyper.refined(3, 1)
                continue
            smooth[i] = noisy_distribution(hyper, mean, variance)
            ends = np.minimum(moments.node_mean[:, i], moments.node_complement[:, i])
            if not _is_normal(hyper, ends, variance):
                smooth[i] = _on_the_scale(smooth[i], credits[i])
    one = states.questions == 1.0
    rest = [i for i in range(len(credits)) if i not in smooth]
    left_out = _ROUGHLY if rough else _LEFT_OUT
    nodes = grid.resolving(states.mean_p, left_out, _STEP_OF_ONE if one else _STEP)
    mixture = StateMixture(nodes, states, tuple(credits[i] for i in rest))
    found = dict(zip(rest, mean_distributions(mixture, rough), strict=True)) if rest else {}
    if one:
        found = {
            i: replace(each, error=_ONE_QUESTION) if isinstance(each, MonotoneImage) else each
            for i, each in found.items()
        }
    return [smooth[i] if i in smooth else found[i] for i in range(len(credits))]


def _on_the_scale(known: Distribution, credit: Credit) -> Distribution:
    """Cut a distribution at the ends of its scale; only its order of magnitude is known."""
    ends = float(credit.vector.min()), float(credit.vector.max())
    cut = tabulated(known.x, known.cdf_values, known.pdf, ends)
    return replace(cut, error=float(np.ptp(cut.quantile([0.025, 0.975]))))


def _is_normal(hyper: HyperPosterior, ends: Array, variance: Array) -> bool:
    """Whether means are normal enough given a node: far from both ends, or hardly uncertain.

    Near an end a mean is about as skewed as twice its sd in distances to it; what skews the whole
    is that times the cube of its share of the whole's sd.
    """
    sd = np.sqrt(variance.ravel())
    total = hyper.weight @ variance.ravel() + hyper.weight @ (ends - hyper.weight @ ends) ** 2
    skew = np.minimum(sd / np.maximum(ends, 1e-300), 1.0) * (sd / np.sqrt(total)) ** 3
    return float(hyper.weight @ skew) < _SKEW


def _is_staircase(hyper: HyperPosterior, mean: Array, variance: Array) -> bool:
    """Whether neighbouring rows of the grid are further apart than they are wide."""
    weight = hyper.weight.reshape(mean.shape)
    row_weight = weight.sum(axis=1)
    kept = row_weight > 1e-6
    share = weight[kept] / row_weight[kept, None]
    centre = (share * mean[kept]).sum(axis=1)
    between = (share * (mean[kept] - centre[:, None]) ** 2).sum(axis=1)
    width = np.sqrt(between + (share * variance[kept]).sum(axis=1))
    apart = np.abs(np.diff(centre)) > 1.1 * np.minimum(width[1:], width[:-1])
    return bool(apart.any())


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
