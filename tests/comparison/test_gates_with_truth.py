"""Gates where a judge errs and the truth of some trials is known."""

import numpy as np
import pytest

import bayesatk as bk


def marked(seed, questions, labels, trials=4, rates=(0.95, 0.3), ability=2.0):
    """Marks of a judge, and the truth of some trials chosen at random."""
    rng = np.random.default_rng(seed)
    right = rng.random((questions, trials)) < rng.beta(ability, 1.0, questions)[:, None]
    marks = (rng.random(right.shape) < np.where(right, *rates)).astype(int)
    truth = np.full(right.shape, np.nan)
    known = rng.choice(right.size, labels, replace=False)
    truth.flat[known] = right.flat[known]
    return bk.tally(marks, truth=truth)


POLICY = bk.decide.GatePolicy("pass@1", margin=0.1, pooling="none")


@pytest.mark.long
def test_a_gate_decides_on_what_is_true() -> None:
    """A judge that favours the baseline: the marks say one thing, the truth another."""
    new, old = marked(1, 60, 120, rates=(0.9, 0.1)), marked(1, 60, 120, rates=(0.95, 0.6))
    tree = bk.decide.gate(new, old, POLICY)
    marks = [bk.tally((data.successes[0].values, data.trials[0].values)) for data in (new, old)]
    of_marks = bk.decide.gate(*marks, POLICY)["gate"]
    assert tree["gate"].attrs["verdict"] == "pass"
    assert float(of_marks["above"].sel(check="difference")) < 0.5
    fit = bk.evaluate(bk.Result.of(tree).data, "pass@1", pooling="none", rng=0)
    table = bk.table(bk.compare(fit, rope=0.1), "comparison").query("target == 'questions'")
    difference = float(tree["gate"]["mean"].sel(check="difference"))
    assert abs(table["mean"].iloc[0]) == pytest.approx(abs(difference), abs=0.01)


def test_a_gate_takes_a_calibration_set() -> None:
    rng = np.random.default_rng(3)
    new, old = (rng.integers(0, 2, (30, 4)) for _ in range(2))
    perfect = bk.JudgeError(10**4, 10**4, 0, 10**4)
    gate, plain = (
        bk.decide.gate(new, old, POLICY, judge=judge)["gate"] for judge in (perfect, None)
    )
    for name in ("mean", "sd", "above"):
        corrected, as_marked = (float(g[name].sel(check="difference")) for g in (gate, plain))
        assert corrected == pytest.approx(as_marked, abs=0.01)


@pytest.mark.long
def test_what_a_gate_of_judges_refuses() -> None:
    new, old = marked(1, 20, 30), marked(2, 20, 30)
    with pytest.raises(ValueError, match="baseline must have trials of known truth"):
        bk.decide.gate(new, np.ones((20, 4), int), POLICY)
    floors = bk.decide.GatePolicy("pass@1", margin=0.1, pooling="none", floors={"3": 0.5})
    with pytest.raises(ValueError, match="pooled_floors must be True where a judge errs"):
        bk.decide.gate(new, old, floors)
