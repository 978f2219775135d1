"""The columns of a long table: which matters for what, their labels, and cells with lists.

Also what was asked, where a table says it: which columns hold it, and digests of their cells.
"""

import ast
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.validation import (
    Labels,
    OutcomeError,
    is_absent,
    is_missing,
    label_fault,
    number_of,
    shown,
)

GROUP = "group"
WEIGHT = "weight"
COST = "cost"
TRUTH = "truth"
TRUTHS, MARKS = ("wrong", "right"), ("none", "wrong", "right")  # of trials of known truth
BY_TRIAL = (COST, TRUTH)  # roles of numbers of trials beside their outcomes
COVARIATE = "covariate "  # role of a column that is one, before its name

# Names by meaning, however they are written (`meaning`): those of a line are preferred to those of
# the next, and are ambiguous among themselves.
ROLES: dict[str, tuple[str, ...]] = {
    "system": ("system model agent solver policy", "model_name model_id agent_name"),
    "question": (
        "question question_id task_id task item item_id problem problem_id sample_id doc_id "
        "problem_idx instance_id example_id prompt_id query_id id",
        "case case_id test_id test_case task_name test_name name task_index ng_task_index",
        "prompt input user_input instruction inputs query",
    ),
    "trial": (
        "trial epoch run attempt rep repeat repetition repetition_number rollout seed",
        "trial_id trial_index attempt_id attempt_index run_index repeat_index "
        "rollout_index ng_rollout_index",
    ),
    "outcome": (
        "outcome correct is_correct score passed success reward accs graded_list",
        "resolved is_resolved solved is_solved is_success is_passed pass score_binarized",
    ),
    # Of a row that counts successes.
    "trials": (
        "trials n num_samples total_attempts total_trials num_trials n_trials pass_rate_total",
    ),
    "successes": (
        "successes c num_correct success_count successful_trials num_successes n_successes "
        "n_correct pass_rate_passed",
    ),
    "answer": (),  # never guessed: a column "answer" may hold the right one
    "reference": (),
    "content": (),  # what was asked, or what is right: must agree wherever the question does
    COST: (),  # of the trial; never guessed, since it has a unit
    TRUTH: (),  # what is true of a trial that a judge marked; never guessed
    GROUP: (),  # of the question; never guessed: a group may be one of trials, or of systems
    WEIGHT: (),  # likewise
}
# What people call the conditions under which a model is tried: each may be a system.
CONDITIONS = {
    *"arm approach cond condition config configuration experiment framework harness".split(),
    *"judge method mode pipeline policy prompt_version provider setting strategy".split(),
    *"technique treatment variant".split(),
}
# Columns of the trials of one question, one beside the other.
_TRIAL_COLUMN = re.compile("(trial|run|attempt|repeat|rollout|sample|seed|epoch|try|pass)_?[0-9]+")
BINARY_TEXTS = {"0", "1", "0.0", "1.0", "true", "false"}  # marks of right and wrong
_COUNTS = ("trials", "successes")
_JSON = (list, dict, tuple, np.ndarray)
_LISTED = ("outcome", "answer", *BY_TRIAL)  # roles of columns whose cells may be lists


