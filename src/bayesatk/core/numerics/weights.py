"""Weights of points: made, judged, changed for another prior; means and variances under them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array


def normalised(logs: Array) -> Array:
    """Weights that sum to one, from their logs up to a constant.

    Examples
    --------
    >>> normalised(np.log([1.0, 3.0])).round(12).tolist()
    [0.25, 0.75]
    """
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())


def total_moments(weight: Array, mean: Array, variance: ArrayLike = 0.0) -> tuple[Any, Any]:
    """Return mean and variance of a mixture, by the laws of total expectation and variance.

    Parameters
    ----------
    weight : ndarray, shape (points,)
        Sums to one.
    mean : ndarray, shape (points,) or (points, numbers)
        Means of the parts.
    variance : array_like, shape of `mean`, optional
        Variances of the parts; 0 of what is known at every point.

    Returns
    -------
    mean, variance : float, or ndarray of shape (numbers,)
        About the first point, so that what does not vary between points comes out as it is.

    Examples
    --------
    >>> mean, variance = total_moments(np.array([0.5, 0.5]), np.array([1.0, 3.0]), np.ones(2))
    >>> float(mean), float(variance)
    (2.0, 2.0)
    """
    gap = mean - mean[0]
    centre = weight @ gap
    within = weight @ np.broadcast_to(variance, np.shape(mean))
    return mean[0] + centre, within + weight @ (gap - centre) ** 2


def reweighted(weight: Array, log_ratio: Array) -> tuple[Array, float]:
    """Weights of the same points under another prior, and the log evidence that it adds.

    Truncated importance sampling (Ionides 2008, JCGS 17(2)): none is above one part in the root of
    their number, unless it was so before. A single point in the tails would be all of the
    posterior.

    Parameters
    ----------
    weight : ndarray, shape (points,)
        Sums to one.
    log_ratio : ndarray, shape (points,)
        Log of the other prior over this one.

    Examples
    --------
    >>> weight, more = reweighted(np.full(4, 0.25), np.log([1.0, 1.0, 1.0, 9.0]))
    >>> weight.round(3).tolist()  # the last would have 3/4, and is cut to 1/2
    [0.167, 0.167, 0.167, 0.5]
    >>> round(float(np.exp(more)), 2)  # the mean of 1, 1, 1 and, cut, 3
    1.5
    """
    top = log_ratio.max()
    share = weight * np.exp(log_ratio - top)
    total = share.sum()
    share /= total
    most = np.maximum(weight, len(weight) ** -0.5)
    # Cutting makes the others larger shares of the rest: those of them that now are too large are
    # cut in turn, until none is.
    factor, cut = 1.0, share > most
    while cut.any():
        rest = share[~cut].sum()
        if rest <= 0.0:
            break
        factor = (1.0 - most[cut].sum()) / rest
        more = factor * share > most
        if (more == cut).all():
            break
        cut = cut | more
    found = np.where(cut, most, factor * share)
    return found / found.sum(), float(np.log(total / factor) + top)


def pareto_shape(weight: Array) -> float:
    """Shape of a generalised Pareto distribution fitted to the largest weights (k-hat).

    Zhang and Stephens 2009, Technometrics 51(3), with the prior of Vehtari et al. 2024
    (arXiv:1507.02646, appendix C); on the largest ``min(n / 5, 3 sqrt(n))`` weights.
    """
    ordered = np.sort(weight)
    number = int(min(0.2 * len(ordered), 3.0 * np.sqrt(len(ordered))))
    cut = ordered[-number - 1]
    excess = ordered[-number:] - cut
    if number < 5 or not excess[0] > 0.0:
        return -np.inf if ordered[-1] <= 2.0 * cut else np.inf
    tries = 30 + int(np.sqrt(number))
    theta = 1.0 - np.sqrt(tries / (np.arange(1.0, tries + 1.0) - 0.5))
    theta = theta / (3.0 * excess[number // 4]) + 1.0 / excess[-1]
    shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
    log_likelihood = number * (np.log(-theta / shape) - shape - 1.0)
    share = normalised(log_likelihood)
    estimate = float(np.log1p(-(share @ theta) * excess).mean())
    return (number * estimate + 5.0) / (number + 10.0)
