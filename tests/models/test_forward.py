"""Data drawn from PyMC models have the distributions of the documentation."""

import numpy as np
import pymc as pm
import pytest

import bayesatk as bk
from bayesatk.data.study import read_study
from bayesatk.models.program import build_program

SIZE = 2000
ERROR = 4.5 / np.sqrt(SIZE)


def test_the_share_of_a_mixture_is_that_of_its_first_part_in_either_form() -> None:
    prior = bk.priors.HyperPrior(families="mixture", share=(4.0, 2.0))
    study = read_study(
        [[1, 0]],
        "pass@1",
        pooling="partial",
        prior=prior,
        success=None,
        prior_trials=None,
        prior_weight=1.0,
        answer_prior=None,
        ci_prob=0.95,
        keep=(),
    )
    model = build_program(study, "mixture", "full")
    drawn = pm.sample_prior_predictive(
        SIZE, model, ["mean_p", "share"], random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}
    )["prior"]
    mean, share = (drawn[name].values[0] for name in ("mean_p", "share"))
    lower = np.where(mean[:, 0, 0] < mean[:, 0, 1], share[:, 0], 1.0 - share[:, 0])
    assert lower.mean() == pytest.approx(2 / 3, abs=0.18 * ERROR)
