"""Prior Beta distributions with probabilities: what question-level posteriors are mixed over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.metrics.credit import Array

Grid = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Nodes:
    """Prior Beta(alpha, beta) distributions of p with their probabilities.

    Parameters
    ----------
    alpha, beta, weight : ndarray, shape (nodes,)
    grid : pair of ndarray of int, optional
        Row and column of nodes that stand for a continuum on a grid; None for nodes that are
        nothing but themselves.
    """

    alpha: Array
    beta: Array
    weight: Array
    grid: Grid | None = None

    @classmethod
    def of(cls, x: Array, y: Array, weight: Array, grid: Grid | None = None) -> "Nodes":
        """Return nodes from ``logit m``, ``logit r``, probabilities and places on a grid.

        Concentrations are kept within [1e-250, 1e15]: beyond either end no probability of any
        number of trials changes in double precision.
        """
        total = np.exp(-np.clip(y, -34.5, 575.0))
        smallest = 1e-300
        return cls(
            np.maximum(expit(x) * total, smallest),
            np.maximum(expit(-x) * total, smallest),
            weight,
            grid,
        )

    @classmethod
    def single(cls, alpha: float, beta: float) -> "Nodes":
        """Return one fixed prior: no pooling."""
        return cls(np.array([alpha]), np.array([beta]), np.ones(1))

    def among(self, keep: NDArray[np.intp]) -> "Nodes":
        """Return some of the nodes, not renormalised."""
        grid = None if self.grid is None else (self.grid[0][keep], self.grid[1][keep])
        return Nodes(self.alpha[keep], self.beta[keep], self.weight[keep], grid)

    def steps(self, values: Array) -> tuple[Array, Array]:
        """How far values at the nodes move to the next row, and to the next column; (nodes, m).

        The larger of the moves to either side, 0 without a neighbour.

        Examples
        --------
        >>> place = np.array([0, 0, 1]), np.array([0, 1, 0])
        >>> nodes = Nodes(np.ones(3), np.ones(3), np.ones(3) / 3, place)
        >>> [step[:, 0].tolist() for step in nodes.steps(np.array([[0.0], [1.0], [5.0]]))]
        [[5.0, 0.0, 5.0], [1.0, 1.0, 0.0]]
        """
        if self.grid is None:
            return np.zeros_like(values), np.zeros_like(values)
        row, column = (place - place.min(initial=0) for place in self.grid)
        table = np.full((row.max() + 1, column.max() + 1, values.shape[1]), np.nan)
        table[row, column] = values
        moved = []
        for axis in (0, 1):
            gap = np.nan_to_num(np.abs(np.diff(table, axis=axis)))
            edge = np.zeros_like(table.take([0], axis))
            wide = np.maximum(np.append(gap, edge, axis), np.append(edge, gap, axis))
            moved.append(wide[row, column])
        return moved[0], moved[1]

    def __len__(self) -> int:
        return len(self.weight)


def heaviest(weight: Array, tolerance: float) -> NDArray[np.intp]:
    """Return the indices of all probabilities but those that add up to a tolerance."""
    order = np.argsort(weight)
    return np.sort(order[np.cumsum(weight[order]) > tolerance])
