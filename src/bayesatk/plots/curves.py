"""Curves: a metric against k, against a covariate, against cost."""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError, proper_probability
from bayesatk._tools.words import few_names
from bayesatk.metrics.grid import COST, Metric
from bayesatk.plots.canvas import (
    Backend,
    Canvas,
    chosen_curve,
    chosen_metrics,
    chosen_systems,
    chosen_targets,
    estimand,
    interval_name,
    legend_width,
    shortened,
    spaced,
    upright,
)
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGET_NAMES, metric_values
from bayesatk.results.tables import ranges_beyond


def plot_curve(
    fit: Fit,
    metric: str = "pass@",
    target: str | None = None,
    *,
    bands: object = None,
    backend: str | None = None,
) -> Any:
    """Plot a metric against k: one line per system, with a simultaneous credible band.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    metric : str
        Which curve: ``"pass@"``, ``"pass^"``, ``"maj@"``, ...; ``"g-pass@:0.5"`` names a tau.
        ``"pass@4"`` is the same curve as ``"pass@"``.
    target : {"questions", "population"}, optional
        Show one panel instead of two: the mean over these questions, or over questions like these.
    bands : label, or list of labels, optional
        Systems whose bands are filled; those of others are upright lines at every k. Default: of
        one or two systems all, of more the best in each row of panels.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``band``, ``band_lower``, ``band_upper``, ``line``, ``point`` and
        ``estimate``; where k exceeds the trials also ``range``; of three systems or more also
        ``bar``, the bands that are not filled; x is log2(k).

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
    beyond the trials, upright dotted lines are the range of `bayesatk.checks.extrapolation_range`,
    at the confidence of the interval. More than four systems are drawn in several rows of panels,
    best first.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0], [1, 1, 0, 1]], "pass@1,2,4", rng=1)
    >>> plot = plot_curve(fit, target="questions")
    >>> plot.get_viz("line").get_xdata().tolist()
    [0.0, 1.0, 2.0]
    """
    drawn, read = Backend.named(backend), Result.of(fit)
    metrics, targets = chosen_curve(read, metric), chosen_targets(target, read.targets)
    filled = None if bands is None else chosen_systems(read, bands)
    curves = _metric_curves(read, metrics, targets, filled)
    systems, groups = curves["system"].values.tolist(), curves.sizes["group"]
    names = dict(zip(systems, shortened(systems, 24), strict=True))
    inches = 0.6 + 3.8 * len(targets) + legend_width(names.values()), 1.4 + 2.9 * groups
    canvas = Canvas(
        drawn,
        curves,
        inches,
        drawn.distinct("system", [read.systems.index(system) for system in systems]),
        cols=["group", "target"],
        wrap=len(targets),
    )
    _draw_metric(canvas, curves)
    name, ks = estimand(metrics[0], over_k=True), [member.k for member in metrics]
    beside = 0.06 * np.log2(ks[-1] / ks[0])
    canvas.label(
        "k (trials judged, log scale)",
        name,
        titles=[TARGET_NAMES[shown] for shown in targets] * groups,
        xlim=(np.log2(ks[0]) - beside, np.log2(ks[-1]) + beside),
        ylim=_limits(*curves.data_vars.values()),
        xticks=_k_ticks(ks),
    )
    canvas.legend("system", names, "system")
    return canvas.finish(f"{name.split(' (')[0]} against k", *_curve_details(read, curves))


def _metric_curves(
    result: Result, metrics: list[Metric], targets: list[str], filled: list[Any] | None
) -> xr.Dataset:
    """Return mean, band and estimate, dims (group, target, system, k), best system first."""
    family, tau = metrics[0].family, metrics[0].tau
    pick = {"target": targets} | ({} if tau is None else {"tau": tau})
    statistics = result.statistics[family.variable].sel(pick)
    draws = result.posterior[family.variable].sel(pick)
    draws = draws.stack(sample=("chain", "draw")).transpose("target", "system", "sample", "k")
    mean = statistics.sel(statistic="mean", drop=True).transpose("target", "system", "k")
    values = {"mean": mean}
    bands = [
        [simultaneous_band(of_curve, result.ci_prob) for of_curve in row] for row in draws.values
    ]
    lower, upper = np.moveaxis(np.array(bands), 2, 0)
    values |= {"lower": mean.copy(data=lower), "upper": mean.copy(data=upper)}
    if "estimate" in statistics["statistic"].values:
        values["estimate"] = statistics.sel(statistic="estimate", drop=True).transpose(*mean.dims)
    ends = ranges_beyond(result, metrics)
    if not np.isnan(ends).all():
        dims, labels = ("system", "k", "target", "end"), {"target": list(result.targets)}
        ranges = xr.DataArray(ends, labels, dims).sel(target=targets).transpose("end", *mean.dims)
        values |= {
            f"range_{name}": mean.copy(data=ranges.values[i]) for i, name in enumerate(_ENDS)
        }
    order = np.argsort(-result.scale.direction * mean.isel(k=-1, target=0).values, kind="stable")
    member = np.arange(len(order)) // _CURVES_PER_PANEL
    group = xr.DataArray(member, {"system": mean["system"].values[order]}, "system")
    curves = xr.Dataset(values).isel(system=order)
    groups = xr.DataArray(np.arange(member[-1] + 1), dims="group", name="group")
    curves = xr.concat([curves.where(group == number) for number in groups.values], dim=groups)
    if filled is None:
        best = np.arange(len(order)) % _CURVES_PER_PANEL == 0
        shown = best | (len(order) <= 2)
    else:
        shown = np.array([system in filled for system in group["system"].values.tolist()])
    return curves.assign_coords(filled=("system", shown))


