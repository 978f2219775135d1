"""Logs whose trials are records: a description for each format, and one function that reads all.

A description says how the format is recognised, where its records stand, and what each record says
of its trials. Everything else is done here, for every format alike: which of several marks is read,
lists of outcomes, names of systems, fields that must be there.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import COST
from bayesatk.data.content import canonical, digest
from bayesatk.data.validation import OutcomeError, is_missing, shown
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.parquet_files import batches, open_parquet, readable
from bayesatk.io.rows import Rows, Trial


def at(value: object, path: str) -> Any:
    """Return what stands at a dotted path; None if nothing does.

    Examples
    --------
    >>> at({"info": {"llm": "m"}, "a.b": 1}, "info.llm"), at({"a.b": 1}, "a.b"), at({}, "a.b")
    ('m', 1, None)
    """
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    first, _, inner_path = path.partition(".")
    return at(value.get(first), inner_path) if inner_path else None


@dataclass(frozen=True)
class Record:
    """One record of a log: its fields, those of its document and of the file beside it."""

    fields: Any
    head: dict[str, Any]
    path: Path

    def __call__(self, *paths: str) -> Any:
        """Return the first that is there; a path that begins with ^ is of the document."""
        for path in paths:
            field_value = at(self.head, path[1:]) if path[0] == "^" else at(self.fields, path)
            if field_value is not None:
                return field_value
        return None

    def text(self, *paths: str) -> str:
        """Return the first that is text; else nothing."""
        field_value = self(*paths)
        return field_value if isinstance(field_value, str) else ""

    def number(self, *paths: str) -> float:
        """Return the first, if it is a number; else NaN."""
        field_value = self(*paths)
        try:
            return float(field_value) if isinstance(field_value, int | float) else math.nan
        except OverflowError:  # an integer beyond the floats
            return math.nan

    def mapping(self, *paths: str) -> dict[str, Any]:
        """Return the first, if it is an object; else an empty one."""
        field_value = self(*paths)
        return field_value if isinstance(field_value, dict) else {}

    def entry(self, key: str, name: object) -> Any:
        """Return the part of a list of the document whose id is the name."""
        entries_by_id = self.head.get(f"{key} by id")
        if entries_by_id is None:
            entries = self.head.get(key)
            entries = entries if isinstance(entries, list) else []
            entries_by_id = self.head[f"{key} by id"] = {
                str(entry.get("id")): entry for entry in entries if isinstance(entry, dict)
            }
        return entries_by_id.get(str(name))

    def texts(self, *paths: str) -> list[str]:
        """Return what is text in the first, if it is a list."""
        return [element for element in self.listed(*paths) if isinstance(element, str)]

    def listed(self, *paths: str) -> list[Any]:
        """Return the first, if it is a list; else an empty one."""
        field_value = self(*paths)
        return field_value if isinstance(field_value, list) else []


@dataclass(frozen=True)
class Said:
    """What a record says of a trial, or of several in lists.

    Parameters
    ----------
    question : object
    outcome : object
        A mark, or marks by scorer.
    system, task : str
    trial : object
        What tells trials of the question apart in the log; None: they are numbered.
    asked : tuple
        What was asked, and what is right.
    answer : object
    reason : str
        Why there is no outcome.
    fault : str
        Why an outcome that is marked wrong may not be the system's doing.
    identity : str
    scorer : str
        Which of the marks is read if nothing is told.
    several : bool
        Whether the outcome is a list of marks, of which each is a trial.
    known : mapping of str to object
        What is known of the question and has no field of its own in the record.
    """

    question: Any
    outcome: Any
    system: str = ""
    task: str = ""
    trial: Any = None
    asked: tuple[Any, ...] = ()
    answer: Any = None
    reason: str = ""
    fault: str = ""
    identity: str = ""
    scorer: str = ""
    several: bool = False
    known: Mapping[str, object] = field(default_factory=dict)

    @staticmethod
    def name_of(*content: object) -> str:
        """Return the name of a question that has none: a digest of what was asked."""
        return f"#{digest(*map(canonical, content))}"


def is_there(fields: object, path: str) -> bool:
    """Whether a field is there, if only as null; a|b is one of two, * the first of all."""
    if "|" in path:
        return any(is_there(fields, alternative) for alternative in path.split("|"))
    if not isinstance(fields, Mapping):
        return False
    if path in fields:
        return True
    first, _, inner_path = path.partition(".")
    if first == "*":
        return is_there(next(iter(fields.values()), None), inner_path)
    return bool(inner_path) and is_there(fields.get(first), inner_path)


@dataclass(frozen=True)
class RecordLog:
    """A format.

    Parameters
    ----------
    name : str
    form : {"lines", "document", "parquet"}
    signs : tuple of str
        Fields by which it is recognised: of the first line or row, or of the document, where
        ``results.task_id`` is a field of the first of its results, ``*`` stands for any name, and
        ``a|b`` for one of two.
    unless : tuple of str
        Fields with which it is another format.
    read : callable
        What a record says; nothing of records that are no trials.
    records : str
        Where a document has its records: at a dotted path; "" if it is their array, "." if it is
        the one record.
    needed : tuple of str
        Fields that every record must have.
    ends_with_head : bool
        Whether the document says more of the run behind its records.
    beside : tuple of str
        Files in the same folder that say more of the run.
    run : callable
        Path of the run that a file belongs to: files of one run are one log.
    says_what_was_asked : bool
        Whether the option `question_key` of `bayesatk.load` has an effect.
    honours : frozenset of str
        Other options of `bayesatk.load` that have an effect.
    summary : str
        For a file that holds no trials: where they are.
    note : str
        What a person should know of every log of the format.
    part_of : str
        Format of the file that repeats these trials, if it lies in a folder above.
    """

    name: str
    form: Literal["lines", "document", "parquet"]
    signs: tuple[str, ...]
    read: Callable[[Record], Iterable[Said]]
    unless: tuple[str, ...] = ()
    records: str = ""
    needed: tuple[str, ...] = ()
    ends_with_head: bool = False
    beside: tuple[str, ...] = ()
    run: Callable[[Path], Path] = field(default=lambda path: path)
    says_what_was_asked: bool = True
    honours: frozenset[str] = frozenset()
    summary: str = ""
    note: str = ""
    part_of: str = ""

    @property
    def is_part_of_a_run(self) -> bool:
        """Whether a run has several files of the format."""
        return self.run(Path("a/b/c")) != Path("a/b/c")

    def recognises(self, fields: object) -> bool:
        """Whether the fields are those of the format."""
        has_signs = all(is_there(fields, sign) for sign in self.signs)
        return has_signs and not any(is_there(fields, sign) for sign in self.unless)

    def __call__(self, file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
        """Read a file of the format."""
        if self.summary:
            raise OutcomeError(f"the file must have trials; this is {self.summary}")
        run = self.run(path)
        rows.open(path.name if run == path else f"{run.parent.name}/{run.name}", str(run))
        if self.note:
            rows.note(self.note)
        marks = _Marks(self.name, rows)
        for where, fields, head in self._records(file, path):
            if not isinstance(fields, dict):
                raise OutcomeError(f"{where} must be an object; got {shown(fields)}.")
            for name in self.needed:
                if not is_there(fields, name):
                    raise OutcomeError(
                        f"{where} must have the field {name!r}; it has {shown(list(fields), 200)}. "
                        "Is the file complete?"
                    )
            record = Record(fields, head, path)
            for entry in self.read(record):
                trials = _trials(entry, marks, where)
                _add(trials, system, run, rows, _known(entry, record, rows))
        for entry in marks.finish():
            _add(_trials(entry, marks, "the log"), system, run, rows)

    def _records(self, file: BinaryIO, path: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """Yield place and fields of every record, and what its document says."""
        head = _beside(path, self.beside)
        if self.form == "parquet":
            names = (name for sign in self.signs for name in sign.split("|"))
            for row, fields in enumerate(_parquet_rows(path, names)):
                yield f"row {row}", fields, head
            return
        if self.ends_with_head:
            within, _, inner = self.records.partition(".")
            with decoded(file) as text:
                for key, position, value in members(text, frozenset({within})):
                    if position is None or (inner and position != inner):
                        head[str(position or key)] = value
            file.seek(0)
        with decoded(file) as text:
            if self.form == "document":
                yield from parts_of(text, self.records, head)
                return
            for number, line in enumerate(text, start=1):
                if line.strip():
                    yield f"line {number}", parse(line, f"line {number}"), head


def parts_of(
    text: TextIO, records: str, head: dict[str, Any]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the records of a document, one at a time; the rest of it goes to the head."""
    if records == ".":
        yield "the document", {key: value for key, _, value in members(text)}, head
        return
    within, _, inner = records.partition(".")
    for key, position, value in members(text, frozenset({within} - {""})):
        if position is None:
            head[key] = value
        elif inner and position == inner:
            parts = value if isinstance(value, list) else [value]
            yield from ((f"{inner} {number}", record, head) for number, record in enumerate(parts))
        elif inner:
            head[str(position)] = value
        else:
            yield f"{within or 'record'} {shown(position, 40)}", value, head


