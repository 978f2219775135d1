"""The closed-form analysis of one system, as a task that another process can do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.engine.coupling import with_mean
from bayesatk.core.engine.distribution import Empirical, measured_interval
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.pooling.marks import mark_probability
from bayesatk.data.scales import RightWrongScale
from bayesatk.data.study import Study
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import system_model, system_votes
from bayesatk.posterior.observed import estimates
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
    one_question_note,
    outside_note,
    proxy_note,
    single_trials_note,
    these_questions_note,
    weight_note,
)
from bayesatk.posterior.vote_posterior import VotePosterior
from bayesatk.priors import HyperPrior
from bayesatk.results.checking import PRIOR_DRAWS, likelihood_kept, replicated
from bayesatk.results.schema import QUANTILE_LEVELS, STATISTICS

_PROBABILITY_FLOOR = 5e-324  # the smallest positive float: its logarithm is finite


@dataclass(frozen=True)
class Checks:
    """Draws of one system from the prior, and replicated counts.

    Parameters
    ----------
    log_prior : mapping {name: ndarray}
        Log density of the prior at the draws of the posterior, (draws,), or of p by question.
    replicates : ndarray of int, shape (draws, questions, ...), optional
        Counts of new questions, a set for every draw.
    prior : Draws, optional
        From the prior, where it is proper.
    prior_replicates : ndarray of int, shape (draws, questions, ...), optional
    """

    log_prior: Mapping[str, Array]
    replicates: Ints | None = None
    prior: Draws | None = None
    prior_replicates: Ints | None = None


def checked_draws(
    study: Study, posterior: Posterior, draws: int, rng: Rng, keep: Sequence[str]
) -> tuple[Draws, Checks | None]:
    """Draw from the posterior of a system, and from its prior for model checks.

    Parameters
    ----------
    study : Study
    posterior : Posterior
    draws : int
    rng : numpy.random.Generator
    keep : sequence of str
        Optional contents of the result, as `bayesatk.evaluate` takes them.

    Returns
    -------
    Draws
    Checks or None
        None for votes between answers, whose data are not counts.
    """
    if isinstance(posterior, VotePosterior):
        return posterior.draw(draws, rng, "p" in keep), None
    model, unpooled = posterior.model, study.pooling == "none"
    size = draws * study.outcomes.trials.size
    replicate_rng, prior_rng = rng.spawn(2)
    counted = replicated(study, draws, keep)
    drawn = posterior.draw(
        draws,
        rng,
        "p" in keep or (unpooled and counted),
        likelihood=likelihood_kept(size, keep),
        new=replicate_rng if counted else None,
    )
    stored = drawn if "p" in keep else replace(drawn, p=None)
    stored = replace(stored, new_p=None)
    if unpooled and not counted:  # p of every question are too many
        return stored, Checks({})
    log_prior = drawn.log_prior
    if unpooled and drawn.p is not None:
        log_prior = {"p": _log_density(study.scale.vectors(drawn.p), _concentration(model))}
    elif study.pooling == "complete":
        vectors = study.scale.vectors(drawn.hyper["mean_p"])
        log_prior = {"mean_p": _log_density(vectors, _concentration(model))}
    prior = None
    if not isinstance(study.prior, HyperPrior) or study.prior.proper:
        prior = posterior.draw_prior(PRIOR_DRAWS, prior_rng, counted)
    return stored, Checks(
        log_prior,
        _replicates(study, model, drawn, replicate_rng),
        prior,
        _replicates(study, model, prior, prior_rng) if counted else None,
    )


def _replicates(study: Study, model: CountModel, drawn: Draws | None, rng: Rng) -> Ints | None:
    """Draw the counts of new questions, or marks of them where a judge errs."""
    if drawn is None or drawn.new_p is None:
        return None
    trials, p = model.states.trials[model.states.which].astype(np.int64), drawn.new_p
    if model.judge is not None:
        p = mark_probability(p, model.judge.rows(drawn.hyper), rng)
    return study.scale.draw_counts(trials, p, rng)


def _concentration(model: CountModel) -> Array:
    """Dirichlet parameters of the prior of p, by question without pooling; (..., categories).

    Discounted prior trials are part of it, unless a judge marked them.
    """
    if model.judge is not None:
        return model.alpha
    states = model.states
    if model.pooling == "complete":
        return model.alpha + states.count @ states.prior
    return model.alpha + states.prior[states.which]


def _log_density(p: Array, alpha: Array) -> Array:
    """Log density of logits of Dirichlet probabilities (draws, ..., categories)."""
    constant = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
    return (np.log(np.maximum(p, _PROBABILITY_FLOOR)) * alpha).sum(axis=-1) + constant


Tables = tuple[Array, Array]  # of statistics and of quantiles, both (..., numbers)


@dataclass(frozen=True)
class Evaluated:
    """Statistics, quantiles and draws of one system, as a result stores them.

    Parameters
    ----------
    statistics, quantiles : ndarray, shape (metrics, target, ...)
        Metrics of the grid; on categories then the probability to reach each higher score.
    drawn : Draws
    margins : ndarray, shape (draws, metrics, target)
        Quantiles of the metrics of the grid at even levels, with the exact means.
    groups : pair of ndarray, shape (group, metrics, target, ...), optional
        Statistics and quantiles of each group of questions.
    question_p : pair of ndarray, optional
        Exact mean and sd of every question's success probability, where draws of it are kept.
    hyper : dict of name -> pair of ndarray, shape ([category,] ...)
        Statistics and quantiles of the hyperparameters.
    hyper_draws : dict of name -> dict of statistic -> float
        Effective number of draws of each statistic; empty where it is exact.
    effective_draws : dict of statistic -> ndarray, shape (metrics,)
        Effective number of draws of each statistic of the metrics.
    diagnostics : dict
        Numerical quality.
    families : dict of name -> FamilyShare
        Of difficulty, where questions are pooled partially.
    method : str
        Method of integration over the hyperparameters.
    judge_share : ndarray, shape (metrics, target), optional
        Share of the variance that is due to the rates of a judge.
    checks : Checks, optional
        Draws for ArviZ's model checks; None for votes.
    points : sequence of WeightedPoints
        Of the hyperparameters, by family of difficulty; none for votes alone.
    remarks : list of str
        Notes for the reader of the result.
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
    points: Sequence[WeightedPoints] = ()
    remarks: Sequence[str] = ()