@dataclass(frozen=True)
class Columns:
    """The columns that matter in a long table, and where its rows stand in their source.

    Parameters
    ----------
    roles : mapping
        Name of the column with each role.
    values : mapping
        Its values, by role: a list, a numeric array, or labels coded by pandas.
    word, ending : str
        What a row is called in messages ("row", "line"), and what follows its number.
    numbers : sequence of int, optional
        Number of every row in its source; default 0, 1, ....
    content : mapping
        Digest of every cell of the columns that say what was asked, by name.
    others : tuple
        Names of the columns that nothing is made of.
    at : callable, optional
        Where a row is, for a message, if not by its number.
    """

    roles: Mapping[str, Any]
    values: Mapping[str, Any]
    word: str = "row"
    numbers: Sequence[int] | None = None
    content: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    others: tuple[Any, ...] = ()
    ending: str = ""
    at: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.values["question"])

    def with_column(self, role: str, name: Any, values: Any) -> "Columns":
        """Return the table with a column, in place of the one with its role if there is one."""
        roles = {**self.roles, role: name}
        in_order = dict.fromkeys([*filter(roles.__contains__, ROLES), *roles])
        return replace(
            self, roles={role: roles[role] for role in in_order},
            values={**self.values, role: values},
        )  # fmt: skip

    def without(self, role: str) -> "Columns":
        """Return the table without the column with a role."""
        roles, values = dict(self.roles), dict(self.values)
        del roles[role], values[role]
        return replace(self, roles=roles, values=values)

    def number(self, row: int) -> int:
        """Return the number of a row in its source."""
        return row if self.numbers is None else self.numbers[row]

    def place(self, row: int) -> str:
        """Return where a row is, for a message."""
        return self.at(row) if self.at else f"{self.word} {self.number(row)}{self.ending}"

    def value(self, role: str, row: int) -> Any:
        """Return a value as Python writes it."""
        values = self.values[role]
        return values[row].item() if isinstance(values, np.ndarray) else values[row]

    def listed(self, role: str) -> list[Any]:
        """Return the values of a column as Python writes them."""
        return listed(self.values[role])


def listed(values: Any) -> list[Any]:
    """Return the values of a column as Python writes them."""
    return list(values) if isinstance(values, list | tuple) else list(values.tolist())


@dataclass(frozen=True)
class Picked:
    """Names of the columns by role, of those with what was asked, and of those left out.

    Where outcomes stand side by side, each of their columns is read, and a cell is their list.
    """

    roles: dict[str, Any]
    content: list[Any]
    others: tuple[Any, ...]
    beside: tuple[Any, ...] = ()

    @classmethod
    def of(cls, names: Labels, columns: Mapping[str, Any], record: Any = None) -> "Picked":
        """Pick columns: as told, else by their usual names; messages say what a record holds."""
        roles = find_columns(names, columns, record)
        content, beside = content_columns(names, roles, columns), side_by_side(names, columns)
        used = [*roles.values(), *content, *beside]
        return cls(roles, content, tuple(name for name in names if name not in used), beside)

    @property
    def named(self) -> list[Any]:
        """Names of the columns that have roles."""
        return [*self._single.values(), *self.beside]

    @property
    def needed(self) -> list[Any]:
        """Names of the columns that are read."""
        return list(dict.fromkeys([*self.named, *self.content]))

    @property
    def _single(self) -> dict[str, Any]:
        """Columns by role, but for outcomes that stand side by side."""
        return {role: name for role, name in self.roles.items()
                if not (self.beside and role == "outcome")}  # fmt: skip

    def table(self, read: Callable[[Any, str], Any], **rows: Any) -> Columns:
        """Return the columns, each read by name and role; that of what was asked is "content"."""
        values = {role: read(name, role) for role, name in self._single.items()}
        if self.beside:
            columns = (listed(read(name, "outcome")) for name in self.beside)
            values["outcome"] = list(map(list, zip(*columns, strict=True)))
        content = digests({name: read(name, "content") for name in self.content})
        return Columns(self.roles, values, content=content, others=self.others, **rows)


def find_columns(names: Labels, columns: Mapping[str, Any], record: Any = None) -> dict[str, Any]:
    """Assign the roles to column names: as told, else by the usual names.

    An answer and its reference, the right one, are taken only as told; trials and successes only
    in a table without outcomes.

    Examples
    --------
    >>> find_columns(["task_id", "epoch", "passed"], {})
    {'question': 'task_id', 'trial': 'epoch', 'outcome': 'passed'}
    """
    if side_by_side(names, columns):
        names = [*names, columns["outcome"]]
    _check_told(names, columns)
    skipped = {"content", *(("outcome", "trial") if _are_counts(names, columns) else _COUNTS)}
    if "reference" in columns:  # which says what is right
        skipped.add("outcome")
    taken = [name for role, name in columns.items() if role != "content"]
    roles = {}
    for role in ROLES:
        if role in columns and role != "content":
            roles[role] = columns[role]
        elif role not in skipped:
            roles |= _usual_column(role, names, [*taken, *roles.values()], record)
    roles |= {role: name for role, name in columns.items() if role.startswith(COVARIATE)}
    twice = [name for name in roles.values() if list(names).count(name) > 1]
    if twice:
        raise OutcomeError(
            f"column names must be distinct; got {twice[0]!r} more than once. Rename one of them."
        )
    return roles


