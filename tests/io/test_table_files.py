"""Traps in tables in files: systems, labels, counts of successes."""

import json

import pandas as pd
import pytest

import bayesatk as bk
from tests.io.logs import (
    INSPECT,
    QUIET,
    cells,
    counts,
    only,
    refused,
    totals,
    traced,
    written,
)

pytestmark = QUIET

TABLE = "question,trial,passed\nq1,1,{}\nq1,2,0\nq2,1,1\nq2,2,1\n"


BARE = {
    "one.csv": "question,trial,passed  q,1,1  q,2,0  r,1,1",
    "two.csv": "question,trial,passed  q,1,0  q,2,0  r,1,1",
}
NAMED = {name: f"system,question,trial,passed  {name[:3]},q,1,1  {name[:3]},q,2,0" for name in BARE}
SAME = {name: "question,trial,passed  q,1,1  q,2,1" for name in BARE}
FOLDERS = {"a/runs.csv": "question,passed  q,1  q,1", "b/runs.csv": "question,passed  q,1  q,0"}
READ = {
    "a file is a system": (BARE, [*BARE], "one: q 1/2, r 1/1; two: q 0/2, r 1/1"),
    "systems are named": (BARE, {"x": "one.csv", "y": "two.csv"},
                          "x: q 1/2, r 1/1; y: q 0/2, r 1/1"),
    "a column names systems": (NAMED, [*NAMED], "one: q 1/2; two: q 1/2"),
    "the system of a column is named otherwise": (NAMED, {"x": "one.csv", "y": "two.csv"},
                                                  "x: q 1/2; y: q 1/2"),
    "a column, or the file, names systems": (NAMED | {"three.csv": "question,trial,passed  q,1,1"},
                                             ["one.csv", "three.csv"], "one: q 1/2; three: q 1/1"),
    "equal byte for byte": (SAME, {"x": "one.csv", "y": "two.csv"}, "x: q 2/2; y: q 2/2"),
    "of one name in two folders": (FOLDERS, {"a": "a/runs.csv", "b": "b/runs.csv"},
                                   "a: q 2/2; b: q 1/2"),
}  # fmt: skip
REFUSED = {
    "the same trials of one system": (BARE, {"x": [*BARE]}, "must occur once.*two\\.csv"),
    "several systems under one name": (
        {"two.csv": "system,question,trial,passed  a,q,1,1  b,q,1,0"}, {"x": "two.csv"},
        "two\\.csv.*must not name several systems"),
    "other roles": (NAMED | {"two.csv": "system,question,passed  two,q,1"}, [*NAMED],
                    "two\\.csv.*same roles"),
    "one name in two folders": (FOLDERS, [*FOLDERS], "runs.*(once|same name|distinct|evaluated)"),
}  # fmt: skip


def loaded(folder, files, source):
    for name, content in files.items():
        written(folder / name, content)

    def placed(name):
        return [placed(one) for one in name] if isinstance(name, list) else folder / name

    if isinstance(source, dict):
        return bk.load({system: placed(name) for system, name in source.items()}, missing="ignore")
    return bk.load(placed(source), missing="ignore")


@pytest.mark.parametrize("case", READ)
def test_which_systems_tables_are_of(tmp_path, case):
    files, source, reads = READ[case]
    assert cells(loaded(tmp_path, files, source)) == reads


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_do_not_go_together_are_refused(tmp_path, case):
    files, source, words = REFUSED[case]
    refused(lambda: loaded(tmp_path, files, source), words)


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
