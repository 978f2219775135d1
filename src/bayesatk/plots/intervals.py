"""Rows of intervals: systems, groups, differences, boards; ranks of systems; a gate."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayesatk._tools.words import chance_words, equality_words
from bayesatk.metrics.grid import Metric, MetricSpec, parse
from bayesatk.plots.canvas import (
    COLORS,
    DARK,
    GREY,
    Backend,
    Canvas,
    Styles,
    arranged,
    chosen_metrics,
    chosen_systems,
    chosen_targets,
    estimand,
    interval_name,
    legend_width,
    shortened,
    spaced,
)
from bayesatk.results.result import Fit, Result, analysis_table
from bayesatk.results.schema import TARGET_NAMES, TARGETS, by_metric, metric_values
from bayesatk.results.tables import by_groups

_WIDTH_MAX = 13.0  # inches: the width of a page of a report
_WHITE_TEXT_ABOVE = 0.655  # probability from which white text contrasts more than black
_SHADED_FROM = 0.005  # a cell with a smaller probability is white
_SIDES = {"above": COLORS[0], "below": COLORS[1]}


def plot_systems(
    fit: Fit,
    metric: MetricSpec | None = None,
    *,
    by: Literal["system", "group"] = "system",
    backend: str | None = None,
) -> Any:
    """Plot metrics of every system, or of every group, for all targets; best system on top.

    Parameters
    ----------
    fit : xarray.DataTree
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
    drawn, fit = Backend.named(backend), Result.of(fit)
    grouped, metrics = by_groups(fit, by), chosen_metrics(fit, metric)
    if grouped:
        rows = _group_rows(fit, metrics[0])
        panels, metrics = chosen_systems(fit, None), metrics[:1] * len(fit.systems)
        names = {target: f"{TARGET_NAMES[target]} in the group" for target in TARGETS}
        headline, remark = "Groups of questions", " Groups learn from each other."
    else:
        rows, panels = by_metric(metrics, lambda shown: _interval_rows(fit, shown)), metrics
        names = {target: TARGET_NAMES[target] for target in fit.targets}
        mean = rows["mean"].isel(metric=0).sel(target="questions")
        order = (fit.scale.direction * mean).argsort(kind="stable")
        rows, headline, remark = rows.isel(system=order.values), "Systems", ""
    targets, dim = list(names), "group" if grouped else "system"
    labels = shortened(rows[dim].values.tolist())
    canvas = _open_rows(
        drawn,
        rows,
        "system" if grouped else "metric",
        dim,
        legend_width(names.values()),
        drawn.distinct("target", range(len(targets))),
    )
    places = np.linspace(0.14, -0.14, 2) if len(targets) == 2 else np.linspace(0.22, -0.22, 3)
    shift = xr.DataArray(places, dims="target", coords={"target": targets})
    _draw_rows(canvas, rows, _heights(rows, dim) + shift)
    ends = float(rows["ci_lower"].min()), float(rows["ci_upper"].max())
    canvas.label(
        [estimand(shown) for shown in metrics],
        titles=shortened(panels) if grouped else None,
        xlim=spaced(*ends) if grouped else None,
        **_beside_rows(labels),
    )
    canvas.legend("target", names, "target")
    kind = interval_name(fit.ci_prob, fit.ci_kind)
    return canvas.finish(
        headline, f"Marker: posterior mean. Thin line: {kind}. Pale bar: central 50%.{remark}"
    )


def _interval_rows(result: Result, metric: Metric, prefix: str = "") -> xr.Dataset:
    """Return mean, interval and central half of one metric, dims (system[, group], target)."""
    statistics = result.group_statistics if prefix else result.statistics
    numbers = metric_values(statistics, metric)
    central_half = [0.25, 0.75]
    if result.has(f"{prefix}closed_form_quantiles"):
        quantiles = metric_values(result.group(f"{prefix}closed_form_quantiles"), metric)
        half = quantiles.sel(quantile=central_half, method="nearest")
    else:
        draws = metric_values(result.group(f"{prefix}posterior"), metric)
        half = draws.quantile(central_half, dim=("chain", "draw"))
    columns = {f"half_{i}": half.isel(quantile=i, drop=True) for i in (0, 1)}
    columns |= {
        name: numbers.sel(statistic=name, drop=True) for name in ("ci_lower", "ci_upper", "mean")
    }
    rows = xr.Dataset(columns).drop_vars(["k", "tau"], errors="ignore")
    return rows.transpose("system", *(["group"] if prefix else []), "target")


