"""Tables of other shapes: lists in cells, records within objects, nested fields, wide tables."""

import json

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from tests.data.intake import as_kind
from tests.io.logs import INSPECT, QUIET, cells, counts, refused, written_json

pytestmark = QUIET
LISTS = pd.DataFrame({"id": ["x", "y", "z"], "outcome": [[1, 0, 1], [0], [None, 1]]})
FORMS = {
    "as Python writes them": ("csv", LISTS),
    "as JSON": ("csv", LISTS.assign(outcome=LISTS["outcome"].map(json.dumps))),
    **{kind: (kind, LISTS) for kind in ("pandas", "polars", "lazy", "parquet", "json", "jsonl")},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_cell_may_hold_the_outcomes_of_all_trials(tmp_path, form):
    kind, table = FORMS[form]
    data = bk.load(as_kind(table, kind, tmp_path), missing="ignore")
    assert cells(data) == "x 2/3, y 0/1, z 1/1 and 1 missing"


def test_lists_keep_answers():
    table = pd.DataFrame(
        {"id": ["x", "x"], "outcome": [[1, 0], [1, 1]], "said": [["4", "5"], ["4", "4"]]}
    )
    data = bk.tally(table, columns={"answer": "said"})
    assert cells(data) == "x 3/4"
    assert "answers" in data.card()
    short = table.assign(said=[["4"], ["4", "4"]])
    refused(lambda: bk.tally(short, columns={"answer": "said"}), "as long as", "row 0")
    # Curves, of which one outcome counts, and not each element.
    refused(lambda: bk.tally(table.assign(run=[1, 2])), "a row of one trial", "beside trial 1")


@pytest.mark.parametrize(("second", "words"), [
    ([], "must not be empty.*row 1"), ([1, "?"], "'\\?'.*row 1"), ("[1, maybe]", "maybe.*row 1"),
], ids=str)  # fmt: skip
def test_lists_that_are_none_are_refused_by_row(second, words):
    refused(lambda: bk.tally(pd.DataFrame({"id": ["x", "y"], "outcome": [[1, 0], second]})), words)


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_wide_tables(tmp_path, kind):
    columns = {"problem_idx": [1, 2, 3], "alpha": [1, 1, 0], "beta": [0, None, 1]}
    frame = pd.DataFrame(columns).astype({"beta": "Int64"}).assign(problem=["what", "why", "how"])
    data = bk.load(as_kind(frame, kind, tmp_path), wide=True, missing="ignore")
    questions = (1, 2, 3) if kind in ("json", "jsonl", "parquet") else ("1", "2", "3")
    assert data.dataset["question"].values.tolist() == [*questions]
    assert cells(data) == "alpha: 1 1/1, 2 1/1, 3 0/1; beta: 1 0/1, 2 0/0 and 1 missing, 3 1/1"


@pytest.mark.parametrize(
    ("option", "of_tables"), [({"wide": True}, ""), ({"records": "r"}, "JSON")]
)
def test_layouts_are_refused_where_they_have_no_effect(tmp_path, option, of_tables):
    log = INSPECT / "arithmetic_a.eval"
    refused(lambda: bk.load(log, **option), "must be left out for logs")
    refused(lambda: bk.load([[1, 0]], **option), "no files")
    if of_tables:
        (tmp_path / "t.csv").write_text("id,score\n1,1\n")
        refused(lambda: bk.load(tmp_path / "t.csv", **option), of_tables)


@given(st.lists(st.lists(st.sampled_from([0, 1, None, True, False]), min_size=1, max_size=5),
                min_size=1, max_size=6))  # fmt: skip
@settings(max_examples=50, deadline=None, derandomize=True)
def test_lists_are_the_rows_they_stand_for(lists):
    """The same counts as of a table with a row for each trial."""
    short = pd.DataFrame({"id": range(len(lists)), "outcome": lists})
    long = pd.DataFrame(
        [{"id": n, "outcome": mark} for n, marks in enumerate(lists) for mark in marks],
        dtype=object,
    )
    if any(mark is not None for marks in lists for mark in marks):
        assert counts(bk.tally(short, missing="ignore")) == counts(bk.tally(long, missing="ignore"))


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
    ]
    lines, path = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in records))
    options = {"use_dictionary": False, "column_encoding": {"task.id": "DELTA_BYTE_ARRAY"}}
    table = pyarrow.Table.from_pylist(records, NESTED)
    pyarrow.parquet.write_table(table, path, row_group_size=groups, **options if delta else {})
    roles = {"question": "task.id", "content": "task.prompt"}
    for outcome, trial in (("info.reward.main", {"trial": "run.no"}), ("info.marks", {})):
        columns = roles | {"outcome": outcome} | trial
        options_of_load = {"columns": columns, "group": "task.in.a", "missing": "ignore"}
        try:
            expected = bk.load(lines, **options_of_load)
        except bk.OutcomeError:  # no outcome at all
            refused(
                lambda options_of_load=options_of_load: bk.load(path, **options_of_load),
                "data must have at least one outcome",
            )
            continue
        for stream in (False, True):
            data = bk.load(path, stream=stream, **options_of_load)
            assert data.sha256() == expected.sha256()
            assert data.dataset.identical(expected.dataset)


def test_a_field_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([], NESTED), path)
    for name in ("info.rewards", "info.", "info.reward.main.x", "task.prompt.list"):
        columns = {"question": "task.id", "outcome": name}
        refused(lambda columns=columns: bk.load(path, columns=columns), "in the table")
    twice = pyarrow.table([["x"], [1], ["what"], ["why"]], ["id", "score", "prompt", "prompt"])
    pyarrow.parquet.write_table(twice, path)
    refused(lambda: bk.load(path), "'prompt' is in it more than once")


def test_converted_lists_are_a_row_for_each_trial(tmp_path):
    source = written_json(tmp_path / "t.json", {"results": [{"id": "x", "accs": [1, 0]}]})
    path = bk.convert(source, tmp_path / "long.csv")
    assert path.read_text().splitlines() == ["question,outcome", "x,1", "x,0"]


@pytest.mark.parametrize("of_systems", [True, False], ids=["by system", "by question"])
@pytest.mark.parametrize(("record", "columns"), [
    ([{"runs": [1, 0], "kind": "x"}, {"runs": [1, 1], "kind": "x"}], {"outcome": "runs"}),
    ([{"passed": 1, "of": 2}, {"passed": 2, "of": 2}], {"successes": "passed", "trials": "of"}),
], ids=["lists", "counts"])  # fmt: skip
def test_of_records_under_two_keys_the_more_numerous_are_the_questions(
    tmp_path, record, columns, of_systems
):
    marks = {
        "gpt": {"x": record[0], "y": record[0], "z": record[1]},
        "o3": {"x": record[1], "y": record[1], "z": record[0]},
    }
    by_question = {name: {system: marks[system][name] for system in marks} for name in "xyz"}
    path = written_json(tmp_path / "a.json", {"results": marks if of_systems else by_question})
    data = bk.load(path, columns=columns)
    assert counts(data) == {
        "gpt": {"x": (1, 1, 0), "y": (1, 1, 0), "z": (0, 2, 0)},
        "o3": {"x": (0, 2, 0), "y": (0, 2, 0), "z": (1, 1, 0)},
    }


def test_records_under_the_numbers_of_trials_are_not_those_of_systems(tmp_path):
    by_trial = {name: {"0": {"passed": 1}, "1": {"passed": 0}} for name in "xyz"}
    path = written_json(tmp_path / "a.json", by_trial)
    refused(lambda: bk.load(path), "one outcome column", "0.passed")
