"""Results of costs: what was asked, the groups of the tree, and the table of them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import Argument, ArgumentError, positive_number, whole_number
from bayesatk.core.costs.prior import BY_BUDGET, BY_K, CostPrior, Costs
from bayesatk.data.outcomes import COST_SUMS, Outcomes
from bayesatk.data.study import Study, as_marked, read_study
from bayesatk.priors import HyperPrior
from bayesatk.results.citations import RUBIN
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import (
    TARGETS,
    build,
    data_groups,
    draws_dataset,
    root_attributes,
    statistics_of_draws,
)

EROL = "arXiv:2504.13359"  # Erol et al., who defined the cost of pass
_CHEN = "arXiv:2107.03374"
STATISTICS = ("estimate", "mean", "sd", "ci_lower", "ci_upper", "ci_error")
MONEY = ("mean_cost", "cost_if_right", "cost_if_wrong", "cost_of_pass", "cost_to_success")


@dataclass(frozen=True)
class AskedCosts:
    """What `bayesatk.costs.evaluate_cost` was asked.

    Parameters
    ----------
    study : Study
        Of right and wrong, with costs; its metrics are those of success among what was asked.
    cost_prior : CostPrior
        With its scale.
    k : tuple of int
    budget : tuple of float
    """

    study: Study
    cost_prior: CostPrior
    k: tuple[int, ...]
    budget: tuple[float, ...]

    @property
    def outcomes(self) -> Outcomes:
        """The data."""
        return self.study.outcomes

    @property
    def prior(self) -> HyperPrior:
        """Prior of success."""
        assert isinstance(self.study.prior, HyperPrior)
        return self.study.prior

    @property
    def unit(self) -> str:
        """Unit of costs."""
        return str(self.outcomes.dataset.attrs.get("cost_unit", ""))

    @property
    def weight(self) -> Array:
        """Weights of the questions."""
        weights = self.outcomes.weight
        return np.ones(self.outcomes.dataset.sizes["question"]) if weights is None else weights

    def of_system(self, index: int) -> tuple[Flags, Ints, Costs]:
        """Return which questions a system tried, their counts (wrong, right), and their costs."""
        dataset = self.outcomes.dataset.isel(system=index)
        order = np.argsort(dataset["score"].values)
        counts = dataset["count"].transpose("question", "category").values[:, order]
        dims = "question", "category", "cost_sum"
        sums = dataset["cost_sums"].transpose(*dims).values[:, order]
        tried, scale = counts.sum(axis=1) > 0, float(self.cost_prior.scale or 1.0)
        number, total, logs, squares = np.moveaxis(sums[tried], -1, 0)
        return tried, counts[tried], Costs.of_sums(number, total, logs, squares, scale)


def read_costs(
    data: object, k: object, spend: object, *, prior: object, difficulty: object,
    cost_prior: object, success: str | None, ci_prob: float, ci_kind: Literal["eti", "hdi"] = "eti",
) -> AskedCosts:  # fmt: skip
    """Return what was asked, or refuse what contradicts itself; parameters of `evaluate_cost`."""
    ks = tuple(whole_number("k", number) for number in _listed(k))
    budgets = tuple(
        positive_number("spend", amount, "It is in the unit of the costs.")
        for amount in _listed(spend)
    )
    data = as_marked(data)
    population: Literal["law", "bootstrap"] = "law" if data.weight is None else "bootstrap"
    study = read_study(
        data, [f"pass@{number}" for number in ks or (1,)], pooling="partial", prior=prior,
        difficulty=difficulty, success=success, prior_trials=None, prior_weight=1.0,
        answer_prior=None, ci_prob=ci_prob, ci_kind=ci_kind, keep=(), population=population,
    )  # fmt: skip
    sums = study.outcomes.dataset.get("cost_sums")
    if sums is None or not sums.sel(cost_sum="number").any():
        raise ArgumentError(
            "data", " must say what trials cost; none has a cost. Read them: ",
            Argument("cost", "usd", "tally"), ", the name of a column.",
        )  # fmt: skip
    lacking = [name for name in COST_SUMS if name not in sums["cost_sum"]]
    if lacking:
        raise ArgumentError(
            "data", " must have the sums of costs that the model takes; a result saved "
            f"by an earlier version lacks {', '.join(lacking)}. Read the costs again: ",
            Argument("cost", "usd", "tally"), ", the name of a column.",
        )  # fmt: skip
    law = CostPrior() if cost_prior is None else cost_prior
    if not isinstance(law, CostPrior):
        rule = f" must be a CostPrior; got {cost_prior!r:.80}. Leave it out for the usual one."
        raise ArgumentError("cost_prior", rule)
    if law.scale is None:
        whole = sums.sum(["system", "question", "category"])
        number, total = whole.sel(cost_sum=["number", "total"]).values
        law = replace(law, scale=float(total / number))
    distinct_ks = tuple(dict.fromkeys(ks))
    study = replace(study, metrics=study.metrics if distinct_ks else ())
    return AskedCosts(study, law, distinct_ks, tuple(dict.fromkeys(budgets)))  # fmt: skip


def _listed(value: object) -> Sequence[Any]:
    if isinstance(value, np.ndarray | list | tuple | range | set):
        return list(value)
    return [value]


def cost_posterior(
    asked: AskedCosts, samples: Sequence[Mapping[str, Array]], chains: int, attrs: Mapping[str, Any]
) -> xr.Dataset:
    """Return the group ``posterior`` from the draws of every system.

    Parameters
    ----------
    asked : AskedCosts
    samples : sequence of mapping
        One for each system: quantities with the target as last dimension, and parameters (draws,).
    chains : int
        Draws come one chain after the other.
    attrs : mapping
    """
    draws = len(next(iter(samples[0].values())))
    variables = {}
    for name in samples[0]:
        values = np.stack([of_system[name] for of_system in samples], axis=1)
        variables[name] = (_dims(name) if values.ndim > 2 else (), values)
    at = {"chain": np.arange(chains), "draw": np.arange(draws // chains)}
    return draws_dataset(variables, at, **_coords(asked)).assign_attrs(attrs)


def _dims(name: str) -> tuple[str, ...]:
    """Return the dimensions of a quantity, behind those of draws and systems."""
    middle = {**dict.fromkeys(BY_K, ("k",)), **dict.fromkeys(BY_BUDGET, ("budget",))}
    return (*middle.get(name, ()), "target")


def _coords(asked: AskedCosts) -> dict[str, Any]:
    coords = {"k": list(asked.k), "budget": list(asked.budget), "target": list(TARGETS)}
    labels = {name: values for name, values in coords.items() if values}
    return labels | {"system": asked.outcomes.dataset["system"].values}


def cost_tree(
    asked: AskedCosts, groups: Mapping[str, xr.Dataset], method: str, seed: str,
    citations: tuple[str, ...] = (), **more: Any,
) -> xr.DataTree:  # fmt: skip
    """Return a result of costs."""
    data = data_groups(asked.study)
    sums = asked.outcomes.dataset["cost_sums"].drop_vars("score", errors="ignore")
    constant = data["constant_data"].assign(cost_sums=sums)
    attrs = root_attributes(
        method, asked.study.as_text(), seed, asked.outcomes, (EROL, _CHEN, RUBIN, *citations),
        cost_prior=json.dumps(asdict(asked.cost_prior)), cost_unit=asked.unit, **more,
    )  # fmt: skip
    return build({**groups, **data, "constant_data": constant}, attrs)


def cost_statistics(
    asked: AskedCosts, rows: Mapping[str, Sequence[Array]], attrs: Mapping[str, Any]
) -> xr.Dataset:
    """Return the group ``closed_form`` from statistics of every system, (..., statistic)."""
    variables = {
        name: (("system", *_dims(name), "statistic"), np.stack(by_system), dict(attrs))
        for name, by_system in rows.items()
    }
    return xr.Dataset(variables, {**_coords(asked), "statistic": list(STATISTICS)})


def read_result(costs: object) -> Result:
    """Return a result of costs as fields, or say what is wrong with it."""
    result = Result.of(costs)  # type: ignore[arg-type]
    if not result.of_costs:
        raise ArgumentError(
            "fit", " must be a result of bayesatk.costs.evaluate_cost; it has no "
            "costs. Use bayesatk.costs.evaluate_cost(data).",
        )  # fmt: skip
    return result


def cells_of(variables: xr.Dataset) -> list[tuple[str, dict[str, Any]]]:
    """Return every quantity of a group: its name, and its k or budget."""
    cells = []
    for name in variables.data_vars:
        if "target" not in variables[name].dims:
            continue
        dim = "k" if "k" in variables[name].dims else "budget"
        values = variables[dim].values.tolist() if dim in variables[name].dims else [None]
        cells += [(str(name), {} if level is None else {dim: level}) for level in values]
    return cells


def cost_table(fit: Fit) -> pd.DataFrame:
    """Tabulate a result of costs: one row per system, quantity and target.

    Parameters
    ----------
    fit : xarray.DataTree
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
    >>> rows = bk.table(bk.costs.evaluate_cost(data, rng=1), "costs").set_index("quantity")
    >>> rows.loc["cost_of_pass", "estimate"].round(6).tolist()  # a trial costs 2, 3 of 4 succeed
    [2.666667, 2.666667]
    """
    result = read_result(fit)
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
