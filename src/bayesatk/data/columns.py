"""The columns of a long table: which of them matters for what, and their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.content import ASKED, canonical, digest
from bayesatk.data.validation import OutcomeError, is_missing, label_fault, shown

GROUP = "group"
WEIGHT = "weight"
COVARIATE = "covariate "  # role of a column that is one, before its name

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
        "problem_idx",
        "instance_id",
        "example_id",
        "id",
    ),
    "trial": ("trial", "epoch", "run", "attempt", "repeat", "rollout", "seed"),
    "outcome": (
        "outcome",
        "correct",
        "is_correct",
        "score",
        "passed",
        "success",
        "reward",
        "accs",
        "graded_list",
    ),
    "trials": ("trials", "n", "num_samples"),  # of a row that counts successes
    "successes": ("successes", "c", "num_correct"),
    "answer": (),  # never guessed: a column "answer" may hold the right one
    "reference": (),
    "content": (),  # what was asked, or what is right: must agree wherever the question does
    "cost": (),  # of the trial; never guessed, since it has a unit
    GROUP: (),  # of the question; never guessed: a group may be one of trials, or of systems
    WEIGHT: (),  # likewise
}


@dataclass(frozen=True)
class Columns:
    """The columns that matter in a long table, and where its rows stand in their source.

    Parameters
    ----------
    roles : mapping
        Name of the column with each role.
    values : mapping
        Its values, by role: a list, a numeric array, or labels coded by pandas.
    word : str
        What a row is called in messages ("row", "line").
    numbers : sequence of int, optional
        Number of every row in its source; default 0, 1, ....
    content : mapping
        Digest of every cell of the columns that say what was asked, by name.
    others : tuple
        Names of the columns that nothing is made of.
    """

    roles: Mapping[str, Any]
    values: Mapping[str, Any]
    word: str = "row"
    numbers: Sequence[int] | None = None
    content: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    others: tuple[Any, ...] = ()

    def number(self, row: int) -> int:
        """Return the number of a row in its source."""
        return row if self.numbers is None else self.numbers[row]

    def place(self, row: int) -> str:
        """Return where a row is, for a message."""
        return f"{self.word} {self.number(row)}"

    def value(self, role: str, row: int) -> Any:
        """Return a value as Python writes it."""
        values = self.values[role]
        return values[row].item() if isinstance(values, np.ndarray) else values[row]

    def listed(self, role: str) -> list[Any]:
        """Return the values of a column as Python writes them."""
        values = self.values[role]
        return list(values) if isinstance(values, list | tuple) else list(values.tolist())


def find_columns(names: Sequence[Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Assign the roles to column names: as told, else by the usual names.

    An answer and its reference, the right one, are taken only as told; trials and successes only
    in a table without outcomes.

    Examples
    --------
    >>> find_columns(["task_id", "epoch", "passed"], {})
    {'question': 'task_id', 'trial': 'epoch', 'outcome': 'passed'}
    """
    _check_told(names, columns)
    found: dict[str, Any] = {}
    left_out = _COUNTS if not _counts(names, columns) else ("outcome", "trial")
    for role, usual in ROLES.items():
        if role in left_out or role == "content":
            continue
        taken = [name for other, name in columns.items() if other not in (role, "content")]
        if role == "outcome" and role not in columns and "reference" in columns:
            continue  # the reference says what is right
        matches = [
            name
            for name in names
            if isinstance(name, str) and name.lower() in usual and name not in taken
        ]
        if role == "question":  # beside an id, its text is what was asked
            matches = [name for name in matches if name.lower() not in ASKED] or matches
        if role in columns:
            found[role] = columns[role]
        elif len(matches) == 1:
            found[role] = matches[0]
        elif matches or role in ("question", "outcome", *_COUNTS):
            seen = f"several could be it: {matches}" if matches else "none has a usual name"
            raise OutcomeError(
                f"the table must have one {role} column; {seen} among {shown(list(names), 400)}. "
                "Name it: ", Argument("columns", {role: ...}, "tally"),
                "; if two share a name, rename one.",
            )  # fmt: skip
    found |= {role: name for role, name in columns.items() if role.startswith(COVARIATE)}
    twice = [name for name in found.values() if list(names).count(name) > 1]
    if twice:
        raise OutcomeError(
            f"column names must be distinct; got {twice[0]!r} more than once. Rename one of them."
        )
    return found


