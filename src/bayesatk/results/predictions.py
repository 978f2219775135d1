"""Metrics of questions along covariates: the law of a result in every draw, moved in logits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, expit, log_softmax, logit

from bayesatk._tools.arguments import proper_probability
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.pooling.levels import LevelDraws
from bayesatk.core.question.dirichlet_multinomial import log_counts
from bayesatk.data.design import Design
from bayesatk.metrics.category_credit import Judged
from bayesatk.metrics.grid import Metric, MetricSpec, parse
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.result import Result

Array = NDArray[np.float64]
Question = Literal["average", "typical"]
QUESTIONS: tuple[Question, ...] = ("typical", "average")
_POINT = 1e8  # sum of Beta parameters from which the median is the mean to all digits that count
_MEDIAN_STEPS = 20  # of medians of p, each of which costs a distribution function
_LEAST, _MOST = 1e-300, 1e300  # of a Beta parameter
_LOGIT_STEP = 1e-4  # of differences, in logits


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
                lower, upper = np.quantile(
                    drawn, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0
                )
                rows = frame.assign(
                    metric=metric.label, question=question, mean=drawn.mean(axis=0),
                    sd=drawn.std(axis=0, ddof=1), ci_lower=lower, ci_upper=upper,
                )  # fmt: skip
                rows.insert(0, "system", name)
                tables.append(rows)
    table = pd.concat(tables, ignore_index=True)
    table.attrs["ci_prob"] = level
    return table


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
    odd = [metric.label for metric in metrics if not metric.of_marks]
    if result.scale.axes:
        odd += [metric.label for metric in metrics if metric.family.category is None]
        rule = f" must be of scores; got {', '.join(odd)}. Try 'bayes'."
    else:
        odd += [metric.label for metric in metrics if metric.family.category is not None]
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
    median = np.where(total < 1.0 / _POINT, (alpha > beta).astype(float), mean)
    inner = (total >= 1.0 / _POINT) & (total <= _POINT)
    median[inner] = betaincinv(alpha[inner], beta[inner], 0.5)
    return np.where(np.isfinite(median), median, mean)


class Curve(Protocol):
    """Distribution of p of questions at logits, in every draw."""

    def average(self, metric: Metric, x: Array) -> Array:
        """Return the expected metric of a question at logits (draws, ...)."""
        ...


@dataclass(frozen=True)
class RightWrongCurve:
    """Betas and atoms at 0 and 1, those of all groups together.

    Parameters
    ----------
    share, shift, ratio : ndarray, shape (draws, components)
        Of the Betas: ``shift`` is the logit of the mean less that of the whole law, and ``ratio``
        is icc / (1 - icc).
    never, always : ndarray, shape (draws,)
    """

    share: Array
    shift: Array
    ratio: Array
    never: Array
    always: Array

    @property
    def simple(self) -> bool:
        """Whether it is one Beta around the logit."""
        return self.share.shape[1] == 1 and not (self.shift.any() or self.never.any()
                                                 or self.always.any())  # fmt: skip

    def betas(self, x: Array) -> tuple[Array, Array]:
        """Parameters of the Betas at logits (draws, ...); (draws, ..., components)."""
        ones = (1,) * (x.ndim - 1)
        shift, ratio = (
            values.reshape(len(values), *ones, -1) for values in (self.shift, self.ratio)
        )
        moved = x[..., None] + shift
        alpha, beta = (np.clip(expit(logits) / ratio, _LEAST, _MOST) for logits in (moved, -moved))
        return alpha, beta

    def average(self, metric: Metric, x: Array) -> Array:
        """As of `Curve`."""
        ones, vector = (1,) * (x.ndim - 1), metric.credit.vector
        values = np.asarray(metric.predictive(*self.betas(x)))
        total = (self.share.reshape(len(x), *ones, -1) * values).sum(axis=-1)
        ends = self.never * vector[0] + self.always * vector[-1]
        return np.asarray(total + ends.reshape(len(x), *ones))

    def below(self, p: Array | float, x: Array) -> Array:
        """Probability that a question at logits (draws, ...) has at most this p."""
        alpha, beta = self.betas(x)
        ones = (1,) * (x.ndim - 1)
        at = np.broadcast_to(p, x.shape)[..., None]
        inside = self.share.reshape(len(x), *ones, -1) * _cdf(alpha, beta, at)
        whole = self.always.reshape(len(x), *ones) * (at[..., 0] >= 1.0)
        return np.asarray(inside.sum(axis=-1) + self.never.reshape(len(x), *ones) + whole)

    def median(self, x: Array) -> Array:
        """Median of p at logits (draws, ...)."""
        low, high = np.zeros(x.shape), np.ones(x.shape)
        for _ in range(_MEDIAN_STEPS):
            middle = 0.5 * (low + high)
            enough = self.below(middle, x) >= 0.5
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return 0.5 * (low + high)


def _cdf(alpha: Array, beta: Array, p: Array) -> Array:
    """Distribution function of Betas; of very narrow ones a step at the mean."""
    narrow = alpha + beta > 1e8
    step = (alpha <= p * (alpha + beta)).astype(float)
    values = betainc(np.where(narrow, 1.0, alpha), np.where(narrow, 1.0, beta), p)
    return np.where(narrow, step, values)


@dataclass(frozen=True)
class LevelCurve:
    """Levels of a score whose expected score has a law, those of all groups with their shares.

    Parameters
    ----------
    levels : LevelDraws
        At a logit of zero.
    share : ndarray, shape (groups,)
    effect : ndarray, shape (draws, groups)
    """

    levels: LevelDraws
    share: Array
    effect: Array

    def average(self, metric: Metric, x: Array) -> Array:
        """As of `Curve`."""
        expected, ones = self._expected(metric), (1,) * (x.ndim - 1)
        by_group = [expected(x + effect.reshape(len(x), *ones)) for effect in self.effect.T]
        return np.asarray(np.tensordot(self.share, np.array(by_group), axes=1))

    def _expected(self, metric: Metric) -> Callable[[Array], Array]:
        if metric.label not in self._along:
            judged = Judged(metric.category_credit, np.array(self.levels.scores))
            self._along[metric.label] = self.levels.expected_along(judged)
        return self._along[metric.label]

    @cached_property
    def _along(self) -> dict[str, Callable[[Array], Array]]:
        return {}


@dataclass(frozen=True)
class CategoryCurve:
    """Dirichlets whose means are tilted, those of all groups with their shares.

    Parameters
    ----------
    mean : ndarray, shape (draws, categories)
        At a logit of zero.
    ratio : ndarray, shape (draws,)
    share : ndarray, shape (groups,)
    effect : ndarray, shape (draws, groups)
    scores : ndarray, shape (categories,)
    """

    mean: Array
    ratio: Array
    share: Array
    effect: Array
    scores: Array

    def _means(self, x: Array) -> Array:
        """Mean vectors at logits (draws, ..., groups); one more axis, of categories."""
        scaled = (self.scores - self.scores.min()) / np.ptp(self.scores)
        logs = np.log(np.maximum(self.mean, _LEAST))
        logs = logs.reshape(len(x), *[1] * (x.ndim - 1), -1)
        return np.exp(log_softmax(logs + x[..., None] * scaled, axis=-1))

    def average(self, metric: Metric, x: Array) -> Array:
        """As of `Curve`."""
        ones = (1,) * (x.ndim - 1)
        means = self._means(x[..., None] + self.effect.reshape(len(x), *ones, -1))
        alpha = np.maximum(means / self.ratio.reshape(len(x), *ones, 1, 1), _LEAST)
        values = metric.category_credit.predictive(alpha.reshape(-1, len(self.scores)), self.scores)
        return np.asarray(values.reshape(means.shape[:-1]) @ self.share)


def curve_of(result: Result, system: int) -> tuple[Array, Any]:
    """Draws of the coefficients of a system, and the law around the logit that they give.

    Questions are of the groups of the result, with the weights of these.

    Returns
    -------
    coefficients : ndarray, shape (draws, coefficients)
    curve : RightWrongCurve, LevelCurve or CategoryCurve
    """
    coefficients = flat_draws(result.posterior["coefficients"], system)
    names = ("posterior", "difficulty")
    groups = {name: result.group(name) for name in names if result.has(name)}
    law, grouping, draws = (
        QuestionLaws.of_result(result.study, groups, system),
        result.grouping,
        len(coefficients),
    )
    share = np.ones(1) if grouping is None else grouping.shares(result.weight)
    effect = np.zeros((draws, 1)) if law.group_effect is None else law.group_effect
    difficulty = law.difficulty
    if law.levels is not None:
        return coefficients, LevelCurve(law.levels, share, effect)
    if difficulty is None:
        assert law.mean is not None
        assert law.icc is not None
        return coefficients, CategoryCurve(law.mean, _ratio(law.icc), share, effect, result.scores)
    centre = _logit(difficulty.overall[0])[:, None]
    shift = np.where(difficulty.share > 0.0, _logit(difficulty.mean) - centre, 0.0)
    return coefficients, RightWrongCurve(
        (share[:, None] * difficulty.share[:, None]).reshape(draws, -1),
        (effect[:, :, None] + shift[:, None]).reshape(draws, -1),
        np.tile(_ratio(difficulty.icc), effect.shape[1]), difficulty.never, difficulty.always,
    )  # fmt: skip


def _ratio(icc: Array) -> Array:
    """Return icc / (1 - icc), neither zero nor infinite."""
    return np.asarray(np.maximum(icc / np.maximum(1.0 - icc, 1.0 / _MOST), 1.0 / _MOST))


def _logit(p: Array) -> Array:
    return np.asarray(logit(np.clip(p, 1e-300, 1.0 - 1e-16)))


def question_scores(result: Result, system: int, theta: Array) -> Array:
    """Gradient of each question's log-likelihood, (questions, coefficients + 1).

    Parameters
    ----------
    result : Result
        With covariates.
    system : int
    theta : ndarray, shape (coefficients + 1,)
        Coefficients, and log(icc / (1 - icc)), at which it is taken, by differences.
    """
    design = result.design
    assert design is not None
    columns = np.column_stack([np.ones(len(design.frame)), design.columns(design.frame)])
    steps = _LOGIT_STEP * np.eye(len(theta)) / np.append(np.abs(columns).max(axis=0), 1.0)[:, None]

    def logs(at: Array) -> Array:
        x = columns @ at[:-1]
        mean = np.stack([expit(-x), expit(x)], axis=-1)
        return np.asarray(log_counts(result.counts[system], mean, np.exp(at[-1])))

    pairs = [(logs(theta + h) - logs(theta - h)) / (2.0 * h.max()) for h in steps]
    return np.stack(pairs, axis=1)
