"""Sampled difficulty families, averaged by their evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.models.evidence import Bridge, LogEvidence
from bayesatk.models.traces import traced_difficulty
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from bayesatk.results.difficulty import paired

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Averaged:
    """Difficulty distributions of every system, in draws of one or several families.

    Parameters
    ----------
    difficulties : sequence of Difficulty
        One for each system, of all draws.
    family : ndarray of int, shape (draws, system)
        Of each draw, as an index of ``bayesatk.priors.DIFFICULTY_FAMILIES``.
    table : xarray.Dataset, optional
        Of several families: ``family_probability`` and ``family_log_evidence`` with their standard
        errors, dims ``system, family``.
    """

    difficulties: Sequence[Difficulty]
    family: NDArray[np.int64]
    table: xr.Dataset | None = None


def average(
    traces: Mapping[str, xr.DataTree],
    models: Mapping[str, pm.Model],
    prior: HyperPrior,
    systems: NDArray[np.generic],
    rng: np.random.Generator,
) -> Averaged:
    """Return the draws of a single family, or draws of several in the shares that are due to each.

    At every chain and draw the family is drawn by its probability, and its own draw at that place
    is taken: draws of one chain stay draws of one chain.

    Parameters
    ----------
    traces : mapping {family: xarray.DataTree}
        Of models of the same data, with as many chains and draws each.
    models : mapping {family: pymc.Model}
        The same models, holding the same data.
    prior : HyperPrior
        With the prior probabilities of the families.
    systems : ndarray
        Labels.
    rng : numpy.random.Generator
        For the evidences and the choice of families.
    """
    sources = {name: trace["posterior"].to_dataset() for name, trace in traces.items()}
    drawn = {
        name: [_difficulty(source, i) for i in range(len(systems))]
        for name, source in sources.items()
    }
    if len(drawn) == 1:
        ((name, only),) = drawn.items()
        return Averaged(only, np.full((len(only[0]), len(only)), DIFFICULTY_FAMILIES.index(name)))
    evidence = {name: Bridge(models[name]).log_evidence(sources[name], rng) for name in sources}
    table = _table(evidence, prior, systems)
    found, families = [], []
    for system, chances in enumerate(table["family_probability"].values):
        each = [paired(own[system]) for own in drawn.values()]
        chosen = rng.choice(len(each), len(each[0]), p=chances)
        found.append(_chosen(each, chosen))
        families.append(np.array([DIFFICULTY_FAMILIES.index(name) for name in drawn])[chosen])
    return Averaged(found, np.stack(families, axis=1), table)


def _difficulty(source: xr.Dataset, system: int) -> Difficulty:
    found = traced_difficulty(source, system)
    assert found is not None  # these are models of families
    return found


def _chosen(each: Sequence[Difficulty], chosen: NDArray[np.int64]) -> Difficulty:
    """Return at every place the draw of the family chosen there."""
    place = np.arange(len(chosen))
    names = ("share", "mean", "icc", "never", "always")
    stacked = {name: np.stack([getattr(one, name) for one in each]) for name in names}
    return Difficulty(**{name: values[chosen, place] for name, values in stacked.items()})


def _table(
    evidence: Mapping[str, LogEvidence], prior: HyperPrior, systems: NDArray[np.generic]
) -> xr.Dataset:
    """Evidences and posterior probabilities, with standard errors."""
    logs = np.stack([one.value for one in evidence.values()], axis=1)
    errors = np.stack([one.error for one in evidence.values()], axis=1)
    weighed = logs + np.log([prior.family_prior[name] for name in evidence])
    chances = np.exp(weighed - weighed.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    # d p_i = p_i (d e_i - sum_j p_j d e_j)
    jacobian = chances[:, :, None] * (np.eye(len(evidence)) - chances[:, None, :])
    of_chances = np.sqrt((jacobian**2 @ errors[:, :, None] ** 2)[..., 0])
    dims = ("system", "family")
    return xr.Dataset(
        {
            "family_probability": (dims, chances),
            "family_probability_error": (dims, of_chances),
            "family_log_evidence": (dims, logs),
            "family_log_evidence_error": (dims, errors),
        },
        coords={"system": systems, "family": list(evidence)},
    )
