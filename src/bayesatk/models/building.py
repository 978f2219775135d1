"""The models of counts of one evaluation, to take, change and sample."""

from collections.abc import Sequence
from typing import Any

import pymc as pm

from bayesatk._tools.arguments import one_of
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.study import Study, read_study
from bayesatk.metrics.grid import MetricSpec
from bayesatk.models.forms import Form, default_form
from bayesatk.models.logit_normal import build_crossed
from bayesatk.models.program import build_program
from bayesatk.priors import DIFFICULTY_FAMILIES, CrossedPrior, HyperPrior, ModelPrior, Pooling

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
        two components in no order and the ``share`` of the first (in the full form, of the one with
        the lower mean). Of judges ``judge_rates``, a row of two each, and ``sensitivity`` and
        ``false_positive_rate`` by system. ``p`` in the full form.

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
    inputs = read_study(
        data, metrics, pooling=pooling, prior=prior, difficulty=difficulty, success=success,
        prior_trials=prior_trials, prior_weight=prior_weight, answer_prior=None, ci_prob=0.95,
        keep=(), covariates=covariates, group=group, judge=judge, combined=True,
    )  # fmt: skip
    chosen: Any = form or default_form(pooling)
    one_of("form", chosen, ("marginal", "full"))
    if chosen == "marginal" and pooling != "partial":
        raise ArgumentError(
            Argument("form"),
            f" must be 'full' or left out with pooling={pooling!r}, which has no hyperparameters; "
            "got 'marginal'.",
        )
    family = ""
    if isinstance(inputs.prior, HyperPrior):
        family = difficulty or DIFFICULTY_FAMILIES[0]
        if difficulty is None and len(inputs.prior.family_prior) == 1:
            (family,) = inputs.prior.family_prior
        one_of("difficulty", family, DIFFICULTY_FAMILIES)
    return build_program(inputs, family, chosen)


def build_models(inputs: Study, form: Form) -> Models:
    """Return the models of counts: one for each difficulty family, or the only one."""
    if form == "crossed":
        assert isinstance(inputs.prior, CrossedPrior)
        return {"": build_crossed(inputs.outcomes, prior=inputs.prior)}
    families = inputs.prior.family_prior if isinstance(inputs.prior, HyperPrior) else [""]
    return {name: build_program(inputs, name, form) for name in families}
