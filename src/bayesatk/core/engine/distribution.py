"""What is known of a number by draws, or by weighted points: quantiles, credible intervals."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from bayesatk._tools.arrays import Array

_CELLS = 1 << 16  # of the lattice of a mean
_REACH, _OUTLIER = 24.0, 16.0  # sds of a mean: of the lattice, and what one number may add to it
_ROUGH = 1e-4  # error of its quantiles, in widths


class Empirical:
    """Distribution of weighted draws or points, interpolated between them.

    The stated error of quantiles is three standard errors, as of as many independent draws as the
    weights are worth, or as said.

    Parameters
    ----------
    values, weight : ndarray, shape (points,)
        Default weights: all alike.
    draws : float, optional
        Independent draws that the points are worth.
    between : float
        Share of the sd that is between the points.
    rough : float
        Error of quantiles besides, in widths of the central 95%.

    Examples
    --------
    >>> points = Empirical(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]))
    >>> float(points.quantile(0.5)), float(points.cdf(2.0))
    (1.0, 1.0)
    """

    def __init__(
        self, values: Array, weight: Array | None = None, draws: float | None = None,
        between: float = 1.0, rough: float = 0.0,
    ) -> None:  # fmt: skip
        weight = np.full(len(values), 1.0 / len(values)) if weight is None else weight
        order = np.argsort(values, kind="stable")
        self._values, own = values[order], weight[order]
        self._levels = np.cumsum(own) - 0.5 * own
        self._size = 1.0 / float(own @ own) if draws is None else max(draws, 1.0)
        self._between, self._rough = between, rough

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``, rising linearly between two."""
        x = np.asarray(x, float)
        # Where draws are tied the last of them counts: a tie is an atom, not a slope.
        last = np.append(np.diff(self._values) > 0.0, True)
        at = np.interp(x, self._values[last], self._levels[last], left=0.0)
        return np.where(x >= self._values[-1], 1.0, at)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        levels = np.asarray(probability, float)
        return np.asarray(np.interp(levels, self._levels, self._values), float)

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles: three standard errors, from binomial order statistics, and more."""
        levels = np.asarray(probability, float)
        # On the logit scale, so that the tails stay in their tails.
        place = logit(np.clip(levels, 0.5 / self._size, 1.0 - 0.5 / self._size))
        spread = 3.0 / np.sqrt(self._size * expit(place) * expit(-place))
        ends = [self.quantile(expit(place + s * spread)) for s in (-1.0, 1.0)]
        found = self.quantile(levels)
        moved = np.max([np.abs(each - found) for each in ends], axis=0)
        rough = self._rough * float(np.ptp(self.quantile([0.025, 0.975])))
        return np.asarray(self._between * moved + rough + np.spacing(np.abs(found)))


def mean_of_independent(
    values: Array, share: Array, count: Array, ends: tuple[float, float]
) -> Empirical:
    """Return the distribution of a weighted mean of independent numbers.

    Their distributions are convolved on a lattice, about their means: the order of the numbers does
    not matter, nor does which end of the scale is called the upper one.

    Parameters
    ----------
    values : ndarray, shape (numbers, values)
        Values of each number that are equally probable.
    share : ndarray, shape (numbers,)
    count : ndarray, shape (numbers,)
        How many numbers have this distribution and share.
    ends : (float, float)
        Range of the mean.

    Examples
    --------
    >>> die = np.arange(1.0, 7.0)[None]
    >>> both = mean_of_independent(die, np.array([0.5]), np.array([2.0]), (1.0, 6.0))  # two dice
    >>> both.cdf([2.25, 3.75]).round(2).tolist()
    [0.17, 0.58]
    """
    terms = share[:, None] * values
    centre = terms.mean(axis=1, keepdims=True)
    if count.sum() == 1.0:
        return Empirical(np.clip(terms[0], *ends), draws=np.inf, rough=_ROUGH)
    mean, gap = float(count @ centre[:, 0]), terms - centre
    sd = float(np.sqrt(count @ (gap**2).mean(axis=1)))
    gap = np.clip(gap, -_OUTLIER * sd, _OUTLIER * sd)
    low, high = (
        np.clip(count @ end(gap, axis=1), -_REACH * sd, _REACH * sd) for end in (np.min, np.max)
    )
    number = float(count.sum())
    margin = int(min(number, 6.0 * np.sqrt(number), _CELLS // 4)) + 2  # each is in two cells
    step = max(float(high - low) / (_CELLS - 2 * margin), 1e-300)
    transform = np.ones(_CELLS // 2 + 1, complex)
    for row, times in zip(gap / step, count, strict=True):
        cell = np.floor(row).astype(np.intp)
        part = row - cell
        mass = np.bincount(cell % _CELLS, 1.0 - part, _CELLS)
        mass += np.bincount((cell + 1) % _CELLS, part, _CELLS)
        transform *= np.fft.rfft(mass / len(row)) ** times
    place = int(np.floor(low / step)) - margin + np.arange(_CELLS)
    mass = np.maximum(np.fft.irfft(transform), 0.0)[place % _CELLS]
    x, mass = np.clip(mean + step * place, *ends), mass / mass.sum()
    width = float(np.ptp(Empirical(x, mass).quantile([0.025, 0.975])))
    return Empirical(x, mass, np.inf, rough=_ROUGH + step / max(width, step))


def interval(quantity: Empirical, probability: float, kind: str) -> tuple[float, float]:
    """Equal-tailed (``"eti"``) or highest-density (``"hdi"``) interval.

    Examples
    --------
    >>> uniform = Empirical((np.arange(1000) + 0.5) / 1000)
    >>> [round(end, 9) for end in interval(uniform, 0.9, "eti")]
    [0.05, 0.95]
    """
    low, high = quantity.quantile(_levels(quantity, probability, kind))
    return float(low), float(high)


def measured_interval(
    quantity: Empirical, probability: float, kind: str
) -> tuple[tuple[float, float], float]:
    """Interval, and the error of its ends: that of the quantiles there."""
    levels = _levels(quantity, probability, kind)
    low, high = quantity.quantile(levels)
    error = float(quantity.stated_error(levels).max())
    return (float(low), float(high)), error


def _levels(quantity: Empirical, probability: float, kind: str) -> Array:
    """Probabilities below the ends of an interval; the shortest one's by search."""
    tail = 1.0 - probability
    if kind == "eti":
        return np.array([0.5 * tail, 1.0 - 0.5 * tail])

    def width(start: ArrayLike) -> Array:
        start = np.asarray(start)
        return quantity.quantile(start + probability) - quantity.quantile(start)

    starts = np.linspace(0.0, tail, 101)
    widths = width(starts)
    best = int(np.argmin(widths))
    around = (starts[max(best - 1, 0)], starts[min(best + 1, 100)])
    found = minimize_scalar(
        lambda p: float(width(p)), bounds=around, method="bounded", options={"xatol": 1e-9}
    )
    start = float(found.x) if found.fun < widths[best] else float(starts[best])
    return np.array([start, start + probability])
