"""From the posteriors of systems to the labelled groups of a result."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array
from bayesatk.core.engine.coupling import standardised
from bayesatk.core.engine.distribution import Empirical, measured_interval
from bayesatk.metrics.grid import MetricGrid
from bayesatk.posterior.posterior import (
    Distributions,
    Draws,
    Summary,
    SystemPosterior,
    least,
)
from bayesatk.priors import DIFFICULTY_FAMILIES
from bayesatk.results.schema import (
    CHAINS,
    QUANTILE_LEVELS,
    STATISTICS,
    metric_dataset,
    posterior_group,
)

Variables = dict[str, tuple[tuple[str, ...], Array]]
Coords = dict[str, Any]
# Of hyperparameters that are no vector over categories.
AXES = {"coefficients": "coefficient", "shape": "function"}


def statistics_table(
    posterior: SystemPosterior,
    distributions: Distributions,
    drawn: Draws,
    estimate: Array,
    ci_prob: float,
    ci_kind: str,
) -> Array:
    """Return the array (metrics, target, statistic); the last statistic is left open."""
    table = np.full((*posterior.mean.shape, len(STATISTICS)), np.nan)
    table[: len(estimate), :, 0] = estimate[:, None]
    table[..., 1], table[..., 2] = posterior.mean, posterior.sd
    table[..., 6], table[..., 7] = posterior.variance_trial, posterior.variance_question
    for target, exact in enumerate(distributions):
        for metric, known in enumerate(exact):
            source = Empirical(drawn.metrics[:, metric, target]) if known is None else known
            ends, error = measured_interval(source, ci_prob, ci_kind)
            table[metric, target, 3:6] = (*ends, error)
    return table


def quantile_table(distributions: Distributions, drawn: Draws) -> Array:
    """Return the array (metrics, target, quantile); draws stand for what has no distribution."""
    table = np.empty((drawn.metrics.shape[1], len(distributions), len(QUANTILE_LEVELS)))
    for target, exact in enumerate(distributions):
        for metric, known in enumerate(exact):
            source = Empirical(drawn.metrics[:, metric, target]) if known is None else known
            table[metric, target] = source.quantile(QUANTILE_LEVELS)
    return table


def even_draws(
    posterior: SystemPosterior, distributions: Distributions, drawn: Draws, metrics: int,
    scores: Sequence[float],
) -> Array:  # fmt: skip
    """Return the array (draws, metrics, target) of even quantiles with the exact means and sds.

    Parameters
    ----------
    posterior, distributions, drawn
        As of `statistics_table`.
    metrics : int
        How many are wanted, the first of all.
    scores : sequence of float
        Of the trials: means over questions are between the lowest and the highest.
    """
    size, values = len(drawn.metrics), np.sort(drawn.metrics[:, :metrics], axis=0)
    levels = (np.arange(size) + 0.5) / size
    for target, exact in enumerate(distributions):
        for metric, known in enumerate(exact[:metrics]):
            if known is not None:
                values[:, metric, target] = known.quantile(levels)
    ends = float(min(scores)), float(max(scores))
    return standardised(values, posterior.mean[:metrics], posterior.sd[:metrics], ends)


def posterior_dataset(
    grid: MetricGrid,
    samples: Sequence[Draws],
    coords: Coords,
    categories: list[str],
    reached: list[str],
) -> xr.Dataset:
    """Return the ``posterior`` group."""
    draws = len(samples[0].metrics) // CHAINS
    values = np.stack([drawn.metrics for drawn in samples], axis=1)
    values = values.reshape(CHAINS, draws, *values.shape[1:])
    extra: Variables = {}
    dims: tuple[str, ...] = ("chain", "draw", "system")
    for name in samples[0].hyper:
        stacked = np.stack([drawn.hyper[name] for drawn in samples], axis=1)
        own = dims if stacked.ndim == 2 else (*dims, AXES.get(name, "category"))
        extra[name] = (own, stacked.reshape(CHAINS, draws, *stacked.shape[1:]))
    of_groups = [drawn.groups.mean for drawn in samples if drawn.groups is not None]
    if of_groups:
        means = np.stack(of_groups, axis=1)
        extra["group_mean"] = ((*dims, "group"), means.reshape(CHAINS, draws, *means.shape[1:]))
    effects = [drawn.groups.effect for drawn in samples if drawn.groups is not None]
    if effects and effects[0] is not None:
        values_of = np.stack([effect for effect in effects if effect is not None], axis=1)
        extra["group_effect"] = (
            (*dims, "group"), values_of.reshape(CHAINS, draws, *values_of.shape[1:])
        )  # fmt: skip
    kept = [drawn.p for drawn in samples if drawn.p is not None]
    if kept:
        p = np.stack(kept, axis=1)
        own = (*dims, "question", "category")[: p.ndim + 1]
        extra["p"] = (own, p.reshape(CHAINS, draws, *p.shape[1:]))
    if values.shape[3] > len(grid):
        reach = np.moveaxis(values[:, :, :, len(grid) :], 3, 4)
        extra["reach_probability"] = ((*dims, "target", "reached"), reach)
    attrs = {"inference_library": "bayesatk"}
    metrics = values[:, :, :, : len(grid)]
    dataset = posterior_group(grid, metrics, coords["system"], extra, attrs)
    if any("category" in own for own, _ in extra.values()):
        dataset = dataset.assign_coords(category=categories)
    return dataset.assign_coords(reached=reached) if "reached" in dataset.dims else dataset


def family_variables(posteriors: Sequence[SystemPosterior]) -> xr.Dataset:
    """Probability of each difficulty family, its error, evidence and Pareto k, by system."""
    names = [name for name in DIFFICULTY_FAMILIES if name in posteriors[0].families]
    if len(names) < 2:
        return xr.Dataset()
    table = np.array([[one.families[name] for name in names] for one in posteriors])
    labels = "probability", "probability_error", "log_evidence", "pareto_k"
    return xr.Dataset(
        {f"family_{name}": (("system", "family"), table[..., i]) for i, name in enumerate(labels)},
        coords={"family": names},
    )


def exact_dataset(
    grid: MetricGrid,
    rows: Sequence[Array],
    coords: Coords,
    last: tuple[str, Array | tuple[str, ...]],
    reached: list[str],
) -> xr.Dataset:
    """Return statistics or quantiles by metric, and those to reach each higher score.

    Parameters
    ----------
    grid : MetricGrid
    rows : sequence of ndarray, shape (metrics, target, last)
        One per system.
    coords : dict
        Of systems and targets.
    last : (str, array)
        Name and coordinate of the last dimension.
    reached : list of str
        Categories above the lowest score.
    """
    values, (name, labels) = np.stack(rows), last
    full = {**coords, name: list(labels)}
    dataset = metric_dataset(grid, values[:, : len(grid)], ("system",), ("target", name), full)
    if values.shape[1] > len(grid):
        reach = np.moveaxis(values[:, len(grid) :], 1, 2)
        dataset["reach_probability"] = (("system", "target", "reached", name), reach)
        dataset = dataset.assign_coords(reached=reached)
    return dataset


def question_statistics(
    question_p: Sequence[tuple[Array, Array]],
) -> Variables:
    """Exact mean and sd of every question's p, dims (system, question, [category,] statistic)."""
    means = np.stack([mean for mean, _ in question_p])
    table = np.full((*means.shape, len(STATISTICS)), np.nan)
    table[..., 1], table[..., 2] = means, np.stack([sd for _, sd in question_p])
    return {"p": ((*("system", "question", "category")[: means.ndim], "statistic"), table)}


