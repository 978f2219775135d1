r"""Trials in scored levels as an observation (`bayesatk.core.pooling.levels` defines the levels).

All questions and points are summed over one grid of tilts t, at which only the expected score p
differs from point to point. With base b, scores s and counts n of the levels,

.. math:: P(\text{trials} \mid t) = \Bigl(\prod_c b_c^{n_c}\Bigr) e^{t \sum_c n_c s_c} /
    \Bigl(\sum_c b_c e^{t s_c}\Bigr)^{\sum_c n_c},

so that along the grid the likelihood of a state depends on its trials and its sum of scores alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, override

import numpy as np
from scipy.special import softmax

from bayesatk._tools.arrays import PROBABILITY_FLOOR, Array, Flags, Indices, Rng, exp_or_zero
from bayesatk.core.pooling.levels import TiltedBases, TiltGrid, scaled_scores, shape_functions
from bayesatk.core.pooling.states import States
from bayesatk.core.program.laws import DifficultyLaw
from bayesatk.core.program.observations import Observation
from bayesatk.metrics.category_credit import ScoredCredit, latent_values

_STEP = 0.3  # of the grid, in standard deviations of the likelihood of a question
_LOGIT_STEP_MAX = 0.8
_STEP_GROWTH, _STEP_GROWTH_MAX = 1.5, 0.15  # in roots of a trial's share of a question; and most
_TILT_OF_BASE = 30.0  # logits by which a base may move the expected score at a tilt
_TRIALS_BEYOND_GRID = 1e-4  # expected at other levels than the end level, at the ends of the grid
_ARRAYS_OVER_NODES = 4  # that are held at once
_LOG_RANGE_MAX = 600.0  # of factors whose product is a number
_PRIOR_MASS_MIN = 1e-30  # of nodes that no trials make probable
_LOG_PROBABILITY_FLOOR = -1e9
_FACTOR_MIN, _TOTAL_MIN = 1e-150, 1e-130  # of products that are sums over nodes
_SHARE_OF_TOTAL_MIN = 1e-20  # of the nodes that such a sum needs
_MAX_FLOATS_PER_BLOCK = 4_000_000


class _SameTrials(NamedTuple):
    """Sums of scores of the same number of trials, by which their likelihood is known.

    Parameters
    ----------
    columns : slice
        Positions among the sums of all numbers of trials.
    trials : float
    log_likelihood : ndarray, shape (nodes, sums)
        Under the reference base.
    """

    columns: slice
    trials: float
    log_likelihood: Array


class _Factors(NamedTuple):
    """Likelihood of sums of scores at a run of nodes, as a product of two matrices and a scale.

    Parameters
    ----------
    run : slice
    of_points : ndarray, shape (points, nodes)
    of_sums : ndarray, shape (nodes, sums)
    scale : ndarray, shape (points, sums)
        Logarithm of what the product lacks, or what it lacks over the largest of all runs.
    """

    run: slice
    of_points: Array
    of_sums: Array
    scale: Array


class _Product(NamedTuple):
    """Sums over nodes of a weight times the likelihood of sums of scores.

    Subnormal numbers take a hundred times as long, so factors below 1e-150 are zero: where a total
    is above 1e-130 they add nothing. All factors stay where some total is not.

    Parameters
    ----------
    weight : ndarray, shape (rows, nodes)
        At most one, as the likelihood is.
    of_sums : ndarray, shape (nodes, sums)
    total : ndarray, shape (rows, sums)
    """

    weight: Array
    of_sums: Array
    total: Array

    @classmethod
    def of(cls, weight: Array, of_sums: Array) -> "_Product":
        """Return the product of two matrices."""
        normal = [factor * (factor > _FACTOR_MIN) for factor in (weight, of_sums)]
        total = normal[0] @ normal[1]
        small = total.min(axis=1) < _TOTAL_MIN
        if not small.any():
            return cls(normal[0], normal[1], total)
        total[small] = weight[small] @ of_sums
        return cls(weight, of_sums, total)

    @property
    def nodes(self) -> slice:
        """Nodes from the first to the last that adds to any total more than 1e-20 of it."""
        most = self.weight.max(axis=0) * self.of_sums.max(axis=1)
        counted = np.flatnonzero(most > _SHARE_OF_TOTAL_MIN * self.total.min())
        return slice(counted[0], counted[-1] + 1) if len(counted) else slice(0)

    def means(self, powers: Array, scale: Array) -> Array:
        """Return the sums of the same terms times powers (rows, powers, nodes), times a scale.

        The scale is (rows, sums).
        """
        nodes = self.nodes
        terms = self.weight[:, None, nodes] * powers[..., nodes]
        rows, number, size = terms.shape
        sums = terms.reshape(rows * number, size) @ self.of_sums[nodes]
        sums = sums.reshape(rows, number, -1)
        sums *= scale[:, None]
        return sums


class _NodeDraws(NamedTuple):
    """Nodes that were drawn for questions, at some of the points.

    Parameters
    ----------
    rows : ndarray of int, shape (draws,)
        Positions of the draws among all.
    bases : TiltedBases
        Of the distinct points.
    point : ndarray of int, shape (draws,)
        Position of each draw's point among the distinct points.
    node : ndarray of int, shape (draws, questions)
    """

    rows: Indices
    bases: TiltedBases
    point: Indices
    node: Indices


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
    def _functions(self) -> Array:
        return shape_functions(self.scores)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Trials and sums of scaled scores of each state."""
        evidence = self.states.evidence
        return evidence.sum(axis=1), evidence @ self._scaled

    @cached_property
    def _variance_within(self) -> float:
        """Upper bound of the variance of a question's scores: the estimate, two errors larger."""
        trials, total = self._sums
        tried = trials > 0.0
        count, trials, total = self.states.count[tried], trials[tried], total[tried]
        squares, rate = self.states.evidence[tried] @ self._scaled**2, total / trials
        questions, all_trials = max(float(count.sum()), 1.0), max(float(count @ trials), 1.0)
        mean = (count @ rate) / questions
        whole = (count @ squares) / all_trials - mean**2
        freedom, within = all_trials - questions, whole
        if freedom > 0.0:
            within = (count @ (squares - total * rate)) / freedom
            within *= 1.0 + 2.0 * np.sqrt(2.0 / freedom)
        smallest = 0.25 / (len(np.unique(self._scaled)) - 1.0) ** 2
        return float(np.clip(within, smallest, max(float(whole), smallest)))

    @cached_property
    def _reference(self) -> tuple[Array, float]:
        """Log of a base near those of the posterior, and the tilt at which its mean is observed.

        The observed shares of levels, times a normal around the mean with the variance of a
        question's scores. A base has no slope, which is the tilt.
        """
        observed = self.states.count @ self.states.evidence
        share = (observed + 0.5) / (observed.sum() + 0.5 * len(observed))
        s, mean = self._scaled, share @ self._scaled
        narrower = 0.5 / self._variance_within - 0.5 / (share @ (s - mean) ** 2)
        narrower = np.clip(narrower, 0.0, 200.0 / max(mean, 1.0 - mean) ** 2)
        logs = np.log(share) - narrower * (s - mean) ** 2
        slope = float((s - s.mean()) @ logs / ((s - s.mean()) @ s))
        return logs - slope * s, slope

    @cached_property
    def grid(self) -> TiltGrid:
        """Tilts at steps by the likelihood of a question, which widen outwards."""
        most_trials = max(float(self._sums[0].max(initial=0.0)), 1.0)
        within, (log_reference, centre) = self._variance_within, self._reference
        p = softmax(log_reference + centre * self._scaled) @ self._scaled
        relative = within / (p * (1.0 - p))
        step = _STEP * min(1.0 / np.sqrt(most_trials * within), _LOGIT_STEP_MAX / relative)
        growth = min(_STEP_GROWTH * np.sqrt(relative / most_trials), _STEP_GROWTH_MAX)
        levels = np.unique(self._scaled)
        end_gap = min(levels[1], 1.0 - levels[-2])
        end = np.log(most_trials / (_TRIALS_BEYOND_GRID * end_gap)) + _TILT_OF_BASE
        farthest = end / end_gap + abs(centre)
        number = np.ceil(np.arcsinh(farthest * growth / step) / growth)
        x = growth * np.arange(-number, number + 1)
        tilts, steps = centre + step / growth * np.sinh(x), step * np.cosh(x)
        return TiltGrid(self.scores, log_reference, tilts, steps)

    @property
    def _nodes(self) -> int:
        """Nodes of the grid, with those at p = 0 and p = 1."""
        return len(self.grid.tilts) + 2

    def log_base(self, theta: Array) -> Array:
        """Log of the base at points; (points, levels)."""
        if not len(self._functions):
            return np.zeros((len(theta), len(self.scores)))
        return np.asarray(self.law.fields.value("shape", theta) @ self._functions)

    def _tilted(self, theta: Array) -> TiltedBases:
        return self.grid.tilted(self.log_base(theta))

    def _weights(self, bases: TiltedBases, theta: Array, offset: Array) -> Array:
        """Prior probabilities of the nodes; (points, offsets, nodes)."""
        return self.grid.weights(bases, self.law.nodes(theta, offset), offset.shape[1])

    def typical(self, theta: Array) -> Array:
        """Return expected probabilities of levels of a new question; (points, levels)."""
        floats, typical = len(theta) * _ARRAYS_OVER_NODES * self._nodes, []
        for block in np.array_split(theta, 1 + floats // _MAX_FLOATS_PER_BLOCK):
            bases = self._tilted(block)
            weight = self._weights(bases, block, np.zeros((len(block), 1)))
            typical.append(self.grid.mean_vectors(bases, weight[:, 0]))
        return np.concatenate(typical)

    # What trials say

    @cached_property
    def _distinct(self) -> tuple[Array, Indices]:
        """Trials, sums of scores and whether all are at either end, and the column of each state.

        Columns are these distinct rows, (columns, 4), in the order of their trials.
        """
        trials, total = self._sums
        evidence, ends = self.states.evidence, [self._scaled == end for end in (0.0, 1.0)]
        at_end = [evidence[:, ~end].sum(axis=1) == 0.0 for end in ends]
        rows = np.column_stack([trials, np.round(total, 12), *at_end])
        distinct, column = np.unique(rows, axis=0, return_inverse=True)
        return distinct, column.ravel()

    @cached_property
    def _groups(self) -> list[_SameTrials]:
        distinct, _ = self._distinct
        tilts, log_reference_sum = self.grid.tilts, self.grid.reference[1]
        numbers, start = np.unique(distinct[:, 0], return_index=True)
        groups = []
        for number, ends in zip(numbers, pairwise([*start, len(distinct)]), strict=True):
            total, at_end = np.split(distinct[slice(*ends), 1:], [1], axis=1)
            logs = tilts[:, None] * total[:, 0] - number * log_reference_sum[:, None]
            with np.errstate(divide="ignore"):
                logs = np.concatenate([logs, np.log(at_end.T)])
            groups.append(_SameTrials(slice(*ends), float(number), logs))
        return groups

    def _likelihoods(self, bases: TiltedBases) -> Iterator[tuple[_SameTrials, list[_Factors]]]:
        """Yield states of the same trials, and their likelihood as products, a run at a time."""
        for same_trials in self._groups:
            of_points, factors = -same_trials.trials * bases.log_scale, []
            for run in _runs(of_points):
                with np.errstate(invalid="ignore"):
                    inside, logs = of_points[:, run], same_trials.log_likelihood[run]
                    top, peak = inside.max(axis=1, keepdims=True), logs.max(axis=0)
                    peak = np.maximum(peak, _LOG_PROBABILITY_FLOOR)
                    factors.append(
                        _Factors(run, np.exp(inside - top), exp_or_zero(logs - peak), top + peak)
                    )
            yield same_trials, factors

    @override
    def log_states(self, theta: Array, offset: Array) -> Array:
        log_base = self.log_base(theta)
        all_alike = bool((log_base == log_base[:1]).all())
        bases = self.grid.tilted(log_base[:1] if all_alike else log_base)
        distinct, column = self._distinct
        logs = np.empty((*offset.shape, len(distinct)))
        weight = self._weights(bases, theta, offset)
        for same_trials, factors in self._likelihoods(bases):
            logs[..., same_trials.columns] = np.logaddexp.reduce(
                [
                    _log_totals(weight[..., run] * points[:, None], sums) + scale[:, None]
                    for run, points, sums, scale in factors
                ]
            )
        return logs.take(column, axis=2) + (bases.log_base @ self.states.evidence.T)[:, None]

    @override
    def both(
        self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array
    ) -> tuple[Array, Array]:
        bases = self._tilted(theta)
        weight = self._weights(bases, theta, offset)
        powers = self._powers(metrics, bases, self._probable(weight, bases))
        span = _span(metrics)
        distinct, column = self._distinct
        # States come last in memory.
        observed = np.empty((3, *offset.shape, len(metrics), len(distinct)))
        for same_trials, factors in self._likelihoods(bases):
            scaled_factors = _on_one_scale(factors)
            for j in range(offset.shape[1]):
                products = [
                    (_Product.of(weight[:, j, run] * of_points, of_sums), run, scale)
                    for run, of_points, of_sums, scale in scaled_factors
                ]
                total = sum(terms.total * scale for terms, _, scale in products)
                inverse = 1.0 / np.maximum(total, PROBABILITY_FLOOR)
                raw = sum(
                    terms.means(powers[..., run], scale * inverse) for terms, run, scale in products
                )
                observed[:, :, j, :, same_trials.columns] = _cumulants(np.asarray(raw), *span)
        observed = observed.take(column, axis=4)
        new = _cumulants(np.moveaxis(weight @ np.swapaxes(powers, 1, 2), 1, 2), *span)[:2]
        return np.moveaxis(observed, (4, 0), (2, 4)), np.moveaxis(new, (3, 0), (1, 3))

    @override
    def cumulants(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        return self.both(metrics, theta, offset)[0]

    @override
    def new_cumulants(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        return self.both(metrics, theta, offset)[1]

    @override
    def new_means(self, metrics: Sequence[ScoredCredit], theta: Array, offset: Array) -> Array:
        (lowest, width), bases = _span(metrics), self._tilted(theta)
        weight = self._weights(bases, theta, offset)
        values = self._values(metrics, bases, weight.max(axis=(0, 1)) > 0.0)
        return np.asarray(lowest + width * (weight @ values))

    def _probable(self, weight: Array, bases: TiltedBases) -> Flags:
        """Nodes to which the law gives probability, or that lie between observed means."""
        trials, total = self._sums
        rates = total[trials > 0.0] / trials[trials > 0.0]
        probable = weight.max(axis=(0, 1)) > _PRIOR_MASS_MIN
        if len(rates):
            p = np.exp(bases.log_p)
            between = (p >= rates.min()).any(axis=0) & (p <= rates.max()).any(axis=0)
            probable[:-2] |= between
            probable[-2:] |= [rates.min() == 0.0, rates.max() == 1.0]
        return np.asarray(probable)

    def _values(self, metrics: Sequence[ScoredCredit], bases: TiltedBases, nodes: Flags) -> Array:
        """Metrics at some nodes, on scales from 0 to 1; (points, nodes, metrics), 0 at others."""
        lowest, width = _span(metrics)
        values = np.zeros((len(bases.log_base), len(nodes), len(metrics)))
        at_nodes = latent_values(metrics, self.grid.vectors(bases, nodes))
        values[:, nodes] = (at_nodes - lowest) / width
        return values

    def _powers(self, metrics: Sequence[ScoredCredit], bases: TiltedBases, nodes: Flags) -> Array:
        """First three powers of `_values`; (points, 3 metrics, nodes)."""
        values = np.swapaxes(self._values(metrics, bases, nodes), 1, 2)
        square = values * values
        powers = np.concatenate([values, square, square * values], axis=1)
        powers[powers < _FACTOR_MIN] = 0.0
        return powers

    @override
    def floats(self, columns: int) -> int:
        """Count the arrays that have a number for each node, and a quarter of the columns.

        Moments hold half of those that are stated, at half of the offsets.
        """
        return max(columns // 4, 1) * len(self.states) + _ARRAYS_OVER_NODES * self._nodes

    # Draws

    @override
    def draw(self, theta: Array, offset: Array, state: Indices, rng: Rng) -> Array:
        """Draw vectors of probabilities, with a last dimension of levels."""
        drawn = np.empty((*offset.shape, len(self.scores)))
        tilts, steps = self.grid.tilts, self.grid.steps
        for rows, bases, point, node in self._node_draws(theta, offset, state, rng, spread=True):
            inside = np.minimum(node, len(tilts) - 1)
            tilt = tilts[inside] + steps[inside] * (rng.random(node.shape) - 0.5)
            log_base = bases.log_base[point][:, None]
            vectors = softmax(log_base + tilt[..., None] * self._scaled, axis=2)
            for number, end in enumerate((0.0, 1.0)):
                at_end = node == len(tilts) + number
                if at_end.any():
                    of_end = softmax(np.where(self._scaled == end, log_base, -np.inf), axis=2)
                    vectors[at_end] = of_end[np.nonzero(at_end)[0], 0]
            drawn[rows] = vectors
        return drawn

    def draw_means(
        self,
        metrics: Sequence[ScoredCredit],
        theta: Array,
        offset: Array,
        state: Indices,
        share: Array,
        factors: Sequence[Array],
        rng: Rng,
    ) -> Array:
        """Draw sums of metrics over questions; (points, groups, metrics, factors).

        Questions have the metrics of the nodes that are drawn for them.

        Parameters
        ----------
        metrics : sequence of ScoredCredit
        theta, offset, state, rng
            As `draw` takes them.
        share : ndarray, shape (questions, groups)
        factors : sequence of ndarray, shape (points or 1, questions or 1)
            By which shares are multiplied.
        """
        drawn = np.empty((len(theta), share.shape[1], len(metrics), len(factors)))
        lowest, width = _span(metrics)
        for rows, bases, point, node in self._node_draws(theta, offset, state, rng, spread=False):
            occupied = np.bincount(node.ravel(), minlength=self._nodes) > 0
            values = lowest + width * self._values(metrics, bases, occupied)
            for k in range(len(metrics)):
                of_questions = values[point[:, None], node, k]
                for j, factor in enumerate(factors):
                    factor = np.broadcast_to(factor, offset.shape)[rows]
                    drawn[rows, :, k, j] = (of_questions * factor) @ share
        return drawn

    def _node_draws(
        self, theta: Array, offset: Array, state: Indices, rng: Rng, *, spread: bool
    ) -> Iterator[_NodeDraws]:
        """Yield nodes of questions, at some points at a time.

        Draws of one point, and questions of the same sum of scores at the same offsets, have the
        same probabilities.
        """
        offsets, place = np.unique(offset, axis=1, return_inverse=True)
        kinds, kind = np.unique(
            np.stack([place.ravel(), self._distinct[1][state]]), axis=1, return_inverse=True
        )
        points, point = np.unique(np.hstack([theta, offsets]), axis=0, return_inverse=True)
        points, offsets = np.split(points, [theta.shape[1]], axis=1)
        nodes, column, point = self._nodes, kind.ravel(), point.ravel()
        step = max(1, _MAX_FLOATS_PER_BLOCK // (8 * nodes * max(kinds.shape[1], len(self.scores))))
        order = np.argsort(point, kind="stable")
        ends = np.searchsorted(point[order], np.arange(0, len(points) + step, step))
        for number, (low, high) in enumerate(pairwise(ends)):
            block, rows = slice(number * step, (number + 1) * step), order[low:high]
            bases = self._tilted(points[block])
            weight = self._weights(bases, points[block], offsets[block])
            chance = self._chances(bases, weight[:, kinds[0]], kinds[1], spread)
            cumulative = np.cumsum(chance, axis=2)
            cumulative /= np.maximum(cumulative[..., -1:], PROBABILITY_FLOOR)
            # All rows are searched at once, each with a whole number of its own.
            numbers = np.arange(cumulative[..., 0].size).reshape(cumulative.shape[:2])
            edges = (np.minimum(cumulative, 1.0) + numbers[..., None]).ravel()
            of_block = point[rows] - number * step
            row = of_block[:, None] * kinds.shape[1] + column
            node = np.searchsorted(edges, row + rng.random(row.shape)) - row * nodes
            yield _NodeDraws(rows, bases, of_block, np.clip(node, 0, nodes - 1))

    def _chances(self, bases: TiltedBases, chance: Array, column: Indices, spread: bool) -> Array:
        """Turn prior probabilities of nodes (points, kinds, nodes) into those given sums of scores.

        These are up to a constant; `column` has the sum of each kind.
        """
        for same_trials, factors in self._likelihoods(bases):
            first, last = same_trials.columns.start, same_trials.columns.stop
            inside = np.flatnonzero((column >= first) & (column < last))
            sums = column[inside] - first
            for run, of_points, of_sums, scale in _on_one_scale(factors):
                likelihood = of_points[:, None] * of_sums[:, sums].T * scale[:, sums, None]
                chance[:, inside, run] *= likelihood
        if spread:  # around nodes, by which they vary more (Sheppard's correction)
            bend = np.diff(chance[..., :-2], 2) / 24.0
            chance[..., 1:-3] = np.maximum(chance[..., 1:-3] - bend, 0.0)
        return chance


def _runs(logs: Array) -> list[slice]:
    """Return runs of nodes within which logs (points, nodes) differ so little that none vanishes.

    Examples
    --------
    >>> _runs(np.array([[0.0, 500.0, 700.0, 700.0]]))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    change = np.abs(np.diff(logs, axis=1)).max(axis=0, initial=0.0)
    number = np.cumsum(change) // _LOG_RANGE_MAX
    starts = np.flatnonzero(np.diff(number, prepend=0.0)) + 1
    return [slice(*ends) for ends in pairwise([0, *starts.tolist(), logs.shape[1]])]


def _on_one_scale(factors: list[_Factors]) -> list[_Factors]:
    """Return factors with the scale of each over the largest of all runs."""
    top = np.max([factor.scale for factor in factors], axis=0)
    return [factor._replace(scale=np.exp(factor.scale - top)) for factor in factors]


def _span(metrics: Sequence[ScoredCredit]) -> tuple[Array, Array]:
    """Lowest value of each metric, and the width of its scale."""
    scores = np.stack([metric.scores for metric in metrics])
    lowest = scores.min(axis=1)
    return lowest, np.maximum(scores.max(axis=1) - lowest, PROBABILITY_FLOOR)


def _log_totals(weight: Array, of_sums: Array) -> Array:
    """Return logs of sums over nodes of weights (points, offsets, nodes) times the likelihood."""
    total = _Product.of(weight.reshape(-1, weight.shape[2]), of_sums).total
    logs = np.log(np.maximum(total, PROBABILITY_FLOOR))
    return np.asarray(logs.reshape(*weight.shape[:2], -1))


def _cumulants(raw: Array, lowest: Array, width: Array) -> Array:
    """Mean, variance and third cumulant of metrics, in a first axis.

    Parameters
    ----------
    raw : ndarray, shape (points, 3 metrics, columns)
        Means of the first three powers of each metric on a scale from 0 to 1.
    lowest, width : ndarray, shape (metrics,)
        Of the scale of each metric.
    """
    lowest, width = lowest[:, None], width[:, None]
    first, second, third = np.split(raw, 3, axis=1)
    cumulants = np.empty((3, *first.shape))
    mean, variance, skewed = cumulants
    square = first * first
    np.subtract(second, square, out=variance)
    np.subtract(third, first * (square + 3.0 * variance), out=skewed)
    skewed *= width**3
    np.maximum(variance, 0.0, out=variance)
    variance *= width**2
    np.multiply(first, width, out=mean)
    mean += lowest
    return cumulants
