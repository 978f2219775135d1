"""Tables in files: CSV, TSV, JSON Lines, JSON arrays and Parquet, long or wide, one or several.

A wide table has a column of questions, and one of outcomes for each system.
"""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import (
    ASKED,
    CONDITIONS,
    RIGHT,
    ROLES,
    Columns,
    Picked,
    beside_unnamed,
    labels,
    meaning,
    one_row_a_trial,
    trial_columns,
    trial_text,
    usual_names,
)
from bayesatk.data.long_form import LongForm
from bayesatk.data.validation import (
    NumberScale,
    OutcomeError,
    Scores,
    number_of,
    shown,
)
from bayesatk.io.json_stream import at
from bayesatk.io.record_tables import (
    columns_and_rows,
    is_number,
    parquet_blocks,
    records_of,
    records_of_parquet,
    says,
    text_blocks,
)
from bayesatk.io.rows import NAMES_OF_COLUMNS, ReadOptions, several_systems, with_doubt
from bayesatk.io.sources import Source

# How tools name the parts, or the repetitions, of what belongs together: part-00000-of-00002.
_PART = re.compile(
    r"(^|[-_. ])(part|shard|chunk|split|batch|slice|run|seed|trial|repeat|epoch|rollouts?|samples?"
    r"|results?|outputs?|outcomes?|data|train|test)?[-_. ]?\d+([-_. ]?of[-_. ]?\d+)?$",
    re.IGNORECASE,
)


def blocks_of(
    source: Source, file: BinaryIO, options: ReadOptions, scores: Scores, whole: bool = True
) -> Generator[Columns]:
    """Yield the columns that matter of some rows after the other; the whole may have to fit."""
    columns = options.named
    if "rate" in columns:
        return _of_rates(source, file, options)
    if options.wide:
        return _wide_blocks(source, file, options, scores)
    return _long_blocks(source, file, columns, options.records, scores, whole)


def _long_blocks(
    source: Source, file: BinaryIO, columns: Mapping[str, Any], records: str | None,
    scores: Scores, whole: bool = True,
) -> Generator[Columns]:  # fmt: skip
    """Yield the columns that matter of some rows of a long table after the other."""
    file.seek(0)
    if source.kind == "parquet":
        return parquet_blocks(source.path, columns, whole)
    return text_blocks(source.kind, file, columns, records, scores)


def _of_rates(source: Source, file: BinaryIO, options: ReadOptions) -> Generator[Columns]:
    """Yield a table of counts for one with a share or percentage of successes by question."""
    column, trials = options.columns["rate"], number_of(options.columns.get("trials"))
    if trials is None or not trials.is_integer() or trials < 1:
        raise OutcomeError(
            "columns must give the number of trials beside a rate, the same for each question; got "
            f"{shown(dict(options.columns))}. As in ",
            Argument("columns", {"rate": column, "trials": 10}), ".",
        )  # fmt: skip
    named = {role: name for role, name in options.columns.items() if role not in ("rate", "trials")}
    columns = {**named, **options.roles, "outcome": column}
    for block in _long_blocks(source, file, columns, options.records, NumberScale()):
        rates = np.array([number_of(value) for value in block.listed("outcome")], float)
        whole = 100.0 if (rates > 1.0).any() else 1.0
        counts = rates / whole * trials
        # Rates are rounded: a fifth of a trial is more than that takes away.
        fit = (counts >= 0.0) & (counts <= trials) & (np.abs(counts - np.round(counts)) <= 0.2)
        if not fit.all():
            row = int(np.argmin(fit))
            raise OutcomeError(
                f"column {column!r} must have shares or percentages of {trials:g} trials; "
                f"{block.place(row)} has {shown(block.value('outcome', row))}. Correct the "
                "number of trials: ", Argument("columns", {"rate": column, "trials": ...}), ".",
            )  # fmt: skip
        kind = "percent" if whole > 1.0 else "share"
        table = block.without("outcome")
        table = table.with_column("trials", f"({trials:g} of each)", [int(trials)] * len(rates))
        yield table.with_column(
            "successes", f"{column} ({kind})", np.round(counts).astype(int).tolist()
        )


