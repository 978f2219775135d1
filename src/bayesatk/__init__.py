"""Exact Bayesian statistics of repeated-trial evaluation, verified by sampling.

The public names are listed once, in ``__init__.pyi``, and imported on first use.
"""

from bayesatk._tools.shelves import shelf

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
