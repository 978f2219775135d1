"""Distribution of a mean of independent terms on a lattice, for densities with edges.

Every term is put on one lattice, its quadrature points split over the four cells around them; the
sum is a product of discrete Fourier transforms. Terms whose density is singular at an end (all
trials right, all wrong) are no harder than others.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bayesatk.core.beta_binomial import beta_binomial_moments
from bayesatk.core.credit import Array
from bayesatk.core.distribution import Distribution, monotone_slopes
from bayesatk.core.fourier import PHASE, SAME, first_dead, power_product, sum_phi
from bayesatk.core.mixture import StateMixture, deviations, merged, node_offsets
from bayesatk.core.moments import latent_on_nodes

_ROUGH = 512
_CELLS = (9, 16)  # log2 of the fewest and most cells
_CELLS_PER_SD = (32.0, 2048.0)  # resolution, finer where there are few terms to transform
_FLOATS = 250_000  # lattice points transformed at once: 2 MB, to stay in cache
_LEVELS = np.concatenate([[0.0025, 0.005], np.arange(0.01, 1.0, 0.01), [0.995, 0.9975]])
_ROUNDING = 1e-9  # smallest error that is stated
_MIXED, _MIXED_SMOOTH = 1e-5, 3e-7  # of a mixture whose nodes stand for a continuum
_WORK = 1e7  # cells times states times nodes
_SMOOTH = 80  # frequencies of the window by which a smooth node has died
_PROBES = np.array([0.85, 0.92, 1.0])  # of the last of them
_SILENT = 1e-13  # modulus times weight of a node that has


@dataclass(frozen=True)
class _Lattice:
    """A lattice, one a fourth as coarse with the same period, and what the two have in common."""

    window: tuple[float, float]
    cells: int
    cell: float
    margin: int
    edged: NDArray[np.bool_]
    smooth: NDArray[np.complex128]

    @classmethod
    def of(
        cls, mixture: StateMixture, column: int, window: tuple[float, float], cells: int,
        edged: NDArray[np.bool_],
    ) -> "_Lattice":  # fmt: skip
        """Lay out the coarse one of so many cells; smooth nodes are transformed once for both."""
        questions = mixture.states.questions
        margin = min(cells // 8, 16 + 4 * int(np.sqrt(questions)))
        width = window[1] - window[0]
        span = float(np.ptp(mixture.credits[column].vector)) / questions
        cell = _aligned(width / (cells - 2 * margin), span)
        unit = 2.0 * np.pi / (cells * cell)
        size = min(int(_SMOOTH * 2.0 * np.pi / width / unit), cells // 2) + 1
        omega = unit * np.arange(float(size))
        smooth = _smooth_phi(mixture, column, omega, edged)
        return cls(window, cells, cell, margin, edged, smooth)

    def finer(self) -> "_Lattice":
        """Return the one with four times as many cells."""
        cells, margin = 4 * self.cells, 4 * self.margin
        return replace(self, cells=cells, margin=margin, cell=self.cell / 4.0)


def rough_distribution(
    mixture: StateMixture, column: int, window: tuple[float, float]
) -> Distribution:
    """Convolve on one lattice of 512 cells: widths of intervals to about 1e-3 of themselves."""
    edged = np.ones(len(mixture.nodes), bool)
    edged[mixture.concentrated] = False
    return _convolved(mixture, column, _Lattice.of(mixture, column, window, _ROUGH, edged))


def lattice_distribution(
    mixture: StateMixture, column: int, window: tuple[float, float]
) -> Distribution:
    """Convolve on a lattice, and on one a quarter as fine to know the error of quantiles.

    Four times their largest difference is stated, at most one cell: the lattice's own error is a
    third of the difference next to an edge and far less elsewhere; the rest of the margin is for
    the quadrature points, which both share.
    """
    moments = mixture.moments
    edged = _edged(mixture, column, window)
    terms = max(1, len(mixture.states) * int(edged.sum()))
    per_sd = np.clip(_WORK / 100.0 / terms, *_CELLS_PER_SD) / np.sqrt(moments.variance[column])
    wanted = min(per_sd * (window[1] - window[0]), _WORK / terms)
    cells = 2 ** int(np.clip(np.log2(wanted) + 1.0, *_CELLS))
    lattice = _Lattice.of(mixture, column, window, cells // 4, edged)
    fine, coarse = (_convolved(mixture, column, one) for one in (lattice.finer(), lattice))
    gap = np.abs(fine.quantile(_LEVELS) - coarse.quantile(_LEVELS)).max()
    # Of nodes that stand for a continuum: as for a Fourier series, and more where there are edges.
    floor = _ROUNDING
    if len(mixture.nodes) > 1:
        floor = _MIXED_SMOOTH + _MIXED * float(moments.weight[edged].sum())
    return replace(fine, error=float(min(4.0 * gap + floor, max(fine.error, floor))))


def _edged(mixture: StateMixture, column: int, window: tuple[float, float]) -> NDArray[np.bool_]:
    """Whether each node's characteristic function is still alive after so many frequencies.

    What has died is smooth: it needs no lattice, its few frequencies are computed as they are.
    """
    moments, questions = mixture.moments, mixture.states.questions
    mean, rest = moments.mean[column], float(moments.complement[column])
    found = np.ones(len(mixture.nodes), bool)
    found[mixture.concentrated] = False
    last = _SMOOTH * 2.0 * np.pi / (window[1] - window[0])
    for block in mixture.blocks([column]):
        gap = deviations(block, 0, mean, rest) / questions
        if float(np.abs(np.diff(gap)).max()) * last <= PHASE:
            flat, gap = merged(block.weights, gap, SAME / last)
            phi = sum_phi(flat, np.outer(gap, last * _PROBES), mixture.states.count)
            found[block.nodes] = moments.weight[block.nodes] * np.abs(phi).max(axis=1) > _SILENT
    return found


def _smooth_phi(
    mixture: StateMixture, column: int, omega: Array, edged: NDArray[np.bool_]
) -> NDArray[np.complex128]:
    """Characteristic functions of the smooth nodes at low frequencies, mixed."""
    moments, questions = mixture.moments, mixture.states.questions
    mean, rest = moments.mean[column], float(moments.complement[column])
    phi = np.zeros(len(omega), complex)
    for block in mixture.blocks([column], only=~edged):
        gap = deviations(block, 0, mean, rest) / questions
        flat, gap = merged(block.weights, gap, SAME / omega[-1])
        own = sum_phi(flat, np.outer(gap, omega), mixture.states.count)
        phi += moments.weight[block.nodes] @ own
    return phi


def _convolved(mixture: StateMixture, column: int, lattice: _Lattice) -> Distribution:
    """Distribution on a lattice; its error is stated as one cell.

    Points are split over four cells, keeping their first three moments: splitting over two would
    add up to a quarter of a squared cell to the variance of every term.
    """
    moments, window = mixture.moments, lattice.window
    cells, cell = lattice.cells, lattice.cell
    top = float(moments.complement[column]) - (1.0 - mixture.credits[column].vector.max())
    omega = 2.0 * np.pi / (cells * cell) * np.arange(cells // 2 + 1)
    offset, variance = node_offsets(mixture, column)
    phi = np.zeros(len(omega), complex)
    # A narrow node is all but a point: split over cells like any other, it cannot ring.
    lower, shares = split((offset - top) / cell)
    logs = -np.outer(variance, 0.5 * omega**2)
    for shift, share in shares.items():
        turn = np.exp(logs - 1j * np.outer(lower + shift, omega * cell))
        phi += (moments.weight[mixture.concentrated] * share) @ turn
    phi += _lattice_phi(mixture, column, cells, cell, top, lattice.edged)
    # The lattice counts from `top`, characteristic functions from the mean; the transform of numpy
    # turns the other way.
    low = slice(len(lattice.smooth))
    phi[low] += np.conj(lattice.smooth) * np.exp(1j * omega[low] * top)
    dead = first_dead(phi)
    if dead is not None:
        phi[dead:] = 0.0
    first = int(np.floor((window[0] - top) / cell)) - lattice.margin
    mass = np.roll(np.fft.irfft(phi, cells), -first)
    x = top + cell * (first + np.arange(cells))
    cdf = np.maximum.accumulate(np.clip(_below(mass), 0.0, 1.0))
    inside = (x > window[0] + 0.1 * cell) & (x < window[1] - 0.1 * cell)
    x = moments.mean[column] + np.concatenate([[window[0]], x[inside], [window[1]]])
    cdf = np.concatenate([[0.0], cdf[inside], [1.0]])
    pdf = np.concatenate([[0.0], mass[inside] / cell, [0.0]])
    return Distribution(x, cdf, monotone_slopes(x, cdf, pdf), cell, "lattice")


def _aligned(cell: float, span: float) -> float:
    """Widen cells until a question that is all right or all wrong falls on a lattice point.

    So does then every sum of such questions: what is all but certain stays in its place.
    """
    return span / np.floor(span / cell) if span > cell else cell


def _below(mass: Array) -> Array:
    """Probability below each lattice point.

    A point stands for a hat of one cell either side, half of which lies below it: the trapezoid
    rule. Where masses vary smoothly its Euler-Maclaurin term leaves an error of fourth order; next
    to an atom it would overshoot.
    """
    around = np.stack([np.roll(mass, 1), mass, np.roll(mass, -1)])
    least = np.maximum(around.min(axis=0), 0.0)
    return (
        np.cumsum(mass) - 0.5 * mass - np.clip(np.gradient(mass) / 12.0, -0.1 * least, 0.1 * least)
    )


def _lattice_phi(
    mixture: StateMixture,
    column: int,
    cells: int,
    cell: float,
    top: float,
    edged: NDArray[np.bool_],
) -> NDArray[np.complex128]:
    """Discrete Fourier transform of the lattice distribution, mixed over the nodes with edges."""
    moments, questions = mixture.moments, mixture.states.questions
    mean, rest = moments.mean[column], float(moments.complement[column])
    phi = np.zeros(cells // 2 + 1, complex)
    refine, size = _refinement(mixture, column, cell), _FLOATS // (len(mixture.states) * cells)
    for block in mixture.blocks([column], refine, max(1, size), edged):
        place = (deviations(block, 0, mean, rest) - top) / questions / cell
        lower, shares = split(place)
        rows = np.tile(np.arange(len(place)), len(shares))
        points = np.concatenate([lower + shift for shift in shares]) % cells
        values = np.concatenate(list(shares.values()))
        spread = csr_array((values, (rows, points)), shape=(len(place), cells))
        flat = block.weights.reshape(-1, block.weights.shape[-1])
        transform = np.fft.rfft(flat @ spread, axis=1).reshape(*block.weights.shape[:2], -1)
        phi += moments.weight[block.nodes] @ power_product(transform, mixture.states.count)
    return phi


def split(place: Array) -> tuple[NDArray[np.int64], dict[int, Array]]:
    """Cubic Lagrange shares of the four lattice points around each place."""
    lower = np.floor(place).astype(np.int64)
    s = place - lower
    return lower, {
        -1: -s * (s - 1) * (s - 2) / 6,
        0: (s + 1) * (s - 1) * (s - 2) / 2,
        1: -(s + 1) * s * (s - 2) / 2,
        2: (s + 1) * s * (s - 1) / 6,
    }


def _refinement(mixture: StateMixture, column: int, cell: float) -> float:
    """Return how much denser the points must lie to fill the lattice.

    Less is enough when many questions carry the variance and smooth each other.
    """
    widest = 0.0
    for _, rule in mixture.rules():
        value, _ = latent_on_nodes([mixture.credits[column]], rule)
        widest = max(widest, float(np.abs(np.diff(value[:, 0])).max()))
    states, node = mixture.states, int(np.argmax(mixture.nodes.weight))
    a = mixture.nodes.alpha[node] + states.successes
    b = mixture.nodes.beta[node] + (states.trials - states.successes)
    variance = beta_binomial_moments([mixture.credits[column]], a, b)[2][:, 0]
    total, squares = float(states.count @ variance), float(states.count @ variance**2)
    smoothing = max(4.0, 512.0 / max(total**2 / max(squares, 1e-300), 1.0) ** 1.5)
    return float(np.clip(widest / states.questions / cell, 1.0, smoothing))
