"""Genuine logs of tools that write records: counts of an independent reading, and their traps."""

import json
import re
import shutil
import warnings
from collections import Counter
from math import comb
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

import bayesatk as bk
from bayesatk.io.logs.formats import kind_in_folder
from tests.io.logs import LOGS, QUIET, counts, load_quietly, refused, totals

pytestmark = QUIET
RECORDS = LOGS / "records"
OTHERS = RECORDS / "others"
PLATFORMS = RECORDS / "platforms"
SWE = [RECORDS / "swe_bench" / f"org__alpha-4.1.run_{run}.json" for run in (1, 2)]
VERIFIERS = RECORDS / "verifiers" / "outputs"


def read(path):
    text = path.read_text()
    return (
        [json.loads(line) for line in text.splitlines()]
        if path.suffix == ".jsonl"
        else (json.loads(text))
    )


def tally(marks):
    """{system: sorted (wrong, right, missing) of its questions}, from (system, question, mark)."""
    cells = Counter((system, question, mark) for system, question, mark in marks)
    rows_by_system = {}
    for system, question in {key[:2] for key in cells}:
        row = tuple(cells[system, question, mark] for mark in (0, 1, None))
        rows_by_system.setdefault(system, []).append(row)
    return {system: sorted(rows) for system, rows in rows_by_system.items()}


def of_terminal_bench():
    for run in sorted((RECORDS / "terminal_bench").glob("run-*")):
        model = read(run / "run_metadata.json")["model_name"]
        for trial in read(run / "results.json")["results"]:
            yield f"terminus {model}", trial["task_id"], trial["is_resolved"]


def of_harbor():
    for path in (RECORDS / "harbor").glob("*/*/result.json"):
        trial = read(path)
        reward = (trial["verifier_result"] or {"rewards": {"reward": None}})["rewards"]["reward"]
        yield "terminus-2 alpha", (trial["source"], trial["task_name"]), reward


def of_swe_bench():
    for path in SWE:
        report = read(path)
        for name in report["submitted_ids"]:
            yield "org__alpha-4.1", name, int(name in report["resolved_ids"])
        for name in report["incomplete_ids"]:
            yield "org__alpha-4.1", name, None


def of_verifiers():
    for path in VERIFIERS.rglob("results.jsonl"):
        model = read(path.with_name("metadata.json"))["model"]
        for row in read(path):
            yield model, row["prompt"][0]["content"], row["reward"]


def of_traces():
    for row in read(RECORDS / "verifiers" / "traces.jsonl"):
        for trace in row["traces"]:
            parts = trace["rewards"].values()
            whole = sum(reward["score"] * reward["weight"] for reward in parts)
            yield "provider/beta", row["task"]["key"], whole if parts else None


def of_helm(metric):
    for path in (RECORDS / "helm").rglob("per_instance_stats.json"):
        model = read(path.with_name("run_spec.json"))["adapter_spec"]["model"]
        stats_by_trial = {}
        for entry in read(path):
            if "perturbation" not in entry:
                stats_by_trial.setdefault(
                    (entry["instance_id"], entry["train_trial_index"]), {}
                ).update({stat["name"]["name"]: stat["mean"] for stat in entry["stats"]})
        for (question, _), stats in stats_by_trial.items():
            yield model, question, stats.get(metric)


def of_every_eval_ever(metric):
    for path in (RECORDS / "every_eval_ever").iterdir():
        for row in read(path):
            if row["evaluation_result_id"] == metric:
                yield row["model_id"], row["sample_id"], row["evaluation"]["is_correct"]


def of_promptfoo():
    for row in read(OTHERS / "promptfoo.json")["results"]["results"]:
        yield row["provider"]["label"], json.dumps(row["vars"]), row["success"]


def of_lighteval():
    for path in (OTHERS / "lighteval").rglob("*.parquet"):
        for row in parquet.read_table(path).to_pylist():
            yield "org/alpha", row["doc"]["id"], row["metric"]["extractive_match"]


def of_deepeval(run):
    for case in run["testCases"]:
        yield "alpha", case["input"], case["success"]


def of_math_arena_rows():
    for path in (OTHERS / "matharena_outputs").iterdir():
        for row in parquet.read_table(path).to_pylist():
            yield row["model_name"], row["problem_idx"], row["correct"]


