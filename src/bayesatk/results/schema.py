"""Results: one builder and one reader of InferenceData, whatever produced the numbers.

A result is an `xarray.DataTree` with the InferenceData groups ``posterior``, ``observed_data`` and
``constant_data``; a closed form adds ``closed_form`` (exact statistics) and
``closed_form_quantiles`` (the exact distribution, as quantiles). Attributes are text or numbers,
so that netCDF keeps them.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array
from bayesatk.data.answers import AnswerRules, Answers
from bayesatk.data.grouping import Grouping
from bayesatk.data.outcomes import Outcomes, with_truth
from bayesatk.data.study import Study
from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.results.tree import ResultTree

SCHEMA_VERSION = 2
TARGETS = ("questions", "population")
GROUPED_TARGETS = (*TARGETS, "new_groups")  # of questions in groups
TARGET_NAMES = {
    "questions": "these questions",
    "population": "questions like these",
    "new_groups": "new groups of questions",
}
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
MAX_RHAT = 1.01  # above which chains have not mixed
ONE_CHAIN = "One chain has no R-hat, which tells whether chains have mixed: sample two or more."
DRAWS = ("chain", "draw", "system")  # first dimensions of draws
SAMPLE = {"sample_dims": ["chain", "draw"]}  # attributes of draws, for ArviZ
SAMPLER_ATTRIBUTES = ("inference_library", "inference_library_version", "sampling_time")  # kept
MOST_GROUP_DRAWS = 10_000_000  # draws of metrics of groups that are kept: 80 MB
CHAINS = 4  # that exact draws are laid out as, so that ArviZ takes them
_PACKAGES = ("bayesatk", "numpy", "scipy", "xarray", "arviz", "pymc", "nutpie")


def root_attributes(
    method: str,
    study: str,
    seed: str,
    data: Outcomes | None,
    citations: tuple[str, ...],
    **more: str | float | int,
) -> dict[str, Any]:
    """Return the provenance that every result carries on its root, and the text of its study.

    Without data: of what was worked out from numbers that were stated.
    """
    attributes = {} if data is None else data.dataset.attrs
    missing = attributes.get("missing_policy", "error")
    return {
        "schema_version": SCHEMA_VERSION,
        "method": method,
        "study": study,
        "seed": seed,
        "missing_policy": str(missing),
        **{name: str(attributes[name]) for name in ("stopping",) if name in attributes},
        "assumptions": json.dumps([] if data is None else list(data.notes)),
        "input_sha256": "" if data is None else data.sha256(),
        "input_files": json.dumps(
            [] if data is None else [list(source) for source in data.sources]
        ),
        "citations": json.dumps(list(citations)),
        "versions": _versions(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **more,
    }


@cache
def _versions() -> str:
    """Return the versions of the packages, which do not change while Python runs, as JSON."""
    versions = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):  # closed forms need neither arviz nor pymc
            versions[name] = version(name)
    return json.dumps(versions)


def metric_dataset(
    grid: MetricGrid,
    values: Array,
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


def draws_dataset(
    variables: Mapping[str, tuple[Sequence[str], NDArray[Any]]],
    like: Mapping[Any, Any],
    **coords: Any,
) -> xr.Dataset:
    """Return arrays (draws, system, ...) as draws of a result.

    Parameters
    ----------
    variables : mapping {name: (dims behind the system, values)}
    like : mapping
        Has the coordinates ``chain`` and ``draw``: chains come one after the other.
    **coords
        Labels of the other dimensions; those that no variable has are left out.
    """
    coords |= {name: np.asarray(like[name]) for name in ("chain", "draw")}
    shape = len(coords["chain"]), len(coords["draw"])
    data = {
        name: ((*DRAWS, *dims), values.reshape(*shape, *values.shape[1:]))
        for name, (dims, values) in variables.items()
    }
    used = {dim for dims, _ in data.values() for dim in dims}
    labels = {name: values for name, values in coords.items() if name in used}
    return xr.Dataset(data, labels, SAMPLE)


def chain_dataset(variables: Mapping[str, NDArray[Any]], **attrs: str) -> xr.Dataset:
    """Return arrays (chain, draw) as draws of what no system has."""
    chains, draws = next(iter(variables.values())).shape
    data = {name: (("chain", "draw"), values) for name, values in variables.items()}
    return xr.Dataset(data, {"chain": np.arange(chains), "draw": np.arange(draws)}, SAMPLE | attrs)


def posterior_group(
    grid: MetricGrid,
    draws: Array,
    systems: Any,
    extra: Mapping[str, tuple[tuple[str, ...], Array]],
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Return the ``posterior`` group from draws (chain, draw, system, metric, target)."""
    coords = {
        "chain": np.arange(draws.shape[0]),
        "draw": np.arange(draws.shape[1]),
        "system": systems,
        "target": list(GROUPED_TARGETS[: draws.shape[-1]]),
    }
    dataset = metric_dataset(grid, draws, DRAWS, ("target",), coords)
    return dataset.assign(extra).assign_attrs(**SAMPLE, **attrs)


