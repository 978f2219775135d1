"""Which dimension and which entry of a trace belongs to which system and question of the data."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError

SAMPLE_DIMS = ("chain", "draw")
NAMED = ("system", "question", "category")  # ArviZ numbers any other dimension 0, 1, 2, ...
Labels = Mapping[str, Sequence[Any]]  # of the systems, the questions, and the categories


def aligned(values: xr.DataArray, labels: Labels, argument: str) -> Array:
    """Return a variable of a trace in the order of the data.

    Parameters
    ----------
    values : xarray.DataArray
    labels : mapping {dimension: labels}
        Of the data: ``system``, ``question``, and further ones that the variable must have.
    argument : str
        Whose value the variable is, for messages.

    Returns
    -------
    ndarray, shape ([chain, draw,] system, question, ...)

    Examples
    --------
    >>> p = xr.DataArray([0.1, 0.9], {"item": ["b", "a"]}, "item")
    >>> aligned(p, {"system": ["x"], "question": ["a", "b"]}, "p").tolist()
    [[0.9, 0.1]]
    """
    sample = [dim for dim in SAMPLE_DIMS if dim in values.dims]
    names = dimensions(values, labels, argument)
    values = values.rename(names)
    for dim in set(labels) - set(values.dims):  # one system, or a single question
        values = values.expand_dims({dim: list(labels[dim])})
    traced = {data_dim: trace_dim for trace_dim, data_dim in names.items()}
    for dim, wanted in labels.items():
        values = values.isel({dim: places(values, dim, wanted, traced.get(dim, dim), argument)})
    return np.asarray(values.transpose(*sample, *labels).values)


def dimensions(values: xr.DataArray, labels: Labels, argument: str) -> dict[str, str]:
    """Return the dimension of the data for each dimension of a variable of the trace.

    Equal names match. The other dimensions are taken in the order of the data: systems, questions,
    categories, where dimensions of length one may be absent.
    """
    trace_dims = [str(dim) for dim in values.dims if dim not in SAMPLE_DIMS]
    unmatched = [dim for dim in labels if dim not in trace_dims]
    unnamed = [dim for dim in trace_dims if dim not in labels]
    if 0 < len(unnamed) < len(unmatched):
        several = [dim for dim in unmatched if len(labels[dim]) > 1]
        unmatched = several if len(several) == len(unnamed) else unmatched[-len(unnamed) :]
    sizes = {dim: len(labels[dim]) for dim in labels}
    names = dict(zip(unnamed, unmatched, strict=False))
    matched = {names.get(dim, dim) for dim in trace_dims}
    absent = {dim for dim, size in sizes.items() if size > 1} - matched
    if len(unnamed) > len(unmatched) or absent:
        shape = dict(zip(map(str, values.dims), values.shape, strict=True))
        raise ArgumentError(
            argument,
            f" must have the dimensions chain, draw and {' and '.join(map(repr, sizes))} "
            f"of the data, of sizes {tuple(sizes.values())}; got {shape}. {_remedy(absent)}",
        )
    return names


def number_notes(values: xr.DataArray, labels: Labels) -> list[str]:
    """Say where questions or systems that are numbered 0, 1, 2, ... were matched by number.

    The numbers may be those of the data, or ArviZ's own, which has them where nobody gave labels.
    """
    return [
        f"The trace numbers {dim!r} from 0 to {len(wanted) - 1}, and so do the data in another "
        "order: entries were matched by these numbers. If the model has the order of the data, "
        f"give it their labels, coords={{'{dim}': data.dataset['{dim}'].values}}."
        for dim, wanted in labels.items()
        if dim in values.coords
        and values[dim].values.tolist() == list(range(len(wanted)))
        and places(values, dim, wanted, dim, "p") != list(range(len(wanted)))
    ]


def _remedy(absent: set[str]) -> str:
    if absent == {"system"}:
        return "If the draws are of one system, name it: system='...'."
    return (
        "In PyMC: pm.Deterministic('p', ..., dims='question'), of several systems "
        "dims=('system', 'question')."
    )


def places(
    values: xr.DataArray, dim: str, wanted: Sequence[Any], name: str, argument: str
) -> list[int]:
    """Return the positions of the labels of the data along a dimension of the trace.

    Parameters
    ----------
    values : xarray.DataArray
    dim : str
        Of `values`, and of the data in messages.
    wanted : sequence
        Labels of the data.
    name, argument : str
        Of the dimension in the trace, and of the argument, for messages.
    """
    size = values.sizes[dim]
    numbered = list(range(size))
    labels = values[dim].values.tolist() if dim in values.coords else numbered
    unlabelled = labels == numbered and (dim not in values.coords or name not in NAMED)
    for as_text in () if unlabelled else (False, True):
        available, requested = (
            [str(x) for x in row] if as_text else list(row) for row in (labels, wanted)
        )
        may_match = size == len(wanted) or labels != numbered  # numbers are no names of a part
        if may_match and len(set(available)) == size and set(requested) <= set(available):
            position_of = {label: position for position, label in enumerate(available)}
            return [position_of[label] for label in requested]
    if size == len(wanted) and (labels == numbered or size == 1):  # without labels: in this order
        return numbered
    raise ArgumentError(
        argument,
        f" must have the {len(wanted)} labels of the data along {name!r}, or none; got "
        f"{size}: {labels[:3]}..., where the data have {list(wanted)[:3]}.... Build the model with "
        f"coords={{'{dim}': ",
        Argument("data"),
        f".dataset['{dim}'].values}}" + f" and dims= that name {dim!r}" * (name != dim) + ".",
    )
