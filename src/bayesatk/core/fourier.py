"""Inverting characteristic functions on a window."""

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.credit import Array
from bayesatk.core.distribution import Distribution

DEAD = 1e-11  # modulus at which a characteristic function counts as zero
PHASE = 2.0  # largest phase step between quadrature points that they still resolve
_POINTS = 1024


def log_phi(flat: Array, phases: Array, count: Array) -> NDArray[np.complex128]:
    """Log characteristic function of each node: states' own, times their multiplicities."""
    cosine, sine = flat @ np.cos(phases), flat @ np.sin(phases)
    shape = (-1, len(count), phases.shape[1])
    with np.errstate(divide="ignore"):
        modulus = np.log(np.hypot(cosine, sine)).reshape(shape)
    angle = np.arctan2(sine, cosine).reshape(shape)
    total = np.einsum("gsf,s->gf", modulus, count) + 1j * np.einsum("gsf,s->gf", angle, count)
    return np.asarray(total, complex)


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