def with_system(
    source: Source, table: Columns, sources: Sequence[Source], same_system: str
) -> Columns:
    """Return the table with a system column, as told or the name of the file, and with its file.

    Several systems that its column names become one only where they are said to be the same.
    """
    table = replace(table, ending=f" of {source.name}")
    if "system" in table.roles:
        if source.system is None:
            return table
        column, (codes, names) = table.roles["system"], labels(table, "system")
        if len(names) > 1 and same_system == "error":
            raise several_systems(f"column {shown(column)}", names)
        if len(names) > 1:
            table = of_runs(table, [f"{names[code]} " for code in codes.tolist()])
        table = replace(table, others=(*table.others, column))
    name = source.plain.stem if source.system is None else source.system
    if source.system is None and sum(file.plain.stem == name for file in sources) > 1:
        raise OutcomeError(
            f"files that name their systems must have distinct names; two are called {name!r}. "
            "Name the systems: ", Argument("source", {"a": source.name, "b": ...}, "load"), ".",
        )  # fmt: skip
    column = f"({source.system or 'name of the file'})"
    return table.with_column("system", column, [name] * len(table))


def of_runs(table: Columns, runs: Sequence[str]) -> Columns:
    """Return the table with the run before the label of every trial: trials of runs differ."""
    if "trial" not in table.roles:
        return table
    pairs = zip(runs, table.listed("trial"), strict=True)
    trials = [f"{run}{trial_text(trial)}" for run, trial in pairs]
    return table.with_column("trial", table.roles["trial"], trials)


def _wide_columns(names: list[str], options: ReadOptions) -> tuple[str, list[str]]:
    """Return the column of questions, and those that may be of systems."""
    if len(trial_columns(names)) > 1 and {*map(meaning, names)} & usual_names("system"):
        raise beside_unnamed(names)
    question_column = options.columns.get("question") or _questions(names)
    other_columns = {question_column, options.columns.get("content"), *options.roles.values()}
    systems = [
        column
        for column in names
        if column not in other_columns and meaning(column) not in (*ASKED, *RIGHT)
    ]
    extra_roles = set(options.columns) - {"question", "content", "outcome"}
    if question_column not in names or not systems or extra_roles:
        raise OutcomeError(
            "a wide table must have a column of questions, and one for each system; columns may "
            "name question, content, and the outcome within the object of a system. It has "
            f"{shown(names, 300)}, and columns are "
            f"{shown(dict(options.columns))}. Name the questions: ",
            Argument("columns", {"question": ...}), ".",
        )  # fmt: skip
    return question_column, systems


def _wide_blocks(
    source: Source, file: BinaryIO, options: ReadOptions, scores: Scores
) -> Generator[Columns]:
    """Yield a long table for each system of a wide one."""
    question_column, systems = _wide_columns(_names(source, file), options)
    within = options.columns.get("outcome")  # of the object that a system has
    if within is not None:
        file.seek(0)
        with closing(records_in(source, file, options.records)) as records:
            first: Any = next(records, {})
        systems = [name for name in systems if says(first, f"{name}.{within}")]
    columns = {
        **options.roles,
        "question": question_column,
        "content": options.columns.get("content", question_column),
        "outcome": tuple(name if within is None else f"{name}.{within}" for name in systems),
    }  # fmt: skip
    blocks = list(_long_blocks(source, file, columns, options.records, scores)) if systems else []
    role, unmarked = "trial" if trial_columns(systems) == systems else "system", []
    for position, name in enumerate(systems):
        marks = ([cells[position] for cells in block.values["outcome"]] for block in blocks)
        tables = [
            one_row_a_trial(block.with_column("outcome", name, of_system))
            for block, of_system in zip(blocks, marks, strict=True)
        ]
        if not any(holds_marks(table.values["outcome"], scores) for table in tables):
            unmarked.append(name)
            continue
        for table in tables:
            table = table.with_column(role, NAMES_OF_COLUMNS, [name] * len(table))
            yield replace(table, others=tuple(unmarked))
    if len(unmarked) == len(systems):
        raise OutcomeError(
            f"a wide table must have a column of marks for each system; none of {shown(systems)} "
            "holds any. Name the questions: ", Argument("columns", {"question": ...}),
            ", or say what its marks are worth: ", Argument("scores", {"yes": 1, "no": 0}), ".",
        )  # fmt: skip


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
    with closing(records_of(source.kind, file, None)) as records:  # before the file is closed
        first = next(records, (0, (), None))
    return list(first[1])


