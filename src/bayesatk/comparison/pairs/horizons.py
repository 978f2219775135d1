"""At which value of a covariate a metric crosses a level: the horizon of a system."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import one_of, proper_probability, real_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.comparison.pairs.curve_scale import CurveScale
from bayesatk.comparison.pairs.horizon_tables import pair_rows, system_row
from bayesatk.comparison.pairs.pairing import correlated_order
from bayesatk.metrics.grid import Metric, parse
from bayesatk.results.predictions import (
    QUESTIONS,
    Question,
    at_logits,
    curve_of,
    question_scores,
    questions_of,
    refuse_votes,
    regression_design,
)
from bayesatk.results.result import Result

Array = NDArray[np.float64]
_STEPS = 60  # of bisection
_FARTHEST = 100.0  # logits between which a level is looked for
_CURVE = 40  # values of the covariate at which curves are drawn
_CURVE_OF_MIXTURE = 12  # the same of medians of mixtures, which cost more


@dataclass(frozen=True, eq=False)
class Horizon:
    """Posterior horizons of systems, made by `bayesatk.horizon`. Printing it gives sentences.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per system: posterior ``median`` of the horizon with ``ci_lower`` and ``ci_upper``,
        ``prob_none``, the probability that the curve does not cross the level in this direction;
        ``prob_outside``, the probability that the horizon is outside the range of the covariate in
        the data (no crossing included); and a ``sentence``.
    pairs : pandas.DataFrame
        One row per pair, the longer median first: ``difference`` and ``ratio`` of the horizons
        with intervals, ``prob_greater``, and a ``sentence``. A ratio is NaN where values below 0
        are possible.
    draws : xarray.DataArray
        Joint draws ``(draw, system)``; infinite, or the lowest value, without a crossing.
    curves, observed : pandas.DataFrame
        For `bayesatk.plots.plot_horizon`: the metric against the covariate by system, and observed
        rates of questions of about equal values.
    attrs : dict
        The arguments of `bayesatk.horizon`, the seed, and citation keys.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame
    draws: xr.DataArray
    curves: pd.DataFrame
    observed: pd.DataFrame
    attrs: dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "\n".join([*self.table["sentence"], *self.pairs.get("sentence", [])])

    __repr__ = __str__


def horizon(
    fit: xr.DataTree | Result,
    covariate: str,
    metric: str | Metric = "pass@1",
    level: float = 0.5,
    *,
    at: Mapping[str, Any] | None = None,
    question: Question = "average",
    ci_prob: float | None = None,
    rng: RandomSource = None,
) -> Horizon:
    """Find the value of a covariate at which a metric crosses a level, for every system.

    An example is METR's time horizon [1]_: the task length at which the success rate of new
    questions has fallen to 50%. Here it has a posterior, given the observed trials.

    Parameters
    ----------
    fit : xarray.DataTree
        With covariates, from `bayesatk.evaluate` or `bayesatk.sample`.
    covariate : str
        A numeric covariate with a single term in the formula, as in ``"~ log2(minutes) + domain"``.
    metric : str or Metric
        One metric of right and wrong, at any k; of scored categories one of scores.
    level : float
        Value of the metric that is crossed, strictly between its smallest and largest value.
    at : mapping {covariate: value}, optional
        Values of other covariates. Those that are not named have the average of their columns over
        the questions.
    question : {"average", "typical"}
        Among questions with the same covariates: the expected metric of a question, or the metric
        of the question with median difficulty, as in `bayesatk.predict`. For pass@1 and a level of
        one half both are the same.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; default: that of the result.
    rng : int, numpy.random.Generator or None
        Seed of the pairing of draws between systems.

    Returns
    -------
    Horizon

    Raises
    ------
    ValueError
        If the result has no such covariate, or the formula has several terms with it.

    See Also
    --------
    bayesatk.predict : the metric at given values.
    bayesatk.plots.plot_horizon : curves, and where they cross the level.

    Notes
    -----
    Given its coefficients a system has a monotone curve along the covariate, which crosses the
    level once. Draws of the coefficients give draws of the crossing: it is the root ``x`` of
    ``a + f(x) b = c``, as in Fieller's problem [2]_. Success is assumed to fall along the
    covariate, for all systems, unless it rises with posterior probability of at least `ci_prob`. A
    draw whose slope has the other sign has no crossing in that direction. As the slope goes to zero
    a crossing goes to infinity. Therefore a draw without a crossing counts as infinite if a
    question with average covariates is above the level, and as the lowest possible value if it is
    below. Ends of intervals can be infinite, or 0, if the data allow such values. The horizon of a
    covariate that is never negative is at least 0.

    Systems answer the same questions. The correlation of their errors is estimated from the
    products of both systems' scores (derivatives of the log-likelihood) question by question, as in
    seemingly unrelated estimation [3]_, and draws are reordered to have that rank correlation.

    References
    ----------
    .. [1] Kwa et al. 2025, Measuring AI ability to complete long tasks, arXiv:2503.14499.
    .. [2] Fieller 1954, Journal of the Royal Statistical Society B 16(2), 175-185.
    .. [3] Weesie 1999, Stata Technical Bulletin 52, 34-47.

    Examples
    --------
    >>> import bayesatk
    >>> size = [1, 2, 3, 4, 5, 6] * 6
    >>> runs = bayesatk.tally([[x < 4, x < 3, x < 5] for x in size], covariates={"size": size})
    >>> fit = bayesatk.evaluate(runs, "pass@1", covariates=["size"], rng=1)
    >>> row = bayesatk.horizon(fit, "size", rng=1).table.iloc[0]
    >>> bool(3.0 < row["median"] < 4.0), float(row["prob_none"])
    (True, 0.0)
    """
    own = Result.of(fit)
    one = _checked(own, metric, level)
    one_of("question", question, QUESTIONS)
    if question not in questions_of(own):
        rule = f" must be 'average' for scores, whose p has no median; got {question!r}."
        raise ArgumentError(Argument("question"), rule)
    probability = own.ci_prob if ci_prob is None else ci_prob
    proper_probability("ci_prob", probability, 0.95)
    generator, seed = resolve_rng(rng)
    scale = CurveScale.of(regression_design(own), covariate, at)
    falls = _falls(own, scale, probability)
    drawn = [_crossings(own, system, scale, one, level, question, falls) for system in _range(own)]
    joint = _paired(own, [each.values for each in drawn], generator)
    asked = {
        "covariate": covariate, "metric": one.label, "level": float(level), "question": question,
        "at": json.dumps({} if at is None else dict(at), default=str), "ci_prob": probability,
        "seed": seed, "citations": ["arXiv:2503.14499"],
    }  # fmt: skip
    pairs = zip(own.systems, drawn, strict=True)
    rows = [system_row(name, each.values, each.none, scale, asked, falls) for name, each in pairs]
    coords = {"draw": np.arange(len(joint)), "system": own.systems}
    return Horizon(
        pd.DataFrame(rows), pair_rows(own.systems, joint, scale, asked),
        xr.DataArray(joint, coords, ("draw", "system"), name="horizon"),
        _curves(own, scale, one, question, probability, at), _observed(own, covariate, one),
        asked,
    )  # fmt: skip


