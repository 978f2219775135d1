"""How often wrong answers to a question agree: the Ewens law, and shares of answers drawn from it.

Two wrong trials of a question give the same answer with probability ``a``, its agreement, and
``theta = (1 - a) / a``. The n-th wrong trial repeats an answer that m of the n - 1 before gave with
probability ``m / (n - 1 + theta)``, or gives a new answer with probability
``theta / (n - 1 + theta)`` (Ewens 1972; the Chinese restaurant process). Answers to different
questions are independent given theta.
"""

from collections.abc import Sequence

import numpy as np

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.question.dirichlet_multinomial import draw_probabilities

Counts = Ints
_DUST = 0.02  # share of the answers not seen below which they never agree
_STICKS = 40  # most answers not seen that may agree


def log_ewens(log_theta: Array, counts: Sequence[Counts]) -> Array:
    """Return the log probability of the answers of questions in their order, by log theta.

    Factors that do not depend on theta are left out.

    Parameters
    ----------
    log_theta : ndarray, shape (points,)
    counts : sequence of ndarray of int, shape (answers,)
        Of each question, all positive.

    Examples
    --------
    Two trials with different answers: theta / (1 + theta).

    >>> np.exp(log_ewens(np.zeros(1), [np.array([1, 1])])).round(12).tolist()
    [0.5]
    """
    answers = sum(len(of_question) for of_question in counts)
    totals = np.array([of_question.sum() for of_question in counts], np.int64)
    logs = (answers - (totals > 0).sum()) * log_theta
    for before in range(1, totals.max(initial=0)):
        logs = logs - (totals > before).sum() * np.logaddexp(log_theta, np.log(before))
    return np.asarray(logs)


def draw_shares(counts: Counts, theta: Array, rng: Rng) -> tuple[Array, Array]:
    """Draw shares of answers given the counts of those seen, one draw for each theta.

    The shares of the answers seen and of all others are ``Dirichlet(counts, theta)``; the others
    are broken off as sticks (Sethuraman 1994), until less than a hundredth of them is left.

    Returns
    -------
    shares : ndarray, shape (draws, answers)
    dust : ndarray, shape (draws,)
        Share of the rest, whose trials all differ.
    """
    alpha = np.column_stack([np.broadcast_to(counts, (len(theta), len(counts))), theta])
    first = draw_probabilities(alpha.astype(float), rng)
    # A part theta / (1 + theta) of what is left stays, on average, with every stick.
    sticks = -np.log(_DUST) / np.log1p(1.0 / np.quantile(theta, 0.9))
    size = int(np.clip(np.ceil(sticks), 1, _STICKS))
    remaining = rng.random((len(theta), size)) ** (1.0 / theta[:, None])  # 1 - Beta(1, theta)
    left = np.cumprod(remaining, axis=1)
    broken = (1.0 - remaining) * np.column_stack([np.ones(len(theta)), left[:, :-1]])
    return np.column_stack([first[:, :-1], first[:, -1:] * broken]), first[:, -1] * left[:, -1]


def simulated_tops(
    shares: Array, dust: Array, k: int, repeats: int, rng: Rng
) -> tuple[Array, Array]:
    """Votes of the winner, and how many answers have these, after 0, 1, ... k votes of a side.

    Each of shape (draws, repeats, k + 1); -1 and 0 before the first vote. Parameters as
    `draw_shares` returns them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> [top[0, 0].tolist() for top in simulated_tops(np.zeros((1, 0)), np.ones(1), 3, 1, rng)]
    [[-1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0]]
    """
    draws, answers = shares.shape
    upto = np.cumsum(shares, axis=1)
    chosen = np.empty((draws, repeats * k), np.intp)
    for row, ends in enumerate(upto):
        chosen[row] = np.searchsorted(ends, rng.random(repeats * k) * (ends[-1:].sum() + dust[row]))
    tops = _running_tops(chosen.reshape(-1, k), answers)
    best, tied = (top.reshape(draws, repeats, k + 1) for top in tops)
    return best, tied


def _running_tops(answer: Indices, differing: int) -> tuple[Array, Array]:
    """Return `simulated_tops` of elections (elections, k); votes for `differing` never agree."""
    elections, k = answer.shape
    rows, held = np.arange(elections), np.zeros((elections, differing + 1))
    best, tied = np.full((elections, k + 1), -1.0), np.zeros((elections, k + 1))
    for vote in range(k):
        place, top = answer[:, vote], best[:, vote]
        votes = np.where(place == differing, 0.0, held[rows, place]) + 1.0
        held[rows, place] = votes
        tied[:, vote + 1] = np.where(votes > top, 1.0, tied[:, vote] + (votes == top))
        best[:, vote + 1] = np.maximum(top, votes)
    return best, tied
