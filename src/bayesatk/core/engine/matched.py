"""Distributions of numbers that are known at weighted points by three cumulants.

Given a point a mean over questions is a sum of independent terms. It is taken to be a gamma with
its mean, variance and third cumulant, shifted, and turned round where the third cumulant is
negative: exact for a normal, and in the limit for many questions that are nearly all solved, or
nearly none, where a Beta is not (Pearson's type III).
"""

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.engine.distribution import Empirical

_PARTS, _OUTER = 50, 4.5  # of a mixture to either side, even in normal quantiles up to that one
_WITHIN = 60  # quantiles of a part
_SKEW, _MOST_SKEW = 0.25, 20.0  # skewness at which that error doubles, and that counts at most
_GENTLE = 0.4  # skewness below which the cube root of a gamma is normal, to 1e-4 of its probability
_SHAPE, TABLE = 5e-3, 1e-3  # of the width of an interval: error of the shape given a point, and
# of so many parts


def known_at_points(
    weight: Array, mean: Array, variance: Array, third: Array, ends: tuple[float, float],
    draws: float,
) -> Empirical:  # fmt: skip
    """Return the distribution of a number by its first cumulants at weighted points.

    Each matched gamma is taken at quantiles that are even in normal scores. The error for the
    shape of what is left given a point is a two hundredth of the width, more where it is skew.

    Parameters
    ----------
    weight, mean, variance, third : ndarray, shape (points,)
    ends : (float, float)
        Range of the number.
    draws : float
        Independent draws that the points are worth.
    """
    if not variance.any():
        return Empirical(mean, weight, draws, rough=TABLE)
    between, within = float(weight @ (mean - weight @ mean) ** 2), float(weight @ variance)
    inside = within / (between + within)
    squares = float(weight @ skewness(variance, third).clip(-_MOST_SKEW, _MOST_SKEW) ** 2)
    rough = min(_SHAPE * (1.0 + inside * squares / _SKEW**2), 1.0) * np.sqrt(inside)
    upto = ndtr(np.linspace(-_OUTER, _OUTER, _WITHIN + 1))
    upto[[0, -1]] = 0.0, 1.0
    score = ndtri(0.5 * (upto[1:] + upto[:-1]))
    share, *cumulants = _merged(weight, mean, variance, third)
    values = matched_quantiles(score, *(cumulant[:, None] for cumulant in cumulants))
    return Empirical(
        np.clip(values, *ends).ravel(), np.outer(share, np.diff(upto)).ravel(), draws,
        np.sqrt(1.0 - inside), TABLE + rough,
    )  # fmt: skip


def skewness(variance: Array, third: Array) -> Array:
    """Skewness, of what has a variance."""
    scale = np.maximum(variance, 1e-200) ** 1.5
    return np.asarray(np.where(variance > 1e-200, third / scale, 0.0))


def matched_quantiles(score: Array, mean: Array, variance: Array, third: Array) -> Array:
    """Quantiles of the matched gammas at normal scores of their probabilities, elementwise.

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
    small = np.where(np.abs(skew) < 1e-6, 1e-6, skew)
    # Of Wilson and Hilferty 1931, PNAS 17: the cube root of a gamma is nearly normal.
    z = ((1.0 + (score - small / 6.0) * small / 6.0) ** 3 - 1.0) * (2.0 / small)
    steep = np.abs(skew) >= _GENTLE
    if steep.any():
        skew, shape = skew[steep], 4.0 / skew[steep] ** 2
        turned = gammaincinv(shape, ndtr(np.sign(skew) * score[steep]))
        z[steep] = (turned - shape) * (0.5 * skew)
    return np.asarray(mean + sd * z)


def _merged(
    weight: Array, mean: Array, variance: Array, third: Array
) -> tuple[Array, Array, Array, Array]:
    """Return fewer parts of a mixture: neighbours with about the same mean are one."""
    order = np.argsort(mean, kind="stable")
    weight, mean, variance, third = (x[order] for x in (weight, mean, variance, third))
    outer = ndtr(-_OUTER)
    middle = np.clip((np.cumsum(weight) - 0.5 * weight) / weight.sum(), outer, 1.0 - outer)
    label: Indices = (ndtri(middle) * (_PARTS / _OUTER)).astype(np.intp)
    _, label = np.unique(label, return_inverse=True)
    total = np.maximum(np.bincount(label, weight), 1e-300)

    def averaged(values: Array) -> Array:
        return np.asarray(np.bincount(label, weight * values) / total)

    centre = averaged(mean)
    gap = mean - centre[label]
    spread = averaged(variance + gap**2)
    return total / total.sum(), centre, spread, averaged(third + 3.0 * variance * gap + gap**3)
