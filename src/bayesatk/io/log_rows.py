"""Trials that readers of logs add, the options of readers, and checks of all logs together.

The checks are the same for every format: ids that do not identify a question, a system that was
evaluated twice, marks on several scales, failed calls, missing outcomes.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_origin

import numpy as np

from bayesatk._tools.messages import PACKAGE, Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.columns import Columns, Picked
from bayesatk.data.long_form import LongForm, MissingPolicy
from bayesatk.data.long_tables import read_rows
from bayesatk.data.roles import BY_TRIAL, GROUP, ROLES, WEIGHT, Sample
from bayesatk.data.tally import BINARY, worst_or_best
from bayesatk.data.validation import (
    NumberScale,
    OutcomeError,
    OutcomeWarning,
    Scores,
    is_absent,
    is_missing,
    shown,
)
from bayesatk.io.load_options import FileOptions

EMPTY_OUTPUT = "an empty output"
CORRECT_INCORRECT: Scores = {"I": 0.0, "C": 1.0}


@dataclass(frozen=True)
class ReadOptions(FileOptions):
    """Options for reading files, with the names of columns.

    `roles` are names of columns, or of fields of logs, with groups, weights, covariates and costs;
    they hold for all files.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    progress: bool | None = None
    roles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, arguments: Mapping[str, Any], roles: Mapping[str, str]) -> "ReadOptions":
        """Return the options among the arguments of a function."""
        names = [option.name for option in fields(cls) if option.name in arguments]
        optional = {"columns", "where", "ignore"}
        values = {
            name: arguments[name]
            for name in names
            if arguments[name] is not None or name not in optional
        }
        if isinstance(values.get("ignore"), str):
            values["ignore"] = [values["ignore"]]
        return cls(**values | {"roles": roles})

    def __post_init__(self) -> None:
        for option in fields(self):
            value, kind = getattr(self, option.name), option.type
            if get_origin(kind) is Literal:
                fits = isinstance(value, str) and value in get_args(kind)
                rule = f"be one of {', '.join(map(repr, get_args(kind)))}"
            else:
                collection = get_origin(kind) in (Mapping, Sequence)
                fits = isinstance(value, get_origin(kind) if collection else kind)  # type: ignore[arg-type]
                rule = "be True or False" if kind in (bool, bool | None) else "be text"
                if get_origin(kind) is Mapping:
                    of = ", ".join(ROLES) if option.name == "columns" else "columns"
                    rule = f"map {of} to {'values' if option.name == 'where' else 'names'}"
                rule = "be a list of columns" if option.name == "ignore" else rule
            if not fits:
                raise OutcomeError(f"{option.name} must {rule}; got {shown(value)}.")

    def given(self) -> dict[str, object]:
        """Return the options for some formats only that differ from their defaults."""
        usual = {
            **vars(ReadOptions()),
            **{name: vars(self)[name] for name in ("format", "strict", "progress", "roles")},
        }
        return {name: value for name, value in vars(self).items() if value != usual[name]}

    @property
    def named(self) -> Mapping[str, str]:
        """Names of columns by role, with groups, weights, covariates and costs."""
        return {**self.columns, **self.roles}

    def sample(self, records: Iterable[object], **known: Any) -> Sample:
        """Return the first records that fit `where`, without ignored columns."""
        sample = Sample.of(records, self.where, **known)
        absent = [name for name in (*self.ignore, *self.where) if name not in sample.cells]
        if absent:
            raise OutcomeError(
                f"ignore and where must name columns of the table; {shown(absent[0])} is none. It "
                f"has {shown(sample.names, 400)}."
            )
        if self.where and not len(sample) and sample.whole:
            raise OutcomeError(
                "where", f" must leave rows; none has {shown(dict(self.where))}. Correct the value."
            )
        names = [name for name in sample.names if name not in self.ignore]
        cells = {
            name: column_cells
            for name, column_cells in sample.cells.items()
            if name not in self.ignore
        }
        return replace(sample, names=names, cells=cells)

    def picked(self, sample: Sample, columns: Mapping[str, Any], **rows: Any) -> Picked:
        """Pick the columns of a table that have a role."""
        drops = self.missing_question == "drop"
        return Picked.of(sample, columns, where=self.where, drops=drops, of_file=True, **rows)


