"""Distributions given by draws or weighted points: quantiles and credible intervals."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from bayesatk._tools.arrays import Array

_LATTICE_CELLS = 1 << 16  # on which the distribution of a mean is convolved
_LATTICE_SDS = 24.0  # half width of the lattice, in sds of the mean
_TERM_SDS_MAX = 16.0  # deviation at which a single term is cut off, in sds of the mean
_LATTICE_ERROR = 1e-4  # of quantiles of a mean, in widths of the central 95%


class Empirical:
    """Empirical distribution of weighted draws or points, interpolated between them.

    Parameters
    ----------
    values, weight : ndarray, shape (points,)
        Default: equal weights.
    draws : float, optional
        Effective number of independent draws; default: ``1 / sum of squared weights``.
    between_share : float
        Share of the sd that is due to the choice of points.
    relative_error : float
        Further error of quantiles, in widths of the central 95%.

    Examples
    --------
    >>> points = Empirical(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]))
    >>> float(points.quantile(0.5)), float(points.cdf(2.0))
    (1.0, 1.0)
    """

    def __init__(
        self,
        values: Array,
        weight: Array | None = None,
        draws: float | None = None,
        between_share: float = 1.0,
        relative_error: float = 0.0,
    ) -> None:
        if weight is None:
            self._values, sorted_weight = np.sort(values), np.full(len(values), 1.0 / len(values))
        else:
            order = np.argsort(values)
            self._values, sorted_weight = values[order], weight[order]
        self._levels = np.cumsum(sorted_weight) - 0.5 * sorted_weight
        self._size = (
            1.0 / float(sorted_weight @ sorted_weight) if draws is None else max(draws, 1.0)
        )
        self._between_share, self._relative_error = between_share, relative_error

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of a value at most ``x``, interpolated linearly between points."""
        x = np.asarray(x, float)
        # Ties are an atom: the last of them has its whole probability.
        is_last_tie = np.append(np.diff(self._values) > 0.0, True)
        probability = np.interp(x, self._values[is_last_tie], self._levels[is_last_tie], left=0.0)
        return np.where(x >= self._values[-1], 1.0, probability)

    def quantile(self, probability: ArrayLike) -> Array:
        """Value exceeded with probability ``1 - probability``."""
        levels = np.asarray(probability, float)
        return np.asarray(np.interp(levels, self._levels, self._values), float)

    def stated_error(self, probability: ArrayLike) -> Array:
        """Error of quantiles: three standard errors of order statistics, and the further error."""
        levels = np.asarray(probability, float)
        # On the logit scale, so that bounds of tail probabilities are tail probabilities.
        logits = logit(np.clip(levels, 0.5 / self._size, 1.0 - 0.5 / self._size))
        three_errors = 3.0 / np.sqrt(self._size * expit(logits) * expit(-logits))
        bounds = [self.quantile(expit(logits + sign * three_errors)) for sign in (-1.0, 1.0)]
        values = self.quantile(levels)
        sampling_error = np.max([np.abs(bound - values) for bound in bounds], axis=0)
        lattice_error = self._relative_error * float(np.ptp(self.quantile([0.025, 0.975])))
        return np.asarray(
            self._between_share * sampling_error + lattice_error + np.spacing(np.abs(values))
        )


