"""The published estimates and intervals of right and wrong trials: arrays in, numbers out.

Every function is a credit under a published name. The ``_ci`` functions return a tuple ``(mu,
sigma, lo, hi)`` with the published *normal approximation* under an independent Beta(1, 1) prior per
question. They exist for comparison and migration: `bayesatk.evaluate` gives exact intervals for
both targets. Names and order of the arguments are the published ones.

Spectra, their blends and the tail profile follow. Intervals of blends are not here: the published
ones are first-order approximations that miss the posterior mean, and any function of the draws of
`bayesatk.evaluate` is a draw of it.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array
from bayesatk.core.question.laws import finite
from bayesatk.metrics import credit as credits
from bayesatk.metrics.credit import Credit, pass_at, pass_hat
from bayesatk.published._shared import Bounds, Interval, counted, g_pass, interval, point

_BOUNDS = (0.0, 1.0)


class Estimate(Protocol):
    """Published estimate of right and wrong trials."""

    def __call__(self, R: ArrayLike, k: int) -> float:
        """Return the mean over questions."""
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
    """Return the published estimate of a credit, and its interval."""

    def estimate(R: ArrayLike, k: int) -> float:
        return point(R, k, credit)

    def with_interval(
        R: ArrayLike,
        k: int,
        confidence: float = 0.95,
        bounds: Bounds = _BOUNDS,
        alpha0: float = 1.0,
        beta0: float = 1.0,
    ) -> Interval:
        return interval(R, k, credit, confidence, bounds, alpha0, beta0)

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


unanimous_at_k, unanimous_at_k_ci = pass_hat_k, pass_hat_k_ci  # published under both names


def threshold_spectrum_at_k(R: ArrayLike, k: int, weights: ArrayLike) -> float:
    """Weighted sum of the probabilities that at least 1, ..., k of ``k`` trials succeed.

    ``sum_r w_r P(at least r of k)``, finite law, under the name of scorio 0.2.3.

    Parameters
    ----------
    R, k
        As in `pass_at_k`.
    weights : array_like, shape (k,)
        Zero or more, with a sum of at most one.

    Returns
    -------
    float
        The unbiased finite-law estimate, a mean over questions, in [0, 1].

    See Also
    --------
    threshold_spectrum_at_k_ci : with the published interval.

    Examples
    --------
    Of three trials with two right, both of two are right in one pair of three, and one is always.

    >>> round(threshold_spectrum_at_k([[0, 1, 1]], 2, [0.5, 0.5]), 6)  # 1/2 + 1/2 1/3
    0.666667
    """
    return point(R, k, lambda k: _spectrum(weights, k))


def threshold_spectrum_at_k_ci(
    R: ArrayLike, k: int, weights: ArrayLike, confidence: float = 0.95, bounds: Bounds = _BOUNDS,
    alpha0: float = 1.0, beta0: float = 1.0,
) -> Interval:  # fmt: skip
    """Posterior mean, sd and normal interval of a spectrum; parameters as in `pass_at_k_ci`.

    Parameters
    ----------
    R, k, weights
        As in `threshold_spectrum_at_k`.
    confidence, bounds, alpha0, beta0
        As in `pass_at_k_ci`.

    Returns
    -------
    tuple of float
        ``(mu, sigma, lo, hi)`` of the mean over these questions.

    See Also
    --------
    bayesatk.evaluate : exact intervals, of a `bayesatk.metrics.Family` with the same credit.

    Examples
    --------
    Under Beta(2, 1) one trial is right with probability 2/3.

    >>> round(threshold_spectrum_at_k_ci([[1]], 1, [0.5])[0], 6)
    0.333333
    """
    return interval(
        R, k, lambda k: _spectrum(weights, k), confidence, bounds, alpha0, beta0
    )  # fmt: skip


def geom_ds_at_k(
    R: ArrayLike, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5
) -> float:
    """Return ``pass@k ** pass_power * pass^k ** unanimous_power``, of means over questions.

    Parameters
    ----------
    R, k
        As in `pass_at_k`.
    pass_power, unanimous_power : float
        Zero or more, not both zero.

    Returns
    -------
    float
        In [0, 1].

    See Also
    --------
    geom_at_k : blends every question before the mean is taken.

    Examples
    --------
    >>> round(geom_ds_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # sqrt(0.95 0.45)
    0.653835
    """
    powers = _powers(pass_power, unanimous_power)
    return float(point(R, k, pass_at) ** powers[0] * point(R, k, pass_hat) ** powers[1])


def geom_at_k(R: ArrayLike, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> float:
    """Return the mean over questions of ``pass@k ** pass_power * pass^k ** unanimous_power``.

    Parameters
    ----------
    R, k, pass_power, unanimous_power
        As in `geom_ds_at_k`.

    Returns
    -------
    float
        In [0, 1].

    See Also
    --------
    geom_ds_at_k : blends the means.

    Examples
    --------
    >>> round(geom_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)  # sqrt(.9 .3), sqrt(1 .6)
    0.647106
    """
    powers = _powers(pass_power, unanimous_power)
    seen, frequency, trials = counted(R, k)
    reached, unanimous = (finite(credit(k), seen, trials) for credit in (pass_at, pass_hat))
    return float(frequency @ (reached ** powers[0] * unanimous ** powers[1]) / frequency.sum())


def geo_spectrum_at_k(
    R: ArrayLike, k: int, lam: float = 0.5, weights: ArrayLike | None = None
) -> float:
    """Return ``pass@k ** lam * spectrum ** (1 - lam)``, of means over questions.

    Parameters
    ----------
    R, k
        As in `pass_at_k`.
    lam : float
        In [0, 1].
    weights : array_like, shape (k,), optional
        Of the spectrum, as in `threshold_spectrum_at_k`; default: ``2 / k`` for more than half of
        the trials, which is mG-Pass@k.

    Returns
    -------
    float
        In [0, 1].

    See Also
    --------
    geo_spectrum_star_at_k : with the defaults.

    Examples
    --------
    >>> round(geo_spectrum_at_k([[0, 1, 1]], 2, 0.5, [0.5, 0.5]), 6)  # sqrt(1 2/3)
    0.816497
    """
    if not 0.0 <= lam <= 1.0:
        raise ValueError(f"lam must be in [0, 1]; got {lam!r}. 0.5 is the geometric mean.")
    blend = point(R, k, pass_at) ** lam  # which checks k
    w = np.where(np.arange(k) >= (k + 1) // 2, 2.0 / k, 0.0) if weights is None else weights
    return float(blend if lam == 1.0 else blend * threshold_spectrum_at_k(R, k, w) ** (1.0 - lam))


def geo_spectrum_star_at_k(R: ArrayLike, k: int) -> float:
    """Return the geometric mean of pass@k and mG-Pass@k; parameters as in `pass_at_k`.

    Returns
    -------
    float
        In [0, 1].

    See Also
    --------
    geo_spectrum_at_k : other powers and weights.

    Examples
    --------
    >>> round(geo_spectrum_star_at_k([[0, 1, 1]], 2), 6)  # sqrt(1 1/3)
    0.57735
    """
    return geo_spectrum_at_k(R, k)


def tailpass_empirical(R: ArrayLike, k: int) -> Array:
    """Probabilities that at least 1, ..., k of ``k`` trials succeed; parameters as in `pass_at_k`.

    Returns
    -------
    ndarray, shape (k,)
        Means over questions of the finite law.

    See Also
    --------
    bayesatk.evaluate : posterior of the profile; metric ``"g-pass@k:1/k,...,1"``.

    Examples
    --------
    >>> tailpass_empirical([[0, 1, 1]], 2).round(6).tolist()
    [1.0, 0.333333]
    """
    return np.array([
        threshold_spectrum_at_k(R, k, np.arange(1, k + 1) == right) for right in range(1, k + 1)
    ])  # fmt: skip


def _spectrum(weights: ArrayLike, k: int) -> Credit:
    """Return the credit of j right trials, ``w_1 + ... + w_j``."""
    w = np.asarray(weights, float)
    if w.shape != (k,) or not (w >= 0.0).all() or w.sum() > 1.0 + 1e-12:
        raise ValueError(
            f"weights must be k = {k} numbers of 0 or more with a sum of at most 1; got shape "
            f"{w.shape} with sum {w.sum():.6g}. Divide them by their sum."
        )
    return Credit.of(np.minimum(np.cumsum([0.0, *w]), 1.0))


def _powers(pass_power: float, unanimous_power: float) -> tuple[float, float]:
    """Return powers of a blend, or refuse those that have no value at zero."""
    if min(pass_power, unanimous_power) < 0.0 or pass_power == unanimous_power == 0.0:
        raise ValueError(
            "pass_power and unanimous_power must be 0 or more, and not both 0; got "
            f"{pass_power!r} and {unanimous_power!r}. 0.5 and 0.5 are the published ones."
        )
    return pass_power, unanimous_power
