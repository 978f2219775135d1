"""Batches of a simulation, in this process or on a cluster of the user."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bayesatk._tools.progress import track


def in_batches[Result](
    run: Callable[[int], Result],
    starts: Sequence[int],
    client: Any,
    description: str,
    progress: bool | None,
) -> Iterator[tuple[int, Result]]:
    """Yield every batch with its start: in order, or on a cluster as they are completed.

    A cluster gets the function once, with all the data that it refers to.
    """
    if client is None:
        for start in track(starts, description, progress=progress):
            yield start, run(start)
        return
    from dask.distributed import as_completed

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        # A task, not scattered data: it is computed again if the worker that holds it dies.
        on_workers = client.submit(_identity, _HeldFunction(run), pure=False)
    futures = {client.submit(_run_held, on_workers, start, pure=False): start for start in starts}
    for future in as_completed(futures):
        yield futures[future], future.result()
        future.release()


@dataclass(frozen=True)
class _HeldFunction:
    """A wrapped function on a worker; dask would take a bare one for a task."""

    run: Callable[[int], Any]


def _identity(on_workers: _HeldFunction) -> _HeldFunction:
    return on_workers


def _run_held(on_workers: _HeldFunction, start: int) -> Any:
    return on_workers.run(start)
