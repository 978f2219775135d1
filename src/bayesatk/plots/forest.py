"""Systems side by side: intervals of their metrics."""

from collections.abc import Sequence
from typing import Any, Literal

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.metrics.grid import Metric, MetricSpec
from bayesatk.plots.canvas import (
    COLORS,
    add_legend,
    backend_name,
    finish,
    label_axes,
    legend_width,
    lines,
    marker_size,
    markers,
    open_figure,
    set_panels,
)
from bayesatk.plots.labels import (
    TARGET_NAMES,
    estimand,
    interval_name,
    shortened,
)
from bayesatk.plots.request import chosen_metrics, chosen_systems
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values
from bayesatk.results.tables import by_groups


def plot_systems(
    result: xr.DataTree | Result,
    metric: MetricSpec | None = None,
    *,
    by: Literal["system", "group"] = "system",
    backend: str | None = None,
) -> Any:
    """Plot metrics of every system, or of every group, for all targets; best system on top.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    metric : str, Metric, or iterable of them, optional
        A panel for each; default: all metrics of the result. With ``by="group"``: one metric;
        default: the first.
    by : {"system", "group"}
        Rows are systems; or the groups of questions of a result with groups, hardest group on
        top, with a panel for each system and a last row for all groups.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``interval``, ``half`` and ``mean``, dims ``(metric, system, target)``.

    Raises
    ------
    ValueError
        If the result does not have the metric.

    See Also
    --------
    bayesatk.evaluate : makes the result.
    bayesatk.plots.plot_difference : differences, which overlapping intervals do not show.

    Notes
    -----
    Thin lines are the result's interval, pale bars the central half of the distribution: exact
    for a closed form, of the draws for a sampled result. Systems are in the order of their means of
    the first metric on these questions.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> runs = {"a": [[1, 1], [0, 1]], "b": [[0, 1], [0, 0]]}
    >>> fit = bayesatk.evaluate(runs, "pass@1", pooling="none", rng=1)
    >>> plot = plot_systems(fit)
    >>> mean = plot.get_viz("mean", system="a", target="questions")
    >>> mean.get_offsets()[0, 0].round(4).item()  # (3/4 + 1/2)/2
    0.625
    """
    name = backend_name(backend)
    fit = Result.of(result)
    if by_groups(fit, by):
        return _by_group(fit, chosen_metrics(fit, metric)[0], name)
    metrics = chosen_metrics(fit, metric)
    rows = xr.concat(
        [_rows(fit, shown_metric) for shown_metric in metrics],
        dim=xr.DataArray(
            [shown_metric.label for shown_metric in metrics], dims="metric", name="metric"
        ),
    )
    order = np.argsort(rows["mean"].isel(metric=0).sel(target="questions").values, kind="stable")
    rows = rows.isel(system=order)
    height = xr.DataArray(np.arange(len(order)), dims="system", coords={"system": rows["system"]})
    shift = _shifts(fit.targets)
    target_names = {target: TARGET_NAMES[target] for target in fit.targets}
    plot = open_rows(
        rows, name, "system", len(metrics),
        legend_width(list(target_names.values())), _styles(name, len(fit.targets)),
    )  # fmt: skip
    draw_rows(plot, rows, height + shift, name)
    systems = shortened(rows["system"].values.tolist())
    set_panels(
        plot, ylim=(-0.6, len(systems) - 0.4),
        yticks=(np.arange(len(systems)).tolist(), systems),
    )  # fmt: skip
    label_axes(plot, [estimand(shown_metric) for shown_metric in metrics], None)
    add_legend(plot, "target", target_names, "target")
    kind = interval_name(fit.ci_prob, fit.ci_kind)
    return finish(
        plot, "Systems", f"Marker: posterior mean. Thin line: {kind}. Pale bar: central 50%."
    )


def _shifts(targets: Sequence[str]) -> xr.DataArray:
    """Heights of the targets of a row, about its own."""
    ends = 0.14 if len(targets) == 2 else 0.22
    places = np.linspace(ends, -ends, len(targets))
    return xr.DataArray(places, dims="target", coords={"target": list(targets)})


def _styles(backend: str, targets: int) -> dict[str, Any]:
    """Colours, lines and markers of the targets."""
    return {
        "color": (["target"], COLORS[:targets]),
        "linestyle": (["target"], lines(backend, targets)),
        "marker": (["target"], markers(backend, targets)),
    }


