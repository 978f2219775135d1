"""From the trials of all logs to counts: the checks that hold for every format.

Ids that do not identify a question, a system evaluated twice, marks on several scales, calls that
failed: what can go wrong in any log is found here, when all have been read.
"""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.columns import COST, GROUP, WEIGHT, Columns
from bayesatk.data.counter import read_rows
from bayesatk.data.long_form import LongForm, MissingPolicy
from bayesatk.data.tally import BINARY
from bayesatk.data.validation import (
    OutcomeError,
    OutcomeWarning,
    Scores,
    check_scores,
    is_missing,
    shown,
)
from bayesatk.io.rows import Rows, Trial

TASK = "task"  # name under which the task of a question can be asked for
CORRECT_INCORRECT: Scores = {"I": 0.0, "C": 1.0}


def is_correct_incorrect(table: Columns) -> bool:
    """Whether the outcomes of a table are Inspect's C and I, as a converted log has them."""
    outcomes = table.values.get("outcome", ())
    if isinstance(outcomes, np.ndarray):  # numbers
        return False
    texts = {value for value in outcomes if isinstance(value, str)}
    has_other_marks = any(
        not isinstance(value, str) and not is_missing(value) for value in outcomes
    )
    return bool(texts) and texts <= set(CORRECT_INCORRECT) and not has_other_marks


@dataclass(frozen=True)
class _LogColumns(Columns):
    """Columns whose rows have their place in a log."""

    source: Rows | None = None

    def place(self, row: int) -> str:
        return "" if self.source is None else self.source.place(row)


def to_columns(rows: Rows, scale: Scores | None = None) -> Columns:
    """Return the trials of all logs as a long table with one label for every question."""
    if not rows.trials and rows.tasks:
        raise OutcomeError(
            f"task must be one of {', '.join(map(shown, rows.tasks))}; got "
            f"{shown(rows.options.task)}."
        )
    if not rows.trials:
        raise OutcomeError("the logs must have trials; got none. Did the evaluation finish?")
    questions = _question_labels(rows)
    trials = _trial_labels(rows, questions)
    _check_empty(rows, scale)
    _note_marks(rows)
    for trial in rows.trials:
        if is_missing(trial.outcome) and not trial.reason:
            trial.reason = "no mark"
    values: dict[str, Sequence[object]] = {
        "system": [trial.system for trial in rows.trials], "question": questions, "trial": trials,
        "outcome": [trial.outcome for trial in rows.trials],
    }  # fmt: skip
    if rows.options.answers:
        values["answer"] = [trial.answer for trial in rows.trials]
    values |= {role: _said(rows, role, name) for role, name in rows.roles.items()}
    return _LogColumns({role: role for role in values} | rows.roles, values, source=rows)


def _said(rows: Rows, role: str, name: str) -> list[object]:
    """Return what the logs say of every trial, or of its question, under a name."""
    labels = [trial.task if name == TASK else trial.known.get(name) for trial in rows.trials]
    if all(label is None or label == "" for label in labels):
        subject = "trials" if role == COST else "questions"
        raise OutcomeError(
            Argument(role if role in (GROUP, WEIGHT, COST) else "covariates"),
            f" must name what the logs say of their {subject}; none says {shown(name)}. There are "
            f"{shown([TASK, *rows.offered], 400)[1:-1]}.",
        )
    rows.note(f"{role} = {shown(name)}")
    return labels


def to_long(
    rows: Rows, scores: Mapping[Any, float] | None, missing: MissingPolicy, rules: AnswerRules
) -> tuple[LongForm, Scores]:
    """Return the trials of all logs in the long form, and the scores of their outcomes."""
    scale = check_scores(scores) if scores is not None else _usual_scores(rows)
    if GROUP not in rows.roles and len({trial.task for trial in rows.trials}) > 1:
        rows.roles[GROUP] = TASK
    columns = to_columns(rows, scale)
    _check_missing(rows, missing)
    long = read_rows(columns, scale, rules)
    return replace(long, notes=(*rows.notes, *long.notes[1:])), scale


