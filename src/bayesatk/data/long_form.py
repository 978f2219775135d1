"""The long form: trials of every kind of input, before they are counted.

A trial has a system, a question, an outcome and perhaps an answer. `bayesatk.data.array_forms`,
`bayesatk.data.long_tables` and `bayesatk.io` make long forms; `bayesatk.data.tally` counts them.
Outcomes are small integer codes, positions among the scored outcomes. System and question are
positions too; in an array they are given by the index, so that 10^8 trials take a byte each.
"""

import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import PACKAGE, Argument, alternatives
from bayesatk.data.answers import UNKNOWN, AnswerRules, Answers, group
from bayesatk.data.columns import MARKS, TRUTHS
from bayesatk.data.roles import COST, TRUTH
from bayesatk.data.validation import (
    CODE_INVALID,
    CODE_MISSING,
    Codes,
    Labels,
    NumberScale,
    OutcomeError,
    OutcomeWarning,
    Scores,
    UnscoredOutcomeError,
    check_labels,
    check_trial_counts,
    is_category,
    is_missing,
    is_split,
    number_of,
    outcome_codes,
    share_of,
    shown,
    ways_to_score,
)

MissingPolicy = Literal["error", "ignore", "wrong", "right"]
_SIMPLE_TYPES = frozenset({int, bool, str})  # types whose values are never missing


