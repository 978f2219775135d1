"""Traps in the files of Inspect's logs: damaged archives, odd documents, memory."""

import json
import re
import struct
import sys
import zlib
from collections import Counter

import pytest

import bayesatk as bk
from tests.io.logs import (
    INSPECT,
    QUIET,
    attempt,
    edited,
    entries,
    refused,
    said_or_refused,
    totals,
    traced,
    with_fields,
    written_json,
    zipped,
)

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

pytestmark = QUIET


@pytest.mark.parametrize("name", ["arithmetic_a.eval", "deflate.eval"])
def test_a_truncated_archive_is_refused(tmp_path, name):
    whole = (INSPECT / name).read_bytes()
    path = tmp_path / "log.eval"
    for length in [1, 3, 4, 22, 30, 100, *range(1000, len(whole), 4999), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(lambda: bk.load(path), r"^log\.eval", "zip archive|one JSON", "copy|Check")


def test_garbage_in_an_archive(tmp_path):
    whole = (INSPECT / "arithmetic_a.eval").read_bytes()
    path = tmp_path / "log.eval"
    spoilt = [b"junk before the archive" + whole]
    spoilt += [
        whole[:start] + bytes(range(64)) + whole[start + 64 :] for start in range(2000, 40000, 3001)
    ]
    for content in spoilt:
        path.write_bytes(content)
        data, message = attempt(lambda: bk.load(path))
        if data is None:
            assert message.startswith("log.eval")
        else:  # it fell on a part that is not read
            assert totals(data) == [11, 13, 0]


def test_an_archive_that_is_no_log(tmp_path):
    path = zipped(tmp_path / "log.eval", [("notes.txt", "nothing")])
    refused(lambda: bk.load(path), r"^log\.eval", "must be an Inspect log", "header.json")
    path = zipped(path, [])
    refused(lambda: bk.load(path), "must be an Inspect log")
    sample = ("samples/1_epoch_1.json", '{"id": 1}')
    for header in ("[]", "{}", '{"eval": {"task": "t"}}'):
        zipped(path, [("header.json", header), sample])
        refused(lambda: bk.load(path), "'eval'", "model", "Name the system")
    path = zipped(path, [("header.json", '{"eval": {"model": "m"}}')])
    refused(lambda: bk.load(path), "must have trials")
    start = [("header.json", '{"eval": {"model": "m"}}')]
    for text in ("", "{", "[]", "null", "\xff", '{"id": 1}', "{'id': 1}"):
        zipped(path, [*start, ("samples/1_epoch_1.json", text)])
        refused(lambda: bk.load(path), r"^log\.eval")


def test_the_refusal_of_a_sample_names_its_member(tmp_path):
    change = with_fields({"scores": {"match": {"value": [1, 0]}}}, "divide", 3)
    refused(lambda: bk.load(edited(tmp_path / "log.eval", change)), r"^log\.eval", "divide")

    broken = with_fields({"scores": [1]}, "divide", 3)
    message = refused(lambda: bk.load(edited(tmp_path / "log.eval", broken)), r"^log\.eval")
    assert re.search(r"divide|sample \d+|number \d+", message), message


def test_an_encrypted_archive_is_refused(tmp_path):
    path = zipped(tmp_path / "log.eval", [("header.json", "{}")], zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the flag of the local entry, then that of the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    refused(lambda: bk.load(path), r"^log\.eval", "encrypted")


def claimed(path, packed, unpacked):
    """An archive of one member whose directory claims sizes of its own."""
    name, content = b"header.json", b"0"
    sizes = (8, 0, 0, zlib.crc32(content), packed, unpacked, len(name))
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, *sizes, 0)
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, *sizes, 0, 0, 0, 0, 0, 0)
    start, size = len(local) + len(name) + len(content), len(entry) + len(name)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, size, start, 0)
    path.write_bytes(local + name + content + entry + name + end)
    return path


