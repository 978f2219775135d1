"""How many groups, questions and trials an evaluation of questions in groups needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from bayesatk._tools.arguments import one_of, whole_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.plans.composed import ComposedPilot, QuestionRows
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.model import CountModel
from bayesatk.results.result import Result
from bayesatk.results.schema import GROUPED_TARGETS

Array = NDArray[np.float64]
_DRAWS = 60  # of the pilot's hyperparameters


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
    unequal_questions, unequal_groups : float
        Mean of the squares of weights over the square of their mean.
    """

    trial: Array
    question: Array
    group: Array
    unequal_questions: float
    unequal_groups: float

    def variance(self, target: str, questions: int) -> Array:
        """Variance of the mean over all questions, times the groups, each of so many questions.

        Weights count in means over these groups; new ones have none.
        """
        if target == "questions":
            return self.trial * self.unequal_questions / questions
        both = (self.trial + self.question) / questions
        return both + self.group if target == "new_groups" else both * self.unequal_groups


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
    composed = ComposedPilot.of(pilot, 0, metric, _DRAWS)
    for n in [whole_number("trials", trial_count) for trial_count in trials]:
        variances = _variances(composed, n)
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


def _variances(pilot: ComposedPilot, trials: int) -> _Variances | None:
    """Variances with so many trials; None where k exceeds them: no estimate is unbiased."""
    if pilot.metric_k > trials:
        return None
    rows, unequal = QuestionRows.of(pilot.model.cells), _unequal(pilot.model)
    effect = np.linspace(-5.0, 5.0, 21)  # of groups, in sds
    weight = np.exp(-0.5 * effect**2) / np.exp(-0.5 * effect**2).sum()
    by_draw = []
    for fit, theta in pilot.draws:
        moved = fit.predictor.group_sd(theta) * effect
        offset = rows.offsets(fit.predictor, theta)[:, None] + moved[:, None]
        shape = offset.shape[1:]
        offset = offset.reshape(1, -1)
        counts = pilot.counts(fit, theta, offset, trials)
        estimate, chance = counts.estimates(), counts.probability(theta, offset)[0]
        mean, between = (part[0].reshape(shape) for part in counts.new(theta, offset))
        square = (chance @ estimate**2 - (chance @ estimate) ** 2).reshape(shape)
        of_group = mean @ rows.weight
        by_draw.append([
            weight @ np.maximum(square - between, 0.0) @ rows.weight,
            weight @ between @ rows.weight,
            max(weight @ of_group**2 - (weight @ of_group) ** 2, 0.0),
        ])  # fmt: skip
    trial, question, group = np.array(by_draw).T
    return _Variances(trial, question, group, *unequal)


def _unequal(model: CountModel) -> tuple[float, float]:
    """How much more means vary by unequal weights: of questions, and of groups.

    Of planned groups all have equally many questions, with weights like those of the pilot's.
    """
    cells, grouping = model.cells, model.grouping
    assert grouping is not None
    size = np.bincount(grouping.code, minlength=cells.groups)
    present = size > 0
    group = np.zeros(cells.groups)
    group[present] = cells.share[present]
    if grouping.weight is None:
        group[present] /= size[present]
    question = cells.question_share * (size * group)[grouping.code]
    questions, groups = (float((w**2).mean() / w.mean() ** 2) for w in (question, group[present]))
    return questions, groups
