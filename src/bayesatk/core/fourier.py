"""Characteristic functions: of sums, of points, and back to distributions on a window."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import erfc, i0

from bayesatk.core.credit import Array
from bayesatk.core.distribution import Distribution

DEAD = 1e-11  # modulus at which a characteristic function counts as zero
PHASE = 2.0  # largest phase step between quadrature points that they still resolve
SAME = 1e-11  # difference of phases below which two points are one
_POINTS = 1024
_ALIVE = 7.5  # standard deviations times frequency at which a normal has died: exp(-28)
_BETWEEN = 0.8  # share of the frequency of a spacing of which `between` leaves nothing
_WIDTH = 11  # of the kernel that spreads points over a grid: error 1e-10
_SHAPE = 2.3 * _WIDTH  # of the Kaiser-Bessel window, for twice as many cells as needed


def sum_phi(flat: Array, phases: Array, count: Array) -> NDArray[np.complex128]:
    """Characteristic function of each node's sum: the states' own, to their multiplicities.

    Parameters
    ----------
    flat : ndarray, shape (nodes * states, points)
        Probabilities of the points.
    phases : ndarray, shape (points, frequencies)
    count : ndarray, shape (states,)

    Returns
    -------
    ndarray of complex, shape (nodes, frequencies)
    """
    return power_product(own_phi(flat, phases).reshape(-1, len(count), phases.shape[1]), count)


def own_phi(flat: Array, phases: Array) -> NDArray[np.complex128]:
    """Characteristic functions of weighted points, by sums; shape (rows, frequencies)."""
    own = np.empty((len(flat), phases.shape[1]), complex)
    own.real, own.imag = flat @ np.cos(phases), flat @ np.sin(phases)
    return own


class PointTransform:
    """Characteristic functions of points with weights, by a fast transform.

    Points are spread over a grid by a Kaiser-Bessel kernel whose own transform is divided out
    (the non-uniform FFT; Greengard and Lee 2004, Fessler and Sutton 2003). Within 1e-10 of the
    sums.

    Parameters
    ----------
    place : ndarray, shape (points,)
        Where the points lie, in periods.
    frequencies : int
        The first so many multiples of ``2 pi`` per period, and 0. A power of two is fastest.

    Examples
    --------
    >>> PointTransform(np.array([0.5]), 4)(np.ones((1, 1))).real.round(6).tolist()
    [[1.0, -1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(self, place: Array, frequencies: int) -> None:
        cells = 4 * frequencies
        around = np.ceil(place * cells - _WIDTH / 2)[:, None] + np.arange(_WIDTH)
        inside = 1.0 - ((around - place[:, None] * cells) * (2.0 / _WIDTH)) ** 2
        kernel = i0(_SHAPE * np.sqrt(np.maximum(inside, 0.0))) / i0(_SHAPE)
        rows = np.repeat(np.arange(len(place)), _WIDTH)
        at = np.mod(around, cells).astype(np.int64).ravel()
        self._spread = csr_array((kernel.ravel(), (rows, at)), shape=(len(place), cells))
        root = np.sqrt(_SHAPE**2 - (np.pi * _WIDTH / cells * np.arange(frequencies + 1.0)) ** 2)
        self._blur = np.sinh(root) / root * (_WIDTH / i0(_SHAPE))

    def __call__(self, flat: Array) -> NDArray[np.complex128]:
        """Characteristic functions of rows of weights, shape (rows, frequencies + 1)."""
        own = np.fft.rfft(flat @ self._spread, axis=1)[:, : len(self._blur)]
        np.conj(own, out=own)
        own /= self._blur
        return np.asarray(own, complex)


def power_product(transform: NDArray[np.complex128], count: Array) -> NDArray[np.complex128]:
    """Product over states (axis 1), each to its whole-number multiplicity, by squaring.

    Examples
    --------
    >>> power_product(np.array([[[2.0 + 0j], [1j]]]), np.array([3.0, 2.0])).tolist()
    [[(-8+0j)]]
    """
    product = np.ones(transform.shape[::2], complex)
    left = count.astype(np.int64)
    while left.any():
        odd = left % 2 == 1
        if odd.any():
            product *= transform[:, odd].prod(axis=1)
        left = left // 2
        keep = left > 0
        transform, left = transform[:, keep] ** 2, left[keep]
    return product


def first_dead(phi: NDArray[np.complex128], level: float = DEAD) -> int | None:
    """Return where the characteristic function dies: the first of three moduli at most ``level``.

    What follows is left out. A mixture over discrete nodes revives at the frequency of their
    spacing; that is the grid's, not the posterior's.

    Examples
    --------
    >>> first_dead(np.array([1.0, 1e-5, 1e-12, 1e-12, 1e-13, 0.1])), first_dead(np.ones(5))
    (2, None)
    """
    dead = np.abs(phi) <= level
    runs = np.flatnonzero(dead[:-2] & dead[1:-1] & dead[2:])
    return int(runs[0]) if len(runs) else None


def flat_top(share: Array) -> Array:
    """Low-pass filter of a frequency as a share of the highest: 1 below 0.4, 0 above 1.

    What it smooths it leaves as it is, but next to an edge: its kernel has no moments, and all but
    1e-8 of it lies within 28 half-periods of the highest frequency.
    """
    return np.asarray(
        np.where(share < 1.0, 0.5 * erfc((share - 0.7) / (np.sqrt(2.0) * 0.067)), 0.0)
    )


def between(step: Array, omega: Array) -> Array:
    """Low-pass filter for nodes that lie a step apart, shape (nodes, frequencies).

    Nodes that stand for a continuum say nothing about frequencies near that of their spacing: 1
    below 0.2 of it, 0 above 0.7.
    """
    share = np.outer(step, omega) / (2.0 * np.pi)
    return np.asarray(0.5 * erfc(np.clip((share - 0.45) * 20.0, -7.0, 7.0)))


def normal_phi(
    weight: Array, mean: Array, variance: Array, step: Array, omega: Array
) -> NDArray[np.complex128]:
    """Characteristic function of a mixture of normals whose means lie a step apart.

    Each is worked out only where it is alive; ``omega`` rises from 0 in equal steps.
    """
    phi = np.zeros(len(omega), complex)
    with np.errstate(divide="ignore"):
        last = np.minimum(_BETWEEN * 2.0 * np.pi / step, _ALIVE / np.sqrt(variance))
    sizes = [len(omega) // 64, len(omega) // 8, len(omega)]
    ends = [*(omega[max(size - 1, 0)] for size in sizes[:-1]), np.inf]
    for size, above, upto in zip(sizes, [-1.0, *ends], ends, strict=False):
        some, part = (last > above) & (last <= upto), omega[:size]
        if some.any():
            turn = 1j * np.outer(mean[some], part) - np.outer(variance[some], 0.5 * part**2)
            phi[:size] += weight[some] @ (np.exp(turn) * between(step[some], part))
    return phi


def waves(
    phi: NDArray[np.complex128], low: float, length: float, points: int
) -> tuple[Array, Array]:
    """Distribution function and density of coefficients ``phi_j``, j = 1.., on a period from low.

    Returns
    -------
    cdf, pdf : ndarray, shape (points + 1,)
        Without their constant terms; the distribution function is 0 at both ends.
    """
    omega = 2.0 * np.pi / length * np.arange(1.0, len(phi) + 1.0)
    shifted = np.conj(phi * np.exp(-1j * omega * low)) * (points / length)
    both = np.zeros((2, len(phi) + 1), complex)
    both[0, 1:], both[1, 1:] = shifted / (1j * omega), shifted
    cdf, pdf = np.fft.irfft(both, points, axis=1)
    return np.append(cdf, cdf[0]) - cdf[0], np.append(pdf, pdf[0])


def invert(
    phi: NDArray[np.complex128], window: tuple[float, float], centre: float, error: float = 1e-9
) -> Distribution:
    """Distribution of ``centre + D`` from the characteristic function of D on a window.

    Parameters
    ----------
    phi : ndarray, shape (f,)
        ``E exp(i w_j D)`` at the window's own frequencies ``w_j = 2 pi j / length``, j = 1..f.
    window : (float, float)
        Range that holds D.
    centre : float
        Added to the points.
    error : float
        Stated error of quantiles.

    Returns
    -------
    Distribution
    """
    low, length = window[0], window[1] - window[0]
    points = max(_POINTS, 8 * len(phi))
    cdf, pdf = waves(phi, low, length, points)
    x: Array = np.arange(points + 1) / points
    return Distribution(centre + low + x * length, x + cdf, pdf + 1.0 / length, error, "series")
