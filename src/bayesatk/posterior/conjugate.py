"""Posteriors without hyperparameters: of independent questions, and of questions all alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bayesatk.core.engine.bootstrap import bootstrap_moments, mean_moments
from bayesatk.core.engine.distribution import Quantity
from bayesatk.core.pooling.states import Terms
from bayesatk.data.scales import MetricFunction
from bayesatk.metrics.credit import Array
from bayesatk.posterior.draws import correlated_normals, scaled
from bayesatk.posterior.posterior import (
    Distributions,
    Draws,
    Summary,
    SystemPosterior,
    by_target,
)

Means = tuple[Array, Array, Array | None]


@dataclass(frozen=True)
class Questions:
    """Independent questions: the posterior of each, in groups that are alike.

    Parameters
    ----------
    terms, observed : Terms
        Groups of the questions with their weights; of all, and of those that were tried, of which
        the population is estimated.
    mean, variance : ndarray, shape (groups, metrics)
        Of the metrics of a question of each group.
    draw : callable
        ``draw(size, rng, keep_p)`` returns means over questions, their Bayesian bootstrap, and p
        when kept; None where there are too many to draw one by one.
    covariance : callable
        ``covariance(variance, rng)`` of the means over questions, whose variance is given.
    question_p : callable
        Returns mean and sd of every question's probabilities.
    exact : callable, optional
        Returns the distributions of means over questions, where they are known.
    """

    terms: Terms
    observed: Terms
    mean: Array
    variance: Array
    draw: Callable[[int, np.random.Generator, bool], Means | None]
    covariance: Callable[[Array, np.random.Generator], Array]
    question_p: Callable[[], tuple[Array, Array]]
    exact: Callable[[], Sequence[Quantity]] | None = None


def independent(own: Questions, diagnostics: Mapping[str, float]) -> SystemPosterior:
    """Questions with independent priors; the population by the bootstrap of those tried."""
    mean, trial = mean_moments(own.mean, own.variance, own.terms)
    population, total = bootstrap_moments(own.mean, own.variance, own.observed)
    least = np.minimum(trial, total)
    none = [None] * len(mean)

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        drawn = own.draw(size, rng, keep_p)
        if drawn is not None:
            return Draws(np.stack(drawn[:2], axis=-1), {}, drawn[2])
        within = own.covariance(trial, rng)
        state, weight, count = own.observed
        centred = (np.sqrt(count) * weight)[:, None] * (own.mean[state] - population)
        centred /= count @ weight
        between = scaled(centred.T @ centred + within, total - least)
        first = mean + correlated_normals(within, size, rng)
        values = first, first + population - mean + correlated_normals(between, size, rng)
        return Draws(np.stack(values, axis=-1), {})

    return SystemPosterior(
        by_target(mean, population),
        by_target(trial, least),
        by_target(np.zeros_like(trial), total - least),
        lambda: (own.exact() if own.exact else none, none),
        draw,
        own.question_p,
        diagnostics=dict(diagnostics),
    )


def complete(
    questions: int,
    metrics: Sequence[MetricFunction],
    moments: tuple[Array, Array],
    draw_p: Callable[[int, np.random.Generator], Array],
    mean_p: Summary | list[Summary],
    distributions: Distributions,
    diagnostics: Mapping[str, float],
) -> SystemPosterior:
    """One p, or vector of probabilities, for all questions: both targets are the metric of it.

    Parameters
    ----------
    questions : int
    metrics : sequence of MetricFunction
    moments : (ndarray, ndarray)
        Mean and variance of every metric.
    draw_p : callable
        ``draw_p(size, rng)``.
    mean_p : Summary, or list of Summary by category
    distributions, diagnostics
        As of `SystemPosterior`.
    """
    mean, variance = moments

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        p = draw_p(size, rng)
        values = np.stack([metric.latent(p) for metric in metrics], axis=1)
        every = np.repeat(p[:, None], questions, axis=1) if keep_p else None
        return Draws(np.stack([values, values], axis=-1), {"mean_p": p}, every)

    def question_p() -> tuple[Array, Array]:
        each = [mean_p] if isinstance(mean_p, Summary) else mean_p
        table = np.array([[one.mean, one.sd] for one in each]).T
        rows = table[:, 0] if isinstance(mean_p, Summary) else table
        found = np.repeat(rows[:, None], questions, axis=1)
        return found[0], found[1]

    return SystemPosterior(
        by_target(mean, mean),
        by_target(variance, variance),
        np.zeros((len(mean), 2)),
        lambda: distributions,
        draw,
        question_p,
        {"mean_p": mean_p},
        dict(diagnostics),
    )
