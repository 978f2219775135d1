"""Shapes that people have, and remedies that are executed as they are written.

Names of fields: ragas ``EvaluationResult.to_pandas`` (user_input, response, metrics by name);
MLflow ``eval_results_table.json`` (``columns``, ``data``, as pandas writes ``orient="split"``);
METR ``runs.jsonl`` (score_binarized, score_cont); pandas names columns of one name x, x.1, x.2;
HumanEval results as `tests.logs.make_code`; all others are of published files of evaluations.
"""

import ast
import gzip
import io
import json
import re
import sys

import pandas as pd
import pytest

import bayesatk as bk
from tests.io.logs import counts, load_quietly, only, refused, totals, written_json

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def text(path, content):
    path.write_text(content)
    return path


def remedy(message, argument):
    """The value that a message proposes for an argument; ... is what the reader knows."""
    start = message.index(f"{argument}=") + len(argument) + 1
    for end in range(start + 1, len(message) + 1):
        try:
            return ast.literal_eval(message[start:end].replace("...", "'FILL'"))
        except (SyntaxError, ValueError):
            continue
    raise AssertionError(message)


def graded(scores):
    return {key: float(key) if found == "FILL" else found for key, found in scores.items()}


# ------------------------------------------------------------------ remedies, as they are written

FRACTIONS = (0, 0.9299999, 1 / 3, 1)


def fractional(path, ending):
    rows = [{"question": q, "score": s} for q in "ab" for s in FRACTIONS]
    path = path.with_suffix(ending)
    frame = pd.DataFrame(rows)
    if ending == ".csv":
        frame.to_csv(path, index=False)
    elif ending == ".parquet":
        frame.to_parquet(path)
    else:
        lines(path, rows)
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_scores_that_were_rounded_in_the_remedy_do_not_loop(tmp_path, ending):
    """It proposed 0.93 for .9299999, which is none of the outcomes, for ever."""
    path = fractional(tmp_path / "runs", ending)
    message = refused(lambda: bk.load(path), "not one of 0, 1")
    scored = graded(remedy(message, "scores"))  # all of them at once
    assert len(scored) == 4
    assert totals(bk.load(path, scores=scored)) == [2, 2, 2, 2, 0]
    assert "scores='numbers'" in message
    rule = remedy(message, "success")
    assert totals(bk.load(path, scores="numbers", success=rule)) == [4, 4, 0]


def test_very_many_scores_are_not_listed(tmp_path):
    path = lines(tmp_path / "runs.jsonl", [{"id": n, "score": n / 50} for n in range(50)])
    message = refused(lambda: bk.load(path), "scores='numbers'")
    assert "0.02: ..." not in message


def test_marks_beside_a_fractional_reward_are_named(tmp_path):
    rows = [{"example_id": n, "prompt": f"p{n}", "completion": "x", "reward": 0.3 * n,
             "correct": float(n % 2), "style": 0.5} for n in range(4)]  # fmt: skip
    path = lines(tmp_path / "results.jsonl", rows)
    message = refused(lambda: bk.load(path), "Marks of 0 and 1 alone are of: scorer='correct'")
    assert totals(bk.load(path, scorer=remedy(message, "scorer"))) == [2, 2, 0]
    rule = remedy(message, "success")  # of 0, .3, .6, .9 two reach the middle of shares
    assert totals(bk.load(path, scores="numbers", success=rule)) == [2, 2, 0]


@pytest.mark.parametrize("marks", [["N"], ["N", "I"], ["P", "N"]])
def test_scores_of_marks_of_inspect_that_are_few(tmp_path, marks):
    from tests.io.logs import as_document

    order = iter(marks * 24)

    def change(sample):
        sample["scores"]["match"]["value"] = next(order)

    path = as_document(tmp_path / "log.json", change)
    message = refused(lambda: bk.load(path), "Score every outcome that may occur")
    scores = remedy(message, "scores")
    assert {*marks} < {*scores}
    data = bk.load(path, scores={mark: 0.5 if found == "FILL" else found
                                 for mark, found in scores.items()})  # fmt: skip
    assert int(data.trials.sum()) == 24


