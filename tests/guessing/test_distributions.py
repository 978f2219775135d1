"""Poisson-binomial counts and the largest of several, against exact and independent references."""

from fractions import Fraction
from typing import NamedTuple

import flint
import mpmath
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import bayesatk as bk

SMALLEST = 1e-300
PROBABILITIES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)
TINY = [0.5, 0.25, 0.25, 0.0625, 0.0625, 1e-09, 1e-09, 2.1e-16, 5.6e-242, 5.6e-242]
SIXTEENTHS = st.lists(st.integers(0, 16).map(lambda m: m / 16), min_size=1, max_size=40)


class Exact(NamedTuple):
    """Balls around P(X = k), P(X <= k) and P(X > k) for k = 0..n."""

    pmf: list[flint.arb]
    cdf: list[flint.arb]
    sf: list[flint.arb]


def exact_law(p: list[float], bits: int) -> Exact:
    """Product of the trials' generating functions, coefficient by coefficient."""
    with flint.ctx.workprec(bits):
        factors = [flint.arb_poly([1 - flint.arb(value), value]) for value in p]
        while len(factors) > 1:
            pairs = zip(factors[::2], factors[1::2], strict=False)
            odd = factors[len(factors) & ~1 :]
            factors = [a * b for a, b in pairs] + odd
        pmf = factors[0].coeffs()
        pmf += [flint.arb(0)] * (len(p) + 1 - len(pmf))
        cdf, sf = [], []
        below = above = flint.arb(0)
        for low, high in zip(pmf, reversed(pmf), strict=True):
            below = below + low
            cdf.append(below)
            sf.append(above)
            above = above + high
        return Exact(pmf, cdf, sf[::-1])


def logarithm(value: flint.arb, complement: flint.arb | None, bits: int) -> float:
    with flint.ctx.workprec(bits):
        if value == 0:
            return -np.inf
        if complement is not None and value > 0.5:
            return float((-complement).log1p())
        return float(value.log())


def assert_relative(found, exact: list[flint.arb], rtol: float = 1e-12) -> None:
    """Relative error of the values that a double holds with full precision."""
    expected = np.array([float(value) for value in exact])
    held = expected > SMALLEST
    np.testing.assert_allclose(found[held], expected[held], rtol=rtol, atol=0)
    np.testing.assert_allclose(found[~held], expected[~held], rtol=0, atol=SMALLEST)


def assert_exact(law: bk.guessing.PoissonBinomial, exact: Exact, k: np.ndarray, bits: int) -> None:
    pmf, cdf, sf = ([values[i] for i in k] for values in exact)
    for name, values, other, atol in (
        ("pmf", pmf, None, 1e-16),
        ("cdf", cdf, sf, 1e-14),
        ("sf", sf, cdf, 1e-14),
    ):
        found = getattr(law, name)(k)
        assert_relative(found, values)
        np.testing.assert_allclose(found, [float(v) for v in values], rtol=0, atol=atol)
        others = [None] * len(k) if other is None else other
        logs = [logarithm(v, o, bits) for v, o in zip(values, others, strict=True)]
        np.testing.assert_allclose(getattr(law, f"log{name}")(k), logs, rtol=1e-12, atol=SMALLEST)


def fractions_law(p: list[float]) -> list[Fraction]:
    pmf = [Fraction(1)]
    for value in map(Fraction, p):
        stay, rise = [*pmf, Fraction(0)], [Fraction(0), *pmf]
        pmf = [a * (1 - value) + b * value for a, b in zip(stay, rise, strict=True)]
    return pmf


@settings(max_examples=60)
@given(p=PROBABILITIES)
@example(p=TINY)
@example(p=[0.5, 1e-300, 5e-324, 1 - 2**-53])
def test_small_laws_are_the_exact_convolution(p) -> None:
    pmf = fractions_law(p)
    law, k = bk.guessing.PoissonBinomial(p), np.arange(len(p) + 1)
    at_most = [sum(pmf[: i + 1], Fraction(0)) for i in k]
    for name, exact in (
        ("pmf", pmf),
        ("cdf", at_most),
        ("sf", [1 - value for value in at_most]),
    ):
        expected = np.array([float(value) for value in exact])
        found = getattr(law, name)(k)
        held = expected > SMALLEST
        np.testing.assert_allclose(found[held], expected[held], rtol=1e-12, atol=0)
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=2.3e-16 if name == "pmf" else 1e-14
        )


