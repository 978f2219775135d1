"""Leaderboards: one story with tables, comparisons and claims; refusals."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import bayesatk as bk


def _counts(
    seed: int, systems: int, questions: int, trials: int
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    rng = np.random.default_rng(seed)
    skill, z = rng.normal(0.3, 0.8, (systems, 1)), 1.3 * rng.standard_normal(questions)
    n = np.full((systems, questions), trials)
    return rng.binomial(n, expit(skill + z + 0.5 * rng.standard_normal(n.shape))), n


def _fit(c: np.ndarray, n: np.ndarray, metrics: str = "pass@1", **more: Any) -> xr.DataTree:
    data = bk.tally((c, n), missing="ignore", **more)
    return bk.evaluate(data, metrics, difficulty="beta", rng=1)


@pytest.fixture(scope="module")
def board() -> xr.DataTree:
    c, n = _counts(4, 6, 50, 3)
    n[2, :25] = c[2, :25] = 0
    return bk.leaderboard(_fit(c, n, "pass@1,2"))


def test_a_row_for_every_system_metric_and_target(board: xr.DataTree) -> None:
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
        assert own["shrunk_mean"].iloc[0] < own["mean"].iloc[0]  # of the leader
    assert rows.query("system == 2")["questions"].unique().tolist() == [25]
    one = rows.query("metric == 'pass@2' and target == 'questions'")
    assert str(one).count("P(best)") == 2  # in the heading, and in the sentence below
    assert "pass@1" not in str(one)
    assert str(rows).startswith("pass@1: systems ranked on these questions")
    assert "allow for the luck of the leader" in str(rows)


def test_means_and_intervals_are_those_of_the_table(board: xr.DataTree) -> None:
    keys = ["system", "metric", "target"]
    table = bk.table(board, "results").set_index(keys)
    rows = bk.table(board, "leaderboard").set_index(keys)
    for name in ("mean", "sd", "ci_lower", "ci_upper"):
        np.testing.assert_array_equal(rows[name], table.loc[rows.index, name])
    np.testing.assert_array_equal(rows["observed"], table.loc[rows.index, "estimate"])


def test_the_group_has_every_number_of_the_table(board: xr.DataTree) -> None:
    group = board["leaderboard"]
    for row in bk.table(board, "leaderboard").to_dict("records"):
        cell = group.sel({name: row.pop(name) for name in ("metric", "target", "system")})
        for name, value in row.items():
            assert cell[name].item() == value


def test_pairs_ranks_and_tiers_tell_one_story(board: xr.DataTree) -> None:
    compared = bk.compare(board)
    pairs = bk.table(compared, "comparison").query("metric == 'pass@2'")
    for target in ("questions", "population"):
        rows = bk.table(board, "leaderboard").query("metric == 'pass@2' and target == @target")
        tier = rows.set_index("system")["tier"]
        own_tiers = compared["tiers"]["pass_at_k"].sel(k=2, target=target).to_series()
        assert own_tiers.loc[tier.index].tolist() == tier.tolist()
        ranks = compared["ranks"]["pass_at_k"].sel(k=2, target=target)
        held = board["leaderboard"]["prob_rank"].sel(metric="pass@2", target=target)
        np.testing.assert_array_equal(ranks.transpose("system", "rank"), held)
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
            assert row["verdict"] == ("ahead" if first else "behind" if second else "not separated")
            if first:
                assert row["prob_greater"] > 0.95
                assert tier[row["system"]] < tier[row["other"]]


def test_the_best_of_two_is_the_better_one() -> None:
    fit = _fit(*_counts(7, 2, 30, 3))
    rows = bk.table(bk.leaderboard(fit), "leaderboard").set_index(["target", "system"])
    found = bk.compare(fit)["comparison"]["pass_at_k"].sel(k=1, contrast="prob_greater")
    for target in ("questions", "population"):
        chance = float(found.sel(system=0, other=1, target=target))
        assert rows.loc[(target, 0), "prob_best"] == pytest.approx(chance)
        np.testing.assert_allclose(rows["shrunk_mean"], rows["mean"], rtol=1e-9)


def test_systems_that_share_no_question_are_refused() -> None:
    c, n = _counts(9, 3, 30, 2)
    n[0, 10:] = n[1, :10] = n[1, 20:] = n[2, :20] = 0
    for function in (bk.leaderboard, bk.compare):
        with pytest.raises(ValueError, match="of 3 systems no two did"):
            function(_fit(np.where(n > 0, c, 0), n))


@pytest.mark.long
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**31))
def test_ordinary_data_are_ranked(seed: int) -> None:
    """Saturated, never solved, single questions, many trials: an answer without a warning."""
    rng = np.random.default_rng(seed)
    systems, questions = rng.integers(2, 6), rng.integers(1, 12)
    n = rng.choice([0, 1, 2, 5, 40], (systems, questions))
    n[rng.integers(systems), rng.integers(questions)] += 1
    n[:2, 0] += 1  # two that tried the same question
    p = rng.choice([0.0, 1.0, 0.5], (systems, questions), p=rng.dirichlet(np.ones(3)))
    board = bk.leaderboard(_fit(rng.binomial(n, p), n, "pass@1,4"))
    rows = bk.table(board, "leaderboard")
    assert np.isfinite(rows["mean"]).all()
    assert rows["mean"].between(0, 1).all()
    assert rows["shrunk_mean"].between(0, 1).all()
    assert (rows["ci_lower"] <= rows["ci_upper"]).all()


def test_refusals() -> None:
    fit = _fit(np.array([[1, 2]]), np.array([[2, 2]]))
    with pytest.raises(ValueError, match="at least two systems"):
        bk.leaderboard(fit)
    fit = _fit(np.array([[1, 2], [0, 1]]), np.array([[2, 2], [2, 2]]))
    with pytest.raises(ValueError, match="alpha must lie"):
        bk.leaderboard(fit, alpha=1.0)
    with pytest.raises(ValueError, match=r"group 'leaderboard', systems ranked.*bayesatk.lead"):
        bk.table(fit, "leaderboard")
    with pytest.raises(ValueError, match=r"what must be 'results'.*got 'board'"):
        bk.table(fit, "board")
