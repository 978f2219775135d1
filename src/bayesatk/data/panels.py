"""Marks of several judges, read as one outcome of a trial: what each judge says of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from bayesatk.data.answers import AnswerRules
from bayesatk.data.arrays import arranged_like, read_cells
from bayesatk.data.columns import Columns
from bayesatk.data.long_form import LongForm, encode
from bayesatk.data.outcomes import Outcomes, with_truth
from bayesatk.data.requests import place_of, read_flags
from bayesatk.data.tables import is_table, read_rows, read_table
from bayesatk.data.validation import Labels, OutcomeError, Scores, shown

_MOST = 6  # judges: 3^6 patterns


def pattern_scores(judges: int) -> Scores:
    """Return the score of every pattern of marks: the share of right ones among those given.

    Examples
    --------
    >>> pattern_scores(2)["1-"], pattern_scores(2)["10"], len(pattern_scores(2))
    (1.0, 0.5, 8)
    """
    patterns = ["".join(marks) for marks in product("01-", repeat=judges)]
    return {text: text.count("1") / len(text.replace("-", "")) for text in patterns[:-1]}


def read_panel(
    data: object, marks: object, columns: Mapping[str, Any]
) -> tuple[LongForm, tuple[str, ...]]:
    """Return trials whose outcomes are patterns of marks, and the names of the judges.

    Parameters
    ----------
    data : table, or None
    marks : sequence of str, or mapping
        Columns of the table; by judge, or named like them. Without a table: marks by judge, each
        arranged like `data` of `bayesatk.tally`.
    columns : mapping
        Other columns of the table, by role.

    Examples
    --------
    >>> long, judges = read_panel(None, {"a": [[1, 0, None]], "b": [[1, 1, None]]}, {})
    >>> [[*pattern_scores(2)][code] for code in long.code[0, 0, :2]], judges
    (['11', '01'], ('a', 'b'))
    """
    by_judge = by_name(marks, is_table(data))
    judges, scale = tuple(by_judge), pattern_scores(len(by_judge))
    if is_table(data):
        by_role: dict[str, Any] = {**columns, "outcome": tuple(by_judge.values())}
        table = read_table(data, by_role)
        return read_rows([with_patterns(table, judges)], scale, AnswerRules()), judges
    if data is not None:
        raise OutcomeError(
            "data", f" must be a table of columns, or None, with marks by judge; got "
            f"{shown(data)}. Leave it out: bayesatk.tally(None, marks=...).",
        )  # fmt: skip
    (_, first), *later = by_judge.items()
    long, cells = read_cells(first, "marks")
    later_cells = [arranged_like(long, marks_of, f"marks of {judge}") for judge, marks_of in later]
    codes = encode(_patterns([cells, *later_cells], judges, place_of(long)), scale)
    return replace(long, code=codes.reshape(long.code.shape)), judges


def by_name(marks: object, columns: bool) -> Mapping[Any, Any]:
    """Return the column of every judge, or their marks; columns may have the names of judges.

    Examples
    --------
    >>> by_name(["a", "b"], True)
    {'a': 'a', 'b': 'b'}
    """
    if columns and isinstance(marks, Sequence) and not isinstance(marks, str):
        marks = {name: name for name in marks}
    if not isinstance(marks, Mapping) or not 2 <= len(marks) <= _MOST:
        form = "the names of columns" if columns else "a mapping {judge: marks}"
        raise OutcomeError(
            "marks", f" must be {form} of 2 to {_MOST} judges; got {shown(marks)}. "
            "Marks of one judge are the outcomes themselves.",
        )  # fmt: skip
    return {str(judge): of_judge for judge, of_judge in marks.items()}


def with_patterns(table: Columns, judges: Sequence[str]) -> Columns:
    """Return a table whose outcomes are what all judges say of a trial."""
    name = ", ".join(map(str, table.roles["outcome"]))
    marks = list(zip(*table.values["outcome"], strict=True))
    return table.with_column("outcome", name, _patterns(marks, judges, table.place))


def _patterns(
    marks: Sequence[Labels], judges: Sequence[str], place: Callable[[int], str]
) -> list[str | None]:
    """Return what all judges say of each trial, from the marks of every judge; None for nothing."""
    flags = [
        read_flags("marks", of_judge, place, judge)
        for of_judge, judge in zip(marks, judges, strict=True)
    ]
    texts = [np.where(np.isnan(of_judge), "-", np.where(of_judge > 0.0, "1", "0"))
             for of_judge in flags]  # fmt: skip
    patterns = map("".join, zip(*texts, strict=True))
    return [pattern if set(pattern) != {"-"} else None for pattern in patterns]


def as_panel(outcomes: Outcomes, judges: tuple[str, ...]) -> Outcomes:
    """Return the outcomes as marks of judges, of patterns that occur; as they are without any."""
    if not judges:
        return outcomes
    dataset = outcomes.dataset
    occurs = (dataset["count"].sum(["system", "question"]) > 0).values
    shape = *dataset["count"].shape[:2], 2, len(occurs) + 1
    labelled = np.zeros(shape, np.int64)
    if "truth_count" in dataset:
        labelled = dataset["truth_count"].values
        dataset = dataset.drop_vars(["truth_count", "truth", "mark"])
    kept = labelled[..., np.append(True, occurs)]
    return outcomes.with_dataset(with_truth(dataset.isel(category=occurs), kept, judges))
