"""Exact distribution of a mean of independent posterior terms, mixed over nodes.

The mean over questions of ``g(p_a)`` is, given a node, a sum of independent bounded terms of few
kinds, so its characteristic function is a product of powers. It is inverted on a window that a
Chernoff bound proves to hold all but 1e-11 of the probability:

* a Fourier series where the characteristic function, as measured, has died out (density smooth);
* else a lattice of 4096 to 65536 mean-preserving cells and an FFT (density with edges: few
  questions carry the variance, or all are saturated).

One question needs neither: ``g`` is monotone and the Beta distribution function is at hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import betainc, expit, logsumexp

from bayesatk.core.credit import Array, Credit
from bayesatk.core.laws import binomial_expectation
from bayesatk.core.mixture import Block, StateMixture, beta_binomial_moments
from bayesatk.core.moments import latent_on_nodes

_LOST = 1e-11  # probability allowed outside the window, per side
_DEAD = 1e-11  # modulus at which the characteristic function counts as zero
_FREQUENCIES = 20  # to begin with
_MOST_FREQUENCIES = 400
_PHASE = 2.4  # largest phase step between quadrature points that they still resolve
_POINTS = 1024
_LATTICE = (12, 16)  # log2 of the fewest and most cells
_LATTICE_WORK = 1e7  # cells times states times nodes that buy a finer lattice
_KNOWN = 1e-28  # variance below which a mean is a known number
_TILTS = np.array([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 8.0, 10.0, 14.0, 20.0, 30.0, 50.0])


@dataclass(frozen=True)
class Distribution:
    """A distribution function tabulated with its density, joined by cubic Hermite pieces.

    Parameters
    ----------
    x, cdf, pdf : ndarray, shape (points,)
        Increasing points, the distribution function and the density there.
    error : float
        Numerical error of quantiles, absolute.
    method : str
        ``"series"``, ``"lattice"``, ``"quadrature"`` or ``"constant"``.

    Examples
    --------
    >>> uniform = Distribution(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2), 0.0, "beta")
    >>> uniform.quantile([0.25, 0.5]).tolist(), uniform.cdf(0.75).item()
    ([0.25, 0.5], 0.75)
    """

    x: Array
    cdf_values: Array
    pdf: Array
    error: float
    method: str

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        x = np.asarray(x, float)
        if len(self.x) == 1:
            return np.asarray(x >= self.x[0], float)
        inside = CubicHermiteSpline(self.x, self.cdf_values, self.pdf)(
            np.clip(x, self.x[0], self.x[-1])
        )
        return np.where(x < self.x[0], 0.0, np.where(x >= self.x[-1], 1.0, np.clip(inside, 0, 1)))

    def quantile(self, probability: ArrayLike) -> Array:
        """Smallest value that is exceeded with probability ``1 - probability``."""
        p = np.asarray(probability, float)
        if len(self.x) == 1:
            return np.full(p.shape, self.x[0])
        table = np.maximum.accumulate(self.cdf_values)
        cell = np.clip(np.searchsorted(table, p) - 1, 0, len(self.x) - 2)
        low, high = self.x[cell], self.x[cell + 1]
        for _ in range(45):  # bisection: 1e-13 of a cell
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))


def constant(value: float) -> Distribution:
    """Return the distribution of a known value."""
    return Distribution(np.array([value]), np.ones(1), np.zeros(1), 0.0, "constant")


@dataclass(frozen=True)
class MonotoneImage:
    """Distribution of a non-decreasing ``g(p)`` when p is a mixture of Betas.

    Parameters
    ----------
    vector : ndarray
        Non-decreasing credit vector of ``g``.
    a, b, weight : ndarray, shape (nodes,)
        Beta parameters and probabilities of the components.
    """

    vector: Array
    a: Array
    b: Array
    weight: Array
    error: float = 1e-12
    method: str = "beta"

    def _p_cdf(self, logit: Array) -> Array:
        p, q = expit(logit), expit(-logit)
        low = self.weight @ betainc(self.a[:, None], self.b[:, None], p)
        high = self.weight @ betainc(self.b[:, None], self.a[:, None], q)
        return np.where(logit < 0, low, 1.0 - high)

    def _g(self, logit: Array) -> Array:
        return binomial_expectation(
            self.vector[:, None], -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        )[0][:, 0]

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        x = np.asarray(x, float)
        found = self._p_cdf(_bisect(self._g, x.ravel())).reshape(x.shape)
        return np.where(x < self.vector[0], 0.0, np.where(x >= self.vector[-1], 1.0, found))

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        p = np.asarray(probability, float)
        return self._g(_bisect(self._p_cdf, p.ravel())).reshape(p.shape)


def _bisect(function: Callable[[Array], Array], target: Array) -> Array:
    """Solve ``function(logit) = target`` for non-decreasing functions, all targets at once."""
    low, high = np.full(target.shape, -700.0), np.full(target.shape, 700.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = function(middle) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


class HasQuantile(Protocol):
    """Anything with quantiles."""

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        ...


def interval(distribution: HasQuantile, probability: float, kind: str) -> tuple[float, float]:
    """Equal-tailed (``"eti"``) or highest-density (``"hdi"``) interval.

    Examples
    --------
    >>> uniform = Distribution(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2), 0.0, "beta")
    >>> [round(end, 9) for end in interval(uniform, 0.9, "eti")]
    [0.05, 0.95]
    """
    tail = 1.0 - probability
    if kind == "eti":
        low, high = distribution.quantile([0.5 * tail, 1.0 - 0.5 * tail])
        return float(low), float(high)

    def width(start: ArrayLike) -> Array:
        start = np.asarray(start)
        return distribution.quantile(start + probability) - distribution.quantile(start)

    starts = np.linspace(0.0, tail, 101)
    widths = width(starts)
    best = int(np.argmin(widths))
    around = (starts[max(best - 1, 0)], starts[min(best + 1, 100)])
    found = minimize_scalar(
        lambda p: float(width(p)), bounds=around, method="bounded", options={"xatol": 1e-9}
    )
    start = float(found.x) if found.fun < widths[best] else float(starts[best])
    return float(distribution.quantile(start)), float(distribution.quantile(start + probability))


def mean_distributions(mixture: StateMixture) -> list[Distribution | MonotoneImage]:
    """Exact posterior distribution of the mean over questions, one for each credit.

    Parameters
    ----------
    mixture : StateMixture

    Returns
    -------
    list of Distribution or MonotoneImage
        With ``cdf``, ``quantile`` and the numerical ``error`` of quantiles: 1e-9 (series), one
        cell (lattice), 1e-12 (one question).
    """
    found: dict[int, Distribution | MonotoneImage] = {}
    variance = mixture.moments.variance
    for i, credit in enumerate(mixture.credits):
        if variance[i] <= _KNOWN:
            found[i] = constant(float(mixture.moments.mean[i]))
        elif mixture.states.questions == 1 and (np.diff(credit.vector) >= 0).all():
            found[i] = _one_question(mixture, credit)
    todo = [i for i in range(len(mixture.credits)) if i not in found]
    windows = _windows(mixture, todo) if todo else {}
    todo = _try_series(mixture, todo, windows, found)
    found.update({i: _lattice(mixture, i, windows[i]) for i in todo})
    return [found[i] for i in range(len(mixture.credits))]


def _one_question(mixture: StateMixture, credit: Credit) -> MonotoneImage:
    c, n = mixture.states.successes[0], mixture.states.trials[0]
    nodes = mixture.nodes
    return MonotoneImage(credit.vector, nodes.alpha + c, nodes.beta + (n - c), nodes.weight)


def _deviations(block: Block, position: int, mean: float, rest: float) -> Array:
    """``g - mean`` at the quadrature points, from whichever of g and 1 - g is smaller."""
    if mean <= 0.5:
        return block.value[:, position] - mean
    return rest - block.complement[:, position]


def _node_offsets(mixture: StateMixture, column: int) -> tuple[Array, Array]:
    """Mean relative to the overall mean, and variance, of the concentrated nodes."""
    moments, nodes = mixture.moments, mixture.concentrated
    mean, rest = moments.mean[column], moments.weight @ moments.node_complement[:, column]
    low = moments.node_mean[nodes, column] - mean
    high = rest - moments.node_complement[nodes, column]
    return np.where(mean <= 0.5, low, high), moments.node_variance[nodes, column]


def _windows(mixture: StateMixture, columns: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Range of ``S - mean`` that holds all but _LOST on either side, by Chernoff's bound."""
    moments, questions = mixture.moments, mixture.states.questions
    rest = moments.weight @ moments.node_complement
    sd = np.sqrt(moments.variance)
    signed = np.concatenate([_TILTS, -_TILTS])
    logs = np.full((len(columns), len(mixture.nodes), len(signed)), -np.inf)
    with np.errstate(divide="ignore", over="ignore"):
        for block in mixture.blocks(columns):
            flat = block.weights.reshape(-1, block.weights.shape[-1])
            for i, column in enumerate(columns):
                gap = _deviations(block, i, moments.mean[column], rest[column])
                exponent = np.outer(gap, signed / sd[column] / questions)
                top = exponent.max(axis=0)
                term = np.log(flat @ np.exp(exponent - top)) + top
                term[np.isneginf(term)] = np.inf  # underflow: this tilt proves nothing
                shaped = term.reshape(*block.weights.shape[:2], -1)
                logs[i, block.nodes] = np.einsum("gst,s->gt", shaped, mixture.states.count)
    windows = {}
    for i, column in enumerate(columns):
        offset, variance = _node_offsets(mixture, column)
        tilt = signed / sd[column]
        logs[i, mixture.concentrated] = np.outer(offset, tilt) + np.outer(variance, 0.5 * tilt**2)
        bound = logsumexp(logs[i], b=moments.weight[:, None], axis=0) - np.log(_LOST)
        upper, lower = np.split(bound / tilt, 2)
        vector = mixture.credits[column].vector
        high = min(float(np.min(upper)), rest[column] - (1.0 - vector.max()))
        low = max(float(np.max(lower)), vector.min() - moments.mean[column])
        windows[column] = (low, high)
    return windows


