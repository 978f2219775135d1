"""Systems on the questions that all of them tried: exact where that is known, else by draws."""

from dataclasses import dataclass
from itertools import combinations, product

import arviz as az
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.comparison.contrasts import CONTRASTS, Drawn, Exact, Settings, mirrored
from bayesatk.comparison.joint import band_width, over_k, tiers
from bayesatk.comparison.pairing import drawn_together
from bayesatk.comparison.question_values import (
    Part,
    observed_rates,
    on_categories,
    question_values,
)
from bayesatk.core.contrasts import Known
from bayesatk.core.states import States
from bayesatk.metrics import MetricGrid, parse
from bayesatk.results import TARGETS, metric_grid, metric_values, stored_counts, stored_prior

Array = NDArray[np.float64]
_DRAWS = 4000
_FLOATS = 30_000_000  # draws of p held at once: 240 MB
_FEWEST = 400


@dataclass(frozen=True)
class Contest:
    """Some systems on some questions.

    Parameters
    ----------
    grid : MetricGrid
    sources : pair of Exact or Drawn
        For these questions, and for questions like these.
    drawn : pair of Drawn
        Joint draws of both, for bands and tiers.
    """

    grid: MetricGrid
    sources: tuple[Exact | Drawn, Drawn]
    drawn: tuple[Drawn, Drawn]

    @classmethod
    def of(cls, fit: xr.DataTree, part: Part, rng: np.random.Generator) -> "Contest":
        """Hold the systems of a part against each other on its questions."""
        grid = metric_grid(fit)
        if joint(fit):
            both = _stored_draws(fit, grid, "questions"), _stored_draws(fit, grid, "population")
            return cls(grid, both, both)
        questions, population = paired_draws(fit, grid, part, rng)
        if part.kept.all() and len(part.systems) == fit["posterior"].sizes["system"]:
            questions = _stored_draws(fit, grid, "questions")
        exact: Exact | Drawn = questions
        if fit.attrs["method"] != "nuts" and not on_categories(fit):
            exact = _exact_questions(fit, grid, part, questions)
        return cls(grid, (exact, population), (questions, population))

    def table(self, settings: Settings) -> Array:
        """Return contrasts (system, other, cell, target, contrast) of every pair."""
        size, cells = self.drawn[0].values.shape[2], self.drawn[0].values.shape[1]
        table = np.zeros((size, size, cells, len(TARGETS), len(CONTRASTS)))
        for (target, source), cell in product(enumerate(self.sources), range(cells)):
            for i, j in combinations(range(size), 2):
                table[i, j, cell, target] = found = source.contrast(cell, i, j, settings)
                table[j, i, cell, target] = mirrored(found)
        self._add_bands(table, settings.ci_prob)
        return table

    def _add_bands(self, table: Array, probability: float) -> None:
        """Fill in bands that hold a whole difference curve over k with this probability."""
        mean, sd = CONTRASTS.index("mean"), CONTRASTS.index("sd")
        pairs = [(i, j) for i, j in product(range(len(table)), repeat=2) if i != j]
        draws = [each.values for each in self.drawn]
        for (i, j), (target, values), cells in product(pairs, enumerate(draws), over_k(self.grid)):
            width = band_width(values[:, cells, i] - values[:, cells, j], probability)
            own = table[i, j, cells, target]
            half = width * own[:, sd]
            ends = np.stack([own[:, mean] - half, own[:, mean] + half], -1)
            table[i, j, cells, target, -2:] = ends

    def ranks(self) -> Array:
        """Return the probability of every rank (system, rank, cell, target); 1 is best."""
        cells = range(self.drawn[0].values.shape[1])
        by_target = [
            np.stack([source.ranks(cell) for cell in cells], axis=-1) for source in self.sources
        ]
        return np.stack(by_target, axis=-1)

    def tiers(self, alpha: float) -> NDArray[np.int64]:
        """Return the tier of every system (system, cell, target)."""
        cells = range(self.drawn[0].values.shape[1])
        by_target = [
            np.stack([tiers(each.values[:, cell], alpha) for cell in cells], axis=-1)
            for each in self.drawn
        ]
        return np.stack(by_target, axis=-1)


def joint(fit: xr.DataTree) -> bool:
    """Whether the draws of a result are joint between its systems: it was sampled crossed."""
    return fit.attrs.get("model_form") == "crossed"


def _exact_questions(fit: xr.DataTree, grid: MetricGrid, part: Part, drawn: Drawn) -> Exact:
    """Rebuild the exact posteriors for these questions; `drawn` stands in for what is not asked."""
    prior, asked = stored_prior(fit), tuple(parse(str(fit.attrs["metrics"])))
    index = [cell for cell, metric in enumerate(grid) if not metric.family.on_answers]
    metrics = [metric for metric in grid if not metric.family.on_answers]
    if not metrics:
        return Exact({}, np.zeros((0, 0)), np.zeros((0, 0)), drawn)
    posteriors = []
    for system in part.systems:
        c, n = (counts[system, part.kept] for counts in stored_counts(fit))
        posteriors.append(
            system_posterior(fit.attrs["pooling"], States.of(c, n), metrics, prior, asked)
        )
    by_cell = zip(*(posterior.distributions()[0] for posterior in posteriors), strict=True)
    known = {
        cell: [Known(each) for each in found if each is not None]
        for cell, found in zip(index, by_cell, strict=True)
    }
    moments = np.zeros((2, len(list(grid)), len(posteriors)))
    for i, posterior in enumerate(posteriors):
        moments[0, index, i], moments[1, index, i] = posterior.mean[:, 0], posterior.sd[:, 0]
    complete = {cell: found for cell, found in known.items() if len(found) == len(posteriors)}
    return Exact(complete, moments[0], moments[1], drawn)


def _stored_draws(fit: xr.DataTree, grid: MetricGrid, target: str) -> Drawn:
    """Draws of the metrics that the result holds, paired between systems as they are."""
    posterior = fit["posterior"].to_dataset().sel(target=target)
    columns = []
    for metric in grid:
        chosen = metric_values(posterior, metric)
        columns.append(chosen.transpose("chain", "draw", "system").values)
    values = np.stack(columns, axis=2)
    flat = values.reshape(-1, *values.shape[2:])
    return Drawn.of(flat, flat, _effective(values) if fit.attrs["method"] == "nuts" else len(flat))


def _effective(values: Array) -> float:
    """Smallest effective sample size of draws (chain, draw, cell, system)."""
    found = az.ess(np.moveaxis(values, (0, 1), (-2, -1)), method="mean")
    return float(np.nanmin(found, initial=float(values.shape[0] * values.shape[1])))


def paired_draws(
    fit: xr.DataTree, grid: MetricGrid, part: Part, rng: np.random.Generator
) -> tuple[Drawn, Drawn]:
    """Means over the questions, and over questions drawn anew for all systems at once."""
    questions = int(part.kept.sum())
    stored = fit["posterior"].sizes["chain"] * fit["posterior"].sizes["draw"]
    wanted = stored if fit.attrs["method"] == "nuts" else _DRAWS
    size = int(min(wanted, max(_FEWEST, _FLOATS // questions)))
    effective = float(size)
    if fit.attrs["method"] == "nuts":
        effective = min(effective, _stored_draws(fit, grid, "questions").effective)
    values = question_values(fit, part, size, rng)
    return drawn_together(values, observed_rates(fit, part), list(grid), size, effective, rng)
