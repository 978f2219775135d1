"""Partial pooling against witnesses that share its definition and nothing of its computation.

The witness integrates the hyperparameters on dense Gauss-Legendre panels in (logit m, logit r)
and writes every probability as a run of draws from Polya's urn: after s successes and f failures
the next trial succeeds with probability ``(m (1-r) + s r) / (1 - r + (s+f) r)``. No Beta
function, no moments in closed form, no adaptive coordinates.
"""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln, binom, expit, logit, logsumexp, polygamma

from bayesatk import HyperPrior, datasets, evaluate
from bayesatk.core.engine.distribution import LEVELS, Quantity
from bayesatk.core.engine.interval_ends import interval
from bayesatk.core.engine.mean_distributions import mean_distributions
from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.pooling.hyper_functions import draw_hyperparameters, question_variance
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Credit, maj_at, pass_at, pass_hat
from tests.core.agreement import (
    check_against_draws,
    check_quantiles,
    icc_distribution,
    population_distributions,
    width_of,
)

type Array = NDArray[np.float64]
type Counts = tuple[tuple[int, ...], tuple[int, ...]]

DEFAULT = HyperPrior()
SKEWED = HyperPrior(mean=(2.0, 3.0), icc=(0.5, 4.0))
TOLERANCE = 1e-6  # of the posterior sd, for means and sds
ROUNDING = 4e-16  # a mean near one cannot be stored better
PROBABILITIES = (0.005, 0.025, 0.25, 0.5, 0.75, 0.975, 0.995)

# ------------------------------------------------------------------ the witness


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
    prior: HyperPrior = DEFAULT
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
        edge = float(np.clip(logit(value), self.y_breaks[0], self.y_breaks[-1]))
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
CREDITS = (pass_at(1), pass_at(4), pass_at(32), pass_hat(4), maj_at(3))
PRIORS = {"default": DEFAULT, "skewed": SKEWED}


def library(counts: Counts, prior: HyperPrior = DEFAULT) -> HyperPosterior:
    """Return the library's posterior of the hyperparameters."""
    states = States.of(*counts)
    return hyper_posterior(CountHistograms.of(states.successes, states.trials, states.count), prior)


def of_questions(counts: Counts, credit: Credit, prior: HyperPrior = DEFAULT) -> Quantity:
    """Return the library's distribution of the mean over these questions."""
    nodes = library(counts, prior).nodes()
    return mean_distributions(StateMixture(nodes, States.of(*counts), (credit,)))[0]


def library_moments(posterior: HyperPosterior, value: Array) -> tuple[float, float]:
    """Mean and sd of a function of the hyperparameters on the library's nodes."""
    weight = np.exp(posterior.log_weight)
    mean = float(np.sum(weight * value))
    return mean, float(np.sqrt(np.sum(weight * (value - mean) ** 2)))


def check_moments(got: tuple[float, float], wanted: tuple[float, float], what: str) -> None:
    """Means and sds agree to a millionth of the sd, or to 1e-7: k far beyond the trials."""
    mean, sd = wanted
    assert abs(got[0] - mean) <= TOLERANCE * sd + ROUNDING, (what, (got[0] - mean) / sd)
    assert abs(got[1] - sd) <= TOLERANCE * sd + 1e-7, (what, got[1] / sd - 1.0)


# ------------------------------------------------------------------ the witness itself


@pytest.mark.parametrize("node", [(-3.0, -8.0), (0.4, 0.0), (12.0, 3.0), (-20.0, 15.0)])
def test_urn_is_the_beta_binomial(node: tuple[float, float]) -> None:
    """Thirty digits of Beta functions give the same probability of a run."""
    with mpmath.workdps(60):
        x, y = (mpmath.mpf(value) for value in node)
        concentration = mpmath.exp(-y)
        alpha = concentration / (1 + mpmath.exp(-x))
        beta = concentration / (1 + mpmath.exp(x))
        exact = mpmath.log(mpmath.beta(alpha + 5, beta + 9) / mpmath.beta(alpha + 2, beta + 3))
        assert float(log_urn(*map(np.asarray, node), (2, 3), (3, 6))) == pytest.approx(
            float(exact), rel=1e-12
        )


