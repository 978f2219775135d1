"""Answers in trials, compared and counted by question, for votes between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Flags, Ints
from bayesatk._tools.messages import one_of
from bayesatk.data.validation import OutcomeError, is_category, is_missing, shown
from bayesatk.priors import AnswerHyperPrior, AnswerPrior

Normalise = Literal["exact", "strip", "casefold"] | Callable[[str], str]
RIGHT, UNKNOWN = 1, -1  # marks of answers; 0 is wrong


@dataclass(frozen=True)
class AnswerRules:
    """Rules for comparing answers, for conflicting marks and for trials without an answer.

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
    unanswered : {"abstain", "exclude"}
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
    unanswered: Literal["abstain", "exclude"] = "abstain"
    merge_correct: bool = False

    def __post_init__(self) -> None:
        if not callable(self.normalise):
            words = ("exact", "strip", "casefold")
            one_of("answer_rules: normalise, if no function,", self.normalise, words, OutcomeError)
        one_of("answer_rules: conflict", self.conflict, ("error", "majority"), OutcomeError)
        one_of("answer_rules: unanswered", self.unanswered, ("abstain", "exclude"), OutcomeError)
        if not isinstance(self.merge_correct, bool):
            raise OutcomeError(
                "answer_rules: merge_correct must be true or false; got "
                f"{shown(self.merge_correct)}."
            )

    def apply(self, answer: object) -> str | None:
        """Return the text by which an answer is compared; None for no answer."""
        if is_missing(answer):
            return None
        text = _answer_text(answer)
        if callable(self.normalise):
            return _normalised(self.normalise, text)
        if self.normalise != "exact":
            text = " ".join(text.split())
        return (text.casefold() if self.normalise == "casefold" else text) or None

    def apply_all(self, answers: Sequence[object]) -> list[str | None]:
        """Return the texts by which answers are compared, each distinct text normalised once."""
        texts = {answer for answer in answers if type(answer) is str}
        normalised = {text: self.apply(text) for text in texts}
        return [
            normalised[answer] if type(answer) is str else self.apply(answer) for answer in answers
        ]

    def right_answers(self, value: Any, where: str) -> set[str]:
        """Return the normalised right answers in a reference, which holds one or several."""
        several = isinstance(value, list | tuple | set | frozenset | np.ndarray)
        texts = {self.apply(answer) for answer in (value if several else [value])}
        right = {text for text in texts if text is not None}
        if len(right) < max(1, len(texts)):
            raise OutcomeError(
                f"every question must have a reference, its right answer; {where} has "
                f"{shown(value)}. Give it, or mark the trials right or wrong in place of "
                "references."
            )
        return right

    def describe(self) -> str:
        """Return the rules as a note for the data card."""
        how = self.normalise if isinstance(self.normalise, str) else "a function given"
        return (
            f"answers: compared by {how!r}; unanswered trials: {self.unanswered}; conflicting "
            f"marks: {self.conflict}" + "; right answers are one" * self.merge_correct
        )


def _normalised(normalise: Callable[[str], str], text: str) -> str | None:
    """Return the result of the function of the rules, None for "", or refuse other results."""
    try:
        answer = normalise(text)
    except Exception as error:
        raise OutcomeError(
            f"normalise must take any answer; it raised {type(error).__name__}: {error} for "
            f"{shown(text)}. Return '' for no answer."
        ) from None
    if not isinstance(answer, str):
        raise OutcomeError(
            f"normalise must return text; got {shown(answer)} for {shown(text)}. Return '' for no "
            "answer."
        )
    return answer or None


