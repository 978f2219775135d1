"""What an evaluation that is planned would teach, from a pilot or a stated difficulty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk._tools.messages import Argument, ArgumentError, real_number, whole_number
from bayesatk._tools.progress import track
from bayesatk.comparison.plans.pilots import DRAWS, ComposedPilot
from bayesatk.data.verifier import counted_scores
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import VoteModel
from bayesatk.posterior.best_of import BestOfModel
from bayesatk.posterior.models_of import Declared, verified_model
from bayesatk.posterior.pooled_answers import PooledVotes
from bayesatk.posterior.replicates import NewTrials, TrialDraws
from bayesatk.posterior.weighted_votes import WeightedVotes
from bayesatk.results.result import Fit, Result

_QUESTIONS, _ROUNDS = 100, 4  # of an evaluation that is simulated, at most; evaluations
_DRAWS = 250  # behind the variance of an evaluation


class ExpectedVariance(Protocol):
    """Expected posterior variance of the metric of one system, for a planned evaluation."""

    @property
    def value(self) -> float:
        """Expected value of the metric for a new question."""
        ...

    def variance(self, number: float) -> Array:
        """Posterior variance with so many questions, or groups, by target."""
        ...


# Given a number of trials per question: the expected variance.
Question = Callable[[int], ExpectedVariance]
# Given a number of trials: by draw of the difficulty distribution, and by system. None where so few
# trials cannot tell: a question tried once says nothing of how questions differ.
Expected = Sequence[Sequence[ExpectedVariance]]
Designs = Callable[[int], Expected]


@dataclass(frozen=True)
class Measured:
    """Posterior variance of evaluations that were simulated.

    Parameters
    ----------
    value : float
    by_question : ndarray, shape (targets,)
        Variances times the number of questions.
    """

    value: float
    by_question: Array

    def variance(self, number: float) -> Array:
        """Posterior variance with so many questions: for these, and for questions like these."""
        return self.by_question / number


def designs_of(
    source: object, metric: Metric, scores: Sequence[float] | None, labels: int | None = None
) -> tuple[Designs, int]:
    """Return the designs as a function of the trials, and the number of systems.

    Labels are the trials to mark by hand, of a pilot with a judge: as of `ComposedPilot`.
    """
    if scores is not None:
        scores = _checked_scores(scores)
    if not metric.of_marks:
        if scores is not None:
            raise ArgumentError("scores", " must be left out for votes between answers.")
        return _choices(source, metric)
    if not isinstance(source, Fit):
        questions_by_draw = _stated(source, metric, scores)
    else:
        check_pilot(Result.of(source), scores)
        questions_by_draw = _of_pilot(Result.of(source), metric, labels)
    systems = len(questions_by_draw[0])
    alike = isinstance(source, Fit) and Result.of(source).pooling == "complete"

    def by_draw(trials: int) -> Expected:
        if trials == 1 and metric.k > 1 and not alike:
            return []
        return [[question(trials) for question in row] for row in questions_by_draw]

    return by_draw, systems


def _checked_scores(scores: object) -> list[float]:
    if not isinstance(scores, Sequence | np.ndarray) or isinstance(scores, str):
        rule = f" must be a sequence of numbers; got {scores!r:.80}."
        raise ArgumentError("scores", rule)
    values = [real_number("scores: each", score) for score in scores]
    if len(set(values)) < 2 or not np.isfinite(values).all():
        rule = f" must be finite and not all the same; got {values}."
        raise ArgumentError("scores", rule)
    return values


def _check_systems(systems: Sequence[object]) -> None:
    if len(systems) > 2:
        raise ArgumentError(
            "source", f" must be of one system or two; got {len(systems)}. Plan for two "
            "at a time; of a pilot choose them: ", Argument("system", list(systems[:2])), ".",
        )  # fmt: skip


def check_pilot(pilot: Result, scores: object) -> None:
    """Refuse a pilot without a plan, and scores beside it."""
    if scores is not None:
        raise ArgumentError("scores", " must be left out for a pilot, which has them.")
    pilot.require("plan", "source")


def _of_pilot(pilot: Result, metric: Metric, labels: int | None) -> list[list[Question]]:
    """Questions at some draws of the pilot's difficulty distribution, by draw and system."""
    _check_systems(pilot.systems)
    if pilot.judges is not None and len(pilot.judges.groups()) < len(pilot.systems):
        raise ArgumentError(
            "source", " must be of one system where systems share a judge, whose errors "
            "cancel in their difference; got two. Choose one: ",
            Argument("system", pilot.systems[0]), ".",
        )  # fmt: skip
    if pilot.grouping is not None and pilot.pooling != "complete":
        raise ArgumentError(
            "source", " must be without groups here: only the plan of a width takes "
            f"them. Got {len(pilot.grouping.labels)} groups. Evaluate the same data without ",
            "group", ".",
        )  # fmt: skip
    by_system = [
        ComposedPilot.of(pilot, system, metric, DRAWS, labels).questions()
        for system in range(len(pilot.systems))
    ]
    return [list(row) for row in zip(*by_system, strict=True)]


