"""Tables with a row per trial or question: of pandas, or of any library that narwhals knows."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.codes import Codes, Ints, codes_of, encode, first_invalid, refuse
from bayesatk.data.columns import ROLES, Columns, find_columns, labels, unused
from bayesatk.data.content import content_columns, digests
from bayesatk.data.content_check import check_content
from bayesatk.data.costs import read_costs
from bayesatk.data.list_cells import one_row_a_trial
from bayesatk.data.long_form import LongForm, Trials
from bayesatk.data.question_columns import TableColumns, left_out
from bayesatk.data.validation import OutcomeError, Scores, check_counts, check_trials, shown

_MOST_CELLS = 100_000_000  # systems times questions: 1.6 GB of counts
_WHOLE = re.compile(r"\s*\d{1,18}(\.0*)?\s*", re.ASCII)

# Kinds of NumPy's numbers that stay arrays, by role: outcomes may be fractions and true/false.
_ARRAYS = {"outcome": "biuf", "answer": "", "reference": ""}


def is_table(data: object) -> bool:
    """Whether this is a table, of pandas or of another library that narwhals knows."""
    if isinstance(data, pd.DataFrame):
        return True
    if isinstance(data, np.ndarray | Sequence | Mapping):
        return False
    import narwhals as nw  # for other tables only: it takes long to import

    try:
        return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # a table, though a malformed one: read_table says why
        return True


def read_table(data: object, columns: Mapping[str, str]) -> Columns:
    """Pick the columns that matter from a long table; of a lazy one, only they are computed."""
    if isinstance(data, pd.DataFrame):
        return one_row_a_trial(from_pandas(data, columns))
    return one_row_a_trial(_from_other(data, columns))


def _roles(names: list[Any], columns: Mapping[str, str], array: str) -> dict[str, Any]:
    """Assign the roles; a table without any usual name may be an array in disguise."""
    try:
        return find_columns(names, columns)
    except OutcomeError as error:
        usual = {name for known in ROLES.values() for name in known}
        if columns or any(isinstance(name, str) and name.lower() in usual for name in names):
            raise
        raise OutcomeError(
            f"{error} If its rows are questions and its columns trials, use "
            f"bayesatk.tally({array})."
        ) from None


def _from_other(data: object, columns: Mapping[str, str]) -> Columns:
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
        lazy = isinstance(frame, nw.LazyFrame)
        first = "" if hasattr(data, "to_numpy") else ".collect()" if lazy else ".to_pandas()"
        names = frame.collect_schema().names()
        roles = _roles(names, columns, f"data{first}.to_numpy()")
        asked = content_columns(names, roles, columns)
        if lazy:
            frame = frame.select(list(dict.fromkeys([*roles.values(), *asked]))).collect()
        values = {role: values_of(frame[name], role) for role, name in roles.items()}
        content = digests({name: frame[name].to_list() for name in asked})
    except OutcomeError:
        raise
    except Exception as error:  # every library refuses a malformed table in its own way
        raise OutcomeError(
            f"the table must have columns that can be read, each name once; got {error}. Rename "
            "or convert the column."
        ) from None
    return Columns(roles, values, content=content, others=unused(names, roles, asked))


def from_pandas(data: pd.DataFrame, columns: Mapping[str, str]) -> Columns:
    """Pick the columns by position: names need not be text, nor does narwhals allow others."""
    names = list(data.columns)
    roles = _roles(names, columns, "data.to_numpy()")
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
        kind = series.dtype.kind if isinstance(series.dtype, np.dtype) else "O"
        if kind in _ARRAYS.get(role, "iu"):
            values[role] = series.to_numpy()
        elif isinstance(series.dtype, pd.StringDtype) and role in ("system", "question", "trial"):
            codes, texts = series.factorize()
            values[role] = pd.Categorical.from_codes(codes, pd.Index(texts))
        else:
            values[role] = series.tolist()
    asked = content_columns(names, roles, columns)
    content = digests({name: data.iloc[:, names.index(name)].tolist() for name in asked})
    return Columns(roles, values, content=content, others=unused(names, roles, asked))


def values_of(series: Any, role: str) -> Any:
    """Return a numeric column without gaps as an array, any other as a list."""
    if series.dtype.is_numeric() and not series.is_null().any():
        try:
            array = series.to_numpy()
        except Exception:  # integers of 128 bits have no numpy type
            return series.to_list()
        if array.dtype.kind in _ARRAYS.get(role, "iu"):
            return array
    return series.to_list()


def read_rows(table: Columns, scores: Scores, rules: AnswerRules) -> LongForm:
    """Return the trials of a long table, or the counts of one whose rows are questions."""
    question, questions = labels(table, "question")
    if not len(question):
        raise OutcomeError("a table of outcomes must have rows; got none.")
    system, systems = np.zeros(len(question), np.int64), ["system"]
    if "system" in table.roles:
        system, systems = labels(table, "system")
    check_cells(len(systems), len(questions), table.roles.get("system"))
    asked = check_content(table, question, questions)
    cell = system * len(questions) + question
    known = TableColumns()
    known.add(table, question, questions)
    columns = known.by_question(questions)
    used = ", ".join(f"{role} = column {name!r}" for role, name in table.roles.items())
    if "successes" in table.roles:
        counted = _count_successes(table, cell, (len(systems), len(questions)), scores)
        notes = used, *asked, *left_out(table)
        return LongForm(systems, questions, counted=counted, notes=notes, columns=columns)
    notes = used, *_check_repeated(table, cell), *asked, *left_out(table)
    answer = rules.apply_all(table.values["answer"]) if "answer" in table.roles else None
    cost = None
    if "cost" in table.roles:
        cost = read_costs(table.listed("cost"), table.place, table.roles["cost"])
    if "outcome" in table.roles:
        codes = _outcomes(table, scores)
    else:
        right = _references(table, question, questions, rules)
        codes = codes_of(answer or [], question, right, scores)
    return LongForm(
        systems, questions, (Trials(codes, cell),), trial_labels=table.values.get("trial"),
        answer=answer, rules=rules, notes=notes, columns=columns, cost=cost,
    )  # fmt: skip


def check_cells(systems: int, questions: int, column: object) -> None:
    """Refuse more cells than counts of them fit into memory."""
    if systems * questions > _MOST_CELLS:
        raise OutcomeError(
            f"the table has {systems} systems and {questions} questions, which makes more than "
            f"{_MOST_CELLS} cells. Check that column {column!r} names systems, or split the table."
        )


def _references(
    table: Columns, question: Ints, questions: list[Any], rules: AnswerRules
) -> list[set[str]]:
    """Return the right answers by question; every row of a question must name the same."""
    found: list[set[str]] = [set() for _ in questions]
    for row, (asked, value) in enumerate(
        zip(question.tolist(), table.values["reference"], strict=True)
    ):
        among = rules.right_answers(value, table.place(row))
        if not found[asked]:
            found[asked] = among
        elif found[asked] != among:
            raise OutcomeError(
                f"every row of a question must have the same reference; {table.place(row)} has "
                f"{shown(value)} for question {shown(questions[asked])}, an earlier one had "
                f"{shown(sorted(found[asked]))}. Do the labels identify the question?"
            )
    return found


def _repeated(key: NDArray[Any]) -> tuple[int, int] | None:
    """Return the first row whose key has occurred before, behind the row where it did."""
    repeated = pd.Series(key).duplicated().to_numpy()
    second = int(repeated.argmax())
    return (int((key == key[second]).argmax()), second) if repeated[second] else None


def _check_repeated(table: Columns, cell: Ints) -> tuple[str, ...]:
    """Refuse a (system, question, trial) that occurs twice; say what no trial column means."""
    if "trial" not in table.roles:
        return ("no trial column: the rows of one (system, question) are its trials",)
    trial, names = labels(table, "trial")
    twice = _repeated(cell * len(names) + trial)
    if twice is not None:
        first, second = map(table.number, twice)
        who = ", ".join(
            f"{role} {shown(table.value(role, twice[1]))}"
            for role in table.roles
            if role != "outcome"
        )
        raise OutcomeError(
            f"each (system, question, trial) must occur once; {table.word}s {first} and {second} "
            f"both hold {who}. Remove the repetition, or number the trials."
        )
    return ()


def _outcomes(table: Columns, scores: Scores) -> Codes:
    """Return the code of every row's outcome, or refuse the first that has no score."""
    values = table.values["outcome"]
    codes = encode(values if isinstance(values, np.ndarray) else list(values), scores)
    wrong = first_invalid(codes)
    if wrong is not None:
        place = f"{table.place(wrong[0])} of column {table.roles['outcome']!r}"
        raise refuse(table.value("outcome", wrong[0]), place, scores)
    return codes


