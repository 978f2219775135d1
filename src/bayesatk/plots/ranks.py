"""How likely every rank of every system is."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.metrics.grid import MetricSpec
from bayesatk.plots.canvas import backend_name, finish, label_axes, open_figure, set_panels
from bayesatk.plots.labels import TARGET_NAMES, estimand, shortened
from bayesatk.plots.request import chosen_metrics, chosen_targets
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values

_WHITE_INK = 0.655  # where white on the cell begins to contrast more than black
_LEAST_SHADED = 0.005  # below this a cell stays white


def plot_ranks(
    compared: xr.DataTree | Result,
    metric: MetricSpec | None = None,
    target: str = "population",
    *,
    backend: str | None = None,
) -> Any:
    """Plot the probability of every rank of every system, written in its cell.

    Parameters
    ----------
    compared : xarray.DataTree
        From `bayesatk.compare`.
    metric : str, Metric, or iterable of them, optional
        A panel for each; default: the first metric of the result.
    target : {"population", "questions", "new_groups"}
        ``"population"``: questions like these; ``"questions"``: these questions; ``"new_groups"``:
        questions of new groups.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``cell`` and ``probability``, dims ``(metric, system, rank)``.

    Raises
    ------
    ValueError
        If the result was not compared, or lacks the metric or target.

    See Also
    --------
    bayesatk.compare : makes the result.

    Notes
    -----
    Rank 1 is the best. Rows and columns sum to one. Systems are in the order of their mean rank in
    the first metric.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
    >>> plot = plot_ranks(bayesatk.compare(fit, rng=1), target="questions")
    >>> plot.get_viz("probability", system="a", rank=1).get_text()
    '1.00'
    """
    name = backend_name(backend)
    read = Result.of(compared, "ranks")
    if not read.group("ranks").attrs["ranked_on"]:
        raise ValueError(
            "compared must rank its systems, and no question was tried by all of them. Compare "
            "fewer systems."
        )
    (shown_target,) = chosen_targets(target or "", read.targets)
    metrics = chosen_metrics(read, metric)[: 1 if metric is None else None]
    table = _rank_table(read, metrics, shown_target)
    size = table.sizes["system"]
    side = max(0.42 * size, 2.2)
    wide, high = min(len(metrics), 2), -(-len(metrics) // 2)
    inches = (max(2.6 + (side + 0.6) * wide, 5.5), 1.3 + (side + 0.8) * high)
    plot = open_figure(
        table.to_dataset(name="value"), name, inches, cols=["metric"], wrap=2,
        styles={"overlay": (["system", "rank"], ())},
    )  # fmt: skip
    row = xr.DataArray(np.arange(size)[::-1], dims="system", coords={"system": table["system"]})
    data = table.where(table >= _LEAST_SHADED).to_dataset(name="value")
    plot.map(_cell, "cell", data=data, x=table["rank"], y=row)
    font = 9.0 if size <= 12 else 7.5
    plot.map(
        _number, "probability", data=table.to_dataset(name="value"), x=table["rank"], y=row,
        size=font if name == "matplotlib" else font + 3.0,
    )  # fmt: skip
    systems = shortened(table["system"].values.tolist())
    set_panels(
        plot, titles=[estimand(shown_metric) for shown_metric in metrics],
        xlim=(0.5, size + 0.5), ylim=(-0.5, size - 0.5),
        xticks=(table["rank"].values.tolist(), [str(rank) for rank in table["rank"].values]),
        yticks=(row.values.tolist(), systems),
    )  # fmt: skip
    label_axes(plot, "rank (1 is best)", None)
    return finish(
        plot,
        f"Ranks on {TARGET_NAMES[shown_target]}",
        "In a cell: posterior probability of the rank.",
    )


def _rank_table(compared: Result, metrics: list[Any], target: str) -> xr.DataArray:
    """Probabilities (metric, system, rank), the best mean rank first."""
    dataset = compared.group("ranks")
    probabilities = [
        metric_values(dataset, metric)
        .sel(target=target, drop=True)
        .drop_vars(["k", "tau"], errors="ignore")
        for metric in metrics
    ]
    labels = xr.DataArray([metric.label for metric in metrics], dims="metric", name="metric")
    table = xr.concat(probabilities, dim=labels).transpose("metric", "system", "rank")
    mean = (table.isel(metric=0) * table["rank"]).sum("rank").values
    return table.isel(system=np.argsort(mean, kind="stable"))


def _shade(probability: float) -> str:
    """Return the colour of a probability, from white to night blue: darker in grey as well."""
    night_blue = np.array([8.0, 48.0, 107.0])
    mixed = np.round(255.0 + probability * (night_blue - 255.0)).astype(int)
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _cell(da: xr.DataArray, target: Any, x: xr.DataArray, y: xr.DataArray) -> Any:
    """Fill the cell of a rank."""
    left, low = float(x) - 0.5, float(y) - 0.5
    return az.visuals.fill_between_y(
        da, target, x=np.array([left, left + 1.0]), y_bottom=np.array([low, low]),
        y_top=np.array([low + 1.0, low + 1.0]), color=_shade(float(da)), alpha=1.0,
    )  # fmt: skip


def _number(da: xr.DataArray, target: Any, x: xr.DataArray, y: xr.DataArray, size: float) -> Any:
    """Write a probability in a colour that stands out from its cell."""
    value = float(da)
    text = "0" if value < _LEAST_SHADED else f"{value:.2f}"
    color = "#ffffff" if value > _WHITE_INK else "#000000" if value >= _LEAST_SHADED else "#767676"
    return az.visuals.annotate_xy(
        da, target, text=text, x=float(x), y=float(y), color=color, size=size
    )
