"""Metrics of questions along covariates: the law of a result in every draw, moved in logits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import logit

from bayesatk._tools.arrays import PROBABILITY_CEILING, PROBABILITY_FLOOR, Array
from bayesatk._tools.messages import Argument, ArgumentError, proper_probability
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.data.design import CovariateDesign
from bayesatk.metrics.grid import MEAN_NAMES, Metric, MetricSpec, parse
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.result import Fit, Result

Question = Literal["average", "typical"]
QUESTIONS: tuple[Question, ...] = ("typical", "average")
_MEDIAN_STEPS = 20  # of medians of p, each of which costs a distribution function


def predict(
    fit: Fit,
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
    bayesatk.decide.horizon : the value of a covariate at which a metric crosses a level.

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
    result = Result.of(fit)
    design = regression_design(result)
    values = design.read_at(at)
    shown_metrics = result.judged if metrics is None else list(parse(metrics))
    refuse_votes(result, shown_metrics)
    level = result.ci_prob if ci_prob is None else ci_prob
    proper_probability("ci_prob", level, 0.95)
    frame, columns = design.at(values)
    tables = []
    for system, name in enumerate(result.systems):
        coefficients, curve = curve_of(result, system)
        x = coefficients @ columns.T
        for metric in shown_metrics:
            for question in questions_of(result):
                drawn = at_logits(metric, x, curve, question)
                names = {"metric": metric.label, "question": question}
                rows = frame.assign(**names, **statistics_of(drawn, level))
                rows.insert(0, "system", name)
                tables.append(rows)
    table = pd.concat(tables, ignore_index=True)
    table.attrs["ci_prob"] = level
    return table


def statistics_of(drawn: Array, probability: float) -> dict[str, Array]:
    """Return mean, sd and equal-tailed interval of draws, (draws, ...)."""
    tail = 0.5 * (1.0 - probability)
    lower, upper = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    return {
        "mean": drawn.mean(axis=0),
        "sd": drawn.std(axis=0, ddof=1),
        "ci_lower": lower,
        "ci_upper": upper,
    }


def regression_design(result: Result) -> CovariateDesign:
    """Return the covariates of a result, or refuse one without."""
    design = result.design
    if design is None:
        raise ArgumentError(
            "fit",
            " must have covariates; it was evaluated without. Name what success "
            "depends on, as in bayesatk.evaluate(data, metrics, ",
            Argument("covariates", ["minutes"]),
            ").",
        )
    return design


def refuse_votes(result: Result, metrics: Sequence[Metric]) -> None:
    """Refuse metrics that are no function of what the coefficients are about."""
    odd = [metric.label for metric in metrics if metric.voted]
    if result.scale.axes:
        odd += [metric.label for metric in metrics if metric.family.category is None]
        rule = f" must be of scores; got {', '.join(odd)}. Try 'mean'."
    else:
        odd += [metric.label for metric in metrics if metric.family.category is not None]
        odd = [label for label in odd if label not in MEAN_NAMES]
        rule = f" must be of right and wrong; got {', '.join(odd)}. Try 'pass@1'."
    if odd:
        raise ArgumentError("metrics", rule)


def questions_of(result: Result) -> tuple[Question, ...]:
    """Kinds of questions of a result: difficulties of scored questions have no median."""
    return ("average",) if result.scale.axes else QUESTIONS


def at_logits(metric: Metric, x: Array, curve: "Curve", question: Question) -> Array:
    """Metric of questions whose covariates give these logits; (draws, ...)."""
    if question == "average":
        return curve.average(metric)(x)
    return metric.latent(curve.median(x))


@dataclass(frozen=True)
class Curve:
    """Distribution of p of questions at logits, in every draw, those of all groups together.

    Parameters
    ----------
    laws : QuestionLaws
        Of questions at a logit of `centre`, whatever their group.
    centre : ndarray, shape (draws,)
    share : ndarray, shape (groups,)
    effect : ndarray, shape (draws, groups)
        What groups add to logits.
    """

    laws: QuestionLaws
    centre: Array
    share: Array
    effect: Array

    def _over_groups(self, value: Callable[[Array, Any], Array], x: Array) -> Array:
        """Mean over groups of a function of offsets (draws,) and of their columns, at logits x."""
        total = np.zeros(x.shape)
        for index in np.ndindex(x.shape[1:]):
            column = (slice(None), *index)
            for share, effect in zip(self.share, self.effect.T, strict=True):
                total[column] += share * value(x[column] - self.centre + effect, column)
        return total

    def average(self, metric: Metric) -> Callable[[Array], Array]:
        """Return the expected metric of a question as a function of logits (draws, ...)."""
        judged, levels = self.laws.study.scale.judged(metric), self.laws.levels
        if levels is not None:
            along = levels.expected_along(judged)
            return partial(self._over_groups, lambda offset, _: along(offset))
        return partial(
            self._over_groups, lambda offset, _: self.laws.moved(offset).expected(judged)
        )

    def betas(self, offset: Array) -> Nodes:
        """Return the law of p of right and wrong at an offset from the centre."""
        law = self.laws.moved(offset).difficulty
        assert law is not None
        return law

    def below(self, p: Array | float, x: Array) -> Array:
        """Probability that a question at logits (draws, ...) has at most this p."""
        at = np.broadcast_to(p, x.shape)

        def cdf(offset: Array, column: Any) -> Array:
            return self.betas(offset).cdf(at[column][:, None])[:, 0]

        return self._over_groups(cdf, x)

    def median(self, x: Array) -> Array:
        """Median of p at logits (draws, ...)."""
        low, high = np.zeros(x.shape), np.ones(x.shape)
        for _ in range(_MEDIAN_STEPS):
            middle = 0.5 * (low + high)
            enough = self.below(middle, x) >= 0.5
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return 0.5 * (low + high)


def curve_of(result: Result, system: int) -> tuple[Array, Curve]:
    """Draws of the coefficients of a system, and the law around the logit that they give.

    Returns
    -------
    coefficients : ndarray, shape (draws, coefficients)
    curve : Curve
    """
    coefficients = flat_draws(result.posterior["coefficients"], system)
    laws, grouping = result.laws(system), result.grouping
    share = np.ones(1) if grouping is None else grouping.shares(result.weight)
    none = np.zeros((len(coefficients), 1))
    effect, centre = none if laws.group_effect is None else laws.group_effect, none[:, 0]
    if laws.difficulty is not None and laws.levels is None:
        centre = logit(
            np.clip(laws.difficulty.overall()[0], PROBABILITY_FLOOR, PROBABILITY_CEILING)
        )
    return coefficients, Curve(laws, centre, share, effect)
