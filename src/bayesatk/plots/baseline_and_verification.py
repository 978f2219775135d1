"""Checks: systems against the best of random guessers, closed forms against samplers."""

from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.words import equality_words
from bayesatk.guessing.baseline import guessers_of, guessing_chances
from bayesatk.guessing.distributions import LargestPoissonBinomial
from bayesatk.plots.canvas import (
    DARK,
    GREY,
    Backend,
    Canvas,
    arranged,
    captioned,
    chosen_systems,
    legend_width,
    shortened,
    spaced,
)
from bayesatk.results.result import Fit, Result
from bayesatk.results.table_columns import verified_quantity
from bayesatk.verification.calibration import Calibration
from bayesatk.verification.verify import Verification

_TESTS = {
    "z_mean": "mean", "z_sd": "sd", "z_pit": "distribution", "z_ends": "interval",
    "z_draws": "stored draws",
}  # fmt: skip


def plot_baseline(
    fit: Fit, guess: object, system: Any = None, *, backend: str | None = None
) -> Any:
    """Plot the distribution of the best of t random guessers, and the accuracies of systems.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.guessing.random_baseline`.
    guess : float, mapping, array_like or xarray.DataArray
        Probability of guessing each question right, as it was given to
        `bayesatk.guessing.random_baseline`.
    system : label, optional
        System whose numbers of trials the guessers get; default: the most accurate one. Other
        systems are shown if they have the same numbers of trials of each question.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``pmf``, ``observed`` (dims ``system``) and ``expected``.

    Raises
    ------
    ValueError
        If the result has no baseline, or was made with another `guess`.

    See Also
    --------
    bayesatk.guessing.random_baseline : makes the result.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], "mean", rng=1)
    >>> plot = plot_baseline(bayesatk.guessing.random_baseline(fit, 0.25, t=10, rng=1), 0.25)
    >>> round(float(plot.get_viz("observed").get_xdata()[0]), 4)  # 10 of 12
    0.8333
    """
    drawn, fit = Backend.named(backend), Result.of(fit, "random_baseline")
    group = fit.group("random_baseline")
    best = group["observed_accuracy"].idxmax().item()
    reference_system = chosen_systems(fit, [best if system is None else system])[0]
    best_guesser, marks, comparable = _best_guesser(fit, guess, reference_system)
    rows = group[["observed_accuracy", "p_value"]].sel(system=comparable)
    rows = rows.isel(system=np.argsort(-rows["observed_accuracy"].values, kind="stable"))
    table = rows.to_dataframe()
    names = {
        label: f"{name}: {row['observed_accuracy']:.3f}, p {equality_words(row['p_value'])}"
        for (label, row), name in zip(table.iterrows(), shortened(table.index, 24), strict=True)
    }
    canvas = Canvas(
        drawn,
        rows,
        (5.6 + legend_width(names.values()), max(4.2, 1.6 + 0.25 * len(names))),
        drawn.distinct("system", range(len(names)), "color", "linestyle"),
    )
    _draw_guesses(canvas, best_guesser, marks, rows["observed_accuracy"])
    above = {"zorder": 3}
    observed = rows["observed_accuracy"]
    canvas.vline("observed", observed, width=2.2, matplotlib=above)
    expected = float(group["expected_best"].sel(system=reference_system))
    canvas.vline(
        "expected",
        expected,
        color=DARK,
        width=1.2,
        linestyle="dotted",
        matplotlib=above,
    )
    canvas.legend("system", names, "observed accuracy, p-value")
    t, correlation = float(group.attrs["t"]), float(group.attrs["correlation"])
    joined = f", correlation {correlation:g}" if correlation else ""
    return canvas.finish(
        f"Best of {t:g} random guessers{joined}",
        f"Grey: its exact distribution. Dotted: expected best, {expected:.3f}. Lines: "
        "systems; p-value: probability that the best guesser does as well or better.",
    )


