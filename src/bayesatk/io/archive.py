"""Zip archives read in place: nothing is written to disk, and sizes are checked before reading."""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bayesatk.data.validation import OutcomeError
from bayesatk.io.budget import largest, too_large, total, unpacked

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, NotImplementedError,
    RuntimeError, ValueError, OverflowError,
)  # fmt: skip


class Archive:
    """A zip archive whose members have been checked; they are read one at a time."""

    def __init__(self, file: BinaryIO) -> None:
        most = unpacked(file.seek(0, os.SEEK_END))
        file.seek(0)
        with _readable():
            # A 64th of the budget for the list of members: as objects, it takes ten times that.
            self._zip = zipfile.ZipFile(_Bounded(file, total() // 64))
        members = self._zip.infolist()
        for info in members:
            name = info.filename
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
                raise OutcomeError(
                    f"the archive must have plain names; {name[:80]!r} leads out of it. Was it "
                    "written by the evaluation itself?"
                )
            if info.file_size > largest():
                raise too_large(f"the member {name[:80]!r}", largest(), "bytes", info.file_size)
        size = sum(info.file_size for info in members)
        if size > most:
            raise too_large("the archive, unpacked,", most, "bytes", size)
        # A log that was interrupted and continued repeats names: the last of each counts.
        self.names = list(dict.fromkeys(info.filename for info in members if not info.is_dir()))

    def read(self, name: str) -> bytes:
        """Return a member, whole; one that is larger than it says is not unpacked further."""
        info = self._zip.getinfo(name)
        bounded = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        # Of other compressions zipfile unpacks whatever it reads at once: of zstd 32000:1.
        block_bytes = 1 << 20 if bounded else 1 << 12
        blocks, size = [], 0
        with _readable(), self._zip.open(info) as member:
            while block := member.read(block_bytes):
                blocks.append(block)
                size += len(block)
                if size > info.file_size:
                    raise OutcomeError(
                        f"the member {name[:80]!r} must be as large as it says; it is larger. It "
                        "is damaged, or made to fill the memory: write the archive again."
                    )
        return b"".join(blocks)


class _Bounded:
    """A file of which nobody reads more than so many bytes at once."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Read some bytes, or refuse."""
        content = self._file.read(self._most + 1 if size < 0 else min(size, self._most + 1))
        if len(content) > self._most:
            raise too_large("the archive's list of members", self._most, "bytes")
        return content


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
