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
from scipy.special import betainccinv, betaincinv, expit, gammaln, ndtr

from bayesatk.core.pooling.marks import mark_chances_once
from bayesatk.metrics.credit import Array, log_choose

Ints = NDArray[np.int64]
_LEAST = 1e-300  # probability of a count, whose logarithm is a number
_FEW = 32  # trials whose product is within doubles
_HALF_LOG_2_PI = 0.5 * np.log(2.0 * np.pi)


def log_chances(theta: Array, z: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Log probability of counts in any order, (counts, points, nodes).

    Parameters
    ----------
    theta : ndarray, shape (points, 3, systems or more)
        mu, log a, log r.
    z : ndarray, shape (nodes,)
    system, successes, trials : ndarray of int, shape (counts,)

    Notes
    -----
    Few trials are products, whose factors are cheap. More are a saddle-point form, whose terms are
    small where the counts are probable: a log probability is right to about 1e-10 for 10^9 trials.
    """
    present, place = np.unique(system, return_inverse=True)
    mu, log_a, log_r = theta[:, :, present].transpose(1, 2, 0)[..., None]
    x = np.clip(mu + np.exp(log_a) * z, -600.0, 600.0)  # within double precision
    few = trials <= _FEW
    cells = place.ravel(), successes, trials
    if few.all():
        return _products(x, log_r, *cells)
    logs = np.empty((len(system), *x.shape[1:]))
    for members, form in ((few, _products), (~few, _deviances)):
        if members.any():
            logs[members] = form(x, log_r, *(amounts[members] for amounts in cells))
    return logs


def _products(x: Array, log_r: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Few trials: the logarithm of the product above.

    Logits of means (systems, points, nodes), log r (systems, points, 1).
    """
    # Beyond these ends p is m, or 0 or 1, or m is; and no product leaves doubles.
    r, x = np.exp(np.clip(log_r, -16.0, 15.0)), np.clip(x, -250.0, 250.0)
    if trials.max() == 1:  # r has no part in it
        wrong = -np.log1p(np.exp(x))
        is_right = successes[:, None, None] > 0
        return np.asarray(np.where(is_right, (x + wrong)[system], wrong[system]))
    right = 1.0 / (1.0 + np.exp(-x))
    failures = trials - successes
    ways, way = np.unique(np.stack([system, trials]), axis=1, return_inverse=True)
    most = int(trials.max())
    orders = np.log1p(np.arange(most)[:, None, None, None] * r).cumsum(axis=0)
    joint = _rises(right, r, int(successes.max()))[successes, system]
    joint *= _rises(right * np.exp(-x), r, int(failures.max()))[failures, system]
    logs = np.log(joint, out=joint)
    choices = log_choose(trials, successes)[:, None, None]
    logs += choices - orders[ways[1] - 1, ways[0]][way.ravel()]
    return logs


def _rises(base: Array, r: Array, most: int) -> Array:
    """Return ``base (base + r) ... (base + (count - 1) r)`` of every count up to the most.

    Shape (most + 1, ...) of a base (...).
    """
    rises = np.empty((most + 1, *base.shape))
    rises[0] = 1.0
    for count in range(most):
        np.multiply(rises[count], base, out=rises[count + 1])
        base = base + r
    return rises


def _deviances(x: Array, log_r: Array, system: Ints, successes: Ints, trials: Ints) -> Array:
    """Many trials: divergences of the posterior mean of p from its prior mean and from the share.

    With Stirling's formula for all six Gamma functions, whose powers join in the divergences.
    """
    m, other = expit(x), expit(-x)
    r = np.exp(np.clip(log_r, -100.0, 100.0))
    n, c, d = (
        amounts[:, None, None].astype(float) for amounts in (trials, successes, trials - successes)
    )
    m_of, other_of, r_of = m[system], other[system], r[system]
    nr = n * r_of
    p, not_p = (m_of + c * r_of) / (1.0 + nr), (other_of + d * r_of) / (1.0 + nr)
    # The share is right c / n of the trials, and the mean is between it and m; gaps without
    # cancelling.
    share, gap = c / n, np.where(c < d, c / n - m_of, other_of - d / n) / (1.0 + nr)
    by_m, by_other = _log_ratio(p, m_of, gap * nr), _log_ratio(not_p, other_of, -gap * nr)
    logs = (m_of * by_m + other_of * by_other) / r_of
    for amount, of_all, probability, away in ((c, share, p, -gap), (d, d / n, not_p, gap)):
        logs += amount * _log_ratio(probability, np.where(amount > 0, of_all, 1.0), away)
    logs -= 0.5 * (np.log1p(nr) + by_m + by_other)
    total = 1.0 / r
    logs += _stirling_error(c + m_of / r_of) + _stirling_error(d + other_of / r_of)
    logs -= _stirling_error(n + total[system])
    logs += (_stirling_error(total) - _stirling_error(m / r) - _stirling_error(other / r))[system]
    inside = (c > 0) & (d > 0)
    both = np.where(inside, c * (d / n), 1.0)
    order = _stirling_error(n) - _stirling_error(c) - _stirling_error(d)
    return logs + np.where(inside, order - 0.5 * np.log(2.0 * np.pi * both), 0.0)


def _log_ratio(p: Array, q: Array, gap: Array) -> Array:
    """``log(p / q)``; gap is their difference, without cancelling."""
    relative = gap / q
    near = np.log1p(np.maximum(relative, -0.5))
    return np.where(relative > -0.5, near, np.log(np.maximum(p / q, _LEAST)))


def _stirling_error(x: Array) -> Array:
    """``log Gamma(x)`` less Stirling's formula."""
    large = np.maximum(x, 10.0)
    square = 1.0 / large**2  # the next term of the series is below 1e-12 from x = 10
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))
    series /= large
    below = x < 10.0
    small = np.maximum(x[below], _LEAST)
    series[below] = gammaln(small) - (small - 0.5) * np.log(small) + small - _HALF_LOG_2_PI
    return series


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
        """Log probability of marks in any order, (counts, points, nodes); as `log_chances`."""
        logs = np.empty((len(system), len(theta), len(z)))
        for right, members, chances in self._joined(theta, z, system, marked, trials):
            joint = chances.transpose(1, 2, 0) @ right.transpose(1, 0, 2)
            logs[members] = np.log(np.maximum(joint, _LEAST)).transpose(1, 0, 2)
        return logs

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
        prior = np.exp(logs, out=logs)
        mark_chances: dict[tuple[int, int], Array] = {}
        for (system_index, size), end, members in zip(pairs, ends, groups, strict=True):
            key = int(self.judge[system_index]), int(size)
            if key not in mark_chances:
                system_rates = rates[:, :, system_index]
                mark_chances[key] = mark_chances_once(system_rates, int(size), np.arange(size + 1))
            yield prior[end - size - 1 : end], members, mark_chances[key][:, :, marked[members]]
