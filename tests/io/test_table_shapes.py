"""Tables of other shapes: lists in cells, records within objects, nested fields, wide tables."""

import json

import pandas as pd
import polars as pl
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from tests.io.logs import QUIET, counts, only, refused, written_json

pytestmark = QUIET
LISTS = {"x": [1, 0, 1], "y": [0], "z": [None, 1]}
EXPECTED = {"x": (1, 2, 0), "y": (1, 0, 0), "z": (0, 1, 1)}
LEFT_OUT = {"missing": "ignore"}


def list_files(folder):
    rows = [{"id": name, "accs": marks} for name, marks in LISTS.items()]
    frame = pd.DataFrame(rows)
    frame.to_csv(folder / "python.csv", index=False)  # [None, 1], as Python writes it
    frame.assign(accs=frame["accs"].map(json.dumps)).to_csv(folder / "json.csv", index=False)
    frame.to_parquet(folder / "lists.parquet", index=False)
    written_json(folder / "lists.json", rows)
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return sorted(folder.iterdir())


def test_a_cell_may_hold_the_outcomes_of_all_trials(tmp_path):
    paths = list_files(tmp_path)
    assert len(paths) == 5
    for path in paths:
        assert only(bk.load(path, format=path.suffix[1:], **LEFT_OUT)) == EXPECTED, path.name
    rows = pd.DataFrame({"id": list(LISTS), "outcome": list(LISTS.values())})
    for table in (
        rows,
        pl.DataFrame(rows.to_dict("list")),
        pl.DataFrame(rows.to_dict("list")).lazy(),
    ):
        assert only(bk.tally(table, **LEFT_OUT)) == EXPECTED


@given(st.lists(st.lists(st.sampled_from([0, 1, None, True, False]), min_size=1, max_size=5),
                min_size=1, max_size=6))  # fmt: skip
@settings(max_examples=50, deadline=None, derandomize=True)
def test_lists_are_the_rows_they_stand_for(lists):
    """The same counts as of a table with a row for each trial."""
    short = pd.DataFrame({"id": range(len(lists)), "outcome": lists})
    long = pd.DataFrame(
        [{"id": n, "outcome": one} for n, own in enumerate(lists) for one in own], dtype=object
    )
    if any(one is not None for own in lists for one in own):
        assert counts(bk.tally(short, **LEFT_OUT)) == counts(bk.tally(long, **LEFT_OUT))


def test_lists_keep_trials_answers_and_places(tmp_path):
    table = pd.DataFrame({"id": ["x", "x"], "outcome": [[1, 0], [1, 1]],
                          "said": [["4", "5"], ["4", "4"]]})  # fmt: skip
    data = bk.tally(table, columns={"answer": "said"})
    assert only(data) == {"x": (1, 3, 0)}
    assert "answers" in data.card()
    curves = table.assign(run=[1, 2])  # of which one outcome counts, and not each element
    refused(lambda: bk.tally(curves), "a row of one trial must have one outcome", "beside trial 1")
    short = table.assign(said=[["4"], ["4", "4"]])
    refused(lambda: bk.tally(short, columns={"answer": "said"}), "as long as", "row 0")
    refused(lambda: bk.tally(table.assign(outcome=[[1, 0], []])), "must not be empty", "row 1")
    refused(lambda: bk.tally(table.assign(outcome=[[1, 0], [1, "?"]])), "'\\?'", "row 1")
    path = tmp_path / "t.csv"
    path.write_text('id,outcome\nx,"[1, 0]"\ny,"[1, maybe]"\n')
    refused(lambda: bk.load(path), "row 3", "maybe")


@pytest.mark.parametrize("place", ["results", "performances", "instances", "rows", "data"])
def test_records_within_an_object_are_found(tmp_path, place):
    rows = [{"id": name, "score": mark} for name, mark in (("x", 1), ("x", 0), ("y", 1))]
    path = written_json(tmp_path / "t.json", {"model": "m", place: rows, "mean": 0.5})
    assert only(bk.load(path)) == {"x": (1, 1, 0), "y": (0, 1, 0)}
    deep = written_json(tmp_path / "d.json", {"output": {"runs": rows, "note": "n"}})
    refused(lambda: bk.load(deep), "array of records", "records='output.runs'")
    assert only(bk.load(deep, records="output.runs")) == {"x": (1, 1, 0), "y": (0, 1, 0)}
    assert only(bk.load(path, records=place)) == {"x": (1, 1, 0), "y": (0, 1, 0)}
    refused(lambda: bk.load(path, records="elsewhere"), "at elsewhere")
    two = written_json(tmp_path / "two.json", {place: rows, "items": rows})
    refused(lambda: bk.load(two), "in one place", f"records='{place}'")


def test_nested_fields_are_named_by_their_path(tmp_path):
    rows = [{"task": {"id": "x"}, "reward_info": {"reward": mark}} for mark in (1.0, 0.0)]
    told = {"question": "task.id", "outcome": "reward_info.reward"}
    lines = tmp_path / "t.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in (lines, written_json(tmp_path / "t.json", rows)):
        assert only(bk.load(path, columns=told)) == {"x": (1, 1, 0)}
    del rows[1]["reward_info"]
    path = written_json(tmp_path / "u.json", rows)
    refused(lambda: bk.load(path, columns=told), "question 'x' has 1 missing outcomes")
    assert only(bk.load(path, columns=told, missing="wrong")) == {"x": (1, 1, 1)}


