"""Batches of a simulation, here or on a cluster that the user brings, kept in a file if asked."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesatk._tools.progress import track

_BEGIN = b'{"study": '  # of every line


def all_batches(
    run: Callable[[int], Any],
    starts: Sequence[int],
    study: Mapping[str, Any],
    *,
    path: str | Path | None,
    client: Any,
    description: str,
    progressbar: bool,
) -> dict[int, Any]:
    """Return every batch by its start; those that a file holds are read, the others run and added.

    Parameters
    ----------
    run : callable
        ``run(start)`` must depend on the study and its start only, and return what JSON can hold.
    starts : sequence of int
    study : mapping
        Everything that a batch depends on, bar its start.
    path : path or None
        JSON Lines file.
    client : dask.distributed.Client or None
    description : str
        Of the progress bar, which a cluster has of its own.
    progressbar : bool
        Whether to show one, where somebody watches: on a terminal or in Jupyter.

    Raises
    ------
    ValueError
        If the file is of another study.

    Examples
    --------
    >>> options = {"path": None, "client": None, "description": "adding", "progressbar": False}
    >>> all_batches(lambda start: [start + 1], [0, 5], {}, **options)
    {0: [1], 5: [6]}
    """
    described = json.loads(json.dumps(dict(study)))
    done = {} if path is None else _read(_checked(path), described)
    missing = [start for start in starts if start not in done]
    for start, batch in in_batches(run, missing, client, description, progressbar):
        done[start] = batch
        if path is not None:
            _append(Path(path), {"study": described, "start": start, "values": batch})
    return {start: done[start] for start in starts}


def in_batches[Result](
    run: Callable[[int], Result],
    starts: Sequence[int],
    client: Any,
    description: str,
    progressbar: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield every batch with its start: in order here, as they are done on a cluster."""
    if client is None:
        for start in track(starts, description, progress=None if progressbar else False):
            yield start, run(start)
        return
    from dask.distributed import as_completed

    futures = {client.submit(run, start, pure=False): start for start in starts}
    for future in as_completed(futures):
        yield futures[future], future.result()


def _checked(path: str | Path) -> Path:
    """Return the path, or refuse what cannot be added to, before any work is done."""
    if not isinstance(path, str | Path):
        raise ValueError(f"path must be that of a file; got {path!r:.80}.")
    found = Path(path)
    if found.is_dir() or not found.parent.is_dir():
        what = "is a folder" if found.is_dir() else "lies in a folder that does not exist"
        raise ValueError(f"path must be that of a file; {found} {what}.")
    return found


def _read(path: Path, study: dict[str, Any]) -> dict[int, Any]:
    """Batches that the file holds; a line torn by a killed run is done again."""
    done: dict[int, Any] = {}
    if not path.exists():
        return done
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # not JSON, or not text
            if line.startswith(_BEGIN[: len(line)]):
                continue
            row = line[:80]
        if not isinstance(row, dict) or row.get("study") != study:
            found = row.get("study") if isinstance(row, dict) else row
            raise ValueError(
                f"path must be the file of this study, {study}; {path} is of {found!r}. Use "
                "another."
            )
        done[row["start"]] = row["values"]
    return done


def _append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a+b") as file:
        if file.tell() > 0:
            file.seek(-1, 2)
            if file.read() != b"\n":  # after a torn line
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")