def _by_group(fit: Result, metric: Metric, backend: str) -> Any:
    """Plot every group of questions, a panel for each system."""
    systems = chosen_systems(fit, None)
    all_groups = _rows(fit, metric).sel(target=list(TARGETS)).expand_dims(group=["all groups"])
    groups = _rows(fit, metric, by_group=True)
    order = np.argsort(-groups["mean"].sel(target="questions").mean("system").values, kind="stable")
    labels = [str(label) for label in groups["group"].values]
    groups = groups.assign_coords(group=labels).isel(group=order)
    rows = xr.concat([all_groups, groups], dim="group").transpose("system", "group", "target")
    size = rows.sizes["group"]
    height = xr.DataArray(np.arange(size), dims="group", coords={"group": rows["group"].values})
    plot = open_rows(
        rows, backend, "group", len(systems), legend_width(list(TARGET_NAMES.values())),
        _styles(backend, len(TARGETS)), "system",
    )  # fmt: skip
    draw_rows(plot, rows, height + _shifts(TARGETS), backend)
    set_panels(
        plot, titles=shortened(systems), ylim=(-0.6, size - 0.4),
        yticks=(list(range(size)), shortened(rows["group"].values.tolist())),
    )  # fmt: skip
    label_axes(plot, [estimand(metric)] * len(systems), None)
    names = {target: f"{TARGET_NAMES[target]} in the group" for target in TARGETS}
    add_legend(plot, "target", names, "target")
    return finish(
        plot, "Groups of questions",
        f"Marker: posterior mean. Thin line: {interval_name(fit.ci_prob, fit.ci_kind)}. "
        "Pale bar: central 50%. Groups learn from each other.",
    )  # fmt: skip


def _rows(result: Result, metric: Metric, by_group: bool = False) -> xr.Dataset:
    """Mean, interval and central half of one metric, dims (system[, group], target)."""
    central_half, prefix = [0.25, 0.75], "group_" * by_group
    statistics = metric_values(result.group_statistics if by_group else result.statistics, metric)
    if result.has(f"{prefix}closed_form_quantiles"):
        quantiles = metric_values(result.group(f"{prefix}closed_form_quantiles"), metric)
        half = quantiles.sel(quantile=central_half, method="nearest")
    else:
        draws = (
            metric_values(result.group("group_posterior"), metric)
            if by_group
            else result.draws(metric)
        )
        half = draws.quantile(central_half, dim=("chain", "draw"))
    ends = {name: statistics.sel(statistic=name, drop=True) for name in ("ci_lower", "ci_upper")}
    columns = ends | {f"half_{i}": half.isel(quantile=i, drop=True) for i in (0, 1)}
    columns |= {"mean": statistics.sel(statistic="mean", drop=True)}
    dims = ("system", "group", "target") if by_group else ("system", "target")
    return xr.Dataset(
        {
            name: values.drop_vars(["k", "tau"], errors="ignore").transpose(*dims)
            for name, values in columns.items()
        }
    )


def open_rows(
    rows: xr.Dataset,
    backend: str,
    dim: str,
    number: int,
    extra: float,
    styles: dict[str, Any],
    panel: str = "metric",
) -> Any:
    """Open a figure with one panel per metric, or another dimension, as high as its rows need."""
    size = rows.sizes[dim]
    wide, high = min(number, 3), -(-number // 3)
    panel_height = 1.1 + (0.42 if size <= 12 else 0.32) * size
    return open_figure(
        rows, backend, (max(6.5, 1.8 + 3.3 * wide + extra), 0.9 + high * max(panel_height, 1.7)),
        cols=[panel], wrap=3, styles=styles | {"overlay": ([dim], ())},
    )  # fmt: skip


def draw_rows(plot: Any, rows: xr.Dataset, y: xr.DataArray, backend: str) -> None:
    """Draw thin intervals, pale thick halves and means at the height of each row."""
    for label, ends, width in (
        ("interval", ("ci_lower", "ci_upper"), 1.3),
        ("half", ("half_0", "half_1"), 7.0),
    ):
        if ends[0] in rows:
            data = xr.concat([rows[end] for end in ends], dim="end").to_dataset(name="value")
            ignored, alpha, ends_at = {"marker"}, 1.0, {}
            if label == "half":  # pale and behind the mean: one bar, however short
                ignored, alpha = {"linestyle", "marker"}, 0.4
                ends_at = {"solid_capstyle": "butt"} if backend == "matplotlib" else {}
            plot.map(
                _line_at, label, data=data, y=y, ignore_aes=ignored & plot.aes_set, width=width,
                alpha=alpha, **ends_at,
            )  # fmt: skip
    plot.map(
        _point_at, "mean", data=rows["mean"].to_dataset(name="value"), y=y,
        ignore_aes={"linestyle"} & plot.aes_set, size=marker_size(backend, 32.0), width=0.5,
    )  # fmt: skip


def _line_at(da: xr.DataArray, target: Any, y: xr.DataArray, **kwargs: Any) -> Any:
    return az.visuals.line_x(da.values, target, y=float(y), **kwargs)


def _point_at(
    da: xr.DataArray, target: Any, y: xr.DataArray, color: str = COLORS[0], **kwargs: Any
) -> Any:
    return az.visuals.scatter_x(
        np.atleast_1d(da.values), target, y=float(y), facecolor=color, edgecolor=color, **kwargs
    )
