"""The plurality vote: expected credit of the most frequent of ``k`` drawn answers.

The credit of ``k`` votes is (tied modes that are correct) / (tied modes): ties are broken
uniformly at random. When the votes of the answers are independent once their total is left free,
the expected credit is a coefficient of a product of polynomials, divided by the probability of
the total: Poisson votes for known probabilities, binomial and negative binomial ones for a bank of
answers and a Dirichlet posterior.

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
    """Answers of one question, as independent numbers of votes given a free total.

    Parameters
    ----------
    correct, wrong : tuple of ndarray, shape (batch, votes + 1)
        Probability of each number of votes, one array for each answer.
    nobody : ndarray, shape (batch, votes + 1), optional
        Votes for nobody: they count towards ``k`` and never win.
    total : ndarray, shape (votes + 1,)
        Probability of each total.
    """

    correct: tuple[Array, ...]
    wrong: tuple[Array, ...]
    nobody: Array | None
    total: Array


def vote_credit(votes: Ints, correct: Flags) -> Array:
    """Return the credit of votes that were held: the share of the tied modes that is correct.

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
        Probabilities of the answers; what a row lacks to one goes to nobody.
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
        votes = [_votes(k * share, 0.0, -k * share, k) for share in p.T]
        return Ballot(
            tuple(vote for vote, right in zip(votes, correct, strict=True) if right),
            tuple(vote for vote, right in zip(votes, correct, strict=True) if not right),
            _votes(k * missing, 0.0, -k * missing, k) if missing.any() else None,
            _votes(np.array([float(k)]), 0.0, -float(k), k)[0],
        )

    return _elected(ballot, ks)


def plurality_finite(
    counts: Ints,
    correct: Flags,
    ks: Sequence[int],
    nobody: int | None = None,
) -> Array:
    """Return the expected credit of ``k`` answers drawn without replacement from the observed ones.

    Parameters
    ----------
    counts : ndarray of int, shape (answers,)
        How often each distinct answer was given.
    correct : ndarray of bool, shape (answers,)
    ks : sequence of int
        Votes; NaN where ``k`` exceeds the trials.
    nobody : int, optional
        Trials without an answer.

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
    trials = int(counts.sum()) + (nobody or 0)
    observed = counts > 0  # answers that were never given cannot be drawn

    def ballot(k: int) -> Ballot:
        share = k / (trials + 1)  # below one, so that smaller totals stay possible
        odds = share / (1.0 - share)

        def votes(count: int) -> Array:
            log_none = count * np.log1p(-share)
            return _votes(np.array([count * odds]), -odds, log_none, min(count, k))

        return _grouped(votes, counts[observed], correct[observed], nobody or None, trials)

    return np.asarray(_elected(ballot, ks, trials)[0])


def plurality_posterior(
    counts: Ints,
    correct: Flags,
    ks: Sequence[int],
    alpha: float = 1.0,
    nobody: int | None = None,
) -> Array:
    """Posterior mean: ``k`` fresh answers, probabilities ``Dirichlet(alpha + counts)``.

    Parameters
    ----------
    counts, correct, ks
        As in `plurality_finite`; any ``k``. An answer with count 0 is one that may yet come.
    alpha : float
        Prior concentration of every answer, and of nobody.
    nobody : int, optional
        Trials without an answer; None if there can be none.

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
    total = float(counts.sum()) + (nobody or 0) + alpha * (len(counts) + (nobody is not None))

    def ballot(k: int) -> Ballot:
        share = k / (k + total)

        def votes(count: float) -> Array:
            size = count + alpha
            return _votes(np.array([size * share]), share, size * np.log1p(-share), k)

        return _grouped(votes, counts, correct, nobody, total - alpha)

    return np.asarray(_elected(ballot, ks)[0])


def _votes(first: Array, more: float, log_none: Array | float, most: int) -> Array:
    """Probabilities of 0..most votes, whose successive ratios are ``(first + more v) / (v + 1)``.

    Poisson where ``more`` is 0, binomial below, negative binomial above; a row for each ``first``.
    """
    v = np.arange(most)
    with np.errstate(divide="ignore"):
        ratios = np.log((first[:, None] + more * v) / (v + 1.0))
    logs = np.concatenate([np.zeros((len(first), 1)), np.cumsum(ratios, axis=1)], axis=1)
    return np.asarray(np.exp(logs + np.reshape(log_none, (-1, 1))))


def _grouped(
    votes: Callable[[Any], Array],
    counts: Ints,
    correct: Flags,
    nobody: int | None,
    total: float,
) -> Ballot:
    """Ballot of one question."""
    by_count = {count: votes(count) for count in np.unique(counts).tolist()}
    return Ballot(
        tuple(by_count[count] for count in counts[correct].tolist()),
        tuple(by_count[count] for count in counts[~correct].tolist()),
        None if nobody is None else votes(nobody),
        votes(total)[0],
    )


