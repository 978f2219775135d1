"""Groups, weights and covariates of questions: one value for every question.

Tables, logs and xarray objects have them under names; with arrays, values are given by question.
Both become arrays (question,) of text or numbers, which are kept as coordinates of the counts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.columns import NO_CONTENT, Columns, canonical
from bayesatk.data.role_doubts import Doubt, is_right_answer
from bayesatk.data.roles import COVARIATE, FILE, FOLDER, GROUP, KEY, PLACEHOLDERS, WEIGHT, as_tuple
from bayesatk.data.validation import Labels, OutcomeError, is_absent, number_of, shown

# Names of dimensions and variables of counts and results, which no covariate can have.
RESERVED_NAMES = frozenset(
    {"system", "question", "trial", "category", "count", "missing", "score", "trials", "successes",
     "category_score", "prior_count", "answer", "unanswered", "chain", "draw", "target", "k"}
)  # fmt: skip


def by_question(
    argument: Argument, name: str, values: object, questions: Labels, no_others: bool = False
) -> list[Any]:
    """Return a value for every question, from values by label or in the order of the questions.

    Parameters
    ----------
    argument : Argument
        The argument that holds the values, for messages.
    name : str
        Name of the values, for messages.
    values : mapping, Series, DataArray, sequence or ndarray
    questions : sequence
        Labels of the questions.
    no_others : bool
        Whether a mapping must not have labels of other questions.

    Examples
    --------
    >>> by_question(Argument("group"), "group", {"b": "law", "a": "art"}, ["a", "b"])
    ['art', 'law']
    """
    if isinstance(values, xr.DataArray) and values.dims == ("question",):
        values = values.to_series() if "question" in values.indexes else values.values
    if isinstance(values, pd.Series):
        is_unlabelled = isinstance(values.index, pd.RangeIndex)
        values = values.tolist() if is_unlabelled else dict(values.items())
    if isinstance(values, Mapping):
        absent = [label for label in questions if label not in values]
        unknown = set(values) - set(questions) if no_others else ()
        if absent:
            raise OutcomeError(
                argument,
                f" must have a value for every question; {name!r} has none for "
                f"{shown(absent[0])} ({len(absent)} of {len(questions)} questions). Add it.",
            )
        if unknown:
            raise OutcomeError(
                argument,
                f" must be of these questions; {shown(next(iter(unknown)))} is none of "
                "them. Leave it out.",
            )
        values = [values[label] for label in questions]
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    rows: Any = values if is_list or (isinstance(values, np.ndarray) and values.ndim) else None
    if rows is None or len(rows) != len(questions):
        raise OutcomeError(
            argument,
            f" must have a value for each of the {len(questions)} questions, in their "
            f"order or by label; {name!r} is {shown(values)}. Give a list or a mapping.",
        )
    return [value.item() if isinstance(value, np.generic) else value for value in rows]


_COLUMN_NAME = "long_name"  # attribute of a coordinate, by the conventions of netCDF


def with_column_names(dataset: xr.Dataset, columns: Mapping[str, object]) -> xr.Dataset:
    """Keep the names of the columns of groups and weights as attributes of the coordinates."""
    named = {
        role: dataset[role].assign_attrs({_COLUMN_NAME: columns[role]})
        for role in {GROUP, WEIGHT} & columns.keys() & {*map(str, dataset.coords)}
        if isinstance(columns[role], str) and columns[role] != role
    }
    return dataset.assign_coords(named)


def column_name(dataset: xr.Dataset, role: str) -> str:
    """Return the name of the column of groups or weights, or else their role."""
    return str(dataset[role].attrs.get(_COLUMN_NAME, role))


def question_coordinates(dataset: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return the groups, weights and covariates of the questions in a Dataset, by name."""
    return {
        str(name): values.values
        for name, values in dataset.coords.items()
        if values.dims == ("question",) and name != "question"
    }


def question_column(name: str, values: Labels | Array, questions: Labels) -> NDArray[Any]:
    """Return groups, weights or a covariate as an array, or refuse the first invalid value.

    Examples
    --------
    >>> question_column("weight", [2, "0.5"], ["a", "b"]).tolist()
    [2.0, 0.5]
    """
    if name == WEIGHT:
        return weights(values, questions)
    if isinstance(values, np.ndarray) and name != GROUP:  # a coordinate
        return values
    argument = argument_of(name)
    for label, value in zip(questions, values, strict=True):
        if isinstance(value, list | dict | set | tuple | np.ndarray):
            raise OutcomeError(
                argument,
                f" must be one text or number for every question; {name!r} of "
                f"{shown(label)} is {shown(value)}. Give single values.",
            )
        if name == GROUP and is_absent(value):
            raise OutcomeError(
                argument,
                f" must name the group of every question; that of {shown(label)} is "
                f"{shown(value)}. Write one, such as 'other'.",
            )
    return _numbers_or_text(
        [None if is_absent(value) else value for value in values], name == GROUP
    )


