"""`evaluate`: schema, laws between quantities, draws against exact statistics, ArviZ, files."""

import json
from dataclasses import replace

import arviz as az
import numpy as np
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.metrics.grid import parse
from bayesatk.posterior.posterior import FamilyShare
from bayesatk.posterior.remarks import family_note

# For what is not about families: averaged over them, partial pooling costs three times as much.
ONE_FAMILY = {"partial": {"difficulty": "beta"}, "none": {}, "complete": {}}


def test_schema(fit) -> None:
    posterior, closed = fit["posterior"].to_dataset(), fit["closed_form"].to_dataset()
    assert posterior["pass_at_k"].dims == ("chain", "draw", "system", "k", "target")
    assert posterior["g_pass_at_k"].dims == ("chain", "draw", "system", "k", "tau", "target")
    assert posterior["bayes"].dims == ("chain", "draw", "system", "target")
    assert closed["pass_at_k"].dims == ("system", "k", "target", "statistic")
    assert posterior.sizes["chain"] == 4
    assert posterior.sizes["draw"] == 1000
    assert posterior["k"].values.tolist() == [1, 3, 4]
    checks = {"prior", "posterior_predictive", "prior_predictive"}
    checks |= {"log_prior"}
    more = {"partial": checks | {"difficulty"}, "complete": checks, "none": checks}
    assert set(fit.children) == more[bk.Result.of(fit).pooling] | {
        "posterior",
        "closed_form",
        "closed_form_quantiles",
        "observed_data",
        "constant_data",
        "log_likelihood",
        "joint_posterior",
    }
    assert all(isinstance(value, str | int | float) for value in fit.attrs.values())
    assert json.loads(fit.attrs["versions"])["bayesatk"] == bk.__version__
    assert fit.attrs["seed"] == "5"


def test_draws_agree_with_exact_statistics(fit) -> None:
    closed, posterior = fit["closed_form"].to_dataset(), fit["posterior"].to_dataset()
    size = posterior.sizes["chain"] * posterior.sizes["draw"]
    for name in closed.data_vars:
        if "statistic" not in closed[name].dims or name not in posterior:
            continue
        mean, sd = (closed[name].sel(statistic=word) for word in ("mean", "sd"))
        drawn = posterior[name]
        worth = 1.0 / (1.0 / size + 1.0 / closed[name].attrs.get("mean_draws", np.inf))
        z = (drawn.mean(("chain", "draw")) - mean) / (sd / np.sqrt(worth)).where(sd > 0, 1.0)
        assert float(np.abs(z).max()) < 4.5, name
        ratio = (drawn.std(("chain", "draw")) / sd.where(sd > 0)).fillna(1.0)
        if name in ("never_solved", "always_solved"):  # zero in most draws
            assert float(np.abs(ratio - 1).max()) < 0.25, name
            continue
        assert float(np.abs(ratio - 1).max()) < 0.08, name
        low, high = (closed[name].sel(statistic=f"ci_{end}") for end in ("lower", "upper"))
        inside = ((drawn >= low) & (drawn <= high)).mean(("chain", "draw"))
        inside = inside.where((sd > 0) & low.notnull(), 0.95)
        assert float(np.abs(inside - 0.95).max()) < 4.5 * np.sqrt(0.95 * 0.05 / worth), name


def test_closed_form_does_not_depend_on_the_seed(ragged) -> None:
    metrics = "pass@4 maj@3 bayes"
    first, second = (bk.evaluate(ragged, metrics, rng=seed)["closed_form"] for seed in (1, 2))
    xr.testing.assert_identical(first.to_dataset(), second.to_dataset())


def test_same_seed_same_draws(ragged) -> None:
    one, two = (
        bk.evaluate(ragged, "pass@2", difficulty="beta", rng=9)["posterior"] for _ in range(2)
    )
    xr.testing.assert_equal(one.to_dataset(), two.to_dataset())


def test_generator_is_accepted_and_recorded(ragged) -> None:
    fit = bk.evaluate(ragged, "pass@2", difficulty="beta", rng=np.random.default_rng(0))
    assert fit.attrs["seed"] == "caller's PCG64"


