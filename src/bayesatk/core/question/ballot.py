"""The plurality vote: expected credit of the most frequent of ``k`` drawn answers.

The credit of ``k`` votes is (tied modes that are correct) / (tied modes): ties are broken
uniformly at random. The numbers of votes of the answers are independent variables conditioned on
their total: Poisson for known probabilities, binomial for a bank of answers, negative binomial for
a Dirichlet posterior. So the expected credit is a coefficient of a product of polynomials, divided
by the probability of the total.

Ties need no bookkeeping: ``c / (c + w) = int_0^1 c u^(c + w - 1) du``, so each answer with the
winning number of votes carries a factor ``u``, one correct winner carries none, and
Gauss-Legendre nodes make the integral exact. Every term is non-negative: nothing cancels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Ints


@dataclass(frozen=True)
class Ballot:
    """Independent numbers of votes of the answers of one question, before their total is fixed.

    Parameters
    ----------
    correct, wrong : tuple of ndarray, shape (batch, votes + 1)
        Probability of each number of votes, one array for each answer.
    abstentions : ndarray, shape (batch, votes + 1), optional
        Probability of each number of abstentions, which count towards ``k`` and never win.
    total : ndarray, shape (votes + 1,)
        Probability of each total.
    """

    correct: tuple[Array, ...]
    wrong: tuple[Array, ...]
    abstentions: Array | None
    total: Array


def vote_credit(votes: Ints, correct: Flags) -> Array:
    """Return the credit of observed votes: the share of the tied modes that is correct.

    Parameters
    ----------
    votes : ndarray of int, shape (elections, answers)
    correct : ndarray of bool, shape (answers,)

    Examples
    --------
    >>> vote_credit(np.array([[2, 2, 1], [0, 0, 0]]), np.array([True, False, False])).tolist()
    [0.5, 0.0]
    """
    tied = (votes == votes.max(axis=1, keepdims=True)) & (votes > 0)
    return np.asarray((tied & correct).sum(axis=1) / np.maximum(tied.sum(axis=1), 1))


def plurality_latent(p: Array, correct: Flags, ks: Sequence[int]) -> Array:
    """Return the expected credit of ``k`` answers drawn with known probabilities.

    Parameters
    ----------
    p : ndarray, shape (batch, answers)
        Probabilities of the answers; a row that sums to less than one leaves abstentions the rest.
    correct : ndarray of bool, shape (answers,)
    ks : sequence of int

    Returns
    -------
    ndarray, shape (batch, len(ks))

    Examples
    --------
    >>> plurality_latent(np.array([[0.5, 0.5]]), np.array([True, False]), [1, 3]).round(12).tolist()
    [[0.5, 0.5]]
    """
    missing = np.maximum(1.0 - p.sum(axis=1), 0.0)

    def ballot(k: int) -> Ballot:
        votes = [_vote_probabilities(k * share, 0.0, -k * share, k) for share in p.T]
        return Ballot(
            tuple(vote for vote, right in zip(votes, correct, strict=True) if right),
            tuple(vote for vote, right in zip(votes, correct, strict=True) if not right),
            _vote_probabilities(k * missing, 0.0, -k * missing, k) if missing.any() else None,
            _vote_probabilities(np.array([float(k)]), 0.0, -float(k), k)[0],
        )

    return _credits_at(ballot, ks)


def plurality_finite(
    counts: Ints,
    correct: Flags,
    ks: Sequence[int],
    abstentions: int | None = None,
) -> Array:
    """Return the expected credit of ``k`` answers drawn without replacement from the observed ones.

    Parameters
    ----------
    counts : ndarray of int, shape (answers,)
        How often each distinct answer was given.
    correct : ndarray of bool, shape (answers,)
    ks : sequence of int
        Votes; NaN where ``k`` exceeds the trials.
    abstentions : int, optional
        Number of trials without an answer.

    Returns
    -------
    ndarray, shape (len(ks),)
        Relative error below 1e-12.

    Examples
    --------
    Two votes from answers A A B, A correct: AA wins, AB is a tie.

    >>> plurality_finite(np.array([2, 1]), np.array([True, False]), [1, 2]).round(12).tolist()
    [0.666666666667, 0.666666666667]
    """
    trials = int(counts.sum()) + (abstentions or 0)
    observed = counts > 0  # other answers cannot be drawn from the bank

    def ballot(k: int) -> Ballot:
        share = k / (trials + 1)  # below one, so that smaller totals have positive probability
        odds = share / (1.0 - share)

        def votes(count: int) -> Array:
            log_none = count * np.log1p(-share)
            return _vote_probabilities(np.array([count * odds]), -odds, log_none, min(count, k))

        return _question_ballot(
            votes, counts[observed], correct[observed], abstentions or None, trials
        )

    return np.asarray(_credits_at(ballot, ks, trials)[0])


def plurality_posterior(
    counts: Ints,
    correct: Flags,
    ks: Sequence[int],
    alpha: float = 1.0,
    abstentions: int | None = None,
) -> Array:
    """Posterior mean: ``k`` fresh answers, probabilities ``Dirichlet(alpha + counts)``.

    Parameters
    ----------
    counts, correct, ks
        As in `plurality_finite`; any ``k``. An answer with count 0 may still be given.
    alpha : float
        Prior concentration of every answer, and of abstaining.
    abstentions : int, optional
        Number of trials without an answer; None if there can be none.

    Returns
    -------
    ndarray, shape (len(ks),)

    Examples
    --------
    One vote: the posterior mean of the correct answer.

    >>> plurality_posterior(np.array([2, 1]), np.array([True, False]), [1]).round(12).tolist()
    [0.6]
    """
    if not correct.any():
        return np.zeros(len(ks))
    outcomes = len(counts) + (abstentions is not None)
    total = float(counts.sum()) + (abstentions or 0) + alpha * outcomes

    def ballot(k: int) -> Ballot:
        share = k / (k + total)

        def votes(count: float) -> Array:
            size = count + alpha
            return _vote_probabilities(np.array([size * share]), share, size * np.log1p(-share), k)

        return _question_ballot(votes, counts, correct, abstentions, total - alpha)

    return np.asarray(_credits_at(ballot, ks)[0])


def _vote_probabilities(
    first_ratio: Array, increment: float, log_none: Array | float, votes_max: int
) -> Array:
    """Probabilities of 0..votes_max votes; a row for each first ratio.

    Successive ratios are ``(first_ratio + increment v) / (v + 1)``: a Poisson where the increment
    is 0, a binomial below, a negative binomial above.
    """
    v = np.arange(votes_max)
    with np.errstate(divide="ignore"):
        ratios = np.log((first_ratio[:, None] + increment * v) / (v + 1.0))
    logs = np.concatenate([np.zeros((len(first_ratio), 1)), np.cumsum(ratios, axis=1)], axis=1)
    return np.asarray(np.exp(logs + np.reshape(log_none, (-1, 1))))


def _question_ballot(
    votes: Callable[[Any], Array],
    counts: Ints,
    correct: Flags,
    abstentions: int | None,
    total: float,
) -> Ballot:
    """Ballot of one question; answers with equal counts share their probabilities."""
    by_count = {count: votes(count) for count in np.unique(counts).tolist()}
    return Ballot(
        tuple(by_count[count] for count in counts[correct].tolist()),
        tuple(by_count[count] for count in counts[~correct].tolist()),
        None if abstentions is None else votes(abstentions),
        votes(total)[0],
    )


def _credits_at(
    ballot: Callable[[int], Ballot], ks: Sequence[int], trials: float = np.inf
) -> Array:
    """Return the expected credit at every k, NaN where k > trials; shape (batch, len(ks)).

    One ballot serves several ks; those more than 250 apart need ballots of their own, so that no
    probability underflows.
    """
    columns: list[Array] = [np.full(1, np.nan)] * len(ks)
    order = [i for i in np.argsort(ks)[::-1].tolist() if ks[i] <= trials]
    while order:
        served = [i for i in order if ks[order[0]] - ks[i] <= 250]
        credits = expected_credit(ballot(ks[served[0]]), [ks[i] for i in served])
        for i, credit in zip(served, credits.T, strict=True):
            columns[i] = credit
        order = order[len(served) :]
    return np.stack(np.broadcast_arrays(*columns), axis=1)


@dataclass(frozen=True)
class _Grid:
    """Pairs (winning votes m, node u), ascending in m.

    An answer with more than half of the votes wins without a tie, so all those m share one last
    pair, whose polynomials are not cut off.

    Parameters
    ----------
    u, weight : ndarray, shape (pairs,)
    start : ndarray, shape (k + 1,)
        Position of the first pair whose polynomials have the power ``d``.
    tied : ndarray, shape (k + 1,)
        Position after the last pair in which that power carries a factor u.
    """

    u: Array
    weight: Array
    start: Indices
    tied: Indices


@lru_cache(maxsize=64)
def _grid(k: int, votes_max: int, answers: int) -> _Grid:
    """Gauss-Legendre nodes for every m: at most k // m answers tie, so u has a power below that."""
    u, weight = [], []
    sizes = [0]
    for winning in range(1, min(k // 2, votes_max) + 1):
        ties = min(k // winning, answers)
        nodes, weights = np.polynomial.legendre.leggauss((ties + 1) // 2)
        sizes.append(len(nodes))
        u.append(0.5 + 0.5 * nodes)
        weight.append(0.5 * weights)
    if votes_max > k // 2:
        u.append(np.ones(1))
        weight.append(np.ones(1))
    last = np.cumsum(sizes)
    start = np.concatenate([[0, 0], last[1:], np.full(k, last[-1])])[: k + 1]
    tied = np.append(last, np.full(k, last[-1]))[: k + 1]
    return _Grid(np.concatenate(u), np.concatenate(weight), start, tied)


def expected_credit(ballot: Ballot, ks: Sequence[int]) -> Array:
    """Return the expected credit at every k; shape (batch, len(ks)).

    Polynomials are arrays (power, pair, batch), so that products of shifted arrays are vectorised.
    """
    batch = max((len(answer_votes) for answer_votes in (*ballot.correct, *ballot.wrong)), default=1)
    if not ballot.correct:
        return np.zeros((batch, len(ks)))
    k = max(ks)
    answers = len(ballot.correct) + len(ballot.wrong)
    grid = _grid(k, max(vote.shape[1] - 1 for vote in ballot.correct), answers)
    neutral = np.zeros((k + 1, len(grid.u), batch))
    neutral[0] = 1.0
    if ballot.abstentions is not None:
        neutral[: ballot.abstentions.shape[1]] = ballot.abstentions.T[:, None]
    for vote in ballot.wrong:
        neutral = _multiply_by_answer(neutral, vote, grid)
    won = np.zeros_like(neutral)
    for vote in ballot.correct:
        won = _multiply_by_answer(won, vote, grid)
        _add_winner(won, neutral, vote, grid)
        neutral = _multiply_by_answer(neutral, vote, grid)
    sums = np.einsum("p,kpb->bk", grid.weight, won)
    return np.asarray(np.minimum(sums[:, ks] / ballot.total[ks], 1.0))


def credit_by_right_votes(
    first_ratio: Array, increment: Array | float, abstentions: Array, k: int
) -> Array:
    """Return the expected credit of k votes by how many are right, for one right answer.

    The other votes are split between wrong answers and abstentions, whose numbers of votes v have
    weights with successive ratios ``(first_ratio + increment v) / (v + 1)``: given the total they
    are multinomial with probabilities proportional to `first_ratio` where `increment` is 0, and
    Dirichlet-multinomial with parameters ``first_ratio / increment`` elsewhere.

    Parameters
    ----------
    first_ratio : ndarray, shape (answers, batch)
        First ratio of the weights of every wrong answer.
    increment : ndarray, shape (batch,), or float
    abstentions : ndarray, shape (batch,)
        First ratio of the weights of the number of abstentions.
    k : int

    Returns
    -------
    ndarray, shape (batch, k + 1)

    Examples
    --------
    One right vote: the two others, for two equally probable answers, differ with probability 1/2,
    and then three answers tie.

    >>> credit_by_right_votes(np.ones((2, 1)), 0.0, np.zeros(1), 3).round(6).tolist()
    [[0.0, 0.166667, 1.0, 1.0]]
    """
    votes = np.moveaxis(_weights(first_ratio, increment, k // 2), 1, 0)  # more cannot tie
    abstaining = _weights(abstentions, increment, k)
    total = _weights(first_ratio.sum(axis=0) + abstentions, increment, k)
    credit = np.zeros((len(abstentions), k + 1))
    credit[:, k // 2 + 1 :] = 1.0
    for right in range(1, k // 2 + 1):
        other_votes = k - right
        ties = min(other_votes // right, len(votes))
        nodes, weight = np.polynomial.legendre.leggauss(ties // 2 + 1)
        u = 0.5 + 0.5 * nodes
        product = np.repeat(abstaining[: other_votes + 1, None], len(u), axis=1)
        for vote in votes:
            # The answer has fewer votes than the right one, or as many and then a factor u.
            updated = product * vote[0]
            for d in range(1, right):
                updated[d:] += product[:-d] * vote[d]
            updated[right:] += product[:-right] * (u[:, None] * vote[right])
            product = updated
        credit[:, right] = 0.5 * weight @ product[other_votes] / total[other_votes]
    return np.minimum(credit, 1.0)


def _weights(first_ratio: Array, increment: Array | float, votes_max: int) -> Array:
    """Weights of 0..votes_max votes along the first axis, from their successive ratios."""
    weights = np.ones((votes_max + 1, *first_ratio.shape))
    for v in range(votes_max):
        np.multiply(weights[v], (first_ratio + increment * v) / (v + 1.0), out=weights[v + 1])
    return weights


def _multiply_by_answer(product: Array, vote: Array, grid: _Grid) -> Array:
    """Multiply by an answer with fewer than m votes, or with m of them and a factor u."""
    size = len(product)
    result = product * vote[:, 0]
    for d in range(1, min(vote.shape[1], size)):
        first_pair, after_ties = grid.start[d], grid.tied[d]
        if first_pair == len(grid.u):
            break
        shifted = product[: size - d, first_pair:] * vote[:, d]
        shifted[:, : after_ties - first_pair] *= grid.u[first_pair:after_ties, None]
        result[d:, first_pair:] += shifted
    return np.asarray(result)


def _add_winner(won: Array, neutral: Array, vote: Array, grid: _Grid) -> None:
    """Add the terms in which this correct answer is the winner (of a tie: the one picked)."""
    size = len(won)
    for m in range(1, min(vote.shape[1], size)):
        pairs = slice(grid.start[m], grid.tied[m] if 2 * m < size else None)
        won[m:, pairs] += neutral[: size - m, pairs] * vote[:, m]
