"""Results as tables: a row per system, metric and target, or per category."""

from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arguments import one_of
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.metrics.grid import Metric
from bayesatk.results.ranges import ranges_beyond
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values
from bayesatk.results.table_view import ResultTable


def table(
    result: xr.DataTree | Result, *, by: Literal["system", "group"] = "system"
) -> pd.DataFrame:
    """Tabulate a result: one row per system, metric and target.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` (exact statistics) or `bayesatk.sample` (statistics of the draws).
    by : {"system", "group"}
        ``"group"``, for a result with groups: a row for each system, group, metric and target, with
        ``questions``, the size of the group. ``estimate`` is from the group's trials alone; the
        posterior is partially pooled with the other groups.

    Returns
    -------
    pandas.DataFrame
        Printing it shows both targets side by side and explains the columns. Columns ``system``,
        ``metric``, ``target`` (``"questions"``: these questions; ``"population"``: questions like
        these), ``estimate`` (unbiased, from k draws without replacement of the observed trials; NaN
        where k exceeds the trials of some question), ``mean``, ``sd``, ``ci_lower`` and
        ``ci_upper`` of the posterior, and for closed forms ``variance_trial`` and
        ``variance_question``. Where a k exceeds the trials of some question, ``range_lower`` and
        ``range_upper`` are the range of `bayesatk.extrapolation_range` at the confidence
        ``ci_prob``, which does not assume a family of difficulties. For data with
        ``missing="bounds"``: ``estimate_if_wrong``, ``estimate_if_right``, ``mean_if_wrong``,
        ``mean_if_right``, ``ci_lower_if_wrong`` and ``ci_upper_if_right``, with all missing trials
        wrong, or right.

    See Also
    --------
    bayesatk.category_table : probability of each score.
    bayesatk.export : tables in files.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@2", pooling="none", rng=1)
    >>> rows = bayesatk.table(fit)[["metric", "target", "estimate", "mean"]]
    >>> rows.iloc[0, 2:].astype(float).round(4).tolist()
    [0.95, 0.8393]

    The mean of a group with few trials is shrunk towards the other groups.

    >>> data = bayesatk.tally([[1, 1]] * 4 + [[0, 1]] * 4 + [[0, 0]], group=list("aaaabbbbc"))
    >>> fit = bayesatk.evaluate(data, "pass@1", group="group", rng=1)
    >>> rows = bayesatk.table(fit, by="group").query("target == 'questions'")
    >>> rows[["group", "questions", "estimate"]].values.tolist()
    [['a', 4, 1.0], ['b', 4, 0.5], ['c', 1, 0.0]]
    >>> bool(rows["mean"].iloc[2] > 0.15)
    True
    """
    own = Result.of(result)
    if by_groups(own, by):
        return _of_groups(own)
    if "system" not in own.posterior.dims:
        raise ValueError(
            "result must have its dimension of systems to be tabulated; bayesatk.one_system takes "
            "it away. Tabulate the whole result."
        )
    ranges = ranges_beyond(own, own.metrics)
    rows = []
    for system, by_metric in zip(own.systems, ranges, strict=True):
        for metric, bounds in zip(own.metrics, by_metric, strict=True):
            values = metric_values(own.statistics, metric).sel(system=system)
            for target, (lower, upper) in zip(own.targets, bounds.tolist(), strict=True):
                cells = values.sel(target=target)
                numbers = {
                    str(name): float(cells.sel(statistic=name))
                    for name in cells["statistic"].values
                }
                if not np.isnan(ranges).all():
                    numbers |= {"range_lower": lower, "range_upper": upper}
                numbers |= _if_missing(own, metric, system, target)
                rows.append({"system": system, "metric": metric.label, "target": target, **numbers})
    found = ResultTable(rows)
    found.attrs["ci_prob"] = own.ci_prob
    return found


def by_groups(result: Result, by: str) -> bool:
    """Whether a table is asked for by group, which the result must have."""
    if one_of("by", by, ("system", "group")) == "system":
        return False
    if result.grouping is None:
        raise ArgumentError(
            Argument("by", "group"), " is for a result with groups; this one was evaluated "
            "without. Say what they are: ", Argument("group", ...), ".",
        )  # fmt: skip
    return True


def _of_groups(own: Result) -> pd.DataFrame:
    """Return a row for each system, group, metric and target."""
    assert own.grouping is not None
    number = np.bincount(own.grouping.code, minlength=len(own.grouping.labels)).tolist()
    dims, rows = ("system", "group", "target", "statistic"), []
    for metric in own.metrics:
        values = metric_values(own.group_statistics, metric).transpose(*dims)
        names = values["statistic"].values.tolist()
        for i, j, k in np.ndindex(values.shape[:3]):
            first = {
                "system": own.systems[i], "group": own.grouping.labels[j], "questions": number[j],
                "metric": metric.label, "target": TARGETS[k],
            }  # fmt: skip
            rows.append(first | dict(zip(names, values.values[i, j, k].tolist(), strict=True)))
    found = pd.DataFrame(rows).dropna(axis="columns", how="all")
    found.attrs["ci_prob"] = own.ci_prob
    return found


