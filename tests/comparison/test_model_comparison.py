"""Exact leave-one-out and evidence: true refits, brute force and importance sampling."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.special import gammaln
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

import bayesatk as bk
from tests.golden.test_witness import BATCHES, DRAWS, IN_GROUPS, SMALL, Simulated

DATA = ([3, 0, 5, 1, 2, 2], [4, 2, 5, 6, 2, 7])  # right, of trials
POOLINGS = ("none", "partial", "complete")


def _fit(counts, pooling="partial", **options):
    return bk.evaluate(bk.tally(counts), "bayes", pooling=pooling, draws=1000, rng=1, **options)


def _beta_fit(counts, pooling="partial"):
    """Of the Beta alone, which is integrated to 1e-8; other families to a few thousandths."""
    return _fit(counts, pooling, **({"difficulty": "beta"} if pooling == "partial" else {}))


def _ways(c, n):
    return gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)


def test_closed_models_against_scipy() -> None:
    c, n = (np.array(values) for values in DATA)
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
    """PSIS on the likelihood with every question's p integrated out."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.8, 1.2, 300) if pooling == "partial" else 0.4
    data = bk.tally((rng.binomial(16, p, 300), 16))
    options = {"pooling": pooling, "keep": ["log_likelihood"], "rng": 1}
    options |= {"difficulty": "beta"} if pooling == "partial" else {}
    fit = bk.evaluate(data, "bayes", **options)
    sampled = bk.sample(data, "bayes", **options, progress=False)
    exact = bk.checks.exact_loo(fit)
    assert bk.checks.exact_loo(sampled).elpd == exact.elpd
    for tree in (fit, sampled):
        psis = az.loo(tree)
        assert abs(psis.elpd - exact.elpd) < 0.1
        assert abs(psis.p - exact.p) < 0.1
        assert float(psis.pareto_k.max()) < 0.7


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_group_is_the_marginal_likelihood_of_each_draw(pooling) -> None:
    c, n = (np.array(values) for values in DATA)
    fit = _beta_fit((c, n), pooling)
    group, draws = fit["log_likelihood"]["successes"], fit["posterior"].to_dataset()
    if pooling == "none":
        expected = np.broadcast_to(betabinom(n, 1, 1).logpmf(c), group.shape)
    elif pooling == "complete":
        expected = binom(n, draws["mean_p"].values[..., None]).logpmf(c)
    else:
        mean = draws["mean_p"].values[..., None]
        total = (1 / draws["icc"].values - 1)[..., None]
        expected = betabinom(n, mean * total, (1 - mean) * total).logpmf(c)
    assert group.dims == ("chain", "draw", "system", "question")
    np.testing.assert_allclose(group.values, expected, rtol=1e-7, atol=1e-7)


def test_large_likelihoods_are_kept_where_asked_for() -> None:
    many = bk.tally((np.zeros(300, int), 3))
    assert "log_likelihood" not in bk.evaluate(many, "bayes", rng=1).children
    kept = bk.evaluate(many, "bayes", draws=3, keep=["log_likelihood"], rng=1)
    assert kept["log_likelihood"].sizes["question"] == 300


@pytest.fixture(scope="module")
def rats():
    """The rat tumours by every kind of pooling."""
    data = bk.datasets.rat_tumors()
    return {pooling: bk.evaluate(data, "bayes", pooling=pooling, rng=1) for pooling in POOLINGS}


def test_models_are_compared_by_arviz_and_by_evidence(rats) -> None:
    frame = bk.checks.compare_models(rats)
    exact = {name: bk.checks.exact_loo(fit).elpd_i.values for name, fit in rats.items()}
    assert list(frame.index) == ["partial", "complete", "none"]
    for name, row in frame.iterrows():
        gap = exact[name] - exact["partial"]
        assert (row["elpd_loo"], row["elpd_diff"], row["dse"]) == pytest.approx(
            (exact[name].sum(), gap.sum(), np.sqrt(gap.size * gap.var()))
        )
    assert frame["probability"].sum() == pytest.approx(1.0)
    odds = np.exp(frame["log_evidence"]["complete"] - frame["log_evidence"]["partial"])
    assert frame["probability"]["complete"] / frame["probability"]["partial"] == pytest.approx(odds)
    with pytest.raises(ValueError, match="at least two"):
        bk.checks.compare_models({"one": rats["none"]})
    with pytest.raises(ValueError, match="same data"):
        bk.checks.compare_models({"rats": rats["none"], "other": _fit(([1], [2]), "none")})


def test_arviz_takes_models_without_pooling(rats) -> None:
    """Their likelihood is a known constant: no warning, no effective parameter, k far below 0."""
    psis, exact = az.loo(rats["none"], pointwise=True), bk.checks.exact_loo(rats["none"])
    np.testing.assert_allclose(psis.elpd_i, exact.elpd_i, rtol=1e-11)
    assert psis.p == pytest.approx(0.0, abs=1e-9)
    assert float(psis.pareto_k.max()) < 0.0
    table, exact_table = az.compare(rats, round_to="none"), bk.checks.compare_models(rats)
    gaps = exact_table["elpd_diff"].abs()[table.index]
    np.testing.assert_allclose(table["elpd_diff"].abs(), gaps, atol=0.1)


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
    assert [entry.name for entry in tmp_path.iterdir()] == ["fit.nc"]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_point_nulls_are_binomial(pooling) -> None:
    c, n = (np.array(values) for values in DATA)
    fit, chance = _fit((c, n), pooling), np.linspace(0.2, 0.5, len(c))
    factor = float(bk.checks.log_bayes_factor_chance(fit, chance)[0])
    null = binom(n, chance).logpmf(c).sum() - _ways(c, n).sum()
    assert factor == pytest.approx(float(bk.checks.log_evidence(fit)[0]) - null, rel=1e-12)


