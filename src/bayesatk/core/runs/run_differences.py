"""The absolute difference of two runs of one system on the same questions, by draws."""

from collections.abc import Callable

import numpy as np

from bayesatk.metrics.credit import Array


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
