"""Tables in one or several files, long or wide: CSV, TSV, JSON Lines, JSON and Parquet.

A long table has a row for each trial, a wide table a column of outcomes for each system.
"""

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import SYSTEMS, Columns, labels, trial_text
from bayesatk.data.long_form import LongForm
from bayesatk.data.roles import (
    FILE,
    FOLDER,
    PROMPT_NAMES,
    REFERENCE_NAMES,
    Sample,
    columns_named,
    normalized_name,
    systems_of_trials,
    trial_columns,
    usual_columns,
    usual_names,
)
from bayesatk.data.validation import (
    OutcomeError,
    Scores,
    share_of,
    shown,
    word_scores,
)
from bayesatk.io.log_rows import ReadOptions, several_systems
from bayesatk.io.record_tables import (
    parquet_blocks,
    parse_marks,
    read_records,
    sample_of_parquet,
    text_blocks,
)
from bayesatk.io.sources import Source

# Names of files that are parts or repetitions of one table, such as part-00000-of-00002, gpt_seed1.
_PART_NAME = re.compile(
    r"(?:(.*?)[-_. ]+)??(?:part|shard|chunk|split|batch|slice|run|seed|trial|repeat|epoch|rollouts?"
    r"|samples?|results?|outputs?|outcomes?|data|train|test)[-_. ]?\d+([-_. ]?of[-_. ]?\d+)?",
    re.IGNORECASE,
)


def blocks_of(
    source: Source,
    file: BinaryIO,
    options: ReadOptions,
    folder: str,
    scores: Scores,
    whole: bool = True,
) -> Generator[Columns]:
    """Yield the columns with a role in blocks of rows.

    If `whole`, the caller keeps all blocks, which must then fit into the budget together.
    """
    sample = sample_of(source, file, options)
    if not sample.names:
        raise OutcomeError("a table of outcomes must have rows; got none. Was it written?")
    rows: dict[str, Any] = {"constants": {FOLDER: folder, FILE: source.plain.stem}}
    columns = options.named
    if options.wide and "rate" not in options.columns:
        columns, rows["systems"] = _wide(sample, options, scores)
    picked = options.picked(sample, columns, **rows)
    file.seek(0)
    blocks = (
        parquet_blocks(source.path, picked, whole)
        if source.kind == "parquet"
        else text_blocks(
            source.kind, file, picked, options.records, [*sample.names, *options.ignore]
        )
    )
    yield from (parse_marks(block, scores) for block in blocks)


def sample_of(source: Source, file: BinaryIO, options: ReadOptions) -> Sample:
    """Return the first rows of a table."""
    file.seek(0)
    if source.kind == "parquet":
        return sample_of_parquet(source.path, options.sample)
    max_bytes = 1 << 26  # of long records
    with closing(read_records(source.kind, file, options.records)) as rows:
        records = (record for _, _, record in rows)
        sample = options.sample(records, more=lambda: file.tell() < max_bytes)
    return replace(sample, path=source.lines)


