"""Types of arrays, and of generators, as annotations name them; bounds of probabilities."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]
Rng = np.random.Generator

# Within them logarithms and logits of probabilities are numbers.
PROBABILITY_FLOOR, PROBABILITY_CEILING = 1e-300, 1.0 - 1e-16
_LOG_SMALLEST = -650.0  # of numbers far from the smallest normal one, exp(-708)


def exp_or_zero(logs: Array) -> Array:
    """Return the exponential of logs, zero below 1e-282.

    NumPy takes many times as long for an exponential that is subnormal (below 1e-308) or zero, and
    so does arithmetic with subnormal numbers.

    Examples
    --------
    >>> (exp_or_zero(np.array([0.0, -600.0, -700.0, -np.inf])) > 0.0).tolist()
    [True, True, False, False]
    """
    return np.asarray(np.exp(np.maximum(logs, _LOG_SMALLEST)) * (logs > _LOG_SMALLEST))
