"""Contrasts between systems, ranks of all, and tiers, from joint draws of a metric.

Means whose posteriors are independent and exact are joint draws too: those of a pair are the points
of a lattice in their two levels, those of all systems a Latin hypercube.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Flags, Indices, Ints
from bayesatk.core.engine.distribution import Empirical, interval
from bayesatk.metrics.grid import MetricGrid

Places = Indices

CONTRASTS = (
    "mean", "sd", "ci_lower", "ci_upper", "prob_greater", "prob_tie", "prob_below_rope",
    "prob_in_rope", "prob_above_rope", "expected_loss", "ratio_median", "ratio_lower",
    "ratio_upper", "monte_carlo_error", "sd_unpaired", "mean_system", "mean_other", "band_lower",
    "band_upper", "declared",
)  # fmt: skip
# What a contrast is called for the pair the other way round, and the sign it then has. Of a pair
# of names each is worked out by itself: no probability is 1 minus another.
_OPPOSITE = {
    "ci_lower": "ci_upper",
    "prob_greater": "prob_smaller",
    "prob_below_rope": "prob_above_rope",
    "expected_loss": "expected_gain",
    "ratio_lower": "ratio_upper",
    "band_lower": "band_upper",
    "mean_system": "mean_other",
    "declared": "declared_other",
}
_OPPOSITE |= {opposite: name for name, opposite in _OPPOSITE.items()}
_SIGNED = ("mean", "ci_lower", "ci_upper", "band_lower", "band_upper")

# Share of the scale within which two values are the same, 9e-13: distributions are no better known.
RESOLUTION = 2.0**-40
_VALUES = 4_000_000  # draws of differences held at once: 32 MB

# Levels at which exact quantiles are looked up, denser near the ends.
_TAIL = np.array([1e-9, 1e-7, 1e-5])
LEVELS = np.concatenate([_TAIL, np.sin(0.5 * np.pi * np.arange(1, 96) / 96) ** 2, 1 - _TAIL[::-1]])
_MIDDLE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
# Standard errors in a stated error of quantiles: two or three, at the worse end of an interval, of
# points taken as independent; those of the average are spread more evenly.
_STATED = 5.0
# Two Fibonacci numbers: a lattice of so many points has probabilities of differences to .001.
_POINTS, _STEP = 10946, 6765
_ROUNDING = 1e-9  # error of probabilities that is none
_RANKED = 1e6  # values behind probabilities of ranks: a standard error of .0016 or less

Contrasts = dict[str, Array]  # by name, a value for each pair


@dataclass(frozen=True)
class Settings:
    """Interval and region of practical equivalence."""

    ci_prob: float
    ci_kind: Literal["eti", "hdi"]
    rope: float

    @property
    def ratio_levels(self) -> Array:
        """Probabilities below the median, the lower and the upper end of a ratio."""
        tail = 0.5 * (1.0 - self.ci_prob)
        return np.array([0.5, tail, 1.0 - tail])


@dataclass(frozen=True)
class Drawn:
    """Joint draws of several systems.

    Parameters
    ----------
    values : ndarray, shape (draws, cells, systems)
    sd : ndarray, shape (cells, systems)
        Of every system by itself.
    effective : float
        Effective number of independent draws.
    alike : ndarray of int, shape (systems,), optional
        For every system the place of the first with the same data. Their posteriors are the same,
        so the draws of the first stand for those of all; default: each its own.
    direction : int
        1 where higher values are better, -1 where lower ones are.
    """

    values: Array
    sd: Array
    effective: float
    alike: Places = field(default_factory=lambda: np.zeros(0, np.intp))
    direction: int = 1

    def __post_init__(self) -> None:
        if not len(self.alike):
            object.__setattr__(self, "alike", np.arange(self.values.shape[2]))

    @classmethod
    def of(cls, values: Array, alone: Array, effective: float) -> "Drawn":
        """Take draws, and draws of every system had it been evaluated alone."""
        return cls(values, alone.std(axis=0, ddof=1), effective)

    def rows(self, cell: int, first: Places, second: Places) -> tuple[Array, Array]:
        """Return joint draws of the first and of the second systems of pairs; (pairs, draws)."""
        values = self.values[:, cell].T
        return values[first], values[second]

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system; ties are broken at random."""
        ranks = rank_probabilities(self.direction * self.joint(cell))
        return np.stack([ranks[self.alike == number].mean(axis=0) for number in self.alike])

    def joint(self, cell: int) -> Array:
        """Return joint draws of all systems, (draws, systems)."""
        return self.values[:, cell]

    def levels(self, cell: int, probabilities: Sequence[float]) -> tuple[Array, Array, Array]:
        """Return means, sds and quantiles (probabilities, systems); of systems alike the same."""
        values = self.values[:, cell]
        pooled = [values[:, self.alike == number] for number in self.alike]
        ends = [np.quantile(column, probabilities) for column in pooled]
        sd = np.array([column.std() for column in pooled])
        return self.means(cell), sd, np.stack(ends, axis=1)

    def means(self, cell: int) -> Array:
        """Return the mean of every system; systems alike have the same."""
        mean = self.values[:, cell].mean(axis=0)
        total, number = (np.bincount(self.alike, weight) for weight in (mean, np.ones_like(mean)))
        return np.asarray((total / np.maximum(number, 1.0))[self.alike])

    def declared(self, cell: int, alpha: float) -> Flags:
        """Return which systems (row) are declared better than which (column)."""
        joint = self.direction * self.joint(cell)[:, self.alike]
        return separated(joint, 0.5 * alpha, self._wrong(cell))

    def _wrong(self, cell: int) -> Array | None:
        """Return the probability that an order of two systems is wrong; None: that of the draws."""
        return None

    def order(self, cell: int) -> Places:
        """Return the systems by their means, the best first."""
        return np.argsort(-self.direction * self.means(cell), kind="stable")

    def representatives(self, i: Places, j: Places) -> tuple[Places, Places]:
        """Return the systems whose draws give the contrasts of pairs."""
        _, first, group = np.unique(self.alike, return_index=True, return_inverse=True)
        a, b = first[group[i]], first[group[j]]
        # Of systems alike, the second: any two of them are independent, and alike.
        second = {g: np.flatnonzero(group == g)[1] for g in group[i][a == b].tolist()}
        b[a == b] = [second[g] for g in group[i][a == b].tolist()]
        return a, b

    def differences(self, cell: int, i: int, j: int) -> Array:
        """Return draws of system i minus system j; of systems alike either way round."""
        a, b = self.rows(cell, *self.representatives(np.array([i]), np.array([j])))
        gap = (a - b)[0]
        return np.append(gap, -gap) if self.alike[i] == self.alike[j] else gap

    def contrasts(self, cell: int, i: Places, j: Places, settings: Settings) -> Contrasts:
        """Return the contrasts of systems i minus systems j."""
        first, second = self.representatives(i, j)
        contrasts: Contrasts = {}
        same = self.alike[i] == self.alike[j]
        for pairs in _blocks(same, len(self.values)):
            a, b = self.rows(cell, first[pairs], second[pairs])
            if same[pairs[0]]:  # exchangeable: as likely the other way round
                a, b = np.hstack([a, b]), np.hstack([b, a])
            block = _of_rows(a, b, settings, self.direction)
            if same[pairs[0]]:
                block |= _even_ratio(block["ratio_lower"], block["ratio_upper"])
            for name, values in block.items():
                contrasts.setdefault(name, np.empty(len(i)))[pairs] = values
        ends = 0.5 / len(self.values) / (1.0 + same)
        inner = np.clip(contrasts["prob_greater"], ends, 1.0 - ends)
        contrasts["monte_carlo_error"] = np.sqrt(inner * (1.0 - inner) / self.effective)
        contrasts["sd_unpaired"] = np.hypot(self.sd[cell, first], self.sd[cell, second])
        level = self.means(cell)
        contrasts |= {"mean_system": level[first], "mean_other": level[second]}
        return contrasts


