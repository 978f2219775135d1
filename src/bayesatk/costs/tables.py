"""Tables of results of costs: quantities, systems compared, the Pareto set."""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError, whole_number
from bayesatk._tools.words import equality_words, share_error
from bayesatk.results.costs import MONEY, cells_of, read_result
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGET_NAMES, TARGETS
from bayesatk.results.views import ShownTable


def compare_cost(fit: Fit) -> pd.DataFrame:
    """Tabulate differences and ratios of every pair of systems: a row per quantity and target.

    Probabilities are posterior: given the observed outcomes and costs.

    Parameters
    ----------
    fit : xarray.DataTree
        Of two systems or more that tried the same questions, from `bayesatk.costs.evaluate_cost`
        or `bayesatk.models.sample_cost`.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``other``, ``quantity``, ``k``, ``budget``, ``target``; of ``system``
        minus ``other``: ``difference`` (median), ``ci_lower``, ``ci_upper``; of ``system`` over
        ``other``: ``ratio`` (median), ``ratio_lower``, ``ratio_upper``; ``prob_greater``, with half
        the probability of a tie, and its Monte Carlo standard error ``prob_error``; ``sentence``.

    See Also
    --------
    bayesatk.costs.pareto : the Pareto set of all systems.
    bayesatk.plots.plot_cost : success against cost.

    Notes
    -----
    Given the data, systems are independent on these questions. For questions like these, all
    systems have the same bootstrap weights in each draw, so the part of the uncertainty that they
    share cancels in differences and ratios.

    Examples
    --------
    >>> import bayesatk as bk
    >>> runs = {"small": [[1, 0, 1, 0]] * 20, "large": [[1, 1, 1, 0]] * 20}
    >>> cost = {"small": [[1, 1.2, 1, 0.8]] * 20, "large": [[5, 6, 4, 5]] * 20}
    >>> fit = bk.costs.evaluate_cost(bk.tally(runs, cost=cost), rng=1)
    >>> row = compare_cost(fit).query("quantity == 'cost_of_pass'").iloc[0]
    >>> row["ratio"].round(1), row["prob_greater"] < 0.01  # 2 / 6.7
    (np.float64(0.3), np.True_)
    """
    result = _comparable(fit)
    pairs = list(combinations(result.systems, 2))
    rows = [row for pair in pairs for row in _rows(result, *pair)]
    return ShownTable.of(rows, "cost_comparison")


def _comparable(costs: Fit) -> Result:
    result = read_result(costs)
    if len(result.systems) < 2:
        raise ArgumentError(
            "fit", " must have at least two systems to compare; got one. Tally them "
            "together: ", Argument("data", {"a": ..., "b": ...}), ".",
        )  # fmt: skip
    tried = result.trials > 0
    if not (tried == tried[0]).all():
        raise ArgumentError(
            "fit", " must be of systems that tried the same questions to compare them; "
            f"they tried {tried.sum(axis=1).tolist()} of {tried.shape[1]}. Use data.shared().",
        )  # fmt: skip
    return result


def _rows(result: Result, system: Any, other: Any) -> Iterator[dict[str, Any]]:
    unit = str(result.tree.attrs.get("cost_unit", ""))
    for name, where in cells_of(result.posterior):
        values = result.posterior[name].sel(**where)
        for target in TARGETS:
            first, second = (
                values.sel(system=label, target=target).values.ravel() for label in (system, other)
            )
            contrast = _contrast(first, second, result.tails)
            row = {
                "system": system, "other": other, "quantity": name,
                "k": where.get("k", math.nan), "budget": where.get("budget", math.nan),
                "target": target, **contrast,
            }  # fmt: skip
            sentence = _sentence(row, (first, second), result, unit if name in MONEY else "")
            yield {**row, "sentence": sentence}


def _contrast(first: Array, second: Array, tails: tuple[float, float]) -> dict[str, float]:
    gap = first - second
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gap == 0.0, 1.0, first / second)
    low, middle, high = np.quantile(gap, [tails[0], 0.5, tails[1]])
    least, median, most = np.quantile(ratio, [tails[0], 0.5, tails[1]])
    above = float((gap > 0.0).mean() + 0.5 * (gap == 0.0).mean())
    return {
        "difference": float(middle), "ci_lower": float(low), "ci_upper": float(high),
        "ratio": float(median), "ratio_lower": float(least), "ratio_upper": float(most),
        "prob_greater": above, "prob_error": share_error(above, len(gap)),
    }  # fmt: skip


_WORDS = {
    "mean_cost": "a trial costs", "cost_if_right": "a trial that succeeds costs",
    "cost_if_wrong": "a trial that fails costs", "cost_of_pass": "a success costs",
    "pass_at_k": "pass@{k:g} is",
    "cost_to_success": "a question tried until it is solved, at most {k:g} times, costs",
    "tries_at_budget": "tries of a question for {budget:g} on average are",
    "pass_at_budget": "the share solved with as many tries as {budget:g} a question pays for is",
    "coverage_at_budget": "the share solved for {budget:g} a question on average, tries stopping "
    "at the first success, is",
}  # fmt: skip


