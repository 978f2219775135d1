"""The columns of a long table by role, the labels in them, and cells that hold lists.

Also digests of the columns of content: the prompts and right answers, by which rows of one
question are compared.
"""

import ast
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.role_assignment import assign_roles, refuse_row_as_names
from bayesatk.data.role_doubts import (
    Doubt,
    answers_in_content,
    columns_of_content,
    doubts,
    ways_to_tell_trials_apart,
)
from bayesatk.data.roles import (
    BY_TRIAL,
    COUNTS,
    LABELS,
    PLACEHOLDERS,
    PROMPT_NAMES,
    ROLES,
    Sample,
    as_tuple,
    columns_of,
    normalized_name,
    row_matches,
    systems_of_columns,
    systems_of_trials,
)
from bayesatk.data.validation import (
    Labels,
    OutcomeError,
    fewest_trials,
    is_absent,
    is_missing,
    label_fault,
    number_of,
    share_of,
    shares_of,
    shown,
)

TRUTHS, MARKS = ("wrong", "right"), ("none", "wrong", "right")  # labels of `truth_count`
_COLLECTIONS = (list, dict, tuple, np.ndarray)
_LISTED = ("outcome", "answer", *BY_TRIAL)  # roles of columns with a list of trials in a cell
_BY_SYSTEM = ("rate", "successes", "failures")  # roles whose several columns are of systems
NO_CONTENT = 0  # digest of a cell without content
SYSTEMS = "(names of columns)"  # stands for the system column of a wide table


@dataclass(frozen=True)
class Columns:
    """The columns of a long table that have a role, and the places of its rows in their source.

    Parameters
    ----------
    roles : mapping
        Name of the column with each role.
    values : mapping
        Its values, by role: a list, a numeric array, or labels coded by pandas.
    place : callable
        Place of a row for messages; default: by its number.
    content : mapping
        Digest of every cell of the columns of content, by name.
    unused : tuple
        Names of the columns without a role.
    doubts, apart : sequence
        Warnings about the roles; remedies where several rows have one trial number.
    passed_over : mapping of str to int
        Number of rows or cells that were left out, by the reason for the data card.
    of_file : bool
        Whether `bayesatk.load` reads the table, so that errors may propose its options.
    """

    roles: Mapping[str, Any]
    values: Mapping[str, Any]
    place: Callable[[int], str] = field(default_factory=lambda: rows_from(0))
    content: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    unused: tuple[Any, ...] = ()
    doubts: Sequence[Doubt] = ()
    apart: Sequence[Doubt] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    of_file: bool = False

    def __len__(self) -> int:
        return len(self.values["question"])

    @property
    def counted(self) -> bool:
        """Whether the rows are counts of trials."""
        return bool({*COUNTS} & self.roles.keys())

    def take(self, rows: Any) -> "Columns":
        """Return the rows at these positions, in this order."""
        rows, place = np.asarray(rows, np.int64), self.place
        values = {
            role: [cells[row] for row in rows.tolist()] if isinstance(cells, list) else cells[rows]
            for role, cells in self.values.items()
        }
        return replace(
            self,
            values=values,
            place=lambda row: place(rows[row]),
            content={
                name: [cells[row] for row in rows.tolist()] for name, cells in self.content.items()
            },
        )

    def with_column(self, role: str, name: Any, values: Any) -> "Columns":
        """Return the table with a column for a role, which replaces the present one if any."""
        roles = {**self.roles, role: name}
        in_order = dict.fromkeys([*filter(roles.__contains__, ROLES), *roles])
        return replace(
            self,
            roles={role: roles[role] for role in in_order},
            values={**self.values, role: values},
        )

    def without(self, role: str) -> "Columns":
        """Return the table without the column with a role."""
        roles, values = dict(self.roles), dict(self.values)
        del roles[role], values[role]
        return replace(self, roles=roles, values=values)

    def value(self, role: str, row: int) -> Any:
        """Return a value as a Python object."""
        values = self.values[role]
        return values[row].item() if isinstance(values, np.ndarray) else values[row]

    def listed(self, role: str) -> list[Any]:
        """Return the values of a column as a list of Python objects."""
        return listed(self.values[role])