def records_in(source: Source, file: BinaryIO, records: str | None) -> Generator[Any]:
    """Yield the rows of a table as objects, whatever they hold."""
    if source.kind == "parquet":
        yield from records_of_parquet(source.path, _names(source, file))
        return
    with closing(records_of(source.kind, file, records)) as rows:
        yield from (record for _, _, record in rows)


def columns_across(records: Iterable[Any], columns: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the unused columns that tell the rows of a question apart, with their values.

    Each value is in half of the questions or more, and each row of a question has another, unless
    the column is called what conditions are. So are names of systems, and numbers of trials, but
    not answers, times or costs.

    Examples
    --------
    >>> rows = [{"id": q, "mode": m, "correct": 1, "text": f"{q}{m}"} for q in "abc" for m in "xy"]
    >>> columns_across(rows, {}), columns_across(rows, {"trial": "mode"})
    ({'mode': ['x', 'y']}, {})
    """
    rows = (row for row in records if isinstance(row, dict))  # a cell may be of any length
    first = next(rows, {})
    names = list(first)
    try:
        picked = Picked.of([*names, *(set(columns.values()) - set(names))], columns)
    except OutcomeError:
        return {}
    cell_columns = [picked.roles[role] for role in ("system", "question") if role in picked.roles]
    unread = list(picked.others) if "trial" not in picked.roles else []
    cells, texts = [], []
    for row in chain([first] if first else [], rows):
        cells.append(repr([at(row, name) for name in cell_columns]))
        texts.append([_short(row.get(name)) for name in unread])
    frame = pd.DataFrame(texts, cells, unread)
    repeated = frame[frame.index.duplicated(keep=False)]
    number, across_by_name = repeated.index.nunique(), {}
    for name in unread if number > 2 else ():
        by_cell = repeated[name].groupby(level=0)
        counts = by_cell.unique().explode().value_counts()
        apart = (by_cell.nunique() == by_cell.size()).all() or meaning(name) in CONDITIONS
        if apart and len(counts) > 1 and counts.min() * 2 >= number:
            across_by_name[name] = repeated[name].unique().tolist()
    return across_by_name


def _short(value: object) -> str:
    return "" if isinstance(value, list | dict) else str(value)[:80]


class Folders:
    """What the tables of a folder, which nobody named one by one, must have in common.

    Their columns have the same names, and the rows of a question of a system stand in one file, or
    are told apart by a trial column: a copy of a table would count every trial twice otherwise.
    """

    def __init__(self) -> None:
        self._first: tuple[Source, dict[str, Any]] | None = None
        self._seen: dict[tuple[Any, Any], Source] = {}

    def check(self, source: Source, table: Columns, same_system: str) -> None:
        """Take a table, or the next part of one, with its system column; refuse a misfit."""
        names = dict(table.roles)
        if names.get("system") == NAMES_OF_COLUMNS:
            del names["outcome"]  # those of outcomes are systems
        first_source, first_names = self._first = self._first or (source, names)
        rule = "files read together must have columns for the same roles"
        fits = set(names) == set(first_names)
        if source.folder and source.folder == first_source.folder:
            rule = "the tables of a folder must have columns of the same names"
            fits = names == first_names
        if not fits:
            raise OutcomeError(
                f"{rule}; {source.name} has {_told(names)}, and {first_source.name} "
                f"{_told(first_names)}. Name the files that are meant, rename columns, or read the "
                "files one by one."
            )
        if not source.folder:
            return
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
    return with_doubt(long, f"{text}; are they of one system? Then name it: ", remedy, ".")


def _named_again(sources: Sequence[Source], disjoint: bool) -> object:
    """Return the folder that was named, or its files, unless they are too many for a message."""
    first, *other_folders = {source.path.parent for source in sources}
    if disjoint and not other_folders and sources[0].folder == first.name:
        return str(first)
    return [str(source.path) for source in sources] if len(sources) <= 5 else ...
