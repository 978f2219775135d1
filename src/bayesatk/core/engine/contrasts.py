"""Differences, ratios and ranks of independent quantities whose distributions are known.

Every distribution function is evaluated at the same points, so that each probability that involves
two quantities or all of them is a sum over cells between points, a matrix product. The sums are
antisymmetric (what one quantity wins another loses) and ranks are doubly stochastic by
construction. No draws are needed.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from bayesatk.core.engine.distribution import Quantity
from bayesatk.metrics.credit import Array

# Share of the scale within which two values are the same, 9e-13: distributions are no better known.
RESOLUTION = 2.0**-40
_EDGE = 1e-9  # probability beyond the ends of a table of quantiles
_TAIL = np.array([1e-7, 1e-5])
_INNER = np.sin(0.5 * np.pi * np.arange(1, 96) / 96.0) ** 2
_ASKED = np.concatenate([[_EDGE], _TAIL, _INNER, 1.0 - _TAIL[::-1], [1.0 - _EDGE]])
LEVELS = np.concatenate([[0.0], _ASKED[1:-1], [1.0]])  # of the values of a `Known`
_MIDDLE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
# Standard errors in a stated error of quantiles: two or three, at the worse end of an interval, of
# points taken as independent; those of the average are spread more evenly.
_STATED = 5.0
_MOST_CELLS = 512
_CROWDED = 0.125  # expected number of quantities in a cell beyond which ranks split it
_MOST_STEPS, _NEWTON_STEPS = 60, 12
_LARGEST = 300.0  # of the absolute log of a ratio, and of a value that is 0


class Known:
    """A quantity with its quantiles at `LEVELS`, and their standard error in the middle."""

    def __init__(self, quantity: Quantity) -> None:
        self.cdf = quantity.cdf
        self.values = np.maximum.accumulate(np.asarray(quantity.quantile(_ASKED), float))
        self.error = float(np.mean(quantity.stated_error(_MIDDLE))) / _STATED


def round_to_resolution(values: ArrayLike) -> tuple[NDArray[np.int64], float]:
    """Return the whole multiples of the resolution that values round to, and the resolution.

    The scale is 1, or the power of 2 above the largest absolute value: 0, 1 and short binary
    fractions are whole multiples.

    Examples
    --------
    >>> found, step = round_to_resolution([1.0, 1.0 - 1e-15, 0.0])
    >>> (found * step).tolist()
    [1.0, 1.0, 0.0]
    """
    values = np.asarray(values, float)
    step = RESOLUTION * 2.0 ** np.ceil(np.log2(max(1.0, float(np.abs(values).max(initial=0.0)))))
    return np.rint(values / step).astype(np.int64), float(step)


class IndependentQuantities:
    """Independent quantities on one grid of cells.

    Values that round to the same multiple of the resolution (`round_to_resolution`) are ties. Each
    such point is a cell of its own, within which values are taken to be uniform: a tie is broken at
    random.

    Parameters
    ----------
    known : sequence of Known
    margin : float
        The differences of interest exceed it (`prob_above`).

    Examples
    --------
    >>> from bayesatk.core.engine.distribution import Distribution, constant
    >>> uniform = Distribution(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> same = IndependentQuantities([Known(uniform), Known(uniform)])
    >>> same.prob_greater[0, 1].round(9).item(), same.ranks().round(9).tolist()
    (0.5, [[0.5, 0.5], [0.5, 0.5]])
    >>> tied = IndependentQuantities([Known(constant(1.0)), Known(constant(1.0 - 1e-15))])
    >>> tied.prob_greater[0, 1].item(), tied.prob_tie[0, 1].item()
    (0.5, 1.0)
    """

    def __init__(self, known: Sequence[Known], margin: float = 0.0) -> None:
        site, step = round_to_resolution(np.stack([one.values for one in known]))
        widest = 4.0 * step / RESOLUTION  # more than any difference
        self._known, self._margin = known, float(np.clip(margin, -widest, widest))
        atoms = np.unique(site[:, 1:][np.diff(site, axis=1) == 0])
        points = np.unique(site)
        points = points[:: max(1, len(points) // _MOST_CELLS)]
        shift = int(np.rint(self._margin / step))
        both = np.concatenate([atoms, atoms + shift, atoms - shift]) if shift else atoms
        ends = np.array([site.min() - 1, site.max() + 1])
        edges = np.unique(np.concatenate([points, ends, both - 1, both]))
        self._tie = np.diff(edges) == 1
        left = (edges + 0.5) * step  # halfway between the points that values round to
        self._step, self._x = step, np.empty(2 * len(left) - 1)
        self._x[::2], self._x[1::2] = left, 0.5 * (left[1:] + left[:-1])
        self._cdf = self._at(self._x)
        self._cdf[:, 0], self._cdf[:, -1] = 0.0, 1.0

    def _at(self, x: Array) -> Array:
        """Distribution functions, non-decreasing, straight within ties; (quantities, points)."""
        found = np.stack([np.asarray(one.cdf(x), float) for one in self._known])
        found = np.maximum.accumulate(np.clip(found, 0.0, 1.0), axis=1)
        middle = 0.5 * (found[:, :-1:2] + found[:, 2::2])
        found[:, 1::2] = np.where(self._tie, middle, found[:, 1::2])
        return found

    @cached_property
    def prob_tie(self) -> Array:
        """Probability that two of them cannot be told apart; (quantities, quantities)."""
        mass = np.diff(self._cdf[:, ::2], axis=1)[:, self._tie]
        return np.asarray(mass @ mass.T)

    @cached_property
    def prob_greater(self) -> Array:
        """Probability that the first exceeds the second, ties counted half."""
        won = _stieltjes(self._cdf, self._cdf)
        found = 0.5 + 0.5 * (won - won.T)
        return np.asarray(np.clip(found, 0.5 * self.prob_tie, 1.0 - 0.5 * self.prob_tie))

    def prob_above(self) -> Array:
        """Probability that the first exceeds the second by more than the margin, and not by less.

        A difference that cannot be told from the margin does not exceed it.
        """
        if self._margin == 0.0:
            return np.asarray(self.prob_greater - 0.5 * self.prob_tie)
        shift = self._margin + self._step
        one = 1.0 - _stieltjes(self._cdf, self._at(self._x + shift)).T
        other = _stieltjes(self._cdf, self._at(self._x - shift))
        ahead = self.prob_greater - 0.5 * self.prob_tie
        found = np.clip(0.5 * (one + other), 0.0, 1.0)
        return np.minimum(found, ahead) if self._margin > 0 else np.maximum(found, ahead)

    def expected_loss(self, mean: Array) -> Array:
        """Return ``E[max(B - A, 0)]``: what choosing the first (A) over the second loses.

        The exact means give the larger of the two losses of a pair, without cancellation.
        """
        width = np.diff(self._x[::2])
        weight = np.zeros(len(self._x))
        weight[:-1:2] += width / 6.0
        weight[1::2] += 4.0 * width / 6.0
        weight[2::2] += width / 6.0
        found = np.maximum((self._cdf * weight) @ (1.0 - self._cdf).T, 0.0)
        gap = mean[:, None] - mean
        return np.where(gap < 0, found.T - gap, found)

    def ranks(self) -> Array:
        """Probability of each rank (1 is best) of each quantity; (quantities, ranks).

        Within a cell every distribution function is a straight line, and given the value of one
        quantity the number of others above is Poisson-binomial. Its generating function at the
        roots of unity is integrated by a Gauss rule, exactly, before it is inverted: rows and
        columns add up to 1.
        """
        cdf = self._split(self._cdf)
        z, gauss = leggauss(3)
        mass = np.diff(cdf, axis=1)
        above = (1.0 - cdf[:, :-1, None] - mass[:, :, None] * 0.5 * (z + 1.0)).reshape(len(cdf), -1)
        weight = (mass[:, :, None] * 0.5 * gauss).reshape(len(cdf), -1)
        size = len(cdf)
        transform = np.empty((size, size // 2 + 1), complex)
        for index in range(size // 2 + 1):
            root = np.exp(-2j * np.pi * index / size)
            transform[:, index] = (weight * _all_but_one(1.0 + above * (root - 1.0))).sum(axis=1)
        return np.maximum(np.fft.irfft(transform, size, axis=1), 0.0)

    def _split(self, cdf: Array) -> Array:
        """Add points to cells that hold many quantities at once, on straight lines."""
        mass = np.diff(cdf, axis=1).sum(axis=0)
        pieces = np.maximum(np.ceil(mass / _CROWDED), 1.0).astype(int)
        cell = np.repeat(np.arange(len(pieces)), pieces)
        place = np.arange(len(cell)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        inside = cdf[:, cell] + np.diff(cdf, axis=1)[:, cell] * (place / pieces[cell])
        return np.column_stack([inside, cdf[:, -1]])


def _stieltjes(outer: Array, inner: Array) -> Array:
    """Integrals of every row of ``inner`` against every row of ``outer``.

    The trapezoid rule on all cells and on every second point, extrapolated: Simpson's rule. The
    integral of F against G and of G against F add up to 1 as the trapezoids do.
    """

    def rule(step: int) -> Array:
        coarse = inner[:, ::step]
        rise = np.diff(outer[:, ::step], axis=1)
        return np.asarray(rise @ (0.5 * (coarse[:, 1:] + coarse[:, :-1])).T)

    return np.asarray((4.0 * rule(1) - rule(2)) / 3.0)


def _all_but_one(factors: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Products over all rows but each one."""
    before, after = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumprod(factors[:0:-1], axis=0)[::-1]
    return np.asarray(before * after)


class Differences:
    """``A - B`` of pairs of independent quantities, from their quantiles at `LEVELS`.

    Between two quantiles a quantity is uniform. ``P(A - B <= d)`` is then the mean of the
    distribution function of A over the pieces of B, exactly.

    Parameters
    ----------
    first, second : ndarray, shape (pairs, levels)

    Examples
    --------
    >>> uniform = LEVELS[None]
    >>> gap = Differences(uniform, uniform)
    >>> gap.cdf(np.array([[-0.5, 0.0]]))[0].round(4).tolist()
    [0.125, 0.5]
    >>> gap.quantile(np.array([0.125]))[0].round(4).tolist()
    [-0.5]
    """

    def __init__(self, first: Array, second: Array) -> None:
        self._first, self._second = first, second
        width = np.diff(first, axis=1)
        area = 0.5 * width * (LEVELS[1:] + LEVELS[:-1])
        self._area = np.pad(np.cumsum(area, axis=1), ((0, 0), (1, 0)))
        self._slope = np.diff(LEVELS) / np.where(width > 1e-250, width, np.inf)
        # One sorted array for all rows: row r lies in [2r, 2r + 1].
        self._range = np.maximum(first[:, -1] - first[:, 0], 1e-300)
        place = (first - first[:, :1]) / self._range[:, None]
        self._flat = (place + 2.0 * np.arange(len(first))[:, None]).ravel()

    def cdf(self, x: Array) -> Array:
        """Probability that the difference is at most x; (pairs, points)."""
        pair = np.repeat(np.arange(len(x)), x.shape[1])
        return self._evaluate(pair, x.ravel())[0].reshape(x.shape)

    def error(self, moved: Array) -> Array:
        """Return standard errors of the probabilities of a positive difference.

        Parameters
        ----------
        moved : ndarray, shape (pairs,)
            Standard errors of the quantiles of the difference.
        """
        near = self.cdf(np.stack([-moved, moved], axis=1))
        same = (self._first == self._second).all(axis=1)  # one half by symmetry
        return np.where(same, 0.0, 0.5 * (near[:, 1] - near[:, 0]))

    def quantile(self, probability: Array) -> Array:
        """Values exceeded with probability ``1 - probability``; (pairs, levels)."""
        pairs, size = len(self._first), len(probability)
        pair, p = np.repeat(np.arange(pairs), size), np.tile(probability, pairs)
        low = np.repeat(self._first[:, 0] - self._second[:, -1], size)
        high = np.repeat(self._first[:, -1] - self._second[:, 0], size)
        found, tiny = self._guess(p.reshape(pairs, size)).ravel(), 1e-12 * (high - low)
        open_ = np.arange(len(p))
        for step in range(_MOST_STEPS):
            x = np.clip(found[open_], low[open_], high[open_])
            excess, slope = self._evaluate(pair[open_], x)
            excess -= p[open_]
            low[open_] = np.where(excess < 0.0, x, low[open_])
            high[open_] = np.where(excess < 0.0, high[open_], x)
            good = slope > 1e-300
            move = np.where(good, excess, 0.0) / np.where(good, slope, 1.0)
            inside = (x - move >= low[open_]) & (x - move <= high[open_])
            newton = good & inside & (step < _NEWTON_STEPS)
            found[open_] = np.where(newton, x - move, 0.5 * (low[open_] + high[open_]))
            exact = newton & (np.abs(excess) <= 1e-5 * np.minimum(p[open_], 1.0 - p[open_]))
            open_ = open_[~(exact | (high[open_] - low[open_] <= tiny[open_]))]
            if not len(open_):
                break
        return found.reshape(pairs, size)

    def shortest(self, probability: float) -> Array:
        """Return the ends of the shortest intervals with this probability; (pairs, 2)."""
        starts = (1.0 - probability) * np.sin(0.5 * np.pi * np.linspace(0.0, 1.0, 19)[1:-1]) ** 2
        found = self.quantile(np.concatenate([starts, starts + probability]))
        fine = np.linspace(starts[0], starts[-1], 801)
        low, high = (
            PchipInterpolator(starts, each, axis=1)(fine) for each in np.split(found, 2, axis=1)
        )
        width = high - low
        # The middle of all that are as short: a mirror image has the mirrored interval.
        good = width <= width.min(axis=1, keepdims=True) + 1e-9 * np.abs(width).max()
        index = np.arange(len(fine))
        first = np.where(good, index, len(fine)).min(axis=1)
        last = np.where(good, index, -1).max(axis=1)
        rows = np.arange(len(width))[:, None]
        both = np.stack([first, last], axis=1)
        return np.stack([low[rows, both].mean(axis=1), high[rows, both].mean(axis=1)], axis=1)

    def _guess(self, p: Array) -> Array:
        """Quantiles, had both quantities the shape of the first and of the second in turn."""
        rows = np.arange(len(p))[:, None]
        column = np.clip(np.searchsorted(LEVELS, p), 1, len(LEVELS) - 2)
        middle = len(LEVELS) // 2
        a, b = self._first, self._second
        one = a[rows, column] - a[:, middle, None]
        other = b[:, middle, None] - b[rows, len(LEVELS) - 1 - column]
        reach = np.where(p < 0.5, -1.0, 1.0) * np.hypot(one, other)
        return np.asarray(a[:, middle, None] - b[:, middle, None] + reach)

    def _evaluate(self, pair: NDArray[np.intp], x: Array) -> tuple[Array, Array]:
        """Distribution function and density at one point of each of some pairs."""
        nodes = x[:, None] + self._second[pair]
        first, last = self._first[pair, :1], self._first[pair, -1:]
        kept = np.clip(nodes, first, last)
        place = (kept - first) / self._range[pair, None] + 2.0 * pair[:, None]
        size = len(LEVELS)
        index = np.searchsorted(self._flat, place.ravel(), side="right").reshape(place.shape) - 1
        index = np.clip(index - size * pair[:, None], 0, size - 2)
        rows = pair[:, None]
        step, slope = kept - self._first[rows, index], self._slope[rows, index]
        cdf = LEVELS[index] + step * slope
        cdf = np.where(nodes >= last, 1.0, np.where(nodes < first, 0.0, cdf))
        area = self._area[rows, index] + step * (LEVELS[index] + 0.5 * step * slope)
        area += np.maximum(nodes - last, 0.0)
        width, weight = np.diff(nodes, axis=1), np.diff(LEVELS)
        wide = width > 1e-6 * self._range[pair, None]
        safe = np.where(wide, width, 1.0)
        mean = np.where(wide, np.diff(area, axis=1) / safe, 0.5 * (cdf[:, 1:] + cdf[:, :-1]))
        density = np.where(wide, np.diff(cdf, axis=1) / safe, slope[:, :-1])
        return mean @ weight, density @ weight


def ratio_quantiles(first: Array, second: Array, probability: Array) -> Array:
    """Quantiles of ``A / B`` of pairs of independent non-negative quantities.

    The ratio of two zeros is 1; of a positive value and zero it is infinite.

    Examples
    --------
    >>> zero, half = np.zeros((1, len(LEVELS))), np.full((1, len(LEVELS)), 0.5)
    >>> [ratio_quantiles(*pair, np.array([0.5])).item() for pair in ((zero, zero), (half, zero))]
    [1.0, inf]
    """
    smallest = np.exp(-_LARGEST)
    logs = [np.log(np.maximum(each, smallest)) for each in (first, second)]
    found = Differences(*logs).quantile(probability)
    ratio = np.exp(np.clip(found, -_LARGEST, _LARGEST))
    return np.where(found > 40.0, np.inf, np.where(found < -40.0, 0.0, ratio))
