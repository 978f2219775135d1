"""The absolute difference of two runs of one system on the same questions, by draws."""

from collections.abc import Callable

import numpy as np

from bayesatk._tools.arrays import Array


def absolute_differences(score: Callable[[], Array], repeats: int) -> list[tuple[Array, Array]]:
    """Distributions of the absolute differences of two runs, by draws.

    Parameters
    ----------
    score : callable
        Draws scores of runs (metrics, draws), each time of the same systems anew.
    repeats : int
        How often pairs are drawn.

    Returns
    -------
    list of (difference, probability)
        For each metric absolute differences in rising order, equal ones once, and their
        frequencies.
    """
    gaps = np.concatenate([np.abs(score() - score()) for _ in range(repeats)], axis=1)
    counted = (np.unique(np.round(row, 12), return_counts=True) for row in gaps)
    return [(difference, number / number.sum()) for difference, number in counted]
