"""`table`: the tables of a result by name: metrics, comparisons and other analyses."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.pairs.systems import comparison_table
from bayesatk.guessing.baseline import baseline_table
from bayesatk.posterior.metric_table import result_table
from bayesatk.results.result import Fit, Result, analysis_table, latest_table
from bayesatk.results.schema import ANALYSES
from bayesatk.results.tables import category_table, coefficient_table
from bayesatk.results.views import ShownTable
from bayesatk.verification.verify import Verification

_TABLES: dict[str, Callable[[Result], ShownTable]] = {
    "results": result_table,
    "categories": category_table,
    "coefficients": coefficient_table,
    **{name: partial(analysis_table, name=name) for name in ANALYSES},
    "groups": partial(result_table, by="group"),
    "group_comparison": partial(comparison_table, by="group"),
    "comparison": comparison_table,
    "random_baseline": baseline_table,
}


def table(
    fit: Fit,
    what: str | None = None,
    *,
    by: Literal["system", "group"] = "system",
    of: object = None,
    against: object = None,
) -> ShownTable:
    """Tabulate a result: its newest analysis, or else a row per system, metric and target.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` (exact statistics) or `bayesatk.sample` (statistics of the draws).
    what : str, optional
        Default: the analysis that was made last (`bayesatk.compare`, `bayesatk.leaderboard`, ...),
        or the metrics if there is none.
        ``"results"``: the metrics. ``"comparison"``, of `bayesatk.compare`: the differences. Both
        are described below. ``"contrast"``, ``"leaderboard"``, ``"gate"``, ``"plan"`` or
        ``"random_baseline"``: what an analysis added; the function that made it describes it.
        ``"categories"``, of scored categories: the probability that a trial reaches each score, or
        a better one, for every system from the best category to the worst, of at most 51.
        ``"coefficients"``, of covariates: in logits for each unit of the column.
    by : {"system", "group"}
        ``"group"``, for results and comparisons with groups: a row for each system (or pair),
        group, metric and target. The posterior of a group is partially pooled with the other
        groups, its ``estimate`` is from its trials alone, ``questions`` is its size. Differences of
        groups have no verdicts: among many groups some difference is always large, and the
        shrinkage of the groups towards each other corrects for that only in part.
    of, against : label or collection of labels, optional
        For ``"comparison"``: rows are differences of a system of `of` minus a system of `against`;
        default: all systems, in each pair first the system that leads in the first metric on these
        questions.

    Returns
    -------
    pandas.DataFrame
        Printing it shows the table with what its columns, targets and notes say.

        Results: columns ``system``, ``metric``, ``target`` (``"questions"``: these questions;
        ``"population"``: questions like these), ``estimate`` (unbiased, from k draws without
        replacement of the observed trials, the mean over the questions that have k trials; NaN
        where these are less than half), ``mean``, ``sd``, ``ci_lower`` and
        ``ci_upper`` of the posterior, and for closed forms ``variance_trial`` and
        ``variance_question``. Where some questions have fewer than k trials, ``estimate_questions``
        of ``tried_questions`` have them. Where less than half do, ``range_lower`` and
        ``range_upper`` are the range of `bayesatk.checks.extrapolation_range` at the confidence
        ``ci_prob``, which does not assume a family of difficulties.

        Comparison: a row for each pair, metric and target, in one order of the pair throughout, so
        that differences and bands can be drawn over k. Columns ``system``, ``other``, ``metric``,
        ``target``, the contrasts that `bayesatk.compare` describes, ``questions`` (the number that
        both tried; pairs that share none have no row), and ``verdict`` and ``sentence`` as
        `bayesatk.claim` has them, where ``verdict`` is about ``system`` (so also ``"behind"`` and
        ``"behind by more than the ROPE"``) and a sentence names the leader on these questions
        first.

    Raises
    ------
    ValueError
        If the result has no such table: the message says what makes it.

    See Also
    --------
    bayesatk.compare : the differences.
    bayesatk.claim : when a system is called ahead, or two practically equivalent.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@2", pooling="none", rng=1)
    >>> rows = bayesatk.table(fit)[["metric", "target", "estimate", "mean"]]
    >>> rows.iloc[0, 2:].astype(float).round(4).tolist()
    [0.95, 0.8393]

    The mean of a group with few trials is shrunk towards the other groups.

    >>> data = bayesatk.tally([[1, 1]] * 4 + [[0, 1]] * 4 + [[0, 0]], group=list("aaaabbbbc"))
    >>> fit = bayesatk.evaluate(data, "pass@1", group="group", rng=1)
    >>> rows = bayesatk.table(fit, by="group").query("target == 'questions'")
    >>> rows[["group", "questions", "estimate"]].values.tolist()
    [['a', 4, 1.0], ['b', 4, 0.5], ['c', 1, 0.0]]
    >>> bool(rows["mean"].iloc[2] > 0.15)
    True

    Two systems on the same questions:

    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.compare(bayesatk.evaluate(runs, "mean", pooling="none", rng=1))
    >>> rows = bayesatk.table(fit).query("target == 'questions'")
    >>> rows[["system", "other", "verdict"]].values.tolist(), rows["mean"].round(4).tolist()
    ([['a', 'b', 'ahead']], [0.3333])
    """
    result = Result.of(fit, None)
    name = latest_table(result.tree) if what is None else one_of("what", what, list(_TABLES))
    if name != "comparison" and (of is not None or against is not None):
        rule = f" and against must be left out but for 'comparison'; got what={name!r}."
        raise ArgumentError("of", rule)
    if name == "comparison":
        return comparison_table(result, by=by, of=of, against=against)
    if by == "group" and what is None:
        name = "results"
    return result_table(result, by) if name == "results" else _TABLES[name](result)


def names_of(fit: Result) -> list[str]:
    """Return the names of the tables that a result has."""
    evaluated = fit.has("posterior")
    of_model = {
        "results": evaluated,
        "categories": evaluated and "reach_probability" in fit.posterior,
        "coefficients": evaluated and fit.covariates is not None,
        "groups": fit.grouping is not None and bool(fit.tabulated),
    }
    return [name for name in _TABLES if of_model.get(name, fit.has(name))]


def tables_of(fit: Fit | Verification, *, questions: bool = False) -> dict[str, ShownTable]:
    """Return all tables of a result by name, with the table of questions if requested."""
    if isinstance(fit, Verification):
        return {"verification": ShownTable.of(fit.table, "verification")}
    fit = Result.of(fit, None)
    tables = {name: _TABLES[name](fit) for name in names_of(fit)}
    if questions:
        tables["questions"] = ShownTable.of(question_table(fit), "questions", ci_prob=fit.ci_prob)
    return tables
