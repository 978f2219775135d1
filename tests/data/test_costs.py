"""Costs of trials: read beside outcomes from every kind of input, refused where they are none."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bayesatk as bk

ROWS = pd.DataFrame(
    {
        "task": ["x", "x", "y", "y"], "trial": [1, 2, 1, 2], "passed": [1, 0, 1, 1],
        "usd": [0.1, 0.2, 0.3, 0.5],
    }
)  # fmt: skip
SUMS = [[[1, 0.2], [1, 0.1]], [[0, 0.0], [2, 0.8]]]  # question, outcome: number, total


def _sums(data: bk.Outcomes) -> object:
    return data.dataset["cost_sums"].sel(cost_sum=["number", "total"]).values[0].round(12).tolist()


@given(st.lists(st.lists(st.tuples(st.booleans(), st.floats(1e-6, 1e6)), min_size=1), min_size=1))
def test_sums_are_those_of_the_trials(rows: list[list[tuple[bool, float]]]) -> None:
    outcomes = [[int(right) for right, _ in row] for row in rows]
    data = bk.tally(outcomes, cost=[[cost for _, cost in row] for row in rows])
    for question, row in enumerate(rows):
        for outcome in (0, 1):
            own = np.array([cost for right, cost in row if right == outcome])
            sums = data.dataset["cost_sums"].values[0, question, outcome]
            expected = [len(own), own.sum(), (own**2).sum()]
            assert_allclose(sums, expected, rtol=1e-9, atol=1e-9)


def test_every_form_gives_the_same_sums(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    ROWS.to_csv(path, index=False)
    lists = pd.DataFrame(
        {"task": ["x", "y"], "passed": [[1, 0], [1, 1]], "usd": [[0.1, 0.2], [0.3, 0.5]]}
    )
    (tmp_path / "runs.jsonl").write_text(ROWS.to_json(orient="records", lines=True))
    array = xr.DataArray(
        np.array([[1, 0], [1, 1]]).T, dims=("trial", "question"), coords={"question": ["x", "y"]}
    )
    for data in (
        bk.tally(ROWS, cost="usd"),
        bk.tally(ROWS, columns={"cost": "usd"}),
        bk.tally(pl.DataFrame(ROWS), cost="usd"),
        bk.tally(lists, cost="usd"),
        bk.tally([[1, 0], [1, 1]], cost=[[0.1, 0.2], [0.3, 0.5]]),
        bk.tally({"a": [[1, 0], [1, 1]]}, cost={"a": np.array([[0.1, 0.2], [0.3, 0.5]])}),
        bk.tally(array, cost=array.copy(data=np.array([[0.1, 0.3], [0.2, 0.5]]))),
        bk.tally([[1, 0], [1, 1]],
                 answers=[["p", "q"], ["r", "r"]], cost=[[0.1, 0.2], [0.3, 0.5]]),
        bk.load(path, cost="usd"),
        bk.load(tmp_path / "runs.jsonl", cost="usd"),
    ):  # fmt: skip
        assert _sums(data) == SUMS
        assert _sums(bk.tally(data)) == SUMS


def test_costs_follow_selections_and_rules_of_success() -> None:
    outcomes = [["no", "part"], ["yes", "yes"]]
    scores = {"no": 0, "part": 0.5, "yes": 1}
    data = bk.tally(outcomes, scores=scores, cost=[[1, 2], [3, 4]], cost_unit="s")
    right = data.with_success("score >= 0.5")
    assert right.dataset["cost_sums"].values[0, ..., 1].tolist() == [[1.0, 2.0], [0.0, 7.0]]
    assert right.dataset.attrs["cost_unit"] == "s"
    assert right.sel(question=1).dataset["cost_sums"].values[0, ..., 1].tolist() == [[0.0, 7.0]]
    assert "costs: of 4 trials, mean 2.5 s" in str(data)
    assert data.sha256() != bk.tally(outcomes, scores=scores).sha256()


def test_missing_outcomes_take_their_costs_with_them() -> None:
    given = {"cost": [[1, 2], [3, 4]]}
    ignored = bk.tally([[1, None], [0, 1]], missing="ignore", **given)
    assert ignored.dataset["cost_sums"].values[0, ..., 1].tolist() == [[0.0, 1.0], [3.0, 4.0]]
    wrong = bk.tally([[1, None], [0, 1]], missing="wrong", **given)
    assert wrong.dataset["cost_sums"].values[0, ..., 1].tolist() == [[2.0, 1.0], [3.0, 4.0]]
    right = bk.tally([[1, None], [0, 1]], missing="right", **given)
    assert right.dataset["cost_sums"].values[0, ..., 1].tolist() == [[0.0, 3.0], [3.0, 4.0]]


def test_missing_costs_are_refused_or_told() -> None:
    with pytest.raises(bk.OutcomeError, match=r"1 of 4 trials \(25.0%\) .* question 'y'"):
        bk.tally(ROWS.assign(usd=[0.1, 0.2, None, 0.5]), cost="usd")
    told = bk.tally(ROWS.assign(usd=[0.1, 0.2, None, 0.5]), cost="usd", missing_cost="ignore")
    assert "missing_cost='ignore': 1 of 4 trials (25.0%) have no cost" in told.notes
    assert "costs: of 3 trials" in str(told)


@pytest.mark.parametrize("bad", [-1.0, "free", float("inf"), 1e91, True])
def test_what_is_no_cost_is_refused_by_row(bad: object) -> None:
    values = pd.Series([0.1, 0.2, bad, 0.5], dtype=object)
    with pytest.raises(bk.OutcomeError, match=r"must be a number from .* in 'usd' at row 2"):
        bk.tally(ROWS.assign(usd=values), cost="usd")
    with pytest.raises(bk.OutcomeError, match="system 'system', question 1"):
        bk.tally([[1, 0], [1, 1]], cost=[[0.1, 0.2], [bad, 0.5]])


def test_costs_need_the_whole_table() -> None:
    frame = pytest.importorskip("dask.dataframe").from_pandas(ROWS, npartitions=2)
    with pytest.raises(bk.OutcomeError, match="counted part by part"):
        bk.tally(frame, cost="usd")
    assert _sums(bk.tally(frame.compute(), cost="usd")) == SUMS


def test_costs_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    runs = [[1, 0], [1, 1]]
    for cost in ([[1.0, 2.0]], [[1.0], [2.0, 3.0]], {"b": runs}):
        with pytest.raises(bk.OutcomeError, match="arranged like data"):
            bk.tally({"a": runs}, cost=cost)
    with pytest.raises(bk.OutcomeError, match="left out for counts"):
        bk.tally([1, 2], trials=2, cost=runs)
    with pytest.raises(bk.OutcomeError, match="arranged like data, where data are no table"):
        bk.tally(runs, cost="usd")
    with pytest.raises(bk.OutcomeError, match="missing_cost must be"):
        bk.tally(runs, cost=runs, missing_cost="wrong")  # type: ignore[arg-type]
    with pytest.raises(bk.OutcomeError, match="cost_unit must be text"):
        bk.tally(runs, cost=runs, cost_unit=1)  # type: ignore[arg-type]
    with pytest.raises(bk.OutcomeError, match="counts already"):
        bk.tally(bk.tally(runs), cost=runs)
    ROWS.to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(bk.OutcomeError, match="name of a column of the files"):
        bk.load(tmp_path / "runs.csv", cost=runs)
    with pytest.raises(bk.OutcomeError, match="stream must be left out"):
        bk.load(tmp_path / "runs.csv", cost="usd", stream=True)
    counted = pd.DataFrame({"task": ["x"], "n": [4], "c": [2], "usd": [1.0]})
    with pytest.raises(bk.OutcomeError, match="count the outcomes of a row"):
        bk.tally(counted, columns={"trials": "n", "successes": "c", "cost": "usd"})
    labelled = xr.DataArray(runs, dims=("question", "trial"), coords={"question": ["x", "y"]})
    other = labelled.assign_coords(question=["y", "x"]).astype(float) + 1.0
    with pytest.raises(bk.OutcomeError, match="must have the questions of data"):
        bk.tally(labelled, cost=other)