@dataclass(frozen=True)
class ExactMean:
    """Exact posterior of one system's mean over these questions.

    Parameters
    ----------
    mean, sd, error : float
        The error is the standard error of quantiles in the middle.
    quantiles : ndarray
        At `LEVELS`.
    """

    mean: float
    sd: float
    error: float
    quantiles: Array

    @classmethod
    def of(cls, mean: float, sd: float, quantity: Empirical) -> "ExactMean":
        """Look the quantiles of a distribution up."""
        quantiles = np.maximum.accumulate(np.asarray(quantity.quantile(LEVELS), float))
        return cls(mean, sd, float(np.mean(quantity.stated_error(_MIDDLE))) / _STATED, quantiles)

    def at(self, levels: Array) -> Array:
        """Return quantiles at other levels, by straight lines."""
        return np.interp(levels, LEVELS, self.quantiles)


@dataclass(frozen=True)
class Independent(Drawn):
    """Independent systems with exact posteriors; draws where a metric has none.

    Parameters
    ----------
    exact : mapping
        Posteriors of all systems, by cell.
    """

    exact: Mapping[int, list[ExactMean]] = field(default_factory=dict)

    @classmethod
    def among(cls, drawn: Drawn, exact: Mapping[int, list[ExactMean]]) -> "Independent":
        """Return draws whose metrics have exact posteriors in some cells."""
        sd = drawn.sd.copy()
        for cell, means in exact.items():
            sd[cell] = [mean.sd for mean in means]
        return cls(drawn.values, sd, drawn.effective, drawn.alike, drawn.direction, exact)

    def _even(self, cell: int) -> Array:
        """Quantiles at even levels; (systems, points)."""
        levels = (np.arange(_POINTS) + 0.5) / _POINTS
        return np.stack([mean.at(levels) for mean in self.exact[cell]])

    def rows(self, cell: int, first: Places, second: Places) -> tuple[Array, Array]:
        """Return pairs of quantiles on a lattice of levels."""
        if cell not in self.exact:
            return super().rows(cell, first, second)
        values = self._even(cell)
        return values[first], values[second][:, np.arange(_POINTS) * _STEP % _POINTS]

    def joint(self, cell: int) -> Array:
        """Return quantiles at even levels, in orders drawn by chance."""
        if cell not in self.exact:
            return super().joint(cell)
        rng, values = np.random.default_rng(0), self._even(cell)
        number = int(np.clip(_RANKED / values.size, 3, 30))
        return np.concatenate([rng.permuted(values, axis=1) for _ in range(number)], axis=1).T

    def _wrong(self, cell: int) -> Array | None:
        """Return the probability that a pair's order is wrong by its row."""
        if cell not in self.exact:
            return None
        size = len(self.alike)
        wrong = np.ones((size, size))
        for i in range(size - 1):
            j = i + 1 + np.flatnonzero(self.alike[i + 1 :] != self.alike[i])
            if len(j):
                rows = self.rows(cell, *self.representatives(np.full(len(j), i), j))
                (a, b), _ = round_to_resolution(self.direction * np.stack(rows))
                wrong[i, j], wrong[j, i] = (a <= b).mean(axis=1), (b <= a).mean(axis=1)
        return wrong

    def levels(self, cell: int, probabilities: Sequence[float]) -> tuple[Array, Array, Array]:
        """Return exact means, sds and quantiles, where they are known."""
        if cell not in self.exact:
            return super().levels(cell, probabilities)
        ends = [mean.at(np.asarray(probabilities)) for mean in self.exact[cell]]
        return self.means(cell), self.sd[cell], np.stack(ends, axis=1)

    def means(self, cell: int) -> Array:
        """Return the exact mean of every system, where it is known."""
        if cell not in self.exact:
            return super().means(cell)
        return np.array([mean.mean for mean in self.exact[cell]])

    def contrasts(self, cell: int, i: Places, j: Places, settings: Settings) -> Contrasts:
        """Return the contrasts of systems i minus systems j, with exact means and sds."""
        contrasts = super().contrasts(cell, i, j, settings)
        if cell not in self.exact:
            return contrasts
        mean, error = np.array([(mean.mean, mean.error) for mean in self.exact[cell]]).T
        gap, sd = mean[i] - mean[j], contrasts["sd_unpaired"]
        # An error of quantiles moves the probability by the density of the difference at zero,
        # which is taken to be normal; of systems alike it is one half by symmetry.
        differ = (sd > 0.0) & (self.alike[i] != self.alike[j])
        size = np.where(differ, sd, 1.0)
        density = np.exp(-0.5 * np.minimum(np.abs(gap / size), 37.0) ** 2) / np.sqrt(2.0 * np.pi)
        moved = np.where(differ, np.hypot(error[i], error[j]) / size * density, 0.0)
        moved = np.where(moved > _ROUNDING, moved, 0.0)
        return contrasts | {"mean": gap, "sd": sd, "monte_carlo_error": moved}


