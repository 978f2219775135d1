"""Elliptical slice sampling of several Markov chains at once (Murray, Adams and MacKay 2010)."""

from collections.abc import Callable

import numpy as np

from bayesatk._tools.arrays import Array, Indices, Rng


def elliptical_slice_step(
    deviation: Array,
    log_ratio: Array,
    log_ratio_of: Callable[[Indices, Array], Array],
    rng: Rng,
) -> None:
    """Move every chain by one elliptical slice step, in place.

    The step needs no tuning and always moves. The target is a normal approximation times a ratio.

    Parameters
    ----------
    deviation : ndarray, shape (chains, parameters)
        Parameters in units in which the normal approximation of their posterior is standard normal.
    log_ratio : ndarray, shape (chains,)
        Log of the posterior density over the approximation.
    log_ratio_of : callable
        ``log_ratio_of(chains, deviation)`` is the log ratio of some chains at other deviations.
    rng : numpy.random.Generator
    """
    chains = len(deviation)
    direction = rng.standard_normal(deviation.shape)
    level = log_ratio - rng.standard_exponential(chains)
    angle = rng.uniform(0.0, 2.0 * np.pi, chains)
    low, high = angle - 2.0 * np.pi, angle.copy()
    active, start = np.arange(chains), deviation.copy()
    while len(active):
        active_angle = angle[active, None]
        proposal = start[active] * np.cos(active_angle) + direction[active] * np.sin(active_angle)
        log_ratio_there = log_ratio_of(active, proposal)
        accepted = (log_ratio_there >= level[active]) | (high[active] - low[active] < 1e-12)
        moved = active[accepted]
        deviation[moved], log_ratio[moved] = proposal[accepted], log_ratio_there[accepted]
        active = active[~accepted]
        below = angle[active] < 0.0
        low[active[below]], high[active[~below]] = angle[active[below]], angle[active[~below]]
        angle[active] = rng.uniform(low[active], high[active])


def effective_sample_size(draws: Array) -> float:
    """Effective number of independent draws of several chains.

    The number of chains times the variance of all draws over the variance of chain means, a ratio
    that is averaged over quantities, because that of one quantity is known within a quarter only.

    Parameters
    ----------
    draws : ndarray, shape (draws, chains, quantities)
    """
    between, total = draws.mean(axis=0).var(axis=0, ddof=1), draws.var(axis=(0, 1))
    ratio = float((between / np.maximum(total, np.finfo(float).tiny)).mean())
    return float(min(draws.shape[1] / max(ratio, 1e-300), draws.shape[0] * draws.shape[1]))
