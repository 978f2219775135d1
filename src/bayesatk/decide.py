"""Decisions: gates, stopping rules, e-values, horizons, the noise of a rerun."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
