"""Rows of one question must have one content.

Ids are often numbered anew by each run or request. Such a number makes one question of several,
which turns a failure on one and a success on another into a success in two trials: a wrong pass@k,
and no error. So the columns that hold the text of a question, or its right answer, must agree
wherever the label does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import Columns
from bayesatk.data.content import RIGHT, UNKNOWN
from bayesatk.data.validation import OutcomeError, shown


def check_content(
    table: Columns, question: NDArray[np.int64], questions: Sequence[Any]
) -> tuple[str, ...]:
    """Refuse a label that stands for several contents; note one content under several labels."""
    for name, digests in table.content.items():
        found = np.asarray(digests, np.int64)
        rows = np.flatnonzero(found != UNKNOWN)
        labels, first = np.unique(question[rows], return_index=True)
        earlier = np.zeros(len(questions), np.int64)
        earlier[labels] = rows[first]
        differs = rows[found[rows] != found[earlier[question[rows]]]]
        if len(differs):
            row = int(differs[0])
            raise several(table, name, int(earlier[question[row]]), row, questions[question[row]])
    asked = [each for name, each in table.content.items() if str(name).lower() not in RIGHT]
    return same_content(question, questions, list(table.content.values())) if asked else ()


def several(table: Columns, name: Any, first: int, second: int, label: Any) -> OutcomeError:
    """Return the error for a label that stands for two contents."""
    told = {role: own for role, own in table.roles.items() if not str(own).startswith("(")}
    asked = next((each for each in table.content if str(each).lower() not in RIGHT), None)
    ways: list[tuple[Any, dict[str, Any]]] = []
    if asked is not None:
        ways.append((f"if column {asked!r} tells the questions apart", {"question": asked}))
    if str(name).lower() == "answer" and not {"answer", "trials"} & set(told):
        ways.append((f"if {name!r} is what the systems answered", {"answer": name}))
    ways.append(("if they are one question in other words", {"content": told["question"]}))
    remedies = [
        part
        for when, change in ways
        for part in (f" {when}: ", Argument("columns", {**told, **change}, "tally"), ";")
    ]
    return OutcomeError(
        f"rows of one question must agree in what was asked; {table.place(first)} and "
        f"{table.place(second)} are both question {shown(label)} and differ in column {name!r}. "
        "Name the columns:", *remedies[:-1], ".",
    )  # fmt: skip


def same_content(
    question: NDArray[np.int64], questions: Sequence[Any], contents: Sequence[Sequence[int]]
) -> tuple[str, ...]:
    """Return a note where two labels have one content."""
    labels, rows = np.unique(question, return_index=True)
    first = dict(zip(labels.tolist(), rows.tolist(), strict=True))
    seen: dict[tuple[int, ...], int] = {}
    twins = []
    for label, row in first.items():
        content = tuple(column[row] for column in contents)
        if any(content) and seen.setdefault(content, label) != label:
            twins.append((seen[content], label))
    if not twins:
        return ()
    one, other = (shown(questions[label], 40) for label in twins[0])
    return (
        f"CHECK: {len(twins)} of {len(first)} questions ask the same as another (first: {other} "
        f"as {one}); is a question counted twice?",
    )
