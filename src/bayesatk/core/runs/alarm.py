"""An alarm for a change of success rates that may be watched for ever.

Without a change the trials of a question are exchangeable over days: given its successes so far,
those of the last day are hypergeometric, whatever its difficulty. So the total of a day has a known
distribution given the sum of each question up to that day. Its p-value (smoothed by a uniform
number, so that it is exactly uniform) does not depend on the sums; and what came before is a
function of the sums without the day, so that the p-values of all days are independent (Vovk,
Gammerman and Shafer 2005, Algorithmic Learning in a Random World, chapter 8). As normal scores
they are independent standard normal numbers, and likelihood ratios against a shift a martingale.

Splits of a day against the past, as of two systems, would use the past again on every day, and
their product is no martingale.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayesatk.core.question.laws import log_choose
from bayesatk.metrics.credit import Array

Ints = NDArray[np.int64]


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
    low = np.maximum(0, kinds[2] - kinds[1])
    size = np.minimum(kinds[0], kinds[2]) - low + 1
    length = int(times @ (size - 1)) + 1
    points = 2 ** int(np.ceil(np.log2(max(length, 2))))
    product = np.ones(points // 2 + 1, complex)
    for (n, m, t), first, count, repeats in zip(kinds.T, low, size, times, strict=True):
        c = first + np.arange(count, dtype=float)
        logs = log_choose(n, c) + log_choose(m, t - c) - log_choose(n + m, t)
        product *= np.fft.rfft(np.exp(logs), points) ** repeats
    mass = np.maximum(np.fft.irfft(product, points)[:length], 0.0)
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