def argument_of(name: str) -> Argument:
    """Return the argument by which a column of the questions is asked for."""
    return Argument(name if name in (GROUP, WEIGHT) else "covariates")


class Agreement:
    """Values that all rows of a question must share, in a long table that may come in parts.

    Examples
    --------
    >>> roles = {"question": "id", "group": "domain"}
    >>> agreement = Agreement()
    >>> agreement.add(Columns(roles, {"group": ["law", None]}), np.array([0, 1]), ["a", "b"])
    >>> agreement.add(Columns(roles, {"group": ["art"]}), np.array([1]), ["a", "b"])
    >>> agreement.columns(["a", "b"])["group"]
    ['law', 'art']
    """

    def __init__(self) -> None:
        # By role, column and question: a value, and where it stands first.
        self._first: dict[tuple[str, Any], dict[int, tuple[Any, str]]] = {}

    def add(self, table: Columns, question: Ints, questions: Labels) -> None:
        """Add a part of the table; `question` holds positions in `questions`, the labels so far."""
        for name, digests in table.content.items():
            codes = np.asarray(digests, np.int64)
            codes = np.where(codes == NO_CONTENT, -1, codes)
            self.compare(table, ("content", name), digests, codes, question, questions)
        for role, name in table.roles.items():
            if role in (GROUP, WEIGHT) or role.startswith(COVARIATE):
                values = [None if is_absent(value) else value for value in table.listed(role)]
                if role == WEIGHT:
                    values = [value and (number_of(value) or value) for value in values]
                hashable = (
                    canonical(value) if isinstance(value, list | dict) else value
                    for value in values
                )
                codes = pd.factorize(np.fromiter(hashable, object, len(values)))[0]
                self.compare(table, (role, name), values, codes, question, questions)

    def compare(
        self,
        table: Columns,
        key: tuple[str, Any],
        values: Labels,
        codes: Ints,
        question: Ints,
        questions: Labels,
    ) -> None:
        """Refuse values that differ within a question; codes of missing values are negative."""
        rows = np.flatnonzero(codes >= 0)
        labels, first = np.unique(question[rows], return_index=True)
        lead = np.zeros(len(questions), np.int64)
        lead[labels] = rows[first]
        first_values = self._first.setdefault(key, {})
        differs = rows[codes[rows] != codes[lead[question[rows]]]][:1].tolist()
        for label, row in zip(labels.tolist(), rows[first].tolist(), strict=True):
            if first_values.setdefault(label, (values[row], table.place(row)))[0] != values[row]:
                differs = [row]
                break
        for row in differs:
            label = int(question[row])
            refusal = _several_contents if key[0] == "content" else _unequal_values
            raise refusal(table, key[1], *first_values[label], values[row], row, questions[label])

    def values(self, key: tuple[str, Any], questions: Labels, absent: Any = None) -> list[Any]:
        """Return the value of every question."""
        first_values = self._first.get(key, {})
        return [first_values.get(position, (absent,))[0] for position in range(len(questions))]

    def columns(self, questions: Labels) -> dict[str, list[Any]]:
        """Return groups, weights and covariates by the names of their coordinates."""
        return {
            role.removeprefix(COVARIATE): self.values((role, name), questions)
            for role, name in self._first
            if role not in ("content", "reference")
        }

    def doubt(self, questions: Labels, numbered: bool) -> Doubt:
        """Return a doubt if two questions have the same content.

        They may be trials of one question, which their content names; not where the trials of each
        question are `numbered`, as then two of them may have one number.
        """
        keys = [key for key in self._first if key[0] == "content"]
        prompts = [key for key in keys if not is_right_answer(key[1])]
        if not prompts:
            return ()
        contents = pd.DataFrame({key: self.values(key, questions, NO_CONTENT) for key in keys})
        twins = contents[contents.any(axis=1) & contents.duplicated()]
        if twins.empty:
            return ()
        first = (contents == twins.iloc[0]).all(axis=1).to_numpy().argmax()
        places = int(first), int(twins.index.to_numpy()[0])
        earlier, later = (shown(questions[position], 40) for position in places)
        fact = (
            f"{len(twins)} of {len(questions)} questions ask the same as another (first: "
            f"{later} as {earlier}); "
        )
        if numbered or not contents[prompts].all(axis=None):
            return (f"{fact}is a question counted twice?",)
        same_answers = contents.duplicated().equals(contents.duplicated(prompts))
        names = [name for _, name in (prompts if same_answers else keys)]
        question = names if len(names) > 1 else names[0]
        return (
            f"{fact}if their rows are trials of one question: ",
            Argument("columns", {"question": question}),
            ".",
        )


