"""Laws of every model: what must not matter, and what must agree, by law, observation, structure.

That numbers are right is shown by the golden results, whose witness shares nothing with the
library, and by PyMC.
"""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.data.study import read_study
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import system_model
from bayesatk.posterior.posterior import Posterior

QUESTIONS, TRIALS = 16, 4
RNG = np.random.default_rng(11)
GROUP, X = np.arange(QUESTIONS) % 4, RNG.normal(size=QUESTIONS)
P = expit(0.4 + RNG.normal(0.0, 0.7, 4)[GROUP] + 0.5 * X + RNG.normal(0.0, 0.8, QUESTIONS))
MARKS, EARLIER = RNG.binomial(1, P[:, None], (2, QUESTIONS, TRIALS))
GRADES, EARLIER_GRADES = RNG.binomial(2, P[:, None], (2, QUESTIONS, TRIALS))
WEIGHT = np.exp(RNG.normal(size=QUESTIONS))
BETA, JUDGE = {"difficulty": "beta"}, {"judge": bk.JudgeError(90, 100, 5, 100)}
DIRICHLET = {"prior": bk.priors.DirichletHyperPrior()}
MODELS: dict[str, dict[str, Any]] = {
    "one Beta": BETA,
    "averaged": {"difficulty": "averaged"},
    "no pooling": {"pooling": "none"},
    "complete pooling": {"pooling": "complete"},
    "bootstrap": BETA | {"population": "bootstrap"},
    "groups": BETA | {"group": "group"},
    "groups, bootstrap": BETA | {"group": "group", "population": "bootstrap"},
    "covariates": BETA | {"covariates": ["x"]},
    "groups, covariates": BETA | {"group": "group", "covariates": ["x"]},
    "judge": BETA | JUDGE,
    "judge, no pooling": JUDGE | {"pooling": "none"},
    "judge, complete pooling": JUDGE | {"pooling": "complete"},
    "judge, groups": BETA | JUDGE | {"group": "group"},
    "levels": BETA | {"graded": True},
    "levels, covariates": BETA | {"graded": True, "covariates": ["x"]},
    "levels, no pooling": {"graded": True, "pooling": "none"},
    "categories": DIRICHLET | {"graded": True},
    "categories, groups": DIRICHLET | {"graded": True, "group": "group"},
}
SLOW = {"averaged", "groups, bootstrap", "groups, covariates", "judge, groups",
        "levels, covariates", "categories, groups"}  # fmt: skip
EXACT = {"no pooling", "one Beta", "bootstrap"}
SAMPLED = {"averaged": 0.08}  # of an sd: points of three families are worth a thousand draws
every_model = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in MODELS]
)


def declared(
    name: str,
    *,
    order: Any = slice(None),
    weight: Any = None,
    earlier: float | None = None,
    together: bool = False,
    mirrored: bool = False,
) -> tuple[CountModel, Posterior]:
    """Return a model of the questions in an order, and its posterior.

    Earlier trials have a weight, or are put together with the others; mirrored, right is wrong.
    """
    options = dict(MODELS[name])
    graded, columns = options.pop("graded", False), {}
    marks, before = (GRADES, EARLIER_GRADES) if graded else (MARKS, EARLIER)
    levels = 3 if graded else 2
    scores = {0: 0.0, 1: 0.6 if mirrored else 0.4, 2: 1.0} if graded else None
    if mirrored:
        marks, before = levels - 1 - marks, levels - 1 - before
        if "judge" in options:
            judge = options["judge"]
            options["judge"] = bk.JudgeError(
                judge.n - judge.fp, judge.n, judge.p - judge.tp, judge.p
            )
    if together:
        marks = np.concatenate([marks, before], axis=1)
    if "group" in options:
        columns["group"] = GROUP[order].tolist()
    if "covariates" in options:
        columns["covariates"] = {"x": X[order].tolist()}
    if weight is not None:
        columns["weight"] = np.asarray(weight)[order]
        options.setdefault("population", "bootstrap" if "none" in options.values() else "law")
    if earlier is not None:
        options |= {
            "prior_trials": bk.tally(before[order], scores=scores),
            "prior_weight": earlier,
        }
    plain = {
        "pooling": "partial",
        "prior": None,
        "success": None,
        "prior_trials": None,
        "prior_weight": 1.0,
        "answer_prior": None,
        "ci_prob": 0.95,
        "keep": (),
    }
    data = bk.tally(marks[order], scores=scores, **columns)
    study = read_study(data, "mean max@3" if graded else "pass@1,3 pass^2", **plain | options)
    model = system_model(study, 0)
    return model, model.fit([study.scale.judged(metric) for metric in study.metrics])


