"""Marks of judges that err: their likelihood given the difficulty and the judges' rates.

A right trial is marked right with probability s (sensitivity) and a wrong one with probability f
(false positive rate). Of n trials of a question t are right, which nobody sees; c are marked right,
as Binomial(t, s) plus Binomial(n - t, f). So the trials of a question are a mixture over t of
ordinary counts, and their formulas carry over: no further integral over p is needed.

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

from bayesatk._tools.arrays import PROBABILITY_FLOOR, Array, Indices, Ints, Rng
from bayesatk.core.pooling.nodes import Nodes, log_rising_factorial_table
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import log_choose

_MAX_FLOATS_PER_BLOCK = 100_000  # or complex numbers, few enough to stay in the cache
_TABLE_TRIALS_MAX = 64  # of a question, up to which one table has all counts of right and wrong
_ICC_FLOOR = 1e-8  # intraclass correlation below which rates do not differ between questions


def by_mark[Number: np.generic](counts: NDArray[Number]) -> NDArray[Number]:
    """Count the trials marked wrong and marked right, labelled or not; (..., 2).

    Examples
    --------
    >>> by_mark(np.array([[3, 1, 0, 1, 0, 1, 0, 2]])).tolist()
    [[4, 3]]
    """
    return np.stack([counts[..., mark::3].sum(axis=-1) for mark in (0, 1)], axis=-1)


def mark_probability(p: Array, rates: Array, rng: Rng) -> Array:
    """Probability that a judge marks a trial of a new question as right; (draws, questions).

    Parameters
    ----------
    p : ndarray, shape (draws, questions)
        Success probabilities.
    rates : ndarray, shape (draws, columns)
        Sensitivity and false positive rate; where these differ between questions, those of each
        question are drawn.
    rng : numpy.random.Generator
    """
    s, f = rates[:, :1], rates[:, 1:2]
    if rates.shape[1] == 3:
        s, f = (
            rng.beta(marked[:, None], unmarked[:, None], p.shape)
            for unmarked, marked in (_rate_shapes(rate, rates[:, 2]) for rate in rates[:, :2].T)
        )
    return f + (s - f) * p


def log_kinds(log_p: Array, log_q: Array, rates: Array, kinds: int) -> Array:
    """Log probability of each kind of trial, given p.

    Parameters
    ----------
    log_p, log_q : ndarray, shape (...)
        Logs of p and 1 - p.
    rates : ndarray, shape (..., columns)
        Sensitivity and false positive rate; leading dimensions broadcast with those of `log_p`.
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
    mark_given_wrong, mark_given_right = (1.0 - f, f), (1.0 - s, s)
    p, q = np.exp(log_p), np.exp(log_q)
    log_kind_columns = [
        _log(right * p + wrong * q)
        for wrong, right in zip(mark_given_wrong, mark_given_right, strict=True)
    ]
    if kinds > 2:
        for log_truth, marked in ((log_q, mark_given_wrong), (log_p, mark_given_right)):
            log_kind_columns += [log_truth, *(log_truth + _log(chance) for chance in marked)]
    return np.stack(np.broadcast_arrays(*log_kind_columns), axis=-1)


def _log(chance: Array) -> Array:
    return np.asarray(np.log(np.maximum(chance, PROBABILITY_FLOOR)))


