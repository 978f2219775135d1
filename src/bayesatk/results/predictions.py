"""Metrics of questions with given covariates, from draws of the coefficients."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import betaincinv

from bayesatk._tools.arguments import proper_probability
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.design import Design
from bayesatk.metrics.grid import Metric, MetricSpec, parse
from bayesatk.results.curves import curve_of
from bayesatk.results.result import Result

Array = NDArray[np.float64]
Question = Literal["average", "typical"]
QUESTIONS: tuple[Question, ...] = ("typical", "average")
_POINT = 1e8  # sum of Beta parameters from which the median is the mean to all digits that count


def predict(
    fit: xr.DataTree | Result,
    at: Mapping[str, Any],
    metrics: MetricSpec | None = None,
    *,
    ci_prob: float | None = None,
) -> pd.DataFrame:
    """Predict metrics of new questions with given covariates.

    Questions with the same covariates still differ, so there are two predictions. *average*: the
    expected metric of a question drawn from those with these covariates. *typical*: the metric of
    the question with median difficulty among them.

    Parameters
    ----------
    fit : xarray.DataTree
        With covariates, from `bayesatk.evaluate` or `bayesatk.sample`.
    at : mapping {covariate: value or values}
        Every combination is predicted. Covariates that are not named have the average of their
        columns over the questions.
    metrics : str, Metric, or iterable of them, optional
        Default: those of the result. Any other metric of right and wrong, at any k, is possible.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; default: that of the result.

    Returns
    -------
    pandas.DataFrame
        One row per system, combination, metric and ``question`` ("typical", "average"): ``mean``,
        ``sd``, ``ci_lower`` and ``ci_upper`` of the posterior, from the draws of the result.

    Raises
    ------
    ValueError
        If the result has no covariates, or not these, or if a value is not possible for one.

    See Also
    --------
    bayesatk.horizon : the value of a covariate at which a metric crosses a level.

    Notes
    -----
    Given coefficients ``b`` and ``icc``, p is Beta with mean ``m = expit(x b)`` and parameters
    ``m (1 - icc)/icc`` and ``(1 - m)(1 - icc)/icc``. The average is ``E g(p)``, the typical value
    ``g(median of p)``. For pass@1 the average is m. Of other difficulty families covariates move
    the means of the Betas and leave the shares; questions of groups are of all groups with their
    weights, whose effects add to ``x b``. Scored categories have averages alone: a vector of
    probabilities has no median. The interval is a credible interval of these
    values, not a predictive interval of the observed score of a question.

    Examples
    --------
    >>> import bayesatk
    >>> runs = bayesatk.tally([[1, 1], [1, 0], [0, 0]] * 9, covariates={"size": [1, 2, 3] * 9})
    >>> fit = bayesatk.evaluate(runs, "pass@1", covariates=["size"], rng=1)
    >>> rows = bayesatk.predict(fit, {"size": [1, 3]}).query("question == 'average'")
    >>> (rows["mean"] > 0.5).tolist()
    [True, False]
    """
    own = Result.of(fit)
    design = regression_design(own)
    values = design.read_at(at)
    chosen = own.judged if metrics is None else list(parse(metrics))
    refuse_votes(own, chosen)
    level = own.ci_prob if ci_prob is None else ci_prob
    proper_probability("ci_prob", level, 0.95)
    frame, columns = design.at(values)
    rows = []
    for system, name in enumerate(own.systems):
        coefficients, curve = curve_of(own, system)
        x = coefficients @ columns.T
        for metric in chosen:
            for question in questions_of(own):
                drawn = at_logits(metric, x, curve, question)
                rows += _rows(frame, drawn, level, system=name, metric=metric.label, kind=question)
    found = pd.DataFrame(rows)
    order = ["system", *frame.columns, "metric", "question", "mean", "sd", "ci_lower", "ci_upper"]
    found = found[order]
    found.attrs["ci_prob"] = level
    return found


def _rows(
    frame: pd.DataFrame, drawn: Array, level: float, system: Any, metric: str, kind: str
) -> list[dict[str, Any]]:
    """Return a row for every combination, from draws (draws, combinations)."""
    ends = np.quantile(drawn, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
    mean, sd = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
    own = {"system": system, "metric": metric, "question": kind}
    numbers = {"mean": mean, "sd": sd, "ci_lower": ends[0], "ci_upper": ends[1]}
    return [
        own
        | {str(name): value for name, value in where.items()}
        | {name: float(values[i]) for name, values in numbers.items()}
        for i, where in enumerate(frame.to_dict("records"))
    ]


def regression_design(result: Result) -> Design:
    """Return the covariates of a result, or refuse one without."""
    design = result.design
    if design is None:
        raise ArgumentError(
            Argument("fit"), " must have covariates; it was evaluated without. Name what success "
            "depends on, as in bayesatk.evaluate(data, metrics, ",
            Argument("covariates", "~ log2(minutes)"), ").",
        )  # fmt: skip
    result.require("horizon")
    return design


def refuse_votes(result: Result, metrics: Sequence[Metric]) -> None:
    """Refuse metrics that are no function of what the coefficients are about."""
    odd = [one.label for one in metrics if one.voted]
    if result.scale.axes:
        odd += [one.label for one in metrics if one.family.category is None]
        rule = f" must be of scores; got {', '.join(odd)}. Try 'bayes'."
    else:
        odd += [one.label for one in metrics if one.family.category is not None]
        odd = [label for label in odd if label != "bayes"]
        rule = f" must be of right and wrong; got {', '.join(odd)}. Try 'pass@1'."
    if odd:
        raise ArgumentError(Argument("metrics"), rule)


def questions_of(result: Result) -> tuple[Question, ...]:
    """Kinds of questions of a result: difficulties of scored questions have no median."""
    return ("average",) if result.scale.axes else QUESTIONS


def at_logits(metric: Metric, x: Array, curve: Any, question: Question) -> Array:
    """Metric of questions whose covariates give these logits; (draws, ...)."""
    if question == "average":
        return np.asarray(curve.average(metric, x))
    if curve.simple:
        alpha, beta = (parameter[..., 0] for parameter in curve.betas(x))
        return np.asarray(metric.latent(beta_median(alpha, beta)))
    return np.asarray(metric.latent(curve.median(x)))


def beta_median(alpha: Array, beta: Array) -> Array:
    """Median of Beta distributions, however concentrated or spread.

    Examples
    --------
    >>> beta_median(np.array([1.0, 1e-200, 3e12]), np.array([1.0, 2e-200, 1e12])).tolist()
    [0.5, 0.0, 0.75]
    """
    alpha, beta = np.broadcast_arrays(alpha, beta)
    total = alpha + beta
    mean = alpha / total
    found = np.where(total < 1.0 / _POINT, (alpha > beta).astype(float), mean)
    inner = (total >= 1.0 / _POINT) & (total <= _POINT)
    found[inner] = betaincinv(alpha[inner], beta[inner], 0.5)
    return np.where(np.isfinite(found), found, mean)
