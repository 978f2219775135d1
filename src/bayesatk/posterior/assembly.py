"""From the posteriors of systems to the labelled groups of a result."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array
from bayesatk.data.study import Study
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import MetricGrid
from bayesatk.posterior.analysis import Evaluated
from bayesatk.posterior.checked_draws import Checks
from bayesatk.posterior.posterior import Draws, least
from bayesatk.priors import DIFFICULTY_FAMILIES
from bayesatk.results.checking import PRIOR_DRAWS, UNIT, stored_counts, with_variation
from bayesatk.results.schema import (
    CHAINS,
    DRAWS,
    GROUPED_TARGETS,
    STATISTICS,
    draws_dataset,
    metric_dataset,
    posterior_group,
)

Variables = dict[str, tuple[tuple[str, ...], Array]]
Coords = dict[str, Any]
# Of hyperparameters that are no vector over categories.
MEANS = ("mean_p", "typical_p", "coefficients")  # of which the first that there is has the mean
AXES = {"coefficients": "coefficient", "shape": "function"}


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
    extra: Variables = {
        name: ((*DRAWS, *dims), drawn.reshape(CHAINS, draws, *drawn.shape[1:]))
        for name, (dims, drawn) in drawn_variables(samples).items()
    }
    if values.shape[3] > len(grid):
        reach = np.moveaxis(values[:, :, :, len(grid) :], 3, 4)
        extra["reach_probability"] = ((*DRAWS, "target", "reached"), reach)
    attrs = {"inference_library": "bayesatk"}
    metrics = values[:, :, :, : len(grid)]
    dataset = posterior_group(grid, metrics, coords["system"], extra, attrs)
    if any("category" in variable_dims for variable_dims, _ in extra.values()):
        dataset = dataset.assign_coords(category=categories)
    return dataset.assign_coords(reached=reached) if "reached" in dataset.dims else dataset


def drawn_variables(samples: Sequence[Draws]) -> Variables:
    """Return hyperparameters, means and effects of groups, and p where it is kept, of all systems.

    Values are (draws, system, ...), dimensions those behind the system.
    """
    variables: Variables = {}
    for name, values in samples[0].hyper.items():
        dims = () if values.ndim == 1 else (AXES.get(name, "category"),)
        variables[name] = dims, np.stack([drawn.hyper[name] for drawn in samples], axis=1)
    group_draws = [drawn.groups for drawn in samples if drawn.groups is not None]
    effects = [groups.effect for groups in group_draws if groups.effect is not None]
    if group_draws:
        means = np.stack([groups.mean for groups in group_draws], axis=1)
        variables["group_mean"] = ("group",), means
    if effects:
        variables["group_effect"] = ("group",), np.stack(effects, axis=1)
    kept_p = [drawn.p for drawn in samples if drawn.p is not None]
    if kept_p:
        p = np.stack(kept_p, axis=1)
        variables["p"] = ("question", "category")[: p.ndim - 2], p
    return variables


def checking_groups(
    study: Study, posterior: xr.Dataset, each: Sequence[Evaluated]
) -> dict[str, xr.Dataset]:
    """Return the groups that ArviZ checks models with, as far as the systems have them.

    ``log_prior``, ``prior``, ``posterior_predictive``, ``prior_predictive`` and ``log_likelihood``.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Group of the result, with coordinates of its draws.
    each : sequence of Evaluated
    """
    checks = [system.checks for system in each if system.checks is not None]
    prior_coords = {"chain": [0], "draw": np.arange(PRIOR_DRAWS)}
    labels: dict[str, Any] = {str(name): label.values for name, label in posterior.coords.items()}
    labels |= {name: study.outcomes.dataset[name].values for name in ("question", "category")}
    counts = study.scale.variable, ("question", *study.scale.axes)
    groups = {}

    def add(group: str, variables: Variables, like: Mapping[Any, Any]) -> None:
        groups[group] = draws_dataset(variables, like, **(labels | dict(like)))

    if checks and checks[0].log_prior:
        add("log_prior", _log_prior(posterior, checks), posterior)
    priors = [check.prior for check in checks if check.prior is not None]
    if priors:
        variables = drawn_variables(priors)
        prior_variables = {name: values for name, values in variables.items() if name in posterior}
        if study.pooling == "none":
            grid = MetricGrid.of(study.judged)
            metrics = np.stack([drawn.metrics[:, : len(grid)] for drawn in priors], axis=1)
            metric_variables = grid.split(metrics, ("draw", "system"), ("target",))
            prior_variables |= {
                name: (dims[2:], values) for name, (dims, values) in metric_variables.items()
            }
            labels |= grid.coords
        add("prior", prior_variables, prior_coords)
    for name, drawn, like in (
        ("posterior_predictive", [check.replicates for check in checks], posterior),
        ("prior_predictive", [check.prior_replicates for check in checks], prior_coords),
    ):
        replicates = [values for values in drawn if values is not None]
        if replicates:
            values = stored_counts(study, np.stack(replicates, axis=1))
            add(name, {counts[0]: (counts[1], values)}, like)
    log_likelihoods = [system.drawn.log_likelihood for system in each]
    logs = [log_likelihood for log_likelihood in log_likelihoods if log_likelihood is not None]
    if logs:
        values = with_variation(np.stack(logs, axis=1))
        add("log_likelihood", {counts[0]: (("question",), values)}, posterior)
        groups["log_likelihood"].attrs["unit"] = UNIT
    return groups


def _log_prior(posterior: xr.Dataset, checks: Sequence[Checks]) -> Variables:
    """Return log densities of the prior of all systems, by the variable that a result has.

    That of the mean is of the variable which has it, and coefficients also have that of slopes.
    """
    mean = next(name for name in (*MEANS, "p") if name in posterior or name == "p")
    variables: Variables = {}
    for name in checks[0].log_prior:
        logs = np.stack([check.log_prior[name] for check in checks], axis=1)
        shown = {"mean": mean, "slopes": "coefficients"}.get(name, name)
        before = variables[shown][1] if shown in variables else 0.0
        variables[shown] = ("question",)[: logs.ndim - 2], logs + before
    return variables


def family_variables(each: Sequence[Evaluated]) -> xr.Dataset:
    """Probability of each difficulty family, its error, evidence and Pareto k, by system."""
    names = [name for name in DIFFICULTY_FAMILIES if name in each[0].families]
    if len(names) < 2:
        return xr.Dataset()
    table = np.array([[system.families[name] for name in names] for system in each])
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


def hyperparameter_tables(each: Sequence[Evaluated], table: int, last: str) -> Variables:
    """Statistics of the hyperparameters, or quantiles; dims (system, [category,] last).

    Parameters
    ----------
    each : sequence of Evaluated
    table : int
        Which of a system's two tables.
    last : str
        Name of the last dimension.
    """
    variables: Variables = {}
    for name in each[0].hyper:
        values = np.stack([system.hyper[name][table] for system in each])
        axes = () if values.ndim == 2 else (AXES.get(name, "category"),)
        variables[name] = (("system", *axes, last), values)
    return variables


def diagnostic_variables(each: Sequence[Evaluated]) -> Variables:
    """Numerical quality, by system."""
    return {
        name: (("system",), np.array([system.diagnostics[name] for system in each]))
        for name in each[0].diagnostics
    }


def monte_carlo(grid: MetricGrid, each: Sequence[Evaluated]) -> dict[str, dict[str, float]]:
    """Return the effective number of draws of statistics that are not exact, by variable.

    It is the smallest over systems, k and tau.
    """
    names = [metric.family.variable for metric in grid]
    names += ["reach_probability"] * (len(each[0].statistics) - len(names))
    variable = np.array(names)

    def of_variable(name: str, draws: Mapping[str, float | Array]) -> dict[str, Array]:
        return {
            statistic: np.broadcast_to(number, len(variable))[variable == name]
            for statistic, number in draws.items()
        }

    fewest = {
        name: least(*(of_variable(name, system.effective_draws) for system in each))
        for name in dict.fromkeys(variable.tolist())
    }
    for name in each[0].hyper:
        fewest[name] = least(*(system.hyper_draws.get(name, {}) for system in each))
    return fewest


def judge_groups(
    judges: Sequence[JudgeError] | None, each: Sequence[Evaluated], grid: MetricGrid,
    coords: Coords,
) -> dict[str, xr.Dataset]:  # fmt: skip
    """Return the group ``judge``, where judges err.

    Metric variables hold the share of the variance that is due to the rates; ``tp``, ``p``,
    ``fp`` and ``n`` the calibration sets, by system.
    """
    if judges is None:
        return {}
    values = np.stack([s.judge_share for s in each if s.judge_share is not None])
    full = {"system": coords["system"], "target": list(GROUPED_TARGETS[: values.shape[2]])}
    group = metric_dataset(grid, values[:, : len(grid)], ("system",), ("target",), full)
    names = ("tp", "p", "fp", "n")
    sizes = {
        name: ("system", np.array([getattr(judge, name) for judge in judges])) for name in names
    }
    return {"judge": group.assign(sizes)}
