"""Checks of scores, counts and labels, and the scale of outcomes that are numbers.

Every check takes any object, and returns it in one form or raises an `OutcomeError` with the
argument, the rule and the remedy.

Outcomes may be numbers: rewards, F1, shares of tests passed, seconds. Up to `MAX_LEVELS` different
numbers that are not close to each other are the levels of the scale. Otherwise levels are
quantiles, and every number is rounded to a level beside it; what rounding adds to one trial is
subtracted from the next trial of the system, of which those between levels that are close to each
other are the last. Thus the mean of a system moves by about the distance of the closest levels
divided by the number of its trials. Numbers that are levels, such as the ends, do not change.
"""

import math
import re
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from decimal import Decimal
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
Codes = NDArray[np.signedinteger[Any]]  # positions among the scored outcomes, or a code below
CODE_MISSING, CODE_INVALID = -1, -2

_MAX_COUNT = 2**62
_MAX_TRIALS_PER_QUESTION = 10**9  # sums of larger counts lose digits in doubles
_MAX_ABS_SCORE = 1e100  # squares and products of larger scores overflow
_DECIMAL_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*", re.ASCII | re.IGNORECASE
)


class OutcomeError(ArgumentError):
    """Error: the outcomes cannot be read. The message names the place, the rule and the remedy."""


class UnscoredOutcomeError(OutcomeError):
    """Error: an outcome has no score. The first piece of the message says which, and where."""

    outcomes: tuple[Any, ...] = ()  # those that are known to occur, a few of them


class OutcomeWarning(Message, UserWarning):
    """Warning: the outcomes were read, but may not mean what was intended."""


def shown(value: object, width: int = 80) -> str:
    """Return a repr of at most `width` characters of any object, also if its repr fails.

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
    """Return whether a single value is missing: None, NaN, NA or NaT.

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
    """Return whether a value is missing or blank text."""
    return not value.strip() if isinstance(value, str) else is_missing(value)


def number_of(value: Any) -> float | None:
    """Return the number of a value or text; NaN if it is missing or blank, None if it is no number.

    Examples
    --------
    >>> [number_of(value) for value in (2, "0.5", "", "1_0", True)]
    [2.0, 0.5, nan, None, None]
    """
    if is_absent(value):
        return math.nan
    is_text = isinstance(value, str) and _DECIMAL_NUMBER.fullmatch(value)
    if not is_text and (isinstance(value, bool) or not isinstance(value, Real | Decimal)):
        return None
    try:
        return float(value)
    except (OverflowError, ValueError):  # an integer beyond the floats, a signalling NaN
        return None


def share_of(value: Any) -> float | None:
    """Return the number of a value or text, which may be a percentage with its sign.

    Examples
    --------
    >>> [share_of(value) for value in ("50%", "0.5", 50, "half")]
    [0.5, 0.5, 50.0, None]
    """
    if not isinstance(value, str) or not value.rstrip().endswith("%"):
        return number_of(value)
    number = number_of(value.rstrip()[:-1])
    return None if number is None else number / 100.0


def shares_of(values: Iterable[object]) -> tuple[Array, float]:
    """Return rates as shares, and half a unit of their last decimal, to which they are rounded.

    If a rate without a percent sign exceeds 1, all are percentages.

    Examples
    --------
    >>> shares_of([20, 100])[0].tolist(), shares_of(["0.25"])[1]
    ([0.2, 1.0], 0.005)
    """
    texts = [str(value).rstrip() for value in values]
    rates = np.array([share_of(text) for text in texts], float)
    whole = 100.0 if (rates > 1.0).any() else 1.0
    decimals = max([len(text.rstrip("%").partition(".")[2]) for text in texts], default=0)
    unit = 0.01 if whole > 1.0 or any(text.endswith("%") for text in texts) else 1.0
    return rates / whole, 0.5 * 10.0**-decimals * unit


def fewest_trials(shares: Array, rounding: float) -> int | None:
    """Return the smallest number of trials of which all shares can be; None if they are too coarse.

    Rounded shares are of any number of trials with as many different shares as they have. A share
    that is not exact must be within its rounding, and that within a tenth of a success.

    Examples
    --------
    >>> fewest_trials(*shares_of(["0.8", "0.2"])), fewest_trials(*shares_of(["0.33", "1.00"]))
    (5, 3)
    >>> fewest_trials(*shares_of(["0.3", "0.7"]))  # of ten, or of any larger number
    """
    most = 200
    trials = np.arange(1, most + 1)
    counts = np.unique(shares)[:, None] * trials
    missed = np.abs(counts - np.round(counts)).max(axis=0, initial=0.0)
    exact = (missed <= 1e-9 * trials) & (2.0 * rounding * trials < 1.0 - 1e-9)
    fits = exact | ((missed <= rounding * trials) & (rounding * trials <= 0.1))
    return int(trials[fits.argmax()]) if fits.any() else None


