"""Which system is better, by how much, how surely: on these questions, on questions like these."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.comparison.joint import band_width, over_k, tiers
from bayesatk.comparison.sources import (
    CONTRASTS,
    Settings,
    check_comparable,
    exact_questions,
    on_categories,
    paired_population,
    sampled_questions,
)
from bayesatk.core.seeding import RandomSource, resolve_rng
from bayesatk.metrics import parse
from bayesatk.results import TARGETS, check_result, metric_grid, metric_values

Array = NDArray[np.float64]


def compare(
    fit: xr.DataTree,
    *,
    rope: float = 0.0,
    alpha: float = 0.05,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Hold every pair of systems of a result against each other, and rank them all.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more, from `bayesatk.evaluate`, or from `bayesatk.sample` with
        ``keep=["p"]`` (draws of every question's p are needed to pair questions).
    rope : float
        Half-width of the region of practical equivalence: differences within ``[-rope, rope]``
        count as none.
    alpha : float
        Share of evaluations in which two identical systems may be put into different tiers.
    rng : int, numpy.random.Generator or None
        For the Bayesian bootstrap (questions like these).

    Returns
    -------
    xarray.DataTree
        The result with three groups. ``comparison`` holds every metric with dims ``(system, other,
        [k], [tau], target, contrast)``, contrasts of ``system`` minus ``other``: mean, sd, interval
        (as in the result), probability that the difference is positive, below, inside and above
        the ROPE, expected loss of choosing ``system``, quantiles of the ratio, the Monte Carlo
        standard error of probabilities (0: exact), the sd had the questions not been paired, and
        the ends of a band that holds the whole curve of differences over k with the interval's
        probability (from joint draws).
        ``ranks`` holds the probability of every rank (1 is best), dims ``(system, rank, ...,
        target)``; ``tiers`` the tier of every system (1 is best): between tiers every system above
        is ahead of every one below with probability 1 - alpha/2 or more.

    Raises
    ------
    ValueError
        If there are fewer than two systems, or some system lacks a question.

    Notes
    -----
    *These questions*: given the data, systems are independent; differences, ratios and ranks are
    integrals over the exact posteriors (of the draws, for a sampled result or scored categories).
    *Questions like
    these*: the systems answer the same questions, so the questions are redrawn together: the
    Bayesian bootstrap (Rubin 1981) with the same weights for all systems, on draws of every
    question's p under the pooling of the result. Where questions hard for one system are hard for
    the other, that makes differences more certain than the difference of two intervals.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
    >>> found = compare(fit, rng=1)["comparison"]["bayes"].sel(system="a", other="b")
    >>> exact = found.sel(target="questions")
    >>> round(float(exact.sel(contrast="mean")), 6)  # 5/6 - 1/2
    0.333333
    >>> float(exact.sel(contrast="prob_greater")) > 0.999
    True
    """
    check_result(fit)
    if not rope >= 0.0:
        raise ValueError(f"rope must be 0 or more (the half-width of no difference); got {rope}.")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie strictly between 0 and 1; got {alpha}. Try 0.05.")
    check_comparable(fit)
    grid = metric_grid(fit)
    generator, seed = resolve_rng(rng)
    settings = Settings(float(fit.attrs["ci_prob"]), fit.attrs["ci_kind"], float(rope))
    drawn = (sampled_questions(fit, grid), paired_population(fit, grid, generator))
    inexact = fit.attrs["method"] == "nuts" or on_categories(fit)
    sources = (drawn[0] if inexact else exact_questions(fit, grid, drawn[0]), drawn[1])
    systems = fit["posterior"].to_dataset()["system"].values
    size, cells = len(systems), len(list(grid))
    table = np.zeros((size, size, cells, len(TARGETS), len(CONTRASTS)))
    ranks = np.empty((size, size, cells, len(TARGETS)))
    separated = np.empty((size, cells, len(TARGETS)))
    for (target, source), cell in product(enumerate(sources), range(cells)):
        ranks[:, :, cell, target] = source.ranks(cell)
        separated[:, cell, target] = tiers(drawn[target].values[:, cell], alpha)
        for i, j in combinations(range(size), 2):
            table[i, j, cell, target] = found = source.contrast(cell, i, j, settings)
            table[j, i, cell, target] = _mirrored(found)
    _add_bands(table, [each.values for each in drawn], over_k(grid), settings.ci_prob)
    coords = {**grid.coords, "system": systems, "target": list(TARGETS)}
    result = fit.copy()
    attrs = {"rope": float(rope), "seed": seed}
    result["comparison"] = xr.DataTree(
        xr.Dataset(
            grid.split(table, ("system", "other"), ("target", "contrast")),
            coords={**coords, "other": systems, "contrast": list(CONTRASTS)},
            attrs=attrs,
        )
    )
    result["ranks"] = xr.DataTree(
        xr.Dataset(
            grid.split(ranks, ("system", "rank"), ("target",)),
            coords={**coords, "rank": np.arange(1, size + 1)},
            attrs=attrs,
        )
    )
    result["tiers"] = xr.DataTree(
        xr.Dataset(
            grid.split(separated, ("system",), ("target",)), coords, {**attrs, "alpha": alpha}
        ).astype(np.int64)
    )
    return result


