"""Plots of results, thin over arviz-plots: one function per question, on any of its backends.

Every function returns the `arviz_plots.PlotCollection` that it drew, to be saved (``savefig``),
shown or changed. ``backend="plotly"`` or ``"bokeh"`` draws the same plot there. Without a screen
(matplotlib's Agg) figures are not left open in pyplot: save them with ``savefig`` of what is
returned.
"""

from importlib.util import find_spec

from bayesatk._tools.packages import PLOTS, require
from bayesatk._tools.shelves import shelf

if not any(find_spec(name) for name in ("plotly", "bokeh")):
    require(*PLOTS)

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
