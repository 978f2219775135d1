"""Groups of questions: the posterior of their means around a common one, by nested quadrature.

A question of group g has ``p ~ Beta`` with mean ``expit(x_g)`` and intraclass correlation r; groups
have ``x_g ~ Normal(mu, tau)``. Given (mu, tau, r) the groups are independent, and each is an
integral over its own x of a normal density times the likelihood of its counts.

That integral is a sum over one grid of x for all groups: the likelihood is joined by straight lines
between the points of the grid, whose products with a normal density are known exactly, however
narrow it is. So for any (mu, tau) the weights of the grid are one vector, and everything about all
groups is a matrix product. The three hyperparameters have trapezoid rules where their posterior is,
which is found by zooming in: logit r in rows; ``tau = s sinh u`` in u, of which everything is an
even function, anew for every row; and mu, anew for every row and tau.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import betaln, expit, logsumexp

from bayesatk.core.numerics.quadrature import straight_weights
from bayesatk.core.pooling.states import GroupedStates
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior

_DROP = 18.0  # of a log density below its peak, where its nodes end: 1.5e-8
_ROWS, _SDS, _MEANS = 19, 19, 19  # nodes of logit r, of u and of mu over such a range
_SCAN_NODES = 11  # nodes of a range while its ends are sought
_FINER = 8  # points of mu to a node, of draws and quantiles
_RANGE_CUTS = 3  # times that a range of mu is cut
_ZOOMS = 12  # times that a range is cut or widened, at most
_FIRST_SPACING = 0.5  # spacing of the grid of x to begin with, in logits
_FINE_BEND = 0.06  # second difference of a log-likelihood from which the grid is halved: sd / 4
_ROUGH_BEND = 0.5  # the same, while ranges are sought
_LOG_LIKELIHOOD_DROP = 25.0  # log-likelihood below its largest from which a group does not matter
_HALVINGS = 9  # of the spacing of x: to a thousandth of a logit
_FARTHEST = 24.0  # logits from 0, where a prior Beta(1, 1) of a mean has all but 1e-10
_PRIOR_SDS = 6.0  # prior standard deviations of tau that are looked at
_NEGLIGIBLE = 1e-6  # probability of all mu at one tau and r, from which they count
_LEAST_POINT = 1e-9  # probability of a point of x, for every group, below which it is left out
_TINY = 1e-300


@dataclass(frozen=True)
class Row:
    """Nodes (mu, tau) of one value of logit r, and the groups given each.

    Parameters
    ----------
    y : float
        Logit r.
    mu, tau : ndarray, shape (n,)
    log_weight : ndarray, shape (n,)
        Log posterior density given logit r, times the spacing of the nodes; not normalised.
    grid : ndarray, shape (n, points)
        Prior weights of the points of x at the nodes.
    likelihood : ndarray, shape (points, groups)
        Of every group, at most one.
    total : ndarray, shape (n, groups)
        Their products.
    weight : ndarray, shape (n,)
        Posterior probabilities, over all rows.
    """

    y: float
    mu: Array
    tau: Array
    log_weight: Array
    grid: Array
    likelihood: Array
    total: Array
    weight: Array = field(default_factory=lambda: np.zeros(0))

    def among(self, keep: NDArray[np.bool_]) -> "Row":
        """Return some of the nodes."""
        names = ("mu", "tau", "log_weight", "grid", "total", "weight")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})

    def of_sds(self, size: int) -> Array:
        """Log density of as many values of tau, mu integrated."""
        return np.asarray(logsumexp(self.log_weight.reshape(size, -1), axis=1))

    def given(self, values: Array) -> Array:
        """Posterior mean of functions (points, groups) given each node; (n, groups)."""
        return np.asarray((self.grid @ (self.likelihood * values)) / self.total)

    def of_points(self) -> Array:
        """Posterior probability of this row and every point, by group; (points, groups)."""
        return np.asarray(self.likelihood * (self.grid.T @ (self.weight[:, None] / self.total)))


@dataclass(frozen=True)
class GroupedPosterior:
    """Posterior of the hyperparameters and of the means of groups.

    Parameters
    ----------
    x : ndarray, shape (points,)
        Grid of logit means.
    rows : list of Row
        Normalised over all of them.
    log_evidence : float
        Of all trials in their order.
    error : float
        Of the means and sds of mu, tau and r (in sds), and of the log evidence.
    """

    x: Array
    rows: list[Row]
    log_evidence: float
    error: float

    @cached_property
    def hyper(self) -> tuple[Array, Array, Array, Array]:
        """Probability, mu, tau and r of all nodes."""
        parts = [(one.weight, one.mu, one.tau, np.full(len(one.mu), expit(one.y)))
                 for one in self.rows]  # fmt: skip
        weight, mu, tau, icc = (np.concatenate(each) for each in zip(*parts, strict=True))
        return weight, mu, tau, icc

    @cached_property
    def lines(self) -> tuple[Array, Array, Array]:
        """Row, tau and probability of every line of nodes that differ in mu only."""
        row = np.concatenate([np.full(len(one.mu) // _MEANS, i) for i, one in enumerate(self.rows)])
        weight, _, tau, _ = self.hyper
        return row, tau[::_MEANS], weight.reshape(-1, _MEANS).sum(axis=1)

    @cached_property
    def fine(self) -> tuple[Array, Array]:
        """Values of mu along every line, and their probabilities given it; (lines, points)."""
        logs = np.concatenate([one.log_weight for one in self.rows]).reshape(-1, _MEANS)
        logs = np.maximum(logs - logs.max(axis=1, keepdims=True), -2.0 * _DROP)
        place = np.linspace(0.0, _MEANS - 1.0, _FINER * (_MEANS - 1) + 1)
        known = np.stack([logs, self.hyper[1].reshape(-1, _MEANS)], axis=-1)
        logs, mu = CubicSpline(np.arange(_MEANS), known, axis=1)(place).transpose(2, 0, 1)
        weight = np.exp(np.minimum(logs, 1.0))
        return mu, weight / weight.sum(axis=1, keepdims=True)

    @cached_property
    def points(self) -> Array:
        """Posterior probability of every row and point, by group; (rows, points, groups)."""
        return np.stack([one.of_points() for one in self.rows])


def grouped_posterior(data: GroupedStates, prior: HyperPrior) -> GroupedPosterior:
    """Integrate the common mean, the sd of groups and the correlation within them.

    Examples
    --------
    >>> c, n = np.array([3, 3, 0, 1]), np.full(4, 4)
    >>> data = GroupedStates.of(c, n, np.array([0, 0, 1, 1]), 2)
    >>> found = grouped_posterior(data, HyperPrior())
    >>> weight, mu, tau, icc = found.hyper
    >>> round(float(weight.sum()), 12), found.error < 0.02
    (1.0, True)
    """
    search = _Search(data, prior)
    y, spacing = _spread(*search.range_of_icc(), _ROWS)
    x = search.grid_of_means(y[[0, len(y) // 2, -1]], _FINE_BEND)
    scale, u = search.sds(x, _SCAN_NODES)
    rows = []
    for one in y:
        # With few questions in groups, r and tau have a narrow ridge: each row has its own tau.
        coarse = search.row(x, one, scale, u, _SCAN_NODES).of_sds(len(u))
        rows.append(search.row(x, one, scale, np.linspace(*_range(u, coarse), _SDS), _MEANS))
    return _normalised(x, rows, np.log(spacing))


def _range(place: Array, logs: Array) -> tuple[float, float]:
    """Where a density on points matters, and the points next to that."""
    near = np.flatnonzero(logs > logs.max() - _DROP)
    return float(place[max(near[0] - 1, 0)]), float(place[min(near[-1] + 1, len(place) - 1)])


def _spread(place: Array, logs: Array, size: int) -> tuple[Array, Array]:
    """Nodes over where a density known on points matters, denser about its middle; and spacings.

    They are even in t, ``2 sinh t`` standard deviations from the mean, as those of a single level
    of questions (`bayesatk.core.pooling.hierarchy`).
    """
    low, high = _range(place, logs)
    share = np.exp(logs - logs.max()) * np.gradient(place)
    share /= share.sum()
    centre = float(share @ place)
    step = (place[-1] - place[0]) / (len(place) - 1)
    sd = max(float(np.sqrt(share @ (place - centre) ** 2)), 0.3 * step)
    ends = np.arcsinh((np.array([low, high]) - centre) / (2.0 * sd))
    t = np.linspace(float(ends[0]), float(ends[1]), size)
    return centre + 2.0 * sd * np.sinh(t), 2.0 * sd * np.cosh(t) * (t[1] - t[0])


def _normalised(x: Array, rows: list[Row], log_spacing: Array) -> GroupedPosterior:
    """Posterior of all rows, with the error that every second node shows."""
    size = len(rows), _SDS, _MEANS
    logs = np.stack([one.log_weight for one in rows]) + log_spacing[:, None]
    evidence = float(logsumexp(logs))
    values = np.stack([[one.mu, one.tau, np.full(len(one.mu), one.y)] for one in rows], axis=1)
    weight = np.exp(logs - evidence)
    error = _halved(weight.reshape(size), values.reshape(3, *size))
    # By tau: the nodes of mu of one tau stay together.
    heavy = np.repeat(weight.reshape(size).sum(axis=2) > _NEGLIGIBLE, _MEANS, axis=1)
    weight /= weight[heavy].sum()
    kept = [
        replace(one, weight=own).among(some)
        for one, own, some in zip(rows, weight, heavy, strict=True)
        if some.any()
    ]
    return _trimmed(GroupedPosterior(x, kept, evidence, error))


def _trimmed(found: GroupedPosterior) -> GroupedPosterior:
    """Leave out points of x that no group comes near."""
    share = found.points.sum(axis=0).max(axis=1)
    near = np.flatnonzero(share > _LEAST_POINT)
    part = slice(max(near[0] - 1, 0), near[-1] + 2)
    rows = []
    for one in found.rows:
        grid, likelihood = np.ascontiguousarray(one.grid[:, part]), one.likelihood[part]
        total = np.maximum(grid @ likelihood, _TINY)
        rows.append(replace(one, grid=grid, likelihood=likelihood, total=total))
    return replace(found, x=found.x[part], rows=rows)


def _halved(weight: Array, values: Array) -> float:
    """Square of the largest change with every second node of each of three directions.

    Errors of the rule fall as exp(-c / step^2) where densities are normal, as exp(-c / step) where
    they fall off exponentially: halving the step squares them at least.
    """
    half = weight[::2, ::2, ::2] * 8.0
    changes = [abs(np.log(half.sum()))]
    for one in values:
        mean, sd = _mean_sd(weight, one)
        other, other_sd = _mean_sd(half / half.sum(), one[::2, ::2, ::2])
        changes += [abs(other - mean) / sd, abs(other_sd - sd) / sd]
    return float(max(changes)) ** 2


def _mean_sd(weight: Array, values: Array) -> tuple[float, float]:
    mean = float((weight * values).sum())
    return mean, float(np.sqrt((weight * (values - mean) ** 2).sum()))


@dataclass(frozen=True)
class _Search:
    """Where the posterior is."""

    data: GroupedStates
    prior: HyperPrior

    @cached_property
    def farthest(self) -> float:
        """Logits from 0 within which the common mean is looked for."""
        return _FARTHEST / min(1.0, *self.prior.mean)

    def grid_of_means(self, y: Array, curved: float) -> Array:
        """Grid of x that resolves the likelihood of every group at some values of logit r."""
        x = np.linspace(-self.farthest, self.farthest, round(2.0 * _FARTHEST / _FIRST_SPACING) + 1)
        logs = self.data.log_likelihood(x, y)
        for _ in range(_HALVINGS):
            seen = logs > logs.max(axis=1, keepdims=True) - _LOG_LIKELIHOOD_DROP
            step = np.diff(x)
            bend = np.abs(np.diff(np.diff(logs, axis=1) / step[:, None], axis=1))
            bend *= np.minimum(step[1:], step[:-1])[:, None]
            halve = np.zeros(len(step), bool)
            inside = ((bend > curved) & seen[:, 1:-1]).any(axis=(0, 2))
            halve[:-1] |= inside
            halve[1:] |= inside
            if not halve.any():
                break
            new = 0.5 * (x[1:] + x[:-1])[halve]
            order = np.argsort(np.concatenate([x, new]), kind="stable")
            both = np.concatenate([logs, self.data.log_likelihood(new, y)], axis=1)
            x, logs = np.concatenate([x, new])[order], both[:, order]
        return x

    def sds(self, x: Array, size: int) -> tuple[float, Array]:
        """Scale, and values of u, of ``tau = scale sinh u``."""
        scale = min(2.0 * float(np.diff(x).min()), self.prior.group_sd)
        return scale, np.linspace(
            0.0, float(np.arcsinh(_PRIOR_SDS * self.prior.group_sd / scale)), size
        )

    def row(self, x: Array, y: float, scale: float, u: Array, size: int) -> Row:
        """Nodes of one value of logit r: of mu for every tau, where it matters."""
        logs = self.data.log_likelihood(x, np.array([y]))[0]
        top = logs.max(axis=0)
        likelihood, tau = np.exp(logs - top), scale * np.sinh(u)
        mu, spacing = self._means(x, tau, likelihood, size)
        taus = np.repeat(tau, size)
        found, grid, total = self._density(x, mu.ravel(), taus, likelihood)
        # Of an even function u = 0 is the middle: half of its cell is counted.
        jacobian = scale * np.cosh(u) * np.where(tau > 0.0, 1.0, 0.5) * (u[1] - u[0])
        a, b = self.prior.icc
        known = top.sum() - a * np.logaddexp(0, -y) - b * np.logaddexp(0, y) - betaln(a, b)
        logs = found + np.log(spacing * jacobian[:, None]).ravel() + known
        return Row(y, mu.ravel(), taus, logs, grid, likelihood, total)

    def _means(self, x: Array, tau: Array, likelihood: Array, size: int) -> tuple[Array, Array]:
        """Nodes of mu and their spacings, for every tau; both (taus, size)."""
        near = np.flatnonzero((likelihood > np.exp(-_LOG_LIKELIHOOD_DROP)).any(axis=1))
        first = np.linspace(x[near[0]], x[near[-1]], _SCAN_NODES)
        scanned = np.tile(first, (len(tau), 1))
        for left in range(_RANGE_CUTS, -1, -1):
            logs, *_ = self._density(x, scanned.ravel(), np.repeat(tau, _SCAN_NODES), likelihood)
            pairs = list(zip(scanned, logs.reshape(scanned.shape), strict=True))
            if left:
                scanned = np.array([np.linspace(*_range(*each), _SCAN_NODES) for each in pairs])
        found = [_spread(*each, size) for each in pairs]
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])

    def _density(
        self, x: Array, mu: Array, tau: Array, likelihood: Array
    ) -> tuple[Array, Array, Array]:
        """Log density of (mu, tau) but for constants, grid weights, and likelihoods of groups."""
        grid = straight_weights(x, mu, tau)
        total = np.maximum(grid @ likelihood, _TINY)
        a, b = self.prior.mean
        logs = np.log(total).sum(axis=1) - a * np.logaddexp(0, -mu) - b * np.logaddexp(0, mu)
        logs += np.log(2.0 / np.pi) / 2.0 - np.log(self.prior.group_sd) - betaln(a, b)
        return logs - 0.5 * (tau / self.prior.group_sd) ** 2, grid, total

    def range_of_icc(self) -> tuple[Array, Array]:
        """Values of logit r with their log density: zoomed in on, or widened where they end."""
        widest = _FARTHEST / min(1.0, *self.prior.icc)
        y = np.linspace(-9.0, 7.0, _SCAN_NODES)
        for _ in range(_ZOOMS):
            logs = np.array([self._marginal(one) for one in y])
            low, high = _range(y, logs)
            at_low, at_high = logs[[0, -1]] > logs.max() - _DROP
            at_low, at_high = at_low and y[0] > -widest, at_high and y[-1] < widest
            if not (at_low or at_high) and high - low > 0.5 * (y[-1] - y[0]):
                break
            seen, wide = (y, logs), high - low
            low = max(low - at_low * wide, -widest) if at_low else low
            high = min(high + at_high * wide, widest) if at_high else high
            y = np.linspace(low, high, _SCAN_NODES)
        else:
            y, logs = seen
        return y, logs

    def _marginal(self, y: float) -> float:
        """Log density of logit r."""
        x = self.grid_of_means(np.array([y]), _ROUGH_BEND)
        scale, u = self.sds(x, _SCAN_NODES)
        return float(logsumexp(self.row(x, y, scale, u, _SCAN_NODES).log_weight))
