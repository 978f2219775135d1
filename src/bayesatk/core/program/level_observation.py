"""Marks in scored levels as an observation (`bayesatk.core.pooling.levels` says what they are).

All questions and points are summed over one grid of tilts, at which only p differs from point to
point; what a law has beyond the grid, and its atoms, are two more nodes, at p = 0 and p = 1.
Questions of so many trials that the grid is too coarse for them are normal around their observed
mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, override

import numpy as np
from scipy.special import betaln, logsumexp, softmax

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk.core.pooling.levels import scaled_scores, shape_functions
from bayesatk.core.pooling.states import States
from bayesatk.core.program.laws import DifficultyLaw
from bayesatk.core.program.observations import Observation
from bayesatk.metrics.category_credit import ScoredCredit, latent_values

_STEP = 0.3  # of logits, in widths of a question's likelihood: laws may be as narrow as they like
_WIDEST_STEP = 0.8  # of logits
_GROWTH, _FASTEST = 1.5, 0.15  # of steps: in the root of a mark's share of what is told, and most
_DEEP = 300.0  # trials of a question, times 4 p (1 - p), from which its mean is known to be normal
_BASE = 30.0  # logits further out to which a base may move the expected score at a tilt
_NEGLIGIBLE = 1e-4  # expected marks of another level, at the ends of the grid
_NARROWEST = 0.7  # sd of a law in steps of the grid: what is narrower is as good as a point
_LEAP = 0.9  # probability of a law that nodes have, below which it is known to be lost
_ARRAYS = 4  # over the nodes that are held at once
_SAFE = 600.0  # log of numbers whose product is a number
_NEWTON_STEPS, _NEWTON_STEP = 6, 2.0  # to a tilt, and the longest, in logs of level ratios
_NO_MASS = 1e-30  # prior probability of nodes that no trials make probable
_NOTHING = -1e9  # log likelihood of what cannot be
_LEAST = 1e-300  # probability, whose logarithm is a number
_BLOCK = 4_000_000  # floats in one array: 32 MB


class Tilted(NamedTuple):
    """The family of tilts at points, on a grid of tilts.

    Parameters
    ----------
    log_base : ndarray, shape (points, levels)
    log_scale : ndarray, shape (points, grid + 2)
        Log of the sum of tilted bases, less that of the reference; at both ends last.
    log_p, log_q, log_step : ndarray, shape (points, grid)
        Logs of the expected score, of its complement, and of its distance to the next, over p q.
    """

    log_base: Array
    log_scale: Array
    log_p: Array
    log_q: Array
    log_step: Array


class _Factors(NamedTuple):
    """Likelihood of sums of scores at a run of nodes, as a product.

    Parameters
    ----------
    run : slice
    of_points : ndarray, shape (points, nodes)
    of_sums : ndarray, shape (nodes, sums)
    scale : ndarray, shape (points, sums)
        Log of what the product is short of.
    """

    run: slice
    of_points: Array
    of_sums: Array
    scale: Array


class _Alike(NamedTuple):
    """States of the same number of trials, whose likelihood is known by their sums of scores.

    Parameters
    ----------
    states : ndarray of int
    place : ndarray of int, shape (states,)
        Of each among the distinct sums.
    trials : float
    logs : ndarray, shape (nodes, sums)
        Log likelihood under the reference.
    """

    states: Indices
    place: Indices
    trials: float
    logs: Array


class _Drawn(NamedTuple):
    """Nodes of questions at some points.

    Parameters
    ----------
    rows : ndarray of int
        Places of the draws among all.
    theta : ndarray, shape (points, hyperparameters)
        Distinct.
    point : ndarray of int, shape (draws,)
        Of each draw among these.
    node : ndarray of int, shape (draws, questions)
    tilted : Tilted
    weight : ndarray, shape (points, offsets, nodes)
    """

    rows: Indices
    theta: Array
    point: Indices
    node: Indices
    tilted: Tilted
    weight: Array


@dataclass(frozen=True)
class Levels(Observation):
    """Trials in scored levels, whose expected score has a law of difficulty.

    Parameters
    ----------
    law : DifficultyLaw
        With ``shape`` among its fields, where there are more than two levels.
    states : States
        Prior trials count as so many trials more.
    scores : tuple of float
    """

    law: DifficultyLaw
    states: States
    scores: tuple[float, ...]

    # The grid of tilts, and the sums of scores that trials are known by

    @cached_property
    def _scaled(self) -> Array:
        return scaled_scores(self.scores)

    @cached_property
    def _scaled_gap(self) -> float:
        """Smaller of the distances of the end levels from their neighbours."""
        levels = np.unique(self._scaled)
        return float(min(levels[1], 1.0 - levels[-2]))

    @cached_property
    def _functions(self) -> Array:
        return shape_functions(self.scores)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Trials and sums of scaled scores of each state."""
        evidence = self.states.evidence
        return evidence.sum(axis=1), evidence @ self._scaled

    @cached_property
    def _deep(self) -> Flags:
        """States of which the observed mean is as good as normal."""
        trials, total = self._sums
        rate = total / np.maximum(trials, 1.0)
        return np.asarray(4.0 * rate * (1.0 - rate) * trials > _DEEP)

    @cached_property
    def _variance_within(self) -> float:
        """Variance of marks of a question, at most: with two standard errors."""
        trials, total = self._sums
        tried = trials > 0.0
        count, trials, total = self.states.count[tried], trials[tried], total[tried]
        squares, rate = self.states.evidence[tried] @ self._scaled**2, total / trials
        questions, marks = max(float(count.sum()), 1.0), max(float(count @ trials), 1.0)
        mean = (count @ rate) / questions
        whole = (count @ squares) / marks - mean**2
        freedom, within = marks - questions, whole
        if freedom > 0.0:
            within = (count @ (squares - total * rate)) / freedom
            within *= 1.0 + 2.0 * np.sqrt(2.0 / freedom)
        least = 0.25 / (len(np.unique(self._scaled)) - 1.0) ** 2
        return float(np.clip(within, least, max(float(whole), least)))

    @cached_property
    def _tilts(self) -> tuple[Array, Array]:
        """Tilts at steps of what a question's trials tell, which widen outwards, and the steps."""
        trials, _ = self._sums
        most = np.where(self._deep, 0.0, trials).max(initial=1.0)
        within, (reference, centre) = self._variance_within, self._centred
        p = softmax(reference + centre * self._scaled) @ self._scaled
        relative = within / (p * (1.0 - p))
        step = _STEP * min(1.0 / np.sqrt(most * within), _WIDEST_STEP / relative)
        growth = min(_GROWTH * np.sqrt(relative / most), _FASTEST)
        end = np.log(max(trials.max(initial=0.0), 1.0) / (_NEGLIGIBLE * self._scaled_gap)) + _BASE
        farthest = end / self._scaled_gap + abs(centre)
        number = np.ceil(np.arcsinh(farthest * growth / step) / growth)
        places = growth * np.arange(-number, number + 1)
        return centre + step / growth * np.sinh(places), step * np.cosh(places)

    @property
    def _reference(self) -> Array:
        """Log of a base near those of the posterior."""
        return self._centred[0]

    @cached_property
    def _centred(self) -> tuple[Array, float]:
        """Log of a base near those of the posterior, and the tilt at which its mean is that seen.

        How often levels were seen, times a normal around the mean: of the variance of marks of a
        question. A base has no slope, which is the tilt.
        """
        seen = self.states.count @ self.states.evidence
        share = (seen + 0.5) / (seen.sum() + 0.5 * len(seen))
        s, mean = self._scaled, share @ self._scaled
        narrower = 0.5 / self._variance_within - 0.5 / (share @ (s - mean) ** 2)
        narrower = np.clip(narrower, 0.0, 200.0 / max(mean, 1.0 - mean) ** 2)
        logs = np.log(share) - narrower * (s - mean) ** 2
        slope = float((s - s.mean()) @ logs / ((s - s.mean()) @ s))
        return logs - slope * s, slope

    @cached_property
    def _of_reference(self) -> tuple[Array, Array]:
        """Probabilities of levels under the reference (grid, levels), and log sums of its tilts."""
        powers = self._tilts[0][:, None] * self._scaled + self._reference
        return softmax(powers, axis=1), logsumexp(powers, axis=1)

    @cached_property
    def _weighted(self) -> Array:
        """Probabilities under the reference, times s, 1 - s and s (1 - s); (levels, 3 grid)."""
        s = self._scaled
        weights = np.stack([s, 1.0 - s, s * (1.0 - s)])
        return np.concatenate([(self._of_reference[0] * row).T for row in weights], axis=1)

    def log_base(self, theta: Array) -> Array:
        """Log of the base at points; (points, levels)."""
        if not len(self._functions):
            return np.zeros((len(theta), len(self.scores)))
        return np.asarray(self.law.fields.value("shape", theta) @ self._functions)

    def _tilted(self, theta: Array) -> Tilted:
        """Return the family at points; the sums at p = 0 and p = 1 come last."""
        log_base = np.clip(self.log_base(theta), -300.0, 300.0)
        s = self._scaled
        ratio = log_base - self._reference
        top = ratio.max(axis=1, keepdims=True)
        base = np.exp(ratio - top)
        up, down, product = np.split(np.maximum(base @ self._weighted, _LEAST), 3, axis=1)
        total = up + down
        log_step = np.log(_relative_variance(up / total, down / total, product / total))
        log_step += np.log(self._tilts[1])
        log_scale = np.log(total) + top
        ends = [np.logaddexp.reduce(log_base[:, s == end], axis=1) for end in (0.0, 1.0)]
        log_scale = np.concatenate([log_scale, np.stack(ends, axis=1)], axis=1)
        log_p, log_q = np.log(up / total), np.log(down / total)
        return Tilted(log_base, log_scale, log_p, log_q, log_step)

    def vectors(self, theta: Array, nodes: Flags) -> Array:
        """Probabilities of levels at some nodes of points, ends last; (points, nodes, levels)."""
        base, ends = self._based(theta)
        reference = self._of_reference[0][nodes[:-2]]
        vectors = np.empty((len(theta), nodes.sum(), len(self.scores)))
        inner = vectors[:, : len(reference)]
        np.multiply(base[:, None], reference, out=inner)
        inner /= np.maximum(base @ reference.T, _LEAST)[..., None]
        vectors[:, len(reference) :] = ends[:, nodes[-2:]]
        return vectors

    def _based(self, theta: Array) -> tuple[Array, Array]:
        """Return the base over the reference, and probabilities of levels at p = 0 and at p = 1."""
        log_base = np.clip(self.log_base(theta), -300.0, 300.0)
        ratio = log_base - self._reference
        base = np.exp(ratio - ratio.max(axis=1, keepdims=True))
        ends = np.stack([(self._scaled == end).astype(float) for end in (0.0, 1.0)])
        ends = np.exp(log_base - log_base.max(axis=1, keepdims=True))[:, None] * ends
        ends /= np.maximum(ends.sum(axis=2, keepdims=True), _LEAST)
        return base, ends

    def typical(self, theta: Array) -> Array:
        """Return expected probabilities of levels of a new question; (points, levels)."""
        weight = self.weights(theta, np.zeros((len(theta), 1)))[:, 0]
        (base, ends), reference = self._based(theta), self._of_reference[0]
        inner = weight[:, :-2] / np.maximum(base @ reference.T, _LEAST)
        return np.asarray(base * (inner @ reference) + (weight[:, None, -2:] @ ends)[:, 0])

    def weights(self, theta: Array, offset: Array, family: Tilted | None = None) -> Array:
        """Prior probabilities of the nodes, ends last; (points, offsets, nodes)."""
        tilted = self._tilted(theta) if family is None else family
        nodes = self.law.nodes(theta, offset)
        shape = (*offset.shape, tilted.log_p.shape[1])
        weight = np.zeros((*offset.shape, shape[2] + 2))
        weight[..., -2:] = nodes.atoms.reshape(*offset.shape, 2)
        for share, alpha, beta in nodes.components:
            columns = (column.reshape(*offset.shape, 1) for column in (share, alpha, beta))
            density = self._of_beta(tilted, *columns)
            weight += density
        return weight

    def _of_beta(self, tilted: Tilted, share: Array, alpha: Array, beta: Array) -> Array:
        """Probabilities of the nodes under one Beta, times its share."""
        log_p, log_q, log_step = (
            column[:, None] for column in (tilted.log_p, tilted.log_q, tilted.log_step)
        )
        alpha, beta = self._no_narrower(alpha, beta, tilted)
        logs = np.empty((*alpha.shape[:2], log_p.shape[2] + 2))
        inner = alpha * log_p + beta * log_q
        logs[..., :-2] = inner + log_step
        # Beyond the grid p^alpha falls off exponentially in logits, from half a step further out.
        half = 0.5 * np.exp(log_step[..., [0, -1]])
        logs[..., -2] = inner[..., 0] - (alpha * half)[..., 0] - np.log(alpha[..., 0])
        logs[..., -1] = inner[..., -1] - (beta * half)[..., 1] - np.log(beta[..., 0])
        top = logs.max(axis=2, keepdims=True)
        density = np.exp(logs - top)
        total = density.sum(axis=2, keepdims=True)
        # A base for which scores leap from one node to the next loses what lies between, if much.
        whole = np.exp(np.clip(betaln(alpha, beta) - top, -_SAFE, _SAFE))
        return np.asarray(share * density / np.where(total < _LEAP * whole, whole, total))

    def _no_narrower(self, alpha: Array, beta: Array, tilted: Tilted) -> tuple[Array, Array]:
        """Return parameters of Betas that the grid can tell from a point, of the same mean."""
        total = alpha + beta
        mean, complement = alpha / total, beta / total
        # In logits the sd is about sqrt(icc / (p q)), and here the parameters sum to about 1 / icc.
        widest = np.exp(tilted.log_step.max(axis=1))[:, None, None]
        narrow = total * (_NARROWEST * widest) ** 2 * mean * complement > 1.0
        if not narrow.any():
            return alpha, beta
        below = tilted.log_p[:, None] < np.log(mean)
        node = np.clip(below.sum(axis=2, keepdims=True), 0, below.shape[2] - 1)
        step = np.exp(np.take_along_axis(tilted.log_step[:, None], node, axis=2))
        most = 1.0 / np.maximum((_NARROWEST * step) ** 2 * mean * complement, _LEAST)
        shrunk = np.minimum(most, total) / total
        return np.maximum(alpha * shrunk, _LEAST), np.maximum(beta * shrunk, _LEAST)

    # What trials say

    @cached_property
    def _groups(self) -> list["_Alike"]:
        """States of the same number of trials, which the grid is fine enough for."""
        trials, total = self._sums
        tilts, log_reference = self._tilts[0], self._of_reference[1]
        evidence, ends = self.states.evidence, [self._scaled == end for end in (0.0, 1.0)]
        at_end = np.stack([evidence[:, ~end].sum(axis=1) == 0.0 for end in ends], axis=1)
        groups = []
        for number in np.unique(trials[~self._deep]):
            states = np.flatnonzero((trials == number) & ~self._deep)
            keys = np.column_stack([np.round(total[states], 12), at_end[states]])
            distinct, node = np.unique(keys, axis=0, return_inverse=True)
            sums, node = distinct[:, 0], node.ravel()
            logs = tilts[:, None] * sums - number * log_reference[:, None]
            with np.errstate(divide="ignore"):
                logs = np.concatenate([logs, np.log(distinct[:, 1:].T)])
            groups.append(_Alike(states, node, float(number), logs))
        return groups

    def _likelihoods(self, tilted: Tilted) -> Iterator[tuple["_Alike", list["_Factors"]]]:
        """Yield states alike, and their likelihood at the nodes as products, a run at a time."""
        for alike in self._groups:
            of_points, factors = -alike.trials * tilted.log_scale, []
            for run in _runs(of_points):
                with np.errstate(invalid="ignore"):
                    inside, logs = of_points[:, run], alike.logs[run]
                    top, peak = inside.max(axis=1, keepdims=True), logs.max(axis=0)
                    peak = np.maximum(peak, _NOTHING)
                    factors.append(
                        _Factors(run, np.exp(inside - top), np.exp(logs - peak), top + peak)
                    )
            yield alike, factors

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        base = self.log_base(theta)
        same = bool((base == base[:1]).all())  # one family for all points
        tilted = self._tilted(theta[:1] if same else theta)
        logs = np.empty((*offset.shape, len(self.states)))
        weight = self.weights(theta, offset, tilted)
        for alike, factors in self._likelihoods(tilted):
            totals = np.logaddexp.reduce([
                np.log(np.maximum((weight[..., run] * points[:, None]) @ sums, _LEAST))
                + scale[:, None] for run, points, sums, scale in factors
            ])  # fmt: skip
            logs[..., alike.states] = totals[..., alike.place]
        deep = np.flatnonzero(self._deep)
        if len(deep):
            logs[..., deep] = self._log_deep(theta, offset, tilted, deep)
        return logs + (tilted.log_base @ self.states.evidence.T)[:, None]

    @override
    def both(
        self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array
    ) -> tuple[Array, Array]:
        tilted = self._tilted(theta)
        weight = self.weights(theta, offset, tilted)
        values = self._values(metrics, theta, self._within(weight, tilted))
        values = np.ascontiguousarray(np.moveaxis(values, 2, 0))
        square = values * values
        powers = np.concatenate([np.ones_like(values[:1]), values, square, square * values])
        observed = np.empty((*offset.shape, len(self.states), len(metrics), 3))
        for alike, factors in self._likelihoods(tilted):
            parts = _on_one_scale(factors)
            for j in range(offset.shape[1]):
                raw = sum(
                    (weight[:, j, run] * points * powers[..., run]) @ sums * scale
                    for run, points, sums, scale in parts
                )
                moments = np.moveaxis(raw[1:] / np.maximum(raw[0], _LEAST), 0, 2)
                observed[:, j, alike.states] = _cumulants(moments, len(metrics))[:, alike.place]
        deep = np.flatnonzero(self._deep)
        if len(deep):
            observed[..., deep, :, :] = self._deep_cumulants(metrics, tilted, deep)[:, None]
        new = _cumulants(np.einsum("pjn,cpn->pjc", weight, powers[1:]), len(metrics))[..., :2]
        lowest, width = self._span(metrics)
        observed[..., 0] = lowest + width * observed[..., 0]
        new[..., 0] = lowest + width * new[..., 0]
        observed[..., 1:] *= np.stack([width**2, width**3], axis=-1)
        new[..., 1] *= width**2
        return observed, new

    @override
    def cumulants(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        return self.both(metrics, theta, offset)[0]

    @override
    def new_cumulants(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        return self.both(metrics, theta, offset)[1]

    @override
    def new_means(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        (lowest, width), weight = self._span(metrics), self.weights(theta, offset)
        values = self._values(metrics, theta, weight.max(axis=(0, 1)) > 0.0)
        return np.asarray(lowest + width * (weight @ values))

    def _span(self, metrics: Sequence[ScoredCredit]) -> tuple[Array, Array]:
        """Lowest value of each metric, and the width of its scale."""
        lowest = np.array([metric.scores.min() for metric in metrics])
        return lowest, np.maximum([np.ptp(metric.scores) for metric in metrics], _LEAST)

    def _within(self, weight: Array, tilted: Tilted) -> Flags:
        """Nodes with probability: that a law has there, or between observed means."""
        trials, total = self._sums
        rates = total[trials > 0.0] / trials[trials > 0.0]
        within = weight.max(axis=(0, 1)) > _NO_MASS
        if len(rates):
            p = np.exp(tilted.log_p)
            between = (p >= rates.min()).any(axis=0) & (p <= rates.max()).any(axis=0)
            within[:-2] |= between
            within[-2:] |= [rates.min() == 0.0, rates.max() == 1.0]
        return np.asarray(within)

    def _values(self, metrics: Sequence[ScoredCredit], theta: Array, nodes: Flags) -> Array:
        """Metrics at some nodes, on scales from 0 to 1; (points, nodes, metrics), 0 at others."""
        lowest, width = self._span(metrics)
        values = np.zeros((len(theta), len(nodes), len(metrics)))
        values[:, nodes] = (latent_values(metrics, self.vectors(theta, nodes)) - lowest) / width
        return values

    @override
    def floats(self, columns: int) -> int:
        """Count the arrays that have a number for each node."""
        return columns * len(self.states) + _ARRAYS * (len(self._tilts[0]) + 2)

    # Questions of very many trials

    def _solved(self, tilted: Tilted, state: Indices) -> tuple[Array, Array, Array]:
        """Tilts whose expected score is the observed one of deep states, by Newton's method.

        Returns
        -------
        tilt, log_sum, variance : ndarray, shape (points, states)
            Of levels' scores, and the log sum of the tilted base.
        """
        trials, total = self._sums
        rate = total[state] / trials[state]
        logit_rate = np.log(rate) - np.log1p(-rate)
        logits = tilted.log_p - tilted.log_q
        tilt = np.stack([np.interp(logit_rate, row, self._tilts[0]) for row in logits])
        s = self._scaled
        for _ in range(_NEWTON_STEPS):
            powers = tilted.log_base[:, None] + tilt[..., None] * s
            vector = softmax(powers, axis=2)
            mean, complement = vector @ s, vector @ (1.0 - s)
            variance = np.maximum(mean * complement - vector @ (s * (1.0 - s)), _LEAST)
            # In logits of the mean the tilt is close to a straight line.
            mean, complement = np.maximum(mean, _LEAST), np.maximum(complement, _LEAST)
            gap = logit_rate - np.log(mean) + np.log(complement)
            move = gap * mean * complement / variance
            longest = _NEWTON_STEP / self._scaled_gap
            tilt = tilt + np.clip(move, -longest, longest)
        return tilt, logsumexp(tilted.log_base[:, None] + tilt[..., None] * s, axis=2), variance

    def _log_deep(self, theta: Array, offset: Array, tilted: Tilted, deep: Indices) -> Array:
        """Log probability of trials around their mean, by Laplace's method, without base."""
        trials, total = (column[deep] for column in self._sums)
        tilt, log_sum, variance = self._solved(tilted, deep)
        rate = total / trials
        top = tilt * total - trials * log_sum
        width = 0.5 * np.log(2.0 * np.pi * variance / trials)
        logs = []
        for share, alpha, beta in self.law.nodes(theta, offset).components:
            a, b, w = (column.reshape(*offset.shape, 1) for column in (alpha, beta, share))
            # What is narrower than the trials tell has their width.
            most = np.maximum(trials / (rate * (1.0 - rate)) * 1e3 / (a + b), 0.0)
            a, b = a * np.minimum(most, 1.0), b * np.minimum(most, 1.0)
            density = (a - 1.0) * np.log(rate) + (b - 1.0) * np.log1p(-rate) - betaln(a, b)
            logs.append(density + np.log(np.maximum(w, _LEAST)))
        return np.asarray(np.logaddexp.reduce(logs) + (top + width)[:, None])

    def _deep_cumulants(
        self, metrics: Sequence[ScoredCredit], tilted: Tilted, deep: Indices
    ) -> Array:
        """Cumulants of metrics at the observed means; (points, states, metrics, 3)."""
        tilt, _, variance = self._solved(tilted, deep)
        trials = self._sums[0][deep]
        width = 1.0 / np.sqrt(trials * variance)
        lowest, span = self._span(metrics)
        values = []
        for sign in (-1.0, 0.0, 1.0):
            powers = tilted.log_base[:, None] + (tilt + sign * width)[..., None] * self._scaled
            vector = softmax(powers, axis=2)
            values.append(np.stack([metric.latent(vector) for metric in metrics], axis=-1))
        low, middle, high = ((value - lowest) / span for value in values)
        spread = (0.5 * (high - low)) ** 2
        return np.stack([middle, spread, np.zeros_like(middle)], axis=-1)

    # Draws

    @cached_property
    def _kinds(self) -> tuple[Indices, Indices]:
        """First state of each number of trials and sum of scores, and the node of every state."""
        pairs = np.stack([self._sums[0], np.round(self._sums[1], 9)], axis=1)
        _, first, node = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        return first, node.ravel()

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw vectors of probabilities, with a last dimension of levels."""
        drawn = np.empty((*offset.shape, len(self.scores)))
        tilts, gaps = self._tilts
        for at in self._nodes(theta, offset, state, rng, True):
            inside = np.minimum(at.node, len(tilts) - 1)
            tilt = tilts[inside] + gaps[inside] * (rng.random(at.node.shape) - 0.5)
            deep = np.flatnonzero(self._deep[state])
            if len(deep):
                tilt[:, deep] = self._deep_tilts(at, state[deep], rng)
            base = at.tilted.log_base[at.point][:, None]
            vector = softmax(base + tilt[..., None] * self._scaled, axis=2)
            for number, end in enumerate((0.0, 1.0)):
                at_end = (at.node == len(tilts) + number) & ~self._deep[state]
                if at_end.any():
                    sure = softmax(np.where(self._scaled == end, base, -np.inf), axis=2)
                    vector = np.where(at_end[..., None], sure, vector)
            drawn[at.rows] = vector
        return drawn

    def draw_means(
        self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array, state: Indices,
        share: Array, factors: Sequence[Array], rng: Rng,
    ) -> Array:  # fmt: skip
        """Draw sums of metrics over questions, by their nodes; (points, groups, metrics, factors).

        Parameters
        ----------
        metrics, theta, offset, state, rng
            As of `draw`.
        share : ndarray, shape (questions, groups)
        factors : sequence of ndarray, shape (points or 1, questions or 1)
            By which shares are multiplied.
        """
        deep = np.flatnonzero(self._deep[state])
        drawn = np.empty((len(theta), share.shape[1], len(metrics), len(factors)))
        nodes, (lowest, width) = len(self._tilts[0]) + 2, self._span(metrics)
        for at in self._nodes(theta, offset, state, rng, False):
            drawn_nodes = np.bincount(at.node.ravel(), minlength=nodes) > 0
            values = self._values(metrics, at.theta, drawn_nodes)
            values = (lowest + width * values)[at.point]
            if len(deep):
                base = at.tilted.log_base[at.point][:, None]
                tilt = self._deep_tilts(at, state[deep], rng)
                vector = softmax(base + tilt[..., None] * self._scaled, axis=2)
                of_deep = latent_values(metrics, vector)
            entry = np.arange(len(at.rows))[:, None] * nodes + at.node
            for j, factor in enumerate(factors):
                factor = np.broadcast_to(factor, offset.shape)[at.rows]
                for group, of_group in enumerate(share.T):
                    counted = factor * of_group
                    shallow = np.where(self._deep[state], 0.0, counted).ravel()
                    sums = np.bincount(entry.ravel(), shallow, len(entry) * nodes)
                    total = sums.reshape(len(entry), 1, nodes) @ values
                    if len(deep):
                        total += counted[:, None, deep] @ of_deep
                    drawn[at.rows, group, :, j] = total[:, 0]
        return drawn

    def _nodes(
        self, theta: Array, offset: Array, state: Indices, rng: Rng, spread: bool
    ) -> Iterator["_Drawn"]:
        """Yield nodes of questions, some points at a time; less those that spread out around them.

        Draws of one point, and questions of the same sum of scores, have the same probabilities.
        """
        alike = not offset.any()
        first, column, points, point = state, np.arange(len(state)), theta, np.arange(len(theta))
        if alike:
            points, point = np.unique(theta, axis=0, return_inverse=True)
            kinds, column = np.unique(self._kinds[1][state], return_inverse=True)
            first, point = self._kinds[0][kinds], point.ravel()
        nodes = len(self._tilts[0]) + 2
        step = max(1, _BLOCK // (8 * nodes * max(len(first), len(self.scores))))
        order = np.argsort(point, kind="stable")
        ends = np.searchsorted(point[order], np.arange(0, len(points) + step, step))
        for number, (low, high) in enumerate(pairwise(ends)):
            block, rows = points[number * step : (number + 1) * step], order[low:high]
            tilted = self._tilted(block)
            weight = self.weights(
                block, np.zeros((len(block), 1)) if alike else offset[rows], tilted
            )
            cumulative = np.cumsum(self._chances(tilted, weight, first, spread), axis=2)
            cumulative /= np.maximum(cumulative[..., -1:], _LEAST)
            # All rows are searched at once, each with a whole number of its own.
            numbers = np.arange(cumulative[..., 0].size).reshape(cumulative.shape[:2])
            edges = (np.minimum(cumulative, 1.0) + numbers[..., None]).ravel()
            of_block = point[rows] - number * step
            row = of_block[:, None] * len(first) + column
            node = np.searchsorted(edges, row + rng.random(row.shape)) - row * nodes
            node = np.clip(node, 0, nodes - 1)
            yield _Drawn(rows, block, of_block, node, tilted, weight)

    def _chances(self, tilted: Tilted, weight: Array, state: Indices, spread: bool) -> Array:
        """Return posterior probabilities of nodes, times a constant; (points, states, nodes)."""
        chance = np.repeat(weight, len(state) // weight.shape[1], axis=1)
        for alike, factors in self._likelihoods(tilted):
            columns = np.flatnonzero(np.isin(state, alike.states))
            sums = alike.place[np.searchsorted(alike.states, state[columns])]
            for run, of_points, of_sums, scale in _on_one_scale(factors):
                likelihood = of_points[:, None] * of_sums[:, sums].T * scale[:, sums, None]
                chance[:, columns, run] *= likelihood
        if spread:  # around nodes, by which they vary more (Sheppard's correction)
            bend = np.diff(chance[..., :-2], 2) / 24.0
            chance[..., 1:-3] = np.maximum(chance[..., 1:-3] - bend, 0.0)
        return chance

    def _deep_tilts(self, at: "_Drawn", state: Indices, rng: Rng) -> Array:
        """Draw tilts of questions of very many trials; (points, questions)."""
        tilt, _, variance = self._solved(at.tilted, state)
        noise = rng.standard_normal((len(at.rows), len(state)))
        return tilt[at.point] + noise / np.sqrt(self._sums[0][state] * variance[at.point])


def _runs(logs: Array) -> list[slice]:
    """Return runs of nodes within which logs (points, nodes) differ so little that none vanishes.

    Examples
    --------
    >>> _runs(np.array([[0.0, 500.0, 700.0, 700.0]]))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    if np.ptp(logs, axis=1).max(initial=0.0) < _SAFE:
        return [slice(0, logs.shape[1])]
    starts, low, high = [0], logs[:, 0], logs[:, 0]
    for node, column in enumerate(logs.T):
        low, high = np.minimum(low, column), np.maximum(high, column)
        if (high - low).max() >= _SAFE:
            starts.append(node)
            low, high = column, column
    return [slice(*ends) for ends in pairwise([*starts, logs.shape[1]])]


def _on_one_scale(factors: "list[_Factors]") -> "list[_Factors]":
    """Return factors with the scale of each over the largest of all runs."""
    top = np.max([factor.scale for factor in factors], axis=0)
    return [factor._replace(scale=np.exp(factor.scale - top)) for factor in factors]


def _relative_variance(p: Array, q: Array, product: Array) -> Array:
    """Variance of the score s over p q, of s (1 - s) that is so much on average."""
    return np.maximum(1.0 - product / np.maximum(p * q, _LEAST), 1e-9)


def _cumulants(raw: Array, metrics: int) -> Array:
    """Mean, variance and third cumulant from raw moments (..., 3 metrics), metric by metric."""
    first, second, third = (raw[..., j * metrics : (j + 1) * metrics] for j in range(3))
    variance = np.maximum(second - first**2, 0.0)
    skewed = third - first * (3.0 * second - 2.0 * first**2)
    return np.stack([first, variance, skewed], axis=-1)
