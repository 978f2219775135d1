"""Tables in files: CSV, TSV, JSON Lines, JSON arrays and Parquet, long or wide, one or several.

A wide table has a column of questions, and one of outcomes for each system.
"""

import math
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from bayesatk._tools.messages import PACKAGE, Argument
from bayesatk.data.columns import (
    ROLES,
    Columns,
    labels,
    one_row_a_trial,
    trial_columns,
    trial_text,
    with_roles,
)
from bayesatk.data.content import ASKED, RIGHT, UNKNOWN, meaning
from bayesatk.data.long_form import LongForm
from bayesatk.data.number_scale import NumberScale
from bayesatk.data.validation import OutcomeError, OutcomeWarning, Scores, number_of, shown
from bayesatk.io.json_stream import decoded
from bayesatk.io.parquet_files import columns_and_rows, parquet_blocks
from bayesatk.io.rows import NAMES_OF_COLUMNS
from bayesatk.io.sources import Source
from bayesatk.io.text_tables import (
    delimited_blocks,
    delimited_rows,
    is_number,
    json_blocks,
    json_records,
)

_SEPARATORS = {"csv": ",", "tsv": "\t"}
# How tools name the parts, or the repetitions, of what belongs together: part-00000-of-00002.
_PART = re.compile(
    r"(^|[-_. ])(part|shard|chunk|split|batch|slice|run|seed|trial|repeat|epoch|rollouts?|samples?"
    r"|results?|outputs?|outcomes?|data|train|test)?[-_. ]?\d+([-_. ]?of[-_. ]?\d+)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Layout:
    """How tables in files are laid out; the parameters of `bayesatk.load` of the same names.

    Columns of questions are beside the others: what logs say of their questions has names too.
    """

    columns: Mapping[str, str]
    records: str | None = None
    wide: bool = False
    of_questions: Mapping[str, str] = field(default_factory=dict)
    same_system: str = "error"

    @property
    def named(self) -> Mapping[str, str]:
        """Columns by role, with those of questions."""
        return with_roles(self.columns, self.of_questions)

    @property
    def options(self) -> Mapping[str, object]:
        """What says how a table is read, beside its columns."""
        return {"records": self.records, "wide": self.wide}

    def __post_init__(self) -> None:
        if not isinstance(self.records, str | None):
            raise OutcomeError(f"records must be text; got {shown(self.records)}.")
        if not isinstance(self.wide, bool):
            raise OutcomeError(f"wide must be true or false; got {shown(self.wide)}.")

    def refuse_for(self, subject: str, *remedy: str | Argument) -> None:
        """Refuse what would have no effect."""
        for name, value in {"columns": self.columns, **self.options}.items():
            if value:
                raise OutcomeError(
                    f"{name} must be left out for {subject}; got {shown(value)}. It says how a "
                    "table in a file is laid out. Leave it out", *remedy, ".",
                )  # fmt: skip


def blocks_of(
    source: Source, file: BinaryIO, layout: Layout, scores: Scores, size: int | None
) -> Generator[Columns]:
    """Yield the columns that matter, of so many rows after the other; of all without a size."""
    kind, columns = source.kind, layout.named
    if layout.records is not None and kind != "json":
        raise OutcomeError(
            f"records must be left out for {kind}; it says where a JSON document has its records. "
            "Leave it out."
        )
    roles = columns if isinstance(columns, Mapping) else {}  # else refused where it is used
    if "rate" in roles:
        return _of_rates(source, file, layout)
    if layout.wide:
        return _wide_blocks(source, file, layout, scores)
    if "," in (named := roles.get("outcome", "")) and named not in _names(source, file):
        return _blocks_by_trial(source, file, layout, scores, size)
    file.seek(0)
    if kind == "parquet":
        return parquet_blocks(source.path, columns, size is None)
    if kind in _SEPARATORS:
        return delimited_blocks(file, columns, scores, _SEPARATORS[kind], size)
    return json_blocks(kind, file, columns, layout.records)


def _of_rates(source: Source, file: BinaryIO, layout: Layout) -> Generator[Columns]:
    """Yield a table of counts for one with a share or percentage of successes by question."""
    column, trials = layout.columns["rate"], number_of(layout.columns.get("trials"))
    if trials is None or not trials.is_integer() or trials < 1:
        raise OutcomeError(
            "columns must give the number of trials beside a rate, the same for each question; got "
            f"{shown(dict(layout.columns))}. As in ",
            Argument("columns", {"rate": column, "trials": 10}), ".",
        )  # fmt: skip
    named = {role: name for role, name in layout.columns.items() if role not in ("rate", "trials")}
    long = replace(layout, columns={**named, "outcome": column})
    for block in blocks_of(source, file, long, NumberScale(), None):
        rates = [number_of(value) for value in block.listed("outcome")]
        whole = 100.0 if any(rate is not None and rate > 1.0 for rate in rates) else 1.0
        for row, rate in enumerate(rates):
            count = math.nan if rate is None else rate / whole * trials
            # Rates are rounded: a fifth of a trial is more than that takes away.
            if not (0.0 <= count <= trials and abs(count - round(count)) <= 0.2):
                raise OutcomeError(
                    f"column {column!r} must have shares or percentages of {trials:g} trials; "
                    f"{block.place(row)} has {shown(block.value('outcome', row))}. Correct the "
                    "number of trials: ", Argument("columns", {"rate": column, "trials": ...}), ".",
                )  # fmt: skip
        counts = {
            "trials": [int(trials)] * len(rates),
            "successes": [round((rate or 0.0) / whole * trials) for rate in rates],
        }
        kind = "percent" if whole > 1.0 else "share"
        names = {"trials": f"({trials:g} of each)", "successes": f"{column} ({kind})"}
        table = _without(block, "outcome")
        yield replace(table, roles={**table.roles, **names}, values={**table.values, **counts})


def stacked(tables: Sequence[Columns]) -> Columns:
    """Return the rows of tables with the same roles, one after the other."""
    if not tables:
        raise OutcomeError("a table of outcomes must have rows; got none.")
    if len(tables) == 1:
        return tables[0]
    roles = tables[0].roles
    values = {role: _joined([table.values[role] for table in tables]) for role in roles}
    # One of several files may lack a column of what was asked.
    content = {
        name: [
            digest
            for table in tables
            for digest in table.content.get(name) or [UNKNOWN] * len(table.values["question"])
        ]
        for name in dict.fromkeys(name for table in tables for name in table.content)
    }
    unused_names = tuple(dict.fromkeys(name for table in tables for name in table.others))
    return Columns(roles, values, tables[0].word, Places(tables), content, unused_names)


def _joined(columns: list[Any]) -> Any:
    """Return the values of columns: as coded or as an array where all are, else as a list."""
    if all(isinstance(column, pd.Categorical) for column in columns):
        return union_categoricals(columns)
    dtypes = {column.dtype if isinstance(column, np.ndarray) else None for column in columns}
    if len(dtypes) == 1 and None not in dtypes:
        return np.concatenate(columns)
    return [value for column in columns for value in _listed(column)]


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray | pd.Categorical) else list(column)


