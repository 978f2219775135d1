"""Exact distributions of means: integrals, inverted transforms, simulation, and laws."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.special import betainc, betaln, comb, expit, ndtr
from scipy.stats import beta as beta_distribution
from scipy.stats import gamma

import bayesatk as bk
from bayesatk.core.engine.distribution import BetaImage, Distribution, Quantity, constant
from bayesatk.core.engine.interval_ends import interval, measured_interval
from bayesatk.core.engine.mean_distributions import mean_distributions
from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.numerics.quadrature import beta_rule_along
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.pooling.hyper_functions import draw_hyperparameters
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Credit, maj_at, pass_at, pass_hat
from bayesatk.metrics.grid import parse
from bayesatk.posterior.right_wrong import images
from bayesatk.priors import HyperPrior
from tests.core.agreement import (
    HARD,
    check_against_draws,
    check_points,
    check_quantiles,
    icc_distribution,
    population_distributions,
    width_of,
)

LEVELS = np.array([0.005, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.995])
ENDS = np.array([0.025, 0.975])
Tally = list[tuple[int, int, int]]  # (successes, trials, questions)


def _flat(successes, trials, *credits: Credit) -> list[Quantity]:
    """Distributions under a uniform prior for each question."""
    states = States.of(successes, np.broadcast_to(trials, np.shape(successes)))
    return mean_distributions(StateMixture(Nodes.single(1.0, 1.0), states, credits))


def _single(alpha, beta, successes, trials, credit: Credit) -> Quantity:
    """Distribution of one credit under one Beta prior for each question."""
    mixture = StateMixture(Nodes.single(alpha, beta), States.of(successes, trials), (credit,))
    return mean_distributions(mixture)[0]


def _tallied(tally: Tally) -> tuple[States, HyperPosterior]:
    """States with multiplicities and their hyperparameters, as `States.of` would make them."""
    successes, trials, count = (np.array(part) for part in zip(*tally, strict=True))
    states = States.of(successes, trials)
    states = replace(states, count=np.bincount(states.which, weights=count))
    return states, hyper_posterior(CountHistograms.of(successes, trials, count), HyperPrior())


def _pooled(states: States, hyper: HyperPosterior, *credits: Credit) -> list[Quantity]:
    """Distributions under partial pooling, on the nodes of a grid."""
    return mean_distributions(StateMixture(hyper.nodes(), states, credits))


def _simulated(
    states: States, hyper: HyperPosterior, credits: tuple[Credit, ...], size: int, seed: int
) -> np.ndarray:
    """Draws of means over questions: hyperparameters, then every p; (credits, size)."""
    rng = np.random.default_rng(seed)
    x, y = hyper.place(*draw_hyperparameters(hyper, size, rng))
    nodes = Nodes.of(x, y, np.full(size, 1.0 / size))
    total = np.zeros((len(credits), size))
    for c, n, count in zip(states.successes, states.trials, states.count, strict=True):
        for _ in range(int(count)):
            p = rng.beta(nodes.alpha[:, 0] + c, nodes.beta[:, 0] + (n - c))
            total += [_worth(credit, p) for credit in credits]
    return total / states.questions


def _worth(credit: Credit, p: np.ndarray) -> np.ndarray:
    """Credit of k trials that succeed with probability p, term by term."""
    k, total = credit.k, np.zeros_like(p)
    for j in np.flatnonzero(credit.vector):
        total += credit.vector[j] * comb(k, j) * p**j * (1.0 - p) ** (k - j)
    return total


# ------------------------------------------------------------------ without pooling


def test_two_questions_against_a_convolution_integral() -> None:
    """P(p1 + p2 <= 2x) by quadrature over p1 of the Beta distribution function of p2."""
    (found,) = _flat([4, 1], 4, pass_at(1))
    for x in (0.3, 0.45, 0.55, 0.6, 0.8):
        level, _ = quad(
            lambda p, x=x: beta_distribution.pdf(p, 5, 1) * betainc(2, 4, np.clip(2 * x - p, 0, 1)),
            0, 1, epsabs=1e-12, points=[max(0.0, 2 * x - 1), min(1.0, 2 * x)],
        )  # fmt: skip
        check_points(found, level, x)


def test_two_questions_all_right_are_a_convolution() -> None:
    """P(p + q <= 2x) for two Beta(5, 1): 5 times the integral of p^4 min(1, 2x - p)^5."""
    (found,) = _flat([4, 4], 4, pass_at(1))
    for x in (0.3, 0.6, 0.8, 0.9, 0.95):
        level, _ = quad(
            lambda p, x=x: 5 * p**4 * min(1.0, 2 * x - p) ** 5,
            max(0.0, 2 * x - 1), min(1.0, 2 * x), epsabs=1e-14,
        )  # fmt: skip
        level += max(0.0, 2 * x - 1) ** 5
        if level > 1e-3:
            check_points(found, level, x)


def test_one_question_is_the_beta_distribution() -> None:
    """Without pooling exactly; by the series of many questions as closely as it promises."""
    p = beta_distribution.ppf(LEVELS, 13, 5)
    expected = 1 - (1 - p) ** 3
    (exact,) = images((pass_at(3),), 13.0, 5.0, np.ones(1), np.ones(1))
    np.testing.assert_allclose(exact.quantile(LEVELS), expected, rtol=1e-11)
    np.testing.assert_allclose(exact.cdf(expected), LEVELS, atol=1e-11)
    assert exact.cdf([-0.1, 1.1]).tolist() == [0.0, 1.0]
    check_points(exact, LEVELS, expected, blur=1e-12)
    (found,) = _flat([12], 16, pass_at(3))
    check_points(found, LEVELS, expected)
    assert found.cdf([-0.1, 1.1]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("credit", [pass_at(1), pass_at(3), pass_hat(2)])
@pytest.mark.parametrize("right", [True, False])
def test_one_question_near_either_end_is_a_beta(credit: Credit, right: bool) -> None:
    """Quantiles at distances of 1e-8 to 1e-3 from the end."""
    successes = 4000 if right else 0
    a, b = 0.5 + successes, 0.5 + 4000 - successes
    levels = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
    p = beta_distribution(a, b).ppf(levels)
    expected = {pass_at(1): p, pass_at(3): 1.0 - (1.0 - p) ** 3, pass_hat(2): p**2}[credit]
    (exact,) = images((credit,), a, b, np.ones(1), np.ones(1))
    np.testing.assert_allclose(exact.quantile(levels), expected, rtol=1e-9, atol=1e-13)


CASES = [
    ([4] * 5, 4, "pass@4"),
    ([4] * 30, 4, "pass@4"),
    ([64] * 29 + [0], 64, "pass@32"),
    ([16] * 99 + [0], 16, "pass@8"),
    ([0, 4, 2], 4, "mg-pass@4"),
    ([1, 3], 4, "auc@4"),
    (list(range(0, 60, 2)), 64, "maj@8"),
    ([12, 3, 9, 16, 7], 16, "pass^16"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("successes", "trials", "metric"), CASES)
def test_against_simulation(successes, trials, metric) -> None:
    """Independent draws of every question's success probability."""
    (one,) = parse(metric)
    (found,) = _flat(successes, trials, one.credit)
    rng = np.random.default_rng(7)
    size = 200_000
    total = np.zeros(size)
    for c in successes:
        total += one.latent(rng.beta(1 + c, 1 + trials - c, size))
    check_against_draws(found, total / len(successes), LEVELS)


