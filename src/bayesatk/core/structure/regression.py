"""Beta-binomial regression: the success probability of a question depends on its covariates.

Given the parameters, questions are independent, and p of question q is Beta with mean
``expit(x_q b)`` and one intraclass correlation for all (Crowder 1978). The parameters ``theta`` are
the intercept and slopes in a basis of covariates that are centred and orthonormal over the
questions, and last ``log(icc / (1 - icc))``. The posterior is on weighted points
(`bayesatk.core.numerics.points`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, log_expit, logit, psi

from bayesatk.core.numerics.points import Points, curvature_root, integrate
from bayesatk.core.pooling.nodes import log_rise
from bayesatk.core.pooling.states import States, relative
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

Ints = NDArray[np.int64]
_BLOCK = 1_000_000  # floats in one array: 8 MB, which caches half hold
_SUMMED = 40  # factors of a rising product that are multiplied one by one
_FARTHEST = 500.0  # logits, within double precision
_LEAST_LOGIT_ICC, _MOST_LOGIT_ICC = -30.0, 60.0  # beyond which nothing changes
_STARTS = (-3.0, -1.0, 1.0)  # of it, for the mode
_STEP = 1e-4  # of finite differences of the gradient, around the mode
_FLATTEST = 0.01  # curvature at the mode: nothing is wider than 10 units


def alike(
    basis: Array, successes: Ints, trials: Ints, weight: Array | None = None
) -> tuple[States, Array]:
    """Group questions with the same covariates and counts; their states, and the basis of each.

    Examples
    --------
    >>> basis = np.array([[1.0, 0.5], [1.0, -0.5], [1.0, 0.5]])
    >>> states, rows = alike(basis, np.array([1, 1, 1]), np.array([2, 2, 2]))
    >>> states.count.tolist(), states.which.tolist(), rows[:, 1].tolist()
    ([1.0, 2.0], [1, 0, 1], [-0.5, 0.5])
    """
    keys = np.column_stack([basis, successes, trials])
    distinct, which, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    right, total = distinct[:, -2:].astype(np.int64).T
    counts = np.stack([total - right, right], axis=1)
    prior, number = np.zeros(counts.shape), count.astype(float)
    states = States(counts, prior, number, which.ravel(), relative(weight))
    return states, np.ascontiguousarray(distinct[:, :-2])


@dataclass(frozen=True)
class Regression:
    """Prior and likelihood of the parameters.

    Parameters
    ----------
    states : States
        Of right and wrong.
    basis : ndarray, shape (states, directions)
        1, and the covariates in their basis.
    prior : HyperPrior
    """

    states: States
    basis: Array
    prior: HyperPrior

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(self.basis.shape[1]) + 1

    @cached_property
    def _failures(self) -> Ints:
        return np.asarray(self.states.trials - self.states.successes)

    def log_prior(self, theta: Array) -> Array:
        """Log density of the prior at points (points, parameters)."""
        found = np.zeros(len(theta))
        for shape, x in ((self.prior.mean, theta[:, 0]), (self.prior.icc, theta[:, -1])):
            found += shape[0] * log_expit(x) + shape[1] * log_expit(-x) - betaln(*shape)
        sd, slopes = self.prior.slope_sd, theta[:, 1:-1]
        found -= 0.5 * (slopes**2).sum(axis=1) / sd**2
        return np.asarray(found - slopes.shape[1] * np.log(sd * np.sqrt(2.0 * np.pi)))

    def by_state(self, theta: Array) -> Array:
        """Log probability of each state's trials in their order; (points, states)."""
        found = np.empty((len(theta), len(self.states)))
        for part in _blocks(len(theta), len(self.states)):
            x, log_ratio = self._place(theta[part])
            own = _log_rise(x, log_ratio, self.states.successes)
            own += _log_rise(-x, log_ratio, self._failures)
            own -= _log_rise_of_one(log_ratio, self.states.trials)
            found[part] = own
        return found

    def log_likelihood(self, theta: Array) -> Array:
        """Log probability of all trials in their order."""
        found = np.empty(len(theta))
        for part in _blocks(len(theta), len(self.states)):
            found[part] = self.by_state(theta[part]) @ self.states.count
        return found

    def log_posterior(self, theta: Array) -> Array:
        """Log of prior times likelihood."""
        return self.log_prior(theta) + self.log_likelihood(theta)

    def _place(self, theta: Array) -> tuple[Array, Array]:
        x = np.clip(theta[:, :-1] @ self.basis.T, -_FARTHEST, _FARTHEST)
        return x, np.clip(theta[:, -1:], _LEAST_LOGIT_ICC, _MOST_LOGIT_ICC)

    def gradient(self, theta: Array) -> Array:
        """Gradient of the log posterior at one point."""
        x, log_ratio = (own[0] for own in self._place(theta[None]))
        ratio, states = float(np.exp(log_ratio[0])), self.states
        up, down = expit(x), expit(-x)
        right, wrong = (
            _shares(p, ratio, own) for p, own in ((up, states.successes), (down, self._failures))
        )
        whole = _shares(np.ones_like(up), ratio, states.trials)
        by_x = states.count * (down * right - up * wrong)
        by_ratio = states.count @ (whole - right - wrong)
        found = np.append(by_x @ self.basis, by_ratio)
        for place, (a, b) in ((0, self.prior.mean), (-1, self.prior.icc)):
            found[place] += a * expit(-theta[place]) - b * expit(theta[place])
        found[1:-1] -= theta[1:-1] / self.prior.slope_sd**2
        return found

    @cached_property
    def laplace(self) -> tuple[Array, Array]:
        """Mode, and a root of the inverse curvature there."""
        mode = min((self._mode(start) for start in _STARTS), key=lambda found: found[0])[1]
        return mode, curvature_root(self.gradient, mode, _STEP, _FLATTEST)

    def _mode(self, log_ratio: float) -> tuple[float, Array]:
        states = self.states
        right = float(states.count @ states.successes)
        rate = (right + 0.5) / (float(states.count @ states.trials) + 1.0)
        start = np.concatenate([[logit(rate)], np.zeros(self.size - 2), [log_ratio]])

        def objective(theta: Array) -> tuple[float, Array]:
            return -float(self.log_posterior(theta[None])[0]), -self.gradient(theta)

        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-4})
        return float(found.fun), np.asarray(found.x)

    def posterior(self) -> Points:
        """Integrate the parameters."""
        return integrate(self.log_posterior, *self.laplace, seed=len(self.states))