def test_witness_knows_one_trial_exactly() -> None:
    """One success in one trial: m ~ Beta(2, 1), icc untouched, P(next succeeds) = 5/6."""
    witness = Witness(CASES["one question 1/1"])
    assert witness.log_evidence == pytest.approx(np.log(0.5), abs=1e-13)
    assert witness.mean_sd(expit(witness.x)) == pytest.approx((2 / 3, 18**-0.5), abs=1e-12)
    assert witness.mean_sd(expit(witness.y)) == pytest.approx((0.5, 12**-0.5), abs=1e-12)
    assert witness.questions(pass_at(1))[0] == pytest.approx(5 / 6, abs=1e-12)
    assert witness.population(pass_at(1))[0] == pytest.approx(2 / 3, abs=1e-12)
    assert witness.icc_cdf(0.3) == pytest.approx(0.3, abs=1e-12)
    assert witness.population_cdf(pass_at(1), 0.3) == pytest.approx(0.09, abs=1e-12)


@pytest.mark.parametrize("name", ["one question 3/4", "all ones", "ragged", "homogeneous"])
def test_witness_does_not_depend_on_its_panels(name: str) -> None:
    """Panels half as wide change nothing at a hundredth of the tolerance."""
    coarse, fine = (Witness(CASES[name], SKEWED, panel=panel) for panel in (2.0, 1.0))
    assert coarse.log_evidence == pytest.approx(fine.log_evidence, abs=1e-9)
    for credit in (pass_at(1), pass_hat(4)):
        for target in ("questions", "population"):
            (mean, sd), (mean_too, sd_too) = (
                getattr(each, target)(credit) for each in (coarse, fine)
            )
            assert abs(mean - mean_too) < 1e-8 * sd + ROUNDING
            assert sd == pytest.approx(sd_too, rel=1e-8)


# ------------------------------------------------------------------ moments


@functools.cache
def witness_of(name: str, prior: str) -> Witness:
    """Return the witness of a named case; several tests use the same."""
    return Witness(CASES[name], PRIORS[prior])


@pytest.mark.parametrize("prior", list(PRIORS))
@pytest.mark.parametrize("name", list(CASES))
def test_hyperparameters_and_evidence(name: str, prior: str) -> None:
    """Posterior mean and sd of m and icc, and the evidence, on both grids."""
    witness, posterior = witness_of(name, prior), library(CASES[name], PRIORS[prior])
    assert posterior.log_evidence == pytest.approx(witness.log_evidence, abs=1e-6)
    for what in ("x", "y"):
        got = library_moments(posterior, expit(getattr(posterior, what)))
        check_moments(got, witness.mean_sd(expit(getattr(witness, what))), what)


@pytest.mark.parametrize("prior", list(PRIORS))
@pytest.mark.parametrize("name", list(CASES))
def test_metrics_for_both_targets(name: str, prior: str) -> None:
    """Posterior mean and sd of pass@k, pass^k and maj@k for both targets."""
    witness, posterior = witness_of(name, prior), library(CASES[name], PRIORS[prior])
    mixture = StateMixture(posterior.nodes(), States.of(*CASES[name]), CREDITS)
    for target, moments in (("questions", mixture.moments), ("population", mixture.population)):
        mean, variance = moments.overall[0], moments.total_variance
        for column, credit in enumerate(CREDITS):
            got = float(mean[column]), float(np.sqrt(variance[column]))
            what = f"{target} {credit.shape} k={credit.k} threshold={credit.threshold}"
            check_moments(got, getattr(witness, target)(credit), what)


@pytest.mark.parametrize(
    "name", ["one question 1/1", "one question 3/4", "two questions", "ragged"]
)
def test_evaluate_reports_these_moments(name: str) -> None:
    """The public function gives the same numbers under the labels it promises."""
    witness = witness_of(name, "default")
    exact = evaluate(CASES[name], "pass^2", difficulty="beta", draws=5, rng=1)[
        "closed_form"
    ].to_dataset()
    exact = exact.isel(system=0)
    assert float(exact["log_evidence"]) == pytest.approx(witness.log_evidence, abs=1e-6)
    wanted = {"mean_p": witness.mean_sd(expit(witness.x)), "icc": witness.mean_sd(expit(witness.y))}
    cells = {what: exact[what] for what in wanted}
    for target in ("questions", "population"):
        wanted[target] = getattr(witness, target)(pass_hat(2))
        cells[target] = exact["pass_hat_k"].sel(k=2, target=target)
    for what, pair in wanted.items():
        got = [float(cells[what].sel(statistic=each)) for each in ("mean", "sd")]
        check_moments((got[0], got[1]), pair, what)