def _elected(ballot: Callable[[int], Ballot], ks: Sequence[int], trials: float = np.inf) -> Array:
    """Return the expected credit at every k, NaN beyond the trials; shape (batch, len(ks)).

    One ballot serves several ks; those further than 250 apart get one of their own, so that no
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

    More than half of the votes win alone and leave too few for any other to catch up, so all
    those m share one last pair, with polynomials that are not cut off.

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
def _grid(k: int, most: int, answers: int) -> _Grid:
    """With m winning votes at most k // m answers tie: a polynomial in u of one degree less."""
    u, weight = [], []
    sizes = [0]
    for winning in range(1, min(k // 2, most) + 1):
        ties = min(k // winning, answers)
        nodes, weights = np.polynomial.legendre.leggauss((ties + 1) // 2)
        sizes.append(len(nodes))
        u.append(0.5 + 0.5 * nodes)
        weight.append(0.5 * weights)
    if most > k // 2:
        u.append(np.ones(1))
        weight.append(np.ones(1))
    last = np.cumsum(sizes)
    start = np.concatenate([[0, 0], last[1:], np.full(k, last[-1])])[: k + 1]
    tied = np.append(last, np.full(k, last[-1]))[: k + 1]
    return _Grid(np.concatenate(u), np.concatenate(weight), start, tied)


def expected_credit(ballot: Ballot, ks: Sequence[int]) -> Array:
    """Return the expected credit at every k; shape (batch, len(ks)).

    Polynomials are arrays (power, pair, batch): shifted products then run over whole blocks.
    """
    batch = max((len(answer_votes) for answer_votes in (*ballot.correct, *ballot.wrong)), default=1)
    if not ballot.correct:
        return np.zeros((batch, len(ks)))
    k = max(ks)
    answers = len(ballot.correct) + len(ballot.wrong)
    grid = _grid(k, max(vote.shape[1] - 1 for vote in ballot.correct), answers)
    neutral = np.zeros((k + 1, len(grid.u), batch))
    neutral[0] = 1.0
    if ballot.nobody is not None:
        neutral[: ballot.nobody.shape[1]] = ballot.nobody.T[:, None]
    for vote in ballot.wrong:
        neutral = _times(neutral, vote, grid)
    won = np.zeros_like(neutral)
    for vote in ballot.correct:
        won = _times(won, vote, grid)
        _add_winner(won, neutral, vote, grid)
        neutral = _times(neutral, vote, grid)
    sums = np.einsum("p,kpb->bk", grid.weight, won)
    return np.asarray(np.minimum(sums[:, ks] / ballot.total[ks], 1.0))


def credit_by_right_votes(first: Array, more: Array | float, nobody: Array, k: int) -> Array:
    """Return the expected credit of k votes by how many are right, for one right answer.

    The other votes are split between wrong answers, and nobody, whose numbers of votes v have
    weights with successive ratios ``(first + more v) / (v + 1)``: given the total these are
    multinomial with probabilities proportional to `first` where `more` is 0, and have a
    Dirichlet-multinomial distribution with parameters ``first / more`` elsewhere.

    Parameters
    ----------
    first : ndarray, shape (answers, batch)
        Of every wrong answer.
    more : ndarray, shape (batch,), or float
    nobody : ndarray, shape (batch,)
        As `first`, of trials without an answer.
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
    votes = np.moveaxis(_weights(first, more, k // 2), 1, 0)  # more votes win alone
    silent, total = (_weights(part, more, k) for part in (nobody, first.sum(axis=0) + nobody))
    credit = np.zeros((len(nobody), k + 1))
    credit[:, k // 2 + 1 :] = 1.0
    for right in range(1, k // 2 + 1):
        others = k - right
        ties = min(others // right, len(votes))
        nodes, weight = np.polynomial.legendre.leggauss(ties // 2 + 1)
        u = 0.5 + 0.5 * nodes
        product = np.repeat(silent[: others + 1, None], len(u), axis=1)
        for vote in votes:
            # Fewer votes than the right answer, or as many and a factor u.
            following = product * vote[0]
            for d in range(1, right):
                following[d:] += product[:-d] * vote[d]
            following[right:] += product[:-right] * (u[:, None] * vote[right])
            product = following
        credit[:, right] = 0.5 * weight @ product[others] / total[others]
    return np.minimum(credit, 1.0)


def _weights(first: Array, more: Array | float, most: int) -> Array:
    """Weights of 0..most votes along the first axis, as `credit_by_right_votes` has them."""
    weights = np.ones((most + 1, *first.shape))
    for v in range(most):
        np.multiply(weights[v], (first + more * v) / (v + 1.0), out=weights[v + 1])
    return weights


def _times(product: Array, vote: Array, grid: _Grid) -> Array:
    """Multiply by an answer with fewer than m votes, or with m of them and a factor u."""
    size = len(product)
    result = product * vote[:, 0]
    for d in range(1, min(vote.shape[1], size)):
        first, beyond = grid.start[d], grid.tied[d]
        if first == len(grid.u):
            break
        shifted = product[: size - d, first:] * vote[:, d]
        shifted[:, : beyond - first] *= grid.u[first:beyond, None]
        result[d:, first:] += shifted
    return np.asarray(result)


def _add_winner(won: Array, neutral: Array, vote: Array, grid: _Grid) -> None:
    """Add the terms in which this correct answer is the winner that was picked."""
    size = len(won)
    for m in range(1, min(vote.shape[1], size)):
        pairs = slice(grid.start[m], grid.tied[m] if 2 * m < size else None)
        won[m:, pairs] += neutral[: size - m, pairs] * vote[:, m]
