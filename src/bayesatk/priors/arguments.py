"""Checks of the arguments of priors, and the difficulty families."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, real_number

_CONCENTRATION_MAX = 1e12  # largest Dirichlet parameter


def check_positive(prior: Any, *names: str, of: str = "prior") -> None:
    """Check that fields of a prior are finite and above 0."""
    for name in names:
        value = real_number(f"{of}: {name}", getattr(prior, name))
        if not (np.isfinite(value) and value > 0.0):
            default = type(prior).__dataclass_fields__[name].default
            raise ValueError(
                f"{of}: {name} must be finite and > 0; got {value}. {default} is the default."
            )
        object.__setattr__(prior, name, value)


def check_beta_parameters(prior: Any, name: str, improper: bool = False) -> None:
    """Check that a field is two Beta parameters > 0, or (a, -a) where that may be."""
    value = getattr(prior, name)
    values = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    pair = tuple(real_number(f"prior: {name}", number) for number in values)
    proper = len(pair) == 2 and bool(np.isfinite(pair).all()) and pair[0] > 0.0
    if not proper or not (pair[1] > 0.0 or (improper and pair[1] == -pair[0])):
        improper_note = (
            f" The {name} may also be (a, -a) with a > 0, which is improper, as in "
            "HyperPrior.bda3()."
        )
        raise ValueError(
            f"prior: {name} must be two Beta parameters > 0; got {value!r:.80}. (1, 1) is uniform."
            + improper * improper_note
        )
    object.__setattr__(prior, name, pair)


def check_concentration(prior: Any, name: str, size: int | None = None) -> None:
    """Check that a field is one Dirichlet parameter, or one for each category.

    Parameters
    ----------
    prior : prior
    name : str
    size : int, optional
        Required number of parameters.
    """
    value = getattr(prior, name)
    try:
        array = np.array(value) if not isinstance(value, str | bytes) else np.array(None)
    except ValueError:
        array = np.array(None)
    numbers = array.dtype.kind in "iuf" and array.ndim <= 1 and array.size > 0
    if not numbers or not ((array > 0) & (array <= _CONCENTRATION_MAX)).all():
        raise ValueError(
            f"prior: {name} must be finite and > 0, at most {_CONCENTRATION_MAX:g}: one number or "
            f"one for each category; got {value!r:.80}. 1.0 is uniform."
        )
    if size is not None and array.shape != (size,):
        raise ValueError(f"prior: {name} must be {size} parameters > 0; got {value!r:.80}.")
    plain = float(array) if array.ndim == 0 else tuple(float(number) for number in array)
    object.__setattr__(prior, name, plain)


def concentration_vector(value: float | tuple[float, ...], categories: int, name: str) -> Array:
    """Return the Dirichlet parameter of every category."""
    values = np.asarray(value, float)
    if values.ndim and len(values) != categories:
        raise ValueError(
            f"prior: {name} must be one number, or one for each of the {categories} categories; "
            f"got {value}."
        )
    return np.array(np.broadcast_to(values, categories), float)


DIFFICULTY_FAMILIES = ("beta", "inflated", "mixture")  # shapes of the distribution
Families = Any  # a type of argument of `family_probabilities`


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
            "difficulty",
            " must be 'averaged', or one or several different of "
            f"{', '.join(DIFFICULTY_FAMILIES)}; got {difficulty!r:.80}.",
        )
    numbers = np.array([real_number("difficulty", pair[1]) for pair in pairs])
    if not np.isfinite(numbers).all() or (numbers < 0.0).any() or not numbers.sum() > 0.0:
        raise ArgumentError(
            "difficulty",
            ": prior probabilities of families must be finite, >= 0 and not all 0; got "
            f"{difficulty!r:.80}.",
        )
    share = dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))
    return tuple((name, share[name]) for name in DIFFICULTY_FAMILIES if share.get(name, 0.0) > 0.0)
