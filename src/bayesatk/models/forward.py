"""Data drawn from a PyMC model: one draw of its prior, and of what it says of trials, at a time.

The full form of a model has probabilities as variables and counts as observed variables, so that
PyMC can draw them: a millisecond for each data set, once it is compiled.
"""

from threading import Lock
from typing import Any

import pymc as pm
import xarray as xr
from pymc.pytensorf import compile as compile_pytensor
from pymc.pytensorf import find_rng_nodes, reseed_rngs

from bayesatk._tools.arrays import Rng


class Forward:
    """A model compiled to be drawn from.

    Parameters
    ----------
    model : pymc.Model
        Whose prior has no potentials.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesatk.models import build
    >>> drawn = Forward(build([[1, 0], [1, 1]], form="full")).draw(np.random.default_rng(1))
    >>> dict(drawn["p"].sizes), bool((drawn["successes"] <= 2).all())
    ({'chain': 1, 'draw': 1, 'system': 1, 'question': 2}, True)
    """

    def __init__(self, model: pm.Model) -> None:
        variables: list[Any] = [*model.free_RVs, *model.deterministics, *model.observed_RVs]
        self._dims = {
            variable.name: model.named_vars_to_dims.get(variable.name, ()) for variable in variables
        }
        self._random = find_rng_nodes(variables)
        # Compiling to C costs more than interpreting the few thousand draws of a study.
        self._function = compile_pytensor([], variables, mode="FAST_COMPILE")
        self._lock = Lock()  # between the seed and the draw

    def draw(self, rng: Rng) -> xr.Dataset:
        """Draw all variables once, as a trace of one chain and one draw."""
        with self._lock:
            reseed_rngs(self._random, int(rng.integers(2**63)))
            values = self._function()
        return xr.Dataset(
            {
                name: (("chain", "draw", *self._dims_of(name, value.ndim)), value[None, None])
                for name, value in zip(self._dims, values, strict=True)
            }
        )

    def _dims_of(self, name: str, axes: int) -> tuple[str, ...]:
        return self._dims[name] or tuple(f"{name}_{axis}" for axis in range(axes))
