"""The PyMC models of counts: the one place that chooses them by scale."""

from collections.abc import Callable
from typing import Any

import pymc as pm
from numpy.typing import NDArray

from bayesatk.data.design import Design
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import RightWrong, Scale, Scored
from bayesatk.judge_error import Judges
from bayesatk.models.builders import build_families
from bayesatk.models.categories import build_dirichlet_multinomial
from bayesatk.models.forms import Form
from bayesatk.models.logit_normal import build_crossed
from bayesatk.models.regression import regression_model
from bayesatk.priors import HyperPrior, ModelPrior, Pooling

Models = dict[str, pm.Model]


def _right_wrong(
    outcomes: Outcomes, pooling: Pooling, prior: Any, form: Form, _: Any, judges: Any
) -> Models:
    if form == "crossed":
        return {"": build_crossed(outcomes, prior=prior)}
    return build_families(outcomes, pooling, prior, form, judges)


def _scored(
    outcomes: Outcomes, pooling: Pooling, prior: Any, form: Form, before: Any, _: Any
) -> Models:
    options = {"prior": prior, "prior_counts": before, "form": form}
    return {"": build_dirichlet_multinomial(outcomes, pooling, **options)}


_TWINS: dict[type, Callable[..., Models]] = {RightWrong: _right_wrong, Scored: _scored}


def build_models(
    scale: Scale,
    outcomes: Outcomes,
    pooling: Pooling,
    prior: ModelPrior,
    form: Form,
    before: NDArray[Any] | None = None,
    design: Design | None = None,
    judges: Judges | None = None,
) -> Models:
    """Return the models of counts: one for each difficulty family, or the only one.

    Parameters
    ----------
    scale : Scale
    outcomes : Outcomes
    pooling : Pooling
    prior : ModelPrior
        Of the scale; crossed where the form is.
    form : Form
    before : ndarray, shape (system, question, category), optional
        Prior trials, discounted.
    design : Design, optional
        Covariates of the questions.
    judges : Judges, optional
        Who marked the trials of every system, where judges err.
    """
    if design is not None and isinstance(prior, HyperPrior):
        return {"": regression_model(outcomes, design, prior)}
    return _TWINS[type(scale)](outcomes, pooling, prior, form, before, judges)
