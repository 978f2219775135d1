"""Which reader reads a file, and what every error says: the file it is about."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bayesatk._tools.messages import Argument, File
from bayesatk.data.columns import Columns
from bayesatk.data.validation import OutcomeError, Scores
from bayesatk.io.logs.formats import LOGS, TABLES, detect, kind_in_folder
from bayesatk.io.rows import LogOptions, Rows
from bayesatk.io.sources import Opener, Source, find, refuse_copies
from bayesatk.io.table_files import Layout, join_tables, read_one_table, read_wide


@dataclass(frozen=True)
class InputFiles:
    """Files to read: the format of each, what opens them, and what was passed over."""

    sources: list[Source]
    kinds: list[str]
    opener: Opener
    notes: tuple[str, ...]

    @property
    def are_logs(self) -> bool:
        """Whether all of them are logs."""
        return all(kind in LOGS for kind in self.kinds)


def find_files(
    source: object, format_name: str | None, progress: bool, strict: bool = False
) -> InputFiles:
    """Return the files that are meant."""
    sources, notes = find(source, kind_in_folder, strict)
    opener = Opener(sources, progress)
    kinds = [named(file, detect, file, opener, format_name) for file in sources]
    # Files of which a run has several are short, and two may be equal.
    short = {name for name, log in LOGS.items() if log.run_above}
    long_files = [file for file, kind in zip(sources, kinds, strict=True) if kind not in short]
    refuse_copies(long_files, all(kind in LOGS for kind in kinds))
    return InputFiles(sources, kinds, opener, notes)


def read_logs(inputs: InputFiles, options: LogOptions, layout: Layout) -> Rows:
    """Read logs, of one format or several."""
    kind = inputs.sources[0].path.suffix[1:]
    table = (", or read the file as a table: ", Argument("format", kind))
    layout.refuse_for(f"logs (read as {inputs.kinds[0]})", *(table if kind in TABLES else ()))
    for name in {"filter", "scorer", "answers", "task", "question_key"} & set(options.given()):
        formats = {kind for kind, log in LOGS.items() if log.honoured(name)}
        if not formats & set(inputs.kinds):
            raise OutcomeError(
                f"{name} must be left out for {', '.join(sorted(set(inputs.kinds)))}; it is for "
                f"{', '.join(sorted(formats))}. Leave it out."
            )
    rows = Rows(options, dict(layout.of_questions), notes=list(inputs.notes))
    for source, kind in zip(inputs.sources, inputs.kinds, strict=True):
        with inputs.opener.open(source) as file:
            named(source, LOGS[kind], file, source.path, source.system, rows)
    return rows


def check_tables(inputs: InputFiles, options: LogOptions) -> None:
    """Refuse logs among tables, and options of logs."""
    refuse_options(options, "tables")
    for source, kind in zip(inputs.sources, inputs.kinds, strict=True):
        if kind in LOGS:
            raise OutcomeError(
                f"{source.name}: files must be all logs or all tables; this is {kind}, others are "
                "tables. Read them one by one, or convert them."
            )


def read_tables(inputs: InputFiles, layout: Layout, scale: Scores) -> Columns:
    """Read tables into one long table."""
    tables = []
    reader = read_wide if layout.wide else read_one_table
    for source, kind in zip(inputs.sources, inputs.kinds, strict=True):
        with inputs.opener.open(source) as file:
            tables.append(_meant(source, reader, kind, file, source.path, layout, scale))
    return join_tables(inputs.sources, tables)


def _meant(source: Source, read: Callable[..., Any], *args: Any) -> Any:
    """Call a reader of tables; an error says so where the file may not have been meant."""
    try:
        return named(source, read, *args)
    except OutcomeError as error:
        if not source.folder:
            raise
        raise OutcomeError(
            *error.args, f" Or, if it is no table of {source.folder}, name those that are meant."
        ) from None


def refuse_options(options: LogOptions, subject: str) -> None:
    """Refuse options of logs, which would have no effect."""
    for name in options.given():
        raise OutcomeError(
            f"{name} must be left out for {subject}; it is for logs. Leave it out, or say what the "
            "files are with format=."
        )


def named(source: Source, read: Callable[..., Any], *args: Any) -> Any:
    """Call a reader; an error names the file."""
    try:
        return read(*args)
    except UnicodeDecodeError as error:
        raise OutcomeError(
            File(source.name), f"the file must be UTF-8 text; {error}. Save it as UTF-8."
        ) from None
    except OutcomeError as error:
        raise OutcomeError(File(source.name), *error.args) from None


def in_file(inputs: InputFiles, error: OutcomeError) -> OutcomeError:
    """Return the error with the name of the file, where there is one and it is not said."""
    # A file is read by `load`, which takes the arguments of `tally` itself.
    pieces = [
        replace(piece, function="")
        if isinstance(piece, Argument) and piece.function == "tally"
        else piece
        for piece in error.args
    ]
    if isinstance(error.args[0], File) or len(inputs.sources) != 1:
        return OutcomeError(*pieces)
    return OutcomeError(File(inputs.sources[0].name), *pieces)
