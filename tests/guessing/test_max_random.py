"""Best of t random guessers: golden numbers, exact references, and the questions asked of them."""

from decimal import Decimal
from fractions import Fraction
from math import inf, isnan

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bayesatk as bk
from bayesatk.data.chances import correct_counts
from tests.guessing.test_distributions import Exact, exact_law

TIMES = [1, 2.5, 10, 1e4, 1e9, 1e12]
RNG = np.random.default_rng(17)
LAWS = {
    "labels-100": (np.repeat([1 / 2, 1 / 4, 1 / 5], [34, 33, 33]), 1500),
    "random-1000": (RNG.random(1000), 3000),
    "repeated-1000": (np.full(1000, 0.2), 3500),
    "u-shaped-1000": (RNG.beta(0.1, 0.1, 1000), 12000),
}
each_law = pytest.mark.parametrize("name", LAWS)

# Section 8 of the estimands, and the exact column beside the published tool's answers.
BASELINES = [
    ((100, 0.5, 10), 0.5767798067, 10),
    ((100, 0.5, 100), 0.6247619673, 10),
    ((16, 0.5, 10), 0.6898391938, 10),
    ((164, 0.25, 200), 0.3458451525, 10),
    ((100, {2: 50, 5: 50}, 10), 0.4201718738, 10),
    ((1000, 0.25, 1e12), 0.351052, 6),
    ((1000, 0.25, 1e13), 0.355627, 6),
]
P_VALUES = [
    ((0.6, 100, 0.5, 10), None, 0.2506606659, 10),
    ((0.29, 100, 0.25, 1), None, 0.20754, 5),
    ((0.29, 100, 0.25, 10), None, 0.90233, 5),
    ((0.57, 100, 0.5, 1), None, 0.09667, 5),
    ((0.58, 100, 0.5, 10), None, 0.49806, 5),
    ((0.333, 30, 0.25, 1), 3, 0.19659, 5),
    ((0.9, 100, 0.5, 1), None, 1.53e-17, 19),
    ((0.75, 1000, 0.5, 1e9), None, 6.74e-50, 52),
    ((1.0, 1000, 0.5, 1e12), None, 9.3e-290, 291),
]


@pytest.mark.parametrize(("arguments", "expected", "digits"), BASELINES)
def test_golden_baselines(arguments, expected, digits) -> None:
    assert round(bk.guessing.max_random_baseline(*arguments), digits) == expected
    n, p, t = arguments
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p)
    assert round(law.max_random_baseline(t), digits) == expected


@pytest.mark.parametrize(("arguments", "decimals", "expected", "digits"), P_VALUES)
def test_golden_p_values(arguments, decimals, expected, digits) -> None:
    found = bk.guessing.max_random_p_value(*arguments, decimals=decimals)
    low, high = (found, found) if decimals is None else found
    assert low == high
    assert abs(low - expected) <= 0.51 * 10.0**-digits
    assert 0 <= low <= 1


def power(below: flint.arb, t: float) -> flint.arb:
    if below == 0:
        return flint.arb(0)
    return below ** (int(t) if t == int(t) else flint.arb(t))


def exact_tail(law: Exact, x: int, t: float, bits: int) -> flint.arb:
    """One minus the chance that all of t stay below x."""
    with flint.ctx.workprec(bits):
        return 1 - power(law.cdf[x - 1] if x else flint.arb(0), t)


def exact_moments(law: Exact, t: float) -> tuple[float, float]:
    with flint.ctx.workprec(256):
        beyond = [1 - power(+below, t) for below in law.cdf]
        mean = sum(beyond, flint.arb(0))
        square = sum(((2 * k + 1) * b for k, b in enumerate(beyond)), flint.arb(0))
        return float(mean / (len(beyond) - 1)), float(square - mean**2)


@each_law
@pytest.mark.parametrize("t", TIMES)
def test_p_values_keep_relative_accuracy(name, t) -> None:
    p, bits = LAWS[name]
    exact, law = (
        exact_law(p.tolist(), bits),
        bk.guessing.MaxOrderStatisticPoissonBinomial(p.size, p),
    )
    for x in np.linspace(0, p.size, 25).astype(int).tolist():
        expected, found = exact_tail(exact, x, t, bits), law.p_value(num_correct=x, t=t)
        assert isinstance(found, float)
        assert 0 <= found <= 1
        assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-300)
        beyond = law.at(t).logsf(x - 1)
        with flint.ctx.workprec(bits):
            log = -inf if expected == 0 else float(expected.log())
        assert beyond == pytest.approx(log, rel=1e-12, abs=1e-12)


