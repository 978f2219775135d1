"""What is not smooth in the distribution of a mean: its neighbourhood of the corners.

A corner is the value of the mean when so many questions are at p = 1 and all others at p = 0. Near
it the density is made of powers of the distance, at every scale. A law *near* a corner keeps, of
every question's term, what lies close to either end, with a smooth cut-off: what it leaves out is
smooth, and it fits on a period so short that frequencies far beyond those of the whole need few
points. Its scales are taken one after the other, each four times as fine as the last.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from bayesatk.core.credit import Array, Credit
from bayesatk.core.fourier import (
    PHASE,
    between,
    flat_top,
    normal_phi,
    own_phi,
    power_product,
    waves,
)
from bayesatk.core.mixture import StateMixture, node_offsets
from bayesatk.core.moments import latent_on_nodes
from bayesatk.core.quadrature import BetaRule, beta_rule_along

REACH = 28  # half-periods of the highest frequency to which its absence is felt
_PERIOD = 64  # of a scale, in half-periods of the highest frequency before
_CUT = 48  # where terms are cut off, likewise
_SPAN = 0.45  # of the range of a credit, at most
_APART = 35.0  # half-periods between corners, at least
_FINER = 4  # ratio of neighbouring scales
_DENSE = 8  # points of a table to a half-period of its highest frequency
_STEPS = np.pi / PHASE  # quadrature points to a half-period
_TAGS = 12  # numbers of questions at p = 1 that are told apart
_LIGHT = 1e-8  # probability of nodes that may be left out
_FINEST = 5e-8  # half-period at which no more is asked
_FLOATS = 4_000_000  # in one array of probabilities: 32 MB
_BELL = 3.6  # standard deviations of the last scale's kernel in its highest frequency


@dataclass(frozen=True)
class Ripple:
    """A correction of a distribution function about a corner, on equally spaced offsets."""

    offset: Array
    cdf: Array
    pdf: Array
    reach: float


@dataclass(frozen=True, eq=False)
class Corner:
    """The corner of a column's mean with so many questions at p = 1."""

    mixture: StateMixture
    column: int
    right: int

    @property
    def _credit(self) -> Credit:
        return self.mixture.credits[self.column]

    @property
    def place(self) -> float:
        """Value of the mean."""
        share, vector = self.right / self.mixture.states.questions, self._credit.vector
        return float(vector[0] * (1.0 - share) + vector[-1] * share)

    @property
    def inner(self) -> bool:
        """Whether it lies in the middle of the scale."""
        return 0 < self.right < self.mixture.states.questions

    @property
    def widest(self) -> float:
        """Half-period of the highest frequency of a whole whose corners are apart enough."""
        vector = self._credit.vector
        return float(abs(vector[-1] - vector[0])) / self.mixture.states.questions / _APART

    def coarse_ripple(self, half: float) -> Ripple:
        """Return what frequencies up to that of a half-period add to half as many of them."""
        omega, phi, _ = self._near(2.0 * half, 2, np.arange(len(self.mixture.nodes)))
        share = omega * half / np.pi
        return self._ripple(phi * (flat_top(share) - flat_top(2.0 * share)), 2.0 * half, 2)

    def ripples(self, half: float, enough: float) -> list[Ripple]:
        """Return what frequencies beyond that of a half-period add, scale by scale.

        Down to where they add less than ``enough``; at the finest scale of all the last filter is
        a bell, under which the distribution function does not fall.
        """
        nodes = np.arange(len(self.mixture.nodes))
        found: list[Ripple] = []
        while half > _FINEST and (not found or np.abs(found[-1].cdf).max() > enough):
            omega, phi, nodes = self._near(half, _FINER, nodes)
            share = omega * half / np.pi / _FINER
            last = half / _FINER <= _FINEST
            pass_on = np.exp(-0.5 * (_BELL * share) ** 2) if last else flat_top(share)
            found.append(self._ripple(phi * (pass_on - flat_top(_FINER * share)), half, _FINER))
            half /= _FINER
        return found

    def _ripple(self, phi: NDArray[np.complex128], half: float, finer: int) -> Ripple:
        length = _PERIOD * half
        points = _DENSE * _PERIOD * finer
        cdf, pdf = waves(phi[1:], -0.5 * length, length, points)
        offset = length * (np.arange(points + 1.0) / points - 0.5)
        return Ripple(offset, cdf, pdf, REACH * half)

    def _near(
        self, half: float, finer: int, nodes: NDArray[np.intp]
    ) -> tuple[Array, NDArray[np.complex128], NDArray[np.intp]]:
        """Frequencies, the characteristic function of the law near the corner, nodes that matter.

        Returns
        -------
        omega, phi : ndarray, shape (frequencies + 1,)
        nodes : ndarray
        """
        omega = 2.0 * np.pi / (_PERIOD * half) * np.arange(_PERIOD * finer // 2 + 1.0)
        phi, kept = self._concentrated(omega, half), [nodes[:0]]
        limit = _LIGHT / max(1, len(nodes))
        for part in self._parts(nodes):
            ends = [
                _End.of(self.mixture, self.column, part, top, half, finer)
                for top in (True, False)
                if (self.right > 0 if top else self.right < self.mixture.states.questions)
            ]
            total = sum(end.mass.sum(axis=-1) for end in ends)
            with np.errstate(divide="ignore"):
                chance = np.exp(np.log(total) @ self.mixture.states.count)
            alive = self.mixture.nodes.weight[part] * chance > limit
            if alive.any():
                kept.append(part[alive])
                near = self._product([end.phi(omega, alive) for end in ends])
                near *= between(self.mixture.steps[part[alive], self.column], omega)
                phi += self.mixture.nodes.weight[part[alive]] @ near
        return omega, phi, np.concatenate(kept)

    def _parts(self, nodes: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield nodes of similar concentration, few enough for the memory they take."""
        most = max(1, _FLOATS // (len(self.mixture.states) * 512))
        for members in self.mixture.classes[:-1]:
            chosen = np.intersect1d(members, nodes, assume_unique=True)
            for start in range(0, len(chosen), most):
                yield chosen[start : start + most]

    def _product(self, ends: list[NDArray[np.complex128]]) -> NDArray[np.complex128]:
        """Product over questions where so many are at p = 1: a coefficient, by roots of unity."""
        count = self.mixture.states.count
        if len(ends) == 1:
            return power_product(ends[0], count)
        tags = min(int(self.mixture.states.questions) + 1, _TAGS)
        top, bottom = ends
        total = np.zeros(top.shape[::2], complex)
        for turn in np.exp(2j * np.pi * np.arange(tags) / tags):
            total += turn ** (-self.right) * power_product(turn * top + bottom, count)
        return np.asarray(total / tags, complex)

    def _concentrated(self, omega: Array, half: float) -> NDArray[np.complex128]:
        """Nodes that are all but points: near as they are, at either end of the scale only."""
        mixture = self.mixture
        narrow = mixture.concentrated
        if self.inner or not len(narrow):
            return np.zeros(len(omega), complex)
        offset, variance = node_offsets(mixture, self.column)
        offset = mixture.moments.mean[self.column] + offset - self.place
        weight = mixture.nodes.weight[narrow] * _cut(np.abs(offset) / (_CUT * half))
        near = weight > 0.0
        step = mixture.steps[narrow[near], self.column]
        return normal_phi(weight[near], offset[near], variance[near], step, omega)


@dataclass(frozen=True)
class _End:
    """What of the questions' terms lies near p = 1 (``top``) or p = 0."""

    mass: Array
    offset: Array

    @classmethod
    def of(
        cls, mixture: StateMixture, column: int, nodes: NDArray[np.intp], top: bool, half: float,
        finer: int,
    ) -> "_End":  # fmt: skip
        """Probabilities of quadrature points; shape (nodes, states, points)."""
        states, credit = mixture.states, mixture.credits[column]
        farthest = min(
            _CUT * half * states.questions, _SPAN * float(abs(credit.vector[-1] - credit.vector[0]))
        )

        def near(rule: BetaRule) -> Array:
            gap = _gap(credit, rule, top)
            beyond = np.abs(gap) > farthest
            side = (
                np.maximum.accumulate(beyond[::-1])[::-1] if top else np.maximum.accumulate(beyond)
            )
            return np.where(side, np.nan, gap)

        spacing = half / finer * states.questions / _STEPS
        rule = beta_rule_along(*mixture.family(nodes), near, spacing)
        gap = _gap(credit, rule, top)
        mass = mixture.masses(nodes, rule) * _cut(np.abs(gap) / farthest)
        return cls(mass, gap / states.questions)

    def phi(self, omega: Array, alive: NDArray[np.bool_]) -> NDArray[np.complex128]:
        """Characteristic functions; shape (nodes alive, states, frequencies)."""
        mass = self.mass[alive]
        own = own_phi(mass.reshape(-1, mass.shape[-1]), np.outer(self.offset, omega))
        return own.reshape(*mass.shape[:2], -1)


def _gap(credit: Credit, rule: BetaRule, top: bool) -> Array:
    """Distance of the credit from its value at an end, signed."""
    value, complement = (part[:, 0] for part in latent_on_nodes([credit], rule))
    end = credit.vector[-1 if top else 0]
    return np.asarray(value - end if end <= 0.5 else (1.0 - end) - complement)


def _cut(share: Array) -> Array:
    """Smooth cut-off: 1 near 0, nothing from 1 on."""
    return np.asarray(
        np.where(share < 1.0, 0.5 * erfc(np.clip((share - 0.55) * (7.0 / 0.9), -3.5, 9.0)), 0.0)
    )
