"""E-values: scipy's noncentral hypergeometric, rational integrals, expectations by enumeration."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy.integrate import quad
from scipy.stats import nchypergeom_fisher, norm

from bayesatk.core.runs.e_values import Capital, Splits, log_integral


def counts(largest: int, questions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, largest + 1, (2, questions))
    return rng.binomial(trials, rng.beta(1, 1, questions)), trials


def log_ratio_by_scipy(successes, trials, theta: float) -> float:
    own, other, total = trials[0], trials[1], successes.sum(axis=0)
    law = nchypergeom_fisher
    args = (own + other, own, total)
    return float(
        np.sum(
            law.logpmf(successes[0], *args, np.exp(theta)) - law.logpmf(successes[0], *args, 1.0)
        )
    )


@pytest.mark.parametrize(("largest", "questions", "sd"), [(1, 9, 1.0), (5, 20, 0.4), (30, 6, 2.0)])
def test_splits_against_scipy(largest: int, questions: int, sd: float) -> None:
    successes, trials = counts(largest, questions, seed=questions)
    splits = Splits.of(successes, trials)
    for theta in (-1.7, 0.3, 2.5):
        expected = log_ratio_by_scipy(successes, trials, theta)
        assert splits.log_ratio(np.array([theta]))[0] == pytest.approx(expected, abs=1e-8)
    for sign, found in zip((1.0, -1.0), splits.log_e(sd), strict=True):
        whole, _ = quad(
            lambda theta, sign=sign: (
                2.0
                * norm.pdf(theta, scale=sd)
                * np.exp(log_ratio_by_scipy(successes, trials, sign * theta))
            ),
            0.0,
            10.0 * sd,
            epsrel=1e-8,
            limit=200,
        )
        assert found == pytest.approx(np.log(whole), abs=1e-6)


def test_ends_of_the_interval_are_ratios_at_which_the_e_value_is_one_over_alpha() -> None:
    successes, trials = counts(5, 30, seed=3)
    splits = Splits.of(successes, trials)
    mixture = np.logaddexp(*splits.log_e(1.0)) - np.log(2.0)
    lower, upper = splits.interval(1.0, 0.05)
    assert lower < splits.mode() < upper
    for end in (lower, upper):
        at_end = log_ratio_by_scipy(successes, trials, end)
        assert mixture - at_end == pytest.approx(np.log(20.0), abs=1e-6)
    step = 1e-4
    around = [log_ratio_by_scipy(successes, trials, splits.mode() + d) for d in (-step, step)]
    assert around[0] == pytest.approx(around[1], abs=1e-6)  # flat at the maximum


def test_the_expectation_is_one_if_equal_and_at_most_one_on_the_other_side() -> None:
    """All outcomes of three questions with ragged trials and difficulties of their own."""
    trials = np.array([[2, 1, 3], [1, 2, 2]])
    p = np.array([[0.2, 0.9, 0.5], [0.2, 0.9, 0.5]])
    worse = np.array([[0.1, 0.7, 0.5], [0.2, 0.9, 0.6]])
    totals = np.zeros((2, 2))
    for flat in product(*(range(n + 1) for n in trials.ravel())):
        c = np.array(flat).reshape(2, 3)
        ways = np.prod([comb(int(n), int(k)) for n, k in zip(trials.flat, c.flat, strict=True)])
        found = np.exp(Splits.of(c, trials).log_e(1.0))
        for row, law in enumerate((p, worse)):
            totals[row] += ways * np.prod(law**c * (1 - law) ** (trials - c)) * found
    assert totals[0] == pytest.approx([1.0, 1.0], abs=1e-10)
    assert totals[1, 0] < 0.9
    assert totals[1, 1] > 1.1


def test_many_right_answers_in_a_row_are_computed_without_overflow() -> None:
    """The first system right and the second wrong on every question: up to 2^1000."""
    splits = Splits.of(np.array([[1] * 1000, [0] * 1000]), np.ones((2, 1000), int))
    above, below = splits.log_e(1.0)
    whole, _ = quad(
        lambda x: 2 * norm.pdf(x) * np.exp(1000 * np.log(2 / (1 + np.exp(-x))) - 670),
        0,
        15,
        points=[5.0],
    )
    assert above == pytest.approx(670 + np.log(whole), abs=1e-8)
    assert below < -5.0
    lower, upper = splits.interval(1.0, 0.05)
    assert lower > 3.0
    assert upper == np.inf


@given(
    st.lists(st.tuples(*[st.integers(0, 6)] * 4), min_size=1, max_size=8),
    st.sampled_from([0.05, 1.0, 20.0]),
)
def test_exchanging_the_systems_exchanges_the_evidence(cells, sd: float) -> None:
    failures_too = np.array(cells).T
    successes, trials = failures_too[:2], failures_too[:2] + failures_too[2:]
    one, two = Splits.of(successes, trials), Splits.of(successes[::-1], trials[::-1])
    np.testing.assert_allclose(one.log_e(sd), two.log_e(sd)[::-1], atol=1e-9)
    right = Splits.of(trials - successes, trials)  # wrong for right
    np.testing.assert_allclose(one.log_e(sd), right.log_e(sd)[::-1], atol=1e-9)
    low, high = one.interval(sd, 0.1)
    np.testing.assert_allclose(two.interval(sd, 0.1), (-high, -low), atol=1e-6)
    assert low < high
    assert not one.mode() < low
    assert not one.mode() > high


def capital_exactly(scores: list[Fraction], mean: Fraction) -> float:
    """Integral over the share of the product, a polynomial, in fractions."""
    terms = [Fraction(1)]
    for x in scores:
        gain = x / mean - 1
        terms = [a + b for a, b in zip([*terms, 0], [0, *(gain * t for t in terms)], strict=True)]
    return float(sum((t / (i + 1) for i, t in enumerate(terms)), Fraction(0)))


@given(
    st.lists(st.fractions(0, 1, max_denominator=5), min_size=1, max_size=30),
    st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50),
)
def test_capital_is_the_integral_of_a_polynomial(scores, mean) -> None:
    above, below = Capital.of(np.array([float(x) for x in scores])).log_e(float(mean))
    assert above == pytest.approx(np.log(capital_exactly(scores, mean)), abs=1e-8)
    turned = capital_exactly([1 - x for x in scores], 1 - mean)
    assert below == pytest.approx(np.log(turned), abs=1e-8)


def test_capital_has_expectation_one_at_the_mean_and_less_above_it() -> None:
    values, probability = np.array([0.0, 0.25, 1.0]), np.array([0.3, 0.4, 0.3])
    totals = np.zeros((2, 2))
    for drawn in product(range(3), repeat=4):
        weight = probability[list(drawn)].prod()
        capital = Capital.of(values[list(drawn)])
        totals += weight * np.exp([capital.log_e(0.4), capital.log_e(0.5)])
    assert totals[0] == pytest.approx([1.0, 1.0], abs=1e-10)
    assert totals[1, 0] < 1.0 < totals[1, 1]


def test_ends_of_the_interval_of_a_mean() -> None:
    scores = np.random.default_rng(2).integers(0, 5, 60) / 4
    capital = Capital.of(scores)
    lower, upper = capital.interval(0.05)
    assert lower < scores.mean() < upper
    assert capital.log_e(lower)[0] == pytest.approx(np.log(40.0), abs=1e-6)
    assert capital.log_e(upper)[1] == pytest.approx(np.log(40.0), abs=1e-6)
    for all_one in (Capital.of(np.ones(200)), Capital.of(np.zeros(200)).mirrored()):
        assert all_one.interval(0.05)[0] > 0.9
        assert all_one.interval(0.05)[1] == 1.0
    assert Capital.of(np.zeros(0)).interval(0.05) == (0.0, 1.0)


def test_an_integral_with_its_peak_at_an_end_and_far_from_it() -> None:
    assert log_integral(lambda x: -1e6 * x, 0.0, 5.0) == pytest.approx(-np.log(1e6), abs=1e-9)
    line = Polynomial([0.0, 3.0])
    assert log_integral(line, 0.0, 1.0) == pytest.approx(np.log((np.e**3 - 1) / 3), abs=1e-12)
    narrow = log_integral(lambda x: -0.5 * ((x - 40.0) / 1e-3) ** 2, 0.0, 100.0)
    assert narrow == pytest.approx(np.log(1e-3 * np.sqrt(2 * np.pi)), abs=1e-9)
