"""New questions like those of a pilot, and new groups of them.

The pilot's hyperparameters are drawn from its posterior. New questions have the covariates and the
weights of the pilot's in the same proportions, and no prior trials.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import comb
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import gammaln, logit, logsumexp

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError, whole_number
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.observations import Observation
from bayesatk.core.program.points import certain, start_of
from bayesatk.core.program.predictor import Predictor
from bayesatk.metrics.category_credit import Judged, compositions
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.count_posterior import FamilyFit
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import DirichletHyperPrior, HyperPrior
from bayesatk.results.result import Result

DRAWS = 60  # of the pilot's hyperparameters
_LISTED = 2000  # counts of categories beyond which they are drawn
_DRAWN = 4000
_EFFECTS = 7  # Gauss nodes of the effect of a group
_STEP = 1e-3  # of central differences


@dataclass(frozen=True)
class Design:
    """What a question, or a group of them, is expected to teach at one difficulty distribution.

    Parameters
    ----------
    value : float
        The metric of a new question.
    own : ndarray, shape (targets,)
        Expected posterior variance of what is of one question (group) alone, the distribution
        known: it falls as one over their number.
    information : ndarray, shape (hyperparameters, hyperparameters)
        Fisher information of one about the hyperparameters.
    prior : ndarray, shape (hyperparameters, hyperparameters)
        Information of their priors.
    slopes : ndarray, shape (targets, hyperparameters)
        Derivatives of the expected metric: of these questions, of a new one, of new groups.
    """

    value: float
    own: Array
    information: Array
    prior: Array
    slopes: Array

    def variance(self, number: float) -> Array:
        """Posterior variance with so many questions, or groups, by target."""
        covariance = np.linalg.inv(number * self.information + self.prior)
        shared = np.einsum("ti,ij,tj->t", self.slopes, covariance, self.slopes)
        return np.asarray(shared + self.own / number)


@dataclass(frozen=True)
class Counts:
    """What may be counted of a question, at offsets from the law's centre.

    Parameters
    ----------
    observation : Observation
        With a state for each count.
    metric : MetricFunction
    log_ways : ndarray, shape (counts,)
        Log number of orders of trials, less the log density by which counts were drawn.
    """

    observation: Observation
    metric: Any
    log_ways: Array

    def probability(self, theta: Array, offset: Array) -> Array:
        """Probability of each count, (points, offsets, counts); over its density if drawn."""
        return np.exp(self.observation.log_states(theta, offset) + self.log_ways)

    def given(self, theta: Array, offset: Array) -> tuple[Array, Array]:
        """Mean and variance of the metric given each count; (points, offsets, counts)."""
        values = self.observation.cumulants([self.metric], theta, offset)
        return values[..., 0, 0], values[..., 0, 1]

    def new(self, theta: Array, offset: Array) -> tuple[Array, Array]:
        """Mean and variance of the metric between new questions; (points, offsets)."""
        values = self.observation.new_cumulants([self.metric], theta, offset)
        return values[..., 0, 0], values[..., 0, 1]


@dataclass(frozen=True)
class Learned:
    """What one question of a group teaches, by the effect z of its group, in sds.

    Coordinates are the hyperparameters and, last, z; without groups z is 0 and moves nothing. The
    precision of them all is an arrow, for groups have only the hyperparameters in common: with J of
    the questions of a group, a group tells ``J_hh - J_hz J_zh / (J_zz + 1)`` of these.

    Parameters
    ----------
    value : float
        The metric of a new question.
    effect : ndarray, shape (effects,)
        Probability of each z.
    information : ndarray, shape (effects, coordinates, coordinates)
    prior : ndarray, shape (hyperparameters, hyperparameters)
    slopes : ndarray, shape (2, effects, coordinates)
        Derivatives of the expected metric: of these questions, and of a new one.
    trial, between : float
        Expected posterior variance of a question's metric, and the variance between questions.
    unequal : float
        How much more means over groups vary by unequal weights of groups.
    resampled : bool
        Whether questions like these are these drawn anew.
    """

    value: float
    effect: Array
    information: Array
    prior: Array
    slopes: Array
    trial: float
    between: float
    unequal: float
    resampled: bool

    def design(self, size: int) -> Design:
        """Return what a group of so many questions teaches."""
        information = size * self.information
        curvature = 1.0 + information[:, -1, -1]
        cross = information[:, :-1, -1] / curvature[:, None]
        known = information[:, :-1, :-1] - cross[:, :, None] * information[:, None, :-1, -1]
        by_effect = self.slopes[..., :-1] - self.slopes[..., -1:] * cross
        slopes = self.effect @ np.append(by_effect, self.slopes[1:, :, :-1], axis=0)
        own = self.unequal * (self.slopes[..., -1] ** 2 / curvature) @ self.effect
        own = np.array([own[0] + self.trial / size, own[1], 0.0])
        if self.resampled:
            slopes[1], own[1] = slopes[0], own[0] + self.between / size
        of_group = np.einsum("e,eab->ab", self.effect, known)
        return Design(self.value, own, of_group, self.prior, slopes)


@dataclass(frozen=True)
class ComposedPilot:
    """A pilot of one system, and draws of its hyperparameters.

    Parameters
    ----------
    model : CountModel
    draws : list of (FamilyFit, ndarray)
        A law, and a point of its hyperparameters (1, hyperparameters), by draw.
    metric : MetricFunction
    metric_k : int
    bootstrapped : bool
        Whether questions like these are these drawn anew.
    """

    model: CountModel
    draws: list[tuple[FamilyFit, Array]]
    metric: Any
    metric_k: int
    bootstrapped: bool

    @classmethod
    def of(cls, pilot: Result, system: int, metric: Metric, size: int) -> "ComposedPilot":
        """Return the pilot of the system at a position, with so many draws."""
        model = Declared.of_result(pilot).model(system)
        rng = np.random.default_rng(0)
        number = rng.multinomial(size, [share for _, share in model.counted])
        draws = []
        for (fit, _), n in zip(model.counted, number.tolist(), strict=True):
            points = rng.choice(len(fit.points.weight), n, p=fit.points.weight)
            draws += [(fit, fit.points.theta[[i]]) for i in points.tolist()]
        judged = pilot.scale.judged(metric)
        order = rng.permutation(len(draws)).tolist()
        return cls(model, [draws[i] for i in order], judged, metric.k, model.resampled)

    @classmethod
    def stated(
        cls, metric: Metric, scores: Sequence[float] | None, mean: Array, icc: float
    ) -> "ComposedPilot":
        """Return questions of a stated mean, or shares of scores, and correlation, without a pilot.

        Examples
        --------
        >>> from bayesatk.metrics.grid import one_metric
        >>> pilot = ComposedPilot.stated(one_metric("pass@1"), None, np.array([0.5]), 1 / 3)
        >>> pilot.questions()[0](4).value
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
            judged = Judged(metric.category_credit, np.array(levels))
        fit = FamilyFit(family, predictor, fields, certain())
        return cls(model, [(fit, theta[None])], judged, metric.k, bootstrapped=False)

    def questions(self) -> list[Callable[..., Design]]:
        """Return what is learned of trials and of questions of a group, by draw."""
        rows = QuestionRows.of(self.model)
        return [
            partial(_designed, lru_cache(partial(self._learned, rows, fit, theta)))
            for fit, theta in self.draws
        ]

    def counts(self, fit: FamilyFit, theta: Array, offset: Array, trials: int) -> Counts:
        """Return what may be counted in so many trials."""
        observation: Any = fit.predictor.observation
        size = 2 if self.model.scores is None else len(self.model.scores)
        listed = size == 2 or comb(trials + size - 1, size - 1) <= _LISTED
        if listed:
            counts = compositions(trials, size)
        else:
            untried = _observing(observation, np.zeros((1, size), np.int64))
            counts = _drawn(untried, theta, offset, trials)
        observation, ways = _observing(observation, counts), _log_orders(counts)
        if not listed:
            logs = observation.log_states(theta, offset)[0] + ways
            density = logsumexp(logs, axis=0) - np.log(offset.shape[1])
            ways = ways - density - np.log(len(counts))
        return Counts(observation, self.metric, ways)

    def _learned(self, rows: "QuestionRows", fit: FamilyFit, centre: Array, trials: int) -> Learned:
        """Return Fisher information, and how the metric moves with the hyperparameters."""
        size, predictor = centre.shape[1] + 1, fit.predictor
        moves = _STEP * np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
        theta = centre + moves[:, :-1]
        effect, weight = hermegauss(_EFFECTS) if predictor.effective else (np.zeros(1), np.ones(1))
        effects = predictor.group_sd(theta)[:, None] * (effect + moves[:, -1:])
        offset = rows.offsets(predictor, theta)[:, None] + effects[..., None]
        shape = offset.shape
        offset = offset.reshape(len(theta), -1)
        counts = self.counts(fit, centre, offset[:1], trials)
        pmf, mean, variance = (
            table.reshape(*shape, -1)
            for table in (counts.probability(theta, offset), *counts.given(theta, offset))
        )
        value, between = (table.reshape(shape) for table in counts.new(theta, offset))
        up, down = slice(1, size + 1), slice(size + 1, None)
        scores = (pmf[up] - pmf[down]) / (2.0 * _STEP)
        ratio = scores / np.maximum(pmf[0], 1e-300) * rows.share[:, None]
        slopes = np.stack([
            np.einsum("aers,ers,r->ea", mean[up] - mean[down], pmf[0], rows.weight),
            ((value[up] - value[down]) @ rows.weight).T,
        ]) / (2.0 * _STEP)  # fmt: skip
        weight = weight / weight.sum()
        return Learned(
            float(weight @ (value[0] @ rows.weight)), weight,
            np.einsum("aers,bers->eab", ratio, scores), _prior_information(fit, centre), slopes,
            float(np.einsum("ers,ers,r,e->", variance[0], pmf[0], rows.square, weight)),
            float(weight @ (between[0] @ rows.square)), rows.unequal, self.bootstrapped,
        )  # fmt: skip