def _question_labels(rows: Rows) -> list[Any]:
    """Return one label for every trial; an id must stand for one content."""
    tasks = list(dict.fromkeys(trial.task for trial in rows.trials))
    first: dict[tuple[str, str], int] = {}
    key, several = rows.options.question_key, len(tasks) > 1
    for row, trial in enumerate(rows.trials):
        if not trial.content:
            continue  # the log does not say what was asked
        seen = first.setdefault((trial.task, str(trial.question)), row)
        if key == "id" and rows.trials[seen].content != trial.content:
            raise OutcomeError(
                f"an id must stand for one question with one right answer; {rows.place(seen)} and "
                f"{rows.place(row)} differ in what was asked or in the target. To tell questions "
                "by content use ", Argument("question_key", "content"),
                "; if they are one question in other words, ",
                Argument("question_key", "unchecked"), ".",
            )  # fmt: skip
    if several and key != "content":
        _check_labels(rows)
    if tasks != [""]:
        rows.note(f"task{'s' * several}: {', '.join(tasks)}" + "; questions TASK/ID" * several)
    plain = not several and all(type(trial.question) is int for trial in rows.trials)
    if key == "content":
        rows.note("questions told apart by id and content: labels ID#DIGEST")
        return [_label(trial, several) + f"#{trial.content}" for trial in rows.trials]
    if plain:
        return [trial.question for trial in rows.trials]
    return [_label(trial, several) for trial in rows.trials]


def _check_labels(rows: Rows) -> None:
    """Refuse tasks and ids whose joint labels are the same, as of a/b + c and a + b/c."""
    first: dict[str, int] = {}
    for row, trial in enumerate(rows.trials):
        first_trial = rows.trials[first.setdefault(_label(trial, True), row)]
        if (first_trial.task, str(first_trial.question)) != (trial.task, str(trial.question)):
            raise OutcomeError(
                f"TASK/ID must name one question; {rows.place(row)} and "
                f"{rows.place(first[_label(trial, True)])} are both {_label(trial, True)!r}. Read "
                "the tasks one by one, or use ", Argument("question_key", "content"), ".",
            )  # fmt: skip


def _label(trial: Trial, several: bool) -> str:
    return f"{trial.task}/{trial.question}" if several else str(trial.question)


def _trial_labels(rows: Rows, questions: list[Any]) -> list[int]:
    """Return a number for every trial within its question; a trial may not come twice."""
    _check_copies(rows)
    seen: dict[tuple[str, Any, int, Any], int] = {}
    first: dict[tuple[str, Any], int] = {}
    numbers: dict[tuple[str, Any], int] = {}
    labels, repeated = [], set()
    for row, (trial, question, log) in enumerate(
        zip(rows.trials, questions, rows.logs, strict=True)
    ):
        cell = trial.system, question
        if seen.setdefault((*cell, log, trial.trial), row) != row:
            raise OutcomeError(
                f"every trial must come once; {rows.place(row)} occurs twice there. Remove one, or "
                "number the trials."
            )
        earlier = first.setdefault(cell, row)
        if rows.logs[earlier] != log:
            _check_twice(rows, earlier, row)
            repeated.add(trial.system)
        numbers[cell] = numbers.get(cell, 0) + 1
        labels.append(numbers[cell])
    for system in repeated:
        rows.note(f"several logs of {shown(system)}: each holds further trials")
    return labels


def _check_copies(rows: Rows) -> None:
    """Refuse one and the same trial in two logs."""
    named: dict[str, int] = {}
    for row, trial in enumerate(rows.trials):
        if trial.identity and named.setdefault(trial.identity, row) != row:
            raise OutcomeError(
                f"every trial must come once; {rows.place(named[trial.identity])} is, by its own "
                f"identifier, {rows.place(row)} again. One log repeats or continues the other: "
                "leave the superseded one out."
            )


def _check_twice(rows: Rows, earlier: int, row: int) -> None:
    """Refuse a second log of a system and question, unless it holds further trials."""
    if rows.options.same_system == "error":
        raise OutcomeError(
            f"a system must be evaluated once; {shown(rows.trials[row].system)} has "
            f"{rows.place(earlier)} and again {rows.place(row)}. If each log holds further trials, "
            "use ", Argument("same_system", "trials"),
            "; if they are different systems, name them: ",
            Argument("source", {"a": "first.log", "b": "second.log"}, "load"), ".",
        )  # fmt: skip


def _note_marks(rows: Rows) -> None:
    """Say what the marks are; systems marked in different ways are hard to compare."""
    if len(rows.marks) == 1:
        rows.note(f"marks are {next(iter(rows.marks))}")
    elif rows.marks:
        markers = "; ".join(f"{marker} ({log})" for marker, log in rows.marks.items())
        rows.note(f"CHECK: marks are of several kinds: {markers}")


