"""The random baseline: scores of guessing, of the best of many guessers, and systems compared."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
