"""Evaluations that grow: the rule by hand, its long run by simulation."""

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.comparison.order.growing import _difference
from bayesatk.metrics.grid import parse

QUIET = {"progress": False}


def _by_hand() -> bk.decide.StoppingStudy:
    prob = np.array([[0.6, 0.995, 0.5], [0.005, 0.5, 0.5], [0.5, 0.6, 0.7], [0.5, 0.5, 0.999]])
    mean = np.tile([0.1, 0.2, 0.3], (4, 1))
    half = np.array([[0.3, 0.2, 0.1]] * 4)
    truth = np.full((4, 3), 0.1)
    truth[3] = 0.0
    return bk.decide.StoppingStudy(
        "pass@1", "population", (10, 20, 40), prob, mean, mean - half, mean + half, truth
    )


def test_a_rule_by_hand() -> None:
    """Right at the second look, wrong at the first, never, and between equals at the third."""
    study, rule = _by_hand(), bk.decide.StoppingRule("pass@1", ci_prob=0.99)
    table = study.table(rule)
    assert table["right"].tolist() == [0.0, 0.25, 0.25]
    assert table["wrong"].tolist() == [0.25, 0.25, 0.5]
    assert table["running"].tolist() == [0.75, 0.5, 0.25]
    found = study.summary(rule)
    assert found["questions"] == (20 + 10 + 40 + 40) / 4
    assert found["undecided"] == 0.25
    assert found["coverage"] == pytest.approx(0.5)  # 0.2 +- 0.2 and 0.1 +- 0.3 hold 0.1
    assert found["bias"] == pytest.approx((0.1 + 0.0 + 0.2 + 0.3) / 4)
    assert (found["right_at_end"], found["wrong_at_end"]) == (0.0, 0.25)
    narrow = study.table(bk.decide.StoppingRule("pass@1", ci_prob=0.99, width=0.4))
    assert narrow["precise"].tolist() == [0.0, 0.5, 0.5]
    assert narrow["running"].tolist() == [0.75, 0.0, 0.0]
    assert study.threshold(0.25) == pytest.approx(0.995, abs=1e-9)
    decided = study.prob_greater.max(axis=1) >= study.threshold(0.5)
    assert decided.sum() <= 2


@pytest.mark.slow
@pytest.mark.long
def test_looking_often_costs_false_decisions_and_the_threshold_pays_for_it() -> None:
    rule, looks = bk.decide.StoppingRule("pass@1", ci_prob=0.975), [20, 40, 80]
    options = {"trials": 2, "correlation": 0.8, **QUIET}
    equal = {"a": (0.6, 0.3), "b": (0.6, 0.3)}
    study = bk.decide.simulate_stopping(equal, rule, looks, replications=60, rng=1, **options)
    found = study.summary(rule)
    assert found["wrong"] > found["wrong_at_end"] + 0.01
    assert found["wrong_at_end"] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    dear = bk.decide.StoppingRule("pass@1", ci_prob=study.threshold(0.05))
    assert dear.ci_prob > 0.96  # one look at the end needs .975 for a rate of .05 of either sign
    assert study.summary(dear)["wrong"] <= 0.05
    apart = {"a": (0.75, 0.3), "b": (0.5, 0.3)}
    ends = bk.decide.simulate_stopping(apart, dear, looks, replications=20, rng=3, **options)
    assert ends.summary(dear)["right"] > 0.8
    assert ends.summary(dear)["questions"] < 60


def test_the_posterior_at_a_look_is_that_of_compare() -> None:
    rng = np.random.default_rng(4)
    counts = rng.binomial(4, np.clip(rng.beta(2, 2, 40) + np.array([[0.1], [0.0]]), 0, 1))
    fit = bk.evaluate(bk.tally((counts, np.full((2, 40), 4))), "pass^2", rng=1)
    compared = bk.compare(fit, rng=1)
    pair = compared["comparison"]["pass_hat_k"].sel(k=2, system=0, other=1)
    for index, target in enumerate(("questions", "population")):
        expected = pair.sel(target=target)
        gap = _difference(counts, 4, parse("pass^2")[0], index, np.random.default_rng(5))
        sd = float(expected.sel(contrast="sd"))
        assert abs(gap.mean() - float(expected.sel(contrast="mean"))) < 5 * sd / np.sqrt(1000)
        assert abs(gap.std() / sd - 1) < 0.1
    said = bk.decide.StoppingRule("pass^2", ci_prob=0.51).decide(compared)
    assert said.loc[0, "reason"].endswith("is ahead")
    assert (
        bk.decide.StoppingRule("pass^2", ci_prob=0.9999, width=1.0).decide(compared)["stop"].all()
    )
    assert not bk.decide.StoppingRule("pass^2", ci_prob=0.999999).decide(compared)["stop"].any()


