"""Checks, plans and predictions of models put together from parts, against data simulated anew."""

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.posterior.models_of import system_model
from bayesatk.posterior.questions import draw_new_p

TRIALS = 8
SCORES = {0: 0.0, 1: 0.5, 2: 1.0}


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


LINE, GROUPS = np.tile(np.arange(6.0), 12), np.repeat(np.arange(6), 12)


@pytest.mark.long
@pytest.mark.parametrize("options", [{"group": "group"}, {"difficulty": "inflated"}, {}])
def test_predictions_average_to_the_population(options) -> None:
    """Of covariates in the same proportions in all groups; moments against draws."""
    rng = np.random.default_rng(9)
    mean = expit(2.0 - 0.8 * LINE + np.linspace(-1, 1, 6)[GROUPS])
    p = rng.beta(4 * mean, 4 * (1 - mean))
    metric, columns = "pass@1", {"covariates": {"line": LINE}}
    if options:
        counts = rng.binomial(TRIALS, p), np.full(72, TRIALS)
        data = bk.tally(counts, group=GROUPS.tolist(), **columns)
    else:
        metric = "bayes"
        data = bk.tally(rng.binomial(2, p[:, None], (72, 4)), scores=SCORES, **columns)
    fit = bk.evaluate(data, metric, covariates=["line"], draws=1000, rng=1, **options)

    def average(values):
        return bk.predict(fit, {"line": values}, metric).query("question == 'average'")["mean"]

    exact = bk.table(fit).set_index("target").loc["population", "mean"]
    assert average(list(range(6))).mean() == pytest.approx(exact, abs=0.005)
    horizon = bk.decide.horizon(fit, "line", metric)["median"].iloc[0]
    assert average([horizon]).iloc[0] == pytest.approx(0.5, abs=0.02)
    if not options:
        with pytest.raises(ValueError, match="must be of scores; got pass@1"):
            bk.predict(fit, {"line": 1}, "pass@1")


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
    judge = bk.JudgeError(tp=90, p=100, fp=5, n=100)
    fit = bk.evaluate((c, np.full(40, TRIALS)), "pass@1", judge=judge, draws=50, rng=1)
    height = bk.plots.plot_shrinkage(fit).get_viz("mean").get_ydata()[0]
    exact = fit["closed_form"]["pass_at_k"].sel(target="questions", k=1, statistic="mean")
    assert height == pytest.approx(float(exact.squeeze()), abs=1e-6)
    assert abs(height - (c / TRIALS).mean()) > 0.01
