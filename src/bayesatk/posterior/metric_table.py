"""The table of a result: a row per system, metric and target, or per group of questions."""

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr

from bayesatk.metrics.grid import Metric
from bayesatk.posterior.observed import observed_value
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import by_metric, metric_values
from bayesatk.results.tables import by_groups, cost_sentences, noted, ranges_beyond
from bayesatk.results.views import ShownTable

_COMPARE = (
    "Overlapping intervals do not say which system is better: bayesatk.compare(fit) does; in the "
    "shell: bayesatk compare."
)


def result_table(fit: Fit, by: str = "system") -> ShownTable:
    """Tabulate the metrics of a result, as `bayesatk.table` describes it."""
    fit = Result.of(fit)
    if by_groups(fit, by):
        return _of_groups(fit)
    if "system" not in fit.posterior.dims:
        raise ValueError(
            "fit must have its dimension of systems to be tabulated; fit.sel takes it away of one "
            "label. Tabulate the whole result, or take fit.sel(system=[label])."
        )
    dims = ["system", "metric", "target"]
    columns = _of_metrics((*fit.tabulated, *fit.costs), fit.statistics).to_dataset("statistic")
    if "estimate" not in columns:  # statistics of draws have none
        observed = [
            [observed_value(fit, system, metric) for metric in fit.tabulated]
            for system in range(len(fit.systems))
        ]
        estimate = xr.DataArray(observed, dims=("system", "metric")).broadcast_like(columns["mean"])
        columns = xr.Dataset({"estimate": estimate, **columns})
    columns = _with_questions_observed(fit, columns)
    ranges = ranges_beyond(fit, fit.tabulated)
    if not np.isnan(ranges).all():
        ranges = np.pad(
            ranges, [(0, 0), (0, len(fit.costs)), (0, 0), (0, 0)], constant_values=np.nan
        )
        columns["range_lower"], columns["range_upper"] = ((dims, ranges[..., i]) for i in (0, 1))
    frame = columns.to_dataframe(dims).reset_index()
    sentences = [*cost_sentences(fit), *noted(fit.notes)]
    if len(fit.systems) > 1 and fit.answers("compare") and not fit.has("comparison"):
        sentences.insert(0, _COMPARE)
    attrs = {"ci_prob": fit.ci_prob, "sentences": json.dumps(sentences)}
    if fit.has("closed_form"):
        attrs["mean_meaning"] = ", whose ends are right to about 2% of its width"
    if fit.judges is not None:
        attrs["estimate_meaning"] = ", by the judge's marks as they are"
    return ShownTable.of(frame, "results", **attrs)


def _with_questions_observed(fit: Result, columns: xr.Dataset) -> xr.Dataset:
    """Add the number of questions of each estimate, where one is not of all that were tried."""
    needed = np.array([metric.k for metric in (*fit.tabulated, *fit.costs)])
    observed = (fit.data.observed_up_to[:, :, None] >= needed).sum(axis=1)
    partly = observed < (fit.trials > 0).sum(axis=1)[:, None]
    has_estimate = columns["estimate"].notnull().all("target").transpose("system", "metric").values
    if not (partly & has_estimate).any():
        return columns
    return columns.assign(
        estimate_questions=(("system", "metric"), np.where(has_estimate, observed, 0)),
        tried_questions=(("system",), (fit.trials > 0).sum(axis=1)),
    )


def _of_metrics(metrics: Sequence[Metric], statistics: xr.Dataset) -> xr.DataArray:
    """Return the statistics of metrics, along a dimension of them."""
    return by_metric(metrics, lambda metric: metric_values(statistics, metric))


def _of_groups(fit: Result) -> ShownTable:
    """Return a row for each system, group, metric and target."""
    assert fit.grouping is not None
    labels, number = fit.grouping.labels, np.bincount(fit.grouping.code)
    dims = ["metric", "system", "group", "target"]
    columns = _of_metrics(fit.tabulated, fit.group_statistics).to_dataset("statistic")
    columns["questions"] = xr.DataArray(number, {"group": labels}, "group")
    frame = columns.to_dataframe(dims).reset_index().dropna(axis="columns", how="all")
    first = ["system", "group", "questions", "metric", "target"]
    frame = frame[[*first, *(name for name in frame if name not in first)]]
    return ShownTable.of(frame, "groups", ci_prob=fit.ci_prob)
