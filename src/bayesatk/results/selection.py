"""Parts of a result that are results; outcomes of a result or of data."""

import json
from collections.abc import Collection

import xarray as xr

from bayesatk.data.capabilities import Operation, require_operation
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import outcome_values, text_of_systems
from bayesatk.data.tally import tally
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import OF_ALL_SYSTEMS
from bayesatk.results.tree import ResultTree


def systems_of(fit: Result, system: object) -> xr.DataTree:
    """Return a result of some of its systems, or of one without the dimension of systems.

    Their posteriors stay as they are. Comparisons, ranks and leaderboards depend on which systems
    there are, so they are left out.

    Parameters
    ----------
    fit : Result
    system : label or collection of labels
        Their order in the result stays.
    """
    selected = result_of_systems(fit, fit.positions(system))
    if isinstance(system, Collection) and not isinstance(system, str | bytes):
        return selected
    groups = {
        f"/{name}": group.isel(system=0, drop=True) if "system" in group.dims else group
        for name, group in ((name, node.to_dataset()) for name, node in selected.children.items())
    }
    alone = ResultTree.from_dict(groups)
    alone.attrs.update(selected.attrs)
    return alone


def result_of_systems(fit: Result, positions: list[int]) -> xr.DataTree:
    """Return a result of the systems at some positions, with the dimension of systems."""
    groups = {"/": fit.tree.to_dataset()}
    for name in fit.tree.children:
        group = fit.group(name)
        if name not in OF_ALL_SYSTEMS:
            groups[f"/{name}"] = group.isel(
                {dim: positions for dim in ("system", "other") if dim in group.dims}
            )
    selected = ResultTree.from_dict(groups)
    note = f"selected: systems {', '.join(str(fit.systems[index]) for index in positions)}"
    assumptions = [*fit.described("assumptions", []), note]
    selected.attrs["assumptions"] = json.dumps(assumptions)
    selected.attrs["study"] = text_of_systems(fit.tree.attrs["study"], positions)
    selected.attrs["input_sha256"] = Result.of(selected).data.sha256()
    return selected


def outcomes_of(data: object, operation: Operation, success: str | None = None) -> Outcomes:
    """Return the outcomes of a result, or of anything that can be tallied, for an operation.

    `success` says which scores succeed.
    """
    if isinstance(data, Fit):
        fit = Result.of(data, None)
        fit.require(operation)
        return fit.data if success is None else fit.data.with_success(success)
    outcomes = tally(data)
    outcomes = outcomes if success is None else outcomes.with_success(success)
    require_operation(operation, outcome_values(outcomes), "data")
    return outcomes
