"""The max random baseline: expected best accuracy of t random guessers, and its p-values.

Yauney and Mimno 2024, "Stronger Random Baselines for In-Context Learning" (arXiv:2404.13020).
And the skill of several equally skilled configurations, given the accuracy of the best.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, expit, log_expit

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import one_of, proper_probability, whole_number
from bayesatk.core.engine.distribution import Empirical, interval
from bayesatk.data.chances import (
    check_times,
    correct_counts,
    success_probabilities,
)
from bayesatk.guessing._tails import log_max_pmf, log_minus_log
from bayesatk.guessing.distributions import (
    CountDistribution,
    Immutable,
    LargestPoissonBinomial,
    PoissonBinomial,
)
from bayesatk.metrics.credit import log_choose


class PValueRange(NamedTuple):
    """Smallest and largest p-value over the counts that round to a given accuracy."""

    low: float
    high: float


class MaxOrderStatisticPoissonBinomial(Immutable):
    """Distribution of the best of t random guessers on n examples, for any t.

    Parameters
    ----------
    n : int
        Examples.
    p : float, mapping or array_like
        Probability of guessing right: one for all, {labels: examples}, or one per example.
    trials : int
        Guesses per example. The best guesser is the one with the highest mean over all guesses,
        and counts are out of ``n * trials``.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or their number is not n, if ``n``, ``trials`` or ``t``
        is below 1, or if an accuracy times ``n * trials`` is not a whole number.

    See Also
    --------
    bayesatk.guessing.random_baseline : comparison with an evaluated system.
    bayesatk.models.build_random_guessers : the PyMC model.

    Notes
    -----
    With X the number right of one guesser (Poisson-binomial) and F its distribution function,
    ``P(max <= x) = F(x)^t``, ``E[max] = sum_x 1 - F(x)^t`` and ``P(max >= x) = -expm1(t log1p(-P(X
    >= x)))``. Relative error of p-values at most 1e-12 down to 1e-300, for t up to 1e12; absolute
    error of ``E[max]/n`` at most 1e-15.

    Examples
    --------
    >>> coin = MaxOrderStatisticPoissonBinomial(100, 0.5)
    >>> round(coin.max_random_baseline(10), 10), round(coin.p_value(0.6, 10), 10)
    (0.5767798067, 0.2506606659)
    >>> coin.smallest_significant(10), coin.largest_significant_t(0.6)
    (0.64, 1)
    """

    n: int
    trials: int
    _guesser: PoissonBinomial

    def __init__(self, n: int, p: object, *, trials: int = 1) -> None:
        values = success_probabilities(n, p)
        repeats = whole_number("trials", trials)
        self._set(
            n=len(values), trials=repeats, _guesser=PoissonBinomial(np.repeat(values, repeats))
        )

    def __repr__(self) -> str:
        return f"MaxOrderStatisticPoissonBinomial(n={self.n}, trials={self.trials})"

    @property
    def marks(self) -> int:
        """Number of guesses of a guesser: ``n * trials``."""
        return self.n * self.trials

    def at(self, t: float, *, correlation: float = 0.0) -> LargestPoissonBinomial:
        """Frozen distribution of the best count; parameters as in `PoissonBinomial.largest_of`."""
        return self._guesser.largest_of(t, correlation=correlation)

    def max_random_baseline(self, t: float = 10, *, correlation: float = 0.0) -> float:
        """Return the expected best accuracy of t guessers."""
        return self.expectation(t, correlation=correlation) / self.marks

    def expectation(self, t: float, *, correlation: float = 0.0) -> float:
        """Return the expected best number correct."""
        return self.at(t, correlation=correlation).mean()

    def pmf(self, k: ArrayLike, t: ArrayLike) -> Array:
        """Probability that the best of t has exactly k correct; broadcasts over k and t."""
        return self._over(k, t, LargestPoissonBinomial.pmf)

    def F(self, k: ArrayLike, t: ArrayLike) -> Array:
        """Probability that the best of t has at most k correct; broadcasts over k and t."""
        return self._over(k, t, LargestPoissonBinomial.cdf)

    def p_value(
        self,
        acc: float | None = None,
        t: float = 1,
        *,
        num_correct: int | None = None,
        decimals: int | None = None,
        correlation: float = 0.0,
    ) -> float | PValueRange:
        """Probability that the best of t guessers does at least as well.

        Parameters as in `bayesatk.guessing.max_random_p_value`; `correlation` as in `at`.
        """
        low, high = correct_counts(acc, self.marks, num_correct, decimals)
        best = self.at(t, correlation=correlation)
        small, large = (float(best.sf(count - 1)) for count in (high, low))
        return large if decimals is None else PValueRange(small, large)

    def p_value_bound(
        self, acc: float | None = None, t: float = 1, *, num_correct: int | None = None
    ) -> float:
        """Upper bound of the p-value under any dependence of the t: ``min(1, t P(X >= x))``.

        For independent or positively dependent configurations `p_value` is smaller.
        """
        count, _ = correct_counts(acc, self.marks, num_correct)
        logs = np.log(check_times(t)) + self._guesser.logsf(count - 1)
        return float(np.exp(min(0.0, float(logs))))

    def effective_t(
        self,
        acc: float | None = None,
        t: float = 1,
        *,
        correlation: float,
        num_correct: int | None = None,
    ) -> float:
        """Return the number of independent configurations with the p-value of t correlated ones.

        It lies between 1 (identical) and t (independent) and grows with the accuracy, because even
        strongly correlated normal scores are nearly independent in the tail.
        """
        count, _ = correct_counts(acc, self.marks, num_correct)
        low, high = self._guesser.support()
        best, times = self.at(t, correlation=correlation), check_times(t)
        if not low < count <= high:
            return 1.0 if count <= low else times
        log_ratio = _log_minus_log_cdf(best, count) - _log_minus_log_cdf(self._guesser, count)
        return float(np.clip(np.exp(log_ratio), 1.0, times))

    def smallest_significant(
        self, t: float = 1, *, alpha: float = 0.05, correlation: float = 0.0
    ) -> float:
        """Smallest accuracy with a p-value of at most alpha; NaN where none has."""
        count = float(self.at(t, correlation=correlation).isf(_check_level(alpha))) + 1.0
        return count / self.marks if count <= self.marks else float("nan")

    def largest_significant_t(
        self, acc: float | None = None, *, alpha: float = 0.05, num_correct: int | None = None
    ) -> int:
        """Largest number of independent configurations with a p-value of at most alpha; or 0."""
        count, _ = correct_counts(acc, self.marks, num_correct)
        log_t = np.log(-np.log1p(-_check_level(alpha))) - _log_minus_log_cdf(self._guesser, count)
        if not log_t < 709.0:  # log of the largest double
            raise OverflowError(
                "the largest t that is still significant exceeds every double: log P(X >= "
                f"{count}) = {self._guesser.logsf(count - 1):.6g}."
            )
        # Rounding may be off by one: the p-value itself decides, so that both always agree.
        t = np.floor(np.exp(log_t)) + 1.0
        while t >= 1.0 and float(self.at(t).sf(count - 1)) > alpha:
            t = min(t - 1.0, np.floor(t * (1.0 - 1e-15)))
        return int(t)

    def _over(
        self, k: ArrayLike, t: ArrayLike, method: Callable[[LargestPoissonBinomial, Array], Array]
    ) -> Array:
        """Broadcast a method of the frozen distribution over counts and over t."""
        counts, times = np.broadcast_arrays(np.asarray(k, float), np.asarray(t, float))
        result = np.empty(counts.shape)
        for value in np.unique(times):
            at_t = times == value
            result[at_t] = method(self.at(float(value)), counts[at_t])
        return result[()]


def _log_minus_log_cdf(count: CountDistribution, x: int) -> float:
    """``log(-log P(count < x))``, to which t independent counts add ``log t``."""
    return float(log_minus_log(count.logcdf(x - 1), count.logsf(x - 1)))


def _check_level(alpha: float) -> float:
    return proper_probability("alpha", alpha)


def max_random_baseline(n: int, p: object, t: float = 10, *, trials: int = 1) -> float:
    """Return the expected best accuracy of t independent random guessers on n examples.

    Parameters
    ----------
    n : int
        Examples.
    p : float, mapping or array_like
        Probability of guessing right: one for all, {labels: examples}, or one per example.
    t : float
        Configurations tried (prompts, seeds, demonstration sets): a real number >= 1.
    trials : int
        Guesses per example.

    Returns
    -------
    float
        ``E[max]/(n trials)``.

    See Also
    --------
    bayesatk.guessing.max_random_p_value : its p-value.
    bayesatk.guessing.random_baseline : comparison with an evaluated system.

    References
    ----------
    Yauney and Mimno 2024, arXiv:2404.13020.

    Examples
    --------
    >>> round(max_random_baseline(2, 0.5, t=1), 6)
    0.5
    >>> round(max_random_baseline(1, 0.5, t=2), 6)  # 1 - (1/2)^2
    0.75
    """
    return MaxOrderStatisticPoissonBinomial(n, p, trials=trials).max_random_baseline(t)


def max_random_p_value(
    acc: float | None,
    n: int,
    p: object,
    t: float = 1,
    *,
    num_correct: int | None = None,
    decimals: int | None = None,
    trials: int = 1,
) -> float | PValueRange:
    """Probability that the best of t random guessers is at least as accurate.

    Parameters
    ----------
    acc : float or None
        Accuracy observed; None with `num_correct`.
    n, p, t, trials
        As in `bayesatk.guessing.max_random_baseline`.
    num_correct : int, optional
        The count, in place of the accuracy.
    decimals : int, optional
        Decimals that a printed accuracy was rounded to.

    Returns
    -------
    float or PValueRange
        A range (low, high) when `decimals` is given.

    Raises
    ------
    ValueError
        If ``acc * n * trials`` is not a whole number (up to 1e-9) and `decimals` is not given.

    See Also
    --------
    bayesatk.guessing.max_random_baseline : the expected best accuracy.
    bayesatk.guessing.random_baseline : comparison with an evaluated system.

    Examples
    --------
    >>> round(max_random_p_value(0.29, 100, 0.25), 5)
    0.20754
    >>> round(max_random_p_value(0.5, 2, 0.5), 6)  # 1 - 1/4
    0.75
    >>> low, high = max_random_p_value(0.3, 100, 0.25, decimals=1)  # 25 to 35 correct
    >>> round(low, 4), round(high, 4)
    (0.0164, 0.5383)
    """
    distribution = MaxOrderStatisticPoissonBinomial(n, p, trials=trials)
    return distribution.p_value(acc, t, num_correct=num_correct, decimals=decimals)


def max_random_pmf(num_correct: ArrayLike, n: int, p: object, t: ArrayLike = 1) -> Array:
    """Probability that the best of t random guessers has exactly `num_correct` right.

    `num_correct` and `t` broadcast; counts that cannot occur have probability 0. `n` and `p` as in
    `bayesatk.guessing.max_random_baseline`.

    See Also
    --------
    bayesatk.guessing.MaxOrderStatisticPoissonBinomial : reuses the computation for any t.

    Examples
    --------
    >>> max_random_pmf([0, 1], 1, 0.5, t=2).round(6).tolist()
    [0.25, 0.75]
    """
    return MaxOrderStatisticPoissonBinomial(n, p).pmf(num_correct, t)


def max_random_F(num_correct: ArrayLike, n: int, p: object, t: ArrayLike = 1) -> Array:
    """Probability that the best of t random guessers has at most `num_correct` right.

    Parameters as in `bayesatk.guessing.max_random_pmf`.

    See Also
    --------
    bayesatk.guessing.MaxOrderStatisticPoissonBinomial : reuses the computation for any t.

    Examples
    --------
    >>> max_random_F([0, 1], 1, 0.5, t=[1, 2]).round(6).tolist()
    [0.5, 1.0]
    """
    return MaxOrderStatisticPoissonBinomial(n, p).F(num_correct, t)


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
    proper_probability("ci_prob", ci_prob, 0.95)
    one_of("ci_kind", ci_kind, ("eti", "hdi"))
    mean, sd, skill = selected_skill(count, marks, check_times(t))
    return SelectedSkill(mean, sd, *interval(skill, ci_prob, ci_kind))


def selected_skill(correct: int, marks: int, times: float) -> tuple[float, float, Empirical]:
    """Posterior mean, sd and distribution of the skill; its likelihood is ``P(max = correct)``.

    The distribution is tabulated over logits of skill; its error is below 1e-5.

    Examples
    --------
    >>> mean, sd, _ = selected_skill(3, 4, 1)
    >>> round(mean, 9), round(sd, 9)  # Beta(4, 2)
    (0.666666667, 0.178174161)
    """
    coarse = np.linspace(-60.0, 60.0, 2401)
    weight = np.cumsum(_density(coarse, correct, marks, times))
    low = coarse[max(int(np.searchsorted(weight, 1e-14 * weight[-1])) - 2, 0)]
    last = int(np.searchsorted(weight, (1.0 - 1e-14) * weight[-1]))
    logit = np.linspace(low, coarse[min(last + 2, len(coarse) - 1)], 4001)
    density = _density(logit, correct, marks, times)
    step = logit[1] - logit[0]
    density /= density.sum() * step
    skill = expit(logit)
    mean = float(skill @ density * step)
    sd = float(np.sqrt((skill - mean) ** 2 @ density * step))
    return mean, sd, Empirical(np.asarray(skill, float), density * step)


def _density(logit: Array, correct: int, marks: int, times: float) -> Array:
    """Posterior density of the logit, up to a factor; the skill is uniform a priori."""
    log_success, log_failure = log_expit(logit), log_expit(-logit)
    log_mass = log_choose(marks, correct) + correct * log_success + (marks - correct) * log_failure
    before, lower = (_log_cdf(count, marks, logit)[None] for count in (correct - 1, correct))
    log_density = log_max_pmf(log_mass[None], before, lower, np.array([[times]]))
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
