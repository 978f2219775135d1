"""Expected information of a new question, at draws of a pilot's difficulties or stated ones.

The pilot's hyperparameters are drawn from its posterior. New questions have the covariates and the
weights of the pilot's in the same proportions, and no prior trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy.special import logit, logsumexp

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import Argument, ArgumentError, real_number
from bayesatk.comparison.pairs.together import joint_draws
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.weighted_points import certain, start_of
from bayesatk.metrics.category_credit import ScoredCredit, compositions
from bayesatk.metrics.credit import log_multinomial
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import system_model
from bayesatk.posterior.posterior import FamilyFit
from bayesatk.priors import DirichletHyperPrior, HyperPrior
from bayesatk.results.result import Fit, Result

_HYPERPARAMETER_DRAWS = 60  # of the pilot's hyperparameters
_MAX_COMPOSITIONS = 1000  # of trials by category; if there are more, some are drawn
_COUNTS_DRAWN = 1000
_TRIALS_OF_GRID = 1000  # for which p of questions is drawn
_DIFFERENCE_STEP = 1e-3  # of central differences
_ROWS_MAX = 300  # of covariates; of more some are drawn
_DISTANCE_FROM_ENDS = 1e-6  # of a stated mean or icc, at least


@dataclass(frozen=True)
class ExpectedInformation:
    """Expected information of a question at one difficulty distribution.

    Parameters
    ----------
    value : float
        Expected metric of a new question.
    question_variance : ndarray, shape (targets,)
        Expected posterior variance of the metric of a question if the hyperparameters are known,
        which the mean over questions divides by their number.
    information : ndarray, shape (hyperparameters, hyperparameters)
        Fisher information of one question about the hyperparameters.
    prior : ndarray, shape (hyperparameters, hyperparameters)
        Information of their priors.
    slopes : ndarray, shape (targets, hyperparameters)
        Derivatives of the expected metric: of these questions, and of a new one.
    """

    value: float
    question_variance: Array
    information: Array
    prior: Array
    slopes: Array

    def variance(self, questions: float) -> Array:
        """Posterior variance of the mean over a number of questions, by target."""
        covariance = np.linalg.inv(questions * self.information + self.prior)
        shared = np.einsum("ti,ij,tj->t", self.slopes, covariance, self.slopes)
        return np.asarray(shared + self.question_variance / questions)


@dataclass(frozen=True, eq=False)
class Pilot:
    """The model of one system, and draws of its hyperparameters.

    Parameters
    ----------
    model : CountModel
    draws : list of (FamilyFit, ndarray)
        Difficulty family and hyperparameters (1, hyperparameters) of each draw.
    metric : Metric
    judged : MetricFunction
        The metric on the scale of the data.
    alike : bool
        Whether all questions have one success probability.
    rank : ndarray of int, optional
        Of a pilot of two systems: the place of this system's mean in as many of their joint draws.
    """

    model: CountModel
    draws: list[tuple[FamilyFit, Array]]
    metric: Metric
    judged: Any
    alike: bool = False
    rank: Ints | None = None

    @classmethod
    def of(cls, pilot: Result, system: int, metric: Metric) -> "Pilot":
        """Return the pilot of the system at a position."""
        model = system_model(pilot.study, system)
        rng = np.random.default_rng(0)
        draws = [
            (law.fit, theta[None])
            for law, place in model.draw_points(_HYPERPARAMETER_DRAWS, rng)
            for theta in law.points.theta[place]
        ]
        order, judged = rng.permutation(len(draws)).tolist(), pilot.scale.judged(metric)
        rank = None
        if len(pilot.systems) == 2 and metric in [*pilot.grid]:
            means = joint_draws(pilot)[1, [*pilot.grid].index(metric), system]
            some = np.random.default_rng(1).choice(len(means), len(draws), len(means) < len(draws))
            rank = np.argsort(np.argsort(means[some]))
        alike = pilot.pooling == "complete"
        return cls(model, [draws[i] for i in order], metric, judged, alike, rank)

    @classmethod
    def stated(
        cls, metric: Metric, scores: Sequence[float] | None, mean: Array, icc: float
    ) -> "Pilot":
        """Return questions of a stated mean, or shares of scores, and correlation.

        Examples
        --------
        >>> from bayesatk.metrics.grid import one_metric
        >>> pilot = Pilot.stated(one_metric("pass@1"), None, np.array([0.5]), 1 / 3)
        >>> pilot.expected_information(4)[0].value
        0.5
        """
        levels = None if scores is None else tuple(scores)
        prior = HyperPrior(families="beta") if levels is None else DirichletHyperPrior()
        untried = np.zeros((1, 2 if levels is None else len(levels)), np.int64)
        model = CountModel.of(prior, untried, scores=levels)
        (family,) = model.family_prior
        predictor, fields = model.part(family)
        theta = start_of(fields, float(mean[0]), float(logit(icc)))
        judged: Any = metric
        if levels is not None:
            theta[fields.slices["mean"]] = np.log(mean[:-1] / mean[-1])
            judged = ScoredCredit(metric.category_credit, np.array(levels))
        return cls(
            model, [(FamilyFit(family, predictor, fields, certain()), theta[None])], metric, judged
        )

    def expected_information(self, trials: int) -> list[ExpectedInformation]:
        """Return the expected information of a question with these trials, by draw.

        The draws of two systems of a pilot are in the order of their joint draws. Empty for single
        trials and k > 1: they do not identify how questions differ.
        """
        if trials == 1 and self.metric.k > 1 and not self.alike:
            return []
        by_draw = [self._design(place, trials) for place in self.places]
        if self.rank is None:
            return by_draw
        by_value = sorted(by_draw, key=lambda information: information.value)
        return [by_value[place] for place in self.rank]

    @cached_property
    def rows(self) -> "QuestionRows":
        """Covariates of new questions."""
        return QuestionRows.of(self.model.cells)

    @cached_property
    def places(self) -> list["DrawnDifficulty"]:
        """The draws with what is the same for every number of trials."""
        return [
            DrawnDifficulty(number, *draw, Directions.of(self.rows, *draw), self.rows.share)
            for number, draw in enumerate(self.draws)
        ]

    def _design(self, place: "DrawnDifficulty", trials: int) -> ExpectedInformation:
        """Return the information of one draw, from central differences in the hyperparameters."""
        rows, directions, size = self.rows, place.directions, len(place.directions.steps)
        moves = np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
        shifts = _DIFFERENCE_STEP * moves @ directions.steps
        theta, offset = place.theta + shifts[:, :-1], directions.offset + shifts[:, -1:]
        counts, drawn = place.counts(trials)
        observation = place.observation(counts)
        logs = observation.log_states(theta, offset) + log_multinomial(counts)
        if drawn:
            logs -= logsumexp(logs[0] + np.log(rows.share)[:, None], axis=0) + np.log(len(counts))
        pmf = np.exp(logs)
        observed, predictive = observation.both([self.judged], theta, offset)
        given_counts, of_new_question = observed[..., 0, :2], predictive[..., 0, :2]
        plus, minus = slice(1, size + 1), slice(size + 1, None)

        def derivative(values: Array) -> Array:
            return np.asarray((values[plus] - values[minus]) / (2.0 * _DIFFERENCE_STEP))

        scores = derivative(pmf)
        ratio = scores / np.maximum(pmf[0], 1e-300)
        slopes = np.stack(
            [
                np.einsum("ans,ns->na", derivative(given_counts[..., 0]), pmf[0]),
                derivative(of_new_question[..., 0]).T,
            ],
            axis=1,
        )
        variance = np.einsum("ns,ns->n", given_counts[0, ..., 1], pmf[0])
        information = np.einsum("ans,bns->nab", ratio, scores)
        chain = directions.chain
        information = np.einsum("r,rai,rab,rbj->ij", rows.share, chain, information, chain)
        slopes = np.einsum("r,rta,rai->ti", rows.weight, slopes, chain)
        question_variance = np.array([variance @ rows.square, 0.0])
        if self.model.resampled:  # Bayesian bootstrap of the questions
            slopes[1] = slopes[0]
            of_new = of_new_question[0, :, 1] @ rows.square
            question_variance[1] = question_variance[0] + of_new
        value = float(of_new_question[0, :, 0] @ rows.weight)
        return ExpectedInformation(value, question_variance, information, place.prior, slopes)


@dataclass(frozen=True)
class QuestionRows:
    """Covariates of new questions, in the proportions of a pilot's.

    Parameters
    ----------
    cells : Cells
        A cell for each row of covariates.
    share, weight, square : ndarray, shape (rows,)
        Share of each row among the questions, in weighted means, and in the sum of squared weights
        times the number of questions.
    """

    cells: Cells
    share: Array
    weight: Array
    square: Array

    @classmethod
    def of(cls, cells: Cells) -> "QuestionRows":
        """Find the distinct rows of covariates; where they are very many, some of them."""
        rows, row = np.unique(cells.rows, axis=0, return_inverse=True)
        row, questions = row.ravel(), cells.count.sum()
        if not cells.rows.shape[1]:
            rows, row = np.zeros((1, 0)), np.zeros(len(cells.count), np.intp)
        count, weight, square = (
            np.bincount(row, values)
            for values in (cells.count, cells.share_powers[0], cells.share_powers[1])
        )
        kept = np.arange(len(rows))
        if len(rows) > _ROWS_MAX:
            kept = np.random.default_rng(0).choice(len(rows), _ROWS_MAX, replace=False)
        share, weight, square = (
            column[kept] * (column.sum() / column[kept].sum())
            for column in (count / questions, weight, square * questions)
        )
        return cls(replace(cells, rows=rows[kept], count=count[kept]), share, weight, square)


@dataclass(frozen=True)
class Directions:
    """What a design is differentiated by, at the offsets of all rows of covariates.

    Covariates act through the offset alone, so that derivatives in slopes are those in the offset
    times the covariates.

    Parameters
    ----------
    offset : ndarray, shape (rows,)
    steps : ndarray, shape (directions, hyperparameters + 1)
        Hyperparameters other than slopes, and the offset, the last column.
    chain : ndarray, shape (rows, directions, hyperparameters)
        Derivatives of the directions' coordinates in the hyperparameters.
    """

    offset: Array
    steps: Array
    chain: Array

    @classmethod
    def of(cls, rows: "QuestionRows", fit: FamilyFit, theta: Array) -> "Directions":
        """Return them for one draw of the hyperparameters, theta (1, hyperparameters)."""
        covariates, size = rows.cells.rows, theta.shape[1]
        if not covariates.shape[1]:
            return cls(np.zeros(1), np.eye(size, size + 1), np.eye(size)[None])
        slopes = np.arange(size)[fit.fields.slices["slopes"]]
        others = np.setdiff1d(np.arange(size), slopes)
        steps = np.eye(size + 1)[[*others, size]]
        chain = np.repeat(steps[None, :, :-1], len(covariates), axis=0)
        chain[:, -1, slopes] = covariates
        offset = replace(fit.predictor, cells=rows.cells).offsets(theta)[0]
        return cls(offset, steps, chain)


@dataclass(frozen=True, eq=False)
class DrawnDifficulty:
    """One draw of a pilot's hyperparameters, theta (1, hyperparameters), and its number.

    `share` has the share of questions with each row of covariates.
    """

    number: int
    fit: FamilyFit
    theta: Array
    directions: Directions
    share: Array

    @cached_property
    def prior(self) -> Array:
        """Information of the priors of the hyperparameters."""
        return _prior_information(self.fit, self.theta)

    @cached_property
    def question_p(self) -> Array:
        """Probabilities of the levels of new questions, (draws, levels)."""
        rng, number = np.random.default_rng([self.number, 0]), _COUNTS_DRAWN
        # Draws are as fine as the grid of scores, which is made for the question tried most.
        tried = np.repeat([[0], [_TRIALS_OF_GRID // self._levels]], self._levels, axis=1)
        offset = rng.choice(self.directions.offset, (number, 1), p=self.share)
        theta, state = np.repeat(self.theta, number, axis=0), np.zeros(1, np.intp)
        return np.asarray(self.observation(tried).draw(theta, offset, state, rng)[:, 0])

    def counts(self, trials: int) -> tuple[Any, bool]:
        """Return the possible counts of a question, or drawn ones if these are very many."""
        levels = self._levels
        if levels == 2 or comb(trials + levels - 1, levels - 1) <= _MAX_COMPOSITIONS:
            return compositions(trials, levels), False
        rng = np.random.default_rng([self.number, trials])
        return rng.multinomial(trials, self.question_p), True

    @property
    def _levels(self) -> int:
        return int(self.fit.predictor.observation.states.counts.shape[1])

    def observation(self, counts: Any) -> Any:
        """Return the observation with these counts as its states."""
        zeros, ones = np.zeros(counts.shape), np.ones(len(counts))
        observation: Any = self.fit.predictor.observation
        states = States(counts, zeros, ones, np.arange(len(counts)))
        return replace(observation, states=states)


def pilots_of(source: object, metric: Metric, scores: Sequence[float] | None = None) -> list[Pilot]:
    """Return the pilots of one or two systems, from a result or stated difficulties."""
    if scores is not None:
        scores = _checked_scores(scores)
    if not isinstance(source, Fit):
        return _stated(source, metric, scores)
    if scores is not None:
        raise ArgumentError("scores", " must be left out for a pilot, which has them.")
    pilot = Result.of(source)
    pilot.require("plan", "source")
    _check_systems(pilot.systems)
    return [Pilot.of(pilot, system, metric) for system in range(len(pilot.systems))]


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
            "source",
            f" must be of one system or two; got {len(systems)}. Plan for two "
            "at a time; of a pilot choose them: ",
            Argument("system", list(systems[:2])),
            ".",
        )


def _stated(source: Any, metric: Metric, scores: Sequence[float] | None) -> list[Pilot]:
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
            "source",
            f" must be a result, (mean, icc) or {{system: (mean, icc)}}, "
            f"{shape} strictly between 0 and 1; got {source!r:.80}. Scored categories need ",
            Argument("scores", ...),
            ".",
        )
    bounds = _DISTANCE_FROM_ENDS, 1.0 - _DISTANCE_FROM_ENDS
    return [
        Pilot.stated(metric, scores, np.clip(mean, *bounds), float(np.clip(icc, *bounds)))
        for mean, icc in pairs
    ]


def _prior_information(fit: FamilyFit, centre: Array) -> Array:
    """Hessian of minus the log prior density, with negative eigenvalues replaced by 1e-9."""
    fields, size = replace(fit.fields, pairs=()), centre.shape[1]
    shifts = _DIFFERENCE_STEP * np.eye(size)
    combinations = shifts[:, None] + shifts[None], shifts[:, None] - shifts[None]
    points = [
        centre + sign * move.reshape(-1, size) for move in combinations for sign in (1.0, -1.0)
    ]
    logs = [fields.log_density(theta).reshape(size, size) for theta in points]
    curvature = -(logs[0] + logs[1] - logs[2] - logs[3]) / (4.0 * _DIFFERENCE_STEP**2)
    values, vectors = np.linalg.eigh(curvature)
    return (vectors * np.maximum(values, 1e-9)) @ vectors.T
