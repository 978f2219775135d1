"""What joint draws of all systems say: ranks, bands over k, and tiers that can be told apart."""

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.contrasts import round_to_resolution
from bayesatk.metrics.grid import MetricGrid

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def over_k(grid: MetricGrid) -> list[list[int]]:
    """Cells of the grid that are one metric at several k.

    Examples
    --------
    >>> over_k(MetricGrid.of(["pass@1,4", "bayes"]))
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
    draws : ndarray, shape (..., points, draws)
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
    return np.asarray(np.quantile(centred.max(axis=-2), probability, axis=-1))


def tiers(draws: Array, alpha: float, observed: Array | None = None) -> Ints:
    """Tier of every system, 1 for the best: the systems of a tier cannot be separated.

    The systems are put in the order of their means, and a line is drawn where every system above is
    ahead of every system below with probability ``1 - alpha/2`` or more: two identical systems are
    separated in about a share ``alpha`` of evaluations.

    Parameters
    ----------
    draws : ndarray, shape (draws, systems)
        Joint draws.
    alpha : float
    observed : ndarray, shape (systems,), optional
        Means over the questions that were asked: no line is drawn above a system that does as well
        on these.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tiers(rng.standard_normal((4000, 3)) + [0.0, 9.0, 8.9], 0.05).tolist()
    [2, 1, 1]
    """
    site, _ = round_to_resolution(draws)  # what doubles cannot resolve is a tie
    order = np.argsort(-draws.mean(axis=0), kind="stable")
    ranked = site[:, order]
    lowest = np.minimum.accumulate(ranked, axis=1)[:, :-1]
    highest = np.maximum.accumulate(ranked[:, ::-1], axis=1)[:, ::-1][:, 1:]
    apart = (lowest > highest).mean(axis=0) >= 1.0 - alpha / 2.0
    if observed is not None:
        asked = round_to_resolution(observed)[0][order]
        behind = np.maximum.accumulate(asked[::-1])[::-1]
        apart &= np.minimum.accumulate(asked)[:-1] > behind[1:]
    found = np.empty(len(order), np.int64)
    found[order] = 1 + np.concatenate([[0], np.cumsum(apart)])
    return found


def rank_draws(values: Array) -> Array:
    """Ranks in every draw (draws, systems), 1 for the highest; ties share the mean of theirs.

    Examples
    --------
    >>> rank_draws(np.array([[0.5, 0.9, 0.5]])).tolist()
    [[2.5, 1.0, 2.5]]
    """
    site, _ = round_to_resolution(values)  # what doubles cannot resolve is a tie
    found = np.empty(values.shape)
    for own, row in zip(found, site, strict=True):
        ordered = np.sort(row)
        below = np.searchsorted(ordered, row, side="left")
        upto = np.searchsorted(ordered, row, side="right")
        own[:] = len(row) - 0.5 * (below + upto - 1.0)
    return found


def separated(values: Array, error: float) -> NDArray[np.bool_]:
    """Which systems (row) are declared better than which (column).

    Pairs are declared one after the other, the surest first, as long as all those declared so far
    are right together with probability ``1 - error`` or more.

    Parameters
    ----------
    values : ndarray, shape (draws, systems)
        Joint draws.
    error : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> separated(rng.standard_normal((4000, 3)) + [0.0, 9.0, 8.9], 0.05).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """
    site, _ = round_to_resolution(values)
    size = site.shape[1]
    order = np.argsort(-site.mean(axis=0), kind="stable")
    wrong = np.full((size, size), np.inf)
    for place, above in enumerate(order):
        below = order[place + 1 :]
        wrong[above, below] = (site[:, [above]] <= site[:, below]).mean(axis=0)
    found = np.zeros((size, size), bool)
    failed = np.zeros(len(site), bool)
    for pair in np.argsort(wrong, axis=None, kind="stable"):
        above, below = divmod(int(pair), size)
        if wrong[above, below] > error:
            break
        failed |= site[:, above] <= site[:, below]
        if failed.mean() > error:
            break
        found[above, below] = True
    return found


def tiers_of(declared: NDArray[np.bool_], means: Array) -> Ints:
    """Tier of every system, 1 for the best, from the pairs that are declared.

    Systems are taken in the order of their means; a tier ends where the next system is declared
    worse than one of it. So no two systems of a tier are declared different.

    Examples
    --------
    >>> declared = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], bool)
    >>> tiers_of(declared, np.array([0.9, 0.8, 0.1])).tolist()
    [1, 1, 2]
    """
    order = np.argsort(-means, kind="stable")
    found, start, level = np.empty(len(order), np.int64), 0, 1
    for place, system in enumerate(order):
        if declared[order[start:place], system].any():
            start, level = place, level + 1
        found[system] = level
    return found


def share_upto(ranks: Array, last: int) -> Array:
    """Probability of a rank up to some, ties sharing theirs.

    Examples
    --------
    >>> share_upto(np.array([[1.5, 1.5, 3.0], [1.0, 2.0, 3.0]]), 1).tolist()
    [0.75, 0.25, 0.0]
    """
    found = np.zeros(ranks.shape[1])
    for row in ranks:
        # Systems that tie for ranks a to b are each at each of them equally often.
        many = (row[:, None] == row[None, :]).sum(axis=1)
        lowest = row - 0.5 * (many - 1.0)
        found += np.clip((last + 1.0 - lowest) / many, 0.0, 1.0)
    return found / len(ranks)
