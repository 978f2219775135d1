"""Figures on any backend of arviz-plots: size, styles, axis labels, legend, title."""

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.plots.labels import markup, wrapped

# Okabe and Ito's palette without its yellow, which vanishes on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY, DARK = "#767676", "#333333"
_LINES = {
    "matplotlib": ("-", "--", ":", "-."),
    "plotly": ("solid", "dash", "dot", "dashdot"),
    "bokeh": ("solid", "dashed", "dotted", "dashdot"),
}
_MARKERS = {
    "matplotlib": ("o", "s", "^", "D", "v"),
    "plotly": ("circle", "square", "triangle-up", "diamond", "triangle-down"),
    "bokeh": ("circle", "square", "triangle", "diamond", "inverted_triangle"),
}
_REMEDY = {
    "matplotlib": "pip install matplotlib",
    "plotly": "pip install plotly webcolors",
    "bokeh": "pip install bokeh",
}


def backend_name(backend: str | None) -> str:
    """Return the backend to draw with, having made sure that it is there.

    Parameters
    ----------
    backend : {"matplotlib", "plotly", "bokeh"} or None
        None is ArviZ's ``rcParams["plot.backend"]``.

    Raises
    ------
    ValueError
        If there is no such backend.
    ImportError
        If it is not installed, with what to install.
    """
    name = str(backend or az.rcParams["plot.backend"])
    if backend is None and name == "none":
        name = "matplotlib"
    if name not in _REMEDY:
        raise ValueError(f"backend must be one of {', '.join(_REMEDY)}; got {backend!r}.")
    try:
        import_module(f"arviz_plots.backend.{name}")
    except ImportError as error:
        raise ImportError(
            f"backend {name!r} is not installed ({error}). Install it with {_REMEDY[name]}, or "
            "pass backend= for another."
        ) from error
    return name


def lines(backend: str, number: int) -> list[str]:
    """Line styles that differ in black and white."""
    return [_LINES[backend][i % len(_LINES[backend])] for i in range(number)]


def dotted(backend: str) -> str:
    """Return the line style of small dots."""
    return {"matplotlib": ":", "plotly": "dot", "bokeh": "dotted"}[backend]


def markers(backend: str, number: int) -> list[str]:
    """Markers that differ in black and white."""
    return [_MARKERS[backend][i % len(_MARKERS[backend])] for i in range(number)]


def colors(number: int) -> list[str]:
    """Colours that differ to the colour-blind."""
    return [COLORS[i % len(COLORS)] for i in range(number)]


def marker_size(backend: str, area: float) -> float:
    """Return a size as the backend measures it, from an area in square points."""
    return float(np.sqrt(area)) if backend == "bokeh" else float(area)


def no_fill(backend: str) -> str:
    """Return a colour that is not seen, as the backend writes it."""
    return "rgba(255, 255, 255, 0)" if backend == "plotly" else "#ffffff00"


def size_options(backend: str, size: tuple[float, float]) -> dict[str, Any]:
    """Return a figure's size in inches as the backend takes it."""
    if backend == "matplotlib":
        return {"figsize": size, "layout": "constrained"}
    return {"figsize": tuple(100 * side for side in size), "figsize_units": "dots"}


