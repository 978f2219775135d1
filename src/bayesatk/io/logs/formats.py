"""Detect the format of a file by its name and its first records."""

import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument, one_of, source_of
from bayesatk.data.validation import OutcomeError
from bayesatk.io.json_stream import decoded, members, parsed_lines
from bayesatk.io.logs import agent_logs, benchmark_logs
from bayesatk.io.logs.inspect_logs import INSPECT
from bayesatk.io.logs.record_logs import RecordLog
from bayesatk.io.record_tables import columns_and_rows
from bayesatk.io.sources import (
    COMPRESSED,
    SUFFIXES,
    SUMMARY,
    TABLE,
    Source,
    is_pointer,
    open_source,
)

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor
else:
    from backports.zstd import ZstdDecompressor

TABLES = ("csv", "tsv", "jsonl", "json", "parquet")
LOGS: dict[str, RecordLog] = {
    log.name: log for log in (*benchmark_logs.FORMATS, *agent_logs.FORMATS, INSPECT)
}


def detect(source: Source, format_name: str | None = None) -> str:
    """Return the name of the format of a file."""
    names = (*TABLES, *LOGS)
    if format_name is not None:
        return one_of("format", format_name, names, OutcomeError)
    suffix = source.plain.suffix.lower()
    compressed, ending = source.plain != source.path, "".join(source.path.suffixes[-2:])[-40:]
    if suffix in (".xlsx", ".xls", ".xlsm", ".ods", ".numbers"):
        raise OutcomeError(
            f"a spreadsheet must be saved as CSV first; got {ending!r}. Save the sheet with the "
            "marks as .csv, with one row of names of columns above them."
        )
    if suffix == ".nc":
        raise OutcomeError(
            "a saved result must be read by bayesatk.load_result; it holds no outcomes to load. "
            "Its page, by Python: bayesatk.report(bayesatk.load_result("
            f"{source_of(str(source.path), 4096)}), 'report.html')."
        )
    if suffix not in SUFFIXES or (compressed and suffix in (".parquet", ".eval")):
        raise OutcomeError(
            f"the file type must be one of {', '.join(SUFFIXES)}, or text of these compressed "
            f"({', '.join(COMPRESSED)}); got {ending!r}. Say what it is with ",
            Argument("format", ...),
            ", such as jsonl or lm-eval; or convert it, or pass the data itself to bayesatk.tally.",
        )
    kind = SUFFIXES[suffix]
    if kind == "parquet":
        columns, _ = columns_and_rows(source.path)
        return _recognised(dict.fromkeys(columns), _formats_with("parquet")) or kind
    if kind not in ("json", "jsonl"):
        return kind
    with open_source(source) as file:
        return (_format_of_document(file) if kind == "json" else _format_of_lines(file)) or kind


def kind_in_folder(path: Path, named: Path) -> str:
    """Return the format of a log in or below a named folder.

    Return `TABLE` for a table, `SUMMARY` for a file whose trials are in other files too, and ""
    for any other file.
    """
    if not path.exists():  # a broken link
        raise FileNotFoundError(
            f"{path}: the log is a link to a file that is not there. Fetch it (git annex get)."
        )
    if is_pointer(path):
        return ""
    try:
        kind = detect(Source(path, None, ""))
    except (OutcomeError, UnicodeDecodeError, OSError):
        return ""
    if kind not in LOGS:
        return TABLE
    # A file of this name in a folder above, within the named folder, may repeat the trials.
    above = (folder / path.name for folder in path.parents[1:4] if folder.is_relative_to(named))
    repeated = LOGS[kind].part_of and any(
        file.is_file() and kind_in_folder(file, named) == LOGS[kind].part_of for file in above
    )
    return SUMMARY if LOGS[kind].summary or repeated else kind


def sniff(start: bytes) -> str:
    """Return the suffix for a stream without a name, from its first bytes.

    Examples
    --------
    >>> sniff(b"task,passed"), sniff(b'{"task": 1}'), sniff(b"[{}]")
    ('.csv', '.jsonl', '.json')
    """
    if start.startswith(b"PK\x03\x04"):  # a zip archive
        return ".eval"
    if start.startswith(b"PAR1"):
        return ".parquet"
    if start.startswith(b"\x1f\x8b"):
        return sniff(zlib.decompressobj(31).decompress(start, 1 << 16)) + ".gz"
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return sniff(ZstdDecompressor().decompress(start, 1 << 16)) + ".zst"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    if text.startswith(b"{"):
        first, _, later_lines = text.partition(b"\n")
        document = any(key in text[:2000] for key in (b'"eval"', b'"simulations"', b'"samples"'))
        lines = first.rstrip().endswith(b"}") and not (document and not later_lines.strip())
        return ".jsonl" if lines else ".json"
    return ".tsv" if b"\t" in text.partition(b"\n")[0] else ".csv"


def _format_of_lines(file: BinaryIO) -> str:
    """Return the format of a log by its first line; "" for a table."""
    first = next(parsed_lines(file, 1000), None)
    return _recognised(first[1], _formats_with("lines", "records")) if first else ""


def _format_of_document(file: BinaryIO) -> str:
    """Return the format of a log by the first parts of a JSON document; "" for a table."""
    of_documents, of_records = _formats_with("document"), _formats_with("records")
    arrays = [log for log in of_documents if not log.records and not log.summary]
    objects = [log for log in of_documents if log not in arrays]
    array_names = {name for log in of_records for name in log.records.split("|")}
    streamed = array_names.union({"tasks"}, (log.records.split(".")[0] for log in objects))
    seen: dict[str, Any] = {}
    with decoded(file) as text:
        for key, position, value in members(text, frozenset(streamed)):
            if key == "":
                return _recognised(value, [*arrays, *of_records])
            if isinstance(position, str):
                seen.setdefault(key, {})[position] = value
            else:
                seen.setdefault(key, value)
            name = _recognised(seen, objects)
            if not name and key in array_names and position == 0:
                named_so = [log for log in of_records if key in log.records.split("|")]
                name = _recognised(value, named_so)
            if name:
                return name
    return ""


def _formats_with(*forms: str) -> list[RecordLog]:
    """Return the formats of logs whose records have one of these forms."""
    return [log for log in LOGS.values() if log.form in forms]


def _recognised(fields: object, logs: Iterable[RecordLog]) -> str:
    """Return the name of the first format that recognises the fields; "" if none does."""
    return next((log.name for log in logs if log.recognises(fields)), "")
