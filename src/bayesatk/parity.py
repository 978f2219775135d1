"""The published closed forms under their published names: arrays in, numbers out.

Point metrics return a float; ``_ci`` companions return `Interval`, a named tuple ``(mu, sigma,
lo, hi)`` with the published *normal approximation* under an independent Beta(1, 1) prior per
question. They exist for comparison and migration: `bayesatk.evaluate` gives exact intervals for
both targets. Notation (``R``, ``w``, ``R0``, ``alpha0``, ``beta0``) is the published one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from bayesatk.core import credit as credits
from bayesatk.core.credit import Credit
from bayesatk.core.laws import finite_table
from bayesatk.core.moments import posterior_moments
from bayesatk.core.rows import count_ones, whole_numbers

_BOUNDS = (0.0, 1.0)


class Estimate(NamedTuple):
    """Posterior mean and standard deviation of a benchmark score."""

    mu: float
    sigma: float


class Interval(NamedTuple):
    """Posterior mean, standard deviation, and bounds of a normal credible interval."""

    mu: float
    sigma: float
    lo: float
    hi: float


def _histogram(R: ArrayLike, credit: Credit) -> tuple[NDArray[np.int64], int]:
    """Return how many questions have 0..N successes, and N."""
    successes, trials = count_ones(R)
    if credit.k > trials:
        raise ValueError(
            f"k must satisfy 1 <= k <= N = {trials} trials for the finite law and the published "
            f"intervals; got k={credit.k}. The latent law has no such limit: use "
            "bayesatk.evaluate(...)."
        )
    return np.bincount(successes, minlength=trials + 1), trials


def _point(R: ArrayLike, credit: Credit) -> float:
    frequency, trials = _histogram(R, credit)
    seen = np.flatnonzero(frequency)
    return float(frequency[seen] @ finite_table(credit, trials)[seen] / frequency.sum())


def _interval(
    R: ArrayLike,
    credit: Credit,
    confidence: float,
    bounds: tuple[float, float] | None,
    alpha0: float,
    beta0: float,
) -> Interval:
    for name, value in (("alpha0", alpha0), ("beta0", beta0)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a finite number > 0; got {value}. 1.0 is uniform.")
    frequency, trials = _histogram(R, credit)
    seen = np.flatnonzero(frequency)
    moments = posterior_moments([credit], seen + alpha0, trials - seen + beta0)
    weight = frequency[seen] / frequency.sum()
    mu = weight @ moments.mean[:, 0]
    sigma = np.sqrt(weight @ moments.variance[:, 0] / frequency.sum())
    return _normal(Estimate(float(mu), float(sigma)), confidence, bounds)


def _normal(estimate: Estimate, confidence: float, bounds: tuple[float, float] | None) -> Interval:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}.")
    half = float(ndtri(0.5 + 0.5 * confidence)) * estimate.sigma
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    if not low <= high:
        raise ValueError(f"bounds must be (low, high) with low <= high; got {bounds}.")
    lo, hi = (float(min(max(end, low), high)) for end in (estimate.mu - half, estimate.mu + half))
    return Interval(*estimate, lo, hi)


def pass_at_k(R: ArrayLike, k: int) -> float:
    """Probability that at least one of ``k`` trials of a question succeeds, mean over questions.

    Parameters
    ----------
    R : array_like, shape (M, N)
        0/1 outcomes of N trials of M questions.
    k : int
        Trials judged, drawn without replacement from the N observed: 1 <= k <= N.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    Raises
    ------
    ValueError
        If ``R`` is not a rectangle of zeros and ones, or ``k`` is not in 1..N.

    Notes
    -----
    ``1 - C(N - c, k)/C(N, k)`` with ``c`` successes, Chen et al. 2021 (arXiv:2107.03374) eq. 1.
    Assumes exchangeable trials. Relative error below 1e-13.

    See Also
    --------
    pass_at_k_ci : with the published interval.
    bayesatk.evaluate : exact posterior, both targets, ragged trials, any k.

    Examples
    --------
    >>> round(pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (9/10 + 1)/2
    0.95
    """
    return _point(R, credits.pass_at(k))


def pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of pass@k, independent Beta prior per question.

    Parameters
    ----------
    R : array_like, shape (M, N)
        0/1 outcomes.
    k : int
        Trials judged, 1 <= k <= N.
    confidence : float
        Probability of the central interval.
    bounds : (float, float)
        The normal interval is clipped to these.
    alpha0, beta0 : float
        Beta prior of every question, > 0.

    Returns
    -------
    Interval
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    Examples
    --------
    >>> [round(x, 4) for x in pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.8393, 0.0973, 0.6487, 1.0]
    """
    return _interval(R, credits.pass_at(k), confidence, bounds, alpha0, beta0)


def pass_hat_k(R: ArrayLike, k: int) -> float:
    """Probability that all of ``k`` trials succeed (pass^k), mean over questions; finite law.

    Source: Yao et al. 2024, arXiv:2406.12045. Parameters and errors as in `pass_at_k`.

    Examples
    --------
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (3/10 + 6/10)/2
    0.45
    """
    return _point(R, credits.pass_hat(k))


def pass_hat_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of pass^k; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> [round(x, 4) for x in pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.4464, 0.1462, 0.1599, 0.7329]
    """
    return _interval(R, credits.pass_hat(k), confidence, bounds, alpha0, beta0)


def g_pass_at_k(R: ArrayLike, k: int) -> float:
    """G-Pass@k at its strictest threshold tau = 1, which is pass^k; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(g_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    return _point(R, credits.pass_hat(k))


def g_pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of G-Pass@k at tau = 1, as `pass_hat_k_ci`.

    Examples
    --------
    >>> round(g_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2).mu, 4)
    0.4464
    """
    return _interval(R, credits.pass_hat(k), confidence, bounds, alpha0, beta0)


def g_pass_at_k_tau(R: ArrayLike, k: int, tau: float) -> float:
    """Probability that at least ``max(1, ceil(tau k))`` of ``k`` trials succeed; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. ``tau`` in [0, 1]; other parameters as
    in `pass_at_k`.

    Examples
    --------
    >>> round(g_pass_at_k_tau([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5), 6)
    0.95
    """
    return _point(R, credits.g_pass_at(k, tau))


def g_pass_at_k_tau_ci(
    R: ArrayLike,
    k: int,
    tau: float,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of G-Pass@k_tau; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> round(g_pass_at_k_tau_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5).mu, 4)
    0.8393
    """
    return _interval(R, credits.g_pass_at(k, tau), confidence, bounds, alpha0, beta0)


def mg_pass_at_k(R: ArrayLike, k: int) -> float:
    """mG-Pass@k, the published discrete mean of G-Pass over tau in [1/2, 1]; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.166667
    """
    return _point(R, credits.mg_pass_at(k))


def mg_pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of mG-Pass@k; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> round(mg_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3).mu, 4)
    0.2183
    """
    return _interval(R, credits.mg_pass_at(k), confidence, bounds, alpha0, beta0)


def maj_at_k(R: ArrayLike, k: int) -> float:
    """Probability that more than half of ``k`` trials succeed, mean over questions; finite law.

    The strict-majority proxy of a vote: a tie earns nothing. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    return _point(R, credits.maj_at(k))


def maj_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of strict-majority maj@k; as `pass_at_k_ci`.

    Examples
    --------
    >>> [round(x, 4) for x in maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)]
    [0.6845, 0.152, 0.3867, 0.9824]
    """
    return _interval(R, credits.maj_at(k), confidence, bounds, alpha0, beta0)


def auc_at_k(R: ArrayLike, k: int) -> float:
    """Area under pass@1 .. pass@k by the trapezoid rule, divided by ``k - 1``; finite law.

    Source: Hu et al. 2026, arXiv:2601.08763. AUC@1 is pass@1. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (0.7 + 0.95)/2
    0.825
    """
    return _point(R, credits.auc_at(k))


def auc_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of AUC@k; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> round(auc_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3).mu, 4)
    0.8095
    """
    return _interval(R, credits.auc_at(k), confidence, bounds, alpha0, beta0)


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
    scores = _scores(w)
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
    return Estimate(float(mean.mean()), float(np.sqrt(spread.sum()) / len(mean)))


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
    return _normal(bayes(R, w, R0), confidence, _score_range(w) if bounds is None else bounds)


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
    scores = _scores(w)
    count = _category_counts(R, len(scores), "R")
    trials = count[0].sum()
    mean = float((count @ scores).sum() / count.sum())
    return Estimate(mean, bayes(R, w).sigma * float((trials + len(scores)) / trials))


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
    return _normal(avg(R, w), confidence, _score_range(w) if bounds is None else bounds)


def _scores(w: ArrayLike | None) -> NDArray[np.float64]:
    scores = np.array([0.0, 1.0]) if w is None else np.asarray(w, float)
    if scores.ndim != 1 or len(scores) < 2 or not np.isfinite(scores).all():
        raise ValueError(f"w must be a vector of at least two finite scores; got {w!r}.")
    return scores


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
