"""Exact distributions of means over these questions under partial pooling."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bayesatk.closed_form.posterior import ExactDistribution
from bayesatk.core.compared import ComparedDistribution
from bayesatk.core.continuum import continuum_distribution
from bayesatk.core.credit import Array, Credit
from bayesatk.core.distribution import MonotoneImage
from bayesatk.core.edges import EdgedDistribution, Staircase
from bayesatk.core.hierarchy import HyperPosterior
from bayesatk.core.intervals import measured_interval
from bayesatk.core.mixture import StateMixture
from bayesatk.core.near_end import from_end, near_end_distribution
from bayesatk.core.nodes import Nodes
from bayesatk.core.states import States
from bayesatk.core.sums import mean_distributions

_LEFT_OUT, _ROUGHLY = 1e-8, 1e-4  # probability of nodes that a distribution does without
_STEP, _STEP_OF_ONE = 0.0425, 0.02  # of the grid where means are narrow given a node
_ONE_QUESTION = 1e-6  # error of quantiles of one question
_ENOUGH, _ROUGH = 8e-7, 3e-4  # error of an interval's ends: absolute, and in sds
_HOPELESS = 1e-4  # error of an interval's ends at a glance
_SKEW = (1e-4, 0.01)  # of the whole, from which a mean may be near an end; and from which it is
_WIDE = 0.2  # sds in distances from an end, from which that distance matters
_RIPPLE = (1e-7, 1e-5)  # error by rows that are a staircase, at the ends and at all quantiles
_LIGHT = 1e-6  # probability of a row that makes no staircase
_MOST_ROWS = 4  # times as many rows as the grid has
_MANY = 100  # questions from which nodes may be done without
_WORK = 60_000  # nodes times states up to which Laplace transforms are inverted


def question_distributions(
    hyper: HyperPosterior, states: States, credits: tuple[Credit, ...], rough: bool = False
) -> list[ExactDistribution]:
    """Exact distributions of the means over these questions.

    Where a mean moves more from row to row of the hyperparameter grid than it varies within one,
    nodes are a staircase. It is then worked out as a continuum, or on the scale of its distance
    from an end, if that is exact enough by its own account; if neither is, rows are refined.
    Where widths of intervals to about 1e-3 will do, ask for them roughly.
    """
    everywhere = Nodes.of(hyper.x.ravel(), hyper.y.ravel(), hyper.weight)
    grid = StateMixture(everywhere, states, credits)
    found: dict[int, ExactDistribution] = {}
    stairs = [_staircase(hyper, grid, i) for i in range(len(credits))]
    rows = 1
    for i in range(len(credits)):
        smooth = _without_nodes(hyper, grid, i, stairs[i], rough)
        if isinstance(smooth, int):
            rows = max(rows, smooth)
        else:
            found[i] = smooth
    rest = [i for i in range(len(credits)) if i not in found]
    if rest:
        refined = hyper.refined(rows, 1) if rows > 1 else hyper
        chosen = tuple(credits[i] for i in rest)
        for i, each in zip(rest, _on_nodes(refined, states, chosen, rough), strict=True):
            found[i] = each
            if isinstance(each, EdgedDistribution):
                found[i] = replace(each, staircase=replace(stairs[i], rows=rows))
    return [found[i] for i in range(len(credits))]


def _on_nodes(
    grid: HyperPosterior, states: States, credits: tuple[Credit, ...], rough: bool
) -> list[ExactDistribution]:
    """Distributions mixed over the nodes of a grid."""
    one = states.questions == 1.0
    left_out = _ROUGHLY if rough else _LEFT_OUT
    nodes = grid.resolving(states.mean_p, left_out, _STEP_OF_ONE if one else _STEP)
    return [
        replace(each, error=_ONE_QUESTION) if one and isinstance(each, MonotoneImage) else each
        for each in mean_distributions(StateMixture(nodes, states, credits), rough)
    ]


def _without_nodes(
    hyper: HyperPosterior, grid: StateMixture, column: int, stairs: Staircase, rough: bool
) -> ComparedDistribution | int:
    """Return the first distribution that is exact enough, or how many times as many rows it needs.

    Where that is too many, the best of the distributions.
    """
    sd = float(np.sqrt(grid.moments.variance[column]))
    enough = max(_ENOUGH, _ROUGH * sd) if rough else _ENOUGH
    tried = []
    for attempt in _attempts(hyper, grid, column, enough, stairs):
        found = attempt()
        ends, error = measured_interval(found, 0.95, "eti")
        if error <= enough:
            return found
        tried.append((error, ends, found))
    if not tried:
        return _rows(stairs, None)
    error, ends, best = min(tried, key=lambda each: each[0])
    rows = _rows(stairs, ends)
    return best if error < replace(stairs, rows=rows)(ends).max() else rows


def _rows(stairs: Staircase, ends: tuple[float, float] | None) -> int:
    """How many times as many rows leave quantiles as they are, above all those at the ends."""
    for rows in range(1, _MOST_ROWS):
        finer = replace(stairs, rows=rows)
        near = finer.size if ends is None else finer(ends)
        if near.max() <= _RIPPLE[0] and finer.size.max() <= _RIPPLE[1]:
            return rows
    return _MOST_ROWS


def _attempts(
    hyper: HyperPosterior, grid: StateMixture, column: int, enough: float, stairs: Staircase
) -> Iterator[Callable[[], ComparedDistribution]]:
    """Yield ways to do without nodes, the likelier one first."""
    credit, variance = grid.credits[column], grid.moments.variance[column]
    if grid.states.questions < _MANY or variance == 0.0:
        return
    skew, nodes = _skew(grid, column), hyper.heavy(_LEFT_OUT)
    near = bool((np.diff(credit.vector) >= 0.0).all()) and len(nodes) * len(grid.states) < _WORK
    both = grid.moments.mean[column], grid.moments.complement[column]
    distance = min(from_end(credit.vector, *both, top) for top in (True, False))
    near = near and variance > (_WIDE * distance) ** 2

    def near_end() -> ComparedDistribution:
        return near_end_distribution(StateMixture(nodes, grid.states, (credit,)), 0, _HOPELESS)

    if near and skew > _SKEW[1]:
        yield near_end
    if stairs.size.max(initial=0.0) > _RIPPLE[0]:
        yield partial(continuum_distribution, hyper, grid, column, enough, _HOPELESS)
        if near and _SKEW[0] < skew <= _SKEW[1]:
            yield near_end


def _skew(grid: StateMixture, column: int) -> float:
    """How much the shape of a mean given a node skews the whole.

    Near an end a mean is about as skewed as twice its sd in distances to it; what skews the whole
    is that times the cube of its share of the whole's sd.
    """
    moments = grid.moments
    weight, sd = moments.weight, np.sqrt(moments.node_variance[:, column])
    ends = np.minimum(moments.node_mean[:, column], moments.node_complement[:, column])
    total = weight @ sd**2 + weight @ (ends - weight @ ends) ** 2
    share = (sd / np.sqrt(total)) ** 3
    return float(weight @ (np.minimum(sd / np.maximum(ends, 1e-300), 1.0) * share))


def _staircase(hyper: HyperPosterior, grid: StateMixture, column: int) -> Staircase:
    """Distances of the grid's rows."""
    mean = grid.moments.node_mean[:, column].reshape(hyper.x.shape)
    variance = grid.moments.node_variance[:, column].reshape(hyper.x.shape)
    weight = hyper.weight.reshape(mean.shape)
    row_weight = weight.sum(axis=1)
    kept = row_weight > _LIGHT
    share = weight[kept] / row_weight[kept, None]
    centre: Array = (share * mean[kept]).sum(axis=1)
    between = (share * (mean[kept] - centre[:, None]) ** 2).sum(axis=1)
    width = np.sqrt(between + (share * variance[kept]).sum(axis=1))
    place, gap = 0.5 * (centre[1:] + centre[:-1]), np.abs(np.diff(centre))
    order = np.argsort(place)
    apart = gap / np.maximum(np.minimum(width[1:], width[:-1]), 1e-300)
    return Staircase(place[order], gap[order], apart[order])
