"""Differences between systems."""

from itertools import combinations
from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.metrics.grid import Metric, MetricSpec
from bayesatk.plots.canvas import COLORS, DARK, GREY, backend_name, finish, label_axes, set_panels
from bayesatk.plots.forest import draw_rows, open_rows
from bayesatk.plots.labels import (
    TARGET_NAMES,
    estimand,
    interval_name,
    markup,
    probability_text,
    shortened,
)
from bayesatk.plots.request import chosen_metrics, chosen_targets
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values


def plot_difference(
    compared: xr.DataTree | Result,
    metric: MetricSpec | None = None,
    target: str = "population",
    *,
    backend: str | None = None,
) -> Any:
    """Plot differences between systems with the probability that the first is better.

    Parameters
    ----------
    compared : xarray.DataTree
        From `bayesatk.compare`.
    metric : str, Metric, or iterable of them, optional
        A panel for each; default: all metrics of the result.
    target : {"population", "questions", "new_groups"}
        ``"population"``: questions like these; ``"questions"``: these questions; ``"new_groups"``:
        questions of new groups.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``interval``, ``mean``, ``probability``, ``zero`` and, if there is a region of
        practical equivalence, ``rope``; dims ``(metric, pair)``.

    Raises
    ------
    ValueError
        If the result was not compared, or lacks the metric or target.

    See Also
    --------
    bayesatk.compare : makes the result.
    bayesatk.comparison_table : the same numbers.

    Notes
    -----
    Every pair of up to six systems, the one with the higher mean (of the first metric) first; of
    more systems, the best against each other one.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
    >>> plot = plot_difference(bayesatk.compare(fit, rng=1), target="questions")
    >>> plot.get_viz("mean").get_offsets().round(4).tolist()  # 5/6 - 1/2
    [[0.3333, 0.0]]
    """
    name = backend_name(backend)
    read = Result.of(compared, "comparison")
    metrics, (shown_target,) = (
        chosen_metrics(read, metric),
        chosen_targets(target or "", read.targets),
    )
    rows = _difference_rows(read, metrics, shown_target)
    pairs = rows.sizes["pair"]
    height = xr.DataArray(np.arange(pairs), dims="pair", coords={"pair": rows["pair"]})
    plot = open_rows(rows, name, "pair", len(metrics), 0.5, {"color": (["metric"], COLORS[:1])})
    rope = float(read.group("comparison").attrs["rope"])
    low, high = _difference_limits(rows, rope)
    draw_rows(plot, rows, height, name)
    plot.map(
        _probability, "probability", data=rows["prob_greater"].to_dataset(name="value"), y=height,
        error=rows["monte_carlo_error"], ignore_aes={"color"}, x=high, backend=name,
        size=9 if name == "matplotlib" else 12,
    )  # fmt: skip
    _reference(plot, rope)
    set_panels(
        plot, ylim=(-0.7, pairs - 0.3),
        xlim=(low, high + 0.36 * (high - low)),
        yticks=(np.arange(pairs).tolist(), rows["label"].values.tolist()),
    )  # fmt: skip
    label_axes(plot, [f"difference in {estimand(shown_metric)}" for shown_metric in metrics], None)
    kind = interval_name(read.ci_prob, read.ci_kind)
    shaded = f" Shaded: practical equivalence, within {rope:g}." if rope > 0 else ""
    return finish(
        plot, f"Differences on {TARGET_NAMES[shown_target]}",
        f"Marker: posterior mean of the first system minus the second. Line: {kind}. "
        f"P: probability that the first is better.{shaded}",
    )  # fmt: skip


def _difference_rows(compared: Result, metrics: list[Metric], target: str) -> xr.Dataset:
    """Contrasts of the pairs to show, dims (metric, pair), the largest difference last."""
    dataset = compared.group("comparison")
    values = xr.concat(
        [
            metric_values(dataset, metric)
            .sel(target=target)
            .drop_vars(["k", "tau"], errors="ignore")
            for metric in metrics
        ],
        dim=xr.DataArray([metric.label for metric in metrics], dims="metric", name="metric"),
    )
    first = values.isel(metric=0).sel(contrast="mean").transpose("system", "other").values
    size = len(first)
    best = int(np.argmax(first.sum(axis=1)))
    candidates = list(combinations(range(size), 2))
    if size > 6:
        candidates = [(best, rival) for rival in range(size) if rival != best]
    pairs = [(i, j) if first[i, j] >= 0 else (j, i) for i, j in candidates]
    pairs.sort(key=lambda pair: first[pair])
    i, j = (xr.DataArray(list(positions), dims="pair") for positions in zip(*pairs, strict=True))
    contrasts = values.isel(system=i, other=j).drop_vars(["system", "other"])
    wanted = ("mean", "ci_lower", "ci_upper", "prob_greater", "monte_carlo_error")
    rows = xr.Dataset(
        {contrast: contrasts.sel(contrast=contrast, drop=True) for contrast in wanted}
    )
    systems = shortened(dataset["system"].values.tolist(), 22)
    labels = [f"{systems[a]} − {systems[b]}" for a, b in pairs]  # noqa: RUF001
    return rows.assign_coords(pair=np.arange(len(pairs)), label=("pair", labels))


def _difference_limits(rows: xr.Dataset, rope: float) -> tuple[float, float]:
    low = min(float(rows["ci_lower"].min()), -rope, 0.0)
    high = max(float(rows["ci_upper"].max()), rope, 0.0)
    space = 0.05 * max(high - low, 0.02)
    return low - space, high + space


def _probability(
    da: xr.DataArray, target: Any, y: xr.DataArray, error: xr.DataArray, backend: str, **kwargs: Any
) -> Any:
    """Write P(better) to the right of the intervals."""
    text = markup(f"P {probability_text(float(da), float(error))}", backend)
    return az.visuals.annotate_xy(
        da, target, text=text, y=float(y), color=DARK, horizontal_align="left", **kwargs
    )


def _reference(plot: Any, rope: float) -> None:
    """Mark no difference, and the region of practical equivalence."""
    zero = xr.zeros_like(plot.viz["row_index"], float).to_dataset(name="value")
    common = {"ignore_aes": "all", "color": DARK}
    plot.map(az.visuals.vline, "zero", data=zero, width=1.0, linestyle="C1", **common)
    if rope > 0:
        ends = zero + xr.DataArray([-rope, rope], dims="end")
        plot.map(az.visuals.vspan, "rope", data=ends, **(common | {"color": GREY}), alpha=0.25)
