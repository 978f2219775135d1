"""Long tables (pandas, polars, pyarrow through narwhals): one row per trial, read into counts."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk.encoding import (
    CODE_INVALID,
    Codes,
    OutcomeError,
    Scores,
    Table,
    cells,
    encode,
    refuse,
)

ROLES: dict[str, tuple[str, ...]] = {
    "system": ("system", "model", "agent", "solver", "policy"),
    "question": (
        "question",
        "question_id",
        "task_id",
        "task",
        "item",
        "item_id",
        "problem",
        "problem_id",
        "sample_id",
        "doc_id",
        "id",
    ),
    "trial": ("trial", "epoch", "run", "attempt", "repeat", "rollout", "seed"),
    "outcome": ("outcome", "correct", "is_correct", "score", "passed", "success", "reward"),
}


def is_table(data: object) -> bool:
    """Whether narwhals reads this object as an eager table."""
    return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)


def read_table(data: object, columns: Mapping[str, str], scores: Scores) -> Table:
    """Read a long table with one row per trial."""
    frame: Any = nw.from_native(data, eager_only=True)
    roles = find_columns(frame.columns, columns)
    if len(frame) == 0:
        raise OutcomeError("a table of outcomes must have rows; got none.")
    question, questions = _labels(frame, roles["question"])
    if "system" in roles:
        system, systems = _labels(frame, roles["system"])
    else:
        system, systems = np.zeros(len(frame), np.int64), ["system"]
    cell = system * len(questions) + question
    notes = _check_trials(frame, roles, cell)
    codes = _outcome_codes(frame, roles["outcome"], scores)
    count, missing = cells(cell, codes, (len(systems), len(questions)), len(scores))
    used = ", ".join(f"{role} = column {name!r}" for role, name in roles.items())
    return Table(count, missing, systems, questions, (used, *notes))


def find_columns(names: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Assign the roles to column names: as told, else by the usual names.

    Examples
    --------
    >>> find_columns(["task_id", "epoch", "passed"], {})
    {'question': 'task_id', 'trial': 'epoch', 'outcome': 'passed'}
    """
    unknown = set(columns) - set(ROLES)
    absent = [name for name in columns.values() if name not in names]
    if unknown or absent:
        raise OutcomeError(
            f"columns must map {', '.join(ROLES)} to names in the table; got {dict(columns)} for "
            f"a table with columns {list(names)}."
        )
    found = {}
    for role, usual in ROLES.items():
        taken = {name for other, name in columns.items() if other != role}
        matches = [name for name in names if name.lower() in usual and name not in taken]
        if role in columns:
            found[role] = columns[role]
        elif len(matches) == 1:
            found[role] = matches[0]
        elif matches or role in ("question", "outcome"):
            seen = f"several could be it: {matches}" if matches else "none has a usual name"
            raise OutcomeError(
                f"the table must have one {role} column; {seen} among {list(names)}. Name it: "
                f"columns={{{role!r}: ...}}."
            )
    return found


def _labels(frame: Any, name: str) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and labels of an id column, in order of first appearance; nulls are refused."""
    codes, labels = pd.factorize(np.asarray(frame[name].to_list(), dtype=object))
    if (codes < 0).any():
        raise OutcomeError(
            f"column {name!r} must identify every row; row {int(np.argmin(codes))} has none. "
            "Remove the row or give it a label."
        )
    return codes.astype(np.int64), list(labels)


def _check_trials(frame: Any, roles: Mapping[str, str], cell: NDArray[Any]) -> tuple[str, ...]:
    """Refuse a (system, question, trial) that occurs twice."""
    if "trial" not in roles:
        return ("no trial column: the rows of one (system, question) are its trials",)
    trial, labels = _labels(frame, roles["trial"])
    key = pd.Series(cell * len(labels) + trial)
    if key.duplicated().any():
        second = int(key.duplicated().to_numpy().argmax())
        first = int((key == key[second]).to_numpy().argmax())
        who = ", ".join(
            f"{role} {frame[name].to_list()[second]!r}"
            for role, name in roles.items()
            if role != "outcome"
        )
        raise OutcomeError(
            f"each (system, question, trial) must occur once; rows {first} and {second} both hold "
            f"{who}. Remove the repetition, or number the trials."
        )
    return ()


def _outcome_codes(frame: Any, name: str, scores: Scores) -> Codes:
    series = frame[name]
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        nulls = series.is_null().to_numpy()
        values = series.to_numpy() if not nulls.any() else np.array(series.to_list(), dtype=object)
    else:
        values = np.array([*series.to_list(), None], dtype=object)[:-1]
    codes = encode(values, scores)
    if (codes == CODE_INVALID).any():
        row = int(np.argmax(codes == CODE_INVALID))
        raise refuse(series[row], f"row {row} of column {name!r}", scores)
    return codes
