"""Mixtures over hyperparameters of distributions given by their first three cumulants.

Given the hyperparameters, a mean over questions is a sum of independent terms. Its distribution is
approximated by a shifted gamma with the same mean, variance and third cumulant (Pearson's type
III), reflected if the third cumulant is negative. That is exact for a normal and, where a Beta is
not, in the limit of many questions that nearly all or nearly never are solved.
"""

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.engine.distribution import Empirical

_GROUPS_PER_SIDE = 50  # of mixture components, at equal steps of normal scores
_OUTERMOST_SCORE = 4.5  # normal score of the outermost group and quantile
_QUANTILES_PER_GROUP = 60
_CUBE_ROOT_SKEWNESS_MAX = (
    0.4  # below it the cube root of a gamma is normal, up to 1e-4 in probability
)
# Errors of quantiles in widths of the central 95%: of the gamma approximation of a component, which
# doubles at a skewness of 0.25, and of dividing the mixture into groups.
_SHAPE_ERROR, TABLE_ERROR = 5e-3, 1e-3
_SKEWNESS_SCALE, _SKEWNESS_MAX = 0.25, 20.0


def cumulant_mixture(
    weight: Array,
    mean: Array,
    variance: Array,
    third: Array,
    ends: tuple[float, float],
    draws: float,
) -> Empirical:
    """Return a mixture over weighted hyperparameters of gammas matched to three cumulants.

    Each gamma is represented by quantiles at equal steps of normal scores.

    Parameters
    ----------
    weight : ndarray, shape (points,)
        Weights of the hyperparameters.
    mean, variance, third : ndarray, shape (points,)
        Cumulants given the hyperparameters.
    ends : (float, float)
        Range of the quantity.
    draws : float
        Effective number of independent draws of the hyperparameters.
    """
    if not variance.any():
        return Empirical(mean, weight, draws, relative_error=TABLE_ERROR)
    between_variance, within_variance = (
        float(weight @ (mean - weight @ mean) ** 2),
        float(weight @ variance),
    )
    within_share = within_variance / (between_variance + within_variance)
    mean_square_skewness = float(
        weight @ skewness(variance, third).clip(-_SKEWNESS_MAX, _SKEWNESS_MAX) ** 2
    )
    shape_error = min(
        _SHAPE_ERROR * (1.0 + within_share * mean_square_skewness / _SKEWNESS_SCALE**2), 1.0
    ) * np.sqrt(within_share)
    cumulative = ndtr(np.linspace(-_OUTERMOST_SCORE, _OUTERMOST_SCORE, _QUANTILES_PER_GROUP + 1))
    cumulative[[0, -1]] = 0.0, 1.0
    score = ndtri(0.5 * (cumulative[1:] + cumulative[:-1]))
    share, *cumulants = _merge_components(weight, mean, variance, third)
    values = matched_quantiles(score, *(cumulant[:, None] for cumulant in cumulants))
    return Empirical(
        np.clip(values, *ends).ravel(),
        np.outer(share, np.diff(cumulative)).ravel(),
        draws,
        np.sqrt(1.0 - within_share),
        TABLE_ERROR + shape_error,
    )


def skewness(variance: Array, third: Array) -> Array:
    """Skewness; 0 where the variance is 0."""
    scale = np.maximum(variance, 1e-200) ** 1.5
    return np.asarray(np.where(variance > 1e-200, third / scale, 0.0))


def matched_quantiles(score: Array, mean: Array, variance: Array, third: Array) -> Array:
    """Quantiles of gammas matched to three cumulants, at normal scores of their probabilities.

    Examples
    --------
    An exponential distribution has variance 1 and third cumulant 2:

    >>> values = matched_quantiles(np.zeros(1), np.ones(1), np.ones(1), np.full(1, 2.0))
    >>> values.round(6).tolist()  # log(2)
    [0.693147]
    """
    score, skew, sd = np.broadcast_arrays(
        score, skewness(variance, third), np.sqrt(np.maximum(variance, 0.0))
    )
    nonzero_skew = np.where(np.abs(skew) < 1e-6, 1e-6, skew)
    # The cube root of a gamma is nearly normal (Wilson and Hilferty 1931, PNAS 17).
    z = ((1.0 + (score - nonzero_skew / 6.0) * nonzero_skew / 6.0) ** 3 - 1.0) * (
        2.0 / nonzero_skew
    )
    strongly_skewed = np.abs(skew) >= _CUBE_ROOT_SKEWNESS_MAX
    if strongly_skewed.any():
        skew, shape = skew[strongly_skewed], 4.0 / skew[strongly_skewed] ** 2
        gamma_quantile = gammaincinv(shape, ndtr(np.sign(skew) * score[strongly_skewed]))
        z[strongly_skewed] = (gamma_quantile - shape) * (0.5 * skew)
    return np.asarray(mean + sd * z)


def _merge_components(
    weight: Array, mean: Array, variance: Array, third: Array
) -> tuple[Array, Array, Array, Array]:
    """Merge components with neighbouring means; returns weights and cumulants of the groups."""
    order = np.argsort(mean)
    weight, mean, variance, third = (x[order] for x in (weight, mean, variance, third))
    outermost = ndtr(-_OUTERMOST_SCORE)
    mid_probability = np.clip(
        (np.cumsum(weight) - 0.5 * weight) / weight.sum(), outermost, 1.0 - outermost
    )
    label: Indices = (ndtri(mid_probability) * (_GROUPS_PER_SIDE / _OUTERMOST_SCORE)).astype(
        np.intp
    )
    label = np.cumsum(np.diff(label, prepend=label[0]) > 0)
    total = np.maximum(np.bincount(label, weight), 1e-300)

    def averaged(values: Array) -> Array:
        return np.asarray(np.bincount(label, weight * values) / total)

    centre = averaged(mean)
    gap = mean - centre[label]
    spread = averaged(variance + gap**2)
    return total / total.sum(), centre, spread, averaged(third + 3.0 * variance * gap + gap**3)
