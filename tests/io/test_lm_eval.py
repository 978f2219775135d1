"""Traps in samples of lm-evaluation-harness: filters, metrics, repeats, runs and models."""

import pytest

import bayesatk as bk
from tests.io.logs import (
    LM_EVAL,
    QUIET,
    STAMP,
    counts,
    genuine_rows,
    refused,
    said_or_refused,
    samples_file,
    totals,
    traced,
)

pytestmark = QUIET


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
    names = []
    for name in ("example__alpha", "example__beta"):
        for path in (LM_EVAL / name).iterdir():
            if "sums_gen" in path.name or path.name.startswith("results"):
                (tmp_path / path.name).write_bytes(path.read_bytes())
        names.append(sorted((LM_EVAL / name).glob("samples_sums_gen_*"))[0].name)
    try:
        data = bk.load([tmp_path / name for name in names])
    except bk.OutcomeError:
        return
    assert set(counts(data)) == {"example/alpha", "example/beta"}


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


def test_older_rows_do_not_list_their_metrics(tmp_path):
    rows = [
        {name: value for name, value in row.items() if name != "metrics"} for row in genuine_rows()
    ]
    path, listed = (
        samples_file(tmp_path / name, each)
        for name, each in (("older", rows), ("newer", genuine_rows()))
    )
    assert totals(bk.load(path)) == totals(bk.load(listed))
    for row in rows:
        del row["exact_match"]
    refused(lambda: bk.load(samples_file(tmp_path / "cut", rows)), "Was the file cut")


def test_metrics_of_lm_eval(tmp_path):
    path = LM_EVAL / "example__alpha" / f"samples_sums_choice_{STAMP}.jsonl"
    refused(lambda: bk.load(path), "'acc', 'acc_norm'", "scorer='acc'")
    refused(lambda: bk.load(path, scorer="bleu"), "'bleu'", "acc")
    rows = genuine_rows()
    del rows[2]["exact_match"]
    refused(lambda: bk.load(samples_file(tmp_path / "m", rows)), "line 3", "exact_match")


@pytest.mark.parametrize("name", ["doc_id", "target", "filter", "doc_hash"])
def test_a_field_that_is_no_metric_is_no_mark(tmp_path, name):
    rows = [genuine_rows()[0], genuine_rows()[1]]
    path = samples_file(tmp_path / "m", rows)
    refused(
        lambda: bk.load(path, scorer=name), "scorer must be one that the log has", "exact_match"
    )


def test_repeats_of_lm_eval_are_refused():
    path = LM_EVAL / "example__alpha" / f"samples_sums_repeats_{STAMP}.jsonl"
    refused(lambda: bk.load(path), "line 1", "3 responses", "repeats: 1")
    refused(lambda: bk.load(path, scorer="exact_match"), "3 responses")


def test_a_document_twice_in_a_file_is_refused(tmp_path):
    rows = genuine_rows()
    path = samples_file(tmp_path / "m", [*rows, rows[1]])
    refused(lambda: bk.load(path), "question 1", "twice")


def test_null_marks_of_lm_eval(tmp_path):
    rows = genuine_rows()
    rows[0]["exact_match"], rows[1]["exact_match"] = None, float("nan")
    path = samples_file(tmp_path / "m", rows)
    refused(lambda: bk.load(path), "2 of 5", "question 0")
    assert totals(bk.load(path, missing="ignore"))[2] == 2
    rows[0]["exact_match"] = [1.0, 0.0]
    refused(lambda: bk.load(samples_file(tmp_path / "m", rows), missing="ignore"), r"\[1.0, 0.0\]")


def test_memory_does_not_grow_with_the_responses_of_lm_eval(tmp_path):
    size, number, row = 1 << 20, 40, genuine_rows()[0]
    rows = []
    for document in range(number):
        text = f"{document:08d}" * (size // 8)
        rows.append(row | {"doc_id": document, "resps": [[text]], "filtered_resps": [text]})
    path = samples_file(tmp_path / "m", rows)
    del rows
    assert traced(lambda: bk.load(path)) < 20 * size
