"""Which system is better, by how much, how surely: on these questions, on questions like these."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Rng
from bayesatk._tools.batches import in_batches
from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.joint.contrasts import CONTRASTS, Settings, tiers_of
from bayesatk.comparison.joint.draws import Subset, SystemSampler
from bayesatk.comparison.joint.paired import (
    by_group,
    declared_orders,
    pair_contrasts,
    paired_draws,
)
from bayesatk.comparison.joint.posterior import Joint, drawn_seed, joint_note, joint_posterior
from bayesatk.comparison.pairs.cost_rows import cost_rows
from bayesatk.comparison.pairs.verdicts import TURNED, PairSentences
from bayesatk.priors import LeaderboardPrior
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS, metric_values
from bayesatk.results.tables import by_groups, cost_sentences
from bayesatk.results.views import ShownTable


def compare(
    fit: Fit,
    *,
    rope: float = 0.0,
    alpha: float = 0.05,
    prior: LeaderboardPrior | None = None,
    rng: RandomSource = None,
    progress: bool | None = None,
    client: Any = None,
) -> xr.DataTree:
    """Compare every pair of systems of a result, and rank all systems.

    All probabilities are posterior: given the observed trials, over the success probabilities of
    the questions and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more, from `bayesatk.evaluate` or `bayesatk.sample`. A sampled result
        of votes, or without pooling and without ``keep=["p"]``, has no draws by question; all its
        systems must have tried all questions.
    rope : float
        Half-width of the region of practical equivalence, in units of the metric: differences
        within ``[-rope, rope]`` count as negligible.
    alpha : float
        Orders are declared as long as all are right together with probability ``1 - alpha / 2``:
        two identical systems are separated in about a share `alpha` of evaluations.
    prior : LeaderboardPrior, optional
        Of the model of all systems; default: ``LeaderboardPrior()``.
    rng : int, numpy.random.Generator or None
        Seed of the draws; None: 0, so that the same data have the same numbers.
    progress : bool, optional
        Show a progress bar. Default: after two seconds, if the output is a terminal.
    client : dask.distributed.Client, optional
        Compute posteriors of systems and blocks of pairs as tasks of this cluster. Results agree
        with those of a local run to rounding, as in `bayesatk.evaluate`.

    Returns
    -------
    xarray.DataTree
        The result with three groups. ``comparison`` holds every metric with dims ``(system, other,
        [k], [tau], target, contrast)``, contrasts of ``system`` minus ``other``: mean, sd, interval
        (as in the result), probability that ``system`` is better (``prob_greater``, with half the
        probability of a tie), of a tie (``prob_tie``), of a difference below (``system`` is worse),
        inside and above the ROPE (``system`` is better), expected loss of choosing ``system``,
        quantiles of the ratio, the standard error of ``prob_greater`` (of draws, weighted points or
        tables), the sd had the questions not been
        paired, the two means, the ends of a band that contains the curve of differences over k with
        the interval's probability (from joint draws), and whether the order is declared (1 or 0);
        and ``shared_questions(system, other)``. ``ranks`` holds the probability of every rank (1 is
        best), dims ``(system, rank, ..., target)``; ``tiers`` the tier of every system (1 is best).
        Of questions in groups there is also ``group_comparison``, the contrasts on every group.

    Raises
    ------
    ValueError
        If there are fewer than two systems, no two tried the same question, or a sampled result
        lacks the draws that are needed.

    See Also
    --------
    bayesatk.table : the differences in words and numbers, ``bayesatk.table(fit, "comparison")``.
    bayesatk.plots.plot_difference : their distributions.
    bayesatk.plots.plot_ranks : the probabilities of ranks.

    Notes
    -----
    Differences, ranks and declared orders come from the joint posterior of all systems, that of
    `bayesatk.leaderboard`: one model in which systems share the difficulty of questions, integrated
    by quadrature and importance sampling. Its standard errors are stated (about 0.01 for a
    probability of 1/2). The means that a difference rests on are ``mean_system`` and
    ``mean_other``; a note says where they differ by more than 0.2 sd from those that
    `bayesatk.table` shows, of each system alone.

    Orders are declared one after the other, the surest first, as long as all of them are right
    together with probability ``1 - alpha / 2`` or more. A tier ends where the next system is
    declared worse than one of it.

    Where a result declares something else than right and wrong, partial pooling and the default
    prior (groups, weights, covariates, scores, votes, a prior, another pooling), every system keeps
    its own posterior:

    * *These questions*: systems are independent given the data; differences, ratios and ranks are
      sums over quantiles of the exact posteriors (over draws, for a sampled result or scored
      categories). Means and sds are exact, probabilities right to 0.001 (those of ranks have a
      standard error of 0.0016 or less), and ends of intervals to a hundredth of the width.
    * *Questions like these* and, of questions in groups, *new groups*: systems answer the same
      questions, so their difficulties are correlated. Draws of two systems are reordered (Iman and
      Conover 1982) to have the rank correlation that follows from the covariance of the observed
      rates, corrected for the noise of trials (Spearman 1904): of rates within groups and, for new
      groups, of the means of groups. What partial pooling moves the means of all systems by, from
      these questions to others, is left out of differences as far as the difficulties are
      correlated: a mean difference is not exactly the difference of the means.

    Of scores of which lower ones are better (``better="lower"`` of `bayesatk.tally`) a system is
    better where its metric is lower. Differences, their intervals and ratios stay those of the
    metric, in its units; ``prob_greater``, ``prob_above_rope`` and ``expected_loss`` are about
    which system is better.

    Differences below 2**-40 of the scale count as ties. ``prob_greater`` of (a, b) and of (b, a)
    add up to 1, and ``prob_greater - prob_tie / 2`` is the probability of a difference that is not
    a tie. Tied systems share ranks equally. Systems with the same data have ``prob_greater``
    exactly 1/2. With the same `rng`, the order of the systems in the data does not change any
    number.

    Systems may lack questions (``shared_questions`` counts those that both tried). Systems that
    keep their own posterior are then compared in pairs on the questions that both tried, with
    posteriors computed from these alone (NaN for a pair that shares none), and ranked on the
    questions that all tried (NaN, and tier 0, if there are none). A result of
    `bayesatk.from_draws` has joint draws of all systems and questions, which are used as they are.

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
    return compared(fit, rope, alpha, prior, rng, progress, client)[0]


