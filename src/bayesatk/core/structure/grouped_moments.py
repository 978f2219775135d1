"""Metrics of questions in groups: exact means and variances on the grid of a grouped posterior.

Every metric of a question, of a group and of a new question is a smooth function of the group's
logit mean x, known on a few points of x for every logit r and joined by splines.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from bayesatk.core.engine.mixture import StateMixture, expected_credits, spread_of
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import GroupedStates
from bayesatk.core.structure.grouped import GroupedPosterior, Row
from bayesatk.metrics.credit import Array, Credit

_SPACING = 0.3  # of points of x, in logits near 0
_WIDER = 4.0  # logits from 0 at which the spacing is 1.4 times as wide


@dataclass(frozen=True)
class Curves:
    """Functions of x for one logit r.

    Parameters
    ----------
    mean, variance : CubicSpline
        Of the mean over the questions of a group; (points, groups, credits).
    new, spread : CubicSpline
        Mean and variance of credits of a new question; (points, credits).
    """

    mean: CubicSpline
    variance: CubicSpline
    new: CubicSpline
    spread: CubicSpline


@dataclass(frozen=True)
class Moments:
    """Posterior means and variances of means over questions.

    Parameters
    ----------
    questions, population : ndarray, shape (groups, credits)
        Means of each group: of its questions, and of questions like them in it.
    questions_variance, population_variance : ndarray
    spread : ndarray
        Expected variance between new questions of a group.
    whole : ndarray, shape (3, credits)
        Means over these questions, over new questions of these groups, over new groups; the groups
        with their weights.
    whole_variance : ndarray, shape (3, credits)
    """

    questions: Array
    population: Array
    questions_variance: Array
    population_variance: Array
    spread: Array
    whole: Array
    whole_variance: Array


@dataclass(frozen=True)
class GroupedMeans:
    """Metrics of questions in groups.

    Parameters
    ----------
    posterior : GroupedPosterior
    data : GroupedStates
    credits : tuple of Credit
    """

    posterior: GroupedPosterior
    data: GroupedStates
    credits: tuple[Credit, ...]

    @cached_property
    def curves(self) -> list[Curves]:
        """Functions of x, by row."""
        x, rows = _points(self.posterior.x), self.posterior.rows
        y = np.array([one.y for one in rows])
        xs, ys = (one.ravel() for one in np.meshgrid(x, y))
        nodes = Nodes.of(xs, ys, np.full(len(xs), 1.0 / len(xs)))
        by_group = self._by_group(nodes)
        new, _ = expected_credits(nodes, self.credits)
        spread = spread_of(nodes, self.credits)
        tables = [
            each.reshape(len(y), len(x), *each.shape[1:]) for each in (*by_group, new, spread)
        ]
        return [
            Curves(*(CubicSpline(x, own) for own in each)) for each in zip(*tables, strict=True)
        ]

    def _by_group(self, nodes: Nodes) -> tuple[Array, Array]:
        """Means and variances of means over the questions of groups; (nodes, groups, credits)."""
        alike, table, _ = self.data.distinct
        share = table / np.maximum(self.data.questions, 1.0)[:, None]
        found = np.zeros((2, len(nodes), self.data.size, len(self.credits)))
        for own, states, moments in StateMixture(nodes, alike, self.credits).cumulants(2):
            some = share[:, states]
            found[0, own] += np.einsum("nsk,gs->ngk", moments[0], some)
            squared = some / np.maximum(self.data.questions, 1.0)[:, None]
            found[1, own] += np.einsum("nsk,gs->ngk", moments[2], squared)
        return found[0], found[1]

    def moments(self, weight: Array) -> Moments:
        """Posterior means and variances, groups with these weights."""
        size, number = self.data.size, len(self.credits)
        found = [np.zeros(shape) for shape in [(size, number)] * 5 + [(3, number)] * 2]
        centre, x = np.zeros(number), self.posterior.x
        pairs = list(zip(self.posterior.rows, self.curves, strict=True))
        for row, curves in pairs:
            centre += row.weight @ (row.grid @ curves.new(x))
        for row, curves in pairs:
            for total, own in zip(found, self._of_row(row, curves, weight, centre), strict=True):
                total += own
        for mean, second in ((0, 2), (1, 3), (5, 6)):  # second moments about the centre so far
            found[second] -= (found[mean] - centre) ** 2
            found[second] = np.maximum(found[second], 0.0)
        return Moments(**dict(zip((each.name for each in fields(Moments)), found, strict=True)))

    def _of_row(self, row: Row, curves: Curves, weight: Array, centre: Array) -> list[Array]:
        """Parts of one row in means, second moments about the centre, and spreads."""
        x, chance = self.posterior.x, row.of_points()
        mean, variance = curves.mean(x) - centre, np.maximum(curves.variance(x), 0.0)
        new, spread = curves.new(x) - centre, curves.spread(x)
        total = chance.sum(axis=0)[:, None] * centre
        questions = np.einsum("jg,jgk->gk", chance, mean)
        second = np.einsum("jg,jgk->gk", chance, mean**2 + variance)
        whole, whole_second = np.zeros((2, 3, len(self.credits)))
        for k in range(len(self.credits)):
            pairs = (mean[:, :, k], variance[:, :, k]), (new[:, None, k], np.zeros((1, 1)))
            for target, (one, more) in enumerate(pairs):
                given = row.given(one)
                within = np.maximum(row.given(one**2 + more) - given**2, 0.0) @ weight**2
                whole[target, k] = row.weight @ (given @ weight)
                whole_second[target, k] = row.weight @ ((given @ weight) ** 2 + within)
        future = row.grid @ new
        whole[2], whole_second[2] = row.weight @ future, row.weight @ future**2
        return [
            questions + total, chance.T @ new + total, second, chance.T @ new**2,
            chance.T @ spread, whole + row.weight.sum() * centre, whole_second,
        ]  # fmt: skip


def _points(x: Array) -> Array:
    """Points of x for splines, from end to end."""
    low, high = (_WIDER * np.arcsinh(x[[0, -1]] / _WIDER)).tolist()
    number = max(8, int(np.ceil((high - low) / _SPACING)) + 1)
    found = _WIDER * np.sinh(np.linspace(low, high, number) / _WIDER)
    found[[0, -1]] = x[[0, -1]]
    return np.asarray(found)
