"""Exact tests of drift and of dependence between the trials of a question.

If the trials of a question are exchangeable, all orders of its c successes among n trials are
equally likely, whatever its difficulty. That gives the null distributions of the rank sum of the
successes and of the number of switches between success and failure, summed over questions.
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
    """Distribution of the rank sum of the successes less its minimum (Mann-Whitney U).

    By the recursion of Mann and Whitney (1947), which has positive terms only.

    Examples
    --------
    >>> (rank_sum_pmf(2, 1) * 3).tolist()  # ranks 1+2, 1+3, 2+3
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
class OrderStatistic:
    """A statistic of the order of c successes and f failures.

    Parameters
    ----------
    pmf : callable
        ``pmf(c, f)``: exact null distribution, on 0, 1, ...
    mean, variance : callable
        Null mean and variance, functions of c and f.
    """

    pmf: Callable[[int, int], Array]
    mean: Callable[[float, float], float]
    variance: Callable[[float, float], float]


RANK_SUM = OrderStatistic(
    rank_sum_pmf, lambda c, f: c * f / 2.0, lambda c, f: c * f * (c + f + 1.0) / 12.0
)
SWITCHES = OrderStatistic(
    switches_pmf,
    lambda c, f: 2.0 * c * f / (c + f),
    lambda c, f: 2.0 * c * f * (2.0 * c * f - c - f) / ((c + f) ** 2 * (c + f - 1.0)),
)


def two_sided(
    observed: int, statistic: OrderStatistic, components: Sequence[tuple[int, int, int]]
) -> float:
    """Two-sided p-value of a sum over questions: twice the smaller tail, at most 1.

    Exact; for very many or very long questions a normal approximation with continuity correction.

    Parameters
    ----------
    observed : int
    statistic : OrderStatistic
    components : sequence of (successes, failures, questions)

    Examples
    --------
    >>> round(two_sided(4, RANK_SUM, [(1, 2, 2)]), 6)  # both successes last: 2 (1/3)^2
    0.222222
    """
    length = 1 + sum(c * f * times for c, f, times in components)
    if length > 2**22 or max((c * f for c, f, _ in components), default=0) > 10_000:
        mean = sum(times * statistic.mean(c, f) for c, f, times in components)
        variance = sum(times * statistic.variance(c, f) for c, f, times in components)
        gap = max(abs(observed - mean) - 0.5, 0.0)
        return float(min(1.0, 2.0 * ndtr(-gap / np.sqrt(variance))))
    mass = sum_pmf((statistic.pmf(c, f), times) for c, f, times in components)
    return float(min(1.0, 2.0 * min(mass[: observed + 1].sum(), mass[observed:].sum())))


def sum_pmf(pmfs: Iterable[tuple[Array, int]]) -> Array:
    """Distribution of a sum of independent counts, given distributions on 0, 1, ... and repeats.

    Examples
    --------
    >>> sum_pmf([(np.array([0.5, 0.5]), 2)]).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    components = list(pmfs)
    length = 1 + sum((len(pmf) - 1) * times for pmf, times in components)
    size = next_fast_len(max(length, 2), real=True)
    product = np.prod([rfft(pmf, size) ** times for pmf, times in components], axis=0, initial=1.0)
    return np.asarray(np.maximum(irfft(product, size)[:length], 0.0))
