"""Votes under partial pooling from PyMC: the shares of right answers, and how wrong ones agree.

Right and wrong is the program of all counts; the agreement of answers has the Ewens sampling
formula as its likelihood. Only definitions are used after that: sticks are broken, elections are
worked out at the shares drawn, also one by one, and votes on a new question are the partitions of
the Ewens law, enumerated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from scipy.special import gammaln

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.answers import Ballots
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import Study
from bayesatk.metrics.credit import Credit
from bayesatk.metrics.families import Family, Metric
from bayesatk.metrics.grid import parse
from bayesatk.models.building import build_models
from bayesatk.models.evidence import Averaged, average
from bayesatk.models.metric_draws import (
    CountDraws,
    by_chain,
    hyper_variables,
    named_draws,
    traced_p,
)
from bayesatk.models.program import Form, all_trials, variable
from bayesatk.models.question_draws import traced_laws
from bayesatk.models.votes import ballots_of, vote_means
from bayesatk.priors import AnswerHyperPrior, HyperPrior
from bayesatk.priors.fields import Field
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.question_means import Shares, SystemMetrics
from bayesatk.results.schema import DRAWS

SIDES = {"wrong_agreement": False, "right_agreement": True}
_STICKS, _PIECES = 40, 20  # answers not seen: broken off one by one, then of even shares
_MOST = 30  # k whose partitions are enumerated


def build_agreement(study: Study) -> pm.Model:
    """Build the model of how often answers of one side agree, by system.

    Parameters
    ----------
    study : Study
        With votes under partial pooling.

    Returns
    -------
    pymc.Model
        ``wrong_agreement``, and ``right_agreement`` where a question got several right answers.
    """
    prior = study.answer_prior
    assert isinstance(prior, AnswerHyperPrior)
    (field,) = prior.fields()
    ballots = ballots_of(study.outcomes)
    with pm.Model(coords={"system": study.outcomes.systems}) as model:
        for name in _sides(study):
            agreement = variable(Field(name, field.distribution))
            theta = (1.0 - agreement) / agreement
            logs = []
            for system, of_system in enumerate(ballots):
                counts = [_given(ballot, SIDES[name]) for ballot in of_system]
                answers = np.array([len(seen) for seen in counts if len(seen)], float)
                trials = np.array([seen.sum() for seen in counts if len(seen)], float)
                theta_of_system = theta[system]
                logs.append(pt.sum(
                    answers * pt.log(theta_of_system)
                    + pt.gammaln(theta_of_system) - pt.gammaln(theta_of_system + trials)
                ))  # fmt: skip
            pm.Potential(f"{name}_of_answers", pt.stack(logs))
    return model


def pooled_vote_draws(
    study: Study,
    form: Form,
    run: Callable[[pm.Model], xr.DataTree],
    rng: Rng,
) -> tuple[CountDraws, Averaged, dict[str, xr.DataTree]]:
    """Sample the models of votes under partial pooling: draws, families averaged, and traces.

    Parameters
    ----------
    study : Study
    form : Form
        Of the model of right and wrong.
    run : callable
        Samples a model.
    rng : numpy.random.Generator
    """
    most = max(metric.k for metric in study.grid.voted.values())
    if most > _MOST:
        raise ArgumentError(
            "metrics", f" must have k <= {_MOST} for sampled votes with ",
            Argument("pooling", "partial"), f", whose partitions are enumerated; got {most}. "
            "bayesatk.evaluate takes more.",
        )  # fmt: skip
    right = _counted(study, lambda ballot: (_total(ballot, False) + (ballot.nobody or 0),
                                            _total(ballot, True)))  # fmt: skip
    traces = {name: run(model) for name, model in build_models(right, form).items()}
    averaged = average(right, {n: t["posterior"].to_dataset() for n, t in traces.items()}, rng)
    source = next(iter(traces.values()))["posterior"].to_dataset()
    agreement = run(build_agreement(study))
    silent_draws, more = _abstentions(study, run, most, rng)
    more["agreement"] = agreement
    draws = _Draws(study, agreement["posterior"].to_dataset(), rng)
    by_system: list[tuple[Any, ...]] = []
    for system in range(len(study.outcomes.systems)):
        of_right = _system(right, source, averaged, most, rng, system)
        of_silent = None if silent_draws is None else silent_draws(system)
        by_system.append((*draws.of(system, of_right, of_silent), of_right.variables))
    values, grouped, votes, variables = zip(*by_system, strict=True)
    named = named_draws(right, source, variables)
    named["plurality_votes_at_k"] = ((*DRAWS, "k"), by_chain(source, votes))
    for name in _sides(study):
        named[name] = DRAWS, agreement["posterior"].to_dataset()[name].values
    by_group = np.stack(grouped, axis=1) if study.grouping is not None else None
    counts = CountDraws(by_chain(source, values), named, by_group)
    return counts, averaged, {f"votes_{name}": trace for name, trace in (traces | more).items()}


def _given(ballot: Ballots, right: bool) -> Ints:
    return np.asarray(ballot.count[(ballot.correct == right) & (ballot.count > 0)])


def _total(ballot: Ballots, right: bool) -> int:
    return int(_given(ballot, right).sum())


def _sides(study: Study) -> list[str]:
    ballots = chain.from_iterable(ballots_of(study.outcomes))
    return list(SIDES)[: 1 + any(len(_given(ballot, True)) > 1 for ballot in ballots)]


def _counted(study: Study, counts: Callable[[Ballots], tuple[int, int]]) -> Study:
    """Return the study of two kinds of trials, the second of which succeeds."""
    ballots = ballots_of(study.outcomes)
    table = np.array([[counts(ballot) for ballot in of_system] for of_system in ballots])
    data = study.outcomes.dataset
    data = data.assign(count=(("system", "question", "category"), table))
    outcomes: Outcomes = replace(study.outcomes, dataset=data)
    return replace(study, outcomes=outcomes, metrics=parse("pass@1"))


@dataclass(frozen=True)
class _Shares:
    """Draws of one system's shares of a kind of trials.

    Parameters
    ----------
    p : ndarray, shape (draws, questions)
    new : ndarray, shape (draws, groups, k + 1, k + 1)
        Probability that, of j trials of a new question (third axis), i are of that kind.
    new_groups : ndarray, shape (draws, k + 1, k + 1), optional
        The same of new groups.
    variables : mapping
        Hyperparameters.
    laws : QuestionLaws
    """

    p: Array
    new: Array
    new_groups: Array | None
    variables: Mapping[str, Array]
    laws: QuestionLaws


def _system(
    study: Study, posterior: xr.Dataset, averaged: Averaged, most: int, rng: Rng,
    system: int,
) -> _Shares:  # fmt: skip
    """Draw p of every question, and what is expected of new ones."""
    counts = all_trials(study)[system]
    laws = traced_laws(study, posterior, system, averaged.difficulties[system])
    p = traced_p(posterior, system, laws, counts)
    pairs = [(j, i) for j in range(1, most + 1) for i in range(j + 1)]
    shares = Shares.of(len(counts), study.outcomes.weight, study.grouping)
    drawn = SystemMetrics(
        [_exactly(*pair) for pair in pairs], shares, p, counts.any(axis=-1), laws
    ).draw(True, rng)
    assert drawn.p is not None  # they were asked to be kept

    def table(values: Array) -> Array:
        full = np.zeros((*values.shape[:-1], most + 1, most + 1))
        full[..., 0, 0] = 1.0
        full[..., [j for j, _ in pairs], [i for _, i in pairs]] = values
        return full

    new_groups = table(drawn.whole[..., 2]) if study.grouping is not None else None
    variables = hyper_variables(study, posterior, system, laws)
    assert laws is not None  # partial pooling has laws
    return _Shares(drawn.p, table(drawn.by_group[..., 1]), new_groups, variables, laws)


def _exactly(trials: int, number: int) -> Metric:
    """Return the metric that is one if exactly so many of some trials succeed."""
    credit = Credit.of(float(j == number) for j in range(trials + 1))
    return Family(f"exactly_{number}", "exactly@", lambda k: credit).at(trials)


@dataclass(frozen=True)
class _Draws:
    """Draws of votes by definition, system by system."""

    study: Study
    agreement: xr.Dataset
    rng: Rng

    def of(self, system: int, right: _Shares, silent: _Shares | None) -> tuple[Array, Array, Array]:
        """Draws of votes (draws, ks, targets), by group (draws, groups, ks, 2), and simulated."""
        study, rng = self.study, self.rng
        ballots, thetas = ballots_of(study.outcomes)[system], self._thetas(system)
        ks = [metric.k for metric in study.grid.voted.values()]
        if not any(ballot.nobody for ballot in ballots):
            silent = None
        shares = Shares.of(len(ballots), study.outcomes.weight, study.grouping)
        p = right.p[..., None]
        nobody = p * 0.0 if silent is None else (1.0 - p) * silent.p[..., None]
        answers = (
            self.answers(ballot, p[:, question], nobody[:, question], thetas)
            for question, ballot in enumerate(ballots)
        )
        tried = np.array([ballot.count.sum() + (ballot.nobody or 0) > 0 for ballot in ballots])
        on_questions, like, votes = vote_means(answers, shares, tried, ks, rng)
        new = None
        if not study.bootstrapped:
            like, new = self._new(right, silent, thetas, ks)
        elif study.grouping is not None:
            new = shares.new_groups(like.swapaxes(1, 2), rng)
        by_group = np.stack([on_questions, like], axis=-1)
        whole = np.einsum("dgkt,g->dkt", by_group, shares.outer)
        if study.grouping is not None:
            assert new is not None
            whole = np.concatenate([whole, new[..., None]], axis=-1)
        return whole, by_group, np.einsum("dgk,g->dk", votes, shares.outer)

    def _thetas(self, system: int) -> dict[bool, Array]:
        """Draws of how much answers of each side differ."""
        names = _sides(self.study)
        drawn = {SIDES[name]: flat_draws(self.agreement[name], system) for name in names}
        return {side: (1.0 - agreement) / agreement for side, agreement in drawn.items()}

    def answers(
        self, ballot: Ballots, p: Array, nobody: Array, thetas: Mapping[bool, Array]
    ) -> tuple[Array, Flags]:
        """Draw probabilities of all answers and of nobody, and return which answers are right."""
        sides = [(p, True), (1.0 - p - nobody, False)]
        parts = [self._split(ballot, of, thetas.get(of), self.rng) * chance for chance, of in sides]
        correct = np.repeat([True, False], [answers.shape[1] for answers in parts])
        return np.concatenate([*parts, nobody], axis=1).clip(0.0), correct

    def _split(self, ballot: Ballots, right: bool, theta: Array | None, rng: Rng) -> Array:
        """Shares of the answers of a side: Dirichlet(counts, theta), and the rest broken up."""
        if theta is None:
            return np.ones((1, 1))
        seen = _given(ballot, right)
        alpha = np.column_stack([np.tile(seen, (len(theta), 1)), theta])
        gammas = np.maximum(rng.standard_gamma(alpha), 1e-300)
        first = gammas / gammas.sum(axis=1, keepdims=True)
        broken = rng.beta(1.0, np.tile(theta[:, None], _STICKS))
        left = np.cumprod(1.0 - broken, axis=1)
        sticks = broken * np.column_stack([np.ones(len(theta)), left[:, :-1]])
        dust = np.repeat(left[:, -1:] / _PIECES, _PIECES, axis=1)
        return np.column_stack([first[:, :-1], first[:, -1:] * sticks, first[:, -1:] * dust])

    def _new(
        self, right: _Shares, silent: _Shares | None, thetas: Mapping[bool, Array],
        ks: Sequence[int],
    ) -> tuple[Array, Array | None]:  # fmt: skip
        """Return expected votes by group (draws, groups, ks), and of new groups."""
        tops = [{of: _tops(n, thetas.get(of)) for of in (True, False)} for n in range(max(ks) + 1)]
        like = np.zeros((*right.new.shape[:2], len(ks)))
        new = None if right.new_groups is None else np.zeros((len(like), len(ks)))
        for column, k in enumerate(ks):
            for r in range(1, k + 1):
                for w in range(k - r + 1) if silent is not None else [k - r]:
                    credit = _credit(tops[r][True], tops[w][False])
                    if silent is not None:
                        credit = credit * silent.new[:, 0, k - r, k - r - w]
                    like[..., column] += right.new[:, :, k, r] * np.reshape(credit, (-1, 1))
                    if new is not None:
                        assert right.new_groups is not None
                        new[:, column] += right.new_groups[:, k, r] * credit
        return like, new


def _partitions(n: int, most: int) -> Iterator[list[int]]:
    """Yield partitions of n into parts of at most so many, descending."""
    if n == 0:
        yield []
    for largest in range(min(n, most), 0, -1):
        for smaller in _partitions(n - largest, largest):
            yield [largest, *smaller]


def _tops(n: int, theta: Array | None) -> dict[tuple[int, int], Any]:
    """Probability that n votes have a winner of so many votes, and so many answers with these.

    By the Ewens sampling formula, or for one answer alone.
    """
    if theta is None or n == 0:
        return {(n, 1): 1.0}
    tops: dict[tuple[int, int], Any] = {}
    rising = gammaln(theta + n) - gammaln(theta)
    for parts in _partitions(n, n):
        sizes, times = np.unique(parts, return_counts=True)
        log_ways = gammaln(n + 1.0) - times @ np.log(sizes) - gammaln(times + 1.0).sum()
        chance = np.exp(log_ways + len(parts) * np.log(theta) - rising)
        key = int(sizes[-1]), int(times[-1])
        tops[key] = tops.get(key, 0.0) + chance
    return tops


def _credit(right: Mapping[tuple[int, int], Any], wrong: Mapping[tuple[int, int], Any]) -> Any:
    """Return the expected credit of elections by the winners of both sides."""
    total: Any = 0.0
    for (most, tied), chance in right.items():
        for (most_wrong, tied_wrong), odds in wrong.items():
            if most >= most_wrong:
                share = 1.0 if most > most_wrong else tied / (tied + tied_wrong)
                total = total + share * chance * odds
    return total


def _abstentions(
    study: Study, run: Callable[[pm.Model], xr.DataTree], most: int, rng: Rng
) -> tuple[Callable[[int], _Shares] | None, dict[str, xr.DataTree]]:
    """Sample the shares of trials without an answer among those that are not right, if any."""
    if not any(ballot.nobody for ballot in chain.from_iterable(ballots_of(study.outcomes))):
        return None, {}
    silent = _counted(study, lambda ballot: (_total(ballot, False), ballot.nobody or 0))
    prior = HyperPrior(families="beta")
    silent = replace(silent, prior=prior, group_weights=None, covariates=None)
    trace = run(build_models(silent, "marginal")["beta"])
    source = trace["posterior"].to_dataset()
    averaged = average(silent, {"beta": source}, rng)
    return partial(_system, silent, source, averaged, most, rng), {"abstentions": trace}