_ENDS = ("lower", "upper")
_CURVES_PER_PANEL = 4


def _draw_metric(canvas: Canvas, curves: xr.Dataset) -> None:
    """Draw bands below lines below markers."""
    x, backend = xr.DataArray(np.log2(curves["k"])), canvas.backend
    filled, beside = curves["filled"].drop_vars("filled"), 0.02 * _side_by_side(curves)
    bands = curves.where(filled)
    canvas.fill_between_y("band", x, bands["lower"], bands["upper"], alpha=0.25)
    for end in _ENDS:
        canvas.line(f"band_{end}", x, bands[end], width=0.7)
    if not filled.all():
        bars = curves.where(~filled)
        points = upright(x + beside, bars["lower"], bars["upper"], "k")
        canvas.line("bar", *points, linestyle="solid", width=1.0, alpha=0.6)
    if "range_lower" in curves:
        points = upright(x + 2.0 * beside, curves["range_lower"], curves["range_upper"], "k")
        canvas.line("range", *points, linestyle="dotted", width=1.6)
    canvas.line("line", x, curves["mean"], width=1.8)
    canvas.scatter("point", x, curves["mean"], area=22.0)
    if "estimate" in curves:
        canvas.scatter(
            "estimate",
            x,
            curves["estimate"],
            width=1.3,
            area=60.0,
            facecolor=backend.invisible,
        )


def _side_by_side(curves: xr.Dataset) -> xr.DataArray:
    """Return offsets that put the systems of a panel side by side, centred at 0."""
    number = np.arange(curves.sizes["system"]) % _CURVES_PER_PANEL
    return curves["system"].copy(data=number - 0.5 * number.max())


def _k_ticks(ks: list[int]) -> tuple[list[float], list[str]]:
    """Return every k where there is room, else powers of two."""
    log_k = np.log2(ks)
    if (np.diff(log_k) < 0.3).any():
        ks = [2**power for power in range(int(np.ceil(log_k[0])), int(np.floor(log_k[-1])) + 1)]
    return np.log2(ks).tolist(), [str(k) for k in ks]


def _curve_details(result: Result, curves: xr.Dataset) -> list[str]:
    """Return the caption: the meaning of lines, bands and markers."""
    probability = f"{100 * result.ci_prob:g}%"
    details = [
        f"Line: posterior mean. Band: contains the whole curve with probability {probability} "
        "(simultaneous over k, equal tails)."
    ]
    if not curves["filled"].all():
        details.append("Vertical lines: the same band of the other systems.")
    if "range_lower" in curves:
        details.append(
            "Dotted vertical lines: range at k beyond the trials over all difficulty distributions "
            f"that agree with the counts ({probability} confidence)."
        )
    if "estimate" in curves and bool(curves["estimate"].notnull().any()):
        of_marks = ", by the marks as they are" if result.study.judges is not None else ""
        details.append(f"Open marker: unbiased estimate from the observed trials{of_marks}.")
    return details


