"""The model of a system's counts, as data are read or a result stores them, and its estimates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.states import States
from bayesatk.data.design import Basis
from bayesatk.data.grouping import Grouping
from bayesatk.data.scales import RightWrong, Scale
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import finite_estimates
from bayesatk.posterior.categories import CategoryModel
from bayesatk.posterior.grouped import GroupedModel
from bayesatk.posterior.judged import judged_model, rates_of_judges
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.regression import RegressionModel
from bayesatk.posterior.right_wrong import RightWrongModel
from bayesatk.priors import Pooling
from bayesatk.results.result import Result


def count_model(
    scale: Scale,
    pooling: Pooling,
    prior: Any,
    counts: NDArray[np.int64],
    before: Array | None = None,
    basis: Basis | None = None,
    weight: Array | None = None,
    judge: JudgeRates | None = None,
    grouping: Grouping | None = None,
) -> CountModel:
    """Return the model of one system: where groups, judges, covariates and scales part.

    Parameters
    ----------
    scale : Scale
    pooling : Pooling
    prior : Prior or CategoryPrior
        Of the scale.
    counts : ndarray of int, shape (questions, categories)
    before : ndarray, shape (questions, categories), optional
        Prior trials, discounted.
    basis : Basis, optional
        Covariates of the questions.
    weight : ndarray, shape (questions,), optional
        Of the questions in means over them.
    judge : JudgeRates, optional
        Rates of who marked the trials, where it errs.
    grouping : Grouping, optional
        Groups of the questions, which then have no weights of their own.
    """
    if grouping is not None:
        return GroupedModel.of(prior, counts, grouping)
    if judge is not None:
        return judged_model(judge, pooling, prior, counts)
    if basis is not None:
        return RegressionModel.of(prior, counts, basis, weight)
    if isinstance(scale, RightWrong):
        states = States.of(counts[:, 1], counts.sum(axis=1), weight)
        return RightWrongModel(pooling, states, prior)
    return CategoryModel(pooling, States.of_counts(counts, before, weight), prior)


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
    chosen = slice(None) if kept is None else kept
    if result.judges is not None:
        return judged_models(result, list(range(len(result.systems))), chosen)[system]
    return _model(result, system, chosen)


def judged_models(
    result: Result, systems: list[int], chosen: slice | NDArray[np.bool_], seed: int = 0
) -> list[CountModel]:
    """Return the models of some systems that judges marked, by what they say of them together.

    Parameters
    ----------
    result : Result
        With judges.
    systems : list of int
    chosen : slice, or ndarray of bool, shape (questions,)
        The questions to use.
    seed : int
        Of the order in which rates of judges are drawn.
    """
    assert result.judges is not None
    counts = [result.counts[system, chosen] for system in systems]
    known = result.pooling, result.prior
    rates = rates_of_judges(result.judges.among(systems), *known, counts, seed)
    pairs = zip(rates, counts, strict=True)
    return [count_model(result.scale, *known, own, judge=judge) for judge, own in pairs]


def _model(result: Result, system: int, chosen: Any) -> CountModel:
    before = None if result.prior_counts is None else result.prior_counts[system, chosen]
    counts = result.counts[system, chosen]
    basis = None if result.design is None else result.design.basis.among(chosen)
    weight = None if result.weight is None else result.weight[chosen]
    groups = result.grouping
    if groups is not None and not isinstance(chosen, slice):
        groups = groups.among(chosen)
    return count_model(
        result.scale, result.pooling, result.prior, counts, before, basis, weight, grouping=groups
    )


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
    model = _model(result, system, kept)  # of the marks as they are, if a judge errs
    return float(model.estimate([result.scale.judged(metric)])[0])
