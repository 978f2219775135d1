"""The published intervals of right and wrong trials under their published names.

The ``_ci`` functions return a tuple ``(mu, sigma, lo, hi)`` with the published *normal
approximation* under an independent Beta(1, 1) prior per question. They exist for comparison and
migration: `bayesatk.evaluate` gives exact intervals for both targets. Names and order of the
arguments (``R``, ``alpha0``, ``beta0``) are the published ones.
"""

from numpy.typing import ArrayLike

from bayesatk.metrics import credit as credits
from bayesatk.published._shared import Bounds, Interval, g_pass, interval

_BOUNDS = (0.0, 1.0)


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
    pass_at_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals, both targets, unequal numbers of trials, any k.

    Examples
    --------
    >>> [round(x, 4) for x in pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.8393, 0.0973, 0.6487, 1.0]
    """
    return interval(R, k, credits.pass_at, confidence, bounds, alpha0, beta0)


def pass_hat_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of pass^k; parameters as in `pass_at_k_ci`.

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    pass_hat_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"pass^k"``.

    Examples
    --------
    >>> [round(x, 4) for x in pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.4464, 0.1462, 0.1599, 0.7329]
    """
    return interval(R, k, credits.pass_hat, confidence, bounds, alpha0, beta0)


def g_pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of G-Pass@k at tau = 1, as `pass_hat_k_ci`.

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    g_pass_at_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"g-pass@k:1"``.

    Examples
    --------
    >>> round(g_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)[0], 4)
    0.4464
    """
    return interval(R, k, credits.pass_hat, confidence, bounds, alpha0, beta0)


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

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    g_pass_at_k_tau : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"g-pass@k:tau"``.

    Examples
    --------
    >>> round(g_pass_at_k_tau_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5)[0], 4)
    0.8393
    """
    return interval(R, k, g_pass(tau), confidence, bounds, alpha0, beta0)


def mg_pass_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of mG-Pass@k; parameters as in `pass_at_k_ci`.

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    mg_pass_at_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"mg-pass@k"``.

    Examples
    --------
    >>> round(mg_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)[0], 4)
    0.2183
    """
    return interval(R, k, credits.mg_pass_at, confidence, bounds, alpha0, beta0)


def maj_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of strict-majority maj@k; as `pass_at_k_ci`.

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    maj_at_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"maj@k"``.

    Examples
    --------
    >>> [round(x, 4) for x in maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)]
    [0.6845, 0.152, 0.3867, 0.9824]
    """
    return interval(R, k, credits.maj_at, confidence, bounds, alpha0, beta0)


def auc_at_k_ci(
    R: ArrayLike,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """Posterior mean, sd and normal interval of AUC@k; parameters as in `pass_at_k_ci`.

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these M questions.

    See Also
    --------
    auc_at_k : the unbiased estimate.
    bayesatk.evaluate : exact intervals; metric ``"auc@k"``.

    Examples
    --------
    >>> round(auc_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)[0], 4)
    0.8095
    """
    return interval(R, k, credits.auc_at, confidence, bounds, alpha0, beta0)


unanimous_at_k_ci = pass_hat_k_ci  # published under both names
