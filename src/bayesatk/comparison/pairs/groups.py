"""Differences between systems on groups of questions, each by itself."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.comparison.pairs.contrasts import CONTRASTS, Settings
from bayesatk.comparison.pairs.pairing import drawn_together
from bayesatk.comparison.pairs.pairwise import PairwiseComparison
from bayesatk.comparison.pairs.question_values import observed_rates, question_values
from bayesatk.comparison.pairs.system_posteriors import Posteriors, Subset, data_keys
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

Array = NDArray[np.float64]
_DRAWS = 4000
_BANDS = ("band_lower", "band_upper")


def group_differences(
    fit: Result, settings: Settings, posteriors: Posteriors, rng: np.random.Generator
) -> xr.Dataset:
    """Return contrasts of every pair of systems on every group of questions.

    Systems that lack a question of the data are NaN everywhere: their groups are not the same.
    """
    grid, grouping = fit.grid, fit.grouping
    assert grouping is not None
    systems, size = len(fit.systems), len(grouping.labels)
    table = np.full((size, systems, systems, len(grid), len(TARGETS), len(CONTRASTS)), np.nan)
    if (fit.trials > 0).all():
        for g, compared in enumerate(_by_group(fit, posteriors, rng)):
            table[g] = compared.table(settings)
    coords = {
        **grid.coords, "group": grouping.labels, "system": fit.systems, "other": fit.systems,
        "target": list(TARGETS), "contrast": list(CONTRASTS),
    }  # fmt: skip
    dims = ("group", "system", "other")
    found = xr.Dataset(grid.split(table, dims, ("target", "contrast")), coords)
    return found.sel(contrast=[name for name in CONTRASTS if name not in _BANDS])


def _by_group(
    fit: Result, posteriors: Posteriors, rng: np.random.Generator
) -> Iterator[PairwiseComparison]:
    """Yield the systems on the questions of each group.

    The values of other questions of the same group are shared between systems as far as questions
    within groups are, all groups together.
    """
    part = Subset.whole(fit)
    grouping, keys = fit.grouping, data_keys(fit, part)
    assert grouping is not None
    alike = np.array([keys.index(own) for own in keys])
    size = fit.size if fit.sampled else _DRAWS
    values = list(question_values(fit, part, posteriors, size, rng))
    draws = [_draws_of_groups(fit, posteriors, system, size, rng) for system in part.systems]
    rates = grouping.within(observed_rates(fit, part))
    for g in range(len(grouping.labels)):
        each = [
            replace(one, questions=own[:, g, :, 0], population=own[:, g, :, 1])
            for one, own in zip(values, draws, strict=True)
        ]
        both = drawn_together(each, rates, part.share(fit), size, float(size), rng)
        drawn = tuple(replace(one, alike=alike) for one in both)
        yield PairwiseComparison(fit.grid, drawn, drawn)


def _draws_of_groups(
    fit: Result, posteriors: Posteriors, system: int, size: int, rng: np.random.Generator
) -> Array:
    """Draws (draws, groups, metrics, target) of one system."""
    if fit.sampled:
        own = fit.group("group_posterior").isel(system=system)
        dims = ("chain", "draw", "group", "target")
        columns = [metric_values(own, one).transpose(*dims).values for one in fit.grid]
        values = np.stack(columns, axis=3)
        return np.asarray(values.reshape(-1, *values.shape[2:]))
    found = posteriors.of(system, np.ones(fit.trials.shape[1], bool)).draw
    assert found is not None  # intervals of groups come from draws
    drawn = found(size, rng, False).groups
    assert drawn is not None
    return drawn.metrics


def group_comparison_rows(own: Result) -> pd.DataFrame:
    """Return a row for each pair, group, metric and target; the contrasts of `compare`."""
    data = Result.of(own, "group_comparison").group("group_comparison")
    rows = []
    for metric in own.metrics:
        values = metric_values(data, metric).transpose(
            "system", "other", "group", "target", "contrast"
        )
        names = values["contrast"].values.tolist()
        for i, j in combinations(range(len(own.systems)), 2):
            for g, group in enumerate(values["group"].values.tolist()):
                for t, target in enumerate(TARGETS):
                    first = {
                        "system": own.systems[i], "other": own.systems[j], "group": group,
                        "metric": metric.label, "target": target,
                    }  # fmt: skip
                    numbers = values.values[i, j, g, t].tolist()
                    rows.append(first | dict(zip(names, numbers, strict=True)))
    return pd.DataFrame(rows)
