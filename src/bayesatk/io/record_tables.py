"""Read records with named fields from CSV, TSV, JSON Lines, JSON and Parquet.

Every row becomes a record or an error, and cells of CSV are compared as they are written. Cells
that a spreadsheet would run as formulas are written with an apostrophe. Text is kept by a
dictionary, as Parquet stores it, so that a repeated value is in memory once. Of columns of content
only digests are kept.
"""

import csv
import itertools
import re
import sys
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
import pandas as pd

from bayesatk._tools.messages import Argument
from bayesatk.data import long_tables
from bayesatk.data.columns import Columns, Picked, rows_from
from bayesatk.data.roles import (
    KEY,
    MAX_SCANNED_ROWS,
    Sample,
    is_outcome_name,
    normalized_name,
    trial_columns,
    usual_names,
)
from bayesatk.data.validation import (
    NumberScale,
    OutcomeError,
    Scores,
    number_of,
    outcome_codes,
    share_of,
    shown,
)
from bayesatk.io.json_stream import decoded, members, parse_json, parsed_lines, value_at
from bayesatk.io.sources import budget_in_use, max_value_size, open_regular_file, too_large

# How formulas of spreadsheets begin (OWASP, CSV injection), perhaps after apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_CSV_LIMIT_LOCK = threading.RLock()
SEPARATORS = {"csv": ",", "tsv": "\t"}


NumberedRecord = tuple[int, tuple[str, ...], Any]  # number, field names and fields


def text_blocks(
    kind: str, file: BinaryIO, picked: Picked, records: str | None, known: Collection[Any]
) -> Generator[Columns]:
    """Yield the columns with a role of a text file, in blocks of records.

    Parameters
    ----------
    kind : str
        Format of the file.
    file : file of bytes
    picked : Picked
    records : str, optional
        Place of the records in a JSON document.
    known : collection
        Names of columns that were there when the columns were picked; a later one with a usual
        name is refused.
    """
    word = {"jsonl": "line", "json": "record"}.get(kind, "row")
    needed, known_names, first_names = picked.needed, {*known}, None
    block: list[tuple[Any, ...]] = []
    for number, names, record in read_records(kind, file, records):
        if names is not first_names:  # rows of delimited text share one header
            place, first_names = f"{word} {number}", names
            repeated = [name for name in needed if names.count(name) > 1]
            if repeated:
                raise OutcomeError(
                    f"column names must be distinct; got {shown(repeated[0])} more than once. "
                    "Rename one of them."
                )
            late_names = [
                name
                for name in names
                if name not in known_names and normalized_name(name) in usual_names()
            ]
            if late_names:
                raise OutcomeError(
                    f"{place} has the field {late_names[0]!r}, which no record before has. Give it "
                    "to one of the first, or leave it out: ",
                    Argument("ignore", late_names),
                    ".",
                )
        cells = [record[name] if name in record else value_at(record, name) for name in needed]
        block.append((number, *cells))
        if len(block) == _MAX_ROWS_PER_BLOCK:
            yield _columns_of_block(picked, word, block)
            block = []
    if block:
        yield _columns_of_block(picked, word, block)


def _no_records(records: str | None, arrays: Sequence[str]) -> OutcomeError:
    """Return the error for a document without records, with the places of its arrays."""
    hint = f"There are arrays in {shown(list(arrays))[1:-1]}. " if arrays else ""
    return OutcomeError(
        f"the file must have an array of records{f' at {records}' if records else ''}, or one "
        'a line; got none. One record is {"question": ..., "trial": ..., "outcome": ...}. '
        f"{hint}If they are within an object, say where: ",
        Argument("records", arrays[0] if arrays else "results"),
        ".",
    )


def _columns_of_block(picked: Picked, word: str, block: list[tuple[Any, ...]]) -> Columns:
    """Return a block of records as columns; cells of delimited text are restored."""
    numbers, *cells = map(list, zip(*block, strict=True))
    pool: dict[Any, Any] = {}  # one object for each text: a table repeats its labels
    columns = {
        name: [pool.setdefault(cell, cell) if isinstance(cell, str) else cell for cell in column]
        for name, column in zip(picked.needed, cells, strict=True)
    }
    if word == "row":
        columns = _restored(columns)
    rows = np.array(numbers)
    return picked.table(lambda name, role: columns[name], place=lambda row: f"{word} {rows[row]}")


