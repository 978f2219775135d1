"""Success rates over days, and what they say about a change."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.comparison.order.changes import ChangePoint
from bayesatk.plots.canvas import (
    COLORS,
    DARK,
    backend_name,
    finish,
    label_axes,
    lines,
    marker_size,
    open_figure,
    set_panels,
)
from bayesatk.plots.labels import shortened


def plot_change_point(found: ChangePoint, *, backend: str | None = None) -> Any:
    """Plot success rates by day, the probability of a change on each, and the alarm.

    Parameters
    ----------
    found : ChangePoint
        From `bayesatk.change_point`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``line`` and ``points``, dims ``panel``, and ``threshold``.

    See Also
    --------
    bayesatk.change_point : computes the results that are shown.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> days = {"Mon": [[1, 1]] * 9, "Tue": [[1, 0]] * 9}
    >>> plot = plot_change_point(bayesatk.change_point(days, rng=1))
    >>> plot.get_viz("line", panel="rate").get_ydata().tolist()
    [1.0, 0.5]
    """
    name = backend_name(backend)
    if not isinstance(found, ChangePoint):
        raise TypeError(
            f"found must be the result of bayesatk.change_point; got {type(found).__name__}."
        )
    titles = {
        "rate": "observed success rate",
        "probability": "probability that a change came on this day",
        "log_e": "alarm: log of the evidence against no change so far",
    }
    table = found.by_day
    x = np.arange(len(table), dtype=float)
    values = np.stack([np.stack([x, table[column].to_numpy(float)]) for column in titles], axis=1)
    data = xr.DataArray(
        values, dims=("plot_axis", "panel", "day"),
        coords={"plot_axis": ["x", "y"], "panel": list(titles)},
    ).to_dataset(name="value")  # fmt: skip
    plot = open_figure(data, name, (6.4, 7.4), rows=["panel"])
    plot.map(az.visuals.line_xy, "line", data=data, color=COLORS[0], width=1.6)
    plot.map(
        az.visuals.scatter_xy, "points", data=data, color=COLORS[0], size=marker_size(name, 26.0)
    )
    level = -np.log(float(found.attrs["alpha"]))
    threshold = xr.full_like(data, np.nan)
    threshold["value"].loc["x"] = x
    threshold["value"].loc["y", "log_e"] = level
    plot.map(
        az.visuals.line_xy, "threshold", data=threshold, color=DARK, width=1.2,
        linestyle=lines(name, 2)[1],
    )  # fmt: skip
    labels = shortened(table["day"].tolist(), 16)
    day_step = -(-sum(len(label) + 2 for label in labels) // 64)  # characters beside each other
    ticks = x[::day_step].tolist(), labels[::day_step]
    set_panels(plot, titles=list(titles.values()), xticks=ticks)
    label_axes(plot, "day", None)
    return finish(
        plot, "Has it changed?", str(found), f"Dashed: the alarm is raised above log(1/alpha) = "
        f"{level:.2f}.",
    )  # fmt: skip
