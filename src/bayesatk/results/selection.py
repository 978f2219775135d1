"""Parts of a result that are results."""

import xarray as xr

from bayesatk.data.study import text_of_systems
from bayesatk.results.result import Result


def one_system(result: xr.DataTree | Result, system: object = None) -> xr.DataTree:
    """Return a result of one system, without the dimension of systems.

    ArviZ's plots of counts (``az.plot_ppc_rootogram``, ``az.plot_ppc_pit`` and others) need
    observations along one dimension, the questions.

    Parameters
    ----------
    result : xarray.DataTree
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
    tree = Result.of(result).tree
    labels = tree["posterior"].to_dataset()["system"].values.tolist()
    if system is None and len(labels) > 1:
        raise ValueError(f"system must be given if there are several; choose one of {labels}.")
    if system is not None and system not in labels:
        raise ValueError(f"system must be one of {labels}; got {system!r}.")
    index = 0 if system is None else labels.index(system)
    groups = {}
    for name, node in tree.children.items():
        group = node.to_dataset()
        groups[f"/{name}"] = (
            group.isel(system=index, drop=True) if "system" in group.dims else group
        )
    selected = xr.DataTree.from_dict(groups)
    selected.attrs.update(tree.attrs)
    selected.attrs["study"] = text_of_systems(tree.attrs["study"], [index])
    return selected
