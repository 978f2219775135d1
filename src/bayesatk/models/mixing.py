"""Whether the draws of a sampler are those of the posterior: a note where chains disagree."""

from collections.abc import Iterable

import arviz as az
import numpy as np
import xarray as xr

from bayesatk.results.schema import MAX_RHAT

_MAX_RHAT = 1.05  # with more, chains have clearly not mixed
_MAX_DIVERGING_SHARE = 0.01  # of transitions; with more, results are doubted even if chains agree


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
        str(name): _largest_rhat(draws)
        for name, draws in posterior.drop_vars("p", errors="ignore").data_vars.items()
    }
    name = max(worst, key=worst.__getitem__)
    diverging = np.concatenate(
        [
            np.zeros(0, bool),
            *(model["diverging"].values.ravel() for model in statistics if "diverging" in model),
        ]
    )
    unmixed = worst[name] > MAX_RHAT
    if not unmixed and diverging.sum() <= _MAX_DIVERGING_SHARE * diverging.size:
        return []
    rhat = f"{worst[name]:.6g}" if np.isfinite(worst[name]) else "infinite or unknown"
    finding = (
        f"R-hat is {rhat} for {name}, above {MAX_RHAT:g}" if unmixed else "R-hat is at most 1.01"
    )
    if diverging.any():
        finding += f", and {diverging.sum()} of {diverging.size} transitions diverged"
    problem = "may have missed a part of the posterior"
    if unmixed:
        problem = "have not mixed" if worst[name] > _MAX_RHAT else "may not have mixed yet"
    return [
        f"the chains {problem}: "
        f"{finding}. Sample again with more tune=, more draws=, or a higher target_accept "
        "(of bayesatk.sample: sample_kwargs={'target_accept': 0.95})."
    ]


def _largest_rhat(draws: xr.DataArray) -> float:
    """Largest R-hat of any number in a variable; one chain is judged by its halves.

    Infinite where draws vary and are too few to tell, 1 where none varies: known exactly.
    """
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
