"""Analyses as groups of a result, and their tables read back.

An analysis is a table with what it says and how it was made. As a group of a result it has a
variable for every column, whose dimensions are the columns that name what a row is of; attributes
are text and numbers, so that files keep them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arguments import one_of
from bayesatk._tools.words import probability_words
from bayesatk.data.outcomes import Outcomes
from bayesatk.results.result import Result
from bayesatk.results.schema import ANALYSES, TARGET_NAMES, build, root_attributes

_ROW = "table_row"  # place of a cell's row in the table; -1 where there is no row
_ABSENT = {"f": np.nan, "b": False, "i": 0, "u": 0}  # by kind of number, where there is no row


def analysis_group(
    table: pd.DataFrame,
    keys: Sequence[str],
    attrs: Mapping[str, Any],
    *,
    sentences: Sequence[str] = (),
    labels: Mapping[str, Sequence[Any]] | None = None,
) -> xr.Dataset:
    """Return a table as a group of a result.

    Parameters
    ----------
    table : pandas.DataFrame
    keys : sequence of str
        Columns that name what a row is of, the dimensions of the group; no two rows have the same.
    attrs : mapping
        How it was made. Lists and mappings are kept as JSON.
    sentences : sequence of str
        What is shown below the table.
    labels : mapping {key: labels}, optional
        All labels of a dimension in their order; default: those of the table, as they appear.

    Examples
    --------
    >>> frame = pd.DataFrame({"system": ["b", "a"], "rank": [1, 2]})
    >>> group = analysis_group(frame, ["system"], {}, labels={"system": ["a", "b"]})
    >>> group["rank"].sel(system="b").item(), table_of(group)["system"].tolist()
    (1, ['b', 'a'])
    """
    indexes = {key: pd.Index((labels or {}).get(key, table[key].drop_duplicates())) for key in keys}
    cells = tuple(index.get_indexer(table[key]) for key, index in indexes.items())
    shape = tuple(map(len, indexes.values()))
    columns = {_ROW: np.arange(len(table))}
    columns |= {name: table[name].to_numpy() for name in map(str, table) if name not in keys}
    variables = {}
    for name, values in columns.items():
        numbers = values.dtype.kind in _ABSENT
        typed = values if numbers else values.astype(object)
        absent = -1 if name == _ROW else _ABSENT.get(typed.dtype.kind, "")
        array = np.full(shape, absent, typed.dtype)
        array[cells] = typed
        variables[name] = list(keys), array
    described = {"columns": list(map(str, table)), "sentences": list(sentences), **attrs}
    texts: dict[str, Any] = {}
    for name, value in described.items():
        plain = isinstance(value, str | int | float)
        as_json = isinstance(value, list | dict)
        texts[name] = json.dumps(value, default=str) if as_json else value if plain else str(value)
    return xr.Dataset(variables, {key: index.to_numpy() for key, index in indexes.items()}, texts)


def with_analyses(tree: xr.DataTree, groups: Mapping[str, xr.Dataset]) -> xr.DataTree:
    """Return a copy of a result with the groups of an analysis, in place of earlier ones.

    The name of the first one begins the names of the others.
    """
    stem = next(iter(groups))
    analysed = tree.copy().drop_nodes([name for name in analyses_of(tree) if name.startswith(stem)])
    for name, group in groups.items():
        analysed[name] = xr.DataTree(group)
    return analysed


def tree_of(data: Outcomes | None, method: str, seed: str = "") -> xr.DataTree:
    """Return a result of data that an analysis takes as they are, without a posterior of metrics.

    Without data: of numbers that were stated.
    """
    attrs = root_attributes(method, "", seed, data, ())
    if data is None:
        return build({}, attrs)
    constant = xr.Dataset({"trials": data.trials, "missing": data.dataset["missing"]})
    observed = data.successes.rename("successes").to_dataset()
    return build({"observed_data": observed, "constant_data": constant}, attrs)


def analyses_of(tree: xr.DataTree) -> list[str]:
    """Return the names of the analyses that a result has."""
    return [name for name in ANALYSES if name in tree.children]


def analysis_table(
    result: xr.DataTree | Result, name: str, others: Sequence[str] = ()
) -> "AnalysisTable":
    """Return the table of an analysis that a result has; `others` are tables that are none."""
    one_of("what", name, (*others, *ANALYSES))
    return table_of(Result.of(result, name).group(name), name)


def table_of(group: xr.Dataset, name: str = "") -> "AnalysisTable":
    """Return the table that a group was made of."""
    columns = json.loads(group.attrs["columns"])
    keys = [key for key in columns if key in group.dims]
    values = group[[_ROW, *(column for column in columns if column not in keys)]]
    frame = values.to_dataframe(keys).reset_index()
    frame = frame[frame[_ROW] >= 0].sort_values(_ROW, ignore_index=True)
    table = AnalysisTable(frame[columns].infer_objects())  # zarr has a type of text of its own
    table.attrs = {**group.attrs, "analysis": name}
    return table


class AnalysisTable(pd.DataFrame):
    """A table of an analysis, which shows itself as a person reads it.

    In every other respect it is an ordinary frame. Some of its rows show themselves in the same
    way; with other columns it is shown as it stands.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return AnalysisTable

    @property
    def sentences(self) -> list[str]:
        """What is shown below the table."""
        return [*json.loads(self.attrs["sentences"])]

    def _shown(self) -> tuple[list[tuple[str, pd.DataFrame]], list[str]] | None:
        """Return readable tables under their headings, and sentences; None if shown as it is."""
        if self.attrs.get("columns") != json.dumps(list(map(str, self.columns))):
            return None
        blocks = _BLOCKS.get(self.attrs["analysis"])
        if self.attrs["analysis"] in _COLUMNS:
            blocks = _chosen_columns
        of_rows = _first_sentences([*self.get("sentence", [])])
        if blocks is None and not of_rows:
            return None
        return [] if blocks is None else [*blocks(self)], [*of_rows, *self.sentences]

    def __repr__(self) -> str:
        shown = self._shown()
        if shown is None:
            return repr(pd.DataFrame(self))
        blocks = [
            f"{heading}\n{rows.to_string(index=False, max_rows=_MOST_ROWS)}".lstrip("\n")
            for heading, rows in shown[0]
        ]
        return "\n\n".join([*blocks, *filter(None, ["\n".join(shown[1])])])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        shown = self._shown()
        if shown is None:
            return str(pd.DataFrame(self)._repr_html_())  # type: ignore[operator]
        blocks = [
            f"<p>{escape(heading)}</p>{rows.to_html(index=False, justify='left')}"
            for heading, rows in shown[0]
        ]
        return "<div>{}{}</div>".format(
            "".join(blocks), "".join(f"<p>{escape(sentence)}</p>" for sentence in shown[1])
        )


