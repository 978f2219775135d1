"""Gates: the probability behind a verdict, its long run, floors, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import bayesatk as bk
from bayesatk.comparison.gates.gate import EXIT_CODES, Gate, gate_of, joined_outcomes
from bayesatk.comparison.gates.policy import GateDesign, GateRates, run_noise
from bayesatk.metrics.grid import parse
from bayesatk.results.result import Result


def _runs(seed: int, questions: int = 40, trials: int = 4, worse: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = np.random.default_rng(0).beta(0.8, 0.6, questions)
    return rng.binomial(1, p[:, None] ** worse, (questions, trials))


RUNS, RULES = _runs(1), {"metric": "pass@1", "margin": 0.1}


def _gate(new: object, baseline: object, policy: bk.decide.GatePolicy) -> Gate:
    return gate_of(joined_outcomes(new, baseline), policy)


@pytest.mark.parametrize("rule", ["non-inferiority", "superiority"])
def test_the_probability_is_that_of_independent_draws(rule) -> None:
    """Without pooling every question has its Beta posterior: 100,000 draws of the difference."""
    new, old, rng = _runs(1), _runs(2), np.random.default_rng(3)
    policy = bk.decide.GatePolicy("pass@2", margin=0.05, rule=rule, pooling="none")
    gate, means = _gate(new, old, policy), []
    for runs in (new, old):
        right = runs.sum(axis=1)
        p = rng.beta(right + 1.0, runs.shape[1] - right + 1.0, (100_000, len(right)))
        means.append((1.0 - (1.0 - p) ** 2).mean(axis=1))
    gap = means[0] - means[1]
    slack = 4.0 * np.hypot(gate.error, 0.5 / np.sqrt(len(gap)))
    assert gate.probability == pytest.approx((gap > policy.threshold).mean(), abs=slack)
    assert gate.difference["mean"] == pytest.approx(gap.mean(), abs=0.001)
    assert gate.error < 5e-3
    density = gate.group()["density"]
    width = float(np.diff(density["difference"])[0])
    assert float(density.sum()) * width == pytest.approx(1.0, abs=0.01)
    above = float(density.where(density["difference"] > policy.threshold).sum()) * width
    assert above == pytest.approx(gate.probability, abs=0.03)


def test_a_verdict_is_repeated_as_often_as_in_runs_of_posterior_draws() -> None:
    """20,000 second runs of questions whose p are drawn from the posterior of this one.

    At the margins 0.14 and 0.2 all draws lie on one side, which does not make a second pass sure.
    """
    runs, rng = _runs(1, questions=60), np.random.default_rng(0)
    fit = bk.evaluate({"a": runs, "b": runs}, "pass@1", rng=1, keep=["p"])
    p = fit["posterior"]["p"].stack(draws=("chain", "draw"))
    p = p.transpose("system", "draws", "question").values
    new, old = (
        rng.binomial(4, p[i, rng.integers(p.shape[1], size=20_000)]).mean(axis=1) / 4
        for i in range(2)
    )
    for margin in (0.1, 0.14, 0.2):
        gate = _gate(runs, runs, bk.decide.GatePolicy("pass@1", margin=margin))
        again = (new - old + margin > 1.645 * gate.difference["sd"]).mean()
        assert gate.verdict == "pass"
        assert gate.replication == pytest.approx(again, abs=0.02)


def test_rates_are_those_of_normal_draws() -> None:
    rng = np.random.default_rng(5)
    rates = GateRates.at(0.02, 0.01, 0.012, 0.95)
    mean = 0.02 + 0.012 * rng.standard_normal(1_000_000)
    score = mean / 0.01
    assert rates.passes == pytest.approx((score >= 1.644854).mean(), abs=0.002)
    assert rates.fails == pytest.approx((score <= -1.644854).mean(), abs=0.002)
    pair = np.where(score >= 1.644854, 1, np.where(score <= -1.644854, -1, 0)).reshape(2, -1)
    assert rates.flip == pytest.approx((pair[0] != pair[1]).mean(), abs=0.003)


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
    observed, planned, stated, more = (
        bk.decide.gate_design(policy, source, **size)
        for source, size in (
            (fit, {}),
            (fit, {"questions": 300, "trials": 8}),
            ((0.61, 0.30), {"questions": 300, "trials": 8}),
            ((0.61, 0.30), {"questions": 1200, "trials": 8}),
        )
    )
    assert observed.sd == pytest.approx(stated.sd, rel=0.05)
    assert planned.sd == pytest.approx(observed.sd, rel=0.05)
    assert more.sd == pytest.approx(stated.sd / 2, rel=0.01)
    assert observed.at_effect.fails == pytest.approx(stated.at_effect.fails, abs=0.1)


def test_floors_of_questions_and_groups() -> None:
    """A floor that fails makes the gate fail; one that passes has binomial confidence."""
    old = np.tile([1, 1, 1, 0, 1, 1, 1, 1], (30, 1))
    new = old.copy()
    new[0, :] = 0
    floors = {0: 0.5, 1: 0.3, "rest": 0.5}
    policy = bk.decide.GatePolicy(
        "pass@1",
        margin=0.2,
        pooling="none",
        ci_prob=0.9,
        floors=floors,
        groups={"rest": [2, 3, 4, 5]},
    )
    gate = _gate(new, old, policy)
    assert [floor.verdict for floor in gate.floors] == ["fail", "pass", "pass"]
    assert gate.verdict == "fail"
    assert _gate(new, old, replace(policy, floors={}, groups={})).verdict == "pass"
    assert gate.floors[0].below == pytest.approx(1 - 0.5**8)
    assert gate.floors[1].above == pytest.approx(beta(7, 2).sf(0.3))  # Clopper and Pearson's
    assert gate.floors[2].value == pytest.approx(7 / 8)
    posterior = _gate(new, old, replace(policy, pooled_floors=True)).floors
    assert posterior[0].above == pytest.approx(beta(1, 9).sf(0.5), abs=0.01)
    assert posterior[1].above == pytest.approx(beta(8, 2).sf(0.3), abs=0.01)
    with pytest.raises(ValueError, match="'q9' is neither"):
        bk.decide.gate(new, old, replace(policy, floors={"q9": 0.5}, groups={}))


def test_identical_data_pass_with_a_margin_and_never_fail() -> None:
    same, right = _runs(4), np.ones((10, 4), int)
    wide, narrow = (bk.decide.GatePolicy("pass@1", margin=margin) for margin in (0.15, 0.001))
    assert _gate(same, same, wide).verdict == "pass"
    assert _gate(same, same, wide).difference["mean"] == pytest.approx(0.0, abs=1e-12)
    assert _gate(same, same, narrow).verdict == "inconclusive"
    sure = _gate(right, right, bk.decide.GatePolicy("pass@1", margin=0.1, ci_prob=0.8))
    assert np.isfinite(list(sure.difference.values())).all()


def test_the_same_outcomes_twice_do_not_make_other_runs_fail() -> None:
    """On questions like these they look more alike than two runs of one system ever are."""
    same = _runs(4)
    policy = bk.decide.GatePolicy("pass@1", margin=0.02, target="population")
    gate = _gate(same, same, policy)
    on_these = _gate(same, same, replace(policy, target="questions"))
    assert gate.difference["sd"] < 0.5 * on_these.difference["sd"]
    rates = gate.design.same_system
    assert rates.fails < 0.05 < rates.passes
    assert rates.passes == pytest.approx(on_these.design.same_system.passes, abs=0.02)


def test_systems_are_aligned_on_their_questions() -> None:
    rows = [(f"q{i}", t, int((i + t) % 3 > 0)) for i in range(12) for t in range(4)]
    frame = pd.DataFrame(rows, columns=["question", "trial", "outcome"])
    data = joined_outcomes(frame, frame.sample(frac=1.0, random_state=1))
    new, old = (data.dataset["count"].sel(system=name) for name in ("new", "baseline"))
    assert bool((new == old).all())
    fewer, rules = frame[frame["question"] != "q3"], {"metric": "pass@1", "margin": 0.1}
    with pytest.raises(ValueError, match=r"1 of 12 were tried by one.*shared=True"):
        bk.decide.gate(fewer, frame, **rules)
    shared = bk.decide.gate(fewer, frame, **rules, shared=True)
    origin = json.loads(shared["gate"].attrs["record"])["origin"]
    assert (origin["questions"], origin["questions_left_out"]) == (11, 1)


def test_systems_are_named_in_the_verdict_also_where_they_have_one_name() -> None:
    runs = [[1, 0, 1]] * 10
    for names, said in (
        (("tuned", "base"), ("tuned", "base")),
        (("m", "m"), ("m (new)", "m (baseline)")),
    ):
        both = [bk.tally({name: runs}) for name in names]
        for judge in (
            None,
            {"new": bk.JudgeError(18, 20, 2, 20), "baseline": bk.JudgeError(18, 20, 2, 20)},
        ):
            verdict = bk.decide.gate(*both, metric="pass@1", margin=0.1, judge=judge)
            sentence = verdict["gate"]["sentence"].values[0]
            assert f"{said[0]} is not worse than {said[1]} by more than 0.1" in sentence


def test_the_group_has_the_verdict_and_every_reason(tmp_path) -> None:
    new, old = _runs(1), _runs(2)
    policy = bk.decide.GatePolicy(
        "pass@1", margin=0.1, floors={3: 0.1, "some": 0.99}, groups={"some": [1]}
    )
    tree, gate = bk.decide.gate(new, old, policy), _gate(new, old, policy)
    again = bk.load_result(bk.save(tree, tmp_path / "gate.nc"))
    assert again.identical(tree)
    group, table = again["gate"], bk.table(again, "gate")
    assert str(table) == str(gate)
    assert group.attrs["verdict"] == gate.verdict
    assert group.attrs["exit_code"] == EXIT_CODES[gate.verdict]
    record = json.loads(group.attrs["record"])
    assert record == gate.as_dict() | {"origin": record["origin"]}
    assert table["check"].tolist() == ["difference", "floor 3", "floor some"]
    assert table["threshold"].tolist() == [-0.1, 0.1, 0.99]
    assert table["verdict"].tolist()[1:] == [floor.verdict for floor in gate.floors]
    for name, value in gate.difference.items():
        assert group[name].sel(check="difference").item() == value


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


@pytest.mark.parametrize(
    ("new", "policy", "rules", "message"),
    [
        (RUNS, None, {"metric": "pass@1"}, r"give a policy, or metric=.pass@1. and margin=0.02"),
        (RUNS, bk.decide.GatePolicy("pass@1", 0.1), {"margin": 0.1}, "left out with a policy"),
        ({"a": RUNS, "b": RUNS}, None, RULES, "new must be of one system"),
        (bk.tally([["a", "b"]], scores={"a": 0.5, "b": 2.0}), None, RULES | {"metric": "bayes"},
         "must have the scores of baseline"),
        (RUNS, None, RULES | {"metric": "plurality@3"}, "for votes evaluate both systems"),
    ],
)  # fmt: skip
def test_gates_that_cannot_be_are_refused(new, policy, rules, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.gate(new, RUNS, policy, **rules)


@pytest.mark.parametrize(
    ("policy", "trials", "message"),
    [
        (bk.decide.GatePolicy("pass@4", 0.1), None, "trials must be given"),
        (bk.decide.GatePolicy("pass@4", 0.1), 1, "trials must be 2 or more .* trials=2"),
        ("gate.toml", 1, r"GatePolicy\.read"),
    ],
)
def test_designs_that_cannot_be_are_refused(policy, trials, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.gate_design(policy, (0.6, 0.3), questions=10, trials=trials)


def test_a_policy_file_and_its_digest(tmp_path) -> None:
    path = tmp_path / "gate.toml"
    text = 'metric = "pass@1"\nmargin = 0.02\n[floors]\nq7 = 0.9\n'
    path.write_text(text)
    policy = bk.decide.GatePolicy.read(path)
    assert policy == bk.decide.GatePolicy("pass@1", margin=0.02, floors={"q7": 0.9})
    path.write_text("# agreed on 1 June\n" + text)
    assert bk.decide.GatePolicy.read(path).sha256 == policy.sha256
    path.write_text(text.replace("0.02", "0.03"))
    assert bk.decide.GatePolicy.read(path).sha256 != policy.sha256
    for wrong, message in (
        ("metric = [", "none"),
        ("margn = 1", "'margn'"),
        ("", "lacks 'metric'"),
    ):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=message):
            bk.decide.GatePolicy.read(path)


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
    gates = _verdicts(bk.decide.GatePolicy("pass@1", margin=0.08), p, 4, 40)
    share = np.array(
        [np.mean([gate.verdict == verdict for gate in gates]) for verdict in EXIT_CODES]
    )
    flips = 1.0 - (share**2).sum()
    stated = np.mean([gate.design.same_system.flip for gate in gates])
    # The flip rate from 40 gates has an sd of .07 at most.
    assert stated - 0.21 <= flips <= stated + 0.15
    passes = np.mean([gate.design.same_system.passes for gate in gates])
    assert share[0] == pytest.approx(passes, abs=0.2)


@pytest.mark.long
@pytest.mark.parametrize("weight", [np.ones(40), np.repeat([4.0, 1.0], [10, 30])])
def test_noise_of_a_run_without_pooling_is_that_of_its_posterior_mean(weight) -> None:
    rng = np.random.default_rng(6)
    p = rng.beta(1.0, 0.7, 40)
    means = (1.0 + rng.binomial(4, p, (20_000, 40))) / 6.0 @ weight / weight.sum()
    variances = []
    for seed in range(40):
        data = bk.tally((rng.binomial(4, p), np.full(40, 4)), weight=weight)
        fit = bk.evaluate(data, "pass@1", pooling="none", draws=4, rng=seed)
        variances.append(run_noise(Result.of(fit), 0, parse("pass@1")[0])[1] ** 2)
    error = 5.0 * np.std(variances) / np.sqrt(len(variances))
    assert np.mean(variances) == pytest.approx(means.var(), abs=error)
    assert error < 0.2 * means.var()  # that of the rates themselves is 2.25 times as large


def test_with_one_trial_of_each_question_questions_like_these_decide() -> None:
    rng = np.random.default_rng(3)
    new, old = rng.binomial(1, 0.5, (2, 60, 1))
    asked = {"metric": "pass@1", "margin": 0.08}
    stated, like_these = (
        bk.decide.gate(new, old, target=target, **asked)["gate"]
        for target in ("questions", "population")
    )
    assert stated.attrs["target"] == json.loads(stated.attrs["record"])["target"] == "population"
    assert json.loads(stated.attrs["record"])["policy"]["target"] == "questions"
    assert float(stated["above"][0]) == float(like_these["above"][0])
    assert "One trial of each question says too little" in str(stated["sentence"][0].item())
    new, old = rng.binomial(1, 0.5, (2, 60, 2))
    assert bk.decide.gate(new, old, **asked)["gate"].attrs["target"] == "questions"


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


def test_the_noise_of_a_run_allows_for_its_earlier_trials() -> None:
    """A mean that has 3 trials of weight and 2 of the prior beside its 4 moves less."""
    new, before = _runs(1), _runs(5, trials=6)
    fit = bk.evaluate(
        new, "pass@1", pooling="none", rng=1, prior_trials=bk.tally(before), prior_weight=0.5
    )
    noise, right = run_noise(Result.of(fit), 0, parse("pass@1")[0])[1], new.sum(axis=1)
    moved = right * (4 - right) / (4 * 4 * 3) * (4 / (4 + 3 + 2)) ** 2
    assert noise == pytest.approx(np.sqrt(moved.sum()) / len(right))


@pytest.mark.parametrize("model", ["covariates", "prior_trials"])
def test_the_model_of_a_result_decides(model) -> None:
    """The probability is that of `compare`, whose own tests compare it with witnesses."""
    rng, hard = np.random.default_rng(4), np.repeat([0.85, 0.15], 20)
    runs = {name: rng.binomial(1, hard[:, None], (40, 2)) for name in ("new", "old")}
    data = bk.tally(runs, covariates={"hard": hard})
    options = {"covariates": ["hard"], "prior_trials": bk.tally(runs)}
    fit = bk.evaluate(data, "pass@1", rng=0, **{model: options[model]})
    row = bk.decide.gate(fit, "old", **RULES)["gate"].sel(check="difference")
    compared = bk.compare(fit, rope=0.1)["comparison"]["pass_at_k"]
    pair = compared.sel(k=1, system="new", other="old", target="questions")
    for name, contrast in (("below", "prob_below_rope"), ("mean", "mean")):
        assert float(row[name]) == pytest.approx(float(pair.sel(contrast=contrast)), abs=1e-12)


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
    rules = {} if "policy" in asked else RULES
    with pytest.raises(ValueError, match=message):
        bk.decide.gate(fit, baseline, **(rules | asked))


def test_a_result_of_three_systems_or_of_different_questions_has_no_gate() -> None:
    runs = {name: _runs(seed, 5).astype(float) for seed, name in enumerate("abc")}
    three = bk.evaluate(runs, "pass@1", draws=20, rng=1)
    with pytest.raises(ValueError, match=r"has 3\. .*fit\.sel\(system=\['a', 'b'\]\)"):
        bk.decide.gate(three, "a", **RULES)
    runs["b"][2] = np.nan
    fit = bk.evaluate(bk.tally(runs, missing="ignore"), "pass@1", draws=20, rng=1)
    with pytest.raises(ValueError, match=r"1 of 5 were tried by one.*data\.shared\(\)"):
        bk.decide.gate(fit.sel(system=["a", "b"]), "a", **RULES)