def rows_from(first: int) -> Callable[[int], str]:
    """Return a function that names the places of rows, of which the first has this number."""
    return lambda row: f"row {first + row}"


def listed(values: Any) -> list[Any]:
    """Return the values of a column as a list of Python objects."""
    return list(values) if isinstance(values, list | tuple) else list(values.tolist())


@dataclass(frozen=True)
class Picked:
    """The columns of a table that are read, by role, and warnings from its first rows.

    Labels of several columns with one role are joined. Several columns of outcomes or rates are
    the trials of a row or, in a wide table, the values of the systems.

    Parameters
    ----------
    roles : dict
        Names of columns, or tuples of them, by role.
    content : list
        Columns of prompts and right answers.
    unused : tuple
        Columns without a role.
    where : mapping
        Values of columns that rows must have to be read.
    drops : bool
        Whether rows without a question are left out.
    of_file : bool
        Whether it is a table in a file.
    systems : tuple
        Names of the systems, in a wide table.
    doubts, apart : sequence
        Warnings about the roles; remedies where several rows have one trial number.
    constants : dict
        Values that are the same in all rows, by the placeholder or number that is named in place
        of a column.
    """

    roles: dict[str, Any]
    content: list[Any]
    unused: tuple[Any, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    drops: bool = False
    of_file: bool = False
    systems: tuple[Any, ...] = ()
    doubts: Sequence[Doubt] = ()
    apart: Sequence[Doubt] = ()
    constants: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, sample: Sample, columns: Mapping[str, Any], **rows: Any) -> "Picked":
        """Return the columns with a role: as named, else by their usual names and values."""
        of_file = rows.get("of_file", False)
        if of_file:
            refuse_row_as_names(sample)
        roles = assign_roles(sample, columns, of_file)
        content = columns_of_content(sample, roles, columns)
        answers = answers_in_content(sample, roles, () if "content" in columns else content)
        content = [name for name in content if name not in answers]
        constants = {name: "all rows" for name in PLACEHOLDERS} | rows.pop("constants", {})
        if "trials" in roles and not {*columns_of(roles, "trials")} <= {*sample.names}:
            constants |= {roles["trials"]: roles["trials"]}
        beside = [roles[role] for role in _BY_SYSTEM if isinstance(roles.get(role), tuple)]
        if not rows.get("systems"):
            trials = as_tuple(roles.get("outcome"))
            rows["systems"] = (
                systems_of_columns(beside[0])
                if beside
                else systems_of_trials(trials, numbered="outcome" in columns)
            )
        used = {*columns_of(roles, *roles), *content, *rows.get("where", ())}
        used |= {name.partition(".")[0] for name in used if isinstance(name, str)}
        unused = tuple(name for name in sample.names if name not in used)
        told = [name for name in unused if name not in rows.get("systems", ())]
        found_doubts = [*answers.values(), *doubts(sample, roles, told, columns, of_file)]
        return cls(
            roles,
            content,
            unused,
            doubts=found_doubts,
            apart=ways_to_tell_trials_apart(sample, roles, unused, of_file),
            constants=constants,
            **rows,
        )

    @property
    def needed(self) -> list[Any]:
        """Names of the columns that are read."""
        named = [*columns_of(self.roles, *self.roles), *self.content, *self.where]
        return [name for name in dict.fromkeys(named) if name not in self.constants]

    def table(self, read: Callable[[Any, str], Any], **rows: Any) -> Columns:
        """Read each column by its name and role, and return the long table."""
        cells = {
            role: [None if name in self.constants else read(name, role) for name in as_tuple(names)]
            for role, names in self.roles.items()
        }
        length = next(
            len(column)
            for columns_of_role in cells.values()
            for column in columns_of_role
            if column is not None
        )
        values = {}
        for role, columns_of_role in cells.items():
            names = as_tuple(self.roles[role])
            complete = [
                [self.constants[name]] * length if column is None else column
                for name, column in zip(names, columns_of_role, strict=True)
            ]
            joined = zip(*map(listed, complete), strict=True) if len(complete) > 1 else ()
            if len(complete) == 1:
                values[role] = complete[0]
            elif role in LABELS:
                values[role] = list(map(_joined, joined))
            else:
                values[role] = list(map(list, joined))
        content = digests({name: read(name, "content") for name in self.content})
        named = {
            role: ",".join(map(str, name)) if isinstance(name, tuple) else name
            for role, name in self.roles.items()
        }
        table = Columns(
            named,
            values,
            content=content,
            unused=self.unused,
            doubts=self.doubts,
            apart=self.apart,
            of_file=self.of_file,
            **rows,
        )
        table = self._selected_rows(table, read)
        if self.systems:
            table = _of_systems(table, self.roles, self.systems)
        elif isinstance(self.roles.get("outcome"), tuple):
            table = _without_trailing_blanks(table)
        return counts_of_rates(table) if "rate" in self.roles else table

    def _selected_rows(self, table: Columns, read: Callable[[Any, str], Any]) -> Columns:
        """Return the rows that fit `where`, without those that lack a question if `drops`."""
        if self.where:
            wanted = {name: listed(read(name, "where")) for name in self.where}
            rows = [
                dict(zip(wanted, values, strict=True))
                for values in zip(*wanted.values(), strict=True)
            ]
            table = table.take(
                [place for place, row in enumerate(rows) if row_matches(row.get, self.where)]
            )
        if not self.drops:
            return table
        labels = table.listed("question")
        with_question = [row for row, label in enumerate(labels) if not is_absent(label)]
        passed_over = {"rows without a question, left out": len(labels) - len(with_question)}
        return replace(table.take(with_question), passed_over=passed_over)


