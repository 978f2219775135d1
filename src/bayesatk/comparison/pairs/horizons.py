"""At which value of a covariate a metric crosses a level: the horizon of a system."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import expit

from bayesatk._tools.arrays import Array, Flags, Rng
from bayesatk._tools.messages import (
    ArgumentError,
    one_of,
    proper_probability,
    real_number,
)
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.comparison.joint.paired import correlated_order
from bayesatk.comparison.pairs.curve_scale import CurveScale, bisected
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.metrics.grid import Metric, parse
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.predictions import (
    QUESTIONS,
    Curve,
    Question,
    at_logits,
    curve_of,
    questions_of,
    refuse_votes,
    regression_design,
    statistics_of,
)
from bayesatk.results.result import Fit, Result, analysis_group, with_analyses

_LIKELY = 0.005  # probability from which a sentence says that there may be no horizon
_FARTHEST = 100.0  # logits between which a level is looked for
_CURVE = 40  # values of the covariate at which curves are drawn
_CURVE_OF_MIXTURE = 12  # the same of medians of mixtures, which cost more


def horizon(
    fit: Fit,
    covariate: str,
    metric: str | Metric = "pass@1",
    level: float = 0.5,
    *,
    at: Mapping[str, Any] | None = None,
    question: Question = "average",
    ci_prob: float | None = None,
    rng: RandomSource = None,
) -> xr.DataTree:
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
    xarray.DataTree
        The result with groups, each of which is a table (``bayesatk.table(tree, "horizon")``) and
        has its columns as variables:

        ``horizon``: by system, the posterior ``median`` of the horizon with ``ci_lower`` and
        ``ci_upper``; ``prob_none``, the probability that the curve does not cross the level in
        this direction; ``prob_outside``, the probability that the horizon is outside the range of
        the covariate in the data (no crossing included); and a ``sentence``. The group also has
        the joint ``draws(draw, system)``: infinite, or the lowest value, without a crossing.

        ``horizon_pairs``: by pair, the longer median first, ``difference`` and ``ratio`` of the
        horizons with intervals, ``prob_greater``, and a ``sentence``. A ratio is NaN where values
        below 0 are possible.

        ``horizon_curves``: the metric against the covariate, by system; ``horizon_observed``, for
        metrics of one trial: observed rates of questions of about equal values (``bin``).

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
    >>> row = bayesatk.table(bayesatk.decide.horizon(fit, "size", rng=1), "horizon").iloc[0]
    >>> bool(3.0 < row["median"] < 4.0), float(row["prob_none"])
    (True, 0.0)
    """
    result = Result.of(fit)
    parsed_metric = _checked(result, metric, level)
    one_of("question", question, QUESTIONS)
    if question not in questions_of(result):
        rule = f" must be 'average' for scores, whose p has no median; got {question!r}."
        raise ArgumentError("question", rule)
    probability = result.ci_prob if ci_prob is None else ci_prob
    proper_probability("ci_prob", probability, 0.95)
    generator, seed = resolve_rng(rng)
    scale = CurveScale.of(regression_design(result), covariate, at)
    falls = _falls(result, scale, probability)
    systems = range(len(result.systems))
    drawn = [
        _crossings(result, system, scale, parsed_metric, level, question, falls)
        for system in systems
    ]
    joint = _paired(result, [values for values, _ in drawn], generator)
    attrs = {
        "covariate": covariate, "metric": parsed_metric.label, "level": float(level),
        "question": question, "at": {} if at is None else dict(at),
        "ci_prob": probability, "seed": seed, "method": result.method,
        "citations": ["arXiv:2503.14499"],
    }  # fmt: skip
    rows = [
        _system_row(name, *crossings, scale, attrs, falls)
        for name, crossings in zip(result.systems, drawn, strict=True)
    ]
    labels = {"system": result.systems, "other": result.systems}
    groups = {"horizon": analysis_group(pd.DataFrame(rows), ["system"], attrs, labels=labels)}
    groups["horizon"] = groups["horizon"].assign(draws=(("draw", "system"), joint))
    curves = _curves(result, scale, parsed_metric, question, probability, at)
    for name, key, table in (
        ("pairs", "other", _pair_rows(result.systems, joint, scale, attrs)),
        ("curves", "value", curves),
        ("observed", "bin", _observed(result, covariate, parsed_metric)),
    ):
        if len(table):  # one system has no pairs
            groups[f"horizon_{name}"] = analysis_group(table, ["system", key], attrs, labels=labels)
    return with_analyses(result.tree, groups)


def _checked(result: Result, metric: str | Metric, level: float) -> Metric:
    """Return one metric that rises with the success probability, and can have the level."""
    metrics = list(parse(metric))
    if len(metrics) != 1:
        rule = f" must be one metric; got {metric!r:.80}. Try 'pass@1'."
        raise ArgumentError("metric", rule)
    refuse_votes(result, metrics)
    (asked_metric,) = metrics
    if result.scale.axes:
        low, high = float(result.scores.min()), float(result.scores.max())
    else:
        vector = asked_metric.credit.vector
        low, high = float(vector[0]), float(vector[-1])
        if (np.diff(vector) < 0.0).any() or high <= low:
            label = asked_metric.label
            rule = f" must rise with the success probability; {label} does not. Try 'pass@1'."
            raise ArgumentError("metric", rule)
    number = real_number("level", level)
    if not low < number < high:
        rule = f" must lie strictly between {low:g} and {high:g}; got {number:g}."
        raise ArgumentError("level", rule)
    return asked_metric