def unused(names: Sequence[Any], roles: Mapping[str, Any], asked: Sequence[Any]) -> tuple[Any, ...]:
    """Return the names of the columns that have no role and do not say what was asked."""
    used = [*roles.values(), *asked]
    return tuple(name for name in names if name not in used)


_COUNTS = ("trials", "successes")


def _counts(names: Sequence[Any], columns: Mapping[str, Any]) -> bool:
    """Whether the rows of a table are counts: of trials and successes, with no outcome."""
    if any(role in columns for role in ("outcome", "answer")):
        return False
    lower = {name.lower() for name in names if isinstance(name, str)}
    outcome = lower & set(ROLES["outcome"])
    told = any(role in columns for role in _COUNTS)
    return told or (not outcome and all(lower & set(ROLES[role]) for role in _COUNTS))


def _check_told(names: Sequence[Any], columns: object) -> None:
    """Check the columns argument: known roles, columns that exist, one role each."""
    known = isinstance(columns, Mapping) and all(
        isinstance(role, str)
        and (role in ROLES or role.startswith(COVARIATE))
        and isinstance(name, str | int)
        and name in names
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
    if any(role in columns for role in _COUNTS) and {"outcome", "answer", "trial", "cost"} & set(
        columns
    ):
        raise OutcomeError(
            "columns: trials and successes count the outcomes of a row, which then has none of "
            f"its own; got {shown(dict(columns))}. Name the one or the other."
        )
    told = [name for role, name in columns.items() if role != "content"]
    if any(told.count(name) > 1 for name in told):
        raise OutcomeError(
            f"columns must give every role its own column; got {shown(dict(columns))}. Name "
            "another column, or leave the role out."
        )


def labels(table: Columns, role: str) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and labels of an id column, in order of first appearance; nulls are refused."""
    values, name = table.values[role], table.roles[role]
    if isinstance(values, np.ndarray):  # whole numbers
        codes, distinct = pd.factorize(values)
        return np.asarray(codes, np.int64), distinct.tolist()
    if isinstance(values, pd.Categorical):
        codes, seen = pd.factorize(values.codes)
        texts = values.categories[seen].tolist() if seen.min(initial=0) >= 0 else []
        if texts and all(type(text) is str and text.strip() for text in texts):
            return np.asarray(codes, np.int64), texts
        values = values.tolist()  # some label is faulty: find its row
    types = set(map(type, values))
    if role == "question" and types & set(_JSON):  # messages, say
        values = [_of_json(label) for label in values]
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
    place = {label: code for code, label in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(place.__getitem__, values), np.int64, len(values)), list(place)


_JSON = (list, dict, tuple, np.ndarray)


def _of_json(label: object) -> object:
    """Return the label of a question that is named by a list or object: a digest of it."""
    named = isinstance(label, _JSON) and getattr(label, "shape", None) != () and len(label) > 0
    return f"#{digest(canonical(label))}" if named else label


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
                f"column {table.roles[role]!r} must have text or numbers as {role} labels; "
                f"{shown(value)} at {table.place(row)} {fault}. Replace it by text."
            )


def _trial_text(value: Any) -> object:
    """Return one text for 1, 1.0 and '1': a trial recorded in two types is the same trial."""
    try:
        return str(value if isinstance(value, str) or value != int(value) else int(value))
    except (ValueError, TypeError, OverflowError):  # no number, infinite, or too long to print
        return value if isinstance(value, int) else str(value)
