"""The canvas of every plot, on any backend of arviz-plots: panels, marks at coordinates, labels.

A plot opens a `Canvas` of panels, draws marks whose coordinates are labelled arrays, and finishes
it with limits, ticks, axis labels, a legend and a caption.
"""

import html
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partialmethod
from importlib import import_module
from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.metrics.grid import FAMILIES, Metric, MetricSpec, parse
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS

# Okabe and Ito's palette without its yellow, which vanishes on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY, DARK = "#767676", "#333333"
LINES = ("solid", "dashed", "dotted", "dashdot")  # styles of lines, as backends list theirs
_STYLED = {  # styles of a mark beside its colour
    "scatter": ("marker",),
    **dict.fromkeys(("line", "step", "vline", "hline"), ("linestyle", "width")),
}
Styles = Mapping[str, tuple[Sequence[str], Sequence[Any]]]  # aesthetic -> (dims, values)
Ticks = tuple[Sequence[float], Sequence[str]]


@dataclass(frozen=True)
class Backend:
    """Names of styles and units of a backend of arviz-plots.

    Parameters
    ----------
    name, remedy : str
        The backend, and the command that installs it.
    lines, markers : tuple of str
        Styles that differ in black and white: solid, dashed, dotted, and dash-dotted lines.
    invisible : str
        A transparent colour.
    """

    name: str
    remedy: str
    lines: tuple[str, ...]
    markers: tuple[str, ...]
    invisible: str = "#ffffff00"

    @classmethod
    def named(cls, name: str | None) -> "Backend":
        """Return the backend to draw with, having made sure that it is there.

        Parameters
        ----------
        name : {"matplotlib", "plotly", "bokeh"} or None
            None is ArviZ's ``rcParams["plot.backend"]``.

        Raises
        ------
        ValueError
            If there is no such backend.
        ImportError
            If it is not installed, with what to install.
        """
        usual = str(az.rcParams["plot.backend"])
        name = one_of("backend", name or usual.replace("none", "matplotlib"), list(_BACKENDS))
        backend = _BACKENDS[name]
        try:
            import_module(f"arviz_plots.backend.{backend.name}")
        except ImportError as error:
            raise ImportError(
                f"backend {backend.name!r} is not installed ({error}). Install it with "
                f"{backend.remedy}, or pass backend= for another."
            ) from error
        return backend

    @property
    def marks(self) -> Any:
        """The module with the functions that draw: ``line``, ``scatter``, ``fill_between_y``."""
        return import_module(f"arviz_plots.backend.{self.name}")

    def distinct(self, dim: str, positions: Sequence[int], *aesthetics: str) -> Styles:
        """Return styles that distinguish the members of a dimension, by their positions."""
        styles = {"color": COLORS, "linestyle": self.lines, "marker": self.markers}
        return {
            name: ([dim], [styles[name][number % len(styles[name])] for number in positions])
            for name in aesthetics or styles
        }

    def text(self, words: str, as_html: bool = False) -> str:
        r"""Return text with formulas and tags escaped, so that it is drawn literally.

        Parameters
        ----------
        words : str
            May have several lines.
        as_html : bool
            Whether it goes where Bokeh puts HTML.

        Examples
        --------
        >>> Backend.named("matplotlib").text("$x_1^"), Backend.named("plotly").text("<b> & $")
        ('\\$x_1^', '&lt;b&gt; &amp; &#36;')
        """
        if self.name == "matplotlib":
            return words.replace("$", r"\$")
        if self.name == "plotly" or as_html:
            safe = html.escape(words, quote=False).replace("$", "&#36;").replace("\\", "&#92;")
            return safe.replace("\n", "<br>")
        # Bokeh reads these as the start of a formula.
        for start in ("$$", r"\(", r"\[", r"\]", r"\)"):
            words = words.replace(start, start[0] + "\u200b" + start[1])
        return words

    def font(self, points: float) -> float:
        """Return the size of text that looks like `points` points of matplotlib."""
        return points if self.name == "matplotlib" else points + 3.0

    def size(self, inches: tuple[float, float]) -> dict[str, Any]:
        """Return a figure's size as the backend takes it."""
        if self.name == "matplotlib":
            return {"figsize": inches, "layout": "constrained"}
        return {"figsize": tuple(100 * side for side in inches), "figsize_units": "dots"}


_BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            "matplotlib", "pip install matplotlib", ("-", "--", ":", "-."),
            ("o", "s", "^", "D", "v"),
        ),
        Backend(
            "plotly", "pip install plotly webcolors", ("solid", "dash", "dot", "dashdot"),
            ("circle", "square", "triangle-up", "diamond", "triangle-down"),
            "rgba(255, 255, 255, 0)",
        ),
        Backend(
            "bokeh", "pip install bokeh", ("solid", "dashed", "dotted", "dashdot"),
            ("circle", "square", "triangle", "diamond", "inverted_triangle"),
        ),
    )
}  # fmt: skip


class Canvas:
    """A figure of panels.

    Parameters
    ----------
    backend : Backend
    data : xarray.Dataset
        Has the dimensions of the panels and of what is styled.
    inches : (float, float)
        Size of the figure.
    styles : mapping of aesthetic -> (dims, values)
        Styles that distinguish the members of dims; ``"overlay"`` draws them in one style.
    rows, cols : sequence of str
        Dimensions of the panels.
    wrap : int, optional
        Begin a new row of panels after so many.
    """

    def __init__(
        self,
        backend: Backend,
        data: xr.Dataset,
        inches: tuple[float, float],
        styles: Styles | None = None,
        *,
        rows: Sequence[str] = (),
        cols: Sequence[str] = (),
        wrap: int | None = None,
    ) -> None:
        self.backend, self.marks, self._width = backend, backend.marks, inches[0]
        self._dims = {name: list(dims) for name, (dims, _) in (styles or {}).items()}
        values = {name: list(members) for name, (_, members) in (styles or {}).items() if members}
        options = {"figure_kwargs": backend.size(inches), "aes": self._dims, **values}
        options |= {"backend": backend.name, "cols": list(cols)}
        if wrap is not None:
            self.plot = az.PlotCollection.wrap(data, col_wrap=wrap, **options)
        else:
            self.plot = az.PlotCollection.grid(data, rows=list(rows), **options)

    @classmethod
    def of_systems(
        cls, backend: Backend, data: xr.Dataset, styles: Styles | None = None
    ) -> "Canvas":
        """Return square panels, one per system."""
        wide, high = arranged(data.sizes["system"])
        inches = max(5.5, 0.6 + 3.4 * wide), 1.1 + 3.3 * high
        return cls(backend, data, inches, styles, cols=["system"], wrap=wide)

    def _draw(
        self,
        mark: str,
        visual: str,
        *coordinates: xr.DataArray | float,
        area: xr.DataArray | float | None = None,
        matplotlib: Mapping[str, Any] | None = None,
        **style: Any,
    ) -> None:
        """Draw a mark in every panel, for every member of the styled dimensions.

        Parameters
        ----------
        mark : str
            Function of arviz-plots that takes the coordinates.
        visual : str
            Name in the plot that is returned.
        *coordinates : xarray.DataArray or float
            By panel and member; a further dimension has the points of one mark. A point without
            all of its coordinates is not drawn; a line has a gap there.
        area : xarray.DataArray or float, optional
            Of markers, in square points.
        matplotlib : mapping, optional
            More of the style, for matplotlib alone.
        **style
            An array has a value for every mark. A style given here replaces that of the member. A
            line style is one of `LINES`.
        """
        panels = self.plot.viz["row_index"]
        arrays = xr.broadcast(*map(xr.DataArray, coordinates), panels)[:-1]
        data = xr.concat(arrays, "coordinate", coords="minimal", compat="override").astype(float)
        data = data.where(data.notnull().all("coordinate")).drop_attrs()
        if area is not None:
            style["size"] = area**0.5 if self.backend.name == "bokeh" else area
        if self.backend.name == "matplotlib":
            style |= matplotlib or {}
        if "linestyle" in style:
            style["linestyle"] = self.backend.lines[LINES.index(style["linestyle"])]
        draw = getattr(self.marks, mark)

        def visible(values: xr.DataArray, target: Any, **options: Any) -> Any:
            if values.ndim > 1 and mark != "line":
                values = values.dropna(next(dim for dim in values.dims if dim != "coordinate"))
            for name, value in options.items():
                options[name] = value.item() if isinstance(value, xr.DataArray) else value
            if "string" in options:
                options["string"] = self.backend.text(options["string"])
            return draw(*values.transpose("coordinate", ...).values, target=target, **options)

        styled = {"color", "overlay", *_STYLED.get(mark, ())}
        applied_styles = {
            name
            for name, dims in self._dims.items()
            if name not in style and name in styled and {*dims} <= {*data.dims}
        }
        self.plot.map(
            visible,
            visual,
            data=data.to_dataset(name="value"),
            ignore_aes={*self._dims} - applied_styles,
            **style,
        )

    line, step = partialmethod(_draw, "line"), partialmethod(_draw, "step")
    vline, hline = partialmethod(_draw, "vline"), partialmethod(_draw, "hline")
    vspan, hspan = partialmethod(_draw, "vspan"), partialmethod(_draw, "hspan")
    scatter, text = partialmethod(_draw, "scatter"), partialmethod(_draw, "text")
    fill_between_y, hist = partialmethod(_draw, "fill_between_y"), partialmethod(_draw, "hist")

    def label(
        self,
        x: Sequence[str] | str | None = None,
        y: str | None = None,
        *,
        titles: Sequence[str] | None = None,
        xlim: tuple[float, float] | None = None,
        ylim: tuple[float, float] | None = None,
        xticks: Ticks | None = None,
        yticks: Ticks | None = None,
        tick_points: float | None = None,
    ) -> None:
        """Give all panels titles, limits and ticks, and label the left and the lowest ones.

        `x` may be one text for each panel; labels of y ticks are only where a row begins.
        """
        marks, text, viz = self.marks, self.backend.text, self.plot.viz
        font = {} if tick_points is None else {"size": self.backend.font(tick_points)}
        columns = (viz[name].values.ravel() for name in ("row_index", "col_index", "plot"))
        panels = list(zip(*columns, strict=True))
        for i, (row, col, panel) in enumerate(panels):
            lowest = not any(r > row and c == col for r, c, _ in panels)
            x_label = (x if lowest else None) if isinstance(x, str) or x is None else x[i]
            for write, words in ((marks.xlabel, x_label), (marks.ylabel, None if col else y)):
                if words is not None:
                    write(text(words), panel)
            if titles is not None:
                marks.title(text(titles[i]), panel, size=self.backend.font(11))
            for limit, ends in ((marks.xlim, xlim), (marks.ylim, ylim)):
                if ends is not None:
                    limit(ends, panel)
            for tick, ticks, named in (
                (marks.xticks, xticks, True),
                (marks.yticks, yticks, col == 0),
            ):
                if ticks is not None:
                    names = [text(name) if named else "" for name in ticks[1]]
                    tick(list(ticks[0]), names, panel, **font)

    def legend(self, dim: str, names: Mapping[Any, str], title: str) -> None:
        """Put a legend of one styled dimension outside of the panels."""
        styles = ("color", "linestyle", "marker")[: 3 if self.backend.name == "matplotlib" else 2]
        shown_styles = [name for name in styles if name in self._dims]
        options: dict[str, Any] = {"margin": 5} if self.backend.name == "bokeh" else {}
        if self.backend.name == "matplotlib":
            options["loc"] = "outside right center"
            if "linestyle" not in shown_styles:
                options["visual_kwargs"] = {"linestyle": "none"}
        labeller = _Named(self.backend, dim, names)
        self.plot.add_legend(dim, aes=shown_styles, title=title, labeller=labeller, **options)

    def finish(self, headline: str, *details: str) -> Any:
        """Add title and caption, and return the `arviz_plots.PlotCollection`."""
        return captioned(self.plot, self.backend, self._width, headline, *details)


