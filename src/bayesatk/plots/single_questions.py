"""Single questions: their posteriors, how far pooling moves them, and how difficult they are."""

from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.metrics.grid import parse
from bayesatk.plots.canvas import (
    COLORS,
    DARK,
    GREY,
    Backend,
    Canvas,
    chosen_systems,
    shortened,
    spaced,
    upright,
)
from bayesatk.posterior.models_of import model_of
from bayesatk.results.difficulty_draws import difficulty_draws
from bayesatk.results.result import Fit, Result


def plot_questions(fit: Fit, system: Any = None, *, backend: str | None = None) -> Any:
    """Plot the posterior of every question's p or expected score, the hardest questions first.

    Parameters
    ----------
    fit : xarray.DataTree
        Of right and wrong, from `bayesatk.evaluate` or `bayesatk.sample`.
    system : label, or list of labels, optional
        A panel for each; default: all systems. Questions have the same order in all panels.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``interval``, ``mean`` and, where there are any, ``suspicious``, whose first
        names are in the titles.

    Raises
    ------
    ValueError
        If the result is of scored categories.

    See Also
    --------
    bayesatk.checks.question_table : the numbers.
    bayesatk.plots.plot_shrinkage : the shrinkage of questions by pooling.

    Notes
    -----
    Questions are ordered by their mean over the systems. If there are more than 300, evenly spaced
    ones are drawn, and all suspicious ones: those that the system fails although weaker systems
    solve them. More than 60 questions have wide panels, one below the other.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[1, 1], [0, 0], [0, 1]], "pass@1", pooling="none", rng=1)
    >>> plot = plot_questions(fit)
    >>> plot.get_viz("mean").get_offsets().round(9).tolist()  # (c + 1)/(n + 2)
    [[1.0, 0.25], [2.0, 0.5], [3.0, 0.75]]
    """
    drawn, fit = Backend.named(backend), Result.of(fit)
    systems = chosen_systems(fit, system)
    rows = _hardest_first(fit).sel(system=systems)
    size = rows.sizes["question"]
    # All questions, or 300 at equal steps.
    thinned = np.linspace(0, size - 1, min(size, 300)).round().astype(np.intp)
    marked = np.flatnonzero(rows["suspicious"].any("system"))
    shown = np.union1d(thinned, marked)
    rows = rows.isel(question=shown)
    x = xr.DataArray(shown + 1.0, {"question": rows["question"]}, "question")
    if len(shown) > _WIDE_PANEL_FROM:
        canvas = Canvas(drawn, rows, (8.4, 1.0 + 2.3 * len(systems)), cols=["system"], wrap=1)
    else:
        canvas = Canvas.of_systems(drawn, rows)
    lines = upright(x, rows["ci_lower"], rows["ci_upper"], "question")
    canvas.line("interval", *lines, color=COLORS[0], alpha=0.7, width=0.8)
    canvas.scatter("mean", x, rows["mean"], color=COLORS[0], area=16.0)
    odd = rows["mean"].where(rows["suspicious"])
    if len(marked):
        canvas.scatter("suspicious", x, odd, color=COLORS[1], marker=drawn.markers[3], area=40.0)
    canvas.label(
        "question (hardest first)",
        "success probability p" if fit.data.binary else "expected score",
        titles=_panel_titles(rows, systems),
        ylim=spaced(float(fit.scores.min()), float(fit.scores.max())),
    )
    drawn_note = f" Drawn: {len(shown)} of {size} questions." if len(shown) < size else ""
    return canvas.finish(
        "Posterior of every question",
        f"Posterior mean and {100 * fit.ci_prob:g}% interval. "
        + "Diamonds: failed, though weaker systems solve it." * bool(len(marked))
        + drawn_note,
    )


_WIDE_PANEL_FROM = 60  # a panel with more questions has the whole width
_NAMES_MAX = 5  # of suspicious questions named above a panel


def _panel_titles(rows: xr.Dataset, systems: list[Any]) -> list[str]:
    """Return the name of every system with its first suspicious questions."""
    titles = []
    for name, suspicious in zip(shortened(systems), rows["suspicious"].values, strict=True):
        questions = shortened(rows["question"].values[suspicious].tolist(), 16)
        more = f", and {len(questions) - _NAMES_MAX} more" * (len(questions) > _NAMES_MAX)
        listed = f" (diamonds: {', '.join(questions[:_NAMES_MAX])}{more})"
        titles.append(name + listed * bool(questions))
    return titles


def _hardest_first(fit: Result) -> xr.Dataset:
    """Return the posterior of every question, dims (system, question), hardest first."""
    columns = ["mean", "ci_lower", "ci_upper", "suspicious"]
    rows = question_table(fit).set_index(["system", "question"])[columns].to_xarray()
    level = fit.scale.direction * rows["mean"].mean("system")
    return rows.isel(question=level.argsort(kind="stable").values)