def test_columns_of_counts_and_marks_by_other_names(tmp_path):
    path = text(tmp_path / "a.csv", "Task,Success Count,Total Attempts\na,1,3\nb,2,3\n")
    assert only(bk.load(path)) == {"a": (2, 1, 0), "b": (1, 2, 0)}
    path = text(tmp_path / "b.csv", "task,total_trials,successful_trials\na,3,1\nb,3,2\n")
    assert only(bk.load(path)) == {"a": (2, 1, 0), "b": (1, 2, 0)}
    metr = [{"task_id": f"t{q}", "run_id": f"r{q}{t}", "alias": "GPT", "model": "gpt",
             "score_binarized": t, "score_cont": 0.5} for q in "ab" for t in (0, 1)]  # fmt: skip
    assert counts(bk.load(lines(tmp_path / "runs.jsonl", metr))) == {
        "gpt": {"ta": (1, 1, 0), "tb": (1, 1, 0)}
    }


def test_columns_of_trials_are_named_and_read(tmp_path):
    path = text(tmp_path / "m.csv", "task,trial_1,trial_2,Trial 3\na,1,0,1\nb,1,1,\n")
    for options in ({}, {"wide": True}, {"columns": {"outcome": "trial_1,trial_2,Trial 3"}}):
        data = bk.load(path, **options)
        assert counts(data) == {"system": {"a": (1, 2, 0), "b": (0, 2, 0)}}
        assert "trials that were not run: 1" in data.card()  # a blank at the end of a row
    path = text(tmp_path / "m.csv", "task,trial_1,trial_2,Trial 3\na,1,,1\nb,1,1,\n")
    refused(lambda: bk.load(path), "missing")  # a blank between trials is one without an outcome


def test_a_wide_table_takes_columns_of_marks_alone(tmp_path):
    path = text(tmp_path / "w.csv", "question,reference output,m1,m2\na,Paris,1,0\nb,Rome,1,1\n")
    data = bk.load(path, wide=True)
    assert data.systems == ["m1", "m2"]
    assert "left out: columns 'reference output'" in data.card()
    refused(lambda: bk.load(text(tmp_path / "x.csv", "q,m1\na,1\nb,0.5\n"), wide=True), "0.5")
    marks = text(tmp_path / "y.csv", "q,note,m1\na,x,C\nb,y,I\n")
    assert counts(bk.load(marks, wide=True)) == {"m1": {"a": (0, 1, 0), "b": (1, 0, 0)}}
    none = text(tmp_path / "z.csv", "q,note\na,x\nb,y\n")
    refused(lambda: bk.load(none, wide=True), "none of \\['note'\\] holds any")


# ------------------------------------------------------------------ own JSON of an evaluation

LISTS = ("results", "rows", "cases", "records", "examples")
ITEMS = ("id", "prompt", "input", "question", "case", "name", "task_name", "instance_id",
         "sample_id", "Sample ID", "user_input", "instruction", "taskName")  # fmt: skip
MARKS = ("passed", "correct", "is_correct", "resolved", "success", "score", "isCorrect")


@pytest.mark.parametrize("within", LISTS)
@pytest.mark.parametrize("item", ITEMS)
def test_own_json_of_an_evaluation(tmp_path, within, item):
    for mark in MARKS:
        rows = [{item: "a", mark: True, "latency": 2.5}, {item: "b", mark: False, "latency": 1}]
        path = written_json(tmp_path / "e.json", {"model": "m", "accuracy": 0.5, within: rows})
        assert only(bk.load(path)) == {"a": (0, 1, 0), "b": (1, 0, 0)}
        assert only(bk.load(pd.DataFrame(rows))) == {"a": (0, 1, 0), "b": (1, 0, 0)}


@pytest.mark.parametrize(("names", "taken"), [
    (("id", "name", "prompt"), "id"), (("name", "prompt"), "name"), (("case", "input"), "case"),
    (("question", "task_id"), "task_id"), (("Sample ID", "instruction"), "Sample ID"),
])  # fmt: skip
def test_an_id_goes_before_a_name_and_a_name_before_a_prompt(tmp_path, names, taken):
    rows = [{**{name: f"{name} {q}" for name in names}, "passed": 1} for q in "ab"]
    data = bk.load(lines(tmp_path / "r.jsonl", rows))
    assert f"question = column {taken!r}" in data.card()


def test_two_names_of_one_meaning_are_still_ambiguous(tmp_path):
    rows = [{"task_id": "a", "sample_id": "b", "passed": 1}]
    refused(lambda: bk.load(lines(tmp_path / "r.jsonl", rows)), "several could be it")


