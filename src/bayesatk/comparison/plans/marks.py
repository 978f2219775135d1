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
from bayesatk.results.likelihood import RATES
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

Array = NDArray[np.float64]
_DRAWS = 60  # of the pilot's difficulties and rates
_PRIOR = 2.0  # trials that a uniform prior of a rate counts as: s (1 - s) / (p + 3) is its variance


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
        known = isinstance(source, xr.DataTree | Result)
        own = Result.of(source) if known else None  # type: ignore[arg-type]
        if own is None or own.judges is None or len(own.systems) != 1 or own.pooling != "partial":
            raise ArgumentError(
                Argument("labels"), " goes with a pilot of one system, evaluated with judge= and "
                "pooling='partial'. Evaluate one, or leave it out.",
            )  # fmt: skip
        if metric not in own.grid:
            asked = " ".join(one.label for one in own.metrics)
            raise ArgumentError(
                Argument("source"), f" must have {metric.label} for labels=; it has {asked}. "
                "Evaluate it.",
            )  # fmt: skip
        return cls(own, metric, labels)

    def questions(self) -> list[list[Question]]:
        """Questions at some draws of the pilot, by draw and system."""
        every = difficulty_draws(self.result.tree, 0)
        assert every is not None  # right and wrong, pooled partially
        chosen = np.linspace(0, self.result.size - 1, min(_DRAWS, self.result.size)).astype(int)
        s, f = (self.result.hyper(name, 0) for name in RATES)
        rates, found = self._variance_of_rates(s, f), []
        for i in chosen.tolist():
            one = every.among([i])
            found.append([_question(self.metric, one, float(s[i]), float(f[i]), rates)])
        return found

    def _variance_of_rates(self, s: Array, f: Array) -> Array:
        """Variance due to the rates after more labels, by target.

        To first order in the rates, whose effects are those of a regression on the pilot's draws.
        """
        assert self.result.judges is not None
        (judge,) = self.result.judges.by_system
        share = float(self.result.hyper("mean_p", 0).mean())
        sizes = judge.p + self.labels * share, judge.n + self.labels * (1.0 - share)
        own = [
            mean * (1.0 - mean) / (size + _PRIOR + 1.0)
            for mean, size in zip((s.mean(), f.mean()), sizes, strict=True)
        ]
        terms = np.stack([np.ones_like(s), s - s.mean(), f - f.mean()], axis=1)
        values = metric_values(self.result.posterior, self.metric).isel(system=0)
        flat = values.transpose("chain", "draw", "target").sel(target=list(TARGETS)).values
        slope = np.linalg.lstsq(terms, flat.reshape(-1, len(TARGETS)), rcond=None)[0][1:]
        return np.asarray(np.array(own) @ slope**2)


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
    numbers = [whole_number("labels", one, 0) for one in labels]
    each = [plan(MarkedPilot.of(source, metric, one)).assign(labels=one) for one in numbers]
    return pd.concat(each, ignore_index=True)


def _question(metric: Metric, one: Difficulty, s: float, f: float, rates: Array) -> Question:
    """Return what one question of so many trials is expected to teach, by its marks."""
    right = questions_of_marks(metric, one)
    mean, icc = (float(each[0]) for each in one.overall)
    truth = mean * (1.0 - mean) * (1.0 - icc)
    marked = f + (s - f) * mean
    noise = marked * (1.0 - marked) - (s - f) ** 2 * mean * (1.0 - mean) * icc
    information = (s - f) ** 2 * truth / max(noise, 1e-300)
    return lambda trials: _Marked(right(trials), information, rates)
