"""The first table of a report: systems in order, each with its interval drawn in its row."""

from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.words import number_words, probability_words
from bayesatk.comparison.boards.board import leaderboard_rows
from bayesatk.posterior.models_of import observed_value
from bayesatk.results.result import Result
from bayesatk.results.tables import table


def scores(result: Result) -> list[dict[str, Any]]:
    """Return one table per metric, on questions like these, best system first.

    Of a result with a leaderboard they are its rows, with tiers and the probability of being best;
    else those of `bayesatk.table` by their means.
    """
    board = leaderboard_rows(result) if result.has("leaderboard") else None
    frame = pd.DataFrame(table(result)) if board is None else board
    frame = frame[frame["target"] == "population"].rename(columns={"estimate": "observed"})
    if "observed" not in frame:  # a sampled result holds no estimates
        metrics = {metric.label: metric for metric in result.metrics}
        position = {name: i for i, name in enumerate(result.systems)}
        pairs = zip(frame["system"], frame["metric"], strict=True)
        frame["observed"] = [observed_value(result, position[s], metrics[m]) for s, m in pairs]
    tables = []
    for metric in result.metrics:
        metric_rows = frame[frame["metric"] == metric.label].sort_values(
            "mean", ascending=False, kind="stable"
        )
        low, high = _ends(metric_rows)
        rows = metric_rows.to_dict("records")
        tiers = [int(row.get("tier", 1)) for row in rows]
        below = [
            tier != previous for tier, previous in zip(tiers, [tiers[0], *tiers], strict=False)
        ]
        tables.append(
            {
                "metric": metric.label,
                "ranked": board is not None,
                "rows": [
                    _row(row, low, high) | {"line": line}
                    for row, line in zip(rows, below, strict=True)
                ],
            }
        )
    return tables


def _ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the scale that all rows of a table share."""
    values = rows[["observed", "ci_lower", "ci_upper"]].to_numpy(float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.05 * max(high - low, 1e-6)
    return low - margin, high + margin


def _row(row: dict[Any, Any], low: float, high: float) -> dict[str, Any]:
    """Return the cells of a row as text, and its interval as places on the scale."""

    def at(value: float) -> float:
        return round(160 * (value - low) / (high - low), 1)  # of the view box of the page

    observed = float(row["observed"])
    cells: dict[str, Any] = {
        "system": str(row["system"]),
        "observed": "k > n" if np.isnan(observed) else number_words(observed),
        "mean": number_words(row["mean"]),
        "interval": f"{number_words(row['ci_lower'])} to {number_words(row['ci_upper'])}",
        "from": at(row["ci_lower"]), "to": at(row["ci_upper"]), "mark": at(row["mean"]),
        "seen": None if np.isnan(observed) else at(observed),
    }  # fmt: skip
    if "tier" in row:
        cells |= {
            "best": probability_words(row["prob_best"], 0.003),
            "ranks": f"{row['rank_lower']} to {row['rank_upper']}",
            "tier": str(row["tier"]),
        }
    return cells
