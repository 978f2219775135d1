"""Functions of offsets as Chebyshev series, from their values at a few nodes."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bayesatk._tools.arrays import Array

_MINUS_LOG_PRECISION = 14.0  # relative to the largest value
_HALF_RANGE_MIN = 1e-6  # of offsets


class Series(NamedTuple):
    """Coefficients of Chebyshev polynomials on a range of offsets, by point.

    Parameters
    ----------
    coefficients : ndarray, shape (points, columns, degrees, ...)
        One column for all columns of offsets, or one for each.
    middle, half : ndarray, shape (points,)
        Midpoint of the range, and half its length.
    """

    coefficients: Array
    middle: Array
    half: Array

    @classmethod
    def of(cls, values: Array, middle: Array, half: Array) -> "Series":
        """Return the series with these values at `chebyshev_nodes`.

        Parameters
        ----------
        values : ndarray, shape (points, nodes, columns, ...)
        middle, half : ndarray, shape (points,)
        """
        points, size = values.shape[:2]
        if size > 1:
            coefficients = _transform(size) @ values.reshape(points, size, -1)
            values = coefficients.reshape(values.shape)
        return cls(np.moveaxis(values, 2, 1), middle, half)

    def at(self, offset: Array) -> Array:
        """Return values at offsets (points, columns, places); (points, columns, places, ...)."""
        return self.of_polynomials(self.polynomials(offset))

    def polynomials(self, offset: Array) -> Array:
        """Chebyshev polynomials at offsets (points, columns, places), by degree in a last axis."""
        x = (offset - self.middle[:, None, None]) / self.half[:, None, None]
        return _polynomials(x, self.coefficients.shape[2])

    def of_polynomials(self, polynomials: Array) -> Array:
        """Return values at the offsets of polynomials, which series on the same nodes share."""
        shape = self.coefficients.shape
        values = polynomials @ self.coefficients.reshape(*shape[:3], -1)
        return np.asarray(values.reshape(*values.shape[:3], *shape[3:]))


def chebyshev_nodes(low: Array, high: Array, width: float) -> tuple[Array, Array, Array]:
    """Return Chebyshev nodes of ranges, with the midpoint and half the length of each range.

    A series converges geometrically, the faster the further from the real axis the function is
    analytic, in halves of the range (Trefethen 2013, Approximation Theory, chapter 8).

    Parameters
    ----------
    low, high : ndarray, shape (points,)
    width : float
        Distance from the real axis up to which the function is analytic.

    Returns
    -------
    offset : ndarray, shape (points, nodes)
    middle, half : ndarray, shape (points,)
    """
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), _HALF_RANGE_MIN)
    number = 1
    if (low < high).any():
        number = 2 + int(_MINUS_LOG_PRECISION / np.arcsinh(width / half.max()))
    return middle[:, None] + half[:, None] * _places(number), middle, half


def _places(size: int) -> Array:
    return np.cos(np.pi * (np.arange(size) + 0.5) / size)


def _polynomials(x: Array, size: int) -> Array:
    """Chebyshev polynomials at x, by degree in a last axis."""
    polynomials = np.empty((size, *x.shape))
    polynomials[0] = 1.0
    polynomials[1:2] = x
    for degree in range(2, size):
        np.multiply(2.0 * x, polynomials[degree - 1], out=polynomials[degree])
        polynomials[degree] -= polynomials[degree - 2]
    return np.moveaxis(polynomials, 0, -1)


@lru_cache(maxsize=64)
def _transform(size: int) -> Array:
    """Return the matrix (degrees, nodes) that takes values at nodes to coefficients."""
    matrix = _polynomials(_places(size), size) * (2.0 / size)
    matrix[:, 0] *= 0.5
    return np.ascontiguousarray(matrix.T)
