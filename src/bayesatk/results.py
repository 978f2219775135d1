"""Results: one builder and one reader of InferenceData, whatever produced the numbers.

A result is an `xarray.DataTree` with the InferenceData groups ``posterior``, ``observed_data`` and
``constant_data``; a closed form adds ``closed_form`` (exact statistics) and
``closed_form_quantiles`` (the exact distribution, as quantiles). Attributes are text or numbers,
so that netCDF keeps them.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.answers import AnswerRules, Answers
from bayesatk.core.priors import prior_from
from bayesatk.metrics import Metric, MetricGrid, parse
from bayesatk.outcomes import Outcomes

SCHEMA_VERSION = 1
TARGETS = ("questions", "population")
STATISTICS = (
    "estimate",
    "mean",
    "sd",
    "ci_lower",
    "ci_upper",
    "ci_error",
    "variance_trial",
    "variance_question",
    "prior_sensitivity",
)
QUANTILE_LEVELS = np.round(np.concatenate([[0.005], np.arange(0.01, 1.0, 0.01), [0.995]]), 3)
_PACKAGES = ("numpy", "scipy", "xarray", "arviz", "pymc", "nutpie")


def root_attributes(
    method: str,
    pooling: str,
    prior: Mapping[str, object],
    seed: str,
    metrics: str,
    data: Outcomes,
    citations: tuple[str, ...],
    **more: str | float | int,
) -> dict[str, Any]:
    """Return the provenance that every result carries on its root."""
    return {
        "schema_version": SCHEMA_VERSION,
        "method": method,
        "pooling": pooling,
        "prior": json.dumps(prior),
        "seed": seed,
        "metrics": metrics,
        "missing_policy": str(data.dataset.attrs.get("missing_policy", "error")),
        "assumptions": json.dumps(list(data.notes)),
        "input_sha256": data.sha256(),
        "input_files": json.dumps([list(each) for each in data.sources]),
        "citations": json.dumps(list(citations)),
        "versions": json.dumps({name: version(name) for name in ("bayesatk", *_PACKAGES)}),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **more,
    }


def metric_dataset(
    grid: MetricGrid,
    values: NDArray[np.float64],
    leading: tuple[str, ...],
    trailing: tuple[str, ...],
    coords: Mapping[str, Any],
) -> xr.Dataset:
    """Return an array over the grid of metrics as named variables.

    Parameters
    ----------
    grid : MetricGrid
    values : ndarray, shape (*leading, len(grid), *trailing)
    leading, trailing : tuple of str
        Names of the other dimensions.
    coords : mapping
        Coordinates of the other dimensions.
    """
    return xr.Dataset(grid.split(values, leading, trailing), coords={**grid.coords, **coords})


def posterior_group(
    grid: MetricGrid,
    draws: NDArray[np.float64],
    systems: Any,
    extra: Mapping[str, tuple[tuple[str, ...], NDArray[np.float64]]],
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Return the ``posterior`` group from draws (chain, draw, system, metric, target)."""
    coords = {
        "chain": np.arange(draws.shape[0]),
        "draw": np.arange(draws.shape[1]),
        "system": systems,
        "target": list(TARGETS),
    }
    dataset = metric_dataset(grid, draws, ("chain", "draw", "system"), ("target",), coords)
    return dataset.assign(extra).assign_attrs(sample_dims=["chain", "draw"], **attrs)


def data_groups(
    data: Outcomes,
    on_categories: bool = False,
    with_answers: bool = False,
    prior_counts: NDArray[np.float64] | None = None,
) -> dict[str, xr.Dataset]:
    """Return ``observed_data`` and ``constant_data``.

    Successes with trials and missing; or counts by category, with the scores and prior trials;
    and answers, one entry for each distinct (system, question, answer).
    """
    constant = xr.Dataset({"trials": data.trials, "missing": data.dataset["missing"]})
    if on_categories:
        observed = data.dataset["count"].drop_vars("score").to_dataset()
        scores = data.dataset["score"].drop_vars("score")
        constant = constant.assign(category_score=scores)
        if prior_counts is not None:
            dims = ("system", "question", "category")
            constant = constant.assign(prior_count=(dims, prior_counts))
    else:
        observed = data.successes.to_dataset()
    if with_answers and data.answers is not None:
        entries = data.answers
        columns = {
            "answer_count": entries.count,
            "answer_system": entries.system,
            "answer_question": entries.question,
            "answer_correct": entries.correct.astype(np.int64),
        }
        observed = observed.assign({name: ("answer", v) for name, v in columns.items()})
        observed = observed.assign_coords(answer=entries.label)
        rule = {"rule": entries.rules.unanswered}
        constant = constant.assign(unanswered=(("system", "question"), entries.unanswered, rule))
    return {"observed_data": observed, "constant_data": constant}


