"""Write the logs of ``tests/logs/records`` whose tool has classes that write them.

Run as ``python make_records.py OUT TOOL [SITE]``, where SITE holds the unpacked wheel of the tool
(``pip download --no-deps``): only its data classes are imported, so that its dependencies may be
missing. What a tool's classes do not write is written by its serialisation code as read in the
source, which each function names. The other logs there are as ``FACTS.md`` says.

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
    bare(
        site,
        "terminal_bench",
        *(f"terminal_bench.{name}" for name in ("harness", "agents", "parsers")),
    )
    from terminal_bench.harness.models import BenchmarkResults, RunMetadata, TrialResults

    for system, marks in MARKS.items():
        run = out / f"run-{system}"
        results = BenchmarkResults()
        for task, instruction, own in zip(TASKS, ASKED, marks, strict=True):
            for number, mark in enumerate(own, start=1):
                trial = TrialResults(
                    trial_name=f"{task}.{number}-of-3.run-{system}",
                    task_id=task,
                    instruction=instruction,
                    is_resolved=None if mark is None else bool(mark),
                    failure_mode="unknown_agent_error" if mark is None else "unset",
                )
                folder = run / task / trial.trial_name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "results.json").write_text(trial.model_dump_json(indent=4))
                results.results.append(trial)
        (run / "results.json").write_text(results.model_dump_json(indent=4))
        metadata = RunMetadata(
            run_id=run.name,
            output_path="runs",
            agent_name="terminus",
            no_rebuild=False,
            cleanup=True,
            log_level=20,
            model_name=f"provider/{system}",
            dataset_name="terminal-bench-core",
            dataset_version="0.1.1",
            n_attempts=3,
        )
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
        ("core", TASKS[0], 1, ""),
        ("core", TASKS[0], 0, "AgentTimeoutError"),
        ("core", TASKS[1], 0, "ApiRateLimitError"),
        ("core", TASKS[1], 1, ""),
        ("extra", TASKS[0], None, "EnvironmentStartTimeoutError"),
        ("extra", TASKS[0], 0, ""),
    ]
    job, trials = out / "2026-11-21__10-00-00", []
    for number, (source, task, mark, raised) in enumerate(plan):
        path = Path("tasks", source, task)
        name = f"{task}__{number}xyz"
        config = TrialConfig(task=TaskConfig(path=path), trial_name=name, trials_dir=job.name)
        trial = TrialResult(
            task_name=task,
            trial_name=name,
            trial_uri=f"file:///jobs/{job.name}/{name}",
            task_id=LocalTaskId(path=path),
            source=source,
            task_checksum=f"{source}-{task}",
            config=config,
            started_at=now,
            finished_at=now,
            agent_info=AgentInfo(
                name="terminus-2",
                version="2.0",
                model_info=ModelInfo(name="alpha", provider="provider"),
            ),
            verifier_result=None if mark is None else VerifierResult(rewards={"reward": mark}),
            exception_info=ExceptionInfo(
                exception_type=raised,
                exception_message="it ended",
                exception_traceback="",
                occurred_at=now,
            )
            if raised
            else None,
        )
        (job / name).mkdir(parents=True, exist_ok=True)
        (job / name / "result.json").write_text(trial.model_dump_json(indent=1))
        (job / name / "config.json").write_text(config.model_dump_json(indent=1))
        trials.append(trial)
    stats = JobStats.from_trial_results(trials, n_total_trials=len(trials))
    whole = JobResult(
        id=trials[0].id, started_at=now, finished_at=now, n_total_trials=len(trials), stats=stats
    )
    (job / "result.json").write_text(whole.model_dump_json(indent=1, exclude={"trial_results"}))


def write_swe_bench(out: Path, site: str) -> None:
    """SWE-bench 5.0.2: its ``make_run_report`` reads a report of each instance, and writes one."""
    bare(site, "swebench", "swebench.harness", "swebench.image_builder")
    stub("docker", DockerClient=object)
    stub("swebench.image_builder.docker_utils", list_images=lambda client: [])
    logs = out / "logs" / "run_evaluation"
    stub(
        "swebench.harness.constants",
        RUN_EVALUATION_LOG_DIR=logs,
        LOG_REPORT="report.json",
        LOG_INSTANCE="run_instance.log",
        LOG_TEST_OUTPUT="test_output.txt",
    )
    from swebench.harness.reporting import make_run_report

    names = [f"astropy__astropy-{number}" for number in (1, 2, 3, 4, 5, 6)]
    for run, marks in (("run_1", [1, 0, 1]), ("run_2", [1, 1, 0])):
        predictions = {
            name: {
                "instance_id": name,
                "model_name_or_path": "org/alpha-4.1",
                "model_patch": "" if name == names[4] else "diff",
            }
            for name in names[:5]
        }
        for name, mark in zip(names, marks, strict=False):  # the fourth ends in an error
            document(
                logs / run / "org__alpha-4.1" / name / "report.json",
                {
                    name: {
                        "patch_is_None": False,
                        "patch_exists": True,
                        "patch_successfully_applied": True,
                        "resolved": bool(mark),
                        "infra_failure": False,
                    },
                },
            )
        dataset = [{"instance_id": name} for name in names]
        make_run_report(predictions, dataset, run, report_dir=str(out))


def write_helm(out: Path, site: str) -> None:
    """HELM 0.5.16: ``Stat`` and ``MetricName``; the files as ``runner.py`` writes them.

    Two metrics; a perturbed copy of an instance; the second metric is NaN, so left out, once.
    """
    bare(
        site,
        "helm",
        "helm.benchmark",
        "helm.benchmark.metrics",
        "helm.benchmark.scenarios",
        "helm.benchmark.augmentations",
        "helm.common",
    )
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
                    entries.append(
                        {
                            "instance_id": f"id{number}",
                            "train_trial_index": trial,
                            "stats": [told(stat)],
                        }
                    )
        entries.append(entries[0] | {"perturbation": {"name": "typos", "robustness": True}})
        document(run / "per_instance_stats.json", entries)
        document(
            run / "run_spec.json",
            {
                "name": run.name,
                "adapter_spec": {"method": "generation", "model": f"provider/{system}"},
                "scenario_spec": {"class_name": "helm.benchmark.scenarios.gsm.GSM8KScenario"},
            },
        )


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
                    row = InstanceLevelEvaluationLog.model_validate(
                        {
                            "schema_version": "0.3.0",
                            "evaluation_id": f"sums/{system}/1790000000",
                            "model_id": f"org/{system}",
                            "evaluation_name": "sums",
                            "evaluation_result_id": f"sums/{metric}",
                            "sample_id": f"sums_{number}",
                            "interaction_type": "single_turn",
                            "input": {"raw": f"{number} + 1 = ?", "reference": [str(number + 1)]},
                            "output": {"raw": [str(number + 1 if mark else number)]},
                            "answer_attribution": [
                                {
                                    "turn_idx": 0,
                                    "source": "output.raw",
                                    "is_terminal": True,
                                    "extracted_value": str(number + 1 if mark else number),
                                    "extraction_method": "exact_match",
                                }
                            ],
                            "evaluation": {"score": float(right), "is_correct": right},
                            "error": "timeout" if mark is None else None,
                        }
                    )
                    rows.append(json.loads(row.model_dump_json(exclude_none=True)))
        lines(out / f"sums_{system}.jsonl", rows)


WRITERS = {
    "terminal_bench": write_terminal_bench, "harbor": write_harbor, "swe_bench": write_swe_bench,
    "helm": write_helm, "every_eval_ever": write_every_eval_ever,
}  # fmt: skip

if __name__ == "__main__":
    WRITERS[sys.argv[2]](Path(sys.argv[1]).resolve(), (sys.argv[3:] or [""])[0])