def plot_shrinkage(fit: Fit, system: Any = None, *, backend: str | None = None) -> Any:
    """Plot the posterior mean of every question's success probability against its raw rate.

    Parameters
    ----------
    fit : xarray.DataTree
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
    drawn, fit = Backend.named(backend), Result.of(fit)
    systems = chosen_systems(fit, system)
    tables = [_states(fit, label) for label in systems]
    most = max(int(table[:, 2].max()) for table in tables)
    classes = int(np.log2(most)) + 1  # by doublings of the number of questions
    points = np.full((2, len(tables), classes, max(map(len, tables))), np.nan)
    for i, table in enumerate(tables):
        points[:, i, np.log2(table[:, 2]).astype(int), np.arange(len(table))] = table[:, :2].T
    labels = {"system": systems, "size_class": np.arange(classes)}
    rate, mean = (xr.DataArray(values, labels, (*labels, "state")) for values in points)
    canvas = Canvas.of_systems(
        drawn, mean.to_dataset(name="value"), {"overlay": (["size_class"], ())}
    )
    diagonal = xr.DataArray([0.0, 1.0], dims="end")
    canvas.line("identity", diagonal, diagonal, color=GREY, linestyle="dashed")
    smallest, largest_area = 14.0, 400.0  # of markers, square points
    growth = min(1.0, classes / 8) / max(classes - 1, 1)
    area = smallest * (largest_area / smallest) ** (growth * mean["size_class"])
    canvas.scatter("questions", rate, mean, color=COLORS[0], alpha=0.6, area=area)
    judged = int(fit.judges is not None)  # where a judge errs, the mean of posterior means
    overall = [float(np.average(table[:, judged], weights=table[:, 2])) for table in tables]
    canvas.hline(
        "mean",
        xr.DataArray(overall, {"system": systems}, "system"),
        color=DARK,
        width=1.2,
        linestyle="dotted",
    )
    limits = (-0.04, 1.04)
    canvas.label(
        "raw success rate (share of trials)",
        "posterior mean of p (probability)",
        titles=shortened(systems),
        xlim=limits,
        ylim=limits,
    )
    largest = f" Marker area grows with the questions in it (1 to {most})." if most > 1 else ""
    return canvas.finish(
        f"Questions under pooling={fit.pooling!r}",
        f"Dashed: no change. Dotted: mean {'of p' if judged else 'raw rate'}.{largest}",
    )


def _states(result: Result, system: Any) -> Array:
    """Return raw rate, posterior mean of p, questions and trials of every (successes, trials)."""
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
            return closed["p"].sel(statistic="mean").isel(system=index).values
        return model_of(result, index).fit(parse("mean")).question_p()[0]
    draws = result.posterior
    if "p" not in draws:
        raise ValueError(
            "fit must have draws of every question's p; a sampled one has them if asked. Pass "
            "keep=['p'] to bayesatk.sample."
        )
    return draws["p"].isel(system=index).mean(("chain", "draw")).values


def plot_difficulty(fit: Fit, system: Any = None, *, backend: str | None = None) -> Any:
    """Plot the fitted distribution of success probabilities over questions.

    Parameters
    ----------
    fit : xarray.DataTree
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
    bayesatk.checks.criticise : checks what the plot shows.

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
    drawn, fit = Backend.named(backend), Result.of(fit)
    fit.require("difficulty_plot", "result")
    systems = chosen_systems(fit, system)
    p = xr.DataArray(np.linspace(0.0, 1.0, 201), dims="p")
    coords = {"system": systems, "quantile": [*fit.tails, 0.5]}
    cdf = xr.DataArray(
        [_cdf_quantiles(fit, label, p.values) for label in systems],
        coords,
        ("system", "quantile", "p"),
    )
    lower, upper, median = (cdf.isel(quantile=i, drop=True) for i in range(3))
    canvas = Canvas.of_systems(drawn, median.to_dataset(name="value"))
    canvas.fill_between_y("band", p, lower, upper, color=COLORS[0], alpha=0.25)
    canvas.line("median", p, median, color=COLORS[0], width=1.8)
    canvas.step(
        "observed",
        *_observed(fit, systems),
        color=DARK,
        width=1.3,
        linestyle="dashed",
        step_mode="after",
    )
    canvas.label(
        "success probability p",
        "share of questions with p or less",
        titles=shortened(systems),
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
    )
    return canvas.finish(
        "Difficulty of questions like these",
        f"Line: posterior median of the cdf. Band: {100 * fit.ci_prob:g}% equal-tailed interval at "
        "each p. Dashed steps: observed success rates (wider, by the noise of few trials).",
    )


def _cdf_quantiles(result: Result, system: Any, p: Array) -> Array:
    """Return ends of the interval, and median, of the cdf of difficulties; (3, points)."""
    difficulty = difficulty_draws(result.tree, result.systems.index(system))
    assert difficulty is not None  # checked: the result has one
    draws = difficulty.among(slice(None, None, max(1, len(difficulty) // 1000)))
    return np.quantile(draws.cdf(p[None]), [*result.tails, 0.5], axis=0)


def _observed(result: Result, systems: list[Any]) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the distribution function of the observed rates, dims (system, step)."""
    counts = result.right_of_all("difficulty_plot", "result")
    curves = []
    for system in systems:
        successes, trials = (count[result.systems.index(system)] for count in counts)
        tried = trials > 0
        rates, number = np.unique(successes[tried] / trials[tried], return_counts=True)
        share = np.cumsum(number) / number.sum()
        steps = xr.DataArray([[0.0, *rates, 1.0], [0.0, *share, 1.0]], dims=("axis", "step"))
        curves.append(steps.assign_coords(step=np.arange(steps.sizes["step"])))
    joined = xr.concat(
        curves, dim=xr.DataArray(systems, dims="system", name="system"), join="outer"
    )
    return joined.isel(axis=0), joined.isel(axis=1)
