"""Logs of benchmarks and exports of platforms: EvalPlus, HELM, promptfoo, Braintrust and others."""

import json
import re
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import canonical, digest
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.log_rows import EMPTY_OUTPUT, Totals
from bayesatk.io.logs.record_logs import Record, RecordLog, Trials, fields_of


def _eval_plus(record: Record) -> Trials:
    """Read a task: a list of solutions, each with ``base_status`` and ``plus_status``.

    ``plus_status`` is lacking if only the base tests ran. The first releases wrote ``{"base":
    [[status, ...], ...], "plus": ...}`` instead. A solution passes the added tests only if it
    passes the base tests too.
    """
    solutions = record.fields if isinstance(record.fields, list) else _first_release(record)
    for number, entry in enumerate(solutions):
        solution = replace(record, fields=entry)
        statuses = solution("base_status"), solution("plus_status")
        base, plus = (_passed(status, number, record) for status in statuses)
        if base is None:
            raise OutcomeError(
                f"every solution of {record.key!r} must have a base_status; one has none."
            )
        text = solution("solution")
        yield {
            "question": record.key,
            "trial": number,
            "outcome": {"base": base} if plus is None else {"base": base, "plus": base and plus},
            "fault": EMPTY_OUTPUT if isinstance(text, str) and not text.strip() else "",
        }


def _passed(status: object, number: int, record: Record) -> int | None:
    """Return whether a solution passed, as 1 or 0; None where its tests did not run."""
    if status is None:
        return None
    passed = {"pass": 1, "success": 1, "fail": 0, "failed": 0, "timeout": 0, "timed out": 0}
    if not isinstance(status, str) or status not in passed:
        raise OutcomeError(
            f"a status must be one of {', '.join(passed)}; solution {number} of {record.key!r} has "
            f"{shown(status)}. Was it written by EvalPlus?"
        )
    return passed[status]


def _first_release(record: Record) -> list[dict[str, Any]]:
    """Return the solutions of a task as later releases write them."""
    lists = [record.fields.get(tests) for tests in ("base", "plus")]
    if not isinstance(lists[0], list):
        raise OutcomeError(
            f"eval[{record.key!r}] must be a list of solutions; got {shown(record.fields)}."
        )
    if lists[1] and (not isinstance(lists[1], list) or len(lists[1]) != len(lists[0])):
        raise OutcomeError(
            f"eval[{record.key!r}] must have as many base as plus statuses. Is the file complete?"
        )
    firsts = [[_first(entry) for entry in entries or ()] for entries in lists]
    return [{"base_status": base, "plus_status": plus} for base, plus in zip_longest(*firsts)]


def _first(entry: object) -> object:
    """Return the first element of a list, None for anything else."""
    return entry[0] if isinstance(entry, list) and entry else None


_SAMPLES_FILE = re.compile(r"samples_(.+?)(_(\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl")


def _lm_eval(record: Record) -> Trials:
    """Read a row of ``samples_TASK_TIME.jsonl``: one for every document *and filter*.

    ``metrics`` names the marks in the row; older rows have none, and no other numbers but the marks
    and ``doc_id``. ``resps`` holds every response, though with repeats only one filtered response
    is marked. So a file is one trial of every document, and further runs are further trials
    (``same_system="trials"``). `bayesatk.lm_eval` marks every repeat: each of its metrics is a list
    of marks.
    """
    numbers = (name for name, value in record.fields.items() if isinstance(value, int | float))
    named = record.fields.get("metrics", [name for name in numbers if name != "doc_id"])
    metrics = [str(name) for name in named] if isinstance(named, list) else []
    if not metrics or not set(metrics) <= set(record.fields):
        raise OutcomeError(
            f"{record.where} must have the metrics that it lists, {shown(metrics)}. Was the file "
            "cut?"
        )
    file_name = _SAMPLES_FILE.fullmatch(record.path.name)
    if "model_name" not in record.head:
        record.head["model_name"] = _model(record, file_name[3] if file_name else None)
    answer = record("filtered_resps")
    # Prompts may differ between seeds, by their examples.
    document = record.fields.get("doc_hash") or digest(json.dumps(record("doc"), sort_keys=True))
    target = record.fields.get("target_hash") or digest(record("target"))
    answer = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
    row = {
        "task": file_name[1] if file_name else record.path.stem,
        "filter": str(record.fields.get("filter", "none")),
        "content": digest(document, target),
    }
    marks = {name: record.fields[name] for name in metrics}
    # bayesatk.lm_eval also logs them as "pass@1 questions mean" and so on.
    by_repeat = {
        name: values
        for name, values in marks.items()
        if isinstance(values, list) and " " not in name
    }
    if not by_repeat:
        _refuse_repeats(record)
        yield {**row, "trial": "", "outcome": marks, "answer": answer}
        return
    answers = answer if isinstance(answer, list) else [answer]
    for values in by_repeat.values():
        if len(values) != len(answers):
            raise OutcomeError(
                f"{record.where} must have a mark for each of {len(answers)} filtered responses; "
                f"got {shown(values)}. Was the file cut?"
            )
    for repeat, text in enumerate(answers):
        outcome = {name: values[repeat] for name, values in by_repeat.items()}
        yield {**row, "trial": repeat + 1, "outcome": outcome, "answer": text}


