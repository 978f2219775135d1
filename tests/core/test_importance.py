"""Weighted points of posteriors that are known exactly, and fewer of them that stand for all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, gammaln, ndtri
from scipy.stats import genpareto, loggamma, multivariate_t, norm

import bayesatk as bk
from bayesatk.core.numerics.importance import (
    POINTS_PER_ROUND,
    BlockwiseMixture,
    StudentMixture,
    _weighted,
    adaptive_importance_sampling,
    halton_sequence,
    multiple_importance_sampling,
)
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.numerics.weights import reweighted
from bayesatk.priors.fields import Beta

LEVELS = np.array([0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975])
BOUND = 3.5  # standard errors


def standard_errors(found, values, quantiles) -> np.ndarray:
    """Weights below exact quantiles, in the standard errors that independent draws would have."""
    below = np.array([found.weight[values <= one].sum() for one in quantiles])
    return (below - LEVELS) / np.sqrt(LEVELS * (1.0 - LEVELS) / found.effective_draws)


def worth_many(sample) -> bool:
    """Whether weighted points are worth a thousand draws."""
    return sample.trusted(1000.0)


@pytest.mark.parametrize("size", [2, 5, 8])
def test_probabilities_are_those_of_a_normal_in_every_direction(size) -> None:
    """Points that are even in each parameter may be uneven in a direction between them."""
    rng = np.random.default_rng([size, 0])
    root = rng.normal(size=(size, size)) / np.sqrt(size)
    precision = np.linalg.inv(root @ root.T)

    def log_density(x):
        return -0.5 * np.einsum("ni,ij,nj->n", x, precision, x)

    def log_base(x):
        return -0.5 * (x**2).sum(axis=1) - 0.5 * size * np.log(2.0 * np.pi)

    found = adaptive_importance_sampling(ndtri, log_base, log_density, size, worth_many)
    for direction in rng.normal(size=(20, size)):
        sd = np.linalg.norm(root.T @ direction)
        z = standard_errors(found, found.points @ direction, sd * norm.ppf(LEVELS))
        assert np.abs(z).max() < BOUND


def test_probabilities_are_those_of_skewed_parameters() -> None:
    shape = np.array([0.7, 3.0, 30.0])

    def log_density(x):  # logs of gamma variates
        return (x * shape - np.exp(x) - gammaln(shape)).sum(axis=1)

    def log_base(x):
        return (-0.5 * (x / 3.0) ** 2 - np.log(3.0 * np.sqrt(2.0 * np.pi))).sum(axis=1)

    found = adaptive_importance_sampling(
        lambda u: 3.0 * ndtri(u), log_base, log_density, 3, worth_many
    )
    assert found.log_evidence == pytest.approx(0.0, abs=0.01)
    for i, a in enumerate(shape):
        z = standard_errors(found, found.points[:, i], loggamma(a).ppf(LEVELS))
        assert np.abs(z).max() < BOUND


@pytest.mark.parametrize(("size", "distinct"), [(1, 1), (10, 2), (50, 3)])
def test_kernels_are_put_on_the_few_points_that_have_weight(size, distinct) -> None:
    """In many dimensions a round may leave no more, far from 0: Cholesky failed."""
    rng = np.random.default_rng([size, distinct])
    points = 100.0 + 10.0 * rng.normal(size=(1024, size))
    weight = np.zeros(1024)
    weight[:distinct] = 1.0 / distinct
    kernels = StudentMixture.fit(points, weight, POINTS_PER_ROUND)
    drawn = kernels.draw(500)
    assert np.isfinite(drawn).all()
    assert np.isfinite(kernels.log_density(drawn)).all()
    if distinct > 1:
        assert np.abs(drawn.mean(axis=0) - points[:distinct].mean(axis=0)).max() < 20.0


@pytest.mark.parametrize("size", [1, 2, 51])
def test_narrow_kernels_have_the_density_of_student_t(size) -> None:
    """In 51 dimensions of width 1e-8 the density at the centre is 1e400, which no double holds."""
    rng, share = np.random.default_rng(2), np.array([0.3, 0.7])
    centre, root = rng.normal(size=(2, size)), np.stack([1e-8 * np.eye(size), 0.2 * np.eye(size)])
    points = centre[0] + 1e-8 * rng.normal(size=(5, size))
    each = [
        np.log(part) + multivariate_t(middle, scale @ scale, df=6).logpdf(points)
        for part, middle, scale in zip(share, centre, root, strict=True)
    ]
    expected = np.logaddexp(*each)
    assert StudentMixture(share, centre, root).log_density(points) == pytest.approx(
        expected, abs=1e-6
    )


@given(st.lists(st.floats(-40.0, 40.0), min_size=1, max_size=200), st.integers(0, 2**32 - 1))
def test_no_point_is_all_of_the_posterior_under_another_prior(ratios, seed) -> None:
    rng, logs = np.random.default_rng(seed), np.array(ratios)
    weight = rng.dirichlet(np.ones(len(logs)))
    found, more = reweighted(weight, logs)
    most = np.maximum(weight, len(logs) ** -0.5)
    assert found.sum() == pytest.approx(1.0)
    assert (found <= most * (1.0 + 1e-9)).all()
    exact = weight * np.exp(logs - logs.max())
    assert more <= np.log(exact.sum()) + logs.max() + 1e-9
    exact /= exact.sum()
    if (exact <= most).all():  # nothing to cut
        np.testing.assert_allclose(found, exact, atol=1e-12)
        assert more == pytest.approx(np.log(weight @ np.exp(logs)))
    free = found < most * (1.0 - 1e-9)  # those that were not cut keep their ratios
    np.testing.assert_allclose(found[free] * exact[free].sum(), exact[free] * found[free].sum())


def test_even_points_are_the_first_of_more() -> None:
    few, many = halton_sequence(700, 4), halton_sequence(2000, 4)
    assert few.shape == (700, 4)
    assert 0.0 < few.min()
    assert few.max() < 1.0
    for u in (few, many):  # each tenth of each axis, and each ninth of each pair
        counts = [np.histogram(column, 10, (0.0, 1.0))[0] for column in u.T]
        assert np.abs(np.array(counts) - len(u) / 10).max() <= 7
        pairs = [np.histogram2d(u[:, i], u[:, j], 3)[0] for i in range(4) for j in range(i)]
        assert np.abs(np.array(pairs) - len(u) / 9).max() <= 12


def test_some_points_keep_the_means_and_variances_of_all() -> None:
    rng = np.random.default_rng(3)
    theta, weight = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 3)), rng.gamma(3.0, size=2000)
    every = WeightedPoints(theta, weight / weight.sum(), -1.0, 0.1, 1500.0, "importance sampling")
    some = every.at_most(100)
    assert len(some.weight) <= 100
    assert some.weight.min() >= 0.0
    assert some.weight.sum() == pytest.approx(1.0)
    for power in (1, 2):
        exact = every.weight @ every.theta**power
        assert some.weight @ some.theta**power == pytest.approx(exact, rel=1e-8)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        products = [points.theta[:, i] * points.theta[:, j] for points in (every, some)]
        assert some.weight @ products[1] == pytest.approx(every.weight @ products[0], rel=1e-6)
    assert some.effective_draws == pytest.approx(1.0 / (some.weight @ some.weight))


def test_nodes_of_two_categories_do_not_limit_what_is_said() -> None:
    """They are a quadrature rule, whatever their number: no draws stand behind a number."""
    rng = np.random.default_rng(2)
    raw = [rng.choice(2, 5, p=[1.0 - p, p]).tolist() for p in rng.beta(1.0, 1.3, 30)]
    data = bk.tally(raw, scores={0: 0.0, 1: 0.7})
    closed = bk.evaluate(data, "bayes", difficulty="beta", rng=1)["closed_form"]
    for name in ("bayes", "reach_probability", "mean_p"):
        assert not {"mean_draws", "sd_draws", "interval_draws"} & closed[name].attrs.keys()


def test_one_heavy_tail_does_not_blunt_what_is_said_of_others() -> None:
    rng = np.random.default_rng(1)
    raw = [rng.choice(3, 8, p=p).tolist() for p in rng.dirichlet([300, 300, 400], 100)]
    data = bk.tally(raw, scores={0: 0.0, 1: 0.5, 2: 1.0})
    alone, both = (
        bk.evaluate(data, metrics, prior=bk.priors.DirichletHyperPrior(), rng=1, draws=400)
        for metrics in ("bayes", "bayes max@100")
    )
    for name in ("bayes", "mean_p", "icc"):
        found, other = (each["closed_form"][name].attrs["sd_draws"] for each in (alone, both))
        assert other == pytest.approx(found, rel=0.2)
    assert both["closed_form"]["bayes"].attrs["sd_draws"] > 400
    assert 1.0 <= both["closed_form"]["max_at_k"].attrs["sd_draws"] < 100.0


def test_rounds_together_reach_the_tails_that_the_first_leaves_out() -> None:
    """A logit of a uniform number beside a normal; the first round is too narrow, off both."""
    uniform, normal = Beta(1.0, 1.0), norm(1.0, 0.5)
    first = StudentMixture(np.ones(1), np.full((1, 1), 0.7), np.full((1, 1, 1), 0.3))
    base = BlockwiseMixture([np.array([1]), np.array([0])], [first, first])
    weighted = multiple_importance_sampling(
        base,
        lambda x: uniform.log_density(x[:, :1]) + normal.logpdf(x[:, 1]),
        lambda found: found.effective_draws > 4000.0 and found.k_hat < 0.7,
        2048,
        65_536,
    )
    assert len(weighted.points) < 30_000
    assert weighted.log_evidence == pytest.approx(0.0, abs=0.03)
    p = expit(weighted.points[:, 0])
    for power in (1, 2, 8):  # of a uniform number: 1 / (power + 1)
        mean, spread = 1.0 / (power + 1.0), 1.0 / np.sqrt(2.0 * power + 1.0)
        error = spread / np.sqrt(weighted.effective_draws)
        assert abs(weighted.weight @ p**power - mean) < 5.0 * error
        assert abs(weighted.weight @ (1.0 - p) ** power - mean) < 5.0 * error
    assert weighted.weight @ weighted.points[:, 1] == pytest.approx(1.0, abs=0.04)


def test_a_heavy_shape_of_hardly_uneven_weights_is_no_reason_for_distrust() -> None:
    """The shape of an excess over a threshold is the same at every scale; its harm is not."""
    excess = genpareto(0.9).ppf((np.arange(4096) + 0.5) / 4096)
    points = np.zeros((4096, 1))
    hardly_uneven = _weighted(points, np.log1p(4.0 * excess / excess.max()))
    assert hardly_uneven.k_hat <= 0.0
    assert hardly_uneven.effective_draws > 0.95 * 4096
    assert _weighted(points, np.log1p(excess)).k_hat > 0.7
