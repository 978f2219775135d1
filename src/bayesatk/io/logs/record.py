"""A record of a log: its fields by dotted paths, and what it says of trials."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesatk.data.content import canonical, digest


def at(value: object, path: str) -> Any:
    """Return what stands at a dotted path; None if nothing does.

    Examples
    --------
    >>> at({"info": {"llm": "m"}, "a.b": 1}, "info.llm"), at({"a.b": 1}, "a.b"), at({}, "a.b")
    ('m', 1, None)
    """
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    first, _, rest = path.partition(".")
    return at(value.get(first), rest) if rest else None


@dataclass(frozen=True)
class Record:
    """One record of a log: its fields, those of its document and of the file beside it."""

    fields: Any
    head: dict[str, Any]
    path: Path

    def __call__(self, *paths: str) -> Any:
        """Return the first that is there; a path that begins with ^ is of the document."""
        for path in paths:
            found = at(self.head, path[1:]) if path[0] == "^" else at(self.fields, path)
            if found is not None:
                return found
        return None

    def text(self, *paths: str) -> str:
        """Return the first that is text; else nothing."""
        found = self(*paths)
        return found if isinstance(found, str) else ""

    def number(self, *paths: str) -> float:
        """Return the first, if it is a number; else NaN."""
        found = self(*paths)
        try:
            return float(found) if isinstance(found, int | float) else math.nan
        except OverflowError:  # an integer beyond the floats
            return math.nan

    def mapping(self, *paths: str) -> dict[str, Any]:
        """Return the first, if it is an object; else an empty one."""
        found = self(*paths)
        return found if isinstance(found, dict) else {}

    def entry(self, key: str, name: object) -> Any:
        """Return the part of a list of the document whose id is the name."""
        found = self.head.get(f"{key} by id")
        if found is None:
            parts = self.head.get(key)
            parts = parts if isinstance(parts, list) else []
            found = self.head[f"{key} by id"] = {
                str(one.get("id")): one for one in parts if isinstance(one, dict)
            }
        return found.get(str(name))

    def texts(self, *paths: str) -> list[str]:
        """Return what is text in the first, if it is a list."""
        return [one for one in self.listed(*paths) if isinstance(one, str)]

    def listed(self, *paths: str) -> list[Any]:
        """Return the first, if it is a list; else an empty one."""
        found = self(*paths)
        return found if isinstance(found, list) else []


@dataclass(frozen=True)
class Said:
    """What a record says of a trial, or of several in lists.

    Parameters
    ----------
    question : object
    outcome : object
        A mark, or marks by scorer.
    system, task : str
    trial : object
        What tells trials of the question apart in the log; None: they are numbered.
    asked : tuple
        What was asked, and what is right.
    answer : object
    reason : str
        Why there is no outcome.
    fault : str
        Why an outcome that is marked wrong may not be the system's doing.
    identity : str
    scorer : str
        Which of the marks is read if nothing is told.
    several : bool
        Whether the outcome is a list of marks, of which each is a trial.
    known : mapping of str to object
        What is known of the question and has no field of its own in the record.
    """

    question: Any
    outcome: Any
    system: str = ""
    task: str = ""
    trial: Any = None
    asked: tuple[Any, ...] = ()
    answer: Any = None
    reason: str = ""
    fault: str = ""
    identity: str = ""
    scorer: str = ""
    several: bool = False
    known: Mapping[str, object] = field(default_factory=dict)

    @staticmethod
    def name_of(*asked: object) -> str:
        """Return the name of a question that has none: a digest of what was asked."""
        return f"#{digest(*map(canonical, asked))}"


def is_there(fields: object, path: str) -> bool:
    """Whether a field is there, if only as null; a|b is one of two, * the first of all."""
    if "|" in path:
        return any(is_there(fields, each) for each in path.split("|"))
    if not isinstance(fields, Mapping):
        return False
    if path in fields:
        return True
    first, _, rest = path.partition(".")
    if first == "*":
        return is_there(next(iter(fields.values()), None), rest)
    return bool(rest) and is_there(fields.get(first), rest)
