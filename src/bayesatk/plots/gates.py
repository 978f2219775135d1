"""The posterior of the difference that a gate decides on, with its threshold."""

from typing import Any

import numpy as np
import xarray as xr

from bayesatk.metrics.grid import parse
from bayesatk.plots.canvas import COLORS, DARK, GREY, Backend, Canvas
from bayesatk.plots.request import estimand, interval_name
from bayesatk.results.analyses import analysis_table
from bayesatk.results.result import Result

_SIDES = {"above": COLORS[0], "below": COLORS[1]}


def plot_gate(fit: xr.DataTree | Result, *, backend: str | None = None) -> Any:
    """Plot the posterior of the difference between two systems, the threshold, and the verdict.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.decide.gate`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``above`` and ``below``, the density on either side of the threshold;
        ``threshold``, ``zero``, ``interval`` and ``mean`` of the difference.

    Raises
    ------
    ValueError
        If the result is not of a gate.

    See Also
    --------
    bayesatk.decide.gate : decides.

    Notes
    -----
    The gate passes if at least ``ci_prob`` of the area lies above the threshold, and fails if at
    least ``ci_prob`` lies below it. Floors have their sentences in the caption.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> old = [[1, 1, 1, 0]] * 20 + [[0, 1, 0, 0]] * 20
    >>> plot = plot_gate(bayesatk.decide.gate(old, old, metric="pass@1", margin=0.1))
    >>> float(plot.get_viz("threshold").get_xdata()[0])
    -0.1
    """
    drawn, read = Backend.named(backend), Result.of(fit, "gate")
    group, table = read.group("gate"), analysis_table(read, "gate")
    row = group.sel(check="difference")
    at, density = group["difference"].rename(difference="point"), group["density"].values
    height = float(np.nan_to_num(density).max()) or 1.0
    shape = at.copy(data=np.nan_to_num(density) / height)
    threshold = float(row["threshold"])
    canvas, marks = Canvas(drawn, xr.Dataset({"density": shape}), (6.8, 3.8)), drawn.marks
    low, high = min(float(at.min()), threshold, 0.0), max(float(at.max()), threshold, 0.0)
    for side, color in _SIDES.items():
        kept = at.clip(threshold, None) if side == "above" else at.clip(None, threshold)
        heights = np.interp(kept, at, shape, left=0.0, right=0.0)
        top = at.copy(data=heights)
        canvas.draw(marks.fill_between_y, side, kept, 0.0 * top, top, color=color, alpha=0.35)
    canvas.draw(
        marks.vline, "threshold", threshold, color=DARK, width=1.6, linestyle=drawn.lines[1]
    )
    canvas.draw(marks.vline, "zero", 0.0, color=GREY, width=0.8, linestyle=drawn.lines[2])
    ends = xr.concat([row["ci_lower"], row["ci_upper"]], dim="end").drop_vars("check")
    canvas.draw(marks.line, "interval", ends, -0.08, color=DARK, width=1.4)
    canvas.draw(marks.scatter, "mean", float(row["mean"]), -0.08, color=DARK, area=36.0)
    space = 0.06 * max(high - low, 0.02)
    canvas.label(
        f"new minus baseline, difference in {estimand(parse(group.attrs['metric'])[0])}",
        xlim=(low - space, high + space), ylim=(-0.18, 1.08), yticks=((), ()),
    )  # fmt: skip
    return canvas.finish(
        *table["sentence"],
        f"Blue: posterior above the threshold of {threshold:g} (dashed); orange: below it. Marker "
        f"and line: mean and {interval_name(read.ci_prob, read.ci_kind)}.",
    )