def _group_rows(fit: Result, metric: Metric) -> xr.Dataset:
    """Return the rows of all groups together, and of every group, the hardest last."""
    all_groups = _interval_rows(fit, metric).sel(target=list(TARGETS))
    groups = _interval_rows(fit, metric, "group_")
    level = fit.scale.direction * groups["mean"].sel(target="questions").mean("system")
    order = (-level).argsort(kind="stable").values
    labels = [str(label) for label in groups["group"].values]
    groups = groups.assign_coords(group=labels).isel(group=order)
    rows = xr.concat([all_groups.expand_dims(group=["all groups"]), groups], dim="group")
    return rows.transpose("system", "group", "target")


def plot_difference(
    fit: Fit,
    metric: MetricSpec | None = None,
    target: str = "population",
    *,
    backend: str | None = None,
) -> Any:
    """Plot differences between systems with the probability that the first is better.

    Parameters
    ----------
    fit : xarray.DataTree
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
    bayesatk.table : the same numbers, ``bayesatk.table(fit, "comparison")``.

    Notes
    -----
    Every pair of up to six systems, the one with the better mean (of the first metric) first; of
    more systems, the best against each other one.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "mean", pooling="none", rng=1)
    >>> plot = plot_difference(bayesatk.compare(fit), target="questions")
    >>> plot.get_viz("mean").get_offsets().round(4).tolist()  # 5/6 - 1/2
    [[0.3333, 0.0]]
    """
    drawn, read = Backend.named(backend), Result.of(fit, "comparison")
    metrics = chosen_metrics(read, metric)
    (shown_target,) = chosen_targets(target or "", read.targets)
    rows = _difference_rows(read, metrics, shown_target)
    rope = float(read.group("comparison").attrs["rope"])
    low, high = spaced(
        min(float(rows["ci_lower"].min()), -rope), max(float(rows["ci_upper"].max()), rope)
    )
    canvas, height = _open_rows(drawn, rows, "metric", "pair", 0.5, {}), _heights(rows, "pair")
    _draw_rows(canvas, rows, height, color=COLORS[0])
    probability = rows["prob_greater"]  # of pairs that share a question
    words = _texts(
        lambda value: "" if value != value else f"P {equality_words(value)}", probability
    )
    _write_at_rows(canvas, "probability", high, height, words)
    canvas.vline("zero", 0.0, color=DARK, width=1.0, linestyle="dashed")
    if rope > 0:
        canvas.vspan("rope", -rope, rope, color=GREY, alpha=0.25)
    canvas.label(
        [f"difference in {estimand(shown)}" for shown in metrics],
        xlim=(low, high + 0.36 * (high - low)),
        **_beside_rows(rows["label"].values.tolist()),
    )
    kind = interval_name(read.ci_prob, read.ci_kind)
    shaded = f" Shaded: practical equivalence, within {rope:g}." if rope > 0 else ""
    return canvas.finish(
        f"Differences on {TARGET_NAMES[shown_target]}",
        f"Marker: posterior mean of the first system minus the second. Line: {kind}. "
        f"P: probability that the first is better.{shaded}",
    )


def _difference_rows(compared: Result, metrics: list[Metric], target: str) -> xr.Dataset:
    """Return contrasts of the pairs to show, dims (metric, pair), the largest lead last."""
    dataset = compared.group("comparison").sel(target=target)
    values = by_metric(metrics, lambda metric: metric_values(dataset, metric))
    first = values.isel(metric=0).sel(contrast="mean").transpose("system", "other").values
    first = compared.scale.direction * first
    size, best = len(first), int(np.argmax(first.sum(axis=1)))
    candidates = list(combinations(range(size), 2))
    if size > 6:
        candidates = [(best, rival) for rival in range(size) if rival != best]
    pairs = [(i, j) if first[i, j] >= 0 else (j, i) for i, j in candidates]
    pairs.sort(key=lambda pair: first[pair])
    i, j = (xr.DataArray(list(positions), dims="pair") for positions in zip(*pairs, strict=True))
    rows = values.isel(system=i, other=j).drop_vars(["system", "other"]).to_dataset("contrast")
    systems = shortened(dataset["system"].values.tolist(), 22)
    labels = [f"{systems[a]} − {systems[b]}" for a, b in pairs]  # noqa: RUF001
    return rows.assign_coords(pair=np.arange(len(pairs)), label=("pair", labels))


