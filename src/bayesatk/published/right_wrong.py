"""The published estimates and intervals of right and wrong trials: arrays in, numbers out.

Every function is a credit under a published name. The ``_ci`` functions return a tuple ``(mu,
sigma, lo, hi)`` with the published *normal approximation* under an independent Beta(1, 1) prior per
question. They exist for comparison and migration: `bayesatk.evaluate` gives exact intervals for
both targets. Names and order of the arguments are the published ones.
"""

from collections.abc import Callable
from typing import Protocol

from numpy.typing import ArrayLike

from bayesatk.metrics import credit as credits
from bayesatk.metrics.credit import Credit
from bayesatk.published._shared import (
    Bounds,
    Interval,
    g_pass_credit,
    normal_posterior_interval,
    unbiased_mean,
)

_BOUNDS = (0.0, 1.0)


class Estimate(Protocol):
    """Published estimate of right and wrong trials."""

    def __call__(self, R: ArrayLike, k: int) -> float:
        """Return the mean over questions of the unbiased estimates."""
        ...


class IntervalEstimate(Protocol):
    """Published interval of right and wrong trials."""

    def __call__(
        self,
        R: ArrayLike,
        k: int,
        confidence: float = 0.95,
        bounds: Bounds = _BOUNDS,
        alpha0: float = 1.0,
        beta0: float = 1.0,
    ) -> Interval:
        """Return mean, sd and ends."""
        ...


def _published(
    name: str, credit: Callable[[int], Credit], estimate_doc: str, interval_doc: str
) -> tuple[Estimate, IntervalEstimate]:
    """Return two functions: the published estimate of a credit, and that with its interval."""

    def estimate(R: ArrayLike, k: int) -> float:
        return unbiased_mean(R, k, credit)

    def with_interval(
        R: ArrayLike,
        k: int,
        confidence: float = 0.95,
        bounds: Bounds = _BOUNDS,
        alpha0: float = 1.0,
        beta0: float = 1.0,
    ) -> Interval:
        return normal_posterior_interval(R, k, credit, confidence, bounds, alpha0, beta0)

    estimate.__name__ = estimate.__qualname__ = name
    with_interval.__name__ = with_interval.__qualname__ = f"{name}_ci"
    estimate.__doc__, with_interval.__doc__ = estimate_doc, interval_doc
    return estimate, with_interval


pass_at_k, pass_at_k_ci = _published(
    "pass_at_k",
    credits.pass_at,
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
    The unbiased estimate from the N observed trials, in [0, 1].

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
""",
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
""",
)

pass_hat_k, pass_hat_k_ci = _published(
    "pass_hat_k",
    credits.pass_hat,
    """Probability that all of ``k`` trials succeed (pass^k), mean over questions.

Source: Yao et al. 2024, arXiv:2406.12045. Parameters and errors as in `pass_at_k`.

Returns
-------
float
    The unbiased estimate from the N observed trials, in [0, 1].

See Also
--------
pass_hat_k_ci : with the published interval.
bayesatk.evaluate : exact posterior; metric ``"pass^k"``.

Examples
--------
>>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (3/10 + 6/10)/2
0.45
""",
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
""",
)

g_pass_at_k, g_pass_at_k_ci = _published(
    "g_pass_at_k",
    credits.pass_hat,
    """G-Pass@k at its strictest threshold tau = 1, which is pass^k.

Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

Returns
-------
float
    The unbiased estimate from the N observed trials, in [0, 1].

See Also
--------
g_pass_at_k_ci : with the published interval.
bayesatk.evaluate : exact posterior; metric ``"g-pass@k:1"``.

Examples
--------
>>> round(g_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
0.45
""",
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
""",
)

mg_pass_at_k, mg_pass_at_k_ci = _published(
    "mg_pass_at_k",
    credits.mg_pass_at,
    """mG-Pass@k, the published discrete mean of G-Pass over tau in [1/2, 1].

Source: Liu et al. 2025, Findings of ACL, paper 905. Parameters as in `pass_at_k`.

Returns
-------
float
    The unbiased estimate from the N observed trials, in [0, 1].

See Also
--------
mg_pass_at_k_ci : with the published interval.
bayesatk.evaluate : exact posterior; metric ``"mg-pass@k"``.

Examples
--------
>>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
0.166667
""",
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
""",
)

maj_at_k, maj_at_k_ci = _published(
    "maj_at_k",
    credits.maj_at,
    """Probability that more than half of ``k`` trials succeed, mean over questions.

The strict-majority proxy of a vote: a tie earns nothing. Parameters as in `pass_at_k`.

Returns
-------
float
    The unbiased estimate from the N observed trials, in [0, 1].

See Also
--------
maj_at_k_ci : with the published interval.
plurality_at_k : a vote over answers, ties broken at random.
bayesatk.evaluate : exact posterior; metric ``"maj@k"``.

Examples
--------
>>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
0.85
""",
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
""",
)

auc_at_k, auc_at_k_ci = _published(
    "auc_at_k",
    credits.auc_at,
    """Area under pass@1 .. pass@k by the trapezoid rule, divided by ``k - 1``.

Source: Hu et al. 2026, arXiv:2601.08763. AUC@1 is pass@1. Parameters as in `pass_at_k`.

Returns
-------
float
    The unbiased estimate from the N observed trials, in [0, 1].

See Also
--------
auc_at_k_ci : with the published interval.
bayesatk.evaluate : exact posterior; metric ``"auc@k"``.

Examples
--------
>>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # (0.7 + 0.95)/2
0.825
""",
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
""",
)


def g_pass_at_k_tau(R: ArrayLike, k: int, tau: float) -> float:
    """Probability that at least ``max(1, ceil(tau k))`` of ``k`` trials succeed.

    Source: Liu et al. 2025, Findings of ACL, paper 905. ``tau`` in [0, 1]; other parameters as
    in `pass_at_k`.

    Returns
    -------
    float
        The unbiased estimate from the N observed trials, in [0, 1].

    See Also
    --------
    g_pass_at_k_tau_ci : with the published interval.
    bayesatk.evaluate : exact posterior; metric ``"g-pass@k:tau"``.

    Examples
    --------
    >>> round(g_pass_at_k_tau([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5), 6)
    0.95
    """
    return unbiased_mean(R, k, g_pass_credit(tau))


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
    return normal_posterior_interval(R, k, g_pass_credit(tau), confidence, bounds, alpha0, beta0)


unanimous_at_k, unanimous_at_k_ci = pass_hat_k, pass_hat_k_ci  # published under both names
