"""Published summaries of how many of k trials are right: spectra, their blends, the tail profile.

Intervals of blends are not here: the published ones are first-order approximations that miss the
posterior mean, and any function of the draws of `bayesatk.evaluate` is a draw of it.
"""

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array
from bayesatk.core.question.laws import finite
from bayesatk.metrics.credit import Credit, pass_at, pass_hat
from bayesatk.published._shared import Bounds, Interval, counted, interval, point

_BOUNDS = (0.0, 1.0)


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
