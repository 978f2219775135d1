"""Distributions with exact quantiles: tabulated, monotone images of a Beta, and draws."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from bayesatk._tools.arrays import Array, Indices

_STEPS = 5  # of Newton's method within bisection, from straight lines to full precision


class Quantity(Protocol):
    """What is known of a number: its distribution function, quantiles, and their error."""

    @property
    def settled(self) -> bool:
        """Whether quantiles are as exact as was asked for."""
        ...

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        ...

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        ...

    def stated_error(self, probability: ArrayLike) -> Array:
        """Absolute error of quantiles."""
        ...


@dataclass(frozen=True)
class Distribution:
    """A distribution function tabulated with its density, joined by cubic Hermite pieces.

    Parameters
    ----------
    x, cdf, pdf : ndarray, shape (points,)
        Increasing points, the distribution function and the density there.

    Examples
    --------
    >>> uniform = Distribution(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> uniform.quantile([0.25, 0.5]).round(9).tolist(), uniform.cdf(0.75).item()
    ([0.25, 0.5], 0.75)
    """

    x: Array
    cdf_values: Array
    pdf: Array
    settled: bool = True

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        x = np.asarray(x, float)
        if len(self.x) == 1:
            return np.asarray(x >= self.x[0], float)
        cell = np.clip(np.searchsorted(self.x, x, side="right") - 1, 0, len(self.x) - 2)
        width = self.x[cell + 1] - self.x[cell]
        inside = self._piece(cell, np.clip((x - self.x[cell]) / width, 0.0, 1.0))
        return np.where(x < self.x[0], 0.0, np.where(x >= self.x[-1], 1.0, np.clip(inside, 0, 1)))

    def quantile(self, probability: ArrayLike) -> Array:
        """Smallest value that is exceeded with probability ``1 - probability``."""
        p = np.asarray(probability, float)
        if len(self.x) == 1:
            return np.full(p.shape, self.x[0])
        table = np.maximum.accumulate(self.cdf_values)
        cell = np.clip(np.searchsorted(table, p) - 1, 0, len(self.x) - 2)
        low, high = np.zeros(p.shape), np.ones(p.shape)
        start, rise = table[cell], table[cell + 1] - table[cell]
        s = np.clip(np.divide(p - start, rise, out=np.full(p.shape, 0.5), where=rise > 0.0), 0, 1)
        for _ in range(_STEPS):
            gap, slope = p - self._piece(cell, s), self._slope(cell, s)
            low, high = np.where(gap > 0.0, s, low), np.where(gap > 0.0, high, s)
            step = s + np.divide(gap, slope, out=np.zeros(p.shape), where=slope > 0.0)
            s = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        return np.asarray(self.x[cell] + s * (self.x[cell + 1] - self.x[cell]))

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles, as far as it is rounding; that of the table is not known here."""
        return np.spacing(np.abs(self.quantile(probability)))

    def _piece(self, cell: Indices, s: Array) -> Array:
        """Cubic Hermite piece of the distribution function at a fraction s of a cell."""
        width = self.x[cell + 1] - self.x[cell]
        start, rise = self.cdf_values[cell], self.cdf_values[cell + 1] - self.cdf_values[cell]
        left, right = self.pdf[cell] * width, self.pdf[cell + 1] * width
        curve = s * (1 - s) * ((1 - s) * (left - rise) - s * (right - rise))
        return np.asarray(start + s * rise + curve)

    def _slope(self, cell: Indices, s: Array) -> Array:
        """Return the derivative of the same in s."""
        width = self.x[cell + 1] - self.x[cell]
        rise = self.cdf_values[cell + 1] - self.cdf_values[cell]
        left, right = self.pdf[cell] * width - rise, self.pdf[cell + 1] * width - rise
        return np.asarray(rise + left * (1 - s) * (1 - 3 * s) - right * s * (2 - 3 * s))


class Empirical:
    """Distribution of weighted draws or points.

    Quantiles are interpolated between them. Their stated error is three standard errors, as of as
    many independent draws as the weights are worth, plus ``blur``, an error that they do not show.

    Examples
    --------
    >>> points = Empirical(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]))
    >>> float(points.quantile(0.5)), float(points.cdf(2.0))
    (1.0, 1.0)
    """

    settled = False

    def __init__(self, values: Array, weight: Array | None = None, blur: float = 0.0) -> None:
        self._blur = blur
        weight = np.full(len(values), 1.0 / len(values)) if weight is None else weight
        order = np.argsort(values, kind="stable")
        self._values, own = values[order], weight[order]
        self._upto = np.cumsum(own)
        self._levels = self._upto - 0.5 * own
        self._size = 1.0 / float(own @ own)

    def cdf(self, x: ArrayLike) -> Array:
        """Share of the draws at most ``x``, rising linearly between two."""
        x = np.asarray(x, float)
        # Where draws are tied the last of them counts: a tie is an atom, not a slope.
        last = np.append(np.diff(self._values) > 0.0, True)
        at = np.interp(x, self._values[last], self._upto[last], left=0.0, right=1.0)
        return np.asarray(np.minimum(at, 1.0), float)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        levels = np.asarray(probability, float)
        return np.asarray(np.interp(levels, self._levels, self._values), float)

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles: three standard errors, from binomial order statistics."""
        levels = np.asarray(probability, float)
        # On the logit scale, so that the tails stay in their tails.
        place = logit(np.clip(levels, 0.5 / self._size, 1.0 - 0.5 / self._size))
        spread = 3.0 / np.sqrt(self._size * expit(place) * expit(-place))
        ends = [self.quantile(expit(place + s * spread)) for s in (-1.0, 1.0)]
        found = self.quantile(levels)
        moved = np.max([np.abs(each - found) for each in ends], axis=0)
        return np.asarray(moved + self._blur + np.spacing(np.abs(found)))


def constant(value: float) -> Distribution:
    """Return the distribution of a known value."""
    return Distribution(np.array([value]), np.ones(1), np.zeros(1))


def tabulated(x: Array, cdf: Array, ends: tuple[float, float]) -> Distribution:
    """Distribution between two ends from a computed table, which may ring a little.

    Examples
    --------
    >>> table = tabulated(
    ...     np.array([-0.1, 0.0, 0.5, 1.0, 1.1]), np.array([0.0, 0.0, 0.5, 1.0, 1.0]), (0.0, 1.0))
    >>> table.x.tolist(), table.quantile(0.25).round(9).item()
    ([0.0, 0.5, 1.0], 0.25)
    """
    inside = (x > ends[0]) & (x < ends[1])
    low, high = max(ends[0], x[0]), min(ends[1], x[-1])
    x = np.concatenate([[low], x[inside], [high]])
    cdf = np.concatenate([[0.0], np.clip(cdf[inside], 0.0, 1.0), [1.0]])
    apart = np.append(np.diff(x) > 0.0, True)
    x, cdf = x[apart], np.maximum.accumulate(cdf[apart])
    return Distribution(x, cdf, monotone_slopes(x, cdf, np.gradient(cdf, x)))


def monotone_slopes(x: Array, cdf: Array, pdf: Array) -> Array:
    """Densities lowered, where they must be, for the cubic pieces to increase throughout.

    The bound of three times the smaller neighbouring secant is Fritsch and Carlson's (1980).
    """
    secant = np.diff(cdf) / np.diff(x)
    bound = 3.0 * np.minimum(np.append(secant, np.inf), np.insert(secant, 0, np.inf))
    return np.clip(pdf, 0.0, bound)
