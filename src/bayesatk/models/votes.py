"""Votes between answers from draws of their probabilities, whoever made them.

Only definitions are used: the latent value of a vote at the drawn probabilities. Votes are also
simulated one by one, so that their latent formula has a witness.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.ballot import plurality_latent, vote_credit
from bayesatk.data.outcomes import Outcomes

Array = NDArray[np.float64]
_CHUNK = 4_000_000


def answer_draws(
    outcomes: Outcomes,
    entries: Mapping[str, Any],
    ks: Sequence[int],
    posterior: xr.Dataset,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Draws of plurality votes of k.

    Returns
    -------
    values : ndarray, shape (draws, system, ks, target)
        Exact at the drawn probabilities; the population by the Bayesian bootstrap.
    votes : ndarray, shape (draws, system, ks)
        Credit of one simulated vote per question and draw, averaged over the questions, with
        their weights.
    """
    p = posterior["answer_p"].transpose("chain", "draw", "entry").values
    p = p.reshape(-1, p.shape[-1])
    systems, questions = outcomes.trials.shape
    share = np.ones(questions) if outcomes.weight is None else outcomes.weight
    share = share / share.max()
    share /= share.sum()
    shape = (len(p), systems, len(ks))
    mean, bootstrap, votes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    total = np.zeros(shape[:2])
    for cell in range(systems * questions):
        system, part = cell // questions, share[cell % questions]
        own = _Question(entries, np.flatnonzero(entries["cell"] == cell))
        values = own.latent(p, ks)
        weight = part * rng.standard_exponential(len(p))
        mean[:, system] += values * part
        bootstrap[:, system] += values * weight[:, None]
        total[:, system] += weight
        votes[:, system] += own.simulated(p, ks, rng) * part
    return np.stack([mean, bootstrap / total[:, :, None]], axis=-1), votes


class _Question:
    """The entries of one question, and votes between them."""

    def __init__(self, entries: Mapping[str, Any], mine: NDArray[np.intp]) -> None:
        self._mine, self._nobody = mine, entries["nobody"][mine]
        self._correct = entries["correct"][mine]

    def latent(self, p: Array, ks: Sequence[int]) -> Array:
        """Exact values at the drawn probabilities, in blocks that fit in memory."""
        voted, correct = self._mine[~self._nobody], self._correct[~self._nobody]
        width = max(1, _CHUNK // max(ks) ** 2)
        return np.concatenate(
            [
                plurality_latent(p[start : start + width, voted], correct, ks)
                for start in range(0, len(p), width)
            ]
        )

    def simulated(self, p: Array, ks: Sequence[int], rng: np.random.Generator) -> Array:
        """Credit of one simulated vote at each draw."""
        return simulated_credit(p[:, self._mine], self._correct, self._nobody, ks, rng)


def simulated_credit(
    p: Array,
    correct: NDArray[np.bool_],
    nobody: NDArray[np.bool_],
    ks: Sequence[int],
    rng: np.random.Generator,
) -> Array:
    """Credit of one vote of k at each row of probabilities: draw, count, compare.

    Examples
    --------
    >>> p, right = np.array([[0.0, 1.0]]), np.array([False, True])
    >>> simulated_credit(p, right, np.array([False, False]), [3], np.random.default_rng(0)).tolist()
    [[1.0]]
    """
    found = np.empty((len(p), len(ks)))
    for column, k in enumerate(ks):
        votes = np.where(nobody, 0, rng.multinomial(k, p / p.sum(axis=1, keepdims=True)))
        found[:, column] = vote_credit(votes, correct)
    return found