def _unequal_values(
    table: Columns, name: Any, first: Any, place: str, value: Any, row: int, label: Any
) -> OutcomeError:
    """Return the error for a column that differs between the rows of a question."""
    return OutcomeError(
        f"column {name!r} must be the same in all rows of a question; {place} has {shown(first)} "
        f"and {table.place(row)} has {shown(value)}, both of question {shown(label)}. Correct the "
        "rows, or do not name the column."
    )


def _several_contents(
    table: Columns, name: Any, first: int, place: str, value: int, row: int, label: Any
) -> OutcomeError:
    """Return the error for a question label with two contents.

    Often each run or request numbers its questions anew. Then one number stands for several
    questions, and a failure on one with a success on another counts as one success in two trials,
    which makes pass@k wrong.
    """
    named_roles = {
        role: name_of_role
        for role, name_of_role in table.roles.items()
        if not (str(name_of_role).startswith("(") and str(name_of_role) not in (*PLACEHOLDERS, KEY))
        or "," in str(name_of_role)
    }
    prompt_column = next((column for column in table.content if not is_right_answer(column)), None)
    ways = []
    if prompt_column is not None:
        ways.append(
            (f"if column {prompt_column!r} tells the questions apart", {"question": prompt_column})
        )
    if str(name).lower() == "answer" and not {"answer", "trials"} & set(named_roles):
        ways.append((f"if {name!r} is what the systems answered", {"answer": name}))
    files = [text.partition(" of ")[2] for text in (place, table.place(row))]
    if files[0] != files[1]:
        unit, word = (FOLDER, "folder") if "/" in files[1] else (FILE, "file")
        ways.append(
            (
                f"if each {word} numbers its own questions",
                {"question": [unit, *as_tuple(named_roles["question"])]},
            )
        )
    ways.append(
        ("if the prompts are paraphrases of one question", {"content": named_roles["question"]})
    )
    remedies = [
        piece
        for when, change in ways
        for piece in (f" {when}: ", Argument("columns", {**named_roles, **change}, "tally"), ";")
    ]
    return OutcomeError(
        f"rows of one question must agree in what was asked; {place} and {table.place(row)} are "
        f"both question {shown(label)} and differ in column {name!r}. Name the columns:",
        *remedies[:-1],
        ".",
    )


def weights(values: Labels | Array, questions: Labels) -> Array:
    """Return the weights of the questions, or refuse the first invalid one."""
    numbers = [number_of(value) or 0.0 for value in values]
    for label, value, number in zip(questions, values, numbers, strict=True):
        if not 0.0 < number < np.inf:
            raise OutcomeError(
                WEIGHT,
                " must have positive finite numbers, one for each question; that of "
                f"{shown(label)} is {shown(value)}. Leave out questions that shall not count: "
                "data.sel(question=[...]); or rename a column or coordinate that is no weight.",
            )
    return np.array(numbers)


def unequal_weights(weight: Array) -> Array | None:
    """Return weights if they differ between questions, else None."""
    return None if (weight == weight[0]).all() else weight


def _numbers_or_text(values: list[Any], labels: bool) -> NDArray[Any]:
    """Return values as numbers if all are numbers or all are texts of numbers, else as text.

    Labels of groups stay whole numbers or text, as they are written. A missing covariate is NaN
    among numbers and "" among texts.
    """
    present = [value for value in values if value is not None]
    has_flags = any(isinstance(value, bool) for value in present)
    max_exact_integer = 2**53  # of a double
    are_integers = all(
        isinstance(value, int) and abs(value) < max_exact_integer for value in present
    )
    if are_integers and len(present) == len(values) and not (labels and has_flags):
        return np.array(values, np.int64)
    of_one_type = len({isinstance(value, str) for value in present}) == 1
    numbers = [float(value) if isinstance(value, bool) else number_of(value) for value in values]
    if of_one_type and not labels and None not in numbers:
        return np.array(numbers)
    column = np.empty(len(values), object)
    column[:] = ["" if value is None else str(value) for value in values]
    return column