@dataclass(frozen=True)
class LongForm:
    """Trials of systems and questions, or only their counts.

    Parameters
    ----------
    systems, questions : sequence
        Labels, by position.
    code : ndarray of int
        Outcome of each trial: position among the scored ones, or `CODE_MISSING`. An array with
        dims (system, question, trial), or one value per row.
    cell : ndarray of int, shape (rows,), optional
        System times the number of questions plus question, for rows.
    counted : ndarray of int, shape (system, question, slot), optional
        Counts of an input without trials; slot 0 holds missing outcomes, slot 1 + c category c.
    trial_labels : sequence, optional
        By row, or by position in an array.
    answer : list of str or None, optional
        Normalised answer of every trial, None where there is none.
    rules : AnswerRules
        How the answers were normalised, and how they are grouped.
    notes : tuple of str
        Assumptions, for the data card.
    columns : mapping of str to ndarray, shape (question,)
        Group, weight and covariates of the questions.
    by_trial : mapping of str to ndarray, shape (rows,)
        Cost and truth of every trial; NaN where they are unknown.
    outcome_column : label
        Name of the column of the outcomes, of a table.
    """

    systems: Labels
    questions: Labels
    code: Codes = field(default_factory=lambda: np.zeros(0, np.int8))
    cell: Ints | None = None
    counted: Ints | None = None
    trial_labels: Labels | None = None
    answer: list[str | None] | None = None
    rules: AnswerRules = field(default_factory=AnswerRules)
    notes: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    by_trial: Mapping[str, Array] = field(default_factory=dict)
    outcome_column: object = ""

    def doubted(self, *advice: str | Argument) -> "LongForm":
        """Warn about a possible mistake, and add the warning to the data card."""
        warning = OutcomeWarning(*advice)
        warnings.warn(warning, skip_file_prefixes=(PACKAGE,))
        return replace(self, notes=(*self.notes, f"CHECK: {warning}"))

    def labelled(self, systems: object, questions: object) -> "LongForm":
        """Replace the labels, checking their number."""
        changed: dict[str, Any] = {}
        if systems is not None:
            changed["systems"] = check_labels(systems, "systems", len(self.systems))
        if questions is not None:
            changed["questions"] = check_labels(questions, "questions", len(self.questions))
        return replace(self, **changed)

    def rows(self) -> tuple[Ints, Ints, Codes]:
        """Return cell, position in the order of trials, and outcome code of every trial."""
        if self.cell is not None:
            return self.cell, np.arange(len(self.code)), self.code
        cells, trials = math.prod(self.code.shape[:2]), self.code.shape[-1]
        cell = np.repeat(np.arange(cells), trials)
        return cell, np.tile(np.arange(trials), cells), self.code.ravel()

    def slots(self, scores: Scores) -> Ints:
        """Count the trials by system, question and slot; slot 0 holds missing outcomes.

        Numbers that have not been replaced by levels yet share one slot.
        """
        if self.counted is not None:
            return self.counted
        if isinstance(scores, NumberScale):
            return replace(self, code=np.minimum(self.code, 0)).slots({0: 0.0})
        if self.cell is None:
            return count_codes(self.code, range(CODE_MISSING, len(scores)))
        shape = len(self.systems), len(self.questions), len(scores) + 1
        slot = self.cell * shape[2] + self.code + 1
        return np.bincount(slot, minlength=math.prod(shape)).reshape(shape)

    def stopped_systems(self, scores: Scores) -> Flags:
        r"""Return whether the trials of every question end at its first success; (system,).

        Among exchangeable trials, the only success of :math:`n_i` trials is the last one with
        probability :math:`1 / n_i`. Trials are retries if no question has a success before its
        last trial and :math:`\prod_i 1 / n_i \le 1/20` over questions with one success. For
        counts, which have no order, the order is assumed to fit.
        """
        if isinstance(scores, NumberScale) or set(scores.values()) != {0.0, 1.0}:
            return np.zeros(len(self.systems), bool)
        counts = self.slots(scores)[..., 1:]
        successes = counts[..., np.array([*scores.values()]) == 1.0].sum(axis=-1)
        trials = counts.sum(axis=-1)
        one_success = successes == 1
        log_odds = np.log(np.where(one_success, trials, 1)).sum(axis=1)
        min_odds = 20  # against such an order of exchangeable trials
        lengths_vary = [
            len(set(trials_of_system[solved].tolist())) > 1
            for trials_of_system, solved in zip(trials, one_success, strict=True)
        ]
        stopped: Flags = (
            (successes.max(axis=1) < 2) & (log_odds >= np.log(min_odds)) & np.array(lengths_vary)
        )
        if self.counted is not None or not stopped.any():
            return stopped
        cell, position, code = self.rows()
        judged = code >= 0
        time: Array | Ints = position
        if self.cell is not None and self.trial_labels is not None:
            numbers = [number_of(label) for label in self.trial_labels]
            time = position if None in numbers else np.array(numbers, float)
        order = np.lexsort((time[judged], cell[judged]))
        cells = cell[judged][order]
        has_next = np.append(np.diff(cells) == 0, False)
        is_success = np.array([*scores.values()])[code[judged]][order] == 1.0
        early_successes = np.bincount(cells, is_success & has_next, successes.size).reshape(
            successes.shape
        )
        stopped &= early_successes.max(axis=1) == 0.0
        return stopped

    def levelled(
        self, scores: NumberScale, success: str | None = None
    ) -> tuple["LongForm", Scores]:
        """Replace numbers by levels, or by right and wrong; return the scale too."""
        cell, _, code = self.rows()
        system, question = np.divmod(cell, max(len(self.questions), 1))
        by_name = np.argsort(np.argsort(np.array([str(label) for label in self.questions])))
        number = np.array([math.nan, *scores])[np.maximum(code, -1) + 1]
        # Rounding to levels must not depend on the order of the rows.
        order = np.lexsort((number, by_name[question], system))
        system = system[order]
        moved_codes, scale, notes = scores.levelled(code[order], system, success)
        codes = np.empty_like(moved_codes)
        codes[order] = moved_codes
        codes = codes.reshape(self.code.shape)
        return replace(self, code=codes, notes=(*self.notes, *notes)), scale

    def grouped(self, scores: Scores) -> tuple[Answers | None, tuple[str, ...]]:
        """Return the counts of distinct answers, None without answers, and notes."""
        if self.answer is None:
            return None, ()
        cell, _, code = self.rows()
        shape, marks = (len(self.systems), len(self.questions)), marks_of(code, scores)
        return group(cell, marks, self.answer, self.rules, shape, self.questions)

    def with_missing_as(self, scale: Scores, end: Callable[..., float]) -> "LongForm":
        """Give missing outcomes the least or largest score (`end` is min or max)."""
        scores = list(scale.values())
        category = scores.index(end(scores))
        if self.counted is not None:
            counted = self.counted.copy()
            counted[..., 1 + category] += counted[..., 0]
            return replace(self, counted=counted)
        missing = self.rows()[2] < 0
        answer = self.answer
        if answer is not None:
            answer = [None if gap else text for gap, text in zip(missing, answer, strict=True)]
        return replace(self, code=np.where(self.code < 0, category, self.code), answer=answer)

    def cost_sums(self, shape: tuple[int, ...]) -> Array | None:
        """Return the number, sum and sum of squares of known costs; (system, question, slot, 3)."""
        if COST not in self.by_trial:
            return None
        cell, _, code = self.rows()
        costs = self.by_trial[COST]
        has_cost = ~np.isnan(costs)
        slot, cost = cell[has_cost] * shape[2] + code[has_cost] + 1, costs[has_cost]
        terms = np.ones_like(cost), cost, cost**2
        sums = [np.bincount(slot, term, math.prod(shape)) for term in terms]
        return np.stack(sums, axis=-1).reshape(*shape, len(terms))

    def truth_counts(self, right: Flags) -> Ints | None:
        """Count trials of known truth; (system, question, truth, mark).

        The first mark is that of trials without a mark.

        Parameters
        ----------
        right : ndarray of bool, shape (scored outcomes,)
            Whether an outcome marks a trial as right.
        """
        if TRUTH not in self.by_trial:
            return None
        cell, _, code = self.rows()
        truth = self.by_trial[TRUTH]
        has_truth = ~np.isnan(truth)
        mark = np.append(1 + right, 0)[code[has_truth]]  # a missing code is -1: the last
        shape = len(self.systems), len(self.questions), len(TRUTHS), len(MARKS)
        slot = (cell[has_truth] * shape[2] + truth[has_truth].astype(np.int64)) * shape[3] + mark
        return np.bincount(slot, minlength=math.prod(shape)).reshape(shape)