def with_system(
    source: Source, table: Columns, sources: Sequence[Source], same_system: str
) -> Columns:
    """Return the table with a system column, as told or the name of the file, and with its file.

    Several systems that its column names become one only where they are said to be the same.
    """
    table = replace(table, numbers=Places([table], f" of {source.name}"))
    if "system" in table.roles:
        if source.system is None:
            return table
        column, (codes, names) = table.roles["system"], labels(table, "system")
        if len(names) > 1 and same_system == "error":
            raise OutcomeError(
                f"{source.name}: a file must not name several systems if you name one; column "
                f"{shown(column)} has {shown(names)}. Give the path alone; if they are runs of one "
                "system, use ", Argument("same_system", "trials"), ".",
            )  # fmt: skip
        if len(names) > 1 and "trial" in table.roles:
            table = _with_trials_of(table, [f"{names[code]} " for code in codes.tolist()])
        table = _of_system(_without(table, "system"), source.system, f"({source.system})")
        return replace(table, others=(*table.others, column))
    name = source.plain.stem if source.system is None else source.system
    if source.system is None and sum(file.plain.stem == name for file in sources) > 1:
        raise OutcomeError(
            f"files that name their systems must have distinct names; two are called {name!r}. "
            "Name the systems: ", Argument("source", {"a": source.name, "b": ...}, "load"), ".",
        )  # fmt: skip
    return _of_system(table, name, f"({source.system or 'name of the file'})")


