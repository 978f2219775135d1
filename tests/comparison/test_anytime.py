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
    assert not any(planned.decide(one)["stop"].any() for one in looks)
    assert sum(bk.decide.e_value(one).loc[0, "e_value"] > 20.0 for one in looks) > 25
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
    at_null = np.stack([[np.interp(null, NODES, row) for row in each] for each in logs])
    return np.asarray(mixture - at_null) if null else np.asarray(mixture)


def test_a_path_ends_where_the_library_is() -> None:
    rng = np.random.default_rng(1)
    successes = rng.binomial([[4], [2]], rng.beta(1, 1, (1, 1, 50)), (3, 2, 50))
    found = paths(successes, 4, 2)
    for row, one in zip(found, successes, strict=True):
        for end in (1, 20, 50):
            counts = bk.tally((one[:, :end], np.array([[4], [2]]).repeat(end, 1)))
            assert bk.decide.e_value(counts).loc[0, "log_e"] == pytest.approx(
                row[end - 1], abs=1e-6
            )


def test_errors_over_all_looks_and_how_soon_a_difference_is_found() -> None:
    """The numbers of docs/how_many_trials.md: 150 questions, a look after each."""
    rng = np.random.default_rng(2)
    logit = rng.normal(0.0, 1.5, (400, 1, 150))
    equal = rng.binomial(3, 1 / (1 + np.exp(-logit)), (400, 2, 150))
    assert (paths(equal, 3, 3).max(axis=1) >= np.log(20.0)).mean() <= 0.05
    for shift, least in ((1.0, 0.95), (0.5, 0.4)):
        moved = 1 / (1 + np.exp(-(logit[:100] + np.array([[shift], [0.0]]))))
        found = paths(rng.binomial(3, moved, (100, 2, 150)), 3, 3).max(axis=1) >= np.log(20.0)
        assert found.mean() > least


def test_intervals_of_all_looks_hold_the_odds_ratio_together() -> None:
    rng = np.random.default_rng(3)
    logit = rng.normal(0.0, 1.5, (300, 1, 80)) + np.array([[0.7], [0.0]])
    successes = rng.binomial(2, 1 / (1 + np.exp(-logit)))
    missed = (paths(successes, 2, 2, null=0.7).max(axis=1) >= np.log(20.0)).mean()
    assert missed <= 0.05
    counts = bk.tally((successes[0], np.full((2, 80), 2)))
    row = bk.decide.e_value(counts).iloc[0]
    assert row["ci_lower"] < 0.7 < row["ci_upper"]


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


def test_a_rule_by_hand_and_what_it_says() -> None:
    runs = {"a": [[1, 1]] * 20, "b": [[0, 1]] * 20, "c": [[0, 1]] * 20}
    rule = bk.decide.StoppingRule("pass@1", trials=2)
    said = rule.decide(runs)
    assert said["reason"].tolist() == ["a is ahead", "a is ahead", "go on"]
    assert said["stop"].tolist() == [True, True, False]
    assert rule.decide(bk.evaluate(runs, "pass@1", rng=1)).equals(said)
    one = bk.decide.StoppingRule("pass@1", trials=2, threshold=0.7)
    assert one.decide(runs)["reason"].tolist() == [
        "a is above 0.7",
        "b is below 0.7",
        "c is below 0.7",
    ]
    wide = bk.decide.StoppingRule("pass@1", trials=2, width=1.5)
    assert wide.decide(runs)["reason"].tolist()[2] == "precise enough"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must lie strictly between 0 and 1"),
        ({"sd": -1.0}, "sd must be finite and > 0"),
        ({"threshold": 0.5}, "metric must be given with threshold"),
        ({"metric": "pass@1", "threshold": 1.0}, "threshold must lie strictly"),
        ({"metric": "pass@1,2"}, "one metric of right and wrong"),
        ({"metric": "pass@4", "trials": 2}, "trials must be an integer >= 4"),
        ({"trials": 1}, "got 1, and question 0 of 'a' has 2"),
    ],
)
def test_what_is_no_evidence_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.e_value({"a": [[1, 0]], "b": [[1, 1]]}, **options)


def test_rules_must_be_possible() -> None:
    with pytest.raises(ValueError, match="at least two systems to compare"):
        bk.decide.e_value([[1, 0]])
    for options, message in (
        ({"trials": 0}, "trials must be an integer >= 1"),
        ({"metric": "pass@4", "trials": 3}, "trials must be an integer >= 4"),
        ({"metric": "pass@1,2", "trials": 3}, "one metric of right and wrong"),
        ({"trials": 3, "threshold": 0.5}, "metric must be given with threshold"),
        ({"trials": 3, "width": 0.0}, "width must be finite and > 0"),
        ({"trials": 3, "alpha": 1.0}, "alpha must lie strictly"),
    ):
        with pytest.raises(ValueError, match=message):
            bk.decide.StoppingRule(**options)