# ------------------------------------------------------------------ tables of tools


def test_ragas(tmp_path):
    content = "user_input,response,reference,faithfulness\nq1,r,x,1.0\nq2,r,x,0.0\n"
    path = text(tmp_path / "ragas.csv", content)
    message = refused(lambda: bk.load(path), "'faithfulness'", "columns=")
    data = bk.load(path, columns=remedy(message, "columns"))
    assert only(data) == {"q1": (0, 1, 0), "q2": (1, 0, 0)}


def test_mlflow(tmp_path):
    frame = pd.DataFrame({"inputs": ["q1", "q2"], "outputs": ["o", "o"], "exact_match/v1": [1, 0]})
    path = tmp_path / "eval_results_table.json"
    path.write_text(json.dumps(frame.to_dict(orient="split") | {"index": None}))
    for order in (["columns", "data"], ["data", "columns"]):
        whole = frame.to_dict(orient="split")
        written_json(path, {name: whole[name] for name in order})
        if order[0] == "data":  # pandas writes the names first
            continue
        data = bk.load(path, columns={"outcome": "exact_match/v1"})
        assert only(data) == {"q1": (0, 1, 0), "q2": (1, 0, 0)}


def test_marks_within_lists_and_objects(tmp_path):
    rows = [{"id": "a", "infos": [{"r": 1}, {"r": 0}]}, {"id": "b", "infos": [{"r": 1}]}]
    for path in (written_json(tmp_path / "e.json", rows), lines(tmp_path / "e.jsonl", rows)):
        data = bk.load(path, columns={"question": "id", "outcome": "infos[].r"})
        assert only(data) == {"a": (1, 1, 0), "b": (0, 1, 0)}
    rows = [{"id": "a", "gpt-4.1": {"is_correct": True}, "o3": {"is_correct": False}},
            {"id": "b", "gpt-4.1": {"is_correct": True}, "o3": {"is_correct": True}}]  # fmt: skip
    path = written_json(tmp_path / "by_model.json", rows)
    data = bk.load(path, wide=True, columns={"question": "id", "outcome": "is_correct"})
    assert counts(data) == {"gpt-4.1": {"a": (0, 1, 0), "b": (0, 1, 0)},
                            "o3": {"a": (1, 0, 0), "b": (0, 1, 0)}}  # fmt: skip


@pytest.mark.parametrize(("rates", "kind"), [
    ((90.0, 33.3, 0, 100), "percent"), ((0.9, 0.333, 0, 1), "share"), (("90", "30.0", "0", "100"),
     "percent"),
])  # fmt: skip
@pytest.mark.parametrize("trials", [10, "10"])
def test_percentages_with_the_number_of_trials_that_is_given(tmp_path, rates, kind, trials):
    rows = [{"id": name, "pass@1": rate} for name, rate in zip("abcd", rates, strict=True)]
    if kind == "share" or rates[0] == 90.0:
        rows[1]["pass@1"] = 30.1 if kind == "percent" else 0.3
    columns = {"columns": {"rate": "pass@1", "trials": trials}}
    expected = {"a": (1, 9, 0), "b": (7, 3, 0), "c": (10, 0, 0), "d": (0, 10, 0)}
    csv = tmp_path / "r.csv"
    pd.DataFrame(rows).to_csv(csv, index=False)
    for path in (lines(tmp_path / "r.jsonl", rows), csv):
        data = bk.load(path, **columns)
        assert only(data) == expected
        assert f"pass@1 ({kind})" in data.card()
    for path in (tmp_path / "r.jsonl", csv):
        message = refused(
            lambda path=path: bk.load(path, columns={"rate": "pass@1", "trials": 3}),
            "percentages of 3 trials",
        )
        assert remedy(message, "columns")["trials"] == "FILL"
    message = refused(lambda: bk.load(csv, columns={"rate": "pass@1"}), "number of trials beside")
    assert only(bk.load(csv, columns=remedy(message, "columns"))) == expected