def _draw_guesses(
    canvas: Canvas, best_guesser: LargestPoissonBinomial, marks: int, observed: xr.DataArray
) -> None:
    """Draw the distribution of the best accuracy, in limits that show the observed ones too."""
    left_out = 1e-4  # probability, on either side
    counts = np.arange(int(best_guesser.ppf(left_out)), int(best_guesser.isf(left_out)) + 1)
    count = xr.DataArray(counts, dims="bin")
    heights, edges = (
        count.copy(data=best_guesser.pmf(counts)),
        ((count - 0.5) / marks, (count + 0.5) / marks),
    )
    canvas.hist("pmf", heights, *edges, facecolor="#c8c8c8", edgecolor=GREY)
    low = min(float(observed.min()), counts[0] / marks)
    high = max(float(observed.max()), counts[-1] / marks)
    canvas.label(
        "accuracy (share of all trials right)",
        "probability of the best count",
        xlim=spaced(low, high),
        ylim=(0.0, 1.06 * float(heights.max())),
    )


def _best_guesser(
    result: Result, guess: object, system: Any
) -> tuple[LargestPoissonBinomial, int, list[Any]]:
    """Return the distribution of the best count, the number of trials, and comparable systems."""
    group, labels = result.group("random_baseline"), result.systems
    index = labels.index(system)
    _, trials = result.right_of_all("random_baseline", "result")
    comparable = [
        label for label, row in zip(labels, trials, strict=True) if (row == trials[index]).all()
    ]
    guessers = guessers_of(guessing_chances(result, guess), trials[index])
    best_guesser = guessers.at(
        float(group.attrs["t"]), correlation=float(group.attrs["correlation"])
    )
    marks = guessers.marks
    stored = float(group["expected_best"].sel(system=system))
    if abs(best_guesser.mean() / marks - stored) > 1e-9:
        raise ValueError(
            "guess must be what random_baseline was given; got one with an expected best accuracy "
            f"of {best_guesser.mean() / marks:.6f}, and the result has {stored:.6f}. Pass the same."
        )
    return best_guesser, marks, comparable


def plot_verification(verification: Verification, *, backend: str | None = None) -> Any:
    """Plot differences between a sampler and a closed form, in Monte Carlo standard errors.

    Parameters
    ----------
    verification : Verification
        From `bayesatk.verify`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``z``, dims ``(test, quantity)``, ``disagreement``, dims ``quantity``, and
        ``within``. A quantity is a row of the table.

    See Also
    --------
    bayesatk.verify : computes the differences that are shown.

    Notes
    -----
    A quantity disagrees beyond the shaded band, whose half-width keeps the probability of any false
    disagreement below ``alpha``. What was not tested has no point. Of more than 40 quantities those
    furthest off are shown.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@1", rng=1)
    >>> found = bayesatk.verify(fit, fit.drop_nodes("closed_form"))
    >>> z = plot_verification(found).get_viz("z", test="mean", quantity=0).get_offsets()[0, 0]
    >>> bool(z == found.table["z_mean"][0])
    True
    """
    drawn = Backend.named(backend)
    table = verification.table.reset_index(drop=True)
    worst = table[list(_TESTS)].abs().max(axis=1).dropna()
    shown = table.loc[worst.sort_values(ascending=False, kind="stable").index[:40]].sort_index()
    shown = shown[::-1]  # the first on top
    rows, threshold = len(shown), table.attrs.get("threshold")
    data, edge = _z_scores(shown, threshold)
    names = {test: f"z of the {test}" for test in _TESTS.values()}
    canvas = Canvas(
        drawn,
        data,
        (7.2 + legend_width(names.values()), 1.6 + 0.27 * max(rows, 4)),
        {
            **drawn.distinct("test", range(len(_TESTS)), "color", "marker"),
            "overlay": (["quantity"], ()),
        },
    )
    names_shown = [verified_quantity(row) for row in shown.to_dict("records")]
    height = data["quantity"].copy(data=np.arange(rows))
    canvas.scatter("z", data["z"], height, area=34.0, alpha=0.85)
    canvas.scatter(
        "disagreement",
        data["wrong"],
        height,
        area=170.0,
        width=1.6,
        color="#000000",
        facecolor=drawn.invisible,
        marker=drawn.markers[0],
    )
    if threshold is not None:
        canvas.vspan("within", -threshold, threshold, color=GREY, alpha=0.15)
    canvas.vline("zero", 0.0, color=DARK, width=0.8)
    canvas.label(
        "z (difference in Monte Carlo standard errors)",
        xlim=(-1.08 * edge, 1.08 * edge),
        ylim=(-0.7, rows - 0.3),
        yticks=(range(rows), shortened(names_shown, 60)),
        tick_points=8.0,
    )
    canvas.legend("test", names, "difference")
    details = _z_details(verification, rows, threshold)
    return canvas.finish("Closed form against sampler", *details)


