"""Logs whose trials are records: a description for each format, and one function that reads all.

A description says how the format is recognised, where its records stand, and what each record says
of its trials. Everything else is done here, for every format alike: which of several marks is read,
lists of outcomes, names of systems, fields that must be there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

from bayesatk._tools.messages import Argument
from bayesatk.data.content import canonical, digest
from bayesatk.data.costs import COST
from bayesatk.data.validation import OutcomeError, is_missing, shown
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.logs.record import Record, Said, is_there
from bayesatk.io.parquet_files import batches, open_parquet, readable
from bayesatk.io.rows import Rows, Trial

_ROUNDING = 1e-6  # rewards are sums of weights: this near to 0 or 1 they are meant to be 0 or 1
_LARGEST_HEAD = 1 << 24  # bytes of a file beside a log that are read for the name of a model


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
        there = all(is_there(fields, sign) for sign in self.signs)
        return there and not any(is_there(fields, sign) for sign in self.unless)

    def __call__(self, file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
        """Read a file of the format."""
        if self.summary:
            raise OutcomeError(f"the file must have trials; this is {self.summary}")
        run = self.run(path)
        rows.open(path.name if run == path else f"{run.parent.name}/{run.name}", str(run))
        if self.note:
            rows.note(self.note)
        marks = _Marks(self.name, rows)
        for place, fields, head in self._records(file, path):
            if not isinstance(fields, dict):
                raise OutcomeError(f"{place} must be an object; got {shown(fields)}.")
            for name in self.needed:
                if not is_there(fields, name):
                    raise OutcomeError(
                        f"{place} must have the field {name!r}; it has {shown(list(fields), 200)}. "
                        "Is the file complete?"
                    )
            record = Record(fields, head, path)
            for said in self.read(record):
                trials = _trials(said, marks, place)
                _add(trials, system, run, rows, _known(said, record, rows))
        for said in marks.finish():
            _add(_trials(said, marks, "the log"), system, run, rows)

    def _records(self, file: BinaryIO, path: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """Yield place and fields of every record, and what its document says."""
        head = _beside(path, self.beside)
        if self.form == "parquet":
            names = (name for sign in self.signs for name in sign.split("|"))
            for row, one in enumerate(_parquet_rows(path, names)):
                yield f"row {row}", one, head
            return
        if self.ends_with_head:
            within, _, inner = self.records.partition(".")
            with decoded(file) as text:
                for key, place, value in members(text, frozenset({within})):
                    if place is None or (inner and place != inner):
                        head[str(place or key)] = value
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
    for key, place, value in members(text, frozenset({within} - {""})):
        if place is None:
            head[key] = value
        elif inner and place == inner:
            parts = value if isinstance(value, list) else [value]
            yield from ((f"{inner} {number}", one, head) for number, one in enumerate(parts))
        elif inner:
            head[str(place)] = value
        else:
            yield f"{within or 'record'} {shown(place, 40)}", value, head


def _known(said: Said, record: Record, rows: Rows) -> Mapping[str, object]:
    """Return what a record says of its question, of what is wanted: fields by dotted paths."""

    def find(name: str) -> object:
        return said.known[name] if name in said.known else record(name) if name else None

    return rows.known(find, [*said.known, *record.fields])


def _add(
    trials: Iterable[Trial],
    system: str | None,
    run: Path,
    rows: Rows,
    known: Mapping[str, object] | None = None,
) -> None:
    """Add trials, with a name for their system and a number for those that have none."""
    trials = list(trials)
    if COST in rows.roles and len(trials) > 1:
        raise OutcomeError(
            Argument(COST), " must be left out for records of several trials, which do not say "
            "what each of them cost.",
        )  # fmt: skip
    for trial in trials:
        trial.known = known or trial.known
        trial.system = system or trial.system or _named_by(run, rows)
        if trial.trial is None:
            rows.note("trials without a number are counted in the order of the file")
            trial.trial = f"number {len(rows.trials) + 1}"
        rows.add(trial)


def _trials(said: Said, marks: "_Marks", place: str) -> Iterator[Trial]:
    """Yield the trials of which a record speaks."""
    outcome = marks.choose(said, place) if isinstance(said.outcome, Mapping) else said.outcome
    if outcome is _OTHER:
        return
    if said.several and not isinstance(outcome, list):
        raise OutcomeError(f"{place} must have a list of marks; got {shown(outcome)}.")
    several, listed = said.several, outcome if isinstance(outcome, list) else []
    asked = digest(*map(canonical, said.asked)) if any(said.asked) else ""
    for number, mark in enumerate(listed if several else [outcome]):
        answer = said.answer
        if isinstance(answer, list) and several:
            answer = answer[number] if number < len(answer) else None
        yield Trial(
            system=said.system,
            task=said.task,
            question=said.question,
            trial=(number if several else None) if said.trial is None else said.trial,
            outcome=_rounded(mark),
            answer=answer if marks.rows.options.answers and isinstance(answer, str) else None,
            content=asked,
            reason=(said.reason or "no mark") if is_missing(mark) else "",
            fault=said.fault,
            identity=said.identity,
        )


def _rounded(mark: object) -> object:
    """Return 1 or 0 for a number that is one of them up to rounding; others as they are."""
    if isinstance(mark, float):
        return next((end for end in (0, 1) if abs(mark - end) <= _ROUNDING), mark)
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

    def choose(self, said: Said, place: str) -> object:
        """Return the mark of the chosen scorer."""
        names = self.seen.setdefault(said.task, {})
        names |= dict.fromkeys(said.outcome)
        if self.wanted is None and len(names) > 1 and not said.scorer:
            self._refuse(f"one scorer must be chosen; {place} has another than those before", names)
        chosen = self.wanted or said.scorer or next(iter(names), "")
        if chosen in said.outcome:
            self.rows.marked_by(f"{self.name}'s {shown(chosen)}")
        if not said.scorer and len(said.outcome) == 1:
            key = f"{said.system!r} {said.task!r} {canonical(said.question)!r}"
            self.questions.setdefault(key, replace(said, outcome=None, trial=None, fault=""))
            for scorer in said.outcome:
                self.counts.setdefault(scorer, Counter())[key] += 1
            return said.outcome.get(chosen, _OTHER)
        return said.outcome.get(chosen)

    def finish(self) -> Iterator[Said]:
        """Yield trials that others marked and the chosen scorer did not; refuse an unknown one."""
        names: dict[str, None] = {}
        for each in self.seen.values():
            names |= each
        if self.wanted is not None and self.seen and self.wanted not in names:
            self._refuse(f"scorer must be one that the log has; got {shown(self.wanted)}", names)
        own = self.counts.get(self.wanted or "")
        if own is None:
            return
        most: Counter[str] = Counter()
        for counts in self.counts.values():
            most |= counts  # the larger of both
        for key, number in (most - own).items():
            said = replace(self.questions[key], reason=f"not marked by {self.wanted}")
            yield from (said for _ in range(number))

    def _refuse(self, rule: str, names: Mapping[str, None]) -> None:
        told = shown(", ".join(sorted(map(str, names))), 300)
        raise OutcomeError(
            f"{rule}: there are {told}. Choose: ", Argument("scorer", next(iter(names), "score")),
            ".",
        )  # fmt: skip


def _named_by(run: Path, rows: Rows) -> str:
    """Return the name of the file or folder, for a system that its log does not name."""
    rows.note(f"system {run.stem!r} is named by its file")
    return run.stem


def _beside(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what the files beside a log say: no more than a convenience, so damage is no error."""
    found: dict[str, Any] = {}
    for name in names:
        file = path.parent / name
        try:
            if file.is_file() and file.stat().st_size < _LARGEST_HEAD:
                value = parse(file.read_bytes(), name)
                found |= value if isinstance(value, dict) else {}
        except (OSError, ValueError):
            continue
    return found


def _parquet_rows(path: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, some at a time."""
    with readable():
        file, _ = open_parquet(path)
        wanted = set(names)
        there = [name for name in file.schema_arrow.names if name in wanted]
        for batch in batches(file, there):
            yield from batch.to_pylist()
