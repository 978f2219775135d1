"""Exact leave-one-out and evidence: true refits, brute force, PSIS and sequential Monte Carlo."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import comb, gammaln, logsumexp
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

import bayesatk as bk
from bayesatk.posterior.model import CountModel

DATA = {
    "ragged": ([3, 0, 5, 1, 2, 2], [4, 2, 5, 6, 2, 7]),
    "an outlier": ([64] * 12 + [0], [64] * 13),
    "all right": ([4] * 5, [4] * 5),
    "single trials": ([1, 0, 1, 1, 0, 1, 1], [1] * 7),
    "two": ([3, 1], [4, 4]),
}
POOLINGS = ("none", "partial", "complete")


def _fit(counts, pooling="partial", **options):
    return bk.evaluate(bk.tally(counts), "bayes", pooling=pooling, draws=1000, rng=1, **options)


def _beta_fit(counts, pooling="partial", **options):
    """Of the Beta alone, which is integrated to 1e-8; other families to a few thousandths."""
    family = {"difficulty": "beta"} if pooling == "partial" else {}
    return _fit(counts, pooling, **family, **options)


def _ways(c, n):
    return gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)


@pytest.mark.parametrize("name", ["rat_tumors", "batting_1975", "tau_bench_airline"])
def test_leave_one_out_of_published_data_is_a_ratio_of_evidences(name) -> None:
    c, n = _published(name)

    def evidence(c, n):
        return CountModel.of(
            bk.priors.HyperPrior(families="beta"), np.stack([n - c, c], 1)
        ).log_evidence()

    _equals_refits(np.array(c), np.array(n), "partial", evidence)


def _published(name):
    data = getattr(bk.datasets, name)()
    return data.successes.values[0], data.trials.values[0]


def _equals_refits(c, n, pooling, evidence) -> None:
    found = bk.checks.exact_loo(_beta_fit((c, n), pooling)).elpd_i.values[0]
    whole = evidence(c, n)
    kinds = np.unique(np.stack([c, n]), axis=1, return_index=True)[1]
    for a in kinds:
        keep = np.arange(len(c)) != a
        rest = evidence(c[keep], n[keep])
        assert abs(found[a] - (whole - rest + _ways(c[a], n[a]))) < 1e-4


def test_closed_models_against_scipy() -> None:
    c, n = (np.array(values) for values in DATA["ragged"])
    prior = bk.priors.BetaPrior(2.0, 3.0)
    none = bk.checks.exact_loo(_fit((c, n), "none", prior=prior))
    np.testing.assert_allclose(none.elpd_i.values[0], betabinom(n, 2, 3).logpmf(c), rtol=1e-10)
    assert none.p == pytest.approx(0.0, abs=1e-12)
    complete = bk.checks.exact_loo(_fit((c, n), "complete", prior=prior))
    a, b = 2 + c.sum() - c, 3 + (n - c).sum() - (n - c)
    np.testing.assert_allclose(complete.elpd_i.values[0], betabinom(n, a, b).logpmf(c), rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["partial", "complete"])
def test_importance_sampling_on_both_kinds_of_draws_agrees(pooling) -> None:
    """PSIS on the integrated likelihood; on draws of each question's p it is wrong by hundreds."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.8, 1.2, 300) if pooling == "partial" else 0.4
    data = bk.tally((rng.binomial(16, p, 300), 16))
    options = {"pooling": pooling, "keep": ["p", "log_likelihood"], "rng": 1}
    options |= {"difficulty": "beta"} if pooling == "partial" else {}
    fit = bk.evaluate(data, "bayes", **options)
    sampled = bk.sample(data, "bayes", **options, progress=False)
    exact = bk.checks.exact_loo(fit)
    assert bk.checks.exact_loo(sampled).elpd == exact.elpd
    for tree in (fit, sampled):
        found = az.loo(tree)
        assert abs(found.elpd - exact.elpd) < 0.1
        assert float(found.pareto_k.max()) < 0.7
    if pooling == "partial":
        c = data.successes.values
        latent = fit.copy()
        draws = binom(16, fit["posterior"]["p"].values).logpmf(c)
        group = fit["log_likelihood"].to_dataset()
        latent["log_likelihood"] = group.copy(data={"successes": draws})
        with pytest.warns(UserWarning, match="Pareto"):
            wrong = az.loo(latent)
        assert wrong.elpd - exact.elpd > 100


