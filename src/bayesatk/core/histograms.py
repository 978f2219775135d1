"""Beta-binomial likelihood of the hyperparameters from histograms of counts.

With ``u = r/(1-r)`` a question contributes ``sum_{v<c} log(m + v u) + sum_{v<n-c} log(1-m + v u)
- sum_{v<n} log(1 + v u)``, which neither cancels as r -> 0 nor overflows as r -> 1; summed over
questions, only the numbers of questions that exceed v successes, failures and trials remain. The
terms from the 64th on are summed by the Euler-Maclaurin formula, one sum for each distinct count,
so that the work does not grow with the trials.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayesatk.metrics.credit import Array

_BLOCK = 2_000_000  # logarithms taken at once: 16 MB
_FARTHEST = 600.0  # logit r up to which its odds are a number; beyond, the likelihood is a power
_EXPLICIT = 64  # terms added one by one; the formula errs by 24 / (30240 * 64^5) = 7e-13 a question


@dataclass(frozen=True)
class Exceeding:
    """How many questions exceed v = 0, 1, .. of a count.

    Parameters
    ----------
    explicit : ndarray, shape (at most 64,)
        Total weight of the questions that exceed v.
    large, weight : ndarray
        Distinct counts above 64, and the weight of the questions that have them.
    """

    explicit: Array
    large: Array
    weight: Array

    @classmethod
    def of(cls, values: NDArray[np.int64], weight: Array) -> "Exceeding":
        """Tally counts with weights."""
        small = np.bincount(np.minimum(values, _EXPLICIT), weights=weight)
        large, which = np.unique(values[values > _EXPLICIT], return_inverse=True)
        return cls(
            np.asarray(small[::-1].cumsum()[::-1][1:]),
            large.astype(float),
            np.bincount(which, weights=weight[values > _EXPLICIT], minlength=len(large)),
        )

    @property
    def after_first(self) -> float:
        """Total weight of all v >= 1 that are exceeded."""
        return float(self.explicit[1:].sum() + self.weight @ (self.large - _EXPLICIT))

    def log_rise(self, base: Array, ratio: Array) -> Array:
        """Sum over questions of ``sum_{v < count} log(base + v ratio)``; shape (g, 1) each."""
        with np.errstate(divide="ignore"):
            total = np.log(base + np.arange(len(self.explicit)) * ratio) @ self.explicit
        if len(self.large):
            total = total + _later(base, ratio, self.large) @ self.weight
        return np.asarray(total)


def _later(base: Array, ratio: Array, count: Array) -> Array:
    """``sum_{v=64}^{count-1} log(base + v ratio)`` by Euler and Maclaurin; shape (g, counts)."""
    # The integral is count log(last) - 64 log(first) - (count - 64) + base/ratio log(last/first),
    # of which the last part must not cancel as ratio goes to 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        first, last = base + _EXPLICIT * ratio, base + count * ratio
        step = (count - _EXPLICIT) * ratio / first
        inverse = np.where(step > 0.0, np.log1p(step) / step, 1.0)
        part = np.minimum(base / first, 1.0) * (count - _EXPLICIT) * inverse
        ends = np.log(first) - np.log(last)
        slope = ratio / last - ratio / first
        bend = 2.0 * ((ratio / last) ** 3 - (ratio / first) ** 3)
        integral = count * np.log(last) - _EXPLICIT * np.log(first) - (count - _EXPLICIT) + part
        found = integral + 0.5 * ends + slope / 12.0 - bend / 720.0
        return np.where(last > 0.0, found, -np.inf)


@dataclass(frozen=True)
class CountHistograms:
    """Sufficient statistics: how many questions exceed v successes, failures, trials."""

    successes: Exceeding
    failures: Exceeding
    trials: Exceeding

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike, count: ArrayLike) -> "CountHistograms":
        """Return the histograms of distinct states with their multiplicities."""
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        weight = np.asarray(count, float)
        return cls(*(Exceeding.of(values, weight) for values in (c, n - c, n)))

    @property
    def success_rate(self) -> float:
        """Share of successes among all trials, half a success and half a failure added."""
        right, all_trials = (
            float(each.explicit.sum() + each.weight @ (each.large - _EXPLICIT))
            for each in (self.successes, self.trials)
        )
        return (right + 0.5) / (all_trials + 1.0)

    def log_likelihood(self, x: Array, y: Array) -> Array:
        """Return `log_likelihood` of these data."""
        return log_likelihood(self, x, y)


def log_likelihood(data: CountHistograms, x: Array, y: Array) -> Array:
    """Beta-binomial log-likelihood at ``x = logit m``, ``y = logit r``, without binomial factors.

    Parameters
    ----------
    data : CountHistograms
    x, y : ndarray, shape (g,)

    Returns
    -------
    ndarray, shape (g,)
    """
    total = np.empty(len(x))
    terms = sum(len(each.explicit) + 8 * len(each.large) for each in (data.trials, data.successes))
    rows = max(1, _BLOCK // max(1, terms))
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        ratio = np.exp(np.minimum(y[part], _FARTHEST))[:, None]
        right = data.successes.log_rise(expit(x[part])[:, None], ratio)
        wrong = data.failures.log_rise(expit(-x[part])[:, None], ratio)
        total[part] = right + wrong - data.trials.log_rise(np.ones_like(ratio), ratio)
    power = data.successes.after_first + data.failures.after_first - data.trials.after_first
    return total + power * np.maximum(y - _FARTHEST, 0.0)
