"""Cochran's Q: whether some trial numbers have more successes, also for unequal trials.

If the trials of a question are exchangeable, all orders of its c successes among its n trials are
equally likely, so the successes of a column (the trials with the same number) have a known
expectation and covariance. Cochran (1950, Biometrika 37, 256-266) sums the squared deviations.
Where questions have unequal trials, every squared deviation is divided by its variance, and the sum
is compared with a scaled chi-squared distribution of the same mean and variance (Satterthwaite
1946). Small data sets have a permutation test.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from bayesatk._tools.arrays import Array, Flags, Ints

_MAX_COLUMNS = 200  # with more trial numbers, neighbours share a column
_MAX_TRIALS_PERMUTED = 500  # more trials have the chi-squared approximation
_PERMUTATIONS = 1999


@dataclass(frozen=True)
class ColumnTest:
    """Result of Cochran's test.

    Parameters
    ----------
    p_value : float
    spread : float
        Sd between columns of the success rate, without chance variation.
    columns : int
    """

    p_value: float
    spread: float
    columns: int


def cochran(question: Ints, column: Ints, success: Flags) -> ColumnTest:
    """Test whether all columns of trials have the same success rate.

    Parameters
    ----------
    question, column : ndarray of int, shape (trials,)
    success : ndarray of bool, shape (trials,)

    Examples
    --------
    Two questions whose second trial alone succeeds: of four equally likely orders this one and its
    mirror image are as extreme.

    >>> question, column = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> test = cochran(question, column, np.array([False, True, False, True]))
    >>> abs(test.p_value - 0.5) < 0.05
    True
    """
    total = np.bincount(question, minlength=int(question.max(initial=-1)) + 1)
    rate = np.bincount(question, success) / np.maximum(total, 1)
    mixed = ((rate > 0.0) & (rate < 1.0))[question]
    _, question, size = np.unique(question[mixed], return_inverse=True, return_counts=True)
    labels, column = np.unique(column, return_inverse=True)
    column_of_all = column
    if len(labels) > _MAX_COLUMNS:
        column_of_all = column * _MAX_COLUMNS // len(labels)
    column_size = np.bincount(column_of_all).astype(float)
    column, success = column_of_all[mixed], success[mixed]
    if not len(question) or len(column_size) < 2:
        return ColumnTest(1.0, 0.0, len(column_size))
    table = np.zeros((len(size), len(column_size)))
    np.add.at(table, (question, column), 1.0)
    rate = np.bincount(question, success) / size
    covariance = _covariance(table, rate, size.astype(float))
    variance = np.diagonal(covariance)
    varies = variance > 1e-12
    if varies.sum() < 2:
        return ColumnTest(1.0, 0.0, len(column_size))
    expected = rate @ table
    excess = np.bincount(column, success, len(column_size)) - expected
    observed = float((excess[varies] ** 2 / variance[varies]).sum())
    if len(question) <= _MAX_TRIALS_PERMUTED:
        drawn = _permuted(question, column, success, expected)
        values = (drawn[:, varies] ** 2 / variance[varies]).sum(axis=1)
        as_large = float((values >= observed * (1.0 - 1e-9)).sum())
        p_value = (1.0 + as_large) / (1.0 + len(values))
    else:
        scaled = covariance[np.ix_(varies, varies)]
        scaled = scaled / np.sqrt(np.outer(variance[varies], variance[varies]))
        first, second = np.trace(scaled), (scaled**2).sum()
        p_value = float(chi2.sf(observed * first / second, first**2 / second))
    excess_variance = (excess[varies] ** 2 - variance[varies]) / column_size[varies] ** 2
    return ColumnTest(p_value, float(np.sqrt(max(excess_variance.mean(), 0.0))), len(column_size))


def _covariance(table: Array, rate: Array, size: Array) -> Array:
    """Covariance of the successes of columns, over the orders of the trials of every question.

    Parameters
    ----------
    table : ndarray, shape (questions, columns)
        Numbers of trials.
    rate, size : ndarray, shape (questions,)
        Share of successes, and trials.
    """
    of_trial = rate * (1.0 - rate) * size / np.maximum(size - 1.0, 1.0)
    between = (table * (of_trial / size)[:, None]).T @ table
    return np.asarray(np.diag(of_trial @ table) - between)


def _permuted(question: Ints, column: Ints, success: Flags, expected: Array) -> Array:
    """Excesses of columns (permutations, columns), with the trials of every question permuted."""
    rng = np.random.default_rng(
        0
    )  # the p-value depends on the data only, not on the order of questions
    table = np.zeros((question.max() + 1, len(expected) + 1))
    np.add.at(table, (question, column), 1.0)
    table[:, -1] = np.bincount(question, success)
    question = np.argsort(np.lexsort(table.T))[question]
    column = column[np.lexsort((column, question))]
    order = np.lexsort((success, question))
    success, first = success[order].astype(float), question[order].astype(float)
    drawn = np.empty((_PERMUTATIONS, len(expected)))
    for row in drawn:
        permutation = np.argsort(first + rng.random(len(first)))
        row[:] = np.bincount(column, success[permutation], len(expected)) - expected
    return drawn
