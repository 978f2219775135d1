"""Marks of judges that err, as PyMC variables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import binom, expit
from scipy.special import gammaln as np_gammaln

from bayesatk.judge_error import Judges

Tensor = Any  # a symbolic array: PyTensor has no types to check
Ints = NDArray[np.int64]
_NODES = 201  # of logit p, within which a Beta is integrated to 1e-6
_REACH, _CENTRE = 65.0, 25.0  # logits: of nodes around the centre, and of the centre, at most
_IMPOSSIBLE = -1e10  # log probability: finite, so that its derivative is a number


def mark_rates(judges: Judges) -> tuple[Tensor, Tensor]:
    """Add the rates of every judge: sensitivity and false positive rate, each by system."""
    if not all(judge.updated for judge in judges.by_system):
        raise ValueError(
            "judge must have updated=True for a PyMC model, in which the marks always inform the "
            "error rates. Use JudgeError(..., updated=True), or bayesatk.evaluate."
        )
    shapes = np.array([judge.shapes for judge in judges.groups()])
    rates = pm.Beta("judge_rates", shapes[..., 0], shapes[..., 1])
    judge_of = np.empty(len(judges.by_system), int)
    for number, systems in enumerate(judges.groups().values()):
        judge_of[systems] = number
    s, f = (
        pm.Deterministic(name, rates[judge_of, column], dims="system")
        for column, name in enumerate(("sensitivity", "false_positive_rate"))
    )
    return s, f


def right_trials(trials: Ints) -> Ints:
    """Return every number of right trials that marks may come from, (counts, right).

    That is 0, 1, ... up to the trials of a count, and then again and again as many as that.
    """
    return np.minimum(np.arange(int(trials.max()) + 1), trials[:, None])


def log_marks(marks: Ints, trials: Ints, log_right: Tensor, s: Tensor, f: Tensor) -> Tensor:
    """Log probability of marks in their order, right trials added up; (counts,).

    Parameters
    ----------
    marks, trials : ndarray of int, shape (counts,)
    log_right : tensor, shape (counts, right)
        Log probability of so many right trials, in their order.
    s, f : tensor, shape (counts,)
        Rates of who marked them.
    """
    t = np.arange(int(trials.max()) + 1)[:, None]
    marked_right = t.T
    c, wrong = marks[:, None, None], (trials - marks)[:, None, None]
    with np.errstate(divide="ignore"):
        ways = np.log(binom(c, marked_right)) + np.log(binom(wrong, t - marked_right))
    possible = np.isfinite(ways)
    logs = np.where(possible, ways, _IMPOSSIBLE)
    powers = marked_right, t - marked_right, c - marked_right, wrong - t + marked_right
    rates = pt.log(s), pt.log1p(-s), pt.log(f), pt.log1p(-f)
    for power, rate in zip(powers, rates, strict=True):
        logs = logs + np.where(possible, power, 0) * rate[:, None, None]
    return pt.logsumexp(log_right + pt.logsumexp(logs, axis=2), axis=1)


def log_labels(counts: NDArray[Any], s: Tensor, f: Tensor) -> Tensor:
    """Log probability of the marks of trials of known truth, given it; (counts,).

    Parameters
    ----------
    counts : ndarray, shape (counts, 6)
        Wrong trials without a mark, marked wrong and marked right, then right ones.
    s, f : tensor, shape (counts,)
    """
    _, rejected, accepted, _, missed, marked_right = counts.T
    of_wrong = accepted * pt.log(f) + rejected * pt.log1p(-f)
    return of_wrong + marked_right * pt.log(s) + missed * pt.log1p(-s)


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
