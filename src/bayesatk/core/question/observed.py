"""Observed means over questions, some of which have fewer than k trials."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Flags

# Half of the questions with trials, but for rounding: a mean over fewer would be of a selection.
OBSERVED_SHARE_MIN = 0.5 - 1e-12


def mean_over_questions(values: Array, share: Array, tried: Flags) -> Array:
    """Return the mean over the questions whose value is known, if these are half of those tried.

    Parameters
    ----------
    values : ndarray, shape (questions, metrics)
        NaN where a question has fewer than k trials.
    share : ndarray, shape (questions,)
        Weights of the questions, or how many questions a row stands for.
    tried : ndarray of bool, shape (questions,) or (questions, metrics)

    Returns
    -------
    ndarray, shape (metrics,)
        NaN where less than half of the questions that were tried, by weight, have k trials.

    Examples
    --------
    >>> values = np.array([[1.0, np.nan], [0.0, 0.5], [0.5, np.nan]])
    >>> mean_over_questions(values, np.ones(3), np.ones(3, bool)).tolist()
    [0.5, nan]
    """
    has_value = ~np.isnan(values)
    share = share / max(share.max(initial=0.0), 1e-300)  # equal ones are 1, whose sums are exact
    weight = share @ has_value
    enough = (weight > 0.0) & (weight >= OBSERVED_SHARE_MIN * (share @ tried))
    sums = share @ np.where(has_value, values, 0.0)
    return np.where(enough, sums / np.where(enough, weight, 1.0), np.nan)


def has_observed_mean(trials: NDArray[Any], k: int, weight: Array | None = None) -> bool:
    """Whether a metric of k has an observed mean over questions with these trials and weights.

    Examples
    --------
    >>> trials = np.array([5, 5, 3, 0])
    >>> [has_observed_mean(trials, k) for k in (3, 4, 6)]
    [True, True, False]
    """
    share = np.ones(len(trials)) if weight is None else weight
    enough = share[trials >= max(k, 1)].sum()
    return bool(enough > 0.0 and enough >= OBSERVED_SHARE_MIN * share[trials > 0].sum())


def largest_observed_k(trials: NDArray[Any]) -> int:
    """Return the largest k at which every system has an observed mean.

    Parameters
    ----------
    trials : ndarray of int, shape (systems, questions)

    Examples
    --------
    >>> largest_observed_k(np.array([[5, 5, 3, 0], [4, 4, 4, 4]]))
    4
    """
    tried = [np.sort(system[system > 0])[::-1] for system in trials]
    return min(
        (int(n[int(np.ceil(OBSERVED_SHARE_MIN * len(n))) - 1]) for n in tried if len(n)), default=1
    )