def readable(frame: pd.DataFrame, name: str) -> AnalysisTable:
    """Return a frame that prints the columns in `_COLUMNS` and whole sentences.

    Examples
    --------
    >>> row = {"system": "a", "floor": 0.25, "prob_within": 0.96, "sentence": "So it is."}
    >>> print(readable(pd.DataFrame([row]), "noise_floor"))
    system floor P(within)
         a 0.250     0.960
    <BLANKLINE>
    So it is.
    """
    table = AnalysisTable(frame)
    table.attrs |= {
        "columns": json.dumps(list(map(str, frame))), "sentences": "[]", "analysis": name,
    }  # fmt: skip
    return table


def _first_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the sentences that fit below a table, and how many more there are."""
    ends = np.cumsum([len(sentence) for sentence in sentences])
    fitting = max(int((ends <= _MOST_TEXT).sum()), min(1, len(sentences)))
    more = len(sentences) - fitting
    tail = [f"... {more} more in the column 'sentence'."] if more else []
    return [*sentences[:fitting], *tail]


Blocks = Iterable[tuple[str, pd.DataFrame]]
_MOST_ROWS, _MOST_TEXT = 20, 2000  # rows of a readable table, and characters of sentences below it

# Columns of a readable table: headings with the column, or the two columns of an interval.
_INTERVAL = {"interval": ("ci_lower", "ci_upper")}
_PAIR = {name: name for name in ("system", "other", "group", "metric", "target")}
_COLUMNS: dict[str, Mapping[str, str | tuple[str, str]]] = {
    "comparison": {
        **_PAIR, "difference": "mean", **_INTERVAL, "P(better)": "prob_greater",
        "verdict": "verdict",
    },
    "e_value": {
        **_PAIR, "e-value": "e_value", "estimate": "estimate", **_INTERVAL,
        "questions": "questions", "waiting": "waiting",
    },
    "noise_floor": {**_PAIR, "trials": "trials", "floor": "floor", "P(within)": "prob_within"},
    "criticise": {
        "system": "system", "check": "check", "observed": "observed", "expected": "expected",
        "sd": "sd", "p": "p_value", "flagged": "flagged",
    },
    "question_table": {
        **_PAIR, "question": "question", "weight": "weight", "trials": "trials",
        "successes": "successes", "rate": "rate", "score": "score", "mean": "mean", **_INTERVAL,
        "difference": "difference", "part": "part", "influence": "influence",
        "P(flip)": "prob_flip", "suspicious": "suspicious",
    },
    "check_trial_order": {
        "system": "system", "check": "check", "questions": "questions", "effect": "effect",
        "p": "p_value", "flagged": "flagged",
    },
    "tail_exponent": {
        "system": "system", "P(ceiling)": "prob_ceiling", "ceiling": "ceiling",
        "exponent": "exponent",
    },
}  # fmt: skip


def _chosen_columns(table: pd.DataFrame) -> Blocks:
    """Return the columns of a table that a person reads, as text."""
    frame, shown = pd.DataFrame(table), {}
    for heading, columns in _COLUMNS[table.attrs["analysis"]].items():
        if isinstance(columns, str):
            if columns in frame:
                shown[heading] = [_cell(value) for value in frame[columns].tolist()]
        elif set(columns) <= set(frame):
            ends = frame[list(columns)].to_numpy(float).tolist()
            shown[heading] = [f"[{_cell(low)}, {_cell(high)}]" for low, high in ends]
    yield "", pd.DataFrame(shown)


def _cell(value: object) -> str:
    """Write a value: three decimals, or two digits of a number that these would hide."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return "-"
    value += 0.0  # no negative zero
    return f"{value:.3f}" if value == 0.0 or 5e-4 <= abs(value) < 1e5 else f"{value:.1e}"


