"""What structure adds: offsets of questions by covariates and groups, effects of groups integrated.

Everything about a state is a table over offsets (`bayesatk.core.program.observations`), joined by
curves through six points. Effects of groups are one dimension each, integrated by a Gauss-Hermite
rule around the mode of each group at each point of the hyperparameters (Liu and Pierce 1994,
Biometrika 81).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.observations import Observation, RightWrong

_BLOCK = 700_000  # floats in one array: 6 MB
_OFFSETS = 60  # of a table, about
_NODES = 9  # of the rule for a group's effect
WIDE_NODES, WIDER = 15, 1.6  # of it, and width, that carry it also without one question
NEW_NODES = 21  # of the rule for the effect of a new group
_NEWTON_STEPS = 30
_FARTHEST_MODE = 5.5  # sds of groups from zero, where modes are looked for
_NEAR_MODE = 0.05  # widths from the mode, where a rule may lie
_FARTHEST = 6.0  # sds of groups from zero, where effects are looked for
_LARGEST_SD = 4.0  # logits, of groups: more are told apart by no trial
_LEAST_CURVATURE = 0.3  # of a group's log density, in that of its prior: nothing is wider
_FEWEST_OFFSETS = 8
_MOST_OFFSETS = 4000
_DRAWN_RANGE, _DRAWN_POINTS = 4.5, 61  # widths of an effect, and points, between which it is drawn
_LEFT_AT = 12  # questions of a group from which leaving one out moves its mode next to nothing


class Effects(NamedTuple):
    """Effects of groups at nodes ``mode + width z``, and posterior probabilities of these.

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
        z, weight = np.polynomial.hermite_e.hermegauss(self.values.shape[2])
        fine = np.linspace(-_DRAWN_RANGE, _DRAWN_RANGE, _DRAWN_POINTS)
        drawn = np.empty((len(point), self.mode.shape[1]))
        cell = np.clip(np.searchsorted(z, fine) - 1, 0, len(z) - 2)
        slope = (fine - z[cell]) / (z[cell + 1] - z[cell])
        logs = np.log(np.maximum(self.probability, 1e-300)) - np.log(weight)
        for group in range(drawn.shape[1]):
            lines = logs[point, group]
            density = lines[:, cell] * (1.0 - slope) + lines[:, cell + 1] * slope
            density -= 0.5 * fine**2
            density = np.exp(density - density.max(axis=1, keepdims=True))
            cumulative = np.cumsum(density, axis=1)
            u = rng.random(len(point)) * cumulative[:, -1]
            index = np.minimum((cumulative < u[:, None]).sum(axis=1), len(fine) - 1)
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
        """Return values at offsets (points, cells) of a column by cell, by curves of degree five.

        With slopes also the first and second derivative, first axis.
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
            around = flat[row + j * self.values.shape[2]]
            total += basis[:, j].reshape(*basis[:, j].shape, *[1] * (around.ndim - 2)) * around
        if not slopes:
            return np.asarray(total[0])
        width = self.step[:, None]
        return np.stack([total[0], total[1] / width, total[2] / width**2])

    @classmethod
    def shared(cls, table_of: "Callable[[Array], Table]", theta: Array) -> "Table":
        """Return the table of draws among points, worked out once for each point."""
        points, point_of_draw = np.unique(theta, axis=0, return_inverse=True)
        table = table_of(points)
        return cls(
            table.values[point_of_draw], table.first[point_of_draw], table.step[point_of_draw]
        )

    def folded(self, factor: Array) -> "Table":
        """Return the table of sums of columns, with factors (columns, sums)."""
        sums = np.tensordot(self.values, factor, axes=(2, 0))
        return self._replace(values=np.ascontiguousarray(np.moveaxis(sums, -1, 2)))


_POWERS = np.linalg.inv(np.vander(np.arange(-2.0, 4.0), 6, increasing=True))  # (power, point)
_SLOPES = np.diag(np.arange(1.0, 6.0), 1)  # what derivatives make of coefficients of powers


def _six_points(t: Array, slopes: bool) -> Array:
    """Lagrange polynomials through six points, at t in [0, 1); (derivative, point, ...)."""
    orders = [_POWERS, _SLOPES @ _POWERS, _SLOPES @ _SLOPES @ _POWERS]
    coefficients = np.stack(orders[: 1 + 2 * slopes])
    powers = np.empty((6, t.size))
    powers[0] = 1.0
    for j in range(1, 6):
        np.multiply(powers[j - 1], t.ravel(), out=powers[j])
    curves = np.swapaxes(coefficients, 1, 2).reshape(-1, 6) @ powers
    return curves.reshape(len(coefficients), 6, *t.shape)


@dataclass(frozen=True)
class Predictor:
    """Offsets of questions, and what their trials say at points of the hyperparameters.

    Parameters
    ----------
    observation : Observation
    cells : Cells
    """

    observation: Observation
    cells: Cells

    @property
    def effective(self) -> bool:
        """Whether groups have effects, which are integrated."""
        return "group_sd" in self.observation.law.fields.slices

    @property
    def _structured(self) -> bool:
        return self.effective or self.cells.rows.shape[1] > 0

    def group_sd(self, theta: Array) -> Array:
        """Sd of the effects of groups, zero without any; (points,)."""
        if not self.effective:
            return np.zeros(len(theta))
        logs = theta[:, self.observation.law.fields.slices["group_sd"]][:, 0]
        return np.asarray(np.exp(np.minimum(logs, np.log(_LARGEST_SD))))

    def offsets(self, theta: Array) -> Array:
        """Offsets of cells by their covariates; (points, cells)."""
        if not self.cells.rows.shape[1]:
            return np.zeros((len(theta), len(self.cells.count)))
        slopes = theta[:, self.observation.law.fields.slices["slopes"]]
        return np.clip(slopes @ self.cells.rows.T, -60.0, 60.0)

    def grid(self, theta: Array) -> tuple[Array, Array, Array]:
        """Offsets of a table, (points, offsets), the first and the step."""
        if not self._structured:
            zero = np.zeros((len(theta), 1))
            return zero, zero[:, 0], np.ones(len(theta))
        offset = self.offsets(theta)
        reach = _FARTHEST * self.group_sd(theta)
        states = self.cells.states
        trials = states.evidence.sum(axis=1) * np.bincount(
            self.cells.state, self.cells.count, len(states)
        )
        widest = self.observation.law.step(theta, trials)
        low, high = offset.min(axis=1) - reach, offset.max(axis=1) + reach
        number = int(np.clip(np.ceil((high - low).max() / widest), _FEWEST_OFFSETS, _MOST_OFFSETS))
        step = np.maximum((high - low) / number, 1e-6)
        grid = low[:, None] + step[:, None] * np.arange(-2, number + 4)
        return grid, grid[:, 0], step

    def blocks(self, theta: Array, columns: int, offsets: int = _OFFSETS) -> list[Ints]:
        """Points that fit in memory together, those of similar cost next to another.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        columns : int
            Numbers of each cell that are held at once.
        offsets : int
            At how many, about, where there is structure.
        """
        similar = np.round(self.observation.order(theta))
        keys = [similar]
        if self.effective:
            keys.insert(0, np.log(self.group_sd(theta)))
        order = np.lexsort(keys)
        offsets = offsets if self._structured else 1
        by_cell = 8 if self.cells.rows.shape[1] else int(self._structured)
        width = max(
            offsets * self.observation.floats(columns), by_cell * columns * len(self.cells.count)
        )
        step = max(1, _BLOCK // width)
        ends = np.flatnonzero(np.diff(similar[order])) + 1
        return [
            run[start : start + step]
            for run in np.split(order, ends)
            for start in range(0, len(run), step)
        ]

    def draw_new(self, theta: Array, effect: Array, rng: Rng, *, earlier: bool = True) -> Array:
        """Draw p of a new question in place of every question, a set at every point.

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
            # Nothing is known of such a question, and no judge has marked a trial of it.
            untried = RightWrong(observation.law, States.of([0], [0]))
            return untried.draw(theta, offset, np.zeros(offset.shape[1], np.intp), rng)
        # Behind the states that were seen, by which an observation chooses how fine its tables are.
        followed = replace(
            states, counts=np.concatenate([states.counts, np.zeros_like(states.counts)]),
            prior=np.concatenate([states.prior, states.prior * earlier]),
            count=np.append(states.count, np.zeros(number)),
        )  # fmt: skip
        unseen: Any = replace(observation, states=followed)  # type: ignore[type-var]
        return np.asarray(unseen.draw(theta, offset, number + cells.state[cells.which], rng))

    def log_likelihood(self, theta: Array) -> Array:
        """Log probability of all trials in their order; (points,)."""
        total = np.empty(len(theta))
        for rows in self.blocks(theta, 1):
            total[rows] = self._log_likelihood(theta[rows])
        return total

    def _log_likelihood(self, theta: Array) -> Array:
        if self.effective:
            return np.asarray(self._effects(theta).log_total.sum(axis=1))
        return np.asarray(self.log_cells(theta) @ self.cells.count)

    def log_cells(self, theta: Array) -> Array:
        """Log probability of a question's trials, effects of groups zero; (points, cells)."""
        offset = self.offsets(theta)
        if not self._structured:
            return self.observation.log_states(theta, offset[:, :1])[:, 0, self.cells.state]
        return self.log_table(theta).at(offset, self.cells.state)

    def log_cells_at(self, theta: Array, offset: Array) -> Array:
        """Return log probabilities of a question's trials, given effects of groups too.

        Offsets, which include these effects, and the result are (points, cells).
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
        """Return the log-likelihood of each group, with derivatives if asked, by its effect.

        Of effects (points, groups, ...), derivatives in a first axis.
        """
        cells = self.cells
        if not cells.rows.shape[1]:  # the same function for all questions of a state in a group
            factor = np.zeros((len(cells.states), cells.groups))
            np.add.at(factor, (cells.state, cells.group), cells.count)
            sums = table.folded(factor)

            def of_sums(effect: Array, slopes: bool) -> Array:
                each = effect.reshape(*effect.shape[:2], -1)
                column = np.repeat(np.arange(cells.groups), each.shape[2])
                logs = sums.at(each.reshape(len(each), -1), column, slopes)
                return logs.reshape(*logs.shape[:-2], *effect.shape)

            return of_sums
        offset = self.offsets(theta)

        def at(effect: Array, slopes: bool) -> Array:
            if effect.ndim == 3:
                return np.stack([at(each, slopes) for each in np.moveaxis(effect, -1, 0)], axis=-1)
            logs = table.at(offset + effect[:, cells.group], cells.state, slopes) * cells.count
            if not slopes:
                return cells.by_group(logs)
            return np.stack([cells.by_group(order) for order in logs])

        return at

    def effects(self, theta: Array) -> Effects:
        """Integrate the effect of every group; zero where groups have none."""
        if not self.effective:
            zero = np.zeros((len(theta), self.cells.groups))
            return Effects(zero[..., None], zero[..., None] + 1.0, zero, zero, zero)
        blocks = self.blocks(theta, 2)
        order = np.argsort(np.concatenate(blocks))
        parts = [self._effects(theta[rows]) for rows in blocks]
        return Effects(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))

    def _effects(
        self, theta: Array, table: Table | None = None, nodes: int = _NODES, wider: float = 1.0
    ) -> Effects:
        """Integrate the effect of every group, on nodes around its mode.

        Wider nodes carry also posteriors without one of the questions.
        """
        table = self.log_table(theta) if table is None else table
        sd, cells, at = self.group_sd(theta)[:, None], self.cells, self.by_group(theta, table)
        mode = np.zeros((len(theta), cells.groups))
        low, high = mode - _FARTHEST_MODE * sd, mode + _FARTHEST_MODE * sd
        for _ in range(_NEWTON_STEPS):
            _, slope, bend = at(mode, True)
            slope -= mode / sd**2
            bend = np.minimum(bend - 1.0 / sd**2, -_LEAST_CURVATURE / sd**2)
            # A step beyond where the slope has changed its sign is half way there instead: far from
            # the mode a log likelihood is a straight line, and Newton's steps alone may cycle.
            low, high = np.where(slope > 0.0, mode, low), np.where(slope > 0.0, high, mode)
            moved = mode - slope / bend
            moved = np.where((moved > low) & (moved < high), moved, 0.5 * (low + high))
            settled = (np.abs(moved - mode) * np.sqrt(-bend)).max() < _NEAR_MODE
            mode = moved
            if settled:
                break
        bend = np.minimum(at(mode, True)[2] - 1.0 / sd**2, -_LEAST_CURVATURE / sd**2)
        width = 1.0 / np.sqrt(-bend)
        width = wider * width
        z, weight = np.polynomial.hermite_e.hermegauss(nodes)
        sd = sd[..., None]
        values = np.clip(mode[..., None] + width[..., None] * z, -6.0 * sd, 6.0 * sd)
        logs = at(values, False) - 0.5 * (values / sd) ** 2
        logs += 0.5 * z**2 + np.log(weight)
        total = logsumexp(logs, axis=-1)
        probability = np.exp(logs - total[..., None])
        constant = np.log(width / sd[..., 0]) - 0.5 * np.log(2.0 * np.pi)
        return Effects(values, probability, total + constant, mode, width)

    def log_left_out(self, theta: Array, earlier: "Predictor | None" = None) -> tuple[Array, Array]:
        """Log probability of a question's trials given the others of its group, and of a new one's.

        Parameters
        ----------
        theta : ndarray, shape (points, hyperparameters)
        earlier : Predictor, optional
            Of prior trials alone, which are given, also those of the question itself.

        Returns
        -------
        left_out, fitted : ndarray, shape (points, cells)
            ``fitted`` is of a new question of the group alike, given all questions.
        """
        pair = np.empty((2, len(theta), len(self.cells.count)))
        for rows in self.blocks(theta, 2):
            if earlier is None:
                pair[:, rows] = self._log_left_out(theta[rows])
            else:
                pair[:, rows] = self._log_given(theta[rows], earlier)
        return pair[0], pair[1]

    def _log_given(self, theta: Array, earlier: "Predictor") -> Array:
        """Return both where prior trials are given."""
        cells = self.cells
        if not self.effective:
            logs = self.log_cells(theta) - earlier.log_cells(theta)
            return np.stack([logs, logs])
        grid, first, step = self.grid(theta)
        table = Table(self.observation.log_states(theta, grid), first, step)
        before = Table(earlier.observation.log_states(theta, grid), first, step)
        effects, offset = self._effects(theta, table, WIDE_NODES, WIDER), self.offsets(theta)
        logs = np.stack([
            table.at(offset + effect, cells.state) - before.at(offset + effect, cells.state)
            for effect in np.moveaxis(effects.values[:, cells.group], -1, 0)
        ], axis=-1)  # fmt: skip
        with np.errstate(divide="ignore"):
            chance = np.log(effects.probability)[:, cells.group]
        return np.stack([-logsumexp(chance - logs, axis=-1), logsumexp(chance + logs, axis=-1)])

    def _log_left_out(self, theta: Array) -> Array:
        cells = self.cells
        if not self.effective:
            logs = self.log_cells(theta)
            return np.stack([logs, logs])
        table = self.log_table(theta)
        effects, offset = self._effects(theta, table), self.offsets(theta)
        logs = np.stack([
            table.at(offset + effects.values[:, cells.group, j], cells.state)
            for j in range(effects.values.shape[2])
        ], axis=-1)  # fmt: skip
        with np.errstate(divide="ignore"):
            chance = np.log(effects.probability)[:, cells.group]
        fitted, left_out = logsumexp(chance + logs, axis=-1), -logsumexp(chance - logs, axis=-1)
        questions = np.bincount(cells.group, cells.count, cells.groups)
        for cell in np.flatnonzero(questions[cells.group] <= _LEFT_AT):
            # Of a small group the effect moves without the question: its nodes are placed anew.
            members = np.flatnonzero(cells.group == cells.group[cell])
            small = replace(cells, share=np.ones(1), group=np.zeros(len(members), np.intp),
                            state=cells.state[members], rows=cells.rows[members],
                            count=cells.count[members] - (members == cell))  # fmt: skip
            others = replace(self, cells=small)._effects(theta, table).log_total[:, 0]
            left_out[:, cell] = effects.log_total[:, cells.group[cell]] - others
        return np.stack([left_out, fitted])
