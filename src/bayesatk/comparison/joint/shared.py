"""Joint draws of all systems of a result, with difficulties that they share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk.core.one_factor.model import Counts
from bayesatk.core.one_factor.observed import Observed
from bayesatk.core.one_factor.posterior import Draws, Fit
from bayesatk.core.one_factor.questions import (
    QuestionMeans,
    observed_population_means,
    population_means,
)
from bayesatk.core.pooling.levels import scaled_scores
from bayesatk.core.pooling.marks import by_mark
from bayesatk.data.scales import RightWrong
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import HyperPrior, LeaderboardPrior
from bayesatk.results.result import Result

_CELLS = 4e7  # systems x questions x draws, at about 10^7 a second


@dataclass(frozen=True)
class Board:
    """Draws of the metrics of all systems.

    Parameters
    ----------
    values : ndarray, shape (targets, draws, systems, metrics)
    draws : Draws
        Of the parameters.
    """

    values: Array
    draws: Draws


def board_of(fit: Result, prior: LeaderboardPrior, systems: list[int], seed: int) -> Board:
    """Draw the parameters of systems in an order, and their metrics."""
    fit.require("shared_difficulty")
    declared = replace(Declared.of_result(fit).among(systems), prior=HyperPrior())
    return drawn_board(declared, [*fit.grid], prior, seed)


def drawn_board(
    declared: Declared, metrics: Sequence[Metric], prior: LeaderboardPrior, seed: int
) -> Board:
    """Draw a board of what systems declare, without a result around it.

    Questions have weights in the means over them, and none in what questions like these are.
    """
    rng, trials = np.random.default_rng(seed), declared.counts.sum(axis=2)
    draws = Fit.of(_counts(declared), prior).draw(rng)
    # 400 draws at least, whatever they take: a probability of 1/2 is then known to .025.
    draws = draws.among(max(400, int(_CELLS / trials.size)))
    right_wrong = isinstance(declared.scale, RightWrong)
    credits = [metric.credit for metric in metrics] if right_wrong else []
    judged = [declared.scale.judged(metric) for metric in metrics]
    right = declared.counts[..., 1]
    means = QuestionMeans(draws.likelihood, right, trials, credits, declared.weight)
    questions = means.draw(draws.theta, [metric.latent for metric in judged], rng)
    if right_wrong:
        population = population_means(credits, draws.likelihood, draws.theta)
    else:
        population = observed_population_means(judged, draws.likelihood, draws.theta)
    return Board(np.stack([questions, population]), draws)


def _counts(declared: Declared) -> Counts:
    """Return what is seen of all systems: counts of right and wrong, or their observations."""
    counts, before = declared.counts, declared.before
    right_wrong = isinstance(declared.scale, RightWrong)
    if right_wrong and declared.judges is None and before is None:
        return Counts.of(counts[..., 1], counts.sum(axis=2))
    models = [declared.model(system) for system in range(len(counts))]
    observations = tuple(model.observation(model.fields("beta")) for model in models)
    trials = (counts if before is None else counts + before).sum(axis=2)
    rates = [_observed_rate(model, declared.scale.scores) for model in models]
    return Counts.of(np.stack(rates) * trials, trials, Observed(observations))


def _observed_rate(model: CountModel, scores: Sequence[float]) -> Array:
    """Return the share of right trials of every question, by the marks, or its mean score."""
    seen: Array = model.states.evidence
    if model.judge is not None:
        seen = by_mark(model.states.counts).astype(float)
    rate = seen @ scaled_scores(scores) / np.maximum(seen.sum(axis=1), 1.0)
    return np.asarray(rate[model.states.which])
