"""Scored categories through evaluate, sample and verify."""

import json
from dataclasses import replace

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import ndtr
from scipy.stats import beta

import bayesatk as bk
from bayesatk.core.numerics import importance
from bayesatk.core.pooling.states import States
from bayesatk.core.program.laws import CategoryLaw
from bayesatk.core.program.observations import Categories
from bayesatk.core.question.categorical import category_finite, category_moments
from bayesatk.metrics import grid
from bayesatk.metrics.category_credit import CategoryCredit, ScoredCredit
from bayesatk.posterior import model
from bayesatk.priors.fields import Fields

SCORES = {"fail": 0.0, "part": 0.5, "pass": 1.0}
GRADED = [["fail", "part", "pass", "pass", "part"], ["part", "part", "fail", "pass", "pass"]]
EARLIER = [["fail", "pass"], ["part", "pass"]]
METRICS = ["bayes", "max@2,4"]
POOLINGS = ["none", "partial", "complete"]
UNORDERED = {"none": None, "partial": bk.priors.DirichletHyperPrior(), "complete": None}


def simulated(systems: int = 1, questions: int = 20, trials: int = 5, seed: int = 0) -> bk.Outcomes:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1.2, 0.8, 1.6], (systems, questions))
    names = np.array(list(SCORES), object)
    drawn = [[names[rng.choice(3, trials, p=q)].tolist() for q in own] for own in p]
    return bk.tally(drawn, scores=SCORES)


@pytest.fixture(scope="module")
def graded() -> bk.Outcomes:
    return simulated()


def cell(fit, name: str, statistic: str, target: str = "questions", **where: int) -> float:
    chosen = fit["closed_form"][name].sel(statistic=statistic, target=target, **where)
    return float(chosen.isel(system=0))


def test_published_numbers_with_and_without_prior_trials() -> None:
    data = bk.tally(GRADED, scores=SCORES)
    fit = bk.evaluate(data, "bayes", pooling="none", rng=1)
    assert cell(fit, "bayes", "mean") == pytest.approx(0.5625, abs=1e-12)
    assert cell(fit, "bayes", "sd") == pytest.approx(0.091998, abs=5e-7)
    fit = bk.evaluate(data, "bayes", pooling="none", prior_trials=EARLIER, rng=1)
    assert cell(fit, "bayes", "mean") == pytest.approx(0.575, abs=1e-12)
    assert cell(fit, "bayes", "sd") == pytest.approx(0.084275, abs=5e-7)
    assert cell(fit, "bayes", "estimate") == pytest.approx(0.6)


def test_reaching_a_category_is_a_metric_of_its_own(graded) -> None:
    """The probability of at least 0.5 is pass@1 of the data so mapped, under the same prior."""
    fit = bk.evaluate(graded, "bayes", pooling="none", rng=1)
    table = bk.table(fit, "categories").query("target == 'questions'").set_index("category")
    binary = bk.evaluate(
        graded,
        "pass@1",
        success="score >= 0.5",
        pooling="none",
        prior=bk.priors.BetaPrior(2, 1),
        rng=1,
    )
    assert table.loc["part", "mean"] == pytest.approx(cell(binary, "pass_at_k", "mean", k=1))
    assert table.loc["part", "sd"] == pytest.approx(cell(binary, "pass_at_k", "sd", k=1))
    assert table.loc["fail", ["mean", "sd"]].tolist() == pytest.approx([1.0, 0.0])
    assert table["mean"].is_monotonic_increasing  # from the best category down


