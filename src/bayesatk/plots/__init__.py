"""Plots of results, thin over arviz-plots: one function per question, on any of its backends.

Every function returns the `arviz_plots.PlotCollection` that it drew, to be saved (``savefig``),
shown or changed. ``backend="plotly"`` or ``"bokeh"`` draws the same plot there. Without a screen
(matplotlib's Agg) figures are not left open in pyplot: save them with ``savefig`` of what is
returned.
"""

from importlib.util import find_spec

if not any(find_spec(name) for name in ("matplotlib", "plotly", "bokeh")):
    raise ImportError(
        "bayesatk.plots needs matplotlib (or plotly, or bokeh), which is not installed. Install it "
        "with pip install matplotlib."
    )

from bayesatk.plots.baseline import plot_baseline
from bayesatk.plots.calibration import plot_calibration
from bayesatk.plots.curve import plot_curve
from bayesatk.plots.differences import plot_difference
from bayesatk.plots.difficulty import plot_difficulty
from bayesatk.plots.forest import plot_systems
from bayesatk.plots.ranks import plot_ranks
from bayesatk.plots.shrinkage import plot_shrinkage
from bayesatk.plots.verification import plot_verification

__all__ = [
    "plot_baseline",
    "plot_calibration",
    "plot_curve",
    "plot_difference",
    "plot_difficulty",
    "plot_ranks",
    "plot_shrinkage",
    "plot_systems",
    "plot_verification",
]
