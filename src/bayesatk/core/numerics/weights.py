"""Importance weights: normalised, truncated, diagnosed; moments of weighted mixtures."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Indices, exp_or_zero


def normalised(logs: Array) -> Array:
    """Weights that sum to one, from their logs up to a constant.

    Examples
    --------
    >>> normalised(np.log([1.0, 3.0])).round(12).tolist()
    [0.25, 0.75]
    """
    weight = exp_or_zero(logs - logs.max())
    return np.asarray(weight / weight.sum())


def at_equal_steps(weight: Array, size: int, first: float = 0.5) -> Indices:
    """Return indices of points at equal steps of their cumulative weight; (size,).

    Where `first`, the place of the first in its step, is a uniform random number, this is
    systematic resampling: each point is expected as often as its weight says.

    Examples
    --------
    >>> at_equal_steps(np.array([0.5, 0.0, 0.5]), 4).tolist()
    [0, 0, 2, 2]
    """
    cumulative = np.cumsum(weight)
    step = (np.arange(size) + first) / size * cumulative[-1]
    return np.asarray(np.minimum(np.searchsorted(cumulative, step), len(weight) - 1))


def total_moments(weight: Array, mean: Array, variance: ArrayLike = 0.0) -> tuple[Any, Any]:
    """Return mean and variance of a mixture, by the laws of total expectation and variance.

    Parameters
    ----------
    weight : ndarray, shape (points,)
        Sums to one.
    mean : ndarray, shape (points,) or (points, numbers)
        Means of the components.
    variance : array_like, shape of `mean`, optional
        Variances of the components.

    Returns
    -------
    mean, variance : float, or ndarray of shape (numbers,)
        Computed from differences to the first component, so that equal means give exactly that
        mean.

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
    """Weights of the same points under another prior, and the change of the log evidence.

    Truncated importance sampling (Ionides 2008, JCGS 17(2)): no weight exceeds ``1 / sqrt(points)``
    or, if that is larger, what it was before. Without this a single point in the tails could be all
    of the posterior.

    Parameters
    ----------
    weight : ndarray, shape (points,)
        Sums to one.
    log_ratio : ndarray, shape (points,)
        Log of the other prior over this one.

    Examples
    --------
    >>> weight, log_evidence_gain = reweighted(np.full(4, 0.25), np.log([1.0, 1.0, 1.0, 9.0]))
    >>> weight.round(3).tolist()  # the last would have 3/4, and is truncated to 1/2
    [0.167, 0.167, 0.167, 0.5]
    >>> round(float(np.exp(log_evidence_gain)), 2)  # the mean of 1, 1, 1 and 3, the truncated 9
    1.5
    """
    top = log_ratio.max()
    share = weight * np.exp(log_ratio - top)
    total = share.sum()
    share /= total
    weight_max = np.maximum(weight, len(weight) ** -0.5)
    # Truncation raises the shares of the other points: those that then exceed their maximum are
    # truncated in turn, until none does.
    factor, cut = 1.0, share > weight_max
    while cut.any():
        uncut_mass = share[~cut].sum()
        if uncut_mass <= 0.0:
            break
        factor = (1.0 - weight_max[cut].sum()) / uncut_mass
        now_cut = factor * share > weight_max
        if (now_cut == cut).all():
            break
        cut = cut | now_cut
    truncated = np.where(cut, weight_max, factor * share)
    return truncated / truncated.sum(), float(np.log(total / factor) + top)


def pareto_shape(weight: Array) -> float:
    """Shape of a generalised Pareto distribution fitted to the largest weights (k-hat).

    Zhang and Stephens 2009, Technometrics 51(3), with the prior of Vehtari et al. 2024
    (arXiv:1507.02646, appendix C); on the largest ``min(n / 5, 3 sqrt(n))`` weights.
    """
    ordered = np.sort(weight)
    tail_size = int(min(0.2 * len(ordered), 3.0 * np.sqrt(len(ordered))))
    threshold = ordered[-tail_size - 1]
    excess = ordered[-tail_size:] - threshold
    if tail_size < 5 or not excess[0] > 0.0:
        return -np.inf if ordered[-1] <= 2.0 * threshold else np.inf
    grid_size = 30 + int(np.sqrt(tail_size))
    theta = 1.0 - np.sqrt(grid_size / (np.arange(1.0, grid_size + 1.0) - 0.5))
    theta = theta / (3.0 * excess[tail_size // 4]) + 1.0 / excess[-1]
    shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
    log_likelihood = tail_size * (np.log(-theta / shape) - shape - 1.0)
    share = normalised(log_likelihood)
    estimate = float(np.log1p(-(share @ theta) * excess).mean())
    return (tail_size * estimate + 5.0) / (tail_size + 10.0)
