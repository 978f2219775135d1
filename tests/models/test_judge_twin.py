"""The PyMC models of marks of a judge that errs, and the draws of p from their hyperparameters."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.models.question_draws import p_given
from bayesatk.results.question_laws import QuestionLaws
from tests.conftest import FALSE_ALARM


@pytest.mark.long
def test_the_sampled_model_of_two_systems_agrees_with_the_closed_form() -> None:
    """Of one calibration set; difficulties are moderate, as NUTS needs for a latent p."""
    rng, questions, trials = np.random.default_rng(3), 30, 6
    right = rng.binomial(trials, rng.beta(2, 2, (2, questions)))
    marks = rng.binomial(right, 0.9) + rng.binomial(trials - right, 0.08)
    data = bk.tally(marks, trials=np.full(marks.shape, trials), systems=["a", "b"])
    known = {
        "judge": bk.JudgeError(tp=55, p=60, fp=5, n=60),
        "prior": bk.priors.HyperPrior((2.0, 2.0), (2.0, 6.0), families="beta"), "rng": 1,
    }  # fmt: skip
    fit = bk.evaluate(data, "pass@1,3", **known)
    sampled = bk.sample(data, "pass@1,3", progress=False, sample_kwargs={"cores": 1}, **known)
    table = bk.verify(fit, sampled, alpha=FALSE_ALARM).table
    assert "disagree" not in set(table["verdict"])
    agree = table[table["verdict"] == "agree"]["variable"]
    assert {"pass_at_k", "sensitivity", "false_positive_rate"} <= set(agree)
    pair = [
        bk.compare(each)["comparison"]["pass_at_k"]
        .sel(system="a", other="b", k=1, target="questions")
        for each in (fit, sampled)
    ]  # fmt: skip
    sd = float(pair[0].sel(contrast="sd"))
    for name, tolerance in (("mean", 0.15 * sd), ("sd", 0.1 * sd)):
        ours, theirs = (float(each.sel(contrast=name)) for each in pair)
        assert theirs == pytest.approx(ours, abs=tolerance)


@pytest.mark.long
@pytest.mark.parametrize("family", ["inflated", "mixture"])
def test_other_families_agree_with_the_closed_form(family) -> None:
    """One system, some questions never solved: the right trials are added up by PyMC."""
    rng, questions, trials = np.random.default_rng(5), 60, 5
    p = rng.beta(2, 2, questions) * (np.arange(questions) > 12)
    right = rng.binomial(trials, p)
    marks = rng.binomial(right, 0.9) + rng.binomial(trials - right, 0.06)
    data = bk.tally((marks, np.full(questions, trials)))
    known = {"judge": bk.JudgeError(tp=90, p=100, fp=6, n=100), "difficulty": family, "rng": 1}
    fit = bk.evaluate(data, "pass@1,3", **known)
    sampled = bk.sample(
        data, "pass@1,3", progress=False, sample_kwargs={"cores": 1, "target_accept": 0.95},
        chains=2, draws=2000, **known,
    )  # fmt: skip
    table = bk.verify(fit, sampled, alpha=FALSE_ALARM).table
    assert "disagree" not in set(table["verdict"])
    agree = table[table["verdict"] == "agree"]["variable"]
    assert {"pass_at_k", "sensitivity", "false_positive_rate"} <= set(agree)


def test_p_given_marks_is_what_bayes_says() -> None:
    """Against draws of new questions that have the same marks."""
    rng = np.random.default_rng(2)
    size = 400_000
    parts = (np.full((size, 1), value) for value in (0.4, 0.3, 0.8))
    law = Nodes.of_moments(*parts, np.tile([0.2, 0.0], (size, 1)))
    p = np.where(rng.random(size) < 0.2, 0.0, rng.beta(0.4 * 7 / 3, 0.6 * 7 / 3, size))
    marks = rng.binomial(4, 0.1 + 0.8 * p)
    judge = {"sensitivity": np.full(4000, 0.9), "false_positive_rate": np.full(4000, 0.1)}
    study: Any = SimpleNamespace(judge_rates=[JudgeRates(bk.JudgeError(0, 0, 0, 0))])
    few = QuestionLaws(study, difficulty=law.among(slice(4000)), judge=judge)
    for seen in (1, 3):
        found = p_given(few, np.array([4.0 - seen, seen]), 1, rng)[:, 0]
        known = p[marks == seen]
        assert found.mean() == pytest.approx(known.mean(), abs=5 * 0.3 / np.sqrt(4000))
        never = (found == 0.0).mean()
        assert never == pytest.approx((known == 0.0).mean(), abs=5 * 0.5 / np.sqrt(4000))


def test_refusals() -> None:
    judge = bk.JudgeError(tp=55, p=60, fp=5, n=60)
    with pytest.raises(ValueError, match="difficulty must be one family with judge="):
        bk.sample([[1, 0]], "pass@1", difficulty=["beta", "inflated"], judge=judge)
    model = bk.models.build([[1, 0]], pooling="complete", judge=judge)
    assert {one.name for one in model.free_RVs} == {"mean_p", "sensitivity", "false_positive_rate"}
