"""Prior distributions of p with probabilities: what question-level posteriors are mixed over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.core.question.dirichlet_multinomial import log_rise
from bayesatk.metrics.credit import Array

Grid = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Nodes:
    """Prior distributions of p, each of Betas and atoms at 0 and 1, with their probabilities.

    Parameters
    ----------
    alpha, beta, share : ndarray, shape (nodes, components)
        The Betas of each node.
    atoms : ndarray, shape (nodes, 2)
        Shares of p = 0 and p = 1; with those of the Betas they sum to one.
    weight : ndarray, shape (nodes,)
        Probabilities of the nodes.
    grid : pair of ndarray of int, optional
        Row and column of nodes that stand for a continuum on a grid, -1 for others; None where all
        nodes are nothing but themselves.
    """

    alpha: Array
    beta: Array
    share: Array
    atoms: Array
    weight: Array
    grid: Grid | None = None
    rates: Array | None = None

    @classmethod
    def of(cls, x: Array, y: Array, weight: Array, grid: Grid | None = None) -> "Nodes":
        """Return Betas from ``logit m``, ``logit r``, probabilities and places on a grid.

        Concentrations are kept within [1e-250, 1e15]: beyond either end no probability of any
        number of trials changes in double precision.
        """
        total = np.exp(-np.clip(y, -34.5, 575.0))
        smallest = 1e-300
        alpha, beta = (
            np.maximum(expit(x) * total, smallest),
            np.maximum(expit(-x) * total, smallest),
        )
        one, none = np.ones((len(weight), 1)), np.zeros((len(weight), 2))
        return cls(alpha.reshape(one.shape), beta.reshape(one.shape), one, none, weight, grid)

    @classmethod
    def betas(cls, alpha: Array, beta: Array, weight: Array) -> "Nodes":
        """Return single Betas."""
        one, none = np.ones((len(weight), 1)), np.zeros((len(weight), 2))
        return cls(alpha[:, None], beta[:, None], one, none, weight)

    @classmethod
    def mixed(cls, parts: Sequence["Nodes"], share: Array, atoms: Array) -> "Nodes":
        """Return nodes whose Betas are those of several, with shares (nodes, parts) and atoms."""
        alpha = np.concatenate([one.alpha for one in parts], axis=1)
        beta = np.concatenate([one.beta for one in parts], axis=1)
        return cls(alpha, beta, share, atoms, parts[0].weight)

    @classmethod
    def single(cls, alpha: float, beta: float) -> "Nodes":
        """Return one fixed prior: no pooling."""
        return cls.betas(np.array([alpha]), np.array([beta]), np.ones(1))

    @classmethod
    def joined(cls, parts: Sequence["Nodes"], probability: Sequence[float]) -> "Nodes":
        """Return the nodes of several posteriors, each with its probability."""
        if len(parts) == 1:
            return parts[0]
        most = max(one.alpha.shape[1] for one in parts)

        def wide(own: Array, share: bool = False) -> Array:
            # What is filled in has no share; a copy of the first component needs no other rule.
            filled = np.repeat(own[:, :1] * (not share), most - own.shape[1], axis=1)
            return np.concatenate([own, filled], axis=1)

        places: list[list[NDArray[np.intp]]] = [[], []]
        for one in parts:
            for axis in (0, 1):
                off = np.full(len(one), -1, np.intp)
                places[axis].append(off if one.grid is None else one.grid[axis])
        grid = np.concatenate(places[0]), np.concatenate(places[1])
        weight = [p * one.weight for p, one in zip(probability, parts, strict=True)]
        return cls(
            np.concatenate([wide(one.alpha) for one in parts]),
            np.concatenate([wide(one.beta) for one in parts]),
            np.concatenate([wide(one.share, share=True) for one in parts]),
            np.concatenate([one.atoms for one in parts]), np.concatenate(weight),
            grid if (grid[0] >= 0).any() else None,
            None if parts[0].rates is None else np.concatenate([one.rates for one in parts]),
        )  # fmt: skip

    @property
    def components(self) -> Iterator[tuple[Array, Array, Array]]:
        """Share, alpha and beta of one component after the other, by node."""
        return zip(self.share.T, self.alpha.T, self.beta.T, strict=True)

    def overall(self) -> Array:
        """Mean of p and its complement, intraclass correlation and its complement; (4, nodes).

        The correlation is the variance of p over mean (1 - mean).
        """
        total = self.alpha + self.beta
        mean, rest = self.alpha / total, self.beta / total
        never, always = self.atoms.T
        whole = always + (self.share * mean).sum(axis=1)
        other = never + (self.share * rest).sum(axis=1)
        within = (self.share * mean * rest * total / (1.0 + total)).sum(axis=1)
        gap = np.where((whole < 0.5)[:, None], mean - whole[:, None], other[:, None] - rest)
        between = self.share * (gap**2 + mean * rest / (1.0 + total))
        spread = between.sum(axis=1) + never * whole**2 + always * other**2
        scale = np.maximum(whole * other, 1e-300)
        found = np.stack([whole, other, spread / scale, within / scale])
        return np.asarray(np.minimum(found, 1.0))

    def among(self, keep: NDArray[np.intp]) -> "Nodes":
        """Return some of the nodes, not renormalised."""
        grid = None if self.grid is None else (self.grid[0][keep], self.grid[1][keep])
        rates = None if self.rates is None else self.rates[keep]
        return Nodes(
            self.alpha[keep], self.beta[keep], self.share[keep], self.atoms[keep],
            self.weight[keep], grid, rates,
        )  # fmt: skip

    def log_parts(self, successes: NDArray[np.int64], failures: NDArray[np.int64]) -> Array:
        """Log probability of a state's trials in order with each component and atom, by node.

        Returns
        -------
        ndarray, shape (components + 2, nodes, states)
            Shares included; summed over the first axis it is the likelihood of the node.

        Examples
        --------
        >>> logs = Nodes.single(1.0, 1.0).log_parts(np.array([1]), np.array([1]))
        >>> np.exp(logs).ravel().round(12).tolist()  # B(2, 2) / B(1, 1), and no atoms
        [0.166666666667, 0.0, 0.0]
        """
        shape = len(self), len(successes)
        found = np.empty((self.alpha.shape[1] + 2, *shape))
        with np.errstate(divide="ignore"):
            for logs, (share, alpha, beta) in zip(found, self.components, strict=False):
                logs[:] = np.log(share)[:, None] + log_ordered(alpha, beta, successes, failures)
            for logs, share, gone in zip(
                found[-2:], self.atoms.T, (successes, failures), strict=True
            ):
                logs[:] = np.where(gone == 0, np.log(share)[:, None], -np.inf)
        return found

    def log_likelihood(self, successes: NDArray[np.int64], failures: NDArray[np.int64]) -> Array:
        """Log probability of a state's trials in order, given each node; (nodes, states).

        Examples
        --------
        >>> Nodes.single(1.0, 1.0).log_likelihood(np.array([1]), np.array([1])).round(9).tolist()
        [[-1.791759469]]
        """
        found: Array | None = None
        with np.errstate(divide="ignore"):
            for share, alpha, beta in self.components:
                own = log_ordered(alpha, beta, successes, failures)
                if share.min() < 1.0:
                    own += np.log(share)[:, None]
                found = own if found is None else np.logaddexp(found, own, out=found)
            assert found is not None
            for share, gone in zip(self.atoms.T, (successes, failures), strict=True):
                certain = gone == 0
                if share.any() and certain.any():
                    found[:, certain] = np.logaddexp(found[:, certain], np.log(share)[:, None])
        return found

    def steps(self, values: Array) -> tuple[Array, Array]:
        """How far values at the nodes move to the next row, and to the next column; (nodes, m).

        The larger of the moves to either side, 0 without a neighbour.

        Examples
        --------
        >>> place = np.array([0, 0, 1]), np.array([0, 1, 0])
        >>> nodes = Nodes.of(np.zeros(3), np.zeros(3), np.ones(3) / 3, place)
        >>> [step[:, 0].tolist() for step in nodes.steps(np.array([[0.0], [1.0], [5.0]]))]
        [[5.0, 0.0, 5.0], [1.0, 1.0, 0.0]]
        """
        if self.grid is None:
            return np.zeros_like(values), np.zeros_like(values)
        moved = np.zeros((2, *values.shape))
        inside = self.grid[0] >= 0
        row, column = (place[inside] - place[inside].min(initial=0) for place in self.grid)
        table = np.full((row.max() + 1, column.max() + 1, values.shape[1]), np.nan)
        table[row, column] = values[inside]
        for axis in (0, 1):
            gap = np.nan_to_num(np.abs(np.diff(table, axis=axis)))
            edge = np.zeros_like(table.take([0], axis))
            wide = np.maximum(np.append(gap, edge, axis), np.append(edge, gap, axis))
            moved[axis, inside] = wide[row, column]
        return moved[0], moved[1]

    def __len__(self) -> int:
        return len(self.weight)


def heaviest(weight: Array, tolerance: float) -> NDArray[np.intp]:
    """Return the indices of all probabilities but those that add up to a tolerance."""
    order = np.argsort(weight)
    return np.sort(order[np.cumsum(weight[order]) > tolerance])


def log_ordered(
    alpha: Array, beta: Array, successes: NDArray[np.int64], failures: NDArray[np.int64]
) -> Array:
    """Log probability of trials in their order under ``p ~ Beta``; shape (Betas, states)."""
    bases = (alpha, beta, alpha + beta)
    counts = (successes, failures, successes + failures)
    up, down, both = (_rises(base, count) for base, count in zip(bases, counts, strict=True))
    return up + down - both


def _rises(base: Array, count: NDArray[np.int64]) -> Array:
    distinct, which = np.unique(count, return_inverse=True)
    return log_rise(base[:, None], distinct)[:, which]