def _refuse_repeats(record: Record) -> None:
    """Refuse a record of several responses with a single mark."""
    responses_by_request = [
        responses
        for responses in record.of(list, "resps")
        if isinstance(responses, list) and all(isinstance(text, str | list) for text in responses)
    ]
    n_responses = max(map(len, responses_by_request), default=1)
    if n_responses > 1:
        raise OutcomeError(
            f"{record.where} holds {n_responses} responses to one request, and one mark for all: "
            "the marks of single trials are not in the file. Run lm-eval once for each trial "
            "(repeats: 1, another --seed and --output_path) and give all the files."
        )


def _model(record: Record, time: str | None) -> str:
    """Return the model in the results of the same run, or in all results of the folder."""
    folder = record.path.resolve().parent
    run_results = folder / f"results_{time}.json"
    same_run = time is not None and run_results.exists()
    files = [run_results] if same_run else sorted(folder.glob("results_*.json"))
    names = {Record(fields_of(file), {}, file).of(str, "model_name") for file in files} - {""}
    if len(names) > 1:
        raise OutcomeError(
            f"the folder must have runs of one model, or results_{time or 'TIME'}.json of this "
            f"one; it has results of {', '.join(sorted(names))}. Name the systems: ",
            Argument("source", {"name": "samples_....jsonl"}, "load"),
            ".",
        )
    return names.pop() if names else ""


def _lm_eval_totals(log: Record) -> Totals:
    """Return the number of documents of the task, which results of the same run state."""
    name = _SAMPLES_FILE.fullmatch(log.path.name)
    if name is None or name[3] is None:
        return Totals()
    results = fields_of(log.path.resolve().parent / f"results_{name[3]}.json")
    documents = Record(results, {}, log.path).of(dict, "n-samples").get(name[1])
    return Totals.stated_by(Record(documents, {}, log.path)("effective"))


def _live_code_bench(record: Record) -> Trials:
    """Read a problem with ``graded_list``, a mark for each of its solutions in ``code_list``."""
    in_folder = record.path.name.startswith("Scenario.")  # a folder with the name of the model
    yield {"system": record.path.resolve().parent.name if in_folder else ""}


def _math_arena(record: Record) -> Trials:
    """Read a problem: ``messages``, ``answers`` and ``correct`` have an element for each run."""
    yield {
        "system": record.path.parent.name,
        "task": record.path.parent.parent.parent.name,
        "question": record("idx") if record("idx") is not None else record.path.stem,
    }


def _every_eval_ever(record: Record) -> Trials:
    """Read a row of the schema's instance level: ``evaluation.is_correct`` of one ``sample_id``.

    Repeats are rows with one ``sample_id``. An evaluation of several metrics has a row for each,
    told apart by ``evaluation_result_id``: these are marks of one trial.
    """
    metric = record.of(str, "evaluation_result_id") or "is_correct"
    attributions = record.inner("answer_attribution")
    terminal = next((entry for entry in attributions if entry("is_terminal")), None)
    failed = {"fault": "an error"} if record("error") else {}
    yield {
        "outcome": {metric: record("evaluation.is_correct")},
        "answer": terminal and terminal("extracted_value"),
        "known": {"seconds": record.number("performance.latency_ms") / 1000.0},
        **failed,
    }


