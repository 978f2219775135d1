"""The model of a system's counts, as data are read or a result stores them, and its estimates."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.states import States
from bayesatk.data.design import Basis
from bayesatk.data.grouping import Grouping
from bayesatk.data.scales import RIGHT_WRONG, RightWrong, Scale
from bayesatk.data.study import Study
from bayesatk.judge_error import Judges
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import finite_estimates
from bayesatk.posterior.apart import ApartModel
from bayesatk.posterior.categories import CategoryModel
from bayesatk.posterior.judged import JudgedModel, rates_of_judges
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.program import Marking, ProgramModel
from bayesatk.posterior.right_wrong import RightWrongModel
from bayesatk.priors import BetaPrior, DirichletHyperPrior, DirichletPrior, HyperPrior, Pooling
from bayesatk.results.result import Result


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
    judges : Judges, optional
        Who marked the trials, where they err.
    seed : int
        Of the order in which rates of judges are drawn.
    """

    scale: Scale
    pooling: Pooling
    prior: Any
    counts: NDArray[np.int64]
    before: Array | None = None
    basis: Basis | None = None
    weight: Array | None = None
    grouping: Grouping | None = None
    judges: Judges | None = None
    seed: int = 0

    @classmethod
    def of_study(cls, study: Study, seed: int = 0) -> "Declared":
        """Return what a study declares."""
        return cls(
            study.scale, study.pooling, study.prior, study.scale.counts(study.outcomes),
            study.prior_counts, None if study.design is None else study.design.basis,
            study.outcomes.weight, study.grouping, study.judges, seed,
        )  # fmt: skip

    @classmethod
    def of_result(cls, result: Result, kept: NDArray[np.bool_] | None = None) -> "Declared":
        """Return what a result declares, of some of its questions; default: all."""
        keep = np.ones(result.counts.shape[1], bool) if kept is None else kept
        groups = result.grouping
        return cls(
            result.scale, result.pooling, result.prior, result.counts[:, keep],
            None if result.prior_counts is None else result.prior_counts[:, keep],
            None if result.design is None else result.design.basis.among(keep),
            None if result.weight is None else result.weight[keep],
            None if groups is None else groups.among(keep), result.judges,
        )  # fmt: skip

    def among(self, systems: list[int]) -> "Declared":
        """Return some of the systems."""
        return replace(
            self, counts=self.counts[systems],
            before=None if self.before is None else self.before[systems],
            judges=None if self.judges is None else self.judges.among(systems),
        )  # fmt: skip

    @property
    def composed(self) -> bool:
        """Whether the model is put together from its parts; else it is integrated by itself."""
        scored = not isinstance(self.scale, RightWrong)
        plain = scored and self.grouping is None and self.basis is None
        return self.pooling == "partial" and self.structured and not plain

    @property
    def structured(self) -> bool:
        """Whether questions differ beforehand: by groups, covariates or prior trials."""
        structure = self.grouping, self.basis, self.before
        return any(part is not None for part in structure)

    def model(self, system: int) -> CountModel:
        """Return the model of the system at a position."""
        if self.composed:
            return self.composed_model(system)
        if self.grouping is None:
            return self._simple(system)
        code, share = self.grouping.code, self.grouping.shares(self.weight)

        def of_some(questions: NDArray[np.intp], weight: Array | None) -> CountModel:
            alone = replace(self, grouping=None, judges=None)
            return replace(alone.of_questions(questions), weight=weight).model(system)

        if self.judges is None:
            apart = ApartModel.of(of_some, code, self.weight, share)
            return replace(apart, given=self.grouping.weight is not None)
        # Under complete pooling; the probability is that of all marks, whatever their groups.
        whole = replace(self, grouping=None).model(system)
        members = tuple(np.flatnonzero(code == group) for group in range(len(share)))
        return ApartModel(whole.pooling, whole.states, whole.prior, whole, (), share, members)

    def of_questions(self, questions: NDArray[np.intp]) -> "Declared":
        """Return some of the questions."""
        return replace(
            self, counts=self.counts[:, questions],
            before=None if self.before is None else self.before[:, questions],
            weight=None if self.weight is None else self.weight[questions],
        )  # fmt: skip

    def _simple(self, system: int) -> CountModel:
        """Model of questions without structure, integrated by itself."""
        counts, before = self.counts[system], self.before
        if self.judges is not None:
            judge = self._rates[system]
            states = States.of(counts[:, 1], counts.sum(axis=1), self.weight)
            if before is not None:  # under complete pooling, where only sums count
                states = States.of_counts(counts, before[system], self.weight)
            return JudgedModel(self.pooling, states, self.prior, judge)
        if isinstance(self.scale, RightWrong) and before is None:
            states = States.of(counts[:, 1], counts.sum(axis=1), self.weight)
            return RightWrongModel(self.pooling, states, self.prior)
        earlier = None if before is None else before[system]
        states = States.of_counts(counts, earlier, self.weight)
        if isinstance(self.scale, RightWrong):
            return RightWrongModel(self.pooling, states, self.prior)
        return CategoryModel(self.pooling, states, self.prior)

    @cached_property
    def _rates(self) -> list[JudgeRates]:
        """Rates of the judge of every system, with the marks of all systems that it marked."""
        assert self.judges is not None
        return rates_of_judges(self.judges, self.pooling, self.prior, list(self.counts), self.seed)

    def composed_model(self, system: int) -> ProgramModel:
        """Return the model put together from its parts, with the other systems of its judge."""
        model = self._alone(system)
        if self.judges is None:
            return model
        for number, (error, places) in enumerate(self.judges.groups().items()):
            if system in places:
                others = tuple(self._alone(place) for place in places if place != system)
                marking = Marking(error, others, self.seed + number)
        return replace(model, marking=marking)

    def _alone(self, system: int) -> ProgramModel:
        scores = None
        if not isinstance(self.scale, RightWrong):
            scores = tuple(float(score) for score in self.scale.scores)
        return ProgramModel.of(
            self.prior, self.counts[system],
            None if self.before is None else self.before[system], scores=scores,
            basis=self.basis, weight=self.weight, grouping=self.grouping,
        )  # fmt: skip


