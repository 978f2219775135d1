"""Plans and gates where a judge errs and the truth of some trials is known."""

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.comparison.plans.pilots import ComposedPilot
from bayesatk.metrics.grid import parse

SAME = bk.JudgeError(0, 0, 0, 0, by_question=False)


def marked(seed, questions, labels, trials=4, rates=(0.95, 0.3), ability=2.0):
    """Marks of a judge, and the truth of some trials chosen at random."""
    rng = np.random.default_rng(seed)
    right = rng.random((questions, trials)) < rng.beta(ability, 1.0, questions)[:, None]
    marks = (rng.random(right.shape) < np.where(right, *rates)).astype(int)
    truth = np.full(right.shape, np.nan)
    known = rng.choice(right.size, labels, replace=False)
    truth.flat[known] = right.flat[known]
    return bk.tally(marks, truth=truth)


@pytest.fixture(scope="module")
def pilot():
    return bk.evaluate(marked(1, 150, 150), "pass@1", difficulty="beta", judge=SAME, rng=1)


def width(fit, target):
    row = bk.table(fit).query(f"target == '{target}'").iloc[0]
    return row["ci_upper"] - row["ci_lower"]


@pytest.mark.long
def test_a_plan_of_labels_has_the_width_that_evaluations_then_have(pilot) -> None:
    """Fisher information against whole evaluations of as many questions, trials and labels."""
    plan = bk.plan(pilot, "pass@1", width=0.2, trials=[4], labels=[80, 150])
    table = bk.table(plan, "plan").set_index("labels")
    assert table.loc[80, "questions"] > 1.3 * table.loc[150, "questions"]
    questions = int(table.loc[80, "questions"])
    widths = [
        width(bk.evaluate(data, "pass@1", difficulty="beta", judge=SAME, rng=1), "population")
        for data in (marked(seed, questions, 80) for seed in (2, 3, 4))
    ]
    assert np.mean(widths) == pytest.approx(0.2, rel=0.25)
    as_many = bk.plan(pilot, "pass@1", width=0.2, trials=[4])
    assert bk.table(as_many, "plan")["questions"].tolist() == [table.loc[150, "questions"]]
    # These questions, with fewer trials than labels: all are marked by hand.
    few = bk.plan(pilot, "pass@1", width=0.17, trials=[4], labels=[300], target="questions")
    assert bk.table(few, "plan")["total"].item() < 300


def test_all_labels_plan_what_the_truth_alone_does(pilot) -> None:
    """With every trial marked by hand the marks tell nothing of p."""
    result, (metric,) = bk.Result.of(pilot), parse("pass@1")
    labelled = ComposedPilot.of(result, 0, metric, 1, labels=10**6)
    ((fit, theta),) = labelled.draws
    mean, icc = (1.0 / (1.0 + np.exp(-theta[0, fit.fields.slices[name]]))
                 for name in ("mean", "icc"))  # fmt: skip
    stated = bk.plan((float(mean[0]), float(icc[0])), "pass@1", width=0.1, trials=[3])
    row = bk.table(stated, "plan").iloc[0]
    planned = labelled.questions()[0](3).variance(row["questions"])
    assert np.sqrt(planned[1]) == pytest.approx(row["width"] / (2.0 * 1.959964), rel=0.01)


def test_plans_of_labels_are_of_few_trials(pilot) -> None:
    with pytest.raises(ValueError, match=r"trials must be at most 32 .* got 64"):
        bk.plan(pilot, "pass@1", width=0.1, trials=[64], labels=[10])


def test_two_systems_of_one_judge_are_planned_one_at_a_time() -> None:
    both = {"a": np.ones((12, 2), int), "b": np.zeros((12, 2), int)}
    judge = bk.JudgeError(90, 100, 3, 100)
    fit = bk.evaluate(both, "pass@1", difficulty="beta", judge=judge, rng=1, draws=20)
    with pytest.raises(ValueError, match="must be of one system where systems share a judge"):
        bk.plan(fit, "pass@1", width=0.1, trials=[2])


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
    table = bk.table(bk.compare(fit, rope=0.1, rng=0), "comparison").query("target == 'questions'")
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