def default_systems(number: int) -> Labels:
    """Return default labels for a number of systems."""
    return ["system"] if number == 1 else range(number)


def of_counts(counted: Ints) -> LongForm:
    """Return counts (system, question, slot) under default labels."""
    systems, questions, _ = counted.shape
    return LongForm(default_systems(systems), range(questions), counted=counted)


def success_slots(
    successes: Ints, trials: Ints, name: str, place_of_index: Callable[[tuple[int, ...]], str]
) -> Ints:
    """Return counts by slot (missing, wrong, right); refuse more successes than trials."""
    check_trial_counts(trials, name)
    for where in map(tuple, np.argwhere(successes > trials)[:1].tolist()):
        raise OutcomeError(
            f"successes must not exceed trials; got {successes[where]} successes in "
            f"{trials[where]} trials at {place_of_index(where)}. Check them, and their order."
        )
    return np.stack([0 * successes, trials - successes, successes], axis=-1)


def count_codes(codes: Codes, slots: Sequence[int]) -> Ints:
    """Return how often each code occurs along the last axis.

    Examples
    --------
    >>> count_codes(np.array([[0, 1, -1], [1, 1, 1]]), range(-1, 2)).tolist()
    [[1, 1, 1], [0, 0, 3]]
    """
    return np.stack([(codes == slot).sum(axis=-1) for slot in slots], axis=-1)


def encode(values: NDArray[Any] | list[Any], scores: Scores) -> Codes:
    """Return the position of every value among the scored outcomes, or a negative code.

    `CODE_MISSING` is the code of a missing value, `CODE_INVALID` that of a value without a score.

    Examples
    --------
    >>> encode([0, 1, None, "1", True], {0: 0.0, 1: 1.0}).tolist()
    [0, 1, -1, -2, 1]
    """
    if isinstance(scores, NumberScale):
        return scores.codes(values)
    kind = np.min_scalar_type(-len(scores) - 2)
    if isinstance(values, list):
        return _encode_objects(values, scores, kind)
    if values.dtype.kind in "OT":
        return _encode_objects(values.ravel().tolist(), scores, kind).reshape(values.shape)
    codes = np.full(values.shape, CODE_INVALID, kind)
    if values.dtype.kind == "f":
        codes += np.isnan(values)
    # Dates, durations, bytes, complex numbers and records are no outcomes.
    codes_by_outcome = outcome_codes(scores) if values.dtype.kind in "biufU" else {}
    for label, code in codes_by_outcome.items():
        if isinstance(label, str) == (values.dtype.kind == "U"):
            try:
                same = np.asarray(values == label, dtype=bool)
            except OverflowError:  # an integer beyond the floats
                continue
            # Faster than writing through a mask.
            np.maximum(codes, same * codes.dtype.type(code + 2) - codes.dtype.type(2), out=codes)
    return codes


def _encode_objects(values: list[Any], scores: Scores, kind: Any) -> Codes:
    """Return the codes of values of any types."""
    codes = outcome_codes(scores)
    return np.fromiter((_code_of(value, codes) for value in values), kind, len(values))


def _code_of(value: Any, codes: Mapping[Any, int]) -> int:
    """Return the code of one value of any type."""
    if type(value) not in _SIMPLE_TYPES:
        if is_missing(value):
            return CODE_MISSING
        if not is_category(value):  # 1+0j and a duration of 1 equal 1
            return CODE_INVALID
    try:
        return codes.get(value, CODE_INVALID)
    except TypeError:  # a signalling NaN has no hash
        return CODE_INVALID


def unscored_positions(codes: Codes) -> list[int]:
    """Return the positions of the first two outcomes without a score."""
    if not codes.size or codes.min() > CODE_INVALID:
        return []
    return [int(index) for index in np.flatnonzero(codes == CODE_INVALID)[:2]]


