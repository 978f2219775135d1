"""What tally refuses, and how it says so."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import bayesatk as bk
from tests.data.intake import (
    ARRAY,
    CUBE,
    FRAME,
    column,
    only_outcome_errors,
    refused,
    written,
)

BAD = {
    "2": ([[0, 1], [1, 2]], ["outcome 2", "question 1, trial 1", r"scores=\{"]),
    "-1": (np.array([[0, -1]]), ["outcome -1", "question 0, trial 1"]),
    "255": (np.array([[0, 255]], "u1"), ["outcome 255", "question 0, trial 1"]),
    "0.5": ([[0, 0.5]], ["outcome 0.5", "question 0, trial 1"]),
    "almost 1": (np.array([[1, 0.9999999]], "f4"), ["question 0, trial 1"]),
    "inf": (np.array([[1, np.inf]]), ["outcome inf", "question 0, trial 1"]),
    "huge": ([[1, 2**64]], ["question 0, trial 1"]),
    "text 1": ([[1, "1"]], ["outcome '1'", "question 0, trial 1"]),
    "text array": (np.array([["C", "I"]]), ["outcome 'C'", "question 0, trial 0", r"scores=\{"]),
    "bytes": (np.array([[b"1"]]), ["question 0, trial 0"]),
    "string dtype": (np.array([["1"]], np.dtypes.StringDType()), ["question 0, trial 0"]),
    "complex": (np.array([[1 + 0j, 0]]), []),
    "date": (np.array([[1, 0]], "M8[s]"), ["question 0, trial 0"]),
    "duration": (np.array([[1, 0]], "m8[s]"), []),
    "structured": (np.array([[(1,)]], [("a", int)]), []),
    "masked": (np.ma.masked_array([[1, 1]], [[0, 1]]), ["[Mm]ask"]),
    "unhashable": ([[1, {}]], ["question 0, trial 1"]),
    "third axis": (CUBE + 1, ["outcome 2", "system 0, question 0, trial 1"]),
    "mapping": ({"a": [[0, 1]], "b": [[0, 7]]}, ["outcome 7", "'b'", "question 0, trial 1"]),
    "list of systems": ([[[0, 1]], [[0, 7]]], ["outcome 7", "system 1", "question 0, trial 1"]),
    "xarray": (ARRAY + 1, ["outcome 2", "system", "question", "trial"]),
    "NaN": (np.array([[1, np.nan]]), ["question 0", "1 missing"]),
    "no trial": ([[0, 1], []], ["question 1", "no trials"]),
    "empty list": ([], ["empty"]),
    "empty array": (np.zeros((0, 3)), [r"\(0, 3\)"]),
    "empty mapping": ({}, ["empty"]),
    "0-d": (np.array(1), [r"shape \(\)"]),
    "1-d": (np.array([0, 1]), [r"shape \(2,\)", "trials="]),
    "1-d list": ([0, 1], [r"\[\[\.\.\.\]\]"]),
    "4-d": (np.zeros((1, 1, 1, 1)), [r"shape \(1, 1, 1, 1\)"]),
    "mixed depth": ([[0, 1], [[0, 1]]], [r"\[1, 2\]"]),
    "text": ("runs.csv", ["bayesatk.load"]),
    "None": (None, ["None"]),
    "generator": ((row for row in [[0, 1]]), ["generator"]),
    "series": (pd.Series([0, 1]), ["Series"]),
    "wide frame": (pd.DataFrame(CUBE[0]), ["question"]),
    "wide frame text": (pd.DataFrame(CUBE[0], columns=list("xyz")), ["question", "columns="]),
    "other questions": ({"a": [[0, 1]], "b": [[0], [1]]}, ["'b': "]),
    "xarray dims": (xr.DataArray(CUBE[0]), ["dim_0", "rename"]),
    "xarray 4 dims": (ARRAY.expand_dims("z"), ["'z'", "rename"]),
    "xarray twice": (ARRAY.assign_coords(question=["x", "x"]), ["questions", "'x'"]),
    "xarray trial twice": (ARRAY.assign_coords(trial=[0, 0, 1]), ["trial"]),
    "xarray null": (ARRAY.assign_coords(question=np.array(["x", None], object)), ["question"]),
}


@pytest.mark.parametrize(("data", "says"), BAD.values(), ids=BAD.keys())
def test_bad_outcomes_are_refused(data, says):
    refused(lambda: bk.tally(data), *says)


@pytest.mark.parametrize("rows", [[[]], [[], []], [[None, None]]])
def test_nothing_at_all_is_refused_under_every_policy(rows):
    refused(lambda: bk.tally(rows, missing="ignore"))


def test_nesting_without_end_is_refused():
    rows = []
    rows.append(rows)
    refused(lambda: bk.tally([rows]), "nest")


BAD_COUNTS = {
    "1.5": ([1, 1.5], 3, ["successes", "1.5", r"\(1,\)"]),
    "-1": ([1, -1], 3, ["successes", "-1", r"\(1,\)"]),
    "NaN": ([1, np.nan], 3, ["successes", "nan", r"\(1,\)"]),
    "inf": ([1, 1], [3, np.inf], ["trials", "inf", r"\(1,\)"]),
    "text": (["1"], 3, ["successes"]),
    "too many": ([1, 4], 3, ["4 successes in 3 trials", r"\(1,\)"]),
    "swapped": (([3, 4], [2, 2]), None, ["3 successes in 2 trials", "order"]),
    "shape": ([1, 2], [3, 3, 3], [r"\(3,\)", r"\(2,\)"]),
    "empty": ([], 3, [r"\(0,\)"]),
    "scalar": (1, 3, [r"\(\)"]),
    "ragged": ([[1, 2], [3]], 5, ["successes"]),
    "ragged trials": ([1, 2], [[1, 2], [3]], ["trials"]),
    "beyond int64": ([2**63], [2**63], ["successes|trials", "9223372036854775808"]),
    "beyond int64 float": ([1.0], [1e300], ["trials", "1e[+]?300"]),
    "total beyond int64": ([0] * 4, 2**62, ["trials", "4611686018427387904"]),
    "masked": (np.ma.masked_array([1, 1], [0, 1]), 3, ["successes", "[Mm]ask"]),
    "dataset": (ARRAY.to_dataset(name="outcome"), 3, ["successes"]),
    "frame": (FRAME[["trial", "outcome"]], 3, []),
    "by system, ragged": ({"a": [1, 2], "b": [3]}, 5, ["successes by system", r"\(2,\), \(1,\)"]),
    "by system, numbers": ({"a": 1, "b": 3}, 5, ["successes by system", "one vector"]),
    "by system, nothing": ({}, 5, ["successes by system"]),
    "by system, nested": ({"a": {"b": [1]}}, 5, ["successes by system", "1, 1"]),
    "by system, text": ({"a": ["1"]}, 5, ["successes of 'a'"]),
    "by system, too many": ({"a": [1], "b": [6]}, {"b": 5, "a": 7}, ["6 successes in 5 trials"]),
    "by system, other": ({"a": [1], "b": [2]}, {"a": 5, "c": 5}, ["same labels", "'c'"]),
    "by system, order": (
        {"a": pd.Series([1, 2], ["x", "y"]), "b": pd.Series([1, 2], ["y", "x"])},
        5,
        ["successes of every system", "'y', 'x'"],
    ),
}


@pytest.mark.parametrize(("data", "trials", "says"), BAD_COUNTS.values(), ids=BAD_COUNTS.keys())
def test_bad_counts_are_refused(data, trials, says):
    refused(lambda: bk.tally(data, trials=trials), *says)


def canonical(**parts):
    sizes = {"count": ("system", "question", "category"), "missing": ("system", "question")}
    contents = {"count": [[[1, 2], [3, 0]]], "score": ("category", [0.0, 1.0])} | parts
    variables = {
        name: (sizes[name], np.array(value)) if name in sizes else value
        for name, value in contents.items()
    }
    return xr.Dataset(variables).set_coords("score")


BAD_DATASETS = {
    "no count": (ARRAY.to_dataset(name="outcome"), "count"),
    "negative": (canonical(count=[[[1, -2], [3, 0]]]), r"-2 at position \(0, 0, 1\)"),
    "fraction": (canonical(count=[[[1, 1.5], [3, 0]]]), r"1.5 at position \(0, 0, 1\)"),
    "NaN": (canonical(count=[[[1, np.nan], [3, 0]]]), r"nan at position \(0, 0, 1\)"),
    "beyond int64": (canonical(count=np.array([[[2**63, 0]]], "u8")), "9223372036854775808"),
    "empty": (canonical(count=np.zeros((1, 0, 2))), "count|question"),
    "nothing ran": (canonical(count=np.zeros((1, 2, 2))), "trials"),
    "extra dim": (canonical().expand_dims("z"), "'z'"),
    "NaN score": (canonical(score=("category", [0, np.nan])), "score"),
    "text score": (canonical(score=("category", ["a", "b"])), "score"),
    "score dims": (canonical(score=("question", [0.0, 1.0])), "score"),
    "scalar score": (canonical(score=1.0), "score"),
    "one category": (canonical(count=[[[1], [2]]], score=("category", [1.0])), "categor|score"),
    "same question": (canonical().assign_coords(question=["x", "x"]), "question"),
    "null question": (
        canonical().assign_coords(question=np.array(["x", None], object)),
        "question",
    ),
    "negative missing": (canonical(missing=[[-1, 0]]), "missing"),
    "fraction missing": (canonical(missing=[[0.5, 0]]), "missing"),
    "missing dims": (canonical().assign(missing=("z", [1, 2])), "missing"),
    "unsaid missing": (canonical(missing=[[1, 0]]), "missing"),
}


@pytest.mark.parametrize(("data", "says"), BAD_DATASETS.values(), ids=BAD_DATASETS.keys())
def test_bad_datasets_are_refused(data, says):
    refused(lambda: bk.tally(data), says)


BAD_TABLES = {
    "value": (column("outcome", 0, 7, 1, 1), ["outcome 7", "row 1", "'outcome'"]),
    "fraction": (column("outcome", 0, 0.5, 1, 1), ["outcome 0.5", "row 1", "'outcome'"]),
    "text": (column("outcome", "C", "I", "C", "C"), ["'C'", "row 0", "'outcome'", r"scores=\{"]),
    "complex": (column("outcome", 1 + 0j, 1, 1, 1), ["row 0"]),
    "list": (column("outcome", 1, [1], 1, 1), ["row 1", "'outcome'"]),
    "null": (column("outcome", 1, None, 1, 1), ["question 'x'", "1 missing"]),
    "repeated": (column("trial", 1, 1, 1, 2), ["0 and (row )?1 ", "question 'x', trial 1"]),
    "repeated 1 and '1'": (column("trial", 1, "1", 1, 2), ["0 and (row )?1 ", "question 'x'"]),
    "null id": (column("question", "x", None, "y", "y"), ["'question'", "row 1"]),
    "blank id": (column("question", "x", " ", "y", "y"), ["'question'", "row 1"]),
    "NaN id": (column("question", 1, np.nan, 2, 2), ["'question'", "row 1"]),
    "NaT id": (column("question", pd.NaT, 1, 2, 2), ["'question'", "row 0"]),
    "null trial": (column("trial", 1, 2, pd.NA, 2), ["'trial'", "row 2"]),
    "null system": (column("system", "a", "a", None, "a"), ["'system'", "row 2"]),
    "1 and '1'": (column("question", 1, "1", 2, 2), ["questions", "'1'", "type"]),
    "1 and True": (column("question", 1, True, 2, 2), ["question"]),
    "list id": (column("system", ["x"], ["x"], ["y"], ["y"]), ["'system'", "row 0"]),
    "ragged list id": (column("system", "x", ["x", 1], "y", "y"), ["'system'", "row 1"]),
    "empty list id": (column("question", "x", [], "y", "y"), ["'question'", "row 1"]),
    "dict id": (column("question", "x", {}, "y", "y"), ["'question'", "row 1"]),
    "sNaN id": (column("question", "x", decimal.Decimal("sNaN"), "y", "y"), ["'question'"]),
    "surrogate id": (column("question", "x", "\ud800", "y", "y"), ["question"]),
    "no rows": (FRAME.iloc[:0], ["rows"]),
    "no columns": (pd.DataFrame(), ["question", "columns="]),
    "no outcome": (FRAME.drop(columns="outcome"), ["outcome", "columns="]),
    "two outcomes": (FRAME.assign(score=1), ["'outcome', 'score'", "columns="]),
    "two questions": (FRAME.assign(Question=1), ["'question', 'Question'", "columns="]),
    "column twice": (pd.concat([FRAME, FRAME["outcome"]], axis=1), ["outcome"]),
    "column levels": (FRAME.set_axis(pd.MultiIndex.from_product([["k"], FRAME.columns]), axis=1),
                      ["question"]),
    "system in index": (FRAME.drop(columns="trial").set_index("system"), ["system", "index"]),
    "arrow twice": (pa.table([[0], [1], [1]], names=["question", "outcome", "outcome"]),
                    ["outcome"]),
    "lazy wide": (pl.LazyFrame({"x": [0, 1]}), ["question", r"tally\(data\.collect\(\)\.to_numpy"]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "says"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_refused(data, says):
    refused(lambda: bk.tally(data), *says)


BAD_OPTIONS = {
    "missing": ({"missing": "drop"}, ["missing", "'drop'"]),
    "missing None": ({"missing": None}, ["missing", "None"]),
    "missing array": ({"missing": np.array(["ignore", "wrong"])}, ["missing"]),
    "scores list": ({"scores": [0, 1]}, ["scores"]),
    "scores text": ({"scores": "IC"}, ["scores"]),
    "scores empty": ({"scores": {}}, ["scores"]),
    "scores one": ({"scores": {1: 1}}, ["scores"]),
    "scores NaN": ({"scores": {0: 0, 1: np.nan}}, ["scores", "nan for 1"]),
    "scores text value": ({"scores": {0: 0, 1: "1"}}, ["scores", "'1' for 1"]),
    "scores huge": ({"scores": {0: 0, 1: 10**400}}, ["scores"]),
    "scores complex": ({"scores": {0: 0, 1: np.complex128(1)}}, ["scores"]),
    "scores tuple": ({"scores": {(0, 0, 0, 0): 0, (1, 1): 1}}, []),
    "scores 1 and '1'": ({"scores": {0: 0, 1: 1, "1": 1}}, ["scores", "'1'"]),
    "scores None": ({"scores": {0: 0, 1: 1, None: 0}}, ["scores", "None"]),
    "labels short": ({"questions": ["x"]}, ["questions", "2", "1 label"]),
    "labels twice": ({"questions": ["x", "x"]}, ["questions", "'x'"]),
    "labels 1 and '1'": ({"questions": [1, "1"]}, ["questions", "type"]),
    "labels None": ({"questions": [None, "x"]}, ["questions"]),
    "labels NaN": ({"questions": [np.nan, "x"]}, ["questions"]),
    "labels number": ({"systems": 1}, ["systems"]),
    "labels set": ({"questions": {"x", "y"}}, ["questions"]),
    "columns of an array": ({"columns": {"question": "x"}}, ["columns"]),
}


@pytest.mark.parametrize(("options", "says"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_bad_options_are_refused(options, says):
    refused(lambda: bk.tally(CUBE[0], **options), *says)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"question": "nosuch"}, "'nosuch'"),
        ({"questions": "question"}, "'questions'"),
        ({"question": "outcome", "outcome": "outcome"}, "outcome"),
        ({"system": None}, "None"),
        ({"trial": pd.NA}, "<NA>"),
        ({"trial": np.array(["trial", "outcome"])}, "trial"),
        ("question", "columns"),
        (["question"], "columns"),
    ],
)
def test_bad_columns_are_refused(columns, says, tmp_path):
    refused(lambda: bk.tally(FRAME, columns=columns), says)
    path = written(tmp_path, ".csv", FRAME.to_csv(index=False))
    refused(lambda: bk.load(path, columns=columns), says)


@pytest.mark.parametrize("form", ["outcomes", "dataset", "counts"])
def test_options_are_never_ignored(form):
    outcomes = bk.tally(CUBE)
    data = {"outcomes": outcomes, "dataset": outcomes.dataset, "counts": (CUBE.sum(-1), 3)}[form]
    relabelled = only_outcome_errors(lambda: bk.tally(data, questions=["x", "y"]))
    if relabelled is not None:
        assert relabelled.dataset["question"].values.tolist() == ["x", "y"]
    refused(lambda: bk.tally(data, scores={0: 1, 1: 0}), "scores")
