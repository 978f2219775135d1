"""Beta-binomial likelihood of the hyperparameters from histograms of counts.

With ``u = r/(1-r)`` a question contributes ``sum_{v<c} log(m + v u) + sum_{v<n-c} log(1-m + v u)
- sum_{v<n} log(1 + v u)``, which neither cancels as r -> 0 nor overflows as r -> 1; summed over
questions, only the numbers of questions that exceed v successes, failures and trials remain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayesatk.core.credit import Array

_BLOCK = 2_000_000  # logarithms taken at once: 16 MB


@dataclass(frozen=True)
class CountHistograms:
    """Sufficient statistics: how many questions exceed v successes, failures, trials."""

    successes: Array
    failures: Array
    trials: Array

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike, count: ArrayLike) -> "CountHistograms":
        """Return the histograms of distinct states with their multiplicities."""
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        weight = np.asarray(count, float)
        return cls(*(_exceeding(values, weight) for values in (c, n - c, n)))

    @property
    def size(self) -> int:
        """Terms in one likelihood evaluation."""
        return len(self.successes) + len(self.failures) + len(self.trials)


def _exceeding(values: NDArray[np.int64], weight: Array) -> Array:
    """Total weight of values above v, for v = 0..max-1."""
    histogram = np.bincount(values, weights=weight)
    return np.asarray(histogram[::-1].cumsum()[::-1][1:])


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
    mean, rest = expit(x)[:, None], expit(-x)[:, None]
    with np.errstate(over="ignore"):
        ratio = np.exp(np.minimum(y, 600.0))[:, None]
    total = np.zeros(len(x))
    for histogram, base, sign in (
        (data.successes, mean, 1.0),
        (data.failures, rest, 1.0),
        (data.trials, 1.0, -1.0),
    ):
        v = np.arange(len(histogram))
        for start in range(0, len(x), max(1, _BLOCK // max(1, len(v)))):
            part = slice(start, start + max(1, _BLOCK // max(1, len(v))))
            centre = base if isinstance(base, float) else base[part]
            with np.errstate(divide="ignore"):
                terms = np.log(centre + v * ratio[part])
            total[part] += sign * (terms @ histogram)
    return total