def _known(entry: Said, record: Record, rows: Rows) -> Mapping[str, object]:
    """Return what a record says of its question, of what is wanted: fields by dotted paths."""

    def find(name: str) -> object:
        return entry.known[name] if name in entry.known else record(name) if name else None

    return rows.known(find, [*entry.known, *record.fields])


def _add(
    trials: Iterable[Trial],
    system: str | None,
    run: Path,
    rows: Rows,
    question_fields: Mapping[str, object] | None = None,
) -> None:
    """Add trials, with a name for their system and a number for those that have none."""
    trials = list(trials)
    if COST in rows.roles and len(trials) > 1:
        raise OutcomeError(
            Argument(COST), " must be left out for records of several trials, which do not say "
            "what each of them cost.",
        )  # fmt: skip
    for trial in trials:
        trial.known = question_fields or trial.known
        trial.system = system or trial.system or _named_by(run, rows)
        if trial.trial is None:
            rows.note("trials without a number are counted in the order of the file")
            trial.trial = f"number {len(rows.trials) + 1}"
        rows.add(trial)


def _trials(entry: Said, marks: "_Marks", where: str) -> Iterator[Trial]:
    """Yield the trials of which a record speaks."""
    outcome = marks.choose(entry, where) if isinstance(entry.outcome, Mapping) else entry.outcome
    if outcome is _OTHER:
        return
    if entry.several and not isinstance(outcome, list):
        raise OutcomeError(f"{where} must have a list of marks; got {shown(outcome)}.")
    several, listed = entry.several, outcome if isinstance(outcome, list) else []
    content_digest = digest(*map(canonical, entry.asked)) if any(entry.asked) else ""
    for number, mark in enumerate(listed if several else [outcome]):
        answer = entry.answer
        if isinstance(answer, list) and several:
            answer = answer[number] if number < len(answer) else None
        yield Trial(
            system=entry.system,
            task=entry.task,
            question=entry.question,
            trial=(number if several else None) if entry.trial is None else entry.trial,
            outcome=_rounded(mark),
            answer=answer if marks.rows.options.answers and isinstance(answer, str) else None,
            content=content_digest,
            reason=(entry.reason or "no mark") if is_missing(mark) else "",
            fault=entry.fault,
            identity=entry.identity,
        )