def test_a_coin_of_unknown_bias_and_one_that_the_null_excludes() -> None:
    """Known to textbooks: the ratio of Beta densities at one half."""
    coin = _fit(([40], [64]), "complete")
    ratio = beta_distribution(1, 1).pdf(0.5) / beta_distribution(41, 25).pdf(0.5)
    assert float(np.exp(bk.checks.log_bayes_factor_chance(coin, 0.5)[0])) == pytest.approx(ratio)
    assert ratio == pytest.approx(1.132, abs=5e-4)
    certain = _fit(([1, 1], [1, 2]), "complete")
    assert float(bk.checks.log_bayes_factor_chance(certain, [1.0, 1.0])[0]) == np.inf


def test_models_with_improper_priors_have_no_probability(rats) -> None:
    data = bk.datasets.rat_tumors()
    fits = {
        str(a): bk.evaluate(data, "bayes", prior=bk.priors.HyperPrior(icc=(a, -a)), draws=5, rng=1)
        for a in (0.5, 1.0)
    }
    table = bk.checks.compare_models(fits)
    assert table["probability"].isna().all()
    assert np.isfinite(table["elpd_loo"]).all()
    table = bk.checks.compare_models(fits | {"proper": rats["partial"]})
    assert table["probability"]["proper"] == pytest.approx(1.0)


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
    elpd = az.loo(fit, pointwise=True).elpd_i.values[0]
    expected = betabinom(3, [2.0, 1.5], [1.0, 1.5]).logpmf([2, 3])
    np.testing.assert_allclose(elpd, expected, rtol=1e-10)


def _chance(drawn: Simulated, shift, c: int, n: int):
    """Probability of c right trials of n, given every draw of the prior and an offset."""
    mean = 1 / (1 + np.exp(-(drawn.eta + shift[:, None])))
    by_beta = betabinom(n, mean * drawn.weight, (1 - mean) * drawn.weight).pmf(c)
    if drawn.law == "mixture":
        return drawn.lower * by_beta[:, 0] + (1 - drawn.lower) * by_beta[:, 1]
    if drawn.law == "beta":
        return by_beta[:, 0]
    never, ends = drawn.ends.T
    return (1 - ends) * by_beta[:, 0] + never * (c == 0) + (ends - never) * (c == n)


@pytest.mark.parametrize("study", [SMALL, IN_GROUPS], ids=["alike", "in groups"])
def test_p_is_how_much_better_questions_are_predicted_with_their_own_counts(study) -> None:
    """Against 3 x 400,000 draws of the prior of the families, weighted by the likelihood.

    Of every question, the probability that a new one of its group has the same count given all
    counts, over that of its count given the others. The error is that over batches of draws, and
    a hundredth for the points of four questions.
    """
    group, chances = study.get("group", ["all"] * 4), []
    for seed, law in enumerate(("beta", "inflated", "mixture")):
        rng = np.random.default_rng(seed)
        drawn = Simulated(law, study, rng)
        effect = {each: drawn.tau * rng.normal(size=DRAWS) * ("group" in study) for each in group}
        questions = zip(group, study["right"], study["trials"], strict=True)
        chances.append(np.stack([_chance(drawn, effect[each], c, n) for each, c, n in questions]))
    of_each = np.concatenate(chances, axis=1)

    def total(rows: slice) -> float:
        each = of_each[:, rows]
        whole = each.prod(0)
        ratio = (whole * each).mean(1) * (whole / each).mean(1) / whole.mean() ** 2
        return float(np.log(ratio).sum())

    expected, batches = total(slice(None)), [total(slice(i, None, BATCHES)) for i in range(BATCHES)]
    error = np.std(batches, ddof=1) / np.sqrt(BATCHES)
    columns = {"group": study["group"]} if "group" in study else {}
    data = bk.tally((study["right"], study["trials"]), **columns)
    fit = bk.evaluate(data, "bayes", difficulty="averaged", draws=8, rng=1)
    assert bk.checks.exact_loo(fit).p == pytest.approx(expected, abs=4.0 * error + 0.01)


@pytest.mark.long
def test_a_question_unlike_all_others_is_predicted_by_a_posterior_of_its_own() -> None:
    """Twelve sure questions and one never solved: the families are integrated again without it."""
    c, n = np.array([64] * 12 + [0]), np.array([64] * 13)
    for difficulty in ("inflated", "mixture", "averaged"):
        elpd = bk.checks.exact_loo(_fit((c, n), difficulty=difficulty)).elpd_i.values[0]
        whole = bk.checks.log_evidence(_fit((c, n), difficulty=difficulty))
        without_it = bk.checks.log_evidence(_fit((c[:-1], n[:-1]), difficulty=difficulty))
        assert elpd[-1] == pytest.approx(float(whole[0] - without_it[0]), abs=0.15)
