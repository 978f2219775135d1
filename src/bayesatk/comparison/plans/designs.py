"""What an evaluation that is planned would teach, from a pilot or a stated difficulty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk._tools.messages import Argument, ArgumentError, real_number, whole_number
from bayesatk.comparison.plans.pilots import DRAWS, ComposedPilot
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.runs.planning import category_design, difficulty_design
from bayesatk.data.answers import Ballots, possible
from bayesatk.data.capabilities import reason, require
from bayesatk.data.study import outcome_values
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import VoteModel, answer_moments
from bayesatk.priors import AnswerPrior
from bayesatk.results.result import Fit, Result

_VOTES = 200  # draws behind the variance of each


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
class Independent:
    """Of questions that are not pooled: their own variance, and the spread between their means."""

    value: float
    trial: float
    between: float

    def variance(self, number: float) -> Array:
        """Posterior variance with so many questions.

        The bootstrap of posterior draws has the spread of those draws on top of their own variance.
        """
        trial_variance = self.trial / number
        return np.array(
            [trial_variance, trial_variance + (self.trial + self.between) / (number + 1.0)]
        )


def designs_of(
    source: object, metric: Metric, scores: Sequence[float] | None, labels: int | None = None
) -> tuple[Designs, int]:
    """Return the designs as a function of the trials, and the number of systems.

    Labels are the trials to mark by hand, of a pilot with a judge: as of `ComposedPilot`.
    """
    if scores is not None:
        scores = _checked_scores(scores)
    if metric.verified:
        raise ArgumentError(
            "metric", f" must be of marks, or a vote, for a plan; got {metric.label!r}: "
            f"{reason('verifier', 'plan')}. Plan for 'pass@{metric.k}', its limit.",
        )  # fmt: skip
    if metric.voted:
        if scores is not None:
            raise ArgumentError("scores", " must be left out for votes between answers.")
        return _votes(source, metric)
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


def questions_of_marks(metric: Metric, difficulty: Difficulty) -> Question:
    """Return what one question of a difficulty distribution is expected to teach."""
    inside = replace(difficulty, mean=_inside(difficulty.mean), icc=_inside(difficulty.icc))
    return partial(difficulty_design, metric.credit, inside)


def _of_scores(metric: Metric, scores: ArrayLike, mean: Array, icc: float) -> Question:
    credit = metric.category_credit
    return partial(category_design, credit, scores, _inside(mean), float(_inside(icc)))


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
    if scores is None:
        return [
            [questions_of_marks(metric, Difficulty.of_beta(mean, [icc])) for mean, icc in pairs]
        ]
    return [[_of_scores(metric, scores, mean, icc) for mean, icc in pairs]]


def _votes(source: object, metric: Metric) -> tuple[Designs, int]:
    """Designs of votes: elections among answers like the pilot's, simulated."""
    pilot = Result.of(source) if isinstance(source, Fit) else None
    answers = None if pilot is None else pilot.data.answers
    if pilot is None or answers is None:
        labels = "" if pilot is None else " ".join(metric.label for metric in pilot.metrics)
        raise ArgumentError(
            "source", f" must be a pilot evaluated for {metric.label}, with ",
            Argument("pooling", "none"), ": the answers to a question have no distribution to "
            f"state; got {labels or source!r:.80}.",
        )  # fmt: skip
    require("plan", outcome_values(pilot.data), "source")
    prior, systems = pilot.answer_prior, len(pilot.systems)
    if not isinstance(prior, AnswerPrior):
        raise ArgumentError(
            "source", " must be without pooling for a plan of votes, which simulates "
            f"answers to single questions; got pooling={pilot.pooling!r}. Evaluate the same data "
            "again: pass ", Argument("pooling", "none"), ".",
        )  # fmt: skip
    _check_systems(pilot.systems)
    pilots = [answers.of(system) for system in range(systems)]
    silent = answers.unanswered * (answers.rules.unanswered == "exclude")

    weight = np.ones(len(pilots[0])) if pilot.weight is None else pilot.weight
    means = [_population(ballots, metric, prior, weight) for ballots in pilots]

    def by_draw(trials: int) -> Expected:
        rng = np.random.default_rng(0)
        variances = [
            _simulated_votes(ballots, lost, metric.k, prior, trials, weight, rng)
            for ballots, lost in zip(pilots, silent, strict=True)
        ]
        return [
            [
                replace(variance, value=float(value))
                for variance, value in zip(variances, drawn, strict=True)
            ]
            for drawn in zip(*means, strict=True)
        ]

    return by_draw, systems


def _population(pilot: list[Ballots], metric: Metric, prior: AnswerPrior, weight: Array) -> Array:
    """Draws of the metric for questions like the pilot's."""
    rng = np.random.default_rng(1)
    drawn = VoteModel(pilot, prior, _VOTES, rng, weight).fit([metric]).draw(DRAWS, rng, False)
    return drawn.metrics[:, 0, 1]


def _simulated_votes(
    pilot: list[Ballots],
    lost: Ints,
    k: int,
    prior: AnswerPrior,
    trials: int,
    weight: Array,
    rng: Rng,
) -> Independent:
    """Elections on questions like the pilot's; ``lost`` counts its trials that gave no answer."""
    rounds = -(-200 // len(pilot))  # 200 elections, at least one of every question of the pilot
    simulated = [
        _redrawn(ballots, prior, _answered(ballots, missed, trials, rng), rng)
        for ballots, missed in zip(pilot, lost.tolist(), strict=True)
        for _ in range(rounds)
    ]
    moments = answer_moments(simulated, [k], prior, _VOTES, rng)
    mean, variance = moments.mean[:, 0], moments.variance[:, 0]
    share = np.repeat(weight, rounds) / (rounds * weight.sum())
    value = float(share @ mean)
    square = share**2 * len(share)
    return Independent(value, float(square @ variance), float(square @ (mean - value) ** 2))


def _answered(ballots: Ballots, lost: int, trials: int, rng: Rng) -> int:
    """How many of so many trials give an answer that counts."""
    if not lost:
        return trials
    had = int(ballots.count.sum())
    if trials <= had + lost:
        return int(rng.hypergeometric(had, lost, trials))
    return had + int(rng.binomial(trials - had - lost, rng.beta(had + 1.0, lost + 1.0)))


def _redrawn(ballots: Ballots, prior: AnswerPrior, trials: int, rng: Rng) -> Ballots:
    """Answers to such a question: some of its own, or all of them and more from its posterior.

    Some of its own have the distribution of fewer trials, whatever the prior.
    """
    possible_votes = possible(ballots, prior)
    silent = [] if possible_votes.nobody is None else [possible_votes.nobody]
    had = np.append(possible_votes.count, silent).astype(np.int64)
    if trials <= had.sum():
        drawn = rng.multivariate_hypergeometric(had, trials)
    else:
        drawn = had + rng.multinomial(trials - had.sum(), rng.dirichlet(had + prior.concentration))
    count = drawn[: len(possible_votes.count)]
    has_votes = count > 0
    return Ballots(
        count[has_votes], possible_votes.correct[has_votes], drawn[-1].item() if silent else None
    )


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
