"""How far pooling moves questions."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.metrics.grid import parse
from bayesatk.plots.canvas import (
    COLORS,
    DARK,
    GREY,
    backend_name,
    finish,
    label_axes,
    lines,
    marker_size,
    open_systems,
    set_panels,
)
from bayesatk.plots.labels import shortened
from bayesatk.plots.request import chosen_systems
from bayesatk.posterior.models_of import model_of
from bayesatk.results.result import Result

Array = NDArray[np.float64]


def plot_shrinkage(
    result: xr.DataTree | Result, system: Any = None, *, backend: str | None = None
) -> Any:
    """Plot the posterior mean of every question's success probability against its raw rate.

    Parameters
    ----------
    result : xarray.DataTree
        Of right and wrong, from `bayesatk.evaluate`, or from `bayesatk.sample` with
        ``keep=["p"]``.
    system : label, or list of labels, optional
        A panel for each; default: all systems.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``identity``, ``mean`` and ``questions``, dims ``(system, size_class)``.

    Raises
    ------
    ValueError
        If the result is of scored categories, or sampled without ``keep=["p"]``.

    See Also
    --------
    bayesatk.evaluate : makes the result.
    bayesatk.plots.plot_difficulty : the distribution towards which questions are shrunk.

    Notes
    -----
    Means are exact for a closed form, and those of the draws for a sampled result. Questions with
    the same successes and trials are one marker, whose size grows with their number. On the
    diagonal the posterior mean is the observed rate. The dotted line is the mean of all observed
    rates; pooling shrinks questions towards it, more so if they have few trials. Where a judge
    errs, raw rates are those of its marks, and the dotted line is the mean of the posterior means.
    Prior trials are part of the posterior means alone.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[0, 0], [0, 1], [1, 1]], "pass@1", pooling="none", rng=1)
    >>> plot = plot_shrinkage(fit)
    >>> points = plot.get_viz("questions", size_class=0).get_offsets()
    >>> points.round(9).tolist()  # (c + 1)/(n + 2)
    [[0.0, 0.25], [0.5, 0.5], [1.0, 0.75]]
    """
    name = backend_name(backend)
    fit = Result.of(result)
    systems = chosen_systems(fit, system)
    tables = [_states(fit, label) for label in systems]
    most = max(int(table[:, 2].max()) for table in tables)
    classes = int(np.log2(most)) + 1
    points = _by_size(tables, systems, classes)
    plot = open_systems(points.to_dataset(name="value"), name, len(systems))
    empty = xr.DataArray(np.zeros(len(systems)), dims="system", coords={"system": points["system"]})
    plain = empty.to_dataset(name="value")
    plot.map(_identity, "identity", data=plain, color=GREY, linestyle=lines(name, 2)[1])
    judged = fit.judges is not None
    overall = empty.copy(data=[_overall(table, judged) for table in tables]).to_dataset(
        name="value"
    )
    smallest, largest_area = 14.0, 400.0  # of markers, square points
    for size in range(classes):
        share = size / max(classes - 1, 1)
        area = marker_size(
            name, smallest * (largest_area / smallest) ** (share * min(1.0, classes / 8))
        )
        data = points.sel(size_class=[size]).to_dataset(name="value")
        if bool(data["value"].notnull().any()):
            plot.map(_dots, f"questions_{size}", data=data, color=COLORS[0], alpha=0.6, size=area)
    _collect(plot, points, classes)
    plot.map(
        az.visuals.hline, "mean", data=overall, color=DARK, width=1.2, linestyle=lines(name, 3)[2]
    )
    limits = (-0.04, 1.04)
    set_panels(plot, titles=shortened(systems), xlim=limits, ylim=limits)
    label_axes(plot, "raw success rate (share of trials)", "posterior mean of p (probability)")
    largest = f" Marker area grows with the questions in it (1 to {most})." if most > 1 else ""
    return finish(
        plot, f"Questions under pooling={fit.pooling!r}",
        f"Dashed: no change. Dotted: mean {'of p' if judged else 'raw rate'}.{largest}",
    )  # fmt: skip


def _states(result: Result, system: Any) -> Array:
    """Raw rate, posterior mean of p, questions and trials of each distinct (successes, trials)."""
    index = result.systems.index(system)
    successes, trials = (
        counts[index] for counts in result.right_of_all("shrinkage_plot", "result")
    )
    mean = _question_means(result, index)
    tried = trials > 0
    pairs = np.stack([successes, trials], axis=1)[tried]
    distinct, state, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    total = np.bincount(state.ravel(), mean[tried])
    return np.column_stack([distinct[:, 0] / distinct[:, 1], total / count, count, distinct[:, 1]])


def _question_means(result: Result, index: int) -> Array:
    """Posterior mean of every question's p: exact if the result is a closed form."""
    if result.has("closed_form"):
        closed = result.group("closed_form")
        if "p" in closed:
            return np.asarray(closed["p"].sel(statistic="mean").isel(system=index).values)
        return model_of(result, index).fit(parse("bayes")).question_p()[0]
    draws = result.posterior
    if "p" not in draws:
        raise ValueError(
            "result must have draws of every question's p; a sampled one has them if asked. Pass "
            "keep=['p'] to bayesatk.sample."
        )
    return np.asarray(draws["p"].isel(system=index).mean(("chain", "draw")).values)


def _overall(table: Array, judged: bool) -> float:
    """Mean of raw rates; where a judge errs, of posterior means."""
    return float(np.average(table[:, int(judged)], weights=table[:, 2]))


def _by_size(tables: list[Array], systems: list[Any], classes: int) -> xr.DataArray:
    """Points (system, size_class, state, plot_axis), by doublings of the number of questions."""
    most = max(map(len, tables))
    points = np.full((len(tables), classes, most, 2), np.nan)
    for i, table in enumerate(tables):
        size = np.log2(table[:, 2]).astype(int)
        points[i, size, np.arange(len(table))] = table[:, :2]
    return xr.DataArray(
        points, dims=("system", "size_class", "state", "plot_axis"),
        coords={"system": systems, "size_class": np.arange(classes), "plot_axis": ["x", "y"]},
    )  # fmt: skip


def _dots(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return az.visuals.scatter_xy(da.squeeze("size_class").dropna("state"), target, **kwargs)


def _collect(plot: Any, points: xr.DataArray, classes: int) -> None:
    """Gather the markers of all sizes into one visual with the dimension ``size_class``."""
    visuals = np.full((points.sizes["system"], classes), None, dtype=object)
    for size in range(classes):
        if f"questions_{size}" in plot.viz.children:
            visuals[:, size] = plot.viz[f"questions_{size}"]["value"].values
            del plot.viz[f"questions_{size}"]
    coords = {"system": points["system"].values, "size_class": np.arange(classes)}
    values = xr.DataArray(visuals, dims=("system", "size_class"), coords=coords)
    plot.viz["questions"] = xr.DataTree(values.to_dataset(name="value"))


def _identity(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return az.visuals.dline(da, target, x=np.array([0.0, 1.0]), **kwargs)