def test_laws_between_metrics(fit) -> None:
    closed = fit["closed_form"].to_dataset()
    mean = closed.sel(statistic="mean")
    one = mean["pass_at_k"].sel(k=1, drop=True)
    for name in ("pass_hat_k", "maj_at_k", "auc_at_k"):
        xr.testing.assert_allclose(one, mean[name].sel(k=1, drop=True), rtol=1e-9)
    xr.testing.assert_allclose(one, mean["bayes"], rtol=1e-9)
    assert bool((mean["pass_hat_k"] <= mean["maj_at_k"] + 1e-9).all())
    assert bool((mean["maj_at_k"] <= mean["pass_at_k"] + 1e-9).all())
    lower, upper = (closed["pass_at_k"].sel(statistic=f"ci_{end}") for end in ("lower", "upper"))
    lower, upper = lower.sel(k=[1, 4]), upper.sel(k=[1, 4])  # as asked for
    centre = closed["pass_at_k"].sel(statistic="mean", k=[1, 4])
    assert bool(((lower < centre) & (centre < upper)).all())
    assert bool(((lower >= 0) & (upper <= 1)).all())


def test_what_was_not_asked_has_moments_and_an_interval_as_well(ragged) -> None:
    for pooling in ("partial", "none", "complete"):
        known = {"pooling": pooling, "rng": 1} | ONE_FAMILY[pooling]
        fit = bk.evaluate(ragged, "pass@1,4 pass^2", **known)
        cell = fit["closed_form"]["pass_at_k"].sel(k=2, target="questions")
        told = ["mean", "sd", "ci_lower", "ci_upper", "ci_error"]
        assert bool(cell.sel(statistic=told).notnull().all())
        assert bool((cell.sel(statistic="ci_error") > 0.0).all())
        alone = bk.evaluate(ragged, "pass@2", **known)["closed_form"]["pass_at_k"]
        expected = alone.sel(k=2, target="questions", statistic="mean")
        xr.testing.assert_allclose(cell.sel(statistic="mean"), expected, rtol=1e-9)
        assert not bk.table(fit)[["ci_lower", "ci_upper", "sd"]].isna().any(axis=None)


def test_population_is_never_surer_than_the_questions_behind_it(fit) -> None:
    closed = fit["closed_form"].to_dataset()
    total = closed["bayes"].sel(statistic="sd") ** 2
    parts = closed["bayes"].sel(statistic="variance_trial") + closed["bayes"].sel(
        statistic="variance_question"
    )
    xr.testing.assert_allclose(total.drop_vars("statistic"), parts, rtol=1e-9)
    question = closed["bayes"].sel(statistic="variance_question")
    assert float(np.abs(question.sel(target="questions")).max()) == 0.0
    if bk.Result.of(fit).pooling != "complete":
        assert bool((question.sel(target="population") > 0).all())


def test_published_pass_hat_of_tau_bench() -> None:
    fit = bk.evaluate(bk.datasets.tau_bench_airline(), "pass^1,2,3,4", difficulty="beta", rng=1)
    estimate = fit["closed_form"]["pass_hat_k"].sel(statistic="estimate", target="questions")
    assert estimate.values.ravel().round(3).tolist() == [0.42, 0.273, 0.22, 0.2]


def test_estimate_is_nan_beyond_the_trials_and_the_posterior_is_not() -> None:
    fit = bk.evaluate([[1, 0, 1], [1, 1], [0, 0]], "pass@2,3", rng=1)
    closed = fit["closed_form"]["pass_at_k"].sel(system="system", target="questions")
    assert np.isnan(closed.sel(statistic="estimate", k=3))
    assert not np.isnan(closed.sel(statistic="estimate", k=2))
    assert 0 < float(closed.sel(statistic="mean", k=3)) < 1
    assert np.isnan(closed.sel(statistic="prior_sensitivity", k=2))
    assert float(closed.sel(statistic="prior_sensitivity", k=3)) > 0


