"""Traps in whose trials Inspect's logs hold: ids of questions, repeated runs, broken-off runs."""

import json
import re
from collections import Counter

import pytest

import bayesatk as bk
from tests.io.logs import (
    INSPECT,
    QUIET,
    as_document,
    as_run,
    counts,
    edited,
    entries,
    inspect_samples,
    load_quietly,
    only,
    refused,
    said_or_refused,
    totals,
    with_fields,
    zipped,
)

pytestmark = QUIET


other_prompt = with_fields({"input": "What is 144 / 9? Think first."}, "divide", 2)
other_target = with_fields({"target": "17"}, "divide", 2)


@pytest.mark.parametrize("change", [other_prompt, other_target])
@pytest.mark.parametrize("build", [edited, as_document])
def test_an_id_stands_for_one_content_within_a_log(tmp_path, build, change):
    path = build(tmp_path / ("log.eval" if build is edited else "log.json"), change)
    refused(
        lambda: bk.load(path),
        r"^log\.",
        "'divide'",
        "trial 2",
        "question_key='content'",
        "question_key='unchecked'",
    )
    assert only(bk.load(path, question_key="unchecked"))["divide"] == (3, 1, 0)
    questions = only(bk.load(path, question_key="content"))
    mine = {label: row for label, row in questions.items() if label.startswith("divide#")}
    assert len(questions) == 7
    assert sorted(sum(row) for row in mine.values()) == [1, 3]


