"""What tally and load believe, what they refuse, and how they say so."""

import csv
import decimal
import io
import json
import random
import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bayesatk as bk
from bayesatk.data.validation import as_coordinate

CUBE = np.array([[[0, 1, 1], [1, 1, 0]], [[0, 0, 0], [1, 0, 1]]])
SYSTEMS, QUESTIONS = ["a", "b"], ["x", "y"]
LABELS = {"systems": SYSTEMS, "questions": QUESTIONS}
COUNTS = {("a", "x"): (1, 2), ("a", "y"): (1, 2), ("b", "x"): (3, 0), ("b", "y"): (1, 2)}
RECORDS = [
    {"system": s, "question": q, "trial": t, "outcome": int(CUBE[i, j, t])}
    for i, s in enumerate(SYSTEMS)
    for j, q in enumerate(QUESTIONS)
    for t in range(3)
]
FRAME = pd.DataFrame(RECORDS)
ARRAY = xr.DataArray(
    CUBE, dims=("system", "question", "trial"), coords={"system": SYSTEMS, "question": QUESTIONS}
)
REMEDY = re.compile(
    r"(?:^|[.;:(] ?)(Map|Name|Remove|Rename|Fill|Give|Pass|Use|Save|Convert|Export|Number|Say|Check"
    r"|Drop|Write|Replace|Label|Quote|Split|Choose|Leave|Add|Reset|Is the order|To read a file)\b"
    r"|go in with|is \[\[|is \{|is null|leaves them out|pass a long table|is None or NaN"
    r"|must (be one|be finite|be an? |be distinct|match|label|map|hold|have|be 'error')"
)
FUZZ = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def counts(data):
    """Counts of (wrong, right) by label, from the canonical dataset."""
    table = data.dataset["count"].transpose("system", "question", "category")
    assert table.dtype == np.int64
    labels = [(s, q) for s in data.systems for q in data.dataset["question"].values.tolist()]
    return dict(
        zip(labels, map(tuple, table.values.reshape(len(labels), -1).tolist()), strict=True)
    )


def written(folder, suffix, content):
    path = folder / f"runs{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(call, *says):
    """Assert that the call raises OutcomeError with a remedy, and saying the given things."""
    with pytest.raises(bk.OutcomeError) as error:
        call()
    message = str(error.value)
    for words in says:
        assert re.search(words, message), f"{words!r} is not in: {message}"
    assert REMEDY.search(message), f"no remedy in: {message}"


# ------------------------------------------------------------------ accepted forms

