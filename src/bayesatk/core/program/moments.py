"""Means and variances of metrics at points of the hyperparameters, whatever the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.program.cells import Ints
from bayesatk.core.program.predictor import NEW_NODES, Predictor, Table
from bayesatk.metrics.credit import Array

_WIDER = 2.0  # distance of offsets of means, in that of log-likelihoods, of which many are summed

GroupSums = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Moments:
    """Of means over questions, given each point; groups have targets "questions", "population".

    Parameters
    ----------
    group_mean, group_variance, group_spread : ndarray, shape (points, groups, metrics, 2)
        Variances are over effects of groups and success probabilities; the spread is the part of
        the variance that is due to which questions were drawn.
    new_mean : ndarray, shape (points, metrics)
        Of questions of new groups.
    """

    group_mean: Array
    group_variance: Array
    group_spread: Array
    new_mean: Array

    def whole(self, share: Array, grouped: bool) -> tuple[Array, Array, Array]:
        """Mean, variance and spread over all questions; (points, metrics, targets).

        Parameters
        ----------
        share : ndarray, shape (groups,)
        grouped : bool
            Whether there is a third target, new groups.
        """
        sums = [
            np.einsum("hgkt,g->hkt", part, share**power)
            for part, power in (
                (self.group_mean, 1), (self.group_variance, 2), (self.group_spread, 2)
            )
        ]  # fmt: skip
        if not grouped:
            return sums[0], sums[1], sums[2]
        zero = np.zeros((*self.new_mean.shape, 1))
        new = self.new_mean[..., None], zero, zero
        mean, variance, spread = (np.concatenate(pair, -1) for pair in zip(sums, new, strict=True))
        return mean, variance, spread

    def among(self, rows: Any) -> "Moments":
        """Return the moments at some of the points."""
        return Moments(
            self.group_mean[rows], self.group_variance[rows], self.group_spread[rows],
            self.new_mean[rows],
        )  # fmt: skip


@dataclass(frozen=True)
class Metrics:
    """Metrics of the questions of a system at points of its hyperparameters.

    Parameters
    ----------
    predictor : Predictor
    metrics : sequence
        As the observation takes them.
    """

    predictor: Predictor
    metrics: Sequence[Any]

    def at(self, theta: Array) -> Moments:
        """Return the moments at points (points, hyperparameters)."""
        blocks = self._blocks(theta)
        found: list[Array] = []
        for rows in blocks:
            block = self._at(theta[rows])
            if not found:
                found = [np.empty((len(theta), *part.shape[1:])) for part in block]
            for total, part in zip(found, block, strict=True):
                total[rows] = part
        return Moments(*found)

    def _blocks(self, theta: Array) -> list[Ints]:
        return self.predictor.blocks(theta, 3 * max(len(self.metrics), 1))

    def tables(self, theta: Array) -> tuple[Table, Table]:
        """Mean and variance of metrics, last axis both, given states and of a new question."""
        predictor = self.predictor
        grid, first, step = predictor.grid(theta, _WIDER)
        observed = predictor.observation.moments(self.metrics, theta, grid)
        new = predictor.observation.new_moments(self.metrics, theta, grid)
        return (
            Table(np.concatenate(observed, axis=-1), first, step),
            Table(np.concatenate(new, axis=-1)[:, :, None], first, step),
        )

    def _sums(self, tables: tuple[Table, Table], theta: Array) -> Callable[[Array], GroupSums]:
        """Return mean, variance and spread of groups (points, groups, metrics, 2) by effects."""
        cells, size = self.predictor.cells, len(self.metrics)
        if cells.rows.shape[1]:
            offset = self.predictor.offsets(theta)
            return lambda effect: self._of_groups(tables, offset + effect[:, cells.group])
        # Of the same covariates, the sum over a group's states is itself a table.
        factor = np.zeros((2, len(cells.states), cells.groups))
        for power, sums in enumerate((cells.inner, cells.inner_squares)):
            np.add.at(factor[power], (cells.state, cells.group), sums)
        values = tables[0].values
        both = [
            tables[0]._replace(values=part).folded(power).values
            for part, power in zip((values[..., :size], values[..., size:]), factor, strict=True)
        ]
        folded = tables[0]._replace(values=np.concatenate(both, axis=-1))
        squares = np.einsum("sg->g", factor[1])[:, None]
        zeros = np.zeros(cells.groups, np.intp)

        def of_effects(effect: Array) -> GroupSums:
            observed = folded.at(effect, np.arange(cells.groups))
            new = tables[1].at(effect, zeros)
            return _paired(
                observed[..., :size], new[..., :size], observed[..., size:],
                new[..., size:] * squares,
            )  # fmt: skip

        return of_effects

    def _at(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        predictor, cells = self.predictor, self.predictor.cells
        tables = self.tables(theta)
        sums = self._sums(tables, theta)
        if not cells.grouped:
            zero = np.zeros((len(theta), 1))
            return *sums(zero), np.zeros((len(theta), len(self.metrics)))
        effects = predictor.effects(theta)
        parts = [sums(effects.values[..., j]) for j in range(effects.values.shape[2])]
        mean, variance, spread = (np.stack(part, axis=-1) for part in zip(*parts, strict=True))
        chance = effects.probability[:, :, None, None]
        centre = (mean * chance).sum(axis=-1)
        within = ((variance + (mean - centre[..., None]) ** 2) * chance).sum(axis=-1)
        drawing = (spread * chance).sum(axis=-1)
        return centre, within, drawing, self._of_new_groups(tables[1], theta)

    def of_groups_at(self, theta: Array, offset: Array) -> GroupSums:
        """Mean, variance and spread of each group at offsets of cells; one set a point."""
        return self._of_groups(self.tables(theta), offset)

    def new_of_groups_at(self, theta: Array, effect: Array) -> Array:
        """Mean over new questions of each group, given effects; (points, groups, metrics)."""
        predictor, cells, size = self.predictor, self.predictor.cells, len(self.metrics)
        grid, first, step = predictor.grid(theta, _WIDER)
        mean = predictor.observation.new_moments(self.metrics, theta, grid)[0]
        table = Table(mean[:, :, None], first, step)
        if not cells.rows.shape[1]:
            return table.at(effect, np.zeros(cells.groups, np.intp))
        offset = predictor.offsets(theta) + effect[:, cells.group]
        values = table.at(offset, np.zeros(len(cells.state), np.intp))
        return cells.by_group(values[..., :size] * cells.inner[:, None])

    def _of_groups(self, tables: tuple[Table, Table], offset: Array) -> GroupSums:
        """Mean, variance and spread of each group; (points, groups, metrics, 2)."""
        cells, size = self.predictor.cells, len(self.metrics)
        observed = tables[0].at(offset, cells.state)
        new = tables[1].at(offset, np.zeros(len(cells.state), np.intp))
        inner, squares = cells.inner[:, None], cells.inner_squares[:, None]
        parts = (
            observed[..., :size] * inner, new[..., :size] * inner, observed[..., size:] * squares,
            new[..., size:] * squares,
        )  # fmt: skip
        return _paired(*(cells.by_group(part) for part in parts))

    def _of_new_groups(self, table: Table, theta: Array) -> Array:
        """Mean over questions of new groups with the covariates of these; (points, metrics)."""
        cells, sd = self.predictor.cells, self.predictor.group_sd(theta)
        z, weight = np.polynomial.hermite_e.hermegauss(NEW_NODES)
        inside = np.abs(z) <= 6.0
        z, weight = z[inside], weight[inside] / weight[inside].sum()
        share, offset = cells.inner * cells.share[cells.group], self.predictor.offsets(theta)
        if not cells.rows.shape[1]:
            share, offset = np.ones(1), offset[:, :1]
        column = np.zeros(len(share), np.intp)
        total = np.zeros((len(theta), len(self.metrics)))
        for place, chance in zip(z, weight, strict=True):
            new = table.at(offset + place * sd[:, None], column)[..., : len(self.metrics)]
            total += chance * np.einsum("hck,c->hk", new, share)
        return total

    def of_cells(self, theta: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Posterior mean and variance of metrics of a question of each cell, and of a new one.

        Returns
        -------
        mean, variance, new : ndarray, shape (cells, metrics)
        """
        cells, size = self.predictor.cells, len(self.metrics)
        column = np.zeros(len(cells.state), np.intp)
        first, second, new = np.zeros((3, len(cells.state), size))
        for rows in self._blocks(theta):
            tables, offset = self.tables(theta[rows]), self.predictor.offsets(theta[rows])
            places = [(offset, weight[rows][:, None] * np.ones(cells.groups))]
            if cells.grouped:
                effects = self.predictor.effects(theta[rows])
                chance = effects.probability * weight[rows][:, None, None]
                places = [
                    (offset + effects.values[:, cells.group, j], chance[..., j])
                    for j in range(chance.shape[2])
                ]
            for place, chance in places:
                own = chance[:, cells.group, None]
                moments = tables[0].at(place, cells.state)
                mean, variance = moments[..., :size], np.maximum(moments[..., size:], 0.0)
                first += (own * mean).sum(axis=0)
                second += (own * (mean**2 + variance)).sum(axis=0)
                new += (own * tables[1].at(place, column)[..., :size]).sum(axis=0)
        return first, np.maximum(second - first**2, 0.0), new


def _paired(mean: Array, new: Array, variance: Array, spread: Array) -> GroupSums:
    """Put values of these questions and of new ones side by side."""
    zero = np.zeros_like(variance)
    return (
        np.stack([mean, new], axis=-1),
        np.maximum(np.stack([variance, zero], axis=-1), 0.0),
        np.maximum(np.stack([zero, spread], axis=-1), 0.0),
    )


@dataclass(frozen=True)
class Summed:
    """Moments of means over questions, over points with weights.

    Parameters
    ----------
    weight : ndarray, shape (points,)
    mean, variance, spread : ndarray, shape (points, metrics, targets)
    """

    weight: Array
    mean: Array
    variance: Array
    spread: Array

    @cached_property
    def total(self) -> tuple[Array, Array]:
        """Posterior mean and variance; (metrics, targets)."""
        shape = self.mean.shape[1:]
        flat = (part.reshape(len(self.weight), -1) for part in (self.mean, self.variance))
        mean, variance = total_moments(self.weight, *flat)
        return mean.reshape(shape), variance.reshape(shape)

    @cached_property
    def of_questions(self) -> Array:
        """Part of the variance that more trials of these questions could not remove."""
        return np.asarray(np.einsum("h,hkt->kt", self.weight, self.spread))
