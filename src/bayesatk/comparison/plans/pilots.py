"""New questions like those of a pilot, and new groups of them.

The pilot's hyperparameters are drawn from its posterior. New questions have the covariates and the
weights of the pilot's in the same proportions, and no prior trials.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import comb
from typing import Any

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError, whole_number
from bayesatk.core.pooling.marks import levels_of
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.laws import CategoryLaw, Common, DifficultyLaw
from bayesatk.core.program.levels import Levels
from bayesatk.core.program.observations import Categories, Marked, Observation, RightWrong
from bayesatk.core.program.predictor import Predictor
from bayesatk.core.question.categorical import category_finite
from bayesatk.core.question.laws import finite
from bayesatk.core.runs.planning import Design
from bayesatk.judge_error import RATES
from bayesatk.metrics.category_credit import compositions
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.count_posterior import FamilyFit
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import Declared
from bayesatk.results.result import Result

DRAWS = 60  # of the pilot's hyperparameters
_RIGHT = parse("pass@1")[0]
_MOST_LABELLED = 32  # trials of a question
_LISTED = 2000  # counts of categories beyond which they are drawn
_DRAWN = 4000
_STEP = 1e-3  # of central differences


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

    def estimates(self) -> Array:
        """Unbiased estimate of the metric from each count; (counts,)."""
        states = self.observation.states
        if isinstance(self.observation, Categories | Levels):
            return category_finite(self.metric.credit, states.counts, self.metric.scores)
        return finite(self.metric.credit, states.successes, states.trials)


@dataclass(frozen=True)
class LabelledQuestions:
    """What questions teach that a judge marks, and of which some trials are marked by hand as well.

    Labels are spread over the questions: a question has as many as fit, or the next number that is
    worked out.

    Parameters
    ----------
    design : callable
        What a question teaches, by the number of its trials that are marked by hand.
    trials : int
        Of a question.
    labels : int
        Trials to mark by hand, of all questions.
    """

    design: Callable[[int], Design]
    trials: int
    labels: int

    @property
    def value(self) -> float:
        """The metric of a new question."""
        return self.design(0).value

    def variance(self, questions: float) -> Array:
        """Posterior variance with so many questions: for these, and for questions like these."""
        by_question = min(self.labels / questions, float(self.trials))
        doubled = [2**power for power in range(self.trials.bit_length()) if 2**power < self.trials]
        numbers = [0, *doubled, self.trials]
        index = max(bisect_left(numbers, by_question), 1)
        fewer, more = numbers[index - 1 : index + 1]
        share = (by_question - fewer) / (more - fewer)
        low, high = self.design(fewer), self.design(more)
        return replace(
            low, trial=(1.0 - share) * low.trial + share * high.trial,
            information=(1.0 - share) * low.information + share * high.information,
            slopes=(1.0 - share) * low.slopes + share * high.slopes,
        ).variance(questions)  # fmt: skip


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
    labels : int
        Trials to mark by hand: of the planned ones, or, `elsewhere`, more for a calibration set.
    elsewhere : bool
    """

    model: CountModel
    draws: list[tuple[FamilyFit, Array]]
    metric: Any
    metric_k: int
    bootstrapped: bool
    labels: int = 0
    elsewhere: bool = True

    @classmethod
    def of(
        cls, pilot: Result, system: int, metric: Metric, size: int, labels: int | None = None
    ) -> "ComposedPilot":
        """Return the pilot of the system at a position, with so many draws.

        Labels are by default those of the pilot; of a calibration set, no more.
        """
        model = Declared.of_result(pilot).model(system)
        rng = np.random.default_rng(0)
        number = rng.multinomial(size, [share for _, share in model.counted])
        draws = []
        for (fit, _), n in zip(model.counted, number.tolist(), strict=True):
            points = rng.choice(len(fit.points.weight), n, p=fit.points.weight)
            draws += [(fit, fit.points.theta[[i]]) for i in points.tolist()]
        judged = pilot.scale.judged(metric)
        order = rng.permutation(len(draws)).tolist()
        by_hand = pilot.data.dataset.get("truth_count")
        if labels is None:
            labels = 0 if by_hand is None else int(by_hand.isel(system=system).sum())
        return cls(
            model, [draws[i] for i in order], judged, metric.k, model.resampled, labels,
            by_hand is None,
        )  # fmt: skip

    def questions(self) -> list[Callable[[int], Design | LabelledQuestions]]:
        """Return what one question is expected to teach, by draw and number of trials."""
        rows = QuestionRows.of(self.model.cells)
        design = self._design if self.elsewhere else self._labelled
        return [partial(design, rows, fit, theta) for fit, theta in self.draws]

    def _labelled(
        self, rows: "QuestionRows", fit: FamilyFit, centre: Array, trials: int
    ) -> LabelledQuestions:
        if trials > _MOST_LABELLED:
            raise ArgumentError(
                "trials", f" must be at most {_MOST_LABELLED} where some are marked by "
                f"hand: too many kinds of questions differ; got {trials}. Plan fewer trials of "
                "more questions.",
            )  # fmt: skip
        design = partial(self._design, rows, fit, centre, trials)
        return LabelledQuestions(lru_cache(design), trials, self.labels)

    def counts(
        self, fit: FamilyFit, theta: Array, offset: Array, trials: int, labelled: int = 0
    ) -> Counts:
        """Return what may be counted in so many trials, of which some are marked by hand."""
        observation = fit.predictor.observation
        if isinstance(observation, Marked):
            return self._marked(observation, trials, labelled)
        law, scores = observation.law, self.model.scores
        if isinstance(law, DifficultyLaw) and scores is None:
            right = np.arange(trials + 1)
            states = States.of(right, np.full(trials + 1, trials))
            return Counts(RightWrong(law, states), self.metric, states.log_ways)
        assert not isinstance(law, Common)
        assert scores is not None
        size = len(scores)

        def observing(counts: Any) -> Levels | Categories:
            if isinstance(law, CategoryLaw):
                return Categories(law, _states(counts))
            return Levels(law, _states(counts), scores)

        listed = comb(trials + size - 1, size - 1) <= _LISTED
        untried = observing(np.zeros((1, size), np.int64))
        counts = compositions(trials, size) if listed else _drawn(untried, theta, offset, trials)
        observation = observing(counts)
        ways = _log_orders(counts)
        if not listed:
            logs = observation.log_states(theta, offset)[0] + ways
            density = logsumexp(logs, axis=0) - np.log(offset.shape[1])
            ways = ways - density - np.log(len(counts))
        return Counts(observation, self.metric, ways)

    def _marked(self, observation: Marked, trials: int, labelled: int) -> Counts:
        """Return the same of marks: what the others are marked, and the truths of those by hand."""
        levels = levels_of(observation.states.counts.shape[1])
        marks, truths = _spread(trials - labelled, levels), _spread(labelled, 2 * levels)
        counts = np.zeros((len(marks), len(truths), 3 * levels + 2), np.int64)
        counts[..., :levels] = marks[:, None]
        counts[..., levels + 1 : 2 * levels + 1] = truths[:, :levels]
        counts[..., 2 * levels + 2 :] = truths[:, levels:]
        ways = _log_orders(marks)[:, None] + _log_orders(truths)
        states = _states(counts.reshape(-1, counts.shape[-1]))
        marked = Marked(observation.law, states, observation.judge)
        return Counts(marked, self.metric, ways.ravel())

    def _calibrated(self, fit: FamilyFit, centre: Array, share: float) -> Array:
        """Information of more trials of a calibration set, of which a share is right."""
        information, size = np.zeros((centre.shape[1], centre.shape[1])), self.labels
        for name, number in zip(RATES, (share * size, (1.0 - share) * size), strict=True):
            if size and name in fit.fields.slices:
                index = fit.fields.slices[name]
                rate = expit(centre[0, index])
                information[index, index] = number * rate * (1.0 - rate)
        return information

    def _design(
        self, rows: "QuestionRows", fit: FamilyFit, centre: Array, trials: int, labelled: int = 0
    ) -> Design:
        """Return Fisher information, and how the metric moves with the hyperparameters."""
        size = centre.shape[1]
        moves = _STEP * np.eye(size)
        theta = np.concatenate([centre, centre + moves, centre - moves])
        offset = rows.offsets(fit.predictor, theta)
        counts = self.counts(fit, centre, offset[:1], trials, labelled)
        pmf, (mean, variance) = counts.probability(theta, offset), counts.given(theta, offset)
        value, between = counts.new(theta, offset)
        up, down = slice(1, size + 1), slice(size + 1, None)
        scores = (pmf[up] - pmf[down]) / (2.0 * _STEP)
        ratio = scores / np.maximum(pmf[0], 1e-300) * rows.share[:, None]
        information = np.einsum("ars,brs->ab", ratio, scores)
        slopes = np.stack([
            np.einsum("ars,rs,r->a", mean[up] - mean[down], pmf[0], rows.weight),
            (value[up] - value[down]) @ rows.weight,
        ]) / (2.0 * _STEP)  # fmt: skip
        trial = np.einsum("rs,rs,r->", variance[0], pmf[0], rows.square)
        spread = float(between[0] @ rows.square) if self.bootstrapped else None
        prior = _prior_information(fit, centre)
        if self.elsewhere and self.labels:
            right = counts.observation.new_means([_RIGHT], centre, offset[:1])
            prior = prior + self._calibrated(fit, centre, float(right[0, :, 0] @ rows.weight))
        return Design(
            float(value[0] @ rows.weight), float(trial), information, prior, slopes, spread
        )


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
    """

    cells: Cells
    share: Array
    weight: Array
    square: Array

    @classmethod
    def of(cls, cells: Cells) -> "QuestionRows":
        """Find the distinct rows of covariates."""
        rows, row = np.unique(cells.rows, axis=0, return_inverse=True)
        row, questions = row.ravel(), cells.count.sum()
        if not cells.rows.shape[1]:
            rows, row = np.zeros((1, 0)), np.zeros(len(cells.count), np.intp)
        of_group = cells.share[cells.group]
        count = np.bincount(row, cells.count)
        return cls(
            replace(cells, rows=rows, count=count), count / questions,
            np.bincount(row, cells.inner[0] * of_group),
            np.bincount(row, cells.inner[1] * of_group**2) * questions,
        )  # fmt: skip

    def offsets(self, predictor: Predictor, theta: Array) -> Array:
        """Offsets of the rows; (points, rows)."""
        return replace(predictor, cells=self.cells).offsets(theta)


def _states(counts: Any) -> States:
    """Return a state for each row of counts."""
    return States(counts, np.zeros(counts.shape), np.ones(len(counts)), np.arange(len(counts)))


def _spread(trials: int, kinds: int) -> Any:
    """All ways to spread trials, perhaps none, over kinds."""
    return compositions(trials, kinds) if trials else np.zeros((1, kinds), np.int64)


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


@dataclass(frozen=True)
class GroupDesign:
    """What a group of questions is expected to teach, by unbiased estimates of its mean.

    Parameters
    ----------
    value : float
        The metric of a new question.
    group : ndarray, shape (targets,)
        Variance of the mean over all questions, times the groups: about these questions, those like
        them in the same groups, and those of new groups.
    """

    value: float
    group: Array

    def variance(self, groups: float) -> Array:
        """Posterior variance with so many groups."""
        return self.group / groups


def group_designs(
    pilot: Result, metric: Metric, questions: Sequence[int] | None
) -> Callable[[int], dict[int, list[list[GroupDesign]]]]:
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
    if not metric.of_marks:
        raise ArgumentError(
            "source", f" must be without groups for a plan of {metric.label}; got "
            f"{len(grouping.labels)} groups. Evaluate the same data without ", "group", ".",
        )  # fmt: skip
    if len(pilot.systems) != 1:
        raise ArgumentError(
            "source", f" must be a pilot of one system where it has groups; got "
            f"{len(pilot.systems)}. Choose one: ", Argument("system", pilot.systems[0]), ".",
        )  # fmt: skip
    usual = max(1, round(len(grouping.code) / len(grouping.labels)))
    usual_sizes = [max(1, usual // 2), usual, 2 * usual] if questions is None else questions
    sizes = dict.fromkeys(whole_number("questions", size) for size in usual_sizes)
    return partial(_group_designs, ComposedPilot.of(pilot, 0, metric, DRAWS), list(sizes))


def _group_designs(
    pilot: ComposedPilot, sizes: list[int], trials: int
) -> dict[int, list[list[GroupDesign]]]:
    """Return the same for so many trials; none where k exceeds them: no estimate is unbiased."""
    designs: dict[int, list[list[GroupDesign]]] = {size: [] for size in sizes}
    if pilot.metric_k > trials:
        return designs
    rows, unequal = QuestionRows.of(pilot.model.cells), _unequal(pilot.model)
    effect = np.linspace(-5.0, 5.0, 21)  # of groups, in sds
    weight = np.exp(-0.5 * effect**2) / np.exp(-0.5 * effect**2).sum()
    for fit, theta in pilot.draws:
        moved = fit.predictor.group_sd(theta) * effect
        offset = rows.offsets(fit.predictor, theta)[:, None] + moved[:, None]
        shape = offset.shape[1:]
        offset = offset.reshape(1, -1)
        counts = pilot.counts(fit, theta, offset, trials)
        estimate, chance = counts.estimates(), counts.probability(theta, offset)[0]
        mean, between = (moment[0].reshape(shape) for moment in counts.new(theta, offset))
        square = (chance @ estimate**2 - (chance @ estimate) ** 2).reshape(shape)
        trial, question = (
            weight @ variance @ rows.weight
            for variance in (np.maximum(square - between, 0.0), between)
        )
        value, second = weight @ (mean @ rows.weight), weight @ (mean @ rows.weight) ** 2
        for size, by_draw in designs.items():
            estimated, drawn = trial / size, (trial + question) / size
            # Weights of groups count in means over these, those of questions where these are drawn.
            new = drawn + max(second - value**2, 0.0)
            variance = np.array(
                [estimated * unequal[0], drawn * unequal[not pilot.bootstrapped], new]
            )
            by_draw.append([GroupDesign(float(value), variance)])
    return designs


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