def test_nemo_gym(tmp_path):
    """Rollouts have _ng_task_index, _ng_rollout_index, reward; profiles, pass_rate_passed of them.

    Fields of rollouts as ``rollout_collection`` writes them, of profiles as published data sets.
    """
    rows = [{"_ng_task_index": n, "_ng_rollout_index": t, "reward": float(t == n),
             "responses_create_params": {}} for n in range(2) for t in range(2)]  # fmt: skip
    path = lines(tmp_path / "rollouts.jsonl", rows)
    assert only(bk.load(path)) == {0: (1, 1, 0), 1: (1, 1, 0)}
    rows = [{"id": "a", "pass_rate": 0.75, "pass_rate_total": 4, "pass_rate_passed": 3}]
    assert only(bk.load(lines(path, rows))) == {"a": (1, 3, 0)}


def test_a_line_of_totals_is_no_trial(tmp_path):
    rows = [{"task_id": "a", "completion": "x", "passed": True, "result": "passed"},
            {"task_id": "b", "completion": "x", "passed": False, "result": "failed"},
            {"pass@1": 0.5}]  # fmt: skip
    path = lines(tmp_path / "samples.jsonl_results.jsonl", rows)
    assert only(bk.load(path)) == {"a": (0, 1, 0), "b": (1, 0, 0)}
    rows[2] = {"pass@1": 0.5, "completion": "y"}
    refused(lambda: bk.load(lines(path, rows)), "line 3 must have the field 'task_id'")


def test_rows_of_every_eval_ever_without_marks_are_a_table(tmp_path):
    rows = [{"evaluation_id": "e", "sample_id": f"s{n}", "model_id": "m",
             "evaluation": {"score": n}} for n in range(2)]  # fmt: skip
    path = lines(tmp_path / "e.jsonl", rows)
    message = refused(lambda: bk.load(path), "Marks are in 'evaluation.score'")
    told = remedy(message, "columns")
    assert only(bk.load(path, columns=told)) == {"s0": (1, 0, 0), "s1": (0, 1, 0)}


# ------------------------------------------------------------------ shapes of public repositories
# Names of fields and how they are nested are those of the files; values are made up.


def test_columns_that_tell_rows_of_a_question_apart_are_named(tmp_path):
    """Two modes of one model were read as two trials of one system (PE6201_...Text2SQLAnalyser)."""
    rows = [{"id": f"Q{q}", "mode": mode, "question": f"What {q}?", "refused": False, "sql": f"{q}",
             "correct": mode == "system", "latency_s": q + (mode == "system") / 9}
            for q in range(4) for mode in ("baseline", "system")]  # fmt: skip
    path = written_json(tmp_path / "eval_results.json", {"model": "gpt", "results": rows})
    with pytest.warns(bk.OutcomeWarning, match="the rows of a question differ in column 'mode'"):
        data = bk.load(path)
    assert "CHECK: the rows of a question differ in column 'mode' ('baseline', 'system')" in (
        data.card()
    )
    data = bk.load(path, columns=remedy(data.card(), "columns"))
    assert counts(data) == {
        "baseline": {f"Q{q}": (1, 0, 0) for q in range(4)},
        "system": {f"Q{q}": (0, 1, 0) for q in range(4)},
    }
    assert bk.load(path, columns={"trial": "mode"}).trials.values.tolist() == [[2] * 4]


@pytest.mark.parametrize("change", [
    {"response": lambda q, t: "A"},  # the same in both rows
    {"response": lambda q, t: f"{q}-{t}"},  # of one row alone, as times and costs
    {"trial": lambda q, t: t, "mode": lambda q, t: t},
])  # fmt: skip
def test_columns_that_do_not_tell_rows_apart_are_not(tmp_path, change):
    rows = [{"id": q, "passed": (q + t) % 2} | {name: of(q, t) for name, of in change.items()}
            for q in range(4) for t in range(2)]  # fmt: skip
    assert "differ in column" not in bk.load(lines(tmp_path / "runs.jsonl", rows)).card()


def test_conditions_are_named_however_often_each_was_tried(tmp_path):
    """condition x task, unevenly often (agent-budget-framing); harness x seed."""
    rows = [{"condition": condition, "task_id": task, "correct": (task + trial) % 2, "panic": 0.1}
            for place, condition in enumerate(("control", "credits")) for task in range(4)
            for trial in range(2 + (task + place) % 3)]  # fmt: skip
    path = lines(tmp_path / "trials.jsonl", rows)
    with pytest.warns(bk.OutcomeWarning, match="differ in column 'condition'"):
        card = bk.load(path).card()
    assert bk.load(path, columns=remedy(card, "columns")).systems == ["control", "credits"]
    rows = [{"task_id": task, "harness": harness, "seed": seed, "passed": seed == task}
            for task in range(2) for harness in ("naive", "loop") for seed in range(2)]  # fmt: skip
    message = refused(lambda: bk.load(lines(path, rows)), "must occur once", "'harness' is the")
    assert bk.load(path, columns=remedy(message, "columns")).systems == ["naive", "loop"]


