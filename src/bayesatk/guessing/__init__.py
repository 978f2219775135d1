"""The random baseline: scores of guessing, of the best of many guessers, and systems compared."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