def build(groups: Mapping[str, xr.Dataset], attrs: Mapping[str, Any]) -> xr.DataTree:
    """Assemble groups and root attributes into a result.

    Coordinates that only describe others (``score``) are dropped: every group stands alone, as
    InferenceData groups do.
    """
    tree = xr.DataTree.from_dict(
        {f"/{name}": group.drop_vars("score", errors="ignore") for name, group in groups.items()}
    )
    tree.attrs.update(attrs)
    return tree


def check_result(result: object, group: str = "posterior") -> xr.DataTree:
    """Return the tree if it is a bayesatk result with this group, or say what is wrong."""
    if not isinstance(result, xr.DataTree) or "schema_version" not in result.attrs:
        raise TypeError(
            "result must be a DataTree made by bayesatk.evaluate or bayesatk.sample; got "
            f"{type(result).__name__}. Read a saved one with bayesatk.load_result."
        )
    if group not in result.children:
        raise ValueError(
            f"result must have the group {group!r}; it has {sorted(result.children)}. Closed-form "
            "statistics come from bayesatk.evaluate, draws from either function."
        )
    return result


def one_system(result: xr.DataTree, system: object = None) -> xr.DataTree:
    """Return a result of one system, without the dimension of systems.

    ArviZ's plots of counts (``az.plot_ppc_rootogram``, ``az.plot_ppc_pit`` and others) want
    observations along one dimension, the questions.

    Parameters
    ----------
    result : xarray.DataTree
    system : label, optional
        May be left out where there is only one.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "bayes", rng=1)
    >>> one_system(fit, "b")["observed_data"]["successes"].values.tolist()
    [2]
    """
    check_result(result)
    labels = result["posterior"].to_dataset()["system"].values.tolist()
    if system is None and len(labels) > 1:
        raise ValueError(f"system must be given where there are several; choose among {labels}.")
    if system is not None and system not in labels:
        raise ValueError(f"system must be one of {labels}; got {system!r}.")
    index = 0 if system is None else labels.index(system)
    groups = {}
    for name, node in result.children.items():
        group = node.to_dataset()
        groups[f"/{name}"] = (
            group.isel(system=index, drop=True) if "system" in group.dims else group
        )
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(result.attrs)
    return tree


def metric_grid(result: xr.DataTree) -> MetricGrid:
    """Return the grid of metrics that a result holds."""
    return MetricGrid.of(str(result.attrs["metrics"]))


def metric_values(variables: xr.Dataset, metric: Metric) -> xr.DataArray:
    """Return the variable of a metric at its own k and tau."""
    values = variables[metric.family.variable]
    if metric.family.has_k:
        values = values.sel(k=metric.k)
    return values if metric.tau is None else values.sel(tau=metric.tau)


def stored_prior(result: xr.DataTree, name: str = "prior") -> Any:
    """Return the prior, or the ``answer_prior``, that a result was made with."""
    return prior_from(json.loads(result.attrs[name]))


def stored_answers(result: xr.DataTree) -> Answers:
    """Return the answers of a result of votes."""
    observed = result["observed_data"].to_dataset()
    constant = result["constant_data"].to_dataset()
    columns = [observed[f"answer_{name}"].values for name in ("system", "question", "count")]
    return Answers(
        columns[0], columns[1], observed["answer"].values.tolist(), columns[2],
        observed["answer_correct"].values.astype(bool), constant["unanswered"].values,
        AnswerRules(unanswered=constant["unanswered"].attrs["rule"]),
    )  # fmt: skip