def of_openai_evals():
    for row in read(OTHERS / "openai_evals.jsonl"):
        if row.get("type") == "match":
            yield "provider/alpha", row["sample_id"], row["data"]["correct"]


def of_phoenix():
    for path in (PLATFORMS / "phoenix").iterdir():
        for run in read(path):
            scores = {annotation["name"]: annotation["score"] for annotation in run["annotations"]}
            yield path.stem, run["input"]["task"], scores.get("exact")


def of_langfuse():
    for item in read(PLATFORMS / "langfuse.json")["data"]:
        scores = {score["name"]: score["value"] for score in item["scores"]}
        yield item["experimentName"], item["input"], scores.get("exact")


def of_braintrust():
    for span in read(PLATFORMS / "braintrust.jsonl"):
        if span["is_root"]:
            yield span["experiment_id"], span["input"], span["scores"].get("exact")


def of_nemo_gym():
    for task in read(PLATFORMS / "rollouts_reward_profiling.jsonl"):
        right = round(task["mean/reward"] * task["num_rollouts"])
        for trial in range(task["num_rollouts"]):
            yield (
                "rollouts",
                task["sample"]["responses_create_params"]["input"][0]["content"],
                int(trial < right),
            )


def of_lists(folder, name, marks):
    for path in (OTHERS / folder).rglob("*.json"):
        whole = read(path)
        for problem in whole if isinstance(whole, list) else [whole]:
            yield from (("alpha", problem[name], mark) for mark in problem[marks])


