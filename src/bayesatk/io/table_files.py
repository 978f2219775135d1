"""Tables in files: CSV, TSV, JSON Lines, JSON arrays and Parquet, long or wide.

A wide table has a column of questions, and one of outcomes for each system.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import ROLES, Columns, one_row_a_trial, with_roles
from bayesatk.data.content import ASKED, RIGHT, UNKNOWN
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io.delimited import read_delimited
from bayesatk.io.folders import WIDE, Folders
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.json_tables import read_array, read_lines
from bayesatk.io.parquet_files import open_parquet, read_parquet, readable
from bayesatk.io.sources import Source


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

    def __post_init__(self) -> None:
        for name, kind, requirement in (
            ("records", str | None, "text"),
            ("wide", bool, "true or false"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise OutcomeError(
                    f"{name} must be {requirement}; got {shown(getattr(self, name))}."
                )

    def refuse_for(self, subject: str, *remedy: str | Argument) -> None:
        """Refuse what would have no effect."""
        for name in ("columns", "records", "wide"):
            if getattr(self, name):
                raise OutcomeError(
                    f"{name} must be left out for {subject}; got {shown(getattr(self, name))}. It "
                    "says how a table in a file is laid out. Leave it out", *remedy, ".",
                )  # fmt: skip


def read_one_table(
    kind: str, file: BinaryIO, path: Path, layout: Layout, scores: Scores
) -> Columns:
    """Read the columns that matter from one file, with a row for each trial."""
    return one_row_a_trial(_read(kind, file, path, layout, scores))


def _read(kind: str, file: BinaryIO, path: Path, layout: Layout, scores: Scores) -> Columns:
    if layout.records is not None and kind != "json":
        raise OutcomeError(
            f"records must be left out for {kind}; it says where a JSON document has its records. "
            "Leave it out."
        )
    if kind == "parquet":
        return read_parquet(path, layout.named)
    if kind in ("csv", "tsv"):
        separator = "," if kind == "csv" else "\t"
        return read_delimited(file, layout.named, scores, separator)
    if kind == "jsonl":
        return read_lines(file, layout.named)
    return read_array(file, layout.named, layout.records)


def join_tables(sources: Sequence[Source], tables: list[Columns]) -> Columns:
    """Return the rows of all files as one table; files without a system column are systems."""
    if len(sources) == 1 and sources[0].system is None:
        return tables[0]
    tables = [
        with_system(source, table, sources) for source, table in zip(sources, tables, strict=True)
    ]
    roles, folders = tables[0].roles, Folders()
    for source, table in zip(sources, tables, strict=True):
        if set(table.roles) != set(roles):
            raise OutcomeError(
                f"{source.name}: files read together must have columns for the same roles; this "
                f"has {', '.join(table.roles)}, {sources[0].name} has {', '.join(roles)}. Rename "
                "its columns, or read the files one by one."
            )
        folders.check(source, table)
    return stacked(tables, Places(sources, tables))


def stacked(tables: Sequence[Columns], numbers: Sequence[Any]) -> Columns:
    """Return the rows of tables with the same roles, one after the other."""
    roles = tables[0].roles
    values: dict[str, list[Any]] = {
        role: [value for table in tables for value in table.listed(role)] for role in roles
    }
    named = dict.fromkeys(name for table in tables for name in table.content)
    content = {
        name: [digest for table in tables for digest in _asked(table, name)] for name in named
    }
    unused_names = tuple(dict.fromkeys(name for table in tables for name in table.others))
    return Columns(roles, values, tables[0].word, numbers, content, unused_names)


def _asked(table: Columns, name: Any) -> Sequence[int]:
    """Return the digests of a content column, which one of several files may lack."""
    return table.content.get(name) or [UNKNOWN] * len(table.values["question"])


def with_system(source: Source, table: Columns, sources: Sequence[Source]) -> Columns:
    """Return the table with a system column: as told, or the name of the file."""
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
    rows = len(table.values["question"])
    return replace(
        table,
        roles={"system": f"({source.system or 'name of the file'})", **table.roles},
        values={"system": [name] * rows, **table.values},
    )


class Places(Sequence[Any]):
    """Where the rows of joined tables stand: number and file."""

    def __init__(self, sources: Sequence[Source], tables: Sequence[Columns]) -> None:
        self.sources, self.tables = sources, tables
        self.sizes = [len(table.values["question"]) for table in tables]

    def __len__(self) -> int:
        return sum(self.sizes)

    def __getitem__(self, row: Any) -> Any:
        for source, table, size in zip(self.sources, self.tables, self.sizes, strict=True):
            if row < size:
                return f"{table.number(row)} of {source.name}"
            row -= size
        raise IndexError(row)


def read_wide(kind: str, file: BinaryIO, path: Path, layout: Layout, scores: Scores) -> Columns:
    """Read a wide table, one system at a time."""
    names = _names(kind, file, path)
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
    tables = []
    for name in systems:
        file.seek(0)
        content = layout.columns.get("content", question_column)
        columns = {"question": question_column, "outcome": name, "content": content}
        table = read_one_table(kind, file, path, replace(layout, columns=columns), scores)
        tables.append(
            replace(
                table,
                roles={"system": WIDE, **table.roles},
                values={"system": [name] * len(table.values["question"]), **table.values},
                others=(),
            )
        )
    return stacked(
        tables,
        [
            system_table.number(row)
            for system_table in tables
            for row in range(len(system_table.values["system"]))
        ],
    )


def _questions(names: list[str]) -> str:
    """Return the column of questions: the only one with a usual name, else the first."""
    usual = [
        name for name in names if name.lower() in ROLES["question"] and name.lower() not in ASKED
    ]
    return usual[0] if len(usual) == 1 else names[0] if names else ""


def _names(kind: str, file: BinaryIO, path: Path) -> list[str]:
    """Return the names of all columns, of the header or of the first record."""
    if kind == "parquet":
        with readable():
            return list(open_parquet(path)[0].schema_arrow.names)
    first: Any = {}
    with decoded(file, newline="") as text:
        if kind in ("csv", "tsv"):
            return next(csv.reader(text, delimiter="," if kind == "csv" else "\t"), [])
        if kind == "json":
            first = next((record for _, _, record in members(text)), {})
        else:
            line = next((line for line in text if line.strip()), "{}")
            first = parse(line, "line 1")
    return list(first) if isinstance(first, dict) else []
