"""What load refuses in files, and how it says so."""

import re

import pytest

import bayesatk as bk
from tests.data.intake import (
    COUNTS,
    FRAME,
    counts,
    refused,
    written,
)

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
    "no header": (".csv", "x,1,1\nx,2,0\n", ["a row of names above it, such as"]),
    "semicolons": (".csv", GOOD.replace(",", ";") + "y,1,1\n", ["3 cells"]),
    "same header": (".csv", "question,outcome,outcome\nx,1,0\n", ["outcome"]),
    "open quote": (".csv", GOOD + '"y,1,1\n', ["quot|row|string"]),
    "latin-1": (".csv", "question,outcome\né,1\n".encode("latin-1"), ["UTF-8"]),
    "utf-16": (".csv", GOOD.encode("utf-16"), ["UTF-8"]),
    "jsonl value": (".jsonl", LINE + LINE.replace("1}", "7}").replace("1,", "2,"), ["line 2"]),
    "jsonl text": (".jsonl", LINE.replace("1}", '"maybe"}'), ["outcome 'maybe'", r"scores=\{"]),
    "jsonl cut": (".jsonl", LINE + LINE[:-9], ["line 2", "JSON"]),
    "jsonl null id": (".jsonl", LINE + LINE.replace('"x"', "null"), ["'question'", "line 2"]),
    "jsonl list id": (".jsonl", LINE + LINE.replace('"x"', "[]"), ["'question'", "line 2"]),
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
        "'system' must identify the system of every row; line 1 has none",
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
