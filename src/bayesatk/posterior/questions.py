"""What is known of single questions under the model, and what each says of the system."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.engine.bootstrap import bootstrap_without
from bayesatk.core.numerics.points import Points
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.program.moments import Metrics
from bayesatk.core.program.observations import AllAlike, MarkedOnRule, RightWrong, log_components
from bayesatk.core.program.predictor import WIDE_NODES, WIDER, Predictor, Table
from bayesatk.core.program.question_laws import QuestionLaws
from bayesatk.data.scales import MetricFunction
from bayesatk.metrics.category_credit import CategoryCredit, Judged
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.count_posterior import SUCCESS, CountPosterior, FamilyFit
from bayesatk.posterior.model import CountModel

_COMPONENTS = 4e6  # Betas of which the laws of all questions are made
_POINTS = (40, 600)  # of the hyperparameters for these, at least and at most
_LEFT_OUT, _FEWEST = 800, 200  # points on which questions are left out, and at least of a law
_FEW = 100.0  # effective number of points without a question, below which it is refitted
_OUTER, _OUTSIDE = 1e-7, 1e-4  # weight of outer points, and what may lie there without a question
_TRUSTED = 0.7  # shape of the tail of importance weights
_DRAWS, _FLOATS = (500, 2000), 15e6  # of the probabilities of scores; numbers of a system: 120 MB
_RARE, _REPEATS = 0.02, 20  # chance of a total of which new trials are drawn again, and how often


class _Block(NamedTuple):
    """Some points of the hyperparameters, and effects of groups on nodes.

    Parameters
    ----------
    weight : ndarray, shape (points,)
    theta : ndarray, shape (points, hyperparameters)
    log_chance : ndarray, shape (points, groups, nodes)
        Log probabilities of the nodes.
    offset : ndarray, shape (points, cells, nodes)
        Of questions at each node.
    log_table : Table
        Log probabilities of states.
    """

    weight: Array
    theta: Array
    log_chance: Array
    offset: Array
    log_table: Table


@dataclass(frozen=True)
class QuestionValues:
    """Values of a metric, question by question.

    Parameters
    ----------
    mean, variance : ndarray, shape (questions,)
        Posterior of the metric of one question.
    influence : ndarray, shape (questions, 2)
        Posterior mean of the system's metric, less that without the question, on these questions
        and on questions like these; NaN where it is the only question.
    """

    mean: Array
    variance: Array
    influence: Array


def question_laws(model: CountModel, metric: Metric) -> QuestionLaws:
    """Return the posterior of p of a question in each state of right and wrong."""
    return Questions(model, metric).laws()


def question_values(model: CountModel, metric: MetricFunction) -> QuestionValues:
    """Return the posterior of a metric by question, and the influence of each."""
    mean, variance, _ = CountPosterior(model, (metric,)).of_questions([metric])
    return QuestionValues(mean[:, 0], variance[:, 0], Questions(model, metric).influence())


@dataclass(frozen=True)
class ScoreLaws:
    """Posterior of every question's expected score, and draws of the probabilities of its scores.

    Parameters
    ----------
    mean, variance : ndarray, shape (questions,)
    p : ndarray, shape (draws, questions, categories)
    scores : ndarray, shape (categories,)
    """

    mean: Array
    variance: Array
    p: Array
    scores: Array

    @classmethod
    def of(cls, model: CountModel) -> "ScoreLaws":
        """Draw from the posterior of a model of scores, always with the same seed."""
        scores = np.array(model.scores)
        expected = (Judged(CategoryCredit(1), scores),)
        posterior = CountPosterior(model, expected)
        mean, variance, _ = posterior.of_questions(expected)
        size = int(np.clip(_FLOATS / (len(mean) * len(scores)), *_DRAWS))
        drawn = posterior.draw(size, np.random.default_rng(0), True, alone=True).p
        assert drawn is not None  # it was asked for
        p = drawn / drawn.sum(axis=-1, keepdims=True)
        return cls(mean[:, 0], variance[:, 0], p, scores)

    @cached_property
    def expected(self) -> Array:
        """Expected scores, (draws, questions)."""
        return np.asarray(self.p @ self.scores)

    def chance_of_total(self, trials: Ints, total: Array, direction: int) -> Array:
        """Probability that new trials have a total as bad, by question; 1 without trials.

        Parameters
        ----------
        trials, total : ndarray, shape (questions,)
            Of the questions, and what their scores add up to.
        direction : int
            1 where a lower total is worse, -1 where a higher one is.
        """
        rng, near = np.random.default_rng(1), 1e-9 * max(1.0, float(np.abs(self.scores).max()))

        def share(columns: Ints) -> Array:
            drawn = rng.multinomial(trials[columns], self.p[:, columns]) @ self.scores
            as_bad = direction * drawn <= direction * total[columns] + near
            return np.asarray(as_bad.mean(axis=0))

        chance = share(np.arange(len(trials)))
        rare = np.flatnonzero(chance < _RARE)
        if len(rare):
            more = [share(rare) for _ in range(_REPEATS)]
            chance[rare] = np.mean([chance[rare], *more], axis=0)
        return chance


@dataclass(frozen=True)
class Questions:
    """Questions of a system whose model is put together from its parts.

    Parameters
    ----------
    model : CountModel
    metric : MetricFunction
    """

    model: CountModel
    metric: MetricFunction

    def _blocks(self, fit: FamilyFit, share: float, points: Points) -> Iterator[_Block]:
        """Yield points of one law, weights summing to the probability of the law."""
        predictor, cells = fit.predictor, self.model.cells
        for rows in predictor.blocks(points.theta, 2 * WIDE_NODES):
            theta = points.theta[rows]
            table, offset = predictor.log_table(theta), predictor.offsets(theta)[..., None]
            log_chance = np.zeros((len(theta), cells.groups, 1))
            if predictor.effective:
                effects = predictor.effects(theta, table, WIDE_NODES, WIDER)
                offset = offset + effects.values[:, cells.group]
                with np.errstate(divide="ignore"):
                    log_chance = np.log(effects.probability)
            yield _Block(share * points.weight[rows], theta, log_chance, offset, table)

    # The law of each

    def laws(self) -> QuestionLaws:
        """Return the posterior of p of a question of each cell."""
        cells = self.model.cells
        counted = self.model.counted
        betas = max(fit.predictor.observation.law.parts or 1 for fit, _ in counted)
        nodes = WIDE_NODES if counted[0][0].predictor.effective else 1
        trials = int(self.model.states.trials.max(initial=0))
        hidden = trials + 1 if self.model.marking is not None else 1
        number = int(np.clip(_COMPONENTS / (nodes * betas * hidden * len(cells.count)), *_POINTS))
        found: list[tuple[Array, ...]] = []
        for fit, probability in counted:
            points = fit.points.at_most(max(int(np.ceil(number * probability)), 10))
            for block in self._blocks(fit, probability, points):
                for node in range(block.offset.shape[2]):
                    found.append(self._components(fit.predictor, block, node))
        share, alpha, beta, atoms = zip(*found, strict=True)
        total = np.sum(atoms, axis=0)
        a, b = np.concatenate(alpha), np.concatenate(beta)
        return QuestionLaws.merged(np.concatenate(share), a, b, total)

    def _components(
        self, predictor: Predictor, block: _Block, node: int
    ) -> tuple[Array, Array, Array, Array]:
        """Shares and parameters of Betas (components, cells), and shares of atoms (2, cells)."""
        observation, cells = predictor.observation, self.model.cells
        offset, size = block.offset[..., node], len(cells.count)
        weight = block.weight[:, None] * np.exp(block.log_chance[:, cells.group, node])
        if isinstance(observation, MarkedOnRule | AllAlike):
            return self._matched(predictor, block, offset, weight)
        assert isinstance(observation, RightWrong)
        nodes = observation.law.nodes(block.theta, offset)
        logs, alpha, beta = [], [], []
        for right, wrong, log_chance in observation.right_trials(block.theta, cells.state):
            right, wrong = (np.tile(count, len(offset)) for count in (right, wrong))
            logs.append(log_components(nodes, right, wrong) + log_chance.reshape(-1, 1))
            alpha.append(nodes.alpha + right[:, None])
            beta.append(nodes.beta + wrong[:, None])
        every = np.stack(logs, axis=1)
        share = np.exp(every - logsumexp(every, axis=(1, 2), keepdims=True))
        share *= weight.reshape(-1, 1, 1)

        def by_cell(values: Array) -> Array:
            rows = values.reshape(len(offset), size, -1)
            return np.ascontiguousarray(np.moveaxis(rows, 1, 2)).reshape(-1, size)

        atoms = share[..., -2:].sum(axis=1).reshape(len(offset), size, 2).sum(axis=0).T
        a, b = by_cell(np.stack(alpha, axis=1)), by_cell(np.stack(beta, axis=1))
        return by_cell(share[..., :-2]), a, b, atoms

    def _matched(
        self, predictor: Predictor, block: _Block, offset: Array, weight: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return one Beta with the mean and the variance of p, at each point."""
        table = Metrics(predictor, [SUCCESS]).tables(block.theta)[0]
        values = table.at(offset, self.model.cells.state)[:, :, 0]
        mean, variance = values[..., 0], values[..., 1]
        mean = np.clip(mean, 1e-12, 1.0 - 1e-12)
        total = mean * (1.0 - mean) / np.maximum(variance, 1e-300) - 1.0
        total = np.clip(total, 1e-9, 1e12)
        return weight, mean * total, (1.0 - mean) * total, np.zeros((2, mean.shape[1]))

    # What each says of the system

    def influence(self) -> Array:
        """Influence of each question on the metric; (questions, 2).

        Without a question, points of the hyperparameters and nodes of its group's effect have their
        probabilities divided by that of its trials; where these then rest on few points, the model
        is fitted again.
        """
        weights, logs, given, alone = [], [], [], []
        for fit, probability in self.model.counted:
            points = fit.points.at_most(max(int(_LEFT_OUT * probability), _FEWEST))
            for block in self._blocks(fit, probability, points):
                log_left_out, groups, both = self._left_out(block, self._means(fit, block))
                with np.errstate(divide="ignore"):
                    logs.append(np.log(block.weight)[:, None] - log_left_out)
                weights.append(block.weight)
                given.append(groups)
                alone.append(both)
        return self._influence(*(np.concatenate(x) for x in (weights, logs, given, alone)))

    def _means(self, fit: FamilyFit, block: _Block) -> Array:
        """Means of the metric of a question of each cell, and of a new one.

        Shape (2, points, cells, nodes).
        """
        cells = self.model.cells
        tables = Metrics(fit.predictor, [self.metric]).tables(block.theta)
        column = np.zeros(len(cells.state), np.intp)
        nodes = [
            [table.at(block.offset[..., node], index)[:, :, 0, 0]
             for table, index in zip(tables, (cells.state, column), strict=True)]
            for node in range(block.offset.shape[2])
        ]  # fmt: skip
        return np.moveaxis(np.array(nodes), 0, -1)

    def _left_out(self, block: _Block, mean: Array) -> tuple[Array, Array, Array]:
        """Return what is known at points with and without a question.

        Returns
        -------
        log_left_out : ndarray, shape (points, cells)
            Log probability of its trials given the others of its group.
        groups : ndarray, shape (points, groups, 2)
            Means of groups, with all questions.
        alone : ndarray, shape (points, cells, 2, 2)
            Of its group without it: the mean with all questions, and of that question, each given
            the others; last axis the targets.
        """
        cells = self.model.cells
        logs = np.stack([
            block.log_table.at(block.offset[..., node], cells.state)
            if block.log_table.values.shape[1] > 1
            else block.log_table.values[:, 0, cells.state]
            for node in range(block.offset.shape[2])
        ], axis=-1)  # fmt: skip
        chance = block.log_chance[:, cells.group] - logs
        log_inverse = logsumexp(chance, axis=-1)
        chance = np.exp(chance - log_inverse[..., None])
        sums = np.stack([cells.by_group(part * cells.inner[0][:, None]) for part in mean])
        groups = (sums * np.exp(block.log_chance)).sum(axis=-1)
        whole = (sums[:, :, cells.group] * chance).sum(axis=-1)
        single = (mean * chance).sum(axis=-1)
        alone = np.stack([whole, single])  # (2, targets, points, cells)
        if self.model.resampled:
            for group in range(cells.groups):
                members = np.flatnonzero(cells.group == group)
                values = np.moveaxis(mean[0, :, members], 0, -1)  # (points, nodes, members)
                terms = cells.tried(group)
                terms = terms._replace(state=np.searchsorted(members, terms.state))
                total, slope = bootstrap_without(values, terms)
                groups[1, :, group] = (total * np.exp(block.log_chance[:, group])).sum(axis=-1)
                chance_of = chance[:, members]
                alone[0, 1, :, members] = (total[:, None] * chance_of).sum(axis=-1).T
                alone[1, 1, :, members] = np.einsum("hnc,hcn->ch", slope, chance_of)
        return -log_inverse, np.moveaxis(groups, 0, -1), np.moveaxis(alone, (0, 1), (2, 3))

    def _influence(self, weight: Array, logs: Array, groups: Array, alone: Array) -> Array:
        """Posterior mean of the metric less that without each question; (questions, 2)."""
        model, cells = self.model, self.model.cells
        number = len(cells.which)
        if number == 1:
            return np.full((1, 2), np.nan)
        chance = np.exp(logs - logsumexp(logs, axis=0))
        others = np.einsum("hc,hgt->cgt", chance, groups)[cells.which]
        whole, single = np.einsum("hc,hcit->ict", chance, alone)[:, cells.which]
        own, group = cells.question_share[:, None], cells.group[cells.which]
        rest = np.maximum(1.0 - own, 1e-300)
        without = (whole - own * single) / rest
        if model.resampled:  # a slope in the share of a question, where it is in the sample
            without[:, 1] = (whole + own * cells.questions_tried[:, None] * single)[:, 1]
        others[np.arange(number), group] = np.where(own < 1.0, without, 0.0)
        share = np.repeat(cells.share[None], number, axis=0)
        given = model.grouping is not None and model.grouping.weight is not None
        left = (cells.question_share < 1.0) if given else 1.0 - cells.question_share
        share[np.arange(number), group] *= left
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        total = weight @ np.einsum("hgt,g->ht", groups, cells.share)
        influence = total - np.einsum("qg,qgt->qt", share, others)
        for cell in self._unsure(weight, chance):
            same = np.flatnonzero(cells.which == cell)
            for share_of_one in np.unique(cells.question_share[same]):
                alike = same[cells.question_share[same] == share_of_one]
                kept = np.arange(number) != alike[0]
                influence[alike] = total - model.among(kept).fit([self.metric]).mean[0, :2]
        return np.asarray(influence)

    def _unsure(self, weight: Array, chance: Array) -> Ints:
        """Cells without one of whose questions the posterior rests on too few points."""
        if self.model.states.questions < 3.0:
            return np.arange(chance.shape[1])
        outer = chance[weight < _OUTER * weight.max()].sum(axis=0) > _OUTSIDE
        few = 1.0 / np.sum(chance**2, axis=0) < _FEW
        few[few] = [pareto_shape(chance[:, cell]) > _TRUSTED for cell in np.flatnonzero(few)]
        return np.flatnonzero(few | outer)
