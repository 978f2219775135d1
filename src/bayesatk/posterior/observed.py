"""Observed values of metrics: unbiased, by question and in means over questions."""

from collections.abc import Sequence

import numpy as np

from bayesatk._tools.arrays import Array, Flags
from bayesatk.core.question.ballot import plurality_finite
from bayesatk.core.question.categorical import category_finite
from bayesatk.core.question.expected_credit import finite, until_success
from bayesatk.core.question.observed import mean_over_questions
from bayesatk.data.answers import Ballots
from bayesatk.data.scales import RightWrongScale
from bayesatk.data.study import Study
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values


def finite_values(study: Study, metrics: Sequence[Metric], systems: Sequence[int]) -> Array:
    """Return values of k draws without replacement from the trials of each question.

    Marks are taken as they are where a judge errs. Where the trials of a question end at its first
    success, values are of its first k trials.

    Parameters
    ----------
    study : Study
    metrics : sequence of Metric
    systems : sequence of int
        Positions of the systems.

    Returns
    -------
    ndarray, shape (systems, questions, metrics)
        NaN where k exceeds the trials.
    """
    outcomes, scale = study.outcomes, study.scale
    counts, stopped = scale.counts(outcomes)[systems], outcomes.stopped[systems]
    columns: dict[Metric, Array] = {}
    voted = [metric for metric in metrics if metric.voted]
    if voted:
        assert outcomes.answers is not None  # votes were asked for
        ks = [metric.k for metric in voted]
        known: dict[tuple[object, ...], Array] = {}
        by_system = [_of_votes(outcomes.answers.of(system), ks, known) for system in systems]
        columns |= zip(voted, np.moveaxis(np.stack(by_system), -1, 0), strict=True)
    for metric in metrics:
        if metric.voted:
            continue
        if not isinstance(scale, RightWrongScale):
            columns[metric] = category_finite(metric.category_credit, counts, scale.scores)
            continue
        right, trials = counts[..., 1], counts.sum(axis=-1)
        columns[metric] = finite(metric.credit, right, trials)
        if stopped.any():
            first_trials = until_success(metric.credit, right, trials)
            columns[metric] = np.where(stopped[:, None], first_trials, columns[metric])
    return np.stack([columns[metric] for metric in metrics], axis=-1)


def _of_votes(
    ballots: Sequence[Ballots], ks: Sequence[int], known: dict[tuple[object, ...], Array]
) -> Array:
    """Return values of votes of k answers to each question, (questions, ks).

    Equal ballots are counted once, and kept in `known`.
    """
    rows = []
    for ballot in ballots:
        key = ballot.key
        if key not in known:
            known[key] = plurality_finite(ballot.count, ballot.correct, ks, ballot.abstentions)
        rows.append(known[key])
    return np.stack(rows)


def _tried(study: Study, system: int, metrics: Sequence[Metric]) -> Flags:
    """Whether a system tried each question; for votes, whether a trial counts as one."""
    answers, tried = study.outcomes.answers, study.outcomes.trials.values[system] > 0
    flags = np.repeat(tried[:, None], len(metrics), axis=1)
    voted = [metric.voted for metric in metrics]
    if any(voted):
        assert answers is not None  # votes were asked for
        flags[:, voted] = np.array([[ballot.tried] for ballot in answers.of(system)])
    return flags


def question_shares(study: Study, kept: Flags | None = None) -> Array:
    """Return the share of every question in a mean over some; (questions,), summing to one.

    Parameters
    ----------
    study : Study
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all.
    """
    weight = study.outcomes.weight
    keep = np.ones(study.outcomes.trials.shape[1], bool) if kept is None else kept
    weight = None if weight is None else weight[keep]
    if study.grouping is not None:
        return study.grouping.among(keep).question_shares(weight)
    share = np.ones(int(keep.sum())) if weight is None else weight
    return np.asarray(share / share.sum())


def estimates(study: Study, system: int) -> tuple[Array, Array]:
    """Return unbiased values of a system's metrics over all questions, and over those of groups.

    NaN where less than half of the questions, by weight, have k trials.

    Returns
    -------
    ndarray, shape (metrics,)
        Of the grid.
    ndarray, shape (groups, metrics)
    """
    values = finite_values(study, list(study.grid), [system])[0]
    tried, weight = _tried(study, system, list(study.grid)), study.outcomes.weight
    whole = mean_over_questions(values, question_shares(study), tried)
    if study.grouping is None:
        return whole, np.zeros((0, len(whole)))
    share = np.ones(len(tried)) if weight is None else weight
    groups = range(len(study.grouping.labels))
    members = [share * (study.grouping.code == group) for group in groups]
    return whole, np.stack([mean_over_questions(values, inside, tried) for inside in members])


def observed_value(
    result: Result,
    system: int,
    metric: Metric,
    kept: Flags | None = None,
    of_all: bool = False,
) -> float:
    """Return the unbiased finite estimate of a metric, from the trials that were run.

    Parameters
    ----------
    result : Result
        Evaluated or sampled.
    system : int
        Position of the system.
    metric : Metric
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all that the system tried.
    of_all : bool
        Whether all of these must have k trials.

    Returns
    -------
    float
        Mean over the questions that have k trials, weighted if they are; NaN where they are less
        than half, or, `of_all`, not all.
    """
    tried = result.trials[system] > 0
    kept = tried if kept is None else kept
    if of_all and (result.trials[system, kept] < metric.k).any():
        return np.nan
    if result.has("closed_form") and kept[tried].all():
        stored = metric_values(result.statistics, metric).isel(system=system, target=0)
        return float(stored.sel(statistic="estimate"))
    study = result.study
    values, tried = finite_values(study, [metric], [system])[0], _tried(study, system, [metric])
    return float(mean_over_questions(values[kept], question_shares(study, kept), tried[kept])[0])