@pytest.mark.parametrize(
    ("pooling", "weaker"),
    [
        ("partial", bk.priors.HyperPrior((0.5, 0.5), (0.5, 0.5), families="beta")),
        ("partial", bk.priors.HyperPrior((0.5, 0.5), (0.5, 0.5))),
        ("none", bk.priors.BetaPrior(0.5, 0.5)),
    ],
)
def test_prior_sensitivity_is_a_ratio_of_sds(ragged, pooling, weaker) -> None:
    strong = replace(weaker, mean=(1.0, 1.0), icc=(1.0, 1.0)) if pooling == "partial" else None
    several = pooling == "partial" and len(weaker.families) > 1
    one, other = (
        bk.evaluate(ragged, "pass@12", pooling=pooling, prior=prior, rng=1)["closed_form"][
            "pass_at_k"
        ].squeeze("k")
        for prior in (strong, weaker)
    )
    given = one.sel(statistic="prior_sensitivity")
    expected = other.sel(statistic="sd") / one.sel(statistic="sd")
    # Of several families both are ratios of sds of weighted points.
    np.testing.assert_allclose(given, expected, rtol=0.06 if several else 1e-6)


def test_flat_prior_of_the_parity_functions_is_pooling_none() -> None:
    matrix = np.random.default_rng(0).integers(0, 2, (20, 6))
    fit = bk.evaluate(matrix, "maj@3", pooling="none", rng=1)
    row = fit["closed_form"]["maj_at_k"].sel(target="questions", k=3).squeeze()
    mu, sigma, *_ = bk.published.maj_at_k_ci(matrix, 3)
    np.testing.assert_allclose(row.sel(statistic=["mean", "sd"]), [mu, sigma], rtol=1e-12)


def test_hdi_is_shorter_and_covers_as_much(ragged) -> None:
    eti, hdi = (
        bk.evaluate(ragged, "pass@4", difficulty="beta", ci_kind=kind, rng=1)
        for kind in ("eti", "hdi")
    )

    def width(tree):
        values = tree["closed_form"]["pass_at_k"]
        return values.sel(statistic="ci_upper") - values.sel(statistic="ci_lower")

    assert bool((width(hdi) <= width(eti) + 1e-6).all())
    closed = hdi["closed_form"]["pass_at_k"]
    low, high = (closed.sel(statistic=f"ci_{end}") for end in ("lower", "upper"))
    draws = hdi["posterior"]["pass_at_k"]
    share = ((draws >= low) & (draws <= high)).mean(("chain", "draw"))
    assert float(np.abs(share - 0.95).max()) < 0.02


def test_many_questions_are_drawn_as_sums() -> None:
    rng = np.random.default_rng(8)
    successes = rng.binomial(16, rng.beta(0.4, 0.7, 30_000))
    for pooling in ("partial", "none"):
        fit = bk.evaluate(
            (successes, 16), "pass@1,8 pass^8", pooling=pooling, rng=1, **ONE_FAMILY[pooling]
        )
        closed, posterior = fit["closed_form"].to_dataset(), fit["posterior"].to_dataset()
        for name in ("pass_at_k", "pass_hat_k"):
            mean, sd = (closed[name].sel(statistic=word) for word in ("mean", "sd"))
            z = (posterior[name].mean(("chain", "draw")) - mean) / sd
            assert float(np.abs(z).max()) < 4.5 / np.sqrt(4000)
            ratio = posterior[name].std(("chain", "draw")) / sd
            assert float(np.abs(ratio - 1).max()) < 0.06
        joint = posterior["pass_at_k"].sel(target="questions", system="system")
        first, second = (joint.sel(k=k).values.ravel() for k in (1, 8))
        assert np.corrcoef(first, second)[0, 1] > 0.3


