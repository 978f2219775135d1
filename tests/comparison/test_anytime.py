"""Evidence under looks: errors over all looks, questions out of order, and rules that stop."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

import bayesatk as bk


def slow_failures(seed: int) -> bk.Outcomes:
    """Equal systems at a moment when all failures of the first one are still running."""
    marks = np.random.default_rng(seed).integers(0, 2, (2, 120)).astype(float)
    marks[0, marks[0] == 0.0] = np.nan
    return bk.tally({"a": marks[0][:, None], "b": marks[1][:, None]}, missing="ignore")


def test_questions_that_end_out_of_order_wait() -> None:
    planned = bk.decide.StoppingRule(trials=1)
    looks = [slow_failures(seed) for seed in range(30)]
    assert not any(planned.decide(look)["stop"].any() for look in looks)
    assert sum(bk.decide.e_value(look).loc[0, "e_value"] > 20.0 for look in looks) > 25
    row = bk.decide.e_value(looks[0], trials=1).iloc[0]
    right = looks[0].trials.values[0] > 0
    assert row["questions"] == np.argmin(right)
    assert row["waiting"] == 120 - np.argmin(right)


# Evidence after every question, on fixed nodes: the definition, and another computation.
NODES = np.linspace(-6.0, 6.0, 241)
PRIOR = norm.logpdf(NODES) + np.log(NODES[1] - NODES[0])


def log_ratios(own: int, other: int) -> np.ndarray:
    """Log of E_0[exp(theta C)] by sum of successes; (sums, nodes)."""
    rows = []
    for total in range(own + other + 1):
        c = np.arange(max(0, total - other), min(own, total) + 1)
        logs = -gammaln(c + 1) - gammaln(own - c + 1)
        logs -= gammaln(total - c + 1) + gammaln(other - total + c + 1)
        rows.append(logsumexp(logs - logsumexp(logs) + NODES[:, None] * c, axis=1))
    return np.stack(rows)


def paths(successes: np.ndarray, own: int, other: int, null: float = 0.0) -> np.ndarray:
    """Log e-value against a log odds ratio after every question; (replications, questions)."""
    table = log_ratios(own, other)
    logs = np.cumsum(successes[:, 0, :, None] * NODES - table[successes.sum(axis=1)], axis=1)
    mixture = logsumexp(logs + PRIOR, axis=2)
    at_null = np.stack(
        [[np.interp(null, NODES, row) for row in replication] for replication in logs]
    )
    return np.asarray(mixture - at_null) if null else np.asarray(mixture)


def test_evidence_and_its_interval_are_the_end_of_a_path() -> None:
    """At the ends of the interval the evidence against the log odds ratio is 1 / alpha."""
    rng = np.random.default_rng(1)
    successes = rng.binomial([[4], [2]], rng.beta(1, 1, (1, 1, 50)), (3, 2, 50))
    for path, counts in zip(paths(successes, 4, 2), successes, strict=True):
        for end in (1, 20, 50):
            data = bk.tally((counts[:, :end], np.array([[4], [2]]).repeat(end, 1)))
            row = bk.decide.e_value(data).iloc[0]
            assert row["log_e"] == pytest.approx(path[end - 1], abs=1e-6)
        for bound in (row["ci_lower"], row["ci_upper"]):
            at_bound = paths(counts[None], 4, 2, null=bound)[0, -1]
            assert at_bound == pytest.approx(np.log(20.0), abs=0.01)


def test_errors_over_all_looks_and_how_soon_a_difference_is_found() -> None:
    """The numbers of docs/how_many_trials.md: 150 questions, a look after each."""
    rng = np.random.default_rng(2)
    logit = rng.normal(0.0, 1.5, (400, 1, 150))
    equal = rng.binomial(3, 1 / (1 + np.exp(-logit)), (400, 2, 150))
    assert (paths(equal, 3, 3).max(axis=1) >= np.log(20.0)).mean() <= 0.05
    for shift, least in ((1.0, 0.95), (0.5, 0.4)):
        moved = 1 / (1 + np.exp(-(logit[:100] + np.array([[shift], [0.0]]))))
        decided = paths(rng.binomial(3, moved, (100, 2, 150)), 3, 3).max(axis=1) >= np.log(20.0)
        assert decided.mean() > least


def test_systems_equal_on_average_only_need_a_metric() -> None:
    """One is better on half of the questions, the other on the rest, at random."""
    rng, errors = np.random.default_rng(4), np.zeros(2)
    for _ in range(40):
        p = np.where(rng.integers(0, 2, 80) == 1, [[0.9], [0.1]], [[0.1], [0.9]])
        counts = bk.tally((rng.binomial(12, p), np.full((2, 80), 12)))
        for i, metric in enumerate((None, "pass@1")):
            rule = bk.decide.StoppingRule(metric, trials=12)
            errors[i] += rule.decide(counts)["stop"].item()
    assert errors[0] > 8
    assert errors[1] <= 5


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({}, ["a is ahead", "a is ahead", "go on"]),
        ({"threshold": 0.7}, ["a is above 0.7", "b is below 0.7", "c is below 0.7"]),
        ({"width": 1.5}, ["a is ahead", "a is ahead", "precise enough"]),
    ],
)
def test_a_rule_stops_for_its_reason(options, reasons) -> None:
    runs = {"a": [[1, 1]] * 20, "b": [[0, 1]] * 20, "c": [[0, 1]] * 20}
    rule = bk.decide.StoppingRule("pass@1", trials=2, **options)
    decided = rule.decide(runs)
    assert decided["reason"].tolist() == reasons
    assert decided["stop"].tolist() == [reason != "go on" for reason in reasons]
    assert rule.decide(bk.evaluate(runs, "pass@1", rng=1)).equals(decided)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must lie strictly between 0 and 1"),
        ({"sd": -1.0}, "sd must be finite and > 0"),
        ({"trials": 0}, "trials must be an integer >= 1"),
        ({"threshold": 0.5}, "metric must be given with threshold"),
        ({"metric": "pass@1", "threshold": 1.0}, "threshold must lie strictly"),
        ({"metric": "pass@1,2"}, "one metric of right and wrong"),
        ({"metric": "pass@4", "trials": 2}, "trials must be an integer >= 4"),
    ],
)
def test_impossible_evidence_and_rules_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.e_value({"a": [[1, 0]], "b": [[1, 1]]}, **options)
    with pytest.raises(ValueError, match=message):
        bk.decide.StoppingRule(**({"trials": 3} | options))


def test_evidence_is_of_two_systems_and_of_no_more_trials_than_planned() -> None:
    with pytest.raises(ValueError, match="at least two systems to compare"):
        bk.decide.e_value([[1, 0]])
    with pytest.raises(ValueError, match="got 1, and question 0 of 'a' has 2"):
        bk.decide.e_value({"a": [[1, 0]], "b": [[1, 1]]}, trials=1)
    with pytest.raises(ValueError, match="width must be finite and > 0"):
        bk.decide.StoppingRule(trials=3, width=0.0)
