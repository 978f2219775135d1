"""The table of a leaderboard, as a group of a result and as text."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.words import probability_words
from bayesatk.results.result import Result


def leaderboard_group(
    result: Result, rows: pd.DataFrame, declared: NDArray[np.int8], attrs: dict[str, Any]
) -> xr.Dataset:
    """Return the group ``leaderboard``: the table of all metrics and targets, and declared orders.

    Parameters
    ----------
    result : Result
    rows : pandas.DataFrame
        A row per metric, target and system.
    declared : ndarray, shape (metrics, target, system, other)
    attrs : dict
    """
    keys = ["system", "metric", "target"]
    names = [column for column in rows.columns if column not in keys]
    labels, targets = [metric.label for metric in result.metrics], list(result.targets)
    order = pd.MultiIndex.from_product([result.systems, labels, targets])
    values = rows.set_index(keys)[names].astype(float).loc[order].to_numpy()
    shape = len(result.systems), len(labels), len(targets), len(names)
    systems = result.posterior["system"].values
    coords = {"system": systems, "metric": labels, "target": targets, "statistic": names}
    table = {
        "value": ((*keys, "statistic"), values.reshape(shape)),
        "separated": (("metric", "target", "system", "other"), declared),
    }
    return xr.Dataset(table, {**coords, "other": systems}, attrs)


def leaderboard_rows(result: Result) -> pd.DataFrame:
    """Return the table of a result that has the group ``leaderboard``, best first."""
    value = result.group("leaderboard")["value"]
    frame = value.to_dataframe().unstack("statistic")["value"].reset_index()
    frame.columns.name = None
    frame = frame[["system", "metric", "target", *value["statistic"].values]]
    integer_columns = ["rank", "rank_lower", "rank_upper", "tier", "questions", "trials"]
    keys = {name: i for i, name in enumerate(value["metric"].values)}
    places = frame["target"].map({name: i for i, name in enumerate(result.targets)})
    block = frame["metric"].map(keys) * len(result.targets) + places
    frame = frame.assign(block=block).sort_values(["block", "rank"], kind="stable")
    frame = frame.drop(columns="block").astype(dict.fromkeys(integer_columns, int))
    return frame.reset_index(drop=True)


def as_text(rows: pd.DataFrame, effective_draws: float, result: Result) -> pd.DataFrame:
    """Return rows of a leaderboard as a person reads them."""
    percent = f"{100 * result.ci_prob:g}% interval"

    def chance(p: float) -> str:
        share = min(max(p, 0.0), 1.0)  # a weighted share may be one by a rounding more
        return probability_words(share, float(np.sqrt(share * (1.0 - share) / effective_draws)))

    return pd.DataFrame({
        "rank": rows["rank"], "system": rows["system"].astype(str),
        "observed": ["k>n" if np.isnan(x) else f"{x:.3f}" for x in rows["observed"]],
        "mean": [f"{x:.3f}" for x in rows["mean"]],
        percent: [
            f"[{a:.3f}, {b:.3f}]" for a, b in zip(rows["ci_lower"], rows["ci_upper"], strict=True)
        ],
        "P(best)": [chance(x) for x in rows["prob_best"]],
        "P(top 3)": [chance(x) for x in rows["prob_top3"]],
        "ranks": [
            f"{a}-{b}" if a < b else f"{a}"
            for a, b in zip(rows["rank_lower"], rows["rank_upper"], strict=True)
        ],
        "tier": rows["tier"],
    })  # fmt: skip