def test_the_flat_prior_is_spoken_of_where_it_was_asked_for() -> None:
    rng = np.random.default_rng(0)
    data = bk.tally(rng.binomial(1, 0.904, 1000), trials=1)
    (single,) = bk.evaluate(data, "pass@1", difficulty="beta", draws=10, rng=1).notes
    assert "intervals on these questions rest on the prior" in single
    (note,) = bk.evaluate(data, "pass@1", pooling="none", draws=10, rng=1).notes
    assert "independent" in note
    assert "few trials and many questions" in note
    assert "lies outside its interval" in note
    many = bk.tally(rng.binomial(64, 0.5, 20), trials=64)
    assert bk.evaluate(many, "pass@1", pooling="none", draws=10, rng=1).notes == []


def test_arviz_works_on_it(fit) -> None:
    # mG-Pass@1 is zero by definition, and R-hat of a constant is 0/0.
    varying = fit.copy()
    varying["posterior"] = fit["posterior"].to_dataset().drop_vars("mg_pass_at_k")
    assert not az.diagnose(varying, show_diagnostics=False)
    summary = az.summary(fit, var_names=["pass_at_k"], kind="all")
    assert len(summary) == 12
    assert float(summary["r_hat"].astype(float).max()) < 1.01
    hdi = az.hdi(fit, var_names=["bayes"], prob=0.9)
    assert "bayes" in hdi["posterior"] if "posterior" in getattr(hdi, "children", {}) else hdi
    assert az.extract(fit, var_names=["bayes"]).sizes["sample"] == 4000