def _usual_column(role: str, names: Labels, taken: Labels, record: Any) -> dict[str, Any]:
    """Return the one column with a usual name for a role, if there is any."""
    matches = usual_columns(role, names, taken)
    if role == "question":  # beside an id, its text is what was asked
        matches = [name for name in matches if meaning(name) not in ASKED] or matches
    if not matches and role == "outcome" and len(trial_columns(names)) > 1:
        raise beside_unnamed(names)
    if len(matches) != 1 and (matches or role in ("question", "outcome", *_COUNTS)):
        seen = f"several could be it: {matches}" if matches else "none has a usual name"
        marked = marked_fields(record) if role == "outcome" and not matches else []
        marked = [path for path in marked if path not in taken]
        within = fields_with_records(record) if role == "question" and not matches else []
        or_within = "; or, if records are within it: ", Argument("records", "".join(within[:1]))
        raise OutcomeError(
            f"the table must have one {role} column; {seen} among {shown(list(names), 400)}. "
            + f"Marks of 0 and 1 are in {shown(marked)[1:-1]}. " * bool(marked) + "Name it: ",
            Argument("columns", {role: marked[0] if len(marked) == 1 else ...}, "tally"),
            *or_within * bool(within), "; if two share a name, rename one.",
        )  # fmt: skip
    return {role: matches[0]} if matches else {}


def usual_columns(role: str, names: Labels, taken: Collection[Any]) -> list[Any]:
    """Return the columns with a usual name for a role: of its first line that names any."""
    free = [name for name in names if name not in taken]
    by_line = ([name for name in free if meaning(name) in line.split()] for line in ROLES[role])
    return next(filter(None, by_line), [])


def side_by_side(names: Labels, columns: object) -> tuple[Any, ...]:
    """Return the columns of outcomes that stand side by side: those of a text, or of a tuple.

    Examples
    --------
    >>> side_by_side(["task", "run0", "run1"], {"outcome": "run0, run1"})
    ('run0', 'run1')
    """
    outcome = columns.get("outcome") if isinstance(columns, Mapping) else None
    if isinstance(outcome, str) and "," in outcome and outcome not in names:
        parts = tuple(part.strip() for part in outcome.split(","))
        return parts if {*parts} <= {*names} else ()
    for name in outcome if isinstance(outcome, tuple) else ():
        if name not in names:
            raise OutcomeError(
                "marks", f" must name columns of the table; {shown(name)} is none. It has "
                f"{shown(list(names), 160)}.",
            )  # fmt: skip
    return outcome if isinstance(outcome, tuple) else ()


def beside_unnamed(names: Labels) -> OutcomeError:
    """Return the error for a table whose rows are questions, with a column for every trial."""
    trials = trial_columns(names)
    return OutcomeError(
        f"the table must have one outcome column; {shown(trials)} look like the trials of a "
        "question, side by side. Name them all: ",
        Argument("columns", {"outcome": ",".join(map(str, trials))}), ".",
    )  # fmt: skip


def usual_names(*roles: str) -> set[str]:
    """Return the usual names of columns with some roles; with any, if none is named."""
    return {name for role in roles or ROLES for line in ROLES[role] for name in line.split()}


def trial_columns(names: Labels) -> list[Any]:
    """Return the columns that are named as the trials of a question: trial_1, run 2.

    Examples
    --------
    >>> trial_columns(["task", "trial_1", "Run 2", "trials"])
    ['trial_1', 'Run 2']
    """
    return [name for name in names if _TRIAL_COLUMN.fullmatch(meaning(name))]


def marked_fields(record: object) -> list[str]:
    """Return the paths of fields that hold a mark of 0 and 1: those with usual names, if any.

    Examples
    --------
    >>> marked_fields({"id": 7, "ex": 1, "kind": "a"})
    ['ex']
    >>> marked_fields({"id": 7, "ex": 1, "tries": [{"correct": False}], "test": {"passed": True}})
    ['tries[].correct', 'test.passed']
    """
    marks = [path for path, mark in _fields(record, 3) if str(mark).lower() in BINARY_TEXTS]
    names = {path: meaning(path.rpartition(".")[2]) for path in marks}
    ids, usual = usual_names("system", "question", "trial"), usual_names("outcome")
    return [path for path in marks if names[path] in usual] or [
        path for path in marks if names[path] not in ids
    ]