def _answer_text(answer: object) -> str:
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
    """Return the rules, or the default rules for None."""
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
    correct: Flags
    unanswered: Ints
    rules: AnswerRules = field(default_factory=AnswerRules)

    def of(self, system: int) -> "list[Ballots]":
        """Return the answers of one system, question by question."""
        entries = np.flatnonzero(self.system == system)
        entries = entries[np.argsort(self.question[entries], kind="stable")]
        silent = self.unanswered[system]
        edges = np.searchsorted(self.question[entries], np.arange(1, len(silent)))
        abstain = self.rules.unanswered == "abstain" and silent.any()
        return [
            Ballots(self.count[entry], self.correct[entry], number if abstain else None)
            for entry, number in zip(np.split(entries, edges), silent.tolist(), strict=True)
        ]

    def selected(self, systems: Flags, questions: Flags) -> "Answers":
        """Return the answers of some of the systems to some of the questions."""
        entries = systems[self.system] & questions[self.question]
        return Answers(
            (np.cumsum(systems) - 1)[self.system[entries]],
            (np.cumsum(questions) - 1)[self.question[entries]],
            list(compress(self.label, entries)),
            self.count[entries],
            self.correct[entries],
            self.unanswered[systems][:, questions],
            self.rules,
        )

    def card(self) -> str:
        """Return a line for the data card."""
        cell = self.system * self.unanswered.shape[1] + self.question
        counts = pd.Series(self.count)[self.count > 0].groupby(cell[self.count > 0])
        distinct = counts.size().reindex(range(self.unanswered.size), fill_value=0)
        spread = f"{distinct.min()}/{distinct.median():g}/{distinct.max()}"
        return (
            f"answers: {spread} distinct per question (min/median/max), mean agreement "
            f"{(counts.max() / counts.sum()).mean():.3f}, {int(self.unanswered.sum())} trials "
            "unanswered"
        )


@dataclass(frozen=True)
class Ballots:
    """Answers to one question of a system.

    Parameters
    ----------
    count : ndarray of int, shape (answers,)
        Trials with each answer.
    correct : ndarray of bool, shape (answers,)
    abstentions : int or None
        Trials without an answer that count as abstentions; None if they are left out.
    """

    count: Ints
    correct: Flags
    abstentions: int | None

    @property
    def by_mark(self) -> tuple[int, int]:
        """Numbers of trials that are not right, with abstentions, and of right trials."""
        right = int(self.count[self.correct].sum())
        return int(self.count.sum()) + (self.abstentions or 0) - right, right

    @property
    def key(self) -> tuple[object, ...]:
        """What equal ballots have in common, whatever the order of their answers."""
        order = np.lexsort((self.count, self.correct))
        return self.count[order].tobytes(), self.correct[order].tobytes(), self.abstentions

    @property
    def tried(self) -> bool:
        """Whether the question has a trial with an answer, or an abstention."""
        return bool(self.count.sum() + (self.abstentions or 0))


def possible(ballots: Ballots, prior: AnswerPrior) -> Ballots:
    """Return the answers given together with the unseen answers of the prior, which have count 0.

    Examples
    --------
    >>> ballots = Ballots(np.array([2]), np.array([False]), None)
    >>> possible(ballots, AnswerPrior()).correct.tolist()
    [False, False, True]
    >>> possible(ballots, AnswerPrior(choices=4)).correct.tolist()
    [False, False, False, True]
    """
    lacks_correct = prior.unseen_correct and not ballots.correct.any()
    n_unseen_wrong = prior.unseen
    if prior.choices is not None:
        n_answers = len(ballots.count)
        n_unseen_wrong = prior.choices - n_answers - lacks_correct
        if n_unseen_wrong < 0:
            raise OutcomeError(
                f"answer_prior: choices must be at least the answers of every question; got "
                f"{prior.choices}, and a question with {n_answers} distinct answers"
                f"{', none of them right' if lacks_correct else ''}. Compare answers otherwise "
                "(bayesatk.AnswerRules(normalise=...)), or leave out choices."
            )
    unseen_correct = np.array([False] * n_unseen_wrong + [True] * lacks_correct, bool)
    return Ballots(
        np.concatenate([ballots.count, np.zeros(len(unseen_correct), np.int64)]),
        np.concatenate([ballots.correct, unseen_correct]),
        ballots.abstentions,
    )


