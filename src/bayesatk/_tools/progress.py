"""A progress bar on terminals and in notebooks, after two seconds."""

import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from importlib.util import find_spec
from operator import length_hint
from time import monotonic
from typing import Any

_PATIENCE = 2.0  # seconds without a bar

# Two bars would overwrite each other's lines, so a loop inside a loop shows none.
_BAR_IS_SHOWN: ContextVar[bool] = ContextVar("bayesatk_progress_shown", default=False)


def track[Item](
    items: Iterable[Item],
    description: str,
    total: int | None = None,
    progress: bool | None = None,
) -> Iterator[Item]:
    """Yield items, and show on standard error how many of them are done.

    Parameters
    ----------
    items : iterable
    description : str
        Text beside the bar.
    total : int, optional
        Number of items; default: their length, if they have one.
    progress : bool, optional
        True shows the bar at once, False never. Default: from two seconds on, if standard error is
        a terminal or this runs in Jupyter with ipywidgets.

    Yields
    ------
    object
        The items, in order. The bar is removed after the last one, and if the loop is left early.

    Notes
    -----
    The time is checked between items only.

    Examples
    --------
    >>> [2 * number for number in track([1, 2, 3], "doubling")]
    [2, 4, 6]
    """
    if progress is False or _BAR_IS_SHOWN.get() or (progress is None and not watched()):
        yield from items
        return
    begin = monotonic() + (0.0 if progress else _PATIENCE)
    size = (length_hint(items) or None) if total is None else total
    bar: Any = None
    try:
        for done, item in enumerate(items):
            if bar is None and monotonic() >= begin and not _BAR_IS_SHOWN.get():
                bar = _bar(description, size)
                _BAR_IS_SHOWN.set(True)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)
            yield item
    finally:
        if bar is not None:
            bar.stop()
            _BAR_IS_SHOWN.set(False)


def watched() -> bool:
    """Whether a person sees standard error, on a terminal or in a notebook, and it can be drawn."""
    if find_spec("rich") is None:
        return False
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    # Without ipywidgets rich puts a warning into the notebook where the bar would be.
    return "ipykernel" in sys.modules and find_spec("ipywidgets") is not None


def _bar(description: str, total: int | None) -> Any:
    """Start a bar on standard error."""
    from rich.console import Console  # only where a bar is shown
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(description, total=total)
    bar.start()
    return bar
