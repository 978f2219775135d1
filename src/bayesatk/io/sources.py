"""Which files are meant: one, several, a folder, or files by system."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from bayesatk.validation import OutcomeError, shown

_LONG = 40_000_000  # bytes that take seconds to read: worth a progress bar
_POINTER = b"version https://git-lfs"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Source:
    """A file to read, the system it belongs to (if that was said), and its digest."""

    path: Path
    system: str | None
    sha256: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name


def is_source(data: object) -> bool:
    """Whether this names files, rather than holding outcomes."""
    if isinstance(data, Mapping):
        return bool(data) and all(is_source(value) for value in data.values())
    if isinstance(data, Sequence) and not isinstance(data, str):
        return bool(data) and all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)


def find(source: object) -> list[Source]:
    """Return the files that are meant, each once, in order."""
    named: list[tuple[Any, Any]]
    named = list(source.items()) if isinstance(source, Mapping) else [(None, source)]
    found: list[Source] = []
    for system, given in named:
        if system is not None and not isinstance(system, str):
            raise OutcomeError(f"a system must be named by text; got {shown(system)}.")
        paths = [given] if isinstance(given, str | os.PathLike) else list(given)
        for path in paths:
            found += [Source(file, system, _sha256(file)) for file in _files(Path(path))]
    _refuse_copies(found)
    return found


def _files(path: Path) -> list[Path]:
    """Return the file itself, or the logs in a folder and the folders below it."""
    try:
        folder, there = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:
        raise OutcomeError(f"source must be a path; {error}. Check it.") from None
    if not there:
        raise FileNotFoundError(f"{path}: there is no such file.")
    if not folder:
        return [path]
    inside = sorted(file for file in path.rglob("*") if file.is_file())
    logs = [file for file in inside if _is_log(file)]
    if not logs:
        raise OutcomeError(
            f"{path.name}: the folder must hold logs (.eval, Inspect's .json, samples_*.jsonl); it "
            f"holds {len(inside)} other files. Name the tables in it one by one."
        )
    return logs


def _is_log(file: Path) -> bool:
    """Whether a file in a folder is a log: by its name alone, but for Inspect's JSON."""
    if file.suffix == ".eval" or (file.suffix == ".jsonl" and file.name.startswith("samples_")):
        return True
    if file.suffix != ".json" or file.name in ("logs.json", "eval-set.json"):
        return False
    with file.open("rb") as head:
        start = head.read(400)
    return b'"status"' in start and b'"version"' in start


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(len(_POINTER))
        if start == _POINTER:
            raise OutcomeError(
                f"{path.name}: the file must be the log itself; it is a Git LFS pointer to it. "
                "Fetch the file: git lfs pull."
            )
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_copies(found: list[Source]) -> None:
    """Refuse a file that is given twice, under whatever name."""
    seen: dict[str, Source] = {}
    for one in found:
        other = seen.setdefault(one.sha256, one)
        if other is not one:
            raise OutcomeError(
                f"every file must be given once; {other.path} and {one.path} are the same, byte "
                "for byte. Leave one out."
            )


class Opener:
    """Opens files, and shows how far they have been read where that takes seconds."""

    def __init__(self, found: Sequence[Source], shown: bool) -> None:
        self._shown = shown and sum(one.path.stat().st_size for one in found) > _LONG
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip

    @contextmanager
    def open(self, source: Source) -> Iterator[BinaryIO]:
        """Open a file to read bytes."""
        if not self._shown:
            with source.path.open("rb") as plain:
                yield plain
            return
        with (
            self._progress,
            self._progress.open(source.path, "rb", description=f"Reading {source.name}") as file,
        ):
            yield file
