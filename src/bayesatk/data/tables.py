"""Long tables (pandas, polars, pyarrow through narwhals): one row per trial, read into counts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk.data.answer_groups import Given, as_codes, as_marks, group, right_answers
from bayesatk.data.answers import AnswerRules
from bayesatk.data.columns import ROLES, Columns, find_columns, labels
from bayesatk.data.count_tables import count_successes
from bayesatk.data.encoding import CODE_INVALID, Codes, Table, cells, encode, objects, refuse
from bayesatk.data.validation import OutcomeError, Scores, shown

_MOST_CELLS = 100_000_000  # systems times questions: 1.6 GB of counts


def is_table(data: object) -> bool:
    """Whether this is an eager table, of pandas or of another library that narwhals knows."""
    if isinstance(data, pd.DataFrame):
        return True
    if isinstance(data, np.ndarray | Sequence | Mapping):
        return False
    import narwhals as nw  # for other tables only: it takes long to import

    try:
        return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.NarwhalsError:  # a table, though a malformed one: read_table says why
        return True


def read_table(data: object, columns: Mapping[str, str]) -> Columns:
    """Pick the columns that matter from a long table with one row per trial."""
    try:
        return _read_table(data, columns)
    except OutcomeError as error:
        if columns or not _is_wide(data):
            raise
        array = "data.to_numpy()" if hasattr(data, "to_numpy") else "data.to_pandas().to_numpy()"
        raise OutcomeError(
            f"{error} If its rows are questions and its columns trials, use "
            f"bayesatk.tally({array})."
        ) from None


def _is_wide(data: Any) -> bool:
    """Whether no column has a name that is usual for any role."""
    names = data.columns if hasattr(data, "to_numpy") else data.column_names
    usual = {name for names in ROLES.values() for name in names}
    return not any(isinstance(name, str) and name.lower() in usual for name in names)


def _read_table(data: object, columns: Mapping[str, str]) -> Columns:
    if isinstance(data, pd.DataFrame):
        return _from_pandas(data, columns)
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data, eager_only=True)
        roles = find_columns(frame.columns, columns)
        values = {role: _values(frame[name]) for role, name in roles.items()}
        for role, column in values.items():
            if role != "outcome" and isinstance(column, np.ndarray):
                values[role] = column.tolist()  # labels are plain Python values
    except OutcomeError:
        raise
    except Exception as error:  # every library refuses a malformed table in its own way
        raise OutcomeError(
            f"the table must have columns that can be read, each name once; got {error}. Rename "
            "or convert the column."
        ) from None
    return Columns(roles, values)


def _from_pandas(data: pd.DataFrame, columns: Mapping[str, str]) -> Columns:
    """Pick the columns by position: names need not be text, nor does narwhals allow others."""
    names = list(data.columns)
    roles = find_columns(names, columns)
    for level in data.index.names:
        lost = [
            role
            for role, usual in ROLES.items()
            if role not in roles and isinstance(level, str) and level.lower() in usual
        ]
        if lost:
            raise OutcomeError(
                f"the table must have its {lost[0]} in a column; got {level!r} in the index. Reset "
                "it: table.reset_index()."
            )
    values: dict[str, Any] = {}
    for role, name in roles.items():
        series = data.iloc[:, names.index(name)]
        plain = role == "outcome" and isinstance(series.dtype, np.dtype)
        numeric = plain and series.dtype.kind in "biuf"
        values[role] = series.to_numpy() if numeric else series.tolist()
    return Columns(roles, values)


def _values(series: Any) -> Any:
    """Return a numeric column without gaps as an array, any other as a list."""
    if series.dtype.is_numeric() and not series.is_null().any():
        try:
            array = series.to_numpy()
        except Exception:  # integers of 128 bits have no numpy type
            return series.to_list()
        if array.dtype.kind in "biuf":
            return array
    return series.to_list()


def count_rows(table: Columns, scores: Scores, rules: AnswerRules) -> Table:
    """Count the outcomes of a long table by system and question."""
    if "successes" in table.roles:
        return count_successes(table, scores)
    rows = len(table.values["question"])
    if rows == 0:
        raise OutcomeError("a table of outcomes must have rows; got none.")
    question, questions = labels(table, "question")
    if "system" in table.roles:
        system, systems = labels(table, "system")
    else:
        system, systems = np.zeros(rows, np.int64), ["system"]
    if len(systems) * len(questions) > _MOST_CELLS:
        raise OutcomeError(
            f"the table has {len(systems)} systems and {len(questions)} questions, which makes "
            f"more than {_MOST_CELLS} cells. Check that column {table.roles.get('system')!r} names "
            "systems, or split the table."
        )
    cell, shape = system * len(questions) + question, (len(systems), len(questions))
    notes = [*check_trials(table, cell)]
    codes, answers = np.zeros(0, np.int16), None
    if "outcome" in table.roles:
        codes = outcome_codes(table, scores)
    if "answer" in table.roles:
        given = Given(
            system, question, list(table.values["answer"]), as_marks(codes, scores),
            _references(table, question, questions, rules),
        )  # fmt: skip
        answers, marks, remarks = group(given, rules, shape, questions)
        codes, notes = (codes if len(codes) else as_codes(marks, scores)), [*notes, *remarks]
    count, missing = cells(cell, codes, shape, len(scores))
    used = ", ".join(f"{role} = column {name!r}" for role, name in table.roles.items())
    return Table(count, missing, systems, questions, (used, *notes), answers)


def _references(
    table: Columns, question: NDArray[np.int64], questions: list[Any], rules: AnswerRules
) -> list[set[str]] | None:
    """Right answers by question; every row of a question must name the same."""
    if "reference" not in table.roles:
        return None
    found: list[set[str] | None] = [None] * len(questions)
    for row, (asked, value) in enumerate(
        zip(question.tolist(), table.values["reference"], strict=True)
    ):
        among = right_answers(value, rules, table.place(row))
        if found[asked] is None:
            found[asked] = among
        elif found[asked] != among:
            raise OutcomeError(
                f"every row of a question must have the same reference; {table.place(row)} has "
                f"{shown(value)} for question {shown(questions[asked])}, an earlier one had "
                f"{shown(sorted(found[asked] or set()))}. Do the labels identify the question?"
            )
    return [among or set() for among in found]


def check_trials(table: Columns, cell: NDArray[Any]) -> tuple[str, ...]:
    """Refuse a (system, question, trial) that occurs twice."""
    if "trial" not in table.roles:
        return ("no trial column: the rows of one (system, question) are its trials",)
    trial, names = labels(table, "trial")
    key = pd.Series(cell * len(names) + trial)
    if key.duplicated().any():
        second = int(key.duplicated().to_numpy().argmax())
        first = int((key == key[second]).to_numpy().argmax())
        who = ", ".join(
            f"{role} {shown(table.values[role][second])}"
            for role in table.roles
            if role != "outcome"
        )
        raise OutcomeError(
            f"each (system, question, trial) must occur once; {table.word}s {table.number(first)} "
            f"and {table.number(second)} both hold {who}. Remove the repetition, or number the "
            "trials."
        )
    return ()


def outcome_codes(table: Columns, scores: Scores) -> Codes:
    """Return the code of every row's outcome, or refuse the first that has none."""
    values = table.values["outcome"]
    codes = encode(values if isinstance(values, np.ndarray) else objects(values), scores)
    if (codes == CODE_INVALID).any():
        row = int(np.argmax(codes == CODE_INVALID))
        value = values[row].item() if isinstance(values, np.ndarray) else values[row]
        place = f"{table.place(row)} of column {table.roles['outcome']!r}"
        raise refuse(value, place, scores)
    return codes
