"""Logs of benchmarks: HumanEval, LiveCodeBench, MathArena, HELM, lighteval, promptfoo and others.

Facts of the formats stand with each.
"""

from collections.abc import Iterator
from pathlib import Path

from bayesatk.io.logs.record_logs import Record, RecordLog, Said
from bayesatk.io.rows import EMPTY


def _blank(text: object) -> str:
    """Return the fault of a trial whose text is blank."""
    return EMPTY if isinstance(text, str) and not text.strip() else ""


def _human_eval(record: Record) -> Iterator[Said]:
    """Read a solution ``{task_id, completion, result, passed}``; the order numbers the trials."""
    yield Said(
        question=record("task_id"), outcome=record("passed"), fault=_blank(record("completion"))
    )  # fmt: skip


def _live_code_bench(record: Record) -> Iterator[Said]:
    """Read a problem with ``graded_list``, a mark for each of its solutions in ``code_list``."""
    named = record.path.name.startswith("Scenario.")  # in a folder with the name of the model
    yield Said(
        system=record.path.resolve().parent.name if named else "",
        question=record("question_id"),
        outcome=record("graded_list"),
        several=True,
        asked=(record("question_content"),),
    )


def _math_arena(record: Record) -> Iterator[Said]:
    """Read a problem: ``messages``, ``answers`` and ``correct`` have a part for each run."""
    yield Said(
        system=record.path.parent.name,
        task=record.path.parent.parent.parent.name,
        question=record("idx") if record("idx") is not None else record.path.stem,
        outcome=record("correct"),
        several=True,
        asked=(record("problem"), record("gold_answer")),
        answer=record("answers"),
    )


def _math_arena_rows(record: Record) -> Iterator[Said]:
    """Read a row of a published data set of outputs: an attempt of a model at a problem."""
    yield Said(
        system=record.text("model_name"),
        question=record("problem_idx"),
        trial=record("idx_answer"),
        outcome=record("correct"),
        asked=(record("problem"), record("gold_answer")),
        answer=record("parsed_answer"),
    )


def _every_eval_ever(record: Record) -> Iterator[Said]:
    """Read a row of the schema's instance level: ``evaluation.is_correct`` of one ``sample_id``.

    Repeats are rows with one ``sample_id``. An evaluation of several metrics has a row for each,
    told apart by ``evaluation_result_id``: these are marks of one trial.
    """
    metric = record.text("evaluation_result_id") or "is_correct"
    done = record.listed("output.raw")
    attributions = [
        entry for entry in record.listed("answer_attribution") if isinstance(entry, dict)
    ]
    yield Said(
        system=record.text("model_id"),
        task=record.text("evaluation_name"),
        question=record("sample_id"),
        outcome={metric: record("evaluation.is_correct")},
        asked=(record("input.raw"), record("input.reference"), record("input.choices")),
        answer=next((entry.get("extracted_value") for entry in attributions
                     if entry.get("is_terminal")), None),
        fault="an error" if record("error") else EMPTY * (done == [""]),
        known={"tokens": record("token_usage.total_tokens"),
               "seconds": record.number("performance.latency_ms") / 1000.0},
    )  # fmt: skip


def _promptfoo(record: Record) -> Iterator[Said]:
    """Read a result ``{provider, promptIdx, testIdx, vars, success, score, namedScores, ...}``.

    A repeated test has another ``testIdx``, so a question is its variables and assertions. A
    provider is a system; several prompts make several systems of it. ``failureReason`` 2 says that
    the call failed, and so does ``error`` where no assertion failed.
    """
    test = record.mapping("testCase")
    content = record("vars") or test.get("vars"), test.get("assert"), test.get("description")
    prompts = [Record(prompt, {}, record.path).text("raw") for prompt in record.listed("^prompts")]
    provider = record.text("provider.label", "provider.id", "provider")
    several = len(set(prompts)) > 1
    failed = record("failureReason") == 2 or (record("error") and not record("gradingResult"))
    yield Said(
        system=f"{provider}: {record.text('prompt.label')[:60]}" if several else provider,
        question=Said.name_of(*content),
        outcome={
            "success": record("success"),
            "score": record("score"),
            **record.mapping("namedScores"),
        },
        scorer="success",
        asked=content,
        reason="no mark",
        fault="an error" if failed else "",
        identity=record.text("id"),
    )


def _lighteval(record: Record) -> Iterator[Said]:
    """Read a row of details: ``doc``, ``model_response`` and the marks under ``metric``.

    Each file is one run of one task, ``details/MODEL/TIME/details_TASK_TIME.parquet``; further
    runs are further trials. Marks such as pass@k are of all samples of a row.
    """
    folders = record.path.resolve().parts
    details_index = (
        len(folders) - 1 - folders[::-1].index("details") if "details" in folders else -1
    )
    text = record("model_response.text")
    content = record("doc.query"), record("doc.choices"), record("doc.gold_index")
    yield Said(
        system="/".join(folders[details_index + 1 : -2]) if details_index >= 0 else "",
        task=record.text("doc.task_name"),
        question=record.text("doc.id") or Said.name_of(*content),
        trial="",
        outcome=record.mapping("metric", "metrics"),
        asked=content,
        fault=EMPTY if text in ([], [""]) else "",
    )


