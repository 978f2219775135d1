"""Find the files of a source, and open them within a budget of memory.

`bayesatk.load` and `convert` set the budget; all functions that open or decompress a file keep
to it.
"""

import hashlib
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from gzip import GzipFile
from io import BufferedReader, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk._tools.progress import track
from bayesatk.data.validation import OutcomeError, shown

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

_MIN_FILES_FOR_PROGRESS = 20
_GIT_LFS_PREFIX = b"version https://git-lfs"
SUMMARY = "summary"  # kind of a file that only summarises other files of its folder
TABLE = "table"  # kind of a file that is no log
STANDARD_INPUT = "stdin"  # name of its temporary copy
LINES = (".jsonl", ".ndjson")
SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".parquet": "parquet", ".eval": "inspect",
    **dict.fromkeys(LINES, "jsonl"),
}  # fmt: skip


COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class Source:
    """A file to read.

    Parameters
    ----------
    path : pathlib.Path
    system : str or None
        Name of its system, if the caller named it.
    sha256 : str
    folder : str
        Name of the folder of tables that it was found in, if a folder was named.
    kind : str
        Its format.
    """

    path: Path
    system: str | None
    sha256: str
    folder: str = ""
    kind: str = ""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def lines(self) -> str:
        """The path, if the rows of the table are lines of a file that stays."""
        stays = self.path.stem != STANDARD_INPUT and self.plain == self.path
        return str(self.path) if stays and self.kind in ("csv", "tsv", "jsonl") else ""

    @property
    def plain(self) -> Path:
        """The path without the suffix of a compressed file."""
        return plain(self.path)


def plain(path: Path) -> Path:
    """Return a path without the suffix of a compressed file.

    Examples
    --------
    >>> plain(Path("runs.csv.gz")).name, plain(Path("runs.csv")).name
    ('runs.csv', 'runs.csv')
    """
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def is_source(data: object) -> bool:
    """Return whether this names files, rather than holding outcomes."""
    if isinstance(data, Mapping):
        return bool(data) and all(is_source(value) for value in data.values())
    if isinstance(data, Sequence) and not isinstance(data, str):
        return bool(data) and all(isinstance(path, str | os.PathLike) for path in data)
    return isinstance(data, str | os.PathLike)


def named_paths(source: Any, system: Any = None) -> list[tuple[Any, Any]]:
    """Return pairs of system and path for the files and folders of a source."""
    if isinstance(source, Mapping):
        return [pair for name, paths in source.items() for pair in named_paths(paths, name)]
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    return [(system, path) for path in paths]


def find_sources(
    source: object, kind_of: Callable[[Path, Path], str], strict: bool, progress: bool | None
) -> tuple[list[Source], tuple[str, ...]]:
    """Return the files of a source in order, and notes on files that are passed over.

    Parameters
    ----------
    source : path, sequence of paths, or mapping {system: path or paths}
    kind_of : callable
        Returns the format of a file in a named folder: that of a log, `TABLE`, `SUMMARY` or "".
    strict : bool
        Whether to refuse files that would be passed over.
    progress : bool, optional
    """
    sources = []
    notes = []
    for system, raw_path in named_paths(source):
        if not isinstance(system, str | None):
            raise OutcomeError(f"a system must be named by text; got {shown(system)}.")
        path = Path(raw_path)
        try:
            if not os.fspath(raw_path):  # Path("") is the folder that one is in
                raise FileNotFoundError("'': there is no file without a name.")
            files, passed_over, folder = _files_meant(path, kind_of, progress)
            sources += [Source(file, system, _sha256(file), folder) for file in files]
        except (FileNotFoundError, OutcomeError):
            raise
        except (OSError, ValueError) as error:
            raise OutcomeError(
                f"{shown(str(path))}: source must be a path that can be read; {error}. Check it."
            ) from None
        if passed_over and strict:
            raise OutcomeError(
                f"{path.name}: every file in the folder must be read; these are not: "
                f"{', '.join(passed_over)}. Take them out, or leave out ",
                Argument("strict", True),
                ".",
            )
        if passed_over:
            notes.append(f"passed over in {path.name}: {', '.join(passed_over)}")
    return sources, tuple(notes)


