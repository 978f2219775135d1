"""The data of a result: written into its groups, and read back."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.answers import AnswerRules, Answers
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.question_columns import question_coordinates
from bayesatk.data.scales import RIGHT_WRONG, Scale


def data_groups(
    data: Outcomes,
    scale: Scale = RIGHT_WRONG,
    with_answers: bool = False,
    prior_counts: NDArray[np.float64] | None = None,
) -> dict[str, xr.Dataset]:
    """Return ``observed_data`` and ``constant_data``.

    Successes with trials and missing; or counts by category, with the scores and prior trials;
    and answers, one entry for each distinct (system, question, answer).
    """
    constant = xr.Dataset({"trials": data.trials, "missing": data.dataset["missing"]})
    constant = constant.assign(scale.constants(data))
    if prior_counts is not None:
        constant = constant.assign(prior_count=(("system", "question", "category"), prior_counts))
    observed = scale.observed(data).to_dataset()
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


def outcomes_of(observed: xr.Dataset, constant: xr.Dataset, attrs: Mapping[Any, Any]) -> Outcomes:
    """Return the data of a result; right and wrong are the categories "1" and "0".

    Parameters
    ----------
    observed, constant : xarray.Dataset
        From `data_groups`.
    attrs : mapping
        Of the root of the result.
    """
    scores: Any = [0.0, 1.0]
    if "count" in observed:
        count, scores = observed["count"].values, constant["category_score"].values
        categories = observed["category"].values.tolist()
    else:
        right = observed["successes"].values
        count = np.stack([constant["trials"].values - right, right], axis=-1)
        categories = ["0", "1"]
    dims = ("system", "question")
    dataset = xr.Dataset(
        {"count": ((*dims, "category"), count), "missing": (dims, constant["missing"].values)},
        {
            "system": observed["system"].values, "question": observed["question"].values,
            "category": categories, "score": ("category", scores),
            **{name: ("question", own) for name, own in question_coordinates(constant).items()},
        },
        {"missing_policy": str(attrs.get("missing_policy", "error"))},
    )  # fmt: skip
    if "cost_sums" in constant:
        dataset = dataset.assign(cost_sums=constant["cost_sums"].variable)
        dataset = dataset.assign_coords(cost_sum=constant["cost_sum"].values)
        dataset.attrs["cost_unit"] = str(attrs.get("cost_unit", ""))
    answers = _answers(observed, constant) if "answer_count" in observed else None
    notes, files = (json.loads(attrs.get(name, "[]")) for name in ("assumptions", "input_files"))
    sources = tuple((str(name), str(digest)) for name, digest in files)
    return Outcomes(dataset, tuple(notes), answers, sources)


def _answers(observed: xr.Dataset, constant: xr.Dataset) -> Answers:
    columns = [observed[f"answer_{name}"].values for name in ("system", "question", "count")]
    return Answers(
        columns[0], columns[1], observed["answer"].values.tolist(), columns[2],
        observed["answer_correct"].values.astype(bool), constant["unanswered"].values,
        AnswerRules(unanswered=constant["unanswered"].attrs["rule"]),
    )  # fmt: skip