def _log_phi(flat: Array, phases: Array, count: Array) -> Array:
    """Log characteristic function of each node: states' own, times their multiplicities."""
    cosine, sine = flat @ np.cos(phases), flat @ np.sin(phases)
    shape = (-1, len(count), phases.shape[1])
    with np.errstate(divide="ignore"):
        modulus = np.log(np.hypot(cosine, sine)).reshape(shape)
    angle = np.arctan2(sine, cosine).reshape(shape)
    return np.einsum("gsf,s->gf", modulus, count) + 1j * np.einsum("gsf,s->gf", angle, count)


def _try_series(
    mixture: StateMixture,
    columns: list[int],
    windows: dict[int, tuple[float, float]],
    found: dict[int, Distribution | MonotoneImage],
) -> list[int]:
    """Add what a Fourier series settles to ``found`` and return the columns it does not.

    A column whose characteristic function is still alive gets one more try, with as many
    frequencies as it would need if its logarithm kept falling quadratically.
    """
    needed = dict.fromkeys(columns, _FREQUENCIES)
    for _ in range(2):
        trial = [i for i in columns if i not in found and needed[i] <= _MOST_FREQUENCIES]
        ends = _series(mixture, trial, windows, needed, found) if trial else {}
        for i, modulus in ends.items():
            decay = np.log(_DEAD) / np.log(min(modulus, 1.0 - 1e-9))
            needed[i] = int(1.2 * needed[i] * np.sqrt(decay)) + 4
    return [i for i in columns if i not in found]


