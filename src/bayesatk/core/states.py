"""Distinct counts of questions: all that a posterior needs of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.metrics.credit import Array


@dataclass(frozen=True)
class States:
    """Distinct (successes, trials) with the number of questions in each."""

    successes: NDArray[np.int64]
    trials: NDArray[np.int64]
    count: Array
    which: NDArray[np.intp]

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike) -> "States":
        """Group questions by state; ``which`` maps each question to its state.

        Examples
        --------
        >>> states = States.of([1, 1, 0], [2, 2, 2])
        >>> states.successes.tolist(), states.count.tolist(), states.which.tolist()
        ([0, 1], [1.0, 2.0], [1, 1, 0])
        """
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        key = c + n * (int(n.max(initial=0)) + 1)
        _, first, which, count = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(c[first], n[first], count.astype(float), which.reshape(c.shape))

    @property
    def questions(self) -> float:
        """Number of questions."""
        return float(self.count.sum())

    def __len__(self) -> int:
        return len(self.count)
