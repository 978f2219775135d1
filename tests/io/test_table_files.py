"""Traps in tables in files: systems, labels, counts of successes."""

import json

import pandas as pd
import pytest

import bayesatk as bk
from tests.io.logs import (
    INSPECT,
    QUIET,
    counts,
    only,
    refused,
    totals,
    traced,
)

pytestmark = QUIET

TABLE = "question,trial,passed\nq1,1,{}\nq1,2,0\nq2,1,1\nq2,2,1\n"


def test_tables_without_a_system_column_are_systems(tmp_path):
    for name, mark in (("one", 1), ("two", 0)):
        (tmp_path / f"{name}.csv").write_text(TABLE.format(mark))
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    expected = {"q1": (1, 1, 0), "q2": (0, 2, 0)}, {"q1": (2, 0, 0), "q2": (0, 2, 0)}
    assert counts(bk.load(paths)) == dict(zip(("one", "two"), expected, strict=True))
    named = {"x": paths[0], "y": paths[1]}
    assert counts(bk.load(named)) == dict(zip("xy", expected, strict=True))
    refused(lambda: bk.load({"x": paths}), "must occur once", r"two\.csv")


def test_tables_with_a_system_column_are_joined(tmp_path):
    for name in ("one", "two"):
        text = "system,question,trial,passed\n" + f"{name},q,1,1\n{name},q,2,0\n"
        (tmp_path / f"{name}.csv").write_text(text)
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    assert counts(bk.load(paths)) == {name: {"q": (1, 1, 0)} for name in ("one", "two")}
    assert counts(bk.load({"x": paths[0]})) == {"x": {"q": (1, 1, 0)}}
    (tmp_path / "two.csv").write_text("system,question,trial,passed\na,q,1,1\nb,q,1,0\n")
    refused(lambda: bk.load({"x": paths[1]}), "must not name several systems", r"two\.csv")
    (tmp_path / "two.csv").write_text("question,trial,passed\nq,1,1\n")
    assert set(counts(bk.load(paths, missing="ignore"))) == {"one", "two"}
    (tmp_path / "two.csv").write_text("system,question,passed\ntwo,q,1\n")
    refused(lambda: bk.load(paths), "same roles", r"two\.csv")


def test_tables_of_one_name_in_two_folders_do_not_merge(tmp_path):
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "runs.csv")
        paths[-1].write_text(f"question,passed\nq,1\nq,{int(folder == 'a')}\n")
    refused(lambda: bk.load(paths), "runs", "once|same name|distinct|evaluated")
    assert counts(bk.load({"a": paths[0], "b": paths[1]})) == {
        "a": {"q": (0, 2, 0)}, "b": {"q": (1, 1, 0)},
    }  # fmt: skip


def test_two_systems_with_the_same_outcomes_are_two_systems(tmp_path):
    """Short tables of two systems that were right throughout are equal byte for byte."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("question,trial,passed\nq,1,1\nq,2,1\n")
    named = {name: tmp_path / f"{name}.csv" for name in ("one", "two")}
    assert counts(bk.load(named)) == {name: {"q": (0, 2, 0)} for name in named}


def test_logs_and_tables_do_not_mix(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.format(1))
    refused(lambda: bk.load([INSPECT / "arithmetic_a.eval", path]), "all logs or all tables")


COUNTED = [{"id": "a", "n": 4, "c": 1}, {"id": "b", "n": 3, "c": 3}, {"id": "c", "n": 2, "c": 0}]


def count_table(folder, suffix, rows):
    path = folder / f"counts{suffix}"
    frame = pd.DataFrame(rows)
    if suffix == "frame":
        return frame
    if suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif suffix in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


FORMS = [".csv", ".tsv", ".jsonl", ".json", ".parquet", "frame"]


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_counts(tmp_path, form):
    data = bk.load(count_table(tmp_path, form, COUNTED))
    assert only(data) == {"a": (3, 1, 0), "b": (0, 3, 0), "c": (2, 0, 0)}
    rows = [{"model": name, **row} for name in ("x", "y") for row in COUNTED]
    data = bk.load(count_table(tmp_path, form, rows))
    assert set(counts(data)) == {"x", "y"}
    assert totals(data) == [10, 8, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"c": 5}, "exceed"), ({"c": -1}, "whole numbers"), ({"n": -4, "c": -5}, "whole numbers"),
        ({"c": 0.5}, "whole numbers"), ({"n": 4.5}, "whole numbers"),
        ({"c": float("nan")}, "whole numbers|must have a successes"),
        ({"id": "b"}, "one row of counts"), ({"n": 2**63 - 1}, r"2\*\*62|whole numbers"),
    ],
)  # fmt: skip
def test_impossible_counts_are_refused(tmp_path, form, change, words):
    rows = [COUNTED[0] | change, *COUNTED[1:]]
    refused(lambda: bk.load(count_table(tmp_path, form, rows)), words)


@pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl", ".json"])
@pytest.mark.parametrize("text", ["one", "1e3", "0x1", "1,5", "-1", "", "\u0661", True, None, [1]])
def test_counts_that_are_no_numbers_are_refused(tmp_path, form, text):
    if form in (".csv", ".tsv"):
        text = "true" if text is True else "" if text is None else str(text)
    rows = [COUNTED[0] | {"c": text}, *COUNTED[1:]]
    refused(lambda: bk.load(count_table(tmp_path, form, rows)), r"^counts\.")


def test_no_trials_are_no_counts(tmp_path):
    rows = [*COUNTED, {"id": "d", "n": 0, "c": 0}]
    path = count_table(tmp_path, ".csv", rows)
    refused(lambda: bk.load(path), "'d'", "no trials", "missing=")
    assert only(bk.load(path, missing="ignore"))["d"] == (0, 0, 0)
    refused(lambda: bk.load(path, scores={0: 0, 1: 0.5}), "scores must be left out")


@pytest.mark.parametrize("options", [
    {"filter": "none"}, {"scorer": "match"}, {"answers": True}, {"question_key": "content"},
    {"empty_output": "missing"},
], ids=str)  # fmt: skip
def test_options_of_logs_are_refused_for_tables(tmp_path, options):
    (option,) = options
    (tmp_path / "t.csv").write_text(TABLE.format(1))
    refused(lambda: bk.load(tmp_path / "t.csv", **options), option, "left out")
    refused(lambda: bk.load([[1, 0]], **options), option, "left out")


def test_memory_does_not_grow_with_the_cells_of_a_csv(tmp_path):
    size, number = 1 << 20, 40
    path = tmp_path / "t.csv"
    with path.open("w") as file:
        file.write("question,passed,transcript\n")
        file.writelines(f"q{place},1,{'x' * size}\n" for place in range(number))
    assert traced(lambda: bk.load(path)) < 12 * size