@pytest.mark.parametrize("prior", [HyperPrior((0.5, 0.5), (0.5, 0.5)), HyperPrior((0.3, 0.3))])
@pytest.mark.parametrize("name", ["one question 1/1", "all ones, one trial each"])
def test_priors_with_poles_are_answered(name: str, prior: HyperPrior) -> None:
    """Densities that are infinite at certainty neither warn nor cost digits."""
    witness, posterior = Witness(CASES[name], prior), library(CASES[name], prior)
    mixture = StateMixture(posterior.nodes(), States.of(*CASES[name]), (pass_at(4),))
    moments = mixture.population
    got = float(moments.overall[0][0]), float(np.sqrt(moments.total_variance[0]))
    check_moments(got, witness.population(pass_at(4)), "population")


# ------------------------------------------------------------------ published numbers


def one_question(posterior: HyperPosterior, good: int, trials: int) -> StateMixture:
    """Success probability of one question among those that informed the hyperparameters."""
    return StateMixture(posterior.nodes(), States.of([good], [trials]), (pass_at(1),))


def counts_of(data: object) -> Counts:
    """Return (successes, trials) of a data set with one system."""
    values = (getattr(data, each).values[0].tolist() for each in ("successes", "trials"))
    good, trials = (tuple(map(int, each)) for each in values)
    return good, trials


def test_rat_tumours_reproduce_the_book() -> None:
    """Bayesian Data Analysis, 3rd ed., section 5.3, on the library's nodes and the witness's."""
    counts = counts_of(datasets.rat_tumors())
    posterior, witness = (
        library(counts, HyperPrior.bda3()),
        Witness(counts, HyperPrior.bda3(), panel=1.0),
    )
    mean = library_moments(posterior, expit(posterior.x))
    size = library_moments(posterior, -posterior.y)
    assert mean == pytest.approx((0.1443, 0.0134), abs=5e-5)
    assert size == pytest.approx((2.7556, 0.3442), abs=5e-5)
    check_moments(mean, witness.mean_sd(expit(witness.x)), "mean")
    check_moments(size, witness.mean_sd(-witness.y), "log(alpha + beta)")
    for good, trials, published in ((4, 14, 0.2109), (0, 20, 0.0636)):
        got = float(one_question(posterior, good, trials).moments.overall[0][0])
        worth, _ = witness.credit_moments((good, trials - good), np.array([0.0, 1.0]))
        assert got == pytest.approx(published, abs=5e-5)
        assert got == pytest.approx(float(witness.weight @ worth), abs=1e-8)


@pytest.mark.slow
def test_rat_tumours_through_evaluate() -> None:
    """Draws of every group's probability average to the published means."""
    tree = evaluate(
        datasets.rat_tumors(), "bayes", prior=HyperPrior.bda3(), keep=("p",), draws=4000, rng=3
    )
    assert np.isnan(float(tree["closed_form"]["log_evidence"].squeeze()))  # improper
    p = tree["posterior"]["p"].values.reshape(-1, 71)
    for group, published in ((70, 0.2109), (0, 0.0636)):
        error = p[:, group].std() / np.sqrt(len(p))
        assert abs(p[:, group].mean() - published) < 5 * error + 5e-5


# alpha + beta ~ Pareto(1, 1.5) has density ~ icc^(1/2) (1-icc)^(-5/2) on icc < 1/2: the improper
# Beta(1.5, -1.5), cut at 1/2, where the posterior of the batting averages has no mass.
PARETO = HyperPrior(icc=(1.5, -1.5))


def test_batting_reproduces_the_published_partial_pooling() -> None:
    """Efron and Morris 1975 under mean ~ U(0, 1), alpha + beta ~ Pareto(1, 1.5)."""
    counts = counts_of(datasets.batting_1975())
    posterior, witness = library(counts, PARETO), Witness(counts, PARETO, panel=1.0)
    assert float(witness.weight[expit(witness.y) > 0.5].sum()) < 1e-9
    assert library_moments(posterior, expit(posterior.x)) == pytest.approx(
        (0.26857, 0.02108), abs=5e-6
    )
    icc = icc_distribution(posterior).quantile([0.9, 0.5, 0.1])
    # Exactly 25.67, 64.39, 221.68 (fine grids of either kind); published from simulation.
    assert (1 / icc - 1) == pytest.approx([25.5, 64.2, 220.4], rel=0.01)
    clemente = one_question(posterior, 18, 45)
    assert clemente.moments.overall[0][0] == pytest.approx(0.3217, abs=5e-5)
    ends = interval(mean_distributions(clemente)[0], 0.8, "eti")
    assert ends == pytest.approx((0.2597, 0.3918), abs=4e-4)  # stated error 3e-4, and theirs


