"""Logs of agents: tau-bench, tau2-bench, Harbor, Terminal-Bench, SWE-bench, verifiers, NeMo Gym.

If a tool states that a trial failed for another reason than the system (its sandbox, the network,
its verifier), the trial gets a fault. If it was not judged, it has no outcome and gets a reason.
"""

from collections.abc import Collection
from dataclasses import replace

from bayesatk.io.json_stream import Json
from bayesatk.io.log_rows import EMPTY_OUTPUT, Totals
from bayesatk.io.logs.record_logs import Record, RecordLog, Trials, content_of, fields_of


def _tau_bench(record: Record) -> Trials:
    """Read a record ``{task_id, trial, reward, info, traj}``.

    A run that raised an exception has reward 0, an empty ``traj`` and the error in ``info``. A
    reward within 1e-6 of 1 is a success.
    """
    yield {"fault": EMPTY_OUTPUT} if record("info.error") else {}


def _tau2(record: Record) -> Trials:
    """Read a simulation: ``reward_info.reward`` (absent if not judged), ``trial``, ``task_id``.

    The termination reason "infrastructure_error" says nothing about the agent. The model stands in
    ``info.agent_info.llm`` of the document, the tasks under ``tasks``.
    """
    tasks = record.head.get("tasks by id")
    if tasks is None:
        listed = [task for task in record.of(list, "^tasks") if isinstance(task, dict)]
        tasks = record.head["tasks by id"] = {str(task.get("id")): task for task in listed}
    ended = record("termination_reason") or "unknown"
    yield {
        "outcome": None if ended == "infrastructure_error" else record("reward_info.reward"),
        "content": content_of(tasks.get(str(record("task_id")))),
        "reason": f"not judged (ended by {ended})",
    }


def _terminal_bench(record: Record) -> Trials:
    """Read a trial ``{task_id, trial_name, instruction, is_resolved, failure_mode}``.

    Agent, model and data set stand in ``run_metadata.json`` beside the results; ``is_resolved`` is
    null where the tests were never parsed.
    """
    mode = record.of(str, "failure_mode")
    # These failures are not of the agent.
    faults = ("agent_installation_failed", "unknown_agent_error", "parse_error", "unknown")
    yield {
        "system": f"{record.of(str, '^agent_name')} {record.of(str, '^model_name')}".strip(),
        "reason": f"not judged ({mode or 'no failure mode'})",
        "fault": f"the failure mode {mode}" if mode in faults else "",
    }


def _harbor(record: Record) -> Trials:
    """Read a trial's ``result.json``: ``task_name``, ``source``, ``verifier_result.rewards``.

    ``exception_info.exception_type`` names the exception that ended it; steps may have others.
    ``rewards`` has a mark for every verifier, usually only "reward". ``source`` is the data set,
    or null: within a job, tasks of one name in two data sets are different. An agent without a
    model has no ``model_info``, and some agents name their model only in ``config``. Since 0.26
    ``reward_valid`` says whether the reward measures the agent, by the rules of the job. A download
    may have superseded trials under ``_retries``.
    """
    if _is_retry(record):
        return
    steps = [record, *record.inner("step_results")]
    exceptions = [step.of(str, "exception_info.exception_type") for step in steps]
    # After these exceptions a reward measures the agent, which ran out of its budget or refused.
    # Any other exception is of the sandbox, the provider of the model, or the verifier.
    agent_exceptions = (
        "",
        "AgentTimeoutError",
        "ContextWindowExceededError",
        "OutputTokenExceededError",
        "ContextLengthExceededError",
        "OutputLengthExceededError",
        "AgentSafetyRefusalError",
        "ContentPolicyViolationError",
    )
    raised = next((name for name in exceptions if name not in agent_exceptions), "")
    fault, is_valid = f"the exception {raised}" if raised else "", record("reward_valid")
    if is_valid is not None:
        raised = "" if is_valid else raised or next(filter(None, exceptions), "")
        fault = "" if is_valid else f"the exception {raised}" if raised else "an invalid reward"
    agent = record.of(str, "agent_info.name")
    model = record.of(str, "agent_info.model_info.name|config.agent.model_name")
    yield {
        "system": f"{agent} {model}".strip(),
        "outcome": record.of(dict, "verifier_result.rewards") or None,
        "reason": f"not judged ({raised or 'no reward'})",
        "fault": fault,
    }


def _is_retry(trial: Record) -> bool:
    """Return whether a trial of Harbor was repeated; its last run is in the folder of the job."""
    return trial.path.parent.name.startswith("retry-") and "_retries" in trial.path.parts


