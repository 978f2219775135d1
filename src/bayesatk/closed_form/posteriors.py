"""Closed-form posterior of one system under each kind of pooling.

Each builder returns the same `SystemPosterior`: exact means and variances for both targets, exact
distributions where they exist, and a function that draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayesatk.closed_form.draws import (
    EVALUATIONS,
    correlated_normals,
    draw_p,
    draw_question_means,
    node_interpolator,
    sum_covariance,
)
from bayesatk.core.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.core.credit import Array, Credit, pass_at
from bayesatk.core.distribution import MonotoneImage, constant
from bayesatk.core.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.hyper_functions import draw_hyperparameters, question_variance
from bayesatk.core.mixture import StateMixture, States
from bayesatk.core.moments import posterior_moments
from bayesatk.core.nodes import Nodes
from bayesatk.core.population import (
    icc_distribution,
    noisy_distribution,
    population_distributions,
)
from bayesatk.core.priors import BetaPrior, HyperPrior, Pooling, Prior
from bayesatk.core.sums import mean_distributions
from bayesatk.metrics import Metric

_MANY = 1000  # questions from which a conditional mean is close enough to normal


class ExactDistribution(Protocol):
    """What the core returns: quantiles, a distribution function and a numerical error."""

    @property
    def error(self) -> float:
        """Absolute error of quantiles."""
        ...

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most x."""
        ...

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability 1 - probability."""
        ...


@dataclass(frozen=True)
class Draws:
    """Independent draws: metrics (draws, metrics, target), hyperparameters and prior of p."""

    metrics: NDArray[np.float64]
    hyper: dict[str, Array]
    alpha: Array
    beta: Array


@dataclass(frozen=True)
class Summary:
    """Exact posterior of one number: mean, sd and distribution."""

    mean: float
    sd: float
    distribution: ExactDistribution

    @classmethod
    def on_nodes(cls, weight: Array, values: Array, distribution: ExactDistribution) -> "Summary":
        """Return the summary of a function of the hyperparameters."""
        mean = float(weight @ values)
        return cls(mean, float(np.sqrt(weight @ (values - mean) ** 2)), distribution)


@dataclass(frozen=True)
class SystemPosterior:
    """Exact posterior of one system's metrics.

    Parameters
    ----------
    mean, variance_trial, variance_question : ndarray, shape (metrics, 2)
        For the targets "questions" and "population".
    distributions : pair of lists
        Exact distributions by target; None where only draws give quantiles.
    draw : callable
        ``draw(size, rng)`` returns `Draws`.
    hyper : dict of name -> Summary
        Exact posteriors of the hyperparameters.
    diagnostics : dict
        Numerical quality, for the attributes of the result.
    """

    mean: NDArray[np.float64]
    variance_trial: NDArray[np.float64]
    variance_question: NDArray[np.float64]
    distributions: tuple[Sequence[ExactDistribution], Sequence[ExactDistribution] | None]
    draw: Callable[[int, np.random.Generator], Draws]
    hyper: dict[str, "Summary"] = field(default_factory=dict)
    diagnostics: dict[str, float] = field(default_factory=dict)

    @property
    def sd(self) -> NDArray[np.float64]:
        """Posterior standard deviation."""
        return np.sqrt(self.variance_trial + self.variance_question)


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
        posterior = _partial(states, distinct, prior)
    else:
        posterior = (_complete if pooling == "complete" else _none)(states, distinct, prior)
    return _repeat(posterior, index)


def _repeat(posterior: SystemPosterior, index: NDArray[np.intp]) -> SystemPosterior:
    """Return the posterior with its metrics repeated in the order of ``index``."""

    def draw(size: int, rng: np.random.Generator) -> Draws:
        drawn = posterior.draw(size, rng)
        return replace(drawn, metrics=drawn.metrics[:, index])

    questions, population = posterior.distributions
    return replace(
        posterior,
        mean=posterior.mean[index],
        variance_trial=posterior.variance_trial[index],
        variance_question=posterior.variance_question[index],
        distributions=(
            [questions[i] for i in index],
            None if population is None else [population[i] for i in index],
        ),
        draw=draw,
    )


def _columns(*targets: Array) -> NDArray[np.float64]:
    return np.stack(targets, axis=1)


def _none(states: States, metrics: Sequence[Metric], prior: BetaPrior) -> SystemPosterior:
    """Independent Beta priors; the population by the Bayesian bootstrap over questions."""
    credits = tuple(metric.credit for metric in metrics)
    c, n, questions = states.successes, states.trials, states.questions
    moments = posterior_moments(credits, c + prior.alpha, n - c + prior.beta)
    share = states.count / questions
    mean = share @ moments.mean
    trial = share @ moments.variance / questions
    # Var of a Dirichlet(1, .., 1) weighted mean is the spread over questions / (M + 1).
    spread = share @ (moments.mean - mean) ** 2 + share @ moments.variance - trial
    question = np.maximum(spread, 0.0) / (questions + 1.0)
    mixture = StateMixture(Nodes.single(prior.alpha, prior.beta), states, credits)

    def draw(size: int, rng: np.random.Generator) -> Draws:
        alpha, beta = np.full(size, prior.alpha), np.full(size, prior.beta)
        if size * questions * len(metrics) <= EVALUATIONS:
            values = draw_question_means(metrics, states, alpha, beta, rng, weighted=True)
        else:
            within = sum_covariance(mixture, 0)
            centred = np.sqrt(share)[:, None] * (moments.mean - mean)
            between = (centred.T @ centred + within * (questions - 1.0)) / (questions + 1.0)
            first = mean + correlated_normals(within, size, rng)
            values = first, first + correlated_normals(between, size, rng)
        return Draws(np.stack(values, axis=-1), {}, alpha, beta)

    zero = np.zeros_like(trial)
    return SystemPosterior(
        _columns(mean, mean),
        _columns(trial, trial),
        _columns(zero, question),
        (mean_distributions(mixture), None),
        draw,
    )


def _complete(states: States, metrics: Sequence[Metric], prior: BetaPrior) -> SystemPosterior:
    """One success probability for all questions: both targets are g(p)."""
    credits = tuple(metric.credit for metric in metrics)
    a = prior.alpha + float(states.count @ states.successes)
    b = prior.beta + float(states.count @ (states.trials - states.successes))
    mean, _, variance = (moment[0] for moment in beta_binomial_moments(credits, a, b))
    one = np.ones(1)
    shared = MonotoneImage(pass_at(1).vector, one * a, one * b, one)
    distributions = [
        MonotoneImage(credit.vector, one * a, one * b, one)
        if variance[i] > 0 and (np.diff(credit.vector) >= 0).all()
        else constant(float(mean[i]))
        for i, credit in enumerate(credits)
    ]

    def draw(size: int, rng: np.random.Generator) -> Draws:
        p = rng.beta(a, b, size)
        values = np.stack([metric.latent(p) for metric in metrics], axis=1)
        return Draws(
            np.stack([values, values], axis=-1), {"mean_p": p}, np.full(size, a), np.full(size, b)
        )

    return SystemPosterior(
        _columns(mean, mean),
        _columns(variance, variance),
        np.zeros((len(mean), 2)),
        (distributions, distributions),
        draw,
        {"mean_p": Summary(a / (a + b), float(np.sqrt(a * b / (a + b + 1.0)) / (a + b)), shared)},
    )


def _partial(states: States, metrics: Sequence[Metric], prior: HyperPrior) -> SystemPosterior:
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
        _columns(questions.mean, population.mean),
        _columns(questions.variance, population.variance - question),
        _columns(np.zeros_like(question), question),
        (question_distributions(hyper, states, credits), population_distributions(hyper, credits)),
        lambda size, rng: _draw_partial(hyper, mixture, metrics, size, rng),
        {
            "mean_p": Summary.on_nodes(
                hyper.weight, hyper.mean, population_distributions(hyper, [pass_at(1)])[0]
            ),
            "icc": Summary.on_nodes(hyper.weight, hyper.icc, icc_distribution(hyper)),
        },
        {"quadrature_error": hyper.error, "log_evidence": hyper.log_evidence},
    )


def question_distributions(
    hyper: HyperPosterior, states: States, credits: tuple[Credit, ...]
) -> list[ExactDistribution]:
    """Exact distributions of the means over these questions.

    Where a mean moves more from row to row of the hyperparameter grid than it varies within one,
    the rows are refined; with very many questions, when it is normal given the hyperparameters
    for all practical purposes, it is integrated over their continuum instead.
    """
    everywhere = Nodes.of(hyper.x.ravel(), hyper.y.ravel(), hyper.weight)
    moments = StateMixture(everywhere, states, credits).moments
    smooth: dict[int, ExactDistribution] = {}
    grid = hyper
    for i in range(len(credits)):
        mean = moments.node_mean[:, i].reshape(hyper.x.shape)
        variance = moments.node_variance[:, i].reshape(hyper.x.shape)
        if _is_staircase(hyper, mean, variance):
            if states.questions >= _MANY:
                smooth[i] = noisy_distribution(hyper, mean, variance)
            else:
                grid = hyper.refined(3, 1)
    rest = [i for i in range(len(credits)) if i not in smooth]
    mixture = StateMixture(grid.resolving(states.mean_p), states, tuple(credits[i] for i in rest))
    found = dict(zip(rest, mean_distributions(mixture), strict=True)) if rest else {}
    return [smooth[i] if i in smooth else found[i] for i in range(len(credits))]


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
) -> Draws:
    x, y = draw_hyperparameters(hyper, size, rng)
    nodes = Nodes.of(x, y, np.full(size, 1.0 / size))
    population, _ = beta_binomial_means(mixture.credits, nodes.alpha, nodes.beta)
    if size * mixture.states.questions * len(metrics) <= EVALUATIONS:
        questions, _ = draw_question_means(metrics, mixture.states, nodes.alpha, nodes.beta, rng)
    else:
        grid, moments = mixture.nodes, mixture.moments
        total = grid.alpha + grid.beta
        at = np.log(grid.alpha) - np.log(grid.beta), -np.log(total)
        smooth = node_interpolator(*at, moments.node_mean, grid.weight)
        noise = sum_covariance(mixture, int(np.argmax(grid.weight)))
        questions = smooth(x, y) + correlated_normals(noise, size, rng)
    hyperparameters = {"mean_p": expit(x), "icc": expit(y)}
    return Draws(
        np.stack([questions, population], axis=-1), hyperparameters, nodes.alpha, nodes.beta
    )


def draw_all_p(states: States, draws: Draws, rng: np.random.Generator) -> Array:
    """Draws of every question's success probability; shape (draws, questions)."""
    return draw_p(states, draws.alpha, draws.beta, slice(None), rng)