@dataclass(frozen=True)
class _Named:
    """An ArviZ labeller that shows the names of the members of one dimension."""

    backend: Backend
    dim: str
    names: Mapping[Any, str]

    def sel_to_str(self, sel: Mapping[str, Any], isel: Mapping[str, Any]) -> str:
        """Return the name of the selected member."""
        return self.backend.text(self.names[sel[self.dim]])


def arranged(panels: int) -> tuple[int, int]:
    """Return columns and rows of panels: at most three beside each other, four as two by two.

    Examples
    --------
    >>> arranged(2), arranged(4), arranged(5)
    ((2, 1), (2, 2), (3, 2))
    """
    columns = 2 if panels == 4 else min(panels, 3)
    return columns, -(-panels // columns)


def spaced(low: float, high: float) -> tuple[float, float]:
    """Return limits of an axis with some space beyond the values.

    Examples
    --------
    >>> [round(end, 12) for end in spaced(0.0, 1.0)]
    [-0.05, 1.05]
    """
    space = 0.05 * (max(high - low, 0.05 * abs(high)) or 1.0)
    return low - space, high + space


def upright(x: xr.DataArray, low: xr.DataArray, high: xr.DataArray, dim: str) -> list[xr.DataArray]:
    """Return x and y of one line with a vertical segment for every member of a dimension."""
    ends = xr.concat([low, high, xr.full_like(low, np.nan)], dim="end")
    return [
        values.rename({dim: "place"}).stack(point=("place", "end"), create_index=False)
        for values in xr.broadcast(x, ends)
    ]


def legend_width(names: Iterable[str]) -> float:
    """Return the approximate width in inches of a legend with these names."""
    return 0.7 + 0.085 * max(map(len, names))


def captioned(plot: Any, backend: Backend, width: float, headline: str, *details: str) -> Any:
    """Add title and caption to a plot of so many inches."""
    figure, characters_per_inch = plot.get_viz("figure"), 12.5
    plot.words = (headline, *details)  # for reports, which write them as text
    lines = [
        piece
        for line in (headline, *details)
        for piece in textwrap.wrap(
            line, max(int(characters_per_inch * width), 20), break_on_hyphens=False
        )
    ]
    size = "14px" if backend.name == "bokeh" else backend.font(11)
    plot.add_title(backend.text("\n".join(lines), as_html=True), size=size)
    if backend.name == "plotly":
        above = 50 + 20 * len(lines)
        figure.update_layout(
            margin={"t": above}, height=figure.layout.height + above, title={"yref": "container"}
        )
    return plot


def chosen_metrics(result: Result, metric: MetricSpec | None) -> list[Metric]:
    """Return the metrics to show: those given, or all that the result was asked for."""
    result_metrics = result.metrics
    if metric is None:
        return list(result_metrics)
    held = {member.label for member in result.grid}
    wanted = list(parse(metric))
    absent = [member.label for member in wanted if member.label not in held]
    if absent:
        raise ArgumentError(
            "metric",
            f" must be in the result; {', '.join(absent)} is not, it has "
            f"{', '.join(member.label for member in result_metrics)}. Ask evaluate (or sample) for "
            "it.",
        )
    return list(wanted)


def chosen_curve(result: Result, metric: str) -> list[Metric]:
    """Return the members of a family at every k of the result.

    Parameters
    ----------
    result : Result
    metric : str
        As in ``"pass@"``; ``"g-pass@:0.5"`` names a tau. A k, as in ``"pass@4"``, has no part in
        which curve it is.
    """
    grid = result.grid
    labels = " ".join(member.label for member in result.metrics)
    named, _, tau = str(metric).strip().lower().partition(":")
    symbol = named.rstrip("0123456789,")
    family = FAMILIES.get(symbol)
    remedy = f"Ask for more, as in evaluate(..., '{symbol}1,2,4,8')."
    if family is None or not family.has_k:
        curves = ", ".join(
            repr(name) for name, known_family in FAMILIES.items() if known_family.has_k
        )
        raise ArgumentError(
            "metric",
            f" must be a family over k, one of {curves}; got {metric!r}, and the result has "
            f"{labels}. {'' if family is None else 'It has no k. '}"
            "Ask for a curve, as in evaluate(..., 'pass@1,2,4,8').",
        )
    if family not in grid.families or len(grid.ks) < 2:
        raise ArgumentError(
            "metric",
            f" must have two ks or more in the result to be a curve; got {metric!r}, and the "
            f"result has {labels}. {remedy}",
        )
    if not family.has_tau:
        return [family.at(k) for k in grid.ks]
    taus = [value for value in grid.taus if not tau or abs(value - float(tau)) < 1e-9]
    if len(taus) != 1:
        raise ArgumentError(
            "metric",
            f" must name one tau of the result; got {metric!r}, and it has "
            f"{', '.join(f'{value:g}' for value in grid.taus)}. Write '{symbol}:{grid.taus[0]:g}'.",
        )
    return [family.at(k, taus[0]) for k in grid.ks]


def chosen_targets(target: str | None, targets: Sequence[str] = TARGETS) -> list[str]:
    """Return the targets to show: the one given, or all that there are."""
    if target is None:
        return list(targets)
    if target not in targets:
        raise ArgumentError(
            "target",
            f" must be one of {', '.join(targets)}, or None for all; got {target!r}.",
        )
    return [target]


def chosen_systems(result: Result, system: Any) -> list[Any]:
    """Return the systems to show: those given, or all; a panel is drawn for each."""
    wanted = result.systems
    result.positions(system)  # refuses what is none
    if system is not None:
        several = isinstance(system, Sequence) and not isinstance(system, str)
        wanted = list(system) if several else [system]
    if len(wanted) > 24:
        raise ArgumentError(
            "system",
            f" must name at most 24 systems, one panel each; got {len(wanted)}. "
            "Pass a list of labels as system=.",
        )
    return list(wanted)


def estimand(metric: Metric, over_k: bool = False) -> str:
    """Name a metric with its unit, as an axis label.

    Examples
    --------
    >>> from bayesatk.metrics.grid import parse
    >>> estimand(parse("pass^4")[0]), estimand(parse("g-pass@8:0.5")[0], over_k=True)
    ('pass^4 (probability)', 'g-pass@k:0.5 (probability)')
    """
    label = metric.label
    if over_k:
        label = metric.family.symbol + "k" + ("" if metric.tau is None else f":{metric.tau:g}")
    return f"{label} ({metric.family.unit})"


def interval_name(probability: float, kind: str) -> str:
    """Say which interval is drawn.

    Examples
    --------
    >>> interval_name(0.95, "eti")
    '95% equal-tailed interval'
    """
    words = {"eti": "equal-tailed", "hdi": "highest-density"}
    return f"{100 * probability:g}% {words[kind]} interval"


def shortened(labels: Iterable[object], width: int = 30) -> list[str]:
    """Return labels on one line, cut in the middle where long, and still all different.

    Examples
    --------
    >>> shortened(["a" * 20 + "1", "a" * 20 + "2"], width=9)
    ['aaaa…aaa1', 'aaaa…aaa2']
    >>> shortened(["a" * 20, "a" * 21], width=5)
    ['aa…aa', 'aa…aa #2']
    """
    short: list[str] = []
    for label in labels:
        visible = "".join(
            character if character.isprintable() else "" if ord(character) > 127 else " "
            for character in str(label)
        )
        text = " ".join(visible.split()) or "(unnamed)"
        if len(text) > width:
            head = width // 2
            text = text[:head] + "…" + text[len(text) - (width - head - 1) :]
        same = [earlier for earlier in short if earlier == text or earlier.startswith(f"{text} #")]
        short.append(f"{text} #{len(same) + 1}" if same else text)
    return short