def _promptfoo(record: Record) -> Trials:
    """Read a result ``{provider, promptIdx, testIdx, vars, success, score, namedScores, ...}``.

    A repeated test has another ``testIdx``, so a question is its variables and assertions. A
    provider is a system; several prompts make several systems of it, and so do providers of one
    name, which have a ``promptIdx`` each. ``failureReason`` 2 says that the call failed, and so
    does ``error`` where no assertion failed.
    """
    prompts = [
        (prompt.of(str, "provider"), prompt.of(str, "raw")) for prompt in record.inner("^prompts")
    ]
    provider = record.of(str, "provider.label|provider.id|provider")
    several = len({raw for _, raw in prompts}) > 1
    label = f": {record.of(str, 'prompt.label')[:60]}" if several else ""
    column = record("promptIdx")
    if isinstance(column, int) and column < len(prompts) and prompts.count(prompts[column]) > 1:
        label += f" #{prompts[: column + 1].count(prompts[column])}"
    failed = record("failureReason") == 2 or (record("error") and not record("gradingResult"))
    marks = {"success": record("success"), "score": record("score")}
    yield {
        "system": f"{provider}{label}",
        "outcome": marks | record.of(dict, "namedScores"),
        "fault": "an error" if failed else "",
    }


def _promptfoo_totals(log: Record) -> Totals:
    """Return the number of results: successes, failures and errors of ``stats``."""
    numbers = [log(f"stats.{name}") for name in ("successes", "failures", "errors")]
    whole = [number for number in numbers if isinstance(number, int)]
    return Totals.stated_by(trials=sum(whole))


def _lighteval(record: Record) -> Trials:
    """Read a row of details: ``doc``, ``model_response`` and the marks under ``metric``.

    Each file is one run of one task, ``details/MODEL/TIME/details_TASK_TIME.parquet``; further
    runs are further trials. Marks such as pass@k are of all samples of a row.
    """
    folders = record.path.resolve().parts[:-2]
    details = max((n for n, name in enumerate(folders) if name == "details"), default=len(folders))
    yield {
        "system": "/".join(folders[details + 1 :]),
        "trial": "",
        "outcome": record.of(dict, "metric|metrics"),
    }


_HELM_NO_MARKS = re.compile(
    "(num|inference|training|estimated_num|finish_reason)_.*|batch_size|prompt_truncated|max_prob"
    "|predicted_index"
)


def _helm(stat: Record) -> Trials:
    """Read a stat of an instance, ``{instance_id, train_trial_index, stats: [{name, mean}]}``.

    Several metrics write an entry each for one instance and trial. Perturbed instances are other
    questions, and left out; so are numbers of tokens, references and train trials, and times, which
    are no marks. ``name.split`` is the split of the instance: valid and test are different
    questions, asked for different ends. ``run_spec.json`` beside names model and scenario.
    """
    name = stat.of(str, "name.name")
    if stat("^perturbation|name.perturbation") is None and not _HELM_NO_MARKS.fullmatch(name):
        yield {
            "task": stat.of(str, "^scenario_spec.class_name").rpartition(".")[2],
            "filter": stat.of(str, "name.split") or None,
            "outcome": {name: stat("mean")},
        }


def _openai_evals(record: Record) -> Trials:
    """Read an event of a run: ``match`` has the mark of a ``sample_id`` under ``data.correct``.

    The first line of the file is the ``spec`` of the run: model and name of the evaluation.
    """
    if record("spec"):
        record.head["spec"] = record("spec")
    if record("type") == "match":
        yield {"system": ", ".join(map(str, record.of(list, "^spec.completion_fns")))}


def _deep_eval(record: Record) -> Trials:
    """Read a test case ``{input, expectedOutput, success, metricsData: [{name, success}]}``."""
    metrics = record.inner("metricsData|metrics_data")
    marks = {metric.of(str, "name"): metric("success") for metric in metrics}
    failed = {"fault": "an error"} if any(metric("error") for metric in metrics) else {}
    yield {"outcome": {"success": record("success"), **marks}, **failed}


