"""Probability of counts, and of marks of judges that err, given difficulties and parameters.

Given the difficulty z of a question, its success probability under a system is Beta with mean
``m = expit(mu + a z)`` and ``alpha + beta = 1 / r``, so c successes of n trials have probability,
in their order,

    prod_{i<c} (m + i r)  prod_{j<n-c} (1 - m + j r)  /  prod_{l<n} (1 + l r),

which is regular at r = 0. Marks of a judge that errs are a mixture of these over the number of
right trials (`bayesatk.core.pooling.marks`).

The rates of a judge are functions of two scores that are standard normal after calibration, before
the marks of the evaluation: the prior of a board is then normal with judges as it is without.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, log_expit, ndtr

from bayesatk.core.pooling.marks import mark_chances_once
from bayesatk.core.question.dirichlet_multinomial import log_rise
from bayesatk.metrics.credit import Array, log_choose

Ints = NDArray[np.int64]
_LEAST = 1e-300  # probability of a count, whose logarithm is a number


def log_chances(theta: Array, z: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Log probability of counts in their order, (counts, points, nodes).

    Parameters
    ----------
    theta : ndarray, shape (points, 3, systems or more)
        mu, log a, log r.
    z : ndarray, shape (nodes,)
    system, successes, trials : ndarray of int, shape (counts,)
    """
    r = np.exp(theta[:, 2, :, None])
    x = theta[:, 0, :, None] + np.exp(theta[:, 1, :, None]) * z
    x = np.clip(x, -600.0, 600.0)  # within double precision
    logs = _rises(log_expit(x), r, successes, system)
    logs += _rises(log_expit(-x), r, trials - successes, system)
    logs -= _rises(np.zeros((*r.shape[:2], 1)), r, trials, system)
    return logs


def _rises(log_base: Array, r: Array, count: Ints, system: Ints) -> Array:
    """Log of ``base (base + r) ... (base + (count - 1) r)``, (columns, points, nodes)."""
    distinct, size_index = np.unique(count, return_inverse=True)
    most = int(distinct[-1])
    shaped = distinct[:, None, None, None]
    if most <= 128:
        steps = np.arange(max(most, 1), dtype=float)[:, None, None, None]
        logs = np.log(np.exp(log_base) + steps * r)
        logs[0] = log_base
        values = np.concatenate([np.zeros_like(logs[:1]), np.cumsum(logs, axis=0)])[distinct]
    else:
        log_r = np.log(r)
        with np.errstate(under="ignore"):
            values = log_rise(np.maximum(np.exp(log_base - log_r), 5e-324), shaped)
        values = values + shaped * log_r
    return np.asarray(values[size_index, :, system])


def beta_of_score(score: Array, a: Array, b: Array) -> Array:
    """Return the Beta variate at the quantile at which a standard normal has the score."""
    # Either tail by itself: above the middle one minus a probability would lose digits.
    low, high = (ndtr(np.minimum(tail_score, 0.0)) for tail_score in (score, -score))
    return np.where(score < 0.0, betaincinv(a, b, low), betainccinv(a, b, high))


def log_shares(theta: Array, atoms: tuple[float, float, float]) -> Array:
    """Log shares of questions that no system solves, that every system solves, and of the others.

    They are Dirichlet a priori. The share never solved, and that always solved among the others,
    are functions of two scores that are standard normal (the first rows of the last column).

    Parameters
    ----------
    theta : ndarray, shape (..., 3, columns)
    atoms : (float, float, float)
        Parameters of the Dirichlet.

    Returns
    -------
    ndarray, shape (..., 3)
    """
    a, b = np.array(atoms[:2]), np.array([atoms[1] + atoms[2], atoms[2]])
    share = np.clip(beta_of_score(theta[..., :2, -1], a, b), _LEAST, 1.0 - 1e-16)
    never, always = np.moveaxis(np.log(share), -1, 0)
    solved, left = np.moveaxis(np.log1p(-share), -1, 0)
    return np.stack([never, solved + always, solved + left], axis=-1)


