"""Success against cost: each system a point with its joint interval."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.costs.tables import read_result
from bayesatk.plots.canvas import (
    add_legend,
    backend_name,
    colors,
    finish,
    label_axes,
    marker_size,
    markers,
    open_figure,
    set_panels,
)
from bayesatk.plots.labels import shortened
from bayesatk.plots.request import chosen_targets
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGET_NAMES


def plot_cost(
    costs: xr.DataTree | Result,
    *,
    k: int | None = None,
    target: str | None = None,
    backend: str | None = None,
) -> Any:
    """Plot what systems solve against what they cost, with joint credible regions.

    Parameters
    ----------
    costs : xarray.DataTree
        From `bayesatk.costs.evaluate_cost` or `bayesatk.models.sample_cost`.
    k : int, optional
        ``pass_at_k`` against ``cost_to_success``: at most k tries of a question. Default: the
        smallest that was evaluated.
    target : {"questions", "population"}, optional
        Default: a panel for each.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``region`` and ``points``, dims ``target`` and ``system``.

    See Also
    --------
    bayesatk.costs.evaluate_cost : makes what is shown.
    bayesatk.costs.pareto : probabilities of being in the Pareto set of cost and success.

    Notes
    -----
    A region is the ellipse with the probability of the result's intervals, if log cost and the
    logit of success are jointly normal with the covariance of the draws.

    Examples
    --------
    >>> import bayesatk as bk, matplotlib
    >>> matplotlib.use("agg")
    >>> data = bk.tally([[1, 0]] * 9, cost=[[1, 2]] * 9, cost_unit="USD")
    >>> plot = plot_cost(bk.costs.evaluate_cost(data, rng=1), target="questions")
    >>> plot.get_viz("points", system="system", target="questions").get_offsets().shape
    (1, 2)
    """
    result, name = read_result(costs), backend_name(backend)
    evaluated_k = result.posterior["k"].values.tolist() if "k" in result.posterior.dims else []
    k = min(evaluated_k, default=0) if k is None else k
    if k not in evaluated_k:
        raise ValueError(
            f"k must be one of {evaluated_k}, as evaluated; got {k}. Evaluate costs with "
            f"k={max(k, 1)}."
        )
    targets = chosen_targets(target)
    points, regions = _shapes(result, k, targets)
    number = len(result.systems)
    styles = {"color": colors(number), "marker": markers(name, number)}
    plot = open_figure(
        points, name, (1.8 + 4.0 * len(targets), 4.4), cols=["target"],
        styles={style: (["system"], values) for style, values in styles.items()},
    )  # fmt: skip
    plot.map(az.visuals.line_xy, "region", data=regions, width=1.4, ignore_aes={"marker"})
    plot.map(az.visuals.scatter_xy, "points", data=points, size=marker_size(name, 36.0))
    unit = str(result.tree.attrs.get("cost_unit", ""))
    label_axes(plot, f"cost of a question{f' ({unit})' * bool(unit)}", "share of questions solved")
    set_panels(plot, titles=[TARGET_NAMES[panel_target] for panel_target in targets])
    if number > 1:
        labels = dict(zip(result.systems, shortened(result.systems), strict=True))
        add_legend(plot, "system", labels, "system")
    tries = "one try" if k == 1 else f"tries until solved, at most {k}"
    return finish(
        plot, f"What is solved, and what it costs: {tries}",
        f"Points: posterior means. Regions contain {100.0 * result.ci_prob:g}% jointly.",
    )  # fmt: skip


def _shapes(result: Result, k: int, targets: list[str]) -> tuple[xr.Dataset, xr.Dataset]:
    """Return means, and ellipses, dims (plot_axis, target, system[, point])."""
    draws = result.posterior[["cost_to_success", "pass_at_k"]].sel(k=k, target=targets)
    cost, solved = (
        draws[name].stack(sample=("chain", "draw")).transpose("target", "system", "sample").values
        for name in ("cost_to_success", "pass_at_k")
    )
    angle = np.linspace(0.0, 2.0 * np.pi, 90)
    circle = np.stack([np.cos(angle), np.sin(angle)]) * np.sqrt(-2.0 * np.log1p(-result.ci_prob))
    inside = np.clip(solved, 1e-12, 1.0 - 1e-12)
    transformed = np.stack([np.log(cost), np.log(inside) - np.log1p(-inside)])
    centre = transformed.mean(axis=-1)
    gap = transformed - centre[..., None]
    covariance = np.einsum("atsd,btsd->tsab", gap, gap) / gap.shape[-1]
    root = np.linalg.cholesky(covariance + 1e-18 * np.eye(2))
    around = centre[..., None] + np.einsum("tsab,bp->atsp", root, circle)
    ellipse = np.stack([np.exp(around[0]), 1.0 / (1.0 + np.exp(-around[1]))])
    coords = {"plot_axis": ["x", "y"], "target": targets, "system": result.systems}
    means = np.stack([cost.mean(axis=-1), solved.mean(axis=-1)])
    dims = ("plot_axis", "target", "system")
    return (
        xr.DataArray(means, coords, dims).to_dataset(name="value"),
        xr.DataArray(ellipse, coords, (*dims, "point")).to_dataset(name="value"),
    )