def test_the_group_is_the_marginal_likelihood_of_each_draw() -> None:
    c, n = (np.array(values) for values in DATA["ragged"])
    for pooling in POOLINGS:
        fit = _beta_fit((c, n), pooling)
        if pooling == "none":
            expected = betabinom(n, 1, 1).logpmf(c)
            group = fit["log_likelihood"]["successes"].values
            np.testing.assert_allclose(group, np.broadcast_to(expected, group.shape), rtol=1e-10)
            continue
        group, draws = fit["log_likelihood"]["successes"], fit["posterior"].to_dataset()
        assert group.dims == ("chain", "draw", "system", "question")
        mean = draws["mean_p"].values[..., None]
        if pooling == "partial":
            total = (1 / draws["icc"].values - 1)[..., None]
            expected = betabinom(n, mean * total, (1 - mean) * total).logpmf(c)
        else:
            expected = binom(n, mean).logpmf(c)
        np.testing.assert_allclose(group.values, expected, rtol=1e-7, atol=1e-7)
    many = bk.tally((np.zeros(300, int), 3))
    assert "log_likelihood" not in bk.evaluate(many, "bayes", rng=1).children
    kept = bk.evaluate(many, "bayes", draws=3, keep=["log_likelihood"], rng=1)
    assert kept["log_likelihood"].sizes["question"] == 300


def test_models_with_and_without_groups_are_compared() -> None:
    counts = [3, 0, 5, 1, 2, 2], 5
    by_group = bk.evaluate(bk.tally(counts, group=list("aabbcc")), "bayes", draws=5, rng=1)
    plain = bk.evaluate(bk.tally(counts), "bayes", difficulty="beta", draws=5, rng=1)
    found = bk.checks.compare_models({"groups": by_group, "plain": plain})
    assert set(found.index) == {"groups", "plain"}


def test_models_are_compared_by_arviz_and_by_evidence() -> None:
    rats = bk.datasets.rat_tumors()
    fits = {name: bk.evaluate(rats, "bayes", pooling=name, draws=20, rng=1) for name in POOLINGS}
    frame = bk.checks.compare_models(fits)
    theirs = az.compare(
        {name: bk.checks.exact_loo(fit) for name, fit in fits.items()}, round_to="none"
    )
    assert list(frame.index) == list(theirs.index) == ["partial", "complete", "none"]
    np.testing.assert_allclose(frame["elpd_diff"], theirs["elpd_diff"], atol=1e-9)
    np.testing.assert_allclose(frame["dse"], theirs["dse"], atol=1e-9)
    assert frame["probability"].sum() == pytest.approx(1.0)
    odds = np.exp(frame["log_evidence"]["complete"] - frame["log_evidence"]["partial"])
    assert frame["probability"]["complete"] / frame["probability"]["partial"] == pytest.approx(odds)
    with pytest.raises(ValueError, match="at least two"):
        bk.checks.compare_models({"one": fits["none"]})
    with pytest.raises(ValueError, match="same data"):
        bk.checks.compare_models({"rats": fits["none"], "other": _fit(([1], [2]), "none")})


def _sequential(data) -> tuple[float, xr.DataTree]:
    with bk.models.build(data):
        trace = pm.sample_smc(
            2000, chains=4, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    stages = trace["sample_stats"]["log_marginal_likelihood"].values
    found = np.array([row[-1] if np.ndim(row) else row for row in stages], float)
    assert np.ptp(found) < 0.4
    return float(found.mean()), trace


@pytest.mark.long
def test_evidence_and_point_nulls_against_sequential_monte_carlo(tmp_path) -> None:
    rng = np.random.default_rng(2)
    counts = rng.binomial(6, rng.beta(2, 2, 25) * np.array([[1.0], [0.7]])), np.full((2, 25), 6)
    data = bk.tally(counts, systems=["a", "b"])
    fit = bk.evaluate(data, "bayes", difficulty="beta", draws=5, rng=1)
    of_counts, trace = _sequential(data)
    apart = of_counts - float(np.log(comb(*counts[::-1])).sum())  # of trials in their order
    assert abs(apart - float(bk.checks.log_evidence(fit).sum())) < 0.2
    # The point null has nothing to sample: its evidence is the likelihood of guessing.
    guessing = float(np.log(0.5) * counts[1].sum())
    chance = float(bk.checks.log_bayes_factor_chance(fit, 0.5).sum())
    assert abs(apart - guessing - chance) < 0.2
    fit["sample_stats"] = trace["sample_stats"]
    again = bk.load_result(bk.save(fit, tmp_path / "smc.nc"))["sample_stats"].to_dataset()
    for name in ("log_marginal_likelihood", "beta", "accept_rate"):
        assert again[name].dtype == float
    kept = again["log_marginal_likelihood"].values[:, -1]
    assert kept.mean() == pytest.approx(of_counts)


def test_ragged_and_textual_statistics_can_be_saved(tmp_path) -> None:
    fit = bk.evaluate([[1, 0]], "bayes", draws=5, rng=1)
    ragged = np.empty(2, object)
    ragged[:] = [[0.1, 1.0], [0.2, 0.5, 1.0]]
    text = np.array([None, "diverged"], object)
    statistics = xr.Dataset({"beta": ("chain", ragged), "message": ("chain", text)})
    fit["sample_stats"] = xr.DataTree(statistics)
    again = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))["sample_stats"].to_dataset()
    np.testing.assert_allclose(again["beta"], [[0.1, 1.0, np.nan], [0.2, 0.5, 1.0]])
    assert again["message"].values.tolist() == ["", "diverged"]