@dataclass(frozen=True)
class QuestionRows:
    """Covariates of new questions, in the proportions of a pilot's.

    Parameters
    ----------
    cells : Cells
        With a cell for each row of covariates.
    share, weight, square : ndarray, shape (rows,)
        Shares of the rows among the questions; in weighted means over these; and in the squares of
        the weights, times the number of questions.
    unequal : float
        Mean square of the weights of groups over their squared mean.
    """

    cells: Cells
    share: Array
    weight: Array
    square: Array
    unequal: float = 1.0

    @classmethod
    def of(cls, model: CountModel) -> "QuestionRows":
        """Find the distinct rows of covariates."""
        cells = model.cells
        rows, row = np.unique(cells.rows, axis=0, return_inverse=True)
        row, questions = row.ravel(), cells.count.sum()
        if not cells.rows.shape[1]:
            rows, row = np.zeros((1, 0)), np.zeros(len(cells.count), np.intp)
        of_group = cells.share[cells.group]
        count, weight = np.bincount(row, cells.count), np.bincount(row, cells.inner[0] * of_group)
        square, groups = np.bincount(row, cells.inner[1] * of_group**2) * questions, 1.0
        if model.grouping is not None:
            of_questions, groups = _unequal(model)
            square = of_questions * weight
        cells = replace(cells, rows=rows, count=count)
        return cls(cells, count / questions, weight, square, groups)

    def offsets(self, predictor: Predictor, theta: Array) -> Array:
        """Offsets of the rows; (points, rows)."""
        return replace(predictor, cells=self.cells).offsets(theta)


