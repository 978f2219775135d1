"""Tables as text: CSV, TSV, JSON Lines and JSON arrays, whose rows are records with named fields.

Every row is accounted for, and every cell of CSV is matched as it is written. Cells that a
spreadsheet would run as formulas are written so that it shows them.
"""

import csv
import re
import sys
import threading
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from typing import Any, BinaryIO, TextIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import BY_TRIAL, COVARIATE, Columns, find_columns, pick_columns
from bayesatk.data.content import Contents
from bayesatk.data.number_scale import NumberScale
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io.budget import largest, too_large
from bayesatk.io.json_stream import at, decoded, members, parsed_lines, parts_of

# What spreadsheets take for the beginning of a formula (OWASP, CSV injection), behind apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,6})?", re.ASCII | re.IGNORECASE)
_CSV_LIMIT = threading.RLock()


class _Gathered:
    """The columns that matter, as records come in."""

    def __init__(self, word: str, names: Collection[str], columns: Mapping[str, str]) -> None:
        self.word, self.columns = word, columns
        self.roles, content_names, self.others = pick_columns(list(names), columns)
        self.values: dict[str, list[Any]] = {role: [] for role in self.roles}
        self.numbers: list[int] = []
        self.contents = Contents(content_names)
        self.pool: dict[str, str] = {}  # one object for each text: a table repeats its labels

    def add(self, record: Mapping[str, Any], number: int) -> None:
        """Append the fields that matter of one record."""
        self.numbers.append(number)
        for name in self.contents.digests:
            self.contents.add(name, at(record, name))
        for role, name in self.roles.items():
            value = at(record, name)
            pooled = self.pool.setdefault(value, value) if isinstance(value, str) else value
            self.values[role].append(pooled)

    def table(self, values: Mapping[str, list[Any]] | None = None) -> Columns:
        """Return the columns, with these values if they are read from text."""
        values = self.values if values is None else values
        content = self.contents.digests
        return Columns(self.roles, values, self.word, self.numbers, content, self.others)

    def refuse_other(self, names: Collection[str], where: str) -> None:
        """Refuse a record with other fields that matter than the first."""
        for name in self.roles.values():
            if name not in names:
                raise OutcomeError(
                    f"{where} has no field {name!r}, which the first record has. A missing outcome "
                    "is null."
                )
        try:
            roles = find_columns(list(names), self.columns)
        except OutcomeError as error:
            raise OutcomeError(f"{where}: {error}") from None
        new_names = [name for role, name in roles.items() if self.roles.get(role) != name]
        if new_names:
            raise OutcomeError(
                f"{where} has the field {new_names[0]!r}, which the first record lacks. Give it to "
                "every record, or rename it."
            )


def json_blocks(
    kind: str, file: BinaryIO, columns: Mapping[str, str], records: str | None
) -> Generator[Columns]:
    """Yield all of JSON Lines, or of an array of a document: that at a path, or the only one."""
    word = "line" if kind == "jsonl" else "record"
    # Fields within fields, such as reward_info.reward, are read where they are named.
    nested = [name for name in columns.values() if isinstance(name, str) and "." in name]
    gathered, checked = None, set()
    for number, record in json_records(kind, file, records):
        where = f"{word} {number}"
        if not isinstance(record, dict):
            raise OutcomeError(f"{where} must be an object with named fields; got {shown(record)}.")
        inner = (name for name in nested if name not in record and _says(record, name))
        names = (*record, *inner)
        if gathered is None:
            gathered = _Gathered(word, names, columns)
        if names not in checked:
            gathered.refuse_other(names, where)
            checked.add(names)
        gathered.add(record, number)
    if gathered is None:
        raise OutcomeError(
            f"the file must have an array of records{f' at {records}' if records else ''}, or one "
            'a line; got none. One record is {"question": ..., "trial": ..., "outcome": ...}. If '
            "they are within an object, say where: ", Argument("records", "results"), ".",
        )  # fmt: skip
    yield gathered.table()


def json_records(kind: str, file: BinaryIO, records: str | None) -> Iterator[tuple[int, Any]]:
    """Yield number and value of every record."""
    if kind == "jsonl":
        yield from parsed_lines(file)
        return
    with decoded(file) as text:
        if records is not None:
            yield from enumerate(record for _, _, record in parts_of(text, records, {}))
            return
        # Where tools put records that are not the whole document.
        usual_keys = "results performances instances records rows data items examples cases samples"
        within, names = "", None
        for key, number, record in members(text, frozenset(usual_keys.split())):
            if key == "columns" and isinstance(record, list):  # of a table in rows, as MLflow has
                names = record
            if names and isinstance(record, list) and isinstance(number, int):
                record = dict(zip(names, record, strict=False))
            if not isinstance(number, int) or (key and not isinstance(record, dict)):
                continue
            if key != (within or key):
                raise OutcomeError(
                    f"the records must be in one place; there are some in {within!r} and in "
                    f"{key!r}. Choose: ", Argument("records", within), ".",
                )  # fmt: skip
            within = key
            yield number, record


