"""Gates: the probability behind a verdict, its long run, floors, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

import bayesatk as bk
from bayesatk.comparison.gates.floors import decided
from bayesatk.comparison.gates.gate import EXIT_CODES, Gate, gate_of, joined_outcomes
from bayesatk.comparison.gates.policy import GateDesign, GateRates, run_noise
from bayesatk.metrics.grid import parse
from bayesatk.results.result import Result

QUICK = {"derandomize": True, "deadline": None}


def _runs(seed: int, questions: int = 40, trials: int = 4, worse: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = np.random.default_rng(0).beta(0.8, 0.6, questions)
    return rng.binomial(1, p[:, None] ** worse, (questions, trials))


def _gate(new: object, baseline: object, policy: bk.decide.GatePolicy) -> Gate:
    return gate_of(joined_outcomes(new, baseline), policy)


@pytest.mark.parametrize("rule", ["non-inferiority", "superiority"])
def test_the_probability_is_that_of_independent_draws(rule) -> None:
    """Without pooling every question has its Beta posterior: a million draws of the difference."""
    new, old, rng = _runs(1), _runs(2), np.random.default_rng(3)
    policy = bk.decide.GatePolicy("pass@2", margin=0.05, rule=rule, pooling="none")
    found = _gate(new, old, policy)
    means = []
    for runs in (new, old):
        right = runs.sum(axis=1)
        p = rng.beta(right + 1.0, runs.shape[1] - right + 1.0, (100_000, len(right)))
        means.append((1.0 - (1.0 - p) ** 2).mean(axis=1))
    gap = means[0] - means[1]
    density = found.group()["density"]
    width = float(np.diff(density["difference"])[0])
    assert float(density.sum()) * width == pytest.approx(1.0, abs=0.01)
    above = float(density.where(density["difference"] > policy.threshold).sum()) * width
    assert above == pytest.approx(found.probability, abs=0.03)
    slack = 4.0 * np.hypot(found.error, 0.5 / np.sqrt(len(gap)))
    assert found.probability == pytest.approx((gap > policy.threshold).mean(), abs=slack)
    assert found.difference["mean"] == pytest.approx(gap.mean(), abs=0.001)
    assert found.error < 5e-3
    assert found.observed["new"] == pytest.approx(bk.table(
        bk.evaluate(new, "pass@2", pooling="none", rng=1))["estimate"][0])  # fmt: skip


@pytest.mark.long
@settings(max_examples=10, **QUICK)
@given(
    st.integers(0, 2**31), st.integers(3, 20), st.integers(1, 5), st.floats(0.5, 3.0),
    st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from(["questions", "population"]),
)  # fmt: skip
def test_a_system_is_not_worse_where_the_other_is_not_better(
    seed, questions, trials, worse, margin, target
) -> None:
    """Non-inferiority with a margin passes where superiority of the other by it fails."""
    new, old = _runs(seed, questions, trials, worse), _runs(seed + 1, questions, trials)
    rules = {"margin": margin, "ci_prob": 0.9, "target": target, "pooling": "none"}
    one = _gate(new, old, bk.decide.GatePolicy("pass@1", **rules))
    other = _gate(old, new, bk.decide.GatePolicy("pass@1", rule="superiority", **rules))
    slack = 5.0 * np.hypot(one.error, other.error) + 1e-3  # both are counts of draws
    assert one.probability == pytest.approx(1.0 - other.probability, abs=slack)
    assert one.verdict == decided(one.probability, 0.9)
    if min(abs(one.probability - 0.9), abs(one.probability - 0.1)) > slack:
        turned = {"pass": "fail", "fail": "pass", "inconclusive": "inconclusive"}
        assert one.verdict == turned[other.verdict]
    assert one.exit_code == EXIT_CODES[one.verdict]
    assert 0.0 <= one.replication <= 1.0
    assert one.as_dict() == _gate(new, old, bk.decide.GatePolicy("pass@1", **rules)).as_dict() | {
        "origin": one.origin
    }
    assert json.loads(json.dumps(one.as_dict(), allow_nan=False))["verdict"] == one.verdict


def test_rates_are_those_of_normal_draws() -> None:
    rng = np.random.default_rng(5)
    found = GateRates.at(0.02, 0.01, 0.012, 0.95)
    mean = 0.02 + 0.012 * rng.standard_normal(1_000_000)
    score = mean / 0.01
    assert found.passes == pytest.approx((score >= 1.644854).mean(), abs=0.002)
    assert found.fails == pytest.approx((score <= -1.644854).mean(), abs=0.002)
    pair = np.where(score >= 1.644854, 1, np.where(score <= -1.644854, -1, 0)).reshape(2, -1)
    assert found.flip == pytest.approx((pair[0] != pair[1]).mean(), abs=0.003)


def test_as_many_more_trials_as_said_make_flips_rare() -> None:
    policy = bk.decide.GatePolicy("pass@1", margin=0.03)
    few = GateDesign.of(policy, 100, 4, 0.02, 0.022)
    assert few.more_trials is not None
    root = np.sqrt(few.more_trials)
    many = GateDesign.of(policy, 100, 4, 0.02 / root, 0.022 / root)
    assert many.same_system.flip == pytest.approx(0.05, abs=0.001)
    superior = bk.decide.GatePolicy("pass@1", margin=0.0, rule="superiority")
    assert GateDesign.of(superior, 100, 4, 0.02, 0.02).more_trials is None


def test_a_design_from_a_baseline_and_from_its_difficulty_agree() -> None:
    policy = bk.decide.GatePolicy("pass@1", margin=0.03, effect=-0.06)
    rng = np.random.default_rng(8)
    runs = rng.binomial(1, rng.beta(1.4, 0.9, (300, 1)), (300, 8))  # mean .61, icc .30
    fit = bk.evaluate(runs, "pass@1", difficulty="beta", rng=1)
    own = bk.decide.gate_design(policy, fit)
    stated = bk.decide.gate_design(policy, (0.61, 0.30), questions=300, trials=8)
    planned = bk.decide.gate_design(policy, fit, questions=300, trials=8)
    assert own.sd == pytest.approx(stated.sd, rel=0.05)
    assert planned.sd == pytest.approx(own.sd, rel=0.05)
    assert own.at_effect is not None
    assert own.at_effect.fails == pytest.approx(stated.at_effect.fails, abs=0.1)
    more = bk.decide.gate_design(policy, (0.61, 0.30), questions=1200, trials=8)
    assert more.sd == pytest.approx(stated.sd / 2, rel=0.01)


def test_floors_of_questions_and_groups() -> None:
    """A floor that fails makes the gate fail; one that passes has binomial confidence."""
    old = np.tile([1, 1, 1, 0, 1, 1, 1, 1], (30, 1))
    new = old.copy()
    new[0, :] = 0
    rules = {"margin": 0.2, "pooling": "none", "ci_prob": 0.9}
    passing = _gate(new, old, bk.decide.GatePolicy("pass@1", **rules))
    assert passing.verdict == "pass"
    floors = {0: 0.5, 1: 0.3, "rest": 0.5}
    policy = bk.decide.GatePolicy("pass@1", floors=floors, groups={"rest": [2, 3, 4, 5]}, **rules)
    found = _gate(new, old, policy)
    assert [one.verdict for one in found.floors] == ["fail", "pass", "pass"]
    assert found.verdict == "fail"
    assert found.floors[0].below == pytest.approx(1 - 0.5**8)
    assert found.floors[1].above == pytest.approx(beta(7, 2).sf(0.3))  # Clopper and Pearson's
    assert found.floors[2].value == pytest.approx(7 / 8)
    posterior = _gate(new, old, replace(policy, pooled_floors=True)).floors
    assert posterior[0].above == pytest.approx(beta(1, 9).sf(0.5), abs=0.01)
    assert posterior[1].above == pytest.approx(beta(8, 2).sf(0.3), abs=0.01)
    assert str(found).count("floor") == 3
    with pytest.raises(ValueError, match="'q9' is neither"):
        bk.decide.gate(new, old, bk.decide.GatePolicy("pass@1", floors={"q9": 0.5}, **rules))


def test_identical_data_pass_with_a_margin_and_never_fail() -> None:
    same = _runs(4)
    found = _gate(same, same, bk.decide.GatePolicy("pass@1", margin=0.15))
    assert found.verdict == "pass"
    assert found.difference["mean"] == pytest.approx(0.0, abs=1e-12)
    rates = f"{found.replication:.3f} if the true difference is as uncertain as this run leaves it"
    unchanged = f"with {found.design.same_system.passes:.3f} if the systems do not differ."
    assert f"{rates}, and {unchanged}" in str(found)
    assert _gate(same, same, bk.decide.GatePolicy("pass@1", margin=0.001)).verdict == "inconclusive"
    right = np.ones((10, 4), int)
    sure = _gate(right, right, bk.decide.GatePolicy("pass@1", margin=0.1, ci_prob=0.8))
    assert np.isnan(list(sure.difference.values())).sum() == 0


def test_systems_are_aligned_on_their_questions() -> None:

    rows = [(f"q{i}", t, int((i + t) % 3 > 0)) for i in range(12) for t in range(4)]
    frame = pd.DataFrame(rows, columns=["question", "trial", "outcome"])
    mixed = frame.sample(frac=1.0, random_state=1)
    data = joined_outcomes(frame, mixed)
    new, old = (data.dataset["count"].sel(system=name) for name in ("new", "baseline"))
    assert bool((new == old).all())
    fewer = frame[frame["question"] != "q3"]
    with pytest.raises(ValueError, match=r"1 of 12 were tried by one.*shared=True"):
        bk.decide.gate(fewer, frame, metric="pass@1", margin=0.1)
    found = bk.decide.gate(fewer, frame, metric="pass@1", margin=0.1, shared=True)
    origin = json.loads(found["gate"].attrs["record"])["origin"]
    assert origin["questions"] == 11
    assert origin["questions_left_out"] == 1


def test_the_group_has_the_verdict_and_every_reason(tmp_path) -> None:
    new, old = _runs(1), _runs(2)
    policy = bk.decide.GatePolicy(
        "pass@1", margin=0.1, floors={3: 0.1, "some": 0.99}, groups={"some": [1]}
    )
    tree, gate = bk.decide.gate(new, old, policy), _gate(new, old, policy)
    group, table = tree["gate"], bk.table(tree, "gate")
    assert str(table) == str(gate)
    assert group.attrs["verdict"] == gate.verdict
    assert group.attrs["exit_code"] == EXIT_CODES[gate.verdict]
    record = json.loads(group.attrs["record"])
    assert record == gate.as_dict() | {"origin": record["origin"]}
    assert table["check"].tolist() == ["difference", "floor 3", "floor some"]
    assert table["threshold"].tolist() == [-0.1, 0.1, 0.99]
    assert table["verdict"].tolist()[1:] == [floor.verdict for floor in gate.floors]
    row = group.sel(check="difference")
    assert {name: row[name].item() for name in gate.difference} == gate.difference
    again = bk.load_result(bk.save(tree, tmp_path / "gate.nc"))
    assert again.identical(tree)
    assert bk.table(again, "gate").equals(table)
    assert "gate" not in again.sel(system="new")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "pass@1", "margin": 0.0}, "margin must be > 0 for non-inferiority"),
        ({"metric": "pass@1", "margin": -1.0, "rule": "superiority"}, "margin must be 0 or more"),
        ({"metric": "pass@1,2", "margin": 0.1}, "one metric at one k"),
        ({"metric": "pass@1", "margin": 0.1, "ci_prob": 0.5}, "strictly between 0.5 and 1"),
        ({"metric": "pass@1", "margin": 0.1, "rule": "better"}, "non-inferiority, superiority"),
        ({"metric": "pass@1", "margin": "much"}, "margin must be a number"),
        ({"metric": "pass@1", "margin": 0.1, "floors": [0.1]}, "floors must be a mapping"),
        ({"metric": "pass@1", "margin": 0.1, "groups": {"a": ["q"]}}, "'a' has none in floors"),
        ({"metric": "pass@1", "margin": 0.1, "groups": {"a": "q"}, "floors": {"a": 0.1}},
         "name the questions of each group"),
    ],
)  # fmt: skip
def test_policies_that_cannot_be_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.GatePolicy(**arguments)


def test_gates_that_cannot_be_are_refused() -> None:
    runs = _runs(1)
    with pytest.raises(ValueError, match=r"give a policy, or metric=.pass@1. and margin=0.02"):
        bk.decide.gate(runs, runs, metric="pass@1")
    with pytest.raises(ValueError, match="left out with a policy"):
        bk.decide.gate(runs, runs, bk.decide.GatePolicy("pass@1", margin=0.1), margin=0.1)
    with pytest.raises(ValueError, match="new must be of one system"):
        bk.decide.gate({"a": runs, "b": runs}, runs, metric="pass@1", margin=0.1)
    scored = bk.tally([["a", "b"]], scores={"a": 0.5, "b": 2.0})
    with pytest.raises(ValueError, match="must have the scores of baseline"):
        bk.decide.gate(scored, runs, metric="bayes", margin=0.1)
    with pytest.raises(ValueError, match="for votes evaluate both systems"):
        bk.decide.gate(runs, runs, metric="plurality@3", margin=0.1)
    policy = bk.decide.GatePolicy("pass@4", margin=0.1)
    with pytest.raises(ValueError, match="trials must be given"):
        bk.decide.gate_design(policy, (0.6, 0.3), questions=10)
    with pytest.raises(ValueError, match="two trials or more"):
        bk.decide.gate_design(policy, (0.6, 0.3), questions=10, trials=1)
    with pytest.raises(ValueError, match=r"GatePolicy\.read"):
        bk.decide.gate_design("gate.toml", (0.6, 0.3), questions=10, trials=1)


def test_a_policy_file_and_its_digest(tmp_path) -> None:
    path = tmp_path / "gate.toml"
    text = 'metric = "pass@1"\nmargin = 0.02\n[floors]\nq7 = 0.9\n'
    path.write_text(text)
    one = bk.decide.GatePolicy.read(path)
    assert one == bk.decide.GatePolicy("pass@1", margin=0.02, floors={"q7": 0.9})
    path.write_text("# agreed on 1 June\n" + text)
    assert bk.decide.GatePolicy.read(path).sha256 == one.sha256
    path.write_text(text.replace("0.02", "0.03"))
    assert bk.decide.GatePolicy.read(path).sha256 != one.sha256
    for wrong, message in (
        ("metric = [", "none"),
        ("margn = 1", "'margn'"),
        ("", "lacks 'metric'"),
    ):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=message):
            bk.decide.GatePolicy.read(path)


def test_markdown_shows_labels_as_they_are() -> None:
    runs = _runs(1)
    policy = bk.decide.GatePolicy(
        "pass@1", margin=0.2, floors={"<b>*0*</b>": 0.1}, groups={"<b>*0*</b>": [0]}
    )
    text = _gate(runs, runs, policy).markdown()
    assert r"\<b\>\*0\*\</b\>" in text
    assert policy.sha256[:16] in text
    assert text.startswith("### ")


def _verdicts(policy: bk.decide.GatePolicy, p: np.ndarray, trials: int, times: int) -> list[Gate]:
    rng = np.random.default_rng(9)
    return [
        _gate(*(rng.binomial(1, p[:, None], (len(p), trials)) for _ in range(2)), policy)
        for _ in range(times)
    ]


@pytest.mark.long
def test_verdicts_on_the_same_system_flip_as_rarely_as_stated() -> None:
    """With real gates on simulated runs."""
    p = np.random.default_rng(2).beta(0.9, 0.6, 60)
    found = _verdicts(bk.decide.GatePolicy("pass@1", margin=0.08), p, 4, 40)
    share = np.array([
        np.mean([one.verdict == name for one in found]) for name in ("pass", "fail", "inconclusive")
    ])  # fmt: skip
    flips = 1.0 - (share**2).sum()
    stated = np.mean([one.design.same_system.flip for one in found])
    # The flip rate from 40 gates has an sd of .07 at most.
    assert stated - 0.21 <= flips <= stated + 0.15
    passes = np.mean([one.design.same_system.passes for one in found])
    assert share[0] == pytest.approx(passes, abs=0.2)


@pytest.mark.long
@pytest.mark.parametrize("weight", [None, [4.0] * 10 + [1.0] * 30])
def test_noise_of_a_run_without_pooling_is_that_of_its_posterior_mean(weight) -> None:
    rng = np.random.default_rng(6)
    p = rng.beta(1.0, 0.7, 40)
    share = np.ones(40) / 40 if weight is None else np.array(weight) / sum(weight)
    means = (1.0 + rng.binomial(4, p, (20_000, 40))) / 6.0 @ share
    found = []
    for seed in range(40):
        data = bk.tally((rng.binomial(4, p), np.full(40, 4)), weight=weight)
        fit = bk.evaluate(data, "pass@1", pooling="none", draws=4, rng=seed)
        found.append(run_noise(Result.of(fit), 0, parse("pass@1")[0])[1] ** 2)
    error = 5.0 * np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(means.var(), abs=error)
    assert error < 0.2 * means.var()  # that of the rates themselves is 2.25 times as large


def test_a_result_of_both_decides_as_their_data() -> None:
    new, old = _runs(1), _runs(2, worse=1.4)
    policy = bk.decide.GatePolicy("pass@1", margin=0.05, effect=-0.1, floors={3: 0.2})
    fit = bk.evaluate({"v2": new, "v1": old}, "pass@1", draws=2500, rng=0)
    rows = bk.table(bk.decide.gate(fit, "v1", policy), "gate")
    pd.testing.assert_frame_equal(
        rows.drop(columns="sentence"),
        bk.table(bk.decide.gate(new, old, policy), "gate").drop(columns="sentence"),
    )
    turned = bk.table(bk.decide.gate(fit, "v2", metric="pass@1", margin=0.05), "gate")
    assert turned["mean"][0] == pytest.approx(-rows["mean"][0])


def test_earlier_trials_of_a_result_count() -> None:
    """Without pooling every question has its Beta posterior, which the earlier trials are in."""
    new, old, before = _runs(1), _runs(2), _runs(5, trials=6)
    fit = bk.evaluate(
        {"new": new, "old": old}, "pass@1", pooling="none", rng=1,
        prior_trials=bk.tally({"new": 1 - before, "old": before}), prior_weight=0.5,
    )  # fmt: skip
    gate = bk.decide.gate(fit, "old", metric="pass@1", margin=0.2)["gate"].sel(check="difference")
    earlier, rng = before.sum(axis=1), np.random.default_rng(3)
    means = [
        rng.beta(runs.sum(axis=1) + 0.5 * right + 1.0,
                 4 - runs.sum(axis=1) + 0.5 * (6 - right) + 1.0, (100_000, len(right))).mean(axis=1)
        for runs, right in ((new, 6 - earlier), (old, earlier))
    ]  # fmt: skip
    gap = means[0] - means[1]
    assert float(gate["mean"]) == pytest.approx(gap.mean(), abs=0.001)
    assert float(gate["above"]) == pytest.approx((gap > -0.2).mean(), abs=0.01)
    noise = run_noise(bk.Result.of(fit), 0, parse("pass@1")[0])[1]
    right = new.sum(axis=1)
    moved = right * (4 - right) / (4 * 4 * 3) * (4 / (4 + 3 + 2)) ** 2  # 3 earlier, 2 of the prior
    assert noise == pytest.approx(np.sqrt(moved.sum()) / len(right))


def test_the_model_of_a_result_decides() -> None:
    """The probability is that of `compare`, whose own tests compare it with witnesses."""
    hard = np.repeat([0, 1], 20)
    p = np.where(hard == 1, 0.15, 0.85)[:, None]
    rng = np.random.default_rng(4)
    data = {name: rng.binomial(1, p, (40, 2)) for name in ("new", "old")}
    policy, found = bk.decide.GatePolicy("pass@1", margin=0.1), []
    for asked in ({}, {"covariates": ["hard"]}):
        fit = bk.evaluate(bk.tally(data, covariates={"hard": hard}), "pass@1", rng=0, **asked)
        row = bk.decide.gate(fit, "old", policy)["gate"].sel(check="difference")
        compared = bk.compare(fit, rope=0.1)["comparison"]["pass_at_k"].sel(
            k=1, system="new", other="old", target="questions"
        )
        below = float(compared.sel(contrast="prob_below_rope"))
        assert float(row["below"]) == pytest.approx(below, abs=1e-12)
        found.append(float(row["mean"]))
    assert abs(found[1] - found[0]) > 0.001


@pytest.mark.parametrize(
    ("baseline", "asked", "message"),
    [
        ("c", {}, r"baseline must .*'c'"),
        ("a", {"ci_prob": 0.9}, r"ci_prob of the result, 0\.95; got 0\.9\..*ci_prob=0\.9\."),
        ("a", {"metric": "pass@2"}, r"metric must be one of the result, pass@1; got pass@2"),
        ("a", {"shared": True}, "shared must be left out with a result"),
        ("a", {"policy": bk.decide.GatePolicy("pass@1", 0.1, pooling="none")},
         r"pooling of the result, 'partial'; got 'none'\..*pooling='none'"),
        ("a", {"policy": bk.decide.GatePolicy("pass@1", 0.1, floors={0: 0.5}, pooled_floors=True)},
         r"draws of p for pooled floors.*keep=\['p'\]"),
    ],
)  # fmt: skip
def test_results_that_do_not_fit_their_policy_are_refused(baseline, asked, message) -> None:
    fit = bk.evaluate({"a": _runs(1, 5), "b": _runs(2, 5)}, "pass@1", draws=20, rng=1)
    rules = {} if "policy" in asked else {"metric": "pass@1", "margin": 0.1}
    with pytest.raises(ValueError, match=message):
        bk.decide.gate(fit, baseline, **(rules | asked))


def test_a_result_of_three_systems_or_of_different_questions_has_no_gate() -> None:
    runs = {name: _runs(seed, 5).astype(float) for seed, name in enumerate("abc")}
    three = bk.evaluate(runs, "pass@1", draws=20, rng=1)
    with pytest.raises(ValueError, match=r"has 3\. .*fit\.sel\(system=\['a', 'b'\]\)"):
        bk.decide.gate(three, "a", metric="pass@1", margin=0.1)
    runs["b"][2] = np.nan
    del runs["c"]
    fit = bk.evaluate(bk.tally(runs, missing="ignore"), "pass@1", draws=20, rng=1)
    with pytest.raises(ValueError, match=r"1 of 5 were tried by one.*data\.shared\(\)"):
        bk.decide.gate(fit, "a", metric="pass@1", margin=0.1)
