"""Hyperparameters of categories: likelihood, evidence and posterior against brute force."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.dirichlet import dirichlet_posterior, weighted_posterior


def simulated(seed: int, questions: int, trials: int, categories: int, icc: float):
    rng = np.random.default_rng(seed)
    mean = rng.dirichlet(np.full(categories, 3.0))
    p = rng.dirichlet(mean * (1.0 - icc) / icc, questions)
    return np.unique([rng.multinomial(trials, q) for q in p], axis=0, return_counts=True)


def direct(alpha, counts):
    """Dirichlet-multinomial log probability of ordered trials, by log gamma functions."""
    rises = (gammaln(alpha + counts) - gammaln(alpha)).sum()
    return rises - gammaln(alpha.sum() + counts.sum()) + gammaln(alpha.sum())


@pytest.mark.parametrize("y", [-8.0, -1.0, 0.5, 4.0])
@pytest.mark.parametrize(
    "counts", [[[3, 0, 2], [0, 7, 1], [0, 0, 0]], [[1.5, 2.0, 0.25], [0.0, 3.5, 1.0]]]
)
def test_log_likelihood_of_whole_and_discounted_counts(y, counts) -> None:
    weight, mean = np.arange(1.0, len(counts) + 1.0), np.array([0.2, 0.5, 0.3])
    data = CountHistograms.of_counts(counts, weight)
    found = data.of_means(mean[:, None], np.array([y]))[0]
    alpha = mean * np.exp(-y)
    exact = sum(w * direct(alpha, np.array(c)) for w, c in zip(weight, counts, strict=True))
    assert found == pytest.approx(exact, abs=1e-9)


def test_log_likelihood_near_independence_does_not_cancel() -> None:
    """At icc = 1e-15 the trials are multinomial to all digits; gamma functions would lose six."""
    data, mean = CountHistograms.of_counts([[3, 1, 2]], [1.0]), np.array([0.2, 0.5, 0.3])
    y = np.log(1e-15)
    found = data.of_means(mean[:, None], np.array([y]))[0]
    assert found == pytest.approx(3 * np.log(0.2) + np.log(0.5) + 2 * np.log(0.3), rel=1e-12)


def brute_force(counts, weight, prior, icc_prior):
    """Three categories on a fine grid over (m_1, m_2, icc); midpoint rule."""
    edges = (np.arange(60) + 0.5) / 60
    one, two, r = np.meshgrid(edges, edges, edges, indexing="ij")
    inside = one + two < 1.0
    mean = np.stack([one, two, 1.0 - one - two], axis=-1)[inside]
    icc = r[inside]
    alpha = mean * ((1.0 - icc) / icc)[:, None]
    logs = ((np.asarray(prior) - 1.0) * np.log(mean)).sum(axis=1)
    logs += gammaln(np.sum(prior)) - gammaln(prior).sum()
    logs += (icc_prior[0] - 1) * np.log(icc) + (icc_prior[1] - 1) * np.log1p(-icc)
    logs -= gammaln(icc_prior[0]) + gammaln(icc_prior[1]) - gammaln(sum(icc_prior))
    for c, w in zip(counts, weight, strict=True):
        rises = (gammaln(alpha + c) - gammaln(alpha)).sum(axis=1)
        total = alpha.sum(axis=1)
        logs += w * (rises - gammaln(total + c.sum()) + gammaln(total))
    share = np.exp(logs - logsumexp(logs))
    return logsumexp(logs) - 3 * np.log(60), share @ mean, share @ icc


@pytest.mark.parametrize(("prior", "icc_prior"), [((1, 1, 1), (1, 1)), ((2, 1, 3), (2, 3))])
def test_posterior_and_evidence_against_a_brute_force_grid(prior, icc_prior) -> None:
    counts, weight = simulated(3, 12, 5, 3, 0.3)
    found = dirichlet_posterior(counts, weight, prior, icc_prior)
    evidence, mean, icc = brute_force(counts, weight, prior, icc_prior)
    assert found.log_evidence == pytest.approx(evidence, abs=0.02)
    np.testing.assert_allclose(found.weight @ found.mean, mean, atol=0.002)
    assert found.weight @ found.icc == pytest.approx(icc, abs=0.003)


@pytest.mark.parametrize("shape", [(30, 5, 0.3), (5, 3, 0.5), (200, 8, 0.1)])
def test_importance_sampling_agrees_with_quadrature_for_two_categories(shape) -> None:
    questions, trials, icc = shape
    counts, weight = simulated(1, questions, trials, 2, icc)
    exact = dirichlet_posterior(counts, weight, [1.0, 1.0], (1.0, 1.0))
    assert exact.exact
    drawn = weighted_posterior(CountHistograms.of_counts(counts, weight), np.ones(2), (1.0, 1.0))
    assert drawn.log_evidence == pytest.approx(exact.log_evidence, abs=0.01)
    for one, other in ((drawn.icc, exact.icc), (drawn.mean[:, 1], exact.mean[:, 1])):
        mean, sd = exact.weight @ other, np.sqrt(exact.weight @ (other - exact.weight @ other) ** 2)
        assert drawn.weight @ one == pytest.approx(mean, abs=0.03 * sd)
        spread = np.sqrt(drawn.weight @ (one - drawn.weight @ one) ** 2)
        assert spread == pytest.approx(sd, rel=0.04)


@pytest.mark.parametrize(
    ("questions", "trials", "categories", "icc"),
    [(2, 2, 4, 0.3), (500, 8, 5, 0.2), (200, 1, 4, 0.3), (200, 4, 3, 0.001), (30, 8, 10, 0.2)],
)
def test_the_stated_error_is_small_and_points_are_worth_their_number(
    questions, trials, categories, icc
) -> None:
    counts, weight = simulated(5, questions, trials, categories, icc)
    found = dirichlet_posterior(counts, weight, np.ones(categories), (1.0, 1.0))
    assert 1.0 / (found.weight @ found.weight) > 1500
    assert found.error < 0.05


def test_one_kind_of_outcome_only() -> None:
    found = dirichlet_posterior([[4, 0, 0]], [6.0], np.ones(3), (1.0, 1.0))
    mean = found.weight @ found.mean
    assert mean[0] > 0.8
    assert mean[1] == pytest.approx(mean[2], abs=0.01)


def test_thinning_keeps_the_posterior() -> None:
    counts, weight = simulated(2, 40, 6, 4, 0.2)
    full = dirichlet_posterior(counts, weight, np.ones(4), (1.0, 1.0))
    mean = full.weight @ full.mean
    sd = np.sqrt(full.weight @ (full.mean - mean) ** 2)
    for size, error in ((1500, 0.03), (500, 0.05)):
        some = full.thinned(size)
        assert len(some.weight) == size
        assert (np.abs(some.weight @ some.mean - mean) < error * sd).all()
    assert full.thinned(10**6) is full
