"""Shared by the published functions: reading R, means over questions, normal intervals."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import positive_number, proper_probability
from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.core.question.expected_credit import finite
from bayesatk.metrics.credit import Credit, g_pass_at

Bounds = tuple[float, float]
Estimate = tuple[float, float]  # mu, sigma
Interval = tuple[float, float, float, float]  # mu, sigma, lo, hi


def rectangle(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array, or say that rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} must be a rectangle (questions, trials); got rows of unequal length. "
            "bayesatk.evaluate takes ragged trials."
        ) from None


def whole_numbers(R: ArrayLike, name: str = "R") -> NDArray[np.integer]:
    """Return a non-empty integer matrix, or say what is wrong with it; a vector is one row.

    Examples
    --------
    >>> whole_numbers([[0.0, 1.0]]).tolist(), whole_numbers([0, 1]).tolist()
    ([[0, 1]], [[0, 1]])
    """
    matrix = rectangle(R, name)
    if matrix.ndim not in (1, 2) or matrix.size == 0:
        raise ValueError(
            f"{name} must be a non-empty matrix (questions, trials), or the trials of one "
            f"question; got shape {matrix.shape}."
        )
    matrix = np.atleast_2d(matrix)
    if matrix.dtype.kind == "f":
        bad = ~np.isfinite(matrix) | (matrix != np.floor(matrix))
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} must have whole numbers; got {matrix[row, column]} at row {row}, column "
                f"{column}. bayesatk.evaluate takes missing trials."
            )
        return matrix.astype(np.int64)
    if matrix.dtype.kind not in "biu":
        raise ValueError(f"{name} must have whole numbers; got type {matrix.dtype}.")
    return matrix.view(np.uint8) if matrix.dtype == bool else matrix


def count_successes(R: ArrayLike) -> tuple[Ints, int]:
    """Successes per row of a 0/1 matrix, and the number of columns.

    Parameters
    ----------
    R : array_like, shape (M, N) or (N,)
        Zeros and ones (any integer or boolean type, or whole floats).

    Returns
    -------
    successes : ndarray of int64, shape (M,)
    trials : int

    Examples
    --------
    >>> count_successes([[0, 1, 1], [0, 0, 1]])
    (array([2, 1]), 3)
    """
    matrix = whole_numbers(R)
    if matrix.min() < 0 or matrix.max() > 1:
        row, column = (int(i) for i in np.argwhere((matrix < 0) | (matrix > 1))[0])
        raise ValueError(
            "Entries of R must be integers in [0, 1], zeros and ones; got "
            f"{matrix[row, column]} at row {row}, column {column}. Score graded outcomes with "
            "bayes(R, w) or bayesatk.evaluate."
        )
    return matrix.sum(axis=1, dtype=np.int64), matrix.shape[1]


def distinct_successes(R: ArrayLike, k: int) -> tuple[Ints, Ints, int]:
    """Return the distinct numbers of successes, the number of questions with each, and N."""
    successes, trials = count_successes(R)
    if isinstance(k, int | np.integer) and not 1 <= k <= trials:
        remedy = "Try k=1." if k < 1 else "For more trials than were run use bayesatk.evaluate."
        raise ValueError(
            f"k must satisfy 1 <= k <= N, the trials of a question, here N = {trials}; got k={k}. "
            + remedy
        )
    frequency = np.bincount(successes, minlength=trials + 1)
    occurring = np.flatnonzero(frequency)
    return occurring, frequency[occurring], trials


def g_pass_credit(tau: float) -> Callable[[int], Credit]:
    """Return the credit of G-Pass at a threshold, as a function of k."""
    if not 0.0 <= tau <= 1.0:
        raise ValueError(f"tau must be in [0, 1], a share of k; got {tau!r}. Half of k is 0.5.")
    return lambda k: g_pass_at(k, tau)


def unbiased_mean(R: ArrayLike, k: int, credit: Callable[[int], Credit]) -> float:
    """Mean over questions of the unbiased estimate of a credit from the observed trials."""
    successes, frequency, trials = distinct_successes(R, k)
    return float(frequency @ finite(credit(k), successes, trials) / frequency.sum())


def normal_posterior_interval(
    R: ArrayLike,
    k: int,
    credit: Callable[[int], Credit],
    confidence: float,
    bounds: Bounds,
    alpha0: float,
    beta0: float,
) -> Interval:
    """Return the posterior mean, sd and normal interval under a Beta prior for each question."""
    for name, value in (("alpha0", alpha0), ("beta0", beta0)):
        positive_number(name, value, "1.0 is uniform.")
    successes, frequency, trials = distinct_successes(R, k)
    a, b, share = successes + alpha0, trials - successes + beta0, frequency / frequency.sum()
    mean, _, variance = beta_binomial_moments([credit(k)], a, b)
    mu, sigma = share @ mean[:, 0], np.sqrt(share @ variance[:, 0] / frequency.sum())
    return normal_interval((float(mu), float(sigma)), confidence, bounds)


def normal_interval(estimate: Estimate, confidence: float, bounds: Bounds | None) -> Interval:
    """Return the published normal approximation, clipped to the bounds if there are any."""
    proper_probability("confidence", confidence, 0.95)
    mu, sigma = estimate
    half = float(ndtri(0.5 + 0.5 * confidence)) * sigma
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    if not low <= high:
        raise ValueError(f"bounds must be (low, high) with low <= high; got {bounds}. Try (0, 1).")
    lo, hi = (float(min(max(end, low), high)) for end in (mu - half, mu + half))
    return mu, sigma, lo, hi
