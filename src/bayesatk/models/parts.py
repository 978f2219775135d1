"""Draws of metrics from the traces of the models: of counts, and of answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import binom

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import Scale
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.derived import QuestionDraws, draw_metrics, population_mean
from bayesatk.models.votes import answer_draws, answer_entries
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.likelihood import RATES

Variables = dict[str, tuple[tuple[str, ...], NDArray[np.float64]]]


@dataclass(frozen=True)
class Part:
    """Draws of some metrics of the grid, (chain, draw, system, metric, target), and what else."""

    values: NDArray[np.float64]
    index: list[int]
    extra: Variables


_DIMS = ("chain", "draw", "system")
_HYPER = {
    "sensitivity": (),
    "false_positive_rate": (),
    "icc": (),
    "mu": (),
    "sigma": (),
    "correlation": ("other",),
}  # with their further dims


def count_part(
    outcomes: Outcomes,
    grid: MetricGrid,
    posterior: xr.Dataset,
    scale: Scale,
    keep_p: bool,
    rng: np.random.Generator,
    prior_counts: NDArray[np.float64] | None = None,
    difficulties: Sequence[Difficulty] | None = None,
) -> Part:
    """Metrics that judge trials, probabilities to reach scores, hyperparameters, and p when kept.

    Parameters
    ----------
    outcomes : Outcomes
    grid : MetricGrid
    posterior : xarray.Dataset
        Draws of p, or of hyperparameters, by system.
    scale : Scale
    keep_p : bool
    rng : numpy.random.Generator
    prior_counts : ndarray, shape (system, question, category), optional
        Prior trials, discounted.
    difficulties : sequence of Difficulty, optional
        One for each system, of all draws, where questions have one.
    """
    metrics = [scale.judged(one) for one in grid.judged.values()] + list(scale.reaching())
    counts = scale.counts(outcomes)
    values, kept = [], []
    for system in range(len(outcomes.systems)):
        own, difficulty = posterior.isel(system=system), difficulties and difficulties[system]
        before = 0 if prior_counts is None else prior_counts[system]
        draws = question_p(own, counts[system] + before, difficulty or None, rng)
        if keep_p:
            kept.append(draws(slice(None)))
            draws = partial(_stored, kept[-1])
        population = None  # weighted questions are drawn anew, with their weights
        if outcomes.weight is None:
            population = population_mean(posterior, system, difficulty or None)
        tried, weight = (counts[system] + before).any(axis=-1), outcomes.weight
        drawn = draw_metrics(metrics, draws, counts.shape[1], population, rng, weight, tried)
        values.append(drawn)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    found = np.stack(values, axis=1)
    found, reach = np.split(found.reshape(*shape, *found.shape[1:]), [len(grid.judged)], axis=3)
    extra: Variables = {}
    if reach.size:  # equal scores have none to reach
        reach = np.moveaxis(reach, 3, 4)
        extra["reach_probability"] = ((*_DIMS, "target", "reached"), reach)
    for name, axes in {"mean_p": scale.axes, **_HYPER}.items():
        if name in posterior:
            dims = (*_DIMS, *axes)
            extra[name] = (dims, posterior[name].transpose(*dims).values)
    if keep_p:
        p = np.stack(kept, axis=1)
        extra["p"] = ((*_DIMS, "question", *scale.axes), p.reshape(*shape, *p.shape[1:]))
    return Part(found, list(grid.judged), extra)


def question_p(
    own: xr.Dataset,
    counts: NDArray[Any],
    difficulty: Difficulty | None,
    rng: np.random.Generator,
) -> QuestionDraws:
    """Draws of p of some questions: as stored, or from their conditional given hyperparameters.

    Parameters
    ----------
    own : xarray.Dataset
        Draws of one system.
    counts : ndarray, shape (questions, categories)
        Observed and prior trials.
    difficulty : Difficulty, optional
        Of all draws, where questions are right or wrong and differ.
    rng : numpy.random.Generator
    """
    if "p" in own:
        p = own["p"].transpose("chain", "draw", "question", ...).values
        return partial(_stored, p.reshape(-1, *p.shape[2:]))
    if difficulty is not None:
        trials = counts.sum(axis=1)
        if "sensitivity" in own:
            rates = np.stack([flat_draws(own[name]) for name in RATES], axis=1)
            return lambda part: marked_p(difficulty, rates, counts[part, 1], trials[part], rng)
        return lambda part: success_p(difficulty, counts[part, 1], trials[part], rng)
    return lambda part: _category_p(own, counts[part], rng)


def _stored(values: NDArray[np.float64], part: slice) -> NDArray[np.float64]:
    return values[:, part]


def _category_p(
    own: xr.Dataset, counts: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draws of vectors of probabilities; of one p, or vector, for all where there is no icc."""
    mean = flat_draws(own["mean_p"])
    if "icc" not in own:
        return np.repeat(mean[:, None], len(counts), axis=1)
    icc = flat_draws(own["icc"])
    alpha = (mean * ((1.0 - icc) / icc)[:, None])[:, None] + counts
    gamma = rng.standard_gamma(alpha)
    return np.asarray(gamma / gamma.sum(axis=-1, keepdims=True))


def answer_part(
    outcomes: Outcomes, grid: MetricGrid, posterior: xr.Dataset, prior: AnswerPrior,
    rng: np.random.Generator,
) -> Part:  # fmt: skip
    """Votes between answers, exact at the drawn probabilities and simulated."""
    ks = [metric.k for metric in grid.voted.values()]
    entries = answer_entries(outcomes, prior)
    values, votes = answer_draws(outcomes, entries, ks, posterior, rng)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    voted = votes.reshape(*shape, *votes.shape[1:])
    return Part(
        values.reshape(*shape, *values.shape[1:]),
        list(grid.voted),
        {"plurality_votes_at_k": ((*_DIMS, "k"), voted)},
    )


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


def marked_p(
    difficulty: Difficulty,
    rates: NDArray[np.float64],
    marks: NDArray[np.int64],
    trials: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draws of p (draws, questions) given marks of a judge: the right trials first, then p.

    Parameters
    ----------
    difficulty : Difficulty
    rates : ndarray, shape (draws, 2)
        Sensitivity and false positive rate.
    marks, trials : ndarray of int, shape (questions,)
    rng : numpy.random.Generator
    """
    found = np.empty((len(rates), len(marks)))
    states, which = np.unique(np.stack([marks, trials], axis=1), axis=0, return_inverse=True)
    for state, (c, n) in enumerate(states):
        own, every = np.flatnonzero(which.ravel() == state), np.arange(n + 1)
        prior = np.exp(difficulty.log_counts(every, np.full(n + 1, n)))
        upto = np.cumsum(prior * _chances(rates, c, n), axis=1)
        u = rng.random((len(rates), len(own))) * upto[:, -1:]
        right = (u[..., None] >= upto[:, None, :-1]).sum(axis=-1)
        for t in np.unique(right):
            draw, place = np.nonzero(right == t)
            one = success_p(difficulty.among(draw), np.array([t]), np.array([n]), rng)
            found[draw, own[place]] = one[:, 0]
    return found


def _chances(rates: NDArray[np.float64], marks: int, trials: int) -> NDArray[np.float64]:
    """Probability of marks given each number of right trials, (draws, trials + 1)."""
    s, f = rates[:, :1], rates[:, 1:]
    of_right = np.arange(marks + 1)
    found = [
        np.sum(binom.pmf(of_right, t, s) * binom.pmf(marks - of_right, trials - t, f), axis=1)
        for t in range(trials + 1)
    ]
    return np.stack(found, axis=1)