NESTED = pyarrow.schema([
    ("task", pyarrow.struct([("id", pyarrow.string()), ("in.a", pyarrow.string()),
                             ("prompt", pyarrow.list_(pyarrow.string()))])),
    ("info", pyarrow.struct([("reward", pyarrow.struct([("main", pyarrow.float64())])),
                             ("marks", pyarrow.list_(pyarrow.bool_()))])),
    ("run.no", pyarrow.int64()),
])  # fmt: skip
INFO = st.none() | st.fixed_dictionaries({
    "reward": st.none() | st.fixed_dictionaries({"main": st.sampled_from([0.0, 1.0, None])}),
    "marks": st.lists(st.booleans(), min_size=1, max_size=3),
})  # fmt: skip


@given(rows=st.lists(st.tuples(st.sampled_from("xyz"), INFO), min_size=1, max_size=12),
       delta=st.booleans(), groups=st.integers(1, 5))  # fmt: skip
@settings(
    max_examples=25, derandomize=True, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
def test_nested_fields_of_parquet_are_those_of_json_lines(tmp_path, rows, delta, groups):
    """Whole or in parts, however it is encoded; what is within null is missing in both."""
    records = [
        {"task": {"id": name, "in.a": name * 2, "prompt": [name]}, "info": info, "run.no": n}
        for n, (name, info) in enumerate(rows)
    ]  # fmt: skip
    lines, path = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in records))
    options = {"use_dictionary": False, "column_encoding": {"task.id": "DELTA_BYTE_ARRAY"}}
    table = pyarrow.Table.from_pylist(records, NESTED)
    pyarrow.parquet.write_table(table, path, row_group_size=groups, **options if delta else {})
    asked = {"question": "task.id", "content": "task.prompt"}
    for outcome, trial in (("info.reward.main", {"trial": "run.no"}), ("info.marks", {})):
        columns = asked | {"outcome": outcome} | trial
        told = {"columns": columns, "group": "task.in.a", "missing": "ignore"}
        try:
            expected = bk.load(lines, **told)
        except bk.OutcomeError:  # no outcome at all
            refused(lambda told=told: bk.load(path, **told), "data must have at least one outcome")
            continue
        for stream in (False, True):
            data = bk.load(path, stream=stream, **told)
            assert data.sha256() == expected.sha256()
            assert data.dataset.identical(expected.dataset)


def test_a_field_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([], NESTED), path)
    for name in ("info.rewards", "info.", "info.reward.main.x", "task.prompt.list"):
        told = {"question": "task.id", "outcome": name}
        refused(lambda told=told: bk.load(path, columns=told), "names in the table")
    twice = pyarrow.table([["x"], [1], ["what"], ["why"]], ["id", "score", "prompt", "prompt"])
    pyarrow.parquet.write_table(twice, path)
    refused(lambda: bk.load(path), "'prompt' is in it more than once")


WIDE = "problem_idx,alpha,beta,problem\n1,1,0,what\n2,1,,why\n3,0,1,how\n"


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_wide_tables(tmp_path, kind):
    csv = tmp_path / "wide.csv"
    csv.write_text(WIDE)
    frame = pd.read_csv(csv).astype({"beta": "Int64"})
    path = tmp_path / f"wide.{kind}"
    {"csv": lambda: None, "tsv": lambda: frame.to_csv(path, sep="\t", index=False),
     "json": lambda: frame.to_json(path, orient="records"),
     "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
     "parquet": lambda: frame.to_parquet(path, index=False)}[kind]()  # fmt: skip
    data = bk.load(path, wide=True, **LEFT_OUT)
    assert data.systems == ["alpha", "beta"]
    assert data.successes.values.tolist() == [[1, 1, 0], [0, 0, 1]]
    assert data.dataset["missing"].values.tolist() == [[0, 0, 0], [0, 1, 0]]


def test_wide_tables_with_lists_and_named_questions(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text('alpha,which,beta\n"[1, 0]",x,"[1, 1]"\n"[0, 0]",y,"[0, 1]"\n')
    data = bk.load(path, wide=True, columns={"question": "which"})
    assert counts(data) == {"alpha": {"x": (1, 1, 0), "y": (2, 0, 0)},
                            "beta": {"x": (0, 2, 0), "y": (1, 1, 0)}}  # fmt: skip
    refused(lambda: bk.load(path, wide=True, columns={"outcome": "alpha"}), "wide table")
    path.write_text("id,alpha\nx,0.75\n")
    refused(lambda: bk.load(path, wide=True), "0.75", "'alpha'")


@pytest.mark.parametrize("option", [{"wide": True}, {"records": "results"}])
def test_layouts_are_refused_where_they_have_no_effect(tmp_path, option):
    from tests.io.logs import INSPECT

    refused(lambda: bk.load(INSPECT / "arithmetic_a.eval", **option), "must be left out for logs")
    refused(lambda: bk.load([[1, 0]], **option), "no files")
    (tmp_path / "t.csv").write_text("id,score\n1,1\n")
    if "records" in option:
        refused(lambda: bk.load(tmp_path / "t.csv", **option), "JSON")


def test_converted_lists_are_a_row_for_each_trial(tmp_path):
    source = written_json(tmp_path / "t.json", {"results": [{"id": "x", "accs": [1, 0]}]})
    path = bk.convert(source, tmp_path / "long.csv")
    assert path.read_text().splitlines() == ["question,outcome", "x,1", "x,0"]
