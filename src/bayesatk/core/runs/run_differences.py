"""The difference of two runs of one system on the same questions: its predictive distribution.

Given a node the questions are independent, and of one question the successes of both runs together
are a mixture of Beta-binomials, of which either run has a hypergeometric share. So the
characteristic function of the difference is a product over the states, and symmetric: it is real.
The difference lies on a lattice, and as many frequencies as the lattice has points within reach
give its probabilities without error but rounding.
"""

from collections.abc import Callable
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len

from bayesatk.metrics.credit import Array, log_binomials

Counted = Callable[[int], tuple[Array, Array]]


def run_difference(counted: Counted, questions: Array, values: Array) -> tuple[Array, Array]:
    """Distribution of the absolute difference of the mean values of two runs.

    Parameters
    ----------
    counted : callable
        ``counted(most)`` returns the posterior on at most so many nodes: their weights (nodes,),
        and the probabilities (nodes, states, 2 trials + 1) of 0, 1, ... successes of a question in
        both runs together.
    questions : ndarray, shape (states,)
        How many questions are in each state.
    values : ndarray, shape (trials + 1,)
        Value of a question with 0, 1, ... successes in a run of so many trials.

    Returns
    -------
    difference, probability : ndarray
        Absolute differences in rising order, and their probabilities.

    Examples
    --------
    >>> uniform = np.ones(1), np.full((1, 1, 3), 1 / 3)  # successes of two trials
    >>> law = run_difference(lambda most: uniform, np.ones(1), np.array([0.0, 1.0]))
    >>> law[0].tolist(), law[1].round(12).tolist()  # 2 E p (1 - p) = 1/3
    ([0.0, 1.0], [0.666666666667, 0.333333333333])
    """
    step = _step(values)
    places = np.rint((values - values.min()) / step).astype(np.int64)
    widest, number = int(places.max()), float(questions.sum())
    if not widest:
        return np.zeros(1), np.ones(1)
    at_gap, gap = _gaps(places), np.arange(-widest, widest + 1.0)
    sd = np.sqrt((counted(50)[1] @ (at_gap @ gap**2) @ questions).max())
    # The lattice is kept within 12 sds and the 40 largest differences of a question: few questions
    # are far from normal.
    reach = int(min(number * widest, np.ceil(12.0 * sd + 40.0 * widest)))
    size = next_fast_len(2 * reach + 1, real=True)
    # Nodes stand for others where they are many: 40 million of frequencies, nodes and states.
    weight, pmf = counted(int(np.clip(40_000_000 // (reach * len(questions)), 50, 1000)))
    wave = np.exp(2j * np.pi / size * np.outer(gap, np.arange(size // 2 + 1))).real
    curve = np.zeros(size // 2 + 1)
    for share, by_state in zip(weight, pmf, strict=True):
        curve += share * ((by_state @ at_gap @ wave) ** questions[:, None]).prod(axis=0)
    probability = np.maximum(irfft(curve, size)[: reach + 1], 0.0)
    probability[1:] *= 2.0
    probability /= probability.sum()
    return np.arange(reach + 1, dtype=float) * (step / number), np.asarray(probability)


def absolute_differences(score: Callable[[], Array], repeats: int) -> tuple[Array, Array]:
    """Distribution of the absolute difference of two runs, by draws.

    Parameters
    ----------
    score : callable
        Draws scores of runs (draws,), each time of the same systems anew.
    repeats : int
        How often pairs are drawn.

    Returns
    -------
    difference, probability : ndarray
        Absolute differences in rising order, equal ones once, and their frequencies.
    """
    gaps = np.concatenate([np.abs(score() - score()) for _ in range(repeats)])
    difference, number = np.unique(np.round(gaps, 12), return_counts=True)
    return difference, number / number.sum()


def _step(values: Array) -> float:
    """Return the step of a lattice that holds the values, to the finest that is kept."""
    finest = 4096  # steps of the scale, to which values without a common fraction are rounded
    scale = float(np.ptp(values)) or 1.0
    shares = [Fraction(float(ratio)).limit_denominator(finest) for ratio in values / scale]
    near = all(
        abs(float(fraction) - ratio) < 1e-12
        for fraction, ratio in zip(shares, values / scale, strict=True)
    )
    denominator = lcm(*(fraction.denominator for fraction in shares)) if near else finest
    return scale / min(denominator, finest)


def _gaps(places: NDArray[np.int64]) -> Array:
    """Probability of each difference, given the successes of both runs.

    Returns
    -------
    ndarray, shape (2 trials + 1, 2 widest + 1)
        By successes of both runs, and the difference in steps from its smallest value on.
    """
    trials, widest = len(places) - 1, int(places.max())
    first, second = np.divmod(np.arange((trials + 1) ** 2), trials + 1)
    ways, both_ways = log_binomials(trials), log_binomials(2 * trials)
    probability = np.exp(ways[first] + ways[second] - both_ways[first + second])
    at_gap = np.zeros((2 * trials + 1, 2 * widest + 1))
    np.add.at(at_gap, (first + second, places[first] - places[second] + widest), probability)
    return at_gap