def _add_bands(
    table: Array, draws: list[Array], curves: list[list[int]], probability: float
) -> None:
    """Fill in bands that hold a whole difference curve over k with this probability."""
    mean, sd = CONTRASTS.index("mean"), CONTRASTS.index("sd")
    size = len(table)
    pairs = [(i, j) for i, j in product(range(size), repeat=2) if i != j]
    for (i, j), (target, values), cells in product(pairs, enumerate(draws), curves):
        width = band_width(values[:, cells, i] - values[:, cells, j], probability)
        own = table[i, j, cells, target]
        half = width * own[:, sd]
        table[i, j, cells, target, -2:] = np.stack([own[:, mean] - half, own[:, mean] + half], -1)


def _mirrored(found: Array) -> Array:
    """Contrasts of the pair the other way round."""
    one = dict(zip(CONTRASTS, found.tolist(), strict=True))
    with np.errstate(divide="ignore"):
        ratio = [
            float(1.0 / np.float64(one[f"ratio_{end}"])) for end in ("median", "upper", "lower")
        ]
    return np.array(
        [
            -one["mean"], one["sd"], -one["ci_upper"], -one["ci_lower"], 1.0 - one["prob_greater"],
            one["prob_above_rope"], one["prob_in_rope"], one["prob_below_rope"],
            one["expected_loss"] + one["mean"], *ratio, one["monte_carlo_error"],
            one["sd_unpaired"], np.nan, np.nan,
        ]
    )  # fmt: skip


def comparison_table(result: xr.DataTree) -> pd.DataFrame:
    """Tabulate a comparison: one row per pair (the better first), metric and target.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.compare`.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``other``, ``metric``, ``target``, the contrasts, and ``sentence``: how
        sure, by how much, and whether more questions or more trials would help.
    """
    check_result(result, "comparison")
    dataset = result["comparison"].to_dataset()
    systems = dataset["system"].values.tolist()
    rows = []
    ci_prob = float(result.attrs["ci_prob"])
    for metric, (i, j) in product(
        parse(str(result.attrs["metrics"])), combinations(range(len(systems)), 2)
    ):
        chosen = metric_values(dataset, metric)
        if float(chosen.isel(system=i, other=j).sel(target="questions", contrast="mean")) < 0:
            i, j = j, i
        pair = chosen.isel(system=i, other=j)
        names = {"system": systems[i], "other": systems[j], "metric": metric.label}
        sds = pair.sel(contrast="sd").values
        for target in TARGETS:
            found = pair.sel(target=target).values.tolist()
            row = {**names, "target": target, **dict(zip(CONTRASTS, found, strict=True))}
            sentence = _sentence(row, ci_prob)
            if target == "population" and sds[1] > 0:
                sentence += _remedy(float(min(1.0, (sds[0] / sds[1]) ** 2)))
            rows.append({**row, "sentence": sentence})
    return pd.DataFrame(rows)


def _remedy(trial_share: float) -> str:
    """Say what would make the difference more certain."""
    more = "trials" if trial_share > 0.5 else "questions"
    return (
        f" {100 * (1.0 - trial_share):.0f}% of that variance is about which questions were asked, "
        f"the rest about their trials: more {more} help most."
    )


_INVERTED = ("median", "upper", "lower")
_WHERE = {"questions": "on these questions", "population": "on questions like these"}


def _sentence(row: dict[str, object], ci_prob: float) -> str:
    """Say who is ahead, by how much and how surely."""
    sure = float(str(row["prob_greater"]))
    verdict = (
        "is ahead of" if sure >= 0.975 else "is probably ahead of" if sure >= 0.9 else
        "cannot be separated from"
    )  # fmt: skip
    return (
        f"{row['system']} {verdict} {row['other']} in {row['metric']} "
        f"{_WHERE[str(row['target'])]}: {row['mean']:+.3f} "
        f"({100 * ci_prob:g}% interval {row['ci_lower']:+.3f} to {row['ci_upper']:+.3f}), "
        f"P(better) {'> 0.999' if sure >= 0.9995 else f'= {sure:.3f}'}."
    )
