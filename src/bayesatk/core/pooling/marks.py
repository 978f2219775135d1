"""Marks of a judge that errs: their likelihood given the difficulty and the judge's rates.

A right trial is marked right with probability s (sensitivity) and a wrong one with probability f
(false positive rate). Of n trials of a question t are right, which nobody sees; c are marked right,
as Binomial(t, s) plus Binomial(n - t, f). So the trials of a question are a mixture over t of
ordinary counts, and everything known of those carries over: no integral over p is worked out anew.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array

_BLOCK = 4_000_000  # floats in one array: 32 MB
_AT_ONCE = 100_000  # complex numbers in one array: those of a few rates, which stay in the cache
_LEAST = 1e-300  # probability of a count, whose logarithm is a number


def mark_chances(rates: Array, trials: int, marked: ArrayLike) -> Array:
    """Probability of some numbers of marks, given each number of right trials.

    Parameters
    ----------
    rates : ndarray, shape (points, 2)
        Sensitivity and false positive rate.
    trials : int
    marked : array_like of int, shape (counts,)

    Returns
    -------
    ndarray, shape (trials + 1, points, counts)
        For 0, 1, ... right trials. Absolute error 1e-15: the generating function of the marks,
        ``(1 - s + s z)^t (1 - f + f z)^(n - t)``, at roots of unity, transformed back.

    Examples
    --------
    >>> mark_chances(np.array([[0.9, 0.2]]), 1, [0, 1])[:, 0].round(12).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    columns = np.ascontiguousarray(marked, np.intp)
    return _mark_chances(np.ascontiguousarray(rates).tobytes(), trials, columns.tobytes())


@lru_cache(maxsize=16)  # an analysis of one system asks again and again for the same
def _mark_chances(rates: bytes, trials: int, marked: bytes) -> Array:
    pairs, columns = np.frombuffer(rates).reshape(-1, 2), np.frombuffer(marked, np.intp)
    found = mark_chances_once(pairs, trials, columns)
    found.setflags(write=False)
    return found


def mark_chances_once(rates: Array, trials: int, marked: NDArray[np.intp]) -> Array:
    """Return `mark_chances` of rates that will not be asked for again."""
    roots = np.exp(2j * np.pi * np.arange(trials + 1) / (trials + 1))
    found = np.empty((trials + 1, len(rates), len(marked)))
    size = max(1, _AT_ONCE // (trials + 1) ** 2)
    for start in range(0, len(rates), size):
        block = slice(start, start + size)
        pairs = rates[block].T[:, :, None]
        powers = np.ones((2, pairs.shape[1], trials + 1, trials + 1), complex)
        powers[:, :, 1:] = (1.0 - pairs + pairs * roots)[:, :, None]
        of_right, of_wrong = np.cumprod(powers, axis=2)
        chances = np.fft.fft(of_right * of_wrong[:, ::-1], axis=2).real / (trials + 1)
        found[:, block] = np.maximum(chances, 0.0)[:, :, marked].swapaxes(0, 1)
    return found


def right_counts(states: States) -> States:
    """Return every number of right trials that questions like these can have."""
    sizes = np.unique(states.trials)
    pairs = np.concatenate([np.stack([np.arange(n + 1), np.full(n + 1, n)]) for n in sizes], axis=1)
    counts = np.stack([pairs[1] - pairs[0], pairs[0]], axis=1).astype(np.int64)
    size = len(counts)
    return States(counts, np.zeros(counts.shape), np.ones(size), np.arange(size))


def right_given_marked(nodes: Nodes, states: States, right: States) -> Array:
    """Probability of numbers of right trials, given what was marked.

    Parameters
    ----------
    nodes : Nodes
        With the rates of the judge at each.
    states : States
        Marks.
    right : States
        From `right_counts`.

    Returns
    -------
    ndarray, shape (nodes, states, right)
        Each row sums to one.
    """
    assert nodes.rates is not None
    rates, which = np.unique(nodes.rates, axis=0, return_inverse=True)
    found = np.zeros((len(nodes), len(states), len(right)))
    for trials in np.unique(states.trials):
        own, all_ = states.trials == trials, right.trials == trials
        prior = count_chances(nodes, int(trials))
        chances = mark_chances(rates, int(trials), states.successes[own])[:, which.ravel()]
        joint = prior[:, None, :] * chances.transpose(1, 2, 0) + _LEAST
        joint /= joint.sum(axis=2, keepdims=True)
        found[np.ix_(np.arange(len(nodes)), own, all_)] = joint
    return found


def count_chances(nodes: Nodes, trials: int) -> Array:
    """Probability of 0, 1, ... right trials of a new question at each node."""
    right = np.arange(trials + 1)
    wrong = trials - right
    ways = gammaln(trials + 1.0) - gammaln(right + 1.0) - gammaln(wrong + 1.0)
    return np.exp(nodes.log_likelihood(right, wrong) + ways)


def log_marked(nodes: Nodes, states: States) -> Array:
    """Log probability of a new question's marks, in any order, at nodes with rates of the judge.

    Returns
    -------
    ndarray, shape (nodes, states)

    Examples
    --------
    >>> from dataclasses import replace
    >>> nodes = replace(Nodes.single(1.0, 1.0), rates=np.array([[0.9, 0.1]]))
    >>> np.exp(log_marked(nodes, States.of([0, 1], [1, 1]))).round(12).tolist()
    [[0.5, 0.5]]
    """
    assert nodes.rates is not None
    found = np.empty((len(nodes), len(states)))
    sizes = [int(n) for n in np.unique(states.trials)]
    step = max(1, _BLOCK // ((max(sizes) + 1) * len(states)))
    for start in range(0, len(nodes), step):
        some = nodes.among(np.arange(len(nodes))[start : start + step])
        rates, which = np.unique(np.asarray(some.rates), axis=0, return_inverse=True)
        for trials in sizes:
            own = states.trials == trials
            chances = mark_chances(rates, trials, states.successes[own])[:, which.ravel()]
            joint = np.einsum("gt,tgs->gs", count_chances(some, trials), chances)
            found[start : start + step, own] = np.log(np.maximum(joint, _LEAST))
    return found
