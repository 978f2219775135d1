"""Leaderboards of marks of judges that err."""

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.boards.leaderboard import rank


def _marks(rng, p, trials, s=0.9, f=0.1):
    right = rng.binomial(trials, p)
    return rng.binomial(right, s) + rng.binomial(trials - right, f)


def _fit(marks, trials, judge, metrics="pass@1", **more):
    data = bk.tally((marks, np.full(marks.shape, trials)), missing="ignore", **more)
    return bk.evaluate(data, metrics, judge=judge, difficulty="beta", rng=1, draws=50)


JUDGE = bk.JudgeError(tp=91, p=100, fp=9, n=100)


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(3)
    return expit(np.array([-0.8, 0.3, 0.5, 1.4])[:, None] + 1.3 * rng.standard_normal(60))


@pytest.fixture(scope="module")
def marks(truth):
    return _marks(np.random.default_rng(4), truth, 4)


@pytest.fixture(scope="module")
def fit(marks):
    return _fit(marks, 4, JUDGE, "pass@1,3")


@pytest.fixture(scope="module")
def board(fit):
    return bk.leaderboard(fit, rng=1)


@pytest.mark.long
def test_the_judge_is_corrected_for(board, marks, truth) -> None:
    """Intervals hold the truth where those of the marks do not; what was observed are marks."""
    rows = bk.table(board, "leaderboard")
    rows = rows.query("metric == 'pass@1' and target == 'questions'").set_index("system")
    rows = rows.sort_index()
    own = truth.mean(axis=1)
    assert rows["observed"].tolist() == pytest.approx(marks.mean(axis=1) / 4)
    assert (rows["ci_lower"] < own).all()
    assert (own < rows["ci_upper"]).all()
    plain = bk.table(bk.leaderboard(_fit(marks, 4, None), rng=1), "leaderboard")
    plain = plain.query("target == 'questions'").set_index("system").sort_index()
    assert abs(rows["mean"] - own).mean() < abs(plain["mean"] - own).mean()
    assert (rows["sd"] > plain["sd"]).all()
    assert "corrected for the judge" in str(bk.table(board, "leaderboard"))
    assert "are 3 tiers" in bk.claim(board) or "are 2 tiers" in bk.claim(board)


def test_one_system_at_a_time_says_about_the_same(board, fit) -> None:
    """The board moves means towards each other, and knows questions that nobody solves."""
    alone = bk.table(fit).query("target == 'questions'").set_index(["metric", "system"])
    rows = bk.table(board, "leaderboard").query("target == 'questions'")
    rows = rows.set_index(["metric", "system"])
    gap = (rows["mean"] - alone["mean"].loc[rows.index]) / alone["sd"].loc[rows.index]
    assert abs(gap).max() < 1.0
    ratio = rows["sd"] / alone["sd"].loc[rows.index]
    assert ratio.between(0.6, 1.2).all()


@pytest.mark.long
def test_a_judge_that_never_errs_gives_the_board_of_the_trials(marks) -> None:
    sure = bk.JudgeError(tp=10**9, p=10**9, fp=0, n=10**9)
    joints = [rank(_fit(marks, 4, judge), rng=1).joint for judge in (sure, None)]
    error = np.sqrt(sum(1.0 / joint.attrs["effective_draws"] for joint in joints))
    for target in range(2):
        ours, theirs = (joint.values(0, target) for joint in joints)
        gap = abs(ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)
        assert (gap < 4.5 * error).all()
        assert (abs(np.log(ours.std(axis=0) / theirs.std(axis=0))) < 4.5 * error).all()


@pytest.mark.long
def test_a_judge_biased_towards_one_system(truth) -> None:
    """By the marks the second leads the first; each judge is calibrated on its system."""
    rng = np.random.default_rng(6)
    p = np.stack([truth[3], truth[1], truth[0]])
    s, f = np.array([[0.9, 0.98, 0.9], [0.05, 0.6, 0.05]])[:, :, None]
    marks = _marks(rng, p, 4, s, f)
    assert marks[1].mean() > marks[0].mean()
    fair = bk.JudgeError(tp=180, p=200, fp=10, n=200)
    lenient = bk.JudgeError(tp=196, p=200, fp=120, n=200)
    fit = _fit(marks, 4, {"x": fair, "y": lenient, "z": fair}, systems=["x", "y", "z"])
    ranking = rank(fit, rng=1)
    best = ranking.table().query("target == 'questions'").iloc[0]
    assert best["system"] == "x"
    assert best["prob_best"] > 0.9
    turned = _fit(marks[::-1], 4, {"z": fair, "y": lenient, "x": fair}, systems=["z", "y", "x"])
    again = rank(turned, rng=1)
    values = ranking.joint.values(0, 0)
    np.testing.assert_array_equal(again.joint.values(0, 0), values[:, ::-1])


@pytest.mark.long
def test_questions_of_a_marked_board(board, marks) -> None:
    assert bk.checks.suspicious_questions(board, rng=1)["suspicious"].sum() <= 3


@pytest.mark.long
def test_a_wrong_key_is_found_under_a_judge() -> None:
    rng = np.random.default_rng(8)
    p = expit(np.linspace(-1.5, 1.5, 6)[:, None] + rng.standard_normal(40))
    p[:, 7] = [0.95, 0.95, 0.95, 0.02, 0.02, 0.02]
    found = bk.checks.suspicious_questions(
        bk.leaderboard(_fit(_marks(rng, p, 5), 5, JUDGE), rng=1), rng=1
    )
    assert found["question"].iloc[0] == 7
    assert found["suspicious"].iloc[0]