FORMS = {
    "array": lambda _: bk.tally(CUBE, **LABELS),
    "bool": lambda _: bk.tally(CUBE.astype(bool), **LABELS),
    "uint8": lambda _: bk.tally(CUBE.astype("u1"), **LABELS),
    "float32": lambda _: bk.tally(CUBE.astype("f4"), **LABELS),
    "object": lambda _: bk.tally(CUBE.astype(object), **LABELS),
    "fortran": lambda _: bk.tally(np.asfortranarray(CUBE), **LABELS),
    "list": lambda _: bk.tally(CUBE.tolist(), **LABELS),
    "list of arrays": lambda _: bk.tally(list(CUBE), **LABELS),
    "numpy scalars": lambda _: bk.tally([[list(r) for r in s] for s in CUBE], **LABELS),
    "mapping": lambda _: bk.tally(dict(zip(SYSTEMS, CUBE, strict=True)), questions=QUESTIONS),
    "mapping of rows": lambda _: bk.tally(
        {"a": CUBE[0].tolist(), "b": tuple(map(tuple, CUBE[1]))}, questions=QUESTIONS
    ),
    "trials=": lambda _: bk.tally(CUBE.sum(-1), trials=3, **LABELS),
    "tuple": lambda _: bk.tally((CUBE.sum(-1), [[3, 3], [3, 3]]), **LABELS),
    "pandas": lambda _: bk.tally(FRAME),
    "pandas nullable": lambda _: bk.tally(FRAME.convert_dtypes()),
    "pandas text": lambda _: bk.tally(FRAME.astype({"system": "string", "question": "string"})),
    "pandas arrow": lambda _: bk.tally(FRAME.convert_dtypes(dtype_backend="pyarrow")),
    "pandas category": lambda _: bk.tally(FRAME.astype("category")),
    "pandas bool": lambda _: bk.tally(FRAME.astype({"outcome": bool})),
    "pandas index": lambda _: bk.tally(FRAME.set_index(pd.Index([7] * len(FRAME)))),
    "decimal": lambda _: bk.tally(FRAME.assign(outcome=FRAME["outcome"].map(decimal.Decimal))),
    "polars": lambda _: bk.tally(pl.DataFrame(RECORDS)),
    "polars lazy": lambda _: bk.tally(pl.LazyFrame(RECORDS)),
    "pyarrow": lambda _: bk.tally(pa.Table.from_pylist(RECORDS)),
    "usual names": lambda _: bk.tally(
        FRAME.set_axis(["Model", "task_id", "epoch", "correct"], axis=1)
    ),
    "columns": lambda _: bk.tally(
        FRAME.set_axis(list("smtu"), axis=1),
        columns={"system": "s", "question": "m", "trial": "t", "outcome": "u"},
    ),
    "csv": lambda d: bk.load(written(d, ".csv", FRAME.to_csv(index=False))),
    "csv str path": lambda d: bk.load(str(written(d, ".csv", FRAME.to_csv(index=False)))),
    "csv bom crlf": lambda d: bk.load(
        written(d, ".csv", FRAME.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig"))
    ),
    "csv true/false": lambda d: bk.load(
        written(d, ".csv", FRAME.astype({"outcome": bool}).to_csv(index=False))
    ),
    "csv with index": lambda d: bk.load(written(d, ".csv", FRAME.to_csv())),
    "tsv": lambda d: bk.load(written(d, ".tsv", FRAME.to_csv(index=False, sep="\t"))),
    "jsonl": lambda d: bk.load(written(d, ".jsonl", "\n".join(map(json.dumps, RECORDS)))),
    "json": lambda d: bk.load(written(d, ".json", json.dumps(RECORDS))),
    "parquet": lambda d: bk.load(written(d, ".parquet", FRAME.to_parquet(index=False))),
    "parquet arrow": lambda d: bk.load(
        written(d, ".parquet", FRAME.convert_dtypes(dtype_backend="pyarrow").to_parquet())
    ),
    "xarray": lambda _: bk.tally(ARRAY),
    "xarray dims": lambda _: bk.tally(ARRAY.transpose("trial", "question", "system")),
    "xarray no coords": lambda _: bk.tally(ARRAY.drop_vars(["system", "question"]), **LABELS),
    "counts": lambda _: bk.tally(bk.tally(FRAME).dataset),
    "counts dims": lambda _: bk.tally(bk.tally(FRAME).dataset.transpose(...)),
    "outcomes": lambda _: bk.tally(bk.tally(FRAME)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_gives_the_same_counts(form, tmp_path):
    data = form(tmp_path)
    assert counts(data) == COUNTS
    assert not data.dataset["missing"].values.any()
    assert data.dataset["score"].values.tolist() == [0, 1]
    assert "2 systems x 2 questions, 12 trials" in data.card()


def test_ragged_rows_agree_with_the_table_and_the_counts():
    rows = [[0, 1, 1], [1], [0, 0]]
    records = [(q, value) for q, row in enumerate(rows) for value in row]
    table = bk.tally(pd.DataFrame(records, columns=["question", "outcome"]))
    assert counts(bk.tally(rows)) == counts(bk.tally([np.array(row) for row in rows]))
    assert counts(bk.tally(rows)) == counts(table) == counts(bk.tally(([2, 1, 0], [3, 1, 2])))


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


# ------------------------------------------------------------------ laws

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
    for some in (rows, shuffled):
        data = bk.tally(pl.DataFrame(some, schema=NAMES, orient="row"), missing=policy)
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
    frame = pl.DataFrame(rows, schema=dict.fromkeys(NAMES[:2], pl.String) | {"outcome": pl.Int8},
                         orient="row")  # fmt: skip
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


def only_outcome_errors(call):
    """Call, and let every exception but OutcomeError (a warning too) fail the test."""
    try:
        data = call()
    except bk.OutcomeError:
        return None
    assert data.card()
    return data


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


@FUZZ
@given(st.binary(max_size=60), st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".parquet"]))
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
        assert data.trials.sum() + data.dataset["missing"].sum() == len(records)


# ------------------------------------------------------------------ missing outcomes


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, np.float32("nan")])
def test_missing_policies(gap):
    rows = [[1, gap, gap], [0, 1, 1]]
    refused(
        lambda: bk.tally(rows), "question 0", "2 missing", "missing='ignore'", "missing='wrong'"
    )
    ignored, wrong = bk.tally(rows, missing="ignore"), bk.tally(rows, missing="wrong")
    assert list(counts(ignored).values()) == [(0, 1), (1, 2)]
    assert list(counts(wrong).values()) == [(2, 1), (1, 2)]
    for policy, data in {"ignore": ignored, "wrong": wrong}.items():
        assert data.dataset["missing"].values.tolist() == [[2, 0]]
        assert data.dataset.attrs["missing_policy"] == policy
        assert f"missing='{policy}'" in data.card()
    assert "at worst 0.5000, at best 0.8333" in ignored.card()