def _if_missing(own: Result, metric: Metric, system: object, target: str) -> dict[str, float]:
    """Return the numbers with every missing outcome wrong, and with every one right."""
    if not own.has("missing_bounds"):
        return {}
    both = metric_values(own.group("missing_bounds"), metric).sel(system=system, target=target)
    parts = ("estimate", "mean")
    found = {
        f"{part}_if_{end}": float(both.sel(statistic=part, missing_trials=end))
        for part in parts
        for end in ("wrong", "right")
    }
    for part, end in (("ci_lower", "wrong"), ("ci_upper", "right")):
        found[f"{part}_if_{end}"] = float(both.sel(statistic=part, missing_trials=end))
    return found


def coefficient_table(result: xr.DataTree | Result) -> pd.DataFrame:
    """Tabulate the coefficients of covariates: one row per system and coefficient.

    Parameters
    ----------
    result : xarray.DataTree
        With covariates.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``coefficient``, ``mean``, ``sd``, ``ci_lower``, ``ci_upper``, in logits
        for each unit of the column, and ``prob_positive``, from the draws.

    Examples
    --------
    >>> import bayesatk
    >>> runs = bayesatk.tally([[1, 1], [1, 0], [0, 0]] * 5, covariates={"size": [1, 2, 3] * 5})
    >>> fit = bayesatk.evaluate(runs, "pass@1", covariates=["size"], rng=1)
    >>> rows = coefficient_table(fit)
    >>> rows["coefficient"].tolist(), bool(rows["ci_upper"][1] < 0)
    (['Intercept', 'size'], True)
    """
    own = Result.of(result)
    draws = own.posterior["coefficients"]
    positive = (draws > 0.0).mean(("chain", "draw"))
    if own.has("closed_form"):
        known = own.group("closed_form")["coefficients"]
    else:
        ends = draws.quantile(list(own.tails), dim=("chain", "draw"))
        parts = {
            "mean": draws.mean(("chain", "draw")), "sd": draws.std(("chain", "draw"), ddof=1),
            "ci_lower": ends.isel(quantile=0, drop=True),
            "ci_upper": ends.isel(quantile=1, drop=True),
        }  # fmt: skip
        known = xr.concat(parts.values(), dim=pd.Index(list(parts), name="statistic"))
    rows = []
    for system in own.systems:
        for name in draws["coefficient"].values.tolist():
            cells = known.sel(system=system, coefficient=name)
            numbers = {
                one: float(cells.sel(statistic=one))
                for one in ("mean", "sd", "ci_lower", "ci_upper")
            }
            share = float(positive.sel(system=system, coefficient=name))
            rows.append({"system": system, "coefficient": name, **numbers, "prob_positive": share})
    return pd.DataFrame(rows)


def category_table(result: xr.DataTree | Result) -> pd.DataFrame:
    """Tabulate the probability that a trial reaches each category's score, or a better one.

    Parameters
    ----------
    result : xarray.DataTree
        A result of scored categories, from `bayesatk.evaluate` or `bayesatk.sample`.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``category``, ``score``, ``target``, ``mean``, ``sd``, ``ci_lower``,
        ``ci_upper``; for every system from the best category to the worst, whose probability is 1.

    See Also
    --------
    bayesatk.table : the metrics.

    Examples
    --------
    >>> import bayesatk
    >>> data = bayesatk.tally([["b", "a", "b", "c"]], scores={"c": 0, "b": 0.5, "a": 1})
    >>> fit = bayesatk.evaluate(data, "bayes", pooling="none", rng=1)
    >>> rows = bayesatk.category_table(fit).query("target == 'questions'")
    >>> rows[["category", "mean"]].round(4).values.tolist()  # (1 + 1)/7, (1 + 1 + 2 + 1)/7
    [['a', 0.2857], ['b', 0.7143], ['c', 1.0]]
    """
    own = Result.of(result)
    statistics = own.statistics
    scores = own.group("constant_data").get("category_score")
    if scores is None:
        raise ValueError(
            "result must be of scored categories; it is of right and wrong. There pass@1 is the "
            "probability to reach the better of the two."
        )
    certain = {"mean": 1.0, "sd": 0.0, "ci_lower": 1.0, "ci_upper": 1.0}
    # Where all scores are equal there is nothing to reach.
    reached = set(statistics["reached"].values.tolist()) if "reached" in statistics.dims else ()
    rows = []
    for system in statistics["system"].values:
        for position in np.argsort(-scores.values, kind="stable"):
            name = str(scores["category"].values[position])
            for target in TARGETS:
                row = {"system": system, "category": name}
                row |= {"score": float(scores.values[position]), "target": target}
                numbers = certain
                if name in reached:
                    cells = statistics["reach_probability"].sel(system=system, target=target)
                    cells = cells.sel(reached=name)
                    numbers = {one: float(cells.sel(statistic=one)) for one in certain}
                rows.append(row | numbers)
    return pd.DataFrame(rows)


def notes(result: xr.DataTree | Result) -> list[str]:
    """Return the notes of a result: assumptions, approximations and warnings, as sentences.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.

    Returns
    -------
    list of str
        The same notes that `bayesatk.table` and `bayesatk.report` show.

    See Also
    --------
    bayesatk.table : the numbers that the notes are about.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", difficulty="beta", rng=1)
    >>> notes(fit)
    []
    """
    return Result.of(result).notes