def _inside(values: ArrayLike) -> Array:
    return np.asarray(np.clip(values, 1e-6, 1.0 - 1e-6), float)


def _stated(source: Any, metric: Metric, scores: Sequence[float] | None) -> list[list[Question]]:
    stated = list(source.values()) if isinstance(source, Mapping) else [source]
    _check_systems(list(source) if isinstance(source, Mapping) else [])
    size = 1 if scores is None else len(scores)
    try:
        pairs = [(np.atleast_1d(np.array(mean, float)), float(icc)) for mean, icc in stated]
    except (TypeError, ValueError):
        pairs = []
    ok = bool(pairs) and all(
        mean.shape == (size,)
        and ((mean > 0) & (mean < 1)).all()
        and (size == 1 or abs(mean.sum() - 1.0) < 1e-9)
        and 0.0 < icc < 1.0
        for mean, icc in pairs
    )
    if not ok:
        shape = "mean one share per score, adding up to 1," if scores is not None else "both"
        raise ArgumentError(
            "source", f" must be a result, (mean, icc) or {{system: (mean, icc)}}, "
            f"{shape} strictly between 0 and 1; got {source!r:.80}. Scored categories need ",
            Argument("scores", ...), ".",
        )  # fmt: skip
    return [[
        ComposedPilot.stated(metric, scores, _inside(mean), float(_inside(icc))).questions()[0]
        for mean, icc in pairs
    ]]  # fmt: skip


def _choices(source: object, metric: Metric) -> tuple[Designs, int]:
    """Designs of votes and of a verifier's choice: evaluations of a pilot's model, simulated."""
    pilot = Result.of(source) if isinstance(source, Fit) else None
    families = [] if pilot is None else [known.family for known in pilot.metrics]
    if pilot is None or metric.family not in families:
        got = f"{source!r:.80}" if pilot is None else " ".join(m.label for m in pilot.metrics)
        raise ArgumentError(
            "source", f" must be a pilot evaluated for {metric.label}: answers, and scores of a "
            f"verifier, have no distribution to state; got {got}. Evaluate its data: "
            f"bayesatk.evaluate(data, {metric.label!r}).",
        )  # fmt: skip
    pilot.require("plan", "source")
    if pilot.grouping is not None:
        raise ArgumentError(
            "source", f" must be without groups for a plan of {metric.label}, which draws single "
            f"questions; got {len(pilot.grouping.labels)} groups. Evaluate the same data without ",
            "group", ".",
        )  # fmt: skip
    _check_systems(pilot.systems)
    systems = [Simulated(pilot, system, metric) for system in range(len(pilot.systems))]

    def by_draw(trials: int) -> Expected:
        if trials == 1 and metric.k > 1:
            return []
        return list(zip(*(system.measured(trials) for system in systems), strict=True))

    return by_draw, len(systems)


