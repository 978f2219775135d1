"""Arguments that must be numbers."""

import numpy as np

from bayesatk._tools.messages import Argument, ArgumentError


def real_number(name: str, value: object) -> float:
    """Return a number as a float, or refuse what is none.

    Examples
    --------
    >>> real_number("width", np.float32(0.5))
    0.5
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise ArgumentError(Argument(name), f" must be a number; got {value!r:.80}.")
    return float(value)


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least so much, or refuse.

    Examples
    --------
    >>> whole_number("trials", np.int64(3))
    3
    """
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, int | np.integer)
        or value < least
    ):
        raise ArgumentError(Argument(name), f" must be an integer >= {least}; got {value!r:.80}.")
    return int(value)
