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

from bayesatk.guessing import LargestPoissonBinomial, PoissonBinomial

SMALLEST = 1e-300  # below it doubles lose digits
FUNCTIONS = ("pmf", "cdf", "sf")


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


def assert_exact(law: PoissonBinomial, exact: Exact, k: np.ndarray, bits: int) -> None:
    """Relative errors of probabilities that a double holds with full precision, and of logs."""
    pmf, cdf, sf = ([values[i] for i in k] for values in exact)
    unknown = [None] * len(k)
    for name, values, complements in (("pmf", pmf, unknown), ("cdf", cdf, sf), ("sf", sf, cdf)):
        computed, expected = getattr(law, name)(k), np.array([float(value) for value in values])
        held = expected > SMALLEST
        np.testing.assert_allclose(computed[held], expected[held], rtol=1e-12, atol=0)
        np.testing.assert_allclose(computed[~held], expected[~held], rtol=0, atol=SMALLEST)
        atol = 1e-16 if name == "pmf" else 1e-14
        np.testing.assert_allclose(computed, expected, rtol=0, atol=atol)
        logs = [logarithm(v, c, bits) for v, c in zip(values, complements, strict=True)]
        np.testing.assert_allclose(getattr(law, f"log{name}")(k), logs, rtol=1e-12, atol=SMALLEST)


def fractions_law(p: list[float]) -> list[Fraction]:
    pmf = [Fraction(1)]
    for value in map(Fraction, p):
        stay, rise = [*pmf, Fraction(0)], [Fraction(0), *pmf]
        pmf = [a * (1 - value) + b * value for a, b in zip(stay, rise, strict=True)]
    return pmf