def is_category(value: object) -> bool:
    """Return whether a value may be an outcome: text, a real number, or true/false."""
    is_duration = isinstance(value, np.timedelta64)  # a subclass of the integers of NumPy
    return isinstance(value, str | Real | Decimal | np.bool_) and not is_duration


class ScoresAndMissing(dict[Any, float]):
    """Scores of outcomes, beside outcomes that stand for a missing one.

    Parameters
    ----------
    scores : mapping
        The score of every outcome, None for those that stand for a missing one.

    Examples
    --------
    >>> scores = ScoresAndMissing({"pass": 1.0, "fail": 0.0, "timeout": None})
    >>> scores, outcome_codes(scores)
    ({'pass': 1.0, 'fail': 0.0}, {'pass': 0, 'fail': 1, 'timeout': -1})
    """

    def __init__(self, scores: Mapping[Any, Any]) -> None:
        super().__init__({label: score for label, score in scores.items() if score is not None})
        self.missing = [label for label, score in scores.items() if score is None]


def outcome_codes(scores: Scores) -> dict[Any, int]:
    """Return the code of every outcome that is scored, or stands for a missing one."""
    missing = scores.missing if isinstance(scores, ScoresAndMissing) else ()
    return {label: code for code, label in enumerate(scores)} | dict.fromkeys(missing, CODE_MISSING)


def check_scores(scores: object) -> Scores:
    """Return a valid mapping of outcomes to scores, or refuse it."""
    valid = isinstance(scores, Mapping) and sum(score is not None for score in scores.values()) >= 2
    if not isinstance(scores, Mapping) or not valid:
        raise OutcomeError(
            "scores",
            " must map at least two outcomes to numbers, as in ",
            Argument("scores", {"I": 0, "C": 1}),
            f"; got {shown(scores)}. For numbers as they are: ",
            Argument("scores", "numbers"),
            ", or with their ends ",
            Argument("scores", (0, 1)),
            ".",
        )
    labels: dict[str, object] = {}
    for label, score in scores.items():
        if not is_category(label) or is_missing(label):
            raise OutcomeError(
                f"scores must map outcomes that are text, numbers or true/false; got the outcome "
                f"{shown(label)}. Leave a missing outcome out and say what it means with missing=."
            )
        same_text = labels.setdefault(
            label if isinstance(label, str) else shown(label, 10**6), label
        )
        if same_text is not label:
            raise OutcomeError(
                f"scores must name outcomes that differ as text; got {shown(same_text)} and "
                f"{shown(label)}. Rename one of them."
            )
        if score is not None and not _is_finite(score):
            raise OutcomeError(
                f"scores must be finite numbers; got {shown(score)} for {shown(label)}."
            )
    values = [float(score) for score in scores.values() if score is not None]
    gaps = np.diff(np.unique(values))
    if max(map(abs, values)) > _MAX_ABS_SCORE or (gaps < 1.0 / _MAX_ABS_SCORE).any():
        raise OutcomeError(
            f"scores must lie within ±{_MAX_ABS_SCORE:g} and differ by {1.0 / _MAX_ABS_SCORE:g} or "
            f"more, or not at all; got {shown(values)}. Rescale them."
        )
    scale = {label: None if score is None else float(score) for label, score in scores.items()}
    return ScoresAndMissing(scale)


def word_scores(outcomes: Iterable[object]) -> Scores:
    """Return the scores of two words for wrong and right, if all outcomes are one of them.

    A word is in small letters, in capitals, or begins with a capital, the same in all outcomes; one
    that does not occur is taken to be written as the other is. N and Y are words if both occur.

    Examples
    --------
    >>> word_scores(["Yes", None]), word_scores(["Pass", "FAIL"]), word_scores(["yes", "Yes"])
    ({'No': 0.0, 'Yes': 1.0}, {'FAIL': 0.0, 'Pass': 1.0}, {})
    """
    marks = {mark if isinstance(mark, str) else "" for mark in outcomes if not is_missing(mark)}
    forms = (str.lower, str.upper, str.capitalize)
    form_of = {mark: next((form for form in forms if form(mark) == mark), None) for mark in marks}
    written = {mark.lower(): mark for mark, form in form_of.items() if form is not None}
    pairs = (*_WORDS, *[_LETTERS] * (len(written) == 2))
    for wrong, right in pairs if len(written) == len(marks) > 0 else ():
        if written.keys() <= {wrong, right}:
            form = form_of[next(iter(written.values()))] or str.lower
            return {written.get(wrong, form(wrong)): 0.0, written.get(right, form(right)): 1.0}
    return {}