@dataclass(slots=True)
class Trial:
    """One trial of a log.

    Parameters
    ----------
    system, task, question : hashable
    trial : hashable
        Label that differs between the trials of a question within one log.
    outcome : object
        The mark; None if there is none.
    content : str
        Digest of the prompt and the right answer.
    reason : str
        Why the outcome is missing.
    fault : str
        Why a trial that is marked wrong may not be the fault of the system, such as a failed call.
    identity : str
        Identifier of the trial in every log that repeats it, if the format has one.
    known : mapping of str to object
        Values of the requested fields, such as the group of the question.
    by_name : bool
        Whether equal ids in different tasks are one question, unless one log has both.
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
    by_name: bool = False


def _count(value: object) -> int | None:
    """Return a stated positive number, or the length of a list; None for anything else."""
    number = len(value) if isinstance(value, list | dict) else value
    whole = isinstance(number, int) and not isinstance(number, bool)
    return number if whole and number > 0 else None  # type: ignore[operator, return-value]


@dataclass(frozen=True)
class Totals:
    """Numbers of questions, trials of each question and trials in all; None if not stated.

    Examples
    --------
    >>> print(Totals(2, 3), "and", Totals(trials=12), "and", Totals.of([3, 1]))
    2 questions x 3 trials and 12 trials and 2 questions x 1 to 3 trials
    """

    questions: int | None = None
    repeats: int | None = None
    trials: int | None = None
    least: int | None = None

    @classmethod
    def stated_by(
        cls, questions: object = None, repeats: object = None, trials: object = None
    ) -> "Totals":
        """Return the totals that a log states, as numbers or as lists."""
        return cls(*map(_count, (questions, repeats, trials)))

    @classmethod
    def of(cls, counts: Collection[int]) -> "Totals":
        """Return the totals of numbers of trials by question."""
        return cls(len(counts), max(counts), sum(counts), min(counts))

    def fits(self, read: "Totals") -> bool:
        """Return whether the totals that were read are the stated ones."""
        stated = self.questions, self.trials, self.repeats, self.repeats
        numbers = read.questions, read.trials, read.repeats, read.least
        return all(total in (None, number) for total, number in zip(stated, numbers, strict=True))

    def holds(self, read: "Totals") -> bool:
        """Return whether the totals that were read may be those of a run that was broken off."""
        n_trials = (self.questions or 0) * (self.repeats or 0)
        pairs = (self.questions, read.questions), (self.repeats, read.repeats)
        return (read.trials or 0) < n_trials and all(
            (stated or 0) >= (n or 0) for stated, n in pairs
        )

    def __str__(self) -> str:
        if self.questions is None and self.repeats is None:
            return f"{self.trials} trials"
        least = f"{self.least} to " if self.least not in (None, self.repeats) else ""
        parts = [f"{self.questions} questions"] * (self.questions is not None)
        parts += [f"{least}{self.repeats} trials"] * (self.repeats is not None)
        return " x ".join(parts)


def several_systems(subject: str, names: Iterable[object]) -> OutcomeError:
    """Return the error for one name that was given to several systems."""
    return OutcomeError(
        f"a file must not name several systems if you name one; {subject} has "
        f"{shown(list(names))}. Give the path alone; if they are runs of one system: ",
        Argument("same_system", "trials"),
        ".",
    )


@dataclass
class Rows:
    """The trials of all logs.

    Parameters
    ----------
    options : ReadOptions
    roles : dict of str to str
        Names of the requested fields by role.
    offered : dict
        Names of the fields that logs have, for messages.
    trials : list of Trial
    logs : list of int
        Number of the log of every trial.
    names : list of str
        Names of the logs.
    notes : list of str
        For the data card.
    marks : dict of str to str
        First log with each kind of marks.
    tasks, filters : dict
        Names of all tasks, and of all filters.
    stated : dict of int to Totals
        Totals that a log states, by its number.
    by_content : set of int
        Numbers of the logs whose questions are identified by their content.
    certain : dict of str to bool
        Whether all marks of a scorer are 0 or 1.
    """

    options: ReadOptions
    roles: dict[str, str] = field(default_factory=dict)
    offered: dict[str, None] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    logs: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, None] = field(default_factory=dict)
    filters: dict[str, None] = field(default_factory=dict)
    stated: dict[int, "Totals"] = field(default_factory=dict)
    by_content: set[int] = field(default_factory=set)
    certain: dict[str, bool] = field(default_factory=dict)
    _renamed: dict[tuple[int, str], dict[str, None]] = field(default_factory=dict)
    _run: str = ""
    _pool: dict[Any, Any] = field(default_factory=dict)

    def open(self, name: str, run: str = "") -> None:
        """Begin another log; consecutive files of one run are one log."""
        if not run or run != self._run:
            self.names.append(name)
        self._run = run

    def add(self, trial: Trial) -> None:
        """Add a trial of the log that was opened last, or refuse it."""
        position = f"(trial {len(self.trials) + 1} of {self.names[-1]})"
        if is_missing(trial.question) or not str(trial.question).strip():
            raise OutcomeError(
                f"every trial must have the id of its question; one has none {position}. Give the "
                "questions ids and run again, or remove the trial."
            )
        if not trial.system.strip():
            raise OutcomeError(
                f"every trial must have the name of its system; one has none {position}. Name it: ",
                Argument("source", {"name": "file"}, "load"),
                ".",
            )
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
        if is_absent(trial.outcome):
            trial.outcome = None
        trial.reason = (trial.reason or "no mark") if is_missing(trial.outcome) else ""
        for name in ("system", "task", "question", "content", "reason", "fault"):
            value = getattr(trial, name)  # repeated texts share one object
            setattr(trial, name, self._pool.setdefault((type(value), value), value))
        self.trials.append(trial)
        self.logs.append(len(self.names) - 1)

    def rename(self, name: str, system: str) -> None:
        """Record that `system` stands for a system that the log names; refuse several names."""
        names = self._renamed.setdefault((len(self.names), system), {})
        names.setdefault(name)
        if len(names) > 1 and self.options.same_system == "error":
            raise several_systems("the log", names)

    def note(self, text: str) -> None:
        """Add a note for the data card, unless it is there."""
        if text not in self.notes:
            self.notes.append(text)

    def marked_by(self, marker: str) -> None:
        """Record the kind of marks of the log that was opened last."""
        self.marks.setdefault(marker, self.names[-1])

    def place(self, row: int) -> str:
        """Return the place of a trial for messages."""
        trial = self.trials[row]
        log = self.names[self.logs[row]]
        has_name = trial.trial != "" and not log.endswith(str(trial.trial))
        trial_name = f", trial {shown(trial.trial)}" if has_name else ""
        return f"question {shown(trial.question)}{trial_name} of {log}"


def to_columns(rows: Rows, scale: Scores | None = None) -> Columns:
    """Return the trials of all logs as a long table."""
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
    _note_stated(rows, questions)
    values = {
        "system": [trial.system for trial in rows.trials],
        "question": questions,
        "trial": trials,
        "outcome": [trial.outcome for trial in rows.trials],
    }
    if rows.options.answers:
        values["answer"] = [trial.answer for trial in rows.trials]
    values |= {role: _values_under_name(rows, role, name) for role, name in rows.roles.items()}
    return Columns({role: role for role in values} | rows.roles, values, place=rows.place)


def _values_under_name(rows: Rows, role: str, name: str) -> list[object]:
    """Return the value of a field for every trial, or refuse a field that no log has."""
    labels = [trial.task if name == "task" else trial.known.get(name) for trial in rows.trials]
    if all(label is None or label == "" for label in labels):
        subject = "trials" if role in BY_TRIAL else "questions"
        raise OutcomeError(
            role if role in (GROUP, WEIGHT, *BY_TRIAL) else "covariates",
            f" must name what the logs say of their {subject}; none says {shown(name)}. There are "
            f"{shown(['task', *rows.offered], 400)[1:-1]}.",
        )
    rows.note(f"{role} = {shown(name)}")
    return labels


def to_long(
    rows: Rows,
    scores: Scores | None,
    default_scores: Scores,
    missing: MissingPolicy,
    rules: AnswerRules,
) -> tuple[LongForm, Scores]:
    """Return the trials of all logs in the long form, and the scores of their outcomes."""
    scale = usual_scores((trial.outcome for trial in rows.trials), default_scores)
    scale = scale if scores is None else scores
    by_task = GROUP not in rows.roles and len({trial.task for trial in rows.trials}) > 1
    if by_task:
        rows.roles[GROUP] = "task"  # as with group="task"
    columns = to_columns(rows, scale)
    if by_task:
        columns = _without_unclear_tasks(rows, columns)
    _check_missing(rows, missing)
    try:
        long = read_rows([columns], scale, rules)
    except OutcomeError as error:
        certain_scorers = [name for name, certain in rows.certain.items() if certain]
        if scores is not None or not certain_scorers or len(certain_scorers) == len(rows.certain):
            raise
        remedy = " Marks of 0 and 1 alone are of: "
        raise OutcomeError(
            *error.args,
            remedy,
            Argument("scorer", certain_scorers[0][:80]),
            f" ({shown(certain_scorers)[1:-1]}).",
        ) from None
    return replace(long, notes=(*rows.notes, *long.notes[1:])), scale


def _question_labels(rows: Rows) -> list[Any]:
    """Return the question label of every trial; refuse an id with two contents."""
    trials, key = rows.trials, rows.options.question_key
    tasks = list(dict.fromkeys(trial.task for trial in trials))
    several = len(tasks) > 1
    names = _names_within_tasks(rows) if several else [(None, str(t.question)) for t in trials]
    # Trials without content cannot be compared.
    comparable_ids = [names[row] if t.content else row for row, t in enumerate(trials)]
    for first, row in _repeated_keys(comparable_ids) if key == "id" else ():
        if trials[first].content != trials[row].content:
            raise OutcomeError(
                f"an id must stand for one question with one right answer; {rows.place(first)} and "
                f"{rows.place(row)} differ in what was asked or in the target. To tell questions "
                "by content use ",
                Argument("question_key", "content"),
                "; if they are paraphrases of one question, ",
                Argument("question_key", "unchecked"),
                ".",
            )
    if tasks != [""]:
        named_by_task = any(task for task, _ in names)
        listed = ", ".join(filter(None, tasks))
        rows.note(f"task{'s' * several}: {listed}" + "; questions TASK/ID" * named_by_task)
    labels = [f"{task}/{name}" if task else name for task, name in names]
    if key == "content":
        rows.note("questions told apart by id and content: labels ID#DIGEST")
        return [f"{label}#{trial.content}" for label, trial in zip(labels, trials, strict=True)]
    for first, row in _repeated_keys(labels) if several else ():
        if names[first] != names[row]:
            raise OutcomeError(
                f"TASK/ID must name one question; {rows.place(row)} and {rows.place(first)} are "
                f"both {labels[row]!r}. Read the tasks one by one, or use ",
                Argument("question_key", "content"),
                ".",
            )
    are_integers = not several and all(type(trial.question) is int for trial in trials)
    return [trial.question for trial in trials] if are_integers else labels


def _names_within_tasks(rows: Rows) -> list[tuple[str | None, str]]:
    """Return task and id of the question of every trial; None if the id alone identifies it."""
    tasks: dict[tuple[int, str], str] = {}
    names = [str(trial.question) for trial in rows.trials]
    ambiguous = {
        name
        for name, log, trial in zip(names, rows.logs, rows.trials, strict=True)
        if tasks.setdefault((log, name), trial.task) != trial.task
    }
    return [
        (None if trial.by_name and name not in ambiguous else trial.task, name)
        for name, trial in zip(names, rows.trials, strict=True)
    ]


def _without_unclear_tasks(rows: Rows, columns: Columns) -> Columns:
    """Return the columns without tasks as groups if a question has no task or several."""
    tasks: dict[Any, set[Any]] = {}
    for question, task in zip(columns.values["question"], columns.values[GROUP], strict=True):
        tasks.setdefault(question, set()).add(task)
    unclear = [
        question
        for question, tasks_of_question in tasks.items()
        if len(tasks_of_question) > 1 or "" in tasks_of_question
    ]
    if not unclear:
        return columns
    rows.notes.remove(f"{GROUP} = 'task'")
    first_words = "in no task" if "" in tasks[unclear[0]] else "in several tasks"
    rows.note(
        f"tasks are no groups of the questions: {len(unclear)} of {len(tasks)} are in several "
        f"tasks or in none (first: {shown(unclear[0])}, {first_words})"
    )
    return columns.without(GROUP)


def _note_stated(rows: Rows, questions: list[Any]) -> None:
    """Note whether the numbers of questions and trials are those that logs state."""
    counts: dict[int, Counter[Any]] = {log: Counter() for log in rows.stated}
    for log, trial, question in zip(rows.logs, rows.trials, questions, strict=True):
        if log in counts:
            counts[log][trial.system, question] += 1
    if rows.options.task is not None:
        return
    agreeing = []
    for log, stated in rows.stated.items():
        if not counts[log] or stated == Totals():
            continue
        of_log = Totals.of(counts[log].values())
        of_log = replace(of_log, questions=len({question for _, question in counts[log]}))
        if stated.fits(of_log):
            agreeing.append(str(stated))
            continue
        text = f"{rows.names[log]} states {stated}; {of_log} ({of_log.trials} trials) were read"
        if log in rows.by_content and stated.questions and not stated.holds(of_log):
            raise OutcomeError(
                f"questions and trials must be as many as are stated; {text}, with a question for "
                "everything different that was asked. Name what tells questions apart, as question "
                "and as content: ",
                Argument("format", "jsonl"),
                ", ",
                Argument("columns", {"question": ..., "outcome": ..., "content": ...}),
                ".",
            )
        rows.note(f"CHECK: {text}")
    if agreeing:
        words = agreeing[0] if len(set(agreeing)) == 1 else f"in {len(agreeing)} logs"
        rows.note(f"questions and trials are as many as stated: {words}")


def _trial_labels(rows: Rows, questions: list[Any]) -> list[int]:
    """Return the number of every trial within its question; refuse repeated trials."""
    trials, logs = rows.trials, rows.logs
    for first, row in _repeated_keys([trial.identity or row for row, trial in enumerate(trials)]):
        raise OutcomeError(
            f"every trial must come once; {rows.place(first)} is, by its own identifier, "
            f"{rows.place(row)} again. One log repeats or continues the other: leave the "
            "superseded one out."
        )
    cells = [(trial.system, question) for trial, question in zip(trials, questions, strict=True)]
    names = zip(cells, logs, (trial.trial for trial in trials), strict=True)
    for _, row in _repeated_keys(names):
        raise OutcomeError(
            f"every trial must come once; {rows.place(row)} occurs twice there. Remove one, or "
            "number the trials."
        )
    in_later_logs = [
        (first, row) for first, row in _repeated_keys(cells) if logs[first] != logs[row]
    ]
    for first, row in in_later_logs if rows.options.same_system == "error" else ():
        raise OutcomeError(
            f"a system must be evaluated once; {shown(trials[row].system)} has "
            f"{rows.place(first)} and again {rows.place(row)}. If each log holds further "
            "trials: ",
            Argument("same_system", "trials"),
            "; if they are different systems, name them: ",
            Argument("source", {"a": "first.log", "b": "second.log"}, "load"),
            ".",
        )
    for system in dict.fromkeys(trials[row].system for _, row in in_later_logs):
        rows.note(f"several logs of {shown(system)}: each holds further trials")
    numbers: Counter[tuple[str, Any]] = Counter()
    labels = []
    for cell in cells:
        numbers[cell] += 1
        labels.append(numbers[cell])
    return labels


def _repeated_keys(keys: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """Yield (first row, row) for every row whose key an earlier row has."""
    firsts: dict[Hashable, int] = {}
    for row, key in enumerate(keys):
        first = firsts.setdefault(key, row)
        if first != row:
            yield first, row


def _note_marks(rows: Rows) -> None:
    """Note the kind of marks, or that there are several kinds."""
    if len(rows.marks) == 1:
        rows.note(f"marks are {next(iter(rows.marks))}")
    elif rows.marks:
        markers = "; ".join(f"{marker} ({log})" for marker, log in rows.marks.items())
        rows.note(f"CHECK: marks are of several kinds: {markers}")


def _check_empty(rows: Rows, scale: Scores | None) -> None:
    """Warn about failed or empty trials with the lowest mark, or make them missing."""
    scores = {**CORRECT_INCORRECT, **BINARY} if scale is None else scale
    if isinstance(scores, NumberScale):  # which is empty before outcomes are encoded
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


def usual_scores(outcomes: Iterable[object], of_numbers: Scores) -> Scores:
    """Return the default scores: those of C and I of Inspect if outcomes are its marks.

    P and N (partial credit, no answer) have no default score.
    """
    marks = [mark for mark in outcomes if not is_missing(mark)]
    are_letters = all(
        isinstance(mark, str) and mark in (*CORRECT_INCORRECT, "P", "N") for mark in marks
    )
    is_inspect = are_letters and any(mark in CORRECT_INCORRECT for mark in marks)
    return CORRECT_INCORRECT if is_inspect else of_numbers


def _check_missing(rows: Rows, missing: MissingPolicy) -> None:
    """Note the number of missing outcomes by reason, or refuse them."""
    gaps = [row for row, trial in enumerate(rows.trials) if is_missing(trial.outcome)]
    if not gaps:
        return
    reasons = Counter(rows.trials[row].reason for row in gaps).most_common()
    reason_text = "; ".join(f"{number} {reason}" for reason, number in reasons)
    if missing == "error":
        raise OutcomeError(
            f"missing: {len(gaps)} of {len(rows.trials)} trials have no outcome ({reason_text}); "
            f"the first is {rows.place(gaps[0])}. Say what they mean: ",
            Argument("missing", "ignore"),
            " leaves them out, ",
            *worst_or_best(),
        )
    rows.note(f"without outcome: {reason_text}")


def note_uneven(long: LongForm, scores: Scores) -> LongForm:
    """Note single trials beside repeated ones, and questions with many times the median of trials.

    Perhaps the run was broken off, or a label such as "unknown" stands for several questions.
    """
    trials, stopped = long.slots(scores).sum(axis=-1), long.stopped_systems(scores)
    doubts = []
    for system, system_trials, stops in zip(long.systems, trials, stopped, strict=True):
        if stops and long.counted is None:
            continue
        trials_of_tried = system_trials[system_trials > 0]
        max_usual = 5 * np.median(trials_of_tried) if len(trials_of_tried) > 2 else np.inf
        if trials_of_tried.max(initial=0) > max_usual:
            position = int(system_trials.argmax())
            doubts.append(
                f"CHECK: question {shown(long.questions[position])} of {shown(system)} has "
                f"{system_trials[position]} trials, and the median question "
                f"{np.median(trials_of_tried):g}; does its label stand for several questions, or "
                "for an unknown one?"
            )
        n_single = int((system_trials == 1).sum())
        if n_single and system_trials.max() > 1:
            first = long.questions[int(np.argmax(system_trials == 1))]
            doubts.append(
                f"CHECK: {n_single} of {len(system_trials)} questions of {shown(system)} have a "
                f"single trial, others up to {system_trials.max()} (first: {shown(first)}); was "
                "the run broken off?"
            )
    return replace(long, notes=(*long.notes, *doubts))