def simultaneous_band(draws: ArrayLike, probability: float) -> tuple[Array, Array]:
    """Return the band that contains a whole curve with a probability, from draws of the curve.

    Parameters
    ----------
    draws : array_like, shape (draws, points)
        Joint draws of one curve at every point.
    probability : float
        Share of the draws that lie inside at every point, at least; strictly between 0 and 1.

    Returns
    -------
    lower, upper : ndarray, shape (points,)
        Values of draws, so that the band never leaves the range of the quantity.

    Raises
    ------
    ValueError
        If `draws` is not a table with finite values, or `probability` is outside (0, 1).

    Notes
    -----
    Among ``S`` draws let ``l(s, k)`` be the number of draws at most, and ``u(s, k)`` the number at
    least, as large as draw ``s`` at point ``k``. Draw ``s`` lies everywhere between the c-th
    smallest and the c-th largest value exactly if ``m(s) = min_k min(l(s, k), u(s, k)) >= c``. The
    band takes the largest ``c`` for which that holds for a share `probability` of the draws: equal
    tails at every point, of one level for all points. Of one point it is the equal-tailed interval.

    References
    ----------
    Besag, Green, Higdon and Mengersen 1995, Statistical Science 10(1), 3-41, section 6.3.

    Examples
    --------
    Of five draws of two points, one is lowest at the first and highest at the second:

    >>> draws = [[0, 9], [1, 1], [2, 2], [3, 3], [4, 4]]
    >>> [end.tolist() for end in simultaneous_band(draws, 0.2)]
    [[1.0, 2.0], [3.0, 4.0]]
    >>> [end.tolist() for end in simultaneous_band(draws, 0.6)]
    [[0.0, 1.0], [4.0, 9.0]]
    """
    table = np.asarray(draws, float)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(
            "draws must be a table (draws, points) of finite numbers; got shape "
            f"{table.shape}. Stack chains and draws into the first axis."
        )
    proper_probability("probability", probability)
    size = len(table)
    at_most = rankdata(table, method="max", axis=0)
    at_least = size + 1 - rankdata(table, method="min", axis=0)
    innermost = np.sort(np.minimum(at_most, at_least).min(axis=1)).astype(np.int64)
    inside = int(np.ceil(probability * size - 1e-9))
    c = int(innermost[size - inside])
    ordered = np.sort(table, axis=0)
    # Ties can let a draw count beyond the middle; from there on every level gives the same band.
    c = min(c, (size + 1) // 2)
    return ordered[c - 1], ordered[size - c]


def plot_cost(
    fit: Fit,
    metric: str | None = None,
    *,
    target: str | None = None,
    backend: str | None = None,
) -> Any:
    """Plot the score of systems against the mean cost of a trial, with credible intervals of both.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate`, with the metric ``"cost"``.
    metric : str, optional
        One metric of the result; default: the first.
    target : {"questions", "population", "new_groups"}, optional
        Default: a panel for each.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``cost`` and ``score``, the intervals, and ``points``, the posterior means;
        dims ``target`` and ``system``.

    See Also
    --------
    bayesatk.table : differences and ratios of costs, ``bayesatk.table(fit, "comparison")``.

    Examples
    --------
    >>> import bayesatk as bk, matplotlib
    >>> matplotlib.use("agg")
    >>> data = bk.tally([[1, 0]] * 9, cost=[[1, 2]] * 9, cost_unit="USD")
    >>> plot = plot_cost(bk.evaluate(data, "pass@1 cost", rng=1), target="questions")
    >>> plot.get_viz("points", system="system", target="questions").get_offsets().shape
    (1, 2)
    """
    result, drawn = Result.of(fit), Backend.named(backend)
    if COST not in result.costs:
        raise ArgumentError(
            "fit",
            " must have the metric 'cost'. Evaluate data with costs: ",
            Argument("metrics", ["pass@1", "cost"]),
            ".",
        )
    shown_metric = chosen_metrics(result, metric)[0]
    targets, number = chosen_targets(target, result.targets), len(result.systems)
    cost, score = (
        metric_values(result.statistics, numbers)
        .sel(target=targets)
        .drop_vars(["k", "tau"], errors="ignore")
        for numbers in (COST, shown_metric)
    )
    known = [shown for shown in targets_of_costs(result) if shown in targets]
    if not known:
        others = targets_of_costs(result)
        remedy = (
            ("Pass ", Argument("target", others[0]))
            if others
            else ("Run more trials, or draw scores alone, bayesatk.plots.plot_systems(fit)",)
        )
        raise ArgumentError(
            "fit",
            " must have enough trials to tell how uncertain costs are on "
            f"{few_names([TARGET_NAMES[shown] for shown in targets])}; it has too few. ",
            *remedy,
            ".",
        )
    targets, cost, score = known, cost.sel(target=known), score.sel(target=known)
    x, y = (numbers.sel(statistic="mean", drop=True) for numbers in (cost, score))
    canvas = Canvas(
        drawn,
        xr.Dataset({"cost": x, "score": y}),
        (1.8 + 3.7 * len(targets), 4.4),
        drawn.distinct("system", range(number), "color", "marker"),
        cols=["target"],
    )
    across, up = (
        numbers.sel(statistic=["ci_lower", "ci_upper"]).rename(statistic="end")
        for numbers in (cost, score)
    )
    canvas.line("cost", across, y, width=1.4)
    canvas.line("score", x, up, width=1.4)
    canvas.scatter("points", x, y, area=36.0)
    unit = cost.attrs["units"]
    canvas.label(
        f"cost of a trial{f' ({unit})' * bool(unit)}",
        estimand(shown_metric),
        titles=[TARGET_NAMES[shown] for shown in targets],
        xlim=_limits(across),
        ylim=_limits(up),
    )
    if number > 1:
        labels = dict(zip(result.systems, shortened(result.systems), strict=True))
        canvas.legend("system", labels, "system")
    interval = interval_name(result.ci_prob, result.ci_kind)
    return canvas.finish(
        f"{shown_metric.label} against the cost of a trial",
        f"Points: posterior means. Lines: {interval}s.",
    )


def targets_of_costs(result: Result) -> list[str]:
    """Return the targets on which the uncertainty of the costs of any system is known."""
    mean = metric_values(result.statistics, COST).sel(statistic="mean")
    return list(mean["target"][mean.notnull().any("system")].values.tolist())


def _limits(*values: xr.DataArray) -> tuple[float, float]:
    """Return limits of an axis that all panels share, with some space."""
    return spaced(
        min(float(panel.min()) for panel in values), max(float(panel.max()) for panel in values)
    )
