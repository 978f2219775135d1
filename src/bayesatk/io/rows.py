"""Trials on their way in from logs: what every reader adds, what it is told, and what can go wrong.

Ids that do not identify a question, a system evaluated twice, marks on several scales, calls that
failed: what can go wrong in any log is found here, for every format, when all have been read.
"""

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_origin

import numpy as np

from bayesatk._tools.messages import PACKAGE, Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.columns import BY_TRIAL, GROUP, WEIGHT, Columns
from bayesatk.data.long_form import LongForm, MissingPolicy
from bayesatk.data.number_scale import NumberScale
from bayesatk.data.tables import read_rows
from bayesatk.data.tally import BINARY
from bayesatk.data.validation import (
    OutcomeError,
    OutcomeWarning,
    Scores,
    is_missing,
    shown,
)

EMPTY = "an empty output"
CORRECT_INCORRECT: Scores = {"I": 0.0, "C": 1.0}
QuestionKey = Literal["id", "content", "unchecked"]


@dataclass(frozen=True)
class LogOptions:
    """What a reader of logs is told; the parameters of `bayesatk.load` of the same names."""

    scorer: str | None = None
    filter: str | None = None
    task: str | None = None
    answers: bool = False
    question_key: QuestionKey = "id"
    same_system: Literal["error", "trials"] = "error"
    empty_output: Literal["marked", "missing"] = "marked"

    def __post_init__(self) -> None:
        for option in fields(self):
            value, allowed = getattr(self, option.name), get_args(option.type)
            if get_origin(option.type) is Literal:
                fits = isinstance(value, str) and value in allowed
                rule = f"one of {', '.join(map(repr, allowed))}"
            else:
                fits = isinstance(value, option.type)  # type: ignore[arg-type]
                rule = "True or False" if option.type is bool else "text"
            if not fits:
                raise OutcomeError(f"{option.name} must be {rule}; got {shown(value)}.")

    def given(self) -> list[str]:
        """Return the names of the options that are not the usual ones."""
        return [
            option.name for option in fields(self) if getattr(self, option.name) != option.default
        ]


@dataclass(slots=True)
class Trial:
    """One trial of a log.

    Parameters
    ----------
    system, task, question : hashable
    trial : hashable
        What tells the trials of a question within one log apart.
    outcome : object
        The mark; None where there is none.
    content : str
        Digest of what was asked and of what is right.
    reason : str
        Why there is no outcome.
    fault : str
        Why a trial that is marked wrong may not be the system's doing: a failed call, say.
    identity : str
        Name of this very trial in every log that repeats it, if the format has one.
    known : mapping of str to object
        What the log says of the question, of what was asked for.
    """

    system: str
    task: str
    question: Any
    trial: Any
    outcome: object
    answer: object = None
    content: str = ""
    reason: str = ""
    fault: str = ""
    identity: str = ""
    known: Mapping[str, object] = field(default_factory=dict)


@dataclass
class Rows:
    """The trials of all logs.

    Columns of questions that are wanted are in `roles`, by role; names of those that there are in
    `offered`.
    """

    options: LogOptions
    roles: dict[str, str] = field(default_factory=dict)
    offered: dict[str, None] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    logs: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, None] = field(default_factory=dict)
    filters: dict[str, None] = field(default_factory=dict)
    _run: str = ""
    _pool: dict[Any, Any] = field(default_factory=dict)

    def open(self, name: str, run: str = "") -> None:
        """Begin another log; the files of one run, one after another, are one log."""
        if not run or run != self._run:
            self.names.append(name)
        self._run = run

    def add(self, trial: Trial) -> None:
        """Take a trial of the log that was opened last."""
        position = f"(trial {len(self.trials) + 1} of {self.names[-1]})"
        if is_missing(trial.question) or not str(trial.question).strip():
            raise OutcomeError(
                f"every trial must have the id of its question; one has none {position}. Give the "
                "questions ids and run again, or remove the trial."
            )
        if not trial.system:
            raise OutcomeError(
                f"every trial must have the name of its system; one has none {position}. Name it: ",
                Argument("source", {"name": "file"}, "load"), ".",
            )  # fmt: skip
        names = {"id of a question": trial.question, "name of a trial": trial.trial}
        for subject, value in names.items():
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise OutcomeError(
                    f"the {subject} must be text or a whole number; got {shown(value)} {position}. "
                    "Write the log again with text, or remove the trial."
                )
        self.tasks.setdefault(trial.task)
        if self.options.task not in (None, trial.task):
            return
        trial.reason = (trial.reason or "no mark") if is_missing(trial.outcome) else ""
        for name in ("system", "task", "question", "content", "reason", "fault"):
            value = getattr(trial, name)  # one object for each text: a log repeats them
            setattr(trial, name, self._pool.setdefault((type(value), value), value))
        self.trials.append(trial)
        self.logs.append(len(self.names) - 1)

    def note(self, text: str) -> None:
        """Add what a person should know to the data card, once."""
        if text not in self.notes:
            self.notes.append(text)

    def marked_by(self, marker: str) -> None:
        """Remember what the marks of the log that was opened last are."""
        self.marks.setdefault(marker, self.names[-1])

    def place(self, row: int) -> str:
        """Return where a trial is, for a message."""
        trial = self.trials[row]
        log = self.names[self.logs[row]]
        named = trial.trial != "" and not log.endswith(str(trial.trial))
        trial_name = f", trial {shown(trial.trial)}" if named else ""
        return f"question {shown(trial.question)}{trial_name} of {log}"


