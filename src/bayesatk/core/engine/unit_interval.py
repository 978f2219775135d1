"""A parameter between 0 and 1 on Gauss nodes that lie where its posterior is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import BarycentricInterpolator

from bayesatk._tools.arrays import Array
from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.engine.matched import TABLE

_NODES = 10  # Gauss nodes: their polynomial of the log density errs by less than its noise
_OUTSIDE = 1e-5  # probability left outside a shorter interval
_SHORTER = 0.6  # share of an interval, from which a shorter one is worth its nodes
_ROUNDS = 4  # intervals tried at most
_FINE = 20_001  # values at which the interpolated density is integrated


def gauss_nodes(low: float, high: float) -> tuple[Array, Array]:
    """Nodes and log weights of Gauss and Legendre's rule on an interval.

    Examples
    --------
    >>> nodes, logs = gauss_nodes(0.0, 1.0)
    >>> round(float(np.exp(logs) @ nodes**3), 12)
    0.25
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * (high - low)
    return low + half * (nodes + 1.0), np.log(half * weights)


def interval_of(nodes: Array) -> tuple[float, float]:
    """Return the ends of the interval that has these `gauss_nodes`, in rising order.

    Examples
    --------
    >>> [round(end, 12) for end in interval_of(gauss_nodes(0.25, 0.75)[0])]
    [0.25, 0.75]
    """
    within = gauss_nodes(0.0, 1.0)[0]
    width = (nodes[-1] - nodes[0]) / (within[-1] - within[0])
    low = nodes[0] - width * within[0]
    return float(low), float(low + width)


@dataclass(frozen=True)
class NodeDensity:
    """A density on an interval, by the polynomial through its logarithms at Gauss nodes.

    Parameters
    ----------
    low, high : float
    log_density : ndarray, shape (nodes,)
        At `gauss_nodes`, up to a constant; minus infinity where it is not known.

    Examples
    --------
    >>> nodes, _ = gauss_nodes(0.0, 1.0)
    >>> mean, sd = NodeDensity(0.0, 1.0, 2.0 * np.log(nodes)).moments  # of Beta(3, 1)
    >>> round(mean, 3), round(sd, 3)
    (0.75, 0.194)
    """

    low: float
    high: float
    log_density: Array

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """Even points of the interval, and their probabilities."""
        nodes, _ = gauss_nodes(self.low, self.high)
        finite = np.isfinite(self.log_density)
        x = self.low + (self.high - self.low) * (np.arange(_FINE) + 0.5) / _FINE
        logs = BarycentricInterpolator(nodes[finite], self.log_density[finite])(x)
        weight = np.exp(logs - logs.max())
        return x, weight / weight.sum()

    @property
    def distribution(self) -> Empirical:
        """Its distribution."""
        return Empirical(*self.points, np.inf, rough=TABLE)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and sd."""
        x, weight = self.points
        mean = float(weight @ x)
        return mean, float(np.sqrt(weight @ (x - mean) ** 2))

    @property
    def inside(self) -> tuple[float, float]:
        """Interval with nearly all of the probability."""
        low, high = self.distribution.quantile(np.array([_OUTSIDE, 1.0 - _OUTSIDE])).tolist()
        margin = 0.05 * (high - low)
        return max(low - margin, self.low), min(high + margin, self.high)


def density_between_0_and_1(log_density: Callable[[float], float]) -> NodeDensity:
    """Look at a density on [0, 1], and on shorter intervals while it is narrow.

    Parameters
    ----------
    log_density : callable
        Of a number, up to a constant; smooth. Asked at the nodes of every interval tried.

    Examples
    --------
    >>> steep = density_between_0_and_1(lambda x: 500.0 * x)
    >>> round(1.0 - steep.moments[0], 5), bool(steep.low > 0.9)
    (0.002, True)
    """
    low, high = 0.0, 1.0
    for _ in range(_ROUNDS):
        nodes, _ = gauss_nodes(low, high)
        logs: Any = np.array([log_density(float(node)) for node in nodes])
        density = NodeDensity(low, high, np.where(np.isfinite(logs), logs, -np.inf))
        if not np.isfinite(logs).any():
            break
        inner = density.inside
        if inner[1] - inner[0] > _SHORTER * (high - low):
            break
        low, high = inner
    return density