RNG = np.random.default_rng(7)
LARGE = {
    "random-60": (RNG.random(60), 1000),
    "random-500": (RNG.random(500), 2000),
    "u-shaped-500": (RNG.beta(0.1, 0.1, 500), 3000),
    "repeated-500": (np.full(500, 0.2), 2000),
    "labels-300": (np.repeat([1 / 2, 1 / 4, 1 / 5], 100), 2000),
    "random-1500": (RNG.random(1500), 3000),
    "u-shaped-1500": (RNG.beta(0.1, 0.1, 1500), 4000),
    "repeated-1500": (np.full(1500, 0.2), 3000),
    "rare-1000": (RNG.random(1000) ** 8, 6000),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_laws_keep_relative_accuracy(name) -> None:
    p, bits = LARGE[name]
    assert_exact(
        bk.guessing.PoissonBinomial(p), exact_law(p.tolist(), bits), np.arange(p.size + 1), bits
    )


@pytest.mark.slow
def test_ten_thousand_trials_keep_relative_accuracy() -> None:
    p, bits = np.random.default_rng(9).random(10_000), 3000
    k = np.array([0, 1, 2, 2500, 4000, 4600, 4900, 5000, 5050, 5200, 5600, 7000, 9999, 10_000])
    assert_exact(bk.guessing.PoissonBinomial(p), exact_law(p.tolist(), bits), k, bits)


def test_logs_below_the_smallest_double() -> None:
    law = bk.guessing.PoissonBinomial(0.25, 2000)
    assert law.sf(1999) == 0
    assert law.logsf(1999) == pytest.approx(-4000 * np.log(2), rel=1e-14)
    assert law.logcdf(0) == pytest.approx(2000 * np.log(0.75), rel=1e-14)


FROZEN = {
    "plain": bk.guessing.PoissonBinomial([0.5, 0.25, 1, 0, 0.9, 0.125]),
    "binomial": bk.guessing.PoissonBinomial(0.3, 50),
    "labels": bk.guessing.PoissonBinomial({2: 40, 4: 30, 5: 30}),
    "best": bk.guessing.PoissonBinomial(0.5, 100).largest_of(10),
    "best of many": bk.guessing.PoissonBinomial(0.25, 60).largest_of(1e9),
    "correlated": bk.guessing.PoissonBinomial(0.5, 40).largest_of(20, correlation=0.3),
    "skilled": bk.guessing.LargestPoissonBinomial(
        [bk.guessing.PoissonBinomial(0.6, 30), bk.guessing.PoissonBinomial([0.2, 0.9, 0.5])],
        [2, 30.5],
    ),
}
each_law = pytest.mark.parametrize("law", FROZEN.values(), ids=FROZEN)


def counts(law) -> np.ndarray:
    low, high = law.support()
    return np.arange(low, high + 1)


@each_law
def test_mass_is_one_and_cdf_its_running_sum(law) -> None:
    k = counts(law)
    pmf, cdf, sf = law.pmf(k), law.cdf(k), law.sf(k)
    assert pmf.sum() == pytest.approx(1, abs=1e-13)
    assert np.all(pmf >= 0)
    assert np.all(np.diff(cdf) >= 0)
    assert np.all(np.diff(sf) <= 0)
    assert cdf[-1] == 1
    assert sf[-1] == 0
    np.testing.assert_allclose(np.cumsum(pmf), cdf, rtol=0, atol=1e-13)
    np.testing.assert_allclose(cdf + sf, 1, rtol=0, atol=1e-14)


@each_law
def test_logs_are_the_logs(law) -> None:
    k = counts(law)
    for name in ("pmf", "cdf", "sf"):
        value = getattr(law, name)(k)
        held = (value > SMALLEST) & (value < 0.9)
        np.testing.assert_allclose(
            getattr(law, f"log{name}")(k)[held], np.log(value[held]), rtol=1e-11, atol=1e-15
        )


@each_law
def test_moments_are_those_of_the_mass(law) -> None:
    k = counts(law)
    mass = law.pmf(k)
    mean = np.sum(k * mass)
    assert law.mean() == pytest.approx(mean, rel=1e-12)
    assert law.var() == pytest.approx(np.sum((k - mean) ** 2 * mass), rel=1e-9)
    assert law.std() == pytest.approx(np.sqrt(law.var()), rel=1e-14)
    assert {type(law.mean()), type(law.var()), type(law.std())} == {float}


@each_law
def test_ppf_is_the_smallest_count_that_reaches_q(law) -> None:
    k = counts(law)
    cdf = law.cdf(k)
    q = np.random.default_rng(3).random(200)
    expected = k[0] + np.argmax(cdf[None, :] >= q[:, None], axis=1)
    np.testing.assert_array_equal(law.ppf(q), expected)


@each_law
def test_isf_is_the_smallest_count_whose_upper_tail_is_no_larger(law) -> None:
    k = counts(law)
    sf = law.sf(k)
    q = np.concatenate([np.random.default_rng(4).random(100), 10.0 ** -np.arange(1, 30)])
    expected = k[0] + np.argmax(sf[None, :] <= q[:, None], axis=1)
    np.testing.assert_array_equal(law.isf(q), expected)


@each_law
def test_ends_of_ppf_isf_and_support(law) -> None:
    low, high = law.support()
    np.testing.assert_array_equal(law.ppf([0, 1]), [low - 1, high])
    np.testing.assert_array_equal(law.isf([1, 0]), [low - 1, high])
    outside = [-0.1, 1.1, np.nan]
    assert np.all(np.isnan(law.ppf(outside)))
    assert np.all(np.isnan(law.isf(outside)))
    assert np.isfinite(law.logpmf(low))
    assert np.isfinite(law.logpmf(high))
    np.testing.assert_array_equal(law.pmf([low - 1, high + 1, low + 0.5]), 0)
    np.testing.assert_array_equal(law.logpmf([low - 1, high + 1]), -np.inf)
    np.testing.assert_array_equal(
        law.cdf([-np.inf, low - 1, high, high + 9, np.inf]), [0, 0, 1, 1, 1]
    )
    np.testing.assert_array_equal(
        law.sf([-np.inf, low - 1, high, high + 9, np.inf]), [1, 1, 0, 0, 0]
    )
    np.testing.assert_array_equal(law.cdf(low + 0.7), law.cdf(low))


@each_law
def test_draws_have_the_distribution(law) -> None:
    size = 20_000
    draws = law.rvs(size, rng=np.random.default_rng(11))
    k = counts(law)
    expected = size * law.pmf(k)
    seen = np.bincount(draws - k[0], minlength=k.size)
    common = expected >= 10
    expected = [*expected[common], size - expected[common].sum()]
    seen = [*seen[common], size - seen[common].sum()]
    if expected[-1] < 1:
        assert seen[-1] <= 10
        expected, seen = expected[:-1], seen[:-1]
    statistic = np.sum((np.array(seen) - expected) ** 2 / np.array(expected))
    assert stats.chi2.sf(statistic, len(seen) - 1) > 1e-4


@each_law
def test_frozen_means_frozen(law) -> None:
    name = next(iter(vars(law)), "p")
    for attribute in (name, "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(law, attribute, 0)


@pytest.mark.parametrize(("n", "p"), [(12, 0.3), (1, 0.5), (40, 0.0625), (7, 0.0), (7, 1.0)])
def test_scipy_conventions(n, p) -> None:
    law, peer = bk.guessing.PoissonBinomial(p, n), stats.binom(n, p)
    k = [-np.inf, -3, -1, -0.5, 0, 0.5, 1, n - 1, n - 0.5, n, n + 0.5, n + 1, np.inf, np.nan]
    for name in ("pmf", "cdf", "sf"):
        found, expected = getattr(law, name)(k), getattr(peer, name)(k)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=0)
    if 0 < p < 1:
        q = np.array([-0.1, 0, 0.01, 0.137, 0.5001, 0.77, 0.999, 1, 1.1, np.nan])
        np.testing.assert_array_equal(law.ppf(q), peer.ppf(q))
        np.testing.assert_array_equal(law.isf(q), peer.isf(q))
        assert law.support() == peer.support()
        np.testing.assert_array_equal(law.interval(0.83), peer.interval(0.83))
        assert law.median() == peer.median()
    assert law.mean() == pytest.approx(peer.mean(), rel=1e-14)
    assert law.var() == pytest.approx(peer.var(), rel=1e-13)


def test_scalars_and_shapes() -> None:
    law = bk.guessing.PoissonBinomial(0.3, 9)
    k = np.arange(6).reshape(2, 1, 3)
    for name in ("pmf", "cdf", "sf", "logpmf", "logcdf", "logsf"):
        assert getattr(law, name)(k).shape == k.shape
        assert np.ndim(getattr(law, name)(2)) == 0
        assert getattr(law, name)([]).shape == (0,)
    for name in ("ppf", "isf"):
        assert getattr(law, name)(k / 9).shape == k.shape
        assert np.ndim(getattr(law, name)(0.5)) == 0


def assert_close_tails(a, b) -> None:
    held = np.maximum(a, b) > SMALLEST
    np.testing.assert_allclose(a[held], b[held], rtol=1e-12, atol=0)


@settings(max_examples=50)
@given(p=PROBABILITIES)
def test_mean_variance_and_support_of_the_trials(p) -> None:
    law = bk.guessing.PoissonBinomial(p)
    exact = [Fraction(value) for value in p]
    assert law.mean() == pytest.approx(float(sum(exact)), rel=1e-14, abs=1e-300)
    expected = float(sum(value * (1 - value) for value in exact))
    assert law.var() == pytest.approx(expected, rel=1e-13, abs=1e-300)
    assert law.support() == (sum(v == 1 for v in p), sum(v > 0 for v in p))


@settings(max_examples=30)
@given(groups=st.dictionaries(st.integers(1, 9), st.integers(1, 30), min_size=1, max_size=4))
def test_grouped_equals_listed(groups) -> None:
    listed = [1 / labels for labels, examples in groups.items() for _ in range(examples)]
    k = np.arange(len(listed) + 1)
    a, b = bk.guessing.PoissonBinomial(groups), bk.guessing.PoissonBinomial(listed, len(listed))
    assert_close_tails(a.pmf(k), b.pmf(k))
    assert_close_tails(a.sf(k), b.sf(k))
    assert a.mean() == pytest.approx(b.mean(), rel=1e-14)


def test_containers_of_p_agree() -> None:
    p = [0.0, 0.25, 1.0, 0.7, 0.1]
    expected = bk.guessing.PoissonBinomial(p).pmf(np.arange(6))
    series = pd.Series(p, index=list("vwxyz"))
    data = xr.DataArray(p, dims="question", coords={"question": list("vwxyz")})
    for same in (tuple(p), np.array(p), series, data):
        np.testing.assert_array_equal(bk.guessing.PoissonBinomial(same).pmf(np.arange(6)), expected)
        np.testing.assert_array_equal(
            bk.guessing.PoissonBinomial(same, 5).pmf(np.arange(6)), expected
        )
    single = bk.guessing.PoissonBinomial(np.float32(0.5), np.int32(5))
    np.testing.assert_allclose(single.pmf(5), 2.0**-5, rtol=1e-14)


@pytest.mark.parametrize("p", [[0.0] * 4, [1.0] * 4, [1.0, 0.0, 1.0]])
@pytest.mark.parametrize("t", [1, 10, 1e9])
def test_certain_trials(p, t) -> None:
    law, sure = bk.guessing.PoissonBinomial(p).largest_of(t), int(sum(p))
    k = np.arange(-1, 6)
    np.testing.assert_array_equal(law.pmf(k), k == sure)
    np.testing.assert_array_equal(law.cdf(k), k >= sure)
    np.testing.assert_array_equal(law.sf(k), k < sure)
    assert (law.mean(), law.var(), law.median()) == (sure, 0, sure)
    assert law.support() == (sure, sure)
    np.testing.assert_array_equal(law.rvs(5, rng=1), sure)


@settings(max_examples=40)
@given(p=SIXTEENTHS.filter(lambda p: len(p) <= 15), t=st.integers(1, 8))
def test_the_largest_of_t_is_the_power_of_the_cdf(p, t) -> None:
    pmf = fractions_law(p)
    at_most = [sum(pmf[: i + 1], Fraction(0)) ** t for i in range(len(pmf))]
    law, k = bk.guessing.PoissonBinomial(p).largest_of(t), np.arange(len(pmf))
    np.testing.assert_allclose(law.cdf(k), [float(v) for v in at_most], rtol=1e-12, atol=0)
    np.testing.assert_allclose(law.sf(k), [float(1 - v) for v in at_most], rtol=1e-12, atol=0)
    steps = [a - b for a, b in zip(at_most, [Fraction(0), *at_most[:-1]], strict=True)]
    np.testing.assert_allclose(law.pmf(k), [float(v) for v in steps], rtol=1e-12, atol=0)
    mean = float(sum(1 - v for v in at_most))
    assert law.mean() == pytest.approx(mean, rel=1e-13, abs=1e-300)


def test_systems_of_known_skill_are_a_product_of_cdfs() -> None:
    skills, t = ([0.5, 0.25, 0.75], [0.125] * 5, [0.5] * 4), (2, 3, 1)
    at_most = []
    for k in range(6):
        value = Fraction(1)
        for p, times in zip(skills, t, strict=True):
            value *= sum(fractions_law(p)[: k + 1], Fraction(0)) ** times
        at_most.append(value)
    law = bk.guessing.LargestPoissonBinomial([bk.guessing.PoissonBinomial(p) for p in skills], t)
    k = np.arange(6)
    np.testing.assert_allclose(law.cdf(k), [float(v) for v in at_most], rtol=1e-13, atol=0)
    np.testing.assert_allclose(law.sf(k), [float(1 - v) for v in at_most], rtol=1e-13, atol=0)
    assert law.mean() == pytest.approx(float(sum(1 - v for v in at_most)), rel=1e-14)
    assert law.support() == (0, 5)


def correlated_tail(tail: mpmath.mpf, t: float, r: float) -> mpmath.mpf:
    """P(some count is above k): one minus the average over the factor that none is."""
    with mpmath.workdps(30):
        start = mpmath.mpf(stats.norm.isf(float(tail)))
        cut = mpmath.findroot(
            lambda c: mpmath.log(mpmath.erfc(c / mpmath.sqrt(2)) / 2) - mpmath.log(tail), start
        )
        loading, rest = mpmath.sqrt(r), mpmath.sqrt(1 - mpmath.mpf(r))

        def integrand(z):
            beyond = mpmath.erfc((cut - loading * z) / rest / mpmath.sqrt(2)) / 2
            return mpmath.npdf(z) * -mpmath.expm1(t * mpmath.log1p(-beyond))

        step = mpmath.mpf(1) / 25
        return step * sum(integrand(step * i) for i in range(-325, 1001))


@pytest.mark.parametrize("t", [2, 10, 1e4])
@pytest.mark.parametrize("r", [0.1, 0.5, 0.9])
def test_correlated_deep_tail_by_quadrature(t, r) -> None:
    """All 200 fair tosses right, 2^-200 for one guesser."""
    expected = correlated_tail(mpmath.mpf(2) ** -200, t, r)
    law = bk.guessing.PoissonBinomial(0.5, 200).largest_of(t, correlation=r)
    assert law.sf(199) == pytest.approx(float(expected), rel=1e-11, abs=0)
    assert law.logsf(199) == pytest.approx(float(mpmath.log(expected)), rel=1e-12)


@pytest.mark.parametrize("r", [0.02, 0.3, 0.8, 0.99])
@pytest.mark.parametrize("t", [2, 7.5, 200])
def test_correlated_body_by_quadrature(r, t) -> None:
    p, n = 0.3, 25
    law = bk.guessing.PoissonBinomial(p, n).largest_of(t, correlation=r)
    for k in (4, 8, 12, 16):
        cut = stats.norm.ppf(stats.binom.cdf(k, n, p))
        expected, _ = integrate.quad(
            lambda z, cut=cut: (
                stats.norm.pdf(z) * stats.norm.cdf((cut - np.sqrt(r) * z) / np.sqrt(1 - r)) ** t
            ),
            -9,
            9,
            points=np.linspace(-8, 8, 30),
            epsabs=1e-13,
            epsrel=1e-12,
            limit=200,
        )
        assert law.cdf(k) == pytest.approx(expected, abs=1e-10)


def test_correlated_counts_by_simulation() -> None:
    n, p, t, r, draws = 20, 0.3, 5, 0.4, 100_000
    rng = np.random.default_rng(8)
    common, own = rng.normal(size=(draws, 1)), rng.normal(size=(draws, t))
    scores = stats.norm.cdf(np.sqrt(r) * common + np.sqrt(1 - r) * own)
    best = np.searchsorted(stats.binom.cdf(np.arange(n + 1), n, p), scores).max(axis=1)
    law, k = bk.guessing.PoissonBinomial(p, n).largest_of(t, correlation=r), np.arange(n + 1)
    expected = law.cdf(k)
    seen = np.mean(best[:, None] <= k, axis=0)
    assert np.all(
        np.abs(seen - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / draws) + 1e-4
    )
    assert abs(best.mean() - law.mean()) <= 4.5 * law.std() / np.sqrt(draws)
    assert best.var() == pytest.approx(law.var(), rel=0.03)


@pytest.mark.parametrize("t", [3, 1e6])
def test_the_ends_of_correlation(t) -> None:
    law, k = bk.guessing.PoissonBinomial([0.3, 0.8, 0.5, 0.25] * 20), np.arange(81)
    same, apart = law.largest_of(t, correlation=1), law.largest_of(t, correlation=0)
    assert_close_tails(same.sf(k), law.sf(k))
    assert_close_tails(apart.sf(k), law.largest_of(t).sf(k))
    body = np.arange(35, 55, 4)
    nearly_apart, nearly_same = (law.largest_of(t, correlation=r) for r in (1e-9, 1 - 1e-6))
    np.testing.assert_allclose(nearly_apart.cdf(body), apart.cdf(body), rtol=0, atol=1e-6)
    np.testing.assert_allclose(nearly_same.cdf(body), same.cdf(body), rtol=0, atol=0.01)


@pytest.mark.parametrize(
    ("p", "n", "named"),
    [
        ([1.2], None, "p"),
        ([-0.1, 0.5], None, "p"),
        ([0.5, np.nan], None, "p"),
        (1.5, 3, "p"),
        (np.nan, 3, "p"),
        ([], None, "p"),
        ({}, None, "p"),
        ([[0.5]], None, "p"),
        ("half", None, "p"),
        (["x", 0.5], None, "p"),
        (None, 3, "p"),
        ({0: 3}, None, "labels"),
        ({2.5: 3}, None, "labels"),
        ({"a": 3}, None, "labels"),
        ({2: -1, 3: 2}, None, "examples"),
        ({2: 1.5}, None, "examples"),
        ({2: 2}, 3, "n"),
        ([0.5, 0.5], 3, "n"),
        (0.5, None, "n"),
        (0.5, 0, "n"),
        (0.5, -1, "n"),
        (0.5, 1.5, "n"),
        (0.5, np.nan, "n"),
        (0.5, "a", "n"),
    ],
)
def test_bad_trials_are_refused_by_name(p, n, named) -> None:
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        bk.guessing.PoissonBinomial(p, n)


@pytest.mark.parametrize("t", [0.5, 0, -1, np.nan, np.inf, "a", None])
def test_bad_times_are_refused_by_name(t) -> None:
    with pytest.raises(ValueError, match=r"\bt\b"):
        bk.guessing.PoissonBinomial(0.5, 3).largest_of(t)
    with pytest.raises(ValueError, match=r"\bt\b"):
        bk.guessing.LargestPoissonBinomial([bk.guessing.PoissonBinomial(0.5, 3)], [t])


@pytest.mark.parametrize("correlation", [2, -0.1, np.nan, "a"])
def test_bad_correlations_are_refused_by_name(correlation) -> None:
    with pytest.raises(ValueError, match=r"\bcorrelation\b"):
        bk.guessing.PoissonBinomial(0.5, 3).largest_of(2, correlation=correlation)


def test_correlation_needs_a_single_component() -> None:
    parts = [bk.guessing.PoissonBinomial(0.5, 3), bk.guessing.PoissonBinomial(0.4, 3)]
    with pytest.raises(ValueError, match=r"\bcorrelation\b"):
        bk.guessing.LargestPoissonBinomial(parts, correlation=0.5)


@pytest.mark.parametrize("components", [[], [0.5], bk.guessing.PoissonBinomial(0.5, 3), 0.5])
def test_bad_components_are_refused_by_name(components) -> None:
    with pytest.raises(ValueError, match=r"\bcomponents\b"):
        bk.guessing.LargestPoissonBinomial(components)


def test_one_time_per_component() -> None:
    part = bk.guessing.PoissonBinomial(0.5, 3)
    with pytest.raises(ValueError, match=r"\bt\b"):
        bk.guessing.LargestPoissonBinomial([part], [1, 2])
    with pytest.raises(ValueError, match=r"\bt\b"):
        bk.guessing.LargestPoissonBinomial([part, part, part], [1, 2])
