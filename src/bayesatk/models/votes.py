"""Answers: the PyMC model of their probabilities, and votes between them from draws of these.

For votes only definitions are used: the latent value of a vote at the drawn probabilities. Votes
are also simulated one by one, so that their latent formula has a witness.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.question.ballot import plurality_latent, vote_credit
from bayesatk.data.answers import possible
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.priors import AnswerPrior

Array = NDArray[np.float64]
_CHUNK = 4_000_000


def build_answers(data: object, prior: AnswerPrior | None = None) -> pm.Model:
    """Independent Dirichlet probabilities for the answers to every question.

    Questions have different numbers of answers, so the probabilities are written as independent
    Gamma variates over their sum by question, which is the same distribution.

    Parameters
    ----------
    data : Outcomes
        With answers.
    prior : AnswerPrior, optional

    Returns
    -------
    pymc.Model
        ``rate(entry)``, and ``answer_p(entry)``, the probability of every answer; entries are the
        rows of `answer_entries`.

    See Also
    --------
    bayesatk.evaluate : the exact posterior of this model.

    Examples
    --------
    >>> data = tally([[1, 0, 0]], answers=[["a", "b", "b"]])
    >>> model = build_answers(data)
    >>> model.named_vars_to_dims["answer_p"]
    ('entry',)
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = AnswerPrior() if prior is None else prior
    entries = answer_entries(outcomes, prior)
    cell, count = entries["cell"], entries["count"]
    with pm.Model(coords={"entry": entries["label"]}) as model:
        rate = pm.Gamma("rate", prior.concentration, 1.0, dims="entry")
        total = pt.zeros(int(cell.max()) + 1)[cell].inc(rate)
        p = pm.Deterministic("answer_p", rate / total[cell], dims="entry")
        observed = pm.Data("answer_count", count.astype(float), dims="entry")
        pm.Potential("log_likelihood", (observed * pt.log(p)).sum())
    return model


def answer_entries(outcomes: Outcomes, prior: AnswerPrior) -> Mapping[str, Any]:
    """Every answer that may come, as flat arrays.

    Returns
    -------
    mapping
        ``cell`` (system times questions plus question), ``count``, ``correct``, ``nobody`` and
        ``label`` of every entry.
    """
    if outcomes.answers is None:
        raise ArgumentError(
            "data must have answers; got outcomes without. Use ",
            Argument("answers", ..., "tally"), ", or name the column of a table: ",
            Argument("columns", {"answer": ...}, "tally"), ".",
        )  # fmt: skip
    cells, counts, correct, nobody, labels = [], [], [], [], []
    questions = outcomes.trials.shape[1]
    for system in range(len(outcomes.systems)):
        for question, given in enumerate(outcomes.answers.of(system)):
            one = possible(given, prior)
            silent = [] if one.nobody is None else [one.nobody]
            size = len(one.count) + len(silent)
            cells += [system * questions + question] * size
            counts += [*one.count.tolist(), *silent]
            correct += [*one.correct.tolist(), *([False] * len(silent))]
            nobody += [False] * (size - len(silent)) + [True] * len(silent)
            labels += [f"{system}/{question}/{i}" for i in range(size)]
    return {
        "cell": np.array(cells), "count": np.array(counts), "correct": np.array(correct, bool),
        "nobody": np.array(nobody, bool), "label": labels,
    }  # fmt: skip


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
    tried = np.bincount(entries["cell"], entries["count"], systems * questions) > 0
    for cell in range(systems * questions):
        system, part = cell // questions, share[cell % questions]
        own = _Question(entries, np.flatnonzero(entries["cell"] == cell))
        values = own.latent(p, ks)
        weight = part * tried[cell] * rng.standard_exponential(len(p))
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
