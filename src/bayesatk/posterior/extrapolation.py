"""The family-free range: what the counts alone say of a metric beyond the observed trials."""

import numpy as np
import pandas as pd

from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk.metrics.grid import Metric, MetricSpec, check_sizes, parse
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS
from bayesatk.results.selection import outcomes_of
from bayesatk.results.tables import family_free, weights_by_target, weights_of


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def extrapolation_range(
    data: object, metrics: MetricSpec, *, success: str | None = None, ci_prob: float = 0.95
) -> pd.DataFrame:
    """Bound a metric over all difficulty distributions that agree with the counts.

    n trials of a question identify the first n moments of the difficulty distribution only. A
    metric at k > n depends on higher moments too, which a parametric family assumes. This is the
    range of values without such an assumption.

    Parameters
    ----------
    data : result, Outcomes or anything `bayesatk.tally` accepts
        Outcomes of repeated trials; trials may differ between questions and systems. Of a result
        its data are used, and its groups with their weights.
    metrics : str, Metric, or iterable of them
        Of right and wrong, as in ``"pass@16,64 pass^8"``; any k.
    success : str, optional
        Which scores succeed, as in ``"score >= 0.5"``, on data with other scores.
    ci_prob : float
        Coverage probability of all ranges of a system and target together, strictly between 0 and
        1.

    Returns
    -------
    pandas.DataFrame
        One row per system, metric and target: ``lower``, ``upper``, ``ci_prob``, ``trials`` (the
        largest number of trials of a question that is used), and ``fits``: whether one difficulty
        distribution agrees with the counts at this confidence. If none does, there are two
        explanations. Either the trials of a question are not independent with the same probability
        of success (`check_trials`); then the range is that of the first higher confidence at
        which a distribution agrees, or 0 to 1. Or questions with few and with many trials differ
        in difficulty; then both targets have the range of these questions.

    Raises
    ------
    OutcomeError
        If the data cannot be read, or are not right and wrong.
    ValueError
        If a metric judges answers, or the confidence is outside its range.

    Notes
    -----
    The range is a conservative confidence interval, not a credible one. Whatever the
    difficulties, it holds the value of the metric with at least the stated probability: for
    ``population`` over which questions were sampled and how their trials came out, for
    ``questions`` over the trials alone. The coverage is simultaneous over all ranges of a system
    and target, so a whole curve of a metric over k lies between its ranges with that probability.

    Probabilities of counts are constrained to simultaneous Clopper-Pearson limits, and a linear
    programme finds the extremes [1]_. Up to k = n it is a nonparametric interval, one and a half to
    two times as wide as a separate interval; prefer `bayesatk.evaluate` there. Trials of a question
    must be independent, with the same success probability.

    Weights of questions, and of groups, count where they do in `bayesatk.evaluate`: for
    ``population`` those of questions only with covariates or ``population="bootstrap"``. Limits of
    weighted sums are wider: as if of as many questions as the largest weight goes into their sum
    (Bentkus 2004, Ann. Probab. 32, 1650-1673). For ``new_groups`` a group is one observation, so
    few groups leave a wide range.

    Cost: about 15 ms for a metric and system, whatever the number of questions.

    References
    ----------
    .. [1] Ignatiadis and Wager 2022, JASA 117, section 3 (F-localization), arXiv:1902.02774.

    See Also
    --------
    bayesatk.evaluate : intervals under a model of the difficulties.

    Examples
    --------
    Half of 400 questions are solved in both of two trials, the others in none.

    >>> solved = [[1, 1]] * 200 + [[0, 0]] * 200
    >>> rows = extrapolation_range(solved, "pass@2,64").query("target == 'population'")
    >>> rows[["metric", "lower", "upper"]].round(2).values.tolist()
    [['pass@2', 0.44, 0.56], ['pass@64', 0.44, 0.81]]
    """
    proper_probability("ci_prob", ci_prob, 0.95)
    requested = _checked(metrics)
    outcomes = outcomes_of(data, "extrapolation_range", success)
    targets: tuple[str, ...] = TARGETS
    weights = weights_by_target(outcomes.weight, None)
    if isinstance(data, Fit):
        fit = Result.of(data, None)
        targets, weights = fit.targets, weights_of(fit)
    rows = []
    successes, trials = outcomes.successes.values, outcomes.trials.values
    for system, c, n in zip(outcomes.systems, successes, trials, strict=True):
        bounds = family_free(c, n, requested, ci_prob, weights)
        for i, j in np.ndindex(bounds.lower.shape):
            rows.append(
                {
                    "system": system,
                    "metric": requested[i].label,
                    "target": targets[j],
                    "lower": bounds.lower[i, j],
                    "upper": bounds.upper[i, j],
                    "ci_prob": ci_prob,
                    "trials": bounds.trials,
                    "fits": bounds.fits,
                }
            )
    return pd.DataFrame(rows)


def _checked(metrics: MetricSpec) -> tuple[Metric, ...]:
    """Return metrics that have a value for a probability of success."""
    requested = parse(metrics)
    voted = [metric.label for metric in requested if metric.voted]
    if voted:
        raise ArgumentError(
            "metrics",
            f" must judge right and wrong for a range; got {', '.join(voted)}, which "
            "is no function of marks alone. The strict majority of right marks is 'maj@k'.",
        )
    check_sizes(requested)
    return requested
