"""What the order of exchangeable trials can be: tests of drift and of dependence.

If the trials of a question are exchangeable, all orders of its c successes among n trials are
equally likely, whatever its difficulty. So is then known how late the successes come, and how often
success and failure alternate, summed over questions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr

from bayesatk._tools.arrays import Array


@cache
def rank_sum_pmf(successes: int, failures: int) -> Array:
    """Distribution of the sum of the successes' places, less its smallest value.

    Mann and Whitney (1947), by their recursion; nothing cancels in it.

    Examples
    --------
    >>> (rank_sum_pmf(2, 1) * 3).tolist()  # places 1+2, 1+3, 2+3
    [1.0, 1.0, 1.0]
    """
    rows = [np.ones(1)] * (successes + 1)
    for f in range(1, failures + 1):
        before = np.ones(1)
        for c in range(1, successes + 1):
            # The last trial is a failure, or a success with all f failures before it.
            pmf = np.zeros(c * f + 1)
            pmf[: len(rows[c])] = rows[c] * (f / (c + f))
            pmf[f:] += before * (c / (c + f))
            rows[c] = before = pmf
    return rows[successes] if failures else np.ones(1)


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
    pmf = np.zeros(size)
    ways = comb(successes + failures, successes)
    for runs in range(2, size + 1):
        half, odd = divmod(runs, 2)
        if odd:
            count = comb(successes - 1, half) * comb(failures - 1, half - 1)
            count += comb(successes - 1, half - 1) * comb(failures - 1, half)
        else:
            count = 2 * comb(successes - 1, half - 1) * comb(failures - 1, half - 1)
        pmf[runs - 1] = count / ways
    return pmf


@dataclass(frozen=True)
class OrderLaw:
    """A statistic of the order of c successes and f failures.

    Parameters
    ----------
    pmf : callable
        ``pmf(c, f)``.
    mean, variance : callable
        Of the same.
    """

    pmf: Callable[[int, int], Array]
    mean: Callable[[float, float], float]
    variance: Callable[[float, float], float]


RANK_SUM = OrderLaw(
    rank_sum_pmf, lambda c, f: c * f / 2.0, lambda c, f: c * f * (c + f + 1.0) / 12.0
)
SWITCHES = OrderLaw(
    switches_pmf,
    lambda c, f: 2.0 * c * f / (c + f),
    lambda c, f: 2.0 * c * f * (2.0 * c * f - c - f) / ((c + f) ** 2 * (c + f - 1.0)),
)


def two_sided(observed: int, law: OrderLaw, parts: Sequence[tuple[int, int, int]]) -> float:
    """Twice the smaller tail of a sum over questions, at most 1.

    Exact, unless the questions are so many or so long that the sum is normal for all purposes.

    Parameters
    ----------
    observed : int
    law : OrderLaw
    parts : sequence of (successes, failures, questions)

    Examples
    --------
    >>> round(two_sided(4, RANK_SUM, [(1, 2, 2)]), 6)  # both successes last: 2 (1/3)^2
    0.222222
    """
    length = 1 + sum(c * f * times for c, f, times in parts)
    if length > 2**22 or max((c * f for c, f, _ in parts), default=0) > 10_000:
        mean = sum(times * law.mean(c, f) for c, f, times in parts)
        variance = sum(times * law.variance(c, f) for c, f, times in parts)
        gap = max(abs(observed - mean) - 0.5, 0.0)
        return float(min(1.0, 2.0 * ndtr(-gap / np.sqrt(variance))))
    mass = sum_pmf((law.pmf(c, f), times) for c, f, times in parts)
    return float(min(1.0, 2.0 * min(mass[: observed + 1].sum(), mass[observed:].sum())))


def sum_pmf(pmfs: Iterable[tuple[Array, int]]) -> Array:
    """Distribution of a sum of independent counts from 0, from each one's and its repetitions.

    Examples
    --------
    >>> sum_pmf([(np.array([0.5, 0.5]), 2)]).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    parts = list(pmfs)
    length = 1 + sum((len(pmf) - 1) * times for pmf, times in parts)
    size = next_fast_len(max(length, 2), real=True)
    product = np.prod([rfft(pmf, size) ** times for pmf, times in parts], axis=0, initial=1.0)
    return np.asarray(np.maximum(irfft(product, size)[:length], 0.0))