def test_batting_under_complete_pooling() -> None:
    """One success probability for all eighteen players."""
    exact = evaluate(
        datasets.batting_1975(), "bayes", pooling="complete", ci_prob=0.8, draws=5, rng=1
    )["closed_form"]["bayes"].isel(system=0)
    got = exact.sel(target="questions", statistic=["mean", "ci_lower", "ci_upper"]).values
    assert got == pytest.approx([0.2660, 0.2463, 0.2860], abs=5e-5)


# ------------------------------------------------------------------ the mean over questions


def success_probability(credit: Credit, worth: Array) -> Array:
    """Invert pass@k and pass^k: the success probability at which g(p) is this worth."""
    worth = np.clip(worth, 0.0, 1.0)
    if credit.threshold == 1:
        with np.errstate(divide="ignore"):  # worth 1 is success for sure
            return -np.expm1(np.log1p(-worth) / credit.k)
    return worth ** (1.0 / credit.k)


def latent(credit: Credit, p: Array) -> Array:
    """Worth g(p) of pass@k or pass^k."""
    if credit.threshold == 1:
        return 1.0 - (1.0 - p) ** credit.k
    return p**credit.k


@dataclass
class Pair:
    """Mean of two questions: one integral over the first's probability scale, per node."""

    credit: Credit
    counts: Counts
    alpha: Array
    beta: Array
    weight: Array
    points: int = 40

    def cdf(self, value: float) -> float:
        """Probability that the mean is below a value."""
        first, second = (
            (self.alpha + good, self.beta + trials - good)
            for good, trials in zip(*self.counts, strict=True)
        )
        # Where the other's worth would have to be 1 (then any will do) and 0 (then none will).
        sure, never = (
            betainc(*first, success_probability(self.credit, np.asarray(2 * value - worth)))
            for worth in (1.0, 0.0)
        )
        node, node_weight = leggauss(self.points)
        angle = (1 + node) * np.pi / 4  # u = sin^2: smooth where densities have roots at the ends
        u = sure + (never - sure) * np.sin(angle)[:, None] ** 2
        jacobian = np.sin(2 * angle) * np.pi / 4 * node_weight
        p = betaincinv(*first, np.clip(u, 0.0, 1.0))
        other = success_probability(self.credit, 2 * value - latent(self.credit, p))
        total = sure + (never - sure) * (jacobian @ betainc(*second, other))
        return float(self.weight @ total)


@pytest.mark.parametrize("credit", [pass_at(1), pass_at(2), pass_hat(3)])
@pytest.mark.parametrize("counts", [((1, 4), (2, 4)), ((0, 0), (1, 8)), ((4, 4), (4, 4))])
def test_two_questions_without_pooling(credit: Credit, counts: Counts) -> None:
    """Direct double integral, uniform prior for each question."""
    pair = Pair(credit, counts, *np.ones((3, 1)), points=200)
    mixture = StateMixture(Nodes.single(1.0, 1.0), States.of(*counts), (credit,))
    check_quantiles(mean_distributions(mixture)[0], pair.cdf, PROBABILITIES)


@pytest.mark.parametrize("counts", [((1, 4), (2, 5)), ((3, 3), (4, 4))])
def test_two_questions_partially_pooled(counts: Counts) -> None:
    """The same double integral under every node of a coarser witness grid."""
    prior = HyperPrior(mean=(3.0, 2.0), icc=(2.0, 2.0))
    witness = Witness(counts, prior, order=6)
    keep = witness.weight > 1e-9
    size = np.exp(-witness.y[keep])
    alpha, beta = expit(witness.x[keep]) * size, expit(-witness.x[keep]) * size
    pair = Pair(pass_hat(2), counts, alpha, beta, witness.weight[keep])
    found = of_questions(counts, pass_hat(2), prior)
    check_quantiles(found, pair.cdf, (0.025, 0.5, 0.975), slack=2e-6)


