"""Contrasts between two systems, and ranks of all: from exact distributions, or joint draws."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.contrasts import Difference, Known, rank_probabilities, ratio_quantiles
from bayesatk.core.intervals import Empirical, interval

Array = NDArray[np.float64]

CONTRASTS = (
    "mean",
    "sd",
    "ci_lower",
    "ci_upper",
    "prob_greater",
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


@dataclass(frozen=True)
class Settings:
    """Interval and region of practical equivalence."""

    ci_prob: float
    ci_kind: Literal["eti", "hdi"]
    rope: float


@dataclass(frozen=True)
class Exact:
    """Independent quantities by cell and system; draws where no distribution was asked for."""

    known: dict[int, list[Known]]  # [cell][system]
    mean: Array
    sd: Array
    drawn: "Drawn"

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system."""
        if cell not in self.known:
            return self.drawn.ranks(cell)
        return rank_probabilities(self.known[cell])

    def contrast(self, cell: int, i: int, j: int, settings: Settings) -> Array:
        """Return the contrasts of system i minus system j."""
        if cell not in self.known:
            return self.drawn.contrast(cell, i, j, settings)
        a, b = self.known[cell][i], self.known[cell][j]
        gap = Difference(a, b)
        below, at_most, above = gap.cdf(np.array([-settings.rope, 0.0, settings.rope]))
        tail = 0.5 * (1.0 - settings.ci_prob)
        sd = float(np.hypot(self.sd[cell, i], self.sd[cell, j]))
        return np.array(
            [
                self.mean[cell, i] - self.mean[cell, j],
                sd,
                *interval(gap, settings.ci_prob, settings.ci_kind),
                1.0 - at_most,
                below,
                above - below,
                1.0 - above,
                gap.expected_loss(),
                *ratio_quantiles(a, b, [0.5, tail, 1.0 - tail]),
                0.0,
                sd,
                np.nan,
                np.nan,
            ]
        )


@dataclass(frozen=True)
class Drawn:
    """Joint draws (draws, cells, systems), and each system's own sd (cells, systems)."""

    values: Array
    sd: Array
    effective: float

    @classmethod
    def of(cls, values: Array, alone: Array, effective: float) -> "Drawn":
        """Take draws, and draws of every system had it been evaluated alone."""
        return cls(values, alone.std(axis=0, ddof=1), effective)

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system."""
        order = np.argsort(np.argsort(-self.values[:, cell], axis=1), axis=1)
        size = order.shape[1]
        return np.stack([(order == rank).mean(axis=0) for rank in range(size)], axis=1)

    def contrast(self, cell: int, i: int, j: int, settings: Settings) -> Array:
        """Return the contrasts of system i minus system j."""
        a, b = self.values[:, cell, i], self.values[:, cell, j]
        gap = a - b
        tail = 0.5 * (1.0 - settings.ci_prob)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((a == 0) & (b == 0), 1.0, a / b)
        greater = float((gap > 0).mean() + 0.5 * (gap == 0).mean())
        doubt = np.clip(greater, 0.5 / len(gap), 1.0 - 0.5 / len(gap))
        return np.array(
            [
                gap.mean(),
                gap.std(ddof=1),
                *interval(Empirical(gap), settings.ci_prob, settings.ci_kind),
                greater,
                (gap < -settings.rope).mean(),
                (np.abs(gap) <= settings.rope).mean(),
                (gap > settings.rope).mean(),
                np.maximum(-gap, 0.0).mean(),
                *np.quantile(ratio, [0.5, tail, 1.0 - tail], method="lower"),
                float(np.sqrt(doubt * (1.0 - doubt) / self.effective)),
                float(np.hypot(self.sd[cell, i], self.sd[cell, j])),
                np.nan,
                np.nan,
            ]
        )


def mirrored(found: Array) -> Array:
    """Contrasts of the pair the other way round."""
    one = dict(zip(CONTRASTS, found.tolist(), strict=True))
    with np.errstate(divide="ignore"):
        ratio = [
            float(1.0 / np.float64(one[f"ratio_{end}"])) for end in ("median", "upper", "lower")
        ]
    return np.array(
        [
            -one["mean"], one["sd"], -one["ci_upper"], -one["ci_lower"], 1.0 - one["prob_greater"],
            one["prob_above_rope"], one["prob_in_rope"], one["prob_below_rope"],
            one["expected_loss"] + one["mean"], *ratio, one["monte_carlo_error"],
            one["sd_unpaired"], np.nan, np.nan,
        ]
    )  # fmt: skip
