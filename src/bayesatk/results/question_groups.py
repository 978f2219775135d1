"""Groups of questions in a result: their statistics and draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.grouping import Grouping
from bayesatk.metrics.grid import MetricGrid
from bayesatk.results.schema import QUANTILE_LEVELS, STATISTICS, TARGETS, metric_dataset

Array = NDArray[np.float64]
_MOST = 10_000_000  # draws of metrics of groups that are kept: 80 MB
_DIMS = ("chain", "draw", "system")


def group_results(
    grid: MetricGrid,
    labels: Sequence[Any],
    statistics: Array,
    quantiles: Array,
    draws: Array,
    posterior: xr.Dataset,
    interval_draws: int,
) -> dict[str, xr.Dataset]:
    """Return the groups of a closed form that have the dimension ``group``.

    Parameters
    ----------
    grid : MetricGrid
    labels : sequence
        Of the groups.
    statistics, quantiles : ndarray, shape (system, group, metrics, target, ...)
    draws : ndarray, shape (draws, system, group, metrics, target)
        Left out of the result where they are very many.
    posterior : xarray.Dataset
        With coordinates of chains, draws and systems.
    interval_draws : int
        Independent draws behind intervals.
    """
    coords = {"system": posterior["system"].values, "group": list(labels), "target": list(TARGETS)}
    dims = ("system", "group")
    found = {
        "group_closed_form": metric_dataset(
            grid, statistics, dims, ("target", "statistic"),
            {**coords, "statistic": list(STATISTICS)},
        ),
        "group_closed_form_quantiles": metric_dataset(
            grid, quantiles, dims, ("target", "quantile"), {**coords, "quantile": QUANTILE_LEVELS}
        ),
    }  # fmt: skip
    for values in found["group_closed_form"].data_vars.values():
        values.attrs["interval_draws"] = interval_draws
    if draws.size <= _MOST:
        found["group_posterior"] = group_draws(grid, labels, draws, posterior)
    return found


def group_draws(
    grid: MetricGrid, labels: Sequence[Any], draws: Array, posterior: xr.Dataset
) -> xr.Dataset:
    """Return the draws (draws, system, group, metrics, target) of every group of questions."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"], *draws.shape[1:]
    coords: dict[str, Any] = {name: posterior[name].values for name in _DIMS}
    coords |= {"group": list(labels), "target": list(TARGETS)}
    found = metric_dataset(grid, draws.reshape(shape), (*_DIMS, "group"), ("target",), coords)
    return found.assign_attrs(sample_dims=["chain", "draw"])


def labelled(posterior: xr.Dataset, grouping: Grouping | None) -> xr.Dataset:
    """Return draws with the labels of groups, where there are any."""
    return posterior if grouping is None else posterior.assign_coords(group=grouping.labels)


def group_difficulties(posterior: xr.Dataset, system: int) -> list[Difficulty]:
    """Return the difficulty distribution of every group of one system, in every draw."""
    own = posterior.isel(system=system)
    icc = own["icc"].transpose("chain", "draw").values.ravel()
    means = own["group_mean"].transpose("chain", "draw", "group").values
    return [Difficulty.of_beta(mean, icc) for mean in means.reshape(len(icc), -1).T]
