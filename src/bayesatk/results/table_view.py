"""How a table of results looks: both targets side by side, and what each column means."""

from html import escape
from typing import Any

import numpy as np
import pandas as pd

from bayesatk.results.schema import GROUPED_TARGETS, TARGET_NAMES

_NEEDED = {"system", "metric", "target", "mean", "sd", "ci_lower", "ci_upper"}
_MOST_ROWS = 60
_GROUPED = [
    f"{TARGET_NAMES['new_groups']} (target 'new_groups'): other questions of other groups like "
    "these. Those of 'population' are of the same groups."
]
_OBSERVED, _RANGE, _MISSING = "observed", "any shape", "if missing"


class ResultTable(pd.DataFrame):
    """A table of results that shows itself with both targets side by side.

    In every other respect it is an ordinary frame, and what is taken from it is one.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        if not set(self.columns) >= _NEEDED:
            return str(pd.DataFrame(self)._repr_html_())  # type: ignore[operator]
        page = side_by_side(self).to_html(index=False, max_rows=_MOST_ROWS, justify="left")
        lines = "".join(f"<br>{escape(line)}" for line in meanings(self))
        return f"<div>{page}<p><small>{lines.removeprefix('<br>')}</small></p></div>"

    def __repr__(self) -> str:
        if not set(self.columns) >= _NEEDED:
            return repr(pd.DataFrame(self))
        text = side_by_side(self).to_string(index=False, max_rows=_MOST_ROWS, line_width=None)
        return "\n".join([text, "", *meanings(self)])


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every system and metric, with numbers as text.

    Examples
    --------
    >>> numbers = {"mean": 0.5, "sd": 0.1, "ci_lower": 0.3, "ci_upper": 0.7}
    >>> rows = [{"system": "a", "metric": "bayes", "target": name, **numbers}
    ...         for name in ("questions", "population")]
    >>> side_by_side(pd.DataFrame(rows)).iloc[0].tolist()
    ['a', 'bayes', '0.500', '0.100', '[0.300, 0.700]', '0.500', '0.100', '[0.300, 0.700]']
    """
    interval = interval_heading(frame)
    by_target = {name: own for name, own in frame.groupby("target", sort=False)}
    first = next(iter(by_target.values()))
    columns: dict[tuple[str, str], list[Any]] = {
        ("", "system"): first["system"].tolist(),
        ("", "metric"): first["metric"].tolist(),
    }
    if "estimate" in frame:
        columns["", _OBSERVED] = ["k > n" if np.isnan(x) else f"{x:.3f}" for x in first["estimate"]]
    if "mean_if_wrong" in frame:
        pairs = zip(first["mean_if_wrong"], first["mean_if_right"], strict=True)
        seen = zip(first["estimate_if_wrong"], first["estimate_if_right"], strict=True)
        columns["", _MISSING] = [
            _bracketed(*(mean if np.isnan(own).any() else own))
            for mean, own in zip(pairs, seen, strict=True)
        ]
    for target in (name for name in GROUPED_TARGETS if name in by_target):
        own, heading = by_target[target], TARGET_NAMES[target]
        columns[heading, "mean"] = [f"{x:.3f}" for x in own["mean"]]
        columns[heading, "sd"] = [f"{x:.3f}" for x in own["sd"]]
        ends = zip(own["ci_lower"], own["ci_upper"], strict=True)
        columns[heading, interval] = [_bracketed(*each) for each in ends]
        if "range_lower" in frame:
            ends = zip(own["range_lower"], own["range_upper"], strict=True)
            columns[heading, _RANGE] = [_bracketed(*each) for each in ends]
    view = pd.DataFrame(columns)
    view.columns = pd.MultiIndex.from_tuples(list(columns))
    return view


def _bracketed(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"[{low:.3f}, {high:.3f}]"


def interval_heading(frame: pd.DataFrame) -> str:
    """Return the heading of intervals: their probability, where the frame knows it."""
    probability = frame.attrs.get("ci_prob")
    return "interval" if probability is None else f"{100 * probability:g}% interval"


def meanings(frame: pd.DataFrame) -> list[str]:
    """Say what each column is, a line each."""
    found = []
    if "estimate" in frame:
        found.append(
            f"{_OBSERVED}: unbiased estimate from the observed trials (k drawn without "
            "replacement); k > n where a question has fewer than k."
        )
    if "mean_if_wrong" in frame:
        found.append(
            f"{_MISSING}: the estimate (the mean where k > n) with every missing outcome wrong, "
            "and with every one right."
        )
    if "range_lower" in frame:
        found.append(
            f"{_RANGE}: where k exceeds the trials, the range over all difficulty distributions "
            "that agree with the counts; the interval assumes families."
        )
    return [
        *found,
        "mean, sd, interval: posterior mean, standard deviation and credible interval.",
        f"{TARGET_NAMES['questions']} (target 'questions'): new trials of exactly these questions.",
        f"{TARGET_NAMES['population']} (target 'population'): other questions from the same "
        "source; less certain, because the choice of the questions is random too.",
        *_GROUPED * ("new_groups" in set(frame["target"])),
        f"All columns, a row per target: pandas.DataFrame(table), {len(frame.columns)} columns.",
    ]
