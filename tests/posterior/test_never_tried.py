"""A question that was never tried is no observation of a population that a bootstrap draws from."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayesatk as bk

WEIGHT = [1.0, 2.0, 1.0, 5.0, 1.0, 3.0, 2.0]
JUDGE = bk.JudgeError(tp=46, p=50, fp=6, n=50)
RIGHT, TRIALS = [3, 0, 4, 1, 0, 0, 0], [4, 4, 4, 2, 0, 0, 0]
GRADES = [["a", "c", "b"], ["b"], ["c", "c"], [], []]
VOTES = [["1", "1", "2"], ["3", None], ["7"], [None], [None]]


def _of_trials(tried: slice, weight: list[float] | None = None) -> bk.Outcomes:
    own = None if weight is None else weight[tried]
    return bk.tally(RIGHT[tried], trials=TRIALS[tried], missing="ignore", weight=own)


def _of_votes(tried: slice) -> bk.Outcomes:
    rules = bk.AnswerRules(unanswered="exclude")
    keys = ["1", "3", "6", "5", "4"][tried]
    return bk.tally(None, answers=VOTES[tried], reference=keys, answer_rules=rules)


def _of_grades(tried: slice) -> bk.Outcomes:
    scores = {"a": 0.0, "b": 0.5, "c": 1.0}
    return bk.tally(GRADES[tried], scores=scores, missing="ignore")


NONE = {"pooling": "none"}
CASES: dict[str, tuple[Any, str, int, dict[str, Any]]] = {
    "right and wrong": (_of_trials, "pass@1,4", 4, NONE),
    "a judge": (_of_trials, "pass@1,4", 4, {**NONE, "judge": JUDGE}),
    "weights": (lambda tried: _of_trials(tried, WEIGHT), "pass@1,4", 4, NONE),
    "weights, pooled": (
        lambda tried: _of_trials(tried, WEIGHT),
        "pass@1",
        4,
        {"difficulty": "beta", "population": "bootstrap"},
    ),
    "grades": (_of_grades, "bayes max@2", 3, NONE),
    "votes": (_of_votes, "plurality@1,3", 3, NONE),
}


@pytest.mark.parametrize("keep", [(), ("p",)])
@pytest.mark.parametrize("name", CASES)
def test_the_population_is_that_of_the_questions_tried(name: str, keep: tuple[str, ...]) -> None:
    data_of, metrics, tried, options = CASES[name]
    if name == "votes" and keep:
        pytest.skip("votes have no p")
    every, some = (
        bk.table(bk.evaluate(data_of(part), metrics, rng=1, keep=keep, **options))
        for part in (slice(None), slice(tried))
    )
    one, other = (rows.query("target == 'population'") for rows in (every, some))
    exact = 0.02 if name == "votes" else 1e-6  # their sds are those of draws
    assert_allclose(one["mean"], other["mean"], rtol=1e-6)
    assert_allclose(one["sd"], other["sd"], rtol=exact)
    for end in ("ci_lower", "ci_upper"):
        most = one["ci_error"].to_numpy() + other["ci_error"].to_numpy()
        assert (np.abs(one[end].to_numpy() - other[end].to_numpy()) <= most).all()
    these = every.query("target == 'questions'")["mean"].to_numpy()
    assert (np.abs(these - other["mean"].to_numpy()) > 1e-3).any()


def test_these_questions_are_all_that_were_asked() -> None:
    """Without trials a question has its prior: 1/2."""
    fit = bk.evaluate(_of_trials(slice(None)), "pass@1", pooling="none", rng=1)
    means = [(c + 1) / (n + 2) for c, n in zip(RIGHT, TRIALS, strict=True)]
    mean = bk.table(fit).set_index("target").loc["questions", "mean"]
    assert mean == pytest.approx(np.mean(means))


def test_a_question_that_was_never_tried_has_no_influence_on_the_population() -> None:
    data = _of_trials(slice(None))
    fit = bk.evaluate(data, "pass@1", pooling="none", rng=1)
    rows = bk.checks.question_table(fit, "pass@1", target="population")
    assert_allclose(rows["influence"][4:], 0.0, atol=1e-12)
    means = [(c + 1) / (n + 2) for c, n in zip(RIGHT[:4], TRIALS[:4], strict=True)]
    left = [np.mean(means) - np.mean(np.delete(means, i)) for i in range(4)]
    assert_allclose(rows["influence"][:4], left, atol=1e-9)


def test_draws_of_other_models_leave_them_out_too() -> None:
    from bayesatk.models.metric_draws import Shares, SystemMetrics, stored

    p = np.broadcast_to([0.2, 0.4, 0.9], (400, 3))
    rng, grid = np.random.default_rng(1), bk.evaluate([[1]], "pass@1", rng=1)
    counts = np.array([[1.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    metrics = SystemMetrics(
        list(bk.Result.of(grid).grid),
        Shares.of(3),
        partial(stored, p),
        counts.any(axis=1),
        resampled=True,
    )
    values = metrics.draw(False, rng).whole
    assert_allclose(values[:, 0, 0], 0.5)
    assert values[:, 0, 1].max() < 0.4
    assert values[:, 0, 1].mean() == pytest.approx(0.3, abs=0.02)
