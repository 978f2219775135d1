"""Zip archives read in place: nothing is written to disk, and sizes are checked before reading."""

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bayesatk.data.validation import OutcomeError

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

_LARGEST = 1 << 30  # bytes of one member, unpacked: each is parsed whole
_MOST = 1 << 38  # bytes of all members, unpacked
_RATIO = 2000  # unpacked over packed, beyond a size that harms nobody
_HARMLESS = 1 << 24
_PART = 1 << 20

_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, NotImplementedError,
    RuntimeError, ValueError, OverflowError,
)  # fmt: skip


class Archive:
    """A zip archive whose members have been checked."""

    def __init__(self, file: BinaryIO) -> None:
        with _readable():
            self._zip = zipfile.ZipFile(file)
        # A log that was interrupted and continued repeats names: the last of each counts.
        self.names = list(dict.fromkeys(name for name in self._zip.namelist() if name[-1:] != "/"))
        self._check()

    def _check(self) -> None:
        total = 0
        for info in self._zip.infolist():
            name = info.filename
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
                raise OutcomeError(
                    f"the archive must hold plain names; {name[:80]!r} leads out of it. Was it "
                    "written by the evaluation itself?"
                )
            total += info.file_size
            swollen = info.file_size > max(_HARMLESS, _RATIO * info.compress_size)
            if info.file_size > _LARGEST or swollen or total > _MOST:
                raise OutcomeError(
                    f"the archive must hold members of at most {_LARGEST} bytes, packed at most "
                    f"{_RATIO}:1; {name[:80]!r} says {info.file_size} bytes from "
                    f"{info.compress_size}. It is damaged, or made to fill the memory."
                )

    def read(self, name: str) -> bytes:
        """Return a member, whole; one that is larger than it says is not unpacked further."""
        limit, parts, size = self._zip.getinfo(name).file_size, [], 0
        with _readable(), self._zip.open(name) as member:
            while part := member.read(_PART):
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise OutcomeError(f"the member {name[:80]!r} must be as large as it says.")
        return b"".join(parts)


@contextmanager
def _readable() -> Iterator[None]:
    """Turn every way in which an archive can be broken into one message."""
    try:
        yield
    except OutcomeError:
        raise
    except _DAMAGE as error:
        raise OutcomeError(
            f"the file must be a whole zip archive; {error or type(error).__name__}. It is "
            "truncated, damaged or encrypted: copy or write it again."
        ) from None