def is_correct_incorrect(table: Columns) -> bool:
    """Whether the outcomes of a table are Inspect's C and I, as a converted log has them."""
    outcomes = table.values.get("outcome", ())
    if isinstance(outcomes, np.ndarray):  # numbers
        return False
    fits = all(
        mark in CORRECT_INCORRECT if isinstance(mark, str) else is_missing(mark)
        for mark in outcomes
    )
    return fits and any(isinstance(mark, str) for mark in outcomes)


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
    labels = [trial.task if name == "task" else trial.known.get(name) for trial in rows.trials]
    if all(label is None or label == "" for label in labels):
        subject = "trials" if role in BY_TRIAL else "questions"
        raise OutcomeError(
            Argument(role if role in (GROUP, WEIGHT, *BY_TRIAL) else "covariates"),
            f" must name what the logs say of their {subject}; none says {shown(name)}. There are "
            f"{shown(['task', *rows.offered], 400)[1:-1]}.",
        )
    rows.note(f"{role} = {shown(name)}")
    return labels


def to_long(
    rows: Rows, scores: Scores | None, missing: MissingPolicy, rules: AnswerRules
) -> tuple[LongForm, Scores]:
    """Return the trials of all logs in the long form, and the scores of their outcomes."""
    scale = scores if scores is not None else _usual_scores(rows)
    if GROUP not in rows.roles and len({trial.task for trial in rows.trials}) > 1:
        rows.roles[GROUP] = "task"  # as it can be asked for
    columns = to_columns(rows, scale)
    _check_missing(rows, missing)
    long = read_rows(columns, scale, rules)
    return replace(long, notes=(*rows.notes, *long.notes[1:])), scale


def _question_labels(rows: Rows) -> list[Any]:
    """Return one label for every trial; an id must stand for one content."""
    trials, key = rows.trials, rows.options.question_key
    tasks = list(dict.fromkeys(trial.task for trial in trials))
    several = len(tasks) > 1
    # Where there is no content, the log does not say what was asked.
    ids = [(t.task, str(t.question)) if t.content else row for row, t in enumerate(trials)]
    for first, row in _repeats(ids) if key == "id" else ():
        if trials[first].content != trials[row].content:
            raise OutcomeError(
                f"an id must stand for one question with one right answer; {rows.place(first)} and "
                f"{rows.place(row)} differ in what was asked or in the target. To tell questions "
                "by content use ", Argument("question_key", "content"),
                "; if they are one question in other words, ",
                Argument("question_key", "unchecked"), ".",
            )  # fmt: skip
    if tasks != [""]:
        rows.note(f"task{'s' * several}: {', '.join(tasks)}" + "; questions TASK/ID" * several)
    labels = [f"{t.task}/{t.question}" if several else str(t.question) for t in trials]
    if key == "content":
        rows.note("questions told apart by id and content: labels ID#DIGEST")
        return [f"{label}#{trial.content}" for label, trial in zip(labels, trials, strict=True)]
    for first, row in _repeats(labels) if several else ():
        if trials[first].task != trials[row].task:
            raise OutcomeError(
                f"TASK/ID must name one question; {rows.place(row)} and {rows.place(first)} are "
                f"both {labels[row]!r}. Read the tasks one by one, or use ",
                Argument("question_key", "content"), ".",
            )  # fmt: skip
    plain = not several and all(type(trial.question) is int for trial in trials)
    return [trial.question for trial in trials] if plain else labels