@pytest.mark.parametrize("a", [1e3, 2e4])
def test_questions_all_but_right_are_a_gamma(a: float) -> None:
    """With p so near 1, each of ten misses is Gamma(1/10, 1/a), so their sum is Gamma(1, 1/a)."""
    states = States.of(np.zeros(10), np.zeros(10))
    (found,) = mean_distributions(StateMixture(Nodes.single(a, 0.1), states, (pass_at(1),)))
    levels = np.array([0.025, 0.5, 0.975])
    expected = 1.0 - gamma(1.0).ppf(1.0 - levels) / a / 10.0
    check_points(found, levels, expected, blur=4e-3 * (1.0 - expected))


def euler(transform, distance: float) -> float:
    """P(D <= distance) from E exp(-s D): Bromwich's integral by Euler's sum (Abate, Whitt 1992)."""
    decay, terms, extra = 20.0, 40, 14
    k = np.arange(terms + extra + 1)
    s = (decay + 2j * np.pi * k) / (2 * distance)
    series = (-1.0) ** k * (transform(s) / s).real
    series[0] *= 0.5
    partial = np.cumsum(series)[terms:]
    return float(
        np.exp(decay / 2) / distance * (partial @ comb(extra, np.arange(extra + 1))) / 2**extra
    )


@pytest.mark.parametrize("credit", [pass_at(1), pass_at(4), pass_hat(3)])
@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.05), (2.0, 0.3), (30.0, 1.0)])
def test_thirty_questions_all_right_next_to_the_end(credit, alpha: float, beta: float) -> None:
    """Quantiles at distances of 1e-2 to 1e-6 from 1, by inverting a Laplace transform."""
    step = 0.005
    t = step * np.arange(-1000, 3000)
    x = 2.0 * np.sinh(t)
    log_p, log_q = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    mass = np.exp((alpha + 4) * log_p + beta * log_q - betaln(alpha + 4, beta))
    mass *= step * 2.0 * np.cosh(t)
    lost = np.exp(4 * log_q) if credit == pass_at(4) else -np.expm1(credit.k * log_p)
    found = _single(alpha, beta, [4] * 30, [4] * 30, credit)
    for distance in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        level = 1.0 - euler(lambda s: (mass @ np.exp(-np.outer(lost / 30, s))) ** 30, distance)
        if 5e-3 < level < 1 - 5e-3:
            check_points(found, level, 1.0 - distance, HARD)


