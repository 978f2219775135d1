"""What an evaluation by a judge that errs would teach, and what more trials marked twice would."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import whole_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.plans.designs import ExpectedVariance, Question, questions_of_marks
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.metrics.grid import Metric
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.result import Result
from bayesatk.results.schema import RATES, TARGETS, metric_values

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Marked:
    """What marks teach: less than trials would, and nothing of what is not known of the judge.

    Parameters
    ----------
    right : ExpectedVariance
        Had the trials been marked without error.
    information : float
        Variance of a trial's truth given its question, over that of its mark, times (s - f)^2.
    rates : ndarray, shape (target,)
        Variance that is due to the rates of the judge.
    """

    right: ExpectedVariance
    information: float
    rates: Array

    @property
    def value(self) -> float:
        """The metric of a new question."""
        return self.right.value

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions."""
        trial, both = self.right.variance(questions)
        more = trial / self.information
        return np.array([more, both - trial + more]) + self.rates


@dataclass(frozen=True)
class MarkedPilot:
    """A pilot of one system that a judge marked, and trials to mark twice besides.

    Parameters
    ----------
    result : Result
        Of one system, with a judge, under partial pooling.
    metric : Metric
    labels : int
        More trials to mark twice, of the pilot's kind.
    """

    result: Result
    metric: Metric
    labels: int

    @classmethod
    def of(cls, source: object, metric: Metric, labels: int) -> "MarkedPilot":
        """Return the pilot, or refuse what is none."""
        is_result = isinstance(source, xr.DataTree | Result)
        result = Result.of(source) if is_result else None  # type: ignore[arg-type]
        if (
            result is None
            or result.judges is None
            or len(result.systems) != 1
            or result.pooling != "partial"
            or result.covariates is not None
            or result.grouping is not None
        ):
            raise ArgumentError(
                Argument("labels"), " goes with a pilot of one system, evaluated with judge= and "
                "pooling='partial', without covariates and groups. Evaluate one, or leave it out.",
            )  # fmt: skip
        if metric not in result.grid:
            metric_labels = " ".join(result_metric.label for result_metric in result.metrics)
            raise ArgumentError(
                Argument("source"), f" must have {metric.label} for labels=; it has "
                f"{metric_labels}. Evaluate it.",
            )  # fmt: skip
        return cls(result, metric, labels)

    def questions(self) -> list[list[Question]]:
        """Questions at some draws of the pilot, by draw and system."""
        difficulty = difficulty_draws(self.result.tree, 0)
        assert difficulty is not None  # right and wrong, pooled partially
        size = self.result.size
        draw_indices = np.linspace(0, size - 1, min(60, size)).astype(int)
        s, f = (self.result.hyper(name, 0) for name in RATES)
        rates, questions = self._variance_of_rates(s, f), []
        for i in draw_indices.tolist():
            draw = difficulty.among([i])
            questions.append([_question(self.metric, draw, float(s[i]), float(f[i]), rates)])
        return questions

    def _variance_of_rates(self, s: Array, f: Array) -> Array:
        """Variance due to the rates after more labels, by target.

        To first order in the rates, whose effects are those of a regression on the pilot's draws.
        """
        assert self.result.judges is not None
        (judge,) = self.result.judges.by_system
        share = float(self.result.hyper("mean_p", 0).mean())
        sizes = judge.p + self.labels * share, judge.n + self.labels * (1.0 - share)
        prior_trials = 2.0  # that a uniform prior of a rate counts as
        rate_variances = [
            mean * (1.0 - mean) / (size + prior_trials + 1.0)
            for mean, size in zip((s.mean(), f.mean()), sizes, strict=True)
        ]
        terms = np.stack([np.ones_like(s), s - s.mean(), f - f.mean()], axis=1)
        values = metric_values(self.result.posterior, self.metric).isel(system=0)
        flat = values.transpose("chain", "draw", "target").sel(target=list(TARGETS)).values
        slope = np.linalg.lstsq(terms, flat.reshape(-1, len(TARGETS)), rcond=None)[0][1:]
        return np.asarray(np.array(rate_variances) @ slope**2)


def by_labels(
    source: object,
    metric: Metric,
    labels: Sequence[int],
    plan: Callable[[MarkedPilot], pd.DataFrame],
) -> pd.DataFrame:
    """Return the plans of a pilot for several numbers of trials to mark twice."""
    if not isinstance(labels, Sequence | np.ndarray) or len(labels) == 0:
        rule = f" must be a sequence of integers; got {labels!r:.80}. Try [0, 200, 1000]."
        raise ArgumentError(Argument("labels"), rule)
    numbers = [whole_number("labels", label_count, 0) for label_count in labels]
    plans = [
        plan(MarkedPilot.of(source, metric, label_count)).assign(labels=label_count)
        for label_count in numbers
    ]
    return pd.concat(plans, ignore_index=True)


def _question(metric: Metric, difficulty: Difficulty, s: float, f: float, rates: Array) -> Question:
    """Return what one question of so many trials is expected to teach, by its marks."""
    right = questions_of_marks(metric, difficulty)
    mean, icc = (float(parameter[0]) for parameter in difficulty.overall)
    truth = mean * (1.0 - mean) * (1.0 - icc)
    marked = f + (s - f) * mean
    noise = marked * (1.0 - marked) - (s - f) ** 2 * mean * (1.0 - mean) * icc
    information = (s - f) ** 2 * truth / max(noise, 1e-300)
    return lambda trials: _Marked(right(trials), information, rates)
