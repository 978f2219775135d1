"""Logs of agents at work: tau-bench, tau2-bench, Terminal-Bench, Harbor, SWE-bench, verifiers.

Facts of the formats stand with each. Where a tool says that a trial failed for a reason other than
the system (its sandbox, the network, its own verifier), the trial has a fault; where it was not
judged at all, it has no outcome, and the reason is told.
"""

from collections.abc import Iterator
from pathlib import Path

from bayesatk.io.logs.record import Record, Said
from bayesatk.io.logs.record_logs import RecordLog
from bayesatk.io.rows import EMPTY


def _tau_bench(one: Record) -> Iterator[Said]:
    """Read a record ``{task_id, trial, reward, info, traj}``.

    A run that raised an exception has reward 0, an empty ``traj`` and the error in ``info``. A
    reward within 1e-6 of 1 is a success.
    """
    failed = one("info.error") or one("traj") == []
    yield Said(
        question=one("task_id"),
        trial=one("trial"),
        outcome=one("reward"),
        asked=(one("info.task"),),
        fault=EMPTY if failed else "",
        reason="no reward",
    )


def _tau2(one: Record) -> Iterator[Said]:
    """Read a simulation: ``reward_info.reward`` (absent if not judged), ``trial``, ``task_id``.

    The termination reason "infrastructure_error" says nothing about the agent. The model stands in
    ``info.agent_info.llm`` of the document, the tasks under ``tasks``.
    """
    ended = one("termination_reason") or "unknown"
    yield Said(
        system=one.text("^info.agent_info.llm"),
        task=one.text("^info.environment_info.domain_name"),
        question=one("task_id"),
        trial=one("trial"),
        outcome=None if ended == "infrastructure_error" else one("reward_info.reward"),
        asked=(one.entry("tasks", one("task_id")),),
        fault=EMPTY if one("messages") == [] else "",
        reason=f"not judged (ended by {ended})",
        identity=one.text("id"),
        known={
            "domain": one.text("^info.environment_info.domain_name"),
            "cost": one("agent_cost"),
            "seconds": one("duration"),
        },
    )


# Failure modes of Terminal-Bench that are no failures of the agent at its task.
_TERMINAL_FAULTS = ("agent_installation_failed", "unknown_agent_error", "parse_error", "unknown")


def _terminal_bench(one: Record) -> Iterator[Said]:
    """Read a trial ``{task_id, trial_name, instruction, is_resolved, failure_mode}``.

    Agent, model and data set stand in ``run_metadata.json`` beside the results; ``is_resolved`` is
    null where the tests were never parsed.
    """
    mode = one.text("failure_mode")
    names = [each for each in (one.text("^agent_name"), one.text("^model_name")) if each]
    yield Said(
        system=" ".join(names),
        task=one.text("^dataset_name"),
        question=one("task_id"),
        trial=one("trial_name"),
        outcome=one("is_resolved"),
        asked=(one("instruction"),),
        reason=f"not judged ({mode or 'no failure mode'})",
        fault=f"the failure mode {mode}" if mode in _TERMINAL_FAULTS else "",
        identity=one.text("id"),
    )


# Exceptions of Harbor after which a reward still measures the agent: it ran out of its budget, or
# refused. Any other exception is of the sandbox, the provider of the model, or the verifier.
_HARBOR_OWN = (
    "AgentTimeoutError", "ContextWindowExceededError", "OutputTokenExceededError",
    "ContextLengthExceededError", "OutputLengthExceededError", "AgentSafetyRefusalError",
    "ContentPolicyViolationError",
)  # fmt: skip


def _harbor(one: Record) -> Iterator[Said]:
    """Read a trial's ``result.json``: ``task_name``, ``source``, ``verifier_result.rewards``.

    ``exception_info.exception_type`` names what ended it; steps may have exceptions of their own.
    ``rewards`` has a mark for every verifier, usually "reward" alone. ``source`` is the data set:
    two of them may share a name of a task.
    """
    kinds = [one.text("exception_info.exception_type")]
    for step in one.listed("step_results"):
        kinds.append(Record(step, {}, one.path).text("exception_info.exception_type"))
    raised = [kind for kind in kinds if kind and kind not in _HARBOR_OWN]
    rewards = one.mapping("verifier_result.rewards")
    model = one.text("agent_info.model_info.name")
    yield Said(
        system=" ".join(each for each in (one.text("agent_info.name"), model) if each),
        task=one.text("source"),
        question=one("task_name"),
        trial=one("trial_name"),
        outcome=rewards or None,
        scorer="reward" if "reward" in rewards else "",
        asked=(one("task_checksum"),),
        reason=f"not judged ({raised[0] if raised else 'no reward'})",
        fault=f"the exception {raised[0]}" if raised else "",
        identity=one.text("id"),
    )


