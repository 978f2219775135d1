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

from bayesatk.core.laws import finite_table
from bayesatk.core.moments import posterior_moments
from bayesatk.metrics import credit as credits
from bayesatk.metrics.credit import Credit
from bayesatk.published.rows import count_ones

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
    return normal_interval(Estimate(float(mu), float(sigma)), confidence, bounds)


def normal_interval(
    estimate: Estimate, confidence: float, bounds: tuple[float, float] | None
) -> Interval:
    """Return the published normal approximation, clipped to the bounds if there are any."""
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