TRIALS = {"same_system": "trials"}
CASES = {
    "terminal-bench": (RECORDS / "terminal_bench", {}, of_terminal_bench),
    "harbor": (RECORDS / "harbor", {}, of_harbor),
    "swe-bench": (SWE, TRIALS, of_swe_bench),
    "verifiers": (VERIFIERS, {}, of_verifiers),
    "verifiers-traces": (RECORDS / "verifiers" / "traces.jsonl", {}, of_traces),
    "helm exact": (
        RECORDS / "helm", {"scorer": "exact_match"}, lambda: of_helm("exact_match"),
    ),
    "helm f1": (RECORDS / "helm", {"scorer": "f1_score"}, lambda: of_helm("f1_score")),
    **{
        f"every-eval-ever {metric}": (
            RECORDS / "every_eval_ever", {"scorer": f"sums/{metric}"},
            lambda metric=metric: of_every_eval_ever(f"sums/{metric}"),
        )
        for metric in ("exact_match", "lenient_match")
    },
    "promptfoo": (OTHERS / "promptfoo.json", {}, of_promptfoo),
    "lighteval": (
        OTHERS / "lighteval", TRIALS | {"scorer": "extractive_match"}, of_lighteval,
    ),
    "deepeval": (
        OTHERS / "deepeval.json", {}, lambda: of_deepeval(read(OTHERS / "deepeval.json")),
    ),
    "deepeval latest": (
        OTHERS / "deepeval_latest", {},
        lambda: of_deepeval(read(next((OTHERS / "deepeval_latest").iterdir()))["testRunData"]),
    ),
    "openai-evals": (OTHERS / "openai_evals.jsonl", {}, of_openai_evals),
    "live-code-bench": (
        OTHERS / "livecodebench", {},
        lambda: of_lists("livecodebench", "question_id", "graded_list"),
    ),
    "math-arena": (OTHERS / "matharena", {}, lambda: of_lists("matharena", "idx", "correct")),
    "phoenix": (PLATFORMS / "phoenix", {"scorer": "exact"}, of_phoenix),
    "langfuse": (PLATFORMS / "langfuse.json", {}, of_langfuse),
    "braintrust fetch": (PLATFORMS / "braintrust.json", {}, of_braintrust),
    "braintrust lines": (PLATFORMS / "braintrust.jsonl", {}, of_braintrust),
    "nemo-gym": (PLATFORMS / "rollouts_reward_profiling.jsonl", {}, of_nemo_gym),
    "math-arena rows": (OTHERS / "matharena_outputs", {}, of_math_arena_rows),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_genuine_records_give_the_counts_of_an_independent_reading(case):
    source, options, reading = CASES[case]
    data = load_quietly(source, missing="ignore", **options)
    rows_by_system = {system: sorted(rows.values()) for system, rows in counts(data).items()}
    assert rows_by_system == tally(reading())


@pytest.mark.parametrize("case", CASES)
def test_one_file_of_a_folder_is_told_by_its_content(case, tmp_path):
    """Under another name, with the format left to be found."""
    source, options, _ = CASES[case]
    files = source if isinstance(source, list) else [source]
    files = [
        file
        for path_or_folder in files
        for file in ([path_or_folder] if path_or_folder.is_file() else path_or_folder.rglob("*"))
    ]
    first = next(
        file
        for file in files
        if file.is_file() and kind_in_folder(file, file.parent) not in ("", "summary", "table")
    )
    path = shutil.copy(first, tmp_path / f"renamed{first.suffix}")
    scorer = {name: value for name, value in options.items() if name == "scorer"}
    alone = load_quietly(path, missing="ignore", **scorer)
    if len(alone.systems) > 1:
        refused(lambda: bk.load({"me": path}, missing="ignore", **scorer), "several systems")
        scorer |= TRIALS
    named = load_quietly({"me": path}, missing="ignore", **scorer)
    assert named.systems == ["me"]
    assert sum(totals(named)) == sum(totals(alone))


def rollouts():
    """Eight rollouts of 100 prompts, asked in rounds; their ids count eight requests each."""
    solved = [0] * 4 + [1] * 8 + [2] + [6] * 15 + [7] * 15 + [8] * 57
    rng = np.random.default_rng(4)
    marks = np.array([rng.permuted([1] * c + [0] * (8 - c)) for c in solved])
    requests = [(int(q), t) for t in range(8) for q in rng.permutation(100)]
    return solved, [
        {
            "id": n // 8,
            "prompt": [{"content": f"what is {q}?"}],
            "completion": "done",
            "answer": str(q),
            "reward": float(marks[q, t]),
        }
        for n, (q, t) in enumerate(requests)
    ]


def test_ids_numbered_by_request_would_hide_what_is_hard(tmp_path):
    """As in rollouts that were published: pass@4 is .9996 by their ids, where it is .918."""
    solved, rows = rollouts()
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = {"format": "jsonl", "columns": {"outcome": "reward"}}
    refused(
        lambda: bk.load(path, **table),
        "'prompt'",
        "line 1 and line 2",
        "question=prompt|'question': 'prompt'",
    )
    by_prompt = {"outcome": "reward", "question": "prompt"}
    for options in ({}, {"format": "jsonl", "columns": by_prompt}):  # as verifiers, and as a table
        assert pass_at_4(bk.load(path, **options)) == pytest.approx(0.918, abs=5e-4)
    truth = sum(1 - comb(8 - c, 4) / comb(8, 4) for c in solved) / 100
    assert pass_at_4(bk.load(path)) == pytest.approx(truth)
    bare = [{"id": row["id"], "reward": row["reward"]} for row in rows]  # nothing contradicts these
    path.write_text("".join(json.dumps(row) + "\n" for row in bare))
    assert pass_at_4(bk.load(path)) == pytest.approx(0.9996, abs=5e-5)


def pass_at_4(data):
    fit = bk.evaluate(data, "pass@4", pooling="none", rng=1)
    return bk.table(fit).query("target == 'questions'")["estimate"].item()


def test_what_is_told_of_a_table_is_no_use_for_a_log():
    path = next(VERIFIERS.rglob("results.jsonl"))
    columns = {"question": "prompt", "outcome": "reward"}
    refused(lambda: bk.load(path, columns=columns), "read as verifiers", "format='jsonl'")
    assert totals(bk.load(path, columns=columns, format="jsonl")) == totals(bk.load(path))


def test_a_later_version_of_verifiers_names_the_id_otherwise(tmp_path):
    path = tmp_path / "results.jsonl"
    rows = read(next(VERIFIERS.rglob("results.jsonl")))
    later = [{"example_id": row.pop("id"), **row, "error": None} for row in rows]
    later[0]["error"] = {"type": "timeout"}
    later[0]["reward"] = 0.0
    path.write_text("".join(json.dumps(row) + "\n" for row in later))
    with pytest.warns(bk.OutcomeWarning, match="1 of 6 trials have an error"):
        assert sum(totals(bk.load({"me": path}))) == 6


def test_other_rewards_are_chosen_by_name():
    path = next(VERIFIERS.rglob("results.jsonl"))
    data = bk.load(path, scorer="format_reward_func")
    assert totals(data) == [0, 6, 0]
    assert "verifiers's 'format_reward_func'" in data.card()
    refused(lambda: bk.load(path, scorer="style"), "format_reward_func", "'style'")


def test_one_task_in_two_data_sets_is_two_questions():
    questions = counts(load_quietly(RECORDS / "harbor", missing="ignore"))["terminus-2 alpha"]
    assert questions["core/hello-world"] == (1, 1, 0)
    assert questions["extra/hello-world"] == (1, 0, 1)
    core = load_quietly(RECORDS / "harbor", missing="ignore", task="core")
    assert totals(core) == [2, 2, 0]


def test_failures_of_the_infrastructure_are_told_apart():
    """An error of the provider is a fault; running out of time is the agent's own."""
    with pytest.warns(bk.OutcomeWarning, match="1 of 6 trials have the exception ApiRateLimit"):
        data = bk.load(RECORDS / "harbor", missing="wrong")
    assert totals(data) == [4, 2, 1]  # the trial that was not judged counts as wrong
    assert "1 not judged (EnvironmentStartTimeoutError)" in data.card()
    data = bk.load(RECORDS / "harbor", missing="ignore", empty_output="missing")
    assert totals(data) == [2, 2, 2]
    assert "1 exception ApiRateLimitError" in data.card()


def edited(tmp_path, name, change):
    """A copy of records of Harbor or of a platform, each trial or record changed in place."""
    source = RECORDS / name
    target = tmp_path / source.name
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    for path in target.glob("*/*/result.json") if source.is_dir() else [target]:
        whole = read(path)
        change(whole)
        path.write_text(json.dumps(whole))
    return target


def test_the_layout_of_harbor_before_schema_versions(tmp_path):
    def older(trial):
        del trial["reward_valid"], trial["schema_version"]
        (trial["exception_info"] or {}).pop("policy", None)

    path = edited(tmp_path, "harbor", older)
    with pytest.warns(bk.OutcomeWarning, match="1 of 6 trials have the exception ApiRateLimit"):
        data = bk.load(path, missing="ignore")
    assert counts(data) == counts(load_quietly(RECORDS / "harbor", missing="ignore"))


@pytest.mark.parametrize(("name", "valid", "expected"), [
    ("FooError", True, [2, 2, 2]), ("FooError", False, [1, 2, 3]),
    ("AgentTimeoutError", False, [1, 2, 3]), ("FooError", None, [1, 2, 3]),
    ("", False, [1, 2, 3]), ("", None, [2, 2, 2]),
])  # fmt: skip
def test_harbor_says_itself_whether_a_reward_counts(tmp_path, name, valid, expected):
    """By the error policy of the job; releases that do not say so are read by ours."""

    def change(trial):
        if trial["trial_name"] == "hello-world__5xyz":
            trial["exception_info"] = {"exception_type": name}
            trial["reward_valid"] = valid

    path = edited(tmp_path, "harbor", change)
    data = load_quietly(path, missing="ignore", empty_output="missing")
    assert totals(data) == expected


def test_tries_that_harbor_superseded_are_left_out(tmp_path):
    """A download with retries has them under _retries/TRIAL/retry-N, with the trial's own name."""
    path = edited(tmp_path, "harbor", lambda trial: None)
    job = path / "2026-11-21__10-00-00"
    for number in (0, 1):
        first_try = job / "_retries" / "fix-permissions__3xyz" / f"retry-{number}"
        shutil.copytree(job / "fix-permissions__3xyz", first_try)
        trial = read(first_try / "result.json")
        trial["id"], trial["verifier_result"] = f"retry {number}", {"rewards": {"reward": 0}}
        (first_try / "result.json").write_text(json.dumps(trial))
    (job / "download_manifest.json").write_text('{"job": {}, "trials": []}')
    data = load_quietly(path, missing="ignore")
    assert counts(data) == counts(load_quietly(RECORDS / "harbor", missing="ignore"))
    assert "tried again are left out (_retries)" in data.card()
    assert "passed over" not in data.card()


def test_an_export_of_one_page_says_so(tmp_path):
    path = edited(tmp_path, "platforms/langfuse.json", lambda page: page["meta"].update(cursor="x"))
    assert (
        "CHECK: the export has 12 records and names a next page"
        in load_quietly(path, missing="ignore").card()
    )


def test_a_score_of_langfuse_from_two_sources(tmp_path):
    def change(page):
        first = page["data"][0]["scores"]
        first.append(first[0] | {"source": "ANNOTATION", "value": False})

    path = edited(tmp_path, "platforms/langfuse.json", change)
    refused(lambda: bk.load(path, missing="ignore"), "one value of a score", "API", "ANNOTATION")
    path = edited(
        tmp_path,
        "platforms/langfuse.json",
        lambda page: [item.pop("scores") for item in page["data"]],
    )
    refused(lambda: bk.load(path), "must have the field 'scores'")


def test_annotations_of_phoenix_that_are_labels():
    path = PLATFORMS / "phoenix" / "alpha.json"
    refused(lambda: bk.load(path), "one scorer must be chosen", "exact", "tone")
    data = bk.load(path, scorer="tone", scores={"rude": 0, "kind": 1})
    assert totals(data) == [0, 6, 0]


def test_a_task_of_braintrust_that_failed_has_no_outcome(tmp_path):
    refused(lambda: bk.load(PLATFORMS / "braintrust.json"), "1 no score")
    spans = [span | {"origin": None} for span in read(PLATFORMS / "braintrust.jsonl")]
    path = tmp_path / "inline.jsonl"  # the same inputs without a data set
    path.write_text("".join(json.dumps(span) + "\n" for span in spans))
    data = load_quietly(path, missing="ignore")
    assert totals(data) == totals(load_quietly(PLATFORMS / "braintrust.json", missing="ignore"))
    assert data.dataset.sizes["question"] == 2


def test_runs_of_swe_bench(tmp_path):
    refused(lambda: load_quietly(SWE, missing="ignore"), "evaluated once", "same_system='trials'")
    with pytest.warns(bk.OutcomeWarning) as caught:
        data = bk.load(SWE[0], missing="ignore", empty_output="marked")
    assert "an error of the evaluation (1), an empty output (1)" in str(caught[0].message)
    assert totals(data) == [3, 2, 1]
    logs = load_quietly(RECORDS / "swe_bench" / "logs", **TRIALS)
    assert counts(logs)["org__alpha-4.1"] == {
        f"astropy__astropy-{number}": row
        for number, row in ((1, (0, 2, 0)), (2, (1, 1, 0)), (3, (1, 1, 0)))
    }
    assert "MODEL.RUN.json, counts them" in logs.card()
    whole = read(SWE[0]) | {"infra_failure_ids": ["astropy__astropy-2"]}
    (tmp_path / "m.run.json").write_text(json.dumps(whole))
    data = bk.load(tmp_path / "m.run.json", missing="ignore", empty_output="missing")
    assert totals(data) == [0, 2, 4]
    assert "1 infrastructure failure" in data.card()


def test_a_scorer_must_be_chosen_where_there_are_several():
    for folder in ("helm", "every_eval_ever"):
        refused(lambda folder=folder: bk.load(RECORDS / folder), "one scorer must be chosen")
    data = load_quietly(RECORDS / "helm", scorer="f1_score", missing="ignore")
    assert "1 not marked by f1_score" in data.card()


def test_a_failed_call_of_promptfoo_is_told():
    with pytest.warns(bk.OutcomeWarning, match="1 of 12 trials have an error"):
        data = bk.load(OTHERS / "promptfoo.json")
    assert totals(data) == [5, 7, 0]
    data = bk.load(OTHERS / "promptfoo.json", scorer="exact", missing="ignore")
    assert totals(data) == [4, 7, 1]


def test_two_prompts_make_two_systems_of_a_provider(tmp_path):
    whole = read(OTHERS / "promptfoo.json")
    whole["results"]["prompts"].append({"raw": "Add {{a}} to {{b}}", "provider": "alpha"})
    path = tmp_path / "out.json"
    path.write_text(json.dumps(whole))
    assert load_quietly(path).systems == ["alpha: {{a}} + {{b}} = ?", "beta: {{a}} + {{b}} = ?"]


def test_answers_are_kept_for_votes():
    for name in ("matharena", "matharena_outputs", "openai_evals.jsonl"):
        assert "answers" in bk.load(OTHERS / name, answers=True).card()
    rows = RECORDS / "every_eval_ever"
    data = load_quietly(rows, scorer="sums/exact_match", answers=True)
    assert data.answers is not None


def test_the_summary_of_a_job_holds_no_trials():
    path = RECORDS / "harbor/2026-11-21__10-00-00/result.json"
    refused(lambda: bk.load(path), "summary of a Harbor job")


def test_an_aggregate_names_the_rows(tmp_path):
    path = tmp_path / "sums.json"
    path.write_text(
        json.dumps({"schema_version": "0.3.0", "model_info": {"id": "m"}, "evaluation_results": []})
    )
    refused(lambda: bk.load(path), "Give the .jsonl")
    shutil.copy(RECORDS / "every_eval_ever" / "sums_alpha.jsonl", tmp_path)
    data = bk.load(tmp_path, scorer="sums/exact_match")
    assert data.systems == ["org/alpha"]


def test_a_resumed_run_does_not_count_trials_twice(tmp_path):
    """A second results file that repeats the trials of the first, as tools do that resume."""
    run = RECORDS / "terminal_bench" / "run-alpha"
    for name in ("first", "resumed"):
        shutil.copytree(
            run,
            tmp_path / name,
            ignore=lambda folder, names: [name for name in names if Path(folder, name).is_dir()],
        )
    whole = read(run / "results.json")
    whole["id"] = "another"
    (tmp_path / "resumed" / "results.json").write_text(json.dumps(whole))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.OutcomeWarning)
        refused(lambda: bk.load(tmp_path, same_system="trials"), "by its own identifier")