def read_records(kind: str, file: BinaryIO, records: str | None) -> Generator[NumberedRecord]:
    """Yield number, field names and fields of every record of a text file."""
    if kind in SEPARATORS:
        yield from _delimited_records(file, SEPARATORS[kind])
        return
    numbered_records = _records_of_lines if kind == "jsonl" else _records_of_document
    for number, record in numbered_records(file, records):
        if not isinstance(record, dict):
            word = "line" if kind == "jsonl" else "record"
            raise OutcomeError(
                f"{word} {number} must be an object with named fields; got {shown(record)}."
            )
        yield number, tuple(record), record


# Keys under which tools put records.
_USUAL_KEYS = frozenset(
    "results performances instances records rows data items examples cases samples episodes "
    "trials runs".split()
)


def _records_of_document(file: BinaryIO, records: str | None) -> Iterator[tuple[int, Any]]:
    """Yield number and value of every record of a JSON document."""
    number = -1
    if records is None:
        with decoded(file) as text:
            for number, record in _listed_records(text):
                yield number, record
        if number >= 0:
            return
        file.seek(0)
    with decoded(file) as text:
        document = parse_json(text.read(max_value_size() + 1), "the document")
    found = (
        _records_within(document, records.split("."), {}) if records else _records_by_key(document)
    )
    for number, record in enumerate(found):
        yield number, record
    if number < 0:
        raise _no_records(records, () if records else _arrays("", document))


def _listed_records(text: TextIO) -> Iterator[tuple[int, Any]]:
    """Yield the elements of the array that a document is, or has under a usual name, one by one."""
    records_key, names, system = None, None, dict[str, Any]()
    for key, number, record in members(text, _USUAL_KEYS):
        if key == "columns" and isinstance(record, list):
            names = record  # of a table in rows, as MLflow writes it
        if key in usual_names("system") and isinstance(record, str):
            system[key] = record
        if names and isinstance(record, list) and isinstance(number, int):
            record = dict(zip(names, record, strict=False))
        if not isinstance(number, int) or (key and not isinstance(record, dict)):
            continue
        if records_key not in (None, key):
            raise OutcomeError(
                f"the records must be in one place; there are some in {records_key!r} and in "
                f"{key!r}. Choose: ",
                Argument("records", records_key),
                ".",
            )
        records_key = key
        yield number, {**system, **record} if system else record


def _records_by_key(document: Any) -> Iterator[Any]:
    """Yield the records of a document that has them by key, itself or under a usual name."""
    inner = [document[name] for name in _USUAL_KEYS & {*document}]
    for keyed in [*filter(_is_keyed, [*inner, document])][:1]:
        yield from _members(keyed)


def _records_within(
    value: object, names: Sequence[str], inherited: Mapping[str, object], container: str = ""
) -> Iterator[Any]:
    """Yield the records at a path of names, with the single values of all objects that hold them.

    Lists and objects by key on the way are gone through; a record gets its key, and the object
    that its question is. The name or id of an object among ``models`` is its ``model``. Marks of
    the objects around are left out.

    Examples
    --------
    >>> runs = {"models": [{"name": "m", "tasks": [{"id": "q", "tries": [{"ok": 1}, {"ok": 0}]}]}]}
    >>> [*_records_within(runs, ["models", "tasks", "tries"], {})]
    [{'model': 'm', 'id': 'q', 'ok': 1}, {'model': 'm', 'id': 'q', 'ok': 0}]
    """
    if not names:
        if isinstance(value, dict) and _holds_marks(value):
            value = {key: [mark] for key, mark in value.items()}
        yield from (_joined(inherited, record) for record in _members(value))
    elif isinstance(value, list):
        for element in value:
            yield from _records_within(element, names, inherited, container)
    elif isinstance(value, dict):
        taken = len(names) if ".".join(names) in value else 1
        name, rest = ".".join(names[:taken]), names[taken:]
        below = {name: rest} if name in value else dict.fromkeys(value, names)
        own: dict[str, object] = {
            _name_of_field(key, container, value): inner
            for key, inner in value.items()
            if not isinstance(inner, list)
            and not is_outcome_name(key)
            and (not isinstance(inner, dict) or normalized_name(key) in usual_names("question"))
        }
        for key, path in below.items():
            fields = {KEY: key} if name not in value and _is_keyed(value) else own
            yield from _records_within(value[key], path, _joined(inherited, fields), key)