@dataclass(frozen=True)
class Marking:
    """Judges of systems, and what they make of right and wrong trials.

    Parameters
    ----------
    judge : ndarray of int, shape (systems,)
        Place of every system's judge.
    shapes : ndarray, shape (judges, 2, 2)
        Beta parameters of its sensitivity and of its false positive rate, by the calibration set.
    """

    judge: NDArray[np.intp]
    shapes: Array

    @property
    def judges(self) -> int:
        """How many there are."""
        return len(self.shapes)

    def rates(self, theta: Array) -> Array:
        """Sensitivity and false positive rate of every system's judge, (..., 2, systems).

        Parameters
        ----------
        theta : ndarray, shape (..., 3, systems + judges + 1)
            The first two rows of the columns of judges are their scores.
        """
        systems = len(self.judge)
        score = theta[..., :2, systems : systems + self.judges]
        a, b = self.shapes[..., 0].T, self.shapes[..., 1].T
        return beta_of_score(score, a, b)[..., self.judge]

    def log_marks(self, theta: Array, z: Array, system: Ints, marked: Ints, trials: Ints) -> Array:
        """Log probability of marks in their order, (counts, points, nodes); as `log_chances`."""
        logs = np.empty((len(system), len(theta), len(z)))
        for right, members, chances in self._joined(theta, z, system, marked, trials):
            joint = chances.transpose(1, 2, 0) @ right.transpose(1, 0, 2)
            logs[members] = np.log(np.maximum(joint, _LEAST)).transpose(1, 0, 2)
        return logs - log_choose(trials, marked)[:, None, None]

    def right_given_marked(
        self, theta: Array, z: Array, system: Ints, marked: Ints, trials: Ints
    ) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """Yield counts of one system and size, and how probable each number of right trials is.

        Parameters
        ----------
        theta : ndarray, shape (3, columns)

        Yields
        ------
        counts : ndarray of int
        probability : ndarray, shape (trials + 1, counts, nodes)
        """
        for right, members, chances in self._joined(theta[None], z, system, marked, trials):
            joint = chances[:, 0, :, None] * right[:, 0, None, :] + _LEAST
            yield members, joint / joint.sum(axis=0)

    def draw_right(
        self, theta: Array, z: Array, node: NDArray[np.intp], marked: Ints, trials: Ints,
        rng: np.random.Generator,
    ) -> Ints:  # fmt: skip
        """Draw how many trials of every question were right, given its marks and difficulty.

        Parameters
        ----------
        theta : ndarray, shape (3, columns)
        z : ndarray, shape (nodes,)
        node : ndarray of int, shape (questions,)
            Node of every question.
        marked, trials : ndarray of int, shape (systems, questions)
        """
        right_trials = np.zeros_like(marked)
        system, question = np.nonzero(trials)
        cells = system, marked[system, question], trials[system, question]
        u = rng.random(len(system))
        for right, members, chances in self._joined(theta[None], z, *cells):
            joint = chances[:, 0] * right[:, 0, node[question[members]]] + _LEAST
            cumulative = np.cumsum(joint, axis=0)
            right_trials[system[members], question[members]] = (
                cumulative < u[members] * cumulative[-1]
            ).sum(axis=0)
        return right_trials

    def _joined(
        self, theta: Array, z: Array, system: Ints, marked: Ints, trials: Ints
    ) -> Iterator[tuple[Array, NDArray[np.intp], Array]]:
        """Yield the values of all numbers of right trials, by system and number of trials.

        Yields
        ------
        right : ndarray, shape (trials + 1, points, nodes)
            Probability of so many right trials, in any order.
        counts : ndarray of int
            Those of the system with this number of trials.
        chances : ndarray, shape (trials + 1, points, counts)
            Probability of the marks given these.
        """
        rates = self.rates(theta)
        cells = np.stack([system, trials], axis=1)
        pairs, of_each, cells_of_pair = np.unique(
            cells, axis=0, return_inverse=True, return_counts=True
        )
        groups = np.split(np.argsort(of_each.ravel(), kind="stable"), np.cumsum(cells_of_pair)[:-1])
        sizes = pairs[:, 1] + 1
        ends = np.cumsum(sizes)
        pair_of_row = np.repeat(np.arange(len(pairs)), sizes)
        right = np.arange(ends[-1]) - (ends - sizes)[pair_of_row]
        trials_of_row = pairs[pair_of_row, 1]
        logs = log_chances(theta, z, pairs[pair_of_row, 0], right, trials_of_row)
        logs += log_choose(trials_of_row, right)[:, None, None]
        prior = np.exp(logs, out=logs)
        mark_chances: dict[tuple[int, int], Array] = {}
        for (system_index, size), end, members in zip(pairs, ends, groups, strict=True):
            key = int(self.judge[system_index]), int(size)
            if key not in mark_chances:
                system_rates = rates[:, :, system_index]
                mark_chances[key] = mark_chances_once(system_rates, int(size), np.arange(size + 1))
            yield prior[end - size - 1 : end], members, mark_chances[key][:, :, marked[members]]
