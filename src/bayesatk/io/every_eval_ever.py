"""A result as an aggregate record of Every Eval Ever: each metric with its uncertainty.

The schema (version 0.3) has one document for one model, and for each of its results a score with a
standard error and an interval. A metric gives two results, one for each target: of these questions,
and of questions like them.
"""

import math
import re
from importlib.metadata import version
from typing import Any

import pandas as pd

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.results.result import Result
from bayesatk.results.tables import table

_MEANING = {
    "questions": "of the questions that were asked",
    "population": "of questions like those that were asked",
}


def every_eval_ever(result: Result) -> dict[str, Any]:
    """Return a result of one system as a document of the schema.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"org/m": [[1, 0], [1, 1]]}, "pass@1", pooling="none", rng=1)
    >>> document = every_eval_ever(Result.of(fit))
    >>> document["model_info"]["id"], document["evaluation_results"][0]["score_details"]["score"]
    ('org/m', 0.75)
    """
    frame = table(result)
    systems = [str(name) for name in frame["system"].unique()]
    if len(systems) != 1:
        raise ArgumentError(
            Argument("result"), " must be of one system for Every Eval Ever, which has a file for "
            f"each model; got {', '.join(systems)}. Evaluate the systems one by one.",
        )  # fmt: skip
    created = str(result.tree.attrs.get("created_at", ""))
    seconds = str(int(pd.Timestamp(created).timestamp())) if created else "0"
    # What a result does not know of its model and its source, in the words of the schema.
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"bayesatk/{systems[0]}/{seconds}",
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_type": "evaluation_run", "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "bayesatk", "version": version("bayesatk")},
        "model_info": {"name": systems[0], "id": systems[0], "additional_details": unknown},
        "evaluation_results": [_entry(result, row) for row in frame.to_dict("records")],
    }  # fmt: skip


def _entry(result: Result, row: dict[Any, Any]) -> dict[str, Any]:
    """Return one metric for one target."""
    attrs, metric, target = result.tree.attrs, str(row["metric"]), str(row["target"])
    k = re.search(r"[@^](\d+)", metric)
    observed = target == "questions" and not math.isnan(row["estimate"])
    weighted = "" if result.weight is None else ", questions weighted"
    kind = "highest density" if result.ci_kind == "hdi" else "equal-tailed"
    method = f"posterior {_MEANING[target]}; pooling {result.pooling}"
    names = [name for name, *_ in result.described("input_files", None) or []]
    return {
        "evaluation_result_id": f"{metric}/{target}",
        "evaluation_name": metric,
        "source_data": {"dataset_name": ", ".join(map(str, names)) or "unknown",
                        "source_type": "other"},
        "metric_config": {
            "evaluation_description": f"{metric} {_MEANING[target]}{weighted}",
            "metric_name": metric,
            "metric_parameters": {"k": int(k[1])} if k else {},
            "lower_is_better": False,
        },
        "score_details": {
            "score": row["estimate"] if observed else row["mean"],
            "details": {
                "score_is": "unbiased estimate" if observed else "posterior mean",
                "posterior_mean": repr(row["mean"]), "target": target,
                "input_sha256": str(attrs.get("input_sha256", "")),
            },
            "uncertainty": {
                "standard_error": {"value": row["sd"], "method": f"sd of the {method}"},
                "confidence_interval": {
                    "lower": row["ci_lower"], "upper": row["ci_upper"],
                    "confidence_level": result.ci_prob,
                    "method": f"{kind} credible interval of the {method}",
                },
                "num_samples": int(result.group("constant_data").sizes["question"]),
            },
        },
    }  # fmt: skip
