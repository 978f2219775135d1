"""Arguments that must be numbers, or one of several words."""

import math
from collections.abc import Sequence
from numbers import Integral, Real

from bayesatk._tools.messages import ArgumentError


def real_number(name: str, value: object) -> float:
    """Return a number as a float, or refuse what is none.

    Examples
    --------
    >>> import numpy as np
    >>> real_number("width", np.float32(0.5))
    0.5
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(name, f" must be a number; got {value!r:.80}.")
    return float(value)


def positive_number(name: str, value: object, advice: str) -> float:
    """Return a finite number above 0, or refuse and say what to do.

    Examples
    --------
    >>> positive_number("price", 2, "Say what a trial costs.")
    2.0
    """
    number = real_number(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise ArgumentError(name, f" must be finite and > 0; got {value!r:.80}. {advice}")
    return number


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least so much, or refuse.

    Examples
    --------
    >>> import numpy as np
    >>> whole_number("trials", np.int64(3))
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ArgumentError(name, f" must be an integer >= {least}; got {value!r:.80}.")
    return int(value)


def proper_probability(
    name: str, value: object, example: float = 0.05, least: float = 0.0
) -> float:
    """Return a probability strictly between `least` and 1, or refuse and propose an example.

    Examples
    --------
    >>> proper_probability("ci_prob", 0.9)
    0.9
    """
    number = real_number(name, value)
    if not least < number < 1.0:
        rule = f" must lie strictly between {least:g} and 1; got {value}. Try {example:g}."
        raise ArgumentError(name, rule)
    return number


def one_of[Word](
    name: str, value: Word, choices: Sequence[Word], error: type[ArgumentError] = ArgumentError
) -> Word:
    """Return one of some words, or refuse.

    Examples
    --------
    >>> one_of("target", "questions", ("questions", "population"))
    'questions'
    """
    if not isinstance(value, str) or value not in choices:
        *first_choices, last = (repr(choice) for choice in choices)
        listed = f"{', '.join(first_choices)} or {last}"
        raise error(name, f" must be {listed}; got {value!r:.80}.")
    return value
