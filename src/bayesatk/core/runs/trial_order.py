"""What the order of exchangeable trials can be: tests of drift, and an alarm for changes.

If the trials of a question are exchangeable, all orders of its c successes among n trials are
equally likely, whatever its difficulty. So is then known how late the successes come, and how often
success and failure alternate, summed over questions.

An alarm may be watched for ever. Without a change the trials of a question are exchangeable over
days: given its successes so far, those of the last day are hypergeometric, whatever its difficulty.
So the total of a day has a known distribution given the sum of each question up to that day. Its
p-value (smoothed by a uniform number, so that it is exactly uniform) does not depend on the sums;
and what came before is a function of the sums without the day, so that the p-values of all days are
independent (Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World, chapter 8). As
normal scores they are independent standard normal numbers, and likelihood ratios against a shift a
martingale.

Splits of a day against the past, as of two systems, would use the past again on every day, and
their product is no martingale.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr, ndtri

from bayesatk._tools.arrays import Array, Ints
from bayesatk.metrics.credit import log_choose


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


def day_scores(successes: Ints, trials: Ints, uniform: Array) -> Array:
    """Score the total of every day, given the sum of every question up to that day.

    Parameters
    ----------
    successes, trials : ndarray of int, shape (questions, days)
        The numbers of trials must not depend on outcomes.
    uniform : ndarray, shape (days,)
        Numbers from (0, 1) that break ties.

    Returns
    -------
    ndarray, shape (days,)
        Normal scores, 0 where nothing is known: without a change independent and standard normal
        on the days that share a question with those before; positive on a good day.

    Examples
    --------
    >>> rows = np.array([[1, 1]]), np.array([[1, 1]])  # two successes: the order says nothing
    >>> day_scores(*rows, np.array([0.5, 0.5])).tolist()
    [0.0, 0.0]
    """
    scores = np.zeros(successes.shape[1])
    for day in range(1, len(scores)):
        before = trials[:, :day].sum(axis=1)
        compared = (before > 0) & (trials[:, day] > 0)
        if compared.any():
            new, past = trials[compared, day], before[compared]
            total = successes[compared, : day + 1].sum(axis=1)
            mass = total_pmf(new, past, total)
            least = int(np.maximum(0, total - past).sum())
            index = int(successes[compared, day].sum()) - least
            p = mass[:index].sum() + uniform[day] * mass[index]
            # Sums of a Fourier transform end 1e-13 from 0 and 1.
            scores[day] = ndtri(np.clip(p, 1e-13, 1.0 - 1e-13))
    return scores


def total_pmf(new: Ints, past: Ints, total: Ints) -> Array:
    """Distribution of the new successes, over all questions, given both parts' sum on each.

    The probabilities are from the smallest possible total on.

    Examples
    --------
    >>> total_pmf(np.array([1, 1]), np.array([1, 3]), np.array([1, 2])).round(9).tolist()
    [0.25, 0.5, 0.25]
    """
    kinds, times = np.unique(np.stack([new, past, total]), axis=1, return_counts=True)

    def pmf(n: int, m: int, t: int) -> Array:
        c = np.arange(max(0, t - m), min(n, t) + 1)
        return np.exp(log_choose(n, c) + log_choose(m, t - c) - log_choose(n + m, t))

    mass = sum_pmf(zip((pmf(*kind) for kind in kinds.T.tolist()), times.tolist(), strict=True))
    return np.asarray(mass / mass.sum())


def alarm_evidence(scores: Array, trials: Ints, sd: float) -> Array:
    """Log evidence against "no change up to this day", by day: exp of it is a martingale.

    Likelihood ratios of the scores, for a change on each day and a normal prior of the shift (in
    logits, with this sd), mixed over both; a change on day d, counted from 1, has the prior
    ``1 / (d (d - 1))``, and what has no change yet counts as 1.

    Parameters
    ----------
    scores : ndarray, shape (days,)
    trials : ndarray of int, shape (questions, days)
    sd : float

    Examples
    --------
    >>> float(alarm_evidence(np.zeros(3), np.ones((5, 3), int), 1.0)[0])
    0.0
    """
    number = trials.sum(axis=0).astype(float)
    before = np.cumsum(number) - number
    comparable = (number > 0) & (before > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(comparable, np.sqrt(number / (1.0 + number / before)) / before, 0.0)
    days = np.arange(len(scores))
    # The shift of day s in its score: the share of the trials before s that are before the change.
    effect = np.where(days >= days[:, None], before[:, None] * scale, 0.0)
    # The sd of a trial of a question on which a shift is seen: sqrt(p (1 - p)) about p = 0.1.
    variance = (0.3 * sd) ** 2
    square, product = np.cumsum(effect**2, axis=1), np.cumsum(effect * scores, axis=1)
    narrower = 1.0 + variance * square
    logs = 0.5 * variance * product**2 / narrower - 0.5 * np.log(narrower)
    with np.errstate(divide="ignore"):
        prior = np.where(days > 0, 1.0 / (np.maximum(days, 1) * (days + 1.0)), 0.0)[:, None]
        come = days >= days[:, None]
        mixed = np.logaddexp.reduce(np.where(come, np.log(prior) + logs, -np.inf), axis=0)
        return np.asarray(np.logaddexp(mixed, np.log(1.0 / (days + 1.0))))
