"""Whether model, questions, data and computation are as assumed."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
