"""Traps that any format has: files, folders, copies, failed calls, options without effect."""

import json
import os

import pytest

import bayesatk as bk
from tests.io.logs import (
    CODE,
    INSPECT,
    LOGS,
    POINTER,
    QUIET,
    STAMP,
    as_document,
    edited,
    genuine_rows,
    load_quietly,
    only,
    refused,
    samples_file,
    totals,
    with_fields,
    written_json,
)

pytestmark = QUIET


@pytest.mark.parametrize("label", [None, "", "  ", "\t\n", float("nan")])
def test_a_question_without_an_id_is_refused(tmp_path, label):
    change = with_fields({"id": label}, "divide")
    refused(lambda: bk.load(edited(tmp_path / "log.eval", change)), r"^log\.eval", "id", "Give")
    refused(lambda: bk.load(as_document(tmp_path / "log.json", change)), r"^log\.json", "id")
    rows = genuine_rows()
    rows[1]["doc_id"] = label
    path = samples_file(tmp_path / "m", rows)
    refused(lambda: bk.load(path), "id of its question|text or a whole number")


@pytest.mark.parametrize("suffix", [".eval", ".json", ".jsonl", ".csv", ".tsv", ".parquet"])
def test_a_git_lfs_pointer_is_named(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    path.write_text(POINTER)
    refused(lambda: bk.load(path), rf"log\{suffix}", "Git LFS", "git lfs pull")
    refused(lambda: bk.load({"a": path}), "Git LFS")


@pytest.mark.parametrize("name", ["b.eval", "b.json", "samples_b.jsonl"])
def test_a_git_lfs_pointer_in_a_folder_is_named(tmp_path, name):
    (tmp_path / name).write_text(POINTER)
    refused(lambda: bk.load(tmp_path), "1 of them Git LFS pointers")
    (tmp_path / "a.eval").write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    card = bk.load(tmp_path).card()
    assert f"passed over in {tmp_path.name}: {name} (a Git LFS pointer: git lfs pull)" in card
    refused(lambda: bk.load(tmp_path, strict=True), name, "Git LFS", "strict=True")


def test_a_broken_link_in_a_folder_is_not_passed_over(tmp_path):
    """git-annex keeps files as links; without their contents they lead nowhere."""
    (tmp_path / "a.eval").write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    (tmp_path / "b.eval").symlink_to(tmp_path / "annex" / "b.eval")
    with pytest.raises((bk.OutcomeError, FileNotFoundError), match=r"b\.eval"):
        bk.load(tmp_path)


@pytest.mark.parametrize("suffix", [".eval", ".json", ".jsonl", ".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("content", [b"", b"\x00", b"\x00" * 4096, b"\n\n", b"\xff\xfe\x00"])
def test_an_empty_file_is_refused(tmp_path, suffix, content):
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content)
    refused(lambda: bk.load(path), rf"^log\{suffix}")


ROW = genuine_rows()[0]
# A file, a right row, and what an empty answer changes in it.
SILENT = {
    "lm-eval": (
        f"samples_sums_gen_{STAMP}.jsonl", ROW | {"filter": "none"},
        {"resps": [[""]], "filtered_resps": [""], "exact_match": 0.0},
    ),
    "lm-eval, behind a filter that makes [invalid] of an empty response": (
        f"samples_sums_gen_{STAMP}.jsonl", ROW,
        {"resps": [[""]], "filtered_resps": ["[invalid]"], "exact_match": 0.0},
    ),
    "human-eval": (
        "x.jsonl_results.jsonl",
        {"task_id": "t", "completion": "x", "result": "passed", "passed": True},
        {"completion": " \n", "result": "failed", "passed": False},
    ),
    "evalplus": (
        "x_eval_results.json",
        {"task_id": "t", "solution": "x", "base_status": "pass", "plus_status": None},
        {"solution": "", "base_status": "fail"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SILENT)
def test_150_empty_answers_marked_wrong_are_told(tmp_path, kind):
    name, right, empty = SILENT[kind]
    rows = [right] * 10 + [right | empty] * 150
    if kind.startswith("lm-eval"):
        rows = [row | {"doc_id": number} for number, row in enumerate(rows)]
    if kind == "evalplus":
        path = written_json(tmp_path / name, {"date": "", "eval": {"t": rows}})
    else:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(bk.OutcomeWarning, match="150 of 160 .*empty_output='missing'"):
        data = bk.load(path)
    assert totals(data) == [150, 10, 0]
    assert "CHECK: 150 of 160 trials have an empty output" in data.card()
    data = bk.load(path, empty_output="missing", missing="ignore")
    assert totals(data) == [0, 10, 150]
    assert "150 empty output" in data.card()
    refused(lambda: bk.load(path, empty_output="missing"), "150", "empty output", "missing=")
    wrong = bk.load(path, empty_output="missing", missing="wrong")
    assert totals(wrong) == [150, 10, 150]


def test_a_copied_log_is_refused(tmp_path):
    path = tmp_path / "copy.eval"
    path.write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    for source in (
        [INSPECT / "arithmetic_a.eval", path],
        {"a": INSPECT / "arithmetic_a.eval", "b": path},
        [path, path],
    ):
        refused(lambda source=source: bk.load(source), "given once", "byte", "Leave one out")
        refused(lambda source=source: bk.load(source, same_system="trials"), "given once")


def test_a_folder_stands_for_the_logs_in_it(tmp_path):
    for name in ("arithmetic_a.eval", "arithmetic_b.eval"):
        (tmp_path / "deeper").mkdir(exist_ok=True)
        (tmp_path / "deeper" / name).write_bytes((INSPECT / name).read_bytes())
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "logs.json").write_text("{}")
    (tmp_path / "settings.json").write_text('{"a": 1}')
    data = bk.load(tmp_path)
    assert data.systems == ["mockllm/alpha", "mockllm/beta"]
    assert totals(data) == [23, 25, 0]
    assert totals(bk.load(str(tmp_path))) == [23, 25, 0]
    assert totals(bk.load({"both": tmp_path}, same_system="trials")) == [23, 25, 0]


def test_several_tasks_in_one_folder(tmp_path):
    """Two tasks with the same ids: their questions are told apart by task."""
    for name in ("arithmetic_a.eval", "two_scorers.eval"):
        (tmp_path / name).write_bytes((INSPECT / name).read_bytes())
    refused(lambda: bk.load(tmp_path), "scorer")
    edited(
        tmp_path / "two_scorers.eval",
        lambda record: record["scores"].pop("graded") and as_match(record),
        lambda record: record["eval"].update(model="mockllm/alpha"),
        source="two_scorers.eval",
    )
    questions = only(load_quietly(tmp_path))
    assert len(questions) == 12
    assert questions["arithmetic/divide"] == (3, 1, 0)
    assert sum(questions["two_scorers/divide"]) == 4


def as_match(record):
    value = record["scores"].pop("numeric")["value"]
    record["scores"]["match"] = {"value": "C" if value else "I"}


def test_folders_without_logs(tmp_path):
    refused(lambda: bk.load(tmp_path), tmp_path.name, "must have logs", "0 other files")
    (tmp_path / "notes.txt").write_text("no table")
    (tmp_path / "broken.jsonl").write_text('{"half": ')
    refused(lambda: bk.load(tmp_path), "2 other files", "one by one")


def test_a_file_that_is_not_there(tmp_path):
    for source in (tmp_path / "no.eval", [tmp_path / "no.eval"], {"a": [tmp_path / "no.eval"]}):
        with pytest.raises(FileNotFoundError, match=r"no\.eval"):
            bk.load(source)


@pytest.mark.parametrize("suffix", [".pkl", ".txt", "", ".eval.gz", ".zip"])
def test_files_of_another_kind_are_refused(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    path.write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    refused(lambda: bk.load(path), "file type", "format=")
    assert totals(bk.load(path, format="inspect")) == [11, 13, 0]


def test_systems_by_mapping():
    logs = [INSPECT / "arithmetic_b.eval", INSPECT / "arithmetic_a.eval"]
    assert bk.load(logs).systems == ["mockllm/beta", "mockllm/alpha"]  # in the order of files
    data = bk.load({"first": logs[0], "second": [logs[1]]})
    assert data.successes.sum("question").values.tolist() == [12, 13]
    assert data.systems == ["first", "second"]
    with pytest.raises(TypeError, match="systems is no argument of this function"):
        bk.load(logs, systems=["x", "y"])
    refused(lambda: bk.load({1: logs[0]}), "named by text")
    refused(lambda: bk.load({"one": logs}), "evaluated once")


WITHOUT_EFFECT = [
    ("inspect/arithmetic_a.eval", {"filter": "none"}),
    ("inspect/arithmetic_a.eval", {"columns": {"question": "id"}}),
    ("inspect/arithmetic_a.eval", {"answer_rules": bk.AnswerRules(conflict="majority")}),
    ("code/humaneval.jsonl_results.jsonl", {"scorer": "passed"}),
    ("code/humaneval.jsonl_results.jsonl", {"answers": True}),
    ("code/humaneval.jsonl_results.jsonl", {"question_key": "content"}),
    ("code/humaneval.jsonl_results.jsonl", {"question_key": "unchecked"}),
    ("code/evalplus_base_eval_results.json", {"filter": "none"}),
    ("code/evalplus_base_eval_results.json", {"answers": True}),
    ("code/evalplus_base_eval_results.json", {"question_key": "content"}),
]


@pytest.mark.parametrize(("name", "options"), WITHOUT_EFFECT, ids=str)
def test_options_without_effect_are_refused(name, options):
    (option,) = options
    refused(lambda: bk.load(LOGS / name, **options), option, "[Ll]eave|left out|answers=True")


@pytest.mark.parametrize("options", [
    {"question_key": "name"}, {"same_system": True}, {"empty_output": None}, {"answers": "yes"},
    {"format": "eval"}, {"missing": "drop"}, {"scores": {"C": 1}}, {"answer_rules": "strip"},
    {"format": ["inspect"]}, {"question_key": ["id"]},
    {"scorer": 1}, {"scorer": ""}, {"scorer": ["match"]},
], ids=str)  # fmt: skip
def test_options_that_are_none_are_refused(options):
    (option,) = options
    refused(lambda: bk.load(INSPECT / "arithmetic_a.eval", **options), option)


def test_a_told_format_that_is_not_the_files(tmp_path):
    for kind in (
        "csv",
        "jsonl",
        "json",
        "parquet",
        "lm-eval",
        "evalplus",
        "human-eval",
        "tau-bench",
        "tau2-bench",
    ):
        path = INSPECT / "arithmetic_a.eval"
        refused(lambda path=path, kind=kind: bk.load(path, format=kind), r"^arithmetic_a\.eval")
    path = CODE / "humaneval.jsonl_results.jsonl"
    for kind in ("inspect", "lm-eval", "evalplus", "tau-bench", "tau2-bench", "json"):
        refused(lambda path=path, kind=kind: bk.load(path, format=kind), r"^humaneval")


def test_other_encodings(tmp_path):
    text = (INSPECT / "arithmetic_a.json").read_text()
    path = tmp_path / "log.json"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert totals(bk.load(path)) == [11, 13, 0]
    path.write_bytes(text.encode("utf-16"))
    refused(lambda: bk.load(path), r"^log\.json", "(?i)utf-8")
    rows = "\r\n".join(json.dumps(row) for row in genuine_rows())
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "samples_sums_gen.jsonl").write_bytes(rows.encode("utf-8-sig"))
    assert totals(bk.load(folder / "samples_sums_gen.jsonl")) == [3, 2, 0]


def test_a_path_that_is_none(tmp_path):
    for source in ("", "\x00", "a" * 5000, tmp_path / ("b" * 300)):
        with pytest.raises((bk.OutcomeError, FileNotFoundError)):
            bk.load(source)


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "log.eval"
    path.write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    whole = os.open

    def denied(name, *args, **options):
        if name == path:
            raise PermissionError(13, "Permission denied", str(name))
        return whole(name, *args, **options)

    monkeypatch.setattr(os, "open", denied)
    refused(lambda: bk.load(path), r"log\.eval", "[Pp]ermission")


def test_the_loader_leaves_no_files_open_and_nothing_behind(tmp_path):
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    path = tmp_path / "log.eval"
    path.write_bytes((INSPECT / "arithmetic_a.eval").read_bytes()[:20000])
    refused(lambda: bk.load(path))
    bk.load(INSPECT / "arithmetic_a.eval")
    refused(lambda: bk.load(written_json(tmp_path / "x.json", {"samples": [1]})))
    if before:
        assert len(os.listdir("/proc/self/fd")) <= len(before) + 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.eval", "x.json"]
