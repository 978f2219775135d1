"""The published Bayes@N, Avg@N and Max@k of scored categories, under their published names."""

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.question.categorical import category_finite, category_moments
from bayesatk.metrics.category_credit import CategoryCredit
from bayesatk.published._shared import (
    Bounds,
    Estimate,
    Interval,
    normal_interval,
    rectangle,
    whole_numbers,
)


def bayes(R: ArrayLike, w: ArrayLike | None = None, R0: ArrayLike | None = None) -> Estimate:
    """Bayes@N: posterior mean and sd of the mean score of these questions.

    Parameters
    ----------
    R : array_like, shape (M, N) or (N,)
        Category 0..C of every trial, of M questions or of one.
    w : array_like, shape (C + 1,), optional
        Score of each category; default ``(0, 1)``, for binary ``R``.
    R0 : array_like, shape (M, D) or (M D,), optional
        Prior trials, counted with ``R`` on top of a uniform Dirichlet prior; flat ones are D for
        each question in turn.

    Returns
    -------
    tuple of float
        ``(mu, sigma)``.

    Raises
    ------
    ValueError
        If entries are not whole numbers 0..C, shapes do not fit, or a score is not finite.

    See Also
    --------
    bayes_ci : with the published interval.
    bayesatk.evaluate : metric ``"bayes"``, with exact intervals and both targets.

    Notes
    -----
    With ``nu`` = 1 + counts and ``T`` = sum of nu, the mean is ``sum_a sum_c (nu_ac / T) w_c / M``
    and the variance ``sum_a Var_a / (M^2 (T + 1))``. Source: Hariri et al. 2026,
    arXiv:2510.04265, eqs. 8-9 and appendix.

    Examples
    --------
    >>> mu, sigma = bayes([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], (0, 0.5, 1), [[0, 2], [1, 2]])
    >>> round(mu, 6), round(sigma, 6)
    (0.575, 0.084275)
    """
    scores, power = _scaled(_scores(w))
    count = _category_counts(R, len(scores), "R")
    if R0 is not None:
        count = count + _prior_counts(R0, *count.shape)
    concentration = count + 1.0
    total = concentration.sum(axis=1, keepdims=True)
    share = concentration / total
    mean = share @ scores
    question_variance = np.einsum("ac,ac->a", share, (scores - mean[:, None]) ** 2) / (
        total[:, 0] + 1.0
    )
    sd = np.sqrt(question_variance.sum()) / len(mean)
    return float(np.ldexp(mean.mean(), power)), float(np.ldexp(sd, power))


def bayes_ci(
    R: ArrayLike,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: Bounds | None = None,
) -> Interval:
    """Bayes@N with a normal interval, clipped to ``bounds`` (default: the range of the scores).

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)``.

    See Also
    --------
    bayes : the parameters, and mean and sd without the interval.
    bayesatk.evaluate : exact intervals; metric ``"bayes"``.

    Examples
    --------
    >>> [round(x, 4) for x in bayes_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]])]
    [0.6429, 0.1185, 0.4107, 0.875]
    """
    return normal_interval(
        bayes(R, w, R0), confidence, _score_range(w) if bounds is None else bounds
    )


def avg(R: ArrayLike, w: ArrayLike | None = None) -> Estimate:
    """Avg@N: mean score, with the Bayes@N sd rescaled from the posterior mean to the mean.

    Under the uniform prior the posterior mean is a linear function of the average with slope
    ``N / (1 + C + N)``; the published sd of the average divides the Bayes@N sd by that slope.

    Returns
    -------
    tuple of float
        ``(mu, sigma)``.

    See Also
    --------
    bayes : the posterior mean; parameters ``R`` and ``w`` are the same.
    avg_ci : with the published interval.

    Examples
    --------
    >>> mu, sigma = avg([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]])
    >>> round(mu, 6), round(sigma, 6)
    (0.7, 0.165831)
    """
    scores, power = _scaled(_scores(w))
    count = _category_counts(R, len(scores), "R")
    trials = count[0].sum()
    mean = float((count @ scores).sum() / count.sum())
    sd = bayes(R, scores)[1] * float((trials + len(scores)) / trials)
    return float(np.ldexp(mean, power)), float(np.ldexp(sd, power))


def avg_ci(
    R: ArrayLike,
    w: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: Bounds | None = None,
) -> Interval:
    """Avg@N with a normal interval, clipped to ``bounds`` (default: the range of the scores).

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)``.

    See Also
    --------
    avg : the parameters, and mean and sd without the interval.
    bayesatk.evaluate : exact intervals; metric ``"bayes"``.

    Examples
    --------
    >>> avg_ci([[1, 1], [1, 1]])[3]  # the published interval ends above one
    1.0
    """
    return normal_interval(avg(R, w), confidence, _score_range(w) if bounds is None else bounds)


