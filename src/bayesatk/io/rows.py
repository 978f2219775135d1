"""Trials on their way in from logs: what every reader adds, and what it is told.

What can go wrong in any format is found in `bayesatk.io.run_checks`, when all have been read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from bayesatk._tools.messages import Argument
from bayesatk.data.validation import OutcomeError, is_missing, shown

_NOTHING: Mapping[str, object] = MappingProxyType({})
EMPTY = "an empty output"
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
        for name, allowed in (
            ("question_key", ("id", "content", "unchecked")),
            ("same_system", ("error", "trials")),
            ("empty_output", ("marked", "missing")),
            ("answers", (True, False)),
        ):
            value = getattr(self, name)
            if not isinstance(value, str | bool) or value not in allowed:
                raise OutcomeError(
                    f"{name} must be one of {', '.join(map(repr, allowed))}; got {shown(value)}."
                )
        for name in ("scorer", "filter", "task"):
            if not isinstance(getattr(self, name), str | None):
                raise OutcomeError(f"{name} must be text; got {shown(getattr(self, name))}.")

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
    known: Mapping[str, object] = _NOTHING


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
        if is_missing(trial.question) or (
            isinstance(trial.question, str) and not trial.question.strip()
        ):
            raise OutcomeError(
                f"every trial must have the id of its question; number {len(self.trials) + 1} has "
                "none. Give the questions ids and run again, or remove the trial."
            )
        if not isinstance(trial.system, str) or not trial.system:
            raise OutcomeError(
                f"every trial must have the name of its system; got {shown(trial.system)}. Name "
                "it: ", Argument("source", {"name": "file"}, "load"), ".",
            )  # fmt: skip
        for value, subject in (
            (trial.question, "id of a question"),
            (trial.trial, "name of a trial"),
        ):
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise OutcomeError(
                    f"the {subject} must be text or a whole number; got {shown(value)} (trial "
                    f"{len(self.trials) + 1} of {self.names[-1]}). Write the log again with text, "
                    "or remove the trial."
                )
        self.tasks.setdefault(trial.task)
        if self.options.task not in (None, trial.task):
            return
        for name in ("system", "task", "question", "content", "reason", "fault"):
            value = getattr(trial, name)  # one object for each text: a log repeats them
            setattr(trial, name, self._pool.setdefault((type(value), value), value))
        self.trials.append(trial)
        self.logs.append(len(self.names) - 1)

    def known(self, find: Callable[[str], object], names: Iterable[object]) -> Mapping[str, object]:
        """Return what a record says of its question, of what is wanted; names are all it has."""
        if len(self.offered) < 100:  # for messages
            self.offered |= dict.fromkeys(name for name in names if isinstance(name, str))
        return {name: find(name) for name in self.roles.values()} if self.roles else _NOTHING

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
