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

from bayesatk.core.question.laws import log_binomials
from bayesatk.metrics.credit import Array

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
    split, gaps = _splits(places)
    rough_pmf = counted(50)[1]
    sd = np.sqrt((rough_pmf @ (split * gaps**2).sum(axis=1) @ questions).max())
    # The lattice is kept within 12 sds and the 40 largest differences of a question: few questions
    # are far from normal.
    reach = int(min(number * widest, np.ceil(12.0 * sd + 40.0 * widest)))
    # It falls all the way from 0 on where a run is right or wrong, or the share of right trials.
    falls = widest == 1 or bool((places == np.arange(len(places))).all())
    size = reach if not falls else min(reach, 40 + 8 * 12)
    # Nodes stand for others where they are many: ten million of frequencies, nodes and states.
    cells = (size + 4 * rough_pmf.shape[2]) * len(questions)
    weight, pmf = counted(int(np.clip(10_000_000 // cells, 50, 1000)))
    angles = 2.0 * np.pi * np.arange(reach + 1) / (2 * reach + 1)
    curve = np.zeros(reach + 1)
    width = max(16, 1_000_000 // (len(weight) * len(questions)))
    for start in range(0, reach + 1, width):
        frequencies = slice(start, start + width)
        waves = (split * np.cos(angles[frequencies, None, None] * gaps)).sum(axis=2)
        question_curve = np.tensordot(waves, pmf, axes=(1, 2))  # of one question, by node and state
        node_curve = (question_curve**questions).prod(axis=2)
        curve[frequencies] = node_curve @ weight
        if falls and np.abs(node_curve).max() < 1e-16:
            break
    signed_mass = np.fft.irfft(curve, 2 * reach + 1)[: reach + 1]
    probability = np.maximum(signed_mass * np.where(np.arange(reach + 1), 2.0, 1.0), 0.0)
    probability = np.asarray(probability / probability.sum(), float)
    return np.arange(reach + 1, dtype=float) * (step / number), probability


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


def _splits(places: NDArray[np.int64]) -> tuple[Array, Array]:
    """Probability of the successes of the first run given those of both, and what they differ by.

    Returns
    -------
    probability, gap : ndarray, shape (2 trials + 1, trials + 1)
        By successes of both runs, and of the first.
    """
    trials = len(places) - 1
    total, first = np.arange(2 * trials + 1)[:, None], np.arange(trials + 1)[None, :]
    second = total - first
    possible = (second >= 0) & (second <= trials)
    second = np.clip(second, 0, trials)
    ways, both_ways = log_binomials(trials), log_binomials(2 * trials)
    logs = ways[first] + ways[second] - both_ways[total]
    gap = np.where(possible, places[first] - places[second], 0)
    return np.where(possible, np.exp(logs), 0.0), gap.astype(float)