def max_at_k(R: ArrayLike, k: int, w: ArrayLike | None = None) -> float:
    """Max@k: unbiased estimate of the expected best score of k trials of these questions.

    Parameters
    ----------
    R : array_like, shape (M, N) or (N,)
        Category 0..C of every trial, of M questions or of one.
    k : int
        Trials of which the best counts, 1 <= k <= N.
    w : array_like, shape (C + 1,), optional
        Score of each category; default ``(0, 1)``, for which this is pass@k.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If k is not a whole number from 1 to N, entries are not whole numbers 0..C, or a score is
        not finite.

    See Also
    --------
    max_at_k_ci : posterior mean and sd, and the published interval.
    bayesatk.evaluate : metric ``"max@4"``, with exact intervals and both targets.

    Notes
    -----
    With the scores of a question in ascending order the estimate is ``sum_i C(i - 1, k - 1) g_i /
    C(N, k)``. Source: Bagirov et al. 2025, arXiv:2510.23393, appendix C.1.

    Examples
    --------
    Of the ten pairs of the first question's marks 1, 1/2, 1, 1/2, 0 seven have a 1, two more have a
    1/2 as the better one, and so on.

    >>> round(max_at_k([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], 2, (0, 0.5, 1)), 6)
    0.85
    """
    scores, power = _scaled(_scores(w))
    count = _category_counts(R, len(scores), "R")
    trials = int(count[0].sum())
    _check_k(k, trials)
    value = category_finite(CategoryCredit(int(k)), count, scores).mean()
    return float(np.ldexp(value, power))


def max_at_k_ci(
    R: ArrayLike,
    k: int,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: Bounds | None = None,
) -> Interval:
    """Max@k with a normal interval, clipped to ``bounds`` (default: the range of the scores).

    Parameters
    ----------
    R, w
        As in `max_at_k`.
    k : int
        Trials of which the best counts; more than there are is allowed.
    R0 : array_like, shape (M, D) or (M D,), optional
        Prior trials, as in `bayes`.
    confidence : float
    bounds : (float, float), optional

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)``: posterior mean and sd under a uniform Dirichlet prior of every
        question, and the normal interval.

    See Also
    --------
    max_at_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"max@4"``.

    Examples
    --------
    >>> R = [[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]]
    >>> [round(x, 4) for x in max_at_k_ci(R, 2, (0, 0.5, 1))]
    [0.75, 0.0881, 0.5773, 0.9227]
    """
    scores, power = _scaled(_scores(w))
    _check_k(k, None)
    count = _category_counts(R, len(scores), "R")
    if R0 is not None:
        count = count + _prior_counts(R0, *count.shape)
    mean, variance = category_moments(CategoryCredit(int(k)), count + 1.0, scores)
    mu, sigma = float(mean.mean()), float(np.sqrt(variance.sum()) / len(mean))
    estimate = float(np.ldexp(mu, power)), float(np.ldexp(sigma, power))
    return normal_interval(estimate, confidence, _score_range(w) if bounds is None else bounds)


def _check_k(k: object, trials: int | None) -> None:
    """Refuse a k that is no whole number from 1 to the number of trials."""
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not whole or k < 1 or (trials is not None and k > trials):  # type: ignore[operator]
        upper = "" if trials is None else f" <= N, the trials of a question, here N = {trials}"
        raise ValueError(f"k must satisfy 1 <= k{upper}; got k={k!r}. Try k=1.")


def _scores(w: ArrayLike | None) -> Array:
    scores = np.array([0.0, 1.0]) if w is None else np.asarray(w)
    if scores.ndim != 1 or not len(scores) or scores.dtype.kind not in "biuf":
        raise ValueError(f"w must be a vector of numbers, one for every category; got {w!r:.80}.")
    scores = scores.astype(float)
    if not np.isfinite(scores).all():
        raise ValueError(f"w must have finite scores; got {scores.tolist()!s:.80}.")
    return scores


def _scaled(scores: Array) -> tuple[Array, int]:
    """Divide scores by a power of two (exactly), so that no square overflows or underflows."""
    power = int(np.frexp(np.abs(scores).max())[1])
    return np.ldexp(scores, -power), power


def _score_range(w: ArrayLike | None) -> tuple[float, float]:
    scores = _scores(w)
    return float(scores.min()), float(scores.max())


def _category_counts(R: ArrayLike, categories: int, name: str) -> Ints:
    matrix = whole_numbers(R, name)
    if matrix.min() < 0 or matrix.max() >= categories:
        raise ValueError(
            f"Entries of {name} must be integers in [0, {categories - 1}], categories with a score "
            f"in w; got values from {matrix.min()} to {matrix.max()}. A score of every category "
            "must be provided: w=[...]."
        )
    return np.stack([(matrix == c).sum(axis=1) for c in range(categories)], axis=1)


def _prior_counts(R0: ArrayLike, questions: int, categories: int) -> Ints:
    """Count prior trials by category; a flat array has equally many for each question, or none."""
    prior = rectangle(R0, "R0")
    if prior.ndim == 1 and len(prior) % questions == 0:
        prior = prior.reshape(questions, -1)
    if prior.ndim != 2 or len(prior) != questions:
        raise ValueError(
            f"R0 must have the same number of rows as R, {questions}, or be flat with as many "
            f"prior trials of each question; got shape {prior.shape}."
        )
    if not prior.size:
        return np.zeros((questions, categories), np.int64)
    return _category_counts(prior, categories, "R0")