def convolved_cdf(credit: Credit, counts: Counts) -> Callable[[float], float]:
    """Convolution of the questions' masses on a fine grid of worths; uniform priors."""
    cells = 1 << 17
    edge = success_probability(credit, np.linspace(0.0, 1.0, cells + 1))
    length, transform = cells * len(counts[0]), np.ones(1)
    for good, trials in zip(*counts, strict=True):
        mass = np.diff(betainc(1.0 + good, 1.0 + trials - good, edge))
        transform = transform * np.fft.rfft(mass, length)
    total = np.cumsum(np.fft.irfft(transform, length))
    # Midpoints of the cells add up to half a cell per question.
    place = (np.arange(length) + len(counts[0]) / 2 + 0.5) / length
    return lambda value: float(np.interp(value, place, total))


@pytest.mark.parametrize(
    ("credit", "counts"),
    [
        (pass_at(1), ((0, 1, 2), (2, 2, 2))),
        (pass_at(2), ((4, 4, 1), (4, 4, 3))),
        (pass_hat(2), ((0, 3, 3, 9), (5, 3, 4, 20))),
        (pass_at(4), ((4, 4, 4, 4, 4), (4, 4, 4, 4, 4))),
        (pass_hat(4), ((0, 0, 0, 0, 0), (3, 3, 3, 3, 3))),
    ],
)
def test_a_few_questions_against_convolution(credit: Credit, counts: Counts) -> None:
    """Three to five questions, no pooling, convolved on 2^17 cells, whose width blurs it."""
    mixture = StateMixture(Nodes.single(1.0, 1.0), States.of(*counts), (credit,))
    found = mean_distributions(mixture)[0]
    check_quantiles(found, convolved_cdf(credit, counts), PROBABILITIES, slack=1e-6, blur=4e-6)


SATURATED: Counts = ((4,) * 30, (4,) * 30)
MIXED: Counts = (
    (0,) * 10 + (1, 2, 3, 3, 5) * 2 + (4,) * 10,
    (4,) * 10 + (4, 4, 4, 6, 8) * 2 + (4,) * 10,
)


def simulated_means(
    credit: Credit, counts: Counts, witness: Witness | None, size: int, seed: int
) -> Array:
    """Sorted independent conjugate draws of the mean; uniform priors without a witness."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(size // 100_000):
        alpha, beta = witness.sample(100_000, rng) if witness else (1.0, 1.0)
        total = np.zeros(100_000)
        for good, trials in zip(*counts, strict=True):
            p = rng.beta(alpha + good, beta + trials - good, 100_000)
            total += latent(credit, p)
        result.append(total / len(counts[0]))
    return np.sort(np.concatenate(result))


@pytest.mark.slow
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("counts", [SATURATED, MIXED], ids=["saturated", "mixed"])
def test_thirty_questions_against_draws(counts: Counts, pooled: bool) -> None:
    """Two million draws of the mean over thirty questions (a million under partial pooling)."""
    credit, size = pass_hat(2), 1_000_000 if pooled else 2_000_000
    witness = Witness(counts) if pooled else None
    nodes = library(counts).nodes() if pooled else Nodes.single(1.0, 1.0)
    distribution = mean_distributions(StateMixture(nodes, States.of(*counts), (credit,)))[0]
    draws = simulated_means(credit, counts, witness, size, 20261)
    check_against_draws(distribution, draws, PROBABILITIES)


@pytest.mark.parametrize("counts", [((3,), (4,)), ((4,), (4,)), ((0,), (1,)), ((38,), (100,))])
def test_one_question_is_a_mixture_of_betas(counts: Counts) -> None:
    """The distribution of one question, from the incomplete Beta function on the witness grid."""
    witness, credit = Witness(counts, panel=1.0), pass_at(3)
    (good,), (trials,) = counts
    heaviest = np.argsort(witness.weight.ravel())[::-1]
    total = np.cumsum(witness.weight.ravel()[heaviest])
    keep = heaviest[: int(np.searchsorted(total, 1.0 - 1e-7))]
    size = np.exp(-witness.y[keep])
    first = expit(witness.x[keep]) * size + good
    second = expit(-witness.x[keep]) * size + trials - good

    def cdf(value: float) -> float:
        edge = success_probability(credit, np.asarray(value))
        return float(witness.weight[keep] @ betainc(first, second, edge))

    check_quantiles(of_questions(counts, credit), cdf, (0.025, 0.5, 0.975), slack=3e-6)


# ------------------------------------------------------------------ population and icc


DISTRIBUTION_CASES = ("one question 3/4", "two questions", "all ones", "ragged", "homogeneous")


@pytest.mark.parametrize("name", DISTRIBUTION_CASES)
def test_quantiles_of_the_population_target(name: str) -> None:
    """The witness's probability below each quantile is the probability asked for."""
    witness, credits = witness_of(name, "default"), (pass_at(1), pass_at(4), pass_hat(4))
    for credit, got in zip(
        credits, population_distributions(library(CASES[name]), credits), strict=True
    ):
        cdf = functools.partial(witness.population_cdf, credit)
        check_quantiles(got, cdf, PROBABILITIES, slack=2e-6)