def _joined(parts: tuple[Any, ...]) -> str:
    """Return several labels joined to one; "" if one of them is missing."""
    return "" if any(map(is_absent, parts)) else " / ".join(map(str, map(trial_text, parts)))


def _without_trailing_blanks(table: Columns) -> Columns:
    """Return the table without blank cells at the end of rows of trials, which were not run."""
    cells, blanks = [], 0
    for row in table.values["outcome"]:
        last = max(
            (position for position, cell in enumerate(row) if not is_absent(cell)), default=0
        )
        cells.append(row[: last + 1])
        blanks += len(row) - last - 1
    passed_over = {"blank cells at the end of rows, trials that were not run": blanks}
    table = replace(table, passed_over={**table.passed_over, **passed_over})
    return table.with_column("outcome", table.roles["outcome"], cells)


def _of_systems(table: Columns, roles: Mapping[str, Any], systems: Sequence[Any]) -> Columns:
    """Return a wide table with a row for each system."""
    length, number = len(table), len(systems)
    melted = table.take(np.repeat(np.arange(length), number))
    for role in ("outcome", *_BY_SYSTEM, "trials"):
        if isinstance(roles.get(role), tuple):
            cells = [cell for row in table.listed(role) for cell in row]
            melted = melted.with_column(role, table.roles[role], cells)
    labels = [*systems] * length
    if "system" in table.roles:
        labels = list(map(_joined, zip(melted.listed("system"), labels, strict=True)))
    return melted.with_column("system", SYSTEMS, labels)