def _leaderboard_blocks(table: pd.DataFrame) -> Blocks:
    """Return a block for every metric and target."""
    for (metric, target), rows in pd.DataFrame(table).groupby(["metric", "target"], sort=False):
        yield f"{metric} on {TARGET_NAMES[str(target)]}", readable_board(rows, table.attrs)


def readable_board(rows: pd.DataFrame, attrs: Mapping[Any, Any]) -> pd.DataFrame:
    """Return rows of a leaderboard, of one metric and target, as a person reads them."""
    percent = f"{100 * attrs['ci_prob']:g}% interval"

    def chance(p: float) -> str:
        share = min(max(p, 0.0), 1.0)  # a weighted share may be one by a rounding more
        error = np.sqrt(share * (1.0 - share) / attrs["effective_draws"])
        return probability_words(share, float(error))

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


def _day_blocks(table: pd.DataFrame) -> Blocks:
    """Return the table of days, rounded."""
    rows = pd.DataFrame(table)
    yield "", pd.DataFrame({
        "day": rows["day"], "questions": rows["questions"], "trials": rows["trials"],
        "rate": [f"{x:.3f}" for x in rows["rate"]],
        "P(change began)": [probability_words(x) for x in rows["probability"]],
        "evidence (log e)": [f"{x:.2f}" for x in rows["log_e"]],
        "alarm": ["yes" if x else "" for x in rows["alarm"]],
    })  # fmt: skip


def _plan_blocks(table: pd.DataFrame) -> Blocks:
    """Return designs with whole numbers, and which one to choose."""
    rows = pd.DataFrame(table).dropna(axis="columns", how="all")
    shown: dict[str, list[str]] = {}
    for name, values in rows.items():
        if name in ("cheapest", "best"):
            mark = "fewest trials" if name == "cheapest" else "best"
            shown[""] = [mark if x else "" for x in values]
        elif name in ("width", "prob_correct", "cost"):
            shown[str(name)] = ["-" if np.isnan(x) else f"{x:.3f}" for x in values]
        else:
            shown[str(name)] = [f"{x:,.0f}" if np.isfinite(x) else "-" for x in values]
    counted = "Groups" if "groups" in rows else "Questions"
    yield f"{counted} needed for {table.attrs['metric']}", pd.DataFrame(shown)


# Readable tables of an analysis under their headings. One that is not listed here is shown by the
# sentences of its rows, or else as it stands.
_BLOCKS: dict[str, Callable[[pd.DataFrame], Blocks]] = {
    "leaderboard": _leaderboard_blocks, "change_point": _day_blocks, "plan": _plan_blocks,
}  # fmt: skip