def hyper_statistics(
    posteriors: Sequence[SystemPosterior], ci_prob: float, ci_kind: str
) -> Variables:
    """Exact statistics of the hyperparameters, dims (system, [category,] statistic)."""

    def row(one: Summary) -> Array:
        values = np.full(len(STATISTICS), np.nan)
        ends, error = measured_interval(one.distribution, ci_prob, ci_kind)
        values[1:6] = one.mean, one.sd, *ends, error
        return values

    return _by_hyper(posteriors, row, "statistic")


def hyper_quantiles(posteriors: Sequence[SystemPosterior]) -> Variables:
    """Exact quantiles of the hyperparameters, dims (system, [category,] quantile)."""
    return _by_hyper(posteriors, lambda one: one.distribution.quantile(QUANTILE_LEVELS), "quantile")


def _by_hyper(
    posteriors: Sequence[SystemPosterior],
    row: Callable[[Summary], Array],
    last: str,
) -> Variables:
    found: Variables = {}
    for name, first in posteriors[0].hyper.items():
        each = [posterior.hyper[name] for posterior in posteriors]
        if isinstance(first, list):
            values = np.stack([[row(one) for one in several] for several in each])  # type: ignore[union-attr]
            found[name] = (("system", AXES.get(name, "category"), last), values)
        else:
            found[name] = (("system", last), np.stack([row(one) for one in each]))  # type: ignore[arg-type]
    return found


def diagnostic_variables(posteriors: Sequence[SystemPosterior]) -> Variables:
    """Numerical quality, by system."""
    return {
        name: (("system",), np.array([one.diagnostics[name] for one in posteriors]))
        for name in posteriors[0].diagnostics
    }


def monte_carlo(
    grid: MetricGrid, posteriors: Sequence[SystemPosterior]
) -> dict[str, dict[str, float]]:
    """Return how many draws are behind intervals and sds that are not exact, by variable.

    The fewest of any system, k and tau.
    """
    first = posteriors[0]
    of_grid = [metric.family.variable for metric in grid]
    variable = np.array(of_grid + ["reach_probability"] * (len(first.mean) - len(of_grid)))

    def of_variable(name: str, one: Mapping[str, float | Array]) -> dict[str, Array]:
        return {
            key: np.broadcast_to(own, len(variable))[variable == name] for key, own in one.items()
        }

    found = {
        name: least(*(of_variable(name, one.effective_draws) for one in posteriors))
        for name in dict.fromkeys(variable.tolist())
    }
    for name in first.hyper:
        found[name] = least(*(one.hyper_draws.get(name, {}) for one in posteriors))
    return found
