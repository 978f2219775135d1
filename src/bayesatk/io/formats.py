"""Which format a file has, by its name and its beginning."""

from itertools import islice
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.sources import Opener, Source

TABLES = ("csv", "tsv", "jsonl", "json", "parquet")
LOGS = ("inspect", "lm-eval", "evalplus", "human-eval", "tau-bench", "tau2-bench")

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
    if found not in ("json", "jsonl"):
        return found
    with opener.open(source) as file:
        return _of_document(file) if found == "json" else _of_lines(file)


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
    """Tell lm-eval's samples and HumanEval's results from other records."""
    with decoded(file) as lines:
        for number, line in enumerate(islice(lines, 1000), start=1):
            if line.strip():
                record = parse(line, f"line {number}")
                keys = set(record) if isinstance(record, dict) else set()
                if {"doc_id", "resps"} <= keys:
                    return "lm-eval"
                return "human-eval" if {"task_id", "passed", "completion"} <= keys else "jsonl"
    return "jsonl"


def _of_document(file: BinaryIO) -> str:
    """Tell logs from arrays of records by the first parts of the document."""
    streamed = frozenset({"samples", "simulations", "eval", "tasks"})
    with decoded(file) as text:
        for key, _, value in members(text, streamed):
            if key == "":
                keys: set[Any] = set(value) if isinstance(value, dict) else set()
                traced = {"task_id", "reward"} <= keys and keys & {"traj", "info"}
                return "tau-bench" if traced else "json"
            if key == "eval":
                old = isinstance(value, dict) and isinstance(value.get("base"), list)
                return "evalplus" if old or isinstance(value, list) else "inspect"
            if key in ("simulations", "samples"):
                return "tau2-bench" if key == "simulations" else "inspect"
    return "json"