def _heights(rows: xr.Dataset, dim: str) -> xr.DataArray:
    """Return the heights of rows: their numbers, counted from below."""
    return rows[dim].copy(data=np.arange(rows.sizes[dim]))


def _beside_rows(labels: list[str]) -> dict[str, Any]:
    """Return limits and ticks of an axis of rows."""
    return {"ylim": (-0.7, len(labels) - 0.3), "yticks": (range(len(labels)), labels)}


def _write_at_rows(
    canvas: Canvas, visual: str, x: float, y: xr.DataArray, words: xr.DataArray
) -> None:
    """Write a text at the right end of every row."""
    canvas.text(
        visual,
        x + xr.zeros_like(words, float),
        y,
        string=words,
        color=DARK,
        size=canvas.backend.font(10),
        horizontal_align="left",
    )


def _open_rows(
    backend: Backend, rows: xr.Dataset, panel: str, dim: str, beside: float, styles: Styles
) -> Canvas:
    """Open a canvas with a height for its rows, and `beside` inches beside its panels."""
    size, number = rows.sizes[dim], rows.sizes[panel]
    wide, high = arranged(number)
    height = max(1.1 + (0.42 if size <= 12 else 0.32) * size, 1.7)
    inches = min(max(6.5, 1.8 + 3.3 * wide + beside), _WIDTH_MAX), 0.9 + high * height
    styles = {**styles, "overlay": ([dim], ())}
    return Canvas(backend, rows, inches, styles, cols=[panel], wrap=wide)


def _draw_rows(canvas: Canvas, rows: xr.Dataset, y: xr.DataArray, **style: Any) -> None:
    """Draw thin intervals, pale thick halves and means at the height of each row."""
    interval = xr.concat([rows["ci_lower"], rows["ci_upper"]], dim="end")
    canvas.line("interval", interval, y, width=1.3, **style)
    if "half_0" in rows:  # pale and behind the mean: one bar, however short
        half = xr.concat([rows["half_0"], rows["half_1"]], dim="end")
        canvas.line(
            "half",
            half,
            y,
            width=7.0,
            alpha=0.4,
            linestyle="solid",
            matplotlib={"solid_capstyle": "butt"},
            **style,
        )
    canvas.scatter("mean", rows["mean"], y, area=32.0, width=0.5, **style)