def _helm(record: Record) -> Iterator[Said]:
    """Read an instance in a run, ``{instance_id, train_trial_index, stats: [{name, mean}]}``.

    Several metrics write an entry each for one instance and trial. Perturbed instances are other
    questions, and left out. ``run_spec.json`` beside names model and scenario.
    """
    if record("perturbation") is not None:
        return
    for stat in record.listed("stats"):
        stat_record = Record(stat, {}, record.path)
        if stat_record("name.perturbation") is None:
            yield Said(
                system=record.text("^adapter_spec.model", "^adapter_spec.model_deployment"),
                task=record.text("^scenario_spec.class_name").rpartition(".")[2],
                question=record("instance_id"),
                trial=record("train_trial_index"),
                outcome={stat_record.text("name.name"): stat_record("mean")},
            )


def _openai_evals(record: Record) -> Iterator[Said]:
    """Read an event of a run: ``match`` has the mark of a ``sample_id`` under ``data.correct``.

    The first line of the file is the ``spec`` of the run: model and name of the evaluation.
    """
    spec = record.mapping("spec")
    if spec:
        record.head["spec"] = spec
    if record("type") == "match":
        models = record("^spec.completion_fns")
        yield Said(
            system=", ".join(map(str, models)) if isinstance(models, list) else "",
            task=record.text("^spec.eval_name"),
            question=record("sample_id"),
            outcome=record("data.correct"),
            asked=(record("data.expected"),),
            answer=record("data.picked"),
        )


def _deep_eval(record: Record) -> Iterator[Said]:
    """Read a test case ``{input, expectedOutput, success, metricsData: [{name, success}]}``."""
    metrics = [
        Record(fields, {}, record.path) for fields in record.listed("metricsData", "metrics_data")
    ]
    marks = {metric.text("name"): metric("success") for metric in metrics}
    errors = any(metric("error") for metric in metrics)
    content = record("input"), record("expectedOutput", "expected_output"), record("context")
    yield Said(
        system=record.text("^hyperparameters.model", "^identifier"),
        task=record.text("^datasetAlias"),
        question=Said.name_of(*content),
        outcome={"success": record("success"), **marks},
        scorer="success",
        asked=content,
        reason="no mark",
        fault="an error" if errors else _blank(record("actualOutput", "actual_output")),
    )


def _folder(path: Path) -> Path:
    return path.parent


_TASKS = frozenset({"scorer", "task"})
FORMATS = (
    RecordLog(
        "human-eval", "lines", ("task_id", "passed", "completion"), _human_eval,
        needed=("task_id", "passed"), says_what_was_asked=False,
    ),
    RecordLog(
        "live-code-bench", "document", ("question_id", "graded_list"), _live_code_bench,
        needed=("question_id", "graded_list"),
    ),
    RecordLog(
        "math-arena", "document", ("problem", "gold_answer", "messages", "correct"), _math_arena,
        records=".", run=_folder, honours=frozenset({"task", "answers"}),
    ),
    RecordLog(
        "math-arena-rows", "parquet",
        ("problem_idx", "problem", "model_name", "idx_answer", "gold_answer", "parsed_answer",
         "correct"),
        _math_arena_rows, run=_folder, honours=frozenset({"answers"}),
    ),
    RecordLog(
        "every-eval-ever", "lines", ("evaluation_id", "sample_id", "evaluation.is_correct"),
        _every_eval_ever, needed=("model_id", "sample_id", "evaluation.is_correct"),
        honours=_TASKS | {"answers"},
    ),
    RecordLog(
        "every-eval-ever-aggregate", "document", ("evaluation_results", "model_info"),
        _every_eval_ever,
        summary="an aggregate of Every Eval Ever. Give the .jsonl file that its "
        "detailed_evaluation_results name.",
    ),
    RecordLog(
        "promptfoo", "document", ("results.results", "results.stats|results.prompts"), _promptfoo,
        records="results.results", needed=("success",), honours=frozenset({"scorer"}),
    ),
    RecordLog(
        "lighteval", "parquet", ("doc", "model_response", "metric|metrics"), _lighteval,
        honours=_TASKS,
    ),
    RecordLog(
        "helm", "document", ("instance_id", "train_trial_index", "stats"), _helm,
        needed=("instance_id", "stats"), beside=("run_spec.json",), run=_folder, honours=_TASKS,
        says_what_was_asked=False,
    ),
    RecordLog(
        "openai-evals", "lines", ("spec.completion_fns", "spec.eval_name"), _openai_evals,
        honours=frozenset({"task", "answers"}),
    ),
    RecordLog(
        "deepeval", "document", ("testCases",), _deep_eval, records="testCases",
        ends_with_head=True, needed=("success",), honours=_TASKS,
    ),
    RecordLog(
        "deepeval-latest", "document", ("testRunData.testCases",), _deep_eval,
        records="testRunData.testCases", ends_with_head=True, needed=("success",), honours=_TASKS,
    ),
    RecordLog(
        "simple-evals", "document", ("score", "score:std|convos"), _deep_eval,
        summary="a summary of simple-evals, which writes no marks of single trials to its JSON. "
        "Write a table of them, a row for each sample.",
    ),
)  # fmt: skip
