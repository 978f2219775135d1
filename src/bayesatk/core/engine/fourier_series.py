"""From characteristic functions to distributions, with the error measured on the way.

A distribution on a window comes from a Fourier series. Where it is needed near an end of the scale
at which it has an edge, or from which it falls off slowly, it is worked out again on ever shorter
windows at that end, each a quarter as long. What lies beyond a window is damped away there: the
transform of ``exp(-delta distance)`` times the density is inverted, and the damping undone (the
idea of Dubner and Abate 1968 for Laplace transforms).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

from bayesatk.core.engine.distribution import LEVELS, Distribution, tabulated
from bayesatk.metrics.credit import Array

_FIRST = 32  # frequencies to begin with
_MARGIN = 0.08  # beside a window on either side, in its widths, for what rings at its ends
_POINTS = 1024  # of a table, at least
_DENSE = 16  # points of a table to a period of the highest frequency, at least
_CUT = (0.4, 0.6)  # of the frequency of a spacing: a continuum and its nodes are alike below
_NARROWER = 0.7  # of that, for the error that it makes
_SHORTER = 4.0  # times: one window at an end and the next
_DAMPED = 10.0  # logarithm of what is left of the density at the end of a damped window
_USED_SHARE = 0.4  # share of a damped window that is used
_ERROR_FACTOR = (
    4.0  # times the last quarter's effect: the error, if it falls as one over the frequencies
)
_NO_GAIN = 0.8  # share of an error that is left after a doubling, above which it is no gain
_STALLED = 2  # doublings without a gain, after which more frequencies are no use
_SMOOTH = 256  # frequencies of what needs no shorter windows
_ZOOMED = 128  # frequencies of a damped window
_CELLS = 8.0  # periods of the highest frequency within which nothing is known
_ZOOMS = 16  # windows, at most: down to 2e-10 of the first
Table = tuple[Array, Array, Array]
_LEVELS = np.concatenate([LEVELS[1:-1], [0.025, 0.975]])
_SLACK = np.append(np.full(len(LEVELS) - 2, 4.0), [1.0, 1.0])  # the ends of an interval matter most


class Law(Protocol):
    """A quantity known by its transform."""

    def transform(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        """``E exp((tilt + i omega) (X - origin))`` at successive multiples of a frequency.

        The origin is the mean (0), the lowest (-1) or the highest (1) value; (2, frequencies): as
        it is, and with the filters of nodes narrowed. With a tilt, without the smooth part.
        """
        ...

    def smooth(self, omega: Array) -> NDArray[np.complex128]:
        """Return what a tilt leaves out, which needs no shorter windows, less the mean."""
        ...

    def narrow(self, x: Array) -> Array:
        """Distribution function of the part that the transform leaves out, at X."""
        ...


@dataclass(frozen=True)
class Window:
    """Where a quantity lies: a range about its centre, and the ends of its scale."""

    low: float
    high: float
    centre: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Series:
    """A distribution by Fourier series, beside what three quarters of the frequencies give.

    Parameters
    ----------
    fine, coarse : Distribution
        With all frequencies, and with three quarters of them and narrower filters.
    lost : float
        Probability that was left out.
    settled : bool
        Whether the two agree as closely as was asked for.
    reach : (float, float)
        Distance from the lowest and the highest value that the frequencies do not resolve.
    blur : float
        Error that neither shows.
    """

    fine: Distribution
    coarse: Distribution
    lost: float
    settled: bool
    reach: tuple[float, float] = (0.0, 0.0)
    blur: float = 0.0

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        return self.fine.cdf(x)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return self.fine.quantile(probability)

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles: by the frequencies that are missing, and by what was left out."""
        levels = np.asarray(probability, float)
        found = self.quantile(levels)
        # On a flat a small error of the distribution function is a large one of the quantile.
        spread = self.lost + _ERROR_FACTOR * np.abs(self.fine.cdf(found) - self.coarse.cdf(found))
        near = [self.fine.rough(np.clip(levels + s * spread, 0.0, 1.0)) for s in (-1.0, 1.0)]
        moved = np.max([np.abs(each - found) for each in near], axis=0)
        gap = np.abs(found - self.coarse.quantile(levels))
        for edge, reach in zip((self.fine.x[0], self.fine.x[-1]), self.reach, strict=True):
            away = np.abs(found - edge)
            gap += np.where(away < reach, away, 0.0)
        error: Array = np.maximum(_ERROR_FACTOR * gap, moved)
        return error + self.blur + np.spacing(np.abs(found))

    @cached_property
    def stated_error_of_ends(self) -> float:
        """Error of the ends of the central 95%, in its width."""
        levels = np.array([0.025, 0.975])
        return float(self.stated_error(levels).max() / max(np.ptp(self.quantile(levels)), 1e-300))

    @cached_property
    def error(self) -> float:
        """Largest error of the quantiles that are tabulated."""
        return float(self.stated_error(LEVELS).max())


