"""Family-free ranges of a result's metrics, from the counts that it stores."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.pooling.moment_range import metric_ranges
from bayesatk.core.pooling.states import States
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
        metrics that judge scores or answers, where questions have weights or groups, and of marks
        of a judge that errs.
    """
    found = np.full((len(result.systems), len(metrics), len(result.targets), 2), np.nan)
    if result.scale.axes or not result.answers("extrapolation_range"):
        return found
    counts = result.right_of_all("extrapolation_range")
    for system, (own, c, n) in enumerate(zip(found, *counts, strict=True)):
        fewest = n[n > 0].min(initial=np.iinfo(np.int64).max)
        beyond = [i for i, one in enumerate(metrics) if one.k > fewest and not one.voted]
        if beyond:
            beyond = [*range(max(beyond[0] - within, 0), beyond[0]), *beyond]
            asked = tuple(metrics[i] for i in beyond)
            states = States.of(c, n)
            key = "ranges", system, asked  # table, report and terminal all ask for them
            own[beyond] = result.once(key, partial(_ranges, states, asked, result.ci_prob))
    return found


def _ranges(states: States, metrics: Sequence[Metric], confidence: float) -> NDArray[np.float64]:
    curves = [one.latent for one in metrics]
    counts = states.successes, states.trials, states.count
    found = metric_ranges(*counts, curves, confidence)
    return np.stack([found.lower, found.upper], axis=-1)