@settings(max_examples=60)
@given(p=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
@example(p=[0.5, 0.25, 0.25, 0.0625, 0.0625, 1e-09, 1e-09, 2.1e-16, 5.6e-242, 5.6e-242])
@example(p=[0.5, 1e-300, 5e-324, 1 - 2**-53])
def test_small_laws_are_the_exact_convolution(p) -> None:
    pmf = fractions_law(p)
    law, k = PoissonBinomial(p), np.arange(len(p) + 1)
    at_most = [sum(pmf[: i + 1], Fraction(0)) for i in k]
    for name, exact in zip(FUNCTIONS, (pmf, at_most, [1 - v for v in at_most]), strict=True):
        expected, computed = np.array([float(value) for value in exact]), getattr(law, name)(k)
        held = expected > SMALLEST
        np.testing.assert_allclose(computed[held], expected[held], rtol=1e-12, atol=0)
        atol = 2.3e-16 if name == "pmf" else 1e-14
        np.testing.assert_allclose(computed, expected, rtol=0, atol=atol)


RNG = np.random.default_rng(7)
LARGE = {
    "random-500": (RNG.random(500), 2000),
    "u-shaped-1500": (RNG.beta(0.1, 0.1, 1500), 4000),
    "repeated-1500": (np.full(1500, 0.2), 3000),
    "labels-300": (np.repeat([1 / 2, 1 / 4, 1 / 5], 100), 2000),
    "rare-1000": (RNG.random(1000) ** 8, 6000),
    "random-10000": (RNG.random(10_000), 3000),
}
SOME = [0, 1, 2, 2500, 4000, 4600, 4900, 5000, 5050, 5200, 5600, 7000, 9999, 10_000]


@pytest.mark.parametrize("name", LARGE)
def test_large_laws_keep_relative_accuracy(name) -> None:
    p, bits = LARGE[name]
    counts = np.array(SOME) if len(p) == 10_000 else np.arange(len(p) + 1)
    assert_exact(PoissonBinomial(p), exact_law(p.tolist(), bits), counts, bits)


FROZEN = {
    "plain": PoissonBinomial([0.5, 0.25, 1, 0, 0.9, 0.125]),
    "binomial": PoissonBinomial(0.3, 50),
    "labels": PoissonBinomial({2: 40, 4: 30, 5: 30}),
    "best": PoissonBinomial(0.5, 100).largest_of(10),
    "best of many": PoissonBinomial(0.25, 60).largest_of(1e9),
    "correlated": PoissonBinomial(0.5, 40).largest_of(20, correlation=0.3),
    "skilled": LargestPoissonBinomial(
        [PoissonBinomial(0.6, 30), PoissonBinomial([0.2, 0.9, 0.5])],
        [2, 30.5],
    ),
}
each_law = pytest.mark.parametrize("law", FROZEN.values(), ids=FROZEN)


def counts_of(law) -> np.ndarray:
    low, high = law.support()
    return np.arange(low, high + 1)


@each_law
def test_mass_gives_the_tails_logs_and_moments(law) -> None:
    k = counts_of(law)
    pmf, cdf, sf = (getattr(law, name)(k) for name in FUNCTIONS)
    assert np.all(pmf >= 0)
    assert cdf[-1] == 1
    assert sf[-1] == 0
    np.testing.assert_allclose(np.cumsum(pmf), cdf, rtol=0, atol=1e-13)
    np.testing.assert_allclose(cdf + sf, 1, rtol=0, atol=1e-14)
    for name, values in zip(FUNCTIONS, (pmf, cdf, sf), strict=True):
        held = (values > SMALLEST) & (values < 0.9)
        logs = getattr(law, f"log{name}")(k)[held]
        np.testing.assert_allclose(logs, np.log(values[held]), rtol=1e-11, atol=1e-15)
    mean = np.sum(k * pmf)
    assert law.mean() == pytest.approx(mean, rel=1e-12)
    assert law.var() == pytest.approx(np.sum((k - mean) ** 2 * pmf), rel=1e-9)
    assert law.std() == pytest.approx(np.sqrt(law.var()), rel=1e-14)


@each_law
def test_quantiles_are_the_smallest_counts_that_reach_their_level(law) -> None:
    k = counts_of(law)
    cdf, sf = law.cdf(k), law.sf(k)
    q = np.concatenate([np.random.default_rng(4).random(200), 10.0 ** -np.arange(1, 30)])
    np.testing.assert_array_equal(law.ppf(q), k[0] + np.argmax(cdf >= q[:, None], axis=1))
    np.testing.assert_array_equal(law.isf(q), k[0] + np.argmax(sf <= q[:, None], axis=1))


@each_law
def test_nothing_lies_beyond_the_support_and_something_at_its_ends(law) -> None:
    low, high = law.support()
    np.testing.assert_array_equal(law.ppf([0, 1, -0.1, np.nan]), [low - 1, high, np.nan, np.nan])
    np.testing.assert_array_equal(law.isf([1, 0, 1.1, np.nan]), [low - 1, high, np.nan, np.nan])
    assert np.isfinite(law.logpmf([low, high])).all()
    np.testing.assert_array_equal(law.logpmf([low - 1, high + 1, low + 0.5]), -np.inf)
    beyond = [-np.inf, low - 1, high, high + 9, np.inf]
    np.testing.assert_array_equal(law.cdf(beyond), [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(law.sf(beyond), [1, 1, 0, 0, 0])
    np.testing.assert_array_equal(law.cdf(low + 0.7), law.cdf(low))


@each_law
def test_draws_have_the_distribution(law) -> None:
    size = 20_000
    draws = law.rvs(size, rng=np.random.default_rng(11))
    k = counts_of(law)
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
    law, peer = PoissonBinomial(p, n), stats.binom(n, p)
    k = [-np.inf, -3, -1, -0.5, 0, 0.5, 1, n - 1, n - 0.5, n, n + 0.5, n + 1, np.inf, np.nan]
    for name in ("pmf", "cdf", "sf"):
        computed, expected = getattr(law, name)(k), getattr(peer, name)(k)
        np.testing.assert_allclose(computed, expected, rtol=1e-10, atol=0)
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
    law = PoissonBinomial(0.3, 9)
    k = np.arange(6).reshape(2, 1, 3)
    for name in ("pmf", "cdf", "sf", "logpmf", "logcdf", "logsf"):
        assert getattr(law, name)(k).shape == k.shape
        assert np.ndim(getattr(law, name)(2)) == 0
        assert getattr(law, name)([]).shape == (0,)
    for name in ("ppf", "isf"):
        assert getattr(law, name)(k / 9).shape == k.shape
        assert np.ndim(getattr(law, name)(0.5)) == 0


def test_probabilities_may_come_in_any_container_or_by_numbers_of_labels() -> None:
    p = [0.5, 0.25, 0.25, 0.2]
    expected = PoissonBinomial(p).pmf(np.arange(5))
    series = pd.Series(p, index=list("wxyz"))
    data = xr.DataArray(p, dims="question", coords={"question": list("wxyz")})
    for same in (tuple(p), np.array(p), series, data, {2: 1, 4: 2, 5: 1, 9: 0}):
        np.testing.assert_array_equal(PoissonBinomial(same).pmf(np.arange(5)), expected)
    np.testing.assert_array_equal(PoissonBinomial(p, 4).pmf(np.arange(5)), expected)
    single = PoissonBinomial(np.float32(0.5), np.int32(5))
    np.testing.assert_allclose(single.pmf(5), 2.0**-5, rtol=1e-14)


@pytest.mark.parametrize("p", [[0.0] * 4, [1.0] * 4, [1.0, 0.0, 1.0]])
@pytest.mark.parametrize("t", [1, 10, 1e9])
def test_certain_trials(p, t) -> None:
    law, sure = PoissonBinomial(p).largest_of(t), int(sum(p))
    k = np.arange(-1, 6)
    np.testing.assert_array_equal(law.pmf(k), k == sure)
    np.testing.assert_array_equal(law.cdf(k), k >= sure)
    np.testing.assert_array_equal(law.sf(k), k < sure)
    assert (law.mean(), law.var(), law.median()) == (sure, 0, sure)
    assert law.support() == (sure, sure)
    np.testing.assert_array_equal(law.rvs(5, rng=1), sure)


SKILLS = [[0.5, 0.25, 0.75], [0.125] * 5, [0.5] * 4]


@pytest.mark.parametrize(
    ("skills", "times"), [(SKILLS, (2, 3, 1)), ([[m / 16 for m in (0, 1, 3, 8, 13, 16)]], (5,))]
)
def test_the_largest_has_the_product_of_the_cdfs(skills, times) -> None:
    """In exact rationals: several counts of each skill."""
    most = max(map(len, skills))
    at_most = [Fraction(1)] * (most + 1)
    for p, repeats in zip(skills, times, strict=True):
        pmf = fractions_law(p)
        at_most = [v * sum(pmf[: k + 1], Fraction(0)) ** repeats for k, v in enumerate(at_most)]
    law = LargestPoissonBinomial([PoissonBinomial(p) for p in skills], times)
    k = np.arange(most + 1)
    steps = [a - b for a, b in zip(at_most, [Fraction(0), *at_most[:-1]], strict=True)]
    for name, exact in zip(FUNCTIONS, (steps, at_most, [1 - v for v in at_most]), strict=True):
        expected = [float(value) for value in exact]
        np.testing.assert_allclose(getattr(law, name)(k), expected, rtol=1e-12, atol=0)
    assert law.mean() == pytest.approx(float(sum(1 - v for v in at_most)), rel=1e-13)


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
    law = PoissonBinomial(0.5, 200).largest_of(t, correlation=r)
    assert law.sf(199) == pytest.approx(float(expected), rel=1e-11, abs=0)
    assert law.logsf(199) == pytest.approx(float(mpmath.log(expected)), rel=1e-12)


@pytest.mark.parametrize("r", [0.02, 0.3, 0.8, 0.99])
@pytest.mark.parametrize("t", [2, 7.5, 200])
def test_correlated_body_by_quadrature(r, t) -> None:
    p, n = 0.3, 25
    law = PoissonBinomial(p, n).largest_of(t, correlation=r)
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


@pytest.mark.parametrize("t", [3, 1e6])
def test_the_ends_of_correlation_are_one_count_and_independence(t) -> None:
    law, k = PoissonBinomial([0.3, 0.8, 0.5, 0.25] * 20), np.arange(81)
    same, apart = law.largest_of(t, correlation=1), law.largest_of(t)
    np.testing.assert_allclose(same.sf(k), law.sf(k), rtol=1e-12, atol=SMALLEST)
    body = np.arange(35, 55, 4)
    nearly_apart, nearly_same = (law.largest_of(t, correlation=r) for r in (1e-9, 1 - 1e-6))
    np.testing.assert_allclose(nearly_apart.cdf(body), apart.cdf(body), rtol=0, atol=1e-6)
    np.testing.assert_allclose(nearly_same.cdf(body), same.cdf(body), rtol=0, atol=0.01)


PART = PoissonBinomial(0.5, 3)


@pytest.mark.parametrize(
    ("make", "arguments", "named"),
    [
        *((PoissonBinomial, (p,), "p") for p in
          ([1.2], [-0.1, 0.5], [0.5, np.nan], [], {}, [[0.5]], "half", ["x", 0.5])),
        (PoissonBinomial, (None, 3), "p"),
        *((PoissonBinomial, ({labels: 3},), "labels") for labels in (0, 2.5, "a")),
        *((PoissonBinomial, ({2: examples},), "examples") for examples in (-1, 1.5)),
        *((PoissonBinomial, (0.5, n), "n") for n in (None, 0, 1.5, np.nan, "a")),
        (PoissonBinomial, ([0.5, 0.5], 3), "n"),
        *((PART.largest_of, (t,), "t") for t in (0.5, np.nan, np.inf, "a", None)),
        *((lambda r: PART.largest_of(2, correlation=r), (r,), "correlation")
          for r in (2, -0.1, np.nan, "a")),
        (lambda: LargestPoissonBinomial([PART, PART], correlation=0.5), (), "correlation"),
        *((LargestPoissonBinomial, (parts,), "components") for parts in ([], [0.5], PART)),
        (LargestPoissonBinomial, ([PART], [1, 2]), "t"),
    ],
)  # fmt: skip
def test_impossible_arguments_are_refused_by_name(make, arguments, named) -> None:
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        make(*arguments)
