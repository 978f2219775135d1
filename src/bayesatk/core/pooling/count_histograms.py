"""Dirichlet-multinomial likelihood of the hyperparameters from histograms of counts.

With ``u = r/(1-r)`` a question contributes ``sum_c sum_{v<n_c} log(m_c + v u) - sum_{v<n} log(1 + v
u)``, which neither cancels as r -> 0 nor overflows as r -> 1; summed over questions, only the
numbers of questions that exceed v trials, in each category and in all, remain. The terms from the
64th on are summed by the Euler-Maclaurin formula, one sum for each distinct count, so that the work
does not grow with the trials. Right and wrong are two categories: the Beta-binomial.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln

from bayesatk.metrics.credit import Array

_BLOCK = 2_000_000  # logarithms taken at once: 16 MB
_FARTHEST = 600.0  # logit r up to which its odds are a number; beyond, the likelihood is a power
_LEAST, _STIRLING = 1e-300, 1e3  # of a share, instead of 0; x from which a series will do
_EXPLICIT = 64  # terms added one by one; the formula errs by 24 / (30240 * 64^5) = 7e-13 a question


@dataclass(frozen=True)
class Exceeding:
    """How many questions exceed v = 0, 1, .. of a count.

    Parameters
    ----------
    explicit : ndarray, shape (at most 64,)
        Total weight of the questions that exceed v.
    large, weight : ndarray
        Distinct counts above 64, and the weight of the questions that have them.
    fractions : ndarray, shape (3, distinct)
        Discounted trials leave fractions: the whole count below, the fraction, and the weight of
        the questions that have both.
    """

    explicit: Array
    large: Array
    weight: Array
    fractions: Array

    @classmethod
    def of(cls, values: Array, weight: Array) -> "Exceeding":
        """Tally counts with weights."""
        whole = np.floor(values).astype(np.int64)
        small = np.bincount(np.minimum(whole, _EXPLICIT), weights=weight)
        large, which = np.unique(whole[whole > _EXPLICIT], return_inverse=True)
        return cls(
            np.asarray(small[::-1].cumsum()[::-1][1:]),
            large.astype(float),
            np.bincount(which, weights=weight[whole > _EXPLICIT], minlength=len(large)),
            _fractions(values, whole, weight),
        )

    @property
    def total(self) -> float:
        """Total of the counts."""
        whole = self.explicit.sum() + self.weight @ (self.large - _EXPLICIT)
        return float(whole + self.fractions[1] @ self.fractions[2])

    @property
    def power(self) -> float:
        """Power of the ratio that `log_rise` grows with, from where all else is small."""
        rest = (self.fractions[0] == 0.0) @ self.fractions[2]
        return self.total - float(self.explicit[:1].sum() + rest)

    @property
    def terms(self) -> int:
        """Logarithms that `log_rise` takes at each place, about."""
        return len(self.explicit) + 8 * (len(self.large) + len(self.fractions[0]))

    def log_rise(self, base: Array, ratio: Array) -> Array:
        """Sum over questions of ``sum_{v < count} log(base + v ratio)``; shape (g, 1) each."""
        with np.errstate(divide="ignore"):
            total = np.log(base + np.arange(len(self.explicit)) * ratio) @ self.explicit
        return np.asarray(total + self.log_rest(base, ratio))

    def log_rest(self, base: Array, ratio: Array) -> Array | float:
        """Terms of `log_rise` that are not added one by one."""
        total: Array | float = 0.0
        if len(self.large):
            total = total + _later(base, ratio, self.large) @ self.weight
        if self.fractions.size:
            whole, fraction, weight = self.fractions
            total = total + _fractional(base, ratio, whole, fraction) @ weight
        return total


def _fractions(values: Array, whole: NDArray[np.int64], weight: Array) -> Array:
    """Distinct whole counts and fractions above them, with their weights; (3, distinct)."""
    own = values > whole
    if not own.any():
        return np.zeros((3, 0))
    keys = np.stack([whole[own], (values - whole)[own]])
    distinct, which = np.unique(keys, axis=1, return_inverse=True)
    return np.concatenate([distinct, np.bincount(which.ravel(), weights=weight[own])[None]])


def _later(base: Array, ratio: Array, count: Array) -> Array:
    """``sum_{v=64}^{count-1} log(base + v ratio)`` by Euler and Maclaurin; shape (g, counts)."""
    # The integral is count log(last) - 64 log(first) - (count - 64) + base/ratio log(last/first),
    # of which the last part must not cancel as ratio goes to 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        first, last = base + _EXPLICIT * ratio, base + count * ratio
        step = (count - _EXPLICIT) * ratio / first
        inverse = np.where(step > 0.0, np.log1p(step) / step, 1.0)
        part = np.minimum(base / first, 1.0) * (count - _EXPLICIT) * inverse
        ends = np.log(first) - np.log(last)
        slope = ratio / last - ratio / first
        bend = 2.0 * ((ratio / last) ** 3 - (ratio / first) ** 3)
        integral = count * np.log(last) - _EXPLICIT * np.log(first) - (count - _EXPLICIT) + part
        found = integral + 0.5 * ends + slope / 12.0 - bend / 720.0
        return np.where(last > 0.0, found, -np.inf)


def _fractional(base: Array, ratio: Array, whole: Array, fraction: Array) -> Array:
    """``log Gamma(x + f) - log Gamma(x) + f log(ratio)`` at ``x = base / ratio + whole``."""
    share = np.maximum(base + whole * ratio, _LEAST)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        x = np.maximum(share / ratio, _LEAST)
        small = np.minimum(x, _STIRLING)
        near = gammaln(small + fraction) - gammaln(small) - fraction * np.log(small)
        slope = fraction * (fraction - 1.0) / 2.0
        far = slope / x - slope * (2.0 * fraction - 1.0) / 6.0 / x**2
    return np.asarray(fraction * np.log(share) + np.where(x < _STIRLING, near, far))


@dataclass(frozen=True)
class CountHistograms:
    """Sufficient statistics: how many questions exceed v trials of each category, and of all.

    Parameters
    ----------
    categories : tuple of Exceeding
        Of right and wrong: wrong, then right.
    trials : Exceeding
    """

    categories: tuple[Exceeding, ...]
    trials: Exceeding

    @classmethod
    def of(cls, successes: ArrayLike, trials: ArrayLike, count: ArrayLike) -> "CountHistograms":
        """Return the histograms of distinct states of right and wrong with their multiplicities."""
        c, n = np.asarray(successes, np.int64), np.asarray(trials, np.int64)
        return cls.of_counts(np.stack([n - c, c], axis=1), count)

    @classmethod
    def of_counts(cls, counts: ArrayLike, count: ArrayLike) -> "CountHistograms":
        """Return the histograms of distinct counts (states, categories), which may be discounted.

        Examples
        --------
        >>> found = CountHistograms.of_counts([[2, 0, 1], [0, 0, 3]], [1.0, 2.0])
        >>> [one.explicit.tolist() for one in found.categories]
        [[1.0, 1.0], [], [3.0, 2.0, 2.0]]
        """
        table, weight = np.asarray(counts, float), np.asarray(count, float)
        each = tuple(Exceeding.of(values, weight) for values in table.T)
        return cls(each, Exceeding.of(table.sum(axis=1), weight))

    @property
    def success_rate(self) -> float:
        """Share of successes among all trials, half a success and half a failure added."""
        return (self.categories[-1].total + 0.5) / (self.trials.total + 1.0)

    def log_likelihood(self, x: Array, y: Array) -> Array:
        """Log-likelihood of right and wrong at ``x = logit m``, ``y = logit r``; shapes (g,)."""
        return self.of_means((expit(-x), expit(x)), y)

    def of_means(self, mean: ArrayLike, y: Array) -> Array:
        """Log-likelihood of the trials in their given order.

        Parameters
        ----------
        mean : array_like, shape (categories, g)
            Mean probability of each category.
        y : ndarray, shape (g,)
            ``logit r``.
        """
        found, of_category = np.empty(len(y)), np.asarray(mean)
        rows = max(1, _BLOCK // max(1, self._terms))
        length, place, weight = self._explicit
        for start in range(0, len(y), rows):
            part = slice(start, start + rows)
            ratio = np.exp(np.minimum(y[part], _FARTHEST))
            with np.errstate(divide="ignore"):
                terms = np.log(of_category[:, part].repeat(length, axis=0) + place * ratio)
            rises, ratio = weight @ terms, ratio[:, None]
            for category in self._with_rest:
                base = of_category[category, part, None]
                rises += self.categories[category].log_rest(base, ratio)
            found[part] = rises - self.trials.log_rise(np.ones_like(ratio), ratio)
        return found + self._power * np.maximum(y - _FARTHEST, 0.0)

    @cached_property
    def _explicit(self) -> tuple[NDArray[np.intp], Array, Array]:
        """How many terms each category has that are added one by one, their v and weights."""
        each = [one.explicit for one in self.categories]
        places = [np.arange(len(one)) for one in each]
        length = np.array([len(one) for one in each])
        return length, np.concatenate(places)[:, None].astype(float), np.concatenate(each)

    @cached_property
    def _with_rest(self) -> list[int]:
        """Categories with terms that are not added one by one."""
        each = enumerate(self.categories)
        return [i for i, one in each if len(one.large) or one.fractions.size]

    @cached_property
    def _terms(self) -> int:
        return sum(one.terms for one in (self.trials, *self.categories))

    @cached_property
    def _power(self) -> float:
        return sum(one.power for one in self.categories) - self.trials.power
