"""The groups of a result that hold its data, and those that ArviZ checks models with."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.study import Study
from bayesatk.priors import HyperPrior
from bayesatk.results.likelihood import AUTOMATIC, likelihood_group, log_likelihood_groups
from bayesatk.results.predictive import predictive_groups
from bayesatk.results.question_groups import grouped_checks
from bayesatk.results.regression import regression_groups
from bayesatk.results.stored_data import data_groups


def groups_of_data(study: Study) -> dict[str, xr.Dataset]:
    """Return ``observed_data`` and ``constant_data``."""
    return data_groups(study.outcomes, study.scale, bool(study.votes), study.prior_counts)


def checking_groups(
    study: Study,
    posterior: xr.Dataset,
    difficulties: Sequence[Difficulty] | None,
    keep: Sequence[str],
    rng: np.random.Generator,
    likelihood: NDArray[np.float64] | None = None,
) -> dict[str, xr.Dataset]:
    """Return log-likelihood, predictive and prior groups.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        The draws.
    difficulties : sequence of Difficulty, optional
        Of every system, in all draws, where it takes more than the posterior's hyperparameters.
    keep : sequence of str
        Groups to keep however large they are.
    rng : numpy.random.Generator
        For replications.
    likelihood : ndarray, shape (draws, systems, questions), optional
        Log probability of each question's counts, where the model was put together from parts.
    """
    outcomes = study.outcomes
    if likelihood is not None and not _single(study):
        if likelihood.size > AUTOMATIC and "log_likelihood" not in keep:
            return {}
        return {"log_likelihood": likelihood_group(outcomes, study.scale, posterior, likelihood)}
    if study.grouping is not None and study.pooling == "partial":
        return grouped_checks(outcomes, posterior, study.grouping, keep, rng)
    if study.design is not None:
        assert isinstance(study.prior, HyperPrior)
        return regression_groups(outcomes, posterior, study.prior, study.design, keep, rng)
    asked, judged = (study.prior, study.scale, keep), study.judges is not None
    return log_likelihood_groups(
        outcomes, posterior, *asked, study.prior_counts, difficulties, judged
    ) | predictive_groups(outcomes, posterior, *asked, rng, difficulties, judged)


def _single(study: Study) -> bool:
    """Whether groups or covariates, of one Beta, are all that a study has beside its marks."""
    extras = study.capabilities - {"pooling partial", "success metrics", "weight"}
    return extras in ({"group"}, {"covariates"})
