"""Cells that hold a list: the outcomes, and the answers, of all trials of a question in one row."""

import ast
import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from bayesatk.data.columns import Columns
from bayesatk.data.validation import OutcomeError, is_missing, shown

_SINGLE = {int, float, bool, NoneType}
_BY_TRIAL = ("outcome", "answer", "cost")  # roles of columns that hold lists
_LONGEST = 1 << 20  # characters of a cell that is read as a list


def one_row_a_trial(table: Columns) -> Columns:
    """Return the table with a row for each element of its lists of outcomes.

    Examples
    --------
    >>> roles = {"question": "id", "outcome": "accs"}
    >>> table = Columns(roles, {"question": ["a", "b"], "outcome": [[1, 0], "[true]"]})
    >>> found = one_row_a_trial(table)
    >>> found.values["question"], found.values["outcome"], found.place(1)
    (['a', 'a', 'b'], [1, 0, True], 'row 0')
    """
    outcomes = table.values.get("outcome")
    if outcomes is None or isinstance(outcomes, np.ndarray):
        return table
    if set(map(type, outcomes)) <= _SINGLE:
        return table
    cells = [_list_of(cell) for cell in outcomes]
    if all(cell is None for cell in cells):
        return table
    _check(table, cells)
    lengths = [1 if cell is None else len(cell) for cell in cells]
    rows = np.repeat(np.arange(len(cells)), lengths)
    values: dict[str, Any] = {
        role: _repeated(table.listed(role), rows) for role in table.roles if role not in _BY_TRIAL
    }
    values["outcome"] = _joined(outcomes, cells)
    for role in ("answer", "cost"):
        if role in table.roles:
            values[role] = _of_trials(table, role, lengths)
    if "trial" in values:
        place = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        values["trial"] = [f"{one}/{n}" for one, n in zip(values["trial"], place, strict=True)]
    numbers = [table.number(row) for row in range(len(cells))]
    content = {name: _repeated(list(each), rows) for name, each in table.content.items()}
    return Columns(table.roles, values, table.word, _repeated(numbers, rows), content, table.others)


def _check(table: Columns, cells: Sequence[list[Any] | None]) -> None:
    """Refuse empty lists, and lists beside single outcomes."""
    where = f"of column {table.roles['outcome']!r}"
    known = [row for row, value in enumerate(table.values["outcome"]) if not is_missing(value)]
    listed = cells[known[0]] is not None
    for row in known:
        cell = cells[row]
        if cell is not None and not len(cell):
            raise OutcomeError(
                f"a list of outcomes must not be empty; {table.place(row)} {where} has one. Write "
                "null for a trial without outcome, or remove the row."
            )
        if (cell is not None) != listed:
            value = shown(table.value("outcome", row))
            raise OutcomeError(
                f"outcomes must all be lists or all be single; {value} at {table.place(row)} "
                f"{where} is not as those before. Write every outcome as one of both."
            )


def _list_of(cell: object) -> list[Any] | None:
    """Return a list that a cell holds, or that its text is; else None."""
    if isinstance(cell, np.ndarray):
        return cell.tolist() if cell.ndim else None
    if isinstance(cell, list | tuple):
        return list(cell)
    if not isinstance(cell, str) or not cell.lstrip().startswith("[") or len(cell) > _LONGEST:
        return None
    for read in (json.loads, ast.literal_eval):  # pandas writes lists as Python does
        try:
            found = read(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, list) else None
    return None


def _joined(outcomes: Sequence[Any], cells: Sequence[list[Any] | None]) -> list[Any]:
    """Return the elements of the lists, and the cells that hold none, in order."""
    return [
        one
        for outcome, cell in zip(outcomes, cells, strict=True)
        for one in ([outcome] if cell is None else cell)
    ]


def _repeated(values: list[Any], rows: np.ndarray[Any, np.dtype[np.int64]]) -> list[Any]:
    return [values[row] for row in rows.tolist()]


def _of_trials(table: Columns, role: str, lengths: Sequence[int]) -> list[Any]:
    """Return an answer or cost for each trial, from lists as long as those of outcomes."""
    found: list[Any] = []
    values: Mapping[str, Any] = table.values
    for row, (cell, length) in enumerate(zip(values[role], lengths, strict=True)):
        listed = _list_of(cell)
        own = [cell] * length if listed is None else listed
        if len(own) != length or (listed is None and length > 1):
            raise OutcomeError(
                f"a list of {role}s must be as long as that of outcomes; {table.place(row)} has "
                f"{shown(cell)} for {length} outcomes. Correct it, or leave the column out."
            )
        found += own
    return found