def plot_ranks(
    fit: Fit,
    metric: MetricSpec | None = None,
    target: str = "population",
    *,
    backend: str | None = None,
) -> Any:
    """Plot the probability of every rank of every system, written in its cell.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.compare` or `bayesatk.leaderboard`.
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
        If the result was neither compared nor ranked, or lacks the metric or target.

    See Also
    --------
    bayesatk.compare : makes the result, from pairs.
    bayesatk.leaderboard : makes it, from joint draws of all systems.

    Notes
    -----
    Rank 1 is the best. Rows and columns sum to one. Systems are in the order of their mean rank in
    the first metric.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "mean", pooling="none", rng=1)
    >>> plot = plot_ranks(bayesatk.compare(fit), target="questions")
    >>> plot.get_viz("probability", system="a", rank=1).get_text()
    '1.00'
    """
    drawn, read = Backend.named(backend), Result.of(fit)
    (shown_target,) = chosen_targets(target or "", read.targets)
    metrics = chosen_metrics(read, metric)[: 1 if metric is None else None]
    table = _rank_table(read, metrics, shown_target)
    size, ranks = table.sizes["system"], table["rank"]
    side = max(0.42 * size, 2.2)
    wide, high = min(len(metrics), 2), -(-len(metrics) // 2)
    canvas = Canvas(
        drawn,
        table.to_dataset(name="value"),
        (max(2.6 + (side + 0.6) * wide, 5.5), 1.3 + (side + 0.8) * high),
        {"overlay": (["system", "rank"], ())},
        cols=["metric"],
        wrap=2,
    )
    row = table["system"].copy(data=np.arange(size)[::-1])
    half = xr.DataArray([-0.5, 0.5], dims="side")
    shaded = table.where(table >= _SHADED_FROM)
    canvas.fill_between_y(
        "cell",
        ranks + half,
        row - 0.5,
        row + 0.5 + 0.0 * shaded,
        color=_texts(_shade, table),
        alpha=1.0,
    )
    canvas.text(
        "probability",
        ranks,
        row + 0.0 * table,
        color=_texts(_ink, table),
        string=_texts(lambda p: "0" if p < _SHADED_FROM else f"{p:.2f}", table),
        size=drawn.font(10.0 if size <= 12 else 8.0),
    )
    canvas.label(
        "rank (1 is best)",
        titles=[estimand(shown) for shown in metrics],
        xlim=(0.5, size + 0.5),
        ylim=(-0.5, size - 0.5),
        xticks=(ranks.values.tolist(), [str(rank) for rank in ranks.values]),
        yticks=(row.values.tolist(), shortened(row["system"].values.tolist())),
    )
    return canvas.finish(
        f"Ranks on {TARGET_NAMES[shown_target]}", "In a cell: posterior probability of the rank."
    )


def plot_leaderboard(
    fit: Fit,
    metric: str | Metric | None = None,
    target: str = "population",
    *,
    backend: str | None = None,
) -> Any:
    """Plot a leaderboard: means and intervals, observed values, P(best), and lines between tiers.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.leaderboard`.
    metric : str or Metric, optional
        Default: the first metric of the result.
    target : {"population", "questions", "new_groups"}
        ``"population"``: questions like these; ``"questions"``: these questions; ``"new_groups"``:
        questions of new groups.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``interval``, ``mean``, ``observed``, ``best`` and ``tier_0``, ``tier_1``
        ... (lines between tiers), dims ``(metric, system)``.

    Raises
    ------
    ValueError
        If the result has no leaderboard, or lacks the metric or target.

    See Also
    --------
    bayesatk.leaderboard : makes it.
    bayesatk.plots.plot_ranks : the probabilities of ranks.

    Notes
    -----
    Systems are in the order of their means, the best on top. Two systems of one tier are not
    separated.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> runs = {"a": [[1, 1, 1, 1]] * 9, "b": [[1, 0, 1, 0]] * 9}
    >>> board = bayesatk.leaderboard(bayesatk.evaluate(runs, "pass@1", rng=1))
    >>> plot = plot_leaderboard(board, target="questions")
    >>> plot.get_viz("best", system="a").get_text()
    'P(best) > 0.99...'
    """
    drawn = Backend.named(backend)
    read = Result.of(fit, "leaderboard")
    (shown_metric, *_), (shown_target,) = (
        chosen_metrics(read, metric),
        chosen_targets(target or "", read.targets),
    )
    rows = _board_rows(read, shown_metric, shown_target)
    height = _heights(rows, "system")
    canvas = _open_rows(drawn, rows, "metric", "system", 1.1, {})
    _draw_rows(canvas, rows, height, color=COLORS[0])
    canvas.scatter(
        "observed",
        rows["observed"],
        height,
        color=DARK,
        area=60.0,
        width=1.2,
        facecolor=drawn.invisible,
    )
    values = rows[["ci_lower", "ci_upper", "observed"]].to_array()
    low, high = spaced(float(values.min()), float(values.max()))
    best = rows["prob_best"].clip(0.0, 1.0)
    words = _texts(lambda chance: chance_words("best", chance), best)
    _write_at_rows(canvas, "best", high, height, words)
    across = xr.DataArray([low, high], dims="end")
    for line, below in enumerate(np.flatnonzero(np.diff(rows["tier"].isel(metric=0)))):
        canvas.line(
            f"tier_{line}",
            across,
            below + 0.5 + 0.0 * across,
            color=GREY,
            width=1.0,
            linestyle="dashed",
        )
    canvas.label(
        [estimand(shown_metric)],
        xlim=(low, high + 0.55 * (high - low)),
        **_beside_rows(shortened(rows["system"].values.tolist())),
    )
    return canvas.finish(
        f"Leaderboard on {TARGET_NAMES[shown_target]}",
        f"Marker: posterior mean. Line: {interval_name(read.ci_prob, read.ci_kind)}. "
        "Open marker: observed. Dashed: between tiers.",
    )


def _board_rows(board: Result, metric: Metric, target: str) -> xr.Dataset:
    """Return the statistics of a leaderboard, dims (metric, system), the best mean last."""
    group = board.group("leaderboard")
    rows = group.drop_dims(["other", "place"]).sel(metric=[metric.label], target=target, drop=True)
    order = rows["rank"].isel(metric=0).argsort(kind="stable").values[::-1]
    return rows.isel(system=order).transpose("metric", "system")


def _rank_table(read: Result, metrics: list[Metric], target: str) -> xr.DataArray:
    """Return probabilities (metric, system, rank), the best mean rank first."""
    if read.has("leaderboard") and not read.has("ranks"):
        board, labels = read.group("leaderboard"), [metric.label for metric in metrics]
        table = board["prob_rank"].sel(metric=labels, target=target, drop=True).rename(place="rank")
    else:
        of_target = Result.of(read, "ranks").group("ranks").sel(target=target, drop=True)
        table = by_metric(metrics, lambda metric: metric_values(of_target, metric))
    table = table.transpose("metric", "system", "rank")
    mean = (table.isel(metric=0) * table["rank"]).sum("rank")
    return table.isel(system=mean.argsort(kind="stable").values)


def _texts(write: Callable[..., str], *numbers: xr.DataArray) -> xr.DataArray:
    """Apply a function that returns a text to every number, or to broadcast numbers."""
    arrays = xr.broadcast(*numbers)
    columns = (array.values.ravel().tolist() for array in arrays)
    words = np.array([write(*values) for values in zip(*columns, strict=True)], object)
    return arrays[0].copy(data=words.reshape(arrays[0].shape))


def _shade(probability: float) -> str:
    """Return the colour of a probability, from white to night blue: darker in grey as well."""
    night_blue = np.array([8.0, 48.0, 107.0])
    mixed = np.round(255.0 + probability * (night_blue - 255.0)).astype(int)
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _ink(probability: float) -> str:
    """Return the colour of text in the cell of a probability."""
    if probability < _SHADED_FROM:
        return GREY
    return "#ffffff" if probability > _WHITE_TEXT_ABOVE else "#000000"


def plot_gate(fit: Fit, *, backend: str | None = None) -> Any:
    """Plot the posterior of the difference between two systems, the threshold, and the verdict.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.decide.gate`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``above`` and ``below``, the density on either side of the threshold;
        ``threshold``, ``zero``, ``interval`` and ``mean`` of the difference.

    Raises
    ------
    ValueError
        If the result is not of a gate.

    See Also
    --------
    bayesatk.decide.gate : decides.

    Notes
    -----
    The gate passes if at least ``level`` of the area lies above the threshold, and fails if at
    least ``level`` lies below it. Floors have their sentences in the caption.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> old = [[1, 1, 1, 0]] * 20 + [[0, 1, 0, 0]] * 20
    >>> plot = plot_gate(bayesatk.decide.gate(old, old, metric="pass@1", margin=0.1))
    >>> float(plot.get_viz("threshold").get_xdata()[0])
    -0.1
    """
    drawn, read = Backend.named(backend), Result.of(fit, "gate")
    group, table = read.group("gate"), analysis_table(read, "gate")
    row = group.sel(check="difference")
    points, density = group["difference"].rename(difference="point"), group["density"].values
    height = float(np.nan_to_num(density).max()) or 1.0
    shape = points.copy(data=np.nan_to_num(density) / height)
    threshold = float(row["threshold"])
    canvas = Canvas(drawn, xr.Dataset({"density": shape}), (6.8, 3.8))
    low, high = min(float(points.min()), threshold, 0.0), max(float(points.max()), threshold, 0.0)
    for side, color in _SIDES.items():
        side_points = (
            points.clip(threshold, None) if side == "above" else points.clip(None, threshold)
        )
        heights = np.interp(side_points, points, shape, left=0.0, right=0.0)
        top = points.copy(data=heights)
        canvas.fill_between_y(side, side_points, 0.0 * top, top, color=color, alpha=0.35)
    canvas.vline("threshold", threshold, color=DARK, width=1.6, linestyle="dashed")
    canvas.vline("zero", 0.0, color=GREY, width=0.8, linestyle="dotted")
    ends = xr.concat([row["ci_lower"], row["ci_upper"]], dim="end").drop_vars("check")
    canvas.line("interval", ends, -0.08, color=DARK, width=1.4)
    canvas.scatter("mean", float(row["mean"]), -0.08, color=DARK, area=36.0)
    canvas.label(
        f"new minus baseline, difference in {estimand(parse(group.attrs['metric'])[0])}",
        xlim=spaced(low, high),
        ylim=(-0.18, 1.08),
        yticks=((), ()),
    )
    return canvas.finish(
        *table["sentence"],
        f"Blue: posterior above the threshold of {threshold:g} (dashed); orange: below it. Marker "
        f"and line: mean and {interval_name(read.ci_prob, read.ci_kind)}.",
    )
