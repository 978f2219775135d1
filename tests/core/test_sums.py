"""Exact distributions of means: double integrals, simulation, laws, and both ends of the scale."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, expit
from scipy.stats import beta as beta_distribution

from bayesatk.closed_form.question_distributions import question_distributions
from bayesatk.core.credit import Credit, maj_at, pass_at, pass_hat
from bayesatk.core.distribution import BetaMixture, Distribution, MonotoneImage, constant
from bayesatk.core.fourier import first_dead
from bayesatk.core.hierarchy import hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.hyper_functions import draw_hyperparameters
from bayesatk.core.intervals import HasEdges, interval
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.population import icc_distribution, population_distributions
from bayesatk.core.priors import HyperPrior
from bayesatk.core.states import States
from bayesatk.core.sums import mean_distributions
from bayesatk.metrics import parse

LEVELS = np.array([0.005, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.995])


def _flat(successes, trials, *credits: Credit):
    states = States.of(successes, np.broadcast_to(trials, np.shape(successes)))
    return mean_distributions(StateMixture(Nodes.single(1.0, 1.0), states, credits))


def test_two_questions_against_a_convolution_integral() -> None:
    """P(p1 + p2 <= 2x) by quadrature over p1 of the Beta distribution function of p2."""
    (found,) = _flat([4, 1], 4, pass_at(1))
    for x in (0.3, 0.45, 0.55, 0.6, 0.8):
        exact, _ = quad(
            lambda p, x=x: beta_distribution.pdf(p, 5, 1) * betainc(2, 4, np.clip(2 * x - p, 0, 1)),
            0, 1, epsabs=1e-12, points=[max(0.0, 2 * x - 1), min(1.0, 2 * x)],
        )  # fmt: skip
        assert abs(float(found.cdf(x)) - exact) < 3e-6


def test_one_question_is_the_beta_distribution() -> None:
    (found,) = _flat([12], 16, pass_at(3))
    p = beta_distribution.ppf(LEVELS, 13, 5)
    np.testing.assert_allclose(found.quantile(LEVELS), 1 - (1 - p) ** 3, rtol=1e-11)
    np.testing.assert_allclose(found.cdf(1 - (1 - p) ** 3), LEVELS, atol=1e-11)
    assert found.cdf([-0.1, 1.1]).tolist() == [0.0, 1.0]


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
    (one,) = parse(metric)
    (found,) = _flat(successes, trials, one.credit)
    rng = np.random.default_rng(7)
    size = 400_000
    total = np.zeros(size)
    for c in successes:
        total += one.latent(rng.beta(1 + c, 1 + trials - c, size))
    total /= len(successes)
    _assert_quantiles(found, total)


def _assert_quantiles(found, draws) -> None:
    """Counts below each quantile, allowing the stated error of the quantile itself."""
    error = found.error
    if isinstance(found, HasEdges):
        found = found.sharpened(LEVELS)
        gap = found.quantile(LEVELS) - found.coarser.quantile(LEVELS)
        error = found.floor(found.quantile(LEVELS)) + np.abs(gap).max()
    low, high = (found.quantile(LEVELS) + shift for shift in (-error, error))
    standard = 4.5 * np.sqrt(LEVELS * (1 - LEVELS) / len(draws))
    at_most = np.array([np.mean(draws <= x) for x in high])
    at_least = np.array([np.mean(draws <= x) for x in low])
    assert (at_most + standard >= LEVELS).all()
    assert (at_least - standard <= LEVELS).all()


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
def test_pooled_distributions_against_simulation(name) -> None:
    successes, trials = POOLED[name]
    metrics = parse("bayes pass@4 maj@3")
    credits = tuple(metric.credit for metric in metrics)
    states = States.of(successes, np.full(len(successes), trials))
    posterior = hyper_posterior(
        CountHistograms.of(states.successes, states.trials, states.count), HyperPrior()
    )
    rng = np.random.default_rng(11)
    size = 20_000
    x, y = draw_hyperparameters(posterior, size, rng)
    nodes = Nodes.of(x, y, np.full(size, 1 / size))
    total, fresh = np.zeros((3, size)), np.zeros((3, size))
    for c, count in zip(states.successes, states.count, strict=True):
        for _ in range(int(count)):
            p = rng.beta(nodes.alpha + c, nodes.beta + trials - c)
            total += [metric.latent(p) for metric in metrics]
    for i, metric in enumerate(metrics):
        fresh[i] = metric.predictive(nodes.alpha, nodes.beta)
    for found, draws in zip(
        question_distributions(posterior, states, credits), total / len(successes), strict=True
    ):
        _assert_quantiles(found, draws)
    for found, draws in zip(population_distributions(posterior, credits), fresh, strict=True):
        _assert_quantiles(found, draws)
    _assert_quantiles(icc_distribution(posterior), expit(y))


def test_single_trials_have_a_known_population_mean() -> None:
    """With one trial per question the mean difficulty is exactly Beta-distributed."""
    c = np.array([1] * 140 + [0] * 60)
    states = States.of(c, np.ones(200, int))
    posterior = hyper_posterior(
        CountHistograms.of(states.successes, states.trials, states.count), HyperPrior()
    )
    (found,) = population_distributions(posterior, [pass_at(1)])
    exact = beta_distribution(141, 61)
    assert np.abs(exact.cdf(found.quantile(LEVELS)) - LEVELS).max() < 2e-6
    icc = icc_distribution(posterior)
    np.testing.assert_allclose(icc.quantile(LEVELS), LEVELS, atol=2e-5)  # its uniform prior


@pytest.mark.parametrize("questions", [2, 30, 1000, 100_000])
def test_moments_of_the_distribution_are_the_posterior_moments(questions: int) -> None:
    rng = np.random.default_rng(questions)
    states = States.of(rng.integers(0, 17, questions), np.full(questions, 16))
    mixture = StateMixture(Nodes.single(1.0, 1.0), states, (pass_at(4), maj_at(5)))
    for found, mean, variance in zip(
        mean_distributions(mixture), mixture.moments.mean, mixture.moments.variance, strict=True
    ):
        u = (np.arange(20_000) + 0.5) / 20_000
        values = found.quantile(u)
        assert abs(values.mean() - mean) < 2e-4 * np.sqrt(variance)
        assert abs(values.std() / np.sqrt(variance) - 1) < 2e-3


def test_intervals() -> None:
    (found,) = _flat([4] * 5, 4, pass_at(4))
    eti, hdi = interval(found, 0.95, "eti"), interval(found, 0.95, "hdi")
    assert hdi[1] - hdi[0] < eti[1] - eti[0]
    sharp = found.sharpened([0.025, 0.05, 0.975, 1.0])
    assert abs(float(sharp.cdf(hdi[1]) - sharp.cdf(hdi[0])) - 0.95) < 1e-6
    np.testing.assert_allclose(sharp.cdf(np.array(eti)), [0.025, 0.975], atol=1e-8)


def test_known_values_have_no_spread() -> None:
    (found,) = _flat([1, 2], 4, Credit.of([0.25, 0.25]))
    assert found.method == "constant"
    assert found.quantile([0.1, 0.9]).tolist() == [0.25, 0.25]
    assert found.cdf([0.2, 0.3]).tolist() == [0.0, 1.0]
    assert interval(constant(0.5), 0.9, "eti") == (0.5, 0.5)


def test_credits_that_are_not_monotone() -> None:
    hump = Credit.of([0.0, 1.0, 0.0])
    (found,) = _flat([2], 4, hump)
    rng = np.random.default_rng(0)
    p = rng.beta(3, 3, 400_000)
    _assert_quantiles(found, 2 * p * (1 - p))


def test_extreme_priors() -> None:
    states = States.of([1, 3, 2], [4, 4, 4])
    for prior in (Nodes.single(1e-3, 1e-3), Nodes.single(1e7, 3e7)):
        mixture = StateMixture(prior, states, (pass_hat(2),))
        (found,) = mean_distributions(mixture)
        middle = float(found.quantile(0.5))
        sd = float(np.sqrt(mixture.moments.variance[0]))
        assert abs(middle - mixture.moments.mean[0]) < 1.5 * sd


def test_death_of_a_characteristic_function_is_its_first() -> None:
    phi = np.exp(-(np.linspace(0, 10, 50) ** 2)).astype(complex)
    dead = first_dead(phi)
    assert dead is not None
    revived = phi.copy()
    revived[40:] = 0.1
    assert first_dead(revived) == dead
    assert first_dead(phi[:10]) is None


def test_tabulated_distribution_is_consistent() -> None:
    table = Distribution(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 1.0]), np.ones(3), 0.0, "x")
    np.testing.assert_allclose(table.quantile(LEVELS), LEVELS, atol=1e-12)
    image = MonotoneImage(pass_at(1).vector, BetaMixture(np.ones(1), np.ones(1), np.ones(1)))
    np.testing.assert_allclose(image.quantile(LEVELS), LEVELS, atol=1e-12)


@pytest.mark.slow
def test_stated_error_holds_next_to_an_atom() -> None:
    """Saturated questions, pooled: nearly all of their worth sits on one point of the scale."""
    (metric,) = parse("pass@32")
    successes = [64] * 29 + [0]
    states = States.of(successes, np.full(30, 64))
    posterior = hyper_posterior(
        CountHistograms.of(states.successes, states.trials, states.count), HyperPrior()
    )
    (found,) = question_distributions(posterior, states, (metric.credit,))
    rng = np.random.default_rng(0)
    size = 200_000
    x, y = draw_hyperparameters(posterior, size, rng)
    nodes = Nodes.of(x, y, np.full(size, 1 / size))
    total = np.zeros(size)
    for c in successes:
        total += metric.latent(rng.beta(nodes.alpha + c, nodes.beta + 64 - c))
    assert found.method == "edged"
    _assert_quantiles(found, total / 30)


@pytest.mark.parametrize(
    ("scale", "successes", "trials"), [(1.0, 0, 3), (0.02, 1, 2), (40.0, 500, 1000)]
)
def test_a_tabulated_mixture_of_betas_is_the_mixture(scale, successes, trials) -> None:
    rng = np.random.default_rng(8)
    total, mean = scale * rng.lognormal(0.0, 1.5, 300), rng.beta(2, 2, 300)
    a, b = total * mean + successes, total * (1 - mean) + trials - successes
    weight = rng.dirichlet(np.ones(300))
    mixture = BetaMixture(a, b, weight)
    p = np.concatenate([[1e-12, 1e-6], np.linspace(0.001, 0.999, 400), [1 - 1e-6]])
    exact = weight @ beta_distribution.cdf(p, a[:, None], b[:, None])
    np.testing.assert_allclose(mixture.cdf(np.log(p) - np.log1p(-p)), exact, atol=2e-7)
