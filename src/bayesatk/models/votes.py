"""Answers: the PyMC model of their probabilities, and votes between them from draws of these.

For votes only definitions are used: the latent value of a vote at the drawn probabilities. Votes
are also simulated one by one, so that their latent formula has a witness.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.question.ballot import plurality_latent, vote_credit
from bayesatk.data.answers import Ballots, possible
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import as_marked
from bayesatk.models.metric_draws import CountDraws, Shares, SystemMetrics, by_chain
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.schema import DRAWS

_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB


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
    return [
        possible(ballots, prior) for by_question in ballots_of(outcomes) for ballots in by_question
    ]


def ballots_of(outcomes: Outcomes) -> list[list[Ballots]]:
    """Return the answers to the questions of every system."""
    answers = outcomes.answers
    if answers is None:
        raise ArgumentError(
            "data must have answers; got outcomes without. Use ",
            Argument("answers", ..., "tally"),
            ", or name the column of a table: ",
            Argument("columns", {"answer": ...}, "tally"),
            ".",
        )
    return [answers.of(system) for system in range(len(outcomes.systems))]


def _counts(ballots: Ballots) -> list[int]:
    """Return counts of all answers, and of trials without any, where these are counted."""
    silent = [] if ballots.abstentions is None else [ballots.abstentions]
    return [*ballots.count.tolist(), *silent]


def answer_draws(
    outcomes: Outcomes,
    prior: AnswerPrior,
    ks: Sequence[int],
    posterior: xr.Dataset,
    rng: Rng,
) -> CountDraws:
    """Draws of plurality votes of k, exact at the drawn probabilities; and simulated ones.

    The population is by the Bayesian bootstrap. The variable ``plurality_votes_at_k`` is the credit
    of one simulated vote per question and draw, averaged over the questions, with their weights.
    """
    p, ballots = flat_draws(posterior["answer_p"]), possible_ballots(outcomes, prior)
    ends = np.cumsum([len(_counts(answers)) for answers in ballots])
    answers = list(
        zip(np.split(p, ends[:-1], axis=1), (answers.correct for answers in ballots), strict=True)
    )
    tried = np.array([any(_counts(answers)) for answers in ballots])
    systems, questions = outcomes.trials.shape
    shares, by_system = Shares.of(questions, outcomes.weight), []
    for start in range(0, systems * questions, questions):
        of_system = slice(start, start + questions)
        means = vote_means(answers[of_system], shares, tried[of_system], ks, rng)
        by_system.append([values[:, 0] for values in means])
    on_questions, like, votes = (
        by_chain(posterior, values) for values in zip(*by_system, strict=True)
    )
    values = np.stack([on_questions, like], axis=-1)
    return CountDraws(values, {"plurality_votes_at_k": ((*DRAWS, "k"), votes)})


def vote_means(
    answers: Iterable[tuple[Array, Flags]],
    shares: Shares,
    tried: Flags,
    ks: Sequence[int],
    rng: Rng,
) -> list[Array]:
    """Means of votes over the questions of each group.

    Parameters
    ----------
    answers : iterable of (ndarray, ndarray of bool)
        For every question draws of the probabilities of its answers, and at the end that of
        abstention if it is counted; and which answers are right.
    shares : Shares
    tried : ndarray of bool, shape (questions,)
    ks : sequence of int
    rng : numpy.random.Generator

    Returns
    -------
    list of ndarray, shape (draws, groups, ks)
        Exact at the drawn probabilities; of questions drawn anew; and of one simulated vote each.
    """
    of_questions = iter(answers)

    def credits(span: Indices, generator: Rng) -> Array:
        return np.stack(
            [
                np.hstack(
                    [
                        latent_votes(p[:, : len(correct)], correct, ks),
                        simulated_credit(p, correct, ks, generator),
                    ]
                )
                for p, correct in islice(of_questions, len(span))
            ],
            axis=1,
        )

    # Credits stand where p does elsewhere: a metric of them is one of their columns.
    columns = [SimpleNamespace(latent=itemgetter((..., column))) for column in range(2 * len(ks))]
    means = SystemMetrics(columns, shares, credits, tried, resampled=True).draw(False, rng)
    exact, simulated = np.split(means.by_group, 2, axis=2)
    return [exact[..., 0], exact[..., 1], simulated[..., 0]]


def latent_votes(p: Array, correct: Flags, ks: Sequence[int]) -> Array:
    """Exact votes on one question at draws of p, in blocks that fit in memory; (draws, ks)."""
    width = max(1, _MAX_FLOATS_PER_BLOCK // max(ks) ** 2)
    blocks = (p[start : start + width] for start in range(0, len(p), width))
    return np.concatenate([plurality_latent(block, correct, ks) for block in blocks])


def simulated_credit(p: Array, correct: Flags, ks: Sequence[int], rng: Rng) -> Array:
    """Credit of one vote of k at each row of probabilities: draw, count, compare.

    The probability of an abstention is behind those of the answers.

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
