"""What an evaluation that is planned would teach, from a pilot or a stated difficulty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesatk._tools.arguments import real_number, whole_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.plans.pilots import DRAWS, ComposedPilot
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.runs.planning import category_design, difficulty_design
from bayesatk.data.answers import Ballots, possible
from bayesatk.data.capabilities import reason, require
from bayesatk.data.study import outcome_values
from bayesatk.judge_error import RATES
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import VoteModel, answer_moments
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty import difficulty_draws, flat_draws
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

Array = NDArray[np.float64]
_VOTES = 200  # draws behind the variance of each


class ExpectedVariance(Protocol):
    """Expected posterior variance of the metric of one system, for a planned evaluation."""

    @property
    def value(self) -> float:
        """Expected value of the metric for a new question."""
        ...

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions: for these, and for questions like these."""
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

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions.

        The bootstrap of posterior draws has the spread of those draws on top of their own variance.
        """
        trial_variance = self.trial / questions
        return np.array(
            [trial_variance, trial_variance + (self.trial + self.between) / (questions + 1.0)]
        )


def designs_of(
    source: object, metric: Metric, scores: Sequence[float] | None
) -> tuple[Designs, int]:
    """Return the designs as a function of the trials, and the number of systems."""
    if scores is not None:
        scores = _checked_scores(scores)
    if metric.verified:
        raise ArgumentError(
            Argument("metric"), f" must be of marks, or a vote, for a plan; got {metric.label!r}: "
            f"{reason('verifier', 'plan')}. Plan for 'pass@{metric.k}', its limit.",
        )  # fmt: skip
    if metric.voted:
        if scores is not None:
            raise ArgumentError(Argument("scores"), " must be left out for votes between answers.")
        return _votes(source, metric)
    if isinstance(source, MarkedPilot):
        questions_by_draw = source.questions()
    elif not isinstance(source, xr.DataTree | Result):
        questions_by_draw = _stated(source, metric, scores)
    elif scores is None:
        questions_by_draw = _of_pilot(Result.of(source), metric)
    else:
        raise ArgumentError(Argument("scores"), " must be left out for a pilot, which has them.")
    systems = len(questions_by_draw[0])

    def by_draw(trials: int) -> Expected:
        if trials == 1 and metric.k > 1:
            return []
        return [[question(trials) for question in row] for row in questions_by_draw]

    return by_draw, systems


def _checked_scores(scores: object) -> list[float]:
    if not isinstance(scores, Sequence | np.ndarray) or isinstance(scores, str):
        rule = f" must be a sequence of numbers; got {scores!r:.80}."
        raise ArgumentError(Argument("scores"), rule)
    values = [real_number("scores: each", score) for score in scores]
    if len(set(values)) < 2 or not np.isfinite(values).all():
        rule = f" must be finite and not all the same; got {values}."
        raise ArgumentError(Argument("scores"), rule)
    return values


def _check_systems(systems: Sequence[object]) -> None:
    if len(systems) > 2:
        raise ArgumentError(
            Argument("source"), f" must be of one system or two; got {len(systems)}. Plan for two "
            "at a time; of a pilot choose them: ", Argument("system", list(systems[:2])), ".",
        )  # fmt: skip


def _of_pilot(pilot: Result, metric: Metric) -> list[list[Question]]:
    """Questions at some draws of the pilot's difficulty distribution, by draw and system."""
    pilot.require("plan", "source")
    _check_systems(pilot.systems)
    if pilot.grouping is not None:
        raise ArgumentError(
            Argument("source"), " must be without groups here: only the plan of a width takes "
            f"them. Got {len(pilot.grouping.labels)} groups. Evaluate the same data without ",
            Argument("group"), ".",
        )  # fmt: skip
    by_system = [
        ComposedPilot.of(pilot, system, metric, DRAWS).questions()
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
            Argument("source"), f" must be a result, (mean, icc) or {{system: (mean, icc)}}, "
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
    pilot = Result.of(source) if isinstance(source, xr.DataTree | Result) else None
    answers = None if pilot is None else pilot.data.answers
    if pilot is None or answers is None:
        labels = "" if pilot is None else " ".join(metric.label for metric in pilot.metrics)
        raise ArgumentError(
            Argument("source"), f" must be a pilot evaluated for {metric.label}, with ",
            Argument("pooling", "none"), ": the answers to a question have no distribution to "
            f"state; got {labels or source!r:.80}.",
        )  # fmt: skip
    require("plan", outcome_values(pilot.data), "source")
    prior, systems = pilot.answer_prior, len(pilot.systems)
    if not isinstance(prior, AnswerPrior):
        raise ArgumentError(
            Argument("source"), " must be without pooling for a plan of votes, which simulates "
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
    lost: NDArray[np.int64],
    k: int,
    prior: AnswerPrior,
    trials: int,
    weight: Array,
    rng: np.random.Generator,
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


def _answered(ballots: Ballots, lost: int, trials: int, rng: np.random.Generator) -> int:
    """How many of so many trials give an answer that counts."""
    if not lost:
        return trials
    had = int(ballots.count.sum())
    if trials <= had + lost:
        return int(rng.hypergeometric(had, lost, trials))
    return had + int(rng.binomial(trials - had - lost, rng.beta(had + 1.0, lost + 1.0)))


def _redrawn(
    ballots: Ballots, prior: AnswerPrior, trials: int, rng: np.random.Generator
) -> Ballots:
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
            or "truth_count" in result.data.dataset
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
        draw_indices = np.linspace(0, size - 1, min(DRAWS, size)).astype(int)
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
        (judge,) = self.result.judges.calibrated()
        share = float(self.result.hyper("mean_p", 0).mean())
        sizes = judge.p + self.labels * share, judge.n + self.labels * (1.0 - share)
        prior_trials = 2.0  # that a uniform prior of a rate counts as
        rate_variances = [
            mean * (1.0 - mean) / (size + prior_trials + 1.0)
            for mean, size in zip((s.mean(), f.mean()), sizes, strict=True)
        ]
        terms = np.stack([np.ones_like(s), s - s.mean(), f - f.mean()], axis=1)
        values = metric_values(self.result.posterior, self.metric).sel(target=list(TARGETS))
        slope = np.linalg.lstsq(terms, flat_draws(values, 0), rcond=None)[0][1:]
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
