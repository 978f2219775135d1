"""At which value of a covariate a metric crosses a level: the horizon of a system."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array, Flags
from bayesatk._tools.messages import ArgumentError, proper_probability, real_number
from bayesatk._tools.words import probability_words
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.data.validation import shown
from bayesatk.metrics.grid import Metric, one_metric
from bayesatk.results.predictions import curve_of, refuse_votes, regression_design
from bayesatk.results.result import Fit, Result
from bayesatk.results.views import ShownTable

LOGIT_MAX = 100.0  # beyond which no level is looked for
BISECTIONS = 60  # of an interval of logits: to 2e-16 of its width
MIN_PROB_NONE = 0.005  # probability from which a sentence says that there may be no horizon


def horizon(
    fit: Fit,
    covariate: str,
    metric: str | Metric = "pass@1",
    level: float = 0.5,
    *,
    at: Mapping[str, Any] | None = None,
    ci_prob: float | None = None,
) -> pd.DataFrame:
    """Find the value of a covariate at which the average metric crosses a level, for every system.

    An example is METR's time horizon (Kwa et al. 2025): the task length at which the success rate
    of new questions has fallen to 50%. Here it has a posterior, given the observed trials.

    Parameters
    ----------
    fit : xarray.DataTree
        With covariates, from `bayesatk.evaluate` or `bayesatk.sample`.
    covariate : str
        A numeric covariate. For lengths of tasks its logarithm is usual, a column of its own.
    metric : str or Metric
        One metric of right and wrong, at any k; of scored categories one of scores.
    level : float
        Value of the metric that is crossed, strictly between its smallest and largest value.
    at : mapping {covariate: value}, optional
        Values of other covariates. Those that are not named have the average of their columns over
        the questions.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; default: that of the result.

    Returns
    -------
    pandas.DataFrame
        A row for each system: the posterior ``median`` of the horizon with ``ci_lower`` and
        ``ci_upper``; ``prob_none``, the probability that the curve does not cross the level in this
        direction; ``prob_outside``, the probability that the horizon is outside the range of the
        covariate in the data (no crossing included); and a ``sentence``.

    Raises
    ------
    ValueError
        If the result has no such covariate, or the metric does not rise with success.

    See Also
    --------
    bayesatk.predict : the metric at given values.

    Notes
    -----
    The curve is that of the *average* question of `bayesatk.predict`. In every draw logits are a
    line ``a + b x`` along the covariate x, and the metric rises with the logit, so that it has the
    level at one logit c, and ``x = (c - a) / b``, as in Fieller's problem (1954, J. R. Statist.
    Soc. B 16, 175-185). Metrics are taken to fall along the covariate, for all systems, unless they
    rise with posterior probability `ci_prob`; a draw whose slope has the other sign, or whose
    metric never has the level, has no crossing. As a slope goes to 0 a crossing goes to infinity:
    such a draw therefore counts as beyond all values, on the side where a question with the mean
    covariate is above or below the level, and ends of intervals can be infinite.

    Examples
    --------
    >>> import bayesatk
    >>> size = [1, 2, 3, 4, 5, 6] * 6
    >>> runs = bayesatk.tally([[x < 4, x < 3, x < 5] for x in size], covariates={"size": size})
    >>> fit = bayesatk.evaluate(runs, "pass@1", covariates=["size"], rng=1)
    >>> row = bayesatk.decide.horizon(fit, "size").iloc[0]
    >>> bool(3.0 < row["median"] < 4.0), float(row["prob_none"])
    (True, 0.0)
    """
    result = Result.of(fit)
    observed, columns = _line(result, covariate, at)
    parsed_metric = _checked(result, metric, level)
    ci_prob = result.ci_prob if ci_prob is None else proper_probability("ci_prob", ci_prob, 0.95)
    curves = [curve_of(result, system) for system in range(len(result.systems))]
    lines = [(b @ columns[0], b @ (columns[1] - columns[0])) for b, _ in curves]
    falls = bool(np.mean([slope > 0.0 for _, slope in lines]) < ci_prob)
    tail, rows = 0.5 * (1.0 - ci_prob), []
    for name, (start, slope), (_, curve) in zip(result.systems, lines, curves, strict=True):
        needed = _logit_of_level(curve.average(parsed_metric), level, len(start))
        values, none = _crossings(start, slope, needed, falls, float(observed.mean()))
        outside = (values < observed.min()) | (values > observed.max())
        row = {
            "system": name,
            "median": float(np.quantile(values, 0.5, method="nearest")),
            "ci_lower": float(np.quantile(values, tail, method="lower")),
            "ci_upper": float(np.quantile(values, 1.0 - tail, method="higher")),
            "prob_none": float(none.mean()),
            "prob_outside": float(outside.mean()),
        }
        verb = "fall" if falls else "rise"
        subject = f"{named(name)}: {parsed_metric.label} of an average question"
        if np.isinf(row["median"]):
            crossing = f"{subject} does not {verb} to {level:g} at any {covariate}"
        else:
            crossing = f"{subject} {verb}s to {level:g} at {covariate} = {row['median']:.3g}"
        rows.append(row | {"sentence": crossing + _certainty(row, observed, ci_prob)})
    return ShownTable.of(rows, "horizon", ci_prob=ci_prob)


def _line(result: Result, covariate: str, at: Mapping[str, Any] | None) -> tuple[Array, Array]:
    """Return the values of the covariate in the data, and the design's columns at 0 and at 1."""
    design = regression_design(result)
    frame = design.frame.select_dtypes("number")
    if covariate not in frame:
        raise ArgumentError(
            "covariate",
            " must be a number that success depends on, one of "
            f"{', '.join(map(repr, frame)) or 'none'}; got {shown(covariate)}.",
        )
    fixed = {} if at is None else design.read_at(at)
    if covariate in fixed or any(len(values) != 1 for values in fixed.values()):
        rule = f" must have one value for each other covariate; got {shown(at)}."
        raise ArgumentError("at", rule)
    return frame[covariate].to_numpy(float), design.at({covariate: [0.0, 1.0], **fixed})[1]


