"""Metrics of categories and of answers from draws of their probabilities, whoever made them.

Only definitions are used: the latent value of every metric at the drawn probabilities. Votes
between answers are also simulated one by one, so that their latent formula has a witness.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.ballot import plurality_latent, vote_credit
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.category_credit import CategoryCredit, reachable

Array = NDArray[np.float64]
_CHUNK = 4_000_000

Judged = Sequence[tuple[CategoryCredit, Array]]


def judged_credits(credits: Sequence[CategoryCredit], scores: Array) -> Judged:
    """Return metrics on the scores, and then the probability to reach each of the higher ones."""
    above = scores[reachable(scores)]
    reach = [(CategoryCredit(1), (scores >= score).astype(float)) for score in above]
    return [*((credit, scores) for credit in credits), *reach]


def category_draws(
    outcomes: Outcomes,
    judged: Judged,
    posterior: xr.Dataset,
    rng: np.random.Generator,
    prior_counts: Array | None = None,
) -> tuple[Array, Array]:
    """Draws of metrics, (draws, system, judged, target), and of p where the trace has none.

    Returns
    -------
    values : ndarray, shape (draws, system, judged, target)
    p : ndarray, shape (draws, system, question, category)
    """
    values, kept = [], []
    for system in range(len(outcomes.systems)):
        own = posterior.isel(system=system)
        counts = outcomes.dataset["count"].values[system].astype(float)
        if prior_counts is not None:
            counts = counts + prior_counts[system]
        p = _stored(own) if "p" in own else category_p(own, counts, rng)
        kept.append(p)
        worth = [credit.latent(p, scores) for credit, scores in judged]
        questions = np.stack([one.mean(axis=1) for one in worth], axis=1)
        population = _population(own, judged)
        if population is None:
            weight = rng.standard_exponential(p.shape[:2])
            weight /= weight.sum(axis=1, keepdims=True)
            population = np.stack([(one * weight).sum(axis=1) for one in worth], axis=1)
        values.append(np.stack([questions, population], axis=-1))
    return np.stack(values, axis=1), np.stack(kept, axis=1)


def _stored(own: xr.Dataset) -> Array:
    p = own["p"].transpose("chain", "draw", "question", "category").values
    return np.asarray(p.reshape(-1, *p.shape[2:]))


def _hyper(own: xr.Dataset) -> tuple[Array, Array | None]:
    """Mean vectors by draw, and concentrations where the questions differ."""
    mean = own["mean_p"].transpose("chain", "draw", "category").values
    flat = mean.reshape(-1, mean.shape[-1])
    if "icc" not in own:
        return flat, None
    icc = own["icc"].transpose("chain", "draw").values.ravel()
    return flat, (1.0 - icc) / icc


def category_p(own: xr.Dataset, counts: Array, rng: np.random.Generator) -> Array:
    """Draws of p (draws, questions, categories) given one system's sampled hyperparameters."""
    mean, concentration = _hyper(own)
    if concentration is None:
        return np.repeat(mean[:, None], len(counts), axis=1)
    alpha = (mean * concentration[:, None])[:, None] + counts
    gamma = rng.standard_gamma(alpha)
    return np.asarray(gamma / gamma.sum(axis=-1, keepdims=True))


def _population(own: xr.Dataset, judged: Judged) -> Array | None:
    """Return the expected metrics of a new question, where the model defines them."""
    if "mean_p" not in own:
        return None
    mean, concentration = _hyper(own)
    if concentration is None:
        return np.stack([credit.latent(mean, scores) for credit, scores in judged], axis=1)
    alpha = mean * concentration[:, None]
    return np.stack([credit.predictive(alpha, scores) for credit, scores in judged], axis=1)


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
        Credit of one simulated vote per question and draw, averaged over the questions.
    """
    p = posterior["answer_p"].transpose("chain", "draw", "entry").values
    p = p.reshape(-1, p.shape[-1])
    systems, questions = outcomes.trials.shape
    shape = (len(p), systems, len(ks))
    mean, bootstrap, votes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    total = np.zeros(shape[:2])
    for cell in range(systems * questions):
        system = cell // questions
        own = _Question(entries, np.flatnonzero(entries["cell"] == cell))
        values = own.latent(p, ks)
        weight = rng.standard_exponential(len(p))
        mean[:, system] += values / questions
        bootstrap[:, system] += values * weight[:, None]
        total[:, system] += weight
        votes[:, system] += own.simulated(p, ks, rng) / questions
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
