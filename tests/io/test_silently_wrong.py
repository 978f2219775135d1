"""What was read without an error and was wrong, on real files; each file is made as its tool does.

verifiers: ``results.jsonl`` and ``metadata.json`` as those of ``tests/logs/records/verifiers``.
Harbor, promptfoo, HELM: the genuine files of ``tests/logs/records`` with one thing changed.
"""

import json
import re
import shutil

import pandas as pd
import pytest

import bayesatk as bk
from tests.io.logs import (
    INSPECT,
    LM_EVAL,
    LOGS,
    counts,
    harbor_trial,
    load_quietly,
    refused,
    totals,
)

RECORDS = LOGS / "records"


def verifiers_run(folder, rows, **metadata):
    """Rollouts of (id, prompt, answer, reward), in the order of the file, and totals beside."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {
                    "example_id": name,
                    "prompt": prompt,
                    "completion": "done",
                    "answer": answer,
                    "task": "default",
                    "reward": float(reward),
                }
            )
            + "\n"
            for name, prompt, answer, reward in rows
        )
    )
    (folder / "metadata.json").write_text(json.dumps({"env_id": "e", "model": "m", **metadata}))
    return path


def by_question(data):
    (rows,) = counts(data).values()
    return sorted(rows.values())


# ------------------------------------------------------------------ verifiers

STATED = {"num_examples": 3, "rollouts_per_example": 2}


@pytest.mark.parametrize(("rows", "read", "key"), [
    ([(n, "Guess the word.", "", n > 0) for n in range(3) for _ in range(2)], "1 questions x 6",
     "example_id"),
    ([(n, f"Hello, I am user {n}.{t}", "", t) for n in range(3) for t in range(2)],
     "6 questions x 1", "example_id"),
    ([(n, f"p{n}", f"answer {n}.{t}", t) for t in range(2) for n in range(3)], "6 questions x 1",
     "prompt"),
], ids=["same prompts", "a simulated user", "answers that a rollout draws"])  # fmt: skip
def test_what_was_asked_does_not_merge_or_split_questions(tmp_path, rows, read, key):
    path = verifiers_run(tmp_path, rows, **STATED)
    refused(lambda: bk.load(path), f"states 3 questions x 2 trials; {read} trials")
    columns = {"question": key, "outcome": "reward", "content": key}
    data = bk.load(path, format="jsonl", columns=columns)
    assert data.dataset.sizes["question"] == 3
    assert totals(data)[1] == sum(row[3] for row in rows)


def test_ids_that_count_requests_are_passed_over(tmp_path):
    rows = [
        (request // 2, f"p{n}", "a", n == 0)
        for request, (_, n) in enumerate((t, n) for t in range(2) for n in range(3))
    ]
    data = bk.load(verifiers_run(tmp_path, rows, **STATED))
    assert by_question(data) == [(0, 2, 0), (2, 0, 0), (2, 0, 0)]


def test_a_run_that_was_broken_off_is_read_and_noted(tmp_path):
    rows = [(n, f"p{n}", "a", 1) for n in range(3) for _ in range(2)][:-1]
    data = bk.load(verifiers_run(tmp_path, rows, **STATED))
    assert totals(data) == [0, 5, 0]
    assert "results.jsonl states 3 questions x 2 trials; 3 questions x 1 to 2 trials (5" in (
        data.card()
    )


# ------------------------------------------------------------------ totals that logs state


def copied(name, folder):
    return shutil.copytree(RECORDS / name, folder / name)


def dropped(path, *way):
    """Take the last element out of a list within a document."""
    whole = json.loads(path.read_text())
    container = whole
    for key in way:
        container = container[key]
    container.pop()
    path.write_text(json.dumps(whole))
    return path


def changed(path, *way, to):
    whole = json.loads(path.read_text())
    container = whole
    for key in way[:-1]:
        container = container[key]
    container[way[-1]] = to
    path.write_text(json.dumps(whole))
    return path


@pytest.mark.parametrize(("name", "lose", "words"), [
    ("harbor", lambda at: shutil.rmtree(at / "2026-11-21__10-00-00" / "hello-world__0xyz"),
     "states 6 trials; "),
    ("terminal_bench", lambda at: dropped(at / "run-alpha" / "results.json", "results"),
     r"results.json states 3 trials; 2 questions x 2 to 3 trials \(5 trials\) were read"),
    ("swe_bench", lambda at: dropped(at / "org__alpha-4.1.run_1.json", "incomplete_ids"),
     "states 6 questions; 5 questions"),
    ("tau", lambda at: dropped(changed(at / "tau2.json", "info", "num_trials", to=3),
                               "simulations"),
     "tau2.json states 2 questions x 3 trials; 2 questions x 2 to 3 trials"),
    ("others", lambda at: dropped(at / "promptfoo.json", "results", "results"),
     "states 12 trials"),
])  # fmt: skip
def test_trials_that_are_fewer_than_stated_are_noted(tmp_path, name, lose, words):
    folder = copied(name, tmp_path)
    files = {
        "swe_bench": "org__alpha-4.1.run_1.json",
        "tau": "tau2.json",
        "others": "promptfoo.json",
        "terminal_bench": "run-alpha",
    }
    source = folder / files.get(name, "")
    lose(folder)
    card = load_quietly(source, missing="ignore").card()
    assert re.search(words, card), card


def test_whole_logs_say_that_they_are(tmp_path):
    card = load_quietly(RECORDS / "harbor", missing="ignore").card()
    assert "as many as stated: 6 trials" in card
    assert "4 trials" in bk.load(INSPECT / "arithmetic_a.eval").card()
    card = bk.load(INSPECT / "arithmetic_a.eval").card()
    assert "as many as stated: 6 questions x 4 trials" in card
    file = next((LM_EVAL / "example__alpha").glob("samples_sums_gen_*.jsonl"))
    stated = json.loads((file.parent / f"results_{file.stem[-26:]}.json").read_text())
    number = stated["n-samples"]["sums_gen"]["effective"]
    assert f"as many as stated: {number} questions" in load_quietly(file).card()
    shutil.copytree(file.parent, tmp_path / "x")
    path = tmp_path / "x" / file.name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert f"states {number} questions; {number - 1} questions" in load_quietly(path).card()


# ------------------------------------------------------------------ Harbor


def harbor_job(folder, name, source, **fields):
    """A job of two tasks."""
    for task in ("hello-world", "fix-permissions"):
        harbor_trial(folder / name, f"{task}__{name}", task, source=source, **fields)
    return folder / name


def test_a_task_of_several_jobs_is_one_question(tmp_path):
    for number, source in enumerate(("core", None, "core-v2")):
        harbor_job(tmp_path, f"job-{number}", source, model=f"m{number}", reward=number % 2)
    data = bk.load(tmp_path)
    assert data.dataset["question"].values.tolist() == ["fix-permissions", "hello-world"]
    assert (data.trials.values == 1).all()
    assert "tasks are no groups of the questions: 2 of 2" in data.card()
    assert bk.compare(bk.evaluate(data, "pass@1", rng=1)) is not None
    refused(lambda: bk.load(tmp_path, group="task"), "column 'task' must")


def test_null_sources_leave_the_groups_out(tmp_path):
    """Of one job whose tasks are of a data set and of none: a log cannot be written to."""
    harbor_job(tmp_path, "job", "core")
    path = tmp_path / "job" / "hello-world__job" / "result.json"
    changed(path, "source", to=None)
    data = bk.load(tmp_path)
    assert data.dataset["question"].values.tolist() == ["fix-permissions", "hello-world"]
    assert "group" not in data.dataset.coords
    assert "1 of 2 are in several tasks or in none (first: 'hello-world', in no task)" in (
        data.card()
    )


def test_runs_of_terminal_bench_of_several_data_sets_share_questions(tmp_path):
    folder = copied("terminal_bench", tmp_path)
    changed(folder / "run-beta" / "run_metadata.json", "dataset_name", to=None)
    data = load_quietly(folder, missing="ignore")
    assert data.dataset["question"].values.tolist() == ["hello-world", "fix-permissions"]
    assert "group" not in data.dataset.coords


def test_models_that_only_the_config_names_are_told_apart(tmp_path):
    for model in ("a", "b"):
        job = harbor_job(tmp_path, f"job-{model}", "core")
        for path in job.rglob("result.json"):
            changed(path, "agent_info", "model_info", to=None)
            changed(path, "config", "agent", "model_name", to=model)
    assert bk.load(tmp_path).systems == ["terminus-2 a", "terminus-2 b"]


# ------------------------------------------------------------------ promptfoo, empty text


def test_an_empty_label_is_none(tmp_path):
    whole = json.loads((RECORDS / "others" / "promptfoo.json").read_text())
    for row in whole["results"]["results"]:
        row["provider"]["label"] = ""
    path = tmp_path / "out.json"
    path.write_text(json.dumps(whole))
    data = load_quietly(path)
    assert data.systems == ["alpha", "beta"]
    assert counts(data) == counts(load_quietly(RECORDS / "others" / "promptfoo.json"))


def test_two_providers_of_one_id_are_two_systems(tmp_path):
    genuine = RECORDS / "others" / "promptfoo.json"
    whole = json.loads(genuine.read_text())
    for row in whole["results"]["results"]:
        row["provider"] = {"id": "same"}
    for prompt in whole["results"]["prompts"]:
        prompt["provider"] = "same"
    path = tmp_path / "out.json"
    path.write_text(json.dumps(whole))
    data, genuine_data = load_quietly(path), load_quietly(genuine)
    assert data.systems == ["same #1", "same #2"]
    assert (data.successes.values == genuine_data.successes.values).all()


def test_empty_text_is_a_missing_outcome_in_every_table(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"question": "a", "passed": 1}\n{"question": "b", "passed": ""}\n')
    assert totals(bk.load(path, missing="ignore")) == [0, 1, 1]
    refused(lambda: bk.load(path), "missing")
    frame = pd.DataFrame({"question": ["a", "b"], "passed": ["1", " "]})
    scored = {"scores": {"0": 0, "1": 1}, "missing": "ignore"}
    assert totals(bk.load(frame, **scored)) == [0, 1, 1]
    frame.to_parquet(tmp_path / "runs.parquet")
    assert totals(bk.load(tmp_path / "runs.parquet", **scored)) == [0, 1, 1]
    scored = {"scores": {"": 0, "x": 1}}  # unless it is said what it is worth
    path.write_text('{"question": "a", "passed": "x"}\n{"question": "b", "passed": ""}\n')
    assert totals(bk.load(path, **scored)) == [1, 1, 0]


# ------------------------------------------------------------------ HELM


def helm_run(tmp_path, extra=()):
    """A genuine run with every instance in the split valid too, always right there."""
    folder = shutil.copytree(RECORDS / "helm" / "gsm_model=provider_alpha", tmp_path / "run")
    path = folder / "per_instance_stats.json"
    entries = json.loads(path.read_text())
    valid = json.loads(json.dumps(entries))
    for entry in valid:
        entry["instance_id"] = "v" + entry["instance_id"]
        for stat in entry["stats"]:
            stat["name"]["split"] = "valid"
            stat["mean"] = 1.0
    spent = [
        {**entries[0], "stats": [{"name": {"name": name, "split": "test"}, "mean": 1.0}]}
        for name in extra
    ]
    path.write_text(json.dumps(spent + valid + entries))
    return folder


def test_one_split_of_helm_is_read_and_named(tmp_path):
    folder = helm_run(tmp_path)
    message = refused(lambda: bk.load(folder, scorer="exact_match"), "filter", "valid", "test")
    assert "filter='valid'" in message
    test = bk.load(folder, scorer="exact_match", filter="test")
    genuine = load_quietly(RECORDS / "helm" / "gsm_model=provider_alpha", scorer="exact_match")
    assert totals(test) == totals(genuine)
    assert "split 'test'" in test.card()
    assert totals(bk.load(folder, scorer="exact_match", filter="valid"))[0] == 0
    refused(lambda: bk.load(folder, scorer="exact_match", filter="dev"), "'dev'", "valid")


def test_numbers_of_tokens_are_no_marks(tmp_path):
    spent = (
        "num_references",
        "num_train_trials",
        "inference_runtime",
        "training_co2_cost",
        "finish_reason_unknown",
        "batch_size",
        "num_output_tokens",
    )
    folder = helm_run(tmp_path, spent)
    message = refused(lambda: bk.load(folder, filter="test"), "one scorer must be chosen")
    assert "scorer='exact_match'" in message
    assert not [name for name in spent if name in message]
    refused(lambda: bk.load(folder, filter="test", scorer="num_train_trials"), "exact_match")


# ------------------------------------------------------------------ several files of a system


RUNS = [f"2025-08-0{day}__14-03-0{day}" for day in range(1, 6)]


def table(path, systems, trial=False):
    rows = [
        {"system": system, "question": q, "passed": (q + n) % 2} | ({"trial": 1} if trial else {})
        for n, system in enumerate(systems)
        for q in range(2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_runs_of_one_system_in_several_tables_with_the_same_trial_numbers(tmp_path):
    files = [table(tmp_path / f"{run}.jsonl", ["m"], trial=True) for run in RUNS]
    for number, path in enumerate(files):  # as five runs are that differ
        path.write_text(path.read_text() + "\n" * number)
    refused(lambda: bk.load({"m": files}), "must occur once")
    assert bk.load({"m": files}, same_system="trials").trials.values.tolist() == [[5, 5]]
    assert bk.load(tmp_path, same_system="trials").trials.values.tolist() == [[5, 5]]
    bare = [tmp_path / f"{run}.csv" for run in RUNS]
    for number, path in enumerate(bare):
        path.write_text("question,passed\na,1\nb,0\n" + "\n" * number)
    assert bk.load({"m": bare}).systems == ["m"]


def test_runs_of_one_system_in_several_logs_under_one_name(tmp_path):
    for number in range(2):
        harbor_job(tmp_path, f"job-{number}", "core", model=f"2025-08-01 1{number}:30")
    refused(lambda: bk.load({"m": tmp_path}), "same_system='trials'")
    data = bk.load({"m": tmp_path}, same_system="trials")
    assert data.trials.values.tolist() == [[2, 2]]


OWN_RECORDS = {  # with the fields of formats whose records name no systems
    "human-eval": lambda task, mark: {"task_id": task, "completion": "x", "passed": mark},
    "lm-eval": lambda task, mark: {"doc_id": task, "resps": [["x"]], "exact_match": mark},
    "verifiers": lambda task, mark: {
        "id": task, "prompt": f"? {task}", "completion": "x", "reward": mark
    },
    "tau-bench": lambda task, mark: {"task_id": task, "reward": mark, "info": {}},
    "live-code-bench": lambda task, mark: {"question_id": task, "graded_list": [mark]},
}  # fmt: skip


@pytest.mark.parametrize("field", ["model", "agent"])
@pytest.mark.parametrize("form", OWN_RECORDS)
def test_records_that_name_their_systems_are_no_log_that_would_pool_them(tmp_path, form, field):
    rows = [
        OWN_RECORDS[form](task, mark) | {field: system}
        for system, mark in (("m", 1), ("n", 0))
        for task in "pq"
    ]
    is_document = form in ("tau-bench", "live-code-bench")
    path = tmp_path / ("own.json" if is_document else "own.jsonl")

    def write(rows):
        path.write_text(json.dumps(rows) if is_document else "\n".join(map(json.dumps, rows)))

    write(rows)
    data = bk.load(path)
    assert data.successes.sel(system="m").values.tolist() == [1, 1]
    assert data.successes.sel(system="n").values.tolist() == [0, 0]
    write([{name: value for name, value in row.items() if name != field} for row in rows[:2]])
    assert bk.checks.inspect_source(path).kinds == {form: [path.name]}
