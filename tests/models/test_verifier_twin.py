"""Best of k and weighted votes from PyMC against the closed forms; their definitions alone."""

from itertools import permutations

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.models.verifier import NOBODY, added_votes

QUESTIONS, TRIALS = 12, 6
NUTS = {"progress": False, "rng": 1, "draws": 600, "tune": 400}


def scored_trials() -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Marks and scores that are higher where right, with ties."""
    rng = np.random.default_rng(3)
    right = (rng.random((QUESTIONS, TRIALS)) < rng.beta(2, 1.5, (QUESTIONS, 1))).astype(int)
    return right, np.round(rng.normal(size=right.shape) + right) / 2, rng


def test_votes_are_added_by_answer() -> None:
    """Answers 0 (right) of weight 3, and 1 and 2 of weights 2 and 1; a trial without an answer."""
    for order in permutations(range(4)):
        answer = np.array([0, 1, 2, NOBODY])[list(order)]
        weight = np.array([3.0, 2.0, 1.0, 9.0])[list(order)]
        assert added_votes(answer, answer == 0, weight) == 1.0
        merged = np.where(answer == 2, 1, answer)  # 1 has three, too
        assert added_votes(merged, merged == 0, weight) == 0.5
        assert added_votes(merged, merged < 0, weight) == 0.0
    assert added_votes(np.full(3, NOBODY), np.ones(3, bool), np.ones(3)) == 0.0


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        ("bon@1,3 pass@1", {"difficulty": "beta"}),
        ("bon@3", {"group": "group", "covariates": "x"}),
        ("bon@3", {"pooling": "complete"}),
        ("bon@3", {"pooling": "none"}),
    ],
    ids=["one Beta", "groups and covariates", "complete", "none"],
)  # fmt: skip
def test_the_best_by_a_verifier_is_that_of_pymc(metrics: str, options: dict[str, str]) -> None:
    right, score, rng = scored_trials()
    data = bk.tally(
        right, verifier=score, group=np.repeat(list("abc"), 4),
        covariates={"x": rng.normal(size=QUESTIONS)},
    )  # fmt: skip
    exact = bk.evaluate(data, metrics, rng=1, draws=4000, **options)
    verification = bk.verify(exact, bk.sample(data, metrics, **options, **NUTS))
    assert verification.verdict == "agree", verification.table.to_string()
    names = set(verification.table["variable"])
    assert "bon_at_k" in names
    if "group" in options:
        assert {"new_groups", "population"} <= set(verification.table["target"].dropna())


@pytest.mark.slow
@pytest.mark.long
def test_weighted_votes_are_those_of_pymc() -> None:
    """With abstentions; beside votes that all count the same."""
    right, score, rng = scored_trials()
    answers = np.where(right == 1, "0", rng.integers(1, 4, right.shape).astype(str)).astype(object)
    answers[rng.random(answers.shape) < 0.15] = None
    data = bk.tally(None, answers=answers, reference=["0"] * QUESTIONS, verifier=np.exp(score))
    metrics, options = "wvote@3 plurality@3", {"difficulty": "beta"}
    exact = bk.evaluate(data, metrics, rng=1, draws=4000, **options)
    verification = bk.verify(exact, bk.sample(data, metrics, **options, **NUTS))
    assert verification.verdict == "agree", verification.table.to_string()
    assert {"wvote_at_k", "plurality_at_k"} <= set(verification.table["variable"])
