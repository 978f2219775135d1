"""Marks of a judge that errs, as PyMC variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import binom, expit
from scipy.special import gammaln as np_gammaln

from bayesatk._tools.arrays import Ints
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.judge_error import RATE_ICC, RATE_ICC_PRIOR, RATES

Tensor = Any  # a symbolic array: PyTensor has no types to check
_NODES = 201  # of logit p, within which a Beta is integrated to 1e-6
_REACH, _CENTRE = 65.0, 25.0  # logits: of nodes around the centre, and of the centre, at most
_STIRLING = 1e4  # of a parameter from which Stirling's formula is right to 1e-14
_LEAST_ICC = 1e-8  # of rates, from which they are the same for all questions
_IMPOSSIBLE = -1e10  # log probability: finite, so that its derivative is a number


@dataclass(frozen=True)
class Rates:
    """Sensitivity and false positive rate, by system or by count; `total` where they vary.

    Those of a question are then Beta with these means, whose parameters sum to `total`.
    """

    s: Tensor
    f: Tensor
    total: Tensor | None = None

    def of(self, system: Any) -> "Rates":
        """Return those of the systems of counts."""
        total = None if self.total is None else self.total[system]
        return Rates(self.s[system], self.f[system], total)

    def by_question(self) -> tuple[Tensor, Tensor]:
        """Return both by system and question, drawn where they vary."""
        if self.total is None:
            return self.s[:, None], self.f[:, None]
        total = self.total[:, None]
        s, f = (
            pm.Beta(f"question_{name}", mean[:, None] * total, (1.0 - mean[:, None]) * total,
                    dims=("system", "question"))
            for name, mean in zip(RATES, (self.s, self.f), strict=True)
        )  # fmt: skip
        return s, f

    def log_ordered(self, rate: Tensor, unmarked: Any, marked: Any, seen: Any = None) -> Tensor:
        """Log probability of trials of one truth, of a count with some more such trials.

        Parameters
        ----------
        rate : tensor, shape (counts,)
            `s` or `f`.
        unmarked, marked : ndarray, shape (counts, ...)
        seen : ndarray, shape (counts, 2), optional
            More trials of this truth, unmarked and marked; they say what the question's rate is.
        """
        wide = (slice(None), *(None,) * (np.ndim(marked) - 1))
        if self.total is None:
            return marked * pt.log(rate)[wide] + unmarked * pt.log1p(-rate)[wide]
        before = np.zeros((len(marked), 2)) if seen is None else seen
        a = ((1.0 - rate) * self.total + before[:, 0])[wide]
        b = (rate * self.total + before[:, 1])[wide]
        logs = log_rising(a, unmarked) + log_rising(b, marked)
        return logs - log_rising(a + b, unmarked + marked)


def mark_rates(judges: Sequence[JudgeRates]) -> Rates:
    """Add the rates of the judge of every system, which may vary by question."""
    shapes = np.array([judge.error.shapes for judge in judges])
    s, f = (pm.Beta(name, *shapes[:, column].T, dims="system") for column, name in enumerate(RATES))
    if not judges[0].varying:
        return Rates(s, f)
    icc = pt.maximum(pm.Beta(RATE_ICC, *RATE_ICC_PRIOR, dims="system"), _LEAST_ICC)
    return Rates(s, f, 1.0 / icc - 1.0)


def log_rising(a: Tensor, n: Tensor) -> Tensor:
    """Log of ``a (a + 1) ... (a + n - 1)``.

    The difference of two log-gammas, but for large ``a``, where nothing but rounding errors would
    be left of it, and chains get stuck at one: there by Stirling's formula.
    """
    direct = pt.gammaln(a + n) - pt.gammaln(a)
    change = (a + n - 0.5) * pt.log1p(n / a) - n + (1.0 / (a + n) - 1.0 / a) / 12.0
    return pt.switch(a < _STIRLING, direct, n * pt.log(a) + change)


def right_trials(trials: Ints) -> Ints:
    """Return every number of right trials that marks may come from, (counts, right).

    That is 0, 1, ... up to the trials of a count, and then again and again as many as that.
    """
    return np.minimum(np.arange(int(trials.max()) + 1), trials[:, None])


def log_marks(
    marks: Ints, trials: Ints, log_right: Tensor, rates: Rates, labels: NDArray[Any] | None = None
) -> Tensor:
    """Log probability of marks in their order, right trials added up; (counts,).

    Parameters
    ----------
    marks, trials : ndarray of int, shape (counts,)
    log_right : tensor, shape (counts, right)
        Log probability of so many right trials, in their order.
    rates : Rates
        Of who marked them; by count.
    labels : ndarray, shape (counts, 6), optional
        As of `log_labels`, of the same questions.
    """
    t = np.arange(int(trials.max()) + 1)[:, None]
    marked_right = t.T
    c, wrong = marks[:, None, None], (trials - marks)[:, None, None]
    with np.errstate(divide="ignore"):
        ways = np.log(binom(c, marked_right)) + np.log(binom(wrong, t - marked_right))
    possible = np.isfinite(ways)
    logs = np.where(possible, ways, _IMPOSSIBLE)
    powers = (t - marked_right, marked_right), (wrong - t + marked_right, c - marked_right)
    for rate, power, kinds in zip((rates.s, rates.f), powers, ([4, 5], [1, 2]), strict=True):
        unmarked, marked = (np.where(possible, values, 0) for values in power)
        seen = None if labels is None else labels[:, kinds]
        logs = logs + rates.log_ordered(rate, unmarked, marked, seen)
    return pt.logsumexp(log_right + pt.logsumexp(logs, axis=2), axis=1)


def log_labels(counts: NDArray[Any], rates: Rates) -> Tensor:
    """Log probability of the marks of trials of known truth, given it; (counts,).

    Parameters
    ----------
    counts : ndarray, shape (counts, 6)
        Wrong trials without a mark, marked wrong and marked right, then right ones.
    rates : Rates
        By count.
    """
    _, rejected, accepted, _, missed, marked_right = counts.T
    of_wrong = rates.log_ordered(rates.f, rejected, accepted)
    return of_wrong + rates.log_ordered(rates.s, missed, marked_right)


def logit_nodes(
    parts: Sequence[tuple[Tensor, Tensor | float]],
    log_atoms: Sequence[Tensor],
    maths: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Mixtures of Betas and atoms on nodes of logit p, for integrals without a closed form.

    Parameters
    ----------
    parts : sequence of (alpha, log share)
        Of shapes (laws, 2) and (laws,).
    log_atoms : sequence of array, shape (laws,)
        Log shares of p = 0 and p = 1; empty without atoms.
    maths : module
        Of the arrays: pytensor.tensor or numpy.

    Returns
    -------
    p, q, log_weight : array, shape (laws, nodes)
        Probabilities, 1 - p, and log weights of the nodes.
    """
    columns = []
    for alpha, log_share in parts:
        p, q, log_weight = beta_nodes(alpha[:, 1], alpha[:, 0], maths)
        log_shares = maths.zeros_like(alpha[:, 0]) + log_share
        columns.append((p, q, log_weight + log_shares[:, None]))
    for log_share, at in zip(log_atoms, (0.0, 1.0), strict=False):
        zeros = maths.zeros_like(log_share[:, None])
        columns.append((zeros + at, zeros + 1.0 - at, log_share[:, None]))
    p, q, log_weight = (maths.concatenate(column, axis=1) for column in zip(*columns, strict=True))
    return p, q, log_weight


