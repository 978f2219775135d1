"""Contrasts between systems, and ranks of all: from exact distributions, or joint draws."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.contrasts import (
    Differences,
    IndependentQuantities,
    Known,
    ratio_quantiles,
    round_to_resolution,
)
from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.engine.interval_ends import interval

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

CONTRASTS = (
    "mean",
    "sd",
    "ci_lower",
    "ci_upper",
    "prob_greater",
    "prob_tie",
    "prob_below_rope",
    "prob_in_rope",
    "prob_above_rope",
    "expected_loss",
    "ratio_median",
    "ratio_lower",
    "ratio_upper",
    "monte_carlo_error",
    "sd_unpaired",
    "band_lower",
    "band_upper",
)
# What a contrast is called for the pair the other way round, and the sign it then has. Of a pair
# of names each is worked out by itself: no probability is 1 minus another.
_OPPOSITE = {
    "ci_lower": "ci_upper",
    "prob_greater": "prob_smaller",
    "prob_below_rope": "prob_above_rope",
    "expected_loss": "expected_gain",
    "ratio_lower": "ratio_upper",
    "band_lower": "band_upper",
}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_SIGNED = ("mean", "ci_lower", "ci_upper", "band_lower", "band_upper")

Found = dict[str, Array]  # contrasts by name, one value per pair


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
        Systems with the same number have the same data. Their posteriors are the same, so the
        draws of the first stand for those of all; default: none has.
    """

    values: Array
    sd: Array
    effective: float
    alike: Ints = field(default_factory=lambda: np.zeros(0, np.intp))

    def __post_init__(self) -> None:
        if not len(self.alike):
            object.__setattr__(self, "alike", np.arange(self.values.shape[2]))

    @classmethod
    def of(cls, values: Array, alone: Array, effective: float) -> "Drawn":
        """Take draws, and draws of every system had it been evaluated alone."""
        return cls(values, alone.std(axis=0, ddof=1), effective)

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system; ties are broken at random."""
        site, _ = round_to_resolution(self.values[:, cell])
        size = site.shape[1]
        order = np.argsort(-site, axis=1, kind="stable")
        best, worst = _tied(np.asarray(np.take_along_axis(site, order, axis=1)))
        share = 1.0 / ((worst - best + 1) * len(site))
        own = order * (size + 1)
        starts = np.bincount((own + best).ravel(), share.ravel(), size * (size + 1))
        ends = np.bincount((own + worst + 1).ravel(), share.ravel(), size * (size + 1))
        found = np.cumsum((starts - ends).reshape(size, size + 1)[:, :-1], axis=1)
        return np.maximum(found, 0.0)

    def representatives(self, i: Ints, j: Ints) -> tuple[Ints, Ints]:
        """Return the systems whose draws give the contrasts of pairs."""
        _, first, which = np.unique(self.alike, return_index=True, return_inverse=True)
        a, b = first[which[i]], first[which[j]]
        # Of systems alike, the second: any two of them are independent, and alike.
        second = {g: np.flatnonzero(which == g)[1] for g in which[i][a == b].tolist()}
        b[a == b] = [second[g] for g in which[i][a == b].tolist()]
        return a, b

    def contrasts(self, cell: int, i: Ints, j: Ints, settings: Settings) -> Found:
        """Return the contrasts of systems i minus systems j."""
        a, b = self.representatives(i, j)
        values = np.ascontiguousarray(self.values[:, cell].T)
        site, step = round_to_resolution(values)
        found: Found = {}
        same = self.alike[i] == self.alike[j]
        for chosen in (np.flatnonzero(same), np.flatnonzero(~same)):
            for part in np.array_split(chosen, max(1, chosen.size * values.shape[1] // 4_000_000)):
                if not len(part):
                    continue
                one, other = a[part], b[part]
                pair = values[one], values[other], np.sign(site[one] - site[other])
                if same[part[0]]:  # exchangeable: as likely the other way round
                    x, y, sign = pair
                    pair = np.hstack([x, y]), np.hstack([y, x]), np.hstack([sign, -sign])
                own = self._of_values(*pair, step, settings)
                if same[part[0]]:
                    own |= _even_ratio(own["ratio_lower"], own["ratio_upper"])
                for name, each in own.items():
                    found.setdefault(name, np.empty(len(i)))[part] = each
        found["sd_unpaired"] = np.hypot(self.sd[cell, a], self.sd[cell, b])
        return found

    def _of_values(
        self, a: Array, b: Array, sign: NDArray[np.int64], step: float, settings: Settings
    ) -> Found:
        """Contrasts of rows of draws; ``sign`` is 0 where they tie."""
        gap = np.where(sign == 0, 0.0, a - b)
        margin = settings.rope + step * (settings.rope > 0.0)
        above, below = ((way * sign > 0) & (way * gap > margin) for way in (1, -1))
        tie = 0.5 * (sign == 0).mean(axis=1)
        greater, smaller = (sign > 0).mean(axis=1) + tie, (sign < 0).mean(axis=1) + tie
        inner = np.clip(greater, 0.5 / gap.shape[1], 1.0 - 0.5 / gap.shape[1])
        with np.errstate(all="ignore"):
            ratio = np.where((sign == 0) & (np.abs(b) <= step), 1.0, a / b)
        levels = settings.ratio_levels
        ratios = np.quantile(ratio, levels, axis=1, method="lower")
        if settings.ci_kind == "eti":
            ends = np.quantile(gap, levels[1:], axis=1)
        else:
            ends = np.array([interval(Empirical(own), settings.ci_prob, "hdi") for own in gap]).T
        return {
            "mean": gap.mean(axis=1),
            "sd": gap.std(axis=1, ddof=1),
            "ci_lower": ends[0],
            "ci_upper": ends[1],
            "prob_greater": greater,
            "prob_smaller": smaller,
            "prob_tie": 2.0 * tie,
            "prob_below_rope": below.mean(axis=1),
            "prob_in_rope": (~(above | below)).mean(axis=1),
            "prob_above_rope": above.mean(axis=1),
            "expected_loss": np.maximum(-gap, 0.0).mean(axis=1),
            "expected_gain": np.maximum(gap, 0.0).mean(axis=1),
            **dict(zip(("ratio_median", "ratio_lower", "ratio_upper"), ratios, strict=True)),
            "monte_carlo_error": np.sqrt(inner * (1.0 - inner) / self.effective),
        }


@dataclass(frozen=True)
class Exact:
    """Independent quantities by cell and system; draws where no distribution is known."""

    known: dict[int, list[Known]]  # [cell][system]
    mean: Array
    sd: Array
    drawn: Drawn
    _found: dict[tuple[int, float], tuple[IndependentQuantities, Array, Array]] = field(
        default_factory=dict
    )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was worked out: other processes fill in their own."""
        return self.__dict__ | {"_found": {}}

    def _together(self, cell: int, margin: float) -> tuple[IndependentQuantities, Array, Array]:
        """Return all systems together, and of all pairs what lies beyond the margin, and losses."""
        if (cell, margin) not in self._found:
            own = IndependentQuantities(self.known[cell], margin)
            loss = own.expected_loss(self.mean[cell])
            self._found[cell, margin] = own, own.prob_above(), loss
        return self._found[cell, margin]

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system."""
        if cell not in self.known:
            return self.drawn.ranks(cell)
        return self._together(cell, 0.0)[0].ranks()

    def contrasts(self, cell: int, i: Ints, j: Ints, settings: Settings) -> Found:
        """Return the contrasts of systems i minus systems j."""
        if cell not in self.known:
            return self.drawn.contrasts(cell, i, j, settings)
        all_, above, loss = self._together(cell, settings.rope)
        greater, tie = all_.prob_greater, all_.prob_tie
        values = np.stack([one.values for one in self.known[cell]])
        moved = np.array([one.error for one in self.known[cell]])
        gap, levels = Differences(values[i], values[j]), settings.ratio_levels
        ends = gap.quantile(levels[1:])
        if settings.ci_kind == "hdi":
            ends = gap.shortest(settings.ci_prob)
        ratios = ratio_quantiles(values[i], values[j], levels).T
        sd = np.hypot(self.sd[cell, i], self.sd[cell, j])
        return {
            "mean": self.mean[cell, i] - self.mean[cell, j],
            "sd": sd,
            "ci_lower": ends[:, 0],
            "ci_upper": ends[:, 1],
            "prob_greater": greater[i, j],
            "prob_smaller": greater[j, i],
            "prob_tie": tie[i, j],
            "prob_below_rope": above[j, i],
            "prob_in_rope": np.clip(1.0 - above[i, j] - above[j, i], tie[i, j], 1.0),
            "prob_above_rope": above[i, j],
            "expected_loss": loss[i, j],
            "expected_gain": loss[j, i],
            **dict(zip(("ratio_median", "ratio_lower", "ratio_upper"), ratios, strict=True)),
            "monte_carlo_error": gap.error(np.hypot(moved[i], moved[j])),
            "sd_unpaired": sd,
        }


def _tied(ordered: Array) -> tuple[Ints, Ints]:
    """First and last place of what equals each number of a row, in rows that are in order.

    As `scipy.stats.rankdata`, which takes a second to import.

    Examples
    --------
    >>> [places.tolist() for places in _tied(np.array([[0.9, 0.5, 0.5, 0.1]]))]
    [[[0, 1, 1, 3]], [[0, 2, 2, 3]]]
    """
    size = ordered.shape[1]
    differs, ends = ordered[:, 1:] != ordered[:, :-1], np.ones((len(ordered), 1), bool)
    first = np.where(np.hstack([ends, differs]), np.arange(size), 0)
    last = np.where(np.hstack([differs, ends]), np.arange(size), size)
    worst = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    return np.maximum.accumulate(first, axis=1), worst


def _even_ratio(lower: Array, upper: Array) -> Found:
    """Ratio quantiles of systems alike: those of the ratio and of its inverse are the same."""
    bounded = (lower > 0.0) & np.isfinite(upper)
    low = np.sqrt(np.where(bounded, lower, 0.0) / np.where(bounded, upper, 1.0))
    with np.errstate(divide="ignore", over="ignore"):
        high = np.where(bounded, 1.0 / low, np.inf)
    return {"ratio_median": np.ones(len(lower)), "ratio_lower": low, "ratio_upper": high}


def mirrored(found: Found) -> Found:
    """Contrasts of the pairs the other way round."""
    turned = {}
    for name in found:
        value = found[_OPPOSITE.get(name, name)]
        if name.startswith("ratio"):
            with np.errstate(divide="ignore", over="ignore"):
                value = 1.0 / value
        turned[name] = -value if name in _SIGNED else value
    return turned
