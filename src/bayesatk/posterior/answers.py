"""Posterior of plurality votes on one system's answers, independent between questions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.pooling.dirichlet import draw_probabilities
from bayesatk.core.pooling.states import Terms, relative
from bayesatk.core.question.ballot import (
    plurality_finite,
    plurality_latent,
    plurality_posterior,
    vote_credit,
)
from bayesatk.data.answers import Ballots, possible
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.conjugate import Means, Questions, independent
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.priors import AnswerPrior

_BUDGET = 2e9  # multiplications spent on exact values at drawn probabilities
_FEWEST = 50  # draws per question below which votes are simulated instead
_VOTES = 400  # probabilities drawn per question to simulate votes at
_CHUNK = 4_000_000  # floats held at once


@dataclass(frozen=True)
class AnswerMoments:
    """Posterior of every question: exact mean, variance from draws, and the draws.

    Parameters
    ----------
    mean, variance : ndarray, shape (questions, ks)
    pool : ndarray, shape (questions, draws, ks), optional
        Exact values at drawn probabilities; None where votes were simulated.
    draws : int
        Draws per question behind the variance.
    """

    mean: Array
    variance: Array
    pool: Array | None
    draws: int


def finite_estimates(
    ballots: Sequence[Ballots], ks: Sequence[int], weight: Array | None = None
) -> Array:
    """Mean over questions of the finite law; NaN where some question has fewer than k trials."""
    known: dict[tuple[object, ...], Array] = {}
    rows = []
    for one in ballots:
        key = _key(one.count, one.correct, one.nobody)
        if key not in known:
            known[key] = plurality_finite(one.count, one.correct, ks, one.nobody)
        rows.append(known[key])
    return np.asarray(np.average(rows, axis=0, weights=weight))


@dataclass(frozen=True, eq=False)
class VoteModel:
    """Votes between the answers to every question of one system, independent between questions.

    Parameters
    ----------
    ballots : sequence of Ballots
        One per question.
    prior : AnswerPrior
    draws : int
        Most draws per question for variances and quantiles; fewer where they would be costly.
    rng : numpy.random.Generator
        For these.
    weight : ndarray, shape (questions,), optional
        Of the questions.
    """

    ballots: Sequence[Ballots]
    prior: AnswerPrior
    draws: int
    rng: np.random.Generator
    weight: Array | None = None

    def estimate(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values; NaN where some question has fewer than k trials."""
        return finite_estimates(self.ballots, [metric.k for metric in metrics], self.weight)

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior of plurality votes."""
        ks = [metric.k for metric in metrics]
        found = answer_moments(self.ballots, ks, self.prior, self.draws, self.rng)
        tried = np.array([ballot.tried for ballot in self.ballots])
        own = _questions(found, relative(self.weight), tried | ~tried.any())
        return independent(own, {"answer_draws": float(found.draws)})


def _questions(found: AnswerMoments, weight: Array | None, tried: NDArray[np.bool_]) -> Questions:
    """Independent questions, which have no success probability."""
    number, ks = found.mean.shape
    weights = np.ones(number) if weight is None else weight

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Means | None:
        if found.pool is None:
            return None
        first, second = np.zeros((2, size, ks))
        total = np.zeros(size)
        for pool, own, observed in zip(found.pool, weights, tried.tolist(), strict=True):
            chosen = pool if len(pool) == size else pool[rng.integers(len(pool), size=size)]
            drawn = own * observed * rng.standard_exponential(size)
            first += own * chosen
            second += chosen * drawn[:, None]
            total += drawn
        return first / number, second / total[:, None], None

    return Questions(
        Terms(np.arange(number), weights, np.ones(number)),
        Terms(np.flatnonzero(tried), weights[tried], np.ones(tried.sum())),
        found.mean, found.variance, draw,
        lambda variance, rng: np.diag(variance),  # several k are taken to be independent
        lambda: (np.zeros(number), np.zeros(number)),
    )  # fmt: skip


def answer_draws(
    ballots: Sequence[Ballots],
    ks: Sequence[int],
    prior: AnswerPrior,
    size: int,
    rng: np.random.Generator,
) -> Array:
    """Draws of every question's plurality votes of k, (draws, questions, ks).

    Where exact values at drawn probabilities would cost too much they are normal with the exact
    mean and the variance of simulated votes: right for a mean over many questions.
    """
    found = answer_moments(ballots, ks, prior, size, rng)
    if found.pool is None:
        z = rng.standard_normal((size, *found.mean.shape))
        return np.asarray(found.mean + np.sqrt(found.variance) * z)
    if found.pool.shape[1] == size:
        return np.swapaxes(found.pool, 0, 1)
    chosen = [pool[rng.integers(len(pool), size=size)] for pool in found.pool]
    return np.stack(chosen, axis=1)


def _key(
    count: NDArray[np.int64], correct: NDArray[np.bool_], nobody: int | None
) -> tuple[object, ...]:
    order = np.lexsort((count, correct))
    return count[order].tobytes(), correct[order].tobytes(), nobody


def answer_moments(
    ballots: Sequence[Ballots],
    ks: Sequence[int],
    prior: AnswerPrior,
    draws: int,
    rng: np.random.Generator,
) -> AnswerMoments:
    """Posterior of every question; parameters as of `VoteModel`."""
    ballots = [possible(one, prior) for one in ballots]
    affordable = int(_BUDGET / sum(_work(len(one.count), max(ks)) for one in ballots))
    exact = affordable >= min(_FEWEST, draws)
    size = min(draws, affordable) if exact else _VOTES
    known: dict[tuple[object, ...], Array] = {}
    mean = np.empty((len(ballots), len(ks)))
    variance, pool = np.empty_like(mean), []
    for row, one in enumerate(ballots):
        key = _key(one.count, one.correct, one.nobody)
        if key not in known:
            known[key] = plurality_posterior(
                one.count, one.correct, ks, prior.concentration, one.nobody
            )
        mean[row] = known[key]
        if not one.correct.any():  # nothing to win: known without a draw
            variance[row] = 0.0
            pool.append(np.zeros((size, len(ks))))
            continue
        p = _draw(one, prior.concentration, size, rng)
        if exact:
            values = _latent(p, one.correct, ks)
            pool.append(values)
            variance[row] = ((values - mean[row]) ** 2).mean(axis=0)
        else:
            first, second = (_voted(p, one.correct, ks, rng) - mean[row] for _ in range(2))
            variance[row] = (first * second).mean(axis=0)
    if not exact:  # unbiased, so single questions may fall below zero
        variance = np.maximum(variance.mean(axis=0), 0.0) + np.zeros_like(variance)
    return AnswerMoments(mean, variance, np.stack(pool) if exact else None, size)


def _work(answers: int, k: int) -> float:
    """Multiplications of one exact value, roughly."""
    return float(max(1.0, answers * k**2.6))


def _draw(one: Ballots, alpha: float, size: int, rng: np.random.Generator) -> Array:
    """Probabilities of the answers, and of nobody where it exists, in the last column."""
    counts = one.count if one.nobody is None else np.append(one.count, one.nobody)
    return draw_probabilities(np.broadcast_to(counts + alpha, (size, len(counts))), rng)


def _latent(p: Array, correct: NDArray[np.bool_], ks: Sequence[int]) -> Array:
    """Exact values at probabilities, in blocks that fit in memory."""
    width = max(1, int(_CHUNK / max(ks) ** 2))
    parts = [
        plurality_latent(p[start : start + width, : len(correct)], correct, ks)
        for start in range(0, len(p), width)
    ]
    return np.concatenate(parts)


def _voted(
    p: Array, correct: NDArray[np.bool_], ks: Sequence[int], rng: np.random.Generator
) -> Array:
    """Credit of one simulated vote at each row of probabilities and each k."""
    found = np.empty((len(p), len(ks)))
    for column, k in enumerate(ks):
        votes = rng.multinomial(k, p)[:, : len(correct)]
        found[:, column] = vote_credit(votes, correct)
    return found