def close(one: Posterior, other: Posterior, share: float, targets: slice = slice(None)) -> None:
    """Means within a share of an sd, sds within that share of themselves."""
    sd = other.sd[:, targets]
    assert (np.abs(one.mean - other.mean)[:, targets] <= share * sd + 1e-12).all()
    assert (np.abs(one.sd - other.sd)[:, targets] <= share * sd + 1e-12).all()


@every_model
def test_the_order_of_questions_changes_nothing(name: str) -> None:
    order = np.random.default_rng(3).permutation(QUESTIONS)
    (model, one), (reordered, other) = declared(name), declared(name, order=order)
    close(one, other, 1e-7 if name in EXACT else 0.03)
    assert model.log_evidence() == pytest.approx(reordered.log_evidence(), abs=0.02)


@every_model
def test_weights_count_by_their_ratios(name: str) -> None:
    """Weights of 1 are nearly those of 1 and a little, and weights are as their doubles."""
    even = np.ones(QUESTIONS)
    nearly = even + 1e-9 * (np.arange(QUESTIONS) == 2)
    sizes = (even, nearly, WEIGHT, 2.0 * WEIGHT)
    numbers = []
    for weight in sizes:
        posterior = declared(name, weight=weight)[1]
        drawn = posterior.draw(200, np.random.default_rng(1), False).metrics
        numbers.append((posterior.mean, posterior.sd, drawn))
    for one, two in (numbers[:2], numbers[2:]):
        for first, second in zip(one, two, strict=True):
            np.testing.assert_allclose(first, second, atol=1e-7)
    same = np.allclose(numbers[0][0][:, 0], numbers[2][0][:, 0])
    assert same == (MODELS[name].get("pooling") == "complete")


@every_model
def test_earlier_trials_that_weigh_nothing_are_none_and_of_full_weight_trials(name: str) -> None:
    share = SAMPLED.get(name, 0.03)
    close(declared(name, earlier=1e-9)[1], declared(name)[1], share)
    full, together = (declared(name, **how)[1] for how in ({"earlier": 1.0}, {"together": True}))
    close(full, together, share, slice(2))
    # Of new groups the tail is heavy: the points of two runs leave an sd unsure by some percent.
    close(full, together, 0.1, slice(2, None))


@every_model
def test_right_and_wrong_are_mirrored(name: str) -> None:
    one, mirror = declared(name)[1], declared(name, mirrored=True)[1]
    assert (np.abs(one.mean[0] + mirror.mean[0] - 1.0) <= 0.03 * one.sd[0]).all()
    np.testing.assert_allclose(one.sd[0, :2], mirror.sd[0, :2], rtol=0.03)


@every_model
def test_evidence_is_that_without_a_question_times_its_predictive(name: str) -> None:
    """The definition: p(n_a | others) = p(all) / p(others), each fitted on its own."""
    model, _ = declared(name)
    predictive = model.predictive()
    assert predictive.log_evidence == pytest.approx(model.log_evidence(), abs=1e-12)
    for question in (3, 10):
        rest = model.among(np.arange(QUESTIONS) != question).log_evidence()
        cell = model.cells.which[question]
        gap = model.log_evidence() - rest + model.states.log_ways[cell]
        error = 1e-5 if name in EXACT else 0.04
        assert predictive.left_out[cell] == pytest.approx(gap, abs=error)


@every_model
def test_draws_have_the_moments_that_are_stated(name: str) -> None:
    model, posterior = declared(name)
    size = 8000
    drawn = posterior.draw(size, np.random.default_rng(1), True)
    # Points of importance sampling are worth some thousand draws.
    slack = 0.05 * posterior.sd * (model.pooling != "none")
    error = 5.0 * posterior.sd / np.sqrt(size)
    assert (np.abs(drawn.metrics.mean(axis=0) - posterior.mean) <= error + slack).all()
    np.testing.assert_allclose(drawn.metrics.std(axis=0), posterior.sd, rtol=0.07)
    assert drawn.p is not None
    mean, sd = posterior.question_p()
    assert (np.abs(drawn.p.mean(axis=0) - mean) <= 0.1 * sd).all()
    # The metric of these questions is the mean of the metric of each.
    latent = np.stack([one.latent(drawn.p).mean(axis=1) for one in posterior.metrics], axis=1)
    np.testing.assert_allclose(latent, drawn.metrics[:, :, 0], atol=1e-12)
