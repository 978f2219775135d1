"""The model of a system's counts, as data are read or a result stores them, and its estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Ints, Rng
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.data.answers import Answers, Ballots
from bayesatk.data.design import Basis
from bayesatk.data.grouping import Grouping
from bayesatk.data.scales import RIGHT_WRONG, RightWrongScale, Scale
from bayesatk.data.study import Study
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.vote_posterior import VotePosterior, finite_estimates, vote_posterior
from bayesatk.priors import (
    BetaPrior,
    DirichletHyperPrior,
    DirichletPrior,
    HyperPrior,
    Pooling,
    VotePrior,
)
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values
from bayesatk.results.stored_points import stored_points


@dataclass(frozen=True)
class Declared:
    """What the models of a study's systems are made from.

    Parameters
    ----------
    scale : Scale
    pooling : Pooling
    prior : Prior or CategoryPrior
        Of the scale.
    counts : ndarray of int, shape (systems, questions, categories)
    before : ndarray, shape (systems, questions, categories), optional
        Prior trials, discounted.
    basis : Basis, optional
        Covariates of the questions.
    weight : ndarray, shape (questions,), optional
        Of the questions in means over them.
    grouping : Grouping, optional
    judges : tuple of JudgeRates, optional
        Of the judge of every system, where judges err.
    resampled : bool
        Whether questions like these are these drawn anew, and do not follow the law.
    ballots : sequence of sequence of Ballots
        Answers to the questions of every system; empty without votes between them.
    answer_prior : VotePrior, optional
        Of these.
    stopped : sequence of bool
        By system: whether the trials of a question end at its first success.
    """

    scale: Scale
    pooling: Pooling
    prior: Any
    counts: Ints
    before: Array | None = None
    basis: Basis | None = None
    weight: Array | None = None
    grouping: Grouping | None = None
    judges: tuple[JudgeRates, ...] | None = None
    resampled: bool = False
    ballots: Sequence[Sequence[Ballots]] = ()
    answer_prior: VotePrior | None = None
    stopped: Sequence[bool] = ()

    @classmethod
    def of_study(cls, study: Study) -> "Declared":
        """Return what a study declares."""
        answers = study.outcomes.answers if study.votes else None
        return cls(
            study.scale, study.pooling, study.prior, study.counts, study.prior_by_kind,
            None if study.design is None else study.design.basis,
            study.outcomes.weight, study.grouping, study.judge_rates,
            study.bootstrapped, stopped=study.outcomes.stopped.tolist(),
        )._with_answers(answers, study.answer_prior)  # fmt: skip

    @classmethod
    def of_result(cls, result: Result, kept: Flags | None = None) -> "Declared":
        """Return what a result declares, of some of its questions; default: all."""
        declared = cls.of_study(result.study)
        return declared if kept is None else declared.of_questions(np.flatnonzero(kept))

    def among(self, systems: list[int]) -> "Declared":
        """Return some of the systems."""
        return replace(
            self, counts=self.counts[systems],
            before=None if self.before is None else self.before[systems],
            judges=self.judges and tuple(self.judges[system] for system in systems),
            ballots=[self.ballots[system] for system in systems] if self.ballots else (),
            stopped=[self.stopped[system] for system in systems] if self.stopped else (),
        )  # fmt: skip

    def model(self, system: int) -> CountModel:
        """Return the model of a system."""
        scores = None
        if not isinstance(self.scale, RightWrongScale):
            scores = tuple(float(score) for score in self.scale.scores)
        return CountModel.of(
            self.prior, self.counts[system],
            None if self.before is None else self.before[system], pooling=self.pooling,
            scores=scores, judge=None if self.judges is None else self.judges[system],
            basis=self.basis, weight=self.weight, grouping=self.grouping, resampled=self.resampled,
            stopped=bool(self.stopped) and self.stopped[system],
        )  # fmt: skip

    def of_questions(self, questions: Indices) -> "Declared":
        """Return some of the questions."""
        return replace(
            self, counts=self.counts[:, questions],
            before=None if self.before is None else self.before[:, questions],
            basis=None if self.basis is None else self.basis.among(questions),
            weight=None if self.weight is None else self.weight[questions],
            grouping=None if self.grouping is None else self.grouping.among(questions),
            ballots=[[of_system[i] for i in questions] for of_system in self.ballots],
        )  # fmt: skip

    def votes(self, system: int, ks: Sequence[int], draws: int, rng: Rng) -> VotePosterior:
        """Return the posterior of the votes of a system; parameters as of `VotePosterior`."""
        ballots, prior = self.ballots[system], self.answer_prior
        assert prior is not None
        counts = np.array([ballot.by_mark for ballot in ballots])[None]
        own = self.prior if self.pooling == "partial" else BetaPrior()
        right = replace(
            self, scale=RIGHT_WRONG, prior=own, ballots=(), before=None, counts=counts
        )  # fmt: skip
        return vote_posterior(right.model(0), ballots, prior, ks, draws, rng)

    def _with_answers(self, answers: Answers | None, prior: VotePrior) -> "Declared":
        """Return it with the answers to the questions of every system, if there are votes."""
        if answers is None:
            return self
        ballots = [answers.of(system) for system in range(len(answers.unanswered))]
        return replace(self, ballots=ballots, answer_prior=prior)


def question_shares(result: Result, kept: Flags | None = None) -> Array:
    """Return the share of every question in a mean over some; (questions,), summing to one.

    Parameters
    ----------
    result : Result
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all.
    """
    keep = np.ones(result.counts.shape[1], bool) if kept is None else kept
    weight = None if result.weight is None else result.weight[keep]
    if result.grouping is not None:
        return result.grouping.among(keep).question_shares(weight)
    share = np.ones(int(keep.sum())) if weight is None else weight
    return np.asarray(share / share.sum())


def right_wrong_model(result: Result, system: int, kept: Flags | None = None) -> CountModel:
    """Return the model of right and wrong of a system, also where these are two categories.

    Parameters
    ----------
    result, system, kept
        As of `model_of`.
    """
    declared = Declared.of_result(result, kept)
    prior = declared.prior
    if isinstance(prior, DirichletHyperPrior):
        wrong, right = prior.vector(2).tolist()
        prior = HyperPrior(
            mean=(right, wrong), icc=prior.icc, families="beta", slope_sd=prior.slope_sd,
            group_sd=prior.group_sd,
        )  # fmt: skip
    elif isinstance(prior, DirichletPrior):
        wrong, right = prior.vector(2).tolist()
        prior = BetaPrior(right, wrong)
    return replace(declared, scale=RIGHT_WRONG, prior=prior).model(system)


def draws_of_p(
    result: Result, system: int, metrics: Sequence[Any], size: int, rng: Rng
) -> tuple[Array, Mapping[str, Array]]:
    """Draw the probabilities of all questions of a system, and its hyperparameters.

    Of draws of a model that is not the library's these are taken as they are, in any order.

    Parameters
    ----------
    result : Result
    system : int
        Position of the system.
    metrics : sequence of MetricFunction
        That the model of the library is fitted for.
    size : int
    rng : numpy.random.Generator

    Returns
    -------
    tuple (ndarray, shape (size, questions, ...), mapping {name: ndarray})
    """
    if result.own:
        p = flat_draws(result.posterior["p"], system)
        return p[np.resize(rng.permutation(len(p)), size)], {}
    drawn = model_of(result, system).fit(metrics).draw(size, rng, True)
    assert drawn.p is not None  # they were asked to be kept
    return drawn.p, drawn.hyper


def model_of(result: Result, system: int, kept: Flags | None = None) -> CountModel:
    """Return the model of a system under the result's pooling and prior.

    Parameters
    ----------
    result : Result
        Whose prior has a closed form.
    system : int
        Position of the system.
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all.
    """
    model = Declared.of_result(result, kept).model(system)
    if kept is not None and not kept.all():
        return model
    sizes = {name: model.fields(name).size for name in model.family_prior}
    return model.recall(stored_points(result.tree, system, sizes))


def observed_value(
    result: Result,
    system: int,
    metric: Metric,
    kept: Flags | None = None,
    of_all: bool = False,
) -> float:
    """Return the unbiased finite estimate of a metric, from the trials that were run.

    Parameters
    ----------
    result : Result
        Evaluated or sampled.
    system : int
        Position of the system.
    metric : Metric
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all that the system tried.
    of_all : bool
        Whether all of these must have k trials.

    Returns
    -------
    float
        Mean over the questions that have k trials, weighted if they are; NaN where they are less
        than half, or, `of_all`, not all.
    """
    kept = result.trials[system] > 0 if kept is None else kept
    if of_all and (result.trials[system, kept] < metric.k).any():
        return np.nan
    if result.has("closed_form") and kept[result.trials[system] > 0].all():
        known = metric_values(result.statistics, metric).isel(system=system, target=0)
        return float(known.sel(statistic="estimate"))
    if metric.voted:
        answers = result.data.answers
        assert answers is not None  # a result of votes has answers
        weight = None if result.weight is None else result.weight[kept]
        ballots = answers.on_questions(kept).of(system)
        return float(finite_estimates(ballots, [metric.k], weight)[0])
    # Of the marks as they are, if a judge errs.
    marks = replace(
        Declared.of_result(result, kept), counts=result.counts[:, kept], before=None, judges=None
    )
    by_marks = marks.model(system)
    return float(by_marks.estimate([result.scale.judged(metric)])[0])
