"""Metrics: the value of ``k`` trials of a question, by name."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
