"""What was asked, where a table says it: which columns hold it, and digests of their cells."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesatk.data.validation import Labels, is_absent, shown

ASKED = (
    "prompt", "question", "question_text", "input", "problem", "instruction", "user_input",
    "inputs", "query",
)  # fmt: skip
RIGHT = ("answer", "target", "gold", "ground_truth", "expected_answer")
_NUMBER = re.compile(r"\s*[+-]?[\d.,]+([eE][+-]?\d+)?\s*", re.ASCII)
UNKNOWN = 0  # in place of the digest of a cell that says nothing


def meaning(name: object) -> str:
    """Return the name of a column as names are compared; nothing if it is no text.

    Examples
    --------
    >>> [meaning(name) for name in ("Sample ID", "isCorrect", "success-count", 3)]
    ['sample_id', 'is_correct', 'success_count', '']
    """
    if not isinstance(name, str):
        return ""
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\s_-]+", "_", words).strip("_").lower()


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
    return [name for name in names if meaning(name) in usual and name not in taken]


def is_right_answer(name: object) -> bool:
    """Return whether a column of content holds what is right, not what was asked."""
    return meaning(name) in RIGHT


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
    text = "".join(f"{part}\x00" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _is_number(value: object) -> bool:
    """Return whether a cell is a number, in digits with any marks between them."""
    if isinstance(value, str):
        return len(value) < 40 and _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float | np.number)


def digests(columns: Mapping[Any, Labels]) -> dict[Any, list[int]]:
    """Return the digests of columns that hold what was asked, by name; each distinct cell once.

    A number in a column such as ``question`` says nothing of what was asked.

    Examples
    --------
    >>> first, second, missing, number = digests({"prompt": ["2 + 2", "2 + 2", None, 4]})["prompt"]
    >>> first == second != UNKNOWN, missing == number == UNKNOWN
    (True, True)
    """
    by_name = {}
    for name, cells in columns.items():
        usual = meaning(name) in ASKED
        try:
            codes, distinct = pd.factorize(np.fromiter(cells, object))
        except TypeError:  # lists and objects have no hash
            codes, distinct = np.arange(len(cells)), np.fromiter(cells, object)
        values = np.zeros(len(distinct) + 1, np.int64)  # the code -1 is a missing cell's
        for code, cell in enumerate(distinct):
            if not (is_absent(cell) or (usual and _is_number(cell))):
                values[code] = int(digest(canonical(cell)), 16) >> 1 or 1
        by_name[name] = values[codes].tolist()
    return by_name
