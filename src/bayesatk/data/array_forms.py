"""Read arrays, rows of any length, mappings of systems to either, and xarray objects.

Also counts of successes with numbers of trials, and answers and costs that are arranged like the
outcomes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.long_form import (
    LongForm,
    codes_of,
    count_codes,
    default_systems,
    encode,
    of_counts,
    success_slots,
    unscored_outcome,
    unscored_positions,
)
from bayesatk.data.question_columns import RESERVED_NAMES, by_question
from bayesatk.data.validation import (
    CODE_INVALID,
    Codes,
    NumberScale,
    OutcomeError,
    Scores,
    as_coordinate,
    check_counts,
    check_scores,
    check_trial_counts,
    refuse_masked,
    shown,
)

DIMS = ("system", "question", "trial")
_SCALAR_TYPES = frozenset({int, bool, str, float, NoneType})


@dataclass(frozen=True)
class Block:
    """Values of the trials of one or more systems, before they are encoded.

    Parameters
    ----------
    values : ndarray
        (question, trial) or (system, question, trial), or the cells of all rows, joined.
    sizes : ndarray of int, shape (system, question)
        Number of trials of every question.
    within : str
        Name of the system, for messages.
    """

    values: NDArray[Any]
    sizes: Ints
    within: str

    def cells(self) -> list[Any]:
        """Return all cells, in order."""
        return _as_list(self.values.ravel())

    def codes(self, scores: Scores) -> Codes:
        """Return the codes of all outcomes, in order; refuse an outcome without a score."""
        codes = encode(self.values, scores)
        unscored = unscored_positions(codes)
        if unscored:
            first, *second = (self._cell(index) for index in unscored)
            raise unscored_outcome(*first, scores, second=second[0] if second else None)
        return codes.ravel()

    def _cell(self, at: int) -> tuple[Any, str]:
        """Return the value at a position in order, and its place for messages."""
        value = np.asarray(self.values).flat[at]
        ends = np.cumsum(self.sizes)
        cell = int(np.searchsorted(ends, at, side="right"))
        system, question = divmod(cell, self.sizes.shape[1])
        where = f"question {question}, trial {at - ends[cell] + self.sizes[system, question]}"
        if self.values.ndim == 3:
            where = f"system {system}, {where}"
        plain = isinstance(value, np.generic) and value.dtype.kind in "biufU"
        return (value.item() if plain else value), self.within + where


def read_nested(data: object, scores: Scores) -> LongForm:
    """Read an array, rows of any length, or a mapping {system: either}."""
    blocks = cell_blocks(data, "data")
    return _trials_of_blocks(
        data, blocks, np.concatenate([block.codes(scores) for block in blocks])
    )


def _trials_of_blocks(data: object, blocks: Sequence[Block], codes: Codes) -> LongForm:
    """Return the trials with these codes, arranged like the blocks."""
    sizes = np.concatenate([block.sizes for block in blocks])
    systems, questions = sizes.shape
    labels = list(data) if isinstance(data, Mapping) else default_systems(systems)
    if (sizes == sizes[0, 0]).all():
        return LongForm(labels, range(questions), codes.reshape(systems, questions, sizes[0, 0]))
    return LongForm(
        labels, range(questions), codes, np.repeat(np.arange(sizes.size), sizes.ravel())
    )


def read_answers(
    data: object,
    answers: object,
    reference: object,
    rules: AnswerRules,
    scores: Scores,
    labels: Mapping[str, object],
) -> LongForm:
    """Read answers with their outcomes, or with references in place of them.

    Parameters
    ----------
    data : array_like, mapping or None
        Outcomes arranged like the answers; None with references.
    answers : array_like or mapping
        (question, trial), (system, question, trial), rows of any length, or {system: either}.
    reference : sequence, mapping or None
    rules : AnswerRules
    scores : mapping
    labels : mapping
        Labels of systems and questions.
    """
    if (data is None) == (reference is None):
        raise OutcomeError(
            "answers need outcomes of the same arrangement as data, or reference= with data=None; "
            f"got {'neither' if data is None else 'both'}. Give one of them."
        )
    if data is not None:
        long = read_nested(data, scores).labelled(**labels)
        texts = rules.apply_all(arranged_like(long, answers, "answers"))
        return replace(long, answer=texts, rules=rules)
    blocks = cell_blocks(answers, "answers")
    cells = [cell for block in blocks for cell in block.cells()]
    # The outcome codes follow from the references.
    long = _trials_of_blocks(answers, blocks, np.zeros(len(cells), np.int8)).labelled(**labels)
    texts = rules.apply_all(cells)
    argument = Argument("reference")
    values = by_question(argument, "reference", reference, long.questions, no_others=True)
    right = [
        rules.right_answers(value, f"question {shown(label)}")
        for label, value in zip(long.questions, values, strict=True)
    ]
    questions = (long.rows()[0] % len(right)).tolist()
    codes = codes_of(texts, [right[question] for question in questions], scores)
    return replace(long, code=codes.reshape(long.code.shape), answer=texts, rules=rules)


def arranged_like(long: LongForm, values: object, name: str) -> list[Any]:
    """Return a value for every trial, in order, from values arranged like the outcomes."""
    if isinstance(values, xr.DataArray):
        values = _by_position(long, values, name)
    blocks = cell_blocks(values, name)
    sizes = np.concatenate([block.sizes for block in blocks])
    cell = long.rows()[0]
    trials = np.bincount(cell, minlength=len(long.systems) * len(long.questions))
    named = not isinstance(values, Mapping) or list(values) == list(long.systems)
    if not named or not np.array_equal(sizes.ravel(), trials):
        raise OutcomeError(
            name,
            " must be arranged like data, one for each trial; got "
            f"{shown(sizes.tolist())} by question, and data have "
            f"{shown(trials.reshape(len(long.systems), -1).tolist())} outcomes.",
        )
    cells = [value for block in blocks for value in block.cells()]
    if long.cell is None:
        return cells
    rows = np.argsort(np.argsort(cell, kind="stable"))  # rows of a table may be in any order
    return [cells[row] for row in rows.tolist()]


def _by_position(long: LongForm, values: xr.DataArray, name: str) -> NDArray[Any]:
    """Return the values of a labelled array in the order of the systems, questions and trials."""
    for dim, expected in (("system", long.systems), ("question", long.questions)):
        if dim in values.indexes and values.indexes[dim].tolist() != list(expected):
            raise OutcomeError(
                name,
                f" must have the {dim}s of data, in their order; got "
                f"{shown(values.indexes[dim].tolist())}. Use {name}.reindex_like(data).",
            )
    return oriented(values, name, *DIMS).values


def oriented(values: xr.DataArray, name: str, *dims: str) -> xr.DataArray:
    """Return the array with its dimensions in this order; the system dimension is optional."""
    if {*values.dims, "system"} != set(dims):
        raise OutcomeError(
            f"{name} must have the dims {', '.join(dims)}, or all but system; got {values.dims}. "
            "Rename them with .rename(...), or select."
        )
    return values.transpose(*(dim for dim in dims if dim in values.dims))


def cell_blocks(data: object, name: str, within: str = "") -> list[Block]:
    """Return the values of trials as blocks, one for each system or one for all."""
    if isinstance(data, Mapping) and not within:
        if not data:
            raise OutcomeError(f"{name} must have at least one system; got an empty mapping.")
        return _blocks_by_system(data, name)
    if isinstance(data, np.ndarray):
        if data.dtype.kind != "O" or data.ndim != 1:
            return [_array_block(data, name, within)]
        refuse_masked(data, name)
        data = data.tolist()  # rows of unequal length
    if isinstance(data, str | bytes) or not isinstance(data, Sequence):
        raise OutcomeError(
            f"{name} must be an array, rows, a mapping, a table or an xarray object; got "
            f"{shown(data)} of type {type(data).__name__}{within and f' for {within[:-2]}'}. To "
            "read a file use bayesatk.load(path)."
        )
    if not data:
        raise OutcomeError(f"{name} must have at least one question; got an empty list.")
    depths = {_nesting_depth(row) for row in data}
    if depths == {2} and not within:
        return _blocks_by_system(dict(enumerate(data)), name)
    if depths != {1}:
        raise OutcomeError(
            f"{name} must be rows of outcomes, (question, trial), or a list of such tables, "
            f"(system, question, trial); got nesting depths {sorted(depths)}"
            f"{within and f' within {within[:-2]}'}. One row of trials is [[...]]."
        )
    sizes = np.array([[len(row) for row in data]], np.int64)
    rows = (_as_list(row) if isinstance(row, np.ndarray) else row for row in data)
    cells = np.fromiter(chain.from_iterable(rows), object, int(sizes.sum()))
    return [Block(cells, sizes, within)]


def _array_block(data: NDArray[Any], name: str, within: str) -> Block:
    """Return an array of one system or several as one block."""
    refuse_masked(data, name)
    data = np.asarray(data)
    if data.ndim not in (2, 3) or data.size == 0:
        raise OutcomeError(
            "an array of outcomes must be non-empty with dims (question, trial) or (system, "
            f"question, trial); got shape {data.shape}. Success counts go in with the trials of "
            "each question: bayesatk.tally(data, trials=...)."
        )
    shape = (1, *data.shape)[-3:-1]
    return Block(data, np.broadcast_to(np.int64(data.shape[-1]), shape), within)


def _blocks_by_system(systems: Mapping[Any, object], name: str) -> list[Block]:
    """Return the cells of each system; all have the same questions."""
    blocks = {
        system: cell_blocks(rows, name, f"system {shown(system)}, ")[0]
        for system, rows in systems.items()
    }
    shapes = {system: block.sizes.shape for system, block in blocks.items()}
    if len(set(shapes.values())) > 1 or next(iter(shapes.values()))[0] > 1:
        raise OutcomeError(
            "every system must be one table of the same questions; got (systems, questions) "
            f"{shown(shapes, 400)}. For systems that answered different questions pass a long "
            "table, with ",
            Argument("missing", "ignore"),
            ".",
        )
    return list(blocks.values())


def _as_list(row: NDArray[Any]) -> list[Any]:
    """Return an array as a list, in which dates stay dates."""
    return row.tolist() if row.dtype.kind in "biufUO" else list(row)


def _nesting_depth(value: object, level: int = 1) -> int:
    """Return the nesting below a row: 1 for a list of outcomes, 2 for a list of lists."""
    if isinstance(value, np.ndarray):
        refuse_masked(value, "data")
        if value.dtype.kind != "O" or not value.ndim:
            return value.ndim
        value = value.tolist()
    max_level = 4  # deeper nesting than that of systems, questions and trials is refused
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or level > max_level:
        return 0
    if set(map(type, value)) <= _SCALAR_TYPES:
        return 1
    return 1 + max((_nesting_depth(item, level + 1) for item in value), default=0)


LabelsByDim = dict[str, list[Any]]


def read_successes(data: object, trials: object) -> LongForm:
    """Read success counts and trials, (question,) or (system, question), or by system."""
    if isinstance(data, Mapping) and isinstance(trials, Mapping) and set(data) == set(trials):
        trials = {system: trials[system] for system in data}
    (successes, labels), (trial_counts, labels_of_trials) = (
        _counts(data, "successes"),
        _counts(trials, "trials"),
    )
    if any(labels[dim] != labels_of_trials[dim] for dim in labels.keys() & labels_of_trials.keys()):
        raise OutcomeError(
            "successes and trials must have the same labels in the same order; got "
            f"{labels!s:.200} and {labels_of_trials!s:.200}. Reindex one like the other. Or pass "
            "plain arrays: Use .to_numpy()."
        )
    if successes.ndim not in (1, 2) or successes.size == 0:
        raise OutcomeError(
            "successes must be a non-empty vector (question,) or matrix (system, question); got "
            f"shape {successes.shape}."
        )
    try:
        trial_counts = np.broadcast_to(trial_counts, successes.shape)
    except ValueError:
        raise OutcomeError(
            f"trials must be one number or match successes; got shape {trial_counts.shape} for "
            f"{successes.shape} successes."
        ) from None
    slots = success_slots(successes, trial_counts, "trials", lambda where: f"position {where}")
    long, labels = of_counts(slots.reshape(-1, *slots.shape[-2:])), labels_of_trials | labels
    return long.labelled(labels.get("system"), labels.get("question"))


def _counts(values: object, name: str) -> tuple[Ints, LabelsByDim]:
    """Return counts as an array of integers, with the labels that they have."""
    if isinstance(values, Mapping) and not isinstance(values, xr.Dataset):
        return _counts_by_system(values, name)
    if isinstance(values, xr.Dataset | pd.DataFrame):
        raise OutcomeError(
            f"{name} must be an array of counts; got a {type(values).__name__}. Pass one of its "
            "columns or variables; a table of outcomes needs no trials."
        )
    labels = {}
    if isinstance(values, pd.Series):
        if not isinstance(values.index, pd.RangeIndex):
            labels["question"] = values.index.tolist()
        values = values.to_numpy()
    if isinstance(values, xr.DataArray) and values.dims:
        labels, values = _labels_of(values), oriented(values, name, *DIMS[:2]).values
    return check_counts(values, name), labels


def _counts_by_system(values: Mapping[Any, object], name: str) -> tuple[Ints, LabelsByDim]:
    """Stack a mapping {system: counts}; a number of trials stands for all questions."""
    pairs = [_counts(counts, f"{name} of {shown(system)}") for system, counts in values.items()]
    rows, questions = [row for row, _ in pairs], [labels.get("question") for _, labels in pairs]
    if any(labels != questions[0] for labels in questions):
        raise OutcomeError(
            f"{name} of every system must have the same labels in the same order; got "
            f"{shown(questions, 200)}. Reindex one like the other."
        )
    shapes = {row.shape for row in rows if row.ndim or name == "successes"}
    if not rows or len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise OutcomeError(
            f"{name} by system must be one vector (question,) for each, all of the same length; "
            f"got shapes {shown([row.shape for row in rows])}. For systems that answered different "
            "questions pass a table with columns system, question, trials and successes, with ",
            Argument("missing", "ignore"),
            ".",
        )
    labels = {"system": list(values)} | ({"question": questions[0]} if questions[0] else {})
    return np.stack(np.broadcast_arrays(*map(np.atleast_1d, rows))), labels


def _labels_of(values: xr.DataArray | xr.Dataset) -> LabelsByDim:
    """Return the labels of systems and questions that an xarray object has."""
    return {
        dim: np.atleast_1d(values.coords[dim].values).tolist()
        for dim in ("system", "question")
        if dim in values.indexes or (dim in values.coords and not values.coords[dim].ndim)
    }


def _with_columns(long: LongForm, values: xr.DataArray | xr.Dataset) -> LongForm:
    """Return the long form with labels and question coordinates of an xarray object.

    Coordinates that are neither numbers nor text cannot be saved with a result, and are left out.
    """
    columns, left_out = {}, []
    for name, coordinate in values.coords.items():
        if coordinate.dims != ("question",) or str(name) in RESERVED_NAMES:
            continue
        column = coordinate.values
        text = column.dtype.kind in "OT" and all(isinstance(value, str) for value in column)
        if text or column.dtype.kind in "biufUM":
            columns[str(name)] = column
        else:
            left_out.append(str(name))
    note = f"left out: coordinates {shown(left_out)[1:-1]}, which are neither numbers nor text"
    labels = _labels_of(values)
    long = replace(long, columns=columns, notes=(*long.notes, *[note] * bool(left_out)))
    return long.labelled(labels.get("system"), labels.get("question"))


def read_data_array(data: xr.DataArray, scale: Scores) -> LongForm:
    """Read outcomes with the dims (question, trial) or (system, question, trial)."""
    trial = data.indexes["trial"].tolist() if "trial" in data.indexes else None
    as_coordinate(trial or [], "trials")
    values = oriented(data, "a DataArray of outcomes", *DIMS)
    whole = data.chunks is None or isinstance(scale, NumberScale)
    long = read_nested(values.values, scale) if whole else _count_dask_blocks(values, scale)
    return _with_columns(replace(long, trial_labels=trial), data)


def _count_dask_blocks(data: xr.DataArray, scale: Scores) -> LongForm:
    """Count the outcomes of a dask array block by block, never all in memory."""
    if 0 in data.shape:
        return read_nested(np.empty(data.shape), scale)
    blocks, slots = data.data, range(CODE_INVALID, len(scale))
    # Each block becomes counts by slot, which are summed over the blocks of trials.
    counts = (
        blocks.map_blocks(
            lambda block: count_codes(encode(block, scale), slots)[..., None, :],
            dtype=np.int64,
            new_axis=blocks.ndim,
            chunks=(*blocks.chunks[:-1], (1,) * len(blocks.chunks[-1]), len(slots)),
        )
        .sum(axis=-2)
        .compute()
    )
    if counts[..., 0].any():
        cell = np.argwhere(counts[..., 0])[0].tolist()
        row = blocks[tuple(cell)].compute()
        trial = int(np.argmin(encode(row, scale)))
        places = zip(data.dims, [*cell, trial], strict=True)
        where = ", ".join(f"{dim} {position}" for dim, position in places)
        raise unscored_outcome(row.tolist()[trial], where, scale)
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
    missing_counts = np.zeros(count.shape[:2], np.int64)
    if "missing" in data:
        missing = oriented(data["missing"], "missing", *DIMS[:2]).values
        if missing.size != missing_counts.size:
            raise OutcomeError(
                f"missing must match count; got shape {missing.shape} for {count.shape}."
            )
        missing_counts = check_counts(missing, "missing").reshape(missing_counts.shape)
    check_trial_counts(count.sum(axis=-1, dtype=float) + missing_counts, "count")
    slots = np.concatenate([missing_counts[..., None], count], axis=-1)
    return _with_columns(of_counts(slots), data), scale
