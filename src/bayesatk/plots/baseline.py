"""The best of several random guessers, and what systems scored."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.data.chances import success_probabilities
from bayesatk.guessing.distributions import LargestPoissonBinomial
from bayesatk.guessing.max_random import MaxOrderStatisticPoissonBinomial
from bayesatk.plots.canvas import (
    DARK,
    GREY,
    add_legend,
    backend_name,
    colors,
    finish,
    label_axes,
    legend_width,
    lines,
    open_figure,
    set_panels,
)
from bayesatk.plots.labels import probability_text, shortened
from bayesatk.plots.request import chosen_systems
from bayesatk.results.result import Result


def plot_baseline(
    result: xr.DataTree | Result, p: object, system: Any = None, *, backend: str | None = None
) -> Any:
    """Plot the distribution of the best of t random guessers, and the accuracies of systems.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.guessing.random_baseline`.
    p : float, mapping, array_like, xarray.DataArray or LargestPoissonBinomial
        Probability of guessing each question right, as it was given to
        `bayesatk.guessing.random_baseline`; or the distribution of the best count itself.
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
        If the result has no baseline, or was made with another `p`.

    See Also
    --------
    bayesatk.guessing.random_baseline : makes the result.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> fit = bayesatk.evaluate([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], "bayes", rng=1)
    >>> plot = plot_baseline(bayesatk.guessing.random_baseline(fit, 0.25, t=10, rng=1), 0.25)
    >>> round(float(plot.get_viz("observed").get_xdata()[0]), 4)  # 10 of 12
    0.8333
    """
    name = backend_name(backend)
    fit = Result.of(result, "random_baseline")
    group = fit.group("random_baseline")
    best = group["system"].values.tolist()[int(np.argmax(group["observed_accuracy"].values))]
    reference_system = chosen_systems(fit, [best if system is None else system])[0]
    law, marks, comparable = _law(fit, p, reference_system)
    observed = group["observed_accuracy"].sel(system=comparable)
    observed = observed.isel(system=np.argsort(-observed.values, kind="stable"))
    comparable = observed["system"].values.tolist()
    left_out = 1e-4  # probability, on either side
    counts = np.arange(int(law.ppf(left_out)), int(law.isf(left_out)) + 1)
    names = _names(group, comparable)
    height = max(4.2, 1.6 + 0.25 * len(comparable))
    plot = open_figure(
        observed.to_dataset(name="value"), name, (5.6 + legend_width(list(names.values())), height),
        styles={
            "color": (["system"], colors(len(comparable))),
            "linestyle": (["system"], lines(name, len(comparable))),
        },
    )  # fmt: skip
    bars = _bars(law, counts, marks).to_dataset(name="value")
    style = {"facecolor": "#c8c8c8", "edgecolor": GREY}
    plot.map(az.visuals.hist, "pmf", data=bars, ignore_aes="all", **style)
    above: dict[str, Any] = {"zorder": 3} if name == "matplotlib" else {}
    plot.map(az.visuals.vline, "observed", width=2.2, **above)
    expected = group["expected_best"].sel(system=reference_system, drop=True)
    plot.map(
        az.visuals.vline, "expected", data=expected.to_dataset(name="value"), ignore_aes="all",
        color=DARK, width=1.2, linestyle=lines(name, 3)[2], **above,
    )  # fmt: skip
    _limits(plot, observed, counts / marks, float(law.pmf(counts).max()))
    label_axes(plot, "accuracy (share of all trials right)", "probability of the best count")
    add_legend(plot, "system", names, "observed accuracy, p-value")
    t, correlation = float(group.attrs["t"]), float(group.attrs["correlation"])
    joined = f", correlation {correlation:g}" if correlation else ""
    return finish(
        plot, f"Best of {t:g} random guessers{joined}",
        f"Grey: its exact distribution. Dotted: expected best, {float(expected):.3f}. Lines: "
        "systems; p-value: probability that the best guesser does as well or better.",
    )  # fmt: skip


def _law(result: Result, p: object, system: Any) -> tuple[LargestPoissonBinomial, int, list[Any]]:
    """Return the best count's distribution, out of how many, and the systems it holds for."""
    group, labels = result.group("random_baseline"), result.systems
    index = labels.index(system)
    _, trials = result.right_of_all("random_baseline", "result")
    comparable = [
        label for label, row in zip(labels, trials, strict=True) if (row == trials[index]).all()
    ]
    marks = int(trials[index].sum())
    if isinstance(p, LargestPoissonBinomial):
        law = p
    else:
        if isinstance(p, xr.DataArray) and "question" in p.coords:
            p = p.sel(question=result.group("observed_data")["question"].values).values
        chance = np.repeat(success_probabilities(trials.shape[1], p), trials[index])
        guessers = MaxOrderStatisticPoissonBinomial(marks, chance)
        law = guessers.at(float(group.attrs["t"]), correlation=float(group.attrs["correlation"]))
    stored = float(group["expected_best"].sel(system=system))
    if abs(law.mean() / marks - stored) > 1e-9:
        raise ValueError(
            "p must be what random_baseline was given; got one with an expected best accuracy of "
            f"{law.mean() / marks:.6f}, and the result has {stored:.6f}. Pass the same p."
        )
    return law, marks, comparable


def _names(group: xr.Dataset, systems: list[Any]) -> dict[Any, str]:
    """Systems with their accuracy and p-value, for the legend."""
    short = shortened(systems, 24)
    rows = group[["observed_accuracy", "p_value"]].sel(system=systems)
    return {
        system: f"{label}: {float(accuracy):.3f}, p {probability_text(float(value))}"
        for system, label, accuracy, value in zip(
            systems, short, rows["observed_accuracy"], rows["p_value"], strict=True
        )
    }


def _bars(law: LargestPoissonBinomial, counts: Any, marks: int) -> xr.DataArray:
    """Probability of each count as a histogram of accuracies."""
    edges = [law.pmf(counts), (counts - 0.5) / marks, (counts + 0.5) / marks]
    axis_labels = ["histogram", "left_edges", "right_edges"]
    return xr.DataArray(
        np.stack(edges), dims=("plot_axis", "bin"), coords={"plot_axis": axis_labels}
    )


def _limits(plot: Any, observed: xr.DataArray, accuracies: Any, highest: float) -> None:
    low = min(float(observed.min()), accuracies[0])
    high = max(float(observed.max()), accuracies[-1])
    space = 0.05 * (high - low)
    set_panels(plot, xlim=(low - space, high + space), ylim=(0.0, 1.06 * highest))
