"""Every accepted form gives the same counts, and missing outcomes mean what was said."""

import decimal
import random
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bayesatk as bk
from bayesatk.data.validation import as_coordinate
from tests.data.intake import (
    ARRAY,
    COUNTS,
    CUBE,
    FRAME,
    FUZZ,
    KINDS,
    LABELS,
    QUESTIONS,
    RECORDS,
    SYSTEMS,
    as_kind,
    counts,
    only_outcome_errors,
    refused,
    written,
)

BY_SYSTEM = dict(zip(SYSTEMS, CUBE, strict=True))
ARRAYS = {
    "array": CUBE,
    "bool": CUBE.astype(bool),
    "uint8": CUBE.astype("u1"),
    "float32": CUBE.astype("f4"),
    "object": CUBE.astype(object),
    "fortran": np.asfortranarray(CUBE),
    "list": CUBE.tolist(),
    "list of arrays": list(CUBE),
    "numpy scalars": [[list(row) for row in table] for table in CUBE],
    "counts and trials": (CUBE.sum(-1), [[3, 3], [3, 3]]),
    "xarray without labels": ARRAY.drop_vars(["system", "question"]),
    "mapping": BY_SYSTEM,
    "mapping of rows": {"a": CUBE[0].tolist(), "b": tuple(map(tuple, CUBE[1]))},
}
COUNTED = {
    "array": (CUBE.sum(-1), 3, LABELS),
    "by system": (
        {name: marks.sum(-1) for name, marks in BY_SYSTEM.items()},
        {name: 3 for name in SYSTEMS[::-1]}, {"questions": QUESTIONS},
    ),
    "labelled, by system": (
        {name: pd.Series(marks.sum(-1), QUESTIONS) for name, marks in BY_SYSTEM.items()},
        {name: xr.DataArray([3, 3], {"question": QUESTIONS}, "question") for name in SYSTEMS}, {},
    ),
}  # fmt: skip
TABLES = {
    "nullable": FRAME.convert_dtypes(),
    "text": FRAME.astype({"system": "string", "question": "string"}),
    "arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "category": FRAME.astype("category"),
    "bool": FRAME.astype({"outcome": bool}),
    "index": FRAME.set_index(pd.Index([7] * len(FRAME))),
    "decimal": FRAME.assign(outcome=FRAME["outcome"].map(decimal.Decimal)),
    "wide integers": pl.DataFrame(RECORDS).cast({"outcome": pl.Int128}),
    "pyarrow": pa.Table.from_pylist(RECORDS),
    "usual names": FRAME.set_axis(["Model", "task_id", "epoch", "correct"], axis=1),
    "xarray": ARRAY,
    "xarray in other order": ARRAY.transpose("trial", "question", "system"),
    "counts": bk.tally(FRAME).dataset,
    "counts in other order": bk.tally(FRAME).dataset.transpose(...),
    "outcomes": bk.tally(FRAME),
}
FILES = {
    "bom and crlf": FRAME.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig"),
    "true and false": FRAME.astype({"outcome": bool}).to_csv(index=False),
    "with index": FRAME.to_csv(),
}


def is_the_cube(data):
    assert counts(data) == COUNTS
    assert not data.dataset["missing"].values.any()
    assert data.dataset["score"].values.tolist() == [0, 1]
    assert "2 systems x 2 questions, 12 trials" in data.card()


@pytest.mark.parametrize("form", ARRAYS)
def test_every_array_gives_the_same_counts(form):
    labels = {"questions": QUESTIONS} if "mapping" in form else LABELS
    is_the_cube(bk.tally(ARRAYS[form], **labels))


@pytest.mark.parametrize("form", COUNTED)
def test_every_form_of_counts_gives_the_same_counts(form):
    successes, trials, labels = COUNTED[form]
    is_the_cube(bk.tally(successes, trials=trials, **labels))


@pytest.mark.parametrize("form", TABLES)
def test_every_table_gives_the_same_counts(form):
    is_the_cube(bk.tally(TABLES[form]))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_counts(kind, tmp_path):
    source = as_kind(FRAME, kind, tmp_path)
    is_the_cube(bk.load(source))
    if kind == "csv":
        is_the_cube(bk.load(str(source)))


@pytest.mark.parametrize("form", FILES)
def test_every_csv_gives_the_same_counts(form, tmp_path):
    is_the_cube(bk.load(written(tmp_path, ".csv", FILES[form])))


