"""Systems on the questions that all of them tried: joint draws of all, and contrasts of pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.batches import in_batches
from bayesatk.comparison.pairs.contrasts import (
    CONTRASTS,
    Contrasts,
    Drawn,
    Independent,
    Settings,
    band_width,
    mirrored,
    over_k,
    tiers,
)
from bayesatk.comparison.pairs.draws import (
    Subset,
    SystemSampler,
    data_keys,
    even_shares,
    group_draws,
    observed_rates,
    stored_draws,
)
from bayesatk.comparison.pairs.pairing import drawn_together
from bayesatk.metrics.grid import MetricGrid
from bayesatk.results.result import Result

Array = NDArray[np.float64]
Places = NDArray[np.intp]
_PAIRS = 2000  # compared at once: a task of a few seconds
_VALUES = 4_000_000  # of curves held at once


def paired_draws(
    fit: Result, part: Subset, rng: np.random.Generator, sampler: SystemSampler | None = None,
    client: Any = None,
) -> tuple[Drawn, ...]:  # fmt: skip
    """Return joint draws of a part by target: of these questions, of others, of new groups."""
    keys = data_keys(fit, part)
    alike = np.array([keys.index(key) for key in keys])
    if fit.joint:
        stored = (_stored(fit, part, target) for target in range(len(fit.targets)))
        return tuple(replace(joint, alike=alike) for joint in stored)
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
        even = even_shares(of_groups.shape[1])
        new = drawn_together(questions, target, spreads[1], of_groups, even, effective, rng)
        drawn = *drawn, new[1]
    if fit.sampled and len(systems) == len(fit.systems) and part.kept.all():
        drawn = _stored(fit, part, 0), *drawn[1:]
    drawn = tuple(replace(joint, alike=alike) for joint in drawn)
    if fit.judges is not None:  # systems of one judge are not independent
        return drawn
    cells = set.intersection(*(set(draws.exact) for draws in systems))
    exact = {cell: [draws.exact[cell] for draws in systems] for cell in cells}
    return Independent.among(drawn[0], exact), *drawn[1:]


def _stored(fit: Result, part: Subset, target: int) -> Drawn:
    """Draws of the metrics that the result holds, paired between systems as they are."""
    values = stored_draws(fit, fit.grid)[target][..., part.systems]
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
    run = partial(_block, grid, drawn, settings, blocks)
    for start, contrasts in in_batches(run, starts, client, "Comparing", progress):
        first, second = blocks[start]
        table[first, second], table[second, first] = contrasts
    return table


def _block(
    grid: MetricGrid,
    drawn: Sequence[Drawn],
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


def rank_table(grid: MetricGrid, drawn: Sequence[Drawn]) -> Array:
    """Return the probability of every rank (system, rank, cell, target); 1 is best."""
    cells, alike = range(len(grid)), drawn[0].alike
    by_target = [np.stack([systems.ranks(cell) for cell in cells], axis=-1) for systems in drawn]
    ranks = np.stack(by_target, axis=-1)
    return np.stack([ranks[alike == number].mean(axis=0) for number in alike])


def tier_table(grid: MetricGrid, drawn: Sequence[Drawn], alpha: float) -> NDArray[np.int64]:
    """Return the tier of every system (system, cell, target)."""
    observed = drawn[0].values.mean(axis=0)
    by_target = [
        [tiers(systems.values[:, cell], alpha, observed[cell]) for systems in drawn]
        for cell in range(len(grid))
    ]
    return np.moveaxis(np.array(by_target), -1, 0)


def by_group(
    fit: Result, sampler: SystemSampler, rng: np.random.Generator
) -> Iterator[tuple[Drawn, ...]]:
    """Yield joint draws of all systems on the questions of each group.

    The values of other questions of the same group are shared between systems as far as questions
    within groups are, all groups together.
    """
    subset = Subset.whole(fit)
    grouping, keys = fit.grouping, data_keys(fit, subset)
    assert grouping is not None
    alike = np.array([keys.index(key) for key in keys])
    systems = sampler.of(subset)
    by_system = [group_draws(fit, *drawn) for drawn in enumerate(systems)]
    draws, spreads = np.stack(by_system, axis=-1), [drawn.spreads[0] for drawn in systems]
    rates = grouping.within(observed_rates(fit, subset))
    for group in range(len(grouping.labels)):
        questions, population = draws[:, group, :, 0], draws[:, group, :, 1]
        size = float(len(draws))
        drawn = drawn_together(questions, population, spreads, rates, subset.share(fit), size, rng)
        yield tuple(replace(target, alike=alike) for target in drawn)
