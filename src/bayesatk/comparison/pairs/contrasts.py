"""Contrasts between systems, ranks of all, and tiers, from joint draws of a metric."""

from dataclasses import dataclass
from itertools import groupby, product
from typing import Literal

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Ints
from bayesatk._tools.words import share_error
from bayesatk.core.engine.distribution import Empirical, interval
from bayesatk.metrics.grid import MetricGrid

CONTRASTS = (
    "mean", "sd", "ci_lower", "ci_upper", "prob_greater", "prob_tie", "prob_below_rope",
    "prob_in_rope", "prob_above_rope", "expected_loss", "monte_carlo_error", "sd_unpaired",
    "mean_system", "mean_other", "band_lower", "band_upper", "declared",
)  # fmt: skip
# Share of the scale within which two values are the same, 9e-13: distributions are no better known.
RESOLUTION = 2.0**-40
_MAX_DIFFERENCES = 1_000_000  # draws of differences held at once: 8 MB

Contrasts = dict[str, Array]  # by name, a value for each pair


@dataclass(frozen=True)
class Settings:
    """How differences are described.

    Parameters
    ----------
    ci_prob : float
    ci_kind : {"eti", "hdi"}
    rope : float
        Half-width of the region of practical equivalence.
    direction : int
        1 where higher values are better, -1 where lower ones are.
    effective : float
        Independent draws that the draws are worth.
    """

    ci_prob: float
    ci_kind: Literal["eti", "hdi"]
    rope: float
    direction: int
    effective: float


