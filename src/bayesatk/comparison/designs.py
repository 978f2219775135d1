"""What an evaluation that is planned would teach, from a pilot or a stated difficulty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import real_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.category_planning import category_design
from bayesatk.core.difficulty import Difficulty
from bayesatk.core.planning import design, difficulty_design
from bayesatk.data.answers import Ballots, possible
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import answer_moments, answer_posterior
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.result import Result

Array = NDArray[np.float64]
_DRAWS = 60  # of the pilot's hyperparameters
_ELECTIONS = 200  # simulated questions with votes, at least one of every question of the pilot
_VOTES = 200  # draws behind the variance of each
_NEAREST = 1e-6  # of means and correlations to 0 and 1


class Learning(Protocol):
    """What the evaluation of one system is expected to teach."""

    @property
    def value(self) -> float:
        """The metric of a new question."""
        ...

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions: for these, and for questions like these."""
        ...


# Given a number of trials: by draw of the difficulty distribution, and by system. None where so few
# trials cannot tell: a question tried once says nothing of how questions differ.
Designs = Callable[[int], list[list[Learning]]]


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


def designs_of(
    source: object, metric: Metric, scores: Sequence[float] | None
) -> tuple[Designs, int]:
    """Return the designs as a function of the trials, and the number of systems."""
    if scores is not None:
        scores = _checked_scores(scores)
    if metric.family.on_answers:
        if scores is not None:
            raise ValueError("scores must be left out for votes between answers.")
        return _votes(source, metric)
    if isinstance(source, xr.DataTree | Result):
        if scores is not None:
            raise ValueError("scores must be left out for a pilot, which has them.")
        pilot = Result.of(source)
        if pilot.difficulty is not None:
            return _of_families(pilot, metric)
        means, iccs, scores = _of_pilot(pilot)
    else:
        means, iccs = _stated(source, scores)
    systems = iccs.shape[1]
    _check_systems(systems)

    def by_draw(trials: int) -> list[list[Learning]]:
        if trials == 1 and metric.k > 1:
            return []
        return [
            [_one(metric, scores, m, float(r), trials) for m, r in zip(*pair, strict=True)]
            for pair in zip(means, iccs, strict=True)
        ]

    return by_draw, systems


def _checked_scores(scores: object) -> list[float]:
    if not isinstance(scores, Sequence | np.ndarray) or isinstance(scores, str):
        raise ValueError(f"scores must be a sequence of numbers; got {scores!r:.80}.")
    values = [real_number("scores: each", one) for one in scores]
    if len(set(values)) < 2 or not np.isfinite(values).all():
        raise ValueError(f"scores must be finite and not all the same; got {values}.")
    return values


def _check_systems(systems: int) -> None:
    if systems > 2:
        raise ArgumentError(
            Argument("source"),
            f" must be of one system or two; got {systems}. Plan for two at a time.",
        )


def _one(
    metric: Metric, scores: Sequence[float] | None, mean: Array, icc: float, trials: int
) -> Learning:
    if scores is None:
        return design(metric.credit, mean.item(), icc, trials)
    return category_design(metric.category_credit, scores, mean, icc, trials)


def _of_pilot(source: Result) -> tuple[Array, Array, list[float] | None]:
    """Means (draws, systems, categories or one), correlations, and the scores of categories."""
    posterior = source.posterior
    if "icc" not in posterior:
        raise ValueError(
            "source must be evaluated with pooling='partial', which says how difficult questions "
            f"are; got pooling={source.pooling!r}, form="
            f"{source.form!r}. Evaluate the pilot with it."
        )
    on_categories = "category" in posterior["mean_p"].dims
    mean, icc = posterior["mean_p"], posterior["icc"]
    scores = None
    if on_categories:
        scores = source.scores.tolist()
    else:
        mean = mean.expand_dims("category")
    flat_mean = _flat(mean.transpose("chain", "draw", "system", "category").values)
    flat_icc = _flat(icc.transpose("chain", "draw", "system").values)
    chosen = np.linspace(0, len(flat_icc) - 1, min(_DRAWS, len(flat_icc))).astype(int)
    return _inside(flat_mean[chosen]), _inside(flat_icc[chosen]), scores