def counts_of_rates(table: Columns) -> Columns:
    """Return the table with counts of successes in place of rates.

    If a rate without a percent sign exceeds 1, all are percentages. Without a column of trials,
    rates are fractions, such as 4/5: successes of trials.
    """
    column = table.roles["rate"]
    if "trials" not in table.roles:
        parts = [str(value).split("/") for value in table.listed("rate")]
        counts = {
            role: [part[place].strip() for part in parts]
            for place, role in enumerate(("successes", "trials"))
        }
        for role, values in counts.items():
            table = table.with_column(role, column, values)
        return table.without("rate")
    shares, half_unit = shares_of(table.listed("rate"))
    trials = np.array([number_of(value) for value in table.listed("trials")], float)
    counts, rounding = shares * trials, half_unit * trials  # in successes
    fit = (trials >= 1) & (trials == np.round(trials)) & (counts >= 0.0) & (counts <= trials)
    missed = np.abs(counts - np.round(counts))
    fit &= missed <= np.maximum(rounding, 0.2)  # of a whole number
    if not fit.all():
        row = int(np.argmin(fit))
        raise OutcomeError(
            f"column {column!r} must have shares or percentages of {trials[row]:g} trials; "
            f"{table.place(row)} has {shown(table.value('rate', row))}. Correct the number of "
            "trials, one for all or a column: ",
            Argument("columns", {"rate": column, "trials": ...}),
            "; or, if it is a score of each trial: ",
            Argument("columns", {"outcome": column}, "tally"),
            Argument("scores", "numbers", "tally"),
            ".",
        )
    kind = (
        "percent" if max(share_of(rate) or 0.0 for rate in table.listed("rate")) > 1.0 else "share"
    )
    if (unsure := rounding[missed > 1e-6 * trials].max(initial=0.0)) > 0.5:
        doubt = (
            f"shares in column {column!r} seem rounded by up to {half_unit:g}, so that successes "
            f"are known to {unsure:.0f} either way; give them, or more digits"
        )
        table = replace(table, doubts=(*table.doubts, (doubt,)))
    fewest, given = fewest_trials(shares, half_unit), number_of(table.roles["trials"])
    number = int(((shares > 0.0) & (shares < 1.0)).sum())
    enough = 8  # rates, of which half would be of an odd number of successes
    if given and fewest and given > fewest and given % fewest == 0 and number >= enough:
        doubt = (
            f"all rates in column {column!r} fit {fewest} of each question as well as the "
            f"{given:g} trials that are named; name {fewest} if there were no more"
        )
        table = replace(table, doubts=(*table.doubts, (doubt,)))
    table = table.with_column("trials", table.roles["trials"], trials.astype(int).tolist())
    successes = np.round(counts).astype(int).tolist()
    return table.without("rate").with_column("successes", f"{column} ({kind})", successes)


def labels(table: Columns, role: str) -> tuple[Ints, list[Any]]:
    """Return codes and labels of a column, in order of first appearance; refuse missing labels."""
    values = table.values[role]
    if isinstance(values, list | tuple):
        values = _object_labels(table, role, list(values))
    try:
        codes, distinct = pd.factorize(values)
    except TypeError:  # lists and objects have no hash
        row = next(row for row, label in enumerate(values) if label_fault(label))
        raise _label_error(table, role, row, values[row]) from None
    texts = list(distinct.tolist())
    if isinstance(values, np.ndarray) and values.dtype != object:
        return np.asarray(codes, np.int64), texts
    for code, label in enumerate([*texts, None]):
        if not (isinstance(label, str) and label.strip()) and label_fault(label):
            rows = np.flatnonzero(codes == (code if code < len(texts) else -1))
            if len(rows):
                raise _label_error(table, role, int(rows[0]), label)
    return np.asarray(codes, np.int64), texts


def _object_labels(table: Columns, role: str, values: list[Any]) -> NDArray[Any]:
    """Return labels of any types as an array of objects; refuse true and false beside numbers."""
    types = set(map(type, values))
    if role == "question" and types & set(_COLLECTIONS):  # such as lists of messages
        values = [_digest_label(label) for label in values]
        types = set(map(type, values))
    if bool in types and len(types - {str}) > 1:
        raise OutcomeError(
            f"column {table.roles[role]!r} must not mix true/false with numbers, which are equal "
            f"to them, as {role} labels. Write them as text."
        )
    return np.fromiter(values, object, len(values))


def _digest_label(label: object) -> object:
    """Return a digest of a list or object as the label of a question; other labels as they are."""
    is_collection = (
        isinstance(label, _COLLECTIONS) and getattr(label, "shape", None) != () and len(label) > 0
    )
    return f"#{digest(canonical(label))}" if is_collection else label


def _label_error(table: Columns, role: str, row: int, label: object) -> OutcomeError:
    """Return the error for a value that cannot be a label."""
    if is_absent(label):
        drop = ("; or leave such rows out: ", Argument("missing_question", "drop"))
        return OutcomeError(
            f"column {table.roles[role]!r} must identify the {role} of every row; "
            f"{table.place(row)} has none. Remove the row or give it a label (of merged cells: "
            "fill it down)",
            *(drop if role == "question" and table.of_file else ()),
            ".",
        )
    return OutcomeError(
        f"column {table.roles[role]!r} must have text or numbers as {role} labels; "
        f"{shown(label)} at {table.place(row)} {label_fault(label)}. Replace it by text."
    )


