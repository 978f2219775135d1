"""PyMC twins of the difficulty families: densities, evidence, averages, and p given them."""

import arviz as az
import mpmath
import numpy as np
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor import function, grad
from scipy.special import comb, logsumexp
from scipy.stats import betabinom

import bayesatk as bk
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.models.difficulty_laws import log_rising
from bayesatk.models.evidence import Averaged
from bayesatk.models.question_draws import chosen, difficulty_of, success_p
from bayesatk.models.sampling import _divergences_taken
from bayesatk.priors import DIFFICULTY_FAMILIES
from bayesatk.results.difficulty_draws import difficulty_draws
from tests.conftest import METRICS

AVERAGED = {"difficulty": "averaged", "progress": False}


def draws_of_prior(prior, size: int, rng):
    """Distributions of difficulty from the prior, and the family of each, drawn first."""
    names, chances = zip(*prior.families, strict=True)
    drawn = []
    for name in names:
        fields = prior.fields(name)
        theta = fields.from_uniform(rng.random((size, fields.size)))
        drawn.append(difficulty_of(fields.values(theta)))
    member = rng.choice(len(names), size, p=chances)
    family = np.array([DIFFICULTY_FAMILIES.index(name) for name in names])[member]
    return chosen(drawn, member), family


def test_draws_of_the_prior_have_its_families_and_shapes() -> None:
    prior = bk.priors.HyperPrior(
        families={"beta": 1, "inflated": 2, "mixture": 5}, share=(4.0, 2.0)
    )
    drawn, family = draws_of_prior(prior, 40_000, np.random.default_rng(1))
    counts = np.bincount(family) / len(family)
    np.testing.assert_allclose(counts, [0.125, 0.25, 0.625], atol=5 * 0.5 / 200)
    np.testing.assert_allclose(drawn.share.sum(1) + drawn.atoms.sum(1), 1.0)
    mixture, inflated = family == 2, family == 1
    assert (drawn.mean[mixture, 0] < drawn.mean[mixture, 1]).all()
    # Order statistics of two uniforms have means 1/3 and 2/3.
    np.testing.assert_allclose(drawn.mean[mixture].mean(0), [1 / 3, 2 / 3], atol=0.01)
    assert drawn.share[mixture, 0].mean() == pytest.approx(2 / 3, abs=0.01)
    assert drawn.atoms[inflated, 0].mean() == pytest.approx(0.1, abs=0.01)
    assert not drawn.atoms[~inflated].any()
    assert not drawn.share[~mixture, 1].any()


def test_p_given_a_difficulty_is_conjugate() -> None:
    """Shares of the atoms, and the mean within each Beta, by Bayes' rule in exact arithmetic."""
    size = 60_000
    parts = ([0.2, 0.8], [0.3, 0.2], [0.5, 0.2], [0.2, 0.1])
    one = Nodes.of_moments(*(np.tile(part, (size, 1)) for part in parts))
    rng = np.random.default_rng(2)
    a, b = one.alpha[0], one.beta[0]
    for c, n in [(0, 2), (2, 2), (3, 5)]:
        marginal = one.share[0] * betabinom.pmf(c, n, a, b)
        ends = np.array([0.2 * (c == 0), 0.1 * (c == n)])
        total = marginal.sum() + ends.sum()
        found = success_p(one, np.array([n - c, c], float), 1, rng)[:, 0]
        for end, value in zip(ends / total, (0.0, 1.0), strict=True):
            assert (found == value).mean() == pytest.approx(end, abs=5 * 0.5 / np.sqrt(size))
        mean = (marginal @ ((a + c) / (a + b + n)) + ends[1]) / total
        assert found.mean() == pytest.approx(mean, abs=5 * 0.5 / np.sqrt(size))


@pytest.fixture(scope="module")
def data() -> bk.Outcomes:
    """A system with impossible questions, and one whose questions are all alike."""
    rng = np.random.default_rng(4)
    p = np.where(np.arange(25) < 8, 0.0, rng.beta(20, 12, 25))
    return bk.tally(
        np.stack([rng.binomial(8, p), rng.binomial(8, 0.4, 25)]),
        trials=np.full((2, 25), 8),
        systems=["zeros", "alike"],
    )


