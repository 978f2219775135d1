"""Votes weighted by a verifier: answers as in pooled votes, scores as in the best of k.

Given the hyperparameters a trial is right with the probability of its question, a wrong one gives
one of the question's wrong answers, and its score depends on being right alone. Sums of right and
of wrong trials are then independent: the credit of r right and w wrong trials is the mean over
pairs of simulated sums of both sides, and a vote is linear in the probabilities of r right of k.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.core.pooling.agreement import draw_shares
from bayesatk.core.pooling.shapes import Shapes, draw_shapes
from bayesatk.core.question.weighted_vote import (
    running_tops,
    units,
    weighted_vote_finite,
)
from bayesatk.data.verifier import NO_ANSWER, ScoreBins, VerifierScores
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.best_of import over_groups
from bayesatk.posterior.count_posterior import SUCCESS, CountPosterior
from bayesatk.posterior.pooled_answers import (
    PooledVotes,
    VoteDraws,
    VotePosterior,
    answers_of,
    by_draws,
)
from bayesatk.posterior.posterior import Draws, SystemPosterior

_ROWS = 250  # draws of shares of answers and of distributions of scores
_ELECTIONS, _NEW = 32, 128  # sums of each side at every row; for new questions, one each
_SHIFTS = 4  # pairs that each sum of a side is in
_HALVES = 2  # of the elections, whose difference says how much noise they leave


@dataclass(frozen=True, eq=False)
class WeightedVotes:
    """Votes between the answers to the questions of one system, weighted by scores.

    Parameters
    ----------
    votes : PooledVotes
        Model of the answers.
    scores : VerifierScores
        Of the system, by answer; categories are wrong and right.
    draws : int
    rng : numpy.random.Generator
    """

    votes: PooledVotes
    scores: VerifierScores
    draws: int
    rng: Rng

    def estimate(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values; NaN where some question has fewer than k trials."""
        return np.asarray(self.votes.weight @ self._observed(metrics))

    def estimate_by_group(self, metrics: Sequence[Metric]) -> Array:
        """Return the same of each group; (groups, metrics), NaN of groups without questions."""
        shares = self.votes.right.cells.shares
        values = [share[share > 0.0] @ self._observed(metrics)[share > 0.0] for share in shares.T]
        return np.where(shares.any(axis=0)[:, None], np.stack(values), np.nan)

    def _observed(self, metrics: Sequence[Metric]) -> Array:
        """Finite-law values of every question; (questions, metrics)."""
        ks, scores = [metric.k for metric in metrics], self.scores
        trials = scores.count.sum(axis=1)
        votes = units(scores.score, int(trials.sum()))
        values = []
        for question, ballot in enumerate(self.votes.ballots):
            inside = (scores.question == question) & (scores.answer != NO_ANSWER)
            values.append(weighted_vote_finite(
                votes[inside], scores.answer[inside], trials[inside], ballot.correct, ks,
                ballot.nobody or 0,
            ))  # fmt: skip
        return np.array(values)

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior, all of it by draws."""
        right = CountPosterior(self.votes.right, (SUCCESS,)).posterior()
        return by_draws(lambda n, rng: self.draw(metrics, n, rng), self.draws, self.rng, right)

    def draw(self, metrics: Sequence[Metric], size: int, rng: Rng) -> VoteDraws:
        """Return joint draws of votes, also of every question."""
        bins = self.scores.votes_in_bins([ballot.correct for ballot in self.votes.ballots])
        ks = tuple(metric.k for metric in metrics)
        return _Elections(self.votes, ks, bins).of_all(size, rng)


@dataclass(frozen=True, eq=False)
class _Elections(VotePosterior):
    """Votes of several k that scores weight.

    Parameters
    ----------
    bins : ScoreBins
    """

    bins: ScoreBins

    def of_all(self, size: int, rng: Rng) -> VoteDraws:
        """Return joint draws."""
        right = self._right.draw(size, rng, True)
        silent = None if self._silent is None else self._silent.draw(size, rng, True)
        rows, cells = min(_ROWS, size), self.model.right.cells
        thetas = [agreement.draw(rows, rng) for agreement in self.model.agreements.values()]
        place = rng.permutation(size) % rows
        position = self.bins.position
        shapes = [draw_shapes(counts, position, rows, rng) for counts in self.bins.counts]
        halves = np.empty((_HALVES, size, len(self.model.ballots), len(self.ks)))
        for question in range(halves.shape[2]):
            tables = self._tables_of(question, thetas, shapes, rng)
            p = _of_question(right, question)
            silence = None if silent is None else _of_question(silent, question)
            for half, table in zip(halves, tables, strict=True):
                half[:, question] = self._at(table, place, p, silence)
        values = halves.mean(axis=0)
        if self.model.right.resampled:
            of_new = [cells.means_anew(values, rng)] * _HALVES
        else:
            tables = self._tables_of(None, thetas, shapes, rng)
            of_new = [self._of_new(table[place], right, silent) for table in tables]
        by_group = np.stack([
            np.stack([cells.means(half), like], axis=-1)
            for half, (like, _) in zip(halves, of_new, strict=True)
        ])  # fmt: skip
        new = np.stack([of_groups for _, of_groups in of_new])
        chain = shapes[0].chain[place]  # and of those of right trials
        return VoteDraws(values, over_groups(right, cells, by_group, new), chain)

    def _tables_of(
        self, question: int | None, thetas: Sequence[Array], shapes: Sequence[Shapes],
        rng: Rng,
    ) -> Array:  # fmt: skip
        """Credit by right and wrong votes of a question, or of new ones; (2, rows, K + 1, K + 1).

        Of new questions every simulated sum is of a question of its own.
        """
        k, rows, tops = max(self.ks), len(thetas[0]), []
        for right, shape in enumerate(shapes):  # wrong trials, then right ones
            elections = _ELECTIONS if question is not None else _NEW
            if question is not None:
                chance = shape.of_question(question)
                seen = answers_of(self.model.ballots[question], bool(right))
            else:
                chance = shape.of_new(slice(None), elections, rng).reshape(-1, shape.bins)
                seen = np.zeros(0, np.int64)
            repeats = rows * elections // len(chance)
            votes = self._votes(chance, repeats, k, rng)
            if right and len(thetas) == 1:
                answer, number, differing = np.zeros(votes.shape, np.int64), 1, None
            else:
                theta = np.repeat(thetas[right], len(chance) // rows)
                shares, dust = draw_shares(seen, theta, rng)
                number = shares.shape[1] + 1
                answer = _chosen(np.column_stack([shares, dust]), repeats, k, rng)[0]
                differing = number - 1
            pair = running_tops(answer, votes, number, differing)
            tops.append([top.reshape(rows, elections, k + 1) for top in pair])
        return self._halves(tops)

    def _votes(self, chance: Array, repeats: int, k: int, rng: Rng) -> Array:
        """Draw weights of k votes by probabilities of bins; (rows x repeats, k)."""
        entry, within = _chosen(chance, repeats, k, rng)
        first = self.bins.first
        place = first[entry] + (within * np.diff(first)[entry]).astype(np.intp)
        return np.asarray(self.bins.score[np.minimum(place, first[entry + 1] - 1)])

    def _halves(self, tops: Sequence[Sequence[Array]]) -> Array:
        """Mean credit over pairs of sums of both sides, of each half of the elections."""
        half = tops[0][0].shape[1] // _HALVES
        tables = []
        for number in range(_HALVES):
            inside = slice(number * half, (number + 1) * half)
            (wrong, tied_wrong), right = ([top[:, inside] for top in side] for side in tops)
            turned = [
                self._credit(
                    (right[0], right[1]),
                    (np.roll(wrong, shift, axis=1), np.roll(tied_wrong, shift, axis=1)),
                )
                for shift in range(min(_SHIFTS, half))
            ]
            tables.append(np.mean(turned, axis=0))
        return np.array(tables)


def _of_question(drawn: Draws, question: int) -> Array:
    assert drawn.p is not None  # asked for
    return drawn.p[:, question]


def _chosen(chance: Array, repeats: int, k: int, rng: Rng) -> tuple[Indices, Array]:
    """Draw categories by rows of probabilities, spread evenly over the repeats of a row.

    Returns
    -------
    category : ndarray of int, shape (rows x repeats, k)
    within : ndarray, same shape
        Where in the category the draw lies, between 0 and 1.
    """
    rows, size = chance.shape
    upper = np.cumsum(chance, axis=1)
    upper /= upper[:, -1:]
    even = np.broadcast_to(np.arange(repeats)[:, None], (rows, repeats, k))
    uniform = (rng.permuted(even, axis=1) + rng.random((rows, repeats, k))) / repeats
    row = np.arange(rows)[:, None, None]
    place = np.searchsorted((upper + row[:, 0]).ravel(), uniform + row, side="right")
    category = np.clip(place - row * size, 0, size - 1)
    lower = upper - np.diff(upper, axis=1, prepend=0.0)
    width = np.maximum(upper - lower, 1e-300)
    within = np.clip((uniform - lower[row, category]) / width[row, category], 0.0, 1.0)
    return category.reshape(-1, k), within.reshape(-1, k)
