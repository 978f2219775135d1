"""Distribution of a mean over questions of independent posterior terms, mixed over nodes.

Given a node the mean is a sum of independent bounded terms of few kinds, times the weights of their
questions, so its characteristic function is a product of powers; where there are many questions,
its first four cumulants are enough. Mixed over nodes and inverted by a Fourier series
(`bayesatk.core.engine.fourier_series`) on a window that Chernoff's bound shows to hold nearly all
of the probability, it gives the distribution function as finely as it is asked for. Nodes that
stand for a continuum of hyperparameters say nothing about frequencies near that of their spacing,
which are left out.

Where a series would take too many frequencies, for saturated data, the mean is drawn; whichever
answers says how well it does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from bayesatk.core.engine.bands import Index
from bayesatk.core.engine.distribution import Empirical, Quantity, constant
from bayesatk.core.engine.fourier_series import Series, Window, filtered, invert
from bayesatk.core.engine.matched_betas import known_at_points
from bayesatk.core.engine.mixture import Given, StateMixture
from bayesatk.core.engine.products import Products
from bayesatk.core.pooling.nodes import Nodes, heaviest
from bayesatk.metrics.credit import Array

_LEFT_OUT = 2e-5  # probability of nodes that a distribution does without
_LOST = 5e-6  # probability allowed outside the window, on either side
_ENOUGH = 2e-3  # error of an interval's ends, in its widths, at which nothing more is done
_STAIRS = 1e-2  # ripple of a density from which nodes are filtered; it moves 1/300 of their step
_MOST_ROWS = 4  # times as many rows of nodes as the hyperparameters need
_RIPPLE = 1e-3  # ripple by which every second node may be left out
_SKEW, _EXCESS = 0.1, 0.04  # of a mean given a node, up to which four cumulants are enough
_NARROW = 0.03  # of the whole standard deviation, below which a node is as good as normal
_NORMAL = 12.0  # standard deviations times frequency at which a normal has died: exp(-72)
_WORK = 2.5e5  # nodes times states times frequencies that one mean is worth: 0.1 s
_FREQUENCIES = (64, 600)  # that it may cost, where nodes and states are many, or few
_WITHOUT_DRAWS = 600  # that it may cost at least, where there are no draws to fall back on
_SCATTERED = 0.5  # of the scatter of weighted points, which more frequencies do not lessen: enough
_NOTHING_KNOWN = 0.1  # the same, from which a series says nothing
_ROUNDED = 1e-4  # sd of a mean, in its distance from the nearer end of its range, below which
# rounding may have eaten its cumulants: then it is as good as normal, and matched Betas do better
_CELLS = 257  # of a first look at where a mean lies
_DRAWS_MAY_BE_BETTER = (
    1e-2  # error of an interval's ends, in its widths, from which draws may do better
)
_FULL_FROM = 100.0  # one over the probability from which narrow nodes count in full
_ROUNDING = 2e-8  # of a tabulated distribution, in lengths of the scale
_KNOWN = 1e-28  # variance below which a mean is a known number
_TINY = 1e-120  # smallest variance that may be divided by
_TILTS = np.array([0.01, 0.05, 0.2, 0.7, 1.5, 2.5, 3.5, 4.5, 5.5, 7.0, 10.0, 16.0, 30.0, 50.0])
_ENDS = np.array([0.025, 0.975])


def mean_distributions(
    mixture: StateMixture,
    draw: Callable[[], Array] | None = None,
    finer: Callable[[int], StateMixture] | None = None,
) -> list[Quantity]:
    """Posterior distribution of the mean over questions, one for each credit.

    Parameters
    ----------
    mixture : StateMixture
    draw : callable, optional
        ``draw()`` returns independent draws of the means, (draws, credits), for saturated data.
    finer : callable, optional
        ``finer(times)`` returns the mixture on that many times as many rows of nodes.

    Returns
    -------
    list of Quantity
        Each with ``cdf``, ``quantile`` and ``stated_error``, the error of its quantiles.
    """
    found: list[Quantity] = []
    mixtures = {1: heaviest_of(mixture)}
    drawn: Array | None = None
    for column, credit in enumerate(mixture.credits):
        known = np.ptp(credit.vector) == 0.0
        if known or mixture.moments.total_variance[column] <= _KNOWN:
            found.append(constant(float(mixture.moments.overall[0][column])))
            continue
        times = 1 if finer is None else rows_needed(mixtures[1], column)
        if times not in mixtures and finer is not None:
            mixtures[times] = heaviest_of(finer(times))
        one = OneMean.of(mixtures[times], column)
        series = one.distribution(aided=draw is not None)
        hopeless = series.stated_error_of_ends - one.relative_scatter > _DRAWS_MAY_BE_BETTER
        if one.rounded and series.stated_error_of_ends > _NOTHING_KNOWN:
            found.append(_better(one.of_matched_betas, series))
            continue
        if draw is None or series.settled or not hopeless:
            found.append(series)
            continue
        drawn = draw() if drawn is None else drawn
        ends = float(credit.vector.min()), float(credit.vector.max())
        sample = Empirical(np.clip(drawn[:, column], *ends), blur=one.scatter)
        found.append(_better(sample, series))
    return found


def _better(other: Quantity, series: Quantity) -> Quantity:
    """Return the one that states the smaller error of the ends of an interval."""
    better = other.stated_error(_ENDS).max() < series.stated_error(_ENDS).max()
    return other if better else series


def heaviest_of(mixture: StateMixture) -> StateMixture:
    """Return the mixture on the nodes that carry nearly all of the probability, renormalised."""
    keep = heaviest(mixture.nodes.weight, _LEFT_OUT)
    weight = mixture.nodes.weight[keep]
    return mixture.reweighted(keep, weight / weight.sum())


def rows_needed(mixture: StateMixture, column: int) -> int:
    """How many times as many rows of nodes make no staircase, if that is few."""
    given, nodes = mixture.moments.at(column), mixture.nodes
    for times in range(1, _MOST_ROWS):
        if nodes.weight @ ripples(given, nodes, 1.0 / times)[0] < _STAIRS:
            return times
    return _MOST_ROWS


@dataclass(frozen=True)
class OneMean:
    """The mean of one credit over the questions, as a `bayesatk.core.engine.fourier_series.Law`.

    Parameters
    ----------
    whole : StateMixture
    column : int
    given : Given
        Its moments given each node.
    """

    whole: StateMixture
    column: int
    given: Given

    @classmethod
    def of(cls, mixture: StateMixture, column: int) -> "OneMean":
        """Leave out every second column of nodes, and row, where that changes nothing.

        Along a row, and from row to row, the trapezoid rule needs nodes no further apart than what
        is mixed over them is wide.
        """
        nodes, given = mixture.nodes, mixture.moments.at(column)
        if nodes.grid is None:
            return cls(mixture, column, given)
        row, place = nodes.grid
        alone = row < 0
        rows, columns = ripples(given, nodes, 2.0)
        _, which = np.unique(row, return_inverse=True)
        share = np.bincount(which, nodes.weight)
        thin = (np.bincount(which, nodes.weight * columns) < _RIPPLE * share)[which] & ~alone
        keep, factor = ~thin | (place % 2 == 0), np.where(thin, 2.0, 1.0)
        if nodes.weight @ rows < _RIPPLE:
            keep &= (row % 2 == 0) | alone
        chosen = np.flatnonzero(keep)
        some, off = nodes.among(chosen), alone[chosen]
        weight = some.weight * factor[chosen]
        weight[~off] *= nodes.weight[~alone].sum() / weight[~off].sum()
        some = replace(some, weight=weight)
        return cls(
            replace(mixture.among(chosen), nodes=some), column, given.among(chosen, some.weight)
        )

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
            np.where(wave > _STAIRS, move[:, 0], 0.0)
            for move, wave in zip(moves, waves, strict=True)
        )
        return row, column

    @cached_property
    def parts(self) -> dict[str, Index]:
        """Nodes by how their part of the distribution is worked out.

        ``narrow`` ones are normal and need no transform; of the others ``many`` go by cumulants,
        and ``few`` by products over states, where cumulants are not enough.
        """
        given = self.given
        variance = np.maximum(given.variance[:, 0], _TINY)
        wide = given.variance[:, 0] >= (_NARROW * self.sd) ** 2
        narrow = ~wide & (np.maximum(*self.steps) < _NARROW * self.sd)
        skewed = given.shape_third[:, 0] > _SKEW * variance**1.5
        few = wide & (skewed | (given.shape_fourth[:, 0] > _EXCESS * variance**2))
        few[self.whole.bands[-1]] = False
        groups = {"narrow": narrow, "few": few, "many": ~narrow & ~few}
        return {name: np.flatnonzero(group) for name, group in groups.items()}

    @cached_property
    def products(self) -> dict[str, Products]:
        """Products over states at the few nodes, at those that are filtered, and at the others."""
        few = self.parts["few"]
        apart = np.maximum(*self.steps)[few] > 0.0
        groups = {"few": few, "stepped": few[apart], "free": few[~apart]}
        return {
            name: Products(self.whole, self.column, self.given, nodes)
            for name, nodes in groups.items()
        }

    @property
    def rounded(self) -> bool:
        """Whether it is so narrow, far from the ends of its range, that rounding may be seen."""
        vector = self.whole.credits[self.column].vector
        mean = float(self.given.overall[0][0])
        nearer = min(mean - float(vector.min()), float(vector.max()) - mean)
        return self.sd < _ROUNDED * nearer

    @property
    def of_matched_betas(self) -> Quantity:
        """Mixture, over the nodes, of Betas with the means and variances given them.

        It always answers: also where a mean is so narrow that no series resolves it.
        """
        vector, given = self.whole.credits[self.column].vector, self.given
        draws = 1.0 / float(given.weight @ given.weight)
        return known_at_points(
            given.weight, given.mean[:, 0], given.variance[:, 0],
            (float(vector.min()), float(vector.max())), draws,
        )  # fmt: skip

    def distribution(self, aided: bool) -> Series:
        """Tabulate the distribution, with as many frequencies as it takes or is worth."""
        vector = self.whole.credits[self.column].vector
        low, high = (float(each[0]) for each in self.given.overall)
        mean = low if low <= 0.5 else 1.0 - high
        window = Window(*self.window, mean, float(vector.min()), float(vector.max()))
        rows = len(self.parts["few"]) * len(self.products["few"].states.terms.state)
        least = _FREQUENCIES[0] if aided else _WITHOUT_DRAWS
        most = int(np.clip(_WORK / (1.0 + rows), least, _FREQUENCIES[1]))
        enough = max(_ENOUGH, _SCATTERED * self.relative_scatter)
        series = invert(self, window, enough, most, 2.0 * _LOST + _LEFT_OUT)
        return replace(series, blur=self.blur + self.scatter + _ROUNDING * float(np.ptp(vector)))

    @cached_property
    def _normal_ends(self) -> Array:
        """Ends of the central 95%, less the mean, if every node were normal."""
        given, (low, high) = self.given, self.window
        x = np.linspace(low, high, _CELLS)
        spread = np.sqrt(given.variance[:, :1] + (_NARROW * self.sd) ** 2)
        upto = given.weight @ ndtr((x - given.offset) / spread)
        return np.asarray(np.interp(_ENDS, upto, x))

    @property
    def relative_scatter(self) -> float:
        """The scatter in widths of the central 95%."""
        return self.scatter / max(float(np.ptp(self._normal_ends)), _TINY)

    @cached_property
    def scatter(self) -> float:
        """Two standard errors of quantiles, from nodes that are weighted points of a posterior.

        The distribution function is a weighted mean over nodes, each taken as normal.
        """
        grid = self.whole.nodes.grid
        apart = np.ones(len(self.whole.nodes), bool) if grid is None else grid[0] < 0
        if len(apart) == 1 or not apart.any():
            return 0.0
        given = self.given
        spread = np.sqrt(given.variance[:, :1] + (_NARROW * self.sd) ** 2)
        z = (self._normal_ends - given.offset[:, :1]) / spread
        own = ndtr(z) - given.weight @ ndtr(z)
        density = given.weight @ (np.exp(-0.5 * z**2) / spread) / np.sqrt(2.0 * np.pi)
        square = given.weight[apart] ** 2 @ own[apart] ** 2
        return float((2.0 * np.sqrt(square) / np.maximum(density, _TINY)).max())

    @cached_property
    def blur(self) -> float:
        """How far from their own distribution narrow nodes that are taken as normal may be."""
        nodes = self.parts["narrow"]
        weight = self.given.weight[nodes]
        square = float(weight @ self.given.variance[nodes, 0])
        return 2.0 * float(np.sqrt(square * min(1.0 / max(weight.sum(), 1e-300), _FULL_FROM)))

    @cached_property
    def window(self) -> tuple[float, float]:
        """Range of the mean, less its mean, outside which there is hardly any probability."""
        given, signed = self.given, np.concatenate([_TILTS, -_TILTS]) / self.sd
        size = np.abs(signed)
        logs = given.offset * signed + given.variance * size**2 / 2.0
        logs += np.abs(given.third) * size**3 / 6.0 + np.abs(given.fourth) * size**4 / 24.0
        if len(self.parts["few"]):
            logs[self.parts["few"]] = self.products["few"].log_generating(signed)
        bound = logsumexp(logs, b=given.weight[:, None], axis=0) - np.log(_LOST)
        upper, lower = np.split(bound / signed, 2)
        vector = self.whole.credits[self.column].vector
        mean, rest = (float(each[0]) for each in given.overall)
        high = min(float(np.min(upper)), rest - (1.0 - float(vector.max())))
        return max(float(np.max(lower)), float(vector.min()) - mean), high

    def transform(self, omega: Array, origin: int, tilt: float) -> NDArray[np.complex128]:
        """``E exp((tilt + i omega)(X - origin))``, of all but the narrow nodes.

        With a tilt, without the smooth part: cumulants know nothing of the ends of the scale, and
        a filter of nodes is none for a tilted density.
        """
        if tilt == 0.0:
            return self._by_cumulants(omega) + self._by_products("few", omega)
        return self._by_products("free", omega, origin, tilt)

    def smooth(self, omega: Array) -> NDArray[np.complex128]:
        """Characteristic function less the mean of what a tilt leaves out."""
        return self._by_cumulants(omega) + self._by_products("stepped", omega)

    def _by_products(
        self, group: str, omega: Array, origin: int = 0, tilt: float = 0.0
    ) -> NDArray[np.complex128]:
        own = self.products[group]
        return self._filtered(own.nodes, own.transform(omega, origin, tilt), omega)

    def _by_cumulants(self, omega: Array) -> NDArray[np.complex128]:
        many, given = self.parts["many"], self.given
        offset, variance, third, fourth = (
            each[many] for each in (given.offset, given.variance, given.third, given.fourth)
        )
        s = 1j * omega
        dead = variance * omega**2 > _NORMAL**2
        with np.errstate(over="ignore", invalid="ignore"):
            logs = s * (offset + s * (variance / 2.0 + s * (third / 6.0 + s * fourth / 24.0)))
            phi = np.exp(np.where(dead | (logs.real > 1.0), -np.inf, logs))
        return self._filtered(many, phi, omega)

    def _filtered(
        self, nodes: Index, phi: NDArray[np.complex128], omega: Array
    ) -> NDArray[np.complex128]:
        steps = [each[nodes] for each in self.steps]
        return filtered(phi, self.given.weight[nodes], steps, omega)

    def narrow(self, x: Array) -> Array:
        """Distribution function of the narrow nodes at X; nodes that lie close together are one."""
        nodes = self.parts["narrow"]
        if not len(nodes):
            return np.zeros_like(x)
        place, weight = self.given.mean[nodes, 0], self.given.weight[nodes]
        # As wide as the gaps between them, so that they do not make a staircase.
        step = np.maximum(*self.steps)[nodes]
        variance = np.maximum(self.given.variance[nodes, 0] + (0.5 * step) ** 2, _TINY)
        bins = np.stack([np.round(place / (0.5 * _NARROW * self.sd)), np.round(np.log2(variance))])
        which = np.unique(bins, axis=1, return_inverse=True)[1].ravel()
        share = np.bincount(which, weight)
        centre = np.bincount(which, weight * place) / share
        spread = np.bincount(which, weight * (variance + (place - centre[which]) ** 2)) / share
        return np.asarray(ndtr((x[:, None] - centre) / np.sqrt(spread)) @ share)


def ripples(given: Given, nodes: Nodes, apart: float = 1.0) -> tuple[Array, Array]:
    """Ripple of a mixture at each node from row to row, and from column to column.

    Equal Gaussians ``r`` standard deviations apart have a ripple of ``exp(-2 pi^2 / r^2)``. Along a
    row a node is as wide as its own standard deviation; from row to row it is the rows that must
    overlap.

    Parameters
    ----------
    given : Given
        Of one credit.
    nodes : Nodes
    apart : float
        Nodes this many times as far apart as they are.
    """
    if nodes.grid is None:
        return np.zeros(len(nodes)), np.zeros(len(nodes))
    offset, variance, weight = given.offset[:, 0], given.variance[:, 0], given.weight
    _, which = np.unique(nodes.grid[0], return_inverse=True)
    share = np.bincount(which, weight)
    centre = np.bincount(which, weight * offset) / share
    spread = np.bincount(which, weight * (variance + (offset - centre[which]) ** 2)) / share
    row, column = (apart * each[:, 0] for each in nodes.steps(given.offset))
    return _ripple(row, spread[which]), _ripple(column, variance)


def _ripple(step: Array, variance: Array) -> Array:
    """Relative ripple of equal Gaussians a step apart."""
    ratio = np.divide(
        variance, step**2, out=np.full_like(step, 10.0), where=variance < 10.0 * step**2
    )
    return np.asarray(np.exp(-2.0 * np.pi**2 * ratio))
