"""Tables with one row per question: so many trials, of which so many succeeded."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import Columns, labels
from bayesatk.data.encoding import Table
from bayesatk.data.validation import OutcomeError, Scores, check_counts, check_trials, shown

_WHOLE = re.compile(r"\s*\d{1,18}(\.0*)?\s*", re.ASCII)


def count_successes(table: Columns, scores: Scores) -> Table:
    """Return the counts of a table whose rows are questions, with trials and successes."""
    if sorted(scores.values()) != [0.0, 1.0]:
        raise OutcomeError(
            "scores must be left out for counts of successes, which have two outcomes; got "
            f"{shown(dict(scores))}. Leave them out."
        )
    question, questions = labels(table, "question")
    system, systems = np.zeros(len(question), np.int64), ["system"]
    if "system" in table.roles:
        system, systems = labels(table, "system")
    cell = system * len(questions) + question
    _refuse_twice(table, cell)
    trials, successes = (_whole(table, role) for role in ("trials", "successes"))
    check_trials(trials, f"column {table.roles['trials']!r}")
    if (successes > trials).any():
        row = int(np.argmax(successes > trials))
        raise OutcomeError(
            f"successes must not exceed trials; {table.place(row)} has {successes[row]} of "
            f"{trials[row]}. Are the columns the right ones?"
        )
    count = np.zeros((len(systems) * len(questions), 2), np.int64)
    right = int(np.argmax(list(scores.values())))
    count[cell, right], count[cell, 1 - right] = successes, trials - successes
    shape = len(systems), len(questions)
    used = ", ".join(f"{role} = column {name!r}" for role, name in table.roles.items())
    return Table(count.reshape(*shape, 2), np.zeros(shape, np.int64), systems, questions, (used,))


def _refuse_twice(table: Columns, cell: NDArray[np.int64]) -> None:
    first: dict[int, int] = {}
    for row, own in enumerate(cell.tolist()):
        if first.setdefault(own, row) != row:
            raise OutcomeError(
                f"each (system, question) must have one row of counts; {table.place(first[own])} "
                f"and {table.place(row)} are both of question "
                f"{shown(table.values['question'][row])}. Add them up, or name their systems."
            )


def _whole(table: Columns, role: str) -> NDArray[np.int64]:
    """Return whole numbers, which text tables hold as text."""
    values: Any = table.values[role]
    if isinstance(values, Sequence) and any(isinstance(value, bool) for value in values):
        row = next(row for row, value in enumerate(values) if isinstance(value, bool))
        raise OutcomeError(
            f"column {table.roles[role]!r} must hold whole numbers >= 0; {table.place(row)} has "
            f"{values[row]}. Correct it, or name another column: ",
            Argument("columns", {role: ...}, "tally"), ".",
        )  # fmt: skip
    if isinstance(values, Sequence) and any(isinstance(value, str) for value in values):
        for row, value in enumerate(values):
            if not (isinstance(value, str) and _WHOLE.fullmatch(value)):
                raise OutcomeError(
                    f"column {table.roles[role]!r} must hold whole numbers >= 0; "
                    f"{table.place(row)} has {shown(value)}. Correct it, or name another column: ",
                    Argument("columns", {role: ...}, "tally"), ".",
                )  # fmt: skip
        values = [int(value.split(".")[0]) for value in values]
    return check_counts(values, f"column {table.roles[role]!r}")
