"""The published estimates of right and wrong trials: arrays in, numbers out.

`bayesatk.published.intervals` has their ``_ci`` companions. Names and order of the arguments are
the published ones.
"""

from numpy.typing import ArrayLike

from bayesatk.metrics import credit as credits
from bayesatk.published._shared import g_pass, point


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


def pass_hat_k(R: ArrayLike, k: int) -> float:
    """Probability that all of ``k`` trials succeed (pass^k), mean over questions; finite law.

    Source: Yao et al. 2024, arXiv:2406.12045. Parameters and errors as in `pass_at_k`.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    See Also
    --------
    pass_hat_k_ci : with the published interval.
    bayesatk.evaluate : exact posterior; metric ``"pass^k"``.

    Examples
    --------
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (3/10 + 6/10)/2
    0.45
    """
    return point(R, k, credits.pass_hat)


def g_pass_at_k(R: ArrayLike, k: int) -> float:
    """G-Pass@k at its strictest threshold tau = 1, which is pass^k; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    See Also
    --------
    g_pass_at_k_ci : with the published interval.
    bayesatk.evaluate : exact posterior; metric ``"g-pass@k:1"``.

    Examples
    --------
    >>> round(g_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    return point(R, k, credits.pass_hat)


def g_pass_at_k_tau(R: ArrayLike, k: int, tau: float) -> float:
    """Probability that at least ``max(1, ceil(tau k))`` of ``k`` trials succeed; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. ``tau`` in [0, 1]; other parameters as
    in `pass_at_k`.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    See Also
    --------
    g_pass_at_k_tau_ci : with the published interval.
    bayesatk.evaluate : exact posterior; metric ``"g-pass@k:tau"``.

    Examples
    --------
    >>> round(g_pass_at_k_tau([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5), 6)
    0.95
    """
    return point(R, k, g_pass(tau))


def mg_pass_at_k(R: ArrayLike, k: int) -> float:
    """mG-Pass@k, the published discrete mean of G-Pass over tau in [1/2, 1]; finite law.

    Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    See Also
    --------
    mg_pass_at_k_ci : with the published interval.
    bayesatk.evaluate : exact posterior; metric ``"mg-pass@k"``.

    Examples
    --------
    >>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.166667
    """
    return point(R, k, credits.mg_pass_at)


def maj_at_k(R: ArrayLike, k: int) -> float:
    """Probability that more than half of ``k`` trials succeed, mean over questions; finite law.

    The strict-majority proxy of a vote: a tie earns nothing. Parameters as in `pass_at_k`.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    See Also
    --------
    maj_at_k_ci : with the published interval.
    plurality_at_k : a vote over answers, ties broken at random.
    bayesatk.evaluate : exact posterior; metric ``"maj@k"``.

    Examples
    --------
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    return point(R, k, credits.maj_at)


def auc_at_k(R: ArrayLike, k: int) -> float:
    """Area under pass@1 .. pass@k by the trapezoid rule, divided by ``k - 1``; finite law.

    Source: Hu et al. 2026, arXiv:2601.08763. AUC@1 is pass@1. Parameters as in `pass_at_k`.

    Returns
    -------
    float
        The unbiased finite-law estimate, in [0, 1].

    See Also
    --------
    auc_at_k_ci : with the published interval.
    bayesatk.evaluate : exact posterior; metric ``"auc@k"``.

    Examples
    --------
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (0.7 + 0.95)/2
    0.825
    """
    return point(R, k, credits.auc_at)


unanimous_at_k = pass_hat_k  # published under both names
