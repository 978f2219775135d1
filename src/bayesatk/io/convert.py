"""`convert`: logs and tables of any kind as one long table."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.writing import replacing, replacing_text
from bayesatk.data.columns import COVARIATE
from bayesatk.data.requests import Request
from bayesatk.data.tally import BINARY
from bayesatk.data.validation import OutcomeError
from bayesatk.io.budget import BUDGET
from bayesatk.io.load import blocks, find_files, in_file, read_logs, reads_files
from bayesatk.io.options import QuestionKey
from bayesatk.io.rows import ReadOptions, to_columns
from bayesatk.io.text_tables import defused


@reads_files
def convert(
    source: object,
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
    covariates: Sequence[str] | None = None,
    weight: str | None = None,
    cost: str | None = None,
    verifier: str | None = None,
    records: str | None = None,
    wide: bool = False,
    format: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,
    task: str | None = None,
    answers: bool = False,
    question_key: QuestionKey = "id",
    same_system: Literal["error", "trials"] = "error",
    empty_output: Literal["marked", "missing"] = "marked",
    strict: bool = False,
    progress: bool | None = None,
    budget: int = BUDGET,
) -> Path:
    r"""Write logs or tables as one long table with a row per trial.

    Parameters
    ----------
    source : path, sequence of paths, or mapping {system: path or paths}
        As for `bayesatk.load`.
    path : path
        ``.csv``, ``.jsonl`` or ``.parquet``; an existing file is replaced once all is written.
        Columns ``system``, ``question``, ``trial``, ``outcome``; ``answer`` if asked for;
        ``group``, ``weight``, ``cost``, ``verifier`` and covariates that are named; ``reason`` why
        an outcome is missing, if some are. In CSV, text that a spreadsheet would run as a formula
        begins with an apostrophe, which `bayesatk.load` takes off.
    columns, records, wide, format, scorer, filter, task, answers, question_key, same_system
        As for `bayesatk.load`.
    group, covariates, weight : str, sequence of str, optional
        Names of columns, or of what logs say of their questions, as for `bayesatk.load`.
    cost : str, optional
        Name of the column, or of what logs say, of what a trial cost.
    verifier : str, optional
        The same, of the score that a verifier gave to a trial.
    empty_output, strict, progress, budget
        As for `bayesatk.load`.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    OutcomeError
        If a file cannot be read, or `path` has another ending or is one of the sources.
    OSError
        If the file cannot be written; what was there is as it was.

    See Also
    --------
    bayesatk.load : reads the files without writing a table.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "runs.csv").write_text("task,attempt,passed\na,1,1\na,2,0\n")
    >>> path = convert(folder / "runs.csv", folder / "runs.jsonl")
    >>> path.read_text().splitlines()[0]
    '{"question": "a", "trial": "1", "outcome": 1}'
    """
    arguments, path = locals(), Path(path)
    if path.suffix not in (".csv", ".jsonl", ".parquet"):
        raise OutcomeError(f"path must end in .csv, .jsonl, .parquet; got {path.name!r}.")
    request = Request.of(group, covariates, weight, cost, verifier=verifier)
    request.refuse_given_by_trial()
    inputs = find_files(source, ReadOptions.of(arguments, request.roles))
    if any(path.exists() and os.path.samefile(file.path, path) for file in inputs.sources):
        raise ArgumentError(
            Argument("path"),
            f" must not be that of a file to read; {path.name} is one. Name another, and rename it "
            "afterwards.",
        )
    reasons: list[object] = []
    with in_file(inputs):
        inputs.check()
        if inputs.are_logs:
            rows = read_logs(inputs)
            tables = [to_columns(rows)]
            reasons = [trial.reason for trial in rows.trials]
        else:
            tables = [table for _, table in blocks(inputs, BINARY)]
    written = {
        role.removeprefix(COVARIATE): [cell for table in tables for cell in table.listed(role)]
        for role in tables[0].roles
    }
    _write(path, written | ({"reason": reasons} if any(reasons) else {}))
    return path


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    if path.suffix == ".parquet":
        _write_parquet(path, columns)
        return
    rows = zip(*columns.values(), strict=True)
    with replacing_text(path) as file:
        if path.suffix == ".csv":
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(map(defused, row) for row in rows)
        else:
            file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def _write_parquet(path: Path, columns: dict[str, list[Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise OutcomeError(
            "writing Parquet needs pyarrow. Install it: pip install 'bayesatk[parquet]'. Or write "
            "CSV."
        ) from None
    try:
        with replacing(path) as file:
            parquet.write_table(pyarrow.table(columns), file)
    except pyarrow.ArrowException as error:
        raise OutcomeError(
            f"the columns must each be of one kind for Parquet; {error}. Write .jsonl."
        ) from None
