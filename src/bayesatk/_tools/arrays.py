"""Types of arrays, and of generators, as annotations name them."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]
Rng = np.random.Generator
