"""Files and folders that are replaced whole or not at all.

What is new is written beside the target under a hidden name, and renamed onto it when it is
complete. A process that is killed leaves the old file or the new one, and perhaps a hidden
``.NAME.….unfinished``, which the next writer to the folder removes because its lock is free.
"""

import ctypes
import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from bayesatk._tools.messages import ArgumentError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write; it takes its name when the block ends without an error.

    Parameters
    ----------
    path : pathlib.Path
        A link is followed: the file that it leads to is replaced.

    Raises
    ------
    ArgumentError
        If the path is that of a folder, a pipe or a device.
    OSError
        If the file cannot be written, or the disk is full; what was there is as it was.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with replacing(path) as file:
    ...     _ = file.write(b"1 2 3")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'1 2 3'
    """
    target = Path(os.path.realpath(path))
    mode = _permissions(path, target)
    beside = None
    try:
        with _locked_temporary(target, Path.touch) as beside:
            with beside.open("rb+") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                beside.chmod(mode)
            beside.replace(target)
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Make a folder to fill; it takes its name, and the old one goes, when the block ends.

    The two are exchanged in one step on Linux, and by two renames elsewhere.
    """
    target = Path(os.path.realpath(path))
    beside = None
    try:
        with _locked_temporary(target, Path.mkdir) as beside:
            yield beside
            if target.exists():
                _exchange_names(beside, target)
            else:
                beside.rename(target)
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def _permissions(path: Path, target: Path) -> int | None:
    """Return the permissions of the file that is there, None if there is none; refuse others."""
    try:
        mode_bits = target.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _write_error(path, error) from None
    if not stat.S_ISREG(mode_bits):
        kind = "a folder" if stat.S_ISDIR(mode_bits) else "a pipe or device"
        raise ArgumentError("path", f" must be that of a file; {path} is {kind}. Name another.")
    return stat.S_IMODE(mode_bits)


def _temporary_path(target: Path) -> Path:
    # Systems allow names of 255 characters.
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.unfinished")


@contextmanager
def _locked_temporary(target: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Make a file or folder beside the target, which no other writer removes while it is held."""
    for abandoned in target.parent.glob(".*.unfinished"):
        _remove_abandoned(abandoned)
    handle = None
    while handle is None:  # again if another writer removed it before it was locked
        beside = _temporary_path(target)
        make(beside)
        handle = _lock(beside)
    try:
        yield beside
    finally:
        os.close(handle)


def _lock(path: Path) -> int | None:
    """Return an open handle that holds the lock of a file or folder; None if another does."""
    handle = None
    try:
        handle = os.open(path, os.O_RDONLY)
        lock(handle)
        same = os.stat(path).st_ino == os.fstat(handle).st_ino
    except (BlockingIOError, FileNotFoundError):
        same = False
    if same or handle is None:
        return handle
    os.close(handle)
    return None


def lock(handle: int) -> None:
    """Lock for this process, where the system and the disk can; refuse what another has locked."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a disk without locks
        return


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary file of a writer that was killed, whose lock is free."""
    with suppress(OSError):
        handle = _lock(path)
        if handle is not None:
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            finally:
                os.close(handle)


def _write_error(path: Path, error: OSError) -> OSError:
    """Return an error of the same kind that says that the old file is unchanged."""
    why = f"{error.strerror or error}. Nothing was written, and what was there is as it was"
    return OSError(error.errno or 0, why, str(path))


def _exchange_names(new: Path, old: Path) -> None:
    """Give two folders each other's name."""
    if sys.platform == "linux":
        rename = getattr(ctypes.CDLL(None), "renameat2", None)
        names = os.fsencode(new), os.fsencode(old)
        at_fdcwd, rename_exchange = -100, 2  # as for renameat2(2)
        if rename and rename(at_fdcwd, names[0], at_fdcwd, names[1], rename_exchange) == 0:
            return
    aside = _temporary_path(old)
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)


@contextmanager
def replacing_text(path: Path) -> Iterator[TextIO]:
    """Open a text file (UTF-8, line ends as written) to write, as `replacing` does."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()


class Deferred(io.RawIOBase):
    """A file whose write errors are raised by `check` instead of by ``write``.

    HDF5 crashes the interpreter if it cannot write while it closes a file (h5py 3.16). So errors,
    such as a full disk, are kept from it: after the first one data are dropped, and reads give
    zeros. The caller gets the error from `check`.

    Parameters
    ----------
    file : binary file
        Open to read and write.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._place, self._size = file, 0, 0
        self._error: OSError | None = None

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error

    def write(self, data: Any, /) -> int:
        """Write all of the data at the present place, or drop them."""
        length = memoryview(data).nbytes
        if self._error is None:
            try:
                self._file.seek(self._place)
                self._file.write(data)
                self._file.flush()
            except OSError as error:
                self._error = error
        self._place += length
        self._size = max(self._size, self._place)
        return length

    def readinto(self, buffer: Any, /) -> int:
        """Read from the present place."""
        view = memoryview(buffer).cast("B")
        length = max(0, min(len(view), self._size - self._place))
        view[:length] = bytes(length)
        if self._error is None:
            self._file.seek(self._place)
            view[:length] = self._file.read(length).ljust(length, b"\0")
        self._place += length
        return length

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to another place."""
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def truncate(self, size: int | None = None, /) -> int:
        """Shorten or lengthen the file."""
        self._size = self._place if size is None else size
        if self._error is None:
            try:
                self._file.truncate(self._size)
            except OSError as error:
                self._error = error
        return self._size

    def tell(self) -> int:
        """Return the present place."""
        return self._place

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    writable = seekable = readable
