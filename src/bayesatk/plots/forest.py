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

_WRAP = 3
_ALL_GROUPS = "all groups"
_CENTRAL_HALF = [0.25, 0.75]


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
    own = Result.of(result)
    if by_groups(own, by):
        return _by_group(own, chosen_metrics(own, metric)[0], name)
    metrics = chosen_metrics(own, metric)
    rows = xr.concat(
        [_forest_rows(own, one) for one in metrics],
        dim=xr.DataArray([one.label for one in metrics], dims="metric", name="metric"),
    )
    order = np.argsort(rows["mean"].isel(metric=0).sel(target="questions").values, kind="stable")
    rows = rows.isel(system=order)
    height = xr.DataArray(np.arange(len(order)), dims="system", coords={"system": rows["system"]})
    shift = _shifts(own.targets)
    plot = open_rows(
        rows, name, "system", len(metrics),
        legend_width([TARGET_NAMES[one] for one in own.targets]), _styles(name, len(own.targets)),
    )  # fmt: skip
    draw_rows(plot, rows, height + shift, name)
    systems = shortened(rows["system"].values.tolist())
    set_panels(
        plot, ylim=(-0.6, len(systems) - 0.4),
        yticks=(np.arange(len(systems)).tolist(), systems),
    )  # fmt: skip
    label_axes(plot, [estimand(one) for one in metrics], None)
    add_legend(plot, "target", {one: TARGET_NAMES[one] for one in own.targets}, "target")
    kind = interval_name(own.ci_prob, own.ci_kind)
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


def _by_group(own: Result, metric: Metric, backend: str) -> Any:
    """Plot every group of questions, a panel for each system."""
    systems = chosen_systems(own, None)
    whole = _forest_rows(own, metric).sel(target=list(TARGETS)).expand_dims(group=[_ALL_GROUPS])
    groups = _group_rows(own, metric)
    order = np.argsort(-groups["mean"].sel(target="questions").mean("system").values, kind="stable")
    labels = [str(one) for one in groups["group"].values]
    groups = groups.assign_coords(group=labels).isel(group=order)
    rows = xr.concat([whole, groups], dim="group").transpose("system", "group", "target")
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
    names = {one: f"{TARGET_NAMES[one]} in the group" for one in TARGETS}
    add_legend(plot, "target", names, "target")
    return finish(
        plot, "Groups of questions",
        f"Marker: posterior mean. Thin line: {interval_name(own.ci_prob, own.ci_kind)}. "
        "Pale bar: central 50%. Groups learn from each other.",
    )  # fmt: skip


def _group_rows(result: Result, metric: Metric) -> xr.Dataset:
    """Mean, interval and central half of one metric, dims (system, group, target)."""
    statistics = metric_values(result.group_statistics, metric)
    if result.has("group_closed_form_quantiles"):
        quantiles = metric_values(result.group("group_closed_form_quantiles"), metric)
        half = quantiles.sel(quantile=_CENTRAL_HALF, method="nearest")
    else:
        draws = metric_values(result.group("group_posterior"), metric)
        half = draws.quantile(_CENTRAL_HALF, dim=("chain", "draw"))
    found = {
        each: statistics.sel(statistic=each, drop=True) for each in ("mean", "ci_lower", "ci_upper")
    }
    found |= {f"half_{i}": half.isel(quantile=i, drop=True) for i in (0, 1)}
    return xr.Dataset(
        {
            each: values.transpose("system", "group", "target").drop_vars(
                ["k", "tau"], errors="ignore"
            )
            for each, values in found.items()
        }
    )


def _forest_rows(result: Result, metric: Metric) -> xr.Dataset:
    """Mean, interval and central half of one metric, dims (system, target)."""
    statistics = metric_values(result.statistics, metric)
    statistics = statistics.drop_vars(["k", "tau"], errors="ignore")
    if result.has("closed_form_quantiles"):
        half = metric_values(result.group("closed_form_quantiles"), metric).sel(
            quantile=_CENTRAL_HALF, method="nearest"
        )
    else:
        half = result.draws(metric).quantile(_CENTRAL_HALF, dim=("chain", "draw"))
    half = half.drop_vars(["k", "tau"], errors="ignore")
    found = {
        each: statistics.sel(statistic=each, drop=True) for each in ("mean", "ci_lower", "ci_upper")
    }
    found |= {f"half_{i}": half.isel(quantile=i, drop=True) for i in (0, 1)}
    return xr.Dataset(
        {each: values.transpose("system", "target") for each, values in found.items()}
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
    wide, high = min(number, _WRAP), -(-number // _WRAP)
    each = 1.1 + (0.42 if size <= 12 else 0.32) * size
    return open_figure(
        rows, backend, (max(6.5, 1.8 + 3.3 * wide + extra), 0.9 + high * max(each, 1.7)),
        cols=[panel], wrap=_WRAP, styles=styles | {"overlay": ([dim], ())},
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
