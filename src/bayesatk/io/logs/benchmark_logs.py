"""Logs of benchmarks: HumanEval, LiveCodeBench, MathArena, HELM, lighteval, promptfoo and others.

Facts of the formats stand with each.
"""

from collections.abc import Iterator
from pathlib import Path

from bayesatk.io.logs.record import Record, Said
from bayesatk.io.logs.record_logs import RecordLog
from bayesatk.io.rows import EMPTY


def _blank(text: object) -> str:
    """Return the fault of a trial whose text is blank."""
    return EMPTY if isinstance(text, str) and not text.strip() else ""


def _human_eval(one: Record) -> Iterator[Said]:
    """Read a solution ``{task_id, completion, result, passed}``; the order numbers the trials."""
    yield Said(
        question=one("task_id"), outcome=one("passed"), fault=_blank(one("completion"))
    )  # fmt: skip


def _live_code_bench(one: Record) -> Iterator[Said]:
    """Read a problem with ``graded_list``, a mark for each of its solutions in ``code_list``."""
    named = one.path.name.startswith("Scenario.")  # in a folder with the name of the model
    yield Said(
        system=one.path.resolve().parent.name if named else "",
        question=one("question_id"),
        outcome=one("graded_list"),
        several=True,
        asked=(one("question_content"),),
    )


def _math_arena(one: Record) -> Iterator[Said]:
    """Read a problem: ``messages``, ``answers`` and ``correct`` have a part for each run."""
    yield Said(
        system=one.path.parent.name,
        task=one.path.parent.parent.parent.name,
        question=one("idx") if one("idx") is not None else one.path.stem,
        outcome=one("correct"),
        several=True,
        asked=(one("problem"), one("gold_answer")),
        answer=one("answers"),
    )


def _math_arena_rows(one: Record) -> Iterator[Said]:
    """Read a row of a published data set of outputs: an attempt of a model at a problem."""
    yield Said(
        system=one.text("model_name"),
        question=one("problem_idx"),
        trial=one("idx_answer"),
        outcome=one("correct"),
        asked=(one("problem"), one("gold_answer")),
        answer=one("parsed_answer"),
    )


def _every_eval_ever(one: Record) -> Iterator[Said]:
    """Read a row of the schema's instance level: ``evaluation.is_correct`` of one ``sample_id``.

    Repeats are rows with one ``sample_id``. An evaluation of several metrics has a row for each,
    told apart by ``evaluation_result_id``: these are marks of one trial.
    """
    metric = one.text("evaluation_result_id") or "is_correct"
    done = one.listed("output.raw")
    yield Said(
        system=one.text("model_id"),
        task=one.text("evaluation_name"),
        question=one("sample_id"),
        outcome={metric: one("evaluation.is_correct")},
        asked=(one("input.raw"), one("input.reference"), one("input.choices")),
        answer=next((each.get("extracted_value") for each in one.listed("answer_attribution")
                     if isinstance(each, dict) and each.get("is_terminal")), None),
        fault="an error" if one("error") else EMPTY * (done == [""]),
        known={"tokens": one("token_usage.total_tokens"),
               "seconds": one.number("performance.latency_ms") / 1000.0},
    )  # fmt: skip


def _promptfoo(one: Record) -> Iterator[Said]:
    """Read a result ``{provider, promptIdx, testIdx, vars, success, score, namedScores, ...}``.

    A repeated test has another ``testIdx``, so a question is its variables and assertions. A
    provider is a system; several prompts make several systems of it. ``failureReason`` 2 says that
    the call failed, and so does ``error`` where no assertion failed.
    """
    test = one.mapping("testCase")
    asked = one("vars") or test.get("vars"), test.get("assert"), test.get("description")
    prompts = [Record(each, {}, one.path).text("raw") for each in one.listed("^prompts")]
    provider = one.text("provider.label", "provider.id", "provider")
    several = len(set(prompts)) > 1
    failed = one("failureReason") == 2 or (one("error") and not one("gradingResult"))
    yield Said(
        system=f"{provider}: {one.text('prompt.label')[:60]}" if several else provider,
        question=Said.name_of(*asked),
        outcome={"success": one("success"), "score": one("score"), **one.mapping("namedScores")},
        scorer="success",
        asked=asked,
        reason="no mark",
        fault="an error" if failed else "",
        identity=one.text("id"),
    )


def _lighteval(one: Record) -> Iterator[Said]:
    """Read a row of details: ``doc``, ``model_response`` and the marks under ``metric``.

    Each file is one run of one task, ``details/MODEL/TIME/details_TASK_TIME.parquet``; further
    runs are further trials. Marks such as pass@k are of all samples of a row.
    """
    folders = one.path.resolve().parts
    place = len(folders) - 1 - folders[::-1].index("details") if "details" in folders else -1
    text = one("model_response.text")
    asked = one("doc.query"), one("doc.choices"), one("doc.gold_index")
    yield Said(
        system="/".join(folders[place + 1 : -2]) if place >= 0 else "",
        task=one.text("doc.task_name"),
        question=one.text("doc.id") or Said.name_of(*asked),
        trial="",
        outcome=one.mapping("metric", "metrics"),
        asked=asked,
        fault=EMPTY if text in ([], [""]) else "",
    )


def _helm(one: Record) -> Iterator[Said]:
    """Read an instance in a run, ``{instance_id, train_trial_index, stats: [{name, mean}]}``.

    Several metrics write an entry each for one instance and trial. Perturbed instances are other
    questions, and left out. ``run_spec.json`` beside names model and scenario.
    """
    if one("perturbation") is not None:
        return
    for stat in one.listed("stats"):
        own = Record(stat, {}, one.path)
        if own("name.perturbation") is None:
            yield Said(
                system=one.text("^adapter_spec.model", "^adapter_spec.model_deployment"),
                task=one.text("^scenario_spec.class_name").rpartition(".")[2],
                question=one("instance_id"),
                trial=one("train_trial_index"),
                outcome={own.text("name.name"): own("mean")},
            )


def _openai_evals(one: Record) -> Iterator[Said]:
    """Read an event of a run: ``match`` has the mark of a ``sample_id`` under ``data.correct``.

    The first line of the file is the ``spec`` of the run: model and name of the evaluation.
    """
    spec = one.mapping("spec")
    if spec:
        one.head["spec"] = spec
    if one("type") == "match":
        models = one("^spec.completion_fns")
        yield Said(
            system=", ".join(map(str, models)) if isinstance(models, list) else "",
            task=one.text("^spec.eval_name"),
            question=one("sample_id"),
            outcome=one("data.correct"),
            asked=(one("data.expected"),),
            answer=one("data.picked"),
        )


def _deep_eval(one: Record) -> Iterator[Said]:
    """Read a test case ``{input, expectedOutput, success, metricsData: [{name, success}]}``."""
    metrics = [Record(each, {}, one.path) for each in one.listed("metricsData", "metrics_data")]
    marks = {metric.text("name"): metric("success") for metric in metrics}
    errors = any(metric("error") for metric in metrics)
    asked = one("input"), one("expectedOutput", "expected_output"), one("context")
    yield Said(
        system=one.text("^hyperparameters.model", "^identifier"),
        task=one.text("^datasetAlias"),
        question=Said.name_of(*asked),
        outcome={"success": one("success"), **marks},
        scorer="success",
        asked=asked,
        reason="no mark",
        fault="an error" if errors else _blank(one("actualOutput", "actual_output")),
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
