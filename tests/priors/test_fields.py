"""Declared priors against scipy.stats, quadrature and draws."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import bayesatk as bk
from bayesatk.priors.choice import power_scaled
from bayesatk.priors.fields import Beta, Dirichlet, HalfNormal, Normal, StudentT

X = np.linspace(-4.0, 3.0, 29)[:, None]
JACOBIAN = expit(X[:, 0]) * expit(-X[:, 0])
HEAVY = X[:, 0] * np.exp(X[:, 0] ** 2 / 6.0)  # of a Student t with 3 degrees of freedom
SLOPE = np.exp(X[:, 0] ** 2 / 6.0) * (1.0 + X[:, 0] ** 2 / 3.0)
DENSITIES = [
    (Beta(2.0, 0.7), stats.beta(2.0, 0.7).pdf(expit(X[:, 0])) * JACOBIAN),
    (Normal(2.5), stats.norm(0.0, 2.5).pdf(X[:, 0])),
    (StudentT(2.0, 3.0), stats.t(3, scale=2.0).pdf(HEAVY) * SLOPE),
    (HalfNormal(0.6), stats.halfnorm(scale=0.6).pdf(np.exp(X[:, 0])) * np.exp(X[:, 0])),
]
PRIOR = bk.priors.HyperPrior(
    mean=(1.5, 2.0), icc=(1.2, 3.0), atoms=(1.0, 2.0, 6.0), share=(3.0, 1.5), slope_sd=2.0
)


@pytest.mark.parametrize(("field", "density"), DENSITIES)
def test_densities_are_those_of_scipy_with_the_jacobian(field, density) -> None:
    np.testing.assert_allclose(np.exp(field.log_density(X)), density, rtol=1e-12)
    np.testing.assert_allclose(field.coordinates(field.values(X)), X, atol=1e-12)


@pytest.mark.parametrize(
    "field",
    [Beta(0.3, 2.0), Beta(1.0, 1.0), Normal(0.2), HalfNormal(2.0), StudentT(2.0, 3.0)],
)
def test_densities_of_one_coordinate_integrate_to_one(field) -> None:
    x = np.linspace(-80.0, 80.0, 400_001)
    total = np.trapezoid(np.exp(field.log_density(x[:, None])), x)
    assert total == pytest.approx(1.0, abs=1e-8)


def test_shares_have_a_dirichlet_density_that_integrates_to_one() -> None:
    shares = Dirichlet((1.3, 2.0, 4.0))
    x = np.linspace(-25.0, 15.0, 801)
    points = np.stack(np.meshgrid(x, x), axis=-1)
    density = np.exp(shares.log_density(points))
    assert density.sum() * (x[1] - x[0]) ** 2 == pytest.approx(1.0, abs=1e-6)
    values = shares.values(points[400, 380:420])
    np.testing.assert_allclose(shares.coordinates(values), points[400, 380:420], atol=1e-10)
    jacobian = values.prod(axis=-1)
    expected = stats.dirichlet((1.3, 2.0, 4.0)).pdf(values.T) * jacobian
    np.testing.assert_allclose(density[400, 380:420], expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("field", "of"),
    [
        (Beta(2.0, 0.7), stats.beta(2.0, 0.7)),
        (Normal(2.5), stats.norm(0.0, 2.5)),
        (StudentT(2.0, 3.0), stats.t(3, scale=2.0)),
        (HalfNormal(0.6), stats.halfnorm(scale=0.6)),
    ],
)
def test_uniform_numbers_become_quantiles(field, of) -> None:
    u = np.array([1e-6, 0.01, 0.5, 0.9, 1.0 - 1e-7])
    np.testing.assert_allclose(field.values(field.from_uniform(u[:, None])), of.ppf(u), rtol=1e-7)
    assert np.isfinite(field.from_uniform(np.array([[0.0], [1.0]]))).all()


def test_a_beta_is_a_dirichlet_of_two() -> None:
    beta, shares, u = Beta(0.4, 3.0), Dirichlet((0.4, 3.0)), np.linspace(0.0, 1.0, 11)[:, None]
    np.testing.assert_allclose(shares.from_uniform(u), beta.from_uniform(u))
    np.testing.assert_allclose(shares.log_density(X), beta.log_density(X))
    np.testing.assert_allclose(shares.values(X)[:, 0], beta.values(X))


def test_uniform_numbers_become_shares_of_their_dirichlet() -> None:
    u = stats.qmc.Sobol(3, rng=1).random(2**14)
    shape = np.array((1.0, 0.5, 2.0, 5.0))
    shares = Dirichlet(tuple(shape)).values(Dirichlet(tuple(shape)).from_uniform(u))
    mean = shape / shape.sum()
    np.testing.assert_allclose(shares.mean(axis=0), mean, atol=2e-4)
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (shape.sum() + 1.0)
    np.testing.assert_allclose(np.cov(shares.T), covariance, atol=2e-4)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("slopes", [0, 2])
@pytest.mark.parametrize("family", ["beta", "inflated", "mixture"])
def test_fields_of_families(family, slopes, grouped) -> None:
    prior = PRIOR.fields(family, slopes, grouped)
    effects = ["slopes"] * (slopes > 0) + ["group_sd"] * grouped
    names = {
        "beta": ["mean", *effects, "icc"],
        "inflated": ["mean", *effects, "atoms", "icc"],
        "mixture": ["mean", "share", *effects, "icc"],
    }[family]
    assert [field.name for field in prior] == names
    theta = prior.from_uniform(np.random.default_rng(1).random((200, prior.size)))
    drawn = prior.values(theta)
    expected = stats.beta(1.5, 2.0).logpdf(drawn["mean"]) + stats.beta(1.2, 3.0).logpdf(
        drawn["icc"]
    )
    for name in ("mean", "icc"):
        expected = expected + np.log(drawn[name] * (1.0 - drawn[name]))
    if family == "mixture":
        assert (drawn["mean"][:, 0] <= drawn["mean"][:, 1]).all()
        share = drawn["share"]
        expected = expected.sum(axis=1) + np.log(2.0) + stats.beta(3.0, 1.5).logpdf(share)
        expected = expected + np.log(share * (1.0 - share))
    if family == "inflated":
        shares = drawn["atoms"]
        expected = expected + [stats.dirichlet((1.0, 2.0, 6.0)).logpdf(share) for share in shares]
        expected = expected + np.log(shares).sum(axis=1)
    if slopes:
        assert drawn["slopes"].shape == (200, 2)
        expected = expected + stats.norm(0.0, 2.0).logpdf(drawn["slopes"]).sum(axis=1)
    if grouped:
        expected = expected + stats.halfnorm().logpdf(drawn["group_sd"])
        expected = expected + np.log(drawn["group_sd"])
    np.testing.assert_allclose(prior.log_density(theta), expected, rtol=1e-9)


def test_the_means_of_a_mixture_are_in_order() -> None:
    prior = bk.priors.HyperPrior().fields("mixture")
    theta = np.zeros((3, 5))
    theta[:, :2] = [(-1.0, 1.0), (1.0, -1.0), (0.0, 0.0)]
    density = np.exp(prior.log_density(theta))
    assert density[1] == 0.0
    assert density[2] == pytest.approx(2.0 * 0.25**5)
    u = np.array([[0.9, 0.1, 0.3, 0.7, 0.2]])  # means, share, iccs
    drawn = prior.values(prior.from_uniform(u))
    np.testing.assert_allclose(drawn["mean"], [[0.1, 0.9]])
    np.testing.assert_allclose(drawn["icc"], [[0.2, 0.7]])
    np.testing.assert_allclose(drawn["share"], [0.3])


def test_categories_with_groups_and_covariates() -> None:
    prior = bk.priors.DirichletHyperPrior(mean=(1.0, 2.0, 3.0)).fields(3, slopes=1, grouped=True)
    assert [field.name for field in prior] == ["mean", "slopes", "group_sd", "icc"]
    assert prior.size == 5
    drawn = prior.values(prior.from_uniform(np.full((1, 5), 0.5)))
    assert drawn["mean"].shape == (1, 3)
    assert drawn["slopes"].shape == (1, 1)


@pytest.mark.parametrize("family", ["beta", "inflated", "mixture"])
def test_a_scaled_prior_has_the_density_to_a_power(family) -> None:
    before, after = (
        {field.name: field for field in prior.fields(family, 2, True)}
        for prior in (PRIOR, power_scaled(PRIOR, 0.5))
    )
    for name, field in before.items():
        x = np.random.default_rng(2).normal(size=(9, field.size // field.repeats))
        logs, scaled = (f.distribution.log_density(x) for f in (field, after[name]))
        power = 1.0 if name in ("group_sd", "share", "atoms") else 0.5
        np.testing.assert_allclose(np.diff(scaled - power * logs), 0.0, atol=1e-12)


def test_an_improper_icc_is_not_normalised() -> None:
    prior = bk.priors.HyperPrior.bda3().fields("beta")
    assert not prior.proper
    assert bk.priors.HyperPrior().fields("mixture").proper
    assert prior.log_density(np.zeros((1, 2)))[0] == pytest.approx(np.log(0.25))


@pytest.mark.parametrize("kind", [bk.priors.HyperPrior, bk.priors.DirichletHyperPrior])
@pytest.mark.parametrize("name", ["slope_sd", "group_sd"])
def test_scales_of_effects_are_positive(kind, name) -> None:
    with pytest.raises(ValueError, match=f"prior: {name} must be finite and > 0; got -1"):
        kind(**{name: -1.0})
