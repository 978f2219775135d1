"""What the best of several equally skilled configurations says about their common skill."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import betainc, expit, log_expit

from bayesatk._tools.arrays import Array
from bayesatk.core.engine.distribution import Distribution, monotone_slopes
from bayesatk.core.engine.interval_ends import interval
from bayesatk.data.chances import check_times, correct_counts
from bayesatk.guessing._tails import log_largest_at
from bayesatk.metrics.credit import log_choose


class SelectedSkill(NamedTuple):
    """Posterior of the accuracy of a configuration that was chosen as the best."""

    mean: float
    sd: float
    ci_lower: float
    ci_upper: float


def skill_if_selected(
    num_correct: int,
    marks: int,
    t: float,
    *,
    ci_prob: float = 0.95,
    ci_kind: Literal["eti", "hdi"] = "eti",
) -> SelectedSkill:
    """Selection-adjusted accuracy of the best of t configurations (winner's curse).

    Posterior of a success probability s, uniform a priori, given that the largest of t independent
    Binomial(marks, s) counts is `num_correct`. All t configurations are assumed to have the same
    skill; if their skills differ, the adjustment is too large. With t = 1 it is the ordinary Beta
    posterior.

    Parameters
    ----------
    num_correct, marks : int
        Correct trials of the best configuration, and its number of trials.
    t : float
        Configurations tried, 1 or more.
    ci_prob, ci_kind
        Credible interval, as in `bayesatk.evaluate`.

    Returns
    -------
    SelectedSkill
        Posterior mean, sd and interval.

    See Also
    --------
    bayesatk.guessing.random_baseline : has it for evaluated systems.

    Examples
    --------
    >>> round(skill_if_selected(3, 4, 1).mean, 9)  # Beta(4, 2)
    0.666666667
    >>> round(skill_if_selected(60, 100, 10).mean, 3)
    0.523
    """
    count, _ = correct_counts(None, marks, num_correct)
    if not 0.0 < ci_prob < 1.0 or ci_kind not in ("eti", "hdi"):
        raise ValueError(
            "ci_prob must lie strictly between 0 and 1 and ci_kind be 'eti' or 'hdi'; got "
            f"{ci_prob} and {ci_kind!r}. Try ci_prob=0.95, ci_kind='eti'."
        )
    mean, sd, skill = selected_skill(count, marks, check_times(t))
    return SelectedSkill(mean, sd, *interval(skill, ci_prob, ci_kind))


def selected_skill(correct: int, marks: int, times: float) -> tuple[float, float, Distribution]:
    """Mean, sd and distribution of the skill, with ``P(max = correct)`` as its likelihood.

    The distribution is tabulated over logits of skill; its error is below 1e-6.

    Examples
    --------
    >>> mean, sd, _ = selected_skill(3, 4, 1)
    >>> round(mean, 9), round(sd, 9)  # Beta(4, 2)
    (0.666666667, 0.178174161)
    """
    coarse = np.linspace(-60.0, 60.0, 2401)
    weight = np.cumsum(_density(coarse, correct, marks, times))
    low = coarse[max(int(np.searchsorted(weight, 1e-14 * weight[-1])) - 2, 0)]
    most = int(np.searchsorted(weight, (1.0 - 1e-14) * weight[-1]))
    logit = np.linspace(low, coarse[min(most + 2, len(coarse) - 1)], 4001)
    density = _density(logit, correct, marks, times)
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
    return mean, sd, Distribution(x, cdf, monotone_slopes(x, cdf, pdf[keep]))


def _density(logit: Array, correct: int, marks: int, times: float) -> Array:
    """Posterior density of the logit, up to a factor; the skill is uniform a priori."""
    log_success, log_failure = log_expit(logit), log_expit(-logit)
    log_mass = log_choose(marks, correct) + correct * log_success + (marks - correct) * log_failure
    before, lower = (_log_cdf(count, marks, logit)[None] for count in (correct - 1, correct))
    log_density = log_largest_at(log_mass[None], before, lower, np.array([[times]]))
    log_density += log_success + log_failure
    return np.exp(log_density - log_density.max())


def _log_cdf(count: int, marks: int, logit: Array) -> Array:
    """Log of the binomial distribution function."""
    if not 0 <= count < marks:
        return np.full(logit.shape, -np.inf if count < 0 else 0.0)
    upper = betainc(count + 1.0, marks - count, expit(logit))
    lower = betainc(marks - count, count + 1.0, expit(-logit))
    with np.errstate(divide="ignore"):
        return np.where(upper < 0.5, np.log1p(-upper), np.log(lower))
