"""The models of counts of one evaluation, their forms, and what each form has no model for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pymc as pm

from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.data.study import Study, read_study
from bayesatk.metrics.grid import MetricSpec
from bayesatk.models.program import Form, build_program
from bayesatk.priors import (
    DIFFICULTY_FAMILIES,
    HyperPrior,
    ModelPrior,
    Pooling,
)

Models = dict[str, pm.Model]


def build(
    data: object,
    metrics: MetricSpec = "pass@1",
    *,
    difficulty: str | None = None,
    form: Form | None = None,
    pooling: Pooling = "partial",
    prior: ModelPrior | None = None,
    success: str | None = None,
    judge: object = None,
    prior_trials: object = None,
    prior_weight: float = 1.0,
    covariates: str | Sequence[str] | None = None,
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
    form : {"marginal", "full"}, optional
        ``"marginal"``, for partial pooling alone, integrates probabilities out over distinct
        questions: without covariates its cost does not depend on the number of questions.
        ``"full"`` has the probabilities ``p`` of every question and observed counts, so prior and
        posterior predictive sampling work; of other families than the Beta it also has discrete
        variables, and is for simulation alone. Default: marginal where there is such a form.

    Returns
    -------
    pymc.Model
        Variables by system, with the priors of ``HyperPrior.fields``: ``mean_p``, ``icc``,
        ``slopes`` of covariates, in the basis of uncorrelated covariates, ``group_sd`` and
        ``group_effect``, of which the sd is one; ``atoms``; of a mixture ``mean_p`` and ``icc`` of
        two components in no order and the ``share`` of the first (in the full form, by the
        ``lower_share`` of the one with the lower mean). Of judges ``sensitivity`` and
        ``false_positive_rate``. ``p`` in the full form.

    See Also
    --------
    bayesatk.evaluate : the exact posterior.
    bayesatk.sample : samples this model and returns metrics.
    bayesatk.models.compile_beta_binomial : compiles it once for many data sets.

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
    model_form: Any = form or default_form(pooling)
    one_of("form", model_form, ("marginal", "full"))
    if model_form == "marginal" and pooling != "partial":
        raise ArgumentError(
            "form",
            f" must be 'full' or left out with pooling={pooling!r}, which has no hyperparameters; "
            "got 'marginal'.",
        )
    family = ""
    if isinstance(study.prior, HyperPrior):
        family = difficulty or DIFFICULTY_FAMILIES[0]
        if difficulty is None and len(study.prior.family_prior) == 1:
            (family,) = study.prior.family_prior
        one_of("difficulty", family, DIFFICULTY_FAMILIES)
    return build_program(study, family, model_form)


def build_models(study: Study, form: Form, distinct: bool = True) -> Models:
    """Return the models of counts: one for each difficulty family, or the only one.

    Parameters
    ----------
    study : Study
    form : Form
    distinct : bool
        As of `bayesatk.models.program.build_program`.
    """
    families = study.prior.family_prior if isinstance(study.prior, HyperPrior) else [""]
    return {name: build_program(study, name, form, distinct) for name in families}


def default_form(pooling: Pooling) -> Form:
    """Return the form of a model that mixes best for its cost."""
    return "marginal" if pooling == "partial" else "full"


def one_latent_family[Kind](prior: Kind, form: str, by_default: bool, judged: bool = False) -> Kind:
    """Return the prior with one family, where a model takes no more than that.

    A model that samples every p is of the Beta.

    Parameters
    ----------
    prior : any
        Of a model of this form.
    form : str
    by_default : bool
        Whether neither prior nor families were asked for.
    judged : bool
        Whether judges that err marked the trials, these are scored levels, or questions have
        covariates or groups.
    """
    if not isinstance(prior, HyperPrior) or not (form == "full" or judged):
        return prior
    if by_default:
        return replace(prior, families="beta")
    if form != "full" and len(prior.family_prior) > 1:
        families = list(prior.family_prior)
        raise ArgumentError(
            "difficulty",
            " must be one family with judge=, group=, covariates= or scores in PyMC, where several "
            "are not averaged; "
            f"got {', '.join(families)}. Pass difficulty={families[0]!r}.",
        )
    if form != "full":
        return prior
    if set(prior.family_prior) != {"beta"}:
        raise ValueError(
            "form='full' samples every success probability, which the Beta alone allows; got "
            f"families {', '.join(prior.family_prior)}. Pass difficulty='beta', or leave out form."
        )
    return prior
