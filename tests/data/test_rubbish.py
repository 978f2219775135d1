"""Whatever the input is, there are counts or an OutcomeError."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bayesatk as bk
from tests.data.intake import (
    FUZZ,
    only_outcome_errors,
    written,
)

ANYTHING = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    *(st.binary(max_size=2), st.complex_numbers(), st.decimals(), st.timedeltas()),
    st.sampled_from([pd.NA, pd.NaT, np.float32("nan"), np.int8(1), np.array([0, 1]), {}, set()]),
    st.sampled_from([np.array(1), np.ma.masked, np.timedelta64(1, "s"), np.void(b"1"), float]),
)

NESTED = st.recursive(
    st.sampled_from([0, 1, 0.0, True, None]) | ANYTHING,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.none() | st.integers(0, 1), inner, max_size=2)
    ),
    max_leaves=10,
)


@FUZZ
@given(NESTED)
def test_nested_rubbish_raises_only_outcome_error(value):
    only_outcome_errors(lambda: bk.tally(value, missing="ignore"))


@FUZZ
@given(hnp.arrays(hnp.scalar_dtypes() | hnp.array_dtypes(max_size=2), hnp.array_shapes(max_dims=3)))
def test_arrays_of_any_type_raise_only_outcome_error(values):
    only_outcome_errors(lambda: bk.tally(values, missing="ignore"))


@FUZZ
@given(NESTED, NESTED)
def test_rubbish_counts_raise_only_outcome_error(successes, trials):
    only_outcome_errors(lambda: bk.tally(successes, trials=trials))


@FUZZ
@given(st.lists(st.tuples(ANYTHING, ANYTHING, st.sampled_from([0, 1]) | ANYTHING), max_size=4))
def test_tables_of_rubbish_raise_only_outcome_error(rows):
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    frame = pd.DataFrame(
        {
            name: pd.Series(list(column), dtype=object)
            for name, column in zip(["question", "trial", "outcome"], columns, strict=True)
        }
    )
    only_outcome_errors(lambda: bk.tally(frame, missing="ignore"))


@pytest.mark.filterwarnings("ignore::bayesatk.OutcomeWarning")  # one prompt of several ids
@FUZZ
@given(st.lists(st.tuples(st.integers(0, 1) | NESTED, NESTED, st.integers(0, 1)), max_size=4))
def test_rubbish_as_what_was_asked_raises_only_outcome_error(rows):
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    frame = pd.DataFrame(
        {
            name: pd.Series(list(column), dtype=object)
            for name, column in zip(["id", "prompt", "outcome"], columns, strict=True)
        }
    )
    only_outcome_errors(lambda: bk.tally(frame, missing="ignore"))
    only_outcome_errors(lambda: bk.tally(frame, columns={"question": "prompt"}))


@FUZZ
@given(
    st.binary(max_size=60),
    st.sampled_from([".eval", ".csv", ".tsv", ".json", ".jsonl", ".parquet"]),
)
def test_files_of_rubbish_raise_only_outcome_error(tmp_path, content, suffix):
    for head in (b"", b"question,outcome\n", b'{"question": "x", "outcome": 1}\n'):
        path = written(tmp_path, suffix, head + content)
        only_outcome_errors(lambda path=path: bk.load(path, missing="ignore"))


@FUZZ
@given(st.text(alphabet='ab01,\n"\t é', max_size=40))
def test_csv_is_read_as_the_csv_module_reads_it_or_refused(tmp_path, body):
    text = "question,outcome\n" + body
    path = written(tmp_path, ".csv", text)
    data = only_outcome_errors(lambda: bk.load(path, missing="ignore"))
    if data is not None:
        rows = [
            row for row in csv.reader(io.StringIO(text, newline="")) if any(map(str.strip, row))
        ]
        assert {len(row) for row in rows} == {2}
        assert int(data.trials.sum() + data.dataset["missing"].sum()) == len(rows) - 1
        assert {*data.dataset["question"].values.tolist()} == {row[0] for row in rows[1:]}


JSON_VALUE = st.recursive(
    st.sampled_from([0, 1, None, True]) | st.text(max_size=2) | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner),
    max_leaves=3,
)


@FUZZ
@given(
    st.lists(st.fixed_dictionaries({"question": JSON_VALUE, "outcome": JSON_VALUE}), max_size=4),
    st.booleans(),
)
def test_json_of_rubbish_loses_nothing(tmp_path, records, lines):
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    path = written(tmp_path, ".jsonl" if lines else ".json", text)
    data = only_outcome_errors(lambda: bk.load(path, missing="ignore"))
    if data is not None:
        assert data.trials.sum() + data.dataset["missing"].sum() == sum(
            len(record["outcome"]) if isinstance(record["outcome"], list) else 1
            for record in records
        )