def test_arrays_under_other_names_and_marks_within_them(tmp_path):
    """{"queries": [{id, trials: [{correct}]}]} (oracle-forge)."""
    queries = [{"id": f"query{q}", "first_trial_correct": False, "trial_accuracy": 0.5,
                "trials": [{"trial": t + 1, "correct": t == q} for t in range(2)]}
               for q in range(2)]  # fmt: skip
    path = written_json(tmp_path / "results.json", {"run": {"per_dataset": 2}, "queries": queries})
    message = refused(lambda: bk.load(path), "arrays in 'queries'")
    records = {"records": remedy(message, "records")}
    message = refused(lambda: bk.load(path, **records), "Marks are in 'trials..\\.correct")
    data = bk.load(path, **records, columns=remedy(message, "columns"))
    assert only(data) == {"query0": (1, 1, 0), "query1": (1, 1, 0)}
    nested = written_json(tmp_path / "nested.json", {"output": {"runs": queries}})
    assert remedy(refused(lambda: bk.load(nested), "arrays in"), "records") == "output.runs"


def test_lines_that_are_runs_of_many_questions(tmp_path):
    """{"ts", "results": [{eval, passed, checks: [{passed}]}]} a line (JesseVent/evals)."""
    path = lines(tmp_path / "results.jsonl", [
        {"ts": f"2026-06-1{run}", "results": [
            {"eval": f"build-{q}", "prompt": f"p{q}", "passed": (q + run) % 2 == 0,
             "checks": [{"name": "c", "passed": True}]} for q in range(2)]}
        for run in range(3)
    ])  # fmt: skip
    message = refused(lambda: bk.load(path), "one question column")
    data = bk.load(path, records=remedy(message, "records"), columns={"question": "eval"})
    assert only(data) == {"build-0": (1, 2, 0), "build-1": (2, 1, 0)}
    refused(lambda: bk.load(path, records="runs"), "line 1 must have a list of records at runs")


def test_marks_by_names_of_their_own(tmp_path):
    """ex (SQLExam), pass (TaskPilot), prompt_id beside task (GenAI-Travel-Evaluation)."""
    rows = [
        {"question_id": q, "predicted_sql": "S", "ex": q % 2, "usefulness": 1.0} for q in (1, 0)
    ]
    path = lines(tmp_path / "a.jsonl", rows)
    message = refused(lambda: bk.load(path), "Marks are in 'ex'\\. Name it:")
    assert only(bk.load(path, columns=remedy(message, "columns"))) == {1: (0, 1, 0), 0: (1, 0, 0)}
    path = text(tmp_path / "b.csv", "id,annotation_exact_label,annotation_exact_score\na,x,1.0\n")
    message = refused(lambda: bk.load(path), "Marks are in 'annotation_exact_score'")
    assert only(bk.load(path, columns=remedy(message, "columns"))) == {"a": (0, 1, 0)}
    rows = [{"id": f"TC{n}", "tools_match": True, "pass": n > 0} for n in range(2)]
    assert only(bk.load(lines(path.with_suffix(".jsonl"), rows))) == {
        "TC0": (1, 0, 0), "TC1": (0, 1, 0),
    }  # fmt: skip
    path = text(tmp_path / "c.csv", "prompt_id,task,hallucination_rate\np1,Safety,1.0\n")
    refused(lambda: bk.load(path), "several could be it: .'prompt_id', 'task'.")


def test_doctor_shows_what_may_be_marks_before_what_is_nothing(tmp_path):
    names = [f"field_{n}" for n in range(20)]
    path = text(tmp_path / "wide.csv", ",".join([*names, "annotation_exact_score", "example_id"])
                + "\n" + ",".join(["x"] * 20 + ["1", "a"]) + "\n")  # fmt: skip
    told = str(bk.checks.inspect_source(path))
    assert re.search("example_id +question", told)
    assert re.search(r"annotation_exact_score +marks\?", told)
    assert "and 7 more" in told