def invert(law: Law, window: Window, enough: float, most: int, lost: float) -> Series:
    """Distribution from a characteristic function, with as many frequencies as it takes.

    Parameters
    ----------
    law : Law
    window : Window
        Holds all but ``lost`` of the probability.
    enough : float
        Error of quantiles to reach, in widths of the central 95%.
    most : int
        Frequencies that it may cost, on all windows together.
    lost : float
        Probability outside the window, and of whatever else was left out.

    Returns
    -------
    Series
    """
    frequencies = _FIRST
    pieces = _Pieces(law, window, frequencies)
    before, stalled, spent = np.inf, 0, frequencies
    while True:
        fine, coarse = pieces.tables()
        place = fine.rough(_LEVELS)
        gap = _ERROR_FACTOR * np.abs(place - coarse.rough(_LEVELS))
        unsettled = gap > enough * _SLACK * max(float(place[-1] - place[-2]), 1e-300)
        near = {end: pieces.near(end, place) & unsettled for end in (-1, 1)}
        inside = float(gap[unsettled & ~near[-1] & ~near[1]].max(initial=0.0))
        stalled = stalled + 1 if inside > _NO_GAIN * before else 0
        inner = inside > 0.0 and stalled < _STALLED
        before = inside if inside > 0.0 else before
        ends_near = [end for end, each in near.items() if each.any()]
        spent += len(ends_near) * _ZOOMED + (2 * frequencies if inner else 0)
        if spent > most or not (inner or ends_near):
            return Series(fine, coarse, lost, not unsettled.any(), pieces.reach())
        for end in ends_near:
            pieces.zoom(end)
        if inner:
            frequencies *= 2
            pieces.whole(frequencies)


class _Pieces:
    """Tables of one distribution: on the whole window, and on shorter ones at its ends.

    A table is its points and the distribution function there, fine and coarse.
    """

    def __init__(self, law: Law, window: Window, frequencies: int) -> None:
        self._law, self._window = law, window
        self._width = window.high - window.low
        self._at_end: dict[int, list[Table]] = {-1: [], 1: []}
        self._phi = np.empty((2, 0), complex)
        self.whole(frequencies)

    def _edge(self, end: int) -> float:
        return self._window.lowest if end < 0 else self._window.highest

    def _length(self, end: int) -> float:
        """Of the shortest window at an end so far."""
        return self._width / _SHORTER ** len(self._at_end[end])

    def near(self, end: int, place: Array) -> NDArray[np.bool_]:
        """Which places lie so near an end of the scale that a shorter window there would help."""
        edge, window = self._edge(end), self._window
        reached = window.centre + (window.low if end < 0 else window.high)
        if not abs(reached - edge) < 0.05 * self._width or len(self._at_end[end]) >= _ZOOMS:
            return np.zeros(len(place), bool)
        return np.abs(place - edge) < _USED_SHARE / _SHORTER * self._length(end)

    def whole(self, frequencies: int) -> None:
        """Tabulate the whole window, with the frequencies so far and those that they lack."""
        length = (1.0 + 2.0 * _MARGIN) * self._width
        start = self._window.low - _MARGIN * self._width
        omega = 2.0 * np.pi / length * np.arange(self._phi.shape[1], frequencies + 1.0)
        self._phi = np.concatenate([self._phi, self._law.transform(omega, 0, 0.0)], axis=1)
        x, *rises = self._table(self._phi, start, length)
        narrow = self._law.narrow(x)
        self._middle: Table = x, rises[0] + narrow, rises[1] + narrow

    def _table(self, phi: NDArray[np.complex128], start: float, length: float) -> Table:
        points = max(_POINTS, _DENSE * (phi.shape[1] - 1))
        x = self._window.centre + start + length * np.linspace(0.0, 1.0, points + 1)
        fine, coarse = (_rise(each, start, length, points) for each in _fine_and_coarse(phi))
        return x, fine, coarse

    @cached_property
    def _smooth(self) -> Table:
        """The smooth part on the whole window."""
        length = (1.0 + 2.0 * _MARGIN) * self._width
        omega = 2.0 * np.pi / length * np.arange(_SMOOTH + 1.0)
        return self._table(
            self._law.smooth(omega), self._window.low - _MARGIN * self._width, length
        )

    def zoom(self, end: int) -> None:
        """Tabulate a window at an end that is shorter than the last, by distance from it."""
        width = self._length(end) / _SHORTER
        length, points = (1.0 + _MARGIN) * width, 2 * _POINTS
        start = -length * round(points * _MARGIN / (1.0 + _MARGIN)) / points  # so that 0 is a point
        damping = _DAMPED / length
        omega = 2.0 * np.pi / length * np.arange(_ZOOMED + 1.0)
        phi = self._law.transform(omega, end, end * damping)
        phi = np.conj(phi) if end > 0 else phi
        whole = float(self._phi[0, 0].real)
        distance = start + length * np.linspace(0.0, 1.0, points + 1)
        distance[np.abs(distance) < 1e-9 * length] = 0.0
        kept = (distance >= 0.0) & (distance <= _USED_SHARE * width)
        x = self._edge(end) - end * distance[kept]
        narrow, growth = self._law.narrow(x), np.exp(damping * distance)
        found = []
        for each, smooth in zip(_fine_and_coarse(phi), self._smooth[1:], strict=True):
            damped = _rise(each, start, length, points)
            # By parts, since only the distribution function of the damped density is known.
            area = np.diff(growth) * 0.5 * (damped[1:] + damped[:-1])
            rise = (growth * damped - np.append(0.0, np.cumsum(area)))[kept]
            rise = rise if end < 0 else whole - float(smooth[-1]) - rise
            found.append(rise + narrow + np.interp(x, self._smooth[0], smooth))
        order = slice(None) if end < 0 else slice(None, None, -1)
        self._at_end[end].append((x[order], found[0][order], found[1][order]))

    def reach(self) -> tuple[float, float]:
        """Distance from either end that the shortest window there does not resolve."""
        low, high = (
            _CELLS * self._length(end) / _ZOOMED if self._at_end[end] else 0.0 for end in (-1, 1)
        )
        return low, high

    def tables(self) -> tuple[Distribution, Distribution]:
        """Put the pieces together, the shorter windows in place of the longer ones they cover."""
        x, *values = self._middle
        for end, pieces in self._at_end.items():
            for place, *known in pieces:
                rest = x > place[-1] if end < 0 else x < place[0]
                # What rings on a longer window is held to what a shorter one knows.
                bound, edge = (np.maximum, -1) if end < 0 else (np.minimum, 0)
                held = [bound(one[rest], own[edge]) for one, own in zip(values, known, strict=True)]
                parts = [(place, *known), (x[rest], *held)][::-end]
                x, *values = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        ends = self._window.lowest, self._window.highest
        return tabulated(x, values[0], ends), tabulated(x, values[1], ends)


