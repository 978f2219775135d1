"""Expected metrics of a new question, in every draw of the hyperparameters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.metrics.grid import Metric
from bayesatk.results.difficulty import flat_draws

Array = NDArray[np.float64]
PopulationMean = Callable[[Any], Array]


def population_mean(
    posterior: xr.Dataset, system: int, difficulty: Difficulty | None
) -> PopulationMean | None:
    """Return the expected metric of a new question in each draw, where the model defines it.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws of the hyperparameters of other models.
    system : int
    difficulty : Difficulty, optional
        Of all draws, where that is how difficult questions are.
    """

    def draws(name: str) -> Array:
        return flat_draws(posterior[name], system)

    if difficulty is not None:
        return partial(expected_metric, difficulty)
    if {"mu", "sigma"} <= set(posterior):
        z = np.linspace(-8.5, 8.5, 171)
        weight = np.exp(-0.5 * z**2)
        points = expit(draws("mu")[:, None] + draws("sigma")[:, None] * z)
        return lambda metric: np.asarray(metric.latent(points) @ (weight / weight.sum()))
    if "mean_p" not in posterior:
        return None
    mean = draws("mean_p")
    if "icc" not in posterior:
        return lambda metric: np.asarray(metric.latent(mean))
    icc = draws("icc")
    alpha = mean * ((1.0 - icc) / icc)[:, None]
    return lambda metric: np.asarray(metric.predictive(alpha))


def expected_metric(difficulty: Difficulty, metric: Metric) -> Array:
    """Return the expected metric of a new question in each draw: of the Betas and of the atoms."""
    alpha, beta = difficulty.alpha, difficulty.beta
    ends = metric.latent(np.array([0.0, 1.0]))
    total = difficulty.never * ends[0] + difficulty.always * ends[1]
    for j in range(alpha.shape[1]):
        own = difficulty.share[:, j] > 0.0
        value = metric.predictive(alpha[own, j], beta[own, j])
        total[own] += difficulty.share[own, j] * value
    return np.asarray(total)