def _says(value: object, path: str) -> bool:
    """Whether a field is there; one within a field that is null is null as well."""
    if not isinstance(value, Mapping):
        return value is None
    if path in value or at(value, path) is not None:
        return True
    first, _, inner_path = path.partition(".")
    return bool(inner_path) and first in value and _says(value[first], inner_path)


def delimited_blocks(
    file: BinaryIO, columns: Mapping[str, str], scores: Scores, separator: str, size: int | None
) -> Generator[Columns]:
    """Yield the columns that matter of so many rows after the other; of all without a size.

    Rows are numbered by the line on which they begin.
    """
    with _long_cells(), decoded(file, newline="") as text:
        rows = delimited_rows(text, separator)
        header = next(rows, (0, None))[1]
        if header is None:
            raise OutcomeError(
                "the file must be delimited text with a header; it is empty. Give it a first "
                "row of column names."
            )
        rows_read = size
        while rows_read == size:
            gathered = _Gathered("row", header, columns)
            required = {
                role: name
                for role, name in gathered.roles.items()
                if role not in ("outcome", "answer", *BY_TRIAL) and not role.startswith(COVARIATE)
            }
            for line, row in islice(rows, size):
                _check_row(line, row, header)
                record = dict(zip(header, row, strict=True))
                for role, name in required.items():
                    if not record[name].strip():
                        raise OutcomeError(
                            f"row {line} must have a {role} in column {name!r}; its cell is blank. "
                            "Fill it in, or remove the row."
                        )
                gathered.add(record, line)
            rows_read = len(gathered.numbers) if size is not None else -1
            yield gathered.table(_from_cells(gathered, scores))


def delimited_rows(text: TextIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield every row that is not blank with the line on which it begins, within the budget."""
    length, limit = 0, largest()

    def lines() -> Iterator[str]:
        nonlocal length
        for line in text:
            length += len(line)
            if length > limit:
                raise too_large("a row", limit)
            yield line

    reader = csv.reader(lines(), delimiter=separator, strict=True)
    while True:
        first_line, length = reader.line_num + 1, 0
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise OutcomeError(
                f"row {first_line} must be delimited text; {error}. Check its quotes: a quote "
                "inside a quoted cell is doubled."
            ) from None
        if row is None:
            return
        if row and (len(row) > 1 or row[0].strip()):
            yield first_line, row


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lift the csv module's limit of a cell, one for the whole process: rows are measured here."""
    with _CSV_LIMIT:
        limit = csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _check_row(line: int, row: list[str], header: list[str]) -> None:
    if len(row) != len(header):
        raise OutcomeError(
            f"row {line} must have {len(header)} cells, one for each column; got {len(row)}. "
            "Quote a cell that holds the separator, or complete the row."
        )


def _from_cells(gathered: _Gathered, scores: Scores) -> dict[str, list[Any]]:
    """Return what the cells of a block say, by role."""
    texts = {cell: restored(cell) for cell in gathered.pool}
    for cell, text in texts.items():
        if cell != text and texts.get(text) == text:
            raise OutcomeError(
                f"cells must not differ only by an apostrophe that a spreadsheet hides; got "
                f"{shown(cell)} and {shown(text)}. Write all of them in one way."
            )
    values: dict[str, list[Any]] = {
        role: [texts[cell] for cell in cells] for role, cells in gathered.values.items()
    }
    if "outcome" in values:
        numbers = _numbers(scores)
        outcomes = {text: _from_text(text, scores, numbers) for text in set(values["outcome"])}
        values["outcome"] = [outcomes[text] for text in values["outcome"]]
    return values


def _numbers(scores: Scores) -> dict[Decimal, object]:
    """Return the numeric outcomes by their exact decimal value, as Python writes it."""
    labels_by_text = {
        str(int(label)) if isinstance(label, bool) else str(label): label
        for label in scores
        if not isinstance(label, str)
    }
    return {Decimal(text): label for text, label in labels_by_text.items() if is_number(text)}


def is_number(text: str) -> bool:
    """Whether a text is a decimal number."""
    return _NUMBER.fullmatch(text) is not None


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
    if is_number(stripped):
        if isinstance(scores, NumberScale):
            return float(stripped)
        return numbers.get(Decimal(stripped), stripped)
    return {"true": True, "false": False}.get(stripped.lower(), stripped)


def defused(cell: Any) -> Any:
    """Return a cell with an apostrophe before what would be a formula; numbers stay as they are.

    No two cells become the same, and `restored` is the inverse.

    Examples
    --------
    >>> defused("=1+1"), defused("-1.5"), defused("'=1"), defused("a=1")
    ("'=1+1", '-1.5', "''=1", 'a=1')
    """
    dangerous = isinstance(cell, str) and _FORMULA.match(cell) and not is_number(cell)
    return f"'{cell}" if dangerous else cell


def restored(cell: str) -> str:
    """Return the text that `defused` was given.

    Examples
    --------
    >>> restored("'=1+1"), restored("'quoted'"), restored("-1.5")
    ('=1+1', "'quoted'", '-1.5')
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