def test_what_cannot_be_saved_leaves_the_old_file_alone(tmp_path) -> None:
    fit = bk.evaluate([[1, 0]], "bayes", draws=5, rng=1)
    path = bk.save(fit, tmp_path / "fit.nc")
    odd = fit.copy()
    mixed = np.array([1, "a", None], object)
    odd["odd"] = xr.DataTree(xr.Dataset({"v": ("x", mixed)}))
    with pytest.raises(ValueError, match=r"numbers and text to be saved.*Nothing was written"):
        bk.save(odd, path)
    assert bk.load_result(path).identical(fit)
    assert [one.name for one in tmp_path.iterdir()] == ["fit.nc"]


def test_point_nulls() -> None:
    c, n = (np.array(values) for values in DATA["ragged"])
    for pooling in POOLINGS:
        fit = _fit((c, n), pooling)
        chance = np.linspace(0.2, 0.5, len(c))
        factor = float(bk.checks.log_bayes_factor_chance(fit, chance)[0])
        null = binom(n, chance).logpmf(c).sum() - _ways(c, n).sum()
        assert factor == pytest.approx(float(bk.checks.log_evidence(fit)[0]) - null, rel=1e-12)
    certain = _fit(([1, 1], [1, 2]), "complete")
    assert float(bk.checks.log_bayes_factor_chance(certain, [1.0, 1.0])[0]) == np.inf


def test_a_coin_of_unknown_bias() -> None:
    """Known to textbooks: the ratio of Beta densities at one half."""
    coin = _fit(([40], [64]), "complete")
    ratio = beta_distribution(1, 1).pdf(0.5) / beta_distribution(41, 25).pdf(0.5)
    assert float(np.exp(bk.checks.log_bayes_factor_chance(coin, 0.5)[0])) == pytest.approx(ratio)
    assert ratio == pytest.approx(1.132, abs=5e-4)


def test_models_with_improper_priors_have_no_probability() -> None:
    rats = bk.datasets.rat_tumors()
    fits = {
        str(a): bk.evaluate(rats, "bayes", prior=bk.priors.HyperPrior(icc=(a, -a)), draws=5, rng=1)
        for a in (0.5, 1.0)
    }
    table = bk.checks.compare_models(fits)
    assert table["probability"].isna().all()
    assert np.isfinite(table["elpd_loo"]).all()
    fits["proper"] = bk.evaluate(rats, "bayes", draws=5, rng=1)
    assert bk.checks.compare_models(fits)["probability"]["proper"] == pytest.approx(1.0)


def test_arviz_takes_models_without_pooling() -> None:
    """Their likelihood is a known constant: no warning, no effective parameter, k far below 0."""
    rats = bk.datasets.rat_tumors()
    fits = {pooling: bk.evaluate(rats, "bayes", pooling=pooling, rng=1) for pooling in POOLINGS}
    found, exact = az.loo(fits["none"], pointwise=True), bk.checks.exact_loo(fits["none"])
    np.testing.assert_allclose(found.elpd_i, exact.elpd_i, rtol=1e-11)
    assert found.p == pytest.approx(0.0, abs=1e-9)
    assert float(found.pareto_k.max()) < 0.0
    table = az.compare(fits, round_to="none")
    assert list(table.index) == ["partial", "complete", "none"]
    own = bk.checks.compare_models(fits)
    np.testing.assert_allclose(
        table["elpd_diff"].abs(), own["elpd_diff"].abs()[table.index], atol=0.1
    )
    mixed = az.compare({"none": exact, "psis": fits["none"]}, round_to="none")
    np.testing.assert_allclose(mixed["elpd_diff"], 0.0, atol=1e-9)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_arviz_takes_questions_that_a_system_never_tried(pooling) -> None:
    runs = {"a": [[1, 0], [None, None]], "b": [[1, 1], [0, 1]]}
    fit = bk.evaluate(bk.tally(runs, missing="ignore"), "bayes", pooling=pooling, rng=1)
    never = az.loo(fit, pointwise=True).elpd_i.sel(system="a", question=1)
    assert float(never) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"group": ["a", "b", "c"] * 10}, {"covariates": ["x"]}])
def test_leaving_out_a_question_keeps_its_earlier_trials(options) -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(2.0, 1.0, 30)
    marks, earlier = (rng.binomial(1, p[:, None], (30, size)) for size in (3, 6))
    data = bk.tally(marks, covariates={"x": rng.normal(size=30)})
    fit = bk.evaluate(data, "pass@1", prior_trials=earlier, prior_weight=0.5, rng=1, **options)
    assert az.loo(fit).elpd == pytest.approx(bk.checks.exact_loo(fit).elpd, abs=0.1)


