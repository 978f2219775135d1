"""How closely a distribution must agree with a witness: as it promises, or as it says itself."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.core.engine.distribution import Empirical
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Posterior, Summary
from bayesatk.priors import BetaPrior, HyperPrior, Prior

type Array = NDArray[np.float64]
type Counts = tuple[Sequence[int] | Array, Sequence[int] | Array]  # right, and all trials

PROMISED = 1e-2  # error of quantiles beside what is stated, in widths of the 95% interval
LOOSEST = 5e-2  # the same, whatever is stated
CLOSEST = 1e-8  # absolute error next to an end of the scale
BETA = HyperPrior(families="beta")
FLAT = BetaPrior(1.0, 1.0)


def modelled(counts: Counts, prior: Prior = BETA, weight: Array | None = None) -> CountModel:
    """Return the model of right and wrong trials, pooled where the prior is of hyperparameters."""
    right, trials = (np.asarray(column, np.int64) for column in counts)
    pooling = "partial" if isinstance(prior, HyperPrior) else "none"
    both = np.stack([trials - right, right], axis=1)
    return CountModel.of(prior, both, pooling=pooling, weight=weight)


def posterior_of(counts: Counts, metrics: str, prior: Prior = BETA) -> Posterior:
    """Return the posterior of metrics."""
    return modelled(counts, prior).fit(parse(metrics))


def of_questions(counts: Counts, metric: str, prior: Prior = BETA) -> Empirical:
    """Return the distribution of the mean of a metric over these questions."""
    found = posterior_of(counts, metric, prior).distributions()[0][0]
    assert found is not None
    return found


def summary(posterior: Posterior, name: str) -> Summary:
    """Return what is known of a hyperparameter."""
    found = posterior.hyper[name]
    assert isinstance(found, Summary)
    return found


def width_of(found: Empirical) -> float:
    """Width of the central 95%."""
    return float(np.ptp(found.quantile([0.025, 0.975])))


def allowed(found: Empirical, levels: ArrayLike) -> Array:
    """Errors that quantiles may have: what is promised and what is stated, and never much."""
    stated, width = found.stated_error(levels), width_of(found)
    assert np.isfinite(stated).all()
    assert (stated > 0.0).all()
    return np.minimum(PROMISED * width + stated, LOOSEST * width) + CLOSEST


def check_points(found: Empirical, levels: ArrayLike, values: ArrayLike) -> None:
    """Quantiles are a witness's values."""
    levels = np.atleast_1d(np.asarray(levels, float))
    off = np.abs(found.quantile(levels) - np.asarray(values))
    assert (off <= allowed(found, levels)).all(), (levels, off, width_of(found))


def check_quantiles(
    found: Empirical,
    cdf: Callable[[float], float],
    levels: Sequence[float] | Array,
    slack: float = 1e-7,
) -> None:
    """A witness's distribution function, good to ``slack``, brackets every quantile."""
    errors = allowed(found, levels)
    for level, value, error in zip(levels, found.quantile(levels), errors, strict=True):
        low, high = cdf(float(value - error)), cdf(float(value + error))
        assert low - slack <= level <= high + slack, (level, value, low, high, error)


def check_against_draws(found: Empirical, draws: Array, levels: Sequence[float] | Array) -> None:
    """Draws below each quantile are as many as asked for, to five standard errors of a share."""
    draws, errors = np.sort(draws), allowed(found, levels)
    for level, value, error in zip(levels, found.quantile(levels), errors, strict=True):
        slack = 5.0 * np.sqrt(level * (1.0 - level) / len(draws))
        low = np.searchsorted(draws, value - error, "left") / len(draws)
        high = np.searchsorted(draws, value + error, "right") / len(draws)
        assert low - slack <= level <= high + slack, (level, value, low, high, error)