@pytest.mark.parametrize("pooling", POOLINGS)
def test_success_is_a_stated_mapping(graded, pooling) -> None:
    count = graded.dataset["count"].values[0]
    known = {"metrics": "pass@1,3", "pooling": pooling, "draws": 50, "rng": 1}
    if pooling == "partial":
        known["difficulty"] = "beta"
    mapped = bk.evaluate(graded, success="score > 0.5", **known)
    plain = bk.evaluate((count[:, 2], count.sum(axis=1)), **known)
    for statistic in ("estimate", "mean", "sd", "ci_lower"):
        one, other = (
            fit["closed_form"]["pass_at_k"].sel(statistic=statistic).values
            for fit in (mapped, plain)
        )
        np.testing.assert_array_equal(one, other)
    assert "success is score > 0.5: pass" in json.loads(mapped.attrs["assumptions"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda data: bk.evaluate(data, "pass@2"), "pass@2 judges right and wrong"),
        (lambda data: bk.evaluate(data, "bayes", success="score > 0.5"), "no longer be about"),
        (lambda data: bk.evaluate(data, "pass@1", success="score >= 2"), "holds for none"),
        (lambda data: bk.evaluate(data, "pass@1", success="x > 1"), "success must be 'score >= "),
        (
            lambda data: bk.evaluate(data, "bayes", prior=bk.priors.BetaPrior()),
            "DirichletHyperPrior",
        ),
        (
            lambda data: bk.evaluate(data, "bayes", prior=bk.priors.HyperPrior.bda3()),
            "must be proper",
        ),
        (
            lambda data: bk.evaluate(
                bk.tally([[0, 1]], scores={0: 2.0, 1: 2.0}), "bayes", prior=bk.priors.HyperPrior()
            ),
            "have no order",
        ),
        (
            lambda data: bk.evaluate(
                data, "bayes", prior=bk.priors.DirichletHyperPrior(), difficulty="beta"
            ),
            "with a HyperPrior",
        ),
        (
            lambda data: bk.evaluate(
                data, "bayes", prior=bk.priors.DirichletHyperPrior((1.0, 2.0))
            ),
            "one for each of the 3",
        ),
        (lambda data: bk.priors.DirichletPrior(0.0), "must be finite and > 0"),
        (lambda data: bk.priors.DirichletPrior("1"), "must be finite and > 0"),
        (lambda data: bk.priors.DirichletPrior(()), "must be finite and > 0"),
        (lambda data: bk.priors.DirichletHyperPrior(icc=1.0), "icc must be two Beta parameters"),
        (lambda data: bk.priors.AnswerPrior((1.0, 2.0)), "concentration must be a number"),
        (lambda data: bk.priors.AnswerPrior(unseen=-1), "unseen must be an integer"),
        (
            lambda data: bk.priors.AnswerPrior(unseen_correct="no"),
            "unseen_correct must be true or false",
        ),
        (lambda data: bk.evaluate(data, "bayes", prior_weight=0.5), "left out without prior_tri"),
        (lambda data: bk.evaluate(data, "max@1000000"), "k must be at most"),
        (lambda data: bk.tally([[0, 1]], scores={0: 0, 1: 1e200}), "scores must lie within"),
        (
            lambda data: bk.evaluate(data, "bayes", prior_trials=EARLIER),
            "have the question labels of",
        ),
        (
            lambda data: bk.evaluate(data, "bayes", prior_trials=data, prior_weight=1.5),
            "prior_weight must lie in",
        ),
        (lambda data: bk.compare(bk.evaluate(data, "bayes", rng=1)), "at least two systems"),
        (lambda data: bk.table(bk.evaluate([[1, 0]], "bayes"), "categories"), "scored categories"),
    ],
)
def test_what_makes_no_sense_is_refused(graded, call, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(graded)


def test_prior_trials_of_weight_0_are_none() -> None:
    now, options = simulated(seed=1), {"metrics": "bayes", "draws": 5, "rng": 1}
    fit = bk.evaluate(now, prior_trials=simulated(seed=2), prior_weight=0, **options)
    plain = bk.evaluate(now, **options)
    xr.testing.assert_equal(fit["closed_form"].to_dataset(), plain["closed_form"].to_dataset())
    assert "prior_count" not in fit["constant_data"]
    runs = [[0, 1], [1, 1]]
    assert bk.evaluate(runs, "pass@1", prior_trials=runs, prior_weight=0, draws=5, rng=1)


@pytest.mark.parametrize("weight", ["often", "", -0.1, 1.5, float("nan"), None, [0.5]])
def test_weights_of_prior_trials_that_are_none_are_refused(weight) -> None:
    with pytest.raises(ValueError, match="prior_weight must lie in") as refusal:
        bk.evaluate([[1, 0]], "pass@1", prior_trials=[[1]], prior_weight=weight)
    assert repr(weight) in str(refusal.value)


def test_prior_trials_are_found_by_the_labels_of_systems_in_any_order() -> None:
    runs = {"a": [[1, 1], [0, 1]], "b": [[0, 1], [1, 0]]}
    before = {"c": [[0], [0]], "b": [[0], [0]], "a": [[1], [1]]}
    options = {"pooling": "none", "draws": 20, "rng": 1}
    fits = [
        bk.evaluate(runs, "pass@1", prior_trials={name: before[name] for name in names}, **options)
        for names in ("ab", "ba", "cba")
    ]
    first, *others = (pd.DataFrame(bk.table(fit)) for fit in fits)
    for rows in others:
        pd.testing.assert_frame_equal(rows, first)
    assert fits[2].notes == ["Prior trials of other systems are not used: ['c'].", *fits[1].notes]


def test_every_system_has_prior_trials_of_its_own() -> None:
    runs, before = {"a": [[1, 1]], "b": [[0, 1]]}, [[1, 0]]
    with pytest.raises(bk.OutcomeError, match=r"the same systems as the data.*\{system: trials\}"):
        bk.evaluate(runs, "pass@1", prior_trials=before)
    own = dict.fromkeys(runs, before)
    fit = bk.evaluate(runs, "pass@1", pooling="none", prior_trials=own, rng=1)
    means = bk.table(fit).query("target == 'questions'")["mean"]  # of Beta(4, 2) and Beta(3, 3)
    assert means.to_numpy() == pytest.approx([4 / 6, 3 / 6])


def test_conflict_of_prior_trials_is_said() -> None:
    good = bk.tally([["pass"] * 6] * 20, scores=SCORES)
    bad = bk.tally([["fail"] * 6] * 20, scores=SCORES)
    fit = bk.evaluate(bad, "bayes", pooling="none", prior_trials=good, prior_weight=0.5, rng=1)
    note, outside = fit.notes
    assert "lies outside its interval" in outside
    assert "worth 3 trials per question (weight 0.5)" in note
    assert "the prior trials conflict with the data" in note
    for data in (good, simulated(questions=100)):
        same = bk.evaluate(data, "bayes", pooling="none", prior_trials=data, rng=1)
        assert "no conflict" in same.notes[0]


@pytest.mark.long
def test_prior_trials_that_are_alike_are_rarely_called_in_conflict() -> None:
    p = np.random.default_rng(0).dirichlet([1.2, 0.8, 1.6], 40)
    names = np.array(list(SCORES), object)
    calls = 0
    for seed in range(60):
        rng = np.random.default_rng(seed + 1)
        sets = [
            bk.tally([names[rng.choice(3, n, p=q)].tolist() for q in p], scores=SCORES)
            for n in (5, 8)
        ]
        fit = bk.evaluate(sets[0], "bayes", pooling="none", prior_trials=sets[1], draws=2, rng=1)
        calls += "conflict with the data" in fit.notes[0]
    assert calls <= 4  # a share of .01: five or more would have probability 3e-4


def test_prior_trials_of_binary_data_count_as_two_categories() -> None:
    fit = bk.evaluate([[1, 0, 1]], "bayes", pooling="none", prior_trials=[[1, 1]], rng=1)
    assert cell(fit, "bayes", "mean") == pytest.approx(5 / 7, abs=1e-12)  # 1 + 2 + 2 of 2 + 5


def test_an_outlier_is_integrated_afresh() -> None:
    """Left out, the one different question no longer pulls at the correlation of the others."""
    counts = np.array([[[0, 0, 12]] * 10 + [[12, 0, 0]]])
    scores = ("category", [0.0, 0.5, 1.0])
    data = xr.Dataset({"count": (("system", "question", "category"), counts)}, {"score": scores})
    whole, rest = (
        bk.evaluate(bk.tally(some), "bayes", rng=1)
        for some in (data, data.isel(question=slice(10)))
    )
    expected = float(bk.checks.log_evidence(whole)[0] - bk.checks.log_evidence(rest)[0])
    assert float(bk.checks.exact_loo(whole).elpd_i[0, 10]) == pytest.approx(expected, abs=0.03)


def test_systems_on_scored_categories_are_compared() -> None:
    data = simulated(systems=2, questions=60)
    better = data.dataset["count"].values.copy()
    better[1] = np.roll(better[1], 1, axis=1)
    better[1, :, 2] += 3
    data = bk.tally(data.dataset.assign(count=data.dataset["count"].copy(data=better)))
    fit = bk.evaluate(data, METRICS, pooling="none", rng=1)
    found = bk.compare(fit)["comparison"]
    for name, where in (("bayes", {}), ("max_at_k", {"k": 2})):
        means = fit["closed_form"][name].sel(statistic="mean", **where)
        sds = fit["closed_form"][name].sel(statistic="sd", **where)
        for target in ("questions", "population"):
            gap = means.sel(target=target).values
            sd = np.hypot(*sds.sel(target=target).values)
            pair = found[name].sel(system=1, other=0, target=target, **where)
            assert float(pair.sel(contrast="mean")) == pytest.approx(gap[1] - gap[0], abs=sd)
            ahead = float(pair.sel(contrast="prob_greater"))
            assert ahead == pytest.approx(ndtr((gap[1] - gap[0]) / sd), abs=0.12)
    exact = found["bayes"].sel(system=1, other=0, target="questions")
    sd = np.hypot(*fit["closed_form"]["bayes"].sel(statistic="sd", target="questions").values)
    assert float(exact.sel(contrast="sd")) == pytest.approx(sd, rel=0.05)


def test_models_of_categories_are_compared() -> None:
    spread = simulated(questions=40, trials=6, seed=6)
    fits = {
        pooling: bk.evaluate(spread, "bayes", pooling=pooling, prior=UNORDERED[pooling], rng=1)
        for pooling in POOLINGS
    }
    # How often questions get the middle score differs, which an order of the levels does not allow.
    table = bk.checks.compare_models(fits | {"ordered": bk.evaluate(spread, "bayes", rng=1)})
    assert table.index[0] == "partial"
    psis = az.loo(fits["partial"], pointwise=True)
    assert psis.elpd == pytest.approx(bk.checks.exact_loo(fits["partial"]).elpd, abs=0.1)


def test_priors_may_be_numpy_numbers_and_lists(graded, tmp_path) -> None:
    for prior in (
        bk.priors.DirichletPrior([1.0, 1.0, 2.0]),
        bk.priors.DirichletPrior(np.float32(1.0)),
    ):
        fit = bk.evaluate(graded, "max@9", pooling="none", prior=prior, rng=1)
        bk.save(fit, tmp_path / "fit.nc")


def test_a_metric_of_ones_own_on_categories(graded, monkeypatch) -> None:
    """All of three trials in the best category: pass^3 of the best, as a value of counts."""
    monkeypatch.setattr(grid, "FAMILIES", dict(grid.FAMILIES))

    def all_best(counts, scores):
        return (counts[:, np.argmax(scores)] == counts.sum(axis=1)).astype(float)

    family = bk.metrics.Family(
        "all_best_at_k",
        "all-best@",
        lambda k: bk.metrics.Credit.of([0.0] * k + [1.0]),
        category=lambda k: bk.metrics.CategoryCredit(k, all_best),
    )
    fit = bk.evaluate(graded, [family.at(3)], pooling="none", rng=1)
    mapped = bk.evaluate(
        graded,
        "pass^3",
        success="score >= 1",
        pooling="none",
        prior=bk.priors.BetaPrior(1, 2),
        rng=1,
    )
    for statistic in ("estimate", "mean", "sd"):
        own = cell(fit, "all_best_at_k", statistic, k=3)
        assert own == pytest.approx(cell(mapped, "pass_hat_k", statistic, k=3), abs=1e-10)


def test_where_importance_sampling_fails_markov_chains_take_over(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    scores = {i: float(i) for i in range(6)}
    data = bk.tally(rng.choice(6, (12, 10), p=rng.dirichlet(np.ones(6))), scores=scores)
    weighted = bk.evaluate(data, "bayes", prior=UNORDERED["partial"], rng=1)
    monkeypatch.setattr(importance, "K_HAT_MAX", -np.inf)
    model._fit_families.cache_clear()
    fit = bk.evaluate(data, "bayes", prior=UNORDERED["partial"], rng=1)
    note = next(note for note in fit.notes if "Markov" in note)
    assert "Markov chains worth" in note
    assert fit.attrs["method"] == "elliptical slices"
    rough = float(fit["closed_form"]["log_evidence"][0])  # of the weights that were not trusted
    assert rough == pytest.approx(float(weighted["closed_form"]["log_evidence"][0]), abs=0.2)
    for statistic in ("mean", "sd"):
        one, other = (cell(each, "bayes", statistic) for each in (fit, weighted))
        assert one == pytest.approx(other, abs=0.15 * cell(weighted, "bayes", "sd"))


@pytest.mark.parametrize(
    ("pooling", "scores"),
    [
        ("none", {0: 2.0, 1: 2.0}),
        ("partial", {0: 0.3, 1: 0.3, 2: 0.3}),
        ("complete", {0: 2.0, 1: 2.0}),
    ],
)
def test_equal_scores_are_a_known_mean(scores, pooling, tmp_path) -> None:
    runs = {"a": [[0, 1], [1, 1]], "b": [[0, 0], [1, 0]]}
    data, score = bk.tally(runs, scores=scores), scores[0]
    fit = bk.evaluate(data, "bayes max@1,4", pooling=pooling, rng=1, draws=50)
    rows = bk.table(fit)
    for name in ("mean", "ci_lower", "ci_upper"):
        np.testing.assert_allclose(rows[name], score, rtol=1e-14)
    np.testing.assert_allclose(rows["sd"], 0.0, atol=1e-14)  # partial: mixed over weighted points
    known = ~rows["metric"].isin(["max@4"])
    np.testing.assert_allclose(rows["estimate"][known], score, rtol=1e-14)
    assert not fit.notes
    assert (bk.table(fit, "categories")["mean"] == 1.0).all()  # there is nothing to reach
    compared = bk.compare(fit)["comparison"]["bayes"]
    assert float(compared.sel(system="a", other="b", target="questions", contrast="mean")) == 0.0
    bk.report(fit, tmp_path / "report.html")
    bk.save(fit, tmp_path / "fit.nc")


@pytest.mark.long
def test_equal_scores_are_sampled() -> None:
    data = bk.tally([[0, 1], [1, 1]], scores={0: 2.0, 1: 2.0})
    options = {"draws": 20, "tune": 20, "chains": 2, "progress": False, "rng": 1}
    fit = bk.sample(data, "bayes max@3", pooling="none", **options)
    np.testing.assert_allclose(bk.table(fit)["mean"], 2.0, rtol=1e-14)
    assert (bk.table(fit, "categories")["mean"] == 1.0).all()


@pytest.mark.parametrize("worth", [lambda counts, scores: np.full(len(counts), 0.3), None])
def test_a_constant_worth_is_exact(worth) -> None:
    credit, scores = CategoryCredit(3, worth), [0.3, 0.3, 0.3]
    p = np.array([0.2, 0.7, 0.1])
    assert credit.latent(p, scores) == 0.3
    assert credit.predictive(1.0 + p, scores) == 0.3
    assert category_finite(credit, [1, 2, 3], scores) == 0.3
    assert [float(one) for one in category_moments(credit, 1.0 + p, scores)] == [0.3, 0.0]


def test_third_cumulants_are_those_of_betas_up_to_the_ends_of_the_scale() -> None:
    law = CategoryLaw((0.0, 0.5, 1.0), Fields(()), (1.0, 1.0, 2.0))
    observation = Categories(
        law, States(np.zeros((1, 3)), np.zeros((1, 3)), np.ones(1), np.zeros(1, int))
    )
    top = np.array([0.0, 0.0, 1.0])
    judged = [ScoredCredit(CategoryCredit(k), top) for k in (1, 10_000)]
    (share, surely) = observation.cumulants(judged, np.zeros((1, 0)), np.zeros((1, 1)))[0, 0, 0]
    assert share == pytest.approx([1 / 2, 1 / 20, 0.0])  # Beta(2, 2)
    law = replace(law, shape=(1.0, 1.0, 8.0))
    share, surely = replace(observation, law=law).cumulants(
        judged, np.zeros((1, 0)), np.zeros((1, 1))
    )[0, 0, 0]
    mean, variance, skew = beta(8, 2).stats("mvs")
    assert share == pytest.approx([mean, variance, skew * variance**1.5])
    # Of 10,000 trials one is in the top category but with a probability of 1e-29 or so.
    assert surely[0] == 1.0
    assert 0.0 < surely[1] < 1e-20
    assert -surely[1] <= surely[2] <= 0.0  # E x^3 <= E x^2 of what is missing from 1


@pytest.mark.long
def test_scores_out_of_a_hundred_in_steps_of_two_are_answered() -> None:
    """Without an order importance sampling fails in so many dimensions; chains take over."""
    rng = np.random.default_rng(0)
    right = rng.beta(4.0, 2.0, 50)[:, None]
    runs = 2 * np.round(50.0 * rng.beta(12.0 * right, 12.0 * (1.0 - right), (50, 3))).astype(int)
    data = bk.tally(runs.tolist(), scores={i: i / 100.0 for i in range(0, 101, 2)})
    ordered = bk.table(bk.evaluate(data, "bayes", difficulty="beta", rng=1)).iloc[0]
    assert ordered["mean"] == pytest.approx(runs.mean() / 100.0, abs=0.01)
    fit = bk.evaluate(data, "bayes", prior=UNORDERED["partial"], rng=1)
    assert any("Markov chains worth" in note for note in fit.notes)
    row = fit["closed_form"]["bayes"].sel(target="questions").isel(system=0)
    low, high = (float(row.sel(statistic=name)) for name in ("ci_lower", "ci_upper"))
    assert 0.0 < low < high < 1.0
    # Probabilities of 51 scores, three trials a question: the prior's mean of .5 has its say.
    assert 0.5 < float(row.sel(statistic="mean")) < runs.mean() / 100.0
    for name in ("mean_p", "icc"):
        assert np.isfinite(fit["closed_form"][name].sel(statistic="sd")).all()


def test_scores_of_many_levels_are_reached_with_probabilities_that_fall() -> None:
    levels = 101
    rng = np.random.default_rng(5)
    raw = rng.integers(0, levels, (6, 8))
    data = bk.tally(raw, scores={level: level / (levels - 1) for level in range(levels)})
    fit = bk.evaluate(data, "bayes", pooling="none", draws=50, rng=1)
    rows = bk.table(fit, "categories").query("target == 'questions'")
    assert len(rows) == 21
    assert rows["score"].iloc[0] == 1.0
    assert rows["score"].iloc[-1] == 0.0
    assert rows["mean"].is_monotonic_increasing
    # A flat Dirichlet: one of each category, and eight trials of each question.
    reached = np.array([(raw / (levels - 1) >= score - 1e-12).sum() / 6 for score in rows["score"]])
    above = np.array([round((1 - score) * (levels - 1)) + 1 for score in rows["score"]])
    np.testing.assert_allclose(rows["mean"], (reached + above) / (levels + 8), atol=1e-9)