def _z_scores(shown: pd.DataFrame, threshold: float | None) -> tuple[xr.Dataset, float]:
    """Scores (test, quantity) with infinite ones at the edge of the axis, and that edge."""
    z = shown[list(_TESTS)].to_numpy(float).T
    finite = np.abs(z[np.isfinite(z)])
    edge = 1.15 * max(finite.max(initial=1.0), threshold or 0.0)
    values = np.clip(z, -edge, edge)
    wrong = np.broadcast_to((shown["verdict"] == "disagree").to_numpy(), z.shape)
    coords = {"test": list(_TESTS.values()), "quantity": shown.index.to_numpy()}
    dims = ("test", "quantity")
    marked = np.where(wrong & (np.abs(values) == np.fmax.reduce(np.abs(values))), values, np.nan)
    return xr.Dataset({"z": (dims, values), "wrong": (dims, marked)}, coords), float(edge)


def _z_details(verification: Verification, rows: int, threshold: float | None) -> list[str]:
    total = len(verification.table)
    counts = verification.table["verdict"].value_counts()
    verdicts = ", ".join(
        f"{counts.get(verdict, 0)} {verdict}" for verdict in ("agree", "disagree", "inconclusive")
    )
    details = [f"{total} quantities: {verdicts}. Ringed: disagreement (at the edge if infinite)."]
    if threshold is not None:
        details.append(
            f"Shaded: |z| up to {threshold:.2f}, for a probability of any false disagreement of at "
            f"most {verification.alpha:g}."
        )
    return details + [f"Shown: the {rows} furthest off."] * (rows < total)


def plot_calibration(calibration: Calibration, *, backend: str | None = None) -> Any:
    """Plot the ranks of true values in their posteriors, which are uniform for a correct posterior.

    Parameters
    ----------
    calibration : Calibration
        From `bayesatk.checks.calibrate`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        Of `arviz.plot_ecdf_pit`: a panel per quantity.

    See Also
    --------
    bayesatk.checks.calibrate : computes the ranks that are shown.

    Notes
    -----
    Each panel has the distribution function of the ranks minus that of the uniform distribution. A
    line that is above zero on the left and below zero on the right means that posteriors are too
    narrow; a line that is above zero everywhere, that they are too high. Points are marked where
    ArviZ's test of uniformity rejects, which it recommends in place of an envelope.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> model = bayesatk.models.build(([0] * 3, 2), pooling="none")
    >>> def exact(data, rng):
    ...     options = {"pooling": "none", "keep": ["p"], "draws": 50, "rng": rng}
    ...     return bayesatk.evaluate((data["successes"], 2), "pass@1", **options)
    >>> calibration = bayesatk.checks.calibrate(model, exact, replications=20, progress=False)
    >>> sorted(plot_calibration(calibration).viz["plot"].data_vars)
    ['p first', 'p mean']
    """
    drawn, group = Backend.named(backend), calibration.tree["prior_sbc"].to_dataset()
    number = len(group.data_vars)
    wide, high = arranged(number)
    inches = max(6.0, 0.8 + 3.1 * wide), 1.3 + 2.8 * high
    plot = az.plot_ecdf_pit(
        calibration.tree,
        group="prior_sbc",
        backend=drawn.name,
        col_wrap=wide,
        figure_kwargs=drawn.size(inches) | {"sharex": False},
        visuals={
            "xlabel": {"text": drawn.text("rank of the truth (0 to 1)")},
            "ylabel": {"text": drawn.text("ECDF − uniform")},  # noqa: RUF001
        },
    )
    return captioned(
        plot,
        drawn,
        inches[0],
        f"Simulation-based calibration: {calibration.verdict}",
        f"{group.sizes['draw']} data sets from the prior. Flat: calibrated. Marked points: the "
        "ranks furthest from uniform, where the test of uniformity rejects.",
    )
