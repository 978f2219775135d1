"""Long tables (pandas, polars, pyarrow through narwhals): one row per trial, read into counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk.answers import AnswerRules, Given, as_codes, as_marks, group, right_answers
from bayesatk.encoding import CODE_INVALID, Codes, Table, cells, encode, objects, refuse
from bayesatk.validation import OutcomeError, Scores, is_missing, label_fault, shown

_MOST_CELLS = 100_000_000  # systems times questions: 1.6 GB of counts

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
    "answer": (),  # never guessed: a column "answer" may hold the right one
    "reference": (),
}


@dataclass(frozen=True)
class Columns:
    """The columns that matter in a long table, and where its rows stand in their source.

    Parameters
    ----------
    roles : mapping
        Name of the column with each role.
    values : mapping
        Its values, by role: a list, or a numeric array.
    word : str
        What a row is called in messages ("row", "line").
    numbers : sequence of int, optional
        Number of every row in its source; default 0, 1, ....
    """

    roles: Mapping[str, Any]
    values: Mapping[str, Any]
    word: str = "row"
    numbers: Sequence[int] | None = None

    def number(self, row: int) -> int:
        """Return the number of a row in its source."""
        return row if self.numbers is None else self.numbers[row]

    def place(self, row: int) -> str:
        """Return where a row is, for a message."""
        return f"{self.word} {self.number(row)}"


def is_table(data: object) -> bool:
    """Whether this is an eager table, of pandas or of another library that narwhals knows."""
    if isinstance(data, pd.DataFrame):
        return True
    try:
        return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.NarwhalsError:  # a table, though a malformed one: read_table says why
        return True


def read_table(data: object, columns: Mapping[str, str]) -> Columns:
    """Pick the columns that matter from a long table with one row per trial."""
    if isinstance(data, pd.DataFrame):
        return _from_pandas(data, columns)
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
    rows = len(table.values["question"])
    if rows == 0:
        raise OutcomeError("a table of outcomes must have rows; got none.")
    question, questions = _labels(table, "question")
    if "system" in table.roles:
        system, systems = _labels(table, "system")
    else:
        system, systems = np.zeros(rows, np.int64), ["system"]
    if len(systems) * len(questions) > _MOST_CELLS:
        raise OutcomeError(
            f"the table has {len(systems)} systems and {len(questions)} questions, which makes "
            f"more than {_MOST_CELLS} cells. Check that column {table.roles.get('system')!r} names "
            "systems, or split the table."
        )
    cell, shape = system * len(questions) + question, (len(systems), len(questions))
    notes = [*_check_trials(table, cell)]
    codes, answers = np.zeros(0, np.int16), None
    if "outcome" in table.roles:
        codes = _outcome_codes(table, scores)
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


def find_columns(names: Sequence[Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Assign the roles to column names: as told, else by the usual names.

    An answer and its reference, the right one, are taken only as told.

    Examples
    --------
    >>> find_columns(["task_id", "epoch", "passed"], {})
    {'question': 'task_id', 'trial': 'epoch', 'outcome': 'passed'}
    """
    _check_told(names, columns)
    found = {}
    for role, usual in ROLES.items():
        taken = [name for other, name in columns.items() if other != role]
        if role == "outcome" and role not in columns and "reference" in columns:
            continue  # the reference says what is right
        matches = [
            name
            for name in names
            if isinstance(name, str) and name.lower() in usual and name not in taken
        ]
        if role in columns:
            found[role] = columns[role]
        elif len(matches) == 1:
            found[role] = matches[0]
        elif matches or role in ("question", "outcome"):
            seen = f"several could be it: {matches}" if matches else "none has a usual name"
            raise OutcomeError(
                f"the table must have one {role} column; {seen} among {shown(list(names), 400)}. "
                f"Name it: columns={{{role!r}: ...}}; if two share a name, rename one."
            )
    twice = [name for name in found.values() if list(names).count(name) > 1]
    if twice:
        raise OutcomeError(
            f"column names must be distinct; got {twice[0]!r} more than once. Rename one of them."
        )
    return found


def _check_told(names: Sequence[Any], columns: object) -> None:
    """Check the columns argument: known roles, columns that exist, one role each."""
    known = isinstance(columns, Mapping) and all(
        role in ROLES and isinstance(name, str | int) and name in names
        for role, name in columns.items()
    )
    if not known or not isinstance(columns, Mapping):
        got = dict(columns) if isinstance(columns, Mapping) else columns
        raise OutcomeError(
            f"columns must map {', '.join(ROLES)} to names in the table; got {shown(got)} for a "
            f"table with columns {shown(list(names), 400)}."
        )
    if ("reference" in columns) and ("answer" not in columns or "outcome" in columns):
        raise OutcomeError(
            "columns: a reference goes with an answer column and takes the place of an outcome "
            f"column; got {shown(dict(columns))}. Name answer and reference, or answer and outcome."
        )
    told = list(columns.values())
    if any(told.count(name) > 1 for name in told):
        raise OutcomeError(
            f"columns must give every role its own column; got {shown(dict(columns))}. Name "
            "another column, or leave the role out."
        )


def _labels(table: Columns, role: str) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and labels of an id column, in order of first appearance; nulls are refused."""
    values, name = table.values[role], table.roles[role]
    types = set(map(type, values))
    if not types <= {str, int} or not all(
        value.strip() for value in set(values) if isinstance(value, str)
    ):
        _check_ids(table, role)
    if bool in types and len(types - {str}) > 1:
        raise OutcomeError(
            f"column {name!r} must not mix true/false with numbers, which are equal to them, as "
            f"{role} labels. Write them as text."
        )
    if role == "trial" and len(types) > 1:
        values = [_trial_text(value) for value in values]
    codes: dict[Any, int] = {}
    coded = (codes.setdefault(value, len(codes)) for value in values)
    return np.fromiter(coded, np.int64, count=len(values)), list(codes)


def _check_ids(table: Columns, role: str) -> None:
    """Name the first row whose id is no label."""
    for row, value in enumerate(table.values[role]):
        if is_missing(value):
            raise OutcomeError(
                f"column {table.roles[role]!r} must identify the {role} of every row; "
                f"{table.place(row)} has none. Remove the row or give it a label."
            )
        fault = label_fault(value)
        if fault:
            raise OutcomeError(
                f"column {table.roles[role]!r} must hold text or numbers as {role} labels; "
                f"{shown(value)} at {table.place(row)} {fault}. Replace it by text."
            )


def _trial_text(value: Any) -> object:
    """Return one text for 1, 1.0 and '1': a trial recorded in two types is the same trial."""
    try:
        return str(value if isinstance(value, str) or value != int(value) else int(value))
    except (ValueError, TypeError, OverflowError):  # no number, infinite, or too long to print
        return value if isinstance(value, int) else str(value)


def _check_trials(table: Columns, cell: NDArray[Any]) -> tuple[str, ...]:
    """Refuse a (system, question, trial) that occurs twice."""
    if "trial" not in table.roles:
        return ("no trial column: the rows of one (system, question) are its trials",)
    trial, labels = _labels(table, "trial")
    key = pd.Series(cell * len(labels) + trial)
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


def _outcome_codes(table: Columns, scores: Scores) -> Codes:
    values = table.values["outcome"]
    codes = encode(values if isinstance(values, np.ndarray) else objects(values), scores)
    if (codes == CODE_INVALID).any():
        row = int(np.argmax(codes == CODE_INVALID))
        value = values[row].item() if isinstance(values, np.ndarray) else values[row]
        place = f"{table.place(row)} of column {table.roles['outcome']!r}"
        raise refuse(value, place, scores)
    return codes
