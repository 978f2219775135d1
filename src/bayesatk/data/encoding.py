"""From raw outcomes to integer codes and counts: the one place where input is believed or refused.

Outcomes become codes (position in the score mapping, `CODE_MISSING`, or `CODE_INVALID`); nothing
is coerced, and the first invalid cell is named in the error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import Answers
from bayesatk.data.validation import (
    OutcomeError as OutcomeError,
)
from bayesatk.data.validation import (
    Scores as Scores,
)
from bayesatk.data.validation import (
    check_labels,
    is_category,
    is_missing,
    refuse_masked,
    shown,
)

Codes = NDArray[np.int16]

CODE_MISSING = -1
CODE_INVALID = -2

# Rows, questions and systems: whatever is nested deeper is refused, so look no further.
_DEEPEST = 4

# Exact types that need no check before the look-up: most cells of large lists are one of these.
_PLAIN = frozenset({int, bool, str})


@dataclass(frozen=True)
class Table:
    """Counts on the way in: arrays with their labels, before the missing policy."""

    count: NDArray[np.int64]
    missing: NDArray[np.int64]
    systems: list[Any]
    questions: list[Any]
    notes: tuple[str, ...] = ()
    answers: Answers | None = None

    @classmethod
    def from_counts(cls, count: NDArray[Any], missing: NDArray[Any]) -> "Table":
        """Return counts (system, question, category) under default labels."""
        systems = ["system"] if len(count) == 1 else list(range(len(count)))
        return cls(
            count.astype(np.int64),
            missing.astype(np.int64),
            systems,
            list(range(count.shape[1])),
        )

    def labelled(self, systems: object, questions: object) -> "Table":
        """Replace the labels, checking their number."""
        changed: dict[str, Any] = {}
        if systems is not None:
            changed["systems"] = check_labels(systems, "systems", len(self.systems))
        if questions is not None:
            changed["questions"] = check_labels(questions, "questions", len(self.questions))
        return replace(self, **changed)


def encode(values: NDArray[Any], scores: Scores) -> Codes:
    """Position of every value among the scored outcomes; negative codes for the rest."""
    kind = values.dtype.kind
    if kind in "OT":
        known = dict(zip(scores, range(len(scores)), strict=True))
        flat = [
            known.get(value, CODE_INVALID) if type(value) in _PLAIN else _encode_one(value, known)
            for value in values.ravel().tolist()
        ]
        return np.array(flat, np.int16).reshape(values.shape)
    codes = np.full(values.shape, CODE_INVALID, np.int16)
    if kind not in "biufU":  # dates, durations, bytes, complex numbers, records
        return codes
    for code, label in enumerate(scores):
        if isinstance(label, str) == (kind == "U"):
            try:
                np.copyto(codes, np.int16(code), where=values == label)
            except OverflowError:  # an integer that no float reaches
                continue
    if kind == "f":
        codes[np.isnan(values)] = CODE_MISSING
    return codes


def _encode_one(value: Any, known: Mapping[Any, int]) -> int:
    if is_missing(value):
        return CODE_MISSING
    if not is_category(value):  # 1+0j and a duration of 1 equal 1, and are not outcomes
        return CODE_INVALID
    try:
        return known.get(value, CODE_INVALID)
    except TypeError:  # a signalling NaN has no hash
        return CODE_INVALID


def refuse(value: Any, where: str, scores: Scores) -> OutcomeError:
    """Return the error for an outcome that no score covers."""
    allowed = ", ".join(shown(label) for label in scores)
    remedy: tuple[str | Argument, ...] = ("Write every outcome as text, a number or true/false.",)
    if is_category(value) and value not in (math.inf, -math.inf):
        every = Argument("scores", {**scores, value: ...}, "tally")
        remedy = ("Score every outcome that may occur: ", every, ".")
    return OutcomeError(
        f"outcome {shown(value)} at {where} is not one of {allowed}. ", *remedy,
        " Write an unknown or failed one as None, and use ",
        Argument("missing", "ignore", "tally"), ".",
    )  # fmt: skip


def read_nested(data: object, scores: Scores, within: str = "") -> Table:
    """Read an array, rows of any length, or a mapping {system: either}."""
    if isinstance(data, Mapping) and not within:
        return _read_mapping(data, scores)
    if isinstance(data, np.ndarray):
        return _read_array(data, scores, within)
    if isinstance(data, str | bytes) or not isinstance(data, Sequence):
        raise OutcomeError(
            f"data must be an array, rows, a mapping, a table or an xarray object; got "
            f"{shown(data)} of type {type(data).__name__}{within and f' for {within[:-2]}'}. To "
            "read a file use bayesatk.load(path)."
        )
    rows = [_as_row(row) for row in data]
    if not rows:
        raise OutcomeError("data must hold at least one question; got an empty list.")
    depths = {_depth(row) for row in rows}
    if depths == {2} and not within:
        tables = [read_nested(d, scores, f"system {i}, ") for i, d in enumerate(data)]
        return _join(dict(enumerate(tables)))
    if depths != {1}:
        raise OutcomeError(
            "data must be rows of outcomes, (question, trial), or a list of such tables, (system, "
            f"question, trial); got nesting depths {sorted(depths)}"
            f"{within and f' within {within[:-2]}'}. One row of trials is [[...]]."
        )
    return _read_rows(rows, scores, within)


def _as_row(row: object) -> Any:
    """Return an array as a list; dates stay dates, which .tolist() would turn into integers."""
    if not isinstance(row, np.ndarray):
        return row
    refuse_masked(row, "data")
    if row.dtype.kind in "biufUO":
        return row.tolist()
    return list(row) if row.ndim else row


def _depth(value: object, level: int = 1) -> int:
    """Nesting below a row: 1 for a list of outcomes, 2 for a list of lists."""
    if type(value) in _PLAIN or level > _DEEPEST:
        return 0
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return 0
    return 1 + max((_depth(_as_row(item), level + 1) for item in value), default=0)


def _read_mapping(data: Mapping[Any, Any], scores: Scores) -> Table:
    if not data:
        raise OutcomeError("data must hold at least one system; got an empty mapping.")
    tables = {
        system: read_nested(rows, scores, f"system {shown(system)}, ")
        for system, rows in data.items()
    }
    return _join(tables).labelled(list(tables), None)


def _join(tables: Mapping[Any, Table]) -> Table:
    """Stack one table per system."""
    sizes = {system: table.count.shape[:2] for system, table in tables.items()}
    if len(set(sizes.values())) > 1 or next(iter(sizes.values()))[0] > 1:
        raise OutcomeError(
            "every system must be one table of the same questions; got (systems, questions) "
            f"{shown(sizes, 400)}. For systems that answered different questions pass a long "
            "table."
        )
    return Table.from_counts(
        np.concatenate([table.count for table in tables.values()]),
        np.concatenate([table.missing for table in tables.values()]),
    )


def _read_array(data: NDArray[Any], scores: Scores, within: str) -> Table:
    refuse_masked(data, "data")
    data = np.asarray(data)
    if data.ndim not in (2, 3) or data.size == 0:
        raise OutcomeError(
            "an array of outcomes must be non-empty with dims (question, trial) or (system, "
            f"question, trial); got shape {data.shape}. Success counts go in with the trials of "
            "each question: bayesatk.tally(data, trials=...)."
        )
    codes = encode(data, scores)
    if (codes == CODE_INVALID).any():
        where = tuple(int(i) for i in np.argwhere(codes == CODE_INVALID)[0])
        names = ("system", "question", "trial")[-data.ndim :]
        place = ", ".join(f"{name} {i}" for name, i in zip(names, where, strict=True))
        value = data[where]
        raise refuse(value.item() if data.dtype.kind in "biufU" else value, within + place, scores)
    if data.ndim == 2:
        codes = codes[None]
    count = np.stack([(codes == code).sum(axis=-1) for code in range(len(scores))], axis=-1)
    return Table.from_counts(count, (codes == CODE_MISSING).sum(axis=-1))


def _read_rows(rows: list[Any], scores: Scores, within: str) -> Table:
    sizes = [len(row) for row in rows]
    flat = objects(list(chain.from_iterable(rows)))
    codes = encode(flat, scores)
    owner = np.repeat(np.arange(len(rows)), sizes)
    if (codes == CODE_INVALID).any():
        first = int(np.argmax(codes == CODE_INVALID))
        trial = first - int(np.searchsorted(owner, owner[first]))
        raise refuse(flat[first], f"{within}question {owner[first]}, trial {trial}", scores)
    return Table.from_counts(*cells(owner, codes, (1, len(rows)), len(scores)))


def read_rows_of(
    data: object, scores: Scores
) -> dict[Any, tuple[NDArray[np.int64], NDArray[np.int16]]]:
    """Return question and code of every trial in its order, by system; as `read_nested`."""
    read_nested(data, scores)  # refuses what cannot be read, by name
    if isinstance(data, Mapping):
        return {name: next(iter(read_rows_of(own, scores).values())) for name, own in data.items()}
    if isinstance(data, np.ndarray):
        codes = encode(data, scores).reshape(-1, *data.shape[-2:])
        question = np.repeat(np.arange(data.shape[-2]), data.shape[-1])
        found = {i: (question, own.ravel()) for i, own in enumerate(codes)}
        return found if len(found) > 1 else {"system": found[0]}
    assert isinstance(data, Sequence)
    rows = [_as_row(row) for row in data]
    if {_depth(row) for row in rows} == {2}:
        return {i: next(iter(read_rows_of(own, scores).values())) for i, own in enumerate(data)}
    flat = encode(objects(list(chain.from_iterable(rows))), scores)
    return {"system": (np.repeat(np.arange(len(rows)), [len(row) for row in rows]), flat)}


def objects(values: list[Any]) -> NDArray[Any]:
    """Return a vector of these objects; numpy would unfold the collections among them."""
    return np.fromiter(values, dtype=object, count=len(values))


def cells(
    cell: NDArray[Any], codes: Codes, shape: tuple[int, int], categories: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count codes by flat cell index."""
    width = categories + 1  # slot 0 holds the missing ones
    counts = np.bincount(cell * width + codes + 1, minlength=shape[0] * shape[1] * width)
    by_cell = counts.reshape(*shape, width)
    return by_cell[..., 1:], by_cell[..., 0]
