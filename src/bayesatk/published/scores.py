"""The published Bayes@N and Avg@N of scored categories, under their published names."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.published.right_wrong import Estimate, Interval, normal_interval
from bayesatk.published.rows import whole_numbers


def bayes(R: ArrayLike, w: ArrayLike | None = None, R0: ArrayLike | None = None) -> Estimate:
    """Bayes@N: posterior mean and sd of the mean score of these questions.

    Parameters
    ----------
    R : array_like, shape (M, N)
        Category 0..C of every trial.
    w : array_like, shape (C + 1,), optional
        Score of each category; default ``(0, 1)``, for binary ``R``.
    R0 : array_like, shape (M, D), optional
        Prior trials, counted with ``R`` on top of a uniform Dirichlet prior.

    Returns
    -------
    Estimate
        ``(mu, sigma)``.

    Raises
    ------
    ValueError
        If entries are not whole numbers 0..C, shapes do not fit, or a score is not finite.

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
        prior = _category_counts(R0, len(scores), "R0")
        if len(prior) != len(count):
            raise ValueError(
                f"R0 must have one row per question of R ({len(count)}); got {len(prior)} rows."
            )
        count = count + prior
    concentration = count + 1.0
    total = concentration.sum(axis=1, keepdims=True)
    share = concentration / total
    mean = share @ scores
    spread = np.einsum("ac,ac->a", share, (scores - mean[:, None]) ** 2) / (total[:, 0] + 1.0)
    sd = np.sqrt(spread.sum()) / len(mean)
    return Estimate(float(np.ldexp(mean.mean(), power)), float(np.ldexp(sd, power)))


def bayes_ci(
    R: ArrayLike,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Interval:
    """Bayes@N with a normal interval, clipped to ``bounds`` (default: the range of the scores).

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
    sd = bayes(R, scores).sigma * float((trials + len(scores)) / trials)
    return Estimate(float(np.ldexp(mean, power)), float(np.ldexp(sd, power)))


def avg_ci(
    R: ArrayLike,
    w: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Interval:
    """Avg@N with a normal interval, clipped to ``bounds`` (default: the range of the scores).

    Examples
    --------
    >>> avg_ci([[1, 1], [1, 1]]).hi  # the published interval ends above one
    1.0
    """
    return normal_interval(avg(R, w), confidence, _score_range(w) if bounds is None else bounds)


def _scores(w: ArrayLike | None) -> NDArray[np.float64]:
    scores = np.array([0.0, 1.0]) if w is None else np.asarray(w, float)
    if scores.ndim != 1 or len(scores) < 2 or not np.isfinite(scores).all():
        raise ValueError(f"w must be a vector of at least two finite scores; got {w!r}.")
    return scores


def _scaled(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Divide scores by a power of two (exactly), so that no square overflows or vanishes."""
    power = int(np.frexp(np.abs(scores).max())[1])
    return np.ldexp(scores, -power), power


def _score_range(w: ArrayLike | None) -> tuple[float, float]:
    scores = _scores(w)
    return float(scores.min()), float(scores.max())


def _category_counts(R: ArrayLike, categories: int, name: str) -> NDArray[np.int64]:
    matrix = whole_numbers(R, name)
    if matrix.min() < 0 or matrix.max() >= categories:
        raise ValueError(
            f"{name} must hold categories 0..{categories - 1}, one per score in w; got values from "
            f"{matrix.min()} to {matrix.max()}. Pass w with a score for every category."
        )
    return np.stack([(matrix == c).sum(axis=1) for c in range(categories)], axis=1)
