"""Tables as people read them, from their columns: text of any width, or HTML."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import Any, cast
from unicodedata import combining, east_asian_width

import numpy as np
import pandas as pd

from bayesatk._tools.words import printable
from bayesatk.results.schema import TARGET_NAMES
from bayesatk.results.table_columns import (
    CELL_MEANINGS,
    KEPT,
    PRINTED,
    TARGET_MEANINGS,
    TARGETS,
    Column,
    Row,
    form_of,
    shown_columns,
    title_of,
    written,
)

_GAP = "  "
_STACK_FROM = 3  # columns that leave before systems stand above their rows: from this place on
_MAX_ROWS = 60
# Shown as tables.
_TABULAR = (
    "categories", "coefficients", "results", "leaderboard", "comparison",
    "groups", "group_comparison", "plan", "random_baseline", "verification", *PRINTED,
)  # fmt: skip
_MAX_CHARACTERS = 2000  # of the sentences below a table
_SHOWN_ERROR = 2e-3  # standard error of a probability from which it is stated
_MIN_COLUMN_WIDTH = 8  # characters, of a column with folded text


@dataclass(frozen=True)
class View:
    """A table as people read it: a title, columns, cells, and sentences about it."""

    title: str
    columns: tuple[Column, ...]
    rows: list[list[str]]
    sentences: tuple[str, ...] = ()

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [column.heading for column in self.columns]

    @property
    def meanings(self) -> list[str]:
        """What the columns are, and cells that are no numbers, a line each."""
        cells = {cell for row in self.rows for cell in row}
        return [
            *(f"{column.heading}: {column.meaning}" for column in self.columns if column.meaning),
            *(f"{cell}: {meaning}" for cell, meaning in CELL_MEANINGS.items() if cell in cells),
        ]

    def text(self, width: int | None = None, most: int | None = None) -> str:
        """Return the table as lines of at most so many characters, or as wide as it is.

        Of a table that is wider, columns leave in their declared order, systems stand on a line
        of their own above their rows, and in the end texts are folded; names and the numbers asked
        for are whole at every width. The last line says which columns have left.
        """
        cells = [self._once(row, above) for above, row in pairwise([[""] * 99, *self.rows])]
        left_out = []
        shown = list(range(len(self.columns)))
        name = next((i for i in shown if self.columns[i].left), -1)
        while width is not None and _total(self._widths(cells, shown)) > width:
            leaving = max(shown, key=lambda i: self.columns[i].leaves)
            leaves = self.columns[leaving].leaves
            if name in shown and len(shown) > 1 and leaves < _STACK_FROM:
                shown.remove(name)
            elif leaves > KEPT:
                shown.remove(leaving)
                left_out.append(leaving)
            else:
                break
        for i in reversed(left_out):  # where systems stand above their rows some fit again
            if _total(self._widths(cells, sorted([*shown, i]))) <= (width or 0):
                shown = sorted([*shown, i])
        gone = [self.headings[i] for i in left_out if i not in shown]
        widths = self._folded(cells, shown, width)
        lines = self._line(self.headings, shown, widths)
        for position, (row, drawn) in enumerate(zip(self.rows, cells, strict=True)):
            if position == most:
                lines.append(f"... {len(self.rows) - position} more rows")
                break
            if name not in [*shown, -1] and (
                position == 0 or row[name] != self.rows[position - 1][name]
            ):
                lines.append(row[name])
            lines += self._line(drawn, shown, widths)
        if gone:
            lines += wrap(f"Left out at this width: {', '.join(gone)}.", width or 80)
        return "\n".join([*filter(None, [self.title]), *lines])

    def _once(self, row: list[str], above: list[str]) -> list[str]:
        """Return the cells of a row, blank where they repeat those of the row above.

        A number is that of the row above if the rows are of the same, but for the target.
        """
        cells, same = [], True
        for column, cell, before in zip(self.columns, row, above, strict=False):
            same &= cell == before or not column.left or column.heading == "target"
            cells.append("" if column.once and same and cell == before else cell)
        return cells

    def _widths(self, cells: list[list[str]], shown: list[int]) -> list[int]:
        return [max(map(cell_width, [self.headings[i], *(row[i] for row in cells)])) for i in shown]

    def _folded(self, cells: list[list[str]], shown: list[int], width: int | None) -> list[int]:
        """Return widths of columns, less of those with text where the table is too wide."""
        widths = self._widths(cells, shown)
        while width is not None and (excess := _total(widths) - width) > 0:
            texts = [i for i, position in enumerate(shown) if self.columns[position].left]
            widest = max(texts, key=lambda i: widths[i], default=0)
            if not texts or widths[widest] <= _MIN_COLUMN_WIDTH:
                break
            other_widths = max((widths[i] for i in texts if i != widest), default=_MIN_COLUMN_WIDTH)
            narrower = max(
                widths[widest] - excess, min(other_widths, widths[widest] - 1), _MIN_COLUMN_WIDTH
            )
            widths[widest] = narrower
        return widths

    def _line(self, cells: Sequence[str], shown: list[int], widths: list[int]) -> list[str]:
        pieces = [_pieces(cells[i], width) for i, width in zip(shown, widths, strict=True)]
        lines = []
        for number in range(max(map(len, pieces), default=0)):
            line = []
            for i, width, texts in zip(shown, widths, pieces, strict=True):
                text = texts[number] if number < len(texts) else ""
                blank = " " * (width - cell_width(text))
                line.append(text + blank if self.columns[i].left else blank + text)
            lines.append(_GAP.join(line).rstrip())
        return lines

    def html(self, most: int | None = None) -> str:
        """Return the table with its title, as HTML."""
        cells = pd.DataFrame(self.rows, columns=self.headings)
        page = cells.to_html(index=False, max_rows=most, justify="left")
        return f"<p>{escape(self.title)}</p>{page}" if self.title else page


def cell_width(text: str) -> int:
    """Return the columns of a terminal that a text takes.

    Examples
    --------
    >>> cell_width("ab"), cell_width("漢字")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def _pieces(text: str, width: int) -> list[str]:
    """Return a text in pieces that fit."""
    pieces = [""]
    for sign in text:
        if cell_width(pieces[-1] + sign) > width:
            pieces.append("")
        pieces[-1] += sign
    return pieces


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * max(len(widths) - 1, 0)


