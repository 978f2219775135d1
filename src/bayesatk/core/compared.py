"""Distributions tabulated twice: as well as they are known, and a little less well.

The difference is what the better one may be wrong by, at any quantile.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline

from bayesatk.core.credit import Array
from bayesatk.core.distribution import LEVELS, Distribution, tabulated

# (cdf, pdf, cdf a little less well known) at rising points
Evaluate = Callable[[Array], tuple[Array, Array, Array]]

ENDS = np.array([0.025, 0.975])  # levels of an interval by which distributions are judged
_FLOOR = 1e-7  # error of quantiles besides what the lesser table shows
_TABLE = 2e-8  # error of quantiles that the pieces between points may have
_UNSEEN = 1e-7  # probability that makes no difference
_GLANCE = 2  # rounds after which the ends of an interval tell if a table is any use
_ROUNDS, _CELLS = 20, 400  # of refinement, and cells refined in one


@dataclass(frozen=True)
class ComparedDistribution:
    """A tabulated distribution, and what a lesser computation has in its place.

    Parameters
    ----------
    known, coarser : Distribution
    method : str
    besides : float
        Error of quantiles that the difference of the two does not show, absolute.

    Examples
    --------
    >>> from bayesatk.core.distribution import constant
    >>> found = ComparedDistribution(constant(0.5), constant(0.5 + 1e-6), "by hand")
    >>> round(found.error, 12)
    1.1e-06
    """

    known: Distribution
    coarser: Distribution
    method: str
    besides: float = _FLOOR

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        return self.known.cdf(x)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return self.known.quantile(probability)

    @property
    def error(self) -> float:
        """Numerical error of quantiles, absolute."""
        return self.besides + self.off(LEVELS)

    def off(self, levels: Array) -> float:
        """Largest difference of quantiles at some levels from those of the lesser computation."""
        return float(np.abs(self.known.quantile(levels) - self.coarser.quantile(levels)).max())

    def floor(self, x: ArrayLike) -> float:
        """Error of quantiles near ``x`` that the lesser computation does not show."""
        return self.besides

    def sharpened(self, levels: ArrayLike) -> "ComparedDistribution":
        """Return the distribution as it is: all its quantiles are as exact as they get."""
        return self


def compared(
    evaluate: Evaluate,
    points: Array,
    ends: tuple[float, float],
    method: str,
    hopeless: float = np.inf,
) -> ComparedDistribution:
    """Tabulate a distribution, with more points where the pieces between them need it.

    Parameters
    ----------
    evaluate : callable
    points : ndarray
        To begin with.
    ends : (float, float)
        Of the scale; the distribution is cut there.
    method : str
    hopeless : float
        Error of the ends of a 95% interval with which the distribution is of no use: no more is
        done for it than to see that.

    Returns
    -------
    ComparedDistribution

    Examples
    --------
    >>> def square(x):
    ...     return x**2, 2.0 * x, x**2
    >>> found = compared(square, np.linspace(0.1, 0.9, 5), (0.0, 1.0), "by hand")
    >>> found.quantile([0.04, 0.49]).round(6).tolist()
    [0.2, 0.7]
    """
    x = np.unique(np.clip(points, *ends))
    table = np.stack(evaluate(x))
    doubt = np.full(len(x) - 1, np.inf)  # error of quantiles, by cells
    for done in range(_ROUNDS):
        cells = np.flatnonzero(doubt > _TABLE)
        if not 0 < len(cells) < _CELLS:
            break
        if done == _GLANCE and _from_table(x, table, ends, method, doubt).off(ENDS) > hopeless:
            break
        middle, width = 0.5 * (x[cells] + x[cells + 1]), np.diff(x)[cells]
        new = np.stack(evaluate(middle))
        gap = np.abs(CubicHermiteSpline(x, table[0], table[1])(middle) - new[0])
        gap[gap < _UNSEEN] = 0.0
        doubt[cells] = np.minimum(width, gap / np.maximum(new[1], _UNSEEN))
        doubt = np.insert(doubt, cells + 1, doubt[cells])
        x, table = np.insert(x, cells + 1, middle), np.insert(table, cells + 1, new, axis=1)
    return _from_table(x, table, ends, method, doubt)


def _from_table(
    x: Array, table: Array, ends: tuple[float, float], method: str, doubt: Array
) -> ComparedDistribution:
    known, coarser = (tabulated(x, table[row], table[1], ends) for row in (0, 2))
    return ComparedDistribution(known, coarser, method, max(_FLOOR, float(doubt.max())))
