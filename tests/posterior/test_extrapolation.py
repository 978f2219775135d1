"""`extrapolation_range`: what it takes, how it is labelled, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.core.pooling.moment_range import metric_ranges
from bayesatk.core.question.count_bounds import count_bounds
from bayesatk.metrics.grid import parse
from bayesatk.reporting.sentences import levels
from bayesatk.results import Result


def marks(questions=60, trials=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.binomial(1, rng.beta(0.6, 0.9, (questions, 1)), (questions, trials))


def test_every_form_of_the_same_data_gives_the_same_range():
    rows = marks()
    question, trial = np.indices(rows.shape)
    long = pd.DataFrame(
        {"question": question.ravel(), "trial": trial.ravel(), "outcome": rows.ravel()}
    )
    forms = [rows, rows.tolist(), bk.tally(rows), (rows.sum(axis=1), 4), long]
    found = [bk.checks.extrapolation_range(each, "pass@4,16,64") for each in forms]
    for other in found[1:]:
        pd.testing.assert_frame_equal(other, found[0])


def test_rows_are_systems_metrics_and_targets():
    first, second = marks(seed=1), marks(trials=8, seed=2)[:40]
    trials = np.stack([np.full(60, 4), np.where(np.arange(60) < 40, 8, 0)])
    successes = np.stack([first.sum(axis=1), np.pad(second.sum(axis=1), (0, 20))])
    data = bk.tally(successes, trials=trials, systems=["a", "b"], missing="ignore")
    frame = bk.checks.extrapolation_range(data, ["pass@16", "g-pass@8:0.5"], ci_prob=0.9)
    assert list(frame.columns) == [
        "system",
        "metric",
        "target",
        "lower",
        "upper",
        "ci_prob",
        "trials",
        "fits",
    ]
    assert frame[["system", "metric", "target"]].drop_duplicates().shape[0] == len(frame) == 8
    assert frame.groupby("system")["trials"].unique().map(list).to_dict() == {"a": [4], "b": [8]}
    assert frame["fits"].all()
    assert (frame["ci_prob"] == 0.9).all()
    alone = bk.checks.extrapolation_range(second, "pass@16", ci_prob=0.9)
    ours = frame.query("system == 'b' and metric == 'pass@16'")
    np.testing.assert_array_equal(ours[["lower", "upper"]], alone[["lower", "upper"]])


def test_is_the_range_of_the_counts():
    rows = marks()
    counts = np.bincount(rows.sum(axis=1), minlength=5)
    asked = "pass@16 pass^3 maj@5 auc@8 mg-pass@8 bayes max@6"
    exact = metric_ranges(
        np.arange(5), np.full(5, 4), counts, [one.latent for one in parse(asked)], 0.95
    )
    frame = bk.checks.extrapolation_range(rows, asked)
    np.testing.assert_allclose(frame["lower"], exact.lower.ravel(), atol=1e-9)
    np.testing.assert_allclose(frame["upper"], exact.upper.ravel(), atol=1e-9)
    same = frame[frame["metric"].isin(["pass@6", "max@6"])]
    assert (same["lower"] <= same["upper"]).all()


def test_unequal_trials_leave_these_questions_less_certain():
    rows = [row[: 2 + 14 * (i % 2)].tolist() for i, row in enumerate(marks(90, 16))]
    frame = bk.checks.extrapolation_range(rows, "pass@8").set_index("target")
    width = frame["upper"] - frame["lower"]
    assert width["questions"] > width["population"] > 0


@pytest.fixture(scope="module")
def fit():
    data = bk.tally({"a": marks(seed=1), "b": marks(seed=2)})
    return bk.evaluate(
        data, "pass@2,8,32 maj@4 bayes", difficulty="beta", ci_prob=0.9, draws=100, rng=1
    )


def test_table_has_the_range_where_k_exceeds_the_trials(fit, tmp_path):
    data = bk.tally({"a": marks(seed=1), "b": marks(seed=2)})
    key = ["system", "metric", "target"]
    expected = bk.checks.extrapolation_range(data, "pass@8,32", ci_prob=0.9).set_index(key)
    bk.save(fit, tmp_path / "fit.nc")
    for result in (fit, bk.load_result(tmp_path / "fit.nc")):
        frame = bk.table(result).set_index(key)
        beyond = frame.index.get_level_values("metric").isin(["pass@8", "pass@32"])
        assert frame.loc[~beyond, ["range_lower", "range_upper"]].isna().all(axis=None)
        found = frame.loc[beyond, ["range_lower", "range_upper"]]
        np.testing.assert_allclose(found, expected.loc[found.index, ["lower", "upper"]], atol=1e-9)


def test_table_without_such_a_k_and_of_scores_has_no_range(fit):
    within = bk.evaluate(marks(), "pass@1,4", draws=50, rng=1)
    data = bk.tally([["b", "a", "b", "c"]], scores={"c": 0, "b": 0.5, "a": 1})
    scored = bk.evaluate(data, "max@16", pooling="none", draws=50, rng=1)
    for result in (within, scored):
        assert "range_lower" not in bk.table(result)


def test_ragged_systems_have_a_range_where_their_own_trials_end():
    data = bk.tally(
        [[1, 2, 0, 3], [5, 1, 8, 8]], trials=[[4] * 4, [8] * 4], systems=["few", "many"]
    )
    frame = bk.table(bk.evaluate(data, "pass@6", draws=50, rng=1)).set_index("system")
    assert frame.loc["few", "range_lower"].notna().all()
    assert frame.loc["many", "range_lower"].isna().all()


def test_report_claims_the_range_of_the_largest_k(fit):
    sentences = [one for one in levels(Result.of(fit)) if "agree with the counts" in one]
    frame = bk.table(fit).query("metric == 'pass@32' and target == 'population'")
    assert len(sentences) == len(frame) == 2
    for sentence, row in zip(sentences, frame.to_dict("records"), strict=True):
        assert sentence.startswith(
            f"{row['system']}: pass@32 judges more trials than some questions"
        )
        assert f"{row['range_lower']:.3f} to {row['range_upper']:.3f}" in sentence
        assert "90% confidence" in sentence


def rows_of(data, **asked):
    fit = bk.evaluate(data, "pass@1", difficulty="beta", draws=20, rng=1, **asked)
    rows = (
        bk.checks.extrapolation_range(fit, "pass@4,16").set_index(["target", "metric"]).sort_index()
    )
    return rows[["lower", "upper"]]


def test_weights_and_groups_that_say_nothing_change_nothing():
    own, group = marks(), list("abc") * 20
    plain, asked = rows_of(own), {"group": "group", "group_weights": "equal"}
    weighted = rows_of(bk.tally(own, weight=(1 + 1e-9 * np.arange(60)).tolist()))
    grouped = rows_of(bk.tally(own, group=group), **asked).drop("new_groups")
    for same in (weighted, grouped):
        pd.testing.assert_frame_equal(same, plain, atol=1e-12)


def test_weights_of_groups_are_those_of_their_questions():
    """Groups of 10, 20 and 30 questions that count alike, and weights of 3, 1.5 and 1."""
    own, group = marks(), np.repeat([0, 1, 2], [10, 20, 30])
    grouped = rows_of(bk.tally(own, group=group.tolist()), group="group", group_weights="equal")
    weight = np.array([3.0, 1.5, 1.0])[group].tolist()
    data = bk.tally(own, weight=weight)
    resampled = rows_of(data, population="bootstrap")
    pd.testing.assert_frame_equal(grouped.drop("new_groups"), resampled, atol=1e-9)
    pd.testing.assert_frame_equal(rows_of(data), resampled)
    of_law, plain = rows_of(data, population="law"), rows_of(own)
    pd.testing.assert_frame_equal(of_law.loc[["questions"]], resampled.loc[["questions"]])
    pd.testing.assert_frame_equal(of_law.loc[["population"]], plain.loc[["population"]])
    wider = (grouped["upper"] - grouped["lower"]).unstack("target")
    assert (wider["new_groups"] > wider["questions"]).all()


@pytest.mark.parametrize("units", [range(9), np.arange(9) // 3], ids=["weights", "groups"])
def test_weighted_limits_hold_by_enumeration(units):
    """All 512 outcomes of nine questions tried once, where those of a group have the same one."""
    rng, units = np.random.default_rng(2), np.asarray(units)
    size = units.max() + 1
    outcome = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    for _ in range(20):
        p, weight = rng.beta(0.5, 0.5, size), rng.uniform(0.1, 1.0, 9)
        weight /= np.bincount(units, weight).max()
        chance = np.prod(np.where(outcome == 1, p, 1.0 - p), axis=1)
        truth = weight @ (1.0 - p[units]) / weight.sum()  # share that fails its one trial
        held = 0.0
        for one, probability in zip(outcome[:, units], chance, strict=True):
            (found,) = count_bounds(one, np.ones(9, int), weight, 0.9, units)
            low, high = found.lower[0] - 1e-12, found.upper[0] + 1e-12
            held += probability * (low <= truth <= high)
            assert low <= weight @ (1 - one) / weight.sum() <= high
        assert held >= 0.9


def test_scores_need_to_say_which_succeed():
    data = bk.tally(
        [["no", "part", "yes"], ["no", "no", "yes"]], scores={"no": 0, "part": 0.5, "yes": 1}
    )
    with pytest.raises(ValueError, match=r"scored categories .* success='score >= 0.5'"):
        bk.checks.extrapolation_range(data, "pass@8")
    found = bk.checks.extrapolation_range(data, "pass@8", success="score >= 0.5")
    same = bk.checks.extrapolation_range([[0, 1, 1], [0, 0, 1]], "pass@8")
    pd.testing.assert_frame_equal(found, same)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"got plurality@5.*'maj@k'"):
        bk.checks.extrapolation_range(marks(), "pass@4 plurality@5")
    with pytest.raises(ValueError, match="ci_prob must lie strictly between 0 and 1; got 95"):
        bk.checks.extrapolation_range(marks(), "pass@4", ci_prob=95)
    with pytest.raises(ValueError, match="k must be at most 20000"):
        bk.checks.extrapolation_range(marks(), "pass@30000")
    with pytest.raises(ValueError, match="not a known metric"):
        bk.checks.extrapolation_range(marks(), "best@4")


@pytest.mark.parametrize("k", [1, 4, 16, 10_000])
def test_the_estimate_and_the_truth_lie_inside_at_every_k(k):
    rng = np.random.default_rng(4)
    p = rng.beta(1.5, 1.5, 300) * (rng.random(300) >= 0.3)
    rows = rng.binomial(1, p[:, None], (300, 4))
    frame = bk.checks.extrapolation_range(rows, f"pass@{k}")
    truth = np.mean(1 - (1 - p) ** k)
    assert frame["lower"].le(truth).all()
    assert frame["upper"].ge(truth).all()
    if k <= 4:
        estimate = bk.table(bk.evaluate(rows, f"pass@{k}", draws=50, rng=1))["estimate"]
        assert frame["lower"].le(estimate).all()
        assert frame["upper"].ge(estimate).all()