def _series(
    mixture: StateMixture,
    columns: Sequence[int],
    windows: dict[int, tuple[float, float]],
    needed: dict[int, int],
    found: dict[int, Distribution | MonotoneImage],
) -> dict[int, float]:
    """Fourier series on the window where the characteristic function dies out.

    Returns
    -------
    dict of column -> float
        Its modulus at the highest frequency, for the columns where it does not.
    """
    moments, questions = mixture.moments, mixture.states.questions
    rest = moments.weight @ moments.node_complement
    omega, phi, resolved = {}, {}, dict.fromkeys(columns, True)
    for i in columns:
        offset, variance = _node_offsets(mixture, i)
        unit = 2.0 * np.pi / (windows[i][1] - windows[i][0])
        omega[i] = unit * np.arange(1, needed[i] + 1)
        logs = 1j * np.outer(offset, omega[i]) - np.outer(variance, 0.5 * omega[i] ** 2)
        phi[i] = moments.weight[mixture.concentrated] @ np.exp(logs)
    for block in mixture.blocks(columns):
        flat = block.weights.reshape(-1, block.weights.shape[-1])
        for position, i in enumerate(columns):
            gap = _deviations(block, position, moments.mean[i], rest[i])
            step = float(np.abs(np.diff(gap)).max()) * omega[i][-1] / questions
            resolved[i] = resolved[i] and step <= _PHASE
            if resolved[i]:
                logs = _log_phi(flat, np.outer(gap, omega[i] / questions), mixture.states.count)
                phi[i] += moments.weight[block.nodes] @ np.exp(logs)
    ends = {i: float(np.abs(phi[i][-3:]).max()) if resolved[i] else 1.0 for i in columns}
    alive = {i: modulus for i, modulus in ends.items() if modulus > _DEAD}
    for i in set(columns) - set(alive):
        found[i] = _invert(phi[i], omega[i], windows[i], moments.mean[i])
    return alive


