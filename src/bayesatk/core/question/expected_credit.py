"""Mean and variance of a metric when ``p ~ Beta``, as a function of two numbers.

They are the logit of the mean of p, and the log of ``r``, one over the sum of the Beta's
parameters: tabulated once, and interpolated by cubic splines. The error is below 1e-5; of one trial
there is none.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import map_coordinates, spline_filter
from scipy.special import expit

from bayesatk._tools.arrays import Array
from bayesatk.core.question.beta_binomial import beta_binomial_moments, beta_of
from bayesatk.metrics.credit import Credit

FARTHEST = 30.0  # logits of the table
_STEP = np.array([0.125, 0.25])  # of logits and of log r


@dataclass(frozen=True)
class ExpectedCredit:
    """Mean and variance of a metric ``g(p)`` under ``p ~ Beta``, by logit of the mean and log r.

    Parameters
    ----------
    credit : Credit
    first : ndarray, shape (2,)
        Smallest logit and log r of the table.
    splines : ndarray, shape (2, logits, log r)
        Coefficients of the mean, and of the variance.
    """

    credit: Credit
    first: Array
    splines: Array

    @classmethod
    def of(
        cls, credit: Credit, logits: tuple[float, float], log_r: tuple[float, float]
    ) -> "ExpectedCredit":
        """Tabulate for a range of either.

        Examples
        --------
        >>> from bayesatk.metrics.credit import pass_hat
        >>> both = ExpectedCredit.of(pass_hat(2), (-3.0, 3.0), (-4.0, 1.0))
        >>> both.mean(np.zeros(1), np.log([0.5])).round(5).tolist()  # uniform
        [0.33333]
        """
        # Below these r a Beta is a point to all purposes, above them it is 0 or 1.
        ends = np.clip([logits, log_r], [[-FARTHEST], [-16.0]], [[FARTHEST], [12.0]])
        # What splines do not know of the ends fades within a few steps.
        first, last = ends[:, 0] - 10 * _STEP, ends[:, 1] + 10 * _STEP
        x, r = (
            np.arange(start, stop + step, step)
            for start, stop, step in zip(first, last, _STEP, strict=True)
        )
        alpha, beta = beta_of(x[:, None], r)
        mean, _, variance = beta_binomial_moments([credit], alpha.ravel(), beta.ravel())
        tables = (values.reshape(alpha.shape) for values in (mean, variance))
        return cls(credit, first, np.stack([spline_filter(table) for table in tables]))

    def mean(self, logits: Array, log_r: Array) -> Array:
        """Return the expectation."""
        if self.credit.k == 1:
            return np.asarray(self.credit.vector[0] + np.diff(self.credit.vector) * expit(logits))
        return np.clip(self._at(0, logits, log_r), 0.0, 1.0)

    def variance(self, logits: Array, log_r: Array) -> Array:
        """Return the variance."""
        return np.maximum(self._at(1, logits, log_r), 0.0)

    def _at(self, index: int, logits: Array, log_r: Array) -> Array:
        numbers = np.stack(np.broadcast_arrays(logits, log_r), axis=-1)
        steps = np.moveaxis((numbers - self.first) / _STEP, -1, 0)
        return np.asarray(
            map_coordinates(self.splines[index], steps, prefilter=False, mode="nearest")
        )
