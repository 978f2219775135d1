"""Genuine logs of every format give the counts of an independent reading."""

import json
from collections import Counter

import pytest

import bayesatk as bk
from tests.io.logs import (
    CODE,
    GRADES,
    INSPECT,
    LM_EVAL,
    QUIET,
    STAMP,
    inspect_samples,
    lines,
    load_quietly,
    only,
    totals,
)

pytestmark = QUIET


def marks_of_inspect(path, scorer=None, key=None):
    """{question: Counter(mark or None)}, from the definition of the format."""
    marks = {}
    for sample in inspect_samples(path):
        mark = None
        if not sample.get("error") and sample["scores"]:
            name = scorer or next(iter(sample["scores"]))
            mark = sample["scores"][name]["value"]
            mark = mark[key] if key else mark
        mark = None if mark != mark else mark
        marks.setdefault(sample["id"], Counter())[mark] += 1
    return marks


def marks_of_lm_eval(path, metric, filter=None):
    marks = {}
    for row in lines(path):
        if filter is None or row["filter"] == filter:
            marks.setdefault(row["doc_id"], Counter())[row[metric]] += 1
    return marks


def marks_of_evalplus(path, tests):
    marks = {}
    for task, solutions in json.loads(path.read_text())["eval"].items():
        if isinstance(solutions, dict):
            rows = [[entry[0] == "success" for entry in solutions[test]] for test in tests]
        else:
            rows = [
                [solution[f"{test}_status"] == "pass" for solution in solutions] for test in tests
            ]
        marks[task] = Counter(int(all(passes)) for passes in zip(*rows, strict=True))
    return marks


def marks_of_human_eval(path):
    marks = {}
    for row in lines(path):
        marks.setdefault(row["task_id"], Counter())[int(row["passed"])] += 1
    return marks


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
        question: (*(counter[mark] for mark in marks), counter[None])
        for question, counter in reading(path).items()
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
    logs = [*INSPECT.iterdir(), *LM_EVAL.glob("*/samples_*"), *CODE.glob("*_results.json*")]
    assert set(logs) == read