def test_sizes_that_an_archive_claims_are_checked(tmp_path):
    path = claimed(tmp_path / "log.eval", 1, 0xFFFFFFF0)
    refused(lambda: bk.load(path), r"^log\.eval", "'header.json'", "it has 4294967280", "budget=")
    path = claimed(path, 1000, 1 << 28)
    refused(lambda: bk.load(path, budget=1 << 30), "'header.json'", "at most 134217728 bytes")


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "\\evil", "samples/../../x.json"]
)
def test_names_that_lead_out_of_an_archive_are_refused(tmp_path, name):
    members = [*entries(INSPECT / "arithmetic_a.eval"), (name, "x")]
    path = zipped(tmp_path / "log.eval", members)
    refused(lambda: bk.load(path), r"^log\.eval", "plain names", "leads out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.eval"]


def test_of_members_with_one_name_the_last_counts(tmp_path):
    genuine = Counter(name for name, _ in entries(INSPECT / "retried_again.eval"))
    (twice,) = (name for name, number in genuine.items() if number > 1)
    assert twice.startswith("samples/") or twice.startswith("_journal/")

    right = with_fields({"scores.match.value": "C"})
    members = entries(edited(tmp_path / "c.eval", right))
    path = zipped(tmp_path / "log.eval", entries(INSPECT / "arithmetic_a.eval") + members)
    assert totals(bk.load(path)) == [0, 24, 0]
    path = zipped(path, members + entries(INSPECT / "arithmetic_a.eval"))
    assert totals(bk.load(path)) == [11, 13, 0]


@pytest.mark.parametrize("method", ["ZIP_STORED", "ZIP_DEFLATED", "ZIP_BZIP2", "ZIP_LZMA",
                                    "ZIP_ZSTANDARD"])  # fmt: skip
def test_the_method_of_packing_does_not_matter(tmp_path, method):
    path = tmp_path / "log.eval"
    zipped(path, entries(INSPECT / "arithmetic_a.eval"), getattr(zipfile, method))
    assert totals(bk.load(path)) == [11, 13, 0]


def test_memory_does_not_grow_with_the_transcripts(tmp_path):
    """Forty trials of a megabyte: one sample at a time is held, and no answer that is not asked."""
    size, number = 1 << 20, 40
    (_, content), *_ = (
        member for member in entries(INSPECT / "arithmetic_a.eval") if "samp" in member[0]
    )
    genuine = json.loads(content)
    for long_field in ("messages", "answer"):
        members = [
            member for member in entries(INSPECT / "arithmetic_a.eval") if "samp" not in member[0]
        ]
        for epoch in range(number):
            text = f"{epoch:08d}" * (size // 8)
            record = json.loads(json.dumps(genuine)) | {"epoch": epoch, "uuid": str(epoch)}
            if long_field == "messages":
                record["messages"] = [{"role": "assistant", "content": text}]
            else:
                record["scores"]["match"]["answer"] = text
            members.append((f"samples/{epoch}.json", json.dumps(record)))
        path = zipped(tmp_path / "log.eval", members)
        peak = traced(lambda path=path: bk.load(path))
        assert peak < 15 * size, f"{peak / size:.0f} MB with long {long_field}"


def test_a_document_whose_parts_are_in_another_order(tmp_path):
    content = json.loads((INSPECT / "arithmetic_a.json").read_text())
    late = {key: content[key] for key in ("version", "eval", "samples", "status")}
    data = bk.load(written_json(tmp_path / "log.json", late))
    assert totals(data) == [11, 13, 0]
    assert "CHECK" not in data.card()
    first = {"samples": content["samples"], **content}
    said_or_refused(lambda: bk.load(written_json(tmp_path / "log.json", first)))


@pytest.mark.parametrize("tail", ["x", "{}", "]", ",", '"'])
def test_something_after_a_document(tmp_path, tail):
    path = tmp_path / "log.json"
    path.write_text((INSPECT / "arithmetic_a.json").read_text() + tail)
    refused(lambda: bk.load(path), r"^log\.json", "one JSON")


@pytest.mark.parametrize("name", ["arithmetic_a.json", "errors.json"])
def test_a_truncated_document_is_refused(tmp_path, name):
    whole = (INSPECT / name).read_text().rstrip()
    path = tmp_path / "log.json"
    for length in [1, 2, 10, *range(500, len(whole), 2999), len(whole) - 1]:
        path.write_text(whole[:length])
        refused(lambda: bk.load(path, missing="ignore"), r"^log\.json")
