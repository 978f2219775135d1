"""Rows of answers as they came, with marks or references, grouped into `Answers`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.data.answers import RIGHT, UNKNOWN, AnswerRules, Answers, Ints
from bayesatk.data.validation import OutcomeError, Scores, shown


@dataclass(frozen=True)
class Given:
    """Answers as they came, one row per trial.

    Parameters
    ----------
    system, question : ndarray of int, shape (rows,)
    answer : list
    mark : ndarray of int, shape (rows,)
        Right, wrong or unknown.
    reference : list of sets of str, by question, optional
        Normalised right answers; where given, they decide.
    """

    system: Ints
    question: Ints
    answer: list[Any]
    mark: Ints
    reference: list[set[str]] | None = None


def as_marks(codes: NDArray[np.int16], scores: Scores) -> Ints:
    """Return right, wrong or unknown for outcome codes."""
    values = np.array([*scores.values(), np.nan])
    if set(scores.values()) != {0.0, 1.0}:
        raise OutcomeError(
            "answers need outcomes that are right or wrong, scored 1 and 0; got scores "
            f"{shown(dict(scores))}. Map the outcomes to 0 and 1, or leave the answers out."
        )
    found = values[codes]  # a missing outcome is -1: the last
    return np.where(np.isnan(found), UNKNOWN, found).astype(np.int64)


def as_codes(marks: Ints, scores: Scores) -> NDArray[np.int16]:
    """Return outcome codes for marks that are known."""
    order = list(scores.values())
    return np.array([order.index(0.0), order.index(1.0)], np.int16)[marks]


def right_answers(value: object, rules: AnswerRules, where: str) -> set[str]:
    """Return the normalised right answers that a reference stands for: one, or a collection."""
    several = isinstance(value, list | tuple | set | frozenset | np.ndarray)
    found = {rules.apply(one) for one in (value if several else [value])}  # type: ignore[attr-defined]
    if None in found or not found:
        raise OutcomeError(
            f"every question must have a reference, its right answer; {where} has {shown(value)}. "
            "Give it, or mark the trials right or wrong in place of references."
        )
    return {one for one in found if one is not None}


def group(
    given: Given, rules: AnswerRules, shape: tuple[int, int], questions: Sequence[Any]
) -> tuple[Answers, Ints, tuple[str, ...]]:
    """Count distinct answers.

    Parameters
    ----------
    given : Given
    rules : AnswerRules
    shape : (int, int)
        Systems and questions.
    questions : sequence
        Labels, for messages.

    Returns
    -------
    answers : Answers
    mark : ndarray of int, shape (rows,)
        As given, or by the reference.
    notes : tuple of str
    """
    text = [rules.apply(answer) for answer in given.answer]
    mark = given.mark
    if given.reference is not None:
        among = (given.reference[q] for q in given.question.tolist())
        mark = np.array([one in right for one, right in zip(text, among, strict=True)], np.int64)
    empty = np.array([one is None for one in text], bool)
    if (empty & (mark == RIGHT)).any():
        row = int(np.argmax(empty & (mark == RIGHT)))
        raise OutcomeError(
            f"a trial without an answer cannot be right; question "
            f"{shown(questions[given.question[row]])} has one (row {row}). Give its answer, or "
            "mark it wrong."
        )
    silent = empty & (mark != UNKNOWN)
    cell = given.system * shape[1] + given.question
    unanswered = np.bincount(cell[silent], minlength=shape[0] * shape[1]).reshape(shape)
    rows = np.flatnonzero(~empty & (mark != UNKNOWN))
    keys = [(int(given.question[row]), str(text[row])) for row in rows]
    correct, notes = _marks(keys, mark[rows], rules, questions)
    entries = _Entries(rules.merge_correct)
    for system, (question, label), right in zip(
        given.system[rows].tolist(), keys, correct.tolist(), strict=True
    ):
        entries.add(system, question, label, right)
    return entries.answers(unanswered.astype(np.int64), rules), mark, (rules.describe(), *notes)


class _Entries:
    """Counts of distinct answers in the making."""

    def __init__(self, merge_correct: bool) -> None:
        self._merge = merge_correct
        self._count: dict[tuple[int, int, str, bool], int] = {}

    def add(self, system: int, question: int, label: str, right: bool) -> None:
        """Count an answer; merged right answers go by one name."""
        key = (system, question, "right answers" if right and self._merge else label, right)
        self._count[key] = self._count.get(key, 0) + 1

    def answers(self, unanswered: Ints, rules: AnswerRules) -> Answers:
        """Return the entries in order of appearance."""
        keys = list(self._count)
        return Answers(
            np.array([key[0] for key in keys], np.int64),
            np.array([key[1] for key in keys], np.int64),
            [key[2] for key in keys],
            np.array(list(self._count.values()), np.int64),
            np.array([key[3] for key in keys], bool),
            unanswered,
            rules,
        )


def _marks(
    keys: list[tuple[int, str]], mark: Ints, rules: AnswerRules, questions: Sequence[Any]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """One mark for every distinct answer to a question, by row."""
    codes: dict[tuple[int, str], int] = {}
    code = np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)
    right = np.bincount(code, weights=mark, minlength=len(codes))
    total = np.bincount(code, minlength=len(codes))
    mixed = (right > 0) & (right < total)
    if mixed.any() and rules.conflict == "error":
        names = [key for key, bad in zip(codes, mixed, strict=True) if bad]
        question, label = names[0]
        at = codes[names[0]]
        more = f" and {len(names) - 1} more" * (len(names) > 1)
        raise OutcomeError(
            f"equal answers to a question must have equal marks; {shown(label)} to question "
            f"{shown(questions[question])} is marked right {int(right[at])} "
            f"and wrong {int(total[at] - right[at])} times{more}. Correct the "
            "marks, compare answers otherwise (normalise=), or let most marks decide: "
            "AnswerRules(conflict='majority')."
        )
    decided = 2.0 * right > total
    changed = int(np.minimum(right, total - right).sum())
    notes = (
        (f"{changed} marks overruled by the majority of equal answers (plurality only)",)
        if changed
        else ()
    )
    return np.asarray(decided[code] if len(code) else np.zeros(0, bool)), notes
