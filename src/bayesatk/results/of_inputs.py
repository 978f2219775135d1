"""What every result keeps of its inputs, and the groups that ArviZ checks models with."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.inputs import Inputs
from bayesatk.priors import HyperPrior
from bayesatk.priors.choice import describe_prior
from bayesatk.results.likelihood import log_likelihood_groups
from bayesatk.results.predictive import predictive_groups
from bayesatk.results.question_groups import grouped_checks
from bayesatk.results.regression import regression_groups
from bayesatk.results.schema import root_attributes
from bayesatk.results.stored_data import data_groups


def groups_of_data(inputs: Inputs) -> dict[str, xr.Dataset]:
    """Return ``observed_data`` and ``constant_data``."""
    return data_groups(inputs.outcomes, inputs.scale, bool(inputs.votes), inputs.prior_counts)


def checking_groups(
    inputs: Inputs,
    posterior: xr.Dataset,
    difficulties: Sequence[Difficulty] | None,
    keep: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Return log-likelihood, predictive and prior groups.

    Parameters
    ----------
    inputs : Inputs
    posterior : xarray.Dataset
        The draws.
    difficulties : sequence of Difficulty, optional
        Of every system, in all draws, where it takes more than the posterior's hyperparameters.
    keep : sequence of str
        Groups to keep however large they are.
    rng : numpy.random.Generator
        For replications.
    """
    outcomes = inputs.outcomes
    if inputs.grouping is not None:
        return grouped_checks(outcomes, posterior, inputs.grouping, keep, rng)
    if inputs.design is not None:
        assert isinstance(inputs.prior, HyperPrior)
        return regression_groups(outcomes, posterior, inputs.prior, inputs.design, keep, rng)
    known, judged = (inputs.prior, inputs.scale, keep), inputs.judges is not None
    return log_likelihood_groups(
        outcomes, posterior, *known, inputs.prior_counts, difficulties, judged
    ) | predictive_groups(outcomes, posterior, *known, rng, difficulties, judged)


def attributes_of_inputs(
    inputs: Inputs, method: str, seed: str, citations: tuple[str, ...], **more: str | float
) -> dict[str, Any]:
    """Return the root attributes of a result, from which `Result` reads its inputs back."""
    if inputs.judges is not None:
        more["judges"] = json.dumps(inputs.judges.described())
    if inputs.votes:
        more["answer_prior"] = json.dumps(describe_prior(inputs.answer_prior))
    if inputs.grouping is not None:
        more["group_weights"] = json.dumps(inputs.grouping.described())
    if inputs.design is not None:
        more["covariates"] = json.dumps(inputs.design.described)
    return root_attributes(
        method=method,
        pooling=inputs.pooling,
        prior=describe_prior(inputs.prior),
        seed=seed,
        metrics=" ".join(metric.label for metric in inputs.requested),
        data=inputs.outcomes,
        citations=citations,
        **more,
    )
