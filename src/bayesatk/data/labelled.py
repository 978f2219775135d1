"""Success counts, counts Datasets and DataArrays: data that may bring their own labels."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk.data.arrays import DIMS, oriented, read_nested
from bayesatk.data.long_form import (
    CODE_INVALID,
    LongForm,
    count_codes,
    encode,
    of_counts,
    refuse,
)
from bayesatk.data.question_columns import OWN
from bayesatk.data.validation import (
    Ints,
    OutcomeError,
    Scores,
    as_coordinate,
    check_counts,
    check_scores,
    check_trials,
    shown,
)

OwnLabels = dict[str, list[Any]]


def read_successes(data: object, trials: object) -> LongForm:
    """Read success counts and trials, (question,) or (system, question), or by system."""
    if isinstance(data, Mapping) and isinstance(trials, Mapping) and set(data) == set(trials):
        trials = {system: trials[system] for system in data}
    (hits, labels), (runs, also) = _counts(data, "successes"), _counts(trials, "trials")
    if any(labels[dim] != also[dim] for dim in labels.keys() & also.keys()):
        raise OutcomeError(
            "successes and trials must have the same labels in the same order; got "
            f"{labels!s:.200} and {also!s:.200}. Reindex one like the other. Or pass plain "
            "arrays: Use .to_numpy()."
        )
    if hits.ndim not in (1, 2) or hits.size == 0:
        raise OutcomeError(
            "successes must be a non-empty vector (question,) or matrix (system, question); got "
            f"shape {hits.shape}."
        )
    try:
        runs = np.broadcast_to(runs, hits.shape)
    except ValueError:
        raise OutcomeError(
            f"trials must be one number or match successes; got shape {runs.shape} for "
            f"{hits.shape} successes."
        ) from None
    check_trials(runs, "trials")
    if (hits > runs).any():
        where = tuple(np.argwhere(hits > runs)[0].tolist())
        raise OutcomeError(
            f"successes must not exceed trials; got {hits[where]} successes in {runs[where]} "
            f"trials at position {where}. Is the order (successes, trials)?"
        )
    hits, runs = np.atleast_2d(hits), np.atleast_2d(runs)
    long, labels = of_counts(np.stack([0 * hits, runs - hits, hits], axis=-1)), also | labels
    return long.labelled(labels.get("system"), labels.get("question"))


def _counts(values: object, name: str) -> tuple[Ints, OwnLabels]:
    """Return counts as a plain array, and the labels that they carry."""
    if isinstance(values, Mapping) and not isinstance(values, xr.Dataset):
        return _counts_by_system(values, name)
    if isinstance(values, xr.Dataset | pd.DataFrame):
        raise OutcomeError(
            f"{name} must be an array of counts; got a {type(values).__name__}. Pass one of its "
            "columns or variables; a table of outcomes needs no trials."
        )
    labels: OwnLabels = {}
    if isinstance(values, pd.Series):
        if not isinstance(values.index, pd.RangeIndex):
            labels["question"] = values.index.tolist()
        values = values.to_numpy()
    if isinstance(values, xr.DataArray) and values.dims:
        labels, values = _labels(values), oriented(values, name, *DIMS[:2]).values
    return check_counts(values, name), labels


def _counts_by_system(values: Mapping[Any, object], name: str) -> tuple[Ints, OwnLabels]:
    """Stack a mapping {system: counts}; a number of trials stands for all questions."""
    rows, labels = [], dict[str, Any]()
    for system, counts in values.items():
        whose = f"{name} of {shown(system)}"
        row, row_labels = (
            (check_counts(counts, whose), {})
            if isinstance(counts, Mapping)
            else _counts(counts, whose)
        )
        rows.append(row)
        if labels.setdefault("question", row_labels.get("question")) != row_labels.get("question"):
            raise OutcomeError(
                f"{name} of every system must have the same labels in the same order; those of "
                f"{shown(system)} are {row_labels!s:.200}. Reindex one like the other."
            )
    shapes = {row.shape for row in rows if row.ndim or name == "successes"}
    if not rows or len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise OutcomeError(
            f"{name} by system must be one vector (question,) for each, all of the same length; "
            f"got shapes {shown([row.shape for row in rows])}. For systems that answered different "
            "questions pass a table with columns system, question, trials and successes."
        )
    shared_labels = {dim: texts for dim, texts in labels.items() if texts}
    return np.stack(np.broadcast_arrays(*map(np.atleast_1d, rows))), {
        "system": list(values),
        **shared_labels,
    }


def _labels(values: xr.DataArray | xr.Dataset) -> OwnLabels:
    """Return labels of systems and questions, where the object has them."""
    return {
        dim: np.atleast_1d(values.coords[dim].values).tolist()
        for dim in ("system", "question")
        if dim in values.indexes or (dim in values.coords and not values.coords[dim].ndim)
    }


def _with_columns(long: LongForm, values: xr.DataArray | xr.Dataset) -> LongForm:
    """Keep the labels, and the other coordinates of the questions, whatever they are.

    Those that are neither numbers nor text cannot be saved with a result, and are left out.
    """
    columns, odd = {}, []
    for name, coordinate in values.coords.items():
        if coordinate.dims != ("question",) or str(name) in OWN:
            continue
        column = coordinate.values
        text = column.dtype.kind in "OT" and all(isinstance(value, str) for value in column)
        if text or column.dtype.kind in "biufUM":
            columns[str(name)] = column
        else:
            odd.append(str(name))
    note = f"left out: coordinates {shown(odd)[1:-1]}, which are neither numbers nor text"
    labels = _labels(values)
    long = replace(long, columns=columns, notes=(*long.notes, *[note] * bool(odd)))
    return long.labelled(labels.get("system"), labels.get("question"))


def read_data_array(data: xr.DataArray, scale: Scores) -> LongForm:
    """Read outcomes with the dims (question, trial) or (system, question, trial)."""
    trial = data.indexes["trial"].tolist() if "trial" in data.indexes else None
    as_coordinate(trial or [], "trials")
    values = oriented(data, "a DataArray of outcomes", *DIMS)
    long = read_nested(values.values, scale) if data.chunks is None else _lazily(values, scale)
    return _with_columns(replace(long, trial_labels=trial), data)


def _lazily(data: xr.DataArray, scale: Scores) -> LongForm:
    """Count a dask array block by block: outcomes are never in memory all at once."""
    if 0 in data.shape:
        return read_nested(np.empty(data.shape), scale)
    blocks, slots = data.data, range(CODE_INVALID, len(scale))
    # A block becomes counts by slot, with one trial; those of all blocks of trials are added up.
    counts = blocks.map_blocks(
        lambda block: count_codes(encode(block, scale), slots)[..., None, :],
        dtype=np.int64, new_axis=blocks.ndim,
        chunks=(*blocks.chunks[:-1], (1,) * len(blocks.chunks[-1]), len(slots)),
    ).sum(axis=-2).compute()  # fmt: skip
    if counts[..., 0].any():
        cell = np.argwhere(counts[..., 0])[0].tolist()
        row = blocks[tuple(cell)].compute()
        trial = int(np.argmin(encode(row, scale)))
        places = zip(data.dims, [*cell, trial], strict=True)
        where = ", ".join(f"{dim} {position}" for dim, position in places)
        raise refuse(row.tolist()[trial], where, scale)
    return of_counts(counts.reshape(-1, *counts.shape[-2:])[..., 1:])


def read_counts(data: xr.Dataset) -> tuple[LongForm, Scores]:
    """Read a counts Dataset and the scores of its categories."""
    if "count" not in data or "score" not in data.variables:
        raise OutcomeError(
            "a counts Dataset must have count(system, question, category) and score(category); "
            f"got variables {list(data.variables)}."
        )
    values = oriented(data["count"], "count", "system", "question", "category").values
    count = check_counts(values[None] if values.ndim == 2 else values, "count")
    if count.size == 0:
        raise OutcomeError(
            f"count must have at least one system and question; got shape {count.shape}."
        )
    score, names = data["score"], list(range(data["score"].size))
    if score.dims != ("category",) or score.size < 2:
        raise OutcomeError(
            "score must have the one dim category, with at least two categories; got dims "
            f"{score.dims} and size {score.size}."
        )
    if "category" in data.indexes:
        names = as_coordinate(data.indexes["category"].tolist(), "categories").tolist()
    scale = check_scores(dict(zip(names, score.values.tolist(), strict=True)))
    gaps = np.zeros(count.shape[:2], np.int64)
    if "missing" in data:
        missing = oriented(data["missing"], "missing", *DIMS[:2]).values
        if missing.size != gaps.size:
            raise OutcomeError(
                f"missing must match count; got shape {missing.shape} for {count.shape}."
            )
        gaps = check_counts(missing, "missing").reshape(gaps.shape)
    check_trials(count.sum(axis=-1, dtype=float) + gaps, "count")
    slots = np.concatenate([gaps[..., None], count], axis=-1)
    return _with_columns(of_counts(slots), data), scale