def _fine_and_coarse(
    phi: NDArray[np.complex128],
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """All frequencies with the wider filters, and three quarters of them with the narrower."""
    return phi[0], phi[1, : 3 * (phi.shape[1] - 1) // 4 + 1]


def _rise(phi: NDArray[np.complex128], start: float, length: float, points: int) -> Array:
    """Distribution function on a period, from its coefficients, smoothed by the filter alone."""
    frequencies = len(phi) - 1
    kept = phi[1:] * flat_top(np.arange(1.0, frequencies + 1.0) / frequencies)
    omega = 2.0 * np.pi / length * np.arange(1.0, frequencies + 1.0)
    waves = np.zeros(points // 2 + 1, complex)
    waves[1 : frequencies + 1] = np.conj(kept * np.exp(-1j * omega * start)) / (1j * omega)
    wave = np.fft.irfft(waves, points) * (points / length)
    rise = phi[0].real * np.linspace(0.0, 1.0, points + 1)
    return np.asarray(np.append(wave, wave[0]) - wave[0] + rise)


def harmonics(gap: Array, omega: Array) -> NDArray[np.complex128]:
    """``exp(i omega gap)`` at successive multiples of a frequency; shape (gaps, frequencies).

    By repeated products, a tenth of the time of exponentials.

    Examples
    --------
    >>> np.abs(harmonics(np.array([np.pi]), np.array([1.0, 1.5, 2.0])) - [-1, -1j, 1]).max() < 1e-15
    np.True_
    """
    found = np.empty((len(omega), len(gap)), complex)
    found[0] = np.exp(1j * omega[0] * gap)
    turn = np.exp(1j * (omega[1] - omega[0]) * gap)
    for k in range(1, len(omega)):
        np.multiply(found[k - 1], turn, out=found[k])
    return np.ascontiguousarray(found.T)


def flat_top(share: Array) -> Array:
    """Low-pass filter of a frequency as a share of the highest: 1 below 0.4, 0 above 1.

    What it smooths it leaves as it is, but next to an edge: its kernel has no moments.
    """
    return np.asarray(
        np.where(share < 1.0, 0.5 * erfc((share - 0.7) / (np.sqrt(2.0) * 0.067)), 0.0)
    )


def filtered(
    phi: NDArray[np.complex128], weight: Array, steps: Sequence[Array], omega: Array
) -> NDArray[np.complex128]:
    """Sum of characteristic functions of nodes that lie apart, for two widths of a filter.

    Nodes that stand for a continuum are as good as it below half the frequency of their spacing
    and say nothing above.

    Parameters
    ----------
    phi : ndarray of complex, shape (nodes, frequencies)
    weight : ndarray, shape (nodes,)
    steps : sequence of ndarray, shape (nodes,)
        Distances of the nodes in each direction of their grid.
    omega : ndarray, shape (frequencies,)

    Returns
    -------
    ndarray of complex, shape (2, frequencies)
    """
    widest = np.max(steps, axis=0)
    apart = widest * omega[-1] > _NARROWER * _CUT[0] * 2.0 * np.pi
    close = weight[~apart] @ phi[~apart]
    share = np.outer(widest[apart] / (2.0 * np.pi), omega)
    found = []
    for cut in (1.0, _NARROWER):
        over = np.clip((share / cut - _CUT[0]) / (_CUT[1] - _CUT[0]), 0.0, 1.0)
        window = 1.0 - over * over * (3.0 - 2.0 * over)
        window *= weight[apart, None]
        found.append(close + np.einsum("gf,gf->f", window, phi[apart]))
    return np.stack(found)
