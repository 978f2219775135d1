"""The published closed forms under their published names: arrays in, numbers out.

Point metrics return a float; ``_ci`` companions a tuple ``(mu, sigma, lo, hi)`` with the published
*normal approximation* under an independent Beta(1, 1) prior per question. They exist for comparison
and migration: `bayesatk.evaluate` gives exact intervals for both targets. Names and order of the
arguments (``R``, ``w``, ``R0``, ``alpha0``, ``beta0``) are the published ones.
"""

from collections.abc import Callable

from numpy.typing import ArrayLike

from bayesatk.metrics import credit as credits
from bayesatk.metrics.credit import Credit
from bayesatk.published._shared import Bounds, Interval, interval, point

_BOUNDS = (0.0, 1.0)


def _g_pass(tau: float) -> Callable[[int], Credit]:
    """Return the credit of G-Pass at a threshold, as a function of k."""
    if not 0.0 <= tau <= 1.0:
        raise ValueError(f"tau must be in [0, 1], a share of k; got {tau!r}. Half of k is 0.5.")
    return lambda k: credits.g_pass_at(k, tau)


def pass_at_k(R: ArrayLike, k: int) -> float:
    """Probability that at least one of ``k`` trials of a question succeeds, mean over questions.

    Parameters
    ----------
    R : array_like, shape (M, N) or (N,)
        0/1 outcomes of N trials of M questions, or of one question.
    k : int
        Trials judged, drawn without replacement from the N observed: 1 <= k <= N.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    Raises
    ------
    ValueError
        If ``R`` is not a rectangle (or a row) of zeros and ones, or ``k`` is not in 1..N.

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
    return point(R, k, credits.pass_at)


def pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of pass@k, independent Beta prior per question.

    Parameters
    ----------
    R : array_like, shape (M, N) or (N,)
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
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    bayesatk.evaluate : exact intervals, both targets, unequal numbers of trials, any k.

    Examples
    --------
    >>> [round(x, 4) for x in pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.8393, 0.0973, 0.6487, 1.0]
    """
    return interval(R, k, credits.pass_at, confidence, bounds, alpha0, beta0)


def pass_hat_k(R: ArrayLike, k: int) -> float:
    """Probability that all of ``k`` trials succeed (pass^k), mean over questions; finite law.

    Source: Yao et al. 2024, arXiv:2406.12045. Parameters and errors as in `pass_at_k`.

    Examples
    --------
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (3/10 + 6/10)/2
    0.45
    """
    return point(R, k, credits.pass_hat)


def pass_hat_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of pass^k; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> [round(x, 4) for x in pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.4464, 0.1462, 0.1599, 0.7329]
    """
    return interval(R, k, credits.pass_hat, confidence, bounds, alpha0, beta0)


def g_pass_at_k(R: ArrayLike, k: int) -> float:
    """G-Pass@k at its strictest threshold tau = 1, which is pass^k; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(g_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    return point(R, k, credits.pass_hat)


def g_pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of G-Pass@k at tau = 1, as `pass_hat_k_ci`.

    Examples
    --------
    >>> round(g_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)[0], 4)
    0.4464
    """
    return interval(R, k, credits.pass_hat, confidence, bounds, alpha0, beta0)


def g_pass_at_k_tau(R: ArrayLike, k: int, tau: float) -> float:
    """Probability that at least ``max(1, ceil(tau k))`` of ``k`` trials succeed; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. ``tau`` in [0, 1]; other parameters as
    in `pass_at_k`.

    Examples
    --------
    >>> round(g_pass_at_k_tau([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5), 6)
    0.95
    """
    return point(R, k, _g_pass(tau))


def g_pass_at_k_tau_ci(
    R: ArrayLike,
    k: int,
    tau: float,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of G-Pass@k_tau; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> round(g_pass_at_k_tau_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5)[0], 4)
    0.8393
    """
    return interval(R, k, _g_pass(tau), confidence, bounds, alpha0, beta0)


def mg_pass_at_k(R: ArrayLike, k: int) -> float:
    """mG-Pass@k, the published discrete mean of G-Pass over tau in [1/2, 1]; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.166667
    """
    return point(R, k, credits.mg_pass_at)


def mg_pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of mG-Pass@k; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> round(mg_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)[0], 4)
    0.2183
    """
    return interval(R, k, credits.mg_pass_at, confidence, bounds, alpha0, beta0)


def maj_at_k(R: ArrayLike, k: int) -> float:
    """Probability that more than half of ``k`` trials succeed, mean over questions; finite law.

    The strict-majority proxy of a vote: a tie earns nothing. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    return point(R, k, credits.maj_at)


def maj_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of strict-majority maj@k; as `pass_at_k_ci`.

    Examples
    --------
    >>> [round(x, 4) for x in maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)]
    [0.6845, 0.152, 0.3867, 0.9824]
    """
    return interval(R, k, credits.maj_at, confidence, bounds, alpha0, beta0)


def auc_at_k(R: ArrayLike, k: int) -> float:
    """Area under pass@1 .. pass@k by the trapezoid rule, divided by ``k - 1``; finite law.

    Source: Hu et al. 2026, arXiv:2601.08763. AUC@1 is pass@1. Parameters as in `pass_at_k`.

    Examples
    --------
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (0.7 + 0.95)/2
    0.825
    """
    return point(R, k, credits.auc_at)


def auc_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of AUC@k; parameters as in `pass_at_k_ci`.

    Examples
    --------
    >>> round(auc_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)[0], 4)
    0.8095
    """
    return interval(R, k, credits.auc_at, confidence, bounds, alpha0, beta0)


unanimous_at_k, unanimous_at_k_ci = pass_hat_k, pass_hat_k_ci  # published under both names
