"""Tables of one folder: when they are parts of one table, and when that cannot be told."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesatk.data.columns import Columns, labels
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.sources import Source

_EACH = "the tables of a folder must"
WIDE = "(names of columns)"  # in place of the system column of a wide table


class Folders:
    """What the tables of a folder, which nobody named one by one, must have in common.

    Their columns have the same names, and the rows of a question of a system stand in one file, or
    are told apart by a trial column: a copy of a table would count every trial twice otherwise.
    """

    def __init__(self) -> None:
        self._first: dict[str, tuple[Source, Columns]] = {}
        self._seen: dict[tuple[Any, Any], Source] = {}

    def check(self, source: Source, table: Columns) -> None:
        """Take a table, or the next part of one, with its system column; refuse a misfit."""
        if not source.folder:
            return
        one, first = self._first.setdefault(source.folder, (source, table))
        if _named(table) != _named(first):
            raise OutcomeError(
                f"{_EACH} have columns of the same names; {source.name} has {_told(table)}, and "
                f"{one.name} {_told(first)}. Name the files that are meant, or rename columns."
            )
        if "trial" in table.roles:
            return  # a repeated trial is refused as in one table
        for pair in _pairs(table):
            other = self._seen.setdefault(pair, source)
            if other is not source:
                raise OutcomeError(
                    f"{_EACH} have the rows of a question of a system in one file, or number its "
                    f"trials in a column; question {shown(pair[1])} of system {shown(pair[0])} is "
                    f"in {other.name} and {source.name}. Take out a file that repeats another; "
                    "name the files if their rows are further trials."
                )


def _named(table: Columns) -> dict[str, Any]:
    """Return the columns by role; those of outcomes are systems in a wide table."""
    wide = table.roles.get("system") == WIDE
    return {role: name for role, name in table.roles.items() if not (wide and role == "outcome")}


def _told(table: Columns) -> str:
    return ", ".join(f"{role} = {shown(name)}" for role, name in _named(table).items())


def _pairs(table: Columns) -> Sequence[tuple[Any, Any]]:
    """Return every pair of system and question, once."""
    system, systems = labels(table, "system")
    question, questions = labels(table, "question")
    cells = np.unique(system * len(questions) + question).tolist()
    return [(systems[one // len(questions)], questions[one % len(questions)]) for one in cells]
