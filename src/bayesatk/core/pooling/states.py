"""Distinct counts of questions: all that a posterior needs of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bayesatk._tools.arrays import Array, Flags, Indices, Ints

Counts = Ints


@dataclass(frozen=True)
class States:
    """Distinct counts of trials by category, with the number of questions in each.

    Parameters
    ----------
    counts : ndarray of int, shape (states, categories)
        Observed trials. Right and wrong are two categories: wrong, then right.
    prior : ndarray, shape (states, categories)
        Prior trials, discounted.
    count : ndarray, shape (states,)
        Questions in each.
    which : ndarray of int, shape (questions,)
        State of every question.
    weight : ndarray, shape (questions,), optional
        Weight of every question in a mean over them, with a mean of one (`relative`); none where
        all are alike. The probability of the counts has no weights.
    """

    counts: Counts
    prior: Array
    count: Array
    which: Indices
    weight: Array | None = None

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike, weight: Array | None = None) -> "States":
        """Group questions of right and wrong.

        Examples
        --------
        >>> states = States.of([1, 1, 0], [2, 2, 2])
        >>> states.successes.tolist(), states.count.tolist(), states.which.tolist()
        ([0, 1], [1.0, 2.0], [1, 1, 0])
        """
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        key = c + n * (int(n.max(initial=0)) + 1)
        _, first, which, count = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        counts = np.stack([n[first] - c[first], c[first]], axis=1)
        prior = np.zeros(counts.shape)
        return cls(counts, prior, count.astype(float), which.reshape(c.shape), relative(weight))

    @classmethod
    def of_counts(
        cls, counts: Counts, prior: Array | None = None, weight: Array | None = None
    ) -> "States":
        """Group questions by their counts (questions, categories), observed and prior.

        Examples
        --------
        >>> states = States.of_counts(np.array([[1, 0, 2], [1, 0, 2], [3, 0, 0]]))
        >>> states.count.tolist(), states.which.tolist()
        ([2.0, 1.0], [0, 0, 1])
        """
        prior = np.zeros(counts.shape) if prior is None else prior
        keys = np.concatenate([counts, prior], axis=1)
        distinct, which, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        own, before = np.split(distinct, 2, axis=1)
        return cls(
            own.astype(np.int64), before, count.astype(float), which.ravel(), relative(weight)
        )

    def among(self, keep: Flags, count: Array) -> "States":
        """Return some of the states, with other numbers of questions in all, all weighed alike."""
        question = np.repeat(np.arange(keep.sum()), count[keep].astype(int))
        return States(self.counts[keep], self.prior[keep], count[keep], question)

    @cached_property
    def successes(self) -> Counts:
        """Right trials: those of the last category."""
        return np.ascontiguousarray(self.counts[:, -1])

    @cached_property
    def trials(self) -> Counts:
        """Observed trials."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def evidence(self) -> Array:
        """Observed and prior trials together, by category."""
        return np.asarray(self.counts + self.prior)

    def merged(self) -> "States":
        """Return the states with prior trials as trials, also fractions of them."""
        counts: Any = self.evidence
        return replace(self, counts=counts, prior=np.zeros(self.prior.shape))

    @property
    def questions(self) -> float:
        """Number of questions."""
        return float(self.count.sum())

    @property
    def share(self) -> Array:
        """Share of each state in a mean over the questions."""
        return np.asarray(self.sums[1] / self.questions)

    @cached_property
    def sums(self) -> Array:
        """Sums over the questions of each state of powers 0 to 4 of their weights; (5, states)."""
        if self.weight is None:
            return np.broadcast_to(self.count, (5, len(self)))
        powers = [np.bincount(self.which, self.weight**j, len(self)) for j in range(5)]
        return np.stack(powers)

    @cached_property
    def terms(self) -> "Terms":
        """Distinct pairs of a state and a weight.

        Examples
        --------
        >>> states = States.of([2, 2, 1, 1], [3, 3, 3, 3], np.array([2.0, 1.0, 4.0, 1.0]))
        >>> states.terms.state.tolist(), states.terms.weight.tolist()
        ([0, 1, 1, 0], [0.5, 0.5, 1.0, 2.0])
        """
        if self.weight is None:
            return Terms(np.arange(len(self)), np.ones(len(self)), self.count)
        order = np.lexsort((self.which, self.weight))
        weight, state = self.weight[order], self.which[order]
        heavier = np.diff(weight, prepend=-1.0) > 0.0
        first = np.flatnonzero(heavier | (np.diff(state, prepend=-1) > 0))
        count = np.diff(first, append=len(order)).astype(float)
        return Terms(state[first], weight[first], count)

    @cached_property
    def tried(self) -> Flags:
        """States with trials, observed or prior; all of them where no question has any."""
        any_trial = self.evidence.sum(axis=1) > 0.0
        return any_trial | ~any_trial.any()

    @cached_property
    def observed(self) -> "Terms":
        """Terms of the questions that were tried: the others are no sample of a population."""
        state, weight, count = self.terms
        tried = self.tried[state]
        return Terms(state[tried], weight[tried], count[tried])

    @property
    def log_ways(self) -> Array:
        """Log number of orders in which the trials of each state can come."""
        return np.asarray(gammaln(self.trials + 1.0) - gammaln(self.counts + 1.0).sum(axis=1))

    def __len__(self) -> int:
        return len(self.count)


class Terms(NamedTuple):
    """What a weighted mean over questions is the sum of.

    Parameters
    ----------
    state : ndarray of int, shape (terms,)
    weight : ndarray, shape (terms,)
        In rising order.
    questions : ndarray, shape (terms,)
        How many questions have both.
    """

    state: Indices
    weight: Array
    questions: Array


def relative(weight: ArrayLike | None) -> Array | None:
    """Return weights with a mean of one; None where all are the same.

    Examples
    --------
    >>> relative([1.0, 3.0]).tolist(), relative([0.1, 0.1, 0.1])
    ([0.5, 1.5], None)
    """
    if weight is None:
        return None
    own = np.asarray(weight, float)
    if (own == own[0]).all():
        return None
    scaled = own / own.max()  # a sum of the largest numbers is none
    return np.asarray(scaled / scaled.mean())