def _with_trials_of(table: Columns, runs: Sequence[str]) -> Columns:
    """Return the table with the run before the label of every trial: trials of runs differ."""
    trials = [f"{run}{trial_text(trial)}" for run, trial in
              zip(runs, table.listed("trial"), strict=True)]  # fmt: skip
    return replace(table, values={**table.values, "trial": trials})


def of_run(source: Source, table: Columns) -> Columns:
    """Return the table with trials told apart from those of the same number in other files."""
    if "trial" not in table.roles:
        return table
    return _with_trials_of(table, [f"{source.path} "] * len(table.values["question"]))


def _without(table: Columns, role: str) -> Columns:
    roles, values = dict(table.roles), dict(table.values)
    del roles[role], values[role]
    return replace(table, roles=roles, values=values)


def _of_system(table: Columns, name: str, column: str) -> Columns:
    """Return the table with a column of one system."""
    system = [name] * len(table.values["question"])
    roles, values = {"system": column, **table.roles}, {"system": system, **table.values}
    return replace(table, roles=roles, values=values)


class Places(Sequence[Any]):
    """Where the rows of stacked tables stand: the number, and the file if there are several."""

    def __init__(self, tables: Sequence[Columns], ending: str = "") -> None:
        self.tables, self.ending = tables, ending
        self.ends = np.cumsum([len(table.values["question"]) for table in tables])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, row: Any) -> Any:
        table = int(np.searchsorted(self.ends, row, side="right"))
        before = int(self.ends[table - 1]) if table else 0
        return f"{self.tables[table].number(row - before)}{self.ending}"


def _wide_columns(names: list[str], layout: Layout) -> tuple[str, list[str]]:
    """Return the column of questions, and those that may be of systems."""
    question_column = layout.columns.get("question") or _questions(names)
    other_columns = {question_column, layout.columns.get("content"), *layout.of_questions.values()}
    systems = [
        column
        for column in names
        if column not in other_columns and meaning(column) not in (*ASKED, *RIGHT)
    ]
    extra_roles = set(layout.columns) - {"question", "content", "outcome"}
    if question_column not in names or not systems or extra_roles:
        raise OutcomeError(
            "a wide table must have a column of questions, and one for each system; columns may "
            "name question, content, and the outcome within the object of a system. It has "
            f"{shown(names, 300)}, and columns are "
            f"{shown(dict(layout.columns))}. Name the questions: ",
            Argument("columns", {"question": ...}), ".",
        )  # fmt: skip
    return question_column, systems


