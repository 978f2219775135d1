"""Write the logs of ``tests/logs/records``, most of them by the tools' own classes.

Run as ``python make_records.py OUT TOOL [SITE]``, where SITE holds the unpacked wheel of the tool
(``pip download --no-deps``): only its data classes are imported, so that its dependencies may be
missing. What a tool's classes do not write is written by its serialisation code as read in the
source, which each function names.

promptfoo wrote its own file: ``promptfoo eval --repeat 3 -j 1 -o out.json`` with two providers of a
few lines of JavaScript that add one to every third (second) sum, and fail once.
"""

import json
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Marks of two tasks by trial, for two systems; None was not judged.
MARKS: dict[str, list[list[int | None]]] = {"alpha": [[1, 0, 1], [0, 0, 1]],
                                            "beta": [[1, 1, None], [0, 1, 0]]}  # fmt: skip
TASKS = ("hello-world", "fix-permissions")
ASKED = ("Create hello.txt", "Make run.sh executable")


def bare(site: str, *packages: str) -> None:
    """Let modules of packages be imported without what the packages import themselves."""
    for name in packages:
        module = types.ModuleType(name)
        module.__path__ = [str(Path(site, *name.split(".")))]
        sys.modules[name] = module


def stub(name: str, **attributes: Any) -> None:
    """Stand in for a module that the classes do not need."""
    module = types.ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def document(path: Path, content: Any) -> None:
    """Write a JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def write_terminal_bench(out: Path, site: str) -> None:
    """terminal-bench 0.2.18: ``harness/models.py``, written as ``harness.py`` does.

    A run has results.json, run_metadata.json, and a results.json for each trial.
    """
    bare(site, "terminal_bench", *(f"terminal_bench.{name}" for name in
                                   ("harness", "agents", "parsers")))  # fmt: skip
    from terminal_bench.harness.models import BenchmarkResults, RunMetadata, TrialResults

    for system, marks in MARKS.items():
        run = out / f"run-{system}"
        results = BenchmarkResults()
        for task, instruction, own in zip(TASKS, ASKED, marks, strict=True):
            for number, mark in enumerate(own, start=1):
                trial = TrialResults(
                    trial_name=f"{task}.{number}-of-3.run-{system}", task_id=task,
                    instruction=instruction, is_resolved=None if mark is None else bool(mark),
                    failure_mode="unknown_agent_error" if mark is None else "unset",
                )  # fmt: skip
                folder = run / task / trial.trial_name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "results.json").write_text(trial.model_dump_json(indent=4))
                results.results.append(trial)
        (run / "results.json").write_text(results.model_dump_json(indent=4))
        metadata = RunMetadata(
            run_id=run.name, output_path="runs", agent_name="terminus", no_rebuild=False,
            cleanup=True, log_level=20, model_name=f"provider/{system}",
            dataset_name="terminal-bench-core", dataset_version="0.1.1", n_attempts=3,
        )  # fmt: skip
        (run / "run_metadata.json").write_text(metadata.model_dump_json(indent=4))


def write_harbor(out: Path, site: str) -> None:
    """Harbor 0.26.0: ``models/trial/result.py`` and ``models/job/result.py``.

    Two data sets have a task of one name; one trial has no reward for want of a sandbox, one has a
    reward of 0 after an error of the provider, one after the agent ran out of time.
    """
    sys.path.insert(0, site)
    from harbor.models.job.result import JobResult, JobStats
    from harbor.models.task.id import LocalTaskId
    from harbor.models.trial.config import TaskConfig, TrialConfig
    from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, TrialResult
    from harbor.models.verifier.result import VerifierResult

    now = datetime(2026, 11, 21, tzinfo=UTC)
    plan = [
        ("core", TASKS[0], 1, ""), ("core", TASKS[0], 0, "AgentTimeoutError"),
        ("core", TASKS[1], 0, "ApiRateLimitError"), ("core", TASKS[1], 1, ""),
        ("extra", TASKS[0], None, "EnvironmentStartTimeoutError"), ("extra", TASKS[0], 0, ""),
    ]  # fmt: skip
    job, trials = out / "2026-11-21__10-00-00", []
    for number, (source, task, mark, raised) in enumerate(plan):
        path = Path("tasks", source, task)
        name = f"{task}__{number}xyz"
        config = TrialConfig(task=TaskConfig(path=path), trial_name=name, trials_dir=job.name)
        trial = TrialResult(
            task_name=task, trial_name=name, trial_uri=f"file:///jobs/{job.name}/{name}",
            task_id=LocalTaskId(path=path), source=source, task_checksum=f"{source}-{task}",
            config=config, started_at=now, finished_at=now,
            agent_info=AgentInfo(name="terminus-2", version="2.0",
                                 model_info=ModelInfo(name="alpha", provider="provider")),
            verifier_result=None if mark is None else VerifierResult(rewards={"reward": mark}),
            exception_info=ExceptionInfo(
                exception_type=raised, exception_message="it ended", exception_traceback="",
                occurred_at=now,
            ) if raised else None,
        )  # fmt: skip
        (job / name).mkdir(parents=True, exist_ok=True)
        (job / name / "result.json").write_text(trial.model_dump_json(indent=1))
        (job / name / "config.json").write_text(config.model_dump_json(indent=1))
        trials.append(trial)
    stats = JobStats.from_trial_results(trials, n_total_trials=len(trials))
    whole = JobResult(
        id=trials[0].id, started_at=now, finished_at=now, n_total_trials=len(trials), stats=stats
    )
    (job / "result.json").write_text(
        whole.model_dump_json(indent=1, exclude={"trial_results"})
    )  # fmt: skip


def write_swe_bench(out: Path, site: str) -> None:
    """SWE-bench 5.0.2: its ``make_run_report`` reads a report of each instance, and writes one."""
    bare(site, "swebench", "swebench.harness", "swebench.image_builder")
    stub("docker", DockerClient=object)
    stub("swebench.image_builder.docker_utils", list_images=lambda client: [])
    logs = out / "logs" / "run_evaluation"
    stub("swebench.harness.constants", RUN_EVALUATION_LOG_DIR=logs, LOG_REPORT="report.json",
         LOG_INSTANCE="run_instance.log", LOG_TEST_OUTPUT="test_output.txt")  # fmt: skip
    from swebench.harness.reporting import make_run_report

    names = [f"astropy__astropy-{number}" for number in (1, 2, 3, 4, 5, 6)]
    for run, marks in (("run_1", [1, 0, 1]), ("run_2", [1, 1, 0])):
        predictions = {
            name: {"instance_id": name, "model_name_or_path": "org/alpha-4.1",
                   "model_patch": "" if name == names[4] else "diff"}
            for name in names[:5]
        }  # fmt: skip
        for name, mark in zip(names, marks, strict=False):  # the fourth ends in an error
            document(logs / run / "org__alpha-4.1" / name / "report.json", {
                name: {"patch_is_None": False, "patch_exists": True,
                       "patch_successfully_applied": True, "resolved": bool(mark),
                       "infra_failure": False},
            })  # fmt: skip
        dataset = [{"instance_id": name} for name in names]
        make_run_report(predictions, dataset, run, report_dir=str(out))


def write_helm(out: Path, site: str) -> None:
    """HELM 0.5.16: ``Stat`` and ``MetricName``; the files as ``runner.py`` writes them.

    Two metrics; a perturbed copy of an instance; the second metric is NaN, so left out, once.
    """
    bare(site, "helm", "helm.benchmark", "helm.benchmark.metrics", "helm.benchmark.scenarios",
         "helm.benchmark.augmentations", "helm.common")  # fmt: skip
    for name in ("helm.benchmark.scenarios.scenario", "helm.common.general"):
        stub(name, Instance=object, asdict_without_nones=None)
    stub("helm.common.object_spec", ObjectSpec=object, create_object=None)
    from dataclasses import asdict

    from helm.benchmark.metrics.metric_name import MetricName
    from helm.benchmark.metrics.statistic import Stat

    def told(value: Any) -> Any:
        return asdict(value, dict_factory=lambda pairs: {k: v for k, v in pairs if v is not None})

    for system, marks in MARKS.items():
        run = out / f"gsm_model=provider_{system}"
        entries = []
        for number, own in enumerate(marks):
            for trial, mark in enumerate(own):
                for metric in ("exact_match", "f1_score"):
                    if mark is None and metric == "f1_score":
                        continue
                    stat = Stat(MetricName(metric, split="test")).add(mark or 0)
                    entries.append({"instance_id": f"id{number}", "train_trial_index": trial,
                                    "stats": [told(stat)]})  # fmt: skip
        entries.append(entries[0] | {"perturbation": {"name": "typos", "robustness": True}})
        document(run / "per_instance_stats.json", entries)
        document(run / "run_spec.json", {
            "name": run.name, "adapter_spec": {"method": "generation",
                                               "model": f"provider/{system}"},
            "scenario_spec": {"class_name": "helm.benchmark.scenarios.gsm.GSM8KScenario"},
        })  # fmt: skip


def write_every_eval_ever(out: Path, site: str) -> None:
    """Every Eval Ever 0.3.0: its class of rows; two metrics, repeats as rows of one sample."""
    sys.path.insert(0, site)
    from every_eval_ever.instance_level_types import InstanceLevelEvaluationLog

    for system, marks in MARKS.items():
        rows = []
        for number, own in enumerate(marks):
            for mark in own:
                for metric in ("exact_match", "lenient_match"):
                    right = bool(mark) or (metric == "lenient_match" and number == 0)
                    row = InstanceLevelEvaluationLog.model_validate({
                        "schema_version": "0.3.0", "evaluation_id": f"sums/{system}/1790000000",
                        "model_id": f"org/{system}", "evaluation_name": "sums",
                        "evaluation_result_id": f"sums/{metric}", "sample_id": f"sums_{number}",
                        "interaction_type": "single_turn",
                        "input": {"raw": f"{number} + 1 = ?", "reference": [str(number + 1)]},
                        "output": {"raw": [str(number + 1 if mark else number)]},
                        "answer_attribution": [{
                            "turn_idx": 0, "source": "output.raw", "is_terminal": True,
                            "extracted_value": str(number + 1 if mark else number),
                            "extraction_method": "exact_match",
                        }],
                        "evaluation": {"score": float(right), "is_correct": right},
                        "error": "timeout" if mark is None else None,
                    })  # fmt: skip
                    rows.append(json.loads(row.model_dump_json(exclude_none=True)))
        lines(out / f"sums_{system}.jsonl", rows)


def write_verifiers(out: Path, site: str) -> None:
    """Verifiers 0.1.5: ``scripts/eval.py``, and 0.4.0: ``v1/trace.py`` and ``v1/episode.py``.

    Rollouts are asked in rounds of all examples, and ``id`` is the position divided by the number
    of rollouts per example: the id of one question is the id of another in the next round.
    """
    for system, marks in MARKS.items():
        asked = [(number, round_) for round_ in range(3) for number in range(2)]
        rows = [
            {"id": place // 3, "prompt": [{"role": "user", "content": ASKED[number]}],
             "completion": [{"role": "assistant", "content": "done"}], "task": "default",
             "generation_ms": 12.5, "scoring_ms": 0.5, "total_ms": 13.0,
             "answer": TASKS[number], "reward": float(marks[number][round_] or 0),
             "correct_answer_reward_func": float(marks[number][round_] or 0),
             "format_reward_func": 1.0}
            for place, (number, round_) in enumerate(asked)
        ]  # fmt: skip
        run = out / "outputs" / "evals" / f"shell--{system}" / "1a2b3c4d"
        lines(run / "results.jsonl", rows)
        document(run / "metadata.json", {"env": "shell", "model": f"provider/{system}",
                                         "num_examples": 2, "rollouts_per_example": 3})  # fmt: skip
    episodes = []
    for number, own in enumerate(MARKS["beta"]):
        for place, mark in enumerate(own):
            task = {"type": "ShellTask", "data": {"idx": number, "prompt": ASKED[number]},
                    "key": f"shell-{number}", "hash": "0"}  # fmt: skip
            rewards = {} if mark is None else {
                "solved": {"score": float(mark), "weight": 0.75},
                "tests": {"score": float(mark), "weight": 0.25},
            }  # fmt: skip
            trace = {"version": 1, "id": f"trace-{number}-{place}", "task": task,
                     "agent": {"config": {"model": "provider/beta"}, "name": "solver"},
                     "rewards": rewards, "is_completed": True, "ok": mark is not None,
                     "errors": [{"type": "E", "message": "m"}] * (mark is None)}  # fmt: skip
            episodes.append({"id": f"episode-{number}-{place}", "env": {"id": "shell"},
                             "task": task, "ok": mark is not None, "traces": [trace]})  # fmt: skip
    lines(out / "traces.jsonl", episodes)


def write_others(out: Path, site: str) -> None:
    """Formats whose writers need a model: as their source says.

    lighteval 0.13.0: ``DetailsLogger.Detail`` through ``save_details``; DeepEval 4.3.1:
    ``TestRun`` by alias, and the latest one, within ``testRunData``; OpenAI evals:
    ``LocalRecorder``; LiveCodeBench: ``save_eval_results`` of ``custom_evaluator.py``; MathArena:
    the files that ``upload_outputs.py`` reads, and the columns of its published data sets.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    for run, trial in (("2026-11-21T10-00-00.0", 0), ("2026-11-21T11-00-00.0", 1)):
        rows = [
            {"doc": {"query": f"{number} + 1 = ?", "choices": [str(number + 1)], "gold_index": 0,
                     "id": str(number), "task_name": "sums|0"},
             "metric": {"extractive_match": float(own[trial] or 0), "length": 7.0},
             "model_response": {"input": f"{number} + 1 = ?", "text": [str(number + 1)]}}
            for number, own in enumerate(MARKS["alpha"])
        ]  # fmt: skip
        path = out / "lighteval" / "details" / "org" / "alpha" / run
        path.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist(rows), path / f"details_sums_0_{run}.parquet")
    cases = [
        {"name": f"test_case_{number}", "input": f"{number} + 1 = ?", "actualOutput": "x",
         "expectedOutput": str(number + 1), "success": bool(mark),
         "metricsData": [{"name": "Exact", "threshold": 0.5, "success": bool(mark), "score": 1.0},
                         {"name": "Tone", "threshold": 0.5, "success": True, "score": 0.9}]}
        for number, own in enumerate(MARKS["alpha"]) for mark in own
    ]  # fmt: skip
    run_of = {"hyperparameters": {"model": "alpha"}, "testPassed": 3}
    run = {"testCases": cases, "metricsScores": [], **run_of}
    document(out / "deepeval.json", run)
    latest = {"testRunData": run, "testRunLink": None}
    document(out / "deepeval_latest" / ".latest_test_run.json", latest)
    spec = {"completion_fns": ["provider/alpha"], "eval_name": "sums.dev.v0", "run_id": "r"}
    events = [
        {"run_id": "r", "event_id": event, "sample_id": f"sums.dev.{number}", "type": kind,
         "data": data, "created_by": "", "created_at": "2026-11-21"}
        for event, (number, mark) in enumerate((n, m) for n in range(2) for m in MARKS["alpha"][n])
        for kind, data in (
            ("sampling", {"prompt": f"{number} + 1 =", "sampled": ["x"]}),
            ("match", {"correct": bool(mark), "expected": str(number + 1), "picked": str(mark)}),
        )
    ]  # fmt: skip
    lines(out / "openai_evals.jsonl", [{"spec": spec}, *events, {"final_report": {"accuracy": 1}}])
    document(out / "livecodebench" / "alpha" / "Scenario.codegeneration_3_0.2_eval_all.json", [
        {"question_title": f"t{number}", "question_content": ASKED[number], "platform": "leetcode",
         "question_id": str(3000 + number), "contest_date": "2026-01-01", "difficulty": "easy",
         "output_list": ["o"] * 3, "code_list": ["c"] * 3, "pass@1": sum(own) / 3,
         "graded_list": [bool(mark) for mark in own], "metadata": ["{}"] * 3}
        for number, own in enumerate(MARKS["alpha"])
    ])  # fmt: skip
    for number, own in enumerate(MARKS["alpha"]):
        document(out / "matharena" / "aime" / "aime_2026" / "provider" / "alpha" / f"{number}.json",
                 {"idx": number, "problem": ASKED[number], "gold_answer": str(number),
                  "messages": [[]] * 3, "answers": [str(mark) for mark in own],
                  "correct": [bool(mark) for mark in own], "pass_at_1": 0.5})  # fmt: skip
    rows = [
        {"problem_idx": str(number), "problem": ASKED[number], "model_name": system,
         "model_config": f"provider/{system}", "idx_answer": trial, "answer": f"It is {mark}.",
         "gold_answer": str(number), "parsed_answer": str(mark), "correct": bool(mark)}
        for system, marks in MARKS.items()
        for number, own in enumerate(marks) for trial, mark in enumerate(own)
    ]  # fmt: skip
    path = out / "matharena_outputs" / "train-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def write_platforms(out: Path, site: str) -> None:
    """Exports of platforms, whose servers write them: as their source says.

    Phoenix 20.26.1: ``get_experiment_json`` of ``routers/v1/experiments.py``; Langfuse 5.0.4 (the
    client): ``ExperimentItem`` and ``ScoreV3`` by alias, a page of ``api/public/experiment-items``;
    Braintrust 0.48.1: ``ExperimentEvent`` of ``_generated_types.py``, the spans that
    ``framework.py`` starts for a trial, as ``/v1/experiment/ID/fetch`` and as lines; NeMo Gym
    0.4.0: ``profile_from_data`` of ``reward_profile.py``, as ``write_to_disk`` writes it.
    """
    now = "2026-11-21T10:00:00+00:00"
    cells = [(system, task, trial, mark) for system, marks in MARKS.items()
             for task, own in enumerate(marks) for trial, mark in enumerate(own)]  # fmt: skip
    for system in MARKS:
        document(out / "phoenix" / f"{system}.json", [
            {"example_id": f"RGF0YXNldEV4YW1wbGU6{task}", "repetition_number": trial + 1,
             "input": {"task": ASKED[task]}, "reference_output": {"files": 1},
             "output": None if mark is None else "done",
             "error": "ConnectError" if mark is None else None, "latency_ms": 1500.0,
             "start_time": now, "end_time": now, "trace_id": None, "prompt_token_count": 20,
             "completion_token_count": 10,
             "annotations": [] if mark is None else [
                 {"name": name, "annotator_kind": "CODE", "label": label, "score": score,
                  "explanation": None, "trace_id": None, "error": None, "metadata": {},
                  "start_time": now, "end_time": now}
                 for name, label, score in (("exact", None, float(mark)), ("tone", "kind", None))
             ]}
            for own, task, trial, mark in cells if own == system
        ])  # fmt: skip
    document(out / "langfuse.json", {"meta": {}, "data": [
        {"id": f"{system}{task}{trial}", "traceId": f"t{task}{trial}", "startTime": now,
         "endTime": now, "level": "ERROR" if mark is None else "DEFAULT",
         "environment": "default", "experimentId": f"{system}-1", "experimentName": system,
         "experimentItemId": f"item-{task}", "experimentDatasetId": "d", "input": ASKED[task],
         "output": "done", "expectedOutput": "1", "scores": [] if mark is None else [
             {"id": f"s{name}", "projectId": "p", "name": name, "source": "API",
              "timestamp": now, "environment": "default", "createdAt": now, "updatedAt": now,
              "dataType": kind, "value": value}
             for name, kind, value in (("exact", "BOOLEAN", bool(mark)), ("note", "TEXT", "fine"))
         ]}
        for system, task, trial, mark in cells
    ]})  # fmt: skip
    spans = []
    for system, task, trial, mark in cells:
        root, failed = f"{system}{task}{trial}", mark is None
        shared = {"_xact_id": "1", "created": now, "project_id": "p", "experiment_id": system,
                  "root_span_id": root, "context": {}, "tags": None,
                  "metrics": {"start": 1.0, "end": 2.5},
                  "origin": {"object_type": "dataset", "object_id": "d", "id": f"row-{task}",
                             "_xact_id": "1"}}  # fmt: skip
        scores = {} if failed else {"exact": mark}
        spans += [shared | {
            "id": root, "span_id": root, "span_parents": None, "is_root": True,
            "input": ASKED[task], "output": None if failed else "done", "expected": "1",
            "error": "TimeoutError" if failed else None, "scores": scores, "metadata": {},
            "span_attributes": {"name": "eval", "type": "eval"},
        }]  # fmt: skip
        spans += [shared | {
            "id": f"{root}{kind}", "span_id": f"{root}{kind}", "span_parents": [root],
            "is_root": False, "input": ASKED[task], "output": "done", "expected": None,
            "error": None, "scores": scores if kind == "score" else None, "metadata": {},
            "span_attributes": {"name": kind, "type": kind},
        } for kind in ("task", "score")]  # fmt: skip
    document(out / "braintrust.json", {"events": spans, "cursor": None})
    lines(out / "braintrust.jsonl", spans)
    lines(out / "rollouts_reward_profiling.jsonl", [
        {"mean/reward": sum(own) / 3, "max/reward": 1.0, "min/reward": 0.0,
         "median/reward": float(sorted(own)[1]), "std/reward": 0.5774, "mean/input_tokens": 20.0,
         "sample": {"responses_create_params": {"input": [{"role": "user",
                                                           "content": ASKED[task]}]},
                    "agent_ref": {"type": "responses_api_agents", "name": "shell_agent"}},
         "num_rollouts": 3, "expected_num_rollouts": 3, "missing_num_rollouts": 0,
         "reward_profile_completion_pct": 100.0,
         "rollout_infos": [
             {"rollout_id": f"{task}:{trial}", "_ng_task_index": task,
              "_ng_rollout_index": trial, "reward": float(mark or 0), "input_tokens": 20,
              "parsed": 1}
             for trial, mark in enumerate(own)
         ]}
        for task, own in enumerate(MARKS["alpha"])
    ])  # fmt: skip


