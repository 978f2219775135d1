"""What is calibrated beside marks and scores: votes, costs, judges, structure.

Each is a `bayesatk.verification.replications.Replications` whose kind draws truth and data, and
draws from their posterior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.costs.prior import CostPrior, Costs
from bayesatk.costs.evaluation import draw_costs, fit_costs
from bayesatk.data.answers import Ballots
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import population_of
from bayesatk.data.tally import tally
from bayesatk.judge_error import JudgeError, Judges
from bayesatk.metrics.grid import Metric, parse
from bayesatk.models.costs import cost_draws, cost_program
from bayesatk.models.question_draws import traced_difficulty
from bayesatk.models.votes import answer_draws as sampled_votes
from bayesatk.models.votes import (
    build_answers,
    latent_votes,
    possible_ballots,
    simulated_credit,
)
from bayesatk.posterior.answers import VoteModel, answer_draws
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.pooled_answers import WRONG, PooledVotes
from bayesatk.priors import AnswerHyperPrior, AnswerPrior, HyperPrior
from bayesatk.results.costs import read_costs
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.schema import TARGETS
from bayesatk.verification.replications import (
    DRAWS,
    CountKind,
    Forward,
    Quantities,
    Replications,
    count_study,
    drawn_family,
    nuts_draws,
    thinned,
)

_GROUP = 4  # questions
_STICKS, _PIECES = 200, 50  # wrong answers of a question; and of the rest that all differ
NEW = 2000  # questions whose votes stand for those of all questions like these
_COSTS = ("mean_cost", "cost_of_pass", "cost_if_right", "pass_at_k", "cost_to_success")


@dataclass(frozen=True)
class Studied(Replications):
    """Marks by a judge, or questions with structure.

    Parameters
    ----------
    judge : JudgeError, optional
    structure : {"covariates", "groups"}, optional
        Questions are in groups of four; or their success depends on a trend and on a kind, of
        which every third one is.
    """

    judge: JudgeError | None = None
    structure: str | None = None

    def kind(self) -> CountKind:
        """As of `Replications`."""
        number, asked = np.arange(self.questions), {}
        columns: dict[str, Any] = {}
        if self.structure == "groups":
            columns["group"], asked["group_weights"] = (number // _GROUP).tolist(), "questions"
        if self.structure == "covariates":
            trend, third = number.astype(float), (number % 3 == 0).astype(float)
            columns["covariates"] = {"trend": trend.tolist(), "third": third.tolist()}
            asked["covariates"] = ("trend", "third")
        study = count_study(
            self.questions, self.trials, self.scores, columns, metrics=parse(self.metrics),
            pooling=self.pooling, prior=self.prior, judges=self.judge and Judges((self.judge,)),
            population=population_of(self.pooling),
            **asked,
        )  # fmt: skip
        return CountKind(study, self.form)


@dataclass(frozen=True)
class Votes(Replications):
    """Votes of one system between answers, whose prior is an `AnswerPrior` with `choices`."""

    def kind(self) -> "VoteKind":
        """As of `Replications`."""
        return VoteKind(self.questions, self.trials, parse(self.metrics), self.prior)


@dataclass(frozen=True)
class PooledVoteStudy(Replications):
    """Votes of one system whose questions are pooled; the prior is a `HyperPrior`."""

    def kind(self) -> "PooledVoteKind":
        """As of `Replications`."""
        study = count_study(
            self.questions + NEW, self.trials, metrics=parse("pass@1"), pooling="partial",
            prior=self.prior, population=population_of("partial"),
        )  # fmt: skip
        return PooledVoteKind(CountKind(study), self.questions, parse(self.metrics))


@dataclass(frozen=True)
class CostStudy(Replications):
    """Success and cost, of one system."""

    cost: CostPrior | None = None

    def kind(self) -> "CostKind":
        """As of `Replications`."""
        cost = self.cost or CostPrior()
        return CostKind(self.questions, self.trials, parse(self.metrics), self.prior, cost)


class VoteKind:
    """Votes of one system on questions of which every one has the same number of answers.

    The first answer is right.
    """

    def __init__(
        self, questions: int, trials: int, metrics: Sequence[Metric], prior: AnswerPrior
    ) -> None:
        self.metrics, self.prior, self.trials = metrics, prior, trials
        self.ks = [metric.k for metric in metrics]
        once = np.eye(1, prior.choices, dtype=np.int64)
        self.template = _answers(once.repeat(questions, axis=0))
        self._programs: dict[str, Any] = {}

    @cached_property
    def _forward(self) -> Forward:
        return Forward(build_answers(self.template, self.prior))

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw probabilities of the answers, and answers."""
        drawn = self._forward.draw(rng)
        p = drawn["answer_p"].values.reshape(len(self.template.dataset["question"]), -1)
        return self._quantities(self.template, drawn, rng), _answers(
            rng.multinomial(self.trials, p)
        )

    def exact(self, data: Outcomes, rng: Rng) -> Quantities:
        """Draw from the closed form."""
        assert data.answers is not None
        ballots = data.answers.of(0)
        posterior = VoteModel(ballots, self.prior, DRAWS, rng).fit(self.metrics)
        together = posterior.draw(DRAWS, rng, False).metrics[:, :, 0]
        first = answer_draws(ballots[:1], self.ks, self.prior, DRAWS, rng)[:, 0]
        return self._named(together, first)

    def sampled(self, data: Outcomes, rng: Rng) -> Quantities:
        """Draw with NUTS."""
        drawn = nuts_draws(build_answers(data, self.prior), self._programs, "", rng)
        return thinned(self._quantities(data, drawn, rng))

    def _quantities(self, outcomes: Outcomes, posterior: xr.Dataset, rng: Rng) -> Quantities:
        together = sampled_votes(outcomes, self.prior, self.ks, posterior, rng).values
        correct = possible_ballots(outcomes, self.prior)[0].correct
        p = flat_draws(posterior["answer_p"])[:, : len(correct)]
        first = latent_votes(p, correct, self.ks)
        return self._named(together[:, :, 0, :, 0].reshape(first.shape), first)

    def _named(self, together: Array, first: Array) -> Quantities:
        quantities: Quantities = {}
        for metric, on_all, on_first in zip(self.metrics, together.T, first.T, strict=True):
            quantities |= {f"{metric.label} questions": on_all, f"{metric.label} first": on_first}
        return quantities