def _trial_labels(rows: Rows, questions: list[Any]) -> list[int]:
    """Return a number for every trial within its question; a trial may not come twice."""
    trials, logs = rows.trials, rows.logs
    for first, row in _repeats([trial.identity or row for row, trial in enumerate(trials)]):
        raise OutcomeError(
            f"every trial must come once; {rows.place(first)} is, by its own identifier, "
            f"{rows.place(row)} again. One log repeats or continues the other: leave the "
            "superseded one out."
        )
    cells = [(trial.system, question) for trial, question in zip(trials, questions, strict=True)]
    names = zip(cells, logs, (trial.trial for trial in trials), strict=True)
    for _, row in _repeats(names):
        raise OutcomeError(
            f"every trial must come once; {rows.place(row)} occurs twice there. Remove one, or "
            "number the trials."
        )
    again = [(first, row) for first, row in _repeats(cells) if logs[first] != logs[row]]
    for first, row in again if rows.options.same_system == "error" else ():
        raise OutcomeError(
            f"a system must be evaluated once; {shown(trials[row].system)} has "
            f"{rows.place(first)} and again {rows.place(row)}. If each log holds further trials, "
            "use ", Argument("same_system", "trials"),
            "; if they are different systems, name them: ",
            Argument("source", {"a": "first.log", "b": "second.log"}, "load"), ".",
        )  # fmt: skip
    for system in dict.fromkeys(trials[row].system for _, row in again):
        rows.note(f"several logs of {shown(system)}: each holds further trials")
    numbers: Counter[tuple[str, Any]] = Counter()
    labels = []
    for cell in cells:
        numbers[cell] += 1
        labels.append(numbers[cell])
    return labels


def _repeats(keys: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """Yield every row whose key an earlier row has, behind the first row that has it."""
    firsts: dict[Hashable, int] = {}
    for row, key in enumerate(keys):
        first = firsts.setdefault(key, row)
        if first != row:
            yield first, row


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
    if isinstance(scores, NumberScale):  # which has no numbers before they are read
        numbers = [trial.outcome for trial in rows.trials if not is_missing(trial.outcome)]
        scores = {number: number for number in numbers if isinstance(number, int | float)}
    lowest = min(scores.values(), default=None)
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
    faults = ", ".join(f"{fault} ({number})" * (len(kinds) > 1) or fault for fault, number in kinds)
    counted_faults = f"{len(faulty)} of {len(rows.trials)} trials have {faults}"
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
    warnings.warn(OutcomeWarning(*advice), skip_file_prefixes=(PACKAGE,))


def _usual_scores(rows: Rows) -> Scores:
    """Return the scores of the marks where none are given: right and wrong only."""
    seen: dict[Any, int] = {}
    for row, trial in enumerate(rows.trials):
        if not is_missing(trial.outcome) and isinstance(trial.outcome, str | int | float):
            seen.setdefault(trial.outcome, row)
    texts = [mark for mark in seen if isinstance(mark, str)]
    numbers = [mark for mark in seen if not isinstance(mark, str)]
    if not texts:
        return BINARY
    if numbers:
        raise OutcomeError(
            f"marks must be on one scale; {rows.place(seen[texts[0]])} has {shown(texts[0])}, "
            f"{rows.place(seen[numbers[0]])} has {shown(numbers[0])}. Evaluate the logs one by "
            "one, or score every mark: ",
            Argument("scores", {"I": 0, "C": 1, numbers[0]: ...}), ".",
        )  # fmt: skip
    unknown = next((mark for mark in texts if mark not in CORRECT_INCORRECT), None)
    if unknown is None:
        rows.note("C is right, I is wrong")
        return CORRECT_INCORRECT
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
            " counts them as the worst score.",
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
