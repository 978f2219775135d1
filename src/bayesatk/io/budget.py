"""How much memory a file may ask for while it is read, whatever it says of itself.

`bayesatk.load` and `convert` set the budget; whatever opens or unpacks a source keeps to it here.
"""

import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from gzip import GzipFile
from io import BufferedReader, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.validation import OutcomeError, shown

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

BUDGET = 1 << 31  # bytes, by default: 2 GiB

_set: ContextVar[int] = ContextVar("bayesatk_budget", default=BUDGET)


@contextmanager
def within(budget: object) -> Iterator[None]:
    """Read with this budget, in bytes."""
    least = 1 << 20  # bytes that anybody has
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < least:
        raise OutcomeError(
            f"budget must be a whole number of bytes, {least} or more; got {shown(budget)}. The "
            f"default is {BUDGET}."
        )
    token = _set.set(budget)
    try:
        yield
    finally:
        _set.reset(token)


def total() -> int:
    """Return the budget of what is being read, in bytes."""
    return _set.get()


def largest() -> int:
    """Return the characters of one value, line or row, and the bytes of a member."""
    return total() // 8


def unpacked(packed: int) -> int:
    """Return the bytes that all of a file with so many may become, one part after the other."""
    unpacking_limit = 100  # bytes that a packed byte may become: transcripts pack about 20:1
    return max(total(), unpacking_limit * packed)


def too_large(
    subject: str, limit: int, unit: str = "characters", got: int | None = None
) -> OutcomeError:
    """Return the error for what exceeds its part of the budget."""
    more = Argument("budget", 4 * total())
    return OutcomeError(
        f"{subject} must have at most {limit} {unit}; it has {'more' if got is None else got}. Is "
        "it damaged, or made to fill the memory? If it is what you want to read, allow more: ",
        more, ".",
    )  # fmt: skip


def check_objects(text: str | bytes, subject: str) -> None:
    """Refuse JSON text whose values would take more memory than the budget.

    A list of empty lists takes twenty times the memory of its text; a transcript, as much as it.
    """
    comma, bracket, brace = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    objects = text.count(comma) + text.count(bracket)  # type: ignore[arg-type]
    # 64 bytes of an empty list or a number with what refers to it; 192 of a dict with one key.
    size = len(text) + 64 * objects + 192 * text.count(brace)  # type: ignore[arg-type]
    if size > total():
        raise too_large(subject, total(), "bytes when it is read", size)


def opened(path: Path) -> BufferedReader:
    """Open a file to read; a pipe or device, which may have no end, is refused at once."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise OutcomeError(
        f"source must be a file; {shown(str(path))} is a pipe or device. Copy what it gives into a "
        "file first."
    )


class _Unpacked(RawIOBase):
    """What a compressed file holds, as far as the budget allows."""

    def __init__(self, file: Any, most: int) -> None:
        self._file, self._most = file, most

    def readinto(self, buffer: Any, /) -> int:
        """Unpack the next bytes, or refuse."""
        view = memoryview(buffer).cast("B")
        try:
            content = self._file.read(min(len(view), 1 << 16))
        except (OSError, EOFError, zlib.error, ZstdError) as error:
            raise OutcomeError(
                f"the file must be whole, as its ending says compressed; {error}. It is truncated "
                "or damaged: copy or write it again."
            ) from None
        if self._file.tell() > self._most:
            raise too_large("the file, unpacked,", self._most, "bytes")
        view[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to another place, of what is unpacked."""
        return int(self._file.seek(offset, whence))

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    seekable = readable


def unpacking(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a file to read what another holds, which is unpacked if it is compressed.

    Only where the ending of the path and the first bytes say so: browsers unpack by themselves.
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
    return BufferedReader(_Unpacked(unpack(file), unpacked(path.stat().st_size)), 1 << 16)


class BoundedText(TextIOWrapper):
    """Text whose lines are read no further than the budget allows."""

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        limit = largest()
        while line := self.readline(limit + 1):
            if len(line) > limit:
                raise too_large("a line", limit)
            yield line
