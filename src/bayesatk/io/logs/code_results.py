"""Results of EvalPlus, ``*eval_results.json``.

Facts of the format: EvalPlus maps every task under ``eval`` to a list of judged solutions, each
with ``base_status`` and (unless only the base tests ran) ``plus_status``, "pass", "fail" or
"timeout"; its first releases wrote ``{"base": [[status, ...], ...], "plus": ...}`` instead, with
"success" for "pass". A solution passes the added tests only if it passes the base tests too.
"""

from pathlib import Path
from typing import Any, BinaryIO

from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import decoded, members
from bayesatk.io.rows import EMPTY, Rows, Trial

_TESTS = ("base", "plus")
_STATUSES = {
    "pass": 1, "success": 1, "fail": 0, "failed": 0, "timeout": 0, "timed out": 0,
}  # fmt: skip


def read_evalplus(file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
    """Read an EvalPlus file, one task at a time."""
    name = _opened(path, system, rows, ".eval_results", "_eval_results")
    with decoded(file) as text:
        for key, task, judged in members(text, frozenset({"eval"})):
            if key == "eval":
                for number, (status, solution) in enumerate(_solutions(judged, task, rows)):
                    rows.add(_judged(name, task, number, status, solution))


def _judged(system: str, task: object, number: int, status: object, solution: object) -> Trial:
    if status is not None and (not isinstance(status, str) or status not in _STATUSES):
        raise OutcomeError(
            f"a status must be one of {', '.join(_STATUSES)}; solution {number} of {task!r} has "
            f"{shown(status)}. Was it written by EvalPlus?"
        )
    return Trial(
        system=system,
        task="",
        question=task,
        trial=number,
        outcome=None if status is None else _STATUSES[status],
        reason="not judged" if status is None else "",
        fault=EMPTY if isinstance(solution, str) and not solution.strip() else "",
    )


def _opened(path: Path, system: str | None, rows: Rows, *suffixes: str) -> str:
    """Open the log and return the name of its system."""
    rows.open(path.name)
    if system is not None:
        return system
    name = path.stem
    for suffix in suffixes:
        name = name.removesuffix(suffix)
    rows.note(f"system {name!r} is named by its file")
    return name or path.stem


def _solutions(judged: object, task: object, rows: Rows) -> list[tuple[object, object]]:
    """Return status and text of every solution of a task, under the chosen tests."""
    if isinstance(judged, dict) and isinstance(judged.get("base"), list):
        names = [name for name in _TESTS if judged.get(name)]
        lists = [judged[name] for name in names]
        if len({len(entries) if isinstance(entries, list) else -1 for entries in lists}) > 1:
            raise OutcomeError(
                f"eval[{task!r}] must have as many base as plus statuses. Is the file complete?"
            )
        firsts = zip(*([_first(entry) for entry in entries] for entries in lists), strict=True)
        return [
            (_status(dict(zip(names, solution_statuses, strict=True)), task, rows), None)
            for solution_statuses in firsts
        ]
    if not isinstance(judged, list):
        raise OutcomeError(f"eval[{task!r}] must be a list of solutions; got {shown(judged)}.")
    solutions: list[tuple[object, object]] = []
    for entry in judged:
        solution: dict[str, Any] = entry if isinstance(entry, dict) else {}
        statuses = {name: solution.get(f"{name}_status") for name in _TESTS}
        statuses_present = {name: status for name, status in statuses.items() if status is not None}
        solutions.append((_status(statuses_present, task, rows), solution.get("solution")))
    return solutions


def _first(entry: object) -> object:
    return entry[0] if isinstance(entry, list) and entry else None


def _status(statuses: dict[str, object], task: object, rows: Rows) -> object:
    """Return the status of a solution under the chosen tests."""
    if "base" not in statuses:
        raise OutcomeError(f"every solution of {task!r} must have a base_status; one has none.")
    if _tests(list(statuses), rows) == "base" or not _STATUSES.get(str(statuses["base"])):
        return statuses["base"]
    return statuses["plus"]


def _tests(tests_run: list[str], rows: Rows) -> str:
    """Return which tests count: the only ones, or those that were named."""
    scorer = rows.options.scorer
    if scorer is None and len(tests_run) == 1:
        rows.marked_by(f"EvalPlus's {tests_run[0]!r} tests")
        return tests_run[0]
    if scorer in tests_run:
        rows.marked_by(f"EvalPlus's {scorer!r} tests")
        return str(scorer)
    raise OutcomeError(
        f"scorer must be one of the tests that ran, {', '.join(map(repr, tests_run))}; got "
        f"{shown(scorer)}. Pass one of them; with 'plus' a solution must pass both."
    )
