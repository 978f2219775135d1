"""From raw outcomes to integer codes and counts: the one place where input is believed or refused.

Outcomes become codes (position in the score mapping, `CODE_MISSING`, or `CODE_INVALID`); nothing
is coerced, and the first invalid cell is named in the error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Codes = NDArray[np.int16]
Scores = Mapping[Any, float]

CODE_MISSING = -1
CODE_INVALID = -2


class OutcomeError(ValueError):
    """Outcomes that cannot be read as given; the message says where, why, and what to do."""


@dataclass(frozen=True)
class Table:
    """Counts on the way in: arrays with their labels, before the missing policy."""

    count: NDArray[np.int64]
    missing: NDArray[np.int64]
    systems: list[Any]
    questions: list[Any]
    notes: tuple[str, ...] = ()

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

    def labelled(
        self, systems: Sequence[object] | None, questions: Sequence[object] | None
    ) -> "Table":
        """Replace the labels, checking their number."""
        changed: dict[str, Any] = {}
        for name, labels, old in (
            ("systems", systems, self.systems),
            ("questions", questions, self.questions),
        ):
            if labels is None:
                continue
            if len(labels) != len(old):
                raise OutcomeError(
                    f"{name} must label each of the {len(old)} {name} in the data; got "
                    f"{len(labels)} labels."
                )
            changed[name] = list(labels)
        return replace(self, **changed)


def check_scores(scores: Scores) -> Scores:
    """Return the score mapping, or say what is wrong with it."""
    if len(scores) < 2:
        raise OutcomeError(f"scores must map at least two outcomes to numbers; got {dict(scores)}.")
    for label, score in scores.items():
        if not isinstance(score, int | float | np.number) or not math.isfinite(score):
            raise OutcomeError(f"scores must be finite numbers; got {score!r} for {label!r}.")
    return {label: float(score) for label, score in scores.items()}


def check_counts(values: object, name: str) -> NDArray[np.int64]:
    """Return whole, non-negative numbers as int64, or name the first that is not."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise OutcomeError(
            f"{name} must be whole numbers >= 0; got values of type {array.dtype}, for instance "
            f"{array.ravel()[:1].tolist()}."
        )
    bad = ~(np.isfinite(array) & (array >= 0) & (array == np.floor(array)))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise OutcomeError(
            f"{name} must be whole numbers >= 0; got {array[where]} at position {where}."
        )
    return array.astype(np.int64)


def as_coordinate(labels: list[Any], name: str) -> pd.Index:
    """Return labels as an index of one type: all integers or all text, without repetition."""
    if not all(isinstance(label, int | np.integer) for label in labels):
        labels = [str(label) for label in labels]
    index: pd.Index = pd.Index(labels)
    if index.has_duplicates:
        twice = index[index.duplicated()][0]
        raise OutcomeError(
            f"{name} must be distinct; got {twice!r} more than once. Labels that differ only in "
            "type (1 and '1') count as the same."
        )
    return index


def encode(values: NDArray[Any], scores: Scores) -> Codes:
    """Position of every value among the scored outcomes; negative codes for the rest."""
    codes = np.full(values.shape, CODE_INVALID, np.int16)
    if values.dtype.kind == "O":
        known = dict(zip(scores, range(len(scores)), strict=True))
        flat = [_encode_one(value, known) for value in values.ravel()]
        return np.array(flat, np.int16).reshape(values.shape)
    for code, label in enumerate(scores):
        if isinstance(label, str) == (values.dtype.kind == "U"):
            codes[values == label] = code
    if values.dtype.kind == "f":
        codes[np.isnan(values)] = CODE_MISSING
    return codes


def _encode_one(value: Any, known: Mapping[Any, int]) -> int:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return CODE_MISSING
    try:
        return known.get(value, CODE_INVALID)
    except TypeError:  # unhashable: a list where an outcome should be
        return CODE_INVALID


def refuse(value: Any, where: str, scores: Scores) -> OutcomeError:
    """Return the error for an outcome that no score covers."""
    allowed = ", ".join(repr(label) for label in scores)
    return OutcomeError(
        f"outcome {value!r} at {where} is not one of {allowed}. Map every outcome that may occur "
        "with scores={outcome: score, ...}; an unknown or failed one is None or NaN, with a "
        "missing= policy."
    )


