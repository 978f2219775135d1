"""Best of t random guessers: golden numbers, exact references, and the questions asked of them."""

from decimal import Decimal
from fractions import Fraction
from math import inf

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bayesatk.data.chances import correct_counts
from bayesatk.guessing import (
    MaxOrderStatisticPoissonBinomial,
    PValueRange,
    max_random_baseline,
    max_random_F,
    max_random_p_value,
    max_random_pmf,
)
from tests.guessing.test_distributions import exact_law

TIMES = [1, 2.5, 10, 1e4, 1e9, 1e12]
RNG = np.random.default_rng(17)
LAWS = {
    "labels-100": (np.repeat([1 / 2, 1 / 4, 1 / 5], [34, 33, 33]), 1500),
    "random-1000": (RNG.random(1000), 3000),
    "repeated-1000": (np.full(1000, 0.2), 3500),
    "u-shaped-1000": (RNG.beta(0.1, 0.1, 1000), 12000),
}

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
    assert round(max_random_baseline(*arguments), digits) == expected


@pytest.mark.parametrize(("arguments", "decimals", "expected", "digits"), P_VALUES)
def test_golden_p_values(arguments, decimals, expected, digits) -> None:
    p_value = max_random_p_value(*arguments, decimals=decimals)
    low, high = (p_value, p_value) if decimals is None else p_value
    assert low == high
    assert abs(low - expected) <= 0.51 * 10.0**-digits


def power(below: flint.arb, t: float) -> flint.arb:
    if below == 0:
        return flint.arb(0)
    return below ** (int(t) if t == int(t) else flint.arb(t))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("t", TIMES)
def test_p_values_baseline_and_variance_are_exact(name, t) -> None:
    p, bits = LAWS[name]
    exact, law = exact_law(p.tolist(), bits), MaxOrderStatisticPoissonBinomial(p.size, p)
    with flint.ctx.workprec(bits):
        beyond = [flint.arb(1), *(1 - power(below, t) for below in exact.cdf)]  # P(max >= x)
        mean = sum(beyond[1:], flint.arb(0))
        square = sum(((2 * k + 1) * tail for k, tail in enumerate(beyond[1:])), flint.arb(0))
        variance = float(square - mean**2)
        logs = [-inf if tail == 0 else float(tail.log()) for tail in beyond]
    for x in np.linspace(0, p.size, 25).astype(int).tolist():
        p_value = law.p_value(num_correct=x, t=t)
        assert isinstance(p_value, float)
        assert p_value == pytest.approx(float(beyond[x]), rel=1e-12, abs=1e-300)
        assert law.at(t).logsf(x - 1) == pytest.approx(logs[x], rel=1e-12, abs=1e-12)
    assert abs(law.max_random_baseline(t) - float(mean) / p.size) <= 1e-15
    assert law.at(t).var() == pytest.approx(variance, rel=1e-10)


def test_counts_and_times_broadcast() -> None:
    k, t = np.arange(6), np.array([[1.0], [3.0], [1e6]])
    cdf = stats.binom.cdf(np.arange(-1, 6), 5, 0.3) ** t
    for function, expected in ((max_random_F, cdf[:, 1:]), (max_random_pmf, np.diff(cdf, axis=1))):
        np.testing.assert_allclose(function(k, 5, 0.3, t), expected, rtol=1e-12, atol=1e-15)
        assert np.ndim(function(2, 5, 0.3, 2)) == 0


@settings(max_examples=15)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8), trials=st.integers(1, 5))
def test_trials_repeat_every_question(p, trials) -> None:
    law = MaxOrderStatisticPoissonBinomial(len(p), p, trials=trials)
    listed = MaxOrderStatisticPoissonBinomial(len(p) * trials, np.repeat(p, trials))
    assert law.marks == listed.n
    for x in range(law.marks + 1):
        expected = listed.p_value(num_correct=x, t=9)
        assert law.p_value(x / law.marks, 9) == pytest.approx(expected, rel=1e-11, abs=1e-300)
    baseline = max_random_baseline(len(p), p, 9, trials=trials)
    assert baseline == pytest.approx(listed.max_random_baseline(9), rel=1e-12, abs=1e-300)


