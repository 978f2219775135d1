"""Elliptical slice sampling of several Markov chains at once (Murray, Adams and MacKay 2010)."""

from collections.abc import Callable

import numpy as np

from bayesatk._tools.arrays import Array, Indices, Rng


def move_along_ellipse(
    deviation: Array,
    log_ratio: Array,
    ratio_of: Callable[[Indices, Array], Array],
    rng: Rng,
) -> None:
    """Move chains one step, in place; it needs no tuning and always moves.

    Parameters
    ----------
    deviation : ndarray, shape (chains, parameters)
        Of the parameters from a normal approximation of their posterior, standard normal under it.
    log_ratio : ndarray, shape (chains,)
        Log of the posterior over the approximation.
    ratio_of : callable
        ``ratio_of(chains, deviation)`` is the log ratio of some chains at other deviations.
    rng : numpy.random.Generator
    """
    chains = len(deviation)
    other = rng.standard_normal(deviation.shape)
    level = log_ratio - rng.standard_exponential(chains)
    angle = rng.uniform(0.0, 2.0 * np.pi, chains)
    low, high = angle - 2.0 * np.pi, angle.copy()
    left, start = np.arange(chains), deviation.copy()
    while len(left):
        turn = angle[left, None]
        tried = start[left] * np.cos(turn) + other[left] * np.sin(turn)
        found = ratio_of(left, tried)
        taken = (found >= level[left]) | (high[left] - low[left] < 1e-12)
        done = left[taken]
        deviation[done], log_ratio[done] = tried[taken], found[taken]
        left = left[~taken]
        below = angle[left] < 0.0
        low[left[below]], high[left[~below]] = angle[left[below]], angle[left[~below]]
        angle[left] = rng.uniform(low[left], high[left])


def systematic(share: Array, size: int, rng: Rng) -> Indices:
    """Draw indices with these probabilities, as evenly as can be.

    Examples
    --------
    >>> systematic(np.array([0.5, 0.0, 0.5]), 4, np.random.default_rng(1)).tolist()
    [0, 0, 2, 2]
    """
    upto = np.cumsum(share)
    place = (np.arange(size) + rng.random()) / size * upto[-1]
    return np.asarray(np.minimum(np.searchsorted(upto, place), len(share) - 1))


def independent_draws(kept: Array) -> float:
    """Effective number of draws of chains, for one quantity or more together.

    The variance of all draws over that of a chain's mean, times the chains; this ratio over all
    quantities, since that of one is known within a quarter only.

    Parameters
    ----------
    kept : ndarray, shape (draws, chains, quantities)
    """
    between, whole = kept.mean(axis=0).var(axis=0, ddof=1), kept.var(axis=(0, 1))
    ratio = float((between / np.maximum(whole, np.finfo(float).tiny)).mean())
    return float(min(kept.shape[1] / max(ratio, 1e-300), kept.shape[0] * kept.shape[1]))
