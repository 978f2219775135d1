"""Metrics from draws of success probabilities, whoever made the draws.

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
from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.columns import WEIGHT
from bayesatk.data.question_columns import unequal, weights
from bayesatk.data.study import Study
from bayesatk.judge_error import LEVEL_AXES
from bayesatk.metrics.grid import MetricGrid, MetricSpec
from bayesatk.models.program import all_trials
from bayesatk.models.question_draws import (
    population_mean,
    probabilities,
    traced_difficulty,
    traced_laws,
)
from bayesatk.priors import HyperPrior, Population
from bayesatk.results.difficulty import ATOMS, difficulty_draws, flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.question_means import Shares, SystemMetrics, stored
from bayesatk.results.schema import DRAWS, TARGETS, metric_dataset


def metrics_from_draws(
    tree: xr.DataTree,
    metrics: MetricSpec,
    *,
    population: Population | None = None,
    rng: Rng | int | None = None,
) -> xr.DataTree:
    """Add metric variables to the posterior of any model that has draws of ``p``.

    Parameters
    ----------
    tree : xarray.DataTree
        Group ``posterior`` with ``p(chain, draw, [system,] question)``. Where present, the group
        ``difficulty`` of a result, or the hyperparameters of a model of this library (``mean_p``
        and ``icc``, those of another family, or ``mu`` and ``sigma``), are a law of questions like
        these. A coordinate ``weight`` of the questions, in ``p`` or in the group
        ``constant_data``, gives their weights.
    metrics : str, Metric, or iterable of them
        As in `bayesatk.evaluate`.
    population : {"law", "bootstrap"}, optional
        As in `bayesatk.evaluate`. Default: the law, where the tree has one.
    rng : Generator, int or None
        For the Bayesian bootstrap only.

    Returns
    -------
    xarray.DataTree
        A copy with the metric variables, dims ``(chain, draw, system, [k], [tau], target)``, in
        ``posterior``.

    See Also
    --------
    bayesatk.sample : samples the library's own models.
    bayesatk.verify : compares with a closed form.

    Examples
    --------
    >>> p = xr.DataArray(np.full((2, 3, 1), 0.5), dims=("chain", "draw", "question"))
    >>> tree = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": p})})
    >>> found = metrics_from_draws(tree, "pass@2", rng=0)["posterior"]["pass_at_k"]
    >>> round(float(found.mean()), 12)
    0.75
    """
    posterior = tree["posterior"].to_dataset()
    if population is not None:
        one_of("population", population, ("law", "bootstrap"))
    if "group_mean" in posterior:
        raise ValueError(
            "tree must be of questions without groups; it has draws of 'group_mean'. "
            "bayesatk.sample(data, metrics, group=...) works out the metrics of groups."
        )
    p = _success_probabilities(posterior)
    grid, weight, flat = MetricGrid.of(metrics), _weights(tree, p), flat_draws(p)
    generator, shares = np.random.default_rng(rng), Shares.of(flat.shape[2], weight)
    by_system = []
    for system in range(flat.shape[1]):
        difficulty = (
            difficulty_draws(tree, system)
            if "difficulty" in tree.children
            else traced_difficulty(posterior, system)
        )
        law = population_mean(posterior, system, difficulty)
        if law is None and population == "law":
            raise ArgumentError(
                "population", " must be 'bootstrap' or left out for draws of p without a "
                f"law of difficulty; got 'law', and a posterior of {list(posterior.data_vars)}.",
            )  # fmt: skip
        of_system = SystemMetrics(
            list(grid), shares, partial(stored, flat[:, system]), alike=law,
            resampled=population == "bootstrap" or law is None,
        )  # fmt: skip
        by_system.append(of_system.draw(False, generator).whole)
    coords = {
        **{name: p[name] for name in DRAWS if name in p.coords},
        "target": list(TARGETS),
    }
    drawn = metric_dataset(grid, by_chain(p, by_system), DRAWS, ("target",), coords)
    result = tree.copy()
    result["posterior"] = xr.DataTree(posterior.assign(drawn.variables).assign_coords(drawn.coords))
    return result


def _success_probabilities(posterior: xr.Dataset) -> xr.DataArray:
    """Return the draws of p (chain, draw, system, question)."""
    if "p" not in posterior:
        raise ValueError(
            f"tree must have draws of 'p' in its posterior; got {list(posterior.data_vars)}. "
            "Name the success probability of your model 'p'."
        )
    p = posterior["p"]
    if "system" not in p.dims:
        p = p.expand_dims(system=["system"])
    return p.transpose("chain", "draw", "system", "question")


def _weights(tree: xr.DataTree, p: xr.DataArray) -> Array | None:
    """Return the weights of the questions, where there are any."""
    groups = [p, *(tree[name] for name in ("constant_data",) if name in tree.children)]
    for group in groups:
        if WEIGHT in group.coords:
            return unequal(
                weights(group.coords[WEIGHT].values.tolist(), range(p.sizes["question"]))
            )
    return None


@dataclass(frozen=True)
class CountDraws:
    """Draws of the metrics that judge trials, and of the other variables of a result.

    Parameters
    ----------
    values : ndarray, shape (chain, draw, system, metric, target)
    variables : mapping {name: (dims, values)}
    by_group : ndarray, shape (draws, system, group, metric, 2), optional
        The same metrics of every group, for these questions and for the population.
    """

    values: Array
    variables: dict[str, tuple[tuple[str, ...], Array]]
    by_group: Array | None = None


def count_draws(
    study: Study,
    posterior: xr.Dataset,
    keep_p: bool,
    rng: Rng,
    difficulties: Sequence[Difficulty] | None = None,
) -> CountDraws:
    """Metrics that judge trials, probabilities to reach scores, hyperparameters, and p when kept.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    keep_p : bool
    rng : numpy.random.Generator
    difficulties : sequence of Difficulty, optional
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
        alike = population_mean(posterior, system, None) if laws is None else None
        p = traced_p(posterior, system, laws, trials)
        tried = trials.any(axis=-1)
        of_system = SystemMetrics(metrics, shares, p, tried, laws, alike, study.bootstrapped)
        drawn.append(of_system.draw(keep_p, rng))
        by_system.append(hyper_variables(study, posterior, system, laws))
        if keep_p:
            by_system[-1]["p"] = drawn[-1].p
    whole = by_chain(posterior, [metric_draws.whole for metric_draws in drawn])
    whole, reach = np.split(whole, [len(judged)], axis=3)
    variables = named_draws(study, posterior, by_system)
    if reach.size:  # equal scores have none to reach
        variables["reach_probability"] = ((*DRAWS, "target", "reached"), np.moveaxis(reach, 3, 4))
    by_group = None
    if study.grouping is not None:
        by_group = np.stack([metric_draws.by_group for metric_draws in drawn], axis=1)
        by_group = by_group[..., : len(judged), :]
    return CountDraws(whole, variables, by_group)


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
        "correlation": ("other",),
    }  # fmt: skip
    if study.outcomes.graded:
        dims |= {name: (axis,) for name, axis in LEVEL_AXES.items()}
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


def hyper_variables(
    study: Study, posterior: xr.Dataset, system: int, laws: QuestionLaws | None
) -> dict[str, Any]:
    """Return hyperparameters of one system, by the names that results have."""
    if laws is None:
        of_judge = () if study.judges is None else study.judge_rates(system).names
        names = ("mean_p", "mu", "sigma", "correlation", *of_judge)
        return {name: flat_draws(posterior[name], system) for name in names if name in posterior}
    variables = laws.variables(scored=False)
    absent = set() if study.grouping is not None else {"typical_p"}
    if study.scale.axes:
        absent.add("typical_p")
    elif laws.structured:  # the mean of questions without an offset
        absent.add("mean_p")
    if not isinstance(study.prior, HyperPrior) or "inflated" not in study.prior.family_prior:
        absent |= set(ATOMS)
    return {name: values for name, values in variables.items() if name not in absent}
