"""Which system is better, by how much, how surely: on these questions, on questions like these."""

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import proper_probability
from bayesatk._tools.batches import in_batches
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.pairs.contrasts import CONTRASTS, Settings
from bayesatk.comparison.pairs.groups import group_comparison_rows, group_differences
from bayesatk.comparison.pairs.pairwise import PairwiseComparison
from bayesatk.comparison.pairs.system_posteriors import Posteriors, Subset, data_keys
from bayesatk.comparison.pairs.verdicts import PairSentences
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values
from bayesatk.results.tables import by_groups

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Findings:
    """Contrasts of pairs, probabilities of ranks, and tiers, as from `PairwiseComparison`."""

    table: Array
    ranks: Array
    tiers: NDArray[np.int64]

    def reordered(self, order: NDArray[np.intp]) -> "Findings":
        """Return them for the systems in another order."""
        return Findings(self.table[np.ix_(order, order)], self.ranks[order], self.tiers[order])


@one_thread()
@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def compare(
    fit: xr.DataTree | Result,
    *,
    rope: float = 0.0,
    alpha: float = 0.05,
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
        Probability, over repeated evaluations, with which two identical systems may be put into
        different tiers.
    rng : int, numpy.random.Generator or None
        Seed of the draws for questions like these.
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
        probability of a tie), of a tie (``prob_tie``), of a difference below, inside and above the
        ROPE, expected loss of choosing ``system``, quantiles of the ratio, the standard error of
        ``prob_greater`` (of draws, weighted points or tables), the sd had the questions not been
        paired, and the ends of a band that contains the curve of differences over k with the
        interval's probability (from joint draws); and ``shared_questions(system, other)``.
        ``ranks`` holds the probability of every rank (1 is best), dims ``(system, rank, ...,
        target)``; ``tiers`` the tier of every system (1 is best): between tiers every system above
        is ahead of every one below with probability 1 - alpha/2 or more. Of questions in groups
        there is also ``group_comparison``, the contrasts on every group.

    Raises
    ------
    ValueError
        If there are fewer than two systems, or a sampled result lacks the draws that are needed.

    See Also
    --------
    bayesatk.comparison_table : the differences in words and numbers.
    bayesatk.plots.plot_difference : their distributions.
    bayesatk.plots.plot_ranks : the probabilities of ranks.

    Notes
    -----
    *These questions*: given the data, systems are independent; differences, ratios and ranks are
    integrals over the exact posteriors (of the draws, for a sampled result or scored categories).
    *Questions like these* and, of questions in groups, *new groups*: every system's own posterior
    is that of the result; without pooling, the Bayesian bootstrap (Rubin 1981) over its questions.
    The systems answer the same questions, so their difficulties are correlated. Draws of two
    systems are therefore reordered (Iman and Conover 1982) to have the rank correlation that
    follows from the covariance of the observed rates, corrected for the noise of trials (Spearman
    1904): of rates within groups and, for new groups, of the means of groups. Differences are then
    more certain than two separate intervals suggest. What partial pooling moves the means of all
    systems by, from these questions to others, is left out of differences as far as the
    difficulties are correlated: a mean difference is not exactly the difference of the means.

    Systems marked by the same judge (``judge=``) share its error rates in every draw, so most of
    the uncertainty about the judge cancels in their difference.

    Differences below 2**-40 of the scale count as ties. ``prob_greater`` of (a, b) and of (b, a)
    add up to 1, and ``prob_greater - prob_tie / 2`` is the probability of a difference that is not
    a tie. Tied systems share ranks equally. Systems with the same data have ``prob_greater``
    exactly 1/2. With the same `rng`, the order of the systems in the data does not change any
    number.

    If systems lack questions, every pair is compared on the questions that both tried, with
    posteriors computed from these alone (``shared_questions`` counts them; a pair that shares none
    is NaN). Ranks and tiers are on the questions that all systems tried (NaN, and tier 0, if there
    are none). A result sampled with ``form="crossed"`` has joint draws of all systems and
    questions, which are used as they are.

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
    own = Result.of(fit)
    if not rope >= 0.0:
        rule = f" must be 0 or more (the half-width of no difference); got {rope}."
        raise ArgumentError(Argument("rope"), rule)
    proper_probability("alpha", alpha)
    generator, seed = resolve_rng(rng)
    settings = Settings(own.ci_prob, own.ci_kind, float(rope))
    trials = own.trials
    if len(trials) < 2:
        raise ArgumentError(
            Argument("fit"), " must have at least two systems to compare; got one. Name them: ",
            Argument("source", {"a": "first.csv", "b": "second.csv"}, "load"), ".",
        )  # fmt: skip
    tried = trials > 0
    # In an order that their names and columns have no part in; the caller's comes back last.
    keys = data_keys(own, Subset.whole(own))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    posteriors = Posteriors(own, generator, progress)
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        if own.joint or tried.all():
            shared = np.full((len(trials), len(trials)), trials.shape[1])
            part = Subset(order, np.ones(trials.shape[1], bool))
            if not own.sampled and own.judges is None:
                posteriors.prepare(part, client)
            whole = PairwiseComparison.of(own, part, posteriors, generator)
            table = whole.table(settings, client, progress)
            found = Findings(table, whole.ranks(), whole.tiers(alpha))
        else:
            shared = tried.astype(int) @ tried.astype(int).T
            found = _by_pairs(own, tried, order, settings, alpha, posteriors, generator, client)
    ranked = trials.shape[1] if own.joint else int(tried.all(axis=0).sum())
    attrs = {"rope": float(rope), "seed": seed, "ranked_on": ranked}
    result = own.tree.copy()
    if own.grouping is not None:
        differences = group_differences(own, settings, posteriors, generator)
        result["group_comparison"] = xr.DataTree(differences.assign_attrs(attrs))
    found = found.reordered(np.argsort(order))
    for name, group in _groups(own, found, shared, {**attrs, "alpha": alpha}).items():
        result[name] = xr.DataTree(group)
    return result


