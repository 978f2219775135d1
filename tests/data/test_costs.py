"""Costs of trials: read beside outcomes from every kind of input, refused where they are none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bayesatk as bk
from tests.data.intake import as_kind

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
            costs = np.array([cost for right, cost in row if right == outcome])
            sums = data.dataset["cost_sums"].values[0, question, outcome]
            expected = [len(costs), costs.sum(), (costs**2).sum()]
            assert_allclose(sums, expected, rtol=1e-9, atol=1e-9)


NESTED = [[0.1, 0.2], [0.3, 0.5]]
ARRAY = xr.DataArray([[1, 1], [0, 1]], dims=("trial", "question"), coords={"question": ["x", "y"]})
FORMS = {
    "columns=": (ROWS, {"columns": {"cost": "usd"}}),
    "lists in cells": (
        pd.DataFrame({"task": ["x", "y"], "passed": [[1, 0], [1, 1]], "usd": NESTED}),
        {"cost": "usd"},
    ),
    "lists": ([[1, 0], [1, 1]], {"cost": NESTED}),
    "mapping": ({"a": [[1, 0], [1, 1]]}, {"cost": {"a": np.array(NESTED)}}),
    "xarray": (ARRAY, {"cost": ARRAY.copy(data=np.transpose(NESTED))}),
    "beside answers": ([[1, 0], [1, 1]], {"cost": NESTED, "answers": [["p", "q"], ["r", "r"]]}),
}


@pytest.mark.parametrize("form", [*FORMS, "pandas", "polars", "csv", "jsonl"])
def test_every_form_gives_the_same_sums(form: str, tmp_path: Path) -> None:
    if form in FORMS:
        source, options = FORMS[form]
        data = bk.tally(source, **options)
    else:
        data = bk.load(as_kind(ROWS, form, tmp_path), cost="usd")
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


@pytest.mark.parametrize(("missing", "totals"), [
    ("ignore", [[0.0, 1.0], [3.0, 4.0]]), ("wrong", [[2.0, 1.0], [3.0, 4.0]]),
    ("right", [[0.0, 3.0], [3.0, 4.0]]),
])  # fmt: skip
def test_missing_outcomes_take_their_costs_with_them(missing: str, totals: object) -> None:
    data = bk.tally([[1, None], [0, 1]], missing=missing, cost=[[1, 2], [3, 4]])
    assert data.dataset["cost_sums"].values[0, ..., 1].tolist() == totals


def test_missing_costs_are_refused_or_told() -> None:
    with pytest.raises(bk.OutcomeError, match=r"1 of 4 trials \(25.0%\) .* question 'y'"):
        bk.tally(ROWS.assign(usd=[0.1, 0.2, None, 0.5]), cost="usd")
    data = bk.tally(ROWS.assign(usd=[0.1, 0.2, None, 0.5]), cost="usd", missing_cost="ignore")
    assert "missing_cost='ignore': 1 of 4 trials (25.0%) have no cost" in data.notes
    assert "costs: of 3 trials" in str(data)


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


RUNS = [[1, 0], [1, 1]]
COUNTED = pd.DataFrame({"task": ["x"], "n": [4], "c": [2], "usd": [1.0]})
REFUSED = {
    "other questions": ({"a": RUNS}, {"cost": [[1.0, 2.0]]}, "arranged like data"),
    "other trials": ({"a": RUNS}, {"cost": [[1.0], [2.0, 3.0]]}, "arranged like data"),
    "other systems": ({"a": RUNS}, {"cost": {"b": RUNS}}, "arranged like data"),
    "counts": ([1, 2], {"trials": 2, "cost": RUNS}, "left out for counts"),
    "a name": (RUNS, {"cost": "usd"}, "arranged like data, where data are no table"),
    "a policy": (RUNS, {"cost": RUNS, "missing_cost": "wrong"}, "missing_cost must be"),
    "a unit": (RUNS, {"cost": RUNS, "cost_unit": 1}, "cost_unit must be text"),
    "counts of trials": (bk.tally(RUNS), {"cost": RUNS}, "counts already"),
    "a table of counts": (
        COUNTED, {"columns": {"trials": "n", "successes": "c", "cost": "usd"}},
        "count the outcomes of a row",
    ),
    "other labels": (
        ARRAY, {"cost": ARRAY.assign_coords(question=["y", "x"]) + 1.0},
        "must have the questions of data",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_costs_that_do_not_fit_are_refused(case: str) -> None:
    data, options, words = REFUSED[case]
    with pytest.raises(bk.OutcomeError, match=words):
        bk.tally(data, **options)


@pytest.mark.parametrize(("options", "words"), [
    ({"cost": RUNS}, "name of a column of the files"),
    ({"cost": "usd", "stream": True}, "stream must be left out"),
])  # fmt: skip
def test_costs_of_files_are_a_column_of_the_whole(options, words: str, tmp_path: Path) -> None:
    with pytest.raises(bk.OutcomeError, match=words):
        bk.load(as_kind(ROWS, "csv", tmp_path), **options)
