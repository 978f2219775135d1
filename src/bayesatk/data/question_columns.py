"""What is known of the questions: their group, weight and covariates, one value for each.

Tables, logs and xarray objects bring them under names; arrays have no names, and values are given
by question. Either way they end as arrays (question,), text or numbers, beside the counts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import COVARIATE, GROUP, WEIGHT, Columns
from bayesatk.data.long_form import LongForm
from bayesatk.data.validation import OutcomeError, is_missing, shown

# Names that counts and results give to something of their own.
OWN = frozenset(
    {"system", "question", "trial", "category", "count", "missing", "score", "trials", "successes",
     "category_score", "prior_count", "answer", "unanswered", "chain", "draw", "target", "k"}
)  # fmt: skip
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*", re.ASCII | re.IGNORECASE)
_ROLES = (GROUP, WEIGHT)
_WHOLE = 2**53  # below which whole numbers of any kind are exact


@dataclass(frozen=True)
class QuestionColumns:
    """The columns of questions that were asked for.

    Parameters
    ----------
    roles : dict of str to str
        Names of columns by role: ``"group"``, ``"weight"``, or ``"covariate NAME"``.
    given : dict of str to values
        Values by question, by the name under which they are kept.
    """

    roles: Mapping[str, Any]
    given: Mapping[str, Any]

    @classmethod
    def of(cls, group: object, covariates: object, weight: object = None) -> "QuestionColumns":
        """Read the arguments: names of columns, or values by question.

        Examples
        --------
        >>> QuestionColumns.of("domain", ["minutes"]).roles
        {'group': 'domain', 'covariate minutes': 'minutes'}
        >>> QuestionColumns.of(["law", "art"], {"minutes": [3, 5]}).given
        {'group': ['law', 'art'], 'minutes': [3, 5]}
        """
        told = {GROUP: group, WEIGHT: weight}
        roles: dict[str, Any] = {name: one for name, one in told.items() if isinstance(one, str)}
        given = {name: one for name, one in told.items() if one is not None and name not in roles}
        if isinstance(covariates, pd.DataFrame):
            covariates = {name: covariates[name] for name in covariates.columns}
        if isinstance(covariates, Mapping):
            given |= covariates
            names = list(covariates)
        else:
            listed = isinstance(covariates, Sequence) and not isinstance(covariates, str)
            names = list(covariates) if listed else [] if covariates is None else [covariates]  # type: ignore[call-overload]
            roles |= {f"{COVARIATE}{name}": name for name in names}
        for name in names:
            taken = OWN | set(_ROLES)
            if not isinstance(name, str) or name in taken or names.count(name) > 1:
                raise OutcomeError(
                    Argument("covariates"), " must be names of columns, or values by name; each "
                    f"name is text, comes once, and is none of {', '.join(sorted(taken))}; "
                    f"got {shown(name)}. Rename the column.",
                )  # fmt: skip
        return cls(roles, given)

    def add_to(self, long: LongForm) -> LongForm:
        """Keep the columns that were named and the values that were given."""
        columns = dict(long.columns)
        for role, name in self.roles.items():
            kept = role.removeprefix(COVARIATE)
            if name in columns:
                own = columns.pop(name)
                columns[kept] = (
                    _by_question(kept, own.tolist(), long.questions) if role in _ROLES else own
                )
            if kept not in columns:
                what = role if role in _ROLES else "covariates"
                example = Argument("covariates", {name: ...}) if role not in _ROLES else ""
                raise OutcomeError(
                    Argument(what), " must have values by question where the data are no table "
                    "and have no coordinate of that name; got "
                    f"{shown(name)}. Give a list in the order of the questions, or a mapping from "
                    "question to value", f": {example}" * bool(example), ".",
                )  # fmt: skip
        for name, values in self.given.items():
            columns[name] = _by_question(name, values, long.questions)
        return replace(long, columns=columns)


def with_roles(columns: Mapping[str, Any], roles: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the columns of a table by role, with those of questions."""
    return {**columns, **roles} if roles and isinstance(columns, Mapping) else columns


def roles_of(table: Columns) -> list[str]:
    """Return the roles of a table's columns of questions."""
    return [role for role in table.roles if role in _ROLES or role.startswith(COVARIATE)]


