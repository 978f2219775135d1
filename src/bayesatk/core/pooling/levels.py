r"""Trials in scored levels: probabilities of the levels, given the expected score p in [0, 1].

.. math:: P(\text{level } c \mid p) = \frac{b_c e^{t s_c}}{\sum_d b_d e^{t s_d}},

with scores s scaled to [0, 1], a base b that questions have in common, and the tilt t for which the
expected score is p. That is the exponential family through b (Barndorff-Nielsen 1978), written in
its mean, so p has the laws of difficulty of right and wrong: with two levels it is their success
probability. The log of the base is a few smooth functions of the score, orthogonal to constants and
to the score itself, which the sum of probabilities and p take up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, logsumexp, softmax

from bayesatk._tools.arrays import PROBABILITY_FLOOR, Array, Flags, Rng, exp_or_zero
from bayesatk.core.pooling.nodes import Nodes

_SCORE_DISTANCE_MIN = 1e-7  # of scores that are two on the scale from 0 to 1
_SHAPE_FUNCTIONS_MAX = 5
_LOG_BASE_MAX = 300.0  # of either sign
_LOG_PROBABILITY_FLOOR = -1e9
_RELATIVE_VARIANCE_FLOOR = 1e-9  # of a score, over p (1 - p)
_NARROWEST_LAW = 0.7  # sd in steps of the grid: what is narrower is as good as a point
_MASS_ON_NODES_MIN = 0.9  # of a law's integral: with less, mass is known to be lost
_LOG_FACTOR_MAX = 600.0  # factors up to it have a product that is a number
_NODES, _LARGEST_LOGIT = 401, 16.0  # tilts for draws, and the logits of p that they reach
_MAX_FLOATS_PER_BLOCK = 2_000_000


def scaled_scores(scores: Sequence[float]) -> Array:
    """Return scores on the scale from 0 to 1; those that differ by less than 1e-7 become equal.

    Examples
    --------
    >>> scaled_scores((1.0, 2.0, 5.0)).tolist()
    [0.0, 0.25, 1.0]
    """
    values = np.array(scores, float)
    scaled = (values - values.min()) / np.ptp(values)
    distinct = np.unique(scaled)
    first = np.flatnonzero(np.diff(distinct, prepend=-1.0) >= _SCORE_DISTANCE_MIN)
    groups = np.where(distinct[first] > 1.0 - _SCORE_DISTANCE_MIN, 1.0, distinct[first])
    return np.asarray(groups[np.searchsorted(distinct[first], scaled, side="right") - 1])


def shape_functions(scores: Sequence[float]) -> Array:
    """Return the functions of the level whose combination is the log of a base.

    They are indicators of the two ends, then Legendre polynomials of the score: two fewer than
    there are distinct scores, five at most. They are made orthogonal to constants, to the score and
    to each other, and have mean square one; shape (functions, levels).

    Examples
    --------
    >>> shape_functions((0.0, 0.5, 1.0)).round(3).tolist()
    [[0.707, -1.414, 0.707]]
    >>> shape_functions((0.0, 1.0)).shape, shape_functions(range(11)).shape
    ((0, 2), (5, 11))
    """
    s = scaled_scores(scores)
    levels, number = len(s), min(len(np.unique(s)) - 2, _SHAPE_FUNCTIONS_MAX)
    ends = [(s == end).astype(float) for end in (0.0, 1.0)]
    powers = [np.polynomial.legendre.Legendre.basis(j)(2.0 * s - 1.0) for j in range(2, 8)]
    basis = [np.full(levels, 1.0 / np.sqrt(levels))]
    for column in [s, *ends, *powers]:
        residual = column
        for _ in range(2):  # the second pass removes what rounding left
            residual = residual - sum((vector @ residual) * vector for vector in basis)
        if np.linalg.norm(residual) > 1e-6 * np.sqrt(levels):
            basis.append(residual / np.linalg.norm(residual))
    functions = np.array(basis[2 : 2 + number]).reshape(number, levels) * np.sqrt(levels)
    return np.asarray(functions * np.where(functions[:, :1] < 0.0, -1.0, 1.0))


@dataclass(frozen=True)
class TiltedBases:
    """Bases of the level distributions, tilted at every node of a grid.

    Parameters
    ----------
    log_base : ndarray, shape (points, levels)
    log_scale : ndarray, shape (points, nodes + 2)
        Log of the sum of the tilted base, less that of the tilted reference; the last two are the
        sums over the levels at p = 0 and at p = 1.
    log_p, log_q : ndarray, shape (points, nodes)
        Logs of the expected score p and of 1 - p.
    log_step : ndarray, shape (points, nodes)
        Log of the distance of logit p from that of the next node.
    """

    log_base: Array
    log_scale: Array
    log_p: Array
    log_q: Array
    log_step: Array


@dataclass(frozen=True)
class TiltGrid:
    r"""A grid of tilts t, on which integrals over the expected score p are sums.

    All bases share the grid and are worked out by their ratio to a reference base, so that sums
    over levels are matrix products. With p the mean score at a tilt, the step of its logit is

    .. math:: d \operatorname{logit} p = \frac{\operatorname{Var}(s)}{p (1 - p)} \, dt.

    What a law of p has beyond the ends of the grid, and its atoms, are two more nodes, at p = 0 and
    p = 1, that come last.

    Parameters
    ----------
    scores : tuple of float
    log_reference : ndarray, shape (levels,)
        Log of a base near those that are tilted.
    tilts, steps : ndarray, shape (nodes,)
        And their distances.
    """

    scores: tuple[float, ...]
    log_reference: Array
    tilts: Array
    steps: Array

    @cached_property
    def scaled(self) -> Array:
        """Scores on the scale from 0 to 1."""
        return scaled_scores(self.scores)

    @cached_property
    def reference(self) -> tuple[Array, Array]:
        """Probabilities (nodes, levels) of the tilted reference, and logs of its sums (nodes,)."""
        powers = self.tilts[:, None] * self.scaled + self.log_reference
        probability = softmax(powers, axis=1)
        probability[probability < PROBABILITY_FLOOR] = 0.0  # subnormal numbers are slow
        return probability, logsumexp(powers, axis=1)

    @cached_property
    def _weighted_reference(self) -> Array:
        """Probabilities of the tilted reference times s, 1 - s and s (1 - s); (levels, 3 nodes)."""
        s = self.scaled
        factors = np.stack([s, 1.0 - s, s * (1.0 - s)])
        return np.concatenate([(self.reference[0] * row).T for row in factors], axis=1)

    def tilted(self, log_base: Array) -> TiltedBases:
        """Tilt bases (points, levels)."""
        log_base = np.clip(log_base, -_LOG_BASE_MAX, _LOG_BASE_MAX)
        log_ratio = log_base - self.log_reference
        top = log_ratio.max(axis=1, keepdims=True)
        ratio = np.exp(log_ratio - top)
        sums = np.maximum(ratio @ self._weighted_reference, PROBABILITY_FLOOR)
        up, down, product = np.split(sums, 3, axis=1)
        total = up + down
        p, q = up / total, down / total
        # Var(s) = p q - E[s (1 - s)].
        relative = 1.0 - product / total / np.maximum(p * q, PROBABILITY_FLOOR)
        log_step = np.log(np.maximum(relative, _RELATIVE_VARIANCE_FLOOR)) + np.log(self.steps)
        ends = [np.logaddexp.reduce(log_base[:, self.scaled == end], axis=1) for end in (0.0, 1.0)]
        log_scale = np.concatenate([np.log(total) + top, np.stack(ends, axis=1)], axis=1)
        return TiltedBases(log_base, log_scale, np.log(p), np.log(q), log_step)

    def vectors(self, bases: TiltedBases, nodes: Flags) -> Array:
        """Level probabilities at some of the nodes; (points, nodes, levels)."""
        ratio, ends = self._ratio_and_ends(bases)
        reference = self.reference[0][nodes[:-2]]
        vectors = np.empty((len(ratio), nodes.sum(), len(self.scores)))
        inner = vectors[:, : len(reference)]
        np.multiply(ratio[:, None], reference, out=inner)
        inner /= np.maximum(ratio @ reference.T, PROBABILITY_FLOOR)[..., None]
        vectors[:, len(reference) :] = ends[:, nodes[-2:]]
        return vectors

    def _ratio_and_ends(self, bases: TiltedBases) -> tuple[Array, Array]:
        """Bases over the reference (points, levels), and level probabilities at p = 0 and p = 1."""
        log_ratio = bases.log_base - self.log_reference
        ratio = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))
        at_end = np.stack([(self.scaled == end).astype(float) for end in (0.0, 1.0)])
        base = np.exp(bases.log_base - bases.log_base.max(axis=1, keepdims=True))
        ends = base[:, None] * at_end
        return ratio, ends / np.maximum(ends.sum(axis=2, keepdims=True), PROBABILITY_FLOOR)

    def mean_vectors(self, bases: TiltedBases, weight: Array) -> Array:
        """Level probabilities (points, levels) averaged over nodes, by weights (points, nodes)."""
        ratio, ends = self._ratio_and_ends(bases)
        reference = self.reference[0]
        inner = weight[:, :-2] / np.maximum(ratio @ reference.T, PROBABILITY_FLOOR)
        return np.asarray(ratio * (inner @ reference) + (weight[:, None, -2:] @ ends)[:, 0])

    def weights(self, bases: TiltedBases, law: Nodes, offsets: int = 1) -> Array:
        """Probabilities of the nodes under laws of p.

        Parameters
        ----------
        bases : TiltedBases
            One for each point, or one for all.
        law : Nodes
            For each point, and for each offset of it.
        offsets : int
            Of each point.

        Returns
        -------
        ndarray, shape (points, offsets, nodes + 2)
        """
        shape = (len(law) // offsets, offsets)
        weight = np.zeros((*shape, len(self.tilts) + 2))
        weight[..., -2:] = law.atoms.reshape(*shape, 2)
        for component in law.components:
            share, alpha, beta = (column.reshape(*shape, 1) for column in component)
            weight += _beta_weights(bases, share, alpha, beta)
        return weight


def _beta_weights(bases: TiltedBases, share: Array, alpha: Array, beta: Array) -> Array:
    """Probabilities of the nodes under Betas with parameters (points, offsets, 1), times shares."""
    alpha, beta = _resolved_by_grid(alpha, beta, bases)
    parameters = np.concatenate([alpha, beta], axis=2)
    logs = np.empty((*alpha.shape[:2], bases.log_p.shape[1] + 2))
    inner = np.matmul(parameters, np.stack([bases.log_p, bases.log_q], axis=1), out=logs[..., :-2])
    # Beyond the grid p^alpha falls off exponentially in logits, from half a step further out.
    half = 0.5 * np.exp(bases.log_step[:, None, [0, -1]])
    logs[..., -2:] = inner[..., [0, -1]] - parameters * half - np.log(parameters)
    inner += bases.log_step[:, None]
    top = logs.max(axis=2, keepdims=True)
    logs -= top
    density = exp_or_zero(logs)
    total = density.sum(axis=2, keepdims=True)
    # A base whose score leaps from one node to the next loses what lies between, if that is much.
    integral = np.exp(np.clip(betaln(alpha, beta) - top, -_LOG_FACTOR_MAX, _LOG_FACTOR_MAX))
    density *= share / np.where(total < _MASS_ON_NODES_MIN * integral, integral, total)
    return density


def _resolved_by_grid(alpha: Array, beta: Array, bases: TiltedBases) -> tuple[Array, Array]:
    """Parameters of Betas no narrower than the grid can tell from a point, with the same mean."""
    total = alpha + beta
    mean, complement = alpha / total, beta / total
    # In logits the sd is about sqrt(icc / (p q)), and here the parameters sum to about 1 / icc.
    widest = np.exp(bases.log_step.max(axis=1))[:, None, None]
    narrow = total * (_NARROWEST_LAW * widest) ** 2 * mean * complement > 1.0
    if not narrow.any():
        return alpha, beta
    below = bases.log_p[:, None] < np.log(mean)
    node = np.clip(below.sum(axis=2, keepdims=True), 0, below.shape[2] - 1)
    step = np.exp(np.take_along_axis(bases.log_step[:, None], node, axis=2))
    most = 1.0 / np.maximum((_NARROWEST_LAW * step) ** 2 * mean * complement, PROBABILITY_FLOOR)
    shrunk = np.minimum(most, total) / total
    return (
        np.maximum(alpha * shrunk, PROBABILITY_FLOOR),
        np.maximum(beta * shrunk, PROBABILITY_FLOOR),
    )


@dataclass(frozen=True)
class LevelDraws:
    """Levels of questions, in draws of the law of p and of the base.

    All draws share a grid of tilts that is even in logits of p around those of most draws.

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
    def _grid(self) -> TiltGrid:
        levels = np.unique(scaled_scores(self.scores))
        reach = _LARGEST_LOGIT / min(np.diff(levels)[[0, -1]])
        reference = np.median(self.log_base, axis=0)
        even = reach * np.linspace(-1.0, 1.0, _NODES) ** 3
        coarse = TiltGrid(self.scores, reference, even, np.ones(_NODES)).tilted(reference[None])
        logits, slope = (coarse.log_p - coarse.log_q)[0], np.exp(coarse.log_step[0])
        middle = np.median(np.log(self.difficulty.alpha) - np.log(self.difficulty.beta))
        centre, unit = np.interp(middle, logits, even), 1.0 / np.interp(middle, logits, slope)
        end = np.arcsinh((reach + abs(centre)) / unit)
        x = np.linspace(-end, end, _NODES)
        steps = unit * np.cosh(x) * (x[1] - x[0])
        return TiltGrid(self.scores, reference, centre + unit * np.sinh(x), steps)

    def _blocks(self, width: int) -> Iterator[tuple[slice, TiltedBases, Nodes]]:
        """Yield draws a block at a time, of so many numbers by node: their bases and laws."""
        step = max(1, _MAX_FLOATS_PER_BLOCK // (_NODES * width))
        for start in range(0, len(self.log_base), step):
            rows = slice(start, start + step)
            yield rows, self._grid.tilted(self.log_base[rows]), self.difficulty.among(rows)

    def _vectors(self, bases: TiltedBases) -> Array:
        """Level probabilities at all nodes; (draws, nodes, levels)."""
        return self._grid.vectors(bases, np.ones(_NODES + 2, bool))

    def expected(self, metric: Any) -> Array:
        """Return the expected metric of a new question, in every draw."""
        return self.expected_along(metric)(np.zeros((len(self.log_base), 1)))[:, 0]

    def expected_along(self, metric: Any) -> Callable[[Array], Array]:
        """Return the expected metric of new questions as a function of offsets (draws, offsets)."""
        parts = [
            (rows, bases, law, metric.latent(self._vectors(bases)))
            for rows, bases, law in self._blocks(len(self.scores))
        ]

        def expected(offset: Array) -> Array:
            total = np.empty(offset.shape)
            for rows, bases, law, values in parts:
                for column in np.ndindex(offset.shape[1:]):
                    weight = self._grid.weights(bases, law.moved(offset[(rows, *column)]))[:, 0]
                    total[(rows, *column)] = (weight * values).sum(axis=1)
            return total

        return expected

    def typical(self) -> Array:
        """Return expected probabilities of levels of a new question; (draws, levels)."""
        return np.concatenate(
            [
                self._grid.mean_vectors(bases, self._grid.weights(bases, law)[:, 0])
                for _, bases, law in self._blocks(len(self.scores))
            ]
        )

    def draw_p(self, counts: NDArray[Any], size: int, rng: Rng) -> Array:
        """Draw vectors of questions with these counts, to a step between nodes.

        Shape (draws, size, levels); new questions have counts of zero.
        """
        drawn = np.empty((len(self.log_base), size, len(self.scores)))
        for rows, bases, law in self._blocks(len(self.scores)):
            logs = self._log_joint(bases, law, counts[None])[..., 0]
            cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
            u = rng.random((len(cumulative), size)) * cumulative[:, -1:]
            node = np.stack([np.searchsorted(*row) for row in zip(cumulative, u, strict=True)])
            drawn[rows] = np.take_along_axis(self._vectors(bases), node[..., None], axis=1)
        return drawn

    def _log_joint(self, bases: TiltedBases, law: Nodes, counts: NDArray[Any]) -> Array:
        """Log probability of nodes and of counts in their order; (draws, nodes, states)."""
        weight = self._grid.weights(bases, law)[:, 0]
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(self._vectors(bases)), _LOG_PROBABILITY_FLOOR)
            return np.asarray(logs @ np.asarray(counts, float).T + np.log(weight)[..., None])