def group_results(
    grid: MetricGrid,
    labels: Sequence[Any],
    statistics: Array,
    quantiles: Array,
    draws: Array,
    posterior: xr.Dataset,
    interval_draws: int,
) -> dict[str, xr.Dataset]:
    """Return the groups of a closed form that have the dimension ``group``.

    Parameters
    ----------
    grid : MetricGrid
    labels : sequence
        Of the groups.
    statistics, quantiles : ndarray, shape (system, group, metrics, target, ...)
    draws : ndarray, shape (draws, system, group, metrics, target)
        Left out of the result where they are very many.
    posterior : xarray.Dataset
        With coordinates of chains, draws and systems.
    interval_draws : int
        Independent draws behind intervals.
    """
    coords = {"system": posterior["system"].values, "group": list(labels), "target": list(TARGETS)}
    groups = {
        name: metric_dataset(
            grid,
            values,
            ("system", "group"),
            ("target", statistic),
            {**coords, statistic: members},
        )
        for name, values, statistic, members in (
            ("group_closed_form", statistics, "statistic", list(STATISTICS)),
            ("group_closed_form_quantiles", quantiles, "quantile", QUANTILE_LEVELS),
        )
    }
    for values in groups["group_closed_form"].data_vars.values():
        values.attrs["interval_draws"] = interval_draws
    if draws.size <= MOST_GROUP_DRAWS:
        groups["group_posterior"] = group_draws_dataset(grid, labels, draws, posterior)
    return groups


