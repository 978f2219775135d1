"""Codes of outcomes: positions among the scored ones, made and counted block by block."""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import UNKNOWN
from bayesatk.data.validation import (
    OutcomeError,
    Scores,
    is_category,
    is_missing,
    shown,
)

Codes = NDArray[np.signedinteger[Any]]
Ints = NDArray[np.int64]
CODE_MISSING = -1
CODE_INVALID = -2
BLOCK = 2**17  # cells encoded or counted at a time: they stay in the cache of a processor
_EXACT = 2**53  # up to it whole numbers and floats are compared exactly
_HASHED = frozenset({int, bool, str})  # looked up without a check: none of these can be missing


def code_type(scores: Scores) -> np.dtype[Any]:
    """Return the smallest type that holds all codes: a byte, up to 126 outcomes."""
    return np.min_scalar_type(-len(scores) - 2)


def encode(values: NDArray[Any] | list[Any], scores: Scores) -> Codes:
    """Return the position of every value among the scored outcomes; negative for the others.

    Examples
    --------
    >>> encode([0, 1, None, "1", True], {0: 0.0, 1: 1.0}).tolist()
    [0, 1, -1, -2, 1]
    """
    kind = code_type(scores)
    if isinstance(values, list):
        return _encode_objects(values, scores, kind)
    if values.dtype.kind in "OT":
        return _encode_objects(values.ravel().tolist(), scores, kind).reshape(values.shape)
    if values.dtype.kind not in "biufU":  # dates, durations, bytes, complex numbers, records
        return np.full(values.shape, CODE_INVALID, kind)
    codes = np.empty(values.shape, kind)
    _encode_array(values, codes, scores)
    return codes


def _encode_array(values: NDArray[Any], codes: Codes, scores: Scores) -> None:
    """Write the codes of an array of numbers or text, block by block."""
    if values.size > BLOCK and values.ndim > 1:
        step = max(1, len(values) * BLOCK // values.size)
        for start in range(0, len(values), step):
            at = slice(start, start + step) if len(values) > 1 else 0
            _encode_array(values[at], codes[at], scores)
        return
    kind = values.dtype.kind
    place = np.zeros(values.shape, codes.dtype)  # arithmetic is faster than writing through a mask
    if kind == "f":
        np.multiply(np.isnan(values), CODE_MISSING - CODE_INVALID, out=place, casting="unsafe")
    for code, label in enumerate(scores):
        if isinstance(label, str) == (kind == "U"):
            try:
                same = np.asarray(values == label, dtype=bool)
            except OverflowError:  # an integer that no float reaches
                continue
            np.maximum(place, same * codes.dtype.type(code - CODE_INVALID), out=place)
    np.add(place, codes.dtype.type(CODE_INVALID), out=codes)


def _encode_objects(values: list[Any], scores: Scores, kind: Any) -> Codes:
    known = dict(zip(scores, range(len(scores)), strict=True))
    if set(map(type, values)) <= _HASHED:
        return np.fromiter(map(known.get, values, repeat(CODE_INVALID)), kind, len(values))
    found = (
        known.get(value, CODE_INVALID) if type(value) in _HASHED else _encode_one(value, known)
        for value in values
    )
    return np.fromiter(found, kind, len(values))


def _encode_one(value: Any, known: Mapping[Any, int]) -> int:
    if is_missing(value):
        return CODE_MISSING
    if not is_category(value):  # 1+0j and a duration of 1 equal 1, and are not outcomes
        return CODE_INVALID
    try:
        return known.get(value, CODE_INVALID)
    except TypeError:  # a signalling NaN has no hash
        return CODE_INVALID


def count_trials(values: NDArray[Any], scores: Scores) -> Ints:
    """Return counts along the last axis, of length 1 then: of invalid, missing, and each outcome.

    Examples
    --------
    >>> count_trials(np.array([[0, 1, 1], [1, 7, 1]]), {0: 0.0, 1: 1.0}).tolist()
    [[[0, 0, 1, 2]], [[1, 0, 0, 2]]]
    """
    rows = values.reshape(-1, values.shape[-1])
    rows = rows.view(np.uint8) if rows.dtype == bool else rows
    found = np.zeros((len(rows), len(scores) + 2), np.int64)
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        block, into = rows[start : start + step], found[start : start + step]
        are, rest = _each(block, scores), 2
        if are is None or not reduce(np.logical_or, are).all():
            codes, rest = encode(block, scores), 0
            are = [codes == code for code in (CODE_INVALID, CODE_MISSING, *range(len(scores)))]
        into[:, rest] = block.shape[1]
        for slot, one in enumerate(are[1:], start=rest + 1):
            into[:, slot] = own = one.sum(axis=1, dtype=np.int32)
            into[:, rest] -= own
    return found.reshape(*values.shape[:-1], 1, -1)


def _each(values: NDArray[Any], scores: Scores) -> list[NDArray[np.bool_]] | None:
    """Return which numbers are which outcome; None where this takes more than comparing."""
    plain = all(isinstance(label, int | float) and abs(label) < _EXACT for label in scores)
    return [values == label for label in scores] if plain and values.dtype.kind in "iuf" else None


def first_invalid(codes: Codes) -> tuple[int, ...] | None:
    """Return the position of the first outcome without a score, if there is one."""
    if not codes.size or codes.min() != CODE_INVALID:
        return None
    return tuple(int(i) for i in np.unravel_index(np.argmin(codes), codes.shape))


def refuse(value: Any, where: str, scores: Scores) -> OutcomeError:
    """Return the error for an outcome that no score covers."""
    allowed = ", ".join(shown(label) for label in scores)
    remedy: tuple[str | Argument, ...] = ("Write every outcome as text, a number or true/false.",)
    if is_category(value) and value not in (math.inf, -math.inf):
        # A duration is compared with numbers under a warning: it stands here by its text.
        key = str(value) if isinstance(value, np.timedelta64) else value
        every = Argument("scores", {**scores, key: ...}, "tally")
        remedy = ("Score every outcome that may occur: ", every, ".")
    return OutcomeError(
        f"outcome {shown(value)} at {where} is not one of {allowed}. ", *remedy,
        " Write an unknown or failed one as None, and use ",
        Argument("missing", "ignore", "tally"), ".",
    )  # fmt: skip


def marks_of(codes: NDArray[Any], scores: Scores) -> Ints:
    """Return right, wrong or unknown for outcome codes."""
    if set(scores.values()) != {0.0, 1.0}:
        raise OutcomeError(
            "answers need outcomes that are right or wrong, scored 1 and 0; got scores "
            f"{shown(dict(scores))}. Map the outcomes to 0 and 1, or leave the answers out."
        )
    marks = np.array([*map(int, scores.values()), UNKNOWN])  # a missing code is -1: the last
    return np.asarray(marks[codes])


def codes_of(
    answer: Sequence[str | None], question: Ints, references: Sequence[set[str]], scores: Scores
) -> NDArray[np.int8]:
    """Return outcome codes by the references of the questions."""
    marks_of(np.zeros(0, np.int8), scores)
    among = (references[q] for q in question.tolist())
    right = np.fromiter((one in own for one, own in zip(answer, among, strict=True)), np.int8)
    order = list(scores.values())
    return np.array([order.index(0.0), order.index(1.0)], np.int8)[right]
