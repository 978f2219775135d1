"""What joint draws of all systems say: bands over k, and tiers that can be told apart."""

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from bayesatk.metrics import MetricGrid

Array = NDArray[np.float64]


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


def band_width(draws: Array, probability: float) -> float:
    """Half-width in sds that holds whole curves with this probability.

    Parameters
    ----------
    draws : ndarray, shape (draws, points)
        Of one curve.
    probability : float

    Returns
    -------
    float
        Quantile of the largest standardised deviation over the points.

    Examples
    --------
    One point is an interval: 1.96 sds for 95% of a normal.

    >>> z = np.random.default_rng(0).standard_normal((200_000, 1))
    >>> round(band_width(z, 0.95), 2)
    1.96
    """
    sd = draws.std(axis=0)
    varying = sd > 1e-12
    if not varying.any():
        return 0.0
    centred = np.abs(draws[:, varying] - draws[:, varying].mean(axis=0)) / sd[varying]
    return float(np.quantile(centred.max(axis=1), probability))


def tiers(draws: Array, alpha: float) -> NDArray[np.int64]:
    """Tier of every system, 1 for the best: the systems of a tier cannot be separated.

    The systems are put in the order of their means, and a line is drawn where every system above is
    ahead of every system below with probability ``1 - alpha/2`` or more: two identical systems are
    separated in about a share ``alpha`` of evaluations.

    Parameters
    ----------
    draws : ndarray, shape (draws, systems)
        Joint draws.
    alpha : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tiers(rng.standard_normal((4000, 3)) + [0.0, 9.0, 8.9], 0.05).tolist()
    [2, 1, 1]
    """
    order = np.argsort(-draws.mean(axis=0), kind="stable")
    ranked = draws[:, order]
    lowest = np.minimum.accumulate(ranked, axis=1)[:, :-1]
    highest = np.maximum.accumulate(ranked[:, ::-1], axis=1)[:, ::-1][:, 1:]
    apart = (lowest > highest).mean(axis=0) >= 1.0 - alpha / 2.0
    found = np.empty(len(order), np.int64)
    found[order] = 1 + np.concatenate([[0], np.cumsum(apart)])
    return found
