"""Leaderboards: all systems in one table, ranked by the joint draws of their posteriors."""

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.messages import ArgumentError
from bayesatk.comparison.pairs.systems import comparable
from bayesatk.comparison.pairs.together import Standings, effective_draws, joint_draws
from bayesatk.comparison.pairs.verdicts import PairSentences, tier_rule
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.observed import observed_value
from bayesatk.results.result import Fit, Result, analysis_group, with_analysis
from bayesatk.results.schema import metric_values
from bayesatk.results.tables import noted

_STATISTICS = ["mean", "sd", "ci_lower", "ci_upper"]


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def leaderboard(fit: Fit, *, alpha: float | None = None) -> xr.DataTree:
    """Rank systems by the joint draws of their posteriors, in every metric of the result.

    Probabilities are posterior: given the observed trials, over the unknown success probabilities
    and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more, from `bayesatk.evaluate`, `bayesatk.sample` or
        `bayesatk.compare`. Systems may lack questions.
    alpha : float, optional
        Orders are declared, the surest first, as long as all of them
        are right at the same time with posterior probability ``1 - alpha / 2`` or more. The half
        is there because either of two identical systems can come out ahead. Strictly between 0
        and 1; default: that of the comparison in the result, else 0.05.

    Returns
    -------
    xarray.DataTree
        The result with the group ``leaderboard``. ``bayesatk.table(board, "leaderboard")`` has a
        row for every metric, target and system, best first, with the columns ``observed`` (unbiased
        estimate from the trials that were run; with ``judge=``, of their marks as they are),
        ``mean``, ``sd``, ``ci_lower``, ``ci_upper`` (those of `bayesatk.table`), ``shrunk_mean``
        (that allows for the luck of the leader), ``prob_best``, ``prob_top3`` (ties are broken at
        random), ``rank``, ``rank_lower``, ``rank_upper`` (of an interval of ranks with the result's
        probability), ``tier``, ``questions`` and ``trials`` (that the system tried). The group has
        each of them as a variable, and ``separated(metric, target, system, other)``: 1 where
        `system` is declared better than `other`, and ``prob_rank(metric, target, system, place)``,
        the probability of every rank. The attribute ``effective_draws`` says how many independent
        draws are behind all probabilities.

    Raises
    ------
    ValueError
        If there are fewer than two systems, no two tried the same question, or the result has
        costs alone.

    See Also
    --------
    bayesatk.compare : differences of pairs of systems, by the same draws.
    bayesatk.claim : the sentence about its tiers.
    bayesatk.plots.plot_leaderboard, bayesatk.plots.plot_ranks : the table as a picture.

    Notes
    -----
    Means and intervals are those of every system's own posterior. Which is best, ranks and tiers
    come from the joint draws of all (see `bayesatk.compare`) after these are shrunk towards each
    other: systems are taken to be exchangeable, normal around a common mean, probabilities p as
    ``2 arcsin(sqrt(p))`` and scores as they are, with a spread that is integrated out. This
    corrects for the selection of the best of many (winner's curse). Of two systems nothing is
    shrunk.

    Probabilities of ranks are joint, so they need no further correction for the number of systems.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 9, "b": [[1, 0, 1, 0]] * 9, "c": [[0, 0, 1, 0]] * 9}
    >>> board = leaderboard(bayesatk.evaluate(runs, "pass@1", rng=1))
    >>> rows = bayesatk.table(board, "leaderboard").query("target == 'questions'")
    >>> rows[["system", "observed", "tier"]].values.tolist()
    [['a', 1.0, 1], ['b', 0.5, 2], ['c', 0.25, 3]]
    """
    result = Result.of(fit)
    if alpha is None:
        compared = result.group("comparison").attrs if result.has("comparison") else {}
        alpha = float(compared.get("alpha", 0.05))
    comparable(result, 0.0, alpha)
    if not result.tabulated:
        raise ArgumentError(
            "metrics",
            " of a leaderboard must be of scores, and the result has costs alone. Their "
            "pairs, the lower cost better, are those of `compare`: bayesatk compare, in Python "
            "bayesatk.compare(fit).",
        )
    standings = Standings.of(result, joint_draws(result), alpha)
    group = _group(result, standings, alpha)
    ranked = Result.of(with_analysis(result.tree, "leaderboard", leaderboard=group))
    sentences = [
        PairSentences(ranked).tiers(result.metrics[0], "population"),
        _legend(result, alpha),
        *noted(result.notes_on()),
    ]
    group = group.assign_attrs(sentences=json.dumps(sentences))
    return with_analysis(result.tree, "leaderboard", leaderboard=group)


def _group(fit: Result, standings: Standings, alpha: float) -> xr.Dataset:
    """Return the group ``leaderboard``: the table, and which orders are declared."""
    cells = [[*fit.grid].index(metric) for metric in fit.metrics]
    table = pd.DataFrame(
        [
            row
            for metric, cell in zip(fit.metrics, cells, strict=True)
            for target in range(len(fit.targets))
            for row in _rows(fit, standings, metric, cell, target)
        ]
    )
    keys, size = ["metric", "target", "system"], len(fit.systems)
    labels = {
        "metric": [metric.label for metric in fit.metrics],
        "target": fit.targets,
        "system": fit.systems,
    }
    attrs = {"alpha": alpha, "ci_prob": fit.ci_prob, "effective_draws": effective_draws(fit)}
    group = analysis_group(table, keys, attrs, labels=labels)
    separated, ranks = (
        np.swapaxes(values, 0, 1)[cells] for values in (standings.declared, standings.ranks)
    )
    group = group.assign(
        separated=((*keys, "other"), separated.astype(np.int8)),
        prob_rank=((*keys, "place"), ranks),
    )
    return group.assign_coords(other=group["system"].values, place=np.arange(1, size + 1))


def _rows(
    fit: Result, standings: Standings, metric: Metric, cell: int, target: int
) -> list[dict[str, Any]]:
    """Return a row per system, best first."""
    of_target = metric_values(fit.statistics, metric).isel(target=target)
    values = of_target.sel(statistic=_STATISTICS).transpose("system", "statistic").values
    cumulative = standings.ranks[target, cell].cumsum(axis=1)
    # The rank that is reached with a probability; a sum of shares may miss it by a rounding.
    ends = 1 + (cumulative[:, :, None] < np.array(fit.tails) - 1e-12).sum(axis=1)
    tried = fit.trials > 0
    return [
        {
            "system": fit.systems[i],
            "metric": metric.label,
            "target": fit.targets[target],
            "observed": observed_value(fit, i, metric),
            **dict(zip(_STATISTICS, values[i].tolist(), strict=True)),
            "shrunk_mean": float(standings.mean[target, cell, i]),
            "prob_best": cumulative[i, 0],
            "prob_top3": min(cumulative[i, :3][-1], 1.0),
            "rank": rank,
            "rank_lower": int(ends[i, 0]),
            "rank_upper": int(ends[i, 1]),
            "tier": int(standings.tiers[target, cell, i]),
            "questions": int(tried[i].sum()),
            "trials": int(fit.trials[i].sum()),
        }
        for rank, i in enumerate(standings.order[target, cell].tolist(), 1)
    ]


def _legend(fit: Result, alpha: float) -> str:
    """Explain the columns."""
    several = len(fit.systems) > 2
    return (
        tier_rule(alpha, several)
        + " P(best) and ranks are of the same draws, as is the shrunken mean." * several
        + " observed: by the marks; the rest is corrected for the judge." * (fit.judges is not None)
    )
