"""Long tables counted part by part: what is in memory are the counts and the labels."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.codes import Ints
from bayesatk.data.columns import Columns, labels
from bayesatk.data.content import RIGHT, UNKNOWN
from bayesatk.data.content_check import same_content, several
from bayesatk.data.long_form import LongForm
from bayesatk.data.question_columns import TableColumns, roles_of
from bayesatk.data.tables import check_cells, read_rows
from bayesatk.data.validation import OutcomeError, Scores, shown

_MOST = 1 << 28  # bytes of the marks by which repeated trials are noticed
_BITS = 64  # of a word of marks: trials of one system and question


class Counter:
    """Counts of the parts of a long table, as they come.

    Every part is read as a table of its own, and added. What only shows between parts is checked
    here: a trial that occurs twice, and a question that is asked in two ways.

    Parameters
    ----------
    scores : mapping
        As in `bayesatk.tally`.

    Examples
    --------
    >>> found = Counter({0: 0.0, 1: 1.0})
    >>> roles = {"question": "id", "outcome": "passed"}
    >>> found.add(Columns(roles, {"question": ["a", "b"], "outcome": [1, 0]}))
    >>> found.add(Columns(roles, {"question": ["b"], "outcome": [1]}))
    >>> found.long_form().counted.tolist()  # by question: missing, wrong, right
    [[[0, 0, 1], [0, 1, 1]]]
    """

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self._systems: dict[Any, int] = {}
        self._questions: dict[Any, int] = {}
        self._trials: dict[Any, int] = {}
        self._slots: Ints = np.zeros((1, 1, len(scores) + 1), np.int64)
        self._seen: NDArray[np.uint64] | None = np.zeros((1, 1, 1), np.uint64)
        self._content: dict[Any, dict[int, tuple[int, Any]]] = {}
        self._columns = TableColumns()
        self._notes: tuple[str, ...] = ()
        self._roles: dict[str, Any] = {}

    @property
    def judged(self) -> bool:
        """Whether there was any outcome so far that is not missing."""
        return bool(self._slots[..., 1:].any())

    def add(self, table: Columns) -> None:
        """Count another part; its rows are numbered as in the whole."""
        if "cost" in table.roles:
            raise OutcomeError(
                Argument("cost"), " must be left out for tables that are counted part by part. "
                "Read the table whole: ", Argument("stream", False), ", or table.compute().",
            )  # fmt: skip
        named = {role: name for role, name in table.roles.items() if role in roles_of(table)}
        roles = {role: name for role, name in table.roles.items() if role not in named}
        long = read_rows(replace(table, roles=roles), self.scores, AnswerRules())
        if not self._roles:
            self._roles = dict(table.roles)
            notes = tuple(f"{role} = column {name!r}" for role, name in named.items())
            notes = (*long.notes, *notes)
            self._notes = tuple(note for note in notes if not note.startswith("CHECK"))
        if set(table.roles) != set(self._roles):
            raise OutcomeError(
                f"parts of a table must have columns for the same roles; {table.place(0)} has "
                f"{', '.join(table.roles)}, the first part {', '.join(self._roles)}. Rename its "
                "columns, or read the files one by one."
            )
        s, q = _cells(table, long)
        system, question = (
            _places(self._systems, long.systems)[s],
            _places(self._questions, long.questions)[q],
        )
        shape = len(self._systems), len(self._questions)
        check_cells(*shape, self._roles.get("system"))
        self._slots = _grown(self._slots, (*shape, self._slots.shape[2]))
        if long.trials:
            np.add.at(self._slots, (system, question, long.trials[0].code + 1), 1)
        elif long.counted is not None:
            self._refuse_again(table, system, question)
            self._slots[system, question] = long.counted[s, q]
        if "trial" in table.roles and self._seen is not None:
            self._mark(table, system, question)
        self._compare_content(table, question)
        self._columns.add(table, question, list(self._questions))

    def _mark(self, table: Columns, system: Ints, question: Ints) -> None:
        """Mark the trials as seen, and refuse one that was."""
        own, names = labels(table, "trial")
        trial = _places(self._trials, [str(name) for name in names])[own]
        words = -(-len(self._trials) // _BITS)
        needed = len(self._systems) * len(self._questions) * words * 8
        if self._seen is None or needed > _MOST:
            self._seen = None
            self._notes += (
                f"{len(self._trials)} labels of trials: repeated trials were looked for within "
                "parts of the table only",
            )
            return
        shape = len(self._systems), len(self._questions), words
        self._seen = _grown(self._seen, shape)
        place = system, question, trial // _BITS
        bit = np.uint64(1) << (trial % _BITS).astype(np.uint64)
        again = np.flatnonzero(self._seen[place] & bit)
        if len(again):
            row = int(again[0])
            who = ", ".join(
                f"{role} {shown(table.value(role, row))}"
                for role in table.roles
                if role != "outcome"
            )
            raise OutcomeError(
                f"each (system, question, trial) must occur once; {table.place(row)} holds {who}, "
                "which an earlier row holds too. Remove the repetition, or number the trials."
            )
        np.bitwise_or.at(self._seen, place, bit)

    def _refuse_again(self, table: Columns, system: Ints, question: Ints) -> None:
        """Refuse counts of a system and question of which an earlier part had counts."""
        again = np.flatnonzero(self._slots[system, question].any(axis=1))
        if len(again):
            row = int(again[0])
            raise OutcomeError(
                f"each (system, question) must have one row of counts; {table.place(row)} is of "
                f"question {shown(table.value('question', row))}, of which an earlier row is too. "
                "Add them up, or name their systems."
            )

    def _compare_content(self, table: Columns, question: Ints) -> None:
        """Refuse a question that an earlier part asks in other words."""
        asked = list(self._questions)
        for name, digests in table.content.items():
            found = np.asarray(digests, np.int64)
            rows = np.flatnonzero(found != UNKNOWN)
            labelled, first = np.unique(question[rows], return_index=True)
            known = self._content.setdefault(name, {})
            for label, row in zip(labelled.tolist(), rows[first].tolist(), strict=True):
                earlier, place = known.setdefault(label, (int(found[row]), table.number(row)))
                if earlier != found[row]:
                    two = replace(table, values={}, numbers=(place, table.number(row)))
                    raise several(two, name, 0, 1, asked[label])

    def long_form(self) -> LongForm:
        """Return the counts of all parts."""
        if not self._roles:
            raise OutcomeError("a table of outcomes must have rows; got none.")
        systems, questions = list(self._systems), list(self._questions)
        counted = self._slots[: len(systems), : len(questions)]
        notes = self._notes
        if any(str(name).lower() not in RIGHT for name in self._content):
            codes = np.arange(len(questions))
            each = [
                [own.get(code, (UNKNOWN, None))[0] for code in codes.tolist()]
                for own in self._content.values()
            ]
            notes += same_content(codes, questions, each)
        columns = self._columns.by_question(questions)
        return LongForm(systems, questions, counted=counted, notes=notes, columns=columns)


def _cells(table: Columns, long: LongForm) -> tuple[Ints, Ints]:
    """Return the system and the question of every row, by their places in the part."""
    if long.trials and long.trials[0].cell is not None:
        system, question = np.divmod(long.trials[0].cell, len(long.questions))
        return system, question
    question = labels(table, "question")[0]
    named = "system" in table.roles
    return labels(table, "system")[0] if named else np.zeros_like(question), question


def _places(known: dict[Any, int], names: Any) -> Ints:
    """Return the places of labels among all that have come so far."""
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _grown[Kind: np.generic](array: NDArray[Kind], shape: tuple[int, ...]) -> NDArray[Kind]:
    """Return the array with room for the shape; axes that are too short are doubled at least."""
    if all(had >= wanted for had, wanted in zip(array.shape, shape, strict=True)):
        return array
    room = [
        had if had >= wanted else max(wanted, 2 * had)
        for had, wanted in zip(array.shape, shape, strict=True)
    ]
    larger = np.zeros(room, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger
