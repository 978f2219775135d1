"""Costs: rules, likelihoods and draws against integrals and simulations written for the tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from bayesatk.core.costs.model import CostModel, draw_log_means, draw_questions, log_question
from bayesatk.core.costs.prior import CostPrior, Costs, named
from bayesatk.core.costs.quantities import cost_quantities
from bayesatk.core.pooling.legendre import beta_moments, question_rule
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array

SIZES = st.floats(0.05, 50.0)
LEVEL, SLOPE, OUTCOME, SPREAD = 0.1, 0.8, 0.3, 0.5
THETA = np.array([[0.0, LEVEL, SLOPE, OUTCOME, np.log(SPREAD), np.log(3.0), np.log(5.0)]])
SHAPES = 1.0 / (1.0 / 3.0 + 1e-4), 1.0 / (1.0 / 5.0 + 1e-4)
# Of two questions: costs of wrong trials, and of right ones.
TRIALS = [[[0.5, 0.9, 1.4], [0.7]], [[2.0], [1.1, 0.3, 0.8]]]


def _model() -> CostModel:
    number, total = (np.array([[float(f(own)) for own in q] for q in TRIALS]) for f in (len, sum))
    logs = np.array([sum(np.log(q[o]).sum() for q in TRIALS) for o in range(2)])
    nodes = Nodes.betas(np.array([1.2]), np.array([0.8]), np.ones(1))
    return CostModel(States.of([1, 3], [4, 4]), nodes, Costs(number, total, logs), CostPrior(), 12)


def _expected(question: int, function: Callable[[Array, Array], Any]) -> float:
    """Integral of a function times the density of p, the log mean cost and all costs."""
    x, weight = np.polynomial.legendre.leggauss(120)
    p, v = np.meshgrid(0.5 + 0.5 * x, np.linspace(-4.0, 4.0, 801), indexing="ij")
    wrong, right = TRIALS[question]
    found = stats.norm.logpdf(v, LEVEL + SLOPE * (0.5 - p), SPREAD)
    found += stats.beta.logpdf(p, 1.2 + len(right), 0.8 + len(wrong))
    for costs, shape, mean in ((wrong, SHAPES[0], v), (right, SHAPES[1], v + OUTCOME)):
        for cost in costs:
            found += stats.gamma.logpdf(cost, shape, scale=np.exp(mean) / shape)
    values = 0.5 * weight[:, None] * np.exp(found) * function(p, v)
    return float(values.sum() * 0.01)


@given(SIZES, SIZES)
def test_legendre_moments_are_integrals(a: float, b: float) -> None:
    found = beta_moments(np.array([a]), np.array([b]), 6)[:, 0]
    t = np.linspace(-7.0, 7.0, 4001)
    x = 3.0 * np.sinh(t)  # logit p: the density of a Beta falls exponentially in it
    logs = -a * np.logaddexp(0.0, -x) - b * np.logaddexp(0.0, x) + np.log(np.cosh(t))
    own = np.exp(logs - logs.max())
    for m in (1, 2, 5):
        value = np.polynomial.legendre.Legendre.basis(m)(-np.tanh(0.5 * x))  # at 1 - 2 p
        assert_allclose(found[m], own @ value / own.sum(), atol=1e-10)


def test_a_rule_integrates_what_is_smooth_over_betas_and_atoms() -> None:
    nodes = Nodes.mixed(
        [Nodes.betas(np.array([0.4]), np.array([2.0]), np.ones(1))],
        np.array([[0.7]]), np.array([[0.2, 0.1]]),
    )  # fmt: skip
    p, weight = question_rule(nodes, np.array([0, 2]), np.array([3, 0]), 16)
    found = weight[0] @ np.exp(-1.5 * p)
    for (c, n), value in zip(((0, 3), (2, 2)), found, strict=True):
        beta = integrate.quad(
            lambda x, c=c, n=n: (
                np.exp(-1.5 * x) * stats.beta.pdf(x, 0.4, 2.0) * x**c * (1 - x) ** (n - c)
            ),
            0,
            1,
        )[0]
        plain = integrate.quad(lambda x, c=c, n=n: stats.beta.pdf(x, 0.4, 2.0)
                               * x**c * (1 - x) ** (n - c), 0, 1)[0]  # fmt: skip
        atom, at = (0.2, 1.0) if c == 0 else (0.1, np.exp(-1.5))
        assert_allclose(value, (0.7 * beta + atom * at) / (0.7 * plain + atom), rtol=1e-6)


@given(st.floats(0.3, 400.0), st.floats(-2.0, 2.0), st.floats(0.05, 1.5))
def test_the_likelihood_of_a_question_is_an_integral(k: float, gap: float, sd: float) -> None:
    s = k * np.exp(gap)
    found = log_question(*(np.array([one]) for one in (0.0, sd**2, k, s)))[0]
    v = np.linspace(-8.0, 8.0, 8001)
    logs = -k * v - s * np.exp(-v) + stats.norm.logpdf(v, 0.0, sd)
    top = logs.max()
    error = abs(top + np.log(np.trapezoid(np.exp(logs - top), v)) - found)
    assert error < (2e-3 if k < 3.0 else 2e-4 if k < 10.0 else 2e-5)


def test_the_likelihood_of_all_costs_is_a_double_integral() -> None:
    exact = sum(np.log(_expected(q, lambda p, v: 1.0)) for q in range(2))
    assert abs(_model().log_likelihood(THETA)[0] - exact) < 1e-5


def test_draws_of_questions_have_the_moments_of_the_posterior() -> None:
    size = 20_000
    theta = np.repeat(THETA, size, axis=0)
    drawn = list(draw_questions(_model(), theta, 2.0, np.random.default_rng(1)))
    p, wrong, right = (np.concatenate(blocks) for blocks in zip(*drawn, strict=True))
    assert_allclose(right, wrong * np.exp(OUTCOME))
    for question in range(2):
        total = _expected(question, lambda p, v: 1.0)
        for own, function in (
            (p, lambda p, v: p), (wrong / 2.0, lambda p, v: np.exp(v)),
            (p * wrong / 2.0, lambda p, v: p * np.exp(v)),
        ):  # fmt: skip
            values = own[:, question]
            error = values.std() / np.sqrt(size)
            assert abs(values.mean() - _expected(question, function) / total) < 4.0 * error


@pytest.mark.parametrize(("k", "s"), [(0.0, 0.0), (0.4, 0.3), (12.0, 30.0), (300.0, 100.0)])
def test_draws_of_log_means_have_their_distribution(k: float, s: float) -> None:
    one = np.ones(20_000)
    drawn = draw_log_means(0.2 * one, 0.5 * one, k * one, s * one, np.random.default_rng(2))
    v = np.linspace(-5.0, 5.0, 20_001)
    logs = -k * v - s * np.exp(-v) + stats.norm.logpdf(v, 0.2, np.sqrt(0.5))
    upto = np.cumsum(np.exp(logs - logs.max()))
    cdf = lambda x: np.interp(x, v, upto / upto[-1])  # noqa: E731
    assert stats.kstest(drawn, cdf).pvalue > 1e-3


@settings(max_examples=30)
@given(st.data())
def test_laws_of_the_quantities(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 6))
    p, cost, ratio = (
        np.array([data.draw(st.lists(each, min_size=size, max_size=size))])
        for each in (st.floats(0.0, 1.0), st.floats(0.1, 10.0), st.floats(0.3, 3.0))
    )
    budget = sorted(data.draw(st.lists(st.floats(0.05, 40.0), min_size=2, max_size=2)))
    found = cost_quantities(p, cost, cost * ratio, None, [1, 2, 50], budget)
    mean = found["mean_cost"][0]
    assert_allclose(found["cost_to_success"][0, 0], mean)
    assert (np.diff(found["cost_to_success"][0]) >= 0.0).all()
    assert (np.diff(found["pass_at_k"][0]) >= -1e-12).all()
    low, high = found["coverage_at_budget"][0]
    assert low <= high + 1e-9
    # Who stops at the first success solves at least as much with the same money.
    assert (found["coverage_at_budget"] >= found["pass_at_budget"] - 1e-9).all()
    assert_allclose(found["tries_at_budget"][0], np.array(budget) / mean)


def test_a_budget_buys_what_trying_one_by_one_shows() -> None:
    p, cost = np.array([[0.2, 0.7, 0.02]]), np.array([[1.0, 3.0, 2.0]])
    for budget in (0.5, 2.0, 7.3, 30.0):
        found = cost_quantities(p, cost, cost, None, [], [budget])["coverage_at_budget"][0, 0]
        spent, solved, left = 0.0, 0.0, np.ones(3)
        while True:
            more = (left * cost[0]).mean()
            if spent + more > budget:
                share = (budget - spent) / more
                break
            spent, solved, left = spent + more, 1.0 - (left * (1 - p[0])).mean(), left * (1 - p[0])
        after = 1.0 - (left * (1 - p[0])).mean()
        assert_allclose(found, solved + share * (after - solved), rtol=1e-9)


def test_the_cost_of_trying_until_success_is_that_of_simulated_tries() -> None:
    rng, size = np.random.default_rng(3), 200_000
    p, wrong, right, k = 0.3, 1.5, 4.0, 5
    right_ones = rng.random((size, k)) < p
    first = np.where(right_ones.any(axis=1), right_ones.argmax(axis=1), k)
    tries = np.minimum(first + 1, k)
    total = wrong * (tries - (first < k)) + right * (first < k)
    found = cost_quantities(*(np.array([[x]]) for x in (p, wrong, right)), None, [k], [])
    error = total.std() / np.sqrt(size)
    assert abs(found["cost_to_success"][0, 0] - total.mean()) < 4.0 * error
    assert_allclose(found["pass_at_k"][0, 0], 1.0 - 0.7**5)


def test_the_prior_density_integrates_to_one() -> None:
    prior, u = CostPrior(), np.random.default_rng(4).random((20_000, 6))
    theta = prior.from_uniform(u)
    wide = stats.multivariate_normal(theta.mean(axis=0), 2.0 * np.cov(theta.T))
    points = wide.rvs(200_000, random_state=5)
    ratio = np.exp(prior.log_density(points) - wide.logpdf(points))
    assert abs(ratio.mean() - 1.0) < 5.0 * ratio.std() / np.sqrt(len(points))
    assert_allclose(named(theta)["cost_spread"].mean(), 0.6 * np.sqrt(2.0 / np.pi), rtol=0.02)
    with pytest.raises(ValueError, match=r"spread below 0\.7"):
        CostPrior(spread=0.8)
    with pytest.raises(ValueError, match="shape of median and sd"):
        CostPrior(shape=(1.0,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level must be finite and > 0"):
        CostPrior(level=float("nan"))
