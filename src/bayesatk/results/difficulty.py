"""Difficulty distributions of a result by draw: the group ``difficulty``, and draws from priors.

Where every draw is a single Beta, ``mean_p`` and ``icc`` of the posterior say all, and the group is
not there. Read either with `difficulty_draws`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior

Array = NDArray[np.float64]
COMPONENTS = ("lower", "upper")
ATOMS = {"never_solved": "never", "always_solved": "always"}  # in the posterior; of a Difficulty
_DIMS = ("chain", "draw", "system")


def has_difficulty_group(prior: object) -> bool:
    """Whether results under this prior have the group: under any but single Betas."""
    return isinstance(prior, HyperPrior) and set(prior.family_prior) != {"beta"}


def difficulty_group(
    difficulties: Sequence[Difficulty], family: NDArray[np.int64], posterior: xr.Dataset
) -> xr.Dataset:
    """Return the group ``difficulty``.

    Parameters
    ----------
    difficulties : sequence of Difficulty
        One for each system, of all draws.
    family : ndarray of int, shape (draws, system)
        Family of each draw, as an index of ``bayesatk.priors.DIFFICULTY_FAMILIES``.
    posterior : xarray.Dataset
        With the coordinates of chains, draws and systems.
    """
    shape = posterior.sizes["chain"], posterior.sizes["draw"], len(difficulties)
    pairs = [paired(one) for one in difficulties]
    found: dict[str, tuple[tuple[str, ...], NDArray[np.generic]]] = {}
    for name in ("share", "mean", "icc"):
        values = np.stack([getattr(one, name) for one in pairs], axis=1)
        found[name] = ((*_DIMS, "component"), values.reshape(*shape, len(COMPONENTS)))
    for name in ("never", "always"):
        values = np.stack([getattr(one, name) for one in pairs], axis=1)
        found[name] = (_DIMS, values.reshape(shape))
    found["family"] = (_DIMS, np.asarray(family, np.int64).reshape(shape))
    coords = {name: posterior[name].values for name in _DIMS} | {"component": list(COMPONENTS)}
    return xr.Dataset(
        found, coords, {"sample_dims": ["chain", "draw"], "families": " ".join(DIFFICULTY_FAMILIES)}
    )


def paired(difficulty: Difficulty) -> Difficulty:
    """Return the same distributions with two Betas; the second of one is a copy without a share.

    Examples
    --------
    >>> two = paired(Difficulty.of_beta([0.5], [0.25]))
    >>> two.share.tolist(), two.icc.tolist()
    ([[1.0, 0.0]], [[0.25, 0.25]])
    """
    if difficulty.share.shape[1] == len(COMPONENTS):
        return difficulty
    mean, icc = (np.repeat(each, 2, axis=1) for each in (difficulty.mean, difficulty.icc))
    share = np.concatenate([difficulty.share, np.zeros_like(difficulty.share)], axis=1)
    return Difficulty(share, mean, icc, difficulty.never, difficulty.always)


def difficulty_draws(
    groups: xr.DataTree | Mapping[str, xr.Dataset], system: int
) -> Difficulty | None:
    """Return the difficulty distribution of one system in every draw.

    Parameters
    ----------
    groups : xarray.DataTree or mapping {name: xarray.Dataset}
        A result, or its ``posterior`` and, where there is one, ``difficulty``.
    system : int
        Its position.

    Returns
    -------
    Difficulty or None
        None without one: pooling none and complete, scored categories, other distributions.
    """
    if "difficulty" not in groups:
        own = _dataset(groups, "posterior")
        if not {"mean_p", "icc"} <= set(own) or "category" in own["mean_p"].dims:
            return None
        return Difficulty.of_beta(flat_draws(own["mean_p"], system), flat_draws(own["icc"], system))
    own = _dataset(groups, "difficulty")
    share, mean, icc = (flat_draws(own[name], system) for name in ("share", "mean", "icc"))
    if not (share[:, 1] > 0.0).any():
        share, mean, icc = share[:, :1], mean[:, :1], icc[:, :1]
    return Difficulty(
        share, mean, icc, flat_draws(own["never"], system), flat_draws(own["always"], system)
    )


def all_difficulties(groups: Mapping[str, xr.Dataset]) -> list[Difficulty] | None:
    """Return the difficulty distributions of all systems, in every draw, if there are any."""
    systems = groups["posterior"].sizes["system"]
    found = [difficulty_draws(groups, system) for system in range(systems)]
    some = [one for one in found if one is not None]
    return some if len(some) == systems else None


def _dataset(groups: xr.DataTree | Mapping[str, xr.Dataset], name: str) -> xr.Dataset:
    group: Any = groups[name]
    found: xr.Dataset = group.to_dataset() if isinstance(group, xr.DataTree) else group
    return found


def flat_draws(variable: xr.DataArray, system: int | None = None) -> Array:
    """Draws in one row, chains one after the other, of one system if it is named; (draws, ...)."""
    if system is not None and "system" in variable.dims:
        variable = variable.isel(system=system)
    values = variable.transpose("chain", "draw", ...).values
    return np.asarray(values.reshape(-1, *values.shape[2:]), float)


def summary_variables(
    difficulties: Sequence[Difficulty], prior: HyperPrior
) -> dict[str, NDArray[np.float64]]:
    """``mean_p`` and ``icc`` of whole distributions, and the atoms of inflated ones.

    Returns
    -------
    dict of ndarray, shape (draws, system)
    """
    overall = [one.overall for one in difficulties]
    found = {
        name: np.stack([each[i] for each in overall], axis=1)
        for i, name in enumerate(("mean_p", "icc"))
    }
    if "inflated" in prior.family_prior:
        for name, atom in ATOMS.items():
            found[name] = np.stack([getattr(one, atom) for one in difficulties], axis=1)
    return found


def draw_prior(
    prior: HyperPrior, size: int, rng: np.random.Generator
) -> tuple[Difficulty, NDArray[np.int64]]:
    """Draw difficulty distributions from the prior, each of a family drawn first.

    Returns
    -------
    difficulty : Difficulty
        Of two Betas, unless the prior is of single ones.
    family : ndarray of int, shape (size,)
        Index of ``bayesatk.priors.DIFFICULTY_FAMILIES``.

    Examples
    --------
    >>> drawn, family = draw_prior(HyperPrior(families="mixture"), 3, np.random.default_rng(1))
    >>> family.tolist(), bool((drawn.mean[:, 0] < drawn.mean[:, 1]).all())
    ([2, 2, 2], True)
    """
    if not has_difficulty_group(prior):
        return _drawn(prior, "beta", size, rng), np.zeros(size, np.int64)
    names, chances = zip(*prior.families, strict=True)
    chosen = rng.choice(len(names), size, p=chances)
    parts = [paired(_drawn(prior, name, size, rng)) for name in names]
    found = [
        np.stack([getattr(part, field) for part in parts])[chosen, np.arange(size)]
        for field in ("share", "mean", "icc", "never", "always")
    ]
    return Difficulty(*found), np.array([DIFFICULTY_FAMILIES.index(name) for name in names])[chosen]


def _drawn(prior: HyperPrior, family: str, size: int, rng: np.random.Generator) -> Difficulty:
    fields = prior.fields(family)
    return difficulty_of(fields.values(fields.from_uniform(rng.random((size, fields.size)))))


def difficulty_of(values: Mapping[str, Array]) -> Difficulty:
    """Return the difficulty distributions of hyperparameters by the names of fields, (draws, ...).

    Examples
    --------
    >>> law = difficulty_of({"mean": np.array([0.5]), "icc": np.array([0.25])})
    >>> law.alpha.tolist(), law.never.tolist()
    ([[1.5]], [0.0])
    """
    mean, icc = (values[name].reshape(len(values[name]), -1) for name in ("mean", "icc"))
    icc = np.broadcast_to(icc, mean.shape)
    never = always = np.zeros(len(mean))
    share = np.ones((len(mean), 1))
    if "share" in values:
        share = np.stack([values["share"], 1.0 - values["share"]], axis=1)
    if "atoms" in values:
        never, always, between = values["atoms"].T
        share = between[:, None]
    return Difficulty(share, mean, icc, never, always)
