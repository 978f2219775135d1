"""Exact distribution of a mean over questions of independent posterior terms, mixed over nodes.

Given a node the mean is a sum of independent bounded terms of few kinds, so its characteristic
function is a product of powers; where there are many questions, its first four cumulants are
enough. Mixed over nodes and inverted by a Fourier series on a window that Chernoff's bound shows to
hold all but 1e-6 of the probability, it gives the distribution function as finely as it is asked
for (`bayesatk.core.series`). Nodes that stand for a continuum of hyperparameters say nothing about
frequencies near that of their spacing, which are left out.

Where saturated data would take too many frequencies, the mean is drawn; the answer states how well
either does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from bayesatk.core.credit import Array
from bayesatk.core.distribution import Empirical, Quantity, constant
from bayesatk.core.mixture import Given, Index, StateMixture
from bayesatk.core.moments import latent_on_nodes
from bayesatk.core.nodes import Nodes, heaviest
from bayesatk.core.quadrature import BetaRule
from bayesatk.core.series import Window, filtered, harmonics, invert

_LEFT_OUT = 2e-5  # probability of nodes that a distribution does without
_LOST = 1e-6  # probability allowed outside the window, on either side
_ENOUGH = 1e-3  # error of quantiles at which nothing more is done, in widths of the 95% interval
_STAIRS = 1e-2  # ripple of a density above which its nodes are filtered: quantiles move by 1/300 of a step
_RIPPLE = 1e-3  # of a mixture over nodes, by which every second of them may be left out
_SKEW, _EXCESS = 0.1, 0.04  # of a mean given a node, up to which four cumulants are enough
_NORMAL = 12.0  # standard deviations times frequency at which a normal has died: exp(-72)
_NARROW = 0.05  # of the whole standard deviation, below which a node is as good as normal
_PHASE = 2.0  # largest phase between neighbouring quadrature points that they still resolve
_DAMPED = 16.0  # logarithm of a damping that need not be resolved
_WORK = 4e5  # nodes times states times frequencies that one mean is worth: a tenth of a second
_FREQUENCIES = (64, 1000)  # that it may cost, where nodes and states are many, or few
_KNOWN = 1e-28  # variance below which a mean is a known number
_TILTS = np.array([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 8.0, 10.0, 14.0, 20.0, 30.0, 50.0])



def mean_distributions(
    mixture: StateMixture, draw: Callable[[], Array] | None = None
) -> list[Quantity]:
    """Posterior distribution of the mean over questions, one for each credit.

    Parameters
    ----------
    mixture : StateMixture
    draw : callable, optional
        ``draw()`` returns independent draws of the means, (draws, credits), for saturated data.

    Returns
    -------
    list of Quantity
        Each with ``cdf``, ``quantile`` and ``doubt``, the error of its quantiles.
    """
    found = []
    heavy = _heavy(mixture)
    drawn = None
    for column, credit in enumerate(mixture.credits):
        if np.ptp(credit.vector) == 0.0:
            found.append(constant(float(credit.vector[0])))
            continue
        if mixture.moments.total_variance[column] <= _KNOWN:
            found.append(constant(float(mixture.moments.overall[0][column])))
            continue
        known = thinned(heavy, column).distribution()
        if draw is not None and not known.settled:
            drawn = draw() if drawn is None else drawn
            ends = float(credit.vector.min()), float(credit.vector.max())
            found.append(_better(known, Empirical(np.clip(drawn[:, column], *ends))))
        else:
            found.append(known)
    return found


def _better(one: Quantity, other: Quantity) -> Quantity:
    """Return what knows the ends of the 95% interval better."""
    levels = np.array([0.025, 0.975])
    return other if other.doubt(levels).max() < one.doubt(levels).max() else one


def _heavy(mixture: StateMixture) -> StateMixture:
    """The mixture on the nodes that carry all but little of the probability."""
    keep = heaviest(mixture.nodes.weight, _LEFT_OUT)
    return mixture if len(keep) == len(mixture.nodes) else mixture.among(keep)


def thinned(mixture: StateMixture, column: int) -> "OneMean":
    """Leave out every second column of nodes, and every second row, where that changes nothing.

    Along a row, and from row to row, the trapezoid rule needs nodes no further apart than what is
    mixed over them is wide: equal Gaussians ``r`` standard deviations apart have a ripple of
    ``exp(-2 pi^2 / r^2)``.
    """
    nodes = mixture.nodes
    given = mixture.shape.at(column)
    if nodes.grid is None:
        return OneMean(mixture, column, given)
    row, place = nodes.grid
    rows, columns = ripples(given, nodes, 2.0)
    _, which = np.unique(row, return_inverse=True)
    share = np.bincount(which, nodes.weight)
    thin = (np.bincount(which, nodes.weight * columns) < _RIPPLE * share)[which]
    keep = ~thin | (place % 2 == 0)
    factor = np.where(thin, 2.0, 1.0)
    if nodes.weight @ rows < _RIPPLE:
        keep &= row % 2 == 0
        factor = 2.0 * factor
    chosen = np.flatnonzero(keep)
    some, factor = nodes.among(chosen), factor[chosen]
    factor *= nodes.weight.sum() / float(some.weight @ factor)
    some = replace(some, weight=some.weight * factor)
    return OneMean(replace(mixture, nodes=some), column, given.among(chosen, some.weight))


def ripples(given: Given, nodes: Nodes, apart: float = 1.0) -> tuple[Array, Array]:
    """Ripple of the mixture at each node from row to row, and from column to column.

    Along a row a node is as wide as its own standard deviation; from row to row it is the rows that
    must overlap. ``apart`` times as far apart as they are; of one credit.
    """
    offset, variance, weight = given.offset[:, 0], given.variance[:, 0], given.weight
    if nodes.grid is None:
        return np.zeros(len(nodes)), np.zeros(len(nodes))
    _, which = np.unique(nodes.grid[0], return_inverse=True)
    share = np.bincount(which, weight)
    centre = np.bincount(which, weight * offset) / share
    spread = np.bincount(which, weight * (variance + (offset - centre[which]) ** 2)) / share
    row_step, column_step = (apart * each[:, 0] for each in nodes.steps(given.offset))
    return _ripple(row_step, spread[which]), _ripple(column_step, variance)


def _ripple(step: Array, variance: Array) -> Array:
    """Relative ripple of equal Gaussians a step apart."""
    apart = step**2
    close = variance >= 10.0 * apart
    ratio = np.divide(variance, apart, out=np.full_like(apart, 10.0), where=~close)
    return np.exp(-2.0 * np.pi**2 * ratio)


@dataclass(frozen=True)
class OneMean:
    """The mean of one credit over the questions."""

    whole: StateMixture
    column: int
    given: Given

    @cached_property
    def sd(self) -> float:
        """Standard deviation over all nodes."""
        return float(np.sqrt(self.given.total_variance[0]))

    @cached_property
    def steps(self) -> tuple[Array, Array]:
        """How far the mean moves to the next row, and column, where the mixture would ripple."""
        moves = self.whole.nodes.steps(self.given.offset)
        waves = ripples(self.given, self.whole.nodes)
        row, column = (
            np.where(wave > _STAIRS, move[:, 0], 0.0) for move, wave in zip(moves, waves, strict=True)
        )
        return row, column

    @cached_property
    def parts(self) -> dict[str, Index]:
        """Nodes by how their part of the distribution is worked out.

        ``narrow`` ones are normal and need no transform; of the others ``many`` go by cumulants,
        and ``few`` by products over states, where cumulants are not enough.
        """
        given = self.given
        sd = np.sqrt(given.variance[:, 0])
        narrow = (sd < _NARROW * self.sd) & (np.maximum(*self.steps) < _NARROW * self.sd)
        variance = np.maximum(given.variance[:, 0], 1e-120)
        skew = np.abs(given.third[:, 0]) / variance**1.5
        excess = np.abs(given.fourth[:, 0]) / variance**2
        shaped = (sd >= _NARROW * self.sd) & ((skew > _SKEW) | (excess > _EXCESS))
        shaped[self.whole.bands[-1]] = False
        few = shaped & ~narrow
        groups = {"narrow": narrow, "few": few, "many": ~narrow & ~few}
        return {name: np.flatnonzero(group) for name, group in groups.items()}

    @property
    def few(self) -> Index:
        """Nodes whose transform is a product over states."""
        return self.parts["few"]

    @property
    def many(self) -> Index:
        """Nodes whose transform is that of their cumulants."""
        return self.parts["many"]

    @cached_property
    def products(self) -> StateMixture:
        """The mixture at the few nodes, for this credit."""
        return self.whole.among(self.few, self.column)

    def _offset(self, low: Array, high: Array, origin: int) -> Array:
        """Values less the origin, from them and their complements, whichever does not cancel."""
        vector = self.whole.credits[self.column].vector
        if origin < 0:
            return low - float(vector.min())
        if origin > 0:
            return (1.0 - float(vector.max())) - high
        mean, rest = (float(each[0]) for each in self.given.overall)
        return low - mean if mean <= 0.5 else rest - high

    @cached_property
    def window(self) -> tuple[float, float]:
        """Range of the mean, less its mean, outside which there is hardly any probability."""
        given, signed = self.given, np.concatenate([_TILTS, -_TILTS]) / self.sd
        size = np.abs(signed)
        logs = given.offset * signed + given.variance * size**2 / 2.0
        logs += np.abs(given.third) * size**3 / 6.0 + np.abs(given.fourth) * size**4 / 24.0
        if len(self.few):
            logs[self.few] = self._log_generating(signed)
        bound = logsumexp(logs, b=given.weight[:, None], axis=0) - np.log(_LOST)
        upper, lower = np.split(bound / signed, 2)
        vector = self.whole.credits[self.column].vector
        mean, rest = (float(each[0]) for each in given.overall)
        high = min(float(np.min(upper)), rest - (1.0 - float(vector.max())))
        return max(float(np.max(lower)), float(vector.min()) - mean), high

    def _deviation(self, mixture: StateMixture, rule: BetaRule, origin: int = 0) -> Array:
        """``(g - origin) / questions`` at the points of a rule."""
        value, rest = latent_on_nodes(mixture.credits, rule)
        return self._offset(value[:, 0], rest[:, 0], origin) / self.whole.states.questions

    def _log_generating(self, tilt: Array) -> Array:
        """Logarithm of the moment generating function at the few nodes; (nodes, tilts)."""
        mixture, count = self.products, self.whole.states.count
        total = np.zeros((len(self.few), len(tilt)))
        for band in mixture.on_rules():
            exponent = np.outer(self._deviation(mixture, band.rule), tilt)
            top = exponent.max(axis=0)
            terms = np.exp(exponent - top)
            for part in band.chunks(len(tilt)):
                with np.errstate(divide="ignore"):
                    logs = np.log(band.expectation(terms, part)) + top
                logs[np.isneginf(logs)] = np.inf  # underflow: this tilt proves nothing
                total[band.nodes] += np.einsum("gst,s->gt", logs, count[band.states[part]])
        for nodes, states, gap, variance in self._unresolved(mixture, 0):
            logs = gap[..., None] * tilt + 0.5 * variance[..., None] * tilt**2
            total[nodes] += np.einsum("gst,s->gt", logs, count[states])
        return total

    def _unresolved(
        self, mixture: StateMixture, origin: int
    ) -> Iterator[tuple[Index, Index, Array, Array]]:
        """Yield means less the origin and variances of what no rule resolves, over questions."""
        questions = self.whole.states.questions
        for nodes, states, low, high, variance in mixture.narrow():
            gap = self._offset(low[..., 0], high[..., 0], origin) / questions
            yield nodes, states, gap, variance[..., 0] / questions**2

    def transform(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        """``E exp((tilt + i omega)(X - origin))``, see `bayesatk.core.series.Law`."""
        total = np.zeros((2, len(omega)), complex)
        for nodes, own in ((self.many, self._by_cumulants), (self.few, self._by_products)):
            if len(nodes):
                phi = own(omega, origin, tilt)
                total += filtered(phi, self.given.weight[nodes], [each[nodes] for each in self.steps], omega)
        return total

    def narrow(self, x: Array) -> Array:
        """Distribution function of the narrow nodes at X."""
        nodes = self.parts["narrow"]
        if not len(nodes):
            return np.zeros_like(x)
        place, weight = self.given.mean[nodes, 0], self.given.weight[nodes]
        step = np.maximum(*self.steps)[nodes]
        variance = self.given.variance[nodes, 0] + (0.5 * step) ** 2
        # Those that lie within a fraction of the narrowest visible width of each other are one.
        bins = np.round(place / (0.5 * _NARROW * self.sd))
        _, which = np.unique(np.stack([bins, np.round(np.log2(variance + 1e-300))]), axis=1, return_inverse=True)
        which = which.ravel()
        share = np.bincount(which, weight)
        centre = np.bincount(which, weight * place) / share
        spread = np.bincount(which, weight * (variance + (place - centre[which]) ** 2)) / share
        sd = np.sqrt(np.maximum(spread, 1e-300))
        return ndtr((x[:, None] - centre) / sd) @ share

    def _by_cumulants(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        given, many = self.given, self.many
        variance, third, fourth = (
            each[many] for each in (given.variance, given.third, given.fourth)
        )
        offset = self._offset(given.mean[many], given.complement[many], origin)
        s = tilt + 1j * omega
        dead = variance * omega**2 > _NORMAL**2
        with np.errstate(over="ignore", invalid="ignore"):
            logs = s * (offset + s * (variance / 2.0 + s * (third / 6.0 + s * fourth / 24.0)))
            return np.asarray(np.exp(np.where(dead | (logs.real > 1.0), -np.inf, logs)))

    def _by_products(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        mixture, count = self.products, self.whole.states.count
        found = np.ones((len(self.few), len(omega)), complex)

        def curve(rule: BetaRule) -> Array:
            gap = self._deviation(mixture, rule, origin)
            # What is damped away need not be resolved.
            return gap if tilt == 0.0 else _DAMPED * np.expm1(tilt * gap / _DAMPED) / tilt

        for band in mixture.on_rules(curve, _PHASE / float(omega[-1])):
            gap = self._deviation(mixture, band.rule, origin)
            waves = harmonics(gap * omega[1], len(omega))
            waves *= np.exp(tilt * gap)[:, None]
            for part in band.chunks(2 * len(omega)):
                own = band.expectation(waves.view(float), part).view(complex)
                found[band.nodes] *= power_product(own, count[band.states[part]])
        self._times_unresolved(found, omega, origin, tilt)
        return found

    def _times_unresolved(
        self, found: NDArray[np.complex128], omega: Array, origin: int, tilt: float
    ) -> None:
        s = tilt + 1j * omega
        for nodes, states, gap, variance in self._unresolved(self.products, origin):
            logs = gap[..., None] * s + 0.5 * variance[..., None] * s**2
            found[nodes] *= np.exp(np.einsum("gsf,s->gf", logs, self.whole.states.count[states]))

    def distribution(self) -> "Quantity":
        """Tabulate the distribution, with as many frequencies as it takes or is worth."""
        vector = self.whole.credits[self.column].vector
        mean = float(self.given.overall[0][0])
        window = Window(*self.window, mean, float(vector.min()), float(vector.max()))
        rows = len(self.few) * len(self.whole.states)
        most = int(np.clip(_WORK / (1.0 + rows), *_FREQUENCIES))
        return invert(self, window, _ENOUGH, most, 2.0 * _LOST + _LEFT_OUT)


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
