"""Distribution of a smooth function of the hyperparameters, as of the population target.

Given the hyperparameters the population target is a number ``h = E[g(p)]``. Under the Beta its
posterior is that of a smooth function of two variables whose density the hyperparameter grid gives;
it is worked out for ``logit h``, which has no edges, on a grid made finer by splines. Under other
families it is that of weighted points; averaged, the mixture of both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from bayesatk.core.engine.distribution import Averaged, Empirical, Quantity, constant
from bayesatk.core.engine.fourier_series import Series, Window, filtered, harmonics, invert
from bayesatk.core.pooling.hierarchy import HyperPosterior
from bayesatk.core.pooling.hyper_functions import between_nodes, floored
from bayesatk.core.pooling.nodes import Nodes, heaviest
from bayesatk.metrics.credit import Array

_DENSER = 2  # refined points per node in each direction
_LEFT_OUT = 1e-5  # probability of points that are left out
_FARTHEST = 650.0  # of logit h: the range of double precision
_FLAT = 1e-14  # spread of h below which it is a constant
_ENOUGH = 1e-3  # error of quantiles at which nothing more is done, in widths of the 95% interval
_MOST = 512  # frequencies


@dataclass(frozen=True)
class OnLogitScale:
    """A distribution on (0, 1) known for the logit."""

    scale: Series

    @property
    def settled(self) -> bool:
        """Whether quantiles are as exact as was asked for."""
        return self.scale.settled

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``."""
        with np.errstate(divide="ignore"):
            return self.scale.cdf(logit(np.clip(np.asarray(x, float), 0.0, 1.0)))

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        return np.asarray(expit(self.scale.quantile(probability)))

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles."""
        place, error = self.scale.quantile(probability), self.scale.stated_error(probability)
        found = expit(place)
        moved = np.maximum(expit(place + error) - found, found - expit(place - error))
        return np.asarray(moved + np.spacing(found))


class OneLaw(Protocol):
    """Posterior of the hyperparameters of one law of difficulty."""

    @property
    def nodes(self) -> Nodes:
        """Its distributions of p, with weights that sum to one."""
        ...

    @property
    def grid(self) -> HyperPosterior | None:
        """Where they come from, if from a grid."""
        ...


def distributions_of(
    families: Sequence[OneLaw],
    probability: Array,
    error: Array,
    function: Callable[[Nodes], tuple[Array, Array]],
) -> list[Quantity]:
    """Posterior distributions of functions of the difficulty distribution, within [0, 1].

    Parameters
    ----------
    families : sequence of OneLaw
        Such as `bayesatk.core.pooling.difficulty_families.FamilyPosterior`.
    probability, error : ndarray
        Of the families, with standard errors.
    function : callable
        Returns values at nodes and their complements, (nodes, m).
    """
    parts = [_of_family(one, function) for one in families]
    if len(parts) == 1:
        return parts[0]
    return [Averaged(each, probability, error) for each in zip(*parts, strict=True)]


def _of_family(family: OneLaw, function: Callable[[Nodes], tuple[Array, Array]]) -> list[Quantity]:
    if family.grid is not None:
        return on_grid(family.grid, function)
    low, high = function(family.nodes)
    return [
        Empirical(value, family.nodes.weight) for value in np.where(low <= 0.5, low, 1.0 - high).T
    ]


def on_grid(
    posterior: HyperPosterior, function: Callable[[Nodes], tuple[Array, Array]]
) -> list[Quantity]:
    """Posterior distributions of smooth functions of the Beta's hyperparameters, as above."""
    nodes = Nodes.of(posterior.x.ravel(), posterior.y.ravel(), posterior.weight)
    low, high = function(nodes)
    heavy = heaviest(posterior.weight, _LEFT_OUT)
    smooth = _Refined.of(posterior)
    made: list[Quantity] = []
    for value, rest in zip(low.T, high.T, strict=True):
        if np.ptp(value[heavy]) < _FLAT:
            made.append(constant(float(value[heavy].mean())))
            continue
        with np.errstate(divide="ignore"):
            position = np.clip(np.log(value) - np.log(rest), -_FARTHEST, _FARTHEST)
        made.append(smooth.distribution(position))
    return made


@dataclass(frozen=True)
class _Refined:
    """The hyperparameter grid made finer by splines.

    Parameters
    ----------
    posterior : HyperPosterior
    keep : ndarray of int
        Points of the refined grid, flat, that carry all but little of the probability.
    weight : ndarray
        Their probabilities.
    """

    posterior: HyperPosterior
    keep: NDArray[np.intp]
    weight: Array

    @classmethod
    def of(cls, posterior: HyperPosterior) -> "_Refined":
        logs = between_nodes(posterior, floored(posterior.log_weight), _DENSER)
        weight = np.exp(np.minimum(logs, 0.0)).ravel()
        weight /= weight.sum()
        keep = heaviest(weight, _LEFT_OUT)
        return cls(posterior, keep, weight[keep] / weight[keep].sum())

    def distribution(self, position: Array) -> OnLogitScale:
        """Distribution of a function known at the nodes."""
        table = between_nodes(self.posterior, position, _DENSER)
        value = table.ravel()[self.keep]
        steps = [np.abs(np.gradient(table, axis=axis)).ravel()[self.keep] for axis in (0, 1)]
        centre = float(self.weight @ value)
        offset = value - centre
        window = Window(float(offset.min()), float(offset.max()), centre, -np.inf, np.inf)
        law = _Points(self.weight, offset, steps)
        return OnLogitScale(invert(law, window, _ENOUGH, _MOST, 2.0 * _LEFT_OUT))


@dataclass(frozen=True)
class _Points:
    """Weighted points that stand for a continuum."""

    weight: Array
    offset: Array
    steps: list[Array]

    def transform(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        """Characteristic function of the points."""
        return filtered(harmonics(self.offset, omega), self.weight, self.steps, omega)

    def smooth(self, omega: Array) -> NDArray[np.complex128]:
        """Nothing is left out by a tilt."""
        return np.zeros((2, len(omega)), complex)

    def narrow(self, x: Array) -> Array:
        """Nothing is left out."""
        return np.zeros_like(x)
