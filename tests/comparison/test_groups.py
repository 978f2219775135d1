"""Systems on questions in groups: comparisons, checks and plans."""

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.checks.criticism import log_evidence_ratio
from bayesatk.posterior.models_of import model_of
from bayesatk.results.result import Result


def simulated(rng, groups: int, size: int, sd: float, systems: int = 1) -> tuple:
    """Right and wrong (system, question, trial) of systems that find the same hard, and groups."""
    code = np.repeat(np.arange(groups), size)
    mean = expit(0.4 + sd * rng.normal(size=groups))[code]
    p = rng.beta(2.0 * mean, 2.0 * (1.0 - mean))
    return rng.binomial(1, p[None, :, None], (systems, len(code), 4)), [
        f"g{label}" for label in code
    ]


@pytest.fixture(scope="module")
def compared():
    runs, groups = simulated(np.random.default_rng(2), 8, 6, 1.0, systems=2)
    data = bk.tally({"a": runs[0], "b": runs[1], "c": runs[0]}, group=groups)
    return bk.compare(bk.evaluate(data, "pass@1", group="group", rng=1, draws=400))


def test_differences_are_those_of_the_means(compared) -> None:
    for name, exact in (("comparison", "closed_form"), ("group_comparison", "group_closed_form")):
        mean = compared[exact]["pass_at_k"].sel(statistic="mean")
        gap = mean.sel(system="a", drop=True) - mean.sel(system="b", drop=True)
        difference = compared[name]["pass_at_k"].sel(system="a", other="b", contrast="mean")
        sd = compared[name]["pass_at_k"].sel(system="a", other="b", contrast="sd")
        assert float(abs((difference - gap) / sd).max()) < 0.35


def test_what_is_hard_for_both_makes_differences_more_certain(compared) -> None:
    pair = compared["comparison"]["pass_at_k"].sel(system="a", other="b", k=1)
    sd, alone = (pair.sel(contrast=name).values for name in ("sd", "sd_unpaired"))
    assert sd[0] == pytest.approx(alone[0], rel=0.05)  # these questions: independent
    assert sd[1] < 0.9 * alone[1]
    assert sd[2] < 0.6 * alone[2]
    assert sd[2] > sd[0]


def test_tables_and_sentences_have_all_targets(compared) -> None:
    rows = bk.table(compared, "comparison")
    assert set(rows["target"]) == {"questions", "population", "new_groups"}
    assert "On new groups of questions" in bk.claim(
        compared, system="a", other="b", target="new_groups"
    )
    of_groups = bk.table(compared, "comparison", by="group")
    assert len(of_groups) == 3 * 8 * 2
    assert len(bk.table(compared, by="group")) == 3 * 8 * 2


@pytest.mark.long
def test_criticise_weighs_one_level_against_two() -> None:
    rng = np.random.default_rng(4)
    for sd, flagged_one, flagged_two in ((2.0, True, False), (0.0, False, False)):
        runs, groups = simulated(rng, 12, 8, sd)
        data = bk.tally(runs[0], group=groups)
        one_level = bk.evaluate(data, "pass@1", difficulty="beta", group=False, draws=250, rng=1)
        two_levels = bk.evaluate(data, "pass@1", group="group", draws=250, rng=1)
        rows = [
            bk.checks.criticise(each, rng=1).set_index("check").loc["groups"]
            for each in (one_level, two_levels)
        ]
        assert [row["flagged"] for row in rows] == [flagged_one, flagged_two]
        assert rows[0]["observed"] + rows[1]["observed"] == pytest.approx(1.0)
        ratio = log_evidence_ratio(Result.of(two_levels), 0)
        evidence = [model_of(Result.of(each), 0).log_evidence() for each in (two_levels, one_level)]
        assert ratio == pytest.approx(evidence[0] - evidence[1], abs=1e-6)
        assert f"{np.exp(abs(ratio)):.3g}" in rows[0]["sentence"] or abs(ratio) >= 20.0


@pytest.mark.long
def test_criticise_has_no_levels_of_marks_with_error() -> None:
    data = bk.tally([[1, 0], [1, 1], [0, 0], [0, 1]], group=list("xxyy"))
    judge = bk.JudgeError(tp=95, p=100, fp=2, n=100)
    fit = bk.evaluate(data, "pass@1", judge=judge, difficulty="beta", draws=20, rng=1)
    assert "groups" not in set(bk.checks.criticise(fit, rng=1)["check"])


def test_a_plan_of_groups_is_refused() -> None:
    runs, groups = simulated(np.random.default_rng(1), 4, 3, 1.0)
    pilot = bk.evaluate(bk.tally(runs[0], group=groups), "pass@1", group="group", draws=9, rng=1)
    with pytest.raises(ValueError, match=r"source must be without groups for a plan: .*root of"):
        bk.plan(pilot, "pass@1", width=0.1)


def test_floors_of_gates_may_name_groups_of_the_data() -> None:
    new, groups = [[1, 1, 1, 1]] * 20 + [[0, 0, 1, 0]] * 20, ["easy"] * 20 + ["hard"] * 20
    policy = bk.decide.GatePolicy("pass@1", margin=0.2, floors={"easy": 0.8, "hard": 0.8})
    both = [bk.tally(new, group=groups) for _ in range(2)]
    verdict = bk.decide.gate(*both, policy)["gate"]["verdict"]
    assert verdict.sel(check=["floor easy", "floor hard"]).values.tolist() == ["pass", "fail"]
    with pytest.raises(ValueError, match="is neither"):
        bk.decide.gate(new, new, policy)
    regrouped = bk.tally(new, group=groups[::-1])
    with pytest.raises(ValueError, match="must be the same for both systems"):
        bk.decide.gate(both[0], regrouped, policy)
