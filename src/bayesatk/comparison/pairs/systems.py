"""Which system is better, by how much, how surely: on these questions, on questions like these."""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtri

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError, proper_probability
from bayesatk.comparison.pairs.contrasts import CONTRASTS, pair_contrasts
from bayesatk.comparison.pairs.cost_rows import cost_rows
from bayesatk.comparison.pairs.linear import contrast_group
from bayesatk.comparison.pairs.together import (
    Standings,
    check_systems,
    joint_draws,
    joint_group_draws,
    settings_of,
)
from bayesatk.comparison.pairs.verdicts import TURNED, PairSentences, tier_rule
from bayesatk.results.result import Fit, Result, with_analysis
from bayesatk.results.schema import TARGETS, metric_values
from bayesatk.results.tables import by_groups, cost_sentences, noted
from bayesatk.results.views import ShownTable


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def compare(
    fit: Fit,
    *,
    rope: float = 0.0,
    alpha: float = 0.05,
    contrast: Mapping[Any, float] | None = None,
) -> xr.DataTree:
    """Compare every pair of systems of a result, and rank all systems.

    All probabilities are posterior: given the observed trials, over the success probabilities of
    the questions and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more, from `bayesatk.evaluate` or `bayesatk.sample`.
    rope : float
        Half-width of the region of practical equivalence, in units of the metric: differences
        within ``[-rope, rope]`` count as negligible.
    alpha : float
        Orders are declared as long as all are right together with probability ``1 - alpha / 2``:
        two identical systems are separated in about a share `alpha` of evaluations.
    contrast : mapping {system: weight}, optional
        In place of pairs, one sum of systems times weights: ``{"new": 1, "old": -1}`` is their
        difference, ``{"new-hard": 1, "old-hard": -1, "new-easy": -1, "old-easy": 1}`` a difference
        of differences, ``{"a": 0.5, "b": 0.5, "c": -1}`` what two systems are ahead of a third by
        on average.

    Returns
    -------
    xarray.DataTree
        The result with three groups. ``comparison`` holds every metric with dims ``(system, other,
        [k], [tau], target, contrast)``, contrasts of ``system`` minus ``other``: mean, sd, interval
        (as in the result), probability that ``system`` is better (``prob_greater``, with half the
        probability of a tie), of a tie (``prob_tie``), of a difference below (``system`` is worse),
        inside and above the ROPE (``system`` is better), expected loss of choosing ``system``,
        the standard error of ``prob_greater``, the sd had the questions not been paired, the two
        means, the ends of a band that contains the curve of differences over k with the interval's
        probability, and whether the order is declared (1 or 0); and ``shared_questions(system,
        other)``. ``ranks`` holds the probability of every rank (1 is best), dims ``(system, rank,
        ..., target)``; ``tiers`` the tier of every system (1 is best). Of questions in
        groups there is also ``group_comparison``, the contrasts on every group. With `contrast`
        there is the group ``contrast`` in their place, which ``bayesatk.table(found, "contrast")``
        shows: a row for each metric and target.

    Raises
    ------
    ValueError
        If there are fewer than two systems, no two tried the same question, or a contrast names a
        system that the result does not have.

    See Also
    --------
    bayesatk.table : the differences in words and numbers, ``bayesatk.table(fit, "comparison")``.
    bayesatk.leaderboard : all systems in one table.
    bayesatk.plots.plot_difference : their distributions.
    bayesatk.plots.plot_ranks : the probabilities of ranks.

    Notes
    -----
    Everything is worked out from the draws in the group ``joint_posterior`` of the result (of a
    sampled result, ``posterior``): a difference there has the mean, sd and interval that are said
    of it here, and ``mean_system`` and ``mean_other`` are the means that `bayesatk.table` shows. In
    these draws every system has its own posterior.

    * *These questions*: systems that tried all of them are independent given the data. A question
      that a system did not try is taken to be like those that it tried; the errors of two systems
      by this move together, mostly in opposite directions (docs/leaderboards.md).
    * *Questions like these* and, of questions in groups, *new groups*: systems answer the same
      questions, so that their means move together. How far they do is what the unbiased values of
      the metric by question say, with the uncertainty of so many questions (docs/leaderboards.md).

    Standard errors of probabilities are those of the draws; evaluate with more ``draws`` for
    smaller ones.

    Ranks, tiers and declared orders of three systems or more come from the same draws after these
    are shrunk towards each other, because the best of many similar systems is partly lucky. Orders
    are declared one after the other, the surest first, as long as all of them are right together
    with probability ``1 - alpha / 2`` or more. A tier ends where the next system is declared worse
    than one of it.

    Of scores of which lower ones are better (``better="lower"`` of `bayesatk.tally`) a system is
    better where its metric is lower. Differences and their intervals stay those of the metric, in
    its units; ``prob_greater``, ``prob_above_rope`` and ``expected_loss`` are about which system is
    better.

    Differences below 2**-40 of the scale count as ties. ``prob_greater`` of (a, b) and of (b, a)
    add up to 1, and ``prob_greater - prob_tie / 2`` is the probability of a difference that is not
    a tie. Tied systems share ranks equally.

    Systems may lack questions (``shared_questions`` counts those that both tried; two that share
    none have no contrasts). Each has its posterior from the questions that it tried, as if those
    that it lacks were like them. No order is declared of two of which one scored otherwise on what
    the other tried than on what it did not try (p < 0.05, by permutations).

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "mean", pooling="none", rng=1)
    >>> found = compare(fit)["comparison"]["mean"].sel(system="a", other="b")
    >>> exact = found.sel(target="questions")
    >>> round(float(exact.sel(contrast="mean")), 6)  # 5/6 - 1/2
    0.333333
    >>> float(exact.sel(contrast="prob_greater")) > 0.999
    True
    """
    result = comparable(fit, rope, alpha)
    settings, values = settings_of(result, float(rope)), joint_draws(result)
    if contrast is not None:
        group = contrast_group(result, contrast, values, settings)
        return with_analysis(result.tree, "contrast", contrast=group)
    standings = Standings.of(result, values, alpha)
    table = pair_contrasts(result.grid, values, standings.declared, settings)
    tried = (result.trials > 0).astype(int)
    shared = tried @ tried.T
    table[(shared == 0) & ~np.eye(len(shared), dtype=bool)] = np.nan
    groups = _groups(result, table, standings)
    groups["comparison"]["shared_questions"] = ("system", "other"), shared
    if result.grouping is not None and result.tabulated:
        groups["group_comparison"] = _group_differences(result, float(rope))
    attrs = {"rope": float(rope), "alpha": alpha, "effective_draws": settings.effective}
    groups = {name: group.assign_attrs(attrs) for name, group in groups.items()}
    return with_analysis(result.tree, "comparison", **groups)


