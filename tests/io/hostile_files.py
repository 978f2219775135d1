"""Files made to fill the memory, each read in a process of its own; run by test_hostile_files.

Prints for each attack, as JSON: bytes of the file, what was said, and by how much the memory of the
process grew at its peak. ``python tests/io/hostile_files.py FOLDER [SCALE]``: with a scale of 128
the budget is 512 MiB, and the attacks are that much larger.
"""

import json
import os
import resource
import struct
import sys
import zipfile as plain_zip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from backports.zstd import compress, zipfile

import bayesatk as bk
from bayesatk.io.sources import BUDGET

UNIT = 1 << 22  # bytes of the budget at scale 1
MOST = 1 << 30  # bytes of a file


def long(size):
    """Bytes of a value that would be seen in the memory of a process, if it were read."""
    return min(30 * size, MOST)


def archive(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def many_members(path, size):
    """Members that are small each, and together ten times the budget."""
    member = b" " * (size // 10)
    return archive(
        path, [("header.json", "{}"), *((f"samples/{i}.json", member) for i in range(100))]
    )


def one_member(path, size):
    return archive(path, [("header.json", b" " * (size // 2))])


def lying_member(path, size):
    """A member that says ten bytes, and unpacks to a hundred times the budget."""
    packed = compress(b"\0" * (1 << 20)) * (100 * size >> 20)
    name, method = b"header.json", 93
    head = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, 0, len(packed), 10, len(name), 0)
    local = b"PK\3\4" + head + name + packed
    central = b"PK\1\2" + struct.pack("<H", 20) + head + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    path.write_bytes(local + central + end)
    return path


def many_names(path, size):
    """An archive that is nothing but a list of members."""
    number = size // 1000
    with plain_zip.ZipFile(path, "w") as file:
        for i in range(number):
            file.writestr(f"{i}", b"")
    return path


def long_value(path, size):
    path.write_bytes(b'["' + b"x" * long(size) + b'"]')
    return path


def empty_lists(path, size):
    """A value that is short, and of many objects."""
    path.write_bytes(b"[[" + b"[]," * (size // 30) + b"0]]")
    return path


def long_line(path, size):
    path.write_bytes(b"question,outcome\n" + b"x" * long(size))
    return path


def long_record(path, size):
    path.write_bytes(b'{"question": "' + b"x" * long(size) + b'", "outcome": 1}')
    return path


def long_cell(path, size):
    path.write_bytes(b'question,outcome\n"' + b"line\n" * (long(size) // 5))
    return path


def pipe(path, _):
    os.mkfifo(path)
    return path


def device(path, _):
    path.symlink_to("/dev/zero")
    return path


def folder_with_pipe(path, _):
    path.mkdir()
    os.mkfifo(path / "log.eval")
    return path


def table(path, rows, question, **options):
    columns = {"question": question, "outcome": pa.array([1], pa.int8()).take(pa.array([0] * rows))}
    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    return path


def repeated(text, rows):
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def many_rows(path, size):
    """A row takes a thousandth of a byte."""
    return table(path, size // 10, repeated("x", size // 10))


def giant_text(path, size):
    """A text of a quarter of the budget in every row."""
    return table(path, 2000, repeated("x" * (size // 4), 2000))


def large_text(path, size):
    """A text of a sixteenth of the budget in every row: it is in memory once."""
    return table(path, 2000, repeated("x" * (size // 16), 2000))


def shared_prefix(path, size):
    """Every row says that it begins like the row before."""
    text = pa.array(["x" * (size // 64)]).take(pa.array([0] * 2000))
    encoding = {"column_encoding": {"question": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    return table(path, 2000, text, **encoding)


def large_group(path, size):
    text = pa.array([f"{i}" + "x" * (size // 200) for i in range(400)])
    return table(path, 400, text, use_dictionary=False)


# File, what makes it, and what is said of it.
ATTACKS = {
    "members that unpack to ten times the budget": (
        "a.eval", many_members, "the archive, unpacked, must have at most",
    ),
    "a member of half the budget": (
        "a.eval", one_member, "the member 'header.json' must have at most 524288 bytes",
    ),
    "a member that lies, and unpacks to 100 times the budget": (
        "a.eval", lying_member, "a whole zip archive|as it says",
    ),
    "an archive of nothing but names": (
        "a.eval", many_names, "the archive's list of members must have at most",
    ),
    "a JSON value larger than the budget": (
        "a.json", long_value, "one value must have at most 524288 characters",
    ),
    "a short JSON value of many objects": ("a.json", empty_lists, "record 0 must be an object"),
    "a line of CSV larger than the budget": ("a.csv", long_line, "a line must have at most"),
    "a cell of CSV larger than the budget": ("a.csv", long_cell, "a row must have at most"),
    "a line of JSON larger than the budget": ("a.jsonl", long_record, "a line must have at most"),
    "a named pipe": ("a.csv", pipe, "is a pipe or device"),
    "a device without an end": ("a.jsonl", device, "is a pipe or device"),
    "a named pipe in a folder": ("logs", folder_with_pipe, "is a pipe or device"),
    "Parquet: many rows in few bytes": (
        "a.parquet", many_rows, "must have at most 262144 rows; it has 419430",
    ),
    "Parquet: a giant text in every row": (
        "a.parquet", giant_text, "a cell must have at most 524288 bytes; it has 1048576",
    ),
    "Parquet: a large text in every row": ("a.parquet", large_text, "read: 2000 trials"),
    "Parquet: rows that begin like the one before": (
        "a.parquet", shared_prefix, "read: 2000 trials",
    ),
    "Parquet: a row group larger than the budget": (
        "a.parquet", large_group, "row group 0, unpacked, must have at most",
    ),
}  # fmt: skip


def read(path, budget, out):
    """Read a file, and write what was said and how much memory it took."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    try:
        data = bk.load(path, budget=budget)
        outcome = f"read: {int(data.trials.sum())} trials"
    except bk.OutcomeError as error:
        outcome = str(error)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    os.write(out, json.dumps({"said": outcome, "grew": max(0, peak - before)}).encode())


def forked(action, *args):
    """Run an action in a fork, and return what it writes."""
    reader, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action(*args, out)
        finally:
            os._exit(0)
    os.close(out)
    with os.fdopen(reader, "rb") as file:
        output = file.read()
    os.waitpid(child, 0)
    return output


def build(make, path, size, out):
    make(path, size)
    os.write(out, b"built")


def main(folder, scale):
    budget = min(UNIT * scale, BUDGET)
    (folder / "small.csv").write_text("question,outcome\nx,1\n")
    bk.load(folder / "small.csv")  # imports, before the forks
    for number, (name, (file, make, _)) in enumerate(ATTACKS.items()):
        path = folder / str(number) / file
        path.parent.mkdir()
        assert forked(build, make, path, UNIT * scale) == b"built", name
        size = path.stat().st_size if path.is_file() else 0
        report = json.loads(forked(read, path, budget) or '{"said": "killed", "grew": -1}')
        print(json.dumps({"attack": name, "file": size, "budget": budget, **report}), flush=True)
        if path.is_file() and not path.is_symlink():
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
