"""What `verify` compares: numbers of an exact result, with what they are compared with.

A quantity has a mean, an sd, quantiles and the ends of an interval, its stored draws, and the draws
of a sampler. What is only known by draws, or to a stated error, says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import hypergeom

from bayesatk._tools.arrays import Array, Flags
from bayesatk.comparison.pairs.together import joint_draws
from bayesatk.core.question.observed import largest_observed_k
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
TOLERANCE = 1e-12  # below which two values count as the same
_MIN_EXPECTED_DRAWS = 10.0  # expected on either side of a count for its probability to be tested
_STATISTICS_OF_DRAWS = ("sd", "mean")  # that an exact result may know by draws alone
_NEW_GROUPS = "new_groups_sd_draws"  # those behind sds of new groups, which are fewer
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
    stored : tuple of ndarray
        Draws that the exact result stores: of the system by itself, and in joint draws.
    pair : tuple of ndarray, optional
        Of a difference, joint draws (2, draws) of both systems: those of the exact result, and
        those of the sampler in a joint order.
    questions : int
        From how many questions the correlation of the pair is estimated.
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
    stored: tuple[Array, ...] = ()
    pair: tuple[Array, Array] | None = None
    questions: int = 0
    reference_draws: float = np.inf
    sd_draws: float = np.inf
    mean_draws: float = np.inf

    @property
    def tests(self) -> int:
        """How many numbers are compared."""
        of_stored = len(self.stored) * (1 + len(self.points))
        return 2 + len(self.points) + len(self.tails) + of_stored


def quantities(exact: Result, sampled: Result) -> Iterator[Quantity]:
    """Yield every scalar quantity that both results hold."""
    posterior = draws_of(sampled)
    yield from _of_dataset(exact, "closed_form", posterior)
    if exact.has("group_closed_form") and sampled.has("group_posterior"):
        yield from _of_dataset(exact, "group_closed_form", sampled.group("group_posterior"))
    yield from _simulated_votes(exact.group("closed_form"), posterior)
    if exact.has(_JOINT):
        yield from _differences(exact, sampled)


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
    groups = [draws_group, *([_JOINT] if group == "closed_form" else [])]
    held = [exact.group(name) for name in groups if exact.has(name)]
    for name, statistics in closed.data_vars.items():
        if name not in posterior or "statistic" not in statistics.dims:
            continue
        dims = [str(dim) for dim in statistics.dims if dim != "statistic"]
        attrs: dict[str, Any] = {
            f"{of}_draws": float(statistics.attrs.get(f"{of}_draws", np.inf))
            for of in _STATISTICS_OF_DRAWS
        }
        for where in _shared_labels(dims, statistics, posterior[name]):
            column = statistics.sel(where)
            row = {str(key): float(column.sel(statistic=key)) for key in column["statistic"].values}
            draws = posterior[name].sel(where)
            fields: dict[str, Any] = _distribution(exact, group, str(name), where, draws.size)
            fields |= _interval(exact, row)
            fields["stored"] = tuple(
                stored[name].sel(where).values.ravel() for stored in held if name in stored
            )
            if where.get("target") == "new_groups" and _NEW_GROUPS in statistics.attrs:
                fields["sd_draws"] = float(statistics.attrs[_NEW_GROUPS])
            yield Quantity(
                {"variable": str(name), **where},
                draws,
                row["mean"],
                row["sd"],
                reference_draws=reference_draws(closed, str(name), where),
                **attrs | fields,
            )


def _shared_labels(
    dims: Iterable[str], values: xr.DataArray, draws: xr.DataArray
) -> Iterator[dict[str, Any]]:
    """Yield the labels of every scalar that both results have."""
    labels = [
        [label for label in values[dim].values.tolist() if label in draws[dim].values]
        for dim in dims
    ]
    return (dict(zip(dims, at, strict=True)) for at in product(*labels))


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
            posterior["plurality_votes_at_k"].sel(where),
            float(mean.sel(where)),
        )


def _differences(exact: Result, sampled: Result) -> Iterator[Quantity]:
    """Yield the difference of every pair of systems, by the joint draws of all systems.

    Systems that are sampled one by one are independent. So are the joint draws on these questions,
    if all systems tried all of them. On others systems move together: the mean is the same, and
    what can be compared of the spread is the correlation, with that of sampled draws in a joint
    order.
    """
    joint, closed, posterior = exact.group(_JOINT), exact.group("closed_form"), draws_of(sampled)
    ordered, levels = _in_joint_order(exact, sampled), np.array(LEVELS)
    tried = exact.trials > 0
    number, independent = int(tried.any(axis=0).sum()), exact.judges is None and tried.all()
    for name, values in joint.data_vars.items():
        if name not in posterior or name not in closed or "system" not in values.dims:
            continue
        sampled_values, statistics = posterior[name], closed[name]
        few = {
            f"{of}_draws": float(statistics.attrs.get(f"{of}_draws", np.inf)) / 2.0
            for of in _STATISTICS_OF_DRAWS
        }
        dims = [str(dim) for dim in values.dims if dim not in ("chain", "draw", "system")]
        for where in _shared_labels(dims, values, sampled_values):
            in_order = ordered.get((name, where.get("k", 1), where.get("tau")))
            for first, second in combinations(range(len(exact.systems)), 2):
                system, other = exact.systems[second], exact.systems[first]
                pair = where | {"system": [system, other]}
                stored = values.sel(pair).transpose("system", ...).values.reshape(2, -1)
                mean, sd = (
                    statistics.sel(pair).sel(statistic=key).values for key in ("mean", "sd")
                )
                draws = stored[0] - stored[1]
                fields: dict[str, Any] = {"mean_draws": few["mean_draws"]}
                if independent and where.get("target") == "questions":
                    fields |= {
                        "sd": float(np.hypot(*sd)),
                        "sd_draws": few["sd_draws"],
                        "points": np.quantile(draws, levels),
                        "probabilities": levels,
                        "reference_draws": float(draws.size),
                    }
                elif where.get("target") == "population" and in_order is not None:
                    fields |= {"pair": (stored, in_order[[second, first]]), "questions": number}
                yield Quantity(
                    {"variable": str(name), "system": system, **where, "other": other},
                    sampled_values.sel(where | {"system": system})
                    - sampled_values.sel(where | {"system": other}),
                    float(mean[0] - mean[1]),
                    stored=(draws,),
                    **fields,
                )


def _in_joint_order(exact: Result, sampled: Result) -> dict[tuple[Any, ...], Array]:
    """Return sampled draws (system, draws) on questions like these, in the order of the questions.

    By variable, k and tau. The order follows from the counts alone, for a k up to the trials and
    without a judge; a model of one's own has an order of its own.
    """
    if "study" not in sampled.tree.attrs or sampled.own or exact.judges is not None:
        return {}
    largest_k = largest_observed_k(exact.trials)
    draws = joint_draws(sampled)[1]
    return {
        (metric.family.variable, metric.k, metric.tau): of_metric
        for metric, of_metric in zip(sampled.grid, draws, strict=True)
        if metric.k <= largest_k
    }


def observed_values(exact: Result) -> Iterator[tuple[dict[str, Any], float, float]]:
    """Yield labels, the stored observed value, and the mean over all subsets of k trials.

    Of metrics that count right trials. Each subset is as likely as any other, so that the number
    of right ones among them is hypergeometric; SciPy has its probabilities.
    """
    if "study" not in exact.tree.attrs or exact.scale.axes:
        return
    data = exact.data
    share = np.ones(exact.trials.shape[1]) if exact.weight is None else exact.weight
    if exact.grouping is not None:
        share = exact.grouping.question_shares(exact.weight)
    for metric, (position, system) in product(exact.grid, enumerate(exact.systems)):
        trials, right = exact.trials[position], data.successes.values[position]
        known = trials >= metric.k
        if metric.voted or data.stopped[position] or not known.any():
            continue
        chance = hypergeom.pmf(
            np.arange(metric.k + 1), trials[known, None], right[known, None], metric.k
        )
        labels = {"variable": metric.family.variable, "system": system}
        labels |= {"k": metric.k} if metric.family.has_k else {}
        labels |= {} if metric.tau is None else {"tau": metric.tau}
        stored = metric_values(exact.statistics, metric).sel(
            system=system, target="questions", statistic="estimate"
        )
        if np.isfinite(stored):
            counted = np.average(chance @ metric.credit.vector, weights=share[known])
            yield labels | {"target": "observed"}, float(stored), float(counted)