def _wide_blocks(
    source: Source, file: BinaryIO, layout: Layout, scores: Scores
) -> Generator[Columns]:
    """Yield a long table for each system of a wide one."""
    question_column, systems = _wide_columns(_names(source, file), layout)
    within = layout.columns.get("outcome")  # of the object that a system has
    content = layout.columns.get("content", question_column)
    runs, unmarked = _runs_of(systems, layout.same_system), []
    marked = 0
    for name in systems:
        file.seek(0)
        outcome = name if within is None else f"{name}.{within}"
        columns = {"question": question_column, "outcome": outcome, "content": content}
        long = replace(layout, columns=columns, wide=False)
        try:
            blocks = [
                one_row_a_trial(block) for block in blocks_of(source, file, long, scores, None)
            ]
        except OutcomeError:
            if within is None or marked:
                raise
            blocks = []  # a column that holds no objects
        if not any(holds_marks(block.values["outcome"], scores) for block in blocks):
            unmarked.append(name)
            continue
        marked += 1
        system, run = runs[name]
        for block in blocks:
            long_block = _of_system(block, system, NAMES_OF_COLUMNS) if system else block
            yield replace(_of_column(long_block, run), others=tuple(unmarked))
    if not marked:
        raise OutcomeError(
            f"a wide table must have a column of marks for each system; none of {shown(systems)} "
            "holds any. Name the questions: ", Argument("columns", {"question": ...}),
            ", or say what its marks are worth: ", Argument("scores", {"yes": 1, "no": 0}), ".",
        )  # fmt: skip


def _runs_of(columns: Sequence[str], same_system: str) -> dict[str, tuple[str, str]]:
    """Return the system of every column, and which of its runs it is, by the name of the column.

    Columns that are named as trials are those of the file; x, x.1 and x.2, as pandas names columns
    of one name, are runs of x where that is said.
    """
    if columns and trial_columns(columns) == list(columns):
        return {column: ("", column) for column in columns}
    if same_system != "trials":
        return {column: (column, "") for column in columns}
    bases = {column: column.rpartition(".") for column in columns}
    return {
        column: (base if number.isdecimal() and base in bases else column, column)
        for column, (base, _, number) in bases.items()
    }


def _of_column(table: Columns, run: str) -> Columns:
    """Return the table with the column as the label of its trials, if it is a run."""
    if not run:
        return table
    trials = [run] * len(table.values["question"])
    return replace(
        table,
        roles={**table.roles, "trial": NAMES_OF_COLUMNS},
        values={**table.values, "trial": trials},
    )


def holds_marks(values: Any, scores: Scores) -> bool:
    """Whether there is a mark in a column: a number, true/false, C, I, or what has a score.

    Examples
    --------
    >>> [holds_marks(column, {0: 0.0, 1: 1.0}) for column in ([0, None], ["0.5"], ["Paris", ""])]
    [True, True, False]
    """
    if isinstance(values, np.ndarray):
        return True
    distinct = {value for value in values if not isinstance(value, list | dict)}
    texts = {value for value in distinct if isinstance(value, str) and value.strip()}
    if not texts or any(is_number(text.strip()) or text in scores for text in texts):
        return True
    return bool(distinct - texts - {None, ""}) or texts <= {"C", "I"}


def _blocks_by_trial(
    source: Source, file: BinaryIO, layout: Layout, scores: Scores, size: int | None
) -> Generator[Columns]:
    """Yield a long table for each column of trials that stand side by side: "run0,run1"."""
    trials = [name.strip() for name in layout.columns["outcome"].split(",")]
    for name in trials:
        file.seek(0)
        long = replace(layout, columns={**layout.columns, "outcome": name})
        for block in blocks_of(source, file, long, scores, size):
            others = tuple(column for column in block.others if column not in trials)
            roles = {**block.roles, "outcome": layout.columns["outcome"]}
            yield replace(block, others=others, roles=roles)


def _questions(names: list[str]) -> str:
    """Return the column of questions: the only one with a usual name, else the first."""
    for line in ROLES["question"][:2]:
        usual = [name for name in names if meaning(name) in {*line.split()} - {*ASKED}]
        if len(usual) == 1:
            return usual[0]
    return names[0] if names else ""


def _names(source: Source, file: BinaryIO) -> list[str]:
    """Return the names of all columns, of the header or of the first record."""
    if source.kind == "parquet":
        return columns_and_rows(source.path)[0]
    if source.kind in _SEPARATORS:
        with decoded(file, newline="") as text:
            return next(delimited_rows(text, _SEPARATORS[source.kind]), (0, []))[1]
    first: Any = next((record for _, record in json_records(source.kind, file, None)), {})
    return list(first) if isinstance(first, dict) else []


