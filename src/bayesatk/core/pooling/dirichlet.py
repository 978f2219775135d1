"""Draws from Dirichlet distributions, however small their parameters."""

import numpy as np
from scipy.special import softmax

from bayesatk._tools.arrays import Array, Rng

_LARGE = 0.1  # Dirichlet parameters from which gamma variates do not underflow


def draw_probabilities(alpha: Array, rng: Rng) -> Array:
    """One draw of Dirichlet probabilities for every row of parameters.

    Small parameters are drawn on the log scale, ``G(a) = G(a + 1) U^(1/a)``: their gamma variates
    would all be zero.
    """
    if alpha.min() >= _LARGE:
        gammas = rng.standard_gamma(alpha)
        return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    return np.asarray(softmax(logs, axis=-1))
