"""Posterior of best-of-k by a verifier's scores: marks under the declared model, scores beside.

A trial of question q is right with probability p_q, whose law is that of right and wrong. The score
of a right trial falls into bin b with probability f1_qb, that of a wrong one with f0_qb; both are
shapes that the questions of a system share, tilted by question (`bayesatk.core.pooling.shapes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayesatk._tools.arrays import Array, Rng
from bayesatk.core.pooling.shapes import Shapes, draw_shapes
from bayesatk.core.program.cells import Cells
from bayesatk.core.question.best_of import best_of_finite, best_of_latent
from bayesatk.core.question.observed import mean_over_questions
from bayesatk.data.verifier import VerifierScores
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.count_posterior import SUCCESS, CountPosterior
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.pooled_answers import VoteDraws, by_draws
from bayesatk.posterior.posterior import Draws, SystemPosterior

_NEW, _FEWEST = 32, 8  # new questions at every draw, of all groups together; of each at least
_BLOCK = 1_000_000  # probabilities of bins drawn at once
_HALVES = 2  # of what is simulated


@dataclass(frozen=True, eq=False)
class BestOfModel:
    """Best of k of one system.

    Parameters
    ----------
    marks : CountModel
        Of right and wrong.
    scores : VerifierScores
        Of the system; categories are wrong and right.
    draws : int
    rng : numpy.random.Generator
    """

    marks: CountModel
    scores: VerifierScores
    draws: int
    rng: Rng

    def estimate(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values; NaN where too few questions have k trials."""
        cells = self.marks.cells
        return self._mean_observed(metrics, cells.shares @ cells.share)

    def estimate_by_group(self, metrics: Sequence[Metric]) -> Array:
        """Return the same of each group; (groups, metrics)."""
        return np.stack([self._mean_observed(metrics, s) for s in self.marks.cells.shares.T])

    def _mean_observed(self, metrics: Sequence[Metric], share: Array) -> Array:
        """Mean of the finite law over questions that have k trials."""
        scores, questions = self.scores, len(share)
        edges = np.searchsorted(scores.question, np.arange(1, questions))
        ks = [metric.k for metric in metrics]
        values = [
            best_of_finite(counts[:, 0], counts[:, 1], ks)
            for counts in np.split(scores.count, edges)
        ]
        tried = np.isin(np.arange(questions), scores.question)
        return mean_over_questions(np.stack(values), share, tried)

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior, all of it by draws."""
        right = CountPosterior(self.marks, (SUCCESS,)).posterior()
        return by_draws(lambda n, rng: self.draw(metrics, n, rng), self.draws, self.rng, right)

    def draw(self, metrics: Sequence[Metric], size: int, rng: Rng) -> VoteDraws:
        """Return joint draws of best-of-k, also of every question."""
        ks, cells = [metric.k for metric in metrics], self.marks.cells
        posterior = CountPosterior(self.marks, (SUCCESS,))
        drawn = posterior.draw(size, rng, True)
        assert drawn.p is not None  # they were asked to be kept
        bins = self.scores.in_bins(len(cells.which))
        wrong, right = (draw_shapes(counts, bins.position, size, rng) for counts in bins.counts)
        values = np.stack([
            best_of_latent(p, right.of_question(question), wrong.of_question(question), ks)
            for question, p in enumerate(drawn.p.T)
        ], axis=1)  # fmt: skip
        if self.marks.resampled:
            like, new = cells.means_anew(values, rng)
            halves = [(like, new)] * _HALVES
        else:
            halves = [
                self._of_new(posterior, drawn, (wrong, right), ks, rng) for _ in range(_HALVES)
            ]
        on_questions = cells.means(values)
        by_group = np.stack([np.stack([on_questions, like], axis=-1) for like, _ in halves])
        new = np.stack([new for _, new in halves])
        return VoteDraws(values, over_groups(drawn, cells, by_group, new), right.chain)

    def _of_new(
        self, posterior: CountPosterior, drawn: Draws, shapes: Sequence[Shapes],
        ks: Sequence[int], rng: Rng,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Means over new questions of groups (draws, groups, ks), and of new groups (draws, ks)."""
        groups, size, by_group = self.marks.cells.groups, len(drawn.metrics), []
        questions = max(_NEW // groups, _FEWEST)
        step = max(1, _BLOCK // (questions * shapes[0].bins))
        for p in posterior.draw_like(drawn, questions, rng):
            values = np.empty((size, len(ks)))
            for start in range(0, size, step):
                rows = slice(start, start + step)
                wrong, right = (shape.of_new(rows, questions, rng) for shape in shapes)
                values[rows] = best_of_latent(p[rows], right, wrong, ks).mean(axis=1)
            by_group.append(values)
        return np.stack(by_group[:groups], axis=1), by_group[-1]


def over_groups(drawn: Draws, cells: Cells, halves: Array, new: Array) -> Draws:
    """Return draws with means over all questions and of groups, without the noise of simulation.

    Parameters
    ----------
    drawn : Draws
        Of right and wrong.
    cells : Cells
    halves : ndarray, shape (2, draws, groups, ks, 2)
        Means over the questions of groups and over new ones, from both halves of a simulation.
    new : ndarray, shape (2, draws, ks)
        Of new groups.
    """
    whole = without_noise(np.einsum("hdgkt,g->hdkt", halves, cells.share))
    groups = drawn.groups
    if cells.grouped:
        assert groups is not None
        whole = np.concatenate([whole, without_noise(new)[..., None]], axis=-1)
        groups = replace(groups, metrics=without_noise(halves))
    return replace(drawn, metrics=whole, groups=groups)


def without_noise(halves: Array) -> Array:
    """Return the means of two halves (2, draws, ...), without the spread that simulation adds.

    Both halves have the same value but for noise; the draws are moved towards their mean until
    their variance is what is left without it.
    """
    means = halves.mean(axis=0)
    noise = ((halves[0] - halves[1]) ** 2).mean(axis=0) / 4.0
    total = np.maximum(means.var(axis=0), 1e-300)
    shrunk = np.sqrt(np.clip(1.0 - noise / total, 0.0, 1.0))
    return np.asarray(means.mean(axis=0) + shrunk * (means - means.mean(axis=0)))
