"""Results as tables: a row per system, metric and target, or per category; and how they look."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk._tools.messages import Argument, ArgumentError, one_of
from bayesatk.core.pooling.moment_range import MetricRanges, metric_ranges
from bayesatk.core.pooling.states import States
from bayesatk.core.question.observed import has_observed_mean
from bayesatk.data.grouping import Grouping
from bayesatk.data.roles import GROUP
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS
from bayesatk.results.views import ShownTable

_EQUAL_WEIGHTS_TOL = 1e-6  # relative difference below which limits are those of equal weights


def noted(notes: Sequence[str]) -> list[str]:
    """Return notes as they are shown below a table."""
    return [f"Note: {note}" for note in notes]


def cost_sentences(fit: Result) -> list[str]:
    """Say what metrics of costs are, in which unit.

    Examples
    --------
    >>> import bayesatk
    >>> data = bayesatk.tally([[1, 0]] * 6, cost=[[2, 4]] * 6, cost_unit="USD")
    >>> cost_sentences(Result.of(bayesatk.evaluate(data, "cost", difficulty="beta", rng=1)))
    ['cost: the expected cost of a new trial, in USD; lower is better.']
    """
    units = {metric: fit.posterior[metric.family.variable].attrs["units"] for metric in fit.costs}
    return [
        f"{metric.label}: {metric.family.meaning}{f', in {unit}' * bool(unit)}; lower is better."
        for metric, unit in units.items()
    ]


def by_groups(result: Result, by: str) -> bool:
    """Whether a table is asked for by group, which the result must have."""
    if one_of("by", by, ("system", "group")) == "system":
        return False
    labels = np.unique(np.array(result.of_questions.get(GROUP, ()), str)).tolist()
    if result.grouping is None and len(labels) == 1:
        raise ArgumentError(
            Argument("by", "group"),
            " is for a result with two groups or more; all questions of "
            f"this one are of {labels[0]!r:.60}, whose numbers are those of ",
            Argument("by", "system"),
            ", the default.",
        )
    if result.grouping is None:
        raise ArgumentError(
            Argument("by", "group"),
            " is for a result with groups; this one was evaluated without. Say what they are: ",
            Argument("group", ...),
            ".",
        )
    if not result.tabulated:
        raise ArgumentError(
            Argument("by", "group"),
            " is for metrics of scores, and the result has costs alone. "
            "Evaluate a score with them: ",
            Argument("metrics", ["mean", "cost"]),
            ".",
        )
    return True


def values_by_name(rows: pd.DataFrame) -> dict[str, float]:
    """Flatten a table of metrics or of differences into numbers by name, for logs of other tools.

    The estimate has the name of its metric, other statistics also those of target and column;
    those of a group start with its label. What is not known is left out.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", pooling="none", rng=1)
    >>> values = values_by_name(bayesatk.table(fit))
    >>> list(values)[:4]
    ['pass@1', 'pass@1 questions mean', 'pass@1 questions ci_lower', 'pass@1 questions ci_upper']
    >>> values["pass@1"], round(values["pass@1 questions mean"], 4)  # (2/4 + 3/4)/2
    (0.75, 0.625)
    """
    statistics = ("mean", "ci_lower", "ci_upper", "prob_greater")
    values = {}
    for row in rows.to_dict("records"):
        group = f"{row['group']}: " if "group" in row else ""
        values[f"{group}{row['metric']}"] = row.get("estimate", np.nan)
        for name in statistics:
            key = f"{group}{row['metric']} {row['target']} {name}"
            values[key] = row.get(name, np.nan)
    return {name: float(value) for name, value in values.items() if not np.isnan(value)}


def coefficient_table(fit: Fit) -> ShownTable:
    """Tabulate the coefficients of covariates, as `bayesatk.table` describes them."""
    fit = Result.of(fit)
    numbers = ["mean", "sd", "ci_lower", "ci_upper"]
    if "coefficients" not in fit.statistics:
        raise ArgumentError(
            "fit",
            " must have covariates; this result has none. Evaluate with ",
            Argument("covariates", ...),
            ".",
        )
    columns = fit.statistics["coefficients"].sel(statistic=numbers).to_dataset("statistic")
    columns["prob_positive"] = (fit.posterior["coefficients"] > 0.0).mean(("chain", "draw"))
    frame = columns.to_dataframe(["system", "coefficient"]).reset_index()
    return ShownTable.of(frame, "coefficients", ci_prob=fit.ci_prob)


def category_table(fit: Fit) -> ShownTable:
    """Tabulate the probability that a trial reaches each category's score, or a better one."""
    fit = Result.of(fit)
    statistics = fit.statistics
    scores = fit.group("constant_data").get("category_score")
    if scores is None:
        raise ValueError(
            "fit must be of scored categories; it is of right and wrong. There pass@1 is the "
            "probability to reach the better of the two."
        )
    scores = scores.isel(category=np.argsort(-fit.data.utility, kind="stable"))
    numbers = {"statistic": ["mean", "sd", "ci_lower", "ci_upper"]}
    # The worst score is always reached; where all scores are equal there is no other.
    certain = xr.DataArray([1.0, 0.0, 1.0, 1.0], numbers, "statistic")
    shape = {"system": fit.systems, "category": scores["category"], "target": list(TARGETS)}
    reached = certain.expand_dims(shape)
    if "reached" in statistics.dims:
        held = statistics["reach_probability"].sel({**numbers, "target": list(TARGETS)})
        held = held.rename(reached="category")
        worst = scores.values == scores.values[-1]
        scores = scores[worst | scores["category"].isin(held["category"]).values]
        reached = held.reindex(category=scores["category"]).fillna(certain)
    columns = reached.to_dataset("statistic").assign(score=scores)
    frame = columns.to_dataframe(["system", "category", "target"]).reset_index()
    frame = frame[["system", "category", "score", "target", *numbers["statistic"]]]
    return ShownTable.of(frame, "categories", ci_prob=fit.ci_prob)


