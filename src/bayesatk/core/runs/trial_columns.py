"""Whether some trial numbers are better than others: Cochran's Q, also of unequal trials.

If the trials of a question are exchangeable, all orders of its c successes among its n trials are
equally likely. A column of trials with the same number then has as many successes as its questions
let expect, up to chance. Cochran (1950, Biometrika 37, 256-266) sums the squared excesses. Where
questions have unequal trials every excess is divided by its own variance, and the sum has the mean
and variance of a scaled chi-squared distribution (Satterthwaite 1946); few trials are permuted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from bayesatk._tools.arrays import Array, Flags, Ints

_MOST_COLUMNS = 200  # neighbouring trial numbers beyond that share a column
_PERMUTED = 500  # trials up to which the p-value is of permutations
_PERMUTATIONS = 1999


@dataclass(frozen=True)
class ColumnTest:
    """Result of Cochran's test.

    Parameters
    ----------
    p_value : float
    spread : float
        Sd between columns of the success rate, beyond chance.
    columns : int
    """

    p_value: float
    spread: float
    columns: int


def cochran(question: Ints, column: Ints, success: Flags) -> ColumnTest:
    """Test columns of trials.

    Parameters
    ----------
    question, column : ndarray of int, shape (trials,)
    success : ndarray of bool, shape (trials,)

    Examples
    --------
    Two questions, of which the second trial alone succeeds: one of four orders is as extreme, and
    one its mirror image.

    >>> question, column = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> found = cochran(question, column, np.array([False, True, False, True]))
    >>> abs(found.p_value - 0.5) < 0.05
    True
    """
    total = np.bincount(question, minlength=int(question.max(initial=-1)) + 1)
    rate = np.bincount(question, success) / np.maximum(total, 1)
    mixed = ((rate > 0.0) & (rate < 1.0))[question]
    _, question, size = np.unique(question[mixed], return_inverse=True, return_counts=True)
    labels, column = np.unique(column, return_inverse=True)
    of_all = column
    if len(labels) > _MOST_COLUMNS:
        of_all = column * _MOST_COLUMNS // len(labels)
    number = np.bincount(of_all).astype(float)
    column, success = of_all[mixed], success[mixed]
    if not len(question) or len(number) < 2:
        return ColumnTest(1.0, 0.0, len(number))
    table = np.zeros((len(size), len(number)))
    np.add.at(table, (question, column), 1.0)
    rate = np.bincount(question, success) / size
    covariance = _covariance(table, rate, size.astype(float))
    variance = np.diagonal(covariance)
    known = variance > 1e-12
    if known.sum() < 2:
        return ColumnTest(1.0, 0.0, len(number))
    expected = rate @ table
    excess = np.bincount(column, success, len(number)) - expected
    observed = float((excess[known] ** 2 / variance[known]).sum())
    if len(question) <= _PERMUTED:
        drawn = _permuted(question, column, success, expected)
        values = (drawn[:, known] ** 2 / variance[known]).sum(axis=1)
        as_large = float((values >= observed * (1.0 - 1e-9)).sum())
        p_value = (1.0 + as_large) / (1.0 + len(values))
    else:
        scaled = covariance[np.ix_(known, known)]
        scaled = scaled / np.sqrt(np.outer(variance[known], variance[known]))
        first, second = np.trace(scaled), (scaled**2).sum()
        p_value = float(chi2.sf(observed * first / second, first**2 / second))
    beyond = (excess[known] ** 2 - variance[known]) / number[known] ** 2
    return ColumnTest(p_value, float(np.sqrt(max(beyond.mean(), 0.0))), len(number))


def _covariance(table: Array, rate: Array, size: Array) -> Array:
    """Covariance of the successes of columns, over the orders of the trials of every question.

    Parameters
    ----------
    table : ndarray, shape (questions, columns)
        Trials.
    rate, size : ndarray, shape (questions,)
        Share of successes, and trials.
    """
    of_trial = rate * (1.0 - rate) * size / np.maximum(size - 1.0, 1.0)
    between = (table * (of_trial / size)[:, None]).T @ table
    return np.asarray(np.diag(of_trial @ table) - between)


def _permuted(question: Ints, column: Ints, success: Flags, expected: Array) -> Array:
    """Excesses of columns (permutations, columns), with the trials of every question permuted."""
    rng = np.random.default_rng(0)  # the same data have the same p-value, in any order of questions
    table = np.zeros((question.max() + 1, len(expected) + 1))
    np.add.at(table, (question, column), 1.0)
    table[:, -1] = np.bincount(question, success)
    question = np.argsort(np.lexsort(table.T))[question]
    column = column[np.lexsort((column, question))]
    order = np.lexsort((success, question))
    success, first = success[order].astype(float), question[order].astype(float)
    drawn = np.empty((_PERMUTATIONS, len(expected)))
    for row in drawn:
        places = np.argsort(first + rng.random(len(first)))
        row[:] = np.bincount(column, success[places], len(expected)) - expected
    return drawn
