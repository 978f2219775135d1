"""Exact distributions of order statistics of exchangeable trials, given how many succeeded.

If the trials of a question are exchangeable, all orders of its c successes among n trials are
equally likely, whatever its difficulty. So is then known how late the successes come, and how often
success and failure alternate, summed over questions.
"""

from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_LARGEST = 2**22  # support on which distributions are convolved; beyond, they are normal


@cache
def rank_sum_pmf(successes: int, failures: int) -> Array:
    """Distribution of the sum of the successes' places, less its smallest value.

    Mann and Whitney (1947): coefficients of a Gaussian binomial.

    Examples
    --------
    >>> (rank_sum_pmf(2, 1) * 3).tolist()  # places 1+2, 1+3, 2+3
    [1.0, 1.0, 1.0]
    """
    found = np.zeros(successes * failures + 1)
    found[0] = 1.0
    for i in range(1, successes + 1):
        # times (1 - q^(failures + i)) / (1 - q^i), as a probability
        shift = failures + i
        raised = found.copy()
        raised[shift:] -= found[:-shift]
        for start in range(i):
            raised[start::i] = np.cumsum(raised[start::i])
        found = np.maximum(raised, 0.0) * (i / shift)
    return found


@cache
def switches_pmf(successes: int, failures: int) -> Array:
    """Distribution of the number of neighbouring trials with different outcomes.

    Wald and Wolfowitz (1940): one less than the number of runs.

    Examples
    --------
    >>> (switches_pmf(2, 1) * 3).tolist()  # 110, 011 switch once, 101 twice
    [0.0, 2.0, 1.0]
    """
    if min(successes, failures) == 0:
        return np.ones(1)
    size = 2 * min(successes, failures) + (successes != failures)
    found = np.zeros(size)
    ways = comb(successes + failures, successes)
    for runs in range(2, size + 1):
        half, odd = divmod(runs, 2)
        if odd:
            count = comb(successes - 1, half) * comb(failures - 1, half - 1)
            count += comb(successes - 1, half - 1) * comb(failures - 1, half)
        else:
            count = 2 * comb(successes - 1, half - 1) * comb(failures - 1, half - 1)
        found[runs - 1] = count / ways
    return found


def moments_of(pmf: Array) -> tuple[float, float]:
    """Mean and variance."""
    x = np.arange(len(pmf))
    mean = float(pmf @ x)
    return mean, float(pmf @ (x - mean) ** 2)


def two_sided(observed: int, parts: list[tuple[Array, int]]) -> float:
    """Twice the smaller tail of a sum of independent counts, at most 1.

    Parameters
    ----------
    observed : int
    parts : list of (pmf, multiplicity)

    Examples
    --------
    >>> two_sided(2, [(np.array([0.5, 0.5]), 2)])  # two heads of two
    0.5
    """
    from scipy.special import ndtr

    length = 1 + sum((len(pmf) - 1) * times for pmf, times in parts)
    if length > _LARGEST:
        known = [moments_of(pmf) for pmf, _ in parts]
        mean = sum(own[0] * times for own, (_, times) in zip(known, parts, strict=True))
        variance = sum(own[1] * times for own, (_, times) in zip(known, parts, strict=True))
        gap = max(abs(observed - mean) - 0.5, 0.0)
        return float(2.0 * ndtr(-gap / np.sqrt(variance)))
    size = 2 ** int(np.ceil(np.log2(length))) if length > 1 else 1
    product = np.ones(size // 2 + 1, complex)
    for pmf, times in parts:
        product *= np.fft.rfft(pmf, size) ** times
    mass = np.maximum(np.fft.irfft(product, size), 0.0) if size > 1 else np.ones(1)
    below, above = mass[: observed + 1].sum(), mass[observed:length].sum()
    return float(min(1.0, 2.0 * min(below, above)))
