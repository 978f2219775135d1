"""Logs whose trials are records: `RecordLog` describes a format, and reads all formats.

The description of a format says how it is recognised, where its records are, and what each record
says of its trials: by paths of fields, and by a function where paths do not suffice. The choice of
a mark, lists of outcomes, names of systems and required fields are the same for every format.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Literal

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import canonical, digest
from bayesatk.data.roles import BY_TRIAL, COST
from bayesatk.data.validation import OutcomeError, is_absent, shown
from bayesatk.io.json_stream import (
    Json,
    Placed,
    decoded,
    has_field,
    parse_json,
    parsed_lines,
    placed_records,
    value_at,
)
from bayesatk.io.log_rows import EMPTY_OUTPUT, Rows, Totals, Trial
from bayesatk.io.record_tables import records_of_parquet
from bayesatk.io.sources import LINES


@dataclass(frozen=True)
class Record:
    """One record of a log.

    Parameters
    ----------
    fields : object
        Fields of the record.
    head : dict
        Fields of the document, and of the file beside it.
    path : pathlib.Path
        Path of the log.
    where : str
        Place of the record for messages.
    key : object
        Name or number of the record in the document.
    """

    fields: Any
    head: Json
    path: Path
    where: str = "the log"
    key: Any = None

    def __call__(self, path: str) -> Any:
        """Return the value at a path; ``^`` is the document, ``a|b`` the first that is there."""
        blank = None
        for alternative in path.split("|"):
            in_head = alternative.startswith("^")
            value = value_at(self.head if in_head else self.fields, alternative.removeprefix("^"))
            if not is_absent(value):
                return value
            blank = value if blank is None else blank
        return blank

    def of[Kind: (str, Json, list[Any])](self, kind: type[Kind], path: str) -> Kind:
        """Return the value at a path if it is of a type, else an empty value of that type."""
        value = self(path)
        return value if isinstance(value, kind) else kind()

    def number(self, path: str) -> float:
        """Return the number at a path; NaN if there is none."""
        value = self(path)
        try:
            return float(value) if isinstance(value, int | float) else math.nan
        except OverflowError:  # an integer beyond the floats
            return math.nan

    def inner(self, path: str) -> list["Record"]:
        """Return the objects in a list as records, with this record as part of their document."""
        elements = [element for element in self.of(list, path) if isinstance(element, dict)]
        head = {**self.head, **self.fields}
        return [replace(self, fields=element, head=head) for element in elements]


Trials = Iterator[Json]  # parameters of every `Trial` of a record, by name


def _says_no_more(record: Record) -> Trials:
    """Yield one trial, which the paths describe completely."""
    yield {}


@dataclass(frozen=True)
class RecordLog:
    """A format of logs.

    Parameters
    ----------
    name : str
    form : {"lines", "document", "records", "parquet"}
        Records may be lines, or stand in a document as an array or under a name.
    signs : tuple of str
        Fields by which it is recognised: of the first line, record or row, or of a document, where
        ``results.task_id`` is a field of the first of its results, ``*`` stands for any name,
        ``[]`` for a list, and ``a|b`` for one of two.
    says : mapping of str to str
        Paths of the parameters of `bayesatk.io.log_rows.Trial` and of the ``filter``, by name. A
        path that begins with ^ is of the document.
    asked : tuple of str
        Paths of the prompt and the right answer.
    output : tuple of str
        Paths of the output of the system; a blank output may be a failed call.
    known : mapping of str to str
        Paths of fields, by the names under which they can be asked for.
    within : str
        Path of an object whose fields can be asked for as well; default: the record itself.
    read : callable
        Returns further parameters for each trial of a record, or no trial. An outcome, and its
        answer, may be a mapping by scorer or, with `lists`, a list with an element for each trial.
    by_content : bool
        Whether a question without an id is identified by a digest of its content.
    by_name : bool
        Whether equal ids in different tasks are one question.
    stated : callable
        Returns the totals that the log states.
    lists : bool
        Whether an outcome is a list of marks, each of which is a trial.
    marks_apart : bool
        Whether each scorer has its own record of a trial.
    scorer : str
        The mark that is read by default, if there are several.
    marker : str
        Description of the marks, with "{scorer}" and "{filter}" for the chosen ones.
    reason : str
        Default reason why a mark is missing.
    records : str
        Place of the records in a document: a dotted path, or a|b; "" if the document is their
        array, "." if it is one record.
    parts : str
        Path of a list in each record whose elements are read as records.
    kinds : tuple of type
        Types of records.
    needed : tuple of str
        Fields that every record must have.
    ends_with_head : bool
        Whether the document has fields of the run after its records.
    beside : str
        File in the same folder with further fields of the run.
    run_above : int
        Number of folders from a file up to that of its run; the files of a run are one log.
    named_by : {"file", "folder", "log"}
        What names a system that no record names; with "log" the log itself must.
    ending : str
        Regular expression of the end of a file name that is not part of the name of the system.
    honours : tuple of str
        Options of `bayesatk.load` that have an effect.
    summary : str
        Description of a file without trials, and where these are.
    notes : callable
        Returns notes on a log, from its document and the number of its records.
    part_of : str
        Format of a file in a folder above that repeats these trials.
    """

    name: str
    form: Literal["lines", "document", "records", "parquet"]
    signs: tuple[str, ...]
    says: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    within: str = ""
    read: Callable[[Record], Trials] = _says_no_more
    by_content: bool = False
    by_name: bool = False
    stated: Callable[[Record], Totals] = field(default=lambda log: Totals())
    lists: bool = False
    marks_apart: bool = False
    scorer: str = ""
    marker: str = ""
    reason: str = "no mark"
    records: str = ""
    parts: str = ""
    kinds: tuple[type[Any], ...] = (dict,)
    needed: tuple[str, ...] = ()
    ends_with_head: bool = False
    beside: str = ""
    run_above: int = 0
    named_by: Literal["file", "folder", "log"] = "file"
    ending: str = ""
    honours: tuple[str, ...] = ()
    summary: str = ""
    notes: Callable[[Record, int], Iterable[str]] = field(default=lambda document, number: ())
    part_of: str = ""

    def run(self, path: Path) -> Path:
        """Return the file or folder of the run of a file."""
        return path.parents[self.run_above - 1] if self.run_above else path

    def honoured(self, option: str) -> bool:
        """Return whether an option of `bayesatk.load` has an effect."""
        usual = ("same_system", "empty_output", *(["question_key"] if self.asked else []))
        return option in (*usual, *self.honours)

    def recognises(self, fields: object) -> bool:
        """Return whether the fields are those of the format.

        Records of one's own that name their systems, or number their trials, are a table: a format
        whose records do not would pool them.
        """
        has_records = self.form != "document" or not self.records
        own = {"system": "model|model_name|model_id|system|agent", "trial": "trial"}
        is_own = has_records and any(
            self.says.get(role, "^").startswith("^") and has_field(fields, names)
            for role, names in own.items()
        )
        return not is_own and all(has_field(fields, sign) for sign in self.signs)

    def __call__(self, file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
        """Read a file of the format."""
        if self.summary:
            raise OutcomeError(f"the file must have trials; this is {self.summary}")
        run = self.run(path)
        in_folder = run != path or self.named_by == "folder"
        rows.open(f"{run.parent.name}/{run.name}" if in_folder else path.name, str(run))
        log, number = _Log(self, system, path, rows), 0
        head = fields_of(path.parent / self.beside) if self.beside else {}
        for record in self._records(file, head, path):
            number += 1
            for trial_record in record.inner(self.parts) if self.parts else [record]:
                for more in self.read(trial_record):
                    log.add(trial_record, more)
        whole = Record(head, {}, path)
        log.finish(self.notes(whole, number), self.stated(whole))

    def _records(self, file: BinaryIO, head: Json, path: Path) -> Iterator[Record]:
        """Yield every record, or refuse one that lacks a required field."""
        for where, key, fields in self.placed_fields(file, head, path):
            if self.form == "lines" and _is_totals(fields, self.needed):
                continue
            if not isinstance(fields, self.kinds):
                raise OutcomeError(f"{where} must be an object; got {shown(fields)}.")
            for name in self.needed:
                if not has_field(fields, name):
                    raise OutcomeError(
                        f"{where} must have the field {name!r}; it has {shown([*fields], 200)}. "
                        "Is the file complete?"
                    )
            yield Record(fields, head, path, where, key)

    def placed_fields(self, file: BinaryIO, head: Json, path: Path) -> Iterator[Placed]:
        """Yield place, key and fields of every record; put all other fields into `head`."""
        if self.form == "parquet":
            names = {name for sign in self.signs for name in sign.split("|")}
            for number, fields in enumerate(records_of_parquet(path, names)):
                yield f"row {number}", number, fields
            return
        if self.form == "lines" or (self.form == "records" and path.suffix in LINES):
            for number, fields in parsed_lines(file):
                yield f"line {number}", number, fields
            return
        for last_time in (False, True) if self.ends_with_head else (True,):
            file.seek(0)
            with decoded(file) as text:
                for placed in placed_records(text, self.records, head):
                    if last_time:
                        yield placed


class _Choice:
    """The choice of one of several scorers, or filters, of a log."""

    def __init__(self, option: str, wanted: str | None) -> None:
        self.option, self.wanted = option, wanted
        self.names: dict[str, dict[str, None]] = {}  # by task

    def among(self, names: Iterable[str], task: str, where: str, usual: str = "") -> str:
        """Return the name that is read, of those in a record, or refuse if one must be chosen."""
        seen = self.names.setdefault(task, {})
        seen |= dict.fromkeys(names)
        if self.wanted is None and len(seen) > 1 and not usual:
            raise self._refusal(f"one {self.option} must be chosen; with {where}", seen)
        return self.wanted or usual or next(iter(seen), "")

    def check(self) -> dict[str, None]:
        """Return all names, or refuse a wanted name that no record has."""
        names = {name: None for seen in self.names.values() for name in seen}
        if names and self.wanted is not None and self.wanted not in names:
            rule = f"{self.option} must be one that the log has; got {shown(self.wanted)}:"
            raise self._refusal(rule, names)
        return names

    def _refusal(self, rule: str, names: Mapping[str, None]) -> OutcomeError:
        listed = shown([str(name) for name in names], 300)[1:-1]
        first = Argument(self.option, next(iter(names))[:80])
        return OutcomeError(f"{rule} there are {listed}. Choose: ", first, ".")


class _Log:
    """A log that is being read: it chooses a mark of every trial and adds the trial to the rows."""

    def __init__(self, form: RecordLog, system: str | None, path: Path, rows: Rows) -> None:
        self.form, self.system, self.path, self.rows = form, system, path, rows
        self.scorers = _Choice("scorer", rows.options.scorer)
        self.filters = _Choice("filter", rows.options.filter)
        # Fields, marks and answers of trials whose scorers have records of their own.
        self.apart: dict[Any, tuple[Json, Json, Json]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, record: Record, more: Mapping[str, Any]) -> None:
        """Add the trials of a record, described by its fields and by `more`."""
        fields = self._fields(record, more)
        marks, answer, name = (
            fields.pop("outcome"),
            fields.pop("answer", None),
            fields.pop("filter", None),
        )
        if name is not None and name != self.filters.among([name], "", record.where):
            return
        if self.form.marks_apart:
            self._collect(fields, marks, answer)
        elif isinstance(marks, Mapping):
            self._choose(fields, marks, answer, record.where, name)
        elif not self.form.lists:
            self._add(fields, marks, answer)
        else:
            self._add_list(fields, marks, answer, record.where)

    def _collect(self, fields: Json, marks: Mapping[str, Any], answer: object) -> None:
        """Collect marks of a trial; the n-th mark of a scorer is that of the n-th trial."""
        trial = repr([fields["system"], fields["task"], fields["question"], fields["trial"]])
        for scorer, mark in marks.items():
            self.counts[trial, scorer] += 1
            key = trial, self.counts[trial, scorer]
            _, all_marks, answers = self.apart.setdefault(key, (fields, {}, {}))
            all_marks[scorer], answers[scorer] = mark, answer

    def _choose(
        self,
        fields: Json,
        marks: Mapping[str, Any],
        answer: Any,
        where: str,
        name: object,
    ) -> None:
        """Add a trial with the mark of the chosen scorer."""
        form = self.form
        default_scorer = form.scorer if form.scorer in marks else ""
        for of_scorer, mark in marks.items():
            is_binary = mark is None or (isinstance(mark, int | float) and mark in (0, 1))
            self.rows.certain[of_scorer] = is_binary and self.rows.certain.get(of_scorer, True)
        scorer = self.scorers.among(marks, fields["task"], where, default_scorer)
        mark = marks.get(scorer)
        if isinstance(mark, list | dict):
            raise OutcomeError(
                f"a mark must be text, a number or true/false; {where}, of question "
                f"{shown(fields['question'])}, has {shown(mark)}. Choose a scorer whose value is "
                "one, or reduce it there."
            )
        if scorer in marks:
            marker = form.marker or f"{form.name}'s {{scorer}}"
            self.rows.marked_by(marker.format(scorer=shown(scorer), filter=shown(name)))
        elif form.marks_apart:
            fields["reason"] = f"not marked by {scorer}"
        self._add(fields, mark, answer.get(scorer) if isinstance(answer, Mapping) else answer)

    def _fields(self, record: Record, more: Mapping[str, Any]) -> Json:
        """Return the parameters of the trial of a record, by name."""
        form = self.form
        fields: Json = {
            "system": "",
            "task": "",
            "trial": None,
            "reason": form.reason,
            "by_name": form.by_name,
        }
        for name, path in form.says.items():
            text = name in ("system", "task", "identity")
            fields[name] = record.of(str, path) if text else record(path)
        if any(_is_blank(record(path)) for path in form.output):
            fields["fault"] = EMPTY_OUTPUT
        content = [record(path) for path in form.asked]
        fields["content"] = content_of(*content)
        if form.by_content and fields.get("question") is None:
            fields["question"] = f"#{digest(*map(canonical, content))}"
        fields |= more
        name, fields["system"] = fields["system"], self.system_of(fields["system"])
        if name and name != fields["system"] and isinstance(fields["trial"], int | str):
            fields["trial"] = f"{name} {fields['trial']}"  # of one of several systems
        aliases = {name: record(path) for name, path in form.known.items()}
        fields["known"] = self._known(record, aliases | more.get("known", {}))
        return fields

    def system_of(self, name: str) -> str:
        """Return the name of a system: of the caller, of the log, or of the file or folder."""
        if self.system is None:
            return name or self._named_by_file
        if name:
            self.rows.rename(name, self.system)
        return self.system

    @cached_property
    def _named_by_file(self) -> str:
        """The name of the file or folder of the log."""
        if self.form.named_by == "log":
            raise OutcomeError(
                "the log must name its model; 'eval' has none. Name the system yourself: ",
                Argument("source", {"name": "file.eval"}, "load"),
                ".",
            )
        in_folder = self.form.named_by == "folder"
        path = self.path.resolve().parent if in_folder else self.form.run(self.path)
        name = path.name if in_folder else path.stem
        name = re.sub(f"{self.form.ending}$", "", name) or name
        self.rows.note(f"system {name!r} is named by its {self.form.named_by}")
        return name

    def _known(self, record: Record, aliases: Mapping[str, Any]) -> dict[str, object]:
        """Return the values of the requested fields; costs that readers offer come first."""
        fields = record.head if self.form.parts else record.fields
        fields = record.of(dict, self.form.within) if self.form.within else fields
        if len(self.rows.offered) < 100:  # for messages
            names = (name for name in (*fields, *aliases) if isinstance(name, str))
            self.rows.offered |= dict.fromkeys(names)
        values = {}
        for role, name in self.rows.roles.items():
            field_value, alias = value_at(fields, name), aliases.get(name)
            values[name] = (
                alias
                if field_value is None or (role == COST and alias is not None)
                else field_value
            )
        return values

    def _add_list(self, fields: Json, marks: object, answers: object, where: str) -> None:
        """Add a trial for every mark of a list."""
        if not isinstance(marks, list):
            raise OutcomeError(f"{where} must have a list of marks; got {shown(marks)}.")
        for role in BY_TRIAL:
            if role in self.rows.roles and len(marks) > 1:
                raise OutcomeError(
                    role,
                    " must be left out for records of several trials, which do not "
                    f"say the {role} of each of them.",
                )
        listed = answers[: len(marks)] if isinstance(answers, list) else []
        for number, (mark, answer) in enumerate(zip_longest(marks, listed)):
            self._add({**fields, "trial": number}, mark, answer)

    def _add(self, fields: Mapping[str, Any], mark: object, answer: object) -> None:
        """Add a trial with its mark, and its answer if answers are read."""
        # Rewards are sums of weights with rounding errors; within 1e-6 they are 0 or 1.
        if isinstance(mark, float):
            mark = next((end for end in (0, 1) if abs(mark - end) <= 1e-6), mark)
        if fields["trial"] is None:
            self.rows.note("trials without a number are counted in the order of the file")
            fields = {**fields, "trial": f"number {len(self.rows.trials) + 1}"}
        read = self.rows.options.answers and isinstance(answer, str)
        self.rows.add(Trial(**fields, outcome=mark, answer=answer if read else None))

    def finish(self, notes: Iterable[str], stated: Totals) -> None:
        """Add collected trials, totals and notes; refuse scorers and filters that do not occur."""
        read_filter = self.filters.wanted or next(iter(self.filters.names.get("", {})), None)
        for fields, marks, answers in self.apart.values():
            self._choose(fields, marks, answers, "the log", read_filter)
        log = len(self.rows.names) - 1
        self.rows.stated[log] = stated
        if self.form.by_content:
            self.rows.by_content.add(log)
        self.scorers.check()
        filters = self.filters.check()
        if self.filters.wanted is None:
            self.rows.filters |= filters
        if len(self.rows.filters) > 1:
            raise OutcomeError(
                f"files must be of one filter; they have {shown(list(self.rows.filters))[1:-1]}. "
                "Choose: ",
                Argument("filter", next(iter(filters))[:80]),
                ", or read the files one by one.",
            )
        for note in notes:
            self.rows.note(note)


def _is_totals(fields: object, needed: Iterable[str]) -> bool:
    """Return whether a line holds totals: numbers, and none of the fields of a record."""
    return (
        isinstance(fields, dict)
        and bool(fields)
        and not any(has_field(fields, name) for name in needed)
        and all(isinstance(value, int | float) for value in fields.values())
    )


def content_of(*asked: object) -> str:
    """Return a digest of the prompt and the right answer; "" if both are missing."""
    return digest(*map(canonical, asked)) if any(asked) else ""


def _is_blank(output: object) -> bool:
    """Return whether an output is blank text, an empty list, or a list of one such output."""
    while isinstance(output, list) and len(output) == 1:
        output = output[0]
    return output == [] or (isinstance(output, str) and not output.strip())


def fields_of(path: Path) -> Json:
    """Return the object in a small file beside a log; {} if it is missing or damaged."""
    max_bytes = 1 << 24
    try:
        small = path.is_file() and path.stat().st_size < max_bytes
        value = parse_json(path.read_bytes(), path.name) if small else {}
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
