"""What may be a score, a count or a label: checks that name the argument, the rule and the remedy.

Every check takes any object whatever and either returns it in one known form or raises
`OutcomeError`.
"""

import math
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import Argument, ArgumentError, Message

Scores = Mapping[Any, float]

Labels = Sequence[Any]
Codes = NDArray[np.signedinteger[Any]]  # outcomes by their position among the scored ones, or:
CODE_MISSING, CODE_INVALID = -1, -2

_MOST = 2**62  # of a count
_MOST_TRIALS = 10**9  # of one question: beyond, sums of counts would lose digits in doubles
_LARGEST = 1e100  # score; squares and products of larger ones overflow
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*", re.ASCII | re.IGNORECASE)


class OutcomeError(ArgumentError):
    """Error: the outcomes cannot be read as given. The message says where, why and what to do."""


class OutcomeWarning(Message, UserWarning):
    """Warning: the outcomes can be read, but they may not mean what was intended."""


def shown(value: object, width: int = 80) -> str:
    """Return a short repr of any object, also of one whose repr fails.

    Examples
    --------
    >>> shown(10**5000)
    '<int>'
    """
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__, or an integer too long to print
        return f"<{type(value).__name__}>"
    return text if len(text) <= width else text[: width - 3] + "..."


def is_missing(value: object) -> bool:
    """Whether a single value says that nothing is known.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0, "nan")]
    [True, True, False, False]
    """
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_qnan()
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def is_absent(value: object) -> bool:
    """Return whether a value says nothing: it is missing, or blank."""
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def number_of(value: Any) -> float | None:
    """Return a number, or the number that a text is; NaN for nothing, None for anything else.

    Examples
    --------
    >>> [number_of(value) for value in (2, "0.5", "", "1_0", True)]
    [2.0, 0.5, nan, None, None]
    """
    if is_absent(value):
        return math.nan
    is_text = isinstance(value, str) and _NUMBER.fullmatch(value)
    if not is_text and (isinstance(value, bool) or not isinstance(value, Real | Decimal)):
        return None
    try:
        return float(value)
    except (OverflowError, ValueError):  # an integer beyond the floats, a signalling NaN
        return None


def is_category(value: object) -> bool:
    """Whether a value may be an outcome: text, a real number, or true/false."""
    return isinstance(
        value, str | int | float | Decimal | Fraction | np.bool_ | np.integer | np.floating
    )


def check_scores(scores: object) -> Scores:
    """Return the score mapping, or say what is wrong with it."""
    if not isinstance(scores, Mapping) or len(scores) < 2:
        raise OutcomeError(
            Argument("scores"), " must map at least two outcomes to numbers, as in ",
            Argument("scores", {"I": 0, "C": 1}), f"; got {shown(scores)}. For numbers as they "
            "are: ", Argument("scores", "numbers"), ", or with their ends ",
            Argument("scores", (0, 1)), ".",
        )  # fmt: skip
    labels: dict[str, object] = {}
    for label, score in scores.items():
        if not is_category(label) or is_missing(label):
            raise OutcomeError(
                f"scores must map outcomes that are text, numbers or true/false; got the outcome "
                f"{shown(label)}. Leave a missing outcome out and say what it means with missing=."
            )
        twin = labels.setdefault(label if isinstance(label, str) else shown(label, 10**6), label)
        if twin is not label:
            raise OutcomeError(
                f"scores must name outcomes that differ as text; got {shown(twin)} and "
                f"{shown(label)}. Rename one of them."
            )
        if not _is_finite(score):
            raise OutcomeError(
                f"scores must be finite numbers; got {shown(score)} for {shown(label)}."
            )
    values = [float(score) for score in scores.values()]
    gaps = np.diff(np.unique(values))
    if max(map(abs, values)) > _LARGEST or (gaps < 1.0 / _LARGEST).any():
        raise OutcomeError(
            f"scores must lie within ±{_LARGEST:g} and differ by {1.0 / _LARGEST:g} or more, or "
            f"not at all; got {shown(values)}. Rescale them."
        )
    return dict(zip(scores, values, strict=True))


def succeeding(rule: str, scores: Array) -> Flags:
    """Return which categories succeed under a rule such as ``score >= 0.5``."""
    match = re.fullmatch(r"\s*score\s*([<>]=?)\s*(\S+)\s*", rule) if isinstance(rule, str) else None
    bound = match and number_of(match.group(2))
    if match is None or bound is None:
        raise OutcomeError(
            "success must be 'score >= NUMBER', or have >, <= or < in place of >=; got "
            f"{shown(rule)}. To count single categories as successes, score them 1 and the others "
            "0."
        )
    relations = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}
    succeeds = relations[match.group(1)](scores, bound)
    if succeeds.all() or not succeeds.any():
        raise OutcomeError(
            f"success must split the scores {sorted(scores.tolist())}; {rule!r} holds for "
            f"{'all' if succeeds.all() else 'none'} of them. Choose a bound between them."
        )
    return succeeds


def _is_finite(score: object) -> bool:
    try:
        return isinstance(score, int | float | np.integer | np.floating) and math.isfinite(score)
    except OverflowError:  # an integer beyond the floats
        return False


