"""Cumulants of means over questions at points of the hyperparameters, whatever the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.engine.bootstrap import bootstrap_moments
from bayesatk.core.numerics.quadrature import normal_rule
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling.states import Terms
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.predictor import NEW_NODES, Effects, Predictor
from bayesatk.core.program.series import Series, chebyshev_nodes

_ANALYTIC_STEPS = 8.0  # of tables, from the real axis, within which moments are analytic in offsets
_SERIES_OFFSETS = 20  # typical number for a series
_CUMULANT_ORDERS = np.arange(1, 4)


class Moments(NamedTuple):
    """Cumulants of means over questions, given each point.

    Variances are over effects of groups and success probabilities.

    Parameters
    ----------
    by_group : ndarray, shape (points, groups, metrics, 2, 3)
        Of the targets "questions" and "population".
    spread : ndarray, shape (points, groups, metrics)
        Part of the variance for the population that is due to the sampling of questions.
    new : ndarray, shape (points, metrics, 3)
        Of questions of new groups; zero where there are no groups.
    """

    by_group: Array
    spread: Array
    new: Array

    def whole(self, share: Array, grouped: bool) -> tuple[Array, Array]:
        """Return cumulants over all questions (points, metrics, targets, 3), and spread."""
        powers = share[:, None] ** _CUMULANT_ORDERS
        values = np.einsum("hgktc,gc->hktc", self.by_group, powers)
        spread = np.einsum("hgk,g->hk", self.spread, share**2)
        spread = np.stack([np.zeros_like(spread), spread], axis=-1)
        if grouped:
            values = np.concatenate([values, self.new[:, :, None]], axis=2)
            spread = np.concatenate([spread, self.new[:, :, None, 1]], axis=2)
        return values, spread


@dataclass(frozen=True)
class Metrics:
    """Moments of metrics of the questions of a system at points of its hyperparameters.

    At every point the moments given a state are a Chebyshev series in the offset of the question.

    Parameters
    ----------
    predictor : Predictor
    metrics : sequence
        As `Observation.cumulants` takes them.
    resampled : bool
        Whether the population is a Bayesian bootstrap of these questions and groups; else new
        questions and groups follow the law.
    """

    predictor: Predictor
    metrics: Sequence[Any]
    resampled: bool = False

    def at(self, theta: Array, effects: Effects) -> Moments:
        """Return moments at points (points, hyperparameters), effects of groups integrated out."""
        blocks = self._blocks(theta)
        parts = [
            self._at(theta[rows], effects.values[rows], effects.probability[rows])
            for rows in blocks
        ]
        order = np.argsort(np.concatenate(blocks))
        return Moments(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True)))

    def _blocks(self, theta: Array) -> list[Ints]:
        return self.predictor.blocks(theta, 6 * max(len(self.metrics), 1), _SERIES_OFFSETS)

    def _series(
        self, of: Callable[[Array, Array], Sequence[Array]], theta: Array, low: Array, high: Array
    ) -> list[Series]:
        """Return series of functions of offsets (points, offsets), one for each distinct point.

        Parameters
        ----------
        of : callable
            Returns values (points, offsets, columns, ...).
        low, high : ndarray, shape (points,)
            Range of the offsets.
        """
        points, point_index = np.unique(theta, axis=0, return_inverse=True)
        point_index = point_index.ravel()
        ends = np.full((2, len(points)), np.inf)
        for end, values in zip(ends, (low, -high), strict=True):
            np.minimum.at(end, point_index, values)
        trials = self.predictor.cells.states.evidence.sum(axis=1).max(initial=1.0, keepdims=True)
        width = _ANALYTIC_STEPS * self.predictor.observation.law.step(points, trials)
        offset, middle, half = chebyshev_nodes(ends[0], -ends[1], width)
        return [
            Series(*(array[point_index] for array in Series.of(values, middle, half)))
            for values in of(points, offset)
        ]

    def _both(self, theta: Array, offset: Array) -> tuple[Array, Array]:
        """Cumulants of metrics given each state, and those of a new question as one column."""
        given, new = self.predictor.observation.both(self.metrics, theta, offset)
        return given, new[:, :, None]

    def _new_at(self, theta: Array, places: Array) -> Array:
        """Means of metrics of new questions at places (points, cells, places)."""

        def of(points: Array, offset: Array) -> list[Array]:
            means = self.predictor.observation.new_means(self.metrics, points, offset)
            return [means[:, :, None]]

        return self._series(of, theta, *_range(places))[0].at(places)

    def _places(self, theta: Array, effect: Array) -> Array:
        """Offsets of cells with effects of groups (points, groups, nodes)."""
        return self.predictor.offsets(theta)[..., None] + effect[:, self.predictor.cells.group]

    def of_each(self, theta: Array, offset: Array) -> tuple[Array, Array]:
        """Cumulants of a question of each cell, and of a new one, at offsets of cells.

        Returns
        -------
        given : ndarray, shape (points, cells, places, metrics, 3)
        new : ndarray, shape (points, cells, places, metrics, 2)
        """
        given, new = self._series(self._both, theta, *_range(offset))
        state = self.predictor.cells.state
        given = given._replace(coefficients=given.coefficients[:, state])
        polynomials = given.polynomials(offset)
        return given.of_polynomials(polynomials), new.of_polynomials(polynomials)

    def _at(self, theta: Array, effect: Array, probability: Array) -> Moments:
        observed, new, drawn = self._of_groups(theta, effect)
        if drawn is None:
            like = [new[..., 0]]
            spread = new[..., 1]
        else:
            like = [drawn[..., 0], drawn[..., 1]]
            spread = np.maximum(drawn[..., 1] - observed[..., 1], 0.0)
        both = [_mixed(probability, *np.moveaxis(observed, -1, 0)), _mixed(probability, *like)]
        by_group = np.stack(both, axis=-2)
        spread = (probability[:, :, None] @ spread)[:, :, 0]
        return Moments(by_group, spread, self._of_new_groups(theta, by_group))

    def _of_groups(self, theta: Array, effect: Array) -> tuple[Array, Array, Array | None]:
        """Cumulants of means over groups given effects (points, groups, nodes).

        Returns
        -------
        observed : ndarray, shape (points, groups, nodes, metrics, 3)
            Of these questions.
        new : ndarray, shape (points, groups, nodes, metrics, 2)
            Mean for new questions of the group, and the variance of their mean if they are as many.
        drawn : ndarray, shape (points, groups, nodes, metrics, 2), or None
            Mean and variance under the bootstrap of these questions.
        """
        cells, drawn = self.predictor.cells, None
        if cells.rows.shape[1] or self.resampled:
            given, new = self.of_each(theta, self._places(theta, effect))
            observed = cells.by_group(given * cells.share_powers.T[:, None, None])
            new = cells.by_group(new * cells.share_powers[:2].T[:, None, None])
            drawn = self._drawn_anew(given) if self.resampled else None
        else:  # without covariates all questions of a state in a group have one offset
            factors = _factors(cells)

            def by_group(points: Array, offset: Array) -> list[Array]:
                given, new = self._both(points, offset)
                return [_folded(given, factors), new]

            observed, new = (
                series.at(effect) for series in self._series(by_group, theta, *_range(effect))
            )
            new[..., 1] *= cells.by_group(cells.share_powers[1][None])[0][:, None, None]
        observed[..., 1] = np.maximum(observed[..., 1], 0.0)
        new[..., 1] = np.maximum(new[..., 1], 0.0)
        return observed, new, drawn

    def _drawn_anew(self, values: Array) -> Array:
        """Mean and variance of groups under the bootstrap of their questions.

        Of values (points, cells, nodes, metrics, 3); shape (points, groups, nodes, metrics, 2).
        """
        cells = self.predictor.cells
        first, groups = cells.starts
        shape = (len(values), cells.groups, *values.shape[2:4], 2)
        moments, values_by_group = np.zeros(shape), np.split(values, first[1:], axis=1)
        for group, start, of_group in zip(groups, first, values_by_group, strict=True):
            terms = cells.tried(group)
            terms = terms._replace(state=terms.state - start)
            of_group = np.swapaxes(of_group, 1, 2)
            pair = bootstrap_moments(of_group[..., 0], of_group[..., 1], terms)
            moments[:, group] = np.stack(pair, axis=-1)
        return moments

    def of_groups_at(self, theta: Array, offset: Array) -> Array:
        """Cumulants of these questions, and of their bootstrap, at offsets of cells.

        Shape (points, groups, metrics, 2, 3).
        """
        cells = self.predictor.cells
        values = self.of_each(theta, offset[..., None])[0]
        observed = cells.by_group(values * cells.share_powers.T[:, None, None])[:, :, 0]
        population = np.zeros_like(observed)
        if self.resampled:
            population[..., :2] = self._drawn_anew(values)[:, :, 0]
        return np.stack([observed, population], axis=-2)

    def new_of_groups_at(self, theta: Array, effect: Array) -> Array:
        """Mean over new questions of each group, given effects; (points, groups, metrics)."""
        cells = self.predictor.cells
        if not cells.rows.shape[1]:
            return self.predictor.observation.new_means(self.metrics, theta, effect)
        values = self._new_at(theta, self._places(theta, effect[..., None]))[:, :, 0]
        return cells.by_group(values * cells.share_powers[0][:, None])

    def _of_new_groups(self, theta: Array, by_group: Array) -> Array:
        """Cumulants over questions of new groups, which have the covariates of these questions.

        New groups are a bootstrap of these groups if resampled; zero where there are no groups.
        """
        cells, sd = self.predictor.cells, self.predictor.group_sd(theta)
        total = np.zeros((len(theta), len(self.metrics), 3))
        if not cells.grouped:
            return total
        if self.resampled:
            groups = Terms(np.arange(cells.groups), cells.share, np.ones(cells.groups))
            mean, variance = (by_group[..., 1, j] for j in (0, 1))
            total[..., :2] = np.stack(bootstrap_moments(mean, variance, groups), axis=-1)
            return total
        z, weight = normal_rule(NEW_NODES)
        within_6_sds = np.abs(z) <= 6.0
        z, weight = z[within_6_sds], weight[within_6_sds] / weight[within_6_sds].sum()
        if not sd.any():
            z, weight = np.zeros(1), np.ones(1)
        if not cells.rows.shape[1]:
            means = self.predictor.observation.new_means(self.metrics, theta, sd[:, None] * z)
            total[..., 0] = np.einsum("phk,h->pk", means, weight)
            return total

        def averaged(points: Array, offset: Array) -> list[Array]:
            """Means over effects, at an offset by covariates: a function as smooth as they are."""
            effect = self.predictor.group_sd(points)[:, None, None] * z
            means = self._new_at(points, offset[..., None] + effect)
            return [np.einsum("pohk,h->pok", means, weight)[:, :, None]]

        offset = self.predictor.offsets(theta)[..., None]
        values = self._series(averaged, theta, *_range(offset))[0].at(offset)[:, :, 0]
        total[..., 0] = np.einsum(
            "pck,c->pk", values, cells.share_powers[0] * cells.share[cells.group]
        )
        return total

    def of_cells(self, theta: Array, weight: Array, effects: Effects) -> tuple[Array, Array]:
        """Posterior mean and variance of metrics of a question of each cell.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        weight : ndarray, shape (points,)
        effects : Effects
            Of groups, at these points.

        Returns
        -------
        mean, variance : ndarray, shape (cells, metrics)
        """
        cells = self.predictor.cells
        first, second = np.zeros((2, len(cells.state), len(self.metrics)))
        centre: Array | None = None
        for rows in self._blocks(theta):
            places = self._places(theta[rows], effects.values[rows])
            of_state, _ = self.of_each(theta[rows], places)
            share = (weight[rows, None, None] * effects.probability[rows])[:, cells.group]
            mean, variance = of_state[..., 0], of_state[..., 1]
            centre = mean[0, :, :1] if centre is None else centre
            deviation = (
                mean - centre
            )  # squares of the means themselves would cancel in the variance
            first += np.einsum("pch,pchk->ck", share, deviation)
            second += np.einsum("pch,pchk->ck", share, deviation**2 + variance)
        assert centre is not None  # there is a point
        return centre[:, 0] + first, np.maximum(second - first**2, 0.0)


def _range(offset: Array) -> tuple[Array, Array]:
    """Smallest and largest offset of each point."""
    return offset.min(axis=(1, 2)), offset.max(axis=(1, 2))


def _mixed(probability: Array, mean: Array, variance: Any = 0.0, third: Any = 0.0) -> Array:
    """Cumulants of mixtures over nodes (points, groups, metrics, 3).

    Parameters
    ----------
    probability : ndarray, shape (points, groups, nodes)
    mean, variance, third : ndarray, shape (points, groups, nodes, metrics)
        Given each node.
    """
    chance = probability[:, :, None]
    centre = chance @ mean
    deviation = mean - centre
    square = deviation**2
    mixed = (
        centre,
        chance @ (square + variance),
        chance @ (deviation * (square + 3.0 * variance) + third),
    )
    return np.stack(mixed, axis=-1)[:, :, 0]


def _folded(values: Array, factors: Array) -> Array:
    """Sum cumulants over states, with weights (3, states, groups) of each cumulant.

    From (points, offsets, states, metrics, 3) to (points, offsets, groups, metrics, 3).
    """
    by_state = np.moveaxis(values, (4, 2), (0, 4))  # states last, as in memory
    shape = by_state.shape[:-1]
    sums = by_state.reshape(3, -1, by_state.shape[4]) @ factors
    return np.moveaxis(sums.reshape(*shape, -1), (0, 4), (4, 2))


def _factors(cells: Cells) -> Array:
    """Return sums of the first three powers of shares by state and group; (3, states, groups)."""
    factor = np.zeros((3, len(cells.states), cells.groups))
    for power, shares in enumerate(cells.share_powers):
        np.add.at(factor[power], (cells.state, cells.group), shares)
    return factor


@dataclass(frozen=True)
class Summed:
    """Cumulants of means over questions at weighted points.

    Parameters
    ----------
    weight : ndarray, shape (points,)
    values : ndarray, shape (points, metrics, targets, 3)
    spread : ndarray, shape (points, metrics, targets)
    """

    weight: Array
    values: Array
    spread: Array

    @property
    def mean(self) -> Array:
        """Mean given each point; (points, metrics, targets)."""
        return self.values[..., 0]

    @cached_property
    def total(self) -> tuple[Array, Array]:
        """Posterior mean and variance; (metrics, targets)."""
        shape = self.mean.shape[1:]
        flat = (self.values[..., j].reshape(len(self.weight), -1) for j in (0, 1))
        mean, variance = total_moments(self.weight, *flat)
        return mean.reshape(shape), variance.reshape(shape)

    @cached_property
    def of_questions(self) -> Array:
        """Part of the variance that is due to the sampling of questions; (metrics, targets)."""
        return np.asarray(np.einsum("h,hkt->kt", self.weight, self.spread))
