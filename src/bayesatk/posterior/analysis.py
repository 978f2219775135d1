"""The closed-form analysis of one system, as a task that another process can do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bayesatk._tools.arrays import Array, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.engine.coupling import standardised
from bayesatk.core.engine.distribution import Empirical, measured_interval
from bayesatk.data.scales import RightWrongScale
from bayesatk.data.study import Study
from bayesatk.posterior.checking import Checks, checked_draws
from bayesatk.posterior.models_of import system_model, system_votes
from bayesatk.posterior.posterior import (
    Distributions,
    Draws,
    FamilyShare,
    Numbers,
    Posterior,
    Summary,
)
from bayesatk.posterior.remarks import (
    family_note,
    judge_notes,
    outside_note,
    proxy_note,
    single_trials_note,
    weight_note,
)
from bayesatk.results.schema import QUANTILE_LEVELS, STATISTICS
from bayesatk.results.stored_points import Laws

Tables = tuple[Array, Array]  # of statistics and of quantiles, both (..., numbers)


@dataclass(frozen=True)
class Evaluated:
    """What a result needs of one system: numbers, without what they were worked out from.

    Parameters
    ----------
    statistics, quantiles : ndarray, shape (metrics, target, ...)
        Metrics of the grid; on categories then the probability to reach each higher score.
    drawn : Draws
    margins : ndarray, shape (draws, metrics, target)
        Evenly spread quantiles of the metrics of the grid, with the mean and sd of its statistics.
    groups : pair of ndarray, shape (group, metrics, target, ...), optional
        Statistics and quantiles of each group of questions.
    question_p : pair of ndarray, optional
        Exact mean and sd of every question's success probability, where draws of it are kept.
    hyper : dict of name -> pair of ndarray, shape ([category,] ...)
        Statistics and quantiles of the hyperparameters.
    hyper_draws : dict of name -> dict of statistic -> float
        Independent draws that these are worth; empty where they are exact.
    effective_draws : dict of statistic -> ndarray, shape (metrics,)
        The same of metrics.
    diagnostics : dict
        Numerical quality.
    families : dict of name -> FamilyShare
        Of difficulty, where questions are pooled partially.
    method : str
        How it was found.
    judge_share : ndarray, shape (metrics, target), optional
        Share of the variance that is due to the rates of a judge.
    checks : Checks, optional
        What ArviZ checks models with; none of votes.
    points : sequence of (str, Points)
        Of the hyperparameters, by law of difficulty; none of votes.
    remarks : list of str
        What a reader should know.
    """

    statistics: Array
    quantiles: Array
    drawn: Draws
    margins: Array
    groups: Tables | None
    question_p: tuple[Array, Array] | None
    hyper: Mapping[str, Tables]
    hyper_draws: Mapping[str, Mapping[str, float]]
    effective_draws: Mapping[str, Array]
    diagnostics: Mapping[str, float]
    families: Mapping[str, FamilyShare]
    method: str
    judge_share: Array | None
    checks: Checks | None = None
    points: Laws = ()
    remarks: Sequence[str] = ()


class _Request(NamedTuple):
    """Metrics of a system, and their posterior.

    Parameters
    ----------
    places : list of int
        Positions of the metrics in the grid; then, on categories, of those to reach each score.
    posterior : Posterior
    points : sequence of (str, Points)
    remarks : list of str
    """

    places: list[int]
    posterior: Posterior
    points: Laws
    remarks: list[str]


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def evaluate_system(
    study: Study, draws: int, streams: Sequence[Rng], keep: Sequence[str], index: int
) -> Evaluated:
    """Evaluate the system at a position, with the random stream at the same position.

    Parameters
    ----------
    study : Study
    draws : int
        Of the posterior.
    streams : sequence of numpy.random.Generator
    keep : sequence of str
        As of `bayesatk.evaluate`.
    index : int
        Position of the system.
    """
    stream = streams[index]
    requests = [_judged(study, index)] if study.grid.judged else []
    if study.grid.voted:
        requests.append(_voted(study, index, draws, stream))
    by_kind = [_numbers_of(study, request, draws, stream, keep) for request in requests]
    evaluated = by_kind[0]
    if len(by_kind) > 1:
        evaluated = _side_by_side(by_kind, [request.places for request in requests])
    remarks = [remark for request in requests for remark in request.remarks]
    return replace(
        evaluated,
        points=requests[0].points,
        remarks=remarks + _remarks(study, index, evaluated.statistics),
    )


def _judged(study: Study, index: int) -> _Request:
    """Metrics of the counts, and probabilities to reach each score."""
    name, places, size = study.outcomes.systems[index], list(study.grid.judged), len(study.grid)
    model = system_model(study, index)
    metrics = [study.scale.judged(metric) for metric in study.grid.judged.values()]
    reach = study.scale.reaching()
    posterior = model.fit([*metrics, *reach])
    remarks = [] if posterior.warning is None else [f"{name}: {posterior.warning}."]
    if study.design is None:
        remarks += weight_note(
            name, study.pooling, study.scale.counts(study.outcomes)[index], study.scale.scores,
            study.outcomes.weight, not study.bootstrapped,
        )  # fmt: skip
    fewest = int(model.states.trials.min())
    remarks += family_note(name, posterior.families, study.judged, fewest)
    if study.known_judges is not None:
        first = study.metrics[0]
        remarks += judge_notes(
            name, study.known_judges[index], model.judge_rates, first,
            posterior, list(study.grid).index(first),
        )  # fmt: skip
    places += range(size, size + len(reach))
    points = [(fit.name, fit.points) for fit in model.families]
    return _Request(places, posterior, points, remarks)


def _voted(study: Study, index: int, draws: int, rng: Rng) -> _Request:
    """Votes between answers."""
    outcomes = study.outcomes
    if outcomes.answers is None:
        raise ArgumentError(
            "plurality@k is a vote between answers, and the data have none. Use ",
            Argument("answers", ..., "tally"), ", or name the column of a table: ",
            Argument("columns", {"answer": ...}, "tally"),
            ". The strict majority of right marks is 'maj@k'.",
        )  # fmt: skip
    ks = [metric.k for metric in study.grid.voted.values()]
    posterior = system_votes(study, index, ks, draws, rng)
    points: Laws = []
    if study.pooling == "partial":
        points = [(fit.name, fit.points) for fit in system_model(study, index).families]
    requested = {metric.k for metric in study.votes}
    voted = {k: v for k, v in zip(ks, posterior.estimate.tolist(), strict=True) if k in requested}
    c, n = outcomes.successes.values[index], outcomes.trials.values[index]
    remarks = proxy_note(outcomes.systems[index], c, n, voted)
    return _Request(list(study.grid.voted), posterior, points, remarks)


def _numbers_of(
    study: Study, asked: _Request, draws: int, rng: Rng, keep: Sequence[str]
) -> Evaluated:
    """Work out the numbers of metrics."""
    posterior, known = asked.posterior, [place < len(study.grid) for place in asked.places]
    number = sum(known)  # of the grid; the rest is to reach each score
    drawn, checks = checked_draws(study, posterior, draws, rng, keep)

    def tables(numbers: Numbers, values: Array, estimate: Array, exact: Distributions) -> Tables:
        rows = np.full((*numbers.mean.shape, len(STATISTICS)), np.nan)
        rows[:number, :, 0] = estimate[:number, None]
        rows[..., 1], rows[..., 2] = numbers.mean, numbers.sd
        rows[..., 6], rows[..., 7] = numbers.variance_trial, numbers.variance_question
        quantiles = np.empty((*rows.shape[:2], len(QUANTILE_LEVELS)))
        for target, of_target in enumerate(exact):
            for metric, law in enumerate(of_target):
                source = Empirical(values[:, metric, target]) if law is None else law
                rows[metric, target, 3:6] = _interval(study, source)
                quantiles[metric, target] = source.quantile(QUANTILE_LEVELS)
        return rows, quantiles

    exact, numbers = posterior.distributions(), posterior.numbers
    statistics, quantiles = tables(numbers, drawn.metrics, posterior.estimate, exact)
    statistics[:number, :, -1] = posterior.prior_sensitivity[:number]
    groups = None
    if study.grouping is not None and drawn.groups is not None:
        estimate, none = posterior.estimate_by_group, [[None] * len(known)] * 2
        each = [
            tables(of_group, drawn.groups.metrics[:, group], estimate[group], none)
            for group, of_group in enumerate(posterior.of_groups)
        ]
        groups = np.stack([one for one, _ in each]), np.stack([one for _, one in each])
    behind = posterior.effective_draws
    return Evaluated(
        statistics, quantiles, drawn, _even_draws(study, posterior, exact, drawn, number), groups,
        None if drawn.p is None else posterior.question_p(),
        {name: _hyper_tables(study, one) for name, one in posterior.hyper.items()},
        posterior.hyper_draws,
        {name: np.broadcast_to(own, len(known)) for name, own in behind.items()},
        posterior.diagnostics, posterior.families, posterior.method, posterior.judge_share,
        checks,
    )  # fmt: skip


def _interval(study: Study, source: Empirical) -> tuple[float, float, float]:
    """Return the ends of the credible interval, and their error."""
    ends, error = measured_interval(source, study.ci_prob, study.ci_kind)
    return (*ends, error)


def _hyper_tables(study: Study, hyper: Summary | list[Summary]) -> Tables:
    """Statistics and quantiles of a hyperparameter, or of each of its columns."""
    if isinstance(hyper, list):
        columns = [_hyper_tables(study, one) for one in hyper]
        return np.stack([one for one, _ in columns]), np.stack([one for _, one in columns])
    row = np.full(len(STATISTICS), np.nan)
    row[1:6] = hyper.mean, hyper.sd, *_interval(study, hyper.distribution)
    return row, hyper.distribution.quantile(QUANTILE_LEVELS)


def _even_draws(
    study: Study, posterior: Posterior, exact: Distributions, drawn: Draws, number: int
) -> Array:
    """Return even quantiles of the first metrics, with the exact means and sds.

    Means over questions are between the lowest and the highest score.

    Returns
    -------
    ndarray, shape (draws, metrics, target)
    """
    values = np.sort(drawn.metrics[:, :number], axis=0)
    levels = (np.arange(len(values)) + 0.5) / len(values)
    for target, of_target in enumerate(exact):
        for metric, law in enumerate(of_target[:number]):
            if law is not None:
                values[:, metric, target] = law.quantile(levels)
    ends = float(min(study.scale.scores)), float(max(study.scale.scores))
    return standardised(values, posterior.mean[:number], posterior.sd[:number], ends)


def _side_by_side(each: Sequence[Evaluated], places: Sequence[list[int]]) -> Evaluated:
    """Put different metrics of a system side by side; their draws are independent.

    What is not of metrics is that of the first, with hyperparameters that the second has beside.
    """
    size = sum(one.margins.shape[1] for one in each)

    def joined(arrays: Sequence[Array], axis: int, most: float = np.inf) -> Array:
        """Return metrics in their order, those at first places alone."""
        place = np.concatenate([[i for i in own if i < most] for own in places])
        return np.take(np.concatenate(arrays, axis), np.argsort(place), axis)

    first, second = each
    groups, of_groups = first.groups, first.drawn.groups
    if groups is not None and of_groups is not None:
        pairs = zip(*(one.groups for one in each if one.groups is not None), strict=True)
        statistics, quantiles = (joined(own, 1) for own in pairs)
        groups = statistics, quantiles
        drawn = [one.drawn.groups.metrics for one in each if one.drawn.groups is not None]
        of_groups = replace(of_groups, metrics=joined(drawn, 2))
    none = np.full(1, np.inf)
    return replace(
        first, statistics=joined([one.statistics for one in each], 0),
        quantiles=joined([one.quantiles for one in each], 0),
        margins=joined([one.margins for one in each], 1, size), groups=groups,
        hyper={**second.hyper, **first.hyper},
        hyper_draws={**second.hyper_draws, **first.hyper_draws},
        drawn=replace(
            first.drawn, metrics=joined([one.drawn.metrics for one in each], 1),
            hyper={**second.drawn.hyper, **first.drawn.hyper}, groups=of_groups,
        ),
        diagnostics={**second.diagnostics, **first.diagnostics},
        effective_draws={
            name: joined([
                np.broadcast_to(one.effective_draws.get(name, none), len(one.statistics))
                for one in each
            ], 0)
            for name in dict.fromkeys(name for one in each for name in one.effective_draws)
        },
    )  # fmt: skip


def _remarks(study: Study, index: int, statistics: Array) -> list[str]:
    """Say what pooling and single trials mean for the estimates."""
    trials, name = study.outcomes.trials.values[index], study.outcomes.systems[index]
    estimate = statistics[: len(study.grid), 0, 0]
    remarks: list[str] = []
    if not isinstance(study.scale, RightWrongScale):
        remarks = single_trials_note(name, study.metrics, trials)
    if study.judges is None:  # whose estimate is of marks, and the interval of success
        remarks += outside_note(
            study.pooling, name, study.metrics, study.grid, estimate, statistics, trials
        )
    return remarks