def _fields(value: object, depth: int) -> Iterator[tuple[str, object]]:
    """Yield path and value of the fields of an object, and of the first object of a list."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        listed = isinstance(inner, list) and inner and isinstance(inner[0], dict)
        nested = inner[0] if listed else inner
        if isinstance(nested, dict) and depth > 1:
            yield from (
                (f"{name}{'[]' * bool(listed)}.{path}", held)
                for path, held in _fields(nested, depth - 1)
            )
        elif not isinstance(inner, list | dict):
            yield str(name), inner


def fields_with_records(value: object) -> list[str]:
    """Return the names of the fields of an object that are lists of objects."""
    return [
        str(name)
        for name, inner in (value.items() if isinstance(value, dict) else ())
        if isinstance(inner, list) and inner and isinstance(inner[0], dict)
    ]


def _are_counts(names: Labels, columns: Mapping[str, Any]) -> bool:
    """Return whether the rows of a table are counts: of trials and successes, with no outcome."""
    if "outcome" in columns or "answer" in columns:
        return False
    meanings = set(map(meaning, names))
    usual = not meanings & usual_names("outcome") and all(
        meanings & usual_names(role) for role in _COUNTS
    )
    return usual or any(role in columns for role in _COUNTS)


def _check_told(names: Labels, columns: object) -> None:
    """Check the columns argument: known roles, columns that exist, one role each."""
    valid = isinstance(columns, Mapping) and all(
        isinstance(role, str)
        and (role in ROLES or role.startswith(COVARIATE))
        and isinstance(name, str | int | tuple)
        and name in names
        for role, name in columns.items()
    )
    if not valid or not isinstance(columns, Mapping):
        raise OutcomeError(
            f"columns must map {', '.join(ROLES)} to names in the table; got {shown(columns)} for "
            f"a table with columns {shown(list(names), 400)}."
        )
    roles, used = set(columns), [name for role, name in columns.items() if role != "content"]
    for is_wrong, rule, remedy in (
        (
            "reference" in roles and ("answer" not in roles or "outcome" in roles),
            ": a reference goes with an answer column and takes the place of an outcome column",
            "Name answer and reference, or answer and outcome.",
        ),
        (
            roles & set(_COUNTS) and roles & {"outcome", "answer", "trial", *BY_TRIAL},
            ": trials and successes count the outcomes of a row, which then has none of its own",
            "Name the one or the other.",
        ),
        (
            len(set(used)) < len(used),
            " must give every role its own column",
            "Name another column, or leave the role out.",
        ),
    ):
        if is_wrong:
            raise OutcomeError(f"columns{rule}; got {shown(dict(columns))}. {remedy}")


def labels(table: Columns, role: str) -> tuple[Ints, list[Any]]:
    """Return codes and labels of an id column, in order of first appearance; refuse nulls."""
    values = table.values[role]
    if isinstance(values, list | tuple):
        values = _object_labels(table, role, list(values))
    try:
        codes, distinct = pd.factorize(values)
    except TypeError:  # lists and objects have no hash
        row = next(row for row, label in enumerate(values) if label_fault(label))
        raise _no_label(table, role, row, values[row]) from None
    texts = list(distinct.tolist())
    if isinstance(values, np.ndarray) and values.dtype != object:
        return np.asarray(codes, np.int64), texts
    for code, label in enumerate([*texts, None]):
        if not (isinstance(label, str) and label.strip()) and label_fault(label):
            rows = np.flatnonzero(codes == (code if code < len(texts) else -1))
            if len(rows):
                raise _no_label(table, role, int(rows[0]), label)
    return np.asarray(codes, np.int64), texts


def _object_labels(table: Columns, role: str, values: list[Any]) -> NDArray[Any]:
    """Return labels of any types as an array of objects, equal where they are one label."""
    types = set(map(type, values))
    if role == "question" and types & set(_JSON):  # messages, say
        values = [_of_json(label) for label in values]
        types = set(map(type, values))
    if bool in types and len(types - {str}) > 1:
        raise OutcomeError(
            f"column {table.roles[role]!r} must not mix true/false with numbers, which are equal "
            f"to them, as {role} labels. Write them as text."
        )
    return np.fromiter(values, object, len(values))


def _of_json(label: object) -> object:
    """Return the label of a question that is named by a list or object: a digest of it."""
    named = isinstance(label, _JSON) and getattr(label, "shape", None) != () and len(label) > 0
    return f"#{digest(canonical(label))}" if named else label


def _no_label(table: Columns, role: str, row: int, label: object) -> OutcomeError:
    """Return the error for an id that is no label."""
    if is_missing(label):
        return OutcomeError(
            f"column {table.roles[role]!r} must identify the {role} of every row; "
            f"{table.place(row)} has none. Remove the row or give it a label."
        )
    return OutcomeError(
        f"column {table.roles[role]!r} must have text or numbers as {role} labels; "
        f"{shown(label)} at {table.place(row)} {label_fault(label)}. Replace it by text."
    )


def trial_text(label: Any) -> object:
    """Return one text for 1, 1.0 and '1': a trial recorded in two types is the same trial."""
    try:
        return str(label if isinstance(label, str) or label != int(label) else int(label))
    except (ValueError, TypeError, OverflowError):  # no number, infinite, or too long to print
        return label if isinstance(label, int) else str(label)


def one_row_a_trial(table: Columns) -> Columns:
    """Return the table with a row for each element of its lists of outcomes.

    Examples
    --------
    >>> roles = {"question": "id", "outcome": "accs"}
    >>> table = Columns(roles, {"question": ["a", "b"], "outcome": [[1, 0], "[true]"]})
    >>> rows = one_row_a_trial(table)
    >>> rows.values["question"], rows.values["outcome"], rows.place(1)
    (['a', 'a', 'b'], [1, 0, True], 'row 0')
    """
    outcomes = table.values.get("outcome")
    single = {int, float, bool, NoneType}
    if not isinstance(outcomes, list | tuple) or set(map(type, outcomes)) <= single:
        return table
    cells = [_list_of(cell) for cell in outcomes]
    if all(cell is None for cell in cells):
        return table
    _check_lists(table, cells)
    lengths = [1 if cell is None else len(cell) for cell in cells]
    rows = np.repeat(np.arange(len(cells)), lengths)
    values = {
        role: _by_trial(table, role, lengths) if role in _LISTED else _at(table.listed(role), rows)
        for role in table.roles
    }
    if "trial" in values:
        position = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        pairs = zip(values["trial"], position.tolist(), strict=True)
        values["trial"] = [f"{label}/{number}" for label, number in pairs]
    numbers = [table.number(row) for row in rows.tolist()]
    content = {name: _at(digests, rows) for name, digests in table.content.items()}
    return replace(table, values=values, numbers=numbers, content=content)


def _at(values: Labels, rows: Ints) -> list[Any]:
    """Return the values of some rows."""
    return [values[row] for row in rows.tolist()]


def _check_lists(table: Columns, cells: Sequence[list[Any] | None]) -> None:
    """Refuse empty lists, and lists beside single outcomes."""
    where = f"of column {table.roles['outcome']!r}"
    rows = [row for row, value in enumerate(table.values["outcome"]) if not is_missing(value)]
    for row in rows:
        cell = cells[row]
        if cell is not None and not len(cell):
            raise OutcomeError(
                f"a list of outcomes must not be empty; {table.place(row)} {where} has one. Write "
                "null for a trial without outcome, or remove the row."
            )
        if (cell is None) != (cells[rows[0]] is None):
            value = shown(table.value("outcome", row))
            raise OutcomeError(
                f"outcomes must all be lists or all be single; {value} at {table.place(row)} "
                f"{where} is not as those before. Write every outcome as one of both."
            )


def _list_of(cell: object) -> list[Any] | None:
    """Return a list that a cell holds, or that its text is; else None."""
    if isinstance(cell, np.ndarray):
        return cell.tolist() if cell.ndim else None
    if isinstance(cell, list | tuple):
        return list(cell)
    longest = 1 << 20  # characters of a cell that is read as a list
    if not isinstance(cell, str) or not cell.lstrip().startswith("[") or len(cell) > longest:
        return None
    for read in (json.loads, ast.literal_eval):  # pandas writes lists as Python does
        try:
            value = read(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def _by_trial(table: Columns, role: str, lengths: Sequence[int]) -> list[Any]:
    """Return a value for each trial, from lists as long as those of outcomes."""
    values = []
    for row, (cell, length) in enumerate(zip(table.values[role], lengths, strict=True)):
        elements = _list_of(cell)
        elements = [cell] if elements is None else elements
        if len(elements) != length:
            raise OutcomeError(
                f"a list of {role}s must be as long as that of outcomes; {table.place(row)} has "
                f"{shown(cell)} for {length} outcomes. Correct it, or leave the column out."
            )
        values += elements
    return values


ASKED = (
    "prompt", "question", "question_text", "input", "problem", "instruction", "user_input",
    "inputs", "query",
)  # fmt: skip
RIGHT = ("answer", "target", "gold", "ground_truth", "expected_answer")
UNKNOWN = 0  # in place of the digest of a cell that says nothing


def meaning(name: object) -> str:
    """Return the name of a column as names are compared; nothing if it is no text.

    Examples
    --------
    >>> [meaning(name) for name in ("Sample ID", "isCorrect", "success-count", 3)]
    ['sample_id', 'is_correct', 'success_count', '']
    """
    if not isinstance(name, str):
        return ""
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\s_-]+", "_", words).strip("_").lower()


def content_columns(
    names: Iterable[Any], roles: Mapping[str, Any], columns: Mapping[str, Any]
) -> list[Any]:
    """Return the columns that hold what was asked, or what is right: as told, else by their names.

    Examples
    --------
    >>> content_columns(["id", "prompt", "answer", "reward"], {"question": "id"}, {})
    ['prompt', 'answer']
    """
    if "content" in columns:
        return [columns["content"]] if columns["content"] != roles["question"] else []
    taken = set(roles.values())
    usual = (*ASKED, *RIGHT)
    return [name for name in names if meaning(name) in usual and name not in taken]


def is_right_answer(name: object) -> bool:
    """Return whether a column of content holds what is right, not what was asked."""
    return meaning(name) in RIGHT


def canonical(value: object) -> str:
    """Return one text for a JSON value, whatever the order of its keys."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True, default=_plain)
    except (TypeError, ValueError, RecursionError):  # no JSON: keys of two types, a cycle
        return shown(value, 1 << 20)