def write_tau(out: Path, site: str) -> None:
    """tau-bench and tau2-bench, which are no packages: as their public results files are."""
    runs = [
        {"task_id": task, "reward": float(mark), "trial": trial, "traj": [{"role": "user"}],
         "info": {"task": {"instruction": ASKED[task]}, "reward_info": {"reward": float(mark)}}}
        for task, own in enumerate(MARKS["alpha"]) for trial, mark in enumerate(own)
    ]  # fmt: skip
    document(out / "tool-calling-alpha-0.0_range_0-2_user-beta-llm.json", runs)
    simulations = [
        {"id": f"{task}-{trial}", "task_id": str(task), "trial": trial, "messages": [{}],
         "termination_reason": "user_stop" if mark is not None else "infrastructure_error",
         "reward_info": {"reward": float(mark or 0)}}
        for task, own in enumerate(MARKS["beta"]) for trial, mark in enumerate(own)
    ]  # fmt: skip
    document(out / "simulations.json", simulations)
    document(out / "tau2.json", {
        "timestamp": "2026-11-21", "info": {"agent_info": {"llm": "beta"},
                                            "environment_info": {"domain_name": "retail"}},
        "tasks": [{"id": str(task), "description": text} for task, text in enumerate(ASKED)],
        "simulations": simulations,
    })  # fmt: skip


WRITERS = {
    "terminal_bench": write_terminal_bench, "harbor": write_harbor, "swe_bench": write_swe_bench,
    "helm": write_helm, "every_eval_ever": write_every_eval_ever, "verifiers": write_verifiers,
    "others": write_others, "platforms": write_platforms, "tau": write_tau,
}  # fmt: skip

if __name__ == "__main__":
    WRITERS[sys.argv[2]](Path(sys.argv[1]).resolve(), (sys.argv[3:] or [""])[0])
