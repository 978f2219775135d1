"""`load`: read outcomes from files of any format; `convert`: write them as one long table.

Files are read by the reader of their format, and errors name the file. Large tables are counted in
blocks of rows.
"""

import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO, Literal, Unpack

from bayesatk._tools.messages import Argument, ArgumentError, File
from bayesatk._tools.writing import replacing, replacing_text
from bayesatk.data.answers import AnswerRules, check_rules
from bayesatk.data.columns import Columns, one_row_a_trial
from bayesatk.data.long_form import LongForm, MissingPolicy
from bayesatk.data.long_tables import Counter
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.requests import Request
from bayesatk.data.roles import BY_TRIAL, COVARIATE
from bayesatk.data.tally import BINARY, Better, check_options, finish, refuse_given, tally
from bayesatk.data.validation import NumberScale, OutcomeError, Scores, shown, word_scores
from bayesatk.io.load_options import LoadOptions, LogOptions
from bayesatk.io.log_rows import (
    ReadOptions,
    Rows,
    note_uneven,
    to_columns,
    to_long,
    usual_scores,
)
from bayesatk.io.logs.formats import LOGS, TABLES, detect, kind_in_folder, sniff
from bayesatk.io.record_tables import columns_and_rows, defused
from bayesatk.io.sources import (
    BUDGET,
    STANDARD_INPUT,
    Source,
    find_sources,
    is_source,
    open_source,
    refuse_copies,
    with_progress,
    within,
)
from bayesatk.io.table_files import (
    FolderTables,
    blocks_of,
    folder_name,
    refuse_parts,
    with_run_labels,
    with_system,
)

_MIN_BYTES_FOR_BLOCKS = 1 << 28  # of tables, to count them in blocks by default


