"""Distribution of a mean of independent terms whose density has edges.

Few questions carry the variance, or all are saturated: the characteristic function does not die
out. It is taken up to some frequency and cut off there by a filter without moments, which leaves
the distribution function as it is but within a few half-periods of an edge. Where an interval ends
next to an edge, the frequencies beyond are added for the neighbourhood of that corner alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesatk.core.corners import REACH, Corner
from bayesatk.core.credit import Array
from bayesatk.core.distribution import LEVELS, Distribution, tabulated
from bayesatk.core.fourier import (
    PHASE,
    SAME,
    PointTransform,
    between,
    flat_top,
    normal_phi,
    power_product,
    waves,
)
from bayesatk.core.mixture import StateMixture, apart, deviations, gathered, node_offsets
from bayesatk.core.refined_table import RefinedTable

_ROUGH, _ROUGHLY = 128, 3e-4  # frequencies, and error in standard deviations
_FREQUENCIES = (128, 4096)  # to begin with, and the most
_WORK = (4e5, 1.6e7)  # of frequencies times nodes times states: to begin with, and the most
_FLOATS = 400_000  # grid points transformed at once: 3 MB, to stay in cache
_ENOUGH = 2e-7  # error of quantiles at which nothing more is done for them
_EVERYWHERE = (3e-5, 1e-2)  # error of all quantiles to begin with, absolute and in sds
_SINGLE, _MIXED = 1e-9, 5e-7  # error of one node, and of nodes that stand for a continuum
_DENSE = 16  # points of a table to a period of the highest frequency
_CLOSE = 6.0  # half-periods from the end of the scale
_SETTLED = 512.0  # frequencies before anything is done about a corner, where they are cheap
_CHEAPER = 4.0  # times as many frequencies rather than a corner
_ROUNDS = 6
_ROOM = 0.06  # beside the window, in its widths, for the kernels of nodes that lie apart


@dataclass(frozen=True)
class _Whole:
    """The mean of one column, with what it takes to tabulate it."""

    mixture: StateMixture
    column: int
    window: tuple[float, float]

    @property
    def ends(self) -> tuple[float, float]:
        vector = self.mixture.credits[self.column].vector
        return float(vector.min()), float(vector.max())

    def distribution(self, frequencies: int) -> "EdgedDistribution":
        return EdgedDistribution(self, frequencies, self.table(frequencies))

    def half(self, frequencies: int) -> float:
        """Half-period of the highest frequency; the window gets room for what rings beyond it."""
        width = self.window[1] - self.window[0]
        return max(width / (frequencies - REACH), (1.0 + 2.0 * _ROOM) * width / frequencies) / 2.0

    def table(self, frequencies: int) -> RefinedTable:
        """Tabulate with so many frequencies."""
        half = self.half(frequencies)
        length = 2.0 * half * frequencies
        low = 0.5 * (self.window[0] + self.window[1] - length)
        phi = self._phi(2.0 * np.pi / length, frequencies)
        share = np.arange(frequencies + 1.0) / frequencies
        points = _DENSE * frequencies
        cdf, pdf = waves((phi * flat_top(share))[1:], low, length, points)
        doubt, doubt_pdf = waves(
            (phi * (flat_top(share) - flat_top(2.0 * share)))[1:], low, length, points
        )
        rise = np.arange(points + 1.0) / points
        centre = self.mixture.moments.mean[self.column]
        return RefinedTable(
            centre + low + length * rise, cdf + rise, pdf + 1.0 / length, doubt, doubt_pdf
        )

    def _phi(self, unit: float, frequencies: int) -> NDArray[np.complex128]:
        """Characteristic function of the mean less its mean at multiples of a frequency."""
        mixture, column = self.mixture, self.column
        moments, questions = mixture.moments, mixture.states.questions
        mean, rest = moments.mean[column], float(moments.complement[column])
        omega = unit * np.arange(frequencies + 1.0)
        steps = mixture.steps[:, column]
        phi = np.zeros(len(omega), complex)
        size = max(1, _FLOATS // (4 * frequencies * len(mixture.states)))
        value = None
        for block in mixture.blocks([column], PHASE * questions / omega[-1], size):
            if block.value is not value:
                value, gap = block.value, deviations(block, 0, mean, rest) / questions
                starts = apart(gap, SAME / omega[-1])
                transform = PointTransform(gap[starts] * (unit / (2.0 * np.pi)), frequencies)
            own = transform(gathered(block.weights, starts))
            total = power_product(own.reshape(*block.weights.shape[:2], -1), mixture.states.count)
            wide = steps[block.nodes] > 0.0
            total[wide] *= between(steps[block.nodes[wide]], omega)
            phi += moments.weight[block.nodes] @ total
        narrow = mixture.concentrated
        offset, variance = node_offsets(mixture, column)
        return phi + normal_phi(moments.weight[narrow], offset, variance, steps[narrow], omega)


@dataclass(frozen=True)
class Staircase:
    """Error of quantiles at some places: what nodes that lie apart do to a distribution.

    Equal Gaussians ``r`` widths apart have a ripple that moves quantiles by ``exp(-2 pi^2 / r^2) /
    pi`` of their distance.

    Parameters
    ----------
    place : ndarray
        Between neighbouring rows of nodes, rising.
    gap, apart : ndarray
        Their distance, absolute and in widths of the narrower.
    rows : int
        How many times as many rows there are.
    """

    place: Array
    gap: Array
    apart: Array
    rows: int = 1

    @cached_property
    def size(self) -> Array:
        """Error at the places."""
        with np.errstate(divide="ignore"):
            return self.gap / np.pi * np.exp(-2.0 * (np.pi * self.rows / self.apart) ** 2)

    def __call__(self, x: ArrayLike) -> Array:
        """Error near ``x``."""
        return np.asarray(np.interp(np.atleast_1d(x), self.place, self.size))


@dataclass(frozen=True)
class EdgedDistribution:
    """A tabulated distribution that can be sharpened where it matters.

    ``staircase`` is the error of quantiles by nodes that stand for a continuum.
    Its stated error is that of all quantiles between the 0.25th and the 99.75th percentile, the
    ones next to an edge included.
    """

    whole: _Whole
    frequencies: int
    table: RefinedTable
    corners: frozenset[int] = frozenset()
    enough: float = _ENOUGH
    staircase: Staircase | None = None
    method: str = "edged"

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        return self._known.cdf(x)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return self._known.quantile(probability)

    @cached_property
    def _known(self) -> Distribution:
        table = self.table
        return tabulated(table.x, table.cdf, table.pdf, self.whole.ends)

    @cached_property
    def coarser(self) -> Distribution:
        """What half as many frequencies would have given."""
        table = self.table
        return tabulated(
            table.x, table.cdf - table.doubt, table.pdf - table.doubt_pdf, self.whole.ends
        )

    def floor(self, x: ArrayLike) -> float:
        """Error of quantiles near ``x`` that half as many frequencies do not show."""
        known = _MIXED if len(self.whole.mixture.nodes) > 1 else _SINGLE
        return known + (0.0 if self.staircase is None else float(self.staircase(x).max()))

    @cached_property
    def error(self) -> float:
        """Numerical error of quantiles, absolute."""
        return self.floor(self.quantile(LEVELS)) + float(self._doubt(LEVELS).max())

    def _doubt(self, levels: Array) -> Array:
        return np.abs(self.quantile(levels) - self.coarser.quantile(levels))

    def sharpened(self, levels: ArrayLike) -> "EdgedDistribution":
        """Return the distribution with its quantiles at some levels as exact as they get."""
        known = self
        for _ in range(_ROUNDS):
            better = known._better(np.atleast_1d(np.asarray(levels, float)))
            if better is None:
                return known
            known = better
        return known

    def _better(self, levels: Array) -> "EdgedDistribution | None":
        """Add the corner next to a doubtful quantile, or more frequencies for its sake."""
        place, doubt = self.quantile(levels), self._doubt(levels)
        half = self.whole.half(self.frequencies)
        at_end = np.abs(place[:, None] - self.whole.ends).min(axis=1) < _CLOSE * half
        at_end &= (levels > 0.0) & (levels < 1.0)
        pairs = [
            (abs(x - one.place) / REACH, one)
            for x in place[(doubt > self.enough) | at_end]
            for one in self._corners_near(x, half)
        ]
        if not pairs:
            doubtful = bool((doubt > self.enough).any())
            return self._with_frequencies(2.0 * self.frequencies) if doubtful else None

        # A few more frequencies put a quantile out of reach of a corner in the middle of the
        # scale, which costs less than the corner.
        def avoidable(away: float, one: Corner) -> bool:
            return one.inner and away > half / _CHEAPER

        far = [pair[0] for pair in pairs if avoidable(*pair)]
        near = {pair[1].right: pair[1] for pair in pairs if not avoidable(*pair)}
        settled = half * self.frequencies / min(_SETTLED, _WORK[1] / 6.0 / len(self.whole.mixture))
        wanted = min([settled, *far, *(one.widest for one in near.values())])
        more = self._with_frequencies(self.frequencies * half / wanted)
        if more is not None:
            return more
        return self._with_corners(near or {one.right: one for _, one in pairs})

    def _with_frequencies(self, frequencies: float) -> "EdgedDistribution | None":
        """Return the distribution with so many frequencies, if that is more and affordable."""
        most = min(_FREQUENCIES[1], _WORK[1] / len(self.whole.mixture))
        wanted = 2 ** int(np.ceil(np.log2(max(1.0, min(frequencies, most)))))
        if wanted <= self.frequencies:
            return None
        return replace(
            self.whole.distribution(wanted), enough=self.enough, staircase=self.staircase
        )

    def _with_corners(self, corners: dict[int, Corner]) -> "EdgedDistribution":
        """Return the distribution with what lies beyond its frequencies about some corners."""
        half, table = self.whole.half(self.frequencies), self.table
        for corner in corners.values():
            near = np.abs(table.x - corner.place) < _CLOSE * half
            enough = _ENOUGH / 4.0 * float(table.pdf[near].max(initial=0.0))
            table = table.corrected(corner.place, corner.ripples(half, enough))
            table = table.believed(corner.place, corner.coarse_ripple(half))
        return replace(self, table=table, corners=self.corners | set(corners))

    def _corners_near(self, x: float, half: float) -> list[Corner]:
        """Return the nearest corners within reach, and ends of the scale, not there yet."""
        mixture, column = self.whole.mixture, self.whole.column
        vector, questions = mixture.credits[column].vector, int(mixture.states.questions)
        if vector[0] == vector[-1]:
            return []
        middle = round((x - vector[0]) / (vector[-1] - vector[0]) * questions)
        several = {0, middle - 1, middle, middle + 1, questions} - self.corners
        every = [Corner(mixture, column, j) for j in sorted(several) if 0 <= j <= questions]
        return [one for one in every if abs(x - one.place) <= REACH * half]


def edged_distribution(
    mixture: StateMixture, column: int, window: tuple[float, float], rough: bool = False
) -> EdgedDistribution:
    """Distribution of a column's mean from what its characteristic function has of frequencies.

    Parameters
    ----------
    mixture : StateMixture
    column : int
    window : (float, float)
        Range of the mean, less its mean, that holds all but very little of the probability.
    rough : bool
        Widths of intervals to about 1e-3 of themselves will do.

    Returns
    -------
    EdgedDistribution
    """
    whole = _Whole(mixture, column, window)
    sd = float(np.sqrt(mixture.moments.variance[column]))
    if rough:
        return replace(whole.distribution(_ROUGH), enough=max(_ENOUGH, _ROUGHLY * sd))
    first = 2 ** int(np.log2(np.clip(_WORK[0] / len(mixture), *_FREQUENCIES)))
    enough = float(np.clip(_EVERYWHERE[1] * sd, _ENOUGH, _EVERYWHERE[0]))
    known = replace(whole.distribution(first), enough=enough).sharpened(LEVELS)
    return replace(known, enough=_ENOUGH)
