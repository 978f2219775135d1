"""`load`: outcomes from long tables in CSV, JSON Lines and Parquet files."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesatk import outcomes, tables
from bayesatk.answers import AnswerRules, check_rules
from bayesatk.io.delimited import read_delimited
from bayesatk.outcomes import MissingPolicy, Outcomes, tally
from bayesatk.tables import Columns, count_rows, find_columns
from bayesatk.validation import OutcomeError, Scores, shown

_READ_ERRORS = (ValueError, RecursionError)  # json's own, bytes that are no text, endless digits


def load(
    source: object,
    *,
    systems: Sequence[object] | None = None,
    questions: Sequence[object] | None = None,
    scores: Mapping[Any, float] | None = None,
    missing: MissingPolicy = "error",
    columns: Mapping[str, str] | None = None,
    answer_rules: AnswerRules | None = None,
) -> Outcomes:
    r"""Read outcomes from a file, or from anything `bayesatk.tally` accepts.

    Parameters
    ----------
    source : path or data
        ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson``, ``.json`` (an array of records) or
        ``.parquet``: a long table, one row per trial, with a header or keys. Labels are kept as
        they are written ("007" stays text). Other objects go to `bayesatk.tally`.
    systems, questions, scores, missing, columns, answer_rules
        As in `bayesatk.tally`. In CSV a blank cell or NaN is a missing outcome; a cell is
        an outcome if its text is one of `scores`, or is exactly one of its numbers, or true/false.

    Returns
    -------
    Outcomes

    Raises
    ------
    OutcomeError
        If the file is not such a table; the message names file, row, rule and remedy.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("task,trial,passed\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    >>> load(path).successes.values.tolist()
    [[1, 2]]
    """
    options: dict[str, Any] = {"systems": systems, "questions": questions, "missing": missing}
    if not isinstance(source, str | os.PathLike):
        return tally(source, scores=scores, columns=columns, answer_rules=answer_rules, **options)
    path = Path(source)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise OutcomeError(
            f"{path.name}: the file type must be one of {', '.join(_READERS)}; got "
            f"{path.suffix!r}. Convert it, or pass the data itself to bayesatk.tally."
        )
    try:
        folder, there = path.is_dir(), path.exists()
    except OSError as error:
        raise OutcomeError(f"source must be a path; {error.strerror}. Check it.") from None
    if folder:
        raise OutcomeError(f"{path.name}: this must be a file; it is a folder. Name a file in it.")
    if not there:
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        scale = outcomes.check_options(scores, missing)
        table = reader(path, columns or {}, scale)
        return outcomes.finish(
            count_rows(table, scale, check_rules(answer_rules)), scale, **options
        )
    except OutcomeError as error:
        raise OutcomeError(f"{path.name}: {error}") from None


def _read_csv(path: Path, columns: Mapping[str, str], scores: Scores) -> Columns:
    return read_delimited(path, columns, scores, ",")


def _read_tsv(path: Path, columns: Mapping[str, str], scores: Scores) -> Columns:
    return read_delimited(path, columns, scores, "\t")


class _Records:
    """Records on the way in: the first decides which fields matter, the others must agree."""

    def __init__(self, word: str, columns: Mapping[str, str]) -> None:
        self.word, self.columns = word, columns
        self.roles: dict[str, str] = {}
        self.values: dict[str, list[object]] = {}
        self.numbers: list[int] = []
        self.checked: set[tuple[str, ...]] = set()

    def add(self, record: object, number: int) -> None:
        """Append the fields that matter of one record."""
        where = f"{self.word} {number}"
        if not isinstance(record, dict):
            raise OutcomeError(f"{where} must be an object with named fields; got {shown(record)}.")
        fields = tuple(record)
        if fields not in self.checked:
            self._check(fields, where)
            self.checked.add(fields)
        self.numbers.append(number)
        for role, name in self.roles.items():
            self.values[role].append(record[name])

    def _check(self, fields: tuple[str, ...], where: str) -> None:
        if not self.roles:
            self.roles = find_columns(fields, self.columns)
            self.values = {role: [] for role in self.roles}
        for name in self.roles.values():
            if name not in fields:
                raise OutcomeError(
                    f"{where} has no field {name!r}, which the first record has. A missing outcome "
                    "is null."
                )
        try:
            roles = find_columns(fields, self.columns)
        except OutcomeError as error:
            raise OutcomeError(f"{where}: {error}") from None
        if roles != self.roles:
            new = [name for role, name in roles.items() if self.roles.get(role) != name]
            raise OutcomeError(
                f"{where} has the field {new[0]!r}, which the first record lacks. Give it to every "
                "record, or rename it."
            )

    def table(self) -> Columns:
        """Return the columns."""
        if not self.numbers:
            raise OutcomeError("the file must hold records; got none.")
        return Columns(self.roles, self.values, self.word, self.numbers)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object; a key written twice would silently lose one value."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise OutcomeError(f"the field {twice!r} occurs twice in one object. Remove one.")
    return record


def _parse(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except OutcomeError as error:
        raise OutcomeError(f"{where}: {error}") from None
    except _READ_ERRORS as error:
        raise OutcomeError(f"{where} must be JSON; {error}. Check how it was written.") from None


def _not_utf8(error: UnicodeDecodeError) -> OutcomeError:
    return OutcomeError(f"the file must be UTF-8 text; {error}. Save it as UTF-8.")


def _read_json_lines(path: Path, columns: Mapping[str, str], scores: Scores) -> Columns:
    records = _Records("line", columns)
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    records.add(_parse(line, f"line {number}"), number)
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from None
    return records.table()


def _read_json(path: Path, columns: Mapping[str, str], scores: Scores) -> Columns:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from None
    found = _parse(text, "the file")
    if not isinstance(found, list):
        raise OutcomeError(
            f"the file must hold an array of records; got {type(found).__name__}. One record is "
            '{"question": ..., "trial": ..., "outcome": ...}.'
        )
    records = _Records("record", columns)
    for number, record in enumerate(found):
        records.add(record, number)
    return records.table()


def _read_parquet(path: Path, columns: Mapping[str, str], scores: Scores) -> Columns:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise OutcomeError(
            "reading Parquet needs pyarrow. Install it: pip install 'bayesatk[parquet]'. Or "
            "convert the file to CSV."
        ) from None
    try:
        roles = find_columns(parquet.read_schema(path).names, columns)
        frame = parquet.ParquetFile(path).read(columns=list(roles.values()))
    except OutcomeError:
        raise
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise OutcomeError(
            f"the file must be Parquet; {error}. Write it again, or check its type."
        ) from None
    return tables.read_table(frame, roles)


_READERS: dict[str, Callable[[Path, Mapping[str, str], Scores], Columns]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