def _range(result: Result) -> range:
    return range(len(result.systems))


def _checked(result: Result, metric: str | Metric, level: float) -> Metric:
    """Return one metric that rises with the success probability, and can have the level."""
    found = list(parse(metric))
    if len(found) != 1:
        rule = f" must be one metric; got {metric!r:.80}. Try 'pass@1'."
        raise ArgumentError(Argument("metric"), rule)
    refuse_votes(result, found)
    (one,) = found
    if result.scale.axes:
        low, high = float(result.scores.min()), float(result.scores.max())
    else:
        vector = one.credit.vector
        low, high = float(vector[0]), float(vector[-1])
        if (np.diff(vector) < 0.0).any() or high <= low:
            rule = f" must rise with the success probability; {one.label} does not. Try 'pass@1'."
            raise ArgumentError(Argument("metric"), rule)
    number = real_number("level", level)
    if not low < number < high:
        rule = f" must lie strictly between {low:g} and {high:g}; got {number:g}."
        raise ArgumentError(Argument("level"), rule)
    return one


@dataclass(frozen=True)
class _Crossings:
    """Draws of one system's horizon.

    Parameters
    ----------
    values : ndarray, shape (draws,)
        The lowest value or infinity without a crossing.
    none : ndarray of bool, shape (draws,)
        Whether there is no crossing.
    """

    values: Array
    none: NDArray[np.bool_]


def _falls(result: Result, scale: CurveScale, sure: float) -> bool:
    """Whether metrics fall along the covariate: unless it is sure that they rise."""
    slopes = [curve_of(result, system)[0] @ scale.slope for system in _range(result)]
    return bool((np.concatenate(slopes) > 0.0).mean() < sure)


def _crossings(
    result: Result,
    system: int,
    scale: CurveScale,
    metric: Metric,
    level: float,
    question: Question,
    falls: bool,
) -> _Crossings:
    coefficients, curve = curve_of(result, system)
    start, slope = coefficients @ scale.start, coefficients @ scale.slope
    needed = _logit_of_level(metric, level, curve, len(start), question)
    none = slope >= 0.0 if falls else slope <= 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        place = (needed - start) / slope
    easy = start + scale.middle * slope >= needed
    beyond = np.where(easy == falls, np.inf, -np.inf)
    values = scale.values(np.where(none, beyond, place))
    lowest = scale.positive & (values <= 0.0)
    return _Crossings(values, none | np.isinf(values) | lowest)


