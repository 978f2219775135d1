"""Logs of agents at work: tau-bench, tau2-bench, Terminal-Bench, Harbor, SWE-bench, verifiers.

Facts of the formats stand with each. Where a tool says that a trial failed for a reason other than
the system (its sandbox, the network, its own verifier), the trial has a fault; where it was not
judged at all, it has no outcome, and the reason is told.
"""

from collections.abc import Iterator
from pathlib import Path

from bayesatk.io.logs.record_logs import Record, RecordLog, Said
from bayesatk.io.rows import EMPTY


def _tau_bench(record: Record) -> Iterator[Said]:
    """Read a record ``{task_id, trial, reward, info, traj}``.

    A run that raised an exception has reward 0, an empty ``traj`` and the error in ``info``. A
    reward within 1e-6 of 1 is a success.
    """
    failed = record("info.error") or record("traj") == []
    yield Said(
        question=record("task_id"),
        trial=record("trial"),
        outcome=record("reward"),
        asked=(record("info.task"),),
        fault=EMPTY if failed else "",
        reason="no reward",
    )


def _tau2(record: Record) -> Iterator[Said]:
    """Read a simulation: ``reward_info.reward`` (absent if not judged), ``trial``, ``task_id``.

    The termination reason "infrastructure_error" says nothing about the agent. The model stands in
    ``info.agent_info.llm`` of the document, the tasks under ``tasks``.
    """
    ended = record("termination_reason") or "unknown"
    yield Said(
        system=record.text("^info.agent_info.llm"),
        task=record.text("^info.environment_info.domain_name"),
        question=record("task_id"),
        trial=record("trial"),
        outcome=None if ended == "infrastructure_error" else record("reward_info.reward"),
        asked=(record.entry("tasks", record("task_id")),),
        fault=EMPTY if record("messages") == [] else "",
        reason=f"not judged (ended by {ended})",
        identity=record.text("id"),
        known={
            "domain": record.text("^info.environment_info.domain_name"),
            "cost": record("agent_cost"),
            "seconds": record("duration"),
        },
    )


def _terminal_bench(record: Record) -> Iterator[Said]:
    """Read a trial ``{task_id, trial_name, instruction, is_resolved, failure_mode}``.

    Agent, model and data set stand in ``run_metadata.json`` beside the results; ``is_resolved`` is
    null where the tests were never parsed.
    """
    mode = record.text("failure_mode")
    # These are no failures of the agent at its task.
    faults = ("agent_installation_failed", "unknown_agent_error", "parse_error", "unknown")
    names = [name for name in (record.text("^agent_name"), record.text("^model_name")) if name]
    yield Said(
        system=" ".join(names),
        task=record.text("^dataset_name"),
        question=record("task_id"),
        trial=record("trial_name"),
        outcome=record("is_resolved"),
        asked=(record("instruction"),),
        reason=f"not judged ({mode or 'no failure mode'})",
        fault=f"the failure mode {mode}" if mode in faults else "",
        identity=record.text("id"),
    )


def _harbor(record: Record) -> Iterator[Said]:
    """Read a trial's ``result.json``: ``task_name``, ``source``, ``verifier_result.rewards``.

    ``exception_info.exception_type`` names what ended it; steps may have exceptions of their own.
    ``rewards`` has a mark for every verifier, usually "reward" alone. ``source`` is the data set:
    two of them may share a name of a task.
    """
    kinds = [record.text("exception_info.exception_type")]
    for step in record.listed("step_results"):
        kinds.append(Record(step, {}, record.path).text("exception_info.exception_type"))
    # After these a reward still measures the agent: it ran out of its budget, or refused. Any other
    # exception is of the sandbox, the provider of the model, or the verifier.
    agent_exceptions = (
        "AgentTimeoutError", "ContextWindowExceededError", "OutputTokenExceededError",
        "ContextLengthExceededError", "OutputLengthExceededError", "AgentSafetyRefusalError",
        "ContentPolicyViolationError",
    )  # fmt: skip
    raised = [kind for kind in kinds if kind and kind not in agent_exceptions]
    rewards = record.mapping("verifier_result.rewards")
    model = record.text("agent_info.model_info.name")
    yield Said(
        system=" ".join(name for name in (record.text("agent_info.name"), model) if name),
        task=record.text("source"),
        question=record("task_name"),
        trial=record("trial_name"),
        outcome=rewards or None,
        scorer="reward" if "reward" in rewards else "",
        asked=(record("task_checksum"),),
        reason=f"not judged ({raised[0] if raised else 'no reward'})",
        fault=f"the exception {raised[0]}" if raised else "",
        identity=record.text("id"),
    )


def _swe_bench(record: Record) -> Iterator[Said]:
    """Read a report of a run: lists of ids by what became of each instance.

    An instance without a prediction was not tried (``incomplete_ids``); one whose evaluation ended
    in an error, or was marked as a likely infrastructure failure, counts as unresolved.
    """
    resolved, errors = set(record.texts("resolved_ids")), set(record.texts("error_ids"))
    infra, empty = set(record.texts("infra_failure_ids")), set(record.texts("empty_patch_ids"))
    tried = [*record.texts("resolved_ids"), *record.texts("unresolved_ids"), *errors, *empty]
    for name in dict.fromkeys([*tried, *record.texts("incomplete_ids")]):
        fault = "an error of the evaluation" if name in errors else ""
        fault = EMPTY if name in empty else "an infrastructure failure" if name in infra else fault
        yield Said(
            system=record.path.stem.rpartition(".")[0],
            question=name,
            trial="",
            outcome=int(name in resolved) if name in tried else None,
            reason="no prediction",
            fault=fault,
            known={"repo": _repository(name)},
        )


