"""How closely a distribution must agree with a witness: as it promises, or as it says itself."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.core.engine.distribution import Quantity
from bayesatk.core.engine.mixture import expected_credits
from bayesatk.core.engine.population import on_grid

Array = NDArray[np.float64]

PROMISED = 1e-3  # error of quantiles, in widths of the 95% interval
HARD = 2e-3  # the same where densities have edges or poles inside the scale


def width_of(found: Quantity) -> float:
    """Width of the central 95%."""
    return float(np.ptp(found.quantile([0.025, 0.975])))


def allowed(found: Quantity, levels: ArrayLike, promised: float = PROMISED) -> Array:
    """Errors that quantiles may have: what is promised, or stated where that is more."""
    stated = found.stated_error(levels)
    assert np.isfinite(stated).all()
    assert (stated > 0.0).all()
    return np.maximum(stated, promised * width_of(found))


def check_points(
    found: Quantity,
    levels: ArrayLike,
    values: ArrayLike,
    promised: float = PROMISED,
    blur: float | Array = 1e-9,
) -> None:
    """Quantiles are a witness's values; ``blur`` is the error of the witness."""
    levels = np.atleast_1d(np.asarray(levels, float))
    off = np.abs(found.quantile(levels) - np.asarray(values))
    limit = allowed(found, levels, promised) + blur
    assert (off <= limit).all(), (levels, off, limit, width_of(found))


def check_quantiles(
    found: Quantity,
    cdf: Callable[[float], float],
    levels: Sequence[float] | Array,
    promised: float = PROMISED,
    slack: float = 1e-7,
    blur: float = 0.0,
) -> None:
    """A witness's distribution function brackets every quantile.

    ``slack`` is the witness's error as a probability, ``blur`` as a value.
    """
    errors = allowed(found, levels, promised) + blur
    for level, value, error in zip(levels, found.quantile(levels), errors, strict=True):
        low, high = cdf(float(value - error)), cdf(float(value + error))
        assert low - slack <= level <= high + slack, (level, value, low, high, error)


def check_against_draws(
    found: Quantity,
    draws: Array,
    levels: Sequence[float] | Array,
    promised: float = PROMISED,
) -> None:
    """Draws below each quantile are as many as asked for, to five standard errors of a share."""
    draws, errors = np.sort(draws), allowed(found, levels, promised)
    for level, value, error in zip(levels, found.quantile(levels), errors, strict=True):
        slack = 5.0 * np.sqrt(level * (1.0 - level) / len(draws))
        low = np.searchsorted(draws, value - error, "left") / len(draws)
        high = np.searchsorted(draws, value + error, "right") / len(draws)
        assert low - slack <= level <= high + slack, (level, value, low, high, error)


def population_distributions(posterior, credits):
    """Posterior distributions of the population targets under single Betas."""
    return on_grid(posterior, lambda nodes: expected_credits(nodes, credits))


def icc_distribution(posterior):
    return on_grid(posterior, lambda nodes: [one[:, None] for one in nodes.overall()[2:]])[0]
