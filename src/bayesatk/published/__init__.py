"""The array functions of the papers under their published names and arguments."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
