"""Exact evidence of a change between two days: the success rates of all questions shift at once.

Questions have ``p ~ Beta`` with mean m and intraclass correlation r before the change, and
``logit p + delta`` after it. Given (m, r, delta) a question's likelihood is an integral over its p,
for all distinct questions and all (m, r) one matrix product; what remains is an integral over
three parameters: trapezoid rules in whitened coordinates, each ``2 sinh t``, so that a Gaussian
peak is resolved and exponential tails are reached by the same few points. The whitening is
triangular, so that all (m, r) of one delta share the matrix of questions. Without a change the
likelihood is Beta-binomial, and two parameters are integrated in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import betaln, expit, log_expit, logsumexp

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.numerics.points import curvature_root, with_slope
from bayesatk.core.numerics.quadrature import BetaRule, beta_rule_along
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_of
from bayesatk.priors import HyperPrior

LogDensity = Callable[[Array], Array]

_SMALLEST = 1e-6  # of a Beta parameter


@dataclass(frozen=True)
class ShiftPosterior:
    """What the counts say if there was a change on a given day.

    Parameters
    ----------
    log_evidence : float
        Log marginal likelihood of the counts in one given order of trials.
    shift, log_density : ndarray
        Shifts of the logit, and their log posterior density.
    before, after : float
        Posterior means of the mean success probability, of questions like these.
    """

    log_evidence: float
    shift: Array
    log_density: Array
    before: float
    after: float

    def density(self, shift: Array) -> Array:
        """Posterior density of the shift."""
        curve = CubicSpline(self.shift, self.log_density)
        inside = (shift >= self.shift[0]) & (shift <= self.shift[-1])
        with np.errstate(under="ignore"):
            return np.where(inside, np.exp(curve(np.clip(shift, *self.shift[[0, -1]]))), 0.0)


@dataclass(frozen=True)
class Lattice:
    """A density on the points of a trapezoid rule around its mode.

    Parameters
    ----------
    points : ndarray, shape (points, parameters)
        The first parameter varies slowest.
    log_mass : ndarray, shape (points,)
        Log density plus log weight of every point.
    first_weight : ndarray
        Weights of the distinct values of the first parameter.
    """

    points: Array
    log_mass: Array
    first_weight: Array

    @classmethod
    def around(
        cls, log_density: LogDensity, start: Array, reach: tuple[float, ...], step: float
    ) -> "Lattice":
        """Return the rule, as far as so many sds of every parameter; ``step`` is of t."""
        width, flattest = 0.1, 0.02  # of differences, in logits; curvature that is believed

        def falling(x: Array) -> tuple[float, Array]:
            height, slope = with_slope(log_density, x, width)
            return -height, -slope

        mode = minimize(falling, start, jac=True, method="BFGS", options={"gtol": 1e-2}).x
        root = curvature_root(lambda x: with_slope(log_density, x, width)[1], mode, width, flattest)
        root = np.linalg.cholesky(root @ root.T)
        halves = (int(np.ceil(np.arcsinh(sds / 2.0) / step)) for sds in reach)
        axes = [step * np.arange(-half, half + 1) for half in halves]
        z, stretch = (
            np.stack([x.ravel() for x in np.meshgrid(*values, indexing="ij")], axis=1)
            for values in ([2.0 * np.sinh(t) for t in axes], [2.0 * np.cosh(t) for t in axes])
        )
        points = mode + z @ root.T
        log_weight = np.log(step * stretch * np.diag(root)).sum(axis=1)
        first_weight = step * 2.0 * np.cosh(axes[0]) * root[0, 0]
        return cls(points, log_density(points) + log_weight, first_weight)

    @property
    def log_evidence(self) -> float:
        """Log of the integral of the density."""
        return float(logsumexp(self.log_mass))

    @property
    def probability(self) -> Array:
        """Probability of every point."""
        return np.exp(self.log_mass - self.log_evidence)


@dataclass(frozen=True)
class Changes:
    """Counts of the same questions on successive days.

    Parameters
    ----------
    successes, trials : ndarray of int, shape (questions, days)
    prior : HyperPrior
        Of one Beta; of the days before a change.
    sd : float
        Of the normal prior of the shift.
    """

    successes: Ints
    trials: Ints
    prior: HyperPrior
    sd: float

    @cached_property
    def same(self) -> Lattice:
        """Posterior of (logit m, logit r) without a change."""
        states = States.of(self.successes.sum(axis=1), self.trials.sum(axis=1))
        right, wrong = states.successes, states.trials - states.successes
        prior = self.prior.fields("beta")

        def log_density(theta: Array) -> Array:
            # Beyond these a Beta is a point, or a coin that is tossed once for all trials.
            alpha, beta = beta_of(theta[:, :1], np.clip(theta[:, 1:], -18.0, 600.0))
            logs = betaln(alpha + right, beta + wrong) - betaln(alpha, beta)
            return np.asarray(logs @ states.count + prior.log_density(theta))

        mean = (right @ states.count + 0.5) / (states.trials @ states.count + 1.0)
        starts = np.array([[np.log(mean / (1.0 - mean)), y] for y in (-6.0, -3.0, -1.0, 1.0, 4.0)])
        start = starts[np.argmax(log_density(starts))]
        return Lattice.around(log_density, start, (200.0, 200.0), 0.2)

    @cached_property
    def _icc_range(self) -> tuple[float, float]:
        """Logits of r between which the likelihood is computed; beyond, it is that of the end."""
        y = self.same.points[self.same.probability > 1e-10, 1]
        margin = 1.0  # beyond the range without a change
        lowest = -np.log(2000.0)  # beyond alpha + beta of 2000 questions are that different
        return max(float(y.min()) - margin, lowest), max(float(y.max()) + margin, lowest + 1.0)

    def at(self, first: int) -> ShiftPosterior:
        """Integrate a change whose first day is this one, counted from 0."""
        start = np.append(0.0, self.same.points[np.argmax(self.same.log_mass)])
        # A step of 0.7 posterior sds at the mode; evidence of few trials then errs by 1e-5. The
        # prior of the shift is normal, those of logit m and logit r are not.
        lattice = Lattice.around(self._log_density(first), start, (8.0, 30.0, 30.0), 0.35)
        probability, total = lattice.probability, lattice.log_evidence
        by_shift = lattice.log_mass.reshape(len(lattice.first_weight), -1)
        shift = lattice.points[:: by_shift.shape[1], 0]
        log_density = logsumexp(by_shift, axis=1) - np.log(lattice.first_weight) - total
        likely = probability > 1e-13
        share, points = probability[likely], lattice.points[likely]
        after = 0.0
        for value in np.unique(points[:, 0]):
            members = points[:, 0] == value
            p = np.exp(self._shifted(value)[0])
            after += float(p @ self._weights(points[members, 1:]) @ share[members])
        before = float(share @ expit(points[:, 1]))
        return ShiftPosterior(total, shift, log_density, before, after)

    def _betas(self, theta: Array) -> tuple[Array, Array]:
        alpha, beta = beta_of(theta[:, 0], np.clip(theta[:, 1], *self._icc_range))
        return np.maximum(alpha, _SMALLEST), np.maximum(beta, _SMALLEST)

    @cached_property
    def _rule(self) -> BetaRule:
        low, high = self._icc_range
        smallest = max(float(np.exp(-high)) * 1e-3, _SMALLEST)
        degree = float(np.exp(-low)) + float(self.trials.sum(axis=1).max())
        # On the scale of arcsin(sqrt(p)) a kernel of this degree is equally wide everywhere.
        return beta_rule_along(smallest, smallest, 0.0, _angle, 0.65 / np.sqrt(degree))

    def _weights(self, theta: Array) -> Array:
        """Quadrature weights of the Betas at the points of the rule, (points, betas)."""
        rule, (alpha, beta) = self._rule, self._betas(theta)
        logs = rule.log_weight[:, None] + rule.log_p[:, None] * alpha + rule.log_q[:, None] * beta
        return _exp(logs - betaln(alpha, beta))

    def _shifted(self, shift: float) -> tuple[Array, Array]:
        """Log of p and of 1 - p after a shift, at the points of the rule."""
        x = self._rule.log_p - self._rule.log_q + shift
        return log_expit(x), log_expit(-x)

    def _log_density(self, first: int) -> LogDensity:
        """Log of prior times likelihood at points (shift, logit m, logit r)."""
        counts = np.stack([self.successes, self.trials - self.successes])
        sums = [counts[..., days].sum(axis=-1) for days in (slice(first), slice(first, None))]
        states, number = np.unique(np.concatenate(sums), axis=1, return_counts=True)
        right, wrong, late_right, late_wrong = states.astype(float)[:, :, None]
        early = right * self._rule.log_p + wrong * self._rule.log_q
        prior, log_scale = self.prior.fields("beta"), np.log(self.sd * np.sqrt(2.0 * np.pi))

        def log_density(theta: Array) -> Array:
            logs = prior.log_density(theta[:, 1:])
            logs += -0.5 * (theta[:, 0] / self.sd) ** 2 - log_scale
            for shift in np.unique(theta[:, 0]):
                members = theta[:, 0] == shift
                up, down = self._shifted(shift)
                likelihood = early + late_right * up + late_wrong * down
                top = likelihood.max(axis=1, keepdims=True)
                with np.errstate(divide="ignore"):
                    relative = np.log(_exp(likelihood - top) @ self._weights(theta[members, 1:]))
                # The log of 0 is finite here, so that 0 times it is 0.
                logs[members] += number @ np.maximum(relative, -1e10) + number @ top[:, 0]
            return np.asarray(logs)

        return log_density


def _angle(rule: BetaRule) -> Array:
    """Twice arcsin(sqrt(p)), with both ends resolved."""
    return np.asarray(2.0 * np.arctan2(_exp(0.5 * rule.log_p), _exp(0.5 * rule.log_q)))


def _exp(logs: Array) -> Array:
    """Exponentials; the smallest are 0, because numbers near the smallest make products slow."""
    return np.asarray(np.exp(np.where(logs < -150.0, -np.inf, logs)))


def mixed_shift(
    posteriors: list[ShiftPosterior], probability: Array, tails: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Mean, sd and quantiles of the shift, over the days of a change."""
    used = [
        (posterior, p) for posterior, p in zip(posteriors, probability, strict=True) if p > 1e-12
    ]
    ends = (
        min(posterior.shift[0] for posterior, _ in used),
        max(posterior.shift[-1] for posterior, _ in used),
    )
    shift = np.linspace(*ends, 2001)
    density = np.sum([p * posterior.density(shift) for posterior, p in used], axis=0)
    density /= density.sum()
    mean = float(density @ shift)
    sd = float(np.sqrt(density @ (shift - mean) ** 2))
    below = np.cumsum(density) - 0.5 * density
    lower, upper = (float(np.interp(tail, below, shift)) for tail in tails)
    return mean, sd, lower, upper
