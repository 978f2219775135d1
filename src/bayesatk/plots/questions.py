"""Every question of every system: what is known of its success probability."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.comparison.checks.question_table import question_table
from bayesatk.plots.canvas import (
    COLORS,
    backend_name,
    finish,
    label_axes,
    marker_size,
    markers,
    open_systems,
    set_panels,
)
from bayesatk.plots.labels import shortened
from bayesatk.plots.request import chosen_systems
from bayesatk.results.result import Result


def plot_questions(
    result: xr.DataTree | Result, system: Any = None, *, backend: str | None = None
) -> Any:
    """Plot the posterior of every question's success probability, the hardest questions first.

    Parameters
    ----------
    result : xarray.DataTree
        Of right and wrong, from `bayesatk.evaluate` or `bayesatk.sample`.
    system : label, or list of labels, optional
        A panel for each; default: all systems. Questions have the same order in all panels.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``interval``, ``mean`` and, where there are any, ``suspicious``.

    Raises
    ------
    ValueError
        If the result is of scored categories.

    See Also
    --------
    bayesatk.question_table : the numbers.
    bayesatk.plots.plot_shrinkage : the shrinkage of questions by pooling.

    Notes
    -----
    Questions are ordered by their mean over the systems. If there are more than 300, evenly spaced
    ones are drawn, and all suspicious ones: those that the system fails although weaker systems
    solve them.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[1, 1], [0, 0], [0, 1]], "pass@1", pooling="none", rng=1)
    >>> plot = plot_questions(fit)
    >>> plot.get_viz("mean").get_offsets().tolist()  # (c + 1)/(n + 2)
    [[1.0, 0.25], [2.0, 0.5], [3.0, 0.75]]
    """
    name, fit = backend_name(backend), Result.of(result)
    systems = chosen_systems(fit, system)
    table = question_table(fit)
    by_system = [group for _, group in table.groupby("system", sort=False)]
    difficulty = np.mean([rows["mean"].to_numpy() for rows in by_system], axis=0)
    order = np.argsort(difficulty, kind="stable")
    table_by_system = {fit.systems[i]: rows.iloc[order] for i, rows in enumerate(by_system)}
    marked = np.any([table_by_system[label]["suspicious"].to_numpy() for label in systems], axis=0)
    shown = np.unique(np.append(_thinned(len(order)), np.flatnonzero(marked)))
    points = _points([table_by_system[label] for label in systems], systems, shown)
    plot = open_systems(points.to_dataset(), name, len(systems))
    ends = points.sel(number=["lower", "upper", "gap"]).stack(place=("question", "number"))
    plot.map(_line, "interval", data=ends.to_dataset(), color=COLORS[0], alpha=0.5, width=0.8)
    means = points.sel(number="mean")
    size = marker_size(name, 16.0)
    plot.map(az.visuals.scatter_xy, "mean", data=means.to_dataset(), color=COLORS[0], size=size)
    odd = points.sel(number="suspicious")
    if bool(odd.sel(plot_axis="y").notnull().any()):
        plot.map(
            _marks, "suspicious", data=odd.to_dataset(), color=COLORS[1],
            marker=markers(name, 4)[3], size=marker_size(name, 40.0),
        )  # fmt: skip
    set_panels(plot, titles=shortened(systems), ylim=(-0.04, 1.04))
    label_axes(plot, "question (hardest first)", "success probability p")
    drawn_note = (
        f" Drawn: {len(shown)} of {len(order)} questions." if len(shown) < len(order) else ""
    )
    return finish(
        plot, "Posterior of every question",
        f"Posterior mean and {100 * fit.ci_prob:g}% interval. Diamonds: failed, though weaker "
        f"systems solve it.{drawn_note}",
    )  # fmt: skip


def _thinned(size: int) -> NDArray[np.intp]:
    """Return all places, or as many at equal steps as can be told apart in a panel."""
    return np.unique(np.linspace(0, size - 1, min(size, 300)).round().astype(np.intp))


def _points(tables: list[Any], systems: list[Any], shown: NDArray[np.intp]) -> xr.DataArray:
    """Return places and values (system, question, number, plot_axis)."""
    names = ("lower", "upper", "gap", "mean", "suspicious")
    points = np.full((len(tables), len(shown), len(names), 2), np.nan)
    points[..., 0] = shown[:, None] + 1.0
    for system_points, table in zip(points, tables, strict=True):
        rows = table.iloc[shown]
        system_points[:, 0, 1], system_points[:, 1, 1] = rows["ci_lower"], rows["ci_upper"]
        system_points[:, 3, 1] = rows["mean"]
        system_points[:, 4, 1] = np.where(rows["suspicious"], rows["mean"], np.nan)
    return xr.DataArray(
        points, dims=("system", "question", "number", "plot_axis"), name="value",
        coords={"system": systems, "question": shown, "number": list(names),
                "plot_axis": ["x", "y"]},
    )  # fmt: skip


def _line(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    plain = da.drop_vars(["question", "number", "place"], errors="ignore")
    return az.visuals.line_xy(plain, target, **kwargs)


def _marks(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return az.visuals.scatter_xy(da.dropna("question"), target, **kwargs)