def test_wrong_counts_the_lowest_score_wherever_it_stands():
    data = bk.tally([["C", None, "P"]], scores={"C": 1, "I": -1, "P": 0.5}, missing="wrong")
    assert data.dataset["count"].values.tolist() == [[[1, 1, 1]]]


NEVER_RUN = pd.DataFrame({"system": list("aab"), "question": list("xyx"), "outcome": [0, 0, 1]})


def test_a_question_never_run_is_refused_or_left_out_as_told():
    refused(lambda: bk.tally(NEVER_RUN), "system 'b'", "question 'y'", "missing='ignore'")
    data = bk.tally(NEVER_RUN, missing="ignore")
    assert counts(data)["b", "y"] == (0, 0)
    assert "1 (system, question) cells never run" in data.card()


def test_a_question_never_run_is_no_advantage_under_wrong():
    try:
        data = bk.tally(NEVER_RUN, missing="wrong")
    except bk.OutcomeError:
        return  # how many trials to count as wrong is not known
    wrong, right = counts(data)["b", "y"]
    assert (wrong > 0, right) == (True, 0)


def test_a_system_without_outcomes_has_no_mean_score():
    card = bk.tally({"a": [[1, 0]], "b": [[None, None]]}, missing="ignore").card()
    (line,) = [line for line in card.splitlines() if line.strip().startswith("b ")]
    assert "0.0000" not in line


# ------------------------------------------------------------------ bad outcomes and shapes

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
}


@pytest.mark.parametrize(("data", "trials", "says"), BAD_COUNTS.values(), ids=BAD_COUNTS.keys())
def test_bad_counts_are_refused(data, trials, says):
    refused(lambda: bk.tally(data, trials=trials), *says)


def test_the_remedy_for_questions_without_trials_works_for_counts():
    refused(lambda: bk.tally([0, 1], trials=[0, 2]), "question 0", "missing='ignore'")
    assert list(counts(bk.tally([0, 1], trials=[0, 2], missing="ignore")).values())[1] == (1, 1)


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