def test_trials_that_a_file_above_repeats_are_read_where_their_folder_is_named():
    run = RECORDS / "terminal_bench" / "run-alpha"
    assert load_quietly(run, missing="ignore").sources[0][0] == "results.json"
    (task,) = counts(load_quietly(run / "hello-world")).values()
    marks = Counter(
        int(one["is_resolved"])
        for one in read(run / "results.json")["results"]
        if one["task_id"] == "hello-world"
    )
    assert list(task.values()) == [(marks[0], marks[1], 0)]


def test_rows_of_matharena_in_two_files(tmp_path):
    """Those of one question, too: the files of a data set are one log."""
    (path,) = (OTHERS / "matharena_outputs").iterdir()
    whole = parquet.read_table(path)
    rows = whole.to_pylist()
    for number in range(2):
        half = pyarrow.Table.from_pylist(rows[number::2], whole.schema)
        parquet.write_table(half, tmp_path / f"train-{number:05}-of-00002.parquet")
    assert counts(bk.load(tmp_path)) == counts(bk.load(path))


def test_summaries_of_simple_evals_are_refused(tmp_path):
    path = tmp_path / "mmlu_m.json"
    for whole in ({"stem": 1.0, "score:std": 0.4, "score": 0.7}, {"score": 0.7, "convos": []}):
        path.write_text(json.dumps(whole))
        refused(lambda: bk.load(path), "must have an array of records")


