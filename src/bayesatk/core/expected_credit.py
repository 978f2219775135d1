"""Mean and variance of a metric when ``p ~ Beta``, as a function of two numbers, tabulated once."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.special import expit

from bayesatk.core.beta_binomial import beta_binomial_moments
from bayesatk.metrics.credit import Array, Credit

_LOGITS, _RATIOS = 0.25, 0.5  # steps of the table: its error is below 1e-5
FARTHEST = 30.0  # logits of the table
_CERTAIN = -16.0  # log r below which a Beta is a point to all purposes
_WIDEST = 12.0  # log r above which it is 0 or 1


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
        """Tabulate for a range of either; of one trial it is a formula."""
        x_ends = np.clip(logits, -FARTHEST, FARTHEST)
        r_ends = np.clip(log_r, _CERTAIN, _WIDEST)
        low, high = (float(x_ends[0]), float(r_ends[0])), (float(x_ends[1]), float(r_ends[1]))
        if credit.k == 1:
            return cls(credit, low, high, None)
        x, r = (
            np.linspace(start, max(stop, start + step), max(4, int((stop - start) / step) + 2))
            for (start, stop), step in ((x_ends, _LOGITS), (r_ends, _RATIOS))
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
        if self.splines is None:
            first, last = self.credit.vector
            return np.asarray(first + (last - first) * expit(logits))
        return np.clip(self._at(0, logits, log_r), 0.0, 1.0)

    def variance(self, logits: Array, log_r: Array) -> Array:
        """Return the variance."""
        if self.splines is None:
            first, last = self.credit.vector
            icc = expit(log_r)
            return np.asarray((last - first) ** 2 * expit(logits) * expit(-logits) * icc)
        return np.maximum(self._at(1, logits, log_r), 0.0)

    def _at(self, which: int, logits: Array, log_r: Array) -> Array:
        assert self.splines is not None
        logits, log_r = np.broadcast_arrays(logits, log_r)
        x = np.clip(logits, self.low[0], self.high[0])
        r = np.clip(log_r, self.low[1], self.high[1])
        return np.asarray(self.splines[which].ev(x.ravel(), r.ravel()).reshape(x.shape))
