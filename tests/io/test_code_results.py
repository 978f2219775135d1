"""Traps in results of EvalPlus and HumanEval."""

import json
import re

import pytest

import bayesatk as bk
from tests.io.logs import (
    CODE,
    QUIET,
    lines,
    refused,
    totals,
    written_json,
)

pytestmark = QUIET


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


def test_base_and_plus_tests_are_not_compared_unsaid():
    """One file has both kinds of tests, the other the base tests alone."""
    logs = [CODE / "evalplus_base_eval_results.json", CODE / "evalplus_eval_results.json"]
    refused(lambda: bk.load(logs), "'base', 'plus'")
    assert totals(bk.load(logs, scorer="base")) == [12, 12, 0]
    refused(lambda: bk.load(logs, scorer="plus"), "'base'")
    different = {"a": logs[0], "b": CODE / "humaneval.jsonl_results.jsonl"}
    assert totals(bk.load(different)) == [12, 12, 0]


def test_evalplus_needs_a_choice_of_tests():
    for name in ("evalplus", "evalplus_old"):
        path = CODE / f"{name}_eval_results.json"
        refused(lambda path=path: bk.load(path), "'base', 'plus'")
        refused(lambda path=path: bk.load(path, scorer="mbpp"), "'base', 'plus'", "'mbpp'")
    refused(lambda: bk.load(CODE / "evalplus_base_eval_results.json", scorer="plus"), "'base'")


def test_the_added_tests_of_evalplus_count_only_with_the_base_tests(tmp_path):
    judged = [("pass", "pass"), ("fail", "pass"), ("pass", "fail"), ("fail", "fail")]
    solutions = [{"base_status": base, "plus_status": plus} for base, plus in judged]
    content = {"date": "d", "eval": {"Task/0": solutions}}
    path = written_json(tmp_path / "m_eval_results.json", content)
    assert totals(bk.load(path, scorer="plus")) == [3, 1, 0]
    assert totals(bk.load(path, scorer="base")) == [2, 2, 0]


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
