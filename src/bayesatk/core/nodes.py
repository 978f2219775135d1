"""Prior Beta distributions with probabilities: what question-level posteriors are mixed over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.core.credit import Array


@dataclass(frozen=True)
class Nodes:
    """Prior Beta(alpha, beta) distributions of p with their probabilities.

    Parameters
    ----------
    alpha, beta, weight : ndarray, shape (nodes,)
    spacing : ndarray, shape (nodes,), optional
        How far apart nodes are that stand for a continuum, in standard deviations of what they
        are a mixture for; by default 0, for nodes that are nothing but themselves.
    """

    alpha: Array
    beta: Array
    weight: Array
    spacing: Array | None = None

    @classmethod
    def of(cls, x: Array, y: Array, weight: Array, spacing: Array | None = None) -> "Nodes":
        """Return nodes from ``logit m``, ``logit r``, probabilities and spacings.

        Concentrations are kept within [1e-250, 1e15]: beyond either end no probability of any
        number of trials changes in double precision.
        """
        total = np.exp(-np.clip(y, -34.5, 575.0))
        smallest = 1e-300
        return cls(
            np.maximum(expit(x) * total, smallest),
            np.maximum(expit(-x) * total, smallest),
            weight,
            spacing,
        )

    @classmethod
    def single(cls, alpha: float, beta: float) -> "Nodes":
        """Return one fixed prior: no pooling."""
        return cls(np.array([alpha]), np.array([beta]), np.ones(1))

    def __len__(self) -> int:
        return len(self.weight)


def heaviest(weight: Array, tolerance: float) -> NDArray[np.intp]:
    """Return the indices of all probabilities but those that add up to a tolerance."""
    order = np.argsort(weight)
    return np.sort(order[np.cumsum(weight[order]) > tolerance])