# ------------------------------------------------------------------ compressed files, and streams

PACKINGS = {".gz": gzip.compress, ".zst": compress}


@pytest.mark.parametrize("ending", PACKINGS)
def test_compressed_tables_and_logs_are_as_if_they_were_not(tmp_path, ending):
    from tests.io.logs import LOGS

    pack = PACKINGS[ending]
    files = {
        "runs.csv": LOGS / "tables" / "long.csv", "lists.jsonl": LOGS / "tables" / "lists.jsonl",
        "out.json": LOGS / "records" / "others" / "promptfoo.json",
        "humaneval.jsonl": LOGS / "code" / "humaneval.jsonl_results.jsonl",
    }  # fmt: skip
    for name, file in files.items():
        path = tmp_path / f"{name}{ending}"
        path.write_bytes(pack(file.read_bytes()))
        plain = tmp_path / name
        plain.write_bytes(file.read_bytes())
        packed, whole = load_quietly(path), load_quietly(plain)
        assert counts(packed) == counts(whole)
        assert packed.systems == whole.systems
        assert bk.checks.inspect_source(path).kinds == {
            kind: [path.name] for kind in bk.checks.inspect_source(plain).kinds
        }
        plain.unlink()
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in "ab":
        content = f"task,passed\nx,1\ny,{int(name == 'a')}\n".encode()
        (tables / f"{name}.csv{ending}").write_bytes(pack(content))
    assert bk.load(tables).systems == ["a", "b"]


@pytest.mark.long
@pytest.mark.parametrize("ending", PACKINGS)
def test_a_compressed_file_that_is_cut_or_a_bomb(tmp_path, ending):
    path = tmp_path / f"runs.csv{ending}"
    rows = b"task,passed\n" + b"".join(b"%d,1\n" % n for n in range(40_000))
    whole = PACKINGS[ending](rows)
    path.write_bytes(whole[: len(whole) // 2])
    refused(lambda: bk.load(path), r"runs.csv", "truncated or damaged")
    path.write_bytes(b"task,passed\na,1\n")  # unpacked by a browser, under the same name
    assert only(bk.load(path)) == {"a": (0, 1, 0)}
    path.write_bytes(PACKINGS[ending](b"task,passed\na,1\n" + b"\n" * (300 << 20)))
    refused(lambda: bk.load(path, budget=1 << 20), "unpacked, must have at most")
    path = tmp_path / f"log.eval{ending}"
    path.write_bytes(PACKINGS[ending](b"PK"))
    refused(lambda: bk.load(path), "file type must be one of", r"\.eval\.")


@pytest.mark.parametrize("ending", ["", *PACKINGS])
@pytest.mark.parametrize("read", [bk.load, bk.checks.inspect_source])
def test_a_dash_is_standard_input(read, ending, monkeypatch):
    content = b"task,passed\na,1\na,0\nb,1\nb,1\n"
    packed = PACKINGS[ending](content) if ending else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    result = read("-")
    data = result if read is bk.load else result.data
    assert totals(data) == [1, 3, 0]


def test_standard_input_is_converted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"task,passed\na,1\na,0\n")))
    path = bk.convert("-", tmp_path / "runs.csv")
    assert path.read_text().splitlines() == ["question,outcome", "a,1", "a,0"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_rule_for_success_reads_any_numbers(tmp_path, ending):
    path = tmp_path / f"runs.{ending}"
    frame = pd.DataFrame({"task": ["a", "a", "b", "b"], "score": [0.93, 0.0, 1.0, 0.5]})
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    data = bk.load(path, success="score >= 0.9")
    assert data.dataset.identical(bk.load(path, scores="numbers", success="score >= 0.9").dataset)
    assert totals(data) == [2, 2, 0]
    # Of right and wrong all may be right; a rule that nothing can fail is refused.
    all_right = written_json(tmp_path / "right.json", [{"task": "a", "score": 1}] * 3)
    assert totals(bk.load(all_right, success="score >= 0.9")) == [0, 3, 0]
    refused(lambda: bk.load(all_right, success="score >= 0"), "success must split the scores")
    path.write_text("task,score\na,C\na,I\n")
    if ending == "csv":
        assert totals(bk.load(path, success="score >= 0.9")) == [1, 1, 0]
