"""Small real data, typed in from their publications: counts are facts and carry no licence."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
