"""Tables with a row per trial or question: of pandas, or of any library that narwhals knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayesatk.data.columns import ROLES, Columns, one_row_a_trial, pick_columns
from bayesatk.data.content import digests
from bayesatk.data.counter import Counter
from bayesatk.data.long_form import LongForm
from bayesatk.data.validation import OutcomeError, Scores

# Kinds of NumPy's numbers that stay arrays, by role: outcomes may be fractions and true/false.
_ARRAYS = {"outcome": "biuf", "answer": "", "reference": ""}


def is_table(data: object) -> bool:
    """Whether this is a table, of pandas or of another library that narwhals knows."""
    if isinstance(data, pd.DataFrame):
        return True
    if isinstance(data, np.ndarray | Sequence | Mapping):
        return False
    import narwhals as nw  # for other tables only: it takes long to import

    try:
        return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # a table, though a malformed one: read_table says why
        return True


def read_table(data: Any, columns: Mapping[str, str]) -> Columns:
    """Pick the columns that matter from a long table; of a lazy one, only they are computed."""
    if isinstance(data, pd.DataFrame):
        return one_row_a_trial(from_pandas(data, columns))
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
        lazy = isinstance(frame, nw.LazyFrame)
        first = "" if hasattr(data, "to_numpy") else ".collect()" if lazy else ".to_pandas()"
        roles, content_names, unused = _picked(
            frame.collect_schema().names(), columns, f"data{first}.to_numpy()"
        )
        if lazy:
            frame = frame.select(list(dict.fromkeys([*roles.values(), *content_names]))).collect()
        values = {role: values_of(frame[name], role) for role, name in roles.items()}
        content = digests({name: frame[name].to_list() for name in content_names})
    except OutcomeError:
        raise
    except Exception as error:  # every library refuses a malformed table in its own way
        raise OutcomeError(
            f"the table must have columns that can be read, each name once; got {error}. Rename "
            "or convert the column."
        ) from None
    return one_row_a_trial(Columns(roles, values, content=content, others=unused))


def _picked(names: list[Any], columns: Mapping[str, str], array: str) -> Any:
    """Pick columns by name; a table without any usual name may be an array in disguise."""
    try:
        return pick_columns(names, columns)
    except OutcomeError as error:
        usual = {name for usual_names in ROLES.values() for name in usual_names}
        if columns or any(isinstance(name, str) and name.lower() in usual for name in names):
            raise
        raise OutcomeError(
            f"{error} If its rows are questions and its columns trials, use "
            f"bayesatk.tally({array})."
        ) from None


def from_pandas(data: pd.DataFrame, columns: Mapping[str, str]) -> Columns:
    """Pick the columns by position: names need not be text, nor does narwhals allow others."""
    names = list(data.columns)
    roles, content_names, unused = _picked(names, columns, "data.to_numpy()")
    for level in data.index.names:
        lost = [
            role
            for role, usual in ROLES.items()
            if role not in roles and isinstance(level, str) and level.lower() in usual
        ]
        if lost:
            raise OutcomeError(
                f"the table must have its {lost[0]} in a column; got {level!r} in the index. Reset "
                "it: table.reset_index()."
            )
    series = {name: data.iloc[:, names.index(name)] for name in [*roles.values(), *content_names]}
    values = {role: _pandas_values(series[name], role) for role, name in roles.items()}
    content = digests({name: series[name].tolist() for name in content_names})
    return Columns(roles, values, content=content, others=unused)


def _pandas_values(series: Any, role: str) -> Any:
    """Return a numeric column as an array, labels of text coded, any other as a list."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in _ARRAYS.get(role, "iu"):
        return series.to_numpy()
    if isinstance(series.dtype, pd.StringDtype) and role in ("system", "question", "trial"):
        codes, texts = series.factorize()
        return pd.Categorical.from_codes(codes, pd.Index(texts))
    return series.tolist()


def values_of(series: Any, role: str) -> Any:
    """Return a numeric column without gaps as an array, any other as a list."""
    if series.dtype.is_numeric() and not series.is_null().any():
        try:
            array = series.to_numpy()
        except Exception:  # integers of 128 bits have no numpy type
            return series.to_list()
        if array.dtype.kind in _ARRAYS.get(role, "iu"):
            return array
    return series.to_list()


def is_partitioned(data: object) -> bool:
    """Return whether this is a table of dask, whose partitions are tables of pandas."""
    return type(data).__module__.startswith("dask.") and hasattr(data, "to_delayed")


def read_partitions(data: Any, scores: Scores, columns: Mapping[str, str]) -> LongForm:
    """Count the rows of a table of dask; of its columns, only those that matter are computed."""
    roles, content_names, unused = pick_columns(list(data.columns), columns)
    counter, start = Counter(scores), 0
    for partition in _computed(data[list(dict.fromkeys([*roles.values(), *content_names]))]):
        if len(partition):
            table = from_pandas(partition, columns)
            rows = range(start, start + len(partition))
            counter.add(one_row_a_trial(replace(table, numbers=rows, others=unused)))
        start += len(partition)
    return counter.long_form()


def _computed(data: Any) -> Iterator[Any]:
    """Yield the partitions, computed by dask's scheduler: threads here, or a cluster."""
    import dask

    at_once = 8  # by as many threads or workers, and held
    parts = data.to_delayed()
    for start in range(0, len(parts), at_once):
        yield from dask.compute(*parts[start : start + at_once])
