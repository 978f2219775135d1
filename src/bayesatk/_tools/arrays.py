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
