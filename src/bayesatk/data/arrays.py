"""Arrays, rows of any length, and mappings of systems to either; answers arranged like outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.long_form import (
    Codes,
    LongForm,
    codes_of,
    default_systems,
    encode,
    first_invalid,
    refuse,
)
from bayesatk.data.question_columns import by_question
from bayesatk.data.validation import Ints, OutcomeError, Scores, refuse_masked, shown

DIMS = ("system", "question", "trial")
_SINGLE = frozenset({int, bool, str, float, NoneType})  # types of single values, never of rows


@dataclass(frozen=True)
class Block:
    """Cells of one or more systems, as they came.

    Parameters
    ----------
    values : ndarray
        (question, trial) or (system, question, trial), or the cells of all rows.
    sizes : ndarray of int, shape (system, question)
        Trials of every question.
    within : str
        Which system it is, for messages.
    """

    values: NDArray[Any]
    sizes: Ints
    within: str

    def cells(self) -> list[Any]:
        """Return all cells, in order."""
        return _listed(self.values.ravel())

    def codes(self, scores: Scores) -> Codes:
        """Return the codes of all outcomes, in order, or refuse the first that has no score."""
        codes = encode(self.values, scores)
        wrong = first_invalid(codes)
        if wrong is not None:
            raise refuse(*self._cell(wrong), scores)
        return codes.ravel()

    def _cell(self, at: int) -> tuple[Any, str]:
        """Return the value at a position in order, and where it is."""
        value: Any = np.asarray(self.values).flat[at]
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
    blocks = arranged(data, "data")
    return _of_blocks(data, blocks, np.concatenate([block.codes(scores) for block in blocks]))


def _of_blocks(data: object, blocks: Sequence[Block], codes: Codes) -> LongForm:
    """Return trials in order, whose rows are as long as those of the blocks."""
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
        Of systems and questions.
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
    blocks = arranged(answers, "answers")
    texts = rules.apply_all([cell for block in blocks for cell in block.cells()])
    long = _of_blocks(answers, blocks, np.zeros(len(texts), np.int8)).labelled(**labels)
    argument = Argument("reference")
    values = by_question(argument, "reference", reference, long.questions, known=True)
    right = [
        rules.right_answers(value, f"question {shown(label)}")
        for label, value in zip(long.questions, values, strict=True)
    ]
    codes = codes_of(texts, long.rows()[0] % len(right), right, scores)
    return replace(long, code=codes.reshape(long.code.shape), answer=texts, rules=rules)


def arranged_like(long: LongForm, values: object, name: str) -> list[Any]:
    """Return a value for every trial, in their order, from values arranged like the outcomes."""
    if isinstance(values, xr.DataArray):
        values = _by_position(long, values, name)
    blocks = arranged(values, name)
    sizes = np.concatenate([block.sizes for block in blocks])
    cell = long.rows()[0]
    trials = np.bincount(cell, minlength=len(long.systems) * len(long.questions))
    named = not isinstance(values, Mapping) or list(values) == list(long.systems)
    if not named or not np.array_equal(sizes.ravel(), trials):
        raise OutcomeError(
            Argument(name), " must be arranged like data, one for each trial; got "
            f"{shown(sizes.tolist())} by question, and data have "
            f"{shown(trials.reshape(len(long.systems), -1).tolist())} outcomes.",
        )  # fmt: skip
    cells = np.fromiter(chain.from_iterable(block.cells() for block in blocks), object)
    rows = np.argsort(np.argsort(cell, kind="stable"), kind="stable")
    return list(cells[rows])


def _by_position(long: LongForm, values: xr.DataArray, name: str) -> NDArray[Any]:
    """Return the values of a labelled array in the order of the systems, questions and trials."""
    for dim, expected in (("system", long.systems), ("question", long.questions)):
        if dim in values.indexes and values.indexes[dim].tolist() != list(expected):
            raise OutcomeError(
                Argument(name), f" must have the {dim}s of data, in their order; got "
                f"{shown(values.indexes[dim].tolist())}. Use {name}.reindex_like(data).",
            )  # fmt: skip
    return np.asarray(oriented(values, name, *DIMS).values)


def oriented(values: xr.DataArray, name: str, *dims: str) -> xr.DataArray:
    """Return the array with its dimensions in an order; that of systems may be left out."""
    if {*values.dims, "system"} != set(dims):
        raise OutcomeError(
            f"{name} must have the dims {', '.join(dims)}, or all but system; got {values.dims}. "
            "Rename them with .rename(...), or select."
        )
    return values.transpose(*(dim for dim in dims if dim in values.dims))


def arranged(data: object, name: str, within: str = "") -> list[Block]:
    """Return the cells with the sizes of their rows, system by system."""
    if isinstance(data, Mapping) and not within:
        if not data:
            raise OutcomeError(f"{name} must have at least one system; got an empty mapping.")
        return _by_system(data, name)
    if isinstance(data, np.ndarray):
        if data.dtype.kind != "O" or data.ndim != 1:
            return [_array(data, name, within)]
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
    depths = {_depth(row) for row in data}
    if depths == {2} and not within:
        return _by_system(dict(enumerate(data)), name)
    if depths != {1}:
        raise OutcomeError(
            f"{name} must be rows of outcomes, (question, trial), or a list of such tables, "
            f"(system, question, trial); got nesting depths {sorted(depths)}"
            f"{within and f' within {within[:-2]}'}. One row of trials is [[...]]."
        )
    sizes = np.array([[len(row) for row in data]], np.int64)
    kinds = {row.dtype if isinstance(row, np.ndarray) else None for row in data}
    if len(kinds) == 1 and None not in kinds:  # of one type, which joining them keeps
        return [Block(np.concatenate(data), sizes, within)]
    rows = (_listed(row) if isinstance(row, np.ndarray) else row for row in data)
    cells = np.fromiter(chain.from_iterable(rows), object, int(sizes.sum()))
    return [Block(cells, sizes, within)]


def _array(data: NDArray[Any], name: str, within: str) -> Block:
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


def _by_system(systems: Mapping[Any, object], name: str) -> list[Block]:
    """Return the cells of each system; all have the same questions."""
    blocks = {
        system: arranged(rows, name, f"system {shown(system)}, ")[0]
        for system, rows in systems.items()
    }
    shapes = {system: block.sizes.shape for system, block in blocks.items()}
    if len(set(shapes.values())) > 1 or next(iter(shapes.values()))[0] > 1:
        raise OutcomeError(
            "every system must be one table of the same questions; got (systems, questions) "
            f"{shown(shapes, 400)}. For systems that answered different questions pass a long "
            "table."
        )
    return list(blocks.values())


def _listed(row: NDArray[Any]) -> list[Any]:
    """Return an array as a list; dates stay dates, which .tolist() would turn into integers."""
    return row.tolist() if row.dtype.kind in "biufUO" else list(row)


def _depth(value: object, level: int = 1) -> int:
    """Return the nesting below a row: 1 for a list of outcomes, 2 for a list of lists."""
    if isinstance(value, np.ndarray):
        refuse_masked(value, "data")
        if value.dtype.kind != "O" or not value.ndim:
            return value.ndim
        value = value.tolist()
    deepest = 4  # rows, questions and systems: whatever is nested deeper is refused
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or level > deepest:
        return 0
    if set(map(type, value)) <= _SINGLE:
        return 1
    return 1 + max((_depth(item, level + 1) for item in value), default=0)
