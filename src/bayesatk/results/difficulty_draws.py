"""Difficulty distributions of a result by draw: the group ``difficulty``.

If every draw is a single Beta, ``mean_p`` and ``icc`` of the posterior determine it, and there is
no such group. `difficulty_draws` reads both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from bayesatk.results.schema import draws_dataset

COMPONENTS = ("lower", "upper")
ATOMS = ("never_solved", "always_solved")  # shares of questions, in the group ``posterior``
_ATOM_VARIABLES = ("never", "always")  # shares of questions, in the group ``difficulty``
_COMPONENT_VARIABLES = ("share", "mean", "icc")  # of each Beta
_OVERALL_VARIABLES = ("mean_p", "icc")  # of the distribution, in the group ``posterior``


def has_difficulty_group(prior: object, scored: bool = False) -> bool:
    """Whether results under this prior have the group: unless p has single Betas.

    Of scored levels the posterior has the probabilities of levels, and the group has the
    distribution of their expected score on a scale from 0 to 1.
    """
    return isinstance(prior, HyperPrior) and (scored or set(prior.family_prior) != {"beta"})


def difficulty_group(
    difficulties: Sequence[Nodes], family: Ints, posterior: xr.Dataset
) -> xr.Dataset:
    """Return the group ``difficulty``.

    Parameters
    ----------
    difficulties : sequence of Nodes
        One for each system, of all draws.
    family : ndarray of int, shape (draws, system)
        Family of each draw, as an index of ``bayesatk.priors.DIFFICULTY_FAMILIES``.
    posterior : xarray.Dataset
        With the coordinates of chains, draws and systems.
    """
    pairs = [paired(difficulty) for difficulty in difficulties]
    variables: dict[str, tuple[tuple[str, ...], Array]] = {
        name: (("component",), np.stack([getattr(pair, name) for pair in pairs], axis=1))
        for name in _COMPONENT_VARIABLES
    }
    for name, share in zip(
        _ATOM_VARIABLES, np.stack([pair.atoms for pair in pairs], axis=1).T, strict=True
    ):
        variables[name] = (), share.T
    variables["family"] = ((), np.asarray(family, np.int64))
    labels = {"system": posterior["system"].values, "component": list(COMPONENTS)}
    dataset = draws_dataset(variables, posterior, **labels)
    return dataset.assign_attrs(families=" ".join(DIFFICULTY_FAMILIES))


def paired(difficulty: Nodes) -> Nodes:
    """Write distributions as mixtures of two Betas; a single Beta gets a copy without a share.

    Examples
    --------
    >>> two = paired(Nodes.single(0.5, 0.5))
    >>> two.share.tolist(), two.icc.tolist()
    ([[1.0, 0.0]], [[0.5, 0.5]])
    """
    if difficulty.share.shape[1] == len(COMPONENTS):
        return difficulty
    alpha, beta = (np.repeat(base, 2, axis=1) for base in (difficulty.alpha, difficulty.beta))
    share = np.concatenate([difficulty.share, np.zeros_like(difficulty.share)], axis=1)
    return replace(difficulty, alpha=alpha, beta=beta, share=share)


def difficulty_draws(groups: xr.DataTree | Mapping[str, xr.Dataset], system: int) -> Nodes | None:
    """Return the difficulty distribution of one system in every draw.

    Parameters
    ----------
    groups : xarray.DataTree or mapping {name: xarray.Dataset}
        A result, or its ``posterior`` and, where there is one, ``difficulty``.
    system : int
        Position of the system.

    Returns
    -------
    Nodes or None
        None if there is no such distribution: without partial pooling, for scored categories
        and for models of the user's own.
    """
    if "difficulty" not in groups:
        posterior: Any = groups["posterior"]
        absent = any(name not in posterior for name in _OVERALL_VARIABLES)
        if absent or "category" in posterior["mean_p"].dims:
            return None
        mean, icc = (flat_draws(posterior[name], system)[:, None] for name in _OVERALL_VARIABLES)
        return Nodes.of_moments(mean, icc)
    group: Any = groups["difficulty"]
    share, mean, icc = (flat_draws(group[name], system) for name in _COMPONENT_VARIABLES)
    atoms = np.stack([flat_draws(group[name], system) for name in _ATOM_VARIABLES], axis=1)
    betas = slice(None if (share[:, 1] > 0.0).any() else 1)
    return Nodes.of_moments(mean[:, betas], icc[:, betas], share[:, betas], atoms)


def flat_draws(variable: xr.DataArray, system: int | None = None) -> Array:
    """Draws in one row, chains one after the other, of one system if it is named; (draws, ...)."""
    if system is not None and "system" in variable.dims:
        variable = variable.isel(system=system)
    values = variable.transpose("chain", "draw", ...).values
    return np.asarray(values.reshape(-1, *values.shape[2:]), float)
