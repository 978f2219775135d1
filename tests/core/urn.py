"""A witness of partial pooling under one Beta that shares its definition and no computation.

The witness integrates the hyperparameters on dense Gauss-Legendre panels in (logit m, logit r)
and writes every probability as a run of draws from Polya's urn: after s successes and f failures
the next trial succeeds with probability ``(m (1-r) + s r) / (1 - r + (s+f) r)``. No Beta
function, no moments in closed form, no adaptive coordinates.
"""

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import betaln, binom, expit, logit, logsumexp

from bayesatk.metrics.credit import Credit
from bayesatk.priors import HyperPrior
from tests.core.agreement import BETA

type Array = NDArray[np.float64]
type Counts = tuple[tuple[int, ...], tuple[int, ...]]

ROUNDING = 4e-16  # a mean near one cannot be stored better


def log_urn(x: Array, y: Array, seen: tuple[int, int], run: tuple[int, int]) -> Array:
    """Log probability of a run of (successes, failures) in this order, after those seen."""
    spread, rest = expit(y), expit(-y)
    total: Array = np.zeros(())
    for start, share, length in zip(seen, (expit(x), expit(-x)), run, strict=True):
        for block in range(0, length, 4):  # products of four do not underflow
            steps = range(start + block, start + min(block + 4, length))
            factors = [share * rest + step * spread for step in steps]
            total = total + np.log(functools.reduce(np.multiply, factors))
    for step in range(sum(seen), sum(seen) + sum(run)):
        total = total - np.log(rest + step * spread)
    return total


def log_prior(x: Array, y: Array, prior: HyperPrior) -> Array:
    """Log prior density of (logit m, logit r), normalised where it can be."""
    total: Array = np.zeros(())
    for z, (a, b) in ((x, prior.mean), (y, prior.icc)):
        total = total - a * np.logaddexp(0.0, -z) - b * np.logaddexp(0.0, z)
        total = total - (betaln(a, b) if min(a, b) > 0 else 0.0)
    return total


def panels(breaks: Array, order: int) -> tuple[Array, Array]:
    """Gauss-Legendre points and weights on every panel between the breaks."""
    node, weight = leggauss(order)
    middle, half = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks) / 2
    return (middle[:, None] + half[:, None] * node).ravel(), np.outer(half, weight).ravel()


