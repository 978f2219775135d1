"""Weighted points of hyperparameters, as a result keeps them: written and read in one place."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from bayesatk.core.numerics.points import WeightedPoints

_MAX_FLOATS = 1_000_000  # of all points of a result: 8 MB
_MIN_POINTS = 200  # of a law, for any number of systems
Laws = Sequence[tuple[str, WeightedPoints]]  # by law of difficulty, with its name


def points_group(laws: Sequence[Laws], systems: Any) -> dict[str, xr.Dataset]:
    """Return the group ``points`` of all systems: what comparing them would fit again.

    Of very many systems fewer points are kept, with the means and variances of all.
    """
    names = [name for name, _ in laws[0]]
    size = max(points.theta.shape[1] for system in laws for _, points in system)
    max_points = max(int(_MAX_FLOATS / (len(laws) * len(names) * (size + 1))), _MIN_POINTS)
    stored = [[points.at_most(max_points) for _, points in system] for system in laws]
    number = max(len(points.weight) for system in stored for points in system)
    theta = np.zeros((len(laws), len(names), number, size))
    weight = np.zeros(theta.shape[:3])
    numbers = np.empty((3, *theta.shape[:2]))
    methods = np.empty(theta.shape[:2], object)
    for position, points in np.ndenumerate(np.array(stored, object)):
        rows = slice(len(points.weight))
        theta[position][rows, : points.theta.shape[1]] = points.theta
        weight[position][rows] = points.weight
        numbers[:, *position] = points.log_evidence, points.k_hat, points.effective_draws
        methods[position] = points.method
    dims = ("system", "law")
    values = {
        "coordinate": ((*dims, "point", "parameter"), theta), "weight": ((*dims, "point"), weight),
        "log_evidence": (dims, numbers[0]), "pareto_k": (dims, numbers[1]),
        "effective_draws": (dims, numbers[2]), "method": (dims, methods.astype(str)),
    }  # fmt: skip
    return {"points": xr.Dataset(values, coords={"system": systems, "law": names})}


def sampling_attributes(laws: Sequence[Laws]) -> dict[str, Any]:
    """Return how hyperparameters were drawn, and what these draws are worth, for a reader.

    ``sampling`` is "exact" of a closed form or a lattice, "importance" of weighted points, or
    "chains" where the weights could not be trusted; ``pareto_k`` is the largest of the weights, and
    ``effective_draws`` the smallest number of independent draws of any law and system.
    """
    weighted = [
        points for system in laws for _, points in system if np.isfinite(points.effective_draws)
    ]
    if not weighted:
        return {"sampling": "exact"}
    chains = any(points.sampled for points in weighted)
    return {
        "sampling": "chains" if chains else "importance",
        "pareto_k": float(max(points.k_hat for points in weighted)),
        "effective_draws": float(min(points.effective_draws for points in weighted)),
    }


def stored_points(tree: xr.DataTree, system: int, sizes: dict[str, int]) -> Laws | None:
    """Return the points of a system by law, where a result has them.

    Parameters
    ----------
    tree : xarray.DataTree
    system : int
        Position of the system.
    sizes : dict of str -> int
        Number of hyperparameters of each law.
    """
    if "points" not in tree.children:
        return None
    group = tree["points"].dataset.isel(system=system)
    if "coordinate" not in group:  # an earlier result: some of its coordinates were others
        return None
    if [str(name) for name in group["law"].values] != list(sizes):
        return None
    laws = []
    for name, size in sizes.items():
        law = group.sel(law=name)
        rows = np.flatnonzero(law["weight"].values > 0.0)
        points = WeightedPoints(
            law["coordinate"].values[rows, :size], law["weight"].values[rows],
            float(law["log_evidence"]), float(law["pareto_k"]), float(law["effective_draws"]),
            str(law["method"].values),
        )  # fmt: skip
        laws.append((name, points))
    return laws