def _harbor_totals(trial: Record) -> Totals:
    """Return the totals in the files of the job: trials of a task, and in all."""
    job = trial.path.parents[1]
    config, result = (
        Record(fields_of(job / f"{name}.json"), {}, job) for name in ("config", "result")
    )
    return Totals.stated_by(None, config("n_attempts"), result("n_total_trials"))


def _swe_bench(record: Record) -> Trials:
    """Read a report of a run: lists of ids by what became of each instance.

    An instance without a prediction was not tried (``incomplete_ids``). One whose evaluation ended
    in an error, or in an infrastructure failure, counts as unresolved and gets a fault.
    """
    # Reports of the harness have ``resolved_ids``; the experiments repository has ``resolved``.
    ends = {
        "resolved": "resolved",
        "unresolved": "unresolved generated",
        "incomplete": "",
        "error": "test_errored test_timeout install_fail reset_failed",
        "infra_failure": "",
        "empty_patch": "no_generation",
    }
    names = {
        end: [
            name
            for key in (f"{end}_ids", *keys.split())
            for name in record.of(list, key)
            if isinstance(name, str)
        ]
        for end, keys in ends.items()
    }
    faults = {
        **dict.fromkeys(names["error"], "an error of the evaluation"),
        **dict.fromkeys(names["infra_failure"], "an infrastructure failure"),
        **dict.fromkeys(names["empty_patch"], EMPTY_OUTPUT),
    }
    tried = [*names["resolved"], *names["unresolved"], *names["error"], *names["empty_patch"]]
    outcomes = dict.fromkeys(names["incomplete"])
    outcomes |= dict.fromkeys(tried, 0) | dict.fromkeys(names["resolved"], 1)
    stem, folder = record.path.stem, record.path.resolve().parent.name
    system = folder if stem in ("results", "report") else stem.rpartition(".")[0] or stem
    for name in dict.fromkeys([*tried, *names["incomplete"]]):
        yield {
            "system": system,
            "question": name,
            "trial": "",
            "outcome": outcomes[name],
            "fault": faults.get(name, ""),
            "known": {"repo": _repository(name)},
        }


def _swe_bench_instance(record: Record) -> Trials:
    """Read a ``report.json`` of one instance: ``{ID: {patch_is_None, resolved, ...}}``."""
    for name, entry in record.fields.items():
        report = entry if isinstance(entry, dict) else {}
        fault = EMPTY_OUTPUT if report.get("patch_is_None") else ""
        yield {
            "system": record.path.parent.parent.name,
            "question": name,
            "trial": "",
            "outcome": report.get("resolved"),
            "fault": "an infrastructure failure" if report.get("infra_failure") is True else fault,
            "known": {"repo": _repository(name)},
        }


def _repository(instance: str) -> str:
    """Return the repository of an instance: ``django__django-123`` is of ``django/django``."""
    return instance.rpartition("-")[0].replace("__", "/", 1)


def _verifiers(record: Record) -> Trials:
    """Read a rollout ``{example_id or id, prompt, completion, answer, reward}`` with named rewards.

    In some releases the id counts requests, not questions: one id stands for several prompts. So
    task, prompt and answer are the question. Where prompts are not distinctive, or a simulated user
    writes them, the totals in ``metadata.json`` beside, which names model and environment,
    contradict this.
    """
    no_marks = "id", "example_id", "generation_ms", "scoring_ms", "total_ms"
    failed = {"fault": "an error"} if record("error") else {}
    yield {"outcome": _rewards(record, no_marks), **failed}


def _rewards(record: Record, no_marks: Collection[str]) -> Json:
    """Return the reward and all other numbers of a rollout by name."""
    marks = {
        name: value
        for name, value in record.fields.items()
        if isinstance(value, float | int) and not isinstance(value, bool) and name not in no_marks
    }
    return {"reward": record("reward"), **marks}


def _verifiers_traces(trace: Record) -> Trials:
    """Read a trace of an episode, which has one for each agent: the reward sums weight times score.

    A reward is ``{"score": ..., "weight": ...}`` under its name.
    """
    rewards = {
        name: Record(reward, {}, trace.path)
        for name, reward in trace.of(dict, "rewards").items()
        if reward
    }
    scores = {name: reward.number("score") for name, reward in rewards.items()}
    total = sum(scores[name] * reward.number("weight") for name, reward in rewards.items())
    yield {
        "outcome": {"reward": total if rewards else None, **scores},
        "fault": "" if trace("ok") else "an error",
    }


def _nemo_gym(rollout: Record) -> Trials:
    """Read one of the ``rollout_infos`` of a task in a reward profile: numbers by name.

    ``sample`` of the task has the request and names the agent; no field names the model.
    """
    counted = [name for name in rollout.fields if "tokens" in name]
    yield {"outcome": _rewards(rollout, ("_ng_task_index", "_ng_rollout_index", *counted))}