def _falls(result: Result, scale: CurveScale, sure: float) -> bool:
    """Whether metrics fall along the covariate: unless it is sure that they rise."""
    systems = range(len(result.systems))
    slopes = [curve_of(result, system)[0] @ scale.slope for system in systems]
    return bool((np.concatenate(slopes) > 0.0).mean() < sure)


def _crossings(
    result: Result, system: int, scale: CurveScale, metric: Metric, level: float,
    question: Question, falls: bool,
) -> tuple[Array, Flags]:  # fmt: skip
    """Return draws of one system's horizon, and which of them have no crossing.

    Without a crossing it is the lowest value or infinity.
    """
    coefficients, curve = curve_of(result, system)
    start, slope = coefficients @ scale.start, coefficients @ scale.slope
    needed = _logit_of_level(metric, level, curve, len(start), question)
    none = slope >= 0.0 if falls else slope <= 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (needed - start) / slope
    easy = start + scale.middle * slope >= needed
    beyond = np.where(easy == falls, np.inf, -np.inf)
    values = scale.values(np.where(none, beyond, crossing))
    lowest = scale.positive & (values <= 0.0)
    return values, none | np.isinf(values) | lowest


def _logit_of_level(
    metric: Metric, level: float, curve: Curve, draws: int, question: Question
) -> Array:
    """Logit of the covariates at which the metric has the level, in each draw."""
    if question == "average":
        average = curve.average(metric)
        return bisected(lambda x: average(x) >= level, draws, _FARTHEST)
    p = bisected(lambda x: np.asarray(metric.latent(expit(x))) >= level, 1, _FARTHEST)
    return bisected(lambda x: curve.below(float(expit(p[0])), x) <= 0.5, draws, _FARTHEST)


def _paired(result: Result, values: list[Array], rng: Rng) -> Array:
    """Joint draws (draws, systems), in an order in which systems err together."""
    stacked = np.stack(values, axis=1)
    if stacked.shape[1] == 1 or result.joint:
        return stacked
    ranks = (np.argsort(np.argsort(draws, kind="stable")) for draws in values)
    spread = (np.arctan(2.0 * rank / (len(stacked) - 1) - 1.0) for rank in ranks)
    influence = np.stack([_influence(result, *horizon) for horizon in enumerate(spread)])
    product = influence @ influence.T
    size = np.sqrt(np.maximum(np.diag(product), 1e-300))
    return correlated_order(stacked, product / (size[:, None] * size), rng)


def _influence(result: Result, system: int, horizon: Array) -> Array:
    """Return how each question moves the horizon of a system, from its finite image by draw."""
    centred, counts = horizon - horizon.mean(), result.study.counts[system]
    if result.has("log_likelihood"):
        logs = result.group("log_likelihood")[result.scale.variable]
        return np.asarray(centred @ flat_draws(logs, system) / len(centred))
    influence = np.empty(len(counts))  # it was left out for its size: a block at a time
    for questions, law in result.laws(system).alike():
        influence[questions] = centred @ law.log_counts(counts[questions], system) / len(centred)
    return influence


def _curves(
    result: Result, scale: CurveScale, metric: Metric, question: Question, probability: float,
    at: Mapping[str, Any] | None,
) -> pd.DataFrame:  # fmt: skip
    """Return the metric against the covariate, by system."""
    mixed = question == "typical" and not curve_of(result, 0)[1].simple
    values = scale.grid(_CURVE_OF_MIXTURE if mixed else _CURVE)
    design = regression_design(result)
    fixed = {} if at is None else design.read_at(at)
    _, columns = design.at({scale.covariate: values, **fixed})
    parts = []
    for system, name in enumerate(result.systems):
        coefficients, curve = curve_of(result, system)
        drawn = at_logits(metric, coefficients @ columns.T, curve, question)
        numbers = {"value": values} | statistics_of(drawn, probability)
        parts.append(pd.DataFrame({"system": [name] * len(values), **numbers}).drop(columns="sd"))
    return pd.concat(parts, ignore_index=True)