@pytest.fixture(scope="module")
def sampled(data):
    keep = ["p", "log_likelihood", "predictive"]
    return bk.sample(data, "pass@1,16", keep=keep, rng=6, **AVERAGED)


def _evidence_by_prior_draws(prior, c, n, size: int = 400_000) -> tuple[float, float]:
    """Mean likelihood of trials in their order over draws of the prior, as a log, and its error."""
    rng, logs = np.random.default_rng(8), []
    for _ in range(10):
        drawn, _ = draws_of_prior(prior, size // 10, rng)
        logs.append(drawn.log_likelihood(c, n - c).sum(axis=1))
    values = np.concatenate(logs)
    weight = np.exp(values - values.max())
    error = weight.std() / weight.mean() / np.sqrt(size)
    return float(logsumexp(values) - np.log(size)), float(error)


@pytest.mark.long
def test_evidence_is_the_mean_likelihood_under_the_prior() -> None:
    """Against 400,000 draws of the prior, which share nothing with bridge sampling but the data."""
    counts = np.array([[0, 2, 3, 0], [1, 1, 2, 1]])
    small = bk.tally(counts, trials=np.full((2, 4), 3))
    table = bk.sample(small, "pass@1", rng=3, **AVERAGED)["families"]
    for family in DIFFICULTY_FAMILIES:
        for system, c in enumerate(counts):
            prior = bk.priors.HyperPrior(families=family)
            expected, error = _evidence_by_prior_draws(prior, c, np.full(4, 3))
            own = table.sel(family=family).isel(system=system)
            allowed = 4.5 * np.hypot(error, float(own["family_log_evidence_error"]))
            assert float(own["family_log_evidence_error"]) < 0.02
            assert abs(float(own["family_log_evidence"]) - expected) < allowed


@pytest.mark.long
def test_evidence_of_the_beta_is_the_exact_one(sampled, data) -> None:
    exact = bk.checks.log_evidence(bk.evaluate(data, "bayes", difficulty="beta"))
    own = sampled["families"].to_dataset().sel(family="beta")
    z = (own["family_log_evidence"] - exact) / own["family_log_evidence_error"]
    assert float(np.abs(z).max()) < 4.5


@pytest.mark.long
def test_evidence_of_atoms_is_the_known_one() -> None:
    """Mean and icc all but fixed at .4 and .3: known from two-dimensional adaptive quadrature."""
    counts = np.repeat([0, 8, 4], [9, 3, 18])
    scale = 1e6
    prior = bk.priors.HyperPrior((0.4 * scale, 0.6 * scale), (0.3 * scale, 0.7 * scale))
    families = {"beta": 1e-3, "inflated": 1.0}
    sampled = bk.sample(
        (counts, 8), "pass@1", prior=prior, difficulty=families, rng=1, progress=False
    )
    found = sampled["families"].to_dataset().isel(system=0).sel(family="inflated")
    middle = 18 * (betabinom.logpmf(4, 8, 0.4 * 7 / 3, 0.6 * 7 / 3) - np.log(70.0))
    z = (float(found["family_log_evidence"]) - middle + 23.546224280049) / found[
        "family_log_evidence_error"
    ]
    assert abs(float(z)) < 4.5
    assert float(found["family_log_evidence_error"]) < 0.02


@pytest.mark.long
def test_families_are_weighed_by_prior_and_evidence(sampled) -> None:
    table = sampled["families"].to_dataset()
    weight = np.exp(table["family_log_evidence"] - table["family_log_evidence"].max("family"))
    np.testing.assert_allclose(table["family_probability"], weight / weight.sum("family"))
    assert float(table["family_probability"].sel(system="zeros", family="beta")) < 0.05
    assert float(table["family_probability"].sel(system="alike", family="beta")) > 0.3
    draws = sampled["difficulty"]["family"]
    size = draws.sizes["chain"] * draws.sizes["draw"]
    for index, family in enumerate(DIFFICULTY_FAMILIES):
        share = (draws == index).mean(("chain", "draw"))
        chance = table["family_probability"].sel(family=family)
        error = np.sqrt(chance * (1 - chance) / size) + 1e-9
        assert (np.abs(share - chance) < 4.5 * error + 0.5 / size).all()
    posterior = sampled["posterior"].to_dataset()
    assert float(az.rhat(posterior[["mean_p", "icc", "pass_at_k"]]).to_array().max()) < 1.03


@pytest.mark.long
def test_draws_are_whole_difficulty_distributions(sampled, data, tmp_path) -> None:
    posterior = sampled["posterior"].to_dataset()
    group = sampled["difficulty"].to_dataset()
    assert group["share"].dims == ("chain", "draw", "system", "component")
    total = group["share"].sum("component") + group["never"] + group["always"]
    np.testing.assert_allclose(total, 1.0)
    inflated, mixture = group["family"] == 1, group["family"] == 2
    assert bool((group["never"].where(~inflated, 0.0) == 0.0).all())
    assert bool((group["share"].sel(component="upper").where(~mixture, 0.0) == 0.0).all())
    gap = group["mean"].sel(component="upper") - group["mean"].sel(component="lower")
    assert bool((gap >= 0.0).all())
    np.testing.assert_array_equal(posterior["never_solved"], group["never"])
    for system in range(2):
        mean, _, icc, _ = difficulty_draws(sampled, system).overall()
        np.testing.assert_allclose(posterior["mean_p"].values[:, :, system].ravel(), mean)
        np.testing.assert_allclose(posterior["icc"].values[:, :, system].ravel(), icc)
    population = posterior["pass_at_k"].sel(target="population", k=1)
    np.testing.assert_allclose(population, posterior["mean_p"])
    never = posterior["p"] == 0.0
    solved = xr.DataArray(data.successes.values > 0, dims=("system", "question"))
    assert not bool(never.where(solved.values, False).any())
    assert float(never.sel(system="zeros").mean()) > 0.15
    fit = bk.evaluate(data, "pass@1,16", keep=["p"], rng=1)
    for name in ("posterior", "difficulty"):
        ours, theirs = fit[name].to_dataset(), sampled[name].to_dataset()
        assert set(ours.data_vars) == set(theirs.data_vars)
        assert all(ours[one].dims == theirs[one].dims for one in ours.data_vars)
    loaded = bk.load_result(bk.save(sampled, tmp_path / "fit.nc"))
    xr.testing.assert_equal(loaded["difficulty"].to_dataset(), group)


@pytest.mark.long
def test_likelihoods_and_replicates_are_of_the_drawn_difficulties(sampled, data) -> None:
    difficulty = difficulty_draws(sampled, 0)
    c, n = data.successes.values[0], data.trials.values[0]
    logs = sampled["log_likelihood"]["successes"].isel(system=0).values.reshape(-1, len(c))
    ways = np.log(comb(n, c))
    np.testing.assert_allclose(logs, difficulty.log_likelihood(c, n - c) + ways, atol=1e-9)
    drawn = sampled["posterior_predictive"]["successes"].isel(system=0)
    expected = np.exp(difficulty.log_likelihood(np.array([0]), np.array([8]))).mean()
    share = float((drawn == 0).mean())
    assert share == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(drawn.size / 4))
    assert {"log_prior", "prior", "prior_predictive"} <= set(sampled.children)
    assert float((sampled["prior"]["never_solved"] == 0.0).mean()) == pytest.approx(2 / 3, abs=0.1)
    assert not bk.checks.criticise(sampled, rng=1).set_index("system").loc["zeros", "flagged"].any()
    baseline = bk.guessing.random_baseline(sampled, 0.1, t=3, rng=1)
    assert "random_baseline" in baseline.children


