"""Distribution of the population target: expected credit of a new question, hyperparameters out.

Given (mean, icc) the target is a number ``h = E[g(p)], p ~ Beta``. Its posterior is that of a
smooth function of two variables whose density the hyperparameter grid gives; it is worked out for
``logit h``, which has no edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline, make_interp_spline
from scipy.special import expit, logit, logsumexp

from bayesatk.core.beta_binomial import beta_binomial_means
from bayesatk.core.credit import Array, Credit
from bayesatk.core.distribution import Distribution, constant, monotone_slopes
from bayesatk.core.fourier import first_dead, invert
from bayesatk.core.hierarchy import HyperPosterior
from bayesatk.core.hyper_functions import between_nodes
from bayesatk.core.nodes import Nodes

_DENSER = 8  # refined points per node in each direction
_CELLS = 4096
_NOISE = 1e-6  # modulus of a characteristic function at the accuracy of the splines
_LIGHT = 1e-13  # probability of points that are left out
_FARTHEST = 650.0  # of logit h: the range of double precision
_FLAT = 1e-14  # spread of h below which it is a constant


@dataclass(frozen=True)
class LogitDistribution:
    """A distribution on (0, 1) tabulated in ``logit h``."""

    scale: Distribution
    error: float = 1e-7
    method: str = "quadrature"

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        with np.errstate(divide="ignore"):
            return self.scale.cdf(logit(np.clip(np.asarray(x, float), 0.0, 1.0)))

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return np.asarray(expit(self.scale.quantile(probability)))


def population_distributions(
    posterior: HyperPosterior, credits: Sequence[Credit]
) -> list[LogitDistribution | Distribution]:
    """Exact posterior distribution of the population target, one for each credit.

    Parameters
    ----------
    posterior : HyperPosterior
    credits : sequence of Credit

    Returns
    -------
    list of LogitDistribution or Distribution
    """
    nodes = Nodes.of(posterior.x.ravel(), posterior.y.ravel(), posterior.weight)
    low, high = beta_binomial_means(credits, nodes.alpha, nodes.beta)
    shape = posterior.x.shape
    found: list[LogitDistribution | Distribution] = []
    for column in range(len(credits)):
        value, rest = low[:, column].reshape(shape), high[:, column].reshape(shape)
        heavy = posterior.log_weight > np.log(_LIGHT)
        if np.ptp(value[heavy]) < _FLAT:
            found.append(constant(float(value[heavy].mean())))
            continue
        with np.errstate(divide="ignore"):
            position = np.clip(np.log(value) - np.log(rest), -_FARTHEST, _FARTHEST)
        found.append(LogitDistribution(_pushforward(posterior, position)))
    return found


def _pushforward(posterior: HyperPosterior, position: Array) -> Distribution:
    """Distribution of a smooth function of the hyperparameters, given at the nodes."""
    weight, value = _refine(posterior, position)
    centre = float(weight @ value)
    low, high = float(value.min() - centre), float(value.max() - centre)
    low, high = low - 0.02 * (high - low), high + 0.02 * (high - low)
    phi = _lattice_phi(weight, value - centre, (low, high))
    return invert(phi[: _cut(phi)], (low, high), centre, 1e-6)


def _refine(posterior: HyperPosterior, values: Array) -> tuple[Array, Array]:
    """Weights and values on a grid refined by quintic splines; flat, light points left out."""
    logs = between_nodes(posterior, posterior.log_weight, _DENSER)
    weight = np.exp(np.minimum(logs, 0.0)).ravel()
    value = between_nodes(posterior, values, _DENSER).ravel()
    keep = weight > _LIGHT * weight.max()
    return weight[keep] / weight[keep].sum(), value[keep]


def _lattice_phi(
    weight: Array, value: Array, window: tuple[float, float]
) -> NDArray[np.complex128]:
    """Characteristic function of weighted points at the window's frequencies, by a lattice."""
    low, high = window
    lower, shares = _split((value - low) / ((high - low) / _CELLS))
    mass = np.zeros(_CELLS + 4)
    for shift, share in shares.items():
        mass += np.bincount(lower + shift + 1, weights=weight * share, minlength=_CELLS + 4)
    omega = 2.0 * np.pi / (high - low) * np.arange(1.0, _CELLS // 2 + 1.0)
    return np.asarray(np.conj(np.fft.rfft(mass[1 : _CELLS + 1]))[1:] * np.exp(1j * omega * low))


def _cut(phi: NDArray[np.complex128]) -> int:
    """Frequencies to keep: up to the death of the function, which smooths points to a continuum."""
    dead = first_dead(phi, _NOISE)
    return dead if dead is not None else _CELLS // 8


def icc_distribution(posterior: HyperPosterior) -> LogitDistribution:
    """Exact posterior distribution of the intraclass correlation.

    Parameters
    ----------
    posterior : HyperPosterior

    Returns
    -------
    LogitDistribution
    """
    grid = posterior.refined(2, 1)
    density = make_interp_spline(grid.t_row, logsumexp(grid.log_weight, axis=1), k=5)
    t = np.linspace(posterior.t_row[0], posterior.t_row[-1], 40 * len(posterior.t_row) + 1)
    y = posterior.place(t, np.zeros_like(t))[1]
    return LogitDistribution(_along(t, np.exp(density(t)), y), 1e-6)


def _along(t: Array, density: Array, x: Array) -> Distribution:
    """Return the distribution of increasing x(t) when t has this unnormalised density."""
    cdf = CubicSpline(t, density).antiderivative()(t)
    slope = density / CubicSpline(t, x)(t, 1) / cdf[-1]
    cdf = np.maximum.accumulate(cdf / cdf[-1])
    return Distribution(x, cdf, monotone_slopes(x, cdf, slope), 1e-6, "quadrature")


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