def pair_contrasts(grid: MetricGrid, values: Array, declared: Flags, settings: Settings) -> Array:
    """Return contrasts (system, other, cell, target, contrast) of every pair, in both orders.

    Parameters
    ----------
    grid : MetricGrid
    values : ndarray, shape (target, cell, system, draws)
    declared : ndarray of bool, shape (target, cell, system, other)
        Which systems are declared better than which.
    settings : Settings
    """
    targets, cells, systems, size = values.shape
    first, second = np.nonzero(~np.eye(systems, dtype=bool))
    table = np.zeros((systems, systems, cells, targets, len(CONTRASTS)))
    mean, sd = values.mean(axis=3), values.std(axis=3, ddof=1)
    for target, curve in product(range(targets), over_k(grid)):
        step = max(1, _MAX_DIFFERENCES // (size * len(curve)))
        for start in range(0, len(first), step):
            i, j = first[start : start + step], second[start : start + step]
            draws = values[target, curve]
            contrasts = of_differences(draws[:, i] - draws[:, j], settings)
            means, sds = mean[target, curve], sd[target, curve]
            orders = declared[target, curve].astype(float)
            contrasts |= {"mean_system": means[:, i], "mean_other": means[:, j]}
            contrasts["sd_unpaired"] = np.hypot(sds[:, i], sds[:, j])
            contrasts["declared"] = orders[:, i, j]
            rows = np.stack([contrasts[name] for name in CONTRASTS], axis=-1)
            table[i[:, None], j[:, None], curve, target] = np.swapaxes(rows, 0, 1)
    return table


def of_differences(gap: Array, settings: Settings) -> Contrasts:
    """Return contrasts of draws of differences (points of a curve, pairs, draws).

    Greater and above mean that the first is better.
    """
    gap = np.where(np.abs(gap) <= _resolution(gap), 0.0, gap)
    lead = settings.direction * gap
    margin = settings.rope + RESOLUTION * (settings.rope > 0.0)
    above, below = ((way * lead > margin).mean(axis=-1) for way in (1, -1))
    tie, inside = (gap == 0.0).mean(axis=-1), (np.abs(lead) <= margin).mean(axis=-1)
    mean, sd = gap.mean(axis=-1), gap.std(axis=-1, ddof=1)
    low, high = _ends(gap, settings)
    band = low, high
    if len(gap) > 1:
        width = band_width(gap, settings.ci_prob) * sd
        band = mean - width, mean + width
    better = (lead > 0.0).mean(axis=-1) + 0.5 * tie
    return {
        "mean": mean,
        "sd": sd,
        "ci_lower": low,
        "ci_upper": high,
        "prob_greater": better,
        "prob_tie": tie,
        "prob_below_rope": below,
        "prob_in_rope": inside,
        "prob_above_rope": above,
        "expected_loss": np.maximum(-lead, 0.0).mean(axis=-1),
        "monte_carlo_error": share_error(better, settings.effective),
        "band_lower": band[0],
        "band_upper": band[1],
    }


def _resolution(values: Array) -> float:
    """Return the distance within which two values are the same."""
    return RESOLUTION * max(1.0, float(np.abs(values).max(initial=0.0)))


def _ends(gap: Array, settings: Settings) -> tuple[Array, Array]:
    """Return the ends of intervals along the last axis."""
    if settings.ci_kind == "eti":
        tail = 0.5 * (1.0 - settings.ci_prob)
        low, high = np.quantile(gap, [tail, 1.0 - tail], axis=-1)
        return low, high
    rows = gap.reshape(-1, gap.shape[-1])
    ends = np.array([interval(Empirical(row), settings.ci_prob, "hdi") for row in rows])
    return ends[:, 0].reshape(gap.shape[:-1]), ends[:, 1].reshape(gap.shape[:-1])


def over_k(grid: MetricGrid) -> list[list[int]]:
    """Cells of the grid that are one metric at several k.

    Examples
    --------
    >>> over_k(MetricGrid.of(["pass@1,4", "mean"]))
    [[0, 1], [2]]
    """
    metrics = list(enumerate(grid))
    ordered = sorted(metrics, key=lambda pair: (pair[1].family.variable, pair[1].tau or 0.0))
    groups = groupby(ordered, key=lambda pair: (pair[1].family.variable, pair[1].tau))
    return sorted([cell for cell, _ in group] for _, group in groups)


def band_width(draws: Array, probability: float) -> Array:
    """Half-widths in sds that hold whole curves with this probability.

    Parameters
    ----------
    draws : ndarray, shape (points, ..., draws)
        Of curves.
    probability : float

    Returns
    -------
    ndarray, shape (...)
        Quantile of the largest standardised deviation over the points.

    Examples
    --------
    One point is an interval: 1.96 sds for 95% of a normal.

    >>> z = np.random.default_rng(0).standard_normal((1, 200_000))
    >>> band_width(z, 0.95).round(2).item()
    1.96
    """
    sd = draws.std(axis=-1, keepdims=True)
    centred = np.abs(draws - draws.mean(axis=-1, keepdims=True))
    centred /= np.where(sd > 1e-12, sd, np.inf)
    return np.asarray(np.quantile(centred.max(axis=0), probability, axis=-1))


def _in_resolution_units(values: Array) -> Ints:
    """Round values to whole multiples of the resolution, so that rounding errors make no order."""
    return np.rint(values / _resolution(values)).astype(np.int64)


def _tied_places(values: Array) -> tuple[Indices, Indices, Indices]:
    """Return systems in their order by draw, the best first, and the first and last place of each.

    Places count from 0; those who tie share theirs. As `scipy.stats.rankdata`, which takes a second
    to import.

    Examples
    --------
    >>> [places.tolist() for places in _tied_places(np.array([[0.1, 0.5, 0.9, 0.5]]))]
    [[[2, 1, 3, 0]], [[0, 1, 1, 3]], [[0, 2, 2, 3]]]
    """
    rounded = _in_resolution_units(values)
    order = np.argsort(-rounded, axis=1, kind="stable")
    ordered, size = np.take_along_axis(rounded, order, axis=1), rounded.shape[1]
    differs, ends = ordered[:, 1:] != ordered[:, :-1], np.ones((len(rounded), 1), bool)
    first = np.where(np.hstack([ends, differs]), np.arange(size), 0)
    last = np.where(np.hstack([differs, ends]), np.arange(size), size)
    worst = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    return order, np.maximum.accumulate(first, axis=1), worst


def rank_draws(values: Array) -> Array:
    """Ranks in every draw (draws, systems), 1 for the highest; ties share the mean of theirs.

    Examples
    --------
    >>> rank_draws(np.array([[0.5, 0.9, 0.5]])).tolist()
    [[2.5, 1.0, 2.5]]
    """
    order, best, worst = _tied_places(values)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, 1.0 + 0.5 * (best + worst), axis=1)
    return ranks


