"""Traps in what Inspect's logs say of a trial: scorers, scales, answers, what has no mark."""

import re

import pytest

import bayesatk as bk
from tests.io.logs import (
    GRADES,
    INSPECT,
    QUIET,
    as_document,
    edited,
    load_quietly,
    only,
    refused,
    said_or_refused,
    totals,
    with_fields,
)

pytestmark = QUIET
EMPTY = {"output.completion": "", "output.choices": []}


@pytest.mark.parametrize(
    ("mark", "scores"),
    [
        ("N", GRADES),
        ("incorrect", {"incorrect": 0, "C": 1, "I": 0}),
        (-1, {"I": 0, "C": 1, -1: -1}),
    ],
)
def test_an_empty_answer_with_any_mark_that_scores_lowest_is_told(tmp_path, mark, scores):
    change = with_fields({"scores.match.value": mark, **EMPTY}, "power")
    path = edited(tmp_path / "log.eval", change)
    with pytest.warns(bk.OutcomeWarning, match="4 of 24"):
        bk.load(path, scores=scores)


def test_an_empty_answer_that_is_right_stays_right(tmp_path):
    change = with_fields({"scores.match.value": "C", **EMPTY})
    path = edited(tmp_path / "log.eval", change)
    assert totals(bk.load(path, empty_output="missing")) == [0, 24, 0]


def test_a_call_of_a_tool_is_no_empty_answer(tmp_path):
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": "submit"}]}
    choices = [{"message": message, "stop_reason": "tool_calls"}]
    change = with_fields({"output.completion": "", "output.choices": choices})
    assert totals(bk.load(edited(tmp_path / "log.eval", change))) == [11, 13, 0]


def as_numbers(record):
    record["scores"]["match"]["value"] = int(record["scores"]["match"]["value"] == "C")


def test_marks_of_two_scales_are_refused(tmp_path):
    path = edited(tmp_path / "beta.eval", as_numbers, source="arithmetic_b.eval")
    assert totals(bk.load(path)) == [12, 12, 0]
    logs = [INSPECT / "arithmetic_a.eval", path]
    refused(
        lambda: bk.load(logs),
        "'[IC]' at .* is not one of 0, 1",
        r"arithmetic_a\.eval",
        r"scores=\{.*'C': 1",
        r"scores=\{.*'I': 0",
    )
    assert totals(bk.load(logs, scores={"I": 0, "C": 1, 0: 0, 1: 1})) == [11, 13, 12, 12, 0]

    def half(record):
        if record["epoch"] > 2:
            as_numbers(record)

    refused(lambda: bk.load(edited(path, half)), "is not one of 0, 1")


@pytest.mark.parametrize("value", [57, 0.57, 100, 2, -1, 1e400, "57", "yes", "1", "c"])
def test_other_scales_are_refused(tmp_path, value):
    def change(record):
        as_numbers(record)
        if (record["id"], record["epoch"]) == ("divide", 3):
            record["scores"]["match"]["value"] = value

    refused(
        lambda: bk.load(edited(tmp_path / "log.eval", change)),
        r"^log\.eval",
        "'divide'",
        "trial 3",
        "scores=|Write every outcome",
    )


@pytest.mark.parametrize("values", [(True, False), (1.0, 0.0), (1, 0.0), (1, False)])
def test_equal_numbers_are_one_mark(tmp_path, values):
    def change(record):
        right = record["scores"]["match"]["value"] == "C"
        record["scores"]["match"]["value"] = values[not right]

    assert totals(bk.load(edited(tmp_path / "log.eval", change))) == [11, 13, 0]


def test_partial_credit_needs_scores():
    path = INSPECT / "two_scorers.eval"
    refused(lambda: bk.load(path), "'graded', 'numeric'", "scorer='graded'")
    refused(
        lambda: bk.load(path, scorer="graded"),
        r"scores=\{'I': 0, 'C': 1, 'N': \.\.\., 'P': \.\.\.\}",
    )
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
        lambda: bk.load(path, scorer=name, missing=policy),
        "'aspects/a', 'aspects/b'",
        re.escape(repr(name)),
    )


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


def conflicting(record):
    """The same wrong answer, once marked right."""
    if record["id"] == "power":
        record["scores"]["match"] |= {"answer": "7", "value": "C" if record["epoch"] == 2 else "I"}


def test_equal_answers_with_different_marks(tmp_path):
    path = edited(tmp_path / "log.eval", conflicting)
    assert only(bk.load(path))["power"] == (3, 1, 0)
    refused(
        lambda: bk.load(path, answers=True),
        r"^log\.eval",
        "'7'",
        "'power'",
        "right 1 and wrong 3 times",
        "majority",
    )
    rules = bk.AnswerRules(conflict="majority")
    data = bk.load(path, answers=True, answer_rules=rules)
    assert only(data)["power"] == (3, 1, 0)
    assert "1 marks overruled" in data.card()


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
        lambda: bk.load(path),
        "4 of 24 trials",
        "2 unscored",
        "1 errored",
        "1 invalidated",
        "'divide', trial 1",
        "missing='ignore'",
        "missing='wrong'",
    )
    data = bk.load(path, missing="ignore")
    assert only(data)["divide"] == (0, 0, 4)
    for words in ("2 unscored", "1 errored", "1 invalidated", r"1 trials of log.*limit \(token\)"):
        assert re.search(words, data.card()), words
    data = bk.load(path, missing="wrong")
    assert only(data)["divide"] == (4, 0, 4)


def test_an_error_outweighs_a_mark(tmp_path):
    change = with_fields({"error": {"message": "boom"}})
    path = edited(tmp_path / "log.eval", change)
    refused(lambda: bk.load(path), "24 of 24", "24 errored")
    refused(lambda: bk.load(path, missing="ignore"), "at least one outcome")
    assert totals(bk.load(path, missing="wrong"))[:2] == [24, 0]


@pytest.mark.parametrize("name", ["cancelled", "error_status", "started", "retried_1"])
def test_unfinished_logs_are_told(name):
    data = bk.load(INSPECT / f"{name}.eval", missing="ignore")
    status = {"error_status": "error", "retried_1": "error"}.get(name, name)
    assert re.search(
        rf"CHECK: {name}\.eval has status '{status}' and \d+ trials of 12", data.card()
    )
