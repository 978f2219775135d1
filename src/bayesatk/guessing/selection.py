"""What the best of several equally skilled configurations says about their common skill."""

import numpy as np
from scipy.special import betainc, betaln, expit, gammaln

from bayesatk.core.distribution import Distribution, monotone_slopes
from bayesatk.metrics.credit import Array

_POINTS = 4001


def selected_skill(correct: int, marks: int, times: float) -> tuple[float, float, Distribution]:
    """Posterior of the common skill when the best of `times` counts was `correct`.

    Every configuration gets each of `marks` questions right with the same probability s, uniform a
    priori; given that the largest of the independent counts is ``correct``, the likelihood is
    ``F(correct)^t - F(correct - 1)^t`` with F binomial. For one configuration that is the usual
    ``Beta(correct + 1, marks - correct + 1)``.

    Returns
    -------
    mean, sd : float
    distribution : Distribution
        Its error is that of the tabulation, below 1e-6.

    Examples
    --------
    >>> mean, sd, _ = selected_skill(3, 4, 1)
    >>> round(mean, 9), round(sd, 9)  # Beta(4, 2)
    (0.666666667, 0.178174161)
    """
    logit = _grid(correct, marks, times)
    log_density = _log_likelihood(logit, correct, marks, times)
    log_density += -np.logaddexp(0.0, -logit) - np.logaddexp(0.0, logit)  # uniform s, in logits
    density = np.exp(log_density - log_density.max())
    step = logit[1] - logit[0]
    density /= density.sum() * step
    skill = expit(logit)
    mean = float(skill @ density * step)
    sd = float(np.sqrt((skill - mean) ** 2 @ density * step))
    # Trapezoid with its Euler-Maclaurin term: fourth order.
    below = (np.cumsum(density) - 0.5 * density) * step - np.gradient(density) * step / 12.0
    below = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
    pdf = density / (skill * expit(-logit))
    keep = np.concatenate([[True], np.diff(skill) > 0.0])
    x, cdf = skill[keep], below[keep]
    cdf[0], cdf[-1] = 0.0, 1.0
    table = Distribution(x, cdf, monotone_slopes(x, cdf, pdf[keep]))
    return mean, sd, table


def _grid(correct: int, marks: int, times: float) -> Array:
    """Logits of skill that hold the posterior, found on a coarse grid first."""
    coarse = np.linspace(-60.0, 60.0, 2401)
    logs = _log_likelihood(coarse, correct, marks, times)
    logs += -np.logaddexp(0.0, -coarse) - np.logaddexp(0.0, coarse)
    weight = np.cumsum(np.exp(logs - logs.max()))
    weight /= weight[-1]
    low = coarse[max(int(np.searchsorted(weight, 1e-14)) - 2, 0)]
    high = coarse[min(int(np.searchsorted(weight, 1.0 - 1e-14)) + 2, len(coarse) - 1)]
    return np.linspace(low, high, _POINTS)


def _log_likelihood(logit: Array, correct: int, marks: int, times: float) -> Array:
    """``log(F(correct)^t - F(correct - 1)^t)``, F binomial with the success logit."""
    success, failure = expit(logit), expit(-logit)
    log_success, log_failure = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
    ways = gammaln(marks + 1) - gammaln(correct + 1) - gammaln(marks - correct + 1)
    log_mass = ways + correct * log_success + (marks - correct) * log_failure
    log_lower = _log_cdf(correct, marks, success, failure)
    before = _log_cdf(correct - 1, marks, success, failure)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        step = times * np.logaddexp(0.0, log_mass - before)
        exceeds = np.where(step < 1e-12, np.log(step), np.log(-np.expm1(-step)))
    return times * log_lower + np.where(np.isneginf(before), 0.0, exceeds)


def _log_cdf(count: int, marks: int, success: Array, failure: Array) -> Array:
    """Log of the binomial distribution function, with its leading term where it underflows."""
    if count < 0:
        return np.full(success.shape, -np.inf)
    if count >= marks:
        return np.zeros(success.shape)
    upper = betainc(count + 1.0, marks - count, success)
    lower = betainc(marks - count, count + 1.0, failure)
    with np.errstate(divide="ignore"):
        log_lower = np.where(upper < 0.5, np.log1p(-upper), np.log(lower))
        # I_x(a, b) ~ x^a (1-x)^(b-1) / (a B(a, b)) for vanishing x
        leading = (marks - count) * np.log(failure) + count * np.log(success)
    leading -= np.log(marks - count) + betaln(marks - count, count + 1.0)
    return np.where(lower > 0.0, log_lower, leading)