def wrong_answers(ballots: Sequence[Ballots], prior: AnswerHyperPrior) -> Ints:
    """Return the counts of wrong answers by question; (questions, W + 1).

    W is the number of possible wrong answers. Columns are in descending order of the count; the
    last column has the trials without an answer.

    Examples
    --------
    >>> question = Ballots(np.array([3, 1, 2]), np.array([True, False, False]), 4)
    >>> wrong_answers([question], AnswerHyperPrior(choices=4)).tolist()
    [[2, 1, 0, 4]]
    """
    wrong_counts = [
        np.sort(question.count[~question.correct & (question.count > 0)])[::-1]
        for question in ballots
    ]
    size = prior.wrong_answers(max(len(counts) for counts in wrong_counts))
    table = np.zeros((len(ballots), size + 1), np.int64)
    for row, counts, question in zip(table, wrong_counts, ballots, strict=True):
        row[: len(counts)] = counts
        row[-1] = question.abstentions or 0
    return table


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
        System times the number of questions plus question; the marks right, wrong or unknown.
    answer : sequence of str or None
        Normalised answers.
    rules : AnswerRules
    shape : (int, int)
        Numbers of systems and questions.
    questions : sequence
        Labels, for messages.

    Returns
    -------
    answers : Answers
        Entries in order of first appearance.
    notes : tuple of str
    """
    trials = pd.DataFrame({"cell": cell, "question": cell % shape[1], "mark": mark})
    texts = list(dict.fromkeys(text for text in answer if text is not None))
    codes: dict[str | None, int] = {text: code for code, text in enumerate(texts)}
    trials["answer"] = [codes.get(text, -1) for text in answer]
    no_answer = trials["answer"] < 0
    right_without_answer = np.flatnonzero(no_answer & (mark == RIGHT))
    if len(right_without_answer):
        row = int(right_without_answer[0])
        raise OutcomeError(
            "a trial without an answer cannot be right; question "
            f"{shown(questions[cell[row] % shape[1]])} has one (row {row}). Give its answer, or "
            "mark it wrong."
        )
    unanswered = np.bincount(cell[no_answer & (mark != UNKNOWN)], minlength=shape[0] * shape[1])
    votes = trials[~no_answer & (mark != UNKNOWN)]
    correct = _majority_marks(votes, texts, rules, questions)
    overruled = int((correct != (votes["mark"] == RIGHT)).sum())
    if rules.merge_correct:
        votes = votes.assign(answer=votes["answer"].where(~correct, len(texts)))
        texts.append("right answers")
    keys = ["cell", "answer", "correct"]
    counts = votes.assign(correct=correct).groupby(keys, sort=False).size()
    counts = counts.reset_index(name="count")
    cell_of_entry = counts["cell"].to_numpy(np.int64)
    answers = Answers(
        cell_of_entry // shape[1],
        cell_of_entry % shape[1],
        [texts[code] for code in counts["answer"]],
        counts["count"].to_numpy(np.int64),
        counts["correct"].to_numpy(bool),
        unanswered.reshape(shape),
        rules,
    )
    overruled_note = (
        f"{overruled} marks overruled by the majority of equal answers (plurality only)"
    )
    return answers, (rules.describe(), *[overruled_note] * bool(overruled))


def _majority_marks(
    votes: pd.DataFrame, texts: Sequence[str], rules: AnswerRules, questions: Sequence[Any]
) -> "pd.Series[bool]":
    """Return the mark of every vote, which is the same for equal answers to a question."""
    marks = votes.groupby(["question", "answer"], sort=False)["mark"]
    right, total = marks.transform("sum"), marks.transform("size")
    mixed = votes[(right > 0) & (right < total)]
    if len(mixed) and rules.conflict == "error":
        first, n_conflicts = mixed.iloc[0], len(mixed.drop_duplicates(["question", "answer"]))
        text = shown(texts[first["answer"]])
        n_right, n_trials = int(right[mixed.index[0]]), int(total[mixed.index[0]])
        raise OutcomeError(
            f"equal answers to a question must have equal marks; {text} to "
            f"question {shown(questions[first['question']])} is marked right {n_right} and wrong "
            f"{n_trials - n_right} times{f' and {n_conflicts - 1} more' * (n_conflicts > 1)}. "
            "Correct the marks, compare answers otherwise (bayesatk.AnswerRules(normalise=...)), "
            "or let most marks decide: bayesatk.AnswerRules(conflict='majority')."
        )
    return 2 * right > total
