"""Systems on the questions that all of them tried: joint draws of all, and contrasts of pairs.

Questions drawn anew are the same for all systems: what is hard for one is hard for another. Every
system's own posterior for questions like these is that of its model: of its law, or the Bayesian
bootstrap of its questions. Its draws are put in an order that makes them move together between
systems as much as the questions do. Posterior draws of p would understate that: given their own
counts systems are independent, so what trial noise hides of a common difficulty is lost. The
covariance of observed success rates has no such bias, for trials of different systems are
independent given the question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk._tools.batches import in_batches
from bayesatk.comparison.joint.contrasts import (
    CONTRASTS,
    Contrasts,
    Drawn,
    Independent,
    Settings,
    band_width,
    mirrored,
    over_k,
)
from bayesatk.comparison.joint.draws import (
    QuestionSpread,
    Subset,
    SystemSampler,
    alike_systems,
    group_draws,
    observed_rates,
    stored_draws,
)
from bayesatk.metrics.grid import MetricGrid
from bayesatk.results.result import Result

Places = Indices
_PAIRS = 2000  # compared at once: a task of a few seconds
_VALUES = 4_000_000  # of curves held at once
# Bootstrap samples of the correlation between systems, fewer for many: eigenvalues are a cube.
_FEWEST_MATRICES, _MOST_MATRICES, _EIGENVALUES = 200, 1000, 2e7


def paired_draws(
    fit: Result, part: Subset, rng: Rng, sampler: SystemSampler | None = None,
    client: Any = None,
) -> tuple[Drawn, ...]:  # fmt: skip
    """Return joint draws of a part by target: of these questions, of others, of new groups."""
    alike, direction = alike_systems(fit, part), fit.scale.direction
    if fit.own:  # its draws are joint, and systems with the same data may differ by its model
        alike = np.arange(len(part.systems))
        stored = (_stored(fit, part, target) for target in range(len(fit.targets)))
        return tuple(replace(joint, alike=alike, direction=direction) for joint in stored)
    systems = (sampler or SystemSampler(fit, rng)).of(part, client)
    questions, population, *new_groups = np.stack([draws.means for draws in systems], axis=-1)
    effective = float(len(questions))
    if fit.sampled:
        effective = min(effective, _stored(fit, part, 0).effective)
    rates, share = observed_rates(fit, part), part.share(fit)
    spreads = list(zip(*(draws.spreads for draws in systems), strict=True))
    of_groups = rates
    if fit.grouping is not None:
        grouping = fit.grouping.among(part.kept)
        rates, of_groups = grouping.within(rates), grouping.means(rates)
    drawn: tuple[Drawn, ...] = drawn_together(
        questions, population, spreads[0], rates, share, effective, rng
    )
    for target in new_groups:
        even = np.full(of_groups.shape[1], 1.0 / of_groups.shape[1])
        new = drawn_together(questions, target, spreads[1], of_groups, even, effective, rng)
        drawn = *drawn, new[1]
    if fit.sampled and len(systems) == len(fit.systems) and part.kept.all():
        drawn = _stored(fit, part, 0), *drawn[1:]
    drawn = tuple(replace(joint, alike=alike, direction=direction) for joint in drawn)
    cells = set.intersection(*(set(draws.exact) for draws in systems))
    exact = {cell: [draws.exact[cell] for draws in systems] for cell in cells}
    return Independent.among(drawn[0], exact), *drawn[1:]


def _stored(fit: Result, part: Subset, target: int) -> Drawn:
    """Draws of the metrics that the result holds, paired between systems as they are."""
    posterior = fit.posterior.isel(system=part.systems)
    dims = ("target", "chain", "draw", "system")
    values = stored_draws(posterior, fit, dims)[target]
    flat = values.reshape(-1, *values.shape[2:])
    return Drawn.of(flat, flat, _effective(values) if fit.sampled else len(flat))


def _effective(values: Array) -> float:
    """Smallest effective sample size of draws (chain, draw, cell, system)."""
    import arviz as az

    sizes = az.ess(np.moveaxis(values, (0, 1), (-2, -1)), method="mean")
    return float(np.nanmin(sizes, initial=float(values.shape[0] * values.shape[1])))


def pair_contrasts(
    grid: MetricGrid,
    drawn: Sequence[Drawn],
    declared: Flags,
    settings: Settings,
    client: Any = None,
    progress: bool | None = False,
) -> Array:
    """Return contrasts (system, other, cell, target, contrast) of every pair."""
    size = drawn[0].values.shape[2]
    i, j = np.triu_indices(size, 1)
    table = np.zeros((size, size, len(grid), len(drawn), len(CONTRASTS)))
    starts = range(0, len(i), _PAIRS)
    blocks = {start: (i[start : start + _PAIRS], j[start : start + _PAIRS]) for start in starts}
    run = partial(_block, grid, drawn, declared, settings, blocks)
    for start, contrasts in in_batches(run, starts, client, "Comparing", progress):
        first, second = blocks[start]
        table[first, second], table[second, first] = contrasts
    return table


def _block(
    grid: MetricGrid,
    drawn: Sequence[Drawn],
    declared: Flags,
    settings: Settings,
    blocks: dict[int, tuple[Places, Places]],
    start: int,
) -> Array:
    """Return contrasts (way round, pair, cell, target, contrast) of a block of pairs."""
    i, j = blocks[start]
    table = np.zeros((2, len(i), len(grid), len(drawn), len(CONTRASTS)))
    for (target, systems), cells in product(enumerate(drawn), over_k(grid)):
        width = _band_width(systems, cells, i, j, settings.ci_prob)
        for cell in cells:
            contrasts: Contrasts = systems.contrasts(cell, i, j, settings)
            for name, half in (("band_lower", -width), ("band_upper", width)):
                contrasts[name] = contrasts["mean"] + half * contrasts["sd"]
            orders = declared[cell, target]
            contrasts |= {"declared": orders[i, j], "declared_other": orders[j, i]}
            for way, named in enumerate((contrasts, mirrored(contrasts))):
                columns = [named[name] for name in CONTRASTS]
                table[way, :, cell, target] = np.stack(columns, axis=-1)
    return table


def _band_width(systems: Drawn, cells: list[int], i: Places, j: Places, ci_prob: float) -> Array:
    """Half-widths in sds that hold a whole difference curve over k with the probability."""
    first, second = systems.representatives(i, j)
    values = np.ascontiguousarray(systems.values[:, cells].transpose(2, 1, 0))
    width = np.empty(len(i))
    for pairs in np.array_split(np.arange(len(i)), max(1, len(i) * values[0].size // _VALUES)):
        width[pairs] = band_width(values[first[pairs]] - values[second[pairs]], ci_prob)
    return width


def declared_orders(grid: MetricGrid, drawn: Sequence[Drawn], alpha: float) -> Flags:
    """Return which systems (row) are declared better than which: (cell, target, system, other)."""
    cells = range(len(grid))
    return np.array([[joint.declared(cell, alpha) for joint in drawn] for cell in cells])


def by_group(fit: Result, sampler: SystemSampler, rng: Rng) -> Iterator[tuple[Drawn, ...]]:
    """Yield joint draws of all systems on the questions of each group.

    The values of other questions of the same group are shared between systems as far as questions
    within groups are, all groups together.
    """
    subset = Subset.whole(fit)
    grouping, alike = fit.grouping, alike_systems(fit, subset)
    assert grouping is not None
    systems = sampler.of(subset)
    by_system = [group_draws(fit, *drawn) for drawn in enumerate(systems)]
    draws, spreads = np.stack(by_system, axis=-1), [drawn.spreads[0] for drawn in systems]
    rates = grouping.within(observed_rates(fit, subset))
    for group in range(len(grouping.labels)):
        questions, population = draws[:, group, :, 0], draws[:, group, :, 1]
        size = float(len(draws))
        drawn = drawn_together(questions, population, spreads, rates, subset.share(fit), size, rng)
        direction = fit.scale.direction
        yield tuple(replace(target, alike=alike, direction=direction) for target in drawn)


def difficulty_correlation(
    rates: Array, spread: Array, weight: Array, questions: float | None = None
) -> Array:
    """Correlation between systems of their questions' success probabilities, corrected for noise.

    The covariance of observed rates over the spread of the probabilities themselves: Spearman's
    correction for attenuation (1904), one value for each set of bootstrap weights.

    Parameters
    ----------
    rates : ndarray, shape (systems, questions)
        Observed success rates (or mean scores).
    spread : ndarray, shape (draws, systems)
        Standard deviation of the probabilities over questions, in posterior draws.
    weight : ndarray, shape (draws, questions)
        Bootstrap weights.
    questions : float, optional
        Of how many equally weighted questions a mean would vary as much; default: all.

    Returns
    -------
    ndarray, shape (draws, systems, systems)
        Correlation matrices, the nearest that are possible.

    Examples
    --------
    >>> rates = np.array([[0.0, 1.0, 0.5], [0.1, 0.9, 0.5]])
    >>> even = np.full((1, 3), 1 / 3)
    >>> difficulty_correlation(rates, np.array([[0.8, 0.8]]), even).round(3)[0, 0].tolist()
    [1.0, 0.417]
    """
    size, number = rates.shape
    questions = number if questions is None else questions
    centred = rates - rates.mean(axis=1, keepdims=True)
    second = np.stack([(centred * row) @ centred.T for row in weight])
    mean = weight @ centred.T
    covariance = second - mean[:, :, None] * mean[:, None, :]
    covariance *= (questions + 1.0) / max(questions - 1.0, 1.0)
    scale = spread[:, :, None] * spread[:, None, :]
    ratio = np.divide(covariance, scale, np.zeros_like(scale), where=scale > 0)
    correlation = np.clip(ratio, -1.0, 1.0)
    correlation[:, range(size), range(size)] = 1.0
    return _possible(correlation)


def _possible(matrices: Array) -> Array:
    """Return correlation matrices near symmetric ones: no negative eigenvalues, a diagonal of 1."""
    root = _root(matrices)
    raised = root @ root
    scale = np.sqrt(np.diagonal(raised, axis1=1, axis2=2))
    return np.asarray(raised / (scale[:, :, None] * scale[:, None, :]))


def question_noise(
    correlation: Array, covariance: Array, questions: float, size: int, rng: Rng
) -> Array:
    """Draw what other questions add to every metric of every system, jointly normal.

    Parameters
    ----------
    correlation : ndarray, shape (matrices, systems, systems)
        Taken in turn by the draws.
    covariance : ndarray, shape (systems, cells, cells)
        Of the metrics over the questions of each system.
    questions : float
        As of `difficulty_correlation`.
    size : int
        Draws.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, cells, systems)
    """
    matrices, (systems, cells) = len(correlation), covariance.shape[:2]
    root, times = _root(correlation), -(-size // matrices)
    z = rng.standard_normal((matrices, systems, times * cells))
    together = (root @ z).reshape(matrices, systems, times, cells)
    noise = np.einsum("scx,dstx->tdcs", _root(covariance), together)
    return np.asarray(noise.reshape(-1, cells, systems)[:size] / np.sqrt(questions + 1.0))


def _root(matrices: Array) -> Array:
    """Symmetric square roots of non-negative matrices."""
    value, vector = np.linalg.eigh(matrices)
    scaled = vector * np.sqrt(np.maximum(value, 0.0))[:, None, :]
    return np.asarray(scaled @ np.swapaxes(vector, 1, 2))


def reordered(values: Array, like: Array) -> Array:
    """Return draws with the ranks of other draws, column by column (Iman and Conover 1982).

    Examples
    --------
    >>> reordered(np.array([[10.0], [30.0], [20.0]]), np.array([[0.3], [0.1], [0.2]])).ravel()
    array([30., 10., 20.])
    """
    paired = np.empty_like(values)
    np.put_along_axis(paired, np.argsort(like, axis=0), np.sort(values, axis=0), axis=0)
    return paired


def drawn_together(
    questions: Array,
    population: Array,
    spreads: Sequence[QuestionSpread],
    rates: Array,
    share: Array,
    effective: float,
    rng: Rng,
) -> tuple[Drawn, Drawn]:
    """Draw means over the questions, and over questions drawn anew for all systems at once.

    Parameters
    ----------
    questions, population : ndarray, shape (draws, metrics, systems)
        Draws of means, independent between systems; over questions like these in any order.
    spreads : sequence of QuestionSpread
        Of every system.
    rates : ndarray, shape (systems, questions)
        Observed.
    share : ndarray, shape (questions,)
        Of the questions in means over them.
    effective : float
        Effective number of draws.
    rng : numpy.random.Generator
    """
    (size, cells, count), number = questions.shape, float(1.0 / (share**2).sum())
    matrices = int(np.clip(_EIGENVALUES / count**3, _FEWEST_MATRICES, _MOST_MATRICES))
    residual = rates - np.stack([spread.expected + np.zeros(len(share)) for spread in spreads])
    rate_sd, covariance = np.empty((matrices, count)), np.empty((count, cells, cells))
    for system, spread in enumerate(spreads):
        sd = spread.rate_sd
        # Without draws of p the noise of trials stays in: less is then shared, never more.
        if sd is None:
            sd = np.sqrt((residual[system] - residual[system] @ share) ** 2 @ share)
        rate_sd[:, system] = np.resize(sd, matrices)
        covariance[system] = _with_added(
            questions[:, :, system], population[:, :, system], spread.covariance, number
        )
    weight = share * rng.standard_exponential((matrices, len(share)))
    weight /= weight.sum(axis=1, keepdims=True)
    correlation = difficulty_correlation(residual, rate_sd, weight, number)
    moved = questions + question_noise(correlation, covariance, number, size, rng)
    paired = reordered(population, moved) - _shared_shift(questions, population, correlation)
    return Drawn.of(questions, questions, effective), Drawn.of(paired, population, effective)


def _shared_shift(plain: Array, alone: Array, correlation: Array) -> Array:
    """Return what of the systems' shifts from these questions to others they cannot differ in.

    A model moves every system's mean a little, by its prior and its shape. As far as the questions
    are hard for the systems alike, other questions move them alike.
    """
    shift = alone.mean(axis=0) - plain.mean(axis=0)  # (cells, systems)
    size = shift.shape[1]
    alike = (correlation.mean(axis=0).sum(axis=1) - 1.0) / max(size - 1, 1)
    return np.asarray(np.clip(alike, 0.0, 1.0) * (shift - shift.mean(axis=1, keepdims=True)))


def _with_added(plain: Array, alone: Array, covariance: Array, questions: float) -> Array:
    """Return the covariance that adds as much as one system's own draws (draws, metrics) have.

    Where questions are few, drawing others adds more than their own spread over M + 1: the
    distribution of difficulties is hardly known. Metrics without values by question have no
    covariance to begin with, and get a variance.
    """
    more = alone.var(axis=0) - plain.var(axis=0)
    between = np.diagonal(covariance) / (questions + 1.0)
    ratio = np.sqrt(np.maximum(more / np.where(between > 0.0, between, np.inf), 1.0))
    bare = np.where(between > 0.0, 0.0, np.maximum(more, 0.0)) * (questions + 1.0)
    return np.asarray(covariance * np.outer(ratio, ratio) + np.diag(bare))
