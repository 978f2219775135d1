"""Distinct counts of questions, which are sufficient statistics of their trials."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk.metrics.credit import log_multinomial

Counts = Ints


@dataclass(frozen=True)
class States:
    """Distinct counts of trials by category, with the number of questions in each.

    Parameters
    ----------
    counts : ndarray of int, shape (states, categories)
        Observed trials. Right and wrong are two categories: wrong, then right.
    prior : ndarray, shape (states, categories)
        Discounted prior trials.
    count : ndarray, shape (states,)
        Number of questions in each state.
    which : ndarray of int, shape (questions,)
        State of every question.
    """

    counts: Counts
    prior: Array
    count: Array
    which: Indices

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike) -> "States":
        """Group questions by their successes and trials.

        Examples
        --------
        >>> states = States.of([1, 1, 0], [2, 2, 2])
        >>> states.successes.tolist(), states.count.tolist(), states.which.tolist()
        ([0, 1], [1.0, 2.0], [1, 1, 0])
        """
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        key = c + n * (int(n.max(initial=0)) + 1)
        _, first, state_of_question, count = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        counts = np.stack([n[first] - c[first], c[first]], axis=1)
        prior = np.zeros(counts.shape)
        return cls(counts, prior, count.astype(float), state_of_question.reshape(c.shape))

    @classmethod
    def of_counts(cls, counts: Counts, prior: Array | None = None) -> "States":
        """Group questions by their counts (questions, categories), observed and prior.

        Examples
        --------
        >>> states = States.of_counts(np.array([[1, 0, 2], [1, 0, 2], [3, 0, 0]]))
        >>> states.count.tolist(), states.which.tolist()
        ([2.0, 1.0], [0, 0, 1])
        """
        prior = np.zeros(counts.shape) if prior is None else prior
        keys = np.concatenate([counts, prior], axis=1)
        distinct, state_of_question, count = np.unique(
            keys, axis=0, return_inverse=True, return_counts=True
        )
        observed, prior_counts = np.split(distinct, 2, axis=1)
        return cls(
            observed.astype(np.int64), prior_counts, count.astype(float), state_of_question.ravel()
        )

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
        """Return the states with prior trials added to the trials, which may be fractions then."""
        counts: Any = self.evidence
        return replace(self, counts=counts, prior=np.zeros(self.prior.shape))

    @property
    def questions(self) -> float:
        """Number of questions."""
        return float(self.count.sum())

    @property
    def log_ways(self) -> Array:
        """Log number of orders in which the trials of each state can come."""
        return log_multinomial(self.counts)

    def __len__(self) -> int:
        return len(self.count)


class Terms(NamedTuple):
    """Distinct terms of a weighted mean over questions.

    Parameters
    ----------
    state : ndarray of int, shape (terms,)
    weight : ndarray, shape (terms,)
        In increasing order.
    questions : ndarray, shape (terms,)
        Number of questions with this state and weight.
    """

    state: Indices
    weight: Array
    questions: Array


def relative(weight: ArrayLike | None) -> Array | None:
    """Return weights scaled to a mean of one; None where all are equal.

    Examples
    --------
    >>> relative([1.0, 3.0]).tolist(), relative([0.1, 0.1, 0.1])
    ([0.5, 1.5], None)
    """
    if weight is None:
        return None
    values = np.asarray(weight, float)
    if (values == values[0]).all():
        return None
    scaled = values / values.max()  # so that the sum cannot overflow
    return np.asarray(scaled / scaled.mean())
