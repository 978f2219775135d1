"""Metrics from draws of the library's models.

Only definitions are used: the latent value ``g(p)`` of each metric on draws of p, averaged over
the questions; for the population and for new groups, under the law of difficulties or, without
one, on the questions weighted by the Bayesian bootstrap.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.data.study import Study
from bayesatk.metrics.category_credit import reachable
from bayesatk.models.question_draws import (
    all_trials,
    population_mean,
    probabilities,
    traced_laws,
)
from bayesatk.models.question_means import Shares, SystemMetrics, stored
from bayesatk.priors import HyperPrior
from bayesatk.results.difficulty_draws import ATOMS, flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.schema import DRAWS, SAMPLER_ATTRIBUTES, posterior_group


@dataclass(frozen=True)
class CountDraws:
    """Draws of the metrics that judge trials, and of the other variables of a result.

    Parameters
    ----------
    values : ndarray, shape (chain, draw, system, metric, target)
    variables : mapping {name: (dims, values)}
    by_group : ndarray, shape (draws, system, group, metric, 2), optional
        Metrics of every group, for these questions and for the population.
    """

    values: Array
    variables: dict[str, tuple[tuple[str, ...], Array]]
    by_group: Array | None = None


def count_draws(
    study: Study,
    posterior: xr.Dataset,
    keep_p: bool,
    rng: Rng,
    difficulties: Sequence[Nodes] | None = None,
) -> CountDraws:
    """Metrics that judge trials, probabilities to reach scores, hyperparameters, and p when kept.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    keep_p : bool
    rng : numpy.random.Generator
    difficulties : sequence of Nodes, optional
        One for each system, of all draws, where questions are right or wrong and differ.
    """
    scale, judged = study.scale, study.grid.judged
    metrics = [scale.judged(metric) for metric in judged.values()] + list(scale.reaching())
    counts = all_trials(study)
    shares = Shares.of(counts.shape[1], study.outcomes.weight, study.grouping)
    drawn, by_system = [], []
    for system, trials in enumerate(counts):
        difficulty = difficulties[system] if difficulties else None
        laws = traced_laws(study, posterior, system, difficulty)
        alike = population_mean(posterior, system) if laws is None else None
        p = traced_p(posterior, system, laws, trials)
        tried = trials.any(axis=-1)
        of_system = SystemMetrics(metrics, shares, p, tried, laws, alike, study.bootstrapped)
        drawn.append(of_system.draw(keep_p, rng))
        by_system.append(drawn_hyperparameters(study, posterior, system, laws))
        if keep_p:
            by_system[-1]["p"] = drawn[-1].p
    whole = by_chain(posterior, [metric_draws.whole for metric_draws in drawn])
    whole, reached = split_reached(whole, len(judged))
    variables = named_draws(study, posterior, by_system) | reached
    by_group = None
    if study.grouping is not None:
        by_group = np.stack([metric_draws.by_group for metric_draws in drawn], axis=1)
        by_group = by_group[..., : len(judged), :]
    return CountDraws(whole, variables, by_group)


def split_reached(
    draws: Array, metrics: int
) -> tuple[Array, dict[str, tuple[tuple[str, ...], Array]]]:
    """Divide draws (chain, draw, system, metric, target): metrics, and scores that are reached."""
    values, reach = np.split(draws, [metrics], axis=3)
    if not reach.size:  # equal scores have none to reach
        return values, {}
    return values, {"reach_probability": ((*DRAWS, "target", "reached"), np.moveaxis(reach, 3, 4))}


def posterior_dataset(
    study: Study, counts: CountDraws, source: xr.Dataset, **attrs: Any
) -> xr.Dataset:
    """Return the group ``posterior``: draws of metrics, and of the rest.

    Coordinates are those of the outcomes: a compiled model keeps those it was compiled with. What
    is known of the sampler is that of the draws of the model, `source`.
    """
    outcomes, variables = study.outcomes, counts.variables
    labels = {name: outcomes.dataset[name].values for name in ("system", "question", "category")}
    recorded = {name: source.attrs[name] for name in SAMPLER_ATTRIBUTES if name in source.attrs}
    group = posterior_group(
        study.grid, counts.values, labels["system"], variables, recorded | attrs
    )
    if study.grouping is not None:
        labels["group"] = np.array(study.grouping.labels)
    if study.design is not None:
        labels["coefficient"] = np.array(study.design.coefficients, object)
    if "shape" in variables:
        labels["function"] = np.arange(variables["shape"][1].shape[-1])
    labels["reached"] = labels["category"][reachable(outcomes.utility)]
    used = {dim for dims, _ in variables.values() for dim in dims}
    return group.assign_coords({name: labels[name] for name in labels if name in used})


def by_chain(posterior: xr.Dataset | xr.DataArray, arrays: Sequence[Array]) -> Array:
    """Put draws of all systems beside each other, and divide them into chains."""
    values = np.stack(arrays, axis=1)
    return values.reshape(posterior.sizes["chain"], posterior.sizes["draw"], *values.shape[1:])


def named_draws(
    study: Study, posterior: xr.Dataset, by_system: Sequence[Mapping[str, Array]]
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Return draws of the variables of all systems with their dimensions."""
    axes = study.scale.axes
    dims = {
        "mean_p": axes, "p": ("question", *axes), "coefficients": ("coefficient",),
        "shape": ("function",), "group_effect": ("group",), "group_mean": ("group", *axes),
    }  # fmt: skip
    return {
        name: (
            (*DRAWS, *dims.get(name, ())),
            by_chain(posterior, [values[name] for values in by_system]),
        )
        for name in by_system[0]
    }


def traced_p(
    posterior: xr.Dataset, system: int, laws: QuestionLaws | None, trials: Array
) -> Callable[[Indices, Rng], Array]:
    """Return what draws p of some questions: p as sampled, or given their trials."""
    if "p" in posterior:
        return partial(stored, flat_draws(posterior["p"], system))
    assert laws is not None
    return partial(probabilities, laws, trials)


def drawn_hyperparameters(
    study: Study, posterior: xr.Dataset, system: int, laws: QuestionLaws | None
) -> dict[str, Any]:
    """Return hyperparameters of one system, by the names that results have."""
    if laws is None:
        rate_names = () if study.judge_rates is None else study.judge_rates[system].names
        names = ("mean_p", *rate_names)
        return {name: flat_draws(posterior[name], system) for name in names if name in posterior}
    variables = laws.variables()
    absent = set() if study.grouping is not None else {"typical_p"}
    if study.scale.axes:
        absent.add("typical_p")
    elif laws.structured:  # the mean of questions without an offset
        absent.add("mean_p")
    if not isinstance(study.prior, HyperPrior) or "inflated" not in study.prior.family_prior:
        absent |= set(ATOMS)
    return {name: values for name, values in variables.items() if name not in absent}
