"""Tables of one folder, or named together: when they are parts, and when that cannot be told."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import Columns, labels
from bayesatk.data.long_form import LongForm
from bayesatk.data.validation import OutcomeError, OutcomeWarning, Scores, shown
from bayesatk.io.sources import Source

_EACH = "the tables of a folder must"
# How tools name the parts, or the repetitions, of what belongs together: part-00000-of-00002.
_PART = re.compile(
    r"(^|[-_. ])(part|shard|chunk|split|batch|slice|run|seed|trial|repeat|epoch|rollouts?|samples?"
    r"|results?|outputs?|outcomes?|data|train|test)?[-_. ]?\d+([-_. ]?of[-_. ]?\d+)?$",
    re.IGNORECASE,
)
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
        first_source, first_table = self._first.setdefault(source.folder, (source, table))
        if _named(table) != _named(first_table):
            raise OutcomeError(
                f"{_EACH} have columns of the same names; {source.name} has {_told(table)}, and "
                f"{first_source.name} {_told(first_table)}. Name the files that are meant, or "
                "rename columns."
            )
        if "trial" in table.roles:
            return  # a repeated trial is refused as in one table
        for pair in _pairs(table):
            earlier_source = self._seen.setdefault(pair, source)
            if earlier_source is not source:
                raise OutcomeError(
                    f"{_EACH} have the rows of a question of a system in one file, or number its "
                    f"trials in a column; question {shown(pair[1])} of system {shown(pair[0])} is "
                    f"in {earlier_source.name} and {source.name}. Take out a file that repeats "
                    "another; name the files if their rows are further trials."
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
    return [(systems[cell // len(questions)], questions[cell % len(questions)]) for cell in cells]


def note_parts(long: LongForm, scores: Scores, sources: Sequence[Source]) -> LongForm:
    """Say where files that were read as systems may be parts, or repetitions, of one system.

    Their names differ in numbers alone, and are such as tools give to parts, or no two of them
    have a question in common.
    """
    names = [source.path.stem for source in sources]
    if len(names) < 2 or list(long.systems) != names:  # one file, or systems that are named
        return long
    disjoint = bool((long.slots(scores).any(axis=-1).sum(axis=0) == 1).all())
    same_but_numbers = len({re.sub(r"\d+", "0", name) for name in names}) == 1
    if not same_but_numbers or not (disjoint or all(map(_PART.search, names))):
        return long
    text = f"each of {len(names)} files is a system, and their names differ in numbers alone"
    common = re.split(r"[-_. ]?\d", names[0])[0] or sources[0].path.resolve().parent.name
    remedy = Argument("source", {common or "system": _named_again(sources, disjoint)}, "load")
    advice = OutcomeWarning(f"{text}; are they of one system? Then name it: ", remedy, ".")
    warnings.warn(advice, stacklevel=4)
    return replace(long, notes=(*long.notes, f"CHECK: {advice}"))


def _named_again(sources: Sequence[Source], disjoint: bool) -> object:
    """Return the folder that was named, or its files, unless they are too many for a message."""
    first, *other_folders = {source.path.parent for source in sources}
    if disjoint and not other_folders and sources[0].folder == first.name:
        return str(first)
    return [str(source.path) for source in sources] if len(sources) <= 5 else ...