def _observed(result: Result, covariate: str, metric: Metric) -> pd.DataFrame:
    """Return observed success rates, or mean scores, of questions of about equal values.

    Of metrics of a single trial alone.
    """
    if metric.k != 1:
        return pd.DataFrame()
    result.require("horizon")
    values = np.asarray(result.of_questions[covariate], float)
    scores = result.scores if result.scale.axes else np.array([0.0, 1.0])
    order = np.argsort(values, kind="stable")
    bins = np.array_split(order, min(8, max(1, len(values) // 4)))
    rows = []
    for name, c, n in zip(result.systems, result.counts @ scores, result.trials, strict=True):
        for number, questions in enumerate(bins):
            tried = questions[n[questions] > 0]
            if len(tried):
                rate = float((c[tried] / n[tried]).mean())
                middle = float(np.median(values[tried]))
                row = {"system": name, "bin": number, "value": middle, "rate": rate}
                rows.append(row | {"questions": len(tried)})
    return pd.DataFrame(rows)


def _system_row(
    system: Any,
    values: Array,
    none: Flags,
    scale: CurveScale,
    attrs: Mapping[str, Any],
    falls: bool,
) -> dict[str, Any]:
    """Return median, interval, probabilities and sentence of one system.

    Parameters
    ----------
    system : label
    values : ndarray, shape (draws,)
        Of the horizon; infinite, or the lowest value, without a crossing.
    none : ndarray of bool, shape (draws,)
        Whether there is no crossing.
    scale : CurveScale
    attrs : mapping
        What `bayesatk.decide.horizon` was asked.
    falls : bool
        Whether the metric falls along the covariate.
    """
    median, low, high = _ends(values, attrs["ci_prob"])
    least, most = scale.observed
    row = {
        "system": system, "median": median, "ci_lower": low, "ci_upper": high,
        "prob_none": float(none.mean()),
        "prob_outside": float(((values < least) | (values > most)).mean()),
    }  # fmt: skip
    return {**row, "sentence": _sentence(row, falls, scale, attrs)}


def _sentence(
    row: Mapping[str, Any], falls: bool, scale: CurveScale, attrs: Mapping[str, Any]
) -> str:
    way = "falls" if falls else "rises"
    kind = "an average" if attrs["question"] == "average" else "a typical"
    text = (
        f"{named(row['system'])}: {attrs['metric']} of {kind} question {way} to "
        f"{attrs['level']:g} at {attrs['covariate']} = {_shown(row['median'])} "
        f"({100 * attrs['ci_prob']:g}% interval {_shown(row['ci_lower'])} to "
        f"{_shown(row['ci_upper'])})"
    )
    if row["prob_outside"] >= 0.5:
        least, most = (_shown(end) for end in scale.observed)
        text += f", outside the observed values, {least} to {most}"
    if row["prob_none"] >= _LIKELY:
        text += f"; with probability {row['prob_none']:.2g} it never reaches that level"
    return text + "."


def _shown(value: float) -> str:
    return "infinity" if value == np.inf else "-infinity" if value == -np.inf else f"{value:.3g}"


def _pair_rows(
    systems: list[Any], joint: Array, scale: CurveScale, attrs: Mapping[str, Any]
) -> pd.DataFrame:
    """Return differences and ratios of every pair, the longer first; draws (draws, systems)."""
    rows = []
    medians = np.quantile(joint, 0.5, axis=0, method="nearest")
    order = np.argsort(-medians, kind="stable")
    for i, j in combinations(order.tolist(), 2):
        a, b = joint[:, i], joint[:, j]
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = a - b  # NaN where both are infinite: it could be anything
            ratio = a / b if scale.positive else np.full(len(a), np.nan)
        row: dict[str, Any] = {"system": systems[i], "other": systems[j]}
        for name, values in (("difference", difference), ("ratio", ratio)):
            row |= _unsure_ends(name, values, attrs["ci_prob"], scale.positive or name != "ratio")
        row["prob_greater"] = float((a > b).mean() + 0.5 * (a == b).mean())
        row["sentence"] = _pair_sentence(row, attrs)
        rows.append(row)
    return pd.DataFrame(rows)


def _unsure_ends(name: str, values: Array, probability: float, known: bool) -> dict[str, float]:
    """Median and interval of values of which some could be anything: NaN counts on either side."""
    if not known:
        return dict.fromkeys((name, f"{name}_lower", f"{name}_upper"), np.nan)
    unsure = np.isnan(values)
    lowest = 0.0 if name == "ratio" else -np.inf
    _, low, _ = _ends(np.where(unsure, lowest, values), probability)
    _, _, high = _ends(np.where(unsure, np.inf, values), probability)
    middle = _ends(values[~unsure], probability)[0] if not unsure.all() else np.nan
    return {name: middle, f"{name}_lower": low, f"{name}_upper": high}


def _pair_sentence(row: Mapping[str, Any], attrs: Mapping[str, Any]) -> str:
    percent = f"{100 * attrs['ci_prob']:g}%"
    name = "difference" if np.isnan(row["ratio"]) else "ratio"
    longer = "is longer by" if name == "difference" else "is longer by a factor of"
    return (
        f"the horizon of {named(row['system'])} {longer} {_shown(row[name])} than that of "
        f"{named(row['other'])} ({percent} interval {_shown(row[f'{name}_lower'])} to "
        f"{_shown(row[f'{name}_upper'])}; P(longer) {row['prob_greater']:.3f})."
    )


def _ends(values: Array, probability: float) -> tuple[float, float, float]:
    """Median and interval; ends that may be infinite are draws themselves."""
    tail = 0.5 * (1.0 - probability)
    low = float(np.quantile(values, tail, method="lower"))
    high = float(np.quantile(values, 1.0 - tail, method="higher"))
    return float(np.quantile(values, 0.5, method="nearest")), low, high
