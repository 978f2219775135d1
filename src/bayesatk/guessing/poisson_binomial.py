"""The Poisson-binomial distribution with relative accuracy in both tails, to any depth.

A tail is computed under exponential tilting: every ``p`` becomes ``p e^s / (1 - p + p e^s)`` with
``s`` such that the point of interest is the mean, where masses are large; the factor back is minus
a Kullback-Leibler divergence, a sum of terms of one sign. Values are logarithms, so that those
below the smallest double exist too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayesatk.guessing.bernoulli_sums import DIRECT, Window, bernoulli_sum
from bayesatk.metrics.credit import Array

_BODY = 1.5  # standard deviations around the mean within which transforms are accurate enough
_SPAN = 2.0  # standard deviations around a tilted mean served by one tilt
_STEEP = 300.0  # largest fall of the tilting factor within one such stretch
_OVERFLOW = 600.0  # tilting parameter whose exponential a double may not hold
_NORMAL = -640.0  # logarithms of directly summed masses below this come from subnormal numbers


def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(x))`` for ``x <= 0``, without cancellation.

    Examples
    --------
    >>> log1mexp(-1e-20).round(9).item(), log1mexp(-0.0).item()
    (-46.05170186, -inf)
    """
    x = np.asarray(x, float)
    with np.errstate(divide="ignore"):
        return np.where(x > -np.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


@dataclass(frozen=True)
class _Stretch:
    """Log masses and log tails on consecutive counts, one side of the mean."""

    first: int
    log_mass: Array
    log_tail: Array


class PoissonBinomialLaw:
    """Number of successes of independent trials with probabilities of their own.

    Parameters
    ----------
    p : ndarray, shape (trials,)
        Success probabilities in [0, 1].

    Notes
    -----
    Immutable to its users; logarithms once computed are kept. On either side of the mean the
    table holds the tail that is small there, ``P(X >= x)`` above and ``P(X <= x)`` below.

    Examples
    --------
    >>> law = PoissonBinomialLaw(np.full(1000, 0.5))
    >>> round(float(law.log_upper(np.array([1000]))[0] / np.log(2)), 9)  # 2^-1000
    -1000.0
    """

    def __init__(self, p: Array) -> None:
        inside = p[(p > 0.0) & (p < 1.0)]
        self.size = len(p)
        self.sure = int(np.count_nonzero(p == 1.0))
        self._p, self._count = np.unique(inside, return_counts=True)
        self._q = 1.0 - self._p
        self._free = int(self._count.sum())
        self._mean = float(self._count @ self._p)
        self.mean = self.sure + self._mean
        self.variance = float(self._count @ (self._p * self._q))

    @property
    def low(self) -> int:
        """Smallest possible count."""
        return self.sure

    @property
    def high(self) -> int:
        """Largest possible count."""
        return self.sure + self._free

    @property
    def window(self) -> Window:
        """Masses of all counts but those with a total probability below 1e-19."""
        body = self._body
        return Window(body.first + self.sure, body.mass, self.mean, self.variance)

    def log_mass(self, x: NDArray[np.int64]) -> Array:
        """``log P(X = x)``; minus infinity outside the support."""
        return self._on_support(x, self._mass_at, -np.inf, -np.inf)

    def mass(self, x: NDArray[np.int64]) -> Array:
        """``P(X = x)``, without the way through the logarithm where masses are large."""
        values = np.exp(self.log_mass(x))
        counts, _, _, direct = self._trusted
        if len(counts):
            place = np.clip(x - self.sure - counts[0], 0, len(counts) - 1)
            known = counts[place] == x - self.sure
            values = np.where(known, direct[place], values)
        return values

    def log_upper(self, x: NDArray[np.int64]) -> Array:
        """``log P(X >= x)``."""
        return self._on_support(x, self._upper_at, 0.0, -np.inf)

    def log_lower(self, x: NDArray[np.int64]) -> Array:
        """``log P(X <= x)``."""
        return self._on_support(x, self._lower_at, -np.inf, 0.0)

    def _on_support(
        self,
        x: NDArray[np.int64],
        function: Callable[[NDArray[np.int64]], Array],
        below: float,
        above: float,
    ) -> Array:
        x = np.asarray(x)
        result = np.where(x < self.low, below, above)
        inside = (x >= self.low) & (x <= self.high)
        if inside.any():
            result[inside] = function((x[inside] - self.sure).astype(np.int64))
        return result

    def _mass_at(self, y: NDArray[np.int64]) -> Array:
        self._fill(y)
        return self._tables.log_mass[y]

    def _upper_at(self, y: NDArray[np.int64]) -> Array:
        small = y > self._mean
        stored = np.where(small, y, y - 1)
        self._fill(stored[stored >= 0])
        values = self._tables.log_tail[np.maximum(stored, 0)]
        return np.where(small, values, np.where(y == 0, 0.0, log1mexp(values)))

    def _lower_at(self, y: NDArray[np.int64]) -> Array:
        small = y <= self._mean
        stored = np.where(small, y, y + 1)
        self._fill(stored[stored <= self._free])
        values = self._tables.log_tail[np.minimum(stored, self._free)]
        return np.where(small, values, np.where(y == self._free, 0.0, log1mexp(values)))

    @cached_property
    def _body(self) -> Window:
        return bernoulli_sum(self._p, self._q, self._count) if self._free else _CERTAIN

    @cached_property
    def _logit(self) -> Array:
        return np.log(self._p) - np.log1p(-self._p)

    @cached_property
    def _tables(self) -> _Stretch:
        """All counts; not a number where nothing has been asked yet."""
        tables = _Stretch(0, *np.full((2, self._free + 1), np.nan))
        # All wrong and all right, where no tilt leads.
        none = float(self._count @ np.log1p(-self._p))
        every = float(self._count @ np.log(self._p))
        for table in (tables.log_mass, tables.log_tail):
            table[0], table[-1] = none, every
        place, mass, tail, _ = self._trusted
        tables.log_mass[place], tables.log_tail[place] = mass, tail
        return tables

    @cached_property
    def _trusted(self) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """Counts, bar the ends, whose untilted masses are accurate: logs of mass and tail, mass."""
        body = self._body
        counts = body.first + np.arange(len(body.mass))
        with np.errstate(divide="ignore"):
            mass = np.log(body.mass)
            upper, lower = np.log(np.cumsum(body.mass[::-1])[::-1]), np.log(np.cumsum(body.mass))
        if self._free <= DIRECT:
            good = mass > _NORMAL
        else:
            good = np.abs(counts - self._mean) <= _BODY * np.sqrt(self.variance) + 1.0
        good &= (counts > 0) & (counts < self._free)
        tail = np.where(counts > self._mean, upper, lower)
        return counts[good], mass[good], tail[good], body.mass[good]

    def _fill(self, y: NDArray[np.int64]) -> None:
        """Make sure that the tables hold these counts."""
        tail = self._tables.log_tail
        wanted = np.unique(y[np.isnan(tail[y])])
        if not len(wanted):
            return
        for side in (1, -1):
            while True:
                wanted = wanted[np.isnan(tail[wanted])]
                rest = wanted[wanted > self._mean] if side > 0 else wanted[wanted <= self._mean]
                if not len(rest):
                    break
                nearest = int(rest[0] if side > 0 else rest[-1])
                farthest = int(rest[-1] if side > 0 else rest[0])
                self._keep(self._stretch(nearest, farthest, side))

    def _keep(self, stretch: _Stretch) -> None:
        place = slice(stretch.first, stretch.first + len(stretch.log_mass))
        for table, values in (
            (self._tables.log_mass, stretch.log_mass),
            (self._tables.log_tail, stretch.log_tail),
        ):
            table[place] = np.where(np.isnan(table[place]), values, table[place])

    def _tilt(self, target: float) -> tuple[float, Array, Array, float]:
        """Tilting parameter that moves the mean to the target, to a twentieth of an sd.

        Newton's method inside a bracket: with all logits below -50 hardly anything succeeds, with
        all above 50 hardly anything fails.
        """
        share, own = target / self._free, self._mean / self._free
        theta = float(np.log(share / (1.0 - share)) - np.log(own / (1.0 - own)))
        low, high = -float(self._logit.max()) - 50.0, -float(self._logit.min()) + 50.0
        theta = min(max(theta, low), high)
        for _ in range(200):
            p, q = expit(self._logit + theta), expit(-self._logit - theta)
            gap = float(self._count @ p) - target
            variance = float(self._count @ (p * q))
            if gap**2 <= 0.0025 * variance or not low < high:
                break
            low, high = (theta, high) if gap < 0 else (low, theta)
            theta -= gap / max(variance, 1e-300)
            if not low < theta < high:
                theta = 0.5 * (low + high)
        return theta, p, q, variance

    def _log_factor(self, theta: float, start: int) -> float:
        """``log E[exp(theta X)] - theta start``.

        In extended precision where the machine has it: a rounding of ``exp(theta)`` is common to
        all variables, so it would add up.
        """
        tilt = np.longdouble(theta)
        if abs(theta) > _OVERFLOW:
            terms = np.log1p(-self._p) + np.logaddexp(0.0, self._logit + tilt)
            return float(self._count @ terms - tilt * start)
        from_zero = self._p <= 0.5
        zero = np.log1p(self._p[from_zero] * np.expm1(tilt))
        one = np.log1p(self._q[~from_zero] * np.expm1(-tilt))
        ones = int(self._count[~from_zero].sum())
        total = self._count[from_zero] @ zero + self._count[~from_zero] @ one
        return float(total + tilt * (ones - start))

    def _stretch(self, nearest: int, farthest: int, side: int) -> _Stretch:
        """Tails around one tilted mean, from the nearest count wanted outwards."""
        sd = float(np.sqrt(self.variance))
        ahead = min(1.2 * sd, abs(farthest - nearest)) * side
        theta, p, q, variance = self._tilt(nearest + ahead)
        centre = float(self._count @ p)
        if abs(centre - nearest) > _SPAN * np.sqrt(variance) + 0.5:
            theta, p, q, variance = self._tilt(float(nearest))
            centre = float(self._count @ p)
        span = min(_SPAN * np.sqrt(variance), _STEEP / max(abs(theta), 1e-300))
        low = max(1, min(nearest, int(np.ceil(centre - span))))
        high = min(self._free - 1, max(nearest, int(np.floor(centre + span))))
        low, high = (
            (max(low, int(self._mean) + 1), high) if side > 0 else (low, min(high, int(self._mean)))
        )
        window = bernoulli_sum(p, q, self._count)
        counts = window.first + np.arange(len(window.mass))
        start = low if side > 0 else high
        # From the start outwards the factor falls.
        outwards = (counts >= low) if side > 0 else (counts <= high)
        masses = window.mass[outwards] * np.exp(-theta * (counts[outwards] - start))
        sums = np.cumsum(masses[::-1])[::-1] if side > 0 else np.cumsum(masses)
        scale = self._log_factor(theta, start)
        kept = slice(0, high - low + 1) if side > 0 else slice(low - int(counts[0]), None)
        with np.errstate(divide="ignore"):
            return _Stretch(low, np.log(masses[kept]) + scale, np.log(sums[kept]) + scale)


_CERTAIN = Window(0, np.ones(1), 0.0, 0.0)
