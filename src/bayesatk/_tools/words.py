"""Numbers and probabilities in words, the same in tables, sentences and pictures."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array


def printable(text: str) -> str:
    """Return text on one line that a terminal shows as it stands, without control characters.

    Examples
    --------
    >>> printable("red" + chr(27) + "[31m" + chr(10) + "name")
    'red?[31m name'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def few_names(names: Sequence[str]) -> str:
    """List names, the first few where there are many.

    Examples
    --------
    >>> few_names("abcdefghij")
    'a, b, c, d, e, f, g, h and 2 more'
    """
    listed, more = ", ".join(names[:8]), len(names) - 8
    return f"{listed} and {more} more" if more > 0 else listed


def by_same_text(systems: Iterable[object], texts: Sequence[str]) -> list[str]:
    """Return texts that begin with a system, those of the same words once for their systems.

    Examples
    --------
    >>> by_same_text(["a", "b"], ["a: one trial each.", "Weights are known.", "b: one trial each."])
    ['a, b: one trial each.', 'Weights are known.']
    """
    systems_of: dict[str, list[str]] = {}
    for text in texts:
        head = next((f"{system}: " for system in systems if text.startswith(f"{system}: ")), "")
        systems_of.setdefault(text.removeprefix(head), []).append(head.removesuffix(": "))
    return [
        f"{few_names(names)}: {text}" if all(names) else text for text, names in systems_of.items()
    ]


def number_words(value: float, sign: bool = False) -> str:
    """Write a number with three decimals, as tables have it; no sign before a zero.

    Examples
    --------
    >>> number_words(0.12345), number_words(0.12345, sign=True), number_words(-0.0001, sign=True)
    ('0.123', '+0.123', '0.000')
    """
    rounded = round(round(value, 12), 3) + 0.0
    return f"{rounded:+.3f}" if sign and rounded else f"{rounded:.3f}"


def probability_words(value: float) -> str:
    """Write a probability with three decimals, never as a false 0 or 1.

    Examples
    --------
    >>> [probability_words(p) for p in (0.99996, 0.25, 0.0)]
    ['> 0.999', '0.250', '< 0.001']
    """
    if value >= 0.9995:
        return "> 0.999"
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def equality_words(value: float) -> str:
    """Write a probability behind an equality sign, unless it has a sign of its own.

    Examples
    --------
    >>> [equality_words(p) for p in (0.99996, 0.25)]
    ['> 0.999', '= 0.250']
    """
    words = probability_words(value)
    return words if words[0] in "<>" else f"= {words}"


def chance_words(event: str, probability: float) -> str:
    """Write a probability with its event.

    Examples
    --------
    >>> chance_words("better", 0.25), chance_words("tie", 1.0)
    ('P(better) = 0.250', 'P(tie) > 0.999')
    """
    return f"P({event}) {equality_words(probability)}"


def share_error(share: ArrayLike, draws: float) -> Array:
    """Return the Monte Carlo standard error of shares of draws, positive for 0 and 1, too.

    Examples
    --------
    >>> share_error([0.5, 0.0], 98).round(4).tolist()  # of none of 98: as of 0.98 of them
    [0.0505, 0.0101]
    """
    share_min = 1.0 / (draws + 2.0)
    inside = np.clip(share, share_min, 1.0 - share_min)
    return np.asarray(np.sqrt(inside * (1.0 - inside) / draws))


def near_words(share: ArrayLike, bound: float, draws: float) -> str:
    """Warn where one of some shares of draws is within three standard errors of what decides.

    Examples
    --------
    >>> near_words([0.99, 0.974], 0.975, 4000)
    ' This is within Monte Carlo error of 0.975: another seed, or more draws, may decide otherwise.'
    >>> near_words(0.99, 0.975, 4000)
    ''
    """
    near = np.abs(np.asarray(share) - bound) < 3.0 * share_error(share, draws)
    text = (
        f" This is within Monte Carlo error of {bound:g}: another seed, or more draws, may decide "
        "otherwise."
    )
    return text * bool(near.any())
