"""The Dirichlet-multinomial: probability of trials whose category probabilities are integrated."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]


def log_ordered(alpha: ArrayLike, counts: NDArray[Any]) -> Array:
    """Log probability of trials in their given order under ``p ~ Dirichlet(alpha)``, by row.

    Examples
    --------
    >>> np.exp(log_ordered(1.0, np.array([[1, 0, 0]]))[0]).round(12).item()  # of three categories
    0.333333333333
    """
    alpha = np.broadcast_to(np.asarray(alpha, float), counts.shape)
    rises = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=-1)
    total = alpha.sum(axis=-1)
    return np.asarray(rises - gammaln(total + counts.sum(axis=-1)) + gammaln(total))
