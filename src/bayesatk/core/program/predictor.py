"""Offsets of questions by covariates and groups, with the effects of groups integrated out.

Everything about a state is a table over offsets (`bayesatk.core.program.observations`), with
interpolation through six points. Each effect of a group is integrated by a Gauss-Hermite rule
around its mode at each point of the hyperparameters (Liu and Pierce 1994, Biometrika 81).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.numerics.importance import Tail
from bayesatk.core.numerics.quadrature import normal_rule
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.observations import Observation, RightWrong

_MAX_FLOATS_PER_BLOCK = 700_000  # 6 MB
_TABLE_OFFSETS = 60  # typical number in a table
_EFFECT_NODES = 9  # of the rule for a group's effect
_WIDE_NODES = 15  # of the rule where the likelihood of a question is divided out
_WIDE_SCALE = 1.6  # of its width, over that of the posterior of the effect
NEW_NODES = 21  # of the rule for the effect of a new group
_NEWTON_STEPS_MAX = 30
_MODE_MAX = 5.5  # sds of groups from zero, within which modes are searched
_MODE_TOL = 0.05  # of the centre of a rule, in widths of the posterior of an effect
_EFFECT_MAX = 6.0  # sds of groups from zero
_GROUP_SD_MAX = 4.0  # of groups, in logits: larger ones have the same likelihood
_RELATIVE_CURVATURE_MIN = 0.3  # of the log density of an effect, over that of its prior
_OFFSETS_MIN = 8
_OFFSETS_MAX = 4000
_DRAWN_RANGE = 4.5  # widths of an effect, within which it is drawn
_DRAWN_POINTS = 61
_SMALL_GROUP_QUESTIONS_MAX = 12  # leaving one out moves the mode of a group of so few


class Effects(NamedTuple):
    """Effects of groups at nodes ``mode + width z``, and their posterior probabilities.

    Parameters
    ----------
    values, probability : ndarray, shape (points, groups, nodes)
    log_total : ndarray, shape (points, groups)
        Log probability of the trials of each group, its effect integrated.
    mode, width : ndarray, shape (points, groups)
    """

    values: Array
    probability: Array
    log_total: Array
    mode: Array
    width: Array

    def draw(self, point: Ints, rng: Rng) -> Array:
        """Draw the effects of all groups, once at each of some points; (draws, groups).

        Between nodes the log density is that of a normal plus straight lines.
        """
        if self.values.shape[2] == 1:
            return np.asarray(self.mode[point])
        z, weight = normal_rule(self.values.shape[2])
        fine = np.linspace(-_DRAWN_RANGE, _DRAWN_RANGE, _DRAWN_POINTS)
        drawn = np.empty((len(point), self.mode.shape[1]))
        cell = np.clip(np.searchsorted(z, fine) - 1, 0, len(z) - 2)
        slope = (fine - z[cell]) / (z[cell + 1] - z[cell])
        logs = np.log(np.maximum(self.probability, 1e-300)) - np.log(weight)
        row_number = np.arange(len(logs))[:, None]
        for group in range(drawn.shape[1]):
            lines = logs[:, group]
            density = lines[:, cell] * (1.0 - slope) + lines[:, cell + 1] * slope
            density -= 0.5 * fine**2
            density = np.exp(density - density.max(axis=1, keepdims=True))
            cumulative = np.cumsum(density, axis=1)
            cumulative /= cumulative[:, -1:]
            # One ascending array of all points: that of point i is between i and i + 1.
            place = np.searchsorted(
                (cumulative + row_number).ravel(), point + rng.random(len(point))
            )
            index = np.minimum(place - len(fine) * point, len(fine) - 1)
            spot = fine[index] + (rng.random(len(point)) - 0.5) * (fine[1] - fine[0])
            drawn[:, group] = self.mode[point, group] + self.width[point, group] * spot
        return drawn


class Table(NamedTuple):
    """Values at evenly spaced offsets: (points, offsets, columns, ...).

    Parameters
    ----------
    values : ndarray
    first, step : ndarray, shape (points,)
    """

    values: Array
    first: Array
    step: Array

    def at(self, offset: Array, column: Ints, slopes: bool = False) -> Array:
        """Interpolate at offsets (points, cells), with a column for each cell, in degree five.

        With slopes, their first and second derivatives instead, in a first axis.
        """
        points, size = self.values.shape[:2]
        if size == 1:  # without structure
            return np.asarray(self.values[:, 0, column])
        position = (offset - self.first[:, None]) / self.step[:, None]
        left = np.clip(position.astype(np.intp), 2, size - 4)
        basis = _six_points(position - left, slopes)
        flat = self.values.reshape(points * size * self.values.shape[2], *self.values.shape[3:])
        row = (np.arange(points)[:, None] * size + left - 2) * self.values.shape[2] + column
        total = np.zeros((len(basis), *row.shape, *flat.shape[1:]))
        for j in range(6):
            around = flat.take(row, axis=0)
            total += basis[:, j].reshape(*basis[:, j].shape, *[1] * (around.ndim - 2)) * around
            row += self.values.shape[2]
        if not slopes:
            return np.asarray(total[0])
        width = self.step[:, None]
        return np.stack([total[0] / width, total[1] / width**2])

    @classmethod
    def shared(cls, table_of: "Callable[[Array], Table]", theta: Array) -> "Table":
        """Return the table of draws from points, computed once for each distinct point."""
        points, point_of_draw = np.unique(theta, axis=0, return_inverse=True)
        table = table_of(points)
        return cls(
            table.values[point_of_draw], table.first[point_of_draw], table.step[point_of_draw]
        )

    def folded(self, factor: Array) -> "Table":
        """Return the table of weighted sums of columns, with weights (columns, sums)."""
        sums = np.tensordot(self.values, factor, axes=(2, 0))
        return self._replace(values=np.ascontiguousarray(np.moveaxis(sums, -1, 2)))


# Coefficients of Lagrange polynomials (power, point), and the matrix of their derivatives.
_LAGRANGE_COEFFICIENTS = np.linalg.inv(np.vander(np.arange(-2.0, 4.0), 6, increasing=True))
_DERIVATIVE = np.diag(np.arange(1.0, 6.0), 1)


def _six_points(t: Array, slopes: bool) -> Array:
    """Lagrange polynomials of the points -2, ..., 3 at t in [0, 1); (1, point, ...).

    With slopes, their first and second derivatives instead; (2, point, ...).
    """
    first = _DERIVATIVE @ _LAGRANGE_COEFFICIENTS
    coefficients = np.stack([first, _DERIVATIVE @ first] if slopes else [_LAGRANGE_COEFFICIENTS])
    powers = np.empty((6, t.size))
    powers[0] = 1.0
    for j in range(1, 6):
        np.multiply(powers[j - 1], t.ravel(), out=powers[j])
    curves = np.swapaxes(coefficients, 1, 2).reshape(-1, 6) @ powers
    return curves.reshape(len(coefficients), 6, *t.shape)


@dataclass(frozen=True)
class Predictor:
    """Offsets of questions, and likelihoods of their trials at points of the hyperparameters.

    Parameters
    ----------
    observation : Observation
    cells : Cells
    """

    observation: Observation
    cells: Cells

    @property
    def has_group_effects(self) -> bool:
        """Whether groups have effects, which are integrated out."""
        return "group_sd" in self.observation.law.fields.slices

    @property
    def _structured(self) -> bool:
        return self.has_group_effects or self.cells.rows.shape[1] > 0

    def group_sd(self, theta: Array) -> Array:
        """Return the sd of the effects of groups, zero where there are none; (points,)."""
        if not self.has_group_effects:
            return np.zeros(len(theta))
        logs = theta[:, self.observation.law.fields.slices["group_sd"]][:, 0]
        return np.asarray(np.exp(np.minimum(logs, np.log(_GROUP_SD_MAX))))

    @property
    def tail(self) -> Tail | None:
        """Factors of weights that are large where means over new groups vary most.

        Few groups do not exclude that new ones differ much, around another mean than theirs. With
        points by their probability alone sds of new groups were 10% off where groups hardly differ.
        """
        return self._tail if self.has_group_effects else None

    def _tail(self, theta: Array, weight: Array) -> Array:
        mean = theta[:, self.observation.law.fields.slices["mean"]]
        square = (mean - weight @ mean) ** 2
        square /= np.maximum(weight @ square, 1e-300)
        return np.asarray(self.group_sd(theta) ** 2 * (1.0 + square.mean(axis=1)))

    def offsets(self, theta: Array) -> Array:
        """Offsets of cells by their covariates; (points, cells)."""
        if not self.cells.rows.shape[1]:
            return np.zeros((len(theta), len(self.cells.count)))
        slopes = theta[:, self.observation.law.fields.slices["slopes"]]
        return np.clip(slopes @ self.cells.rows.T, -60.0, 60.0)

    def grid(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return the offsets of a table (points, offsets), the first of each point and the step."""
        if not self._structured:
            zero = np.zeros((len(theta), 1))
            return zero, zero[:, 0], np.ones(len(theta))
        offset = self.offsets(theta)
        reach = _EFFECT_MAX * self.group_sd(theta)
        states = self.cells.states
        trials = states.evidence.sum(axis=1) * np.bincount(
            self.cells.state, self.cells.count, len(states)
        )
        widest = self.observation.law.step(theta, trials)
        low, high = offset.min(axis=1) - reach, offset.max(axis=1) + reach
        number = int(np.clip(np.ceil((high - low).max() / widest), _OFFSETS_MIN, _OFFSETS_MAX))
        step = np.maximum((high - low) / number, 1e-6)
        grid = low[:, None] + step[:, None] * np.arange(-2, number + 4)
        return grid, grid[:, 0], step

    def blocks(self, theta: Array, columns: int, offsets: int = _TABLE_OFFSETS) -> list[Ints]:
        """Split points into blocks that fit in memory, with points of similar cost together.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        columns : int
            Floats that are held at once for each cell.
        offsets : int
            Typical number of offsets of a table, where there is structure.
        """
        similar = np.round(self.observation.order(theta))
        keys = [similar]
        if self.has_group_effects:
            keys.insert(0, np.log(self.group_sd(theta)))
        order = np.lexsort(keys)
        offsets = offsets if self._structured else 1
        by_cell = 8 if self.cells.rows.shape[1] else int(self._structured)
        width = max(
            offsets * self.observation.floats(columns), by_cell * columns * len(self.cells.count)
        )
        step = max(1, _MAX_FLOATS_PER_BLOCK // width)
        ends = np.flatnonzero(np.diff(similar[order])) + 1
        return [
            run[start : start + step]
            for run in np.split(order, ends)
            for start in range(0, len(run), step)
        ]

    def draw_new(self, theta: Array, effect: Array, rng: Rng, *, earlier: bool = True) -> Array:
        """Draw p of a new question in place of each question, at every point.

        A new question has the group and the covariates of the one that it replaces.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        effect : ndarray, shape (points, groups)
        rng : numpy.random.Generator
        earlier : bool
            Whether it also has the prior trials.

        Returns
        -------
        ndarray, shape (points, questions, ...)
        """
        cells, observation = self.cells, self.observation
        offset = (self.offsets(theta) + effect[:, cells.group])[:, cells.which]
        states, number = observation.states, len(observation.states)
        if isinstance(observation, RightWrong) and not (earlier and states.prior.any()):
            # Such a question has no trials, so a judge does not matter.
            untried = RightWrong(observation.law, States.of([0], [0]))
            return untried.draw(theta, offset, np.zeros(offset.shape[1], np.intp), rng)
        # The observed states stay: by them an observation chooses the resolution of its tables.
        followed = replace(
            states,
            counts=np.concatenate([states.counts, np.zeros_like(states.counts)]),
            prior=np.concatenate([states.prior, states.prior * earlier]),
            count=np.append(states.count, np.zeros(number)),
        )
        unseen: Any = replace(observation, states=followed)  # type: ignore[type-var]
        return np.asarray(unseen.draw(theta, offset, number + cells.state[cells.which], rng))

    def log_likelihood(self, theta: Array) -> Array:
        """Log probability of all trials in their order; (points,)."""
        total = np.empty(len(theta))
        for rows in self.blocks(theta, 1):
            total[rows] = self._log_likelihood(theta[rows])
        return total

    def _log_likelihood(self, theta: Array) -> Array:
        if self.has_group_effects:
            return np.asarray(self._effects(theta).log_total.sum(axis=1))
        return np.asarray(self.log_cells(theta) @ self.cells.count)

    def log_cells(self, theta: Array) -> Array:
        """Log probability of a question's trials at effects of zero; (points, cells)."""
        offset = self.offsets(theta)
        if not self._structured:
            return self.observation.log_states(theta, offset[:, :1])[:, 0, self.cells.state]
        return self.log_table(theta).at(offset, self.cells.state)

    def log_cells_at(self, theta: Array, offset: Array) -> Array:
        """Return log probabilities of a question's trials given effects of groups; (points, cells).

        Offsets (points, cells) include these effects.
        """
        logs = np.empty(offset.shape)
        for rows in self.blocks(theta, 2):
            if self._structured:
                table = Table.shared(self.log_table, theta[rows])
                logs[rows] = table.at(offset[rows], self.cells.state)
            else:
                logs[rows] = self.log_cells(theta[rows])
        return logs

    def log_table(self, theta: Array) -> Table:
        """Log probabilities of states over offsets."""
        grid, first, step = self.grid(theta)
        logs = np.ascontiguousarray(self.observation.log_states(theta, grid))
        return Table(logs, first, step)

    def by_group(self, theta: Array, table: Table) -> Callable[[Array, bool], Array]:
        """Return the log-likelihood of each group as a function of its effect.

        The function takes effects (points, groups, ...), and whether to return the first and second
        derivatives instead, in a first axis.
        """
        cells = self.cells
        if not cells.rows.shape[1]:  # all questions of a state in a group have one offset
            factor = np.zeros((len(cells.states), cells.groups))
            np.add.at(factor, (cells.state, cells.group), cells.count)
            sums = table.folded(factor)

            def of_sums(effect: Array, slopes: bool) -> Array:
                flat_effect = effect.reshape(*effect.shape[:2], -1)
                column = np.repeat(np.arange(cells.groups), flat_effect.shape[2])
                logs = sums.at(flat_effect.reshape(len(flat_effect), -1), column, slopes)
                return logs.reshape(*logs.shape[:-2], *effect.shape)

            return of_sums
        offset = self.offsets(theta)

        def of_cells(effect: Array, slopes: bool) -> Array:
            if effect.ndim == 3:
                return np.stack(
                    [of_cells(values, slopes) for values in np.moveaxis(effect, -1, 0)], axis=-1
                )
            logs = table.at(offset + effect[:, cells.group], cells.state, slopes) * cells.count
            if not slopes:
                return cells.by_group(logs)
            return np.stack([cells.by_group(order) for order in logs])

        return of_cells

    def effects(self, theta: Array) -> Effects:
        """Integrate out the effect of every group; effects are zero where groups have none."""
        if not self.has_group_effects:
            zero = np.zeros((len(theta), self.cells.groups))
            return Effects(zero[..., None], zero[..., None] + 1.0, zero, zero, zero)
        blocks = self.blocks(theta, 2)
        order = np.argsort(np.concatenate(blocks))
        parts = [self._effects(theta[rows]) for rows in blocks]
        return Effects(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))

    def _effects(
        self,
        theta: Array,
        table: Table | None = None,
        nodes: int = _EFFECT_NODES,
        scale: float = 1.0,
    ) -> Effects:
        """Integrate out the effect of every group, on nodes around its mode.

        A larger scale of their distances suits posteriors without one of the questions too.
        """
        table = self.log_table(theta) if table is None else table
        sd, cells, log_likelihood = (
            self.group_sd(theta)[:, None],
            self.cells,
            self.by_group(theta, table),
        )
        mode = np.zeros((len(theta), cells.groups))
        low, high = mode - _MODE_MAX * sd, mode + _MODE_MAX * sd
        for _ in range(_NEWTON_STEPS_MAX):
            slope, curvature = log_likelihood(mode, True)
            slope -= mode / sd**2
            curvature = np.minimum(curvature - 1.0 / sd**2, -_RELATIVE_CURVATURE_MIN / sd**2)
            # A step out of the bracket of the mode is replaced by bisection: far from the mode the
            # log-likelihood is nearly linear, and Newton's steps alone may cycle.
            low, high = np.where(slope > 0.0, mode, low), np.where(slope > 0.0, high, mode)
            next_mode = mode - slope / curvature
            next_mode = np.where(
                (next_mode > low) & (next_mode < high), next_mode, 0.5 * (low + high)
            )
            width = 1.0 / np.sqrt(-curvature)
            settled = (np.abs(next_mode - mode) / width).max() < _MODE_TOL
            mode = next_mode
            if settled:
                break
        width = scale * width
        z, weight = normal_rule(nodes)
        sd = sd[..., None]
        values = np.clip(
            mode[..., None] + width[..., None] * z, -_EFFECT_MAX * sd, _EFFECT_MAX * sd
        )
        logs = log_likelihood(values, False) - 0.5 * (values / sd) ** 2
        logs += 0.5 * z**2 + np.log(weight)
        log_total = logsumexp(logs, axis=-1)
        probability = np.exp(logs - log_total[..., None])
        constant = np.log(width / sd[..., 0]) - 0.5 * np.log(2.0 * np.pi)
        return Effects(values, probability, log_total + constant, mode, width)

    def log_left_out(self, theta: Array, earlier: "Predictor | None" = None) -> tuple[Array, Array]:
        """Log predictive probability of a question's trials, given the others or all questions.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        earlier : Predictor, optional
            Of prior trials alone; probabilities are conditional on all of these.

        Returns
        -------
        left_out, fitted : ndarray, shape (points, cells)
            ``left_out`` is given the other questions of the group; ``fitted`` is for a new question
            of the group with the same trials, given all questions.
        """
        pair = np.empty((2, len(theta), len(self.cells.count)))
        for rows in self.blocks(theta, 2):
            if earlier is None:
                pair[:, rows] = self._log_left_out(theta[rows])
            else:
                pair[:, rows] = self._log_given(theta[rows], earlier)
        return pair[0], pair[1]

    def _log_given(self, theta: Array, earlier: "Predictor") -> Array:
        """Return `log_left_out` conditional on prior trials."""
        cells = self.cells
        if not self.has_group_effects:
            logs = self.log_cells(theta) - earlier.log_cells(theta)
            return np.stack([logs, logs])
        grid, first, step = self.grid(theta)
        table = Table(self.observation.log_states(theta, grid), first, step)
        earlier_table = Table(earlier.observation.log_states(theta, grid), first, step)
        effects, offset = self._effects(theta, table, _WIDE_NODES, _WIDE_SCALE), self.offsets(theta)
        logs = np.stack(
            [
                table.at(offset + effect, cells.state)
                - earlier_table.at(offset + effect, cells.state)
                for effect in np.moveaxis(effects.values[:, cells.group], -1, 0)
            ],
            axis=-1,
        )
        with np.errstate(divide="ignore"):
            chance = np.log(effects.probability)[:, cells.group]
        return np.stack([-logsumexp(chance - logs, axis=-1), logsumexp(chance + logs, axis=-1)])

    def _log_left_out(self, theta: Array) -> Array:
        cells = self.cells
        if not self.has_group_effects:
            logs = self.log_cells(theta)
            return np.stack([logs, logs])
        table = self.log_table(theta)
        effects, offset = self._effects(theta, table), self.offsets(theta)
        logs = np.stack(
            [
                table.at(offset + effects.values[:, cells.group, j], cells.state)
                for j in range(effects.values.shape[2])
            ],
            axis=-1,
        )
        with np.errstate(divide="ignore"):
            chance = np.log(effects.probability)[:, cells.group]
        fitted, left_out = logsumexp(chance + logs, axis=-1), -logsumexp(chance - logs, axis=-1)
        questions = np.bincount(cells.group, cells.count, cells.groups)
        for cell in np.flatnonzero(questions[cells.group] <= _SMALL_GROUP_QUESTIONS_MAX):
            # Without a question the effect of a small group moves: the nodes are placed anew.
            members = np.flatnonzero(cells.group == cells.group[cell])
            small = replace(
                cells,
                share=np.ones(1),
                group=np.zeros(len(members), np.intp),
                state=cells.state[members],
                rows=cells.rows[members],
                count=cells.count[members] - (members == cell),
            )
            log_without = replace(self, cells=small)._effects(theta, table).log_total[:, 0]
            left_out[:, cell] = effects.log_total[:, cells.group[cell]] - log_without
        return np.stack([left_out, fitted])
