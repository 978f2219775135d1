"""Probability of counts given difficulties and parameters.

Given the difficulty z of a question, its success probability under a system is Beta with mean
``m = expit(mu + a z)`` and ``alpha + beta = 1 / r``, so c successes of n trials have probability,
in their order,

    prod_{i<c} (m + i r)  prod_{j<n-c} (1 - m + j r)  /  prod_{l<n} (1 + l r),

which is regular at r = 0.
"""

import numpy as np
from scipy.special import betainccinv, betaincinv, expit, gammaln, ndtr

from bayesatk._tools.arrays import Array, Ints
from bayesatk.metrics.credit import log_choose

_LEAST = 1e-300  # probability of a count, whose logarithm is a number
_FEW = 32  # trials whose product is within doubles
_HALF_LOG_2_PI = 0.5 * np.log(2.0 * np.pi)


def log_chances(theta: Array, z: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Log probability of counts in any order, (counts, points, nodes).

    Parameters
    ----------
    theta : ndarray, shape (points, 3, systems or more)
        mu, log a, log r.
    z : ndarray, shape (nodes,)
    system, successes, trials : ndarray of int, shape (counts,)

    Notes
    -----
    Few trials are products, whose factors are cheap. More are a saddle-point form, whose terms are
    small where the counts are probable: a log probability is right to about 1e-10 for 10^9 trials.
    """
    mu, log_a, log_r = theta[:, :, : system.max() + 1].transpose(1, 2, 0)[..., None]
    x = np.clip(mu + np.exp(log_a) * z, -600.0, 600.0)  # within double precision
    few = trials <= _FEW
    cells = system, successes, trials
    if few.all():
        return _products(x, log_r, *cells)
    logs = np.empty((len(system), *x.shape[1:]))
    for members, form in ((few, _products), (~few, _deviances)):
        if members.any():
            logs[members] = form(x, log_r, *(amounts[members] for amounts in cells))
    return logs


def _products(x: Array, log_r: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Few trials: the logarithm of the product above.

    Logits of means (systems, points, nodes), log r (systems, points, 1).
    """
    # Beyond these ends p is m, or 0 or 1, or m is; and no product leaves doubles.
    r, x = np.exp(np.clip(log_r, -16.0, 15.0)), np.clip(x, -250.0, 250.0)
    if trials.max() == 1:  # r has no part in it
        wrong = -np.log1p(np.exp(x))
        is_right = successes[:, None, None] > 0
        return np.asarray(np.where(is_right, (x + wrong)[system], wrong[system]))
    right = 1.0 / (1.0 + np.exp(-x))
    failures = trials - successes
    most = int(trials.max())
    orders = np.log1p(np.arange(most)[:, None, None, None] * r).cumsum(axis=0)
    joint = _rises(right, r, int(successes.max()))[successes, system]
    joint *= _rises(right * np.exp(-x), r, int(failures.max()))[failures, system]
    logs = np.log(joint, out=joint)
    choices = log_choose(trials, successes)[:, None, None]
    logs += choices - orders[trials - 1, system]
    return logs


def _rises(base: Array, r: Array, most: int) -> Array:
    """Return ``base (base + r) ... (base + (count - 1) r)`` of every count up to the most.

    Shape (most + 1, ...) of a base (...).
    """
    rises = np.empty((most + 1, *base.shape))
    rises[0] = 1.0
    for count in range(most):
        np.multiply(rises[count], base, out=rises[count + 1])
        base = base + r
    return rises


def _deviances(x: Array, log_r: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Many trials: divergences of the posterior mean of p from its prior mean and from the share.

    With Stirling's formula for all six Gamma functions, whose powers join in the divergences.
    """
    m, other = expit(x), expit(-x)
    r = np.exp(np.clip(log_r, -100.0, 100.0))
    n, c, d = (
        amounts[:, None, None].astype(float) for amounts in (trials, successes, trials - successes)
    )
    m_of, other_of, r_of = m[system], other[system], r[system]
    nr = n * r_of
    p, not_p = (m_of + c * r_of) / (1.0 + nr), (other_of + d * r_of) / (1.0 + nr)
    # The share is right c / n of the trials, and the mean is between it and m; gaps without
    # cancelling.
    share, gap = c / n, np.where(c < d, c / n - m_of, other_of - d / n) / (1.0 + nr)
    by_m, by_other = _log_ratio(p, m_of, gap * nr), _log_ratio(not_p, other_of, -gap * nr)
    logs = (m_of * by_m + other_of * by_other) / r_of
    for amount, of_all, probability, away in ((c, share, p, -gap), (d, d / n, not_p, gap)):
        logs += amount * _log_ratio(probability, np.where(amount > 0, of_all, 1.0), away)
    logs -= 0.5 * (np.log1p(nr) + by_m + by_other)
    total = 1.0 / r
    logs += _stirling_error(c + m_of / r_of) + _stirling_error(d + other_of / r_of)
    logs -= _stirling_error(n + total[system])
    logs += (_stirling_error(total) - _stirling_error(m / r) - _stirling_error(other / r))[system]
    inside = (c > 0) & (d > 0)
    both = np.where(inside, c * (d / n), 1.0)
    order = _stirling_error(n) - _stirling_error(c) - _stirling_error(d)
    return logs + np.where(inside, order - 0.5 * np.log(2.0 * np.pi * both), 0.0)


def _log_ratio(p: Array, q: Array, gap: Array) -> Array:
    """``log(p / q)``; gap is their difference, without cancelling."""
    relative = gap / q
    near = np.log1p(np.maximum(relative, -0.5))
    return np.where(relative > -0.5, near, np.log(np.maximum(p / q, _LEAST)))


def _stirling_error(x: Array) -> Array:
    """``log Gamma(x)`` less Stirling's formula."""
    large = np.maximum(x, 10.0)
    square = 1.0 / large**2  # the next term of the series is below 1e-12 from x = 10
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))
    series /= large
    below = x < 10.0
    small = np.maximum(x[below], _LEAST)
    series[below] = gammaln(small) - (small - 0.5) * np.log(small) + small - _HALF_LOG_2_PI
    return series


def _beta_of_score(score: Array, a: Array, b: Array) -> Array:
    """Return the Beta variate at the quantile at which a standard normal has the score."""
    # Either tail by itself: above the middle one minus a probability would lose digits.
    low, high = (ndtr(np.minimum(tail_score, 0.0)) for tail_score in (score, -score))
    return np.where(score < 0.0, betaincinv(a, b, low), betainccinv(a, b, high))


def log_shares(theta: Array, atoms: tuple[float, float, float]) -> Array:
    """Log shares of questions that no system solves, that every system solves, and of the others.

    They are Dirichlet a priori. The share never solved, and that always solved among the others,
    are functions of two scores that are standard normal (the first rows of the last column).

    Parameters
    ----------
    theta : ndarray, shape (..., 3, columns)
    atoms : (float, float, float)
        Parameters of the Dirichlet.

    Returns
    -------
    ndarray, shape (..., 3)
    """
    a, b = np.array(atoms[:2]), np.array([atoms[1] + atoms[2], atoms[2]])
    share = np.clip(_beta_of_score(theta[..., :2, -1], a, b), _LEAST, 1.0 - 1e-16)
    never, always = np.moveaxis(np.log(share), -1, 0)
    solved, left = np.moveaxis(np.log1p(-share), -1, 0)
    return np.stack([never, solved + always, solved + left], axis=-1)
