"""Certificates of gates: rates against enumeration, the gate's own verdicts, and bad input."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import bayesatk as bk
from bayesatk.comparison.gates.certificate import certificate_of
from bayesatk.comparison.gates.gate import (
    compared_by,
    contrast_of,
    gate_of,
    probability_above,
    together,
)
from bayesatk.comparison.gates.replay import RATES, Decided, Design, Rates, _by_truth, shifted
from bayesatk.metrics.grid import parse

GatePolicy = bk.decide.GatePolicy


def both(right: np.ndarray, trials: np.ndarray):
    """Return the outcomes of two systems from right trials (2, questions)."""
    return together((right[0], trials), (right[1], trials))


@pytest.mark.parametrize("target", ["questions", "population"])
@pytest.mark.parametrize(
    ("pooling", "metric", "rule"),
    [
        ("none", "pass@1", "superiority"),
        ("complete", "pass^2", "non-inferiority"),
        ("partial", "pass@1", "non-inferiority"),
    ],
)
def test_a_replayed_gate_decides_as_the_gate_does(pooling, metric, rule, target) -> None:
    rng, trials = np.random.default_rng(1), np.array([3, 3, 4, 4, 5, 5])
    policy = GatePolicy(metric, margin=0.1, rule=rule, pooling=pooling, target=target)
    template = both(np.stack([trials, trials]), trials)
    design = Design(policy, template, trials, rng.uniform(size=(1, 6)))
    right = rng.binomial(trials, 0.6, (2, 6))
    decided = design.whole_gate(right)
    whole = gate_of(both(right, trials), policy)
    turned = gate_of(both(right[::-1], trials), policy)
    assert decided[0, 0] == whole.probability
    # The other way round: the same up to the lattice of two independent posteriors.
    assert decided[1, 0] == pytest.approx(turned.probability, abs=2e-3)
    compared, _ = compared_by(template, policy, 0)
    contrast = contrast_of(compared, policy, right, np.stack([trials, trials]))
    assert contrast["mean"] == whole.difference["mean"]
    assert probability_above(policy, contrast) == whole.probability


@pytest.mark.long
def test_rates_are_those_of_enumeration() -> None:
    """All questions alike: a gate depends on two totals, of which there are 13 x 13."""
    p, trials = 0.7, np.full(4, 3)
    policy = GatePolicy("pass@1", margin=0.35, pooling="complete", ci_prob=0.9)
    design = Design(policy, both(np.stack([trials] * 2), trials), trials, np.full((1, 4), p))
    compared, _ = compared_by(design.template, policy, 0)
    exact = dict.fromkeys(RATES, 0.0)
    for total in product(range(13), repeat=2):
        right = np.array([np.diff(np.linspace(0, own, 5).round()) for own in total], int)
        contrast = contrast_of(compared, policy, right, np.stack([trials] * 2))
        probability = probability_above(policy, contrast)
        verdict = "pass" if probability >= 0.9 else "fail" if probability <= 0.1 else "inconclusive"
        exact[verdict] += float(binom.pmf(total, 12, p).prod())
    exact["flip"] = 1.0 - sum(exact[name] ** 2 for name in RATES[:3])
    rng = np.random.default_rng(2)
    runs = design.runs(0.0, rng)
    decided = Decided.of(design, runs[:60, 0])
    rates = Rates.of(design, runs, decided)
    assert sum(rates.rate[name] for name in RATES[:3]) == pytest.approx(1.0)
    for name in RATES:
        # Verdicts jump from total to total, which the residuals of the regression smooth.
        assert rates.rate[name] == pytest.approx(exact[name], abs=0.05 + 3 * rates.error[name])
        assert rates.error[name] < 0.05
        assert rates.sd[name] < 0.03  # there is one truth


def test_flips_of_independent_runs_are_unbiased() -> None:
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(3), 2000)
    chances = np.stack([rng.multinomial(1, share, 6) for share in shares]).astype(float)
    flips = _by_truth(np.moveaxis(chances, -1, 0))[3]
    exact = 1.0 - (shares**2).sum(axis=1)
    assert (flips - exact).mean() == pytest.approx(0.0, abs=4 * (flips - exact).std() / 2000**0.5)
    certain = np.zeros((3, 1, 5))
    certain[0] = 1.0
    assert _by_truth(certain)[3].item() == 0.0


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    st.lists(st.floats(0.05, 0.95), min_size=2, max_size=6), st.floats(-0.04, 0.04),
    st.sampled_from(["pass@1", "pass@3", "pass^2"]),
)  # fmt: skip
def test_shifted_probabilities_differ_by_the_effect(p, effect, metric) -> None:
    (parsed,) = parse(metric)
    values, share = np.array([p]), np.full(len(p), 1.0 / len(p))
    before = float((parsed.latent(values) @ share).item())
    if not 0.001 < before + effect < 0.999:
        return
    moved = shifted(values, effect, parsed, share)
    assert (parsed.latent(moved) @ share).item() - before == pytest.approx(effect, abs=1e-6)
    odds = moved / (1 - moved) / (values / (1 - values))
    assert odds.min() == pytest.approx(odds.max(), rel=1e-5)


@pytest.fixture(scope="module")
def baseline() -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.binomial(1, rng.beta(2, 1, 30)[:, None], (30, 4))


@pytest.fixture(scope="module")
def certified(baseline):
    policy = GatePolicy("pass@1", margin=0.12, pooling="complete", effect=-0.25)
    return policy, bk.decide.certify(baseline, policy, gates=40, progress=False)


@pytest.mark.long
def test_the_table_has_this_design_and_the_smallest(certified) -> None:
    policy, tree = certified
    rows, attrs = bk.table(tree, "certificate"), tree["certificate"].attrs
    assert rows["design"].tolist()[:2] == ["this design"] * 2
    assert rows["truth"].tolist()[:2] == ["same system", "differs by -0.25"]
    same, worse = rows.iloc[0], rows.iloc[1]
    assert same["prob_fail"] < 0.01 < worse["prob_fail"]
    assert worse["prob_pass"] < same["prob_pass"]
    limits = json.loads(attrs["limits"])
    assert limits == {"fail": 0.02, "inconclusive": 0.15}
    smallest = rows[rows["design"] != "this design"]
    assert set(smallest["design"]) == {"fewest trials", "fewest questions"}
    assert (smallest["inconclusive"] <= 0.15).all()
    assert (smallest["prob_fail"] <= 0.02).all()
    assert attrs["reached"] == int(same["inconclusive"] <= 0.15)
    smaller = smallest["trials"] * smallest["questions"] < 120
    assert (smaller == bool(attrs["reached"])).all()
    record = json.loads(attrs["record"])
    assert record["schema"] == "bayesatk-certificate/1"
    assert record["rates"][0]["rate"]["fail"] == same["prob_fail"]
    assert record["policy_sha256"] == policy.sha256
    text = str(rows)
    assert ("CERTIFIED" if attrs["reached"] else "NOT CERTIFIED") in text
    assert "30 questions, 4 trials each: the same system passes with probability" in text


def test_the_same_seed_gives_the_same_certificate(baseline) -> None:
    policy = GatePolicy("pass@1", margin=0.12, pooling="complete")
    first, again = (
        certificate_of(baseline, policy, gates=20, smallest=False, rng=3).as_dict()
        for _ in range(2)
    )
    assert first == again


def test_more_trials_make_a_gate_surer() -> None:
    policy = GatePolicy("pass@1", margin=0.15, pooling="complete")
    few, many = (
        certificate_of((0.6, 0.2), policy, questions=20, trials=n, gates=30, smallest=False)
        for n in (2, 10)
    )
    assert many.rows[0].rates.rate["pass"] > few.rows[0].rates.rate["pass"] + 0.1
    assert few.rows[0].rates.sd["pass"] >= 0.0
    assert few.digest == ""


@pytest.mark.long
def test_a_superiority_gate_is_wrong_where_it_passes() -> None:
    policy = GatePolicy("pass@1", margin=0.0, rule="superiority", pooling="complete")
    certificate = certificate_of((0.6, 0.2), policy, questions=20, trials=4, gates=40)
    assert list(certificate.limits) == ["pass", "inconclusive"]
    assert certificate.rows[0].rates.rate["pass"] == pytest.approx(0.05, abs=0.04)
    assert not certificate.reached
    assert certificate.exit_code == 1
    assert len(certificate.rows) == 1
    assert "No number of trials of these questions up to 128" in str(certificate)
    assert "falsely passes" in certificate.markdown()


@pytest.mark.parametrize(
    ("metric", "trials"),
    [("pass@1", [14] * 4), ("pass@1", [14, 13, 14, 12]), ("pass@2", [14] * 4)],
)
def test_floors_of_replayed_runs_are_those_of_the_gate(metric, trials) -> None:
    floors, groups = {1: 0.5, "both": 0.6}, {"both": [0, 3]}
    policy = GatePolicy(metric, margin=0.2, floors=floors, groups=groups, pooling="none")
    rng, number = np.random.default_rng(7), np.array(trials)
    right = rng.binomial(number, rng.choice([0.02, 0.98], (5, 1, 4)), (5, 2, 4))
    design = Design(policy, both(np.stack([number] * 2), number), number, np.full((1, 4), 0.5))
    gates = [gate_of(both(of_run, number), policy) for of_run in right]
    verdicts = ("pass", "inconclusive", "fail")
    worst = [max(verdicts.index(check.verdict) for check in gate.floors) for gate in gates]
    assert design.floors(right).tolist() == worst
    assert len(set(worst)) > 1


@pytest.mark.long
def test_a_floor_that_no_run_can_keep_passes_nothing(baseline) -> None:
    policy = GatePolicy("pass@1", margin=0.2, floors={0: 0.9}, pooling="none")
    certificate = certificate_of(baseline, policy, gates=20, rng=1)
    (row,) = certificate.rows  # no number of trials in reach: some 29 would be needed of one
    assert row.rates.rate["pass"] == 0.0
    assert row.rates.rate["inconclusive"] + row.rates.rate["fail"] == pytest.approx(1.0)
    assert row.rates.rate["fail"] > 0.0
    assert not certificate.reached
    assert "Floors name questions, so no other number of questions" in str(certificate)


MARKS = [[1, 0, 1], [0, 1, 1]]
POLICY = GatePolicy("pass@1", margin=0.1)


@pytest.mark.parametrize(
    ("baseline", "policy", "options", "words"),
    [
        (MARKS, "gate.toml", {}, "policy must be a GatePolicy; got str"),
        (
            MARKS,
            GatePolicy("pass@1", 0.1, floors={0: 0.5}, pooled_floors=True),
            {},
            "no pooled floors .* Leave out pooled_floors",
        ),
        (MARKS, GatePolicy("pass@1", 0.1, floors={"x": 0.5}), {}, "floors must name questions"),
        (
            (0.6, 0.2),
            GatePolicy("pass@1", 0.1, floors={0: 0.5}),
            {"questions": 9, "trials": 4},
            "policy must be without floors where difficulties are stated",
        ),
        (MARKS, GatePolicy("plurality@3", 0.1), {}, "must judge marks .*'plurality@3'"),
        (MARKS, POLICY, {"questions": 5}, "questions must be left out with data.*got 5"),
        (MARKS, POLICY, {"trials": 0}, "trials must be an integer >= 1; got 0"),
        (MARKS, POLICY, {"gates": 3}, "gates must be an integer >= 20; got 3"),
        (MARKS, POLICY, {"most_wrong": 1.5}, "most_wrong must lie strictly between 0 and 1"),
        (MARKS, GatePolicy("pass@1", 0.1, effect=-0.9), {}, "effect must leave .* got -0.9"),
        ((0.6, 0.2), POLICY, {"trials": 4}, r"questions must be given with \(mean, icc\)"),
        ((0.6, 1.2), POLICY, {"trials": 4, "questions": 9}, "icc must lie strictly .* got 1.2"),
        ({"a": MARKS, "b": MARKS}, POLICY, {}, "must be of one system"),
    ],
)
def test_bad_input_is_refused(baseline, policy, options, words) -> None:
    with pytest.raises(ValueError, match=words):
        bk.decide.certify(baseline, policy, **options)


def test_scores_are_refused_with_the_reason() -> None:
    data = bk.tally([[0, 1, 2], [2, 2, 1]], scores={0: 0.0, 1: 0.5, 2: 1.0})
    with pytest.raises(ValueError, match="a loss of a mean score may come"):
        bk.decide.certify(data, GatePolicy("bayes", 0.1))