def _phoenix(run: Record) -> Trials:
    """Read a run of an example: ``annotations`` have a ``score`` or a ``label`` by ``name``.

    ``error`` says that the task failed, and that of an annotation that its evaluator did.
    """
    marks = {
        mark.of(str, "name"): mark("score") if mark("score") is not None else mark("label")
        for mark in run.inner("annotations")
    }
    yield {
        "outcome": marks,
        "known": {"seconds": run.number("latency_ms") / 1000.0},
        "fault": "an error" if run("error") else "",
    }


def _langfuse(item: Record) -> Trials:
    """Read an item of an experiment: ``scores`` have a ``value`` by ``name``, and a ``source``.

    Scores of the types TEXT and CORRECTION are comments. The same score may come from several
    sources, an evaluator and a person.
    """
    marks: dict[str, Any] = {}
    for score in item.inner("scores"):
        name, value = score.of(str, "name"), score("value")
        if score("dataType") in ("TEXT", "CORRECTION"):
            continue
        if marks.setdefault(name, value) != value:
            raise OutcomeError(
                f"an item must have one value of a score; {item.where} has {shown(marks[name])} "
                f"and {shown(value)} of {shown(name)}. Leave out one of their sources, "
                f"{shown([mark('source') for mark in item.inner('scores')])[1:-1]}."
            )
    yield {"outcome": marks, "fault": "an error" if item("level") == "ERROR" else ""}


def _braintrust(span: Record) -> Trials:
    """Read an event of an experiment: the root span of a trial has its ``scores`` by name.

    The spans below it, of the task and of scorers, repeat its scores or have none. ``origin`` is
    the row of the data set that the input is of; without one equal inputs are one question, as
    Braintrust compares experiments. ``error`` says that the task failed.
    """
    if span("span_id") == span("root_span_id") and span("is_root") is not False:
        yield {
            "outcome": span.of(dict, "scores"),
            "question": span("origin.id|dataset_record_id")
            or f"#{digest(canonical(span('input')))}",
            "fault": "an error" if span("error") else "",
        }


def _next_page(log: Record, number: int) -> list[str]:
    """Return a note if a paged export names a next page."""
    if not log("meta.cursor|cursor"):
        return []
    return [f"CHECK: the export has {number} records and names a next page (cursor); is it read?"]


