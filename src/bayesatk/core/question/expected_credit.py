"""Mean and variance of a metric when ``p ~ Beta``, as a function of two numbers.

They are the logit of the mean of p, and ``r``, one over the sum of the Beta's parameters. Of pass@k
and pass^k the mean is a product of k ratios; of other metrics it is tabulated once and
interpolated.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.special import expit

from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.metrics.credit import Array, Credit

FARTHEST = 30.0  # logits of the table


@dataclass(frozen=True)
class ExpectedCredit:
    """Mean and variance of a metric ``g(p)`` under ``p ~ Beta``, by logit of the mean and log r."""

    credit: Credit
    low: tuple[float, float]
    high: tuple[float, float]
    splines: tuple[RectBivariateSpline, RectBivariateSpline] | None

    @classmethod
    def of(
        cls, credit: Credit, logits: tuple[float, float], log_r: tuple[float, float]
    ) -> "ExpectedCredit":
        """Tabulate for a range of either, where it is no short product."""
        x_ends = np.clip(logits, -FARTHEST, FARTHEST)
        # Below these a Beta is a point to all purposes, above them it is 0 or 1.
        r_ends = np.clip(log_r, -16.0, 12.0)
        low, high = (float(x_ends[0]), float(r_ends[0])), (float(x_ends[1]), float(r_ends[1]))
        # A product of 32 factors takes the time of the table, whose error is below 1e-5.
        if credit.k == 1 or (_one_sided(credit) and 2 * credit.k <= 32):
            return cls(credit, low, high, None)
        x, r = (
            np.linspace(start, max(stop, start + step), max(4, int((stop - start) / step) + 2))
            for (start, stop), step in ((x_ends, 0.25), (r_ends, 0.5))
        )
        total = np.exp(-r)[None, :]
        alpha, beta = (expit(sign * x)[:, None] * total for sign in (1.0, -1.0))
        mean, _, variance = beta_binomial_moments([credit], alpha.ravel(), beta.ravel())
        splines = tuple(
            RectBivariateSpline(x, r, values.reshape(alpha.shape)) for values in (mean, variance)
        )
        return cls(credit, low, high, splines)  # type: ignore[arg-type]

    def mean(self, logits: Array, log_r: Array) -> Array:
        """Return the expectation."""
        if self.splines is not None:
            return np.clip(self._at(0, logits, log_r), 0.0, 1.0)
        first, last = self.credit.vector[[0, -1]]
        never = self.credit.threshold == 1  # pass@k is one less the probability of k failures
        power = _all_of(self.credit.k, -logits if never else logits, log_r)
        return np.asarray(
            last - (last - first) * power if never else first + (last - first) * power
        )

    def variance(self, logits: Array, log_r: Array) -> Array:
        """Return the variance."""
        if self.splines is not None:
            return np.maximum(self._at(1, logits, log_r), 0.0)
        first, last = self.credit.vector[[0, -1]]
        side = -logits if self.credit.threshold == 1 else logits
        once, twice = (_all_of(i * self.credit.k, side, log_r) for i in (1, 2))
        return np.asarray((last - first) ** 2 * np.maximum(twice - once**2, 0.0))

    def _at(self, index: int, logits: Array, log_r: Array) -> Array:
        assert self.splines is not None
        logits, log_r = np.broadcast_arrays(logits, log_r)
        x = np.clip(logits, self.low[0], self.high[0])
        r = np.clip(log_r, self.low[1], self.high[1])
        return np.asarray(self.splines[index].ev(x.ravel(), r.ravel()).reshape(x.shape))


def _one_sided(credit: Credit) -> bool:
    """Whether it is 1 less a power of 1 - p, or a power of p."""
    return credit.shape == "threshold" and credit.threshold in (1, credit.k)


def _all_of(k: int, logits: Array, log_r: Array) -> Array:
    """``E[p^k]`` under a Beta with this logit of the mean, and log r.

    Examples
    --------
    >>> _all_of(2, np.zeros(1), np.array([np.log(0.5)])).round(12).tolist()  # uniform
    [0.333333333333]
    """
    mean, r = expit(logits), np.exp(log_r)
    product = mean
    for j in range(1, k):
        product = product * ((mean + j * r) / (1.0 + j * r))
    return np.asarray(product)
