"""Integrated hyperparameters against brute force, published numbers and exact special cases."""

import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import beta as beta_distribution

import bayesatk as bk
from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import hyper_posterior
from bayesatk.core.pooling.hyper_functions import draw_hyperparameters
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.metrics.credit import maj_at, pass_at, pass_hat
from bayesatk.priors import HyperPrior

EDGES = {
    "one trial": ([1], [1]),
    "one question": ([3], [4]),
    "two questions": ([0, 4], [4, 4]),
    "all wrong": ([0] * 8, [4] * 8),
    "all right": ([4] * 8, [4] * 8),
    "n=1 everywhere": ([1] * 13 + [0] * 7, [1] * 20),
    "one and a thousand": ([1, 700], [1, 1000]),
    "ragged": ([0, 3, 2, 9, 1, 5], [1, 3, 7, 11, 4, 5]),
    "all or none": ([0] * 6 + [16] * 6, [16] * 12),
    "homogeneous": ([8] * 30, [16] * 30),
}


def betaln(a, b):
    """Log Beta function that survives tiny arguments."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _posterior(successes, trials, prior=None):
    states = States.of(successes, trials)
    data = CountHistograms.of(states.successes, states.trials, states.count)
    return states, hyper_posterior(data, prior or HyperPrior())


def _brute_force(successes, trials, prior=None):
    """Dense trapezoid in the two logits, from the Beta-binomial density by log-Beta functions."""
    (a, b), (c, d) = (prior or HyperPrior()).mean, (prior or HyperPrior()).icc
    x, y = np.linspace(-26, 26, 1301), np.linspace(-20, 24, 1101)
    x, y = x[:, None], y[None, :]
    total = np.exp(-y)
    alpha, beta = expit(x) * total, expit(-x) * total
    logs = -a * np.logaddexp(0, -x) - b * np.logaddexp(0, x) - betaln(a, b)
    logs = logs - c * np.logaddexp(0, -y) - d * np.logaddexp(0, y) - betaln(c, d)
    for hits, runs in zip(successes, trials, strict=True):
        logs = logs + betaln(alpha + hits, beta + (runs - hits)) - betaln(alpha, beta)
    peak = logs.max()
    weight = np.exp(logs - peak)
    evidence = peak + np.log(weight.sum() * (52 / 1300) * (44 / 1100))
    return alpha, beta, weight / weight.sum(), evidence


@pytest.mark.slow
@pytest.mark.parametrize("name", EDGES)
def test_edge_cases_against_brute_force(name: str) -> None:
    successes, trials = EDGES[name]
    _, found = _posterior(successes, trials)
    alpha, beta, weight, evidence = _brute_force(successes, trials)
    assert found.error < 1e-6
    # log-Beta differences lose digits at the witness's icc -> 0 end: 1e-5 is its own accuracy.
    assert abs(found.log_evidence - evidence) < 2e-5
    for ours, theirs in (
        (found.mean, alpha / (alpha + beta)),
        (found.icc, 1.0 / (alpha + beta + 1.0)),
    ):
        mean = (weight * theirs).sum()
        sd = np.sqrt((weight * (theirs - mean) ** 2).sum())
        assert abs(found.weight @ ours - mean) < 2e-5 * sd
        own = np.sqrt(found.weight @ (ours - found.weight @ ours) ** 2)
        assert abs(own / sd - 1) < 2e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two questions", "all right", "n=1 everywhere", "ragged"])
def test_metric_moments_against_brute_force(name: str) -> None:
    successes, trials = EDGES[name]
    credits = (pass_at(4), pass_hat(3), maj_at(5))
    states, found = _posterior(successes, trials)
    mixture = StateMixture(found.nodes(), states, credits)
    alpha, beta, weight, _ = _brute_force(successes, trials)
    keep = weight.ravel() > 1e-10
    alpha, beta, weight = (part.ravel()[keep] for part in (alpha, beta, weight))
    mean, variance = np.zeros((len(weight), 3)), np.zeros((len(weight), 3))
    for hits, runs in zip(successes, trials, strict=True):
        one, _, spread = beta_binomial_moments(credits, alpha + hits, beta + (runs - hits))
        mean += one / len(trials)
        variance += spread / len(trials) ** 2
    expected = weight @ mean / weight.sum()
    total = (weight @ variance + weight @ (mean - expected) ** 2) / weight.sum()
    np.testing.assert_allclose(
        mixture.moments.overall[0], expected, atol=2e-5 * np.sqrt(total).max()
    )
    np.testing.assert_allclose(np.sqrt(mixture.moments.total_variance), np.sqrt(total), rtol=5e-5)


def test_one_question_one_trial_is_known_exactly() -> None:
    _, found = _posterior([1], [1])
    # E m = 2/3 (Beta(2, 1)), and one trial says nothing about the icc.
    assert abs(found.weight @ found.mean - 2 / 3) < 1e-8
    assert abs(found.weight @ found.icc - 0.5) < 1e-8
    assert abs(found.log_evidence - np.log(0.5)) < 1e-8


def test_single_trials_leave_the_icc_at_its_prior() -> None:
    rng = np.random.default_rng(0)
    c = rng.binomial(1, 0.7, 5000)
    _, found = _posterior(c, np.ones(5000, int))
    exact = beta_distribution(1 + c.sum(), 1 + 5000 - c.sum())
    assert abs(found.weight @ found.mean - exact.mean()) < 1e-6 * exact.std()
    assert abs(found.weight @ found.icc - 0.5) < 1e-6


def test_likelihood_is_the_beta_binomial() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 30, 25)
    c = rng.binomial(n, 0.4)
    x, y = rng.normal(size=6), rng.normal(size=6)
    total = np.exp(-y)
    alpha, beta = expit(x) * total, expit(-x) * total
    expected = sum(
        betaln(alpha + hits, beta + (runs - hits)) - betaln(alpha, beta)
        for hits, runs in zip(c, n, strict=True)
    )
    data = CountHistograms.of(c, n, np.ones(25))
    np.testing.assert_allclose(data.log_likelihood(x, y), expected, rtol=1e-12)


def test_likelihood_limits() -> None:
    data = CountHistograms.of([3], [5], [1.0])
    x = np.array([0.4])
    binomial = 3 * np.log(expit(x)) + 2 * np.log(expit(-x))
    np.testing.assert_allclose(data.log_likelihood(x, np.array([-80.0])), binomial, rtol=1e-12)
    assert np.isfinite(data.log_likelihood(x, np.array([300.0])))


def test_rat_tumors_against_the_book() -> None:
    data = bk.datasets.rat_tumors()
    _, found = _posterior(data.successes.values[0], data.trials.values[0], HyperPrior.bda3())
    weight, log_total = found.weight, -found.y.ravel()
    mean = weight @ found.mean
    assert round(mean, 4) == 0.1443
    assert round(float(np.sqrt(weight @ (found.mean - mean) ** 2)), 4) == 0.0134
    centre = weight @ log_total
    assert round(centre, 4) == 2.7556
    assert round(float(np.sqrt(weight @ (log_total - centre) ** 2)), 4) == 0.3442
    assert np.isnan(found.log_evidence)
    nodes = found.nodes()
    theta = [
        nodes.weight @ ((nodes.alpha + y) / (nodes.alpha + nodes.beta + n))[:, 0]
        for y, n in ((4, 14), (0, 20))
    ]
    assert [round(float(value), 4) for value in theta] == [0.2109, 0.0636]


def test_batting_complete_pooling_against_the_published_interval() -> None:
    fit = bk.evaluate(bk.datasets.batting_1975(), "bayes", pooling="complete", ci_prob=0.8, rng=1)
    row = fit["closed_form"]["bayes"].sel(target="questions").squeeze()
    statistics = row.sel(statistic=["mean", "ci_lower", "ci_upper"]).values
    np.testing.assert_allclose(statistics, [0.2660, 0.2463, 0.2860], atol=6e-5)


def test_batting_partial_pooling_close_to_the_published_analysis() -> None:
    # Published with alpha + beta ~ Pareto(1, 1.5), which no Beta prior of the icc expresses
    # (it excludes alpha + beta < 1); Clemente is .3217 there, mean .2686 (sd .0211).
    fit = bk.evaluate(bk.datasets.batting_1975(), "bayes", keep=["p"], rng=1)
    clemente = fit["posterior"]["p"].sel(question="Clemente").mean().item()
    assert abs(clemente - 0.3217) < 0.02
    mean = fit["closed_form"]["mean_p"].squeeze()
    assert abs(mean.sel(statistic="mean").item() - 0.26857) < 0.003
    assert abs(mean.sel(statistic="sd").item() - 0.02108) < 0.003


def test_a_million_questions() -> None:
    rng = np.random.default_rng(2)
    c = rng.binomial(64, rng.beta(0.3, 0.3, 1_000_000))
    _, found = _posterior(c, np.full(1_000_000, 64))
    assert abs(found.weight @ found.mean - 0.5) < 5e-3
    assert abs(found.weight @ found.icc - 1 / 1.6) < 5e-3
    assert found.error < 1e-6


def test_draws_of_the_hyperparameters() -> None:
    _, found = _posterior(*EDGES["ragged"])
    x, y = found.place(*draw_hyperparameters(found, 200_000, np.random.default_rng(3)))
    for values, nodes in ((expit(x), found.mean), (expit(y), found.icc)):
        mean = found.weight @ nodes
        sd = np.sqrt(found.weight @ (nodes - mean) ** 2)
        assert abs(values.mean() - mean) < 5 * sd / np.sqrt(200_000)
        assert abs(values.std() / sd - 1) < 5e-3


def test_draws_of_the_hyperparameters_of_saturated_data() -> None:
    """Log weights fall steeply there: splines rang, and most draws had a spurious icc near 0."""
    found = hyper_posterior(CountHistograms.of([16, 15], [16, 16], [199.0, 1.0]), HyperPrior())
    y = found.place(*draw_hyperparameters(found, 50_000, np.random.default_rng(3)))[1]
    nodes = found.y.ravel()
    mean = found.weight @ nodes
    sd = np.sqrt(found.weight @ (nodes - mean) ** 2)
    assert abs(y.mean() - mean) < 6 * sd / np.sqrt(50_000)
    assert abs(y.std() / sd - 1) < 2e-2


def test_an_icc_prior_near_zero_is_complete_pooling() -> None:
    data = bk.tally(([3, 2, 4, 1], 5))
    tight = bk.evaluate(
        data, "pass@2", prior=bk.HyperPrior(icc=(1.0, 4000.0), families="beta"), rng=1
    )
    complete = bk.evaluate(data, "pass@2", pooling="complete", rng=1)
    for statistic in ("mean", "sd", "ci_lower", "ci_upper"):
        ours, theirs = (
            tree["closed_form"]["pass_at_k"].sel(statistic=statistic, target="population").item()
            for tree in (tight, complete)
        )
        assert abs(ours - theirs) < 5e-3


def test_evidence_compares_with_complete_pooling() -> None:
    """As icc -> 0 the evidence tends to that of one shared p, a ratio of Beta functions."""
    c, n = np.array([3, 2, 4, 1]), np.array([5, 5, 5, 5])
    _, found = _posterior(c, n, HyperPrior(icc=(1.0, 1e5)))
    shared = betaln(1 + c.sum(), 1 + (n - c).sum())
    assert abs(found.log_evidence - shared) < 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": (0.0, 1.0)}, "mean must be two Beta parameters"),
        ({"icc": (1.0, -2.0)}, "icc must be two Beta parameters"),
        ({"icc": (np.inf, 1.0)}, "icc must be two Beta parameters"),
    ],
)
def test_priors_are_checked(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        HyperPrior(**arguments)
    with pytest.raises(ValueError, match="alpha must be finite"):
        bk.BetaPrior(0.0, 1.0)
