"""What an evaluation that is planned would teach, from a pilot or a stated difficulty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesatk._tools.arguments import real_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.runs.planning import category_design, difficulty_design
from bayesatk.data.answers import Ballots, possible
from bayesatk.data.capabilities import require
from bayesatk.data.study import outcome_values
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import VoteModel, answer_moments
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.result import Result

Array = NDArray[np.float64]
_DRAWS = 60  # of the pilot's hyperparameters
_SIMULATED_QUESTIONS = 200  # with votes, at least one of every question of the pilot
_VOTES = 200  # draws behind the variance of each
_NEAREST = 1e-6  # of means and correlations to 0 and 1


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
Designs = Callable[[int], list[list[ExpectedVariance]]]


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
        own = self.trial / questions
        return np.array([own, own + (self.trial + self.between) / (questions + 1.0)])


@runtime_checkable
class Pilot(Protocol):
    """A pilot that brings more than a difficulty distribution, such as the error of a judge."""

    def questions(self) -> list[list[Question]]:
        """Questions at some draws of the pilot, by draw and system."""
        ...


def designs_of(
    source: object, metric: Metric, scores: Sequence[float] | None
) -> tuple[Designs, int]:
    """Return the designs as a function of the trials, and the number of systems."""
    if scores is not None:
        scores = _checked_scores(scores)
    if metric.voted:
        if scores is not None:
            raise ArgumentError(Argument("scores"), " must be left out for votes between answers.")
        return _votes(source, metric)
    if isinstance(source, Pilot):
        known = source.questions()
    elif not isinstance(source, xr.DataTree | Result):
        known = _stated(source, metric, scores)
    elif scores is None:
        known = _of_pilot(Result.of(source), metric)
    else:
        raise ArgumentError(Argument("scores"), " must be left out for a pilot, which has them.")
    systems = len(known[0])
    _check_systems(systems)

    def by_draw(trials: int) -> list[list[ExpectedVariance]]:
        if trials == 1 and metric.k > 1:
            return []
        return [[one(trials) for one in row] for row in known]

    return by_draw, systems


def _checked_scores(scores: object) -> list[float]:
    if not isinstance(scores, Sequence | np.ndarray) or isinstance(scores, str):
        rule = f" must be a sequence of numbers; got {scores!r:.80}."
        raise ArgumentError(Argument("scores"), rule)
    values = [real_number("scores: each", one) for one in scores]
    if len(set(values)) < 2 or not np.isfinite(values).all():
        rule = f" must be finite and not all the same; got {values}."
        raise ArgumentError(Argument("scores"), rule)
    return values


def _check_systems(systems: int) -> None:
    if systems > 2:
        raise ArgumentError(
            Argument("source"),
            f" must be of one system or two; got {systems}. Plan for two at a time.",
        )


def _of_pilot(pilot: Result, metric: Metric) -> list[list[Question]]:
    """Questions at some draws of the pilot's difficulty distribution, by draw and system."""
    pilot.require("plan", "source")
    posterior = pilot.posterior
    chosen = np.linspace(0, pilot.size - 1, min(_DRAWS, pilot.size)).astype(int)
    by_system = []
    for system in range(len(pilot.systems)):
        difficulty = difficulty_draws(pilot.tree, system)
        if difficulty is None:
            own = posterior.isel(system=system)
            means = own["mean_p"].transpose("chain", "draw", "category").values
            means = means.reshape(-1, means.shape[-1])[chosen]
            iccs = pilot.hyper("icc", system)[chosen]
            by_system.append(
                [_of_scores(metric, pilot.scores, *one) for one in zip(means, iccs, strict=True)]
            )
        else:
            draws = [difficulty.among([i]) for i in chosen.tolist()]
            by_system.append([questions_of_marks(metric, one) for one in draws])
    return [list(row) for row in zip(*by_system, strict=True)]


def questions_of_marks(metric: Metric, known: Difficulty) -> Question:
    """Return what one question of a difficulty distribution is expected to teach."""
    inside = replace(known, mean=_inside(known.mean), icc=_inside(known.icc))
    return partial(difficulty_design, metric.credit, inside)