@pytest.mark.parametrize("name", [*DISTRIBUTION_CASES, "all or none", "one trial each, some ones"])
def test_quantiles_of_the_icc(name: str) -> None:
    """The same for the intraclass correlation."""
    witness = witness_of(name, "default")
    check_quantiles(
        icc_distribution(library(CASES[name])), witness.icc_cdf, PROBABILITIES, slack=2e-6
    )


def moments_of(cdf: Callable[[Array], Array]) -> tuple[float, float]:
    """Mean and sd of a variable on (0, 1) from its distribution function, by parts."""
    z, weight = panels(np.linspace(-40.0, 40.0, 161), 10)  # in the logit: both ends matter
    x, jacobian = expit(z), expit(z) * expit(-z)
    tail = (1.0 - cdf(x)) * jacobian * weight
    mean = float(tail.sum())
    return mean, float(np.sqrt(2.0 * (x * tail).sum() - mean**2))


@pytest.mark.parametrize("name", DISTRIBUTION_CASES)
def test_distributions_have_the_right_moments(name: str) -> None:
    """Integrals of 1 - F give the witness's means and sds."""
    witness, posterior = witness_of(name, "default"), library(CASES[name])
    pairs = [(icc_distribution(posterior), witness.mean_sd(expit(witness.y)))]
    for credit in (pass_at(1), pass_hat(4)):
        got = population_distributions(posterior, [credit])[0]
        pairs.append((got, witness.population(credit)))
    for distribution, (mean, sd) in pairs:
        got_mean, got_sd = moments_of(distribution.cdf)
        error = max(1e-4 * width_of(distribution), float(distribution.stated_error(LEVELS).mean()))
        assert abs(got_mean - mean) < error
        assert abs(got_sd - sd) < 2.0 * error


def test_highest_density_interval_of_the_population_target() -> None:
    """It holds what it claims, is no wider than equal tails, and cannot be improved by a shift."""
    witness, credit = witness_of("ragged", "default"), pass_hat(4)
    distribution = population_distributions(library(CASES["ragged"]), [credit])[0]
    low, high = interval(distribution, 0.9, "hdi")
    below = [witness.population_cdf(credit, end) for end in (low, high)]
    assert below[1] - below[0] == pytest.approx(0.9, abs=1e-4)
    equal = interval(distribution, 0.9, "eti")
    assert high - low < equal[1] - equal[0]
    for shift in (-0.02, 0.02):
        ends = distribution.quantile([below[0] + shift, below[1] + shift])
        assert high - low < ends[1] - ends[0]


# ------------------------------------------------------------------ draws and the variance share


@pytest.mark.parametrize("name", ["one question 3/4", "all ones", "ragged", "all or none"])
def test_draws_of_the_hyperparameters(name: str) -> None:
    """A hundred thousand draws agree with the witness within five standard errors."""
    size = 100_000
    witness = witness_of(name, "default")
    posterior = library(CASES[name])
    draws = posterior.place(*draw_hyperparameters(posterior, size, np.random.default_rng(812)))
    cdfs = (lambda value: witness.population_cdf(pass_at(1), value), witness.icc_cdf)
    for z, nodes, cdf in zip(draws, (witness.x, witness.y), cdfs, strict=True):
        value = expit(z)
        mean, sd = witness.mean_sd(expit(nodes))
        assert abs(value.mean() - mean) < 5 * sd / np.sqrt(size)
        fourth = float(witness.weight @ (expit(nodes) - mean) ** 4)
        error = np.sqrt((fourth / sd**4 - 1) / (4 * size))  # of the sd, relative
        assert abs(value.std() / sd - 1) < 5 * error
        for probability in (0.025, 0.25, 0.5, 0.75, 0.975):
            exact = cdf(float(np.quantile(value, probability)))
            slack = 5 * np.sqrt(probability * (1 - probability) / size)
            assert abs(exact - probability) < slack