def outcome_of(text: str) -> bool | float | str:
    """Return the outcome that a text stands for, as files are read: a number, true/false, or text.

    Examples
    --------
    >>> [outcome_of(text) for text in ("1", "0.5", "TRUE", "timeout")]
    [1, 0.5, True, 'timeout']
    """
    number = number_of(text)
    if number is None or math.isnan(number):
        return {"true": True, "false": False}.get(text.lower(), text)
    return int(number) if number.is_integer() else number


def scores_of_words(outcomes: Collection[object]) -> dict[Any, float]:
    """Return the scores of those outcomes that are words or numbers for right and wrong.

    If not both occur, none is taken as such.

    Examples
    --------
    >>> scores_of_words(["ERROR", "FAILED", "PASSED"]), scores_of_words(["PASSED", "ERROR"])
    ({'FAILED': 0.0, 'PASSED': 1.0}, {})
    """
    others = [("0", "1"), ("false", "true"), ("i", "c")]  # the last are of Inspect
    others += [_LETTERS] * ({str(mark).lower() for mark in outcomes} == {*_LETTERS})
    wrong, right = ({*words} for words in zip(*_WORDS, *others, strict=True))
    scores = {
        mark: float(str(mark).lower() in right)
        for mark in outcomes
        if str(mark).lower() in wrong | right
    }
    return scores if len({*scores.values()}) == 2 else {}


_LETTERS = ("n", "y")  # which stand for words only if nothing else occurs
_WORDS = (
    ("no", "yes"), ("fail", "pass"), ("failed", "passed"), ("incorrect", "correct"),
    ("wrong", "right"), ("failure", "success"), ("bad", "good"), ("unsolved", "solved"),
    ("unresolved", "resolved"), ("rejected", "accepted"), ("loss", "win"),
    ("✗", "✓"), ("❌", "✅"),
)  # fmt: skip


def _is_no_score(outcome: object) -> bool:
    """Return whether an outcome is a negative number, or a word but no letter for a grade."""
    number = number_of(outcome)
    if number is not None:
        return number < 0.0
    return isinstance(outcome, str) and not (len(outcome) == 1 and outcome.isalpha())


def ways_to_score(outcomes: Collection[Any], scores: Scores) -> list[list[str | Argument]]:
    """Return the scores to propose for the outcomes that occur, and what the others may mean.

    Outcomes that neither have a score nor are words for right and wrong count as wrong or stand for
    a missing one; two unknown words are right and wrong, or wrong and right.

    Examples
    --------
    >>> print(Message(*ways_to_score(["no", "yes", "?"], {})[1]))
    if '?' was not run: bayesatk.tally(data, scores={'no': 0, 'yes': 1, '?': None},
    missing='ignore')
    >>> print(Message(*ways_to_score(["ja", "nein"], {})[0]))
    if 'ja' is right: bayesatk.tally(data, scores={'ja': 1, 'nein': 0})
    """

    def scored(values: Mapping[Any, object]) -> Argument:
        return Argument("scores", values, "tally")

    if len(outcomes) < 2:
        return [[scored({**scores, **dict.fromkeys(outcomes, ...)})]]
    stated = {} if {*scores} == {0, 1} else scores  # of 0 and 1 those that occur
    known = dict(stated) | {label: scores[label] for label in outcomes if label in scores}
    known |= scores_of_words([label for label in outcomes if label not in known])
    others = [label for label in outcomes if label not in known]
    if {0.0, 1.0} <= {*known.values()} and others and all(map(_is_no_score, others)):
        names = f"{', '.join(map(shown, others))} {'was' if len(others) == 1 else 'were'}"
        as_missing = scored({**known, **dict.fromkeys(others)})
        partial = all(re.search("part|half", str(label).lower()) for label in others)
        half: list[str | Argument] = [
            f"if {names} half right: ",
            scored({**known, **dict.fromkeys(others, 0.5)}),
        ]
        return [
            [f"if {names} wrong: ", scored({**known, **dict.fromkeys(others, 0.0)})],
            *[half] * partial,
            [f"if {names} not run: ", as_missing, Argument("missing", "ignore", "tally")],
        ]
    if len(others) == 2 and not known and None in map(number_of, others):
        first, second = others
        return [
            [f"if {shown(right)} is right: ", scored({right: 1.0, wrong: 0.0})]
            for right, wrong in ((first, second), (second, first))
        ]
    return [[scored({**known, **dict.fromkeys(others, ...)})]]


