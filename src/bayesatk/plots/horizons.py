"""A metric against a covariate, and where it crosses a level."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.comparison.pairs.horizons import Horizon
from bayesatk.plots.canvas import (
    DARK,
    add_legend,
    backend_name,
    colors,
    draw_band,
    finish,
    label_axes,
    legend_width,
    lines,
    marker_size,
    markers,
    no_fill,
    open_figure,
    open_points,
    set_panels,
)
from bayesatk.plots.labels import shortened


def plot_horizon(found: Horizon, *, backend: str | None = None) -> Any:
    """Plot a metric against a covariate, by system, and where it crosses the level.

    Parameters
    ----------
    found : Horizon
        From `bayesatk.horizon`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``band`` and ``line``, dims ``system``; ``level``; ``horizon`` and ``median``,
        the interval of the crossing and its median, as far as they are in the picture; ``observed``
        rates of questions of about equal values, for pass@1.

    See Also
    --------
    bayesatk.horizon : computes the horizons that are shown.
    bayesatk.predict : the numbers of the curves.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> size = [1, 2, 3, 4, 5, 6] * 6
    >>> runs = bayesatk.tally([[x < 4, x < 3, x < 5] for x in size], covariates={"size": size})
    >>> fit = bayesatk.evaluate(runs, "pass@1", covariates=["size"], rng=1)
    >>> plot = plot_horizon(bayesatk.horizon(fit, "size", rng=1))
    >>> plot.get_viz("level").get_ydata().tolist()
    [0.5, 0.5]
    """
    name = backend_name(backend)
    if not isinstance(found, Horizon):
        raise TypeError(
            f"found must be the result of bayesatk.horizon; got {type(found).__name__}."
        )
    systems = found.table["system"].tolist()
    names = shortened(systems)
    curves = _curves(found)
    number = len(systems)
    plot = open_figure(
        curves, name, (5.6 + legend_width(names), 4.4),
        styles={
            "color": (["system"], colors(number)),
            "linestyle": (["system"], lines(name, number)),
            "marker": (["system"], markers(name, number)),
        },
    )  # fmt: skip
    _draw(plot, found, curves, name)
    attrs = found.attrs
    x = curves["x"].values
    wide = 0.03 * (x.max() - x.min())
    ticks = _ticks(found) if _logarithmic(found) else None
    set_panels(plot, xlim=(x.min() - wide, x.max() + wide), ylim=(-0.03, 1.03), xticks=ticks)
    scale = " (log scale)" * _logarithmic(found)
    label_axes(
        plot, f"{attrs['covariate']}{scale}", f"{attrs['metric']}, {attrs['question']} question"
    )
    add_legend(plot, "system", dict(zip(systems, names, strict=True)), "system")
    percent = f"{100 * attrs['ci_prob']:g}%"
    details = [
        f"Line and band: posterior mean and {percent} interval at each value.",
        f"Thick: {percent} interval of where {attrs['level']:g} is crossed, within the picture.",
    ]
    if len(found.observed):
        details.append("Open markers: observed rates of questions of about equal values.")
    return finish(plot, f"{attrs['metric']} against {attrs['covariate']}", *details)


def _logarithmic(horizon: Horizon) -> bool:
    values = horizon.curves["value"]
    return bool(values.min() > 0.0 and values.max() > 8.0 * values.min())


def _on_axis(horizon: Horizon, values: Any) -> Any:
    """Values of the covariate on the axis."""
    values = np.asarray(values, float)
    if not _logarithmic(horizon):
        return values
    with np.errstate(divide="ignore"):
        return np.log2(values)


def _curves(horizon: Horizon) -> xr.Dataset:
    """Mean and ends over the axis, dims (system, point)."""
    systems = horizon.table["system"].tolist()
    curves = horizon.curves.set_index("system")
    columns = {"x": "value", "mean": "mean", "lower": "ci_lower", "upper": "ci_upper"}
    values = {
        name: np.stack([curves.loc[[system], column].to_numpy(float) for system in systems])
        for name, column in columns.items()
    }
    values["x"] = _on_axis(horizon, values["x"])
    return xr.Dataset(
        {name: (("system", "point"), column_values) for name, column_values in values.items()},
        {"system": systems},
    )


def _xy(x: Any, y: Any, systems: list[Any]) -> xr.Dataset:
    points = np.stack([np.broadcast_to(x, np.shape(y)), y])
    coords = {"plot_axis": ["x", "y"], "system": systems}
    return xr.Dataset({"value": (("plot_axis", "system", "point"), points)}, coords)


def _draw(plot: Any, horizon: Horizon, curves: xr.Dataset, backend: str) -> None:
    """Draw bands below lines below crossings."""
    systems, styled = horizon.table["system"].tolist(), {"linestyle", "marker"}
    draw_band(plot, curves["x"], curves, styled)
    data = _xy(curves["x"].values, curves["mean"].values, systems)
    plot.map(az.visuals.line_xy, "line", data=data, ignore_aes={"marker"}, width=1.8)
    ends = curves["x"].values[0, [0, -1]]
    level = float(horizon.attrs["level"])
    straight = xr.Dataset(
        {"value": (("plot_axis", "point"), np.stack([ends, [level, level]]))},
        {"plot_axis": ["x", "y"]},
    )
    plot.map(
        az.visuals.line_xy, "level", data=straight, ignore_aes="all", color=DARK, width=0.8,
        linestyle=lines(backend, 3)[2],
    )  # fmt: skip
    table = horizon.table
    sides = np.clip(_on_axis(horizon, table[["ci_lower", "ci_upper"]].to_numpy(float)), *ends)
    data = _xy(sides, np.full(sides.shape, level), systems)
    plot.map(az.visuals.line_xy, "horizon", data=data, ignore_aes=styled, width=4.5, alpha=0.6)
    middle = _on_axis(horizon, table[["median"]].to_numpy(float))
    middle = np.where((middle >= ends[0]) & (middle <= ends[1]), middle, np.nan)
    data = _xy(middle, np.full(middle.shape, level), systems)
    size = marker_size(backend, 50.0)
    plot.map(az.visuals.scatter_xy, "median", data=data, ignore_aes={"linestyle"}, size=size)
    if len(horizon.observed):
        _draw_observed(plot, horizon, systems, backend)


def _draw_observed(plot: Any, horizon: Horizon, systems: list[Any], backend: str) -> None:
    observed = horizon.observed.set_index("system")
    most = int(observed.groupby(level=0).size().max())
    points = np.full((2, len(systems), most), np.nan)
    for row, system in enumerate(systems):
        if system in observed.index:
            rows = observed.loc[[system]]
            points[:, row, : len(rows)] = _on_axis(horizon, rows["value"]), rows["rate"]
    plot.map(
        open_points, "observed", data=_xy(points[0], points[1], systems), ignore_aes={"linestyle"},
        size=marker_size(backend, 34.0), facecolor=no_fill(backend), width=1.1,
    )  # fmt: skip


def _ticks(horizon: Horizon) -> tuple[list[float], list[str]]:
    """Return powers of two within the picture, few enough to be read."""
    low, high = np.log2(horizon.curves["value"].min()), np.log2(horizon.curves["value"].max())
    powers = np.arange(np.ceil(low), np.floor(high) + 1)
    powers = powers[:: max(1, -(-len(powers) // 8))]
    return powers.tolist(), [f"{2.0**power:g}" for power in powers]