class TableColumns:
    """Columns of questions of a long table, which may come in parts: all rows of one agree.

    Examples
    --------
    >>> found = TableColumns()
    >>> roles = {"question": "id", "group": "domain"}
    >>> found.add(Columns(roles, {"group": ["law", None]}), np.array([0, 1]), ["a", "b"])
    >>> found.add(Columns(roles, {"group": ["art"]}), np.array([1]), ["a", "b"])
    >>> found.by_question(["a", "b"])["group"].tolist()
    ['law', 'art']
    """

    def __init__(self) -> None:
        # By role and question: a value, and part and row where it stands first.
        self._known: dict[str, dict[int, tuple[Any, int, int, int]]] = {}
        self._names: dict[str, Any] = {}
        self._part = 0

    def add(self, table: Columns, question: NDArray[np.int64], questions: Sequence[Any]) -> None:
        """Take another part; a question is a place among all that have come so far."""
        self._part += 1
        for role in roles_of(table):
            self._names[role] = table.roles[role]
            self._add(table, role, question, questions)

    def _add(
        self, table: Columns, role: str, question: NDArray[np.int64], questions: Sequence[Any]
    ) -> None:
        values = [None if _absent(each) else each for each in table.listed(role)]
        if role == WEIGHT:
            values = _weights_of_rows(table, values)
        code = _codes(table, role, values)
        rows = np.flatnonzero(code >= 0)
        labels, place = np.unique(question[rows], return_index=True)
        first = np.zeros(len(questions), np.int64)
        first[labels] = rows[place]

        def refuse(value: Any, where: str, row: int) -> None:
            raise OutcomeError(
                f"column {table.roles[role]!r} must be the same in all rows of a question; {where} "
                f"has {shown(value)} and {table.place(row)} has {shown(values[row])}, both of "
                f"question {shown(questions[question[row]])}. Correct the rows, or do not name the "
                "column."
            )

        differs = rows[code[rows] != code[first[question[rows]]]]
        if len(differs):
            second = int(differs[0])
            one = int(first[question[second]])
            refuse(values[one], table.place(one), second)
        known = self._known.setdefault(role, {})
        for label, row in zip(labels.tolist(), rows[place].tolist(), strict=True):
            earlier, part, at, number = known.setdefault(
                label, (values[row], self._part, row, table.number(row))
            )
            if earlier != values[row]:
                same = part == self._part
                refuse(earlier, table.place(at) if same else f"{table.word} {number}", row)

    def by_question(self, questions: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return the value of every question, by the name under which it is kept."""
        found = {}
        for role, known in self._known.items():
            lacking = next((i for i in range(len(questions)) if i not in known), None)
            if role in _ROLES and lacking is not None:
                remedy = "Write one" + ", such as 'other'" * (role == GROUP)
                raise OutcomeError(
                    f"column {self._names[role]!r} must give the {role} of every question; "
                    f"question {shown(questions[lacking])} has none in any row. {remedy}."
                )
            values = [known[i][0] if i in known else None for i in range(len(questions))]
            found[role.removeprefix(COVARIATE)] = _plain(values, role == GROUP)
        return found


def _weights_of_rows(table: Columns, values: list[Any]) -> list[float | None]:
    """Return weights as numbers, or refuse the first that is none."""
    found = [None if each is None else _weight(each) for each in values]
    if 0.0 in found:
        row = found.index(0.0)
        raise OutcomeError(
            f"column {table.roles[WEIGHT]!r} must have weights, positive finite numbers; "
            f"{table.place(row)} has {shown(values[row])}. Leave out questions that shall not "
            "count, or name another column."
        )
    return found


def _weight(value: object) -> float:
    """Return a weight; 0 if it is none."""
    text = isinstance(value, str) and _NUMBER.fullmatch(value)
    if not text and (isinstance(value, bool) or not isinstance(value, Real)):
        return 0.0
    try:
        found = float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer beyond the floats
        return 0.0
    return found if 0.0 < found < np.inf else 0.0


def weights(values: Sequence[Any], questions: Sequence[Any]) -> NDArray[np.float64]:
    """Return the weights of the questions, or refuse the first that is none.

    Examples
    --------
    >>> weights([2, "0.5"], ["a", "b"]).tolist()
    [2.0, 0.5]
    """
    found = [_weight(each) for each in values]
    if 0.0 in found:
        place = found.index(0.0)
        raise OutcomeError(
            Argument(WEIGHT), " must have positive finite numbers, one for each question; that of "
            f"{shown(questions[place])} is {shown(values[place])}. Leave out questions that shall "
            "not count: data.sel(question=[...]); or rename a column or coordinate that is no "
            "weight.",
        )  # fmt: skip
    return np.array(found)


def unequal(weight: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return weights if they differ; those that are all the same are none."""
    return None if (weight == weight[0]).all() else weight


def _codes(table: Columns, role: str, values: list[Any]) -> NDArray[np.int64]:
    """Return a number for every distinct value, -1 where there is none."""
    try:
        return np.asarray(pd.factorize(np.fromiter(values, object, len(values)))[0], np.int64)
    except TypeError:
        row = next(i for i, each in enumerate(values) if isinstance(each, list | dict | set))
        raise OutcomeError(
            f"column {table.roles[role]!r} must have one text or number for every question; "
            f"{table.place(row)} has {shown(values[row])}. Name another column."
        ) from None


def left_out(table: Columns) -> tuple[str, ...]:
    """Return a note on the columns of a table that nothing is made of, if there are any."""
    if not table.others:
        return ()
    named = shown(list(table.others), 200)[1:-1]
    return (
        f"left out: columns {named}; group=, weight= and covariates= keep what belongs to "
        "questions",
    )


def _by_question(name: str, values: object, questions: Sequence[Any]) -> NDArray[Any]:
    """Return values given by label, or in the order of the questions."""
    if isinstance(values, xr.DataArray) and values.dims == ("question",):
        plain = "question" not in values.indexes
        values = values.values if plain else values.to_series()
    if isinstance(values, pd.Series):
        plain = isinstance(values.index, pd.RangeIndex)
        values = values.tolist() if plain else dict(values.items())
    argument = Argument(name if name in _ROLES else "covariates")
    if isinstance(values, Mapping):
        absent = [label for label in questions if label not in values]
        if absent:
            raise OutcomeError(
                argument, f" must have a value for every question; {name!r} has none for "
                f"{shown(absent[0])} ({len(absent)} of {len(questions)} questions). Add it.",
            )  # fmt: skip
        found = [values[label] for label in questions]
    else:
        listed = isinstance(values, np.ndarray | Sequence) and not isinstance(values, str | bytes)
        found = list(values) if listed and getattr(values, "ndim", 1) == 1 else []  # type: ignore[call-overload]
        if len(found) != len(questions):
            raise OutcomeError(
                argument, f" must have a value for each of the {len(questions)} questions, in "
                f"their order or by label; {name!r} is {shown(values)}. Give a list or a mapping.",
            )  # fmt: skip
    found = [each.item() if isinstance(each, np.generic) else each for each in found]
    if name == WEIGHT:
        return weights(found, questions)
    for label, each in zip(questions, found, strict=True):
        if isinstance(each, list | dict | set | tuple | np.ndarray):
            raise OutcomeError(
                argument, f" must be one text or number for every question; {name!r} of "
                f"{shown(label)} is {shown(each)}. Give single values.",
            )  # fmt: skip
        if name == GROUP and _absent(each):
            raise OutcomeError(
                argument, f" must name the group of every question; that of {shown(label)} is "
                f"{shown(each)}. Write one, such as 'other'.",
            )  # fmt: skip
    return _plain([None if _absent(each) else each for each in found], name == GROUP)


def _absent(value: object) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def _plain(values: list[Any], labels: bool) -> NDArray[Any]:
    """Return values as numbers if all are, text that is a number included, else as text.

    Labels of groups are whole numbers or text, as they are written. Where a covariate is missing a
    number is NaN, a text is empty.
    """
    known = [each for each in values if each is not None]
    whole = all(isinstance(each, int) and abs(each) < _WHOLE for each in known)
    if whole and len(known) == len(values) and not (labels and any(map(_is_flag, known))):
        return np.array(values, np.int64)
    texts = all(isinstance(each, str) and _NUMBER.fullmatch(each) for each in known)
    numbers = all(isinstance(each, int | float) for each in known)
    if known and not labels and (texts or numbers):
        try:
            return np.array([np.nan if each is None else float(each) for each in values])
        except OverflowError:  # an integer beyond the floats
            pass
    found = np.empty(len(values), object)
    found[:] = ["" if each is None else str(each) for each in values]
    return found


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)
