"""What was asked, where a table says it: which columns hold it, and digests of their cells."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesatk.data.validation import is_missing, shown

ASKED = ("prompt", "question", "question_text", "input", "problem", "instruction")
RIGHT = ("answer", "target", "gold", "ground_truth", "expected_answer")
_NUMBER = re.compile(r"\s*[+-]?[\d.,]+([eE][+-]?\d+)?\s*", re.ASCII)
UNKNOWN = 0  # in place of the digest of a cell that says nothing


def content_columns(
    names: Iterable[Any], roles: Mapping[str, Any], columns: Mapping[str, Any]
) -> list[Any]:
    """Return the columns that hold what was asked, or what is right: as told, else by their names.

    Examples
    --------
    >>> content_columns(["id", "prompt", "answer", "reward"], {"question": "id"}, {})
    ['prompt', 'answer']
    """
    if "content" in columns:
        return [columns["content"]] if columns["content"] != roles["question"] else []
    taken = set(roles.values())
    usual = (*ASKED, *RIGHT)
    return [
        name
        for name in names
        if isinstance(name, str) and name.lower() in usual and name not in taken
    ]


def is_right_answer(name: object) -> bool:
    """Return whether a column of content holds what is right, not what was asked."""
    return str(name).lower() in RIGHT


def canonical(value: object) -> str:
    """Return one text for a JSON value, whatever the order of its keys."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True, default=_plain)
    except (TypeError, ValueError, RecursionError):  # no JSON: keys of two types, a cycle
        return shown(value, 1 << 20)


def _plain(value: object) -> object:
    """Return what an array or a foreign number holds, for JSON."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else shown(value, 1 << 20)


def digest(*parts: object) -> str:
    """Return a short digest of the text of the parts.

    Examples
    --------
    >>> digest("2 + 2", "4") == digest("2 + 2", "4") != digest("2 + 2", "5")
    True
    """
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        found.update(str(part).encode("utf-8", "surrogatepass") + b"\x00")
    return found.hexdigest()


class Contents:
    """Digests of the content columns of a table, as its rows come in.

    Examples
    --------
    >>> own = Contents(["prompt"])
    >>> for cell in ("2 + 2", "2 + 2", None):
    ...     own.add("prompt", cell)
    >>> first, second, missing = own.digests["prompt"]
    >>> first == second != UNKNOWN, missing == UNKNOWN
    (True, True)
    """

    def __init__(self, names: Iterable[Any]) -> None:
        self.digests: dict[Any, list[int]] = {name: [] for name in names}
        self._known: dict[str, int] = {}

    def add(self, name: Any, value: object) -> None:
        """Take the next cell of a column; a number says nothing of what was asked."""
        usual = isinstance(name, str) and name.lower() in ASKED
        number = isinstance(value, int | float | np.number) and usual
        blank = isinstance(value, str) and (not value.strip() or (usual and _number(value)))
        if number or blank or is_missing(value):
            self.digests[name].append(UNKNOWN)
            return
        text = canonical(value)
        if text not in self._known:
            self._known[text] = int(digest(text), 16) >> 1 or 1
        self.digests[name].append(self._known[text])


def _number(text: str) -> bool:
    return len(text) < 40 and _NUMBER.fullmatch(text) is not None


def digests(columns: Mapping[Any, Any]) -> dict[Any, list[int]]:
    """Return the digests of whole columns, by name; each distinct cell is read once."""
    found: dict[Any, list[int]] = {}
    for name, cells in columns.items():
        own = Contents([name])
        try:
            codes, cells = pd.factorize(np.fromiter(cells, object))
        except TypeError:  # lists and objects have no hash
            codes = np.arange(len(cells))
        for cell in cells:
            own.add(name, cell)
        values = np.array([*own.digests[name], UNKNOWN])  # the code -1 is a missing cell's
        found[name] = values[codes].tolist()
    return found