def view(frame: pd.DataFrame, name: str | None = None) -> View:
    """Return a table as people read it.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``sentence`` has what is said of a row.
    name : str, optional
        Of the table; default: what its attribute ``analysis`` says.

    Examples
    --------
    >>> frame = pd.DataFrame({"system": ["a", "b"], "mean": [0.51234, 0.5], "ci_lower": [0.4, 0.3],
    ...                       "ci_upper": [0.61, 0.7], "ci_error": [0.01, 0.01]})
    >>> print(view(frame).text())
    system   mean        interval
    a       0.512  [0.400, 0.610]
    b       0.500  [0.300, 0.700]
    >>> print(view(frame).text(24))
     mean        interval
    a
    0.512  [0.400, 0.610]
    b
    0.500  [0.300, 0.700]
    """
    name = str(frame.attrs.get("analysis", "")) if name is None else name
    if name in PRINTED:
        named = dict.fromkeys([*PRINTED[name].split(), "sentence", "target"])
        frame = frame[[column for column in named if column in frame]]
    columns = shown_columns(frame, name)
    described = frame.assign(_form=form_of(name)).to_dict("records")
    rows = [
        [written(column, label, cast("Row", row)) for label, column in columns.items()]
        for row in described
    ]
    filled = [i for i in range(len(columns)) if not rows or any(row[i] for row in rows)]
    stated = frame
    if "sentence" in frame and "target" in frame and "population" in set(frame["target"]):
        stated = frame[frame["target"] == "population"]
    sentences = tuple(map(str, stated.get("sentence", ())))
    if name == "comparison":  # of several pairs the table's own sentence is on all
        sentences = sentences[: len(frame[["system", "other"]].drop_duplicates()) == 1]
    return View(
        title_of(frame, name),
        tuple([*columns.values()][i] for i in filled),
        [[row[i] for i in filled] for row in rows],
        sentences,
    )