def question_shares(result: Result, kept: NDArray[np.bool_] | None = None) -> Array:
    """Return the share of every question in a mean over some; (questions,), summing to one.

    Parameters
    ----------
    result : Result
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all.
    """
    keep = np.ones(result.counts.shape[1], bool) if kept is None else kept
    weight = np.ones(int(keep.sum())) if result.weight is None else result.weight[keep]
    if result.grouping is None:
        return np.asarray(weight / weight.sum())
    groups = result.grouping.among(keep)
    share = groups.shares(None if result.weight is None else weight)
    total = np.bincount(groups.code, weight, len(groups.labels))
    return np.asarray(weight * (share / np.maximum(total, 1e-300))[groups.code])


def right_wrong_model(
    result: Result, system: int, kept: NDArray[np.bool_] | None = None
) -> CountModel:
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


def model_of(result: Result, system: int, kept: NDArray[np.bool_] | None = None) -> CountModel:
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
    return Declared.of_result(result, kept).model(system)


def judged_models(
    result: Result, systems: list[int], kept: NDArray[np.bool_], seed: int = 0
) -> list[CountModel]:
    """Return the models of some systems that judges marked, by what they say of them together.

    Parameters
    ----------
    result : Result
        With judges.
    systems : list of int
    kept : ndarray of bool, shape (questions,)
        The questions to use.
    seed : int
        Of the order in which rates of judges are drawn.
    """
    declared = replace(Declared.of_result(result, kept).among(systems), seed=seed)
    return [declared.model(place) for place in range(len(systems))]


def observed_value(
    result: Result, system: int, metric: Metric, kept: NDArray[np.bool_] | None = None
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

    Returns
    -------
    float
        Mean over the questions, weighted if they are; NaN where k exceeds the trials of one.
    """
    kept = result.trials[system] > 0 if kept is None else kept
    if metric.voted:
        answers = result.data.answers
        assert answers is not None  # a result of votes has answers
        weight = None if result.weight is None else result.weight[kept]
        ballots = answers.on_questions(kept).of(system)
        return float(finite_estimates(ballots, [metric.k], weight)[0])
    # Of the marks as they are, if a judge errs.
    model = replace(Declared.of_result(result, kept), judges=None).model(system)
    return float(model.estimate([result.scale.judged(metric)])[0])