@pytest.mark.long
@pytest.mark.parametrize("family", ["inflated", "mixture", "averaged"])
def test_closed_forms_agree_with_their_twins(data, family) -> None:
    """To a tenth of a posterior sd: the closed form integrates on a thousand weighted points."""
    long = {"draws": 2000, "tune": 1500, "progress": False}
    sampled = bk.sample(data, METRICS, difficulty=family, rng=3, **long)
    fit = bk.evaluate(data, METRICS, difficulty=family, rng=1)
    table = bk.verify(fit, sampled).table
    assert {"mean_p", "icc"} <= set(table["variable"])
    assert ("never_solved" in set(table["variable"])) == (family != "mixture")
    gap = (table["sampled_mean"] - table["exact_mean"]).abs() / table["exact_sd"]
    assert gap.max() < 0.15, table[gap > 0.15].to_string()
    assert table["rhat"].max() < 1.03  # of two modes, seldom changed between
    if family == "averaged":
        ours, theirs = fit["closed_form"].to_dataset(), sampled["families"].to_dataset()
        for name in ("family_log_evidence", "family_probability"):
            assert float(np.abs(ours[name] - theirs[name]).max()) < 0.1


def test_what_has_no_families_is_refused() -> None:
    data = [[1, 0, 1], [0, 0, 1]]
    quiet = {"progress": False}
    with pytest.raises(ValueError, match="difficulty must be left out"):
        bk.sample(data, "pass@1", pooling="none", difficulty="beta", **quiet)
    with pytest.raises(ValueError, match="difficulty must be 'averaged', or one"):
        bk.sample(data, "pass@1", difficulty="normal", **quiet)
    with pytest.raises(ValueError, match="difficulty must be 'beta' under an improper prior"):
        bk.models.build(data, prior=bk.priors.HyperPrior.bda3(), difficulty="mixture")
    with pytest.raises(ValueError, match="difficulty must be left out"):
        bk.models.build(data, pooling="none", difficulty="inflated")
    with pytest.raises(ValueError, match=r"difficulty must be .*'averaged'"):
        bk.models.build(data, difficulty="averaged")