@each_law
@pytest.mark.parametrize("t", [1, 2.5, 10, 200, 1e4, 1e9])
def test_baseline_and_variance_are_exact(name, t) -> None:
    p, bits = LAWS[name]
    mean, variance = exact_moments(exact_law(p.tolist(), bits), t)
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(p.size, p)
    assert abs(law.max_random_baseline(t) - mean) <= 1e-15
    assert law.expectation(t) == pytest.approx(mean * p.size, rel=1e-14)
    assert law.at(t).mean() == pytest.approx(mean * p.size, rel=1e-14)
    assert law.at(t).var() == pytest.approx(variance, rel=1e-10)


@settings(max_examples=60)
@given(
    p=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    t=st.floats(1, 1e12),
    data=st.data(),
)
def test_mass_is_a_step_of_the_distribution_function(p, t, data) -> None:
    n = len(p)
    law, k = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p), np.arange(-1, n + 2)
    F, pmf = law.F(k, t), law.pmf(k, t)
    np.testing.assert_allclose(np.diff(F), pmf[1:], rtol=0, atol=1e-14)
    assert np.all((F >= 0) & (F <= 1) & (pmf >= 0))
    assert np.all(np.diff(F) >= 0)
    assert pmf.sum() == pytest.approx(1, abs=1e-13)
    x = data.draw(st.integers(0, n))
    assert 0 <= law.p_value(num_correct=x, t=t) <= 1
    assert law.p_value(num_correct=x, t=t) == pytest.approx(1 - law.F(x - 1, t), abs=1e-14)
    np.testing.assert_array_equal(bk.guessing.max_random_F(k, n, p, t), F)
    np.testing.assert_array_equal(bk.guessing.max_random_pmf(k, n, p, t), pmf)


def test_counts_and_times_broadcast() -> None:
    k, t = np.arange(6), np.array([[1.0], [3.0], [1e6]])
    for function, binomial in (
        (bk.guessing.max_random_F, stats.binom.cdf(k, 5, 0.3) ** t),
        (
            bk.guessing.max_random_pmf,
            np.diff(stats.binom.cdf(np.arange(-1, 6), 5, 0.3) ** t, axis=1),
        ),
    ):
        np.testing.assert_allclose(function(k, 5, 0.3, t), binomial, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(function(k, 5, 0.3, t.T[:, :1]), binomial[:1], atol=1e-15)
        assert np.ndim(function(2, 5, 0.3, 2)) == 0


@settings(max_examples=15)
@given(
    p=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    trials=st.integers(1, 5),
    t=st.floats(1, 1e6),
)
def test_trials_repeat_every_question(p, trials, t) -> None:
    n = len(p)
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p, trials=trials)
    listed = bk.guessing.MaxOrderStatisticPoissonBinomial(n * trials, np.repeat(p, trials))
    assert law.marks == n * trials
    k = np.arange(n * trials + 1)
    np.testing.assert_allclose(law.F(k, t), listed.F(k, t), rtol=0, atol=1e-13)
    baseline = listed.max_random_baseline(t)
    assert law.max_random_baseline(t) == pytest.approx(baseline, rel=1e-12, abs=1e-300)
    assert bk.guessing.max_random_baseline(n, p, t, trials=trials) == law.max_random_baseline(t)
    for x in k.tolist():
        found = law.p_value(x / law.marks, t)
        expected = listed.p_value(num_correct=x, t=t)
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-300)


@settings(max_examples=60)
@given(n=st.integers(1, 60), p=st.floats(0, 1), t=st.sampled_from(TIMES), share=st.floats(0, 1))
def test_union_bound(n, p, t, share) -> None:
    law, x = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p), round(share * n)
    bound = law.p_value_bound(num_correct=x, t=t)
    single = law.p_value(num_correct=x)
    assert bound == pytest.approx(min(1.0, t * single), rel=1e-12, abs=1e-300)
    assert bound >= law.p_value(num_correct=x, t=t) * (1 - 1e-14)
    assert bound >= law.p_value(num_correct=x, t=t, correlation=0.5) * (1 - 1e-10)
    assert law.p_value_bound(x / n, t) == bound


@settings(max_examples=40)
@given(
    n=st.integers(1, 60),
    p=st.floats(0.05, 0.95),
    t=st.sampled_from([1, 2.5, 10, 1e4]),
    r=st.sampled_from([0, 0.05, 0.5, 0.95, 1]),
    share=st.floats(0, 1),
)
def test_effective_t_reproduces_the_correlated_p_value(n, p, t, r, share) -> None:
    law, x = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p), round(share * n)
    if x == 0:
        return
    effective = law.effective_t(num_correct=x, t=t, correlation=r)
    assert 1 <= effective <= t
    correlated = law.p_value(num_correct=x, t=t, correlation=r)
    again = law.p_value(num_correct=x, t=effective)
    assert again == pytest.approx(correlated, rel=1e-9, abs=1e-13)
    if r in (0, 1):
        assert effective == pytest.approx(t if r == 0 else 1, rel=1e-9)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_effective_t_of_certain_trials_is_silent(p) -> None:
    effective = bk.guessing.MaxOrderStatisticPoissonBinomial(20, p).effective_t(
        0.5, 10, correlation=0.5
    )
    assert isnan(effective) or 1 <= effective <= 10