@settings(max_examples=60)
@given(
    n=st.integers(1, 60), p=st.sampled_from([0.0, 0.07, 0.5, 0.93, 1.0]),
    t=st.sampled_from([1, 2.5, 10, 1e4]), r=st.sampled_from([0, 0.05, 0.5, 0.95, 1]),
    share=st.floats(0, 1),
)  # fmt: skip
def test_effective_t_and_the_union_bound_hold_the_correlated_p_value(n, p, t, r, share) -> None:
    law, x = MaxOrderStatisticPoissonBinomial(n, p), round(share * n)
    correlated = law.p_value(num_correct=x, t=t, correlation=r)
    bound = law.p_value_bound(x / n, t)
    assert bound == pytest.approx(min(1.0, t * law.p_value(num_correct=x)), rel=1e-12, abs=1e-300)
    assert bound >= correlated * (1 - 1e-10)
    effective = law.effective_t(num_correct=x, t=t, correlation=r)
    assert 1 <= effective <= t
    again = law.p_value(num_correct=x, t=effective)
    assert again == pytest.approx(correlated, rel=1e-9, abs=1e-13)
    if r in (0, 1) and 0 < p < 1 and x > 0:
        assert effective == pytest.approx(t if r == 0 else 1, rel=1e-9)


def test_correlated_baselines_are_those_of_the_frozen_distribution() -> None:
    law = MaxOrderStatisticPoissonBinomial(60, 0.3)
    baseline = law.max_random_baseline(12, correlation=0.4)
    assert baseline == pytest.approx(law.at(12, correlation=0.4).mean() / 60, rel=1e-13)
    assert law.max_random_baseline(1) < baseline < law.max_random_baseline(12)


@pytest.mark.parametrize("p", [0.0, 0.07, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("t", [1, 2.5, 100, 1e9])
@pytest.mark.parametrize(("alpha", "r"), [(0.05, 0.0), (0.6, 0.0), (1e-6, 0.0), (0.05, 0.3)])
def test_smallest_significant_by_search(p, t, alpha, r) -> None:
    for n in (1, 2, 5, 20, 47):
        law = MaxOrderStatisticPoissonBinomial(n, p)
        values = [law.p_value(num_correct=x, t=t, correlation=r) for x in range(n + 1)]
        expected = next((x / n for x, value in enumerate(values) if value <= alpha), np.nan)
        accuracy = law.smallest_significant(t, alpha=alpha, correlation=r)
        assert accuracy == pytest.approx(expected, rel=1e-15, nan_ok=True)


@pytest.mark.parametrize("n", [3, 10, 30])
@pytest.mark.parametrize("p", [0.25, 0.5])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.001])
def test_largest_significant_t_by_search(n, p, alpha) -> None:
    law = MaxOrderStatisticPoissonBinomial(n, p)
    for x in range(n + 1):
        largest = law.largest_significant_t(num_correct=x, alpha=alpha)
        assert isinstance(largest, int)
        assert law.largest_significant_t(x / n, alpha=alpha) == largest
        if largest < 1e9:
            assert largest == 0 or law.p_value(num_correct=x, t=largest) <= alpha
            assert law.p_value(num_correct=x, t=largest + 1) > alpha
        else:
            assert law.p_value(num_correct=x, t=largest) == pytest.approx(alpha, rel=1e-9)


def test_counts_that_guessers_reach_almost_surely() -> None:
    """P(X >= x) is one to double precision: no t makes such a count significant."""
    law = MaxOrderStatisticPoissonBinomial(300, {2: 100, 4: 100, 5: 100})
    for x in range(0, 42, 7):
        assert law.p_value(num_correct=x) == 1
        assert law.largest_significant_t(num_correct=x) == 0
        assert 1 <= law.effective_t(num_correct=x, t=10, correlation=0.4) <= 10


