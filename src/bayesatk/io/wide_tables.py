"""Wide tables: a column of questions, and one of outcomes for each system."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import ROLES, Columns
from bayesatk.data.content import ASKED, RIGHT
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io.folders import WIDE
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.long_tables import Layout, read_one_table, stacked
from bayesatk.io.parquet_files import open_parquet, readable


def read_wide(kind: str, file: BinaryIO, path: Path, layout: Layout, scores: Scores) -> Columns:
    """Read a wide table, one system at a time."""
    names = _names(kind, file, path)
    asked = layout.columns.get("question") or _questions(names)
    others = {asked, layout.columns.get("content"), *layout.of_questions.values()}
    systems = [one for one in names if one not in others and one.lower() not in (*ASKED, *RIGHT)]
    told = set(layout.columns) - {"question", "content"}
    if asked not in names or not systems or told:
        raise OutcomeError(
            "a wide table must have a column of questions, and one for each system; columns may "
            f"name question and content alone. It has {shown(names, 300)}, and columns are "
            f"{shown(dict(layout.columns))}. Name the questions: ",
            Argument("columns", {"question": ...}), ".",
        )  # fmt: skip
    read = []
    for name in systems:
        file.seek(0)
        content = layout.columns.get("content", asked)
        columns = {"question": asked, "outcome": name, "content": content}
        table = read_one_table(kind, file, path, replace(layout, columns=columns), scores)
        read.append(
            replace(
                table,
                roles={"system": WIDE, **table.roles},
                values={"system": [name] * len(table.values["question"]), **table.values},
                others=(),
            )
        )
    return stacked(
        read, [own.number(row) for own in read for row in range(len(own.values["system"]))]
    )


def _questions(names: list[str]) -> str:
    """Return the column of questions: the only one with a usual name, else the first."""
    usual = [one for one in names if one.lower() in ROLES["question"] and one.lower() not in ASKED]
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
            first = next((part for _, _, part in members(text)), {})
        else:
            line = next((line for line in text if line.strip()), "{}")
            first = parse(line, "line 1")
    return list(first) if isinstance(first, dict) else []
