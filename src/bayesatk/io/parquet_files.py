"""Parquet files, some rows at a time: what a file unpacks to is held to the budget.

Text is read as Parquet stores it, by a dictionary: a value that stands in every row is in memory
once. Of the columns of what was asked only digests are kept.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from bayesatk.data import tables
from bayesatk.data.columns import Columns, Picked
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.sources import largest, opened, too_large, total

ROWS = 1 << 18  # read at once: some tens of MB
_CELL = 8  # bytes of a cell that is kept


def parquet_blocks(path: Path, columns: Mapping[str, str], whole: bool) -> Generator[Columns]:
    """Yield the columns that matter of some rows after the other; the whole must fit at once."""
    with readable():
        file = open_parquet(path, columns.values())
        types = _types(file.schema_arrow)
        names = file.schema_arrow.names
        names += [name for name in columns.values() if name in types and name not in names]
        picked = Picked.of(names, columns)
        needed = picked.needed
        most = total() // (len(needed) * _CELL)
        if whole and file.metadata.num_rows > most:
            raise too_large("the file, to be read whole,", most, "rows", file.metadata.num_rows)
        first_row, held = 0, 0
        pool: dict[str, str] = {}  # one object for each text: a table repeats its labels
        for batch in batches(file, needed):
            cells = {name: _cells(batch, name) for name in needed}
            held += sum(column.nbytes for column in cells.values() if not _is_text(column.type))
            if whole and held > total():
                raise too_large("the columns, unpacked,", total(), "bytes")
            yield picked.table(
                partial(_values, cells, pool),
                numbers=range(first_row, first_row + batch.num_rows),
            )
            first_row += batch.num_rows


def records_of_parquet(path: Path, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, with the columns of these names that it has."""
    with readable():
        file = open_parquet(path)
        for batch in batches(file, [name for name in file.schema_arrow.names if name in names]):
            yield from batch.to_pylist()


def columns_and_rows(path: Path) -> tuple[list[str], int]:
    """Return the names of the columns of a file, and the number of rows that it says it has."""
    with readable():
        file = open_parquet(path)
        return list(file.schema_arrow.names), int(file.metadata.num_rows)


def open_parquet(path: Path, fields: Iterable[str] = ()) -> Any:
    """Return a file to read: its columns of text, and such fields within fields, as dictionaries.

    Those that are stored as differences cannot be read so.
    """
    from pyarrow import parquet

    with opened(path):
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
    """Return the types of columns, and of fields within fields by their dotted paths."""
    from pyarrow import types

    types_by_path = {}
    for field in fields:
        types_by_path[within + field.name] = field.type
        if types.is_struct(field.type) and "." not in field.name:
            types_by_path = _types(field.type, f"{within}{field.name}.") | types_by_path
    return types_by_path


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def _chunks(row_group: Any) -> list[Any]:
    return [row_group.column(column) for column in range(row_group.num_columns)]


def batches(file: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield record batches of some columns, each within the budget."""
    from pyarrow import types

    if file.metadata.num_rows > total():
        raise too_large("the file", total(), "rows", file.metadata.num_rows)
    coded = {name for name, kind in _types(file.schema_arrow).items() if types.is_dictionary(kind)}
    within = tuple(f"{name}." for name in names)
    for group in range(file.metadata.num_row_groups):
        chunks = _chunks(file.metadata.row_group(group))
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


def _cells(batch: Any, path: str) -> Any:
    """Return a column, or a field by its dotted path; text by its dictionary."""
    from pyarrow import compute

    cells = _field(batch.to_struct_array(), path)
    if not _is_text(cells.type):
        return cells
    cells = cells if hasattr(cells, "dictionary") else cells.dictionary_encode()
    longest = compute.max(compute.binary_length(cells.dictionary)).as_py() or 0
    if longest > largest():
        raise too_large("a cell", largest(), "bytes", longest)
    return cells


def _field(struct: Any, path: str) -> Any:
    """Return a field of an array of structs: null where it is within null."""
    from pyarrow import compute

    index = struct.type.get_field_index(path)
    if index >= 0:
        return compute.struct_field(struct, [index])
    first, _, inner_path = path.partition(".")
    if not inner_path:
        raise ValueError(f"column {shown(path)} is in it more than once")
    return _field(_field(struct, first), inner_path)


def _values(columns: Mapping[str, Any], pool: dict[str, str], name: str, role: str) -> Any:
    """Return labels as pandas codes them, numbers as an array, all else as a list."""
    cells = columns[name]
    if not _is_text(cells.type):
        import narwhals as nw
        import pyarrow

        return tables.values_of(nw.from_native(pyarrow.table({role: cells}))[role], role)
    codes = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = [pool.setdefault(text, text) for text in cells.dictionary.to_pylist()]
    if role in ("system", "question", "trial"):
        return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object))
    return [None if code < 0 else texts[code] for code in codes.tolist()]
