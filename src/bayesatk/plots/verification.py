"""A closed form against a sampler."""

from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import kstwobign

from bayesatk.plots.canvas import (
    COLORS,
    DARK,
    GREY,
    add_legend,
    backend_name,
    finish,
    label_axes,
    legend_width,
    marker_size,
    markers,
    no_fill,
    open_figure,
    set_panels,
)
from bayesatk.plots.labels import shortened
from bayesatk.results.result import Result
from bayesatk.verification.verify import Verification, continuous_at, reference_draws

Array = NDArray[np.float64]
_TESTS = {"z_mean": "mean", "z_sd": "sd", "z_pit": "distribution"}


def plot_verification(
    verification: Verification,
    fit: xr.DataTree | Result | None = None,
    sampled: xr.DataTree | Result | None = None,
    *,
    backend: str | None = None,
) -> Any:
    """Plot differences between a sampler and a closed form, in Monte Carlo standard errors.

    Parameters
    ----------
    verification : Verification
        From `bayesatk.verify`.
    fit, sampled : xarray.DataTree, optional
        The two results that were verified. If given, the differences of whole distributions are
        plotted instead (PIT-ECDF).
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        With visuals ``z``, dims ``(test, quantity)``, ``disagreement``, dims ``quantity``, and
        ``within``; with both results ``line``, dims ``quantity``, and ``within``. A quantity is a
        row of the table.

    Raises
    ------
    ValueError
        If only one of `fit` and `sampled` is given, or they have no distributions.

    See Also
    --------
    bayesatk.verify : computes the differences that are shown.

    Notes
    -----
    A quantity disagrees beyond the shaded band, whose half-width keeps the probability of any false
    disagreement below ``family_error``. Of more than 40 quantities those furthest off are shown.

    With both results, the lines are the share of draws below each exact quantile minus its level,
    times the square root of the bulk effective sample size (smaller where the exact quantiles are
    of weighted points themselves); the band is Kolmogorov's, for all quantities at once. A line has
    a gap at levels that share one quantile.

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
    name = backend_name(backend)
    if (fit is None) != (sampled is None):
        raise ValueError("fit and sampled must be given together; got one. Pass both, or neither.")
    if fit is not None and sampled is not None:
        exact, drawn = (Result.of(source, None).tree for source in (fit, sampled))
        return _plot_distributions(verification, exact, drawn, name)
    table = verification.table.reset_index(drop=True)
    worst = table[list(_TESTS)].abs().max(axis=1)
    shown = table.loc[worst.sort_values(ascending=False, kind="stable").index[:40]].sort_index()
    shown = shown[::-1]  # the first on top
    threshold = _threshold(table)
    data, edge = _z_scores(shown, threshold)
    names = {test: f"z of the {test}" for test in _TESTS.values()}
    plot = open_figure(
        data, name, (7.2 + legend_width(list(names.values())), 1.6 + 0.27 * max(len(shown), 4)),
        styles={
            "color": (["test"], COLORS[:3]),
            "marker": (["test"], markers(name, 3)),
            "overlay": (["quantity"], ()),
        },
    )  # fmt: skip
    _draw_z(plot, data, threshold, name)
    rows = len(shown)
    set_panels(
        plot, xlim=(-1.08 * edge, 1.08 * edge), ylim=(-0.7, rows - 0.3),
        yticks=(list(range(rows)), shortened(_quantity_names(shown), 60)), tick_size=_small(name),
    )  # fmt: skip
    label_axes(plot, "z (difference in Monte Carlo standard errors)", None)
    add_legend(plot, "test", names, "difference")
    return finish(plot, "Closed form against sampler", *_z_details(verification, rows, threshold))


def _small(backend: str) -> float:
    return 8.0 if backend == "matplotlib" else 11.0


def _quantity_names(table: pd.DataFrame) -> list[str]:
    """Name rows by their labels, leaving out dimensions that a row does not have."""
    dims = [name for name in table.columns[: list(table.columns).index("exact_mean")]]
    extra = [
        name for name in ("k", "tau", "system", "target", "reached", "category") if name in table
    ]
    names = list(dict.fromkeys([*dims, *extra]))
    labels = []
    for _, row in table[names].iterrows():
        words = [
            f"{name}={value:g}" if isinstance(value, int | float) else str(value)
            for name, value in row.items()
            if not (isinstance(value, float) and np.isnan(value))
        ]
        labels.append(", ".join(words))
    return labels


def _threshold(table: pd.DataFrame) -> float | None:
    """Return |z| at which `verify` says "disagree", from the bias it says it would have caught."""
    sd = table["exact_sd"].where(table["exact_sd"].notna(), table["sampled_sd"])
    moved = (
        (table["z_mean"].abs() > 1e-6) & np.isfinite(table["z_mean"]) & (table["detectable"] > 0)
    )
    if not moved.any():
        return None
    row = table.assign(sd=sd)[moved].iloc[0]
    error = (row["sampled_mean"] - row["exact_mean"]) / row["z_mean"]
    power = 0.9  # with which `detectable` would be caught
    return float(row["detectable"] * row["sd"] / error - ndtri(power))


def _z_scores(shown: pd.DataFrame, threshold: float | None) -> tuple[xr.Dataset, float]:
    """Scores (test, quantity) with infinite ones at the edge of the axis, and that edge."""
    z = shown[list(_TESTS)].to_numpy(float).T
    finite = np.abs(z[np.isfinite(z)])
    edge = 1.15 * max(finite.max(initial=1.0), threshold or 0.0)
    values = np.clip(np.where(np.isnan(z), 0.0, z), -edge, edge)
    wrong = np.broadcast_to((shown["verdict"] == "disagree").to_numpy(), z.shape)
    coords = {"test": list(_TESTS.values()), "quantity": shown.index.to_numpy()}
    dims = ("test", "quantity")
    marked = np.where(wrong & (np.abs(values) == np.abs(values).max(axis=0)), values, np.nan)
    return xr.Dataset({"z": (dims, values), "wrong": (dims, marked)}, coords), float(edge)


def _draw_z(plot: Any, data: xr.Dataset, threshold: float | None, backend: str) -> None:
    y = data["quantity"].copy(data=np.arange(data.sizes["quantity"]))
    size = marker_size(backend, 34.0)
    plot.map(_at, "z", data=data["z"].to_dataset(name="value"), y=y, size=size, alpha=0.85)
    plot.map(
        _at, "disagreement", data=data["wrong"].to_dataset(name="value"), y=y,
        size=marker_size(backend, 170.0), ignore_aes={"color", "marker"},
        facecolor=no_fill(backend),
        edgecolor="#000000", width=1.6,
    )  # fmt: skip
    if threshold is not None:
        ends = xr.DataArray([-threshold, threshold], dims="end").to_dataset(name="value")
        plot.map(az.visuals.vspan, "within", data=ends, ignore_aes="all", color=GREY, alpha=0.15)
    zero = xr.DataArray(0.0).to_dataset(name="value")
    plot.map(az.visuals.vline, "zero", data=zero, ignore_aes="all", color=DARK, width=0.8)


def _at(da: xr.DataArray, target: Any, y: xr.DataArray, **kwargs: Any) -> Any:
    return az.visuals.scatter_x(np.atleast_1d(da.values), target, y=float(y), **kwargs)


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
            f"most {verification.family_error:g}."
        )
    return details + [f"Shown: the {rows} furthest off."] * (rows < total)


def _plot_distributions(
    verification: Verification, fit: xr.DataTree, sampled: xr.DataTree, backend: str
) -> Any:
    """Draw scaled differences of distribution functions, one line per quantity."""
    curves = _pit_curves(verification.table, fit, sampled)
    number = curves.sizes["quantity"]
    bound = float(kstwobign.isf(verification.family_error / number))
    wrong = curves["wrong"].values
    plot = open_figure(
        curves[["value"]], backend, (7.5, 5.0),
        styles={
            "color": (["quantity"], [COLORS[1] if is_wrong else COLORS[0] for is_wrong in wrong]),
            "width": (["quantity"], np.where(wrong, 2.5, 0.8).tolist()),
        },
    )  # fmt: skip
    plot.map(az.visuals.line_xy, "line", data=curves[["value"]], alpha=0.7)
    ends = xr.DataArray([-bound, bound], dims="end").to_dataset(name="value")
    plot.map(az.visuals.hspan, "within", data=ends, ignore_aes="all", color=GREY, alpha=0.15)
    set_panels(plot, xlim=(-0.02, 1.02))
    label_axes(plot, "exact probability u (PIT)", "(share of draws below − u) × √ESS")  # noqa: RUF001
    return finish(
        plot, "Closed form against sampler: whole distributions",
        f"Line: one of {number} quantities; thick where verify disagrees. Shaded: has all lines "
        f"with probability {1.0 - verification.family_error:g} or more.",
    )  # fmt: skip


def _pit_curves(table: pd.DataFrame, fit: xr.DataTree, sampled: xr.DataTree) -> xr.Dataset:
    """Scaled ECDF minus level, dims (plot_axis, quantity, level), where quantiles are exact."""
    quantiles = fit["closed_form_quantiles"].to_dataset() if "closed_form_quantiles" in fit else {}
    posterior = sampled["posterior"].to_dataset()
    dims = ("system", "k", "tau", "target", "reached", "category")
    index: list[int] = []
    scaled_curves, wrong = [], []
    for row_index, row in enumerate(table.to_dict("records")):
        name = row["variable"]
        if name not in quantiles or name not in posterior or row["exact_sd"] <= 1e-12:
            continue
        exact = quantiles[name]
        where = {dim: row[dim] for dim in dims if dim in exact.dims}
        points = exact.sel(where)
        draws = np.sort(posterior[name].sel(where).values.ravel())
        below = np.searchsorted(draws, points.values, side="right") / len(draws)
        level = points["quantile"].values
        reference = reference_draws(fit["closed_form"].to_dataset(), name, where)
        size = 1.0 / (1.0 / min(row["ess"], len(draws)) + 1.0 / reference)
        continuous = continuous_at(points.values, points.values)
        scaled = np.where(continuous, (below - level) * np.sqrt(size), np.nan)
        scaled_curves.append(np.stack([np.r_[0.0, level, 1.0], np.r_[0.0, scaled, 0.0]]))
        index.append(row_index)
        wrong.append(row["verdict"] == "disagree")
    if not scaled_curves:
        raise ValueError(
            "fit must have exact quantiles of the quantities of sampled; it has none. Pass the "
            "results that were verified, or neither for the z scores."
        )
    coords = {"plot_axis": ["x", "y"], "quantity": index}
    values = (("quantity", "plot_axis", "level"), np.stack(scaled_curves))
    return xr.Dataset({"value": values}, coords).assign_coords(wrong=("quantity", wrong))
