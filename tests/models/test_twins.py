"""`evaluate` against `sample`: every law, observation and structure, by draws of PyMC models."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from tests.conftest import FALSE_ALARM, METRICS

QUESTIONS, TRIALS = 24, 4
RNG = np.random.default_rng(7)
COLUMNS: dict[str, Any] = {
    "group": [f"g{question % 5}" for question in range(QUESTIONS)],
    "covariates": {"x": RNG.normal(size=QUESTIONS).tolist()},
    "weight": RNG.lognormal(0.0, 1.0, QUESTIONS).tolist(),
}
EFFECT = RNG.normal(0.0, 0.7, 5)[np.arange(QUESTIONS) % 5] + 0.5 * np.array(
    COLUMNS["covariates"]["x"]
)
P = expit(RNG.normal(0.4, 0.8, (2, QUESTIONS)) + EFFECT)
RIGHT, EARLIER = RNG.binomial(1, P[..., None], (2, 2, QUESTIONS, TRIALS))
JUDGED = np.where(RNG.random(RIGHT.shape) < 0.1, 1 - RIGHT, RIGHT)
TRUTH = np.where(RNG.random(RIGHT.shape) < 0.3, RIGHT, np.nan)
GRADES, EARLIER_GRADES = RNG.binomial(2, P[..., None], (2, 2, QUESTIONS, TRIALS))
ANSWERS = np.where(RIGHT == 1, 0, RNG.integers(1, 5, RIGHT.shape)).astype(str)
ANSWERS[0, 1, 0] = ANSWERS[1, 4, 2] = ""
SCORES = {0: 0.0, 1: 0.4, 2: 1.0}


def tallied(trials: Any, *columns: str, **options: Any) -> bk.Outcomes:
    chosen = {name: COLUMNS[name] for name in columns}
    return bk.tally(dict(zip("ab", trials, strict=True)), **chosen, **options)


def graded(*columns: str) -> bk.Outcomes:
    return tallied(GRADES, *columns, scores=SCORES)


def voted() -> bk.Outcomes:
    answers = {name: own.tolist() for name, own in zip("ab", ANSWERS, strict=True)}
    return bk.tally(None, answers=answers, reference=["0"] * QUESTIONS)


def labelled() -> bk.Outcomes:
    return tallied(JUDGED, truth=dict(zip("ab", TRUTH, strict=True)))


BETA, SOME, GRADED = {"difficulty": "beta"}, "pass@1,4 pass^2", "mean max@4"
JUDGE = {"judge": bk.JudgeError(tp=90, p=100, fp=10, n=100)}
UNORDERED = {"prior": bk.priors.DirichletHyperPrior()}
BEFORE = {"prior_trials": tallied(EARLIER), "prior_weight": 0.5}
GRADED_BEFORE = {"prior_trials": tallied(EARLIER_GRADES, scores=SCORES), "prior_weight": 0.5}
# Data, metrics, options, and a variable beside the metrics.
TWINS: dict[str, tuple[bk.Outcomes, str, dict[str, Any], str]] = {
    "one Beta": (tallied(RIGHT), METRICS, BETA, "icc"),
    "no pooling": (tallied(RIGHT), METRICS, {"pooling": "none"}, "bayes"),
    "complete pooling": (tallied(RIGHT), METRICS, {"pooling": "complete"}, "mean_p"),
    "earlier trials": (tallied(RIGHT), SOME, BETA | BEFORE, "icc"),
    "weights, law": (tallied(RIGHT, "weight"), SOME, BETA | {"population": "law"}, "icc"),
    "weights, bootstrap": (tallied(RIGHT, "weight"), SOME, BETA, "icc"),
    "groups": (tallied(RIGHT, "group"), SOME, BETA | {"group_weights": "equal"}, "group_sd"),
    "covariates": (
        tallied(RIGHT, "covariates"), SOME, BETA | {"covariates": ["x"]}, "coefficients",
    ),
    "judge": (tallied(JUDGED), SOME, BETA | JUDGE, "sensitivity"),
    "judge, inflated": (
        tallied(JUDGED), SOME, JUDGE | {"difficulty": "inflated"}, "false_positive_rate",
    ),
    "truth": (labelled(), SOME, BETA, "sensitivity"),
    "truth, no pooling": (labelled(), SOME, {"pooling": "none"}, "sensitivity"),
    "truth, complete pooling": (labelled(), SOME, {"pooling": "complete"}, "sensitivity"),
    "levels": (graded(), GRADED, {"difficulty": "inflated"}, "shape"),
    "categories": (graded(), GRADED, UNORDERED, "icc"),
    "categories, no pooling": (graded(), GRADED, {"pooling": "none"}, "reach_probability"),
    "categories, complete pooling": (graded(), GRADED, {"pooling": "complete"}, "mean_p"),
    "categories, earlier trials": (graded(), GRADED, UNORDERED | GRADED_BEFORE, "icc"),
    "votes": (voted(), "plurality@1,3", BETA, "wrong_agreement"),
    "votes, no pooling": (
        voted(), "plurality@1,3 maj@3", {"pooling": "none"}, "plurality_votes_at_k",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_sampling_agrees_with_the_closed_form(name: str) -> None:
    data, metrics, options, variable = TWINS[name]
    fit = bk.evaluate(data, metrics, rng=1, **options)
    sampled = bk.sample(data, metrics, rng=2, progress=False, sample_kwargs={"cores": 1}, **options)
    table = bk.verify(fit, sampled, alpha=FALSE_ALARM).table
    assert "disagree" not in set(table["verdict"]), table.query("verdict == 'disagree'").to_string()
    agreed = table[table["verdict"] == "agree"]
    assert variable in set(agreed["variable"]), table.to_string()
    assert len(agreed) > 0.9 * len(table)
