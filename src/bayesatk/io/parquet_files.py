"""Parquet files, some rows at a time: what a file unpacks to is held to the budget.

Text is read as Parquet stores it, by a dictionary: a value that stands in every row is in memory
once. Of the columns of what was asked only digests are kept.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesatk.data import tables
from bayesatk.data.columns import Columns, pick_columns
from bayesatk.data.content import Contents
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.budget import largest, opened, too_large, total

ROWS = 1 << 18  # read at once: some tens of MB
_CELL = 8  # bytes of a cell that is kept


def read_parquet(path: Path, columns: Mapping[str, str]) -> Columns:
    """Read the columns that matter of a long table."""
    with readable():
        table = _Table(path, columns)
        rows, most = table.file.metadata.num_rows, total() // (len(table.needed) * _CELL)
        if rows > most:
            raise too_large("the file, to be read whole,", most, "rows", rows)
        return table.gathered(batches(table.file, table.needed))


def parquet_parts(path: Path, columns: Mapping[str, str]) -> Generator[Columns]:
    """Yield the columns that matter of some rows after the other."""
    with readable():
        table, start = _Table(path, columns), 0
        for batch in batches(table.file, table.needed):
            block = table.gathered([batch])
            yield replace(block, numbers=range(start, start + batch.num_rows))
            start += batch.num_rows


def rows_of(path: Path) -> int:
    """Return the number of rows that a file says it has."""
    with readable():
        return int(open_parquet(path)[0].metadata.num_rows)


class _Table:
    """A file, and which of its columns matter for what."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        self.file, text = open_parquet(path, columns.values())
        names = self.file.schema_arrow.names
        field_types = _fields(self.file.schema_arrow)
        names += [name for name in columns.values() if name in field_types and name not in names]
        self.roles, self.asked, self.others = pick_columns(names, columns)
        self.needed = list(dict.fromkeys([*self.roles.values(), *self.asked]))
        self.texts = {name: Texts() for name in self.needed if name in text}

    def gathered(self, parts: Iterable[Any]) -> Columns:
        """Return the columns of record batches."""
        columns_by_name: dict[str, _Coded | _Other] = {
            name: _Coded(self.texts[name]) if name in self.texts else _Other()
            for name in dict.fromkeys([*self.roles.values(), *self.texts])
        }
        digests = Contents(name for name in self.asked if name not in self.texts)
        for batch in parts:
            rows = batch.to_struct_array()
            for name, column in columns_by_name.items():
                column.add(_field(rows, name))
            for name in digests.digests:
                for value in _field(rows, name).to_pylist():
                    digests.add(name, value)
        coded = {
            name: columns_by_name[name].digests(name) for name in self.asked if name in self.texts
        }
        values = {role: columns_by_name[name].values(role) for role, name in self.roles.items()}
        content = digests.digests | coded
        return Columns(self.roles, values, content=content, others=self.others)


def open_parquet(path: Path, field_names: Iterable[str] = ()) -> tuple[Any, set[str]]:
    """Return a file to read, and the names of its columns of text, and of such fields asked for."""
    from pyarrow import parquet

    with opened(path):
        plain = parquet.ParquetFile(path, pre_buffer=False)
    names = {*plain.schema_arrow.names, *field_names}
    fields = _fields(plain.schema_arrow).items()
    text = {name for name, kind in fields if name in names and _is_text(kind)}
    as_stored = text - {
        chunk.path_in_schema
        for chunk in _chunks(plain.metadata)
        if "DELTA_BYTE_ARRAY" in chunk.encodings  # which pyarrow cannot read by a dictionary
    }
    return parquet.ParquetFile(path, read_dictionary=list(as_stored), pre_buffer=False), text


def _fields(fields: Iterable[Any], within: str = "") -> dict[str, Any]:
    """Return the types of columns, and of fields within fields by their dotted paths."""
    from pyarrow import types

    types_by_path = {}
    for field in fields:
        types_by_path[within + field.name] = field.type
        if types.is_struct(field.type) and "." not in field.name:
            types_by_path = _fields(field.type, f"{within}{field.name}.") | types_by_path
    return types_by_path


