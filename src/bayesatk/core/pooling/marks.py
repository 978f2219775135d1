"""Marks of judges that err: their likelihood given the difficulty and the judges' rates.

A right trial is marked right with probability s (sensitivity) and a wrong one with probability f
(false positive rate). Of n trials of a question t are right, which nobody sees; c are marked right,
as Binomial(t, s) plus Binomial(n - t, f). So the trials of a question are a mixture over t of
ordinary counts, and everything known of those carries over: no integral over p is worked out anew.

Where the truth of some trials is known, these are ordinary counts, too; what they were marked says
what the rates are. So a question has two or eight kinds of trials. Those of unknown truth are
marked wrong or marked right; where some are of known truth, wrong trials without a mark, marked
wrong and marked right follow, and right ones in the same order.

Rates are rows of sensitivity and false positive rate. A third column says that they differ between
questions: those of a question are Beta with these means and this intraclass correlation, so marks
of its right trials, and of its wrong ones, are beta-binomial, with its own labels as further trials
(Skellam 1948, Journal of the Royal Statistical Society B 10, 257-261).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.pooling.nodes import Nodes, log_rising_factorial_table
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import log_choose

_AT_ONCE = 100_000  # complex numbers in one array: those of a few rates, which stay in the cache
_LEAST = 1e-300  # probability of a count, whose logarithm is a number
_LISTED = 64  # trials of a question up to which all counts of right and wrong are one table
_LEAST_ICC = 1e-8  # of rates, from which they are the same for all questions


def by_mark[Number: np.generic](counts: NDArray[Number]) -> NDArray[Number]:
    """Return trials marked wrong and marked right, whatever is known of their truth; (..., 2).

    Examples
    --------
    >>> by_mark(np.array([[3, 1, 0, 1, 0, 1, 0, 2]])).tolist()
    [[4, 3]]
    """
    return np.stack([counts[..., mark::3].sum(axis=-1) for mark in (0, 1)], axis=-1)


def question_rates(rates: Array, questions: int, rng: Rng) -> tuple[Array, Array]:
    """Sensitivity and false positive rate of new questions in every draw; (draws, questions).

    The same for all where they do not differ: (draws, 1).
    """
    if rates.shape[1] == 2:
        return rates[:, :1], rates[:, 1:]
    drawn = []
    for column in (0, 1):
        unmarked, marked = (a[:, None] for a in _rate_shapes(rates[:, column], rates[:, 2]))
        drawn.append(rng.beta(marked, unmarked, (len(rates), questions)))
    s, f = drawn
    return s, f


def log_kinds(log_p: Array, log_q: Array, rates: Array, kinds: int) -> Array:
    """Log probability of a trial of each kind, given p and whether its truth is known.

    Parameters
    ----------
    log_p, log_q : ndarray, shape (...)
        Logs of p and 1 - p.
    rates : ndarray, shape (..., columns)
        Of the same shape or one that broadcasts.
    kinds : int
        Two, or eight where the truth of some trials is known.

    Returns
    -------
    ndarray, shape (..., kinds)

    Examples
    --------
    >>> logs = log_kinds(np.log([0.5]), np.log([0.5]), np.array([[0.9, 0.2]]), 8)
    >>> np.exp(logs[0]).round(3).tolist()
    [0.45, 0.55, 0.5, 0.4, 0.1, 0.5, 0.05, 0.45]
    """
    s, f = rates[..., 0], rates[..., 1]
    of_wrong, of_right = (1.0 - f, f), (1.0 - s, s)
    p, q = np.exp(log_p), np.exp(log_q)
    columns = [_log(right * p + wrong * q) for wrong, right in zip(of_wrong, of_right, strict=True)]
    if kinds > 2:
        for log_truth, marked in ((log_q, of_wrong), (log_p, of_right)):
            columns += [log_truth, *(log_truth + _log(chance) for chance in marked)]
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def _log(chance: Array) -> Array:
    return np.asarray(np.log(np.maximum(chance, _LEAST)))


@dataclass(frozen=True)
class Marks:
    """What is known of the trials of questions that a judge marked.

    Parameters
    ----------
    counts : ndarray of int, shape (states, kinds)
        Trials of each kind.
    """

    counts: Ints

    @cached_property
    def unknown(self) -> Ints:
        """Trials of which only the mark is known; (states,)."""
        return np.asarray(self.counts[:, :2].sum(axis=1))

    @cached_property
    def wrong(self) -> Ints:
        """Trials that are known to be wrong; (states,)."""
        return np.asarray(self.counts[:, 2:5].sum(axis=1))

    @cached_property
    def right(self) -> Ints:
        """Trials that are known to be right; (states,)."""
        return np.asarray(self.counts[:, 5:].sum(axis=1))

    @cached_property
    def log_orders(self) -> Array:
        """Log number of orders of unlabelled marks that `by_group` has added up; (states,)."""
        return np.asarray(log_choose(self.unknown, self.counts[:, 1]))

    @cached_property
    def alike(self) -> list[tuple[int, int, int, Indices]]:
        """Unknown, wrong and right trials, and the states that have as many of each."""
        keys = np.stack([self.unknown, self.wrong, self.right], axis=1)
        distinct, key_of_state = np.unique(keys, axis=0, return_inverse=True)
        return [
            (*row, np.flatnonzero(key_of_state.ravel() == number))
            for number, row in enumerate(distinct.tolist())
        ]

    def by_group(self, rates: Array, once: bool = False) -> Iterator[Array]:
        """Yield the probability of unlabelled marks, given each number of right ones of these.

        Of the states of each group of `alike`; shape (trials + 1, points, states).

        Parameters
        ----------
        rates : ndarray, shape (points, columns)
        once : bool
            Whether these rates will not be asked for again.
        """
        of_marks = mark_chances_once if once else mark_chances
        sizes = [list(groups) for _, groups in groupby(self.alike, key=itemgetter(0))]
        together = [np.concatenate([states for *_, states in groups]) for groups in sizes]
        if rates.shape[1] == 3:
            tables = iter(self._varying(rates, together))
        else:
            tables = (
                of_marks(rates, groups[0][0], self.counts[states, 1])
                for groups, states in zip(sizes, together, strict=True)
            )
        for groups, chances in zip(sizes, tables, strict=True):
            ends = np.cumsum([len(states) for *_, states in groups])[:-1]
            yield from np.split(chances, ends, axis=2)

    def right_chances(self, nodes: Nodes) -> Iterator[tuple[Array, Array]]:
        """Yield `count_chances` of each group of `alike`, from one table of all counts."""
        most = int((self.unknown + self.wrong + self.right).max(initial=0))
        if most > _LISTED:
            for unknown, wrong, right, _ in self.alike:
                yield count_chances(nodes, unknown, wrong, right)
            return
        right_of, wrong_of = np.indices((most + 1, most + 1)).reshape(2, -1)
        needed = right_of + wrong_of <= most
        logs = np.empty((len(nodes), (most + 1) ** 2))
        logs[:, needed] = nodes.log_likelihood(right_of[needed], wrong_of[needed])
        for unknown, wrong, right, _ in self.alike:
            number = np.arange(unknown + 1)
            index = (right + number) * (most + 1) + wrong + unknown - number
            yield _scaled(logs[:, index], unknown, bool(wrong + right))

    def _varying(self, rates: Array, states_by_size: list[Indices]) -> list[Array]:
        """Return those of states of as many unlabelled trials, where rates differ by question."""
        most = int(self.unknown.max(initial=0))
        (right_seen, right_of), (wrong_seen, wrong_of) = (
            np.unique(self.counts[:, kinds], axis=0, return_inverse=True)
            for kinds in ([6, 7], [3, 4])
        )
        tables = [
            np.empty((self.unknown[states[0]] + 1, len(rates), len(states)))
            for states in states_by_size
        ]
        step = max(1, _AT_ONCE // ((most + 1) ** 2 * (len(right_seen) + len(wrong_seen))))
        for start in range(0, len(rates), step):
            block = slice(start, start + step)
            of_right, of_wrong = (
                _beta_binomial(rates[block, column], rates[block, 2], seen, most)
                for column, seen in enumerate((right_seen, wrong_seen))
            )
            for states, chances in zip(states_by_size, tables, strict=True):
                # Of so many right trials, so many are marked, and the other marks are of wrong
                # ones; where there are not as many, their number has a probability of zero.
                right, marked_right = np.tril_indices(len(chances))
                wrong = len(chances) - 1 - right
                marked_wrong = self.counts[states, 1][:, None] - marked_right
                marked_wrong = np.where(marked_wrong < 0, wrong + 1, marked_wrong)
                joint = of_right[right_of.ravel()[states, None], right, marked_right]
                joint *= of_wrong[wrong_of.ravel()[states, None], wrong, marked_wrong]
                sums = np.add.reduceat(joint, np.flatnonzero(marked_right == 0), axis=1)
                chances[:, block] = np.moveaxis(sums, 0, 2)
        return tables

    def log_labels(self, rates: Array) -> Array:
        """Log probability of the marks of trials of known truth, at rates (points, 2 or 3).

        Shape (points, states).
        """
        labelled = self.counts[:, 2:]
        if not labelled.any():
            return np.zeros((len(rates), len(labelled)))
        if rates.shape[1] == 3:
            total = np.zeros((len(rates), len(labelled)))
            for column, kinds in enumerate(([4, 5], [1, 2])):
                alpha = _rate_shapes(rates[:, column], rates[:, 2])
                for kind, a in zip(kinds, alpha, strict=True):
                    total += log_rising_factorial_table(a, labelled[:, kind])
                total -= log_rising_factorial_table(
                    alpha[0] + alpha[1], labelled[:, kinds].sum(axis=1)
                )
            return total
        logs = log_kinds(np.zeros(1), np.zeros(1), rates, self.counts.shape[1])[:, 2:]
        return np.asarray(logs @ labelled.T)


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
    chances = mark_chances_once(pairs, trials, columns)
    chances.setflags(write=False)
    return chances


def mark_chances_once(rates: Array, trials: int, marked: Indices) -> Array:
    """Return `mark_chances` of rates that will not be asked for again."""
    roots = np.exp(2j * np.pi * np.arange(trials + 1) / (trials + 1))
    selected = np.empty((trials + 1, len(rates), len(marked)))
    size = max(1, _AT_ONCE // (trials + 1) ** 2)
    for start in range(0, len(rates), size):
        block = slice(start, start + size)
        pairs = rates[block].T[:, :, None]
        powers = np.ones((2, pairs.shape[1], trials + 1, trials + 1), complex)
        powers[:, :, 1:] = (1.0 - pairs + pairs * roots)[:, :, None]
        of_right, of_wrong = np.cumprod(powers, axis=2)
        chances = np.fft.fft(of_right * of_wrong[:, ::-1], axis=2).real / (trials + 1)
        selected[:, block] = np.maximum(chances, 0.0)[:, :, marked].swapaxes(0, 1)
    return selected


def _rate_shapes(rate: Array, icc: Array) -> tuple[Array, Array]:
    """Beta parameters, of no mark and of a mark, of a rate that differs between questions."""
    total = 1.0 / np.maximum(icc, _LEAST_ICC) - 1.0
    return np.maximum((1.0 - rate) * total, _LEAST), np.maximum(rate * total, _LEAST)


def _beta_binomial(rate: Array, icc: Array, seen: Ints, size: int) -> Array:
    """Probability of marks among trials of one truth, of questions with some marks of such trials.

    Parameters
    ----------
    rate, icc : ndarray, shape (points,)
    seen : ndarray of int, shape (distinct, 2)
        Labelled trials of this truth without and with the mark.
    size : int

    Returns
    -------
    ndarray, shape (distinct, size + 1, size + 1, points)
        Of so many trials, of which so many have the mark.
    """
    shapes = [a + n[:, None] for a, n in zip(_rate_shapes(rate, icc), seen.T, strict=True)]
    steps = np.arange(size)[:, None, None]
    scale = shapes[0] + shapes[1] + 0.5 * size  # of every factor, so that products are numbers
    without, with_mark, total = (
        np.concatenate([np.ones((1, *a.shape)), np.cumprod((a + steps) / scale, axis=0)])
        for a in (*shapes, shapes[0] + shapes[1])
    )
    trials, number = np.tril_indices(size + 1)
    ways = np.exp(log_choose(trials, number))[:, None, None]
    chances = np.zeros((size + 1, size + 1, len(seen), len(rate)))
    chances[trials, number] = ways * with_mark[number] * without[trials - number] / total[trials]
    return np.moveaxis(chances, 2, 0)


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
        Of kinds of trials.
    right : States
        From `right_counts`.

    Returns
    -------
    ndarray, shape (nodes, states, right)
        Each row sums to one.
    """
    assert nodes.rates is not None
    rates, rate_of_node = np.unique(nodes.rates, axis=0, return_inverse=True)
    probability, marks = np.zeros((len(nodes), len(states), len(right))), Marks(states.counts)
    tables = zip(marks.alike, marks.right_chances(nodes), marks.by_group(rates), strict=True)
    for (unknown, wrong_known, right_known, alike), (prior, _), chances in tables:
        total = unknown + wrong_known + right_known
        possible = (right.successes >= right_known) & (right.successes <= right_known + unknown)
        columns = np.flatnonzero((right.trials == total) & possible)
        of_marks = chances[:, rate_of_node.ravel()].transpose(1, 2, 0)
        conditional = prior[:, None, :] * of_marks + _LEAST
        conditional /= conditional.sum(axis=2, keepdims=True)
        probability[np.ix_(np.arange(len(nodes)), alike, columns)] = conditional
    return probability


def count_chances(nodes: Nodes, trials: int, wrong: int = 0, right: int = 0) -> tuple[Array, Array]:
    """Probability of 0, 1, ... right ones among some trials of a question, and of known ones.

    Parameters
    ----------
    nodes : Nodes
    trials : int
        Of unknown truth.
    wrong, right : int
        Further trials, of known truth.

    Returns
    -------
    chances : ndarray, shape (nodes, trials + 1)
        Joint with the known trials in their order, divided by the exponential of `log_scale`.
    log_scale : ndarray, shape (nodes,)
        Zero where no truth is known.
    """
    number = np.arange(trials + 1)
    logs = nodes.log_likelihood(number + right, trials - number + wrong)
    return _scaled(logs, trials, bool(wrong + right))


def _scaled(logs: Array, trials: int, known: bool) -> tuple[Array, Array]:
    """Return chances and log scale of `count_chances`, from logs of one order of the trials."""
    number = np.arange(trials + 1.0)
    logs = logs + (gammaln(trials + 1.0) - gammaln(number + 1.0) - gammaln(trials - number + 1.0))
    if not known:
        return np.exp(logs), np.zeros(len(logs))
    scale = logs.max(axis=1)
    return np.exp(logs - scale[:, None]), scale
