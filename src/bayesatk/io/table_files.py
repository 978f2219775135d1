"""Tables in files: CSV, TSV, JSON Lines, JSON arrays and Parquet, long or wide, one or several.

A wide table has a column of questions, and one of outcomes for each system.
"""

import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from bayesatk._tools.messages import PACKAGE, Argument
from bayesatk.data.columns import ROLES, Columns, labels, with_roles
from bayesatk.data.content import ASKED, RIGHT, UNKNOWN
from bayesatk.data.long_form import LongForm
from bayesatk.data.validation import OutcomeError, OutcomeWarning, Scores, shown
from bayesatk.io.json_stream import decoded
from bayesatk.io.parquet_files import columns_and_rows, parquet_blocks
from bayesatk.io.sources import Source
from bayesatk.io.text_tables import delimited_blocks, delimited_rows, json_blocks, json_records

_SEPARATORS = {"csv": ",", "tsv": "\t"}
_WIDE = "(names of columns)"  # in place of the system column of a wide table
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
    if layout.wide:
        return _wide_blocks(source, file, layout, scores)
    if kind == "parquet":
        return parquet_blocks(source.path, columns, size is None)
    if kind in _SEPARATORS:
        return delimited_blocks(file, columns, scores, _SEPARATORS[kind], size)
    return json_blocks(kind, file, columns, layout.records)


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


def with_system(source: Source, table: Columns, sources: Sequence[Source]) -> Columns:
    """Return the table with a system column, as told or the name of the file, and with its file."""
    table = replace(table, numbers=Places([table], f" of {source.name}"))
    if "system" in table.roles:
        if source.system is None:
            return table
        raise OutcomeError(
            f"{source.name}: a file must not name systems itself if you name one; it has the "
            f"column {shown(table.roles['system'])}. Give the path alone."
        )
    name = source.path.stem if source.system is None else source.system
    if source.system is None and sum(file.path.stem == name for file in sources) > 1:
        raise OutcomeError(
            f"files that name their systems must have distinct names; two are called {name!r}. "
            "Name the systems: ", Argument("source", {"a": source.name, "b": ...}, "load"), ".",
        )  # fmt: skip
    return _of_system(table, name, f"({source.system or 'name of the file'})")


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


def _wide_blocks(
    source: Source, file: BinaryIO, layout: Layout, scores: Scores
) -> Generator[Columns]:
    """Yield a long table for each system of a wide one."""
    names = _names(source, file)
    question_column = layout.columns.get("question") or _questions(names)
    other_columns = {question_column, layout.columns.get("content"), *layout.of_questions.values()}
    systems = [
        column
        for column in names
        if column not in other_columns and column.lower() not in (*ASKED, *RIGHT)
    ]
    extra_roles = set(layout.columns) - {"question", "content"}
    if question_column not in names or not systems or extra_roles:
        raise OutcomeError(
            "a wide table must have a column of questions, and one for each system; columns may "
            f"name question and content alone. It has {shown(names, 300)}, and columns are "
            f"{shown(dict(layout.columns))}. Name the questions: ",
            Argument("columns", {"question": ...}), ".",
        )  # fmt: skip
    content = layout.columns.get("content", question_column)
    for name in systems:
        file.seek(0)
        columns = {"question": question_column, "outcome": name, "content": content}
        long = replace(layout, columns=columns, wide=False)
        for block in blocks_of(source, file, long, scores, None):
            yield replace(_of_system(block, name, _WIDE), others=())


def _questions(names: list[str]) -> str:
    """Return the column of questions: the only one with a usual name, else the first."""
    usual = [
        name for name in names if name.lower() in ROLES["question"] and name.lower() not in ASKED
    ]
    return usual[0] if len(usual) == 1 else names[0] if names else ""


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

    def check(self, source: Source, table: Columns) -> None:
        """Take a table, or the next part of one, with its system column; refuse a misfit."""
        if not source.folder:
            return
        names = dict(table.roles)
        if names.get("system") == _WIDE:
            del names["outcome"]  # those of outcomes are systems
        first_source, first_names = self._first.setdefault(source.folder, (source, names))
        if names != first_names:
            raise OutcomeError(
                f"the tables of a folder must have columns of the same names; {source.name} has "
                f"{_told(names)}, and {first_source.name} {_told(first_names)}. Name the files "
                "that are meant, or rename columns."
            )
        if "trial" in table.roles:
            return  # a repeated trial is refused as in one table
        for system, question in _pairs(table):
            earlier_source = self._seen.setdefault((system, question), source)
            if earlier_source is not source:
                raise OutcomeError(
                    "the tables of a folder must have the rows of a question of a system in one "
                    f"file, or number its trials in a column; question {shown(question)} of system "
                    f"{shown(system)} is in {earlier_source.name} and {source.name}. Take out a "
                    "file that repeats another; name the files if their rows are further trials."
                )


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
    names = [source.path.stem for source in sources]
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
