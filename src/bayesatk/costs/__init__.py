"""What success costs: success and cost together, systems compared, plans in money."""

from bayesatk._tools.shelves import shelf

__getattr__, __dir__, __all__ = shelf(__name__, __file__)
