"""E-values: evidence against a null hypothesis that stays valid under optional stopping.

An e-value has an expectation of at most 1 if the null hypothesis holds. One that is multiplied by
another such factor for every new question is an e-process: whatever the number of looks and the
reason to stop, it ever reaches ``1/alpha`` with probability ``alpha`` at most (Ville 1939; Ramdas,
Grünwald, Vovk and Shafer 2023, Statistical Science 38(4), 576-601).

Both e-values here are mixtures, over a prior of a parameter, of products over questions. The
logarithm of the product is concave in the parameter, so that one routine integrates both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk.metrics.credit import log_choose

Curve = Callable[[Array], Array]

_LOG_ODDS_RATIO_MAX = 50.0  # an interval that reaches it is unbounded


@dataclass(frozen=True)
class Splits:
    """Successes of two systems on the same questions, given their sum on each question.

    Given the sum t of both systems' successes on a question, the first one's are hypergeometric
    if the systems are equally good at it, whatever its difficulty, and noncentral hypergeometric
    (Fisher 1935) if their odds have a ratio of ``exp(theta)``: the factor of the question is
    ``exp(theta c) / E_0[exp(theta C)]``.

    Parameters
    ----------
    successes : float
        Successes of the first system on all questions.
    first_trials, second_trials, total, weight : ndarray
        Distinct triples of the trials of both systems and the sum of their successes on a question,
        and the number of questions with each.
    """

    successes: float
    first_trials: Array
    second_trials: Array
    total: Array
    weight: Array

    @classmethod
    def of(cls, successes: Ints, trials: Ints) -> "Splits":
        """Return the splits of counts (2, questions) that the sums leave open.

        Examples
        --------
        >>> splits = Splits.of(np.array([[1, 1], [0, 1]]), np.array([[1, 1], [1, 1]]))
        >>> float(np.exp(splits.log_ratio(np.log([3.0])))[0])  # (3/4) / (1/2), and 1
        1.5
        """
        total = successes.sum(axis=0)
        least = np.maximum(0, total - trials[1])
        split = np.minimum(total, trials[0]) > least
        kinds = np.stack([*trials, total])[:, split]
        states, weight = np.unique(kinds, axis=1, return_counts=True)
        first_trials, second_trials, sums = states.astype(float)
        return cls(
            float(successes[0, split].sum()),
            first_trials,
            second_trials,
            sums,
            weight.astype(float),
        )

    @cached_property
    def _support(self) -> tuple[Array, Array, Indices]:
        """Possible successes of the first system, log null probabilities, and starts of the kinds.

        The kinds of questions are concatenated. Successes are counted from the smallest possible
        value, so that nothing cancels.
        """
        size = (np.minimum(self.total, self.first_trials) - self._least + 1).astype(int)
        start = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.intp)
        kind = np.repeat(np.arange(len(size)), size)
        above = (np.arange(size.sum()) - start[kind]).astype(float)
        c, n, m, t = (
            above + self._least[kind],
            *(counts[kind] for counts in (self.first_trials, self.second_trials, self.total)),
        )
        logs = log_choose(n, c) + log_choose(m, t - c) - log_choose(n + m, t)
        return above, logs, start

    @cached_property
    def _least(self) -> Array:
        """Fewest successes of the first system that each sum allows."""
        return np.maximum(0.0, self.total - self.second_trials)

    @cached_property
    def above(self) -> float:
        """Successes of the first system beyond the fewest that the sums allow."""
        return self.successes - float(self.weight @ self._least)

    @cached_property
    def most(self) -> float:
        """Return the largest value of `above`."""
        return float(self.weight @ (np.minimum(self.total, self.first_trials) - self._least))

    def log_ratio(self, theta: Array) -> Array:
        """Log likelihood ratio of log odds ratios against 0; concave."""
        if not len(self.weight):
            return np.zeros_like(theta)
        value, logs, start = self._support
        log_ratios = np.empty(len(theta))
        rows = max(1, 2_000_000 // len(value))  # exponentials taken at once: 16 MB
        size = np.diff(np.append(start, len(value)))
        with np.errstate(under="ignore"):
            for first in range(0, len(theta), rows):
                block = theta[first : first + rows, None]
                terms = logs + block * value
                top = np.maximum.reduceat(terms, start, axis=1)
                terms -= np.repeat(top, size, axis=1)
                log_normalisers = np.log(np.add.reduceat(np.exp(terms), start, axis=1)) + top
                log_ratios[first : first + rows] = (
                    block[:, 0] * self.above - log_normalisers @ self.weight
                )
        return log_ratios

    def log_e(self, sd: float) -> tuple[float, float]:
        """Log e-values for the first system having larger odds, and for smaller odds.

        The first is against "on no question are its odds larger": the products are mixed over a
        half-normal prior of the log odds ratio with this scale. The expectation of each is at most
        1 if the ratio of every question is 1 or on the other side of 1.

        Examples
        --------
        >>> splits = Splits.of(np.array([[1, 1], [0, 1]]), np.array([[1, 1], [1, 1]]))
        >>> better, worse = np.exp(splits.log_e(1.0))
        >>> bool(better > 1 > worse), float((better + worse).round(9)) / 2  # a mean of 1
        (True, 1.0)
        """
        log_growth = 1.0 + np.log1p(
            sd**2 * float(self.weight @ (self.first_trials * self.second_trials))
        )
        end = min(sd**2 * self.most, log_growth) + 9.5 * sd  # where the log prior has dropped by 45

        def curve(theta: Array) -> Array:
            return self.log_ratio(theta) - 0.5 * (theta / sd) ** 2

        scale = 0.5 * np.log(0.5 * np.pi) + np.log(sd)
        return (
            log_integral(curve, 0.0, end) - scale,
            log_integral(lambda theta: curve(-theta), 0.0, end) - scale,
        )

    def mode(self) -> float:
        """Return the conditional maximum likelihood estimate of the log odds ratio."""
        if not len(self.weight):
            return np.nan
        if self.above in (0.0, self.most):
            return np.inf if self.above else -np.inf
        return _argmax_concave(self.log_ratio, -_LOG_ODDS_RATIO_MAX, _LOG_ODDS_RATIO_MAX)

    def interval(self, sd: float, alpha: float) -> tuple[float, float]:
        """Log odds ratios that an e-value does not reject at ``1/alpha``.

        The mixture divided by the likelihood at a ratio is an e-value against that ratio. So the
        intervals of all looks simultaneously contain a ratio common to all questions with
        probability at least ``1 - alpha``.
        """
        level = float(np.logaddexp(*self.log_e(sd)) - np.log(2.0)) + np.log(alpha)
        inside = float(
            np.clip(np.nan_to_num(self.mode()), -_LOG_ODDS_RATIO_MAX, _LOG_ODDS_RATIO_MAX)
        )

        def excess(theta: float) -> float:
            return float(_value_at(self.log_ratio, theta) - level)

        lower, upper = (
            float(np.copysign(np.inf, end))
            if inside == end or excess(end) >= 0.0
            else float(brentq(excess, inside, end))
            for end in (-_LOG_ODDS_RATIO_MAX, _LOG_ODDS_RATIO_MAX)
        )
        return lower, upper


@dataclass(frozen=True)
class Capital:
    """E-values of the mean of scores from 0 to 1, by betting.

    The factor ``1 + u (x/m - 1)`` has expectation 1 if the score has the mean m, whatever its
    distribution: the capital of a gambler who bets the share u on every question (Waudby-Smith
    and Ramdas 2024, J. R. Statist. Soc. B 86(1), 1-27, eq. 24). It is mixed uniformly over u.

    Parameters
    ----------
    value, weight : ndarray
        Distinct scores, and the number of questions with each.
    """

    value: Array
    weight: Array

    @classmethod
    def of(cls, scores: Array) -> "Capital":
        """Tally scores in [0, 1]."""
        value, weight = np.unique(scores, return_counts=True)
        return cls(value, weight.astype(float))

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(self.weight @ self.value / self.weight.sum()) if len(self.value) else np.nan

    def log_e(self, mean: float) -> tuple[float, float]:
        """Log e-values of a larger mean than this, and of a smaller one.

        The first is against "the mean is at most this".

        Examples
        --------
        >>> certain = Capital.of(np.array([1.0]))  # the mean of 1 + u over u, and of 1 - u
        >>> np.exp(certain.log_e(0.5)).round(9).tolist()
        [1.5, 0.5]
        """
        return self._above(mean), self.mirrored()._above(1.0 - mean)

    def mirrored(self) -> "Capital":
        """Return one minus the scores."""
        return Capital(1.0 - self.value, self.weight)

    def _above(self, mean: float) -> float:
        gain = self.value / mean - 1.0

        def curve(share: Array) -> Array:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log1p(share[:, None] * gain) @ self.weight)

        return log_integral(curve, 0.0, 1.0) if len(gain) else 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """Means that neither e-value rejects at ``alpha/2``, simultaneously at all looks."""
        lower = self._lower(alpha)
        return lower, 1.0 - self.mirrored()._lower(alpha)

    def _lower(self, alpha: float) -> float:
        # Every factor decreases in the mean, and so does the e-value.
        level, mean_min = np.log(2.0 / alpha), 1e-9
        if not len(self.value) or self._above(mean_min) <= level:
            return 0.0
        highest = max(min(self.mean, 1.0 - mean_min), mean_min)
        return float(brentq(lambda m: self._above(m) - level, mean_min, highest, xtol=1e-12))


def log_integral(curve: Curve, lower: float, upper: float) -> float:
    """Log of the integral of ``exp(curve)``, for a concave curve.

    Parameters
    ----------
    curve : callable
        Function of an array.
    lower, upper : float

    Examples
    --------
    >>> round(log_integral(lambda x: -50.0 * x**2, -3.0, 9.0), 6)  # sqrt(pi / 50)
    -1.383647
    """
    peak = _argmax_concave(curve, lower, upper)
    level = _value_at(curve, peak) - 45.0  # exp(-45) ~ 3e-20
    node, log_weight = _gauss_legendre()
    log_terms = []
    for end in (lower, upper):
        if _value_at(curve, end) < level:  # truncated where the integrand is negligible
            end = float(brentq(lambda x: max(_value_at(curve, x) - level, -1e3), peak, end))
        if end != peak:
            length = end - peak
            log_terms.append(curve(peak + length * node) + log_weight + np.log(abs(length)))
    return float(logsumexp(np.concatenate(log_terms)))


@cache
def _gauss_legendre() -> tuple[Array, Array]:
    """Nodes and log weights on [0, 1]; with 64 the error for half a Gaussian is 1e-12."""
    node, weight = np.polynomial.legendre.leggauss(64)
    return 0.5 * (node + 1.0), np.log(0.5 * weight)


def _argmax_concave(curve: Curve, lower: float, upper: float) -> float:
    """Return the argument of the maximum of a concave curve."""
    minimum = minimize_scalar(
        lambda x: -_value_at(curve, float(x)),
        bounds=(lower, upper),
        method="bounded",
        options={"xatol": 1e-9 * (upper - lower), "maxiter": 200},
    )
    return float(minimum.x)


def _value_at(curve: Curve, x: float) -> float:
    return float(curve(np.array([x]))[0])
