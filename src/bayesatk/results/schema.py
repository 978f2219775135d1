"""Results: one builder and one reader of InferenceData, whatever produced the numbers.

A result is an `xarray.DataTree` with the InferenceData groups ``posterior``, ``observed_data`` and
``constant_data``; a closed form adds ``closed_form`` (exact statistics) and
``closed_form_quantiles`` (the exact distribution, as quantiles). Attributes are text or numbers,
so that netCDF keeps them.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, MetricGrid

SCHEMA_VERSION = 2
TARGETS = ("questions", "population")
GROUPED_TARGETS = (*TARGETS, "new_groups")  # of questions in groups
TARGET_NAMES = {
    "questions": "these questions",
    "population": "questions like these",
    "new_groups": "new groups of questions",
}
STATISTICS = (
    "estimate",
    "mean",
    "sd",
    "ci_lower",
    "ci_upper",
    "ci_error",
    "variance_trial",
    "variance_question",
    "prior_sensitivity",
)
QUANTILE_LEVELS = np.round(np.concatenate([[0.005], np.arange(0.01, 1.0, 0.01), [0.995]]), 3)
MAX_RHAT = 1.01  # above which chains have not mixed
CHAINS = 4  # that exact draws are laid out as, so that ArviZ takes them
_PACKAGES = ("bayesatk", "numpy", "scipy", "xarray", "arviz", "pymc", "nutpie")


def root_attributes(
    method: str,
    study: str,
    seed: str,
    data: Outcomes,
    citations: tuple[str, ...],
    **more: str | float | int,
) -> dict[str, Any]:
    """Return the provenance that every result carries on its root, and the text of its study."""
    return {
        "schema_version": SCHEMA_VERSION,
        "method": method,
        "study": study,
        "seed": seed,
        "missing_policy": str(data.dataset.attrs.get("missing_policy", "error")),
        "assumptions": json.dumps(list(data.notes)),
        "input_sha256": data.sha256(),
        "input_files": json.dumps([list(each) for each in data.sources]),
        "citations": json.dumps(list(citations)),
        "versions": _versions(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **more,
    }


@cache
def _versions() -> str:
    """Return the versions of the packages, which do not change while Python runs, as JSON."""
    found = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):  # closed forms need neither arviz nor pymc
            found[name] = version(name)
    return json.dumps(found)


def metric_dataset(
    grid: MetricGrid,
    values: NDArray[np.float64],
    leading: tuple[str, ...],
    trailing: tuple[str, ...],
    coords: Mapping[str, Any],
) -> xr.Dataset:
    """Return an array over the grid of metrics as named variables.

    Parameters
    ----------
    grid : MetricGrid
    values : ndarray, shape (*leading, len(grid), *trailing)
    leading, trailing : tuple of str
        Names of the other dimensions.
    coords : mapping
        Coordinates of the other dimensions.
    """
    return xr.Dataset(grid.split(values, leading, trailing), coords={**grid.coords, **coords})


def posterior_group(
    grid: MetricGrid,
    draws: NDArray[np.float64],
    systems: Any,
    extra: Mapping[str, tuple[tuple[str, ...], NDArray[np.float64]]],
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Return the ``posterior`` group from draws (chain, draw, system, metric, target)."""
    coords = {
        "chain": np.arange(draws.shape[0]),
        "draw": np.arange(draws.shape[1]),
        "system": systems,
        "target": list(GROUPED_TARGETS[: draws.shape[-1]]),
    }
    dataset = metric_dataset(grid, draws, ("chain", "draw", "system"), ("target",), coords)
    return dataset.assign(extra).assign_attrs(sample_dims=["chain", "draw"], **attrs)


def build(groups: Mapping[str, xr.Dataset], attrs: Mapping[str, Any]) -> xr.DataTree:
    """Assemble groups and root attributes into a result.

    Coordinates that only describe others (``score``) are dropped: every group stands alone, as
    InferenceData groups do.
    """
    tree = xr.DataTree.from_dict(
        {f"/{name}": group.drop_vars("score", errors="ignore") for name, group in groups.items()}
    )
    tree.attrs.update(attrs)
    return tree


def check_result(result: object, group: str | None = "posterior") -> xr.DataTree:
    """Return the tree if it is a bayesatk result (with this group), or say what is wrong."""
    if not isinstance(result, xr.DataTree) or "schema_version" not in result.attrs:
        raise TypeError(
            "result must be a DataTree made by bayesatk.evaluate or bayesatk.sample; got "
            f"{type(result).__name__}. Read a saved one with bayesatk.load_result."
        )
    if group is not None and group not in result.children:
        maker, what = _MAKERS.get(group, _MAKERS["posterior"])
        raise ValueError(
            f"result must have the group {group!r}, {what}; it has {sorted(result.children)}. "
            f"Use the result of {maker}."
        )
    return result


_COMPARED = "bayesatk.compare(fit): compare first", "differences between systems"
_BASELINE = "bayesatk.guessing.random_baseline(fit, p)", "a random baseline"
_MAKERS = {
    "comparison": _COMPARED,
    "ranks": _COMPARED,
    "group_comparison": (
        "bayesatk.compare(fit): compare first",
        "differences on groups of questions",
    ),
    "tiers": _COMPARED,
    "random_baseline": _BASELINE,
    "closed_form": ("bayesatk.evaluate(data, metrics)", "exact statistics"),
    "posterior": ("bayesatk.evaluate(data, metrics), or of bayesatk.sample", "posterior draws"),
}


def statistics_of_draws(
    posterior: xr.Dataset, names: Collection[str], tails: tuple[float, float]
) -> xr.Dataset:
    """Return mean, sd and interval of the draws of some variables."""
    draws = posterior[[name for name in posterior.data_vars if name in names]]
    sample = ("chain", "draw")
    ends = draws.quantile(list(tails), dim=sample)
    parts = {
        "mean": draws.mean(sample),
        "sd": draws.std(sample, ddof=1),
        "ci_lower": ends.isel(quantile=0, drop=True),
        "ci_upper": ends.isel(quantile=1, drop=True),
    }
    return xr.concat(parts.values(), dim=pd.Index(list(parts), name="statistic"))


def metric_values(variables: xr.Dataset, metric: Metric) -> xr.DataArray:
    """Return the variable of a metric at its own k and tau."""
    values = variables[metric.family.variable]
    if metric.family.has_k:
        values = values.sel(k=metric.k)
    return values if metric.tau is None else values.sel(tau=metric.tau)
