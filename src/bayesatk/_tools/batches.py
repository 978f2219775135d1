"""Batches of a simulation, here or on a cluster that the user brings, kept in a file if asked."""

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import PACKAGE
from bayesatk._tools.progress import track
from bayesatk._tools.writing import lock


def all_batches(
    run: Callable[[int], Any],
    starts: range,
    study: Mapping[str, Any],
    *,
    fault: Callable[[Any], str],
    path: str | Path | None,
    client: Any,
    description: str,
    progress: bool | None,
) -> dict[int, Any]:
    """Return every batch by its start; those that a file holds are read, the others run and added.

    Parameters
    ----------
    run : callable
        ``run(start)`` must depend on the study and its start only, and return what JSON can hold.
    starts : range
        From 0, by the size of a batch.
    study : mapping
        Everything that a batch depends on, bar its start.
    fault : callable
        ``fault(batch)`` says what is wrong with a batch that a file holds; "" if nothing is.
    path : path or None
        JSON Lines file. No other process may write it meanwhile. What a killed process left of its
        last line is removed, with a warning.
    client : dask.distributed.Client or None
    description : str
        Of the progress bar, which a cluster has of its own.
    progress : bool or None
        Whether to show one. None: after two seconds, on a terminal or in Jupyter.

    Raises
    ------
    ValueError
        If the file is of another study, is being written, or holds a row that is no batch.

    Examples
    --------
    >>> options = {"path": None, "client": None, "description": "adding", "progress": False}
    >>> all_batches(lambda start: [start + 1], range(0, 10, 5), {}, fault=str, **options)
    {0: [1], 5: [6]}
    """
    if path is None:
        return dict(sorted(in_batches(run, starts, client, description, progress)))
    described = json.loads(json.dumps(dict(study)))
    with _only_writer(_checked(path)) as file:
        done = _read(file, described, starts.step, fault)
        missing = [start for start in starts if start not in done]
        for start, batch in in_batches(run, missing, client, description, progress):
            done[start] = batch
            _append(file, _with_digest({"study": described, "start": start, "values": batch}))
    return {start: done[start] for start in starts}


def in_batches[Result](
    run: Callable[[int], Result],
    starts: Sequence[int],
    client: Any,
    description: str,
    progress: bool | None,
) -> Iterator[tuple[int, Result]]:
    """Yield every batch with its start: in order here, as they are done on a cluster.

    A cluster gets the function once, with all the data that it holds.
    """
    if client is None:
        for start in track(starts, description, progress=progress):
            yield start, run(start)
        return
    from dask.distributed import as_completed

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        # As a task, and not scattered: what a worker that dies held can be had again.
        held = client.submit(_same, _Held(run), pure=False)
    futures = {client.submit(_run_held, held, start, pure=False): start for start in starts}
    for future in as_completed(futures):
        yield futures[future], future.result()
        future.release()


@dataclass(frozen=True)
class _Held:
    """A function that workers hold; bare, dask would take it for a task."""

    run: Callable[[int], Any]


def _same(held: _Held) -> _Held:
    return held


def _run_held(held: _Held, start: int) -> Any:
    return held.run(start)


def _checked(path: str | Path) -> Path:
    """Return the path, or refuse what cannot be added to, before any work is done."""
    if not isinstance(path, str | Path):
        raise ValueError(f"path must be that of a file; got {path!r:.80}.")
    file = Path(path)
    if not file.parent.is_dir() or (file.exists() and not file.is_file()):
        problem = "is none" if file.exists() else "lies in a folder that does not exist"
        raise ValueError(f"path must be that of a file; {file} {problem}.")
    return file


@contextmanager
def _only_writer(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read and add to, or refuse if another process has it open for that."""
    with path.open("a+b") as file:
        try:
            lock(file.fileno())
        except BlockingIOError:
            raise ValueError(
                f"path must be a file that no other process writes; {path} is being written by "
                "another process or call. Wait for it, or name another file and run it with "
                "another seed."
            ) from None
        yield file


def _read(
    file: BinaryIO, study: dict[str, Any], step: int, fault: Callable[[Any], str]
) -> dict[int, Any]:
    """Return the batches that the file holds, and cut off what a killed run left of its last."""
    done: dict[int, Any] = {}
    beginning = b'{"study": '  # of every line
    file.seek(0)
    complete_bytes = 0
    for number, line in enumerate(file, start=1):
        if line[-1:] != b"\n" and line.startswith(beginning[: len(line)]):
            warnings.warn(
                f"{file.name}: the last {len(line)} bytes are the beginning of a batch whose "
                "writing was interrupted. They are removed, and the batch is done again.",
                skip_file_prefixes=(PACKAGE,),
            )
            file.truncate(complete_bytes)
            break
        complete_bytes += len(line)
        start, values = _row(line, f"line {number} of {file.name}", study)
        wrong = fault(values)
        if type(start) is not int or start < 0 or start % step:
            wrong = f"its start is {start!r:.40}, and must be a multiple of {step}"
        elif done.setdefault(start, values) != values:
            wrong = f"it differs from an earlier one with the start {start}"
        if wrong:
            raise ValueError(
                f"path must have whole batches; line {number} of {file.name} holds none: {wrong}. "
                "Remove the line, and the batch is done again."
            )
    file.seek(0, os.SEEK_END)
    return done


def _append(file: BinaryIO, row: dict[str, Any]) -> None:
    unwritten = json.dumps(row).encode() + b"\n"
    try:
        while unwritten:  # past the buffer, which closing would flush again, and fail again
            unwritten = unwritten[os.write(file.fileno(), unwritten) :]
    except OSError as error:
        why = f"{error.strerror}. Batches that are done are kept: run it again to go on"
        raise OSError(error.errno, why, file.name) from error


def _with_digest(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the digest of what it holds."""
    text = json.dumps(row, sort_keys=True).encode()
    return {**row, "digest": hashlib.blake2b(text, digest_size=8).hexdigest()}


def _row(line: bytes, where: str, study: dict[str, Any]) -> tuple[Any, Any]:
    """Return start and values of a row of this study."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):  # not JSON, or not text
        row = None
    if isinstance(row, dict) and row.get("study") == study:
        plain = {name: value for name, value in row.items() if name != "digest"}
        # Rows that earlier versions wrote have no digest.
        if plain.keys() <= {"study", "start", "values"} and row in (plain, _with_digest(plain)):
            return row.get("start"), row.get("values")
        raise ValueError(
            f"path must have whole batches; {where} holds none: it is not as it was written. "
            "Remove the line, and the batch is done again."
        )
    other_study = row.get("study") if isinstance(row, dict) else line[:80]
    raise ValueError(
        f"path must be the file of this study, {study}; {where} is of {other_study!r:.400}. Use "
        "another."
    )


def misshapen(values: Any, *shape: int) -> str:
    """Say what is wrong with nested lists that must be finite numbers of this shape.

    Examples
    --------
    >>> misshapen([[1, 2.5]], 1, 2), misshapen([[1]], 1, 2), misshapen([float("nan")], 1)
    ('', '1 values where 2 must be', 'nan where a finite number must be')
    """
    if not shape:
        number = isinstance(values, int | float) and not isinstance(values, bool)
        finite = number and math.isfinite(values)
        return "" if finite else f"{values!r:.40} where a finite number must be"
    if not isinstance(values, list) or len(values) != shape[0]:
        size = f"{len(values)} values" if isinstance(values, list) else f"{values!r:.40}"
        return f"{size} where {shape[0]} must be"
    return next((wrong for element in values if (wrong := misshapen(element, *shape[1:]))), "")
