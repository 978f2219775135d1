"""Answers: the PyMC model of their probabilities, and votes between them from draws of these.

For votes only definitions are used: the latent value of a vote at the drawn probabilities. Votes
are also simulated one by one, so that their latent formula has a witness.
"""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.question.ballot import plurality_latent, vote_credit
from bayesatk.data.answers import Ballots, possible
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import as_marked
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty import flat_draws

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
        ``rate(entry)``, and ``answer_p(entry)``, the probability of every answer; entries are
        the answers that may come, by system and question.

    See Also
    --------
    bayesatk.evaluate : the exact posterior of this model.

    Examples
    --------
    >>> import bayesatk
    >>> data = bayesatk.tally([[1, 0, 0]], answers=[["a", "b", "b"]])
    >>> model = build_answers(data)
    >>> model.named_vars_to_dims["answer_p"]
    ('entry',)
    """
    outcomes = as_marked(data)
    prior = AnswerPrior() if prior is None else prior
    counts = [_counts(ballots) for ballots in possible_ballots(outcomes, prior)]
    cell = np.repeat(np.arange(len(counts)), [len(answers) for answers in counts])
    questions = outcomes.trials.shape[1]
    labels = [
        f"{number // questions}/{number % questions}/{answer}"
        for number, answers in enumerate(counts)
        for answer in range(len(answers))
    ]
    with pm.Model(coords={"entry": labels}) as model:
        rate = pm.Gamma("rate", prior.concentration, 1.0, dims="entry")
        total = pt.zeros(len(counts))[cell].inc(rate)
        p = pm.Deterministic("answer_p", rate / total[cell], dims="entry")
        observed = pm.Data("answer_count", np.concatenate(counts).astype(float), dims="entry")
        pm.Potential("log_likelihood", (observed * pt.log(p)).sum())
    return model


def possible_ballots(outcomes: Outcomes, prior: AnswerPrior) -> list[Ballots]:
    """Return the answers that may come to every question, one system after the other."""
    if outcomes.answers is None:
        raise ArgumentError(
            "data must have answers; got outcomes without. Use ",
            Argument("answers", ..., "tally"), ", or name the column of a table: ",
            Argument("columns", {"answer": ...}, "tally"), ".",
        )  # fmt: skip
    return [
        possible(ballots, prior)
        for system in range(len(outcomes.systems))
        for ballots in outcomes.answers.of(system)
    ]


def _counts(ballots: Ballots) -> list[int]:
    """Return counts of all answers, and of trials without any, where these are counted."""
    silent = [] if ballots.nobody is None else [ballots.nobody]
    return [*ballots.count.tolist(), *silent]


def answer_draws(
    outcomes: Outcomes,
    prior: AnswerPrior,
    ks: Sequence[int],
    posterior: xr.Dataset,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Draws of plurality votes of k.

    Returns
    -------
    values : ndarray, shape (chain, draw, system, ks, target)
        Exact at the drawn probabilities; the population by the Bayesian bootstrap.
    votes : ndarray, shape (chain, draw, system, ks)
        Credit of one simulated vote per question and draw, averaged over the questions, with
        their weights.
    """
    p = flat_draws(posterior["answer_p"])
    systems, questions = outcomes.trials.shape
    share = np.ones(questions) if outcomes.weight is None else outcomes.weight
    share = share / share.max()
    share /= share.sum()
    shape = (len(p), systems, len(ks))
    mean, bootstrap, votes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    total, start = np.zeros(shape[:2]), 0
    for number, ballots in enumerate(possible_ballots(outcomes, prior)):
        system, question = divmod(number, questions)
        counts = _counts(ballots)
        of_question = p[:, start : start + len(counts)]
        start += len(counts)
        values = latent_votes(of_question[:, : len(ballots.correct)], ballots.correct, ks)
        weight = share[question] * any(counts) * rng.standard_exponential(len(p))
        mean[:, system] += values * share[question]
        bootstrap[:, system] += values * weight[:, None]
        total[:, system] += weight
        credit = simulated_credit(of_question, ballots.correct, ks, rng)
        votes[:, system] += credit * share[question]
    values = np.stack([mean, bootstrap / total[:, :, None]], axis=-1)
    chains = posterior.sizes["chain"], posterior.sizes["draw"]
    return values.reshape(*chains, *values.shape[1:]), votes.reshape(*chains, *shape[1:])


def latent_votes(p: Array, correct: NDArray[np.bool_], ks: Sequence[int]) -> Array:
    """Exact votes on one question at draws of p, in blocks that fit in memory; (draws, ks)."""
    width = max(1, _CHUNK // max(ks) ** 2)
    blocks = (p[start : start + width] for start in range(0, len(p), width))
    return np.concatenate([plurality_latent(block, correct, ks) for block in blocks])


def simulated_credit(
    p: Array, correct: NDArray[np.bool_], ks: Sequence[int], rng: np.random.Generator
) -> Array:
    """Credit of one vote of k at each row of probabilities: draw, count, compare.

    The probability that nobody answers is behind those of the answers.

    Examples
    --------
    >>> p, right = np.array([[0.0, 1.0]]), np.array([False, True])
    >>> simulated_credit(p, right, [3], np.random.default_rng(0)).tolist()
    [[1.0]]
    """
    credits = []
    for k in ks:
        votes = rng.multinomial(k, p / p.sum(axis=1, keepdims=True))
        credits.append(vote_credit(votes[:, : len(correct)], correct))
    return np.stack(credits, axis=1)
