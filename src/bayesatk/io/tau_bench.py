"""Results of tau-bench (an array of runs) and of tau2-bench (``simulations`` in one document).

Facts of the formats: a tau-bench record is ``{task_id, trial, reward, info, traj}``; a run that
raised an exception has reward 0, an empty ``traj`` and the error in ``info``. A tau2 simulation has
``reward_info.reward`` (absent if it was not judged), ``trial`` and ``termination_reason``, of which
"infrastructure_error" says nothing about the agent; its model stands in ``info.agent_info.llm``.
Both count a run as a success if its reward is within 1e-6 of 1.
"""

import json
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk.data.content import digest
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import decoded, members
from bayesatk.io.rows import Rows, Trial

_ROUNDING = 1e-6


def read_runs(file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
    """Read a tau-bench file."""
    rows.open(path.name)
    if system is None:
        rows.note(f"system {path.stem!r} is named by its file")
    with decoded(file) as text:
        for _, number, record in members(text):
            rows.add(_run(record, f"record {number}", system or path.stem))


def _mark(reward: object) -> object:
    """Return 1 or 0 for a reward that is one of them up to rounding; others as they are."""
    if isinstance(reward, float):
        return next((end for end in (0, 1) if abs(reward - end) <= _ROUNDING), reward)
    return reward


def _run(record: object, where: str, system: str) -> Trial:
    run = _fields(record, ("task_id", "reward"), where)
    failed = isinstance(run.get("info"), dict) and bool(run["info"].get("error"))
    return Trial(
        system=system,
        task="",
        question=run["task_id"],
        trial=run.get("trial", ""),
        outcome=_mark(run["reward"]),
        content=_digest((run["info"] if isinstance(run.get("info"), dict) else {}).get("task")),
        empty=failed or run.get("traj") == [],
        reason="" if run["reward"] is not None else "no reward",
    )


def read_simulations(file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
    """Read a tau2-bench file, one simulation at a time."""
    rows.open(path.name)
    info: dict[str, Any] = {}
    tasks: dict[str, str] = {}
    with decoded(file) as text:
        for key, number, value in members(text, frozenset({"simulations", "tasks"})):
            if key == "info" and isinstance(value, dict):
                info = value
            if key == "tasks" and isinstance(value, dict):
                tasks[str(value.get("id"))] = _digest(value)
            if key == "simulations":
                name = system or _named(info, path, rows)
                run = _simulation(value, f"simulation {number}", name, info)
                run.content = tasks.get(str(run.question), "")
                rows.add(run)


def _simulation(record: object, where: str, system: str, info: dict[str, Any]) -> Trial:
    run = _fields(record, ("task_id",), where)
    judged = run.get("reward_info")
    reward = judged.get("reward") if isinstance(judged, dict) else None
    ended = str(run.get("termination_reason") or "unknown")
    if ended == "infrastructure_error":
        reward = None
    return Trial(
        system=system,
        task=str(_within(info, "environment_info", "domain_name") or ""),
        question=run["task_id"],
        trial=run.get("trial", ""),
        outcome=_mark(reward),
        empty=run.get("messages") == [],
        reason="" if reward is not None else f"not judged (ended by {ended})",
        identity=str(run.get("id") or ""),
    )


def _named(info: dict[str, Any], path: Path, rows: Rows) -> str:
    model = _within(info, "agent_info", "llm")
    if isinstance(model, str) and model:
        return model
    rows.note(f"system {path.stem!r} is named by its file")
    return path.stem


def _digest(task: object) -> str:
    """Digest of what a task asks, where the file says it."""
    return "" if task is None else digest(json.dumps(task, sort_keys=True))


def _within(info: dict[str, Any], group: str, name: str) -> object:
    found = info.get(group)
    return found.get(name) if isinstance(found, dict) else None


def _fields(record: object, needed: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return a record that has the fields, or say which it lacks."""
    if not isinstance(record, dict):
        raise OutcomeError(f"{where} must be an object; got {shown(record)}.")
    for name in needed:
        if name not in record:
            raise OutcomeError(
                f"{where} must have the field {name!r}; it has {shown(list(record), 200)}. Is the "
                "file complete?"
            )
    return record
