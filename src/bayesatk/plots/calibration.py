"""Where true values fell in their posteriors."""

from typing import Any

import arviz as az

from bayesatk.plots.canvas import backend_name, finish, size_options
from bayesatk.plots.labels import markup
from bayesatk.verification.calibration import Calibration


def plot_calibration(calibration: Calibration, *, backend: str | None = None) -> Any:
    """Plot the ranks of true values in their posteriors, which are uniform for a correct posterior.

    Parameters
    ----------
    calibration : Calibration
        From `bayesatk.calibrate`.
    backend : {"matplotlib", "plotly", "bokeh"}, optional
        Default: ArviZ's ``rcParams["plot.backend"]``.

    Returns
    -------
    arviz_plots.PlotCollection
        Of `arviz.plot_ecdf_pit`: a panel per quantity.

    See Also
    --------
    bayesatk.calibrate : computes the ranks that are shown.

    Notes
    -----
    Each panel has the distribution function of the ranks minus that of the uniform distribution. A
    line that is above zero on the left and below zero on the right means that posteriors are too
    narrow; a line that is above zero everywhere, that they are too high.

    Examples
    --------
    >>> import bayesatk, matplotlib
    >>> matplotlib.use("agg")
    >>> options = {"difficulty": "beta", "replications": 60, "rng": 1}
    >>> calibration = bayesatk.calibrate(3, 2, progress=False, **options)
    >>> sorted(plot_calibration(calibration).viz["plot"].data_vars)[:2]
    ['icc', 'mean_p']
    """
    name = backend_name(backend)
    group = calibration.tree["prior_sbc"].to_dataset()
    number = len(group.data_vars)
    wide, high = min(number, 3), -(-number // 3)
    inches = (max(6.0, 0.8 + 3.1 * wide), 1.3 + 2.8 * high)
    figure = size_options(name, inches) | {"sharex": False}
    plot = az.plot_ecdf_pit(
        calibration.tree, group="prior_sbc", backend=name, col_wrap=3, figure_kwargs=figure,
        visuals={
            "xlabel": {"text": markup("rank of the truth (0 to 1)", name)},
            "ylabel": {"text": markup("ECDF − uniform", name)},  # noqa: RUF001
        },
    )  # fmt: skip
    plot.viz.attrs["inches"] = inches[0]
    draws = group.sizes["draw"]
    return finish(
        plot, f"Simulation-based calibration: {calibration.verdict}",
        f"{draws} data sets from the prior. Flat: calibrated. Marked points: the ranks furthest "
        "from uniform, where the test of uniformity rejects.",
    )  # fmt: skip