def read_nested(data: object, scores: Scores) -> Table:
    """Read an array, rows of any length, or a mapping {system: either}."""
    if isinstance(data, Mapping):
        return _read_mapping(data, scores)
    if isinstance(data, np.ndarray):
        return _read_array(data, scores)
    if isinstance(data, str | bytes) or not isinstance(data, Sequence):
        raise OutcomeError(
            f"data must be an array, rows, a mapping, a table or an xarray object; got {data!r:.80}"
            f" of type {type(data).__name__}. To read a file use bayesatk.load(path)."
        )
    rows = [_as_row(row) for row in data]
    if not rows:
        raise OutcomeError("data must hold at least one question; got an empty list.")
    depths = {_depth(row) for row in rows}
    if depths == {2}:
        return _read_mapping(dict(enumerate(data)), scores)
    if depths != {1}:
        raise OutcomeError(
            "data must be rows of outcomes, (question, trial), or a list of such tables, (system, "
            f"question, trial); got nesting depths {sorted(depths)}. One row of trials is [[...]]."
        )
    return _read_rows(rows, scores)


def _as_row(row: object) -> Any:
    return row.tolist() if isinstance(row, np.ndarray) else row


def _depth(value: object) -> int:
    """Nesting below a row: 1 for a list of outcomes, 2 for a list of lists."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return 0
    return 1 + max((_depth(_as_row(item)) for item in value), default=0)


def _read_mapping(data: Mapping[Any, Any], scores: Scores) -> Table:
    if not data:
        raise OutcomeError("data must hold at least one system; got an empty mapping.")
    tables = {system: read_nested(rows, scores) for system, rows in data.items()}
    sizes = {system: table.count.shape[:2] for system, table in tables.items()}
    if len(set(sizes.values())) > 1 or next(iter(sizes.values()))[0] > 1:
        raise OutcomeError(
            "every system must be one table of the same questions; got (systems, questions) "
            f"{sizes}. For systems that answered different questions pass a long table."
        )
    return Table.from_counts(
        np.concatenate([table.count for table in tables.values()]),
        np.concatenate([table.missing for table in tables.values()]),
    ).labelled(list(tables), None)


def _read_array(data: NDArray[Any], scores: Scores) -> Table:
    if data.ndim not in (2, 3) or data.size == 0:
        raise OutcomeError(
            "an array of outcomes must be non-empty with dims (question, trial) or (system, "
            f"question, trial); got shape {data.shape}. Success counts go in with trials=...."
        )
    codes = encode(data, scores)
    if (codes == CODE_INVALID).any():
        where = tuple(int(i) for i in np.argwhere(codes == CODE_INVALID)[0])
        names = ("system", "question", "trial")[-data.ndim :]
        place = ", ".join(f"{name} {i}" for name, i in zip(names, where, strict=True))
        raise refuse(data[where].item(), place, scores)
    if data.ndim == 2:
        codes = codes[None]
    count = np.stack([(codes == code).sum(axis=-1) for code in range(len(scores))], axis=-1)
    return Table.from_counts(count, (codes == CODE_MISSING).sum(axis=-1))


def _read_rows(rows: list[Any], scores: Scores) -> Table:
    flat = np.empty(sum(len(row) for row in rows), dtype=object)
    flat[:] = [value for row in rows for value in row]
    codes = encode(flat, scores)
    owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    if (codes == CODE_INVALID).any():
        first = int(np.argmax(codes == CODE_INVALID))
        trial = first - int(np.searchsorted(owner, owner[first]))
        raise refuse(flat[first], f"question {owner[first]}, trial {trial}", scores)
    return Table.from_counts(*cells(owner, codes, (1, len(rows)), len(scores)))


def cells(
    cell: NDArray[Any], codes: Codes, shape: tuple[int, int], categories: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count codes by flat cell index."""
    width = categories + 1  # slot 0 holds the missing ones
    counts = np.bincount(cell * width + codes + 1, minlength=shape[0] * shape[1] * width)
    by_cell = counts.reshape(*shape, width)
    return by_cell[..., 1:], by_cell[..., 0]