@pytest.mark.parametrize("case", [
    "harbor", "verifiers", "helm exact", "phoenix", "braintrust lines",
])  # fmt: skip
def test_a_rule_for_success_reads_the_fractions_of_a_log(tmp_path, case):
    """Right answers have .7 in place of 1; what the message proposes works as it is written."""

    def lower(value, key=""):
        if isinstance(value, dict):
            return {name: lower(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [lower(part, key) for part in value]
        marks = {"reward", "sum", "mean", "score", "exact"}
        return 0.7 if key in marks and value == 1 else value

    source, options, _ = CASES[case]
    copied = tmp_path / source.name
    shutil.copytree(source, copied) if source.is_dir() else shutil.copy(source, copied)
    for path in [copied] if copied.is_file() else copied.rglob("*.json*"):
        parts = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        path.write_text("\n".join(json.dumps(lower(json.loads(part))) for part in parts))
    options = options | {"missing": "ignore"}
    message = refused(lambda: load_quietly(copied, **options), "0.7: ...", "scores='numbers'")
    rule = re.search(r"success='(.*?)'", message)[1]
    expected = load_quietly(source, **options)
    for more in ({}, {"scores": "numbers"}):
        data = load_quietly(copied, success=rule, **more, **options)
        assert counts(data) == counts(expected)