def _rounded(mark: object) -> object:
    """Return 1 or 0 for a number that is one of them up to rounding; others as they are.

    Rewards are sums of weights: within 1e-6 of 0 or 1 they are meant to be 0 or 1.
    """
    if isinstance(mark, float):
        return next((end for end in (0, 1) if abs(mark - end) <= 1e-6), mark)
    return mark


_OTHER = object()  # in place of the mark of a record that belongs to another scorer


class _Marks:
    """Which of several marks is read."""

    def __init__(self, name: str, rows: Rows) -> None:
        self.name, self.rows, self.wanted = name, rows, rows.options.scorer
        self.seen: dict[str, dict[str, None]] = {}
        # How often each scorer marked a question, where a record is the mark of one scorer.
        self.counts: dict[str, Counter[str]] = {}
        self.questions: dict[str, Said] = {}

    def choose(self, entry: Said, where: str) -> object:
        """Return the mark of the chosen scorer."""
        names = self.seen.setdefault(entry.task, {})
        names |= dict.fromkeys(entry.outcome)
        if self.wanted is None and len(names) > 1 and not entry.scorer:
            self._refuse(f"one scorer must be chosen; {where} has another than those before", names)
        chosen_scorer = self.wanted or entry.scorer or next(iter(names), "")
        if chosen_scorer in entry.outcome:
            self.rows.marked_by(f"{self.name}'s {shown(chosen_scorer)}")
        if not entry.scorer and len(entry.outcome) == 1:
            key = f"{entry.system!r} {entry.task!r} {canonical(entry.question)!r}"
            self.questions.setdefault(key, replace(entry, outcome=None, trial=None, fault=""))
            for scorer in entry.outcome:
                self.counts.setdefault(scorer, Counter())[key] += 1
            return entry.outcome.get(chosen_scorer, _OTHER)
        return entry.outcome.get(chosen_scorer)

    def finish(self) -> Iterator[Said]:
        """Yield trials that others marked and the chosen scorer did not; refuse an unknown one."""
        names: dict[str, None] = {}
        for scorers in self.seen.values():
            names |= scorers
        if self.wanted is not None and self.seen and self.wanted not in names:
            self._refuse(f"scorer must be one that the log has; got {shown(self.wanted)}", names)
        wanted_counts = self.counts.get(self.wanted or "")
        if wanted_counts is None:
            return
        most: Counter[str] = Counter()
        for counts in self.counts.values():
            most |= counts  # the larger of both
        for key, number in (most - wanted_counts).items():
            entry = replace(self.questions[key], reason=f"not marked by {self.wanted}")
            yield from (entry for _ in range(number))

    def _refuse(self, rule: str, names: Mapping[str, None]) -> None:
        scorer_names = shown(", ".join(sorted(map(str, names))), 300)
        raise OutcomeError(
            f"{rule}: there are {scorer_names}. Choose: ",
            Argument("scorer", next(iter(names), "score")), ".",
        )  # fmt: skip


def _named_by(run: Path, rows: Rows) -> str:
    """Return the name of the file or folder, for a system that its log does not name."""
    rows.note(f"system {run.stem!r} is named by its file")
    return run.stem


def _beside(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what the files beside a log say: no more than a convenience, so damage is no error."""
    largest_bytes = 1 << 24
    head: dict[str, Any] = {}
    for name in names:
        file = path.parent / name
        try:
            if file.is_file() and file.stat().st_size < largest_bytes:
                value = parse(file.read_bytes(), name)
                head |= value if isinstance(value, dict) else {}
        except (OSError, ValueError):
            continue
    return head


def _parquet_rows(path: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, some at a time."""
    with readable():
        file, _ = open_parquet(path)
        wanted = set(names)
        names_present = [name for name in file.schema_arrow.names if name in wanted]
        for batch in batches(file, names_present):
            yield from batch.to_pylist()
