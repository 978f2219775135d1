"""Declared priors: named fields with their distributions.

The closed forms take log densities and quantile functions from here, the PyMC models their
variables. Every field has unconstrained coordinates x, and densities are those of x, so that they
include the Jacobian.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import (
    betaincinv,
    betaln,
    digamma,
    erfinv,
    expit,
    gammaln,
    lambertw,
    log_expit,
    logit,
    logsumexp,
    ndtri,
    stdtrit,
)

from bayesatk._tools.arrays import Array, Flags

_COORDINATE_MAX = 600.0  # of logits and logs, whose exponentials then are finite
_LOG_STRETCH_MAX = 50.0  # log of a Student t number over its coordinate; negligible mass beyond


class Distribution(ABC):
    """Prior distribution of a quantity with `size` unconstrained coordinates x."""

    @property
    def size(self) -> int:
        """Number of unconstrained coordinates."""
        return 1

    @property
    def proper(self) -> bool:
        """Whether the density integrates to one."""
        return True

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """Log density at coordinates (..., size), normalised where it can be; shape (...)."""

    @abstractmethod
    def from_uniform(self, u: Array) -> Array:
        """Quantile function: coordinates of uniform numbers, both of shape (..., size)."""

    def values(self, x: Array) -> Array:
        """Quantity at coordinates (..., size)."""
        return x[..., 0]

    def coordinates(self, values: Array) -> Array:
        """Coordinates (..., size) of a quantity: the inverse of `values`."""
        return values[..., None]


@dataclass(frozen=True)
class Beta(Distribution):
    """Beta distribution of a probability; its coordinate is the logit.

    ``b = -a`` is the improper density ``p^(a-1) (1-p)^(-a-1)``, which is not normalised.

    Examples
    --------
    >>> float(np.exp(Beta(1.0, 1.0).log_density(np.zeros(1))))  # p (1 - p) at one half
    0.25
    """

    a: float
    b: float

    @property
    def proper(self) -> bool:
        """Whether the density integrates to one."""
        return self.b > 0.0

    def log_density(self, x: Array) -> Array:
        """Log density of logits (..., 1); shape (...)."""
        scale = betaln(self.a, self.b) if self.proper else 0.0
        log_p = log_expit(x)
        logs = self.a * log_p + self.b * (log_p - x) - scale
        return np.asarray(logs[..., 0])

    def from_uniform(self, u: Array) -> Array:
        """Logits of Beta quantiles."""
        with np.errstate(divide="ignore"):
            low = logit(betaincinv(self.a, self.b, u))
            high = -logit(betaincinv(self.b, self.a, 1.0 - u))
        return np.clip(np.where(low < 0.0, low, high), -_COORDINATE_MAX, _COORDINATE_MAX)

    def values(self, x: Array) -> Array:
        """Probabilities at logits (..., 1); shape (...)."""
        return np.asarray(expit(x[..., 0]))

    def coordinates(self, values: Array) -> Array:
        """Logits (..., 1) of probabilities (...)."""
        with np.errstate(divide="ignore"):
            return np.clip(logit(values), -_COORDINATE_MAX, _COORDINATE_MAX)[..., None]


@dataclass(frozen=True)
class Dirichlet(Distribution):
    """Dirichlet distribution of shares; coordinates are their log ratios to the last share.

    Examples
    --------
    >>> shares = Dirichlet((1.0, 1.0, 8.0))
    >>> shares.size, shares.values(np.zeros(2)).round(3).tolist()
    (2, [0.333, 0.333, 0.333])
    """

    concentration: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of shares but one."""
        return len(self.concentration) - 1

    def log_density(self, x: Array) -> Array:
        """Log density of log ratios (..., size); shape (...)."""
        shape = np.array(self.concentration)
        scale = gammaln(shape).sum() - gammaln(shape.sum())
        return np.asarray(self.log_shares(x) @ shape - scale)

    def from_uniform(self, u: Array) -> Array:
        """Log ratios to the last share: each share is a Beta part of what earlier ones leave."""
        left = np.cumsum(self.concentration[::-1])[::-1]
        sticks = [
            Beta(self.concentration[i], left[i + 1]).from_uniform(u[..., i])
            for i in range(self.size)
        ]
        ratios = np.stack(sticks, axis=-1)
        # log(share / last) = log(share / later ones) - log(last / later ones)
        last = np.cumsum(log_expit(-ratios[..., ::-1]), axis=-1)[..., ::-1]
        ratios[..., :-1] -= last[..., 1:]
        return ratios

    def log_shares(self, x: Array) -> Array:
        """Log shares at log ratios (..., size); shape (..., size + 1)."""
        logs = np.concatenate([x, np.zeros((*x.shape[:-1], 1))], axis=-1)
        return np.asarray(logs - logsumexp(logs, axis=-1, keepdims=True))

    def values(self, x: Array) -> Array:
        """Shares at log ratios (..., size); shape (..., size + 1)."""
        return np.exp(self.log_shares(x))

    def coordinates(self, values: Array) -> Array:
        """Log ratios (..., size) of shares (..., size + 1) to the last."""
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(values), -_COORDINATE_MAX)
        return np.asarray(logs[..., :-1] - logs[..., -1:])


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal distribution around 0; its coordinate is the number itself."""

    sd: float

    def log_density(self, x: Array) -> Array:
        """Log density of numbers (..., 1); shape (...)."""
        return np.asarray(
            -0.5 * (x[..., 0] / self.sd) ** 2 - np.log(self.sd * np.sqrt(2.0 * np.pi))
        )

    def from_uniform(self, u: Array) -> Array:
        """Return normal quantiles."""
        return np.clip(self.sd * ndtri(u), -_COORDINATE_MAX, _COORDINATE_MAX)


@dataclass(frozen=True)
class StudentT(Distribution):
    """Student t distribution around 0.

    The number is ``z exp(z^2 / (2 df))`` with the coordinate z. A normal z would give it tails of
    the same power (Goerg 2015), so that a parameter on which data have little information has a
    nearly normal coordinate.

    Examples
    --------
    >>> prior = StudentT(2.0, 3.0)
    >>> prior.values(prior.from_uniform(np.array([[0.5], [0.975]]))).round(4).tolist()  # 2 x 3.1824
    [0.0, 6.3649]
    """

    scale: float
    df: float

    def log_density(self, x: Array) -> Array:
        """Log density of coordinates (..., 1); shape (...)."""
        tail = 0.5 * (self.df + 1.0)
        constant = gammaln(tail) - gammaln(0.5 * self.df) - 0.5 * np.log(self.df * np.pi)
        square = np.minimum(x[..., 0] ** 2 / self.df, 2.0 * _LOG_STRETCH_MAX)
        log_slope = 0.5 * square + np.log1p(square)
        excess = np.log1p(square * np.exp(square) / self.scale**2)
        return np.asarray(constant - np.log(self.scale) + log_slope - tail * excess)

    def from_uniform(self, u: Array) -> Array:
        """Return coordinates of quantiles."""
        return self.coordinates(self.scale * stdtrit(self.df, u[..., 0]))

    def values(self, x: Array) -> Array:
        """Return numbers at coordinates (..., 1); shape (...)."""
        z = x[..., 0]
        return np.asarray(z * np.exp(np.minimum(0.5 * z**2 / self.df, _LOG_STRETCH_MAX)))

    def coordinates(self, values: Array) -> Array:
        """Return coordinates (..., 1) of numbers (...)."""
        square: Any = np.minimum(np.abs(values), np.exp(_LOG_STRETCH_MAX)) ** 2 / self.df
        z = np.sqrt(self.df * lambertw(square).real)
        return np.asarray(np.sign(values) * z)[..., None]


@dataclass(frozen=True)
class HalfNormal(Distribution):
    """Half-normal distribution of a positive number; its coordinate is the log.

    Examples
    --------
    >>> tau = HalfNormal(1.0)
    >>> tau.values(tau.from_uniform(np.array([0.5]))).round(4).tolist()  # median
    0.6745
    """

    sd: float

    def log_density(self, x: Array) -> Array:
        """Log density of logs (..., 1); shape (...)."""
        with np.errstate(over="ignore"):
            square = np.exp(2.0 * (x[..., 0] - np.log(self.sd)))
        return np.asarray(x[..., 0] - 0.5 * square - np.log(self.sd * np.sqrt(np.pi / 2.0)))

    def from_uniform(self, u: Array) -> Array:
        """Return logs of half-normal quantiles."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.sd * np.sqrt(2.0) * erfinv(u))
        return np.asarray(np.clip(logs, -_COORDINATE_MAX, _COORDINATE_MAX))

    def values(self, x: Array) -> Array:
        """Positive numbers at logs (..., 1); shape (...)."""
        return np.exp(x[..., 0])

    def coordinates(self, values: Array) -> Array:
        """Return logs (..., 1) of positive numbers (...)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(values), -_COORDINATE_MAX)[..., None])


@dataclass(frozen=True)
class Field:
    """Named quantity of a prior.

    Parameters
    ----------
    name : str
    distribution : Distribution
        Distribution of each repetition; these are independent.
    repeats : int
    dim : str, optional
        Dimension of the repetitions; without it there is one quantity and no such axis.
    """

    name: str
    distribution: Distribution
    repeats: int = 1
    dim: str | None = None

    @property
    def size(self) -> int:
        """Number of unconstrained coordinates."""
        return self.repeats * self.distribution.size

    @property
    def expected_log_density(self) -> float:
        """Prior expectation of the log density; 0 of fields that all families have alike."""
        law = self.distribution
        if not isinstance(law, Beta | Dirichlet):
            return 0.0
        alpha = np.array((law.a, law.b) if isinstance(law, Beta) else law.concentration)
        total = alpha.sum()
        expected = alpha @ (digamma(alpha) - digamma(total)) - gammaln(alpha).sum() + gammaln(total)
        return self.repeats * float(expected)

    def by_repeat(self, x: Array) -> Array:
        """Coordinates (points, size) in shape (points, repeats, size of one)."""
        return x.reshape(len(x), self.repeats, self.distribution.size)

    def values(self, x: Array) -> Array:
        """Quantity at coordinates (points, size); (points, [repeats], [shares])."""
        values = self.distribution.values(self.by_repeat(x))
        return values if self.dim else values[:, 0]


@dataclass(frozen=True)
class Fields:
    """Prior of all hyperparameters: independent fields, except for the order of a mixture.

    Parameters
    ----------
    fields : tuple of Field
    pairs : tuple of str
        Fields with two repetitions, one for each component of a mixture. Components are labelled
        by the order of the first of these fields: the density is doubled where it ascends, and
        zero elsewhere.

    Examples
    --------
    >>> prior = Fields((Field("mean", Beta(1.0, 1.0)), Field("icc", Beta(1.0, 1.0))))
    >>> float(np.exp(prior.log_density(np.zeros((1, 2)))[0]))
    0.0625
    >>> {name: value.tolist() for name, value in prior.values(np.zeros((1, 2))).items()}
    {'mean': [0.5], 'icc': [0.5]}
    """

    fields: tuple[Field, ...]
    pairs: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def size(self) -> int:
        """Number of unconstrained coordinates."""
        return sum(field.size for field in self)

    @property
    def proper(self) -> bool:
        """Whether the density integrates to one."""
        return all(field.distribution.proper for field in self)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Coordinates of each field."""
        ends = np.cumsum([field.size for field in self]).tolist()
        return {
            field.name: slice(end - field.size, end) for field, end in zip(self, ends, strict=True)
        }

    def log_density(self, theta: Array) -> Array:
        """Log density at coordinates (points, size)."""
        total = np.zeros(len(theta))
        for field in self:
            x = field.by_repeat(theta[:, self.slices[field.name]])
            total += field.distribution.log_density(x).sum(axis=1)
        if not self.pairs:
            return total
        return np.where(self._descends(theta), -np.inf, total + np.log(2.0))

    def _descends(self, theta: Array) -> Flags:
        first = theta[:, self.slices[self.pairs[0]]]
        return np.asarray(first[:, 0] > first[:, 1])

    def from_uniform(self, u: Array) -> Array:
        """Coordinates of uniform numbers, both of shape (points, size)."""
        theta = np.empty(u.shape)
        for field in self:
            span = self.slices[field.name]
            x = field.distribution.from_uniform(field.by_repeat(u[:, span]))
            theta[:, span] = x.reshape(len(u), -1)
        if self.pairs:
            swap = np.flatnonzero(self._descends(theta))
            for name in self.pairs:
                theta[swap, self.slices[name]] = theta[swap, self.slices[name]][:, ::-1]
        return theta

    def value(self, name: str, theta: Array) -> Array:
        """One quantity at coordinates (points, size); (points, [repeats], [shares])."""
        field = next(field for field in self if field.name == name)
        return field.values(theta[:, self.slices[name]])

    def values(self, theta: Array) -> dict[str, Array]:
        """Every quantity at coordinates (points, size), by name."""
        return {field.name: self.value(field.name, theta) for field in self}