def logarithmic(length: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on (0, length), dense at 0: Gauss's rule on panels of the logarithm."""
    node, weight = leggauss(20)
    panels = np.log(length) - np.arange(600.0)[:, None]
    points = np.exp(panels - 0.5 + 0.5 * node).ravel()
    return points, points * np.tile(0.5 * weight, 600)


@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.3, 0.1), (0.5, 1.5)])
@pytest.mark.parametrize("gap", [3e-2, -3e-2, 1e-3, -1e-3, 1e-5, -1e-5])
def test_one_right_one_wrong_next_to_a_half(alpha: float, beta: float, gap: float) -> None:
    """P(p + q <= 1 + gap) with p ~ Beta(alpha + 1, beta), q ~ Beta(alpha, beta + 1).

    That is P(q <= u + gap) with u = 1 - p, integrated over u below a half and over p below a half.
    """
    least, sure = max(0.0, -gap), max(0.0, gap)
    beyond, width = logarithmic(0.5 - least)  # of u over what it must exceed
    u = least + beyond
    log_density = (beta - 1) * np.log(u) + alpha * np.log1p(-u) - betaln(alpha + 1, beta)
    level = width @ (np.exp(log_density) * betainc(alpha, beta + 1, beyond + sure))
    beyond, width = logarithmic(0.5 - sure)  # of p over what makes any q do
    p = sure + beyond
    log_density = (beta - 1) * np.log1p(-p) + alpha * np.log(p) - betaln(alpha + 1, beta)
    level += width @ (
        np.exp(log_density) * (1.0 - betainc(beta + 1, alpha, beyond + least))
    ) + betainc(alpha + 1, beta, sure)
    found = _single(alpha, beta, [1, 0], [1, 1], pass_at(1))
    check_points(found, float(level), 0.5 + gap / 2, HARD)


# ------------------------------------------------------------------ partial pooling