def test_prior_trials_are_in_the_likelihood_without_pooling() -> None:
    data = bk.tally([[1, 0, 1], [1, 1, 1]])
    options = {"pooling": "none", "rng": 1}
    fit = bk.evaluate(data, "bayes", prior_trials=[[1, 1], [0, 1]], prior_weight=0.5, **options)
    found = az.loo(fit, pointwise=True).elpd_i.values[0]
    expected = betabinom(3, [2.0, 1.5], [1.0, 1.5]).logpmf([2, 3])
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def _prior_draws(family, size):
    """Beta shapes (draws, components), shares, and atoms, drawn straight from the prior."""
    rng = np.random.default_rng(5)
    mean, icc = np.sort(rng.random((size, 2)), axis=1), rng.random((size, 2))
    total = (1 - icc) / icc
    share, atoms = np.tile([1.0, 0.0], (size, 1)), np.zeros((size, 2))
    if family == "inflated":
        drawn = rng.dirichlet([1, 1, 8], size)
        share, atoms = np.stack([drawn[:, 2], np.zeros(size)], axis=1), drawn[:, :2]
    if family == "mixture":
        u = rng.random(size)
        share = np.stack([u, 1 - u], axis=1)
    else:
        mean = rng.random((size, 2))
    return mean * total, (1 - mean) * total, share, atoms


def _log_counts(family, c, n, size=80_000):
    """Log probability of every question's count at draws from the prior; (questions, draws)."""
    a, b, share, atoms = _prior_draws(family, size)
    found = np.empty((len(c), size))
    for i, (right, trials) in enumerate(zip(c, n, strict=True)):
        p = (share * betabinom.pmf(right, trials, np.maximum(a, 1e-9), np.maximum(b, 1e-9))).sum(1)
        found[i] = np.log(p + atoms[:, 0] * (right == 0) + atoms[:, 1] * (right == trials))
    return found


def test_families_against_a_sum_over_draws_from_the_prior() -> None:
    """80,000 draws from each family's prior, weighted by the likelihood: errors below .005.

    Points of the posterior err more: one of them is 2% of the inflated family, and .03 of a
    question's prediction by seven others; such errors add up in the number of parameters.
    """
    c, n = np.array([0, 0, 0, 4, 3, 5, 1, 4]), np.array([4, 5, 4, 4, 5, 5, 4, 6])
    names = ("beta", "inflated", "mixture")
    each = np.concatenate([_log_counts(name, c, n) for name in names], axis=1)
    joint = each.sum(axis=0)
    fit = _fit((c, n), difficulty="averaged")
    found = bk.checks.exact_loo(fit)
    left_out = [logsumexp(joint) - logsumexp(joint - own) for own in each]
    np.testing.assert_allclose(found.elpd_i.values[0], left_out, atol=0.03)
    fitted = [logsumexp(joint + own) - logsumexp(joint) for own in each]
    assert found.p == pytest.approx(np.sum(fitted) - np.sum(left_out), abs=0.05)
    evidence = logsumexp(joint) - np.log(joint.size) - _ways(c, n).sum()
    assert float(bk.checks.log_evidence(fit)[0]) == pytest.approx(evidence, abs=0.05)
    assert bk.checks.log_evidence(fit)[0] == fit["closed_form"]["log_evidence"][0]


@pytest.mark.long
def test_a_question_unlike_all_others_is_predicted_by_a_posterior_of_its_own() -> None:
    """Twelve sure questions and one never solved: the families are integrated again without it."""
    c, n = np.array([64] * 12 + [0]), np.array([64] * 13)
    for difficulty in ("inflated", "mixture", "averaged"):
        found = bk.checks.exact_loo(_fit((c, n), difficulty=difficulty)).elpd_i.values[0]
        whole = bk.checks.log_evidence(_fit((c, n), difficulty=difficulty))
        rest = bk.checks.log_evidence(_fit((c[:-1], n[:-1]), difficulty=difficulty))
        assert found[-1] == pytest.approx(float(whole[0] - rest[0]), abs=0.15)


def test_models_of_different_families_are_compared() -> None:
    """A third of the questions impossible, the others even: the inflated family predicts best."""
    counts = ([0] * 20 + [8] * 40, [16] * 60)
    fits = {name: _fit(counts, difficulty=name) for name in ("beta", "inflated", "averaged")}
    table = bk.checks.compare_models(fits)
    assert list(table.index)[-1] == "beta"
    assert table.loc["inflated", "probability"] > 0.5 > 0.01 > table.loc["beta", "probability"]
