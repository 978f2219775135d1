"""`load`: outcomes from long tables in CSV, JSON Lines and Parquet files."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bayesatk.encoding import OutcomeError
from bayesatk.outcomes import MissingPolicy, Outcomes, tally
from bayesatk.tables import find_columns

_BOOLEANS = {"true": True, "false": False}


def load(
    source: object,
    *,
    systems: Sequence[object] | None = None,
    questions: Sequence[object] | None = None,
    scores: Mapping[Any, float] | None = None,
    missing: MissingPolicy = "error",
    columns: Mapping[str, str] | None = None,
) -> Outcomes:
    r"""Read outcomes from a file, or from anything `bayesatk.tally` accepts.

    Parameters
    ----------
    source : path or data
        ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson``, ``.json`` (an array of records) or
        ``.parquet``: a long table, one row per trial, with a header or keys. Labels are kept as
        they are written ("007" stays text). Other objects go to `bayesatk.tally`.
    systems, questions, scores, missing, columns
        As in `bayesatk.tally`. In CSV an empty cell is a missing outcome, and numbers and
        true/false are read as such.

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
    if not isinstance(source, str | Path):
        return tally(
            source, systems=systems, questions=questions, scores=scores, missing=missing,
            columns=columns,
        )  # fmt: skip
    path = Path(source)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise OutcomeError(
            f"{path.name}: the file type must be one of {', '.join(_READERS)}; got "
            f"{path.suffix!r}. Convert it, or pass the data itself to bayesatk.tally."
        )
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        frame = reader(path, columns or {})
        return tally(
            frame, systems=systems, questions=questions, scores=scores, missing=missing,
            columns=columns,
        )  # fmt: skip
    except OutcomeError as error:
        raise OutcomeError(f"{path.name}: {error}") from None


def _read_delimited(path: Path, columns: Mapping[str, str], separator: str) -> pd.DataFrame:
    try:
        names = list(pd.read_csv(path, sep=separator, nrows=0, dtype=str, encoding="utf-8").columns)
        roles = find_columns(names, columns)
        frame = pd.read_csv(
            path, sep=separator, usecols=list(roles.values()), dtype=str, keep_default_na=False,
            encoding="utf-8",
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise OutcomeError(
            f"the file must be UTF-8 delimited text with a header; {error}"
        ) from None
    for role in ("system", "question", "trial"):
        if role in roles:
            blank = frame[roles[role]] == ""
            if blank.any():
                raise OutcomeError(
                    f"row {int(blank.to_numpy().argmax()) + 2} has no {role} in column "
                    f"{roles[role]!r}; every row needs one. Fill it in, or remove the row."
                )
    cells = {text: _from_text(text) for text in frame[roles["outcome"]].unique()}
    values = [cells[text] for text in frame[roles["outcome"]]]
    frame[roles["outcome"]] = pd.Series(values, dtype=object, index=frame.index)
    return frame


def _from_text(text: str) -> object:
    """Return what a CSV cell says: a number, a boolean, nothing, or itself."""
    stripped = text.strip()
    if not stripped:
        return None
    if stripped.lower() in _BOOLEANS:
        return _BOOLEANS[stripped.lower()]
    try:
        number = float(stripped)
    except ValueError:
        return stripped
    return None if number != number else number


def _read_csv(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    return _read_delimited(path, columns, ",")


def _read_tsv(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    return _read_delimited(path, columns, "\t")


def _read_json_lines(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    kept: dict[str, list[object]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                raise OutcomeError(f"line {number} must be JSON; {error}") from None
            _keep(record, f"line {number}", kept, columns)
    return _object_frame(kept)


def _read_json(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise OutcomeError(f"the file must be JSON; {error}") from None
    if not isinstance(records, list):
        raise OutcomeError(
            f"the file must hold an array of records; got {type(records).__name__}. One record is "
            '{"question": ..., "trial": ..., "outcome": ...}.'
        )
    kept: dict[str, list[object]] = {}
    for number, record in enumerate(records):
        _keep(record, f"record {number}", kept, columns)
    return _object_frame(kept)


def _keep(
    record: object, where: str, kept: dict[str, list[object]], columns: Mapping[str, str]
) -> None:
    """Append the needed fields of one record; the first record decides which they are."""
    if not isinstance(record, dict):
        raise OutcomeError(f"{where} must be an object with named fields; got {record!r:.60}.")
    if not kept:
        kept.update({name: [] for name in find_columns(list(record), columns).values()})
    for name, values in kept.items():
        if name not in record:
            raise OutcomeError(
                f"{where} has no field {name!r}, which the first record has. A missing outcome is "
                "null."
            )
        values.append(record[name])


def _object_frame(kept: Mapping[str, list[object]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in kept.items()})


def _read_parquet(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise OutcomeError(
            "reading Parquet needs pyarrow. Install it: pip install 'bayesatk[parquet]'."
        ) from None
    try:
        schema = parquet.read_schema(path)
        roles = find_columns(schema.names, columns)
        return pd.read_parquet(path, columns=list(roles.values()))
    except (OSError, ValueError) as error:
        if isinstance(error, OutcomeError):
            raise
        raise OutcomeError(f"the file must be Parquet; {error}") from None


_READERS: dict[str, Callable[[Path, Mapping[str, str]], pd.DataFrame]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
