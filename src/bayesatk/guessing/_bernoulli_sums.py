"""Probability mass function of a sum of independent Bernoulli variables, where it is not tiny.

Small sums directly (all terms positive, so small values keep their relative accuracy). Larger ones
by Fourier transforms of batches of equal blocks, each kept only on a window that Bernstein's
inequality proves to hold all but 1e-20 of its mass. Few distinct probabilities as binomials.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from bayesatk.metrics.credit import Array

DIRECT = 2048  # sums of at most so many variables are built without transforms
_LEAF = 24


class Window(NamedTuple):
    """Masses of a count on ``first, first + 1, ...``, and its mean and variance."""

    first: int
    mass: Array
    mean: float
    variance: float


def reach(variance: float, log_lost: float = 46.0) -> float:
    """Distance from the mean exceeded with probability ``exp(-log_lost)`` at most, per side.

    Bernstein's inequality for independent variables within one of their means.

    Examples
    --------
    >>> round(reach(25.0, 4.5), 3)  # three standard deviations, were the sum normal
    16.575
    """
    third = log_lost / 3.0
    return third + float(np.sqrt(third**2 + 2.0 * log_lost * variance))


def bernoulli_sum(p: Array, q: Array, count: NDArray[np.int64]) -> Window:
    """Distribution of the number of successes; exact over all counts up to DIRECT variables.

    Parameters
    ----------
    p, q : ndarray
        Distinct success probabilities, ascending and strictly between 0 and 1, and their
        complements (given, because ``1 - p`` may round).
    count : ndarray of int
        Variables with each probability.

    Examples
    --------
    >>> bernoulli_sum(np.array([0.5]), np.array([0.5]), np.array([2])).mass.round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    size = int(count.sum())
    if size > DIRECT and len(p) <= 64:  # distinct probabilities are cheaper as binomials
        windows = [_binomial(*group) for group in zip(p, q, count, strict=True)]
        window = reduce(_pair, sorted(windows, key=lambda window: len(window.mass)))
    else:
        p_and_q = np.repeat(p, count), np.repeat(q, count)
        window = _direct(*p_and_q) if size <= DIRECT else _batched(*p_and_q)
    mass = np.maximum(window.mass, 0.0)
    # 1 - p and p rarely add up to exactly one: over many variables the total drifts.
    return window._replace(mass=mass / mass.sum())


def _leaves(p: Array, q: Array, blocks: int) -> Array:
    """Masses of equal blocks of variables; shape (blocks, block size + 1).

    Block b has the sorted probabilities b, b + blocks, ...: nearly equal means and variances.
    """
    leaf = -(-len(p) // blocks)
    padding = leaf * blocks - len(p)
    p = np.concatenate([np.zeros(padding), p]).reshape(leaf, blocks)
    q = np.concatenate([np.ones(padding), q]).reshape(leaf, blocks)
    mass = np.zeros((leaf + 1, blocks))
    mass[0] = 1.0
    for j in range(leaf):
        moved = mass[: j + 1] * p[j]
        mass[: j + 1] *= q[j]
        mass[1 : j + 2] += moved
    return np.ascontiguousarray(mass.T)


def _direct(p: Array, q: Array) -> Window:
    """Whole support by sums of positive terms only."""
    blocks = 1 << max(0, round(np.log2(len(p) / _LEAF)) + (len(p) <= 256))
    masses = list(_leaves(p, q, blocks))
    while len(masses) > 1:
        masses = [np.convolve(a, b) for a, b in zip(masses[::2], masses[1::2], strict=True)]
    return Window(0, masses[0][: len(p) + 1], float(p.sum()), float(p @ q))


def _batched(p: Array, q: Array) -> Window:
    """Merge equal blocks two by two, all of a level in one transform."""
    # A transform's error is absolute, so blocks should be spread out before the first of them: to
    # a variance of 4, unless they would hold more than 128 variables, which are nearly certain.
    spread = float(p @ q) / 4.0
    blocks = 1 << round(np.log2(np.clip(spread, len(p) / 128, len(p) / _LEAF)))
    mass, first = _leaves(p, q, blocks), 0
    padding = mass.shape[0] * (mass.shape[1] - 1) - len(p)
    by_block = np.concatenate([np.zeros(padding), p]).reshape(-1, blocks)
    mean, variance = by_block.sum(axis=0), (by_block * (1.0 - by_block)).sum(axis=0)
    while len(mass) > 1:
        width = 2 * mass.shape[1] - 1
        size = next_fast_len(width, real=True)
        transform = rfft(mass, size, axis=1)
        mass = irfft(transform[::2] * transform[1::2], size, axis=1)[:, :width]
        first, mean, variance = 2 * first, mean[::2] + mean[1::2], variance[::2] + variance[1::2]
        low, high = _within_reach(first, width, mean, variance)
        mass, first = mass[:, low - first : high - first + 1], low
    return Window(first, mass[0], float(mean[0]), float(variance[0]))


def _within_reach(first: int, width: int, mean: Array, variance: Array) -> tuple[int, int]:
    """Of the counts ``first, ..., first + width - 1``, the ends of those near one of the means."""
    far = reach(float(variance.max()))
    low, high = int(np.floor(mean.min() - far)), int(np.ceil(mean.max() + far))
    return max(low, first), min(high, first + width - 1)


def _binomial(p: float, q: float, size: int) -> Window:
    """Binomial masses by ratios, outwards from the mode."""
    mean, variance = size * p, size * p * q
    low, high = _within_reach(0, size + 1, np.array(mean), np.array(variance))
    mode = min(max(int((size + 1) * p), low), high)
    up = np.arange(mode, high, dtype=float)
    down = np.arange(mode, low, -1, dtype=float)
    rising = np.cumprod((size - up) / (up + 1.0) * (p / q))
    falling = np.cumprod(down / (size - down + 1.0) * (q / p))
    mass = np.concatenate([falling[::-1], [1.0], rising])
    return Window(low, mass / mass.sum(), mean, variance)


def _pair(a: Window, b: Window) -> Window:
    width = len(a.mass) + len(b.mass) - 1
    if min(len(a.mass), len(b.mass)) <= 96:  # faster than a transform
        mass = np.convolve(a.mass, b.mass)
    else:
        size = next_fast_len(width, real=True)
        mass = irfft(rfft(a.mass, size) * rfft(b.mass, size), size)[:width]
    first, mean, variance = a.first + b.first, a.mean + b.mean, a.variance + b.variance
    low, high = _within_reach(first, width, np.array(mean), np.array(variance))
    return Window(low, mass[low - first : high - first + 1], mean, variance)
