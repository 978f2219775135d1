"""Tables in partitions, as dask holds them: computed a few at a time, and counted as they come."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bayesatk.data.columns import find_columns, unused
from bayesatk.data.content import content_columns
from bayesatk.data.counter import Counter
from bayesatk.data.list_cells import one_row_a_trial
from bayesatk.data.long_form import LongForm
from bayesatk.data.tables import from_pandas
from bayesatk.data.validation import Scores

_AT_ONCE = 8  # partitions that are computed together, by as many threads or workers, and held


def is_partitioned(data: object) -> bool:
    """Whether this is a table of dask, whose partitions are tables of pandas."""
    return type(data).__module__.startswith("dask.") and hasattr(data, "to_delayed")


def read_partitions(data: Any, scores: Scores, columns: Mapping[str, str]) -> LongForm:
    """Count the rows of a table of dask; of its columns, only those that matter are computed."""
    names = list(data.columns)
    roles = find_columns(names, columns)
    asked = content_columns(names, roles, columns)
    others = unused(names, roles, asked)
    counter, start = Counter(scores), 0
    for part in _computed(data[list(dict.fromkeys([*roles.values(), *asked]))]):
        table = from_pandas(part, columns)
        table = replace(table, numbers=range(start, start + len(part)), others=others)
        if len(part):
            counter.add(one_row_a_trial(table))
        start += len(part)
    return counter.long_form()


def _computed(data: Any) -> Iterator[Any]:
    """Yield the partitions, computed by dask's scheduler: threads here, or a cluster."""
    import dask

    parts = data.to_delayed()
    for start in range(0, len(parts), _AT_ONCE):
        yield from dask.compute(*parts[start : start + _AT_ONCE])
