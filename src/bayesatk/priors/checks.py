"""Arguments of priors: checked, and made plain floats."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arguments import real_number

_MOST = 1e12  # of a Dirichlet parameter


def positive_numbers(prior: Any, *names: str, of: str = "prior") -> None:
    """Check that fields of a prior are finite and above 0."""
    for name in names:
        value = real_number(f"{of}: {name}", getattr(prior, name))
        if not (np.isfinite(value) and value > 0.0):
            default = type(prior).__dataclass_fields__[name].default
            raise ValueError(
                f"{of}: {name} must be finite and > 0; got {value}. {default} is the default."
            )
        object.__setattr__(prior, name, value)


def beta_parameters(prior: Any, name: str, improper: bool = False) -> None:
    """Check that a field is two Beta parameters > 0, or (a, -a) where that may be."""
    value = getattr(prior, name)
    values = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    pair = tuple(real_number(f"prior: {name}", number) for number in values)
    proper = len(pair) == 2 and bool(np.isfinite(pair).all()) and pair[0] > 0.0
    if not proper or not (pair[1] > 0.0 or (improper and pair[1] == -pair[0])):
        more = (
            f" The {name} may also be (a, -a) with a > 0, which is improper, as in "
            "HyperPrior.bda3()."
        )
        raise ValueError(
            f"prior: {name} must be two Beta parameters > 0; got {value!r:.80}. (1, 1) is uniform."
            + improper * more
        )
    object.__setattr__(prior, name, pair)


def concentration(prior: Any, name: str, size: int | None = None) -> None:
    """Check that a field is one Dirichlet parameter, or one for each category.

    Parameters
    ----------
    prior : prior
    name : str
    size : int, optional
        Of the tuple that it must be.
    """
    value = getattr(prior, name)
    try:
        array = np.array(value) if not isinstance(value, str | bytes) else np.array(None)
    except ValueError:
        array = np.array(None)
    numbers = array.dtype.kind in "iuf" and array.ndim <= 1 and array.size > 0
    if not numbers or not ((array > 0) & (array <= _MOST)).all():
        raise ValueError(
            f"prior: {name} must be finite and > 0, at most {_MOST:g}: one number or one for each "
            f"category; got {value!r:.80}. 1.0 is uniform."
        )
    if size is not None and array.shape != (size,):
        raise ValueError(f"prior: {name} must be {size} parameters > 0; got {value!r:.80}.")
    plain = float(array) if array.ndim == 0 else tuple(float(number) for number in array)
    object.__setattr__(prior, name, plain)


def spread(value: float | tuple[float, ...], categories: int, name: str) -> NDArray[np.float64]:
    """Return the concentration of every category."""
    values = np.asarray(value, float)
    if values.ndim and len(values) != categories:
        raise ValueError(
            f"prior: {name} must be one number, or one for each of the {categories} categories; "
            f"got {value}."
        )
    return np.array(np.broadcast_to(values, categories), float)
