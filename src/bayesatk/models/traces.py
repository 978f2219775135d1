"""Draws of the hyperparameters of a model of one family, as difficulty distributions.

Without PyMC, which takes seconds to import.
"""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.difficulty import Difficulty
from bayesatk.priors import FAMILIES


def family_of(posterior: xr.Dataset) -> str | None:
    """Return the family whose hyperparameters a trace has, if any."""
    names = {"beta_mean": "inflated", "part_mean": "mixture"}
    found = [family for name, family in names.items() if name in posterior]
    if found:
        return found[0]
    beta = {"mean_p", "icc"} <= set(posterior) and "category" not in posterior["mean_p"].dims
    return FAMILIES[0] if beta else None


def traced_difficulty(posterior: xr.Dataset, system: int) -> Difficulty | None:
    """Return the difficulty distribution in every draw of a model of one family.

    Draws of a mixture are put in the order of their means. A trace without a system dimension is
    of one system.
    """

    def draws(name: str) -> NDArray[np.float64]:
        variable = posterior[name]
        if "system" in variable.dims:
            variable = variable.isel(system=system)
        values = variable.transpose("chain", "draw", ...).values
        return np.asarray(values.reshape(-1, *values.shape[2:]))

    family = family_of(posterior)
    if family is None:
        return None
    if family == "beta":
        return Difficulty.of_beta(draws("mean_p"), draws("icc"))
    if family == "inflated":
        never, rest = draws("never"), draws("always_of_rest")
        share, mean, icc = (1.0 - never) * (1.0 - rest), draws("beta_mean"), draws("beta_icc")
        own = share[:, None], mean[:, None], icc[:, None]
        return Difficulty(*own, never, (1.0 - never) * rest)
    mean, icc, first = draws("part_mean"), draws("part_icc"), draws("first_share")
    share = np.stack([first, 1.0 - first], axis=1)
    order = np.argsort(mean, axis=1, kind="stable")
    share, mean, icc = (np.take_along_axis(each, order, axis=1) for each in (share, mean, icc))
    zero = np.zeros(len(mean))
    return Difficulty(share, mean, icc, zero, zero)