def beta_nodes(a: Tensor, b: Tensor, maths: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return nodes of p, of 1 - p, and log weights of Beta(a, b); (laws, nodes).

    Nodes are dense around the centre, in units of the width of the Beta, and reach so far that p is
    0 or 1 beyond them: the first and the last node have the probabilities of these tails.
    """
    numpy = maths is np
    gammaln, sigmoid = (np_gammaln, expit) if numpy else (pt.gammaln, pt.sigmoid)
    u = np.linspace(-1.0, 1.0, _NODES)
    centre = maths.clip(maths.log(a) - maths.log(b), -_CENTRE, _CENTRE)
    width = maths.clip(maths.sqrt(1.0 / a + 1.0 / b), 1e-8, 1.0)
    reach = maths.arcsinh(_REACH / width)
    t = reach[:, None] * u
    x = centre[:, None] + width[:, None] * maths.sinh(t)
    p, q = sigmoid(x), sigmoid(-x)
    scale = gammaln(a) + gammaln(b) - gammaln(a + b)
    log_weight = (maths.log(width * reach) - scale)[:, None] + maths.log(maths.cosh(t))
    ends = np.log(np.where(np.abs(u) < 1.0, 1.0, 0.5))  # of the trapezoid rule
    log_weight = log_weight + ends + np.log(2.0 / (_NODES - 1))
    log_weight = log_weight + a[:, None] * maths.log(p) + b[:, None] * maths.log(q)
    below = a * (centre - _REACH) - maths.log(a) - scale
    above = -b * (centre + _REACH) - maths.log(b) - scale
    zero = maths.zeros_like(x[:, :1])
    return (
        maths.concatenate([zero, p, zero + 1.0], axis=1),
        maths.concatenate([zero + 1.0, q, zero], axis=1),
        maths.concatenate([below[:, None], log_weight, above[:, None]], axis=1),
    )
