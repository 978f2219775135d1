"""Weighted means over questions: their distribution, and their Bayesian bootstrap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from bayesatk.core.engine.bootstrap import bootstrap_moments, mean_moments
from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.pooling.states import Terms, relative
from bayesatk.metrics.grid import parse
from bayesatk.priors import BetaPrior
from tests.core.agreement import FLAT, check_against_draws, check_quantiles, modelled

ENDS = np.array([0.025, 0.5, 0.975])


def terms_of(weight) -> Terms:
    """Each question is a state of its own."""
    own = relative(weight)
    own = np.ones(len(weight)) if own is None else own
    return Terms(np.arange(len(own)), own, np.ones(len(own)))


def weighted(right, trials, weight, metric: str, prior: BetaPrior = FLAT) -> Empirical:
    """Return the distribution of a weighted mean over questions."""
    model = modelled((right, trials), prior, weight=np.asarray(weight, float))
    found = model.fit(parse(metric)).distributions()[0][0]
    assert found is not None
    return found


@pytest.mark.parametrize("weight", [(1.0, 2.0), (0.02, 5.0), (7.0, 1.0)])
def test_the_distribution_of_two_questions_is_their_convolution(weight) -> None:
    share = np.array(weight) / sum(weight)
    one, two = stats.beta(2, 3), stats.beta(4, 2)

    def below(x: float) -> float:
        return integrate.quad(
            lambda p: one.cdf((x - share[1] * p) / share[0]) * two.pdf(p),
            0.0,
            1.0,
            limit=500,
            epsabs=1e-10,
        )[0]

    check_quantiles(weighted([1, 3], [3, 4], weight, "pass@1"), below, ENDS)


@pytest.mark.parametrize("kind", ["many", "heavy", "saturated"])
def test_a_mean_with_weights_of_its_own_for_every_question(kind) -> None:
    """With draws as the witness."""
    rng = np.random.default_rng(5)
    weight = rng.lognormal(0.0, 1.0, 120)
    right = rng.integers(0, 5, 120)
    if kind == "heavy":
        weight[0] = 3.0 * weight.sum()
    if kind == "saturated":
        right = np.where(rng.random(120) < 0.95, 4, 3)
    found = weighted(right, np.full(120, 4), weight, "pass@2", BetaPrior(0.3, 0.3))
    p = rng.beta(0.3 + right, 4.3 - right, (40_000, 120))
    drawn = (1.0 - (1.0 - p) ** 2) @ (weight / weight.sum())
    check_against_draws(found, drawn, ENDS)


def test_two_questions_drawn_anew_have_the_moments_of_one_uniform() -> None:
    """With V1 / (V1 + V2) uniform, the mean is w1 u g1 + ... over w1 u + w2 (1 - u)."""
    weight, value = np.array([5.0, 0.5]), np.array([0.9, 0.2])
    mean, variance = bootstrap_moments(value[:, None], np.zeros((2, 1)), terms_of(weight))

    def ratio(u: float, power: int) -> float:
        each = weight * [u, 1.0 - u]
        return float((each @ value / each.sum()) ** power)

    first, second = (integrate.quad(ratio, 0, 1, args=(power,))[0] for power in (1, 2))
    assert mean[0] == pytest.approx(first, abs=1e-12)
    assert variance[0] == pytest.approx(second - first**2, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6), st.integers(0, 10**6))
def test_moments_of_the_bootstrap_are_those_of_draws(weight, seed) -> None:
    rng = np.random.default_rng(seed)
    size = len(weight)
    mean, sd = rng.random(size), 0.1 * rng.random(size)
    found = bootstrap_moments(mean[:, None], sd[:, None] ** 2, terms_of(weight))
    share = rng.standard_exponential((20_000, size)) * weight
    share /= share.sum(axis=1, keepdims=True)
    drawn = (share * rng.normal(mean, sd, share.shape)).sum(axis=1)
    error = 5.0 * drawn.std() / np.sqrt(len(drawn))
    assert found[0][0] == pytest.approx(drawn.mean(), abs=error + 1e-12)
    kurtosis = 3.0 + abs(stats.kurtosis(drawn)) if drawn.std() > 1e-9 else 3.0
    relative_error = 5.0 * np.sqrt(kurtosis / len(drawn))
    assert found[1][0] == pytest.approx(drawn.var(), rel=relative_error, abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_nearly_equal_weights_have_the_moments_of_equal_ones(successes) -> None:
    """The integral and the closed form of equal weights are one function."""
    mean = (1.0 + np.array(successes))[:, None] / 6.0
    variance = 0.02 * mean
    near = terms_of(np.linspace(1.0, 1.0 + 1e-9, len(successes)))
    for moments in (mean_moments, bootstrap_moments):
        both = (moments(mean, variance, own) for own in (near, terms_of(np.ones(len(successes)))))
        for one, other in zip(*both, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-12)
