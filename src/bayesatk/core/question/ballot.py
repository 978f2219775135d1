"""The plurality vote: expected credit of the most frequent of ``k`` drawn answers.

The credit of ``k`` votes is (tied modes that are correct) / (tied modes): ties are broken
uniformly at random. The numbers of votes of the answers are independent variables conditioned on
their total: Poisson for known probabilities, binomial for a bank of answers, negative binomial for
a Dirichlet posterior. So the expected credit is a coefficient of a product of polynomials, divided
by the probability of the total.

Ties need no bookkeeping: ``1 / (1 + t) = int_0^1 u^t du``, so each of t other answers with as many
votes as a right one carries a factor ``u``, and Gauss-Legendre nodes make the integral exact. Every
term is non-negative: nothing cancels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Ints

_NO_VOTES = np.ones((1, 1))  # weight of none


@dataclass(frozen=True)
class Ballot:
    """Independent numbers of votes of the answers of one question, before their total is fixed.

    Parameters
    ----------
    correct, wrong : tuple of ndarray, shape (votes + 1, batch)
        Probability of each number of votes, one array for each answer.
    abstentions : ndarray, shape (votes + 1, batch)
        Probability of each number of abstentions, which count towards ``k`` and never win.
    total : ndarray, shape (votes + 1,)
        Probability of each total.
    """

    correct: tuple[Array, ...]
    wrong: tuple[Array, ...]
    abstentions: Array
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
        votes = [_vote_weights(k * share, 0.0, k, -k * share) for share in p.T]
        return Ballot(
            tuple(vote for vote, right in zip(votes, correct, strict=True) if right),
            tuple(vote for vote, right in zip(votes, correct, strict=True) if not right),
            _vote_weights(k * missing, 0.0, k, -k * missing) if missing.any() else _NO_VOTES,
            _vote_weights(np.array([float(k)]), 0.0, k, -float(k))[:, 0],
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
            return _vote_weights(np.array([count * odds]), -odds, min(count, k), log_none)

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
            return _vote_weights(np.array([size * share]), share, k, size * np.log1p(-share))

        return _question_ballot(votes, counts, correct, abstentions, total - alpha)

    return np.asarray(_credits_at(ballot, ks)[0])


def _vote_weights(
    first_ratio: Array, increment: Array | float, votes_max: int, log_none: Array | float = 0.0
) -> Array:
    """Weights of 0..votes_max votes along the first axis, from that of none.

    Successive ratios are ``(first_ratio + increment v) / (v + 1)``: a Poisson where the increment
    is 0, a binomial below, a negative binomial above.
    """
    weights = np.empty((votes_max + 1, *first_ratio.shape))
    weights[0] = log_none
    with np.errstate(divide="ignore"):
        for v in range(votes_max):
            weights[v + 1] = weights[v] + np.log((first_ratio + increment * v) / (v + 1.0))
    return np.exp(weights, out=weights)


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
        _NO_VOTES if abstentions is None else votes(abstentions),
        votes(total)[:, 0],
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


def expected_credit(ballot: Ballot, ks: Sequence[int]) -> Array:
    """Return the expected credit at every k; shape (batch, len(ks))."""
    answers, k = (*ballot.correct, *ballot.wrong), max(ks)
    batch = max(len(weights[0]) for weights in (*answers, ballot.abstentions))
    most_votes = min(max((len(vote) - 1 for vote in ballot.correct), default=0), k)
    credit = np.zeros((k + 1, batch))
    for winning in range(1, min(most_votes, k // 2 + 1) + 1):
        # An answer with more than half of the votes wins without a tie, with so many or more.
        highest = winning if winning <= k // 2 else k
        nodes, weight = _unit_nodes(min(k // winning, len(answers)))
        neutral = _no_votes(ballot.abstentions, k, len(nodes), batch)
        for vote in ballot.wrong:
            neutral = _times_answer(neutral, vote, winning, nodes)
        won = np.zeros_like(neutral)
        for vote in ballot.correct:
            won = _times_answer(won, vote, winning, nodes)
            for votes in range(winning, min(highest, len(vote) - 1) + 1):
                won[votes:] += neutral[: k + 1 - votes] * vote[votes]
            neutral = _times_answer(neutral, vote, winning, nodes)
        credit += np.einsum("u,kub->kb", weight, won)
    return np.asarray(np.minimum(credit[ks].T / ballot.total[ks], 1.0))


def _no_votes(abstentions: Array, k: int, nodes: int, batch: int) -> Array:
    """Weights of 0..k votes without those of answers; shape (k + 1, nodes, batch)."""
    weights = np.zeros((k + 1, nodes, batch))
    weights[: len(abstentions)] = abstentions[: k + 1, None]
    return weights


def _times_answer(product: Array, vote: Array, winning: int, nodes: Array) -> Array:
    """Multiply by an answer with fewer than the winning votes, or as many and then a factor u."""
    updated = product * vote[0]
    for d in range(1, min(winning, len(vote), len(product))):
        updated[d:] += product[:-d] * vote[d]
    if winning < min(len(vote), len(product)):
        updated[winning:] += product[:-winning] * (nodes[:, None] * vote[winning])
    return np.asarray(updated)


@lru_cache(maxsize=256)
def _unit_nodes(answers: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes between 0 and 1 that are exact for ties of so many answers."""
    nodes, weight = np.polynomial.legendre.leggauss((answers + 1) // 2)
    return 0.5 + 0.5 * nodes, 0.5 * weight


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
    votes = np.moveaxis(_vote_weights(first_ratio, increment, k // 2), 1, 0)  # more cannot tie
    abstaining = _vote_weights(abstentions, increment, k)
    total = _vote_weights(first_ratio.sum(axis=0) + abstentions, increment, k)
    credit = np.zeros((len(abstentions), k + 1))
    credit[:, k // 2 + 1 :] = 1.0
    for right in range(1, k // 2 + 1):
        left = k - right
        nodes, weight = _unit_nodes(1 + min(left // right, len(votes)))
        product = _no_votes(abstaining, left, len(nodes), len(abstentions))
        for vote in votes:
            product = _times_answer(product, vote, right, nodes)
        credit[:, right] = weight @ product[left] / total[left]
    return np.minimum(credit, 1.0)
