"""Parts of a result that are results; outcomes of a result or of data."""

import json

import xarray as xr

from bayesatk.data.capabilities import Operation, require
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import outcome_values, text_of_systems
from bayesatk.data.tally import tally
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import OF_ALL_SYSTEMS
from bayesatk.results.tree import ResultTree


def one_system(fit: Fit, system: object = None) -> xr.DataTree:
    """Return a result of one system, without the dimension of systems.

    ArviZ's plots of counts (``az.plot_ppc_rootogram``, ``az.plot_ppc_pit`` and others) need
    observations along one dimension, the questions.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    system : label, optional
        The system; it may be left out if there is only one.

    Returns
    -------
    xarray.DataTree
        The same groups without the dimension ``system``.

    Raises
    ------
    ValueError
        If there are several systems and none is named, or the name is unknown.

    See Also
    --------
    bayesatk.Outcomes.sel : the same for data.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "bayes", rng=1)
    >>> one_system(fit, "b")["observed_data"]["successes"].values.tolist()
    [2]
    """
    fit = Result.of(fit)
    tree, (index, *further) = fit.tree, fit.positions(system)
    if further:
        raise ValueError(f"system must be one of {fit.systems}; got {system!r}.")
    groups = {}
    for name, node in tree.children.items():
        group = node.to_dataset()
        groups[f"/{name}"] = (
            group.isel(system=index, drop=True) if "system" in group.dims else group
        )
    selected = ResultTree.from_dict(groups)
    selected.attrs.update(tree.attrs)
    selected.attrs["study"] = text_of_systems(tree.attrs["study"], [index])
    return selected


def select_systems(fit: Fit, system: object) -> xr.DataTree:
    """Return a result of some of its systems.

    Their posteriors stay as they are. Comparisons, ranks and leaderboards depend on which systems
    there are, so they are left out: compare again.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    system : label or collection of labels
        Their order in the result stays.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    ValueError
        If a label is unknown.

    See Also
    --------
    bayesatk.Outcomes.sel : the same for data.
    bayesatk.one_system : one system, without the dimension of systems.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 0]], "b": [[1, 1]], "c": [[0, 0]]}
    >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
    >>> select_systems(fit, ["a", "c"])["posterior"]["system"].values.tolist()
    ['a', 'c']
    """
    fit = Result.of(fit)
    positions = fit.positions(system)
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
    require(operation, outcome_values(outcomes), "data")
    return outcomes
