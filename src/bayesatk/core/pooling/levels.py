"""Marks in scored levels: their probabilities, given the expected score p on a scale from 0 to 1.

    P(level c | p) proportional to b_c exp(t s_c),

with scores s scaled to [0, 1], a base b that questions have in common, and the tilt t for which the
expected score is p. That is the exponential family through b (Barndorff-Nielsen 1978), written in
its mean, so p has the laws of difficulty of right and wrong: with two levels it is their success
probability. The log of the base is a few smooth functions of the score, orthogonal to constants and
to the score itself, which the sum of probabilities and p take up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_expit, logsumexp

from bayesatk._tools.arrays import Array, Rng
from bayesatk.core.pooling.nodes import Nodes

_CLOSEST = 1e-7  # distance of scores that are two on the scale from 0 to 1
MOST_SHAPES = 5  # functions of which the log of a base is made
_NODES, _FARTHEST = 401, 16.0  # tilts, and logits of p on either side that they reach
_NARROWEST = 0.7  # sd of a law, in steps of the logit, that the tilts can tell from a point
_LEAST = 1e-300  # probability, whose logarithm is a number
_BLOCK = 2_000_000  # numbers worked out at once


def scaled_scores(scores: Sequence[float]) -> Array:
    """Scores on the scale from 0 to 1; those that nearly are the same, are.

    Examples
    --------
    >>> scaled_scores((1.0, 2.0, 5.0)).tolist()
    [0.0, 0.25, 1.0]
    """
    values = np.array(scores, float)
    scaled = (values - values.min()) / np.ptp(values)
    distinct = np.unique(scaled)
    first = np.flatnonzero(np.diff(distinct, prepend=-1.0) >= _CLOSEST)
    groups = np.where(distinct[first] > 1.0 - _CLOSEST, 1.0, distinct[first])
    return np.asarray(groups[np.searchsorted(distinct[first], scaled, side="right") - 1])


def shape_functions(scores: Sequence[float]) -> Array:
    """Functions of the level that the log of a base is made of; (functions, levels).

    The two ends, then polynomials of the score: as many as levels can tell apart, five at most.
    They are orthogonal to each other, to constants and to the score, and have mean square one.

    Examples
    --------
    >>> shape_functions((0.0, 0.5, 1.0)).round(3).tolist()
    [[0.707, -1.414, 0.707]]
    >>> shape_functions((0.0, 1.0)).shape, shape_functions(range(11)).shape
    ((0, 2), (5, 11))
    """
    s = scaled_scores(scores)
    levels, number = len(s), min(len(np.unique(s)) - 2, MOST_SHAPES)
    ends = [(s == end).astype(float) for end in (0.0, 1.0)]
    powers = [np.polynomial.legendre.Legendre.basis(j)(2.0 * s - 1.0) for j in range(2, 8)]
    basis = [np.full(levels, 1.0 / np.sqrt(levels))]
    for column in [s, *ends, *powers]:
        residual = column
        for _ in range(2):  # once more, for rounding
            residual = residual - sum((vector @ residual) * vector for vector in basis)
        if np.linalg.norm(residual) > 1e-6 * np.sqrt(levels):
            basis.append(residual / np.linalg.norm(residual))
    functions = np.array(basis[2 : 2 + number]).reshape(number, levels) * np.sqrt(levels)
    return np.asarray(functions * np.where(functions[:, :1] < 0.0, -1.0, 1.0))


@dataclass(frozen=True)
class LevelDraws:
    """Levels of questions, in draws of the law of p and of the base.

    Integrals over p are sums over tilts on one grid, which all draws have in common, so that sums
    over levels are products of matrices. What lies beyond its ends are two more nodes, with the
    point masses at p = 0 and p = 1.

    Parameters
    ----------
    difficulty : Nodes
        Of p.
    log_base : ndarray, shape (draws, levels)
    scores : tuple of float
    """

    difficulty: Nodes
    log_base: Array
    scores: tuple[float, ...]

    @cached_property
    def _scaled(self) -> Array:
        return scaled_scores(self.scores)

    @cached_property
    def _base(self) -> Array:
        logs = self.log_base - self.log_base.max(axis=1, keepdims=True)
        return np.exp(np.maximum(logs, -600.0))

    @cached_property
    def _tilts(self) -> Array:
        """Tilts (nodes,), in steps that are even, in logits of p, around those of most draws."""
        reach = _FARTHEST / min(np.diff(np.unique(self._scaled))[[0, -1]])
        even = reach * np.linspace(-1.0, 1.0, _NODES) ** 3
        logits, slope = (np.median(values, axis=0) for values in self._logits(even))
        middle = np.median(np.log(self.difficulty.alpha) - np.log(self.difficulty.beta))
        centre, unit = np.interp(middle, logits, even), 1.0 / np.interp(middle, logits, slope)
        end = np.arcsinh((reach + abs(centre)) / unit)
        return np.asarray(centre + unit * np.sinh(np.linspace(-end, end, _NODES)))

    def _powers(self, tilt: Array) -> Array:
        """Powers of tilts, (nodes, levels): chances of levels are proportional to base times."""
        return np.exp(tilt[:, None] * self._scaled - np.maximum(tilt, 0.0)[:, None])

    def _logits(self, tilt: Array) -> tuple[Array, Array]:
        """Logits of expected scores (draws, nodes), and their derivative by the tilt."""
        powers, s = self._powers(tilt), self._scaled
        up, down, product = (self._base @ (powers * row).T for row in (s, 1.0 - s, s * (1.0 - s)))
        both = np.maximum(up / (up + down) * (down / (up + down)), _LEAST)
        slope = np.maximum((both - product / (up + down)) / both, 1e-9)
        return np.log(np.maximum(up, _LEAST)) - np.log(np.maximum(down, _LEAST)), slope

    def vectors(self) -> Array:
        """Probabilities of levels at the nodes, ends last; (draws, nodes, levels)."""
        at_ends = np.stack([self._scaled == end for end in (0.0, 1.0)])
        powers = np.concatenate([self._powers(self._tilts), at_ends])
        chance = self._base[:, None] * powers
        return np.asarray(chance / (self._base @ powers.T)[..., None])

    @cached_property
    def _weights(self) -> Callable[[Array], Array]:
        """Probabilities of the nodes (draws, nodes) by offsets of the logit mean (draws,)."""
        logits, slope = self._logits(self._tilts)
        log_width = np.log(slope) + np.log(np.gradient(self._tilts))
        log_p, log_q = log_expit(logits), log_expit(-logits)
        half = 0.5 * np.exp(log_width[:, [0, -1]])

        def of_offset(offset: Array) -> Array:
            law = self.difficulty.moved(offset)
            total = np.zeros((len(logits), _NODES + 2))
            total[:, -2:] = law.atoms
            for share, alpha, beta in law.components:
                p, q = alpha / (alpha + beta), beta / (alpha + beta)
                node = np.minimum((log_p < np.log(p)[:, None]).sum(axis=1), _NODES - 1)
                step = np.exp(np.take_along_axis(log_width, node[:, None], axis=1)[:, 0])
                most = 1.0 / np.maximum((_NARROWEST * step) ** 2 * p * q, _LEAST)
                a, b = (np.minimum(most, alpha + beta) * side for side in (p, q))
                logs = a[:, None] * log_p + b[:, None] * log_q
                # Half a step beyond the grid, the density of a logit falls off exponentially.
                rate = np.stack([a, b], axis=1)
                tails = logs[:, [0, -1]] - rate * half - np.log(rate)
                logs = np.concatenate([logs + log_width, tails], axis=1)
                weight = np.exp(logs - logs.max(axis=1, keepdims=True))
                total += (share / weight.sum(axis=1))[:, None] * weight
            return total

        return of_offset

    def _blocks(self, width: int) -> "Iterator[tuple[slice, LevelDraws, Array]]":
        """Yield draws a block at a time, of so many numbers by node, and weights of the nodes."""
        step = max(1, _BLOCK // (_NODES * width))
        for start in range(0, len(self.log_base), step):
            rows = slice(start, start + step)
            block = replace(
                self, difficulty=self.difficulty.among(rows), log_base=self.log_base[rows]
            )
            yield rows, block, block._weights(np.zeros(len(block.log_base)))

    def expected(self, metric: Any) -> Array:
        """Return the expected metric of a new question, in every draw."""
        return self.expected_along(metric)(np.zeros((len(self.log_base), 1)))[:, 0]

    def expected_along(self, metric: Any) -> Callable[[Array], Array]:
        """Return the expected metric of new questions as a function of offsets (draws, offsets)."""
        width = len(self.scores)
        parts = [
            (rows, block, metric.latent(block.vectors())) for rows, block, _ in self._blocks(width)
        ]

        def expected(offset: Array) -> Array:
            total = np.empty(offset.shape)
            for rows, block, values in parts:
                for column in np.ndindex(offset.shape[1:]):
                    weight = block._weights(offset[(rows, *column)])
                    total[(rows, *column)] = (weight * values).sum(axis=1)
            return total

        return expected

    def typical(self) -> Array:
        """Return expected probabilities of levels of a new question; (draws, levels)."""
        mean = np.empty(self.log_base.shape)
        for rows, block, weight in self._blocks(len(self.scores)):
            mean[rows] = (weight[:, None] @ block.vectors())[:, 0]
        return mean

    def log_counts(self, counts: NDArray[Any]) -> Array:
        """Log probability of counts of a new question in any order; (draws, states)."""
        logs = np.empty((len(self.log_base), len(counts)))
        for rows, block, weight in self._blocks(len(self.scores) + len(counts)):
            logs[rows] = logsumexp(_log_joint(weight, block.vectors(), counts), axis=1)
        return logs + gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)

    def draw_p(self, counts: NDArray[Any], size: int, rng: Rng) -> Array:
        """Draw vectors of questions with these counts, to a step between nodes.

        Shape (draws, size, levels); new questions have counts of zero.
        """
        drawn = np.empty((len(self.log_base), size, len(self.scores)))
        for rows, block, weight in self._blocks(len(self.scores)):
            vectors = block.vectors()
            logs = _log_joint(weight, vectors, counts[None])[..., 0]
            cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
            u = rng.random((len(cumulative), size)) * cumulative[:, -1:]
            node = np.stack([np.searchsorted(*row) for row in zip(cumulative, u, strict=True)])
            drawn[rows] = np.take_along_axis(vectors, node[..., None], axis=1)
        return drawn


def _log_joint(weight: Array, vectors: Array, counts: NDArray[Any]) -> Array:
    """Log probability of nodes and of counts in their order; (draws, nodes, states)."""
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(vectors), -1e9)
        return np.asarray(logs @ np.asarray(counts, float).T + np.log(weight)[..., None])