class _Request(NamedTuple):
    """Metrics of a system, and their posterior.

    Parameters
    ----------
    places : list of int
        Positions of the metrics in the grid; then, on categories, of those to reach each score.
    posterior : Posterior
    points : sequence of WeightedPoints
        Of the hyperparameters, by family of difficulty.
    remarks : list of str
    """

    places: list[int]
    posterior: Posterior
    points: Sequence[WeightedPoints]
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
        Optional contents of the result, as `bayesatk.evaluate` takes them.
    index : int
        Position of the system.
    """
    stream = streams[index]
    requests = [_judged(study, index)] if study.grid.judged else []
    if study.grid.voted:
        requests.append(_voted(study, index, draws, stream))
    observed = estimates(study, index)
    by_kind = [_numbers_of(study, request, observed, draws, stream, keep) for request in requests]
    evaluated = by_kind[0]
    if len(by_kind) > 1:
        evaluated = _side_by_side(by_kind, [request.places for request in requests])
    remarks = [remark for request in requests for remark in request.remarks]
    return replace(
        evaluated,
        points=requests[0].points,
        remarks=remarks + _remarks(study, index, observed[0], evaluated.statistics),
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
            name,
            study.pooling,
            study.scale.counts(study.outcomes)[index],
            study.scale.scores,
            study.outcomes.weight,
            not study.bootstrapped,
        )
    fewest = int(model.states.trials.min())
    remarks += family_note(name, posterior.model.described, study.judged, fewest)
    if study.known_judges is not None:
        first_metric = study.metrics[0]
        remarks += judge_notes(
            name,
            study.known_judges[index],
            model.judge_rates,
            first_metric,
            posterior,
            list(study.grid).index(first_metric),
        )
    places += range(size, size + len(reach))
    points = [fit.points for fit in model.families]
    return _Request(places, posterior, points, remarks)


def _voted(study: Study, index: int, draws: int, rng: Rng) -> _Request:
    """Votes between answers."""
    outcomes = study.outcomes
    if outcomes.answers is None:
        raise ArgumentError(
            "plurality@k is a vote between answers, and the data have none. Use ",
            Argument("answers", ..., "tally"),
            ", or name the column of a table: ",
            Argument("columns", {"answer": ...}, "tally"),
            ". The strict majority of right marks is 'maj@k'.",
        )
    ks = [metric.k for metric in study.grid.voted.values()]
    posterior = system_votes(study, index, ks, draws, rng)
    points: list[WeightedPoints] = []
    if study.pooling == "partial":
        points = [fit.points for fit in system_model(study, index).families]
    return _Request(list(study.grid.voted), posterior, points, [])


def _numbers_of(
    study: Study,
    request: _Request,
    observed: tuple[Array, Array],
    draws: int,
    rng: Rng,
    keep: Sequence[str],
) -> Evaluated:
    """Compute the statistics, quantiles and draws of the requested metrics."""
    posterior = request.posterior
    number = sum(place < len(study.grid) for place in request.places)  # the rest: to reach scores
    estimate, estimate_by_group = (values[..., request.places[:number]] for values in observed)
    drawn, checks = checked_draws(study, posterior, draws, rng, keep)

    def tables(numbers: Numbers, values: Array, estimate: Array, exact: Distributions) -> Tables:
        rows = np.full((*numbers.mean.shape, len(STATISTICS)), np.nan)
        rows[:number, :, 0] = estimate[:, None]
        rows[..., 1], rows[..., 2] = numbers.mean, numbers.sd
        rows[..., 6], rows[..., 7] = numbers.variance_trial, numbers.variance_question
        quantiles = np.empty((*rows.shape[:2], len(QUANTILE_LEVELS)))
        for target, by_metric in enumerate(exact):
            for metric, law in enumerate(by_metric):
                source = Empirical(values[:, metric, target]) if law is None else law
                rows[metric, target, 3:6] = _interval(study, source)
                quantiles[metric, target] = source.quantile(QUANTILE_LEVELS)
        return rows, quantiles

    exact, numbers = posterior.distributions(), posterior.numbers
    statistics, quantiles = tables(numbers, drawn.metrics, estimate, exact)
    statistics[:number, :, -1] = posterior.prior_sensitivity[:number]
    groups = None
    if study.grouping is not None and drawn.groups is not None:
        from_draws = [[None] * len(request.places)] * 2
        by_group = [
            tables(
                group_numbers, drawn.groups.metrics[:, group], estimate_by_group[group], from_draws
            )
            for group, group_numbers in enumerate(posterior.of_groups)
        ]
        statistics_by_group, quantiles_by_group = zip(*by_group, strict=True)
        groups = np.stack(statistics_by_group), np.stack(quantiles_by_group)
    return Evaluated(
        statistics,
        quantiles,
        drawn,
        _even_draws(study, posterior, exact, drawn, number),
        groups,
        None if drawn.p is None else posterior.question_p(),
        {name: _hyper_tables(study, summary) for name, summary in posterior.hyper.items()},
        posterior.hyper_draws,
        {
            name: np.broadcast_to(effective, len(request.places))
            for name, effective in posterior.effective_draws.items()
        },
        posterior.diagnostics,
        posterior.model.described,
        posterior.method,
        posterior.judge_share,
        checks,
    )


def _interval(study: Study, source: Empirical) -> tuple[float, float, float]:
    """Return the ends of the credible interval, and their error."""
    ends, error = measured_interval(source, study.ci_prob, study.ci_kind)
    return (*ends, error)


def _hyper_tables(study: Study, hyper: Summary | list[Summary]) -> Tables:
    """Statistics and quantiles of a hyperparameter, or of each of its columns."""
    if isinstance(hyper, list):
        statistics, quantiles = zip(
            *(_hyper_tables(study, column) for column in hyper), strict=True
        )
        return np.stack(statistics), np.stack(quantiles)
    row = np.full(len(STATISTICS), np.nan)
    row[1:6] = hyper.mean, hyper.sd, *_interval(study, hyper.distribution)
    return row, hyper.distribution.quantile(QUANTILE_LEVELS)


def _even_draws(
    study: Study, posterior: Posterior, exact: Distributions, drawn: Draws, number: int
) -> Array:
    """Return even quantiles of the first metrics, with the exact means.

    Returns
    -------
    ndarray, shape (draws, metrics, target)
    """
    values = np.sort(drawn.metrics[:, :number], axis=0)
    levels = (np.arange(len(values)) + 0.5) / len(values)
    for target, by_metric in enumerate(exact):
        for metric, law in enumerate(by_metric[:number]):
            if law is not None:
                values[:, metric, target] = law.quantile(levels)
    return with_mean(values, posterior.mean[:number])


def _side_by_side(parts: Sequence[Evaluated], places: Sequence[list[int]]) -> Evaluated:
    """Put different metrics of a system side by side; their draws are independent.

    Everything but metrics and hyperparameters is taken from the part with metrics of counts.
    """
    size = sum(part.margins.shape[1] for part in parts)

    def joined(arrays: Sequence[Array], axis: int, end: float = np.inf) -> Array:
        """Return the metrics at positions before `end`, in the order of the grid."""
        order = np.concatenate([[i for i in positions if i < end] for positions in places])
        return np.take(np.concatenate(arrays, axis), np.argsort(order), axis)

    judged, voted = parts
    groups, group_draws = judged.groups, judged.drawn.groups
    if groups is not None and group_draws is not None:
        pairs = zip(*(part.groups for part in parts if part.groups is not None), strict=True)
        statistics, quantiles = (joined(tables, 1) for tables in pairs)
        groups = statistics, quantiles
        drawn = [part.drawn.groups.metrics for part in parts if part.drawn.groups is not None]
        group_draws = replace(group_draws, metrics=joined(drawn, 2))
    exact = np.full(1, np.inf)
    return replace(
        judged,
        statistics=joined([part.statistics for part in parts], 0),
        quantiles=joined([part.quantiles for part in parts], 0),
        margins=joined([part.margins for part in parts], 1, size),
        groups=groups,
        hyper={**voted.hyper, **judged.hyper},
        hyper_draws={**voted.hyper_draws, **judged.hyper_draws},
        drawn=replace(
            judged.drawn,
            metrics=joined([part.drawn.metrics for part in parts], 1),
            hyper={**voted.drawn.hyper, **judged.drawn.hyper},
            groups=group_draws,
        ),
        diagnostics={**voted.diagnostics, **judged.diagnostics},
        effective_draws={
            name: joined(
                [
                    np.broadcast_to(part.effective_draws.get(name, exact), len(part.statistics))
                    for part in parts
                ],
                0,
            )
            for name in dict.fromkeys(name for part in parts for name in part.effective_draws)
        },
    )


def _remarks(study: Study, index: int, estimate: Array, statistics: Array) -> list[str]:
    """Say what pooling, single trials and majorities of marks mean for the estimates."""
    trials, name = study.outcomes.trials.values[index], study.outcomes.systems[index]
    remarks: list[str] = []
    if study.votes:
        by_metric = dict(zip(study.grid, estimate.tolist(), strict=True))
        voted = {metric.k: by_metric[metric] for metric in study.votes}
        remarks = proxy_note(name, study.outcomes.successes.values[index], trials, voted)
    if not isinstance(study.scale, RightWrongScale):
        remarks += single_trials_note(name, study.metrics, trials)
    if study.pooling == "partial":
        remarks += these_questions_note(name, trials) + one_question_note(name, trials)
    if study.judges is None:  # whose estimate is of marks, and the interval of success
        remarks += outside_note(
            study.pooling, name, study.metrics, study.grid, estimate, statistics, trials
        )
    return remarks
