"""Votes under partial pooling from PyMC: the shares of right answers, and how wrong ones agree.

Right and wrong is the model of all counts; wrong answers have a Dirichlet-multinomial distribution.
Only definitions are used after that: shares are drawn, elections are worked out at these and also
held one by one, and votes on a new question are summed over the partitions of its wrong votes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from scipy.special import gammaln
from scipy.stats import betabinom

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.answers import wrong_answers
from bayesatk.data.study import Study
from bayesatk.metrics.credit import Credit
from bayesatk.metrics.families import Family, Metric
from bayesatk.metrics.grid import parse
from bayesatk.models.evidence import Averaged, average
from bayesatk.models.metric_draws import (
    CountDraws,
    Shares,
    SystemMetrics,
    by_chain,
    drawn_hyperparameters,
    named_draws,
    traced_p,
)
from bayesatk.models.program import build_models
from bayesatk.models.question_draws import all_trials, traced_laws
from bayesatk.models.votes import ballots_of, vote_means
from bayesatk.priors import AnswerHyperPrior
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.schema import DRAWS

_MAX_K_ENUMERATED = 30  # votes whose partitions are enumerated


def build_wrong_answers(study: Study) -> pm.Model:
    """Build the model of the wrong answers to questions, given how many trials are wrong.

    Parameters
    ----------
    study : Study
        With votes under partial pooling.

    Returns
    -------
    pymc.Model
        ``answer_icc``, and ``unanswered``, the mean share of trials without an answer among those
        that are not right, where there are any. Observed are ``answers_0``, ``answers_1``, ...: by
        system the counts of each wrong answer to every question, and of none.
    """
    prior = study.answer_prior
    assert isinstance(prior, AnswerHyperPrior)
    tables = [wrong_answers(ballots, prior) for ballots in ballots_of(study.outcomes)]
    silent = np.array([bool(table[:, -1].any()) for table in tables])
    with pm.Model(coords={"system": study.outcomes.systems}) as model:
        icc = pm.Beta("answer_icc", *np.array(prior.icc, np.float64), dims="system")
        total = 1.0 / icc - 1.0
        no_answer_alpha = pt.zeros(len(tables))
        if silent.any():
            no_answer_alpha = total * silent * pm.Beta("unanswered", 1.0, 1.0, dims="system")
        for system, table in enumerate(tables):
            size = table.shape[1] - 1
            alpha = pt.repeat((total[system] - no_answer_alpha[system]) / size, size)
            if silent[system]:
                alpha = pt.concatenate([alpha, no_answer_alpha[system : system + 1]])
            observed = table if silent[system] else table[:, :-1]
            pm.DirichletMultinomial(
                f"answers_{system}", observed.sum(axis=1), alpha, observed=observed
            )
    return model


def pooled_vote_draws(
    study: Study, run: Callable[[pm.Model], xr.DataTree], rng: Rng
) -> tuple[CountDraws, Averaged, dict[str, xr.DataTree]]:
    """Sample the models of votes under partial pooling: draws, families averaged, and traces.

    Parameters
    ----------
    study : Study
    run : callable
        Samples a model.
    rng : numpy.random.Generator
    """
    ks = [metric.k for metric in study.grid.voted.values()]
    if max(ks) > _MAX_K_ENUMERATED:
        raise ArgumentError(
            "metrics",
            f" must have k <= {_MAX_K_ENUMERATED} for sampled votes with ",
            Argument("pooling", "partial"),
            f", whose partitions are enumerated; got {max(ks)}. bayesatk.evaluate takes more.",
        )
    right = _right_wrong(study)
    traces = {name: run(model) for name, model in build_models(right).items()}
    averaged = average(right, {n: t["posterior"].to_dataset() for n, t in traces.items()}, rng)
    source = next(iter(traces.values()))["posterior"].to_dataset()
    answers = run(build_wrong_answers(study))
    draws = _Draws(study, answers["posterior"].to_dataset(), rng)
    by_system: list[tuple[Any, ...]] = []
    for system in range(len(study.outcomes.systems)):
        shares = _system(right, source, averaged, ks, rng, system)
        by_system.append((*draws.of(system, shares), shares.variables))
    values, grouped, votes, agreement, variables = zip(*by_system, strict=True)
    named = named_draws(right, source, variables)
    named["plurality_votes_at_k"] = ((*DRAWS, "k"), by_chain(source, votes))
    named["wrong_agreement"] = DRAWS, by_chain(source, agreement)
    by_group = np.stack(grouped, axis=1) if study.grouping is not None else None
    counts = CountDraws(by_chain(source, values), named, by_group)
    traces["answers"] = answers
    return counts, averaged, {f"votes_{name}": trace for name, trace in traces.items()}


def _right_wrong(study: Study) -> Study:
    """Return the study of right trials, and of those that are not."""
    ballots = ballots_of(study.outcomes)
    table = np.array([[ballot.by_mark for ballot in by_question] for by_question in ballots])
    data = study.outcomes.dataset.assign(count=(("system", "question", "category"), table))
    outcomes = replace(study.outcomes, dataset=data)
    return replace(study, outcomes=outcomes, metrics=parse("pass@1"))


@dataclass(frozen=True)
class _Shares:
    """Draws of one system's shares of right answers.

    Parameters
    ----------
    p : ndarray, shape (draws, questions)
    new : list of ndarray, shape (draws, groups, k + 1)
        For every k the probabilities that so many of k trials of a new question are right.
    new_groups : list of ndarray, shape (draws, k + 1)
        The same of new groups; empty without groups.
    variables : mapping
        Hyperparameters.
    """

    p: Array
    new: list[Array]
    new_groups: list[Array]
    variables: Mapping[str, Array]


def _system(
    study: Study,
    posterior: xr.Dataset,
    averaged: Averaged,
    ks: Sequence[int],
    rng: Rng,
    system: int,
) -> _Shares:
    """Draw p of every question, and what is expected of new ones."""
    counts = all_trials(study)[system]
    laws = traced_laws(study, posterior, system, averaged.difficulties[system])
    p = traced_p(posterior, system, laws, counts)
    metrics = [_exactly(k, number) for k in ks for number in range(k + 1)]
    shares = Shares.of(len(counts), study.outcomes.weight, study.grouping)
    drawn = SystemMetrics(metrics, shares, p, counts.any(axis=-1), laws).draw(True, rng)
    assert drawn.p is not None  # they were asked to be kept
    ends = np.cumsum([k + 1 for k in ks])[:-1]
    new = np.split(drawn.by_group[..., 1], ends, axis=2)
    grouped = study.grouping is not None
    new_groups = np.split(drawn.whole[..., 2], ends, axis=1) if grouped else []
    return _Shares(drawn.p, new, new_groups, drawn_hyperparameters(study, posterior, system, laws))


def _exactly(trials: int, number: int) -> Metric:
    """Return the metric that is one if exactly so many of some trials succeed."""
    credit = Credit.of(float(j == number) for j in range(trials + 1))
    return Family(f"exactly_{number}", "exactly@", lambda k: credit).at(trials)


@dataclass(frozen=True)
class _Draws:
    """Draws of votes by definition, system by system."""

    study: Study
    answers: xr.Dataset
    rng: Rng

    def of(self, system: int, right: _Shares) -> tuple[Array, ...]:
        """Draws of votes of a system, whole, by group, and simulated; and of the agreement.

        Of shapes (draws, ks, targets), (draws, groups, ks, 2), (draws, ks) and (draws,).
        """
        study, rng = self.study, self.rng
        ballots, prior = ballots_of(study.outcomes)[system], study.answer_prior
        assert isinstance(prior, AnswerHyperPrior)
        counts = wrong_answers(ballots, prior)
        size = counts.shape[1] - 1
        answer_alpha, no_answer_alpha = self._concentration(system, counts)
        ks = [metric.k for metric in study.grid.voted.values()]
        shares = Shares.of(len(ballots), study.outcomes.weight, study.grouping)
        answers = (
            self._probabilities(
                question_counts, right.p[:, question], answer_alpha, no_answer_alpha
            )
            for question, question_counts in enumerate(counts)
        )
        tried = np.array([ballot.tried for ballot in ballots])
        on_questions, like, votes = vote_means(answers, shares, tried, ks, rng)
        new = None
        if not study.bootstrapped:
            credit = [_credit_by_right(answer_alpha, no_answer_alpha, size, k) for k in ks]
            pairs = zip(right.new, credit, strict=True)
            like = np.stack([np.einsum("dgr,dr->dg", *pair) for pair in pairs], axis=2)
            if right.new_groups:
                pairs = zip(right.new_groups, credit, strict=True)
                new = np.stack([(law * k_credit).sum(axis=1) for law, k_credit in pairs], axis=1)
        elif study.grouping is not None:
            new = shares.new_groups(like.swapaxes(1, 2), rng)
        by_group = np.stack([on_questions, like], axis=-1)
        whole = np.einsum("dgkt,g->dkt", by_group, shares.group_share)
        if new is not None:
            whole = np.concatenate([whole, new[..., None]], axis=-1)
        agreement = (1.0 + answer_alpha) / (1.0 + size * answer_alpha)
        return whole, by_group, np.einsum("dgk,g->dk", votes, shares.group_share), agreement

    def _concentration(self, system: int, counts: Ints) -> tuple[Array, Array]:
        """Dirichlet parameters of each wrong answer and of none in every draw."""
        total = 1.0 / flat_draws(self.answers["answer_icc"], system) - 1.0
        none = np.zeros(len(total))
        if counts[:, -1].any():
            none = total * flat_draws(self.answers["unanswered"], system)
        return (total - none) / (counts.shape[1] - 1), none

    def _probabilities(
        self, counts: Ints, p: Array, answer_alpha: Array, no_answer_alpha: Array
    ) -> tuple[Array, Flags]:
        """Draw probabilities of the right answer, of wrong ones and of none; which are right."""
        alpha = counts + np.column_stack([*[answer_alpha] * (len(counts) - 1), no_answer_alpha])
        gammas = self.rng.standard_gamma(alpha)
        wrong = gammas / np.maximum(gammas.sum(axis=1, keepdims=True), 1e-300)
        drawn = np.column_stack([p, (1.0 - p)[:, None] * wrong])
        return drawn, np.arange(len(counts)) == 0


def _credit_by_right(answer_alpha: Array, no_answer_alpha: Array, size: int, k: int) -> Array:
    """Return the expected credit of k votes on a new question by right votes; (draws, k + 1).

    Over the partitions of wrong votes, whose numbers of answers with so many votes each have
    Dirichlet-multinomial probabilities.
    """
    credit = np.zeros((len(answer_alpha), k + 1))
    for right in range(1, k + 1):
        for wrong in range(k - right + 1) if no_answer_alpha.any() else [k - right]:
            answered: Any = 1.0
            if no_answer_alpha.any():
                answered = betabinom.pmf(wrong, k - right, size * answer_alpha, no_answer_alpha)
            won: Any = 0.0
            for partition in _partitions(wrong, wrong):
                largest = max(partition, default=0)
                ties = sum(votes == right for votes in partition)
                if len(partition) <= size and largest <= right:
                    won = won + _partition_probability(partition, answer_alpha, size) / (1.0 + ties)
            credit[:, right] += answered * won
    return credit


def _partitions(n: int, most: int) -> Iterator[list[int]]:
    """Yield partitions of n into parts of at most so many, descending."""
    if n == 0:
        yield []
    for largest in range(min(n, most), 0, -1):
        for smaller in _partitions(n - largest, largest):
            yield [largest, *smaller]


def _partition_probability(partition: Sequence[int], answer_alpha: Array, size: int) -> Array:
    r"""Probability of a partition of n wrong votes between W exchangeable answers.

    With :math:`m` parts :math:`n_i`, of which equal ones occur :math:`r_j` times,

    .. math:: \frac{W!}{(W - m)! \prod_j r_j!} \; \frac{n!}{\prod_i n_i!} \;
              \frac{\Gamma(W c)}{\Gamma(W c + n)} \prod_i \frac{\Gamma(c + n_i)}{\Gamma(c)}.
    """
    n, (_, times) = sum(partition), np.unique(partition, return_counts=True)
    ways = gammaln(size + 1.0) - gammaln(size - len(partition) + 1.0) - gammaln(times + 1.0).sum()
    logs = ways + gammaln(n + 1.0) - gammaln(np.array(partition) + 1.0).sum()
    for votes in partition:
        logs = logs + gammaln(answer_alpha + votes) - gammaln(answer_alpha)
    return np.asarray(
        np.exp(logs + gammaln(size * answer_alpha) - gammaln(size * answer_alpha + n))
    )
