"""Answers given in trials: compared, grouped by question, each right or wrong, for votes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk.data.validation import OutcomeError, is_category, is_missing, shown
from bayesatk.priors import AnswerPrior

Ints = NDArray[np.int64]
Normalise = Literal["exact", "strip", "casefold"] | Callable[[str], str]
RIGHT, UNKNOWN = 1, -1  # marks; 0 is wrong


@dataclass(frozen=True)
class AnswerRules:
    """How answers are compared, and what their marks and their absence mean.

    Parameters
    ----------
    normalise : {"strip", "exact", "casefold"} or callable
        How the text of an answer is changed before answers are compared. ``"strip"`` removes
        leading and trailing white space and makes inner white space single; ``"exact"`` changes
        nothing; ``"casefold"`` does as ``"strip"``, in lower case; a function is applied to the
        text. A text that becomes empty counts as no answer.
    conflict : {"error", "majority"}
        What to do if equal answers to a question have different marks: raise an error; or give
        them the mark that most of them have (a tie counts as wrong). This concerns votes only:
        metrics of right and wrong use the marks as they are.
    unanswered : {"nobody", "exclude"}
        Whether a trial without an answer is an abstention, which is drawn like any other vote and
        never wins, or is left out.
    merge_correct : bool
        Whether all right answers to a question count as the same answer (``"1/2"``, ``"0.5"``).

    See Also
    --------
    bayesatk.tally : takes them as ``answer_rules``.

    Examples
    --------
    >>> AnswerRules("casefold").apply("  New   York ")
    'new york'
    """

    normalise: Normalise = "strip"
    conflict: Literal["error", "majority"] = "error"
    unanswered: Literal["nobody", "exclude"] = "nobody"
    merge_correct: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.merge_correct, bool):
            raise OutcomeError(
                "answer_rules: merge_correct must be true or false; got "
                f"{shown(self.merge_correct)}."
            )
        for name, allowed in (
            ("normalise", ("exact", "strip", "casefold")),
            ("conflict", ("error", "majority")),
            ("unanswered", ("nobody", "exclude")),
        ):
            value = getattr(self, name)
            fits = isinstance(value, str) and value in allowed
            if not fits and not (name == "normalise" and callable(value)):
                raise OutcomeError(
                    f"answer_rules: {name} must be one of {', '.join(map(repr, allowed))}"
                    f"{' or a function of text' * (name == 'normalise')}; got {shown(value)}."
                )

    def apply(self, answer: object) -> str | None:
        """Return the text by which an answer is compared; None for no answer."""
        if is_missing(answer):
            return None
        text = _text(answer)
        if callable(self.normalise):
            try:
                found = self.normalise(text)
            except Exception as error:
                raise OutcomeError(
                    f"normalise must take any answer; it raised {type(error).__name__}: {error} "
                    f"for {shown(text)}. Return '' for no answer."
                ) from None
            if not isinstance(found, str):
                raise OutcomeError(
                    f"normalise must return text; got {shown(found)} for {shown(text)}. Return '' "
                    "for no answer."
                )
            return found or None
        if self.normalise == "exact":
            return text or None
        text = " ".join(text.split())
        return (text.casefold() if self.normalise == "casefold" else text) or None

    def apply_all(self, answers: Sequence[object]) -> list[str | None]:
        """Return the texts by which answers are compared; each distinct text is normalised once."""
        plain = {one for one in answers if type(one) is str}
        known = {one: self.apply(one) for one in plain}
        return [known[one] if type(one) is str else self.apply(one) for one in answers]

    def right_answers(self, value: object, where: str) -> set[str]:
        """Return the texts of the right answers that a reference holds: one, or several."""
        several = isinstance(value, list | tuple | set | frozenset | np.ndarray)
        among: Any = value if several else [value]
        found = {self.apply(one) for one in among}
        if None in found or not found:
            raise OutcomeError(
                f"every question must have a reference, its right answer; {where} has "
                f"{shown(value)}. Give it, or mark the trials right or wrong in place of "
                "references."
            )
        return {one for one in found if one is not None}

    def describe(self) -> str:
        """Return the rules as a note for the data card."""
        how = self.normalise if isinstance(self.normalise, str) else "a function given"
        return (
            f"answers: compared by {how!r}; unanswered trials: {self.unanswered}; conflicting "
            f"marks: {self.conflict}" + "; right answers are one" * self.merge_correct
        )


def _text(answer: object) -> str:
    """Return one text for 1, 1.0 and '1'."""
    if not is_category(answer):
        raise OutcomeError(
            f"answers must be text or numbers; got {shown(answer)} of type "
            f"{type(answer).__name__}. Give their text, or None where there is none."
        )
    if isinstance(answer, float | np.floating) and np.isfinite(answer) and answer == int(answer):
        return str(int(answer))
    try:
        return str(answer)
    except ValueError:
        raise OutcomeError("answers must be text or numbers short enough to print.") from None


def check_rules(rules: object) -> AnswerRules:
    """Return the rules, or the usual ones where there are none."""
    if rules is None:
        return AnswerRules()
    if not isinstance(rules, AnswerRules):
        raise OutcomeError(
            f"answer_rules must be an AnswerRules; got {shown(rules)}. For instance "
            "bayesatk.AnswerRules(normalise='casefold')."
        )
    return rules


@dataclass(frozen=True)
class Answers:
    """Distinct answers with their counts: one entry per (system, question, answer).

    Parameters
    ----------
    system, question : ndarray of int, shape (entries,)
        Positions among the systems and questions of the data.
    label : list of str
    count : ndarray of int, shape (entries,)
        Trials that gave the answer.
    correct : ndarray of bool, shape (entries,)
    unanswered : ndarray of int, shape (system, question)
    rules : AnswerRules
    """

    system: Ints
    question: Ints
    label: list[str]
    count: Ints
    correct: NDArray[np.bool_]
    unanswered: Ints
    rules: AnswerRules = field(default_factory=AnswerRules)

    def of(self, system: int) -> "list[Ballots]":
        """Return the answers of one system, question by question."""
        mine = np.flatnonzero(self.system == system)
        mine = mine[np.argsort(self.question[mine], kind="stable")]
        edges = np.searchsorted(
            self.question[mine], np.arange(self.unanswered.shape[1] + 1)
        ).tolist()
        nobody = self.rules.unanswered == "nobody" and self.unanswered[system].any()
        return [
            Ballots(
                self.count[mine[start:stop]],
                self.correct[mine[start:stop]],
                int(self.unanswered[system, question]) if nobody else None,
            )
            for question, (start, stop) in enumerate(pairwise(edges))
        ]

    def on_questions(self, kept: NDArray[np.bool_]) -> "Answers":
        """Return the answers to some of the questions."""
        some = self._among(kept[self.question])
        place = (np.cumsum(kept) - 1)[some.question]
        return replace(some, question=place, unanswered=self.unanswered[:, kept])

    def on_systems(self, kept: NDArray[np.bool_]) -> "Answers":
        """Return the answers of some of the systems."""
        some = self._among(kept[self.system])
        place = (np.cumsum(kept) - 1)[some.system]
        return replace(some, system=place, unanswered=self.unanswered[kept])

    def _among(self, entries: NDArray[np.bool_]) -> "Answers":
        names = ("system", "question", "count", "correct")
        own: dict[str, Any] = {name: getattr(self, name)[entries] for name in names}
        label = [one for one, keep in zip(self.label, entries, strict=True) if keep]
        return replace(self, label=label, **own)

    def card(self) -> str:
        """Return a line for the data card."""
        given = self.count > 0
        cell = self.system * self.unanswered.shape[1] + self.question
        distinct = np.bincount(cell[given], minlength=self.unanswered.size)
        total = np.bincount(cell, weights=self.count, minlength=self.unanswered.size)
        most = np.zeros(self.unanswered.size)
        np.maximum.at(most, cell, self.count)
        seen = total > 0
        agreement = float((most[seen] / total[seen]).mean()) if seen.any() else float("nan")
        spread = f"{distinct.min()}/{np.median(distinct):g}/{distinct.max()}"
        return (
            f"answers: {spread} distinct per question (min/median/max), mean agreement "
            f"{agreement:.3f}, {int(self.unanswered.sum())} trials unanswered"
        )


@dataclass(frozen=True)
class Ballots:
    """Answers to one question: their counts, which are right, and trials without any."""

    count: Ints
    correct: NDArray[np.bool_]
    nobody: int | None

    @property
    def tried(self) -> bool:
        """Whether any trial counts, with an answer or as an abstention."""
        return bool(self.count.sum() + (self.nobody or 0))


def possible(ballots: Ballots, prior: AnswerPrior) -> Ballots:
    """Return the answers given and those that the prior lets come.

    Examples
    --------
    >>> one = Ballots(np.array([2]), np.array([False]), None)
    >>> possible(one, AnswerPrior()).correct.tolist()
    [False, False, True]
    >>> possible(one, AnswerPrior(choices=4)).correct.tolist()
    [False, False, False, True]
    """
    lacking = prior.unseen_correct and not ballots.correct.any()
    wrong = prior.unseen
    if prior.choices is not None:
        given = len(ballots.count)
        wrong = prior.choices - given - lacking
        if wrong < 0:
            raise OutcomeError(
                f"answer_prior: choices must be at least the answers of every question; got "
                f"{prior.choices}, and a question with {given} distinct answers"
                f"{', none of them right' if lacking else ''}. Compare answers otherwise "
                "(AnswerRules(normalise=)), or leave out choices."
            )
    more = np.array([False] * wrong + [True] * lacking, bool)
    return Ballots(
        np.concatenate([ballots.count, np.zeros(len(more), np.int64)]),
        np.concatenate([ballots.correct, more]),
        ballots.nobody,
    )


def group(
    cell: Ints,
    mark: Ints,
    answer: Sequence[str | None],
    rules: AnswerRules,
    shape: tuple[int, int],
    questions: Sequence[Any],
) -> tuple[Answers, tuple[str, ...]]:
    """Count the distinct answers of each system and question.

    Parameters
    ----------
    cell, mark : ndarray of int, shape (trials,)
        System times the number of questions plus question; right, wrong or unknown.
    answer : sequence of str or None
        Normalised.
    rules : AnswerRules
    shape : (int, int)
        Systems and questions.
    questions : sequence
        Labels, for messages.

    Returns
    -------
    answers : Answers
        Entries in the order in which they first appear.
    notes : tuple of str
    """
    codes = {text: code for code, text in enumerate(dict.fromkeys(answer)) if text is not None}
    texts = dict(zip(codes.values(), codes, strict=True))
    label = np.array([-1 if one is None else codes[one] for one in answer], np.int64)
    empty = label < 0
    if (empty & (mark == RIGHT)).any():
        row = int(np.argmax(empty & (mark == RIGHT)))
        raise OutcomeError(
            "a trial without an answer cannot be right; question "
            f"{shown(questions[cell[row] % shape[1]])} has one (row {row}). Give its answer, or "
            "mark it wrong."
        )
    silent = np.bincount(cell[empty & (mark != UNKNOWN)], minlength=shape[0] * shape[1])
    voted = ~empty & (mark != UNKNOWN)
    cell, label, width = cell[voted], label[voted], len(answer) + 1
    distinct, keys = pd.factorize(cell % shape[1] * width + label)
    correct, changed = _decide(distinct, mark[voted], rules, [
        (questions[key // width], texts[key % width]) for key in keys.tolist()
    ])  # fmt: skip
    if rules.merge_correct:
        label = np.where(correct, width - 1, label)
        texts[width - 1] = "right answers"
    entry, keys = pd.factorize((cell * width + label) * 2 + correct)
    at = keys // 2 // width
    answers = Answers(
        at // shape[1], at % shape[1], [texts[key] for key in (keys // 2 % width).tolist()],
        np.bincount(entry, minlength=len(keys)), keys % 2 == 1, silent.reshape(shape), rules,
    )  # fmt: skip
    told = f"{changed} marks overruled by the majority of equal answers (plurality only)"
    return answers, (rules.describe(), *[told][: changed > 0])


def _decide(
    distinct: Ints, mark: Ints, rules: AnswerRules, names: list[tuple[Any, str]]
) -> tuple[NDArray[np.bool_], int]:
    """Return one mark for all equal answers to a question, by trial, and how many it changes."""
    right = np.bincount(distinct, weights=mark, minlength=len(names))
    total = np.bincount(distinct, minlength=len(names))
    mixed = np.flatnonzero((right > 0) & (right < total))
    if len(mixed) and rules.conflict == "error":
        at = int(mixed[0])
        question, label = names[at]
        more = f" and {len(mixed) - 1} more" * (len(mixed) > 1)
        raise OutcomeError(
            f"equal answers to a question must have equal marks; {shown(label)} to question "
            f"{shown(question)} is marked right {int(right[at])} and wrong "
            f"{int(total[at] - right[at])} times{more}. Correct the marks, compare answers "
            "otherwise (normalise=), or let most marks decide: "
            "AnswerRules(conflict='majority')."
        )
    decided = 2.0 * right > total
    return decided[distinct], int(np.minimum(right, total - right).sum())