def round_to_resolution(values: ArrayLike) -> tuple[Ints, float]:
    """Return the whole multiples of the resolution that values round to, and the resolution.

    The scale is 1, or the power of 2 above the largest absolute value: 0, 1 and short binary
    fractions are whole multiples.

    Examples
    --------
    >>> site, step = round_to_resolution([1.0, 1.0 - 1e-15, 0.0])
    >>> (site * step).tolist()
    [1.0, 1.0, 0.0]
    """
    values = np.asarray(values, float)
    step = RESOLUTION * 2.0 ** np.ceil(np.log2(max(1.0, float(np.abs(values).max(initial=0.0)))))
    return np.rint(values / step).astype(np.int64), float(step)


def _blocks(same: Flags, draws: int) -> Iterator[Places]:
    """Yield the places of pairs, those of systems alike apart, as many as are held at once."""
    for pairs in (np.flatnonzero(same), np.flatnonzero(~same)):
        if pairs.size:
            yield from np.array_split(pairs, min(pairs.size, 1 + pairs.size * draws // _VALUES))


def _of_rows(a: Array, b: Array, settings: Settings, direction: int) -> Contrasts:
    """Return contrasts of joint draws, a row for each pair.

    Differences are a less b; greater, above and gain mean that a is better.
    """
    site, step = round_to_resolution(np.stack([a, b]))
    sign = direction * np.sign(site[0] - site[1])
    gap = np.where(sign == 0, 0.0, a - b)
    margin = settings.rope + step * (settings.rope > 0.0)
    lead = direction * gap
    above, below = ((way * sign > 0) & (way * lead > margin) for way in (1, -1))
    tie = 0.5 * (sign == 0).mean(axis=1)
    with np.errstate(all="ignore"):
        ratio = np.where((sign == 0) & (np.abs(b) <= step), 1.0, a / b)
    levels = settings.ratio_levels
    ratios = np.quantile(ratio, levels, axis=1, method="lower")
    if settings.ci_kind == "eti":
        ends = np.quantile(gap, levels[1:], axis=1)
    else:
        ends = np.array([interval(Empirical(row), settings.ci_prob, "hdi") for row in gap]).T
    return {
        "mean": gap.mean(axis=1),
        "sd": gap.std(axis=1, ddof=1),
        "ci_lower": ends[0],
        "ci_upper": ends[1],
        "prob_greater": (sign > 0).mean(axis=1) + tie,
        "prob_smaller": (sign < 0).mean(axis=1) + tie,
        "prob_tie": 2.0 * tie,
        "prob_below_rope": below.mean(axis=1),
        "prob_in_rope": (~(above | below)).mean(axis=1),
        "prob_above_rope": above.mean(axis=1),
        "expected_loss": np.maximum(-lead, 0.0).mean(axis=1),
        "expected_gain": np.maximum(lead, 0.0).mean(axis=1),
        **dict(zip(("ratio_median", "ratio_lower", "ratio_upper"), ratios, strict=True)),
    }


def _even_ratio(lower: Array, upper: Array) -> Contrasts:
    """Ratio quantiles of systems alike: those of the ratio and of its inverse are the same."""
    bounded = (lower > 0.0) & np.isfinite(upper)
    low = np.sqrt(np.where(bounded, lower, 0.0) / np.where(bounded, upper, 1.0))
    with np.errstate(divide="ignore", over="ignore"):
        high = np.where(bounded, 1.0 / low, np.inf)
    return {"ratio_median": np.ones(len(lower)), "ratio_lower": low, "ratio_upper": high}


def mirrored(contrasts: Contrasts) -> Contrasts:
    """Contrasts of the pairs the other way round."""
    turned = {}
    for name in contrasts:
        value = contrasts[_OPPOSITE.get(name, name)]
        if name.startswith("ratio"):
            with np.errstate(divide="ignore", over="ignore"):
                value = 1.0 / value
        turned[name] = -value if name in _SIGNED else value
    return turned


def over_k(grid: MetricGrid) -> list[list[int]]:
    """Cells of the grid that are one metric at several k.

    Examples
    --------
    >>> over_k(MetricGrid.of(["pass@1,4", "bayes"]))
    [[0, 1], [2]]
    """
    metrics = list(enumerate(grid))
    ordered = sorted(metrics, key=lambda pair: (pair[1].family.variable, pair[1].tau or 0.0))
    groups = groupby(ordered, key=lambda pair: (pair[1].family.variable, pair[1].tau))
    return sorted([cell for cell, _ in group] for _, group in groups)


def band_width(draws: Array, probability: float) -> Array:
    """Half-widths in sds that hold whole curves with this probability.

    Parameters
    ----------
    draws : ndarray, shape (..., points, draws)
        Of curves.
    probability : float

    Returns
    -------
    ndarray, shape (...)
        Quantile of the largest standardised deviation over the points.

    Examples
    --------
    One point is an interval: 1.96 sds for 95% of a normal.

    >>> z = np.random.default_rng(0).standard_normal((1, 200_000))
    >>> band_width(z, 0.95).round(2).item()
    1.96
    """
    sd = draws.std(axis=-1, keepdims=True)
    centred = np.abs(draws - draws.mean(axis=-1, keepdims=True))
    centred /= np.where(sd > 1e-12, sd, np.inf)
    return np.asarray(np.quantile(centred.max(axis=-2), probability, axis=-1))


def _shared_places(values: Array) -> tuple[Places, Places, Places]:
    """Return systems in their order by draw, the best first, and the first and last place of each.

    Places count from 0; those who tie share theirs. As `scipy.stats.rankdata`, which takes a second
    to import.

    Examples
    --------
    >>> [places.tolist() for places in _shared_places(np.array([[0.1, 0.5, 0.9, 0.5]]))]
    [[[2, 1, 3, 0]], [[0, 1, 1, 3]], [[0, 2, 2, 3]]]
    """
    site, _ = round_to_resolution(values)  # what doubles cannot resolve is a tie
    order = np.argsort(-site, axis=1, kind="stable")
    ordered, size = np.take_along_axis(site, order, axis=1), site.shape[1]
    differs, ends = ordered[:, 1:] != ordered[:, :-1], np.ones((len(site), 1), bool)
    first = np.where(np.hstack([ends, differs]), np.arange(size), 0)
    last = np.where(np.hstack([differs, ends]), np.arange(size), size)
    worst = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    return order, np.maximum.accumulate(first, axis=1), worst


def rank_draws(values: Array) -> Array:
    """Ranks in every draw (draws, systems), 1 for the highest; ties share the mean of theirs.

    Examples
    --------
    >>> rank_draws(np.array([[0.5, 0.9, 0.5]])).tolist()
    [[2.5, 1.0, 2.5]]
    """
    order, best, worst = _shared_places(values)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, 1.0 + 0.5 * (best + worst), axis=1)
    return ranks


def rank_probabilities(values: Array) -> Array:
    """Probability of every rank (systems, ranks); systems that tie are equally often at each.

    Examples
    --------
    >>> rank_probabilities(np.array([[1.0, 1.0, 0.5], [1.0, 0.8, 0.5]]))[:, 0].tolist()
    [0.75, 0.25, 0.0]
    """
    order, best, worst = _shared_places(values)
    size = order.shape[1]
    share = 1.0 / ((worst - best + 1) * len(order))
    row = order * (size + 1)
    starts, ends = (
        np.bincount((row + step).ravel(), share.ravel(), size * (size + 1))
        for step in (best, worst + 1)
    )
    chance = np.cumsum((starts - ends).reshape(size, size + 1)[:, :-1], axis=1)
    return np.maximum(chance, 0.0)


def separated(values: Array, error: float, wrong: Array | None = None) -> Flags:
    """Which systems (row) are declared better than which (column).

    Pairs are declared one after the other, the surest first, as long as all those declared so far
    are right together with probability ``1 - error`` or more.

    Parameters
    ----------
    values : ndarray, shape (draws, systems)
        Joint draws.
    error : float
    wrong : ndarray, shape (systems, systems), optional
        Probability that the row's system is not above the column's, where it is known better than
        by draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> separated(rng.standard_normal((4000, 3)) + [0.0, 9.0, 8.9], 0.05).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """
    site, _ = round_to_resolution(values)
    size = site.shape[1]
    order = np.argsort(-site.mean(axis=0), kind="stable")
    chance = np.full((size, size), np.inf)
    for rank, above in enumerate(order):
        below = order[rank + 1 :]
        fails = (
            (site[:, [above]] <= site[:, below]).mean(axis=0)
            if wrong is None
            else wrong[above, below]
        )
        chance[above, below] = fails
    declared = np.zeros((size, size), bool)
    failed = np.zeros(len(site), bool)
    for pair in np.argsort(chance, axis=None, kind="stable"):
        above, below = divmod(int(pair), size)
        if chance[above, below] > error:
            break
        failed |= site[:, above] <= site[:, below]
        if declared.any() and failed.mean() > error:
            break
        declared[above, below] = True
    return declared


def tiers_of(declared: Flags, order: Places) -> Ints:
    """Tier of every system, 1 for the best, from the pairs that are declared.

    Systems are taken in the order given, the best first; a tier ends where the next system is
    declared worse than one of it. So no two systems of a tier are declared different.

    Examples
    --------
    >>> declared = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], bool)
    >>> tiers_of(declared, np.array([0, 1, 2])).tolist()
    [1, 1, 2]
    """
    tier, start, level = np.empty(len(order), np.int64), 0, 1
    for rank, system in enumerate(order):
        if declared[order[start:rank], system].any():
            start, level = rank, level + 1
        tier[system] = level
    return tier
