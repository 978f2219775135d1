"""Marks in scored levels: their probabilities, given the expected score p on a scale from 0 to 1.

    P(level c | p) proportional to b_c exp(t s_c),

with scores s scaled to [0, 1], a base b that questions have in common, and the tilt t for which the
expected score is p. That is the exponential family through b (Barndorff-Nielsen 1978), written in
its mean, so p has the laws of difficulty of right and wrong: with two levels it is their success
probability. The log of the base is a few smooth functions of the score, orthogonal to constants and
to the score itself, which the sum of probabilities and p take up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_expit, logit, logsumexp, softmax

from bayesatk._tools.arrays import Array, Rng
from bayesatk.core.pooling.nodes import Nodes

_CLOSEST = 1e-7  # distance of scores that are two on the scale from 0 to 1
MOST_SHAPES = 5  # functions of which the log of a base is made
_GRID = 401  # tilts at which expected scores are looked up
_FARTHEST = 45.0  # logits of expected scores on either side that tilts reach
_NODES, _REACH = 201, 65.0  # of logit p within which a Beta is integrated, and how far they reach
_NEWTON_STEPS = 3
_ALONG, _NARROWEST = 241, 2e-3  # tilts on which offsets are looked at, and the least icc there
_NEAREST = 1e-12  # of a mean that is moved to 0 or 1
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

    def among(self, rows: Any) -> "LevelDraws":
        """Return some of the draws."""
        return replace(self, difficulty=self.difficulty.among(rows), log_base=self.log_base[rows])

    def _logit_mean(self, tilt: Array) -> tuple[Array, Array]:
        """Logits of expected scores at tilts (draws, ...), and their derivative."""
        vector, s = self.at_tilts(tilt), self._scaled
        mean, complement = vector @ s, vector @ (1.0 - s)
        return _logits(mean, complement, vector @ (s * (1.0 - s)))

    def _factors(self, tilt: Array) -> tuple[Array, Array]:
        """Bases (draws, levels) and powers of tilts (nodes, levels) that all draws have in common.

        Probabilities of levels are proportional to their products, so that sums over levels are
        products of matrices.
        """
        base = np.exp(np.maximum(self.log_base - self.log_base.max(axis=1, keepdims=True), -600.0))
        return base, np.exp(tilt[:, None] * self._scaled - np.maximum(tilt, 0.0)[:, None])

    def _logit_mean_along(self, tilt: Array) -> tuple[Array, Array]:
        """As `_logit_mean`, at the same tilts (nodes,) for all draws; (draws, nodes)."""
        (base, powers), s = self._factors(tilt), self._scaled
        up, down, product = (base @ (powers * row).T for row in (s, 1.0 - s, s * (1.0 - s)))
        total = up + down
        return _logits(up / total, down / total, product / total)

    def at_tilts(self, tilt: Array) -> Array:
        """Probabilities of levels at tilts (draws, ...); (draws, ..., levels)."""
        base = self.log_base.reshape(len(tilt), *[1] * (tilt.ndim - 1), -1)
        return softmax(base + tilt[..., None] * self._scaled, axis=-1)

    def vectors(self, logits: Array) -> Array:
        """Probabilities of levels given logits of p, infinite ones too; (draws, ..., levels)."""
        scale = np.unique(self._scaled)
        farthest = _FARTHEST / min(scale[1], 1.0 - scale[-2])
        grid = np.sinh(np.linspace(-np.arcsinh(farthest), np.arcsinh(farthest), _GRID))
        of_grid = self._logit_mean_along(grid)[0]
        pairs = zip(logits, of_grid, strict=True)
        tilt = np.stack([np.interp(wanted, known_at, grid) for wanted, known_at in pairs])
        inside = np.abs(logits) < _FARTHEST - 5.0
        for _ in range(_NEWTON_STEPS):
            mean, slope = self._logit_mean(tilt)
            with np.errstate(invalid="ignore"):
                tilt = np.where(inside, tilt + (logits - mean) / slope, tilt)
        vector = self.at_tilts(tilt)
        for sign, end in ((-1.0, 0.0), (1.0, 1.0)):
            beyond = sign * logits >= _FARTHEST
            if beyond.any():
                sure = softmax(np.where(self._scaled == end, self.log_base, -np.inf), axis=1)
                sure = sure.reshape(len(logits), *[1] * (logits.ndim - 1), -1)
                vector = np.where(beyond[..., None], sure, vector)
        return np.asarray(vector)

    def nodes(self) -> tuple[Array, Array]:
        """Return nodes of logit p and their probabilities, both (draws, nodes); atoms last."""
        logits, weights = [], []
        for share, a, b in self.difficulty.components:
            centre = np.clip(np.log(a) - np.log(b), -25.0, 25.0)
            width = np.clip(np.sqrt(1.0 / a + 1.0 / b), 1e-8, 1.0)
            t = np.arcsinh(_REACH / width)[:, None] * np.linspace(-1.0, 1.0, _NODES)
            x = centre[:, None] + width[:, None] * np.sinh(t)
            logs = a[:, None] * log_expit(x) + b[:, None] * log_expit(-x) + np.log(np.cosh(t))
            # Beyond the nodes the density of a logit falls off exponentially.
            step = (t[:, 1] - t[:, 0])[:, None] * width[:, None]
            ends = logs[:, [0, -1]] - np.log(np.cosh(t[:, [0, -1]]))
            tails = np.logaddexp(
                logs[:, [0, -1]], ends - np.log(np.stack([a, b], axis=1)) - np.log(step)
            )
            logs[:, [0, -1]] = tails
            weight = np.exp(logs - logs.max(axis=1, keepdims=True))
            logits.append(x)
            weights.append(share[:, None] * weight / weight.sum(axis=1, keepdims=True))
        ends = np.broadcast_to([-np.inf, np.inf], (len(self.log_base), 2))
        weights.append(self.difficulty.atoms)
        return np.concatenate([*logits, ends], axis=1), np.concatenate(weights, axis=1)

    def _blocks(self, width: int) -> "list[tuple[slice, LevelDraws]]":
        """Return draws a block at a time, of so many numbers for each."""
        step = max(1, _BLOCK // max(width, 1))
        spans = [slice(start, start + step) for start in range(0, len(self.log_base), step)]
        return [(span, self.among(span)) for span in spans]

    def expected(self, metric: Any) -> Array:
        """Return the expected metric of a new question, in every draw."""
        values = np.empty(len(self.log_base))
        for span, block in self._blocks(3 * _NODES * len(self.scores)):
            logits, weight = block.nodes()
            values[span] = (weight * metric.latent(block.vectors(logits))).sum(axis=1)
        return values

    def expected_along(self, metric: Any) -> Callable[[Array], Array]:
        """Return the expected metric of new questions as a function of offsets (draws, offsets).

        On one grid of tilts: only what the law says of it changes with the offset.
        """
        tilt, of_law = self._along()
        at_ends = metric.latent(self._sure())
        every = np.broadcast_to(tilt, (len(self.log_base), len(tilt)))
        value = np.concatenate([metric.latent(self.at_tilts(every)), at_ends], axis=1)

        def expected(offset: Array) -> Array:
            total = np.empty(offset.shape)
            for column in np.ndindex(offset.shape[1:]):
                weight = of_law(offset[(slice(None), *column)])
                total[(slice(None), *column)] = (weight * value).sum(axis=1)
            return total

        return expected

    def _along(self) -> tuple[Array, Callable[[Array], Array]]:
        """Tilts of one grid (nodes,), and their probabilities by offset, ends last."""
        reach = _FARTHEST / min(np.diff(np.unique(self._scaled))[[0, -1]])
        tilt = np.sinh(np.linspace(-np.arcsinh(reach), np.arcsinh(reach), _ALONG))
        logits, slope = self._logit_mean_along(tilt)
        log_width = np.log(slope) + np.log(np.gradient(tilt))
        log_p, log_q = log_expit(logits), log_expit(-logits)
        law, centre = self.difficulty, logit(np.clip(self.difficulty.mean, _NEAREST, 1 - _NEAREST))

        def of_law(shift: Array) -> Array:
            total = np.zeros((len(logits), _ALONG + 2))
            total[:, -2:] = law.atoms
            for share, middle, icc in zip(law.share.T, centre.T, law.icc.T, strict=True):
                size = (1.0 - icc) / np.maximum(icc, _NARROWEST)
                moved = middle + shift
                a, b = (size * np.exp(log_expit(sign * moved)) for sign in (1.0, -1.0))
                logs = a[:, None] * log_p + b[:, None] * log_q
                # Beyond the grid the density of a logit falls off exponentially.
                tails = logs[:, [0, -1]] - np.log(np.stack([a, b], axis=1))
                logs = np.concatenate([logs + log_width, tails], axis=1)
                weight = np.exp(logs - logs.max(axis=1, keepdims=True))
                total += (share / weight.sum(axis=1))[:, None] * weight
            return total

        return tilt, of_law

    def _sure(self) -> Array:
        """Probabilities of levels at p = 0 and at p = 1; (draws, 2, levels)."""
        ends = [np.where(self._scaled == end, self.log_base, -np.inf) for end in (0.0, 1.0)]
        return np.asarray(softmax(np.stack(ends, axis=1), axis=2))

    def typical(self) -> Array:
        """Return expected probabilities of levels of a new question; (draws, levels)."""
        mean = np.empty(self.log_base.shape)
        for span, block in self._blocks(3 * _ALONG * len(self.scores)):
            tilt, of_law = block._along()
            weight = of_law(np.zeros(len(block.log_base)))
            base, powers = block._factors(tilt)
            mean[span] = base * (weight[:, :-2] / (base @ powers.T) @ powers)
            mean[span] += (weight[:, None, -2:] @ block._sure())[:, 0]
        return mean

    def log_counts(self, counts: NDArray[Any]) -> Array:
        """Log probability of counts of a new question in any order; (draws, states)."""
        logs = np.empty((len(self.log_base), len(counts)))
        for span, block in self._blocks(3 * _NODES * (len(self.scores) + len(counts))):
            logits, weight = block.nodes()
            logs[span] = logsumexp(block._log_joint(logits, weight, counts), axis=1)
        return logs + gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)

    def _log_joint(self, logits: Array, weight: Array, counts: Array) -> Array:
        """Log probability of nodes and of counts in their order; (draws, nodes, states)."""
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(self.vectors(logits)), -1e9)
            return np.asarray(logs @ np.asarray(counts, float).T + np.log(weight)[..., None])

    def draw_p(self, counts: Array, size: int, rng: Rng) -> Array:
        """Draw vectors of questions with these counts; (draws, size, levels).

        To a step between nodes of logit p.
        """
        drawn = np.empty((len(self.log_base), size, len(self.scores)))
        for span, block in self._blocks(3 * _NODES * len(self.scores)):
            logits, weight = block.nodes()
            logs = block._log_joint(logits, weight, counts[None])[..., 0]
            cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
            u = rng.random((len(cumulative), size)) * cumulative[:, -1:]
            node = np.stack([np.searchsorted(*row) for row in zip(cumulative, u, strict=True)])
            node = np.minimum(node, logits.shape[1] - 1)
            drawn[span] = block.vectors(np.take_along_axis(logits, node, axis=1))
        return drawn

    def draw_new(self, questions: int, rng: Rng) -> Array:
        """Draw vectors of new questions; (draws, questions, levels)."""
        with np.errstate(divide="ignore"):
            logits = logit(self.difficulty.draw_p(questions, rng))
        blocks = self._blocks(3 * (_GRID + questions) * len(self.scores))
        return np.concatenate([block.vectors(logits[span]) for span, block in blocks])


def _logits(mean: Array, complement: Array, product: Array) -> tuple[Array, Array]:
    """Logits of expected scores s, and their derivative by the tilt, of s (1 - s) on average."""
    both = np.maximum(mean * complement, _LEAST)
    logits = np.log(np.maximum(mean, _LEAST)) - np.log(np.maximum(complement, _LEAST))
    return logits, np.maximum((both - product) / both, 1e-9)