def _blocks(points: int, width: int) -> list[slice]:
    step = max(1, _BLOCK // max(width, 1))
    return [slice(start, start + step) for start in range(0, points, step)]


def _log_rise(x: Array, log_ratio: Array, count: Ints) -> Array:
    """Log of ``m (m + r) ... (m + (count - 1) r)``, m = expit(x), r the ratio; (points, states)."""
    found = log_expit(x) * (count > 0)
    few = count <= _SUMMED
    m, r = expit(x), np.exp(log_ratio)
    for j in range(1, int(count[few].max(initial=0))):
        own = np.flatnonzero(few & (count > j))
        found[:, own] += np.log(m[:, own] + j * r)
    many = np.flatnonzero(~few)
    if len(many):
        base = np.maximum(np.exp(log_expit(x[:, many]) - log_ratio), 1e-300)
        found[:, many] = log_rise(base, count[many]) + count[many] * log_ratio
    return found


def _log_rise_of_one(log_ratio: Array, count: Ints) -> Array:
    """Log of ``1 (1 + r) ... (1 + (count - 1) r)``, (points, states)."""
    distinct, which = np.unique(count, return_inverse=True)
    table = log_rise(np.exp(-log_ratio), distinct) + distinct * log_ratio
    return np.asarray(table[:, which.ravel()])


def _shares(m: Array, ratio: float, count: Ints) -> Array:
    """Sum of ``m / (m + j ratio)`` over j below the count."""
    found = np.zeros(len(m))
    few = count <= _SUMMED
    for j in range(int(count[few].max(initial=0))):
        own = few & (count > j)
        found[own] += m[own] / (m[own] + j * ratio)
    base = np.maximum(m[~few] / ratio, 1e-300)
    found[~few] = base * _psi_gap(base, count[~few])
    return found


def _psi_gap(base: Array, count: Ints) -> Array:
    """``psi(base + count) - psi(base)``, without cancelling where the base is large."""
    large = np.log1p(count / base)
    gap = psi(base + count) - psi(base)
    # Euler-Maclaurin: 1/2x + 1/12x^2 of either end.
    ends = 0.5 / base - 0.5 / (base + count) + (base**-2.0 - (base + count) ** -2.0) / 12.0
    return np.where(base > 1e5, large + ends, gap)