def weighted_mean_distribution(
    values: Array, share: Array, count: Array, ends: tuple[float, float]
) -> Empirical:
    """Return the distribution of a weighted mean of independent variables.

    Their distributions, centred at their means, are convolved on a lattice by Fourier transforms.

    Parameters
    ----------
    values : ndarray, shape (variables, values)
        Equally probable values of each variable.
    share : ndarray, shape (variables,)
        Weight of each variable in the mean.
    count : ndarray, shape (variables,)
        How many variables have this distribution and weight.
    ends : (float, float)
        Range of the mean.

    Examples
    --------
    >>> die = np.arange(1.0, 7.0)[None]
    >>> two_dice = weighted_mean_distribution(die, np.array([0.5]), np.array([2.0]), (1.0, 6.0))
    >>> two_dice.cdf([2.25, 3.75]).round(2).tolist()
    [0.17, 0.58]
    """
    terms = share[:, None] * values
    centre = terms.mean(axis=1, keepdims=True)
    if count.sum() == 1.0:
        return Empirical(np.clip(terms[0], *ends), draws=np.inf, relative_error=_LATTICE_ERROR)
    mean, gap = float(count @ centre[:, 0]), terms - centre
    sd = float(np.sqrt(count @ (gap**2).mean(axis=1)))
    gap = np.clip(gap, -_TERM_SDS_MAX * sd, _TERM_SDS_MAX * sd)
    low, high = (
        np.clip(count @ end(gap, axis=1), -_LATTICE_SDS * sd, _LATTICE_SDS * sd)
        for end in (np.min, np.max)
    )
    total_count = float(count.sum())
    # Every value is divided between two cells, so that the sum spreads beyond its ends.
    margin_cells = int(min(total_count, 6.0 * np.sqrt(total_count), _LATTICE_CELLS // 4)) + 2
    step = max(float(high - low) / (_LATTICE_CELLS - 2 * margin_cells), 1e-300)
    transform = np.ones(_LATTICE_CELLS // 2 + 1, complex)
    for positions, times in zip(gap / step, count, strict=True):
        cell = np.floor(positions).astype(np.intp)
        upper_share = positions - cell
        mass = np.bincount(cell % _LATTICE_CELLS, 1.0 - upper_share, _LATTICE_CELLS)
        mass += np.bincount((cell + 1) % _LATTICE_CELLS, upper_share, _LATTICE_CELLS)
        transform *= np.fft.rfft(mass / len(positions)) ** times
    index = int(np.floor(low / step)) - margin_cells + np.arange(_LATTICE_CELLS)
    mass = np.maximum(np.fft.irfft(transform), 0.0)[index % _LATTICE_CELLS]
    x, mass = np.clip(mean + step * index, *ends), mass / mass.sum()
    width = float(np.ptp(Empirical(x, mass).quantile([0.025, 0.975])))
    return Empirical(x, mass, np.inf, relative_error=_LATTICE_ERROR + step / max(width, step))


def interval(quantity: Empirical, probability: float, kind: str) -> tuple[float, float]:
    """Equal-tailed (``"eti"``) or highest-density (``"hdi"``) interval.

    Examples
    --------
    >>> uniform = Empirical((np.arange(1000) + 0.5) / 1000)
    >>> [round(end, 9) for end in interval(uniform, 0.9, "eti")]
    [0.05, 0.95]
    """
    low, high = quantity.quantile(_levels(quantity, probability, kind))
    return float(low), float(high)


def measured_interval(
    quantity: Empirical, probability: float, kind: str
) -> tuple[tuple[float, float], float]:
    """Return an interval, and the larger of the errors of its ends."""
    levels = _levels(quantity, probability, kind)
    low, high = quantity.quantile(levels)
    error = float(quantity.stated_error(levels).max())
    return (float(low), float(high)), error


def _levels(quantity: Empirical, probability: float, kind: str) -> Array:
    """Probabilities below the ends of an interval; for ``"hdi"`` of the shortest one."""
    tail = 1.0 - probability
    if kind == "eti":
        return np.array([0.5 * tail, 1.0 - 0.5 * tail])

    def width(start: ArrayLike) -> Array:
        start = np.asarray(start)
        return quantity.quantile(start + probability) - quantity.quantile(start)

    starts = np.linspace(0.0, tail, 101)
    widths = width(starts)
    narrowest = int(np.argmin(widths))
    bracket = (starts[max(narrowest - 1, 0)], starts[min(narrowest + 1, 100)])
    optimum = minimize_scalar(
        lambda p: float(width(p)), bounds=bracket, method="bounded", options={"xatol": 1e-9}
    )
    start = float(optimum.x) if optimum.fun < widths[narrowest] else float(starts[narrowest])
    return np.array([start, start + probability])