def stored_counts(result: xr.DataTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the successes and trials of a result, each (system, question)."""
    observed = result["observed_data"].to_dataset()
    if "successes" not in observed:
        raise ValueError(
            "the result must be of right and wrong; it is of scored categories. Evaluate the data "
            "with success='score >= ...' for this, or use its posterior draws."
        )
    successes = observed["successes"]
    return successes.values, result["constant_data"].to_dataset()["trials"].values


def table(result: xr.DataTree) -> pd.DataFrame:
    """Tabulate a result: one row per system, target and metric that was asked for.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` (exact statistics) or `bayesatk.sample` (statistics of the draws).

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``metric``, ``target``, ``estimate`` (unbiased finite law; NaN where
        k exceeds the trials of some question), ``mean``, ``sd``, ``ci_lower``, ``ci_upper``, and
        for closed forms ``variance_trial`` and ``variance_question``.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@2", pooling="none", rng=1)
    >>> rows = bayesatk.table(fit)[["metric", "target", "estimate", "mean"]]
    >>> rows.iloc[0].tolist()  # doctest: +ELLIPSIS
    ['pass@2', 'questions', ...0.95..., ...0.8392...]
    """
    tree = check_result(result)
    statistics = statistics_of(tree)
    systems = tree["posterior"].to_dataset()["system"].values
    rows = []
    for system in systems:
        for metric in parse(str(tree.attrs["metrics"])):
            values = metric_values(statistics, metric).sel(system=system)
            for target in TARGETS:
                cells = values.sel(target=target)
                numbers = {
                    str(name): float(cells.sel(statistic=name))
                    for name in cells["statistic"].values
                }
                rows.append({"system": system, "metric": metric.label, "target": target, **numbers})
    return pd.DataFrame(rows)


def category_table(result: xr.DataTree) -> pd.DataFrame:
    """Tabulate the probability that a trial reaches each category's score, or a better one.

    Parameters
    ----------
    result : xarray.DataTree
        Of scored categories.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``category``, ``score``, ``target``, ``mean``, ``sd``, ``ci_lower``,
        ``ci_upper``; for every system from the best category down. Reaching the lowest is certain.

    Examples
    --------
    >>> import bayesatk
    >>> data = bayesatk.tally([["b", "a", "b", "c"]], scores={"c": 0, "b": 0.5, "a": 1})
    >>> fit = bayesatk.evaluate(data, "bayes", pooling="none", rng=1)
    >>> rows = bayesatk.category_table(fit).query("target == 'questions'")
    >>> rows[["category", "mean"]].round(4).values.tolist()  # (1 + 1)/7, (1 + 1 + 2 + 1)/7
    [['a', 0.2857], ['b', 0.7143], ['c', 1.0]]
    """
    tree = check_result(result)
    statistics = statistics_of(tree, ["reach_probability"])
    scores = tree["constant_data"].to_dataset().get("category_score")
    if scores is None or "reach_probability" not in statistics:
        raise ValueError(
            "result must be of scored categories; it is of right and wrong. There pass@1 is the "
            "probability to reach the better of the two."
        )
    certain = {"mean": 1.0, "sd": 0.0, "ci_lower": 1.0, "ci_upper": 1.0}
    reached = set(statistics["reached"].values.tolist())
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


def statistics_of(tree: xr.DataTree, more: Sequence[str] = ()) -> xr.Dataset:
    """Return exact statistics if the result has them, else those of its draws."""
    if "closed_form" in tree.children:
        return tree["closed_form"].to_dataset()
    tail = 0.5 * (1.0 - float(tree.attrs["ci_prob"]))
    draws = tree["posterior"].to_dataset()
    names = [*(family.variable for family in metric_grid(tree).families), *more]
    draws = draws[[name for name in names if name in draws]]
    sample = ("chain", "draw")
    ends = draws.quantile([tail, 1.0 - tail], dim=sample)
    parts = {
        "mean": draws.mean(sample),
        "sd": draws.std(sample, ddof=1),
        "ci_lower": ends.isel(quantile=0, drop=True),
        "ci_upper": ends.isel(quantile=1, drop=True),
    }
    return xr.concat(parts.values(), dim=pd.Index(list(parts), name="statistic"))


def notes(result: xr.DataTree) -> list[str]:
    """Return what a reader of the numbers should know, in sentences."""
    return [str(note) for note in json.loads(str(result.attrs.get("notes", "[]")))]
