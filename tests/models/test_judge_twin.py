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