def comparable(fit: Fit, rope: float = 0.0, alpha: float = 0.05) -> Result:
    """Return the result, if the options of a comparison are within their ranges."""
    result = Result.of(fit)
    if not rope >= 0.0:
        rule = f" must be 0 or more (the half-width of no difference); got {rope}."
        raise ArgumentError("rope", rule)
    proper_probability("alpha", alpha)
    result.require("compare")
    check_difference(result, "rope", rope)
    check_systems(result)
    return result


def check_difference(fit: Result, name: str, value: float) -> None:
    """Refuse a difference that no two systems can have."""
    largest = float(np.ptp(fit.scale.scores))
    if value >= largest > 0.0:
        raise ArgumentError(
            name,
            f" must be smaller than {largest:g}, the largest difference that there can be; "
            f"got {value:g}. Try ",
            Argument(name, float(f"{0.02 * largest:.2g}")),
            ".",
        )


def _group_differences(fit: Result, rope: float) -> xr.Dataset:
    """Return contrasts of every pair of systems on every group of questions."""
    grid, labels = fit.grid, fit.grouping.labels if fit.grouping else []
    by_group, settings = joint_group_draws(fit), settings_of(fit, rope)
    size = len(fit.systems)
    none = np.zeros((len(TARGETS), len(grid), size, size), bool)
    table = np.stack([pair_contrasts(grid, values, none, settings) for values in by_group])
    coords = {
        **grid.coords,
        "group": labels,
        "system": fit.systems,
        "other": fit.systems,
        "target": list(TARGETS),
        "contrast": list(CONTRASTS),
    }
    variables = grid.split(table, ("group", "system", "other"), ("target", "contrast"))
    return xr.Dataset(variables, coords).drop_sel(contrast=["band_lower", "band_upper", "declared"])


def _groups(fit: Result, table: Array, standings: Standings) -> dict[str, xr.Dataset]:
    """Return the groups ``comparison``, ``ranks`` and ``tiers``."""
    grid, systems = fit.grid, fit.posterior["system"].values
    coords = {**grid.coords, "system": systems, "target": list(fit.targets)}
    places = {"rank": np.arange(1, len(systems) + 1)}
    pairs = {"other": systems, "contrast": list(CONTRASTS)}
    pair_dims = ("system", "other"), ("target", "contrast")
    ranks, tiers = (
        standings.ranks.transpose(2, 3, 1, 0),
        standings.tiers.transpose(2, 1, 0).astype(float),
    )
    return {
        "comparison": xr.Dataset(grid.split(table, *pair_dims), coords | pairs),
        "ranks": xr.Dataset(grid.split(ranks, ("system", "rank"), ("target",)), coords | places),
        "tiers": xr.Dataset(grid.split(tiers, ("system",), ("target",)), coords).astype(np.int64),
    }