def canonical(**parts):
    sizes = {"count": ("system", "question", "category"), "missing": ("system", "question")}
    given = {"count": [[[1, 2], [3, 0]]], "score": ("category", [0.0, 1.0])} | parts
    variables = {
        name: (sizes[name], np.array(value)) if name in sizes else value
        for name, value in given.items()
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


# ------------------------------------------------------------------ bad tables


def column(name, *values):
    """Return a good table, (x, x, y, y) by trials (1, 2, 1, 2), with one column replaced."""
    good = {"question": list("xxyy"), "trial": [1, 2, 1, 2], "outcome": [0, 1, 1, 1]}
    return pd.DataFrame(good | {name: pd.Series(values, dtype=object)})


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
    "list id": (column("question", ["x"], ["x"], ["y"], ["y"]), ["'question'", "row 0"]),
    "ragged list id": (column("question", "x", ["x", 1], "y", "y"), ["'question'", "row 1"]),
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


def never(_values):
    raise AssertionError("a column that does not matter was computed")


def test_of_a_lazy_table_only_what_matters_is_computed():
    frame = pl.LazyFrame(RECORDS).with_columns(z=pl.col("outcome").map_batches(never, pl.Int64))
    assert counts(bk.tally(frame)) == COUNTS
    refused(lambda: bk.tally(frame.drop("question")), "question", "columns=")


def test_rows_of_unequal_length_may_be_arrays():
    rows = [[0, 1, 1], [1], [0, 0]]
    expected = counts(bk.tally(rows))
    ragged = np.empty(3, object)
    ragged[:] = rows
    for same in (ragged, [np.array(row) for row in rows], [np.array(row, "f4") for row in rows]):
        assert counts(bk.tally(same)) == expected
    refused(lambda: bk.tally([np.array([0, 1]), np.array([1, 7])]), "outcome 7", "question 1")


def test_large_arrays_are_counted_block_by_block():
    rng = np.random.default_rng(1)
    cube = rng.integers(0, 3, (2, 700, 301)).astype(float)
    cube[1, 650, 300] = np.nan
    scores = {0: 0.0, 1: 0.5, 2: 1.0}
    expected = np.stack([(cube == label).sum(-1) for label in scores], axis=-1)
    for same in (cube, np.asfortranarray(cube), cube.astype("f4"), cube.astype(object)):
        found = bk.tally(same, scores=scores, missing="ignore").dataset
        assert (found["count"].values == expected).all()
        assert np.argwhere(found["missing"].values).tolist() == [[1, 650]]
    cube[1, 699, 7] = 3.0
    refused(lambda: bk.tally(cube, scores=scores), "outcome 3.0 at system 1, question 699, trial 7")


def test_column_names_need_not_be_text():
    frame = FRAME.set_axis([0, 1, 2, 3], axis=1)
    names = {"system": 0, "question": 1, "trial": 2, "outcome": 3}
    assert counts(bk.tally(frame, columns=names)) == COUNTS
    assert counts(bk.tally(FRAME.assign(**{"z": 1}).rename(columns={"z": 5}))) == COUNTS


def test_wide_integers_are_read():
    frame = pl.DataFrame(RECORDS).cast({"outcome": pl.Int128})
    assert counts(bk.tally(frame)) == COUNTS


# ------------------------------------------------------------------ bad options

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
    known = bk.tally(CUBE)
    data = {"outcomes": known, "dataset": known.dataset, "counts": (CUBE.sum(-1), 3)}[form]
    relabelled = only_outcome_errors(lambda: bk.tally(data, questions=["x", "y"]))
    if relabelled is not None:
        assert relabelled.dataset["question"].values.tolist() == ["x", "y"]
    refused(lambda: bk.tally(data, scores={0: 1, 1: 0}), "scores")


def test_the_label_of_a_selected_system_is_kept():
    assert bk.tally(ARRAY.sel(system="b")).systems == ["b"]


# ------------------------------------------------------------------ bad files

GOOD = "question,trial,outcome\nx,1,1\nx,2,0\n"
LINE = '{"question": "x", "trial": 1, "outcome": 1}\n'
BAD_FILES = {
    "value": (".csv", GOOD + "y,1,maybe\n", ["'maybe'", "row 4", "'outcome'", r"scores=\{"]),
    "value after blank": (".csv", GOOD + "\n\ny,1,7\n", ["(row|line) 6"]),
    "empty cell": (".csv", GOOD + "y,1,\n", ["question 'y'", "missing='ignore'"]),
    "no id": (".csv", GOOD + ",1,1\n", ["row 4", "'question'"]),
    "blank id": (".csv", GOOD + "  ,1,1\n", ["row 4", "'question'"]),
    "repeated": (".csv", GOOD + "x,1,1\n", ["2 and (row )?4 ", "question 'x', trial '1'"]),
    "nothing": (".csv", "", []),
    "header only": (".csv", "question,trial,outcome\n", ["rows"]),
    "no header": (".csv", "x,1,1\nx,2,0\n", ["question", "columns="]),
    "semicolons": (".csv", GOOD.replace(",", ";"), ["'question;trial;outcome'"]),
    "same header": (".csv", "question,outcome,outcome\nx,1,0\n", ["outcome"]),
    "open quote": (".csv", GOOD + '"y,1,1\n', ["quot|row|string"]),
    "latin-1": (".csv", "question,outcome\né,1\n".encode("latin-1"), ["UTF-8"]),
    "utf-16": (".csv", GOOD.encode("utf-16"), ["UTF-8"]),
    "jsonl value": (".jsonl", LINE + LINE.replace("1}", "7}").replace("1,", "2,"), ["line 2"]),
    "jsonl text": (".jsonl", LINE.replace("1}", '"1"}'), ["outcome '1'", r"scores=\{"]),
    "jsonl cut": (".jsonl", LINE + LINE[:-9], ["line 2", "JSON"]),
    "jsonl null id": (".jsonl", LINE + LINE.replace('"x"', "null"), ["'question'", "line 2"]),
    "jsonl list id": (".jsonl", LINE + LINE.replace('"x"', '["x"]'), ["'question'", "line 2"]),
    "jsonl bom": (".jsonl", LINE[:5].encode("utf-8-sig") + b"\n", ["line 1"]),
    "jsonl latin-1": (".jsonl", LINE.replace("x", "é").encode("latin-1"), ["UTF-8"]),
    "jsonl no field": (".jsonl", LINE + '{"question": "x", "outcome": 1}', ["line 2", "'trial'"]),
    "jsonl array": (".jsonl", "[0, 1]\n", ["line 1", "object"]),
    "jsonl nothing": (".jsonl", "", []),
    "jsonl digits": (".jsonl", LINE.replace("1}", "1" * 5000 + "}"), ["line 1"]),
    "jsonl deep": (".jsonl", "[" * 100_000, ["line 1"]),
    "json cut": (".json", f"[{LINE}"[:-3], ["JSON"]),
    "json object": (".json", "{}", ["array of records"]),
    "json nothing": (".json", "[]", []),
    "json latin-1": (".json", f"[{LINE}]".replace("x", "é").encode("latin-1"), ["UTF-8|utf-8"]),
    "parquet text": (".parquet", GOOD, ["Parquet"]),
    "parquet empty": (".parquet", "", ["Parquet"]),
    "suffix": (".txt", GOOD, [r"'\.txt'", r"\.csv"]),
}


@pytest.mark.parametrize(("suffix", "content", "says"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_refused(suffix, content, says, tmp_path):
    path = written(tmp_path, suffix, content)
    refused(lambda: bk.load(path), rf"^runs\{suffix}", *says)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet"])
def test_a_folder_is_refused(suffix, tmp_path):
    folder = tmp_path / f"runs{suffix}"
    folder.mkdir()
    refused(lambda: bk.load(folder), f"runs{suffix}")


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nosuch\.csv"):
        bk.load(tmp_path / "nosuch.csv")


def test_half_a_parquet_file_is_refused(tmp_path):
    path = written(tmp_path, ".parquet", FRAME.to_parquet()[:-20])
    refused(lambda: bk.load(path), "runs.parquet", "Parquet")


LOST = {
    "unquoted comma": (".csv", "question,outcome\nParis, 1,0\ny,1\n", "row 2"),
    "long row": (".csv", GOOD + "y,1,1,0\n", "row 4"),
    "every row long": (".csv", "question,outcome\nx,1,0\ny,1,0\n", "row 2"),
    "cut row": (".csv", GOOD + "y,1", "row 4"),
    "same key": (".jsonl", '{"question": "x", "outcome": 0, "outcome": 1}', "line 1.*'outcome'"),
    "later system": (
        ".jsonl",
        LINE + LINE.replace("{", '{"system": "b", ').replace("1,", "2,"),
        "line 2.*'system'",
    ),
}


@pytest.mark.parametrize(("suffix", "content", "says"), LOST.values(), ids=LOST.keys())
def test_nothing_in_a_file_is_dropped_silently(suffix, content, says, tmp_path):
    path = written(tmp_path, suffix, content)
    refused(lambda: bk.load(path, missing="ignore"), says)


def test_the_index_of_a_parquet_file_is_read(tmp_path):
    path = written(tmp_path, ".parquet", FRAME.set_index("system").to_parquet())
    assert counts(bk.load(path)) == COUNTS


@pytest.mark.parametrize(
    ("cells", "scores"),
    [
        (("0", "1"), {"0": 0, "1": 1}),
        (("no", "inf"), {"no": 0, "inf": 1}),
        (("false", "true"), {"false": 0, "true": 1}),
        (("9007199254740992", "9007199254740993"), {2**53: 0, 2**53 + 1: 1}),
    ],
)
def test_csv_cells_are_matched_as_they_are_written(cells, scores, tmp_path):
    path = written(tmp_path, ".csv", "question,outcome\n" + "".join(f"x,{c}\n" for c in cells))
    assert bk.load(path, scores=scores).dataset["count"].values.tolist() == [[[1, 1]]]


@pytest.mark.parametrize("cell", ["0.99999999999999999999", "1e-400", "１", "1_0"])  # noqa: RUF001
def test_csv_cells_that_only_round_to_a_category_are_refused(cell, tmp_path):
    path = written(tmp_path, ".csv", f"question,outcome\nx,{cell}\n")
    refused(lambda: bk.load(path), re.escape(cell), "row 2")


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
