"""Difficulty families: which there are, and how probable each is a priori."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesatk._tools.arguments import real_number
from bayesatk._tools.messages import Argument, ArgumentError

DIFFICULTY_FAMILIES = ("beta", "inflated", "mixture")  # shapes of the distribution
Families = Any  # what `family_probabilities` takes


def family_probabilities(difficulty: object) -> tuple[tuple[str, float], ...]:
    """Return difficulty families with their prior probabilities, in one order.

    Parameters
    ----------
    difficulty : str, sequence of str, or mapping {family: prior probability}
        ``"averaged"`` is all families, equally probable.

    Examples
    --------
    >>> family_probabilities("averaged") == family_probabilities(DIFFICULTY_FAMILIES)
    True
    >>> family_probabilities(["inflated", "beta"])
    (('beta', 0.5), ('inflated', 0.5))
    """
    if isinstance(difficulty, str):
        pairs: list[Any] = [
            (name, 1.0)
            for name in (DIFFICULTY_FAMILIES if difficulty == "averaged" else [difficulty])
        ]
    elif isinstance(difficulty, Mapping):
        pairs = list(difficulty.items())
    else:
        entries = difficulty if isinstance(difficulty, Sequence) else [difficulty]
        pairs = [entry if isinstance(entry, tuple | list) else (entry, 1.0) for entry in entries]
    names = [pair[0] for pair in pairs]
    unknown = [name for name in names if name not in DIFFICULTY_FAMILIES]
    if unknown or not names or len(set(names)) < len(names):
        raise ArgumentError(
            Argument("difficulty"),
            " must be 'averaged', or one or several different of "
            f"{', '.join(DIFFICULTY_FAMILIES)}; got {difficulty!r:.80}.",
        )
    numbers = np.array([real_number("difficulty", pair[1]) for pair in pairs])
    if not np.isfinite(numbers).all() or (numbers < 0.0).any() or not numbers.sum() > 0.0:
        raise ArgumentError(
            Argument("difficulty"),
            ": prior probabilities of families must be finite, >= 0 and not all 0; got "
            f"{difficulty!r:.80}.",
        )
    share = dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))
    return tuple((name, share[name]) for name in DIFFICULTY_FAMILIES if share.get(name, 0.0) > 0.0)