@dataclass
class Witness:
    """Posterior of (logit m, logit r) on a dense tensor grid of Gauss-Legendre panels."""

    counts: Counts
    prior: HyperPrior = BETA
    order: int = 10
    panel: float = 2.0
    depth: float = 60.0
    kept: float = 40.0  # depth of the nodes kept: the others have a mass below 1e-13

    def __post_init__(self) -> None:
        self.states = Counter(zip(*self.counts, strict=True))
        self.x_breaks, self.y_breaks = self._breaks(*self._box())
        x, x_weight = panels(self.x_breaks, self.order)
        y, y_weight = panels(self.y_breaks, self.order)
        value = self.log_density(x, y[:, None]) + np.log(x_weight) + np.log(y_weight)[:, None]
        self.log_evidence = float(logsumexp(value))
        self.rows, self.row_weight = y, y_weight
        self.table = np.exp(value - self.log_evidence)
        row, column = np.nonzero(self.table > np.exp(-self.kept))
        self.x, self.y, self.weight = x[column], y[row], self.table[row, column]
        self.spread, self.rest = expit(self.y), expit(-self.y)
        self.shares = expit(self.x) * self.rest, expit(-self.x) * self.rest

    def log_density(self, x: Array, y: Array) -> Array:
        """Log of prior times likelihood of the trials in one given order."""
        total = log_prior(x, y, self.prior)
        for (good, trials), count in self.states.items():
            total = total + count * log_urn(x, y, (0, 0), (good, trials - good))
        return total

    @property
    def _centre(self) -> tuple[float, float]:
        good, trials = sum(self.counts[0]) + 0.5, sum(self.counts[1]) + 1.0
        return float(logit(good / trials)), float((good * (trials - good) / trials) ** -0.5)

    def _box(self) -> tuple[Array, Array]:
        """Zoom on where the density is above e^-depth of its largest value seen."""
        low, high, done = np.full(2, -150.0), np.full(2, 150.0), False
        while not done:
            x, y = np.linspace(low, high, 61).T
            x = np.unique(np.append(x, np.clip(self._centre[0], low[0], high[0])))
            value = self.log_density(x, y[:, None])
            keep, old = value > value.max() - self.depth, high - low
            ends = [np.flatnonzero(keep.any(axis))[[0, -1]] for axis in (0, 1)]
            pairs = list(zip((x, y), ends, strict=True))
            low = np.array([z[max(end[0] - 1, 0)] for z, end in pairs])
            high = np.array([z[min(end[1] + 1, z.size - 1)] for z, end in pairs])
            done = bool(np.all(high - low > 0.9 * old))
        return low, high

    def _breaks(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Even panels in y; panels in x that widen with the distance from the pooled rate."""
        middle, scale = self._centre
        widest = min(self.panel, (high[0] - low[0]) / 8)
        steps = [0.0]
        while steps[-1] < high[0] - low[0] + abs(middle - low[0]) + abs(middle - high[0]):
            steps.append(steps[-1] + min(max(scale * self.panel / 2, steps[-1]), widest))
        both = np.concatenate(
            [middle - np.array(steps), middle + np.array(steps), [low[0], high[0]]]
        )
        number = max(int(np.ceil((high[1] - low[1]) / self.panel)), 8)
        inside = np.unique(both[(both >= low[0]) & (both <= high[0])])
        return inside, np.linspace(low[1], high[1], number + 1)

    def mean_sd(self, value: Array, within: Array | float = 0.0) -> tuple[float, float]:
        """Posterior mean and sd of a function of the hyperparameters, plus variance within."""
        mean = self.weight @ value
        return float(mean), float(np.sqrt(self.weight @ (within + (value - mean) ** 2)))

    def urn(self, seen: tuple[int, int], successes: NDArray[np.intp], length: int) -> Array:
        """Probability at the nodes of runs with so many successes, after those seen."""
        right, wrong = (
            self._products(share, start, number)
            for share, start, number in zip(
                self.shares, seen, (successes.max(), length - successes.min()), strict=True
            )
        )
        every = self._products(self.rest, sum(seen), length)[-1]
        result: Array = right[successes] * wrong[length - successes] / every
        return result

    def _products(self, first: Array, start: int, length: int) -> Array:
        """Products of the first so many factors of an urn: 0 to length of them."""
        factors = np.ones((length + 1, first.size))
        for step in range(length):
            factors[step + 1] = factors[step] * (first + (start + step) * self.spread)
        return factors

    def credit_moments(self, seen: tuple[int, int], vector: Array) -> tuple[Array, Array]:
        """Mean and variance of g(p) at the nodes; E[g^2] is the worth of two fresh batches."""
        k = len(vector) - 1
        batch = binom(k, np.arange(k + 1)) * vector
        first, second = (
            row[row != 0.0] @ self.urn(seen, np.flatnonzero(row), row.size - 1)
            for row in (batch, np.convolve(batch, batch))
        )
        return first, np.maximum(second - first**2, 0.0)

    def questions(self, credit: Credit) -> tuple[float, float]:
        """Posterior mean and sd of the mean over these questions."""
        flip, vector = self._side(credit)
        total, mean, variance = sum(self.states.values()), np.zeros(()), np.zeros(())
        for (good, trials), count in self.states.items():
            one, spread = self.credit_moments((good, trials - good), vector)
            mean, variance = mean + count * one / total, variance + count * spread / total**2
        value, sd = self.mean_sd(mean, variance)
        return (1.0 - value if flip else value), sd

    def population(self, credit: Credit) -> tuple[float, float]:
        """Posterior mean and sd of the expected credit of a new question."""
        flip, vector = self._side(credit)
        value, sd = self.mean_sd(self.credit_moments((0, 0), vector)[0])
        return (1.0 - value if flip else value), sd

    def _side(self, credit: Credit) -> tuple[bool, Array]:
        """Credit or its complement, whichever is small at the pooled rate and keeps its digits."""
        rate, j = expit(self._centre[0]), np.arange(credit.k + 1)
        chance = binom(credit.k, j) * rate**j * (1 - rate) ** (credit.k - j)
        flip = bool(chance @ credit.vector > 0.5)
        return flip, (1.0 - credit.vector if flip else credit.vector)

    def below(self, edge: Array) -> float:
        """Probability that logit m is below an edge, one for every row of the grid."""
        edge = np.clip(edge, self.x_breaks[0], self.x_breaks[-1])
        mass = self.table.reshape(self.rows.size, -1, self.order).sum(axis=2)
        done = np.concatenate([np.zeros((self.rows.size, 1)), np.cumsum(mass, axis=1)], axis=1)
        start = np.clip(np.searchsorted(self.x_breaks, edge) - 1, 0, None)
        node, weight = leggauss(self.order)
        half = (edge - self.x_breaks[start])[:, None] / 2
        x = self.x_breaks[start][:, None] + half * (1 + node)
        part = np.exp(self.log_density(x, self.rows[:, None]) - self.log_evidence) * half * weight
        full = done[np.arange(edge.size), start]
        return float(np.sum(full + self.row_weight * part.sum(axis=1)))

    def population_cdf(self, credit: Credit, value: float) -> float:
        """Probability that the population target is below a value."""
        low, high = np.full(self.rows.size, -200.0), np.full(self.rows.size, 200.0)
        k = credit.k
        for _ in range(60):
            middle = (low + high) / 2
            worth = sum(
                binom(k, j) * c * np.exp(log_urn(middle, self.rows, (0, 0), (j, k - j)))
                for j, c in enumerate(credit.values)
                if c
            )
            low, high = np.where(worth < value, middle, low), np.where(worth < value, high, middle)
        return self.below(middle)

    def icc_cdf(self, value: float) -> float:
        """Probability that the intraclass correlation is below a value."""
        edge = logit(np.clip(value, 0.0, 1.0))
        edge = float(np.clip(edge, self.y_breaks[0], self.y_breaks[-1]))
        inside = self.y_breaks[self.y_breaks < edge]
        y, y_weight = panels(np.append(inside, edge), self.order)
        x, x_weight = panels(self.x_breaks, self.order)
        value_at = np.exp(self.log_density(x, y[:, None]) - self.log_evidence)
        return float(y_weight @ value_at @ x_weight)

    def sample(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draws of Beta parameters (alpha, beta) from the nodes."""
        pick = rng.choice(self.weight.size, size, p=self.weight / self.weight.sum())
        concentration = np.exp(-self.y[pick])
        return expit(self.x[pick]) * concentration, expit(-self.x[pick]) * concentration


CASES: dict[str, Counts] = {
    "one question 1/1": ((1,), (1,)),
    "one question 0/1": ((0,), (1,)),
    "one question 3/4": ((3,), (4,)),
    "one question 0/4": ((0,), (4,)),
    "two questions": ((1, 4), (4, 4)),
    "two questions, one trial each": ((0, 1), (1, 1)),
    "all zeros": ((0,) * 12, (5,) * 12),
    "all ones": ((8,) * 30, (8,) * 30),
    "all ones, one trial each": ((1,) * 20, (1,) * 20),
    "one trial each, some ones": ((1,) * 7 + (0,) * 13, (1,) * 20),
    "one trial and hundreds": ((1, 114), (1, 300)),
    "one trial and hundreds, apart": ((0, 297), (1, 300)),
    "ragged": ((0, 1, 3, 2, 7, 0, 5, 12, 1, 9), (1, 1, 4, 2, 7, 3, 9, 30, 6, 10)),
    "all or none": ((0,) * 10 + (64,) * 10, (64,) * 20),
    "homogeneous": ((32,) * 20, (64,) * 20),
    "ten thousand questions": (
        (0,) * 4000 + (1,) * 1000 + (2,) * 1000 + (3,) * 1500 + (4,) * 2500,
        (4,) * 10000,
    ),
}
