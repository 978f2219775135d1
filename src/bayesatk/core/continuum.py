"""Distribution of a mean over very many questions: a continuum of hyperparameters, little noise.

What is uncertain is mostly the hyperparameters; nodes of a grid would be a staircase. The
posterior and the conditional moments are smooth functions of them, so they are known between the
nodes, too. Given the hyperparameters the mean is nearly normal (its Edgeworth series is short);
where neighbours lie further apart than it is wide, each gets a kernel as wide as that, with the
moments of what it stands for.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from bayesatk.core.compared import ENDS, ComparedDistribution, compared
from bayesatk.core.credit import Array, Credit
from bayesatk.core.hierarchy import HyperPosterior
from bayesatk.core.hyper_functions import between_nodes
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import heaviest

_DENSER = (4, 10)  # points to a node in each direction, one after the other
_GAP = 1.0  # width of a kernel, in distances of neighbours
_REACH = 9.0  # of a kernel, in its widths
_LIGHT = 1e-11  # probability of points that are left out
_FARTHEST, _LEAST = 60.0, 1e-60  # of logits of means, and of their variances
_NEXT = 10.0  # times what the next terms of the series would add, if it were a gamma's
_POINTS = 45  # quantiles to begin with
_ROWS = 4096  # of a block of third moments


def continuum_distribution(
    posterior: HyperPosterior,
    mixture: StateMixture,
    column: int,
    enough: float = 1e-7,
    hopeless: float = np.inf,
) -> ComparedDistribution:
    """Distribution of a column's mean when it is nearly normal given the hyperparameters.

    Parameters
    ----------
    posterior : HyperPosterior
    mixture : StateMixture
        On all nodes of the posterior's grid.
    column : int
    enough, hopeless : float
        Errors of the ends of a 95% interval, with which nothing more needs to be done for it, and
        with which the distribution is of no use.

    Returns
    -------
    ComparedDistribution
        Its lesser table has half as many points each way, and differs by ten times the next
        terms of the series.
    """
    known = _smooth_moments(mixture, column)
    for denser in _DENSER:
        fine, coarse = (_Points.of(posterior, known, each) for each in (denser, denser // 2))
        found = _compared(fine, coarse, mixture.credits[column], hopeless)
        at = found.quantile(ENDS)
        _, pdf, following = fine(at)
        shape = float((_NEXT * np.abs(following) / pdf).max())
        if found.besides + found.off(ENDS) <= enough or shape > enough:
            break
    return found


def _compared(
    fine: "_Points", coarse: "_Points", credit: Credit, hopeless: float
) -> ComparedDistribution:
    """Tabulate from the least to the largest value of any point, to begin with at quantiles."""

    def evaluate(x: Array) -> tuple[Array, Array, Array]:
        cdf, pdf, following = fine(x)
        return cdf, pdf, coarse(x)[0] - _NEXT * following

    levels = expit(np.linspace(-22.0, 22.0, _POINTS))
    order = np.argsort(fine.mean)
    middle = np.interp(levels, np.cumsum(fine.weight[order]), fine.mean[order])
    reach = _REACH * fine.width
    points = np.concatenate([[(fine.mean - reach).min(), (fine.mean + reach).max()], middle])
    ends = float(credit.vector.min()), float(credit.vector.max())
    return compared(evaluate, points, ends, "continuum", hopeless)


@dataclass(frozen=True)
class _Points:
    """Points that stand for the continuum: kernels with the conditional cumulants.

    ``missing`` is the share of a kernel's variance that it should not have, ``skewness`` the third
    cumulant in units of its width.
    """

    weight: Array
    mean: Array
    width: Array
    missing: Array
    skewness: Array

    @classmethod
    def of(cls, posterior: HyperPosterior, known: tuple[Array, ...], denser: int) -> "_Points":
        """Interpolate by quintic splines; light points are left out."""
        logit_mean, log_variance, skewness, log_weight = (
            between_nodes(posterior, values, denser) for values in (*known, posterior.log_weight)
        )
        mean, spread = expit(logit_mean), np.exp(log_variance)
        gaps = (np.abs(np.gradient(mean, axis=axis)) for axis in (0, 1))
        width = np.sqrt(np.maximum(spread, (_GAP * np.maximum(*gaps)) ** 2))
        third = np.sinh(skewness) * (spread / width**2) ** 1.5
        weight = np.exp(log_weight)
        heavy = heaviest(weight.ravel() / weight.sum(), _LIGHT)
        weight, *others = (
            part.ravel()[heavy] for part in (weight, mean, width, 1.0 - spread / width**2, third)
        )
        return cls(weight / weight.sum(), *others)

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        """Distribution function, density, and what the next terms would add to the first."""
        return tuple(np.array(part) for part in zip(*map(self._at, x), strict=True))  # type: ignore[return-value]

    def _at(self, x: float) -> tuple[float, float, float]:
        z = (x - self.mean) / self.width
        near = np.abs(z) < _REACH
        below = float(self.weight[z >= _REACH].sum())
        weight, width, z = self.weight[near], self.width[near], z[near]
        half, third = 0.5 * self.missing[near], self.skewness[near]
        square = z * z
        bell = weight * np.exp(-0.5 * square) / np.sqrt(2.0 * np.pi)
        he2, he3 = square - 1.0, z * (square - 3.0)
        he5 = z * (square * (square - 10.0) + 15.0)
        odd = half * z - half**2 / 2.0 * he3 + half**3 / 6.0 * he5
        cdf = below + weight @ ndtr(z) + bell @ (odd - third / 6.0 * he2)
        following = bell @ (third**2 * (he3 / 16.0 + he5 / 72.0))
        return float(cdf), float((bell / width).sum()), float(following)


def _smooth_moments(mixture: StateMixture, column: int) -> tuple[Array, ...]:
    """Functions of the conditional mean, variance and skewness that splines can follow."""
    moments = mixture.moments
    low, high = (
        np.log(np.maximum(part[:, column], 1e-300))
        for part in (moments.node_mean, moments.node_complement)
    )
    variance = moments.node_variance[:, column]
    some = variance > _LEAST
    variance = np.where(some, variance, _LEAST)
    skewness = np.where(some, _third_moments(mixture, column), 0.0) / variance**1.5
    logit_mean = np.clip(low - high, -_FARTHEST, _FARTHEST)
    return logit_mean, np.log(variance), np.arcsinh(skewness)


def _third_moments(mixture: StateMixture, column: int) -> Array:
    """Third central moments of the mean given each node; 0 for concentrated ones."""
    states = mixture.states
    found = np.zeros(len(mixture.nodes))
    for block in mixture.blocks([column]):
        flat = block.weights.reshape(-1, block.weights.shape[-1])
        value, complement = block.value[:, 0], block.complement[:, 0]
        third = np.empty(len(flat))
        for start in range(0, len(flat), _ROWS):
            rows = flat[start : start + _ROWS]
            low, high = rows @ value, rows @ complement
            # Of the smaller of g and 1 - g, which bounds the cancellation.
            gap = np.where((low <= high)[:, None], value - low[:, None], high[:, None] - complement)
            third[start : start + _ROWS] = np.einsum("rq,rq,rq,rq->r", rows, gap, gap, gap)
        found[block.nodes] = third.reshape(len(block.nodes), -1) @ states.count
    return found / states.questions**3