def open_systems(data: xr.Dataset, backend: str, number: int) -> Any:
    """Return square panels, one per system."""
    wide, high = min(number, 3), -(-number // 3)
    size = (max(5.5, 0.6 + 3.4 * wide), 1.1 + 3.3 * high)
    return open_figure(data, backend, size, cols=["system"], wrap=3)


def open_figure(
    data: xr.Dataset,
    backend: str,
    size: tuple[float, float],
    *,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    wrap: int | None = None,
    styles: Mapping[str, tuple[Sequence[str], Sequence[Any]]] | None = None,
) -> Any:
    """Return an `arviz_plots.PlotCollection` of panels.

    Parameters
    ----------
    data : xarray.Dataset
        Has the dimensions of the panels and of what is styled.
    backend : str
    size : (float, float)
        Inches.
    rows, cols : sequence of str
        Dimensions of the panels.
    wrap : int, optional
        Begin a new row of panels after so many.
    styles : mapping of aesthetic -> (dims, values)
        What tells the members of dims apart; ``"overlay"`` draws them alike.
    """
    aesthetics = styles or {}
    mapping = {name: list(dims) for name, (dims, _) in aesthetics.items()}
    values = {name: list(members) for name, (_, members) in aesthetics.items() if members}
    common = {
        "backend": backend,
        "figure_kwargs": size_options(backend, size),
        "aes": mapping,
        **values,
    }
    if wrap is not None:
        collection = az.PlotCollection.wrap(data, cols=list(cols), col_wrap=wrap, **common)
    else:
        collection = az.PlotCollection.grid(data, rows=list(rows), cols=list(cols), **common)
    collection.viz.attrs["inches"] = size[0]
    return collection


def draw_band(
    collection: Any, x: xr.DataArray, curves: xr.Dataset, ignored: Collection[str]
) -> None:
    """Fill what lies between the variables ``lower`` and ``upper`` over x."""
    band = xr.concat(
        [x, curves["lower"], curves["upper"]],
        dim=xr.DataArray(["x", "y_bottom", "y_top"], dims="kwarg", name="kwarg"),
    ).to_dataset(name="value")
    collection.map(az.visuals.fill_between_y, "band", data=band, ignore_aes=ignored, alpha=0.15)


def open_points(da: xr.DataArray, target: Any, color: str, **kwargs: Any) -> Any:
    """Draw markers without a fill, where there is a value."""
    points = da.dropna(next(dim for dim in da.dims if dim != "plot_axis"))
    return az.visuals.scatter_xy(points, target, edgecolor=color, **kwargs)


def panels(collection: Any) -> list[tuple[int, int, Any]]:
    """Row, column and target of every panel."""
    viz = collection.viz
    coordinates = (viz["row_index"].values, viz["col_index"].values, viz["plot"].values)
    return [
        (int(row), int(col), target)
        for row, col, target in zip(
            *(coordinate.ravel() for coordinate in coordinates), strict=True
        )
    ]


def label_axes(collection: Any, x: Sequence[str] | str | None, y: str | None) -> None:
    """Label the left and the lowest panels; `x` may be one text per panel."""
    draw = import_module(f"arviz_plots.backend.{collection.backend}")
    cells = panels(collection)
    for i, (row, col, target) in enumerate(cells):
        if x is not None:
            lowest = not any(r > row and c == col for r, c, _ in cells)
            text = x if isinstance(x, str) else x[i]
            if lowest or not isinstance(x, str):
                draw.xlabel(markup(text, collection.backend), target)
        if y is not None and col == 0:
            draw.ylabel(markup(y, collection.backend), target)


def set_panels(
    collection: Any,
    *,
    titles: Sequence[str] | None = None,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    xticks: tuple[Sequence[float], Sequence[str]] | None = None,
    yticks: tuple[Sequence[float], Sequence[str]] | None = None,
    tick_size: float | None = None,
) -> None:
    """Give all panels titles, limits and ticks; labels of y ticks only where a row begins."""
    backend = collection.backend
    draw = import_module(f"arviz_plots.backend.{backend}")
    font = {} if tick_size is None else {"size": tick_size}
    for i, (_, col, target) in enumerate(panels(collection)):
        if titles is not None:
            draw.title(
                markup(titles[i], backend), target, size=11 if backend == "matplotlib" else 14
            )
        if xlim is not None:
            draw.xlim(xlim, target)
        if ylim is not None:
            draw.ylim(ylim, target)
        if xticks is not None:
            names = [markup(name, backend) for name in xticks[1]]
            draw.xticks(list(xticks[0]), names, target, **font)
        if yticks is not None:
            names = [markup(name, backend) if col == 0 else "" for name in yticks[1]]
            draw.yticks(list(yticks[0]), names, target, **font)


class Named:
    """An ArviZ labeller that shows given names of one dimension."""

    def __init__(self, dim: str, names: Mapping[Any, str], backend: str) -> None:
        self._dim, self._names, self._backend = dim, names, backend

    def sel_to_str(self, sel: Mapping[str, Any], isel: Mapping[str, Any]) -> str:
        """Return the name of what is selected."""
        return markup(self._names[sel[self._dim]], self._backend)


def legend_width(names: Sequence[str]) -> float:
    """Inches that a legend with these names takes, about."""
    return 0.7 + 0.085 * max(map(len, names))


def add_legend(collection: Any, dim: str, names: Mapping[Any, str], title: str) -> None:
    """Put a legend of one styled dimension outside of the panels."""
    backend = collection.backend
    styled = {"color", "linestyle"} | ({"marker"} if backend == "matplotlib" else set())
    shown_styles = [
        name for name in ("color", "linestyle", "marker") if name in collection.aes_set & styled
    ]
    options: dict[str, Any] = {"margin": 5} if backend == "bokeh" else {}
    if backend == "matplotlib":
        options["loc"] = "outside right center"
        if "linestyle" not in shown_styles:
            options["visual_kwargs"] = {"linestyle": "none"}
    collection.add_legend(
        dim, aes=shown_styles, title=title, labeller=Named(dim, names, backend), **options
    )


def finish(collection: Any, headline: str, *details: str) -> Any:
    """Add title and caption; without a screen, leave nothing behind in pyplot."""
    backend, figure = collection.backend, collection.get_viz("figure")
    characters_per_inch = 12.5
    text = wrapped([headline, *details], int(characters_per_inch * collection.viz.attrs["inches"]))
    size = {"matplotlib": 11, "plotly": 14, "bokeh": "14px"}[backend]
    collection.add_title(markup(text, backend, as_html=True), size=size)
    if backend == "plotly":
        above = 50 + 20 * (1 + text.count("\n"))
        figure.update_layout(
            margin={"t": above}, height=figure.layout.height + above, title={"yref": "container"}
        )
    if backend == "matplotlib":
        _release(figure)
    return collection


def _release(figure: Any) -> None:
    """Take a figure that nobody can look at out of pyplot's list of open ones."""
    from matplotlib import get_backend, pyplot

    if get_backend().lower() in ("agg", "pdf", "ps", "svg", "cairo", "template"):
        pyplot.close(figure)
