"""Leaderboards: one story with tables, comparisons and claims; refusals."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.special import expit

import bayesatk as bk


def _counts(seed: int, systems: int, questions: int, trials: int) -> tuple[np.ndarray, np.ndarray]:
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
    for _, ranked in rows.groupby(["metric", "target"]):
        assert ranked["rank"].tolist() == [1, 2, 3, 4, 5, 6]
        assert ranked["mean"].is_monotonic_decreasing
        assert ranked["tier"].is_monotonic_increasing
        assert ranked["prob_best"].sum() == pytest.approx(1.0)
        assert ranked["prob_top3"].sum() == pytest.approx(3.0)
        assert (ranked["prob_best"] <= ranked["prob_top3"] + 1e-12).all()
        assert (ranked["rank_lower"] <= ranked["rank_upper"]).all()
        assert ranked["shrunk_mean"].iloc[0] < ranked["mean"].iloc[0]  # of the leader
    assert rows.query("system == 2")["questions"].unique().tolist() == [25]


def test_its_numbers_are_those_of_the_table_and_of_the_group(board: xr.DataTree) -> None:
    rows = bk.table(board, "leaderboard")
    for row in rows.to_dict("records"):
        cell = board["leaderboard"].sel(
            {name: row.pop(name) for name in ("metric", "target", "system")}
        )
        for name, value in row.items():
            assert cell[name].item() == value
    keys = ["system", "metric", "target"]
    rows, table = (frame.set_index(keys) for frame in (rows, bk.table(board, "results")))
    table = table.rename(columns={"estimate": "observed"}).loc[rows.index]
    names = ["mean", "sd", "ci_lower", "ci_upper", "observed"]
    np.testing.assert_array_equal(rows[names], table[names])


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
        of_target = pairs.query("target == @target")
        assert len(of_target) == 15
        for row in of_target.to_dict("records"):
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
    prob_greater = bk.compare(fit)["comparison"]["pass_at_k"].sel(k=1, contrast="prob_greater")
    for target in ("questions", "population"):
        chance = float(prob_greater.sel(system=0, other=1, target=target))
        assert rows.loc[(target, 0), "prob_best"] == pytest.approx(chance)
        np.testing.assert_allclose(rows["shrunk_mean"], rows["mean"], rtol=1e-9)


def test_costs_alone_are_not_ranked_by_scores() -> None:
    """In place of a board of accuracies that nobody asked for: the comparison of the costs."""
    cost = {"a": [[1.0, 2.0]] * 8, "b": [[3.0, 4.0]] * 8}
    data = bk.tally({"a": [[0, 1]] * 8, "b": [[1, 1]] * 8}, cost=cost)
    fit = bk.evaluate(data, "cost", rng=1)
    with pytest.raises(ValueError, match=r"has costs alone.*bayesatk\.compare\(fit\)"):
        bk.leaderboard(fit)
    assert set(bk.table(bk.compare(fit), "comparison")["metric"]) == {"cost"}
