"""Groups of a sampled result that PyMC itself computes: likelihoods, and replicated counts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.data.study import Study
from bayesatk.models.evidence import Averaged
from bayesatk.priors import DIFFICULTY_FAMILIES
from bayesatk.results.checking import UNIT, likelihood_kept, replicated, with_variation
from bayesatk.results.schema import SAMPLE

# Interpreted: compiling costs more than the few thousand draws of a result.
_INTERPRETED = {"mode": "FAST_COMPILE"}


def predictive_groups(
    study: Study,
    models: Mapping[str, pm.Model],
    traces: Mapping[str, xr.DataTree],
    averaged: Averaged | None,
    keep: Sequence[str],
    rng: Rng,
) -> dict[str, xr.Dataset]:
    """Return ``log_likelihood`` and ``posterior_predictive`` of the counts of questions.

    Nothing where the model has no likelihood of questions' counts: without pooling, and of earlier
    marks of a judge, it is given the question's own p; trials of known truth are of the same
    questions; and levels of scores have a potential. Replicates have no earlier trials.

    Parameters
    ----------
    study : Study
    models, traces : mapping
        By difficulty family.
    averaged : Averaged, optional
        Of several families: whose draws were taken.
    keep : sequence of str
        As of `bayesatk.sample`.
    rng : numpy.random.Generator
    """
    name, earlier = study.scale.variable, study.prior_counts
    observed = [one.name for model in models.values() for one in model.observed_RVs]
    of_counts = bool(models) and study.pooling != "none" and set(observed) == {name}
    given = earlier is not None and bool(earlier.any())
    if not of_counts or (given and study.judges is not None):
        return {}
    posterior = next(iter(traces.values()))["posterior"]
    draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    groups = {}
    if likelihood_kept(draws * study.outcomes.trials.size, keep):
        logs = {
            family: pm.compute_log_likelihood(
                traces[family], extend_inferencedata=False, model=model, progressbar=False,
                compile_kwargs=_INTERPRETED,
            )
            for family, model in models.items()
        }  # fmt: skip
        group = _of_families(study, logs, averaged, name)
        shape = group[name].shape
        values = with_variation(group[name].values.reshape(draws, -1)).reshape(shape)
        groups["log_likelihood"] = group.assign({name: (group[name].dims, values)})
        groups["log_likelihood"].attrs["unit"] = UNIT
    if replicated(study, draws, keep) and not given:
        drawn = {
            family: pm.sample_posterior_predictive(
                traces[family], model, var_names=[name], progressbar=False,
                random_seed=int(rng.integers(2**31)), compile_kwargs=_INTERPRETED,
            )["posterior_predictive"].to_dataset()
            for family, model in models.items()
        }  # fmt: skip
        groups["posterior_predictive"] = _of_families(study, drawn, averaged, name)
    return groups


def _of_families(
    study: Study, groups: Mapping[str, xr.Dataset], averaged: Averaged | None, name: str
) -> xr.Dataset:
    """Return a variable of the families whose draws were taken, with the labels of the data."""
    values = [group[name] for group in groups.values()]
    first = values[0]
    chosen: Any = first.values
    if averaged is not None and len(values) > 1:
        at = [DIFFICULTY_FAMILIES.index(family) for family in groups]
        chosen = _selected([each.values for each in values], at, averaged.family)
    dataset = study.outcomes.dataset
    labels = {str(dim): dataset[dim].values for dim in first.dims if dim in dataset.dims}
    coords = {dim: first[dim].values for dim in ("chain", "draw")} | labels
    return xr.Dataset({name: (first.dims, chosen)}, coords, SAMPLE)


def _selected(values: Sequence[Array], at: Sequence[int], family: Ints) -> Array:
    """Take the values of the family of every draw and system.

    Parameters
    ----------
    values : sequence of ndarray, shape (chain, draw, system, ...)
    at : sequence of int
        Number of the family of each.
    family : ndarray of int, shape (draws, system)
    """
    chosen = np.array(values[0])
    number = family.reshape(chosen.shape[:3])
    for of_family, wanted in zip(values, at, strict=True):
        chosen[number == wanted] = of_family[number == wanted]
    return chosen