@one_thread()
@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def compared(
    fit: Fit, rope: float, alpha: float = 0.05,
    prior: LeaderboardPrior | None = None, rng: RandomSource = None,
    progress: bool | None = None, client: Any = None,
) -> tuple[xr.DataTree, Joint]:  # fmt: skip
    """Return what `compare` returns, and the joint draws that it is made of."""
    result = comparable(fit, rope, alpha)
    generator, seed = resolve_rng(0 if rng is None else rng)
    settings = Settings(result.ci_prob, result.ci_kind, float(rope))
    joint = joint_posterior(result, drawn_seed(generator), prior, progress, client)
    sampler = joint.sampler
    attrs = {"rope": float(rope), "seed": seed} | joint.attrs
    tree, grid, size = result.tree.copy(), result.grid, len(result.systems)
    table = np.zeros((size, size, len(grid), len(result.targets), len(CONTRASTS)))
    ranks = np.full((size, size, *table.shape[2:4]), np.nan)
    tiers = np.zeros(ranks.shape[1:])
    declared = np.zeros((*table.shape[2:4], size, size), bool)
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        if joint.drawn:
            places = np.argsort(joint.systems)  # in the draws
            orders = declared_orders(grid, joint.drawn, alpha)
            for cell, (target, drawn) in product(range(len(grid)), enumerate(joint.drawn)):
                ranks[:, :, cell, target] = drawn.ranks(cell)[places]
                order = drawn.order(cell)
                tiers[:, cell, target] = tiers_of(orders[cell, target], order)[places]
            declared = orders[:, :, places[:, None], places]
        if joint.whole:
            contrasts = pair_contrasts(grid, joint.drawn, orders, settings, client, progress)
            table = contrasts[places[:, None], places]
        else:
            run = partial(_row, result, sampler, drawn_seed(generator), declared, settings, alpha)
            for i, row in in_batches(run, range(size - 1), client, "Comparing", progress):
                table[i, i + 1 :], table[i + 1 :, i] = row
        if result.grouping is not None:
            differences = _group_differences(result, settings, sampler, generator)
            tree["group_comparison"] = xr.DataTree(differences.assign_attrs(attrs))
    groups = _groups(result, table, ranks, tiers)
    tried = (result.trials > 0).astype(int)
    groups["comparison"]["shared_questions"] = ("system", "other"), tried @ tried.T
    groups["comparison"].attrs["note"] = joint_note(result, joint, groups["comparison"])
    for name, group in groups.items():
        tree[name] = xr.DataTree(group.assign_attrs(attrs | {"alpha": alpha}))
    return tree, joint


def comparable(fit: Fit, rope: float = 0.0, alpha: float = 0.05) -> Result:
    """Return the result, if the options of a comparison are within their ranges."""
    result = Result.of(fit)
    if not rope >= 0.0:
        rule = f" must be 0 or more (the half-width of no difference); got {rope}."
        raise ArgumentError("rope", rule)
    proper_probability("alpha", alpha)
    result.require("compare")
    return result


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def _row(
    fit: Result, sampler: SystemSampler, seed: int, declared: Flags,
    settings: Settings, alpha: float, i: int,
) -> Array:  # fmt: skip
    """Compare a system with all that come later, (way round, other, cell, target, contrast).

    An order is declared only where it is among those of all systems on the questions of all.
    """
    later, tried = range(i + 1, len(fit.systems)), fit.trials > 0
    shape = 2, len(later), len(fit.grid), len(fit.targets), len(CONTRASTS)
    row = np.full(shape, np.nan)
    for j in later:
        both = tried[i] & tried[j]
        if both.any():
            # The same random numbers for every pair: two systems alike fare alike with a third.
            rng, subset = np.random.default_rng(seed), Subset.ordered(fit, [i, j], both)
            drawn, places = paired_draws(fit, subset, rng, sampler), np.array(subset.systems)
            orders = declared_orders(fit.grid, drawn, alpha)
            orders &= declared[:, :, places[:, None], places]
            pair = pair_contrasts(fit.grid, drawn, orders, settings)
            a, b = subset.systems.index(i), subset.systems.index(j)
            row[:, j - i - 1] = pair[a, b], pair[b, a]
    return row


