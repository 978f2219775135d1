"""`next_labels`: which marked trials to mark by hand, and what so many labels are worth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk._tools.messages import ArgumentError, one_of, whole_number
from bayesatk.comparison.checks.question_table import chosen_metric
from bayesatk.core.pooling.marks import level_chances
from bayesatk.judge_error import MarkedBy, Panel
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.models_of import model_of
from bayesatk.results.result import Fit, Result, analysis_group, with_analyses
from bayesatk.results.schema import TARGETS

_DRAWS = 4000
_SEED = 20_261_126  # of draws: a plan is a function of the data
_LEAST = 1e-12  # variance of a truth, below which a label says nothing
DESIGNS = ("chosen", "at random", "marked right", "marked wrong")


def next_labels(
    fit: Fit,
    labels: int | Sequence[int] = (50, 100, 200),
    metric: str | Metric | None = None,
    *,
    target: Literal["questions", "population"] = "questions",
) -> xr.DataTree:
    """Choose the marked trials whose truth would tell most, and say what so many labels are worth.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate`, of marks of a judge: with ``judge=``, or data with ``truth=``.
    labels : int or sequence of int
        Numbers of further trials of each system to mark by hand.
    metric : str or Metric, optional
        Whose variance is to become small; default: the first of the result.
    target : {"questions", "population"}
        Of the metric.

    Returns
    -------
    xarray.DataTree
        The result with the groups ``labels``, ``labels_chosen`` and ``labels_trials``, which
        ``bayesatk.table(tree, "labels")`` and so on show.
        ``labels``: by system, number of labels and ``design`` the expected posterior ``sd`` of the
        metric, and ``width``, it relative to the sd of today. Designs: trials ``chosen`` one after
        the other; ``at random``; at random among those ``marked right``, or ``marked wrong``, and
        of several judges among those on which ``judges disagree``.
        ``labels_chosen``: for the largest number, ``labels`` of each question by its mark, the
        trials that are left there, and the probability that such a trial is right.
        ``labels_trials``: the same of all trials whose truth is not known.

    Raises
    ------
    ValueError
        If no judge errs, or fewer trials are without a known truth.

    See Also
    --------
    bayesatk.plan : how many questions and trials.

    Notes
    -----
    The truth y of a trial is right or wrong, so a label reduces the variance of any quantity T by
    ``cov(T, y)^2 / (E y (1 - E y))`` on average, exactly. Further labels are counted as if T and
    the probabilities of all truths were jointly normal (linear Bayes: Goldstein and Wooff 2007,
    Bayes Linear Statistics, section 3.2), and chosen greedily: the next one reduces the variance
    most, given those before. A probability is that of ``s p / (s p + f (1 - p))`` where the mark is
    right, in draws of p and of the judge's rates s and f (of several judges, or grades, the
    probabilities of a mark given right and given wrong); so a label tells of its question and of
    the judge. Choosing by mark and question does no harm to the posterior, which has both.

    Examples
    --------
    >>> import bayesatk
    >>> marks = [[1, 1, 1, 0]] * 20
    >>> truth = [[1, None, None, 0]] * 10 + [[None] * 4] * 9 + [[0, 1, None, None]]
    >>> fit = bayesatk.evaluate(bayesatk.tally(marks, truth=truth), "pass@1", rng=1)
    >>> tree = next_labels(fit, [0, 40])
    >>> table = bayesatk.table(tree, "labels")
    >>> bool(table["width"].min() < 0.95), table["width"].max().item()
    (True, 1.0)
    """
    result = Result.of(fit)
    wanted = [labels] if isinstance(labels, int | np.integer) else list(labels)
    numbers = sorted({whole_number("labels", number, 0) for number in wanted})
    one_of("target", target, TARGETS)
    if result.judges is None:
        raise ArgumentError(
            "fit", " must have marks of a judge that errs, whose truth labels would "
            "tell; got one without. Pass ", "truth", " to bayesatk.tally, or ",
            "judge", " to bayesatk.evaluate.",
        )  # fmt: skip
    parsed_metric = chosen_metric(result, metric)
    widths, chosen_trials, all_trials = [], [], []
    for system, name in enumerate(result.systems):
        trials = _Unlabelled.of(result, system, parsed_metric, TARGETS.index(target))
        most = int(trials.left.sum())
        if numbers[-1] > most:
            raise ArgumentError(
                "labels", f" must be at most {most}, the trials of {name!r} that are "
                f"marked and whose truth is not known; got {numbers[-1]}.",
            )  # fmt: skip
        widths += trials.width_rows(name, numbers)
        chosen_trials += trials.chosen_rows(name, numbers[-1])
        all_trials += trials.trial_rows(name)
    attrs = {"metric": parsed_metric.label, "target": target}
    sentences = [_sentence(pd.DataFrame(widths), name, numbers[-1], parsed_metric)
                 for name in result.systems]  # fmt: skip
    groups = {
        "labels": analysis_group(
            pd.DataFrame(widths), ["system", "labels", "design"], attrs, sentences=sentences
        ),
        "labels_chosen": analysis_group(
            pd.DataFrame(chosen_trials), ["system", "question", "mark"], attrs
        ),
        "labels_trials": analysis_group(
            pd.DataFrame(all_trials), ["system", "question", "mark"], attrs
        ),
    }
    return with_analyses(result.tree, groups)


def _sentence(widths: pd.DataFrame, name: object, number: int, metric: Metric) -> str:
    rows = widths[(widths["system"] == name) & (widths["labels"] == number)]
    width = rows.set_index("design")["width"]
    return (
        f"{name}: {number} more labels leave {100 * width['chosen']:.0f}% of the width of the "
        f"interval of {metric.label} if they are chosen, {100 * width['at random']:.0f}% if they "
        "are drawn at random."
    )


@dataclass(frozen=True)
class _Unlabelled:
    """Trials of unknown truth, alike where question and mark are.

    Parameters
    ----------
    questions : sequence of label
    left : ndarray of int, shape (questions, marks)
        Trials with each mark, such as wrong and right.
    judge : MarkedBy
    metric : ndarray, shape (draws,)
    right : ndarray, shape (draws, questions, marks)
        Probability that such a trial is right.
    """

    questions: Sequence[Any]
    left: Ints
    judge: MarkedBy
    metric: Array
    right: Array

    @classmethod
    def of(cls, result: Result, system: int, metric: Metric, target: int) -> "_Unlabelled":
        """Draw the metric and the probabilities of one system."""
        judged = result.scale.judged(metric)
        drawn = model_of(result, system).fit([judged]).draw(
            _DRAWS, np.random.default_rng(_SEED), True
        )  # fmt: skip
        assert drawn.p is not None  # they were asked to be kept
        assert result.judges is not None
        judge = result.judges.by_system[system]
        rows = result.study.judge_rates(system).rows(drawn.hyper)
        wrong, right = np.moveaxis(level_chances(rows), 1, 0)[:, :, None]
        p = drawn.p[..., None]
        of_right, of_wrong = right * p, wrong * (1.0 - p)
        # A mark that neither right nor wrong trials have was not given.
        chance = of_right / np.maximum(of_right + of_wrong, _LEAST)
        counts = result.study.counts[system]
        return cls(
            result.data.dataset["question"].values.tolist(), counts[:, : len(judge.right)], judge,
            drawn.metrics[:, 0, target], chance,
        )  # fmt: skip

    @cached_property
    def gaps(self) -> Array:
        """Deviations of the probabilities from their means, a row for each kind of trial."""
        flat = self.right.reshape(len(self.right), -1).T
        return flat - flat.mean(axis=1, keepdims=True)

    @cached_property
    def noise(self) -> Array:
        """Variance of a truth given its probability, by kind of trial."""
        inside = self.right * (1.0 - self.right)
        return inside.mean(axis=0).ravel()

    def _order(self, design: str) -> Indices | None:
        """Kinds of trials in a random order; None: they are chosen."""
        if design == "chosen":
            return None
        left = self.left.copy()
        if design == "judges disagree":
            left[:, [not ("0" in mark and "1" in mark) for mark in self.judge.marks]] = 0
        elif design != "at random":
            left[:, np.array(self.judge.right) != (design == "marked right")] = 0
        kinds_of_trials = np.repeat(np.arange(left.size), left.ravel())
        return np.random.default_rng(_SEED).permutation(kinds_of_trials)

    def variance_after(self, design: str, number: int) -> Array:
        """Variance of the metric after 0, 1, ... labels, as many as the design has trials for."""
        steps = list(self._steps(self._order(design), number))
        return np.array([self.metric.var(), *(variance for _, variance in steps)])

    def _steps(self, order: Indices | None, number: int) -> Iterator[tuple[int, float]]:
        """Yield the kind of each label and the variance of the metric after it."""
        size, left = len(self.metric), self.left.ravel().copy()
        metric = self.metric - self.metric.mean()
        covariance, variance = self.gaps @ metric / size, float(metric @ metric) / size
        spread = (self.gaps**2).mean(axis=1)
        columns: list[Array] = []  # covariance with labels so far, each divided by its sd
        for label in range(number if order is None else min(number, len(order))):
            total = np.maximum(spread, 0.0) + self.noise
            if order is None:
                gain = np.where((left > 0) & (total > _LEAST), covariance**2, 0.0)
                kind = int(np.argmax(gain / np.maximum(total, _LEAST) - (left == 0)))
            else:
                kind = int(order[label])
            left[kind] -= 1
            if total[kind] > _LEAST:
                column = self.gaps @ self.gaps[kind] / size
                column = column - sum((past * past[kind] for past in columns), start=0.0)
                column = column / np.sqrt(total[kind])
                share = covariance[kind] / np.sqrt(total[kind])
                variance = max(variance - share**2, 0.0)
                covariance = covariance - column * share
                spread = spread - column**2
                columns.append(column)
            yield kind, variance

    def width_rows(self, system: object, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return what numbers of labels are worth in every design that has so many trials."""
        rows = []
        more = ("judges disagree",) if isinstance(self.judge, Panel) else ()
        for design in (*DESIGNS, *more):
            sd = np.sqrt(self.variance_after(design, numbers[-1]))
            rows += [
                {"system": system, "labels": number, "design": design, "sd": float(sd[number]),
                 "width": float(sd[number] / sd[0]) if sd[0] else 1.0}
                for number in numbers if number < len(sd)
            ]  # fmt: skip
        return rows

    def chosen_rows(self, system: object, number: int) -> list[dict[str, Any]]:
        """Return how many trials of each kind to mark by hand, those with most labels first."""
        kinds = np.zeros(self.left.size, np.int64)
        first: dict[int, int] = {}
        for step, (kind, _) in enumerate(self._steps(None, number)):
            kinds[kind] += 1
            first.setdefault(kind, step)
        rows = self.trial_rows(system)
        places = np.cumsum(self.left.ravel() > 0) - 1
        return [rows[places[kind]] | {"labels": int(kinds[kind])} for kind in first]

    def trial_rows(self, system: object) -> list[dict[str, Any]]:
        """Return what is known of trials whose truth is not: alike by question and mark."""
        chance, marks = self.right.mean(axis=0), self.judge.marks
        return [
            {"system": system, "question": self.questions[question], "mark": marks[level],
             "trials": int(self.left[question, level]),
             "prob_right": float(chance[question, level])}
            for question, level in np.argwhere(self.left > 0).tolist()
        ]  # fmt: skip