def _checked(result: Result, metric: str | Metric, level: float) -> Metric:
    """Return one metric that rises with the success probability, and can have the level."""
    parsed_metric = one_metric(metric)
    refuse_votes(result, [parsed_metric])
    ends = result.scores if result.scale.axes else np.asarray(parsed_metric.credit.vector)
    if not result.scale.axes and ((np.diff(ends) < 0.0).any() or ends[-1] <= ends[0]):
        rule = (
            f" must rise with the success probability; {parsed_metric.label} does not. "
            "Try 'pass@1'."
        )
        raise ArgumentError("metric", rule)
    low, high = float(ends.min()), float(ends.max())
    if not low < real_number("level", level) < high:
        rule = f" must lie strictly between {low:g} and {high:g}; got {level:g}."
        raise ArgumentError("level", rule)
    return parsed_metric


def _logit_of_level(average: Callable[[Array], Array], level: float, draws: int) -> Array:
    """Logit of the covariates at which the average metric has the level, in each draw."""
    low, high = np.full(draws, -LOGIT_MAX), np.full(draws, LOGIT_MAX)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        reached: Flags = average(middle) >= level
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(0.5 * (low + high))


def _crossings(
    start: Array, slope: Array, needed: Array, falls: bool, centre: float
) -> tuple[Array, Flags]:
    """Return draws of the horizon, infinite without a crossing, and which have none."""
    none = (slope >= 0.0) if falls else (slope <= 0.0)
    none |= np.abs(needed) > LOGIT_MAX - 1.0
    above = start + slope * centre >= needed
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (needed - start) / slope
    return np.where(none, np.where(above == falls, np.inf, -np.inf), crossing), none


def _certainty(row: Mapping[str, Any], observed: Array, ci_prob: float) -> str:
    """Say how certain a horizon is, and whether it is outside the observed values."""
    median, ends = row["median"], (row["ci_lower"], row["ci_upper"])
    none, outside = (probability_words(row[name]) for name in ("prob_none", "prob_outside"))
    if np.isinf(median):
        return f", with probability {none}."
    low, high = (f"{end:.3g}".replace("inf", "infinity") for end in ends)
    text = f" ({100 * ci_prob:g}% interval {low} to {high})"
    if np.isinf(ends).all():
        text = f" (without a finite {100 * ci_prob:g}% interval)"
    if not observed.min() <= median <= observed.max():
        text += f", outside the observed values, {observed.min():.3g} to {observed.max():.3g}"
    elif row["prob_outside"] >= 0.5:
        text += f"; with probability {outside} it is not within the observed values"
    if row["prob_none"] >= MIN_PROB_NONE:
        text += f"; with probability {none} there is no such value"
    return text + "."
