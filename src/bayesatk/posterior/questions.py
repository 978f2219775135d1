"""Posteriors of single questions, their influence on the system's metric, and new questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtr, logsumexp

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.engine.bootstrap import bootstrap_leave_one_out
from bayesatk.core.program.moments import Metrics
from bayesatk.data.scales import MetricFunction
from bayesatk.metrics.category_credit import CategoryCredit, ScoredCredit
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import SUCCESS, Located

_LOO_POINTS = 1600  # points of hyperparameters at which questions are left out
_MIN_LOO_POINTS = 400  # of these, for each law
_MIN_MAX_EFFECT_DRAWS = (4, 8)  # draws of group effects at each point
# Probability at points of negligible weight without a question, above which it is refitted.
_LOO_EDGE_MASS_MAX = 1e-4
_MIN_MAX_DRAWS = (2000, 40_000)  # of the probabilities of levels
_MAX_FLOATS_PER_BLOCK = 4e6  # 32 MB
# Tail probabilities below this are estimated from so many times as many new trials.
_RARE_TAIL = 0.02
_RARE_TAIL_REPEATS = 20


@dataclass(frozen=True)
class QuestionValues:
    """Values of a metric, question by question.

    Parameters
    ----------
    mean, variance : ndarray, shape (questions,)
        Posterior of the metric of one question.
    influence : ndarray, shape (questions, 2)
        Posterior mean of the system's metric, less that without the question, on these questions
        and on questions like these; NaN where it is the only question, and where the distribution
        of difficulties is not known.
    """

    mean: Array
    variance: Array
    influence: Array

    @classmethod
    def of_draws(cls, values: Array) -> "QuestionValues":
        """Return those of draws of the metric of each question, (draws, questions)."""
        influence = np.full((values.shape[1], 2), np.nan)
        return cls(values.mean(axis=0), values.var(axis=0), influence)


def question_values(model: CountModel, metric: MetricFunction) -> QuestionValues:
    """Return the posterior of a metric by question, and the influence of each."""
    mean, variance = model.fit([metric]).of_questions([metric])
    return QuestionValues(mean[:, 0], variance[:, 0], _influence(model, metric))


@dataclass(frozen=True)
class QuestionPosterior:
    """Posterior of every question's p, or expected score.

    Parameters
    ----------
    mean, variance : ndarray, shape (questions,)
        Of p, or of the expected score; exact.
    which : ndarray, shape (questions,)
        Cell of every question.
    p : ndarray, shape (draws, cells, levels)
        Draws of the probabilities of levels of a question of each cell: wrong and right, or scores.
    scores : ndarray, shape (levels,)
    """

    mean: Array
    variance: Array
    which: Indices
    p: Array
    scores: Array

    @classmethod
    def of(cls, model: CountModel) -> "QuestionPosterior":
        """Draw from the posterior of a model, always with the same seed."""
        scores = np.array([0.0, 1.0])
        expected: MetricFunction = SUCCESS
        if model.scores is not None:
            scores = np.array(model.scores)
            expected = ScoredCredit(CategoryCredit(1), scores)
        mean, variance = model.fit([expected]).of_questions([expected])
        size = int(
            np.clip(_MAX_FLOATS_PER_BLOCK / (len(model.cells.count) * len(scores)), *_MIN_MAX_DRAWS)
        )
        p, _ = draw_p(model, np.arange(len(model.cells.count)), size, np.random.default_rng(0))
        if model.scores is None:
            p = np.stack([1.0 - p, p], axis=-1)
        p = p / p.sum(axis=-1, keepdims=True)
        return cls(mean[:, 0], variance[:, 0], model.cells.which, p, scores)

    @classmethod
    def of_draws(cls, p: Array, scores: Array) -> "QuestionPosterior":
        """Return that of draws of the probabilities of levels, (draws, questions, levels)."""
        expected = p @ scores
        return cls(expected.mean(axis=0), expected.var(axis=0), np.arange(p.shape[1]), p, scores)

    @cached_property
    def expected(self) -> Array:
        """Expected scores, (draws, cells)."""
        return np.asarray(self.p @ self.scores)

    def quantiles(self, levels: Sequence[float]) -> Array:
        """Quantiles of p, or of the expected score; (levels, questions)."""
        return np.quantile(self.expected, levels, axis=0)[:, self.which]

    def near_an_end(self, margin: float) -> Array:
        """Probability of p, or of an expected score, within a share of the range of either end."""
        low, high = float(self.scores.min()), float(self.scores.max())
        near = margin * (high - low)
        inside = (self.expected > low + near) & (self.expected < high - near)
        return np.asarray(1.0 - inside.mean(axis=0))[self.which]

    @property
    def _some_p(self) -> Array:
        """About 2000 of the draws of p, of all laws and chains, which follow each other."""
        return self.p[:: max(len(self.p) // _MIN_MAX_DRAWS[0], 1)]

    def chance_as_few(self, trials: Ints, right: Ints) -> Array:
        """Probability that new trials of a question have as few right, by question."""
        kinds = np.stack([self.which, trials, right])
        (cell, n, c), kind = np.unique(kinds, axis=1, return_inverse=True)
        p = self._some_p
        chance = [bdtr(c[i], n[i], p[:, cell[i], 1]).mean() for i in range(len(cell))]
        return np.array(chance)[kind.ravel()]

    def chance_as_bad(self, trials: Ints, total: Array, direction: int) -> Array:
        """Probability that new trials have a total score as bad, by question; 1 without trials.

        Parameters
        ----------
        trials, total : ndarray, shape (questions,)
            Of the questions, and what their scores add up to.
        direction : int
            1 where a lower total is worse, -1 where a higher one is.
        """
        rng, near = np.random.default_rng(1), 1e-9 * max(1.0, float(np.abs(self.scores).max()))
        p = self._some_p

        def share(columns: Ints) -> Array:
            drawn = rng.multinomial(trials[columns], p[:, self.which[columns]]) @ self.scores
            as_bad = direction * drawn <= direction * total[columns] + near
            return np.asarray(as_bad.mean(axis=0))

        chance = share(np.arange(len(trials)))
        rare = np.flatnonzero(chance < _RARE_TAIL)
        if len(rare):
            repeated_shares = [share(rare) for _ in range(_RARE_TAIL_REPEATS)]
            chance[rare] = np.mean([chance[rare], *repeated_shares], axis=0)
        return chance


def draw_p(model: CountModel, cell: Indices, size: int, rng: Rng) -> tuple[Array, Array | None]:
    """Draw p of questions given their trials.

    Parameters
    ----------
    model : CountModel
    cell : ndarray of int, shape (questions,)
        Cells of the questions.
    size : int
        Draws.
    rng : numpy.random.Generator

    Returns
    -------
    p : ndarray, shape (draws, questions), or (draws, questions, categories)
    rates : ndarray, shape (draws, columns), optional
        Of a judge that errs, as rows of `bayesatk.core.pooling.marks`.
    """
    points, cells, drawn = model.draw_points(size, rng), model.cells, []
    for law, place in points:
        theta, effect = law.points.theta[place], law.effects.draw(place, rng)
        offset = (law.fit.predictor.offsets(theta) + effect[:, cells.group])[:, cell]
        drawn.append(law.fit.predictor.observation.draw(theta, offset, cells.state[cell], rng))
    return np.concatenate(drawn), _rates(model, points)


def _rates(model: CountModel, points: Sequence[tuple[Located, Indices]]) -> Array | None:
    """Rates of a judge at drawn points; None where none errs."""
    judge = model.judge
    if judge is None:
        return None
    return np.concatenate(
        [judge.at(law.points.theta[place], law.fit.fields) for law, place in points]
    )


def draw_new_p(model: CountModel, size: int, rng: Rng) -> tuple[Array, Array | None]:
    """Draw hyperparameters and effects of groups, and p of a new question in place of each.

    A new question has the group, the covariates and the prior trials of the one that it replaces.
    Parameters and values are those of `draw_p`.
    """
    points = model.draw_points(size, rng)
    p = np.concatenate(
        [
            law.fit.predictor.draw_new(law.points.theta[place], law.effects.draw(place, rng), rng)
            for law, place in points
        ]
    )
    return p, _rates(model, points)


def _influence(model: CountModel, metric: MetricFunction) -> Array:
    """Influence of each question on the metric; (questions, 2).

    Without a question, points of the hyperparameters and draws of effects of groups have their
    probabilities divided by that of its trials; where these then rest on few points, the model is
    fitted again.
    """
    cells, number = model.cells, len(model.cells.which)
    if number == 1:
        return np.full((1, 2), np.nan)
    share, group = cells.question_share[:, None], cells.group[cells.which]
    weight, logs, mean = _at_points(model, metric)
    by_cell = np.bincount(cells.which, share[:, 0], len(cells.count))
    groups, single = cells.by_group(mean * by_cell[:, None]), mean
    if model.resampled:
        groups[..., 1], single[..., 1] = _resampled(model, mean[..., 1])
    loo_weight = np.exp(logs - logsumexp(logs, axis=0))
    without_by_group = np.einsum("hc,hgt->cgt", loo_weight, groups)[cells.which]
    single = np.einsum("hc,hct->ct", loo_weight, single)[cells.which]
    own_group = np.arange(number), group
    without = (without_by_group[own_group] - share * single) / np.maximum(1.0 - share, 1e-300)
    if model.resampled:  # a slope in the share of a question, where it is in the sample
        in_sample = (share * cells.questions_tried[:, None])[:, 0]
        without[:, 1] = without_by_group[own_group][:, 1] + in_sample * single[:, 1]
    without_by_group[own_group] = np.where(share < 1.0, without, 0.0)
    group_share = np.repeat(cells.share[None], number, axis=0)
    fixed_group_weights = model.grouping is not None and model.grouping.weight is not None
    group_share[own_group] *= (share[:, 0] < 1.0) if fixed_group_weights else 1.0 - share[:, 0]
    group_share /= np.maximum(group_share.sum(axis=1, keepdims=True), 1e-300)
    total = weight @ np.einsum("hgt,g->ht", groups, cells.share)
    influence = total - np.einsum("qg,qgt->qt", group_share, without_by_group)
    for cell in model.unsure(weight, loo_weight, _LOO_EDGE_MASS_MAX):
        questions_in_cell = np.flatnonzero(cells.which == cell)
        for share_of_one in np.unique(cells.question_share[questions_in_cell]):
            alike = questions_in_cell[cells.question_share[questions_in_cell] == share_of_one]
            retained = np.arange(number) != alike[0]
            influence[alike] = total - model.among(retained).fit([metric]).mean[0, :2]
    return np.asarray(influence)


def _resampled(model: CountModel, mean: Array) -> tuple[Array, Array]:
    """Means of groups whose questions are drawn anew, and slopes in the weight of one left out.

    Of means of the metric (points, cells); shapes (points, groups) and (points, cells).
    """
    cells, slopes = model.cells, np.zeros_like(mean)
    groups = np.zeros((len(mean), cells.groups))
    for group in range(cells.groups):
        members = np.flatnonzero(cells.group == group)
        terms = cells.tried(group)
        terms = terms._replace(state=np.searchsorted(members, terms.state))
        groups[:, group], slopes[:, members] = bootstrap_leave_one_out(mean[:, members], terms)
    return groups, slopes


def _at_points(model: CountModel, metric: MetricFunction) -> tuple[Array, Array, Array]:
    """Return points of all laws, with drawn effects of groups.

    Returns
    -------
    weight : ndarray, shape (points,)
    logs : ndarray, shape (points, cells)
        Of weights without a question of each cell.
    mean : ndarray, shape (points, cells, 2)
        Of the metric of a question, and of a new one; where questions like these are these again,
        of a question twice.
    """
    rng, weights, logs, means = np.random.default_rng(0), [], [], []
    state = model.cells.state
    for law in model.located:
        law = law.at_most(max(int(_LOO_POINTS * law.share), _MIN_LOO_POINTS))
        theta, predictor, copies = law.points.theta, law.fit.predictor, 1
        if predictor.has_group_effects:
            copies = int(
                np.clip(_MAX_FLOATS_PER_BLOCK / (len(theta) * len(state)), *_MIN_MAX_EFFECT_DRAWS)
            )
        offset = np.repeat(predictor.offsets(theta)[None], copies, axis=0)
        point = np.tile(np.arange(len(theta)), copies)
        effects = law.effects.draw(point, rng)[:, model.cells.group]
        offset += effects.reshape(offset.shape)
        weight, mean = law.share * law.points.weight / copies, np.empty((*offset.shape, 2))
        for rows in predictor.blocks(theta, 2):
            places = np.moveaxis(offset[:, rows], 0, -1)
            posterior_values, new = Metrics(predictor, [metric]).of_each(theta[rows], places)
            for target, values in enumerate(
                (posterior_values, posterior_values if model.resampled else new)
            ):
                mean[..., target][:, rows] = np.moveaxis(values[..., 0, 0], -1, 0)
        for copy in range(copies):
            with np.errstate(divide="ignore"):
                logs.append(np.log(weight)[:, None] - predictor.log_cells_at(theta, offset[copy]))
            weights.append(weight)
            means.append(mean[copy])
    return np.concatenate(weights), np.concatenate(logs), np.concatenate(means)
