"""Evidence under looks: errors over all looks, looks within a question, questions out of order."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

import bayesatk as bk

# Two trials of one question for each of two systems: all sixteen outcomes (system, 1, trial).
ALL = [np.array(bits, float).reshape(2, 1, 2) for bits in product((0, 1), repeat=4)]


def above(marks, **options) -> float:
    """One-sided evidence: two-sided evidence of single trials is always 1."""
    return float(np.exp(bk.decide.e_value(data(marks), **options).loc[0, "log_e_above"]))


def data(marks: np.ndarray) -> dict[str, np.ndarray]:
    return {"a": marks[0], "b": marks[1]}


def expectation(p: float, value) -> float:
    found = [value(marks) for marks in ALL]
    return sum(p ** m.sum() * (1 - p) ** (4 - m.sum()) * x for m, x in zip(ALL, found, strict=True))


def test_a_look_in_the_middle_of_a_question_is_a_split_of_its_own() -> None:
    """Whoever gives a question more trials because of the first has an expectation of 1 with it."""

    def goes_on_where_it_is_good(marks: np.ndarray, **options) -> float:
        first = above(marks[:, :, :1])
        return above(marks, **options) if first > 1.0 else first

    def honest(marks: np.ndarray) -> float:
        return goes_on_where_it_is_good(marks, earlier=[data(marks[:, :, :1])])

    for p in (0.2, 0.5):
        assert expectation(p, honest) == pytest.approx(1.0, abs=1e-10)
    assert expectation(0.2, goes_on_where_it_is_good) > 1.005


def test_later_trials_of_a_question_that_counted_say_nothing_more_of_a_mean() -> None:
    first, later = [[1], [1], [0]], [[1, 0], [1, 0], [0, 0], [1, 1]]
    found = bk.decide.e_value(later, "pass@1", threshold=0.5, earlier=[first]).loc[0]
    joined = bk.decide.e_value([[1], [1], [0], [1]], "pass@1", threshold=0.5).loc[0]
    names = ["e_value", "estimate", "ci_lower", "questions"]
    assert found[names].tolist() == joined[names].tolist()


def slow_failures(seed: int) -> bk.Outcomes:
    """Equal systems at a moment when all failures of the first one are still running."""
    marks = np.random.default_rng(seed).integers(0, 2, (2, 120)).astype(float)
    marks[0, marks[0] == 0.0] = np.nan
    return bk.tally({"a": marks[0][:, None], "b": marks[1][:, None]}, missing="ignore")


def test_questions_that_end_out_of_order_wait() -> None:
    planned = bk.decide.StoppingRule(kind="anytime", trials=1)
    looks = [slow_failures(seed) for seed in range(30)]
    assert not any(planned.decide(one)["stop"].any() for one in looks)
    assert sum(bk.decide.e_value(one).loc[0, "e_value"] > 20.0 for one in looks) > 25
    row = bk.decide.e_value(looks[0], trials=1).iloc[0]
    right = looks[0].trials.values[0] > 0
    assert row["questions"] == np.argmin(right)
    assert row["waiting"] == 120 - np.argmin(right)


def looks_at(marks: np.ndarray, lengths: list) -> list[bk.Outcomes]:
    """Outcomes (system, question, trial) of the first so many trials (system, question)."""
    kept = [np.arange(marks.shape[2]) < np.array(tried)[..., None] for tried in lengths]
    return [
        bk.tally(((marks * tried).sum(axis=2), tried.sum(axis=2)), missing="ignore")
        for tried in kept
    ]


def highest(looks: list[bk.Outcomes]) -> np.ndarray:
    """Largest evidence of all looks: above, below, and of a difference."""
    names = ["log_e_above", "log_e_below", "log_e"]
    rows = [
        bk.decide.e_value(look, earlier=looks[:i]).loc[0, names]
        for i, look in enumerate(looks)
        if i
    ]
    return np.exp(np.array(rows, float).max(axis=0))


def test_outcomes_of_a_system_that_chose_the_questions_of_the_other_are_refused() -> None:
    """Two identical systems; the second one runs the questions that the first one solved."""
    marks = np.random.default_rng(5).integers(0, 2, (2, 12, 2))
    marks[0, :3] = [[1, 1], [0, 1], [1, 1]]
    all_first = [[2] * 12, [0] * 12]
    solved = [[2] * 12, (2 * (marks[0].sum(axis=1) == 2)).tolist()]
    twice = [[2] * 12, [1] * 3 + [2] * 9]
    for chosen, why in ((solved, "before it none"), (twice, "not as many as others")):
        first, second = looks_at(marks, [all_first, chosen])
        with pytest.raises(ValueError, match=f"did not choose which questions went on.*{why}"):
            bk.decide.e_value(second, earlier=[first])
    assert (
        bk.decide.e_value(second, trials=2).loc[0, "questions"] == 0
    )  # the remedy waits for the first
    grown = looks_at(marks, [[[1] * 12, [0] * 12], [[2, 1] * 6, [0] * 12]])
    with pytest.raises(ValueError, match="earlier must have looks"):
        bk.decide.e_value(grown[1], earlier=grown[:1])  # repeated where it failed
    waits = looks_at(marks, [[[1] * 12, [0] * 12], [[1] * 12, [1] * 4 + [0] * 8]])
    with pytest.raises(ValueError, match="not as many as others"):
        bk.decide.e_value(looks_at(marks, [[[1] * 12, [1] * 4 + [2] * 8]])[0], earlier=waits)


@pytest.mark.long
def test_all_outcomes_of_looks_in_the_order_of_the_data_keep_the_bound() -> None:
    """The first system is ready, the second follows; looks after every question."""
    lengths = [[[1] * 3, [1] * m + [0] * (3 - m)] for m in range(4)]
    everything = [np.array(bits).reshape(2, 3, 1) for bits in product((0, 1), repeat=6)]
    successes = np.array([marks.sum() for marks in everything])
    for reached in np.array([highest(looks_at(marks, lengths)) for marks in everything]).T:
        for p in (0.2, 0.5, 0.7):
            chance = p**successes * (1 - p) ** (6 - successes)
            for bound in np.unique(reached):
                assert bound * chance[reached >= bound].sum() <= 1.0 + 1e-9


@pytest.mark.long
def test_allowed_designs_of_identical_systems_keep_the_bound() -> None:
    """One follows the other, or both go on where both looked different; evidence of 5 or more."""
    rng, alarms = np.random.default_rng(6), np.zeros((2, 3))
    for _ in range(200):
        marks = (rng.random((2, 24, 4)) < rng.beta(0.6, 0.6, (24, 1))).astype(int)
        follow = [[[2] * 24, [2] * m + [0] * (24 - m)] for m in range(0, 25, 6)]
        ahead = marks[0, :, :2].sum(axis=1) > marks[1, :, :2].sum(axis=1)
        again = [[[2] * 24] * 2, [(2 + 2 * ahead).tolist()] * 2]
        alarms += [highest(looks_at(marks, design)) >= 5.0 for design in (follow, again)]
    assert (alarms <= 40).all()  # 200 / 5 at most on average


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
    """The numbers of docs/stopping.md: 150 questions, a look after each."""
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
            rule = bk.decide.StoppingRule(metric, kind="anytime", trials=12)
            errors[i] += rule.decide(counts)["stop"].item()
    assert errors[0] > 8
    assert errors[1] <= 5


def test_a_rule_by_hand_and_what_it_says() -> None:
    runs = {"a": [[1, 1]] * 20, "b": [[0, 1]] * 20, "c": [[0, 1]] * 20}
    rule = bk.decide.StoppingRule("pass@1", kind="anytime", trials=2)
    said = rule.decide(runs)
    assert said["reason"].tolist() == ["a is ahead", "a is ahead", "go on"]
    assert said["stop"].tolist() == [True, True, False]
    assert rule.decide(bk.evaluate(runs, "pass@1", rng=1)).equals(said)
    one = bk.decide.StoppingRule("pass@1", kind="anytime", trials=2, threshold=0.7)
    assert one.decide(runs)["reason"].tolist() == [
        "a is above 0.7",
        "b is below 0.7",
        "c is below 0.7",
    ]
    wide = bk.decide.StoppingRule("pass@1", kind="anytime", trials=2, width=1.5)
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
        ({"trials": 2, "earlier": [{"a": [[1]], "b": [[1]]}]}, "earlier must be left out"),
        ({"earlier": [{"a": [[0, 0]], "b": [[1]]}]}, "has fewer failures than an earlier look"),
        ({"earlier": [{"c": [[0, 0]], "b": [[1]]}]}, "'c' is in an earlier look"),
    ],
)
def test_what_is_no_evidence_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.e_value({"a": [[1, 0]], "b": [[1, 1]]}, **options)


def test_rules_of_kind_anytime_must_be_possible() -> None:
    with pytest.raises(ValueError, match="at least two systems to compare"):
        bk.decide.e_value([[1, 0]])
    with pytest.raises(ValueError, match="trials must be given for kind='anytime'"):
        bk.decide.StoppingRule("pass@1", kind="anytime")
    with pytest.raises(ValueError, match="metric must be given for kind='posterior'"):
        bk.decide.StoppingRule()
    with pytest.raises(ValueError, match="must be left out for kind='posterior'"):
        bk.decide.StoppingRule("pass@1", trials=3)
    with pytest.raises(ValueError, match="kind must be"):
        bk.decide.StoppingRule("pass@1", kind="exact")
    with pytest.raises(ValueError, match="metric must be given with threshold"):
        bk.decide.StoppingRule(kind="anytime", trials=3, threshold=0.5)
