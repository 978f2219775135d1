"""Checks, plans and predictions of models put together from parts, against data simulated anew."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.posterior.models_of import system_model
from bayesatk.posterior.questions import draw_new_p
from tests.conftest import plan_table

TRIALS = 8
NEVER = "questions never solved minus rarely solved"
SCORES = {0: 0.0, 1: 0.5, 2: 1.0}


def _questions(rng: np.random.Generator, size: int) -> tuple[Any, Any]:
    """Return a covariate, and success probabilities that follow it."""
    x = rng.normal(size=size)
    mean = expit(0.3 + 1.5 * x)
    return x, rng.beta(5 * mean, 5 * (1 - mean))


def _fit(c: Any, x: Any = None, **options: Any) -> Any:
    trials = np.full(np.shape(c), TRIALS)
    if x is None:
        return bk.evaluate((c, trials), "pass@1", rng=1, **({"draws": 1000} | options))
    data = bk.tally((c, trials), covariates={"x": x})
    return bk.evaluate(data, "pass@1", covariates=["x"], rng=1, **({"draws": 1000} | options))


def _checks(fit: Any) -> Any:
    return bk.checks.criticise(fit, rng=1).set_index("check").iloc[:4]


def test_impossible_questions_beside_a_covariate_are_flagged() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    p = np.where(rng.random(200) < 0.2, 0.0, expit(0.5 + 0.7 * x))
    table = _checks(_fit(rng.binomial(TRIALS, p), x))
    assert table.loc[NEVER, "flagged"]
    assert table.loc[NEVER, "p_value"] < 0.005


def test_new_questions_keep_the_prior_trials_of_those_they_replace() -> None:
    prior = bk.tally(([500, 0, 250] * 5, [500] * 15))
    data = bk.tally(([4, 0, 2] * 5, [4] * 15))
    fit = bk.evaluate(data, "pass@1", prior_trials=prior, difficulty="beta", draws=50, rng=1)
    model = system_model(bk.Result.of(fit).study, 0)
    p, _ = draw_new_p(model, 500, np.random.default_rng(1))
    np.testing.assert_allclose(p.mean(axis=0)[:3], [1.0, 0.0, 0.5], atol=0.02)


@pytest.mark.long
def test_scores_always_lowest_are_flagged() -> None:
    rng = np.random.default_rng(5)
    marks = rng.choice(3, (150, TRIALS), p=[0.3, 0.3, 0.4])
    usual = bk.evaluate(bk.tally(marks, scores=SCORES), "bayes", difficulty="beta", rng=1)
    assert not bk.checks.criticise(usual, rng=1)["flagged"].any()
    marks[:30] = 0
    fit = bk.evaluate(bk.tally(marks, scores=SCORES), "bayes", difficulty="beta", rng=1)
    row = bk.checks.criticise(fit, rng=1).set_index("check")
    assert row.loc["questions always of the lowest score minus nearly so", "flagged"]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["covariates", "weight", "bootstrap"])
@pytest.mark.parametrize("target", ["questions", "population"])
def test_planned_widths_are_those_of_evaluations(kind, target) -> None:
    rng = np.random.default_rng(7)
    population = {"population": "bootstrap" if kind == "bootstrap" else "law"}

    def evaluation(questions: int, trials: int) -> Any:
        x, p = _questions(rng, questions)
        held: dict[str, Any] = {"covariates": {"x": x}}
        options: dict[str, Any] = {"covariates": ["x"]}
        if kind != "covariates":
            held, options = {"weight": rng.gamma(1.0, 1.0, questions) + 0.05}, population
        data = bk.tally((rng.binomial(trials, p), np.full(questions, trials)), **held)
        return bk.evaluate(data, "pass@1", draws=1000, rng=1, **options)

    row = plan_table(evaluation(400, 8), "pass@1", width=0.1, target=target, trials=[4]).iloc[0]
    tables = [bk.table(evaluation(int(row["questions"]), 4)) for _ in range(6)]
    widths = [
        float((table["ci_upper"] - table["ci_lower"])[table["target"] == target].iloc[0])
        for table in tables
    ]
    assert np.mean(widths) == pytest.approx(0.1, rel=0.12)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["group", "families", "categories"])
def test_predictions_average_to_the_population(kind) -> None:
    """Of covariates in the same proportions in all groups; moments against draws."""
    rng = np.random.default_rng(9)
    size, group = np.tile(np.arange(6.0), 12), np.repeat(np.arange(6), 12)
    mean = expit(2.0 - 0.8 * size + np.linspace(-1, 1, 6)[group])
    p = rng.beta(4 * mean, 4 * (1 - mean))
    options: dict[str, Any] = {"group": "group"} if kind == "group" else {}
    metric = "pass@1"
    if kind == "categories":
        metric, marks = "bayes", rng.binomial(2, p[:, None], (72, 4))
        data = bk.tally(marks, scores=SCORES, covariates={"size": size})
    else:
        options |= {"difficulty": "inflated"} if kind == "families" else {}
        counts = rng.binomial(TRIALS, p), np.full(72, TRIALS)
        data = bk.tally(counts, covariates={"size": size}, group=group.tolist())
    fit = bk.evaluate(data, metric, covariates=["size"], draws=1000, rng=1, **options)
    rows = bk.predict(fit, {"size": list(range(6))}, metric).query("question == 'average'")
    exact = bk.table(fit).set_index("target").loc["population", "mean"]
    assert rows["mean"].mean() == pytest.approx(exact, abs=0.005)
    place = bk.decide.horizon(fit, "size", metric)["median"].iloc[0]
    again = bk.predict(fit, {"size": [place]}, metric).query("question == 'average'")
    assert again["mean"].iloc[0] == pytest.approx(0.5, abs=0.02)


@pytest.mark.long
def test_predictions_of_scored_questions_are_of_scores() -> None:
    size = list(range(6)) * 4
    data = bk.tally([[s % 3, 2] for s in size], scores=SCORES, covariates={"size": size})
    fit = bk.evaluate(data, "bayes", covariates=["size"], draws=50, rng=1)
    with pytest.raises(ValueError, match="must be of scores; got pass@1"):
        bk.predict(fit, {"size": 1}, "pass@1")


def test_prior_trials_move_the_baseline() -> None:
    c = np.full(40, 4)
    prior = bk.tally((np.full(40, 0), np.full(40, 40)))
    plain, moved = (
        bk.guessing.random_baseline(_fit(c, **options), 0.4, rng=1)["random_baseline"]
        for options in ({}, {"prior_trials": prior})
    )
    assert float(plain["prob_beats"].squeeze()) > 0.5 > float(moved["prob_beats"].squeeze())


def test_weights_change_no_evidence_that_systems_differ() -> None:
    rng = np.random.default_rng(11)
    counts = rng.binomial(4, rng.random((2, 30))), np.full((2, 30), 4)
    plain = bk.tally(counts)
    weighted = bk.tally(counts, weight=rng.gamma(1.0, 1.0, 30).tolist())
    assert bk.decide.e_value(weighted).equals(bk.decide.e_value(plain))
    with pytest.raises(ValueError, match=r"metric must be left out .* with weights"):
        bk.decide.e_value(weighted, "pass@1")


def test_means_of_questions_that_a_judge_marked_average_to_the_score() -> None:
    rng = np.random.default_rng(12)
    c = rng.binomial(TRIALS, 0.05 + 0.85 * rng.random(40))
    fit = _fit(c, judge=bk.JudgeError(tp=90, p=100, fp=5, n=100), draws=50)
    height = bk.plots.plot_shrinkage(fit).get_viz("mean").get_ydata()[0]
    exact = fit["closed_form"]["pass_at_k"].sel(target="questions", k=1, statistic="mean")
    assert height == pytest.approx(float(exact.squeeze()), abs=1e-6)
    assert abs(height - (c / TRIALS).mean()) > 0.01