def reads_files[**Given, Found](read: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let a function of files keep to its argument `budget`, and read standard input for ``-``."""

    @wraps(read)
    def wrapped(source: object, *args: Any, **options: Any) -> Found:
        with within(options.get("budget", BUDGET)), _standard_input(source) as files:
            return read(files, *args, **options)  # type: ignore[arg-type]

    return wrapped  # type: ignore[return-value]


@contextmanager
def _standard_input(source: object) -> Iterator[object]:
    """Copy standard input to a temporary file with the right suffix, if the source is ``-``."""
    if not (isinstance(source, str) and source == "-"):
        yield source
        return
    max_bytes = 1 << 34  # 16 GiB on the disk
    with tempfile.TemporaryDirectory() as folder:
        content = sys.stdin.buffer.read(1 << 16)
        path = Path(folder) / f"{STANDARD_INPUT}{sniff(content)}"
        with path.open("wb") as file:
            while content:
                file.write(content)
                if file.tell() > max_bytes:
                    raise OutcomeError(
                        f"standard input must have at most {max_bytes} bytes; it has more. Save "
                        "it to a file, and name the file."
                    )
                content = sys.stdin.buffer.read(1 << 20)
        yield path


@reads_files
def load(
    source: object,
    *,
    columns: Mapping[str, Any] | None = None,
    where: Mapping[str, Any] | None = None,
    ignore: Sequence[str] | None = None,
    records: str | None = None,
    wide: bool = False,
    scores: Mapping[Any, float] | str | tuple[float, float] | None = None,
    success: str | None = None,
    better: Better = "higher",
    missing: MissingPolicy = "error",
    missing_question: Literal["error", "drop"] = "error",
    format: str | None = None,
    answers: bool = False,
    stream: bool | None = None,
    progress: bool | None = None,
    **more: Unpack[LoadOptions],
) -> Outcomes:
    r"""Read outcomes from files, or from anything `bayesatk.tally` accepts.

    Parameters
    ----------
    source : path, sequence of paths, mapping {system: path or paths}, or data
        A long table, one row per trial, with a header or keys: ``.csv``, ``.tsv``, ``.jsonl``,
        ``.ndjson``, ``.json`` (an array of records), ``.parquet``; or one row per question with
        ``n`` trials of which ``c`` succeeded, or with a share or percentage of successes:
        ``columns={"rate": "pass@1", "trials": 10}``. Text may be compressed: ``.csv.gz``,
        ``.jsonl.zst``. Names of columns count as the same however they are written ("Sample ID",
        "sample_id", "sampleId"). Labels are kept as they are written ("007" stays
        text). Or logs: Inspect's ``.eval`` and ``.json``; ``samples_*.jsonl`` of
        lm-evaluation-harness; results of verifiers, Harbor, Terminal-Bench, SWE-bench, tau-bench,
        tau2-bench, Every Eval Ever, promptfoo, lighteval, HELM, OpenAI evals, DeepEval, Phoenix,
        Langfuse, Braintrust, NeMo Gym, LiveCodeBench, MathArena, EvalPlus and HumanEval
        (docs/logs.md). A folder stands for the
        logs in it; for its tables, if it holds no logs, which must have columns of the same names;
        ``"-"`` for standard input. Other objects go to `bayesatk.tally`.
    columns : mapping, optional
        Names of columns by role, as in `bayesatk.tally`. ``"system"``, ``"question"`` and
        ``"trial"`` may be several columns together: ``{"system": ["profile", "harness"]}``. Trials
        side by side are ``{"outcome": "run0,run1"}``; counts ``"trials"``, ``"successes"``,
        ``"failures"`` (two of them), or ``"rate"`` with ``"trials"``, a number or a column. A
        dotted name is a field within a field, ``infos[].r`` the field r of every object in a list.
        In place of a column: ``"(one)"``, if all rows are trials of one question; ``"(folder)"``
        and ``"(file)"``, where a row stands; ``"(key)"``, under which a JSON object has a record.
        Other columns are read as what their names and values say; the data card lists them.
    where : mapping, optional
        Rows to read, by values of columns: ``{"profile": "careful"}``, or a list of values;
        ``{"task": "!TOTAL"}`` are all rows but those of a value.
    ignore : sequence of str, optional
        Columns that are passed over.
    records : str, optional
        Path of the records in a JSON document, if it is not one of the usual names: ``"runs"``, or
        ``"output.runs"``; or within each line of JSON Lines. Lists, and objects by key, on the path
        are gone through: a record has the key and the single values of the objects around it.
    wide : bool
        Whether tables have a column for each system, beside one of questions (the first column,
        unless it is named in `columns` or has a usual name), or columns ``trial_1``, ``trial_2``,
        ... of one system. Columns without marks are left out. Where systems are objects,
        ``columns={"outcome": "is_correct"}`` is a field of theirs; a list, as in ``{"outcome":
        ["a", "b"]}``, names the columns of systems.
    scores, success, better, missing
        As in `bayesatk.tally`. In CSV a blank cell or NaN is a missing outcome; a text is an
        outcome if it is one of `scores`, or exactly one of its numbers, or true/false. In logs, C
        and I are right and wrong; other marks need `scores`. With `success` and no `scores`
        outcomes may be any numbers.
    missing_question : {"error", "drop"}
        What to do with a row without a question: raise, or leave it out; the card counts them.
    format : str, optional
        Format of the files, if it cannot be recognised from their names and first records: "csv",
        "tsv", "jsonl", "json", "parquet", "inspect", "lm-eval", "evalplus", "harbor", ...; the
        error for an unknown format lists all.
    answers : bool
        Whether to keep the answers in Inspect and lm-eval logs, for votes between them.
    stream : bool, optional
        Whether to count CSV and Parquet files in blocks of rows, so that memory grows with the
        number of questions and not of rows. Default: from 256 MB (for Parquet, 8 million rows) on,
        if no answers are read.
    progress : bool, optional
        Whether to show on standard error how many of more than 20 files are read, and the time
        left. Default: where that is a terminal or a notebook.
    group, covariates, weight, cost, cost_unit, missing_cost, truth, answer_rules : optional
        As in `bayesatk.tally`: names of columns, or of fields of the records of logs, by dotted
        paths. Logs also have ``"task"``, which is the group if there are several; the ``"repo"`` of
        SWE-bench; the ``"domain"`` of tau2-bench; of costs, Inspect ``"cost"`` (dollars),
        ``"tokens"``, ``"input_tokens"``, ``"output_tokens"`` and ``"seconds"``, tau2-bench
        ``"cost"`` and ``"seconds"``, Every Eval Ever ``"tokens"`` and ``"seconds"``.
    scorer, filter, task : str, optional
        Of logs with several marks for a trial, the one to read: Inspect's scorer (or
        ``"SCORER/KEY"``), the metric of lm-eval, HELM or lighteval, a reward of verifiers or
        Harbor, EvalPlus's "base" or "plus"; lm-eval's filter or HELM's split; the task, where logs
        are of several.
    question_key : {"id", "content", "unchecked"}
        What identifies a question in logs: its id, where several contents (input and target) of one
        id are an error; id and content together; or the id, without this check.
    same_system : {"error", "trials"}
        What to do with a second log of the same system and question: raise, or count its trials as
        further trials. In tables: whether trials of one number in several files, or of several
        systems in a file that is named as one, are further trials.
    empty_output : {"marked", "missing"}
        What to do with a trial that is marked wrong although the system returned nothing, or its
        sandbox, network or verifier failed: keep the mark, with an `OutcomeWarning`; or count it as
        a missing outcome.
    strict : bool
        Whether to raise if a folder has files that are neither logs nor (where there are no logs)
        tables, or has Git LFS pointers. Otherwise they are skipped, and the data card lists them.
    budget : int
        Limit of the memory for a file, in bytes; 2 GiB by default. One JSON value, line, row, or
        member of an archive may take an eighth of it; all members together may take the budget, or
        100 times the bytes of the archive if that is more.

    Returns
    -------
    Outcomes
        Print it to see what was read, what is missing and why, and what was assumed.

    Raises
    ------
    OutcomeError
        If a file cannot be read; the message names file, place, rule and remedy.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    bayesatk.tally : arrays and tables in memory.
    bayesatk.convert : turns logs into one long table.

    Notes
    -----
    Logs are read in place, one sample at a time: memory grows with the number of trials (about a
    kilobyte for each), not with the size of their transcripts. Nothing in a file is executed or
    unpickled; pipes and devices are refused, and what a file unpacks to is limited by `budget`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("task,trial,passed\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    >>> load(path).successes.values.tolist()
    [[1, 2]]
    """
    arguments = with_typed_options(locals(), LoadOptions)
    if is_source(source):
        return read_outcomes(source, arguments)[0]
    options = ReadOptions.of(arguments, Request.of_arguments(arguments).roles)
    refuse_options(replace(options, columns={}), {"data that are no files"})
    shared = (tally.__kwdefaults__ or {}).keys() & arguments.keys() - {"answers"}
    return tally(source, **{name: arguments[name] for name in shared})


def read_outcomes(source: object, arguments: dict[str, Any]) -> tuple[Outcomes, LongForm, Scores]:
    """Return the outcomes in files, and the trials before missing outcomes were treated.

    Parameters
    ----------
    source : path, sequence of paths, or mapping {system: path or paths}
    arguments : dict
        All arguments of `load`, by name.
    """
    request = Request.of_arguments(arguments)
    request.refuse_given_by_trial()
    scores, success, missing = (arguments[name] for name in ("scores", "success", "missing"))
    scale = check_options(scores, missing, arguments["better"])
    default_scale = BINARY if success is None else NumberScale.beside(BINARY.values())
    rules = check_rules(arguments.get("answer_rules"))
    inputs = find_files(source, ReadOptions.of(arguments, request.roles))
    with in_file(inputs):
        inputs.check()
        if inputs.are_logs:
            if not arguments["answers"]:
                given_rules = arguments.get("answer_rules")
                refuse_given("logs without answers=True", answer_rules=given_rules)
            given_scores = None if scores is None else scale
            long, scale = to_long(read_logs(inputs), given_scores, default_scale, missing, rules)
        else:
            stream = arguments["stream"]
            levels_needed = (
                isinstance(scale, NumberScale) and not stream
            )  # which depend on the numbers of all trials
            in_blocks = count_in_blocks(inputs, stream) and not levels_needed
            first_scale = scale if in_blocks or scores is not None else default_scale
            long, scale = read_tables(
                inputs, first_scale, None if in_blocks else rules, changes=scores is None
            )
            long = replace(long, notes=(*long.notes, *inputs.notes))
        long = request.add_to(long)
        if inputs.are_logs:
            request = request.of_logs()
        else:
            refuse_parts(long, inputs.sources)
        long = note_uneven(long, scale)
        outcomes = finish(long, scale, missing, request, success, arguments["better"])
    sources = tuple((file.name, file.sha256) for file in inputs.sources)
    return replace(outcomes, sources=sources), long, scale


def with_typed_options(arguments: dict[str, Any], options_type: type) -> dict[str, Any]:
    """Return the arguments of a function with its `more` options, or refuse unknown ones."""
    more = arguments.pop("more")
    names = [*arguments, *options_type.__annotations__]
    for name in more.keys() - {*names}:
        nearest = get_close_matches(name, names, 1, 0.7)
        meant = f"Did you mean {nearest[0]}? " if nearest else ""
        raise TypeError(
            f"{name} is no argument of this function. {meant}It has {', '.join(names)}."
        )
    return {**arguments, **more}


@dataclass(frozen=True)
class InputFiles:
    """Files to read, the options, and notes on files that were passed over."""

    sources: list[Source]
    options: ReadOptions
    notes: tuple[str, ...]

    @property
    def kinds(self) -> list[str]:
        """The format of each file."""
        return [source.kind for source in self.sources]

    @property
    def are_logs(self) -> bool:
        """Whether all of them are logs."""
        return all(kind in LOGS for kind in self.kinds)

    def check(self) -> None:
        """Refuse logs among tables, and options that would have no effect."""
        refuse_options(self.options, self.kinds, self.sources[0].plain.suffix[1:])
        for file in self.sources:
            if file.kind in LOGS and not self.are_logs:
                raise OutcomeError(
                    f"{file.name}: files must be all logs or all tables; this is {file.kind}, "
                    "others are tables. Read them one by one, or convert them."
                )

    def opened(self) -> Iterator[tuple[Source, BinaryIO]]:
        """Yield every file, open."""
        for source in with_progress(self.sources, "reading files", self.options.progress):
            with open_source(source) as file:
                yield source, file


def find_files(source: object, options: ReadOptions) -> InputFiles:
    """Return the files that are meant."""
    sources, notes = find_sources(source, kind_in_folder, options.strict, options.progress)
    sources = [
        replace(file, kind=read_named(file, detect, file, options.format)) for file in sources
    ]
    inputs = InputFiles(sources, options, notes)
    # Formats with several files per run have short files, of which two may be equal.
    short = {name for name, log in LOGS.items() if log.run_above}
    refuse_copies([file for file in sources if file.kind not in short], inputs.are_logs)
    return inputs


def read_logs(inputs: InputFiles) -> Rows:
    """Read logs, of one format or several."""
    rows = Rows(inputs.options, dict(inputs.options.roles), notes=list(inputs.notes))
    for source, file in inputs.opened():
        read_named(source, LOGS[source.kind], file, source.plain, source.system, rows)
    return rows


def read_tables(
    inputs: InputFiles, scale: Scores, rules: AnswerRules | None, changes: bool
) -> tuple[LongForm, Scores]:
    """Return the trials of tables, or only their counts without rules, and the scores.

    If `changes`, the scores are those of yes and no, or of C and I of Inspect, where the first
    outcomes are these.
    """
    counter = Counter(scale, rules)
    for source, block in table_blocks(inputs, scale, rules is not None):
        if changes and not counter.judged and isinstance(block.values.get("outcome"), list):
            outcomes = block.values["outcome"]
            counter.scores = word_scores(outcomes) or usual_scores(outcomes, scale)  # of two
        read_named(source, counter.add, block)
    return counter.long_form(), counter.scores


def table_blocks(
    inputs: InputFiles, scores: Scores, whole: bool = True
) -> Iterator[tuple[Source, Columns]]:
    """Yield the rows of tables in blocks; a file without a system column is a system."""
    several, folders = len(inputs.sources) > 1, FolderTables()
    options = inputs.options
    for source, file in inputs.opened():
        folder = folder_name(source, inputs.sources)
        with closing(blocks_of(source, file, options, folder, scores, whole)) as parts:
            while (block := read_named(source, next, parts, None)) is not None:
                if not len(block):
                    continue
                if several or source.system is not None:
                    block = read_named(
                        source, with_system, source, block, inputs.sources, options.same_system
                    )
                block = read_named(source, one_row_a_trial, block)
                if several and options.same_system == "trials":
                    block = with_run_labels(block, [f"{source.path} "] * len(block))
                if several:
                    read_named(source, folders.check, source, block, options.same_system)
                yield source, block


def count_in_blocks(inputs: InputFiles, stream: object) -> bool:
    """Return whether files are counted in blocks: as asked for, else if they are large."""
    if stream not in (None, True, False):
        raise OutcomeError(f"stream must be True, False or None; got {shown(stream)}.")
    kinds = ("parquet", "csv", "tsv")
    read_whole = ("answer", "reference", *BY_TRIAL)
    options = inputs.options
    obstacles = [f"columns={{{role!r}: ...}}" for role in read_whole if role in options.named]
    obstacles += [f"{name}=" for name in options.given().keys() & {"records", "wide"}]
    if not set(inputs.kinds) <= set(kinds):
        obstacles.append(", ".join(sorted(set(inputs.kinds))))
    if stream and obstacles:
        raise OutcomeError(
            f"stream must be left out for {obstacles[0]}; parts of {', '.join(kinds)} can be "
            "counted where there are outcomes. ",
            Argument("stream", False),
            " reads files whole.",
        )
    if stream is not None or obstacles:
        return bool(stream)
    return bool(
        sum(read_named(source, _text_bytes, source) for source in inputs.sources)
        > _MIN_BYTES_FOR_BLOCKS
    )


def _text_bytes(source: Source) -> int:
    """Return the size of a table as text in bytes; about 32 for a row of Parquet."""
    if source.kind == "parquet":
        return 32 * columns_and_rows(source.path)[1]
    packing = 10 if source.plain != source.path else 1  # typical compression ratio of tables
    return packing * source.path.stat().st_size


def refuse_options(options: ReadOptions, kinds: Collection[str], suffix: str = "") -> None:
    """Refuse options that would have no effect on files of these formats."""
    # Formats of tables on which an option has an effect, and their name in messages.
    of_tables = {
        **dict.fromkeys(
            ("columns", "where", "ignore", "missing_question", "wide"), (TABLES, "tables")
        ),
        "same_system": (TABLES, ""),
        "records": (("json", "jsonl"), "JSON"),
    }
    for name, value in options.given().items():
        logs = {kind for kind, log in LOGS.items() if log.honoured(name)}
        tables, words = of_tables.get(name, ((), ""))
        formats = logs.union(tables)
        if not formats.isdisjoint(kinds):
            continue
        subjects = ", ".join(sorted(set(kinds)))
        if not logs and LOGS.keys() >= set(kinds):
            subjects = f"logs (read as {subjects})"
        listed = "logs" if logs == LOGS.keys() else words or ", ".join(sorted(formats))
        rule = f"{name} must be left out for {subjects}; got {shown(value)}, and it is for {listed}"
        if suffix in formats:
            remedy = "Leave it out, or read the file as a table: ", Argument("format", suffix), "."
            raise OutcomeError(f"{rule}. ", *remedy)
        raise OutcomeError(
            f"{rule}. Leave it out, or say what they are: ", Argument("format", ...), "."
        )


def read_named(source: Source, read: Callable[..., Any], *args: Any) -> Any:
    """Call a reader; its errors name the file, and say if it may not belong to the folder."""
    not_meant = f" Or, if it is no table of {source.folder}, name those that are meant."
    try:
        return read(*args)
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else "WINDOWS-1252"
        raise OutcomeError(
            File(source.name),
            f"the file must be UTF-8 text; byte {error.start} is none of it. "
            f"Save it as UTF-8, perhaps by: iconv -f {encoding} -t UTF-8 {quote(source.name)} > "
            f"{quote(f'utf8_{source.name}')}",
        ) from None
    except OutcomeError as error:
        remark = (not_meant,) if source.folder else ()
        raise OutcomeError(File(source.name), *error.args, *remark) from None


@contextmanager
def in_file(inputs: InputFiles) -> Iterator[None]:
    """Name the file in errors that lack it, if there is only one."""
    try:
        yield
    except OutcomeError as error:
        pieces = list(error.args)
        if not isinstance(pieces[0], File) and len(inputs.sources) == 1:
            pieces.insert(0, File(inputs.sources[0].name))
        # Remedies that name arguments of `tally` hold for `load`, which has them too.
        raise OutcomeError(
            *(
                replace(piece, function="")
                if isinstance(piece, Argument) and piece.function == "tally"
                else piece
                for piece in pieces
            )
        ) from None


@reads_files
def convert(
    source: object,
    path: str | Path,
    *,
    columns: Mapping[str, Any] | None = None,
    where: Mapping[str, Any] | None = None,
    ignore: Sequence[str] | None = None,
    records: str | None = None,
    wide: bool = False,
    missing_question: Literal["error", "drop"] = "error",
    format: str | None = None,
    answers: bool = False,
    progress: bool | None = None,
    **more: Unpack[LogOptions],
) -> Path:
    r"""Write logs or tables as one long table with a row per trial.

    Parameters
    ----------
    source : path, sequence of paths, or mapping {system: path or paths}
        As for `bayesatk.load`.
    path : path
        ``.csv``, ``.jsonl`` or ``.parquet``; an existing file is replaced once all is written.
        Columns ``system``, ``question``, ``trial``, ``outcome``; ``answer`` if asked for;
        ``group``, ``weight``, ``cost``, ``truth`` and covariates that are named; ``reason`` why
        an outcome is missing, if some are. In CSV, text that a spreadsheet would run as a formula
        begins with an apostrophe, which `bayesatk.load` takes off.
    columns, where, ignore, records, wide, missing_question, format, answers, progress
        As for `bayesatk.load`.
    **more
        As for `bayesatk.load`: names of columns (group, covariates, weight, cost, truth), and how
        logs are read (scorer, filter, task, question_key, same_system, empty_output, strict,
        budget).

    Returns
    -------
    pathlib.Path

    Raises
    ------
    OutcomeError
        If a file cannot be read, or `path` has another ending or is one of the sources.
    OSError
        If the file cannot be written; what was there is as it was.

    See Also
    --------
    bayesatk.load : reads the files without writing a table.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "runs.csv").write_text("task,attempt,passed\na,1,1\na,2,0\n")
    >>> path = convert(folder / "runs.csv", folder / "runs.jsonl")
    >>> path.read_text().splitlines()[0]
    '{"question": "a", "trial": "1", "outcome": 1}'
    """
    arguments, path = with_typed_options(locals(), LogOptions), Path(path)
    if path.suffix not in (".csv", ".jsonl", ".parquet"):
        raise OutcomeError(f"path must end in .csv, .jsonl, .parquet; got {path.name!r}.")
    request = Request.of_arguments(arguments)
    request.refuse_given_by_trial()
    inputs = find_files(source, ReadOptions.of(arguments, request.roles))
    if any(path.exists() and os.path.samefile(file.path, path) for file in inputs.sources):
        raise ArgumentError(
            "path",
            f" must not be that of a file to read; {path.name} is one. Name another, and rename it "
            "afterwards.",
        )
    _write(path, columns_by_trial(inputs))
    return path


def columns_by_trial(inputs: InputFiles) -> dict[str, list[Any]]:
    """Return the trials in files as columns with one entry per trial."""
    reasons = []
    with in_file(inputs):
        inputs.check()
        if inputs.are_logs:
            rows = read_logs(inputs)
            tables = [to_columns(rows)]
            reasons = [trial.reason for trial in rows.trials]
        else:
            tables = [table for _, table in table_blocks(inputs, BINARY)]
    if not tables:
        raise OutcomeError("a table of outcomes must have rows; got none. Was it written?")
    columns = {
        role.removeprefix(COVARIATE): [cell for table in tables for cell in table.listed(role)]
        for role in tables[0].roles
    }
    return columns | ({"reason": reasons} if any(reasons) else {})


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    if path.suffix == ".parquet":
        _write_parquet(path, columns)
        return
    rows = zip(*columns.values(), strict=True)
    with replacing_text(path) as file:
        if path.suffix == ".csv":
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(map(defused, row) for row in rows)
        else:
            file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def _write_parquet(path: Path, columns: dict[str, list[Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise OutcomeError(
            "writing Parquet needs pyarrow. Install it: pip install 'bayesatk[parquet]'. Or write "
            "CSV."
        ) from None
    try:
        with replacing(path) as file:
            parquet.write_table(pyarrow.table(columns), file)
    except pyarrow.ArrowException as error:
        raise OutcomeError(
            f"the columns must each be of one kind for Parquet; {error}. Write .jsonl."
        ) from None
