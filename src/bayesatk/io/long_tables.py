"""Long tables in files: CSV, TSV, JSON Lines, JSON arrays and Parquet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import Columns
from bayesatk.data.content import UNKNOWN
from bayesatk.data.list_cells import one_row_a_trial
from bayesatk.data.question_columns import with_roles
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io.delimited import read_delimited
from bayesatk.io.folders import Folders
from bayesatk.io.json_tables import read_array, read_lines
from bayesatk.io.parquet_files import read_parquet
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
        for name, kind, what in (("records", str | None, "text"), ("wide", bool, "true or false")):
            if not isinstance(getattr(self, name), kind):
                raise OutcomeError(f"{name} must be {what}; got {shown(getattr(self, name))}.")

    def refuse_for(self, what: str, *remedy: str | Argument) -> None:
        """Refuse what would have no effect."""
        for name in ("columns", "records", "wide"):
            if getattr(self, name):
                raise OutcomeError(
                    f"{name} must be left out for {what}; got {shown(getattr(self, name))}. It "
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


def join_tables(found: Sequence[Source], read: list[Columns]) -> Columns:
    """Return the rows of all files as one table; files without a system column are systems."""
    if len(found) == 1 and found[0].system is None:
        return read[0]
    read = [with_system(one, own, found) for one, own in zip(found, read, strict=True)]
    roles, folders = read[0].roles, Folders()
    for one, own in zip(found, read, strict=True):
        if set(own.roles) != set(roles):
            raise OutcomeError(
                f"{one.name}: files read together must have columns for the same roles; this has "
                f"{', '.join(own.roles)}, {found[0].name} has {', '.join(roles)}. Rename its "
                "columns, or read the files one by one."
            )
        folders.check(one, own)
    return stacked(read, Places(found, read))


def stacked(read: Sequence[Columns], numbers: Sequence[Any]) -> Columns:
    """Return the rows of tables with the same roles, one after the other."""
    roles = read[0].roles
    values: dict[str, list[Any]] = {
        role: [value for own in read for value in own.listed(role)] for role in roles
    }
    named = dict.fromkeys(name for own in read for name in own.content)
    content = {name: [each for own in read for each in _asked(own, name)] for name in named}
    others = tuple(dict.fromkeys(name for own in read for name in own.others))
    return Columns(roles, values, read[0].word, numbers, content, others)


def _asked(table: Columns, name: Any) -> Sequence[int]:
    """Return the digests of a content column, which one of several files may lack."""
    return table.content.get(name) or [UNKNOWN] * len(table.values["question"])


def with_system(source: Source, table: Columns, found: Sequence[Source]) -> Columns:
    """Return the table with a system column: as told, or the name of the file."""
    if "system" in table.roles:
        if source.system is None:
            return table
        raise OutcomeError(
            f"{source.name}: a file must not name systems itself if you name one; it has the "
            f"column {shown(table.roles['system'])}. Give the path alone."
        )
    name = source.path.stem if source.system is None else source.system
    if source.system is None and sum(one.path.stem == name for one in found) > 1:
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

    def __init__(self, found: Sequence[Source], read: Sequence[Columns]) -> None:
        self.found, self.read = found, read
        self.sizes = [len(own.values["question"]) for own in read]

    def __len__(self) -> int:
        return sum(self.sizes)

    def __getitem__(self, row: Any) -> Any:
        for source, own, size in zip(self.found, self.read, self.sizes, strict=True):
            if row < size:
                return f"{own.number(row)} of {source.name}"
            row -= size
        raise IndexError(row)