_REWARDS = ("scorer", "task")
_TERMINAL_BENCH = RecordLog(
    "terminal-bench", "document", ("results.task_id", "results.is_resolved"),
    {"task": "^dataset_name", "question": "task_id", "trial": "trial_name",
     "outcome": "is_resolved", "identity": "id"},
    asked=("instruction",), read=_terminal_bench, records="results",
    needed=("task_id", "is_resolved"), beside="run_metadata.json", by_name=True,
    stated=lambda log: Totals.stated_by(log("task_ids"), log("n_attempts")), honours=("task",),
)  # fmt: skip
_TAU2 = RecordLog(
    "tau2-bench", "document", ("simulations",),
    {"system": "^info.agent_info.llm", "task": "^info.environment_info.domain_name",
     "question": "task_id", "trial": "trial", "identity": "id"},
    output=("messages",), read=_tau2, records="simulations", needed=("task_id",),
    known={"domain": "^info.environment_info.domain_name", "cost": "agent_cost",
           "seconds": "duration"},
    stated=lambda log: Totals.stated_by(log("tasks"), log("info.num_trials")),
    honours=("task", "question_key"),
)  # fmt: skip
FORMATS = (
    RecordLog(
        "verifiers", "lines", ("example_id|id", "prompt", "completion", "reward"),
        {"system": "^model", "task": "^env_id|^env"}, asked=("task", "prompt", "answer"),
        by_content=True,
        stated=lambda log: Totals.stated_by(log("num_examples"), log("rollouts_per_example")),
        output=("completion",), read=_verifiers, scorer="reward",
        reason="no reward", needed=("prompt", "reward"),
        beside="metadata.json", honours=_REWARDS,
    ),
    RecordLog(
        "verifiers-traces", "lines", ("env", "task", "traces", "ok"),
        {"system": "agent.config.model|agent.name", "task": "^env.id",
         "question": "task.key|task.hash", "identity": "id"},
        asked=("task.data",), read=_verifiers_traces, by_content=True, parts="traces",
        scorer="reward", reason="no reward", honours=_REWARDS,
    ),
    RecordLog(
        "nemo-gym", "lines", ("rollout_infos", "sample", "num_rollouts"),
        {"task": "^sample.agent_ref.name", "question": "_ng_task_index",
         "trial": "_ng_rollout_index"},
        asked=("^sample.responses_create_params",), read=_nemo_gym, parts="rollout_infos",
        scorer="reward", reason="no reward", needed=("rollout_infos",),
        ending="_reward_profiling", honours=_REWARDS,
    ),
    RecordLog(
        "harbor", "document", ("task_name", "trial_name", "agent_info", "config"),
        {"task": "source", "question": "task_name", "trial": "trial_name", "identity": "id"},
        asked=("task_checksum",), read=_harbor, scorer="reward", records=".", run_above=2,
        by_name=True, stated=_harbor_totals, honours=_REWARDS,
        notes=lambda trial, _: (
            ["trials that Harbor tried again are left out (_retries)"] if _is_retry(trial) else []
        ),
    ),
    RecordLog(
        "harbor-job", "document", ("n_total_trials", "stats"),
        summary="the summary of a Harbor job. Give the folder that it is in.",
    ),
    _TERMINAL_BENCH,
    replace(
        _TERMINAL_BENCH, name="terminal-bench-trial",
        signs=("task_id", "trial_name", "is_resolved"), records=".", run_above=2,
        part_of="terminal-bench", stated=lambda log: Totals(),
    ),
    RecordLog(
        "swe-bench", "document",
        ("resolved_ids|resolved", "unresolved_ids|unresolved|no_generation|generated"),
        read=_swe_bench, records=".",
        stated=lambda log: Totals.stated_by(log("total_instances")), reason="no prediction",
    ),
    RecordLog(
        "swe-bench-instance", "document", ("*.patch_is_None", "*.resolved"),
        read=_swe_bench_instance, records=".", run_above=2, reason="not judged",
        needed=("*.patch_is_None", "*.resolved"),
        notes=lambda *_: [
            "CHECK: instances whose evaluation ended in an error have no report.json; the report "
            "of the run, MODEL.RUN.json, counts them"
        ],
    ),
    RecordLog(
        "tau-bench", "document", ("task_id", "reward", "traj|info"),
        {"question": "task_id", "trial": "trial", "outcome": "reward"}, asked=("info.task",),
        output=("traj",), read=_tau_bench, reason="no reward", needed=("task_id", "reward"),
    ),
    _TAU2,
    replace(
        _TAU2, name="tau2-simulations", signs=("task_id", "reward_info", "termination_reason"),
        records="", honours=("question_key",), stated=lambda log: Totals(),
    ),
)  # fmt: skip