def _name_of_field(name: str, container: str, fields: Collection[str]) -> str:
    """Return the name of a field; of the name or id of a system what its container says."""
    system = container.removesuffix("s")
    is_system = name in ("name", "id") and system in usual_names("system")
    return system if is_system and system not in fields else name


def _joined(outer: Mapping[str, object], inner: Any) -> Any:
    """Return an object with the fields of the one around it; those of both names are "outer"."""
    if not isinstance(inner, dict):
        return inner
    renamed = {f"outer {name}" if name in inner else name: outer[name] for name in outer}
    return {**renamed, **inner}


def _members(value: Any) -> Iterator[Any]:
    """Yield the records of a list, or of an object by key, which become a field.

    Of marks under two keys, and of records with marks, the key with fewer values is the system.

    Examples
    --------
    >>> [*_members({"gpt": {"q0": [1, 0], "q1": [1, 1]}, "o3": {"q0": [0], "q1": [1]}})][0]
    {'system': 'gpt', 'question': 'q0', 'outcome': [1, 0]}
    >>> marks = {"q0": {"passed": 1}, "q1": {"passed": 0}}
    >>> [*_members({"gpt": marks, "o3": marks})][0]
    {'system': 'gpt', 'question': 'q0', 'passed': 1}
    """
    if isinstance(value, list):
        for element in value:
            yield from _members(element) if _is_keyed(element) else [element]
        return
    members_by_key = value.items() if isinstance(value, dict) else ()
    if members_by_key and (
        all(_holds_marks(inner) for _, inner in members_by_key) or _holds_marked_records(value)
    ):
        questions = {name for _, inner in members_by_key for name in inner}
        outer, inner_name = ("system", "question")[:: 1 if len(value) <= len(questions) else -1]
        for key, inner in members_by_key:
            for name, marks in inner.items():
                record = marks if isinstance(marks, dict) else {"outcome": marks}
                yield _joined({outer: key, inner_name: name}, record)
        return
    for key, inner in members_by_key:
        for record in inner if _are_records(inner) else [inner]:
            yield {KEY: key, **(record if isinstance(record, dict) else {"outcome": record})}


def _is_keyed(value: object) -> bool:
    """Return whether an object holds records by key: objects with a common field, lists, marks."""
    inner = [*value.values()] if isinstance(value, dict) else []
    if all(isinstance(member, dict) for member in inner):
        common = set.intersection(*map(set, inner)) if inner else ()
        return len(inner) > 1 and (bool(common) or all(map(_holds_marks, inner)))
    return len(inner) > 1 and (all(map(_are_marks, inner)) or all(map(_are_records, inner)))


def _holds_marks(value: object) -> bool:
    """Return whether an object holds marks of 0 and 1, or lists of them, under keys of its own."""
    if not isinstance(value, dict) or len(value) < 2:
        return False
    return _has_keys_of_its_own(value) and _are_zeros_and_ones(value.values())


def _holds_marked_records(value: Mapping[str, object]) -> bool:
    """Return whether an object holds, under two keys of its own, objects with marks in one field.

    Numbers under every question are those of trials, not systems.
    """
    outer = [inner for inner in value.values() if isinstance(inner, dict) and len(inner) > 1]
    if len(outer) < len(value) or not all(map(_has_keys_of_its_own, [value, *outer])):
        return False
    records = [record for inner in outer for record in inner.values()]
    names = {name for inner in outer for name in inner}
    systems = value if len(value) <= len(names) else names
    numbered = None not in map(number_of, systems)
    return (
        not numbered
        and all(isinstance(record, dict) for record in records)
        and any(
            is_outcome_name(name) or _are_zeros_and_ones([record[name] for record in records])
            for name in set.intersection(*map(set, records))
        )
    )


