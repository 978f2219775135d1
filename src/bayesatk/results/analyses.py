"""Analyses as groups of a result, and their tables read back.

An analysis is a table with what it says and how it was made. As a group of a result it has a
variable for every column, whose dimensions are the columns that name what a row is of; attributes
are text and numbers, so that files keep them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arguments import one_of
from bayesatk.data.outcomes import Outcomes
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import ANALYSES, build, root_attributes
from bayesatk.results.views import ShownTable

_ROW = "table_row"  # place of a cell's row in the table; -1 where there is no row
_ABSENT = {"f": np.nan, "b": False, "i": 0, "u": 0}  # by kind of number, where there is no row


def analysis_group(
    table: pd.DataFrame,
    keys: Sequence[str],
    attrs: Mapping[str, Any],
    *,
    sentences: Sequence[str] = (),
    labels: Mapping[str, Sequence[Any]] | None = None,
) -> xr.Dataset:
    """Return a table as a group of a result.

    Parameters
    ----------
    table : pandas.DataFrame
    keys : sequence of str
        Columns that name what a row is of, the dimensions of the group; no two rows have the same.
    attrs : mapping
        How it was made. Lists and mappings are kept as JSON.
    sentences : sequence of str
        What is shown below the table.
    labels : mapping {key: labels}, optional
        All labels of a dimension in their order; default: those of the table, as they appear.

    Examples
    --------
    >>> frame = pd.DataFrame({"system": ["b", "a"], "rank": [1, 2]})
    >>> group = analysis_group(frame, ["system"], {}, labels={"system": ["a", "b"]})
    >>> group["rank"].sel(system="b").item(), table_of(group)["system"].tolist()
    (1, ['b', 'a'])
    """
    indexes = {key: pd.Index((labels or {}).get(key, table[key].drop_duplicates())) for key in keys}
    cells = tuple(index.get_indexer(table[key]) for key, index in indexes.items())
    shape = tuple(map(len, indexes.values()))
    columns = {_ROW: np.arange(len(table))}
    columns |= {name: table[name].to_numpy() for name in map(str, table) if name not in keys}
    variables = {}
    for name, values in columns.items():
        numbers = values.dtype.kind in _ABSENT
        typed = values if numbers else values.astype(object)
        absent = -1 if name == _ROW else _ABSENT.get(typed.dtype.kind, "")
        array = np.full(shape, absent, typed.dtype)
        array[cells] = typed
        variables[name] = list(keys), array
    described = {"columns": list(map(str, table)), "sentences": list(sentences), **attrs}
    texts = {}
    for name, value in described.items():
        plain = isinstance(value, str | int | float)
        as_json = isinstance(value, list | dict)
        texts[name] = json.dumps(value, default=str) if as_json else value if plain else str(value)
    return xr.Dataset(variables, {key: index.to_numpy() for key, index in indexes.items()}, texts)


def with_analyses(tree: xr.DataTree, groups: Mapping[str, xr.Dataset]) -> xr.DataTree:
    """Return a copy of a result with the groups of an analysis, in place of earlier ones.

    The name of the first one begins the names of the others.
    """
    stem = next(iter(groups))
    analysed = tree.copy().drop_nodes([name for name in analyses_of(tree) if name.startswith(stem)])
    for name, group in groups.items():
        analysed[name] = xr.DataTree(group)
    return analysed


def tree_of(data: Outcomes | None, method: str, seed: str = "") -> xr.DataTree:
    """Return a result of data that an analysis takes as they are, without a posterior of metrics.

    Without data: of numbers that were stated.
    """
    attrs = root_attributes(method, "", seed, data, ())
    if data is None:
        return build({}, attrs)
    constant = xr.Dataset({"trials": data.trials, "missing": data.dataset["missing"]})
    observed = data.successes.rename("successes").to_dataset()
    return build({"observed_data": observed, "constant_data": constant}, attrs)


def analyses_of(tree: xr.DataTree) -> list[str]:
    """Return the names of the analyses that a result has."""
    return [name for name in ANALYSES if name in tree.children]


def analysis_table(result: Fit, name: str, others: Sequence[str] = ()) -> ShownTable:
    """Return the table of an analysis that a result has; `others` are tables that are none."""
    one_of("what", name, (*others, *ANALYSES))
    return table_of(Result.of(result, name).group(name), name)


def table_of(group: xr.Dataset, name: str = "") -> ShownTable:
    """Return the table that a group was made of."""
    columns = json.loads(group.attrs["columns"])
    keys = [key for key in columns if key in group.dims]
    values = group[[_ROW, *(column for column in columns if column not in keys)]]
    frame = values.to_dataframe(keys).reset_index()
    frame = frame[frame[_ROW] >= 0].sort_values(_ROW, ignore_index=True)
    shown = frame[columns].infer_objects()  # zarr has a type of text of its own
    return ShownTable.of(shown, name, **group.attrs)