def test_groups_are_plain_netcdf_groups(tmp_path) -> None:
    fit = bk.evaluate([[1, 0], [1, 1]], "bayes", pooling="none", rng=1)
    path = bk.save(fit, tmp_path / "fit.nc")
    with xr.open_dataset(path, group="posterior", engine="h5netcdf") as group:
        assert group["bayes"].dims == ("chain", "draw", "system", "target")
    assert "posterior" in az.from_netcdf(path, engine="h5netcdf").children


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "some"}, "pooling must be"),
        ({"ci_prob": 95}, "ci_prob must lie strictly between 0 and 1; got 95"),
        ({"ci_kind": "hpd"}, "ci_kind must be"),
        ({"draws": 0}, "draws must be an integer >= 2"),
        ({"keep": "p"}, "keep must be a sequence"),
        ({"prior": bk.priors.BetaPrior()}, "prior for pooling='partial' must be a HyperPrior"),
        ({"rng": -1}, "rng must be an integer >= 0"),
    ],
)
def test_bad_options_are_refused(options, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        bk.evaluate([[0, 1]], "pass@1", **options)


def test_improper_posterior_is_refused() -> None:
    with pytest.raises(ValueError, match="improper"):
        bk.evaluate(([1], 1), "pass@1", prior=bk.priors.HyperPrior.bda3())


@pytest.mark.parametrize("bad", [42, xr.DataTree()])
def test_only_results_are_tabulated_and_saved(bad, tmp_path) -> None:
    for call in (lambda: bk.table(bad), lambda: bk.save(bad, tmp_path / "x.nc")):
        with pytest.raises(TypeError, match="fit must be a DataTree made by"):
            call()


def test_file_types_are_checked(fit, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.nc or \.zarr"):
        bk.save(fit, tmp_path / "fit.txt")
    with pytest.raises(FileNotFoundError):
        bk.load_result(tmp_path / "none.nc")


@pytest.mark.parametrize("pooling", ["partial", "none", "complete"])
def test_questions_own_posteriors(ragged, pooling) -> None:
    fit = bk.evaluate(ragged, "bayes", pooling=pooling, keep=["p"], rng=1, **ONE_FAMILY[pooling])
    draws, exact = fit["posterior"]["p"], fit["closed_form"]["p"]
    mean, sd = exact.sel(statistic="mean"), exact.sel(statistic="sd")
    worth = 1.0 / (1.0 / 4000 + 1.0 / fit["closed_form"]["bayes"].attrs.get("mean_draws", np.inf))
    z = (draws.mean(("chain", "draw")) - mean) / (sd / np.sqrt(worth))
    assert float(np.abs(z).max()) < 4.5
    assert float(np.abs(draws.std(("chain", "draw")) / sd - 1).max()) < 0.1
    # The metric draws are functions of the very same p.
    own = fit["posterior"]["bayes"].sel(target="questions")
    xr.testing.assert_allclose(draws.mean("question"), own.drop_vars("target"), rtol=1e-10)
    assert bk.verify(fit, fit.drop_nodes("closed_form")).verdict == "agree"


_GRADES = {"a": 0.0, "b": 0.5, "c": 1.0}


@pytest.mark.parametrize(
    ("data", "metric", "means", "variance", "tolerance"),
    [
        (bk.tally([[1], [0]]), "bayes", (2 / 3, 1 / 3), 1 / 18, 1e-12),
        (bk.tally([["c"], ["a"]], scores=_GRADES), "bayes", (0.625, 0.375), 0.034375, 1e-12),
        (
            bk.tally([[1], [0]], answers=[["x"], ["y"]]), "plurality@1",
            (2 / 3, 1 / 4), None, 0.03,
        ),
    ],
)  # fmt: skip
def test_bootstrap_variance_of_two_questions(data, metric, means, variance, tolerance) -> None:
    """One weight W is uniform: Var = Var(mean) + E(g_1 - g_2)^2 Var(W), with Var(W) = 1/12."""
    # Votes: Dirichlet(2, 1) right first; Dirichlet(2, 1, 1) with the right answer unseen.
    own = (variance, variance) if variance else (1 / 18, 1 / 4 * 3 / 4 / 5)
    fit = bk.evaluate(data, metric, pooling="none", rng=1)
    row = bk.table(fit).set_index("target").loc["population"]
    gap = (means[0] - means[1]) ** 2 + sum(own)
    assert row["mean"] == pytest.approx(np.mean(means), abs=1e-12)
    assert row["sd"] ** 2 == pytest.approx(sum(own) / 4 + gap / 12, rel=tolerance)


def test_an_estimate_outside_its_interval_is_told() -> None:
    runs = bk.datasets.tau_bench_airline()
    said = bk.evaluate(runs, "pass@1 pass^4", pooling="complete", rng=1).notes
    assert any("pass^4, 0.200, lies outside its interval" in one for one in said)
    assert any("Use pooling='partial'" in one for one in said)
    for pooling in ("none", "partial"):
        fit = bk.evaluate(runs, "pass@1 pass^4", pooling=pooling, rng=1, **ONE_FAMILY[pooling])
        said = fit.notes
        assert not any("outside" in one for one in said)


def test_notes_name_the_shapes_and_say_when_weights_cannot_be_trusted() -> None:
    """Even one probable family is named where a metric goes beyond the trials."""
    sure = {"beta": FamilyShare(0.99, 0.0, -1.0, np.nan), "mixture": FamilyShare(0.01, 0, -6, 0.9)}
    assert family_note("a", sure, parse("pass@4"), 4) == []
    shares, beyond = family_note("a", sure, parse("pass@4,8"), 4)
    assert shares == "a: difficulty is averaged over shapes that are as probable as: Beta 99%."
    assert beyond.startswith("a: difficulty families matter for the interval of pass@8, ")
    unsure = sure | {"mixture": FamilyShare(0.4, 0.0, -1.4, 0.9)}
    shares, _, weights = family_note("a", unsure, parse("pass@8"), 4)
    assert shares == (
        "a: difficulty is averaged over shapes that are as probable as: Beta 99%, mixture of two "
        "Betas 40%."
    )
    assert "Pareto k 0.90, above 0.7" in weights
    assert family_note("a", {"beta": FamilyShare(1.0, 0.0, -1.0, np.nan)}, parse("pass@8"), 4) == []


def test_averaged_results_hold_what_their_families_rest_on() -> None:
    fit = bk.evaluate([[0, 1, 1], [1, 1, 0], [0, 0, 0]], "pass@2", draws=10, rng=1)
    found = fit["closed_form"]["family_pareto_k"].isel(system=0)
    assert np.isnan(found.sel(family="beta"))
    assert (found.sel(family=["inflated", "mixture"]) < 0.7).all()
