"""The long form: what every input becomes before it is counted, once, into the canonical counts.

A long form is a list of trials: system, question, trial, outcome and, where votes are of interest,
answer. Readers (`arrays`, `labelled`, `tables`, and `bayesatk.io` for files) make it. Outcomes are
small integer codes, positions among the scored outcomes; system and question of a trial are
positions too, and in an array its place says them, so that 10^8 trials cost a byte each.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules, Answers, group
from bayesatk.data.codes import BLOCK, Codes, Ints, marks_of
from bayesatk.data.validation import (
    OutcomeError,
    Scores,
    check_labels,
)

MissingPolicy = Literal["error", "ignore", "wrong", "bounds"]
PLAIN = frozenset({int, bool, str, float, NoneType})  # types of single values, never of rows


@dataclass(frozen=True)
class Trials:
    """Trials with their outcomes: those of an array, or the rows of a table.

    Parameters
    ----------
    code : ndarray of int
        Outcome of each trial: position among the scored ones, or `CODE_MISSING`. An array with
        dims (system, question, trial), or one value per row.
    cell : ndarray of int, shape (rows,), optional
        System times the number of questions plus question, for rows.
    first : int
        Position of the first system.
    """

    code: Codes
    cell: Ints | None = None
    first: int = 0

    def add_to(self, slots: Ints) -> None:
        """Add the trials to counts (system, question, slot); slot 0 is of missing outcomes."""
        own = slots[self.first :]
        if self.cell is not None:
            counts = np.bincount(self.cell * slots.shape[-1] + self.code + 1)
            own.reshape(-1)[: len(counts)] += counts
            return
        for code, into in zip(self.code, own, strict=False):
            step = max(1, BLOCK // code.shape[1])
            for start in range(0, len(code), step):
                block = code[start : start + step]
                for slot in range(into.shape[1]):
                    found = (block == slot - 1).sum(axis=1, dtype=np.int32)
                    into[start : start + step, slot] += found

    def rows(self, questions: int) -> tuple[Ints, Ints, Codes]:
        """Return cell, position of the trial, and outcome of every trial."""
        offset = self.first * questions
        if self.cell is not None:
            return self.cell + offset, np.arange(len(self.code)), self.code
        cells, trials = math.prod(self.code.shape[:2]), self.code.shape[2]
        cell = np.repeat(np.arange(offset, offset + cells), trials)
        return cell, np.tile(np.arange(trials), cells), self.code.ravel()


@dataclass(frozen=True)
class LongForm:
    """Trials of systems and questions, or their counts where the input has no more.

    Parameters
    ----------
    systems, questions : sequence
        Labels, by position.
    trials : tuple of Trials
    counted : ndarray of int, shape (system, question, slot), optional
        Counts of an input that holds no trials; slot 0 is of missing outcomes.
    trial_labels : sequence, optional
        By row, or by position in an array.
    answer : list of str or None, optional
        Normalised answer of every trial, None where there is none.
    rules : AnswerRules
        How the answers were normalised, and how they are grouped.
    notes : tuple of str
        What was assumed.
    columns : mapping of str to ndarray, shape (question,)
        What is known of the questions: their group, weight, covariates.
    cost : ndarray, optional
        Of every trial, NaN where it is unknown.
    """

    systems: Sequence[Any]
    questions: Sequence[Any]
    trials: tuple[Trials, ...] = ()
    counted: Ints | None = None
    trial_labels: Sequence[Any] | None = None
    answer: list[str | None] | None = None
    rules: AnswerRules = field(default_factory=AnswerRules)
    notes: tuple[str, ...] = ()
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    cost: NDArray[np.float64] | None = None

    @classmethod
    def of_trials(cls, trials: Sequence[Trials], systems: int, questions: int) -> "LongForm":
        """Return trials under default labels."""
        return cls(default_systems(systems), range(questions), tuple(trials))

    @classmethod
    def of_counts(cls, count: NDArray[Any], missing: NDArray[Any]) -> "LongForm":
        """Return counts (system, question, category) under default labels."""
        counted = np.concatenate([missing[..., None], count], axis=-1).astype(np.int64)
        return cls(default_systems(len(count)), range(count.shape[1]), counted=counted)

    def labelled(self, systems: object, questions: object) -> "LongForm":
        """Replace the labels, checking their number."""
        changed: dict[str, Any] = {}
        if systems is not None:
            changed["systems"] = check_labels(systems, "systems", len(self.systems))
        if questions is not None:
            changed["questions"] = check_labels(questions, "questions", len(self.questions))
        return replace(self, **changed)

    def rows(self) -> tuple[Ints, Ints, Codes]:
        """Return cell, position of the trial, and outcome of every trial."""
        columns = zip(*(own.rows(len(self.questions)) for own in self.trials), strict=True)
        cell, trial, code = (np.concatenate(column) for column in columns)
        return cell, trial, code

    def count(self, scores: Scores) -> "Counts":
        """Count the trials by system, question and outcome; and the answers, if there are any."""
        shape = len(self.systems), len(self.questions)
        slots = self.counted
        if slots is None:
            slots = np.zeros((*shape, len(scores) + 1), np.int64)
            for own in self.trials:
                own.add_to(slots)
        answers, notes = None, self.notes
        if self.answer is not None:
            cell, _, code = self.rows()
            answers, remarks = group(
                cell, marks_of(code, scores), self.answer, self.rules, shape, self.questions
            )
            notes = (*notes, *remarks)
        count = np.ascontiguousarray(slots[..., 1:])
        missing = slots[..., 0].copy()
        return Counts(
            self.systems, self.questions, count, missing, answers, notes, self.columns,
            self._cost_sums(slots.shape),
        )  # fmt: skip

    def _cost_sums(self, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
        """Return number, sum and sum of logs of known costs; (system, question, slot, 3)."""
        if self.cost is None:
            return None
        cell, _, code = self.rows()
        known = ~np.isnan(self.cost)
        place = cell[known] * shape[2] + code[known] + 1
        own = self.cost[known]
        sums = [
            np.bincount(place, each, math.prod(shape))
            for each in (np.ones_like(own), own, np.log(own))
        ]
        return np.stack(sums, axis=-1).reshape(*shape, 3)


def default_systems(number: int) -> Sequence[Any]:
    """Return labels for systems that have none."""
    return ["system"] if number == 1 else range(number)


@dataclass(frozen=True)
class Counts:
    """Counts with their labels, before missing outcomes are refused, left out or counted.

    Parameters
    ----------
    systems, questions : sequence
    count : ndarray of int, shape (system, question, category)
    missing : ndarray of int, shape (system, question)
    answers : Answers, optional
    notes : tuple of str
    columns : mapping of str to ndarray, shape (question,)
    costs : ndarray, shape (system, question, 1 + category, 3), optional
        Number, sum and sum of logs of known costs; first of trials without an outcome.
    cost_unit : str
    """

    systems: Sequence[Any]
    questions: Sequence[Any]
    count: Ints
    missing: Ints
    answers: Answers | None = None
    notes: tuple[str, ...] = ()
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    costs: NDArray[np.float64] | None = None
    cost_unit: str = ""

    def with_missing(self, missing: MissingPolicy, scores: Scores) -> "Counts":
        """Refuse missing outcomes, leave them out, or count them as the lowest score."""
        absent = (self.count.sum(axis=-1) == 0) & (self.missing == 0)
        gaps = self.missing + absent
        if not gaps.any():
            return self
        lacking, unrun = int(self.missing.sum()), int(absent.sum())
        if missing == "error" or (missing == "wrong" and unrun):
            first = tuple(np.argwhere(absent if missing == "wrong" else gaps)[0].tolist())
            what = (
                "has no trials" if absent[first] else f"has {self.missing[first]} missing outcomes"
            )
            ignored, wrong = (Argument("missing", each, "tally") for each in ("ignore", "wrong"))
            remedy = (
                ("The number of trials to count as wrong is not known. Use ", ignored,
                 ", or give the missing outcomes as None.")
                if missing == "wrong"
                else ("Say what they mean: ", ignored, " leaves them out")
                + ((".",) if unrun else (", ", wrong, " counts them as the lowest score."))
            )  # fmt: skip
            raise OutcomeError(
                f"missing: system {self.systems[first[0]]!r}, question "
                f"{self.questions[first[1]]!r} {what} ({lacking} missing outcomes and {unrun} "
                "questions never run in all). ", *remedy,
            )  # fmt: skip
        note = f"missing={missing!r}: {lacking} outcomes missing, "
        note += f"{unrun} (system, question) cells never run"
        count, answers, costs = self.count.copy(), self.answers, self.costs
        if missing == "wrong":
            lowest = int(np.argmin(list(scores.values())))
            count[..., lowest] += self.missing
            if answers is not None:
                answers = replace(answers, unanswered=answers.unanswered + self.missing)
            if costs is not None:
                costs = costs.copy()
                costs[..., 1 + lowest, :] += costs[..., 0, :]
        return replace(
            self, count=count, answers=answers, costs=costs, notes=(*self.notes, note)
        )  # fmt: skip
