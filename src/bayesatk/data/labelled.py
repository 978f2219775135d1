"""Success counts, counts Datasets and DataArrays: data that may bring their own labels."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.arrays import DIMS, read_nested
from bayesatk.data.long_form import (
    CODE_INVALID,
    LongForm,
    count_codes,
    default_systems,
    encode,
    of_counts,
    refuse,
)
from bayesatk.data.question_columns import OWN
from bayesatk.data.validation import (
    OutcomeError,
    Scores,
    as_coordinate,
    check_counts,
    check_scores,
    check_total,
    check_trials,
    shown,
)

Labels = dict[str, list[Any]]


def read_successes(data: object, trials: object) -> LongForm:
    """Read success counts and trials, (question,) or (system, question), or by system."""
    if isinstance(data, Mapping) and isinstance(trials, Mapping) and set(data) == set(trials):
        trials = {system: trials[system] for system in data}
    data, labels = _unlabel(data, "successes")
    trials, others = _unlabel(trials, "trials")
    if any(labels[dim] != others[dim] for dim in labels.keys() & others.keys()):
        raise OutcomeError(
            "successes and trials must have the same labels in the same order; got "
            f"{labels!s:.200} and {others!s:.200}. Reindex one like the other."
            " Or pass plain arrays: Use .to_numpy()."
        )
    hits, runs = check_counts(data, "successes"), check_counts(trials, "trials")
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
    check_total(runs, "trials")
    check_trials(runs, "trials")
    if (hits > runs).any():
        where = tuple(int(i) for i in np.argwhere(hits > runs)[0])
        raise OutcomeError(
            f"successes must not exceed trials; got {hits[where]} successes in {runs[where]} "
            f"trials at position {where}. Is the order (successes, trials)?"
        )
    hits, runs = np.atleast_2d(hits), np.atleast_2d(runs)
    long = of_counts(np.stack([runs - hits, hits], axis=-1), np.zeros(hits.shape, int))
    labels = others | labels
    return long.labelled(labels.get("system"), labels.get("question"))


def _unlabel(values: object, name: str) -> tuple[Any, Labels]:
    """Split counts that carry labels into a plain array and the labels."""
    if isinstance(values, Mapping) and not isinstance(values, xr.Dataset):
        return _by_system(values, name)
    if isinstance(values, xr.Dataset | pd.DataFrame):
        raise OutcomeError(
            f"{name} must be an array of counts; got a {type(values).__name__}. Pass one of its "
            "columns or variables; a table of outcomes needs no trials."
        )
    if isinstance(values, pd.Series):
        plain = isinstance(values.index, pd.RangeIndex)
        return values.to_numpy(), {} if plain else {"question": values.index.tolist()}
    if not isinstance(values, xr.DataArray) or not values.dims:
        return values, {}
    if set(values.dims) not in ({"question"}, {"system", "question"}):
        raise OutcomeError(
            f"{name} must have the dims (question) or (system, question); got {values.dims}. "
            "Rename them with .rename(...)."
        )
    dims = [dim for dim in DIMS if dim in values.dims]
    return values.transpose(*dims).values, _labels(values)


def _by_system(values: Mapping[Any, object], name: str) -> tuple[Any, Labels]:
    """Stack a mapping {system: counts}; a number of trials stands for all questions."""
    rows, labels = [], dict[str, Any]()
    for system, own in values.items():
        whose = f"{name} of {shown(system)}"
        counts, known = (own, {}) if isinstance(own, Mapping) else _unlabel(own, whose)
        rows.append(check_counts(counts, whose))
        if labels.setdefault("question", known.get("question")) != known.get("question"):
            raise OutcomeError(
                f"{name} of every system must have the same labels in the same order; those of "
                f"{shown(system)} are {known!s:.200}. Reindex one like the other."
            )
    shapes = {row.shape for row in rows if row.ndim or name == "successes"}
    if not rows or len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise OutcomeError(
            f"{name} by system must be one vector (question,) for each, all of the same length; "
            f"got shapes {shown([row.shape for row in rows])}. For systems that answered different "
            "questions pass a table with columns system, question, trials and successes."
        )
    found = {"system": list(values)} | {dim: own for dim, own in labels.items() if own}
    return np.stack(np.broadcast_arrays(*map(np.atleast_1d, rows))), found


def _labels(values: xr.DataArray | xr.Dataset) -> Labels:
    """Labels of systems and questions, where the object has them."""
    found: Labels = {}
    for dim in ("system", "question"):
        if dim in values.indexes:
            found[dim] = values.indexes[dim].tolist()
        elif dim in values.coords and values.coords[dim].ndim == 0:
            found[dim] = [values.coords[dim].values.item()]
    return found


def _with_columns(long: LongForm, values: xr.DataArray | xr.Dataset) -> LongForm:
    """Keep the other coordinates of the questions: their group, covariates, whatever they are.

    Those that are neither numbers nor text cannot be saved with a result, and are left out.
    """
    found, odd = {}, []
    for name, coordinate in values.coords.items():
        if coordinate.dims != ("question",) or str(name) in OWN:
            continue
        own = coordinate.values
        text = own.dtype.kind in "OT" and all(isinstance(one, str) for one in own)
        if text or own.dtype.kind in "biufUM":
            found[str(name)] = own
        else:
            odd.append(str(name))
    note = f"left out: coordinates {shown(odd)[1:-1]}, which are neither numbers nor text"
    return replace(long, columns=found, notes=(*long.notes, *[note] * bool(odd)))


def read_data_array(data: xr.DataArray, scale: Scores) -> LongForm:
    """Read outcomes with the dims (question, trial) or (system, question, trial)."""
    extra = set(data.dims) - set(DIMS)
    if extra or not {"question", "trial"} <= set(data.dims):
        raise OutcomeError(
            "a DataArray of outcomes must have the dims (question, trial) or (system, question, "
            f"trial); got {data.dims}. Rename them with .rename(...)."
        )
    trial = data.indexes["trial"].tolist() if "trial" in data.indexes else None
    as_coordinate(trial or [], "trials")
    ordered = data.transpose(*(dim for dim in DIMS if dim in data.dims))
    labels = _labels(data)
    long = read_nested(ordered.values, scale) if data.chunks is None else _lazily(ordered, scale)
    long = long.labelled(labels.get("system"), labels.get("question"))
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
        first = np.argwhere(counts[..., 0])[0].tolist()
        row = blocks[tuple(first)].compute()
        trial = int(np.argmin(encode(row, scale)))
        places = zip(data.dims, [*first, trial], strict=True)
        where = ", ".join(f"{dim} {place}" for dim, place in places)
        raise refuse(row.tolist()[trial], where, scale)
    counts = counts.reshape(-1, *counts.shape[-2:])
    labels = default_systems(len(counts)), range(counts.shape[1])
    return LongForm(*labels, counted=counts[..., 1:])


def read_counts(data: xr.Dataset) -> tuple[LongForm, Scores]:
    """Read a counts Dataset and the scores of its categories."""
    if "count" not in data or "score" not in data.variables:
        raise OutcomeError(
            "a counts Dataset must have count(system, question, category) and score(category); "
            f"got variables {list(data.variables)}."
        )
    count = data["count"]
    sizes = _oriented(count, "count", ("system", "question", "category"))
    checked = check_counts(sizes, "count")
    scale = _scale(data)
    gaps: NDArray[np.int64] = np.zeros(checked.shape[:2], np.int64)
    if "missing" in data:
        gaps = check_counts(
            _oriented(data["missing"], "missing", ("system", "question")), "missing"
        )
        if gaps.shape != checked.shape[:2]:
            raise OutcomeError(
                f"missing must match count; got shape {gaps.shape} for {checked.shape}."
            )
        check_total(checked.sum(axis=-1) + gaps, "count plus missing")
    check_trials(checked.sum(axis=-1) + gaps, "count")
    if checked.size == 0:
        raise OutcomeError(
            f"count must have at least one system and question; got shape {checked.shape}."
        )
    labels = _labels(data)
    long = _with_columns(of_counts(checked, gaps), data)
    return long.labelled(labels.get("system"), labels.get("question")), scale


def _oriented(values: xr.DataArray, name: str, dims: tuple[str, ...]) -> Any:
    """Return the array in the order of dims; the system may be left out."""
    if "system" not in values.dims:
        values = values.drop_vars("system", errors="ignore").expand_dims("system")
    if set(values.dims) != set(dims):
        raise OutcomeError(
            f"{name} must have the dims {', '.join(dims)}; got {values.dims}. Rename or select "
            "them."
        )
    return values.transpose(*dims).values


def _scale(data: xr.Dataset) -> Scores:
    """Scores by category; categories without a name are named by their score's position."""
    score = data["score"]
    if score.dims != ("category",) or score.size < 2:
        raise OutcomeError(
            "score must have the one dim category, with at least two categories; got dims "
            f"{score.dims} and size {score.size}."
        )
    names = list(range(score.size))
    if "category" in data.indexes:
        names = data.indexes["category"].tolist()
    if as_coordinate(names, "categories").size != score.size:
        raise OutcomeError("categories must match score in number.")
    return check_scores(dict(zip(names, score.values.tolist(), strict=True)))