_TASKS = ("scorer", "task")
_ITEMS = ("scorer", "question_key")
_DEEP_EVAL = RecordLog(
    "deepeval", "document", ("testCases",),
    {"system": "^hyperparameters.model|^identifier", "task": "^datasetAlias"},
    asked=("input", "expectedOutput|expected_output", "context"),
    output=("actualOutput|actual_output",), read=_deep_eval, by_content=True, scorer="success",
    records="testCases", needed=("success",), ends_with_head=True, honours=_TASKS,
)  # fmt: skip
FORMATS = (
    RecordLog(
        "lm-eval", "lines", ("doc_id", "resps"), {"system": "^model_name", "question": "doc_id"},
        output=("filtered_resps", "resps"), within="doc", read=_lm_eval,
        marker="lm-eval's metric {scorer}, filter {filter}", reason="unscored", needed=("doc_id",),
        named_by="folder", stated=_lm_eval_totals,
        honours=(*_TASKS, "filter", "answers", "question_key"),
    ),
    RecordLog(
        "evalplus", "document", ("eval.*.[]|eval.*.base.[]",), read=_eval_plus,
        marker="EvalPlus's {scorer} tests", reason="not judged", records="eval", kinds=(dict, list),
        ending=r"[._]eval_results", honours=("scorer",),
    ),
    RecordLog(
        # The order numbers the trials.
        "human-eval", "lines", ("task_id", "passed", "completion"),
        {"question": "task_id", "outcome": "passed"}, output=("completion",),
        needed=("task_id", "passed"),
    ),
    RecordLog(
        "live-code-bench", "document", ("question_id", "graded_list"),
        {"question": "question_id", "outcome": "graded_list"}, asked=("question_content",),
        read=_live_code_bench, lists=True, needed=("question_id", "graded_list"),
    ),
    RecordLog(
        "math-arena", "document", ("problem", "gold_answer", "messages", "correct"),
        {"outcome": "correct", "answer": "answers"}, asked=("problem", "gold_answer"),
        read=_math_arena, lists=True, records=".", run_above=1,
        honours=("task", "answers"),
    ),
    RecordLog(
        # A row of a published data set of outputs: an attempt of a model at a problem.
        "math-arena-rows", "parquet",
        ("problem_idx", "problem", "model_name", "idx_answer", "gold_answer", "parsed_answer",
         "correct"),
        {"system": "model_name", "question": "problem_idx", "trial": "idx_answer",
         "outcome": "correct", "answer": "parsed_answer"},
        asked=("problem", "gold_answer"), run_above=1, honours=("answers",),
    ),
    RecordLog(
        "every-eval-ever", "lines", ("evaluation_id", "sample_id", "evaluation.is_correct"),
        {"system": "model_id", "task": "evaluation_name", "question": "sample_id"},
        asked=("input.raw", "input.reference", "input.choices"), output=("output.raw",),
        known={"tokens": "token_usage.total_tokens"}, read=_every_eval_ever, marks_apart=True,
        needed=("model_id", "sample_id", "evaluation.is_correct"), honours=(*_TASKS, "answers"),
    ),
    RecordLog(
        "every-eval-ever-aggregate", "document", ("evaluation_results", "model_info"),
        summary="an aggregate of Every Eval Ever. Give the .jsonl file that its "
        "detailed_evaluation_results name.",
    ),
    RecordLog(
        "promptfoo", "document", ("results.results", "results.stats|results.prompts"),
        {"identity": "id"},
        asked=("vars|testCase.vars", "testCase.assert", "testCase.description"), read=_promptfoo,
        by_content=True, scorer="success", records="results.results", needed=("success",),
        stated=_promptfoo_totals, honours=("scorer",),
    ),
    RecordLog(
        "lighteval", "parquet", ("doc", "model_response", "metric|metrics"),
        {"task": "doc.task_name", "question": "doc.id"},
        asked=("doc.query", "doc.choices", "doc.gold_index"), output=("model_response.text",),
        read=_lighteval, by_content=True, honours=_TASKS,
    ),
    RecordLog(
        "helm", "document", ("instance_id", "train_trial_index", "stats"),
        {"system": "^adapter_spec.model|^adapter_spec.model_deployment",
         "question": "^instance_id", "trial": "^train_trial_index"},
        read=_helm, marks_apart=True, parts="stats", needed=("instance_id", "stats"),
        marker="HELM's {scorer}, split {filter}", beside="run_spec.json", run_above=1,
        honours=(*_TASKS, "filter"),
    ),
    RecordLog(
        "openai-evals", "lines", ("spec.completion_fns", "spec.eval_name"),
        {"task": "^spec.eval_name", "question": "sample_id", "outcome": "data.correct",
         "answer": "data.picked"},
        asked=("data.expected",), read=_openai_evals, honours=("task", "answers"),
    ),
    _DEEP_EVAL,
    replace(
        _DEEP_EVAL, name="deepeval-latest", signs=("testRunData.testCases",),
        records="testRunData.testCases",
    ),
    RecordLog(
        "phoenix", "records", ("example_id", "repetition_number", "annotations"),
        {"question": "example_id", "trial": "repetition_number"},
        asked=("input", "reference_output"), output=("output",),
        read=_phoenix, reason="no annotation", needed=("example_id",), honours=_ITEMS,
    ),
    RecordLog(
        "langfuse", "records", ("experimentItemId", "experimentName", "traceId"),
        {"system": "experimentName", "question": "experimentItemId", "trial": "id",
         "identity": "id"},
        asked=("input", "expectedOutput"), output=("output",), read=_langfuse, reason="no score",
        records="data", needed=("experimentItemId", "scores"), notes=_next_page, honours=_ITEMS,
    ),
    RecordLog(
        "braintrust", "records", ("root_span_id", "span_id", "scores"),
        {"system": "experiment_id", "trial": "id", "identity": "id"},
        asked=("input",), output=("output",), known={"tokens": "metrics.tokens"},
        read=_braintrust, reason="no score", records="events|data",
        needed=("span_id", "root_span_id"), notes=_next_page, honours=_ITEMS,
    ),
)  # fmt: skip
