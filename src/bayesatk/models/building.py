"""`build`: the PyMC model of one evaluation; and the models of several families."""

from dataclasses import replace

import pymc as pm

from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.data.study import Study, read_study
from bayesatk.metrics.grid import MetricSpec
from bayesatk.models.program import Form, build_program
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior, ModelPrior, Pooling


def build(
    data: object,
    metrics: MetricSpec = "pass@1",
    *,
    difficulty: str | None = None,
    form: Form = "marginal",
    pooling: Pooling = "partial",
    prior: ModelPrior | None = None,
    success: str | None = None,
    judge: object = None,
    prior_trials: object = None,
    prior_weight: float = 1.0,
    covariates: object = None,
    group: object = None,
) -> pm.Model:
    """Build the PyMC model that `bayesatk.sample` samples.

    Parameters
    ----------
    data, metrics, pooling, prior, success, judge, prior_trials, prior_weight, covariates, group
        As in `bayesatk.sample`. Metrics only decide whether trials are right and wrong, or are in
        scored categories.
    difficulty : {"beta", "inflated", "mixture"}, optional
        Family of the difficulty distribution of right and wrong, under partial pooling; a model is
        of one family. Default: the family of the prior if it has one, else ``"beta"``.
    form : {"marginal", "full"}
        Under partial pooling, whether probabilities of questions are integrated out, or are
        variables ``p``, too: quantiles of their distributions given hyperparameters and counts, at
        uniform numbers ``quantile``, which are as easy to sample for all data. Of scores in an
        order, and of marks by a judge, ``p`` is sampled itself.

    Returns
    -------
    pymc.Model
        Variables by system, with the priors of ``HyperPrior.fields``: ``mean_p``, ``icc``,
        ``slopes`` of covariates, in the basis of uncorrelated covariates, ``group_sd`` and
        ``group_effect``, of which the sd is one; ``atoms``; of a mixture ``mean_p`` and ``icc`` of
        two components in no order and the ``share`` of the first. Of judges ``sensitivity`` and
        ``false_positive_rate``. Observed are ``successes``, or the ``count`` of categories, by
        system and question: prior and posterior predictive sampling, ``pm.compute_log_likelihood``
        and ``az.loo`` work.

    Notes
    -----
    A mixture of two Betas may have two modes, or a component of no question, between which chains
    seldom change: with questions that hardly differ, or many of them, NUTS does not mix.
    `bayesatk.sample` has a note where R-hat says so.

    See Also
    --------
    bayesatk.evaluate : the exact posterior.
    bayesatk.sample : samples this model and returns metrics.
    bayesatk.from_draws : a result of the draws of a model that you changed.

    Examples
    --------
    >>> marks = [[1, 0], [1, 1]]
    >>> [variable.name for variable in build(marks).free_RVs]
    ['mean_p', 'icc']
    >>> [variable.name for variable in build(marks, pooling="none").free_RVs]
    ['p']
    """
    study = read_study(
        data, metrics, pooling=pooling, prior=prior, difficulty=difficulty, success=success,
        prior_trials=prior_trials, prior_weight=prior_weight, answer_prior=None, ci_prob=0.95,
        keep=(), covariates=covariates, group=group, judge=judge,
    )  # fmt: skip
    one_of("form", form, ("marginal", "full"))
    family = ""
    if isinstance(study.prior, HyperPrior):
        family = difficulty or DIFFICULTY_FAMILIES[0]
        if difficulty is None and len(study.prior.family_prior) == 1:
            (family,) = study.prior.family_prior
        one_of("difficulty", family, DIFFICULTY_FAMILIES)
    return build_program(study, family, form)


def build_models(study: Study) -> dict[str, pm.Model]:
    """Return the models of counts: one for each difficulty family, or the only one."""
    families = study.prior.family_prior if isinstance(study.prior, HyperPrior) else [""]
    return {name: build_program(study, name) for name in families}


def sampled_families(study: Study, by_default: bool) -> Study:
    """Return the study with one family, where several are not averaged.

    Parameters
    ----------
    study : Study
    by_default : bool
        Whether neither prior nor families were asked for.
    """
    special = study.judges, study.design, study.grouping, study.scale.axes or None
    prior = study.prior
    if not isinstance(prior, HyperPrior) or all(feature is None for feature in special):
        return study
    families = list(prior.family_prior)
    if by_default:
        return replace(study, prior=replace(prior, families="beta"))
    if len(families) > 1:
        raise ArgumentError(
            "difficulty",
            " must be one family with judge=, group=, covariates= or scores in PyMC, where several "
            f"are not averaged; got {', '.join(families)}. Pass difficulty={families[0]!r}.",
        )
    return study