@dataclass(frozen=True)
class MarkCounts:
    """Counts of the trials that a judge marked, by mark and known truth.

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
        """Log number of orders of the unlabelled marks, all summed in `mark_tables`; (states,)."""
        return np.asarray(log_choose(self.unknown, self.counts[:, 1]))

    @cached_property
    def states_by_trial_counts(self) -> list[tuple[int, int, int, Indices]]:
        """Numbers of unknown, wrong and right trials, and the states that have them."""
        keys = np.stack([self.unknown, self.wrong, self.right], axis=1)
        distinct, key_of_state = np.unique(keys, axis=0, return_inverse=True)
        return [
            (*row, np.flatnonzero(key_of_state.ravel() == number))
            for number, row in enumerate(distinct.tolist())
        ]

    def mark_tables(self, rates: Array, once: bool = False) -> Iterator[Array]:
        """Yield probabilities of the unlabelled marks, given how many of these trials are right.

        One table for each group of `states_by_trial_counts`, of shape (trials + 1, points, states).

        Parameters
        ----------
        rates : ndarray, shape (points, columns)
        once : bool
            Whether these rates will not be asked for again.
        """
        table_of = mark_chances_once if once else mark_chances
        groups_by_size = [
            list(groups) for _, groups in groupby(self.states_by_trial_counts, key=itemgetter(0))
        ]
        states_by_size = [
            np.concatenate([states for *_, states in groups]) for groups in groups_by_size
        ]
        if rates.shape[1] == 3:
            tables = iter(self._varying_rate_tables(rates, states_by_size))
        else:
            tables = (
                table_of(rates, groups[0][0], self.counts[states, 1])
                for groups, states in zip(groups_by_size, states_by_size, strict=True)
            )
        for groups, chances in zip(groups_by_size, tables, strict=True):
            ends = np.cumsum([len(states) for *_, states in groups])[:-1]
            yield from np.split(chances, ends, axis=2)

    def right_chances(self, nodes: Nodes) -> Iterator[tuple[Array, Array]]:
        """Yield `count_chances` for each group of `states_by_trial_counts`, from one table."""
        max_trials = int((self.unknown + self.wrong + self.right).max(initial=0))
        if max_trials > _TABLE_TRIALS_MAX:
            for unknown, wrong, right, _ in self.states_by_trial_counts:
                yield count_chances(nodes, unknown, wrong, right)
            return
        right_count, wrong_count = np.indices((max_trials + 1, max_trials + 1)).reshape(2, -1)
        needed = right_count + wrong_count <= max_trials
        logs = np.empty((len(nodes), (max_trials + 1) ** 2))
        logs[:, needed] = nodes.log_likelihood(right_count[needed], wrong_count[needed])
        for unknown, wrong, right, _ in self.states_by_trial_counts:
            right_unknown = np.arange(unknown + 1)
            index = (right + right_unknown) * (max_trials + 1) + wrong + unknown - right_unknown
            yield _count_chances_of(logs[:, index], unknown, bool(wrong + right))

    def _varying_rate_tables(self, rates: Array, states_by_size: list[Indices]) -> list[Array]:
        """Return `mark_tables` by number of unlabelled trials, where rates differ by question."""
        max_unknown = int(self.unknown.max(initial=0))
        (right_labels, label_of_right), (wrong_labels, label_of_wrong) = (
            np.unique(self.counts[:, kinds], axis=0, return_inverse=True)
            for kinds in ([6, 7], [3, 4])
        )
        tables, columns = [], []
        for states in states_by_size:
            # All marks that right trials do not have are of wrong trials. An impossible number of
            # those is replaced by wrong + 1, whose probability is zero.
            unknown = int(self.unknown[states[0]])
            right, marked_right = np.tril_indices(unknown + 1)
            wrong = unknown - right
            marked_wrong = self.counts[states, 1][:, None] - marked_right
            marked_wrong = np.where(marked_wrong < 0, wrong + 1, marked_wrong)
            tables.append(np.empty((unknown + 1, len(rates), len(states))))
            columns.append(
                (
                    (label_of_right.ravel()[states, None], right, marked_right),
                    (label_of_wrong.ravel()[states, None], wrong, marked_wrong),
                    np.flatnonzero(marked_right == 0),
                )
            )
        step = max(
            1,
            _MAX_FLOATS_PER_BLOCK
            // ((max_unknown + 1) ** 2 * (len(right_labels) + len(wrong_labels))),
        )
        for start in range(0, len(rates), step):
            block = slice(start, start + step)
            chances_right, chances_wrong = (
                _beta_binomial(rates[block, column], rates[block, 2], labels, max_unknown)
                for column, labels in enumerate((right_labels, wrong_labels))
            )
            for chances, (of_right, of_wrong, first) in zip(tables, columns, strict=True):
                joint = chances_right[of_right]
                joint *= chances_wrong[of_wrong]
                chances[:, block] = np.moveaxis(np.add.reduceat(joint, first, axis=1), 0, 2)
        return tables

    def log_labels(self, rates: Array) -> Array:
        """Log probability of the marks of trials of known truth; (points, states).

        Rates have the shape (points, 2), or (points, 3) where they differ between questions.
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
    r"""Probability of each number of marks, given the number of right trials.

    With t of n trials right, it is a coefficient of the generating function

    .. math:: (1 - s + s z)^t (1 - f + f z)^{n - t},

    found by its values at the (n + 1)-th roots of unity and a discrete Fourier transform. The
    absolute error is about 1e-15.

    Parameters
    ----------
    rates : ndarray, shape (points, 2)
        Sensitivity and false positive rate.
    trials : int
    marked : array_like of int, shape (counts,)

    Returns
    -------
    ndarray, shape (trials + 1, points, counts)
        For 0, 1, ..., n right trials.

    Examples
    --------
    >>> mark_chances(np.array([[0.9, 0.2]]), 1, [0, 1])[:, 0].round(12).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    columns = np.ascontiguousarray(marked, np.intp)
    return _mark_chances(np.ascontiguousarray(rates).tobytes(), trials, columns.tobytes())


@lru_cache(maxsize=16)  # an analysis of one system repeats its calls
def _mark_chances(rates: bytes, trials: int, marked: bytes) -> Array:
    pairs, columns = np.frombuffer(rates).reshape(-1, 2), np.frombuffer(marked, np.intp)
    chances = mark_chances_once(pairs, trials, columns)
    chances.setflags(write=False)
    return chances


def mark_chances_once(rates: Array, trials: int, marked: Indices) -> Array:
    """Compute `mark_chances` without keeping the table for another call."""
    roots = np.exp(2j * np.pi * np.arange(trials + 1) / (trials + 1))
    selected = np.empty((trials + 1, len(rates), len(marked)))
    step = max(1, _MAX_FLOATS_PER_BLOCK // (trials + 1) ** 2)
    for start in range(0, len(rates), step):
        block = slice(start, start + step)
        pairs = rates[block].T[:, :, None]
        powers = np.ones((2, pairs.shape[1], trials + 1, trials + 1), complex)
        powers[:, :, 1:] = (1.0 - pairs + pairs * roots)[:, :, None]
        powers_right, powers_wrong = np.cumprod(powers, axis=2)
        chances = np.fft.fft(powers_right * powers_wrong[:, ::-1], axis=2).real / (trials + 1)
        selected[:, block] = np.maximum(chances, 0.0)[:, :, marked].swapaxes(0, 1)
    return selected


def _rate_shapes(rate: Array, icc: Array) -> tuple[Array, Array]:
    """Beta parameters, of no mark and of a mark, of a rate that varies between questions."""
    total = 1.0 / np.maximum(icc, _ICC_FLOOR) - 1.0
    unmarked, marked = (1.0 - rate) * total, rate * total
    return np.maximum(unmarked, PROBABILITY_FLOOR), np.maximum(marked, PROBABILITY_FLOOR)


def _beta_binomial(rate: Array, icc: Array, labels: Ints, trials_max: int) -> Array:
    r"""Probability of marks among trials of one truth, given labelled trials of that truth.

    With labels the question's rate is Beta(a, b), and h of n further trials are marked with

    .. math:: P(h \mid n) = \binom{n}{h} \frac{(a)_h (b)_{n - h}}{(a + b)_n},

    where $(a)_h$ are rising factorials (Skellam 1948).

    Parameters
    ----------
    rate, icc : ndarray, shape (points,)
    labels : ndarray of int, shape (distinct, 2)
        Labelled trials of this truth without and with the mark.
    trials_max : int

    Returns
    -------
    ndarray, shape (distinct, trials_max + 1, trials_max + 1, points)
        By n, then h.
    """
    shapes = [a + n[:, None] for a, n in zip(_rate_shapes(rate, icc), labels.T, strict=True)]
    steps = np.arange(trials_max)[:, None, None]
    scale = (
        shapes[0] + shapes[1] + 0.5 * trials_max
    )  # of every factor, so that products are numbers
    without, with_mark, total = (
        np.concatenate([np.ones((1, *a.shape)), np.cumprod((a + steps) / scale, axis=0)])
        for a in (*shapes, shapes[0] + shapes[1])
    )
    trials, marked = np.tril_indices(trials_max + 1)
    orders = np.exp(log_choose(trials, marked))[:, None, None]
    chances = np.zeros((trials_max + 1, trials_max + 1, len(labels), len(rate)))
    chances[trials, marked] = orders * with_mark[marked] * without[trials - marked] / total[trials]
    return np.moveaxis(chances, 2, 0)


def right_counts(states: States) -> States:
    """Return all pairs of right and wrong trials that questions of these sizes can have."""
    sizes = np.unique(states.trials)
    pairs = np.concatenate([np.stack([np.arange(n + 1), np.full(n + 1, n)]) for n in sizes], axis=1)
    counts = np.stack([pairs[1] - pairs[0], pairs[0]], axis=1).astype(np.int64)
    size = len(counts)
    return States(counts, np.zeros(counts.shape), np.ones(size), np.arange(size))


def right_given_marked(nodes: Nodes, states: States, right: States) -> Array:
    """Probability of each number of right trials, given the marks.

    Parameters
    ----------
    nodes : Nodes
        With the judge's rates at each node.
    states : States
        Counts by kind of trial.
    right : States
        From `right_counts`.

    Returns
    -------
    ndarray, shape (nodes, states, right)
        Each row sums to one.
    """
    assert nodes.rates is not None
    rates, rate_of_node = np.unique(nodes.rates, axis=0, return_inverse=True)
    probability, marks = np.zeros((len(nodes), len(states), len(right))), MarkCounts(states.counts)
    tables = zip(
        marks.states_by_trial_counts,
        marks.right_chances(nodes),
        marks.mark_tables(rates),
        strict=True,
    )
    for (unknown, wrong_known, right_known, rows), (prior, _), chances in tables:
        total = unknown + wrong_known + right_known
        possible = (right.successes >= right_known) & (right.successes <= right_known + unknown)
        columns = np.flatnonzero((right.trials == total) & possible)
        mark_likelihood = chances[:, rate_of_node.ravel()].transpose(1, 2, 0)
        conditional = prior[:, None, :] * mark_likelihood + PROBABILITY_FLOOR
        conditional /= conditional.sum(axis=2, keepdims=True)
        probability[np.ix_(np.arange(len(nodes)), rows, columns)] = conditional
    return probability


def count_chances(nodes: Nodes, trials: int, wrong: int = 0, right: int = 0) -> tuple[Array, Array]:
    """Probability of 0, 1, ..., n right trials among n of unknown truth, given each node.

    Parameters
    ----------
    nodes : Nodes
    trials : int
        The number n of trials of unknown truth.
    wrong, right : int
        Further trials, of known truth.

    Returns
    -------
    chances : ndarray, shape (nodes, trials + 1)
        Joint with the trials of known truth in their order, over the exponential of `log_scale`.
    log_scale : ndarray, shape (nodes,)
        Zero where no truth is known.
    """
    number = np.arange(trials + 1)
    logs = nodes.log_likelihood(number + right, trials - number + wrong)
    return _count_chances_of(logs, trials, bool(wrong + right))


def _count_chances_of(logs: Array, trials: int, known: bool) -> tuple[Array, Array]:
    """Return the result of `count_chances`, from log probabilities of one order of the trials."""
    number = np.arange(trials + 1.0)
    logs = logs + (gammaln(trials + 1.0) - gammaln(number + 1.0) - gammaln(trials - number + 1.0))
    if not known:
        return np.exp(logs), np.zeros(len(logs))
    scale = logs.max(axis=1)
    return np.exp(logs - scale[:, None]), scale