def _invert(
    phi: NDArray[np.complex128], omega: Array, window: tuple[float, float], mean: float
) -> Distribution:
    low, length = window[0], window[1] - window[0]
    points = max(_POINTS, 8 * len(phi))
    shifted = np.conj(phi * np.exp(-1j * omega * low))
    pdf = np.fft.irfft(np.concatenate([[1.0], shifted]), points) * (points / length)
    wave = np.fft.irfft(np.concatenate([[0.0], shifted / (1j * omega)]), points)
    x = np.arange(points + 1) / points
    wave = np.append(wave, wave[0]) * (points / length)
    pdf = np.append(pdf, pdf[0])
    return Distribution(mean + low + x * length, x + wave - wave[0], pdf, 1e-9, "series")


def _lattice(mixture: StateMixture, column: int, window: tuple[float, float]) -> Distribution:
    """Convolve on a lattice; points are split over four cells, keeping their first three moments.

    Splitting over two would add up to a quarter of a squared cell to the variance of every term.
    """
    moments = mixture.moments
    work = _LATTICE_WORK / (len(mixture.states) * len(mixture.nodes))
    cells = 2 ** int(np.clip(np.log2(work), *_LATTICE))
    margin = min(cells // 8, 16 + 4 * int(np.sqrt(mixture.states.questions)))
    cell = (window[1] - window[0]) / (cells - 2 * margin)
    omega = 2.0 * np.pi / (cells * cell) * np.arange(cells // 2 + 1)
    offset, variance = _node_offsets(mixture, column)
    phi = np.zeros(len(omega), complex)
    # A narrow node is all but a point: split over cells like any other, it cannot ring.
    lower, shares = _split(offset / cell)
    logs = -np.outer(variance, 0.5 * omega**2)
    for shift, share in shares.items():
        turn = np.exp(logs - 1j * np.outer(lower + shift, omega * cell))
        phi += (moments.weight[mixture.concentrated] * share) @ turn
    phi += _lattice_phi(mixture, column, cells, cell)
    first = int(np.floor(window[0] / cell)) - margin
    mass = np.roll(np.fft.irfft(phi, cells), -first)
    x = cell * (first + np.arange(cells))
    # A lattice point stands for a hat of one cell either side: half of it lies below the point.
    cdf = np.maximum.accumulate(np.clip(np.cumsum(mass) - 0.5 * mass, 0.0, 1.0))
    inside = (x > window[0] + 0.1 * cell) & (x < window[1] - 0.1 * cell)
    x = moments.mean[column] + np.concatenate([[window[0]], x[inside], [window[1]]])
    cdf = np.concatenate([[0.0], cdf[inside], [1.0]])
    pdf = np.concatenate([[0.0], mass[inside] / cell, [0.0]])
    return Distribution(x, cdf, monotone_slopes(x, cdf, pdf), cell, "lattice")


def monotone_slopes(x: Array, cdf: Array, pdf: Array) -> Array:
    """Densities lowered, where they must be, for the cubic pieces to increase throughout.

    The bound of three times the smaller neighbouring secant is Fritsch and Carlson's (1980).
    """
    secant = np.diff(cdf) / np.diff(x)
    bound = 3.0 * np.minimum(np.append(secant, np.inf), np.insert(secant, 0, np.inf))
    return np.clip(pdf, 0.0, bound)


def _lattice_phi(
    mixture: StateMixture, column: int, cells: int, cell: float
) -> NDArray[np.complex128]:
    """Discrete Fourier transform of the lattice distribution, mixed over the resolved nodes."""
    moments, questions = mixture.moments, mixture.states.questions
    mean, rest = moments.mean[column], float(moments.weight @ moments.node_complement[:, column])
    phi = np.zeros(cells // 2 + 1, complex)
    for block in mixture.blocks([column], _refinement(mixture, column, cell)):
        place = _deviations(block, 0, mean, rest) / questions / cell
        lower, shares = _split(place)
        rows = np.tile(np.arange(len(place)), len(shares))
        points = np.concatenate([lower + shift for shift in shares]) % cells
        values = np.concatenate(list(shares.values()))
        spread = csr_array((values, (rows, points)), shape=(len(place), cells))
        for node, weights in zip(block.nodes, block.weights, strict=True):
            transform = np.fft.rfft(weights @ spread, axis=1)
            phi += moments.weight[node] * _power_product(transform, mixture.states.count)
    return phi


def _split(place: Array) -> tuple[NDArray[np.int64], dict[int, Array]]:
    """Cubic Lagrange shares of the four lattice points around each place."""
    lower = np.floor(place).astype(np.int64)
    s = place - lower
    return lower, {
        -1: -s * (s - 1) * (s - 2) / 6,
        0: (s + 1) * (s - 1) * (s - 2) / 2,
        1: -(s + 1) * s * (s - 2) / 2,
        2: (s + 1) * s * (s - 1) / 6,
    }


def _power_product(transform: NDArray[np.complex128], count: Array) -> NDArray[np.complex128]:
    """Product of rows raised to their whole-number multiplicities, by repeated squaring."""
    product = np.ones(transform.shape[1], complex)
    left = count.astype(np.int64)
    while left.any():
        odd = transform[left % 2 == 1]
        if len(odd):
            product *= odd.prod(axis=0)
        left = left // 2
        keep = left > 0
        transform, left = transform[keep] ** 2, left[keep]
    return product


def _refinement(mixture: StateMixture, column: int, cell: float) -> float:
    """How much denser the points must lie to fill the lattice: less when many questions smooth it."""
    widest = 0.0
    for _, rule in mixture.rules():
        value, _ = latent_on_nodes([mixture.credits[column]], rule)
        widest = max(widest, float(np.abs(np.diff(value[:, 0])).max()))
    states, node = mixture.states, int(np.argmax(mixture.nodes.weight))
    a = mixture.nodes.alpha[node] + states.successes
    b = mixture.nodes.beta[node] + states.trials - states.successes
    variance = beta_binomial_moments([mixture.credits[column]], a, b)[2][:, 0]
    carrying = (states.count @ variance) ** 2 / max(states.count @ variance**2, 1e-300)
    smoothing = max(4.0, 512.0 / float(carrying) ** 1.5)
    return float(np.clip(widest / states.questions / cell, 1.0, smoothing))