def _plain(value: object) -> object:
    """Return what an array or a foreign number holds, for JSON."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else shown(value, 1 << 20)


def digest(*parts: object) -> str:
    """Return a short digest of the text of the parts.

    Examples
    --------
    >>> digest("2 + 2", "4") == digest("2 + 2", "4") != digest("2 + 2", "5")
    True
    """
    text = "".join(f"{part}\x00" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def digests(columns: Mapping[Any, Labels]) -> dict[Any, list[int]]:
    """Return the digests of columns that hold what was asked, by name; each distinct cell once.

    A number in a column such as ``question`` says nothing of what was asked.

    Examples
    --------
    >>> first, second, missing, number = digests({"prompt": ["2 + 2", "2 + 2", None, 4]})["prompt"]
    >>> first == second != UNKNOWN, missing == number == UNKNOWN
    (True, True)
    """
    by_name = {}
    for name, cells in columns.items():
        usual = meaning(name) in ASKED
        try:
            codes, distinct = pd.factorize(np.fromiter(cells, object))
        except TypeError:  # lists and objects have no hash
            codes, distinct = np.arange(len(cells)), np.fromiter(cells, object)
        values = np.zeros(len(distinct) + 1, np.int64)  # the code -1 is a missing cell's
        for code, cell in enumerate(distinct):
            if not (is_absent(cell) or (usual and number_of(cell) is not None)):
                values[code] = int(digest(canonical(cell)), 16) >> 1 or 1
        by_name[name] = values[codes].tolist()
    return by_name
