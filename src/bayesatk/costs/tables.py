"""The table of a result of costs."""

import math
from typing import Any

import pandas as pd
import xarray as xr

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.results.costs import MONEY
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, statistics_of_draws


def read_result(costs: object) -> Result:
    """Return a result of costs as fields, or say what is wrong with it."""
    result = Result.of(costs)  # type: ignore[arg-type]
    if not result.of_costs:
        raise ArgumentError(
            Argument("costs"), " must be a result of bayesatk.costs.evaluate_cost; it has no "
            "costs. Use bayesatk.costs.evaluate_cost(data).",
        )  # fmt: skip
    return result


def cells_of(variables: xr.Dataset) -> list[tuple[str, dict[str, Any]]]:
    """Return every quantity of a group: its name, and its k or budget."""
    cells: list[tuple[str, dict[str, Any]]] = []
    for name in variables.data_vars:
        if "target" not in variables[name].dims:
            continue
        dim = "k" if "k" in variables[name].dims else "budget"
        values = variables[dim].values.tolist() if dim in variables[name].dims else [None]
        cells += [(str(name), {} if level is None else {dim: level}) for level in values]
    return cells


def cost_table(costs: xr.DataTree | Result) -> pd.DataFrame:
    """Tabulate a result of costs: one row per system, quantity and target.

    Parameters
    ----------
    costs : xarray.DataTree
        From `bayesatk.costs.evaluate_cost`.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``quantity``, ``k`` and ``budget`` (NaN where it has none), ``target``,
        ``mean``, ``sd``, ``ci_lower``, ``ci_upper``, ``unit``; of `bayesatk.costs.evaluate_cost`
        also ``estimate``, from the observed trials alone, and ``ci_error``, the Monte Carlo error
        of the interval's ends. A mean or sd is infinite if it does not exist, because too few
        trials succeeded.

    See Also
    --------
    bayesatk.costs.compare_cost : differences of systems.

    Examples
    --------
    >>> import bayesatk as bk
    >>> data = bk.tally([[1, 0], [1, 1]], cost=[[2, 4], [1, 1]], cost_unit="USD")
    >>> rows = cost_table(bk.costs.evaluate_cost(data, rng=1)).set_index("quantity")
    >>> rows.loc["cost_of_pass", "estimate"].round(6).tolist()  # a trial costs 2, 3 of 4 succeed
    [2.666667, 2.666667]
    """
    result = read_result(costs)
    if result.has("closed_form"):
        statistics = result.group("closed_form")
    else:
        names = {name for name, _ in cells_of(result.posterior)}
        statistics = statistics_of_draws(result.posterior, names, result.tails)
    unit, rows = str(result.tree.attrs.get("cost_unit", "")), []
    for system in result.systems:
        for name, where in cells_of(statistics):
            for target in TARGETS:
                cell = statistics[name].sel(system=system, target=target, **where)
                numbers = {
                    str(statistic): float(cell.sel(statistic=statistic))
                    for statistic in cell["statistic"].values
                }
                rows.append({
                    "system": system, "quantity": name, "k": where.get("k", math.nan),
                    "budget": where.get("budget", math.nan), "target": target, **numbers,
                    "unit": unit if name in MONEY else "",
                })  # fmt: skip
    return pd.DataFrame(rows)