def test_largest_significant_t_of_a_tiny_tail() -> None:
    """All of 1000 tosses right, 2^-1000: t is -log(.95) 2^1000."""
    law = MaxOrderStatisticPoissonBinomial(1000, 0.5)
    largest = law.largest_significant_t(1.0)
    assert float(Fraction(largest, 2**1000)) == pytest.approx(-np.log(0.95), rel=1e-12)


@settings(max_examples=200)
@given(n=st.integers(1, 2000), share=st.floats(0, 1), off=st.floats(1e-4, 0.9999))
def test_an_accuracy_is_that_of_one_count_or_of_none(n, share, off) -> None:
    count = round(share * n)
    assert correct_counts(count / n, n) == (count, count)
    with pytest.raises(ValueError, match=r"\bacc\b.*whole number"):
        correct_counts((int(share * (n - 1)) + off) / n, n)


@pytest.mark.parametrize("decimals", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 7, 20, 30, 100, 200, 999])
def test_rounded_accuracy_stands_for_every_count_that_rounds_to_it(n, decimals) -> None:
    counts, scale = np.arange(n + 1), 10**decimals
    for units in range(0, scale + 1, 1 if decimals < 3 else 37):
        printed = Decimal(units).scaleb(-decimals)
        # |c / n - units / scale| <= 1 / (2 scale), in integers.
        near = np.flatnonzero(abs(2 * counts * scale - 2 * units * n) <= n)
        if near.size:
            ends = correct_counts(float(printed), n, decimals=decimals)
            assert ends == (near[0], near[-1])
        else:
            with pytest.raises(ValueError, match=r"\bacc"):
                correct_counts(float(printed), n, decimals=decimals)


def test_rounded_accuracy_gives_a_range_of_p_values() -> None:
    p_values = max_random_p_value(0.3, 100, 0.25, 10, decimals=1)
    assert isinstance(p_values, PValueRange)
    assert p_values.low == max_random_p_value(None, 100, 0.25, 10, num_correct=35)
    assert p_values.high == max_random_p_value(None, 100, 0.25, 10, num_correct=25)


LAW = MaxOrderStatisticPoissonBinomial(20, 0.5)


@pytest.mark.parametrize(
    ("ask", "options", "named"),
    [
        *((ask, options, "num_correct")
          for ask in (LAW.p_value, LAW.p_value_bound, LAW.largest_significant_t)
          for options in ({}, {"acc": 0.5, "num_correct": 10})),
        *((LAW.p_value, {"acc": acc}, "acc") for acc in (1.2, -0.1, np.nan, "half", 0.51)),
        *((LAW.p_value, {"num_correct": count}, "num_correct")
          for count in (21, -1, 1.5, np.nan, "ten")),
        (LAW.p_value, {"acc": 0.5, "t": 2, "correlation": 2}, "correlation"),
        (LAW.p_value, {"acc": 0.5, "decimals": 1.5}, "decimals"),
        *((LAW.smallest_significant, {"t": 5, "alpha": level}, "alpha") for level in (0, np.nan)),
        (LAW.largest_significant_t, {"acc": 0.9, "alpha": 1}, "alpha"),
        *((ask, {"t": 0.5} | more, "t") for ask, more in (
            (LAW.F, {"k": 3}), (LAW.pmf, {"k": [1, 2]}), (LAW.max_random_baseline, {}),
            (LAW.p_value_bound, {"acc": 0.5}), (LAW.effective_t, {"acc": 0.5, "correlation": 0.5}),
            (LAW.smallest_significant, {}),
        )),
        *((MaxOrderStatisticPoissonBinomial, {"p": 0.5, "n": n}, "n") for n in (0, 1.5, "ten")),
        *((MaxOrderStatisticPoissonBinomial, {"p": p, "n": 3}, "n") for p in ([0.5] * 2, {2: 2})),
        *((MaxOrderStatisticPoissonBinomial, {"p": 0.5, "n": 3, "trials": trials}, "trials")
          for trials in (0, 1.5, "two")),
    ],
)  # fmt: skip
def test_impossible_questions_are_refused_by_name(ask, options, named) -> None:
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        ask(**options)