def test_ragged_rows_agree_with_the_table_and_the_counts():
    rows = [[0, 1, 1], [1], [0, 0]]
    records = [(question, mark) for question, row in enumerate(rows) for mark in row]
    ragged = np.empty(3, object)
    ragged[:] = rows
    expected = counts(bk.tally(([2, 1, 0], [3, 1, 2])))
    for same in (
        rows,
        ragged,
        [np.array(row) for row in rows],
        [np.array(row, "f4") for row in rows],
        pd.DataFrame(records, columns=["question", "outcome"]),
    ):
        assert counts(bk.tally(same)) == expected
    refused(lambda: bk.tally([np.array([0, 1]), np.array([1, 7])]), "outcome 7", "question 1")


def test_inputs_are_left_as_they_were():
    frozen, frame = np.array([[0.0, np.nan]]), FRAME.astype({"outcome": object})
    frame.loc[0, "outcome"] = None
    before, dataset = frame.copy(deep=True), bk.tally(FRAME).dataset
    frozen.setflags(write=False)
    bk.tally(frozen, missing="wrong")
    bk.tally(frame, missing="wrong")
    bk.tally(dataset).dataset["count"][:] = 0
    pd.testing.assert_frame_equal(frame, before)
    assert dataset.identical(bk.tally(FRAME).dataset)


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ([2**64 - 1, 2**64 - 2], [2**64 - 1, 2**64 - 2]),
        ([2**53, 2**53 + 1], [2**53, 2**53 + 1]),
        (["007", "7"], ["007", "7"]),
        (["é", "e\u0301"], ["é", "e\u0301"]),
        (["NA", "null"], ["NA", "null"]),
    ],
)
def test_labels_are_kept_as_they_are(labels, kept, tmp_path):
    frame = pl.DataFrame({"question": labels, "outcome": [0, 1]}, strict=False)
    assert bk.tally(frame).dataset["question"].values.tolist() == kept
    loaded = bk.load(written(tmp_path, ".csv", frame.write_csv()))
    assert loaded.dataset["question"].values.tolist() == [str(label) for label in labels]


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from([0, 1, None])),
    min_size=1,
    max_size=20,
)

NAMES = ["system", "question", "outcome"]


@FUZZ
@given(ROWS, st.randoms(use_true_random=False), st.sampled_from(["ignore", "wrong"]))
@example([("a", "x", 1), ("b", "y", 0)], random.Random(0), "ignore")
def test_order_of_rows_changes_no_count_and_totals_are_kept(rows, shuffle, policy):
    assume(any(value is not None for _, _, value in rows))
    tally = Counter()
    for system, question, value in rows:
        tally[system, question, 0 if value is None and policy == "wrong" else value] += 1
    shuffled = shuffle.sample(rows, len(rows))
    run = {system for system, _, _ in rows}, {question for _, question, _ in rows}
    if policy == "wrong" and len({row[:2] for row in rows}) < len(run[0]) * len(run[1]):
        return  # what a question that was never run means has its own test
    for table in (rows, shuffled):
        data = bk.tally(pl.DataFrame(table, schema=NAMES, orient="row"), missing=policy)
        for (system, question), (wrong, right) in counts(data).items():
            assert wrong == tally[system, question, 0]
            assert right == tally[system, question, 1]
        gaps = sum(value is None for _, _, value in rows)
        assert data.dataset["missing"].sum() == gaps
        assert data.trials.sum() == len(rows) - gaps * (policy == "ignore")


@FUZZ
@given(ROWS, st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet"]))
def test_files_hold_what_the_table_holds(tmp_path, rows, kind):
    assume(any(value is not None for _, _, value in rows))
    frame = pl.DataFrame(
        rows, schema=dict.fromkeys(NAMES[:2], pl.String) | {"outcome": pl.Int8}, orient="row"
    )
    path = tmp_path / f"runs.{kind}"
    if kind in ("csv", "tsv"):
        frame.write_csv(path, separator="," if kind == "csv" else "\t")
    elif kind == "parquet":
        frame.write_parquet(path)
    else:
        (frame.write_ndjson if kind == "jsonl" else frame.write_json)(path)
    loaded, table = bk.load(path, missing="ignore"), bk.tally(frame, missing="ignore")
    assert counts(loaded) == counts(table)
    assert loaded.dataset["missing"].identical(table.dataset["missing"])


@FUZZ
@given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=3), elements=st.integers(0, 1)))
def test_counts_agree_with_sums(values):
    data = bk.tally(values)
    assert data.successes.values.tolist() == np.atleast_2d(values.sum(-1)).tolist()
    assert (data.trials == values.shape[-1]).all()
    assert counts(bk.tally(values.sum(-1), trials=values.shape[-1])) == counts(data)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, np.float32("nan")])
