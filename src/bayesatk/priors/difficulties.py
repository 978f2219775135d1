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
        names: list[object] = (
            list(DIFFICULTY_FAMILIES) if difficulty == "averaged" else [difficulty]
        )
        weights: list[object] = [1.0] * len(names)
    elif isinstance(difficulty, Mapping):
        names, weights = list(difficulty), list(difficulty.values())
    elif isinstance(difficulty, Sequence):
        pairs = [one if isinstance(one, tuple | list) else (one, 1.0) for one in difficulty]
        names, weights = ([pair[i] for pair in pairs] for i in (0, 1))
    else:
        names, weights = [difficulty], [1.0]
    unknown = [name for name in names if name not in DIFFICULTY_FAMILIES]
    if unknown or not names or len(set(names)) < len(names):
        raise ArgumentError(
            Argument("difficulty"),
            " must be 'averaged', or one or several different of "
            f"{', '.join(DIFFICULTY_FAMILIES)}; got {difficulty!r:.80}.",
        )
    numbers = np.array([real_number("difficulty", one) for one in weights])
    if not np.isfinite(numbers).all() or (numbers < 0.0).any() or not numbers.sum() > 0.0:
        raise ArgumentError(
            Argument("difficulty"),
            ": prior probabilities of families must be finite, >= 0 and not all 0; got "
            f"{difficulty!r:.80}.",
        )
    found = dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))
    return tuple((name, found[name]) for name in DIFFICULTY_FAMILIES if found.get(name, 0.0) > 0.0)
