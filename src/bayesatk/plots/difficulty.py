"""How difficulties are spread over questions."""

from importlib import import_module
from types import ModuleType
from typing import Any

import arviz as az
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.plots.bands import cdf_band
from bayesatk.plots.canvas import (
    COLORS,
    DARK,
    backend_name,
    finish,
    label_axes,
    lines,
    open_systems,
    set_panels,
)
from bayesatk.plots.labels import shortened
from bayesatk.plots.request import chosen_systems
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.result import Result


def plot_difficulty(
    result: xr.DataTree | Result, system: Any = None, *, backend: str | None = None
) -> Any:
    """Plot the fitted distribution of success probabilities over questions.

    Parameters
    ----------
    result : xarray.DataTree
        Of right and wrong, with ``pooling="partial"``, from `bayesatk.evaluate` or
        `bayesatk.sample`.
    system : label, or list of labels, optional
        A panel for each; default: all systems.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``band``, ``median`` and ``observed``, dims ``system``.

    Raises
    ------
    ValueError
        If the result has no difficulty distribution to show.

    See Also
    --------
    bayesatk.evaluate : makes the result.
    bayesatk.criticise : checks what the plot shows.

    Notes
    -----
    The cumulative distribution is drawn because densities are unbounded at 0 and 1 if questions are
    nearly always or never solved. The band is pointwise. Steps are the observed rates, which vary
    more than the success probabilities because of the noise of trials; with few trials much more.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[0, 0], [0, 1], [1, 1], [1, 1]], "pass@1", rng=1)
    >>> plot = plot_difficulty(fit)
    >>> plot.get_viz("observed").get_ydata().tolist()  # rates 0, 1/2, 1, 1
    [0.0, 0.25, 0.5, 1.0, 1.0]
    """
    name = backend_name(backend)
    fit = Result.of(result)
    fit.require("difficulty_plot", "result")
    systems = chosen_systems(fit, system)
    fitted, observed = _fitted(fit, systems), _observed(fit, systems)
    plot = open_systems(fitted, name, len(systems))
    band = fitted["ends"].to_dataset(name="value")
    plot.map(az.visuals.fill_between_y, "band", data=band, color=COLORS[0], alpha=0.25)
    data = fitted["median"].to_dataset(name="value")
    plot.map(az.visuals.line_xy, "median", data=data, color=COLORS[0], width=1.8)
    plot.map(
        _steps, "observed", data=observed.to_dataset(name="value"), color=DARK, width=1.3,
        linestyle=lines(name, 2)[1], backend=import_module(f"arviz_plots.backend.{name}"),
    )  # fmt: skip
    set_panels(plot, titles=shortened(systems), xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    label_axes(plot, "success probability p", "share of questions with p or less")
    probability = f"{100 * fit.ci_prob:g}%"
    return finish(
        plot, "Difficulty of questions like these",
        f"Line: posterior median of the cdf. Band: {probability} equal-tailed interval at each p. "
        "Dashed steps: observed success rates (wider, by the noise of few trials).",
    )  # fmt: skip


def _fitted(result: Result, systems: list[Any]) -> xr.Dataset:
    """Band and median of the cdf over a grid of p, by system."""
    bands, grid = [], np.linspace(0.0, 1.0, 201)
    for system in systems:
        difficulty = difficulty_draws(result.tree, result.systems.index(system))
        assert difficulty is not None  # checked: the result has one
        draws = difficulty.among(slice(None, None, max(1, len(difficulty) // 1000)))
        bands.append(cdf_band(draws, grid, result.ci_prob))
    lower, median, upper = np.moveaxis(np.stack(bands), 1, 0)
    x = np.broadcast_to(grid, median.shape)
    coords = {"system": systems, "kwarg": ["x", "y_bottom", "y_top"], "plot_axis": ["x", "y"]}
    return xr.Dataset(
        {
            "ends": (("kwarg", "system", "p"), np.stack([x, lower, upper])),
            "median": (("plot_axis", "system", "p"), np.stack([x, median])),
        },
        coords=coords,
    )


def _observed(result: Result, systems: list[Any]) -> xr.DataArray:
    """Distribution function of the observed rates, (plot_axis, system, step)."""
    steps = []
    for table in (_rates(result, system) for system in systems):
        rates, count = np.unique(table, return_counts=True)
        share = np.cumsum(count) / count.sum()
        steps.append((np.concatenate([[0.0], rates, [1.0]]), np.concatenate([[0.0], share, [1.0]])))
    longest = max(len(x) for x, _ in steps)
    values = np.full((2, len(steps), longest), np.nan)
    for i, (x, y) in enumerate(steps):
        values[0, i, : len(x)], values[1, i, : len(y)] = x, y
    coords = {"plot_axis": ["x", "y"], "system": systems}
    return xr.DataArray(values, dims=("plot_axis", "system", "step"), coords=coords)


def _rates(result: Result, system: Any) -> NDArray[np.float64]:
    index = result.systems.index(system)
    successes, trials = (
        counts[index] for counts in result.right_of_all("difficulty_plot", "result")
    )
    tried = trials > 0
    return np.asarray(successes[tried] / trials[tried])


def _steps(da: xr.DataArray, target: Any, backend: ModuleType, **kwargs: Any) -> Any:
    """Draw a distribution function that is constant after each value."""
    points = da.dropna("step")
    x, y = points.sel(plot_axis="x").values, points.sel(plot_axis="y").values
    return backend.step(x, y, target, step_mode="after", **kwargs)
