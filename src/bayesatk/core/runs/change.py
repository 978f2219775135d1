"""Exact evidence of a change between two days: the success rates of all questions shift at once.

Questions have ``p ~ Beta`` with mean m and intraclass correlation r before the change, and
``logit p + delta`` after it. Given (m, r, delta) a question's likelihood is an integral over its p,
for all distinct questions and all (m, r) one matrix product; what remains is an integral over
three parameters: trapezoid rules in whitened coordinates, each ``2 sinh t`` (`core.hierarchy` says
why). The whitening is triangular, so that all (m, r) of one delta share the matrix of questions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import betaln, expit, logsumexp

from bayesatk.core.numerics.quadrature import BetaRule, beta_rule_along
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

Ints = NDArray[np.int64]
LogDensity = Callable[[float, Array, Array], Array]

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
    def same(self) -> HyperPosterior:
        """Posterior of (m, r) without a change."""
        c, n = self.successes.sum(axis=1), self.trials.sum(axis=1)
        states = States.of(c, n)
        data = CountHistograms.of(states.successes, states.trials, states.count)
        return hyper_posterior(data, self.prior)

    @cached_property
    def _icc_range(self) -> tuple[float, float]:
        """Logits of r between which the likelihood is computed; beyond, it is that of the end."""
        keep = self.same.weight > 1e-10
        y = self.same.y.ravel()[keep]
        margin = 1.0  # beyond the range without a change
        lowest = -np.log(2000.0)  # beyond alpha + beta of 2000 questions are that different
        return max(float(y.min()) - margin, lowest), max(float(y.max()) + margin, lowest + 1.0)

    def at(self, first: int) -> ShiftPosterior:
        """Integrate a change whose first day is this one, counted from 0."""
        density = self._log_density(first)
        mode, curvature = self._mode(density)
        # Ordered (delta, logit m, logit r): a row of z has one delta.
        root = np.linalg.cholesky(np.linalg.inv(curvature))
        step = 0.35  # of t: 0.7 posterior sds at the mode; evidence of few trials then errs by 1e-5
        # The prior of delta is normal, those of logit m and logit r are not.
        halves = (int(np.ceil(np.arcsinh(sds / 2.0) / step)) for sds in (8.0, 30.0, 30.0))
        axes = [step * np.arange(-half, half + 1) for half in halves]
        z = [2.0 * np.sinh(t) for t in axes]
        logs = [np.log(2.0 * step * np.cosh(t)) for t in axes]
        inner = np.stack([np.repeat(z[1], len(z[2])), np.tile(z[2], len(z[1]))])
        weight = (logs[1][:, None] + logs[2]).ravel() + np.log(root[1, 1] * root[2, 2])
        # Where the mode of the shift has no weight, other shifts have none either.
        middle = density(float(mode[0]), *(mode[1:, None] + root[1:, 1:] @ inner)) + weight
        keep = middle > middle.max() - 40.0
        inner, weight = inner[..., keep], weight[keep]
        shifts = mode[0] + root[0, 0] * z[0]
        rows, before, after = [], [], []
        for shift, z_shift in zip(shifts, z[0], strict=True):
            x, y = mode[1:, None] + root[1:, :1] * z_shift + root[1:, 1:] @ inner
            values = density(float(shift), x, y) + weight
            rows.append(float(logsumexp(values)))
            share = np.exp(values - rows[-1])
            before.append(float(share @ expit(x)))
            after.append(float(share @ self._moved(float(shift), x, y)))
        marginal = np.array(rows)
        total = float(logsumexp(marginal + logs[0] + np.log(root[0, 0])))
        share = np.exp(marginal + logs[0] + np.log(root[0, 0]) - total)
        return ShiftPosterior(
            total, shifts, marginal - total, float(share @ before), float(share @ after)
        )

    def _betas(self, x: Array, y: Array) -> tuple[Array, Array]:
        concentration = np.exp(-np.clip(y, *self._icc_range))
        alpha, beta = expit(x) * concentration, expit(-x) * concentration
        return np.maximum(alpha, _SMALLEST), np.maximum(beta, _SMALLEST)

    @cached_property
    def _rule(self) -> BetaRule:
        low, high = self._icc_range
        smallest = max(float(np.exp(-high)) * 1e-3, _SMALLEST)
        degree = float(np.exp(-low)) + float(self.trials.sum(axis=1).max())
        # On the scale of arcsin(sqrt(p)) a kernel of this degree is equally wide everywhere.
        return beta_rule_along(smallest, smallest, 0.0, _angle, 0.65 / np.sqrt(degree))

    def _weights(self, x: Array, y: Array) -> Array:
        """Quadrature weights of the Betas at the points of the rule, (points, betas)."""
        rule, (alpha, beta) = self._rule, self._betas(x, y)
        logs = rule.log_weight[:, None] + rule.log_p[:, None] * alpha + rule.log_q[:, None] * beta
        return _exp(logs - betaln(alpha, beta))

    def _shifted(self, shift: float) -> tuple[Array, Array]:
        """Log of p and of 1 - p after a shift, at the points of the rule."""
        x = self._rule.log_p - self._rule.log_q + shift
        return -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)

    def _moved(self, shift: float, x: Array, y: Array) -> Array:
        """Mean success probability after the shift."""
        return np.asarray(np.exp(self._shifted(shift)[0]) @ self._weights(x, y))

    def _log_density(self, first: int) -> LogDensity:
        """Log of prior times likelihood at one shift and many (logit m, logit r)."""
        c, f = self.successes, self.trials - self.successes
        sums = [counts[:, days].sum(axis=1) for days in (slice(first), slice(first, None))
                 for counts in (c, f)]  # fmt: skip
        states, weight = np.unique(np.stack(sums), axis=1, return_counts=True)
        right, wrong, late_right, late_wrong = states.astype(float)[:, :, None]
        early = right * self._rule.log_p + wrong * self._rule.log_q
        (a, b), (icc_a, icc_b) = self.prior.mean, self.prior.icc
        offset = betaln(a, b) + betaln(icc_a, icc_b) + np.log(self.sd * np.sqrt(2.0 * np.pi))

        def density(shift: float, x: Array, y: Array) -> Array:
            up, down = self._shifted(shift)
            logs = early + late_right * up + late_wrong * down
            top = logs.max(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                likelihood = np.log(_exp(logs - top) @ self._weights(x, y))
            log_prior = -a * np.logaddexp(0, -x) - b * np.logaddexp(0, x)
            log_prior += -icc_a * np.logaddexp(0, -y) - icc_b * np.logaddexp(0, y)
            # The log of 0 is finite here, so that 0 times it is 0.
            joint = weight @ np.maximum(likelihood, -1e10)
            joint = joint + weight @ top[:, 0] + log_prior
            return np.asarray(joint - offset - 0.5 * (shift / self.sd) ** 2)

        return density

    def _mode(self, density: LogDensity) -> tuple[Array, Array]:
        """Mode in (delta, logit m, logit r), about, and the curvature there."""
        best = int(np.argmax(self.same.log_weight))
        location = np.array([0.0, self.same.x.ravel()[best], self.same.y.ravel()[best]])
        longest = 2.0  # step, in logits
        for _ in range(30):
            value, gradient, curvature = _derivatives(density, location)
            step = np.linalg.solve(curvature, gradient)
            step *= min(1.0, longest / float(np.abs(step).max() + 1e-300))
            tried = [location + length * step for length in (1.0, 0.25, 0.05)]
            heights = [float(density(v[0], v[1:2], v[2:])[0]) for v in tried]
            best_step = int(np.argmax(heights))
            if not heights[best_step] > value + 1e-3:
                break
            location = tried[best_step]
        return location, curvature


def _angle(rule: BetaRule) -> Array:
    """Twice arcsin(sqrt(p)), with both ends resolved."""
    return np.asarray(2.0 * np.arctan2(_exp(0.5 * rule.log_p), _exp(0.5 * rule.log_q)))


def _exp(logs: Array) -> Array:
    """Exponentials; the smallest are 0, because numbers near the smallest make products slow."""
    return np.asarray(np.exp(np.where(logs < -150.0, -np.inf, logs)))


def _derivatives(density: LogDensity, location: Array) -> tuple[float, Array, Array]:
    """Value, gradient and negative Hessian (made positive) by finite differences on 27 points."""
    width, flattest = 0.1, 0.02  # of the differences, in logits; curvature that is believed
    steps = np.array([-1.0, 0.0, 1.0]) * width
    x, y = np.repeat(location[1] + steps, 3), np.tile(location[2] + steps, 3)
    cube = np.stack([density(location[0] + step, x, y) for step in steps]).reshape(3, 3, 3)
    middle = float(cube[1, 1, 1])
    gradient, hessian = np.empty(3), np.empty((3, 3))
    for i in range(3):
        line = np.moveaxis(cube, i, 0)[:, 1, 1]
        gradient[i] = (line[2] - line[0]) / (2.0 * width)
        hessian[i, i] = (line[2] - 2.0 * middle + line[0]) / width**2
        for j in range(i):
            face = np.moveaxis(cube, (j, i), (0, 1))[:, :, 1]
            cross = face[2, 2] - face[0, 2] - face[2, 0] + face[0, 0]
            hessian[i, j] = hessian[j, i] = cross / (4.0 * width**2)
    values, vectors = np.linalg.eigh(-hessian)
    return middle, gradient, (vectors * np.maximum(values, flattest)) @ vectors.T


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