def _of_scores(metric: Metric, scores: ArrayLike, mean: Array, icc: float) -> Question:
    credit = metric.category_credit
    return partial(category_design, credit, scores, _inside(mean), float(_inside(icc)))


def _inside(values: ArrayLike) -> Array:
    return np.asarray(np.clip(values, _NEAREST, 1.0 - _NEAREST), float)


def _stated(source: Any, metric: Metric, scores: Sequence[float] | None) -> list[list[Question]]:
    stated = list(source.values()) if isinstance(source, Mapping) else [source]
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
        asked = source if pilot is None else " ".join(one.label for one in pilot.metrics)
        raise ArgumentError(
            Argument("source"), f" must be a pilot evaluated for {metric.label}, with ",
            Argument("pooling", "none"), ": the answers to a question have no distribution to "
            f"state; got {asked!r:.80}.",
        )  # fmt: skip
    require("plan", outcome_values(pilot.data), "source")
    prior, systems = pilot.answer_prior, len(pilot.systems)
    _check_systems(systems)
    pilots = [answers.of(system) for system in range(systems)]
    silent = np.zeros_like(answers.unanswered)
    if answers.rules.unanswered == "exclude":
        silent = answers.unanswered

    means = [_population(own, metric, prior) for own in pilots]

    def by_draw(trials: int) -> list[list[ExpectedVariance]]:
        rng = np.random.default_rng(0)
        each = [
            _simulated_votes(own, lost, metric.k, prior, trials, rng)
            for own, lost in zip(pilots, silent, strict=True)
        ]
        return [
            [replace(one, value=float(value)) for one, value in zip(each, drawn, strict=True)]
            for drawn in zip(*means, strict=True)
        ]

    return by_draw, systems


def _population(pilot: list[Ballots], metric: Metric, prior: AnswerPrior) -> Array:
    """Draws of the metric for questions like the pilot's."""
    rng = np.random.default_rng(1)
    drawn = VoteModel(pilot, prior, _VOTES, rng).fit([metric]).draw(_DRAWS, rng, False)
    return drawn.metrics[:, 0, 1]


def _simulated_votes(
    pilot: list[Ballots],
    lost: NDArray[np.int64],
    k: int,
    prior: AnswerPrior,
    trials: int,
    rng: np.random.Generator,
) -> Independent:
    """Elections on questions like the pilot's; ``lost`` counts its trials that gave no answer."""
    rounds = -(-_SIMULATED_QUESTIONS // len(pilot))
    simulated = [
        _redrawn(one, prior, _answered(one, missed, trials, rng), rng)
        for one, missed in zip(pilot, lost.tolist(), strict=True)
        for _ in range(rounds)
    ]
    found = answer_moments(simulated, [k], prior, _VOTES, rng)
    mean, variance = found.mean[:, 0], found.variance[:, 0]
    return Independent(float(mean.mean()), float(variance.mean()), float(mean.var()))


def _answered(one: Ballots, lost: int, trials: int, rng: np.random.Generator) -> int:
    """How many of so many trials give an answer that counts."""
    if not lost:
        return trials
    had = int(one.count.sum())
    if trials <= had + lost:
        return int(rng.hypergeometric(had, lost, trials))
    return had + int(rng.binomial(trials - had - lost, rng.beta(had + 1.0, lost + 1.0)))


def _redrawn(one: Ballots, prior: AnswerPrior, trials: int, rng: np.random.Generator) -> Ballots:
    """Answers to such a question: some of its own, or all of them and more from its posterior.

    Some of its own have the distribution of fewer trials, whatever the prior.
    """
    known = possible(one, prior)
    silent = [] if known.nobody is None else [known.nobody]
    had = np.append(known.count, silent).astype(np.int64)
    if trials <= had.sum():
        drawn = rng.multivariate_hypergeometric(had, trials)
    else:
        drawn = had + rng.multinomial(trials - had.sum(), rng.dirichlet(had + prior.concentration))
    count = drawn[: len(known.count)]
    given = count > 0
    return Ballots(count[given], known.correct[given], drawn[-1].item() if silent else None)