def _swe_bench(one: Record) -> Iterator[Said]:
    """Read a report of a run: lists of ids by what became of each instance.

    An instance without a prediction was not tried (``incomplete_ids``); one whose evaluation ended
    in an error, or was marked as a likely infrastructure failure, counts as unresolved.
    """
    resolved, errors = set(one.texts("resolved_ids")), set(one.texts("error_ids"))
    infra, empty = set(one.texts("infra_failure_ids")), set(one.texts("empty_patch_ids"))
    tried = [*one.texts("resolved_ids"), *one.texts("unresolved_ids"), *errors, *empty]
    for name in dict.fromkeys([*tried, *one.texts("incomplete_ids")]):
        fault = "an error of the evaluation" if name in errors else ""
        fault = EMPTY if name in empty else "an infrastructure failure" if name in infra else fault
        yield Said(
            system=one.path.stem.rpartition(".")[0],
            question=name,
            trial="",
            outcome=int(name in resolved) if name in tried else None,
            reason="no prediction",
            fault=fault,
            known={"repo": _repository(name)},
        )


def _swe_bench_instance(one: Record) -> Iterator[Said]:
    """Read a ``report.json`` of one instance: ``{ID: {patch_is_None, resolved, ...}}``."""
    for name, own in one.fields.items():
        found = own if isinstance(own, dict) else {}
        faulty = found.get("infra_failure") is True
        empty = EMPTY * bool(found.get("patch_is_None"))
        yield Said(
            system=one.path.parent.parent.name,
            question=name,
            trial="",
            outcome=found.get("resolved"),
            reason="not judged",
            fault="an infrastructure failure" if faulty else empty,
            known={"repo": _repository(name)},
        )


def _repository(instance: str) -> str:
    """Return the repository of an instance: ``django__django-123`` is of ``django/django``."""
    return instance.rpartition("-")[0].replace("__", "/", 1)


# Fields of a verifiers row that are no mark, though they may be numbers.
_NO_MARKS = ("id", "example_id", "generation_ms", "scoring_ms", "total_ms", "reward")


def _verifiers(one: Record) -> Iterator[Said]:
    """Read a rollout ``{example_id or id, prompt, completion, answer, reward}`` with named rewards.

    The id counts requests, not questions: one id stands for several prompts. So a question is its
    prompt with its answer and task. ``metadata.json`` beside names model and environment.
    """
    asked = one("task"), one("prompt"), one("answer")
    marks = {
        name: value
        for name, value in one.fields.items()
        if isinstance(value, float | int) and not isinstance(value, bool) and name not in _NO_MARKS
    }
    done = one("completion")
    yield Said(
        system=one.text("^model"),
        task=one.text("^env_id", "^env"),
        question=Said.name_of(*asked),
        outcome={"reward": one("reward"), **marks},
        scorer="reward",
        asked=asked,
        reason="no reward",
        fault="an error" if one("error") else EMPTY * (done in ("", [])),
    )


def _verifiers_traces(one: Record) -> Iterator[Said]:
    """Read an episode, with a trace for each agent: the reward sums weight times score."""
    for trace in one.listed("traces"):
        own = Record(trace, {}, one.path)
        rewards = own.mapping("rewards")
        parts = {name: Record(part, {}, one.path) for name, part in rewards.items() if part}
        scores = {name: part.number("score") for name, part in parts.items()}
        whole = sum(scores[name] * part.number("weight") for name, part in parts.items())
        asked = own("task.data")
        yield Said(
            system=own.text("agent.config.model", "agent.name"),
            task=one.text("env.id"),
            question=own.text("task.key", "task.hash") or Said.name_of(asked),
            outcome={"reward": whole if parts else None, **scores},
            scorer="reward",
            asked=(asked,),
            reason="no reward",
            fault="" if own("ok") else "an error",
            identity=own.text("id"),
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
