"""The groups of a result that hold its data, and those that ArviZ checks models with."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.study import Study
from bayesatk.results.difficulty import all_difficulties
from bayesatk.results.likelihood import AUTOMATIC, likelihood_group, log_likelihood_groups
from bayesatk.results.predictive import predictive_groups
from bayesatk.results.stored_data import data_groups

Array = NDArray[np.float64]


def groups_of_data(study: Study) -> dict[str, xr.Dataset]:
    """Return ``observed_data`` and ``constant_data``."""
    return data_groups(study.outcomes, study.scale, bool(study.votes), study.prior_counts)


def checking_groups(
    study: Study,
    groups: Mapping[str, xr.Dataset],
    keep: Sequence[str],
    rng: np.random.Generator,
    likelihood: Array | None = None,
    p: Array | None = None,
) -> dict[str, xr.Dataset]:
    """Return log-likelihood, predictive and prior groups.

    Parameters
    ----------
    study : Study
    groups : mapping {name: xarray.Dataset}
        The draws: ``posterior`` and, where there is one, ``difficulty``.
    keep : sequence of str
        Groups to keep however large they are.
    rng : numpy.random.Generator
        For replications.
    likelihood : ndarray, shape (draws, system, question), optional
        Log probability of each question's counts, of models with groups, covariates or earlier
        trials of right and wrong.
    p : ndarray, shape (draws, system, question, ...), optional
        Draws of p of every question, without pooling.
    """
    results = predictive_groups(study, groups, keep, rng, p)
    outcomes, posterior = study.outcomes, groups["posterior"]
    if likelihood is not None:
        if likelihood.size <= AUTOMATIC or "log_likelihood" in keep:
            group = likelihood_group(outcomes, study.scale, posterior, likelihood)
            results["log_likelihood"] = group
        return results
    if study.pooling == "partial" and (study.grouping is not None or study.design is not None):
        return results
    return results | log_likelihood_groups(
        outcomes, posterior, study.prior, study.scale, keep, study.prior_counts,
        all_difficulties(groups), study.judges is not None,
    )  # fmt: skip
