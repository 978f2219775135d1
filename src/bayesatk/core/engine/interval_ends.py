"""Credible intervals of anything with quantiles, and the error of their ends."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from bayesatk._tools.arrays import Array
from bayesatk.core.engine.distribution import Quantity


def interval(quantity: Quantity, probability: float, kind: str) -> tuple[float, float]:
    """Equal-tailed (``"eti"``) or highest-density (``"hdi"``) interval.

    Examples
    --------
    >>> from bayesatk.core.engine.distribution import Empirical
    >>> uniform = Empirical((np.arange(1000) + 0.5) / 1000)
    >>> [round(end, 9) for end in interval(uniform, 0.9, "eti")]
    [0.05, 0.95]
    """
    low, high = quantity.quantile(_levels(quantity, probability, kind))
    return float(low), float(high)


def measured_interval(
    quantity: Quantity, probability: float, kind: str
) -> tuple[tuple[float, float], float]:
    """Interval, and the error of its ends: that of the quantiles there."""
    levels = _levels(quantity, probability, kind)
    low, high = quantity.quantile(levels)
    error = float(quantity.stated_error(levels).max())
    return (float(low), float(high)), error


def _levels(quantity: Quantity, probability: float, kind: str) -> Array:
    """Probabilities below the ends of an interval; the shortest one's by search."""
    tail = 1.0 - probability
    if kind == "eti":
        return np.array([0.5 * tail, 1.0 - 0.5 * tail])

    def width(start: ArrayLike) -> Array:
        start = np.asarray(start)
        return quantity.quantile(start + probability) - quantity.quantile(start)

    starts = np.linspace(0.0, tail, 101)
    widths = width(starts)
    best = int(np.argmin(widths))
    around = (starts[max(best - 1, 0)], starts[min(best + 1, 100)])
    found = minimize_scalar(
        lambda p: float(width(p)), bounds=around, method="bounded", options={"xatol": 1e-9}
    )
    start = float(found.x) if found.fun < widths[best] else float(starts[best])
    return np.array([start, start + probability])
