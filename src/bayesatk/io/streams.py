"""Tables of any size: some rows are read and counted, and then the next."""

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import Columns, one_row_a_trial
from bayesatk.data.counter import Counter
from bayesatk.data.long_form import LongForm
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io.delimited import delimited_parts
from bayesatk.io.folders import Folders
from bayesatk.io.parquet_files import ROWS, parquet_parts, rows_of
from bayesatk.io.readers import InputFiles, named
from bayesatk.io.run_checks import CORRECT_INCORRECT, is_correct_incorrect
from bayesatk.io.sources import Source
from bayesatk.io.table_files import Layout, Places, with_system

_KINDS = ("parquet", "csv", "tsv")
_LARGE = 1 << 28  # bytes of tables from which on they are counted in parts, unless told otherwise


def in_parts(inputs: InputFiles, layout: Layout, stream: object) -> bool:
    """Whether files are counted part by part: as told, else if they are large and can be."""
    if stream not in (None, True, False):
        raise OutcomeError(f"stream must be True, False or None; got {shown(stream)}.")
    read_whole = ("answer", "reference", "cost")
    read_at_once = [f"columns={{{role!r}: ...}}" for role in read_whole if role in layout.named]
    read_at_once += [f"{name}=" for name in ("records", "wide") if getattr(layout, name)]
    fit = not read_at_once and set(inputs.kinds) <= set(_KINDS)
    if stream and not fit:
        subject = read_at_once[0] if read_at_once else ", ".join(sorted(set(inputs.kinds)))
        raise OutcomeError(
            f"stream must be left out for {subject}; parts of {', '.join(_KINDS)} can be counted "
            "where there are outcomes. ", Argument("stream", False), " reads files whole.",
        )  # fmt: skip
    if stream is not None or not fit:
        return bool(stream)
    files_by_kind = zip(inputs.sources, inputs.kinds, strict=True)
    return bool(sum(named(source, _size, source, kind) for source, kind in files_by_kind) > _LARGE)


def _size(source: Source, kind: str) -> int:
    """Return the bytes of a file, or about those of the text of its rows: 32 each."""
    return 32 * rows_of(source.path) if kind == "parquet" else source.path.stat().st_size


def count_parts(
    inputs: InputFiles, columns: Mapping[str, str], scores: Scores | None, default: Scores
) -> tuple[LongForm, Scores]:
    """Return the counts of tables, and the scores by which they were read."""
    counter, folders = None, Folders()
    for source, kind in zip(inputs.sources, inputs.kinds, strict=True):
        with (
            inputs.opener.open(source) as file,
            closing(_parts(kind, file, source, columns, scores or default)) as blocks,
        ):
            while (block := named(source, next, blocks, None)) is not None:
                if not len(block.values["question"]):
                    continue
                if counter is None:
                    counter = Counter(scores or default)
                if scores is None and not counter.judged and is_correct_incorrect(block):
                    counter.scores = CORRECT_INCORRECT  # of two categories, like the default
                block = named(source, one_row_a_trial, block)
                placed = _placed(source, block, inputs)
                if len(inputs.sources) > 1:
                    named(source, folders.check, source, placed)
                named(source, counter.add, placed)
    if counter is None:
        raise OutcomeError("a table of outcomes must have rows; got none.")
    return counter.long_form(), counter.scores


def _parts(
    kind: str, file: BinaryIO, source: Source, columns: Mapping[str, str], scores: Scores
) -> Generator[Columns]:
    if kind == "parquet":
        return parquet_parts(source.path, columns)
    return delimited_parts(file, columns, scores, "," if kind == "csv" else "\t", ROWS)


def _placed(source: Source, block: Columns, inputs: InputFiles) -> Columns:
    """Return the part with a system column where files are systems, and rows with their file."""
    if len(inputs.sources) == 1 and source.system is None:
        return block
    block = with_system(source, block, inputs.sources)
    return replace(block, numbers=Places([source], [block]))