def _logit_of_level(
    metric: Metric, level: float, curve: Any, draws: int, question: Question
) -> Array:
    """Logit of the covariates at which the metric has the level, in each draw."""
    low, high = np.full(draws, -_FARTHEST), np.full(draws, _FARTHEST)
    if question == "typical":
        p = _p_of_level(metric, level)

    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if question == "average":
            above = curve.average(metric, middle) >= level
        else:
            above = curve.below(p, middle) <= 0.5
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(0.5 * (low + high))


def _p_of_level(metric: Metric, level: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        above = float(np.asarray(metric.latent(np.array([middle])))[0]) >= level
        low, high = (low, middle) if above else (middle, high)
    return 0.5 * (low + high)


def _paired(result: Result, values: list[Array], rng: np.random.Generator) -> Array:
    """Joint draws (draws, systems), in an order in which systems err together."""
    stacked = np.stack(values, axis=1)
    if stacked.shape[1] == 1 or result.joint:
        return stacked
    influence = [
        _influence(result, system, np.arctan(_ranked(stacked[:, system])))
        for system in _range(result)
    ]
    own = np.stack(influence)
    product = own @ own.T
    size = np.sqrt(np.maximum(np.diag(product), 1e-300))
    return correlated_order(stacked, product / (size[:, None] * size), rng)


def _influence(result: Result, system: int, horizon: Array) -> Array:
    """Return how each question moves the horizon of a system, from ranks by draw."""
    centred = horizon - horizon.mean()
    if result.grouping is None and not result.scale.axes and "difficulty" not in result.tree:
        coefficients, curve = curve_of(result, system)
        theta = np.column_stack([coefficients, np.log(curve.ratio)])
        slope = (theta - theta.mean(axis=0)).T @ centred / len(theta)
        return np.asarray(question_scores(result, system, theta.mean(axis=0)) @ slope)
    if not result.has("log_likelihood"):
        raise ArgumentError(
            Argument("fit"), " must keep the likelihood of every question, by which horizons of "
            "several systems are paired; it was left out for its size. Evaluate the same data "
            "again with ", Argument("keep", ["log_likelihood"]), ".",
        )  # fmt: skip
    logs = result.group("log_likelihood")[result.scale.variable]
    by_question = logs.isel(system=system).transpose("chain", "draw", "question").values
    return np.asarray(centred @ by_question.reshape(len(centred), -1) / len(centred))


def _ranked(values: Array) -> Array:
    """Ranks from -1 to 1: infinite values have places too."""
    found = np.empty(len(values))
    found[np.argsort(values, kind="stable")] = np.linspace(-1.0, 1.0, len(values))
    return found


def _curves(
    result: Result, scale: CurveScale, metric: Metric, question: Question, probability: float,
    at: Mapping[str, Any] | None,
) -> pd.DataFrame:  # fmt: skip
    """Return the metric against the covariate, by system."""
    mixed = question == "typical" and not curve_of(result, 0)[1].simple
    values = scale.grid(_CURVE_OF_MIXTURE if mixed else _CURVE)
    tail = 0.5 * (1.0 - probability)
    design = regression_design(result)
    others = {} if at is None else design.read_at(at)
    _, columns = design.at({scale.covariate: values, **others})
    parts = []
    for system, name in enumerate(result.systems):
        coefficients, curve = curve_of(result, system)
        drawn = at_logits(metric, coefficients @ columns.T, curve, question)
        low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
        own = {"value": values, "mean": drawn.mean(axis=0), "ci_lower": low, "ci_upper": high}
        parts.append(pd.DataFrame({"system": [name] * len(values), **own}))
    return pd.concat(parts, ignore_index=True)


def _observed(result: Result, covariate: str, metric: Metric) -> pd.DataFrame:
    """Return observed success rates, or mean scores, of questions of about equal values.

    Of metrics of a single trial alone.
    """
    if metric.k != 1:
        return pd.DataFrame(columns=["system", "value", "rate", "questions"])
    result.require("horizon")
    values = np.asarray(result.of_questions[covariate], float)
    scores = result.scores if result.scale.axes else np.array([0.0, 1.0])
    order = np.argsort(values, kind="stable")
    bins = np.array_split(order, min(8, max(1, len(values) // 4)))
    rows = []
    for name, c, n in zip(result.systems, result.counts @ scores, result.trials, strict=True):
        for own in bins:
            tried = own[n[own] > 0]
            if len(tried):
                rate = float((c[tried] / n[tried]).mean())
                middle = float(np.median(values[tried]))
                rows.append(
                    {"system": name, "value": middle, "rate": rate, "questions": len(tried)}
                )
    return pd.DataFrame(rows)