class Folders:
    """What the tables of a folder, which nobody named one by one, must have in common.

    Their columns have the same names, and the rows of a question of a system stand in one file, or
    are told apart by a trial column: a copy of a table would count every trial twice otherwise.
    """

    def __init__(self) -> None:
        self._first: dict[str, tuple[Source, dict[str, Any]]] = {}
        self._seen: dict[tuple[Any, Any], Source] = {}

    def check(self, source: Source, table: Columns, same_system: str) -> None:
        """Take a table, or the next part of one, with its system column; refuse a misfit."""
        if not source.folder:
            return
        names = dict(table.roles)
        if names.get("system") == NAMES_OF_COLUMNS:
            del names["outcome"]  # those of outcomes are systems
        first_source, first_names = self._first.setdefault(source.folder, (source, names))
        if names != first_names:
            raise OutcomeError(
                f"the tables of a folder must have columns of the same names; {source.name} has "
                f"{_told(names)}, and {first_source.name} {_told(first_names)}. Name the files "
                "that are meant, or rename columns."
            )
        if "trial" in table.roles or same_system == "trials":
            return  # a repeated trial is refused as in one table
        for system, question in _pairs(table):
            earlier_source = self._seen.setdefault((system, question), source)
            if earlier_source is not source:
                raise OutcomeError(
                    "the tables of a folder must have the rows of a question of a system in one "
                    f"file, or number its trials in a column; question {shown(question)} of system "
                    f"{shown(system)} is in {earlier_source.name} and {source.name}. Take out a "
                    "file that repeats another; if their rows are further trials, use ",
                    Argument("same_system", "trials"), ".",
                )  # fmt: skip


def _told(names: Mapping[str, Any]) -> str:
    return ", ".join(f"{role} = {shown(name)}" for role, name in names.items())


def _pairs(table: Columns) -> list[tuple[Any, Any]]:
    """Return every pair of system and question, once."""
    (system, systems), (question, questions) = labels(table, "system"), labels(table, "question")
    pairs = np.unique(np.stack([system, question]), axis=1).T.tolist()
    return [(systems[i], questions[j]) for i, j in pairs]


def note_parts(long: LongForm, scores: Scores, sources: Sequence[Source]) -> LongForm:
    """Say where files that were read as systems may be parts, or repetitions, of one system.

    Their names differ in numbers alone, and are such as tools give to parts, or no two of them
    have a question in common.
    """
    names = [source.plain.stem for source in sources]
    if len(names) < 2 or list(long.systems) != names:  # one file, or systems that are named
        return long
    disjoint = bool((long.slots(scores).any(axis=-1).sum(axis=0) == 1).all())
    same_but_numbers = len({re.sub(r"\d+", "0", name) for name in names}) == 1
    if not same_but_numbers or not (disjoint or all(map(_PART.search, names))):
        return long
    text = f"each of {len(names)} files is a system, and their names differ in numbers alone"
    common = re.split(r"[-_. ]?\d", names[0])[0] or sources[0].path.resolve().parent.name
    remedy = Argument("source", {common or "system": _named_again(sources, disjoint)}, "load")
    advice = OutcomeWarning(f"{text}; are they of one system? Then name it: ", remedy, ".")
    warnings.warn(advice, skip_file_prefixes=(PACKAGE,))
    return replace(long, notes=(*long.notes, f"CHECK: {advice}"))


def _named_again(sources: Sequence[Source], disjoint: bool) -> object:
    """Return the folder that was named, or its files, unless they are too many for a message."""
    first, *other_folders = {source.path.parent for source in sources}
    if disjoint and not other_folders and sources[0].folder == first.name:
        return str(first)
    return [str(source.path) for source in sources] if len(sources) <= 5 else ...
