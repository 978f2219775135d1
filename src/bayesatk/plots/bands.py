"""Bands: envelopes of curves that are known up to a posterior."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from bayesatk._tools.arguments import proper_probability
from bayesatk.core.pooling.difficulty import Difficulty

Array = NDArray[np.float64]


def simultaneous_band(draws: ArrayLike, probability: float) -> tuple[Array, Array]:
    """Band that holds a whole curve with this probability, from draws of it.

    Parameters
    ----------
    draws : array_like, shape (draws, points)
        Joint draws of one curve at every point.
    probability : float
        Share of the draws that lie inside at every point, at least; strictly between 0 and 1.

    Returns
    -------
    lower, upper : ndarray, shape (points,)
        Values of draws, so that the band never leaves the range of the quantity.

    Raises
    ------
    ValueError
        If `draws` is not a table with finite values, or `probability` is outside (0, 1).

    Notes
    -----
    Among ``S`` draws let ``l(s, k)`` be the number of draws at most, and ``u(s, k)`` the number at
    least, as large as draw ``s`` at point ``k``. Draw ``s`` lies everywhere between the c-th
    smallest and the c-th largest value exactly if ``m(s) = min_k min(l(s, k), u(s, k)) >= c``. The
    band takes the largest ``c`` for which that holds for a share `probability` of the draws: equal
    tails at every point, of one level for all points. Of one point it is the equal-tailed interval.

    References
    ----------
    Besag, Green, Higdon and Mengersen 1995, Statistical Science 10(1), 3-41, section 6.3.

    Examples
    --------
    Of five draws of two points, one is lowest at the first and highest at the second:

    >>> draws = [[0, 9], [1, 1], [2, 2], [3, 3], [4, 4]]
    >>> [end.tolist() for end in simultaneous_band(draws, 0.2)]
    [[1.0, 2.0], [3.0, 4.0]]
    >>> [end.tolist() for end in simultaneous_band(draws, 0.6)]
    [[0.0, 1.0], [4.0, 9.0]]
    """
    table = np.asarray(draws, float)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(
            "draws must be a table (draws, points) of finite numbers; got shape "
            f"{table.shape}. Stack chains and draws into the first axis."
        )
    proper_probability("probability", probability)
    size = len(table)
    at_most = rankdata(table, method="max", axis=0)
    at_least = size + 1 - rankdata(table, method="min", axis=0)
    innermost = np.sort(np.minimum(at_most, at_least).min(axis=1)).astype(np.int64)
    inside = int(np.ceil(probability * size - 1e-9))
    c = int(innermost[size - inside])
    ordered = np.sort(table, axis=0)
    # Ties can let a draw count beyond the middle; from there on every level gives the same band.
    c = min(c, (size + 1) // 2)
    return ordered[c - 1], ordered[size - c]


def cdf_band(
    difficulty: Difficulty, p: ArrayLike, probability: float
) -> tuple[Array, Array, Array]:
    """Posterior of a difficulty distribution's cdf: interval and median at every point.

    Parameters
    ----------
    difficulty : Difficulty
        In every draw.
    p : array_like, shape (points,)
        Success probabilities in [0, 1].
    probability : float
        Of the equal-tailed interval at each point.

    Returns
    -------
    lower, median, upper : ndarray, shape (points,)
        The interval holds at one point at a time.

    Examples
    --------
    >>> uniform = Difficulty.of_beta([0.5, 0.5], [1 / 3, 1 / 3])
    >>> [end.round(6).tolist() for end in cdf_band(uniform, [0.25, 1.0], 0.9)]
    [[0.25, 1.0], [0.25, 1.0], [0.25, 1.0]]
    """
    tail = 0.5 * (1.0 - probability)
    ends = np.quantile(difficulty.cdf(p), [tail, 0.5, 1.0 - tail], axis=0)
    lower, median, upper = ends
    return lower, median, upper
