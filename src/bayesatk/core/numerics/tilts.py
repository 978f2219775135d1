"""A likelihood of two parameters, as a function, from weighted points of their posterior."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from bayesatk._tools.arrays import Array

_ORDER = 4  # of the polynomial
_REACH, _SIDE = 5.0, 61  # of the lattice in standard deviations, and its points to a side
_FARTHEST = 4.0  # standard deviations from the mean, beyond which the polynomial is constant
_CURVED = 0.1  # how large coefficients of order three and four are expected to be
_STEPS, _SETTLED = 50, 1e-8  # of Newton's method, and the slope at which it ends


@dataclass(frozen=True)
class Tilt:
    """Log of a likelihood, up to a constant: a polynomial in standardised parameters.

    It is the one of greatest entropy: with it the prior becomes a posterior that has the moments of
    the points up to the fourth, as far as these are known.

    Parameters
    ----------
    mean : ndarray, shape (2,)
    inverse : ndarray, shape (2, 2)
        Of a root of the covariance.
    coefficients : ndarray, shape (terms,)
    """

    mean: Array
    inverse: Array
    coefficients: Array

    @classmethod
    def of(
        cls, weight: Array, points: Array, log_prior: Callable[[Array], Array], draws: float
    ) -> "Tilt":
        """Find the polynomial.

        Parameters
        ----------
        weight : ndarray, shape (points,)
            Posterior probabilities.
        points : ndarray, shape (points, 2)
        log_prior : callable
            Log prior density of points.
        draws : float
            Independent draws that the points are worth.

        Examples
        --------
        >>> z = np.stack(np.meshgrid(*[np.linspace(-6, 6, 241)] * 2), axis=-1).reshape(-1, 2)
        >>> weight = np.exp(-(z**2).sum(axis=1))  # of precision 2: prior and likelihood have 1
        >>> prior = lambda pairs: -0.5 * (pairs**2).sum(axis=1)
        >>> tilt = Tilt.of(weight / weight.sum(), z, prior, 1e6)
        >>> logs = tilt.at(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        >>> (logs - logs[0]).round(3).tolist()
        [0.0, -0.5, -0.5]
        """
        mean = weight @ points
        gap = points - mean
        root = np.linalg.cholesky((weight[:, None] * gap).T @ gap + 1e-24 * np.eye(2))
        inverse = np.linalg.inv(root)
        wanted = weight @ _terms(gap @ inverse.T)
        side = np.linspace(-_REACH, _REACH, _SIDE)
        lattice = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        logs, terms = log_prior(mean + lattice @ root.T), _terms(lattice)
        stiffness = _orders() > 2
        coefficients = _of_moments(logs, terms, wanted, stiffness / (draws * _CURVED**2) + 1e-9)
        return cls(mean, inverse, coefficients)

    def at(self, points: Array) -> Array:
        """Log likelihood, up to a constant, at points (points, 2)."""
        z = (points - self.mean) @ self.inverse.T
        length = np.sqrt((z**2).sum(axis=1, keepdims=True))
        return np.asarray(_terms(z * np.minimum(1.0, _FARTHEST / np.maximum(length, 1e-300)))
                          @ self.coefficients)  # fmt: skip


def _of_moments(logs: Array, terms: Array, wanted: Array, stiffness: Array) -> Array:
    """Coefficients with which a density on a lattice has the wanted means of terms.

    The maximum of a concave function, by Newton's method with halved steps.
    """
    coefficients = np.zeros(terms.shape[1])

    def value(trial: Array) -> float:
        total = float(logsumexp(logs + terms @ trial))
        return float(wanted @ trial - total - 0.5 * stiffness @ trial**2)

    best = value(coefficients)
    for _ in range(_STEPS):
        chance = np.exp(logs + terms @ coefficients - logsumexp(logs + terms @ coefficients))
        mean = chance @ terms
        slope = wanted - mean - stiffness * coefficients
        if np.abs(slope).max() < _SETTLED:
            break
        bend = (terms * chance[:, None]).T @ terms - np.outer(mean, mean) + np.diag(stiffness)
        move = np.linalg.lstsq(bend, slope)[0]
        lengths = [length for length in 0.5 ** np.arange(12.0)
                   if value(coefficients + length * move) > best]  # fmt: skip
        if not lengths:
            break
        coefficients = coefficients + lengths[0] * move
        best = value(coefficients)
    return coefficients


def _orders() -> Array:
    """Order of every term."""
    return np.array([i + j for i in range(_ORDER + 1) for j in range(_ORDER + 1 - i) if i + j])


def _terms(z: Array) -> Array:
    """Products of Hermite polynomials of order one to four; (points, terms)."""
    x, y = (np.polynomial.hermite_e.hermevander(column, _ORDER) for column in z.T)
    return np.stack(
        [x[:, i] * y[:, j] for i in range(_ORDER + 1) for j in range(_ORDER + 1 - i) if i + j],
        axis=1,
    )
