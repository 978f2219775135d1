"""Mean and variance of a mixture: of what is known at weighted points, or given them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def total_moments(weight: Array, mean: Array, variance: ArrayLike = 0.0) -> tuple[Any, Any]:
    """Return mean and variance of a mixture, by the laws of total expectation and variance.

    Parameters
    ----------
    weight : ndarray, shape (points,)
        Sums to one.
    mean : ndarray, shape (points,) or (points, numbers)
        Means of the parts.
    variance : array_like, shape of `mean`, optional
        Variances of the parts; 0 of what is known at every point.

    Returns
    -------
    mean, variance : float, or ndarray of shape (numbers,)
        About the first point, so that what does not vary between points comes out as it is.

    Examples
    --------
    >>> mean, variance = total_moments(np.array([0.5, 0.5]), np.array([1.0, 3.0]), np.ones(2))
    >>> float(mean), float(variance)
    (2.0, 2.0)
    """
    gap = mean - mean[0]
    centre = weight @ gap
    within = weight @ np.broadcast_to(variance, np.shape(mean))
    return mean[0] + centre, within + weight @ (gap - centre) ** 2