def _group_differences(
    fit: Result, settings: Settings, sampler: SystemSampler, rng: Rng
) -> xr.Dataset:
    """Return contrasts of every pair of systems on every group of questions.

    Systems that lack a question of the data are NaN everywhere: their groups are not the same.
    """
    grid, labels = fit.grid, fit.grouping.labels if fit.grouping else []
    shape = len(labels), len(fit.systems), len(fit.systems), len(grid), len(TARGETS), len(CONTRASTS)
    table = np.full(shape, np.nan)
    if (fit.trials > 0).all():
        none = np.zeros((len(grid), len(TARGETS), *shape[1:3]), bool)
        drawn_by_group = by_group(fit, sampler, rng)
        table[:] = [pair_contrasts(grid, drawn, none, settings) for drawn in drawn_by_group]
    coords = {
        **grid.coords, "group": labels, "system": fit.systems, "other": fit.systems,
        "target": list(TARGETS), "contrast": list(CONTRASTS),
    }  # fmt: skip
    variables = grid.split(table, ("group", "system", "other"), ("target", "contrast"))
    return xr.Dataset(variables, coords).drop_sel(contrast=["band_lower", "band_upper", "declared"])


def _groups(fit: Result, table: Array, ranks: Array, tiers: Array) -> dict[str, xr.Dataset]:
    """Return the groups ``comparison``, ``ranks`` and ``tiers``."""
    grid, systems = fit.grid, fit.posterior["system"].values
    coords = {**grid.coords, "system": systems, "target": list(fit.targets)}
    places = {"rank": np.arange(1, len(systems) + 1)}
    pairs = {"other": systems, "contrast": list(CONTRASTS)}
    pair_dims = ("system", "other"), ("target", "contrast")
    return {
        "comparison": xr.Dataset(grid.split(table, *pair_dims), coords | pairs),
        "ranks": xr.Dataset(
            grid.split(ranks, ("system", "rank"), ("target",)), coords | places
        ),
        "tiers": xr.Dataset(
            grid.split(tiers, ("system",), ("target",)), coords
        ).astype(np.int64),
    }  # fmt: skip


def comparison_table(
    fit: Fit,
    *,
    by: Literal["system", "group"] = "system",
    of: object = None,
    against: object = None,
) -> pd.DataFrame:
    """Tabulate a comparison, as `bayesatk.table` describes it."""
    fit = Result.of(fit, "comparison")
    if by_groups(fit, by):
        return _group_rows(fit, chosen_pairs(fit, of, against))
    sentences = PairSentences(fit)
    shared, rows, pairs = sentences.shared, [], chosen_pairs(fit, of, against)
    if of is None and against is None:
        leading = (sentences.of(fit.metrics[0], i, j) for i, j in pairs)
        pairs = [(pair.i, pair.j) for pair in leading]
    for metric in fit.metrics:
        for i, j in pairs:
            pair = sentences.of(metric, i, j)
            if np.isnan(pair.rows[0]["mean"]):
                continue
            systems = fit.systems[i], fit.systems[j]
            for target, contrasts, led, sentence in zip(
                fit.targets, sentences.rows(metric, i, j), pair.verdicts, pair.sentences,
                strict=True,
            ):  # fmt: skip
                verdict = led if pair.i == i else TURNED.get(led, led)
                rows.append({
                    "system": systems[0], "other": systems[1], "metric": metric.label,
                    "target": target, **contrasts, "questions": int(shared[i, j]),
                    "verdict": verdict, "sentence": sentence,
                })  # fmt: skip
    attrs = {"ci_prob": fit.ci_prob, **fit.group("comparison").attrs}
    rows += cost_rows(fit, pairs, attrs["alpha"])
    columns = ["system", "other", "metric", "target", *CONTRASTS]
    columns += ["questions", "verdict", "sentence"]
    attrs["sentences"] = json.dumps(cost_sentences(fit))
    return ShownTable.of(pd.DataFrame(rows, columns=columns), "comparison", **attrs)


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


def _group_rows(fit: Result, pairs: Sequence[tuple[int, int]]) -> pd.DataFrame:
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