def rank_probabilities(values: Array) -> Array:
    """Probability of every rank (systems, ranks); systems that tie are equally often at each.

    Examples
    --------
    >>> rank_probabilities(np.array([[1.0, 1.0, 0.5], [1.0, 0.8, 0.5]]))[:, 0].tolist()
    [0.75, 0.25, 0.0]
    """
    order, best, worst = _tied_places(values)
    size = order.shape[1]
    share = 1.0 / ((worst - best + 1) * len(order))
    row = order * (size + 1)
    starts, ends = (
        np.bincount((row + step).ravel(), share.ravel(), size * (size + 1))
        for step in (best, worst + 1)
    )
    chance = np.cumsum((starts - ends).reshape(size, size + 1)[:, :-1], axis=1)
    return np.maximum(chance, 0.0)


def separated(
    values: Array, error: float, unlike: Flags | None = None
) -> tuple[Flags, list[float]]:
    """Declare which systems (row) are better than which (column).

    Pairs are declared one after the other, the surest first, as long as all those declared so far
    are right together with probability ``1 - error`` or more; never those that are `unlike`.

    Parameters
    ----------
    values : ndarray, shape (draws, systems)
        Joint draws.
    error : float
    unlike : ndarray of bool, shape (systems, systems), optional

    Returns
    -------
    declared : ndarray of bool, shape (systems, systems)
    all_right : list of float
        Probability that the first 1, 2, ... orders are right together: of those that are declared
        and, unless these are all, of one more.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> declared, all_right = separated(rng.standard_normal((4000, 3)) + [0.0, 9.0, 8.9], 0.05)
    >>> declared.astype(int).tolist(), np.round(all_right, 2).tolist()
    ([[0, 0, 0], [1, 0, 0], [1, 0, 0]], [1.0, 1.0, 0.53])
    """
    rounded, size = _in_resolution_units(values), values.shape[1]
    order = np.argsort(-rounded.mean(axis=0), kind="stable")
    chance = np.full((size, size), np.inf)
    for rank, above in enumerate(order):
        below = order[rank + 1 :]
        chance[above, below] = (rounded[:, [above]] <= rounded[:, below]).mean(axis=0)
    if unlike is not None:
        chance[unlike] = np.inf
    declared, all_right = np.zeros((size, size), bool), []
    failed, candidates = np.zeros(len(rounded), bool), int(np.isfinite(chance).sum())
    for pair in np.argsort(chance, axis=None, kind="stable")[:candidates]:
        above, below = divmod(int(pair), size)
        failed |= rounded[:, above] <= rounded[:, below]
        all_right.append(1.0 - float(failed.mean()))
        if failed.mean() > error:
            break
        declared[above, below] = True
    return declared, all_right


def tiers_of(declared: Flags, order: Indices) -> Ints:
    """Tier of every system, 1 for the best, from the pairs that are declared.

    Systems are taken in the order given, the best first; a tier ends where the next system is
    declared worse than one of it. So no two systems of a tier are declared different.

    Examples
    --------
    >>> declared = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], bool)
    >>> tiers_of(declared, np.array([0, 1, 2])).tolist()
    [1, 1, 2]
    """
    tier, start, level = np.empty(len(order), np.int64), 0, 1
    for rank, system in enumerate(order):
        if declared[order[start:rank], system].any():
            start, level = rank, level + 1
        tier[system] = level
    return tier
