"""What `verify` compares: numbers of an exact result, with what they are compared with.

A quantity has a mean, an sd, quantiles and the ends of an interval, its stored draws, and the draws
of a sampler. What is only known by draws, or to a stated error, says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags
from bayesatk.results.result import Result

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
TOLERANCE = 1e-12  # below which two values count as the same
_MIN_EXPECTED_DRAWS = 10.0  # expected on either side of a count for its probability to be tested
_STATISTICS_OF_DRAWS = ("sd", "mean")  # that an exact result may know by draws alone
_STORED = {"closed_form": "posterior", "group_closed_form": "group_posterior"}
_ERRORS_STATED = 3.0  # standard errors in the stated error of an end
_JOINT = "joint_posterior"  # draws of all systems together


def _empty() -> Array:
    return np.zeros(0)


@dataclass(frozen=True)
class Quantity:
    """One scalar of both results.

    Parameters
    ----------
    labels : mapping
        Columns that name it.
    draws : xarray.DataArray
        Of the sampler, dims ``(chain, draw)``.
    mean, sd : float
        NaN: not known of the exact result.
    points, probabilities : ndarray
        Values, and the exact probability of one at most as large.
    ends : tuple of float, optional
        Of the interval.
    tails : tuple of float
        Probability below the lower and the upper end of an equal-tailed interval; of a
        highest-density interval the probability inside alone.
    end_error : float
        Standard error of the ends, as the exact result states it.
    grid : tuple of ndarray
        Levels and quantiles, from which the density at the ends comes.
    stored : ndarray
        Draws that the exact result stores.
    reference_draws, sd_draws, mean_draws : float
        How many draws are behind the exact quantiles, sd and mean; infinite where they are
        integrated.
    """

    labels: Mapping[str, Any]
    draws: xr.DataArray
    mean: float
    sd: float = np.nan
    points: Array = field(default_factory=_empty)
    probabilities: Array = field(default_factory=_empty)
    ends: tuple[float, float] | None = None
    tails: tuple[float, ...] = ()
    end_error: float = 0.0
    grid: tuple[Array, Array] = field(default_factory=lambda: (_empty(), _empty()))
    stored: Array = field(default_factory=_empty)
    reference_draws: float = np.inf
    sd_draws: float = np.inf
    mean_draws: float = np.inf

    @property
    def tests(self) -> int:
        """How many numbers are compared."""
        of_stored = 1 + len(self.points) if self.stored.size else 0
        return 2 + len(self.points) + len(self.tails) + of_stored


def quantities(exact: Result, sampled: Result) -> Iterator[Quantity]:
    """Yield every scalar quantity that both results hold."""
    posterior = draws_of(sampled)
    yield from _of_dataset(exact, "closed_form", posterior)
    if exact.has("group_closed_form") and sampled.has("group_posterior"):
        yield from _of_dataset(exact, "group_closed_form", sampled.group("group_posterior"))
    yield from _simulated_votes(exact.group("closed_form"), posterior)
    if exact.has(_JOINT):
        yield from _differences(exact, posterior)


def draws_of(sampled: Result) -> xr.Dataset:
    """Return the draws of a posterior, or of a prior where that is what was sampled."""
    return sampled.group("posterior" if sampled.has("posterior") else "prior")


def reference_draws(closed: xr.Dataset, name: str, where: Mapping[str, Any]) -> float:
    """Effective number of draws behind the exact quantiles; infinite where they are integrated."""
    drawn = closed[name].attrs.get("interval_draws", 0)
    if where.get("target") == "population":
        drawn = max(drawn, closed.attrs.get("bootstrap_draws", 0))
    return float(drawn) if drawn else np.inf


def continuous_at(quantiles: Array, values: Array) -> Flags:
    """Which values have one level only among these quantiles.

    A value that several levels share has a probability of its own, such as a share of questions
    that is 0 under some families: how much lies at or below it is more than any of the levels.
    """
    return np.asarray((quantiles == values[:, None]).sum(axis=1) == 1)


def _of_dataset(exact: Result, group: str, posterior: xr.Dataset) -> Iterator[Quantity]:
    """Yield the quantities that a group of statistics has in common with draws."""
    closed, draws_group = exact.group(group), _STORED[group]
    stored = exact.group(draws_group) if exact.has(draws_group) else xr.Dataset()
    for name, statistics in closed.data_vars.items():
        if name not in posterior or "statistic" not in statistics.dims:
            continue
        dims = [str(dim) for dim in statistics.dims if dim != "statistic"]
        attrs: dict[str, Any] = {
            f"{of}_draws": float(statistics.attrs.get(f"{of}_draws", np.inf))
            for of in _STATISTICS_OF_DRAWS
        }
        for position in product(*(range(statistics.sizes[dim]) for dim in dims)):
            column = statistics.isel(dict(zip(dims, position, strict=True)))
            where = {dim: column[dim].item() for dim in dims}
            row = {str(key): float(column.sel(statistic=key)) for key in column["statistic"].values}
            draws = posterior[name].sel(where)
            fields: dict[str, Any] = _distribution(exact, group, str(name), where, draws.size)
            fields |= _interval(exact, row)
            if name in stored:
                fields["stored"] = stored[name].sel(where).values.ravel()
            yield Quantity(
                {"variable": str(name), **where}, draws, row["mean"], row["sd"],
                reference_draws=reference_draws(closed, str(name), where), **fields, **attrs,
            )  # fmt: skip


def _interval(exact: Result, row: Mapping[str, float]) -> dict[str, Any]:
    """Return the ends of the interval with their error, where the result has one."""
    ends = row.get("ci_lower", np.nan), row.get("ci_upper", np.nan)
    # The distribution of guessers has no study; its quantiles are compared.
    if not np.isfinite(ends).all() or "study" not in exact.tree.attrs:
        return {}
    error = np.nan_to_num(row.get("ci_error", 0.0)) / _ERRORS_STATED
    tails = exact.tails if exact.ci_kind == "eti" else (exact.ci_prob,)
    return {"ends": ends, "tails": tails, "end_error": float(error)}


def _distribution(
    exact: Result, group: str, name: str, where: Mapping[str, Any], draws: int
) -> dict[str, Any]:
    """Points with their exact probabilities, and the grid of quantiles.

    Quantiles of a continuous quantity; every count of a discrete one that is neither too rare nor
    too common for its share of the draws to be nearly normal.
    """
    if exact.has("closed_form_cdf") and name in exact.group("closed_form_cdf"):
        cdf = exact.group("closed_form_cdf")[name]
        tested = np.minimum(cdf.values, 1.0 - cdf.values) * draws >= _MIN_EXPECTED_DRAWS
        points = cdf["count"].values[tested].astype(float)
        return {"points": points, "probabilities": cdf.values[tested]}
    quantiles = f"{group}_quantiles"
    if not exact.has(quantiles) or name not in exact.group(quantiles):
        return {}
    distribution = exact.group(quantiles)[name].sel(where)
    values = distribution.sel(quantile=list(LEVELS)).values
    if not np.isfinite(values).all():
        return {}
    alone = continuous_at(distribution.values, values)
    grid = distribution["quantile"].values, distribution.values
    return {"points": values[alone], "probabilities": np.array(LEVELS)[alone], "grid": grid}


def _simulated_votes(closed: xr.Dataset, posterior: xr.Dataset) -> Iterator[Quantity]:
    """Yield the means of simulated votes: they have the mean of plurality, and a larger sd."""
    if "plurality_at_k" not in closed or "plurality_votes_at_k" not in posterior:
        return
    mean = closed["plurality_at_k"].sel(statistic="mean", target="questions", drop=True)
    for system, k in product(mean["system"].values.tolist(), mean["k"].values.tolist()):
        where = {"system": system, "k": k}
        yield Quantity(
            {"variable": "plurality_votes_at_k", **where, "target": "questions"},
            posterior["plurality_votes_at_k"].sel(where), float(mean.sel(where)),
        )  # fmt: skip


def _differences(exact: Result, posterior: xr.Dataset) -> Iterator[Quantity]:
    """Yield differences of every system and the first one, by the joint draws of all systems.

    Systems that are sampled one by one are independent. So are the joint draws on these questions;
    on others systems move together, so that there only the mean is the same.
    """
    joint, closed = exact.group(_JOINT), exact.group("closed_form")
    first, *systems = exact.systems
    levels = np.array(LEVELS)
    for name, values in joint.data_vars.items():
        if name not in posterior or name not in closed or "system" not in values.dims:
            continue
        stored, sampled, means = (
            by_system.sel(system=systems) - by_system.sel(system=first)
            for by_system in (values, posterior[name], closed[name].sel(statistic="mean"))
        )
        sds = (closed[name].sel(statistic="sd", system=[first, system]) for system in systems)
        sd = xr.concat([(pair**2).sum("system") ** 0.5 for pair in sds], "system")
        few = {
            f"{of}_draws": float(closed[name].attrs.get(f"{of}_draws", np.inf))
            for of in _STATISTICS_OF_DRAWS
        }
        dims = [str(dim) for dim in means.dims]
        for position in product(*(means[dim].values.tolist() for dim in dims)):
            where = dict(zip(dims, position, strict=True))
            draws = stored.sel(where).values.ravel()
            fields: dict[str, Any] = {"mean_draws": few["mean_draws"] / 2.0}
            if exact.judges is None and where.get("target") == "questions":
                of_pair = sd.isel(system=systems.index(where["system"]))
                at = {dim: label for dim, label in where.items() if dim != "system"}
                fields |= {
                    "sd": float(of_pair.sel(at)), "sd_draws": few["sd_draws"] / 2.0,
                    "points": np.quantile(draws, levels), "probabilities": levels,
                    "reference_draws": float(draws.size),
                }  # fmt: skip
            labels = {"variable": str(name), **where, "other": first}
            mean = float(means.sel(where))
            yield Quantity(labels, sampled.sel(where), mean, stored=draws, **fields)
