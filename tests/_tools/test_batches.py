"""Files of studies: whole batches of this study, one writer, and no trace of a killed one."""

import json
import subprocess
import sys

import pytest

from bayesatk._tools.batches import all_batches, misshapen

STUDY = {"size": 2}


def run(start):
    return [float(start), float(start + 1)]


def batches(path, number=4, study=STUDY):
    return all_batches(
        run, range(0, 2 * number, 2), study, fault=lambda found: misshapen(found, 2), path=path,
        client=None, description="", progress=False,
    )  # fmt: skip


ROWS = {
    "not JSON": (b'{"study": {"size": 2}, "start": 0, "va\n', "of this study.*line 2"),
    "other study": (b'{"study": {"size": 3}, "start": 0, "values": []}\n', "of this study"),
    "deep": (b"[" * 100_000 + b"\n", "of this study"),
    "short": ({"start": 2, "values": [2.0]}, "line 2.*1 values where 2 must be"),
    "long": ({"start": 2, "values": [2.0, 3.0, 4.0]}, "3 values where 2 must be"),
    "NaN": ({"start": 2, "values": [2.0, float("nan")]}, "nan where a finite number must be"),
    "infinite": ({"start": 2, "values": [2.0, float("inf")]}, "inf where"),
    "text": ({"start": 2, "values": ["2", 3.0]}, "'2' where a finite number must be"),
    "true": ({"start": 2, "values": [True, 3.0]}, "True where a finite number"),
    "no values": ({"start": 2}, "None where 2 must be"),
    "no start": ({"values": [2.0, 3.0]}, "its start is None"),
    "odd start": ({"start": 3, "values": [2.0, 3.0]}, "its start is 3, and must be a multiple of"),
    "negative": ({"start": -2, "values": [2.0, 3.0]}, "its start is -2"),
    "true start": ({"start": False, "values": [0.0, 1.0]}, "its start is False"),
    "list start": ({"start": [2], "values": [0.0, 1.0]}, r"its start is \[2\]"),
    "twice": ({"start": 0, "values": [0.0, 9.0]}, "differs from an earlier one with the start 0"),
}


@pytest.mark.parametrize(("row", "says"), ROWS.values(), ids=ROWS.keys())
def test_rows_that_are_no_batch_are_refused_by_name(tmp_path, row, says) -> None:
    path = tmp_path / "study.jsonl"
    batches(path, 1)
    with path.open("ab") as file:
        file.write(row if isinstance(row, bytes) else json.dumps({"study": STUDY} | row).encode())
        file.write(b"\n" * (not isinstance(row, bytes)))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"(?s){says}"):
        batches(path)
    assert path.read_bytes() == before
    path.write_bytes(before.splitlines(keepends=True)[0])  # the line removed, as the message says
    assert batches(path) == batches(None)


def test_every_beginning_of_a_line_is_cut_off(tmp_path) -> None:
    path = tmp_path / "study.jsonl"
    batches(path, 2)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first + 1, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.warns(UserWarning, match=f"the last {end - first} bytes .* done again"):
            assert batches(path, 2) == {0: [0.0, 1.0], 2: [2.0, 3.0]}
        assert path.read_bytes() == whole


def test_what_is_there_is_not_done_again(tmp_path) -> None:
    path = tmp_path / "study.jsonl"
    batches(path, 4)
    before = path.read_bytes()
    assert batches(path, 2) == {0: [0.0, 1.0], 2: [2.0, 3.0]}
    assert path.read_bytes() == before


def test_a_second_writer_is_refused(tmp_path) -> None:
    path = tmp_path / "study.jsonl"
    script = "\n".join(
        [
            "import fcntl, sys",
            "file = open(sys.argv[1], 'a+b')",
            "fcntl.flock(file, fcntl.LOCK_EX)",
            "print('locked', flush=True)",
            "sys.stdin.read()",
        ]
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match="being written by another process"):
            batches(path)
        other.stdin.close()
        other.wait()
    assert batches(path) == batches(None)
    with pytest.raises(ValueError, match="being written"):
        all_batches(
            lambda start: batches(path)[start], range(0, 20, 2), STUDY,
            fault=lambda found: misshapen(found, 2), path=path, client=None, description="",
            progress=False,
        )  # fmt: skip
