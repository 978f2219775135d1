"""A distribution function in a table that is refined about some points."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from bayesatk.core.corners import Ripple
from bayesatk.core.credit import Array

_ROUNDING = 1.0 + 1e-9  # of points on the rim of two rings


@dataclass(frozen=True)
class RefinedTable:
    """A distribution function with its density, and how both differ with half the effort."""

    x: Array
    cdf: Array
    pdf: Array
    doubt: Array
    doubt_pdf: Array

    def corrected(self, centre: float, ripples: Sequence[Ripple]) -> "RefinedTable":
        """Add corrections about a centre, each on its own points: the finer, the nearer."""
        ring = centre + _rings(ripples)
        mine, its = _spacing(self.x), _spacing(ring)
        # What another centre has refined stays as fine as it is.
        kept = (np.abs(self.x - centre) > ripples[0].reach * _ROUNDING) | (
            mine < np.interp(self.x, ring, its)
        )
        ring = ring[its <= np.interp(ring, self.x, mine)]
        table = self._taken(kept).joined(self._at(ring))
        offset = table.x - centre
        for ripple in ripples:
            near = np.abs(offset) <= ripple.reach * _ROUNDING
            cdf, pdf = _read(ripple.offset, ripple.cdf, ripple.pdf, offset[near])
            table.cdf[near] += cdf
            table.pdf[near] += pdf
        return table

    def joined(self, other: "RefinedTable") -> "RefinedTable":
        """Return the points of both, in order."""
        order = np.argsort(np.concatenate([self.x, other.x]), kind="stable")
        return RefinedTable(
            *(
                np.concatenate([mine, its])[order]
                for mine, its in zip(self._columns, other._columns, strict=True)
            )
        )

    def _taken(self, kept: NDArray[np.bool_]) -> "RefinedTable":
        return RefinedTable(*(column[kept] for column in self._columns))

    def believed(self, centre: float, ripple: Ripple) -> "RefinedTable":
        """Take out of the doubt what is known to be a centre's, and has been corrected."""
        near = np.abs(self.x - centre) <= ripple.offset[-1]
        doubt, doubt_pdf = self.doubt.copy(), self.doubt_pdf.copy()
        cdf, pdf = _read(ripple.offset, ripple.cdf, ripple.pdf, self.x[near] - centre)
        doubt[near] -= cdf
        doubt_pdf[near] -= pdf
        return replace(self, doubt=doubt, doubt_pdf=doubt_pdf)

    def _at(self, x: Array) -> "RefinedTable":
        known = _read(self.x, self.cdf, self.pdf, x)
        return RefinedTable(x, *known, *_read(self.x, self.doubt, self.doubt_pdf, x))

    @property
    def _columns(self) -> tuple[Array, ...]:
        return self.x, self.cdf, self.pdf, self.doubt, self.doubt_pdf


def _spacing(x: Array) -> Array:
    """Distance of every point from its nearer neighbour."""
    gap = np.diff(x)
    return np.asarray(np.minimum(np.append(gap, np.inf), np.insert(gap, 0, np.inf)))


def _rings(ripples: Sequence[Ripple]) -> Array:
    """Offsets of every correction that lie beyond the reach of the next, in order."""
    inner = [*(ripple.reach for ripple in ripples[1:]), -1.0]
    rings = []
    for ripple, next_reach in zip(ripples, inner, strict=True):
        away = np.abs(ripple.offset)
        rings.append(ripple.offset[(away <= ripple.reach) & (away > next_reach * _ROUNDING)])
    return np.sort(np.concatenate(rings))


def _read(x: Array, value: Array, slope: Array, at: Array) -> tuple[Array, Array]:
    spline = CubicHermiteSpline(x, value, slope)
    return np.asarray(spline(at)), np.asarray(spline(at, 1))
