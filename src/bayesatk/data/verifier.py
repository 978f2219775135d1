"""Scores that a verifier gave to trials: read with their outcomes, kept as counts by score.

A verifier is whatever ranks the trials of a question without knowing which are right: a reward
model, a judge's grade, the mean log probability. Best of k needs the order of the trials of a
question and which are right, so one entry for each distinct score of a question is kept; votes
weighted by the scores need them by answer, so where there are answers one for each pair is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Ints
from bayesatk.core.question.best_of import MOST_BINS, comparable, middles, score_bins
from bayesatk.core.question.weighted_vote import units
from bayesatk.data.validation import CODE_MISSING, Codes, Labels, OutcomeError, number_of, shown

VERIFIER = "verifier"
NO_ANSWER = -1


@dataclass(frozen=True)
class VerifierScores:
    """Trials by the score of a verifier: one entry for each (system, question, score, answer).

    Parameters
    ----------
    system, question : ndarray of int, shape (entries,)
        Positions among those of the data; entries are in their order, then by ascending score.
    score : ndarray, shape (entries,)
    count : ndarray of int, shape (entries, categories)
        Trials by outcome.
    answer : ndarray of int, shape (entries,)
        Position among the answers of the system to the question; -1 where there is no vote.
    """

    system: Ints
    question: Ints
    score: Array
    count: Ints
    answer: Ints

    def selected(self, systems: Flags, questions: Flags) -> "VerifierScores":
        """Return the entries of some of the systems on some of the questions."""
        entries = self._at(systems[self.system] & questions[self.question])
        system, question = (np.cumsum(flags) - 1 for flags in (systems, questions))
        return replace(entries, system=system[entries.system], question=question[entries.question])

    def of(self, system: int) -> "VerifierScores":
        """Return the entries of one system."""
        return self._at(self.system == system)

    def _at(self, entries: Flags) -> "VerifierScores":
        return VerifierScores(*(values[entries] for values in vars(self).values()))

    def of_marks(self) -> "VerifierScores":
        """Return one entry for each (system, question, score), whatever the answer."""
        new = _differ(self.system, self.question, self.score)
        count = np.zeros((int(new.sum()), self.count.shape[1]), np.int64)
        np.add.at(count, np.cumsum(new) - 1, self.count)
        return replace(self._at(new), count=count, answer=np.full(len(count), NO_ANSWER))

    def merged(self, parts: Sequence[Flags]) -> "VerifierScores":
        """Return the entries with fewer categories, each the sum of those of a part."""
        count = np.stack([self.count[:, categories].sum(axis=1) for categories in parts], axis=1)
        return replace(self, count=count)

    def in_bins(self, questions: int) -> "ScoreBins":
        """Put the trials of one system in bins of their scores.

        What shifts all scores of a question is no matter of choosing within it: see `comparable`.
        """
        moved = comparable(self.score, self.question, self.count)
        return ScoreBins.of(self.question, self.count, moved, questions)

    def votes_in_bins(self, correct: Sequence[Flags]) -> "ScoreBins":
        """Put the trials of one system that voted in bins of the weights of their votes.

        A factor that all scores of a question share decides no vote: of many positive scores it is
        estimated and taken away first.

        Parameters
        ----------
        correct : sequence of ndarray of bool
            Which answers to every question are right.
        """
        votes = self._at(self.answer != NO_ANSWER)
        number = votes.count.sum(axis=1)
        right = [correct[q][a] for q, a in zip(votes.question, votes.answer, strict=True)]
        counts = np.stack([np.where(right, 0, number), np.where(right, number, 0)], axis=1)
        if len(np.unique(votes.score)) > MOST_BINS and (votes.score > 0.0).all():
            moved = comparable(np.log(votes.score), votes.question, counts)
            weight = np.exp(moved - moved.max(initial=0.0))
        else:
            weight = units(votes.score, int(number.sum()))
        return ScoreBins.of(votes.question, counts, weight, len(correct))

    def card(self) -> str:
        """Return a line for the data card."""
        trials = self.of_marks().count.sum(axis=1)
        tied = int(trials[trials > 1].sum())
        return (
            f"verifier scores: {len(np.unique(self.score))} distinct, from {self.score.min():.4g} "
            f"to {self.score.max():.4g}; {tied} of {trials.sum()} trials share theirs with another "
            "of their question"
        )


@dataclass(frozen=True)
class ScoreBins:
    """Trials of one system by bins of a score, in ascending order.

    Parameters
    ----------
    counts : ndarray of int, shape (2, questions, bins)
        Of wrong and of right trials.
    score : ndarray, shape (trials,)
        By bin.
    first : ndarray of int, shape (bins + 1,)
        Where the trials of a bin begin.
    """

    counts: Ints
    score: Array
    first: Indices

    @classmethod
    def of(cls, question: Ints, count: Ints, score: Array, questions: int) -> "ScoreBins":
        """Count entries of questions by bin; of each there are counts of wrong and right trials."""
        number = count.sum(axis=1)
        entry = score_bins(score, number)
        counts = np.zeros((2, questions, int(entry.max(initial=0)) + 1), np.int64)
        for kind in range(2):
            np.add.at(counts[kind], (question, entry), count[:, kind])
        order = np.argsort(entry, kind="stable")
        first = np.append(0, counts.sum(axis=(0, 1)).cumsum())
        return cls(counts, np.repeat(score[order], number[order]), first)

    @property
    def position(self) -> Array:
        """Normal scores of the middles of the bins among all trials."""
        return middles(self.counts.sum(axis=(0, 1)))


def read_verifier(values: Labels, codes: Codes, place: Callable[[int], str], name: object) -> Array:
    """Return scores as numbers, NaN only beside missing outcomes; or refuse those that are none.

    Parameters
    ----------
    values : sequence
        By trial.
    codes : ndarray of int, shape (trials,)
        Of their outcomes.
    place : callable
        Return where a trial is, for a message.
    name : object
        Of the column or argument.

    Examples
    --------
    >>> read_verifier([0.5, "2", None], np.array([1, 0, -1]), str, "reward").tolist()
    [0.5, 2.0, nan]
    """
    numbers = [number_of(value) for value in values]
    score = np.array([np.inf if number is None else number for number in numbers], float)
    for faulty, rule, remedy in (
        (
            np.isinf(score), "be finite numbers",
            "Write a score that has no limit as a large number, such as 1e9 or -1e9.",
        ),
        (
            np.isnan(score) & (codes != CODE_MISSING), "be there for every trial with an outcome",
            "Fill them in, or remove these rows; a trial that its verifier rejects without a score "
            "may have one below all others, such as -1e9.",
        ),
    ):  # fmt: skip
        rows = np.flatnonzero(faulty)
        if len(rows):
            first = " and ".join(f"{shown(values[row])} at {place(row)}" for row in rows[:2])
            raise OutcomeError(
                f"scores of a verifier in {shown(name)} must {rule}; {len(rows)} of {len(score)} "
                f"are not: {first}. {remedy}"
            )
    return score


def counted_scores(
    cell: Ints, code: Codes, score: Array, shape: tuple[int, ...], answer: Ints | None = None
) -> VerifierScores:
    """Count trials that have an outcome by system, question, score, answer and category.

    Parameters
    ----------
    cell, code : ndarray of int, shape (trials,)
    score : ndarray, shape (trials,)
    shape : tuple of int
        Systems, questions, and slots of outcomes, of which the first is of missing ones.
    answer : ndarray of int, shape (trials,), optional
        Position among those of the system to the question, where there are answers.
    """
    answer = np.full(len(cell), NO_ANSWER) if answer is None else answer
    order = np.lexsort((answer, score, cell))
    order = order[code[order] != CODE_MISSING]
    cell, slot, score, answer = cell[order], code[order], score[order], answer[order]
    new = _differ(cell, score, answer)
    counts = np.zeros((int(new.sum()), shape[2] - 1), np.int64)
    np.add.at(counts, (np.cumsum(new) - 1, slot), 1)
    system, question = np.divmod(cell[new], shape[1])
    return VerifierScores(system, question, score[new], counts, answer[new])


def _differ(*keys: Ints | Array) -> Flags:
    """Return which entries differ from the one before in some key; the first does."""
    new = np.zeros(len(keys[0]), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new