def unscored_outcome(
    value: Any,
    where: str,
    scores: Scores,
    values: Sequence[Any] = (),
    second: tuple[Any, str] | None = None,
) -> UnscoredOutcomeError:
    """Return the error for an outcome without a score, with remedies for all such `values`."""
    allowed = "one of " + ", ".join(shown(label) for label in scores)
    otherwise: tuple[str | Argument, ...] = ()
    remedy: tuple[str | Argument, ...] = ("Write every outcome as text, a number or true/false.",)
    if isinstance(scores, NumberScale):
        allowed = scores.words
        remedy = ("Correct it, or change ", Argument("scores"), ".")
        if isinstance(value, str) and re.fullmatch(r"[+-]?\d+,\d+", value):
            text = f"Write a decimal point in place of the comma of {shown(value)}, and of others."
            remedy = otherwise = (text,)
    elif is_category(value) and value not in (math.inf, -math.inf):
        marks = (mark for mark in (value, *values) if is_category(mark))
        keys = dict.fromkeys(
            mark.item() if isinstance(mark, np.generic) else mark for mark in marks
        )
        max_listed = 8  # in a message
        remedy = otherwise = _numbers_written_otherwise(value)
        ways = [] if remedy or len(keys) > max_listed else ways_to_score(keys, scores)
        if (number := _number_of_outcome(value)) is not None:
            each = [["if each number has another score: ", *way] for way in ways[:1]]
            # A negative number beside 0 and 1 may stand for a missing outcome: proposed first.
            of_negative = ways[::-1] if number < 0.0 and len(ways) > 1 else []
            ways = [*of_negative, *_ways_of_numbers(values), *([] if of_negative else each)]
        if ways:
            remedy = ("Score every outcome that may occur: ", *alternatives(ways), ".")
    second_outcome = "" if second is None else f", and neither is {shown(second[0])} at {second[1]}"
    if Argument("missing", "ignore", "tally") not in remedy and not otherwise:
        remedy += (
            " Write an unknown or failed one as None (in CSV, leave its cell empty), and use ",
            Argument("missing", "ignore", "tally"),
            ".",
        )
    error = UnscoredOutcomeError(
        f"outcome {shown(value)} at {where} is not {allowed}{second_outcome}. ", *remedy
    )
    met = (value, *(() if second is None else second[:1]), *values)
    error.outcomes = tuple(dict.fromkeys(mark for mark in met if is_category(mark)))
    return error


def _numbers_written_otherwise(value: object) -> tuple[str | Argument, ...]:
    """Return the remedy for texts such as 3/4, of successes and trials, and 0,75.

    Examples
    --------
    >>> _numbers_written_otherwise("0,75")[0]
    "Write a decimal point in place of the comma of '0,75', and keep numbers as they are: "
    """
    if isinstance(value, str) and re.fullmatch(r"\d+ ?/ ?\d+", value):
        columns = Argument("columns", {"successes": ..., "trials": ...}, "tally")
        return (
            f"Write the successes and the trials of {shown(value)} in a column each: ",
            columns,
            ".",
        )
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+,\d+", value):
        text = f"Write a decimal point in place of the comma of {shown(value)}, and keep numbers "
        return text + "as they are: ", Argument("scores", "numbers", "tally"), "."
    return ()


def _ways_of_numbers(values: Sequence[Any]) -> list[list[str | Argument]]:
    """Return the remedies for numbers: as they are, or by a threshold, of shares the middle."""
    as_numbers = Argument("scores", "numbers", "tally")
    ways: list[list[str | Argument]] = [["if numbers stay as they are: ", as_numbers]]
    numbers = [number for value in values if (number := _number_of_outcome(value)) is not None]
    if len({*numbers}) > 1:
        reached = np.mean(np.array(numbers) >= 0.5, keepdims=True)
        shares = min(numbers) >= 0.0 and max(numbers) <= 1.0
        bound = "0.5" if shares and is_split(reached) else "NUMBER"
        rule = Argument("success", f"score >= {bound}", "tally")
        ways.append(["if what reaches a threshold is a success: ", rule])
    return ways


def _number_of_outcome(value: Any) -> float | None:
    """Return the number that an outcome or its text stands for; None for flags and durations."""
    odd = isinstance(value, bool | np.bool_) or not is_category(value)
    return None if odd else share_of(value)


def marks_of(codes: NDArray[Any], scores: Scores) -> Ints:
    """Return 1 for right, 0 for wrong and -1 for unknown outcome codes."""
    if set(scores.values()) != {0.0, 1.0}:
        raise OutcomeError(
            "answers need outcomes that are right or wrong, scored 1 and 0; got scores "
            f"{shown(dict(scores))}. Map the outcomes to 0 and 1, or leave the answers out."
        )
    marks = np.array([*map(int, scores.values()), UNKNOWN])  # a missing code is -1: the last
    return np.asarray(marks[codes])


def codes_of(
    answers: Sequence[str | None], references: Iterable[Collection[str]], scores: Scores
) -> NDArray[np.int8]:
    """Return the outcome code of every answer: right if it is among the references of its trial."""
    marks_of(np.zeros(0, np.int8), scores)
    pairs = zip(answers, references, strict=True)
    right = np.fromiter((answer in reference for answer, reference in pairs), np.int8)
    order = list(scores.values())
    return np.array([order.index(0.0), order.index(1.0)], np.int8)[right]
