"""Leaderboards: laws, published values, known truth."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import bayesatk as bk
from bayesatk.comparison.boards.leaderboard import rank
from bayesatk.comparison.joint.contrasts import rank_draws, separated, tiers_of
from tests.core.test_one_factor import simulate


def _fit(c, n, metrics="pass@1", **more):
    data = bk.tally((c, n), missing="ignore", **more)
    return bk.evaluate(data, metrics, difficulty="beta", rng=1, draws=50)


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(4)
    c, n, _ = simulate(rng, 6, 50, 3)
    n[2, :25] = c[2, :25] = 0
    return bk.leaderboard(_fit(c, n, "pass@1,2"), rng=1)


def test_a_row_for_every_system_metric_and_target(board) -> None:
    rows = bk.table(board, "leaderboard")
    assert len(rows) == 6 * 2 * 2
    for _, own in rows.groupby(["metric", "target"]):
        assert own["rank"].tolist() == [1, 2, 3, 4, 5, 6]
        assert own["mean"].is_monotonic_decreasing
        assert own["tier"].is_monotonic_increasing
        assert own["prob_best"].sum() == pytest.approx(1.0)
        assert own["prob_top3"].sum() == pytest.approx(3.0)
        assert (own["prob_best"] <= own["prob_top3"] + 1e-12).all()
        assert (own["rank_lower"] <= own["rank_upper"]).all()
        assert own["ci_lower"].lt(own["mean"]).all()
        assert own["ci_upper"].gt(own["mean"]).all()
    assert rows.query("system == 2")["questions"].unique().tolist() == [25]
    one = rows.query("metric == 'pass@2' and target == 'questions'")
    assert str(one).count("P(best)") == 1
    assert "pass@1" not in str(one)
    assert str(rows).startswith("pass@1: systems ranked on these questions")
    assert str(rows).count("P(best)") == 4
    assert str(rows).endswith("(importance).")


def test_the_group_has_every_number_of_the_table(board) -> None:
    group = board["leaderboard"]
    for row in bk.table(board, "leaderboard").to_dict("records"):
        cell = group.sel({name: row.pop(name) for name in ("metric", "target", "system")})
        for name, value in row.items():
            assert cell[name].item() == value


def test_pairs_and_tiers_tell_one_story(board) -> None:
    pairs = bk.table(bk.compare(board, rng=1), "comparison").query("metric == 'pass@2'")
    for target in ("questions", "population"):
        rows = bk.table(board, "leaderboard").query("metric == 'pass@2' and target == @target")
        tier = rows.set_index("system")["tier"]
        separated = board["leaderboard"]["separated"].sel(metric="pass@2", target=target)
        own = pairs.query("target == @target")
        assert len(own) == 15
        for row in own.to_dict("records"):
            ways = [("system", "other"), ("other", "system")]
            first, second = (
                separated.sel(system=row[one], other=row[other]).item() for one, other in ways
            )
            assert row["declared"] == first
            assert not (first and second)
            if first:
                assert row["prob_greater"] > 0.95
                assert tier[row["system"]] < tier[row["other"]]


def test_names_and_order_change_nothing() -> None:
    rng = np.random.default_rng(7)
    c, n, _ = simulate(rng, 4, 20, 2)
    turned = np.array([2, 0, 3, 1])
    one = rank(_fit(c, n), rng=3)
    other = rank(_fit(c[turned], n[turned], systems=list("wxyz")), rng=3)
    assert np.array_equal(other.joint.values(0, 1), one.joint.values(0, 1)[:, turned])
    tables = [ranking.table().drop(columns="system") for ranking in (one, other)]
    pd.testing.assert_frame_equal(*tables)


def test_systems_that_share_no_question_are_refused() -> None:
    rng = np.random.default_rng(9)
    c, n, _ = simulate(rng, 3, 30, 2)
    n[0, 10:] = n[1, :10] = n[1, 20:] = n[2, :20] = 0
    for function in (bk.leaderboard, bk.compare):
        with pytest.raises(ValueError, match="of 3 systems no two did"):
            function(_fit(np.where(n > 0, c, 0), n))


@pytest.mark.long
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**31))
def test_ordinary_data_are_ranked(seed) -> None:
    """Saturated, never solved, single questions, many trials: an answer without a warning."""
    rng = np.random.default_rng(seed)
    systems, questions = rng.integers(2, 6), rng.integers(1, 12)
    n = rng.choice([0, 1, 2, 5, 40], (systems, questions))
    n[rng.integers(systems), rng.integers(questions)] += 1
    n[:2, 0] += 1  # two that tried the same question
    p = rng.choice([0.0, 1.0, 0.5], (systems, questions), p=rng.dirichlet(np.ones(3)))
    board = bk.leaderboard(_fit(rng.binomial(n, p), n, "pass@1,4"), rng=1)
    rows = bk.table(board, "leaderboard")
    assert np.isfinite(rows["mean"]).all()
    assert rows["mean"].between(0, 1).all()
    assert (rows["ci_lower"] <= rows["ci_upper"]).all()


def test_declared_orders_hold_together() -> None:
    rng = np.random.default_rng(2)
    centre = np.linspace(0, 3, 8)
    values = centre + rng.standard_normal((4000, 8))
    declared = separated(values, 0.1)
    fresh = centre + rng.standard_normal((4000, 8))
    above, below = np.nonzero(declared)
    assert len(above) > 0
    assert (fresh[:, above] <= fresh[:, below]).any(axis=1).mean() < 0.12
    assert (separated(values, 0.3) >= declared).all()
    tier = tiers_of(declared, np.argsort(-values.mean(axis=0)))
    assert (tier[above] < tier[below]).all()
    assert not separated(np.ones((10, 3)), 0.05).any()
    assert rank_draws(np.ones((1, 3))).tolist() == [[2.0, 2.0, 2.0]]


def test_refusals() -> None:
    fit = _fit(np.array([[1, 2]]), np.array([[2, 2]]))
    with pytest.raises(ValueError, match="at least two systems"):
        bk.leaderboard(fit)
    fit = _fit(np.array([[1, 2], [0, 1]]), np.array([[2, 2], [2, 2]]))
    with pytest.raises(ValueError, match="alpha must lie"):
        bk.leaderboard(fit, alpha=1.0)
    with pytest.raises(TypeError, match="LeaderboardPrior"):
        bk.leaderboard(fit, prior=bk.priors.HyperPrior())
    with pytest.raises(ValueError, match="spread_sd must be"):
        bk.priors.LeaderboardPrior(spread_sd=0)
    with pytest.raises(ValueError, match=r"group 'leaderboard', systems ranked.*bayesatk.lead"):
        bk.table(fit, "leaderboard")
    with pytest.raises(ValueError, match=r"what must be 'results'.*got 'board'"):
        bk.table(fit, "board")


@pytest.mark.long
def test_suspicious_questions_are_those_with_a_wrong_key() -> None:
    rng = np.random.default_rng(6)
    c, n, _ = simulate(rng, 8, 50, 4, spread=1.2)
    found = bk.checks.suspicious_questions(bk.leaderboard(_fit(c, n), rng=1), rng=1)
    assert found["suspicious"].sum() <= 3
    assert kstest(found["p_value"], "uniform").pvalue > 1e-3
    order = np.argsort(c.sum(axis=1))
    wrong = [3, 40]
    c[:, wrong] = 0
    c[order[:4][:, None], wrong] = 4  # only the weak half solve these
    found = bk.checks.suspicious_questions(bk.leaderboard(_fit(c, n), rng=1), rng=1)
    assert set(wrong) <= set(found["question"].head(3))
    assert found.set_index("question").loc[wrong, "suspicious"].all()
    with pytest.raises(ValueError, match="alpha must lie"):
        bk.checks.suspicious_questions(bk.leaderboard(_fit(c, n), rng=1), alpha=0.0)


def test_a_large_board_has_fewer_draws_and_says_so(monkeypatch) -> None:
    """Time is bounded by fewer draws, and the number of draws that is stated falls with them."""
    rng = np.random.default_rng(5)
    runs = rng.binomial(1, [[[0.3]], [[0.6]]], (2, 50, 3))
    fit = bk.evaluate(bk.tally(runs), "pass@1", rng=1, draws=10)
    whole = rank(fit, rng=2)
    monkeypatch.setattr("bayesatk.comparison.joint.shared._CELLS", 0)
    few = rank(fit, rng=3)
    effective = few.joint.attrs["effective_draws"]
    assert effective <= 400 < whole.joint.attrs["effective_draws"]
    rows = [
        one.table().set_index(["system", "metric", "target"]).sort_index() for one in (few, whole)
    ]
    gap = rows[0]["mean"] - rows[1]["mean"]
    assert (abs(gap) < 5.0 * rows[1]["sd"] / np.sqrt(effective)).all()
