"""Small real data, typed in from their publications: counts are facts and carry no licence."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