def comparison_table(
    fit: Fit,
    *,
    by: Literal["system", "group"] = "system",
    of: object = None,
    against: object = None,
) -> ShownTable:
    """Tabulate a comparison, as `bayesatk.table` describes it."""
    fit = Result.of(fit, "comparison")
    if by_groups(fit, by):
        return _group_rows(fit, chosen_pairs(fit, of, against))
    sentences = PairSentences(fit)
    shared, rows, pairs = sentences.shared, [], chosen_pairs(fit, of, against)
    if of is None and against is None:
        pairs = list(combinations(_best_first(fit), 2))
    for metric in fit.tabulated:
        for i, j in pairs:
            pair = sentences.of(metric, i, j)
            if np.isnan(pair.rows[0]["mean"]):
                continue
            systems = fit.systems[i], fit.systems[j]
            turned = sentences.rows(metric, j, i)
            for t, contrasts in enumerate(sentences.rows(metric, i, j)):
                target, led, sentence = fit.targets[t], pair.verdicts[t], pair.sentences[t]
                verdict = led if pair.i == i else TURNED.get(led, led)
                contrasts["declared"] += turned[t]["declared"]  # either order
                rows.append(
                    {
                        "system": systems[0],
                        "other": systems[1],
                        "metric": metric.label,
                        "target": target,
                        **contrasts,
                        "questions": int(shared[i, j]),
                        "verdict": verdict,
                        "sentence": sentence,
                    }
                )
    attrs = {"ci_prob": fit.ci_prob, **fit.group("comparison").attrs}
    attrs["end_error"] = _end_error(fit.ci_prob, attrs["effective_draws"])
    of_costs = list(cost_rows(fit, pairs, attrs["alpha"]))
    ratios = ["ratio_median", "ratio_lower", "ratio_upper"] * bool(fit.costs)
    columns = ["system", "other", "metric", "target", *CONTRASTS, *ratios]
    columns += ["questions", "verdict", "sentence"]
    on_all = []
    if len(pairs) > 1 and fit.tabulated:
        on_all = [sentences.tiers(fit.metrics[0], "population"), tier_rule(attrs["alpha"], True)]
    on_costs = [
        row["sentence"] for row in of_costs if row["target"] == "population" and len(pairs) <= 3
    ]
    by_group = (
        'Differences by group: bayesatk.table(compared, "group_comparison"); in the shell in -o '
        "FILE.json."
    )
    attrs["sentences"] = json.dumps(
        [
            *on_all,
            *on_costs,
            *[by_group] * fit.has("group_comparison"),
            *cost_sentences(fit),
            *noted(fit.notes_on()),
        ]
    )
    return ShownTable.of(pd.DataFrame(rows + of_costs, columns=columns), "comparison", **attrs)


def _end_error(ci_prob: float, draws: float) -> float:
    r"""Return the standard error of an end of an interval from draws, as a share of its width.

    That of a quantile is $\sqrt{q(1-q)/n}/f$ with the density $f$ there; of a normal distribution
    with $q = \Phi(-z)$ the width is $2z$ and $f = \phi(z)$.

    Examples
    --------
    >>> round(_end_error(0.95, 4000), 4)
    0.0108
    """
    tail = 0.5 * (1.0 - ci_prob)
    z = -ndtri(tail)
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return float(np.sqrt(tail * (1.0 - tail) / draws) / density / (2.0 * z))


def _best_first(fit: Result) -> list[int]:
    """Return the systems by their means in the first metric on these questions."""
    means = metric_values(fit.statistics, fit.metrics[0]).sel(statistic="mean", target="questions")
    return [*map(int, np.argsort(-fit.scale.direction * means.values, kind="stable"))]


def chosen_pairs(fit: Result, of: object, against: object) -> list[tuple[int, int]]:
    """Return the positions of systems of `of` and of `against`, every pair in one order."""
    first, second = (
        fit.positions(labels, name) for labels, name in ((of, "of"), (against, "against"))
    )
    pairs: dict[frozenset[int], tuple[int, int]] = {}
    for pair in product(first, second):
        if pair[0] != pair[1]:
            pairs.setdefault(frozenset(pair), pair)
    return list(pairs.values())


def _group_rows(fit: Result, pairs: Sequence[tuple[int, int]]) -> ShownTable:
    """Return a row for each pair, group, metric and target; the contrasts of `compare`."""
    data = Result.of(fit, "group_comparison").group("group_comparison")
    dims, rows = ("system", "other", "group", "target", "contrast"), []
    for metric in fit.metrics:
        values = metric_values(data, metric).transpose(*dims)
        labels = [values[dim].values.tolist() for dim in dims[2:]]
        for i, j in pairs:
            for (g, group), (t, target) in product(*map(enumerate, labels[:2])):
                row = {"system": fit.systems[i], "other": fit.systems[j], "group": group}
                numbers = zip(labels[2], values.values[i, j, g, t].tolist(), strict=True)
                rows.append(row | {"metric": metric.label, "target": target} | dict(numbers))
    attrs = {"ci_prob": fit.ci_prob, **data.attrs}
    return ShownTable.of(pd.DataFrame(rows), "group_comparison", **attrs)
