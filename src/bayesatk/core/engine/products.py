"""Transforms of a mean over questions at nodes where it is not nearly normal: products over states.

Given a node the questions are independent, so the expectation of ``exp(s X)`` is the product over
states of ``E exp(s g / questions)``, each to the power of how many questions are in that state.
Questions of one state that differ in weight differ in ``s``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.bands import Band, Index, MarkedBand
from bayesatk.core.engine.fourier_series import harmonics
from bayesatk.core.engine.mixture import Given, StateMixture
from bayesatk.core.numerics.quadrature import BetaRule
from bayesatk.core.pooling.states import States
from bayesatk.core.question.moments import latent_on_nodes
from bayesatk.metrics.credit import Array

_PHASE = 2.0  # largest phase between neighbouring quadrature points that they still resolve
_DAMPED = 16.0  # logarithm of a damping that need not be resolved
_WEIGHTS = 64  # distinct weights of questions in one product, beyond which they are rounded


@dataclass(frozen=True)
class Products:
    """The mean of one credit at some of the nodes.

    Parameters
    ----------
    whole : StateMixture
    column : int
        Of the credit.
    given : Given
        Moments of the mean, of this credit alone, given each node of the mixture.
    nodes : ndarray of int
    """

    whole: StateMixture
    column: int
    given: Given
    nodes: Index

    @cached_property
    def mixture(self) -> StateMixture:
        """The mixture at these nodes, for this credit; weights are rounded if they are many."""
        own = self.whole.among(self.nodes, self.column)
        many = len(np.unique(own.states.terms.weight)) > _WEIGHTS
        return replace(own, states=own.states.rounded()) if many else own

    @property
    def states(self) -> States:
        """States, with the weights that the products have."""
        return self.mixture.states

    def log_generating(self, tilt: Array) -> Array:
        """Logarithm of the moment generating function about the mean; (nodes, tilts)."""
        total = np.log(self._rounding(tilt, 0)) + np.zeros(len(tilt))
        for band in self.mixture.on_rules():
            gap = self._gap(band.rule, 0)
            for weight, own, count in self._levels(band):
                exponent = np.outer(weight * gap, tilt)
                top = exponent.max(axis=0)
                terms = np.exp(exponent - top)
                for part in own.chunks(len(tilt)):
                    with np.errstate(divide="ignore"):
                        logs = np.log(own.expectation(terms, part)) + top
                    logs[np.isneginf(logs)] = np.inf  # underflow: this tilt proves nothing
                    total[band.nodes] += np.einsum("gst,s->gt", logs, count[part])
        for nodes, gap, variance in self._unresolved(0):
            total[nodes] += gap * tilt + 0.5 * variance * tilt**2
        return total

    def transform(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        """``E exp((tilt + i omega)(X - origin))`` given each node; (nodes, frequencies)."""
        s = tilt + 1j * omega
        found = self._rounding(s, origin) * np.ones(len(omega), complex)
        widest = float(self.states.terms.weight[-1])

        def curve(rule: BetaRule) -> Array:
            gap = widest * self._gap(rule, origin)
            # What is damped away need not be resolved.
            return gap if tilt == 0.0 else _DAMPED * np.expm1(tilt * gap / _DAMPED) / tilt

        for band in self.mixture.on_rules(curve, _PHASE / float(omega[-1])):
            gap = self._gap(band.rule, origin)
            for weight, own, count in self._levels(band):
                waves = harmonics(weight * gap, omega)
                waves *= np.exp(tilt * weight * gap)[:, None]
                for part in own.chunks(2 * len(omega)):
                    each = own.expectation(waves.view(float), part).view(complex)
                    found[band.nodes] *= power_product(each, count[part])
        for nodes, gap, variance in self._unresolved(origin):
            found[nodes] *= np.exp(gap * s + 0.5 * variance * s**2)
        return found

    def _rounding(self, s: NDArray[Any], origin: int) -> NDArray[Any]:
        """Factors that give the nodes the mean and variance that rounded weights lack."""
        own = self.mixture
        if own.states is self.whole.states:
            return np.ones((len(self.nodes), 1))
        vector = own.credits[0].vector
        exact = self.given.among(self.nodes, own.nodes.weight)
        level = float([self.given.overall[0][0], vector.max(), vector.min()][origin])
        lost = 1.0 - own.states.sums[1].sum() / own.states.questions
        shift = exact.mean - own.moments.mean - level * lost
        spread = exact.variance - own.moments.variance
        return np.asarray(np.exp(shift * s + 0.5 * spread * s**2))

    def _levels(self, band: Band | MarkedBand) -> Iterator[tuple[float, Band | MarkedBand, Array]]:
        """Yield weights, the states of a band that have one, and how many questions do."""
        state, weight, count = self.states.terms
        place = np.full(len(self.states), -1, np.intp)
        place[band.states] = np.arange(len(band.states))
        kept = place[state] >= 0
        state, weight, count = place[state[kept]], weight[kept], count[kept]
        starts = np.flatnonzero(np.diff(weight, prepend=-1.0))
        for part in np.split(np.arange(len(weight)), starts[1:]):
            yield float(weight[part[0]]), band.among(state[part]), count[part]

    def _offset(self, low: Array, high: Array, origin: int) -> Array:
        """Values less the origin, from them and their complements, whichever does not cancel."""
        vector = self.mixture.credits[0].vector
        if origin < 0:
            return low - float(vector.min())
        if origin > 0:
            return (1.0 - float(vector.max())) - high
        mean, rest = (float(each[0]) for each in self.given.overall)
        return low - mean if mean <= 0.5 else rest - high

    def _gap(self, rule: BetaRule, origin: int) -> Array:
        """``(g - origin) / questions`` at the points of a rule."""
        value, rest = latent_on_nodes(self.mixture.credits, rule)
        return self._offset(value[:, 0], rest[:, 0], origin) / self.whole.states.questions

    def _unresolved(self, origin: int) -> Iterator[tuple[Index, Array, Array]]:
        """Yield mean less the origin, and variance, of the part that no rule resolves; columns."""
        own = self.states
        for nodes, states, low, high, variance in self.mixture.narrow():
            gap = self._offset(low[..., 0], high[..., 0], origin) @ own.sums[1, states]
            spread = variance[..., 0] @ own.sums[2, states]
            yield nodes, gap[:, None] / own.questions, spread[:, None] / own.questions**2


def power_product(transform: NDArray[np.complex128], count: Array) -> NDArray[np.complex128]:
    """Product over states (axis 1), each to its whole-number multiplicity, by squaring.

    Examples
    --------
    >>> power_product(np.array([[[2.0 + 0j], [1j]]]), np.array([3.0, 2.0])).tolist()
    [[(-8+0j)]]
    """
    product = np.ones(transform.shape[::2], complex)
    left = count.astype(np.int64)
    while left.any():
        odd = left % 2 == 1
        if odd.any():
            product *= transform[:, odd].prod(axis=1)
        left = left // 2
        keep = left > 0
        transform, left = transform[:, keep] ** 2, left[keep]
    return product
