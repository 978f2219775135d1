"""Posterior of best-of-k by a verifier's scores: marks under the declared model, scores beside.

A trial of question q is right with probability p_q, whose law is that of right and wrong. The score
of a right trial falls into bin b with probability f1_qb, that of a wrong one with f0_qb; both are
shapes that the questions of a system share, tilted by question (`bayesatk.core.pooling.shapes`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesatk.core.pooling.shapes import Shapes, draw_shapes
from bayesatk.core.pooling.states import relative
from bayesatk.core.question.best_of import (
    best_of_finite,
    best_of_latent,
    comparable,
    middles,
    score_bins,
)
from bayesatk.core.question.observed import mean_over_questions
from bayesatk.data.validation import Ints
from bayesatk.data.verifier import VerifierScores
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.count_posterior import SUCCESS, CountPosterior
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Draws, SystemPosterior, by_target

_NEW = 32  # new questions at every draw, spread evenly over the law of difficulty
_BLOCK = 1_000_000  # probabilities of bins drawn at once


@dataclass(frozen=True)
class BestOfDraws:
    """Draws of best-of-k.

    Parameters
    ----------
    questions, population : ndarray, shape (draws, ks)
        Means over these questions, and over questions like these.
    by_question : ndarray, shape (draws, questions, ks), optional
        Where they were asked for.
    """

    questions: Array
    population: Array
    by_question: Array | None = None


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
    weight : ndarray, shape (questions,), optional
        Of the questions.
    """

    marks: CountModel
    scores: VerifierScores
    draws: int
    rng: np.random.Generator
    weight: Array | None = None

    def estimate(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values; NaN where too few questions have k trials."""
        ks = [metric.k for metric in metrics]
        return finite_best_of(self.scores, self._questions, ks, self.weight)

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior, all of it by draws."""
        ks = [metric.k for metric in metrics]

        def draw(size: int, rng: np.random.Generator) -> BestOfDraws:
            return self.draw(ks, size, rng)

        return by_draws(draw, self.draws, self.rng, self._questions)

    def draw(
        self, ks: Sequence[int], size: int, rng: np.random.Generator, by_question: bool = False
    ) -> BestOfDraws:
        """Draw best-of-k of these questions and of questions like them."""
        posterior = CountPosterior(self.marks, (SUCCESS,))
        drawn = posterior.draw(size, rng, True)
        assert drawn.p is not None  # they were asked to be kept
        wrong, right = (draw_shapes(counts, self._position, size, rng) for counts in self._binned)
        weight = relative(self.weight)
        share = np.ones(self._questions) if weight is None else weight
        tried = self.marks.cells.questions_tried
        total, anew = np.zeros((2, size, len(ks)))
        mass, values_of = np.zeros(size), []
        for question in range(self._questions):
            shapes = right.of_question(question), wrong.of_question(question)
            values = best_of_latent(drawn.p[:, question], *shapes, ks)
            total += share[question] * values
            drawn_share = share[question] * tried[question] * rng.standard_exponential(size)
            anew += drawn_share[:, None] * values
            mass += drawn_share
            values_of += [values] * by_question
        population = anew / mass[:, None]
        if not self.marks.resampled:
            new = posterior.draw_like(drawn, _NEW, rng)
            population = _of_new(new, right, wrong, ks, rng)
        return BestOfDraws(
            total / share.sum(), population, np.stack(values_of, axis=1) if by_question else None
        )

    @property
    def _questions(self) -> int:
        return len(self.marks.cells.which)

    @cached_property
    def _binned(self) -> tuple[Ints, Ints]:
        """Counts of wrong and of right trials by question and bin."""
        scores = self.scores
        moved = comparable(scores.score, scores.question, scores.count)
        entry = score_bins(moved, scores.count.sum(axis=1))
        counts = np.zeros((2, self._questions, int(entry.max(initial=0)) + 1), np.int64)
        for kind in range(2):
            np.add.at(counts[kind], (scores.question, entry), scores.count[:, kind])
        return counts[0], counts[1]

    @property
    def _position(self) -> Array:
        return middles(self._binned[0].sum(axis=0) + self._binned[1].sum(axis=0))


def by_draws(
    draw: Callable[[int, np.random.Generator], BestOfDraws], draws: int,
    rng: np.random.Generator, questions: int,
) -> SystemPosterior:  # fmt: skip
    """Return the posterior of metrics of which there are draws alone.

    Parameters
    ----------
    draw : callable
        Return so many draws.
    draws : int
        For means and variances.
    rng : numpy.random.Generator
    questions : int
    """
    drawn = draw(draws, rng)
    columns = drawn.questions, drawn.population
    mean = by_target(*(values.mean(axis=0) for values in columns))
    total = by_target(*(values.var(axis=0) for values in columns))
    trial = np.minimum(total[:, :1], total)
    none = [None] * len(mean)

    def of_size(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        del keep_p
        again = drawn if size == draws else draw(size, rng)
        return Draws(np.stack([again.questions, again.population], axis=-1), {})

    return SystemPosterior(
        mean, trial, total - trial, lambda: (none, none), of_size,
        lambda: (np.zeros(questions), np.zeros(questions)),
    )  # fmt: skip


def without_noise(halves: Array, share: Array) -> Array:
    """Return draws of means over questions, without the spread that simulation adds to them.

    Both halves of a simulation have the same value but for noise; the draws are moved towards
    their mean until their variance is what is left without it.

    Parameters
    ----------
    halves : ndarray, shape (2, draws, questions, ks)
    share : ndarray, shape (questions,)
        In the mean.
    """
    means = np.einsum("hdqk,q->hdk", halves, share).mean(axis=0)
    noise = np.einsum("dqk,q->k", (halves[0] - halves[1]) ** 2, share**2) / (4.0 * len(means))
    total = np.maximum(means.var(axis=0), 1e-300)
    shrunk = np.sqrt(np.clip(1.0 - noise / total, 0.0, 1.0))
    return np.asarray(means.mean(axis=0) + shrunk * (means - means.mean(axis=0)))


def _of_new(
    p: Array, right: Shapes, wrong: Shapes, ks: Sequence[int], rng: np.random.Generator
) -> Array:
    """Means over new questions with probabilities p (draws, questions); (draws, ks).

    The scores of so few questions would add their own spread to that of the means: it is taken
    out, by moving the draws towards their mean.
    """
    size, questions = p.shape
    bins = len(right.position)
    halves = np.empty((2, size, questions, len(ks)))
    step = max(1, _BLOCK // (questions * bins))
    for start in range(0, size, step):
        rows = slice(start, start + step)
        for half in halves:
            half[rows] = best_of_latent(
                p[rows], right.of_new(rows, questions, rng), wrong.of_new(rows, questions, rng), ks
            )
    return without_noise(halves, np.full(questions, 1.0 / questions))


def finite_best_of(
    scores: VerifierScores, questions: int, ks: Sequence[int], weight: Array | None = None
) -> Array:
    """Mean of the finite law over questions that have k trials; NaN where they are too few."""
    edges = np.searchsorted(scores.question, np.arange(1, questions))
    rows = [
        best_of_finite(counts[:, 0], counts[:, 1], ks) for counts in np.split(scores.count, edges)
    ]
    share = np.ones(questions) if weight is None else weight
    tried = np.isin(np.arange(questions), scores.question)
    return mean_over_questions(np.stack(rows), share, tried)