@pytest.mark.long
def test_replications_do_not_depend_on_each_other() -> None:
    rule, difficulties = bk.decide.StoppingRule("pass@1"), {"a": (0.6, 0.3), "b": (0.5, 0.3)}
    options = {"trials": 1, "correlation": 0.5, "rng": 6, **QUIET}
    few = bk.decide.simulate_stopping(difficulties, rule, [5, 8], replications=3, **options)
    more = bk.decide.simulate_stopping(difficulties, rule, [5, 8], replications=23, **options)
    np.testing.assert_array_equal(few.mean, more.mean[:3])
    assert more.mean.shape == (23, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"looks": [40, 20]}, "looks must be rising"),
        ({"looks": [1, 20]}, "looks must be rising"),
        ({"trials": 0}, "trials must be an integer >= 1"),
        ({"correlation": 2}, r"correlation must lie in \[-1, 1\]"),
        ({"replications": 0}, "replications must be an integer >= 1"),
        ({"difficulties": {"a": (0.5, 0.5)}}, "of two systems"),
        ({"looks": 10}, "looks must be rising"),
        ({"difficulties": {"a": (0.5, 0.5), "b": (1.0, 0.5)}}, "strictly between 0 and"),
    ],
)
def test_what_cannot_be_simulated_is_refused(change, message) -> None:
    options = {
        "difficulties": {"a": (0.6, 0.3), "b": (0.5, 0.3)},
        "rule": bk.decide.StoppingRule("pass@1"), "looks": [5, 8], "trials": 1, "correlation": 0.5,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        bk.decide.simulate_stopping(**{**options, **change})


def test_rules_must_be_possible() -> None:
    for rule in (
        bk.decide.StoppingRule("pass^4"),
        bk.decide.StoppingRule("pass@1", target="questions"),
    ):
        with pytest.raises(ValueError, match="rule must be about pass@1 on target 'population'"):
            _by_hand().summary(rule)
    compared = bk.compare(bk.evaluate({"a": [[1]], "b": [[0]]}, "bayes", rng=1), rng=1)
    with pytest.raises(ValueError, match="compared must have pass@1"):
        bk.decide.StoppingRule("pass@1").decide(compared)
    with pytest.raises(ValueError, match="prob must lie strictly"):
        bk.decide.StoppingRule("pass@1", ci_prob=0.4)
    with pytest.raises(ValueError, match="width must be finite and > 0"):
        bk.decide.StoppingRule("pass@1", width=0.0)
    with pytest.raises(ValueError, match="one metric of right and wrong"):
        bk.decide.StoppingRule("pass@1,2")
    with pytest.raises(ValueError, match="target must be"):
        bk.decide.StoppingRule("pass@1", target="both")
    with pytest.raises(ValueError, match="alpha must lie strictly"):
        _by_hand().threshold(0.0)


@pytest.mark.long
def test_a_resumed_study_gives_the_same_answer(tmp_path) -> None:
    rule, path = bk.decide.StoppingRule("pass@1"), tmp_path / "stopping.jsonl"
    pairs, options = {"a": (0.7, 0.3), "b": (0.5, 0.3)}, {"trials": 1, "correlation": 0.5, **QUIET}
    bk.decide.simulate_stopping(pairs, rule, [6], replications=10, path=path, **options)
    path.write_text(path.read_text() + '{"study": ')  # killed while writing
    with pytest.warns(UserWarning, match="the last 10 bytes"):
        resumed = bk.decide.simulate_stopping(
            pairs, rule, [6], replications=30, path=path, **options
        )
    whole = bk.decide.simulate_stopping(pairs, rule, [6], replications=30, **options)
    assert len(resumed.truth) == 30
    np.testing.assert_array_equal(resumed.prob_greater, whole.prob_greater)
    kept = path.read_text()
    bk.decide.simulate_stopping(pairs, rule, [6], replications=30, path=path, **options)
    assert path.read_text() == kept  # nothing was left to do
    with pytest.raises(ValueError, match="file of this study"):
        bk.decide.simulate_stopping(pairs, rule, [7], replications=10, path=path, **options)