def test_correlated_p_value_is_that_of_the_frozen_distribution() -> None:
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(60, 0.3)
    frozen = law.at(12, correlation=0.4)
    assert law.p_value(0.5, 12, correlation=0.4) == pytest.approx(frozen.sf(29), rel=1e-13)
    assert law.expectation(12, correlation=0.4) == pytest.approx(frozen.mean(), rel=1e-13)
    baseline = law.max_random_baseline(12, correlation=0.4)
    assert baseline == pytest.approx(frozen.mean() / 60, rel=1e-13)
    assert law.max_random_baseline(1) < baseline < law.max_random_baseline(12)


@pytest.mark.parametrize("p", [0.07, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("t", [1, 2.5, 100, 1e9])
@pytest.mark.parametrize(("alpha", "r"), [(0.05, 0.0), (0.6, 0.0), (1e-6, 0.0), (0.05, 0.3)])
def test_smallest_significant_by_search(p, t, alpha, r) -> None:
    for n in (1, 2, 5, 20, 47):
        law = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p)
        values = [law.p_value(num_correct=x, t=t, correlation=r) for x in range(n + 1)]
        expected = next((x / n for x, value in enumerate(values) if value <= alpha), np.nan)
        found = law.smallest_significant(t, alpha=alpha, correlation=r)
        assert found == pytest.approx(expected, rel=1e-15, nan_ok=True)


def test_nothing_is_guessed_right() -> None:
    """A single right answer has p-value 0."""
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(20, 0.0)
    assert law.p_value(0.05, 10) == 0
    assert law.smallest_significant(10) == 0.05
    assert law.max_random_baseline(10) == 0


@pytest.mark.parametrize("n", [3, 10, 30])
@pytest.mark.parametrize("p", [0.25, 0.5])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.001])
def test_largest_significant_t_by_search(n, p, alpha) -> None:
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(n, p)
    for x in range(n + 1):
        found = law.largest_significant_t(num_correct=x, alpha=alpha)
        assert isinstance(found, int)
        assert law.largest_significant_t(x / n, alpha=alpha) == found
        if found < 1e9:
            assert found == 0 or law.p_value(num_correct=x, t=found) <= alpha
            assert law.p_value(num_correct=x, t=found + 1) > alpha
        else:
            assert law.p_value(num_correct=x, t=found) == pytest.approx(alpha, rel=1e-9)


def test_counts_that_guessers_reach_almost_surely() -> None:
    """P(X >= x) is one to double precision: no t makes such a count significant."""
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(300, {2: 100, 4: 100, 5: 100})
    for x in range(0, 42, 7):
        assert law.p_value(num_correct=x) == 1
        assert law.largest_significant_t(num_correct=x) == 0
        assert 1 <= law.effective_t(num_correct=x, t=10, correlation=0.4) <= 10


def test_largest_significant_t_of_a_tiny_tail() -> None:
    """All of 1000 tosses right, 2^-1000: t is -log(.95) 2^1000."""
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(1000, 0.5)
    found = law.largest_significant_t(1.0)
    assert float(Fraction(found, 2**1000)) == pytest.approx(-np.log(0.95), rel=1e-12)


@settings(max_examples=300)
@given(n=st.integers(1, 2000), share=st.floats(0, 1))
def test_accuracy_of_a_count_gives_the_count(n, share) -> None:
    count = round(share * n)
    assert correct_counts(count / n, n) == (count, count)
    assert correct_counts(float(np.float64(1) / n * count), n) == (count, count)


@settings(max_examples=100)
@given(n=st.integers(1, 2000), share=st.floats(0, 1), off=st.floats(1e-4, 0.9999))
def test_no_whole_number_correct_is_an_error(n, share, off) -> None:
    accuracy = (int(share * (n - 1)) + off) / n
    with pytest.raises(ValueError, match=r"\bacc\b.*whole number"):
        correct_counts(accuracy, n)