@dataclass(frozen=True, eq=False)
class Simulated:
    """Evaluations of new questions of a system, whose trials follow the model of a pilot.

    No sum over counts says what trials teach about votes or a verifier's choice, so data like those
    planned are drawn and evaluated. A new question has the covariates and weight of a pilot's.

    Parameters
    ----------
    pilot : Result
    system : int
    metric : Metric
    """

    pilot: Result
    system: int
    metric: Metric

    @cached_property
    def _model(self) -> PooledVotes | BestOfModel | WeightedVotes:
        """The model of the pilot."""
        rng = np.random.default_rng(1)
        if self.metric.verified:
            return verified_model(self.pilot, self.system, self.metric, _DRAWS, rng)
        votes = Declared.of_result(self.pilot).votes(self.system, _DRAWS, rng)
        assert isinstance(votes, PooledVotes)  # the table of capabilities asks for pooling
        return votes

    @cached_property
    def _values(self) -> list[float]:
        """Draws of the metric for questions like the pilot's."""
        drawn = self._model.fit([self.metric]).draw(DRAWS, np.random.default_rng(1), False)
        return [float(value) for value in drawn.metrics[:, 0, 1]]

    def measured(self, trials: int) -> list[Measured]:
        """Return what evaluations with so many trials of a question leave, by draw of the value."""
        questions = self.pilot.counts.shape[1]
        size = min(questions, _QUESTIONS)
        rng, total = np.random.default_rng([trials, self.system]), np.zeros(2)
        drawn = TrialDraws.of(self._model, _ROUNDS, rng)
        for number in track(range(_ROUNDS), f"evaluations with {trials} trials"):
            kept = np.flatnonzero(rng.permutation(questions) < size)
            answered = self._answered(kept, trials, rng)
            of_questions = [
                drawn.of_question(number, question, n, rng)
                for question, n in zip(kept.tolist(), answered, strict=True)
            ]
            total += size * self._variance(kept, of_questions, rng)
        return [Measured(value, total / _ROUNDS) for value in self._values]

    def _answered(self, kept: Indices, trials: int, rng: Rng) -> list[int]:
        """How many trials of questions give an answer that counts."""
        answers = self.pilot.data.answers
        if not self.metric.voted or answers is None or answers.rules.unanswered == "nobody":
            return [trials] * len(kept)
        lost = answers.unanswered[self.system, kept]
        had = self.pilot.trials[self.system, kept] - lost
        share = np.where(lost > 0, rng.beta(had + 1.0, lost + 1.0), 1.0)
        return [int(number) for number in rng.binomial(trials, share)]

    def _variance(self, kept: Indices, tried: Sequence[NewTrials], rng: Rng) -> Array:
        """Posterior variance of the metric given these trials; (targets,)."""
        among = np.zeros(self.pilot.counts.shape[1], bool)
        among[kept] = True
        counts = np.array([[(~new.right).sum(), new.right.sum()] for new in tried])
        declared = Declared.of_result(self.pilot, among).among([self.system])
        declared = replace(declared, counts=counts[None])
        if declared.ballots:
            declared = replace(declared, ballots=[[new.ballots for new in tried]])
        model: PooledVotes | VoteModel | BestOfModel | WeightedVotes
        if self.metric.verified:
            question = np.repeat(np.arange(len(tried)), [len(new.right) for new in tried])
            right, score, answer = (np.concatenate(column) for column in zip(*tried, strict=True))
            scores = counted_scores(
                question, right.astype(np.int8), score, (1, len(tried), 3),
                answer if self.metric.weighted else None,
            )  # fmt: skip
            model = declared.verified(0, self.metric.weighted, scores, _DRAWS, rng)
        else:
            model = declared.votes(0, _DRAWS, rng)
        posterior = model.fit([self.metric])
        variance: Array = posterior.variance_trial + posterior.variance_question
        return np.asarray(variance[0], float)


def by_labels(source: object, labels: object, plan: Callable[[int], pd.DataFrame]) -> pd.DataFrame:
    """Return the plans of a pilot for several numbers of trials to mark by hand."""
    pilot = Result.of(source) if isinstance(source, Fit) else None
    if pilot is None or pilot.judges is None:
        raise ArgumentError(
            "labels", f" must be left out without a judge that errs; got {labels!r:.80}. "
            "It goes with a pilot that was evaluated with ", Argument("judge", ...), ", or whose "
            "data have ", Argument("truth", ...), ".",
        )  # fmt: skip
    if not isinstance(labels, Sequence | np.ndarray) or len(labels) == 0:
        rule = f" must be a sequence of integers; got {labels!r:.80}. Try [0, 200, 1000]."
        raise ArgumentError("labels", rule)
    numbers = [whole_number("labels", number, 0) for number in labels]
    return pd.concat([plan(number).assign(labels=number) for number in numbers], ignore_index=True)