def test_missing_policies(gap):
    rows = [[1, gap, gap], [0, 1, 1]]
    refused(
        lambda: bk.tally(rows),
        "question 0",
        "2 missing",
        "missing='ignore'",
        "missing='wrong'",
        "missing='right'",
        "evaluate twice",
    )
    ignored, wrong, right = (
        bk.tally(rows, missing=policy) for policy in ("ignore", "wrong", "right")
    )
    assert list(counts(right).values()) == [(0, 3), (1, 2)]
    assert list(counts(ignored).values()) == [(0, 1), (1, 2)]
    assert list(counts(wrong).values()) == [(2, 1), (1, 2)]
    for policy, data in {"ignore": ignored, "wrong": wrong, "right": right}.items():
        assert data.dataset["missing"].values.tolist() == [[2, 0]]
        assert data.dataset.attrs["missing_policy"] == policy
        assert f"missing='{policy}'" in data.card()
    assert "at worst 0.5000, at best 0.8333" in ignored.card()


def test_wrong_counts_the_lowest_score_wherever_it_stands():
    data = bk.tally([["C", None, "P"]], scores={"C": 1, "I": -1, "P": 0.5}, missing="wrong")
    assert data.dataset["count"].values.tolist() == [[[1, 1, 1]]]


def test_a_system_without_outcomes_has_no_mean_score():
    card = bk.tally({"a": [[1, 0]], "b": [[None, None]]}, missing="ignore").card()
    (line,) = [line for line in card.splitlines() if line.strip().startswith("b ")]
    assert "0.0000" not in line


def test_labelled_counts_keep_their_labels_or_are_refused():
    right = pd.Series([3, 1], index=["x", "y"]), pd.Series([4, 5], index=["y", "x"])
    swapped = xr.DataArray(
        [[3, 1, 1], [2, 2, 2]], dims=("question", "system"), coords={"system": list("abc")}
    )
    for successes, trials, expected in ((*right, {"x": 5, "y": 4}), (swapped, 5, None)):
        data = only_outcome_errors(lambda s=successes, t=trials: bk.tally(s, trials=t))
        if data is not None and expected:
            assert data.trials.to_series().droplevel("system").to_dict() == expected
        elif data is not None:
            assert data.systems == ["a", "b", "c"]


def test_a_pair_of_rows_is_said_to_be_successes_and_trials():
    assert "trials" in "".join(bk.tally(([0, 1, 1], [1, 1, 1])).notes)


def never(_values):
    raise AssertionError("a column that does not matter was computed")


def test_of_a_lazy_table_only_what_matters_is_computed():
    frame = pl.LazyFrame(RECORDS).with_columns(z=pl.col("outcome").map_batches(never, pl.Int64))
    assert counts(bk.tally(frame)) == COUNTS
    refused(lambda: bk.tally(frame.drop("question")), "question", "columns=")


def test_large_arrays_are_counted_block_by_block():
    rng = np.random.default_rng(1)
    cube = rng.integers(0, 3, (2, 700, 301)).astype(float)
    cube[1, 650, 300] = np.nan
    scores = {0: 0.0, 1: 0.5, 2: 1.0}
    expected = np.stack([(cube == label).sum(-1) for label in scores], axis=-1)
    for same in (cube, np.asfortranarray(cube), cube.astype("f4"), cube.astype(object)):
        dataset = bk.tally(same, scores=scores, missing="ignore").dataset
        assert (dataset["count"].values == expected).all()
        assert np.argwhere(dataset["missing"].values).tolist() == [[1, 650]]
    cube[1, 699, 7] = 3.0
    refused(lambda: bk.tally(cube, scores=scores), "outcome 3.0 at system 1, question 699, trial 7")


def test_column_names_are_told_and_need_not_be_text():
    for names in (range(4), "smtu"):
        roles = dict(zip(["system", "question", "trial", "outcome"], names, strict=True))
        assert counts(bk.tally(FRAME.set_axis([*names], axis=1), columns=roles)) == COUNTS
    assert counts(bk.tally(FRAME.assign(**{"z": 1}).rename(columns={"z": 5}))) == COUNTS


def test_the_label_of_a_selected_system_is_kept():
    assert bk.tally(ARRAY.sel(system="b")).systems == ["b"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([np.timedelta64(1, "s"), np.timedelta64(2, "s")], "U"),
        ([np.int64(3), 4], "i"),
        ([2**63, 5], "u"),
        ([2**64, 5], "U"),
        ([-1, 2**63], "U"),
        ([10**30, 1], "U"),
    ],
)
def test_labels_are_integers_while_they_fit(labels, expected) -> None:
    index = as_coordinate(labels, "questions")
    assert index.to_numpy(str if expected == "U" else None).dtype.kind == expected
    assert len(index) == 2
