"""Options for reading files, declared once for `load`, `convert` and the shell.

This module must be fast to import: the shell needs its options before it reads data.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from bayesatk._tools.messages import source_of

# Arguments whose option in the shell has another name.
RENAMED = {
    "acc": "accuracy", "budget": "memory", "columns": "column", "covariates": "covariate",
    "metrics": "metric", "p": "guess", "rng": "seed", "scores": "score",
}  # fmt: skip
QuestionKey = Literal["id", "content", "unchecked"]


class LogOptions(TypedDict, total=False):
    """Rarer options of `bayesatk.load` and `convert`: columns of questions, and log readers."""

    group: Any
    covariates: Any
    weight: Any
    cost: Any
    truth: Any
    scorer: str | None
    filter: str | None
    task: str | None
    question_key: QuestionKey
    same_system: Literal["error", "trials"]
    empty_output: Literal["marked", "missing"]
    strict: bool
    budget: int


class LoadOptions(LogOptions, total=False):
    """Rarer options of `bayesatk.load`, with those that `convert` lacks."""

    cost_unit: str | None
    missing_cost: Literal["error", "ignore"]
    answer_rules: Any


@dataclass(frozen=True)
class FileOptions:
    """Options that readers of files take; parameters of `bayesatk.load` with the same names."""

    missing_question: Literal["error", "drop"] = "error"
    records: str | None = None
    wide: bool = False
    format: str | None = None
    scorer: str | None = None
    filter: str | None = None
    task: str | None = None
    answers: bool = False
    question_key: QuestionKey = "id"
    same_system: Literal["error", "trials"] = "error"
    empty_output: Literal["marked", "missing"] = "marked"
    strict: bool = False


def as_option(name: str, value: object) -> str:
    """Return an argument as an option of the shell, repeated for several values.

    Examples
    --------
    >>> as_option("columns", {"answer": "the reply"}), as_option("scores", (0, 1))
    ("--column answer='the reply'", '--score 0:1')
    """
    option = f"--{RENAMED.get(name, name).replace('_', '-')}"
    if value is False:
        return f"no {option}"
    if value is None or value is True or (value is ... and name == "answers"):
        return option
    if isinstance(value, tuple):  # smallest and largest number
        value = ":".join(map(source_of, value))
    if isinstance(value, Mapping):
        values = [
            f"{shlex.quote(str(label))}={_value(entry, 'number' if label == 'trials' else name)}"
            for label, entry in value.items()
        ]
    else:
        values = [
            _value(element, name) for element in (value if isinstance(value, list) else [value])
        ]
    return " ".join(f"{option} {text}" for text in values)


def _value(value: object, name: str) -> str:
    """Return a value quoted for a shell; a placeholder in capitals for `...`."""
    if value is ...:
        return {"columns": "NAME", "scores": "SCORE"}.get(name, name.upper())
    if value is None:
        return "missing"
    if isinstance(value, list | tuple):  # several columns, or values of one
        return ",".join(_value(element, name) for element in value)
    return shlex.quote(value if isinstance(value, str) else source_of(value))
