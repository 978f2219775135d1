"""Beta-binomial regression against scipy, quadrature on a cube, published estimates and refits."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import betaln, expit, gammaln, log_expit, logsumexp
from scipy.stats import betabinom

import bayesatk.core.numerics.points as points_of
import bayesatk.core.structure.regression_means as means
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import hyper_posterior
from bayesatk.core.structure.regression import Regression, alike
from bayesatk.core.structure.regression_means import Questions
from bayesatk.metrics.credit import maj_at, pass_at, pass_hat
from bayesatk.priors import HyperPrior

PRIOR = HyperPrior(families="beta")


def simulated(rng, questions, columns, trials, slope=1.5, icc=0.2):
    """Basis, successes and trials of questions whose first covariate matters."""
    raw = rng.standard_normal((questions, columns))
    raw -= raw.mean(axis=0)
    basis = np.ones((questions, 1))
    if columns:
        left = np.linalg.svd(raw, full_matrices=False)[0] * np.sqrt(questions)
        basis = np.concatenate([basis, left], axis=1)
    mean = expit(0.3 + slope * basis[:, 1:2].sum(axis=1))
    total = (1.0 - icc) / icc
    p = rng.beta(mean * total, (1.0 - mean) * total)
    n = rng.integers(1, 2 * trials, questions)
    return basis, rng.binomial(n, p), n


def regression(basis, c, n, prior=PRIOR):
    return Regression(*alike(basis, c, n), prior)


@given(st.integers(0, 2**32 - 1), st.floats(-12.0, 8.0), st.integers(0, 120))
@settings(max_examples=60, deadline=None)
def test_likelihood_is_the_beta_binomial(seed, log_ratio, most) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(0, most + 1, 5)
    c = rng.binomial(n, rng.random(5))
    basis = np.column_stack([np.ones(5), rng.standard_normal(5)])
    theta = np.append(rng.normal(0.0, 1.5, 2), log_ratio)
    own = regression(basis, c, n)
    mean, total = expit(basis @ theta[:2]), np.exp(-log_ratio)
    expected = betabinom.logpmf(c, n, mean * total, (1.0 - mean) * total)
    ways = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    found = own.by_state(theta[None])[0][own.states.which]
    assert found == pytest.approx(expected - ways, abs=1e-7 * (1 + total) ** 0.5)
    slope = approx_fprime(theta, lambda x: float(own.log_posterior(x[None])[0]), 1e-6)
    assert own.gradient(theta) == pytest.approx(slope, abs=2e-3 + 1e-4 * abs(slope).max())


def test_without_covariates_it_is_the_beta_of_the_grid() -> None:
    own = regression(*simulated(np.random.default_rng(1), 40, 0, 4))
    found, states = own.posterior(), own.states
    exact = hyper_posterior(
        CountHistograms.of(states.successes, states.trials, states.count), HyperPrior()
    )
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=0.02)
    for column, values in ((0, exact.mean), (1, exact.icc)):
        own_values = expit(found.theta[:, column])
        mean, sd = (
            exact.weight @ values,
            np.sqrt(exact.weight @ values**2 - (exact.weight @ values) ** 2),
        )
        assert found.weight @ own_values == pytest.approx(mean, abs=0.05 * sd)
        spread = np.sqrt(found.weight @ own_values**2 - (found.weight @ own_values) ** 2)
        assert spread == pytest.approx(sd, rel=0.05)


@pytest.fixture(scope="module")
def cube():
    """Three parameters on a fine grid: log weights by scipy, and the questions."""
    basis, c, n = simulated(np.random.default_rng(5), 9, 1, 3)
    axes = np.linspace(-6, 7, 53), np.linspace(-5, 9, 57), np.linspace(-14, 9, 70)
    theta = np.array(list(product(*axes)))
    x = theta[:, :2] @ basis.T
    total = np.exp(-theta[:, 2:])
    logs = betaln(expit(x) * total + c, expit(-x) * total + n - c)
    logs = (logs - betaln(expit(x) * total, expit(-x) * total)).sum(axis=1)
    logs += log_expit(theta[:, 0]) + log_expit(-theta[:, 0]) - 0.5 * (theta[:, 1] / 2.5) ** 2
    logs += log_expit(theta[:, 2]) + log_expit(-theta[:, 2]) - np.log(2.5 * np.sqrt(2 * np.pi))
    steps = np.log([axis[1] - axis[0] for axis in axes]).sum()
    evidence = logsumexp(logs) + steps
    weight = np.exp(logs - logsumexp(logs))
    heavy = weight > 1e-9
    return basis, c, n, theta[heavy], weight[heavy] / weight[heavy].sum(), evidence


def _beta_moments(theta, basis, c, n):
    """Mean of p, of p^2 and of (1 - p)^2 of every question given each point."""
    x, total = theta[:, :2] @ basis.T, np.exp(-theta[:, 2:])
    a, b = expit(x) * total + c, expit(-x) * total + n - c
    return a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1)), b * (b + 1) / ((a + b) * (a + b + 1))


@pytest.mark.parametrize("sliced", [False, True])
def test_posterior_on_a_cube(cube, sliced, monkeypatch) -> None:
    """Parameters, evidence, and both targets, also where chains take the place of weights."""
    basis, c, n, theta, weight, evidence = cube
    if sliced:
        monkeypatch.setattr(points_of, "TRUSTED", -np.inf)
    own = regression(basis, c, n)
    points = own.posterior()
    assert points.method == ("elliptical slices" if sliced else "importance sampling")
    near = 4.0 / np.sqrt(points.effective_draws)
    if not sliced:
        assert points.log_evidence == pytest.approx(evidence, abs=0.03)
        assert points.k_hat < 0.7
    for i in range(3):
        mean = weight @ theta[:, i]
        sd = np.sqrt(weight @ (theta[:, i] - mean) ** 2)
        found = points.weight @ points.theta[:, i]
        assert found == pytest.approx(mean, abs=near * sd)
        spread = np.sqrt(points.weight @ (points.theta[:, i] - found) ** 2)
        assert spread == pytest.approx(sd, rel=1.5 * near)
    questions = Questions(own.states, own.basis, points, (pass_at(1), pass_at(2), pass_hat(2)))
    p, both, none = _beta_moments(theta, basis, c, n)
    each = p.mean(axis=1), 1.0 - none.mean(axis=1), both.mean(axis=1)
    new = _beta_moments(theta, basis, 0, 0)
    like = new[0].mean(axis=1), 1.0 - new[2].mean(axis=1), new[1].mean(axis=1)
    for i in range(3):
        for mean, exact in ((questions.these, each), (questions.like_these, like)):
            centre = weight @ exact[i]
            sd = np.sqrt(weight @ (exact[i] - centre) ** 2)
            assert points.weight @ mean[:, i] == pytest.approx(centre, abs=near * sd + 1e-4)
    # Variance of the mean of p over these questions given the parameters.
    exact = (weight @ (both - p**2)).sum() / len(c) ** 2
    assert points.weight @ questions.variance_of_these[:, 0] == pytest.approx(exact, rel=3 * near)
    mean, sd = questions.question_p()
    assert mean == pytest.approx(weight @ p, abs=near * 0.3)
    assert sd == pytest.approx(np.sqrt(weight @ both - (weight @ p) ** 2), rel=0.1)
    expected, metrics = questions.expected_by_question()
    assert expected == pytest.approx(weight @ new[0], abs=near * 0.3)
    assert metrics[:, 1] == pytest.approx(weight @ (1.0 - new[2]), abs=near * 0.3)


def test_draws_have_the_moments_of_the_points() -> None:
    own = regression(*simulated(np.random.default_rng(7), 12, 1, 4))
    points = own.posterior().thinned(20)
    credits = (pass_at(3), maj_at(4))
    one = replace(points, theta=np.repeat(points.theta[:1], 8000, axis=0))
    one = replace(one, weight=np.full(8000, 1 / 8000))
    at = Questions(own.states, own.basis, one, credits)
    latents = [lambda p: 1 - (1 - p) ** 3, lambda p: 4 * p**3 * (1 - p) + p**4]
    drawn = at.draw_means(latents, np.random.default_rng(2))
    mean, variance = at.these, at.variance_of_these
    error = np.sqrt(variance[0] / 8000)
    assert (abs(drawn.mean(axis=0) - mean[0]) < 4.5 * error + 2e-5).all()
    assert drawn.var(axis=0) == pytest.approx(variance[0], rel=0.08)


def test_of_many_questions_values_come_by_a_polynomial(monkeypatch) -> None:
    basis, c, n = simulated(np.random.default_rng(8), 1000, 2, 4)
    monkeypatch.setattr(means, "_CELLS", 325_000)
    own = regression(basis, c, n)
    points = own.posterior().thinned(1300)
    some = Questions(own.states, own.basis, points, (pass_at(2),))
    few = replace(points, theta=points.theta[::4], weight=np.full(325, 1 / 325))
    exact = Questions(own.states, own.basis, few, (pass_at(2),))
    for name in ("these", "like_these"):
        got, known = getattr(some, name)[::4], getattr(exact, name)
        assert (got != known).any()
        assert got == pytest.approx(known, abs=0.03 * known.std())
        assert (got - known).std() < 0.005 * known.std()


SEEDS = (
    [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3],
    [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7],
    [1] * 11 + [0] * 10,  # seed O. aegyptiaca 75, or 73
    [0] * 5 + [1] * 6 + [0] * 5 + [1] * 5,  # extract of cucumber, or bean
)


def test_published_estimates_of_the_seeds() -> None:
    """Crowder 1978, Applied Statistics 27(1), table 3: germination on 21 plates.

    Maximum likelihood and standard errors as aods3 gives them in the documentation of agridat
    (crowder.seeds): -0.44, -0.10, 0.52, 0.80, with 0.22, 0.27, 0.30, 0.38.
    """
    c, n, seed, root = map(np.array, SEEDS)
    columns = np.column_stack([np.ones(21), seed, root, seed * root]).astype(float)
    own = regression(columns, c, n, HyperPrior((1e-9, 1e-9), (1e-9, 1e-9), slope_sd=1e6))
    mode, spread = own.laplace
    assert mode[:4] == pytest.approx([-0.44, -0.10, 0.52, 0.80], abs=0.0051)
    errors = np.sqrt(np.diag(spread @ spread.T))[:4]
    assert errors == pytest.approx([0.22, 0.27, 0.30, 0.38], abs=0.0051)


def test_many_columns_and_few_questions_still_have_an_answer() -> None:
    own = regression(*simulated(np.random.default_rng(3), 14, 12, 2))
    points = own.posterior()
    assert points.effective_draws > 200
    mean = points.weight @ points.theta
    assert np.isfinite(mean).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_any_counts_have_a_posterior(seed) -> None:
    """Nothing solved, everything solved, single trials, untried questions, separation."""
    rng = np.random.default_rng(seed)
    questions = int(rng.integers(2, 30))
    basis, c, n = simulated(rng, questions, int(rng.integers(0, min(4, questions))), 5)
    kind = rng.integers(5)
    if kind == 0:
        c[:] = 0
    elif kind == 1:
        c = n.copy()
    elif kind == 2:
        c, n = np.minimum(c, 1), np.ones_like(n)
    elif kind == 3:
        c[::2] = n[::2] = 0
    elif basis.shape[1] > 1:
        c = np.where(basis[:, 1] > 0, n, 0)
    points = regression(basis, c, n).posterior()
    assert points.effective_draws > 200
    assert np.isfinite(points.theta).all()
    assert points.weight.sum() == pytest.approx(1.0)
