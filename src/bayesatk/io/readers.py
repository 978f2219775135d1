"""From files to trials or counts: which reader reads a file, and what every error says of it.

Large tables are counted part by part: some rows are read and counted, and then the next.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument, File
from bayesatk.data.columns import BY_TRIAL, Columns, one_row_a_trial
from bayesatk.data.long_form import LongForm
from bayesatk.data.tables import Counter
from bayesatk.data.validation import OutcomeError, Scores, shown
from bayesatk.io import parquet_files
from bayesatk.io.logs.formats import LOGS, TABLES, detect, kind_in_folder
from bayesatk.io.rows import CORRECT_INCORRECT, LogOptions, Rows, is_correct_incorrect
from bayesatk.io.sources import Source, find, is_long, open_source, refuse_copies
from bayesatk.io.table_files import Folders, Layout, blocks_of, of_run, stacked, with_system

_LARGE = 1 << 28  # bytes of tables from which on they are counted in parts, unless told otherwise


@dataclass(frozen=True)
class InputFiles:
    """Files to read, what was passed over, and whether bars are shown."""

    sources: list[Source]
    notes: tuple[str, ...]
    bar: bool

    @property
    def kinds(self) -> list[str]:
        """The format of each file."""
        return [source.kind for source in self.sources]

    @property
    def are_logs(self) -> bool:
        """Whether all of them are logs."""
        return all(kind in LOGS for kind in self.kinds)

    def opened(self) -> Iterator[tuple[Source, BinaryIO]]:
        """Yield every file, open."""
        for source in self.sources:
            with open_source(source, self.bar) as file:
                yield source, file


def find_files(
    source: object, format_name: str | None, progress: bool, strict: bool = False
) -> InputFiles:
    """Return the files that are meant."""
    sources, notes = find(source, kind_in_folder, strict)
    bar = progress and is_long(sources)
    sources = [replace(file, kind=named(file, detect, file, format_name, bar)) for file in sources]
    inputs = InputFiles(sources, notes, bar)
    # Files of which a run has several are short, and two may be equal.
    short = {name for name, log in LOGS.items() if log.run_above}
    refuse_copies([file for file in sources if file.kind not in short], inputs.are_logs)
    return inputs


def read_logs(inputs: InputFiles, options: LogOptions, layout: Layout) -> Rows:
    """Read logs, of one format or several."""
    suffix = inputs.sources[0].plain.suffix[1:]
    table = (", or read the file as a table: ", Argument("format", suffix))
    layout.refuse_for(f"logs (read as {inputs.kinds[0]})", *(table if suffix in TABLES else ()))
    refuse_options(options, inputs.kinds)
    rows = Rows(options, dict(layout.of_questions), notes=list(inputs.notes))
    for source, file in inputs.opened():
        named(source, LOGS[source.kind], file, source.plain, source.system, rows)
    return rows


def check_tables(inputs: InputFiles, options: LogOptions) -> None:
    """Refuse logs among tables, and options of logs."""
    refuse_options(options, inputs.kinds)
    for source in inputs.sources:
        if source.kind in LOGS:
            raise OutcomeError(
                f"{source.name}: files must be all logs or all tables; this is {source.kind}, "
                "others are tables. Read them one by one, or convert them."
            )


def read_tables(inputs: InputFiles, layout: Layout, scale: Scores) -> Columns:
    """Read tables into one long table."""
    return stacked([block for _, block in _blocks(inputs, layout, scale, None)])


def _blocks(
    inputs: InputFiles, layout: Layout, scores: Scores, size: int | None
) -> Iterator[tuple[Source, Columns]]:
    """Yield the rows of tables, so many after the other; files without a system are systems."""
    roles: dict[str, None] = {}
    several, folders = len(inputs.sources) > 1, Folders()
    for source, file in inputs.opened():
        with closing(blocks_of(source, file, layout, scores, size)) as blocks:
            while (block := named(source, next, blocks, None)) is not None:
                if not len(block.values["question"]):
                    continue
                if several or source.system is not None:
                    block = with_system(source, block, inputs.sources, layout.same_system)
                roles = roles or dict.fromkeys(block.roles)
                if set(block.roles) != set(roles):
                    raise OutcomeError(
                        f"{source.name}: files read together must have columns for the same roles; "
                        f"this has {', '.join(block.roles)}, {inputs.sources[0].name} has "
                        f"{', '.join(roles)}. Rename its columns, or read the files one by one."
                    )
                block = named(source, one_row_a_trial, block)
                if several and layout.same_system == "trials":
                    block = of_run(source, block)
                if several:
                    folders.check(source, block, layout.same_system)
                yield source, block


def in_parts(inputs: InputFiles, layout: Layout, stream: object) -> bool:
    """Whether files are counted part by part: as told, else if they are large and can be."""
    if stream not in (None, True, False):
        raise OutcomeError(f"stream must be True, False or None; got {shown(stream)}.")
    kinds = ("parquet", "csv", "tsv")
    read_whole = ("answer", "reference", "rate", *BY_TRIAL)
    obstacles = [f"columns={{{role!r}: ...}}" for role in read_whole if role in layout.named]
    obstacles += [f"{name}=" for name, value in layout.options.items() if value]
    if not set(inputs.kinds) <= set(kinds):
        obstacles.append(", ".join(sorted(set(inputs.kinds))))
    if stream and obstacles:
        raise OutcomeError(
            f"stream must be left out for {obstacles[0]}; parts of {', '.join(kinds)} can be "
            "counted where there are outcomes. ", Argument("stream", False), " reads files whole.",
        )  # fmt: skip
    if stream is not None or obstacles:
        return bool(stream)
    return bool(sum(named(source, _size, source) for source in inputs.sources) > _LARGE)


def _size(source: Source) -> int:
    """Return the bytes of a file, or about those of the text of its rows: 32 each."""
    if source.kind == "parquet":
        return 32 * parquet_files.columns_and_rows(source.path)[1]
    packing = 10 if source.plain != source.path else 1  # of text of tables, about
    return packing * source.path.stat().st_size


def count_parts(
    inputs: InputFiles, layout: Layout, scores: Scores | None, default: Scores
) -> tuple[LongForm, Scores]:
    """Return the counts of tables, and the scores by which they were read."""
    counter = Counter(scores or default)
    for source, block in _blocks(inputs, layout, counter.scores, parquet_files.ROWS):
        if scores is None and not counter.judged and is_correct_incorrect(block):
            counter.scores = CORRECT_INCORRECT  # of two categories, like the default
        named(source, counter.add, block)
    return counter.long_form(), counter.scores


def refuse_options(options: LogOptions, kinds: Iterable[str]) -> None:
    """Refuse options of logs that would have no effect."""
    for name in options.given():
        formats = {kind for kind, log in LOGS.items() if log.honoured(name)}
        formats |= set(TABLES) if name == "same_system" else set()
        if formats.isdisjoint(kinds):
            all_logs = set(LOGS) <= formats
            raise OutcomeError(
                f"{name} must be left out for {', '.join(sorted(set(kinds)))}; it is for "
                f"{'logs' if all_logs else ', '.join(sorted(formats))}. Leave it out, or say what "
                "the files are with format=."
            )


def named(source: Source, read: Callable[..., Any], *args: Any) -> Any:
    """Call a reader; an error names the file, and says so where it may not have been meant."""
    not_meant = f" Or, if it is no table of {source.folder}, name those that are meant."
    try:
        return read(*args)
    except UnicodeDecodeError as error:
        raise OutcomeError(
            File(source.name), f"the file must be UTF-8 text; {error}. Save it as UTF-8."
        ) from None
    except OutcomeError as error:
        remark = (not_meant,) if source.folder else ()
        raise OutcomeError(File(source.name), *error.args, *remark) from None


@contextmanager
def in_file(inputs: InputFiles) -> Iterator[None]:
    """Say the name of the file in errors, where there is one and it is not said."""
    try:
        yield
    except OutcomeError as error:
        pieces = list(error.args)
        if not isinstance(pieces[0], File) and len(inputs.sources) == 1:
            pieces.insert(0, File(inputs.sources[0].name))
        # A file is read by `load`, which takes the arguments of `tally` itself.
        raise OutcomeError(
            *(
                replace(piece, function="")
                if isinstance(piece, Argument) and piece.function == "tally"
                else piece
                for piece in pieces
            )
        ) from None
