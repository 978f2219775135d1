"""Plurality vote on answers under the finite and the posterior law.

The latent law and the engine are in `bayesatk.core.question.ballot`.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.question.ballot import Ballot, expected_credit, together
from bayesatk.metrics.credit import Array

_Votes = Callable[[int], Array]


def plurality_finite(
    counts: NDArray[np.int64],
    correct: NDArray[np.bool_],
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
    credit = np.full(len(ks), np.nan)
    for served in together(ks, trials):
        largest = max(ks[i] for i in served)
        share = largest / (trials + 1)  # below one, so that smaller totals stay possible

        def votes(count: int, share: float = share, k: int = largest) -> Array:
            return _binomial(count, share, k)

        ballot = _grouped(
            votes, counts[observed], correct[observed], votes(nobody) if nobody else None,
            votes(trials),
        )  # fmt: skip
        credit[served] = expected_credit(ballot, [ks[i] for i in served])[0]
    return credit


def plurality_posterior(
    counts: NDArray[np.int64],
    correct: NDArray[np.bool_],
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
    credit = np.empty(len(ks))
    for served in together(ks):
        largest = max(ks[i] for i in served)
        share = largest / (largest + total)

        def votes(count: float, share: float = share, k: int = largest) -> Array:
            return _negative_binomial(count + alpha, share, k)

        unknown = None if nobody is None else votes(nobody)
        credit[served] = expected_credit(
            _grouped(votes, counts, correct, unknown, _negative_binomial(total, share, largest)),
            [ks[i] for i in served],
        )[0]
    return credit


def _grouped(
    votes: _Votes,
    counts: NDArray[np.int64],
    correct: NDArray[np.bool_],
    nobody: Array | None,
    total: Array,
) -> Ballot:
    kinds, repeats = np.unique(counts[~correct], return_counts=True)
    return Ballot(
        tuple(votes(count)[None] for count in counts[correct].tolist()),
        tuple(votes(count)[None] for count in kinds.tolist()),
        tuple(repeats.tolist()),
        None if nobody is None else nobody[None],
        total,
    )


def _binomial(count: int, share: float, k: int) -> Array:
    """``C(n, v) s^v (1 - s)^(n - v)`` for v = 0..min(n, k), from the ratios of its terms."""
    v = np.arange(min(count, k))
    steps = np.log((count - v) / (v + 1.0) * (share / (1.0 - share)))
    logs = count * np.log1p(-share) + np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(np.exp(logs), float)


def _negative_binomial(size: float, share: float, k: int) -> Array:
    """``Gamma(a + v) / (Gamma(a) v!) (1 - s)^a s^v`` for v = 0..k."""
    v = np.arange(k)
    steps = np.log((size + v) / (v + 1.0) * share)
    logs = size * np.log1p(-share) + np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(np.exp(logs), float)