@pytest.mark.parametrize("n", [0.0, 1.0, 3.0, 50.5, 2000.0])
def test_rising_factorials_and_their_slopes_are_right_at_any_size(n) -> None:
    """Where parameters are huge, log-gammas would leave rounding errors of hundreds of nats."""
    a, by = pt.dvector(), pt.dvector()
    found = log_rising(a, by)
    both = function([a, by], [found, grad(found.sum(), a)])
    sizes = np.concatenate([10.0 ** np.arange(-100, 20, 7), [9999.0, 1e4, 10001.0, 1e12]])
    value, slope = both(sizes, np.full(len(sizes), n))
    for size, one, its_slope in zip(sizes, value, slope, strict=True):
        with mpmath.workdps(60):
            base = mpmath.mpf(size)
            exact = mpmath.loggamma(base + n) - mpmath.loggamma(base)
            exact_slope = mpmath.digamma(base + n) - mpmath.digamma(base)
        assert one == pytest.approx(float(exact), rel=2e-12, abs=1e-12)
        assert its_slope * size == pytest.approx(float(exact_slope * base), rel=1e-10, abs=1e-10)


def test_divergences_go_with_the_draws_that_were_taken() -> None:
    """Two chains of two draws, two systems; Betas are the family 0, mixtures the family 2."""
    flags = {"beta": [[1, 1], [0, 0]], "mixture": [[0, 0], [1, 0]], "inflated": [[0, 0], [0, 1]]}
    traces = {
        name: xr.DataTree.from_dict(
            {"sample_stats": xr.Dataset({"diverging": (("chain", "draw"), np.array(values, bool))})}
        )
        for name, values in flags.items()
    }
    family = np.array([[0, 2], [2, 2], [0, 2], [0, 0]])
    found = _divergences_taken(Averaged([], family), traces)
    assert found["diverging"].values.tolist() == [[True, False], [True, False]]