class PooledVoteKind:
    """Votes of one system whose questions share a law of right answers and an agreement.

    A share of a wrong answer is a stick broken off what is left (Sethuraman 1994), so the truth
    shares neither Ewens' formula nor elections with the posterior. Questions like these are many
    more questions of the same program, with a vote each.

    Parameters
    ----------
    marks : CountKind
        Right and wrong; of the questions, and of those like them.
    questions : int
    metrics : sequence of Metric
    """

    def __init__(self, marks: CountKind, questions: int, metrics: Sequence[Metric]) -> None:
        self.marks, self.questions, self.metrics = marks, questions, metrics
        self.ks, self.prior = [metric.k for metric in metrics], AnswerHyperPrior()

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw a family, hyperparameters, shares of answers and votes, and answers."""
        study, family, drawn = self.marks.study, *self.marks.forward(rng)
        truth = self.marks.quantities(study, {family: drawn}, rng)
        p = drawn["p"].values.reshape(-1, 1)
        agreement = rng.beta(*self.prior.agreement)
        broken = rng.beta(1.0, (1.0 - agreement) / agreement, (len(p), _STICKS))
        left = np.cumprod(1.0 - broken, axis=1)
        wrong = broken * np.column_stack([np.ones(len(p)), left[:, :-1]])
        dust = np.repeat(left[:, -1:] / _PIECES, _PIECES, axis=1)
        shares = np.concatenate([p, (1.0 - p) * wrong, (1.0 - p) * dust], axis=1)
        correct = np.arange(shares.shape[1]) == 0
        these, like = shares[: self.questions], shares[self.questions :]
        on_these = latent_votes(these, correct, self.ks).mean(axis=0)
        on_like = simulated_credit(like, correct, self.ks, rng).mean(axis=0)
        truth = {name: value for name, value in truth.items() if "@" not in name}
        truth[WRONG] = np.array([agreement])
        truth |= self._named(np.stack([on_these, on_like], axis=1)[None])
        trials = int(study.outcomes.trials.values[0, 0])
        counts = [rng.multinomial(trials, row / row.sum()) for row in these]
        return truth, [Ballots(row, correct, None) for row in counts]

    def exact(self, data: list[Ballots], rng: Rng) -> Quantities:
        """Draw from the closed form."""
        counts = np.array([[ballot.count[1:].sum(), ballot.count[0]] for ballot in data])
        prior = self.marks.study.prior
        assert isinstance(prior, HyperPrior)  # of partial pooling
        model = CountModel.of(prior, counts)
        votes = PooledVotes(data, model, None, self.prior, False, rng)
        drawn = votes.draw(self.metrics, DRAWS, rng).drawn
        assert drawn.p is not None  # votes are made of it
        quantities = self._named(drawn.metrics)
        for name, values in (drawn.hyper | {"p": drawn.p}).items():
            quantities |= self.marks.of_variable(name, values)
        return quantities

    def sampled(self, data: list[Ballots], rng: Rng) -> Quantities:
        """Refuse: `calibrate` does before."""
        raise NotImplementedError("pooled votes are calibrated with engine='closed_form'.")

    def _named(self, values: Array) -> Quantities:
        """Name draws (draws, ks, targets)."""
        return {
            f"{metric.label} {target}": values[:, column, place]
            for column, metric in enumerate(self.metrics)
            for place, target in enumerate(TARGETS)
        }


class CostKind:
    """Success and cost of one system, whose every trial has a cost; at the largest k."""

    def __init__(
        self, questions: int, trials: int, metrics: Sequence[Metric], prior: HyperPrior,
        cost_prior: CostPrior,
    ) -> None:  # fmt: skip
        ones = np.ones((questions, trials), int)
        self.asked = read_costs(
            tally(ones, cost=ones.astype(float)), max(metric.k for metric in metrics), (),
            prior=prior, difficulty=None, cost_prior=replace(cost_prior, scale=1.0), success=None,
            ci_prob=0.95,
        )  # fmt: skip
        self.trials = trials
        self._forward: dict[str, Forward] = {}

    def simulate(self, rng: Rng) -> tuple[Quantities, Any]:
        """Draw a family, parameters, questions, outcomes and costs."""
        family = drawn_family(self.asked.prior, rng)
        if family not in self._forward:
            self._forward[family] = Forward(cost_program(self.asked, family, self.trials))
        drawn = self._forward[family].draw(rng)
        difficulty = traced_difficulty(drawn, 0)
        assert difficulty is not None
        truth = cost_draws(self.asked, drawn, 0, 0) | {"mean_p": difficulty.overall[0]}
        right, cost = (drawn[name].values[0, 0, 0] for name in ("right", "trial_cost"))
        outcomes = right == 0, right == 1
        return _of_costs(truth), Costs(
            np.stack([outcome.sum(axis=1) for outcome in outcomes], axis=1).astype(float),
            np.stack([(cost * outcome).sum(axis=1) for outcome in outcomes], axis=1),
            np.array([np.log(cost[outcome]).sum() for outcome in outcomes]),
        )

    def exact(self, data: Costs, rng: Rng) -> Quantities:
        """Draw from the posterior without a sampler."""
        asked, ones = self.asked, self.asked.weight
        model, points = fit_costs(data.trials.astype(np.int64), data, asked.prior, asked.cost_prior)
        return _of_costs(draw_costs(
            model, points, DRAWS, 1.0, ones, lambda draws: np.ones((draws, len(ones))),
            list(asked.k), (), rng,
        ))  # fmt: skip

    def sampled(self, data: Costs, rng: Rng) -> Quantities:
        """Refuse: a model with two latent numbers a question is sampled one data set at a time."""
        raise NotImplementedError("costs are calibrated with engine='closed_form'.")


def _of_costs(drawn: Quantities) -> Quantities:
    """Parameters, and quantities of these questions at the first k."""
    parameters = {name: values for name, values in drawn.items() if values.ndim == 1}
    return parameters | {
        f"{name} questions": drawn[name].reshape(len(drawn[name]), -1, 2)[:, 0, 0]
        for name in _COSTS
    }


def _answers(counts: Ints) -> Outcomes:
    """Answers "0", "1" ... of so many trials each, of which "0" is right."""
    rows = [np.repeat(np.arange(len(row)), row).astype(str).tolist() for row in counts]
    return tally(None, answers=rows, reference=["0"] * len(rows))
