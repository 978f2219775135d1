"""Systems on the questions that all of them tried: exact where that is known, else by draws."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.batches import in_batches
from bayesatk.comparison.pairs.contrasts import CONTRASTS, Drawn, Exact, Found, Settings, mirrored
from bayesatk.comparison.pairs.joint import band_width, over_k, tiers
from bayesatk.comparison.pairs.pairing import drawn_together
from bayesatk.comparison.pairs.question_values import observed_rates, question_values
from bayesatk.comparison.pairs.system_posteriors import Posteriors, Subset, data_keys
from bayesatk.core.engine.contrasts import Known
from bayesatk.metrics.grid import MetricGrid
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values

Array = NDArray[np.float64]
_DRAWS = 4000
_PAIRS = 2000  # compared at once: a task of a few seconds
_FLOATS = 30_000_000  # draws of p held at once: 240 MB
_FEWEST = 400


@dataclass(frozen=True)
class PairwiseComparison:
    """Comparison of every pair among some systems, on some questions.

    Parameters
    ----------
    grid : MetricGrid
    sources : tuple of Exact or Drawn
        By target: for these questions, for questions like these, and, of questions in groups, for
        new groups.
    drawn : tuple of Drawn
        Joint draws of each, for bands and tiers.
    """

    grid: MetricGrid
    sources: tuple[Exact | Drawn, ...]
    drawn: tuple[Drawn, ...]

    @classmethod
    def of(
        cls, fit: Result, part: Subset, posteriors: Posteriors, rng: np.random.Generator
    ) -> "PairwiseComparison":
        """Compare the systems of a part on its questions."""
        grid, keys = fit.grid, data_keys(fit, part)
        alike = np.array([keys.index(own) for own in keys])
        if fit.joint:
            drawn = tuple(_stored_draws(fit, part, place) for place in range(len(fit.targets)))
        else:
            drawn = paired_draws(fit, part, rng, posteriors)
            whole = part.kept.all() and len(part.systems) == len(fit.systems)
            if whole and fit.sampled:
                drawn = _stored_draws(fit, part, 0), *drawn[1:]
        drawn = tuple(replace(one, alike=alike) for one in drawn)
        exact: Exact | Drawn = drawn[0]
        if not fit.sampled and fit.judges is None:  # systems of one judge are not independent
            exact = _exact_questions(grid, part, posteriors, drawn[0])
        return cls(grid, (exact, *drawn[1:]), drawn)

    def table(self, settings: Settings, client: Any = None, progress: bool | None = False) -> Array:
        """Return contrasts (system, other, cell, target, contrast) of every pair."""
        cells, size = self.drawn[0].values.shape[1:]
        i, j = np.triu_indices(size, 1)
        table = np.zeros((size, size, cells, len(self.sources), len(CONTRASTS)))
        blocks = [(i[start : start + _PAIRS], j[start : start + _PAIRS])
                  for start in range(0, len(i), _PAIRS)]  # fmt: skip
        run = partial(self._block, settings, blocks)
        for own, found in in_batches(run, range(len(blocks)), client, "Comparing", progress):
            one, other = blocks[own]
            table[one, other], table[other, one] = found
        return table

    def _block(
        self,
        settings: Settings,
        blocks: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        index: int,
    ) -> Array:
        """Return contrasts (way round, pair, cell, target, contrast) of a block of pairs."""
        i, j = blocks[index]
        cells = self.drawn[0].values.shape[1]
        table = np.zeros((2, len(i), cells, len(self.sources), len(CONTRASTS)))
        for (target, source), group in product(enumerate(self.sources), over_k(self.grid)):
            found = [source.contrasts(cell, i, j, settings) for cell in group]
            banded = self._with_bands(found, group, target, settings, i, j)
            for cell, own in zip(group, banded, strict=True):
                for way, each in enumerate((own, mirrored(own))):
                    columns = [each[name] for name in CONTRASTS]
                    table[way, :, cell, target] = np.stack(columns, axis=-1)
        return table

    def _with_bands(
        self, found: list[Found], group: list[int], target: int, settings: Settings,
        i: NDArray[np.intp], j: NDArray[np.intp],
    ) -> list[Found]:  # fmt: skip
        """Add bands that hold a whole difference curve over k with the interval's probability."""
        drawn = self.drawn[target]
        a, b = drawn.representatives(i, j)
        values = np.ascontiguousarray(drawn.values[:, group].transpose(2, 1, 0))
        width = np.empty(len(i))
        chunks = max(1, len(i) * values[0].size // 4_000_000)
        for part in np.array_split(np.arange(len(i)), chunks):
            gap = values[a[part]] - values[b[part]]
            width[part] = band_width(gap, settings.ci_prob)
        ends = {"band_lower": -width, "band_upper": width}
        return [
            own | {name: own["mean"] + half * own["sd"] for name, half in ends.items()}
            for own in found
        ]

    def ranks(self) -> Array:
        """Return the probability of every rank (system, rank, cell, target); 1 is best."""
        cells, alike = range(self.drawn[0].values.shape[1]), self.drawn[0].alike
        by_target = [
            np.stack([source.ranks(cell) for cell in cells], axis=-1) for source in self.sources
        ]
        found = np.stack(by_target, axis=-1)
        return np.stack([found[alike == own].mean(axis=0) for own in alike])

    def tiers(self, alpha: float) -> NDArray[np.int64]:
        """Return the tier of every system (system, cell, target)."""
        cells, asked = range(self.drawn[0].values.shape[1]), self.drawn[0].values.mean(axis=0)
        by_target = [
            np.stack([tiers(own.values[:, cell], alpha, asked[cell]) for cell in cells], axis=-1)
            for own in self.drawn
        ]
        return np.stack(by_target, axis=-1)


def _exact_questions(grid: MetricGrid, part: Subset, posteriors: Posteriors, drawn: Drawn) -> Exact:
    """Exact posteriors for these questions; `drawn` gives what has no distribution."""
    index = list(grid.judged)
    moments = np.zeros((2, len(list(grid)), len(part.systems)))
    tables: list[list[Known | None]] = []
    for i, system in enumerate(part.systems if index else ()):
        own = posteriors.of(system, part.kept)
        moments[:, index, i] = own.mean[:, 0], own.sd[:, 0]
        tables.append(own.known[0])
    known = {}
    for cell, found in zip(index, zip(*tables, strict=True), strict=True):
        all_ = [one for one in found if one is not None]
        if len(all_) == len(found):
            known[cell] = all_
    return Exact(known, moments[0], moments[1], drawn)


def _stored_draws(fit: Result, part: Subset, target: int) -> Drawn:
    """Draws of the metrics that the result holds, paired between systems as they are."""
    posterior = fit.posterior.sel(target=fit.targets[target])
    posterior = posterior.isel(system=part.systems)
    columns = []
    for metric in fit.grid:
        chosen = metric_values(posterior, metric)
        columns.append(chosen.transpose("chain", "draw", "system").values)
    values = np.stack(columns, axis=2)
    flat = values.reshape(-1, *values.shape[2:])
    return Drawn.of(flat, flat, _effective(values) if fit.sampled else len(flat))


def _effective(values: Array) -> float:
    """Smallest effective sample size of draws (chain, draw, cell, system)."""
    import arviz as az

    found = az.ess(np.moveaxis(values, (0, 1), (-2, -1)), method="mean")
    return float(np.nanmin(found, initial=float(values.shape[0] * values.shape[1])))


def paired_draws(
    fit: Result,
    part: Subset,
    rng: np.random.Generator,
    posteriors: Posteriors | None = None,
) -> tuple[Drawn, ...]:
    """Means over the questions, over questions drawn anew for all systems at once, new groups."""
    questions = int(part.kept.sum())
    wanted = fit.size if fit.sampled else _DRAWS
    size = int(min(wanted, max(_FEWEST, _FLOATS // questions)))
    effective = float(size)
    if fit.sampled:
        effective = min(effective, _stored_draws(fit, part, 0).effective)
    values = question_values(fit, part, posteriors or Posteriors(fit, rng), size, rng)
    rates, share = observed_rates(fit, part), part.share(fit)
    if fit.grouping is None:
        return drawn_together(values, rates, share, size, effective, rng)
    own = fit.grouping.among(part.kept)
    each = list(values)
    both = drawn_together(each, own.within(rates), share, size, effective, rng)
    groups = [one.groups for one in each if one.groups is not None]
    rates = own.means(rates)
    even = np.full(rates.shape[1], 1.0 / rates.shape[1])
    return *both, drawn_together(groups, rates, even, size, effective, rng)[1]
