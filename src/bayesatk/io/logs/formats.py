"""Which format a file has, by its name and its beginning."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.logs import agent_logs, benchmark_logs
from bayesatk.io.logs.record_logs import RecordLog
from bayesatk.io.parquet_files import open_parquet, readable
from bayesatk.io.sources import SUMMARY, TABLE, Opener, Source, is_pointer

TABLES = ("csv", "tsv", "jsonl", "json", "parquet")
RECORD_LOGS = (*agent_logs.FORMATS, *benchmark_logs.FORMATS)
LOGS = ("inspect", "lm-eval", "evalplus", *(record_log.name for record_log in RECORD_LOGS))

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".eval": "inspect",
}  # fmt: skip


def detect(source: Source, opener: Opener, format_name: str | None) -> str:
    """Return the name of the format."""
    if format_name is not None:
        if format_name not in (*TABLES, *LOGS):
            raise OutcomeError(
                f"format must be one of {', '.join((*TABLES, *LOGS))}; got {shown(format_name)}."
            )
        return format_name
    suffix = source.path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise OutcomeError(
            f"the file type must be one of {', '.join(_SUFFIXES)}; got {suffix!r}. Say what it is "
            "with ", Argument("format", ...), f", one of {', '.join((*TABLES, *LOGS))}; or convert "
            "it, or pass the data itself to bayesatk.tally.",
        )  # fmt: skip
    suffix_format = _SUFFIXES[suffix]
    if suffix_format == "parquet":
        return _of_parquet(source.path)
    if suffix_format not in ("json", "jsonl"):
        return suffix_format
    with opener.open(source) as file:
        return _of_document(file) if suffix_format == "json" else _of_lines(file)


def kind_in_folder(path: Path, named: Path) -> str:
    """Return the format of a log in or below the folder that is named.

    `TABLE` for a table; `SUMMARY` for what other files in it say as well; else nothing.
    """
    if not path.exists():  # a link
        raise FileNotFoundError(
            f"{path}: the log is a link to a file that is not there. Fetch it (git annex get)."
        )
    if is_pointer(path):
        return ""
    source = Source(path, None, "")
    try:
        kind = detect(source, Opener([source], False), None)
    except (OutcomeError, UnicodeDecodeError, OSError):
        return ""
    if any(record_log.summary for record_log in RECORD_LOGS if record_log.name == kind):
        return SUMMARY
    whole_format = next(
        (
            record_log.part_of
            for record_log in RECORD_LOGS
            if record_log.name == kind and record_log.part_of
        ),
        "",
    )
    if whole_format and _repeated_above(path, named, whole_format):
        return SUMMARY
    return kind if kind in LOGS else TABLE


def _repeated_above(path: Path, named: Path, whole_format: str) -> bool:
    """Whether a file of this name in a folder above, not above the named, holds the trial too."""
    above = (folder / path.name for folder in path.parents[1:4] if folder.is_relative_to(named))
    return any(file.is_file() and kind_in_folder(file, named) == whole_format for file in above)


def sniff(start: bytes) -> str:
    """Return the format of a stream without a name, from its first bytes.

    Examples
    --------
    >>> sniff(b"task,passed"), sniff(b'{"task": 1}'), sniff(b"[{}]")
    ('.csv', '.jsonl', '.json')
    """
    if start.startswith(b"PK\x03\x04"):  # a zip archive
        return ".eval"
    if start.startswith(b"PAR1"):
        return ".parquet"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    if text.startswith(b"{"):
        first, _, later_lines = text.partition(b"\n")
        document = any(key in text[:2000] for key in (b'"eval"', b'"simulations"', b'"samples"'))
        lines = first.rstrip().endswith(b"}") and not (document and not later_lines.strip())
        return ".jsonl" if lines else ".json"
    return ".tsv" if b"\t" in text.partition(b"\n")[0] else ".csv"


def _of_lines(file: BinaryIO) -> str:
    """Tell logs by their first record from other records."""
    with decoded(file) as lines:
        for number, line in enumerate(islice(lines, 1000), start=1):
            if line.strip():
                record = parse(line, f"line {number}")
                keys = set(record) if isinstance(record, dict) else set()
                if {"doc_id", "resps"} <= keys:
                    return "lm-eval"
                return _named(
                    [record_log for record_log in RECORD_LOGS if record_log.form == "lines"],
                    record,
                    "jsonl",
                )
    return "jsonl"


def _of_document(file: BinaryIO) -> str:
    """Tell logs from arrays of records by the first parts of the document."""
    documents = [record_log for record_log in RECORD_LOGS if record_log.form == "document"]
    arrays = [
        record_log for record_log in documents if not record_log.records and not record_log.summary
    ]
    streamed_formats = [record_log for record_log in documents if record_log not in arrays]
    streamed = frozenset(
        {
            "samples",
            "eval",
            "tasks",
            *(record_log.records.split(".")[0] for record_log in streamed_formats),
        }
    )
    seen: dict[str, Any] = {}
    with decoded(file) as text:
        for key, position, value in members(text, streamed):
            if key == "":
                return _named(arrays, value, "json")
            if key == "eval":
                old = isinstance(value, dict) and isinstance(value.get("base"), list)
                return "evalplus" if old or isinstance(value, list) else "inspect"
            if key == "samples":
                return "inspect"
            if isinstance(position, str):
                seen.setdefault(key, {})[position] = value
            else:
                seen.setdefault(key, value)
            format_name = _named(streamed_formats, seen, "")
            if format_name:
                return format_name
    return "json"


def _of_parquet(path: Path) -> str:
    """Tell logs from tables by the names of the columns."""
    with readable():
        names = dict.fromkeys(open_parquet(path)[0].schema_arrow.names)
    return _named(
        [record_log for record_log in RECORD_LOGS if record_log.form == "parquet"], names, "parquet"
    )


def _named(candidates: Iterable[RecordLog], fields: object, otherwise: str) -> str:
    """Return the format that recognises the fields."""
    return next(
        (record_log.name for record_log in candidates if record_log.recognises(fields)), otherwise
    )