def is_split(shares: Array) -> bool:
    """Whether, of shares of successes, one is not under 1% and one not over 99%."""
    return bool(shares.max() >= 0.01 and shares.min() <= 0.99)


def succeeding(rule: str, scores: Array) -> Flags:
    """Return which scores succeed under a rule such as ``score >= 0.5``."""
    match = re.fullmatch(r"\s*score\s*([<>]=?)\s*(\S+)\s*", rule) if isinstance(rule, str) else None
    bound = match and number_of(match.group(2))
    if match is not None and match.group(2) == "NUMBER":  # as messages propose it
        raise OutcomeError(
            f"success must have a number in place of NUMBER; got {shown(rule)}. Write the score "
            "from which on a trial is a success, or, of scores that are better when lower, up to "
            "which: ",
            Argument("success", "score <= 30"),
            ".",
        )
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
            f"success must split the scores from {scores.min():g} to "
            f"{scores.max():g}; {rule!r} holds for {'all' if succeeds.all() else 'none'} of them. "
            "Choose a bound between them."
        )
    return succeeds


def _is_finite(score: object) -> bool:
    try:
        return isinstance(score, Real) and math.isfinite(score)
    except OverflowError:  # an integer beyond the floats
        return False


def check_counts(values: object, name: str) -> Ints:
    """Return whole numbers of at least 0 as int64, or refuse the first that is not."""
    refuse_masked(values, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array = np.asarray(values)
    except Exception as error:  # NumPy raises errors of many types here
        raise OutcomeError(
            f"{name} must be an array of whole numbers >= 0; got {shown(values)} ({error})."
        ) from None
    if array.dtype.kind not in "biuf":
        raise OutcomeError(
            f"{name} must be whole numbers >= 0; got values of type {array.dtype}, for instance "
            f"{shown(array.ravel()[:1].tolist())}. Give counts below 2**62 as integers."
        )
    bad = ~(np.isfinite(array) & (array >= 0) & (array == np.floor(array)) & (array < _MAX_COUNT))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise OutcomeError(
            f"{name} must be whole numbers >= 0 and below 2**62; got {array[where]} at position "
            f"{where}. Check this count; outcomes themselves need no trials."
        )
    return array.astype(np.int64)


def check_trial_counts(trials: Array | Ints, name: str) -> None:
    """Refuse too many trials of one question, before arrays are allocated.

    Examples
    --------
    >>> check_trial_counts(np.array([10, 20]), "trials")
    """
    most = int(trials.max(initial=0))
    if most > _MAX_TRIALS_PER_QUESTION:
        where = tuple(int(i) for i in np.argwhere(trials == most)[0])
        raise OutcomeError(
            f"{name} must give every question at most 10^9 trials; got {most} at position {where}. "
            "Check the unit of these counts, or divide successes and trials by a common number: "
            "from 10^9 trials on, a success rate is known to 2e-5 either way."
        )


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array, whose masked values would be read as data."""
    if isinstance(values, np.ma.MaskedArray):
        rule = f"{name} must be a plain array; got a masked array. "
        if name != "data":
            raise OutcomeError(
                f"{rule}Use .compressed() on it, and on what goes with it, to leave questions out."
            )
        raise OutcomeError(
            f"{rule}Use .astype(float).filled(np.nan) on it, and say what is missing then means: ",
            Argument("missing", "ignore", "tally"),
            ".",
        )


def check_labels(labels: object, name: str, number: int) -> list[Any]:
    """Return labels as a list, or refuse any but so many labels."""
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
    """Return why a value cannot be a label; None if it can."""
    if is_missing(label):
        return "is missing"
    if isinstance(label, str) and not label.strip():
        return "is blank"
    if isinstance(label, Iterable) and not isinstance(label, str):
        return "is a collection"
    try:
        hash(label)
        str(label).encode()
    except Exception as error:  # no hash, no text, or half of a surrogate pair
        return f"cannot be a label ({error})"
    return None


def as_coordinate(labels: Labels, name: str) -> pd.Index:
    """Return distinct labels as an index of integers, or of text if any label is not an integer."""
    if isinstance(labels, range):
        return pd.Index(np.arange(labels.start, labels.stop, labels.step))
    plain = set(map(type, labels)) <= {int}  # no check of single labels is needed
    for label in () if plain else labels:
        fault = label_fault(label)
        if fault:
            raise OutcomeError(
                f"{name} must be labelled by text or numbers; the label {shown(label)} {fault}. "
                "Replace it by text."
            )
    no_integers = bool | np.timedelta64  # although subclasses of integers
    if all(
        issubclass(kind, int | np.integer) and not issubclass(kind, no_integers)
        for kind in set(map(type, labels))
    ):
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
    """Refuse names of systems that differ only in blanks or in the encoding of letters."""
    systems_by_name: dict[str, object] = {}
    for system in systems.tolist():
        name = " ".join(unicodedata.normalize("NFC", str(system)).split())
        if name in systems_by_name:
            raise OutcomeError(
                f"systems must have names that can be told apart; got {systems_by_name[name]!a} "
                f"and {system!a}, which differ in blanks or in the encoding of letters only. "
                "Rename one of them, or write both the same if they are one system."
            )
        systems_by_name[name] = system


MAX_LEVELS = 51  # rounding to so many levels changes the variance by 1 part in 300
_MIN_RELATIVE_DISTANCE = 1e-3  # of two levels, in units of the range of the scale


class NumberScale(dict[Any, float]):
    """Scale of outcomes that are numbers: every different number that is read gets a code.

    Parameters
    ----------
    ends : (float, float), optional
        Smallest and largest allowed number; default: those of the numbers that are read.

    Examples
    --------
    >>> scale = NumberScale((0.0, 1.0))
    >>> scale.codes([0.25, None, 0.5, 0.25, 2.0]).tolist(), list(scale)
    ([0, -1, 1, 0, -2], [0.25, 0.5])
    """

    def __init__(self, ends: tuple[float, float] | None = None) -> None:
        super().__init__()
        self.ends = ends
        self._position: dict[float, int] = {}

    @classmethod
    def of(cls, scores: object) -> "NumberScale | None":
        """Return the scale for ``scores="numbers"`` or ``(low, high)``; None for other scores."""
        if isinstance(scores, str) and scores == "numbers":
            return cls()
        if not isinstance(scores, tuple) or len(scores) != 2:
            return None
        ends = [number_of(end) for end in scores]
        low, high = (math.nan if end is None else float(end) for end in ends)
        if not (low < high and max(-low, high) <= _MAX_ABS_SCORE):
            raise OutcomeError(
                "scores",
                " must be two ends in rising order for numbers between them; "
                f"got {shown(scores)}. For any numbers: ",
                Argument("scores", "numbers"),
                ".",
            )
        return cls((low, high))

    @classmethod
    def beside(cls, numbers: Iterable[float]) -> "NumberScale":
        """Return a scale of any numbers that has these already."""
        scale = cls()
        scale.codes([*numbers])
        return scale

    @property
    def words(self) -> str:
        """Rule for outcomes, for messages."""
        if self.ends is None:
            return "a finite number"
        return "a number from {:g} to {:g}".format(*self.ends)

    def codes(self, values: NDArray[Any] | Sequence[Any]) -> Codes:
        """Return the code of every value: its position among the numbers so far, or negative."""
        array = np.asarray(values) if isinstance(values, np.ndarray) else None
        if array is not None and array.dtype.kind in "biuf":
            distinct, inverse = np.unique(array.astype(float), return_inverse=True)
            codes = np.array([self._code(value) for value in distinct.tolist()], np.int32)
            return codes[inverse].reshape(array.shape)
        flat = values if array is None else array.ravel().tolist()
        codes = np.array([self._code(value) for value in flat], np.int32)
        return codes if array is None else codes.reshape(array.shape)

    def _code(self, value: Any) -> int:
        if is_missing(value):
            return CODE_MISSING
        number = float(value) if isinstance(value, bool | np.bool_) else number_of(value)
        if isinstance(value, str) or number is None or not abs(number) <= _MAX_ABS_SCORE:
            return CODE_INVALID
        if self.ends is not None and not self.ends[0] <= number <= self.ends[1]:
            return CODE_INVALID
        number += 0.0  # -0.0 becomes 0.0
        position = self._position.setdefault(number, len(self._position))
        self[number] = number
        return position

    def levelled(
        self, code: Codes, system: Ints, success: str | None = None
    ) -> tuple[Codes, Scores, list[str]]:
        """Return codes on a scale of levels, or of right and wrong; also the scale and notes.

        Parameters
        ----------
        code : ndarray of int, shape (trials,)
            Codes on this scale, ordered by system.
        system : ndarray of int, shape (trials,)
        success : str, optional
            As in ``"score >= 0.5"``.

        Examples
        --------
        >>> scale = NumberScale()
        >>> codes = scale.codes([0.2, 0.9, 0.2])
        >>> scale.levelled(codes, np.zeros(3, int), "score > 0.5")[0].tolist()
        [0, 1, 0]
        """
        numbers, present = np.array(list(self)), code >= 0
        if success is not None:
            succeeds = succeeding(success, numbers)
            description = f"{int(succeeds.sum())} of {len(numbers)} different numbers"
            codes = np.where(present, succeeds[np.maximum(code, 0)], code)
            return codes, {0: 0.0, 1: 1.0}, [f"success is {success}: {description}"]
        marks = numbers[code[present]]
        levels = self._levels(marks)
        if len(levels) < 2:
            ends = min(0, float(marks.min(initial=0))), max(1, float(marks.max(initial=1)))
            raise OutcomeError(
                f"data must have two different numbers or more; got {shown(numbers.tolist())}. Say "
                "between which ends they lie: ",
                Argument("scores", ends, "tally"),
                ".",
            )
        scale = dict(zip(_level_labels(levels), levels.tolist(), strict=True))
        codes = code.copy()
        if np.isin(numbers, levels).all():
            codes[present] = np.searchsorted(levels, marks)
            return codes, scale, []
        codes[present], moved = _rounded_to_levels(marks, system[present], levels)
        description = (
            f"{len(numbers)} different numbers from {numbers.min():g} to {numbers.max():g}"
        )
        note = (
            f"{description} are kept as {len(levels)} levels, each at one beside it; mean scores "
            f"of systems move by at most {moved:.2g}"
        )
        return codes, scale, [note]

    def _levels(self, numbers: Array) -> Array:
        """Return the sorted levels: all numbers, or quantiles of them, and the ends."""
        if not len(numbers):
            return numbers
        ends = (numbers.min(), numbers.max()) if self.ends is None else self.ends
        distinct = np.unique(np.concatenate([numbers, ends]))
        min_distance = _MIN_RELATIVE_DISTANCE * (ends[1] - ends[0])
        if len(distinct) <= MAX_LEVELS and np.diff(distinct).min(initial=np.inf) >= min_distance:
            return distinct
        inner = numbers[(numbers > ends[0] + min_distance) & (numbers < ends[1] - min_distance)]
        if len(distinct) > MAX_LEVELS and len(inner):
            probabilities = (np.arange(MAX_LEVELS - 2) + 0.5) / (MAX_LEVELS - 2)
            inner = np.quantile(inner, probabilities)
        inner = ends[0] + min_distance * np.unique(np.round((inner - ends[0]) / min_distance))
        return np.concatenate([[ends[0]], inner, [ends[1]]])


def _level_labels(levels: Array) -> list[float]:
    """Return names of levels: rounded to six digits if these differ."""
    rounded = [float(f"{level:.6g}") for level in levels.tolist()]
    named = rounded if len(set(rounded)) == len(rounded) else levels.tolist()
    return [int(name) if name == int(name) and abs(name) < 1e15 else name for name in named]


def _rounded_to_levels(numbers: Array, system: Ints, levels: Array) -> tuple[Codes, float]:
    """Return the level of every number by error diffusion, and the largest change of a mean.

    The rounding error of a number is added to the next number of the same system before that is
    rounded, so that only the last error of a system remains in its sum. Numbers between levels that
    are far apart come first, so that this is a small one.
    """
    scale, error, previous_system = levels.tolist(), 0.0, -1
    codes, last_errors = np.empty(len(numbers), np.int32), {}
    distance = np.diff(levels, prepend=levels[0])[np.searchsorted(levels, numbers)]
    for row in np.lexsort((-distance, system)).tolist():
        number, system_of_number = float(numbers[row]), int(system[row])
        if system_of_number != previous_system:
            error, previous_system = 0.0, system_of_number
        position = bisect_left(scale, number)
        if scale[position] != number:
            target = number + error
            position -= target - scale[position - 1] < scale[position] - target
            error = target - scale[position]
        codes[row] = position
        last_errors[system_of_number] = error
    trials = np.bincount(system)
    return codes, max(
        abs(value) / trials[system_of_number] for system_of_number, value in last_errors.items()
    )