def _files_meant(
    path: Path, kind_of: Callable[[Path, Path], str], progress: bool | None
) -> tuple[list[Path], list[str], str]:
    """Return the files to read, descriptions of files passed over, and the folder of tables.

    Of a folder and the folders below it, these are the logs or, if there are none, the tables; then
    the third value is the name of the folder, and otherwise "".
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if not path.is_dir():
        return [path], [], ""
    # Files of a zarr store are passed over.
    names = {file: file.relative_to(path).parts for file in sorted(path.rglob("*"))}
    inside = [
        file
        for file, parts in names.items()
        if not file.is_dir() and not any(name.endswith(".zarr") for name in parts[:-1])
    ]
    data = list(filter(_is_data, inside))
    kinds = {
        file: kind_of(file, path) for file in with_progress(data, "looking at files", progress)
    }
    logs = [file for file, kind in kinds.items() if kind not in ("", SUMMARY, TABLE)]
    pointers = [file for file, kind in kinds.items() if not kind and is_pointer(file)]
    # Hidden files are copies that editors make.
    tables = [
        file
        for file, kind in kinds.items()
        if kind == TABLE and not any(name.startswith(".") for name in names[file])
    ]
    if not logs and (not tables or SUMMARY in kinds.values()):
        raise OutcomeError(
            f"{path.name}: the folder must have logs, or tables alone; it holds {len(inside)} "
            "other files"
            + f", {len(pointers)} of them Git LFS pointers (git lfs pull)" * bool(pointers)
            + ". Name the tables in it one by one."
        )
    read = logs or tables  # beside tables, any other file may have been meant
    not_read = [
        file.name + " (a Git LFS pointer: git lfs pull)" * (file in pointers)
        for file in (kinds if logs else inside)
        if file not in read and kinds.get(file) != SUMMARY
    ]
    more = [f"and {len(not_read) - 5} more"] if len(not_read) > 5 else []
    return read, not_read[:5] + more, "" if logs else path.name


def _is_data(file: Path) -> bool:
    """Return whether a file may hold trials: it has a known suffix and is no companion of logs.

    Companions are files that tools write beside their logs: indexes of Inspect, settings and
    summaries of Terminal-Bench, Harbor, verifiers and HELM.
    """
    companions = (
        "logs.json",
        "eval-set.json",
        "config.json",
        "lock.json",
        "metadata.json",
        "run_metadata.json",
        "run_spec.json",
        "scenario.json",
        "scenario_state.json",
        "instances.json",
        "stats.json",
        "display_predictions.json",
        "display_requests.json",
        "reward.json",
        "ctrf.json",
        "trajectory.json",
        "manifest.json",
        "download_manifest.json",
    )
    is_companion = file.name in companions or file.name.startswith("results_")
    return plain(file).suffix in SUFFIXES and not is_companion


def is_pointer(file: Path) -> bool:
    """Return whether the file is a pointer of Git LFS in place of its content."""
    with open_regular_file(file) as head:
        return head.read(len(_GIT_LFS_PREFIX)) == _GIT_LFS_PREFIX


def _sha256(path: Path) -> str:
    if is_pointer(path):
        raise OutcomeError(
            f"{path.name}: the file must be the log itself; it is a Git LFS pointer to it. "
            "Fetch the file: git lfs pull."
        )
    with open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_copies(sources: Sequence[Source], kinds_are_logs: bool) -> None:
    """Refuse two files with the same content.

    Only short tables of two named systems may be equal byte for byte.
    """
    seen: dict[str, Source] = {}
    for source in sources:
        first_source = seen.setdefault(source.sha256, source)
        systems = {source.system, first_source.system}
        two_systems = len(systems) > 1 and None not in systems
        if first_source is not source and (kinds_are_logs or not two_systems):
            raise OutcomeError(
                f"every file must be given once; {first_source.path} and {source.path} are the "
                "same, byte for byte. Leave one out."
            )


def with_progress[File](
    files: Sequence[File], description: str, progress: bool | None
) -> Iterable[File]:
    """Yield files, with a progress bar if there are many."""
    many = len(files) > _MIN_FILES_FOR_PROGRESS
    return track(files, description, progress=progress) if many else files


@contextmanager
def open_source(source: Source) -> Iterator[BinaryIO]:
    """Open a file as decompressed bytes."""
    with open_regular_file(source.path) as packed:
        yield decompressed(packed, source.path)


BUDGET = 1 << 31  # bytes, by default: 2 GiB

_budget: ContextVar[int] = ContextVar("bayesatk_budget", default=BUDGET)


@contextmanager
def within(budget: object) -> Iterator[None]:
    """Set the budget, in bytes, for the block."""
    min_budget = 1 << 20
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < min_budget:
        raise OutcomeError(
            f"budget must be a whole number of bytes, {min_budget} or more; got {shown(budget)}. "
            f"The default is {BUDGET}."
        )
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def budget_in_use() -> int:
    """Return the budget that is set, in bytes."""
    return _budget.get()


def max_value_size() -> int:
    """Return the largest size of a value, line or row in characters, and of a member in bytes."""
    return budget_in_use() // 8


def max_unpacked_bytes(packed: int) -> int:
    """Return how many bytes a compressed file of so many bytes may unpack to in all."""
    unpacking_limit = 100  # times the packed bytes; transcripts are packed about 20:1
    return max(budget_in_use(), unpacking_limit * packed)


def too_large(
    subject: str, limit: int, unit: str = "characters", got: int | None = None
) -> OutcomeError:
    """Return the error for a subject that exceeds its share of the budget."""
    more = Argument("budget", 4 * budget_in_use())
    return OutcomeError(
        f"{subject} must have at most {limit} {unit}; it has {'more' if got is None else got}. Is "
        "it damaged, or made to fill the memory? If it is what you want to read, allow more: ",
        more,
        ".",
    )


def check_objects(text: str | bytes, subject: str) -> None:
    """Refuse JSON text whose values would take more memory than the budget.

    A list of empty lists takes twenty times the memory of its text.
    """
    comma, bracket, brace = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    objects = text.count(comma) + text.count(bracket)  # type: ignore[arg-type]
    # An empty list or a number takes 64 bytes with its reference, a dict with one key 192.
    size = len(text) + 64 * objects + 192 * text.count(brace)  # type: ignore[arg-type]
    if size > budget_in_use():
        raise too_large(subject, budget_in_use(), "bytes when it is read", size)


def open_regular_file(path: Path) -> BufferedReader:
    """Open a regular file to read; refuse pipes and devices, which may have no end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise OutcomeError(
        f"source must be a file; {shown(str(path))} is a pipe or device. Copy what it gives into a "
        "file first."
    )


