"""Which system is better, by how much, how surely: on these questions, on questions like these."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.comparison.contest import Contest, joint
from bayesatk.comparison.contrasts import CONTRASTS, Settings
from bayesatk.comparison.question_values import Part
from bayesatk.core.seeding import RandomSource, resolve_rng
from bayesatk.metrics import parse
from bayesatk.results import TARGETS, check_result, metric_grid, metric_values

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Findings:
    """Contrasts of pairs, probabilities of ranks, and tiers; as `Contest` returns them."""

    table: Array
    ranks: Array
    tiers: NDArray[np.int64]


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
        With two systems or more, from `bayesatk.evaluate` or `bayesatk.sample`. A sampled result
        of votes, or of pooling none without ``keep=["p"]``, has no draws by question: its systems
        must have tried all questions.
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
        probability (from joint draws); and ``shared_questions(system, other)``.
        ``ranks`` holds the probability of every rank (1 is best), dims ``(system, rank, ...,
        target)``; ``tiers`` the tier of every system (1 is best): between tiers every system above
        is ahead of every one below with probability 1 - alpha/2 or more.

    Raises
    ------
    ValueError
        If there are fewer than two systems, or a sampled result lacks the draws that it takes.

    Notes
    -----
    *These questions*: given the data, systems are independent; differences, ratios and ranks are
    integrals over the exact posteriors (of the draws, for a sampled result or scored categories).
    *Questions like these*: every system's own posterior is that of the result; without pooling, the
    Bayesian bootstrap (Rubin 1981) over its questions. The systems answer the same questions, so
    what is hard for one is hard for another: their draws are put in the order (Iman and Conover
    1982) of draws that share the difficulty, as far as the covariance of the observed rates,
    corrected for the noise of trials (Spearman 1904), says they do. That makes differences more
    certain than the difference of two intervals.

    Where systems lack questions, every pair is held against each other on the questions that both
    tried, their posteriors worked out from these alone (``shared_questions`` counts them; a pair
    that shares none is NaN), and ranks and tiers are on the questions that all tried (NaN, and tier
    0, if there is none). A result sampled with ``form="crossed"`` needs none of this: its draws are
    joint, and its systems inform each other on what one of them lacks.

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
    generator, seed = resolve_rng(rng)
    settings = Settings(float(fit.attrs["ci_prob"]), fit.attrs["ci_kind"], float(rope))
    trials = fit["constant_data"].to_dataset()["trials"].transpose("system", "question").values
    if len(trials) < 2:
        raise ValueError("fit must hold at least two systems to compare; got one.")
    tried = trials > 0
    if joint(fit) or tried.all():
        whole = Contest.of(fit, Part.whole(fit), generator)
        shared = np.full((len(trials), len(trials)), trials.shape[1])
        found = Findings(whole.table(settings), whole.ranks(), whole.tiers(alpha))
    else:
        shared = tried.astype(int) @ tried.astype(int).T
        found = _by_pairs(fit, tried, settings, alpha, generator)
    ranked = trials.shape[1] if joint(fit) else int(tried.all(axis=0).sum())
    attrs = {"rope": float(rope), "seed": seed, "ranked_on": ranked}
    result = fit.copy()
    for name, group in _groups(fit, found, shared, {**attrs, "alpha": alpha}).items():
        result[name] = xr.DataTree(group)
    return result


def _by_pairs(
    fit: xr.DataTree,
    tried: NDArray[np.bool_],
    settings: Settings,
    alpha: float,
    rng: np.random.Generator,
) -> Findings:
    """Hold every pair against each other on its own questions, and rank on those of all."""
    size, cells = len(tried), len(list(metric_grid(fit)))
    table = np.full((size, size, cells, len(TARGETS), len(CONTRASTS)), np.nan)
    for i, j in combinations(range(size), 2):
        both = tried[i] & tried[j]
        if both.any():
            pair = Contest.of(fit, Part([i, j], both), rng)
            table[np.ix_([i, j], [i, j])] = pair.table(settings)
    table[range(size), range(size)] = 0.0
    common = tried.all(axis=0)
    if not common.any():
        unknown = np.zeros((size, cells, len(TARGETS)), np.int64)
        return Findings(table, np.full((size, size, cells, len(TARGETS)), np.nan), unknown)
    contest = Contest.of(fit, Part(list(range(size)), common), rng)
    return Findings(table, contest.ranks(), contest.tiers(alpha))


def _groups(
    fit: xr.DataTree,
    found: Findings,
    shared: NDArray[np.int64],
    attrs: dict[str, object],
) -> dict[str, xr.Dataset]:
    """Return the groups ``comparison``, ``ranks`` and ``tiers``."""
    grid, systems = metric_grid(fit), fit["posterior"].to_dataset()["system"].values
    coords = {**grid.coords, "system": systems, "target": list(TARGETS)}
    pairs = {"other": systems, "contrast": list(CONTRASTS)}
    compared = xr.Dataset(
        grid.split(found.table, ("system", "other"), ("target", "contrast")),
        {**coords, **pairs},
        attrs,
    )
    places = {"rank": np.arange(1, len(systems) + 1)}
    return {
        "comparison": compared.assign(shared_questions=(("system", "other"), shared)),
        "ranks": xr.Dataset(
            grid.split(found.ranks, ("system", "rank"), ("target",)), {**coords, **places}, attrs
        ),
        "tiers": xr.Dataset(
            grid.split(found.tiers.astype(float), ("system",), ("target",)), coords, attrs
        ).astype(np.int64),
    }


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
        sure, by how much, and whether more questions or more trials would help. ``questions`` is
        the number that both tried; pairs that share none have no row.
    """
    check_result(result, "comparison")
    dataset = result["comparison"].to_dataset()
    systems = dataset["system"].values.tolist()
    shared = dataset["shared_questions"].values
    rows: list[dict[str, object]] = []
    ci_prob = float(result.attrs["ci_prob"])
    for metric, (i, j) in product(
        parse(str(result.attrs["metrics"])), combinations(range(len(systems)), 2)
    ):
        if not shared[i, j]:
            continue
        chosen = metric_values(dataset, metric)
        if float(chosen.isel(system=i, other=j).sel(target="questions", contrast="mean")) < 0:
            i, j = j, i
        pair = chosen.isel(system=i, other=j)
        names = {"system": systems[i], "other": systems[j], "metric": metric.label}
        partly = shared[i, j] < shared.max() or shared[i, j] < shared[[i, j], [i, j]].max()
        many = "question" if shared[i, j] == 1 else "questions"
        where = f" Of the {shared[i, j]} {many} that both tried." if partly else ""
        sds = pair.sel(contrast="sd").values
        for target in TARGETS:
            found = pair.sel(target=target).values.tolist()
            row = {**names, "target": target, **dict(zip(CONTRASTS, found, strict=True))}
            sentence = _sentence(row, ci_prob)
            if target == "population" and sds[1] > 0:
                sentence += _remedy(float(min(1.0, (sds[0] / sds[1]) ** 2)))
            rows.append({**row, "questions": int(shared[i, j]), "sentence": sentence + where})
    columns = ["system", "other", "metric", "target", *CONTRASTS, "questions", "sentence"]
    return pd.DataFrame(rows, columns=columns)


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