def check_counts(values: object, name: str) -> Ints:
    """Return whole, non-negative numbers as int64, or name the first that is not."""
    refuse_masked(values, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array = np.asarray(values)
    except Exception as error:  # ragged, endless or foreign: numpy raises what it likes
        raise OutcomeError(
            f"{name} must be an array of whole numbers >= 0; got {shown(values)} ({error})."
        ) from None
    if array.dtype.kind not in "biuf":
        raise OutcomeError(
            f"{name} must be whole numbers >= 0; got values of type {array.dtype}, for instance "
            f"{shown(array.ravel()[:1].tolist())}. Give counts below 2**62 as integers."
        )
    bad = ~(np.isfinite(array) & (array >= 0) & (array == np.floor(array)) & (array < _MOST))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise OutcomeError(
            f"{name} must be whole numbers >= 0 and below 2**62; got {array[where]} at position "
            f"{where}. Check this count; outcomes themselves need no trials."
        )
    return array.astype(np.int64)


def check_trials(trials: Array | Ints, name: str) -> None:
    """Refuse more trials of one question than can be computed with, before anything is allocated.

    Examples
    --------
    >>> check_trials(np.array([10, 20]), "trials")
    """
    most = int(trials.max(initial=0))
    if most > _MOST_TRIALS:
        where = tuple(int(i) for i in np.argwhere(trials == most)[0])
        raise OutcomeError(
            f"{name} must give every question at most 10^9 trials; got {most} at position {where}. "
            "Check the unit of these counts, or divide successes and trials by a common number: "
            "from 10^9 trials on, a success rate is known to 2e-5 either way."
        )


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array: what lies under the mask would be read as data."""
    if isinstance(values, np.ma.MaskedArray):
        rule = f"{name} must be a plain array; got a masked array. "
        if name != "data":
            raise OutcomeError(
                f"{rule}Use .compressed() on it, and on what goes with it, to leave questions out."
            )
        raise OutcomeError(
            f"{rule}Use .astype(float).filled(np.nan) on it, and say what is missing then means: ",
            Argument("missing", "ignore", "tally"), ".",
        )  # fmt: skip


def check_labels(labels: object, name: str, number: int) -> list[Any]:
    """Return the labels as a list of the given length."""
    if isinstance(labels, xr.DataArray):
        labels = labels.values
    if isinstance(labels, str | bytes | Set | Mapping) or not isinstance(labels, Collection):
        raise OutcomeError(
            f"{name} must be a list of labels in the order of the data; got {shown(labels)} of "
            f"type {type(labels).__name__}."
        )
    if len(labels) != number:
        raise OutcomeError(
            f"{name} must label each of the {number} {name} in the data; got {len(labels)} "
            f"label{'s' * (len(labels) != 1)}."
        )
    return list(labels)


def label_fault(label: object) -> str | None:
    """Say why a value cannot be a label; None if it can."""
    if is_missing(label):
        return "is missing"
    if isinstance(label, str) and not label.strip():
        return "is blank"
    if isinstance(label, Iterable) and not isinstance(label, str):
        return "is a collection"
    try:
        hash(label)
        str(label).encode()
    except Exception as error:  # not hashable, not printable, or half of a surrogate pair
        return f"cannot be a label ({error})"
    return None


def as_coordinate(labels: Labels, name: str) -> pd.Index:
    """Return labels as an index of one type: all integers or all text, without repetition."""
    if isinstance(labels, range):
        return pd.Index(np.arange(labels.start, labels.stop, labels.step))
    plain = set(map(type, labels)) <= {int}  # the common case, a million times over
    for label in () if plain else labels:
        fault = label_fault(label)
        if fault:
            raise OutcomeError(
                f"{name} must be labelled by text or numbers; the label {shown(label)} {fault}. "
                "Replace it by text."
            )
    whole = int | np.integer  # NumPy counts durations among them
    if plain or all(isinstance(label, whole) and not isinstance(label, bool | np.timedelta64)
                    for label in labels):  # fmt: skip
        low, high = int(min(labels, default=0)), int(max(labels, default=0))
        fits = (low >= -(2**63) and high < 2**63) or (low >= 0 and high < 2**64)
        kind = np.int64 if high < 2**63 else np.uint64
        index = pd.Index(np.array(labels, kind) if fits else list(map(str, labels)))
    else:
        index = pd.Index([str(label) for label in labels])
    if index.has_duplicates:
        twice = index[index.duplicated()][0]
        raise OutcomeError(
            f"{name} must be distinct; got {twice!r} more than once. Labels that differ only in "
            "type (1 and '1') count as the same."
        )
    if name == "systems":
        _check_names_differ(index)
    return index


def _check_names_differ(systems: pd.Index) -> None:
    """Refuse names of systems that nobody can tell apart: a blank at the end, an accent's code."""
    read: dict[str, object] = {}
    for system in systems.tolist():
        name = " ".join(unicodedata.normalize("NFC", str(system)).split())
        if name in read:
            raise OutcomeError(
                f"systems must have names that can be told apart; got {read[name]!a} and "
                f"{system!a}, which differ in blanks or in the coding of letters only. Rename one "
                "of them, or write both the same if they are one system."
            )
        read[name] = system