def blocks(frame: pd.DataFrame, name: str) -> list[View]:
    """Return the views of a table: of a leaderboard one for each metric and target, else one."""
    if name != "leaderboard" or not {"metric", "target"} <= {*frame}:
        return [view(frame, name)]
    views = []
    for (metric, target), rows in pd.DataFrame(frame).groupby(["metric", "target"], sort=False):
        first = rows[["rank", "system"]]
        certain = ["prob_top3"] * (len(rows) <= 3)
        shown = first.join(rows.drop(columns=[*first, "metric", "target", *certain]))
        shown.attrs = frame.attrs
        title = f"{metric}: systems ranked on {TARGET_NAMES[str(target)]}"
        views.append(replace(view(shown, name), title=title))
    return views


class ShownTable(pd.DataFrame):
    """A table that shows itself as a person reads it: by its declared columns, with sentences.

    In every other respect it is an ordinary frame. Some of its rows show themselves in the same
    way; with other columns it is shown as it stands.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return ShownTable

    @classmethod
    def of(cls, rows: Any, name: str, **attrs: Any) -> "ShownTable":
        """Return rows, or a frame, under the name of a table, with what columns need to know."""
        table = cls(rows)
        columns = json.dumps([*map(str, table)])
        table.attrs = dict(columns=columns) | attrs | dict(analysis=name)
        return table

    @property
    def sentences(self) -> list[str]:
        """What is shown below the table."""
        return [*json.loads(self.attrs.get("sentences", "[]"))]

    def parts(self) -> tuple[list[View], list[str]] | None:
        """Return views, and lines below them; None if the table is shown as it is."""
        if self.attrs.get("columns") != json.dumps([*map(str, self)]):
            return None
        name = self.attrs["analysis"]
        if name in _TABULAR:
            views = blocks(self, name)
            lines = [*legend(views, self), *_first(views[-1].sentences), *self.sentences]
        elif "sentence" in self:
            views, lines = [], [*self["sentence"], *self.sentences]
        else:
            return None
        return views, [printable(line) for line in dict.fromkeys(lines)]

    def __repr__(self) -> str:
        if (shown := self.parts()) is None:
            return repr(pd.DataFrame(self))
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        tables = (shown_part.text(width, _MAX_ROWS) for shown_part in shown[0])
        return "\n\n".join([*tables, *filter(None, ["\n".join(shown[1])])])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        if (shown := self.parts()) is None:
            return str(pd.DataFrame(self)._repr_html_())  # type: ignore[operator]
        lines = "".join(f"<p>{escape(line)}</p>" for line in shown[1])
        return f"<div>{''.join(shown_part.html(_MAX_ROWS) for shown_part in shown[0])}{lines}</div>"


def _first(sentences: Sequence[str]) -> list[str]:
    """Return the sentences that fit below a table, and how many more there are."""
    ends = np.cumsum([len(sentence) for sentence in sentences])
    fitting = max(int((ends <= _MAX_CHARACTERS).sum()), min(1, len(sentences)))
    more = len(sentences) - fitting
    tail = [f"... {more} more in the column 'sentence'."] if more else []
    return [*sentences[:fitting], *tail]


def legend(views: list[View], frame: pd.DataFrame) -> list[str]:
    """Say what columns and targets are, a line each."""
    lines = dict.fromkeys(line for shown_part in views for line in shown_part.meanings)
    targets = [name for name in dict.fromkeys(frame.get("target", ())) if name in TARGETS]
    return [
        *lines,
        *_simulation_error(frame),
        *(f"{TARGETS[name]} (target {name!r}): {TARGET_MEANINGS[name]}" for name in targets),
    ]


def _simulation_error(frame: pd.DataFrame) -> list[str]:
    """Say how well the probabilities are known, where they are shares of draws."""
    largest = 0.5 / np.sqrt(frame.attrs.get("effective_draws") or np.inf)
    if "monte_carlo_error" in frame:
        largest = frame["monte_carlo_error"].max()
    if not largest > _SHOWN_ERROR:
        return []
    sentence = f"Probabilities are shares of draws; their standard error is at most {largest:.2g}."
    if "end_error" not in frame.attrs:
        return [sentence]
    share = frame.attrs["end_error"]
    return [f"{sentence} That of an end of an interval is about {share:.1%} of its width."]
