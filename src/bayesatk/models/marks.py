"""Marks of judges that err, as PyMC variables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import betaln as scipy_betaln
from scipy.special import gammaln

from bayesatk.judge_error import Judges

Tensor = Any  # a symbolic array: PyTensor has no types to check
Ints = NDArray[np.int64]
_NODES = 201  # of logit p, within which a Beta is integrated to 1e-6
_REACH, _CENTRE = 65.0, 25.0  # logits: of nodes around the centre, and of the centre, at most
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


@dataclass(frozen=True)
class LogitRule:
    """A Beta on nodes of logit p, for integrals that have no closed form; symbolic or not.

    Nodes are dense around the centre, in units of the width of the Beta, and reach so far that p is
    0 or 1 beyond them; the probabilities of these tails are known.

    Parameters
    ----------
    x, log_weight : array, shape (laws, nodes)
    log_below, log_above : array, shape (laws,)
        Log probability of p below and above the nodes.
    """

    x: Tensor
    log_weight: Tensor
    log_below: Tensor
    log_above: Tensor

    @classmethod
    def of(cls, a: Tensor, b: Tensor, maths: Any) -> "LogitRule":
        """Return the rule of Beta(a, b), with arrays of `maths`: pytensor.tensor or numpy."""
        betaln = scipy_betaln if maths is np else _betaln
        softplus = _softplus if maths is np else pt.softplus
        u = np.linspace(-1.0, 1.0, _NODES)
        centre = maths.clip(maths.log(a) - maths.log(b), -_CENTRE, _CENTRE)
        width = maths.clip(maths.sqrt(1.0 / a + 1.0 / b), 1e-8, 1.0)
        reach = maths.arcsinh(_REACH / width)
        t = reach[:, None] * u
        x = centre[:, None] + width[:, None] * maths.sinh(t)
        scale = betaln(a, b)
        log_weight = (maths.log(width * reach) - scale)[:, None] + maths.log(maths.cosh(t))
        ends = np.log(np.where(np.abs(u) < 1.0, 1.0, 0.5))  # of the trapezoid rule
        log_weight = log_weight + ends + np.log(2.0 / (_NODES - 1))
        log_weight = log_weight - a[:, None] * softplus(-x) - b[:, None] * softplus(x)
        return cls(
            x, log_weight, a * (centre - _REACH) - maths.log(a) - scale,
            -b * (centre + _REACH) - maths.log(b) - scale,
        )  # fmt: skip


def _betaln(a: Tensor, b: Tensor) -> Tensor:
    return pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(a + b)


def _softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x)


def _log_ways(one: Ints, other: Ints) -> NDArray[np.float64]:
    found = gammaln(one + other + 1.0) - gammaln(one + 1.0) - gammaln(other + 1.0)
    return np.asarray(found)