def _count_successes(table: Columns, cell: Ints, shape: tuple[int, int], scores: Scores) -> Ints:
    """Return counts by slot, of rows that are questions with trials and successes."""
    if sorted(scores.values()) != [0.0, 1.0]:
        raise OutcomeError(
            "scores must be left out for counts of successes, which have two outcomes; got "
            f"{shown(dict(scores))}. Leave them out."
        )
    twice = _repeated(cell)
    if twice is not None:
        raise OutcomeError(
            f"each (system, question) must have one row of counts; {table.place(twice[0])} "
            f"and {table.place(twice[1])} are both of question "
            f"{shown(table.value('question', twice[1]))}. Add them up, or name their systems."
        )
    trials, successes = (_whole(table, role) for role in ("trials", "successes"))
    check_trials(trials, f"column {table.roles['trials']!r}")
    if (successes > trials).any():
        row = int(np.argmax(successes > trials))
        raise OutcomeError(
            f"successes must not exceed trials; {table.place(row)} has {successes[row]} of "
            f"{trials[row]}. Are the columns the right ones?"
        )
    slots = np.zeros((shape[0] * shape[1], 3), np.int64)
    right = int(np.argmax(list(scores.values())))
    slots[cell, 1 + right], slots[cell, 2 - right] = successes, trials - successes
    return slots.reshape(*shape, 3)


def _whole(table: Columns, role: str) -> Ints:
    """Return whole numbers, which text tables hold as text."""
    values: Any = table.values[role]
    kinds = set() if isinstance(values, np.ndarray) else set(map(type, values))
    if kinds & {bool, str}:
        for row, value in enumerate(values):
            text = isinstance(value, str) and _WHOLE.fullmatch(value)
            if isinstance(value, bool) or not (text or bool in kinds):
                raise OutcomeError(
                    f"column {table.roles[role]!r} must have whole numbers >= 0; "
                    f"{table.place(row)} has {shown(value)}. Correct it, or name another column: ",
                    Argument("columns", {role: ...}, "tally"), ".",
                )  # fmt: skip
        values = [int(value.split(".")[0]) for value in values]
    return check_counts(values, f"column {table.roles[role]!r}")
