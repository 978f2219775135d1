"""The PyMC model of marks of a judge that errs, with every p and the rates sampled."""

import numpy as np
import pytest

import bayesatk as bk

pytestmark = pytest.mark.full


@pytest.mark.slow
def test_the_sampled_model_of_two_systems_agrees_with_the_closed_form() -> None:
    """Of one judge; difficulties are moderate, as NUTS needs for a latent p."""
    rng, questions, trials = np.random.default_rng(3), 30, 6
    right = rng.binomial(trials, rng.beta(2, 2, (2, questions)))
    marks = rng.binomial(right, 0.9) + rng.binomial(trials - right, 0.08)
    data = bk.tally(marks, trials=np.full(marks.shape, trials), systems=["a", "b"])
    known = {
        "judge": bk.JudgeError(tp=55, p=60, fp=5, n=60),
        "prior": bk.HyperPrior((2.0, 2.0), (2.0, 6.0), families="beta"), "rng": 1,
    }  # fmt: skip
    fit = bk.evaluate(data, "pass@1,3", **known)
    sampled = bk.sample(data, "pass@1,3", progressbar=False, sample_kwargs={"cores": 1}, **known)
    table = bk.verify(fit, sampled).table
    assert "disagree" not in set(table["verdict"])
    agree = table[table["verdict"] == "agree"]["variable"]
    assert {"pass_at_k", "sensitivity", "false_positive_rate"} <= set(agree)
    pair = [
        bk.compare(each, rng=1)["comparison"]["pass_at_k"]
        .sel(system="a", other="b", k=1, target="questions")
        for each in (fit, sampled)
    ]  # fmt: skip
    sd = float(pair[0].sel(contrast="sd"))
    for name, tolerance in (("mean", 0.15 * sd), ("sd", 0.1 * sd)):
        ours, theirs = (float(each.sel(contrast=name)) for each in pair)
        assert theirs == pytest.approx(ours, abs=tolerance)


def test_marks_that_may_be_wrong_need_every_p() -> None:
    judge = bk.JudgeError(tp=55, p=60, fp=5, n=60)
    with pytest.raises(ValueError, match="judge must be left out for form='marginal'"):
        bk.models.build_beta_binomial([[1, 0]], form="marginal", judge=judge)
    with pytest.raises(ValueError, match="judge must be left out for form='crossed'"):
        bk.sample([[1, 0]], "pass@1", form="crossed", judge=judge)
    model = bk.models.build_beta_binomial([[1, 0]], pooling="complete", judge=judge)
    assert {one.name for one in model.free_RVs} == {"mean_p", "judge_rates"}