def _has_keys_of_its_own(value: Mapping[str, object]) -> bool:
    """Return whether the keys of an object are names neither of outcomes nor of trials."""
    return not (any(is_outcome_name(name) for name in value) or trial_columns([*value]))


def _are_zeros_and_ones(values: Iterable[object]) -> bool:
    """Return whether values are marks of 0 and 1, or lists of them; some may be missing."""
    lists = (value if isinstance(value, list) else [value] for value in values)
    marks = [mark for mark in itertools.chain(*lists) if mark is not None]
    return bool(marks) and all(mark in (0, 1) for mark in marks)


def _are_records(value: object) -> bool:
    """Return whether a value is a list of objects."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _are_marks(value: object) -> bool:
    """Return whether a value is a list of marks."""
    return (
        isinstance(value, list)
        and bool(value)
        and not any(isinstance(mark, list | dict) for mark in value)
    )


def _arrays(path: str, value: Any) -> list[str]:
    """Return the paths of the innermost records in a member of a document, or those with marks."""
    records = [*_members(value)] if _are_records(value) or (path and _is_keyed(value)) else []
    if not records and not isinstance(value, dict):
        return []
    fields = records[0] if records else value
    marked = any(
        is_outcome_name(name) and not isinstance(mark, dict | list) for name, mark in fields.items()
    )
    inner = [
        place
        for name, below in fields.items()
        for place in _arrays(f"{path}.{name}".lstrip("."), below)
    ]
    return [path] if records and (marked or not inner) else inner


def _records_of_lines(file: BinaryIO, records: str | None) -> Iterator[tuple[int, Any]]:
    """Yield line number and value of every line, or of the records within it."""
    for line, value in parsed_lines(file):
        if records is None:
            yield line, value
            continue
        within = [*_records_within(value, records.split("."), {})]
        if not within and value_at(value, records) != []:
            raise OutcomeError(
                f"line {line} must have a list of records at {records}; it has none."
            )
        yield from ((line, record) for record in within)


def _delimited_records(file: BinaryIO, separator: str) -> Iterator[NumberedRecord]:
    """Yield the rows of delimited text with the number of their first line."""
    with _long_cells(), decoded(file, newline="") as text:
        other = re.match(r"[^,\n]*?([;|\t])[^,\n]*$", text.readline().strip())
        if separator == "," and other:  # spreadsheets write ; where the decimal point is a comma
            separator = other[1]
        text.seek(0)
        rows = _delimited_rows(text, separator)
        header = tuple(next(rows, (0, ()))[1])
        repeated = [name for name in dict.fromkeys(header) if name and header.count(name) > 1]
        if header.count("") > 1 or len(repeated) > 1:
            fault = f"{header.count('')} of {len(header)} have none"
            if repeated:
                fault = f"{shown(repeated, 100)[1:-1]} are there more than once"
            raise OutcomeError(
                f"columns must have their names in one row; {fault}, as below merged cells. Write "
                "one row of names, such as question, gpt_run1, gpt_run2, and remove the others."
            )
        # The index of a data frame has no name; pandas calls it so.
        header = tuple(name or f"Unnamed: {place}" for place, name in enumerate(header))
        if not header:
            raise OutcomeError(
                "the file must be delimited text with a header; it is empty. Give it a first "
                "row of column names."
            )
        for line, row in rows:
            if len(row) != len(header):
                raise OutcomeError(
                    f"row {line} must have {len(header)} cells, one for each column; got "
                    f"{len(row)}. Quote a cell that holds the separator, complete the row, or "
                    "remove lines above the names of the columns."
                )
            if tuple(row) == header and None in map(number_of, header):
                raise OutcomeError(
                    f"row {line} must have the cells of a trial; it repeats the names of the "
                    "columns, as files do that were joined. Remove it."
                )
            yield line, header, dict(zip(header, row, strict=True))


def _delimited_rows(text: TextIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield first line and cells of every row that is not blank, within the budget."""
    length, limit = 0, max_value_size()

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
    """Lift the limit of the csv module on cells, which is global; rows have a limit here."""
    with _CSV_LIMIT_LOCK:
        limit = csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _restored(columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the cells of delimited text without the apostrophes of `defused`."""
    texts = {cell: restored(cell) for cell in set().union(*columns.values())}
    for cell, text in texts.items():
        if cell != text and texts.get(text) == text:
            raise OutcomeError(
                f"cells must not differ only by an apostrophe that a spreadsheet hides; got "
                f"{shown(cell)} and {shown(text)}. Write all of them in one way."
            )
    return {name: [texts[cell] for cell in cells] for name, cells in columns.items()}


def parse_marks(table: Columns, scores: Scores) -> Columns:
    """Return a table with texts of outcomes replaced by the numbers or flags they stand for."""
    cells = table.values.get("outcome")
    if not isinstance(cells, list) or not any(isinstance(cell, str | list) for cell in cells):
        return table
    numbers = _numeric_outcomes(scores)
    texts = {cell for cell in cells if isinstance(cell, str)}
    marks_by_text = {text: _parsed_mark(text, scores, numbers) for text in texts}

    def mark(cell: Any) -> Any:
        if isinstance(cell, list):
            return [
                _parsed_mark(element, scores, numbers) if isinstance(element, str) else element
                for element in cell
            ]
        return marks_by_text[cell] if isinstance(cell, str) else cell

    return table.with_column("outcome", table.roles["outcome"], list(map(mark, cells)))


def _numeric_outcomes(scores: Scores) -> dict[Decimal, object]:
    """Return the numeric outcomes of the scores by their exact decimal values."""
    labels_by_text = {
        str(int(label)) if isinstance(label, bool) else str(label): label
        for label in outcome_codes(scores)
        if not isinstance(label, str)
    }
    return {Decimal(text): label for text, label in labels_by_text.items() if is_number(text)}


def is_number(text: str) -> bool:
    """Return whether a text is a decimal number without white space."""
    return text.strip() == text != "" and number_of(text) is not None


def _parsed_mark(text: str, scores: Scores, numbers: Mapping[Decimal, object]) -> object:
    """Return the outcome of a cell: a scored text, a number, true/false, None, or the text itself.

    Examples
    --------
    >>> scores, numbers = {0: 0.0, 1: 1.0}, {Decimal(1): 1}
    >>> [_parsed_mark(text, scores, numbers) for text in ("1.0", "TRUE", "", "1_0")]
    [1, True, None, '1_0']
    """
    stripped = text.strip()
    for written in (text, stripped):
        if written in scores:
            return written
    if not stripped or stripped.lower() == "nan":
        return None
    share = share_of(stripped) if isinstance(scores, NumberScale) else None
    if share is not None:
        return share
    if is_number(stripped):
        return numbers.get(Decimal(stripped), stripped)
    return {"true": True, "false": False}.get(stripped.lower(), stripped)


def defused(cell: Any) -> Any:
    """Return a cell with an apostrophe before a formula of spreadsheets; numbers do not change.

    Different cells stay different, and `restored` is the inverse.

    Examples
    --------
    >>> defused("=1+1"), defused("-1.5"), defused("'=1"), defused("a=1")
    ("'=1+1", '-1.5', "''=1", 'a=1')
    """
    dangerous = isinstance(cell, str) and _FORMULA.match(cell) and not is_number(cell)
    return f"'{cell}" if dangerous else cell


def restored(cell: str) -> str:
    """Return the cell that `defused` made a text of.

    Examples
    --------
    >>> restored("'=1+1"), restored("'quoted'"), restored("-1.5")
    ('=1+1', "'quoted'", '-1.5')
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


_MAX_ROWS_PER_BLOCK = 1 << 18  # some tens of MB
_BYTES_PER_CELL = 8  # of a column in memory


def parquet_blocks(path: Path, picked: Picked, whole: bool) -> Generator[Columns]:
    """Yield the columns with a role of a Parquet file, in blocks of rows.

    If `whole`, all blocks together must fit into the budget.
    """
    with parquet_errors():
        needed = picked.needed
        file = open_parquet(path, needed)
        max_rows = budget_in_use() // (len(needed) * _BYTES_PER_CELL)
        if whole and file.metadata.num_rows > max_rows:
            raise too_large("the file, to be read whole,", max_rows, "rows", file.metadata.num_rows)
        first_row, bytes_in_memory = 0, 0
        pool: dict[str, str] = {}  # one object for each text: a table repeats its labels
        for batch in bounded_batches(file, needed):
            cells = {name: _column_of_batch(batch, name) for name in needed}
            bytes_in_memory += sum(
                column.nbytes for column in cells.values() if not _is_text(column.type)
            )
            if whole and bytes_in_memory > budget_in_use():
                raise too_large("the columns, unpacked,", budget_in_use(), "bytes")
            yield picked.table(
                partial(_column_values, cells, pool),
                place=rows_from(first_row),
            )
            first_row += batch.num_rows


def sample_of_parquet(path: Path, sample: Callable[..., Sample]) -> Sample:
    """Return the first rows of a Parquet file; of columns with long cells only the names."""
    with parquet_errors():
        file = open_parquet(path)
        names = list(file.schema_arrow.names)
        group = _chunks(file.metadata.row_group(0)) if file.metadata.num_row_groups else []
        max_cell_bytes = 200  # on average
        long_columns = {
            chunk.path_in_schema.partition(".")[0]
            for chunk in group
            if chunk.total_uncompressed_size > max_cell_bytes * max(chunk.num_values, 1)
        }
        short_columns = [name for name in names if name not in long_columns]
        rows_at_once = 64  # as Python objects, repeated texts are in memory many times
        rows = (
            row
            for batch in bounded_batches(file, short_columns)
            for first in range(0, min(len(batch), MAX_SCANNED_ROWS + 1), rows_at_once)
            for row in batch.slice(first, rows_at_once).to_pylist()
        )
        scanned = sample(rows, known=names)
        cells = {name: cells for name, cells in scanned.cells.items() if name not in long_columns}
        return replace(scanned, cells=cells, fields=tuple(_types(file.schema_arrow)))


def records_of_parquet(path: Path, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, with those of the named columns that it has."""
    with parquet_errors():
        file = open_parquet(path)
        for batch in bounded_batches(
            file, [name for name in file.schema_arrow.names if name in names]
        ):
            yield from batch.to_pylist()


def columns_and_rows(path: Path) -> tuple[list[str], int]:
    """Return the names of the columns of a Parquet file, and its stated number of rows."""
    with parquet_errors():
        file = open_parquet(path)
        return list(file.schema_arrow.names), int(file.metadata.num_rows)


def open_parquet(path: Path, fields: Iterable[str] = ()) -> Any:
    """Return an opened Parquet file, with text columns and text `fields` as dictionaries.

    Columns with delta encoding cannot be read as dictionaries.
    """
    from pyarrow import parquet

    with open_regular_file(path):
        plain = parquet.ParquetFile(path, pre_buffer=False)
    types = _types(plain.schema_arrow)
    coded = {
        name
        for name in (*plain.schema_arrow.names, *fields)
        if name in types and _is_text(types[name])
    } - {
        chunk.path_in_schema
        for group in range(plain.metadata.num_row_groups)
        for chunk in _chunks(plain.metadata.row_group(group))
        if "DELTA_BYTE_ARRAY" in chunk.encodings
    }
    return parquet.ParquetFile(path, read_dictionary=list(coded), pre_buffer=False)


def _types(fields: Iterable[Any], within: str = "") -> dict[str, Any]:
    """Return the types of columns and of nested fields, by dotted path."""
    from pyarrow import types

    types_by_path = {}
    for field in fields:
        types_by_path[within + field.name] = field.type
        if types.is_struct(field.type) and "." not in field.name:
            types_by_path = _types(field.type, f"{within}{field.name}.") | types_by_path
    return types_by_path


def _is_text(kind: Any) -> bool:
    """Return whether a type of pyarrow is text or bytes, or a dictionary of these."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def _chunks(row_group: Any) -> list[Any]:
    """Return the metadata of the column chunks of a row group."""
    return [row_group.column(column) for column in range(row_group.num_columns)]


def bounded_batches(file: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield record batches of some columns, each within the budget."""
    from pyarrow import types

    if file.metadata.num_rows > budget_in_use():
        raise too_large("the file", budget_in_use(), "rows", file.metadata.num_rows)
    coded = {name for name, kind in _types(file.schema_arrow).items() if types.is_dictionary(kind)}
    within = tuple(f"{name}." for name in names)
    for group in range(file.metadata.num_row_groups):
        chunks = _chunks(file.metadata.row_group(group))
        chunks = [chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(within)]
        nested = [chunk.num_values for chunk in chunks if "." in chunk.path_in_schema]
        size = sum(
            max(0, chunk.total_uncompressed_size) for chunk in chunks
        ) + _BYTES_PER_CELL * sum(nested)
        if size > budget_in_use():
            raise too_large(f"row group {group}, unpacked,", budget_in_use(), "bytes", size)
        # One value without a dictionary may be as long as the whole chunk.
        long = any(
            chunk.path_in_schema not in coded
            and (chunk.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") or nested)
            for chunk in chunks
        )
        rows = (
            min(_MAX_ROWS_PER_BLOCK, max(1, budget_in_use() // (4 * size + 1)))
            if long
            else _MAX_ROWS_PER_BLOCK
        )
        yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=list(names))


@contextmanager
def parquet_errors() -> Iterator[None]:
    """Turn all errors of a broken Parquet file, and a missing pyarrow, into one message."""
    try:
        from pyarrow import ArrowException
    except ImportError:
        raise OutcomeError(
            "reading Parquet needs pyarrow. Install it: pip install 'bayesatk[parquet]'. Or "
            "convert the file to CSV."
        ) from None
    try:
        yield
    except OutcomeError:
        raise
    except (OSError, ValueError, ArrowException) as error:
        why = shown(" ".join(str(error).split()), 200)
        raise OutcomeError(
            f"the file must be Parquet; {why}. Write it again, or check its type."
        ) from None


def _column_of_batch(batch: Any, path: str) -> Any:
    """Return a column or nested field of a batch by its path; text as a dictionary array."""
    from pyarrow import compute

    cells = _field(batch.to_struct_array(), path)
    if not _is_text(cells.type):
        return cells
    cells = cells if hasattr(cells, "dictionary") else cells.dictionary_encode()
    longest = compute.max(compute.binary_length(cells.dictionary)).as_py() or 0
    if longest > max_value_size():
        raise too_large("a cell", max_value_size(), "bytes", longest)
    return cells


def _field(struct: Any, path: str) -> Any:
    """Return a nested field of an array of structs, null where a struct is null."""
    from pyarrow import compute

    index = struct.type.get_field_index(path)
    if index >= 0:
        return compute.struct_field(struct, [index])
    first, _, inner_path = path.partition(".")
    if not inner_path:
        raise ValueError(f"column {shown(path)} is in it more than once")
    return _field(_field(struct, first), inner_path)


def _column_values(columns: Mapping[str, Any], pool: dict[str, str], name: str, role: str) -> Any:
    """Return text labels as a Categorical, numbers as an array, other values as a list."""
    cells = columns[name]
    if not _is_text(cells.type):
        import narwhals as nw
        import pyarrow

        return long_tables.values_of(nw.from_native(pyarrow.table({role: cells}))[role], role)
    codes = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = [pool.setdefault(text, text) for text in cells.dictionary.to_pylist()]
    if role in ("system", "question", "trial"):
        return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object))
    return [None if code < 0 else texts[code] for code in codes.tolist()]