def _by_pairs(
    fit: Result,
    tried: NDArray[np.bool_],
    order: list[int],
    settings: Settings,
    alpha: float,
    posteriors: Posteriors,
    rng: np.random.Generator,
    client: Any,
) -> Findings:
    """Compare every pair on its own questions, and rank on those of all; in the order given."""
    size, cells = len(tried), len(fit.grid)
    seed = int(rng.integers(2**63))
    table = np.full((size, size, cells, len(fit.targets), len(CONTRASTS)), np.nan)
    run = partial(_row, fit, tried[order], order, posteriors, seed, settings)
    for i, found in in_batches(run, range(size - 1), client, "Comparing", posteriors.progress):
        table[i, i + 1 :], table[i + 1 :, i] = found
    table[range(size), range(size)] = 0.0
    common = tried.all(axis=0)
    if not common.any():
        unknown = np.zeros((size, cells, len(fit.targets)), np.int64)
        return Findings(table, np.full((size, size, cells, len(fit.targets)), np.nan), unknown)
    compared = PairwiseComparison.of(fit, Subset(order, common), posteriors, rng)
    return Findings(table, compared.ranks(), compared.tiers(alpha))


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def _row(
    fit: Result,
    tried: NDArray[np.bool_],
    order: list[int],
    posteriors: Posteriors,
    seed: int,
    settings: Settings,
    i: int,
) -> Array:
    """Compare a system with all that come later, (way round, other, cell, target, contrast)."""
    size = len(order)
    found = np.full((2, size - i - 1, len(fit.grid), len(fit.targets), len(CONTRASTS)), np.nan)
    for j in range(i + 1, size):
        both = tried[i] & tried[j]
        if both.any():
            part = Subset([order[i], order[j]], both)
            # The same random numbers for every pair: two systems alike fare alike with a third.
            pair = PairwiseComparison.of(fit, part, posteriors, np.random.default_rng(seed))
            own = pair.table(settings)
            found[:, j - i - 1] = own[0, 1], own[1, 0]
    return found


