"""Posterior moments against exact rationals, saturated states included."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesatk.core.numerics.quadrature import beta_rule
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.program.credits import credit_cumulants
from bayesatk.core.question.beta_binomial import beta_binomial_moments, beta_binomial_pmf
from bayesatk.metrics.credit import Credit, pass_at
from tests import witness
from tests.core.test_laws import BUILDERS


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(("trials", "k"), [(4, 3), (4, 16), (64, 8), (64, 64), (256, 128)])
def test_moments_against_rationals(name: str, trials: int, k: int) -> None:
    # Published variances lose every digit at the near-saturated counts in this list.
    counts = np.array(sorted({0, 1, 2, trials // 2, int(0.95 * trials), trials - 1, trials}))
    if k > trials:
        counts = counts[[0, -1]]
    mean_found, rest_found, variance_found = beta_binomial_moments(
        [BUILDERS[name](k)], counts + 1, trials - counts + 1
    )
    credit = witness.credit_by_definition(name, k)
    for i, c in enumerate(counts):
        mean, variance = witness.posterior_moments(credit, int(c) + 1, trials - int(c) + 1)
        assert witness.relative_error(mean_found[i, 0], mean) <= 1e-12
        assert witness.relative_error(variance_found[i, 0], variance) <= 1e-11
        assert witness.relative_error(rest_found[i, 0], 1 - mean) <= 1e-11


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["pass@", "pass^", "maj@"])
def test_moments_of_two_thousand_trials(name: str) -> None:
    trials, k = 2000, 1000
    counts = np.array([0, 3, 1100, 1997, 2000])
    mean_found, _, variance_found = beta_binomial_moments(
        [BUILDERS[name](k)], counts + 1, trials - counts + 1
    )
    credit = witness.credit_by_definition(name, k)
    for i, c in enumerate(counts.tolist()):
        mean, variance = witness.posterior_moments(credit, c + 1, trials - c + 1)
        if mean < 1e-290:
            continue
        assert witness.relative_error(mean_found[i, 0], mean) <= 1e-11
        if variance > 1e-290:
            assert witness.relative_error(variance_found[i, 0], variance) <= 1e-9


@given(
    a=st.integers(1, 30),
    b=st.integers(1, 30),
    k=st.integers(1, 20),
    name=st.sampled_from(sorted(BUILDERS)),
)
def test_beta_binomial_sums_against_rationals(a: int, b: int, k: int, name: str) -> None:
    mean, variance = witness.posterior_moments(witness.credit_by_definition(name, k), a, b)
    found = [part.item() for part in beta_binomial_moments([BUILDERS[name](k)], [a], [b])]
    assert abs(found[0] - float(mean)) <= 1e-14
    assert abs(found[1] - float(1 - mean)) <= 1e-14
    assert abs(found[2] - float(variance)) <= 1e-14


@pytest.mark.parametrize(("a", "b"), [(1e-8, 1e-8), (1e-5, 3.0), (1e12, 2e12), (1e15, 1e-3)])
def test_beta_binomial_at_extreme_parameters(a: float, b: float) -> None:
    pmf = beta_binomial_pmf(3, np.array([a]), np.array([b]))
    assert abs(pmf.sum() - 1.0) <= 1e-14
    np.testing.assert_allclose(pmf @ np.arange(4), 3 * a / (a + b), rtol=1e-12)


def test_tiny_prior_parameters_reach_the_tails() -> None:
    # E p = a/(a+b) whatever the prior: mass piles up at both ends.
    a, b = np.array([0.003, 0.003, 1.003]), np.array([0.01, 1.01, 0.01])
    mean, _, variance = beta_binomial_moments([pass_at(1)], a, b)
    total = a + b
    np.testing.assert_allclose(mean[:, 0], a / total, rtol=1e-12)
    np.testing.assert_allclose(variance[:, 0], a * b / total**2 / (total + 1), rtol=1e-11)


def test_rule_integrates_beta_functions() -> None:
    for a, b in [(0.01, 0.02), (1.0, 1.0), (3.0, 500.0), (800.0, 0.7)]:
        rule = beta_rule(a, b, a + b)
        total = np.exp(rule.log_weight + a * rule.log_p + b * rule.log_q).sum()
        assert abs(total / float(mpmath.beta(a, b)) - 1.0) <= 1e-12


def test_custom_credit_has_moments() -> None:
    credit = Credit.of([0.0, 0.2, 0.9, 0.4])
    mean, variance = witness.posterior_moments(
        [witness.Fraction(x).limit_denominator(10) for x in credit.values], 3, 2
    )
    mean_found, _, variance_found = beta_binomial_moments([credit], [3.0], [2.0])
    assert witness.relative_error(mean_found.item(), mean) <= 1e-13
    assert witness.relative_error(variance_found.item(), variance) <= 1e-12


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(("a", "b", "trials", "k"), [(1, 3, 5, 3), (40, 2, 4, 4), (2, 1, 1, 2)])
def test_few_trials_against_rationals(name: str, a: int, b: int, trials: int, k: int) -> None:
    # A Beta and an atom at 0: mean, variance and third cumulant given each count.
    share = Fraction(1, 5)
    beta = Nodes.betas(np.array([float(a)]), np.array([float(b)]), np.ones(1))
    nodes = Nodes.mixed([beta], np.array([[0.8]]), np.array([[0.2, 0.0]]))
    states = States.of(np.arange(trials + 1), np.full(trials + 1, trials))
    stated = credit_cumulants(nodes, states, [BUILDERS[name](k)])
    credit = witness.credit_by_definition(name, k)
    for count in range(trials + 1):
        order = [Fraction(right == count) for right in range(trials + 1)]
        of_beta = (1 - share) * witness.expectation(order, a, b)
        never = share / (share + of_beta) if count == 0 else Fraction(0)
        moments = [
            never * credit[0] ** power
            + (1 - never) * witness.power_mean(credit, power, a + count, b + trials - count)
            for power in (1, 2, 3)
        ]
        mean, second, third = moments
        exact = mean, second - mean**2, third - 3 * mean * second + 2 * mean**3
        for values, value in zip(stated, exact, strict=True):
            assert abs(values[0, count, 0] - float(value)) < 1e-12
