"""What traces say: draws of difficulty distributions, and whether chains have mixed.

Without PyMC, which takes seconds to import.
"""

from collections.abc import Iterable

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.priors import DIFFICULTY_FAMILIES
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.schema import MAX_RHAT

_DIVERGING = 0.01  # share of transitions from which results are doubted though chains agree


def family_of(posterior: xr.Dataset) -> str | None:
    """Return the family whose hyperparameters a trace has, if any."""
    if not {"mean_p", "icc"} <= set(posterior) or "category" in posterior["mean_p"].dims:
        return None
    for name, family in (("atoms", "inflated"), ("share", "mixture")):
        if name in posterior:
            return family
    return DIFFICULTY_FAMILIES[0]


def traced_difficulty(posterior: xr.Dataset, system: int) -> Difficulty | None:
    """Return the difficulty distribution in every draw of a model of one family.

    Draws of a mixture are put in the order of their means. A trace without a system dimension is
    of one system. Covariates and groups move these distributions.
    """

    def draws(name: str) -> NDArray[np.float64]:
        return flat_draws(posterior[name], system)

    family = family_of(posterior)
    if family is None:
        return None
    mean, icc = draws("mean_p"), draws("icc")
    if family == "beta":
        return Difficulty.of_beta(mean, icc)
    if family == "inflated":
        never, always, between = draws("atoms").T
        return Difficulty(between[:, None], mean[:, None], icc[:, None], never, always)
    first, zero = draws("share"), np.zeros(len(mean))
    share = np.stack([first, 1.0 - first], axis=1)
    order = np.argsort(mean, axis=1, kind="stable")
    share, mean, icc = (np.take_along_axis(each, order, axis=1) for each in (share, mean, icc))
    return Difficulty(share, mean, icc, zero, zero)


def mixing_notes(posterior: xr.Dataset, statistics: Iterable[xr.Dataset]) -> list[str]:
    """Say whether draws are those of the posterior, by R-hat and divergent transitions.

    Parameters
    ----------
    posterior : xarray.Dataset
        Metrics and hyperparameters. Success probabilities of questions are left out.
    statistics : iterable of xarray.Dataset
        Of the sampler, by model.
    """
    worst = {
        str(name): _largest_rhat(one)
        for name, one in posterior.drop_vars("p", errors="ignore").data_vars.items()
    }
    name = max(worst, key=worst.__getitem__)
    diverging = np.concatenate([one["diverging"].values.ravel() for one in statistics])
    unmixed = worst[name] > MAX_RHAT
    if not unmixed and diverging.mean() <= _DIVERGING:
        return []
    rhat = f"{worst[name]:.3g}" if np.isfinite(worst[name]) else "infinite or unknown"
    found = f"R-hat is {rhat} for {name}" if unmixed else "R-hat is at most 1.01"
    return [
        f"the chains {'have not mixed' if unmixed else 'may have missed a part of the posterior'}: "
        f"{found}, and {diverging.sum()} of {diverging.size} transitions diverged. Sample again "
        "with more tune=, more draws=, or sample_kwargs={'target_accept': 0.95}."
    ]


def _largest_rhat(draws: xr.DataArray) -> float:
    """Largest R-hat of any number in a variable; one chain is judged by its halves.

    Infinite where draws vary and are too few to tell, 1 where none varies: known exactly.
    """
    import arviz as az

    draws = draws.transpose("chain", "draw", ...)
    values = draws.values.reshape(*draws.shape[:2], -1)
    if len(values) == 1:
        half = values.shape[1] // 2
        values = np.stack([values[0, :half], values[0, half : 2 * half]])
    if not values.size:
        return np.inf
    values = values[:, :, np.ptp(values, axis=(0, 1)) > 0.0]
    if not values.size:
        return 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat = az.rhat(values, chain_axis=0, draw_axis=1)
    return float(np.where(np.isnan(rhat), np.inf, rhat).max())