def _groups(
    fit: Result,
    found: Findings,
    shared: NDArray[np.int64],
    attrs: dict[str, object],
) -> dict[str, xr.Dataset]:
    """Return the groups ``comparison``, ``ranks`` and ``tiers``."""
    grid, systems = fit.grid, fit.posterior["system"].values
    coords = {**grid.coords, "system": systems, "target": list(fit.targets)}
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


def comparison_table(
    result: xr.DataTree | Result, *, by: Literal["system", "group"] = "system"
) -> pd.DataFrame:
    """Tabulate a comparison: one row per pair (the better first), metric and target.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.compare`.
    by : {"system", "group"}
        ``"group"``, for a result with groups: a row for each pair (in the order of the result),
        group, metric and target. It has no verdicts: among many groups some difference is always
        large, and the shrinkage of the groups towards each other corrects for that only in part.

    Returns
    -------
    pandas.DataFrame
        Columns ``system``, ``other``, ``metric``, ``target``, the contrasts, ``questions`` (the
        number that both tried; pairs that share none have no row), and ``verdict`` and
        ``sentence`` as `bayesatk.claim` has them. Of data with ``missing="bounds"`` also
        ``mean_if_worst`` and ``mean_if_best``: the mean difference if every missing trial of
        ``system`` was wrong and of ``other`` right, and the reverse; NaN unless both have trials of
        all questions. On questions like these the mean moves as the means of the systems do, on
        these questions or on others, whichever is more.

    See Also
    --------
    bayesatk.compare : computes what the table shows.
    bayesatk.claim : when a system is called ahead, or two practically equivalent.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.compare(bayesatk.evaluate(runs, "bayes", pooling="none", rng=1), rng=1)
    >>> rows = comparison_table(fit).query("target == 'questions'")
    >>> rows[["system", "other", "verdict"]].values.tolist(), rows["mean"].round(4).tolist()
    ([['a', 'b', 'ahead']], [0.3333])
    """
    read = Result.of(result, "comparison")
    if by_groups(read, by):
        return group_comparison_rows(read)
    sentences = PairSentences(read)
    shared, rows = sentences.shared, []
    for metric in read.metrics:
        for i, j in combinations(range(len(read.systems)), 2):
            if not shared[i, j]:
                continue
            pair = sentences.of(metric, i, j)
            first = {
                "system": read.systems[pair.i], "other": read.systems[pair.j],
                "metric": metric.label,
            }  # fmt: skip
            said = zip(read.targets, pair.rows, pair.verdicts, pair.sentences, strict=True)
            for target, own, verdict, sentence in said:
                last = {"questions": int(shared[i, j]), "verdict": verdict, "sentence": sentence}
                if shared[i, j] == read.trials.shape[1]:  # else it is of other questions
                    both = read.systems[pair.i], read.systems[pair.j]
                    last |= _if_missing(read, metric, target, both, own["mean"])
                rows.append({**first, "target": target, **own, **last})
    columns = ["system", "other", "metric", "target", *CONTRASTS]
    columns += ["questions", "verdict", "sentence", *_ENDS * read.has("missing_bounds")]
    return pd.DataFrame(rows, columns=columns)


_ENDS = ("mean_if_worst", "mean_if_best")


def _if_missing(
    fit: Result, metric: Metric, target: str, systems: tuple[Any, Any], mean: float
) -> dict[str, float]:
    """Return the mean difference with missing trials all against the system, and all for it.

    What two systems share of the way from these questions to others is taken out of the difference
    on others (`bayesatk.comparison.pairs.pairing`), which so lies between those of their two means.
    """
    if not fit.has("missing_bounds"):
        return {}
    chosen = {"target": list(dict.fromkeys(("questions", target)))}
    known, ends = (
        metric_values(fit.group(name), metric).sel(chosen | {"statistic": "mean"})
        for name in ("closed_form", "missing_bounds")
    )
    wrong, right = (ends.sel(missing_trials=end) - known for end in ("wrong", "right"))
    one, other = systems
    worst = wrong.sel(system=one) - right.sel(system=other)
    best = right.sel(system=one) - wrong.sel(system=other)
    return dict(zip(_ENDS, (mean + float(worst.min()), mean + float(best.max())), strict=True))
