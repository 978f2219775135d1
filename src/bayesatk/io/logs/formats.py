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
LOGS = ("inspect", "lm-eval", "evalplus", *(one.name for one in RECORD_LOGS))

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".eval": "inspect",
}  # fmt: skip
_ZIP = b"PK\x03\x04"


def detect(source: Source, opener: Opener, told: str | None) -> str:
    """Return the name of the format."""
    if told is not None:
        if told not in (*TABLES, *LOGS):
            raise OutcomeError(
                f"format must be one of {', '.join((*TABLES, *LOGS))}; got {shown(told)}."
            )
        return told
    suffix = source.path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise OutcomeError(
            f"the file type must be one of {', '.join(_SUFFIXES)}; got {suffix!r}. Say what it is "
            "with ", Argument("format", ...), f", one of {', '.join((*TABLES, *LOGS))}; or convert "
            "it, or pass the data itself to bayesatk.tally.",
        )  # fmt: skip
    found = _SUFFIXES[suffix]
    if found == "parquet":
        return _of_parquet(source.path)
    if found not in ("json", "jsonl"):
        return found
    with opener.open(source) as file:
        return _of_document(file) if found == "json" else _of_lines(file)


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
    if any(one.summary for one in RECORD_LOGS if one.name == kind):
        return SUMMARY
    whole = next((one.part_of for one in RECORD_LOGS if one.name == kind and one.part_of), "")
    if whole and _repeated_above(path, named, whole):
        return SUMMARY
    return kind if kind in LOGS else TABLE


def _repeated_above(path: Path, named: Path, whole: str) -> bool:
    """Whether a file of this name in a folder above, not above the named, holds the trial too."""
    above = (folder / path.name for folder in path.parents[1:4] if folder.is_relative_to(named))
    return any(file.is_file() and kind_in_folder(file, named) == whole for file in above)


def sniff(start: bytes) -> str:
    """Return the format of a stream without a name, from its first bytes.

    Examples
    --------
    >>> sniff(b"task,passed"), sniff(b'{"task": 1}'), sniff(b"[{}]")
    ('.csv', '.jsonl', '.json')
    """
    if start.startswith(_ZIP):
        return ".eval"
    if start.startswith(b"PAR1"):
        return ".parquet"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    if text.startswith(b"{"):
        first, _, rest = text.partition(b"\n")
        document = any(key in text[:2000] for key in (b'"eval"', b'"simulations"', b'"samples"'))
        lines = first.rstrip().endswith(b"}") and not (document and not rest.strip())
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
                return _named([one for one in RECORD_LOGS if one.form == "lines"], record, "jsonl")
    return "jsonl"


def _of_document(file: BinaryIO) -> str:
    """Tell logs from arrays of records by the first parts of the document."""
    documents = [one for one in RECORD_LOGS if one.form == "document"]
    arrays = [one for one in documents if not one.records and not one.summary]
    whole = [one for one in documents if one not in arrays]
    streamed = frozenset(
        {"samples", "eval", "tasks", *(one.records.split(".")[0] for one in whole)}
    )
    seen: dict[str, Any] = {}
    with decoded(file) as text:
        for key, place, value in members(text, streamed):
            if key == "":
                return _named(arrays, value, "json")
            if key == "eval":
                old = isinstance(value, dict) and isinstance(value.get("base"), list)
                return "evalplus" if old or isinstance(value, list) else "inspect"
            if key == "samples":
                return "inspect"
            if isinstance(place, str):
                seen.setdefault(key, {})[place] = value
            else:
                seen.setdefault(key, value)
            found = _named(whole, seen, "")
            if found:
                return found
    return "json"


def _of_parquet(path: Path) -> str:
    """Tell logs from tables by the names of the columns."""
    with readable():
        names = dict.fromkeys(open_parquet(path)[0].schema_arrow.names)
    return _named([one for one in RECORD_LOGS if one.form == "parquet"], names, "parquet")


def _named(candidates: Iterable[RecordLog], fields: object, otherwise: str) -> str:
    """Return the format that recognises the fields."""
    return next((one.name for one in candidates if one.recognises(fields)), otherwise)