def _sentence(
    row: dict[str, Any], draws: tuple[Array, Array], result: Result, unit: str
) -> str:  # fmt: skip
    """Return what a paper may print of a pair."""
    amounts = []
    for name, values in zip((row["system"], row["other"]), draws, strict=True):
        low, middle, high = np.quantile(values, [result.tails[0], 0.5, result.tails[1]])
        amounts.append(f"{_money(middle, unit)} with {name} ({_money(low)} to {_money(high)})")
    greater = row["prob_greater"] >= 0.5
    chance = equality_words(max(row["prob_greater"], 1.0 - row["prob_greater"]), 1e-3)
    percent = f"{100.0 * result.ci_prob:g}%"
    size = int((result.trials[0] > 0).sum())
    on = f"{size} questions" if row["target"] == "questions" else TARGET_NAMES["population"]
    phrase = _WORDS[row["quantity"]].format(k=row["k"], budget=row["budget"])
    return (
        f"Posterior median and {percent} interval, on {on}: {phrase} {' and '.join(amounts)}; the "
        f"ratio is {row['ratio']:.3g} ({row['ratio_lower']:.3g} to {row['ratio_upper']:.3g}), "
        f"P({row['system' if greater else 'other']} is higher) {chance}."
    )


def _money(value: float, unit: str = "") -> str:
    return f"{value:.3g}{f' {unit}' * bool(unit)}"


def chosen_k(result: Result, k: int | None) -> int:
    """Return the k of success that is meant: one that was evaluated, or the smallest."""
    evaluated_k = result.posterior["k"].values.tolist() if "k" in result.posterior.dims else []
    if not evaluated_k:
        rule = " must be evaluated with some k; got none. Evaluate costs with k=1."
        raise ArgumentError("fit", rule)
    wanted = min(evaluated_k) if k is None else whole_number("k", k)
    if wanted not in evaluated_k:
        raise ArgumentError(
            "k", f" must be one of {evaluated_k}, as evaluated; got {k}. Evaluate costs "
            f"with k={wanted}."
        )  # fmt: skip
    return int(wanted)


def pareto(fit: Fit, k: int | None = None) -> pd.DataFrame:
    """Compute the probability that a system is in the Pareto set of cost and success.

    A system is in the set if no other is at least as cheap and solves at least as much. The
    probability is posterior, given the observed outcomes and costs.

    Parameters
    ----------
    fit : xarray.DataTree
        As for `bayesatk.costs.compare_cost`.
    k : int, optional
        One of the evaluated k: systems are compared by ``pass_at_k`` and ``cost_to_success``, the
        cost of at most k tries. Default: the smallest.

    Returns
    -------
    pandas.DataFrame
        One row per system and target: ``cost`` and ``solved`` (posterior means), ``prob_pareto``,
        ``prob_cheapest``, ``prob_solves_most``, ``prob_cheapest_success`` (the lowest cost of
        pass), and ``prob_error``, the largest Monte Carlo standard error of these.

    See Also
    --------
    bayesatk.costs.compare_cost : pairs of systems.
    bayesatk.plots.plot_cost : success against cost.

    Examples
    --------
    >>> import bayesatk as bk
    >>> runs = {"small": [[1, 0, 1, 0]] * 20, "large": [[1, 1, 1, 0]] * 20}
    >>> cost = {"small": [[1, 1.2, 1, 0.8]] * 20, "large": [[5, 6, 4, 5]] * 20}
    >>> fit = bk.costs.evaluate_cost(bk.tally(runs, cost=cost), rng=1)
    >>> bool((pareto(fit)["prob_pareto"] > 0.9).all())  # one is cheap, the other solves more
    True
    """
    result = _comparable(fit)
    k, rows = chosen_k(result, k), []
    for target in TARGETS:
        target_draws = result.posterior.sel(target=target, k=k)
        cost, solved, cost_of_pass = (
            flat_draws(target_draws[name])
            for name in ("cost_to_success", "pass_at_k", "cost_of_pass")
        )
        chances = {
            "prob_pareto": _undominated(cost, solved), "prob_cheapest": _first(-cost),
            "prob_solves_most": _first(solved), "prob_cheapest_success": _first(-cost_of_pass),
        }  # fmt: skip
        for i, system in enumerate(result.systems):
            row = {name: float(probabilities[i]) for name, probabilities in chances.items()}
            error = max(share_error(share, len(cost)) for share in row.values())
            means = {"cost": float(cost[:, i].mean()), "solved": float(solved[:, i].mean())}
            rows.append({"system": system, "target": target, "k": k, **means, **row,
                         "prob_error": error})  # fmt: skip
    unit = str(result.tree.attrs.get("cost_unit", ""))
    shown = {"k": k, "unit": f" in {unit}" * bool(unit), "effective_draws": len(cost)}
    return ShownTable.of(pd.DataFrame(rows), "pareto", **shown)


def _undominated(cost: Array, solved: Array) -> Array:
    """Share of draws in which no other system is at least as good in both and better in one."""
    undominated = np.ones(cost.shape, bool)
    for i in range(cost.shape[1]):
        cheap = cost <= cost[:, i, None]
        good = solved >= solved[:, i, None]
        better = (cost < cost[:, i, None]) | (solved > solved[:, i, None])
        undominated[:, i] = ~(cheap & good & better).any(axis=1)
    return undominated.mean(axis=0)


def _first(values: Array) -> Array:
    """Share of draws in which each column is the largest; ties share."""
    top = values == values.max(axis=1, keepdims=True)
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))