def _field(struct: Any, path: str) -> Any:
    """Return a field of an array of structs by its dotted path: null where it is within null."""
    from pyarrow import compute

    index = struct.type.get_field_index(path)
    if index >= 0:
        return compute.struct_field(struct, [index])
    first, _, inner_path = path.partition(".")
    if not inner_path:
        raise ValueError(f"column {shown(path)} is in it more than once")
    return _field(_field(struct, first), inner_path)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(
        (types.is_string(kind), types.is_large_string(kind), types.is_binary(kind),
         types.is_large_binary(kind))
    )  # fmt: skip


def _chunks(metadata: Any) -> Iterator[Any]:
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        yield from map(group.column, range(group.num_columns))


def batches(file: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield record batches of some columns, each within the budget."""
    from pyarrow import types

    if file.metadata.num_rows > total():
        raise too_large("the file", total(), "rows", file.metadata.num_rows)
    fields = _fields(file.schema_arrow)
    coded = {name for name, kind in fields.items() if types.is_dictionary(kind)}
    within = tuple(f"{name}." for name in names)
    for group in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(group)
        chunks = [row_group.column(i) for i in range(row_group.num_columns)]
        chunks = [chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(within)]
        nested = [chunk.num_values for chunk in chunks if "." in chunk.path_in_schema]
        size = sum(max(0, chunk.total_uncompressed_size) for chunk in chunks) + _CELL * sum(nested)
        if size > total():
            raise too_large(f"row group {group}, unpacked,", total(), "bytes", size)
        # A value that is not in memory once may be as long as all of them are in the file.
        long = any(
            chunk.path_in_schema not in coded
            and (chunk.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") or nested)
            for chunk in chunks
        )
        rows = min(ROWS, max(1, total() // (4 * size + 1))) if long else ROWS
        yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=list(names))


@contextmanager
def readable() -> Iterator[None]:
    """Turn every way in which a Parquet file can be broken into one message."""
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


class Texts:
    """Codes of text columns that come in parts, each part with a dictionary of its own."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self._known: dict[str | None, int] = {}
        self._last: tuple[Any, Any] = (None, None)

    def codes(self, cells: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the code of every cell; -1 where there is none."""
        cells = cells if hasattr(cells, "dictionary") else cells.dictionary_encode()
        dictionary = cells.dictionary
        if self._last[0] is None or not dictionary.equals(self._last[0]):
            self._last = dictionary, self._coded(dictionary)
        indices = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(self._last[1][indices], np.int64)

    def _coded(self, dictionary: Any) -> Any:
        from pyarrow import compute

        longest = compute.max(compute.binary_length(dictionary)).as_py() or 0
        if longest > largest():
            raise too_large("a cell", largest(), "bytes", longest)
        for text in dictionary.to_pylist():
            if text not in self._known:
                self._known[text] = -1 if text is None else len(self.texts)
                self.texts += [] if text is None else [text]
        return np.array([*map(self._known.get, dictionary.to_pylist()), -1], np.int64)


class _Coded:
    """A column of text."""

    def __init__(self, texts: Texts) -> None:
        self._texts, self._codes = texts, [np.zeros(0, np.int32)]

    def add(self, cells: Any) -> None:
        self._codes.append(self._texts.codes(cells).astype(np.int32))

    def values(self, role: str) -> Any:
        """Return labels coded by pandas; outcomes and answers as a list."""
        codes, texts = np.concatenate(self._codes), self._texts.texts
        if role in ("system", "question", "trial"):
            return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object))
        text_by_code = [*texts, None]
        return [text_by_code[code] for code in codes.tolist()]

    def digests(self, name: str) -> list[int]:
        """Return the digest of every cell."""
        text_by_code, contents = [*self._texts.texts, None], Contents([name])
        codes, code_index = np.unique(np.concatenate(self._codes), return_inverse=True)
        for code in codes.tolist():
            contents.add(name, text_by_code[code])
        return list(np.array(contents.digests[name], np.int64)[code_index].tolist())


class _Other:
    """A column of numbers, or of anything but text."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._size = 0

    def digests(self, name: str) -> list[int]:
        """Never asked for: these are worked out as the cells come in."""
        raise NotImplementedError(name)

    def add(self, cells: Any) -> None:
        self._size += cells.nbytes
        if self._size > total():
            raise too_large("a column, unpacked,", total(), "bytes")
        self._parts.append(cells)

    def values(self, role: str) -> Any:
        """Return an array of numbers, or a list."""
        import narwhals as nw
        import pyarrow

        table = pyarrow.table({"column": pyarrow.chunked_array(self._parts)})
        return tables.values_of(nw.from_native(table)["column"], role)