def _of_families(pilot: Result, metric: Metric) -> tuple[Designs, int]:
    """Designs at draws of a difficulty distribution that need not be a Beta."""
    systems = len(pilot.systems)
    _check_systems(systems)
    found = [difficulty_draws(pilot.tree, system) for system in range(systems)]
    known = [one for one in found if one is not None]
    chosen = np.linspace(0, pilot.size - 1, min(_DRAWS, pilot.size)).astype(int)

    def by_draw(trials: int) -> list[list[Learning]]:
        if trials == 1 and metric.k > 1:
            return []
        return [
            [_at_draw(metric, one.among(slice(i, i + 1)), trials) for one in known]
            for i in chosen.tolist()
        ]

    return by_draw, systems


def _at_draw(metric: Metric, known: Difficulty, trials: int) -> Learning:
    """Return what a question teaches at one draw, kept from the edges like stated ones."""
    inside = replace(known, mean=_inside(known.mean), icc=_inside(known.icc))
    return difficulty_design(metric.credit, inside, trials)


def _flat(values: Array) -> Array:
    return values.reshape(-1, *values.shape[2:])


def _inside(values: Array) -> Array:
    return np.asarray(np.clip(values, _NEAREST, 1.0 - _NEAREST), float)


def _stated(source: Any, scores: Sequence[float] | None) -> tuple[Array, Array]:
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
        raise ValueError(
            f"source must be a result, (mean, icc) or {{system: (mean, icc)}}, {shape} strictly "
            f"between 0 and 1; got {source!r:.80}. Scored categories need scores=."
        )
    means, iccs = zip(*pairs, strict=True)
    return _inside(np.stack(means)[None]), _inside(np.array([iccs]))


def _votes(source: object, metric: Metric) -> tuple[Designs, int]:
    """Designs of votes: elections among answers like the pilot's, simulated."""
    pilot = Result.of(source) if isinstance(source, xr.DataTree | Result) else None
    answers = None if pilot is None else pilot.data.answers
    if pilot is None or answers is None:
        asked = source if pilot is None else " ".join(one.label for one in pilot.metrics)
        raise ValueError(
            f"source must be a pilot evaluated for {metric.label}, with pooling='none': the "
            "answers to a question have no distribution to state; got "
            f"{asked!r:.80}."
        )
    prior, systems = pilot.answer_prior, len(pilot.systems)
    _check_systems(systems)
    pilots = [answers.of(system) for system in range(systems)]
    silent = np.zeros_like(answers.unanswered)
    if answers.rules.unanswered == "exclude":
        silent = answers.unanswered

    means = [_population(own, metric.k, prior) for own in pilots]

    def by_draw(trials: int) -> list[list[Learning]]:
        rng = np.random.default_rng(0)
        each = [
            _elections(own, lost, metric.k, prior, trials, rng)
            for own, lost in zip(pilots, silent, strict=True)
        ]
        return [
            [replace(one, value=float(value)) for one, value in zip(each, drawn, strict=True)]
            for drawn in zip(*means, strict=True)
        ]

    return by_draw, systems


def _population(pilot: list[Ballots], k: int, prior: AnswerPrior) -> Array:
    """Draws of the metric for questions like the pilot's."""
    rng = np.random.default_rng(1)
    drawn = answer_posterior(pilot, [k], prior, _VOTES, rng).draw(_DRAWS, rng, False)
    return drawn.metrics[:, 0, 1]


def _elections(
    pilot: list[Ballots],
    lost: NDArray[np.int64],
    k: int,
    prior: AnswerPrior,
    trials: int,
    rng: np.random.Generator,
) -> Independent:
    """Elections on questions like the pilot's; ``lost`` counts its trials that gave no answer."""
    rounds = -(-_ELECTIONS // len(pilot))
    simulated = [
        _again(one, prior, _answered(one, missed, trials, rng), rng)
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


def _again(one: Ballots, prior: AnswerPrior, trials: int, rng: np.random.Generator) -> Ballots:
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
