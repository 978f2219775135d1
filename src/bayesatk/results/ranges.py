"""Family-free ranges of a result's metrics, from the counts that it stores."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.moment_range import metric_ranges
from bayesatk.core.states import States
from bayesatk.metrics.families import Metric
from bayesatk.results.result import Result


def ranges_beyond(
    result: Result, metrics: Sequence[Metric], within: int = 0
) -> NDArray[np.float64]:
    """Return the family-free range of every metric whose k exceeds the trials of some question.

    Parameters
    ----------
    result : Result
    metrics : sequence of Metric
        With `within`, by ascending k.
    within : int
        How many metrics before the first of those to add, for a curve that starts there.

    Returns
    -------
    ndarray, shape (system, metrics, target, end)
        At the confidence ``ci_prob`` of the result; NaN where k is within the trials, and for
        metrics that judge scores or answers.
    """
    if result.scale.axes:
        return np.full((len(result.systems), len(metrics), 2, 2), np.nan)
    counts = [States.of(c, n) for c, n in zip(*result.right_of_all(), strict=True)]
    found = np.full((len(counts), len(metrics), 2, 2), np.nan)
    for own, states in zip(found, counts, strict=True):
        fewest = states.trials[states.trials > 0].min(initial=np.iinfo(np.int64).max)
        beyond = [i for i, one in enumerate(metrics) if one.k > fewest and not one.voted]
        if beyond:
            beyond = [*range(max(beyond[0] - within, 0), beyond[0]), *beyond]
            asked = tuple(metrics[i] for i in beyond)
            own[beyond] = _ranges(_key(states), asked, result.ci_prob)
    return found


Key = tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]


def _key(states: States) -> Key:
    return (
        tuple(states.successes.tolist()),
        tuple(states.trials.tolist()),
        tuple(states.count.tolist()),
    )


@lru_cache(maxsize=256)
def _ranges(counts: Key, metrics: tuple[Metric, ...], confidence: float) -> NDArray[np.float64]:
    """Ranges that table, report and terminal all ask for, worked out once."""
    found = metric_ranges(*counts, [one.latent for one in metrics], confidence)
    return np.stack([found.lower, found.upper], axis=-1)
