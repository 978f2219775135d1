"""Groups that ArviZ checks models with, of questions with groups or covariates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.study import Study
from bayesatk.models.parts import of_structure
from bayesatk.models.program import Questions, declared_fields
from bayesatk.models.question_draws import RightWrongLaw, SystemDraws, prior_draws
from bayesatk.models.traces import family_of
from bayesatk.results import likelihood, predictive
from bayesatk.results.difficulty import flat_draws

Array = NDArray[np.float64]
_DIMS = ("chain", "draw", "system")


def structured_checks(
    inputs: Study,
    posterior: xr.Dataset,
    difficulties: Sequence[Difficulty] | None,
    keep: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Return ``log_likelihood``, ``log_prior``, ``prior`` and the two predictive groups.

    Replicates are of new questions with the same covariates, in the same groups. The likelihood of
    a question is given the effect of its group. Of marks by a judge there are no draws of the prior
    predictive distribution: the calibration set is part of the data.

    Parameters
    ----------
    inputs : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    difficulties : sequence of Difficulty, optional
        Of right and wrong, one for each system, of all draws.
    keep : sequence of str
        Groups that are large are left out, unless they are named here.
    rng : numpy.random.Generator
    """
    systems = inputs.outcomes.systems
    laws = [
        SystemDraws.of(inputs, posterior, i, difficulties[i] if difficulties else None)
        for i in range(len(systems))
    ]
    fields = declared_fields(inputs, family_of(posterior) or "")
    priors = [prior_draws(fields, inputs, predictive.PRIOR_DRAWS, rng) for _ in systems]
    at = {name: posterior[name].values for name in ("chain", "draw")}
    at_prior: dict[str, Any] = {"chain": [0], "draw": np.arange(predictive.PRIOR_DRAWS)}
    groups = {
        "log_prior": _log_prior(fields, posterior, inputs),
        "prior": _prior(inputs, priors, at_prior),
    }
    size = len(at["chain"]) * len(at["draw"]) * inputs.outcomes.trials.size
    if size <= predictive.AUTOMATIC or "predictive" in keep:
        groups["posterior_predictive"] = _by_question(inputs, laws, at, rng)
        if inputs.judges is None:
            groups["prior_predictive"] = _by_question(inputs, priors, at_prior, rng)
    if size <= likelihood.AUTOMATIC or "log_likelihood" in keep:
        groups["log_likelihood"] = _by_question(inputs, laws, at, None)
    return groups


def _by_question(
    inputs: Study,
    laws: Sequence[SystemDraws],
    at: dict[str, Any],
    rng: np.random.Generator | None,
) -> xr.Dataset:
    """Return counts of new questions, or without `rng` the log-likelihood of those seen."""
    every, scale = Questions.of(inputs, distinct=False), inputs.scale
    counts = scale.counts(inputs.outcomes)
    columns = []
    for system, law in enumerate(laws):
        questions = every.of_system(system)
        values: list[NDArray[Any]] = []
        for q, seen in enumerate(counts[system]):
            of_question = law.law_of(int(questions.group[q]), questions.rows[q])
            if rng is None:
                values.append(of_question.log_counts(seen))
            else:
                values.append(of_question.replicates(int(seen.sum()), 1, rng)[:, 0])
        columns.append(np.stack(values, axis=1))
    table = np.stack(columns, axis=1)
    shaped = table.reshape(len(at["chain"]), len(at["draw"]), *table.shape[1:])
    dims = (*_DIMS, "question", *(scale.axes if rng is not None else ()))
    dataset = inputs.outcomes.dataset
    coords = at | {name: dataset[name].values for name in dims[2:]}
    return xr.Dataset({scale.variable: (dims, shaped)}, coords, {"sample_dims": ["chain", "draw"]})


def _log_prior(fields: Any, posterior: xr.Dataset, inputs: Study) -> xr.Dataset:
    """Log density of each draw on the scale of the coordinates, to be raised to powers."""
    systems = inputs.outcomes.dataset["system"].values
    found: dict[str, Array] = {}
    for system in range(len(systems)):
        values = {
            field.name: flat_draws(
                posterior["mean_p" if field.name == "mean" else field.name], system
            )
            for field in fields
        }
        if fields.pairs:
            swap = values["mean"][:, 0] > values["mean"][:, 1]
            values["share"] = np.where(swap, 1.0 - values["share"], values["share"])
        for field in fields:
            x = field.distribution.coordinates(values[field.name])
            logs = field.distribution.log_density(x).reshape(len(x), -1).sum(axis=1)
            found.setdefault(field.name, np.empty((len(x), len(systems))))[:, system] = logs
    shape = posterior.sizes["chain"], posterior.sizes["draw"], len(systems)
    coords = {name: posterior[name].values for name in ("chain", "draw")} | {"system": systems}
    return xr.Dataset(
        {name: (_DIMS, logs.reshape(shape)) for name, logs in found.items()}, coords,
        {"sample_dims": ["chain", "draw"]},
    )  # fmt: skip


def _prior(inputs: Study, priors: Sequence[SystemDraws], at: dict[str, Any]) -> xr.Dataset:
    """Draws of the variables of a result from the prior."""
    by_system = [result_variables(inputs, law) for law in priors]
    found = {}
    for name, (axes, _) in by_system[0].items():
        values = np.stack([each[name][1] for each in by_system], axis=1)
        found[name] = ((*_DIMS, *axes), values[None])
    coords = at | {"system": inputs.outcomes.dataset["system"].values}
    if inputs.grouping is not None:
        coords["group"] = np.array(inputs.grouping.labels)
    if inputs.design is not None:
        coords["coefficient"] = np.array(inputs.design.coefficients, object)
    if inputs.scale.axes:
        coords["category"] = inputs.outcomes.dataset["category"].values
    return xr.Dataset(found, coords, {"sample_dims": ["chain", "draw"]})


def result_variables(inputs: Study, law: SystemDraws) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Return the variables of hyperparameters that a result has, of one system: (draws, ...)."""
    found = of_structure(inputs, law)
    if law.group_sd is not None:
        found["group_sd"] = ((), law.group_sd)
    if isinstance(law.law, RightWrongLaw):
        return found | {"icc": ((), law.law.difficulty.overall[1])}
    return found | {"mean_p": (("category",), law.law.mean), "icc": ((), law.law.icc)}  # type: ignore[attr-defined]