class _Decompressed(RawIOBase):
    """The decompressed content of a file, up to a number of bytes."""

    def __init__(self, file: Any, max_bytes: int) -> None:
        self._file, self._max_bytes = file, max_bytes

    def readinto(self, buffer: Any, /) -> int:
        """Decompress the next bytes, or refuse a damaged or too large file."""
        view = memoryview(buffer).cast("B")
        try:
            content = self._file.read(min(len(view), 1 << 16))
        except (OSError, EOFError, zlib.error, ZstdError) as error:
            raise OutcomeError(
                f"the file must be whole, as its ending says compressed; {error}. It is truncated "
                "or damaged: copy or write it again."
            ) from None
        if self._file.tell() > self._max_bytes:
            raise too_large("the file, unpacked,", self._max_bytes, "bytes")
        view[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position of the decompressed content."""
        return int(self._file.seek(offset, whence))

    def readable(self) -> bool:
        """Return True."""
        return True

    seekable = readable


def decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a file with the decompressed content of another.

    A file is decompressed only if both its suffix and its first bytes are those of a compressed
    file: browsers decompress downloads and keep the name.
    """
    kinds: dict[str, tuple[bytes, Any]] = {
        ".gz": (b"\x1f\x8b", lambda packed: GzipFile(fileobj=packed)),
        ".zst": (b"\x28\xb5\x2f\xfd", ZstdFile),
    }
    first, unpack = kinds.get(path.suffix.lower(), (b"", None))
    compressed = unpack is not None and file.read(len(first)) == first
    if unpack is not None:
        file.seek(0)
    if not compressed:
        return file
    return BufferedReader(
        _Decompressed(unpack(file), max_unpacked_bytes(path.stat().st_size)), 1 << 16
    )


class BoundedText(TextIOWrapper):
    """Text whose lines must fit into the budget."""

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        limit = max_value_size()
        while line := self.readline(limit + 1):
            if len(line) > limit:
                raise too_large("a line", limit)
            yield line
