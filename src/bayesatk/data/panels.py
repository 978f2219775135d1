"""Marks of several judges, read as one outcome of a trial: what each judge says of it."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from bayesatk.data.outcomes import Outcomes, with_truth
from bayesatk.data.requests import truth_value
from bayesatk.data.tables import is_table
from bayesatk.data.validation import OutcomeError, Scores, shown

MARKS_COLUMN = "marks of judges"  # of a table, beside those that it has
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


def read_marks(
    data: object, marks: object, kept: Collection[str] = ()
) -> tuple[Any, tuple[str, ...]]:
    """Return the data with one outcome a trial, the pattern of marks, and the names of the judges.

    Parameters
    ----------
    data : table, or None
    marks : sequence of str, or mapping
        Columns of the table; by judge, or named like them. Without a table: marks by judge, each
        arranged like `data` of `bayesatk.tally`.
    kept : collection of str
        Columns of marks that are something else, too, such as the truth.

    Examples
    --------
    >>> read_marks(None, {"a": [[1, 0, None]], "b": [[1, 1, None]]})
    ([['11', '01', None]], ('a', 'b'))
    """
    table = is_table(data)
    by_judge = by_name(marks, table)
    judges = tuple(by_judge)
    if table:
        return _with_patterns(data, by_judge, kept), judges
    if data is not None:
        raise OutcomeError(
            "data", f" must be a table of columns, or None, with marks by judge; got "
            f"{shown(data)}. Leave it out: bayesatk.tally(None, marks=...).",
        )  # fmt: skip
    return patterns(list(by_judge.values()), judges, ""), judges


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


def check_columns(marks: Mapping[Any, Any], names: Collection[str]) -> None:
    """Refuse judges whose column is none of the table."""
    for column in marks.values():
        if column not in names:
            raise OutcomeError(
                "marks", f" must name columns of the table; {shown(column)} is none. It "
                f"has {shown(list(names), 160)}.",
            )  # fmt: skip


def _with_patterns(table: Any, marks: Mapping[Any, Any], kept: Collection[str]) -> Any:
    """Return a table with a column of patterns in place of those of marks, some of them kept."""
    import narwhals as nw  # for tables only: it takes long to import

    frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    check_columns(marks, frame.columns)
    columns = [frame[column].to_list() for column in marks.values()]
    of_rows = patterns(columns, tuple(map(str, marks)), "row ")
    series = nw.new_series(MARKS_COLUMN, of_rows, nw.String, backend=frame.implementation)
    done = [column for column in marks.values() if column not in kept]
    return frame.with_columns(series).drop(done).to_native()


def patterns(values: Sequence[Any], judges: tuple[str, ...], place: str) -> Any:
    """Return patterns in place of the marks of every judge, which are all arranged alike."""
    first = values[0]
    if isinstance(first, Mapping):
        if any(not isinstance(value, Mapping) or set(value) != set(first) for value in values):
            raise _unlike(judges, place)
        return {key: patterns([value[key] for value in values], judges, f"{place}{key!r} ")
                for key in first}  # fmt: skip
    if isinstance(first, list | tuple | np.ndarray):
        nested = [isinstance(value, list | tuple | np.ndarray) for value in values]
        if not all(nested) or len({len(value) for value in values}) > 1:
            raise _unlike(judges, place)
        return [patterns(cells, judges, f"{place}{number} ")
                for number, cells in enumerate(zip(*values, strict=True))]  # fmt: skip
    numbers = [truth_value(value) for value in values]
    for judge, value, number in zip(judges, values, numbers, strict=True):
        if np.isinf(number):
            raise OutcomeError(
                "marks", f" must be 0 or 1 (or False and True), and None or empty where "
                f"a judge did not mark a trial; got {shown(value)} of {judge} at "
                f"{place.strip() or 'the top'}. Write right marks as 1 and wrong ones as 0.",
            )  # fmt: skip
    text = "".join("-" if np.isnan(number) else str(int(number)) for number in numbers)
    return text if set(text) != {"-"} else None


def _unlike(judges: tuple[str, ...], place: str) -> OutcomeError:
    return OutcomeError(
        "marks", f" must be arranged alike for {', '.join(judges)}; they differ at "
        f"{place.strip() or 'the top'}. Write None where a judge did not mark a trial.",
    )  # fmt: skip


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