POOLED = {
    "homogeneous": ([16] * 100, 32),
    "single trials": ([1] * 140 + [0] * 60, 1),
    "many single trials": ([1] * 1400 + [0] * 600, 1),
    "four trials": ([0] * 8 + [1] * 3 + [2] * 2 + [3] * 3 + [4] * 14, 4),
    "all right": ([4] * 5, 4),
    "two questions": ([3, 0], 4),
    "one question": ([3], 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLED)
def test_pooled_distributions_against_simulation(name: str) -> None:
    """Both targets and the icc, against draws of hyperparameters and questions."""
    successes, trials = POOLED[name]
    metrics = parse("bayes pass@4 maj@3")
    credits = tuple(metric.credit for metric in metrics)
    states = States.of(successes, np.full(len(successes), trials))
    posterior = hyper_posterior(
        CountHistograms.of(states.successes, states.trials, states.count), HyperPrior()
    )
    size = min(20_000, 4_000_000 // len(successes))
    questions = _simulated(states, posterior, credits, size, 11)
    for found, draws in zip(_pooled(states, posterior, *credits), questions, strict=True):
        check_against_draws(found, draws, LEVELS)
    rng = np.random.default_rng(12)
    x, y = posterior.place(*draw_hyperparameters(posterior, 20_000, rng))
    nodes = Nodes.of(x, y, np.full(20_000, 1 / 20_000))
    for found, metric in zip(population_distributions(posterior, credits), metrics, strict=True):
        check_against_draws(found, metric.predictive(nodes.alpha[:, 0], nodes.beta[:, 0]), LEVELS)
    check_against_draws(icc_distribution(posterior), expit(y), LEVELS)


def test_single_trials_have_a_known_population_mean() -> None:
    """With one trial per question the mean difficulty is exactly Beta-distributed."""
    _, posterior = _tallied([(1, 1, 140), (0, 1, 60)])
    (found,) = population_distributions(posterior, [pass_at(1)])
    check_points(found, LEVELS, beta_distribution(141, 61).ppf(LEVELS))
    check_points(icc_distribution(posterior), LEVELS, LEVELS)  # its uniform prior


HANDFULS: dict[str, Tally] = {
    "two questions": [(3, 4, 1), (1, 4, 1)],
    "five, single trials": [(1, 1, 3), (0, 1, 2)],
    "five": [(4, 4, 2), (0, 4, 1), (3, 4, 1), (1, 4, 1)],
    "five, all right": [(1, 1, 5)],
    "thirty, all right": [(4, 4, 30)],
    "thirty, single trials": [(1, 1, 18), (0, 1, 12)],
    "a hundred, one wrong": [(16, 16, 99), (0, 16, 1)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDFULS)
def test_a_finer_grid_changes_no_interval(name: str) -> None:
    """Nodes a third as far apart each way: ends move by no more than is promised, or stated."""
    states, hyper = _tallied(HANDFULS[name])
    credits = (pass_at(1), pass_at(4), pass_hat(8))
    usual = _pooled(states, hyper, *credits)
    finer = _pooled(states, hyper.refined(3, 3), *credits)
    for one, other in zip(usual, finer, strict=True):
        (ends, error), (better, own) = (
            measured_interval(found, 0.95, "eti") for found in (one, other)
        )
        assert 0.0 <= ends[0] < ends[1] <= 1.0
        off = np.abs(np.subtract(ends, better)).max()
        assert off <= max(error + own, HARD * width_of(one))


@pytest.mark.slow
def test_two_single_trials_that_failed_pooled() -> None:
    """P(p + q <= 2x) under every node: one integral by tanh-sinh quadrature, the other known.

    Nodes a little apart whose p have a few successes' worth of spread are no staircase.
    """
    states, hyper = _tallied([(0, 1, 2)])
    (found,) = _pooled(states, hyper, pass_at(1))
    nodes = hyper.refined(1, 8).nodes(1e-7)
    a, b = nodes.alpha, nodes.beta + 1.0
    t = np.linspace(-5.0, 2.9, 641)
    share = expit(np.pi * np.sinh(t))
    step = np.pi * np.cosh(t) * share * (1.0 - share) * (t[1] - t[0])
    step[0] *= 0.5

    def below(x: float) -> float:
        sure, most = max(0.0, 2 * x - 1), min(1.0, 2 * x)
        p = sure + (most - sure) * share
        density = np.exp((a - 1) * np.log(p) + (b - 1) * np.log1p(-p) - betaln(a, b))
        inner = (density * betainc(a, b, np.clip(2 * x - p, 0.0, 1.0))) @ step
        least = betainc(a, b, p[0])[:, 0]  # so near 0 that it does not matter where
        nothing = least * betainc(a, b, most)[:, 0] if sure == 0.0 else least
        return float(nodes.weight @ (nothing + (most - sure) * inner))

    check_quantiles(found, below, [0.75, 0.975], slack=1e-6)


@pytest.mark.slow
def test_stated_error_holds_next_to_an_atom() -> None:
    """Saturated questions, pooled: nearly all of their worth sits on one point of the scale."""
    (metric,) = parse("pass@32")
    states, posterior = _tallied([(64, 64, 29), (0, 64, 1)])
    (found,) = _pooled(states, posterior, metric.credit)
    (draws,) = _simulated(states, posterior, (metric.credit,), 100_000, 0)
    check_against_draws(found, draws, LEVELS, HARD)


# ------------------------------------------------------------------ very many questions


def test_single_trials_are_normals_on_a_finer_grid() -> None:
    """10,000 single trials: given a node hardly any noise, so normals on a much finer grid."""
    states, hyper = _tallied([(1, 1, 7000), (0, 1, 3000)])
    (found,) = _pooled(states, hyper, pass_at(8))
    fine = StateMixture(hyper.refined(12, 6).nodes(1e-10), states, (pass_at(8),)).moments
    mean, sd = fine.mean[:, 0], np.sqrt(fine.variance[:, 0])
    check_quantiles(found, lambda x: fine.weight @ ndtr((x - mean) / sd), LEVELS, slack=2e-6)


MANY: dict[str, tuple[Tally, Credit]] = {
    "all right": ([(16, 16, 2000)], pass_at(8)),
    "all wrong": ([(0, 4, 1000)], pass_hat(2)),
    "a million, all right": ([(64, 64, 1_000_000)], pass_at(8)),
    "three wrong": ([(1, 1, 997), (0, 1, 3)], pass_at(8)),
    "twenty wrong": ([(1, 1, 980), (0, 1, 20)], pass_at(8)),
    "a tenth wrong": ([(1, 1, 900), (0, 1, 100)], pass_at(8)),
    "some wrong": ([(1, 1, 700), (0, 1, 300)], pass_at(8)),
    "three trials right": ([(4, 4, 970), (3, 4, 30)], pass_at(2)),
    "one trial wrong": ([(16, 16, 970), (15, 16, 30)], pass_at(2)),
    "all but two hundred": ([(16, 16, 199), (15, 16, 1)], pass_at(4)),
    "majorities": ([(3, 3, 600), (1, 3, 400)], maj_at(5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_many_questions_against_draws(name: str) -> None:
    """Quantiles within the stated error of those of draws, question by question."""
    tally, credit = MANY[name]
    states, hyper = _tallied(tally)
    (found,) = _pooled(states, hyper, credit)
    ends, error = measured_interval(found, 0.95, "eti")
    assert 0.0 <= ends[0] <= ends[1] <= 1.0
    assert 0.0 < error < np.inf
    if states.questions <= 2000:
        (draws,) = _simulated(states, hyper, (credit,), 4000, 5)
        check_against_draws(found, draws, [0.025, 0.5, 0.975], HARD)


@pytest.mark.slow
def test_levels_beside_a_large_atom_inside_the_scale() -> None:
    """One of thirty questions never solved: .7 to .75 of the probability lies at 29/30.

    Levels just above it are where hardly anything is, so that their quantiles are hard to know.
    """
    states, hyper = _tallied([(64, 64, 29), (0, 64, 1)])
    (found,) = _pooled(states, hyper, pass_at(32))
    (draws,) = _simulated(states, hyper, (pass_at(32),), 100_000, 5)
    levels = np.array([0.1, 0.5, 0.6, 0.7, 0.72, 0.74, 0.75, 0.76, 0.78, 0.8, 0.85, 0.9, 0.975])
    check_against_draws(found, draws, levels)


@pytest.mark.parametrize("questions", [2, 30, 1000, 100_000])
def test_moments_of_the_distribution_are_the_posterior_moments(questions: int) -> None:
    """Means and sds by integrating quantiles."""
    rng = np.random.default_rng(questions)
    states = States.of(rng.integers(0, 17, questions), np.full(questions, 16))
    mixture = StateMixture(Nodes.single(1.0, 1.0), states, (pass_at(4), maj_at(5)))
    means, sds = mixture.moments.overall[0], np.sqrt(mixture.moments.total_variance)
    for found, mean, sd in zip(mean_distributions(mixture), means, sds, strict=True):
        values = found.quantile((np.arange(20_000) + 0.5) / 20_000)
        assert abs(values.mean() - mean) < 5e-4 * sd
        assert abs(values.std() / sd - 1) < 3e-3


# ------------------------------------------------------------------ intervals, and odd cases


def test_intervals() -> None:
    """The shortest interval is shorter than the central one, and holds as much."""
    (found,) = _flat([4] * 5, 4, pass_at(4))
    eti, hdi = interval(found, 0.95, "eti"), interval(found, 0.95, "hdi")
    assert hdi[1] - hdi[0] < eti[1] - eti[0]
    assert abs(float(found.cdf(hdi[1]) - found.cdf(hdi[0])) - 0.95) < 1e-6
    np.testing.assert_allclose(found.cdf(np.array(eti)), [0.025, 0.975], atol=1e-6)


@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_evaluate_states_the_error_of_its_intervals(kind: str) -> None:
    """Under either kind of interval, as closely as promised where the data are not saturated."""
    found = bk.evaluate(
        [[1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1]] * 4,
        "bayes",
        difficulty="beta",
        ci_kind=kind,
        rng=1,
    )
    one = found["closed_form"]["bayes"].squeeze()
    width = (one.sel(statistic="ci_upper") - one.sel(statistic="ci_lower")).values
    error = one.sel(statistic="ci_error").values
    assert (error > 0.0).all()
    assert (error < HARD * width).all()


def test_known_values_have_no_spread() -> None:
    """Credits that are the same whatever happens."""
    (found,) = _flat([1, 2], 4, Credit.of([0.25, 0.25]))
    assert found.quantile([0.1, 0.9]).tolist() == [0.25, 0.25]
    assert found.cdf([0.2, 0.3]).tolist() == [0.0, 1.0]
    assert interval(constant(0.5), 0.9, "eti") == (0.5, 0.5)


def test_credits_that_are_not_monotone() -> None:
    """Exactly one of two: 2p(1-p) has an edge where p is a half."""
    hump = Credit.of([0.0, 1.0, 0.0])
    (found,) = images((hump,), 3.0, 3.0, np.ones(1), np.ones(1))
    p = np.random.default_rng(0).beta(3, 3, 400_000)
    check_against_draws(found, 2 * p * (1 - p), LEVELS, HARD)


def test_extreme_priors() -> None:
    """Priors that all but decide, or say next to nothing."""
    states = States.of([1, 3, 2], [4, 4, 4])
    for prior in (Nodes.single(1e-3, 1e-3), Nodes.single(1e7, 3e7)):
        mixture = StateMixture(prior, states, (pass_hat(2),))
        (found,) = mean_distributions(mixture)
        middle = float(found.quantile(0.5))
        sd = float(np.sqrt(mixture.moments.total_variance[0]))
        assert abs(middle - mixture.moments.overall[0][0]) < 1.5 * sd


def test_little_is_kept_of_many_distinct_states() -> None:
    """What a mixture holds after its moments does not grow with states times points."""
    trials = np.repeat(np.arange(1, 200), np.arange(2, 201))
    successes = np.concatenate([np.arange(n + 1) for n in range(1, 200)])
    line = np.linspace(-1.0, 1.0, 2)
    nodes = Nodes.of(line, line, np.full(2, 0.5), (np.arange(2), np.zeros(2, np.int64)))
    mixture = StateMixture(nodes, States.of(successes, trials), (pass_at(1), pass_at(4)))
    tracemalloc.start()
    try:
        assert len(mixture.moments.mean) == 2
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 40e6  # bands.BLOCK numbers


def test_tabulated_distribution_is_consistent() -> None:
    """A uniform distribution as a table and as an image of a Beta."""
    table = Distribution(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 1.0]), np.ones(3))
    np.testing.assert_allclose(table.quantile(LEVELS), LEVELS, atol=1e-12)
    image = BetaImage(pass_at(1).vector, 1.0, 1.0)
    np.testing.assert_allclose(image.quantile(LEVELS), LEVELS, atol=1e-12)


# ------------------------------------------------------------------ rules along a curve


@pytest.mark.parametrize(("a", "b"), [(5.0, 1.0), (0.3, 2.0), (2000.0, 500.0)])
def test_a_rule_along_a_curve_is_dense_there_and_still_good(a: float, b: float) -> None:
    """Its points resolve the curve, and it still integrates Beta densities."""
    rule = beta_rule_along(a, b, a + b + 20.0, lambda known: np.exp(known.log_p), 0.002)
    mass = np.exp(a * rule.log_p + b * rule.log_q + rule.log_weight - betaln(a, b))
    assert mass.sum() == pytest.approx(1.0, abs=1e-5)
    assert mass @ np.exp(rule.log_p) == pytest.approx(a / (a + b), rel=1e-5)
    assert np.diff(np.exp(rule.log_p)).max() < 0.002
