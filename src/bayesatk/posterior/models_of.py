"""The model of a system's counts, as data are read or a result stores them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Rng
from bayesatk.data.scales import RightWrongScale
from bayesatk.data.study import Study
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.questions import draw_p
from bayesatk.posterior.vote_posterior import VotePosterior, vote_posterior
from bayesatk.priors import (
    BetaPrior,
    DirichletHyperPrior,
    DirichletPrior,
    HyperPrior,
)
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.result import Result


def model_arguments(study: Study, system: int) -> dict[str, Any]:
    """Return what a study declares of a system, as arguments of `CountModel.of`."""
    scores = None
    if not isinstance(study.scale, RightWrongScale):
        scores = tuple(float(score) for score in study.scale.scores)
    before, judges = study.prior_by_kind, study.judge_rates
    return {
        "prior": study.prior,
        "counts": study.counts[system],
        "before": None if before is None else before[system],
        "pooling": study.pooling,
        "scores": scores,
        "basis": None if study.design is None else study.design.basis,
        "weight": study.outcomes.weight,
        "grouping": study.grouping,
        "judge": None if judges is None else judges[system],
        "resampled": study.bootstrapped,
    }


def system_model(study: Study, system: int) -> CountModel:
    """Return the model of a system."""
    return CountModel.of(**model_arguments(study, system))


def system_votes(
    study: Study, system: int, ks: Sequence[int], draws: int, rng: Rng
) -> VotePosterior:
    """Return the posterior of the votes of a system; parameters as of `VotePosterior`."""
    assert study.outcomes.answers is not None  # votes were asked for
    ballots = study.outcomes.answers.of(system)
    right_wrong = {
        "prior": study.prior if study.pooling == "partial" else BetaPrior(),
        "scores": None,
        "counts": np.array([ballot.by_mark for ballot in ballots]),
        "before": None,
    }
    model = CountModel.of(**model_arguments(study, system) | right_wrong)
    return vote_posterior(model, ballots, study.answer_prior, ks, draws, rng)


def right_wrong_model(result: Result, system: int, kept: Flags | None = None) -> CountModel:
    """Return the model of right and wrong of a system, also where these are two categories.

    Parameters
    ----------
    result, system, kept
        Parameters of `model_of`.
    """
    prior = result.prior
    if isinstance(prior, DirichletHyperPrior):
        wrong, right = prior.vector(2).tolist()
        prior = HyperPrior(
            mean=(right, wrong),
            icc=prior.icc,
            families="beta",
            slope_sd=prior.slope_sd,
            group_sd=prior.group_sd,
        )
    elif isinstance(prior, DirichletPrior):
        wrong, right = prior.vector(2).tolist()
        prior = BetaPrior(right, wrong)
    model = CountModel.of(
        **model_arguments(result.study, system) | {"prior": prior, "scores": None}
    )
    return model if kept is None else model.among(kept)


def draws_of_p(result: Result, system: int, size: int, rng: Rng) -> tuple[Array, Array | None]:
    """Draw the probabilities of all questions of a system, and the rates of its judge.

    Of draws of a model that is not the library's these are taken as they are, in any order.

    Parameters
    ----------
    result : Result
    system : int
        Position of the system.
    size : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, questions, ...)
    ndarray, shape (size, columns), optional
        As of `bayesatk.posterior.questions.draw_p`.
    """
    if result.own:
        p = flat_draws(result.posterior["p"], system)
        return p[np.resize(rng.permutation(len(p)), size)], None
    model = model_of(result, system)
    return draw_p(model, model.cells.which, size, rng)


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
    model = system_model(result.study, system)
    return model if kept is None or kept.all() else model.among(kept)
