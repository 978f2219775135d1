"""Independent draws of metrics of questions in groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PPoly
from scipy.special import expit

from bayesatk.core.engine.distribution import Quantity
from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.numerics.quadrature import straight_weights
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import GroupedStates, States
from bayesatk.core.structure.grouped_moments import GroupedMeans
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import (
    MANY,
    correlated_normals,
    draw_p,
    draw_question_means,
    sum_covariance,
)
from bayesatk.posterior.posterior import Draws, GroupDraws, Summary, SystemPosterior

_NORMAL = 100  # questions of a group from which their mean may be drawn as normal


@dataclass(frozen=True)
class _Hyper:
    """Draws of the hyperparameters and of every group's logit mean.

    Parameters
    ----------
    row, line : ndarray of int, shape (draws,)
        Value of logit r, and line of nodes in mu.
    mu : ndarray, shape (draws,)
    x : ndarray, shape (draws, groups)
    """

    row: NDArray[np.intp]
    line: NDArray[np.intp]
    mu: Array
    x: Array


@dataclass(frozen=True)
class GroupedDraws:
    """Draws of metrics.

    Parameters
    ----------
    means : GroupedMeans
    metrics : tuple of Metric
    weight : ndarray, shape (groups,)
    hyper : mapping {name: Summary}
        Of the hyperparameters.
    """

    means: GroupedMeans
    metrics: tuple[Metric, ...]
    weight: Array
    hyper: Mapping[str, Summary]

    @property
    def _data(self) -> GroupedStates:
        return self.means.data

    @cached_property
    def _members(self) -> list[NDArray[np.intp]]:
        """Questions of each group."""
        of_question = self._data.group[self._data.states.which]
        return [np.flatnonzero(of_question == g) for g in range(self._data.size)]

    def draw(self, size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        """Draw everything, independently."""
        hyper = self._hyper(size, rng)
        questions, p = self._questions(hyper, rng, keep_p)
        new, future = self._new(hyper)
        some = self.weight > 0.0
        whole = np.stack([
            np.einsum("dgk,g->dk", questions[:, some], self.weight[some]),
            np.einsum("dgk,g->dk", new, self.weight), future,
        ], axis=-1)  # fmt: skip
        groups = GroupDraws(expit(hyper.x), np.stack([questions, new], axis=-1))
        return Draws(whole, self._reported(hyper, rng), p, groups=groups)

    def of_group(self, group: int, mean: Array, trial: Array, question: Array) -> SystemPosterior:
        """Posterior of one group alone."""
        none: list[Quantity | None] = [None] * len(self.metrics)

        def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
            found = self.draw(size, rng, keep_p)
            assert found.groups is not None
            p = None if found.p is None else found.p[:, self._members[group]]
            return Draws(found.groups.metrics[:, group], {}, p)

        def question_p() -> tuple[Array, Array]:
            raise AssertionError("questions are those of the whole")

        return SystemPosterior(
            mean, trial, question, lambda: (none, none), draw, question_p, drawn=True
        )

    def _hyper(self, size: int, rng: np.random.Generator) -> _Hyper:
        """Draw hyperparameters: mu as finely as it is known, tau and r at their nodes."""
        posterior = self.means.posterior
        rows, taus, chance = posterior.lines
        fine, given = posterior.fine
        line = np.sort(rng.choice(len(chance), size=size, p=chance / chance.sum()))
        upto = np.cumsum(given, axis=1)[line]
        place = (rng.random(size)[:, None] * upto[:, -1:] > upto).sum(axis=1)
        edge = 0.5 * (fine[:, 1:] + fine[:, :-1])
        edge = np.concatenate([fine[:, :1], edge, fine[:, -1:]], axis=1)
        low, high = edge[line, place], edge[line, place + 1]
        mu = low + rng.random(size) * (high - low)
        mu = np.clip(mu, posterior.x[0], posterior.x[-1])
        row = np.asarray(rows[line], np.intp)
        x = np.empty((size, self._data.size))
        for own in np.unique(row):
            part = np.flatnonzero(row == own)
            x[part] = self._effects(own, mu[part], taus[line[part]], rng)
        order = rng.permutation(size)
        return _Hyper(row[order], line[order], mu[order], x[order])

    def _effects(self, row: int, mu: Array, tau: Array, rng: np.random.Generator) -> Array:
        """Draw the logit means of all groups given the hyperparameters; (draws, groups)."""
        x, likelihood = self.means.posterior.x, self.means.posterior.rows[row].likelihood
        grid = straight_weights(x, mu, tau)
        edge = np.concatenate([x[:1], 0.5 * (x[1:] + x[:-1]), x[-1:]])
        found = np.empty((len(mu), self._data.size))
        for g in range(self._data.size):
            upto = np.cumsum(grid * likelihood[:, g], axis=1)
            u = rng.random(len(mu)) * upto[:, -1]
            cell = np.minimum((u[:, None] > upto).sum(axis=1), len(x) - 1)
            found[:, g] = edge[cell] + rng.random(len(mu)) * (edge[cell + 1] - edge[cell])
        return found

    def _reported(self, hyper: _Hyper, rng: np.random.Generator) -> dict[str, Array]:
        """Hyperparameters with their distributions, in the order of their nodes."""
        posterior = self.means.posterior
        y = np.array([one.y for one in posterior.rows])
        rows, taus, _ = posterior.lines
        sd = np.empty(len(hyper.mu))
        for row in np.unique(hyper.row):
            part, own = hyper.row == row, np.flatnonzero(rows == row)
            sd[part] = _between_nodes(taus[own], hyper.line[part] - own[0], rng, 0.0)
        icc = expit(_between_nodes(y, hyper.row, rng, -np.inf))
        rough = {"typical_p": expit(hyper.mu), "group_sd": sd, "icc": icc}
        found = {}
        for name, values in rough.items():
            level = np.sort(rng.random(len(values)))
            found[name] = np.empty(len(values))
            found[name][np.argsort(values)] = self.hyper[name].distribution.quantile(level)
        return found

    def _new(self, hyper: _Hyper) -> tuple[Array, Array]:
        """Return expected metrics of new questions of each group, and of new groups."""
        posterior = self.means.posterior
        size, number = hyper.x.shape
        new = np.empty((size, number, len(self.metrics)))
        future = np.empty((size, len(self.metrics)))
        taus = posterior.lines[1]
        for own in np.unique(hyper.row):
            part = np.flatnonzero(hyper.row == own)
            curve = self.means.curves[own].new
            new[part] = curve(hyper.x[part])
            grid = straight_weights(posterior.x, hyper.mu[part], taus[hyper.line[part]])
            future[part] = grid @ curve(posterior.x)
        ends = self._ends
        return np.clip(new, *ends), np.clip(future, *ends)

    @property
    def _ends(self) -> Array:
        """Smallest and largest value of every metric; (2, metrics)."""
        vectors = [one.vector for one in self.means.credits]
        return np.array([[f(each) for each in vectors] for f in (np.min, np.max)])

    def _questions(
        self, hyper: _Hyper, rng: np.random.Generator, keep_p: bool
    ) -> tuple[Array, Array | None]:
        """Means over the questions of each group, and every p where it is kept."""
        size = len(hyper.mu)
        states, y = self._data.states, np.array([one.y for one in self.means.posterior.rows])
        every = np.empty((size, len(states.which))) if keep_p else None
        found = np.full((size, self._data.size, len(self.metrics)), np.nan)
        few = size * len(states.which) * len(self.metrics) <= MANY
        for g, members in enumerate(self._members):
            if not len(members):
                continue
            own = States.of_counts(states.counts[states.which[members]])
            nodes = Nodes.of(hyper.x[:, g], y[hyper.row], np.full(size, 1.0 / size))
            if keep_p or few or len(members) < _NORMAL:
                p = draw_p(own, nodes, slice(None), rng) if keep_p else None
                if every is not None:
                    every[:, members] = p
                found[:, g], _ = draw_question_means(self.metrics, own, nodes, rng, p=p)
            else:
                found[:, g] = self._normal(g, own, hyper, rng)
        return found, every

    def _normal(self, group: int, own: States, hyper: _Hyper, rng: np.random.Generator) -> Array:
        """Means over many questions of a group: normal given its logit mean."""
        mean, variance = np.empty((2, len(hyper.mu), len(self.metrics)))
        for row in np.unique(hyper.row):
            part = np.flatnonzero(hyper.row == row)
            curves = self.means.curves[row]
            for table, every in ((mean, curves.mean), (variance, curves.variance)):
                table[part] = PPoly(every.c[:, :, group], every.x)(hyper.x[part, group])
        middle = int(np.argmax(np.bincount(hyper.row)))
        node = Nodes.of(
            np.median(hyper.x[:, group])[None],
            np.array([self.means.posterior.rows[middle].y]), np.ones(1),
        )  # fmt: skip
        noise = sum_covariance(StateMixture(node, own, self.means.credits), 0)
        scale = np.sqrt(np.maximum(np.diag(noise), 1e-300))
        normal = correlated_normals(noise, len(mean), rng) / scale
        return np.clip(mean + np.sqrt(np.maximum(variance, 0.0)) * normal, *self._ends)


def _between_nodes(
    place: Array, index: NDArray[np.intp], rng: np.random.Generator, least: float
) -> Array:
    """Numbers anywhere in the cells of nodes."""
    if len(place) < 2:
        return place[index]
    edge = 0.5 * (place[1:] + place[:-1])
    edge = np.concatenate([[max(least, place[0])], edge, [place[-1]]])
    return np.asarray(edge[index] + rng.random(len(index)) * (edge[index + 1] - edge[index]))