@pytest.mark.parametrize("change", [other_prompt, other_target])
def test_an_id_stands_for_one_content_between_systems(tmp_path, change):
    path = edited(tmp_path / "beta.eval", change, source="arithmetic_b.eval")
    logs = [INSPECT / "arithmetic_a.eval", path]
    refused(lambda: bk.load(logs), "'divide'", r"beta\.eval", r"arithmetic_a\.eval", "question_key")
    systems = counts(bk.load(logs, question_key="unchecked"))
    assert [sum(row["divide"]) for row in systems.values()] == [4, 4]
    refused(lambda: bk.load(logs, question_key="content"), "missing", "divide#")
    systems = counts(bk.load(logs, question_key="content", missing="ignore"))
    alpha, beta = (
        sorted(sum(n) for label, n in row.items() if label.startswith("divide#"))
        for row in systems.values()
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
        first, second, third, *more = record["choices"]
        record["choices"] = [first, third, second, *more]
        record["uuid"] += "again"

    path = edited(tmp_path / "again.eval", swapped, source="shuffled.eval")
    logs = {"first": INSPECT / "shuffled.eval", "again": path}
    refused(lambda: bk.load(logs), "differ in what was asked", r"again\.eval", "question_key")
    assert totals(bk.load(logs, question_key="unchecked")) == [20, 12, 0]


def test_ids_of_messages_are_no_part_of_the_question(tmp_path):
    def as_messages(record):
        message = {"id": record["uuid"], "role": "user", "content": record["input"]}
        record["input"] = [message]

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

    first = edited(tmp_path / "one.eval", **named("a", "b/"))
    second = edited(tmp_path / "other.eval", **named("a/b", ""), source="arithmetic_b.eval")
    assert len(bk.load([first], missing="ignore").dataset["question"]) == 6
    try:
        data = bk.load([first, second], missing="ignore")
    except bk.OutcomeError:
        return
    assert len(data.dataset["question"]) == 12


@pytest.mark.parametrize("label", [True, False, 1.0, 1.5, [1], {"a": 1}, float("inf")])
def test_an_id_is_text_or_a_whole_number(tmp_path, label):
    change = with_fields({"id": label}, "divide")
    refused(
        lambda: bk.load(edited(tmp_path / "log.eval", change)),
        r"^log\.eval",
        "text or a whole number",
        re.escape(repr(label)),
        "trial 5",
        "Write",
    )


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

    first = edited(tmp_path / "one.eval", numbered(int))
    second = edited(tmp_path / "other.eval", numbered(str), source="arithmetic_b.eval")
    data = bk.load([first, second])
    assert data.trials.values.tolist() == [[4] * 6] * 2
    assert bk.load(first).dataset["question"].values.tolist() == [0, 1, 2, 3, 4, 5]


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
    questions = only(bk.load(path))
    assert len(questions) == 6
    assert questions[label] == (3, 1, 0)


@pytest.mark.parametrize("epoch", [None, [], {}, [1], float("nan"), "x"])
def test_an_epoch_that_is_none_does_not_merge_trials(tmp_path, epoch):
    change = with_fields({"epoch": epoch}, "divide")
    refused(lambda: bk.load(as_document(tmp_path / "log.json", change)), r"^log\.json")


@pytest.mark.parametrize("build", [edited, as_document])
def test_samples_that_a_finished_log_lacks_are_told(tmp_path, build):
    """The header says 24 trials and success; four of them have been cut out."""
    path = tmp_path / ("log.eval" if build is edited else "log.json")
    build(path, lambda record: record["id"] != "divide")
    said_or_refused(lambda: bk.load(path), r"CHECK.*20")


def test_a_log_without_samples_is_not_passed_over(tmp_path):
    """Inspect writes such logs with log_samples=False: a system whose trials are not there."""
    path = edited(tmp_path / "beta.eval", lambda _: False, source="arithmetic_b.eval")
    refused(lambda: bk.load(path), "must have trials")
    said_or_refused(lambda: bk.load([INSPECT / "arithmetic_a.eval", path]), r"CHECK.*beta\.eval")


def test_one_run_in_both_forms_is_refused(tmp_path):
    logs = [INSPECT / "arithmetic_a.eval", INSPECT / "arithmetic_a.json"]
    for source in (logs, {"a": logs[0], "b": logs[1]}):
        for same in ("error", "trials"):
            refused(
                lambda source=source, same=same: bk.load(source, same_system=same),
                "every trial must come once",
                "arithmetic_a.eval",
                "arithmetic_a.json",
                "leave",
            )
    again = edited(tmp_path / "again.eval", lambda record: None)  # other bytes, the same trials
    refused(lambda: bk.load([logs[0], again], same_system="trials"), "must come once")


def test_a_retry_repeats_the_trials_of_its_log():
    logs = [INSPECT / "retried_1.eval", INSPECT / "retried_2.eval"]
    refused(
        lambda: bk.load(logs, missing="ignore", same_system="trials"),
        "must come once",
        r"retried_1\.eval",
        r"retried_2\.eval",
        "superseded",
    )


@pytest.mark.parametrize("build", [edited, as_document])
def test_two_runs_of_one_system_are_refused_or_further_trials(tmp_path, build):
    suffix = ".eval" if build is edited else ".json"
    logs = [build(tmp_path / f"run{n}{suffix}", **as_run(n)) for n in (1, 2)]
    refused(
        lambda: bk.load(logs),
        "evaluated once",
        "'mockllm/alpha'",
        "run1",
        "run2",
        "same_system='trials'",
        "name them",
    )
    data = bk.load(logs, same_system="trials")
    assert only(data)["divide"] == (6, 2, 0)
    assert "several logs of 'mockllm/alpha'" in data.card()
    named = counts(bk.load({"first": logs[0], "second": logs[1]}))
    assert {name: row["divide"] for name, row in named.items()} == {
        "first": (3, 1, 0),
        "second": (3, 1, 0),
    }
    assert totals(bk.load({"both": logs}, same_system="trials")) == [22, 26, 0]
    refused(lambda: bk.load({"both": logs}), "evaluated once")


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
    answers = Counter()
    for question, label, count in zip(
        data.answers.question, data.answers.label, data.answers.count, strict=True
    ):
        answers[labels[question], label] += int(count)
    assert answers == expected
    assert bk.load(INSPECT / "arithmetic_a.eval").answers is None


def test_an_inspect_document_is_known_whatever_its_names_hold(tmp_path):
    def head(record):
        spec = record["eval"]
        record["eval"] = {"eval_set_id": "database-nightly", **spec}

    assert totals(bk.load(as_document(tmp_path / "log.json", head=head))) == [11, 13, 0]
