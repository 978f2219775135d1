"""PyMC models: of the posteriors that have a closed form, to verify it, and of some that have none.

Shares definitions with the closed forms (outcomes, metrics, priors, result schema) and none of
their computations. PyMC is imported with the first name that is used.
"""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