def group_draws_dataset(
    grid: MetricGrid, labels: Sequence[Any], draws: Array, posterior: xr.Dataset
) -> xr.Dataset:
    """Return the draws (draws, system, group, metrics, target) of every group of questions."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"], *draws.shape[1:]
    coords: dict[str, Any] = {name: posterior[name].values for name in DRAWS}
    coords |= {"group": list(labels), "target": list(TARGETS)}
    dataset = metric_dataset(grid, draws.reshape(shape), (*DRAWS, "group"), ("target",), coords)
    return dataset.assign_attrs(SAMPLE)


def result_tree(groups: Mapping[str, xr.Dataset], attrs: Mapping[str, Any]) -> xr.DataTree:
    """Assemble groups and root attributes into a result.

    Coordinates that only describe others (``score``) are dropped: every group stands alone, as
    InferenceData groups do.
    """
    tree = ResultTree.from_dict(
        {f"/{name}": group.drop_vars("score", errors="ignore") for name, group in groups.items()}
    )
    tree.attrs.update(attrs)
    return tree


def check_result(result: object, group: str | None = "posterior") -> xr.DataTree:
    """Return the tree if it is a bayesatk result (with this group), or say what is wrong."""
    if isinstance(result, xr.DataTree) and "selected" in result.attrs:
        raise TypeError(
            "fit must be a whole result, or one of some systems, fit.sel(system=[label]); of this "
            f"one a part along {result.attrs['selected']} was selected. Pass the result that it is "
            "of; questions are chosen before: bayesatk.evaluate(data.sel(question=[...]), metrics)."
        )
    if not isinstance(result, xr.DataTree) or "schema_version" not in result.attrs:
        remedy = (
            "Draws of your own model become one by bayesatk.from_draws(trace, data, metrics)"
            if isinstance(result, xr.DataTree)
            else "Evaluate data first, bayesatk.evaluate(data, metrics), or read a saved result "
            "with bayesatk.load_result(path)"
        )
        raise TypeError(
            "fit must be a DataTree made by bayesatk.evaluate or bayesatk.sample; got "
            f"{type(result).__name__}. {remedy}."
        )
    if group is not None and group not in result.children:
        maker, contents = _MAKERS.get(group, _MAKERS["posterior"])
        raise ValueError(
            f"fit must have the group {group!r}, {contents}; it has {sorted(result.children)}. "
            f"Use the result of {maker}."
        )
    return result


# Groups that are a table each (`bayesatk.results.result`), in the order in which they are shown.
ANALYSES = ("leaderboard", "contrast", "gate", "plan")
_COMPARED = "bayesatk.compare(fit): compare first", "differences between systems"
_BASELINE = "bayesatk.guessing.random_baseline(fit, p)", "a random baseline"
# Groups whose values depend on which systems a result has.
OF_ALL_SYSTEMS = (
    "comparison",
    "group_comparison",
    "ranks",
    "tiers",
    "leaderboard",
    "contrast",
    "gate",
    "plan",
)
_MAKERS = {
    "plan": ("bayesatk.plan(source, metric, width=0.1)", "sizes of evaluations"),
    "gate": ("bayesatk.decide.gate(new, baseline, policy)", "the verdict on a new system"),
    "leaderboard": ("bayesatk.leaderboard(fit)", "systems ranked by their joint posterior"),
    "comparison": _COMPARED,
    "ranks": _COMPARED,
    "group_comparison": (
        "bayesatk.compare(fit): compare first",
        "differences on groups of questions",
    ),
    "tiers": _COMPARED,
    "contrast": ("bayesatk.compare(fit, contrast={...})", "a sum of systems times weights"),
    "random_baseline": _BASELINE,
    "closed_form": ("bayesatk.evaluate(data, metrics)", "exact statistics"),
    "posterior": ("bayesatk.evaluate(data, metrics), or of bayesatk.sample", "posterior draws"),
}


def statistics_of_draws(
    posterior: xr.Dataset, names: Collection[str], tails: tuple[float, float]
) -> xr.Dataset:
    """Return mean, sd and interval of the draws of some variables."""
    draws = posterior[[name for name in posterior.data_vars if name in names]]
    sample = ("chain", "draw")
    ends = draws.quantile(list(tails), dim=sample)
    parts = {
        "mean": draws.mean(sample),
        "sd": draws.std(sample, ddof=1),
        "ci_lower": ends.isel(quantile=0, drop=True),
        "ci_upper": ends.isel(quantile=1, drop=True),
    }
    return xr.concat(parts.values(), dim=pd.Index(list(parts), name="statistic"))


def by_metric[Values: (xr.Dataset, xr.DataArray)](
    metrics: Sequence[Metric], values_of: Callable[[Metric], Values]
) -> Values:
    """Return the values of several metrics along the dimension ``metric``."""
    labels = xr.DataArray([metric.label for metric in metrics], dims="metric", name="metric")
    values = [values_of(metric).drop_vars(["k", "tau"], errors="ignore") for metric in metrics]
    return xr.concat(values, dim=labels)


def metric_values(variables: xr.Dataset, metric: Metric) -> xr.DataArray:
    """Return the variable of a metric at its own k and tau."""
    values = variables[metric.family.variable]
    if metric.family.has_k:
        values = values.sel(k=metric.k)
    return values if metric.tau is None else values.sel(tau=metric.tau)


def labelled(posterior: xr.Dataset, grouping: Grouping | None) -> xr.Dataset:
    """Return draws with the labels of groups, where there are any."""
    return posterior if grouping is None else posterior.assign_coords(group=grouping.labels)


def data_groups(study: Study) -> dict[str, xr.Dataset]:
    """Return ``observed_data`` and ``constant_data``.

    Observed are successes, or counts by category, which are what ArviZ plots of replicated data
    look for. Constant are trials, missing, scores and prior trials; trials of known truth, which
    the likelihood is given with; and answers, one entry for each distinct
    (system, question, answer).
    """
    data, scale = study.outcomes, study.scale
    constant = xr.Dataset({"trials": data.trials, "missing": data.dataset["missing"]})
    constant = constant.assign(scale.constants(data))
    if study.prior_counts is not None:
        prior_count = ("system", "question", "category"), study.prior_counts
        constant = constant.assign(prior_count=prior_count)
    observed = scale.observed(data).to_dataset()
    if "truth_count" in data.dataset:
        constant = constant.assign(truth_count=data.dataset["truth_count"])
    if study.votes and data.answers is not None:
        entries = data.answers
        columns = {
            "answer_count": entries.count,
            "answer_system": entries.system,
            "answer_question": entries.question,
            "answer_correct": entries.correct.astype(np.int64),
        }
        constant = constant.assign({name: ("answer", v) for name, v in columns.items()})
        constant = constant.assign_coords(answer=entries.label)
        rule = {"rule": entries.rules.unanswered}
        constant = constant.assign(unanswered=(("system", "question"), entries.unanswered, rule))
    return {"observed_data": observed, "constant_data": constant}


def stored_outcomes(
    observed: xr.Dataset, constant: xr.Dataset, attrs: Mapping[Any, Any]
) -> Outcomes:
    """Return the data of a result; right and wrong are the categories "1" and "0".

    Parameters
    ----------
    observed, constant : xarray.Dataset
        From `data_groups`.
    attrs : mapping
        Of the root of the result.
    """
    scores: tuple[Any, Any] = [0.0, 1.0], {}
    if "count" in observed:
        held = constant["category_score"]
        count, scores = observed["count"].values, (held.values, held.attrs)
        categories = observed["category"].values.tolist()
    else:
        right = observed["successes"].values
        count = np.stack([constant["trials"].values - right, right], axis=-1)
        categories = ["0", "1"]
    dims = ("system", "question")
    dataset = xr.Dataset(
        {"count": ((*dims, "category"), count), "missing": (dims, constant["missing"].values)},
        {
            "system": observed["system"].values,
            "question": observed["question"].values,
            "category": categories,
            "score": ("category", *scores),
            **{
                name: ("question", column, dict(constant[name].attrs))
                for name, column in question_columns(constant).items()
            },
        },
        {
            "missing_policy": str(attrs.get("missing_policy", "error")),
            **{name: str(attrs[name]) for name in ("stopping",) if name in attrs},
        },
    )
    if "truth_count" in constant:
        dataset = with_truth(dataset, constant["truth_count"].values)
    answers = _answers(constant) if "answer_count" in constant else None
    notes, files = (json.loads(attrs.get(name, "[]")) for name in ("assumptions", "input_files"))
    sources = tuple((str(name), str(digest)) for name, digest in files)
    return Outcomes(dataset, tuple(notes), answers, sources)


def question_columns(constant: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return what the data said of the questions: their group, weight and covariates, by name."""
    return {
        str(name): column.values
        for name, column in constant.coords.items()
        if column.dims == ("question",) and name != "question"
    }


def _answers(constant: xr.Dataset) -> Answers:
    columns = [constant[f"answer_{name}"].values for name in ("system", "question", "count")]
    return Answers(
        columns[0],
        columns[1],
        constant["answer"].values.tolist(),
        columns[2],
        constant["answer_correct"].values.astype(bool),
        constant["unanswered"].values,
        AnswerRules(unanswered=constant["unanswered"].attrs["rule"]),
    )