def test_question_variance_is_the_delta_method() -> None:
    """Fisher information in (alpha, beta), the gradient of alpha/(alpha+beta) by differences."""
    alpha, beta, weight = np.array([0.3, 2.0, 9.0]), np.array([0.7, 1.0, 4.0]), np.full(3, 1 / 3)

    def gradient(a: Array, b: Array) -> Array:
        slope = a * b / (a + b) ** 2
        return np.stack([slope, -slope])[..., None]

    wanted = 0.0
    for a, b, w in zip(alpha, beta, weight, strict=True):
        shared = float(polygamma(1, a + b))
        information = np.diag(polygamma(1, [a, b])) - shared
        step = 1e-6 * np.eye(2)
        rate = [
            ((a + d[0]) / (a + b + d.sum()) - (a - d[0]) / (a + b - d.sum())) / 2e-6 for d in step
        ]
        wanted += w * float(np.array(rate) @ np.linalg.solve(information, rate)) / 7
    got = question_variance(Nodes.betas(alpha, beta, weight), gradient, 7.0)
    assert got.tolist() == pytest.approx([wanted], rel=1e-7)


# ------------------------------------------------------------------ laws


def summary(counts: Counts, prior: HyperPrior = DEFAULT) -> list[float]:
    """Evidence, mean and sd of m and icc, mean and sd of pass^2 for both targets."""
    posterior = library(counts, prior)
    mixture = StateMixture(posterior.nodes(), States.of(*counts), (pass_hat(2),))
    pairs = [library_moments(posterior, expit(each)) for each in (posterior.x, posterior.y)]
    for moments in (mixture.moments, mixture.population):
        pairs.append((float(moments.overall[0][0]), float(np.sqrt(moments.total_variance[0]))))
    return [posterior.log_evidence, *np.ravel(pairs).tolist()]


def test_order_of_questions_does_not_matter() -> None:
    """Questions are exchangeable."""
    good, trials = CASES["ragged"]
    order = np.random.default_rng(5).permutation(len(good))
    shuffled = tuple(good[i] for i in order), tuple(trials[i] for i in order)
    assert summary(shuffled) == pytest.approx(summary(CASES["ragged"]), rel=1e-12)


def test_right_and_wrong_are_symmetric() -> None:
    """Exchanging success and failure mirrors m and leaves icc and evidence alone."""
    good, trials = CASES["ragged"]
    mirrored = tuple(n - c for c, n in zip(good, trials, strict=True)), trials
    one, two = summary(CASES["ragged"]), summary(mirrored)
    assert two[0] == pytest.approx(one[0], abs=1e-6)
    assert two[1] == pytest.approx(1 - one[1], abs=1e-6 * one[2])
    assert two[2:5] == pytest.approx(one[2:5], rel=1e-6)


def test_twice_the_questions_shrink_every_sd() -> None:
    """The same evidence seen twice narrows everything, by about the square root of two."""
    good, trials = CASES["ragged"]
    once, twice, often = (summary((good * t, trials * t)) for t in (1, 2, 8))
    for place in (2, 4, 6, 8):
        assert twice[place] < once[place]
    for place in (2, 6, 8):
        assert often[place] / twice[place] == pytest.approx(0.5, abs=0.06)


def test_no_correlation_a_priori_is_complete_pooling() -> None:
    """A prior on icc near zero gives p ~ Beta(1 + successes, 1 + failures) for all questions."""
    good, trials = CASES["ragged"]
    a, b = 1.0 + sum(good), 1.0 + sum(trials) - sum(good)
    got = summary(CASES["ragged"], HyperPrior(icc=(1.0, 1e8)))
    mean, second = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
    sd = np.sqrt(second - mean**2)
    assert got[0] == pytest.approx(betaln(a, b), abs=1e-4)
    assert got[1:3] == pytest.approx([mean, sd], rel=1e-4)
    for place in (5, 7):
        assert got[place] == pytest.approx(second, rel=1e-4)


def test_evidence_of_one_trial_more_is_the_predictive_probability() -> None:
    """Ratios of evidence are what the posterior predicts: a new question right at first try."""
    good, trials = CASES["ragged"]
    before, after = summary(CASES["ragged"]), summary(((*good, 1), (*trials, 1)))
    assert np.exp(after[0] - before[0]) == pytest.approx(before[1], rel=1e-6)