def _states(counts: Any) -> States:
    """Return a state for each row of counts."""
    return States(counts, np.zeros(counts.shape), np.ones(len(counts)), np.arange(len(counts)))


def _log_orders(counts: Any) -> Array:
    """Log number of orders of trials, by row of counts."""
    return np.asarray(gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1))


def _prior_information(fit: FamilyFit, centre: Array) -> Array:
    """Curvature of minus the log prior density, negative curvatures zero."""
    fields, size = replace(fit.fields, pairs=()), centre.shape[1]
    moves = _STEP * np.eye(size)
    pairs = moves[:, None] + moves[None], moves[:, None] - moves[None]
    both = [centre + sign * move.reshape(-1, size) for move in pairs for sign in (1.0, -1.0)]
    logs = [fields.log_density(theta).reshape(size, size) for theta in both]
    curvature = -(logs[0] + logs[1] - logs[2] - logs[3]) / (4.0 * _STEP**2)
    values, vectors = np.linalg.eigh(curvature)
    return (vectors * np.maximum(values, 1e-9)) @ vectors.T


def _drawn(untried: Observation, theta: Array, offset: Array, trials: int) -> Any:
    """Draw counts of questions at all offsets alike, by a fixed sample."""
    rng = np.random.default_rng(0)
    offsets = offset[0, rng.integers(offset.shape[1], size=_DRAWN)][:, None]
    points = np.repeat(theta, _DRAWN, axis=0)
    p = untried.draw(points, offsets, np.zeros(1, np.intp), rng)[:, 0]
    return rng.multinomial(trials, p)


def group_designs(
    pilot: Result, metric: Metric, questions: Sequence[int] | None
) -> Callable[[int], dict[int, list[list[Design]]]]:
    """Return what groups are expected to teach, by trials, by their questions, draw and system.

    Parameters
    ----------
    pilot : Result
        Of one system, with groups.
    metric : Metric
    questions : sequence of int, optional
        Of a group; default: as the pilot has them, half as many and twice as many.
    """
    grouping = pilot.grouping
    assert grouping is not None
    if len(pilot.systems) != 1:
        raise ArgumentError(
            "source", f" must be a pilot of one system where it has groups; got "
            f"{len(pilot.systems)}. Choose one: ", Argument("system", pilot.systems[0]), ".",
        )  # fmt: skip
    usual = max(1, round(len(grouping.code) / len(grouping.labels)))
    usual_sizes = [max(1, usual // 2), usual, 2 * usual] if questions is None else questions
    sizes = dict.fromkeys(whole_number("questions", size) for size in usual_sizes)
    by_draw = ComposedPilot.of(pilot, 0, metric, DRAWS).questions()

    def designs(trials: int) -> dict[int, list[list[Design]]]:
        if trials == 1 and metric.k > 1:
            return {size: [] for size in sizes}
        return {size: [[learned(trials, size)] for learned in by_draw] for size in sizes}

    return designs


def _designed(learned: Callable[..., Learned], trials: int, size: int = 1) -> Design:
    return learned(trials).design(size)


def _observing(observation: Any, counts: Any) -> Any:
    """Return the observation of these counts."""
    return replace(observation, states=_states(counts))


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
