"""A k-metric against k."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.metrics.grid import Metric
from bayesatk.plots.bands import simultaneous_band
from bayesatk.plots.canvas import (
    add_legend,
    backend_name,
    colors,
    dotted,
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
from bayesatk.plots.labels import TARGET_NAMES, estimand, shortened
from bayesatk.plots.request import chosen_curve, chosen_targets
from bayesatk.results.ranges import ranges_beyond
from bayesatk.results.result import Result

_ENDS = ("lower", "upper")


def plot_curve(
    result: xr.DataTree | Result,
    metric: str = "pass@",
    target: str | None = None,
    *,
    backend: str | None = None,
) -> Any:
    """Plot a metric against k: one line per system, with a simultaneous credible band.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    metric : str
        Which curve: ``"pass@"``, ``"pass^"``, ``"maj@"``, ...; ``"g-pass@:0.5"`` names a tau.
        ``"pass@4"`` is the same curve as ``"pass@"``.
    target : {"questions", "population"}, optional
        Show one panel instead of two: the mean over these questions, or over questions like these.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``band``, ``band_lower``, ``band_upper``, ``line``, ``point`` and
        ``estimate``; where k exceeds the trials also ``range_lower`` and ``range_upper``; x is
        log2(k).

    Raises
    ------
    ValueError
        If the result does not have the metric at two ks or more.

    See Also
    --------
    bayesatk.evaluate : makes the result.
    bayesatk.table : the same numbers.

    Notes
    -----
    Lines and filled markers are posterior means. Open markers are the unbiased estimates, where
    every question has k trials. A band contains the curve of its system at all shown k at the same
    time with the probability of the result's interval (computed from the joint draws). For k
    beyond the trials, thin dotted lines are the range of `bayesatk.extrapolation_range`, at the
    confidence of the interval. More than four systems are drawn in several rows of panels, best
    first.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0], [1, 1, 0, 1]], "pass@1,2,4", rng=1)
    >>> plot = plot_curve(fit, target="questions")
    >>> plot.get_viz("line").get_xdata().tolist()
    [0.0, 1.0, 2.0]
    """
    name = backend_name(backend)
    read = Result.of(result)
    metrics, targets = chosen_curve(read, metric), chosen_targets(target, read.targets)
    curves = _curves(read, metrics, targets)
    systems, all_systems = curves["system"].values.tolist(), read.systems
    groups, number = curves.sizes["group"], len(all_systems)
    names = shortened(systems)
    width = 0.6 + 3.8 * len(targets) + legend_width(names)
    plot = open_figure(
        curves, name, (width, 1.4 + 2.9 * groups), rows=["group"], cols=["target"],
        styles={
            "color": (["system"], _as_ranked(colors(number), all_systems, systems)),
            "linestyle": (["system"], _as_ranked(lines(name, number), all_systems, systems)),
            "marker": (["system"], _as_ranked(markers(name, number), all_systems, systems)),
        },
    )  # fmt: skip
    _draw(plot, curves, name)
    titles = [TARGET_NAMES[panel_target] for _ in range(groups) for panel_target in targets]
    set_panels(
        plot,
        titles=titles,
        ylim=_limits(curves),
        xticks=_ticks([curve_metric.k for curve_metric in metrics]),
    )
    label_axes(plot, "k (trials judged, log scale)", estimand(metrics[0], over_k=True))
    add_legend(plot, "system", dict(zip(systems, names, strict=True)), "system")
    return finish(plot, _headline(metrics[0]), *_details(read, curves))


def _as_ranked(styles: list[Any], systems: list[Any], ranked: list[Any]) -> list[Any]:
    """Give every system the style of its place in the result, the same in every curve."""
    by_system = dict(zip(systems, styles, strict=True))
    return [by_system[system] for system in ranked]


def _curves(result: Result, metrics: list[Metric], targets: list[str]) -> xr.Dataset:
    """Mean, band and estimate over log2(k), dims (group, target, system, k), best system first."""
    family, tau = metrics[0].family, metrics[0].tau
    pick: dict[str, Any] = {"target": targets} | ({} if tau is None else {"tau": tau})
    statistics = result.statistics[family.variable].sel(pick)
    draws = result.posterior[family.variable].sel(pick)
    draws = draws.stack(sample=("chain", "draw")).transpose("target", "system", "sample", "k")
    ends = np.array(
        [
            [simultaneous_band(curve_draws, result.ci_prob) for curve_draws in row]
            for row in draws.values
        ]
    )  # (target, system, end, k)
    mean = statistics.sel(statistic="mean", drop=True).transpose("target", "system", "k")
    values = {
        "mean": mean,
        "lower": mean.copy(data=ends[:, :, 0]),
        "upper": mean.copy(data=ends[:, :, 1]),
    }
    if "estimate" in statistics["statistic"].values:
        values["estimate"] = statistics.sel(statistic="estimate", drop=True).transpose(*mean.dims)
    values |= _ranges(result, metrics, mean)
    best = mean.isel(k=-1, target=0).values
    order = np.argsort(-best, kind="stable")
    member = np.arange(len(order)) // 4  # curves with bands that can be told apart
    group = xr.DataArray(member, dims="system", coords={"system": mean["system"].values[order]})
    curves = xr.Dataset(values).isel(system=order)
    return xr.concat(
        [curves.where(group == index) for index in range(member[-1] + 1)],
        dim=xr.DataArray(np.arange(member[-1] + 1), dims="group", name="group"),
    )


def _ranges(result: Result, metrics: list[Metric], like: xr.DataArray) -> dict[str, xr.DataArray]:
    """Family-free ranges from the last k within the trials on; nothing if no k is beyond them."""
    ends = ranges_beyond(result, metrics, within=1)
    if np.isnan(ends).all():
        return {}
    ranges = xr.DataArray(
        ends, dims=("system", "k", "target", "end"),
        coords={"system": result.systems, "k": [metric.k for metric in metrics]}
        | {"target": list(result.targets)},
    ).sel(target=like["target"].values)  # fmt: skip
    ranges = ranges.transpose("end", *like.dims)
    return {f"range_{name}": like.copy(data=ranges.values[i]) for i, name in enumerate(_ENDS)}


def _draw(plot: Any, curves: xr.Dataset, backend: str) -> None:
    """Draw bands below lines below markers."""
    x = xr.zeros_like(curves["mean"]) + np.log2(curves["k"])
    x = x.where(curves["mean"].notnull())

    def xy(values: xr.DataArray) -> xr.Dataset:
        points = xr.concat(
            [x, values], dim=xr.DataArray(["x", "y"], dims="plot_axis", name="plot_axis")
        )
        return points.to_dataset(name="value")

    styled = {"linestyle", "marker"}
    draw_band(plot, x, curves, styled)
    for end in _ENDS:
        data = xy(curves[end])
        plot.map(az.visuals.line_xy, f"band_{end}", data=data, ignore_aes={"marker"}, width=0.7)
        if f"range_{end}" in curves:
            plot.map(
                az.visuals.line_xy, f"range_{end}", data=xy(curves[f"range_{end}"]),
                ignore_aes=styled, linestyle=dotted(backend), width=1.2,
            )  # fmt: skip
    plot.map(az.visuals.line_xy, "line", data=xy(curves["mean"]), ignore_aes={"marker"}, width=1.8)
    size = marker_size(backend, 22.0)
    data = xy(curves["mean"])
    plot.map(az.visuals.scatter_xy, "point", data=data, ignore_aes={"linestyle"}, size=size)
    if "estimate" in curves:
        data = xy(curves["estimate"].where(curves["estimate"].notnull()))
        plot.map(
            open_points, "estimate", data=data, ignore_aes={"linestyle"}, width=1.3,
            size=marker_size(backend, 60.0), facecolor=no_fill(backend),
        )  # fmt: skip


def _limits(curves: xr.Dataset) -> tuple[float, float]:
    """Limits that show every band and estimate."""
    low = min(float(values.min()) for values in curves.data_vars.values())
    high = max(float(values.max()) for values in curves.data_vars.values())
    space = 0.04 * max(high - low, 0.05)
    return low - space, high + space


def _ticks(ks: list[int]) -> tuple[list[float], list[str]]:
    """Return every k where there is room, else powers of two."""
    log_k = np.log2(ks)
    if (np.diff(log_k) < 0.3).any():
        ks = [2**power for power in range(int(np.ceil(log_k[0])), int(np.floor(log_k[-1])) + 1)]
    return np.log2(ks).tolist(), [str(k) for k in ks]


def _headline(metric: Metric) -> str:
    return f"{estimand(metric, over_k=True).split(' (')[0]} against k"


def _details(result: Result, curves: xr.Dataset) -> list[str]:
    """Caption: what lines, bands and markers are."""
    probability = f"{100 * result.ci_prob:g}%"
    details = [
        f"Line: posterior mean. Band: contains the whole curve with probability {probability} "
        "(simultaneous over k, equal tails)."
    ]
    if "range_lower" in curves:
        details.append(
            "Thin dotted: range beyond the trials over all difficulty distributions that agree "
            f"with the counts ({probability} confidence)."
        )
    if "estimate" in curves and bool(curves["estimate"].notnull().any()):
        details.append("Open marker: unbiased estimate from the observed trials (finite law).")
    return details
