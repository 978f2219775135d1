"""Results as documents of Every Eval Ever: a score with its uncertainty, by system and metric."""

import math
import re
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from bayesatk.results.costs import MONEY, cost_table
from bayesatk.results.result import Result
from bayesatk.results.tables import table

_MEANING = {
    "questions": "of the questions that were asked",
    "population": "of questions like those that were asked",
    "new_groups": "of questions of new groups",
}
# What identifies a row, and what the schema has a field for; other columns are details.
_PLACED = {
    "system", "group", "questions", "metric", "quantity", "k", "budget", "unit", "target",
    "estimate", "mean", "sd", "ci_lower", "ci_upper",
}  # fmt: skip


def every_eval_ever(result: Result) -> dict[str, dict[str, Any]]:
    """Return an aggregate record of Every Eval Ever for each system.

    The schema (version 0.3) has one document for one model, and for each of its results a score
    with a standard error and an interval. A metric gives a result for each target, and with groups
    for each group; costs give one for each quantity. The score is the unbiased estimate where all
    questions have it, and otherwise the posterior mean. What JSON has no number for (a mean that
    does not exist) is left out and named in ``eval_library.additional_details``.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"org/m": [[1, 0], [1, 1]]}, "pass@1", pooling="none", rng=1)
    >>> document = every_eval_ever(Result.of(fit))["org/m"]
    >>> document["model_info"]["id"], document["evaluation_results"][0]["score_details"]["score"]
    ('org/m', 0.75)
    """
    tables = [cost_table(result) if result.of_costs else table(result)]
    if result.grouping is not None and not result.of_costs:
        tables.append(table(result, by="group"))
    return {
        str(system): _document(
            result,
            position,
            [
                {str(column): value for column, value in row.items()}
                for frame in tables
                for row in frame[frame["system"] == system].to_dict("records")
            ],
        )
        for position, system in enumerate(result.systems)
    }


def _document(result: Result, position: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record of one system."""
    system = str(result.systems[position])
    created = str(result.tree.attrs.get("created_at", ""))
    seconds = str(int(pd.Timestamp(created).timestamp())) if created else "0"
    entries = {_label(row): _entry(result, position, row) for row in rows}
    undefined = [label for label, entry in entries.items() if entry is None]
    library: dict[str, Any] = {"name": "bayesatk", "version": version("bayesatk")}
    if undefined:
        library["additional_details"] = {"without_a_finite_score": ", ".join(undefined)}
    # What a result does not know of its model and its source, in the words of the schema.
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    model = {"name": system, "id": system, "additional_details": unknown}
    developer, named, _ = system.partition("/")
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"bayesatk/{system}/{seconds}",
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_type": "evaluation_run", "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": library,
        "model_info": model | ({"developer": developer} if named else {}),
        "evaluation_results": [entry for entry in entries.values() if entry is not None],
    }  # fmt: skip


def _metric(row: dict[str, Any]) -> str:
    """Name a metric, or a quantity of costs with its k or budget."""
    if "metric" in row:
        return str(row["metric"])
    level = [f"{name}={row[name]:g}" for name in ("k", "budget") if not math.isnan(row[name])]
    return " ".join([row["quantity"], *level])


def _label(row: dict[str, Any]) -> str:
    group = [f"group={row['group']}"] if "group" in row else []
    return "/".join([_metric(row), str(row["target"]), *group])


def _entry(result: Result, position: int, row: dict[str, Any]) -> dict[str, Any] | None:
    """Return one metric for one target, and group; None if it has no finite score."""
    target, meaning = str(row["target"]), _MEANING[str(row["target"])]
    of_all = row.get("estimate_questions") == row.get("tried_questions")
    observed = target == "questions" and of_all and math.isfinite(row["estimate"])
    score = row["estimate"] if observed else row["mean"]
    if not math.isfinite(score):
        return None
    group = f" of the group {row['group']}" if "group" in row else ""
    weighted = "" if result.weight is None else ", questions weighted"
    names = [name for name, *_ in result.described("input_files", None) or []]
    details = {
        "score_is": "unbiased estimate" if observed else "posterior mean",
        "posterior_mean": repr(row["mean"]), "target": target,
        "input_sha256": str(result.tree.attrs.get("input_sha256", "")),
    }  # fmt: skip
    further_columns = {name: value for name, value in row.items() if name not in _PLACED}
    details |= {
        name: repr(value) for name, value in further_columns.items() if not math.isnan(value)
    }
    return {
        "evaluation_result_id": _label(row),
        "evaluation_name": _metric(row),
        "source_data": {"dataset_name": ", ".join(map(str, names)) or "unknown",
                        "source_type": "other"},
        "metric_config": {
            "evaluation_description": f"{_metric(row)} {meaning}{group}{weighted}",
            "metric_name": _metric(row), **_scale(result, row),
        },
        "score_details": {
            "score": score, "details": details, "uncertainty": _uncertainty(result, position, row),
        },
    }  # fmt: skip


def _scale(result: Result, row: dict[str, Any]) -> dict[str, Any]:
    """Return parameters, direction and ends of a metric; money has no upper end."""
    parameters: dict[str, float] = {name: row[name] for name in ("k", "budget") if name in row}
    metric = next((metric for metric in result.metrics if metric.label == row.get("metric")), None)
    if metric is not None:
        parameters = {"k": metric.k} if metric.family.has_k else {}
        parameters |= {} if metric.tau is None else {"tau": metric.tau}
    stated_parameters = {name: value for name, value in parameters.items() if not math.isnan(value)}
    config: dict[str, Any] = {"metric_parameters": stated_parameters, "lower_is_better": False}
    if row.get("quantity") in MONEY:
        return config | {"lower_is_better": True, "metric_unit": row["unit"]}
    if row.get("quantity") == "tries_at_budget":
        return config
    low, high = float(result.scores.min()), float(result.scores.max())
    if (low, high) == (0.0, 1.0):
        return config | {"score_type": "continuous", "min_score": low, "max_score": high}
    # Of other numbers only those that were read are known.
    details = {"scores_read": f"{low:g} to {high:g}"}
    return config | {"lower_is_better": result.data.direction < 0, "additional_details": details}


def _uncertainty(result: Result, position: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return the posterior's sd and interval, with the number of questions they are from."""
    target = str(row["target"])
    drawn = f"; {result.study.population_words}" if target == "population" else ""
    source = "draws of the posterior" if result.sampled else "posterior"
    method = f"{source} {_MEANING[target]}{drawn}; pooling {result.pooling}; {result.method}"
    kind = "highest density" if result.ci_kind == "hdi" else "equal-tailed"
    tried = result.trials[position] > 0
    if "group" in row and result.grouping is not None:
        tried = tried & (np.asarray(result.grouping.labels)[result.grouping.code] == row["group"])
    uncertainty: dict[str, Any] = {"num_samples": int(tried.sum())}
    if math.isfinite(row["sd"]):
        uncertainty["standard_error"] = {"value": row["sd"], "method": f"sd of the {method}"}
    if math.isfinite(row["ci_lower"]) and math.isfinite(row["ci_upper"]):
        uncertainty["confidence_interval"] = {
            "lower": row["ci_lower"], "upper": row["ci_upper"],
            "confidence_level": result.ci_prob,
            "method": f"{kind} credible interval of the {method}",
        }  # fmt: skip
    return uncertainty


def file_name(system: str) -> str:
    """Return a part of a file name from the name of a system, without folders.

    Examples
    --------
    >>> file_name("org/m 1"), file_name("../x")
    ('org_m_1', '.._x')
    """
    return re.sub(r"[^\w.-]", "_", system)
