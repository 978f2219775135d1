"""Groups of questions, each by itself: numbers of systems, and differences between them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.contest import Contest
from bayesatk.comparison.contrasts import CONTRASTS, Settings
from bayesatk.comparison.pairing import drawn_together
from bayesatk.comparison.question_values import (
    Part,
    Posteriors,
    data_keys,
    observed_rates,
    question_values,
)
from bayesatk.posterior.models_of import model_of
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

Array = NDArray[np.float64]
_DRAWS = 4000
_SHOWN = ("estimate", "mean", "sd", "ci_lower", "ci_upper")
_BANDS = ("band_lower", "band_upper")


def group_table(result: xr.DataTree | Result) -> pd.DataFrame:
    """Tabulate every group of questions: one row per system, group, metric and target.

    Parameters
    ----------
    result : xarray.DataTree
        Evaluated or sampled with ``group=``.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``group``, ``questions`` (how many the group has), ``metric``,
        ``target`` (these questions of the group, or questions like these in it), ``estimate``
        (unbiased, of the group's trials alone), and the posterior's ``mean``, ``sd``, ``ci_lower``,
        ``ci_upper``, which learn from the other groups.

    See Also
    --------
    bayesatk.table : the whole.
    bayesatk.plots.plot_systems : ``by="group"`` draws these intervals.

    Examples
    --------
    A group with few trials is drawn towards the others.

    >>> import bayesatk
    >>> data = bayesatk.tally([[1, 1]] * 4 + [[0, 1]] * 4 + [[0, 0]], group=list("aaaabbbbc"))
    >>> fit = bayesatk.evaluate(data, "pass@1", group="group", rng=1)
    >>> rows = bayesatk.group_table(fit).query("target == 'questions'")
    >>> rows[["group", "questions", "estimate"]].values.tolist()
    [['a', 4, 1.0], ['b', 4, 0.5], ['c', 1, 0.0]]
    >>> bool(rows["mean"].iloc[2] > 0.15)
    True
    """
    own = _grouped(result)
    assert own.grouping is not None
    number = np.bincount(own.grouping.code, minlength=len(own.grouping.labels))
    estimates = [model_of(own, i).estimate_by_group(own.metrics) for i in range(len(own.systems))]  # type: ignore[attr-defined]
    rows = []
    for i, system in enumerate(own.systems):
        for g, group in enumerate(own.grouping.labels):
            for m, metric in enumerate(own.metrics):
                cells = metric_values(own.group_statistics, metric).isel(system=i, group=g)
                for target in TARGETS:
                    values = cells.sel(target=target)
                    numbers = {name: float(values.sel(statistic=name)) for name in _SHOWN[1:]}
                    rows.append(
                        {
                            "system": system, "group": group, "questions": int(number[g]),
                            "metric": metric.label, "target": target,
                            "estimate": float(estimates[i][g, m]), **numbers,
                        }
                    )  # fmt: skip
    found = pd.DataFrame(rows)
    found.attrs["ci_prob"] = own.ci_prob
    return found


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
        for g, contest in enumerate(_contests(fit, posteriors, rng)):
            table[g] = contest.table(settings)
    coords = {
        **grid.coords, "group": grouping.labels, "system": fit.systems, "other": fit.systems,
        "target": list(TARGETS), "contrast": list(CONTRASTS),
    }  # fmt: skip
    dims = ("group", "system", "other")
    found = xr.Dataset(grid.split(table, dims, ("target", "contrast")), coords)
    return found.sel(contrast=[name for name in CONTRASTS if name not in _BANDS])


def _contests(fit: Result, posteriors: Posteriors, rng: np.random.Generator) -> Iterator[Contest]:
    """Yield the systems on the questions of each group.

    What other questions of the same group are worth is shared between systems as far as questions
    within groups are, all groups together.
    """
    part = Part.whole(fit)
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
        both = drawn_together(each, rates, size, float(size), rng)
        drawn = tuple(replace(one, alike=alike) for one in both)
        yield Contest(fit.grid, drawn, drawn)


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


def group_comparison_table(result: xr.DataTree | Result) -> pd.DataFrame:
    """Tabulate differences of systems on every group of questions.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.compare`, of a result evaluated with ``group=``.

    Returns
    -------
    pandas.DataFrame
        One row per pair, group, metric and target: ``mean``, ``sd``, ``ci_lower`` and ``ci_upper``
        of the difference ``system - other``, ``prob_greater``, and the other contrasts of
        `bayesatk.comparison_table`. There are no verdicts: among many groups some difference is
        always large. The posterior draws groups towards each other, which allows for that in part.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"x": [[1, 1]] * 8, "y": [[1, 1]] * 4 + [[0, 0]] * 4}
    >>> data = bayesatk.tally(runs, group=list("aaaabbbb"))
    >>> fit = bayesatk.compare(bayesatk.evaluate(data, "pass@1", group="group", rng=1), rng=1)
    >>> rows = bayesatk.group_comparison_table(fit).query("target == 'questions'")
    >>> bool(rows["mean"].iloc[1] > rows["mean"].iloc[0] + 0.5)
    True
    """
    own = _grouped(result)
    data = Result.of(own, "group_comparison").group("group_comparison")
    assert own.grouping is not None
    rows = []
    for metric in own.metrics:
        values = metric_values(data, metric)
        for i, j in combinations(range(len(own.systems)), 2):
            for g, group in enumerate(own.grouping.labels):
                for target in TARGETS:
                    cells = values.isel(system=i, other=j, group=g).sel(target=target)
                    first = {
                        "system": own.systems[i], "other": own.systems[j], "group": group,
                        "metric": metric.label, "target": target,
                    }  # fmt: skip
                    names = cells["contrast"].values.tolist()
                    rows.append(first | dict(zip(names, cells.values.tolist(), strict=True)))
    return pd.DataFrame(rows)


def _grouped(result: xr.DataTree | Result) -> Result:
    own = Result.of(result)
    if own.grouping is None:
        raise ArgumentError(
            Argument("result"), " must be of questions in groups; this one was evaluated without. "
            "Say what the groups are: ", Argument("group", ...), ".",
        )  # fmt: skip
    return own
