"""Cumulants of means over questions at points of the hyperparameters, whatever the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.engine.bootstrap import bootstrap_moments
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling.states import Terms
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.predictor import NEW_NODES, Predictor, Table

_WIDER = 2.0  # distance of offsets of means, in that of log-likelihoods, of which many are summed
_POWERS = np.arange(1, 4)


class GroupSums(NamedTuple):
    """Cumulants of means over the questions of each group, given effects.

    Parameters
    ----------
    observed : ndarray, shape (points, groups, metrics, 3)
        Of these questions.
    new : ndarray, shape (points, groups, metrics, 2)
        Mean of questions like these, and variance that as many of them would add to it.
    """

    observed: Array
    new: Array


class Moments(NamedTuple):
    """Cumulants of means over questions, given each point.

    Variances are over effects of groups and success probabilities.

    Parameters
    ----------
    by_group : ndarray, shape (points, groups, metrics, 2, 3)
        Of the targets "questions" and "population".
    spread : ndarray, shape (points, groups, metrics)
        Part of the variance of the population that is due to which questions were drawn.
    new : ndarray, shape (points, metrics, 3)
        Of questions of new groups.
    """

    by_group: Array
    spread: Array
    new: Array

    def whole(self, share: Array, grouped: bool) -> tuple[Array, Array]:
        """Cumulants over all questions (points, metrics, targets, 3), and spread (.., targets)."""
        powers = share[:, None] ** _POWERS
        values = np.einsum("hgktc,gc->hktc", self.by_group, powers)
        spread = np.einsum("hgk,g->hk", self.spread, share**2)
        spread = np.stack([np.zeros_like(spread), spread], axis=-1)
        if grouped:
            values = np.concatenate([values, self.new[:, :, None]], axis=2)
            spread = np.concatenate([spread, self.new[:, :, None, 1]], axis=2)
        return values, spread


@dataclass(frozen=True)
class Metrics:
    """Metrics of the questions of a system at points of its hyperparameters.

    Parameters
    ----------
    predictor : Predictor
    metrics : sequence
        As the observation takes them.
    resampled : bool
        Whether questions like these are these drawn anew, by the Bayesian bootstrap, and new groups
        these groups; else they follow the law.
    """

    predictor: Predictor
    metrics: Sequence[Any]
    resampled: bool = False

    def at(self, theta: Array) -> Moments:
        """Return the moments at points (points, hyperparameters)."""
        blocks = self._blocks(theta)
        parts = [self._at(theta[rows]) for rows in blocks]
        order = np.argsort(np.concatenate(blocks))
        return Moments(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True)))

    def _blocks(self, theta: Array) -> list[Ints]:
        return self.predictor.blocks(theta, 6 * max(len(self.metrics), 1))

    def tables(self, theta: Array) -> tuple[Table, Table]:
        """Cumulants of metrics given states, and of a new question, over offsets."""
        grid, first, step = self.predictor.grid(theta, _WIDER)
        observed, new = self.predictor.observation.both(self.metrics, theta, grid)
        return Table(observed, first, step), Table(new[:, :, None], first, step)

    def _at(self, theta: Array) -> Moments:
        """Return the moments with the effects of groups integrated, where there are any."""
        predictor, cells = self.predictor, self.predictor.cells
        tables = self.tables(theta)
        effect = np.zeros((len(theta), cells.groups, 1))
        probability = np.ones_like(effect)
        if predictor.effective:
            effect, probability = predictor.effects(theta)[:2]
        sums = self._by_effects(tables, theta)
        chances = np.moveaxis(probability, -1, 0)[..., None]
        nodes = [
            self._targets(tables[0], theta, effect[..., j], sums(effect[..., j]))
            for j in range(len(chances))
        ]
        centre = sum(
            p[..., None] * values[..., 0] for p, (values, _) in zip(chances, nodes, strict=True)
        )
        by_group = np.zeros_like(nodes[0][0])
        by_group[..., 0] = centre
        for p, (values, _) in zip(chances[..., None], nodes, strict=True):
            mean, variance, third = np.moveaxis(values, -1, 0)
            gap = mean - centre
            by_group[..., 1] += p * (variance + gap**2)
            by_group[..., 2] += p * (third + 3.0 * variance * gap + gap**3)
        spread = sum(p * between for p, (_, between) in zip(chances, nodes, strict=True))
        return Moments(
            by_group, np.asarray(spread), self._of_new_groups(tables[1], theta, by_group)
        )

    def _targets(
        self, table: Table, theta: Array, effect: Array, sums: GroupSums
    ) -> tuple[Array, Array]:
        """Cumulants of both targets given effects (points, groups, metrics, 2, 3), and spread."""
        observed, new = sums
        population, spread = np.zeros_like(observed), new[..., 1]
        if self.resampled:
            cells = self.predictor.cells
            offset = self.predictor.offsets(theta) + effect[:, cells.group]
            population[..., :2] = self._drawn_anew(table.at(offset, cells.state))
            spread = np.maximum(population[..., 1] - observed[..., 1], 0.0)
        else:
            population[..., 0] = new[..., 0]
        return np.stack([observed, population], axis=-2), spread

    def _drawn_anew(self, values: Array) -> Array:
        """Mean and variance of a group's questions under the bootstrap; (points, groups, k, 2)."""
        cells = self.predictor.cells
        first, groups = cells.starts
        moments = np.zeros((len(values), cells.groups, len(self.metrics), 2))
        parts = np.split(values, first[1:], axis=1)
        for group, start, of_group in zip(groups, first, parts, strict=True):
            terms = cells.tried(group)
            terms = terms._replace(state=terms.state - start)
            pair = bootstrap_moments(of_group[..., 0], of_group[..., 1], terms)
            moments[:, group] = np.stack(pair, axis=-1)
        return moments

    def _by_effects(
        self, tables: tuple[Table, Table], theta: Array
    ) -> Callable[[Array], GroupSums]:
        """Return the cumulants of groups as a function of their effects."""
        cells = self.predictor.cells
        if cells.rows.shape[1]:
            offset = self.predictor.offsets(theta)
            return lambda effect: self._of_groups(tables, offset + effect[:, cells.group])
        # Of the same covariates, the sum over a group's states is itself a table.
        folded = tables[0]._replace(values=np.stack([
            tables[0]._replace(values=tables[0].values[..., j]).folded(factor).values
            for j, factor in enumerate(_factors(cells))
        ], axis=-1))  # fmt: skip
        squares = cells.by_group(cells.inner[1][None])[0][:, None]
        column, zeros = np.arange(cells.groups), np.zeros(cells.groups, np.intp)

        def of_effects(effect: Array) -> GroupSums:
            return _sums(folded.at(effect, column), tables[1].at(effect, zeros), squares)

        return of_effects

    def of_groups_at(self, theta: Array, offset: Array) -> Array:
        """Cumulants of these questions, and of these drawn anew, at offsets of cells.

        Shape (points, groups, metrics, 2, 3).
        """
        cells = self.predictor.cells
        table = Table.shared(lambda points: self.tables(points)[0], theta)
        values = table.at(offset, cells.state)
        observed = cells.by_group(values * cells.inner.T[:, None])
        population = np.zeros_like(observed)
        if self.resampled:
            population[..., :2] = self._drawn_anew(values)
        return np.stack([observed, population], axis=-2)

    def new_of_groups_at(self, theta: Array, effect: Array) -> Array:
        """Mean over new questions of each group, given effects; (points, groups, metrics)."""
        table, cells = Table.shared(self._new_means, theta), self.predictor.cells
        if not cells.rows.shape[1]:
            return table.at(effect, np.zeros(cells.groups, np.intp))
        offset = self.predictor.offsets(theta) + effect[:, cells.group]
        values = table.at(offset, np.zeros(len(cells.state), np.intp))
        return cells.by_group(values * cells.inner[0][:, None])

    def _new_means(self, theta: Array) -> Table:
        """Means of metrics of a new question over offsets."""
        grid, first, step = self.predictor.grid(theta, _WIDER)
        new = self.predictor.observation.new_means(self.metrics, theta, grid)
        return Table(new[:, :, None], first, step)

    def _of_groups(self, tables: tuple[Table, Table], offset: Array) -> GroupSums:
        """Return cumulants of each group, question by question."""
        cells = self.predictor.cells
        observed = tables[0].at(offset, cells.state) * cells.inner.T[:, None]
        new = tables[1].at(offset, np.zeros(len(cells.state), np.intp))
        new = new * cells.inner[:2].T[:, None]
        return _sums(cells.by_group(observed), cells.by_group(new), np.ones((1, 1)))

    def _of_new_groups(self, table: Table, theta: Array, by_group: Array) -> Array:
        """Cumulants over questions of new groups with the covariates of these, or over these."""
        cells, sd = self.predictor.cells, self.predictor.group_sd(theta)
        total = np.zeros((len(theta), len(self.metrics), 3))
        if self.resampled:
            groups = Terms(np.arange(cells.groups), cells.share, np.ones(cells.groups))
            mean, variance = (by_group[..., 1, j] for j in (0, 1))
            total[..., :2] = np.stack(bootstrap_moments(mean, variance, groups), axis=-1)
            return total
        z, weight = np.polynomial.hermite_e.hermegauss(NEW_NODES)
        inside = np.abs(z) <= 6.0
        z, weight = z[inside], weight[inside] / weight[inside].sum()
        if not sd.any():
            z, weight = np.zeros(1), np.ones(1)
        share, offset = cells.inner[0] * cells.share[cells.group], self.predictor.offsets(theta)
        if not cells.rows.shape[1]:
            share, offset = np.ones(1), offset[:, :1]
        column = np.zeros(len(share), np.intp)
        for place, chance in zip(z, weight, strict=True):
            new = table.at(offset + place * sd[:, None], column)[..., 0]
            total[..., 0] += chance * np.einsum("hck,c->hk", new, share)
        return total

    def of_cells(self, theta: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Posterior mean and variance of metrics of a question of each cell, and of a new one.

        Returns
        -------
        mean, variance, new : ndarray, shape (cells, metrics)
        """
        cells = self.predictor.cells
        column = np.zeros(len(cells.state), np.intp)
        first, second, new = np.zeros((3, len(cells.state), len(self.metrics)))
        centre: Array | None = None
        for rows in self._blocks(theta):
            tables, offset = self.tables(theta[rows]), self.predictor.offsets(theta[rows])
            for place, chance in self.predictor.over_effects(theta[rows], offset):
                share = (weight[rows][:, None] * chance)[..., None]
                mean, variance = np.moveaxis(tables[0].at(place, cells.state)[..., :2], -1, 0)
                centre = mean[0] if centre is None else centre
                gap = mean - centre  # squares of the means themselves leave the variance no digits
                first += (share * gap).sum(axis=0)
                second += (share * (gap**2 + variance)).sum(axis=0)
                new += (share * tables[1].at(place, column)[..., 0]).sum(axis=0)
        assert centre is not None  # there is a point
        return centre + first, np.maximum(second - first**2, 0.0), new


def _factors(cells: Cells) -> Array:
    """Return sums of powers of shares by state and group; (3, states, groups)."""
    factor = np.zeros((3, len(cells.states), cells.groups))
    for power, shares in enumerate(cells.inner):
        np.add.at(factor[power], (cells.state, cells.group), shares)
    return factor


def _sums(observed: Array, new: Array, squares: Array) -> GroupSums:
    """Return cumulants with variances that are none below zero."""
    observed, new = observed.copy(), np.array(new)
    observed[..., 1] = np.maximum(observed[..., 1], 0.0)
    new[..., 1] = np.maximum(new[..., 1] * squares, 0.0)
    return GroupSums(observed, new)


@dataclass(frozen=True)
class Summed:
    """Cumulants of means over questions, over points with weights.

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
        """Part of the variance that more trials of these questions could not remove."""
        return np.asarray(np.einsum("h,hkt->kt", self.weight, self.spread))
