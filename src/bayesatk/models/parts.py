"""Draws of metrics from the traces of the models: successes, scored categories, answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.difficulty import Difficulty
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.models.categories import answer_entries
from bayesatk.models.category_draws import answer_draws, category_draws, judged_credits
from bayesatk.models.derived import difficulty_mean, draw_metrics
from bayesatk.priors import AnswerPrior

Variables = dict[str, tuple[tuple[str, ...], NDArray[np.float64]]]


@dataclass(frozen=True)
class Part:
    """Draws of some metrics of the grid, (chain, draw, system, metric, target), and what else."""

    values: NDArray[np.float64]
    index: list[int]
    extra: Variables


_DIMS = ("chain", "draw", "system")


def success_part(
    outcomes: Outcomes, grid: MetricGrid, posterior: xr.Dataset, keep_p: bool,
    rng: np.random.Generator, difficulties: Sequence[Difficulty] | None = None,
) -> Part:  # fmt: skip
    """Metrics of successes, hyperparameters other than difficulties, and p when kept."""
    index = [i for i, metric in enumerate(grid) if not metric.family.on_answers]
    metrics = [metric for metric in grid if not metric.family.on_answers]
    values, p = _metric_draws(outcomes, metrics, posterior, keep_p, rng, difficulties)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    names = ("mu", "sigma") if difficulties else ("mean_p", "mu", "sigma")
    extra: Variables = {
        name: (_DIMS, posterior[name].transpose(*_DIMS).values)
        for name in names
        if name in posterior
    }
    if "correlation" in posterior:
        dims = (*_DIMS, "other")
        extra["correlation"] = (dims, posterior["correlation"].transpose(*dims).values)
    if p is not None:
        extra["p"] = ((*_DIMS, "question"), p.reshape(*shape, *p.shape[1:]))
    return Part(values.reshape(*shape, *values.shape[1:]), index, extra)


def category_part(
    outcomes: Outcomes, grid: MetricGrid, posterior: xr.Dataset, keep_p: bool,
    rng: np.random.Generator, prior_counts: NDArray[np.float64] | None = None,
) -> Part:  # fmt: skip
    """Metrics of scores, probabilities to reach them, hyperparameters, and p when kept."""
    metrics = [metric for metric in grid if not metric.family.on_answers]
    scores = outcomes.dataset["score"].values
    judged = judged_credits([metric.category_credit for metric in metrics], scores)
    values, p = category_draws(outcomes, judged, posterior, rng, prior_counts)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    values = values.reshape(*shape, *values.shape[1:])
    reach = np.moveaxis(values[:, :, :, len(metrics) :], 3, 4)
    extra: Variables = {}
    if reach.size:  # equal scores have none to reach
        extra["reach_probability"] = ((*_DIMS, "target", "reached"), reach)
    hyper: dict[str, tuple[str, ...]] = {"mean_p": (*_DIMS, "category"), "icc": _DIMS}
    for name, dims in hyper.items():
        if name in posterior:
            extra[name] = (dims, posterior[name].transpose(*dims).values)
    if keep_p:
        extra["p"] = ((*_DIMS, "question", "category"), p.reshape(*shape, *p.shape[1:]))
    index = [i for i, metric in enumerate(grid) if not metric.family.on_answers]
    return Part(values[:, :, :, : len(metrics)], index, extra)


def answer_part(
    outcomes: Outcomes, grid: MetricGrid, posterior: xr.Dataset, prior: AnswerPrior,
    rng: np.random.Generator,
) -> Part:  # fmt: skip
    """Votes between answers, exact at the drawn probabilities and simulated."""
    index = [i for i, metric in enumerate(grid) if metric.family.on_answers]
    ks = [metric.k for metric in grid if metric.family.on_answers]
    entries = answer_entries(outcomes, prior)
    values, votes = answer_draws(outcomes, entries, ks, posterior, rng)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    voted = votes.reshape(*shape, *votes.shape[1:])
    return Part(
        values.reshape(*shape, *values.shape[1:]),
        index,
        {"plurality_votes_at_k": ((*_DIMS, "k"), voted)},
    )


def _metric_draws(
    outcomes: Outcomes,
    metrics: Sequence[Metric],
    posterior: xr.Dataset,
    keep_p: bool,
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Metrics (draws, system, metrics, target), and p (draws, system, question) when kept."""
    questions = outcomes.dataset.sizes["question"]
    values, kept = [], []
    for system in range(len(outcomes.systems)):
        difficulty = difficulties[system] if difficulties else None
        if "p" in posterior:
            own = posterior["p"].isel(system=system).transpose("chain", "draw", "question")
            question_draws = partial(_stored, own.values.reshape(-1, questions))
        else:
            assert difficulty is not None  # whose models alone leave p out
            counts = (outcomes.successes.values[system], outcomes.trials.values[system])
            question_draws = partial(_conditional, difficulty, *counts, rng)
        if keep_p:
            all_p = question_draws(slice(None))
            kept.append(all_p)
            question_draws = partial(_stored, all_p)
        population = difficulty_mean(posterior, system, difficulty)
        values.append(draw_metrics(metrics, question_draws, questions, population, rng))
    return np.stack(values, axis=1), np.stack(kept, axis=1) if kept else None


def _stored(values: NDArray[np.float64], part: slice) -> NDArray[np.float64]:
    return values[:, part]


def _conditional(
    difficulty: Difficulty,
    successes: NDArray[np.int64],
    trials: NDArray[np.int64],
    rng: np.random.Generator,
    part: slice,
) -> NDArray[np.float64]:
    return success_p(difficulty, successes[part], trials[part], rng)


def success_p(
    difficulty: Difficulty,
    successes: NDArray[np.int64],
    trials: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draws of p (draws, questions) given the difficulty distribution in each, by conjugacy.

    A question belongs to each Beta and atom with the probability that its counts give it; within a
    Beta its p is Beta again, and an atom is certain.
    """
    alpha, beta = difficulty.alpha, difficulty.beta
    parts = alpha.shape[1]
    if parts == 1 and not (difficulty.never.any() or difficulty.always.any()):
        return rng.beta(alpha + successes, beta + (trials - successes))
    found = np.empty((len(alpha), len(successes)))
    states, which = np.unique(np.stack([successes, trials], axis=1), axis=0, return_inverse=True)
    rows = np.arange(len(alpha))[:, None]
    for state, (c, n) in enumerate(states):
        own = np.flatnonzero(which.ravel() == state)
        a, b = alpha + c, beta + (n - c)
        level = difficulty.parts_given(c, n).cumsum(axis=1)
        u = rng.random((len(alpha), len(own))) * level[:, -1:]
        chosen = (u[..., None] >= level[:, None, :-1]).sum(axis=-1)
        of_beta = np.minimum(chosen, parts - 1)
        p = rng.beta(a[rows, of_beta], b[rows, of_beta])
        found[:, own] = np.where(chosen < parts, p, (chosen > parts).astype(float))
    return found
