"""Plots of results, thin over arviz-plots: one function per question, on any of its backends.

Every function returns the `arviz_plots.PlotCollection` that it drew, to be saved (``savefig``),
shown or changed. ``backend="plotly"`` or ``"bokeh"`` draws the same plot there. Without a screen
(matplotlib's Agg) figures are not left open in pyplot: save them with ``savefig`` of what is
returned.
"""

from importlib.util import find_spec

import lazy_loader

if not any(find_spec(name) for name in ("matplotlib", "plotly", "bokeh")):
    raise ImportError(
        "bayesatk.plots needs matplotlib (or plotly, or bokeh), which is not installed. Install it "
        "with pip install matplotlib."
    )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
