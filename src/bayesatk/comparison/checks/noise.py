"""`noise_floor`: the difference of two runs of the same system by chance alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, proper_probability, whole_number
from bayesatk.comparison.checks.question_table import chosen_metric
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.core.pooling.marks import mark_probability
from bayesatk.core.question.categorical import category_finite
from bayesatk.core.question.expected_credit import finite
from bayesatk.data.scales import RightWrongScale
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.models_of import draws_of_p
from bayesatk.posterior.observed import question_shares
from bayesatk.results.result import Fit, Result
from bayesatk.results.views import ShownTable

RUN_TRIALS_MAX = 256  # of a question; the work grows with the square
_SEED = 20_261_124  # fixed, so that a floor is a function of the data
_DRAWS_OF_P = (500, 4000, 4e6)  # fewest, most, and most times probabilities of all questions
_RUNS = 7  # of each draw of p, any two of which are a pair


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def noise_floor(
    fit: Fit,
    metric: str | Metric | None = None,
    *,
    trials: int | None = None,
    ci_prob: float = 0.95,
) -> pd.DataFrame:
    """Bound the difference between two runs of the same system on these questions.

    It is due to chance alone: the success probabilities are the same in both runs, and the trials
    are new.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`; only its data, model and prior are used.
    metric : str or Metric, optional
        The metric that both runs report; default: the first of the result.
    trials : int, optional
        Trials of every question in a run; default: as many as the metric judges, one for
        ``"pass@1"``.
    ci_prob : float
        Posterior predictive probability that the difference does not exceed the floor.

    Returns
    -------
    pandas.DataFrame
        One row per system: ``metric``, ``trials``, ``sd`` of the difference, ``floor``, the
        smallest number that the absolute difference does not exceed with probability ``ci_prob``,
        ``prob_within``, the probability of that (it is more than ``ci_prob`` where differences
        come in steps), and a ``sentence``.

    See Also
    --------
    bayesatk.compare : whether the difference of two systems is more than noise.
    bayesatk.checks.question_table : which questions make the noise.

    Notes
    -----
    The posterior predictive distribution of the difference of two new runs: the success
    probabilities of these questions are those of the posterior, the same for both runs, and all
    trials independent. The score of a run is the unbiased estimate, with the weights of questions
    and groups; with `judge=` it is the score by marks of this judge, which both runs would report.

    Seven runs are drawn from each of 500 to 4000 draws of all success probabilities, with a fixed
    seed, and any two of them are compared: the standard error of ``prob_within`` is 0.001 to 0.003
    at 0.95, that of ``sd`` half a percent.

    A difference beyond the floor between two *versions* of a system is not yet a claim about them:
    `bayesatk.compare` weighs the trials of both.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0]], "pass@1", pooling="none", rng=1)  # p is Beta(2, 2)
    >>> row = bayesatk.decide.noise_floor(fit, ci_prob=0.5).iloc[0]
    >>> float(row["floor"]), round(float(row["prob_within"]), 2)  # 1 - 2 E p (1 - p) = 1 - 2/5
    (0.0, 0.6)
    """
    result = Result.of(fit)
    result.require("noise_floor")
    parsed_metric = chosen_metric(result, metric)
    n = parsed_metric.k if trials is None else whole_number("trials", trials, parsed_metric.k)
    if n > RUN_TRIALS_MAX:
        rule = f" must ask for at most {RUN_TRIALS_MAX} trials of a question in a run; got {n}."
        raise ArgumentError("metric" if trials is None else "trials", rule)
    proper_probability("ci_prob", ci_prob, 0.95)
    rows = []
    for system, name in enumerate(result.systems):
        difference, probability = _differences(result, system, parsed_metric, n)
        cumulative = np.cumsum(probability)
        # Rounding errors of the sum must not move the floor by a step.
        step = int(np.searchsorted(cumulative, ci_prob - 1e-12))
        step = min(step, len(cumulative) - 1)
        row = {
            "system": name,
            "metric": parsed_metric.label,
            "trials": n,
            "sd": float(np.sqrt(probability @ difference**2)),
            "floor": float(difference[step]),
            "prob_within": float(min(cumulative[step], 1.0)),
        }
        rows.append({**row, "sentence": _sentence(row, ci_prob, result.scale.scores)})
    return ShownTable.of(rows, "noise_floor")


def _differences(result: Result, system: int, metric: Metric, trials: int) -> tuple[Array, Array]:
    """Absolute differences of two runs of a system, ascending, and their probabilities.

    Estimated from draws of all success probabilities, and from all pairs of some runs given these.
    """
    scale, rng = result.scale, np.random.default_rng(_SEED)
    judged: Any = scale.judged(metric)
    share, questions = question_shares(result.study), result.counts.shape[1]
    fewest, most, work = _DRAWS_OF_P
    probabilities = questions * (1 if isinstance(scale, RightWrongScale) else len(scale.scores))
    size = int(np.clip(work / probabilities, fewest, most))
    p, rates = draws_of_p(result, system, size, rng)
    if rates is not None:
        p = mark_probability(p, rates, rng)
    of_counts = finite(metric.credit, np.arange(trials + 1), np.full(trials + 1, trials))

    def scores() -> Array:
        counts = scale.draw_counts(trials, p, rng)
        if isinstance(scale, RightWrongScale):
            return np.asarray(of_counts[counts] @ share)
        return np.asarray(category_finite(judged.credit, counts, judged.scores) @ share)

    runs = np.array([scores() for _ in range(_RUNS)])
    first, second = np.triu_indices(_RUNS, 1)
    gaps = np.abs(runs[first] - runs[second])
    difference, number = np.unique(np.round(gaps, 12), return_counts=True)
    return difference, number / number.sum()


def _sentence(row: dict[str, object], prob: float, scores: Sequence[float]) -> str:
    trials = "one trial" if row["trials"] == 1 else f"{row['trials']} trials"
    floor = float(row["floor"])  # type: ignore[arg-type]
    shares = min(scores) >= 0.0 and max(scores) <= 1.0
    size = f"{100.0 * floor:.1f} points" if shares else f"{floor:.3g}"
    return (
        f"Two runs of {named(row['system'])} with {trials} of each of these questions differ in "
        f"{row['metric']} by up to {size} in {100 * prob:g}% of cases, by chance alone."
    )
