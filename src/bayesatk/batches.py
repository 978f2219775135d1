"""Batches of a simulation, here or on a cluster that the user brings."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.progress import track


def in_batches[Result](
    run: Callable[[int], Result],
    starts: Sequence[int],
    client: Any,
    description: str,
    progressbar: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield every batch with its start: in order here, as they are done on a cluster.

    Parameters
    ----------
    run : callable
        ``run(start)`` must depend on its start only.
    starts : sequence of int
    client : dask.distributed.Client or None
    description : str
        Of the progress bar, which a cluster has of its own.
    progressbar : bool

    Examples
    --------
    >>> list(in_batches(lambda start: start + 1, [0, 5], None, "adding", False))
    [(0, 1), (5, 6)]
    """
    if client is None:
        for start in track(starts, description=description, disable=not progressbar):
            yield start, run(start)
        return
    from dask.distributed import as_completed

    futures = {client.submit(run, start, pure=False): start for start in starts}
    for future in as_completed(futures):
        yield futures[future], future.result()