def _wide(
    sample: Sample, options: ReadOptions, scores: Scores
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return columns by role, and the names of the systems, of a wide table."""
    named = options.columns
    usual_questions = [
        name
        for name in usual_columns("question", sample.names)
        if normalized_name(name) not in PROMPT_NAMES
    ]
    question = (
        named.get("question")
        or (usual_questions if len(usual_questions) == 1 else [*sample.names, ""])[0]
    )
    taken = {question, named.get("content"), *options.roles.values()}
    outcome_columns = columns_named(named.get("outcome"), sample.names)
    systems, field = list(outcome_columns), ""
    if len(outcome_columns) < 2:
        field = f".{named['outcome']}" if "outcome" in named else ""  # of the object of a system
        not_systems = {*PROMPT_NAMES, *REFERENCE_NAMES, *usual_names("trial")}
        systems = [
            name
            for name in sample.names
            if name not in taken and normalized_name(name) not in not_systems
        ]
    marked = [
        name
        for name in systems
        if sample.distinct(f"{name}{field}")
        and (field or _holds_marks(sample.distinct(name), scores))
    ]
    unusual = set(named) - {"question", "content", "outcome", "system"}
    if question not in sample.names or not marked or unusual:
        raise OutcomeError(
            "a wide table must have a column of questions, and one of marks for each system; "
            f"columns may name question, content, and the outcome within the object of a system. "
            f"It has {shown(sample.names, 300)}, of which none of {shown(systems, 300)} holds any "
            f"marks, and columns are {shown(dict(named))}. Name the questions: ",
            Argument("columns", {"question": ...}),
            ", or say what its marks are worth: ",
            Argument("scores", {"yes": 1, "no": 0}),
            ".",
        )
    columns = {
        "content": question,
        **options.named,
        "question": question,
        "outcome": [f"{name}{field}" for name in marked],
    }
    are_trials = trial_columns(marked) == marked or systems_of_trials(marked)
    return columns, () if are_trials else tuple(marked)


def _holds_marks(texts: Sequence[str], scores: Scores) -> bool:
    """Return whether a column holds marks: numbers, lists, words for marks, or scored outcomes.

    Examples
    --------
    >>> [_holds_marks(column, {0: 0.0, 1: 1.0}) for column in (["0"], ["[1, 0]"], ["Paris"])]
    [True, True, False]
    """
    marks = {"true", "false", *(str(label).lower() for label in scores)}
    return (
        {*texts} <= {"C", "I"}
        or bool(word_scores(texts))
        or any(
            text[0] == "[" or text.strip().lower() in marks or share_of(text) is not None
            for text in texts
        )
    )


def folder_name(source: Source, sources: Sequence[Source]) -> str:
    """Return the folder of a file, relative to the common folder of all files if it is below it."""
    parents = [file.path.resolve().parent for file in sources]
    parent = source.path.resolve().parent
    within = os.path.relpath(parent, os.path.commonpath(parents))
    return parent.name if within == "." else within


def with_system(
    source: Source, table: Columns, sources: Sequence[Source], same_system: str
) -> Columns:
    """Return the table with a system column: as named, else its own, else the name of the file.

    Messages about its rows then name the file. Several systems in its own column become the named
    one only with ``same_system="trials"``.
    """
    name = source.plain.stem if source.system is None else source.system
    of_same_name = [file for file in sources if file.name == source.name]
    folder = f"{folder_name(source, sources)}/" * (len(of_same_name) > 1)
    place = table.place
    table = replace(table, place=lambda row: f"{place(row)} of {folder}{source.name}")
    if "system" in table.roles:
        if source.system is None:
            return table
        column, (codes, names) = table.roles["system"], labels(table, "system")
        if len(names) > 1 and same_system == "error":
            raise several_systems(f"column {shown(column)}", names)
        if len(names) > 1:
            table = with_run_labels(table, [f"{names[code]} " for code in codes.tolist()])
        table = replace(table, unused=(*table.unused, column))
    if source.system is None and sum(file.plain.stem == name for file in sources) > 1:
        question = [FOLDER, table.roles["question"]]
        common_folder: object = ...
        if len(of_same_name) == len(sources):
            common_folder = str(source.path.resolve().parent.parent)
        is_run = all(_PART_NAME.fullmatch(file.plain.stem) for file in sources)
        runs = [Argument("same_system", "trials")] * is_run
        raise OutcomeError(
            f"files that name their systems must have distinct names; two are called {name!r}. If "
            f"each folder is a system{' and each file a run' * is_run}: ",
            Argument("columns", {"system": FOLDER}),
            *runs,
            "; if each is a suite of questions of one system: ",
            Argument("source", {"NAME": common_folder}, "load"),
            " with ",
            Argument("columns", {"question": question}),
            ".",
        )
    column = f"({source.system or 'name of the file'})"
    return table.with_column("system", column, [name] * len(table))


def with_run_labels(table: Columns, runs: Sequence[str]) -> Columns:
    """Return the table with the run before the label of every trial, so that runs do not clash."""
    if "trial" not in table.roles:
        return table
    pairs = zip(runs, table.listed("trial"), strict=True)
    trials = [f"{run}{trial_text(trial)}" for run, trial in pairs]
    return table.with_column("trial", table.roles["trial"], trials)


class FolderTables:
    """Checks across the tables of a folder.

    Their columns must have the same names, and a question of a system must be in one file, or have
    numbered trials; otherwise a copy of a table would count every trial twice.
    """

    def __init__(self) -> None:
        self._first: tuple[Source, dict[str, Any]] | None = None
        self._seen: dict[tuple[Any, Any], Source] = {}

    def check(self, source: Source, table: Columns, same_system: str) -> None:
        """Add a table or the next part of one, or refuse it."""
        names = dict(table.roles)
        if names.get("system") == SYSTEMS:
            del names["outcome"]  # whose names are those of systems
        first_source, first_names = self._first = self._first or (source, names)
        rule = "files read together must have columns for the same roles"
        fits = set(names) == set(first_names)
        if source.folder and source.folder == first_source.folder:
            rule = "the tables of a folder must have columns of the same names"
            fits = names == first_names
        if not fits:
            raise OutcomeError(
                f"{rule}; {source.name} has {_listed_roles(names)}, and {first_source.name} "
                f"{_listed_roles(first_names)}. Name the files that are meant, rename columns, or "
                "read the files one by one."
            )
        if not source.folder:
            return
        if "trial" in table.roles or same_system == "trials":
            return  # repeated trials are refused later
        for system, question in _pairs(table):
            earlier_source = self._seen.setdefault((system, question), source)
            if earlier_source is not source:
                raise OutcomeError(
                    "the tables of a folder must have the rows of a question of a system in one "
                    f"file, or number its trials in a column; question {shown(question)} of system "
                    f"{shown(system)} is in {earlier_source.name} and {source.name}. Take out a "
                    "file that repeats another; or, if their rows are further trials: ",
                    Argument("same_system", "trials"),
                    ".",
                )


def _listed_roles(names: Mapping[str, Any]) -> str:
    return ", ".join(f"{role} = {shown(name)}" for role, name in names.items())


def _pairs(table: Columns) -> list[tuple[Any, Any]]:
    """Return the distinct pairs of system and question."""
    (system, systems), (question, questions) = labels(table, "system"), labels(table, "question")
    pairs = np.unique(np.stack([system, question]), axis=1).T.tolist()
    return [(systems[i], questions[j]) for i, j in pairs]


def refuse_parts(long: LongForm, sources: Sequence[Source]) -> None:
    """Refuse files as systems if their names are those of parts or repetitions of systems."""
    names = [source.plain.stem for source in sources]
    parts = [_PART_NAME.fullmatch(name) for name in names]
    named = {source.system for source in sources} != {None} or list(long.systems) != names
    if len(names) < 2 or named or None in parts:
        return
    folder = sources[0].path.resolve().parent.name
    files: dict[str, Any] = {}
    for part, source in zip(parts, sources, strict=True):
        system = (part and part[1]) or folder
        files.setdefault(system, []).append(os.path.relpath(source.path))
    numbered = (" with ", Argument("same_system", "trials")) if long.trial_labels else ()
    raise OutcomeError(
        "files without a column of systems must be called as their systems; "
        f"{shown(names, 100)[1:-1]} are called as parts or runs. If they are of {len(files)} "
        f"system{'s' * (len(files) > 1)}: ",
        Argument("source", files, "load"),
        *numbered,
        "; if each is a system, name it: ",
        Argument("source", {"NAME": "FILE"}, "load"),
        ".",
    )