def ranges_beyond(result: Result, metrics: Sequence[Metric]) -> Array:
    """Return the family-free range of every metric that too few questions have k trials for.

    Parameters
    ----------
    result : Result
    metrics : sequence of Metric

    Returns
    -------
    ndarray, shape (system, metrics, target, end)
        At the confidence ``ci_prob`` of the result; NaN where half of the questions have k trials,
        so that there is an estimate, and for
        metrics that judge scores or answers, and of marks of a judge that errs.
    """
    ranges = np.full((len(result.systems), len(metrics), len(result.targets), 2), np.nan)
    if result.scale.axes or not result.answers("extrapolation_range"):
        return ranges
    counts = result.right_of_all("extrapolation_range")
    for system, (successes, trials) in enumerate(zip(*counts, strict=True)):
        places = [
            i
            for i, metric in enumerate(metrics)
            if not metric.voted
            and trials.any()
            and not has_observed_mean(result.data.observed_up_to[system], metric.k)
        ]
        if places:
            beyond = tuple(metrics[i] for i in places)
            key = "ranges", system, beyond  # table, report and terminal all ask for them
            work_out = partial(
                family_free, successes, trials, beyond, result.ci_prob, weights_of(result)
            )
            bounds = result.once(key, work_out)
            ranges[system, places] = np.stack([bounds.lower, bounds.upper], axis=-1)
    return ranges


# Weights of questions in a mean, at most 1 in all of a unit, and the units; None: all alike.
Weights = tuple[Array, Indices] | None


def weights_by_target(
    weight: Array | None, population_weight: Array | None, groups: Grouping | None = None
) -> list[Weights]:
    """Return the weights of questions by target; for new groups a group is a unit.

    Parameters
    ----------
    weight, population_weight : ndarray, shape (questions,), optional
        In means over these questions, and over questions like them.
    groups : Grouping, optional
    """
    targets: list[Weights] = []
    for values in (weight, population_weight):
        share = values if groups is None else groups.question_shares(values)
        if share is None or np.ptp(share) <= _EQUAL_WEIGHTS_TOL * share.max():
            targets.append(None)
        else:
            targets.append((share / share.max(), np.arange(len(share))))
    if groups is None:
        return targets
    question = np.ones(len(groups.code)) if weight is None else weight
    total = np.maximum(np.bincount(groups.code, question), 1e-300)
    return [*targets, (question / total[groups.code], groups.code)]


def weights_of(result: Result) -> list[Weights]:
    """Return the weights of a result by target; a law has those of covariates and groups alone."""
    unweighted = result.population == "law" and result.covariates is None
    return weights_by_target(result.weight, None if unweighted else result.weight, result.grouping)


def family_free(
    successes: Ints,
    trials: Ints,
    metrics: Sequence[Metric],
    confidence: float,
    weights: Sequence[Weights],
) -> MetricRanges:
    """Return the range of each metric over all difficulty distributions; (metric, target).

    Parameters
    ----------
    successes, trials : ndarray of int, shape (questions,)
    metrics : sequence of Metric
    confidence : float
        Of all ranges of a target together.
    weights : sequence of Weights
        By target.
    """
    curves = [metric.latent for metric in metrics]
    ranges: list[MetricRanges] = []
    for target, weighted in enumerate(weights):
        if target == 1 and weighted is weights[0] is None:
            ranges.append(ranges[0])
        elif weighted is None:
            states = States.of(successes, trials)
            counts = states.successes, states.trials, states.count
            ranges.append(metric_ranges(*counts, curves, confidence))
        else:
            weight, units = weighted
            ranges.append(metric_ranges(successes, trials, weight, curves, confidence, units))
    lower, upper = (
        np.stack([ends[:, min(target, 1)] for target, ends in enumerate(by_target)], axis=1)
        for by_target in zip(*((target.lower, target.upper) for target in ranges), strict=True)
    )
    return MetricRanges(lower, upper, all(target.fits for target in ranges), ranges[0].trials)
