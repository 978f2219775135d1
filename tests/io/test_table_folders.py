"""Folders that hold tables and no logs: read together, or refused, and never counted twice."""

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from tests.io.logs import LOGS, POINTER, counts, refused

COLUMNS = ["system", "question", "trial", "passed"]
TABLE = pd.DataFrame(
    [
        (s, f"q{q}", t, (len(s) + q + t) % 2)
        for s in ("a", "bb")
        for q in range(3)
        for t in range(2)
    ],
    columns=COLUMNS,
)
WRITERS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "tsv": lambda table, path: table.to_csv(path, sep="\t", index=False),
    "jsonl": lambda table, path: table.to_json(path, orient="records", lines=True),
    "json": lambda table, path: table.to_json(path, orient="records"),
    "parquet": lambda table, path: table.to_parquet(path, index=False),
}
STREAMED = pytest.mark.parametrize("stream", [None, True])


def written(folder, **tables):
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


@given(
    parts=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    kinds=st.lists(st.sampled_from(sorted(WRITERS)), min_size=3, max_size=3),
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_any_parts_are_the_table_that_was_taken_apart(tmp_path_factory, parts, kinds):
    """Rows are dealt to files of any kind, in folders below as well."""
    folder = tmp_path_factory.mktemp("parts")
    for number, kind in enumerate(kinds):
        own = TABLE[[part == number for part in parts]]
        path = folder / str(number) / f"part.{kind}"
        path.parent.mkdir()
        if len(own):
            WRITERS[kind](own, path)
    assert counts(bk.load(folder)) == counts(bk.tally(TABLE))


@STREAMED
def test_without_a_system_column_files_are_systems_and_the_card_says_so(tmp_path, stream):
    tables = {s: rows.drop(columns="system") for s, rows in TABLE.groupby("system")}
    folder = written(tmp_path / "runs", **tables)
    data = bk.load(folder, stream=stream)
    assert counts(data) == counts(bk.load(written(tmp_path / "x", whole=TABLE) / "whole.csv"))
    assert "system = column '(name of the file)'" in data.card()
    named = written(tmp_path / "named", first=TABLE[:6], second=TABLE[6:])
    assert bk.load(named, stream=stream).systems == ["a", "bb"]


@STREAMED
def test_columns_that_disagree_are_refused(tmp_path, stream):
    first, second = TABLE[:6], TABLE[6:]
    for number, renamed in enumerate(
        [
            second.rename(columns={"passed": "score"}),
            second.drop(columns="trial"),
            second.drop(columns="system"),
            second.rename(columns={"system": "model"}),
        ]
    ):
        folder = written(tmp_path / str(number), first=first, second=renamed)
        message = refused(lambda folder=folder: bk.load(folder, stream=stream), "second.csv")
        assert "columns" in message
    folder = written(tmp_path / "foreign", first=first, other=pd.DataFrame({"a": [1], "b": [2]}))
    refused(lambda: bk.load(folder, stream=stream), "other.csv", "one question column")
    assert bk.load(folder / "first.csv").systems == ["a"]  # as the message says


@STREAMED
def test_a_table_and_its_copy_do_not_count_twice(tmp_path, stream):
    plain = TABLE.drop(columns="trial")
    folder = written(tmp_path / "copy", results=plain, backup=plain[::-1])
    refused(
        lambda: bk.load(folder, stream=stream),
        "question 'q0' of system",
        "backup.csv",
        "further trials",
    )
    both = [folder / "results.csv", folder / "backup.csv"]
    assert bk.load(both).trials.values.tolist() == [[4] * 3] * 2  # named, they are further trials
    numbered = written(tmp_path / "numbered", results=TABLE, backup=TABLE[::-1])
    refused(lambda: bk.load(numbered, stream=stream), "must occur once")
    same = written(tmp_path / "same", results=plain, again=plain)
    refused(lambda: bk.load(same, stream=stream), "byte for byte")
    split = written(tmp_path / "split", first=TABLE[::2], second=TABLE[1::2])
    assert counts(bk.load(split, stream=stream)) == counts(bk.load(folder / "results.csv"))


def dealt(how):
    """Files of one system that does not name itself: its questions, or its trials, dealt out."""
    rows = TABLE[TABLE["system"] == "bb"].drop(columns=["system", "trial"])
    return [rows[:2], rows[2:4], rows[4:]] if how == "questions" else [rows[::2], rows[1::2]]


@pytest.mark.parametrize(("how", "names", "system"), [
    ("questions", ["part-000", "part-001", "part-002"], "its runs"),
    ("trials", ["run_1", "run_2"], "its runs"),
    ("questions", ["train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"],
     "its runs"),
    ("trials", ["gpt-4o_seed0", "gpt-4o_seed1"], "gpt-4o"),
])  # fmt: skip
def test_parts_of_one_system_are_told_with_what_reads_them(
    tmp_path, monkeypatch, how, names, system
):
    monkeypatch.chdir(tmp_path)
    folder = written(tmp_path / "its runs", **dict(zip(names, dealt(how), strict=True)))
    for source in (folder, sorted(folder.iterdir())):
        message = refused(lambda source=source: bk.load(source), "called as parts or runs")
        whole = eval(re.search(r"bayesatk\.(load\(.*?\));", message)[1], {"load": bk.load})
        assert counts(whole) == {system: counts(bk.tally(TABLE))["bb"]}
    named = {name: folder / f"{name}.csv" for name in names}
    assert bk.load(named, missing="ignore").systems == names


@STREAMED
@pytest.mark.parametrize("names", [["model-7b", "model-70b"], ["part-a", "part-b"], ["new", "old"]])
def test_files_that_are_systems_by_their_names_are_not_asked_about(tmp_path, stream, names):
    rows = TABLE.drop(columns="system")
    folder = written(tmp_path, **{names[0]: rows[:6], names[1]: rows[6:]})
    assert "CHECK" not in bk.load(folder, stream=stream).card()


def test_counts_and_wide_tables_in_folders(tmp_path):
    frame = pd.DataFrame({"model": ["a", "b"], "id": ["x", "x"], "n": [4, 4], "c": [1, 3]})
    folder = written(tmp_path / "counts", a=frame[:1], b=frame[1:])
    assert counts(bk.load(folder)) == {"a": {"x": (3, 1, 0)}, "b": {"x": (1, 3, 0)}}
    twice = written(tmp_path / "twice", a=frame, b=frame[1:])
    refused(lambda: bk.load(twice), "system 'b'")
    wide = written(
        tmp_path / "wide",
        x=pd.DataFrame({"id": ["x"], "a": [1], "b": [0]}),
        y=pd.DataFrame({"id": ["x"], "c": [1], "d": [1]}),
    )
    assert bk.load(wide, wide=True).systems == ["a", "b", "c", "d"]


def test_what_is_no_table_is_told(tmp_path):
    folder = written(tmp_path / "runs", first=TABLE[:6], results_second=TABLE[6:])
    (folder / "config.json").write_text('{"seed": 1}')
    (folder / "third.csv").write_text(POINTER)
    (folder / "readme.txt").write_text("no table")
    written(folder / ".ipynb_checkpoints", first=TABLE[:5])
    card = bk.load(folder).card()
    assert "passed over in runs: " in card
    for name in ("config.json", "readme.txt", r"third.csv (a Git LFS pointer", "first.csv"):
        assert name in card
    refused(lambda: bk.load(folder, strict=True), "config.json", "strict=True")
    (folder / "notes.json").write_text('{"author": "me"}')
    refused(lambda: bk.load(folder), "notes.json", "no table of runs, name those")


def test_beside_logs_tables_and_broken_files_are_passed_over(tmp_path):
    log = LOGS / "records" / "others" / "openai_evals.jsonl"
    (tmp_path / log.name).write_bytes(log.read_bytes())
    (tmp_path / "broken.jsonl").write_text('{"half": ')
    written(tmp_path, table=TABLE)
    assert ": broken.jsonl, table.csv" in bk.load(tmp_path).card()


def test_the_folder_one_is_in_and_results_saved_in_it(tmp_path, monkeypatch):
    written(tmp_path, runs=TABLE)
    monkeypatch.chdir(tmp_path)
    read = bk.load(".")
    assert counts(read) == counts(bk.load(tmp_path / "runs.csv"))
    bk.save(bk.evaluate(read, "pass@1", pooling="none", rng=1), "fit.zarr")
    assert counts(bk.load(tmp_path)) == counts(read)
    with pytest.raises(FileNotFoundError, match="no file without a name"):
        bk.load("")


def test_how_many_of_many_files_are_read_is_shown(tmp_path, monkeypatch):
    shown = []

    def track(files, text, progress):
        shown.append((len(files), text, progress))
        return files

    monkeypatch.setattr("bayesatk.io.sources.track", track)
    for number in range(21):
        (tmp_path / f"{number}.csv").write_text(f"question,system,passed\nq{number},m,1\n")
    assert bk.load(tmp_path, progress=True).dataset.sizes["question"] == 21
    assert shown == [(21, "looking at files", True), (21, "reading files", True)]
    bk.load(tmp_path)  # where somebody watches
    assert shown[3] == (21, "reading files", None)
    bk.load([tmp_path / "1.csv", tmp_path / "2.csv"], progress=True)
    assert len(shown) == 4