def trial_text(label: Any) -> object:
    """Return one text for the labels 1, 1.0 and '1' of a trial."""
    try:
        return str(label if isinstance(label, str) or label != int(label) else int(label))
    except (ValueError, TypeError, OverflowError):  # no number, infinite, or too long to print
        return label if isinstance(label, int) else str(label)


def one_row_a_trial(table: Columns) -> Columns:
    """Return the table with a row for every element of its lists of outcomes.

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
    rows = table.take(np.repeat(np.arange(len(cells)), lengths))
    values = {role: _by_trial(table, role, lengths) for role in _LISTED if role in table.roles}
    return replace(rows, values={**rows.values, **values})


def _check_lists(table: Columns, cells: Sequence[list[Any] | None]) -> None:
    """Refuse empty lists, lists beside single outcomes, and lists in rows of a numbered trial."""
    where = f"of column {table.roles['outcome']!r}"
    if "trial" in table.roles and any(cell is not None and len(cell) > 1 for cell in cells):
        raise OutcomeError(
            f"a row of one trial must have one outcome; {table.place(0)} {where} has "
            f"{shown(table.value('outcome', 0))} beside trial "
            f"{shown(table.value('trial', 0))}. Name the outcome of the trial: ",
            Argument("columns", {"outcome": ...}, "tally"),
            f"; or, if every element is a trial, leave column {table.roles['trial']!r} out",
            *((": ", Argument("ignore", [table.roles["trial"]])) if table.of_file else ()),
            ".",
        )
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
    """Return the list in a cell, or the list that its text stands for; None for anything else."""
    if isinstance(cell, np.ndarray):
        return cell.tolist() if cell.ndim else None
    if isinstance(cell, list | tuple):
        return list(cell)
    max_characters = 1 << 20  # of a text that is parsed as a list
    if not isinstance(cell, str) or not cell.lstrip().startswith("[") or len(cell) > max_characters:
        return None
    for read in (json.loads, ast.literal_eval):  # pandas writes lists as Python does
        try:
            value = read(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def _by_trial(table: Columns, role: str, lengths: Sequence[int]) -> list[Any]:
    """Return a value for every trial, from lists as long as the lists of outcomes."""
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


def canonical(value: object) -> str:
    """Return a text for a JSON value that does not depend on the order of its keys."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True, default=_jsonable)
    except (TypeError, ValueError, RecursionError):  # no JSON: keys of two types, a cycle
        return shown(value, 1 << 20)


def _jsonable(value: object) -> object:
    """Return an array or number of NumPy as Python objects, anything else as text."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else shown(value, 1 << 20)


def digest(*values: object) -> str:
    """Return a digest of the texts of the parts, 16 hexadecimal digits.

    Examples
    --------
    >>> digest("2 + 2", "4") == digest("2 + 2", "4") != digest("2 + 2", "5")
    True
    """
    text = "".join(f"{value}\x00" for value in values)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def digests(columns: Mapping[Any, Labels]) -> dict[Any, list[int]]:
    """Return the digests of the cells of columns of content, by name.

    A number in a column such as ``question`` is an id, not a prompt, and has no content.

    Examples
    --------
    >>> first, second, missing, number = digests({"prompt": ["2 + 2", "2 + 2", None, 4]})["prompt"]
    >>> first == second != NO_CONTENT, missing == number == NO_CONTENT
    (True, True)
    """
    by_name = {}
    for name, cells in columns.items():
        may_hold_ids = normalized_name(name) in PROMPT_NAMES
        try:
            codes, distinct = pd.factorize(np.fromiter(cells, object))
        except TypeError:  # lists and objects have no hash
            codes, distinct = np.arange(len(cells)), np.fromiter(cells, object)
        values = np.zeros(
            len(distinct) + 1, np.int64
        )  # the last is for the code -1 of missing cells
        for code, cell in enumerate(distinct):
            if not (is_absent(cell) or (may_hold_ids and number_of(cell) is not None)):
                values[code] = int(digest(canonical(cell)), 16) >> 1 or 1
        by_name[name] = values[codes].tolist()
    return by_name
