"""CSV and TSV tables: every row accounted for, every cell matched as it is written."""

import csv
import re
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from itertools import islice
from typing import Any, BinaryIO, TextIO

from bayesatk.data.columns import COVARIATE, Columns, pick_columns
from bayesatk.data.content import Contents
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io.budget import largest, too_large
from bayesatk.io.cells import restored
from bayesatk.io.json_stream import decoded

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,6})?", re.ASCII | re.IGNORECASE)


def read_delimited(
    file: BinaryIO, columns: Mapping[str, str], scores: Scores, separator: str
) -> Columns:
    """Read the columns that matter; rows are numbered by the line on which they begin."""
    with closing(delimited_parts(file, columns, scores, separator, None)) as blocks:
        return next(blocks)


def delimited_parts(
    file: BinaryIO,
    columns: Mapping[str, str],
    scores: Scores,
    separator: str,
    size: int | None,
) -> Generator[Columns]:
    """Yield the columns that matter of so many rows after the other; of all without a size."""
    with _LONG_CELLS, decoded(file, newline="") as text:
        lines = _Lines(text)
        rows = _rows(csv.reader(lines, delimiter=separator, strict=True), lines)
        header = next(rows, None)
        if header is None:
            raise OutcomeError(
                "the file must be delimited text with a header; it is empty. Give it a first "
                "row of column names."
            )
        while True:
            block = _collect(islice(rows, size), header[1], columns, scores)
            yield block
            if size is None or len(block.numbers or ()) < size:
                return


class _CellLimit:
    """The csv module's limit of one cell, lifted while files are read: rows are measured here.

    It is one for the whole process: the first reader lifts it and the last puts it back.
    """

    def __init__(self) -> None:
        self._lock, self._readers, self._before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._readers:
                self._before = csv.field_size_limit(sys.maxsize)
            self._readers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                csv.field_size_limit(self._before)


_LONG_CELLS = _CellLimit()


class _Lines:
    """Lines on their way into rows; those of one row may not exceed the budget together."""

    def __init__(self, text: TextIO) -> None:
        self._text, self.size = text, 0

    def __iter__(self) -> Iterator[str]:
        limit = largest()
        for line in self._text:
            self.size += len(line)
            if self.size > limit:
                raise too_large("a row", limit)
            yield line


def _rows(reader: Any, lines: _Lines) -> Iterator[tuple[int, list[str]]]:
    """Yield every row that is not blank with the line on which it begins."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise OutcomeError(
                f"row {line} must be delimited text; {error}. Check its quotes: a quote inside a "
                "quoted cell is doubled."
            ) from None
        if row is None:
            return
        lines.size = 0
        if row and (len(row) > 1 or row[0].strip()):
            yield line, row


def _collect(
    rows: Iterator[tuple[int, list[str]]],
    header: list[str],
    columns: Mapping[str, str],
    scores: Scores,
) -> Columns:
    roles, asked, unused_names = pick_columns(header, columns)
    wanted = [(role, header.index(name)) for role, name in roles.items()]
    values_by_role: dict[str, list[Any]] = {role: [] for role in roles}
    contents = Contents(asked)
    places = [(name, header.index(name)) for name in contents.digests]
    lines: list[int] = []
    pool: dict[str, str] = {}  # one object for each text: a table repeats its labels
    for line, row in rows:
        if len(row) != len(header):
            raise OutcomeError(
                f"row {line} must have {len(header)} cells, one for each column; got {len(row)}. "
                "Quote a cell that holds the separator, or complete the row."
            )
        lines.append(line)
        for name, column in places:
            contents.add(name, row[column])
        for role, column in wanted:
            cell = row[column]
            may_be_blank = role in ("outcome", "answer", "cost") or role.startswith(COVARIATE)
            if not may_be_blank and not cell.strip():
                raise OutcomeError(
                    f"row {line} must have a {role} in column {roles[role]!r}; its cell is blank. "
                    "Fill it in, or remove the row."
                )
            values_by_role[role].append(
                pool[cell] if cell in pool else pool.setdefault(cell, restored(cell))
            )
    _refuse_merged(pool)
    if "outcome" in values_by_role:
        numbers = _numbers(scores)
        read = {text: _from_text(text, scores, numbers) for text in set(values_by_role["outcome"])}
        values_by_role["outcome"] = [read[text] for text in values_by_role["outcome"]]
    return Columns(roles, values_by_role, "row", lines, contents.digests, unused_names)


def _refuse_merged(pool: Mapping[str, str]) -> None:
    """Refuse texts that differ by an apostrophe only, which reading takes off."""
    for cell, text in pool.items():
        if cell != text and pool.get(text) == text:
            raise OutcomeError(
                f"cells must not differ only by an apostrophe that a spreadsheet hides; got "
                f"{shown(cell)} and {shown(text)}. Write all of them in one way."
            )


def _numbers(scores: Scores) -> dict[Decimal, object]:
    """Return the numeric outcomes by their exact decimal value, as Python writes it."""
    labels_by_number: dict[Decimal, object] = {}
    for label in scores:
        if not isinstance(label, str):
            text = str(int(label)) if isinstance(label, bool) else str(label)
            if _NUMBER.fullmatch(text):
                labels_by_number[Decimal(text)] = label
    return labels_by_number


def _from_text(text: str, scores: Scores, numbers: Mapping[Decimal, object]) -> object:
    """Return what a cell says: an outcome as it is written, a number, true/false, or nothing.

    Examples
    --------
    >>> [_from_text(text, {0: 0.0, 1: 1.0}, {Decimal(1): 1}) for text in ("1.0", "TRUE", "", "1_0")]
    [1, True, None, '1_0']
    """
    stripped = text.strip()
    for written in (text, stripped):
        if written in scores:
            return written
    if not stripped or stripped.lower() == "nan":
        return None
    if _NUMBER.fullmatch(stripped):
        return numbers.get(Decimal(stripped), stripped)
    return {"true": True, "false": False}.get(stripped.lower(), stripped)
