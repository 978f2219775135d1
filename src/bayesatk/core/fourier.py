"""Inverting characteristic functions on a window."""

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.credit import Array
from bayesatk.core.distribution import Distribution

DEAD = 1e-11  # modulus at which a characteristic function counts as zero
PHASE = 2.0  # largest phase step between quadrature points that they still resolve
SAME = 1e-11  # difference of phases below which two points are one
_POINTS = 1024


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
    own = np.empty((len(flat), phases.shape[1]), complex)
    own.real, own.imag = flat @ np.cos(phases), flat @ np.sin(phases)
    return power_product(own.reshape(-1, len(count), phases.shape[1]), count)


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
    omega = 2.0 * np.pi / length * np.arange(1.0, len(phi) + 1.0)
    points = max(_POINTS, 8 * len(phi))
    shifted = np.conj(phi * np.exp(-1j * omega * low))
    pdf = np.fft.irfft(np.concatenate([[1.0], shifted]), points) * (points / length)
    wave = np.fft.irfft(np.concatenate([[0.0], shifted / (1j * omega)]), points)
    x: Array = np.arange(points + 1) / points
    wave = np.append(wave, wave[0]) * (points / length)
    pdf = np.append(pdf, pdf[0])
    return Distribution(centre + low + x * length, x + wave - wave[0], pdf, error, "series")
