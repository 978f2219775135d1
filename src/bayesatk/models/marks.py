"""Marks of judges that err, as PyMC variables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import gammaln

from bayesatk.judge_error import Judges

Tensor = Any  # a symbolic array: PyTensor has no types to check
Ints = NDArray[np.int64]
_IMPOSSIBLE = -1e10  # log probability: finite, so that its derivative is a number


def mark_rates(judges: Judges) -> tuple[Tensor, Tensor]:
    """Add the rates of every judge: sensitivity and false positive rate, each by system."""
    if not all(one.updated for one in judges.by_system):
        raise ValueError(
            "judge must have updated=True for a PyMC model, in which the marks always inform the "
            "error rates. Use JudgeError(..., updated=True), or bayesatk.evaluate."
        )
    shapes = np.array([one.shapes for one in judges.groups()])
    rates = pm.Beta("judge_rates", shapes[..., 0], shapes[..., 1])
    which = np.empty(len(judges.by_system), int)
    for number, systems in enumerate(judges.groups().values()):
        which[systems] = number
    s, f = (
        pm.Deterministic(name, rates[which, column], dims="system")
        for column, name in enumerate(("sensitivity", "false_positive_rate"))
    )
    return s, f


@dataclass(frozen=True)
class RightTrials:
    """Every number of right trials that marks may come from.

    Parameters
    ----------
    marks, trials : ndarray of int, shape (counts,)
    """

    marks: Ints
    trials: Ints

    @property
    def right(self) -> Ints:
        """0, 1, ... up to the trials of a count, and then again and again as many as that."""
        every = np.arange(int(self.trials.max()) + 1)
        return np.minimum(every, self.trials[:, None])

    def log_chances(self, s: Tensor, f: Tensor) -> Tensor:
        """Log probability of marks in their order, times the orders of right trials.

        Of shape (counts, right).

        Parameters
        ----------
        s, f : tensor, shape (counts,)
            Rates of who marked them.
        """
        t = np.arange(int(self.trials.max()) + 1)[:, None]
        marked_right = t.T
        c, n = self.marks[:, None, None], self.trials[:, None, None]
        marked_wrong = c - marked_right
        possible = (marked_right <= t) & (t <= n) & (marked_wrong >= 0) & (marked_wrong <= n - t)
        powers = [
            np.where(possible, one, 0)
            for one in (marked_right, t - marked_right, marked_wrong, n - t - marked_wrong)
        ]
        ways = _log_ways(powers[0], powers[1]) + _log_ways(powers[2], powers[3])
        ways += _log_ways(t * possible, (n - t) * possible) - _log_ways(c, n - c)
        logs = np.where(possible, ways, _IMPOSSIBLE)
        rates = pt.log(s), pt.log1p(-s), pt.log(f), pt.log1p(-f)
        for power, rate in zip(powers, rates, strict=True):
            logs = logs + power * rate[:, None, None]
        return pt.logsumexp(logs, axis=2)

    def log_marks(self, log_right: Tensor, s: Tensor, f: Tensor) -> Tensor:
        """Log probability of marks in their order, right trials added up; (counts,).

        Parameters
        ----------
        log_right : tensor, shape (counts, right)
            Log probability of so many right trials, in their order.
        s, f : tensor, shape (counts,)
        """
        return pt.logsumexp(log_right + self.log_chances(s, f), axis=1)


def _log_ways(one: Ints, other: Ints) -> NDArray[np.float64]:
    found = gammaln(one + other + 1.0) - gammaln(one + 1.0) - gammaln(other + 1.0)
    return np.asarray(found)