def _swe_bench_instance(record: Record) -> Iterator[Said]:
    """Read a ``report.json`` of one instance: ``{ID: {patch_is_None, resolved, ...}}``."""
    for name, entry in record.fields.items():
        report = entry if isinstance(entry, dict) else {}
        faulty = report.get("infra_failure") is True
        empty = EMPTY * bool(report.get("patch_is_None"))
        yield Said(
            system=record.path.parent.parent.name,
            question=name,
            trial="",
            outcome=report.get("resolved"),
            reason="not judged",
            fault="an infrastructure failure" if faulty else empty,
            known={"repo": _repository(name)},
        )


def _repository(instance: str) -> str:
    """Return the repository of an instance: ``django__django-123`` is of ``django/django``."""
    return instance.rpartition("-")[0].replace("__", "/", 1)


def _verifiers(record: Record) -> Iterator[Said]:
    """Read a rollout ``{example_id or id, prompt, completion, answer, reward}`` with named rewards.

    The id counts requests, not questions: one id stands for several prompts. So a question is its
    prompt with its answer and task. ``metadata.json`` beside names model and environment.
    """
    content = record("task"), record("prompt"), record("answer")
    no_marks = ("id", "example_id", "generation_ms", "scoring_ms", "total_ms", "reward")
    marks = {
        name: value
        for name, value in record.fields.items()
        if isinstance(value, float | int) and not isinstance(value, bool) and name not in no_marks
    }
    done = record("completion")
    yield Said(
        system=record.text("^model"),
        task=record.text("^env_id", "^env"),
        question=Said.name_of(*content),
        outcome={"reward": record("reward"), **marks},
        scorer="reward",
        asked=content,
        reason="no reward",
        fault="an error" if record("error") else EMPTY * (done in ("", [])),
    )


def _verifiers_traces(record: Record) -> Iterator[Said]:
    """Read an episode, with a trace for each agent: the reward sums weight times score."""
    for trace in record.listed("traces"):
        trace_record = Record(trace, {}, record.path)
        rewards = trace_record.mapping("rewards")
        reward_records = {
            name: Record(reward, {}, record.path) for name, reward in rewards.items() if reward
        }
        scores = {name: reward.number("score") for name, reward in reward_records.items()}
        total_reward = sum(
            scores[name] * reward.number("weight") for name, reward in reward_records.items()
        )
        task_data = trace_record("task.data")
        yield Said(
            system=trace_record.text("agent.config.model", "agent.name"),
            task=record.text("env.id"),
            question=trace_record.text("task.key", "task.hash") or Said.name_of(task_data),
            outcome={"reward": total_reward if reward_records else None, **scores},
            scorer="reward",
            asked=(task_data,),
            reason="no reward",
            fault="" if trace_record("ok") else "an error",
            identity=trace_record.text("id"),
        )


def _folder_above(path: Path) -> Path:
    return path.parent.parent


FORMATS = (
    RecordLog(
        "verifiers", "lines", ("example_id|id", "prompt", "completion", "reward"), _verifiers,
        unless=("system", "model", "trial"), needed=("prompt", "reward"), beside=("metadata.json",),
        honours=frozenset({"scorer", "task"}),
    ),
    RecordLog(
        "verifiers-traces", "lines", ("env", "task", "traces", "ok"), _verifiers_traces,
        honours=frozenset({"scorer", "task"}),
    ),
    RecordLog(
        "harbor", "document", ("task_name", "trial_name", "agent_info", "config"), _harbor,
        records=".", run=_folder_above, honours=frozenset({"scorer", "task"}),
    ),
    RecordLog(
        "harbor-job", "document", ("n_total_trials", "stats"), _harbor,
        summary="the summary of a Harbor job. Give the folder that it is in.",
    ),
    RecordLog(
        "terminal-bench", "document", ("results.task_id", "results.is_resolved"), _terminal_bench,
        records="results", needed=("task_id", "is_resolved"), beside=("run_metadata.json",),
        honours=frozenset({"task"}),
    ),
    RecordLog(
        "terminal-bench-trial", "document", ("task_id", "trial_name", "is_resolved"),
        _terminal_bench, records=".", run=_folder_above, part_of="terminal-bench",
        honours=frozenset({"task"}),
    ),
    RecordLog(
        "swe-bench", "document", ("resolved_ids", "unresolved_ids"), _swe_bench, records=".",
        says_what_was_asked=False,
    ),
    RecordLog(
        "swe-bench-instance", "document", ("*.patch_is_None", "*.resolved"), _swe_bench_instance,
        records=".", run=_folder_above, says_what_was_asked=False,
        needed=("*.patch_is_None", "*.resolved"),
        note="CHECK: instances whose evaluation ended in an error have no report.json; the report "
        "of the run, MODEL.RUN.json, counts them",
    ),
    RecordLog(
        "tau-bench", "document", ("task_id", "reward", "traj|info"), _tau_bench,
        needed=("task_id", "reward"),
    ),
    RecordLog(
        "tau2-bench", "document", ("simulations",), _tau2, records="simulations",
        needed=("task_id",), honours=frozenset({"task"}),
    ),
    RecordLog(
        "tau2-simulations", "document", ("task_id", "reward_info", "termination_reason"), _tau2,
        needed=("task_id",),
    ),
)  # fmt: skip
