"""Distributions with edges: integrals, Laplace inversion, and twice the effort as witnesses."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.special import betainc, betaln, comb, expit

import bayesatk as bk
from bayesatk.closed_form.question_distributions import question_distributions
from bayesatk.core import edges
from bayesatk.core.corners import Corner, Ripple
from bayesatk.core.credit import maj_at, pass_at, pass_hat
from bayesatk.core.fourier import PointTransform
from bayesatk.core.hierarchy import hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.intervals import measured_interval
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.priors import HyperPrior
from bayesatk.core.quadrature import beta_rule_along
from bayesatk.core.refined_table import RefinedTable
from bayesatk.core.states import States
from bayesatk.core.sums import mean_distributions
from bayesatk.metrics import parse


def test_transform_of_points_is_their_sum() -> None:
    rng = np.random.default_rng(0)
    place, weight = rng.normal(size=300), rng.dirichlet(np.ones(300), 4)
    expected = weight @ np.exp(2j * np.pi * np.outer(place, np.arange(65)))
    np.testing.assert_allclose(PointTransform(place, 64)(weight), expected, atol=2e-10)


@pytest.mark.parametrize(("a", "b"), [(5.0, 1.0), (0.3, 2.0), (2000.0, 500.0)])
def test_a_rule_along_a_curve_is_dense_there_and_still_exact(a: float, b: float) -> None:
    rule = beta_rule_along(a, b, a + b + 20.0, lambda known: np.exp(known.log_p), 0.002)
    mass = np.exp(a * rule.log_p + b * rule.log_q + rule.log_weight - betaln(a, b))
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    assert mass @ np.exp(rule.log_p) == pytest.approx(a / (a + b), rel=1e-9)
    assert np.diff(np.exp(rule.log_p)).max() < 0.002


def test_a_rule_can_stop_where_its_curve_does() -> None:
    def right_of_the_middle(rule):
        return np.where(rule.log_p > rule.log_q, np.exp(rule.log_p), np.nan)

    rule = beta_rule_along(2.0, 3.0, 10.0, right_of_the_middle, 0.001)
    smooth = 1.0 / (1.0 + np.exp(-100.0 * (np.exp(rule.log_p) - 0.8)))  # nothing at the cut
    mass = np.exp(2.0 * rule.log_p + 3.0 * rule.log_q + rule.log_weight - betaln(2.0, 3.0))
    expected, _ = quad(
        lambda p: 12 * p * (1 - p) ** 2 * expit(100 * (p - 0.8)), 0.5, 1, epsabs=1e-13
    )
    assert mass @ smooth == pytest.approx(expected, abs=1e-7)


def test_two_questions_all_right_are_a_convolution() -> None:
    """P(p + q <= 2x) for two Beta(5, 1): 5 times the integral of p^4 min(1, 2x - p)^5."""
    mixture = StateMixture(Nodes.single(1.0, 1.0), States.of([4, 4], [4, 4]), (pass_at(1),))
    (found,) = mean_distributions(mixture)
    for x in (0.3, 0.6, 0.8, 0.9, 0.95):
        expected, _ = quad(
            lambda p, x=x: 5 * p**4 * min(1.0, 2 * x - p) ** 5,
            max(0.0, 2 * x - 1), min(1.0, 2 * x), epsabs=1e-14,
        )  # fmt: skip
        sure = max(0.0, 2 * x - 1) ** 5
        assert float(found.cdf(x)) == pytest.approx(expected + sure, abs=1e-9)


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
    mixture = StateMixture(Nodes.single(alpha, beta), States.of([4] * 30, [4] * 30), (credit,))
    (found,) = mean_distributions(mixture)
    for distance in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        level = 1.0 - euler(lambda s: (mass @ np.exp(-np.outer(lost / 30, s))) ** 30, distance)
        if 1e-3 < level < 1 - 1e-3:
            sharp = found.sharpened([level])
            assert abs(float(sharp.quantile(level)) - (1.0 - distance)) < 4e-7


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
    level = float(level)
    mixture = StateMixture(Nodes.single(alpha, beta), States.of([1, 0], [1, 1]), (pass_at(1),))
    sharp = mean_distributions(mixture)[0].sharpened([level])
    assert abs(float(sharp.quantile(level)) - 0.5 - gap / 2) < 4e-7


HANDFULS = {
    "two questions": ([3, 1], [4, 4]),
    "five, single trials": ([1, 0, 1, 1, 0], [1] * 5),
    "five": ([4, 0, 3, 4, 1], [4] * 5),
    "thirty, all right": ([4] * 30, [4] * 30),
    "thirty, single trials": ([1] * 18 + [0] * 12, [1] * 30),
    "a hundred, one wrong": ([16] * 99 + [0], [16] * 100),
}


def _pooled(name: str, metrics: str) -> list[edges.EdgedDistribution]:
    successes, trials = HANDFULS[name]
    states = States.of(successes, trials)
    hyper = hyper_posterior(
        CountHistograms.of(states.successes, states.trials, states.count), HyperPrior()
    )
    credits = tuple(metric.credit for metric in parse(metrics))
    return question_distributions(hyper, states, credits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "eti") for name in HANDFULS), ("five", "hdi")],
)
def test_intervals_of_handfuls_are_exact_to_a_millionth(name: str, kind: str) -> None:
    for found in _pooled(name, "bayes pass@4"):
        (low, high), error = measured_interval(found, 0.95, kind)
        assert error < 1e-6
        assert 0.0 <= low < high <= 1.0


@pytest.mark.slow
def test_two_single_trials_that_failed_pooled() -> None:
    """P(p + q <= 2x) under every node: one integral by tanh-sinh quadrature, the other known.

    Nodes a little apart whose p have a few successes' worth of spread are no staircase.
    """
    hyper = hyper_posterior(
        CountHistograms.of(np.array([0]), np.array([1]), np.array([2.0])), HyperPrior()
    )
    (found,) = question_distributions(hyper, States.of([0, 0], [1, 1]), (pass_at(1),))
    nodes = hyper.refined(1, 8).heavy(1e-7)
    a, b = nodes.alpha[:, None], nodes.beta[:, None] + 1.0
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

    levels = [0.75, 0.975]
    sharp = found.sharpened(levels)
    for level, value in zip(levels, sharp.quantile(levels), strict=True):
        assert below(float(value) - 1e-6) - 1e-6 <= level <= below(float(value) + 1e-6) + 1e-6


@pytest.mark.slow
def test_nodes_apart_are_a_continuum() -> None:
    """Five single trials, all right: three times as many columns where means are narrow."""
    states = States.of([1] * 5, [1] * 5)
    hyper = hyper_posterior(
        CountHistograms.of(np.array([1]), np.array([1]), np.array([5.0])), HyperPrior()
    )
    ends = []
    for step in (0.0425, 0.015):
        nodes = hyper.resolving(states.mean_p, 1e-8, step)
        (found,) = mean_distributions(StateMixture(nodes, states, (pass_hat(8),)))
        ends.append(measured_interval(found, 0.95, "eti"))
    assert np.abs(np.subtract(ends[0][0], ends[1][0])).max() < ends[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two questions"])
def test_more_effort_changes_no_interval(name: str, monkeypatch) -> None:
    """A grid of hyperparameters twice as fine each way, four times as many frequencies."""
    usual = [measured_interval(found, 0.95, "eti") for found in _pooled(name, "bayes pass@4")]
    refined = hyper_posterior

    def finer(*arguments):
        return refined(*arguments).refined(2, 2)

    monkeypatch.setattr(edges, "_FREQUENCIES", (512, 2048))
    monkeypatch.setattr(edges, "_WORK", (1e9, 1e9))
    monkeypatch.setitem(globals(), "hyper_posterior", finer)
    for (ends, error), found in zip(usual, _pooled(name, "bayes pass@4"), strict=True):
        better, _ = measured_interval(found, 0.95, "eti")
        assert np.abs(np.subtract(ends, better)).max() < error < 1e-6


def test_a_sharpened_distribution_still_rises() -> None:
    mixture = StateMixture(Nodes.single(0.2, 0.1), States.of([4] * 5, [4] * 5), (pass_at(2),))
    sharp = mean_distributions(mixture)[0].sharpened([0.025, 0.5, 0.975])
    assert sharp.corners == {5}
    x = 1.0 - np.geomspace(1e-9, 0.5, 5000)[::-1]
    assert (np.diff(sharp.cdf(x)) >= 0.0).all()
    assert sharp.sharpened([0.025, 0.5, 0.975]) is sharp


def test_numbers_of_questions_at_either_end_are_told_apart() -> None:
    """Near the corner of so many questions at p = 1 lies as much as a binomial says."""
    nodes = Nodes.single(1e-3, 2e-3)
    mixture = StateMixture(nodes, States.of([0] * 6, [0] * 6), (maj_at(3),))
    share = 1.0 / 3.0  # of p at 1, in the limit of no spread
    for right in range(7):
        _, phi, _ = Corner(mixture, 0, right)._near(1e-3, 4, np.arange(1))
        expected = comb(6, right) * share**right * (1 - share) ** (6 - right)
        assert phi[0].real == pytest.approx(expected, abs=0.02)


def test_evaluate_states_the_error_of_its_intervals() -> None:
    result = bk.evaluate(np.ones((1, 30, 4), int), "bayes", draws=50, rng=1)["closed_form"]
    assert float(result["bayes"].sel(statistic="ci_error").max()) < 1e-6


def test_a_second_corner_leaves_the_first_as_fine_as_it_is() -> None:
    """Two corrections whose surroundings overlap, in either order."""
    x = np.linspace(0.0, 1.0, 101)
    flat = RefinedTable(x, x.copy(), np.ones(101), np.zeros(101), np.zeros(101))
    fine, coarse = (
        Ripple(offset, 1e-3 * np.exp(-((offset / width) ** 2)), np.zeros(81), 8.0 * width)
        for width in (1e-4, 0.02)
        for offset in [width * np.linspace(-10.0, 10.0, 81)]
    )
    centres = ((0.5, [fine]), (0.45, [coarse]))
    for first, second in (centres, centres[::-1]):
        table = flat.corrected(*first).corrected(*second)
        near = np.abs(table.x - 0.5) < 1e-4
        assert near.sum() > 5
        both = 1e-3 * (
            np.exp(-(((table.x - 0.5) / 1e-4) ** 2)) + np.exp(-(((table.x - 0.45) / 0.02) ** 2))
        )
        np.testing.assert_allclose((table.cdf - table.x)[near], both[near], atol=2e-6)
