"""How many groups, questions and trials an evaluation of questions in groups needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from bayesatk._tools.arguments import one_of, whole_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.question.beta_binomial import beta_binomial_moments, beta_binomial_pmf
from bayesatk.core.question.laws import finite
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Result
from bayesatk.results.schema import GROUPED_TARGETS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Variances:
    """Variances of one question and one group, by draw of the hyperparameters.

    Parameters
    ----------
    trial : ndarray
        Of an unbiased estimate about the question's own metric.
    question : ndarray
        Of the metric between questions of a group.
    group : ndarray
        Of the mean metric between groups.
    """

    trial: Array
    question: Array
    group: Array

    def variance(self, target: str, questions: int) -> Array:
        """Variance of the mean over one group of so many questions."""
        variance = self.trial / questions
        if target != "questions":
            variance = variance + self.question / questions
        return variance + self.group if target == "new_groups" else variance


def group_plan(
    pilot: Result,
    metric: Metric,
    width: float,
    target: str,
    trials: Sequence[int],
    questions: Sequence[int] | None,
    ci_prob: float,
) -> pd.DataFrame:
    """Return the groups that are needed for each number of questions and trials.

    Parameters
    ----------
    pilot : Result
        Of one system, with groups.
    metric : Metric
    width : float
        Of the interval.
    target : {"questions", "population", "new_groups"}
    trials : sequence of int
        Of a question.
    questions : sequence of int, optional
        Of a group; default: as the pilot has them, half as many and twice as many.
    ci_prob : float
    """
    one_of("target", target, GROUPED_TARGETS)
    grouping = pilot.grouping
    assert grouping is not None
    if len(pilot.systems) != 1:
        raise ArgumentError(
            Argument("source"), f" must be a pilot of one system where it has groups; got "
            f"{len(pilot.systems)}. Plan for one at a time.",
        )  # fmt: skip
    most = 10**6  # groups beyond which a design is out of reach
    usual = max(1, round(len(grouping.code) / len(grouping.labels)))
    sizes = [max(1, usual // 2), usual, 2 * usual] if questions is None else questions
    z = 2.0 * float(ndtri(0.5 + 0.5 * ci_prob))
    rows = []
    for n in [whole_number("trials", trial_count) for trial_count in trials]:
        variances = _variances(pilot, metric, n)
        for size in dict.fromkeys(
            whole_number("questions", question_count) for question_count in sizes
        ):
            groups = reached = np.inf
            if variances is not None:
                sd = np.sqrt(variances.variance(target, size))
                groups = float(np.ceil((z * sd.mean() / width) ** 2))
                groups = groups if groups <= most else np.inf
                reached = float(z * sd.mean() / np.sqrt(min(groups, most)))
            rows.append(
                {
                    "trials": n, "questions": size, "groups": groups,
                    "total": groups * size * n, "width": reached,
                }
            )  # fmt: skip
    table = pd.DataFrame(rows)
    smallest = table["total"].min()
    return table.assign(cheapest=(table["total"] == smallest) & np.isfinite(table["total"]))


def _variances(pilot: Result, metric: Metric, trials: int) -> _Variances | None:
    """Variances with so many trials; None where k exceeds them: no estimate is unbiased."""
    if metric.k > trials:
        return None
    draw_indices = np.linspace(0, pilot.size - 1, min(60, pilot.size)).astype(int)
    typical, sd, icc = (
        pilot.hyper(name, 0)[draw_indices] for name in ("typical_p", "group_sd", "icc")
    )
    effect = np.linspace(-5.0, 5.0, 21)  # of groups, in sds
    weight = np.exp(-0.5 * effect**2) / np.exp(-0.5 * effect**2).sum()
    mean = expit(np.log(typical / (1.0 - typical))[:, None] + sd[:, None] * effect)
    total = ((1.0 - icc) / np.maximum(icc, 1e-12))[:, None]
    alpha, beta = np.maximum(mean * total, 1e-12), np.maximum((1.0 - mean) * total, 1e-12)
    value, _, between = (
        moment[:, 0].reshape(mean.shape)
        for moment in beta_binomial_moments([metric.credit], alpha.ravel(), beta.ravel())
    )
    counts = np.arange(trials + 1)
    estimate = finite(metric.credit, counts, np.full(trials + 1, trials))
    chance = beta_binomial_pmf(trials, alpha.ravel(), beta.ravel())
    total = (chance @ estimate**2 - (chance @ estimate) ** 2).reshape(mean.shape)
    return _Variances(
        np.maximum(total - between, 0.0) @ weight, between @ weight,
        np.maximum(value**2 @ weight - (value @ weight) ** 2, 0.0),
    )  # fmt: skip