def _check_empty(rows: Rows, scale: Scores | None) -> None:
    """Warn of trials that returned nothing, or failed, and yet have the lowest mark."""
    scores = {**CORRECT_INCORRECT, **BINARY} if scale is None else scale
    lowest = min(scores.values())
    faulty = [
        row
        for row, trial in enumerate(rows.trials)
        if trial.fault
        and isinstance(trial.outcome, str | int | float)
        and scores.get(trial.outcome) == lowest
    ]
    if not faulty:
        return
    kinds = Counter(rows.trials[row].fault for row in faulty).most_common()
    fault_text = " and ".join(fault for fault, _ in kinds)
    if len(kinds) > 1:
        fault_text = ", ".join(f"{fault} ({number})" for fault, number in kinds)
    counted_faults = f"{len(faulty)} of {len(rows.trials)} trials have {fault_text}"
    if rows.options.empty_output == "missing":
        for row in faulty:
            trial = rows.trials[row]
            trial.outcome, trial.reason = None, trial.fault.partition(" ")[2]
        rows.note(f"{counted_faults}: read as missing")
        return
    first = rows.place(faulty[0])
    text = f"{counted_faults} and are marked wrong (first: {first}); were the calls failed?"
    rows.note(f"CHECK: {text}")
    advice = (f"{text} ", Argument("empty_output", "missing"), " reads them as missing.")
    warnings.warn(OutcomeWarning(*advice), stacklevel=5)


def _usual_scores(rows: Rows) -> Scores:
    """Return the scores of the marks where none are given: right and wrong only."""
    seen: dict[Any, int] = {}
    for row, trial in enumerate(rows.trials):
        if not is_missing(trial.outcome) and isinstance(trial.outcome, str | int | float):
            seen.setdefault(trial.outcome, row)
    texts = [mark for mark in seen if isinstance(mark, str)]
    if not texts:
        return BINARY
    if len(texts) < len(seen):
        number_mark = next(mark for mark in seen if not isinstance(mark, str))
        raise OutcomeError(
            f"marks must be on one scale; {rows.place(seen[texts[0]])} has {shown(texts[0])}, "
            f"{rows.place(seen[number_mark])} has {shown(number_mark)}. Evaluate the logs one by "
            "one, or score every mark: ",
            Argument("scores", {"I": 0, "C": 1, number_mark: ...}), ".",
        )  # fmt: skip
    if set(texts) <= set(CORRECT_INCORRECT):
        rows.note("C is right, I is wrong")
        return CORRECT_INCORRECT
    unknown = next(mark for mark in texts if mark not in CORRECT_INCORRECT)
    example = {"C": 1, "P": 0.5, "I": 0, "N": 0}
    example_scores = {mark[:20]: example.get(mark, ...) for mark in sorted(texts)[:10]}
    raise OutcomeError(
        f"marks other than C and I must be given scores; got {shown(unknown)} at "
        f"{rows.place(seen[unknown])}. For instance ", Argument("scores", example_scores),
        " (partial credit P, no answer N: what they are worth is yours to say).",
    )  # fmt: skip


def _check_missing(rows: Rows, missing: MissingPolicy) -> None:
    """Note the trials without an outcome by reason, or refuse them."""
    gaps = [row for row, trial in enumerate(rows.trials) if is_missing(trial.outcome)]
    if not gaps:
        return
    reasons = Counter(rows.trials[row].reason for row in gaps).most_common()
    reason_text = "; ".join(f"{number} {reason}" for reason, number in reasons)
    if missing == "error":
        raise OutcomeError(
            f"missing: {len(gaps)} of {len(rows.trials)} trials have no outcome ({reason_text}); "
            f"the first is {rows.place(gaps[0])}. Say what they mean: ",
            Argument("missing", "ignore"), " leaves them out, ", Argument("missing", "wrong"),
            " counts them as the lowest score.",
        )  # fmt: skip
    rows.note(f"without outcome: {reason_text}")


def note_uneven(long: LongForm, scores: Scores) -> LongForm:
    """Say where single trials stand beside repeated ones: a run that was broken off, perhaps."""
    trials = long.slots(scores).sum(axis=-1)
    doubts = []
    for system, system_trials in zip(long.systems, trials, strict=True):
        single = int((system_trials == 1).sum())
        if single and system_trials.max() > 1:
            first = long.questions[int(np.argmax(system_trials == 1))]
            doubts.append(
                f"CHECK: {single} of {len(system_trials)} questions of {shown(system)} have a "
                f"single trial, others up to {system_trials.max()} (first: {shown(first)}); was "
                "the run broken off?"
            )
    return replace(long, notes=(*long.notes, *doubts))