@pytest.mark.parametrize("decimals", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 7, 20, 30, 100, 200, 999])
def test_rounded_accuracy_stands_for_every_count_that_rounds_to_it(n, decimals) -> None:
    counts, scale = np.arange(n + 1), 10**decimals
    for units in range(0, scale + 1, 1 if decimals < 3 else 37):
        printed = Decimal(units).scaleb(-decimals)
        # |c / n - units / scale| <= 1 / (2 scale), in integers.
        near = np.flatnonzero(abs(2 * counts * scale - 2 * units * n) <= n)
        if near.size:
            found = correct_counts(float(printed), n, decimals=decimals)
            assert found == (near[0], near[-1])
        else:
            with pytest.raises(ValueError, match=r"\bacc"):
                correct_counts(float(printed), n, decimals=decimals)


def test_rounded_accuracy_gives_a_range_of_p_values() -> None:
    found = bk.guessing.max_random_p_value(0.3, 100, 0.25, 10, decimals=1)
    assert isinstance(found, bk.guessing.PValueRange)
    assert found.low == bk.guessing.max_random_p_value(None, 100, 0.25, 10, num_correct=35)
    assert found.high == bk.guessing.max_random_p_value(None, 100, 0.25, 10, num_correct=25)


def test_both_or_neither_is_an_error() -> None:
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(20, 0.5)
    for ask in (law.p_value, law.p_value_bound, law.largest_significant_t):
        for given_ in ({}, {"acc": 0.5, "num_correct": 10}):
            with pytest.raises(ValueError, match="num_correct"):
                ask(**given_)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"acc": 1.2}, "acc"),
        ({"acc": -0.1}, "acc"),
        ({"acc": np.nan}, "acc"),
        ({"acc": "half"}, "acc"),
        ({"acc": 0.51}, "acc"),
        ({"num_correct": 21}, "num_correct"),
        ({"num_correct": -1}, "num_correct"),
        ({"num_correct": 1.5}, "num_correct"),
        ({"num_correct": np.nan}, "num_correct"),
        ({"num_correct": "ten"}, "num_correct"),
        ({"acc": 0.5, "t": 0.5}, "t"),
        ({"acc": 0.5, "t": np.nan}, "t"),
        ({"acc": 0.5, "t": "ten"}, "t"),
        ({"acc": 0.5, "t": 2, "correlation": 2}, "correlation"),
        ({"acc": 0.5, "t": 2, "correlation": -0.1}, "correlation"),
        ({"acc": 0.5, "t": 2, "correlation": np.nan}, "correlation"),
        ({"acc": 0.5, "decimals": 1.5}, "decimals"),
    ],
)
def test_bad_questions_are_refused_by_name(arguments, named) -> None:
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        bk.guessing.MaxOrderStatisticPoissonBinomial(20, 0.5).p_value(**arguments)


@pytest.mark.parametrize("alpha", [0, 1, -1, 2, np.nan])
def test_bad_levels_are_refused_by_name(alpha) -> None:
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(20, 0.5)
    with pytest.raises(ValueError, match=r"\balpha\b"):
        law.smallest_significant(5, alpha=alpha)
    with pytest.raises(ValueError, match=r"\balpha\b"):
        law.largest_significant_t(0.9, alpha=alpha)


@pytest.mark.parametrize(
    ("n", "p", "trials", "named"),
    [
        (0, 0.5, 1, "n"),
        (-1, 0.5, 1, "n"),
        (1.5, 0.5, 1, "n"),
        ("ten", 0.5, 1, "n"),
        (3, [0.5, 0.5], 1, "n"),
        (3, {2: 2}, 1, "n"),
        (3, [0.5, 0.5, 1.5], 1, "p"),
        (3, np.nan, 1, "p"),
        (3, "half", 1, "p"),
        (3, [], 1, "p"),
        (3, {0: 3}, 1, "labels"),
        (3, 0.5, 0, "trials"),
        (3, 0.5, 1.5, "trials"),
        (3, 0.5, "two", "trials"),
    ],
)
def test_bad_benchmarks_are_refused_by_name(n, p, trials, named) -> None:
    for ask in (bk.guessing.MaxOrderStatisticPoissonBinomial, bk.guessing.max_random_baseline):
        with pytest.raises(ValueError, match=rf"\b{named}\b"):
            ask(n, p, trials=trials)


@pytest.mark.parametrize("t", [0.5, 0, np.nan])
def test_bad_times_are_refused_by_name(t) -> None:
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(20, 0.5)
    for ask in (
        lambda: law.F(3, t),
        lambda: law.pmf([1, 2], [2, t]),
        lambda: law.expectation(t),
        lambda: law.max_random_baseline(t),
        lambda: law.at(t),
        lambda: law.p_value_bound(0.5, t),
        lambda: law.effective_t(0.5, t, correlation=0.5),
        lambda: law.smallest_significant(t),
    ):
        with pytest.raises(ValueError, match=r"\bt\b"):
            ask()
